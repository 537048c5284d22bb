"""DCQCN Figures 4 and 9: a victim flow next to an incast, with PFC alone and with DCQCN (sections 2.2, 3.2).

H11 to H14 and VS are under T1. The former send to R under T4, VS to VR. With PFC alone, T4's PAUSEs spread back to
T1's uplinks, which VS shares; senders H31 and H32 under T3 make them longer.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from fluidcc.builders import clos_testbed
from fluidcc.plotting.style import figure as new_figure
from fluidcc.plotting.style import label
from fluidcc.proofs import papers
from fluidcc.proofs.shared import sample
from fluidcc.proofs.shared.runs import GBPS, SWITCH, SWITCH_NOTE, WIDTH, EcmpRun, packet_runs, save, variable
from fluidcc.proofs.verdict.figure import Check, Figure, Result, reproduces
from fluidcc.results.trace import Trace
from fluidcc.schemes.dcqcn import DCQCN
from fluidcc.schemes.none import NoControl

VICTIM = 4  # index of VS -> VR
# Hosts 0 to 4 are under T1, 5 to 9 under T2, 10 to 14 under T3, 15 to 19 under T4: H11 to H14, VS; H31, H32.
FLOWS, ADDED = ((0, 15), (1, 15), (2, 15), (3, 15), (4, 5)), ((10, 15), (11, 15))
COUNTS = (0, 1, 2)  # of senders under T3
MOST_CHANGE = 0.1  # of the victim's median with PFC alone, to count as a change


# Odd numbers of outcomes, so that a median is one of them.
RUNS = {
    "dcqcn-fig4": EcmpRun(NoControl(), 40e-3, 10e-3, 21, (25e-3, 5)),
    "dcqcn-fig9": EcmpRun(DCQCN(), 100e-3, 40e-3, 7, (60e-3, 1)),
}


@reproduces("dcqcn-fig4", papers.DCQCN, "Figure 4: PFC alone hurts a victim flow")
@reproduces("dcqcn-fig9", papers.DCQCN, "Figure 9: with DCQCN the victim flow is not hurt")
def make_fig4(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make one of the figures."""
    run = RUNS[figure.name]
    until, seeds = run.quick if quick else (run.until, run.seeds)
    scenarios = [
        clos_testbed((*FLOWS, *ADDED[:count]), scheme=run.scheme, ecmp_seed=seed, **SWITCH)
        for count in COUNTS
        for seed in range(1, seeds + 1)
    ]
    traces = packet_runs(scenarios, until, window=(run.since, until))
    rates = np.array([trace.summary["goodput_bytes_per_s"][VICTIM] for trace in traces]).reshape(len(COUNTS), seeds)
    beside = [_flows_beside(scenario) for scenario in scenarios[:seeds]]
    values = _measure(rates, traces)
    expected = _hurt() if run.scheme.name == "none" else _spared()
    notes = [
        "VR is taken to be under T2, so that VS crosses a leaf only; ECMP maps H11 to H14 and VS to T1's uplinks, "
        f"the same way for any number of senders under T3; {seeds} outcomes, long-lived flows",
        SWITCH_NOTE,
    ]
    said = [
        f"{seeds} outcomes of ECMP, the same for each number of senders, a run of packets each, {run.since * 1e3:g} to "
        f"{until * 1e3:g} ms" + ("" if run.scheme.name == "none" else f", which draws {sample.MARKS}"),
        *(
            sample.median(f"the victim beside {count} senders", row.tolist(), "Gb/s", GBPS)
            for count, row in zip(COUNTS, rates, strict=True)
        ),
    ]
    if quick:
        notes.append(f"quick: {until * 1e3:g} ms in place of {run.until * 1e3:g} ms, and fewer outcomes of ECMP")
    files = (_draw(rates, beside, f"DCQCN {figure.figure}").write(folder / f"{figure.name}.png"),)
    data = xr.Dataset(
        {"victim_rate": variable(("senders", "outcome"), rates, "bytes/s", "throughput of VS")},
        {
            "senders": variable("senders", np.array(COUNTS, float), "1", "senders under T3"),
            "beside": variable("outcome", np.array(beside, float), "1", "of H11 to H14 on the uplink of VS"),
        },
    )
    return Result(
        figure,
        values,
        expected,
        (*files, save(data, folder / f"{figure.name}.nc")),
        tuple(notes),
        sample="; ".join(said),
    )


