"""Running the packet engine, and its trace."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from fluidcc.engines.common.bounds import horizon_and_window, seed_of
from fluidcc.engines.common.jit import compiled
from fluidcc.engines.common.outcome import Outcome, QueueMoments
from fluidcc.engines.packet import dispatch, layout
from fluidcc.engines.packet.build import PreparedRun, Times, grown_packets, prepare, sampled_classes, sampled_of_flows
from fluidcc.engines.packet.calendar import grown_calendar
from fluidcc.engines.packet.dependents import began
from fluidcc.engines.packet.layout import LOGGED, PS, Sim
from fluidcc.engines.packet.record import flow_control, paused_for
from fluidcc.errors import InputError
from fluidcc.progress import Bar
from fluidcc.results import schema
from fluidcc.results.memory_limit import limit, require
from fluidcc.results.trace import Trace, trace_of
from fluidcc.scenario.model import Scenario
from fluidcc.units import TIME, quantity, show

SAMPLES = 2000
_MOST_SAMPLED = 20_000_000  # numbers kept of all flows
_AT_ONCE = 1 << 18  # events between reports
_LOG = 1 << 16  # lines to begin with
_KINDS = ("data", "ack", "cnp", "header", "nack", "pause", "resume")


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
    seed = seed_of(seed)
    times = times_of(scenario, until, window, sample_interval)
    plan = prepare(scenario, times, _LOG if log else 0)
    before = compiled(plan.run)
    began = time.perf_counter()
    warm_up(plan)
    compile_s = time.perf_counter() - began if compiled(plan.run) > before else 0.0
    label = f"simulating {show(times.until / PS, TIME)}"
    with Bar(label, times.until, "ps") as bar:
        return traced(scenario, plan, seed, report=bar, compile_s=compile_s)


def traced(
    scenario: Scenario,
    plan: PreparedRun,
    seed: int,
    *,
    report: Callable[[float], None] | None = None,
    compile_s: float = 0.0,
) -> Trace:
    """Run a plan of a resolved scenario to its horizon, without a bar of its own.

    Raises
    ------
    InputError
        If it takes more memory than may be taken.
    """
    sim, wall_s = execute(plan, seed, report=report)
    summary = summary_of(scenario, plan, sim, {"seed": seed, "compile_s": compile_s, "wall_s": wall_s})
    return _trace(scenario, plan, sim, summary)


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
    seconds, opens, closes = horizon_and_window(until, window)
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
    """Run a plan to its horizon; the memory at the end, and the seconds that the loop took.

    Raises
    ------
    InputError
        If it takes more memory than may be taken, or a scheme makes a rate or a window NaN.
    """
    sim, until = plan.sim, plan.times.until
    generator = np.random.default_rng(seed)
    sim.uniforms[:] = generator.random(len(sim.uniforms))
    core, wall, most = sim.core[0], 0.0, limit()

    def require_twice(array: Any, what: str) -> None:
        """Require memory for an array of twice the length in addition to this one."""
        require(3 * array.nbytes, most, f"{what} take", "give a shorter horizon, shorter delays or slower links")

    while True:
        began = time.perf_counter()
        status = plan.run(sim, until, _AT_ONCE)
        wall += time.perf_counter() - began
        if status == layout.DONE:
            core.now = until  # also where nothing happens at the end
            break
        if status == layout.GROW_PACKETS:
            require_twice(sim.packets, f"{len(sim.packets)} packets under way")
            sim = grown_packets(sim, len(sim.packets))
        elif status == layout.GROW_CALENDAR:
            require_twice(sim.calendar, f"{core.pending} events to come")
            sim = sim._replace(calendar=grown_calendar(core, sim.calendar))
        elif status == layout.GROW_LOG:
            require_twice(sim.log, f"{len(sim.log)} lines of the log")
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
    refuse_undefined(plan, sim)
    return sim, wall


def refuse_undefined(plan: PreparedRun, sim: Sim) -> None:
    """Refuse a run in which a scheme made a rate or a window NaN, which stays one to the end.

    Raises
    ------
    InputError
        If there is such a flow.
    """
    for name in ("rate", "window"):
        undefined = np.isnan(sim.flows[name])
        if undefined.any():
            f = int(np.argmax(undefined))
            raise InputError(
                f"flow {plan.members[f]}: its scheme {plan.schemes[f]} made its {name} NaN; guard what divides by 0 or "
                "takes the root or logarithm of a negative number, within xp.where too: xp.where(n > 0, x / "
                "xp.maximum(n, 1e-9), 0.0)"
            )


def outcome_of(plan: PreparedRun, sim: Sim) -> Outcome:
    """Exact, time-weighted moments of every link's queue over the window, and the flows' rates."""
    span = (plan.times.closes - plan.times.opens) / PS
    links = [
        QueueMoments(
            span,
            float(link.area),
            float(link.area2),
            float(link.least_in_window),
            float(link.most_in_window),
            float(link.most),
            float((link.sent_close - link.sent_open) / (sim.ports[link.port].rate * span)),
            np.concatenate([link.near[:1], bins[1:, 0]]),
            np.concatenate([link.near[1:], bins[1:, 1]]),
        )
        for link, bins in zip(sim.links, sim.bins, strict=True)
    ]
    rates = (sim.flows["sent_close"] - sim.flows["sent_open"]) / span
    goodput = (sim.flows["confirmed_close"] - sim.flows["confirmed_open"]) / span
    return Outcome(links, plan.members, rates, goodput, int(sim.flows["cnps"].sum()), by_packets=True)


def summary_of(scenario: Scenario, plan: PreparedRun, sim: Sim, more: dict[str, Any]) -> dict[str, Any]:
    """Metrics of the window, as `fluidcc.results.schema.SUMMARY` has them; ``more`` is what the loop does not know."""
    times, core, found = plan.times, sim.core[0], outcome_of(plan, sim)
    _, starts, counts = np.unique(plan.members, return_index=True, return_counts=True)
    unfinished = np.maximum.reduceat(sim.flows["finish"] < 0, starts)
    took = np.add.reduceat((sim.flows["finish"] - sim.flows["start"]) / PS, starts) / counts
    first = np.minimum.reduceat(began(sim), starts)
    fct = [
        None if unfinished[m] else float(took[m]) for m, flow in enumerate(scenario.flows) if math.isfinite(flow.size)
    ]
    paused = paused_for(sim).sum()
    values = {
        "flows": len(plan.members),
        "until_s": times.until / PS,
        "window_s": (times.opens / PS, times.closes / PS),
        **found.of_flows(),
        "fct_s": fct,
        "began_s": [None if each == layout.NEVER else each / PS for each in first.tolist()],
        "events": int(core.events),
        "packets": int(core.delivered),
        "acks": int(core.acks),
        "pfc_pauses": int(core.pauses),
        "pfc_paused_s": float(paused / PS),
        "pfc": flow_control(plan.topology, sim) if core.pfc else None,
        "reordered": int(sim.flows["disorder"].sum()),
        "drops": int(core.dropped),
        "trims": int(core.trimmed),
        "retransmissions": int(core.retransmissions),
        "buffer_bytes_max": float(sim.nodes["used_max"].max()),
        **more,
    }
    return schema.summary(schema.PACKET, scenario, [link.statistics() for link in found.links], values)


def _trace(scenario: Scenario, plan: PreparedRun, sim: Sim, summary: dict[str, Any]) -> Trace:
    rows = int(sim.core[0].sampled)
    times = np.arange(rows) * (plan.times.interval / PS)
    flows = sim.flow_samples[:rows]
    sent = flows[:, :, 0]
    # The rate of a sample is that of the interval before it; the first shows the interval after.
    steps = np.diff(sent, axis=0) / (plan.times.interval / PS)
    rate = np.concatenate([steps[:1], steps]) if rows > 1 else np.zeros_like(sent)
    running = (began(sim)[None] <= times[:, None] * PS) & (
        (sim.flows["finish"][None] < 0) | (times[:, None] * PS <= sim.flows["finish"][None])
    )
    shown = {
        "rate": rate,
        "pacing_rate": np.where(running, flows[:, :, 2], 0.0),
        "delivered": flows[:, :, 1],
    }
    observables: dict[str, tuple[str, str]] = {}
    numbers = dispatch.SCHEMES.numbers(dict.fromkeys(flow.scheme.name for flow in scenario.flows))
    for name, number in sorted(numbers.items(), key=lambda each: each[1]):
        mine = sim.flows["scheme"] == number
        if not mine.any():
            continue
        for column, (variable, texts) in enumerate(dispatch.SCHEMES.side(name).OBSERVABLES.items(), layout.SAMPLED):
            if column >= flows.shape[2]:  # of mechanisms, which no flow has
                break
            shown[variable] = np.where(mine[None], flows[:, :, column], shown.get(variable, np.nan))
            observables[variable] = texts
    links = sim.link_samples[:rows]
    arrays = {"queue": links[:, :, 0], "sent": links[:, :, 1]}
    found = outcome_of(plan, sim)
    arrays |= {variable: found.by_class(values) for variable, values in shown.items()}
    if sampled_classes(scenario):
        classes = sim.class_samples[:rows]
        arrays |= {"class_queue": classes[..., 0], "class_sent": classes[..., 1]}
    if sim.log.size:
        arrays |= _events(plan, sim)
    return trace_of(
        schema.dataset(schema.PACKET, scenario, times, arrays, observables, summary, {"seed": summary["seed"]})
    )


def _events(plan: PreparedRun, sim: Sim) -> dict[str, np.ndarray]:
    """Return the log as variables over ``event``."""
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
