"""A step of the flow level part by part, as plain Python on a memory that is written here."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fluidcc.engines.flow_level import step
from fluidcc.engines.flow_level.layout import (
    ARRIVING,
    DRAINING,
    FOUND,
    FREE,
    FULL,
    HELD,
    IDLE,
    LEFT,
    OVER,
    PAUSES,
    RUNNING,
    SENDING,
    STATUS,
    STEP,
    STOOD,
    USED,
    load_of,
)
from fluidcc.engines.flow_level.transfers import ANSWER, DEPARTURE, RECEIPT
from tests.engines.flow_level.network_by_hand import DT, NOW, RATE, STEPS, Calls, exactly, network, steps, waits
from tests.engines.hybrid.by_hand import replaced
from tests.engines.packet.plain import plain

# -- a step ------------------------------------------------------------------------------------------------------------


def test_a_transfer_takes_the_free_slot_behind_those_in_use() -> None:
    m = steps(3, 1)
    m.used[:] = [2, 0, 1]
    for column in m.slots:
        column[:] = 7
    m.flow_of[5] = 0
    plain(step._open)(m, 1, 5, 1234.0, STEPS)
    slots = m.slots
    assert (slots.doing[0], slots.transfer[0], slots.flow[0], slots.left[0]) == (SENDING, 5, 0, 1234.0)
    for name in ("sent", "delivered", "acked", "newly", "waited"):
        assert getattr(slots, name).tolist() == [0.0, 7.0, 7.0]
    assert (slots.pace[0], slots.window[0], slots.since[0], slots.fresh[0]) == (80.0, 1e300, STEPS, 1)
    assert not slots.queue[0].any()
    assert not slots.flux[0].any()
    assert not slots.delivered_at[0].any()


def advanced(m: Any, begins: list[float], heap: list[int], of: Any = None, answering: bool = False) -> dict[str, Any]:
    """Take a step whose parts are written down, and not done."""
    names = ("acknowledge", "send", "_depart", "_pass_on", "_pause", "_arrive", "_open", "pass_by")
    calls = {name: Calls(m.now[HELD] - 1) for name in names}
    m.now[HELD] = len(heap)
    wire = np.arange(100.0, 109.0)
    followers = waits([[]] * 9, [0] * 9) if of is None else of
    ends, held = np.zeros((9, 3)), np.array([*heap, *[0] * (9 - len(heap))])
    replaced(step.advance, answering=lambda m: answering, **calls)(
        m, DT, wire, "tail", "delay", followers, np.array([*begins, *[99.0] * (9 - len(begins))]), ends, held, "load"
    )
    return {name: each.made for name, each in calls.items()}


@pytest.mark.parametrize(
    ("begins", "used", "answering", "idle"),
    [
        (NOW + DT, 0, False, True),  # the first one to come begins with the next step
        (NOW + 0.9 * DT, 0, False, False),
        (NOW + DT, 1, False, False),
        (NOW + DT, 0, True, False),
    ],
)
def test_a_step_in_which_nothing_happens_is_not_taken(begins: float, used: int, answering: bool, idle: bool) -> None:
    m = steps(3, used)
    made = advanced(m, [begins], [0], answering=answering)
    assert bool(m.now[STATUS] == IDLE) is idle
    assert m.now[STEP] == (STEPS if idle else STEPS + 1)
    assert bool(made["send"]) is not idle


def test_without_any_to_come_steps_go_on() -> None:
    m = steps(3, 0)
    advanced(m, [], [])
    assert (m.now[STATUS], m.now[STEP]) == (RUNNING, STEPS + 1)


def test_transfers_open_in_the_step_in_which_they_begin() -> None:
    """Late by what has passed since: transfer 1 should have begun before the step, and 2 begins after it."""
    m = steps(4, 1)
    m.used[:] = [3, 1, 0, 2]
    made = advanced(m, [NOW + 0.1, NOW - 0.3, NOW + DT], [1, 0, 2])
    assert [each[1:] for each in made["_open"]] == [(1, 1, 101.0, STEPS), (2, 0, 100.0, STEPS)]
    assert m.slots.late[[1, 0]] == exactly([0.3, 0.0])
    assert m.now[[HELD, USED, STATUS, STEP]].tolist() == [1, 3, RUNNING, STEPS + 1]
    assert made["send"][0][1:3] == (DT, NOW)


def test_a_step_for_which_no_slot_is_free_waits_for_one() -> None:
    m = steps(2, 1)
    made = advanced(m, [NOW, NOW + 0.1, NOW + 0.2], [0, 1, 2])
    assert len(made["_open"]) == 1
    assert m.now[[HELD, USED, STATUS, STEP]].tolist() == [2, 2, FULL, STEPS]
    assert not made["send"]


def test_a_wait_ends_as_it_begins() -> None:
    m = steps(2, 0)
    m.flow_of[:2] = [-1, 0]
    m.now[LEFT] = 5
    made = advanced(m, [NOW, NOW + 0.1], [0])
    assert [each[7] for each in made["pass_by"]] == [0]
    assert (m.now[LEFT], m.now[USED]) == (4, 0)
    assert not made["_open"]


def test_no_step_is_taken_to_compile() -> None:
    calls = Calls()
    given = ("wire", "tail", "delay", "waits", "begins", "ends", "heap", "load")
    for count in (0, 1):
        replaced(step.one_step, advance=calls)("m", DT, count, given)
    assert calls.made == [("m", DT, *given)]


@pytest.mark.parametrize(
    ("doing", "hop", "ready", "tells"),
    [
        (ARRIVING, 1, STEPS + 1, True),
        (ARRIVING, 1, STEPS, False),  # it had left before
        (ARRIVING, 2, STEPS + 1, False),
        (SENDING, 1, STEPS + 1, False),
    ],
)
def test_a_departure_is_told_in_the_step_in_which_it_is(doing: int, hop: int, ready: int, tells: bool) -> None:
    """The transfer was opened 0.3 s late: its ends are reported earlier by as much."""
    m, tell = steps(2, 2), Calls(9)
    m.used[:] = [1, 0]
    m.now[HELD] = 4
    slots = m.slots
    slots.doing[:], slots.transfer[0], slots.end[0], slots.late[0] = [doing, SENDING], 6, 5.4, 0.3
    slots.hop[0], slots.ready[0] = hop, ready
    ends, of = np.zeros((9, 3)), waits([[]] * 9, [0] * 9)
    replaced(step._depart, tell=tell)(m, of, "delay", "begins", ends, "heap")
    left = exactly(5.1)
    if tells:
        assert tell.made == [
            (of[0], of[1], of[2], of[3], "delay", "begins", 6, 1 << DEPARTURE, left, left, left, "heap", 4)
        ]
    assert bool(tell.made) is tells
    assert (ends[6].tolist(), m.now[HELD]) == ([0.0, 0.0, left if tells else 0.0], 9 if tells else 4)


def passed_on(m: Any) -> Any:
    count = Calls()
    replaced(step._pass_on, _count=count)(m, DT, "load")
    assert count.made == [(m, DT, "load")]
    return m


def test_ports_serve_what_waits_in_proportion() -> None:
    """Two transfers, 30 and 90 bytes at port 1, which takes 50 in a step; these are at the next port a step later."""
    m = steps(2, 2)
    slots, ports = m.slots, m.ports
    slots.queue[:, 1], slots.queue[:, 2] = [20.0, 60.0], [4.0, 0.0]
    slots.flux[:, 0], slots.flux[:, 1], slots.want[:] = [10.0, 30.0], [5.0, 6.0], [15.0, 25.0]
    slots.delivered[:] = [100.0, 200.0]
    ports.seen[:, :, 2] = -1.0
    passed_on(m)
    share = 50.0 / 120.0
    assert slots.flux[:, 0].tolist() == [15.0, 25.0]
    assert slots.flux[:, 1] == exactly([30 * share, 90 * share])
    assert slots.queue[:, 1] == exactly([30 * (1 - share), 90 * (1 - share)])
    assert slots.flux[:, 2] == exactly([9.0, 6.0])  # all of what came
    assert slots.queue[:, 2] == exactly([0.0, 0.0])
    assert slots.delivered == exactly([109.0, 206.0])
    assert slots.delivered_at[:, STEPS] == exactly([109.0, 206.0])
    assert ports.passing[[1, 2]] == exactly([share, 1.0])
    assert ports.serving == exactly([40.0, 50.0, 15.0, 0.0, 0.0, 0.0])
    assert ports.backlog == exactly([0.0, 120.0, 15.0, 0.0, 0.0, 0.0])
    assert ports.came_in == exactly([70.0, 0.0, 0.0, 0.0, 0.0, 0.0])  # by the NIC's cable, and wait behind it
    assert ports.seen[STEPS, :, 2].tolist() == [0.0, 40.0, 11.0, 0.0, 0.0, 0.0]
    assert (ports.seen[STEPS + 1, :, 2] == -1.0).all()


def test_acks_wait_among_the_data() -> None:
    """10 came in this step, and 5 waited: with 45 bytes of data they are 60, of which 50 go."""
    m = steps()
    m.slots.queue[0, 1] = 45.0
    m.ports.acks[[1, 0]], m.ports.waiting_acks[1] = [10.0, 20.0], 5.0
    passed_on(m)
    assert m.ports.waiting_acks[[0, 1]] == exactly([0.0, 15.0])  # a NIC's do not wait
    assert m.ports.backlog[1] == exactly(60.0)
    assert m.slots.flux[0, 1] == exactly(45.0 * 50 / 60)
    paused = steps()
    paused.slots.queue[0, [1, 2]], paused.ports.paused[[1, 2]] = [45.0, 30.0], 1
    passed_on(paused)
    assert (paused.slots.flux[0, 1], paused.slots.queue[0, 1]) == (0.0, 45.0)
    assert paused.ports.came_in.tolist() == [45.0, 30.0, 0.0, 0.0, 0.0, 0.0]  # each by the port before it


def test_acks_of_what_was_delivered_take_their_share_of_the_way_back() -> None:
    """A tenth of a byte for each: 70 were delivered four steps ago."""
    m = steps()
    m.ports.next_acks[:] = -1.0
    count = Calls()
    replaced(step._pass_on, _count=count, _answered=lambda *given: 70.0)(m, DT, "load")
    assert m.ports.next_acks == exactly([0.0, 0.0, 0.0, 7.0, 7.0, 7.0])


@pytest.mark.parametrize(
    ("rtt", "delay"), [(6.0, 5), (5.0, 4), (5.9, 4), (6.4, 5), (6.6, 5), (1.0, 0), (0.1, 0), (3.49, 2), (3.51, 2)]
)
def test_acks_pass_half_of_what_is_left_of_the_round_trip_later(rtt: float, delay: int) -> None:
    """Steps of half of it, less one and a half for half of the ports, to the next whole one."""
    assert plain(step.ack_delay)(network(rtt=[rtt]), 0, DT) == delay == max(int(rtt / 2 / DT - 1.5 + 0.5), 0)


@pytest.mark.parametrize(("since", "bytes_"), [(0, 50.0), (4, 50.0), (5, 0.0), (6, 0.0)])
def test_bytes_are_answered_so_many_steps_after(since: int, bytes_: float) -> None:
    """Delivered by step 5, less by step 4."""
    m = steps()
    m.slots.since[0] = since
    m.slots.delivered_at[0, [4, 5, 6]] = 300.0, 350.0, 600.0
    assert plain(step._answered)(m, 0, 0, DT) == bytes_


def counted(m: Any) -> Any:
    load = load_of(6, 2 * DT)
    plain(step._count)(m, DT, tuple(load))
    return load


def test_ports_write_down_what_they_did() -> None:
    """Port 1 served 40 of data and half of its ACKs; a NIC sends its ACKs at once."""
    m = steps()
    ports = m.ports
    ports.acks[:] = [3.0, 8.0, 0.0, 5.0, 0.0, 0.0]
    ports.next_acks[:] = [1.0, 2.0, 0.0, 0.0, 0.0, 0.0]
    ports.waiting_acks[1], ports.passing[1] = 20.0, 0.5
    ports.backlog[[1, 2]], ports.serving[[0, 1]], ports.served[[0, 1]] = [90.0, 12.0], [30.0, 40.0], [300.0, 400.0]
    ports.seen[STEPS, :, 2] = [0.0, 60.0, 0.0, 0.0, 0.0, 0.0]
    m.node_used[:] = 99.0
    load = counted(m)
    assert ports.waiting_acks[1] == exactly(10.0)
    assert ports.backlog == exactly([0.0, 40.0, 12.0, 0.0, 0.0, 0.0])
    assert m.node_used == exactly([40.0, 12.0])
    assert ports.serving == exactly([33.0, 50.0, 0.0, 5.0, 0.0, 0.0])
    assert ports.served == exactly([333.0, 450.0, 0.0, 5.0, 0.0, 0.0])
    assert ports.seen[STEPS, :, 0] == exactly([0.0, 40.0, 12.0, 0.0, 0.0, 0.0])
    assert ports.seen[STEPS, :, 1] == exactly([66.0, 100.0, 0.0, 10.0, 0.0, 0.0])
    assert ports.seen[STEPS, :, 2] == exactly([6.0, 136.0, 0.0, 10.0, 0.0, 0.0])
    assert ports.log[STEPS, :, 0] == exactly([333.0, 490.0, 12.0, 5.0, 0.0, 0.0])
    assert ports.acks[:2].tolist() == [1.0, 2.0]
    assert load.carried[STEPS // 2] == exactly([33.0, 50.0, 0.0, 5.0, 0.0, 0.0])  # two steps an interval
    assert load.carried.sum() == exactly(88.0)


def departures(queue: Any, served: Any, kept: int = 512, first: int = 1) -> tuple[list[float], list[float]]:
    """Run `_follow` on port 1 from step 0; return the queues that bytes found, and the steps that they stood."""
    ports = steps().ports._replace(log=np.zeros((kept, 6, 2)))
    found, stood = [], []
    for n, (waits_, gone) in enumerate(zip(queue, served, strict=True)):
        ports.backlog[1], ports.served[1] = waits_, gone
        record = n % len(ports.seen)
        plain(step._follow)(ports, 1, n, record, n % kept, RATE * DT)
        found.append(float(ports.seen[record, 1, FOUND]))
        stood.append(float(ports.seen[record, 1, STOOD]))
    return found[first:], stood[first:]


@pytest.mark.parametrize("senders", [2, 3, 10])
def test_what_leaves_a_port_that_n_senders_fill_came_at_an_nth_of_the_time(senders: int) -> None:
    """At s + q(s)/C = t, by hand s = t/N; q(t)/C = (N - 1) t would say that it was sent before the senders began."""
    n, port = np.arange(12), RATE * DT
    found, stood = departures((senders - 1) * port * n, port * n)
    assert stood == exactly(n[1:] * (1 - 1 / senders))
    assert found == exactly((senders - 1) * port * n[1:] / senders)


@pytest.mark.parametrize("queue", [20.0, 50.0, 130.0])
def test_what_leaves_a_queue_that_stands_came_a_queue_s_time_ago(queue: float) -> None:
    """It takes q/C, also less than a step."""
    n, port = np.arange(12), RATE * DT
    found, stood = departures(np.full(12, queue), port * n, first=4)
    assert stood == exactly(np.full(8, queue / port))
    assert found == exactly(np.full(8, queue))


def test_what_leaves_a_queue_that_drains_found_more_than_it_leaves() -> None:
    """200 bytes came in step 1, and nothing since; 50 leave in each step."""
    found, stood = departures([0.0, 200.0, 150.0, 100.0, 50.0, 0.0], [0.0, 0.0, 50, 100, 150, 200])
    assert found[1:] == exactly([50.0, 100.0, 150.0, 0.0])  # as if they had come one after the other in that step
    assert stood[1:] == exactly([1.75, 2.5, 3.25, 0.0])


def test_time_in_a_queue_is_longer_while_its_port_is_paused() -> None:
    """Three steps without service; the queue over the port's rate would not grow by them."""
    n, port = np.arange(10), RATE * DT
    served = port * np.array([0, 1, 2, 3, 3, 3, 3, 4, 5, 6])
    _, stood = departures(2 * port * n - served, served)
    assert stood == exactly(n[1:] - served[1:] / (2 * port))


