"""The hybrid's rules one by one, as plain Python, on records that are written here."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fluidcc.engines.hybrid import engine, hops, layout, queue
from fluidcc.engines.hybrid.layout import (
    CROSSING,
    DEAF,
    EMPTY,
    GROW_CNPS,
    GROW_MARKS,
    GROW_OUTPUT,
    GROW_TRANSIT,
    HAZARDS,
    IDLE,
    JOIN,
    LEAVE,
    LISTENING,
    MARK,
    NEVER,
    NOTHING,
    PACKETS,
    RIPE,
    SINGLY,
    TRANSIT,
    WAKE,
    WAKES,
)
from fluidcc.engines.hybrid.random_marks import antiderivative, hazard, uniform, wait_for
from fluidcc.schemes.none import hybrid as scripted
from tests.engines.hybrid.by_hand import GAP, LEAVES, PACKET, RATE, core_of, flow_of, hop_of, link_of, trees
from tests.engines.packet.plain import plain

# -- queues --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "time", "leaves"),
    [
        ({}, 2.0, 2.5),
        ({}, 4.0, 4.9),  # 50 + 2 * 20 bytes
        ({"slope": -20.0, "arriving": 80.0}, 4.0, 4.1),
        ({"slope": -20.0, "arriving": 80.0}, 6.0, 6.0),  # it ran empty at 4.5 s
        ({"queue": 0.0, "arriving": 100.0, "slope": 0.0}, 3.0, 3.0),
        ({"queue": 0.0}, 3.0, 3.2),  # nothing waits yet, but more comes than leaves
    ],
)
def test_what_joins_leaves_behind_what_waits(values: Any, time: float, leaves: float) -> None:
    assert plain(queue.departure)(link_of(**values), time) == pytest.approx(leaves, rel=1e-15)


@pytest.mark.parametrize(("load", "chance"), [(0.0, 0.0), (0.5, 0.05), (1.0, 0.1), (1.5, 0.1), (0.3, 0.03)])
def test_an_empty_queue_is_marked_by_its_load(load: float, chance: float) -> None:
    meeting = np.append(np.linspace(0, 0.1, queue.LOADS + 1), 0.1)
    assert plain(queue.at_load)(link_of(arriving=load * RATE, meeting=meeting)) == pytest.approx(chance)


@pytest.mark.parametrize(
    ("zone", "length", "chance"), [(0, 20.0, 0.0), (1, 40.0, 0.0), (1, 50.0, 0.125), (1, 80.0, 0.5), (1, 90.0, 0.5)]
)
def test_a_ramp_is_straight_between_its_ends(zone: int, length: float, chance: float) -> None:
    assert plain(queue.chance)(link_of(zone=zone), length) == pytest.approx(chance)


@pytest.mark.parametrize(
    ("values", "wait"),
    [
        ({"zone": 1}, 1.5),  # from 50 to 80 at 20 a second
        ({"zone": 2, "queue": 90.0}, NEVER),  # beyond the last threshold
        ({"zone": 1, "slope": -5.0}, 2.0),  # down to 40
        ({"zone": 2, "slope": -5.0, "queue": 90.0}, 2.0),
        ({"zone": 1, "slope": 0.0}, NEVER),
        ({"zone": 1, "queue": 80.5}, 0.0),
    ],
)
def test_a_piece_ends_where_the_queue_leaves_it(values: Any, wait: float) -> None:
    assert plain(queue.until_crossing)(link_of(**values)) == wait


@pytest.mark.parametrize(
    ("values", "zone", "length"),
    [
        ({"zone": 1, "slope": 1.0}, 2, 80.0),
        ({"zone": 0, "slope": 1.0}, 1, 40.0),
        ({"zone": 2, "slope": -1.0}, 1, 80.0),
        ({"zone": 1, "slope": -1.0}, 0, 40.0),
        ({"zone": 0, "slope": -1.0}, EMPTY, 0.0),
    ],
)
def test_a_crossing_puts_the_queue_on_its_threshold(values: Any, zone: int, length: float) -> None:
    link = link_of(**values)
    plain(queue.cross)(link)
    assert (link.zone, link.queue) == (zone, length)


# -- packets of a flow at a link -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("came", "next_"), [(203.0, 210.0), (210.0, 220.0), (210.0 - 1e-10, 220.0), (0.0, 10.0)])
def test_the_next_packet_is_whole_at_the_next_multiple(came: float, next_: float) -> None:
    assert plain(hops.boundary)(hop_of(mark_came=came)) == next_


@pytest.mark.parametrize(
    ("rate", "draining", "is_"), [(40.0, 0.2, True), (40.0, 0.25, False), (0.0, 0.2, False), (40.0, 0.0, False)]
)
def test_packets_are_rare_if_one_takes_longer_to_come_than_the_queue_to_drain(
    rate: float, draining: float, is_: bool
) -> None:
    """At its first link by the sender's rate, as a gap that is still to run to a boundary is of another for a while."""
    link = link_of(draining=draining)
    assert plain(hops.rare)(link, flow_of(rate=rate, first=7), hop_of(mark_rate=1e-3), 7) == is_
    assert plain(hops.rare)(link, flow_of(rate=1e-3, first=7), hop_of(mark_rate=rate), 8) == is_


