"""Filling the memory of a run from a scenario: among it ports, their transmission times, and their queues' order."""

from __future__ import annotations

import dataclasses
import functools
import math
import mmap
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from fluidcc.contract.bind import binder
from fluidcc.engines.common.bounds import check_bounds, check_packet_size
from fluidcc.engines.common.topology import CONTROL_BYTES, Topology, ack_size, single_flows, topology_of, whole_bytes
from fluidcc.engines.packet import dispatch, engine, layout
from fluidcc.engines.packet.calendar import SHIFT, begin, new_calendar
from fluidcc.engines.packet.dependents import followers_of
from fluidcc.engines.packet.dispatch import packet_of
from fluidcc.engines.packet.layout import NEVER, PS, QUEUES, UNLIMITED, Sim, records
from fluidcc.engines.packet.paths import MODES, Spray, reroutes
from fluidcc.engines.packet.recovery import bitmaps_of, check_timeouts, give_room, set_trimming, settle_losses
from fluidcc.engines.packet.switch import nodes_of, set_thresholds
from fluidcc.errors import InputError
from fluidcc.scenario.model import Flow, Scenario
from fluidcc.scenario.round_trips import likeness
from fluidcc.units import SIZE, show

HEADERS = 0.25  # share of a link that trimmed headers have where others wait (UE 4.1)
_NUMBERS = 1 << 16  # random numbers at a time
_EVENTS = 1024  # to come, to begin with
_MARGIN = 32  # of what one event may need, if no link fails


def ports_of(topology: Topology) -> Any:
    """Records of all ports."""
    ports = records(layout.PORT, len(topology.ports))
    ports["queues"]["head"] = ports["queues"]["tail"] = -1
    columns = ("rate", "delay", "node", "peer", "reverse", "host", "link", "loss")
    index = {name: n for n, name in enumerate(topology.nodes)}
    told = [
        (
            port.rate,
            round(port.delay * PS),
            index[port.source],
            index[port.target],
            port.reverse,
            port.source in topology.hosts,
            port.link,
            port.loss,
        )
        for port in topology.ports
    ]
    for name, values in zip(columns, zip(*told, strict=True), strict=True):
        ports[name] = values
    ports["wire_head"] = ports["wire_tail"] = ports["turn"] = ports["max_on"] = -1
    ports["wake"] = ports["paused_since"] = NEVER
    ports["turns"] = ports["fresh"] = 1
    ports["kmin"] = ports["kmax"] = math.inf
    for row, port in zip(ports, topology.ports, strict=True):
        if port.marking is not None:
            row.kmin, row.kmax, row.pmax = port.marking.kmin, port.marking.kmax, port.marking.pmax
            row.counts_sending = port.marking.counts_sending
            row.in_cells, row.cell = port.marking.cell is not None, port.marking.cell or 0
            row.on_departure = port.marking.mark_on == "departure"
            row.max_on = -1 if port.marking.max_on is None else round(port.marking.max_on * PS)
    return ports


def ticks_of(scenario: Scenario, topology: Topology, ports: Any, largest: int) -> Any:
    """Transmission time [ps] of every size of packet at every rate; writes each port's row."""
    rates = sorted({port.rate for port in topology.ports})
    ticks = np.zeros((len(rates), largest + 1), np.int64)
    for r, rate in enumerate(rates):
        ticks[r] = _ticks(rate, largest, scenario.timing == "exact")
    ports["ticks"] = np.searchsorted(rates, [port.rate for port in topology.ports])
    return ticks


@functools.lru_cache(maxsize=64)  # a sweep asks for the same again and again, and fractions are slow
def _ticks(rate: float, largest: int, exact: bool) -> tuple[int, ...]:
    """Transmission time [ps] of every size of packet up to the largest."""
    per_byte = PS / Fraction(rate)
    return tuple(round(size * per_byte) if exact else _simulator_time(size, rate) for size in range(largest + 1))


def _simulator_time(size: int, rate: float) -> int:
    """Transmission time [ps] in the public simulator: seconds as a double, 64.64 fixed point, whole nanoseconds."""
    fixed = int(Fraction(size * 8.0 / (rate * 8.0)) * 2**64)
    return fixed * 10**9 // 2**64 * 1000


