"""ACC Figures 13 to 15: completion times, slowdowns and PAUSEs on the tree of 320 hosts (section 6.4)."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np

from fluidcc import units
from fluidcc.plotting.fabrics import slowdown_axis, slowdown_panel
from fluidcc.plotting.style import figure as new_figure
from fluidcc.plotting.style import label
from fluidcc.proofs import papers
from fluidcc.proofs.acc.datacenter import (
    CLASSES,
    EDGES,
    HADOOP_CLASSES,
    TIERS,
    bars,
    claim,
    foreground,
    from_none,
    notes_of,
    sample,
    study,
)
from fluidcc.proofs.shared.fabric_checks import LOSSLESS, counted, level, precision_notes
from fluidcc.proofs.shared.runs import WIDTH, save
from fluidcc.proofs.shared.slowdowns import (
    by_seed,
    data_of,
    difference,
    latency_by_seed,
    mean,
    of_numbers,
    ratio,
    sample_of,
)
from fluidcc.proofs.verdict.figure import Figure, Result, reproduces
from fluidcc.workloads.fabrics.study import FabricStudy

COMPARED = ("ACC", "HPCC", "DCQCN", "TIMELY")
WITH_TCD = {"DCQCN": "DCQCN+TCD", "TIMELY": "TIMELY+TCD"}
IN_FIG13 = (*COMPARED, *WITH_TCD.values())
COMPARABLE = 1.2  # of HPCC's: "comparable", "close to"
WORDS = {"web-search": "Web Search, 80 %", "hadoop": "Hadoop, 50 %, beside incasts"}
_LEFT = "Cache Follower has no public table, and is left out"
_TCD = (
    "DCQCN and TIMELY with TCD: marks with max(T_on) 24 us; CE cuts as usual, UE by half of it (`ue_gain`, ours: the "
    "paper names no number), and TIMELY does not cut for delay alone"
)
_Values = dict[str, float | bool]


@reproduces("acc-fig13", papers.ACC, "Figure 13: completion times of small, medium and large flows")
def make_fig13(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make the figure."""
    studies = {traffic: study(traffic, IN_FIG13, folder, quick) for traffic in WORDS}
    studies["hadoop"] = foreground(studies["hadoop"])
    values: _Values = counted(studies)
    claims: list[str] = []
    _times(studies, values, claims)
    picture = _draw_times(studies, f"ACC {figure.figure}")
    notes = [*claims, *precision_notes(studies, values), _TCD, _LEFT]
    notes += [f"{WORDS[name]}: {line}" for name, each in studies.items() for line in notes_of(name, each, quick)]
    return _result(figure, folder, studies, values, notes, picture)


