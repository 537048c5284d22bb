"""Schemes side by side on one fabric, over seeds: who finishes when, where queues stand, what is paused.

Every scheme gets every seed's flows, and runs are kept.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from fluidcc.builders.common import NETWORK
from fluidcc.contract.preset import Preset
from fluidcc.contract.registry import preset as preset_of
from fluidcc.engines.run_many import Place, run_all
from fluidcc.errors import InputError
from fluidcc.progress import Bar
from fluidcc.results.display import draw
from fluidcc.results.result import Comparable
from fluidcc.results.schema import plain
from fluidcc.surface import constructor, keywords, public
from fluidcc.units import TIME, quantity, whole
from fluidcc.workloads.fabrics.hpcc_files import FlowList, check_hosts, write_fct, write_pfc
from fluidcc.workloads.fabrics.run import FabricRun, begun, read_run, run
from fluidcc.workloads.fabrics.run_cache import code, folder_of, kept_or_made, signature
from fluidcc.workloads.fabrics.shapes import named_topology
from fluidcc.workloads.fabrics.slowdowns import PERCENTILES, bin_ends
from fluidcc.workloads.fabrics.topology import Topology
from fluidcc.workloads.fabrics.traffic import Traffic

if TYPE_CHECKING:
    from fluidcc.results.display import Picture

SMALL, LARGE, LARGEST = 100e3, 1e6, 10e6  # bytes, of flows whose percentiles are compared
NO_QUEUE = 10e3  # bytes: a few packets, below which queues are equal
STATISTICS = ("mean", *PERCENTILES)
LEAST_SEEDS = 3  # of an interval: of two seeds it is 12.7 standard errors each way, which says nothing
PRESET = "hpcc-eval"  # every scheme has it: switches of 32 MB with PFC, in which schemes can be compared
_MOST_SEEDS = 1000
OF_TRAFFIC = tuple(field.name for field in dataclasses.fields(Traffic))
OF_SHAPE = tuple(name for name in keywords(named_topology) if name != "name")


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
    def words(self) -> tuple[str, ...]:
        """Differences from the files of topology and flows, in words."""
        return (*self.topology.words, *(self.flows.words if self.flows is not None else ()))

    @property
    def schemes(self) -> list[str]:
        """Names of the schemes, in the order in which they were given."""
        return list(dict.fromkeys(each.scheme for each in self.runs))

    @property
    def seeds(self) -> list[int]:
        """Seeds that every scheme ran with."""
        return list(dict.fromkeys(each.seed for each in self.runs))

    @public()
    def of(self, scheme: str) -> list[FabricRun]:
        """Return the runs of a scheme.

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
        """Return ends [bytes] of bins for all runs, as `Slowdown.bins` takes them; n bins divide all seeds' sizes."""
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
        """Summarise the slowdowns by flow size.

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
    def against(self, scheme: str, other: str) -> dict[str, dict[str, float]]:
        """Ratios of a scheme's numbers to another's, seed by seed, as both have the same flows.

        Parameters
        ----------
        scheme, other : str
            Names of two that ran.

        Returns
        -------
        dict
            Geometric ``mean``, ``low`` and ``high`` (95 %) of each ratio, as `ratio` has them: of the slowdowns'
            ``p50`` and ``p99``, their ``p99_small`` of flows to 100 KB, ``p99_large`` beyond 1 MB and ``p50_largest``
            beyond 10 MB, of flows that finished in both; of ``goodput``, and of ``queue_p99``, of 10 KB at least; NaN
            of what a run lacks.

        Raises
        ------
        InputError
            If one of them did not run.
        """
        return {name: ratio(pairs) for name, pairs in self.pairs(scheme, other).items()}

    @public()
    def pairs(self, scheme: str, other: str) -> dict[str, np.ndarray]:
        """Numbers of two schemes side by side, seed by seed.

        Parameters
        ----------
        scheme, other : str
            Names of two that ran.

        Returns
        -------
        dict of ndarray, shape (seeds, 2)
            By the names of `against`; NaN of what a run lacks.

        Raises
        ------
        InputError
            If one of them did not run.
        """
        check_ran(self.schemes, scheme, other)
        found = [_measured(one, two) for one, two in zip(self.of(scheme), self.of(other), strict=True)]
        return {name: np.array([[run[name] for run in both] for both in found]) for name in found[0][0]}

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
        """Draw the distribution of queues, and the pauses of each tier.

        Returns
        -------
        Picture
        """
        return draw("plot_fabric_queues", self)

    @public()
    def as_dict(self, bins: Any = 10) -> dict[str, Any]:
        """Return every run, and each scheme's means over seeds with 95 % intervals, as ``--json`` prints it.

        Parameters
        ----------
        bins : int or sequence of quantity
            As of `bins`.

        Returns
        -------
        dict
            ``traffic``, ``hosts``, ``schemes`` and ``runs``; None for what is not finite, and for the ends of an
            interval of fewer than three seeds.
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
                    "slowdown": {name: spread(found[name].values) for name in STATISTICS},
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


