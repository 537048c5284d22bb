"""Tuning for what a whole fabric does: slowdowns of its flows, times of its collectives, in packets."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.builders.names import format_value
from fluidcc.engines.run_many import connected
from fluidcc.errors import InputError
from fluidcc.files import write_atomically
from fluidcc.progress import Bar
from fluidcc.results.display import draw
from fluidcc.results.result import Comparable
from fluidcc.results.schema import plain
from fluidcc.scenario.switches import RED, resolve_marking
from fluidcc.studies.tuning.race import (
    CHOOSING,
    MEASURES,
    OBJECTIVES,
    RUNGS,
    WITHIN,
    Racer,
    Rule,
    ends_of,
    middle_of,
    race,
)
from fluidcc.studies.tuning.space import Point, Space, point_of, space_of
from fluidcc.surface import constructor, keywords, public
from fluidcc.units import whole
from fluidcc.workloads.collectives.study import collective
from fluidcc.workloads.fabrics.shapes import named_topology
from fluidcc.workloads.fabrics.study import LARGE, SMALL, fabric
from fluidcc.workloads.fabrics.topology import Topology
from fluidcc.workloads.fabrics.traffic import Traffic

if TYPE_CHECKING:
    from fluidcc.results.display import Picture

PRESENT = "present"
_TOGETHER, _MOST = 4, 24  # of these at a time, and in all
_NARROW = 0.1  # half an interval that is narrow enough, as a share
_PROVED = 3  # settings at most, until one is better than the present one and not worse
_SIZES = {"p99_small": "slowdown.small.p99", "p99_large": "slowdown.large.p99", "p50": "slowdown.p50"}
_SIZES |= {"p99": "slowdown.p99", "goodput": "goodput", "queue_p99": "queue_bytes.p99"}
_OF_SHAPE = tuple(name for name in keywords(named_topology) if name != "name")


@constructor()
@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class FabricTuning(Comparable):
    """The setting that does best on a fabric, and what it was chosen from.

    Parameters
    ----------
    space : Space
    rule : Rule
        What makes a setting better than another.
    topology : Topology
    cases : list of dict
        What was sent.
    says : tuple of str
        That in words.
    start : dict of float
        The present setting.
    yardsticks : dict of dict
        Others by name.
    racers : list of Racer
        All settings that ran, those with the most seeds first.
    best : str or None
        Name of the one that is recommended; None where none is better than the present one without being more than 5 %
        worse in something.
    proofs : dict of Racer
        The settings that ran with seeds that nothing was chosen by: the yardsticks, and those that were to be
        recommended.
    plateau : dict of (float, float)
        Least and largest value of each variable among the settings within 5 % of the best.
    irrelevant : list of str
        Variables that the plateau covers half the range of, or more.
    runs : int
        In packets.
    flows : list of dict
        In each case, how many ``small`` flows (to 100 KB) and ``large`` ones (beyond 1 MB) the recommended setting was
        proved with; empty of collectives.
    notes : list of str
        What is not as hoped: ends of ranges, intervals that stayed wide.
    """

    space: Space
    rule: Rule
    topology: Topology
    cases: list[dict[str, Any]]
    says: tuple[str, ...]
    start: Point
    yardsticks: dict[str, Point]
    racers: list[Racer]
    best: str | None
    proofs: dict[str, Racer]
    plateau: dict[str, tuple[float, float]]
    irrelevant: list[str]
    runs: int
    flows: list[dict[str, int]]
    notes: list[str]

    @property
    def point(self) -> Point | None:
        """Values of the recommended setting; None if there is none."""
        return None if self.best is None else self.proofs[self.best].point

    def __repr__(self) -> str:
        """The recommended setting, in a line."""
        at = "none better" if self.point is None else told(self.point)
        return f"<FabricTuning {at}: {len(self.racers)} settings, {self.runs} runs>"

    @public()
    def as_dict(self) -> dict[str, Any]:
        """Keys as in the CLI.

        Returns
        -------
        dict
            ``start`` and ``best`` (None where none is better), ``evaluations``, ``runs``, ``pareto``: settings of which
            none is better in every objective; ``plateau``, ``irrelevant``; ``cases``, each with the metrics of
            ``start`` and ``best`` and the ``ratios`` of all that were proved; ``confirmed``, ``notes``.
        """
        proved = None if self.best is None else self.proofs[self.best]
        shown = proved or next(iter(self.proofs.values()), None)
        cases = []
        for i, (case, says, flows) in enumerate(zip(self.cases, self.says, self.flows, strict=True)):
            row: dict[str, Any] = {**{name: str(value) for name, value in case.items()}, "traffic": says}
            row["proved_with"] = flows
            if shown is not None:
                row["start"] = _means(shown.found[i, :, :, 1])
            if proved is not None:
                row["best"] = _means(proved.found[i, :, :, 0])
            row["ratios"] = {
                name: each.ratios(i) | {"seeds": each.seeds, "unfinished": each.lacking, "setting": each.point}
                for name, each in self.proofs.items()
            }
            cases.append(row)
        return plain(
            {
                "objectives": list(self.rule.objectives),
                "worst": self.rule.worst,
                "start": self.start,
                "best": self.point,
                "recommended": self.best,
                "evaluations": len(self.racers),
                "runs": self.runs,
                "pareto": [self._row(each) for each in self.rule.front(self.racers)],
                "settings": [self._row(each) for each in self.racers],
                "yardsticks": self.yardsticks,
                "plateau": {name: list(ends) for name, ends in self.plateau.items()},
                "irrelevant": self.irrelevant,
                "cases": cases,
                "confirmed": self.best is not None,
                "notes": self.notes,
            }
        )

    def _row(self, racer: Racer) -> dict[str, Any]:
        costs = np.exp(self.rule.costs(racer))
        ratios = {
            name: 1 / cost if more else cost
            for (name, more), cost in zip(MEASURES.items(), costs, strict=True)
            if name != "unfinished"
        }
        return {**racer.point, "name": racer.name, "seeds": racer.seeds, "ratios": ratios, "unfinished": racer.lacking}

    @public()
    def plot(self) -> Picture:
        """Draw all settings by two objectives, as ratios to the present one, and what was proved.

        Returns
        -------
        Picture
        """
        return draw("plot_race", self)

    @public()
    def write(self, folder: str | Path) -> list[Path]:
        """Write ``tuning.json`` and ``race.png``.

        Parameters
        ----------
        folder : str or Path
            Made if it is not there.

        Returns
        -------
        list of Path

        Raises
        ------
        InputError
            If the folder or a file cannot be written.
        """
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        text = json.dumps(self.as_dict(), indent=2) + "\n"
        written = [write_atomically(target / "tuning.json", text.encode())]
        return [*written, self.plot().write(target / "race.png")]


def told(point: Point) -> str:
    """Say a setting in a line."""
    return ", ".join(f"{name} {format_value(name, value)}" for name, value in point.items())


def _means(values: np.ndarray) -> dict[str, float]:
    """Means over seeds of what was measured."""
    known = {name: row[np.isfinite(row)] for name, row in zip(MEASURES, values, strict=True)}
    return {name: float(row.mean()) for name, row in known.items() if len(row)}


@public(passes_on=_OF_SHAPE)
def tune_fabric(
    make_options: Callable[..., Mapping[str, Any]],
    over: Mapping[str, Any],
    topology: Any = "leaf-spine:4x4x8",
    *,
    cases: Sequence[Mapping[str, Any]],
    start: Mapping[str, Any],
    yardsticks: Mapping[str, Mapping[str, Any]] | None = None,
    objective: str | Sequence[str] | None = None,
    worst: bool = True,
    settings: int = 40,
    seed: int = 1,
    threads: int | None = None,
    dask: Any = None,
    folder: Any = None,
    **shape: Any,
) -> FabricTuning:
    """Find the setting that does best on a whole fabric and is no more than 5 % worse than the present one in anything.

    Settings race in packets, on the same flows and paths: all run with few seeds, the best third with more, the last
    four with twice as many. What is recommended lies in the middle of the settings within 5 % of the best, and is
    run again with seeds that nothing was chosen by, until the intervals are within 10 %. By these it must be better in
    an objective, beyond its interval, and by its mean no more than 5 % worse in the others and in goodput.

    Parameters
    ----------
    make_options : callable
        ``make_options(**values)`` returns options of `fluidcc.fabrics.Topology.scenario` for the names of ``over``, as
        `fabric` takes them in place of a scheme's name; with none, those of the present setting.
    over : mapping
        As of `tune`. Values are rounded to two digits, and registers of NICs to powers of two.
    topology : str, path or Topology
        As of `fabric`.
    cases : sequence of mapping
        What is sent: options of `fabric` (``workload``, ``load``, ``until``, ...), or with ``collective``, its kind,
        those of `collective`; further ones are fields of `Scenario`, such as ``burst``, or a ``payload`` of packets.
    start : mapping
        Values of the present setting.
    yardsticks : mapping
        Other settings by name, which race and are shown beside.
    objective : str or sequence of str
        Of `fluidcc.studies.tuning.race.MEASURES`: the mean of their ratios to the present setting's is least in the
        best. By default the 99th percentiles of slowdowns of flows to 100 KB and beyond 1 MB, and the time of
        collectives, of which there are any.
    worst : bool
        Whether the worst of the cases counts; else their mean.
    settings : int
        How many race.
    seed : int
        Of the draws of settings.
    threads : int
        Runs at once; as many as cores by default.
    dask : str or distributed.Client
        Scheduler that runs them; the cores of this machine by default.
    folder : str or path, optional
        Every run is kept there when it ends, and what an earlier, interrupted call kept is not run again.
    **shape
        ``rate``, ``fabric_rate``, ``delay`` and ``oversubscription`` of the topology.

    Returns
    -------
    FabricTuning

    Raises
    ------
    InputError
        If names, bounds, cases or options make no sense, or nothing of what is aimed at is measured.

    Examples
    --------
    >>> import fluidcc as fc
    >>> base = fc.preset("dcqcn", "hpcc-eval").options()  # doctest: +SKIP
    >>> found = fc.studies.tune_fabric(
    ...     lambda **values: base | {"marking": fc.RED(**{"kmin": "100KB", "kmax": "400KB", "pmax": "20%", **values})},
    ...     {"kmin": ("10KB", "400KB")}, "leaf-spine:2x2x4", start={"kmin": "100KB"}, settings=8,
    ...     cases=[{"workload": "web-search", "load": "50%", "until": "1ms"}],
    ... )  # doctest: +SKIP
    """
    space = space_of(over)
    whole(settings, 4, 10_000, "settings")
    objectives = _objectives(objective)
    if not cases:
        raise InputError("cases: there are none; write for example [{'workload': 'web-search', 'until': '2ms'}]")
    present = point_of(start, space, "start")
    if PRESENT in (yardsticks or {}):
        raise InputError(f"yardsticks: {PRESENT!r} is what start says; give it another name")
    others = {name: point_of(values, space, f"yardsticks {name}") for name, values in (yardsticks or {}).items()}
    known = {name: point for name, point in others.items() if point != present}
    rule = Rule(objectives, worst)
    with connected(dask) as client:
        where = {"threads": threads, "dask": client, "folder": folder}
        runs = _Runs(make_options, topology, shape, cases, where, settings)
        runs.check_arrivals()
        space = space.in_cells(runs.cells)
        with runs.bar:
            racers = race(space, rule, runs.measure, known=known, settings=settings, seed=seed)
            whole_run = [each for each in racers if each.seeds == sum(RUNGS)]
            chosen = _recommended(space, rule, whole_run)[:_PROVED]
            proofs = _proved(rule, runs, chosen, known)
    rule = dataclasses.replace(rule, objectives=_measured(rule, racers))
    best = next((each for each in chosen if each.name in proofs and _good(rule, proofs[each.name])), None)
    after = 0 if best is None else _after(chosen.index(best))
    seeds = range(after + 1, after + 1 + (0 if best is None else proofs[best.name].seeds))
    longer = [each for each in racers if each.seeds > RUNGS[0]]
    plateau = [each.point for each in rule.plateau(longer)]
    return FabricTuning(
        space=space,
        rule=rule,
        topology=runs.topologies[0],
        cases=runs.cases,
        says=tuple(runs.says),
        start=present,
        yardsticks=known,
        racers=racers,
        best=None if best is None else best.name,
        proofs=proofs,
        plateau=space.ranges(plateau),
        irrelevant=space.irrelevant(plateau),
        runs=runs.count,
        flows=[runs.flows_of(i, seeds) for i in range(len(cases))],
        notes=_notes(space, rule, None if best is None else proofs[best.name]),
    )


def _notes(space: Space, rule: Rule, best: Racer | None) -> list[str]:
    """Say what of a recommended setting is not as hoped."""
    if best is None:
        return []
    ends, unsure = ends_of(space, best.point), wide(rule, best)
    lie = "lies at the end of its range" if len(ends) == 1 else "lie at the end of their ranges"
    notes = [f"{', '.join(ends)} {lie}: a wider range may have a better value"] if ends else []
    if unsure:
        more = f"{best.seeds} seeds leave more than 10 % either way: a longer until has more flows"
        notes.append(f"{', '.join(dict.fromkeys(unsure))}: {more}")
    return notes


def worse(rule: Rule, racer: Racer) -> list[str]:
    """Measures in which a setting is worse than the present one by more than `WITHIN`, sure or not, in any case."""
    found = []
    for case in range(len(racer.found)):
        ratios = racer.ratios(case)
        for name in dict.fromkeys((*rule.objectives, "goodput")):
            mean = ratios[name]["mean"]
            if (1 / mean if MEASURES[name] else mean) > 1 + WITHIN:
                found.append(name)
    if racer.lacking > 0:
        found.append("unfinished")
    return list(dict.fromkeys(found))


def better(rule: Rule, racer: Racer) -> bool:
    """Check whether a setting is better than the present one in an objective, beyond its interval."""
    ends = [
        (1 / ratios["low"] if MEASURES[name] else ratios["high"])
        for case in range(len(racer.found))
        for name, ratios in racer.ratios(case).items()
        if name in rule.objectives
    ]
    return any(end < 1 for end in ends)


def _good(rule: Rule, racer: Racer) -> bool:
    return better(rule, racer) and not worse(rule, racer)


def _measured(rule: Rule, racers: Sequence[Racer]) -> tuple[str, ...]:
    """Objectives that some run has."""
    there = np.any([np.isfinite(each.logs).any(axis=(0, 2)) for each in racers], axis=0)
    return tuple(name for name, place in zip(rule.objectives, rule.places, strict=True) if there[place])


def _recommended(space: Space, rule: Rule, racers: list[Racer]) -> list[Racer]:
    """Settings in the order in which they are to be proved, of those that are better than the present one.

    The one in the middle of the plateau is the first, and what lies at an end of a range the last.
    """
    kept, plateau = rule.kept(racers), rule.plateau(racers)
    if not kept:  # then the best is shown for what it trades
        return [each for each in rule.ranked(racers)[:1] if rule.cost(each) < 0]
    if plateau:
        middle = middle_of(space, plateau)
        kept = [middle, *(each for each in kept if each is not middle)]
    return sorted(kept, key=lambda each: len(ends_of(space, each.point)))


def _proved(rule: Rule, runs: _Runs, chosen: Sequence[Racer], known: Mapping[str, Point]) -> dict[str, Racer]:
    """Run the yardsticks, and settings until one is better than the present one and not worse, with fresh seeds."""
    found: dict[str, Racer] = {}
    for k, each in enumerate(chosen):
        rest = {name: point for name, point in known.items() if name not in found}
        found |= _until_narrow(rule, runs, {each.name: each.point, **rest}, _after(k))
        if _good(rule, found[each.name]):
            break
    return found or (_until_narrow(rule, runs, known, _after(0)) if known else {})


def _after(k: int) -> int:
    """Last seed before those that prove the k-th setting: each has its own, as one that refuses chooses the next."""
    return (2 + k) * CHOOSING


def _until_narrow(rule: Rule, runs: _Runs, points: Mapping[str, Point], after: int) -> dict[str, Racer]:
    """Run settings with the seeds after some until the first one's intervals are narrow."""
    found: dict[str, Racer] = {}
    for last in range(_TOGETHER, _MOST + 1, _TOGETHER):
        more = runs.measure(points, range(after + last - _TOGETHER + 1, after + last + 1))
        for name, each in more.items():
            before = [found[name].found] if name in found else []
            found[name] = Racer(name, points[name], np.concatenate([*before, each], axis=2))
        first = found[next(iter(points))]
        if not wide(rule, first):
            break
    return found


