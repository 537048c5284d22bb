"""ACC Figure 10: ten long-lived flows to one receiver at 100 Gbps (section 6.3).

The bottleneck's queue, how long each flow first halts, the link's utilisation, and the flows' mean rates.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from fluidcc.builders import incast
from fluidcc.plotting.style import figure as new_figure
from fluidcc.plotting.style import label
from fluidcc.proofs import papers
from fluidcc.proofs.acc.common import COLOURS, COMPARED, CONTENDERS, LINE, NETWORK, NOTES
from fluidcc.proofs.hpcc.common import aligned, drain_time, slope
from fluidcc.proofs.shared import sample
from fluidcc.proofs.shared.runs import GBPS, WIDTH, packet_runs, save, variable
from fluidcc.proofs.verdict.figure import Check, Figure, Result, reproduces
from fluidcc.results.metrics import jain
from fluidcc.results.trace import Trace

FLOWS = 10
UNTIL, QUICK_UNTIL, SAMPLED = 40e-3, 15e-3, 5e-6  # s
SINCE = 5e-3  # s: all have left their line-rate starts
EVERY = 20  # samples, 100 us: over which utilisation is taken
DRAWN = 2.0  # ms of the queue
FIRST_HALT = 150e-6  # s: every flow's first halt has begun
STEADY = 0.02  # standard deviation of utilisation over 100 us, up to which it counts as steady


@reproduces("acc-fig10", papers.ACC, "Figure 10: ten flows: queue, halts, utilisation, rates")
def make_fig10(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make the figure."""
    until = QUICK_UNTIL if quick else UNTIL
    contenders = [CONTENDERS[name] for name in COMPARED]
    scenarios = [
        incast(FLOWS, rate=LINE, delay="1us", scheme=each.scheme, marking=each.marking, **NETWORK)
        for each in contenders
    ]
    options = {"window": (SINCE, until), "sample_interval": SAMPLED}
    traces = dict(zip(COMPARED, packet_runs(scenarios, until, **options), strict=True))
    halts = _first_halts(traces["acc"])
    values = _measure(traces, halts)
    notes = [
        *NOTES,
        "links of 1 us, line-rate starts at once; utilisation and rates from 5 ms on; unsteady: the standard deviation "
        f"of utilisation over 100 us is above {STEADY:.0%}; halts: each flow's first, with its extension",
        "DCQCN falls to less than 1 % of the line after its start, and comes back by 40 Mbps a step: most of what it "
        "does not use lies before 15 ms",
    ]
    if quick:
        notes.append(f"quick: {QUICK_UNTIL * 1e3:g} ms in place of {UNTIL * 1e3:g}")
    files = (_draw(traces, halts).write(folder / f"{figure.name}.png"), folder / f"{figure.name}.nc")
    save(_data(traces, halts), files[1])
    return Result(
        figure,
        values,
        _expected(values),
        files,
        tuple(notes),
        sample=f"one run of packets of {until * 1e3:g} ms with each of {sample.listed(COMPARED)}, measured from "
        f"{SINCE * 1e3:g} ms on; DCQCN's draws {sample.MARKS}, once, so no interval, and nothing else is random",
    )


def _first_halts(trace: Trace) -> np.ndarray:
    """Return the first halt time of each flow [s]."""
    halts = trace["halt_time"].values[: round(FIRST_HALT / SAMPLED)]
    return halts[np.argmax(halts > 0, axis=0), np.arange(FLOWS)]


def _utilisation(trace: Trace) -> tuple[np.ndarray, np.ndarray]:
    """Ends of intervals of 100 us [s], and the share of the line that was used in them."""
    used = slope(trace["sent"].values[:, 0], SAMPLED, EVERY) / LINE
    return trace["time"].values[EVERY::EVERY][: len(used)], used


def _measure(traces: dict[str, Trace], halts: np.ndarray) -> dict[str, float | bool]:
    values: dict[str, float | bool] = {}
    for name, trace in traces.items():
        ends, used = _utilisation(trace)
        rates = np.array(trace.summary["rate_bytes_per_s"])
        values |= {
            f"{name}_queue_max_bytes": float(trace.summary["queue_bytes"]["max_whole_run"]),
            f"{name}_queue_mean_bytes": float(trace.summary["queue_bytes"]["mean"]),
            f"{name}_drained_after_s": drain_time(trace["time"].values, trace["queue"].values[:, 0]),
            f"{name}_utilisation": float(trace.summary["utilisation"]),
            f"{name}_utilisation_std": float(used[ends > SINCE].std()),
            f"{name}_mean_rate_bytes_per_s": float(rates.mean()),
            f"{name}_jain": float(jain(rates)),
            f"{name}_pauses": float(trace.summary["pfc_pauses"]),
        }
    values["ideal_halt_s"] = values["acc_queue_max_bytes"] / LINE
    values |= {"halt_min_s": float(halts.min()), "halt_max_s": float(halts.max()), "halt_mean_s": float(halts.mean())}
    for name in ("dcqcn", "timely"):
        values[f"{name}_less_than_acc"] = bool(values[f"{name}_utilisation"] < values["acc_utilisation"])
        values[f"{name}_unsteady"] = bool(values[f"{name}_utilisation_std"] > STEADY)
    return values


