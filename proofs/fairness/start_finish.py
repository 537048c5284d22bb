"""Figures 2, 3, 8 and 9 of "Fast Convergence to Fairness": start against finish of the flows of a 16-1 incast."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from fluidcc.engines.run import simulate
from fluidcc.plotting.style import figure as new_figure
from fluidcc.plotting.style import label
from fluidcc.progress import Bar
from fluidcc.proofs import papers
from fluidcc.proofs.fairness.common import (
    NAMES,
    NOTES,
    UNTIL,
    VARIANTS,
    Run,
    run_variants,
    sample_of,
    seeds_note,
    staggered,
)
from fluidcc.proofs.shared import sample
from fluidcc.proofs.shared.runs import WIDTH, save, variable
from fluidcc.proofs.verdict.figure import Check, Figure, Result, reproduces

FLOWS = 16
FIGURES = {
    "fairness-fig2": ("hpcc", ("default", "gbps", "probabilistic", "probabilistic_period")),
    "fairness-fig3": ("swift", ("default", "gbps", "probabilistic", "probabilistic_period")),
    "fairness-fig8": ("hpcc", ("default", "vai_sf")),
    "fairness-fig9": ("swift", ("default", "vai_sf", "vai_sf_scaled")),
}
SEEDS = 16  # of runs with probabilistic feedback
CLOSER = 0.5  # of the default's spread: "much closer together"
WITHIN = 2.13  # standard errors to 95 %: Student's t of 15 degrees of freedom
TREND = 0.5  # rank correlation that 16 flows without any have once in twenty times


@reproduces("fairness-fig2", papers.VAI, "Figure 2: start against finish, HPCC")
@reproduces("fairness-fig3", papers.VAI, "Figure 3: start against finish, Swift")
@reproduces("fairness-fig8", papers.VAI, "Figure 8: start against finish, HPCC with VAI SF")
@reproduces("fairness-fig9", papers.VAI, "Figure 9: start against finish, Swift with VAI SF")
def make_start_finish(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make the figure."""
    scheme, keys = FIGURES[figure.name]
    runs = run_variants(scheme, keys, FLOWS, SEEDS)
    fluid = {} if quick else _fluid(scheme, keys)
    values = _measure(runs) | _measure({f"fluid_{key}": [each] for key, each in fluid.items()})
    notes = [
        *NOTES,
        "spread: from the first finish to the last; rank correlation of starts and finishes: -1 if whoever starts last "
        f"finishes first; up to {TREND:g} either way is none, as 16 flows without any trend have more once in 20 times",
    ]
    if "probabilistic" in keys:
        notes += [seeds_note(SEEDS), *_readings(values)]
    if figure.name == "fairness-fig8":
        notes.append("HPCC with VAI SF: the trend is reversed, for most flows whoever starts last finishes last")
    notes += ["variants are drawn 2 us beside each other", "quick: no fluid" if quick else "crosses: fluid model"]
    firsts = {key: several[0] for key, several in runs.items()}
    files = (_draw(figure.name, firsts, fluid).write(folder / f"{figure.name}.png"), folder / f"{figure.name}.nc")
    save(_data(firsts, fluid), files[1])
    return Result(
        figure,
        values,
        _expected(keys),
        files,
        tuple(notes),
        sample=sample_of(UNTIL[FLOWS], runs) + ("" if quick else f"; {sample.fluid(UNTIL[FLOWS], len(fluid))}"),
    )


def _readings(values: dict[str, float | bool]) -> list[str]:
    """Describe what the numbers show of the two ways to ignore feedback."""
    notes = []
    for key, costs in (("probabilistic", "its ACK"), ("probabilistic_period", "its round trip")):
        mean, within = (float(values[f"{key}_rank_correlation_mean{end}"]) for end in ("", "_within"))
        word = "the trend stays" if mean + within < -TREND else "no trend" if mean - within > -TREND else "undecided"
        notes.append(
            f"if an ignored update costs {costs}: mean rank correlation {mean:.2f}, to {within:.2f} (95 %): {word}"
        )
    return notes


