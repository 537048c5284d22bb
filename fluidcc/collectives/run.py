"""One run of jobs under one scheme: when each transfer began and ended, and what follows from that."""

from __future__ import annotations

import dataclasses
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from fluidcc.collectives.engines import Outcome, engine_of
from fluidcc.collectives.goal import Schedule
from fluidcc.collectives.graph import Graph, Laid, ended, laid_out
from fluidcc.collectives.jobs import Job, Work, placed, work_of
from fluidcc.fabrics.slowdown import alone
from fluidcc.fabrics.topology import Topology
from fluidcc.results.metrics import jain
from fluidcc.results.schema import plain
from fluidcc.surface import constructor, public

PATIENCE = 20.0  # times the time on an idle fabric, for which is waited
_SAMPLES = 100  # of links, within the time on an idle fabric,
_MOST_SAMPLES = 4000  # and in all


@dataclasses.dataclass(frozen=True)
class Case:
    """What is run: jobs, or a schedule; on which hosts decide placement and seed."""

    name: str
    jobs: tuple[Job, ...] = ()
    schedule: Schedule | None = None

    @property
    def says(self) -> str:
        """In a few words."""
        if self.schedule is not None:
            return f"{self.name}: {len(self.schedule.operations):,} operations of {self.schedule.ranks} ranks"
        told = list(dict.fromkeys(job.says for job in self.jobs))
        each = f"{len(self.jobs)} jobs: " if len(self.jobs) > 1 else ""
        return each + "; ".join(told)

    def work(self, topology: Topology, placement: Any, seed: int) -> Work:
        """Build the graph on its hosts."""
        jobs = self.jobs
        if self.schedule is not None:
            jobs = (Job("broadcast", ranks=self.schedule.ranks),)  # to be placed alone
        hosts = placed(jobs, topology, placement, seed)
        if self.schedule is None:
            return work_of(jobs, hosts, seed)
        graph, ends = self.schedule.build()
        last = [graph.wait(rank, 0.0, each) for rank, each in enumerate(ends) if each]
        return Work(graph, hosts[0], [[[]]], [[last]])


@constructor()
@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class CollectiveRun:
    """What one scheme did with jobs.

    Parameters
    ----------
    scheme, engine, case : str
        Which; ``case`` is the kind of collective, or the file's name.
    seed : int
        Of ECMP, placement at random, skew, and the engine.
    numbers : dict
        As `as_dict` has them.
    transfers : xarray.Dataset
        Over ``transfer``: ``job``, ``iteration``, ``step``, ``rank``, ``source`` and ``target`` (hosts), ``size``
        [bytes], ``began`` and ``finished`` [s] (NaN if not), ``alone`` [s].
    load : xarray.Dataset
        Over ``time`` [s] and ``tier``: ``mean`` and ``most``, of the tier's links, of what each sent over its rate.
    """

    scheme: str
    engine: str
    case: str
    seed: int
    numbers: dict[str, Any]
    transfers: xr.Dataset
    load: xr.Dataset

    def __repr__(self) -> str:
        """What ran, and how long it took."""
        took, lacking = self.numbers["time_s"], self.numbers["unfinished"]
        told = f"{lacking:,} transfers unfinished" if took is None else f"{took * 1e3:.4g} ms"
        return f"<CollectiveRun {self.case}, {self.scheme}, seed {self.seed}: {told}>"

    @public()
    def as_dict(self) -> dict[str, Any]:
        """Everything but the transfers, as ``--json`` prints it.

        Returns
        -------
        dict
            ``time_s`` of one collective, of the slowest job, and its ``bus_bandwidth_bytes_per_s``; ``total_s`` of all;
            ``step_time_s`` of transfers, from start to last ACK, and ``iteration_time_s`` of collectives; ``jobs``,
            each's; ``jain`` of their bus bandwidths; ``slowest_path``; ``critical_path``; ``pauses`` and ``paused_s``
            by the tier that was paused. None for what is not finite.
        """
        head = {"collective": self.case, "scheme": self.scheme, "engine": self.engine, "seed": self.seed}
        return plain({**head, **self.numbers})


