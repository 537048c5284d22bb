"""The memory of a run: one record array for each kind of thing, as the compiled code and plain Python both read it.

Times are picoseconds (int64), sizes bytes. All records are aligned: machine code for unaligned ones crashes.
No field is named like an attribute of NumPy scalars (size, sum, T...), which would win without compilation.
Packets lie in one pool; a packet is in at most one list at a time (a queue, a wire or the free list), linked by
``next``. A port is one direction of a link: its queues, its transmitter and the wire behind it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

PS = 1_000_000_000_000  # picoseconds in a second
NEVER = 1 << 62
UNLIMITED = 1 << 60  # size of a long-lived flow
QUEUES = 8  # of a port: 0 for control frames, above all others; 1 to 7 for traffic classes
HOPS = 8  # switches on a path that telemetry has room for
DEPTHS = 16  # of trees of paused ports that are told apart
BINS = 2048  # of the distribution of a queue; the last one at 306 GB
OBSERVED = 4  # a scheme's own variables in a trace

# Constants are int64 rather than literals, for each of which Numba would compile a called function anew.
# Kinds of packets.
DATA, ACK, CNP, PAUSE, RESUME = map(np.int64, range(5))
# Kinds of events.
FREE, ARRIVAL, WAKE, START, TIMER, NOTIFY, SAMPLE, OPEN, CLOSE, FAIL, REROUTE, JAM, RELEASE = map(np.int64, range(13))
TIMEOUT, TELL, FOLLOW = map(np.int64, range(13, 16))
# What hosts do about lost packets.
NO_RECOVERY, GO_BACK_N, IRN = map(np.int64, range(3))
# What takes a path of its own.
BY_FLOW, BY_PACKET, BY_FLOWLET = map(np.int64, range(3))
# Why the loop returned to Python.
RUNNING, DONE, GROW_PACKETS, GROW_HEAP, REFILL, GROW_LOG = range(6)
# What the log says happened.
LOGGED = ("enqueue", "transmit", "drop", "mark", "receive", "acknowledge", "cnp", "pause", "resume", "send")
ENQUEUED, TRANSMITTED, DROPPED, MARKED, RECEIVED = map(np.int64, range(5))
ACKNOWLEDGED, NOTIFIED, PAUSED, RESUMED, SENT = map(np.int64, range(5, 10))

# Columns of telemetry (HPCC, Fig. 7): queue left behind, bytes sent, time of emission, port; and the first two of the
# packet's own class (HPCC++, MultiQ).
QLEN, TX_BYTES, TS, PORT_ID, QLEN_CLASS, TX_CLASS = range(6)
COLUMNS = 6

_I, _S, _F = np.int64, np.int32, np.float64

CORE = np.dtype(
    [
        ("now", _I),
        ("present", _I),  # place of the event that is executed
        ("order", _I),  # of scheduling: simultaneous events run in this order
        ("heap", _I),  # events in the heap
        ("free", _I),  # head of the list of free packets
        ("spare", _I),  # its length
        ("drawn", _I),  # random numbers used
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
        ("limit", _I),  # end of the run
        ("stopped", _F),  # rates of all ports that are paused, bytes/s
        ("stopped_max", _F),
        ("depths", _I, (DEPTHS,)),  # PAUSE frames that stopped a port, by its depth
        ("spraying", _I),
        ("flowlet_gap", _I),
        ("frames_only", _I),  # whether the log has PFC frames that arrive, and nothing else
        ("links_only", _I),  # whether samples have links, and no flows
    ],
    align=True,
)

PORT = np.dtype(
    [
        ("rate", _F),  # bytes/s
        ("delay", _I),
        ("node", _I),  # that it belongs to
        ("peer", _I),  # node at the far end
        ("reverse", _I),  # port of the other direction
        ("host", _I),  # whether its node is a host
        ("link", _I),  # row of the statistics; -1 for none
        ("loss", _F),  # probability that the wire loses a packet
        ("ticks", _I),  # row of the table of transmission times
        ("down", _I),
        ("busy", _I),
        ("free_at", _I),  # when its transmission ends,
        ("free_order", _I),  # the place of that event,
        ("awaited", _I),  # and whether the calendar has it
        ("wake", _I),  # pending timer of a NIC
        ("queued", _I),  # bytes in all queues
        ("sent", _I),  # bytes that began transmission
        ("came", _I),  # bytes that joined the queues
        ("paused", _I),  # bit set of queues that PFC stopped
        ("turn", _I),  # flow of a NIC that was served last
        ("turns", _I, (QUEUES,)),  # of each priority: queue whose turn it is
        ("fresh", _I, (QUEUES,)),  # and whether that has just begun
        ("wire_head", _I),
        ("wire_tail", _I),
        ("first", _I),  # of this NIC's places in the list of active flows
        ("active", _I),  # how many are in use
        ("cnp_free", _I),  # from when on this NIC has a turn for a CNP
        ("incoming", _I),  # flows that are arriving at this NIC's host
        ("kmin", _F),
        ("kmax", _F),
        ("pmax", _F),
        ("on_departure", _I),  # mark packets as they leave
        # ternary congestion detection (`marking`), of each queue
        ("max_on", _I),  # -1: no TCD
        ("state", _I, (QUEUES,)),
        ("resumed", _I, (QUEUES,)),  # when the last RESUME came
        ("at_resume", _I, (QUEUES,)),  # queue then, bytes
        ("checked", _I, (QUEUES,)),  # when the queue was last looked at
        ("at_check", _I, (QUEUES,)),  # and what it was
        ("head", _I, (QUEUES,)),
        ("tail", _I, (QUEUES,)),
        ("bytes", _I, (QUEUES,)),
        ("deficit", _F, (QUEUES,)),
        ("sent_class", _I, (QUEUES,)),  # bytes that began transmission
        # PFC of the switch at the far end, which counts the packets that came in from here
        ("ingress", _I, (QUEUES,)),
        ("headroom_used", _I, (QUEUES,)),
        ("stopping", _I),  # bit set of queues that the far end has asked to pause
        ("headroom", _I),
        ("alpha", _F),
        ("xoff", _I),  # -1: dynamic
        ("pauses", _I),  # frames received
        ("paused_since", _I),
        ("paused_for", _I),  # total time stopped
        ("jammed", _I),  # storms that pause it, whatever the far end says
        ("depth", _I),  # hops from the root of the tree of paused ports that this one is in, while it is paused
    ],
    align=True,
)

NODE = np.dtype(
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
    ],
    align=True,
)

PACKET = np.dtype(
    [
        # what every hop reads comes first, in one or two lines of cache
        ("next", _S),
        ("kind", _S),
        ("flow", _S),
        ("wire", _S),  # size on the wire
        ("queue", _S),
        ("route", _S),
        ("hop", _S),  # on its route, of the port that it is at
        ("ingress", _S),  # port that it came from; -1 at its sender
        ("arrives", _I),
        ("order", _I),
        ("marks", _S),  # CE: of itself (data), or packets that carried it (ACK)
        ("undetermined", _S),  # UE, likewise; no packet carries both
        ("hops", _S),  # filled rows of the telemetry
        ("payload", _S),
        ("covers", _S),  # data packets that an ACK answers
        ("path", _S),  # XOR of the ids of the switches that it crossed
        ("stamped", _S),  # what telemetry its flow has (FLOW)
        ("end", _I),  # payload bytes of the flow up to this packet's end (data), or acknowledged (ACK)
        ("wire_end", _I),  # the same in wire bytes
        ("sent", _I),  # when its transmission began at the sender
        ("reports", _I),  # with recovery, of an ACK: end of the packet beyond a gap that it reports; -1: none
        ("granted", _F),  # window that a notification carries
        ("telemetry", _I, (HOPS, COLUMNS)),
    ],
    align=True,
)

FLOW = np.dtype(
    [
        ("scheme", _I),
        ("row", _I),  # of its scheme's table
        ("group", _I),  # flow class of the scenario
        ("nic", _I),
        ("route", _I),
        ("back", _I),  # route of its ACKs
        ("queue", _I),
        ("total", _I),  # payload bytes to send
        ("payload", _I),  # of a full packet
        ("overhead", _I),  # header and telemetry
        ("ack_size", _I),
        ("telemetry", _I),
        ("start", _I),
        ("state", _I),  # 0 waiting, 1 active, 2 finished
        ("finish", _I),  # when the last ACK came
        ("line_rate", _F),
        ("initial_rate", _F),
        ("rate", _F),  # pacing rate, bytes/s
        ("window", _F),
        ("sent", _I),  # payload bytes: snd_nxt
        ("sent_wire", _I),
        ("acked", _I),  # snd_una
        ("acked_wire", _I),
        ("next", _I),  # when the pacer lets the next packet go
        ("last", _I),  # when the last packet went
        ("last_size", _I),
        ("lost", _I),  # payload bytes dropped on the way
        # loss recovery, see packet/recovery.py
        ("sent_again", _I),  # wire bytes that went before, or went back to
        ("reached", _I),  # payload bytes: largest snd_nxt so far
        ("recovery_cap", _F),  # IRN's window, in the unit of windows
        ("news", _I),  # when something new was acknowledged or sent again
        ("look", _I),  # pending timer
        ("again", _I),  # payload bytes: start of the packet to send again next
        ("missing", _I),  # and below which what is not acknowledged counts as lost
        ("bits", _I),  # first row of this flow's marks: the receiver's, then the sender's
        ("room", _I),  # packets of which there are marks
        ("nacked", _I),  # receiver: gap that was reported last; -1: none
        ("nack_next", _I),
        ("reports", _I),  # what the next ACK reports
        # receiver
        ("received", _I),  # payload bytes
        ("received_end", _I),
        ("received_wire", _I),
        ("notifies", _I),  # whether the receiver decides when it answers (HPCC-rx)
        ("answer_period", _I),
        ("answer_next", _I),
        ("answer_armed", _I),  # a timer will answer what is left
        ("disorder", _I),  # packets that came after a later one
        ("unanswered", _I),  # packets since the last ACK
        ("unanswered_marks", _I),
        ("unanswered_undetermined", _I),
        ("cnp_interval", _I),  # 0: sends none
        ("nic_cnp_interval", _I),
        ("cnp_next", _I),  # end of the present CNP interval
        ("cnp_turn", _I),  # the NIC has given it one
        ("cnp_pending", _I),
        ("cnp_severity", _I),  # of what the next CNP tells: 2 CE, 1 UE
        ("ternary", _I),  # whether UE makes CNPs too
        ("cnps", _I),
        # counts at the window's edges
        ("sent_open", _I),
        ("sent_close", _I),
        ("acked_open", _I),
        ("acked_close", _I),
        # what few runs have comes last
        ("farthest", _I),  # payload bytes: end of the latest of them so far
        ("first_path", _I),  # in `Sim.lists`, if its packets take several,
        ("paths", _I),  # and how many
        # dependencies, see packet/followers.py
        ("awaits", _I),  # flows that must end before it begins
        ("told", _I, (3,)),  # next of its followers to be told that its last byte arrives, is acknowledged, or leaves,
        ("to_tell", _I, (3,)),  # and ends of these lists
    ],
    align=True,
)

LINK = np.dtype(
    [
        ("port", _I),
        ("changed", _I),  # when the queue last changed
        ("most", _I),
        ("most_in_window", _I),
        ("least_in_window", _I),
        ("sent_open", _I),
        ("sent_close", _I),
        ("area", _F),  # integral of the queue over the window
        ("area2", _F),
        ("near", _F, (2,)),  # of the first bin, what `Sim.bins` has of the others: most of the time nothing waits
    ],
    align=True,
)

LOG = np.dtype(
    [("time", _I), ("what", _I), ("port", _I), ("flow", _I), ("kind", _I), ("end", _I), ("queue", _I), ("value", _F)],
    align=True,
)


class Sim(NamedTuple):
    """All memory of a run."""

    core: Any  # CORE, one row
    heap: Any  # (capacity, 3) time, order, kind and index
    ports: Any  # PORT
    nodes: Any  # NODE
    packets: Any  # PACKET
    flows: Any  # FLOW
    lists: Any  # of flows and routes: those that each NIC serves, by start, followers, and paths, one after the other
    routes: Any  # (routes, hops) ports, -1 behind the end
    rerouted: Any  # (failures, flows, 4) route, back, first of its paths and their number after each failure
    ticks: Any  # (rows, bytes) transmission times
    weights: Any  # (QUEUES, 2) priority and quantum of each queue
    links: Any  # LINK
    bins: Any  # (links, BINS, 2) time spent in each bin of length but the first, and the integral of the queue over it
    uniforms: Any  # random numbers in [0, 1)
    bitmaps: Any  # (packets,) what IRN's receivers and senders know of each packet within their windows
    link_samples: Any  # (samples, links, 2) queue, bytes sent
    class_samples: Any  # (samples, links, traffic classes, 2) the same of each class; none where there is one class
    flow_samples: Any  # (samples, flows, columns) sent, acknowledged, pacing rate, the scheme's
    log: Any  # LOG
    senders: Any  # one table for each scheme, see packet/dispatch.py


def records(dtype: np.dtype[Any], rows: int) -> Any:
    """Zeroed records whose fields are attributes, with and without compilation."""
    return np.zeros(rows, dtype).view(np.recarray)
