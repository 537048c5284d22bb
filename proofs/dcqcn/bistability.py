"""DCQCN at its paper's settings: where a stable equilibrium and a large limit cycle exist side by side.

No figure of the paper: it has neither. Section 5 looks for settings that converge; with 9 to 14 flows it depends on the
start whether the recommended ones do.
Two ways find it: a run in which the number of flows moves up and down, and two starts.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from fluidcc.builders import incast
from fluidcc.plotting.style import figure as new_figure
from fluidcc.proofs import papers
from fluidcc.proofs.shared.runs import WIDTH, save, variable
from fluidcc.proofs.verdict.figure import Check, Figure, Result, reproduces
from fluidcc.scenario.model import Scenario
from fluidcc.schemes.dcqcn import DCQCN
from fluidcc.studies.sweeps.hysteresis import Branches, bistability, from_equilibrium, hysteresis
from fluidcc.theory.control.limit_cycle import limit_cycle

MOVED = {False: range(6, 18), True: (8, 9, 11.5, 14, 15)}
STARTED = {False: range(2, 21), True: range(7, 17)}
MAP: dict[bool, dict[str, Any]] = {
    False: {"n": np.arange(2, 21), "tau": np.arange(20, 101, 2.5) * 1e-6},
    True: {"n": np.arange(4, 21, 4), "tau": np.array([50e-6, 80e-6])},
}
REGIONS = ("equilibrium only", "equilibrium or cycle, by the start", "cycle only")
COLOURS = ("#d9e8f5", "#f5c77e", "#c0504d")
KB = 1e3


def of(n: Any, tau: Any = 50e-6) -> Scenario:
    """Flows at the paper's settings, 40 Gb/s, from line rate."""
    return incast(1, multiplicity=n, scheme=DCQCN(feedback_delay=tau))


