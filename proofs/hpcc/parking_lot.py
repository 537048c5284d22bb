"""HPCC appendix A.3 on a parking lot of two links: why packets give the long flow less, and what registers change.

One flow crosses both links, two one each. The long flow takes the larger of two utilisations. At equilibrium they are
equal, and all flows get the same; where they oscillate out of step the larger of them is above either, and A.3's R =
a/(1 - Ut/U) gives the long flow less. The fluid is at equilibrium, so it is given oscillations of its own: two senders
of a permille of a link.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from scipy.optimize import root_scalar

from fluidcc.builders import parking_lot
from fluidcc.engines.run import simulate
from fluidcc.plotting.style import figure as new_figure
from fluidcc.progress import Bar
from fluidcc.proofs import papers
from fluidcc.proofs.shared import sample
from fluidcc.proofs.shared.runs import GBPS, WIDTH, save, variable
from fluidcc.proofs.verdict.figure import Check, Figure, Result, reproduces
from fluidcc.results.trace import Trace
from fluidcc.scenario.model import Scenario, resolve
from fluidcc.scenario.round_trips import largest_base_rtt
from fluidcc.schemes.hpcc import HPCC, PRESETS
from fluidcc.schemes.none import NoControl

LINE, ETA = 100 * GBPS, 0.95
REGISTERS = {"one": "one register", "per-link": "one for each link"}
INCREASES = (80.0, 320.0, 800.0)  # W_AI, bytes
OSCILLATES = (0.0, 0.001, 0.002, 0.005, 0.01)  # half of what a link's load oscillates by, shares of the link
PERIOD = 4e-6  # s, of the oscillations: half a base RTT of the long flow
REFERENCE = {"one": (29.0, 57.0), "per-link": (48.0, 39.0)}  # Gb/s, long and short flow: ns-3


class Share(NamedTuple):
    """Long-run rates over the line, and by how much the U of the long flow is above that of the short ones."""

    long: float
    short: float
    extra: float


@reproduces("hpcc-parking-lot", papers.HPCC, "A.3: the long flow of a parking lot, and registers")
def make_parking_lot(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make the figure."""
    increases = INCREASES[2:] if quick else INCREASES
    oscillations = OSCILLATES[::2] if quick else OSCILLATES
    goodput = {registers: _goodput(registers) for registers in REGISTERS}
    packets, fluid = {}, {}
    cells = [(registers, w_ai) for registers in REGISTERS for w_ai in increases]
    with Bar("simulating parking lots", len(cells), "settings") as bar:
        for done, (registers, w_ai) in enumerate(cells, 1):
            lot = _lot(registers, w_ai)
            until = 3.2 / w_ai  # s; differences take T^2 C/W_AI or so to shrink
            packets[registers, w_ai] = _share(simulate(lot, until, engine="packet", sample_interval="2us"))
            fluid[registers, w_ai] = [
                _share(simulate(_oscillating(lot, amplitude), until, estimate_error=False, sample_interval="2us"))
                for amplitude in oscillations
            ]
            bar(done / len(cells))
    values: dict[str, float | bool] = {}
    expected: dict[str, Check] = {}
    for registers, pair in goodput.items():
        for which, rate, reference in zip(("long", "short"), pair, REFERENCE[registers], strict=True):
            key = f"{registers}_{which}_goodput_gbps".replace("-", "_")
            values[key] = rate
            expected[key] = Check(reference, 1.0, "an independent simulator's, whole Gb/s")
    for w_ai in increases:
        name, (long, short, extra) = f"wai_{w_ai:.0f}", packets["one", w_ai]
        still, *oscillating = fluid["one", w_ai]
        values |= {
            f"{name}_packet_long_share": long,
            f"{name}_packet_short_share": short,
            f"{name}_packet_extra_u": extra,
            f"{name}_packet_over_a3": long / a3_share(w_ai, extra),
            f"{name}_fluid_over_a3_worst": max((s.long / a3_share(w_ai, s.extra) for s in oscillating), key=_off),
            f"{name}_fluid_still_long_over_short": still.long / still.short,
            f"{name}_per_link_fluid_long_over_short": fluid["per-link", w_ai][-1].long
            / fluid["per-link", w_ai][-1].short,
        }
        a3 = "A.3 at equilibrium, R = a/(1 - Ut/U), with the U that the flows had"
        expected |= {
            f"{name}_packet_over_a3": Check(1.0, 0.1, f"{a3}; whole packets, one run"),
            f"{name}_fluid_over_a3_worst": Check(1.0, 0.05, f"{a3}; means of U over oscillations"),
            f"{name}_fluid_still_long_over_short": Check(1.0, 0.01, "links that do not oscillate: max-min fair (A.3)"),
            f"{name}_per_link_fluid_long_over_short": Check(
                1.0,
                0.03,
                "a register observes its own link, whose mean U an oscillation does not move; to second order",
            ),
        }
    notes = (
        "goodput: the authors' simulator (preset hpcc-sim); all else: Algorithm 1",
        f"oscillations of the fluid: on each link a sender that is on for half of {PERIOD * 1e6:g} us, out of step",
        *(("quick: one W_AI, fewer oscillations",) if quick else ()),
    )
    data = _dataset(increases, oscillations, packets, fluid)
    files = (_draw(goodput, data).write(folder / f"{figure.name}.png"), save(data, folder / f"{figure.name}.nc"))
    return Result(
        figure,
        values,
        expected,
        files,
        notes,
        sample=f"{len(cells)} settings, one run of packets and {len(oscillations)} of the fluid each, of "
        f"{sample.listed([round(3.2e3 / w_ai, 3) for w_ai in increases])} ms, and {len(goodput)} of packets of "
        "the authors' simulator; nothing in them is random",
    )


