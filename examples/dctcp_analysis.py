"""The equations of DCTCP's analysis (SIGMETRICS 2011) integrated by themselves, and fluidcc's fluid of them beside it.

    python -m examples.dctcp_analysis

For each setting how far the queue oscillates, its period and mean, and alpha's mean, of

- the equations as printed, with a queue that W/RTT fills, and marks observed a round trip d + q/C late;
- the same with marks observed d + K/C late;
- the same windows, of bytes in flight: the queue is N W - C d, and nothing else differs;
- fluidcc's form="analysis" and form="protocol".
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

import fluidcc as fc
from fluidcc.dde.integrate import solve
from fluidcc.scenario.model import resolve
from fluidcc.scenario.round_trips import base_rtt_with_serialisation

EQUATIONS = ("printed", "fixed delay", "in flight")
G, PACKET = 1 / 16, 1000.0  # DCTCP's gain; bytes


class Setting(NamedTuple):
    """Flows that share one link."""

    rate: str
    threshold: int  # K [packets]
    flows: int
    delay: str | None = None  # d without storing packets; by default that of an incast

    def scenario(self, form: str) -> fc.Scenario:
        """It, for fluidcc."""
        step_marking = f"{self.threshold}KB"
        scheme = fc.DCTCP(form=form, feedback_delay=self.delay)
        return fc.incast(self.flows, rate=self.rate, scheme=scheme, marking=fc.RED(step_marking, step_marking, 1.0))


class Teeth(NamedTuple):
    """What a queue does in the long run, in packets and seconds; and alpha's mean."""

    peak_to_peak: float
    period: float
    mean: float
    alpha: float


SETTINGS = (
    Setting("10Gbps", 60, 2, "100us"),
    Setting("10Gbps", 60, 8, "100us"),
    Setting("10Gbps", 60, 8),
    Setting("100Gbps", 300, 2),
    Setting("100Gbps", 300, 8),
)


def integrated(setting: Setting, equations: str, round_trips: int = 1000, steps: int = 100) -> Teeth:
    """Integrate, in packets, and look at the second half; ``steps`` to a round trip of d + K/C."""
    scenario = resolve(setting.scenario("analysis"))
    d, N, K = float(base_rtt_with_serialisation(scenario, scenario.flows[0])), setting.flows, setting.threshold
    C = float(scenario.links[0].rate) / PACKET
    crossing = d + K / C

    def round_trip(y: Array) -> Array:
        return N * y[0] / C if equations == "in flight" else d + jnp.maximum(y[2], 0.0) / C

    def slope(t: Array, y: Array, lagged: tuple[Array, ...]) -> Array:
        W, alpha, q = y
        RTT, before = round_trip(y), lagged[0]
        p = jnp.where((N * before[0] - C * d if equations == "in flight" else before[2]) > K, 1.0, 0.0)
        filling = N * W / RTT - C
        filling = jnp.where((q <= 0) & (filling < 0), 0.0, filling)
        return jnp.stack([1 / RTT - W * alpha / (2 * RTT) * p, G / RTT * (p - alpha), filling])

    with jax.enable_x64(True):
        found = solve(
            slope,
            past=lambda t: jnp.array([(C * d + K) / N, 0.3, 1.0 * K]) + 0.0 * t,
            lags=[crossing] if equations == "fixed delay" else lambda y: [round_trip(y)],
            until=round_trips * crossing,
            dt=crossing / steps,
            longest_lag=3 * crossing,
        )
    half = len(found.time) // 2
    time, (W, alpha, q) = np.asarray(found.time)[half:], np.asarray(found.state)[half:].T
    queue = N * W - C * d if equations == "in flight" else q
    up = np.flatnonzero((queue[:-1] < queue.mean()) & (queue[1:] >= queue.mean()))
    whole = slice(up[0], up[-1])
    period = (time[up[-1]] - time[up[0]]) / (len(up) - 1)
    return Teeth(float(np.ptp(queue)), float(period), float(queue[whole].mean()), float(alpha[whole].mean()))


def simulated(setting: Setting, form: str) -> Teeth:
    """Of fluidcc's fluid: `fluidcc.limit_cycle`, and alpha in the second half of 1000 round trips."""
    scenario = setting.scenario(form)
    cycle = fc.limit_cycle(scenario, estimate_error=False)
    until = 1000 * setting.threshold * PACKET / resolve(scenario).links[0].rate
    alpha = fc.simulate(scenario, until, estimate_error=False)["alpha"].values
    return Teeth(
        cycle.peak_to_peak / PACKET, cycle.period, cycle.mean / PACKET, float(np.mean(alpha[len(alpha) // 2 :]))
    )


def main() -> None:
    """Print the table."""
    for setting in SETTINGS:
        delay = f", d {setting.delay}" if setting.delay else ""
        print(f"{setting.rate}, K {setting.threshold} packets, {setting.flows} flows{delay}")
        found = {equations: integrated(setting, equations) for equations in EQUATIONS}
        found |= {f"form={form}": simulated(setting, form) for form in ("analysis", "protocol")}
        for name, at in found.items():
            print(
                f"  {name:14} oscillation {at.peak_to_peak:5.1f} packets  period {1e3 * at.period:.3f} ms  "
                f"mean {at.mean:6.2f}  alpha {at.alpha:.3f}"
            )


if __name__ == "__main__":
    main()
