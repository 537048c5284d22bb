"""Sensitivity to each variable: Sobol's indices over the tuned range, and the objective along each axis.

First-order indices give the share of the objective's variance that a variable explains alone, total ones the share in
which it takes part; estimators and intervals are SALib's (A. Saltelli et al., Comput. Phys. Commun. 181, 2010). The
logarithm is used for objectives that spread over a factor of ten.
"""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

import numpy as np

from fluidcc.errors import InputError
from fluidcc.studies.tuning.evaluate import Evaluator
from fluidcc.studies.tuning.goal import Goal
from fluidcc.studies.tuning.space import Point, Space

_ALONG = 7  # values of a variable on its axis
_SPREAD = 10.0  # largest over smallest objective from which on logarithms are taken
_SURE = 0.95


@dataclasses.dataclass(frozen=True)
class Sensitivity:
    """Sensitivity of the first objective, over the range that was tuned.

    Parameters
    ----------
    indices : dict
        For each name ``first`` and ``total``, and ``first_conf`` and ``total_conf``, half widths of their 95 %
        intervals.
    along : dict
        For each name its ``values`` and the objective at them, the others held at the best point; NaN where there is
        none.
    logarithmic : bool
        Whether the indices are those of the logarithm.
    points : int
        Number of points that the indices are from.
    """

    indices: dict[str, dict[str, float]]
    along: dict[str, dict[str, list[float]]]
    logarithmic: bool
    points: int


def sensitivity(space: Space, goal: Goal, evaluator: Evaluator, best: Point, size: int, seed: int) -> Sensitivity:
    """Indices from ``size`` times (variables + 2) points, ``size`` a power of 2, and the axes through the best point.

    Raises
    ------
    InputError
        If some of the points make no sense.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from SALib.analyze import sobol as analysis
        from SALib.sample import sobol as sampling

    names = space.names
    problem = {"num_vars": len(names), "names": names, "bounds": [[0.0, 1.0]] * len(names)}
    places = sampling.sample(problem, size, calc_second_order=False, seed=seed)

    def objective(points: list[Point]) -> np.ndarray:
        rows = [row.metrics for row in evaluator(points, label="running points for Sobol's indices")]
        first = goal.objectives[0]
        return np.array([goal.reduced(row, first.metric, maximise=first.maximise) for row in rows])

    values = objective([space.point(row) for row in places])
    if np.isnan(values).any():
        bad = int(np.isnan(values).sum())
        raise InputError(f"sensitivity: {bad} of {len(values)} points have no value; narrow the range, or leave it out")
    logarithmic = bool(values.min() > 0 and values.max() > _SPREAD * values.min())
    taken = np.log(values) if logarithmic else values
    indices: dict[str, dict[str, float]]
    if np.ptp(taken) == 0:
        indices = {name: dict.fromkeys(("first", "total", "first_conf", "total_conf"), 0.0) for name in names}
    else:
        found: Any = analysis.analyze(problem, taken, calc_second_order=False, conf_level=_SURE, seed=seed)
        keys = {"first": "S1", "total": "ST", "first_conf": "S1_conf", "total_conf": "ST_conf"}
        indices = {name: {k: float(found[v][i]) for k, v in keys.items()} for i, name in enumerate(names)}
    along = {}
    for each in space.variables:
        tried = each.axis(_ALONG)
        along[each.name] = {"values": tried, "objective": objective([best | {each.name: v} for v in tried]).tolist()}
    return Sensitivity(indices, along, logarithmic, len(values))
