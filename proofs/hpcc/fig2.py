"""HPCC Figure 2: DCQCN's timers in a PoD, throughput against stability (section 2.3).

"Smaller T_i and larger T_d reduce the FCT slowdown", which is over Web Search at 30 %; "longer PFC pause durations and
larger tail latencies of flows" with incasts of 60 senders beside it, 2 % of the capacity.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fluidcc.plotting.fabrics import plot_evaluation
from fluidcc.proofs import papers
from fluidcc.proofs.hpcc.fabric import INCAST, NOTES, WEB_SEARCH_EDGES, closing, lossless, scheme, share_up_to, totals
from fluidcc.proofs.shared.runs import save
from fluidcc.proofs.shared.slowdowns import (
    by_seed,
    data_of,
    difference,
    judged,
    kept_fabric,
    latency_by_seed,
    paused,
    ratio,
    sample_of,
)
from fluidcc.proofs.verdict.figure import Check, Figure, Result, reproduces
from fluidcc.schemes import dcqcn
from fluidcc.workloads.fabrics.study import FabricStudy

# T_i and T_d, the most aggressive first: DCQCN's own, a vendor's, and the authors' more conservative one. The vendor's
# timer of alpha, 1 us, lets alpha decay 50 times between two cuts with DCQCN's T_d: its own is 55 us.
OWN, OWN_ALPHA, VENDOR, SLOW = "55us, 50us", "55us, 50us, alpha 55us", "300us, 4us", "900us, 4us"
TIMERS: dict[str, dict[str, Any]] = {
    OWN: {"timer": "55us", "cnp_interval": "50us"},
    OWN_ALPHA: {"timer": "55us", "cnp_interval": "50us", "alpha_timer": "55us"},
    VENDOR: {"timer": "300us", "cnp_interval": "4us"},
    SLOW: {"timer": "900us", "cnp_interval": "4us"},
}
PAIRS = ((OWN, VENDOR), (OWN_ALPHA, VENDOR), (VENDOR, SLOW))
SEEDS, QUICK_SEEDS = 5, 3
UNTIL, QUICK_UNTIL = 4e-3, 0.6e-3  # s: arrivals
TOPOLOGY, QUICK_TOPOLOGY = "pod", "leaf-spine:4x2x16"
QUICK_SHAPE = {"rate": "25Gbps", "fabric_rate": "100Gbps"}
TRAFFIC = {"30 %": (None, None), "30 % + incast": (INCAST, "40:200KB:10%")}  # with the incast of a quick run
SHORT = (0.0, 10e3)  # bytes: what "short flows" are is not said
SIZES = {"all": (0.0, 30e6), "up_to_200KB": (0.0, 200e3), "above_1MB": (1e6, 30e6)}


@reproduces("hpcc-fig2", papers.HPCC, "Figure 2: slowdowns and PFC pauses for three pairs of DCQCN's timers")
def make_fig2(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make the figure."""
    vendor = dcqcn.PRESETS["hpcc-eval"]
    contenders = {name: scheme(vendor, **timers) for name, timers in TIMERS.items()}
    studies = {
        name: kept_fabric(
            figure, folder, contenders, QUICK_TOPOLOGY if quick else TOPOLOGY, workload="web-search", load=0.3,
            incast=small if quick else incast, until=QUICK_UNTIL if quick else UNTIL, ideal="hpcc-sim",
            seeds=QUICK_SEEDS if quick else SEEDS, **(QUICK_SHAPE if quick else {}),
        )
        for name, (incast, small) in TRAFFIC.items()
    }  # fmt: skip
    share, error = share_up_to({"30 %": studies["30 %"]}, SHORT[1])
    values: dict[str, float | bool] = {**totals(studies), "share_up_to_10KB": share}
    notes = [
        *NOTES,
        f"the PoD's 460 NICs of 25 Gbps, arrivals of {UNTIL * 1e3:g} ms; T_i is the timer of increases, T_d the least "
        "time between cuts; everything else is the vendor's, but for alpha's timer where it is named; thresholds, "
        "buffers and PFC are section 5.1's",
        "incasts of 500 KB a sender, of which only section 5.3 tells the size; short flows: up to 10 KB",
    ]
    _judge(studies, values, notes)
    expected = {
        "drops": lossless(),
        "share_up_to_10KB": Check(0.15, error, "the table of Web Search; four standard errors"),
    }
    quick_text = f"quick: 64 hosts, {QUICK_SEEDS} seeds, arrivals of {QUICK_UNTIL * 1e3:g} ms, other incasts"
    notes += closing(studies, quick_text if quick else "")
    picture = plot_evaluation(
        studies, WEB_SEARCH_EDGES, _title(studies), bars=(_latencies(studies), "p95 completion, flows to 10 KB", "us")
    )
    files = (picture.write(folder / f"{figure.name}.png"),
             save(data_of(studies, WEB_SEARCH_EDGES), folder / f"{figure.name}.nc"))  # fmt: skip
    return Result(figure, values, expected, files, tuple(notes), sample=sample_of(studies))


def _judge(studies: Mapping[str, FabricStudy], values: dict[str, float | bool], notes: list[str]) -> None:
    """Section 2.3's claims, each by its interval."""
    calm, burst = studies["30 %"], studies["30 % + incast"]
    for name in TIMERS:
        values |= {f"p95_{which}_{_key(name)}": float(by_seed(calm, name, "p95", sizes).mean())
                   for which, sizes in SIZES.items()}  # fmt: skip
        values[f"paused_over_arrivals_{_key(name)}"] = float(paused(calm, name).mean())
        values[f"incast_p95_latency_{_key(name)}_s"] = float(latency_by_seed(burst, name, "p95", SHORT).mean())
        values[f"incast_paused_over_arrivals_{_key(name)}"] = float(paused(burst, name).mean())
    for fast, slow in PAIRS:
        key = f"{_key(fast)}_to_{_key(slow)}"
        for which, sizes in SIZES.items():
            found = ratio(by_seed(calm, fast, "p95", sizes), by_seed(calm, slow, "p95", sizes))
            text = f"30 %, p95 of flows ({which.replace('_', ' ')}): timers of {fast} over those of {slow}, below 1"
            judged(values, notes, f"p95_{which}_{key}", text, found, found.below(1))
        found = difference(paused(burst, fast), paused(burst, slow))
        text = f"with incasts {fast} is paused for longer than {slow} (over all ports' time of arrivals)"
        judged(values, notes, f"incast_paused_{key}", text, found, found.above(0))
        found = ratio(latency_by_seed(burst, fast, "p95", SHORT), latency_by_seed(burst, slow, "p95", SHORT))
        text = f"with incasts, p95 completion of short flows: {fast} over {slow}, above 1"
        judged(values, notes, f"incast_p95_latency_{key}", text, found, found.above(1))


def _key(name: str) -> str:
    return name.replace("us", "").replace(",", "").replace(" ", "_")


def _latencies(studies: Mapping[str, FabricStudy]) -> dict[str, dict[str, np.ndarray]]:
    return {
        traffic: {name: 1e6 * latency_by_seed(study, name, "p95", SHORT) for name in study.schemes}
        for traffic, study in studies.items()
    }


def _title(studies: Mapping[str, FabricStudy]) -> str:
    first = next(iter(studies.values()))
    return (
        f"HPCC Fig. 2: DCQCN's timers $T_i$, $T_d$; Web Search, {len(first.topology.hosts)} NICs of 25 Gbps, "
        f"{len(first.seeds)} seeds (bands, bars: 95 %)"
    )