@pytest.mark.filterwarnings("ignore:overflow encountered")  # of numbers that wrap on purpose
def test_bytes_of_candidates_are_those_of_the_old_rate_until_now() -> None:
    """1 s at 40 a second; the clock went 1 a packet further, of which four packets came: of 5 left, 1."""
    hop = hop_of()
    plain(hops.candidates)(core_of(), flow_of(), hop, trees(), link_of(), 0, 80.0)
    assert (hop.mark_came, hop.mark_at, hop.mark_rate) == (243.0, 2.0, 80.0)
    assert (hop.left, hop.hazard, hop.wait) == (1.0, 7.0, LISTENING)
    rare = hop_of()
    plain(hops.candidates)(core_of(), flow_of(), rare, trees(), link_of(draining=0.1), 0, 80.0)
    assert rare.wait == SINGLY
    again = hop_of(wait=SINGLY)
    plain(hops.candidates)(core_of(), flow_of(), again, trees(), link_of(zone=2), 0, 80.0)
    assert (again.wait, again.draws, again.hazard) == (LISTENING, 4, 7.0)


@pytest.mark.parametrize(
    ("values", "link", "came"),
    [
        ({"wait": SINGLY}, {"draining": 0.1}, 210.0 - 1e-6 * PACKET),
        ({"wait": RIPE}, {}, 210.0 - 1e-6 * PACKET),
        ({"wait": LISTENING}, {"zone": 1, "likely": 1}, 210.0 - 1e-6 * PACKET),
        ({"wait": LISTENING}, {"zone": 0, "likely": 1}, 210.0),  # nothing is drawn for it
        ({"wait": DEAF}, {}, 210.0),
    ],
)
def test_a_rate_that_changes_as_a_packet_is_whole_leaves_it_its_chance(values: Any, link: Any, came: float) -> None:
    """7 of 10 bytes were to come at 40 a second, for 0.175 s."""
    hop = hop_of(mark_at=2.0 - 0.175, **values)
    plain(hops.candidates)(core_of(), flow_of(), hop, trees(), link_of(**link), 0, 80.0)
    assert hop.mark_came == pytest.approx(came, rel=1e-12)