def _off(ratio: float) -> float:
    return abs(np.log(ratio))


def _lot(registers: str, w_ai: float) -> Scenario:
    return parking_lot(3, rate="100Gbps", scheme=HPCC(registers=registers, w_ai=w_ai))


def _goodput(registers: str) -> tuple[float, float]:
    """Simulate the goodput of the long flow and of a short flow, as the authors' simulator does [Gb/s]."""
    preset = PRESETS["hpcc-sim"]
    scheme = dataclasses.replace(preset.scheme, registers=registers)
    lot = parking_lot(3, rate="100Gbps", scheme=scheme, **preset.network)
    long, *short = simulate(lot, "5ms", engine="packet", window="1ms:5ms").summary["goodput_bytes_per_s"]
    return long / GBPS, float(np.mean(short)) / GBPS


def _oscillating(lot: Scenario, amplitude: float) -> Scenario:
    """Beside HPCC, on each link a sender of twice the oscillation half of the time; never both."""
    if amplitude == 0:
        return lot
    on, off = f"{2 * amplitude * LINE}B/s", "0B/s"
    schedules = (f"0s:{on},{PERIOD / 2}s:{off}", f"0s:{off},{PERIOD / 2}s:{on}")
    senders = tuple(
        dataclasses.replace(
            lot.flows[1 + link],
            scheme=NoControl(schedule=schedule, repeat=PERIOD),
            name=f"oscillation {link}",
            source=f"oscillation {link}",
        )
        for link, schedule in enumerate(schedules)
    )
    return dataclasses.replace(lot, flows=lot.flows + senders)


