"""HPCC Figure 12: FB_Hadoop under PFC, go-back-N and IRN, with DCQCN and HPCC (section 5.3).

"With HPCC, different flow control schemes do not affect the performance. On the other hand, since DCQCN controls the
queue poorly, a better flow control does improve its performance." Without PFC switches drop what would take an egress
queue above what is free of the buffer, alpha = 1 (footnote 6).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fluidcc.plotting.fabrics import plot_evaluation
from fluidcc.proofs import papers
from fluidcc.proofs.hpcc.fabric import HADOOP_EDGES, INCAST, NOTES, T, closing, lossless, scheme, totals
from fluidcc.proofs.shared.runs import save
from fluidcc.proofs.shared.slowdowns import by_seed, data_of, judged, kept_fabric, of_numbers, paused, ratio, sample_of
from fluidcc.proofs.verdict.figure import Check, Figure, Result, reproduces
from fluidcc.schemes import dcqcn, hpcc
from fluidcc.workloads.fabrics.study import FabricStudy

TOPOLOGY, QUICK_TOPOLOGY = "fat-tree:320", "fat-tree:64"
SEEDS, QUICK_SEEDS = 5, 3
UNTIL, QUICK_UNTIL = 1e-3, 0.3e-3  # s: arrivals
TRAFFIC = {"30 % + incast": (0.3, INCAST), "50 %": (0.5, None)}
KEYS = {"30 % + incast": "incast", "50 %": "half"}
QUICK_INCAST, QUICK_BUFFER = "40:500KB:10%", "6MB"  # on 64 hosts, so that something is dropped
SIZES = {"short": (0.0, 120e3), "large": (120e3, 10e6)}  # bytes; the large ones with those of the incasts
CONTROL: dict[str, dict[str, Any]] = {
    "PFC": {},
    "GBN": {"pfc": None, "loss_recovery": "gbn", "egress_alpha": 1.0},
    "IRN": {"pfc": None, "loss_recovery": "irn", "egress_alpha": 1.0},
}
ALIKE = 1.05  # two flow controls do not differ if p95 is the same but for so much


@reproduces("hpcc-fig12", papers.HPCC, "Figure 12: FB_Hadoop on 320 hosts: PFC, go-back-N and IRN under DCQCN and HPCC")
def make_fig12(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make the figure."""
    smaller = {"buffer": QUICK_BUFFER} if quick else {}
    studies = {
        traffic: kept_fabric(
            figure, folder, _contenders(), QUICK_TOPOLOGY if quick else TOPOLOGY, workload="hadoop", load=load,
            incast=QUICK_INCAST if quick and incast else incast, until=QUICK_UNTIL if quick else UNTIL,
            seeds=QUICK_SEEDS if quick else SEEDS, ideal="hpcc-sim", **smaller,
        )
        for traffic, (load, incast) in TRAFFIC.items()
    }  # fmt: skip
    values: dict[str, float | bool] = {**totals(studies)}
    notes = [
        *NOTES,
        f"FB_Hadoop on the tree of 320 hosts, arrivals of {UNTIL * 1e3:g} ms; the paper gives no timeouts: 320 us, "
        "with IRN 100 us if at most 3 packets are under way; go-back-N reports a gap once",
        "with incasts, the sizes above 120 KB hold the incasts' flows of 500 KB",
    ]
    for traffic, study in studies.items():
        _judge(study, traffic, values, notes)
    lossy, kept = (
        [(study, name) for study in studies.values() for name in study.schemes if name.endswith("_PFC") is pfc]
        for pfc in (False, True)
    )
    values["drops_with_pfc"] = float(sum(of_numbers(study, name, "drops").sum() for study, name in kept))
    values["all_that_is_dropped_is_sent_again"] = all(
        bool((of_numbers(study, name, "retransmissions") >= of_numbers(study, name, "drops")).all())
        for study, name in lossy
    )
    expected = {
        "drops_with_pfc": lossless(),
        "all_that_is_dropped_is_sent_again": Check(True, 0, "flows end: as many packets again as were lost, or more"),
    }
    hosts, seeds = len(studies["50 %"].topology.hosts), len(studies["50 %"].seeds)
    text = f"quick: {hosts} hosts, {seeds} seeds, 0.3 ms, incasts of {QUICK_INCAST}, switches of {QUICK_BUFFER}"
    notes += closing(studies, text if quick else "")
    dropped = {
        traffic: {name: of_numbers(study, name, "drops") for name in study.schemes}
        for traffic, study in studies.items()
    }
    title = f"HPCC Fig. 12: FB_Hadoop on {hosts} hosts, {seeds} seeds (bands, bars: 95 %)"
    picture = plot_evaluation(studies, HADOOP_EDGES, title, bars=(dropped, "packets dropped in a run", ""))
    files = (picture.write(folder / f"{figure.name}.png"),
             save(data_of(studies, HADOOP_EDGES), folder / f"{figure.name}.nc"))  # fmt: skip
    return Result(figure, values, expected, files, tuple(notes), sample=sample_of(studies))


def _contenders() -> dict[str, dict[str, Any]]:
    return {
        f"{name}_{control}": scheme(preset, network, **parameters)
        for name, preset, parameters in (
            ("DCQCN", dcqcn.PRESETS["hpcc-eval"], {}),
            ("HPCC", hpcc.PRESETS["hpcc-eval"], {"base_rtt": T}),
        )
        for control, network in CONTROL.items()
    }


def _judge(study: FabricStudy, traffic: str, values: dict[str, float | bool], notes: list[str]) -> None:
    """Section 5.3's claims, each by its interval."""
    key = KEYS[traffic]
    for name in study.schemes:
        values[f"{key}_{name}_drops"] = float(of_numbers(study, name, "drops").sum())
        values[f"{key}_{name}_paused_over_arrivals"] = float(paused(study, name).mean())
    for which, sizes in SIZES.items():
        found = {name: by_seed(study, name, "p95", sizes) for name in study.schemes}
        values |= {f"{key}_{name}_p95_{which}": float(each.mean()) for name, each in found.items()}
        for one, other, text, bound in (
            ("HPCC_GBN", "HPCC_PFC", f"1, to {ALIKE - 1:.0%}", None),
            ("HPCC_IRN", "HPCC_PFC", f"1, to {ALIKE - 1:.0%}", None),
            ("DCQCN_IRN", "DCQCN_PFC", "below 1, improves DCQCN", 1.0),
            ("DCQCN_IRN", "DCQCN_GBN", "below 1, improves DCQCN", 1.0),
            ("HPCC_PFC", "DCQCN_IRN", "below 1, DCQCN does not match HPCC even with IRN", 1.0),
        ):
            compared = ratio(found[one], found[other])
            answer = compared.within(ALIKE) if bound is None else compared.below(bound)
            words = f"{one.replace('_', ' with ')} over {other.replace('_', ' with ')}: {text}"
            words = f"{traffic}, p95 of {which} flows, {words}"
            judged(values, notes, f"{key}_{one}_over_{other}_p95_{which}", words, compared, answer)
