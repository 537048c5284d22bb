"""Choosing among the points that were searched: by other seeds, and then by what packets say of those chosen before.

The search's engine and packets differ, mostly where queues are a few packets long. Where packets contradict a choice,
their difference from the search's engine there is taken for that of its neighbours too, queues by factors and the rest
by differences, and the best by the numbers so corrected is shown to packets next: the correction of multi-fidelity
models (M. C. Kennedy, A. O'Hagan, Biometrika 87, 2000), by kernel regression. It chooses what packets see, and proves
nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fluidcc.sweeps.grid import format_value
from fluidcc.tuning.evaluate import Evaluator, Measured
from fluidcc.tuning.goal import Goal, order_of
from fluidcc.tuning.proof import Packets, contradictions, packets
from fluidcc.tuning.result import Candidate
from fluidcc.tuning.space import Point, Space

Rank = tuple[float, ...]

_FINALISTS, _AT_ONCE = 24, 8  # that are run again with other seeds at most, and at a time
_SPARE = (1.0, 2.0, 3.0)  # standard errors of the search's runs
_SHOWN = 6  # that packets see at most
_NEAR = 0.25  # of a range: distance over which a difference is believed
_DOUBT = 0.05  # weight of there being none
_PACKET = 1e3  # bytes: queues that differ by less are as good as the same


class Proof:
    """The best point by the search, and by packets.

    Parameters
    ----------
    goal : Goal
    space : Space
    checker : Evaluator
        With seeds that the search has not used.
    rows : sequence of (Point, Measured)
        What was searched.
    seeds : list of int
        Of the packet engine.
    threads : int or None

    Attributes
    ----------
    packets : dict of Packets
        Of ``start`` and ``best``.
    confirmed : bool or None
    notes : list of str
        What packets said against those chosen first.
    """

    def __init__(
        self,
        goal: Goal,
        space: Space,
        checker: Evaluator,
        rows: Sequence[tuple[Point, Measured]],
        seeds: list[int],
        threads: int | None,
    ) -> None:
        self.goal, self.space, self.checker, self.rows, self.seeds = goal, space, checker, list(rows), seeds
        self.threads = threads
        self.packets: dict[str, Packets] = {}
        self.confirmed: bool | None = None
        self.notes: list[str] = []
        self._places = np.stack([space.shares(point) for point, _ in self.rows])
        self._differences: list[tuple[np.ndarray, dict[str, np.ndarray]]] = []

    def by_search(self) -> Candidate:
        """The best by the search that keeps its bounds with other seeds too; that which misses least, if none does."""
        checked: dict[tuple[float, ...], tuple[Rank, Candidate]] = {}
        for spare in _SPARE:  # where chance decides, those that kept their bounds with more to spare are more likely to
            order = sorted(self.rows, key=lambda row: _rank(self.goal, row[1], spare=spare))
            for first in range(0, min(len(order), _FINALISTS), _AT_ONCE):
                points = [point for point, _ in order[first : first + _AT_ONCE]]
                for point, found in zip(points, self.checker(points), strict=True):
                    one = _rank(self.goal, found), candidate_of(self.goal, point, found)
                    checked[tuple(point.values())] = one
                if any(each.kept for _, each in checked.values()):
                    return min(checked.values(), key=lambda each: each[0])[1]
        return min(checked.values(), key=lambda each: each[0])[1]

    def by_packets(self, first: Candidate, present: Point | None) -> Candidate:
        """The best that packets say nothing against, of those they see; that which they say least against, if none."""
        if present is not None:
            self.packets["start"] = self._run(present, "packets, present setting")
            self._learn(present, self.packets["start"])
        seen: list[tuple[bool, Rank, Candidate, Packets]] = []
        choice = first
        while True:
            found = self._run(choice.point, f"packets, choice {len(seen) + 1}")
            against = contradictions(self.goal, found, self.packets.get("start"))
            seen.append((bool(against), _rank(self.goal, Measured(found.metrics, found.errors)), choice, found))
            if against:
                told = ", ".join(f"{name} {format_value(name, value)}" for name, value in choice.point.items())
                self.notes.append(f"packets speak against {told}: {'; '.join(against)}")
            self._learn(choice.point, found)
            contradicted, rank, best, self.packets["best"] = min(seen, key=lambda each: each[:2])
            self.confirmed = not contradicted
            # Where none was contradicted the search was right; where it claims no bound kept, none is to be disproved.
            if len(seen) == _SHOWN or not any(each[0] for each in seen) or not first.kept:
                return best
            following = self._next([each.point for _, _, each, _ in seen], rank if self.confirmed else None)
            if following is None:
                return best
            choice = candidate_of(self.goal, following, self.checker([following])[0])

    def _run(self, point: Point, label: str) -> Packets:
        draws, scenarios = self.checker.draws, self.checker.scenarios(point)
        return packets(scenarios, draws.until, draws.window, self.seeds, label=label, threads=self.threads)

    def _learn(self, point: Point, found: Packets) -> None:
        """Keep by how much packets differ from the search's engine at a point."""
        ours = self.checker([point])[0].metrics
        gaps = {
            name: _apart(name, found.metrics[name]) - _apart(name, ours[name])
            for name in self.goal.metrics
            if name in found.metrics
        }
        self._differences.append((self.space.shares(point), gaps))

    def _next(self, seen: Sequence[Point], than: Rank | None) -> Point | None:
        """The best of the points that packets have not seen, by corrected numbers; None unless better than a rank."""
        ranked = []
        for (point, found), place in zip(self.rows, self._places, strict=True):
            if point in seen:
                continue
            weights = np.array([np.exp(-((place - at) ** 2).sum() / (2 * _NEAR**2)) for at, _ in self._differences])
            metrics = dict(found.metrics)
            for name in self.goal.metrics:
                gaps = np.array([gap.get(name, np.zeros(1)) for _, gap in self._differences])
                known = np.isfinite(gaps).all(axis=1)
                if known.any():
                    shift = (weights[known] @ gaps[known]) / (weights[known].sum() + _DOUBT)
                    metrics[name] = _back(name, _apart(name, metrics[name]) + shift)
            ranked.append((_rank(self.goal, Measured(metrics, found.errors), spare=1.0), point))
        best = min(ranked, key=lambda each: each[0], default=None)
        return None if best is None or (than is not None and best[0] >= than) else best[1]


def _apart(metric: str, values: np.ndarray) -> np.ndarray:
    """What differences of a metric are taken of: queues spread over decades, and differ by factors."""
    return np.log(values + _PACKET) if metric.startswith("queue_bytes.") else values


def _back(metric: str, values: np.ndarray) -> np.ndarray:
    """The metric of which `_apart` is this."""
    return np.exp(values) - _PACKET if metric.startswith("queue_bytes.") else values


def candidate_of(goal: Goal, point: Point, found: Measured) -> Candidate:
    """A point with what counts of it over the cases; errors are those of the case with the largest."""
    errors = {name: float(np.max(values)) for name, values in found.errors.items()}
    return Candidate(point, goal.summary(found.metrics), errors, not goal.violations(found.metrics).any())


def _rank(goal: Goal, found: Measured, *, spare: float = 0.0) -> Rank:
    """Violations, then the objectives: less is better."""
    missed = goal.violations(found.metrics, {name: spare * values for name, values in found.errors.items()})
    return float(missed.sum()), *order_of(goal, goal.costs(found.metrics))
