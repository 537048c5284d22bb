"""Running the packet engine, and its trace."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from fluidcc.engines.packet import dispatch, layout
from fluidcc.engines.packet.build import PreparedRun, Times, grown_packets, prepare, sampled_classes, sampled_of_flows
from fluidcc.engines.packet.flow_control import flow_control, paused_for
from fluidcc.engines.packet.jit import compiled
from fluidcc.engines.packet.layout import LOGGED, PS, Sim
from fluidcc.errors import InputError
from fluidcc.progress import Bar, waiting
from fluidcc.results import schema
from fluidcc.results.metrics import PERCENTILES, binned_percentile, jain, rate_gap
from fluidcc.results.trace import Trace
from fluidcc.scenario.model import Scenario
from fluidcc.units import TIME, interval, quantity, show

SAMPLES = 2000
_MOST_SAMPLED = 20_000_000  # numbers kept of all flows
_MOST_TIME = 1e6  # s; picoseconds are int64
_AT_ONCE = 1 << 18  # events between reports
_LOG = 1 << 16  # lines to begin with
_KINDS = ("data", "ack", "cnp", "pause", "resume")


def simulate(
    scenario: Scenario,
    until: Any,
    *,
    window: Any = None,
    seed: int | None = None,
    sample_interval: Any = None,
    log: bool = False,
) -> Trace:
    """Run a resolved scenario packet by packet; see `fluidcc.simulate` for the parameters.

    Raises
    ------
    InputError
        If the scenario or an option makes no sense.
    """
    seed = 0 if seed is None else seed
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 1 << 63:
        raise InputError(f"seed: {str(seed)[:20]!r} is no whole number from 0; write for example seed=1")
    times = times_of(scenario, until, window, sample_interval)
    plan = prepare(scenario, times, _LOG if log else 0)
    before = compiled(plan.run)
    began = time.perf_counter()
    with waiting("preparing the packet engine (the first time it is compiled: some 10 s)"):
        warm_up(plan)
    compile_s = time.perf_counter() - began if compiled(plan.run) > before else 0.0
    label = f"simulating {show(times.until / PS, TIME)}"
    with Bar(label, times.until, "ps") as bar:
        sim, wall_s = execute(plan, seed, report=bar)
    summary = summary_of(scenario, plan, sim, {"seed": seed, "compile_s": compile_s, "wall_s": wall_s})
    return Trace(_dataset(scenario, plan, sim, summary))


def warm_up(plan: PreparedRun) -> None:
    """Compile the loop, or load it from the cache: a call that executes nothing."""
    plan.run(plan.sim, -1, 0)


def times_of(scenario: Scenario, until: Any, window: Any, sample_interval: Any) -> Times:
    """Horizon, window and spacing of the samples in picoseconds.

    Raises
    ------
    InputError
        If one of them makes no sense.
    """
    seconds, edges = quantity(until, TIME, "until"), interval(window, "window")
    if not 0 < seconds <= _MOST_TIME:
        raise InputError(f"until: {show(seconds, TIME)} is no horizon; write for example 10ms")
    opens, closes = edges or (seconds / 2, seconds)
    if not 0 <= opens < closes <= seconds * (1 + 1e-9):
        raise InputError(
            f"window: {show(opens, TIME)}:{show(closes, TIME)} does not lie inside the run of {show(seconds, TIME)}; "
            f"write for example {show(seconds / 2, TIME)}:{show(seconds, TIME)}"
        )
    numbers = sum(round(f.multiplicity) for f in scenario.flows) * sampled_of_flows(scenario)
    numbers += 2 * len(scenario.links) * (1 + sampled_classes(scenario))
    most = max(2, _MOST_SAMPLED // numbers)
    if sample_interval is None:
        spacing = seconds / min(SAMPLES, most)
    else:
        spacing = quantity(sample_interval, TIME, "sample interval")
        if not 1 / PS <= spacing <= seconds:
            raise InputError(f"sample interval: {show(spacing, TIME)} is none; write for example 10us")
        if seconds / spacing > most:
            raise InputError(
                f"sample interval: {show(spacing, TIME)} makes too many samples; write at least "
                f"{show(seconds / most, TIME)}"
            )
    until_ps = max(1, round(seconds * PS))
    return Times(until_ps, round(opens * PS), min(until_ps, round(closes * PS)), max(1, round(spacing * PS)))


def execute(plan: PreparedRun, seed: int, *, report: Callable[[float], None] | None = None) -> tuple[Sim, float]:
    """Run a plan to its horizon; the memory at the end, and the seconds that the loop took."""
    sim, until = plan.sim, plan.times.until
    generator = np.random.default_rng(seed)
    sim.uniforms[:] = generator.random(len(sim.uniforms))
    core, wall = sim.core[0], 0.0
    while True:
        began = time.perf_counter()
        status = plan.run(sim, until, _AT_ONCE)
        wall += time.perf_counter() - began
        if status == layout.DONE:
            core.now = until  # also where nothing happens at the end
            break
        if status == layout.GROW_PACKETS:
            sim = grown_packets(sim, len(sim.packets))
        elif status == layout.GROW_HEAP:
            sim = sim._replace(heap=np.concatenate([sim.heap, np.zeros_like(sim.heap)]))
        elif status == layout.GROW_LOG:
            log = layout.records(layout.LOG, 2 * len(sim.log))
            log[: len(sim.log)] = sim.log
            sim = sim._replace(log=log)
        elif status == layout.REFILL:
            left = len(sim.uniforms) - core.drawn
            sim.uniforms[:left] = sim.uniforms[core.drawn :]
            sim.uniforms[left:] = generator.random(len(sim.uniforms) - left)
            core.drawn = 0
        if report is not None:
            report(core.now / until)
    return sim, wall


def link_statistics(sim: Sim, times: Times) -> list[dict[str, Any]]:
    """Exact, time-weighted statistics of every link's queue over the window [bytes], and its utilisation."""
    span = (times.closes - times.opens) / PS
    found: list[dict[str, Any]] = []
    for link in sim.links:
        mean = float(link.area / span)
        rate = sim.ports[link.port].rate
        found.append(
            {
                "queue_bytes": {
                    "mean": mean,
                    "std": math.sqrt(max(link.area2 / span - mean * mean, 0.0)),
                    **{f"p{p}": binned_percentile(link.time, link.area_in, p) for p in PERCENTILES},
                    "min": float(link.least_in_window),
                    "max": float(link.most_in_window),
                    "max_whole_run": float(link.most),
                },
                "utilisation": float((link.sent_close - link.sent_open) / (rate * span)),
            }
        )
    return found