@pytest.mark.parametrize(
    ("hop", "link", "due", "packet", "wake"),
    [
        ({"wait": LISTENING}, {}, 6.0 + 5.0 * PACKET / 40.0, NEVER, NEVER),
        ({"wait": LISTENING, "left": -1.0}, {}, 6.0, NEVER, NEVER),
        ({"wait": LISTENING}, {"zone": 2}, 6.0 + 5.0 * PACKET / 40.0, 1.0 + 7.0 / 40.0, NEVER),
        ({"wait": LISTENING}, {"zone": 1, "likely": 1}, 6.0 + 5.0 * PACKET / 40.0, 1.0 + 7.0 / 40.0, NEVER),
        ({"wait": RIPE}, {}, NEVER, 1.0 + 7.0 / 40.0, NEVER),
        ({"wait": SINGLY}, {}, NEVER, 1.0 + 7.0 / 40.0, NEVER),
        ({"wait": DEAF}, {"zone": 2}, NEVER, NEVER, 9.0 - 0.5),  # leaves so that it arrives as the interval ends
        ({"wait": IDLE}, {"zone": 2}, NEVER, NEVER, NEVER),
        ({"wait": RIPE, "mark_rate": 0.0}, {}, NEVER, NEVER, NEVER),
    ],
)
def test_a_hop_waits_on_the_clock_that_its_state_names(
    hop: Any, link: Any, due: float, packet: float, wake: float
) -> None:
    found = trees()
    plain(hops.retime)(flow_of(deaf=9.0), hop_of(**hop), found, link_of(**link))
    assert [found[row, LEAVES + 1] for row in (HAZARDS, PACKETS, WAKES)] == pytest.approx([due, packet, wake])
    assert [found[row, 1] for row in (HAZARDS, PACKETS, WAKES)] == pytest.approx([due, packet, wake])


@pytest.mark.parametrize(
    ("came", "left", "wait"), [(204.0, 5.0 - 0.4 * 2.0, LISTENING), (200.0, 5.0, LISTENING), (209.0, 5.0, LISTENING)]
)
def test_a_packet_under_way_is_one_whole_chance(came: float, left: float, wait: int) -> None:
    hop = hop_of(mark_came=came)
    plain(hops.catch_up)(link_of(per_packet=2.0), hop)
    assert hop.left == pytest.approx(left - (1.8 if came == 209.0 else 0.0))
    assert hop.wait == wait


def test_one_that_has_no_chance_left_is_ripe() -> None:
    hop = hop_of(mark_came=205.0, left=1.0)
    plain(hops.catch_up)(link_of(per_packet=2.0), hop)
    assert (hop.left, hop.wait) == (0.0, RIPE)


@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_packets_drawn_one_by_one_are_marked_by_their_numbers() -> None:
    draw, core = plain(hops.drawn), core_of()
    number = plain(uniform)(5, 0, 3)
    hop = hop_of()
    assert draw(core, link_of(chance=number), hop, 0)
    assert hop.draws == 4
    assert not draw(core, link_of(chance=number * (1 - 1e-9)), hop_of(), 0)
    hop = hop_of()
    assert draw(core, link_of(zone=2, chance=0.0), hop, 0)  # beyond Kmax
    assert not draw(core, link_of(chance=0.0), hop, 0)
    assert hop.draws == 3


@pytest.mark.parametrize(("came", "ends"), [(499.5, True), (499.4, False), (700.0, True)])
def test_a_flow_ends_with_its_last_byte(came: float, ends: bool) -> None:
    """Its last packet joined when it began, 10/60 s before; it waits with the queue as it is now, 0.5 s."""
    core, flow = core_of(ended=7), flow_of(followers_end=1)
    plain(hops.complete)(core, link_of(), hop_of(came=came, flow=3), flow)
    if not ends:
        assert (flow.finish, core.ended, flow.next_ended) == (NEVER, 7, -1)
        return
    assert flow.finish == pytest.approx(2.5 - 10 / 60 + 0.5 + 0.75)
    assert (core.ended, flow.next_ended) == (4, 7)  # the first of a list, of several from 1
    for not_yet in ({"state": 1}, {"state": 1, "total": 0.0}):
        flow = flow_of(**not_yet)
        plain(hops.complete)(core, link_of(), hop_of(came=came), flow)
        assert flow.finish == NEVER


