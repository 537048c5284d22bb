"""HPCC appendix A.1: the queue of 50 periodic sources, by the exact formula, a Brownian bridge, and packets.

"If the load is 95% of capacity and there are 50 sources then the mean number of packets in the queues is about 3 and
the probability there are more than 20 packets in the queue is about 10^-9. Even if the load is 100% the mean number of
packets in the queue is only about (pi N/8)^0.5." Packets: paced senders without control, each with a random phase.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from fluidcc.engines.run import simulate
from fluidcc.plotting.style import Picture
from fluidcc.plotting.style import figure as new_figure
from fluidcc.progress import Bar
from fluidcc.proofs import papers
from fluidcc.proofs.shared import sample
from fluidcc.proofs.shared.runs import GBPS, WIDTH, save, variable
from fluidcc.proofs.verdict.figure import Check, Figure, Result, reproduces
from fluidcc.scenario.model import Flow, Link, Scenario
from fluidcc.schemes.none import NoControl
from fluidcc.theory.queueing import bridge_exceeds, bridge_mean, exceeds, mean_waiting

SOURCES, LOAD, MANY = 50, 0.95, 20  # "more than 20 packets"
LENGTHS = np.arange(0, 26)  # packets that wait
COUNTS = np.array([10, 20, 50, 100, 200])  # sources, at full load
LINE, PACKET = 100 * GBPS, 1000.0  # bytes/s, bytes
DRAWS, QUICK = 400, 60  # sets of random phases
AT_ONCE = 5000  # flows of one run
SAMPLES = 100  # of a queue in a period
ERRORS = 4  # standard errors
ABOUT = 0.1  # "about" is read as 10 %


class Seen(NamedTuple):
    """Measurements of packet runs, each of shape (draws,) or (draws, lengths)."""

    waiting: np.ndarray
    longer: np.ndarray  # share of the time in which more than `LENGTHS` packets wait


@reproduces("hpcc-a1", papers.HPCC, "appendix A.1: queue of 50 periodic sources")
def make_a1(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make the figure."""
    draws = QUICK if quick else DRAWS
    with Bar("simulating packets", len(COUNTS) + 1, "settings") as bar:
        tail = packets(SOURCES, LOAD, draws, seed=0)
        bar(1 / (len(COUNTS) + 1))
        full = []
        for seed, count in enumerate(COUNTS, 1):
            full.append(packets(int(count), 1.0, draws // 2, seed=seed).waiting)
            bar((seed + 1) / (len(COUNTS) + 1))
    data = _dataset(tail, full)
    values: dict[str, float | bool] = {
        "mean_waiting": mean_waiting(SOURCES, LOAD),
        "mean_in_system": mean_waiting(SOURCES, LOAD) + LOAD,
        "packet_mean_waiting": float(tail.waiting.mean()),
        "log10_p_more_than_20_wait": float(np.log10(exceeds(MANY + 1, SOURCES, LOAD))),
        "log10_p_more_than_20_in_system": float(np.log10(exceeds(MANY, SOURCES, LOAD))),
        "log10_p_more_than_20_wait_bridge": float(np.log10(bridge_exceeds(MANY + 1, SOURCES, LOAD))),
        "packet_tail_off_in_standard_errors": _worst(tail.longer, data.p_exact.values),
        "full_load_bridge_over_exact_50": float((data.work_bridge / data.work_exact).sel(sources=SOURCES)),
        "full_load_bridge_order": _order(COUNTS, (data.work_bridge / data.work_exact - 1).values),
        "full_load_packets_off_in_standard_errors": max(
            _worst(found, mean - 0.5) for found, mean in zip(full, data.work_exact.values, strict=True)
        ),
    }
    expected = {
        "mean_waiting": Check(3.0, 0.5, "paper: about 3, to half its digit; the packet in service not counted"),
        "log10_p_more_than_20_wait": Check(-9.0, 0.5, "paper: about 10^-9; the packet in service not counted"),
        "packet_mean_waiting": Check(
            float(values["mean_waiting"]), ERRORS * _error(tail.waiting), f"exact; {ERRORS} standard errors"
        ),
        "packet_tail_off_in_standard_errors": Check(
            0.0, ERRORS, "lengths that some 1 in 100 of the time exceeds: rarer ones are few draws' affair"
        ),
        "full_load_bridge_over_exact_50": Check(1.0, ABOUT, "paper: about (pi N/8)^0.5"),
        "full_load_bridge_order": Check(-0.5, 0.1, "a packet, over a queue that grows with the root of N"),
        "full_load_packets_off_in_standard_errors": Check(0.0, ERRORS, "exact"),
    }
    notes = (
        "V is the unfinished work in packets; more than k packets wait, without the one in service, when V > k + 1",
        "packets: a set of phases repeats itself for ever, so each link of a run is one draw of them; the mean over "
        "the third period, the distribution from 100 samples of it",
        "at full load the server is always busy, and the mean work is the mean number waiting and a half",
        *((f"quick: {QUICK} sets of phases, not {DRAWS}",) if quick else ()),
    )
    files = (_draw(data).write(folder / f"{figure.name}.png"), save(data, folder / f"{figure.name}.nc"))
    return Result(
        figure,
        values,
        expected,
        files,
        notes,
        sample=f"{draws} draws of {SOURCES} phases, seed 0: "
        f"{sample.mean('mean waiting', tail.waiting.tolist(), 'packets')}; at full load {draws // 2} for "
        f"each of {len(COUNTS)} numbers of sources, seeds 1 to {len(COUNTS)}",
    )


def packets(sources: int, load: float, draws: int, seed: int) -> Seen:
    """Simulate queues of periodic sources with ``draws`` sets of random phases, a link for each set."""
    generator = np.random.default_rng(seed)
    period = sources * PACKET / (load * LINE)
    waiting: list[float] = []
    longer: list[np.ndarray] = []
    while len(waiting) < draws:
        some = min(max(AT_ONCE // sources, 1), draws - len(waiting))
        phases = generator.uniform(0, period, (some, sources))
        trace = simulate(
            _scenario(phases, load * LINE / sources),
            4 * period,
            engine="packet",
            window=(2 * period, 3 * period),
            sample_interval=period / SAMPLES,
        )
        waiting += [link["queue_bytes"]["mean"] / PACKET for link in trace.summary["links"]]
        queue = np.round(trace["queue"].values[2 * SAMPLES : 3 * SAMPLES] / PACKET)
        longer += list((queue[..., None] > LENGTHS).mean(axis=0))
    return Seen(np.array(waiting), np.array(longer))


def _scenario(phases: np.ndarray, rate: float) -> Scenario:
    links = tuple(Link(LINE, "1us", name=f"draw {k}") for k in range(len(phases)))
    flows = tuple(
        Flow((k,), NoControl(), LINE, start=float(phase), initial_rate=rate)
        for k, row in enumerate(phases)
        for phase in row
    )
    return Scenario(links, flows, packet_size=PACKET)


def _error(found: np.ndarray) -> Any:
    """Standard error of the mean over the draws."""
    return found.std(axis=0) / np.sqrt(len(found))


def _worst(found: np.ndarray, exact: Any) -> float:
    """Largest distance of the mean over the draws from exact values that are above 1 %, in standard errors."""
    off = np.abs(found.mean(axis=0) - exact) / np.maximum(_error(found), 1e-300)
    return float(np.max(np.where(np.asarray(exact) > 0.01, off, 0.0)))


def _order(n: np.ndarray, error: np.ndarray) -> float:
    """Slope of an error over n, both in logarithms."""
    return float(np.polyfit(np.log(n), np.log(np.abs(error)), 1)[0])


def _dataset(tail: Seen, full: list[np.ndarray]) -> xr.Dataset:
    length, sources = variable("length", LENGTHS, "packets", "number waiting"), ("sources", COUNTS, {"units": "1"})
    work = "mean unfinished work at full load"
    return xr.Dataset(
        {
            "p_exact": variable("length", exceeds(LENGTHS + 1, SOURCES, LOAD), "1", "P(more wait), formula"),
            "p_bridge": variable("length", bridge_exceeds(LENGTHS + 1, SOURCES, LOAD), "1", "P(more wait), bridge"),
            "p_packet": variable("length", tail.longer.mean(axis=0), "1", "P(more wait), packets"),
            "p_packet_error": variable("length", _error(tail.longer), "1", "standard error of p_packet"),
            "work_exact": variable(
                "sources", np.array([mean_waiting(int(n), 1.0) + 0.5 for n in COUNTS]), "packets", f"{work}, formula"
            ),
            "work_bridge": variable(
                "sources", np.array([bridge_mean(int(n)) for n in COUNTS]), "packets", f"{work}, bridge"
            ),
            "work_packet": variable("sources", np.array([f.mean() + 0.5 for f in full]), "packets", f"{work}, packets"),
            "work_packet_error": variable(
                "sources", np.array([_error(f) for f in full]), "packets", "standard error of work_packet"
            ),
        },
        {"length": length, "sources": sources},
    )


def _draw(data: xr.Dataset) -> Picture:
    picture, axes = new_figure(1, 2, size=(WIDTH, 4.4))
    tail, full = axes[0]
    tail.plot(data.length, data.p_exact, "k-", lw=1, label="N·D/D/1, exact")
    tail.plot(data.length, data.p_bridge, "C1--", lw=1, label="Brownian bridge")
    seen = data.p_packet.values > 0
    bars = np.minimum(2 * data.p_packet_error.values, 0.99 * data.p_packet.values)[seen]
    tail.errorbar(data.length[seen], data.p_packet[seen], bars, fmt="s", color="C0", ms=4, label="packets, ± 2 s.e.")
    tail.plot(MANY, 1e-9, "*", color="crimson", ms=11, label="paper: about $10^{-9}$")
    tail.set(yscale="log", ylim=(1e-13, 2), xlabel="x [packets]", ylabel="P(more than x packets wait)")
    tail.set(title=f"{SOURCES} sources, load {LOAD:g}")
    full.plot(data.sources, data.work_exact, "k-", lw=1, label="N·D/D/1, exact")
    full.plot(data.sources, data.work_bridge, "C1--", lw=1, label="Brownian bridge, $(\\pi N/8)^{1/2}$")
    errors = 2 * data.work_packet_error
    full.errorbar(data.sources, data.work_packet, errors, fmt="s", color="C0", ms=4, label="packets, ± 2 s.e.")
    full.set(xscale="log", yscale="log", xlabel="sources N", ylabel="mean unfinished work [packets]", title="load 1")
    full.set_xticks(data.sources.values, labels=[str(n) for n in data.sources.values])
    full.set_yticks([1, 2, 5, 10], labels=["1", "2", "5", "10"])
    full.minorticks_off()
    for axis in (tail, full):
        axis.legend(fontsize=8)
        axis.grid(alpha=0.3)
    picture.suptitle("HPCC A.1: the queue of periodic sources")
    return picture