def _classes(plan: PreparedRun) -> tuple[Any, Any]:
    """First flow of each class of the scenario, and how many it has."""
    _, starts, counts = np.unique(plan.members, return_index=True, return_counts=True)
    return starts, counts


def _by_class(plan: PreparedRun, values: Any) -> Any:
    """Mean over the flows of each class; the flows' axis is the last."""
    starts, counts = _classes(plan)
    return np.add.reduceat(values, starts, axis=-1) / counts


def summary_of(scenario: Scenario, plan: PreparedRun, sim: Sim, more: dict[str, Any]) -> dict[str, Any]:
    """Metrics of the window, as `fluidcc.results.schema.SUMMARY` has them; ``more`` is what the loop does not know."""
    times, core = plan.times, sim.core[0]
    span = (times.closes - times.opens) / PS
    starts, counts = _classes(plan)
    rates = (sim.flows["sent_close"] - sim.flows["sent_open"]) / span
    goodput = (sim.flows["acked_close"] - sim.flows["acked_open"]) / span
    mean_rates = _by_class(plan, rates)
    unfinished = np.maximum.reduceat(sim.flows["finish"] < 0, starts)
    took = np.add.reduceat((sim.flows["finish"] - sim.flows["start"]) / PS, starts) / counts
    fct = [
        None if unfinished[m] else float(took[m]) for m, flow in enumerate(scenario.flows) if math.isfinite(flow.size)
    ]
    paused = paused_for(sim).sum()
    values = {
        "flows": len(plan.members),
        "until_s": times.until / PS,
        "window_s": (times.opens / PS, times.closes / PS),
        "rate_bytes_per_s": mean_rates,
        "goodput_bytes_per_s": _by_class(plan, goodput),
        "jain": jain(rates),
        "rate_gap_bytes_per_s": rate_gap(mean_rates),
        "fct_s": fct,
        "events": int(core.events),
        "packets": int(core.delivered),
        "acks": int(core.acks),
        "pfc_pauses": int(core.pauses),
        "pfc_paused_s": float(paused / PS),
        "pfc": flow_control(plan.topology, sim) if core.pfc else None,
        "drops": int(core.dropped),
        "buffer_bytes_max": float(sim.nodes["used_max"].max()),
        **more,
    }
    return schema.summary(schema.PACKET, scenario, link_statistics(sim, times), values)


