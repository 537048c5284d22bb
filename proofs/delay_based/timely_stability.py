"""Stability of patched TIMELY's fixed point, and the oscillation of TIMELY, which has none.

ECN or Delay (CoNEXT 2016) repairs TIMELY, whose equations have no fixed point as printed, and gives the fixed point of
the repair. This module finds the numbers of flows, delays and values of beta for which it is stable, and compares runs
of fluid and packets.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fluidcc.builders import incast
from fluidcc.engines.run import simulate
from fluidcc.plotting.colours import ENGINES
from fluidcc.plotting.stability import draw_chart
from fluidcc.plotting.style import figure as new_figure
from fluidcc.progress import Bar
from fluidcc.proofs import papers
from fluidcc.proofs.shared import sample
from fluidcc.proofs.shared.runs import GBPS, WIDTH, save, variable
from fluidcc.proofs.verdict.figure import Check, Figure, Result, reproduces
from fluidcc.scenario.model import Scenario
from fluidcc.schemes.timely import PRESETS, TIMELY
from fluidcc.studies.sweeps.chart import StabilityChart, stability_chart
from fluidcc.studies.sweeps.run import sweep
from fluidcc.theory.control.equilibrium import equilibrium
from fluidcc.theory.control.limit_cycle import limit_cycle

C = 10 * GBPS
SEGMENT, T_LOW, INCREASE, BETA = 16e3, 50e-6, 10e6 / 8, 0.008  # as the paper's patched settings
LAST = 72  # flows for which q* is below C T_high
RUNS = (6, 10, 14, 26, 34)  # flows, at 1 us
UNTIL, WINDOW = "1s", "800ms:1s"
QUICK_UNTIL, QUICK_WINDOW = "400ms", "300ms:400ms"
CYCLES, QUICK_CYCLES = "300ms", "100ms"  # runs of TIMELY
OSCILLATES = 5e3  # bytes: a queue that oscillates by less settles; packets of two flows that meet make 1 KB steps
LABELS = {"n": "flows", "delay": "one-way delay of a link [us]", "beta": "beta"}


def patched(n: Any, delay: Any = 1e-6, beta: Any = BETA) -> Scenario:
    """Equal flows that start at their shares."""
    scheme = TIMELY(thresholds="queueing", hai_gain=1.0, patched=True, beta=beta)
    return incast(1, rate=C, delay=delay, multiplicity=n, scheme=scheme, initial_rate=C / n)


@reproduces("timely-stability", papers.ECN_OR_DELAY, "no figure: where patched TIMELY is stable; TIMELY oscillates")
def make_timely_stability(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make the figure."""
    side = 14 if quick else 48
    flows = np.linspace(2, 80, side)
    charts = [
        stability_chart(patched, {"n": flows, "delay": np.linspace(1e-6, 150e-6, side)}),
        stability_chart(lambda n, beta: patched(n, 1e-6, beta), {"n": flows, "beta": np.geomspace(1e-3, 1.0, side)}),
    ]
    line = stability_chart(patched, {"n": range(2, 81)}).dataset
    values: dict[str, float | bool] = {}
    expected: dict[str, Check] = {}

    def say(key: str, value: float | bool, check: Check) -> None:
        values[key], expected[key] = value, check

    values["flows_stable_at_1us"] = float(line.n[line.stable == 1].max())
    fixed_point = np.array([equilibrium(patched(float(n))).links[0]["queue_bytes"] for n in (2, 10, 40)])
    formula = C * T_LOW * (1 + np.array([2, 10, 40]) * INCREASE / (BETA * C))
    off = float(np.abs(fixed_point / formula - 1).max())
    say("queue_at_equilibrium_off_rel", off, Check(0.0, 1e-9, "q* = q' + N delta q'/(beta C), CoNEXT 2016"))
    last = float(line.n[line.reason == "ok"].max())
    say(
        "flows_with_an_equilibrium",
        last,
        Check(float(LAST), 0, "below C T_high: beta C (T_high - T_low)/(T_low delta)"),
    )
    until, window = (QUICK_UNTIL, QUICK_WINDOW) if quick else (UNTIL, WINDOW)
    runs = sweep(patched, {"n": list(map(float, RUNS))}, until=until, window=window, estimate_error=False).dataset
    amplitude = (runs["queue_bytes.max"] - runs["queue_bytes.min"]).values
    stable = line.stable.sel(n=list(map(float, RUNS))).values == 1
    for n, far, fixed_points in zip(RUNS, amplitude, stable, strict=True):
        say(f"run_of_{n}_flows_settle", bool(far < OSCILLATES), Check(bool(fixed_points), 0, "the rightmost root"))
    count = np.array((2, 8) if quick else (2, 3, 4, 6, 8, 12, 16))
    cycle_until = QUICK_CYCLES if quick else CYCLES
    cycles = _cycles(count, cycle_until)
    fluid, packets = cycles["fluid"], cycles["packets"]
    regular = bool((fluid > OSCILLATES).all() and (packets > OSCILLATES).all())
    say("timely_amplitude", regular, Check(True, 0, "at g = 0 it increases, so nothing settles"))
    ratio = float(np.abs(fluid / packets - 1).max())
    say(
        "timely_amplitude_fluid_off_packets_rel",
        ratio,
        Check(0.0, 0.25, "the queue is cut to 0 in both; packets add steps"),
    )
    notes = (
        "10 Gbps, 16 KB segments, thresholds on the time in queues, no hyperactive increase; flows start at shares",
        "grey: q* would be above C T_high, where another rule holds",
        *(("quick: 14 by 14 points, fewer runs",) if quick else ()),
    )
    data = charts[0].dataset.assign(
        cycle_flows=variable("count", count, "1", "flows"),
        cycle_fluid=variable("count", fluid, "bytes", "TIMELY's oscillation of the queue, fluid"),
        cycle_packets=variable("count", packets, "bytes", "TIMELY's oscillation of the queue, packets"),
    )
    files = (
        _draw(charts, count, cycles).write(folder / f"{figure.name}.png"),
        save(data, folder / f"{figure.name}.nc"),
    )
    return Result(
        figure,
        values,
        expected,
        files,
        notes,
        sample=f"the charts are computed; {len(RUNS)} runs of the fluid of {until}, over {window}; one of "
        f"{cycle_until} in packets and in the fluid for each of {sample.listed(count)} flows; nothing is "
        "drawn",
    )


