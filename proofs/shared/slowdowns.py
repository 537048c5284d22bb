"""Parts that the papers' figures of whole fabrics share: stored runs, schemes compared seed by seed, data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from fluidcc.contract.preset import Preset
from fluidcc.plotting.fabrics import queues_above
from fluidcc.proofs.shared.runs import variable
from fluidcc.proofs.verdict.figure import Figure
from fluidcc.workloads.fabrics.slowdowns import PERCENTILES
from fluidcc.workloads.fabrics.study import FabricStudy, fabric, interval

_QUEUE_POINTS = 400  # of a queue's distribution in the data
_QUEUES = ("mean", "p50", "p95", "p99", "p999", "max")


def kept_fabric(
    figure: Figure, folder: Path, schemes: str | Mapping[str, Any], topology: Any, **options: Any
) -> FabricStudy:
    """Run a figure's fabric, with runs stored in a folder next to its picture: an interrupted call continues there.

    Parameters
    ----------
    figure : Figure
    folder : Path
        Of the figure; runs are in ``<name>-runs`` there.
    schemes, topology, **options
        As of `fluidcc.fabric`.
    """
    return fabric(schemes, topology, folder=folder / f"{figure.name}-runs", **options)


def named(preset: Preset, **network: Any) -> dict[str, Any]:
    """A preset as `fluidcc.fabric` takes it under a name, with other fields of its network."""
    return {**preset.options(), **network}


class Compared(NamedTuple):
    """Comparison of two schemes' numbers, paired by seed: mean and the ends of its 95 % interval.

    Ratios are geometric means, with the interval of the mean logarithm; differences are arithmetic means.
    """

    value: float
    low: float
    high: float
    seeds: int = 0

    def below(self, bound: float) -> bool | None:
        """Check whether the number is below a bound: True or False if the whole interval is on one side, else None."""
        return True if self.high < bound else False if self.low >= bound else None

    def above(self, bound: float) -> bool | None:
        """Check whether the number is above a bound: True or False if the whole interval is on one side, else None."""
        return True if self.low > bound else False if self.high <= bound else None

    def within(self, bound: float) -> bool | None:
        """Check whether a ratio is 1 to a factor of ``bound``: True if all its interval is, False if none of it is."""
        if self.low > 1 / bound and self.high < bound:
            return True
        return False if self.high < 1 / bound or self.low > bound else None


def one_more(found: Compared, *, logarithmic: bool) -> Compared:
    """Return the interval that holds one more run in 95 % of cases, to compare with a paper's number of one run.

    Parameters
    ----------
    found : Compared
    logarithmic : bool
        Whether ``found`` is a ratio, whose interval is that of the mean logarithm.
    """
    wider = math.sqrt(found.seeds + 1)
    if logarithmic:
        up = (found.high / found.value) ** wider
        return found._replace(low=found.value / up, high=found.value * up)
    half = wider * (found.high - found.value)
    return found._replace(low=found.value - half, high=found.value + half)


def by_seed(study: FabricStudy, scheme: str, statistic: str, sizes: tuple[float, float] | None = None) -> np.ndarray:
    """A statistic of every seed's slowdowns.

    Parameters
    ----------
    study : FabricStudy
    scheme : str
    statistic : str
        ``mean``, ``p50``, ``p95``, ``p99`` or ``p999``.
    sizes : tuple of float
        Of flows larger than the first and not larger than the second [bytes]; of all if not given.
    """
    return np.array([_statistic(run.slowdown["slowdown"].values, run.slowdown["size"].values, statistic, sizes)
                     for run in study.of(scheme)])  # fmt: skip


def latency_by_seed(study: FabricStudy, scheme: str, statistic: str, sizes: tuple[float, float]) -> np.ndarray:
    """The same of completion times [s]."""
    return np.array([_statistic(run.slowdown["completion"].values, run.slowdown["size"].values, statistic, sizes)
                     for run in study.of(scheme)])  # fmt: skip


def _statistic(values: np.ndarray, of: np.ndarray, statistic: str, sizes: tuple[float, float] | None) -> float:
    inside = np.isfinite(values) if sizes is None else np.isfinite(values) & (of > sizes[0]) & (of <= sizes[1])
    chosen = values[inside]
    if not len(chosen):
        return float("nan")
    return float(chosen.mean()) if statistic == "mean" else float(np.percentile(chosen, PERCENTILES[statistic]))


def of_numbers(study: FabricStudy, scheme: str, *keys: str) -> np.ndarray:
    """Return an entry of each seed's `FabricRun.numbers`: ``of_numbers(study, "hpcc", "paused_s", "hosts")``."""
    found: list[Any] = [run.numbers for run in study.of(scheme)]
    for key in keys:
        found = [each[key] for each in found]
    return np.array(found, float)


