"""Goals of tuning: objectives, constraints, the reduction of several cases to one, and the order of points."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from fluidcc.errors import InputError
from fluidcc.results.schema import METRICS
from fluidcc.studies.sweeps.result import Constraint, parse_constraint
from fluidcc.units import TIME

SETTLING = "settling_time"
TUNED: dict[str, tuple[str, str]] = METRICS | {
    SETTLING: (TIME, "time from the last start until the long-lived flows' rates are within a tenth of each other")
}
_MORE = ("utilisation", "jain", "goodput_bytes_per_s", "queue_bytes.min")  # of these more is better
SHARES = ("utilisation", "jain")  # of 1
_STRAIGHT = 1e-9  # share of the ranges below which a front has no knee
_FAR = 1e3  # violation of what has no value: a failed point, flows that never settle

Score = tuple[np.ndarray, np.ndarray]  # costs and violations
Metrics = Mapping[str, np.ndarray]  # of one point, (cases,) each; NaN where undefined


@dataclasses.dataclass(frozen=True)
class Objective:
    """A metric that is to be small, or large."""

    metric: str
    maximise: bool = False

    def __str__(self) -> str:
        """Format the objective in words."""
        return f"{'largest' if self.maximise else 'least'} {self.metric}"


@dataclasses.dataclass(frozen=True)
class Goal:
    """Objectives under constraints, over cases.

    Parameters
    ----------
    objectives : tuple of Objective
        The first is what the best point has best; the others span the front.
    constraints : tuple of Constraint
    worst : bool
        Whether of several cases the worst counts; else their mean.
    """

    objectives: tuple[Objective, ...]
    constraints: tuple[Constraint, ...]
    worst: bool = True

    @property
    def metrics(self) -> set[str]:
        """Names of all metrics of the objectives and constraints."""
        return {each.metric for each in (*self.objectives, *self.constraints)}

    def reduced(self, found: Metrics, metric: str, *, maximise: bool) -> float:
        """A metric over the cases."""
        values = np.asarray(found[metric], float)
        if np.isnan(values).any():
            return float("nan")
        return float(values.mean() if not self.worst else values.min() if maximise else values.max())

    def costs(self, found: Metrics) -> np.ndarray:
        """Compute the cost of each objective, in its unit, less is better; inf where it has no value."""
        costs = []
        for each in self.objectives:
            value = self.reduced(found, each.metric, maximise=each.maximise)
            costs.append(np.inf if np.isnan(value) else -value if each.maximise else value)
        return np.array(costs)

    def violations(self, found: Metrics, errors: Metrics | None = None) -> np.ndarray:
        """Compute the violation of each constraint, as a share of its bound; 0 where it is satisfied.

        With standard errors a constraint needs a margin of one: of many points, lucky ones seem best.
        """
        missed = []
        for each in self.constraints:
            more = each.sign == ">="
            values = dict(found)
            if errors is not None and each.metric in errors:
                spare = np.nan_to_num(np.asarray(errors[each.metric], float))
                values[each.metric] = np.asarray(found[each.metric], float) - (spare if more else -spare)
            value = self.reduced(values, each.metric, maximise=more)
            short = (each.bound - value if more else value - each.bound) / max(abs(each.bound), 1e-12)
            missed.append(_FAR if np.isnan(short) else max(short, 0.0))
        return np.array(missed)

    def spare(self, found: Metrics) -> float:
        """The least that a constraint is kept by, as a share of its bound; inf without constraints."""
        kept = []
        for each in self.constraints:
            more = each.sign == ">="
            value = self.reduced(found, each.metric, maximise=more)
            kept.append((value - each.bound if more else each.bound - value) / max(abs(each.bound), 1e-12))
        return min(kept, default=np.inf)

    def summary(self, found: Metrics) -> dict[str, float]:
        """Reduce every metric over the cases: to the worst in its usual sense, or to the mean."""
        senses = {each.metric: each.maximise for each in self.objectives}
        return {
            name: self.reduced(found, name, maximise=senses.get(name, name in _MORE)) for name in TUNED if name in found
        }


def goal_of(
    objective: str | Sequence[str],
    maximise: bool | None,
    subject_to: str | Iterable[str | Constraint] | None,
    worst: bool,
    target: float,
    defaults: bool | None = None,
) -> Goal:
    """Read what is aimed at.

    Parameters
    ----------
    objective : str or sequence of str
        Metrics; of a single one, utilisation spans the front with it, or the queue.
    maximise : bool or None
        Of the first objective; None: as is usual for the metric.
    subject_to : str or sequence of str, or None
        Besides what a short queue must keep (`fluidcc.studies.SweepResult.best`), or in place of its bound on the same
        metric; an empty list: none at all.
    worst : bool
    target : float
        Share of the link that the scheme aims at.
    defaults : bool
        Whether a short queue must keep the usual bounds beside those that are given; None: only where none are.

    Raises
    ------
    InputError
        If there is no such metric, or a constraint cannot be read.
    """
    from fluidcc.studies.sweeps.result import FAIR, USED

    metrics = [objective] if isinstance(objective, str) else list(objective)
    if not metrics or len(set(metrics)) < len(metrics):
        raise InputError("objective: give one metric, or several that differ")
    for each in metrics:
        if each not in TUNED:
            raise InputError(f"objective: {str(each)[:40]!r} is no metric; write one of {', '.join(TUNED)}")
    if len(metrics) == 1:
        metrics.append("queue_bytes.p99" if metrics[0] == "utilisation" else "utilisation")
    objectives = [Objective(each, each in _MORE) for each in metrics]
    if maximise is not None:
        objectives[0] = Objective(metrics[0], maximise)
    first = objectives[0]
    short = first.metric.startswith("queue_bytes.") and not first.maximise
    given = [] if subject_to is None else [subject_to] if isinstance(subject_to, str) else list(subject_to)
    wanted = defaults is not False and (subject_to is None or (bool(given) and defaults is True))
    usual = [f"utilisation>={USED * target:.6g}", f"jain>={FAIR}"] if short and wanted else []
    bounds = [parse_constraint(e, known=TUNED) if isinstance(e, str) else e for e in (*usual, *given)]
    named = {(each.metric, each.sign) for each in bounds[len(usual) :]}
    bounds = [each for k, each in enumerate(bounds) if k >= len(usual) or (each.metric, each.sign) not in named]
    for each in bounds:
        if each.metric in SHARES and not 0 <= each.bound <= 1:
            raise InputError(
                f"subject_to: {each} cannot be a bound: {each.metric} is from 0 to 1; write for example 0.99"
            )
    return Goal(tuple(objectives), tuple(bounds), worst)


def order_of(goal: Goal, costs: np.ndarray) -> tuple[float, ...]:
    """Costs in the order of the objectives; queues less than a byte apart are the same, and the next one decides."""
    whole = [
        each.metric.startswith("queue_bytes.") and np.isfinite(cost)
        for each, cost in zip(goal.objectives, costs, strict=True)
    ]
    return tuple(float(np.round(cost)) if byte else float(cost) for byte, cost in zip(whole, costs, strict=True))


def better(goal: Goal, one: Score, than: Score) -> bool:
    """Check whether one point is better than another: fewer violations first, then the objectives (Deb's rule)."""
    return rank_of(goal, one) < rank_of(goal, than)


def rank_of(goal: Goal, score: Score) -> tuple[float, ...]:
    """Return the sort key of a score; the best score is the smallest."""
    return float(score[1].sum()), *order_of(goal, score[0])


def front_of(costs: np.ndarray) -> np.ndarray:
    """Indices of the points that no other is better than, by the first cost.

    Parameters
    ----------
    costs : ndarray, shape (points, objectives)
        Less is better.

    Returns
    -------
    ndarray of int
        Of points with the same costs, the first.
    """
    kept = []
    for i in np.lexsort(costs.T[::-1]):
        if not any((costs[k] <= costs[i]).all() for k in kept):
            kept.append(int(i))
    return np.array(kept, int)


def knee_of(costs: np.ndarray) -> int | None:
    """The point of a front that is furthest below the line between its ends, costs in shares of their ranges.

    Parameters
    ----------
    costs : ndarray, shape (points, 2)
        Of a front, by the first.

    Returns
    -------
    int or None
        None where it has no such point: fewer than three, or all on the line or above.
    """
    if len(costs) < 3 or costs.shape[1] != 2:
        return None
    span = np.ptp(costs, axis=0)
    if (span <= 0).any():
        return None
    scaled = (costs - costs.min(axis=0)) / span
    below = 1.0 - scaled.sum(axis=1)  # the ends are (0, 1) and (1, 0)
    at = int(np.argmax(below))
    return at if below[at] > _STRAIGHT else None
