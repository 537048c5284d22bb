"""HPCC appendix A.4: 64 sources start at line rate towards a busy link, with and without window limits.

"The queueing time at the root of the intree will build up to nearly 64 times the base RTT"; the window falls "to about
1/65", and "this packet has observed approximately the peak queue". The last depends on where telemetry is stamped. The
recursion of `fluidcc.theory.recursion.windows`, and HPCC's Algorithm 1 packet by packet.
"""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from fluidcc.builders import incast
from fluidcc.engines.run import simulate
from fluidcc.plotting.style import Picture
from fluidcc.plotting.style import figure as new_figure
from fluidcc.progress import Bar
from fluidcc.proofs import papers
from fluidcc.proofs.shared import sample
from fluidcc.proofs.shared.runs import GBPS, WIDTH, save, variable
from fluidcc.proofs.verdict.figure import Check, Figure, Result, reproduces
from fluidcc.scenario.model import Scenario, resolve
from fluidcc.scenario.round_trips import largest_base_rtt
from fluidcc.schemes.hpcc import HPCC
from fluidcc.schemes.none import NoControl
from fluidcc.theory.recursion.windows import WindowLimit, window_limit

SOURCES, BUSY, ETA = 64, 0.95, 0.95
FINE, QUICK = 1600, 400  # steps of the recursion in a base RTT
RUNS: dict[str, dict[str, Any]] = {
    "limited": {},
    "unlimited": {"limited": False},
    "emission": {"stamp": "departure"},
    "emission, idle": {"stamp": "departure", "background": 0.0},
}
EXISTING = {"scripted": NoControl(), "hpcc": HPCC()}
UNTIL, SPACING = 150, 0.05  # base RTTs
LINE = 100 * GBPS
ABOUT = 0.1  # "about" is read as 10 %


