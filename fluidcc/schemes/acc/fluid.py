"""ACC's fluid model: Algorithm 1 of Zhang et al., NSDI 2024, per flow class, as a hybrid system.

A flow is before its first ACK, running (its clock counts a period T), or halted: silent while ``halt`` counts down, and
then until the first ACK of what it sends next, which restarts the clock. Clocks start, periods end and halts end
inside steps: a step's bytes are divided there, and what it sent after a decision, at the rate before it, delays the
next packets. `fluidcc.schemes.acc.packet` says what the paper leaves open.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from fluidcc.contract.signals import Progress, Signals
from fluidcc.schemes.acc.parameters import ACC

NEEDS = frozenset({"inflight", "undetermined"})
_STEPS_PER_PERIOD = 80
_NONE = 1e-9  # share of a period's ACKs that is rounding


class State(NamedTuple):
    """State of the flows, arrays (flows, points); it changes in jumps only."""

    rate: Array  # R_s, also while it halts [bytes/s]
    halt: Array  # what is left of the halt [s]
    clock: Array  # since the period began [s]; -1 before the first ACK
    halted: Array  # 1 from a halt's beginning to the first eligible ACK
    silent: Array  # periods before T_i in which no whole packet was acknowledged
    carried: Array  # bytes acknowledged in these
    owed: Array  # extension that is still to come [s]
    nxt_start: Array  # snd_nxt when the last halt began [bytes]
    nxt_0: Array  # snd_nxt at the beginning of T_{i-1}
    nxt_1: Array  # and of T_i
    una_0: Array  # snd_una at the beginning of T_i
    acked: Array  # bytes acknowledged in T_i
    ce: Array  # of these, marked CE
    ue: Array  # and UE only
    n_u: Array  # uncongested periods in a row
    n_v: Array  # periods with UE in a row
    halt_time: Array  # of the last halt, with its extension [s]
    ack_rate: Array  # last R [bytes/s]
    inflight: Array  # [bytes]


class Feedback(NamedTuple):
    """Shares of the packets acknowledged now, each (flows, points) or (1, points)."""

    ce: Array
    ue: Array


def start(parameters: ACC, initial_rate: Array, shape: tuple[int, int], hops: int) -> State:
    """State before the first ACK."""
    rate = jnp.broadcast_to(jnp.maximum(initial_rate, parameters.min_rate), shape)
    none = jnp.zeros(shape, rate.dtype)
    return State(rate, none, none - 1.0, *[none] * 16)


def rate(state: State) -> Array:
    """R_s, "the rate determined by the algorithm" [bytes/s]."""
    return state.rate


def sending(parameters: ACC, state: State, dt: Array) -> Array:
    """Compute the rate of sending in the next step [bytes/s]: R_s in the share of it that lies beyond the halt."""
    return state.rate * jnp.clip(1.0 - state.halt / dt, 0.0, 1.0)


def feedback(parameters: ACC, signals: Signals) -> Feedback:
    """Shares of CE and of UE among the ACKs."""
    ue = jnp.zeros_like(signals.marking) if signals.undetermined is None else signals.undetermined
    return Feedback(signals.marking, ue)


def derivative(parameters: ACC, state: State, observed: Feedback) -> State:
    """Return slopes of 0: nothing moves between jumps."""
    return State(*(jnp.zeros_like(leaf) for leaf in state))


def jump(parameters: ACC, state: State, progress: Progress, observed: Feedback) -> State:
    """Time passes, ACKs are counted, and if the period has ended they decide (section 4.1)."""
    p, now = parameters, progress
    s = _counted(state, now, observed)
    over = s.clock - p.period
    ends = over >= 0
    # What came and went after the end belongs to the next period.
    late = jnp.where(ends, now.newly * over / now.dt, 0.0)
    acked, ce, ue = s.acked - late, s.ce - observed.ce * late, s.ue - observed.ue * late
    una, nxt = now.acked - late, jnp.maximum(now.sent - s.rate * over, s.nxt_1)
    share = ce / jnp.maximum(acked, _NONE)
    congested = jnp.minimum(p.mark_fraction, 1.0 - _NONE) < share
    runs = ends & (s.halted == 0)
    decides = runs & (acked >= now.wire_packet * (1.0 - _NONE))
    waits = runs & ~decides
    extends = ends & (s.halted > 0) & congested  # lines 6 to 10, as printed
    new = _decided(p, s, now, (acked, share, ue, una, nxt))
    decided = [jnp.where(decides, after, before) for after, before in zip(new, s, strict=True)]
    s = State(*decided)
    if p.extension == "inflight":
        s = _extended(p, s, now, extends, (acked, una, over))
    # At `over` before this step's end the rate changed; what was sent since at the old one delays the next packet.
    delay = jnp.where(decides, over * (state.rate / s.rate - 1.0), 0.0) + jnp.where(extends, s.owed, 0.0)
    return s._replace(
        halt=jnp.maximum(s.halt + delay, 0.0),
        owed=jnp.where(extends, 0.0, s.owed),
        clock=jnp.where(ends, over, s.clock),
        nxt_1=jnp.where(ends, nxt, s.nxt_1),  # without ACKs nxt_0 and una_0 stay, and dS accumulates (4.2)
        silent=s.silent + jnp.where(waits, 1.0, 0.0),
        carried=jnp.where(waits, acked, s.carried),
        acked=jnp.where(waits, s.acked, jnp.where(ends, late, s.acked)),
        ce=jnp.where(ends & ~waits, observed.ce * late, s.ce),
        ue=jnp.where(ends & ~waits, observed.ue * late, s.ue),
        inflight=now.sent - now.acked,
    )


def _counted(s: State, now: Progress, observed: Feedback) -> State:
    """A step goes by; the clock starts with the first ACK, and again with the first eligible one after a halt.

    ACKs answer whole packets. Of flows whose packets take turns at the bottleneck, the first is answered when the first
    of these ends, the last when one of each has: on average with half a packet. It is not counted in R.
    """
    eligible = now.acked - s.nxt_start - now.wire_packet / 2
    starts = ((s.clock < 0) | (s.halted > 0)) & (eligible > 0)
    since = now.dt * jnp.minimum(eligible / jnp.maximum(now.newly, _NONE), 1.0)
    return s._replace(
        halt=jnp.maximum(s.halt - now.dt, 0.0),
        clock=jnp.where(starts, since, jnp.where(s.clock < 0, s.clock, s.clock + now.dt)),
        halted=jnp.where(starts, 0.0, s.halted),
        owed=jnp.where(starts, 0.0, s.owed),
        silent=jnp.where(starts, 0.0, s.silent),
        carried=jnp.where(starts, 0.0, s.carried),
        nxt_0=jnp.where(starts, s.nxt_start, s.nxt_0),
        nxt_1=jnp.where(starts, now.sent - s.rate * since, s.nxt_1),
        una_0=jnp.where(starts, s.nxt_start, s.una_0),
        acked=jnp.where(starts, eligible, s.acked + now.newly),
        ce=jnp.where(starts, observed.ce * eligible, s.ce + observed.ce * now.newly),
        ue=jnp.where(starts, observed.ue * eligible, s.ue + observed.ue * now.newly),
    )


def _extended(p: ACC, s: State, now: Progress, extends: Array, period: tuple[Array, Array, Array]) -> State:
    """Lines 6 to 10 in each period of a halt (ours): it lasts until what is in flight fits R T."""
    acked, una, over = period
    R = jnp.maximum(acked / p.period, _NONE)
    halt = (now.sent - una) / R - p.period - over
    longer = extends & (halt > s.halt) & (acked >= now.wire_packet * (1.0 - _NONE))
    return s._replace(
        rate=jnp.where(longer, jnp.clip(R, jnp.minimum(p.min_rate, now.line_rate), now.line_rate), s.rate),
        halt=jnp.where(longer, halt, s.halt),
        nxt_start=jnp.where(longer, now.sent, s.nxt_start),
        halt_time=jnp.where(longer, s.halt_time + halt - s.halt, s.halt_time),
        ack_rate=jnp.where(longer, R, s.ack_rate),
    )


def _decided(p: ACC, s: State, now: Progress, period: tuple[Array, ...]) -> State:
    """Fig. 5 and Algorithm 1, of a period that has ended: its bytes, share of CE, bytes with UE, snd_una, snd_nxt."""
    acked, share, ue, una, nxt = period
    some = share > _NONE
    congested = jnp.minimum(p.mark_fraction, 1.0 - _NONE) < share
    held = some & ~congested if p.some_marks == "hold" else jnp.zeros_like(some)
    undetermined = ~some & (ue > _NONE * acked)
    raises = ~(congested | held | undetermined)
    least = jnp.minimum(p.min_rate, now.line_rate)
    # Lines 13 to 21.
    increment = jnp.where(s.n_u < p.low_periods, p.ri_low, p.ri_high)
    raised = jnp.minimum(s.rate + (now.line_rate - s.rate) / now.line_rate * increment, now.line_rate)
    # Lines 22 to 26; N_v counts this period.
    n_v = jnp.where(undetermined, s.n_v + 1.0, 0.0)
    halved = jnp.where(n_v > p.p_thresh, jnp.maximum(s.rate / 2, least), s.rate)
    # Lines 3 to 9, and 27 to 34; line 7 with the R_s that line 4 has not overwritten yet, and what T_i sent.
    # Where less than a packet was acknowledged in T_i itself, with the inter-arrival time instead of T (4.3).
    sparse = acked - s.carried < now.wire_packet
    R = jnp.where(sparse, acked / (1.0 + s.silent), acked - s.carried) / p.period
    R = jnp.maximum(R, _NONE)
    beyond = jnp.maximum((nxt - s.nxt_1) * (1.0 - R / s.rate), 0.0)
    excess = (s.nxt_1 - s.nxt_0) - (una - s.una_0)  # dS - dA
    halts = congested & (excess > 0) & p.halt
    extension = jnp.where(halts, beyond / R, 0.0)
    halt = jnp.where(halts, excess / R, 0.0) + (extension if p.extension in ("at-once", "inflight") else 0.0)
    matched = jnp.clip(R, least, now.line_rate)
    rate = jnp.where(undetermined, halved, jnp.where(held, s.rate, raised))
    return s._replace(
        rate=jnp.where(congested, matched, rate),
        halt=halt,
        halted=jnp.where(halts, 1.0, 0.0),
        owed=extension if p.extension == "printed" else s.owed,
        nxt_start=jnp.where(halts, now.sent, s.nxt_start),
        silent=jnp.zeros_like(s.silent),
        carried=jnp.zeros_like(s.carried),
        nxt_0=s.nxt_1,
        una_0=una,
        n_u=jnp.where(raises, s.n_u + 1.0, 0.0),
        n_v=n_v,
        halt_time=jnp.where(halts, halt + (extension if p.extension == "printed" else 0.0), s.halt_time),
        ack_rate=jnp.where(congested, R, s.ack_rate),
    )


OBSERVABLES = {
    "halt_time": ("s", "last halt, t_Halt + t_extend"),
    "ack_rate": ("bytes/s", "last arrival rate R of ACKs"),
    "halting": ("1", "whether the source halts"),
    "inflight": ("bytes", "bytes in flight"),
}


def observables(state: State) -> dict[str, Array]:
    """Return what a trace shows in addition to queue and rate, as named in `OBSERVABLES`."""
    return {
        "halt_time": state.halt_time,
        "ack_rate": state.ack_rate,
        "halting": jnp.where(state.halt > 0, 1.0, 0.0),
        "inflight": state.inflight,
    }


def time_scale(parameters: ACC, line_rate: Any) -> Any:
    """Time [s] from which the step is chosen, four of which are taken in it: events fall inside steps."""
    return np.asarray(parameters.period) * (4 / _STEPS_PER_PERIOD)
