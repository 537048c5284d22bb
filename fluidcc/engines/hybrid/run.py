"""Running the hybrid engine, and its trace."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from fluidcc.engines.common.bounds import horizon_and_window, seed_of
from fluidcc.engines.common.jit import compiled
from fluidcc.engines.common.outcome import Outcome, QueueMoments
from fluidcc.engines.hybrid import dispatch, engine, layout, packet_scale
from fluidcc.engines.hybrid.build import Prepared, Times, grown, prepare
from fluidcc.engines.hybrid.layout import Sim
from fluidcc.engines.hybrid.queue import in_bins, lengths_of
from fluidcc.engines.hybrid.region import BeyondBufferError
from fluidcc.engines.packet.run import times_of
from fluidcc.errors import InputError
from fluidcc.progress import Bar
from fluidcc.results import schema
from fluidcc.results.trace import Trace, trace_of
from fluidcc.scenario.model import Scenario
from fluidcc.units import TIME, show

_AT_ONCE = 1 << 19  # events between reports
_BETWEEN_LOOKS = 1 << 14  # and where a queue may end a run
_STILL = 1 << 22  # events at one instant: flows are at most `MOST_FLOWS`, and each does a few things at once


def simulate(
    scenario: Scenario, until: Any, *, window: Any = None, seed: int | None = None, sample_interval: Any = None
) -> Trace:
    """Run a resolved scenario from event to event; see `fluidcc.simulate` for the parameters.

    Raises
    ------
    InputError
        If the scenario or an option makes no sense.
    """
    seed = seed_of(seed)
    prepared = prepare(scenario, times_in_seconds(scenario, until, window, sample_interval))
    before = compiled(engine.run)
    began = time.perf_counter()
    warm_up(prepared)
    compile_s = time.perf_counter() - began if compiled(engine.run) > before else 0.0
    with Bar(f"simulating {show(prepared.times.until, TIME)}", round(prepared.times.until * 1e12), "ps") as bar:
        sim, wall_s = execute(prepared, seed, report=bar)
    summary = summary_of(scenario, prepared, sim, {"seed": seed, "compile_s": compile_s, "wall_s": wall_s})
    return _trace(scenario, prepared, sim, summary)


def warm_up(prepared: Prepared) -> None:
    """Compile the loop, or load it from the cache: a call that executes nothing."""
    engine.run(prepared.seeded(0), 0)


def times_in_seconds(scenario: Scenario, until: Any, window: Any, sample_interval: Any) -> Times:
    """Horizon, window and spacing of the samples.

    Raises
    ------
    InputError
        If one of them makes no sense.
    """
    found = times_of(scenario, until, window, sample_interval)
    return Times(*(value / 1e12 for value in (found.until, found.opens, found.closes, found.interval)))


def unsampled(until: Any, window: Any) -> Times:
    """Horizon and window of a run of which no samples are taken.

    Raises
    ------
    InputError
        If one of them makes no sense.
    """
    seconds, opens, closes = horizon_and_window(until, window)
    return Times(seconds, opens, closes, math.inf)


def execute(
    prepared: Prepared,
    seed: int,
    *,
    report: Callable[[float], None] | None = None,
    most: float = math.inf,
    within_buffer: bool = False,
) -> tuple[Sim, float]:
    """Run to the horizon; the memory at the end, and the seconds that the loop took.

    Raises
    ------
    BeyondBufferError
        Soon after a queue is longer than its buffer, if it is to stay within.
    InputError
        If it takes more than ``most`` events, or time stands still: such a run must not continue forever.
    """
    sim, wall = prepared.seeded(seed), 0.0
    last, then = -1.0, 0  # an instant, and how many events there had been as it came
    while True:
        began = time.perf_counter()
        status = engine.run(sim, _BETWEEN_LOOKS if within_buffer else _AT_ONCE)
        wall += time.perf_counter() - began
        if within_buffer and bool((sim.links["most"] > sim.links["room"]).any()):
            raise BeyondBufferError
        if status == layout.DONE:
            return sim, wall
        if status != layout.RUNNING:
            sim = grown(sim, status)
        now, events = float(sim.core[0].now), int(sim.core[0].events)
        if now > last:
            last, then = now, events
        if events > most or events - then > _STILL:
            how = "takes too many to wait for" if events > most else "stands still"
            raise InputError(
                f"values: after {events:.2g} events the hybrid is at {show(now, TIME)} of "
                f"{show(prepared.times.until, TIME)}, and {how}; write values nearer to a network's, or a shorter until"
            )
        if report is not None:
            report(min(now / prepared.times.until, 1.0))


def outcome_of(prepared: Prepared, sim: Sim) -> Outcome:
    """Return time-weighted moments of every link's queue over the window, and the flows' rates."""
    span, flows = prepared.times.closes - prepared.times.opens, sim.flows
    rates = (flows["sent_close"] - flows["sent_open"]) / span
    goodput = flows["share"] * (flows["acked_close"] - flows["acked_open"]) / span
    links = [_moments(prepared, sim, link, rates) for link in sim.links]
    return Outcome(links, prepared.members, rates, goodput, int(sim.flows["cnps"].sum()))


def _moments(prepared: Prepared, sim: Sim, link: Any, rates: np.ndarray[Any, Any]) -> QueueMoments:
    """Compute one link's moments from the fluid's lines and the packets that meet."""
    span = prepared.times.closes - prepared.times.opens
    hops = sim.hops[sim.hops_at[link.first : link.first + link.hops]]
    flows = min(packet_scale.as_many_equal(rates[hops["flow"]]), max(int(link.inputs), 1))
    shares, idle = packet_scale.meetings(flows, *prepared.pacing[link.number]).waiting, link.idle[: layout.LOADS + 1]
    packet = float(hops["packet"].max(initial=1.0))
    met = packet * np.arange(shares.shape[1])
    alone, busy = idle @ shares, max(span - float(idle.sum()), 0.0)  # times without and with a queue of the fluid
    mean, square = float(shares[-1] @ met), float(shares[-1] @ met**2)
    lengths, times = packet_scale.whole(*lengths_of(link, span), packet)
    lengths = np.concatenate([met, np.add.outer(lengths, met).ravel()])
    times = np.concatenate([alone, np.outer(times, shares[-1]).ravel()])
    lasting = met[alone[::-1].cumsum()[::-1] * link.rate >= max(met[1:2], default=0.0)]  # for the time of a packet
    return QueueMoments(
        span,
        float(link.area + busy * mean + alone @ met),
        float(link.area2 + 2.0 * mean * link.area + busy * square + alone @ met**2),
        float(link.least_in_window),
        float(max(lasting.max(initial=0.0), link.most_in_window + mean * (link.most_in_window > 0))),
        float(max(lasting.max(initial=0.0), link.most + mean * (link.most > 0))),
        float((link.sent_close - link.sent_open) / (link.rate * span)),
        *in_bins(lengths, times),
    )


def summary_of(scenario: Scenario, prepared: Prepared, sim: Sim, more: dict[str, Any]) -> dict[str, Any]:
    """Metrics of the window, as `fluidcc.results.schema.SUMMARY` has them; ``more`` is what the loop does not know."""
    times, core, flows = prepared.times, sim.core[0], sim.flows
    span, found = times.closes - times.opens, outcome_of(prepared, sim)
    finish = np.where(flows["finish"] <= times.until, flows["finish"], np.nan)
    began = flows["start"] - flows["ahead"]
    took = found.by_class(finish - began)
    _, classes = np.unique(prepared.members, return_index=True)
    first = np.minimum.reduceat(np.where(began <= times.until, began, np.nan), classes)
    values = {
        "flows": len(flows),
        "until_s": times.until,
        "window_s": (times.opens, times.closes),
        **found.of_flows(),
        "fct_s": [float(took[m]) for m, flow in enumerate(scenario.flows) if math.isfinite(flow.size)],
        "began_s": first,
        "events": int(core.events),
        "marks": int(core.marks),
        "cnps": int(core.cnps),
        "above_xoff": float(sim.links["above_xoff"].max() / span) if scenario.pfc is not None else None,
        "above_buffer": float(sim.links["above_room"].max() / span) if math.isfinite(scenario.buffer) else None,
        **more,
    }
    return schema.summary(schema.HYBRID, scenario, [link.statistics() for link in found.links], values)


def _rates(prepared: Prepared, sim: Sim) -> np.ndarray[Any, Any]:
    """Return each flow's sending rate at each sample, over the interval before it; the first shows the one after."""
    sent = sim.flow_samples[:, :, 0]
    steps = np.diff(sent, axis=0) / prepared.times.interval
    return np.concatenate([steps[:1], steps]) if len(sent) > 1 else np.zeros_like(sent)


