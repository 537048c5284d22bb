"""DCQCN Figures 3 and 8: four senders to one receiver on the testbed, with PFC alone and with DCQCN (2.2, 3.2).

H4 is under the receiver's ToR T4 and has its port P2 there to itself. H1 to H3 share P3 and P4, T4's ports to its
leaves, as ECMP has it. PFC pauses ports: each that has something to send gets the same share of R's link, however
many flows come by it.
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
from fluidcc.scenario.model import Scenario
from fluidcc.schemes.dcqcn import DCQCN
from fluidcc.schemes.none import NoControl

SENDERS = ("H1", "H2", "H3", "H4")
FLOWS = ((0, 16), (5, 16), (10, 16), (15, 16))  # H1 to H4 are the first hosts of T1 to T4, R is T4's second
TRANSFER = 4e6  # bytes; 2.2: "measured over 1000 4MB data transfers"
SAMPLED = 50e-6  # s
FAIR = 10 * GBPS
SHARE_OF_3, SHARE_OF_2 = 40 / 3 * GBPS, 40 / 2 * GBPS  # of a port of T4, when three or two have something to send


RUNS = {
    "dcqcn-fig3": EcmpRun(NoControl(), 100e-3, 20e-3, 20, (60e-3, 8)),
    "dcqcn-fig8": EcmpRun(DCQCN(), 200e-3, 50e-3, 16, (120e-3, 4)),
}


@reproduces("dcqcn-fig3", papers.DCQCN, "Figure 3: PFC alone is unfair to flows that share a port")
@reproduces("dcqcn-fig8", papers.DCQCN, "Figure 8: with DCQCN all senders get the same share")
def make_fig3(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make one of the figures."""
    run = RUNS[figure.name]
    until, seeds = run.quick if quick else (run.until, run.seeds)
    scenarios = [clos_testbed(FLOWS, scheme=run.scheme, ecmp_seed=seed, **SWITCH) for seed in range(seeds)]
    traces = packet_runs(scenarios, until, window=(run.since, until), sample_interval=SAMPLED)
    transfers = [[transfer_rates(trace, k, run.since) for k in range(len(SENDERS))] for trace in traces]
    alone = np.array([_one_port_for_all(scenario) for scenario in scenarios])
    values = _measure(transfers, traces, alone)
    expected = _unfair() if run.scheme.name == "none" else _fair()
    notes = [
        f"H1 to H4 are taken to be one under each ToR, R under T4; {seeds} outcomes of ECMP, long-lived flows, each "
        f"{TRANSFER / 1e6:g} MB of them after {run.since * 1e3:g} ms a transfer",
        SWITCH_NOTE,
    ]
    means = np.array([trace.summary["goodput_bytes_per_s"] for trace in traces])
    said = [
        f"{seeds} outcomes of ECMP, a run of packets each, {run.since * 1e3:g} to {until * 1e3:g} ms"
        + ("" if run.scheme.name == "none" else f", which draws {sample.MARKS}"),
        *(sample.mean(name, means[:, k].tolist(), "Gb/s", GBPS) for k, name in enumerate(SENDERS)),
    ]
    if quick:
        notes.append(f"quick: {until * 1e3:g} ms in place of {run.until * 1e3:g} ms, and fewer outcomes of ECMP")
    title = f"DCQCN {figure.figure}"
    files = (_draw(transfers, title).write(folder / f"{figure.name}.png"), folder / f"{figure.name}.nc")
    save(_data(transfers, traces, alone), files[1])
    return Result(figure, values, expected, files, tuple(notes), sample="; ".join(said))


def transfer_rates(trace: Trace, flow: int, since: float) -> np.ndarray:
    """Throughput of each transfer of a long-lived flow that lies after a time, back to back [bytes/s]."""
    time, delivered = trace["time"].values, trace["delivered"].values[:, flow]
    first = float(np.interp(since, time, delivered))
    ends = np.arange(first, delivered[-1], TRANSFER)
    # Where nothing arrives for a while the inverse is a step; the least slope makes it a function.
    steps = np.interp(ends, delivered + 1e-6 * np.arange(len(delivered)), time)
    return TRANSFER / np.diff(steps)


def _one_port_for_all(scenario: Scenario) -> bool:
    """Check whether ECMP leads H1, H2 and H3 to T4 by the same port."""
    return len({flow.path[-2] for flow in scenario.flows[:3]}) == 1


