"""ACC Figures 16, 18 and 19: Web Search with and without halts, against RI and against P_thresh (6.4, B.1)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fluidcc.plotting.fabrics import slowdown_axis, slowdown_panel
from fluidcc.plotting.style import figure as new_figure
from fluidcc.plotting.style import legend
from fluidcc.proofs import papers
from fluidcc.proofs.acc.datacenter import (
    CLASSES,
    EDGES,
    INSENSITIVE,
    SIMILAR,
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
from fluidcc.proofs.shared.slowdowns import Compared, by_seed, data_of, difference, of_numbers, ratio, sample_of
from fluidcc.proofs.verdict.figure import Figure, Result, reproduces
from fluidcc.workloads.fabrics.study import FabricStudy, interval

TINY = (0.0, 10e3)  # bytes: B.1's flows that hardly feel P_thresh
GREYS = ("0.0", "0.35", "0.6")  # classes are no schemes
_Values = dict[str, float | bool]


class Case(NamedTuple):
    """ACC's variants that are compared, the paper's own among them, under a traffic."""

    traffic: str
    variants: tuple[str, ...]
    paused: bool = True  # whether PAUSEs are drawn, or else slowdowns by class


CASES = {
    "acc-fig16": Case("web-search", ("ACC", "ACC without halts")),
    "acc-fig18": Case("web-search", ("ACC, RI 1 Gbps", "ACC, RI 2 Gbps", "ACC", "ACC, RI 8 Gbps"), paused=False),
    "acc-fig19": Case("bursts", ("ACC, P_thresh 0", "ACC", "ACC, P_thresh 2", "ACC, P_thresh 3")),
}


@reproduces("acc-fig16", papers.ACC, "Figure 16: slowdowns and PAUSEs with halts and without")
@reproduces("acc-fig18", papers.ACC, "Figure 18: slowdowns against RI")
@reproduces("acc-fig19", papers.ACC, "Figure 19: slowdowns and PAUSEs against P_thresh")
def make_sensitivity(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make one of the figures."""
    case = CASES[figure.name]
    found = foreground(study(case.traffic, case.variants, folder, quick))
    studies = {case.traffic: found}
    values: _Values = counted(studies)
    claims: list[str] = []
    for scheme in case.variants:
        for name, sizes in {"tiny": TINY, **CLASSES}.items():
            for statistic in ("mean", "p99"):
                slow = level(by_seed(found, scheme, statistic, sizes))
                values[f"{key_of(scheme)}_{name}_{statistic}"] = slow.value
        for tier, words in TIERS.items():
            values[f"{key_of(scheme)}_pauses_{words.lower()}"] = float(of_numbers(found, scheme, "pauses", tier).mean())
    CLAIMS[figure.name](found, values, claims)
    files = (
        _draw(case, found, f"ACC {figure.figure}").write(folder / f"{figure.name}.png"),
        save(data_of(studies, EDGES), folder / f"{figure.name}.nc"),
    )
    notes = [
        *claims,
        *precision_notes(studies, values),
        *notes_of(case.traffic, found, quick),
        *_DEFAULTS.get(figure.name, ()),
    ]
    return Result(figure, values, dict(LOSSLESS), files, tuple(notes), sample=sample_of(studies))


_DEFAULTS = {"acc-fig18": ("ACC itself has RI = 4 Gbps",), "acc-fig19": ("ACC itself has P_thresh = 1",)}


def key_of(variant: str) -> str:
    """A variant in a value's name."""
    return variant.lower().replace(", ", "_").replace(" ", "_")


def halts(found: FabricStudy, values: _Values, notes: list[str]) -> None:
    """Section 6.4 of ACC without halts."""
    ours, without = "ACC", "ACC without halts"
    for statistic in ("mean", "p99"):
        longer = _ratio(found, without, ours, statistic, "small")
        text = f"{statistic} slowdown of small flows is larger without halts"
        claim(values, notes, f"small_{statistic}_ratio", text, longer, longer.above(1.0))
        for name in ("medium", "large"):
            alike = _ratio(found, without, ours, statistic, name)
            text = f"{statistic} slowdown of {name} flows is similar without halts (within {SIMILAR - 1:.0%})"
            claim(values, notes, f"{name}_{statistic}_ratio", text, alike, alike.within(SIMILAR))
    for tier, words in TIERS.items():
        fewer = difference(*(of_numbers(found, scheme, "pauses", tier) for scheme in (without, ours)))
        text = f"{words} receive more PAUSEs without halts (difference of a run)"
        claim(values, notes, f"more_pauses_{words.lower()}", text, fewer, fewer.above(0.0))


