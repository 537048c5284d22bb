"""Tuning: search, check by other seeds, prove by packets."""

from __future__ import annotations

import importlib
import itertools
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from fluidcc.engines.run_many import SchedulerError, connected
from fluidcc.errors import InputError
from fluidcc.progress import Bar
from fluidcc.scenario.model import Scenario, resolve
from fluidcc.studies.sweeps.result import Constraint
from fluidcc.studies.tuning.choice import Proof, candidate_of
from fluidcc.studies.tuning.evaluate import Evaluator, Measured, engine_draws
from fluidcc.studies.tuning.goal import Goal, front_of, goal_of, knee_of
from fluidcc.studies.tuning.result import Candidate, Tuning
from fluidcc.studies.tuning.result import sensitivity as sensitivity_of
from fluidcc.studies.tuning.search import search
from fluidcc.studies.tuning.space import Point, Space, point_of, space_of
from fluidcc.surface import public
from fluidcc.units import whole

_FRESH = 1000  # seeds from here on check what seeds 1, 2, ... have chosen
_CHECKED = (4, 16)  # times as many of them
_PROOF = 2000  # and from here on packets prove
_MOST_CASES, _MOST_EVALUATIONS, _MOST_SEEDS = 100, 1_000_000, 1000


@public()
def tune(
    make_scenario: Callable[..., Scenario],
    over: Mapping[str, Any],
    *,
    objective: str | Sequence[str] = "queue_bytes.p99",
    maximise: bool | None = None,
    subject_to: str | Iterable[str | Constraint] | None = None,
    across: Mapping[str, Sequence[Any]] | None = None,
    worst: bool = True,
    start: Mapping[str, Any] | None = None,
    yardsticks: Mapping[str, Mapping[str, Any]] | None = None,
    until: Any = "50ms",
    window: Any = None,
    engine: str | None = None,
    seeds: int = 4,
    evaluations: int = 400,
    seed: int = 1,
    sensitivity: int = 0,
    packet_seeds: int = 2,
    packet_cases: Sequence[Mapping[str, Any]] | None = None,
    packet_guards: Sequence[Mapping[str, Any]] = (),
    defaults: bool = True,
    workers: int | None = None,
    dask: Any = None,
) -> Tuning:
    """Find the setting that does best under constraints, and have packets confirm it.

    Parameters
    ----------
    make_scenario : callable
        ``make_scenario(**values) -> Scenario``, called with plain numbers for the names of ``over`` and of ``across``;
        with the fluid, with traced ones for those of ``over``.
    over : mapping
        For each name its least and largest value: numbers in SI or text with units. Registers of NICs and thresholds of
        switches take settable values alone.
    objective : str or sequence of str
        One of `METRICS` or ``"settling_time"``; the best point is the best in the first, and further ones span the
        front (of a queue alone, utilisation).
    maximise : bool
        Whether more of the first is better; by default as is usual for it.
    subject_to : str or sequence of str
        Bounds such as ``"utilisation>=0.99"``, ``"settling_time<=10ms"``. Where a queue is to be short they add to
        ``utilisation>=0.98`` (of what the scheme aims at) and ``jain>=0.9``; one on the same metric replaces its own,
        and an empty list drops all.
    across : mapping
        Names with lists of values, whose combinations a setting must all do well in: ``{"flows": [2, 8, 16]}``.
    worst : bool
        Whether the worst of these cases counts; else their mean.
    start : mapping
        The present setting.
    yardsticks : mapping
        Other settings by name, shown on the front and tried first.
    until, window
        Of each run, as in `simulate`.
    engine : {"hybrid", "fluid"}
        What the search runs on; hybrid for DCQCN, else the fluid.
    seeds : int
        Runs of each point and case (hybrid).
    evaluations : int
        Points that the search may run.
    seed : int
        Of the search.
    sensitivity : int
        Sobol's indices from this many times (variables + 2) points, a power of 2; 0: none.
    packet_seeds : int
        Runs of the packet engine of each case, with seeds that nothing was chosen by; 0: none.
    packet_cases : sequence of mapping
        Values of the names of ``across``, and of others that ``make_scenario`` knows, such as a burst, in which packets
        must keep the bounds too; the combinations of ``across`` if not given.
    packet_guards : sequence of mapping
        Likewise cases in which packets must keep the bounds, or else do no worse than the present setting.
    defaults : bool
        Whether a short queue must keep the usual bounds beside those of ``subject_to``.
    workers : int
        Threads; one per core by default.
    dask : str or distributed.Client
        Scheduler that runs the points; the cores of this machine by default.

    Returns
    -------
    Tuning

    Raises
    ------
    InputError
        If names, bounds, metrics or options make no sense, no point does, or an extra package is missing.

    Examples
    --------
    >>> import fluidcc as fc
    >>> found = fc.tune(
    ...     lambda kmin, kmax: fc.incast(4, marking=fc.RED(kmin, kmax, "1%")),
    ...     {"kmin": ("1KB", "100KB"), "kmax": ("50KB", "400KB")},
    ...     until="5ms", evaluations=8, seeds=2, packet_seeds=0,
    ... )  # doctest: +SKIP
    >>> found.best.point  # doctest: +SKIP
    """
    _require("pymoo", "tune")
    if sensitivity:
        _require("SALib", "sensitivity")
    space, cases = space_of(over), _cases(across, over)
    for name, value, most in (("seeds", seeds, _MOST_SEEDS), ("evaluations", evaluations, _MOST_EVALUATIONS)):
        whole(value, 1, most, name)
    whole(packet_seeds, 0, _MOST_SEEDS, "packet_seeds")
    whole(sensitivity, 0, _MOST_EVALUATIONS, "sensitivity")
    if sensitivity & (sensitivity - 1):
        raise InputError(f"sensitivity: {sensitivity} is no power of 2; write for example 32")
    present = None if start is None else point_of(start, space, "start")
    others = {name: point_of(values, space, f"yardsticks {name}") for name, values in (yardsticks or {}).items()}
    if present is not None:
        for case in cases:
            resolve(make_scenario(**present, **case))  # a present setting that makes no sense is refused at once
    example = _example(make_scenario, space, cases, [*([present] if present else []), *others.values()])
    space = space.in_cells(link.marking.cell for link in example.links if link.marking is not None)
    schemes = {flow.scheme.name for flow in example.flows}
    engine = engine or ("hybrid" if schemes <= {"dcqcn", "none"} else "fluid")
    draws = engine_draws(engine, until, window)
    target = min(float(getattr(flow.scheme, "target_utilisation", 1.0)) for flow in example.flows)
    goal = goal_of(objective, maximise, subject_to, worst, target, defaults)
    chosen_by = list(range(1, seeds + 1)) if engine != "fluid" else []
    with connected(dask) as client:
        evaluator = Evaluator(make_scenario, cases, draws, chosen_by, goal.metrics, workers, client)
        known = [point for point in ([present] if present else []) + list(others.values())]
        with Bar(f"searching {', '.join(space.names)}", evaluations, "points") as bar:
            search(
                space, goal, evaluator, evaluations=evaluations, seed=seed, known=known, mapped=packet_seeds > 0,
                report=lambda done: bar(min(done / evaluations, 1.0)),
            )  # fmt: skip
        searched = evaluator.runs
        rows = [(space.named(values), found) for values, found in evaluator.known() if not found.reason]
        if not rows:
            raise InputError(f"over: no point makes sense; {next(found.reason for _, found in evaluator.known())}")
        checkers = [evaluator]
        if engine != "fluid":
            fresh = [range(_FRESH + 1, _FRESH + 1 + times * seeds) for times in _CHECKED]
            checkers = [Evaluator(make_scenario, cases, draws, each, goal.metrics, workers, client) for each in fresh]
        wider = cases if packet_cases is None else [dict(case) for case in packet_cases]
        proof_seeds = list(range(_PROOF + 1, _PROOF + 1 + packet_seeds))
        proved = Proof(goal, space, checkers, rows, seeds, proof_seeds, wider, packet_guards)
        best = _shown(proved, present) if packet_seeds else proved.by_search()
        notes = proved.notes
        if not best.kept:
            notes.append("no setting keeps every bound: the best misses least")
        notes += _at_ends(space, best.point, proved.plateau)
        found = None
        if sensitivity:
            found = sensitivity_of(space, goal, evaluator, best.point, sensitivity, seed)
        front = _front(goal, rows)
        knee = knee_of(np.array([goal.costs(each.metrics) for _, each in front])) if front else None
        pareto = [candidate_of(goal, *each) for each in front]

        def candidate(point: Point) -> Candidate:
            return candidate_of(goal, point, checkers[0]([point])[0])

        return Tuning(
            goal=goal,
            space=space,
            start=candidate(present) if present else None,
            best=best,
            pareto=pareto,
            knee=pareto[knee] if knee is not None else None,
            yardsticks={name: candidate(point) for name, point in others.items()},
            evaluations=searched,
            sensitivity=found,
            packets=proved.packets,
            packet_cases=wider,
            packet_guards=proved.guards,
            refused=proved.refused,
            plateau=space.ranges(proved.plateau),
            irrelevant=space.irrelevant(proved.plateau),
            confirmed=proved.confirmed,
            notes=notes,
        )


