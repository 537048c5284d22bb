"""HPCC Figure 9(c), (d): seven senders join the receiver of a long flow (section 5.2).

"HPCC quickly reacts after just one round trip, so the queue drains quickly. With DCQCN, the queue builds up to 550 KB
due to two reasons: (1) it waits for the queue build up for ECN, and (2) it does not limit the inflight bytes." How much
the seven send is not said; here they stay.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fluidcc.plotting.colours import SCHEMES
from fluidcc.plotting.style import figure as new_figure
from fluidcc.plotting.style import label
from fluidcc.proofs import papers
from fluidcc.proofs.hpcc import testbed as testbed
from fluidcc.proofs.hpcc.common import aligned, drain_time
from fluidcc.proofs.shared.runs import GBPS, WIDTH, packet_runs, save
from fluidcc.proofs.verdict.figure import Check, Figure, Result, reproduces
from fluidcc.results.trace import Trace

JOINERS = 7
UNTIL, SAMPLED = 2e-3, 1e-6  # s
EVERY = 10  # samples over which drawn rates are averaged
DRAWN = (0.9, 1.6)  # ms
STARTS = [0.0] + [testbed.JOIN] * JOINERS
DRAIN_TOLERANCE = 0.25  # of the time that the line takes for the peak


@reproduces("hpcc-fig9cd", papers.HPCC, "Figure 9(c), (d): seven senders join a long flow")
def make_fig9cd(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make the figure."""
    seeds = testbed.SEEDS_QUICK if quick else testbed.SEEDS
    runs = testbed.run_all(
        lambda name: testbed.rack(name, 1 + JOINERS, start=STARTS), UNTIL, seeds, sample_interval=SAMPLED
    )
    values: dict[str, float | bool] = dict(
        testbed.medians(found := {name: [_numbers(trace) for trace in traces] for name, traces in runs.items()})
    )
    # The same with marks set as packets arrive: what is marked then waits behind the whole queue.
    late = testbed.rack("dcqcn", 1 + JOINERS, start=STARTS, mark_on="arrival")
    peaks = [trace.summary["queue_bytes"]["max_whole_run"] for trace in packet_runs([late] * seeds, UNTIL)]
    values["dcqcn_marked_on_arrival_queue_peak_bytes"] = float(np.median(peaks))
    notes = [
        *testbed.NOTES,
        "drained: from the peak to 5 % of it; the seven stay, which the paper does not say",
    ]
    if quick:
        notes.append(testbed.quick_note(seeds))
    drawn = {name: traces[0] for name, traces in runs.items()}
    data = aligned(drawn, "contender", ("queue", "rate"))
    files = (_draw(drawn).write(folder / f"{figure.name}.png"), save(data, folder / f"{figure.name}.nc"))
    return Result(
        figure,
        values,
        _expected(values),
        files,
        tuple(notes),
        sample=testbed.sample_of(seeds, UNTIL, found, "queue_peak_bytes", "KB", 1e3),
    )


def _numbers(trace: Trace) -> dict[str, float]:
    time, queue = trace["time"].values, trace["queue"].values[:, 0]
    return {
        "queue_peak_bytes": trace.summary["queue_bytes"]["max_whole_run"],
        "queue_peak_after_s": float(time[queue.argmax()]) - testbed.JOIN,
        "drain_time_s": drain_time(time, queue),
    }


def _expected(values: dict[str, float | bool]) -> dict[str, Check]:
    scenario = testbed.rack("hpcc", 1 + JOINERS)
    packet = scenario.wire_packet_of(scenario.flows[0])
    drain = float(values["hpcc_queue_peak_bytes"]) / testbed.LINE
    # Each microsecond before DCQCN reacts adds 22 KB, and how long its NICs take is not said: a base RTT of it.
    leeway = JOINERS * testbed.LINE * testbed.BASE_RTT
    why = "section 5.2: up to 550 KB; within what seven senders at line rate add in a base RTT"
    return {
        "hpcc_queue_peak_bytes": Check(
            JOINERS * testbed.T * testbed.LINE,
            (1 + JOINERS) * packet,
            "section 3.2: no more in flight than the first windows, B T each; a packet of each flow",
        ),
        "hpcc_queue_peak_after_s": Check(
            testbed.T, testbed.BASE_RTT, "section 5.2: reacts after one round trip; the first windows last T"
        ),
        "hpcc_drain_time_s": Check(
            drain, DRAIN_TOLERANCE * drain, "section 5.2: drains quickly; as fast as the line can carry it"
        ),
        "dcqcn_queue_peak_bytes": Check(550e3, leeway, why),
        "dcqcn_sim_queue_peak_bytes": Check(550e3, leeway, why),
    }


def _draw(traces: dict[str, Trace]) -> Any:
    picture, axes = new_figure(2, len(traces), size=(WIDTH, 5.6), sharex=True, sharey="row")
    for column, (name, trace) in enumerate(traces.items()):
        (top, bottom), shade = axes[:, column], SCHEMES[name.removesuffix("_sim")]
        time = trace["time"].values * 1e3
        rates = trace["rate"].values[1:]  # a sample's rate is that of the interval before it
        rates = rates[: len(rates) // EVERY * EVERY].reshape(-1, EVERY, 1 + JOINERS).mean(axis=1) / GBPS
        ends = time[EVERY::EVERY]
        top.plot(ends, rates[:, 0], color="black", lw=1.2, label="long flow", zorder=3)
        top.plot(ends, rates[:, 1:].sum(axis=1), color="0.6", lw=1.2, label="the seven together")
        bottom.plot(time, trace["queue"][:, 0] / 1e3, color=shade, lw=1.2)
        top.set(title=testbed.NAMES[name], xlim=DRAWN, ylim=(0, 50))
        bottom.set(xlabel=label("time", "ms"))
        for axis in (top, bottom):
            axis.grid(alpha=0.3)
    axes[0, 0].set_ylabel(label("sending rate", "Gbps"))
    axes[0, 0].legend(loc="upper right", fontsize="small")
    axes[1, 0].set_ylabel(label("queue", "KB"))
    axes[1, 0].set_ylim(bottom=0)
    picture.suptitle(
        "HPCC Fig. 9(c), (d): seven senders join a long flow at 1 ms, 25 Gbps (one seed; rates over 10 us)"
    )
    return picture
