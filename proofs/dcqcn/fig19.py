"""DCQCN Figure 19: queue of the congested port in a 20:1 incast, DCQCN against DCTCP (section 6.3).

"The queue length with DCQCN is significantly shorter than that with DCTCP. For example, the 95th-percentile queue
length is 76.6KB with DCQCN and 162.9KB with DCTCP. These numbers align well with DCQCN fluid model and DCTCP model."
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from fluidcc.builders import incast
from fluidcc.engines.run import simulate
from fluidcc.plotting.colours import scheme_colours
from fluidcc.plotting.style import figure as new_figure
from fluidcc.plotting.style import label
from fluidcc.proofs import papers
from fluidcc.proofs.shared import sample
from fluidcc.proofs.shared.runs import LINE_RATE, SWITCH, SWITCH_NOTE, WIDTH, packet_runs, save, variable
from fluidcc.proofs.shared.slowdowns import difference, judged
from fluidcc.proofs.verdict.figure import Check, Figure, Result, reproduces
from fluidcc.results.trace import Trace
from fluidcc.scenario.model import RED, Scenario
from fluidcc.schemes.dcqcn import PRESETS
from fluidcc.schemes.dctcp import DCTCP
from fluidcc.workloads.fabrics.study import interval

SENDERS = 20
THRESHOLD = 160e3  # of DCTCP, section 6.3
SCHEMES = {"dcqcn": PRESETS["paper"][:2], "dctcp": (DCTCP(), RED(THRESHOLD, THRESHOLD, 1.0))}
NAMES = {"dcqcn": "DCQCN", "dctcp": "DCTCP"}
PRINTED = {"dcqcn": 76.6e3, "dctcp": 162.9e3}  # 95th percentiles [bytes]
LATEST_START = 1e-3  # s; flows start at random, so that runs differ without random marks too
SINCE, SAMPLED = 50e-3, 10e-6  # s; the burst of the starts at line rate has drained
FULL, QUICK = (0.3, 8), (0.1, 3)  # end [s], runs
STATISTICS = {"mean": "mean", "p50": "median", "p95": "95th percentile"}
SHARES = np.linspace(0, 1, 501)


@reproduces("dcqcn-fig19", papers.DCQCN, "Figure 19: queue length of 20:1 incast, DCQCN against DCTCP")
def make_fig19(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make the figure."""
    until, runs = QUICK if quick else FULL
    options: dict[str, Any] = {"window": (SINCE, until), "sample_interval": SAMPLED}
    packets = {name: packet_runs([_scenario(name, run) for run in range(runs)], until, **options) for name in SCHEMES}
    fluid = {name: simulate(_scenario(name, 0), until, estimate_error=False, **options) for name in SCHEMES}
    data = _data(packets, fluid)
    values = _measure(data)
    notes = [
        f"{runs} runs, whose flows start within {LATEST_START * 1e3:g} ms; queues over {SINCE * 1e3:g} to "
        f"{until * 1e3:g} ms, in packets of 1000 B; DCTCP's first window is line rate times base RTT",
        "model's tolerance of DCTCP: its queue goes up to K and a packet of each sender (SIGCOMM 2010, 3.3)",
        SWITCH_NOTE,
    ]
    _judge(data, values, notes)
    if quick:
        notes.append(f"quick: {QUICK[0] * 1e3:g} ms and {runs} runs in place of {FULL[0] * 1e3:g} ms and {FULL[1]}")
    files = (_draw(data, values).write(folder / f"{figure.name}.png"), save(data, folder / f"{figure.name}.nc"))
    return Result(
        figure,
        values,
        _expected(),
        files,
        tuple(notes),
        sample=f"{runs} draws of all flows' starts for each scheme, and of {sample.MARKS} with DCQCN, "
        f"{SINCE * 1e3:g} to {until * 1e3:g} ms; intervals are Student's, 95 %; "
        f"{sample.fluid(until, len(SCHEMES), since=SINCE)}",
    )


def _scenario(name: str, run: int) -> Scenario:
    scheme, marking = SCHEMES[name]
    starts = np.random.default_rng(run).uniform(0, LATEST_START, SENDERS).tolist()
    return incast(SENDERS, rate=LINE_RATE, scheme=scheme, marking=marking, start=starts, **SWITCH)


