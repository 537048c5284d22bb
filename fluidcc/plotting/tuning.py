"""Pictures of tuning: the front, what matters, and present against best in packets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator, StrMethodFormatter

from fluidcc import units
from fluidcc.builders.names import format_value
from fluidcc.errors import InputError
from fluidcc.plotting.style import Picture, figure, label
from fluidcc.studies.tuning.goal import TUNED
from fluidcc.studies.tuning.race import MEASURES
from fluidcc.studies.tuning.trial import COUNT, PRESENT, RECOMMENDED

if TYPE_CHECKING:
    from fluidcc.results.trace import Trace
    from fluidcc.studies.tuning.on_fabric import FabricTuning
    from fluidcc.studies.tuning.packet_check import Packets
    from fluidcc.studies.tuning.race import Racer
    from fluidcc.studies.tuning.result import Candidate, Tuning

# Okabe and Ito's colours, which those who confuse red and green tell apart too.
_PRESENT, _BEST, _OTHER, _LINE = "#D55E00", "#0072B2", "#009E73", "0.35"
_NARROW = 3.0  # largest over smallest value below which all ticks of such an axis have numbers
_WIDE = 20.0  # largest over smallest value from which on an axis is logarithmic
_ROOM = 1.6  # height of queues' panels over the longest queue: above it is the inset


def plot_front(tuning: Tuning) -> Picture:
    """The front of the first two objectives, with the knee, the present setting, the yardsticks and the bounds."""
    x, y = (each.metric for each in tuning.goal.objectives[:2])
    best = {True: "best, packets agree", False: "best, packets disagree", None: "best"}[tuning.confirmed]
    marked: list[tuple[str, Candidate, str, str]] = [(best, tuning.best, "*", _BEST)]
    if tuning.knee is not None:
        marked.append(("knee", tuning.knee, "D", _OTHER))
    if tuning.start is not None:
        by = "present, by the search's engine" if tuning.packets else "present"
        marked.append((by, tuning.start, "o", _PRESENT))
    marked += [(name, each, "^s<>v"[i % 5], "black") for i, (name, each) in enumerate(tuning.yardsticks.items())]
    shown = [*tuning.pareto, *(each for _, each, _, _ in marked)]
    picture, axes = figure(1, 1, size=(7.5, 5.0))
    axis = axes[0, 0]
    factors, suffixes = {}, {}
    for name in (x, y):
        values = np.array([each.metrics.get(name, np.nan) for each in shown])
        finite = values[np.isfinite(values)]
        positive = finite[finite > 0]
        wide = finite.size > 0 and len(positive) == len(finite) and positive.max() > _WIDE * positive.min()
        if wide:
            _logarithmic(axis, "x" if name == x else "y")
        typical = float(np.median(finite) if wide else np.abs(finite).max()) if finite.size else 0.0
        factors[name], suffixes[name] = units.scale_of(typical, TUNED[name][0])
    front = np.array([[each.metrics[name] / factors[name] for name in (x, y)] for each in tuning.pareto])
    if len(front):
        axis.plot(
            front[:, 0],
            front[:, 1],
            ".-",
            color=_LINE,
            lw=1.0,
            label=f"front by the search's engine, {len(front)} settings",
        )
    refused = [each.point in tuning.refused for each in tuning.pareto]
    if any(refused):
        axis.plot(*front[refused].T, "x", color="crimson", ms=9, ls="none", label="refused by packets")
    for name, each, symbol, colour in marked:
        missed = "" if each.kept else ", misses a bound"
        axis.plot(
            each.metrics[x] / factors[x], each.metrics[y] / factors[y], symbol, color=colour, ms=11, ls="none",
            mfc="none" if name == "knee" or colour == "black" else colour, label=name + missed, clip_on=False,
        )  # fmt: skip
    for bound in tuning.goal.constraints:
        draw = {x: axis.axvline, y: axis.axhline}.get(bound.metric)
        if draw is not None:
            draw(bound.bound / factors[bound.metric], color=_LINE, ls="--", lw=0.8, label=str(bound))
    axis.set_xlabel(label(x, suffixes[x]))
    axis.set_ylabel(label(y, suffixes[y]))
    axis.grid(alpha=0.3)
    axis.legend(fontsize="small")
    over = ", ".join(tuning.space.names)
    axis.set_title(f"{tuning.evaluations} settings of {over}: the best in one for each of the other", fontsize="medium")
    return picture


def plot_sensitivity(tuning: Tuning) -> Picture:
    """Draw how far each variable moves the objective through the best setting, and Sobol's indices over the range.

    Raises
    ------
    InputError
        If sensitivities were not asked for.
    """
    found = tuning.sensitivity
    if found is None:
        raise InputError("plot_sensitivity: none were computed; write tune(..., sensitivity=32)")
    metric = tuning.goal.objectives[0].metric
    reach = {name: np.ptp(np.asarray(each["objective"], float)) for name, each in found.along.items()}
    names = sorted(tuning.space.names, key=lambda name: np.nan_to_num(reach[name]))
    picture, axes = figure(1, 2, size=(11.0, 1.6 + 0.7 * len(names)))
    left, right = axes[0]
    every = np.concatenate([found.along[name]["objective"] for name in names])
    factor, unit = units.scale_of(float(np.nanmax(np.abs(every))), TUNED[metric][0])
    centre = tuning.best.metrics[metric] / factor
    for row, name in enumerate(names):
        values, at = np.asarray(found.along[name]["objective"]) / factor, found.along[name]["values"]
        low, high = np.nanmin(values), np.nanmax(values)
        left.barh(row, high - low, left=low, height=0.5, color=_BEST, alpha=0.35)
        for k, ha in ((0, "left"), (-1, "left")):
            left.plot(values[k], row, "|", color="black", ms=14)
            shift = 0.3 if k == 0 else -0.36
            left.annotate(format_value(name, at[k]), (values[k], row + shift), fontsize="x-small", ha=ha, va="center")
    left.axvline(centre, color=_PRESENT, lw=1.0, label="best")
    if np.nanmin(every) > 0 and np.nanmax(every) > _WIDE * np.nanmin(every):
        _logarithmic(left, "x")
    left.margins(x=0.12)
    left.set_yticks(range(len(names)), names)
    left.set_ylim(-0.6, len(names) - 0.4)
    left.set_xlabel(label(metric, unit))
    left.set_title("one variable at a time, the others at the best", fontsize="medium")
    left.legend(fontsize="small")
    rows = np.arange(len(names))
    for shift, key, text, colour in ((0.18, "first", "first order", _BEST), (-0.18, "total", "total", _OTHER)):
        values = [found.indices[name][key] for name in names]
        errors = [found.indices[name][f"{key}_conf"] for name in names]
        right.barh(rows + shift, values, height=0.32, color=colour, label=text, xerr=errors, ecolor="black", capsize=2)
    right.set_yticks(rows, names)
    right.set_ylim(-0.6, len(names) - 0.4)
    right.set_xlim(left=min(0.0, right.get_xlim()[0]))
    of = f"log {metric}" if found.logarithmic else metric
    right.set_xlabel(f"share of the variance of {of}, 95 % intervals")
    right.set_title(f"Sobol's indices over the range, {found.points} settings", fontsize="medium")
    right.legend(fontsize="small")
    return picture


def _logarithmic(axis: Axes, which: str) -> None:
    """Make an axis logarithmic, its ticks plain numbers: 300, not 3 x 10^2."""
    (axis.set_xscale if which == "x" else axis.set_yscale)("log")
    line = axis.xaxis if which == "x" else axis.yaxis
    line.set_major_formatter(StrMethodFormatter("{x:g}"))
    line.set_minor_formatter(FuncFormatter(lambda x, _: f"{x:g}" if f"{x:e}"[0] in "25" else ""))


def plot_packets(tuning: Tuning) -> Picture:
    """Queue and rates in packets, the present setting and the best: means and ranges over the seeds, in the window.

    The case with the longest queue is shown; the whole run with its start is in an inset.

    Raises
    ------
    InputError
        If no packets ran.
    """
    if not tuning.packets:
        raise InputError("plot_packets: none ran; write tune(..., packet_seeds=4), or see what notes say")
    shown = {name: tuning.packets[name] for name in ("start", "best") if name in tuning.packets}
    case = int(np.argmax(tuning.packets["best"].metrics["queue_bytes.mean"]))
    picture, axes = figure(2, len(shown), size=(5.6 * len(shown), 6.0), sharex=True)
    for row in axes:  # so that a queue of a tenth looks like a tenth
        for axis in row[1:]:
            axis.sharey(row[0])
    window = next(iter(shown.values())).traces[case][0].summary["window_s"]
    second, time_unit = units.scale_of(window[1], units.TIME)
    largest = max(float(trace["rate"].max()) for found in shown.values() for trace in found.traces[case])
    rates = units.scale_of(largest, units.RATE)
    longest = max(float(trace["queue"].max()) for found in shown.values() for trace in found.traces[case])
    queues = units.scale_of(longest, units.SIZE)
    levels = [tuning.points[name].get(level, 0.0) for name in shown for level in ("kmin", "kmax")]
    highest = _ROOM * max(longest, *levels) / queues[0]
    for column, (name, found) in enumerate(shown.items()):
        top, bottom = axes[:, column]
        colour = _PRESENT if name == "start" else _BEST
        _draw_queue(top, found, case, window, second, queues, colour, tuning.points[name])
        top.set_ylim(0, highest)
        _draw_rates(bottom, found.traces[case], window, second, rates, colour)
        text = "present" if name == "start" else "best" + ("" if tuning.confirmed else ", not confirmed")
        used, fair = (found.metrics[metric][case] for metric in ("utilisation", "jain"))
        top.set_title(f"{text}: utilisation {used:.4f}, Jain {fair:.3f}", fontsize="medium")
        bottom.set_xlabel(label("time", time_unit))
    flows = sum(next(iter(shown.values())).traces[case][0]["multiplicity"].values)
    seeds = len(next(iter(shown.values())).traces[case])
    picture.suptitle(f"{flows:g} flows, packets, {seeds} seeds: mean, and range over the seeds", fontsize="medium")
    return picture


def _draw_queue(
    axis: Axes, found: Packets, case: int, window: Any, second: float, scale: tuple[float, str], colour: str,
    point: dict[str, float],
) -> None:  # fmt: skip
    """The busiest link's queue in the window, thresholds as lines, the whole run in an inset."""
    traces = found.traces[case]
    link = int(np.argmax([row["queue_bytes"]["mean"] for row in traces[0].summary["links"]]))
    queues = np.stack([trace["queue"].values[:, link] for trace in traces])
    time = traces[0]["time"].values
    inside = (time >= window[0]) & (time <= window[1])
    factor, unit = scale
    for whole, place in ((False, axis), (True, axis.inset_axes((0.62, 0.66, 0.36, 0.3)))):
        at = np.ones_like(inside) if whole else inside
        part = queues[:, at] / factor
        place.fill_between(time[at] / second, part.min(axis=0), part.max(axis=0), color=colour, alpha=0.25, lw=0)
        place.plot(time[at] / second, part.mean(axis=0), color=colour, lw=1.0)
        place.set_ylim(bottom=0)
        if whole:
            place.tick_params(labelsize="xx-small")
            peak = units.show(float(queues.max()), units.SIZE, 3)
            place.set_title(f"whole run [{unit}], peak {peak}", fontsize="xx-small", pad=2)
    for name, style in (("kmin", ":"), ("kmax", "--")):
        if name in point:
            axis.axhline(point[name] / factor, color=_LINE, ls=style, lw=1.0, label=name.capitalize())
    if axis.get_legend_handles_labels()[0]:
        axis.legend(fontsize="small", loc="upper left")
    axis.set_ylabel(label("queue", unit))
    axis.grid(alpha=0.3)


