"""Filling the memory of a run from a scenario."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from fluidcc.contract.bind import binder
from fluidcc.contract.registry import hybrid_of
from fluidcc.engines.common.bounds import check_bounds, check_packet_size
from fluidcc.engines.common.rules import field
from fluidcc.engines.common.topology import CONTROL_BYTES, Topology, ack_size, single_flows, topology_of
from fluidcc.engines.hybrid import dispatch, layout, packet_scale
from fluidcc.engines.hybrid.calendar import followers_of, leaves
from fluidcc.engines.hybrid.layout import NEVER, RING, Sim, records
from fluidcc.engines.hybrid.region import MOST_EVENTS, MOST_FLOWS, check_events, check_periods, refuse_sharing
from fluidcc.errors import InputError
from fluidcc.scenario.model import RED, Flow, Scenario, refuse_losses
from fluidcc.scenario.routing import refuse_spraying


@dataclasses.dataclass(frozen=True)
class Times:
    """Horizon, window and spacing of the samples [s]; an infinite spacing takes none."""

    until: float
    opens: float
    closes: float
    interval: float


@dataclasses.dataclass(frozen=True)
class Prepared:
    """A run that is laid out; each seed runs in a copy of its memory."""

    sim: Sim
    members: list[int]  # flow class of each flow
    times: Times
    pacing: list[tuple[int, float, float]]  # burst, jitter and spacing of the senders to each link

    def seeded(self, seed: int) -> Sim:
        """Return a copy of the memory for a run with this seed."""
        sim = Sim(*(_copy(part) for part in self.sim))
        sim.core[0].seed = seed
        return sim


def _copy(part: Any) -> Any:
    return type(part)(*map(_copy, part)) if isinstance(part, tuple) else part.copy()


def prepare(scenario: Scenario, times: Times, most_events: float = MOST_EVENTS) -> Prepared:
    """Lay out a resolved scenario in memory.

    Parameters
    ----------
    scenario : Scenario
    times : Times
    most_events : float
        That are waited for, as far as they are known beforehand.

    Raises
    ------
    InputError
        If it has what this engine does not model, or cannot count to.
    """
    members = check(scenario, times.until, most_events)
    single = single_flows(scenario)
    topology = topology_of(single)
    flows = records(layout.FLOW, len(members))
    lengths = np.array([len(single.flows[f].path) for f in range(len(members))])
    flows["first"], flows["hops"] = np.cumsum(lengths) - lengths, lengths
    hops = records(layout.HOP, int(lengths.sum()))
    links = records(layout.LINK, len(scenario.links))
    schemes = [scenario.flows[m].scheme.name for m in members]
    own = dispatch.SCHEMES.from_outside(schemes)
    senders = dispatch.tables(schemes)
    outside, tables, rows = dispatch.SCHEMES.memory({name: schemes.count(name) for name in own})
    tables |= {name: getattr(senders, field(name)) for name in dispatch.SCHEMES.tables}
    _flows(scenario, topology, members, flows, hops, tables, rows)
    _nics(topology, flows)
    followers, waits = followers_of(scenario, members, flows)
    pacing = [_pacing(scenario, i) for i in range(len(links))]
    hops_at, nodes = _links(scenario, topology, flows, hops, links, pacing)
    instants, kinds, rows = _instants(times)
    width = max(int(links["hops"].max()), 1) if links["reading"].any() else 1
    ring = RING if links["reading"].any() else 1
    columns = layout.OBSERVED + max((len(hybrid_of(flow.scheme).OBSERVABLES) for flow in scenario.flows), default=0)
    samples = int((kinds == 0).sum())
    sim = Sim(
        core=records(layout.CORE, 1),
        flows=flows,
        hops=hops,
        links=links,
        calendar=np.full(2 * leaves(len(flows) + len(links) + 1), NEVER),
        hops_at=hops_at,
        trees=np.full((3, nodes), NEVER),
        sums=np.zeros(nodes),
        cnps=np.zeros((len(flows), RING)),
        marks=np.zeros((len(flows), RING if flows["nic_cnp_interval"].any() else 1)),
        followers=followers,
        waits=waits,
        nics=np.zeros(len(flows)),
        output_times=np.zeros((len(links), ring)),
        output_rates=np.zeros((len(links), ring, width)),
        transit_times=np.zeros((len(links), ring)),
        transit_hops=np.zeros((len(links), ring), np.int64),
        looks=instants,
        kinds=kinds,
        rows=rows,
        link_samples=np.zeros((samples, len(links), 2)),
        flow_samples=np.full((samples, len(flows), columns), np.nan),
        senders=senders,
        outside=outside,
        calls=np.zeros((1, 1), np.int64),
    )
    sim = sim._replace(calls=dispatch.SCHEMES.calls(own, sim))
    core = sim.core[0]
    core.until = times.until + float(flows["ahead"].max())
    core.opens, core.closes = times.opens, times.closes
    core.leaves = leaves(len(flows) + len(links) + 1)
    return Prepared(sim, members, times, pacing)


def grown(sim: Sim, status: int) -> Sim:
    """Return the same run with twice the room in the ring that is nearly full."""
    if status in (layout.GROW_CNPS, layout.GROW_MARKS):
        name, head = ("cnps", "head") if status == layout.GROW_CNPS else ("marks", "first_mark")
        ring = np.stack([_unrolled(row, at) for row, at in zip(getattr(sim, name), sim.flows[head], strict=True)])
        sim.flows[head] = 0
        return sim._replace(**{name: ring})
    output = status == layout.GROW_OUTPUT
    names = ("output_times", "output_rates") if output else ("transit_times", "transit_hops")
    heads = sim.links["head" if output else "transit_head"]
    new = {}
    for name in names:
        new[name] = np.stack([_unrolled(row, head) for row, head in zip(getattr(sim, name), heads, strict=True)])
    heads[:] = 0
    return sim._replace(**new)


def _unrolled(ring: Any, head: int) -> Any:
    """Return a ring from its head on, with as much room again behind."""
    return np.concatenate([np.roll(ring, -int(head), axis=0), np.zeros_like(ring)])


def check(scenario: Scenario, until: float = 0.0, most_events: float = MOST_EVENTS) -> list[int]:
    """Check that this engine can run a scenario to a horizon [s]; return the class of each single flow.

    Raises
    ------
    InputError
        If it has what this engine does not model, or cannot count to.
    """
    check_bounds(scenario, "hybrid", MOST_FLOWS)
    check_packet_size(scenario)
    check_periods(scenario)
    members: list[int] = []
    for i, flow in enumerate(scenario.flows):
        if flow.multiplicity != round(flow.multiplicity):
            raise InputError(
                f"flow {i} multiplicity: {flow.multiplicity:g} is no whole number; the hybrid engine has single flows"
            )
        for name, modelled in hybrid_of(flow.scheme).ONLY.items():
            if getattr(flow.scheme, name) != modelled:
                word = {True: "on", False: "off"}.get(modelled, modelled)
                raise InputError(
                    f"flow {i} {name}: the hybrid model of {flow.scheme.name} has only {name}={word}; write that, or "
                    "engine='packet'"
                )
        members += [i] * round(flow.multiplicity)
    _refuse(scenario)
    check_events(scenario, until, most_events)
    return members


def _refuse(scenario: Scenario) -> None:
    """Name what only packets model."""
    for name, given in (("failures", scenario.failures), ("storms", scenario.storms)):
        if given:
            raise InputError(f"{name}: the hybrid's links neither fail nor pause; leave them out, or engine='packet'")
    refuse_losses(scenario, "hybrid")
    refuse_spraying(scenario, "hybrid")
    if len(scenario.classes) > 1:
        raise InputError("classes: the hybrid's links have one queue; leave them out, or write engine='packet'")
    if scenario.timing != "exact":
        raise InputError("timing: the hybrid's times are exact; write timing='exact', or engine='packet'")
    for i, link in enumerate(scenario.links):
        if link.marking is not None and link.marking.max_on is not None:
            raise InputError(f"link {i} max_on: the hybrid has no TCD; write max_on=off, or engine='packet'")
    refuse_sharing(scenario)


def _flows(
    scenario: Scenario, topology: Topology, members: list[int], flows: Any, hops: Any, tables: dict[str, Any],
    rows: dict[str, Any],
) -> None:  # fmt: skip
    bind = binder(scenario)
    bound = {m: bind(scenario.flows[m]) for m in dict.fromkeys(members)}
    places, numbers = dict.fromkeys(tables, 0), dispatch.SCHEMES.numbers(tables)
    alike: dict[Any, int] = {}  # the first flow of each kind, whose numbers the others share
    like, place_of = [], []
    for f, m in enumerate(members):
        flow = scenario.flows[m]
        name = flow.scheme.name
        place_of.append(places[name])
        places[name] += 1
        kind = (id(flow.scheme), flow.path, flow.line_rate, flow.access_delay, flow.egress_delay, flow.size)
        same = alike.setdefault(kind, f)
        like.append(same)
        table = tables[name]
        if same == f:
            row = flows[f]
            row.scheme = numbers[name]
            _way(scenario, topology, flow, f, row)
            dispatch.SCHEMES.side(name).init_state(bound[m], row, table[place_of[f]])
        else:
            table[place_of[f]] = table[place_of[same]]
    first, lengths = flows["first"].copy(), flows["hops"].copy()
    flows[:] = flows[like]
    flows["first"], flows["hops"], flows["row"] = first, lengths, place_of
    names = [scenario.flows[m].scheme.name for m in members]
    for name, its_rows in rows.items():
        flows["row"][[each == name for each in names]] = its_rows
    flows["start"] = flows["ahead"] + [scenario.flows[m].start for m in members]
    flows["initial_rate"] = [scenario.flows[m].initial_rate for m in members]
    hops["flow"] = np.repeat(np.arange(len(members)), lengths)
    hops["link"] = np.concatenate([scenario.flows[m].path for m in members])
    hops["last"][first + lengths - 1] = 1
    hops["packet"] = np.repeat([scenario.wire_packet_of(scenario.flows[m]) for m in members], lengths)


def _way(scenario: Scenario, topology: Topology, flow: Flow, f: int, row: Any) -> None:
    """Fill in a flow's row: the times of its way there and back, and the bytes that go that way."""
    whole = scenario.wire_packet_of(flow)
    packets = math.ceil(flow.size / scenario.packet_size - 1e-9) if math.isfinite(flow.size) else 0
    row.total = flow.size + packets * (whole - scenario.packet_size)
    packet = min(whole, row.total)  # a flow of less than a packet is a short one
    route = [topology.ports[i] for i in topology.routes[topology.forward[f]]]
    back = [topology.ports[i] for i in topology.routes[topology.backward[f]]]
    row.ahead = packet / route[0].rate + route[0].delay
    row.beyond = sum(packet / port.rate + port.delay for port in route[len(flow.path) :])
    row.answer = sum(ack_size(scenario, flow) / port.rate + port.delay for port in back)
    row.back = sum(CONTROL_BYTES / port.rate + port.delay for port in back) + row.ahead
    row.share = scenario.packet_size / whole
    row.burst = round(scenario.burst) * whole
    row.line_rate = flow.line_rate
    row.timer = row.counter = row.repace = row.finish = NEVER


