"""HPCC++ MultiQ: 15-to-1 incast of three classes, before and after, and alone.

Alone the three branches lock in at the guarantee because the runs add 1 Mb/s a flow; at the slides' 5 Gb/s they do not.
The slides give neither the weights of the classes (equal here), nor the flavour of TCP (DCTCP here, marked by its own
queue at 300 KB); their MTU of 1536 B is 1500 B of payload here. "AI = 0.005 (5.0Gbps)" is run as printed, which is
0.005 flits per ns if 0.025 are 25 Gb/s, as on the same deck's other slides; and at a tenth, 0.005 of the line.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fluidcc.engines.run import simulate
from fluidcc.plotting.colours import SCHEMES, shade
from fluidcc.plotting.style import figure as new_figure
from fluidcc.plotting.style import legend
from fluidcc.proofs import papers
from fluidcc.proofs.hpcc.common import aligned, slope
from fluidcc.proofs.shared import sample
from fluidcc.proofs.shared.runs import GBPS, WIDTH, save
from fluidcc.proofs.verdict.figure import Check, Figure, Result, reproduces
from fluidcc.results.trace import Trace
from fluidcc.scenario.model import RED, Flow, Link, Scenario, TrafficClass, resolve
from fluidcc.scenario.round_trips import largest_base_rtt
from fluidcc.schemes.dctcp import DCTCP
from fluidcc.schemes.hpcc_multiq import HPCCMultiQ
from fluidcc.theory.recursion import multiq

LINE, ETA, CLASSES, EACH = 100 * GBPS, 0.95, 3, 5
SHARE = 1 / CLASSES
RULES = {"class": "before: U over the link", "slides": "after: three branches", "spare": "after: what is unused (ours)"}
INCREASES = {"5": 5 * GBPS, "0.5": 0.5 * GBPS}
STARTS = {"low": 0.05 * LINE, "high": 1.0 * LINE}  # of a class alone
SAMPLED, SMOOTHED = 10e-6, 10  # s, samples of a rate
SHOWN = 5.0  # ms, in the picture


@reproduces("hpcc-multiq", papers.HPCCPP, "MultiQ: three classes at 15-to-1, before and after")
def make_multiq(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make the figure."""
    until = 5e-3 if quick else 20e-3
    beside = {
        f"{rule} {increase}": _scenario(rule, CLASSES, rate)
        for rule in ("off", *RULES)
        for increase, rate in INCREASES.items()
    }
    alone = {
        f"{rule} alone {start}": _scenario(rule, 1, 1e-3 * GBPS, rate / EACH)
        for rule in ("slides", "spare")
        for start, rate in STARTS.items()
    }
    traces = {
        name: simulate(scenario, until, engine="packet", seed=1, sample_interval=SAMPLED)
        for name, scenario in (beside | alone).items()
    }
    values: dict[str, float | bool] = {}
    expected: dict[str, Check] = {}
    for name, scenario in beside.items():
        _beside(name, traces[name], largest_base_rtt(resolve(scenario)), scenario, values, expected)
    expected["off_0.5_hpcc_share"] = Check(0.0, SHARE / 2, "U of the whole port: the class is far below its share")
    for rule in ("slides", "spare"):
        values[f"{rule}_queue_is_shorter"] = values[f"{rule}_5_queue_bytes"] < values["class_5_queue_bytes"] / 2
        expected[f"{rule}_queue_is_shorter"] = Check(True, 0, "slides: before and after; less than half is ours")
        for start, rate in STARTS.items():
            key = f"{rule}_alone_from_{start}_share"
            values[key] = float(np.sum(traces[f"{rule} alone {start}"].summary["rate_bytes_per_s"])) / LINE
            fixed_point = multiq.orbit(rate / LINE, share=SHARE, rule=rule).rates[0]
            values[f"{rule}_alone_from_{start}_recursion"] = fixed_point
            expected[key] = Check(
                fixed_point, 0.02, "the recursion's equilibrium, R' = R eta/U; 2 % for W_AI and whole packets"
            )
    # Served between its guarantee and eta B/(2 - eta), a class has no equilibrium under the slides' branches.
    between = multiq.orbit(0.6, share=0.5, served=0.6)
    values |= {"between_cycle_rtts": float(between.period), "between_cycle_low": min(between.rates)}
    values["between_cycle_high"] = max(between.rates)
    expected["between_cycle_rtts"] = Check(2.0, 0, "two-cycle of the recursion, served at 0.6 B with half guaranteed")
    notes = (
        "equal weights, DCTCP marked at 300 KB of its own queue, and alone an additive increase of "
        "1 Mb/s: the slides give none of these",
        "AI = 0.005 (5.0Gbps) as printed, in the picture; keys with 0.5 are runs at a tenth of it",
        "counting what is unused is ours: U = tx/c + q/(c T) with c the guaranteed rate, or the class's own and all "
        "that no class uses, if that is more",
        *(("quick: a quarter of the time",) if quick else ()),
    )
    shown = ("queue", "class_queue", "class_sent", "rate", "utilisation_estimate")
    data = aligned({name: traces[name] for name in beside}, "run", shown)
    files = (
        _draw_beside(traces).write(folder / f"{figure.name}.png"),
        _draw_alone(traces).write(folder / f"{figure.name}-alone.png"),
        save(data, folder / f"{figure.name}.nc"),
    )
    return Result(figure, values, expected, files, notes, sample=sample.packets(until, len(traces)))


