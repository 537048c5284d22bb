"""Choosing among the points that were searched: by other seeds, and then by what packets say of those chosen before.

The search's engine sees neither PAUSE nor what bursts do to a long queue, so finalists are run in packets: in few cases
first, and the best of them in all (successive halving: K. Jamieson, A. Talwalkar, AISTATS 2016). As the worst case
counts, each further case can only make a point worse: one that is behind already is not run in the rest.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fluidcc.builders.names import format_value
from fluidcc.results.trace import Trace
from fluidcc.scenario.model import Scenario, resolve
from fluidcc.studies.tuning.cases import BEGIN, SIZE, UNTIL, by_length, in_words
from fluidcc.studies.tuning.evaluate import Evaluator, Measured, without_until
from fluidcc.studies.tuning.goal import SETTLING, SHARES, Goal, order_of
from fluidcc.studies.tuning.packet_check import (
    OneSeed,
    Packets,
    contradictions,
    more_counted,
    packets,
    worse_than_present,
)
from fluidcc.studies.tuning.result import Candidate
from fluidcc.studies.tuning.space import Point, Space
from fluidcc.studies.tuning.surfaces import predicted, smoothed

Rank = tuple[float, ...]

_LOOKED_AT = 300  # best points by the search, of which the finalists are taken
_FINALISTS, _LAST = 24, 8  # that are run again with other seeds, and of these with all of them
_DIFFERING = 12  # that packets see first
_PARENTS, _NEAR_BEST = 4, 8  # points by packets about which others are chosen, and how many
_WITHIN, _DRAWN = (0.2, 0.1, 0.05), 400  # of a range: how far off, round by round; and of how many
_IN_EVERY_CASE = 6  # of them, that are run in every case until one keeps its bounds
_MISSING = 2  # of these, that miss a bound in few cases: another seed may help them, further cases cannot
_SHOWN = 3  # of these, that packets see with all seeds, until they speak against none
_APART, _SAME = 0.2, 0.01  # of a range: how far finalists are from each other at first, and at last
_ALIKE = 0.05  # of the objective
_SPARE = 0.2  # of what a share of 1 may miss


class _Seen(NamedTuple):
    """A point, what packets had in every case, and what that says against it."""

    point: Point
    found: Packets
    against: list[str]


class _Race:
    """Tell points that cannot become one of the best few any more by the cases that they have run.

    Points are compared with those of the batches before theirs, so that it does not matter which thread is the first.

    Parameters
    ----------
    rank : callable
        ``rank(point, found)``, less is better; must not fall as cases are added.
    cases : int
        Of a whole run.
    """

    def __init__(self, rank: Callable[[Point, Measured], Rank], cases: int) -> None:
        self.rank, self.cases = rank, cases
        self._ran: list[Rank] = []
        self._worst: Rank | None = None

    def hopeless(self, point: Point, found: Measured) -> bool:
        """Return whether a point is behind the few best that ran in all cases."""
        at = self.rank(point, found)
        if len(next(iter(found.metrics.values()))) == self.cases:
            self._ran.append(at)
        return self._worst is not None and at > self._worst

    def begin_batch(self) -> None:
        """Compare with all that ran so far."""
        if len(self._ran) >= _PARENTS:
            self._worst = sorted(self._ran)[_PARENTS - 1]


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
    packet_cases : sequence of dict
        In which packets must keep the bounds.
    guards : sequence of mapping
        In which they must keep them, or else do no worse than the present setting.

    Attributes
    ----------
    packets : dict of Packets
        Of ``start`` and ``best``.
    confirmed : bool or None
    notes : list of str
        What packets said against those chosen first.
    refused : list of dict
        Points with which packets miss a bound.
    plateau : list of dict
        Points that are about as good as the best in the first cases of packets, and that nothing speaks against.
    """

    def __init__(
        self,
        goal: Goal,
        space: Space,
        checkers: Sequence[Evaluator],
        rows: Sequence[tuple[Point, Measured]],
        searched: int,
        seeds: list[int],
        packet_cases: Sequence[dict[str, Any]],
        guards: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        self.packet_cases, self.guards = list(packet_cases), [dict(case) for case in guards]
        self._guarded: Packets | None = None  # the present setting in these
        self.refused: list[Point] = []
        self.plateau: list[Point] = []
        self.goal, self.space, self.checkers, self.rows, self.seeds = goal, space, checkers, list(rows), seeds
        self.searched = max(1, searched)
        self.packets: dict[str, Packets] = {}
        self.confirmed: bool | None = None
        self.notes: list[str] = []
        self._done: dict[tuple[float, ...], dict[tuple[Any, int], Trace]] = {}  # of points, by case and seed
        self._places = np.stack([space.shares(point) for point, _ in self.rows])

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

    def by_packets(self, present: Point | None) -> Candidate:
        """The best that packets keep all bounds with, in all cases; that which misses least, if there is none.

        Finalists that differ in the search's cases with one seed, points around the best of these, the best of all in
        every case, and these with all seeds. Guards that take long are left to the end. Of those within a twentieth of
        the best the one that keeps most from its bounds is taken.
        """
        if present is not None:
            self.packets["start"] = self._run(present, "packets, present setting")
            self._guarded = self._in_guards(present)
        coarse = self._coarse()
        telling = [*self._telling(), *by_length(self.guards)[0]]
        cases = sorted(telling, key=lambda case: case.get(UNTIL, 0.0) / case.get(SIZE, 1.0))
        asked = np.array([case not in self.guards for case in cases])
        rank = functools.partial(self._inside, _stricter(coarse), asked=asked)
        few = self._packets_evaluator(cases, self.seeds[:1])
        race, rows = _Race(rank, len(cases)), list[tuple[Point, Measured]]()

        def run(points: list[Point], label: str) -> None:
            race.begin_batch()
            hopeless = race.hopeless if coarse.worst else None  # a mean may fall and rise
            rows.extend(zip(points, few(points, label=f"packets, {label}", hopeless=hopeless), strict=True))
            rows.sort(key=lambda row: rank(*row))
            best = {tuple(point.values()) for point, _ in rows[: 2 * _IN_EVERY_CASE]}  # traces of many flows are large
            few.traces = {at: trace for at, trace in few.traces.items() if at[0] in best}

        finalists = self._differing()
        run(finalists[:_PARENTS], "finalists")
        run(finalists[_PARENTS:], "further finalists")
        for width in _WITHIN:
            run(self._promising(rows, cases, rank, width), "around the best")
        missing = np.array([coarse.worst and coarse.violations(found.metrics).any() for _, found in rows], bool)
        left = [row for row, at in zip(rows, np.cumsum(missing), strict=True) if at <= _MISSING][:_IN_EVERY_CASE]
        self._remember(few, [point for point, _ in left])
        seen, shown = list[_Seen](), list[_Seen]()
        while len(shown) < _SHOWN and all(each.against for each in shown):
            self._see_in_every_case(left, seen, coarse, asked)
            if not seen:
                break
            choice = self._most_spare(seen, coarse)
            seen.remove(choice)
            found = self._run(choice.point, f"packets, choice {len(shown) + 1}")
            shown.append(_Seen(choice.point, found, self._against(choice.point, found, self.goal)))
        missed = [point for (point, _), misses in zip(rows, missing, strict=True) if misses]
        shown_missed = [each.point for each in (*shown, *seen) if each.against and each.point not in missed]
        self.refused += missed + shown_missed
        for point, _, against in shown:
            if against:
                told = ", ".join(f"{name} {format_value(name, value)}" for name, value in point.items())
                self.notes.append(f"packets speak against {told}: {'; '.join(against)}")
        point, self.packets["best"], against = self._most_spare(shown, self.goal)
        self.confirmed = not against
        if self.confirmed and "start" in self.packets:
            self.notes += more_counted(self.goal, self.packets["best"], self.packets["start"])
        whole = [row for row in rows if len(next(iter(row[1].metrics.values()))) == len(cases)]
        costs = {
            tuple(each.values()): _costs(coarse, found, asked)[0]
            for each, found in whole
            if each not in self.refused and not coarse.violations(found.metrics).any()
        }
        self.plateau = self._as_good(point, costs) if self.confirmed else []
        if against:
            self.notes.append(self._least_missed(self.packets["best"]))
        return candidate_of(self.goal, point, _measured(self.packets["best"]))

    def _see_in_every_case(
        self, left: list[tuple[Point, Measured]], seen: list[_Seen], goal: Goal, asked: np.ndarray
    ) -> None:
        """Run packets in every case with one seed: the best first, and not what cannot be about as good as one seen.

        What a point has in few cases, and then in the short ones, is the best that it may have in all.
        """
        label, short = f"packets, {len(self.packet_cases)} cases of one of the best", by_length(self.packet_cases)[0]
        for row in list(left):
            kept = [goal.costs(each.found.metrics)[0] for each in seen if not each.against]
            least = _costs(goal, row[1], asked)[0]
            if kept and (least > _about(min(kept)) or goal.violations(row[1].metrics).any()):
                continue
            if kept and goal.worst:
                part = self._run(row[0], label, once=True, cases=short).metrics
                if goal.costs(part)[0] > _about(min(kept)) or goal.violations(part).any():
                    continue
            left.remove(row)
            found = self._run(row[0], label, once=True)
            seen.append(_Seen(row[0], found, self._against(row[0], found, goal)))

    def _against(self, point: Point, found: Packets, goal: Goal) -> list[str]:
        """List how packets contradict a setting, compared with the present one."""
        said = contradictions(goal, found, self.packets.get("start"))
        guarded = self._in_guards(point)
        return said if guarded is None else said + worse_than_present(goal, guarded, self._guarded, self.guards)

    def _inside(self, goal: Goal, point: Point, found: Measured, asked: np.ndarray | None = None) -> tuple[float, ...]:
        """Rank points by what they miss, then by whether they lie at an end of a range, then by the objectives.

        Bounds count in every case, objectives in those that are ``asked`` for: a guard is to be kept, not made better.
        """
        missed, *costs = _rank(goal, found)
        if asked is not None:
            costs = order_of(goal, _costs(goal, found, asked))
        return missed, len(self.space.ends(point)), *costs

    def _in_guards(self, point: Point) -> Packets | None:
        return self._run(point, "packets, longer bursts", cases=self.guards) if self.guards else None

    def _telling(self) -> list[dict[str, Any]]:
        """Return, for each case of the search, packet cases that are hard: they differ most from the plainest.

        The hardest of all, the hardest that begins as the plainest does, and the plainest that begins as the hardest
        does, as a ramp that is too steep for paced packets suits bursts. And the first with any value that none of
        these has, such as smaller packets, and of those that end soonest the last, which has the most senders.
        """

        def hardest(cases: Sequence[dict[str, Any]]) -> dict[str, Any]:
            return max(cases, key=lambda each: sum(each[n] != cases[0][n] for n in without_until(each)))

        chosen = []
        for case in self.checkers[0].cases:
            mine = [each for each in self.packet_cases if case.items() <= each.items()]
            most = hardest(mine)
            chosen.append(hardest([each for each in mine if each.get(BEGIN) == mine[0].get(BEGIN)]))
            chosen += [most, next(each for each in mine if each.get(BEGIN) == most.get(BEGIN))]
        hard = list(chosen)
        for order in (self.packet_cases, sorted(reversed(self.packet_cases), key=lambda case: case.get(UNTIL, 0.0))):
            new = list[dict[str, Any]]()
            for each in order:
                there = [item for other in (*hard, *new) for item in without_until(other).items()]
                new += [each] if any(item not in there for item in without_until(each).items()) else []
            chosen += new
        return [each for k, each in enumerate(chosen) if each not in chosen[:k]]

    def _coarse(self) -> Goal:
        """Return the goal that ranks single runs: settling times are left out, as they are of means over seeds."""
        objectives = tuple(each for each in self.goal.objectives if each.metric != SETTLING)
        constraints = tuple(each for each in self.goal.constraints if each.metric != SETTLING)
        return dataclasses.replace(self.goal, objectives=objectives, constraints=constraints)

    def _differing(self) -> list[Point]:
        """The best by the search that are apart from each other, so that not all are wrong for one reason.

        The very best comes first and then the best as its neighbours have it: the front shows it, so packets judge it.
        """
        points, found = [point for point, _ in self.rows], [each for _, each in self.rows]
        order = sorted(range(len(points)), key=lambda k: _rank(self.goal, found[k]))[:_LOOKED_AT]
        smooth = smoothed(self.goal, self._places, found, np.ones(len(points)), order)
        very_best = order[0]
        order = [k for _, k in sorted(zip([_rank(self.goal, each) for each in smooth], order, strict=True))]
        apart, chosen = _APART, list(dict.fromkeys((very_best, order[0])))
        while len(chosen) < min(_DIFFERING, len(order)):
            for k in order:
                gaps = np.abs(self._places[chosen] - self._places[k]).max(axis=1)
                if k not in chosen and gaps.min() >= apart and len(chosen) < _DIFFERING:
                    chosen.append(k)
            apart = apart / 2 if apart > _SAME else -1.0
        return [points[k] for k in chosen]

    def _promising(
        self,
        rows: Sequence[tuple[Point, Measured]],
        cases: Sequence[Mapping[str, Any]],
        rank: Callable[[Point, Measured], Rank],
        width: float,
    ) -> list[Point]:
        """Return settable points about the best, apart from each other, that are predicted to be the best."""
        at = np.stack([self.space.shares(point) for point, _ in rows])
        rng = np.random.default_rng([len(rows), round(1 / width)])
        drawn = at[np.arange(_DRAWN) % min(_PARENTS, len(at))] + rng.uniform(-width, width, (_DRAWN, at.shape[1]))
        drawn = np.unique(self.space.snapped(np.clip(drawn, 0.0, 1.0)), axis=0)
        searched = self.checkers[0].cases
        shared = [[sum(case.get(n) == value for n, value in each.items()) for each in searched] for case in cases]
        like = [int(np.argmax(each)) for each in shared]
        metrics, packets = self._coarse().metrics, [found for _, found in rows]
        guessed = predicted(metrics, (self._places, [found for _, found in self.rows]), (at, packets), like, drawn)
        ranks = [rank(self.space.point(row), found) for row, found in zip(drawn, guessed, strict=True)]
        chosen = list[int]()
        for k in sorted(range(len(drawn)), key=ranks.__getitem__):
            others = np.concatenate([at, drawn[chosen]])
            if len(chosen) < _NEAR_BEST and np.abs(others - drawn[k]).max(axis=1).min() >= width / 4:
                chosen.append(k)
        return [self.space.point(drawn[k]) for k in chosen]

    def _most_spare(self, seen: Sequence[_Seen], goal: Goal) -> _Seen:
        """Take the point with most to spare of those about as good that nothing speaks against; none at an end."""
        ranked = sorted(
            seen, key=lambda each: (bool(each.against), self._inside(goal, each.point, _measured(each.found)))
        )
        good = [each for each in ranked if not each.against]
        if not good:
            return ranked[0]
        inside = [each for each in good if not self.space.ends(each.point)] or good
        first = goal.costs(inside[0].found.metrics)[0]
        alike = [each for each in inside if goal.costs(each.found.metrics)[0] <= _about(first)]
        return max(alike, key=lambda each: goal.spare(each.found.metrics))

    def _as_good(self, best: Point, costs: Mapping[tuple[float, ...], float]) -> list[Point]:
        """Points that cost a twentieth above the least at most, and the error that seeds leave the best."""
        errors = self.packets["best"].errors.get(self.goal.objectives[0].metric, np.array(0.0))
        most = _about(min(costs.values(), default=0.0)) + float(np.nan_to_num(errors).max())
        found = [self.space.named(values) for values, cost in costs.items() if cost <= most]
        return found if best in found else [best, *found]

    def _least_missed(self, found: Packets) -> str:
        """The bound that the best misses most, and in which case."""
        missed = [
            (self.goal.violations({name: values[[k]] for name, values in found.metrics.items()}), case)
            for k, case in enumerate(self.packet_cases)
        ]
        worst, case = max(missed, key=lambda each: float(each[0].max(initial=0.0)))
        where = in_words([case]) or ", ".join(f"{name} {value}" for name, value in without_until(case).items())
        where = where or "its only case"
        if not worst.any():
            return "the last choice keeps every bound in packets; what speaks against it is said above"
        bound = self.goal.constraints[int(worst.argmax())]
        value = float(found.metrics[bound.metric][self.packet_cases.index(case)])
        return f"no setting keeps every bound in packets; the best misses {bound} with {where}: {value:.4g}"

    def _remember(self, few: OneSeed, points: Sequence[Point]) -> None:
        """Keep what points ran in few cases, so that it does not run again with the others, and forget the rest."""
        for point, (k, case) in itertools.product(points, enumerate(few.cases)):
            at = tuple(point.values())
            if (at, k) in few.traces:
                self._done.setdefault(at, {})[_named(case), self.seeds[0]] = few.traces[at, k]
        few.traces.clear()

    def _packets_evaluator(self, cases: Sequence[dict[str, Any]], seeds: Sequence[int]) -> OneSeed:
        base = self.checkers[0]
        draws = dataclasses.replace(base.draws, engine="packet")
        make = base.make_scenario
        if base.draws.engine == "hybrid":
            from fluidcc.engines.hybrid.region import by_packets

            def make(**values: Any) -> Scenario:
                return by_packets(resolve(base.make_scenario(**values)))

        return OneSeed(make, cases, draws, seeds, self.goal.metrics - {SETTLING}, base.threads, base.dask)

    def _run(
        self, point: Point, label: str, *, once: bool = False, cases: Sequence[dict[str, Any]] | None = None
    ) -> Packets:
        """Run packets of a point in every case, with one seed or all; what has run before does not again."""
        cases, seeds = self.packet_cases if cases is None else cases, self.seeds[:1] if once else self.seeds
        base, first = self._packets_evaluator(cases, self.seeds), self.checkers[0]
        ran, names = self._done.setdefault(tuple(point.values()), {}), [_named(case) for case in cases]
        done = {(k, seed): ran[name, seed] for k, name in enumerate(names) for seed in seeds if (name, seed) in ran}
        options: dict[str, Any] = {"label": label, "threads": first.threads, "dask": first.dask, "done": done}
        found = packets(base.scenarios(point), base.untils, base.draws.window, seeds, **options)
        ran.update({(names[k], seed): trace for (k, seed), trace in done.items()})
        return found


def _stricter(goal: Goal) -> Goal:
    """Return a goal whose bounds are kept with other seeds too: those of shares are nearer to 1."""
    bounds = (
        dataclasses.replace(each, bound=each.bound + _SPARE * (1 - each.bound))
        if each.metric in SHARES and each.sign == ">="
        else each
        for each in goal.constraints
    )
    return dataclasses.replace(goal, constraints=tuple(bounds))


def _about(cost: float) -> float:
    """Return the largest cost that is still about as good."""
    return cost + _ALIKE * abs(cost)


def _costs(goal: Goal, found: Measured, asked: np.ndarray) -> np.ndarray:
    """Return the costs in the cases that are asked for, of which a point may have run the first only, or none."""
    metrics = {name: values[asked[: len(values)]] for name, values in found.metrics.items()}
    return goal.costs(metrics) if len(next(iter(metrics.values()))) else np.full(len(goal.objectives), -np.inf)


def _named(case: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Return what tells a case from others."""
    return tuple(sorted(case.items()))


def _measured(found: Packets) -> Measured:
    return Measured(found.metrics, found.errors)


def candidate_of(goal: Goal, point: Point, found: Measured) -> Candidate:
    """A point with what counts of it over the cases; errors are those of the case with the largest."""
    errors = {name: float(np.max(values)) for name, values in found.errors.items()}
    return Candidate(point, goal.summary(found.metrics), errors, not goal.violations(found.metrics).any())


def _rank(goal: Goal, found: Measured, *, spare: float = 0.0) -> Rank:
    """Violations, then the objectives: less is better."""
    missed = goal.violations(found.metrics, {name: spare * values for name, values in found.errors.items()})
    return float(missed.sum()), *order_of(goal, goal.costs(found.metrics))
