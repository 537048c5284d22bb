"""Right-hand sides of TIMELY, Swift and DCTCP as ECN or Delay's and Swift's equations have them, in plain NumPy.

Apart from `formulas`, so that each checks the other. Times in seconds, data in bytes for TIMELY, else in packets.
"""

from __future__ import annotations

import dataclasses

import numpy as np

Array = np.ndarray
ROUND_TRIPS = 1500  # of an integration of DCTCP


@dataclasses.dataclass(frozen=True)
class Timely:
    """TIMELY's constants, as ECN or Delay restates them."""

    C: float = 10e9 / 8
    beta: float = 0.8
    alpha: float = 0.875
    low: float = 50e-6
    high: float = 500e-6
    least_rtt: float = 20e-6
    delta: float = 10e6 / 8
    segment: float = 16e3


def timely_rhs(state: Array, then: float, flows: int, own: Timely, *, strict: bool) -> Array:
    """d(q, g_i, R_i)/dt, with q in the first place and ``then`` the queue that gradients compare with.

    ``strict`` increases at g < 0 only; as printed it is g <= 0.
    """
    q, g, R = state[0], state[1 : flows + 1], state[flows + 1 :]
    tau = np.maximum(own.segment / R, own.least_rtt)
    rises = g < 0 if strict else g <= 0
    between = np.where(rises, own.delta, -g * own.beta * R)
    return _joined(q, g, R, then, tau, between, own)


def patched_rhs(state: Array, flows: int, own: Timely) -> Array:
    """The same of patched TIMELY, at an unmoving queue."""
    q, g, R = state[0], state[1 : flows + 1], state[flows + 1 :]
    tau = np.maximum(own.segment / R, own.least_rtt)
    w, reference = np.clip(2 * g + 0.5, 0, 1), own.C * own.low
    between = (1 - w) * own.delta - w * own.beta * R * (q - reference) / reference
    return _joined(q, g, R, q, tau, between, own)


def _joined(q: float, g: Array, R: Array, then: float, tau: Array, between: Array, own: Timely) -> Array:
    gradient = own.alpha / tau * (-g + (q - then) / (own.C * own.least_rtt))
    above = -own.beta * (1 - own.C * own.high / max(q, 1.0)) * R
    rate = np.where(q < own.C * own.low, own.delta, np.where(q > own.C * own.high, above, between)) / tau
    return np.concatenate([[R.sum() - own.C], gradient, rate])


@dataclasses.dataclass(frozen=True)
class Swift:
    """Swift's constants: 100 Gb/s and 1 KB packets, one switch; the range of flow scaling is ours."""

    C: float = 12.5e6
    fixed: float = 5e-6 + 2e-6  # base and one hop, the switch
    span: float = 9e-6
    least: float = 0.1
    most: float = 50.0
    increase: float = 50e6 / 8 / 1000  # packets/s, which times the round trip is ai
    beta: float = 0.8
    max_mdf: float = 0.5


def swift_targets(windows: Array, own: Swift) -> Array:
    """Target delay of each window."""
    slope = own.span / (own.least**-0.5 - own.most**-0.5)
    return own.fixed + np.clip(slope * (windows**-0.5 - own.most**-0.5), 0.0, own.span)


def swift_rhs(windows: Array, own: Swift) -> Array:
    """dW_i/dt where the queue follows its windows: the delay is sum W/C."""
    delay, targets = windows.sum() / own.C, swift_targets(windows, own)
    cut = np.minimum(own.beta * (delay - targets) / delay, own.max_mdf) * windows / delay
    return np.where(delay < targets, own.increase, -cut)


def dctcp_trace(
    flows: float, C: float, D: float, K: float, g: float = 1 / 16, round_trips: int = ROUND_TRIPS
) -> tuple[Array, Array, Array]:
    """Time, window and queue of the fluid of DCTCP's analysis, by Heun's method, 100 steps in a round trip.

    dW/dt = 1/RTT - W alpha p/(2 RTT), d alpha/dt = g (p - alpha)/RTT, dq/dt = N W/RTT - C, with p = 1 where q > K one
    round trip D + K/C ago and RTT = D + q/C.
    """
    steps = 100
    dt = (D + K / C) / steps
    kept = np.zeros((round_trips * steps, 2))
    W, alpha, q = (C * D + K) / flows, 1.0, K

    def moves(W: float, alpha: float, q: float, p: float) -> tuple[float, float, float]:
        rtt = D + q / C
        fills = flows * W / rtt - C
        return (1 - W * alpha * p / 2) / rtt, g * (p - alpha) / rtt, max(fills, 0.0) if q <= 0 else fills

    for n in range(len(kept)):
        p = float(n >= steps and kept[n - steps, 1] > K)
        kept[n] = W, q
        one = moves(W, alpha, q, p)
        two = moves(W + dt * one[0], alpha + dt * one[1], max(q + dt * one[2], 0.0), p)
        W, alpha, q = (x + dt * (u + v) / 2 for x, u, v in zip((W, alpha, q), one, two, strict=True))
        q = max(q, 0.0)
    return dt * np.arange(len(kept)), kept[:, 0], kept[:, 1]


def cycle(time: Array, queue: Array) -> tuple[float, float]:
    """Oscillation and period of the last half: from extreme to extreme, and between upward crossings of the mean."""
    half = len(queue) // 2
    queue, time = queue[half:], time[half:]
    above = queue > queue.mean()
    rises = time[1:][~above[:-1] & above[1:]]
    return float(np.ptp(queue)), float(np.diff(rises).mean()) if len(rises) > 2 else float("inf")
