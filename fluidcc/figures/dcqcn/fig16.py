"""DCQCN Figure 16: throughput of users and of a rebuild against the degree of incast (section 6.2).

Without DCQCN "the throughput of user traffic falls rapidly, as the degree of incast goes up"; with it "there is little
change in the median and tail throughput of user traffic", and the rebuild's 10th percentile is "very close" to 40 Gb/s
over the degree, its median "nearly identical".
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import xarray as xr

from fluidcc import papers
from fluidcc.figures.common import LINE_RATE, WIDTH, save
from fluidcc.figures.dcqcn import benchmark
from fluidcc.figures.dcqcn.benchmark import BOTH, Point, at
from fluidcc.figures.registry import reproduces
from fluidcc.figures.result import Check, Figure, Result
from fluidcc.figures.slowdowns import judged, ratio
from fluidcc.plotting.style import figure as new_figure

DEGREES, DEGREES_QUICK = (2, 4, 6, 8, 10), (2, 10)
PANELS = ["user_p50", "user_p10", "incast_p50", "incast_p10"]
LITTLE = 1.25  # a factor that is little change
CLOSE = 3.43 / 4  # of 40 Gb/s over the degree: the paper's 10th percentile at 10:1
NEARLY = 1.15  # a factor of what is nearly identical


@reproduces("dcqcn-fig16", papers.DCQCN, "Figure 16: benchmark traffic against the degree of incast")
def make_fig16(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make the figure."""
    data = benchmark.study(folder, quick, BOTH, [Point(n) for n in (DEGREES_QUICK if quick else DEGREES)])
    values, notes = benchmark.means(data, list(benchmark.STATISTICS)), benchmark.notes(data, quick)
    _judge(data, values, notes)
    values["drops"] = float(data["drops"].sum())
    expected = {
        "user_p50_dcqcn_over_pfc_holds": Check(True, 0, "section 6.2: the performance of user traffic is much better"),
        "drops": Check(0.0, 0.0, "PFC keeps the network lossless"),
    }
    files = (_draw(data).write(folder / f"{figure.name}.png"), save(data, folder / f"{figure.name}.nc"))
    return Result(figure, values, expected, files, tuple(notes))


def _judge(data: xr.Dataset, values: dict[str, float | bool], notes: list[str]) -> None:
    plain, controlled = BOTH
    for name in ("user_p50", "user_p10", "pair_p50", "pair_p10"):
        text = benchmark.STATISTICS[name]
        fall = ratio(at(data, plain, name, senders=10), at(data, plain, name, senders=2))
        judged(values, notes, f"{name}_pfc_10_over_2", f"PFC only, {text}: falls from 2:1 to 10:1", fall, fall.below(1))
        same = ratio(at(data, controlled, name, senders=10), at(data, controlled, name, senders=2))
        judged(values, notes, f"{name}_dcqcn_10_over_2", f"DCQCN, {text}: changes by less than a factor of {LITTLE:g} "
               "from 2:1 to 10:1", same, same.within(LITTLE))  # fmt: skip
        gain = ratio(at(data, controlled, name, senders=10), at(data, plain, name, senders=10))
        judged(values, notes, f"{name}_dcqcn_over_pfc", f"{text}: more with DCQCN at 10:1", gain, gain.above(1))
    share = ratio(at(data, controlled, "incast_p10", senders=10), at(data, controlled, "incast_p10", senders=10) * 0
                  + LINE_RATE / 10)  # fmt: skip
    judged(values, notes, "incast_p10_dcqcn_over_share", f"DCQCN, rebuild's 10th percentile at 10:1: at least "
           f"{CLOSE:.2f} of 4 Gb/s", share, share.above(CLOSE))  # fmt: skip
    for name, wanted in (("incast_p10", "more"), ("incast_p50", "less")):
        gain = ratio(at(data, controlled, name, senders=10), at(data, plain, name, senders=10))
        judged(values, notes, f"{name}_dcqcn_over_pfc", f"{benchmark.STATISTICS[name]}: {wanted} with DCQCN at 10:1",
               gain, gain.above(1) if wanted == "more" else gain.below(1))  # fmt: skip
    even = ratio(at(data, controlled, "incast_p50", senders=10), at(data, controlled, "incast_p10", senders=10))
    judged(values, notes, "incast_dcqcn_p50_over_p10", "DCQCN, rebuild's median and 10th percentile at 10:1: the same "
           f"but for a factor of {NEARLY:g}", even, even.within(NEARLY))  # fmt: skip


def _draw(data: xr.Dataset) -> Any:
    picture, axes = new_figure(2, 2, size=(WIDTH, 7.4), sharex=True)
    benchmark.draw_over(axes.ravel(), data, "senders", PANELS)
    for axis in axes[1]:
        axis.set_xlabel("degree of incast")
    for axis in (axes[0, 0], axes[1, 0]):
        axis.legend(fontsize="small")
    picture.suptitle(f"DCQCN Fig. 16: {benchmark.USERS} pairs and a rebuild; {data.sizes['draw']} draws, bands 95 %")
    return picture