def test_a_flow_shorter_than_a_packet_ends_its_own_bytes_after_it_began() -> None:
    core, flow = core_of(), flow_of(total=6.0)
    plain(hops.complete)(core, link_of(), hop_of(came=6.0), flow)
    assert flow.finish == pytest.approx(2.5 - 6 / 60 + 0.5 + 0.75)
    assert core.ended == 0  # nobody waits for it


def test_a_marked_packet_goes_on_behind_the_others() -> None:
    times, several = np.zeros((1, 8)), np.zeros((1, 8), int)
    link, core = link_of(transit_head=6, transit=3), core_of()
    plain(hops.send_on)(core, times, several, link, 11, 3.0)
    assert (times[0, 1], several[0, 1], link.transit, core.status) == (3.25, 11, 4, 0)  # over the ring's end
    plain(hops.send_on)(core, times, several, link, 12, 4.0)
    assert (times[0, 2], several[0, 2], link.transit, core.status) == (4.25, 12, 5, GROW_TRANSIT)


# -- a receiver ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("deaf", "next_", "cnp", "deaf_then"),
    [(0.0, 0.0, 4.0, 0.0), (0.0, 3.25, 4.25, 3.25), (4.0, 3.5, None, 4.0), (3.0, 3.0, 4.0, 3.0)],
)
def test_a_receiver_answers_at_once_or_at_its_interval_s_end(
    deaf: float, next_: float, cnp: float | None, deaf_then: float
) -> None:
    """A mark comes at 3 s; its CNP is 1 s on its way back."""
    flow, cnps = flow_of(deaf=deaf, cnp_next=next_, head=7), np.zeros((1, 8))
    plain(hops.marked)(core_of(), flow, cnps, 0, 3.0)
    assert flow.deaf == deaf_then
    assert flow.waiting == (cnp is not None)
    if cnp is not None:
        assert (cnps[0, 7], flow.cnp_next) == (cnp, cnp - 1.0 + GAP)


def test_rings_of_cnps_go_round_and_grow_in_time() -> None:
    flow, cnps, core = flow_of(head=6, waiting=3), np.zeros((1, 8)), core_of()
    plain(hops.notify)(core, flow, cnps, 0, 3.0)
    assert (cnps[0, 1], flow.waiting, core.status) == (4.0, 4, 0)
    plain(hops.notify)(core, flow, cnps, 0, 4.0)
    assert (cnps[0, 2], flow.waiting, core.status) == (5.0, 5, GROW_CNPS)


def test_a_nic_gives_each_flow_its_turn_by_hand() -> None:
    """CNPs of NIC 1 are 2 s apart, the last at 1 s. A mark at 1.5 s asks at once and has its turn at 3 s.

    Of those that come meanwhile, that of 2.5 s is answered by this CNP; that of 3.2 s asks at the interval's end.
    """
    core, marks, cnps = core_of(now=1.5), np.zeros((1, 8)), np.zeros((1, 8))
    flow = flow_of(nic_cnp_interval=2.0, first_mark=7)
    for time in (1.5, 2.5, 3.2, 3.3):
        plain(hops.marked_for_nic)(core, flow, marks, 0, time)
    assert (flow.request, flow.deaf, flow.marks) == (1.5, 1.5, 3)
    assert marks[0, [7, 0, 1]].tolist() == [2.5, 3.2, 3.3]
    nics = np.array([0.0, 3.0])
    plain(hops.ask)(core, flow, nics, cnps, marks, 0)
    assert nics.tolist() == [0.0, 5.0]
    assert (cnps[0, 0], flow.cnp_next) == (4.0, 3.5)
    assert (flow.request, flow.deaf) == (3.5, 3.5)
    assert (flow.marks, flow.first_mark) == (0, 2)  # 3.3 s too is within the interval
    assert core.status == 0
    flow.marks = 4
    plain(hops.marked_for_nic)(core, flow, marks, 0, 9.0)
    assert (flow.marks, core.status) == (5, GROW_MARKS)