def _cycles(count: np.ndarray, until: str) -> dict[str, np.ndarray]:
    """Compute how far TIMELY's queue oscillates, in the fluid and in packets [bytes]."""
    scheme = PRESETS["fluid"].scheme
    found: dict[str, list[float]] = {"fluid": [], "packets": []}
    with Bar("running TIMELY", len(count), "runs") as bar:
        for done, n in enumerate(count, 1):
            scenario = incast(int(n), rate=C, scheme=scheme, initial_rate=C / n)
            found["fluid"].append(limit_cycle(scenario, estimate_error=False).peak_to_peak)
            queue = simulate(scenario, until, engine="packet").summary["queue_bytes"]
            found["packets"].append(queue["max"] - queue["min"])
            bar(done / len(count))
    return {name: np.array(numbers) for name, numbers in found.items()}


def _draw(charts: list[StabilityChart], count: np.ndarray, cycles: dict[str, np.ndarray]) -> Any:
    picture, axes = new_figure(1, 3, size=(1.6 * WIDTH, 4.8))
    for axis, chart, title in zip(axes[0], charts, ("patched TIMELY", "patched TIMELY, links of 1 us"), strict=False):
        draw_chart(picture, axis, chart, LABELS)
        axis.set(title=title)
    axis = axes[0][2]
    for (name, amplitude), style in zip(cycles.items(), ("o-", "x--"), strict=True):
        axis.plot(count, amplitude / 1e3, style, color=ENGINES[name.removesuffix("s")], lw=1.2, ms=5, label=name)
    axis.axhline(C * T_LOW / 1e3, color="0.5", ls=":", lw=1)
    axis.set(
        xlabel="flows", ylabel="largest less smallest queue [KB]", title="TIMELY oscillates; dotted: C T_low", ylim=0
    )
    axis.grid(alpha=0.3)
    axis.legend(fontsize=8)
    picture.suptitle("TIMELY at 10 Gbps: red is unstable, grey has no equilibrium")
    return picture
