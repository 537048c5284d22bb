"""HPCC++ MultiQ: 15-to-1 incast of three classes, before and after, and what its three branches lock in at.

The slides give neither the weights of the classes (equal here), nor the flavour of TCP (DCTCP here, marked by its own
queue at 300 KB), nor the packets' payload (1500 B here). "AI = 0.005 (5.0Gbps)" is read as 0.005 of the 100 Gb/s line:
5 Gb/s would hold U at 3.8.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fluidcc.plots import figure as new_figure
from fluidcc.recursion import multiq
from fluidcc.reproduce.common import GBPS, WIDTH, save
from fluidcc.reproduce.hpcc_common import aligned
from fluidcc.reproduce.result import Check, Figure, Result
from fluidcc.scenario import RED, Flow, Link, Scenario, TrafficClass
from fluidcc.schemes.dctcp import DCTCP
from fluidcc.schemes.hpcc_multiq import HPCCMultiQ
from fluidcc.simulate import simulate
from fluidcc.trace import Trace

LINE, ETA, CLASSES, EACH = 100 * GBPS, 0.95, 3, 5
SHARE = 1 / CLASSES
RULES = {"off": "HPCC as it is", "slides": "MultiQ's three branches", "spare": "counting what is unused"}
STARTS = {"low": 0.05 * LINE, "high": 1.0 * LINE}  # of a class alone
SAMPLED = 20e-6  # s


def make(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make the figure."""
    until = 5e-3 if quick else 20e-3
    traces = {f"{rule} beside": _run(rule, CLASSES, until) for rule in RULES}
    traces |= {
        f"{rule} alone {start}": _run(rule, 1, until, rate / EACH)
        for rule in ("slides", "spare")
        for start, rate in STARTS.items()
    }
    values: dict[str, float | bool] = {}
    expected: dict[str, Check] = {}
    for rule in RULES:
        values[f"{rule}_hpcc_share"] = _of_hpcc(traces[f"{rule} beside"]) / LINE
    expected["off_hpcc_share"] = Check(0.0, SHARE / 2, "slides: without changes the class is far below its share")
    for rule in ("slides", "spare"):
        why = "slides: each class's rate can achieve its fair rate; a third of the line, within 5 %"
        expected[f"{rule}_hpcc_share"] = Check(SHARE, 0.05 * SHARE, why)
        for start, rate in STARTS.items():
            key = f"{rule}_alone_from_{start}_share"
            values[key] = _of_hpcc(traces[f"{rule} alone {start}"]) / LINE
            rest = multiq.orbit(rate / LINE, share=SHARE, rule=rule).rates[0]
            values[f"{rule}_alone_from_{start}_recursion"] = rest
            expected[key] = Check(rest, 0.02, "the recursion's rest, R' = R eta/U; 2 % for W_AI and whole packets")
    # Served between its guarantee and eta B/(2 - eta), a class has no rest under the slides' branches.
    between = multiq.orbit(0.6, share=0.5, served=0.6)
    values |= {"between_cycle_rtts": float(between.period), "between_cycle_low": min(between.rates)}
    values["between_cycle_high"] = max(between.rates)
    expected["between_cycle_rtts"] = Check(2.0, 0, "two-cycle of the recursion, served at 0.6 B with half guaranteed")
    notes = (
        "equal weights, DCTCP marked at 300 KB of its own queue, 1500 B of payload, additive increase 0.5 Gb/s beside "
        "the other classes and 1 Mb/s alone: the slides give none of these",
        "counting what is unused is ours: U = tx/c + q/(c T) with c the guaranteed rate, or the class's own and all "
        "that no class uses, if that is more",
        *(("quick: a quarter of the time",) if quick else ()),
    )
    data = aligned({f"{rule} beside": traces[f"{rule} beside"] for rule in RULES}, "run", ("queue", "rate"))
    files = (_draw(traces).write(folder / f"{figure.name}.png"), save(data, folder / f"{figure.name}.nc"))
    return Result(figure, values, expected, files, notes)


def _run(rule: str, classes: int, until: float, start: float | None = None) -> Trace:
    scheme = HPCCMultiQ(multiq=rule, rate_ai="0.5Gbps" if classes > 1 else "1Mbps")
    link = Link(LINE, "1us", RED("300KB", "300KB", 1.0), "bottleneck", "switch", "receiver")
    flows = tuple(
        Flow(
            (0,),
            DCTCP() if c else scheme,
            LINE,
            initial_rate=None if c else start,
            traffic_class=c,
            name=f"class {c} flow {i}",
            source=f"host {c}.{i}",
            target="receiver",
        )
        for c in range(classes)
        for i in range(EACH)
    )
    scenario = Scenario((link,), flows, packet_size="1500B", classes=(TrafficClass(),) * CLASSES)
    return simulate(scenario, until, engine="packet", seed=1, sample_interval=SAMPLED)


def _of_hpcc(trace: Trace) -> float:
    """Rate of the first class over the second half [bytes/s]."""
    return float(np.sum(trace.summary["rate_bytes_per_s"][:EACH]))


def _draw(traces: dict[str, Trace]) -> Any:
    picture, axes = new_figure(2, 3, size=(WIDTH, 6.6))
    for axis, (rule, title) in zip(axes[0], RULES.items(), strict=True):
        trace = traces[f"{rule} beside"]
        rates = trace["rate"].values.reshape(-1, CLASSES, EACH).sum(axis=2) / GBPS
        for c in range(CLASSES):
            axis.plot(trace["time"] * 1e3, rates[:, c], lw=0.8, label=f"{'DCTCP' if c else 'HPCC'}, class {c}")
        axis.axhline(SHARE * LINE / GBPS, color="0.3", ls="--", lw=0.8)
        axis.set(title=title, ylim=(0, 105))
        axis.set(xlabel="time [ms]", ylabel="rate of each class [Gbps]")
    axes[0, 0].legend(fontsize=8)
    rate = np.linspace(1e-3, 1, 1000)
    for rule in ("slides", "spare"):
        axes[1, 0].plot(rate, multiq.step(rate, share=SHARE, rule=rule), lw=1, label=RULES[rule])
    axes[1, 0].plot(rate, rate, color="0.3", ls="--", lw=0.8, label="rest")
    axes[1, 0].set(title="recursion: one round trip later", xlim=(0, 1), ylim=(0, 1))
    axes[1, 0].set(xlabel="rate of a class alone / line", ylabel="next rate / line")
    axes[1, 0].legend(fontsize=8)
    for axis, rule in zip(axes[1, 1:], ("slides", "spare"), strict=True):
        for start in STARTS:
            trace = traces[f"{rule} alone {start}"]
            total = trace["rate"].values[:, :EACH].sum(axis=1) / GBPS
            axis.plot(trace["time"] * 1e3, total, lw=0.8, label=f"from {STARTS[start] / LINE:.0%} of the line")
            rest = multiq.orbit(STARTS[start] / LINE, share=SHARE, rule=rule).rates[0]
            axis.axhline(rest * LINE / GBPS, color="0.3", ls="--", lw=0.8)
        axis.set(title=f"alone: {RULES[rule]}", ylim=(0, 105))
        axis.set(xlabel="time [ms]", ylabel="rate of the class [Gbps]")
        axis.legend(fontsize=8)
    picture.suptitle("HPCC++ MultiQ: three classes of equal weight at 100 Gbps; packets, dashed: recursion")
    return picture