def test_an_empty_port_holds_nothing_back_whatever_crumbs_are_missing() -> None:
    """Half a byte of a slot that was freed is not served, so that less was served than came."""
    found, stood = departures([0.0, 10.5, 0.0, 0.0], [0.0, 49.5, 59.5, 59.5])
    assert (found[1:], stood[1:]) == ([0.0, 0.0], [0.0, 0.0])


def test_a_queue_that_is_longer_than_the_log_has_stood_before_it() -> None:
    """Eight of ten steps without service are kept; what had come before those took the port's time.

    A transfer that starts behind such a queue would be told at once of the marks of those before it.
    """
    found, stood = departures(60.0 * np.arange(10), np.zeros(10), kept=8)
    assert stood[5:] == exactly([6.0, 7.0, 7.0 + 60 / (RATE * DT), 7.0 + 120 / (RATE * DT)])
    assert found[-2:] == exactly([60.0, 120.0])


def test_loads_are_widened_for_a_step_beyond_their_end() -> None:
    m = steps()
    m.now[STEP] = 512  # of 256 intervals of two steps each
    m.ports.serving[0] = 30.0
    load = counted(m)
    assert load.width[0] == 4 * DT
    assert load.carried[128, 0] == 30.0


@pytest.mark.parametrize(
    ("shared", "dropping", "pausing", "over"),
    [
        (99.0, 1e18, False, True),
        (101.0, 1e18, False, False),
        (99.0, 1e18, True, False),
        (150.0, 1.9, False, True),  # 100 of what 50 free bytes allow
        (150.0, 2.1, False, False),
    ],
)
def test_a_buffer_that_is_full_ends_the_run_unless_ports_pause(
    shared: float, dropping: float, pausing: bool, over: bool
) -> None:
    m = steps(shared=[1e6, shared], dropping=[dropping], pausing=[pausing])
    m.ports.backlog[2] = 100.0
    counted(m)
    assert m.now[STATUS] == (OVER if over else 0)


