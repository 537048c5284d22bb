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
from fluidcc.tuning.smoothing import apart, back, smoothed
from fluidcc.tuning.space import Point, Space

Rank = tuple[float, ...]

_LOOKED_AT = 300  # best points by the search, of which the finalists are taken
_FINALISTS, _LAST = 24, 8  # that are run again with other seeds, and of these with all of them
_SHOWN = 6  # that packets see at most
_NEAR = 0.25  # of a range: distance over which a difference is believed
_DOUBT = 0.05  # weight of there being none


class Proof:
    """The best point by the search, and by packets.

    Parameters
    ----------
    goal : Goal
    space : Space
    checkers : sequence of Evaluator
        With seeds that the search has not used, the later the more.
    rows : sequence of (Point, Measured)
        What was searched.
    searched : int
        With how many seeds.
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
        checkers: Sequence[Evaluator],
        rows: Sequence[tuple[Point, Measured]],
        searched: int,
        seeds: list[int],
        threads: int | None,
    ) -> None:
        self.goal, self.space, self.checkers, self.rows, self.seeds = goal, space, checkers, list(rows), seeds
        self.searched, self.threads = max(1, searched), threads
        self.packets: dict[str, Packets] = {}
        self.confirmed: bool | None = None
        self.notes: list[str] = []
        self._places = np.stack([space.shares(point) for point, _ in self.rows])
        self._differences: list[tuple[np.ndarray, dict[str, np.ndarray]]] = []

    def by_search(self) -> Candidate:
        """The best by the search that keeps its bounds with other seeds too; that which misses least, if none does.

        Successive halving: the finalists are the best as their neighbours have it too, each round runs fewer of them
        with more seeds, and the last has the word.
        """
        points, found = [point for point, _ in self.rows], [found for _, found in self.rows]
        seeds, chosen = np.ones(len(points)), [0]
        for checker, count in zip(self.checkers, (_FINALISTS, _LAST), strict=False):
            order = sorted(range(len(points)), key=lambda k: _rank(self.goal, found[k]))[:_LOOKED_AT]
            smooth = smoothed(self.goal, self._places, found, seeds, order)
            ranks = {k: _rank(self.goal, one) for k, one in zip(order, smooth, strict=True)}
            chosen = sorted(order, key=ranks.__getitem__)[:count]
            ran = checker([points[k] for k in chosen], label=f"checking finalists, {len(checker.seeds) or 1} seeds")
            for k, one in zip(chosen, ran, strict=True):
                found[k], seeds[k] = one, max(1, len(checker.seeds) / self.searched)
        best = min(chosen, key=lambda k: _rank(self.goal, found[k]))
        return candidate_of(self.goal, points[best], found[best])

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
            choice = candidate_of(self.goal, following, self.checkers[0]([following])[0])

    def _run(self, point: Point, label: str) -> Packets:
        draws, scenarios = self.checkers[0].draws, self.checkers[0].scenarios(point)
        return packets(scenarios, draws.until, draws.window, self.seeds, label=label, threads=self.threads)

    def _learn(self, point: Point, found: Packets) -> None:
        """Keep by how much packets differ from the search's engine at a point."""
        ours = self.checkers[0]([point])[0].metrics
        gaps = {
            name: apart(name, found.metrics[name]) - apart(name, ours[name])
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
                    metrics[name] = back(name, apart(name, metrics[name]) + shift)
            ranked.append((_rank(self.goal, Measured(metrics, found.errors), spare=1.0), point))
        best = min(ranked, key=lambda each: each[0], default=None)
        return None if best is None or (than is not None and best[0] >= than) else best[1]


def candidate_of(goal: Goal, point: Point, found: Measured) -> Candidate:
    """A point with what counts of it over the cases; errors are those of the case with the largest."""
    errors = {name: float(np.max(values)) for name, values in found.errors.items()}
    return Candidate(point, goal.summary(found.metrics), errors, not goal.violations(found.metrics).any())


def _rank(goal: Goal, found: Measured, *, spare: float = 0.0) -> Rank:
    """Violations, then the objectives: less is better."""
    missed = goal.violations(found.metrics, {name: spare * values for name, values in found.errors.items()})
    return float(missed.sum()), *order_of(goal, goal.costs(found.metrics))
