"""DCQCN Figure 18: the need for PFC and for right thresholds, 10th percentiles during an 8:1 incast (section 6.2).

Without PFC "packet losses are common", and the rebuild's 10th percentile "is zero". Misconfigured, "the tail throughput
of both user and incast traffic is better than what it would be without DCQCN, but worse than what it would be with".
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from fluidcc.plotting.style import figure as new_figure
from fluidcc.plotting.style import label, zeros
from fluidcc.proofs import papers
from fluidcc.proofs.dcqcn import benchmark
from fluidcc.proofs.dcqcn.benchmark import SETUPS, STATISTICS, Point, at, surplus
from fluidcc.proofs.shared.runs import GBPS, WIDTH, save
from fluidcc.proofs.shared.slowdowns import judged, mean
from fluidcc.proofs.verdict.figure import Check, Figure, Result, reproduces
from fluidcc.workloads.fabrics.study import interval

SENDERS = 8
PLAIN, CONTROLLED, WRONG, *LOSSY = SETUPS
TAILS = ("user_p10", "pair_p10", "incast_p10")
BARS = {"user_p10": "transfers of pairs", "incast_p10": "senders of the rebuild"}
ZERO = 0.01 * 40 * GBPS / SENDERS  # what counts as none: a hundredth of a sender's share


@reproduces("dcqcn-fig18", papers.DCQCN, "Figure 18: the need for PFC and for right thresholds")
def make_fig18(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make the figure."""
    data = benchmark.study(folder, quick, tuple(SETUPS), [Point(SENDERS)])
    names = [*STATISTICS, "pauses", "drops", "retransmissions"]
    values, notes = benchmark.means(data, names), benchmark.notes(data, quick)
    notes.append(
        "no PFC: 12 MB, of which a queue may take as much as is free, or a 32nd of that; go-back-N with a timeout of "
        "320 us, or of 67 ms as InfiniBand's tools set it, longer than a run, that never gives up; misconfigured: "
        "t_PFC = 24.47 KB, Kmin = 120 KB, Kmax and Pmax as in Table 14"
    )
    _judge(data, values, notes)
    values["drops_with_pfc"] = float(data["drops"].sel(setup=[PLAIN, CONTROLLED, WRONG]).sum())
    expected = {
        "user_p10_wrong_worse_than_dcqcn_holds": Check(True, 0, "section 6.2: PFC may be triggered before ECN"),
        "drops_with_pfc": Check(0.0, 0.0, "PFC keeps the network lossless"),
    }
    files = (_draw(data).write(folder / f"{figure.name}.png"), save(data, folder / f"{figure.name}.nc"))
    return Result(figure, values, expected, files, tuple(notes), sample=benchmark.sample_of(data, quick))


def _judge(data: xr.Dataset, values: dict[str, float | bool], notes: list[str]) -> None:
    def rates(setup: str, name: str) -> np.ndarray:
        return at(data, setup, name, senders=SENDERS)

    for name in TAILS:
        text = STATISTICS[name]
        better = surplus(rates(WRONG, name), rates(PLAIN, name))
        judged(values, notes, f"{name}_wrong_better_than_pfc", f"{text}: misconfigured above PFC alone, Gb/s more",
               better, better.above(0))  # fmt: skip
        worse = surplus(rates(WRONG, name), rates(CONTROLLED, name))
        judged(values, notes, f"{name}_wrong_worse_than_dcqcn", f"{text}: misconfigured below DCQCN, Gb/s more", worse,
               worse.below(0))  # fmt: skip
    for setup in LOSSY:
        key = benchmark.key_of(setup)
        for name in TAILS:
            gap = surplus(rates(setup, name), rates(CONTROLLED, name))
            judged(values, notes, f"{key}_below_dcqcn_{name}", f"{STATISTICS[name]}: {setup} below DCQCN, in "
                   "Gb/s", gap, gap.below(0))  # fmt: skip
        least = mean(rates(setup, "incast_p10") / ZERO)
        judged(values, notes, f"{key}_incast_p10_is_zero", f"{setup}: the rebuild's 10th percentile is zero, in 1 % of "
               "its share", least, least.below(1))  # fmt: skip
        lost = mean(rates(setup, "drops"))
        judged(values, notes, f"{key}_loses", f"{setup}: packets are lost, of a run", lost, lost.above(0))


def _draw(data: xr.Dataset) -> Any:
    picture, axes = new_figure(1, 2, size=(WIDTH * 1.2, 4.8), gridspec_kw={"width_ratios": [1.7, 1]})
    bars, lost = axes[0]
    places = np.arange(len(SETUPS))
    words = [name.replace(", ", ",\n") for name in SETUPS]
    for k, (name, text) in enumerate(BARS.items()):
        mid, low, high = np.array([interval(at(data, s, name, senders=SENDERS) / GBPS) for s in SETUPS]).T
        errors = [np.minimum(mid, mid - low), high - mid]
        drawn = {"yerr": errors, "color": ("0.35", "0.7")[k], "capsize": 4, "label": text}
        zeros(bars, bars.bar(places + (k - 0.5) * 0.38, mid, 0.36, **drawn))
    bars.axhline(40 / SENDERS, color="black", ls="--", lw=0.9, label="40 Gbps over the degree")
    bars.set_ylabel(label("10th percentile of throughput", "Gbps"))
    drops = np.array([at(data, s, "drops", senders=SENDERS) for s in SETUPS])
    lost.plot(places, drops, ".", color="black", ms=5, alpha=0.6)
    lost.set_yscale("symlog", linthresh=10)
    lost.set_ylim(bottom=-1)
    lost.set_ylabel("packets lost in a run, each draw [1]")
    bars.set_xticks(places, words, fontsize="small")
    lost.set_xticks(places, list(SETUPS), fontsize="small", rotation=30, ha="right")
    for axis in (bars, lost):
        axis.grid(alpha=0.3, axis="y")
    bars.legend(fontsize="small", loc="upper left")
    picture.suptitle(
        f"DCQCN Fig. 18: {benchmark.USERS} pairs and a rebuild from {SENDERS}; {data.sizes['draw']} draws, bars 95 %"
    )
    return picture
