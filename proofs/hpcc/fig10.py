"""HPCC Figure 10: Web Search on the testbed, HPCC and DCQCN (section 5.2): slowdowns and queues at 30 and 50 %.

What the load is of is not said. A rack's 16 NICs of 25 Gb/s share a link of 100 Gb/s to the Agg: if hosts send to
random others, that link carries 3.05 times the NICs' load, more than it can at 50 %. Both readings are run: load of the
racks' links, and of the NICs, as in the simulations.

"HPCC and DCQCN achieve similar FCT slowdowns in the median, but at 95th and 99th percentile, HPCC achieves a much
better FCT slowdown especially for short flows."
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fluidcc.plotting.fabrics import plot_evaluation
from fluidcc.proofs import papers
from fluidcc.proofs.hpcc.fabric import NOTES, WEB_SEARCH_EDGES, closing, lossless, scheme, share_up_to, totals
from fluidcc.proofs.hpcc.testbed import T
from fluidcc.proofs.shared.runs import save
from fluidcc.proofs.shared.slowdowns import (
    Compared,
    by_seed,
    data_of,
    judged,
    kept_fabric,
    mean,
    of_numbers,
    one_more,
    ratio,
    sample_of,
)
from fluidcc.proofs.verdict.figure import Check, Figure, Result, reproduces
from fluidcc.schemes import dcqcn, hpcc
from fluidcc.workloads.fabrics.study import FabricStudy

RACKS, NICS, LINE, UPLINK = 4, 16, 25.0, 100.0  # of the testbed; Gb/s
# Load of a rack's link, over that of its NICs, if hosts send to random others.
UP_OVER_NICS = NICS * LINE / UPLINK * (RACKS - 1) * NICS / (RACKS * NICS - 1)
# By traffic: load of the NICs, arrivals [s] full and quick, and the printed number that it is held against.
TRAFFIC = {
    "racks' links at 30 %": (0.3 / UP_OVER_NICS, 100e-3, 15e-3, "30"),
    "racks' links at 50 %": (0.5 / UP_OVER_NICS, 100e-3, 10e-3, "50"),
    "NICs at 30 %": (0.3, 40e-3, 2e-3, "30"),
    "NICs at 50 %": (0.5, 40e-3, 2e-3, "50"),
}
PRINTED = {"30": (2.38, 11.2), "50": (2.70, 53.9)}  # p99 slowdown of flows up to 3 KB, HPCC's and DCQCN's
SEEDS, QUICK_SEEDS = 5, 3
SHORT = (0.0, 3e3)  # bytes: "flows shorter than 3KB"
EDGES = (0, 3e3, *WEB_SEARCH_EDGES[1:])
SIMILAR = 1.25  # medians are similar within so much
PACKET = 1042.0  # bytes, with telemetry


@reproduces("hpcc-fig10", papers.HPCC, "Figure 10: Web Search on the testbed: slowdowns and queues of HPCC and DCQCN")
def make_fig10(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make the figure."""
    contenders = {"DCQCN": scheme(dcqcn.PRESETS["hpcc-eval"]), "HPCC": scheme(hpcc.PRESETS["hpcc-eval"], base_rtt=T)}
    studies = {
        name: kept_fabric(
            figure, folder, contenders, "testbed", workload="web-search", load=load, ideal="hpcc-sim",
            until=short if quick else until, seeds=QUICK_SEEDS if quick else SEEDS,
        )
        for name, (load, until, short, _) in TRAFFIC.items()
    }  # fmt: skip
    share, error = share_up_to(studies, 10e3)
    values: dict[str, float | bool] = {**totals(studies), "share_up_to_10KB": share}
    notes = [
        *NOTES,
        "arrivals of 100 and 40 ms between 64 NICs, two to a server; T = 9 us; DCQCN: vendor's parameters, Kmin 100 KB "
        "and Kmax 400 KB at 25 Gbps; queues are of all switches' ports, over time: the paper does not say which",
        f"the paper does not say what its load is of: that of the racks' links, or of the NICs, where the former have "
        f"{UP_OVER_NICS:.2f} times as much (152 % at 50 %, so that queues grow as long as flows arrive)",
    ]
    for traffic, study in studies.items():
        _judge(study, traffic, values, notes)
    expected = {
        "drops": lossless(),
        "share_up_to_10KB": Check(0.15, error, "the table of Web Search; four standard errors"),
    }
    quick_text = f"quick: {QUICK_SEEDS} seeds, arrivals of 15, 10 and 2 ms"
    notes += closing(studies, quick_text if quick else "")
    seeds = len(next(iter(studies.values())).seeds)
    title = f"HPCC Fig. 10: Web Search on the testbed, {seeds} seeds (bands: 95 %)"
    picture = plot_evaluation(studies, EDGES, title, percentiles=("p50", "p95", "p99"), paused=False)
    files = (picture.write(folder / f"{figure.name}.png"),
             save(data_of(studies, EDGES), folder / f"{figure.name}.nc"))  # fmt: skip
    return Result(figure, values, expected, files, tuple(notes), sample=sample_of(studies))