@pytest.mark.parametrize(
    ("xoff", "came_in", "paused", "then"),
    [
        (-1.0, 450.0, 0, 0),  # half of the 900 that are free
        (-1.0, 451.0, 0, 1),
        (-1.0, 440.1, 1, 1),
        (-1.0, 440.0, 1, 0),  # 10 below
        (200.0, 200.0, 0, 0),
        (200.0, 201.0, 0, 1),
        (0.0, 1.0, 0, 1),
        (0.0, 0.0, 1, 0),
        (5.0, 0.0, 1, 0),  # never below nothing
        (5.0, 0.1, 1, 1),
    ],
)
def test_a_port_pauses_above_its_threshold_and_goes_on_a_gap_below(
    xoff: float, came_in: float, paused: int, then: int
) -> None:
    """The far end of port 0 is switch 0, in which 100 of 1000 bytes wait; port 2 leads to a host."""
    m = steps(pausing=[True], xoff=[xoff] * 6, gap=[10.0])
    m.node_used[0] = 100.0
    m.ports.came_in[[0, 2]], m.ports.paused[[0, 2]] = came_in, [paused, 0]
    m.ports.paused_s[0], m.ports.pauses[0], m.now[PAUSES] = 3.0, 4.0, 5
    plain(step._pause)(m, DT)
    began = then and not paused
    assert m.ports.paused[[0, 2]].tolist() == [then, 0]
    assert m.ports.paused_s[0] == exactly(3.0 + (DT if paused else 0.0))
    assert (m.ports.pauses[0], m.now[PAUSES]) == ((5.0, 6) if began else (4.0, 5))
    m.node_used[0] = 1e4  # more than there is: nothing is free
    m.ports.came_in[0], m.ports.paused[0] = 1.0, 0
    plain(step._pause)(m, DT)
    assert m.ports.paused[0] == (xoff <= 0)