@reproduces("acc-fig14", papers.ACC, "Figure 14: slowdowns by size, Web Search")
def make_fig14(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make the figure."""
    found = study("web-search", COMPARED, folder, quick)
    studies = {"web-search": found}
    values: _Values = counted(studies)
    claims: list[str] = []
    for name, sizes in (("small", CLASSES["small"]), ("medium", CLASSES["medium"])):
        compared = ratio(*(by_seed(found, scheme, "p99", sizes) for scheme in ("ACC", "HPCC")))
        text = f"p99 slowdown of {name} flows with ACC is below {COMPARABLE:g} times HPCC's: comparable or better"
        claim(values, claims, f"hpcc_{name}_p99_ratio", text, compared, compared.below(COMPARABLE))
    for key, sizes, printed in (("over_1MB", (1e6, np.inf), None), ("over_10MB", CLASSES["large"], 0.73)):
        compared = ratio(*(by_seed(found, scheme, "p99", sizes) for scheme in ("ACC", "HPCC")))
        text = f"p99 slowdown of flows {key.replace('_', ' ')} is lower with ACC than with HPCC"
        claim(values, claims, f"hpcc_{key}_p99_ratio", text, compared, compared.below(1.0), printed)
    for scheme in COMPARED:
        values |= {f"{scheme.lower()}_{name}_p99": level(by_seed(found, scheme, "p99", sizes)).value
                   for name, sizes in CLASSES.items()}  # fmt: skip
    notes = [*claims, *precision_notes(studies, values), _LEFT, *notes_of("web-search", found, quick)]
    return _result(figure, folder, studies, values, notes, _draw_slowdowns(found, f"ACC {figure.figure}"))


@reproduces("acc-fig15", papers.ACC, "Figure 15: PFC PAUSEs by layer, Web Search")
def make_fig15(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make the figure."""
    found = study("web-search", COMPARED, folder, quick)
    studies = {"web-search": found}
    values: _Values = counted(studies)
    claims: list[str] = []
    total = {name: sum(of_numbers(found, name, "pauses", tier) for tier in TIERS) for name in COMPARED}
    for name in COMPARED:
        values |= {f"{name.lower()}_pauses_{words.lower()}": float(of_numbers(found, name, "pauses", tier).mean())
                   for tier, words in TIERS.items()}  # fmt: skip
    for name in ("DCQCN", "TIMELY"):
        compared = difference(np.asarray(total["ACC"]), np.asarray(total[name]))
        text = f"with ACC there are fewer PAUSEs than with {name} (difference of a run)"
        claim(values, claims, f"{name.lower()}_more_pauses", text, compared, compared.below(0.0))
        share = mean(of_numbers(found, name, "pauses", "tier 2") / np.maximum(total[name], 1))
        text = f"{name}: most PAUSEs are received by Aggs (share)"
        claim(values, claims, f"{name.lower()}_agg_share", text, share, share.above(0.5))
    notes = [*claims, *precision_notes(studies, values), _LEFT, *notes_of("web-search", found, quick)]
    return _result(figure, folder, studies, values, notes, _draw_pauses(found, f"ACC {figure.figure}"))


def _result(
    figure: Figure, folder: Path, studies: dict[str, FabricStudy], values: _Values, notes: list[str], picture: Any
) -> Result:
    files = (picture.write(folder / f"{figure.name}.png"), save(data_of(studies, EDGES), folder / f"{figure.name}.nc"))
    return Result(figure, values, dict(LOSSLESS), files, tuple(notes), sample=sample_of(studies))


def _times(studies: dict[str, FabricStudy], values: _Values, notes: list[str]) -> None:
    """Section 6.4 of completion times: each scheme's over ACC's, or ACC's over HPCC's where that is what is said."""
    for traffic, found in studies.items():
        classes = HADOOP_CLASSES if traffic == "hadoop" else CLASSES
        for scheme in IN_FIG13:
            for name, sizes in classes.items():
                for statistic in ("mean", "p99"):
                    times = latency_by_seed(found, scheme, statistic, sizes)
                    values[f"{traffic}_{key_of(scheme)}_{name}_{statistic}_s"] = level(times).value

    def over(traffic: str, a: str, b: str, statistic: str, sizes: tuple[float, float]) -> Any:
        return ratio(*(latency_by_seed(studies[traffic], scheme, statistic, sizes) for scheme in (a, b)))

    small = CLASSES["small"]
    for statistic, printed, hpcc in (("mean", 3.3, 0.71), ("p99", 11.5, 0.60)):
        for other in ("DCQCN", "TIMELY"):
            found = over("web-search", other, "ACC", statistic, small)
            text = f"Web Search: {statistic} of small flows is longer with {other} than with ACC"
            key = f"web-search_{other.lower()}_small_{statistic}_ratio"
            claim(values, notes, key, text, found, found.above(1.0), printed if other == "DCQCN" else None)
        found = over("web-search", "ACC", "HPCC", statistic, small)
        text = f"Web Search: {statistic} of small flows is shorter with ACC than with HPCC"
        key = f"web-search_hpcc_small_{statistic}_ratio"
        claim(values, notes, key, text, found, found.below(1.0), hpcc)
        for name in ("small", "medium"):
            found = over("hadoop", "ACC", "HPCC", statistic, HADOOP_CLASSES[name])
            text = f"Hadoop: {statistic} of {name} flows with ACC is within {COMPARABLE - 1:.0%} of HPCC's"
            key = f"hadoop_hpcc_{name}_{statistic}_ratio"
            claim(values, notes, key, text, found, found.within(COMPARABLE))
    found = over("hadoop", "ACC", "HPCC", "p99", HADOOP_CLASSES["large"])
    text = "Hadoop: p99 of flows above 1 MB is shorter with ACC than with HPCC"
    claim(values, notes, "hadoop_hpcc_large_p99_ratio", text, found, found.below(1.0), 0.70)
    for traffic, words in WORDS.items():
        classes = HADOOP_CLASSES if traffic == "hadoop" else CLASSES
        for (without, better), statistic in itertools.product(WITH_TCD.items(), ("mean", "p99")):
            key = f"{traffic}_{key_of(better)}"
            for name, sizes in classes.items():
                found = over(traffic, better, without, statistic, sizes)
                text = f"{words}: {statistic} of {name} flows is shorter with {better} than with {without}"
                claim(values, notes, f"{key}_{name}_{statistic}_over_{key_of(without)}", text, found, found.below(1.0))
            found = over(traffic, better, "ACC", statistic, small)
            text = f"{words}: {statistic} of small flows is longer with {better} than with ACC"
            claim(values, notes, f"{key}_small_{statistic}_over_acc", text, found, found.above(1.0))


def key_of(scheme: str) -> str:
    """Return a scheme as a value's name has it."""
    return scheme.lower().replace("+", "_")


def _draw_times(studies: dict[str, FabricStudy], title: str) -> Any:
    picture, axes = new_figure(2, 2, size=(WIDTH, 7.4))
    for row, (traffic, found) in zip(axes, studies.items(), strict=True):
        classes = HADOOP_CLASSES if traffic == "hadoop" else CLASSES
        for axis, statistic, words in zip(row, ("mean", "p99"), ("mean", "99th percentile"), strict=True):
            numbers = [np.array([latency_by_seed(found, scheme, statistic, sizes) for sizes in classes.values()]) * 1e3
                       for scheme in IN_FIG13]  # fmt: skip
            ends = [
                f"{name}\n(≤ {units.show(high, units.SIZE)})"
                if np.isfinite(high)
                else f"{name}\n(> {units.show(low, units.SIZE)})"
                for name, (low, high) in classes.items()
            ]
            bars(axis, IN_FIG13, numbers, ends)
            axis.set_yscale("log")
            axis.set_ylabel(label("completion time", "ms"))
            axis.set_title(f"{WORDS[traffic]}: {words}", fontsize="medium")
    axes[0, 0].legend(fontsize="small")
    picture.suptitle(f"{title}\n{sample(next(iter(studies.values())))}", fontsize="medium")
    return picture


def _draw_slowdowns(found: FabricStudy, title: str) -> Any:
    picture, axes = new_figure(1, 2, size=(WIDTH, 4.6))
    bins = found.bins(EDGES)
    for axis, statistic, words in zip(axes[0], ("mean", "p99"), ("mean", "99th percentile"), strict=True):
        slowdown_panel(axis, bins, statistic)
        slowdown_axis(axis)
        axis.set_title(words, fontsize="medium")
    axes[0, 0].legend(fontsize="small")
    picture.suptitle(f"{title}\n{found.says}, {sample(found)}", fontsize="medium")
    return picture


def _draw_pauses(found: FabricStudy, title: str) -> Any:
    picture, axes = new_figure(1, 2, size=(WIDTH, 4.6))
    numbers = [np.array([of_numbers(found, scheme, "pauses", tier) for tier in TIERS]) for scheme in COMPARED]
    bars(axes[0, 0], COMPARED, numbers, list(TIERS.values()))
    from_none(axes[0, 0], 10)  # TIMELY's are a hundred times the others', which may have none
    axes[0, 0].set_ylabel("PAUSE frames received in a run [1] (0: none)")
    axes[0, 0].legend(fontsize="small")
    times = [np.array([of_numbers(found, scheme, "paused_s", tier) * 1e3 for tier in TIERS]) for scheme in COMPARED]
    bars(axes[0, 1], COMPARED, times, list(TIERS.values()))
    from_none(axes[0, 1], 0.1)
    axes[0, 1].set_ylabel(label("time paused, all ports together", "ms"))
    picture.suptitle(f"{title}\n{found.says}, {sample(found)}", fontsize="medium")
    return picture
