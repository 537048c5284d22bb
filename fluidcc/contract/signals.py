"""Signals that the network gives to a scheme's fluid model, and those that the model may ask for.

A scheme's ``fluid`` module names in ``NEEDS`` what costs extra. Without it, it observes marks and is rate-based:

- ``"telemetry"``: `Signals.telemetry`, what the links of the path report;
- ``"delay"``: `Signals.waits`, what packets waited in queues. The module is then `protocol.Comparing`;
- ``"inflight"``: bytes in flight are counted. The module is then `protocol.Jumping`: `Windowed` if a window limits
  these bytes, `Halting` if flows at times send less than their rate;
- ``"undetermined"``: `Signals.undetermined`, if the scenario's flow control has a fixed threshold (`fluid.network`).

In ``ONLY`` it gives the one value of each switch that it models, where the packet side has more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from jax import Array


class Telemetry(NamedTuple):
    """State of the links at the moment when the packets left them whose ACKs arrive now.

    Each field is (hops, flows, points), or (hops, 1, points) if all flows see the same; paths that are shorter than the
    longest repeat their last hop.
    """

    queue: Array  # [bytes]
    output: Array  # rate of sending [bytes/s]
    arriving: Array  # rate of arrivals [bytes/s]
    capacity: Array  # [bytes/s]
    class_queue: Array  # of the flow's own traffic class [bytes]
    class_output: Array  # [bytes/s]
    share: Array  # (flows, points) or less: part of a link that the class is guaranteed, by its weight


class Progress(NamedTuple):
    """Bytes of a group of flows at the end of a step, each (flows, points) or (1, points)."""

    sent: Array  # bytes sent so far
    acked: Array  # of these, acknowledged
    newly: Array  # of these, in the step that ended
    packet: Array  # a packet [bytes], as windows count it
    wire_packet: Array  # a packet on the wire [bytes]
    line_rate: Array  # [bytes/s]
    own: Array  # (hops, flows, 1) 1 for each hop of `Telemetry`, 0 where a shorter path repeats its last
    rtt: Array  # round trip, with what it waited in queues, of the packet whose ACK arrives at the step's end [s]
    dt: Array | float = 0.0  # the step [s]


class Waits(NamedTuple):
    """Time [s] that two packets of a flow spent in queues, each (flows, points)."""

    now: Array  # of the one whose ACK arrives now
    before: Array  # of the one sent an interval before it


class Signals(NamedTuple):
    """Lagged signals as a group of flows sees them when it reacts.

    Parameters
    ----------
    marking : Array, shape (flows, points) or (1, points)
        Probability that a packet was marked on its way; one row if all flows see the same.
    rate : Array, shape (flows, points)
        Own rate [bytes/s] at which the packets that carried the marks were sent.
    packet : Array, shape (flows, points) or (1, points)
        Packet size on the wire [bytes].
    telemetry : Telemetry or None
        If the scheme needs it.
    waits : Waits or None
        If the scheme needs delays.
    undetermined : Array or None
        Probability that a packet was marked UE and not CE (TCD); None where nothing pauses links.
    line_rate : Array or None
        Of the flow's NIC [bytes/s], for the slope of a law of rates.
    """

    marking: Array
    rate: Array
    packet: Array
    telemetry: Telemetry | None = None
    waits: Waits | None = None
    undetermined: Array | None = None
    line_rate: Array | None = None