def weights_of(scenario: Scenario, largest: int) -> Any:
    """Priority and quantum [bytes] of each queue; a round serves at least one packet of each class.

    Raises
    ------
    InputError
        If there are more classes than queues.
    """
    if len(scenario.classes) > QUEUES - 1:
        raise InputError(f"classes: {len(scenario.classes)} are more than a port's {QUEUES - 1} queues")
    if scenario.loss_recovery == "trimming" and len(scenario.classes) == QUEUES - 1:
        raise InputError(f"classes: {QUEUES - 1} leave trimmed headers no queue; write {QUEUES - 2} at most")
    weights = np.zeros((QUEUES, 2))
    least = min(each.weight for each in scenario.classes)
    for q, each in enumerate(scenario.classes, 1):
        weights[q] = each.priority, each.weight / least * largest
    if scenario.loss_recovery == "trimming":  # headers go with the classes of the highest priority
        highest = max(each.priority for each in scenario.classes)
        beside = sum(quantum for priority, quantum in weights if priority == highest)
        weights[1 + len(scenario.classes)] = highest, beside * HEADERS / (1 - HEADERS)
    return weights


@dataclasses.dataclass(frozen=True)
class Times:
    """Horizon, window and spacing of the samples [ps]."""

    until: int
    opens: int
    closes: int
    interval: int


@dataclasses.dataclass(frozen=True)
class PreparedRun:
    """A run that is ready to go."""

    sim: Sim
    topology: Topology
    members: list[int]  # flow class of each flow
    schemes: list[str]  # by name, of each flow
    times: Times
    run: Callable[..., Any]  # the loop that the memory is laid out for


def prepare(
    scenario: Scenario, times: Times, log: int, *, frames_only: bool = False, links_only: bool = False
) -> PreparedRun:
    """Lay out a resolved scenario in memory.

    Parameters
    ----------
    scenario : Scenario
    times : Times
    log : int
        Lines of the log to begin with; 0 for none.
    frames_only : bool
        Whether it has the frames of PFC that arrive, and nothing else.
    links_only : bool
        Whether samples have links, and no flows: of many thousands they would fill the memory.

    Raises
    ------
    InputError
        If the packet engine cannot run it.
    """
    check_bounds(scenario)
    members = _members(scenario)
    _check_sizes(scenario)
    check_timeouts(scenario)
    single = single_flows(scenario)
    topology = topology_of(single)
    largest = max(_sizes(scenario))
    core = records(layout.CORE, 1)
    schemes = [scenario.flows[m].scheme.name for m in members]
    own = dispatch.SCHEMES.from_outside(schemes)
    outside, tables, rows = dispatch.SCHEMES.memory({name: schemes.count(name) for name in own})
    samples = times.until // times.interval + 1
    sim = Sim(
        core=core,
        calendar=None,
        ports=ports_of(topology),
        nodes=nodes_of(scenario, topology),
        packets=records(layout.PACKET, 0),
        flows=records(layout.FLOW, len(members)),
        lists=np.zeros(1, np.int64),
        routes=np.zeros((1, 1), np.int32),
        rerouted=np.zeros((len(scenario.failures), len(members), 4), np.int64),
        ticks=np.zeros((1, 1), np.int64),
        weights=weights_of(scenario, largest),
        links=records(layout.LINK, len(scenario.links)),
        bins=_by_page((len(scenario.links), layout.BINS, 2)),
        uniforms=np.zeros(_NUMBERS),
        bitmaps=np.zeros(1, np.uint8),
        link_samples=np.zeros((samples, len(scenario.links), 2)),
        class_samples=np.zeros((samples, len(scenario.links), sampled_classes(scenario), 2)),
        flow_samples=np.full((0 if links_only else samples, len(members), sampled_of_flows(scenario)), np.nan),
        log=records(layout.LOG, log),
        senders=dispatch.tables(schemes),
        outside=outside,
        calls=np.zeros((1, 1), np.int64),
    )
    sim = sim._replace(ticks=ticks_of(scenario, topology, sim.ports, largest))
    for i in range(len(scenario.links)):
        sim.links[i].port = i
    core[0].frames_only = frames_only
    core[0].links_only = links_only
    core[0].spraying = MODES[scenario.load_balancing]
    core[0].flowlet_gap = round(scenario.flowlet_gap * PS)
    set_thresholds(scenario, topology, sim, largest)
    set_trimming(scenario, sim.ports)
    _flows(scenario, topology, sim, members, tables, rows)
    lists = _lists(scenario, single, topology, sim, np.array(members))
    sim = sim._replace(lists=lists, routes=_routes(topology), bitmaps=bitmaps_of(sim.flows))
    sim = sim._replace(calendar=_first(scenario, sim, times))
    sim = grown_packets(sim, 1024)
    sim = sim._replace(calls=dispatch.SCHEMES.calls(own, sim))
    return PreparedRun(sim, topology, members, schemes, times, engine.run)


