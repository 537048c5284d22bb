"""The memory of a run: one record array for each kind of thing, as the compiled code and plain Python both read it.

Times are picoseconds (int64), sizes bytes. All records are aligned: machine code for unaligned ones crashes.
No field is named like an attribute of NumPy scalars (size, sum, T...), which would win without compilation.
Packets lie in one pool; a packet is in at most one list at a time (a queue, a wire or the free list), linked by
``next``. A port is one direction of a link: its queues, its transmitter and the wire behind it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fluidcc.contract import checks

PS = 1_000_000_000_000  # picoseconds in a second
NEVER = 1 << 62
UNLIMITED = 1 << 60  # size of a long-lived flow
QUEUES = 8  # of a port: 0 for control frames, above all others; 1 to 7 for traffic classes
HOPS = 8  # switches on a path that telemetry has room for
DEPTHS = 16  # of trees of paused ports that are distinguished
BINS = 2048  # of the distribution of a queue; the last one at 306 GB
SLOTS = 2048  # of the calendar: the near future, in short spans of time
WORD = 64  # bits
SAMPLED = checks.SAMPLED["packet"]
OBSERVED = 4  # a scheme's own variables in a trace, at least

# Constants are int64 rather than literals, for each of which Numba would compile a called function again.
# Kinds of packets.
# (A header is of data that was trimmed, a NACK what answers it; frames of PFC come last.)
DATA, ACK, CNP, HEADER, NACK, PAUSE, RESUME = map(np.int64, range(7))
# Kinds of events.
FREE, ARRIVAL, WAKE, START, TIMER, NOTIFY, SAMPLE, OPEN, CLOSE, FAIL, REROUTE, JAM, RELEASE = map(np.int64, range(13))
TIMEOUT, TELL, FOLLOW = map(np.int64, range(13, 16))
# What hosts do about lost packets.
NO_RECOVERY, GO_BACK_N, IRN, TRIMMING = map(np.int64, range(4))
# What tells a sender that a packet is lost: a NACK of its header, a gap before what came, or a timeout.
LOST_TRIMMED, LOST_GAP, LOST_TIMEOUT = map(np.int64, range(3))
# What takes a path of its own.
BY_FLOW, BY_PACKET, BY_FLOWLET = map(np.int64, range(3))
# Why the loop returned to Python.
RUNNING, DONE, GROW_PACKETS, GROW_CALENDAR, REFILL, GROW_LOG = range(6)
# What the log says happened.
LOGGED = ("enqueue", "transmit", "drop", "mark", "receive", "acknowledge", "cnp", "pause", "resume", "send", "trim")
ENQUEUED, TRANSMITTED, DROPPED, MARKED, RECEIVED = map(np.int64, range(5))
ACKNOWLEDGED, NOTIFIED, PAUSED, RESUMED, SENT, TRIMMED = map(np.int64, range(5, 11))

# Columns of telemetry (HPCC, Fig. 7): queue left behind, bytes sent, time of emission, port; and the first two of the
# packet's own class (HPCC++, MultiQ).
QLEN, TX_BYTES, TS, PORT_ID, QLEN_CLASS, TX_CLASS = range(6)
COLUMNS = 6

_I, _S, _B, _F = np.int64, np.int32, np.int8, np.float64
_LINE = 64  # bytes of a line of cache


def lines(fields: list[Any]) -> np.dtype[Any]:
    """A record of whole lines of cache, so that what is read together, and stands together, comes in one."""
    plain = np.dtype(fields, align=True)
    places: dict[str, Any] = {str(name): place for name, place in (plain.fields or {}).items()}
    whole = {
        "names": list(places),
        "formats": [places[name][0] for name in places],
        "offsets": [places[name][1] for name in places],
        "itemsize": -(-plain.itemsize // _LINE) * _LINE,
    }
    return np.dtype(whole, align=True)  # type: ignore[call-overload]


CORE = np.dtype(
    [
        ("now", _I),
        ("present", _I),  # place of the event that is executed
        ("order", _I),  # of scheduling: simultaneous events run in this order
        # the calendar, see packet/calendar.py
        ("rows", _I),  # of each of its parts
        ("pending", _I),  # events in it,
        ("due", _I),  # of them in its first heap,
        ("later", _I),  # and in its second
        ("unused", _I),  # first row for an event in a slot that has none
        ("shift", _I),  # a slot is 2^shift ps long
        ("opened", _I),  # number, from 0 at the run's start, of the last slot whose events are in the first heap
        ("words", _I),  # bit set of words of `filled` that are not 0
        ("free", _I),  # head of the list of free packets
        ("spare", _I),  # its length
        ("drawn", _I),  # random numbers used
        ("burst", _I),  # packets that a NIC sends back to back
        ("jitter", _F),  # of the waits behind them
        ("events", _I),
        ("delivered", _I),  # data packets that reached their receiver
        ("acks", _I),  # answers of receivers: ACKs, or HPCC-rx's notifications
        ("injected", _I),  # data packets that left their sender
        ("dropped", _I),  # data packets lost
        ("dropped_control", _I),  # other packets lost
        ("pauses", _I),
        ("logged", _I),
        ("started", _I),  # place in the list of flows by start, and its end
        ("starts_end", _I),
        ("sampled", _I),
        ("queues", _I),  # in use at each port, with the control queue
        ("equal", _I),  # whether all traffic classes have the same priority
        ("watching", _I),  # whether the window of the metrics is open
        ("ns3", _I),  # timing of the HPCC authors' simulator
        ("payload_window", _I),
        ("ack_interval", _I),
        ("ack_control", _I),  # ACKs go with the control frames
        ("share_start", _I),
        ("pfc", _I),  # bit set of queues that flow control keeps from losing packets
        ("lossy", _I),  # bit set of queues that drop beyond their share of the buffer
        ("egress_alpha", _F),  # that share, of what is free
        ("lossy_links", _I),  # whether wires lose packets
        ("recovery", _I),
        ("timeout", _I),
        ("low_timeout", _I),
        ("few", _I),  # packets under way with which the low timeout holds
        ("nack_interval", _I),
        ("retransmissions", _I),  # data packets sent again
        ("timeouts", _I),
        ("window_open", _I),
        ("window_close", _I),
        ("sample_interval", _I),
        ("margin", _I),  # packets and events that one event may need
        ("stopped", _F),  # rates of all ports that are paused, bytes/s
        ("stopped_max", _F),
        ("depths", _I, (DEPTHS,)),  # PAUSE frames that stopped a port, by its depth
        ("spraying", _I),
        ("flowlet_gap", _I),
        ("frames_only", _I),  # whether the log has PFC frames that arrive, and nothing else
        ("links_only", _I),  # whether samples have links, and no flows
        # trimming, see packet/trimming.py
        ("trims", _I),  # bit set of queues of which data is trimmed
        ("header_queue", _I),  # of what was
        ("trimmed", _I),  # data packets cut to their headers
        ("filled", _I, (SLOTS // WORD,)),  # bit set of slots that have events
        ("slots", _S, (SLOTS,)),  # row of each slot's first event
    ],
    align=True,
)

QUEUE = lines(
    [
        ("head", _S),
        ("tail", _S),
        ("bytes", _I),
        ("cells", _I),  # bytes of the cells that it fills, if marks see these
        ("sent", _I),  # bytes that began transmission
        # PFC of the switch at the far end, which counts the packets that came in from here
        ("ingress", _I),
        ("headroom_used", _I),
        ("deficit", _F),
        ("state", _S),  # of ternary congestion detection (`marking`)
    ]
)

PORT = lines(
    [
        # The first line of cache: transmission.
        ("rate", _F),  # bytes/s
        ("delay", _I),
        ("free_at", _I),  # when its transmission ends,
        ("free_order", _I),  # the place of that event,
        ("queued", _I),  # bytes in all queues
        ("sent", _I),  # bytes that began transmission
        ("wire_head", _S),
        ("wire_tail", _S),
        ("busy", _B),
        ("awaited", _B),  # whether the calendar has the end of its transmission
        ("counts_sending", _B),  # marks see the packet that is being sent
        ("in_cells", _B),  # marks see the cells that packets fill, not their bytes
        ("waiting", _S),  # bit set of queues that are not empty
        # The second: what joins its queues, and who is at its ends.
        ("node", _S),  # that it belongs to
        ("peer", _S),  # node at the far end
        ("reverse", _S),  # port of the other direction
        ("link", _S),  # row of the statistics; -1 for none
        ("ticks", _S),  # row of the table of transmission times
        ("stopping", _S),  # bit set of queues that the far end has asked to pause
        ("paused", _S),  # bit set of queues that PFC stopped
        ("down", _B),
        ("host", _B),  # whether its node is a host
        ("on_departure", _B),  # mark packets as they leave
        ("trims", _B),  # cut data to its header where the queue is long or the buffer has no room
        ("came", _I),  # bytes that joined the queues
        ("kmin", _F),
        ("kmax", _F),
        ("max_on", _I),  # ternary congestion detection; -1: none
        # The third: a NIC's flows, and when the switch at the far end pauses this port.
        ("wake", _I),  # pending timer of a NIC
        ("turn", _S),  # flow of a NIC that was served last
        ("active", _S),  # places in use of this NIC's in the list of active flows,
        ("first", _I),  # and the first of them
        ("alpha", _F),
        ("xoff", _I),  # -1: dynamic
        ("headroom", _I),
        ("loss", _F),  # probability that the wire loses a packet
        ("pmax", _F),
        # A line each.
        ("queues", QUEUE, (QUEUES,)),
        # What few events read.
        ("sending", _I),  # bytes of the packet that is being sent, or was last, or of its cells, if marks see them
        ("cell", _I),  # bytes of a cell
        ("trim_above", _I),  # bytes in a queue beyond which data is trimmed
        ("incoming", _I),  # flows that are arriving at this NIC's host
        ("cnp_free", _I),  # from when on this NIC has a turn for a CNP
        ("turns", _S, (QUEUES,)),  # of each priority: queue whose turn it is
        ("fresh", _S, (QUEUES,)),  # and whether that has just begun
        ("resumed", _I, (QUEUES,)),  # when the last RESUME came
        ("at_resume", _I, (QUEUES,)),  # queue then, bytes
        ("checked", _I, (QUEUES,)),  # when the queue was last looked at
        ("at_check", _I, (QUEUES,)),  # and what it was
        ("pauses", _I),  # frames received
        ("paused_since", _I),
        ("paused_for", _I),  # total time stopped
        ("jammed", _I),  # storms that pause it, whatever the far end says
        ("depth", _I),  # hops from the root of the tree of paused ports that this one is in, while it is paused
    ]
)

NODE = lines(
    [
        ("used", _I),  # bytes in the buffer
        ("used_max", _I),
        ("buffer", _I),
        ("shared", _I),  # buffer less headroom and reserves
        ("shared_used", _I),
        ("reserve", _I),  # of each ingress port and class
        ("xon_gap", _I),
        ("switch_id", _I),  # 12 bits; 0 for hosts
        ("paused", _I, (DEPTHS,)),  # its paused ports, by their depth
    ]
)

PACKET = lines(
    [
        # The first line of cache: what every hop reads.
        ("next", _S),
        ("flow", _S),
        ("wire", _S),  # size on the wire
        ("payload", _S),
        ("route", _S),
        ("onward", _S),  # on a wire: port at its far end that it will join; -1 at a host
        ("ingress", _S),  # port that it came from; -1 at its sender
        ("hop", _S),  # on its route, of the port that it is at
        ("next_arrives", _I),  # of the next one on its wire: when it reaches the far end,
        ("next_order", _I),  # and the place of that event
        ("marks", _S),  # CE: of itself (data), or packets that carried it (ACK)
        ("undetermined", _S),  # UE, likewise; no packet carries both
        ("path", _S),  # XOR of the ids of the switches that it crossed
        ("kind", _B),
        ("queue", _B),
        ("hops", _B),  # filled rows of the telemetry
        ("stamped", _B),  # what telemetry its flow has (FLOW)
        # The second.
        ("covers", _S),  # data packets that an ACK answers
        ("end", _I),  # payload bytes of the flow up to this packet's end (data), or acknowledged (ACK)
        ("wire_end", _I),  # the same in wire bytes
        ("sent", _I),  # when its transmission began at the sender
        ("reports", _I),  # with recovery, of an ACK: end of the packet beyond a gap that it reports; -1: none
        ("confirms", _I),  # of an ACK: payload bytes that have come; `end` counts those lost below it too
        ("granted", _F),  # window that a notification carries
        ("telemetry", _I, (HOPS, COLUMNS)),
    ]
)

FLOW = lines(
    [
        # The first line of cache: whether it may send.
        ("sent", _I),  # payload bytes: snd_nxt
        ("total", _I),  # payload bytes to send
        ("again", _I),  # payload bytes: start of the packet to send again next
        ("missing", _I),  # and below which what is not acknowledged counts as lost
        ("next", _I),  # when the pacer lets the next packet go
        ("window", _F),
        ("sent_wire", _I),
        ("acked_wire", _I),
        # The second: what it sends, and what ACKs change.
        ("acked", _I),  # snd_una
        ("rate", _F),  # pacing rate, bytes/s
        ("last", _I),  # when the last packet, or burst of them, began
        ("last_size", _S),
        ("payload", _S),  # of a full packet
        ("overhead", _S),  # header and telemetry
        ("queue", _S),
        ("route", _S),
        ("nic", _S),
        ("scheme", _S),
        ("row", _S),  # of its scheme's table
        ("telemetry", _S),
        ("state", _S),  # 0 waiting, 1 active, 2 finished
        # The third: its receiver.
        ("received", _I),  # payload bytes
        ("received_end", _I),
        ("received_wire", _I),
        ("cnp_interval", _I),  # 0: sends none
        ("cnp_next", _I),  # end of the present CNP interval
        ("back", _S),  # route of its ACKs
        ("ack_size", _S),
        ("notifies", _S),  # whether the receiver decides when it answers (HPCC-rx)
        ("unanswered", _S),  # packets since the last ACK
        ("unanswered_marks", _S),
        ("unanswered_undetermined", _S),
        # What is read less often.
        ("in_burst", _S),  # packets of a burst that is under way
        ("stretch", _F),  # of the wait behind the last one, by jitter
        ("lost", _I),  # payload bytes dropped on the way
        ("confirmed", _I),  # payload bytes that its sender knows to have come: of what is lost, none
        ("line_rate", _F),
        ("initial_rate", _F),
        ("group", _I),  # flow class of the scenario
        ("start", _I),
        ("finish", _I),  # when the last ACK came
        ("nic_cnp_interval", _I),
        ("cnp_turn", _S),  # the NIC has given it one
        ("cnp_pending", _S),
        ("cnp_severity", _S),  # of what the next CNP tells: 2 CE, 1 UE
        ("ternary", _S),  # whether UE makes CNPs too
        ("cnps", _I),
        ("answer_period", _I),
        ("answer_next", _I),
        ("answer_armed", _I),  # a timer will answer what is left
        # loss recovery, see packet/recovery.py
        ("sent_again", _I),  # wire bytes that went before, or went back to
        ("reached", _I),  # payload bytes: largest snd_nxt so far
        ("recovery_cap", _F),  # IRN's window, in the unit of windows
        ("news", _I),  # when something new was acknowledged or sent again
        ("look", _I),  # pending timer
        ("bits", _I),  # first row of this flow's marks: the receiver's, then the sender's
        ("room", _I),  # packets of which there are marks
        ("nacked", _I),  # receiver: gap that was reported last; -1: none
        ("nack_next", _I),
        ("reports", _I),  # what the next ACK reports
        ("disorder", _I),  # packets that came after a later one
        ("farthest", _I),  # payload bytes: end of the latest of them so far
        # what a law of events waits for: a time, and a number of wire bytes that have gone
        ("timer", _I),
        ("counter", _F),
        ("gone", _F),
        # counts at the window's edges
        ("sent_open", _I),
        ("sent_close", _I),
        ("confirmed_open", _I),
        ("confirmed_close", _I),
        # what few runs have comes last
        ("first_path", _I),  # in `Sim.lists`, if its packets take several,
        ("paths", _I),  # and how many
        # dependencies, see packet/dependents.py
        ("awaits", _I),  # flows that must end before it begins
        ("told", _I, (3,)),  # next of its followers to notify that its last byte arrives, is acknowledged, or leaves,
        ("to_tell", _I, (3,)),  # and ends of these lists
        ("ended", _I, (3,)),  # when each of these first was so; -1: not yet
        # recovery from trims, see packet/trimming.py
        ("una", _I),  # payload bytes: below it all has been acknowledged (`acked` is how much has, in any order)
        ("away", _I),  # bytes that wait to be sent again, in the unit of windows
        ("times", _I),  # first place, in `Sim.lists`, of when its packets went
    ]
)

LINK = lines(
    [
        # One line of cache, which every change of its queue touches.
        ("changed", _I),  # when the queue last changed
        ("most", _I),
        ("most_in_window", _I),
        ("least_in_window", _I),
        ("area", _F),  # integral of the queue over the window
        ("area2", _F),
        ("near", _F, (2,)),  # of the first bin, what `Sim.bins` has of the others: most of the time nothing waits
        ("port", _I),
        ("sent_open", _I),
        ("sent_close", _I),
    ]
)

EVENT = np.dtype([("time", _I), ("order", _I), ("event", _I), ("next", _I)], align=True)

LOG = np.dtype(
    [("time", _I), ("what", _I), ("port", _I), ("flow", _I), ("kind", _I), ("end", _I), ("queue", _I), ("value", _F)],
    align=True,
)


class Sim(NamedTuple):
    """Complete memory of a run."""

    core: Any  # CORE, one row
    calendar: Any  # EVENT
    ports: Any  # PORT
    nodes: Any  # NODE
    packets: Any  # PACKET
    flows: Any  # FLOW
    lists: Any  # those that each NIC serves, by start, followers, paths, and when packets went, one after the other
    routes: Any  # (routes, hops) ports, -1 behind the end
    rerouted: Any  # (failures, flows, 4) route, back, first of its paths and their number after each failure
    ticks: Any  # (rows, bytes) transmission times
    weights: Any  # (QUEUES, 2) priority and quantum of each queue
    links: Any  # LINK
    bins: Any  # (links, BINS, 2) time spent in each bin of length but the first, and the integral of the queue over it
    uniforms: Any  # random numbers in [0, 1)
    bitmaps: Any  # (packets,) what selective receivers and senders know of each packet within their windows
    link_samples: Any  # (samples, links, 2) queue, bytes sent
    class_samples: Any  # (samples, links, traffic classes, 2) the same of each class; none where there is one class
    flow_samples: Any  # (samples, flows, columns) sent, acknowledged, pacing rate, the scheme's
    log: Any  # LOG
    senders: Any  # one table for each built-in scheme, see packet/dispatch.py
    outside: Any  # bytes: the states of all others
    calls: Any  # (schemes from outside, rules) addresses


def records(dtype: np.dtype[Any], rows: int) -> Any:
    """Zeroed records whose fields are attributes, with and without compilation; the first begins a line of cache."""
    memory = np.zeros(rows * dtype.itemsize + _LINE, np.uint8)
    first = -memory.ctypes.data % _LINE
    return memory[first : first + rows * dtype.itemsize].view(dtype).view(np.recarray)