def _share(trace: Trace) -> Share:
    rate = np.array(trace.summary["rate_bytes_per_s"][:3]) / LINE
    U = trace["utilisation_estimate"].values[:, :3]
    U = U[len(U) // 2 :].mean(axis=0)
    return Share(float(rate[0]), float(rate[1:].mean()), float(U[0] - U[1:].mean()))


def a3_share(w_ai: float, extra: float) -> float:
    """Long flow's share of a link by A.3 at equilibrium, if its U is above that of the short ones by ``extra``."""
    a = w_ai / largest_base_rtt(resolve(_lot("one", w_ai))) / LINE

    def rate(u: float) -> float:
        return a / (1 - ETA / u)

    # The load of a link is its U: with more U, both flows have less.
    u = root_scalar(lambda u: rate(u + extra) + rate(u) - u, bracket=(ETA * (1 + 1e-9), 2.0)).root
    return rate(u + extra)


def _dataset(
    increases: Sequence[float],
    oscillations: Sequence[float],
    packets: dict[tuple[str, float], Share],
    fluid: dict[tuple[str, float], list[Share]],
) -> xr.Dataset:
    names = {
        "long": ("1", "rate of the long flow over the line"),
        "short": ("1", "rate of a short flow over the line"),
        "extra": ("1", "U of the long flow less that of the short ones"),
    }
    data = xr.Dataset(
        coords={
            "registers": list(REGISTERS),
            "w_ai": variable("w_ai", np.array(increases), "bytes", "additive increase W_AI"),
            "amplitude": variable(
                "amplitude", np.array(oscillations), "1", "half of what a link's load oscillates by, over the line"
            ),
        }
    )
    for name, (unit, text) in names.items():
        single = [[getattr(packets[r, w], name) for w in increases] for r in REGISTERS]
        moving = [[[getattr(each, name) for each in fluid[r, w]] for w in increases] for r in REGISTERS]
        data[f"packet_{name}"] = variable(("registers", "w_ai"), np.array(single), unit, f"packets: {text}")
        data[f"fluid_{name}"] = variable(("registers", "w_ai", "amplitude"), np.array(moving), unit, f"fluid: {text}")
    return data


def _draw(goodput: dict[str, tuple[float, float]], data: xr.Dataset) -> Any:
    picture, axes = new_figure(1, 3, size=(WIDTH * 1.2, 4.4))
    bars, *plots = axes[0]
    for k, (registers, text) in enumerate(REGISTERS.items()):
        at = np.arange(2) + 0.4 * k
        bars.bar(at, goodput[registers], width=0.35, color=f"C{k}", label=text)
        bars.plot(at, REFERENCE[registers], "k_", ms=22, label="independent simulator" if k else None)
    bars.set_xticks([0.2, 1.2], ["long flow, two links", "short flows, one link"])
    bars.set(ylabel="goodput [Gbps]", title="packets (hpcc-sim)", ylim=(0, 72))
    extra = np.linspace(0, float(max(data.packet_extra.max(), data.fluid_extra.max())) * 1.05, 100)
    for plot, registers in zip(plots, REGISTERS, strict=True):
        for k, w_ai in enumerate(data.w_ai.values):
            here = data.sel(registers=registers, w_ai=w_ai)
            if registers == "one":
                curve = [100 * a3_share(w_ai, x) for x in extra]
                plot.plot(100 * extra, curve, color=f"C{k}", lw=1, label=f"$W_{{AI}}$ = {w_ai:.0f} B: A.3")
                plot.plot(100 * here.fluid_extra, 100 * here.fluid_long, "o", mfc="none", color=f"C{k}", label="fluid")
                plot.plot(100 * here.packet_extra, 100 * here.packet_long, "s", color=f"C{k}", label="packets")
            else:
                plot.plot(100 * here.amplitude, 100 * here.fluid_long, "o-", mfc="none", color=f"C{k}", lw=0.8)
                plot.axhline(100 * float(here.packet_long), color=f"C{k}", ls=":", lw=1)
        plot.set(ylim=(0, 60), ylabel="long flow [% of the line]", title=REGISTERS[registers])
        plot.grid(alpha=0.3)
    plots[0].set(xlabel="U of the long flow above that of the short ones [%]")
    plots[1].set(xlabel="oscillation of each link's load [%]; dotted: packets")
    bars.legend(fontsize=8)
    plots[0].legend(fontsize=7, ncols=len(data.w_ai))
    picture.suptitle("HPCC on a parking lot of two links, 100 Gbps: the larger of two oscillating utilisations")
    return picture
