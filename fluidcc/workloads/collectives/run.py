"""One run of jobs under one scheme: when each transfer began and ended, and the metrics that follow from that."""

from __future__ import annotations

import dataclasses
import json
import os
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from fluidcc.engines.common.bounds import MOST_TIME
from fluidcc.errors import InputError
from fluidcc.files import read_netcdf, write_netcdf
from fluidcc.results.metrics import jain
from fluidcc.results.schema import plain
from fluidcc.surface import constructor, public
from fluidcc.workloads.collectives.algorithms import KINDS
from fluidcc.workloads.collectives.engines import Outcome, checked, engine_of
from fluidcc.workloads.collectives.graph import Graph
from fluidcc.workloads.collectives.jobs import Job, Replay, Work, work_of
from fluidcc.workloads.collectives.mapping import Laid, NoRoomError, laid_out, placed
from fluidcc.workloads.fabrics.slowdowns import ends_of
from fluidcc.workloads.fabrics.topology import Topology

PATIENCE = 20.0  # times the time on an idle fabric, for which is waited
_SAMPLES = 100  # of links, within the time on an idle fabric,
_MOST_SAMPLES = 4000  # and in all


def chain_of(laid: Laid, found: Outcome) -> list[int]:
    """Return the places of what the last to end had waited for, in order; none if something has not ended."""
    if not np.isfinite(laid.graph.ended(found.began, found.finished)).all():
        return []
    return laid.graph.critical(found.began, found.left, found.arrived)


def transfers_of(work: Work, laid: Laid, found: Outcome, idle: np.ndarray, chain: Sequence[int]) -> xr.Dataset:
    """Return a table of the transfers that cross the fabric, and of copies inside servers."""
    graph = laid.graph
    listed = np.flatnonzero(graph.step >= 0)
    hosts = np.array(work.hosts)
    source, target = graph.source[listed], graph.target[listed]
    sends, began, delay = graph.sends[listed], found.began[listed], graph.delay[listed]
    columns = {
        "job": graph.job[listed],
        "iteration": graph.iteration[listed],
        "step": graph.step[listed],
        "rank": source,
        "source": hosts[source],
        "target": hosts[target],
        "size": graph.size[listed],
        "began": np.where(sends, began, began - delay),
        "finished": np.where(sends, found.finished[listed], began),
        "left": np.where(sends, found.left[listed], began),
        "arrived": np.where(sends, found.arrived[listed], began),
        "alone": np.where(sends, idle[listed], delay),
        "critical": np.isin(listed, np.array(chain, int)),
    }
    units = {"size": "bytes"} | dict.fromkeys(("began", "finished", "left", "arrived", "alone"), "s")
    return xr.Dataset({name: ("transfer", values, {"units": units.get(name, "1")}) for name, values in columns.items()})