def test_nothing_pauses_without_flow_control() -> None:
    m = steps(xoff=[5.0] * 6)
    m.ports.came_in[:], m.ports.paused[0] = 100.0, 1
    plain(step._pause)(m, DT)
    assert m.ports.paused.tolist() == [1, 0, 0, 0, 0, 0]
    assert not m.ports.paused_s.any()


def arrived(m: Any, ends: Any = None) -> tuple[Any, Any]:
    tell = Calls(8)
    of, tail = waits([[]] * 9, [0] * 9), np.array([[0.25, 1.0]] * 9)
    ends = np.zeros((9, 3)) if ends is None else ends
    replaced(step._arrive, tell=tell)(m, DT, tail, "delay", of, "begins", ends, "heap")
    return tell, ends


def last_byte(**values: Any) -> Any:
    """A last byte that came to port 1 two steps ago, half a step after the step's beginning."""
    m = steps()
    known = {"doing": ARRIVING, "hop": 1, "ready": STEPS - 2, "target": 500.0, "part": 0.5, "waited": 0.125, "end": 4.0}
    for name, value in (known | values).items():
        getattr(m.slots, name)[0] = value
    m.ports.served[1], m.ports.serving[1], m.ports.backlog[1] = 520.0, 45.0, 77.0
    m.slots.queue[0, 1] = 30.0  # it is not empty yet
    return m


