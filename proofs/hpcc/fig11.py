"""HPCC Figure 11: FB_Hadoop on the tree of 320 hosts, six schemes (section 5.3).

30 % of load with incasts of 60 senders of 500 KB each beside it, 2 % of the capacity, and 50 % of load: slowdowns by
size at the 95th percentile, PFC pauses, and the round trips of short flows.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fluidcc.plotting.fabrics import plot_evaluation
from fluidcc.proofs import papers
from fluidcc.proofs.hpcc.fabric import (
    HADOOP_EDGES,
    INCAST,
    NOTES,
    PACKET,
    closing,
    lossless,
    share_up_to,
    simulated,
    totals,
)
from fluidcc.proofs.shared.runs import save
from fluidcc.proofs.shared.slowdowns import (
    Compared,
    by_seed,
    data_of,
    difference,
    judged,
    kept_fabric,
    latency_by_seed,
    mean,
    paused,
    ratio,
    sample_of,
)
from fluidcc.proofs.verdict.figure import Check, Figure, Result, reproduces
from fluidcc.workloads.fabrics.study import FabricStudy

TOPOLOGY, QUICK_TOPOLOGY = "fat-tree:320", "fat-tree:64"
SEEDS, QUICK_SEEDS = 5, 3
# By traffic: load, incast, arrivals [s] full and quick.
TRAFFIC = {"30 % + incast": (0.3, INCAST, 1e-3, 0.3e-3), "50 %": (0.5, None, 1e-3, 0.3e-3)}
QUICK_INCAST = "20:500KB:10%"  # 30 MB to one of 64 hosts at 2 % would come once in 2 ms
SHORT, LONG = (0.0, 120e3), (1e6, 10e6)  # bytes: section 5.3's short flows; those for which it gives no size


@reproduces("hpcc-fig11", papers.HPCC, "Figure 11: FB_Hadoop on 320 hosts: slowdowns, PFC and latency of six schemes")
def make_fig11(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make the figure."""
    studies = {
        name: kept_fabric(
            figure, folder, simulated(), QUICK_TOPOLOGY if quick else TOPOLOGY, workload="hadoop", load=load,
            incast=QUICK_INCAST if quick and incast else incast, until=short if quick else until, ideal="hpcc-sim",
            seeds=QUICK_SEEDS if quick else SEEDS,
        )
        for name, (load, incast, until, short) in TRAFFIC.items()
    }  # fmt: skip
    share, error = share_up_to({"50 %": studies["50 %"]}, SHORT[1])
    values: dict[str, float | bool] = {**totals(studies), "share_up_to_120KB": share}
    notes = [
        *NOTES,
        f"arrivals of {TRAFFIC['50 %'][2] * 1e3:g} ms; T = 13 us; DCQCN: vendor's parameters; the "
        "incasts' 500 KB are in the last bin of sizes, and in no claim but those on pauses",
    ]
    for key, traffic in (("incast", "30 % + incast"), ("half", "50 %")):
        _judge(studies[traffic], key, traffic, values, notes)
    expected = {
        "drops": lossless(),
        "share_up_to_120KB": Check(0.9, error, "section 5.3: 90 % of FB_Hadoop's flows; four standard errors"),
    }
    text = (
        f"quick: {QUICK_TOPOLOGY.split(':')[1]} hosts, {QUICK_SEEDS} seeds, arrivals of 0.3 ms, incasts of 20:500KB:10%"
    )
    notes += closing(studies, text if quick else "")
    picture = plot_evaluation(
        studies, HADOOP_EDGES, _title(studies), bars=(_latencies(studies), "p95 completion of a packet", "us")
    )
    files = (picture.write(folder / f"{figure.name}.png"),
             save(data_of(studies, HADOOP_EDGES), folder / f"{figure.name}.nc"))  # fmt: skip
    return Result(figure, values, expected, files, tuple(notes), sample=sample_of(studies))


def _judge(study: FabricStudy, key: str, traffic: str, values: dict[str, float | bool], notes: list[str]) -> None:
    """Section 5.3's claims, each by its interval."""
    short = {name: by_seed(study, name, "p95", SHORT) for name in study.schemes}
    trip = {name: latency_by_seed(study, name, "p95", PACKET) for name in study.schemes}
    stopped = {name: paused(study, name) for name in study.schemes}
    for name in study.schemes:
        values[f"{key}_{name}_p95_short"] = float(short[name].mean())
        values[f"{key}_{name}_p95_latency_s"] = float(trip[name].mean())
        values[f"{key}_{name}_paused_over_arrivals"] = float(stopped[name].mean())

    def claim(name: str, text: str, found: Compared, answer: bool | None) -> None:
        judged(values, notes, f"{key}_{name}", f"{traffic}: {text}", found, answer)

    for other in (name for name in study.schemes if name != "HPCC"):
        found = ratio(short["HPCC"], short[other])
        claim(f"HPCC_over_{other}_p95_short", f"p95 of flows up to 120 KB, HPCC below {other}", found, found.below(1))
    found = mean(trip["HPCC"])
    claim("HPCC_latency_s", "HPCC's p95 round trip is under 20 us", found, found.below(20e-6))
    found = ratio(trip["HPCC"], trip["DCTCP"])
    text = "HPCC more than halves DCTCP's p95 round trip (it falls with longer arrivals, so that more decides nothing)"
    claim("HPCC_over_DCTCP_latency", text, found, found.below(0.5) or None)
    for other in ("DCQCN", "TIMELY"):
        found = ratio(short["DCTCP"], short[other])
        claim(f"DCTCP_over_{other}_p95_short", f"p95 of flows up to 120 KB, DCTCP below {other}", found, found.below(1))
        found = difference(stopped[other], stopped["HPCC"])
        text = f"{other} is paused for longer than HPCC (over all ports' time of arrivals)"
        claim(f"{other}_paused_more_than_HPCC", text, found, found.above(0))
        if stopped[other].any():
            found = difference(stopped[f"{other}+win"], 0.1 * stopped[other])
            text = f"a window takes {other}'s pauses to less than a tenth (with it, less a tenth of that without)"
            claim(f"{other}_paused_with_window", text, found, found.below(0))
    for other in ("DCTCP", "DCQCN"):
        found = ratio(by_seed(study, "HPCC", "mean", LONG), by_seed(study, other, "mean", LONG))
        claim(f"HPCC_over_{other}_long", f"mean of flows above 1 MB, HPCC above {other}", found, found.above(1))


def _latencies(studies: Mapping[str, FabricStudy]) -> dict[str, dict]:
    return {
        traffic: {name: 1e6 * latency_by_seed(study, name, "p95", PACKET) for name in study.schemes}
        for traffic, study in studies.items()
    }


def _title(studies: Mapping[str, FabricStudy]) -> str:
    first = next(iter(studies.values()))
    return f"HPCC Fig. 11: FB_Hadoop on {len(first.topology.hosts)} hosts, {len(first.seeds)} seeds (bands, bars: 95 %)"
