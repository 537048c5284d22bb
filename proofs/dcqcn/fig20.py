"""DCQCN Figure 20: three flows over two bottlenecks, step marking against RED-like marking (section 7).

f2 crosses T1's uplink with f1 and T4's port to R2 with f3: a parking lot, of which max-min fairness gives 20 Gb/s
to each.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from fluidcc.builders import parking_lot
from fluidcc.engines.run import simulate
from fluidcc.plotting.style import figure as new_figure
from fluidcc.plotting.style import label
from fluidcc.proofs import papers
from fluidcc.proofs.shared import sample
from fluidcc.proofs.shared.runs import GBPS, LINE_RATE, SWITCH, SWITCH_NOTE, WIDTH, packet_runs, save, variable
from fluidcc.proofs.verdict.figure import Check, Figure, Result, reproduces
from fluidcc.scenario.model import RED, Scenario
from fluidcc.schemes.dcqcn import PRESETS

FLOWS, LONG = ("f1", "f2", "f3"), 1  # f2 crosses both
ORDER = (1, 0, 2)  # places of f1, f2, f3 among the parking lot's flows
SCHEME, RED_LIKE = PRESETS["paper"][:2]
STEP_MARKING = RED("40KB", "40KB", 1.0)  # section 5.2's K
MARKINGS = {"cutoff": STEP_MARKING, "red": RED_LIKE}
LATEST_START = 1e-3  # s; flows start at random, so that runs differ without random marks too
FULL, QUICK = (0.3, 0.1, 8), (0.2, 0.1, 2)  # end, from when on rates count [s], runs


@reproduces("dcqcn-fig20", papers.DCQCN, "Figure 20: two bottlenecks, step marking against RED-like marking")
def make_fig20(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make the figure."""
    until, since, runs = QUICK if quick else FULL
    means, fluid = {}, {}
    for name, marking in MARKINGS.items():
        scenarios = [_scenario(marking, run) for run in range(runs)]
        window = (since, until)
        traces = packet_runs(scenarios, until, window=window)
        means[name] = np.array([trace.summary["rate_bytes_per_s"] for trace in traces])[:, ORDER]
        model = simulate(scenarios[0], until, window=window, estimate_error=False)
        fluid[name] = np.array(model.summary["rate_bytes_per_s"])[list(ORDER)]
    values = _measure(means, fluid)
    notes = [
        f"a parking lot with the testbed's rates; Table 14 but for the marking, step marking at 40 KB; {runs} runs, "
        f"whose flows start within {LATEST_START * 1e3:g} ms; means over {since * 1e3:g} to {until * 1e3:g} ms",
        SWITCH_NOTE,
    ]
    said = [
        f"{runs} draws of all flows' starts for each marking, and of {sample.MARKS}, {since * 1e3:g} to "
        f"{until * 1e3:g} ms",
        *(sample.mean(f"f2 with {name}", rates[:, LONG].tolist(), "Gb/s", GBPS) for name, rates in means.items()),
        sample.fluid(until, len(MARKINGS), since=since),
    ]
    if quick:
        notes.append(f"quick: {QUICK[0] * 1e3:g} ms in place of {FULL[0] * 1e3:g} ms, and fewer runs")
    files = (_draw(means, fluid).write(folder / f"{figure.name}.png"), folder / f"{figure.name}.nc")
    save(_data(means, fluid), files[1])
    return Result(figure, values, _expected(), files, tuple(notes), sample="; ".join(said))


def _scenario(marking: RED, run: int) -> Scenario:
    starts = np.random.default_rng(run).uniform(0, LATEST_START, len(FLOWS))
    return parking_lot(3, rate=LINE_RATE, scheme=SCHEME, marking=marking, start=starts.tolist(), **SWITCH)


def _measure(means: dict[str, np.ndarray], fluid: dict[str, np.ndarray]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name in MARKINGS:
        for engine, rates in (("packet", means[name].mean(axis=0)), ("fluid", fluid[name])):
            values |= {
                f"{name}_{flow}_{engine}_bytes_per_s": float(rate) for flow, rate in zip(FLOWS, rates, strict=True)
            }
    cutoff, red = (means[name][:, LONG] for name in MARKINGS)
    return values | {
        "cutoff_starves_f2": bool(cutoff.max() < 0.8 * LINE_RATE / 2),
        "red_gives_f2_more": bool(red.min() > cutoff.max()),
        "red_gives_f2_all_its_share": bool(red.mean() > 0.95 * LINE_RATE / 2),
    }


def _expected() -> dict[str, Check]:
    return {
        "cutoff_starves_f2": Check(
            True, 0, "section 7: lower throughput with two bottlenecks; by over 20 % in all runs"
        ),
        "red_gives_f2_more": Check(True, 0, "section 7, Fig. 20(b): mitigated; in all runs"),
        "red_gives_f2_all_its_share": Check(False, 0, "section 7: but not completely solved; within 5 % of 20 Gb/s"),
    }


def _data(means: dict[str, np.ndarray], fluid: dict[str, np.ndarray]) -> xr.Dataset:
    """Mean rates of every run."""
    packet = np.stack([means[name] for name in MARKINGS])
    model = np.stack([fluid[name] for name in MARKINGS])
    return xr.Dataset(
        {
            "rate_packet": variable(("marking", "run", "flow"), packet, "bytes/s", "mean rate, packets"),
            "rate_fluid": variable(("marking", "flow"), model, "bytes/s", "mean rate, fluid model"),
        },
        {"marking": list(MARKINGS), "flow": list(FLOWS)},
    )


def _draw(means: dict[str, np.ndarray], fluid: dict[str, np.ndarray]) -> Any:
    picture, axes = new_figure(1, 2, size=(WIDTH, 4.6), sharey=True)
    titles = {"cutoff": "step marking at 40 KB", "red": "RED-like, 5 to 200 KB, 1 %"}
    for axis, (name, rates) in zip(axes[0], means.items(), strict=True):
        rates, place = rates / GBPS, np.arange(len(FLOWS))
        middle, low, high = rates.mean(axis=0), rates.min(axis=0), rates.max(axis=0)
        axis.bar(place, middle, width=0.5, color=["C0", "C3", "C2"], alpha=0.65)
        axis.errorbar(
            place, middle, [middle - low, high - middle], fmt="none", color="black", capsize=6, label="packets, range"
        )
        axis.plot(place, fluid[name] / GBPS, "kx", ms=9, mew=1.8, ls="none", label="fluid model")
        axis.axhline(20, color="0.4", lw=0.8, ls="--", label="max-min share")
        axis.set(xticks=place, xticklabels=["f1", "f2 (two bottlenecks)", "f3"], ylim=(0, 42), title=titles[name])
        axis.grid(alpha=0.3, axis="y")
    axes[0, 0].set_ylabel(label("mean rate", "Gbps"))
    axes[0, 1].legend(loc="upper right", fontsize="small")
    picture.suptitle("DCQCN Fig. 20: two bottlenecks")
    return picture
