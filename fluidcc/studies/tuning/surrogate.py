"""Predict what packets would measure at settings that were not run, to choose which to run next.

Of each packet case the surface is the search's of the same case, which has many points, plus what packets differed from
it where they ran: a space mapping (J. Bandler et al., IEEE Trans. Microwave Theory Tech. 42(12), 1994) whose surfaces
are radial basis functions, by which candidates are ranked (R. Regis, C. Shoemaker, INFORMS J. Computing 19(4), 2007).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from scipy.interpolate import RBFInterpolator

from fluidcc.studies.tuning.evaluate import Measured
from fluidcc.studies.tuning.goal import SHARES
from fluidcc.studies.tuning.smoothing import apart, back

_SMOOTHING = 1e-2  # of runs with one seed, as a part of the basis at a distance of 1
_LEAST = 1e-3  # of a share: who lacks less is as good as one
Surface = Callable[[np.ndarray], np.ndarray]


def predicted(
    metrics: Iterable[str],
    searched: tuple[np.ndarray, Sequence[Measured]],
    ran: tuple[np.ndarray, Sequence[Measured]],
    like: Sequence[int],
    at: np.ndarray,
) -> list[Measured]:
    """Predict metrics in every packet case.

    Parameters
    ----------
    metrics : iterable of str
    searched : ndarray, shape (points, variables), and sequence of Measured
        Places in the cube, and what the search's engine measured there, in its cases.
    ran : ndarray, shape (points, variables), and sequence of Measured
        Likewise of packets; a point that was given up has values in its first cases only.
    like : sequence of int, length (packet cases)
        The search's case that each packet case is like.
    at : ndarray, shape (candidates, variables)

    Returns
    -------
    list of Measured, length (candidates)
    """
    found: dict[str, np.ndarray] = {}
    for name in metrics:
        surfaces = [_trend(*_known(name, *searched, case)) for case in range(1 + max(like))]
        columns = []
        for case, alike in enumerate(like):
            places, values = _known(name, *ran, case)
            trend = surfaces[alike]
            columns.append(_back(name, trend(at) + _gaps(places, values - trend(places))(at)))
        found[name] = np.stack(columns, axis=1)
    return [Measured({name: values[k] for name, values in found.items()}, {}) for k in range(len(at))]


def _known(name: str, places: np.ndarray, found: Sequence[Measured], case: int) -> tuple[np.ndarray, np.ndarray]:
    """Places with a value in a case, and these values, as `apart`."""
    values = np.array([each.metrics[name][case] if len(each.metrics[name]) > case else np.nan for each in found])
    there = np.isfinite(values)
    return places[there], _apart(name, values[there])


def _apart(name: str, values: np.ndarray) -> np.ndarray:
    """Transform as `apart`; take of a share the logarithm of what it lacks, which has no cliff."""
    return np.log(1 + _LEAST - np.minimum(values, 1.0)) if name in SHARES else apart(name, values)


def _back(name: str, values: np.ndarray) -> np.ndarray:
    return 1 + _LEAST - np.exp(values) if name in SHARES else back(name, values)


def _trend(places: np.ndarray, values: np.ndarray) -> Surface:
    """Return the surface through what the search measured; of few points, or of points in a plane, without slopes."""
    if not len(values):
        return lambda at: np.zeros(len(at))
    spread = np.column_stack([np.ones(len(places)), places])
    cubic = np.linalg.matrix_rank(spread) == spread.shape[1] < len(places)
    return RBFInterpolator(places, values, kernel="cubic" if cubic else "linear", smoothing=_SMOOTHING)


def _gaps(places: np.ndarray, values: np.ndarray) -> Surface:
    """Return the surface of what packets differ by; far from all of them, their mean."""
    if not len(values):
        return lambda at: np.zeros(len(at))
    return RBFInterpolator(places, values, kernel="linear", smoothing=_SMOOTHING)
