"""The memory of a run step by step: what stands, what ports hold, and a *slot* for each transfer under way."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

FREE, SENDING, ARRIVING, DRAINING = map(np.int8, range(4))  # what a slot does
STEP, HELD, USED, LEFT, STATUS, PAUSES, BUSY = range(7)  # of `Steps.now`
RUNNING, DONE, FULL, IDLE = range(4)  # status


class Net(NamedTuple):
    """What does not change."""

    there: Any  # (flows, hops) ports; the NIC first
    back: Any  # (flows, hops)
    hops: Any  # (flows,)
    ack_share: Any  # (flows,)
    rtt: Any  # (flows,) [s]
    packet: Any  # (flows,) [bytes]
    kind: Any  # (flows,) of the paths that are alike
    line_rate: Any  # (flows,) [bytes/s]
    initial_rate: Any  # (flows,) [bytes/s]
    rate: Any  # (ports,) [bytes/s]
    marking: Any  # (ports, 3) kmin, kmax, pmax
    source: Any  # (ports,) node that sends, among switches; -1: a host
    target: Any  # (ports,) likewise
    xoff: Any  # (ports,) fixed threshold of what came in by it; negative: a share of what is free
    shared: Any  # (nodes,) buffer that ports share [bytes]
    alpha: Any  # (1,) that share
    gap: Any  # (1,) how far below it goes on
    pausing: Any  # (1,) whether there is flow control


class Ports(NamedTuple):
    """What ports hold and do, each (ports,), or (records, ports) of the last steps."""

    backlog: Any  # data that waits [bytes]
    served: Any  # since the run began [bytes]
    serving: Any  # in the step under way
    acks: Any  # ACKs that pass in the step under way
    next_acks: Any  # and in the next
    came_in: Any  # bytes that wait behind it, having come in by it
    paused: Any  # whether it is
    paused_s: Any  # for how long it was
    want: Any  # of a NIC: what its transfers would send in the step
    count: Any  # and how many they are
    queue: Any  # (records, ports)
    output: Any
    arriving: Any


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
    waited: Any  # until now [s]
    end: Any  # when it was sent [s]
    sent_at: Any  # (slots, records) rate of sending
    delivered_at: Any  # (slots, records)


class Steps(NamedTuple):
    """All of it."""

    net: Net
    ports: Ports
    slots: Slots
    used: Any  # (slots,) numbers of the slots in use
    now: Any  # counters
    node_used: Any  # (nodes,) bytes that wait in it
    flow_of: Any  # (transfers,)
    level: Any  # (ports,) share of each of a NIC's transfers


def ports_of(count: int, records: int) -> Ports:
    """Empty ports."""
    plain = [np.zeros(count) for _ in range(6)]
    return Ports(
        *plain, np.zeros(count, np.int8), np.zeros(count), np.zeros(count), np.zeros(count, np.int64),
        *(np.zeros((records, count)) for _ in range(3)),
    )  # fmt: skip


def slots_of(count: int, hops: int, records: int) -> Slots:
    """Free slots."""
    def numbers() -> Any:
        return np.zeros(count)

    def whole() -> Any:
        return np.zeros(count, np.int64)

    return Slots(
        np.zeros(count, np.int8), whole(), whole(), numbers(), numbers(), numbers(), numbers(), numbers(), numbers(),
        numbers(), numbers(), whole(), np.zeros(count, np.int8), np.zeros((count, hops)), np.zeros((count, hops)),
        whole(), whole(), numbers(), numbers(), numbers(), np.zeros((count, records)), np.zeros((count, records)),
    )  # fmt: skip


def grown(slots: Slots) -> Slots:
    """Twice as many, of which the first are these."""
    return Slots(*(np.concatenate([column, np.zeros_like(column)]) for column in slots))
