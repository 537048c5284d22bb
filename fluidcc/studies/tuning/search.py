"""Looking for the best point: a Sobol start, NSGA-II on whole populations, a pattern search at the end.

NSGA-II keeps a front of points of which none is better than another in every objective (K. Deb et al., "A fast and
elitist multiobjective genetic algorithm: NSGA-II", IEEE Trans. Evol. Comput. 6(2), 2002), points that violate less
going first. Its best is then moved along the axes until no neighbour is better, and what is left of the evaluations
goes to clouds around the best few, as their neighbours have it too (`surfaces`), and along their
differences (R. Storn, K. Price, "Differential evolution", J. Global Optimization 11, 1997).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.stats import qmc

from fluidcc.studies.tuning.evaluate import Evaluator, Measured
from fluidcc.studies.tuning.goal import Goal, Score, better, rank_of
from fluidcc.studies.tuning.space import Point, Space
from fluidcc.studies.tuning.surfaces import smoothed

_POPULATION = 32
# Shares of the evaluations that are spread evenly first, and that are left for what follows NSGA-II: where the search
# has the last word, and where packets choose, from predictions that need the whole range.
_SHARES = {False: (0.25, 0.5), True: (0.6, 0.2)}
_STEP, _LEAST_STEP = 0.12, 0.004  # of the pattern search, as shares of a range
_CLOUD, _CENTRES = 0.1, 5  # width of the clouds at first, and around how many points
_LOOKED_AT = 200  # of the points known, for the best few
_ELITE = 20  # of which differences are taken
_NO_VALUE = 1e30  # what an objective without a value costs

Report = Callable[[int], None]


def search(
    space: Space,
    goal: Goal,
    evaluator: Evaluator,
    *,
    evaluations: int,
    seed: int,
    known: Sequence[Point],
    mapped: bool = False,
    report: Report | None = None,
) -> None:
    """Run points until ``evaluations`` are known; `Evaluator.known` has them all.

    Parameters
    ----------
    space : Space
    goal : Goal
    evaluator : Evaluator
    evaluations : int
    seed : int
        Of the search.
    known : sequence of Point
        Starts in addition to the even spread: the present setting and the yardsticks, moved into the range.
    mapped : bool
        Whether packets will choose: more points are spread evenly then.
    report : callable
        Hears how many points are done.
    """
    spread_first, left = _SHARES[mapped]
    first = [space.shares(point) for point in known]
    count = max(_POPULATION, round(spread_first * evaluations)) if evaluations >= 2 * _POPULATION else evaluations
    spread = qmc.Sobol(len(space.variables), rng=seed).random_base2(max(0, int(np.ceil(np.log2(count)))))
    start = space.snapped(np.array([*first, *spread[:count]]))[:evaluations]
    evaluator([space.point(row) for row in start], report)
    _evolve(space, goal, evaluator, start, round((1 - left) * evaluations), seed, report)
    _polish(space, goal, evaluator, evaluations, report, seed)


def _evolve(
    space: Space, goal: Goal, evaluator: Evaluator, start: np.ndarray, until: int, seed: int, report: Report | None
) -> None:
    """NSGA-II from the best of the start."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of packages that it asks for and does not need here
        from pymoo.algorithms.moo.nsga2 import NSGA2, RankAndCrowdingSurvival
        from pymoo.core.evaluator import Evaluator as Recorder
        from pymoo.core.population import Population
        from pymoo.core.problem import Problem
        from pymoo.core.repair import Repair
        from pymoo.problems.static import StaticProblem

    class Settable(Repair):
        def _do(self, problem: Any, X: Any, **_: Any) -> Any:
            return space.snapped(X)

    bounds = max(1, len(goal.constraints))
    problem = Problem(n_var=len(space.variables), n_obj=len(goal.objectives), n_ieq_constr=bounds, xl=0.0, xu=1.0)

    def scored(population: Any) -> Any:
        rows = evaluator([space.point(row) for row in population.get("X")], report)
        costs = np.array([goal.costs(row.metrics) for row in rows])
        missed = np.array([goal.violations(row.metrics, row.errors) for row in rows]).reshape(len(rows), -1)
        if not goal.constraints:
            missed = np.zeros((len(rows), 1))
        missed = np.where(np.isinf(costs).any(axis=1, keepdims=True), missed + 1e3, missed)
        costs = np.where(np.isfinite(costs), costs, _NO_VALUE)
        return Recorder().eval(StaticProblem(problem, F=costs, G=missed), population)

    everything = scored(Population.new("X", start))
    chosen = RankAndCrowdingSurvival().do(
        problem, everything, n_survive=min(_POPULATION, len(everything)), random_state=np.random.default_rng(seed)
    )
    algorithm = NSGA2(pop_size=len(chosen), n_offsprings=_POPULATION // 2, sampling=chosen, repair=Settable())
    algorithm.setup(problem, termination=("n_gen", 10_000), seed=seed, verbose=False)
    stuck = 0
    while evaluator.runs < until and stuck < 5:  # generations that hold nothing new: the grid is exhausted
        before = evaluator.runs
        offspring = algorithm.ask()
        if offspring is None:  # it makes none that is new
            return
        algorithm.tell(infills=scored(offspring))
        stuck = stuck + 1 if evaluator.runs == before else 0


def _polish(space: Space, goal: Goal, evaluator: Evaluator, until: int, report: Report | None, seed: int) -> None:
    """A pattern search from the best point that is known, then clouds around the best few, narrower and narrower."""

    def score_of(found: Measured) -> Score:
        return goal.costs(found.metrics), goal.violations(found.metrics, found.errors)

    def scores_of(places: np.ndarray) -> list[Score]:
        return [score_of(found) for found in evaluator([space.point(row) for row in places], report)]

    def best_known(count: int) -> list[tuple[np.ndarray, Score]]:
        """Return the best points by smoothed metrics: else chance would draw the clouds to lucky points."""
        known = [(space.named(v), found) for v, found in evaluator.known() if not found.reason]
        places, rows = np.stack([space.shares(point) for point, _ in known]), [found for _, found in known]
        first = ranked([score_of(found) for found in rows])[:_LOOKED_AT]
        smooth = smoothed(goal, places, rows, np.ones(len(rows)), first)
        scores = [(goal.costs(found.metrics), goal.violations(found.metrics)) for found in smooth]
        return [(places[first[k]], scores[k]) for k in ranked(scores)[:count]]

    def ranked(scores: Sequence[Score]) -> list[int]:
        return sorted(range(len(scores)), key=lambda k: rank_of(goal, scores[k]))

    if all(found.reason for _, found in evaluator.known()):
        return  # no point makes sense
    [(at, here)] = best_known(1)
    size = _STEP
    while size >= _LEAST_STEP and evaluator.runs < until:
        axes = np.diag(np.maximum(size, space.spacing(at)))
        places = space.snapped(np.clip(np.concatenate([at + axes, at - axes]), 0.0, 1.0))
        moved = at
        for place, score in zip(places, scores_of(places), strict=True):
            if better(goal, score, here):
                moved, here = place, score
        if np.array_equal(moved, at):
            size /= 2
            continue
        further = space.snapped(np.clip(2 * moved - at, 0.0, 1.0))  # once more the same way
        at = moved
        score = scores_of(further)[0]
        if better(goal, score, here):
            at, here = further[0], score
    rng = np.random.default_rng(seed)
    began, stuck = evaluator.runs, 0
    elite, of = np.empty((0, len(space.variables))), -1
    while evaluator.runs < until and stuck < 20:
        before = evaluator.runs
        if of != before:  # ranking them takes longer than a look at points of which none is new
            elite, of = np.stack([place for place, _ in best_known(_ELITE)]), before
        share = (before - began) / max(1, until - began)
        width = _CLOUD * (_LEAST_STEP / _CLOUD) ** share
        count = min(_POPULATION // 2, until - before)
        chosen = elite[rng.integers(min(_CENTRES, len(elite)), size=count)]
        # Half of them along differences of good points (differential evolution), which follow a ridge.
        one, other = elite[rng.integers(len(elite), size=(2, count))]
        chosen = chosen + (rng.random(count) < 0.5)[:, None] * rng.uniform(0.0, 2.0, (count, 1)) * (one - other)
        widths = np.maximum(width, np.stack([space.spacing(row) for row in np.clip(chosen, 0.0, 1.0)]))
        scores_of(space.snapped(np.clip(chosen + widths * rng.standard_normal(chosen.shape), 0.0, 1.0)))
        stuck = stuck + 1 if evaluator.runs == before else 0
