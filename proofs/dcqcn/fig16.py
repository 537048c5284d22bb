"""DCQCN Figure 16: throughput of users and of a rebuild against the degree of incast (section 6.2).

Without DCQCN "the throughput of user traffic falls rapidly, as the degree of incast goes up"; with it "there is little
change in the median and tail throughput of user traffic", and the rebuild's 10th percentile is "very close" to 40 Gb/s
over the degree, its median "nearly identical".
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import xarray as xr

from fluidcc.proofs import papers
from fluidcc.proofs.dcqcn import benchmark
from fluidcc.proofs.dcqcn.benchmark import BOTH, STATISTICS, Point, at, surplus
from fluidcc.proofs.shared.runs import LINE_RATE, save
from fluidcc.proofs.shared.slowdowns import judged, mean, ratio
from fluidcc.proofs.verdict.figure import Check, Figure, Result, reproduces

DEGREES, DEGREES_QUICK = (2, 4, 6, 8, 10), (2, 10)
LITTLE = 1.25  # a factor that is little change
CLOSE = 3.43 / 4  # of 40 Gb/s over the degree: the paper's 10th percentile at 10:1
NEARLY = 1.15  # a factor of what is nearly identical


@reproduces("dcqcn-fig16", papers.DCQCN, "Figure 16: benchmark traffic against the degree of incast")
def make_fig16(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make the figure."""
    data = benchmark.study(folder, quick, BOTH, [Point(n) for n in (DEGREES_QUICK if quick else DEGREES)])
    values, notes = benchmark.means(data, list(STATISTICS)), benchmark.notes(data, quick)
    _judge(data, values, notes)
    values["drops"] = float(data["drops"].sum())
    expected = {
        "user_p50_dcqcn_gains_holds": Check(
            True, 0, "section 6.2, Fig. 16a: the performance of user traffic is much better"
        ),
        "pair_p50_dcqcn_gains_holds": Check(
            True,
            0,
            "section 6.2: the performance of user traffic is much better; of pairs' goodput, which is ours",
        ),
        "drops": Check(0.0, 0.0, "PFC keeps the network lossless"),
    }
    files = (_draw(data).write(folder / f"{figure.name}.png"), save(data, folder / f"{figure.name}.nc"))
    return Result(figure, values, expected, files, tuple(notes), sample=benchmark.sample_of(data, quick))


def _judge(data: xr.Dataset, values: dict[str, float | bool], notes: list[str]) -> None:
    plain, controlled = ({name: {n: at(data, setup, name, senders=n) for n in (2, 10)} for name in STATISTICS}
                         for setup in BOTH)  # fmt: skip
    for name in ("user_p50", "user_p10", "pair_p50", "pair_p10"):
        text, few, many = STATISTICS[name], plain[name][2], plain[name][10]
        fall = surplus(many, few)
        judged(values, notes, f"{name}_pfc_falls", f"{text}: PFC alone gives less at 10:1 than at 2:1, Gb/s more", fall,
               fall.below(0))  # fmt: skip
        same = ratio(controlled[name][10], controlled[name][2])
        judged(values, notes, f"{name}_dcqcn_stays", f"{text}: with DCQCN the same at 10:1 as at 2:1 but for a factor "
               f"of {LITTLE:g}, ratio", same, same.within(LITTLE))  # fmt: skip
        gain = surplus(controlled[name][10], many)
        judged(values, notes, f"{name}_dcqcn_gains", f"{text}: more with DCQCN at 10:1, Gb/s more", gain, gain.above(0))
    share = mean(controlled["incast_p10"][10] / (LINE_RATE / 10))
    judged(values, notes, "incast_p10_dcqcn_close_to_share", f"{STATISTICS['incast_p10']}: with DCQCN at 10:1 at least "
           f"{CLOSE:.2f} of 4 Gb/s, share", share, share.above(CLOSE))  # fmt: skip
    gain = surplus(controlled["incast_p10"][10], plain["incast_p10"][10])
    judged(values, notes, "incast_p10_dcqcn_gains", f"{STATISTICS['incast_p10']}: more with DCQCN at 10:1, Gb/s more",
           gain, gain.above(0))  # fmt: skip
    loss = surplus(controlled["incast_p50"][10], plain["incast_p50"][10])
    judged(values, notes, "incast_p50_dcqcn_lower", f"{STATISTICS['incast_p50']}: less with DCQCN at 10:1, Gb/s more",
           loss, loss.below(0))  # fmt: skip
    even = ratio(controlled["incast_p50"][10], controlled["incast_p10"][10])
    judged(values, notes, "incast_dcqcn_even", "the rebuild's median over its 10th percentile, DCQCN at 10:1: 1 but "
           f"for a factor of {NEARLY:g}, ratio", even, even.within(NEARLY))  # fmt: skip


def _draw(data: xr.Dataset) -> Any:
    picture = benchmark.draw_over(data, "senders", "degree of incast")
    picture.suptitle(f"DCQCN Fig. 16: {benchmark.USERS} pairs and a rebuild; {data.sizes['draw']} draws, bands 95 %")
    return picture
