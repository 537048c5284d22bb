"""DCQCN Figure 15: PAUSE messages that the spines receive, with and without DCQCN (section 6.2).

"In a single run of the experiment with incast degree 10, the two spine switches together receive over 6 million PAUSE
messages. In contrast, when DCQCN is used, the spine switches see just 3000 PAUSE messages." How long their ports stand
still is drawn beside.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from fluidcc.plotting.style import figure as new_figure
from fluidcc.plotting.style import label
from fluidcc.proofs import papers
from fluidcc.proofs.dcqcn import benchmark
from fluidcc.proofs.dcqcn.benchmark import BOTH, Point, at
from fluidcc.proofs.shared.runs import WIDTH, save
from fluidcc.proofs.shared.slowdowns import difference, judged
from fluidcc.proofs.verdict.figure import Check, Figure, Result, reproduces
from fluidcc.workloads.fabrics.study import interval

DEGREES, DEGREES_QUICK = (2, 4, 6, 8, 10), (2, 10)
PRINTED = {"PFC only": 6e6 / 120, "DCQCN": 3000 / 120}  # at a degree of 10, of two minutes [1/s]
FEW = 0.01  # of those without DCQCN: two orders of magnitude, of the paper's three


@reproduces("dcqcn-fig15", papers.DCQCN, "Figure 15: PAUSE messages at the spines")
def make_fig15(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make the figure."""
    data = benchmark.study(folder, quick, BOTH, [Point(n) for n in (DEGREES_QUICK if quick else DEGREES)])
    values, notes = benchmark.means(data, ["pauses", "paused"]), benchmark.notes(data, quick)
    plain, controlled = (at(data, setup, "pauses", senders=10) for setup in BOTH)
    left = difference(controlled, FEW * plain)
    judged(values, notes, "with_dcqcn_less_hundredth", "DCQCN leaves less than a hundredth of the PAUSEs at 10:1, "
           "surplus in 1/s", left, left.below(0))  # fmt: skip
    growth = difference(plain, at(data, "PFC only", "pauses", senders=2))
    judged(values, notes, "pauses_grow_with_degree", "without DCQCN there are more PAUSEs at 10:1 than at 2:1, in 1/s",
           growth, growth.above(0))  # fmt: skip
    longer = difference(*(at(data, BOTH[0], "paused", senders=n) for n in (10, 2)))
    judged(values, notes, "paused_longer_with_degree", "without DCQCN spines stand still for longer at 10:1 than at "
           "2:1, share of time more", longer, longer.above(0))  # fmt: skip
    values["drops"] = float(data["drops"].sum())
    expected = {
        "with_dcqcn_less_hundredth_holds": Check(True, 0, "section 6.2: 3000 in place of 6 million"),
        "drops": Check(0.0, 0.0, "PFC keeps the network lossless"),
    }
    files = (_draw(data).write(folder / f"{figure.name}.png"), save(data, folder / f"{figure.name}.nc"))
    return Result(figure, values, expected, files, tuple(notes), sample=benchmark.sample_of(data, quick))


def _draw(data: xr.Dataset) -> Any:
    picture, axes = new_figure(1, 2, size=(WIDTH, 4.6))
    frames, still = axes[0]
    places = data["senders"].values
    for setup, shade in benchmark.setup_colours(BOTH).items():
        for axis, name in ((frames, "pauses"), (still, "paused")):
            mean, low, high = np.array([interval(row) for row in data[name].sel(setup=setup).values]).T
            errors = [mean - np.maximum(low, 0), high - mean]
            axis.errorbar(places, mean, errors, fmt="o-", color=shade, capsize=4, lw=1.3, label=setup)
        frames.plot(10.2, PRINTED[setup], "*", color=shade, ms=12, mec="black", label=f"{setup}, printed")
    frames.set_yscale("symlog", linthresh=10)
    frames.set(ylabel=label("PAUSEs received by S1 and S2", "1/s"))
    frames.set_ylim(bottom=-1)
    still.set_ylabel(label("ports of S1 and S2 paused, share of time", "1"))
    still.set_ylim(bottom=0)
    for axis in (frames, still):
        axis.set(xlabel="degree of incast", xticks=places)
        axis.grid(alpha=0.3)
        axis.legend(fontsize="small")
    frames.legend(fontsize="small", loc="center left")
    picture.suptitle(f"DCQCN Fig. 15: {benchmark.USERS} pairs and a rebuild; {data.sizes['draw']} draws, bars 95 %")
    return picture
