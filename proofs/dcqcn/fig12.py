"""DCQCN Figure 12: the queue over time for several g, at 2:1, 8:1 and 16:1 incast (section 5.2).

All senders start at line rate at t = 0 with alpha = 1 and the settings of Table 14. The paper reads off it that
"smaller g leads to lower queue length and lower variation" and that there is "no buffer starvation with 16:1";
halving R_AI is said to prevent it at 32:1.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from fluidcc import units
from fluidcc.builders import incast
from fluidcc.engines.run import simulate
from fluidcc.plotting.style import figure as new_figure
from fluidcc.plotting.style import label
from fluidcc.proofs import papers
from fluidcc.proofs.shared import sample
from fluidcc.proofs.shared.runs import LINE_RATE, WIDTH, Cell, save, side_by_side, variable
from fluidcc.proofs.verdict.figure import Check, Figure, Result, printed, reproduces
from fluidcc.results.trace import Trace
from fluidcc.schemes.dcqcn import PRESETS
from fluidcc.theory.control.equilibrium import equilibrium

SCHEME, MARKING = PRESETS["paper"][:2]
GAINS = (1 / 16, 1 / 64, 1 / 256, 1 / 1024)
INCASTS = (2, 8, 16)
UNTIL, WINDOW, SETTLED = 200e-3, (100e-3, 200e-3), 10e-3  # s; by the last, the first burst has drained
COARSE, FINE, FINE_QUICK = 1e-6, 0.25e-6, 0.5e-6  # steps [s]; the picture uses the first
SAMPLED, DRAWN = 10e-6, 50e-6  # s
DRAWN_UNTIL = 100.0  # ms
TOPS = {2: 50, 8: 230, 16: 280}  # KB, of the axes
EMPTY = 1.0  # bytes; below this the queue counts as empty: the projection at 0 leaves no remainder to speak of


class Case(NamedTuple):
    """Case with a number of senders, g, and R_AI over Table 14's."""

    flows: int
    g: float
    rate_ai_share: float = 1.0

    def cell(self) -> Cell:
        """Return the case's scheme, marking and one class of all its flows."""
        scheme = dataclasses.replace(SCHEME, g=self.g, rate_ai=units.parse("40Mbps", units.RATE) * self.rate_ai_share)
        return scheme, MARKING, ((float(self.flows), LINE_RATE),)


# N = 15 is the least incast without a fixed point. It and 32:1 with R_AI halved are checked, not drawn.
FIRST_WITHOUT = Case(15, 1 / 256)
CASES = [*(Case(n, g) for n in INCASTS for g in GAINS), FIRST_WITHOUT, Case(32, 1 / 256, 0.5)]