def _measured(*runs: FabricRun) -> list[dict[str, float]]:
    """Measures of runs of the same flows, of those that finished in all of them."""
    columns = [(run.slowdown["size"].values, run.slowdown["slowdown"].values) for run in runs]
    same = all(np.array_equal(sizes, columns[0][0]) for sizes, _ in columns)  # else hosts send back to back
    found = []
    for one, (sizes, slowdowns) in zip(runs, columns, strict=True):
        every = np.isfinite(sum(each for _, each in columns) if same else slowdowns)
        parts = {
            "p50": every,
            "p99": every,
            "p99_small": every & (sizes <= SMALL),
            "p99_large": every & (sizes > LARGE),
            "p50_largest": every & (sizes > LARGEST),
        }
        measures = {
            name: float(np.percentile(slowdowns[which], PERCENTILES[name[:3]])) if which.any() else float("nan")
            for name, which in parts.items()
        }
        measures["goodput"] = one.numbers["goodput_bytes_per_s"]
        measures["queue_p99"] = max(one.numbers["queue_bytes"]["p99"], NO_QUEUE)
        found.append(measures)
    return found


def intervals_of(seeds: int, shown: str) -> str:
    """Say of how many seeds something is, and how it shows their intervals, if there are any."""
    if seeds == 1:
        return "one seed"
    return f"{seeds} seeds ({shown})" if seeds >= LEAST_SEEDS else f"{seeds} seeds: no interval below {LEAST_SEEDS}"


def spread(values: Any, most: float = np.inf) -> dict[str, float]:
    """Mean of some seeds and the ends of its 95 % interval, which stay between 0 and ``most``; NaN of too few seeds.

    By Student's t, on the scale on which both bounds are infinitely far: log(x / (1 - x / most)).
    """
    mean, low, high = interval(values)
    if np.isfinite(values).sum() < LEAST_SEEDS:
        low = high = float("nan")
    elif 0 < mean < most:
        odds = mean / (1.0 - mean / most)
        step = np.exp((high - mean) * odds / mean**2)  # the scale's derivative is odds / x^2
        low, high = (float(x / (1.0 + x / most)) for x in (odds / step, odds * step))
    return {"mean": mean, "low": low, "high": high}


def check_ran(schemes: Sequence[str], *names: str) -> None:
    """Refuse names of schemes that did not run.

    Raises
    ------
    InputError
        If one did not.
    """
    for name in names:
        if name not in schemes:
            raise InputError(f"scheme: {str(name)[:60]!r} did not run; there are {', '.join(schemes)}")


def ratio(pairs: Any) -> dict[str, float]:
    """Geometric mean of ratios of seeds and its 95 % interval, by Student's t of their logarithms.

    So those of the ratio turned round are turned round. NaN ends of too few seeds, all NaN of what is not above 0.
    """
    values = np.array(pairs, float).reshape(-1, 2)
    values = values[(values > 0).all(axis=1)]
    mean, low, high = np.exp(interval(np.log(values[:, 0] / values[:, 1]))).tolist()
    if len(values) < LEAST_SEEDS:
        low = high = float("nan")
    return {"mean": mean, "low": low, "high": high}


def interval(values: Any) -> tuple[float, float, float]:
    """Mean of some seeds and the ends of its 95 % interval by Student's t; NaN ends of one seed alone."""
    values = np.asarray(values, float)
    values = values[np.isfinite(values)]
    if not len(values):
        return float("nan"), float("nan"), float("nan")
    mean = float(values.mean())
    if len(values) < 2:
        return mean, float("nan"), float("nan")
    from scipy import stats

    half = float(stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values)))
    return mean, mean - half, mean + half


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
