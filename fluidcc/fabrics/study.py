"""Schemes side by side on one fabric, over seeds: who finishes when, where queues stand, what is paused."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import xarray as xr
from scipy import stats

from fluidcc.engines.threads import cores
from fluidcc.errors import InputError
from fluidcc.fabrics.hpcc_files import FlowList, write_fct, write_pfc
from fluidcc.fabrics.run import FabricRun, begun, read_run, run
from fluidcc.fabrics.shapes import named_topology
from fluidcc.fabrics.slowdown import PERCENTILES, bin_ends
from fluidcc.fabrics.topology import Topology
from fluidcc.fabrics.traffic import Traffic
from fluidcc.progress import Bar
from fluidcc.results.drawing import draw
from fluidcc.results.identity import Comparable
from fluidcc.results.schema import plain
from fluidcc.scenario.builders.common import NETWORK, marking_of
from fluidcc.schemes.preset import Preset
from fluidcc.schemes.presets import preset as preset_of
from fluidcc.surface import constructor, keywords, public
from fluidcc.units import TIME, Rate, quantity, whole

if TYPE_CHECKING:
    from fluidcc.results.drawing import Picture

PRESET = "hpcc-eval"  # every scheme has it: switches of 32 MB with PFC, in which schemes can be compared
STATISTICS = ("mean", *PERCENTILES)
_MOST_SEEDS = 1000
_OF_TRAFFIC = tuple(field.name for field in dataclasses.fields(Traffic))
_OF_SHAPE = tuple(name for name in keywords(named_topology) if name != "name")


@constructor()
@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class FabricStudy(Comparable):
    """Runs of one fabric, by scheme and seed.

    Parameters
    ----------
    runs : tuple of FabricRun
        All seeds of the first scheme, then those of the next.
    topology : Topology
    says : str
        What is sent.
    flows : FlowList or None
        If they are those of a ``flow.txt``.
    """

    runs: tuple[FabricRun, ...]
    topology: Topology
    says: str
    flows: FlowList | None = None

    @property
    def schemes(self) -> list[str]:
        """In the order in which they were given."""
        return list(dict.fromkeys(each.scheme for each in self.runs))

    @property
    def seeds(self) -> list[int]:
        """That every scheme ran with."""
        return list(dict.fromkeys(each.seed for each in self.runs))

    @public()
    def of(self, scheme: str) -> list[FabricRun]:
        """The runs of a scheme.

        Parameters
        ----------
        scheme : str

        Returns
        -------
        list of FabricRun
            One per seed; none of a scheme that did not run.
        """
        return [each for each in self.runs if each.scheme == scheme]

    def __repr__(self) -> str:
        """Fabric, traffic and schemes."""
        return (
            f"<FabricStudy {', '.join(self.schemes)} on {len(self.topology.hosts)} hosts: {self.says}, "
            f"{len(self.seeds)} seed{'s' * (len(self.seeds) != 1)}>"
        )

    def _edges(self, bins: Any) -> np.ndarray:
        """Ends [bytes] of bins that serve all runs: as `Slowdown.bins` takes them, a number of all seeds' sizes."""
        return bin_ends(np.concatenate([each.slowdown["size"].values for each in self.of(self.schemes[0])]), bins)

    @public()
    def statistics(self) -> xr.Dataset:
        """Slowdowns of all flows.

        Returns
        -------
        xarray.Dataset
            Over ``scheme`` and ``seed``: ``flows``, ``unfinished``, ``mean``, ``p50``, ``p95``, ``p99``, ``p999``.
        """
        return self._table([[each.slowdown.statistics() for each in self.of(scheme)] for scheme in self.schemes])

    @public()
    def bins(self, edges: Any = 10) -> xr.Dataset:
        """The same by size.

        Parameters
        ----------
        edges : int or sequence of quantity
            As of `Slowdown.bins`; the bins are the same for all runs.

        Returns
        -------
        xarray.Dataset
            Over ``scheme``, ``seed`` and ``bin``, with ``from_bytes`` and ``to_bytes``.

        Raises
        ------
        InputError
            If the ends do not grow, or there are none.
        """
        ends = self._edges(edges)
        found = [
            xr.concat([each.slowdown.bins(ends) for each in self.of(scheme)], "seed", join="override")
            for scheme in self.schemes
        ]
        return xr.concat(found, "scheme", join="override").assign_coords(scheme=self.schemes, seed=self.seeds)

    def _table(self, rows: list[list[dict[str, float]]]) -> xr.Dataset:
        variables = {
            name: (("scheme", "seed"), np.array([[each[name] for each in row] for row in rows])) for name in rows[0][0]
        }
        return xr.Dataset(variables, coords={"scheme": self.schemes, "seed": self.seeds})

    @public()
    def plot(self, bins: Any = 10) -> Picture:
        """Slowdown by flow size, with intervals over seeds.

        Parameters
        ----------
        bins : int or sequence of quantity
            As of `bins`.

        Returns
        -------
        Picture
        """
        return draw("plot_slowdowns", self, bins)

    @public()
    def plot_queues(self) -> Picture:
        """How long queues are, and which tiers are paused.

        Returns
        -------
        Picture
        """
        return draw("plot_fabric_queues", self)

    @public()
    def as_dict(self, bins: Any = 10) -> dict[str, Any]:
        """Every run, and for each scheme means over seeds with 95 % intervals, as ``--json`` prints it.

        Parameters
        ----------
        bins : int or sequence of quantity
            As of `bins`.

        Returns
        -------
        dict
            ``traffic``, ``hosts``, ``schemes`` and ``runs``; None for what is not finite.
        """
        ends = self._edges(bins)
        table = self.statistics()
        together = []
        for scheme in self.schemes:
            found = table.sel(scheme=scheme)
            together.append(
                {
                    "scheme": scheme,
                    "seeds": len(self.seeds),
                    "flows": int(found["flows"].sum() + found["unfinished"].sum()),
                    "unfinished": int(found["unfinished"].sum()),
                    "slowdown": {name: dict(zip(("mean", "low", "high"), interval(found[name].values), strict=True))
                                 for name in STATISTICS},
                }
            )  # fmt: skip
        return plain(
            {
                "traffic": self.says,
                "hosts": len(self.topology.hosts),
                "schemes": together,
                "runs": [each.as_dict(ends) for each in self.runs],
            }
        )

    @public()
    def write(self, folder: str | os.PathLike[str], bins: Any = 10) -> list[Path]:
        """Write pictures, a table of the bins, and of flows of a ``flow.txt`` each run's ``fct.txt`` and ``pfc.txt``.

        Parameters
        ----------
        folder : str or path
            Made if it is not there.
        bins : int or sequence of quantity
            As of `bins`.

        Returns
        -------
        list of Path

        Raises
        ------
        InputError
            If it cannot be written.
        """
        from fluidcc.files import write_atomically

        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        written = [self.plot(bins).write(place / "slowdown.png"), self.plot_queues().write(place / "queues.png")]
        table = self.bins(bins).to_dataframe().reset_index().to_csv(index=False)
        written.append(write_atomically(place / "slowdown.csv", table.encode()))
        if self.flows is not None:
            written += [
                write_fct(place / f"fct-{each.scheme}-seed{each.seed}.txt", self.flows, each.slowdown)
                for each in self.runs
            ]
            written += [
                write_pfc(
                    place / f"pfc-{each.scheme}-seed{each.seed}.txt", self.topology, each.frames, self.flows.begins
                )
                for each in self.runs
                if each.frames is not None
            ]
        return written