def _by_page(shape: tuple[int, ...]) -> np.ndarray:
    """Zeros of which memory is taken page by page, as they are written: NumPy's come in pages of 2 MB where those are.

    Of a queue's distribution only the lengths that it has are ever written.
    """
    taken = mmap.mmap(-1, max(1, 8 * math.prod(shape)), access=mmap.ACCESS_COPY)
    return np.frombuffer(taken, np.float64, math.prod(shape)).reshape(shape)


def _lists(scenario: Scenario, single: Scenario, topology: Topology, sim: Sim, members: np.ndarray) -> np.ndarray:
    """`Sim.lists`, whose places ports and flows get; also the routes behind failures, and the paths of packets.

    One array, because each takes a dozen words whenever the memory is handed on.
    """
    core, flows = sim.core[0], sim.flows
    free = np.flatnonzero([not scenario.flows[m].after for m in members])
    by_start = free[np.argsort(flows["start"][free], kind="stable")]
    core.started = len(flows)
    core.starts_end = len(flows) + len(by_start)
    followers = followers_of(scenario, topology, flows, members, int(core.starts_end))
    spray = None
    if core.spraying:
        spray = Spray(single, topology, int(core.starts_end) + len(followers))
        ways = [topology.routes[number] for number in topology.forward]
        spread = [spray.over(flow, way, way) for flow, way in zip(single.flows, ways, strict=True)]
        flows["first_path"], flows["paths"] = np.array(spread, np.int64).T
    reroutes(single, topology, spray, sim)
    paths = [] if spray is None else spray.routes
    found = [np.zeros(len(flows), np.int64), by_start, np.array([*followers, *paths], np.int64)]
    if scenario.loss_recovery == "trimming":
        flows["times"] = sum(map(len, found)) + flows["bits"] // 2
        found.append(np.zeros(int(flows["room"].sum()), np.int64))
    return np.concatenate(found)


def sampled_classes(scenario: Scenario) -> int:
    """Traffic classes that a trace shows one by one: all, or none where there is but one."""
    return len(scenario.classes) if len(scenario.classes) > 1 else 0


def sampled_of_flows(scenario: Scenario) -> int:
    """Columns of a flow's samples: sent, acknowledged, pacing rate, and what its scheme shows."""
    columns = [layout.OBSERVED]
    for scheme in _schemes(scenario):
        packet_of(scheme)  # or it is refused
        columns.append(dispatch.SCHEMES.side(scheme.name).columns(scheme))
    return layout.SAMPLED + max(columns)


def _schemes(scenario: Scenario) -> list[Any]:
    """List the schemes that flows run, each once: most flows of a fabric's thousands share one."""
    return list({id(flow.scheme): flow.scheme for flow in scenario.flows}.values())


def grown_packets(sim: Sim, more: int) -> Sim:
    """Return the same run with more packets in its pool."""
    old = len(sim.packets)
    packets = records(layout.PACKET, old + more)
    packets[:old] = sim.packets
    packets["next"][old:] = np.arange(old + 1, old + more + 1)
    packets["next"][-1] = sim.core[0].free if old else -1
    sim.core[0].free = old
    sim.core[0].spare += more
    return sim._replace(packets=packets)