def _draw_rates(
    axis: Axes, traces: list[Trace], window: Any, second: float, scale: tuple[float, str], colour: str
) -> None:
    """Mean rate over the flows and the seeds, and the range of all."""
    rates = np.stack([trace["rate"].values for trace in traces])  # (seeds, times, flows)
    time = traces[0]["time"].values
    inside = (time >= window[0]) & (time <= window[1])
    factor, unit = scale
    part = rates[:, inside] / factor
    axis.fill_between(
        time[inside] / second, part.min(axis=(0, 2)), part.max(axis=(0, 2)), color=colour, alpha=0.2, lw=0,
        label="all flows and seeds",
    )  # fmt: skip
    axis.plot(time[inside] / second, part.mean(axis=(0, 2)), color=colour, lw=1.0, label="mean")
    axis.set_ylim(bottom=0)
    axis.set_ylabel(label("rate per flow", unit))
    axis.legend(fontsize="small")
    axis.grid(alpha=0.3)


_SAID = {
    "slowdown.small.p99": "p99 slowdown, flows to 100 KB",
    "slowdown.large.p99": "p99 slowdown, flows beyond 1 MB",
    "collective_time": "time of the collective",
}


def plot_trial(tuning: Tuning) -> Picture:
    """Draw each number of a trial as a ratio to the present setting's, a row each, with 95 % intervals over the seeds.

    Raises
    ------
    InputError
        If there was no trial.
    """
    trial = tuning.trial
    if trial is None:
        raise InputError("plot_trial: there was none; write tune with --from, or run the demo")
    rows = [
        row
        for row in trial.rows
        if row.unit != COUNT and any(np.isfinite(row.ratio(each)["mean"]) for each in row.pairs)
    ]
    picture, axes = figure(1, 1, size=(8.0, 1.6 + 0.33 * len(rows)))
    axis = axes[0, 0]
    looks = {RECOMMENDED: ("*", _BEST), PRESENT: ("o", _PRESENT)}
    for k, name in enumerate(trial.settings):
        symbol, colour = looks.get(name, ("s^"[k % 2], _OTHER if k % 2 else "0.3"))
        found = [row.ratio(name) for row in rows]
        centre = np.array([each["mean"] for each in found])
        spans = [[each["mean"] - each["low"], each["high"] - each["mean"]] for each in found]
        at = np.arange(len(rows)) + 0.22 * (k - (len(trial.settings) - 1) / 2)
        axis.errorbar(
            centre, at, xerr=np.nan_to_num(np.array(spans).T), fmt=symbol, color=colour, ms=9 if symbol == "*" else 5,
            lw=1.0, capsize=2, label=name,
        )  # fmt: skip
    axis.axvline(1.0, color=_PRESENT, ls="--", lw=1.0, label=PRESENT)
    _logarithmic(axis, "x")
    if np.divide(*axis.get_xlim()[::-1]) < _NARROW:
        axis.xaxis.set_minor_formatter(StrMethodFormatter("{x:g}"))
    more = " (more is better)"
    axis.set_yticks(range(len(rows)), [f"{row.case}: {row.title}{more if row.more else ''}" for row in rows])
    axis.invert_yaxis()
    axis.set_xlabel("over the present setting's [1]; left is better unless said")
    axis.grid(alpha=0.3)
    axis.legend(fontsize="small", loc="best")
    seeds = " or ".join(map(str, sorted(set(trial.seeds.values()))))
    axis.set_title(f"means and 95 % intervals of {seeds} seeds, in packets", fontsize="medium")
    return picture


