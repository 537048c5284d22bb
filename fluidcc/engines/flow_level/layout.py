"""A scenario in numbers, and the memory of a run.

In numbers it is ports, the paths over them there and back, and what a transfer takes alone. The memory has what stands,
what ports hold and carry, and a *slot* for each transfer under way. What ports carry is the bytes of each interval of
time; intervals double as the run grows longer.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from fluidcc.engines.common.jit import kernel
from fluidcc.engines.common.topology import Topology, single_flows, topology_of
from fluidcc.engines.flow_level.transfers import Transfers
from fluidcc.errors import InputError
from fluidcc.scenario.model import Scenario, base_rtt, refuse_losses
from fluidcc.scenario.round_trips import likeness, serialisation_rtt, train
from fluidcc.scenario.routing import refuse_spraying

FREE, SENDING, ARRIVING, DRAINING = map(np.int8, range(4))  # what a slot does
STEP, HELD, USED, LEFT, STATUS, PAUSES, BUSY = range(7)  # of `Steps.now`
RUNNING, DONE, FULL, IDLE, OVER = range(5)  # status; over: a switch would lose what it does not hold


HOPS = 12  # switches on the longest path
_I, _F = np.int64, np.float64

FLOW = np.dtype(
    [
        ("scheme", _I),
        ("row", _I),
        ("line_rate", _F),
        ("initial_rate", _F),
        ("packet", _F),  # on the wire [bytes]
        ("counted", _F),  # the same as windows count it
        ("rate", _F),  # [bytes/s]
        ("window", _F),  # as windows count [bytes]
        ("sent", _F),  # on the wire, since the start [bytes]
        ("gone", _F),  # of these, in whole packets: all, as there are none here
        ("acked", _F),
        ("newly", _F),  # of these, in the step
        ("rtt", _F),  # of the packet whose ACK came last [s]
        ("marking", _F),  # probability that a packet is marked whose ACK comes in the step
        ("hops", _I),  # switches on the path
        ("queue", _F, (HOPS,)),  # of their ports, as the packets left them whose ACKs come now [bytes]
        ("output", _F, (HOPS,)),  # [bytes/s]
        ("arriving", _F, (HOPS,)),
        ("capacity", _F, (HOPS,)),
        # of schemes that get feedback by CNPs
        ("timer", _F),  # what the scheme waits for: a time [s],
        ("counter", _F),  # and a number of bytes sent
        ("cnp_interval", _F),  # 0: none are sent
        ("nic_cnp_interval", _F),
        ("cnp_next", _F),  # end of the present interval [s]
        ("pending", _I),  # whether a CNP is sent then
        ("left", _F),  # of the exponential number that the hazard of marks is held against
        ("draws", _I),
        ("number", _I),  # of the transfer
    ],
    align=True,
)
INTERVALS = 256
_CRUMB = 1e-9  # of what a port sends in an interval: rounding


class Ports(NamedTuple):
    """Ports of NICs and switches, one for each direction of each cable."""

    rate: np.ndarray  # [bytes/s]
    host: np.ndarray  # whether it is a NIC
    names: list[str]


class Paths(NamedTuple):
    """Ports that each flow of the scenario crosses, one after the other; -1 beyond the end."""

    there: np.ndarray  # (flows, hops)
    back: np.ndarray  # (flows, hops), of its ACKs
    hops: np.ndarray  # (flows,)
    packet: np.ndarray  # (flows,) on the wire [bytes]
    overhead: np.ndarray  # (flows,) of a packet [bytes]
    ack_share: np.ndarray  # (flows,) bytes of ACKs for each byte of data on the wire
    rtt: np.ndarray  # (flows,) of packets on an empty path, with serialisation; no fixed feedback_delay is read [s]
    kind: np.ndarray  # (flows,) number of the paths that are alike
    first: np.ndarray  # (kinds,) a flow of each kind


class Alone(NamedTuple):
    """Bytes of each transfer, and its times in an idle network."""

    wire: np.ndarray  # bytes on the wire
    received: np.ndarray  # from the start until its last byte has arrived, in an idle network [s]
    answered: np.ndarray  # until its ACK has [s]


def layout_of(scenario: Scenario) -> tuple[Topology, Ports, Paths]:
    """Ports and paths of a resolved scenario.

    Raises
    ------
    InputError
        If it has what flows without packets leave out.
    """
    refuse(scenario)
    topology = topology_of(single_flows(scenario))
    hosts = topology.hosts
    ports = Ports(
        np.array([port.rate for port in topology.ports]),
        np.array([port.source in hosts for port in topology.ports]),
        [f"{port.source}->{port.target}" for port in topology.ports],
    )
    flows = scenario.flows
    key = likeness(scenario)
    kinds: dict[Any, int] = {}
    kind = np.array([kinds.setdefault(key(flow), len(kinds)) for flow in flows])
    first = np.unique(kind, return_index=True)[1]
    packet = np.array([float(scenario.wire_packet_of(flows[i])) for i in first])
    ack = np.array([float(scenario.ack_bytes) + float(flows[i].scheme.int_bytes) for i in first])
    rtt = np.array([float(base_rtt(scenario, flows[i]) + serialisation_rtt(scenario, flows[i])) for i in first])
    there = _table([topology.routes[number] for number in topology.forward])
    return (
        topology,
        ports,
        Paths(
            there,
            _table([topology.routes[number] for number in topology.backward]),
            (there >= 0).sum(axis=1),
            packet[kind],
            (packet - float(scenario.packet_size))[kind],
            (ack / packet / float(scenario.ack_interval))[kind],
            rtt[kind],
            kind,
            first,
        ),
    )


def alone_of(scenario: Scenario, paths: Paths, transfers: Transfers) -> Alone:
    """Compute the bytes of each transfer, and its times in an idle network; paths that are alike share the work."""
    sizes, kind = transfers.size, paths.kind[transfers.flow]
    received, answered = np.empty_like(sizes), np.empty_like(sizes)
    for k, first in enumerate(paths.first):
        mine = np.flatnonzero((kind == k) & (transfers.flow >= 0))
        if not len(mine):
            continue
        distinct, which = np.unique(sizes[mine], return_inverse=True)
        there, both = train(scenario, scenario.flows[first], distinct)
        received[mine], answered[mine] = there[which], both[which]
    waits = transfers.flow < 0
    received[waits] = answered[waits] = 0.0
    packets = np.where(waits, 0.0, np.ceil(sizes / float(scenario.packet_size)))
    return Alone(sizes + packets * paths.overhead[transfers.flow], received, answered)


def refuse(scenario: Scenario) -> None:
    """Refuse what flows without packets leave out.

    Raises
    ------
    InputError
        That names it.
    """
    name = "flow-level"
    refuse_losses(scenario, name)
    refuse_spraying(scenario, name)
    for what in ("failures", "storms"):
        if getattr(scenario, what):
            raise InputError(f"{what}: the {name} engine's ports stand; leave them out, or write engine='packet'")
    if len(scenario.classes) > 1:
        raise InputError(f"classes: the {name} engine has one queue at a port; write one, or engine='packet'")
    if scenario.ack_queue != "data":
        raise InputError(f"ack_queue: ACKs of the {name} engine share the data's queue; write 'data'")
    if scenario.timing != "exact":
        raise InputError(f"timing: the {name} engine's is exact; write timing='exact', or engine='packet'")
    for i, flow in enumerate(scenario.flows):
        if flow.multiplicity != 1:
            raise InputError(f"flow {i} multiplicity: flows of the {name} engine are single; write 1")


def _table(ways: list[tuple[int, ...]]) -> np.ndarray:
    longest = max(map(len, ways))
    return np.array([[*way, *[-1] * (longest - len(way))] for way in ways], np.int32)


class Net(NamedTuple):
    """Constant data of the network."""

    there: Any  # (flows, hops) ports; the NIC first
    back: Any  # (flows, hops)
    hops: Any  # (flows,)
    ack_share: Any  # (flows,)
    rtt: Any  # (flows,) [s]
    kind: Any  # (flows,) of the paths that are alike
    initial_rate: Any  # (flows,) [bytes/s]
    rate: Any  # (ports,) [bytes/s]
    marking: Any  # (ports, 3) kmin, kmax, pmax
    joining: Any  # (ports,) whether packets are marked as they join the queue, not as they leave it
    source: Any  # (ports,) node that sends, among switches; -1: a host
    target: Any  # (ports,) likewise
    xoff: Any  # (ports,) fixed threshold of what came in by it [bytes]; negative: a share of the free buffer
    shared: Any  # (nodes,) buffer that ports share [bytes]
    alpha: Any  # (1,) that share
    gap: Any  # (1,) how far below the threshold a port resumes [bytes]
    pausing: Any  # (1,) whether there is flow control
    dropping: Any  # (1,) without it, share of the free buffer that one port may fill
    used: Any  # numbers of the ports that some path crosses


class PortState(NamedTuple):
    """State of the ports, each (ports,), or (records, ports) of the last steps."""

    backlog: Any  # that waits, ACKs among it [bytes]
    served: Any  # since the run began [bytes]
    serving: Any  # in the step under way
    acks: Any  # ACKs that come in the step under way
    next_acks: Any  # and in the next
    waiting_acks: Any  # of the backlog
    passing: Any  # share of what waits that leaves in the step
    came_in: Any  # bytes that wait behind it, having come in by it
    paused: Any  # whether it is
    paused_s: Any  # for how long it was
    pauses: Any  # how often it was
    want: Any  # of a NIC: what its transfers would send in the step
    count: Any  # and how many they are
    joined: Any  # last step all of whose arrivals had been served by the end of this one
    log: Any  # (steps, ports, 2) all that came since the run began, and the queue [bytes]; of more steps than `seen`
    seen: Any  # (records, ports, 5) of the last steps, columns below


LOG = 512  # steps at least in which a queue is followed back to when its first bytes came
# Columns of `Ports.seen`: the queue [bytes], rates of sending and of arrivals [bytes/s], and of what leaves now, the
# queue that it joined [bytes] and for how many steps it stood there.
QUEUE, OUTPUT, INPUT, FOUND, STOOD = range(5)


class Slots(NamedTuple):
    """Transfers under way, each (slots,)."""

    doing: Any
    transfer: Any
    flow: Any
    left: Any  # to send [bytes]
    sent: Any
    delivered: Any
    acked: Any
    newly: Any
    pace: Any  # of its scheme [bytes/s]
    window: Any  # on the wire [bytes]
    want: Any
    since: Any  # step in which it began
    fresh: Any  # whether its scheme has yet to begin
    queue: Any  # (slots, hops) that waits at each port
    flux: Any  # (slots, hops) that left it in the step before
    hop: Any  # that the last byte has come to
    ready: Any  # step in which it arrives there
    target: Any  # of the port's `served` with which it leaves; negative before it arrives
    part: Any  # of a step, at which it comes
    waited: Any  # until now [s]
    end: Any  # when it was sent [s]
    late: Any  # how long after its start it was opened [s]
    delivered_at: Any  # (slots, records) bytes


class Steps(NamedTuple):
    """Complete memory of a run."""

    net: Net
    ports: PortState
    slots: Slots
    used: Any  # (slots,) numbers of the slots in use
    now: Any  # counters
    node_used: Any  # (nodes,) bytes that wait in it
    flow_of: Any  # (transfers,)
    level: Any  # (ports,) share of each of a NIC's transfers


def records(dtype: np.dtype[Any], rows: int) -> Any:
    """Zeroed records whose fields are attributes, with and without compilation."""
    return np.zeros(rows, dtype).view(np.recarray)


def ports_of(count: int, records: int) -> PortState:
    """Return empty ports."""
    kinds = {"paused": np.int8, "count": np.int64, "joined": np.int64}
    columns = {name: np.zeros(count, kinds.get(name, np.float64)) for name in PortState._fields[:-2]}
    return PortState(**columns, log=np.zeros((max(records, LOG), count, 2)), seen=np.zeros((records, count, 5)))


def slots_of(count: int, hops: int, records: int) -> Slots:
    """Free slots."""

    def numbers() -> Any:
        return np.zeros(count)

    def whole() -> Any:
        return np.zeros(count, np.int64)

    return Slots(
        np.zeros(count, np.int8), whole(), whole(), numbers(), numbers(), numbers(), numbers(), numbers(), numbers(),
        numbers(), numbers(), whole(), np.zeros(count, np.int8), np.zeros((count, hops)), np.zeros((count, hops)),
        whole(), whole(), numbers(), numbers(), numbers(), numbers(), numbers(),
        np.zeros((count, records)),
    )  # fmt: skip


def grown(slots: Slots) -> Slots:
    """Return twice as many slots, of which the first are these."""
    return Slots(*(np.concatenate([column, np.zeros_like(column)]) for column in slots))


def step_of(time: float, dt: float) -> int:
    """The step in which a time lies, as `fluidcc.engines.flow_level.step` counts."""
    n = int(time / dt)
    while time >= n * dt + dt:  # rounding
        n += 1
    return n


class Load(NamedTuple):
    """Bytes that ports have carried."""

    carried: np.ndarray  # (intervals, ports) [bytes]
    width: np.ndarray  # (1,) of an interval [s]


def load_of(ports: int, width: float) -> Load:
    """Return the load of a number of ports before any traffic, in intervals of a given width."""
    return Load(np.zeros((INTERVALS, ports)), np.array([width]))


@kernel
def carry(load: Any, rates: Any, since: Any, until: Any) -> None:
    """Add what ports carry at their rates from one time to another."""
    carried, width = load
    intervals, ports = carried.shape
    widen(carried, width, until)
    k = int(since / width[0])
    while k < intervals and k * width[0] < until:
        spent = min(until, (k + 1) * width[0]) - max(since, k * width[0])
        if spent > 0.0:
            for p in range(ports):
                carried[k, p] += rates[p] * spent
        k += 1


@kernel
def carry_on(load: Any, ways: Any, f: Any, rate: Any, since: Any, until: Any) -> None:
    """Add to all ports of a path what one flow sends at a rate; the intervals must reach that far already."""
    carried, width = load
    k = int(since / width[0])
    while k < len(carried) and k * width[0] < until:
        spent = min(until, (k + 1) * width[0]) - max(since, k * width[0])
        if spent > 0.0:
            for h in range(ways.shape[1]):
                if ways[f, h] >= 0:
                    carried[k, ways[f, h]] += rate * spent
        k += 1


@kernel
def widen(carried: Any, width: Any, until: Any) -> None:
    """Have the intervals reach a time: each takes the next one in, as often as it needs."""
    half, ports = carried.shape[0] // 2, carried.shape[1]
    while until > 2 * half * width[0]:
        for k in range(half):
            for p in range(ports):
                carried[k, p] = carried[2 * k, p] + carried[2 * k + 1, p]
        carried[half:, :] = 0.0
        width[0] *= 2.0


def shares_of(load: Load, rate: np.ndarray, until: float) -> np.ndarray:
    """Share of its rate that each port sent in each interval until a time, or until all is sent; (intervals, ports).

    What would be more than its rate, since others' rates follow an end or a start a little late, is sent in the next.
    """
    most = load.width[0] * rate
    carried = list(np.maximum(load.carried, 0.0))
    kept = max(math.ceil(min(until / load.width[0], len(carried))), 1)
    owed, found = np.zeros_like(rate), []
    while carried or (owed > _CRUMB * most).any():
        owed = owed + (carried.pop(0) if carried else 0.0)
        found.append(np.minimum(owed, most))
        owed = owed - found[-1]
    last = np.flatnonzero(np.any(found, axis=1))
    return np.array(found[: max(kept, last[-1] + 1 if len(last) else 0)]) / most
