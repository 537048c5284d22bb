"""DCQCN Figure 17: throughput of users and of a rebuild from 10 hosts against the number of pairs (section 6.2).

"The performance of user traffic with 5 communicating pairs when no DCQCN is used, matches the performance of user
traffic with 80 communicating pairs, with DCQCN." The rebuild "is more uniform and fair with DCQCN".
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import xarray as xr

from fluidcc import papers
from fluidcc.figures.common import WIDTH, save
from fluidcc.figures.dcqcn import benchmark
from fluidcc.figures.dcqcn.benchmark import BOTH, MOST_SENDERS, Point, at
from fluidcc.figures.registry import reproduces
from fluidcc.figures.result import Check, Figure, Result
from fluidcc.figures.slowdowns import judged, ratio
from fluidcc.plotting.style import figure as new_figure

PAIRS, PAIRS_QUICK = (5, 10, 20, 40, 80), (5, 80)
PANELS = ["user_p50", "user_p10", "incast_p50", "incast_p10"]


@reproduces("dcqcn-fig17", papers.DCQCN, "Figure 17: benchmark traffic against the number of pairs")
def make_fig17(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make the figure."""
    points = [Point(MOST_SENDERS, pairs) for pairs in (PAIRS_QUICK if quick else PAIRS)]
    data = benchmark.study(folder, quick, BOTH, points)
    values, notes = benchmark.means(data, list(benchmark.STATISTICS)), benchmark.notes(data, quick)
    _judge(data, values, notes)
    values["drops"] = float(data["drops"].sum())
    expected = {
        "user_p50_dcqcn_over_pfc_80_pairs_holds": Check(True, 0, "section 6.2: DCQCN handles more user traffic"),
        "drops": Check(0.0, 0.0, "PFC keeps the network lossless"),
    }
    files = (_draw(data).write(folder / f"{figure.name}.png"), save(data, folder / f"{figure.name}.nc"))
    return Result(figure, values, expected, files, tuple(notes))


def _judge(data: xr.Dataset, values: dict[str, float | bool], notes: list[str]) -> None:
    plain, controlled = BOTH
    for name in ("user_p50", "user_p10", "pair_p50", "pair_p10"):
        text = benchmark.STATISTICS[name]
        match = ratio(at(data, controlled, name, pairs=80), at(data, plain, name, pairs=5))
        judged(values, notes, f"{name}_dcqcn_80_over_pfc_5", f"{text}: with DCQCN and 80 pairs at least what PFC alone "
               "gives 5", match, match.above(1))  # fmt: skip
        gain = ratio(at(data, controlled, name, pairs=80), at(data, plain, name, pairs=80))
        judged(values, notes, f"{name}_dcqcn_over_pfc_80_pairs", f"{text}: more with DCQCN, with 80 pairs", gain,
               gain.above(1))  # fmt: skip
    spread = {
        setup: at(data, setup, "incast_p10", pairs=80) / at(data, setup, "incast_p50", pairs=80) for setup in BOTH
    }
    even = ratio(spread[controlled], spread[plain])
    judged(values, notes, "incast_more_even_dcqcn", "the rebuild's 10th percentile over its median: nearer to 1 with "
           "DCQCN, with 80 pairs", even, even.above(1))  # fmt: skip


def _draw(data: xr.Dataset) -> Any:
    picture, axes = new_figure(2, 2, size=(WIDTH, 7.4), sharex=True)
    benchmark.draw_over(axes.ravel(), data, "pairs", PANELS)
    for axis in axes[1]:
        axis.set_xlabel("pairs")
    for axis in (axes[0, 0], axes[1, 0]):
        axis.legend(fontsize="small")
    picture.suptitle(
        f"DCQCN Fig. 17: pairs beside a rebuild from {MOST_SENDERS} hosts; {data.sizes['draw']} draws, bands 95 %"
    )
    return picture
