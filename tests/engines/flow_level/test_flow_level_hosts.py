"""Hosts of the flow level in a step, and what they hear of the network, as plain Python on a memory written here."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fluidcc.contract.red import red
from fluidcc.engines.flow_level import senders, step
from fluidcc.engines.flow_level.layout import (
    ARRIVING,
    DRAINING,
    FOUND,
    INPUT,
    OUTPUT,
    QUEUE,
    SENDING,
    STEP,
    STOOD,
)
from tests.engines.flow_level.network_by_hand import DT, NOW, RATE, RECORDS, STEPS, exactly, flow, steps
from tests.engines.hybrid.by_hand import replaced
from tests.engines.packet.plain import plain

# -- hosts -------------------------------------------------------------------------------------------------------------


def test_acks_wait_behind_the_ports_of_the_way_back_but_the_first() -> None:
    """The round trip is 6 s, two steps of it between ports; 50 and 25 bytes wait on the way back, and 99 at its NIC."""
    m = steps()
    m.ports.backlog[[3, 4, 5, 1, 2]] = 99.0, 50.0, 25.0, 7.0, 8.0
    assert plain(step.ack_lag)(m.net, m.ports, 0, DT) == exactly((6.0 - 2 * DT + 0.75) / DT - 1)


@pytest.mark.parametrize(
    ("lag", "since", "before", "acked"),
    [
        (2.25, 0, 0.0, 0.75 * 800 + 0.25 * 700),
        (2.0, 0, 0.0, 800.0),
        (0.5, 0, 0.0, 900.0),  # a step at least
        (100.0, 0, 0.0, 1000.0 - 100 * (RECORDS - 2)),  # what is still kept
        (2.25, 8, 0.0, 0.75 * 800 + 0.25 * 700),  # it began with the step whose bytes come first
        (2.25, 9, 0.0, 0.0),
        (2.25, 0, 790.0, 790.0),  # an ACK that has come stays
    ],
)
def test_senders_learn_of_bytes_a_lag_after_they_were_delivered(
    lag: float, since: int, before: float, acked: float
) -> None:
    """A hundred bytes were delivered in each step, of which 900 by the ninth."""
    m = steps(used=2)
    s = m.used[0] = 2
    m.slots.delivered_at[s, np.arange(STEPS - RECORDS, STEPS) % RECORDS] = 100.0 * np.arange(STEPS - RECORDS, STEPS)
    m.slots.since[s], m.slots.acked[s], m.slots.newly[s] = since, before, -1.0
    replaced(step.acknowledge, ack_lag=lambda *given: lag)(m, DT)
    assert m.slots.acked[s] == exactly(max(acked, before))
    assert m.slots.newly[s] == exactly(max(acked - before, 0.0))
    assert m.slots.acked[1] == 0.0


@pytest.mark.parametrize(
    ("acks", "waiting", "is_"),
    [({}, {}, False), ({4: 1.0}, {}, True), ({}, {5: 1.0}, True), ({4: 1.0}, {4: 1.0}, True)],
)
def test_acks_are_on_their_way_while_a_port_has_some(
    acks: dict[int, float], waiting: dict[int, float], is_: bool
) -> None:
    m = steps()
    for p, value in acks.items():
        m.ports.acks[p] = value
    for p, value in waiting.items():
        m.ports.waiting_acks[p] = value
    assert plain(step.answering)(m) is is_
    m = m._replace(net=m.net._replace(used=np.array([0, 1])))
    m.ports.acks[5] = 1.0
    assert plain(step.answering)(m) is False  # no path crosses it


def sent(m: Any, begins: Any = None) -> Any:
    plain(step.send)(m, DT, NOW, np.zeros(9) if begins is None else np.asarray(begins))
    return m.slots


@pytest.mark.parametrize(
    ("values", "begins", "x"),
    [
        ({}, 0.0, 40.0),  # 80 a second for half a second
        ({}, NOW + 0.2, 24.0),  # it began within the step
        ({"pace": 500.0}, 0.0, 50.0),  # the NIC's rate
        ({"window": 130.0}, 0.0, 30.0),  # 200 sent, 100 acknowledged: 30 more are allowed
        ({"window": 90.0}, 0.0, 0.0),
        ({"doing": DRAINING}, 0.0, 0.0),
    ],
)
def test_a_nic_carries_what_pace_and_window_allow(values: dict[str, Any], begins: float, x: float) -> None:
    m = steps()
    known = {"pace": 80.0, "window": 1e300, "sent": 200.0, "acked": 100.0, "left": 1000.0, "want": 9.0, "hop": 7}
    for name, value in (known | values).items():
        getattr(m.slots, name)[0] = value
    slots = sent(m, [begins])
    assert slots.want[0] == exactly(x)
    assert (slots.left[0], slots.sent[0]) == (exactly(1000.0 - x), exactly(200.0 + x))
    assert (slots.doing[0], slots.hop[0]) == (values.get("doing", SENDING), 7)


@pytest.mark.parametrize(
    ("left", "begins", "end", "part"),
    [(20.0, 0.0, NOW + 0.25, 0.5), (40.0, 0.0, NOW + 0.5, 1.0), (12.0, NOW + 0.2, NOW + 0.35, 0.7)],
)
def test_a_last_byte_leaves_within_the_step(left: float, begins: float, end: float, part: float) -> None:
    """At 80 a second: where it is in the step, and what it is to do then."""
    m = steps()
    m.slots.pace[0], m.slots.window[0], m.slots.left[0] = 80.0, 1e300, left
    slots = sent(m, [begins])
    assert (slots.doing[0], slots.left[0], slots.sent[0]) == (ARRIVING, 0.0, left)
    assert (slots.end[0], slots.part[0]) == (exactly(end), exactly(part))
    assert (slots.hop[0], slots.ready[0], slots.target[0]) == (1, STEPS + 1, -1.0)


def shared_by_hand(wants: list[float], room: float) -> list[float]:
    """Max-min shares, by filling up from the least."""
    shares, left = dict.fromkeys(range(len(wants)), 0.0), room
    todo = sorted(range(len(wants)), key=lambda i: wants[i])
    for k, i in enumerate(todo):
        shares[i] = min(wants[i], left / (len(wants) - k))
        left -= shares[i]
    return [shares[i] for i in range(len(wants))]


@pytest.mark.parametrize(
    "wants",
    [
        [40.0, 40.0, 40.0],
        [5.0, 40.0, 40.0],
        [5.0, 12.0, 40.0],
        [10.0, 10.0, 10.0],
        [5.0, 16.0, 18.0, 40.0],
        [50.0, 0.0],
    ],
)
@pytest.mark.parametrize("acks", [0.0, 10.0, 60.0])
def test_a_nic_that_cannot_carry_all_shares_itself_equally(wants: list[float], acks: float) -> None:
    """The others get what some do not want, beside ACKs, which leave a hundredth; a second NIC is on its own."""
    count = len(wants)
    m = steps(count + 1, count + 1, there=[[0, 1, 2], [3, 4, 5]], back=[[3, 4, 5], [0, 1, 2]], hops=[3, 3])
    m.slots.flow[count] = 1
    m.slots.pace[:], m.slots.window[:], m.slots.left[:] = np.array([*wants, 45.0]) / DT, 1e300, 1000.0
    m.ports.acks[0] = acks
    m.slots.transfer[:] = np.arange(count + 1)
    room = max(RATE * DT - acks, 0.01 * RATE * DT)
    expected = shared_by_hand(wants, room) if sum(wants) > room else wants
    assert sent(m).want == exactly([*expected, 45.0])


def test_what_is_left_to_send_is_all_that_a_transfer_asks_its_nic_for() -> None:
    """One has 10 bytes left, and the other the rest; it ends at its own pace, as its want is not held back."""
    m = steps(2, 2)
    m.slots.pace[:], m.slots.window[:], m.slots.left[:] = 80.0, 1e300, [10.0, 1000.0]
    slots = sent(m)
    assert slots.want[:2] == exactly([10.0, 40.0])
    assert slots.end[0] == exactly(NOW + 0.5 * 10 / 40)
    m = steps(2, 2)
    m.slots.pace[:], m.slots.window[:], m.slots.left[:] = 180.0, 1e300, [10.0, 1000.0]
    assert sent(m).want[:2] == exactly([10.0, 40.0])


def test_a_nic_that_is_paused_sends_nothing() -> None:
    m = steps()
    m.slots.pace[0], m.slots.window[0], m.slots.left[0] = 80.0, 1e300, 1000.0
    m.ports.paused[0] = 1
    assert sent(m).want[0] == 0.0
    assert m.slots.left[0] == 1000.0


# -- feedback ----------------------------------------------------------------------------------------------------------

KINDS = [[0.0, 100.0, 0.5]] * 6
NEEDS = [1, 1, 1]
AT = 3  # the step in which what is acknowledged now left the last port


def looked(m: Any, needs: Any = NEEDS, pause: float = 0.0, lag: float = 5.0) -> Any:
    seen = flow(rtt=-1.0, marking=-1.0)
    replaced(senders.look, ack_lag=lambda *given: lag)(m, 0, seen, needs, DT, pause)
    return seen


def history(**values: Any) -> Any:
    """Queues of port 1 and 2 in each step, which are 10 and 20 bytes for each step so far, and what leaves them."""
    m = steps(marking=KINDS, **values)
    for p, queue, found, stood in ((1, 10.0, 8.0, 0.2), (2, 20.0, 12.0, 0.4)):
        for column, value in ((QUEUE, queue), (FOUND, found), (STOOD, stood)):
            m.ports.seen[:STEPS, p, column] = value * np.arange(STEPS)
    m.ports.seen[:, :, OUTPUT], m.ports.seen[:, :, INPUT] = (
        200.0 + np.arange(RECORDS)[:, None],
        300.0 + np.arange(RECORDS)[:, None],
    )
    m.slots.since[0] = -5
    m.slots.sent[0], m.slots.acked[0], m.slots.newly[0] = 7.0, 6.0, 5.0
    m.ports.backlog[[3, 4, 5]] = 99.0, 50.0, 25.0
    return m


@pytest.mark.parametrize(("pause", "lag"), [(0.0, 5.0), (1.0, 3.0)])
def test_telemetry_is_that_of_the_ports_as_the_packets_left_them(pause: float, lag: float) -> None:
    """The last port was left a step and the lag ago, and a pause at the receiver; the one before it a step earlier."""
    seen = looked(history(), pause=pause, lag=lag)
    assert seen.queue[:2].tolist() == [10.0 * (AT - 1), 20.0 * AT]
    assert seen.output[:2].tolist() == [200.0 + AT - 1, 200.0 + AT]
    assert seen.arriving[:2].tolist() == [300.0 + AT - 1, 300.0 + AT]
    assert seen.capacity[:2].tolist() == [RATE, RATE]
    assert (seen.sent, seen.acked, seen.newly) == (7.0, 6.0, 5.0)


def test_marks_are_by_the_queue_that_packets_joined_or_left() -> None:
    """Bytes that left the last port as 60 were there had joined 36, and at the first 16, as 20 were there."""
    seen = looked(history())
    assert seen.marking == exactly(1 - (1 - 0.5 * 16 / 100) * (1 - 0.5 * 36 / 100))
    seen = looked(history(joining=[False] * 6))
    assert seen.marking == exactly(1 - (1 - 0.5 * 20 / 100) * (1 - 0.5 * 60 / 100))


def test_delays_are_those_of_both_ways() -> None:
    seen = looked(history())
    assert seen.rtt == exactly(6.0 + 0.16 + 0.36 + 0.5 + 0.25)


@pytest.mark.parametrize("need", [0, 1, 2, None])
def test_what_no_scheme_asks_for_is_not_looked_at(need: int | None) -> None:
    needs = [int(k == need) for k in range(3)]
    seen = looked(history(), needs)
    if need is None:
        assert (seen.rtt, seen.marking) == (-1.0, -1.0)
    else:
        assert seen.rtt == exactly(7.27 if need == senders.DELAY else 6.0)
        assert bool(seen.marking > 0) is (need == senders.MARKS)
        assert bool(seen.capacity.any()) is (need == senders.TELEMETRY)
    assert seen.newly == 5.0


@pytest.mark.parametrize(("since", "marks"), [(-1, True), (0, False), (1, False)])
def test_there_are_no_marks_of_what_was_sent_before_the_flow_began(since: int, marks: bool) -> None:
    """Bytes that left in step 3 were at the first port in step 1, and stood for 1.6 steps: they were sent at -0.6."""
    m = history()
    m.slots.since[0] = since
    assert bool(looked(m).marking > 0) is marks


def test_history_that_is_no_more_kept_is_the_oldest_that_is() -> None:
    """Sixteen records: the last port's of 15 steps less the path's ago; no step before the first."""
    m = history()
    m.now[STEP] = 40
    m.ports.seen[:, :, QUEUE] = np.arange(RECORDS)[:, None]
    seen = looked(m, lag=100.0)
    left = 39 - (RECORDS - 1 - 2)
    assert seen.queue[:2].tolist() == [(left - 1) % RECORDS, left % RECORDS]
    m.now[STEP] = 3
    m.ports.seen[0, :, QUEUE] = 7.0
    assert looked(m, lag=5.0).queue[:2].tolist() == [7.0, 7.0]


@pytest.mark.parametrize(
    ("queue", "chance"), [(0.0, 0.0), (10.0, 0.0), (10.5, 0.0125), (30.0, 0.5), (30.5, 1.0), (20.0, 0.25)]
)
def test_a_queue_is_marked_by_its_ramp(queue: float, chance: float) -> None:
    assert red(queue, 10.0, 30.0, 0.5) == exactly(chance)


@pytest.mark.parametrize(("queue", "chance"), [(10.0, 0.0), (10.5, 1.0), (9.5, 0.0)])
def test_a_step_marks_all_that_is_above_it(queue: float, chance: float) -> None:
    assert red(queue, 10.0, 10.0, 0.5) == chance