@pytest.mark.parametrize(("time", "asks"), [(3.2, 3.5), (3.5, 3.5), (3.7, 3.7)])
def test_a_flow_asks_its_nic_no_sooner_than_its_interval_ends(time: float, asks: float) -> None:
    """The last CNP left at 3 s and intervals are 0.5 s. Catches a request for a CNP inside of an interval."""
    flow = flow_of(nic_cnp_interval=2.0, cnp_next=3.0 + GAP)
    plain(hops.marked_for_nic)(core_of(now=3.2), flow, np.zeros((1, 8)), 0, time)
    assert (flow.request, flow.deaf, flow.marks) == (asks, asks, 0)


# -- links -----------------------------------------------------------------------------------------------------------


def sim_of(link: Any, several: list[Any], ring: int = 8, **values: Any) -> Any:
    return SimpleNamespace(
        core=[core_of(**values)], links=[link], hops=several, hops_at=list(range(len(several))),
        flows=[flow_of() for _ in several], output_times=np.zeros((1, ring)),
        output_rates=np.zeros((1, ring, len(several))),
    )  # fmt: skip


def test_a_full_link_s_output_is_shared_as_what_arrives() -> None:
    link = link_of(head=6, stored=3)
    sim = sim_of(link, [hop_of(rate=90.0), hop_of(rate=30.0)])
    plain(engine.write_output)(sim, link)
    assert sim.output_times[0, 1] == 2.5  # when what joins now leaves
    assert sim.output_rates[0, 1] == pytest.approx([75.0, 25.0])
    assert (link.stored, sim.core[0].status) == (4, 0)
    link.queue, link.arriving, link.slope = 0.0, 60.0, 0.0
    plain(engine.write_output)(sim, link)
    assert (sim.output_times[0, 2], sim.output_rates[0, 2].tolist()) == (2.0, [90.0, 30.0])  # as they come
    assert (link.stored, sim.core[0].status) == (5, GROW_OUTPUT)
    link.queue, link.arriving = 50.0, 0.0
    plain(engine.write_output)(sim, link)  # nothing joins a queue that drains
    assert link.stored == 5


def test_the_oldest_mixture_is_dropped() -> None:
    link = link_of(head=7, stored=3, left=2)
    plain(engine.forget)(sim_of(link, []), link)
    assert (link.head, link.stored, link.left) == (0, 2, 1)
    plain(engine.forget)(sim_of(link, []), link)
    plain(engine.forget)(sim_of(link, []), link)
    assert (link.head, link.stored, link.left) == (2, 0, 0)


def test_a_next_link_is_told_once_of_its_first_hop() -> None:
    """Hops 0, 2 and 4 wait here and lead to links 8, 9 and 8; hop 6 ends here."""
    leads = [hop_of(last=0), hop_of(link=8), hop_of(last=0), hop_of(link=9), hop_of(last=0), hop_of(link=8)]
    sim = sim_of(link_of(hops=4), [*leads, hop_of(last=1), hop_of(link=9)])
    sim.hops_at = [6, 0, 2, 4]
    first = [plain(engine.first_to)(sim, sim.links[0], place) for place in (1, 2, 3)]
    assert first == [True, True, False]


@pytest.mark.parametrize(
    ("values", "leaves", "joins"),
    [
        ({}, 2.5, 2.0),  # now
        ({}, 2.4, 2.0),
        ({}, 3.7, 3.0),  # 120 bytes come in 1 s and take 1.2 s to leave
        ({"on_departure": 1}, 3.7, 3.7),
        ({"queue": 0.0, "arriving": 50.0, "slope": 0.0}, 3.7, 3.7),
        ({"arriving": 0.0, "slope": -100.0}, 3.7, NEVER),
    ],
)
def test_a_time_to_leave_is_one_to_join(values: Any, leaves: float, joins: float) -> None:
    assert plain(engine.waking)(link_of(**values), leaves) == pytest.approx(joins)