def _flows_beside(scenario: Any) -> int:
    """Count the flows of H11 to H14 that share the uplink of VS."""
    uplinks = [flow.path[0] for flow in scenario.flows]
    return uplinks[:VICTIM].count(uplinks[VICTIM])


def _measure(rates: np.ndarray, traces: list[Trace]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    medians = np.median(rates, axis=1)
    for count, found in zip(COUNTS, rates, strict=True):
        for word, percent in (("median", 50), ("min", 0), ("max", 100)):
            values[f"victim_{word}_with_{count}_bytes_per_s"] = float(np.percentile(found, percent))
    return values | {
        "median_with_2_over_with_0": float(medians[2] / medians[0]),
        "falls_with_senders_under_T3": bool(medians[2] < (1 - MOST_CHANGE) * medians[0]),
        "pauses_per_run": float(np.mean([trace.summary["pfc_pauses"] for trace in traces])),
        "drops": float(sum(trace.summary["drops"] for trace in traces)),
    }


def _hurt() -> dict[str, Check]:
    return {
        "victim_median_with_0_bytes_per_s": Check(
            10 * GBPS, GBPS, "section 2.2: only 10 Gb/s, not the 20 Gb/s that the others leave; 10 %"
        ),
        "victim_median_with_2_bytes_per_s": Check(
            6 * GBPS, 2 * GBPS, "a T1 host's equal share of a sixth of R's link, or less where H31 has a port to itself"
        ),
        "falls_with_senders_under_T3": Check(True, 0, "section 2.2: falls further (there to 4.5 Gb/s)"),
        "drops": Check(0.0, 0.0, "PFC keeps the network lossless"),
    }


def _spared() -> dict[str, Check]:
    return {
        "falls_with_senders_under_T3": Check(False, 0, "section 3.2: does not change, so it must not fall"),
        "drops": Check(0.0, 0.0, "PFC keeps the network lossless"),
    }


def _draw(rates: np.ndarray, beside: list[int], title: str) -> Any:
    picture, axes = new_figure(1, 2, size=(WIDTH, 4.6), sharey=True, gridspec_kw={"width_ratios": [1, 1.4]})
    bars, runs = axes[0]
    medians = np.median(rates, axis=1) / GBPS
    bars.bar([str(count) for count in COUNTS], medians, width=0.5, color="C0", alpha=0.7)
    for place, median in enumerate(medians):
        bars.annotate(f"{median:.1f}", (place, median), (0, 3), textcoords="offset points", ha="center")
    bars.set(
        xlabel="senders under T3", ylabel=label("throughput of VS", "Gbps"), title="median over ECMP", ylim=(0, 44)
    )
    for k, count in enumerate(COUNTS):
        places = np.array(beside) + 0.2 * (k - 1)
        # Equal outcomes lie on each other; a little to the side shows how many there are.
        runs.plot(
            places + np.linspace(-0.06, 0.06, len(places)), rates[k] / GBPS, "osD"[k], ms=5, alpha=0.7, label=count
        )
    runs.set(
        xlabel="of H11 to H14 on the uplink of VS", title="each outcome of ECMP", xlim=(-0.5, 4.5), xticks=range(5)
    )
    runs.legend(title="senders under T3", ncols=3, loc="upper right", fontsize="small")
    for axis in (bars, runs):
        axis.grid(alpha=0.3)
    picture.suptitle(title)
    return picture
