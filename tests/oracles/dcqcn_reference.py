"""DCQCN's fluid model written down once more, straight from the paper, in plain floats.

Equations (5), (7)-(9) and (11) of Zhu et al., SIGCOMM 2015, for flows at one bottleneck, in packets and
seconds, with the powers of 1-p as printed. Heun's method on a grid that divides the delay, so that every
lagged value is one that was computed. It shares no code with fluidcc and is written to be compared with
the paper by eye, not to be fast.
"""

from __future__ import annotations

import dataclasses
import math

FEW_MARKS = 1e-12  # below, the quotients 0/0 of (8) and (9) are replaced by their limits at p = 0
MOST_EXPONENT = 700.0  # exp(709) overflows; beyond this the quotients are 0


@dataclasses.dataclass(frozen=True)
class Settings:
    """Table 2 and Figure 14, in packets and seconds."""

    capacity: float = 40e9 / 8 / 1000  # C [packets/s]
    kmin: float = 5.0
    kmax: float = 200.0
    pmax: float = 0.01
    g: float = 1 / 256
    byte_counter: float = 10_000.0  # B
    timer: float = 55e-6  # T
    tau: float = 50e-6  # CNP interval
    tau_alpha: float = 55e-6  # tau'
    delay: float = 50e-6  # tau*
    rate_ai: float = 40e6 / 8 / 1000
    steps: int = 5  # F


@dataclasses.dataclass
class Flow:
    """State of one flow, its start, and its past rates on the grid."""

    rate: float
    target: float
    alpha: float
    start: float
    past: list[float]


def marking(s: Settings, queue: float) -> float:
    """Equation (5)."""
    if queue <= s.kmin:
        return 0.0
    if queue <= s.kmax:
        return (queue - s.kmin) / (s.kmax - s.kmin) * s.pmax
    return 1.0


def quotient(p: float, count: float) -> float:
    """p / ((1-p)^(-count) - 1)."""
    if count == 0:
        return math.inf
    if p < FEW_MARKS:
        return 1.0 / count
    if p == 1.0 or -count * math.log1p(-p) > MOST_EXPONENT:
        return 0.0
    return p / math.expm1(-count * math.log1p(-p))


def derivatives(
    s: Settings, p: float, lagged_rate: float, rate: float, target: float, alpha: float
) -> tuple[float, float, float]:
    """Equations (9), (8) and (7)."""
    none = 1 - p
    cnp = 1 - none ** (s.tau * lagged_rate)
    if lagged_rate > 0:
        by_bytes = lagged_rate * quotient(p, s.byte_counter)
        by_timer = lagged_rate * quotient(p, s.timer * lagged_rate)
    else:
        by_bytes, by_timer = 0.0, (1.0 if p < FEW_MARKS else p / -math.log1p(-p) if p < 1 else 0.0) / s.timer
    d_rate = -rate * alpha / (2 * s.tau) * cnp + (target - rate) / 2 * (by_bytes + by_timer)
    d_target = (
        -(target - rate) / s.tau * cnp
        + s.rate_ai * none ** (s.steps * s.byte_counter) * by_bytes
        + s.rate_ai * none ** (s.steps * s.timer * lagged_rate) * by_timer
    )
    d_alpha = s.g / s.tau_alpha * ((1 - none ** (s.tau_alpha * lagged_rate)) - alpha)
    return d_rate, d_target, d_alpha


def run(
    s: Settings, starts: list[float], initial: list[float], until: float, dt: float, initial_alpha: float = 1.0
) -> tuple[list[float], list[list[float]]]:
    """Integrate; a flow is frozen and silent until its start, rates never exceed the line rate.

    Returns
    -------
    queue : list of float
        On the grid 0, dt, ... [packets].
    rates : list of list of float
        R_C of every flow on the grid [packets/s].
    """
    lag = round(s.delay / dt)
    assert abs(lag * dt - s.delay) < 1e-9 * s.delay, "the step must divide the delay"
    flows = [Flow(r, r, initial_alpha, t, [r]) for r, t in zip(initial, starts, strict=True)]
    queue, queues = 0.0, [0.0]

    def slopes(step: int, states: list[tuple[float, float, float]], on: list[bool]) -> tuple[float, list]:
        p = marking(s, queues[max(step - lag, 0)])
        moves = [
            derivatives(s, p, flow.past[max(step - lag, 0)], *state) if active else (0.0, 0.0, 0.0)
            for flow, state, active in zip(flows, states, on, strict=True)
        ]
        arrivals = sum(state[0] for state, active in zip(states, on, strict=True) if active)
        return arrivals - s.capacity, moves  # (11)

    def limited(state: list[float]) -> tuple[float, float, float]:
        rate, target = (min(max(x, 0.0), s.capacity) for x in state[:2])
        return rate, target, state[2]

    for n in range(round(until / dt)):
        on = [(n + 0.5) * dt > flow.start for flow in flows]
        now = [(flow.rate, flow.target, flow.alpha) for flow in flows]
        dq, first = slopes(n, now, on)
        guess = [limited([x + dt * k for x, k in zip(a, b, strict=True)]) for a, b in zip(now, first, strict=True)]
        dq2, second = slopes(n + 1, guess, on)
        queue = max(queue + dt * (dq + dq2) / 2, 0.0)
        queues.append(queue)
        for flow, k1, k2 in zip(flows, first, second, strict=True):
            new = [x + dt * (a + b) / 2 for x, a, b in zip((flow.rate, flow.target, flow.alpha), k1, k2, strict=True)]
            flow.rate, flow.target, flow.alpha = limited(new)
            flow.past.append(flow.rate)
    return queues, [flow.past for flow in flows]