def sampled_rates(prepared: Prepared, sim: Sim) -> np.ndarray[Any, Any]:
    """Sending rates at the samples, (samples, classes), each the mean of its class [bytes/s]."""
    return outcome_of(prepared, sim).by_class(_rates(prepared, sim))


def _trace(scenario: Scenario, prepared: Prepared, sim: Sim, summary: dict[str, Any]) -> Trace:
    times = prepared.times
    samples = sim.flow_samples
    shown = {"rate": _rates(prepared, sim), "pacing_rate": samples[:, :, 1]}
    observables: dict[str, tuple[str, str]] = {}
    numbers = dispatch.SCHEMES.numbers(dict.fromkeys(flow.scheme.name for flow in scenario.flows))
    for name, number in sorted(numbers.items(), key=lambda each: each[1]):
        mine = sim.flows["scheme"] == number
        for column, (variable, texts) in enumerate(dispatch.SCHEMES.side(name).OBSERVABLES.items(), layout.OBSERVED):
            shown[variable] = np.where(mine[None], samples[:, :, column], shown.get(variable, np.nan))
            observables[variable] = texts
    found = outcome_of(prepared, sim)
    arrays = {"queue": sim.link_samples[:, :, 0], "sent": sim.link_samples[:, :, 1]}
    arrays |= {variable: found.by_class(values) for variable, values in shown.items()}
    instants = np.arange(len(samples)) * times.interval
    return trace_of(
        schema.dataset(schema.HYBRID, scenario, instants, arrays, observables, summary, {"seed": summary["seed"]})
    )
