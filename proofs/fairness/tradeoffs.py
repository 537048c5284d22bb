"""Section IV of "Fast Convergence to Fairness": what Sampling Frequency, AI_Cap and Swift's target trade.

"A larger AI Cap leads to higher latencies but better fairness." A lower Sampling Frequency improves fairness and tail
latency "at the expense of bandwidth". Here 16 flows start as in the figures and do not end, so that no time is cut
short by an end, and each setting is run with several spacings of the starts, as one run depends on how its queue
happens to oscillate when a flow starts.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from fluidcc.plotting.colours import SCHEMES
from fluidcc.plotting.style import figure as new_figure
from fluidcc.plotting.style import label
from fluidcc.proofs import papers
from fluidcc.proofs.fairness.common import LEVEL, LINE, NAMES, NOTES, Run, rank_correlation, run, staggered
from fluidcc.proofs.shared.runs import WIDTH, save, variable
from fluidcc.proofs.verdict.figure import Check, Figure, Result, reproduces
from fluidcc.studies.sweeps import sweep

FLOWS, UNTIL, SAMPLED = 16, 1.5e-3, 1e-6  # s
SPACINGS = (18e-6, 19e-6, 20e-6, 21e-6, 22e-6)  # s: of the starts
SPACING = SPACINGS[2]  # the paper's
TREND = 0.5  # rank correlation from which on something counts as rising or falling with a setting


class Knob(NamedTuple):
    """A setting of VAI SF, its values, and what the paper says rises (1) or falls (-1) with it."""

    field: str
    title: str
    values: tuple[float, ...]
    scale: float
    unit: str
    says: tuple[tuple[str, int], ...]
    schemes: tuple[str, ...] = ("hpcc", "swift")


KNOBS = (
    Knob(
        "sampling",
        "Sampling Frequency",
        (5, 10, 20, 30, 60, 120),
        1.0,
        "ACKs",
        (("fair_after_s", 1), ("queue_mean_bytes", 1), ("queue_p99_bytes", 1), ("utilisation", 1)),
    ),
    Knob(
        "ai_cap", "AI_Cap", (1, 10, 30, 100, 300, 1000), 1.0, "tokens", (("fair_after_s", -1), ("queue_p99_bytes", 1))
    ),
    Knob(
        "base_target",
        "base target delay",
        (2e-6, 3e-6, 4e-6, 5e-6, 7e-6, 10e-6),
        1e-6,
        "us",
        (("utilisation", 1), ("queue_mean_bytes", 1)),
        ("swift",),
    ),
)
METRICS = {
    "fair_after_s": ("fair after", "us", 1e-6),
    "queue_mean_bytes": ("mean queue", "KB", 1e3),
    "queue_p99_bytes": ("99 % queue", "KB", 1e3),
    "utilisation": ("utilisation", "%", 0.01),
}
BY_FLUID = {
    "queue_mean_bytes": "queue_bytes.mean",
    "queue_p99_bytes": "queue_bytes.p99",
    "utilisation": "utilisation",
}
WHY = {
    "sampling": "IV-B: reacting more often trades bandwidth for fairness and less (tail) queueing",
    "ai_cap": "IV-A: a larger AI Cap leads to higher latencies but better fairness",
    "base_target": "Swift: a larger target means a longer queue, and fewer decreases that leave bandwidth unused",
}


@reproduces("fairness-tradeoffs", papers.VAI, "section IV: fairness, queue and bandwidth traded")
def make_tradeoffs(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make the figure."""
    spacings = SPACINGS[1:-1] if quick else SPACINGS
    swept = [(scheme, knob) for knob in KNOBS for scheme in knob.schemes]
    found = {(scheme, knob.field): _packets(scheme, knob, spacings) for scheme, knob in swept}
    fluid = {} if quick else {(scheme, knob.field): _fluid(scheme, knob) for scheme, knob in swept}
    values: dict[str, float | bool] = {}
    for scheme, knob in swept:
        for metric, row in zip(METRICS, found[scheme, knob.field], strict=True):
            here = f"{scheme}_{metric}_against_{knob.field}"
            values[here] = rank_correlation(np.array(knob.values), row)
            values |= {f"{here}_{end}": float(row[k]) for end, k in (("first", 0), ("last", -1))}
    for (scheme, field), rows in fluid.items():
        for metric, row in zip(BY_FLUID, rows, strict=True):
            packets = found[scheme, field][list(METRICS).index(metric)]
            values[f"{scheme}_{metric}_fluid_off_by_{field}"] = float(np.abs(row - packets).max())
    notes = [
        *NOTES,
        f"flows do not end; from the last start to {UNTIL * 1e3:g} ms; fair after: until Jain's index of the windows "
        f"stays at {LEVEL:g}, or to the end; medians over starts {', '.join(f'{s * 1e6:.0f}' for s in spacings)} us "
        "apart; against: rank correlation with the setting, _first and _last: at its least and largest value",
        "an AI_Cap of 10 is slower than 1, which is no Variable AI: a bank of 1000 tokens then lasts for a hundred "
        "decreases, in which flows that started late, with large windows and small dampeners, increase the most",
    ]
    if fluid:
        notes.append("dashed: fluid model, by a sweep; off_by: largest difference from packets")
    if quick:
        notes.append(f"quick: {len(spacings)} spacings of the starts in place of {len(SPACINGS)}, no fluid")
    files = (
        _draw(found, fluid).write(folder / f"{figure.name}.png"),
        save(_data(found, fluid), folder / f"{figure.name}.nc"),
    )
    return Result(
        figure,
        values,
        _expected(),
        files,
        tuple(notes),
        sample=f"{len(spacings)} runs of packets of {UNTIL * 1e3:g} ms for each setting, one for each spacing of "
        "the starts, and medians of them; nothing in them is random",
    )