def _dataset(scenario: Scenario, plan: PreparedRun, sim: Sim, summary: dict[str, Any]) -> xr.Dataset:
    rows = int(sim.core[0].sampled)
    times = np.arange(rows) * (plan.times.interval / PS)
    flows = sim.flow_samples[:rows]
    sent = flows[:, :, 0]
    # The rate of a sample is that of the interval before it; the first shows the interval after.
    steps = np.diff(sent, axis=0) / (plan.times.interval / PS)
    rate = np.concatenate([steps[:1], steps]) if rows > 1 else np.zeros_like(sent)
    running = (sim.flows["start"][None] <= times[:, None] * PS) & (
        (sim.flows["finish"][None] < 0) | (times[:, None] * PS <= sim.flows["finish"][None])
    )
    shown = {
        "rate": rate,
        "pacing_rate": np.where(running, flows[:, :, 2], 0.0),
        "delivered": flows[:, :, 1],
    }
    observables: dict[str, tuple[str, str]] = {}
    for name, number in dispatch.NUMBER.items():
        mine = sim.flows["scheme"] == number
        if not mine.any():
            continue
        for column, (variable, texts) in enumerate(dispatch.MODULES[name].OBSERVABLES.items(), 3):
            if column >= flows.shape[2]:  # of mechanisms, which no flow has
                break
            shown[variable] = np.where(mine[None], flows[:, :, column], shown.get(variable, np.nan))
            observables[variable] = texts
    links = sim.link_samples[:rows]
    arrays = {"queue": links[:, :, 0], "sent": links[:, :, 1]}
    arrays |= {variable: _by_class(plan, values) for variable, values in shown.items()}
    if sampled_classes(scenario):
        classes = sim.class_samples[:rows]
        arrays |= {"class_queue": classes[..., 0], "class_sent": classes[..., 1]}
    if len(sim.log) > 0:
        arrays |= _events(plan, sim)
    return schema.dataset(schema.PACKET, scenario, times, arrays, observables, summary, {"seed": summary["seed"]})


def _events(plan: PreparedRun, sim: Sim) -> dict[str, np.ndarray]:
    """The log as variables over ``event``."""
    log = sim.log[: int(sim.core[0].logged)]
    ports = np.array([f"{port.source} -> {port.target}" for port in plan.topology.ports])
    return {
        "event_time": log["time"] / PS,
        "event_what": np.array(LOGGED)[log["what"]],
        "event_port": ports[log["port"]],
        "event_flow": log["flow"],
        "event_kind": np.array(_KINDS)[log["kind"]],
        **{f"event_{name}": log[name] for name in ("end", "queue", "value")},
    }
