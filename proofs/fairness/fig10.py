"""Figures 10 to 13 of "Fast Convergence to Fairness": slowdowns by flow size, Hadoop, and WebSearch with Storage."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from fluidcc import units
from fluidcc.plotting.colours import scheme_colours
from fluidcc.plotting.fabrics import slowdown_axis, slowdown_panel
from fluidcc.plotting.style import figure as new_figure
from fluidcc.proofs import papers
from fluidcc.proofs.fairness.datacenter import PAIRS, TRAFFIC, study
from fluidcc.proofs.shared.fabric_checks import LOSSLESS, between, counted, level, precision_notes
from fluidcc.proofs.shared.runs import WIDTH, save
from fluidcc.proofs.shared.slowdowns import by_seed, data_of, judged, ratio, sample_of
from fluidcc.proofs.verdict.figure import Figure, Result, reproduces
from fluidcc.workloads.fabrics.study import FabricStudy, interval

LONG = (1e6, np.inf)  # bytes: section VI-B's "flow sizes greater than 1MB"
LONGEST = (2e6, np.inf)
SHORT = (0.0, 100e3)
HALF = 0.5
ROUNDING = 0.0101  # of a slowdown: whole nanoseconds cut up to 0.84 ns off the 83.84 ns of a packet
WORSE = 1.1  # of a tail, and of a median: what counts as a repercussion
STARVED, HELPED = (20.0, 40.0), (10.0, 15.0)  # Fig. 10's slowdowns of long flows, without and with VAI and SF


class Shown(NamedTuple):
    """A benchmark, and the percentile that the figure has of it."""

    traffic: str
    statistic: str
    words: str


FIGURES = {
    "fairness-fig10": Shown("hadoop", "p999", "99.9th percentile"),
    "fairness-fig11": Shown("mix", "p999", "99.9th percentile"),
    "fairness-fig12": Shown("hadoop", "p50", "median"),
    "fairness-fig13": Shown("mix", "p50", "median"),
}


@reproduces("fairness-fig10", papers.VAI, "Figure 10: 99.9th percentile of slowdowns by size, Hadoop")
@reproduces("fairness-fig11", papers.VAI, "Figure 11: 99.9th percentile of slowdowns by size, WebSearch and Storage")
@reproduces("fairness-fig12", papers.VAI, "Figure 12: median slowdowns by size, Hadoop")
@reproduces("fairness-fig13", papers.VAI, "Figure 13: median slowdowns by size, WebSearch and Storage")
def make_datacenter(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make one of the figures."""
    shown = FIGURES[figure.name]
    found = study(shown.traffic, folder, quick)
    studies = {shown.traffic: found}
    values, claims = counted(studies, ROUNDING), list[str]()
    (_tails if shown.statistic == "p999" else _medians)(found, shown.traffic, values, claims)
    edges = TRAFFIC[shown.traffic].edges
    path = _draw(found, found.bins(edges), shown, figure.figure).write(folder / f"{figure.name}.png")
    data = save(data_of(studies, edges), folder / f"{figure.name}.nc")
    notes = [*claims, *precision_notes(studies, values), *_notes(found, quick)]
    return Result(figure, values, dict(LOSSLESS), (path, data), tuple(notes), sample=sample_of(studies))


def _tails(found: FabricStudy, traffic: str, values: dict[str, float | bool], notes: list[str]) -> None:
    for default, better in PAIRS.items():
        key = default.lower()
        tails = {name: by_seed(found, name, "p999", LONG) for name in (default, better)}
        compared = ratio(tails[better], tails[default])
        judged(
            values,
            notes,
            f"{key}_long_p999_ratio",
            f"{default}: VAI SF shortens p99.9 of flows above 1 MB",
            compared,
            compared.below(1.0),
        )
        halved = compared.below(HALF)
        values |= {f"{key}_halved_holds": halved is True, f"{key}_halved_fails": halved is False}
        word = {True: "it does", False: "it does not", None: "not decided"}[halved]
        notes.append(f"{default}: VAI SF halves it, or does better: {word}")
        if traffic == "hadoop":
            for name, (low, high), end in ((default, STARVED, ""), (better, HELPED, "_vai_sf")):
                found_level = level(tails[name])
                text = f"{name}: p99.9 of flows above 1 MB is {low:g} to {high:g}, as after 50 ms in the paper"
                judged(values, notes, f"{key}{end}_long_p999", text, found_level, between(found_level, low, high))
        else:
            values |= {f"{key}_long_p999": level(tails[default]).value}
            values |= {f"{key}_vai_sf_long_p999": level(tails[better]).value}
        for statistic, sizes, name in (("p99", LONG, "long"), ("mean", LONG, "long")):
            other = ratio(*(by_seed(found, scheme, statistic, sizes) for scheme in (better, default)))
            values |= {f"{key}_{name}_{statistic}_ratio{end}": value
                       for end, value in zip(("", "_low", "_high"), other[:3], strict=True)}  # fmt: skip
        short = ratio(*(by_seed(found, scheme, "p999", SHORT) for scheme in (better, default)))
        text = f"{default}: VAI SF does not compromise flows up to 100 KB (p99.9 longer by less than {WORSE - 1:.0%})"
        judged(values, notes, f"{key}_short_p999_ratio", text, short, short.below(WORSE))