def _nics(topology: Topology, flows: Any) -> None:
    """Number the NICs of the receivers."""
    number: dict[int, int] = {}
    ports = [topology.routes[route][0] for route in topology.backward[: len(flows)]]
    flows["nic"] = [number.setdefault(port, len(number)) for port in ports]
    flows["request"] = NEVER


def _pacing(scenario: Scenario, link: int) -> tuple[int, float, float]:
    """Return burst, jitter, and the time between packets of a burst where the link takes 1 for a packet."""
    fastest = max((flow.line_rate for flow in scenario.flows if link in flow.path), default=math.inf)
    return round(scenario.burst), float(scenario.jitter), float(scenario.links[link].rate / fastest)


def _links(
    scenario: Scenario, topology: Topology, flows: Any, hops: Any, links: Any, pacing: list[tuple[int, float, float]]
) -> tuple[Any, int]:
    """Fill the links; the hops of each in a row, and the length of their trees."""
    order = np.argsort(hops["link"], kind="stable")
    counts = np.bincount(hops["link"], minlength=len(links))
    links["hops"], links["first"] = counts, np.cumsum(counts) - counts
    room = [2 * leaves(int(count)) for count in counts]
    packet = max(scenario.wire_packet_of(flow) for flow in scenario.flows)
    for i, (link, given) in enumerate(zip(links, scenario.links, strict=True)):
        mine = order[link.first : link.first + link.hops]
        hops["place"][mine] = np.arange(len(mine))
        link.number, link.rate, link.tree, link.leaves = i, given.rate, sum(room[:i]), room[i] // 2
        senders = hops["flow"][mine]
        before = (mine - flows["first"][senders]).tolist()  # hops of each
        feeders = {topology.routes[topology.forward[f]][at] for f, at in zip(senders.tolist(), before, strict=True)}
        link.inputs = len(feeders)
        _mark(link, given.marking, packet_scale.meetings(max(int(link.inputs), 1), *pacing[i]), packet)
        link.after = packet / given.rate + given.delay
        link.onward = bool((hops["last"][mine] == 0).any())
        link.reading = link.onward or link.on_departure
        link.xoff, link.room = _levels(scenario, len(feeders))
        link.watch = NEVER
    return order, sum(room)


