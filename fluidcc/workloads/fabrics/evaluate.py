"""Schemes side by side on one fabric: every scheme gets every seed's flows, and runs are kept."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fluidcc.builders.common import NETWORK
from fluidcc.contract.preset import Preset
from fluidcc.contract.registry import preset as preset_of
from fluidcc.engines.run_many import Place, run_all
from fluidcc.errors import InputError
from fluidcc.progress import Bar
from fluidcc.surface import keywords, public
from fluidcc.units import TIME, quantity, whole
from fluidcc.workloads.fabrics.hpcc_files import FlowList, check_hosts
from fluidcc.workloads.fabrics.run import FabricRun, begun, read_run, run
from fluidcc.workloads.fabrics.run_cache import code, folder_of, kept_or_made, signature
from fluidcc.workloads.fabrics.shapes import named_topology
from fluidcc.workloads.fabrics.study import FabricStudy
from fluidcc.workloads.fabrics.topology import Topology
from fluidcc.workloads.fabrics.traffic import Traffic

PRESET = "hpcc-eval"  # every scheme has it: switches of 32 MB with PFC, in which schemes can be compared
_MOST_SEEDS = 1000
OF_TRAFFIC = tuple(field.name for field in dataclasses.fields(Traffic))
OF_SHAPE = tuple(name for name in keywords(named_topology) if name != "name")


@public(passes_on=[*OF_TRAFFIC, *OF_SHAPE, *NETWORK])
def fabric(
    schemes: str | Sequence[str] | Mapping[str, Any],
    topology: str | os.PathLike[str] | Topology = "fat-tree:320",
    *,
    preset: str | None = None,
    seeds: int | Sequence[int] = 1,
    since: Any = 0.0,
    drain: Any = None,
    ideal: str = "alone",
    threads: int | None = None,
    dask: Any = None,
    folder: str | os.PathLike[str] | None = None,
    **options: Any,
) -> FabricStudy:
    """Completion times on a whole fabric, of one scheme or several side by side, packet by packet.

    Every scheme gets the same flows and the same paths, seed by seed. Flows that have not finished when the run ends
    are counted and named, and in no mean.

    Parameters
    ----------
    schemes : str, sequence of str, or mapping
        Names, in one text with commas or one by one; or for each name its `Preset`, parameters, or options of
        `Topology.scenario`.
    topology : str, path or Topology
        As of `fluidcc.fabrics.named_topology`.
    preset : str
        Of schemes given by name; by default ``hpcc-eval``, which all have: HPCC's evaluation, with buffers of 32 MB
        and PFC.
    seeds : int or sequence of int
        How many, from 1, or which: of arrivals, ECMP's hashes and random marks. A list of flows stays as it is.
    since : quantity
        From when on queues and goodput count [s]. Completion times and counts of frames are of all the run.
    drain : quantity
        How long is waited for flows after the last has started [s]; by default 20 times as long as the longest would
        take alone, or not at all if hosts send without end (``pairs``, ``rebuild``). A run ends earlier if all have
        finished.
    ideal : {"alone", "hpcc-sim"}
        What slowdowns compare with, as of `slowdown`.
    threads : int
        Runs at once; as many as cores by default.
    dask : str or distributed.Client
        Scheduler that runs them; the cores of this machine by default.
    folder : str or path, optional
        Every run is kept there when it ends, and what an earlier, interrupted call kept is not run again.
    **options
        What is sent: ``workload``, ``load``, ``until``, ``incast``, ``size``, ``pairs``, ``rebuild`` or ``flows`` as
        of `fluidcc.fabrics.Traffic`; ``rate``, ``fabric_rate``, ``delay`` and ``oversubscription`` as of
        `fluidcc.fabrics.named_topology`; and fields of `Scenario`, which go before the preset's.

    Returns
    -------
    FabricStudy

    Raises
    ------
    InputError
        If something is unknown, does not go together, or nothing is sent.

    Examples
    --------
    >>> found = fabric("hpcc", "leaf-spine:2x1x2", flows=[(0, 2, 0, "10KB"), (1, 2, 0, "10KB")])
    >>> int(found.statistics()["unfinished"].sum())
    0
    """
    chosen = contenders(schemes, preset)
    shape = {name: options[name] for name in OF_SHAPE if options.get(name) is not None}
    if isinstance(topology, Topology):
        if shape:
            raise InputError(f"{next(iter(shape))}: a Topology has its own; change it there")
        network = topology
    else:
        network = named_topology(topology, **shape)
    traffic = Traffic(**{name: options[name] for name in OF_TRAFFIC if options.get(name) is not None})
    fields = {name: options[name] for name in NETWORK if name in options}
    numbers = seeds_of(seeds)
    listed = traffic.flows if isinstance(traffic.flows, FlowList) else None
    settings: dict[str, Any] = {
        "until": traffic.until,
        "drain": (0.0 if traffic.endless else None) if drain is None else quantity(drain, TIME, "drain"),
        "ideal": ideal,
        "network": fields,
    }
    since = quantity(since, TIME, "since")
    if listed is not None:  # for its `pfc.txt`
        check_hosts(listed, network)
        settings["frames"] = True
    if since != 0:  # what was kept without it is the same run
        settings["since"] = since
    if settings["drain"] is not None and not 0 <= settings["drain"] < np.inf:
        raise InputError("drain: is no time; write for example 5ms")
    kept = folder_of(folder)
    jobs = [(name, each, seed) for name, each in chosen.items() for seed in numbers]
    at_once = None if threads is None else whole(threads, 1, 1024, "threads")
    runs = _all(jobs, network, traffic, settings, kept, threads=at_once, dask=dask)
    return FabricStudy(tuple(runs), network, traffic.says, listed)


def _all(
    jobs: Sequence[tuple[str, dict[str, Any], int]],
    topology: Topology,
    traffic: Traffic,
    settings: dict[str, Any],
    kept: Path | None,
    **where: Any,
) -> list[FabricRun]:
    """Run all jobs, and keep what is run; ``where`` is that of `run_many`."""
    made_by = "" if kept is None else code()

    def work(job: tuple[str, dict[str, Any], int], place: Place) -> FabricRun:
        name, chosen, seed = job
        rows = traffic.rows(topology, seed)
        path = None
        if kept is not None:
            listed = rows.tobytes() if isinstance(rows, np.ndarray) else repr(rows).encode()
            path = kept / f"{name}-seed{seed}-{signature(made_by, topology, chosen, settings, listed)}.nc"
        make = partial(place.compute, run, topology, rows, name, chosen, seed, **settings)
        found = kept_or_made(path, read_run, make)
        # Pairs have more flows than there is time for: those whose turn never came say nothing.
        return begun(found) if traffic.endless else found

    with Bar(f"simulating {len(jobs)} run{'s' * (len(jobs) > 1)}", 100, "") as bar:
        return run_all(work, jobs, report=bar, **where)


def contenders(schemes: Any, preset: str | None) -> dict[str, dict[str, Any]]:
    """Options of `Topology.scenario` for each name in results.

    Raises
    ------
    InputError
        If a name is there twice or unknown, or something is no scheme.
    """
    if isinstance(schemes, Mapping):
        if preset is not None:
            raise InputError(
                "preset: belongs to schemes given by name; write schemes='hpcc,dcqcn', or leave out preset"
            )
        found = {str(name): _options_of(name, each) for name, each in schemes.items()}
    else:
        names = [name.strip() for name in schemes.split(",")] if isinstance(schemes, str) else list(schemes)
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InputError(f"schemes: {str(twice)[:40]!r} is there twice; write each once")
        found = {name: preset_of(name, PRESET if preset is None else preset).options() for name in names}
    if not found:
        raise InputError("schemes: there are none; write for example 'hpcc,dcqcn'")
    return found


def _options_of(name: Any, each: Any) -> dict[str, Any]:
    if isinstance(each, Preset):
        return each.options()
    if isinstance(each, Mapping) and "scheme" in each:
        return dict(each)
    if not hasattr(each, "feedback_delay") or isinstance(each, type):
        raise InputError(f"schemes: {str(name)[:40]!r} is {repr(each)[:40]}; give a Preset or a scheme's parameters")
    return {"scheme": each}


def seeds_of(seeds: Any) -> list[int]:
    """Seeds as given, or n from 1.

    Raises
    ------
    InputError
        If there are none, or one is there twice.
    """
    if np.ndim(seeds) == 0:
        return list(range(1, whole(seeds, 1, _MOST_SEEDS, "seeds", "; give at least 1") + 1))
    found = [whole(seed, 0, (1 << 63) - 1, "seeds") for seed in seeds]
    if not found or len(set(found)) < len(found):
        raise InputError("seeds: there are none, or one is there twice; write for example seeds=5")
    return found