def plot_race(found: FabricTuning) -> Picture:
    """Settings by two objectives over the present setting's, and with 95 % intervals those that fresh seeds proved.

    Of one objective alone, settings stand beside each other. Of several cases it is the worst, or their mean.
    """
    rule, names = found.rule, list(MEASURES)
    costs = np.array([rule.costs(each) for each in found.racers])
    shown = [name for name in rule.objectives if np.isfinite(costs[:, names.index(name)]).any()][:2]
    picture, axes = figure(1, 1, size=(7.5, 5.2))
    axis = axes[0, 0]

    def place(racer: Racer) -> list[float]:
        ratios = np.exp(rule.costs(racer))
        return [1 / ratios[names.index(name)] if MEASURES[name] else ratios[names.index(name)] for name in shown]

    ordered = sorted(found.racers, key=rule.cost)
    at = {each.name: (place(each) if len(shown) > 1 else [ordered.index(each) + 1, *place(each)]) for each in ordered}
    for seeds, shade in zip(sorted({each.seeds for each in found.racers}), ("0.75", "0.5", "0.2"), strict=False):
        some = np.array([at[each.name] for each in found.racers if each.seeds == seeds])
        axis.plot(*some.T, ".", color=shade, ms=8, label=f"{len(some)} settings, {seeds} seeds each")
    if len(shown) > 1:
        axis.plot(1.0, 1.0, "o", color=_PRESENT, ms=10, label="present setting")
    for k, (name, proof) in enumerate(found.proofs.items()):
        best = name == found.best
        text = name if name in found.yardsticks else "" if best else "not taken"
        text = f"recommended {f'({text})' if text else ''}".strip() if best else text
        centre, spans = _proved(found, proof, shown)
        if len(shown) == 1:
            centre, spans = [at.get(name, [len(ordered) + 1])[0], *centre], [(0.0, 0.0), *spans]
        axis.errorbar(
            centre[0], centre[1], xerr=np.array(spans[0])[:, None], yerr=np.array(spans[1])[:, None],
            fmt="*" if best else "xs<>v^"[k % 6], color=_BEST if best else "black", mfc=_BEST if best else "none",
            ms=13 if best else 8, capsize=3, lw=1.0, label=f"{text}: {proof.seeds} fresh seeds",
        )  # fmt: skip
    for draw, which in ((axis.axhline, "y"), (axis.axvline, "x"))[: len(shown)]:
        draw(1.0, color=_PRESENT, ls="--", lw=0.9)
        _logarithmic(axis, which)
        line, (low, high) = (axis.xaxis, axis.get_xlim()) if which == "x" else (axis.yaxis, axis.get_ylim())
        if high < _NARROW * low:  # too few whole numbers to read it by
            line.set_minor_formatter(StrMethodFormatter("{x:g}"))
    texts = [f"{_SAID.get(name, name)}, over the present setting's [1]" for name in shown]
    axis.set_xlabel(texts[0] if len(shown) > 1 else "settings, the best first")
    if len(shown) == 1:
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.set_ylabel(texts[-1])
    axis.grid(alpha=0.3)
    axis.legend(fontsize="small")
    more = f" and {len(found.says) - 1} more" * (len(found.says) > 1)
    axis.set_title(f"{len(found.topology.hosts)} hosts, {found.says[0]}{more}", fontsize="medium")
    return picture


def _proved(found: FabricTuning, proof: Racer, shown: Sequence[str]) -> tuple[list[float], list[tuple[float, float]]]:
    """Ratios of a proved setting, of the case that counts, and how far their intervals reach below and above."""
    centre, spans = [], []
    for name in shown:
        rows = [proof.ratios(case)[name] for case in range(len(found.cases))]
        rows = [row for row in rows if row["mean"] == row["mean"]]
        worst = (min if MEASURES[name] else max)(rows, key=lambda row: row["mean"])
        centre.append(worst["mean"])
        spans.append((worst["mean"] - worst["low"], worst["high"] - worst["mean"]))
    return centre, spans
