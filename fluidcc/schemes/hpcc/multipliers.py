"""HPCC's windows near their equilibrium: the linear map from one update of W^c to the next, and its multipliers.

Below full load no window is reached: a flow sends at W/T. In units of the equilibrium, with a = eta/U*:

- between updates W = a (W^c - U) by (4), and T dU/dt = W(t - D) - U by line 9, a round trip D late;
- D after an update comes the next, which takes W^c = W (lines 21-27).

So U over a round trip, and W^c, follow from those of the round trip before. Flows that are equal and update together
change as one; differences between them have no effect on U, and shrink by a. ``reaction="per-rtt"`` has W = W^c
between updates.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Mapping

import numpy as np

from fluidcc.contract.protocol import Multipliers
from fluidcc.errors import NoClosedFormError
from fluidcc.schemes.hpcc.parameters import HPCC

_NODES = 24  # of Chebyshev's polynomials for U over a round trip
_POLISHED = 20  # steps of Newton's method at most
_LONGER = 1e-3  # by this share T must exceed the round trip, for a small fall of W to leave the flow paced


def multipliers(parameters: HPCC, observed: Mapping[str, float], round_trip: float) -> Multipliers:
    """Multipliers of the map from one update of W^c to the next.

    Parameters
    ----------
    parameters : HPCC
        Bound to a path: plain numbers.
    observed : mapping
        ``utilisation_estimate`` at the equilibrium.
    round_trip : float
        D [s].

    Raises
    ------
    NoClosedFormError
        Where windows and pacing limit the flows in turn, or the law is another; the message says what to write.
    """
    p = parameters
    for name, known in (
        ("variant", "paper"),
        ("registers", "one"),
        ("multiq", "off"),
        ("u_rate", "tx"),
        ("u_queue", True),
    ):
        if getattr(p, name) != known:
            raise NoClosedFormError(f"the map of windows is known for {name}={known} only, not {getattr(p, name)}")
    if p.by_ack or p.mechanisms:
        what = "reaction=per-ack" if p.by_ack else p.mechanisms[0]
        raise NoClosedFormError(f"the map of windows is not known with {what}")
    utilisation = observed["utilisation_estimate"]
    if utilisation >= 1.0:
        raise NoClosedFormError(
            f"U is {utilisation:.4g} at the equilibrium: with a queue, windows and pacing limit flows in turn, and "
            "there is no linear map; write a smaller w_ai"
        )
    if p.base_rtt < (1.0 + _LONGER) * round_trip:
        raise NoClosedFormError(
            f"T is {p.base_rtt * 1e6:.5g}us, no longer than the round trip: windows limit flows as they fall, pacing "
            f"as they rise, and there is no linear map; write base_rtt={1.02e6 * round_trip:.4g}us"
        )
    kept, late = p.eta / utilisation, round_trip / p.base_rtt
    return Multipliers(round_trip, together(kept, late, by_rtt=p.by_rtt), kept)


def together(kept: float, late: float, *, by_rtt: bool = False) -> complex:
    """Largest multiplier of what equal flows do together, of a pair that with a positive imaginary part.

    Parameters
    ----------
    kept : float
        a = eta/U*.
    late : float
        D/T.
    by_rtt : bool
    """
    if by_rtt:
        return max(np.roots([1.0, -(kept + math.exp(-late)), kept]), key=lambda z: (abs(z), z.imag))
    first = max(np.linalg.eigvals(_map(kept, late)), key=lambda z: (abs(z), z.imag))
    return _polished(kept, late, complex(first))


def characteristic(z: complex, kept: float, late: float) -> complex:
    """Characteristic function of the combined reaction, 0 at the multipliers.

    A multiplier z has U = e^(-(1 + a/z) t) + const over a round trip, which meets itself there z times as large.
    """
    left = cmath.exp(-(1.0 + kept / z) * late)
    return (z - kept) * (z - left) * (z + kept) + kept**2 * z * (1.0 - left)


def _polished(kept: float, late: float, z: complex) -> complex:
    """Newton's method on the characteristic function, without its root at -a, which is none of the map's."""

    def value(at: complex) -> complex:
        return characteristic(at, kept, late) / (at + kept)

    for _ in range(_POLISHED):
        slope = (value(z + 1e-6) - value(z - 1e-6)) / 2e-6
        step = value(z) / slope
        z -= step
        if abs(step) < 1e-13:
            break
    return z


def _map(kept: float, late: float) -> np.ndarray:
    """Matrix of the map on U at Chebyshev's points of a round trip, first to last, and on W^c."""
    n = _NODES
    at = np.cos(np.pi * np.arange(n + 1) / n)[::-1]
    weight = np.where((np.arange(n + 1) == 0) | (np.arange(n + 1) == n), 2.0, 1.0) * (-1.0) ** np.arange(n + 1)
    apart = at[:, None] - at[None, :] + np.eye(n + 1)
    slope = np.outer(weight, 1.0 / weight) / apart
    slope -= np.diag(slope.sum(axis=1))
    # dU'/ds + U' = a (W^c - U), with U' at the start what U is at the end
    left = slope * (2.0 / late) + np.eye(n + 1)
    right = np.hstack([-kept * np.eye(n + 1), np.full((n + 1, 1), kept)])
    left[0], right[0] = np.eye(n + 1)[0], np.eye(n + 2)[n]
    last = np.zeros(n + 2)
    last[n], last[n + 1] = -kept, kept
    return np.vstack([np.linalg.solve(left, right), last])
