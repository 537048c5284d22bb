"""Parts that ACC's large-scale figures share: section 6.1's tree, schemes and workloads, runs, and classes of flows.

Cache Follower, of Figs. 13(b), 14(a) and 15(b), has no published table, and is left out.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.ticker import StrMethodFormatter, SymmetricalLogLocator

from fluidcc.plotting.colours import scheme_colours
from fluidcc.plotting.style import zeros
from fluidcc.proofs.acc.common import CONTENDERS, NETWORK
from fluidcc.proofs.shared.fabric_checks import on_one_base
from fluidcc.proofs.shared.runs import GBPS
from fluidcc.proofs.shared.slowdowns import Compared, judged, one_more
from fluidcc.schemes.acc import ACC
from fluidcc.workloads.fabrics.slowdowns import Slowdown
from fluidcc.workloads.fabrics.study import FabricStudy, fabric, interval

TREE, SMALL = "fat-tree:320", "fat-tree:64"
SEEDS = 5


class Traffic(NamedTuple):
    """A workload of section 6.1 or B.1, and until when flows arrive [s]; quick runs have smaller incasts."""

    workload: str
    load: float
    until: float
    quick: float
    incast: tuple[int, str, float] | None = None  # senders, size of each, load


TRAFFIC = {
    "web-search": Traffic("web-search", 0.8, 1.5e-3, 0.4e-3),
    "hadoop": Traffic("hadoop", 0.5, 1e-3, 0.2e-3, (64, "20KB", 0.2)),
    "bursts": Traffic("web-search", 0.6, 1e-3, 0.3e-3, (64, "50KB", 0.2)),
}
CLASSES = {"small": (0, 100e3), "medium": (100e3, 10e6), "large": (10e6, np.inf)}  # bytes: section 6.4
HADOOP_CLASSES = {"small": (0, 100e3), "medium": (100e3, 1e6), "large": (1e6, np.inf)}
TIERS = {"hosts": "hosts", "tier 1": "ToRs", "tier 2": "Aggs", "tier 3": "cores"}
SIMILAR, INSENSITIVE = 1.15, 1.25  # factors: how far "similar" and "not sensitive" may reach
EDGES = (0, 10e3, 20e3, 30e3, 50e3, 80e3, 200e3, 1e6, 2e6, 5e6, 10e6, 30e6)  # bytes, ends of bins of Web Search

_ACCS = {f"ACC, RI {ri} Gbps": ACC(ri_high=ri * GBPS, ri_low=ri * GBPS / 10) for ri in (1, 2, 8)} | {
    f"ACC, P_thresh {p}": ACC(p_thresh=float(p)) for p in (0, 2, 3)
}


def contenders(names: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """Schemes as section 6.1 sets them, as `fluidcc.fabric` takes them; ACC's own variants by `_ACCS`."""
    known = {each.name: (each.scheme, each.marking) for each in CONTENDERS.values()}
    known |= {name: (scheme, ACC.default_marking) for name, scheme in _ACCS.items()}
    return {name: {"scheme": known[name][0], "marking": known[name][1], **NETWORK} for name in names}


def study(traffic: str, names: tuple[str, ...], folder: Path, quick: bool, **options: Any) -> FabricStudy:
    """Run ACC and others under one traffic; runs are stored next to the pictures that share them.

    Slowdowns are over ACC's time alone.
    """
    of = TRAFFIC[traffic]
    if of.incast is not None:
        senders, size, load = of.incast
        options["incast"] = f"{senders // 4 if quick else senders}:{size}:{load:.0%}"
    found = fabric(
        contenders(names),
        SMALL if quick else TREE,
        workload=of.workload,
        load=of.load,
        until=of.quick if quick else of.until,
        seeds=2 if quick else SEEDS,
        folder=folder / f"acc-{traffic}-{'quick-' if quick else ''}runs",
        **options,
    )
    return on_one_base(found, "ACC")


def foreground(found: FabricStudy) -> FabricStudy:
    """Drop the incasts' flows, which start several at a time; those of a workload never do."""
    runs = []
    for run in found.runs:
        _, which, count = np.unique(run.slowdown["start"].values, return_inverse=True, return_counts=True)
        alone = np.flatnonzero(count[which] == 1)
        runs.append(dataclasses.replace(run, slowdown=Slowdown(run.slowdown.dataset.isel(flow=alone))))
    return dataclasses.replace(found, runs=tuple(runs))


def claim(
    values: dict[str, float | bool],
    notes: list[str],
    key: str,
    text: str,
    found: Compared,
    answer: bool | None,
    printed: float | None = None,
) -> None:
    """A judged claim, of a ratio; where the paper prints a number, whether one of our runs could have it."""
    judged(values, notes, key, text, found, answer)
    if printed is not None:
        one = one_more(found, logarithmic=True)
        inside = bool(one.low <= printed <= one.high)
        values[f"{key}_as_printed"] = inside
        where = "inside" if inside else "outside"
        notes[-1] += f"; printed: {printed:g}, {where} that of one more run, {one.low:.3g} to {one.high:.3g}"


def notes_of(traffic: str, found: FabricStudy, quick: bool) -> list[str]:
    """Describe how the paper was read, and what a quick run leaves out."""
    of = TRAFFIC[traffic]
    notes = [
        f"flows arrive for {1e3 * found.runs[0].numbers['window_s'][1]:g} ms from an empty network, and all are "
        "counted: queues have had less time to build than in the paper, which states no duration",
        "packets of 1000 B; XOFF 512 KB; small: up to 100 KB; slowdowns are over the time alone of packets without "
        "telemetry, which HPCC pays for",
    ]
    if of.incast is not None:
        senders, size, load = of.incast
        notes.append(f"beside it, {load:.0%} of incasts of {senders} senders and {size}, whose flows are not counted")
    if quick:
        notes.append(
            "quick: 64 hosts, two seeds, some 0.3 ms, a quarter of an incast; no verdict but that nothing is lost"
        )
    return notes


def bars(axis: Any, names: tuple[str, ...], numbers: list[np.ndarray], groups: list[str]) -> None:
    """Draw means over seeds with intervals: in each group a bar of each scheme; ``numbers`` are (groups, seeds)."""
    width, shades = 0.8 / len(numbers), scheme_colours(names)
    for k, (name, values) in enumerate(zip(names, numbers, strict=True)):
        middle, low, high = np.array([interval(row) for row in values]).T
        at = np.arange(len(groups)) + (k - (len(numbers) - 1) / 2) * width
        errors = np.nan_to_num(np.stack([np.minimum(middle, middle - low), high - middle]))
        zeros(axis, axis.bar(at, middle, width, yerr=errors, color=shades[name], capsize=2, label=name))
    axis.set_xticks(range(len(groups)), groups)
    axis.grid(alpha=0.3, axis="y")


def from_none(axis: Any, linthresh: float) -> None:
    """An axis from 0 to thousands, its ticks plain numbers."""
    axis.set_yscale("symlog", linthresh=linthresh)
    axis.yaxis.set_major_locator(SymmetricalLogLocator(base=10, linthresh=linthresh, subs=(1, 2, 5)))
    axis.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_ylim(0, None)


def sample(found: FabricStudy) -> str:
    """Return the part of a picture's title that names hosts and seeds."""
    return f"{len(found.topology.hosts)} hosts, {len(found.seeds)} seeds (bands and bars: 95 %)"