def test_a_last_byte_goes_as_what_stood_before_it_has_gone() -> None:
    """475 bytes were served before the step, so 25 stood before it, which take half of a step at the port's rate."""
    m = last_byte()
    arrived(m)
    slots = m.slots
    assert slots.waited[0] == exactly(0.125 + DT * (2 + 0.5 - 0.5))
    assert slots.part[0] == exactly(0.5)
    assert (slots.hop[0], slots.ready[0], slots.target[0], slots.doing[0]) == (2, STEPS + 1, -1.0, ARRIVING)


@pytest.mark.parametrize(
    ("values", "served", "backlog", "goes"),
    [
        ({"target": 520.0}, 520.0, 77.0, True),
        ({"target": 520.0009}, 520.0, 77.0, True),  # rounding
        ({"target": 520.002}, 520.0, 77.0, False),
        ({"target": 520.002}, 520.0, 0.0009, True),  # an empty port has let all go
        ({"target": 520.002}, 520.0, 0.002, False),
        ({"ready": STEPS + 1}, 520.0, 77.0, False),
        ({"ready": STEPS}, 520.0, 77.0, True),
        ({"doing": SENDING}, 520.0, 77.0, False),
    ],
)
def test_a_last_byte_waits_until_its_turn(values: dict[str, Any], served: float, backlog: float, goes: bool) -> None:
    m = last_byte(**values)
    m.ports.served[1], m.ports.backlog[1] = served, backlog
    arrived(m)
    assert m.slots.hop[0] == (2 if goes else 1)