def run(
    case: Case,
    topology: Topology,
    name: str,
    chosen: Mapping[str, Any],
    seed: int,
    *,
    engine: str = "packet",
    placement: Any = "block",
    until: float | None = None,
    network: Mapping[str, Any] | None = None,
    separately: bool = False,
    report: Callable[[float], None] | None = None,
) -> CollectiveRun:
    """Run jobs to the end, or as long as is waited for them.

    Parameters
    ----------
    case : Case
    topology : Topology
    name : str
        Of the scheme, in results.
    chosen : mapping
        Options of `Topology.scenario`.
    seed : int
    engine : str
    placement
        As of `placed`.
    until : float
        Horizon [s]; by default `PATIENCE` times the time on an idle fabric.
    network : mapping
        Fields of the scenario in place of the preset's.
    separately : bool
        Whether each job also runs alone, on the same hosts, so that ``jobs`` have a ``slowdown``.
    report : callable
        Told the share that is done.

    Returns
    -------
    CollectiveRun

    Raises
    ------
    InputError
        If jobs and topology do not go together, or a value makes no sense.
    """
    began = time.perf_counter()
    simulated = engine_of(engine)
    work = case.work(topology, placement, seed)
    laid = laid_out(work.graph, topology, work.hosts, seed, {**chosen, **(network or {})})
    idle = alone(laid.scenario)
    expected = _expected(work.graph, idle, laid)
    horizon = PATIENCE * expected if until is None else until
    interval = max(expected / _SAMPLES, horizon / _MOST_SAMPLES)
    runs = 1 + (len(case.jobs) if separately and len(case.jobs) > 1 else 0)

    def told(share: float) -> None:
        if report is not None:  # most of it is over when the idle fabric would be done, if it is much slower, never
            report(min(0.99, share * horizon / (share * horizon + expected)) / runs)

    setup_s = time.perf_counter() - began
    found = simulated(laid.scenario, horizon, seed=seed, interval=interval, report=told)
    transfers = _transfers(work, laid, found, idle)
    numbers = _numbers(case, work, laid, found, transfers)
    numbers |= _pauses(topology, found)
    numbers |= {"idle_s": expected, "until_s": horizon, "setup_s": setup_s, **found.numbers}
    if runs > 1:
        hosts = placed(case.jobs, topology, placement, seed)
        for j, job in enumerate(case.jobs):
            single = Case(case.name, (dataclasses.replace(job, ranks=tuple(hosts[j]), **_given(job)),))
            mine = run(single, topology, name, chosen, seed, engine=engine, until=until, network=network).numbers
            both = numbers["jobs"][j]["time_s"], mine["time_s"]
            numbers["jobs"][j]["slowdown"] = None if None in both else both[0] / both[1]
            if report is not None:
                report((j + 2) / runs)
    return CollectiveRun(name, engine, case.name, seed, numbers, transfers, _load(topology, laid, found))


def _given(job: Job) -> dict[str, Any]:
    """Fields that a job takes back as they were given, without what would change nothing."""
    found: dict[str, Any] = {"chunks": None if job.chunks == 1 else job.chunks, "skew": job.skew or None}
    return found | {"server_rate": None if job.server == 1 else f"{job.server_rate!r}B/s"}


def _expected(graph: Graph, idle: np.ndarray, laid: Laid) -> float:
    """Time on an idle fabric [s], from below: the longest chain of transfers alone, or the fullest link's bytes."""
    sends = np.array(graph.size) > 0
    scenario, load = laid.scenario, defaultdict[Any, float](float)
    for i in np.flatnonzero(sends).tolist():
        flow = scenario.flows[i]
        load[flow.source] += graph.size[i] / float(flow.line_rate)
        for link in flow.path:
            load[link] += graph.size[i] / float(scenario.links[link].rate)
    some = scenario.flows[int(np.argmax(sends))]
    wire = float(scenario.wire_packet_of(some)) / float(scenario.packet_size)
    return max(graph.longest(np.where(sends, idle, 0.0)), wire * max(load.values()))


