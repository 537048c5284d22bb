"""Stability of DCQCN's fixed point over flows, delay, g, Kmax and R_AI, and how far runs oscillate.

Table 14's settings; each axis varies one of them. No paper has this figure: CoNEXT 2016 has margins along lines of it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fluidcc.builders import incast
from fluidcc.plotting.stability import draw_chart
from fluidcc.plotting.style import figure as new_figure
from fluidcc.proofs import papers
from fluidcc.proofs.shared.runs import WIDTH, save
from fluidcc.proofs.verdict.figure import Check, Figure, Result, reproduces
from fluidcc.scenario.model import RED
from fluidcc.schemes.dcqcn import DCQCN
from fluidcc.studies.sweeps.chart import StabilityChart, stability_chart
from fluidcc.studies.sweeps.result import SweepResult
from fluidcc.studies.sweeps.run import sweep
from fluidcc.theory.control.stability import stability

CRITICAL_CHECKS = 8  # points of the boundary whose critical delay is found alone
UNSTABLE = set(range(3, 21))  # flows at 85 us; on the ramp up to 14
CLEAR = 40.0  # 1/s: a root so far from the axis has decayed, or grown, by e^-16 when the queue is looked at
UNTIL, WINDOW = "500ms", "400ms:500ms"
OSCILLATES = 1e3  # bytes: a queue that oscillates by less settles
LABELS = {"n": "flows", "tau": "feedback delay [us]", "g": "gain g", "kmax": "Kmax [KB]", "rate_ai": "R_AI [Mbps]"}


def over_flows(n: Any, tau: Any) -> Any:
    """Number of flows and feedback delay."""
    return incast(1, multiplicity=n, scheme=DCQCN(feedback_delay=tau))


def over_gain(g: Any, tau: Any) -> Any:
    """Eight flows: g and feedback delay."""
    return incast(1, multiplicity=8, scheme=DCQCN(g=g, feedback_delay=tau))


def over_ramp(kmax: Any, rate_ai: Any) -> Any:
    """Eight flows at 85 us: Kmax and R_AI."""
    marking = RED("5KB", kmax, 0.01)
    return incast(1, multiplicity=8, marking=marking, scheme=DCQCN(rate_ai=rate_ai, feedback_delay="85us"))


@reproduces("dcqcn-stability", papers.DCQCN, "no figure: where its fixed point is stable")
def make_stability(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make the figure."""
    side, runs = (16, (8, 6)) if quick else (64, (20, 15))
    delays = np.linspace(10e-6, 150e-6, side)
    charts = [
        stability_chart(over_flows, {"n": np.linspace(2, 40, side), "tau": delays}),
        stability_chart(over_gain, {"g": np.geomspace(1 / 4096, 1 / 8, side), "tau": delays}),
        stability_chart(
            over_ramp, {"kmax": np.linspace(40e3, 800e3, side), "rate_ai": np.linspace(5e6, 200e6, side) / 8}
        ),
    ]
    grid = {"n": np.linspace(2, 14, runs[0]), "tau": np.linspace(20e-6, 140e-6, runs[1])}
    oscillations = sweep(over_flows, grid, until=UNTIL, window=WINDOW, estimate_error=False)
    values: dict[str, float | bool] = {}
    expected: dict[str, Check] = {}
    edge = charts[0].dataset["boundary"].values
    some = edge[np.linspace(0, len(edge) - 1, CRITICAL_CHECKS).astype(int)]
    alone = [stability(over_flows(float(n), float(tau))).critical_feedback_delay for n, tau in some]
    off = [np.inf if delay is None else abs(delay / tau - 1) for delay, (_, tau) in zip(alone, some, strict=True)]
    values["boundary_off_critical_delay_rel"] = float(max(off))
    expected["boundary_off_critical_delay_rel"] = Check(0.0, 1e-6, "critical_delay, a frequency sweep without a grid")
    line = stability_chart(lambda n: over_flows(n, 85e-6), {"n": range(2, 41)}).dataset
    values["unstable_at_85us"] = {int(n) for n in line.n[line.stable == 0]} == UNSTABLE
    values["last_on_ramp"] = float(line.n[line.on_ramp == 1].max())
    expected["unstable_at_85us"] = Check(True, 0, "3 to 20 flows, one by one")
    expected["last_on_ramp"] = Check(14.0, 0, "p* exceeds Pmax from 15 flows on")
    agree, points = _runs_agree(oscillations)
    values |= {"runs_agree_with_roots": agree, "runs": float(points)}
    expected["runs_agree_with_roots"] = Check(True, 0, f"from line rate, where the root is {CLEAR:g}/s off the axis")
    notes = (
        "a line-rate start: other starts can end in a limit cycle beside a stable equilibrium (dcqcn-bistability)",
        *(("quick: 16 by 16 points, fewer runs",) if quick else ()),
    )
    data = charts[0].dataset.assign_attrs(title="DCQCN over flows and feedback delay")
    files = (_draw(charts, oscillations).write(folder / f"{figure.name}.png"), save(data, folder / f"{figure.name}.nc"))
    return Result(
        figure,
        values,
        expected,
        files,
        notes,
        sample=f"the charts are computed; {runs[0] * runs[1]} runs of the fluid of {UNTIL}, over {WINDOW}; "
        "nothing is drawn",
    )


def _runs_agree(oscillations: SweepResult) -> tuple[bool, int]:
    """Check that runs settle or oscillate as the roots predict, and count the points that were checked."""
    data = oscillations.dataset
    chart = stability_chart(over_flows, {name: data[name].values for name in ("n", "tau")}).dataset
    far = (data["queue_bytes.max"] - data["queue_bytes.min"]).transpose("n", "tau").values
    clear = (np.abs(chart.root.values) > CLEAR) & (chart.on_ramp.values == 1)
    return bool(((far < OSCILLATES) == (chart.stable.values == 1))[clear].all()), int(clear.sum())


def _draw(charts: list[StabilityChart], oscillations: SweepResult) -> Any:
    picture, axes = new_figure(1, 3, size=(1.6 * WIDTH, 4.8))
    titles = ("flows and delay", "8 flows", "8 flows at 85 us")
    for axis, chart, title, runs in zip(axes[0], charts, titles, (oscillations, None, None), strict=True):
        draw_chart(picture, axis, chart, LABELS, runs)
        axis.set(title=title)
    picture.suptitle("DCQCN at 40 Gbps: red is unstable; hatched: p* beyond the RED ramp, whose line is extended")
    return picture
