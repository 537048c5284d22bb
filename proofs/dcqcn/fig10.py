"""DCQCN Figure 10: the second of two senders starts at line rate 10 ms after the first (section 6.1)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fluidcc import units
from fluidcc.builders import incast
from fluidcc.engines.run import simulate
from fluidcc.plotting.style import figure as new_figure
from fluidcc.plotting.style import label
from fluidcc.proofs import papers
from fluidcc.proofs.shared import sample
from fluidcc.proofs.shared.runs import GBPS, WIDTH
from fluidcc.proofs.verdict.figure import Check, Figure, Result, printed, reproduces
from fluidcc.results.metrics import settling_time
from fluidcc.results.trace import Trace

START, UNTIL = 10e-3, 100e-3  # s
COARSE, FINE, FINE_QUICK = 1e-6, 0.125e-6, 0.5e-6  # steps [s]
GRID = 10e-6  # s; the reference reads extremes off this grid (see `_measure`)
PLOTTED = 2e-6  # s


@reproduces("dcqcn-fig10", papers.DCQCN, "Figure 10: second sender starts 10 ms after the first")
def make_fig10(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make the figure."""
    fine = FINE_QUICK if quick else FINE
    scenario = incast(2, start=[0.0, START])
    trace, coarse = (
        simulate(scenario, UNTIL, dt=step, sample_interval=PLOTTED, estimate_error=False) for step in (fine, COARSE)
    )
    values, at_coarse = _measure(trace), _measure(coarse)
    expected = _expected({name: values[name] - at_coarse[name] for name in values})
    notes = [
        "extremes over all steps differ from those on the 10 us grid, because the least rate is a sharp minimum; "
        "only the latter have a reference"
    ]
    if quick:
        notes.append(f"quick: step {units.show(fine, units.TIME)} in place of {units.show(FINE, units.TIME)}")
    files = (_draw(trace).write(folder / f"{figure.name}.png"), trace.save(folder / f"{figure.name}.nc"))
    return Result(figure, values, expected, files, tuple(notes), sample=sample.fluid(UNTIL, 2))


def _measure(trace: Trace) -> dict[str, Any]:
    """Extremes, from every step and from the reference's 10 us grid, and values at three times."""
    time = trace["time"].values
    queue, rates = trace["queue"].values[:, 0], trace["rate"].values
    second = np.where(time >= START, rates[:, 1], np.inf)
    every = round(GRID / float(time[1] - time[0]))
    peak, least = int(queue.argmax()), int(second.argmin())
    grid_peak, grid_least = (every * int(pick) for pick in (queue[::every].argmax(), second[::every].argmin()))
    values = {
        "queue_peak_bytes": float(trace.summary["queue_bytes"]["max_whole_run"]),
        "queue_peak_time_s": float(time[peak]),
        "queue_peak_on_grid_bytes": float(queue[grid_peak]),
        "queue_peak_on_grid_time_s": float(time[grid_peak]),
        "rate_2_least_bytes_per_s": float(second[least]),
        "rate_2_least_time_s": float(time[least]),
        "rate_2_least_on_grid_bytes_per_s": float(second[grid_least]),
        "rate_2_least_on_grid_time_s": float(time[grid_least]),
    }
    for at in (20, 50, 100):
        values |= {
            f"rate_{k + 1}_at_{at}ms_bytes_per_s": float(np.interp(at * 1e-3, time, rates[:, k])) for k in range(2)
        }
        values[f"queue_at_{at}ms_bytes"] = float(np.interp(at * 1e-3, time, queue))
    gap = trace["rate"][:, 0] - trace["rate"][:, 1]
    values["gap_below_1gbps_from_s"] = settling_time(gap, GBPS, 0.0)
    return values


def _expected(step_error: dict[str, float]) -> dict[str, Check]:
    """Values of an independent integration of (5)-(9), (11), printed to these digits."""
    why = "independent step-halved integration; half its last digit and twice our change from a step of 1 us"
    table = {
        "queue_peak_on_grid_bytes": (537.5e3, 0.1e3),
        "queue_peak_on_grid_time_s": (10.16e-3, 0.01e-3),
        "rate_2_least_on_grid_bytes_per_s": (1.761 * GBPS, 0.001 * GBPS),
        "rate_2_least_on_grid_time_s": (10.38e-3, 0.01e-3),
        "rate_1_at_20ms_bytes_per_s": (17.3445 * GBPS, 1e-4 * GBPS),
        "rate_2_at_20ms_bytes_per_s": (10.1395 * GBPS, 1e-4 * GBPS),
        "rate_1_at_50ms_bytes_per_s": (21.5977 * GBPS, 1e-4 * GBPS),
        "rate_2_at_50ms_bytes_per_s": (18.4028 * GBPS, 1e-4 * GBPS),
        "queue_at_50ms_bytes": (19.376e3, 1.0),
        "rate_1_at_100ms_bytes_per_s": (20.0367 * GBPS, 1e-4 * GBPS),
        "rate_2_at_100ms_bytes_per_s": (19.9633 * GBPS, 1e-4 * GBPS),
        "queue_at_100ms_bytes": (20.1448e3, 0.1),
        "gap_below_1gbps_from_s": (70.15e-3, 0.01e-3),
    }
    return {name: printed(value, digit, step_error[name], why) for name, (value, digit) in table.items()}


def _draw(trace: Trace) -> Any:
    time = trace["time"].values * 1e3
    rates, queue = trace["rate"].values / GBPS, trace["queue"].values[:, 0] / 1e3
    picture, axes = new_figure(2, 1, size=(WIDTH, 7.0), sharex=True)
    top, bottom = axes[:, 0]
    top.plot(time, rates[:, 0], color="C0", lw=1.0, label="first sender")
    top.plot(time, rates[:, 1], color="C1", lw=2.0, label="second sender (the paper's curve)")
    top.axhline(20, color="0.5", lw=0.8, ls="--", label="fair share")
    top.set(ylabel=label("rate $R_C$", "Gbps"), ylim=(0, 42), xlim=(0, 100))
    top.legend(loc="upper right")
    bottom.plot(time, queue, color="C2", lw=1.2)
    bottom.set(ylabel=label("queue", "KB"), xlabel=label("time", "ms"), ylim=(0, 600))
    # The burst is over in half a millisecond, and the rest is a thirtieth of it: each gets its own scale.
    burst, rest = bottom.inset_axes((0.22, 0.30, 0.27, 0.62)), bottom.inset_axes((0.60, 0.30, 0.37, 0.62))
    burst.plot(time, queue, color="C2", lw=1.2)
    burst.set(xlim=(9.9, 10.6), ylim=(0, 600), title="the burst")
    rest.plot(time, queue, color="C2", lw=1.2)
    rest.axhline(5, color="0.5", lw=0.8, ls=":", label="Kmin")
    rest.set(xlim=(15, 100), ylim=(0, 40), title="after it")
    rest.legend(loc="lower right", fontsize="small")
    for axis in (top, bottom, burst, rest):
        axis.grid(alpha=0.3)
    picture.suptitle("DCQCN Fig. 10: two senders, 40 Gbps, the second starts at 10 ms")
    return picture
