"""DCQCN Figure 10 with packets for the testbed: the second sender's rate, the fluid model against packets (6.1)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fluidcc.builders import incast
from fluidcc.engines.run import ensemble, simulate
from fluidcc.plotting.style import figure as new_figure
from fluidcc.plotting.style import label
from fluidcc.proofs import papers
from fluidcc.proofs.shared import sample
from fluidcc.proofs.shared.runs import GBPS, LINE_RATE, SWITCH, SWITCH_NOTE, WIDTH, save
from fluidcc.proofs.verdict.figure import Check, Figure, Result, reproduces
from fluidcc.results.comparison import Comparison, compare

START, UNTIL, WINDOW = 10e-3, 100e-3, (50e-3, 100e-3)  # s
SAMPLED, SMOOTHED = 50e-6, 1e-3  # s; a NIC's counters average over a millisecond or more
SEEDS, SEEDS_QUICK = 16, 4


@reproduces("dcqcn-fig10-packet", papers.DCQCN, "Figure 10: the model against packets")
def make_fig10_packet(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make the figure."""
    seeds = SEEDS_QUICK if quick else SEEDS
    scenario = incast(2, start=[0.0, START], **SWITCH)
    options: dict[str, Any] = {"window": WINDOW, "sample_interval": SAMPLED}
    fluid = simulate(scenario, UNTIL, estimate_error=False, **options)
    packets = ensemble(scenario, UNTIL, seeds, **options)
    found = compare(fluid, packets)
    # The burst of the second start is the packets' largest queue; a sample may miss its peak, the summary cannot.
    peaks = [trace.summary["queue_bytes"]["max_whole_run"] for trace in packets]
    values = _measure(found) | {
        "queue_peak_fluid_bytes": float(fluid.summary["queue_bytes"]["max_whole_run"]),
        "queue_peak_packet_bytes": float(np.mean(peaks)),
        "pauses": float(sum(trace.summary["pfc_pauses"] for trace in packets)),
    }
    notes = [
        f"packets: mean of {seeds} seeds of RED's marks; rates averaged over {SMOOTHED * 1e3:g} ms",
        "the fluid has its fixed delay tau* = 50 us, packets the delays of their path, 1 us a link",
        SWITCH_NOTE,
    ]
    said = [
        sample.packets(UNTIL, seeds, since=WINDOW[0], seeds=range(1, seeds + 1), drawn=sample.MARKS),
        sample.mean("mean queue", [trace.summary["queue_bytes"]["mean"] for trace in packets], "KB", 1e3),
        sample.mean("its peak", peaks, "KB", 1e3),
        sample.fluid(UNTIL, since=WINDOW[0]),
    ]
    if quick:
        notes.append(f"quick: {seeds} seeds in place of {SEEDS}")
    files = (_draw(found, float(np.mean(peaks))).write(folder / f"{figure.name}.png"), folder / f"{figure.name}.nc")
    save(found.dataset, files[1])
    return Result(figure, values, _expected(found), files, tuple(notes), sample="; ".join(said))


def _smooth(rates: np.ndarray) -> np.ndarray:
    """Mean over the last `SMOOTHED` at each sample; time is the last axis."""
    width = round(SMOOTHED / SAMPLED)
    total = np.cumsum(rates, axis=-1)
    # Before a first whole interval: as much of it as there is.
    before = np.concatenate([np.zeros_like(total[..., :width]), total[..., :-width]], axis=-1)
    count = np.minimum(np.arange(1, rates.shape[-1] + 1), width)
    return (total - before) / count


def _second(found: Comparison) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times [s], and the second sender's smoothed rates: fluid (time,) and packets (seed, time) [bytes/s]."""
    time = found.dataset.time.values
    fluid, packet = (found.dataset[f"rate_{name}"].isel(flow=1).values for name in ("fluid", "packet"))
    after = time >= START + SMOOTHED
    return time[after], _smooth(fluid)[after], _smooth(packet)[:, after]


def _measure(found: Comparison) -> dict[str, Any]:
    time, fluid, packet = _second(found)
    mean = packet.mean(axis=0)
    values: dict[str, Any] = {"rate_2_mean_distance_bytes_per_s": float(np.abs(mean - fluid).mean())}
    for at in (20, 50, 100):
        for name, rates in (("fluid", fluid), ("packet", mean)):
            values[f"rate_2_{name}_at_{at}ms_bytes_per_s"] = float(np.interp(at * 1e-3, time, rates))
    late = packet[:, time >= WINDOW[0]]
    return values | {
        "rate_2_std_of_one_run_bytes_per_s": float(late.std(axis=1).mean()),
        "queue_mean_fluid_bytes": float(found.fluid["queue_bytes"]["mean"]),
        "queue_mean_packet_bytes": float(found.packet["queue_bytes"]["mean"]),
        **{name: float(value) for name, value in found.difference.items() if name in found.tolerance and value},
    }


def _expected(found: Comparison) -> dict[str, Check]:
    tolerance = {k: t for k, t in found.tolerance.items() if k in ("queue_mean_rel", "rate_rel_max")}
    return {
        "rate_2_mean_distance_bytes_per_s": Check(
            0.0, 0.05 * LINE_RATE, "section 6.1: the model closely matches; 5 % of the line rate"
        ),
        **{name: Check(0.0, each.value, f"crosscheck's: {each.reason}") for name, each in tolerance.items()},
        "pauses": Check(0.0, 0.0, "two flows fill a small part of the switch's buffer"),
    }


def _draw(found: Comparison, peak: float) -> Any:
    time, fluid, packet = _second(found)
    picture, axes = new_figure(2, 1, size=(WIDTH, 7.0), sharex=True)
    top, bottom = axes[:, 0]
    place, rates = time * 1e3, packet / GBPS
    top.fill_between(place, rates.min(axis=0), rates.max(axis=0), color="C1", alpha=0.25, lw=0, label="packets, range")
    top.plot(place, rates[0], color="C1", lw=0.7, label="packets, one run")
    top.plot(place, rates.mean(axis=0), color="C3", lw=1.4, label=f"packets, mean of {len(rates)} runs")
    top.plot(place, fluid / GBPS, color="black", lw=1.4, label="fluid model")
    top.axhline(20, color="0.5", lw=0.8, ls="--")
    top.set(ylabel=label("rate of the second sender", "Gbps"), ylim=(0, 30), xlim=(0, 100))
    place = found.dataset.time.values * 1e3
    queues = found.dataset.queue_packet.values / 1e3
    bottom.fill_between(place, queues.min(axis=0), queues.max(axis=0), color="C2", alpha=0.25, lw=0)
    bottom.plot(place, queues.mean(axis=0), color="C2", lw=1.0, label="packets, range and mean")
    bottom.plot(place, found.dataset.queue_fluid.values / 1e3, color="black", lw=1.2, label="fluid model")
    bottom.set(ylabel=label("queue", "KB"), xlabel=label("time", "ms"), ylim=(0, 120))
    bottom.text(11, 109, f"first burst: packets to {peak / 1e3:.0f} KB", fontsize="small")
    for axis in (top, bottom):
        axis.grid(alpha=0.3)
        axis.legend(loc="lower right" if axis is top else "upper right", fontsize="small", ncols=2)
    picture.suptitle("DCQCN Fig. 10: two senders, 40 Gbps, the second starts at 10 ms; model and packets")
    return picture
