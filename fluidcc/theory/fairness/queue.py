"""The two rules as sources of one queue: measured RTTs, ACKs as they are delivered, congestion observed by them.

Each rule has the link to itself. With w(t) the rate of ACKs of a flow, tau(t) the RTT that an ACK observed at t
reports:

    R' = -beta g R/r + a/tau        per RTT; r is the measured tau, or fixed as in the paper
    S' = -beta g S w/(s MTU) + a/tau      per s ACKs
    q' = Y - C while q > 0, Y being the sum of rates
    g  = max(0, 1 - target/tau)

FIFO: what is acknowledged at t was sent at t - tau(t), waited for what was ahead then, and came back within the base
RTT: tau(t) = base + q(t - tau(t))/C. Differentiated, 1 - tau' = C/Y(t - tau) behind a queue, else 1, and
w = S(t - tau) (1 - tau'): what is acknowledged until t is exactly what was sent until t - tau. tau is integrated beside
the rest, so that one delayed state is read per step.

Decided, and why. g is Swift's severity (SIGCOMM 2020, Algorithm 1) with the RTT for its delay: it is proportional to
congestion, continuous, and with target = 0 always 1, which is the paper's "while the network is congested". Additive
increase goes on regardless of congestion, once per measured RTT for either rule (V-B, IV-B). Before the start each flow
got its share of the link by its first rate, the queue was as at the start, and ACKs tell so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from fluidcc.compiling.functions import per_shape
from fluidcc.compiling.settings import our_settings
from fluidcc.dde.integrate import solve
from fluidcc.errors import InputError
from fluidcc.results.display import draw, label, shown
from fluidcc.results.result import DatasetResult, Row
from fluidcc.surface import public
from fluidcc.theory.fairness.rates import with_metrics
from fluidcc.theory.fairness.settings import Array, one, rates_of, settings_of
from fluidcc.units import RATE, SIZE, TIME, show

if TYPE_CHECKING:
    from fluidcc.results.display import Picture

_SAMPLES = 2000  # about as many are kept


class SharedDecrease(DatasetResult):
    """Results of both rules, each on its own queue; made by `shared_decrease`.

    Parameters
    ----------
    dataset : xarray.Dataset
        As of `DecreaseRates`, and ``queue`` (rule, time) [bytes], ``rtt`` (rule, time) [s] as reported by the ACKs of
        that time, ``sent`` and ``acked`` (rule, time, flow) [bytes] since the start.
    """

    def __repr__(self) -> str:
        """Flows and horizon."""
        data = self.dataset
        return f"<Decrease of {data.sizes['flow']} flows in one queue over {show(float(data.time[-1]), TIME)}>"

    KEPT: ClassVar[tuple[str, ...]] = ("time",)
    WHOLE: ClassVar[tuple[str, ...]] = ("rule", "flow")

    def _rows(self) -> list[Row]:
        return [(label(key), shown(key, value)) for key, value in self.summary().items()]

    def summary(self) -> dict[str, float]:
        """Summarise each rule (``per_rtt``, ``sampling``): final ratio and Jain's index, largest queue, part of C sent.

        And the step's error, estimated: the largest difference of rates and queue to the run with half the step, over
        the largest of each.
        """
        data, found = self.dataset, {}
        seconds = float(data.time[-1])
        for k, rule in enumerate(("per_rtt", "sampling")):
            found[f"ratio_{rule}"] = float(data.ratio[k, -1])
            found[f"jain_{rule}"] = float(data.jain[k, -1])
            found[f"largest_queue_{rule}_bytes"] = float(data.queue[k].max())
            served = float(data.sent[k, -1].sum() + data.queue[k, 0] - data.queue[k, -1])
            found[f"utilisation_{rule}"] = served / (data.capacity * seconds)
        for name in ("rate_rel", "queue_rel"):
            found[f"discretisation_error_{name}"] = data.attrs[f"discretisation_error.{name}"]
        return found

    def plot(self, *, title: str | None = None) -> Picture:
        """Rates, queue and the ratio metric over time."""
        return draw("plot_shared", self, title=title)


@public()
def shared_decrease(
    rates: Sequence[Any] | Array,
    capacity: Any,
    *,
    base_rtt: Any,
    until: Any,
    acks: Any = 30,
    mtu: Any = "1KB",
    beta: Any = 0.5,
    rtt: Any = None,
    target: Any = None,
    increase: Any = 0.0,
    queue: Any = 0.0,
    steps: int = 40,
) -> SharedDecrease:
    """Run a decrease per RTT and one per s ACKs through a FIFO queue, with its delays.

    Parameters
    ----------
    rates : sequence of quantity
        Two or more rates to start from [bytes/s].
    capacity : quantity
        C [bytes/s].
    base_rtt : quantity
        Without queueing [s].
    until : quantity
        Horizon [s]; rounded up to whole steps.
    acks, mtu, beta
        s, MTU and beta as in `decrease_rates`.
    rtt : quantity
        r of the rule per RTT if it is to be fixed, as in the paper [s]; by default as measured.
    target : quantity
        RTT beyond which decreases begin [s]; ``base_rtt`` by default, 0 for a full decrease always.
    increase : quantity
        a, added to each rate per RTT [bytes/s].
    queue : quantity
        At the start and before [bytes].
    steps : int
        Per base RTT, of RK4; the error is of first order where the queue empties, else of fourth.

    Returns
    -------
    SharedDecrease

    Raises
    ------
    InputError
        If a setting is out of range.

    Notes
    -----
    Equations and decisions are at the top of this module. With target 0, a fixed rtt, a large capacity and
    base_rtt to 0 these are the paper's equations (Snyder and Lebeck, section IV-B). On a link that is overloaded
    ACKs come at C in all, not at the sum of the rates, which the paper's S' takes: sampling is slower by C/Y there.

    Examples
    --------
    >>> rates = ["100Gbps", "50Gbps"]
    >>> run = fc.theory.shared_decrease(rates, "100Gbps", base_rtt="10us", increase="50Mbps", until="1ms")
    >>> run.ratio[:, -1].values.round(2).tolist()
    [1.77, 1.19]
    """
    initial = rates_of(rates)
    setting = settings_of(acks, mtu, "1s" if rtt is None else rtt, beta)
    C, base, end = one("capacity", capacity, RATE), one("base_rtt", base_rtt, TIME), one("until", until, TIME)
    aim = base if target is None else one("target", target, TIME, zero=True)
    a, q0 = one("increase", increase, RATE, zero=True), one("queue", queue, SIZE, zero=True)
    if isinstance(steps, bool) or not isinstance(steps, (int, np.integer)) or steps < 2:
        raise InputError(f"steps: {str(steps)[:20]}; give a whole number of at least 2")
    total = math.ceil(end / base * int(steps) * (1 - 1e-9))
    stride = max(1, total // _SAMPLES)
    samples = math.ceil(total / stride)
    wait = q0 / C / base

    def states_of(parts: int) -> Array:
        """Run with the step divided by ``parts``; return the states (rule, time, rows)."""
        found = _run(
            initial / C,
            np.float64(wait),
            np.array([setting.beta * base / setting.rtt, 0.0] if rtt is not None else [0.0, setting.beta]),
            np.float64(setting.beta * C * base / setting.sample),
            np.float64(aim / base),
            np.float64(a / C),
            steps=int(steps) * parts,
            stride=stride * parts,
            samples=samples,
            # Nothing is read that was sent before the first packet of that queue; a power of two, to compile seldom.
            longest=math.ceil(samples * stride / int(steps)) + 2 + (2 ** math.ceil(math.log2(wait)) if wait > 1 else 1),
        )
        return np.asarray(found).transpose(2, 0, 1)

    with our_settings():
        states, finer = states_of(1), states_of(2)
    flows = len(initial)
    dt = base / int(steps)
    data = with_metrics(states[:, :, :flows] * C, np.arange(samples + 1) * (stride * dt))
    for k, (name, text) in enumerate((("sent", "bytes sent"), ("acked", "bytes acknowledged")), 1):
        rows = states[:, :, k * flows : (k + 1) * flows] * (C * base)
        data[name] = (("rule", "time", "flow"), rows, {"units": "bytes", "long_name": text})
    data["queue"] = (("rule", "time"), states[:, :, -2] * (C * base), {"units": "bytes", "long_name": "queue"})
    data["rtt"] = (("rule", "time"), states[:, :, -1] * base, {"units": "s", "long_name": "RTT that ACKs report"})
    data.attrs = {"capacity": C, "base_rtt_s": base, "target_s": aim, "step_s": dt, "acks": setting.acks}
    data.attrs |= {"mtu": setting.mtu, "beta": setting.beta, "increase": a}
    packet = setting.mtu / (C * base)  # a queue of less counts as one packet, as in `simulate`
    errors = {"rate_rel": (slice(flows), 0.0), "queue_rel": (slice(-2, -1), packet)}
    for name, (rows, least) in errors.items():
        ours, theirs = states[:, :, rows], finer[:, :, rows]
        data.attrs[f"discretisation_error.{name}"] = float(np.abs(ours - theirs).max() / max(theirs.max(), least))
    return SharedDecrease(data)


@per_shape()
def _run(
    initial: jax.Array,
    q0: jax.Array,
    per_rtt: jax.Array,
    sampling: jax.Array,
    target: jax.Array,
    increase: jax.Array,
    *,
    steps: int,
    stride: int,
    samples: int,
    longest: int,
) -> jax.Array:
    """States (samples, rows, rule): rates, sent and acknowledged by flow, queue, RTT; in units of C and base RTT.

    The rule per RTT decreases by ``per_rtt[0] + per_rtt[1]/tau``: beta/r and 0 with a fixed r, 0 and beta without.
    """
    flows = len(initial)
    start = jnp.concatenate([initial, jnp.zeros(2 * flows), jnp.stack([q0, 1 + q0])])[:, None] * jnp.ones(2)
    dt = 1 / steps

    def slope(t: jax.Array, y: jax.Array, lagged: tuple[jax.Array, ...]) -> jax.Array:
        S, q, tau = y[:flows], y[-2], y[-1]
        then, waited = lagged[0][:flows], lagged[0][-2]
        Y, Y_then = S.sum(axis=0), then.sum(axis=0)
        # Ours: tau and the queue, that fall within a step to where they end, go there and not beyond.
        behind = (waited > 0) | (Y_then > 1)
        tau_slope = jnp.where(behind, jnp.maximum(1 - 1 / Y_then, (1 - tau) / dt), (1 - tau) / dt)
        q_slope = jnp.maximum(Y - 1, -q / dt)
        before = t < tau
        tau_slope = jnp.where(before, 0.0, tau_slope)
        w = then * jnp.where(before, jnp.minimum(1 / Y_then, 1.0), 1 - tau_slope)
        g = jnp.maximum(0.0, 1 - target / tau)
        decreases = jnp.stack([S[:, 0] * (per_rtt[0] + per_rtt[1] / tau[0]), sampling * S[:, 1] * w[:, 1]], axis=1)
        return jnp.concatenate([increase / tau - g * decreases, S, w, q_slope[None], tau_slope[None]])

    return solve(
        slope,
        past=lambda t: start + 0.0 * t,
        lags=lambda y: [y[-1]],
        until=samples * stride / steps,
        dt=dt,
        stride=stride,
        longest_lag=float(longest),
    ).state