def _measure(transfers: list[list[np.ndarray]], traces: list[Trace], alone: np.ndarray) -> dict[str, Any]:
    """Least, median and largest over the outcomes of ECMP, and over all transfers."""
    values: dict[str, Any] = {}
    means = np.array([trace.summary["goodput_bytes_per_s"] for trace in traces])
    for k, name in enumerate(SENDERS):
        rates = np.concatenate([run[k] for run in transfers])
        for what, found in (("", means[:, k]), ("transfer_", rates)):
            for word, percent in (("min", 0), ("median", 50), ("max", 100)):
                values[f"{name}_{what}{word}_bytes_per_s"] = float(np.percentile(found, percent))
        values[f"{name}_transfer_std_bytes_per_s"] = float(rates.std())
    others = means[:, :3].max(axis=1)
    values |= {
        "transfers": float(sum(len(rates) for run in transfers for rates in run)),
        "outcomes_with_one_port_for_H1_to_H3": float(alone.sum()),
        "H4_over_best_of_H1_to_H3_least": float((means[:, 3] / others).min()),
        "H4_min_above_max_of_H1_to_H3_in_all": values["H4_min_bytes_per_s"]
        > max(values[f"{name}_max_bytes_per_s"] for name in SENDERS[:3]),
        "H4_min_above_max_of_H1_to_H3_with_one_port": bool(
            alone.any() and means[alone, 3].min() > means[alone, :3].max()
        ),
        "pauses_per_run": float(np.mean([trace.summary["pfc_pauses"] for trace in traces])),
        "drops": float(sum(trace.summary["drops"] for trace in traces)),
    }
    return values


def _unfair() -> dict[str, Check]:
    port = "each of T4's ports with a backlog gets the same share of R's link; 5 %"
    best = max(SHARE_OF_3, SHARE_OF_2 / 2)
    return {
        "H4_max_bytes_per_s": Check(SHARE_OF_2, 0.05 * SHARE_OF_2, f"section 2.2: as much as 20 Gb/s; {port}"),
        "H4_min_bytes_per_s": Check(SHARE_OF_3, 0.05 * SHARE_OF_3, f"H1 to H3 split over P3 and P4; {port}"),
        **{
            f"{name}_max_bytes_per_s": Check(best, 0.05 * best, f"alone on P3 or P4 beside P2 and the other; {port}")
            for name in SENDERS[:3]
        },
        "H4_min_above_max_of_H1_to_H3_with_one_port": Check(True, 0, "section 2.2, Fig. 3(b), for such outcomes"),
        "drops": Check(0.0, 0.0, "PFC keeps the network lossless"),
    }


def _fair() -> dict[str, Check]:
    within = "narrower than what PFC makes of it, 6.67 to 13.33 Gb/s"
    checks = {}
    for name in SENDERS:
        checks[f"{name}_median_bytes_per_s"] = Check(FAIR, 0.1 * FAIR, "section 3.2: equal shares; 10 %")
        for word in ("min", "max"):
            why = f"section 3.2: little variance; {within}"
            checks[f"{name}_{word}_bytes_per_s"] = Check(FAIR, SHARE_OF_3 - FAIR, why)
    return checks | {"drops": Check(0.0, 0.0, "PFC keeps the network lossless")}


def _data(transfers: list[list[np.ndarray]], traces: list[Trace], alone: np.ndarray) -> xr.Dataset:
    """Return every transfer, and each run's means."""
    means = np.array([trace.summary["goodput_bytes_per_s"] for trace in traces])
    rows = [(run, k, rate) for run, flows in enumerate(transfers) for k, rates in enumerate(flows) for rate in rates]
    outcome, sender, rate = (np.array(column) for column in zip(*rows, strict=True))
    return xr.Dataset(
        {
            "transfer_rate": variable("transfer", rate, "bytes/s", "throughput of a transfer"),
            "mean_rate": variable(("outcome", "sender"), means, "bytes/s", "mean throughput"),
        },
        {
            "sender": list(SENDERS),
            "one_port": variable("outcome", alone.astype(float), "1", "H1 to H3 share a port of T4"),
            "transfer_outcome": variable("transfer", outcome, "1", "outcome of ECMP of a transfer"),
            "transfer_sender": variable("transfer", sender, "1", "sender of a transfer, from 0"),
        },
    )


def _draw(transfers: list[list[np.ndarray]], title: str) -> Any:
    picture, axes = new_figure(1, 2, size=(WIDTH, 4.6), gridspec_kw={"width_ratios": [1, 1.4]})
    bars, runs = axes[0]
    for k, name in enumerate(SENDERS):
        rates = np.concatenate([run[k] for run in transfers]) / GBPS
        low, middle, high = rates.min(), np.median(rates), rates.max()
        bars.bar(name, middle, width=0.55, color=f"C{k}", alpha=0.6)
        bars.errorbar(name, middle, [[middle - low], [high - middle]], color="black", capsize=6, lw=1.2)
        place = np.arange(len(transfers))
        runs.plot(
            place + 0.12 * (k - 1.5),
            [run[k].mean() / GBPS for run in transfers],
            "osD^"[k],
            ms=5,
            label=name,
            alpha=0.8,
        )
    bars.set(ylabel=label("throughput of 4 MB transfers", "Gbps"), title="median, and least to largest")
    runs.set(xlabel="outcome of ECMP", ylabel=label("mean throughput", "Gbps"), title="each outcome")
    runs.xaxis.get_major_locator().set_params(integer=True)
    runs.legend(ncols=4, loc="upper center", fontsize="small")
    for axis in (bars, runs):
        axis.axhline(10, color="0.4", lw=0.8, ls="--")
        axis.set_ylim(0, 25)
        axis.grid(alpha=0.3)
    picture.suptitle(title)
    return picture
