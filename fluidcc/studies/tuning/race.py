"""Racing: every setting meets the present one on the same flows, on a few seeds; those that remain meet it on more.

The first settings are spread evenly, and the others lie near the best of these (M. Lopez-Ibanez et al., "The irace
package: iterated racing for automatic algorithm configuration", Operations Research Perspectives 3, 2016). All numbers
are ratios to the present setting's, seed by seed: both have the same flows and the same paths, so that what a seed adds
to both is in neither.
"""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from scipy.stats import norm, qmc

from fluidcc.errors import InputError
from fluidcc.studies.tuning.device_grids import GRIDS
from fluidcc.studies.tuning.goal import front_of
from fluidcc.studies.tuning.space import Point, Space
from fluidcc.workloads.fabrics.study import ratio

MEASURES = {  # of a run, and whether more is better
    "slowdown.small.p99": False,
    "slowdown.large.p99": False,
    "collective_time": False,
    "goodput": True,
    "slowdown.p50": False,
    "slowdown.p99": False,
    "queue_bytes.p99": False,
    "pfc_pauses": False,
    "unfinished": False,
}
OBJECTIVES = ("slowdown.small.p99", "slowdown.large.p99", "collective_time")  # of those that there are
WITHIN = 0.05  # of the best: what is nearer is as good
RUNGS = (3, 3, 6)  # seeds that all settings get, then a third of them more, then the finalists
CHOOSING = 1000  # these are numbered from here on, so that 1, 2, ... are left for who looks again
NO_PAUSES = 10.0  # PAUSE frames, below which there are none to speak of
_EXACT, _LOST = 1e-3, 10.0  # least error of a mean; what an unfinished flow a run takes from the logarithm of a chance
_FIRST = 0.4  # share of the settings that are spread evenly; the rest are in three generations:
_NEAR = 0.15, 0.1, 0.07  # how far from the leaders, as shares of a range
_THIRD, _FINALISTS = 3, 4
_LEADERS = 4  # settings about which others are drawn
_DRAWS = 200  # tries of a new setting

# ``measure(points, seeds)``: of each point (cases, measures, seeds, 2), its own numbers and the present setting's.
Measure = Callable[[Mapping[str, Point], Sequence[int]], Mapping[str, np.ndarray]]