def _mark(link: Any, marking: RED | None, met: packet_scale.Meetings, packet: float) -> None:
    """Fill in what a link marks."""
    link.zone = layout.EMPTY
    if marking is None:
        return
    found = packet_scale.marks(marking, met, packet)
    link.top = len(found.queues) - 1
    link.queues[: link.top + 1], link.chances[: link.top + 1] = found.queues, found.chances
    link.meeting[: layout.LOADS + 1] = found.meeting
    link.likely = max(1, int(np.searchsorted(found.chances[1:], layout.LIKELY, side="right")))
    link.draining = found.queues[-1] / link.rate
    link.on_departure = marking.mark_on == "departure"


def _levels(scenario: Scenario, feeders: int) -> tuple[float, float]:
    """Return the queue at which a switch that holds nothing else, evenly its senders', pauses them; and its buffer."""
    if scenario.pfc is None:
        return NEVER, scenario.buffer
    if scenario.pfc.xoff is not None:
        return scenario.pfc.xoff * feeders, scenario.buffer
    share = scenario.pfc.alpha * feeders
    return share * scenario.buffer / (1.0 + share) if math.isfinite(scenario.buffer) else NEVER, scenario.buffer


def _instants(times: Times) -> tuple[Any, Any, Any]:
    """Return the instants of all looks in order, what each is for, and rows of the samples."""
    count = int(times.until / times.interval * (1 + 1e-12)) + 1 if math.isfinite(times.interval) else 0
    samples = np.arange(count) * times.interval if count else np.zeros(0)
    looks = np.concatenate([[times.opens], samples, [times.closes]])
    kinds = np.concatenate([[1], np.zeros(count, np.int64), [2]])
    rows = np.concatenate([[0], np.arange(count), [0]])
    order = np.argsort(looks, kind="stable")
    return looks[order], kinds[order], rows[order]