def _fluid(scheme: str, keys: tuple[str, ...]) -> dict[str, Run]:
    """The same by the fluid model."""
    runs = {}
    with Bar("simulating the fluid", len(keys), "runs") as bar:
        for k, key in enumerate(keys, 1):
            scenario = staggered(scheme, key, FLOWS)
            trace = simulate(scenario, UNTIL[FLOWS], sample_interval=2e-6, estimate_error=False)
            runs[key] = Run(trace, np.array([flow.start for flow in scenario.flows], dtype=float))
            bar(k / len(keys))
    return runs


def _measure(runs: dict[str, list[Run]]) -> dict[str, float | bool]:
    values: dict[str, float | bool] = {}
    for key, several in runs.items():
        values |= {
            f"{key}_first_finish_s": float(np.median([each.finish.min() for each in several])),
            f"{key}_last_finish_s": float(np.median([each.finish.max() for each in several])),
            f"{key}_spread_s": float(np.median([each.spread for each in several])),
            f"{key}_rank_correlation": float(np.median([each.rank_correlation for each in several])),
        }
        if len(several) > 1:
            trends = np.array([each.rank_correlation for each in several])
            values[f"{key}_rank_correlation_mean"] = float(trends.mean())
            values[f"{key}_rank_correlation_mean_within"] = float(WITHIN * trends.std(ddof=1) / np.sqrt(len(trends)))
    for key in runs:
        if "default" in runs and key != "default":
            values[f"{key}_much_closer"] = bool(values[f"{key}_spread_s"] <= CLOSER * values["default_spread_s"])
    return values


def _expected(keys: tuple[str, ...]) -> dict[str, Check]:
    trend = f"III-E: flows that begin last finish first; a trend that 16 flows show by chance in 5 % is {TREND:g}"
    checks = {"default_rank_correlation": Check(-1.0, 1 - TREND, trend)}
    if "vai_sf" in keys:
        why = "VI-B: the finish time of the flows is much closer together; half the spread"
        return checks | {"vai_sf_much_closer": Check(True, 0, why)}
    for key in keys[1:]:
        why = "III-E: eliminates this trend; as above"
        checks[f"{key}_rank_correlation"] = Check(0.0, TREND, why)
        why = "III-E: the flows finish at generally the same time; half the spread"
        checks[f"{key}_much_closer"] = Check(True, 0, why)
    return checks


def _data(runs: dict[str, Run], fluid: dict[str, Run]) -> xr.Dataset:
    starts = next(iter(runs.values())).starts
    finish = np.array([each.finish for each in runs.values()])
    data = {
        "start": variable("flow", starts, "s", "start of the flow"),
        "finish": variable(("variant", "flow"), finish, "s", "finish in packets"),
    }
    if fluid:
        by_fluid = np.array([fluid[key].finish for key in runs])
        data["finish_fluid"] = variable(("variant", "flow"), by_fluid, "s", "finish in the fluid model")
    return xr.Dataset(data, {"variant": list(runs), "flow": np.arange(FLOWS)})


def _draw(name: str, runs: dict[str, Run], fluid: dict[str, Run]) -> Any:
    picture, ((axis,),) = new_figure(1, 1, size=(WIDTH, 5.6))
    for k, (key, each) in enumerate(runs.items()):
        starts, colour = each.starts * 1e6 + 2.0 * (k - 1), VARIANTS[key].colour  # beside each other
        axis.plot(starts, each.finish * 1e6, "os^D"[k], ms=7, mfc="none", color=colour, label=VARIANTS[key].name)
        if key in fluid:
            axis.plot(starts, fluid[key].finish * 1e6, "x", ms=5, color=colour)
    axis.set(xlabel=label("start", "us"), ylabel=label("finish", "us"), ylim=(0, 1700))
    axis.grid(alpha=0.3)
    crosses = ", packets and fluid (crosses)" if fluid else ""
    picture.suptitle(f"Fast Convergence to Fairness Fig. {name[-1]}: 16-1 incast, {NAMES[FIGURES[name][0]]}{crosses}")
    picture.legend(loc="outside lower center", ncols=5, fontsize="small")
    return picture
