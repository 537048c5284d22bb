"""ECN or Delay (CoNEXT 2016), DCQCN's phase margin over the number of flows: as published, and of the model itself.

The published linearisation calls 4 to 21 flows unstable at tau* = 50 us. The model's own roots say that 4 to 14 are
stable (packets of 1000 B), and its run with 8 from line rate settles; with 9 to 14 it depends on the start
(`bistability`). With 15 to 21 there is no fixed point, and both are of a ramp extended beyond Kmax.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from fluidcc.builders import incast
from fluidcc.engines.run import simulate
from fluidcc.plotting.style import figure as new_figure
from fluidcc.progress import Bar
from fluidcc.proofs import papers
from fluidcc.proofs.shared import sample
from fluidcc.proofs.shared.runs import WIDTH, save, variable
from fluidcc.proofs.verdict.figure import Check, Figure, Result, reproduces
from fluidcc.schemes.dcqcn import DCQCN
from fluidcc.theory.control.stability import Stability, stability

DELAYS = (50e-6, 85e-6, 100e-6)  # tau*, s
FLOWS = np.array([*range(2, 25), 28, 32, 40, 48, 64])
QUICK = FLOWS[[0, 2, 6, 8, 14, 20, 24]]
# Degrees, as printed there.
PRINTED = {
    50e-6: {2: 8.2626, 4: -0.75215, 6: -4.9328, 8: -6.4319, 10: -6.5844, 16: -3.8992, 22: 0.67343},
    100e-6: {2: -10.099, 8: -18.252, 32: -1.7638, 64: 15.625},
}
RUNS = {(2, 50e-6): True, (8, 50e-6): True, (2, 100e-6): False, (8, 85e-6): False}  # whether the queue settles
RUN, LATE = 1.0, 100e-3  # s, a run, and what of it is late
OSCILLATES = 1e3  # bytes: standard deviation of a late queue that has not settled


@reproduces("dcqcn-margins", papers.ECN_OR_DELAY, "phase margin over flows, published and exact")
def make_margins(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make the figure."""
    flows = QUICK if quick else FLOWS
    found: dict[tuple[int, float], Stability] = {}
    with Bar("finding roots", len(flows) * len(DELAYS), "points") as bar:
        for delay in DELAYS:
            for n in flows:
                found[int(n), delay] = stability(incast(int(n), scheme=DCQCN(feedback_delay=delay)))
                bar(len(found) / (len(flows) * len(DELAYS)))
    values: dict[str, float | bool] = {}
    expected: dict[str, Check] = {}
    for delay, printed in PRINTED.items():
        for n, degrees in printed.items():
            if (n, delay) in found:
                key = f"published_{delay * 1e6:.0f}us_{n}_flows_deg"
                values[key] = _number(found[n, delay].paper_phase_margin)
                expected[key] = Check(degrees, 0.1, "CoNEXT 2016, as printed")
    agree = [point.phase_margin is not None and (point.phase_margin > 0) == point.stable for point in found.values()]
    wrong = [
        point.paper_phase_margin is not None and (point.paper_phase_margin > 0) != point.stable
        for point in found.values()
    ]
    values |= {"exact_margin_has_the_sign_of_the_root": all(agree), "published_margin_has_not": float(sum(wrong))}
    expected["exact_margin_has_the_sign_of_the_root"] = Check(True, 0, "the loop closes to the same system")
    for (n, delay), fixed_points in RUNS.items():
        key = f"run_{delay * 1e6:.0f}us_{n}_flows_settle"
        values[key] = _settles(n, delay)
        expected[key] = Check(fixed_points, 0, "the nonlinear run agrees with its rightmost root")
        point = found.get((n, delay))
        if point is not None:
            values[f"root_{delay * 1e6:.0f}us_{n}_flows_stable"] = bool(point.stable)
            expected[f"root_{delay * 1e6:.0f}us_{n}_flows_stable"] = Check(fixed_points, 0, "as the run does")
    notes = (
        "beyond 14 flows p* exceeds Pmax: both linearisations extend the RED line beyond Kmax there",
        "exact: the loop cut where flows observe the queue; published: data in packets of 1000 B",
        *(("quick: fewer numbers of flows",) if quick else ()),
    )
    data = _dataset(flows, found)
    files = (_draw(data).write(folder / f"{figure.name}.png"), save(data, folder / f"{figure.name}.nc"))
    return Result(
        figure,
        values,
        expected,
        files,
        notes,
        sample=f"margins are computed; {sample.fluid(RUN, len(RUNS), since=RUN - LATE)}",
    )


def _number(value: float | None) -> float:
    return float("nan") if value is None else value


def _settles(flows: int, delay: float) -> bool:
    """Check whether the queue of a line-rate start has settled after a second."""
    run = simulate(
        incast(flows, scheme=DCQCN(feedback_delay=delay)), RUN, window=(RUN - LATE, RUN), estimate_error=False
    )
    return bool(run.summary["queue_bytes"]["std"] < OSCILLATES)


def _dataset(flows: np.ndarray, found: dict[tuple[int, float], Stability]) -> xr.Dataset:
    columns = {
        "exact": ("degrees", "phase margin of the model", lambda p: _number(p.phase_margin)),
        "published": ("degrees", "phase margin as published", lambda p: _number(p.paper_phase_margin)),
        "root": ("1/s", "real part of the rightmost root", lambda p: p.rightmost_root.real),
        "on_ramp": ("1", "whether the fixed point lies on the RED ramp", lambda p: p.on_ramp),
    }
    data = xr.Dataset(
        coords={
            "delay": variable("delay", np.array(DELAYS), "s", "feedback delay tau*"),
            "flows": variable("flows", flows, "1", "flows"),
        }
    )
    for name, (unit, text, of) in columns.items():
        numbers = np.array([[of(found[int(n), delay]) for n in flows] for delay in DELAYS])
        data[name] = variable(("delay", "flows"), numbers, unit, text)
    return data


def _draw(data: xr.Dataset) -> Any:
    picture, axes = new_figure(1, 2, size=(WIDTH, 4.4))
    margins, roots = axes[0]
    for k, delay in enumerate(data.delay.values):
        here, text = data.sel(delay=delay), f"τ* = {delay * 1e6:.0f} us"
        margins.plot(data.flows, here.exact, "-", color=f"C{k}", lw=1.2, label=f"{text}, of the model")
        margins.plot(data.flows, here.published, "--", color=f"C{k}", lw=1, label=f"{text}, published")
        for n, degrees in PRINTED.get(float(delay), {}).items():
            margins.plot(n, degrees, "x", color=f"C{k}", ms=5)
        roots.plot(data.flows, here.root, "-", color=f"C{k}", lw=1.2, label=text)
    for axis in (margins, roots):
        axis.axhline(0, color="0.3", lw=0.8)
        axis.axvline(14.5, color="0.6", ls=":", lw=1)
        axis.set(xlabel="flows", xlim=(0, data.flows.max()))
        axis.grid(alpha=0.3)
        axis.legend(fontsize=8)
    margins.set(ylabel="phase margin [degrees]", title="crosses: as printed")
    roots.set(ylabel="real part of the rightmost root [1/s]", title="dotted: RED ramp ends")
    picture.suptitle("DCQCN at 40 Gbps: stability of its fixed point")
    return picture