def interval(values: Any) -> tuple[float, float, float]:
    """Mean of some seeds and the ends of its 95 % interval by Student's t; NaN ends of one seed alone."""
    values = np.asarray(values, float)
    values = values[np.isfinite(values)]
    if not len(values):
        return float("nan"), float("nan"), float("nan")
    mean = float(values.mean())
    if len(values) < 2:
        return mean, float("nan"), float("nan")
    half = float(stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values)))
    return mean, mean - half, mean + half


@public(passes_on=[*_OF_TRAFFIC, *_OF_SHAPE, *NETWORK])
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
    chosen = _contenders(schemes, preset)
    shape = {name: options[name] for name in _OF_SHAPE if options.get(name) is not None}
    if isinstance(topology, Topology):
        if shape:
            raise InputError(f"{next(iter(shape))}: a Topology has its own; change it there")
        network = topology
    else:
        network = named_topology(topology, **shape)
    traffic = Traffic(**{name: options[name] for name in _OF_TRAFFIC if options.get(name) is not None})
    fields = {name: options[name] for name in NETWORK if name in options}
    numbers = _seeds(seeds)
    listed = traffic.flows if isinstance(traffic.flows, FlowList) else None
    settings: dict[str, Any] = {
        "until": traffic.until,
        "drain": (0.0 if traffic.endless else None) if drain is None else quantity(drain, TIME, "drain"),
        "ideal": ideal,
        "network": fields,
    }
    since = quantity(since, TIME, "since")
    if listed is not None:  # for its `pfc.txt`
        settings["frames"] = True
    if since != 0:  # what was kept without it is the same run
        settings["since"] = since
    if settings["drain"] is not None and not 0 <= settings["drain"] < np.inf:
        raise InputError("drain: is no time; write for example 5ms")
    kept = None if folder is None else Path(folder)
    if kept is not None:
        kept.mkdir(parents=True, exist_ok=True)
    jobs = [(name, each, seed) for name, each in chosen.items() for seed in numbers]
    at_once = cores() if threads is None else whole(threads, 1, 1024, "threads")
    runs = _all(jobs, network, traffic, settings, at_once, kept)
    return FabricStudy(tuple(runs), network, traffic.says, listed)