@reproduces("dcqcn-bistability", papers.DCQCN, "no figure: a stable equilibrium beside a large limit cycle")
def make_bistability(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make the figure."""
    moved = hysteresis(of, {"n": MOVED[quick]}, dwell="80ms" if quick else "100ms")
    started = bistability(of, {"n": STARTED[quick]})
    perturbed = hysteresis(of, {"n": [8, 9]}, dwell="80ms", before="200ms", ramp=0)
    grid = bistability(of, MAP[quick])
    cycle = limit_cycle(from_equilibrium(of, {"n": [10]})(n=10.0), estimate_error=False)
    fixed_point = started.sel(branch="given", n=10)
    by_moving, by_starts = (found.n.values[found.bistable.values] for found in (moved, started))
    values: dict[str, float | bool] = {
        "bistable_flows_least_by_moving": float(by_moving.min(initial=np.inf)),
        "bistable_flows_most_by_moving": float(by_moving.max(initial=-np.inf)),
        "bistable_flows_least_by_starts": float(by_starts.min(initial=np.inf)),
        "bistable_flows_most_by_starts": float(by_starts.max(initial=-np.inf)),
        "all_between_are_by_starts": by_starts.tolist() == list(range(9, 15)),
        "cycle_10_flows_queue_min_bytes": cycle.low,
        "cycle_10_flows_queue_max_bytes": cycle.high,
        "cycle_10_flows_period_s": cycle.period,
        "equilibrium_10_flows_queue_bytes": float(fixed_point["queue_bytes.mean"]),
        "equilibrium_10_flows_is_equilibrium": str(fixed_point.kind.values) == "equilibrium",
        "one_flow_more_than_8_sets_it_cycling": str(perturbed.sel(branch="up", n=9).kind.values) == "cycle",
    }
    ours = "an independent integrator with step halving, to its digits"
    expected = {
        f"bistable_flows_{end}_by_{way}": Check(flows, 0, ours)
        for end, flows in (("least", 9.0), ("most", 14.0))
        for way in ("moving", "starts")
    }
    expected |= {
        "all_between_are_by_starts": Check(True, 0, ours),
        "cycle_10_flows_queue_min_bytes": Check(0.0, 0, ours),
        "cycle_10_flows_queue_max_bytes": Check(218 * KB, 0.5 * KB, ours),
        "cycle_10_flows_period_s": Check(1.90e-3, 0.005e-3, ours),
        "equilibrium_10_flows_queue_bytes": Check(122.6 * KB, 0.05 * KB, ours),
        "equilibrium_10_flows_is_equilibrium": Check(True, 0, ours),
    }
    notes = (
        "moving: the number of flows moves in hundred steps from value to value; one flow more at once is a "
        "perturbation that "
        "may itself start the cycle",
        "starts: at line rate with alpha 1, and at the rates and alpha of the equilibrium with empty queues; a third "
        "might find more",
        "beyond 14 flows the RED ramp does not reach p*, and there is no equilibrium",
        "the cycle ends in a fold at 8.29 flows; over g and Kmin: fc.studies.bistable_region (docs: limit cycles)",
        *(("quick: fewer flows and delays",) if quick else ()),
    )
    data = _dataset(moved, started, grid)
    files = (_draw(data).write(folder / f"{figure.name}.png"), save(data, folder / f"{figure.name}.nc"))
    return Result(
        figure,
        values,
        expected,
        files,
        notes,
        sample=f"runs of the fluid, {len(moved.n)} numbers of flows by moving and {len(started.n)} by starts; "
        "nothing is drawn",
    )


def _dataset(moved: Branches, started: Branches, grid: Branches) -> xr.Dataset:
    """Oscillations by both ways, and which of `REGIONS` each point of the map is."""
    fixed_points = np.isin(grid["kind"].transpose("branch", "n", "tau").values, ("equilibrium", "decaying"))
    regions = np.where(fixed_points.all(axis=0), 0, np.where(grid["bistable"].values, 1, 2))
    return xr.Dataset(
        {
            "moved": variable(
                ("direction", "moved_flows"), moved["peak_to_peak"].values, "bytes", "oscillation, moving"
            ),
            "started": variable(("start", "flows"), started["peak_to_peak"].values, "bytes", "oscillation, two starts"),
            "region": variable(("map_flows", "delay"), regions, "1", f"{'; '.join(REGIONS)} (0, 1, 2)"),
        },
        coords={
            "direction": moved.branch.values,
            "start": started.branch.values,
            "moved_flows": variable("moved_flows", moved.n.values, "1", "flows"),
            "flows": variable("flows", started.n.values, "1", "flows"),
            "map_flows": variable("map_flows", grid.n.values, "1", "flows"),
            "delay": variable("delay", grid.tau.values, "s", "feedback delay tau*"),
        },
    )


def _draw(data: xr.Dataset) -> Any:
    picture, axes = new_figure(1, 2, size=(WIDTH, 4.6))
    oscillations, regions = axes[0]
    for k, (direction, arrow) in enumerate((("up", "→"), ("down", "←"))):
        mark = "^v"[k]
        values = data["moved"].sel(direction=direction) / KB
        oscillations.plot(
            data.moved_flows, values, f"-{mark}", color=f"C{k}", lw=1.2, ms=6, label=f"moving {direction} {arrow}"
        )
    for k, (start, text) in enumerate((("given", "start at line rate"), ("from equilibrium", "start at its rate"))):
        values = data["started"].sel(start=start) / KB
        oscillations.plot(data.flows, values, "ox"[k], color="0.2", mfc="none", ms=(9, 6)[k], label=text)
    oscillations.set(xlabel="flows", ylabel="queue, largest less smallest [KB]", title="τ* = 50 us")
    oscillations.grid(alpha=0.3)
    oscillations.legend(fontsize=8)
    x, y = data["delay"].values * 1e6, data["map_flows"].values
    norm = BoundaryNorm([-0.5, 0.5, 1.5, 2.5], 3)
    regions.pcolormesh(x, y, data["region"].values, cmap=ListedColormap(list(COLOURS)), norm=norm, shading="nearest")
    regions.axvline(50, color="0.3", ls=":", lw=1)
    regions.set(xlabel="feedback delay τ* [us]", ylabel="flows", title="dotted: the paper's")
    patches = [Patch(color=colour, label=text) for colour, text in zip(COLOURS, REGIONS, strict=True)]
    regions.legend(handles=patches, fontsize=8, loc="lower left")
    for line in (oscillations.xaxis, regions.yaxis):
        line.set_major_locator(MaxNLocator(integer=True))
    picture.suptitle("DCQCN at 40 Gbps: where its queue ends up")
    return picture