def wide(rule: Rule, racer: Racer) -> list[str]:
    """Objectives of which half the interval is more than 10 %, in any case."""
    return [
        name
        for name in rule.objectives
        for ratios in (racer.ratios(case)[name] for case in range(len(racer.found)))
        if (ratios["high"] - ratios["low"]) / 2 > _NARROW * ratios["mean"]
    ]


class _Runs:
    """Runs of settings beside the present one, in every case."""

    def __init__(
        self,
        make_options: Callable[..., Mapping[str, Any]],
        topology: Any,
        shape: Mapping[str, Any],
        cases: Sequence[Mapping[str, Any]],
        where: Mapping[str, Any],
        settings: int,
    ) -> None:
        self.make_options, self.where = make_options, where
        self.cases = [dict(case) for case in cases]
        self.topologies = [
            topology
            if isinstance(topology, Topology)
            else named_topology(topology, **{**shape, **{name: case[name] for name in _OF_SHAPE if name in case}})
            for case in cases
        ]
        self.says = [""] * len(cases)
        self.count = 0
        third = max(settings // 3, 4)
        self._expected = len(cases) * (RUNGS[0] * settings + RUNGS[1] * third + RUNGS[2] * 4 + 3 * _MOST)
        self.bar = Bar(f"racing {settings} settings", 100, "")

    def check_arrivals(self) -> None:
        """Refuse, before anything runs, times in which some seed has no flow."""
        for case, topology in zip(self.cases, self.topologies, strict=True):
            if (traffic := _traffic(case)) is not None:
                for seed in range(CHOOSING + 1, CHOOSING + 1 + sum(RUNGS)):
                    traffic.rows(topology, seed)

    @property
    def cells(self) -> list[float | None]:
        """Cells in which switches count their queues, by the present setting's markings [bytes]."""
        given = self.make_options().get("marking")
        rules = given if isinstance(given, list) else [given]
        return [resolve_marking(rule).cell for rule in rules if isinstance(rule, RED)]

    def flows_of(self, i: int, seeds: Sequence[int]) -> dict[str, int]:
        """Number of flows to 100 KB and beyond 1 MB in a case, of some seeds together."""
        traffic = _traffic(self.cases[i])
        if traffic is None or not seeds:
            return {}
        rows = [traffic.rows(self.topologies[i], seed) for seed in seeds]
        sizes = np.concatenate([np.array([float(row[3]) for row in each]) for each in rows])
        return {"small": int((sizes <= SMALL).sum()), "large": int((sizes > LARGE).sum())}

    def measure(self, points: Mapping[str, Point], seeds: Sequence[int]) -> dict[str, np.ndarray]:
        """Numbers of settings and the present one's, (cases, measures, seeds, 2) of each."""
        chosen = {PRESENT: self.make_options(), **{name: self.make_options(**point) for name, point in points.items()}}
        found = {name: np.full((len(self.cases), len(MEASURES), len(seeds), 2), np.nan) for name in points}
        for (i, case), (k, seed) in itertools.product(enumerate(self.cases), enumerate(seeds)):
            for name, values in self._one(i, case, chosen, seed).items():
                found[name][i, :, k] = values
            self.count += len(chosen)
            done = min(self.count / self._expected, 0.99)
            self.bar(done, f"{len(points)} setting{'s' * (len(points) > 1)} with seed {seed}, {self.says[i]}")
        return found

    def _one(
        self, i: int, case: Mapping[str, Any], chosen: Mapping[str, Mapping[str, Any]], seed: int
    ) -> dict[str, np.ndarray]:
        """Numbers of each setting in one case with one seed, (measures, 2)."""
        options = {name: value for name, value in case.items() if name not in _OF_SHAPE}
        kind, payload = options.pop("collective", None), options.pop("payload", None)
        if payload is not None:
            chosen = {name: {**each, "payload": payload} for name, each in chosen.items()}
        found: dict[str, np.ndarray] = {}
        names = [name for name in chosen if name != PRESENT]
        if kind is not None:
            study = collective(kind, self.topologies[i], chosen, seeds=[seed], **options, **self.where)
            self.says[i] = ", ".join(study.says)
            if len(study.cases) > 1:
                raise InputError(f"collective: {kind!r} are several; give a case for each")
            for name in names:
                pairs = {"collective_time": study.pairs(name, PRESENT)[study.cases[0]][0]}
                found[name] = self._row(pairs, [study.of(each)[0].numbers for each in (name, PRESENT)])
            return found
        flows = fabric(chosen, self.topologies[i], seeds=[seed], **options, **self.where)
        self.says[i] = flows.says
        for name in names:
            pairs = {_SIZES[key]: value[0] for key, value in flows.pairs(name, PRESENT).items() if key in _SIZES}
            runs = [flows.of(each)[0] for each in (name, PRESENT)]
            numbers = [{**run.numbers, "unfinished": run.slowdown.unfinished} for run in runs]
            found[name] = self._row(pairs, numbers)
        return found

    @staticmethod
    def _row(pairs: Mapping[str, np.ndarray], numbers: Sequence[Mapping[str, Any]]) -> np.ndarray:
        """Put the numbers of a setting and of the present one in the order of `MEASURES`."""
        rest = {
            "pfc_pauses": [each["pfc_pauses"] for each in numbers],
            "unfinished": [each["unfinished"] for each in numbers],
        }
        return np.array([np.asarray(({**pairs, **rest}).get(name, (np.nan, np.nan)), float) for name in MEASURES])


def _traffic(case: Mapping[str, Any]) -> Traffic | None:
    """Flows of a case, if they are drawn for each seed."""
    fields = {field.name: case[field.name] for field in dataclasses.fields(Traffic) if field.name in case}
    traffic = Traffic(**fields) if fields and "collective" not in case else None
    return None if traffic is None or traffic.flows is not None or traffic.endless else traffic


def _objectives(objective: str | Sequence[str] | None) -> tuple[str, ...]:
    """Read what is aimed at."""
    if objective is None:
        return OBJECTIVES
    found = (objective,) if isinstance(objective, str) else tuple(objective)
    for each in found:
        if each not in MEASURES or each == "unfinished":
            able = ", ".join(name for name in MEASURES if name != "unfinished")
            raise InputError(f"objective: {str(each)[:40]!r} is not measured on a fabric; write one of {able}")
    if not found or len(set(found)) < len(found):
        raise InputError("objective: give one measure, or several that differ")
    return found
