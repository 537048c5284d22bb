"""Collectives under schemes side by side, over seeds: their runs, and tables, pictures and files of them."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.builders.common import NETWORK
from fluidcc.engines.run_many import Place, run_all
from fluidcc.errors import InputError
from fluidcc.progress import Bar
from fluidcc.results.drawing import draw
from fluidcc.results.identity import Comparable
from fluidcc.results.schema import plain
from fluidcc.surface import constructor, keywords, public
from fluidcc.units import TIME, quantity, whole
from fluidcc.workloads.collectives.algorithms import KINDS
from fluidcc.workloads.collectives.engines import engine_of
from fluidcc.workloads.collectives.jobs import Job, Replay
from fluidcc.workloads.collectives.jobs_file import jobs_and_lines, read_schedule
from fluidcc.workloads.collectives.run import Case, CollectiveRun, read_collective, run
from fluidcc.workloads.collectives.schedule import Schedule
from fluidcc.workloads.fabrics.run_cache import code, folder_of, kept_or_made, signature
from fluidcc.workloads.fabrics.shapes import named_topology
from fluidcc.workloads.fabrics.study import check_ran, contenders, ratio, seeds_of, spread
from fluidcc.workloads.fabrics.topology import Topology

if TYPE_CHECKING:
    from fluidcc.results.drawing import Picture

_MOST_ROWS = 200_000  # of a table as text
_SPREAD = ("time_s", "bus_bandwidth_bytes_per_s", "jain")
_MOST = {"jain": 1.0}
_LONGEST = 1e3  # s
_OF_SHAPE = tuple(name for name in keywords(named_topology) if name != "name")
_INSIDE = ("server", "server_rate")  # of a file of operations, which says the rest
_OF_JOB = ("bytes", "steps", "compute", "chunks", "algorithm", "skew", "server", "server_rate")


@constructor()
@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class CollectiveStudy(Comparable):
    """Runs of collectives on one fabric.

    Parameters
    ----------
    runs : tuple of CollectiveRun
        All seeds of the first kind under the first scheme, then those under the next, then of the next kind.
    topology : Topology
    says : tuple of str
        What is run, in words, of each kind.
    words : tuple of str
        What is not as in the files of topology and schedule.
    """

    runs: tuple[CollectiveRun, ...]
    topology: Topology
    says: tuple[str, ...]
    words: tuple[str, ...] = ()

    @property
    def schemes(self) -> list[str]:
        """Names of the schemes, in the order in which they were given."""
        return list(dict.fromkeys(each.scheme for each in self.runs))

    @property
    def cases(self) -> list[str]:
        """Kinds of collectives, or the file's name."""
        return list(dict.fromkeys(each.case for each in self.runs))

    @property
    def seeds(self) -> list[int]:
        """Seeds that every scheme ran with."""
        return list(dict.fromkeys(each.seed for each in self.runs))

    def __repr__(self) -> str:
        """Kinds, schemes and seeds."""
        return (
            f"<CollectiveStudy {', '.join(self.says)}: {', '.join(self.schemes)}, "
            f"{len(self.seeds)} seed{'s' * (len(self.seeds) != 1)}>"
        )

    def _case(self, case: str | None) -> str:
        """Return a kind that was run, the first by default."""
        if case is None:
            return self.cases[0]
        if case not in self.cases:
            raise InputError(f"case: {repr(case)[:40]} was not run; write one of {', '.join(self.cases)[:200]}")
        return case

    @public()
    def of(self, scheme: str, case: str | None = None) -> list[CollectiveRun]:
        """Return the runs of a scheme.

        Parameters
        ----------
        scheme : str
        case : str, optional
            Of one kind; all by default.

        Returns
        -------
        list of CollectiveRun
        """
        return [each for each in self.runs if each.scheme == scheme and case in (None, each.case)]

    @public()
    def against(self, scheme: str, other: str) -> dict[str, dict[str, float]]:
        """Ratios of a scheme's times to another's, seed by seed, as both have the same paths.

        Parameters
        ----------
        scheme, other : str
            Names of two that ran.

        Returns
        -------
        dict
            For each kind geometric ``mean``, ``low`` and ``high`` (95 %); NaN where a seed did not end.

        Raises
        ------
        InputError
            If one of them did not run.
        """
        pairs = self.pairs(scheme, other)
        return {case: ratio(np.where(np.isfinite(times).all(), times, np.nan)) for case, times in pairs.items()}

    @public()
    def pairs(self, scheme: str, other: str) -> dict[str, np.ndarray]:
        """Times of two schemes side by side, seed by seed.

        Parameters
        ----------
        scheme, other : str
            Names of two that ran.

        Returns
        -------
        dict of ndarray, shape (seeds, 2)
            For each kind [s]; NaN where a seed did not end.

        Raises
        ------
        InputError
            If one of them did not run.
        """
        check_ran(self.schemes, scheme, other)

        def times(case: str) -> list[list[float | None]]:
            return [[run.numbers["time_s"] for run in self.of(name, case)] for name in (scheme, other)]

        return {case: np.array(times(case), float).T for case in self.cases}

    @public()
    def summary(self) -> list[dict[str, Any]]:
        """Means over seeds with 95 % intervals, of each kind and scheme.

        Returns
        -------
        list of dict
            ``collective``, ``scheme``, ``seeds``, ``unfinished`` transfers in all, ``complete``, how many seeds ended;
            ``time_s``, ``bus_bandwidth_bytes_per_s`` and ``jain``, each with ``mean``, ``low`` and ``high``: None
            where a seed did not end, and for the ends of an interval of fewer than three seeds; ``pfc_pauses``,
            ``drops``, ``trims``, ``retransmissions``, sums;
            ``unchecked``, why runs by the fluid are not known to be as good as packets.
        """
        rows = []
        for case in self.cases:
            for scheme in self.schemes:
                runs = self.of(scheme, case)
                complete = sum(run.numbers["time_s"] is not None for run in runs)
                row: dict[str, Any] = {"collective": case, "scheme": scheme, "seeds": len(runs), "complete": complete}
                row["unfinished"] = sum(run.numbers["unfinished"] for run in runs)
                for name in _SPREAD:
                    values = [run.numbers[name] for run in runs]
                    known = complete == len(runs) and None not in values
                    row[name] = spread(values if known else [], _MOST.get(name, math.inf))
                for name in ("pfc_pauses", "drops", "trims", "retransmissions"):
                    row[name] = sum(run.numbers[name] for run in runs)
                row["unchecked"] = list(dict.fromkeys(doubt for run in runs for doubt in run.numbers["unchecked"]))
                rows.append(row)
        return plain(rows)

    @public()
    def as_dict(self) -> dict[str, Any]:
        """Return every run, and means over seeds, as ``--json`` prints it.

        Returns
        -------
        dict
            ``traffic``, ``hosts``, ``summary`` and ``runs``; None for what is not finite.
        """
        return {
            "traffic": list(self.says),
            "hosts": len(self.topology.hosts),
            "summary": self.summary(),
            "runs": [each.as_dict() for each in self.runs],
        }

    @public()
    def plot(self, case: str | None = None) -> Picture:
        """Draw when each rank was sending, by step: a panel for each scheme, of the first seed.

        Parameters
        ----------
        case : str, optional
            Kind of collective; the first by default.

        Returns
        -------
        Picture

        Raises
        ------
        InputError
            If there is no such kind.
        """
        return draw("plot_steps", self, self._case(case))

    @public()
    def plot_load(self, case: str | None = None) -> Picture:
        """Draw the utilisation of links over time, by tier, of the first seed.

        Parameters
        ----------
        case : str, optional
            Kind of collective; the first by default.

        Returns
        -------
        Picture

        Raises
        ------
        InputError
            If there is no such kind.
        """
        return draw("plot_load", self, self._case(case))

    @public()
    def write(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write pictures of each kind, a table of all runs, and one of each first seed's transfers (many as NetCDF).

        Parameters
        ----------
        folder : str or path
            Made if it is not there.

        Returns
        -------
        list of Path

        Raises
        ------
        InputError
            If it cannot be written.
        """
        import pandas as pd

        from fluidcc.files import write_atomically

        place = folder_of(folder)
        assert place is not None
        written = []
        for case in self.cases:
            stem = Path(case).stem
            written.append(self.plot(case).write(place / f"{stem}-steps.png"))
            written.append(self.plot_load(case).write(place / f"{stem}-load.png"))
            for scheme in self.schemes:
                run = self.of(scheme, case)[0]
                path = place / f"{stem}-{scheme}-transfers.csv"
                if run.transfers.sizes["transfer"] > _MOST_ROWS:
                    run.save(path.with_suffix(".nc"))
                    written.append(path.with_suffix(".nc"))
                    continue
                table = run.transfers.to_dataframe().to_csv(index=False)
                written.append(write_atomically(path, table.encode()))
        table = pd.json_normalize([each.as_dict() for each in self.runs]).drop(columns=["jobs", "paused_ports"])
        written.append(write_atomically(place / "collectives.csv", table.to_csv(index=False).encode()))
        return written


@public(passes_on=[*_OF_JOB, *_OF_SHAPE, *NETWORK])
def collective(
    kinds: str | os.PathLike[str] | Job | Replay | Schedule | Sequence[Any],
    topology: str | os.PathLike[str] | Topology = "leaf-spine:4x4x16",
    schemes: str | Sequence[str] | Mapping[str, Any] = "hpcc",
    *,
    hosts: int | None = None,
    jobs: int | None = None,
    placement: Any = "block",
    preset: str | None = None,
    engine: str = "packet",
    seeds: int | Sequence[int] = 1,
    until: Any = None,
    separately: bool = False,
    threads: int | None = None,
    dask: Any = None,
    unchecked: bool = False,
    folder: str | os.PathLike[str] | None = None,
    **options: Any,
) -> CollectiveStudy:
    """Simulate how long collectives take on a fabric, under one scheme or several side by side.

    Transfers wait for each other as ranks do: each begins when its rank has received what it passes on. Transfers
    that have not ended when the run ends are counted, and are in no mean.

    Parameters
    ----------
    kinds : str, path, Job, Replay, Schedule, or sequence of Job and Replay
        Kinds of collectives, in one text with commas, one run each; or jobs, side by side; or the file of these: TOML
        (`fluidcc.collectives.read_jobs`), a GOAL schedule, a SimAI workload, or Chakra execution traces.
    topology : str, path or Topology
        As of `fluidcc.fabrics.named_topology`.
    schemes : str, sequence of str, or mapping
        As of `fabric`.
    hosts : int
        How many are used, all by default; of kinds, and of a SimAI workload that does not say.
    jobs : int
        How many equal jobs do each kind side by side, with as many ranks each; 1 by default.
    placement : {"block", "round-robin", "random"} or sequence of int
        Hosts in order, one of each rack in turn, at random by the seed, or as listed.
    preset : str
        Of schemes given by name; by default ``hpcc-eval``: switches of 32 MB with PFC.
    engine : {"packet", "fluid"}
        Packets, or the dynamics at flow level, for schemes and patterns of which these were measured to be as good.
    seeds : int or sequence of int
        How many, from 1, or which: of ECMP's hashes, random placement, skew and random marks.
    until : quantity
        How long is waited [s]; by default 20 times the time on an idle fabric.
    separately : bool
        Whether each of several jobs also runs alone, on its hosts: its ``slowdown`` is the ratio.
    threads : int
        Runs at once; as many as cores by default.
    dask : str or distributed.Client
        Scheduler that runs them; the cores of this machine by default.
    unchecked : bool
        Whether the fluid also runs what it is known not to be as good for as packets; such runs are marked.
    folder : str or path, optional
        Every run is kept there when it ends, and what an earlier call kept is not run again.
    **options
        Of kinds, fields of `fluidcc.collectives.Job`: ``bytes``, ``steps``, ``compute``, ``chunks``, ``algorithm``,
        ``skew``, ``server``, ``server_rate``; ``rate``, ``fabric_rate``, ``delay`` and ``oversubscription`` of the
        topology; and fields of `Scenario`, which go before the preset's.

    Returns
    -------
    CollectiveStudy

    Raises
    ------
    InputError
        If something is unknown, does not go together, or has no room.

    Examples
    --------
    >>> found = collective("all-reduce", "leaf-spine:1x1x4", "none", bytes="40KB")
    >>> found.runs[0].numbers["unfinished"]
    0
    """
    engine_of(engine)
    if not isinstance(schemes, (str, list, tuple, Mapping)):
        raise InputError(f"schemes: {repr(schemes)[:40]} names none; write for example 'hpcc,dcqcn'")
    if not isinstance(topology, (str, os.PathLike, Topology)):
        raise InputError(f"topology: {repr(topology)[:40]} is none; write for example 'leaf-spine:4x4x16'")
    chosen = contenders(schemes, preset)
    shape = {name: options[name] for name in _OF_SHAPE if options.get(name) is not None}
    if isinstance(topology, Topology):
        if shape:
            raise InputError(f"{next(iter(shape))}: a Topology has its own; change it there")
        fabric = topology
    else:
        fabric = named_topology(topology, **shape)
    given = {name: options[name] for name in _OF_JOB if options.get(name) is not None}
    cases = cases_of(kinds, fabric, hosts, jobs, given)
    numbers = seeds_of(seeds)
    settings: dict[str, Any] = {
        "engine": engine,
        "placement": placement,
        "until": None if until is None else _horizon(until),
        "network": {name: options[name] for name in NETWORK if name in options},
        "separately": separately is True,
        "unchecked": unchecked is True,
    }
    at_once = None if threads is None else whole(threads, 1, 1024, "threads")
    tasks = [(case, name, each, seed) for case in cases for name, each in chosen.items() for seed in numbers]
    runs = _all(tasks, fabric, settings, folder_of(folder), threads=at_once, dask=dask)
    replays = [job for case in cases for job in case.jobs if isinstance(job, Replay)]
    said = [line for job in replays for line in (*job.schedule.words, *job.schedule.unreceived)]
    words = [*fabric.words, *dict.fromkeys(said)]
    return CollectiveStudy(tuple(runs), fabric, tuple(case.says for case in cases), tuple(words))


def _horizon(until: Any) -> float:
    found = quantity(until, TIME, "until")
    if not 0 < found <= _LONGEST:
        raise InputError(f"until: {found:g} s is no horizon; write for example 10ms")
    return found


def cases_of(
    kinds: Any, topology: Topology, hosts: int | None, count: int | None, given: Mapping[str, Any]
) -> list[Case]:
    """Return the cases to run: one for each kind, or one of the jobs or the file.

    Raises
    ------
    InputError
        If a kind is unknown, or an option is given that a file or a job already sets.
    """
    listed = [kinds] if isinstance(kinds, (Job, Replay)) else kinds
    if isinstance(listed, os.PathLike) or (isinstance(listed, str) and _is_file(listed)):
        name = Path(listed).name
        of_jobs = str(listed).endswith(".toml")
        inside = {} if of_jobs else {key: value for key, value in given.items() if key in _INSIDE}
        rest = {key: value for key, value in given.items() if key not in inside}
        _refuse({"hosts": hosts if of_jobs else None, "jobs": count, **rest}, f"{name} says all that")
        if of_jobs:
            found, lines = zip(*jobs_and_lines(listed), strict=True)
            return [Case(name, found, file=str(listed)[:200], lines=lines)]
        total = len(topology.hosts)
        schedule = read_schedule(listed, total if hosts is None else whole(hosts, 2, total, "hosts"))
        _refuse({"hosts": None if schedule.ranks == hosts else hosts}, f"{name} is of {schedule.ranks} ranks")
        lines = () if schedule.files else (schedule.line,)
        return [Case(Path(schedule.name).name, (Replay(schedule, **inside),), file=schedule.name, lines=lines)]
    listed = [Replay(listed)] if isinstance(listed, Schedule) else listed
    if not isinstance(listed, (str, list, tuple)):
        raise InputError(f"kinds: {repr(kinds)[:40]} names none; write for example 'all-reduce', or give a Job")
    if not isinstance(listed, str) and any(isinstance(each, (Job, Replay)) for each in listed):
        _refuse({"hosts": hosts, "jobs": count, **given}, "jobs have their own")
        alien = next((each for each in listed if not isinstance(each, (Job, Replay))), None)
        lacking = next((each for each in listed if isinstance(each, Job) and each.ranks is None), None)
        if alien is not None or lacking is not None:
            raise InputError("jobs: one is no Job, or has no ranks; write Job('all-reduce', '64MB', ranks=8)")
        return [Case("+".join(dict.fromkeys(_named(job) for job in listed)), tuple(listed))]
    names = [name.strip() for name in listed.split(",")] if isinstance(listed, str) else [*map(str, listed)]
    if not names or len(set(names)) < len(names):
        raise InputError("kinds: there are none, or one is there twice; write for example all-reduce,all-to-all")
    total = len(topology.hosts) if hosts is None else whole(hosts, 2, len(topology.hosts), "hosts")
    several = 1 if count is None else whole(count, 1, 1024, "jobs")
    if total % several or total // several < 2:
        raise InputError(f"jobs: {total} hosts are no {several} jobs of two or more ranks each; give a divisor of them")
    return [Case(name, (Job(name, ranks=total // several, **given),) * several) for name in names]


def _named(job: Job | Replay) -> str:
    return job.kind if isinstance(job, Job) else Path(job.schedule.name).name


def _is_file(text: str) -> bool:
    """Check whether a text cannot be kinds: a kind takes precedence over a file of its name, given as a path."""
    return "/" in text or "." in text or (text not in KINDS and os.path.exists(text))


def _refuse(given: Mapping[str, Any], why: str) -> None:
    alien = next((name for name, value in given.items() if value is not None), None)
    if alien is not None:
        raise InputError(f"{alien}: {why[:100]}; leave it out, or change it there")


def _all(
    tasks: Sequence[tuple[Case, str, Mapping[str, Any], int]],
    topology: Topology,
    settings: dict[str, Any],
    kept: Path | None,
    **where: Any,
) -> list[CollectiveRun]:
    """Run all tasks, and keep what is run; ``where`` is that of `run_many`."""
    made_by = "" if kept is None else code(Path(__file__).parent)

    def work(task: tuple[Case, str, Mapping[str, Any], int], place: Place) -> CollectiveRun:
        case, name, chosen, seed = task
        path = None
        if kept is not None:
            mark = signature(made_by, topology, chosen, settings, case.identity)
            path = kept / f"{Path(case.name).stem}-{name}-seed{seed}-{mark}.nc"
        make = partial(place.compute, run, case, topology, name, chosen, seed, **settings)
        return kept_or_made(path, read_collective, make)

    with Bar(f"simulating {len(tasks)} run{'s' * (len(tasks) > 1)}", 100 * len(tasks), "% of a run") as bar:
        return run_all(work, tasks, report=bar, **where)