def _data(packets: dict[str, list[Trace]], fluid: dict[str, Trace]) -> xr.Dataset:
    """Quantiles of samples of the queue from `SINCE` on, and statistics over time, which the engine takes itself."""
    dims = ("scheme", "run")
    sampled = [[_quantiles(trace) for trace in packets[name]] for name in SCHEMES]
    exact = [[[t.summary["queue_bytes"][s] for s in STATISTICS] for t in packets[name]] for name in SCHEMES]
    shares = [[trace.summary["utilisation"] for trace in packets[name]] for name in SCHEMES]
    model = [[fluid[name].summary["queue_bytes"][s] for s in STATISTICS] for name in SCHEMES]
    return xr.Dataset(
        {
            "queue": variable((*dims, "share"), np.array(sampled), "bytes", "queue, packets"),
            "queue_fluid": variable(
                ("scheme", "share"), np.array([_quantiles(fluid[n]) for n in SCHEMES]), "bytes", "queue, fluid model"
            ),
            "statistics": variable((*dims, "statistic"), np.array(exact), "bytes", "of the queue over time"),
            "statistics_fluid": variable(("scheme", "statistic"), np.array(model), "bytes", "of the fluid's queue"),
            "utilisation": variable(dims, np.array(shares), "1", "share of the port's rate that is sent"),
        },
        {
            "scheme": list(SCHEMES),
            "statistic": list(STATISTICS),
            "share": variable("share", SHARES, "1", "share of time"),
        },
    )


def _quantiles(trace: Trace) -> np.ndarray:
    queue = trace["queue"].isel(link=0)
    return np.quantile(queue.values[queue["time"].values >= SINCE], SHARES)


def _measure(data: xr.Dataset) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name in SCHEMES:
        found, model = data["statistics"].sel(scheme=name), data["statistics_fluid"].sel(scheme=name)
        for each in STATISTICS:
            mean, low, high = interval(found.sel(statistic=each).values)
            key = f"{name}_{each}"
            values |= {f"{key}_bytes": mean, f"{key}_low_bytes": low, f"{key}_high_bytes": high}
            values[f"{key}_fluid_bytes"] = float(model.sel(statistic=each))
        values[f"{name}_utilisation"] = float(data["utilisation"].sel(scheme=name).mean())
    return values


def _judge(data: xr.Dataset, values: dict[str, Any], notes: list[str]) -> None:
    """Run by run: the same starts for both."""
    queues = data["statistics"] / 1e3
    for each, text in STATISTICS.items():
        less = difference(*(queues.sel(scheme=name, statistic=each).values for name in SCHEMES))
        judged(values, notes, f"dcqcn_{each}_shorter", f"{text} of the queue: shorter with DCQCN, KB more", less,
               less.below(0))  # fmt: skip


def _expected() -> dict[str, Check]:
    packets = SENDERS * 1000.0
    return {
        "dctcp_p95_bytes": Check(PRINTED["dctcp"], packets, "section 6.3, to a packet of each sender"),
        "dctcp_utilisation": Check(1.0, 0.001, "DCTCP's queue of K = 160 KB never runs empty"),
        "dcqcn_mean_shorter_holds": Check(True, 0, "section 6.3: significantly shorter; of the mean"),
    }


def _draw(data: xr.Dataset, values: dict[str, Any]) -> Any:
    picture, axes = new_figure(1, 2, size=(WIDTH, 4.6))
    cdf, bars = axes[0]
    for k, (name, shade) in enumerate(scheme_colours(SCHEMES).items()):
        runs = data["queue"].sel(scheme=name).values / 1e3
        cdf.fill_betweenx(SHARES, runs.min(axis=0), runs.max(axis=0), color=shade, alpha=0.3, lw=0)
        cdf.plot(runs.mean(axis=0), SHARES, color=shade, lw=1.5, label=f"{NAMES[name]}, packets")
        model = data["queue_fluid"].sel(scheme=name).values / 1e3
        cdf.plot(model, SHARES, color=shade, lw=1.1, ls="--", label=f"{NAMES[name]}, fluid model")
        cdf.plot(PRINTED[name] / 1e3, 0.95, "*", color=shade, ms=12, mec="black", label=f"{NAMES[name]}, printed")
        place = np.arange(len(STATISTICS)) + (k - 0.5) * 0.38
        found = [[values[f"{name}_{each}{end}_bytes"] / 1e3 for each in STATISTICS] for end in ("", "_low", "_high")]
        mean, low, high = np.array(found)
        bars.bar(place, mean, 0.36, yerr=[mean - low, high - mean], color=shade, capsize=4, label=NAMES[name])
    bars.set_xticks(np.arange(len(STATISTICS)), list(STATISTICS.values()))
    bars.set_title("means over runs, intervals of 95 %", fontsize="medium")
    bars.set_ylabel(label("queue", "KB"))
    cdf.set(xlabel=label("queue", "KB"), ylabel="share of time below", xlim=(0, None), ylim=(0, 1.02))
    for axis in (cdf, bars):
        axis.grid(alpha=0.3)
        axis.legend(fontsize="small")
    picture.suptitle(f"DCQCN Fig. 19: queue of the congested port, {SENDERS}:1 incast at 40 Gbps")
    return picture
