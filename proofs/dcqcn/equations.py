"""DCQCN's settings, and (6)-(9) near a fixed point: derivatives by the state now and a delay ago, rightmost root.

By complex steps, in NumPy, apart from fluidcc's fluid.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

# Table 14 and 40 Gb/s, in packets of 1000 B and seconds.
PACKET = 1000.0
C, TAU, TAU_PRIME, T = 5e6, 50e-6, 55e-6, 55e-6
R_AI, B, F = 40e6 / 8 / PACKET, 10e6 / PACKET, 5
KMIN, KMAX, PMAX = 5e3, 200e3, 0.01
DELAY = 50e-6  # tau*, s
ALPHA = 1.0  # at a flow's start (section 3.1); it falls from there on, before the first CNP too
NODES = 24  # of the delay, in `rightmost`


def setting(*without: str, runs: bool = True) -> str:
    """Name the conditions that a verdict's numbers depend on: packets, Pmax, R_AI, and alpha before the first CNP.

    Parameters
    ----------
    *without : str
        Of "packets", "Pmax" and "R_AI": what the verdict varies, or names itself.
    runs : bool
        Whether flows start in it, so that alpha counts.

    Examples
    --------
    >>> setting("Pmax")
    'packets of 1000 B, R_AI 40 Mb/s, alpha falling from 1 before the first CNP'
    """
    parts = {
        "packets": f"packets of {PACKET:g} B",
        "Pmax": f"Pmax {PMAX:.0%}",
        "R_AI": f"R_AI {R_AI * PACKET * 8 / 1e6:g} Mb/s",
    }
    named = [words for name, words in parts.items() if name not in without]
    return ", ".join([*named, f"alpha falling from {ALPHA:g} before the first CNP"] if runs else named)


def _odds(keep: Any, packets: Any) -> Any:
    """Odds that n packets in a row are unmarked: 1/(keep^-n - 1), which does not overflow in this form."""
    none = keep**packets
    return none / (1 - none)


def jacobians(
    classes: Sequence[tuple[float, float]],
    p: float,
    *,
    pmax: float = PMAX,
    g: float = 1 / 256,
    counter: float = B,
    timer: float = T,
) -> tuple[np.ndarray, np.ndarray]:
    """Differentiate (6)-(9) for classes of (flows, rate) that are all marked with p.

    Returns
    -------
    now, then : ndarray, (1 + 3 n, 1 + 3 n)
        By q, and by alpha, R_T and R_C of each class.
    """
    slope = pmax / (KMAX - KMIN) * PACKET  # of (5), per packet
    state = [(KMIN + p / pmax * (KMAX - KMIN)) / PACKET]
    for _, R in classes:
        keep = 1 - p
        b, d = (p * _odds(keep, n) for n in (counter, timer * R))
        rise = keep ** (F * counter) * b + keep ** (F * timer * R) * d
        state += [1 - keep ** (TAU_PRIME * R), R + TAU * R_AI * R * rise / (1 - keep ** (TAU * R)), R]
    rest = np.array(state)

    def change(now: np.ndarray, then: np.ndarray) -> Any:
        keep = 1 - (p + slope * (then[0] - rest[0]))
        moves = [sum(flows * now[3 + 3 * k] for k, (flows, _) in enumerate(classes)) - C]  # (6)
        for k in range(len(classes)):
            alpha, R_T, R_C = now[1 + 3 * k : 4 + 3 * k]
            rate = then[3 + 3 * k]
            cut = 1 - keep ** (TAU * rate)
            by_bytes, by_timer = ((1 - keep) * _odds(keep, n) for n in (counter, timer * rate))
            aims = keep ** (F * counter) * by_bytes + keep ** (F * timer * rate) * by_timer
            moves += [
                g * (1 - keep ** (TAU_PRIME * rate) - alpha) / TAU_PRIME,  # (7)
                -(R_T - R_C) / TAU * cut + R_AI * rate * aims,  # (8)
                -R_C * alpha / (2 * TAU) * cut + (R_T - R_C) / 2 * rate * (by_bytes + by_timer),  # (9)
            ]
        return np.array(moves)

    def derivative(of_then: bool) -> np.ndarray:
        columns = []
        for k in range(len(rest)):
            nudged = rest.astype(complex)
            nudged[k] += 1e-20j
            columns.append(change(*((rest, nudged) if of_then else (nudged, rest))).imag / 1e-20)
        return np.array(columns).T

    return derivative(False), derivative(True)


def rightmost(now: np.ndarray, then: np.ndarray, delay: float = DELAY) -> complex:
    """Rightmost root of x'(t) = now x(t) + then x(t - delay), the state of a delay being a polynomial [1/s].

    By collocation at Chebyshev's points: roots are accurate where ``delay`` times their modulus is well below `NODES`.
    """
    n = len(now)
    place = np.cos(np.pi * np.arange(NODES + 1) / NODES)
    weight = np.r_[2, np.ones(NODES - 1), 2] * (-1.0) ** np.arange(NODES + 1)
    apart = place[:, None] - place + np.eye(NODES + 1)
    slopes = np.outer(weight, 1 / weight) / apart
    slopes -= np.diag(slopes.sum(axis=1))
    whole = np.kron(slopes * 2 / delay, np.eye(n))
    whole[:n] = 0
    whole[:n, :n], whole[:n, -n:] = now, then
    found = np.linalg.eigvals(whole)
    root = found[np.argmax(found.real)]
    return complex(root.real, abs(root.imag))  # of a pair the one above the axis
