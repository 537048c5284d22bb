"""DCQCN section 6.2's benchmark, which Figures 15 to 18 share: pairs that send back to back during a disk's rebuild.

Runs are made once for all four figures, and stored next to them.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from fluidcc.plotting.colours import SCHEMES, scheme_colours
from fluidcc.plotting.style import figure as new_figure
from fluidcc.plotting.style import label
from fluidcc.proofs.shared.runs import GBPS, LINE_RATE, SWITCH, SWITCH_NOTE, WIDTH, variable
from fluidcc.proofs.shared.slowdowns import Compared, difference
from fluidcc.scenario.model import PFC, RED
from fluidcc.schemes.dcqcn import PRESETS
from fluidcc.schemes.none import NoControl
from fluidcc.workloads.fabrics.run import FabricRun
from fluidcc.workloads.fabrics.study import fabric, interval
from fluidcc.workloads.fabrics.traffic import Traffic

USERS, MOST_SENDERS = 20, 10  # pairs of Figs. 15, 16 and 18; degree of incast of Fig. 17
SPINES, SPINE_PORTS = "tier 3", 8  # two with a port to each leaf
WORKLOAD = "web-search"
TABLE_14 = {"scheme": PRESETS["paper"].scheme, "marking": PRESETS["paper"].marking, "start_policy": "share"}
BUFFER = 12e6  # section 4
# Section 6.2, misconfigured: the static upper bound of t_PFC, and t_ECN = 120 KB, of which Kmin is taken for t_ECN.
STATIC = PFC(xoff=24.47e3, headroom=SWITCH["pfc"].headroom, xon_gap=SWITCH["pfc"].xon_gap)
LATE_MARKING = RED("120KB", "200KB", 0.01)
LOSSY = {**TABLE_14, "buffer": BUFFER, "loss_recovery": "gbn"}
SLOW_TIMEOUT = 4.096e-6 * 2**14  # s: what InfiniBand's tools set, a timeout of 14; longer than our runs
SETUPS: dict[str, dict[str, Any]] = {
    "PFC only": {"scheme": NoControl(), **SWITCH},
    "DCQCN": {**TABLE_14, **SWITCH},
    "DCQCN, misconfigured": {**TABLE_14, **SWITCH, "marking": LATE_MARKING, "pfc": STATIC},
    "DCQCN, no PFC": {**LOSSY, "egress_alpha": 1.0},
    "DCQCN, no PFC, 1/32": {**LOSSY, "egress_alpha": 1 / 32},
    "DCQCN, no PFC, 1/32, 67 ms": {**LOSSY, "egress_alpha": 1 / 32, "retransmission_timeout": SLOW_TIMEOUT},
}
BOTH = ("PFC only", "DCQCN")
STATISTICS = {
    "user_p50": "transfers, median", "user_p10": "transfers, 10th percentile",
    "pair_p50": "pairs, median", "pair_p10": "pairs, 10th percentile",
    "incast_p50": "rebuild's senders, median", "incast_p10": "rebuild's senders, 10th percentile",
}  # fmt: skip


class Size(NamedTuple):
    """Length of a run, time from which transfers and goodput count [s], and number of draws of hosts and paths."""

    until: float
    since: float
    draws: int


class Point(NamedTuple):
    """Senders of the rebuild, and pairs."""

    senders: int
    pairs: int = USERS


FULL, QUICK = Size(60e-3, 10e-3, 10), Size(12e-3, 4e-3, 3)


def study(folder: Path, quick: bool, setups: tuple[str, ...], points: list[Point]) -> xr.Dataset:
    """Run what is not there yet; over ``setup``, ``point`` and ``draw``: rates [bytes/s], PAUSEs at spines [1/s].

    Parameters
    ----------
    folder : Path
        Of the figure; runs are in a folder there that the four figures share.
    quick : bool
    setups : tuple of str
        Of `SETUPS`.
    points : list of Point
    """
    size = QUICK if quick else FULL
    found = []
    for point in points:
        sent: dict[str, Any] = {
            "workload": WORKLOAD, "pairs": point.pairs, "rebuild": point.senders, "until": size.until,
        }  # fmt: skip
        runs = fabric(
            {key_of(name): SETUPS[name] for name in setups},
            "dcqcn-clos",
            since=size.since,
            seeds=size.draws,
            folder=folder / f"dcqcn-benchmark-{'quick-' if quick else ''}runs",
            **sent,
        )
        pair_of = [_pair_of(Traffic(**sent).rows(runs.topology, seed)) for seed in runs.seeds]
        found.append(
            [[_numbers(*each, size) for each in zip(runs.of(key_of(name)), pair_of, strict=True)] for name in setups]
        )
    names = list(found[0][0][0])
    units = {name: "bytes/s" if name in STATISTICS else "1/s" if name == "pauses" else "1" for name in names}
    dims = ("setup", "point", "draw")
    texts = {
        **{name: name for name in names},
        **STATISTICS,
        "pauses": "PAUSE frames that spines receive",
        "paused": "share of time for which their ports stand still",
    }
    return xr.Dataset(
        {
            name: variable(
                dims,
                np.array([[[run[name] for run in at[k]] for at in found] for k in range(len(setups))]),
                units[name],
                texts[name],
            )
            for name in names
        },
        {
            "setup": list(setups),
            "draw": np.arange(1, size.draws + 1),
            "senders": ("point", [point.senders for point in points]),
            "pairs": ("point", [point.pairs for point in points]),
        },
    )


def _pair_of(rows: Any) -> np.ndarray:
    """Number of the pair of each flow; -1 of the rebuild's, which are rows without one that they wait for."""
    number = np.cumsum([len(row) > 4 and row[4] == () for row in rows]) - 1
    return np.where([len(row) > 4 for row in rows], number, -1)


