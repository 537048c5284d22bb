"""One run of jobs under one scheme: when each transfer began and ended, and what follows from that."""

from __future__ import annotations

import dataclasses
import json
import os
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import xarray as xr

from fluidcc.engines.common.bounds import MOST_TIME
from fluidcc.errors import InputError
from fluidcc.files import read_netcdf, write_netcdf
from fluidcc.results.schema import plain
from fluidcc.surface import constructor, public
from fluidcc.workloads.collectives.algorithms import KINDS
from fluidcc.workloads.collectives.engines import engine_of
from fluidcc.workloads.collectives.jobs import Job, Replay, Work, work_of
from fluidcc.workloads.collectives.mapping import Laid, NoRoomError, laid_out, placed
from fluidcc.workloads.collectives.measures import chain_of, load_of, numbers_of, pauses_of, transfers_of
from fluidcc.workloads.collectives.validity import checked
from fluidcc.workloads.fabrics.slowdowns import ends_of
from fluidcc.workloads.fabrics.topology import Topology

PATIENCE = 20.0  # times the time on an idle fabric, for which is waited
_SAMPLES = 100  # of links, within the time on an idle fabric,
_MOST_SAMPLES = 4000  # and in all


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