def _all(
    jobs: list[tuple[str, dict[str, Any], int]],
    topology: Topology,
    traffic: Traffic,
    settings: dict[str, Any],
    threads: int,
    kept: Path | None,
) -> list[FabricRun]:
    """Every run, in threads: the loop leaves Python's lock alone. One that fails, or Ctrl-C, stops the others."""
    stopped = threading.Event()
    shares = [0.0] * len(jobs)
    label = f"simulating {len(jobs)} run{'s' * (len(jobs) > 1)}"
    with Bar(label, 100 * len(jobs), "% of a run", lines=True) as bar, ThreadPoolExecutor(threads) as pool:

        def told(k: int, share: float) -> None:
            if stopped.is_set():
                _stop()
            shares[k] = share
            if threading.current_thread() is not threading.main_thread() and k == _leading(shares):
                bar(sum(shares) / len(shares))

        def work(k: int) -> FabricRun:
            name, chosen, seed = jobs[k]
            if stopped.is_set():
                _stop()
            rows = traffic.rows(topology, seed)
            path = (
                None if kept is None else kept / f"{name}-seed{seed}-{_signature(topology, rows, chosen, settings)}.nc"
            )
            if path is not None and path.exists():
                found = read_run(path)
            else:
                found = run(topology, rows, name, chosen, seed, report=lambda share: told(k, share), **settings)
                if path is not None:
                    found.save(path)
            shares[k] = 1.0
            # Pairs have more flows than there is time for: those whose turn never came say nothing.
            return begun(found) if traffic.endless else found

        futures = [pool.submit(work, k) for k in range(len(jobs))]
        try:
            return [future.result() for future in futures]
        except BaseException:
            stopped.set()
            raise


def _stop() -> NoReturn:
    raise InputError("fabric: stopped, because another run was")


def _leading(shares: list[float]) -> int:
    """The run that has come furthest of those still going; it draws the bar."""
    going = [k for k, share in enumerate(shares) if share < 1]
    return max(going, key=lambda k: shares[k], default=0)


def _signature(topology: Topology, rows: Any, chosen: dict[str, Any], settings: dict[str, Any]) -> str:
    """Of all that a run depends on, so that a changed one is run again."""
    import fluidcc

    listed = rows.tobytes() if isinstance(rows, np.ndarray) else repr(rows).encode()
    marking = chosen.get("marking")
    rates = sorted({float(cable.rate) for cable in topology.cables})
    marks = [marking_of(marking, chosen["scheme"], Rate(rate)) for rate in rates]
    rest = {name: value for name, value in chosen.items() if name != "marking"}
    text = repr((fluidcc.__version__, topology.hosts, topology.switches, topology.cables, rest, marks, settings))
    return hashlib.blake2b(text.encode() + listed, digest_size=6).hexdigest()


def _contenders(schemes: Any, preset: str | None) -> dict[str, dict[str, Any]]:
    """For each name in results, what runs."""
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


def _seeds(seeds: Any) -> list[int]:
    if np.ndim(seeds) == 0:
        return list(range(1, whole(seeds, 1, _MOST_SEEDS, "seeds", "; give at least 1") + 1))
    found = [whole(seed, 0, (1 << 63) - 1, "seeds") for seed in seeds]
    if not found or len(set(found)) < len(found):
        raise InputError("seeds: there are none, or one is there twice; write for example seeds=5")
    return found