def _numbers(run: FabricRun, pair_of: np.ndarray, size: Size) -> dict[str, float]:
    """Compute the metrics of one run, whose flows are named by their indices."""
    pair = pair_of[[int(name.removeprefix("flow ")) for name in run.slowdown["flow"].values]]
    users, rebuild = np.flatnonzero(pair >= 0), pair < 0
    flow = {name: run.slowdown[name].values for name in ("size", "start", "completion", "goodput")}
    began = flow["start"][users] >= size.since
    took = flow["completion"][users][began]
    ended = np.isfinite(took)
    samples = {
        "user": flow["size"][users][began][ended] / took[ended],
        "pair": np.bincount(pair[users], flow["goodput"][users], minlength=pair.max() + 1),
        "incast": flow["goodput"][rebuild],
    }
    return {
        **{f"{name}_p{percent}": float(np.percentile(values, percent)) if len(values) else np.nan
           for name, values in samples.items() for percent in (50, 10)},
        "pauses": run.numbers["pauses"][SPINES] / size.until,
        "paused": run.numbers["paused_s"][SPINES] / (SPINE_PORTS * size.until),
        "transfers": float(ended.sum()),
        "unfinished": float((~ended).sum()),
        **{name: float(run.numbers[name]) for name in ("drops", "retransmissions")},
    }  # fmt: skip


def sample_of(data: xr.Dataset, quick: bool) -> str:
    """Describe what was drawn: hosts, paths and transfers."""
    size = QUICK if quick else FULL
    return (
        f"{size.draws} draws of hosts, sizes and paths, seeds 1 to {size.draws}, the same for each setup, over "
        f"{size.since * 1e3:g} to {size.until * 1e3:g} ms: {int(data['transfers'].sum()):,} transfers in all; "
        "intervals are "
        "Student's over draws, in pairs, 95 %"
    )