def _members(scenario: Scenario) -> list[int]:
    """Flow class of each single flow."""
    members: list[int] = []
    checked: set[int] = set()
    for i, flow in enumerate(scenario.flows):
        if flow.multiplicity != round(flow.multiplicity):
            raise InputError(
                f"flow {i} multiplicity: {flow.multiplicity:g} is no whole number; the packet engine has single flows"
            )
        only = {} if id(flow.scheme) in checked else packet_of(flow.scheme).ONLY
        checked.add(id(flow.scheme))
        for name, modelled in only.items():
            if getattr(flow.scheme, name) != modelled:
                raise InputError(
                    f"flow {i} {name}: the packets of {flow.scheme.name} have only {name}={modelled}; write that, or "
                    "engine='fluid'"
                )
        members += [i] * round(flow.multiplicity)
    return members


def _sizes(scenario: Scenario) -> list[int]:
    """Wire sizes of all packets."""
    flows = {id(flow.scheme): flow for flow in scenario.flows}.values()
    data = {whole_bytes(scenario.wire_packet_of(flow)) for flow in flows}
    acks = {ack_size(scenario, flow) for flow in flows}
    return [CONTROL_BYTES, *sorted(data | acks)]


def _check_sizes(scenario: Scenario) -> None:
    check_packet_size(scenario)
    largest = max(_sizes(scenario))
    if scenario.buffer < largest:
        raise InputError(
            f"buffer: {show(scenario.buffer, SIZE)} is smaller than a packet of {largest} B; write for example 32MB"
        )
    if scenario.pfc is not None and scenario.pfc.xoff is None and math.isinf(scenario.buffer):
        raise InputError("pfc: a dynamic threshold is a share of the buffer, which is unlimited; write buffer=32MB")
    for i, link in enumerate(scenario.links):
        if not math.isfinite(link.rate * 8e-12):
            raise InputError(f"link {i} rate: is not finite; write for example 40Gbps")


def _routes(topology: Topology) -> Any:
    longest = max(len(route) for route in topology.routes)
    routes = np.full((len(topology.routes), longest), -1, np.int32)
    for r, route in enumerate(topology.routes):
        routes[r, : len(route)] = route
    return routes


