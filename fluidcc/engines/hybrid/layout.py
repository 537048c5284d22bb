"""The memory of a run: one record array for each kind of thing, as the compiled code and plain Python both read it.

Times are seconds, sizes wire bytes, rates bytes/s. A flow's clock is ahead of the others' by its way to the first
queue: what it sends at its own time joins there at once, and all the delay of its loop lies on the way back. So a
change of its rate needs no second event. A *hop* is a flow's place at one link of its path.

No field is named like an attribute of NumPy scalars (size, sum, T...), which would win without compilation.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from fluidcc.contract import checks

NEVER = math.inf
BINS = 512 + 128 * 32  # of the distribution of a queue; the last one at 281 TB
LOADS = 64  # intervals of the load at which there is no queue
KNOTS = 32  # ends of the straight pieces of a marking, at most
LIKELY = 0.1  # chance of a mark from which on packets are drawn one by one, not by a clock of many
RING = 16  # entries of a ring to begin with
OBSERVED = checks.SAMPLED["hybrid"]

# Why the loop returned to Python.
RUNNING, DONE, GROW_CNPS, GROW_MARKS, GROW_OUTPUT, GROW_TRANSIT = range(6)
# What a flow does next.
LOOK, START, TIMER, COUNTER, PACE, END, CNP, REQUEST = map(np.int64, range(8))
# What a link does next.
NOTHING, CROSSING, MARK, PACKET, WAKE, LEAVE, JOIN, TRANSIT = map(np.int64, range(8))
# What a hop waits for: nothing, its hazard, its next packet (which is marked), a packet that matters, or each packet.
IDLE, LISTENING, RIPE, DEAF, SINGLY = map(np.int64, range(5))
# Where a queue is: at nothing, else on a straight piece of its marking, or beyond the last of them.
EMPTY, FIRST = np.int64(-1), np.int64(0)
# Trees of a link's hops: hazards due, packet times, and departures from which marks matter again.
HAZARDS, PACKETS, WAKES = map(np.int64, range(3))

_I, _F = np.int64, np.float64

CORE = np.dtype(
    [
        ("now", _F),
        ("until", _F),
        ("opens", _F),
        ("closes", _F),
        ("seed", np.uint64),
        ("look", _I),  # of the links: next of the instants at which they are looked at
        ("watching", _I),  # whether the window is open
        ("events", _I),
        ("marks", _I),
        ("cnps", _I),
        ("leaves", _I),  # of the calendar, a power of two: flows, then links, then the instants
        ("status", _I),
        ("begun", _I),
        ("ended", _I),  # 1 + the first flow of those whose followers are to be notified that it has ended; 0: none
    ],
    align=True,
)

FLOW = np.dtype(
    [
        ("scheme", _I),
        ("row", _I),  # of its scheme's table
        ("first", _I),  # hop at its first link; those of its further links follow
        ("hops", _I),
        ("ahead", _F),  # from the sender to its first queue: by how much its clock is ahead
        ("beyond", _F),  # from leaving its last queue to the receiver
        ("back", _F),  # of a CNP: from the receiver to the sender, and on to the first queue
        ("answer", _F),  # of an ACK: from the receiver to the sender
        ("share", _F),  # payload in a wire byte
        ("burst", _F),  # wire bytes that leave at once: a packet, or several
        ("start", _F),
        ("total", _F),  # wire bytes to send
        ("line_rate", _F),
        ("initial_rate", _F),
        # flows that it waits for, and those that wait for it
        ("awaits", _I),  # how many have not ended
        ("told", _F),  # end of the last flow that has ended
        ("pause", _F),  # from the last end to its start
        ("followers", _I),  # the first in `Sim.followers`, and behind the last
        ("followers_end", _I),
        ("next_ended", _I),  # 1 + the next flow of the list `CORE.ended`
        ("state", _I),  # 0 waiting, 1 sending, 2 all sent
        ("rate", _F),  # that its scheme sets,
        ("pace", _F),  # and at which its bytes leave
        ("at", _F),  # when `sent` was that
        ("sent", _F),
        ("gone", _F),  # in whole bursts
        ("finish", _F),  # when the last ACK came
        ("timer", _F),  # what its scheme waits for: a time,
        ("counter", _F),  # and a number of bytes that have left,
        ("counted", _F),  # bytes sent as the burst leaves that completes it
        ("repace", _F),  # bytes sent, from which on it is paced by its rate,
        ("last", _F),  # and when the burst before left
        ("todo", _I),  # what comes next
        ("look", _I),
        # its receiver
        ("cnp_interval", _F),  # 0: sends none
        ("nic_cnp_interval", _F),  # between CNPs of all flows of its NIC; 0: each on its own
        ("nic", _I),  # which that is
        ("cnp_next", _F),  # end of the present CNP interval
        ("deaf", _F),  # a mark that comes before this changes nothing
        ("request", _F),  # when it will ask its NIC for a CNP
        ("first_mark", _I),  # ring of the marked packets that come later than that
        ("marks", _I),
        ("cnps", _I),  # that have come
        ("head", _I),  # ring of the CNPs that are on their way
        ("waiting", _I),
        # at the window's edges
        ("sent_open", _F),
        ("sent_close", _F),
        ("acked_open", _F),
        ("acked_close", _F),
    ],
    align=True,
)

HOP = np.dtype(
    [
        ("flow", _I),
        ("link", _I),
        ("place", _I),  # among the link's hops
        ("last", _I),  # whether this is the flow's last link
        ("rate", _F),  # at which it arrives
        ("at", _F),
        ("came", _F),  # bytes that had arrived then
        ("wait", _I),  # what it waits for
        # Of the fluid whose packets are marked, which on departure is what leaves:
        ("mark_rate", _F),
        ("mark_at", _F),
        ("mark_came", _F),
        ("left", _F),  # of the exponential number: what is to come when `hazard` was that
        ("hazard", _F),
        ("draws", _I),
        ("packet", _F),  # bytes of a packet
    ],
    align=True,
)

LINK = np.dtype(
    [
        ("number", _I),
        ("rate", _F),
        ("likely", _I),  # the first piece but one, or a later one, in which each packet is drawn
        ("top", _I),  # pieces of its marking; beyond, every packet is marked. 0: it marks nothing
        ("queues", _F, (KNOTS,)),  # ends of the pieces
        ("chances", _F, (KNOTS,)),  # p there
        ("wholes", _F, (KNOTS,)),  # integral of -log(1 - p) over p up to that
        ("meeting", _F, (LOADS + 2,)),  # p of an empty queue, by the load
        ("inputs", _I),  # ports that feed it, whose packets may meet
        ("on_departure", _I),
        ("draining", _F),  # time from the top to an empty queue
        ("after", _F),  # from leaving the queue to joining the next: serialisation and propagation
        ("first", _I),  # its hops are `hops_at[first : first + hops]`
        ("hops", _I),
        ("leaves", _I),  # of its trees, a power of two
        ("tree", _I),  # where they begin
        ("onward", _I),  # whether hops lead on from here
        ("watch", _F),  # departure from which what has left is to be counted, at an edge of the window
        ("reading", _I),  # whether what leaves matters: of marks on departure, or onward
        # state
        ("at", _F),
        ("queue", _F),
        ("arriving", _F),  # sum of the hops' rates
        ("slope", _F),
        ("zone", _I),
        ("hazard", _F),  # integral of -log(1 - p) over time; the marking clock
        ("chance", _F),  # p now,
        ("per_packet", _F),  # and -log(1 - p)
        ("todo", _I),
        ("sent", _F),
        ("sent_open", _F),
        ("sent_close", _F),
        # what leaves: a ring of times and rates, read as it leaves and as it joins the next queues
        ("head", _I),
        ("stored", _I),
        ("left", _I),  # read by the first reader
        # marked packets on their way to the next queue
        ("transit_head", _I),
        ("transit", _I),
        # statistics of the window
        ("bin", _I),
        ("most", _F),
        ("most_in_window", _F),
        ("least_in_window", _F),
        ("area", _F),
        ("area2", _F),
        ("xoff", _F),  # queue from which a switch would pause its senders
        ("room", _F),  # and that its buffer holds
        ("above_xoff", _F),  # time spent above
        ("above_room", _F),
        ("idle", _F, (LOADS + 2,)),  # time without a queue, shared out to the loads on either side
        ("lowest", _F),  # integral of the queue while it is in the first bin
        ("mass", _F, (BINS,)),  # time in each bin, of segments that end in it
        ("density", _F, (BINS + 1,)),  # steps of the time per byte, of segments that cross whole bins
    ],
    align=True,
)


class Sim(NamedTuple):
    """Complete memory of a run."""

    core: Any  # CORE, one row
    flows: Any  # FLOW
    hops: Any  # HOP
    links: Any  # LINK
    calendar: Any  # (2 leaves,) tree of the next times of flows, links, and instants
    hops_at: Any  # (hops,) by link
    trees: Any  # (3, nodes) `HAZARDS`, `PACKETS`, `WAKES` of all links
    sums: Any  # (nodes,) of the rates that arrive
    cnps: Any  # (flows, ring) times at which CNPs reach their senders
    marks: Any  # (flows, ring) times at which marked packets come to receivers whose NICs space CNPs
    followers: Any  # (waits,) flows that wait, by the flow that they wait for
    waits: Any  # (waits,) what of that counts
    nics: Any  # (flows,) from when on a receiver's NIC may send its next CNP
    output_times: Any  # (links, ring)
    output_rates: Any  # (links, ring, hops of a link)
    transit_times: Any  # (links, ring)
    transit_hops: Any  # (links, ring) the hop that each comes to
    looks: Any  # (instants,) at which samples are taken or the window opens or closes
    kinds: Any  # (instants,) 0 sample, 1 opens, 2 closes
    rows: Any  # (instants,) of the samples
    link_samples: Any  # (samples, links, 2) queue, bytes sent
    flow_samples: Any  # (samples, flows, columns)
    senders: Any  # one table for each built-in scheme
    outside: Any  # bytes: the states of all others
    calls: Any  # (schemes from outside, rules) addresses


def records(dtype: np.dtype[Any], rows: int) -> Any:
    """Zeroed records whose fields are attributes, with and without compilation."""
    return np.zeros(rows, dtype).view(np.recarray)