def test_a_last_byte_that_comes_stands_behind_what_waits() -> None:
    m = last_byte(target=-1.0, ready=STEPS - 1)
    arrived(m)
    assert (m.slots.target[0], m.slots.ready[0], m.slots.hop[0]) == (597.0, STEPS, 1)
    m = last_byte(target=-1.0, ready=STEPS - 1)
    m.ports.backlog[1] = 0.0
    arrived(m)  # it goes in the step in which it comes, and has not waited
    assert (m.slots.hop[0], m.slots.waited[0], m.slots.part[0]) == (2, 0.125, 0.5)


@pytest.mark.parametrize(("target", "leaves"), [(470.0, 0.0), (475.0, 0.0), (500.0, 0.5), (525.0, 1.0), (560.0, 1.0)])
def test_a_last_byte_s_place_in_a_step_is_within_it(target: float, leaves: float) -> None:
    m = last_byte(target=target)
    m.ports.served[1], m.ports.serving[1], m.ports.backlog[1] = 520.0, 45.0, 0.0
    arrived(m)
    assert m.slots.part[0] == exactly(leaves)
    assert m.slots.waited[0] == exactly(0.125 + DT * (2 + leaves - 0.5))


def test_behind_its_last_port_a_transfer_has_ended() -> None:
    """Sent at 4 s, 0.3 s late; it waited 1.125 s, and its ACK waits for 50 and 25 bytes of two ports besides."""
    m = last_byte(hop=2, late=0.3, transfer=6)
    m.ports.served[2], m.ports.serving[2], m.ports.backlog[2] = 520.0, 45.0, 77.0
    m.ports.backlog[[3, 4, 5]] = 99.0, 50.0, 25.0
    m.now[[HELD, LEFT]] = 3, 7
    tell, ends = arrived(m)
    received, answered = 3.7 + 0.25 + 1.125, 3.7 + 1.0 + 1.125 + 0.75
    assert ends[6].tolist() == [exactly(received), exactly(answered), 0.0]
    assert tell.made[0][6:] == (
        6,
        1 << ANSWER | 1 << RECEIPT,
        exactly(3.7),
        exactly(received),
        exactly(answered),
        "heap",
        3,
    )
    assert m.now[[HELD, LEFT, USED]].tolist() == [8, 6, 1]
    assert (m.slots.doing[0], m.slots.hop[0]) == (DRAINING, 3)