@pytest.mark.parametrize(
    ("values", "wanted", "wait"),
    [
        ({"zone": EMPTY, "per_packet": 0.5}, 2.0, 4.0),
        ({"zone": EMPTY, "per_packet": 0.5}, -2.0, 0.0),
        ({"zone": EMPTY, "per_packet": 0.0}, 2.0, NEVER),
        ({"zone": 0, "per_packet": 0.0, "chance": 0.0}, 2.0, NEVER),
        ({"zone": 1, "per_packet": 0.0, "chance": 0.0, "slope": -20.0}, 2.0, NEVER),
        ({"zone": 1, "slope": 0.0}, 2.0, 2.0 / -math.log1p(-0.25)),
    ],
)
def test_when_the_marking_clock_has_gone_far_enough(values: Any, wanted: float, wait: float) -> None:
    wholes = [plain(antiderivative)(p, plain(hazard)(p)) for p in (0.0, 0.0, 0.5, 1.0 - 1e-12)]
    assert plain(engine.until_marked)(link_of(wholes=wholes, **values), wanted) == pytest.approx(wait)


ENDS = 3.5  # of the piece on which the link is: 30 bytes more at 20 a second
ABOVE = {"zone": 2, "queue": 90.0, "per_packet": math.inf, "chance": 1.0}  # the last threshold
BEHIND = {"onward": 1, "stored": 2}  # what joined here goes on to another link


@pytest.mark.parametrize(
    ("link", "due", "todo", "when"),
    [
        ({}, {}, CROSSING, ENDS),
        ({"slope": 0.0}, {}, NOTHING, NEVER),
        ({}, {HAZARDS: 7.0}, MARK, 2.0),
        (ABOVE, {HAZARDS: 7.5}, NOTHING, NEVER),
        (ABOVE, {HAZARDS: 7.5, PACKETS: 2.75}, layout.PACKET, 2.75),
        ({}, {PACKETS: 2.75}, layout.PACKET, 2.75),
        ({}, {PACKETS: ENDS}, CROSSING, ENDS),
        ({}, {PACKETS: 3.75}, CROSSING, ENDS),
        ({}, {WAKES: 3.1}, WAKE, 2.5),  # what joins 0.5 s later leaves 0.6 s later, as 120 bytes a second come to 100
        ({}, {WAKES: 4.3}, CROSSING, ENDS),
        ({"reading": 1, "on_departure": 1, "stored": 2, "left": 1, "head": 3}, {}, LEAVE, 2.2),
        ({"reading": 1, "on_departure": 1, "stored": 1, "left": 1, "head": 3}, {}, CROSSING, ENDS),
        ({"reading": 0, "on_departure": 1, "stored": 2, "left": 1, "head": 3}, {}, CROSSING, ENDS),
        ({"reading": 1, "head": 3, **BEHIND}, {}, JOIN, 2.35),
        ({"reading": 1, "head": 3, **BEHIND, "onward": 0}, {}, CROSSING, ENDS),
        ({"reading": 1, "head": 3, **BEHIND, "stored": 0}, {}, CROSSING, ENDS),
        ({"transit": 1, "transit_head": 2}, {}, TRANSIT, 2.1),
        ({"transit": 0, "transit_head": 2}, {}, CROSSING, ENDS),
    ],
)
def test_the_first_of_all_that_a_link_has_before_it_is_next(link: Any, due: Any, todo: Any, when: float) -> None:
    """Above the last threshold every packet is marked: no clock rings there."""
    wholes = [plain(antiderivative)(p, plain(hazard)(p)) for p in (0.0, 0.0, 0.5, 1.0)]
    made, tree, calendar = link_of(**{"wholes": wholes, "zone": 1, **link}), trees(), np.full(2 * LEAVES, NEVER)
    for clock, time in due.items():
        tree[clock, made.tree + 1] = time
    outputs, transits = np.array([[2.2, 9.0, 9.0, 2.1]]), np.array([[9.0, 9.0, 2.1]])
    plain(engine.plan)(core_of(leaves=LEAVES), made, tree, outputs, transits, calendar, 3)
    assert made.todo == todo
    assert calendar[LEAVES + 3] == pytest.approx(when)
    assert calendar[1] == calendar[LEAVES + 3]