def increments(found: FabricStudy, values: _Values, notes: list[str]) -> None:
    """Appendix B.1 of RI."""
    low, high = "ACC, RI 1 Gbps", "ACC, RI 8 Gbps"
    faster = _ratio(found, high, low, "mean", "large")
    text = "mean slowdown of large flows is smaller with RI = 8 Gbps than with 1"
    claim(values, notes, "large_mean_ratio", text, faster, faster.below(1.0))
    for name in ("small", "medium"):
        alike = _ratio(found, high, low, "mean", name)
        text = f"mean slowdown of {name} flows is not sensitive to RI (8 over 1 Gbps within {INSENSITIVE - 1:.0%})"
        claim(values, notes, f"{name}_mean_ratio", text, alike, alike.within(INSENSITIVE))


def thresholds(found: FabricStudy, values: _Values, notes: list[str]) -> None:
    """Appendix B.1 of P_thresh."""
    zero, ours, three = "ACC, P_thresh 0", "ACC", "ACC, P_thresh 3"
    for name in ("medium", "large"):
        for statistic in ("mean", "p99"):
            faster = _ratio(found, three, zero, statistic, name)
            text = f"{statistic} slowdown of {name} flows is smaller with P_thresh = 3 than with 0"
            claim(values, notes, f"{name}_{statistic}_ratio", text, faster, faster.below(1.0))
    slower = _ratio(found, zero, ours, "p99", "large")
    text = "p99 slowdown of large flows is larger with P_thresh = 0 than with 1"
    claim(values, notes, "large_p99_0_over_1", text, slower, slower.above(1.0), 1.22)
    for statistic in ("mean", "p99"):
        alike = ratio(*(by_seed(found, scheme, statistic, TINY) for scheme in (three, zero)))
        text = (
            f"{statistic} slowdown of flows up to 10 KB is not sensitive to P_thresh (3 over 0 within "
            f"{INSENSITIVE - 1:.0%})"
        )
        claim(values, notes, f"tiny_{statistic}_ratio", text, alike, alike.within(INSENSITIVE))
    for tier, words in TIERS.items():
        more = difference(*(of_numbers(found, scheme, "pauses", tier) for scheme in (three, zero)))
        text = f"{words} receive more PAUSEs with P_thresh = 3 than with 0 (difference of a run)"
        claim(values, notes, f"more_pauses_{words.lower()}", text, more, more.above(0.0))


CLAIMS = {"acc-fig16": halts, "acc-fig18": increments, "acc-fig19": thresholds}


def _ratio(found: FabricStudy, a: str, b: str, statistic: str, name: str) -> Compared:
    return ratio(*(by_seed(found, scheme, statistic, CLASSES[name]) for scheme in (a, b)))


def _draw(case: Case, found: FabricStudy, title: str) -> Any:
    picture, axes = new_figure(1, 3, size=(WIDTH, 4.6))
    bins = found.bins(EDGES)
    for axis, statistic, words in zip(axes[0], ("mean", "p99"), ("mean", "99th percentile"), strict=False):
        slowdown_panel(axis, bins, statistic)
        slowdown_axis(axis)
        axis.set_title(words, fontsize="medium")
    legend(axes[0, 0], fontsize="x-small")
    if case.paused:
        numbers = [np.array([of_numbers(found, scheme, "pauses", tier) for tier in TIERS]) for scheme in case.variants]
        bars(axes[0, 2], case.variants, numbers, list(TIERS.values()))
        from_none(axes[0, 2], 10)
        axes[0, 2].set_ylabel("PAUSE frames received in a run [1]")
        axes[0, 2].set_title("flow control", fontsize="medium")
    else:
        _draw_classes(axes[0, 2], found, case.variants)
    picture.suptitle(f"{title}\n{found.says}, {sample(found)}", fontsize="medium")
    return picture


def _draw_classes(axis: Any, found: FabricStudy, variants: Sequence[str]) -> None:
    """Mean slowdown of each class over the variants, with intervals."""
    for k, (name, sizes) in enumerate(CLASSES.items()):
        means = np.array([interval(by_seed(found, scheme, "mean", sizes)) for scheme in variants]).T
        errors = np.stack([np.minimum(means[0], means[0] - means[1]), means[2] - means[0]])
        axis.errorbar(range(len(variants)), means[0], errors, color=GREYS[k], marker="osD"[k], capsize=3, label=name)
    axis.set_xticks(
        range(len(variants)), ["RI 4 Gbps" if name == "ACC" else name.removeprefix("ACC, ") for name in variants]
    )
    axis.set(ylabel="mean slowdown [1]", ylim=(0, None))
    axis.set_title("mean by class", fontsize="medium")
    axis.legend(fontsize="small")
    axis.grid(alpha=0.3)
