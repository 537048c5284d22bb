"""Running the packet engine, and its trace."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

import fluidcc
from fluidcc.engines.packet import dispatch, layout
from fluidcc.engines.packet.build import PreparedRun, Times, grown_packets, prepare, sampled_classes, sampled_of_flows
from fluidcc.engines.packet.engine import run
from fluidcc.engines.packet.flow_control import flow_control, paused_for
from fluidcc.engines.packet.jit import compiled
from fluidcc.engines.packet.layout import LOGGED, PS, Sim
from fluidcc.engines.packet.record import percentile
from fluidcc.errors import InputError
from fluidcc.progress import Bar, waiting
from fluidcc.results.trace import Trace, jain_index
from fluidcc.scenario.builders import toml_file as scenario_file
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
    before = compiled(run)
    began = time.perf_counter()
    with waiting("preparing the packet engine (the first time it is compiled: some 10 s)"):
        warm_up(plan.sim)
    compile_s = time.perf_counter() - began if compiled(run) > before else 0.0
    label = f"simulating {show(times.until / PS, TIME)}"
    with Bar(label, times.until, "ps") as bar:
        sim, wall_s = execute(plan, seed, report=bar)
    summary = summary_of(scenario, plan, sim)
    summary |= {"seed": seed, "compile_s": compile_s, "wall_s": wall_s}
    return Trace(_dataset(scenario, plan, sim, summary))


def warm_up(sim: Sim) -> None:
    """Compile the loop, or load it from the cache: a call that executes nothing."""
    run(sim, -1, 0)


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
        status = run(sim, until, _AT_ONCE)
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


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def link_statistics(sim: Sim, times: Times) -> list[dict[str, Any]]:
    """Exact, time-weighted statistics of every link's queue over the window [bytes], and its utilisation."""
    span = (times.closes - times.opens) / PS
    found = []
    for link in sim.links:
        mean = link.area / span
        rate = sim.ports[link.port].rate
        found.append(
            {
                "queue_bytes": {
                    "mean": _number(mean),
                    "std": _number(math.sqrt(max(link.area2 / span - mean * mean, 0.0))),
                    **{f"p{p}": _number(percentile(link, p)) for p in (5, 50, 95, 99)},
                    "min": float(link.least_in_window),
                    "max": float(link.most_in_window),
                    "max_whole_run": float(link.most),
                },
                "utilisation": _number((link.sent_close - link.sent_open) / (rate * span)),
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


def summary_of(scenario: Scenario, plan: PreparedRun, sim: Sim) -> dict[str, Any]:
    """Metrics of the window, keys as in the command line."""
    times, core = plan.times, sim.core[0]
    span = (times.closes - times.opens) / PS
    starts, counts = _classes(plan)
    rates = (sim.flows["sent_close"] - sim.flows["sent_open"]) / span
    goodput = (sim.flows["acked_close"] - sim.flows["acked_open"]) / span
    mean_rates = _by_class(plan, rates)
    links = link_statistics(sim, times)
    busiest = int(np.argmax([link["queue_bytes"]["mean"] for link in links]))
    unfinished = np.maximum.reduceat(sim.flows["finish"] < 0, starts)
    took = np.add.reduceat((sim.flows["finish"] - sim.flows["start"]) / PS, starts) / counts
    fct = [
        None if unfinished[m] else float(took[m]) for m, flow in enumerate(scenario.flows) if math.isfinite(flow.size)
    ]
    paused = paused_for(sim).sum()
    return {
        "engine": "packet",
        "scheme": "+".join(dict.fromkeys(flow.scheme.name for flow in scenario.flows)),
        "flows": len(plan.members),
        "until_s": times.until / PS,
        "window_s": [times.opens / PS, times.closes / PS],
        "queue_bytes": links[busiest]["queue_bytes"],
        "links": [
            {"name": link.name or f"link {i}", **statistics}
            for i, (link, statistics) in enumerate(zip(scenario.links, links, strict=True))
        ],
        "rate_bytes_per_s": [float(rate) for rate in mean_rates],
        "goodput_bytes_per_s": [float(rate) for rate in _by_class(plan, goodput)],
        "jain": _number(jain_index(rates)),
        "utilisation": links[busiest]["utilisation"],
        "rate_gap_bytes_per_s": float(mean_rates.max() - mean_rates.min()),
        "fct_s": fct,
        "events": int(core.events),
        "packets": int(core.delivered),
        "acks": int(core.acks),
        "pfc_pauses": int(core.pauses),
        "pfc_paused_s": float(paused / PS),
        "pfc": flow_control(plan.topology, sim) if core.pfc else None,
        "drops": int(core.dropped),
        "buffer_bytes_max": float(sim.nodes["used_max"].max()),
    }


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
    shown: dict[str, tuple[Any, str, str]] = {
        "rate": (rate, "bytes/s", "sending rate"),
        "pacing_rate": (np.where(running, flows[:, :, 2], 0.0), "bytes/s", "pacing rate"),
        "delivered": (flows[:, :, 1], "bytes", "payload acknowledged so far"),
    }
    for name, number in dispatch.NUMBER.items():
        mine = sim.flows["scheme"] == number
        if not mine.any():
            continue
        for column, (variable, (unit, text)) in enumerate(dispatch.MODULES[name].OBSERVABLES.items(), 3):
            if column >= flows.shape[2]:  # of mechanisms, which no flow has
                break
            values = np.where(mine[None], flows[:, :, column], np.nan)
            if variable in shown:
                values = np.where(mine[None], values, shown[variable][0])
            shown[variable] = (values, unit, text)
    capacity = np.array([link.rate for link in scenario.links])
    links = sim.link_samples[:rows]
    variables: dict[str, Any] = {
        "queue": (("time", "link"), links[:, :, 0], {"units": "bytes", "long_name": "queue"}),
        "sent": (("time", "link"), links[:, :, 1], {"units": "bytes", "long_name": "bytes sent so far"}),
    }
    for variable, (values, unit, text) in shown.items():
        attrs = {"units": unit, "long_name": text}
        variables[variable] = (("time", "flow"), _by_class(plan, values), attrs)
    coordinates: dict[str, Any] = {
        "time": ("time", times, {"units": "s", "long_name": "time"}),
        "link": [link.name or f"link {i}" for i, link in enumerate(scenario.links)],
        "capacity": ("link", capacity, {"units": "bytes/s", "long_name": "nominal rate"}),
        "flow": [flow.name or f"flow {i}" for i, flow in enumerate(scenario.flows)],
        "multiplicity": ("flow", np.array([flow.multiplicity for flow in scenario.flows]), {"units": "1"}),
    }
    if sampled_classes(scenario):
        classes, dimensions = sim.class_samples[:rows], ("time", "link", "traffic_class")
        text = {"units": "bytes", "long_name": "queue of each traffic class"}
        variables["class_queue"] = (dimensions, classes[..., 0], text)
        text = {"units": "bytes", "long_name": "bytes of each traffic class sent so far"}
        variables["class_sent"] = (dimensions, classes[..., 1], text)
        coordinates["traffic_class"] = np.arange(len(scenario.classes))
    if len(sim.log) > 0:
        variables |= _events(plan, sim)
    attrs = {
        "title": f"{summary['scheme']}, {summary['flows']} flows, packet engine",
        "source": f"fluidcc {fluidcc.__version__}",
        "engine": "packet",
        "seed": summary["seed"],
        "scenario": scenario_file.to_toml(scenario),
        "summary": json.dumps(summary),
    }
    return xr.Dataset(variables, coordinates, attrs)


def _events(plan: PreparedRun, sim: Sim) -> dict[str, Any]:
    """The log as variables over ``event``."""
    log = sim.log[: int(sim.core[0].logged)]
    ports = np.array([f"{port.source} -> {port.target}" for port in plan.topology.ports])
    return {
        "event_time": ("event", log["time"] / PS, {"units": "s", "long_name": "time of the event"}),
        "event_what": ("event", np.array(LOGGED)[log["what"]], {"long_name": "what happened"}),
        "event_port": ("event", ports[log["port"]], {"long_name": "where"}),
        "event_flow": ("event", log["flow"], {"long_name": "flow, -1 for none"}),
        "event_kind": ("event", np.array(_KINDS)[log["kind"]], {"long_name": "kind of packet"}),
        "event_end": ("event", log["end"], {"units": "bytes", "long_name": "payload up to the packet's end"}),
        "event_queue": ("event", log["queue"], {"units": "bytes", "long_name": "queue of the port"}),
        "event_value": (
            "event",
            log["value"],
            {"long_name": "marks, class, rate, or bytes in flight beyond the window"},
        ),
    }