def paused(study: FabricStudy, scheme: str) -> np.ndarray:
    """Time for which ports were paused until all were let go on, of every seed, over all ports' time of arrivals [1].

    Pauses outlast the arrivals that cause them, so it is no share of a time: while flows arrive it is less.
    """
    ports = 2 * sum(1 for _ in study.topology.cables)  # each end of a cable is one
    span = of_numbers(study, scheme, "window_s")
    total = sum(of_numbers(study, scheme, "paused_s", tier) for tier in study.runs[0].numbers["paused_s"])
    return np.asarray(total) / (ports * (span[:, 1] - span[:, 0]))


def ratio(a: np.ndarray, b: np.ndarray) -> Compared:
    """Compare two schemes by ratios, seed by seed; NaN, which decides nothing, if one of them is 0 or missing."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(a / b)
    value, low, high = np.exp(_of_all(logs)).tolist()
    return Compared(value, low, high, len(logs))


def difference(a: np.ndarray, b: np.ndarray) -> Compared:
    """Compare two schemes by differences, seed by seed; numbers may be 0."""
    return Compared(*_of_all(a - b), len(a))


def mean(a: np.ndarray) -> Compared:
    """Return the mean of one scheme's numbers over seeds, with its interval."""
    return Compared(*_of_all(a), len(a))


def _of_all(values: np.ndarray) -> tuple[float, float, float]:
    """Return the values' interval, or NaN if a seed's is not finite: what is left out could be what decides."""
    values = np.asarray(values, float)
    return interval(values) if np.isfinite(values).all() else (math.nan, math.nan, math.nan)


def verdict(answer: bool | None) -> str:
    """Return an answer in words."""
    return "not decided" if answer is None else "holds" if answer else "fails"


def judged(
    values: dict[str, float | bool], notes: list[str], key: str, text: str, found: Compared, answer: bool | None
) -> None:
    """Add a claim: its number with the interval, whether it holds and whether it fails (neither if not decided).

    Parameters
    ----------
    values, notes
        Added to: ``<key>``, ``<key>_low``, ``<key>_high``, ``<key>_holds``, ``<key>_fails``; and a line.
    key : str
        Ends on ``_s`` if it is a time.
    text : str
        The claim.
    found : Compared
    answer : bool or None
        Of `Compared.below` and the like.
    """
    base, unit = (key.removesuffix("_s"), "_s") if key.endswith("_s") else (key, "")
    values |= {key: found.value, f"{base}_low{unit}": found.low, f"{base}_high{unit}": found.high}
    values |= {f"{base}_holds": answer is True, f"{base}_fails": answer is False}
    notes.append(f"{text}: {verdict(answer)} ({found.value:.3g}, 95 % interval {found.low:.3g} to {found.high:.3g})")


def data_of(studies: Mapping[str, FabricStudy], edges: Any) -> xr.Dataset:
    """Slowdowns, queues, pauses and losses of several studies of the same schemes and seeds, for `save`.

    Parameters
    ----------
    studies : mapping
        By the name of their traffic.
    edges : sequence of quantity
        Ends of bins, as of `FabricStudy.bins`.
    """
    parts = [_data_of(study, edges) for study in studies.values()]
    return xr.concat(parts, "traffic", join="override").assign_coords(traffic=list(studies))