def _packets(scheme: str, knob: Knob, spacings: tuple[float, ...]) -> np.ndarray:
    """Medians over the spacings of `METRICS` (metrics, values)."""
    scenarios = [
        staggered(scheme, "vai_sf", FLOWS, np.inf, spacing, **{knob.field: value})
        for value in knob.values
        for spacing in spacings
    ]
    read = np.array([_numbers(each) for each in run(scenarios, UNTIL, SAMPLED)])
    return np.median(read.reshape(len(knob.values), len(spacings), len(METRICS)), axis=1).T


def _fluid(scheme: str, knob: Knob) -> np.ndarray:
    """`BY_FLUID` by the fluid model (metrics, values)."""
    swept = sweep(
        lambda **values: staggered(scheme, "vai_sf", FLOWS, np.inf, SPACING, **values),
        {knob.field: list(knob.values)},
        until=UNTIL,
        window=((FLOWS // 2 - 1) * SPACING, UNTIL),
        estimate_error=False,
    )
    return np.array([swept[name].values for name in BY_FLUID.values()])


def _numbers(each: Run) -> tuple[float, ...]:
    """Return a run's metrics in the order of `METRICS`."""
    trace, last = each.trace, float(each.starts.max())
    time = trace["time"].values
    since = time >= last
    queue, sent = trace["queue"].values[since, 0], trace["sent"].values[since, 0]
    used = (sent[-1] - sent[0]) / (LINE * (time[-1] - time[since][0]))
    return each.fair_after(), float(queue.mean()), float(np.percentile(queue, 99)), float(used)


def _expected() -> dict[str, Check]:
    return {
        f"{scheme}_{metric}_against_{knob.field}": Check(float(sign), 1 - TREND, WHY[knob.field])
        for knob in KNOBS
        for scheme in knob.schemes
        for metric, sign in knob.says
    }


def _data(found: dict[tuple[str, str], np.ndarray], fluid: dict[tuple[str, str], np.ndarray]) -> xr.Dataset:
    data = {}
    for engine, metrics, rows in (("packet", METRICS, found), ("fluid", BY_FLUID, fluid)):
        for (scheme, field), of in rows.items():
            for metric, row in zip(metrics, of, strict=True):
                unit = {"s": "s", "bytes": "bytes"}.get(metric.rpartition("_")[2], "1")
                data[f"{scheme}_{metric}_{field}_{engine}"] = variable(field, row, unit, METRICS[metric][0])
    return xr.Dataset(data, {knob.field: list(knob.values) for knob in KNOBS})


def _draw(found: dict[tuple[str, str], np.ndarray], fluid: dict[tuple[str, str], np.ndarray]) -> Any:
    picture, axes = new_figure(len(METRICS), len(KNOBS), size=(WIDTH, 9.0), sharex="col")
    for column, knob in zip(axes.T, KNOBS, strict=True):
        settings = np.array(knob.values) / knob.scale
        for scheme in knob.schemes:
            drawn = {"lw": 1.2, "color": SCHEMES[scheme]}
            at = scheme, knob.field
            by_fluid = dict(zip(BY_FLUID, fluid[at], strict=True)) if at in fluid else {}
            for axis, row, (metric, (_, _, scale)) in zip(column, found[at], METRICS.items(), strict=True):
                axis.plot(settings, row / scale, "o-", ms=4, label=NAMES[scheme], **drawn)
                if metric in by_fluid:
                    axis.plot(settings, by_fluid[metric] / scale, "--", **drawn)
        for axis, (text, unit, _) in zip(column, METRICS.values(), strict=True):
            axis.set_xscale("log")
            axis.set_xticks(settings, [f"{value:g}" for value in settings])
            axis.set_xticks([], minor=True)
            axis.grid(alpha=0.3)
            axis.set_ylim(*((0, 1.15 * axis.dataLim.y1) if text != "utilisation" else (84, 101)))
            if knob is KNOBS[0]:
                axis.set_ylabel(label(text, unit))
        column[0].set_title(knob.title)
        column[-1].set_xlabel(label(knob.title, knob.unit))
    picture.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize="small")
    dashed = " (dashed: fluid)" if fluid else ""
    picture.suptitle(f"Section IV: VAI SF, 16 flows that start two by two; each setting alone is changed{dashed}")
    return picture