@reproduces("hpcc-a4", papers.HPCC, "appendix A.4: 64-to-1 with and without window limits")
def make_a4(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make the figure."""
    fine = QUICK if quick else FINE
    with Bar("running", 2 * len(RUNS) + len(EXISTING), "runs") as bar:
        runs: dict[str, WindowLimit] = {}
        coarse: dict[str, WindowLimit] = {}
        for k, (name, options) in enumerate(RUNS.items(), 1):
            runs[name] = window_limit(SOURCES, resolution=fine, **options)
            coarse[name] = window_limit(SOURCES, resolution=fine // 2, **options)
            bar(2 * k / (2 * len(RUNS) + len(EXISTING)))
        packets = xr.concat([_packets(kind) for kind in EXISTING], dim="existing")
    limited, unlimited = runs["limited"], runs["unlimited"]
    peak = SOURCES + BUSY - 1
    step_error = abs(unlimited.peak_queue - coarse["unlimited"].peak_queue)
    settled = packets.sel(existing="scripted")
    scenario, T = _scenario(NoControl())
    packet = scenario.wire_packet_of(scenario.flows[1]) / (LINE * T)
    values: dict[str, float | bool] = {
        "peak_queue_over_bdp": limited.peak_queue,
        "last_rtt_over_base": limited.last_rtt,
        "last_utilisation_on_arrival": limited.last_utilization,
        "window_divided_by": 1 / limited.last_window,
        "window_divided_by_with_eta": 1 / window_limit(SOURCES, target=ETA, resolution=fine).last_window,
        "sent_until_then_windows": limited.sent_after_burst,
        "unlimited_peak_queue_over_bdp": unlimited.peak_queue,
        "unlimited_step_error": step_error,
        "last_utilisation_at_emission": runs["emission"].last_utilization,
        "last_utilisation_at_emission_idle": runs["emission, idle"].last_utilization,
        "packet_peak_queue_over_bdp": float(settled.queue.max()),
        "packet_window_divided_by": 1 / float(settled.window.min()),
        "packet_window_at_last_ack_beside_hpcc": float(
            packets.window.sel(existing="hpcc").sel(time=peak + 2, method="nearest")
        ),
        "packet_drained_scripted": bool(settled.queue[-1] < 1),
        "packet_drained_rtts": _drained(packets.sel(existing="hpcc")),
    }
    values["emission_sees_the_peak_beside_an_idle_link"] = runs["emission, idle"].last_utilization > 0.9 * SOURCES
    without = f"{SOURCES}/k ln(1 + k L) more in the L = {peak + 1:g} that follow, k = {peak:g}/{peak + 1:g}"
    expected = {
        "peak_queue_over_bdp": Check(peak, 1e-9, "64 + 0.95 - 1, exact: whole steps; paper: nearly 64"),
        "last_rtt_over_base": Check(65.0, ABOUT * 65, "paper: about 65"),
        "window_divided_by": Check(65.0, ABOUT * 65, "paper: about 1/65"),
        "window_divided_by_with_eta": Check((peak + 1) / ETA, 1e-9, "W = W_init eta/U"),
        "unlimited_peak_queue_over_bdp": Check(
            _without_limit(), 2 * step_error, f"{without}; twice the change that half the step makes"
        ),
        "emission_sees_the_peak_beside_an_idle_link": Check(False, 0, "a packet reports what came behind it"),
        "packet_peak_queue_over_bdp": Check(
            peak, 2 * SOURCES * packet, "two packets of each source: windows end in whole ones, and switches store"
        ),
    }
    notes = (
        f"sizes in line rate times base RTT; recursion with {fine} steps in a base RTT",
        "packets: Algorithm 1 with its own averaging of U, telemetry at emission; beside one existing flow at 0.95 of "
        "the line, scripted (as the recursion has it) or under HPCC",
        "Algorithm 1's least window is a packet: 64 of them are more than a base RTT holds; beside a flow that reacts, "
        "what comes behind a packet falls while the burst drains, and windows open again before its end",
        *((f"quick: {QUICK} steps in a base RTT, not {FINE}",) if quick else ()),
    )
    data = _dataset(runs, packets)
    files = (_draw(runs, packets).write(folder / f"{figure.name}.png"), save(data, folder / f"{figure.name}.nc"))
    return Result(
        figure,
        values,
        expected,
        files,
        notes,
        sample=f"{sample.packets((5 + UNTIL) * T, len(EXISTING))}; the recursion draws nothing",
    )


def _without_limit() -> float:
    """Peak queue of sources that send at W/T, in closed form: U of what was sent at time s is 1 + s q, q the peak."""
    peak = SOURCES + BUSY - 1
    lasts, k = peak + 1, peak / (peak + 1)
    return peak + SOURCES / k * math.log1p(k * lasts) - (1 - BUSY) * lasts


def _scenario(existing: Any) -> tuple[Scenario, float]:
    """64 HPCC sources that start at once at line rate beside an existing flow; and the base RTT [s]."""
    scenario = incast(SOURCES + 1, rate="100Gbps", scheme=HPCC())
    T = largest_base_rtt(scenario)
    first = dataclasses.replace(scenario.flows[0], scheme=existing, initial_rate=BUSY * LINE)
    others = (dataclasses.replace(flow, start=5 * T) for flow in scenario.flows[1:])
    return resolve(dataclasses.replace(scenario, flows=(first, *others))), T


def _packets(kind: str) -> xr.Dataset:
    """Queue, and mean window and U of the new sources, by packets; times in base RTTs after their start."""
    scenario, T = _scenario(EXISTING[kind])
    trace = simulate(scenario, (5 + UNTIL) * T, engine="packet", seed=1, sample_interval=SPACING * T)
    mean = trace.dataset.isel(flow=slice(1, None)).mean("flow")
    found = {
        "queue": ("time", trace["queue"].values[:, 0] / (LINE * T)),
        "window": ("time", mean["window"].values / (LINE * T)),
        "utilisation": ("time", mean["utilisation_estimate"].values),
    }
    dataset = xr.Dataset(found, {"time": trace["time"].values / T - 5, "existing": kind})
    return dataset.isel(time=dataset.time.values > SPACING / 2)


def _drained(run: xr.Dataset) -> float:
    """Find when the queue is first below one bandwidth-delay product after its peak [base RTTs]; inf if never."""
    after = run.isel(time=slice(int(run.queue.values.argmax()), None))
    low = np.flatnonzero(after.queue.values < 1)
    return float(after.time[low[0]]) if low.size else math.inf


def _dataset(runs: dict[str, WindowLimit], packets: xr.Dataset) -> xr.Dataset:
    """Recursion and packets on the times of the packets; NaN after the last acknowledgement of the bursts."""
    at = packets.time.values

    def rows(name: str) -> np.ndarray:
        return np.array([np.interp(at, run.time, getattr(run, name), right=np.nan) for run in runs.values()])

    bdp, windows = "line rate x base RTT", "initial windows"
    return xr.Dataset(
        {
            "queue": variable(("run", "time"), rows("queue"), bdp, "queue, recursion"),
            "window": variable(("run", "time"), rows("window"), windows, "window of a source, recursion"),
            "packet_queue": variable(("existing", "time"), packets.queue.values, bdp, "queue, packets"),
            "packet_window": variable(("existing", "time"), packets.window.values, windows, "mean window, packets"),
            "packet_utilisation": variable(("existing", "time"), packets.utilisation.values, "1", "mean U, packets"),
        },
        {
            "time": variable("time", at, "base RTTs", "time after the start of the sources"),
            "run": list(runs),
            "existing": list(EXISTING),
        },
    )


def _draw(runs: dict[str, WindowLimit], packets: xr.Dataset) -> Picture:
    picture, axes = new_figure(1, 3, size=(1.2 * WIDTH, 4.6))
    queue, window, seen = axes[0]
    limited, unlimited = runs["limited"], runs["unlimited"]
    for axis, name in ((queue, "queue"), (window, "window")):
        axis.plot(unlimited.time, getattr(unlimited, name), "C1-", lw=1.2, label="rate alone, W/T")
        axis.plot(limited.time, getattr(limited, name), "C0-", lw=1.6, label="window limit")
        for kind, style in (("scripted", "k:"), ("hpcc", "k-")):
            text = "packets beside a scripted 0.95" if kind == "scripted" else "packets beside an HPCC flow"
            axis.plot(packets.time, packets[name].sel(existing=kind), style, lw=0.9, label=text)
    queue.set(ylabel="queue [line rate × base RTT]", title="queue at the root", ylim=(0, None))
    window.axhline(1 / 65, color="0.4", ls="--", lw=0.8, label="1/65")
    window.set(yscale="log", ylabel="window of a source [initial windows]", title="window")
    for name, text, style in (
        ("limited", "on arrival", "C0-"),
        ("emission", "at emission", "C2-"),
        ("emission, idle", "at emission, idle link before", "C3-"),
    ):
        seen.plot(runs[name].time, 1 / runs[name].window, style, lw=1.2, label=text)
    seen.axhline(SOURCES + BUSY, color="0.4", ls="--", lw=0.8, label="peak queue + 1")
    seen.set(ylabel="U in the newest ACK", title="U by where it is stamped", ylim=(0, 80), xlim=(0, 70))
    for axis in (queue, window, seen):
        axis.set_xlabel("time [base RTT]")
        axis.legend(fontsize=8)
        axis.grid(alpha=0.3)
    picture.suptitle(f"HPCC A.4: {SOURCES} sources start at line rate towards a link at {BUSY:g}")
    return picture
