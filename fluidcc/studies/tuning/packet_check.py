"""The last word on a setting: packets, with the switch's own buffers and PFC, over seeds that nothing was chosen by."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fluidcc.engines.run_many import Place, run_many
from fluidcc.progress import Bar
from fluidcc.results.trace import Trace
from fluidcc.scenario.model import Scenario
from fluidcc.studies.sweeps.result import Constraint
from fluidcc.studies.tuning.cases import in_words
from fluidcc.studies.tuning.evaluate import SAMPLES, Evaluator, Key, Row, busiest_link, settled, tuned_of
from fluidcc.studies.tuning.goal import SETTLING, Goal
from fluidcc.units import show

_SURE = 2.0  # standard errors beyond which a difference counts
_SLOWER = 1.1  # times the present settling time
_TIMES = 2.0  # as many PAUSEs as with a present setting that misses a bound
_COUNTS = {"pfc_pauses": "more PAUSEs", "drops": "more packets dropped"}  # which the search's engine does not see


@dataclasses.dataclass(frozen=True)
class Packets:
    """Results of packet runs of a setting.

    Parameters
    ----------
    metrics, errors : dict of ndarray, shape (cases,)
        Means over the seeds, and their standard errors; also ``pfc_pauses`` and ``drops`` of a run.
    each : dict of ndarray, shape (cases, seeds)
    traces : list of list of Trace
        By case and seed.
    """

    metrics: dict[str, np.ndarray]
    errors: dict[str, np.ndarray]
    each: dict[str, np.ndarray]
    traces: list[list[Trace]]


def packets(
    scenarios: Sequence[Scenario],
    untils: Sequence[float],
    window: Any,
    seeds: Sequence[int],
    *,
    label: str = "packets",
    threads: int | None = None,
    dask: Any = None,
    done: dict[tuple[int, int], Trace] | None = None,
) -> Packets:
    """Run the packet engine in every case with every seed, on all cores.

    What is ``done`` of them, by case and seed, is not run again, and what is run joins it.

    Raises
    ------
    InputError
        If a scenario has what packets do not do, or a run takes too much memory.
    """
    from fluidcc.engines.packet import run as packet

    done = {} if done is None else done
    times = [
        packet.times_of(scenario, until, window, until / SAMPLES)
        for scenario, until in zip(scenarios, untils, strict=True)
    ]

    def one(job: tuple[int, int], place: Place) -> Trace:
        case, seed = job
        return place.compute(_traced, scenarios[case], times[case], seed)

    if dask is None:  # compiled before threads ask for it, each for itself
        for scenario, each in zip(scenarios, times, strict=True):
            packet.warm_up(packet.prepare(scenario, each, 0))
    # What takes longest first, so that no core waits for a long run at the end.
    heaviest = sorted(range(len(scenarios)), key=lambda k: -untils[k] / scenarios[k].packet_size)
    jobs = [job for job in itertools.product(heaviest, seeds) if job not in done]
    with Bar(label, len(jobs), "runs") as bar:
        done.update(run_many(one, jobs, threads=threads, dask=dask, report=bar))
    traces = [[done[case, seed] for seed in seeds] for case in range(len(scenarios))]
    rows = [[_metrics(scenario, trace) for trace in runs] for scenario, runs in zip(scenarios, traces, strict=True)]
    each = {name: np.array([[row[name] for row in case] for case in rows]) for name in rows[0][0]}
    count = len(seeds)
    errors = {
        name: values.std(axis=1, ddof=1) / math.sqrt(count) if count > 1 else np.full(len(values), math.nan)
        for name, values in each.items()
    }
    means = {name: values.mean(axis=1) for name, values in each.items()}
    if any(len(scenario.flows) > 1 for scenario in scenarios):
        means[SETTLING] = np.array([_settled(scenario, runs) for scenario, runs in zip(scenarios, traces, strict=True)])
    return Packets(means, errors, each, traces)


class OneSeed(Evaluator):
    """Runs packets with one seed, and keeps the traces: what is then run in every case need not run these again.

    Attributes
    ----------
    traces : dict of Trace
        By point and case.
    """

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.traces: dict[tuple[Key, int], Trace] = {}

    def _row(self, key: Key, case: int, scenario: Scenario, place: Place) -> Row:
        from fluidcc.engines.packet import run as packet

        until = self.untils[case]
        times = packet.times_of(scenario, until, self.draws.window, until / SAMPLES)
        trace = self.traces[key, case] = place.compute(_traced, scenario, times, self.seeds[0])
        metrics = _metrics(scenario, trace)
        return metrics, dict.fromkeys(metrics, math.nan)


def _traced(scenario: Scenario, times: Any, seed: int, *, report: Callable[[float], None]) -> Trace:
    from fluidcc.engines.packet import run as packet

    return packet.traced(scenario, packet.prepare(scenario, times, 0), seed, report=report)


def _metrics(scenario: Scenario, trace: Trace) -> dict[str, float]:
    counted = trace.summary
    return tuned_of(scenario, trace) | {name: float(counted[name]) for name in _COUNTS}


def _settled(scenario: Scenario, traces: Sequence[Trace]) -> float:
    """Settling time of the mean rates over the seeds, as the search has it."""
    first = traces[0]["rate"]
    rates = first.copy(data=np.mean([trace["rate"].values for trace in traces], axis=0))
    return settled(scenario, rates, busiest_link(traces[0]))


def contradictions(goal: Goal, found: Packets, present: Packets | None) -> list[str]:
    """List how packets contradict a setting, in words: missed bounds, and an objective that is worse.

    A bound is missed where the mean is beyond it, or within its standard error; the objective is contradicted where
    it is worse than the present setting's by more than two standard errors of the difference, seed by seed. A present
    setting that itself misses a bound has no objective to be held to. More PAUSEs or drops than it has, by as much,
    speak against a setting too; where it misses a bound itself, more than twice as many.
    """
    said = [missed for each in goal.constraints if (missed := _missed(goal, found, each))]
    if present is None:
        return said
    bad = any(_missed(goal, present, each, sure=0.0) for each in goal.constraints)
    said += more_counted(goal, found, present, _TIMES if bad else 1.0)
    first = goal.objectives[0]
    if not bad and first.metric in found.each and _is_worse(goal, found, present):
        said.append(f"{first.metric} is worse than the present setting's")
    return said


def more_counted(goal: Goal, found: Packets, present: Packets, times: float = 1.0) -> list[str]:
    """List of which there are more than some times what the present setting has, in words: PAUSEs, drops."""
    return [
        f"{word} than with the present setting: {found.metrics[name].max():.3g} a run, present "
        f"{present.metrics[name].max():.3g}"
        for name, word in _COUNTS.items()
        if name in found.each and name in present.each and _more(goal, found.each[name], times * present.each[name])
    ]


def worse_than_present(
    goal: Goal, found: Packets, present: Packets | None, cases: Sequence[Mapping[str, Any]]
) -> list[str]:
    """Bounds that a setting misses in further cases where the present one does not, or by less, in words."""
    said = []
    for each in goal.constraints:
        if present is None or each.metric not in found.metrics:
            continue
        sign = 1.0 if each.sign == ">=" else -1.0
        ours, theirs = (sign * one.metrics[each.metric] for one in (found, present))
        errors = np.hypot(*(np.nan_to_num(one.errors[each.metric]) for one in (found, present)))
        short = np.minimum(sign * each.bound, theirs) - ours - _SURE * errors
        worst = int(short.argmax())
        if short[worst] > 0:
            where = in_words([cases[worst]])
            values = (show(sign * float(one[worst]), each.unit, 3) for one in (ours, theirs))
            said.append("{} is missed with {}: {}, present {}".format(each, where, *values))
    return said


def _missed(goal: Goal, found: Packets, each: Constraint, sure: float = 1.0) -> str:
    """Tell by which value a bound is missed, or not kept by ``sure`` standard errors; "" if it is kept.

    A few seeds often agree by chance: where the worst case counts, the largest error of all cases stands for each.
    """
    values, errors = found.metrics[each.metric], np.nan_to_num(found.errors.get(each.metric, np.array(math.nan)))
    errors = np.broadcast_to(errors, values.shape)
    if goal.worst:
        errors = np.full(values.shape, errors.max())
    else:
        values, errors = values.mean(keepdims=True), np.array([math.hypot(*errors) / len(errors)])
    beyond = each.bound - values if each.sign == ">=" else values - each.bound
    short = beyond + sure * errors
    at = int(np.isnan(short).argmax() if np.isnan(short).any() else short.argmax())
    if short[at] <= 0:
        return ""
    error = f" +- {show(errors[at], each.unit, 2)}" if errors[at] > 0 else ""
    value = f"{show(values[at], each.unit, 6)}{error}" if np.isfinite(values[at]) else "it never comes to one"
    return f"{each} is {'kept by less than its error' if beyond[at] <= 0 else 'missed'}: {value}"


def _is_worse(goal: Goal, found: Packets, present: Packets) -> bool:
    """Check whether the first objective is worse by two standard errors; a settling time, without any, by a tenth."""
    first = goal.objectives[0]
    if first.metric == SETTLING:
        ours, theirs = (goal.reduced(each.metrics, SETTLING, maximise=False) for each in (found, present))
        return not ours <= _SLOWER * theirs if theirs == theirs else False
    sign = -1.0 if first.maximise else 1.0
    ours, theirs = (sign * each.each[first.metric] for each in (found, present))
    return _more(goal, ours, theirs)


def _more(goal: Goal, ours: np.ndarray, theirs: np.ndarray) -> bool:
    """Check whether the worst case, or the mean of all, is more by over two standard errors, seed by seed.

    The difference is that of the worst cases; the worst of the differences would be above zero by chance alone.
    """
    gaps = (ours.max(axis=0) - theirs.max(axis=0)) if goal.worst else (ours - theirs).mean(axis=0)
    error = gaps.std(ddof=1) / math.sqrt(len(gaps)) if len(gaps) > 1 else 0.0
    return bool(np.isnan(gaps).any() or gaps.mean() > _SURE * error)