@dataclasses.dataclass
class Racer:
    """A setting, and what it had.

    Parameters
    ----------
    name : str
    point : dict of float
        Values by name, in SI.
    found : ndarray, shape (cases, measures, seeds, 2)
        Its own numbers and the present setting's, in the order of `MEASURES`; NaN of what there is none.
    """

    name: str
    point: Point
    found: np.ndarray

    @property
    def seeds(self) -> int:
        """Number of seeds that it ran with."""
        return self.found.shape[2]

    @property
    def _comparable(self) -> np.ndarray:
        """The numbers, with PAUSEs of `NO_PAUSES` at least."""
        pauses = np.array([name == "pfc_pauses" for name in MEASURES])
        return np.where(pauses[:, None, None], np.maximum(self.found, NO_PAUSES), self.found)

    @property
    def logs(self) -> np.ndarray:
        """Logarithms of its ratios, more is worse, (cases, measures, seeds)."""
        own, present = np.moveaxis(self._comparable, -1, 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.log(own / present)
        sign = np.where(list(MEASURES.values()), -1.0, 1.0)[:, None]
        return np.where(np.isfinite(found), sign * found, np.nan)

    @property
    def lacking(self) -> float:
        """Unfinished flows a run beyond the present setting's, in the worst case."""
        counts = self.found[:, list(MEASURES).index("unfinished")]
        return float((counts[..., 0] - counts[..., 1]).mean(axis=1).max())

    def ratios(self, case: int) -> dict[str, dict[str, float]]:
        """Geometric means of ratios in a case, with 95 % intervals; of unfinished flows there is none."""
        names = [name for name in MEASURES if name != "unfinished"]
        return {name: ratio(self._comparable[case, k]) for k, name in enumerate(names)}


@dataclasses.dataclass(frozen=True)
class Rule:
    """Order of settings: the gain over the present one, and the chance to lose nothing.

    Parameters
    ----------
    objectives : tuple of str
        Of `MEASURES`: their mean ratio is what the best has least.
    worst : bool
        Whether of several cases the worst counts; else their mean.

    The objectives, goodput and the number of flows that finish may be no worse than the present setting's.
    """

    objectives: tuple[str, ...]
    worst: bool = True

    @property
    def places(self) -> list[int]:
        """Places of the objectives among `MEASURES`."""
        return [list(MEASURES).index(name) for name in self.objectives]

    def costs(self, racer: Racer) -> np.ndarray:
        """Cost of each measure over the cases, the logarithm of a ratio; NaN of what no case has."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of what no seed or no case has
            means = np.nanmean(racer.logs, axis=2)
            return np.nanmax(means, axis=0) if self.worst else np.nanmean(means, axis=0)

    def cost(self, racer: Racer) -> float:
        """Mean of the objectives' costs; inf of a setting with which nothing could be measured."""
        costs = self.costs(racer)[self.places]
        return float(np.nanmean(costs)) if np.isfinite(costs).any() else math.inf

    def chance(self, racer: Racer, errors: np.ndarray) -> float:
        """Logarithm of the probability that it is worse than the present one in nothing, by more than `WITHIN`.

        A mean of so many seeds is normal, about the truth, by the spread of a seed over the root of their number. A
        flow that does not finish, and does with the present setting, is one in `_LOST`.
        """
        kept = list(dict.fromkeys((*self.places, list(MEASURES).index("goodput"))))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            means = np.nanmean(racer.logs[:, kept], axis=2)
        spread = np.maximum(errors[kept] / math.sqrt(racer.seeds), _EXACT)
        chances = norm.logcdf((math.log1p(WITHIN) - means) / spread)
        return float(np.nansum(chances)) - _LOST * max(racer.lacking, 0.0)

    def ranked(self, racers: Sequence[Racer]) -> list[Racer]:
        """Order settings by what they gain, times the chance that they lose nothing, the best first.

        As constrained expected improvement does (J. R. Gardner et al., "Bayesian optimization with inequality
        constraints", ICML 2014): what is just allowed is not the best.
        """
        errors = spread_of(racers)

        def key(racer: Racer) -> tuple[bool, float]:
            gain, chance = -self.cost(racer), self.chance(racer, errors)
            return (False, -math.log(gain) - chance) if gain > 0 else (True, -gain - chance)

        return sorted(racers, key=key)

    def kept(self, racers: Sequence[Racer]) -> list[Racer]:
        """Settings that are better than the present one and, more likely than not, worse in nothing; best first."""
        errors = spread_of(racers)
        return [e for e in self.ranked(racers) if self.cost(e) < 0 and self.chance(e, errors) >= math.log(0.5)]

    def plateau(self, racers: Sequence[Racer]) -> list[Racer]:
        """Settings that cost no more than `WITHIN` above the best, of those that are `kept`."""
        kept = self.kept(racers)
        return [each for each in kept if self.cost(each) <= self.cost(kept[0]) + math.log1p(WITHIN)]

    def front(self, racers: Sequence[Racer]) -> list[Racer]:
        """Settings of which none is better than another in every objective."""
        costs = np.array([self.costs(each)[self.places] for each in racers])
        known = np.isfinite(costs).any(axis=0)
        whole = [k for k in range(len(racers)) if np.isfinite(costs[k, known]).all()]
        return [racers[whole[k]] for k in front_of(costs[whole][:, known])] if whole else []


def spread_of(racers: Sequence[Racer]) -> np.ndarray:
    """Standard deviation of a seed's logarithm, of all settings and cases together, (measures,); of few seeds each."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        variances = [np.nanvar(each.logs, axis=2, ddof=1) for each in racers if each.seeds > 1]
        found = np.sqrt(np.nanmean(np.concatenate(variances), axis=0)) if variances else np.zeros(len(MEASURES))
    return np.nan_to_num(found)


def race(
    space: Space,
    rule: Rule,
    measure: Measure,
    *,
    known: Mapping[str, Point],
    settings: int,
    seed: int,
) -> list[Racer]:
    """Run settings against the present one, and return all of them, those with the most seeds first.

    Parameters
    ----------
    space : Space
    rule : Rule
    measure : callable
    known : mapping
        Settings that run too, by name.
    settings : int
        How many in all.
    seed : int
        Of the draws.

    Raises
    ------
    InputError
        If none of the objectives is measured.
    """
    random = np.random.default_rng(seed)
    points = dict(known)
    first = range(CHOOSING + 1, CHOOSING + 1 + RUNGS[0])
    spread = max(round(_FIRST * settings) - len(known), 1)
    for row in qmc.LatinHypercube(len(space.variables), rng=random).random(spread):
        _add(points, space.point(row))
    racers = [Racer(name, points[name], found) for name, found in measure(points, first).items()]
    if not any(math.isfinite(rule.cost(each)) for each in racers):
        raise InputError(
            f"objective: {', '.join(rule.objectives)}: no run has it; give a longer until, or other objectives"
        )
    for k, near in enumerate(_NEAR):
        leaders = [space.shares(each.point) for each in rule.ranked(racers)[:_LEADERS]]
        most = settings - round((settings - len(points)) * (1 - 1 / (len(_NEAR) - k)))
        for i in range(_DRAWS):
            if len(points) >= most:
                break
            place = leaders[i % len(leaders)] + near * random.standard_normal(len(space.variables))
            _add(points, space.point(np.clip(place, 0.0, 1.0)))
        drawn = {name: points[name] for name in list(points)[len(racers) :]}
        if drawn:
            racers += [Racer(name, points[name], found) for name, found in measure(drawn, first).items()]
    last = CHOOSING + RUNGS[0]
    left = rule.ranked(racers)
    for more, count in zip(RUNGS[1:], (max(len(racers) // _THIRD, _FINALISTS), _FINALISTS), strict=True):
        left = _remaining(space, rule, left, count)
        found = measure({each.name: each.point for each in left}, range(last + 1, last + more + 1))
        for each in left:
            each.found = np.concatenate([each.found, found[each.name]], axis=2)
        last += more
        left = rule.ranked(left)
    rest = [each for each in rule.ranked(racers) if each not in left]
    return [*left, *sorted(rest, key=lambda each: -each.seeds)]


def _remaining(space: Space, rule: Rule, ranked: Sequence[Racer], count: int) -> list[Racer]:
    """The best few, and in place of the last of these the one in the middle of the plateau."""
    left = list(ranked[:count])
    plateau = rule.plateau(ranked)
    if plateau and (middle := middle_of(space, plateau)) not in left:
        left[-1] = middle
    return left


def middle_of(space: Space, racers: Sequence[Racer]) -> Racer:
    """The setting that is nearest to the middle of some; of several as near, the first."""
    places = np.array([space.shares(each.point) for each in racers])
    return racers[int(np.argmin(np.round(((places - places.mean(axis=0)) ** 2).sum(axis=1), 9)))]


def ends_of(space: Space, point: Point) -> list[str]:
    """Variables at an end of their range that is not one of the device's: a wider range could have better."""
    limits = {name: (GRIDS[name].low, GRIDS[name].high) for name in space.names if name in GRIDS}
    return [name for name in space.ends(point) if point[name] not in limits.get(name, ())]


def _add(points: dict[str, Point], point: Point) -> None:
    if point not in points.values():
        number = len(points)
        while f"s{number}" in points:  # a user's name
            number += 1
        points[f"s{number}"] = point