def _data_of(study: FabricStudy, edges: Any) -> xr.Dataset:
    over = ("scheme", "seed")
    bins, total = study.bins(edges), study.statistics()
    variables: dict[str, Any] = {
        "to_bytes": variable("bin", bins["to_bytes"].values[0, 0], "bytes", "largest size of a bin"),
        "from_bytes": variable("bin", bins["from_bytes"].values[0, 0], "bytes", "sizes of a bin are above"),
    }
    for name in ("mean", *PERCENTILES):
        variables[name] = variable(over, total[name].values, "1", f"{name} of all slowdowns")
        variables[f"bin_{name}"] = variable((*over, "bin"), bins[name].values, "1", f"{name} of a bin's slowdowns")
    for name in ("flows", "unfinished"):
        variables[name] = variable(over, total[name].values, "1", name)
        variables[f"bin_{name}"] = variable((*over, "bin"), bins[name].values, "1", f"{name} of a bin")
    for name in _QUEUES:
        found = [of_numbers(study, scheme, "queue_bytes", name) for scheme in study.schemes]
        variables[f"queue_{name}"] = variable(over, np.array(found), "bytes", f"{name} of switches' queues over time")
    for name in ("pfc_pauses", "drops", "retransmissions"):
        found = [of_numbers(study, scheme, name) for scheme in study.schemes]
        variables[name] = variable(over, np.array(found), "1", name.replace("_", " "))
    tiers = list(study.runs[0].numbers["paused_s"])
    for name, unit, text in (("pauses", "1", "PAUSEs received"), ("paused_s", "s", "time paused, all ports together")):
        found = [[of_numbers(study, scheme, name, tier) for tier in tiers] for scheme in study.schemes]
        variables[name] = variable(("scheme", "tier", "seed"), np.array(found), unit, text)
    shares = np.geomspace(1, 1e-5, _QUEUE_POINTS)
    lengths = np.array([_lengths_at(study, scheme, shares) for scheme in study.schemes])
    variables["queue_above"] = variable(("scheme", "share"), lengths, "bytes", "length that this share is above")
    return xr.Dataset(variables, {"scheme": study.schemes, "seed": study.seeds, "tier": tiers, "share": shares})


def _lengths_at(study: FabricStudy, scheme: str, shares: np.ndarray) -> np.ndarray:
    lengths, above = queues_above(study, scheme)
    first = np.searchsorted(-above, -shares, side="left")  # where the share above has fallen that far
    return lengths[np.minimum(first, len(lengths) - 1)]


def sample_of(studies: Mapping[str, FabricStudy]) -> str:
    """Describe what was drawn: seeds, hosts, time of arrivals and flows of one scheme by traffic; and the intervals."""
    first = next(iter(studies.values()))
    counts = []
    for traffic, study in studies.items():
        runs = study.of(study.schemes[0])
        flows, (begin, end) = sum(run.slowdown["size"].size for run in runs), runs[0].numbers["window_s"]
        counts.append(f"{flows:,} flows in {1e3 * (end - begin):g} ms each{f' ({traffic})' * (len(studies) > 1)}")
    return (
        f"{len(first.seeds)} seeds of arrivals, sizes, hosts and paths on {len(first.topology.hosts)} hosts, the "
        "same for "
        f"each scheme: {', '.join(counts)}; intervals are Student's over seeds, in pairs, 95 %"
    )


def lacking(studies: Mapping[str, FabricStudy]) -> list[str]:
    """Lines that name the flows which did not finish and are in no mean, by traffic and scheme; none without any."""
    lines = []
    for traffic, study in studies.items():
        for scheme in study.schemes:
            runs = study.of(scheme)
            count, flows = sum(run.slowdown.unfinished for run in runs), sum(run.slowdown["size"].size for run in runs)
            if count:
                sizes = np.concatenate([run.slowdown["size"].values[np.isnan(run.slowdown["slowdown"].values)]
                                        for run in runs])  # fmt: skip
                lines.append(
                    f"{traffic}, {scheme}: {count} of {flows} flows had not finished and are in no mean; "
                    f"their sizes are {sizes.min() / 1e3:g} to {sizes.max() / 1e3:g} KB"
                )
    return lines