@reproduces("dcqcn-fig12", papers.DCQCN, "Figure 12: queue against g at 2:1, 8:1 and 16:1 incast")
def make_fig12(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make the figure."""
    fine = FINE_QUICK if quick else FINE
    trace = _run(CASES, COARSE)
    checked = [case for case in CASES if case.g == SCHEME.g]  # the only ones whose numbers have a reference
    finer = _run(checked, fine)
    found = {case: _numbers(trace, k) for k, case in enumerate(CASES)}
    refined = {case: _numbers(finer, k) for k, case in enumerate(checked)}
    change = refined[FIRST_WITHOUT]["empty"] - found[FIRST_WITHOUT]["empty"]
    values, expected = _verdicts(found | refined, change)
    notes = [
        f"means and shares of time are over {WINDOW[0] * 1e3:g} to {WINDOW[1] * 1e3:g} ms; oscillations are all that "
        f"rises and falls again after {SETTLED * 1e3:g} ms",
        "at 2:1 with g = 1/1024 the queue is lower because it is still on its way to the fixed point",
    ]
    if quick:
        notes.append(f"quick: finest step {units.show(fine, units.TIME)} in place of {units.show(FINE, units.TIME)}")
    files = (_draw(trace).write(folder / f"{figure.name}.png"), save(_data(trace), folder / f"{figure.name}.nc"))
    return Result(
        figure, values, expected, files, tuple(notes), sample=sample.fluid(UNTIL, len(CASES), since=WINDOW[0])
    )


def _run(cases: list[Case], step: float) -> Trace:
    scenario = side_by_side([case.cell() for case in cases])
    return simulate(scenario, UNTIL, window=WINDOW, dt=step, sample_interval=SAMPLED, estimate_error=False)


def _numbers(trace: Trace, k: int) -> dict[str, float]:
    """Mean of a queue in the window, the share of it for which the queue is empty, and how much the queue varies.

    Variation is what rises and falls again after the first burst, in bytes: half of the path's length less its
    net change. A deviation from the mean would count the slow way to the fixed point, which small g lengthens.
    """
    time, queue = trace["time"].values, trace["queue"].values[:, k]
    later, window = (queue[time >= start - SAMPLED / 2] for start in (SETTLED, WINDOW[0]))
    amplitude = (np.abs(np.diff(later)).sum() - abs(later[-1] - later[0])) / 2
    mean = trace.summary["links"][k]["queue_bytes"]["mean"]
    return {"mean": mean, "amplitude": float(amplitude), "empty": float((window < EMPTY).mean())}


def _verdicts(found: dict[Case, dict[str, float]], change: float) -> tuple[dict[str, float | bool], dict[str, Check]]:
    values: dict[str, float | bool] = {}
    for case, at in found.items():
        name = f"incast_{case.flows}_g_1_{1 / case.g:.0f}"
        values |= {f"{name}_queue_mean_bytes": at["mean"], f"{name}_queue_amplitude_bytes": at["amplitude"]}
        values[f"{name}_queue_empty_share"] = at["empty"]
    fixed_points = [equilibrium(incast(2, scheme=dataclasses.replace(SCHEME, g=g))).as_dict() for g in GAINS]
    values["incast_2_fixed_point_bytes"] = fixed_points[0]["queue_bytes"]
    values["fixed_point_depends_on_g"] = any(
        fixed_point["queue_bytes"] != fixed_points[0]["queue_bytes"] for fixed_point in fixed_points
    )
    for n in (2, 8):
        oscillations = [found[Case(n, g)]["amplitude"] for g in GAINS]
        values[f"incast_{n}_amplitude_fall_down_to_g_1_256"] = oscillations[0] > oscillations[1] > oscillations[2]
        values[f"incast_{n}_amplitude_fall_further_to_g_1_1024"] = oscillations[2] > oscillations[3]
    sixteen, halved = found[Case(16, SCHEME.g)], found[Case(32, SCHEME.g, 0.5)]
    values["incast_16_starves"] = sixteen["empty"] > 0
    values["incast_32_rate_ai_halved_starves"] = halved["empty"] > 0
    why = "independent integration of (5)-(9)"
    expected = {
        "incast_2_fixed_point_bytes": printed(
            20.151278e3, 1e-3, 0.0, "independent root of (7)-(9); half its last digit"
        ),
        "fixed_point_depends_on_g": Check(
            False, 0, "g does not enter (7)-(9) at equilibrium: no lower queue with a smaller g"
        ),
        **{
            f"incast_{n}_amplitude_fall_down_to_g_1_256": Check(
                True, 0, "section 5.2: smaller g leads to lower variation"
            )
            for n in (2, 8)
        },
        "incast_15_g_1_256_queue_empty_share": printed(0.39, 0.01, change, f"{why}: empty 39 % of the time"),
        "incast_16_starves": Check(True, 0, f"{why}, against section 5.2's no starvation at 16:1"),
        "incast_32_rate_ai_halved_starves": Check(True, 0, f"{why}, against section 5.2's no starvation at 32:1"),
    }
    return values, expected


def _data(trace: Trace) -> xr.Dataset:
    """Queue over time of every case."""
    every = round(DRAWN / SAMPLED)
    queue = trace["queue"].values[::every]
    flows, gains, shares = (np.array(column, float) for column in zip(*CASES, strict=True))
    return xr.Dataset(
        {"queue": variable(("time", "case"), queue, "bytes", "queue")},
        {
            "time": trace["time"][::every],
            "flows": variable("case", flows, "1", "senders"),
            "g": variable("case", gains, "1", "gain of alpha"),
            "rate_ai_share": variable("case", shares, "1", "R_AI over 40 Mb/s"),
        },
    )


def _draw(trace: Trace) -> Any:
    every = round(DRAWN / SAMPLED)
    time, queue = trace["time"].values[::every] * 1e3, trace["queue"].values[::every] / 1e3
    picture, axes = new_figure(len(GAINS), len(INCASTS), size=(WIDTH, 8.0), sharex=True, sharey="col")
    for row, g in enumerate(GAINS):
        for column, n in enumerate(INCASTS):
            axis = axes[row, column]
            k = CASES.index(Case(n, g))
            fixed_point = equilibrium(incast(1, multiplicity=n)).as_dict()
            axis.plot(time, queue[:, k], lw=0.9, color=f"C{row}")
            if fixed_point["exists"]:
                axis.axhline(fixed_point["queue_bytes"] / 1e3, color="0.3", lw=0.8, ls="--", label="fixed point")
            axis.set(xlim=(0, DRAWN_UNTIL), ylim=(0, TOPS[n]))
            axis.grid(alpha=0.3)
            if row == 0:
                axis.set_title(f"{n}:1 incast" + ("" if fixed_point["exists"] else " (no fixed point)"))
                if fixed_point["exists"]:
                    axis.legend(loc="upper right", fontsize="small")
            if row == len(GAINS) - 1:
                axis.set_xlabel(label("time", "ms"))
            if column == 0:
                axis.set_ylabel(f"g = 1/{1 / g:.0f}\n{label('queue', 'KB')}")
    picture.suptitle("DCQCN Fig. 12: queue for several g (the first burst, all at line rate, is cut off)")
    return picture
