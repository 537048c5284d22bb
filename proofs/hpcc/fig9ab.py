"""HPCC Figure 9(a), (b): a flow of 1 MB joins a long one and leaves (section 5.2).

"HPCC recovers the rate of the long flow right after the short flow ends, while DCQCN cannot recover to line rate even
after 2 ms (> 350 RTTs)."
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from fluidcc.plotting.colours import SCHEMES
from fluidcc.plotting.style import figure as new_figure
from fluidcc.plotting.style import label
from fluidcc.proofs import papers
from fluidcc.proofs.hpcc import testbed as testbed
from fluidcc.proofs.hpcc.common import aligned, first_since
from fluidcc.proofs.shared.runs import GBPS, WIDTH, save
from fluidcc.proofs.verdict.figure import Check, Figure, Result, reproduces
from fluidcc.results.trace import Trace

SIZE = 1e6  # bytes
UNTIL, SAMPLED = 20e-3, 50e-6  # s
RECOVERED = 0.95  # of the rate before the short flow
EMPTY = 2e3  # bytes: below this, two packets, the congestion is over
AFTER = 2e-3  # s: "even after 2 ms"
RIGHT_AFTER = 2 * SAMPLED  # one sample may straddle the end of the short flow
DRAWN = (0.5, 7.0)  # ms


@reproduces("hpcc-fig9ab", papers.HPCC, "Figure 9(a), (b): a short flow joins a long one")
def make_fig9ab(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make the figure."""
    seeds = testbed.SEEDS_QUICK if quick else testbed.SEEDS
    runs = testbed.run_all(
        lambda name: testbed.rack(name, 2, start=[0.0, testbed.JOIN], size=[math.inf, SIZE]),
        UNTIL,
        seeds,
        sample_interval=SAMPLED,
    )
    values: dict[str, float | bool] = dict(
        testbed.medians(found := {name: [_numbers(trace) for trace in traces] for name, traces in runs.items()})
    )
    for name in ("dcqcn", "dcqcn_sim"):
        values[f"{name}_slower_than_2ms"] = values[f"{name}_recovery_once_queue_empty_s"] > AFTER
    values["dcqcn_sim_at_line_rate_2ms_after_short_flow"] = values["dcqcn_sim_share_2ms_after_short_flow"] >= RECOVERED
    why = "section 5.2: DCQCN cannot recover to line rate even after 2 ms"
    expected = {
        "hpcc_recovery_after_short_flow_s": Check(
            0.0, RIGHT_AFTER, "section 5.2: right after the short flow ends; two samples of 50 us"
        ),
        "dcqcn_slower_than_2ms": Check(True, 0, why),
        "dcqcn_sim_slower_than_2ms": Check(True, 0, why),
        "dcqcn_sim_at_line_rate_2ms_after_short_flow": Check(False, 0, why),
    }
    notes = [
        *testbed.NOTES,
        f"recovered: {RECOVERED:.0%} of the sending rate before the short flow, over 50 us; counted from the short "
        "flow's end, and from when the queue that it caused is empty; to the end of the run if not before",
        "with the vendor's byte counter DCQCN's short flow is starved and outlives the long flow's recovery, so "
        "'after the short flow ends' tells nothing of it",
    ]
    if quick:
        notes.append(testbed.quick_note(seeds))
    drawn = {name: traces[0] for name, traces in runs.items()}
    data = aligned(drawn, "contender", ("queue", "rate"))
    files = (_draw(drawn).write(folder / f"{figure.name}.png"), save(data, folder / f"{figure.name}.nc"))
    return Result(
        figure,
        values,
        expected,
        files,
        tuple(notes),
        sample=testbed.sample_of(seeds, UNTIL, found, "recovery_once_queue_empty_s", "ms", 1e-3),
    )


def _numbers(trace: Trace) -> dict[str, float]:
    time, queue, rate = trace["time"].values, trace["queue"].values[:, 0], trace["rate"].values[:, 0]
    before = rate[(time > testbed.JOIN / 2) & (time <= testbed.JOIN)].mean()
    back = rate >= RECOVERED * before
    took = float(np.minimum(testbed.finished(trace)[0], UNTIL - testbed.JOIN))
    end = testbed.JOIN + took
    empty = testbed.JOIN + SAMPLED
    empty += first_since(time, queue < EMPTY, empty)
    return {
        "short_flow_fct_s": took,
        "recovery_after_short_flow_s": first_since(time, back, end),
        "recovery_once_queue_empty_s": first_since(time, back, empty),
        "share_2ms_after_short_flow": float(np.interp(end + AFTER, time, rate) / before),
    }


def _draw(traces: dict[str, Trace]) -> Any:
    picture, axes = new_figure(2, len(traces), size=(WIDTH, 5.6), sharex=True, sharey="row")
    for column, (name, trace) in enumerate(traces.items()):
        (top, bottom), shade = axes[:, column], SCHEMES[name.removesuffix("_sim")]
        for k, text in enumerate(("long flow", "short flow, 1 MB")):
            top.plot(trace["time"] * 1e3, trace["rate"][:, k] / GBPS, color=("black", "0.6")[k], lw=1.2, label=text)
        bottom.plot(trace["time"] * 1e3, trace["queue"][:, 0] / 1e3, color=shade, lw=1.2)
        top.set(title=testbed.NAMES[name], xlim=DRAWN, ylim=(0, 26))
        bottom.set(xlabel=label("time", "ms"))
        for axis in (top, bottom):
            axis.grid(alpha=0.3)
    axes[0, 0].set_ylabel(label("sending rate", "Gbps"))
    axes[0, 0].legend(loc="lower right", fontsize="small")
    axes[1, 0].set_ylabel(label("queue", "KB"))
    axes[1, 0].set_ylim(bottom=0)
    picture.suptitle("HPCC Fig. 9(a), (b): a flow of 1 MB joins a long one at 1 ms, 25 Gbps (one seed)")
    return picture