def _at_ends(space: Space, best: Point, plateau: Sequence[Point]) -> list[str]:
    """Say which variables of the best, and of settings about as good, lie at an end of their range."""
    ends, found = space.ends(best), []
    if ends:
        lie = "lies at the end of its range" if len(ends) == 1 else "lie at the end of their ranges"
        found.append(f"{', '.join(ends)} {lie}: a wider range may have a better value")
    beyond = dict.fromkeys(name for each in plateau for name in space.ends(each) if name not in ends)
    if beyond:
        where = "settings as good lie at the end of its range"
        found.append(f"{', '.join(beyond)}: {where}; a wider range may have a better value")
    return found


def _shown(proved: Proof, present: Point | None) -> Candidate:
    """Return the packets' choice; the search's choice if packets refuse the scenario, so as not to lose it."""
    try:
        shown = proved.by_packets(present)
        return shown
    except SchedulerError:
        raise
    except InputError as error:
        proved.notes.append(f"packets were not run: {error}")
        proved.packets, proved.confirmed = {}, None
        return proved.by_search()


def _require(package: str, what: str) -> None:
    """Refuse before anything runs what would fail at its end."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            importlib.import_module(package)
    except ImportError:
        raise InputError(f"{what}: needs {package}; install it with: pip install 'fluidcc[tune]'") from None


def _cases(across: Mapping[str, Sequence[Any]] | None, over: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return all combinations of the conditions in which a setting must do well."""
    if not across:
        return [{}]
    for name, values in across.items():
        if name in over:
            raise InputError(f"across: {name} is tuned; leave it out of one of the two")
        if isinstance(values, str) or not isinstance(values, Sequence) or not len(values):
            raise InputError(f"across {name}: expected a list of values; write for example [2, 8, 16]")
    cases = [dict(zip(across, values, strict=True)) for values in itertools.product(*across.values())]
    if len(cases) > _MOST_CASES:
        raise InputError(f"across: {len(cases)} cases are more than {_MOST_CASES}; give fewer values")
    return cases


def _example(
    make_scenario: Callable[..., Scenario], space: Space, cases: Sequence[dict[str, Any]], known: Sequence[Point]
) -> Scenario:
    """Some scenario that makes sense."""
    from fluidcc.studies.sweeps.grid import check_takes

    check_takes(make_scenario, [*space.names, *cases[0]])
    reason = ""
    middle = np.full(len(space.variables), 0.5)
    for point in [*known, space.point(middle), space.point(0 * middle), space.point(2 * middle)]:
        try:
            return resolve(make_scenario(**point, **cases[0]))
        except InputError as error:
            reason = reason or str(error)
    raise InputError(f"over: no point makes sense; {reason}")


def _front(goal: Goal, rows: Sequence[tuple[Point, Measured]]) -> list[tuple[Point, Measured]]:
    """Return the Pareto front of the points that satisfy the constraints."""
    kept = [row for row in rows if not goal.violations(row[1].metrics, row[1].errors).any()]
    costs = np.array([goal.costs(found.metrics) for _, found in kept])
    if not len(kept):
        return []
    return [kept[i] for i in front_of(costs) if np.isfinite(costs[i]).all()]
