"""HPCC Figure 3: DCQCN's ECN thresholds in a PoD, bandwidth against latency (section 2.3).

"When we use low ECN thresholds, small flows which are latency-sensitive have lower FCT, while big flows which are
bandwidth-sensitive suffer from larger FCT. The trend is more obvious when the network load is higher."
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from fluidcc.plotting.fabrics import plot_evaluation
from fluidcc.proofs import papers
from fluidcc.proofs.hpcc.fabric import NOTES, WEB_SEARCH_EDGES, closing, lossless, share_up_to, totals
from fluidcc.proofs.shared.runs import save
from fluidcc.proofs.shared.slowdowns import by_seed, data_of, judged, kept_fabric, mean, named, ratio, sample_of
from fluidcc.proofs.verdict.figure import Check, Figure, Result, reproduces
from fluidcc.scenario.model import RED
from fluidcc.schemes import dcqcn
from fluidcc.workloads.fabrics.study import FabricStudy

# Of a link of 25 Gb/s; others in proportion, as in section 5.1. Lowest first.
THRESHOLDS = {"12, 50 KB": (12e3, 50e3), "100, 400 KB": (100e3, 400e3), "400, 1600 KB": (400e3, 1600e3)}
LOWEST, HIGHEST = "12, 50 KB", "400, 1600 KB"
LOADS = {"30 %": 0.3, "50 %": 0.5}
SEEDS, QUICK_SEEDS = 5, 3
UNTIL, QUICK_UNTIL = 3.5e-3, 0.8e-3  # s: arrivals
TOPOLOGY, QUICK_TOPOLOGY = "pod", "leaf-spine:4x2x16"
QUICK_SHAPE = {"rate": "25Gbps", "fabric_rate": "100Gbps"}
SIZES = {"small": (0.0, 30e3), "big": (1e6, 30e6)}  # bytes: the paper names no size


@reproduces("hpcc-fig3", papers.HPCC, "Figure 3: slowdowns for three pairs of DCQCN's ECN thresholds")
def make_fig3(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make the figure."""
    studies = {
        name: kept_fabric(
            figure, folder, _contenders(), QUICK_TOPOLOGY if quick else TOPOLOGY, workload="web-search", load=load,
            until=QUICK_UNTIL if quick else UNTIL, ideal="hpcc-sim", seeds=QUICK_SEEDS if quick else SEEDS,
            **(QUICK_SHAPE if quick else {}),
        )
        for name, load in LOADS.items()
    }  # fmt: skip
    share, error = share_up_to(studies, SIZES["small"][1])
    values: dict[str, float | bool] = {**totals(studies), "share_up_to_30KB": share}
    notes = [
        *NOTES,
        f"the PoD's 460 NICs of 25 Gbps, arrivals of {UNTIL * 1e3:g} ms; DCQCN with the vendor's numbers, buffers and "
        "PFC of section 5.1; thresholds are those of 25 Gbps and in proportion elsewhere",
        "of the thresholds the text names 400 and 1600 KB; 100 and 400 KB are section 5.1's, 12 and 50 KB are ours; "
        "small flows are taken to be those up to 30 KB, big ones those above 1 MB",
    ]
    _judge(studies, values, notes)
    expected = {
        "drops": lossless(),
        "share_up_to_30KB": Check(0.3, error, "the table of Web Search; four standard errors"),
    }
    quick_text = f"quick: 64 hosts, {QUICK_SEEDS} seeds, arrivals of {QUICK_UNTIL * 1e3:g} ms"
    notes += closing(studies, quick_text if quick else "")
    first = studies["30 %"]
    title = (
        f"HPCC Fig. 3: $K_{{min}}$, $K_{{max}}$ at 25 Gbps; Web Search, {len(first.topology.hosts)} NICs, "
        f"{len(first.seeds)} seeds (bands: 95 %)"
    )
    picture = plot_evaluation(studies, WEB_SEARCH_EDGES, title, percentiles=("p95", "p50"), paused=False)
    files = (picture.write(folder / f"{figure.name}.png"),
             save(data_of(studies, WEB_SEARCH_EDGES), folder / f"{figure.name}.nc"))  # fmt: skip
    return Result(figure, values, expected, files, tuple(notes), sample=sample_of(studies))


def _contenders() -> dict[str, dict[str, Any]]:
    vendor = dcqcn.PRESETS["hpcc-eval"]
    return {
        name: named(vendor._replace(marking=RED(low, high, vendor.marking.pmax, mark_on=vendor.marking.mark_on)))
        for name, (low, high) in THRESHOLDS.items()
    }


def _judge(studies: Mapping[str, FabricStudy], values: dict[str, float | bool], notes: list[str]) -> None:
    """Section 2.3's claims, each by its interval."""
    for traffic, study in studies.items():
        at = traffic.removesuffix(" %")
        for which, sizes in SIZES.items():
            found = {name: by_seed(study, name, "p95", sizes) for name in THRESHOLDS}
            values |= {f"p95_{which}_{_key(name)}_{at}": float(each.mean()) for name, each in found.items()}
            for low, high in pairwise(THRESHOLDS):
                compared = ratio(found[low], found[high])
                answer = compared.below(1) if which == "small" else compared.above(1)
                text = (
                    f"{traffic}, p95 of {which} flows: {low} over {high}, {'below' if which == 'small' else 'above'} 1"
                )
                judged(values, notes, f"p95_{which}_{_key(low)}_to_{_key(high)}_{at}", text, compared, answer)
    for which, sizes in SIZES.items():
        compared = ratio(*(
            by_seed(studies[at], LOWEST, "p95", sizes) / by_seed(studies[at], HIGHEST, "p95", sizes)
            for at in ("50 %", "30 %")
        ))  # fmt: skip
        answer = compared.below(1) if which == "small" else compared.above(1)
        text = (
            f"the trend of {which} flows is more obvious at 50 %: what {LOWEST} are over {HIGHEST}, over that at 30 %"
        )
        judged(values, notes, f"trend_{which}", text, compared, answer)
    found = mean(by_seed(studies["50 %"], HIGHEST, "p95", SIZES["small"]))
    text = f"50 %, {HIGHEST}: p95 of small flows is about 30 (20 to 45; it grows with arrivals, less decides nothing)"
    answer = True if found.low > 20 and found.high < 45 else False if found.low > 45 else None
    judged(values, notes, "small_at_highest_50", text, found, answer)


def _key(name: str) -> str:
    return name.split(",")[0]
