"""Schemes whose windows change in jumps have no fixed point to be stable: how far their queues oscillate instead.

DCTCP over flows and step marking K, Swift over flows and base target, by the fluid; lines of packets beside.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from fluidcc.builders import incast
from fluidcc.engines.run import simulate
from fluidcc.plotting.colours import ENGINES
from fluidcc.plotting.style import figure as new_figure
from fluidcc.progress import Bar
from fluidcc.proofs import papers
from fluidcc.proofs.shared.runs import GBPS, WIDTH, save, variable
from fluidcc.proofs.verdict.figure import Check, Figure, Result, reproduces
from fluidcc.scenario.model import RED, Scenario
from fluidcc.schemes.dctcp import DCTCP
from fluidcc.schemes.swift import Swift
from fluidcc.studies.sweeps.run import sweep

RATE = 100 * GBPS
FLOWS, QUICK = (2, 4, 8, 16, 32), (2, 8, 16)
UNTIL = "20ms"
STATISTICS = ("mean", "std", "min", "max")


class Case(NamedTuple):
    """A scheme's scenarios over flows and a second number."""

    make: Callable[..., Scenario]
    name: str
    label: str
    unit: float  # SI
    values: np.ndarray
    at: float  # value at which packets are run
    mean: float  # largest relative differences of the fluid from packets, where windows hold four packets or more
    std: float | None  # None: not expected to agree
    why: str


def dctcp(n: Any, x: Any) -> Scenario:
    """Step marking K."""
    return incast(1, rate=RATE, multiplicity=n, scheme=DCTCP(), marking=RED(x, x, 1.0))


def swift(n: Any, x: Any) -> Scenario:
    """Base target delay."""
    return incast(1, rate=RATE, multiplicity=n, scheme=Swift(base_target=x))


CASES = {
    "dctcp-oscillation": Case(
        dctcp,
        "k",
        "step marking K [KB]",
        1e3,
        np.linspace(100e3, 500e3, 9),
        300e3,
        0.05,
        0.15,
        "flows cut nearly together",
    ),
    "swift-oscillation": Case(
        swift,
        "base_target",
        "base target [us]",
        1e-6,
        np.linspace(4e-6, 20e-6, 9),
        5e-6,
        0.1,
        None,
        "the delay stays at the target; oscillations differ, as flows of packets do not cut together",
    ),
}


@reproduces("dctcp-oscillation", papers.DCTCP, "no figure: how far its queue oscillates")
@reproduces("swift-oscillation", papers.SWIFT, "no figure: how far its queue oscillates")
def make_window_oscillation(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make the figure."""
    case, flows = CASES[figure.name], np.array(QUICK if quick else FLOWS)
    values = case.values[:: 4 if quick else 1]
    grid = {"n": flows.astype(float), "x": values}
    swept = sweep(case.make, grid, until=UNTIL, estimate_error=False).dataset
    line = sweep(lambda n: case.make(n, case.at), {"n": grid["n"]}, until=UNTIL, estimate_error=False).dataset
    fluid = {name: line[f"queue_bytes.{name}"].values for name in STATISTICS}
    packets = _packets(case, flows)
    found: dict[str, float | bool] = {}
    expected: dict[str, Check] = {}
    for name, most in (("mean", case.mean), ("std", case.std)):
        key = f"{name}_fluid_off_packets_rel"
        found[key] = float(np.abs(fluid[name] / packets[name] - 1)[flows <= 16].max())
        if most is not None:
            expected[key] = Check(0.0, most, f"up to 16 flows: {case.why}")
    oscillations = (swept["queue_bytes.max"] - swept["queue_bytes.min"]).transpose("n", "x").values
    found["amplitude_everywhere"] = bool((oscillations > 0).all())
    expected["amplitude_everywhere"] = Check(True, 0, "no fixed point")
    notes = ("100 Gbps, 1000 B; second half of 20 ms", *(("quick: fewer numbers of flows",) if quick else ()))
    data = xr.Dataset(
        {
            "amplitude": variable(("n", "x"), oscillations, "bytes", "largest less smallest queue, fluid"),
            **{f"fluid_{k}": variable("n", v, "bytes", f"queue, {k}, fluid") for k, v in fluid.items()},
            **{f"packets_{k}": variable("n", v, "bytes", f"queue, {k}, packets") for k, v in packets.items()},
        },
        coords={"n": variable("n", flows, "1", "flows"), "x": ("x", values, {"long_name": case.label})},
    )
    files = (_draw(case, data, figure).write(folder / f"{figure.name}.png"), save(data, folder / f"{figure.name}.nc"))
    return Result(
        figure,
        found,
        expected,
        files,
        notes,
        sample=f"{len(flows) * (len(values) + 1)} runs of the fluid and {len(flows)} of packets, of {UNTIL}, of "
        "which the second half counts; nothing in them is random",
    )


def _packets(case: Case, flows: np.ndarray) -> dict[str, np.ndarray]:
    """Statistics of the queue of packets [bytes], flow by flow started at line rate as the fluid's."""
    runs = []
    with Bar("simulating packets", len(flows), "runs") as bar:
        for done, n in enumerate(flows, 1):
            one = case.make(1.0, case.at)
            apart = incast(int(n), rate=RATE, scheme=one.flows[0].scheme, marking=one.links[0].marking)
            runs.append(simulate(apart, UNTIL, engine="packet").summary["queue_bytes"])
            bar(done / len(flows))
    return {name: np.array([run[name] for run in runs]) for name in STATISTICS}


def _draw(case: Case, data: xr.Dataset, figure: Figure) -> Any:
    picture, axes = new_figure(1, 2, size=(WIDTH, 4.4))
    chart, lines = axes[0]
    x, amplitude = data.x.values / case.unit, data.amplitude.values / 1e3
    mesh = chart.pcolormesh(np.arange(len(data.n)), x, amplitude.T, shading="nearest", cmap="viridis")
    picture.colorbar(mesh, ax=chart, label="largest less smallest queue [KB]")
    chart.set(
        xlabel="flows", ylabel=case.label, title="fluid", xticks=np.arange(len(data.n)), xticklabels=data.n.values
    )
    for engine, shade in (("fluid", ENGINES["fluid"]), ("packets", ENGINES["packet"])):
        mean, std, low, high = (data[f"{engine}_{name}"].values / 1e3 for name in STATISTICS)
        lines.fill_between(data.n, low, high, color=shade, alpha=0.2, label=f"{engine}, smallest to largest")
        lines.errorbar(data.n, mean, std, color=shade, lw=1.2, capsize=3, label=f"{engine}, mean and deviation")
    text, unit = case.label.removesuffix("]").split(" [")
    shown = f"{text} {case.at / case.unit:g} {unit}"
    lines.set(xlabel="flows", ylabel="queue [KB]", title=shown, xscale="log", ylim=0)
    lines.set_xticks(data.n.values, [str(n) for n in data.n.values], minor=False)
    lines.minorticks_off()
    lines.grid(alpha=0.3)
    lines.legend(fontsize=8)
    picture.suptitle(f"{figure.name.split('-')[0].upper() if 'dctcp' in figure.name else 'Swift'} at 100 Gbps")
    return picture
