"""HPCC's windows near their equilibrium: multipliers of the map, and what the fluid and packets do.

    python -m benchmarks.hpcc_windows

Flows start together at line rate. From some round trip on the deviation x of all windows together is small; the pair
of multipliers is fitted to it as x(t + 2D) = b x(t + D) + c x(t), over eight round trips D.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import fluidcc as fc
from fluidcc.schemes.hpcc.multipliers import together

CAPACITY, DELAY, ROUND_TRIP = 12.5e9, 100e-6, 400e-6  # bytes/s, one way of a hop, and of a packet without its time
SAMPLES, SPAN = 40, 8  # in a round trip; round trips of a fit
# Largest deviation at which a fit begins: small enough to be linear, large against a packet, which is 2e-4 of all.
SMALL, TAIL = 0.01, 40


class Setting(NamedTuple):
    """Flows, W_AI [bytes], T [s], reaction."""

    flows: int
    w_ai: float
    base_rtt: float
    reaction: str = "combined"


SETTINGS = (
    Setting(1, 50e3, 420e-6),
    Setting(2, 20e3, 405e-6),
    Setting(2, 50e3, 420e-6),
    Setting(2, 50e3, 500e-6),
    Setting(4, 20e3, 420e-6),
    Setting(4, 20e3, 500e-6),
    Setting(8, 10e3, 450e-6),
    Setting(8, 20e3, 600e-6),
    Setting(2, 50e3, 420e-6, "per-rtt"),
    Setting(2, 50e3, 600e-6, "per-rtt"),
)


def scenario(setting: Setting) -> fc.Scenario:
    """Return flows of one link."""
    scheme = fc.HPCC(w_ai=setting.w_ai, base_rtt=setting.base_rtt, reaction=setting.reaction)
    return fc.incast(setting.flows, rate=f"{CAPACITY:.0f}B/s", delay=DELAY, scheme=scheme)


def expected(setting: Setting) -> complex:
    """Multiplier of the map; U* = eta + N W_AI/(B T) by A.3."""
    utilisation = 0.95 + setting.flows * setting.w_ai / (CAPACITY * setting.base_rtt)
    return together(0.95 / utilisation, ROUND_TRIP / setting.base_rtt, by_rtt=setting.reaction == "per-rtt")


def fitted(setting: Setting, engine: str, simulate: Callable[..., Any] = fc.simulate) -> complex:
    """Multiplier that a run shows, of a pair that with a positive imaginary part."""
    trips = 60 if setting.reaction == "combined" else 240
    run = simulate(
        scenario(setting), until=trips * ROUND_TRIP, engine=engine, sample_interval=ROUND_TRIP / SAMPLES
    ).dataset
    windows = run.window.values.sum(axis=1)
    x = windows / windows[-TAIL * SAMPLES // 2 :].mean() - 1.0
    largest = np.array([np.abs(x[at : at + SAMPLES]).max() for at in range(0, len(x) - SAMPLES, SAMPLES)])
    begin = (np.flatnonzero(largest > SMALL)[-1] + 1) * SAMPLES
    rows = slice(begin, begin + SPAN * SAMPLES)
    now, next_, last = x[rows], x[begin + SAMPLES :][: SPAN * SAMPLES], x[begin + 2 * SAMPLES :][: SPAN * SAMPLES]
    (b, c), *_ = np.linalg.lstsq(np.stack([next_, now], axis=1), last, rcond=None)
    return max(np.roots([1.0, -b, -c]), key=lambda z: (abs(z), z.imag))


def main() -> None:
    """Print a table."""
    print("flows  W_AI [B]  T [us]  reaction  U*      multiplier      fluid           packets         |z|")
    for one in SETTINGS:
        utilisation = 0.95 + one.flows * one.w_ai / (CAPACITY * one.base_rtt)
        z, *found = expected(one), *(fitted(one, engine) for engine in ("fluid", "packet"))
        shown = "  ".join(f"{each.real:.3f}{each.imag:+.3f}i" for each in (z, *found))
        print(
            f"{one.flows:5d}  {one.w_ai:8.0f}  {one.base_rtt * 1e6:6.0f}  {one.reaction:8s}  {utilisation:.4f}", end=""
        )
        print(f"  {abs(z):.3f}  {shown}", flush=True)


if __name__ == "__main__":
    main()