def numbers_of(
    jobs: Sequence[Job | Replay], work: Work, laid: Laid, found: Outcome, transfers: xr.Dataset, chain: Sequence[int]
) -> dict[str, Any]:
    """Times of jobs, tails of steps, and what held them up, as `CollectiveRun.as_dict` says."""
    ends = laid.graph.ended(found.began, found.finished)
    rows = []
    for j, (begins, lasts) in enumerate(zip(work.begins, work.ends, strict=True)):
        took = [
            float(ends[last].max() - (ends[first].min() if first else 0.0))
            for first, last in zip(begins, lasts, strict=True)
        ]
        mean = float(np.mean(took))
        job = jobs[j]
        size = float(laid.graph.size[laid.graph.job == j].sum()) / job.steps if isinstance(job, Replay) else job.bytes
        rows.append(
            {
                "name": job.name or f"job {j}",
                "kind": "schedule" if isinstance(job, Replay) else job.kind,
                "ranks": job.count,
                "bytes": size,
                "time_s": mean if np.isfinite(mean) else None,
                "bus_bandwidth_bytes_per_s": (
                    None if isinstance(job, Replay) or not mean > 0 else job.factor * size / mean
                ),
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
        "critical_path": _critical(laid.graph, found, chain) if chain else None,
    }


def _tail(values: np.ndarray) -> dict[str, float | None]:
    if not len(values):
        return dict.fromkeys(("mean", "p50", "p99", "max"))
    p50, p99 = np.percentile(values, [50, 99])
    return {"mean": float(values.mean()), "p50": float(p50), "p99": float(p99), "max": float(values.max())}


def _slowest(laid: Laid, transfers: xr.Dataset, duration: np.ndarray, done: np.ndarray) -> dict[str, Any] | None:
    """The path whose transfers took longest, on average, over what they would have taken alone."""
    if not done.any():
        return None
    flows = laid.connections.flows
    numbers: dict[Any, int] = {}
    path = np.array([numbers.setdefault((flow.source, flow.target, flow.path), len(numbers)) for flow in flows])
    mine = path[laid.connection[np.flatnonzero(laid.graph.step >= 0)[done]]]
    total = np.bincount(mine, duration[done] / transfers["alone"].values[done], len(numbers))
    count = np.bincount(mine, minlength=len(numbers))
    slowest = int(np.argmax(total / np.maximum(count, 1)))
    source, target, links = list(numbers)[slowest]
    return {
        "source": int(source),
        "target": int(target),
        "links": [laid.connections.links[i].name for i in links],
        "transfers": int(count[slowest]),
        "slowdown": float(total[slowest] / count[slowest]),
    }


def _critical(graph: Graph, found: Outcome, chain: Sequence[int]) -> dict[str, Any]:
    """Measure the critical path: transfers and ranks on it, and its time on the fabric and in ranks [s]."""
    waited = sum(graph.delay[i] for i in chain)
    crossed = [i for i in chain if graph.size[i] > 0]
    ranks = [graph.source[i] for i in crossed]
    return {
        "transfers": len(crossed),
        "ranks": len(set(ranks)),
        "fabric_s": float(found.began[chain[-1]] - waited),
        "compute_s": float(waited),
    }


def pauses_of(topology: Topology, found: Outcome) -> dict[str, Any]:
    """PAUSE frames that ports received, and for how long these stood still: by tier, all its ports, and by port."""
    tiers = topology.tiers
    names = {str(node): f"tier {tier}" for node, tier in tiers.items()}
    frames: dict[str, Any] = {"hosts": 0} | {f"tier {tier}": 0 for tier in sorted(set(tiers.values()))}
    seconds = dict.fromkeys(frames, 0.0)
    ports: list[dict[str, Any]] = []
    for port, (count, spent) in found.pauses.items():
        tier = names.get(port.partition("->")[0], "hosts")
        frames[tier] += count
        seconds[tier] += spent
        ports.append({"port": port, "tier": tier, "pauses": count, "paused_s": spent})
    ports.sort(key=lambda each: -each["pauses"])
    return {"pauses": frames, "paused_s": seconds, "paused_ports": ports}


def load_of(topology: Topology, laid: Laid, found: Outcome) -> xr.Dataset:
    """Compute what links sent over their rates, between samples, by the tiers that they join."""
    tiers: dict[str, str] = {str(node): f"tier {tier}" for node, tier in topology.tiers.items()}
    groups: dict[str, list[int]] = defaultdict(list)
    links = laid.connections.links
    for i, link in enumerate(links):
        groups[f"{tiers[link.source]} to {tiers.get(link.target, 'hosts')}"].append(i)
    rates = np.array([float(link.rate) for link in links])
    ends = np.nanmax(np.concatenate([found.finished, found.began, [0.0]]))
    kept = int(min(len(found.times), np.searchsorted(found.times, ends) + 1))
    times, sent = found.times[:kept], found.sent[:kept, : len(links)]
    share = np.diff(sent, axis=0) / np.diff(times)[:, None] / rates if kept > 1 else np.zeros((0, len(links)))
    names: Sequence[str] = sorted(groups)
    used = {name: [i for i in groups[name] if sent[-1:, i].any()] or groups[name] for name in names}
    return xr.Dataset(
        {
            "mean": (("time", "tier"), np.stack([share[:, used[name]].mean(axis=1) for name in names], axis=1)),
            "most": (("time", "tier"), np.stack([share[:, groups[name]].max(axis=1) for name in names], axis=1)),
        },
        coords={"time": (times[1:] + times[:-1]) / 2, "tier": list(names)},
    )


@dataclasses.dataclass(frozen=True)
class Case:
    """Case to run: jobs, perhaps from a file, at these lines. Placement and seed choose the hosts."""

    name: str
    jobs: tuple[Job | Replay, ...] = ()
    file: str = ""
    lines: tuple[int, ...] = ()

    @property
    def says(self) -> str:
        """Description in a few words."""
        told = list(dict.fromkeys(job.says for job in self.jobs))
        each = f"{len(self.jobs)} jobs: " if len(self.jobs) > 1 else ""
        return each + "; ".join(told)

    @property
    def identity(self) -> bytes:
        """Identity of what is run: equal for equal jobs or operations."""
        operations = [job.schedule.operations for job in self.jobs if isinstance(job, Replay)]
        return repr((self.jobs, operations)).encode()

    def work(self, topology: Topology, placement: Any, seed: int) -> Work:
        """Build the graph on its hosts."""
        try:
            hosts = placed(self.jobs, topology, placement, seed)
        except NoRoomError as error:
            if not self.file:
                raise
            line = f", line {self.lines[error.job]}" if self.lines else ""
            raise InputError(f"{self.file}{line}: {error}") from None
        return work_of(self.jobs, hosts, seed)


@constructor()
@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class CollectiveRun:
    """Result of jobs under one scheme.

    Parameters
    ----------
    scheme, engine, case : str
        Names; ``case`` is the kind of collective, or the file's name.
    seed : int
        Of ECMP, placement at random, skew, and the engine.
    numbers : dict
        As `as_dict` has them.
    transfers : xarray.Dataset
        Over ``transfer``: ``job``, ``iteration``, ``step``, ``rank``, ``source`` and ``target`` (hosts), ``size``
        [bytes], ``began`` and ``finished`` [s] (NaN if not), ``left`` and ``arrived`` [s], when its last packet left
        and its last byte arrived, ``alone`` [s], ``critical``, whether it is on the critical path.
    load : xarray.Dataset
        Over ``time`` [s] and ``tier``: what the tier's links sent over their rates, as ``mean`` over those that sent
        anything, if only ACKs, and as ``most``. Hosts' own links are not among them.
    """

    scheme: str
    engine: str
    case: str
    seed: int
    numbers: dict[str, Any]
    transfers: xr.Dataset
    load: xr.Dataset

    def __repr__(self) -> str:
        """Show the case, the scheme, the seed and the time that it took."""
        took, lacking = self.numbers["time_s"], self.numbers["unfinished"]
        told = f"{lacking:,} transfers unfinished" if took is None else f"{took * 1e3:.4g} ms"
        return f"<CollectiveRun {self.case}, {self.scheme}, seed {self.seed}: {told}>"

    @public()
    def as_dict(self) -> dict[str, Any]:
        """Return everything but the transfers, as ``--json`` prints it.

        Returns
        -------
        dict
            ``time_s`` of one collective, of the slowest job, and its ``bus_bandwidth_bytes_per_s``; ``total_s`` of all;
            ``step_time_s`` of transfers, from start to last ACK, and ``iteration_time_s`` of collectives; ``jobs``,
            each's; ``jain`` of their bus bandwidths; ``slowest_path``; ``critical_path``; ``pauses`` and ``paused_s``
            by the tier that was paused, and ``paused_ports``, each with its own; ``unchecked``, why a run by the fluid
            is not known to be as good as one by packets. None for what is not finite.
        """
        head = {"collective": self.case, "scheme": self.scheme, "engine": self.engine, "seed": self.seed}
        return plain({**head, **self.numbers})

    @public()
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write NetCDF: transfers and loads as they are, and the rest beside.

        Parameters
        ----------
        path : str or path

        Raises
        ------
        InputError
            If it cannot be written.
        """
        head = {"scheme": self.scheme, "engine": self.engine, "case": self.case, "seed": self.seed}
        tiers = [str(tier) for tier in self.load["tier"].values]
        text = json.dumps(plain({**head, "tiers": tiers, "numbers": self.numbers}))
        load = {f"load_{name}": (("time", "of_tier"), self.load[name].values) for name in self.load}
        dataset = self.transfers.assign(load).assign_coords(time=self.load["time"].values)
        write_netcdf(os.fspath(path), dataset.assign_attrs(run=text))


def read_collective(path: str | os.PathLike[str]) -> CollectiveRun:
    """Read what `CollectiveRun.save` wrote.

    Raises
    ------
    InputError
        If it is none.
    """
    dataset = read_netcdf(path, "a run of a collective").load()
    try:
        told = json.loads(dataset.attrs.pop("run"))
        coordinates = {"time": dataset["time"].values, "tier": told.pop("tiers")}
        load = {name: (("time", "tier"), dataset[f"load_{name}"].values) for name in ("mean", "most")}
        transfers = dataset.drop_vars(["time", *(f"load_{name}" for name in load)])
        return CollectiveRun(transfers=transfers, load=xr.Dataset(load, coords=coordinates), **told)
    except (KeyError, ValueError, TypeError):
        raise InputError(f"{path}: is no run of a collective; give a folder that collective wrote") from None


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
    unchecked: bool = False,
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
    unchecked : bool
        Whether the fluid also runs what it is known not to be as good for as packets.
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
    doubts = checked(laid, case.jobs, unchecked) if engine == "fluid" else []
    left, arrived, idle = ends_of(laid.connections, laid.connection, work.graph.size)
    expected = _expected(laid, left, arrived)
    if until is None and expected > MOST_TIME:
        raise InputError(
            f"{case.name}: takes more than {MOST_TIME:g} s on an idle fabric, the longest horizon; "
            "give less compute, fewer steps or bytes, or until (--until) for a part of it"
        )
    horizon = min(PATIENCE * expected, MOST_TIME) if until is None else until
    interval = max(expected / _SAMPLES, horizon / _MOST_SAMPLES)
    runs = 1 + (len(case.jobs) if separately and len(case.jobs) > 1 else 0)

    def told(share: float) -> None:
        if report is not None:
            report(min(0.99, share) / runs)

    setup_s = time.perf_counter() - began
    found = simulated(laid, horizon, seed=seed, interval=interval, expected=expected, report=told)
    chain = chain_of(laid, found)
    transfers = transfers_of(work, laid, found, idle, chain)
    numbers = numbers_of(case.jobs, work, laid, found, transfers, chain)
    numbers |= pauses_of(topology, found)
    numbers |= {
        "unchecked": doubts,
        "loss_recovery": laid.connections.loss_recovery,
        "idle_s": expected,
        "until_s": horizon,
        **found.numbers,
        "setup_s": setup_s + found.numbers["setup_s"],
    }
    if runs > 1:
        hosts = placed(case.jobs, topology, placement, seed)
        for j, job in enumerate(case.jobs):
            single = Case(case.name, (dataclasses.replace(job, ranks=tuple(hosts[j]), **_given(job)),))
            mine = run(
                single, topology, name, chosen, seed, engine=engine, until=until, network=network, unchecked=True
            ).numbers
            both = numbers["jobs"][j]["time_s"], mine["time_s"]
            numbers["jobs"][j]["slowdown"] = None if None in both else both[0] / both[1]
            if report is not None:
                report((j + 2) / runs)
    return CollectiveRun(name, engine, case.name, seed, numbers, transfers, load_of(topology, laid, found))


def _given(job: Job | Replay) -> dict[str, Any]:
    """Return fields that a job takes back as they were given, without what would change nothing."""
    found: dict[str, Any] = {"server_rate": None if job.server == 1 else f"{job.server_rate!r}B/s"}
    if isinstance(job, Job):
        found |= {"chunks": job.chunks if "chunks" in KINDS[job.kind].takes else None, "skew": job.skew or None}
    return found


def _expected(laid: Laid, left: np.ndarray, arrived: np.ndarray) -> float:
    """Bound the time on an idle fabric [s] from below: longest chain, or fullest link's bytes; ACKs take no room."""
    graph, scenario, load = laid.graph, laid.connections, defaultdict[Any, float](float)
    sizes = np.bincount(laid.connection[graph.sends], graph.size[graph.sends], len(scenario.flows))
    for flow, size in zip(scenario.flows, sizes.tolist(), strict=True):
        load[flow.source] += size / float(flow.line_rate)
        for link in flow.path if scenario.load_balancing == "flow" else flow.path[-1:]:  # the one that all must take
            load[link] += size / float(scenario.links[link].rate)
    wire = float(scenario.wire_packet_of(scenario.flows[0])) / float(scenario.packet_size)
    longest = graph.longest(np.where(graph.sends, left, 0.0), np.where(graph.sends, arrived, 0.0))
    return max(longest, wire * max(load.values()))
