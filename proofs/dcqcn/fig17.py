"""DCQCN Figure 17: throughput of users and of a rebuild from 10 hosts against the number of pairs (section 6.2).

"The performance of user traffic with 5 communicating pairs when no DCQCN is used, matches the performance of user
traffic with 80 communicating pairs, with DCQCN." The rebuild "is more uniform and fair with DCQCN".
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import xarray as xr

from fluidcc.proofs import papers
from fluidcc.proofs.dcqcn import benchmark
from fluidcc.proofs.dcqcn.benchmark import BOTH, MOST_SENDERS, STATISTICS, Point, at, surplus
from fluidcc.proofs.shared.runs import save
from fluidcc.proofs.shared.slowdowns import difference, judged
from fluidcc.proofs.verdict.figure import Check, Figure, Result, reproduces

PAIRS, PAIRS_QUICK = (5, 10, 20, 40, 80), (5, 80)


@reproduces("dcqcn-fig17", papers.DCQCN, "Figure 17: benchmark traffic against the number of pairs")
def make_fig17(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make the figure."""
    points = [Point(MOST_SENDERS, pairs) for pairs in (PAIRS_QUICK if quick else PAIRS)]
    data = benchmark.study(folder, quick, BOTH, points)
    values, notes = benchmark.means(data, list(STATISTICS)), benchmark.notes(data, quick)
    _judge(data, values, notes)
    values["drops"] = float(data["drops"].sum())
    expected = {
        "user_p50_dcqcn_80_matches_pfc_5_holds": Check(
            True, 0, "section 6.2, Fig. 17a: users with 80 pairs and DCQCN have what they have with 5 without"
        ),
        "pair_p50_dcqcn_gains_at_80_holds": Check(
            True,
            0,
            "section 6.2: DCQCN handles more user traffic; of pairs' goodput, which is ours",
        ),
        "drops": Check(0.0, 0.0, "PFC keeps the network lossless"),
    }
    files = (_draw(data).write(folder / f"{figure.name}.png"), save(data, folder / f"{figure.name}.nc"))
    return Result(figure, values, expected, files, tuple(notes), sample=benchmark.sample_of(data, quick))


def _judge(data: xr.Dataset, values: dict[str, float | bool], notes: list[str]) -> None:
    plain, controlled = ({name: {n: at(data, setup, name, pairs=n) for n in (5, 80)} for name in STATISTICS}
                         for setup in BOTH)  # fmt: skip
    for name in ("user_p50", "user_p10", "pair_p50", "pair_p10"):
        text = STATISTICS[name]
        match = surplus(controlled[name][80], plain[name][5])
        judged(values, notes, f"{name}_dcqcn_80_matches_pfc_5", f"{text}: with DCQCN and 80 pairs more than with PFC "
               "alone and 5, Gb/s more", match, match.above(0))  # fmt: skip
        gain = surplus(controlled[name][80], plain[name][80])
        judged(values, notes, f"{name}_dcqcn_gains_at_80", f"{text}: more with DCQCN, both with 80 pairs, Gb/s more",
               gain, gain.above(0))  # fmt: skip
    for pairs in (5, 80):
        even = difference(*(each["incast_p10"][pairs] / each["incast_p50"][pairs] for each in (controlled, plain)))
        judged(values, notes, f"incast_more_even_with_{pairs}", "the rebuild's 10th percentile over its median: nearer "
               f"to 1 with DCQCN, {pairs} pairs, difference", even, even.above(0))  # fmt: skip


def _draw(data: xr.Dataset) -> Any:
    picture = benchmark.draw_over(data, "pairs", "pairs")
    picture.suptitle(
        f"DCQCN Fig. 17: pairs beside a rebuild from {MOST_SENDERS} hosts; {data.sizes['draw']} draws, bands 95 %"
    )
    return picture