def _transfers(work: Work, laid: Laid, found: Outcome, idle: np.ndarray) -> xr.Dataset:
    """What crosses the fabric, and copies inside servers."""
    graph = laid.graph
    listed = np.flatnonzero(np.array(graph.step) >= 0)
    hosts = np.array(work.hosts)
    source, target = np.array(graph.source)[listed], np.array(graph.target)[listed]
    sends = np.array(graph.size)[listed] > 0
    began = found.began[listed]
    delay = np.array(graph.delay)[listed]
    columns = {
        "job": np.array(graph.job)[listed],
        "iteration": np.array(graph.iteration)[listed],
        "step": np.array(graph.step)[listed],
        "rank": source,
        "source": hosts[source],
        "target": hosts[target],
        "size": np.array(graph.size)[listed],
        "began": np.where(sends, began, began - delay),
        "finished": np.where(sends, found.finished[listed], began),
        "alone": np.where(sends, idle[listed], delay),
    }
    units = {"size": "bytes", "began": "s", "finished": "s", "alone": "s"}
    return xr.Dataset({name: ("transfer", values, {"units": units.get(name, "1")}) for name, values in columns.items()})


def _numbers(case: Case, work: Work, laid: Laid, found: Outcome, transfers: xr.Dataset) -> dict[str, Any]:
    ends = ended(laid.graph, found.began, found.finished)
    rows = []
    for j, (begins, lasts) in enumerate(zip(work.begins, work.ends, strict=True)):
        took = [
            float(ends[last].max() - (ends[first].min() if first else 0.0))
            for first, last in zip(begins, lasts, strict=True)
        ]
        mean = float(np.mean(took))
        job = case.jobs[j] if case.jobs else None
        rows.append(
            {
                "name": (job.name if job and job.name else f"job {j}"),
                "kind": job.kind if job else "schedule",
                "ranks": job.count if job else len(work.hosts),
                "bytes": job.bytes if job else float(np.sum(laid.graph.size)),
                "time_s": mean if np.isfinite(mean) else None,
                "bus_bandwidth_bytes_per_s": job.factor * job.bytes / mean if job and mean > 0 else None,
                "iteration_times_s": took,
                "end_s": float(ends[lasts[-1]].max()),
            }
        )
    late = np.array([row["time_s"] if row["time_s"] is not None else np.inf for row in rows])
    slowest = rows[int(late.argmax())]
    duration = (transfers["finished"] - transfers["began"]).values
    real = transfers["size"].values > 0
    done = np.isfinite(duration) & real
    every = np.array([each for row in rows for each in row["iteration_times_s"]])
    rates = [row["bus_bandwidth_bytes_per_s"] for row in rows]
    unfinished = int((real & ~np.isfinite(duration)).sum())
    complete = bool(np.isfinite(ends).all())
    return {
        **{key: slowest[key] for key in ("ranks", "bytes", "time_s", "bus_bandwidth_bytes_per_s")},
        "total_s": max(row["end_s"] for row in rows) if complete else None,
        "transfers": int(real.sum()),
        "unfinished": unfinished,
        "step_time_s": _tail(duration[done]),
        "iteration_time_s": _tail(every[np.isfinite(every)]) if np.isfinite(every).all() else _tail(every[:0]),
        "jain": float(jain(np.array(rates, float))) if len(rows) > 1 and all(rates) and complete else None,
        "jobs": rows,
        "slowest_path": _slowest(laid, transfers, duration, done),
        "critical_path": _critical(laid.graph, ends) if complete else None,
    }