def test_what_was_due_before_happens_now() -> None:
    tree, calendar = trees(), np.full(2 * LEAVES, NEVER)
    tree[PACKETS, 1] = 1.9
    plain(engine.plan)(core_of(leaves=LEAVES), link_of(), tree, None, None, calendar, 0)
    assert calendar[LEAVES] == 2.0


def test_a_clock_that_stops_just_where_it_should_ring_never_rings() -> None:
    """The probability falls to nothing as the clock comes to what is wanted, to the bit."""
    now = plain(hazard)(0.25)
    wanted = plain(antiderivative)(0.25, now)
    assert plain(wait_for)(0.25, now, -1.0, wanted, 1.0, math.inf) == math.inf
    assert plain(wait_for)(0.25, now, -1.0, wanted * (1 - 1e-9), 1.0, math.inf) == pytest.approx(0.25, abs=1e-4)


def test_acknowledged_bytes_are_those_that_joined_in_time() -> None:
    """A link is brought from 2 to 3 s, whose departures go from 2.5 to 3.7 s; ACKs are back 1.25 s later."""
    link = link_of(hops=2)
    sim = sim_of(link, [hop_of(), hop_of(last=0, flow=1)], opens=3.1 + 1.25, closes=9.0)
    plain(engine.count_acknowledged)(sim, link, 3.0)
    joined = 2.5
    assert sim.flows[0].acked_open == pytest.approx(200.0 + 60.0 * (joined - 1.0))
    assert sim.flows[0].acked_close == -1.0
    assert link.watch == pytest.approx(9.0 - 1.25)
    assert sim.flows[1].acked_open == -1.0  # its last queue is another
    sim.core[0].closes = 3.7 + 1.25
    plain(engine.count_acknowledged)(sim, link, 3.0)
    assert sim.flows[0].acked_close == pytest.approx(200.0 + 60.0 * 2.0)
    assert link.watch == NEVER


# -- scripted senders --------------------------------------------------------------------------------------------------


def scheduled(schedule: str, repeat: float | None) -> Any:
    flow, me = flow_of(line_rate=50.0), SimpleNamespace(time=np.zeros(8), rate=np.zeros(8), done=0, steps=0)
    plain(scripted.init_state)(SimpleNamespace(schedule=schedule, repeat=repeat), flow, me)
    plain(scripted.begin)(flow, me, 10.0)
    return flow, me


def test_a_schedule_that_repeats_ends_before_its_period() -> None:
    """A step that is due as the next round begins is never reached: the round's own first step may come later."""
    flow, me = scheduled("1s:80bps, 2s:800bps, 3s:160bps", 3.0)
    assert (me.steps, me.time[:2].tolist(), me.rate[:2].tolist()) == (2, [1.0, 2.0], [10.0, 50.0])  # at most the line's
    found = [flow.timer]
    for _ in range(4):
        plain(scripted.on_timer)(flow, me)
        found.append(flow.timer)
    assert found == [11.0, 12.0, 14.0, 15.0, 17.0]
    assert flow.rate == 50.0


def test_a_schedule_that_does_not_repeat_ends() -> None:
    flow, me = scheduled("0s:80bps, 2s:160bps", None)
    assert flow.timer == 10.0
    plain(scripted.on_timer)(flow, me)
    assert (flow.timer, flow.rate) == (12.0, 10.0)
    plain(scripted.on_timer)(flow, me)
    assert (flow.timer, flow.rate, me.done) == (math.inf, 20.0, 2)