def _scenario(rule: str, classes: int, rate_ai: float, start: float | None = None) -> Scenario:
    scheme = HPCCMultiQ(multiq=rule, rate_ai=rate_ai)
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
    return Scenario((link,), flows, packet_size="1500B", classes=(TrafficClass(),) * CLASSES)


def _beside(
    name: str, trace: Trace, T: float, scenario: Scenario, values: dict[str, Any], expected: dict[str, Check]
) -> None:
    """Add rate, queue and U of HPCC's class next to the others, over the second half, and their expected values."""
    rule, increase = name.split()
    key, half = f"{rule}_{increase}", trace.dataset.isel(time=slice(trace.dataset.sizes["time"] // 2, None))
    values[f"{key}_hpcc_share"] = served = float(_rates(trace)[len(half.time) // SMOOTHED :, 0].mean()) / LINE
    values[f"{key}_queue_bytes"] = float(half.class_queue.values[:, 0, 0].mean())
    values[f"{key}_utilisation_estimate"] = float(half.utilisation_estimate.values[:, :EACH].mean())
    if rule == "off":
        return
    why = "slides: each class's rate can achieve its fair rate; a third of the line, within 5 %"
    expected[f"{key}_hpcc_share"] = Check(SHARE, 0.05 * SHARE, why)
    if rule != "class":
        return
    packet = resolve(scenario).wire_packet_of(resolve(scenario).flows[0])
    fixed_point = ETA + EACH * INCREASES[increase] / LINE  # W = (eta/U) W + W_AI, and U B T is what all windows hold
    why = "U* = eta + N W_AI/(B T); a packet over B T"
    expected[f"{key}_utilisation_estimate"] = Check(fixed_point, packet / (LINE * T), why)
    values[f"{key}_queue_formula_bytes"] = (fixed_point - served) * LINE * T
    why = "q = (U* - A/B) B T; a packet for whole windows, one for the smaller of two stamps"
    expected[f"{key}_queue_bytes"] = Check((fixed_point - served) * LINE * T, 2 * packet, why)


def _rates(trace: Trace) -> np.ndarray:
    """Compute the rate at which the link sends each class [bytes/s]."""
    return slope(trace["class_sent"].values[:, 0], SAMPLED, SMOOTHED)


def _draw_beside(traces: dict[str, Trace]) -> Any:
    picture, axes = new_figure(4, 3, size=(WIDTH, 11))
    rows = (
        ("sending rate [Gbps]", (0, 60)),
        ("queue of each class [KB]", (0, 420)),
        ("U of HPCC's flows", (0, 3)),
        ("link's rate of each class / line", (0, 0.6)),
    )
    shades = (SCHEMES["hpcc"], shade("dctcp", 0), shade("dctcp", 1))
    for column, (rule, title) in enumerate(RULES.items()):
        trace = traces[f"{rule} 5"]
        time = trace["time"].values * 1e3
        rates = trace["rate"].values[1:].reshape(-1, SMOOTHED, CLASSES, EACH).mean(axis=1).sum(axis=2) / GBPS
        queues, tx = trace["class_queue"].values[:, 0] / 1e3, _rates(trace) / LINE
        for c in reversed(range(CLASSES)):
            label = f"{'DCTCP' if c else 'HPCC'}, class {c}"
            style = {"lw": (1.0, 0.7, 2.4)[c], "ls": ("-", "--", "-")[c], "color": shades[c]}
            axes[0, column].plot(time[SMOOTHED::SMOOTHED], rates[:, c], label=label, **style)
            axes[1, column].plot(time, queues[:, c], label=label, **style)
            axes[3, column].plot(time[SMOOTHED::SMOOTHED], tx[:, c], label=f"{c}", **style)
        estimate = trace["utilisation_estimate"].values[:, :EACH].mean(axis=1)
        axes[2, column].plot(time, estimate, color=shades[0], lw=0.8)
        axes[2, column].axhline(1, color="0.3", ls="--", lw=0.8)
        axes[0, column].axhline(SHARE * LINE / GBPS, color="0.3", ls="--", lw=0.8)
        axes[3, column].axhline(SHARE, color="0.3", ls="--", lw=0.8)
        axes[0, column].set(title=title)
        axes[3, column].set(xlabel="time [ms]")
        for row, (label, limits) in enumerate(rows):
            axes[row, column].set(ylim=limits, xlim=(-0.1, SHOWN))
            if column == 0:
                axes[row, column].set(ylabel=label)
    for row in (0, 1):
        legend(axes[row, 0], fontsize=8)
    legend(axes[3, 0], fontsize=8, title="classes")
    picture.suptitle("HPCC++ MultiQ: 5 HPCC and 10 DCTCP flows in three classes of equal weight at 100 Gbps, AI 5 Gbps")
    return picture


def _draw_alone(traces: dict[str, Trace]) -> Any:
    picture, ((*axes,),) = new_figure(1, 3, size=(WIDTH, 3.6))
    rate = np.linspace(1e-3, 1, 1000)
    for rule in ("slides", "spare"):
        axes[0].plot(rate, multiq.step(rate, share=SHARE, rule=rule), lw=1, label=RULES[rule].removeprefix("after: "))
    axes[0].plot(rate, rate, color="0.3", ls="--", lw=0.8, label="equilibrium")
    axes[0].set(title="recursion: one round trip later", xlim=(0, 1), ylim=(0, 1))
    axes[0].set(xlabel="rate of a class alone / line", ylabel="next rate / line")
    axes[0].legend(fontsize=8)
    for axis, rule in zip(axes[1:], ("slides", "spare"), strict=True):
        for start in STARTS:
            trace = traces[f"{rule} alone {start}"]
            total = trace["rate"].values.sum(axis=1) / GBPS
            axis.plot(trace["time"] * 1e3, total, lw=0.8, label=f"from {STARTS[start] / LINE:.0%} of the line")
            fixed_point = multiq.orbit(STARTS[start] / LINE, share=SHARE, rule=rule).rates[0]
            axis.axhline(fixed_point * LINE / GBPS, color="0.3", ls="--", lw=0.8)
        axis.set(title=f"alone, {RULES[rule].removeprefix('after: ')}", ylim=(0, 105))
        axis.set(xlabel="time [ms]", ylabel="rate of the class [Gbps]")
        axis.legend(fontsize=8)
    picture.suptitle("HPCC++ MultiQ: a class alone on the link; dashed: the recursion's equilibrium")
    return picture