def _tail(values: np.ndarray) -> dict[str, float | None]:
    if not len(values):
        return dict.fromkeys(("mean", "p50", "p99", "max"))
    p50, p99 = np.percentile(values, [50, 99])
    return {"mean": float(values.mean()), "p50": float(p50), "p99": float(p99), "max": float(values.max())}


def _slowest(laid: Laid, transfers: xr.Dataset, duration: np.ndarray, done: np.ndarray) -> dict[str, Any] | None:
    """The path whose transfers took longest, on average, over what they would have taken alone."""
    listed = np.flatnonzero(np.array(laid.graph.step) >= 0)
    paths: dict[Any, list[float]] = defaultdict(list)
    idle = transfers["alone"].values
    for k in np.flatnonzero(done).tolist():
        flow = laid.scenario.flows[int(listed[k])]
        paths[flow.source, flow.target, flow.path].append(duration[k] / idle[k])
    if not paths:
        return None
    source, target, path = max(paths, key=lambda key: float(np.mean(paths[key])))
    values = paths[source, target, path]
    names = [laid.scenario.links[i].name for i in path]
    return {
        "source": int(source),
        "target": int(target),
        "links": names,
        "transfers": len(values),
        "slowdown": float(np.mean(values)),
    }


def _critical(graph: Graph, ends: np.ndarray) -> dict[str, Any]:
    """What the last to end had waited for: transfers, and of the time what passed on the fabric and in ranks."""
    chain = graph.critical(ends)
    waited = sum(graph.delay[i] for i in chain)
    crossed = [i for i in chain if graph.size[i] > 0]
    ranks = [graph.source[i] for i in crossed]
    return {
        "transfers": len(crossed),
        "ranks": len(set(ranks)),
        "fabric_s": float(ends[chain[-1]] - waited),
        "compute_s": float(waited),
    }


def _pauses(topology: Topology, found: Outcome) -> dict[str, dict[str, Any]]:
    """PAUSE frames that each tier's ports received, and for how long these stood still, all ports together."""
    tiers = topology.tiers
    names = {str(node): f"tier {tier}" for node, tier in tiers.items()}
    frames: dict[str, Any] = {"hosts": 0} | {f"tier {tier}": 0 for tier in sorted(set(tiers.values()))}
    seconds = dict.fromkeys(frames, 0.0)
    for node, (count, spent) in found.pauses.items():
        frames[names.get(node, "hosts")] += count
        seconds[names.get(node, "hosts")] += spent
    return {"pauses": frames, "paused_s": seconds}


def _load(topology: Topology, laid: Laid, found: Outcome) -> xr.Dataset:
    """What links sent over their rates, between samples, by the tiers that they join."""
    tiers: dict[str, str] = {str(node): f"tier {tier}" for node, tier in topology.tiers.items()}
    groups: dict[str, list[int]] = defaultdict(list)
    links = laid.scenario.links[: laid.links]
    for i, link in enumerate(links):
        groups[f"{tiers[link.source]} to {tiers.get(link.target, 'hosts')}"].append(i)
    rates = np.array([float(link.rate) for link in links])
    ends = np.nanmax(np.concatenate([found.finished, found.began, [0.0]]))
    kept = int(min(len(found.times), np.searchsorted(found.times, ends) + 1))
    times, sent = found.times[:kept], found.sent[:kept, : len(links)]
    share = np.diff(sent, axis=0) / np.diff(times)[:, None] / rates if kept > 1 else np.zeros((0, len(links)))
    names: Sequence[str] = sorted(groups)
    return xr.Dataset(
        {
            "mean": (("time", "tier"), np.stack([share[:, groups[name]].mean(axis=1) for name in names], axis=1)),
            "most": (("time", "tier"), np.stack([share[:, groups[name]].max(axis=1) for name in names], axis=1)),
        },
        coords={"time": (times[1:] + times[:-1]) / 2, "tier": list(names)},
    )