def _judge(study: FabricStudy, traffic: str, values: dict[str, float | bool], notes: list[str]) -> None:
    """Section 5.2's claims, each by its interval."""
    at = ("racks_" if traffic.startswith("racks") else "nics_") + TRAFFIC[traffic][3]
    short = {name: {p: by_seed(study, name, p, SHORT) for p in ("p50", "p95", "p99")} for name in study.schemes}
    queues = {
        name: {q: of_numbers(study, name, "queue_bytes", q) for q in ("p50", "p95", "p99")} for name in study.schemes
    }
    for name in study.schemes:
        for p in ("p50", "p95", "p99"):
            values[f"{name}_{p}_short_{at}"] = float(short[name][p].mean())
            values[f"{name}_queue_{p}_bytes_{at}"] = float(queues[name][p].mean())

    def claim(name: str, text: str, found: Compared, answer: bool | None) -> None:
        judged(values, notes, f"{name}_{at}", f"{traffic}: {text}", found, answer)

    found = ratio(by_seed(study, "HPCC", "p50"), by_seed(study, "DCQCN", "p50"))
    claim("median_ratio", f"medians of all flows, HPCC's over DCQCN's, are similar (within a factor of {SIMILAR:g})",
          found, found.within(SIMILAR))  # fmt: skip
    for p in ("p95", "p99"):
        found = ratio(short["HPCC"][p], short["DCQCN"][p])
        claim(f"{p}_short_ratio", f"{p} of flows up to 3 KB, HPCC's over DCQCN's, is below 1", found, found.below(1))
    for name, printed in zip(("HPCC", "DCQCN"), PRINTED[TRAFFIC[traffic][3]], strict=True):
        found = mean(short[name]["p99"])
        one = one_more(found, logarithmic=False)
        answer = True if one.low <= printed <= one.high else False if np.isfinite(one.low) else None
        claim(f"{name}_p99_short_as_printed", f"{name}'s p99 of flows up to 3 KB, printed as {printed:g}, is in the "
              "interval of one more run", one, answer)  # fmt: skip
    for name in study.schemes:
        found = mean(queues[name]["p50"])
        claim(f"{name}_median_queue_bytes", f"{name}'s median queue is empty (below a packet)", found,
              found.below(PACKET))  # fmt: skip
    found = ratio(queues["HPCC"]["p99"], queues["DCQCN"]["p99"])
    claim("queue_p99_ratio", "p99 of queues, HPCC's over DCQCN's, is below 1", found, found.below(1))
    found = mean(of_numbers(study, "HPCC", "pfc_pauses"))
    claim("HPCC_pauses", "HPCC never reaches the PFC threshold (PAUSEs in a run, below 1)", found, found.below(1))
