"""Surfaces of metrics over the space: through measured points, and what packets would measure where none ran.

**Smoothing**: of many points with few seeds, lucky ones seem best. At each point a plane is fitted to those around it
(local linear regression). The point's own value has the more weight, the further its neighbours are from the plane than
chance explains (Stein's shrinkage): where the engine draws nothing, or the surface is rough, it does not change.

**Prediction**, to choose which settings packets run next: of each packet case the surface is the search's of the same
case, which has many points, plus what packets differed from it where they ran: a space mapping (J. Bandler et al., IEEE
Trans. Microwave Theory Tech. 42(12), 1994) whose surfaces are radial basis functions, by which candidates are ranked
(R. Regis, C. Shoemaker, INFORMS J. Computing 19(4), 2007).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from scipy.interpolate import RBFInterpolator

from fluidcc.studies.tuning.evaluate import Measured
from fluidcc.studies.tuning.goal import SHARES, Goal

_WIDTH = 0.1  # of a neighbourhood, as a share of a range
_NEIGHBOURS = 40  # that it reaches at least
_PRIOR = 1e-3  # of slopes, as a share of the weight: where neighbours lie in a plane there is no slope across it
_AT_ONCE = 200_000  # pairs of points
_PACKET = 1e3  # bytes: queues that differ by less are as good as the same
_SMOOTHING = 1e-2  # of runs with one seed, as a part of the basis at a distance of 1
_LEAST = 1e-3  # of a share: who lacks less is as good as one
Surface = Callable[[np.ndarray], np.ndarray]


def apart(metric: str, values: np.ndarray) -> np.ndarray:
    """Transform a metric so that its differences are comparable: queues spread over decades, so their logarithm."""
    return np.log(values + _PACKET) if metric.startswith("queue_bytes.") else values


def back(metric: str, values: np.ndarray) -> np.ndarray:
    """The metric of which `apart` is this."""
    return np.exp(values) - _PACKET if metric.startswith("queue_bytes.") else values


def smoothed(
    goal: Goal, places: np.ndarray, found: Sequence[Measured], seeds: np.ndarray, at: Sequence[int]
) -> list[Measured]:
    """Some points' metrics, as they and their neighbours have them.

    Parameters
    ----------
    goal : Goal
        Its metrics are smoothed, the others are left.
    places : ndarray, shape (points, variables)
        In the cube.
    found : sequence of Measured, length points
    seeds : ndarray, shape (points,)
        With how many seeds each was measured: its weight.
    at : sequence of int
        Points that are wanted.

    Returns
    -------
    list of Measured, length ``len(at)``
    """
    wanted = np.asarray(at, int)
    if len(wanted) > 1 and len(wanted) * len(places) > _AT_ONCE:
        halves = np.array_split(wanted, 2)
        return [row for half in halves for row in smoothed(goal, places, found, seeds, half.tolist())]
    offset = places[None] - places[wanted][:, None]  # (wanted, points, variables)
    square = (offset**2).sum(-1)
    reach = min(_NEIGHBOURS, len(places) - 1)
    width = np.maximum(_WIDTH, np.sqrt(np.partition(square, reach, axis=1)[:, reach]) / 2)
    near = np.exp(-square / (2 * width[:, None] ** 2)) * seeds
    design = np.concatenate([np.ones((*square.shape, 1)), offset], axis=-1)
    metrics: list[dict[str, np.ndarray]] = [dict(found[i].metrics) for i in wanted]
    for name in goal.metrics:
        values = apart(name, np.stack([each.metrics[name] for each in found]))  # (points, cases)
        errors = np.stack([each.errors.get(name, np.zeros(values.shape[1])) for each in found])
        if name.startswith("queue_bytes."):
            errors = errors / np.exp(values)
        for case in range(values.shape[1]):
            known = np.isfinite(values[:, case])
            weight = near * known
            value, noise = np.where(known, values[:, case], 0.0), np.nan_to_num(errors[:, case]) ** 2
            weighted = design * weight[..., None]
            total = weight.sum(1)
            normal = weighted.transpose(0, 2, 1) @ design
            prior = _PRIOR * (total * width**2)[:, None] * np.r_[0.0, np.ones(places.shape[1])]
            normal += (prior + 1e-12)[..., None] * np.eye(normal.shape[1])
            plane = np.linalg.solve(normal, (weighted * value[None, :, None]).sum(1)[..., None])[..., 0]
            strays = (weight * (value - (design @ plane[..., None])[..., 0]) ** 2).sum(1) / np.maximum(total, 1e-300)
            chance = (weight * noise).sum(1) / np.maximum(total, 1e-300)
            rough = np.maximum(strays - chance, 0.0)
            # A point measured with more seeds than those around it is believed the more.
            usual = (weight * seeds).sum(1) / np.maximum(total, 1e-300)
            own = chance * np.minimum(1.0, usual / seeds[wanted])
            believed = np.where(own + rough > 0, rough / np.maximum(own + rough, 1e-300), 1.0)
            smooth = believed * value[wanted] + (1 - believed) * plane[:, 0]
            for row, one, ok in zip(metrics, back(name, smooth), known[wanted], strict=True):
                if ok:
                    row[name] = np.array(row[name], float)
                    row[name][case] = one
    return [Measured(row, found[i].errors, found[i].reason) for row, i in zip(metrics, wanted, strict=True)]


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
            columns.append(_inverse(name, trend(at) + _gaps(places, values - trend(places))(at)))
        found[name] = np.stack(columns, axis=1)
    return [Measured({name: values[k] for name, values in found.items()}, {}) for k in range(len(at))]


def _known(name: str, places: np.ndarray, found: Sequence[Measured], case: int) -> tuple[np.ndarray, np.ndarray]:
    """Places with a value in a case, and these values, as `apart`."""
    values = np.array([each.metrics[name][case] if len(each.metrics[name]) > case else np.nan for each in found])
    there = np.isfinite(values)
    return places[there], _transformed(name, values[there])


def _transformed(name: str, values: np.ndarray) -> np.ndarray:
    """Transform as `apart`; take of a share the logarithm of what it lacks, which has no cliff."""
    return np.log(1 + _LEAST - np.minimum(values, 1.0)) if name in SHARES else apart(name, values)


def _inverse(name: str, values: np.ndarray) -> np.ndarray:
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