def notes(data: xr.Dataset, quick: bool) -> list[str]:
    """Describe how section 6.2 was read, the number of transfers, and what a quick run leaves out."""
    size = QUICK if quick else FULL
    lines = [
        f"{data.sizes['draw']} draws of pairs, hosts of the rebuild and paths, the same for every setup, and of each "
        f"larger number the first; {size.until * 1e3:g} ms in place of two minutes, transfers that begin after "
        f"{size.since * 1e3:g} ms; intervals: 95 %, Student's t over draws, in pairs",
        "the trace's sizes are not published: WebSearch's, of the paper's reference [2], in their place; a transfer "
        "starts as the ACK of the pair's last one is there, at line rate or at its share of the NIC (3.1), on the same "
        "path; the rebuild's senders have no end",
        "throughput of a transfer is its size over its completion time (the paper's footnote 3), of finished ones "
        f"alone: {int(data['transfers'].sum()):,}; {int(data['unfinished'].sum()):,} had not finished as runs ended; "
        "pairs that are held up finish few transfers, and count for little among them; goodput of pairs, which leaves "
        "out nothing, is beside",
        SWITCH_NOTE,
    ]
    if quick:
        lines.append(f"quick: {size.until * 1e3:g} ms and {size.draws} draws in place of {FULL.until * 1e3:g} and "
                     f"{FULL.draws}")  # fmt: skip
    return lines


def means(data: xr.Dataset, names: list[str]) -> dict[str, float | bool]:
    """Mean over draws of some statistics at every point."""
    values: dict[str, float | bool] = {}
    for setup in data["setup"].values:
        for k, (senders, pairs) in enumerate(zip(data["senders"].values, data["pairs"].values, strict=True)):
            for name in names:
                key = f"{key_of(str(setup))}_{name}_{senders}_to_1_{pairs}_pairs"
                unit = data[name].attrs["units"]
                mean = interval(data[name].sel(setup=setup).isel(point=k).values)[0]
                values[key + {"bytes/s": "_bytes_per_s", "1/s": "_each_second"}.get(unit, "")] = mean
    return values


def key_of(setup: str) -> str:
    """A setup's name among values."""
    return setup.lower().replace(",", "").replace("/", "_").replace(" ", "_")


def at(data: xr.Dataset, setup: str, name: str, **point: int) -> np.ndarray:
    """A statistic of every draw at one point, given as ``senders`` or ``pairs``."""
    ((axis, value),) = point.items()
    return data[name].sel(setup=setup).values[int(np.flatnonzero(data[axis].values == value)[0])]


def surplus(a: np.ndarray, b: np.ndarray) -> Compared:
    """Return the difference of two setups [Gb/s] over draws; ratios would leave out draws in which one of them is 0."""
    return difference(a / GBPS, b / GBPS)


def setup_colours(setups: Iterable[str]) -> dict[str, str]:
    """Colours of `SETUPS`: PFC only has that of no control."""
    return {name: SCHEMES["none"] if name == "PFC only" else each for name, each in scheme_colours(setups).items()}


def draw_over(data: xr.Dataset, over: str, text: str) -> Any:
    """A panel for each of `STATISTICS`, a line for each setup over senders or pairs, with 95 % intervals over draws."""
    picture, axes = new_figure(2, len(STATISTICS) // 2, size=(WIDTH * 1.2, 7.2), sharex=True)
    places = data[over].values
    for axis, name in zip(axes.T.ravel(), STATISTICS, strict=True):
        for setup, shade in setup_colours(map(str, data["setup"].values)).items():
            mean, low, high = np.array([interval(row) for row in data[name].sel(setup=setup).values / GBPS]).T
            axis.plot(places, mean, "o-", color=shade, ms=4, lw=1.3, label=setup)
            axis.fill_between(places, np.maximum(low, 0), high, color=shade, alpha=0.2, lw=0)
        if name.startswith("incast"):
            share = LINE_RATE / GBPS / data["senders"].values
            axis.plot(places, share, "k--", lw=0.9, label="40 Gbps over the degree")
        axis.set_title(STATISTICS[name], fontsize="medium")
        axis.set_ylim(bottom=0)
        axis.grid(alpha=0.3)
        if over == "pairs":
            axis.set_xscale("log", base=2)
        axis.set_xticks(places, [str(place) for place in places])
    for axis in axes[1]:
        axis.set_xlabel(text)
    for axis in axes[:, 0]:
        axis.set_ylabel(label("throughput", "Gbps"))
    axes[0, -1].legend(fontsize="small")
    return picture