@pytest.mark.parametrize(
    ("queue", "flux", "heard", "free"),
    [
        ([0, 0, 0], [0, 0, 0], 1000.0, True),
        ([0, 0.4, 0.4], [0.1, 0, 0], 999.1, True),
        ([0, 0.4, 0.4], [0.1, 0.2, 0], 999.1, False),  # 1.1 bytes are under way
        ([0, 0.4, 0.7], [0, 0, 0], 999.1, False),
        ([0, 0, 0], [0, 0, 5], 999.1, True),  # what has left the last port is delivered
        ([0, 0, 0], [0, 0, 0], 998.9, False),  # an ACK is on its way
    ],
)
def test_a_slot_is_free_as_all_has_gone_and_is_heard_of(
    queue: list[float], flux: list[float], heard: float, free: bool
) -> None:
    """The first of slots 0, 1 and 2 is freed; the last one takes its place."""
    m = steps(3, 3)
    m.slots.doing[:], m.slots.delivered[0] = [DRAINING, SENDING, SENDING], 1000.0
    m.slots.queue[0], m.slots.flux[0] = queue, flux
    m.slots.delivered_at[0, :], m.slots.delivered_at[0, STEPS - 5] = 5000.0, heard
    arrived(m)
    assert m.slots.doing[0] == (FREE if free else DRAINING)
    assert m.now[USED] == (2 if free else 3)
    assert m.used.tolist() == ([2, 1, 0] if free else [0, 1, 2])


def test_the_slot_that_takes_a_free_one_s_place_is_looked_at_too() -> None:
    m = steps(2, 2)
    m.slots.doing[:], m.slots.delivered_at[:] = DRAINING, 0.0
    m.slots.delivered[:] = 0.5
    arrived(m)
    assert m.slots.doing.tolist() == [FREE, FREE]
    assert m.now[USED] == 0