def _medians(found: FabricStudy, traffic: str, values: dict[str, float | bool], notes: list[str]) -> None:
    for default, better in PAIRS.items():
        key = default.lower()
        for name, sizes, words in (("all", (0.0, np.inf), "all flows"), ("long", LONG, "flows above 1 MB")):
            compared = ratio(*(by_seed(found, scheme, "p50", sizes) for scheme in (better, default)))
            text = f"{default}: VAI SF does not lengthen the median of {words} by {WORSE - 1:.0%} or more"
            judged(values, notes, f"{key}_{name}_p50_ratio", text, compared, compared.below(WORSE))
        for scheme, end in ((default, ""), (better, "_vai_sf")):
            values[f"{key}{end}_long_p50"] = level(by_seed(found, scheme, "p50", LONG)).value
    beside = ratio(*(by_seed(found, scheme, "p50", LONG) for scheme in ("Swift", "HPCC")))
    if traffic == "hadoop":
        text, answer = "Swift's median of flows above 1 MB is longer than HPCC's", beside.above(1.0)
    else:
        text, answer = (
            f"Swift's median of flows above 1 MB is no longer than HPCC's by {WORSE - 1:.0%}",
            beside.below(WORSE),
        )
    judged(values, notes, "swift_over_hpcc_long_p50", text, beside, answer)
    longest = ratio(*(by_seed(found, scheme, "p50", LONGEST) for scheme in ("Swift", "HPCC")))
    values |= {f"swift_over_hpcc_longest_p50{end}": value
               for end, value in zip(("", "_low", "_high"), longest[:3], strict=True)}  # fmt: skip
    low, high = (f"{end:.3g}" for end in longest[1:3])
    notes.append(f"no claim: above 2 MB Swift's median is {longest.value:.3g} times HPCC's ({low} to {high})")


def _notes(found: FabricStudy, quick: bool) -> list[str]:
    notes = [
        "network of the HPCC authors' simulator for both schemes: 32 MB, PFC, windows of payload, whole nanoseconds; "
        "Swift's flow scaling up to 100 packets, as its paper has it, off with VAI SF; VAI SF: 30 ACKs, tokens above "
        "the least bandwidth-delay product",
        f"flows arrive for {1e3 * found.runs[0].numbers['window_s'][1]:g} ms from an empty network, in place of 50 ms, "
        "and all that do are counted: long flows have met less contention than the paper's",
        "slowdown: completion time over that alone, in an idle network, of packets without telemetry, which HPCC pays "
        "for; the paper's is over propagation and serialisation",
        "intervals: Student's over seeds; p99.9 of a seed's few long flows is about its longest",
    ]
    if "mix" in found.says or "+" in found.says:
        notes.append("the mix: half the load each, which the paper does not say")
    if quick:
        notes.append("quick: 64 hosts, 0.2 ms of arrivals, two seeds; no verdict but that nothing is lost")
    return notes


def _draw(found: FabricStudy, bins: xr.Dataset, shown: Shown, title: str) -> Any:
    picture, axes = new_figure(1, 2, size=(WIDTH, 4.6))
    slowdown_panel(axes[0, 0], bins, shown.statistic)
    slowdown_axis(axes[0, 0])
    axes[0, 0].set_title(f"{shown.words} of slowdowns", fontsize="medium")
    axes[0, 0].legend(fontsize="small")
    _ratios(axes[0, 1], bins, shown.statistic)
    seeds = f"{len(found.topology.hosts)} hosts, {found.says}, {len(found.seeds)} seeds (bands: 95 %)"
    picture.suptitle(f"{title}\n{seeds}", fontsize="medium")
    return picture


def _ratios(axis: Axes, bins: xr.Dataset, statistic: str) -> None:
    ends = bins["to_bytes"].values[0, 0]
    places = np.arange(len(ends))
    shades = scheme_colours(PAIRS)
    for k, (default, better) in enumerate(PAIRS.items()):
        logs = np.log(bins[statistic].sel(scheme=better).values / bins[statistic].sel(scheme=default).values)
        middle, low, high = np.exp([interval(column) for column in logs.T]).T
        drawn = {"color": shades[default], "lw": 1.4, "marker": "os"[k], "ms": 4}
        axis.plot(places, middle, label=f"{better} over {default}", **drawn)
        axis.fill_between(places, low, high, color=shades[default], alpha=0.2, lw=0)
    axis.axhline(1, color="black", lw=0.8)
    axis.axhline(HALF, color="0.4", lw=0.8, ls=":")
    axis.set_xticks(places, [units.show(float(end), units.SIZE, 3) for end in ends], rotation=45, ha="right")
    axis.set(xlabel="flow size up to", ylabel="ratio, paired by seed [1]", ylim=(0, None))
    axis.set_title("with VAI SF over without", fontsize="medium")
    axis.grid(alpha=0.3)
    axis.legend(fontsize="small")