def _expected(values: dict[str, float | bool]) -> dict[str, Check]:
    ideal = float(values["ideal_halt_s"])
    why = "section 6.3: close to the ideal, the largest queue over the link's rate; 10 %, as each knows its own only"
    less = "section 6.3: underutilise the link, and unsteadily, due to step-by-step rules"
    return {
        "halt_min_s": Check(ideal, 0.1 * ideal, why),
        "halt_max_s": Check(ideal, 0.1 * ideal, why),
        "acc_utilisation": Check(1.0, 0.02, "section 6.3: near full; 2 %"),
        "acc_utilisation_std": Check(0.0, STEADY, "section 6.3: steady; 2 % over 100 us, five packets of each flow"),
        "hpcc_utilisation": Check(0.95, 0.02, "section 6.3: maintains 95 %; 2 %, as W_AI adds to it"),
        **{
            f"{name}_{what}": Check(True, 0, less)
            for name in ("dcqcn", "timely")
            for what in ("less_than_acc", "unsteady")
        },
        "acc_mean_rate_bytes_per_s": Check(LINE / FLOWS, 0.02 * LINE / FLOWS, "section 6.3: 10 Gbps; 2 %, as above"),
        **{
            f"{name}_jain": Check(1.0, 0.02, "section 6.3: fair, or reasonably so; 15 % of a share")
            for name in COMPARED
        },
    }


def _data(traces: dict[str, Trace], halts: np.ndarray) -> xr.Dataset:
    data = aligned(traces, "scheme", ("queue", "sent", "rate"))
    rates = np.array([trace.summary["rate_bytes_per_s"] for trace in traces.values()])
    return data.assign(
        mean_rate=variable(("scheme", "flow"), rates, "bytes/s", "mean sending rate"),
        first_halt=variable("flow", halts, "s", "ACC's first halt"),
    )


def _draw(traces: dict[str, Trace], halts: np.ndarray) -> Any:
    picture, ((queue, halt), (used, rate)) = new_figure(2, 2, size=(WIDTH, 7.0))
    flows = np.arange(1, FLOWS + 1)
    for k, (name, trace) in enumerate(traces.items()):
        drawn = {"color": COLOURS[name], "lw": 1.3, "label": CONTENDERS[name].name}
        early = trace["time"].values <= DRAWN * 1e-3
        queue.plot(trace["time"].values[early] * 1e3, trace["queue"].values[early, 0] / 1e3, **drawn)
        used.plot(*(series * scale for series, scale in zip(_utilisation(trace), (1e3, 100), strict=True)), **drawn)
        means = np.array(trace.summary["rate_bytes_per_s"]) / GBPS
        rate.bar(flows + 0.2 * (k - 1.5), means, width=0.2, color=COLOURS[name], label=CONTENDERS[name].name)
    ideal = traces["acc"].summary["queue_bytes"]["max_whole_run"] / LINE
    halt.bar(flows, halts * 1e6, width=0.6, color=COLOURS["acc"], alpha=0.7)
    halt.axhline(ideal * 1e6, color="black", lw=1.0, ls="--", label=f"ideal: {ideal * 1e6:.1f} us")
    queue.set(title="(a) queue", xlabel=label("time", "ms"), ylabel=label("queue", "KB"), xlim=(0, DRAWN))
    halt.set(title="(b) first halt, ACC", xlabel="flow", ylabel=label("halt", "us"), xticks=flows, ylim=(0, 110))
    used.set(title="(c) utilisation over 100 us", xlabel=label("time", "ms"), ylabel=label("utilisation", "%"))
    used.set(xlim=(0, float(traces["acc"]["time"][-1]) * 1e3), ylim=(0, 105))
    rate.set(title="(d) mean rate from 5 ms on", xlabel="flow", ylabel=label("rate", "Gbps"), xticks=flows)
    rate.set(ylim=(0, 15))
    for axis in (queue, halt, used, rate):
        axis.grid(alpha=0.3)
    queue.legend(loc="upper right", fontsize="small")
    halt.legend(loc="upper right", fontsize="small")
    rate.legend(loc="upper center", fontsize="small", ncols=4)
    picture.suptitle("ACC Fig. 10: ten flows to one receiver, 100 Gbps")
    return picture