def _flows(
    scenario: Scenario, topology: Topology, sim: Sim, members: list[int], tables: dict[str, Any], rows: dict[str, Any]
) -> None:
    """Fill the records of all flows: once for each kind of those that are alike, then what each has of its own.

    ``tables`` and ``rows`` are of schemes from outside.
    """
    key, bind = likeness(scenario), binder(scenario)
    numbers = dispatch.SCHEMES.numbers(dict.fromkeys(flow.scheme.name for flow in scenario.flows))
    kinds: dict[Any, int] = {}
    first: list[int] = []  # a flow class of each kind
    kind_of: list[int] = []  # each class's kind
    for m, flow in enumerate(scenario.flows):
        # A scheme that is not ours may look at the flow's start, size and place, too.
        mine = m if flow.scheme.name in tables else key(flow)
        kind = kinds.setdefault(mine, len(kinds))
        if kind == len(first):
            first.append(m)
        kind_of.append(kind)
    blank = layout.records(layout.FLOW, 1)
    blank["window"], blank["finish"], blank["ended"] = np.inf, -1, -1
    blank["look"], blank["nacked"], blank["reports"] = layout.NEVER, -1, -1
    patterns = layout.records(layout.FLOW, len(first))
    states = []
    for kind, m in enumerate(first):
        flow = scenario.flows[m]
        patterns[kind] = blank[0]
        row = patterns[kind]
        row.scheme = numbers[flow.scheme.name]
        row.queue = 1 + round(flow.traffic_class)
        row.payload = round(scenario.packet_size)
        row.overhead = whole_bytes(scenario.wire_packet_of(flow)) - row.payload
        row.ack_size = ack_size(scenario, flow)
        row.line_rate = flow.line_rate
        row.initial_rate = row.rate = flow.initial_rate
        give_room(scenario, flow, row)
        _own(row, flow)
        side = dispatch.SCHEMES.side(flow.scheme.name)
        state = layout.records(side.STATE, 1)
        side.init_state(bind(flow), row, state[0])
        states.append(state)
    classes = np.array(members)
    kind = np.array(kind_of)[classes]
    sim.flows[:] = patterns[kind]
    flows = sim.flows
    starts, totals = np.array([_own(None, flow) for flow in scenario.flows], np.int64).T
    flows["start"], flows["total"], flows["group"] = starts[classes], totals[classes], classes
    if scenario.loss_recovery == "trimming":  # short flows need no more than they have packets
        flows["room"] = np.minimum(flows["room"], flows["total"] // np.maximum(flows["payload"], 1) + 2)
    flows["bits"] = 2 * (np.cumsum(flows["room"]) - flows["room"])
    flows["route"], flows["back"] = topology.forward, topology.backward
    flows["nic"] = np.array([route[0] for route in topology.routes])[flows["route"]]
    named = {number: name for name, number in numbers.items()}
    for number in np.unique(flows["scheme"]).tolist():
        mine = np.flatnonzero(flows["scheme"] == number)
        table = tables[named[number]] if named[number] in tables else sim.senders[number]
        flows["row"][mine] = rows.get(named[number], np.arange(len(mine)))
        for k in np.unique(kind[mine]).tolist():
            table[: len(mine)][kind[mine] == k] = states[k][0]
    _nic_blocks(sim)


def _own(row: Any, flow: Flow) -> tuple[int, int]:
    """Start [ps] and payload [bytes] of a flow, also into its record if there is one."""
    total = UNLIMITED if math.isinf(flow.size) else max(1, round(flow.size))
    if row is not None:
        row.start, row.total = round(flow.start * PS), total
    return round(flow.start * PS), total


def _nic_blocks(sim: Sim) -> None:
    """Give each NIC room in the table of active flows for all that ever start there."""
    counts = np.bincount(sim.flows["nic"], minlength=len(sim.ports))
    sim.ports["first"] = np.concatenate([[0], np.cumsum(counts)[:-1]])


def _first(scenario: Scenario, sim: Sim, times: Times) -> Any:
    """Set the switches of the run, and return a calendar of the events that set it going."""
    core = sim.core[0]
    core.queues = 1 + len(scenario.classes) + (scenario.loss_recovery == "trimming")
    core.ns3 = scenario.timing == "ns3"
    core.payload_window = scenario.window_unit == "payload"
    core.ack_interval = round(scenario.ack_interval)
    core.ack_control = scenario.ack_queue == "control"
    core.burst, core.jitter = round(scenario.burst), scenario.jitter
    core.share_start = scenario.start_policy == "share"
    core.sample_interval = times.interval
    settle_losses(scenario, core)
    core.free = -1
    # A link that fails may let everybody go on whom its queues had paused, at once.
    core.margin = _MARGIN + (2 * len(sim.ports) * len(scenario.classes) if scenario.failures else 0)
    first = sim.lists[core.started]
    events = [
        (times.opens, layout.OPEN, 0),  # before what is sent at that instant
        (int(sim.flows[first].start), layout.START, int(first)),
        (0, layout.SAMPLE, 0),
        (times.closes, layout.CLOSE, 0),
    ]
    names = [link.name or f"link {i}" for i, link in enumerate(scenario.links)]
    for i, failure in enumerate(scenario.failures):
        events.append((round(failure.at * PS), layout.FAIL, names.index(failure.link)))
        events.append((round((failure.at + failure.reroute_after) * PS), layout.REROUTE, i))
    for storm in scenario.storms:
        port = names.index(storm.link)
        events.append((round(storm.at * PS), layout.JAM, port))
        if math.isfinite(storm.duration):
            events.append((round((storm.at + storm.duration) * PS), layout.RELEASE, port))
    reach = int(sim.ports["delay"].max() + sim.ticks.max())
    calendar = new_calendar(core, max(_EVENTS, 2 * len(events)), reach)
    begin(core, calendar, [(time, (int(kind) << SHIFT) | index) for time, kind, index in events])
    return calendar
