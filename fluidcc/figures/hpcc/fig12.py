"""HPCC Figure 12: FB_Hadoop with incasts, under PFC, go-back-N and IRN, DCQCN and HPCC (section 5.3).

"With HPCC, different flow control schemes do not affect the performance. On the other hand, since DCQCN controls the
queue poorly, a better flow control does improve its performance." Without PFC switches drop what would take an egress
queue above what is free of the buffer, alpha = 1 (footnote 6).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fluidcc import papers
from fluidcc.fabrics.study import FabricStudy
from fluidcc.figures.common import save
from fluidcc.figures.hpcc.fabric import HADOOP_EDGES, INCAST, NOTES, T, closing, lossless, scheme, totals
from fluidcc.figures.registry import reproduces
from fluidcc.figures.result import Check, Figure, Result
from fluidcc.figures.slowdowns import Compared, by_seed, data_of, judged, kept_fabric, of_numbers, paused, ratio
from fluidcc.plotting.evaluations import plot_evaluation
from fluidcc.schemes import dcqcn, hpcc

TOPOLOGY, QUICK_TOPOLOGY = "fat-tree:320", "fat-tree:64"
SEEDS, QUICK_SEEDS = 5, 3
UNTIL, QUICK_UNTIL = 1e-3, 0.3e-3  # s: arrivals
QUICK_INCAST, QUICK_BUFFER = "40:500KB:10%", "6MB"  # on 64 hosts, so that something is dropped
TRAFFIC = "30 % + incast"
SIZES = {"short": (0.0, 120e3), "large": (120e3, 10e6)}  # bytes; the large ones with those of the incasts
CONTROL: dict[str, dict[str, Any]] = {
    "PFC": {},
    "GBN": {"pfc": None, "loss_recovery": "gbn", "egress_alpha": 1.0},
    "IRN": {"pfc": None, "loss_recovery": "irn", "egress_alpha": 1.0},
}
ALIKE = 1.05  # two flow controls do not differ if p95 is the same but for so much


@reproduces("hpcc-fig12", papers.HPCC, "Figure 12: PFC, go-back-N and IRN under DCQCN and HPCC, FB_Hadoop with incasts")
def make_fig12(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make the figure."""
    study = kept_fabric(
        figure, folder, _contenders(), QUICK_TOPOLOGY if quick else TOPOLOGY, workload="hadoop", load=0.3,
        incast=QUICK_INCAST if quick else INCAST, until=QUICK_UNTIL if quick else UNTIL, ideal="hpcc-sim",
        seeds=QUICK_SEEDS if quick else SEEDS, **({"buffer": QUICK_BUFFER} if quick else {}),
    )  # fmt: skip
    studies = {TRAFFIC: study}
    values: dict[str, float | bool] = {**totals(studies)}
    notes = [
        *NOTES,
        f"FB_Hadoop at 30 % with incasts, arrivals of {UNTIL * 1e3:g} ms, on the tree of 320 hosts; the paper gives no "
        "timeouts: 320 us, with IRN 100 us if at most 3 packets are under way; go-back-N reports a gap once",
        "the sizes above 120 KB hold the incasts' flows of 500 KB",
    ]
    for name in study.schemes:
        values[f"{name}_drops"] = float(of_numbers(study, name, "drops").sum())
        values[f"{name}_paused_share"] = float(paused(study, name).mean())
        for which, sizes in SIZES.items():
            values[f"{name}_p95_{which}"] = float(by_seed(study, name, "p95", sizes).mean())
    _judge(study, values, notes)
    values["drops_with_pfc"] = values["DCQCN_PFC_drops"] + values["HPCC_PFC_drops"]
    answered = all(
        (of_numbers(study, name, "retransmissions") >= of_numbers(study, name, "drops")).all()
        for name in study.schemes
        if not name.endswith("PFC")
    )
    values["all_that_is_dropped_is_sent_again"] = bool(answered)
    expected = {
        "drops_with_pfc": lossless(),
        "all_that_is_dropped_is_sent_again": Check(True, 0, "flows end: as many packets again as were lost, or more"),
    }
    text = f"quick: {QUICK_TOPOLOGY.split(':')[1]} hosts, {QUICK_SEEDS} seeds, 0.3 ms, incasts of {QUICK_INCAST}, 6 MB"
    notes += closing(studies, text if quick else "")
    dropped = {TRAFFIC: {name: of_numbers(study, name, "drops") for name in study.schemes}}
    title = (
        f"HPCC Fig. 12: FB_Hadoop on {len(study.topology.hosts)} hosts, {len(study.seeds)} seeds (bands, bars: 95 %)"
    )
    picture = plot_evaluation(studies, HADOOP_EDGES, title, bars=(dropped, "packets dropped in a run", ""))
    files = (picture.write(folder / f"{figure.name}.png"),
             save(data_of(studies, HADOOP_EDGES), folder / f"{figure.name}.nc"))  # fmt: skip
    return Result(figure, values, expected, files, tuple(notes))


def _contenders() -> dict[str, dict[str, Any]]:
    return {
        f"{name}_{control}": scheme(preset, network, **parameters)
        for name, preset, parameters in (
            ("DCQCN", dcqcn.PRESETS["hpcc-eval"], {}),
            ("HPCC", hpcc.PRESETS["hpcc-eval"], {"base_rtt": T}),
        )
        for control, network in CONTROL.items()
    }


def _judge(study: FabricStudy, values: dict[str, float | bool], notes: list[str]) -> None:
    """Section 5.3's claims, each by its interval."""
    for which, sizes in SIZES.items():
        found = {name: by_seed(study, name, "p95", sizes) for name in study.schemes}

        def claim(one: str, other: str, text: str, compared: Compared, answer: bool | None, which: str = which) -> None:
            words = f"p95 of {which} flows, {one.replace('_', ' with ')} over {other.replace('_', ' with ')}: {text}"
            judged(values, notes, f"{one}_over_{other}_p95_{which}", words, compared, answer)

        for control in ("GBN", "IRN"):
            one, other = f"HPCC_{control}", "HPCC_PFC"
            compared = ratio(found[one], found[other])
            claim(one, other, f"1, to {ALIKE - 1:.0%}", compared, compared.within(ALIKE))
        for one, other, text in (
            ("DCQCN_IRN", "DCQCN_PFC", "improves DCQCN"),
            ("DCQCN_IRN", "DCQCN_GBN", "improves DCQCN"),
            ("HPCC_PFC", "DCQCN_IRN", "below 1, DCQCN does not match HPCC even with IRN"),
        ):
            compared = ratio(found[one], found[other])
            claim(one, other, text, compared, compared.below(1))
