"""Hops, queues and flows that wait: one rule at a time, and which others it calls; nothing is compiled."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fluidcc.engines.hybrid import calendar, hops, queue, region
from fluidcc.engines.hybrid.calendar import put_sum
from fluidcc.engines.hybrid.layout import (
    DEAF,
    EMPTY,
    FIRST,
    IDLE,
    LISTENING,
    NEVER,
    RIPE,
    SINGLY,
)
from tests.engines.hybrid.by_hand import LEAVES, Calls, core_of, flow_of, hop_of, link_of, replaced
from tests.engines.packet.plain import plain

# -- hops --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("last", "old", "new", "ends"),
    [(1, 60.0, 0.0, True), (0, 60.0, 0.0, False), (1, 60.0, 1.0, False), (1, 0.0, 0.0, False)],
)
def test_a_flow_may_be_complete_as_nothing_more_comes_to_its_last_queue(
    last: int, old: float, new: float, ends: bool
) -> None:
    calls, link, sums = Calls(), link_of(at=3.0), np.zeros(2 * LEAVES)
    for i, rate in enumerate((5.0, 60.0, 7.0)):
        plain(put_sum)(sums, 0, LEAVES, i, rate)
    hop = hop_of(last=last, rate=old)
    replaced(hops.arrive, complete=calls.complete, candidates=calls.candidates)(
        "core", "flow", hop, "trees", sums, link, 9, new
    )
    assert (hop.came, hop.at, hop.rate) == (200.0 + old * 2.0, 3.0, new)
    assert link.arriving == new + 12.0
    complete = [("complete", "core", link, hop, "flow")] if ends else []
    assert calls.made == [*complete, ("candidates", "core", "flow", hop, "trees", link, 9, new)]


def test_packets_marked_on_departure_are_candidates_as_they_leave() -> None:
    calls, link = Calls(), link_of(on_departure=1)
    replaced(hops.arrive, candidates=calls.candidates)("core", "flow", hop_of(), "trees", np.zeros(8), link, 0, 9.0)
    assert calls.made == []


def test_from_its_wait_s_end_on_a_hop_listens_to_the_packet_under_way_too() -> None:
    """40 a second for a second: 43 bytes beyond 200, of which 3 of the packet under way."""
    calls = Calls()
    listen = replaced(hops.listen, hear=calls.hear, retime=calls.retime)
    core, link, hop = "core", link_of(), hop_of(wait=DEAF)
    flow = flow_of(first=1)
    listen(core, flow, hop, "trees", link, 4)
    assert (hop.mark_came, hop.mark_at, hop.wait) == (243.0, 2.0, DEAF)
    assert calls.made == [("hear", core, link, hop, 4), ("retime", flow, hop, "trees", link)]
    calls.made.clear()
    rare, link = hop_of(wait=DEAF), link_of(draining=0.1)
    listen(core, flow, rare, "trees", link, 4)
    assert rare.wait == SINGLY
    assert calls.made == [("retime", flow, rare, "trees", link)]


@pytest.mark.parametrize(("zone", "begins"), [(1, True), (2, False), (EMPTY, True)])
def test_a_hop_that_listens_draws_its_next_number(zone: int, begins: bool) -> None:
    """A draw is one of seed, hop and count; on the ramp the packet under way counts from its beginning."""
    calls, hop, link = Calls(), hop_of(wait=DEAF), link_of(zone=zone)
    replaced(hops.hear, catch_up=calls.catch_up, exponential=lambda *given: given)(core_of(), link, hop, 4)
    assert (hop.wait, hop.hazard, hop.left, hop.draws) == (LISTENING, 7.0, (5, 4, 3), 4)
    assert calls.made == ([("catch_up", link, hop)] if begins else [])


def test_a_hop_whose_clock_has_rung_waits_for_its_packet() -> None:
    calls, hop, link = Calls(), hop_of(flow=1), link_of()
    sim = SimpleNamespace(hops=[None, hop], flows=["a", "b"], trees="trees")
    replaced(hops.ripen, retime=calls.retime)(sim, link, 1)
    assert (hop.mark_came, hop.mark_at, hop.wait) == (243.0, 2.0, RIPE)
    assert calls.made == [("retime", "b", hop, "trees", link)]


@pytest.mark.parametrize(
    ("zone", "was", "wait", "left", "caught"),
    [
        (1, 0, LISTENING, 5.0, None),  # below the top as before
        (2, 2, LISTENING, 5.0, None),
        (2, 1, LISTENING, 1.0, False),  # the clock went 1 a packet further, and four packets came
        (1, 2, LISTENING, 1.0, True),
        (3, 2, LISTENING, 5.0, None),  # likely marks become certain
        (2, 1, RIPE, 5.0, None),
        (1, 2, DEAF, 5.0, None),
    ],
)
def test_hops_that_listen_change_clocks_as_the_queue_crosses_the_top(
    zone: int, was: int, wait: Any, left: float, caught: bool | None
) -> None:
    calls, hop, link = Calls(), hop_of(wait=wait, flow=1), link_of(zone=zone, hops=1, first=2)
    sim = SimpleNamespace(hops=[None, hop], hops_at=[9, 9, 1], flows=["a", "b"], trees="trees")
    replaced(hops.rezone, retime=calls.retime, catch_up=calls.catch_up)(sim, link, was)
    assert hop.left == left
    if caught is None:
        assert calls.made == []
        assert (hop.mark_came, hop.mark_at, hop.hazard) == (203.0, 1.0, 6.0)
    else:
        assert (hop.mark_came, hop.mark_at, hop.hazard) == (243.0, 2.0, 7.0)
        first = [("catch_up", link, hop)] if caught else []
        assert calls.made == [*first, ("retime", "b", hop, "trees", link)]


@pytest.mark.parametrize(
    ("wait", "is_drawn", "last", "on_departure", "does"),
    [
        (RIPE, False, 1, 0, ("received", 2.5)),
        (RIPE, False, 1, 1, ("received", 2.0)),  # it leaves now
        (RIPE, False, 0, 0, ("send_on", 2.5)),
        (SINGLY, True, 1, 0, ("received", 2.5)),
        (SINGLY, False, 1, 0, None),
        (LISTENING, True, 1, 0, ("received", 2.5)),  # where marks are likely
        (LISTENING, False, 1, 0, None),
    ],
)
def test_a_packet_is_marked_unless_chance_spares_it(
    wait: Any, is_drawn: bool, last: int, on_departure: int, does: Any
) -> None:
    """It is whole now, at 210 bytes; if marked it goes on, and its hop listens again."""
    calls, hop, link = Calls(), hop_of(wait=wait, last=last, flow=1), link_of(on_departure=on_departure)
    core = core_of(marks=3)
    sim = SimpleNamespace(
        core=[core], hops=[None, hop], flows=["a", "b"], trees="trees", looks="looks", cnps="cnps", marks="marks",
        calendar="calendar", transit_times="times", transit_hops="hops",
    )  # fmt: skip
    names = {name: getattr(calls, name) for name in ("received", "send_on", "listen", "retime")}
    replaced(hops.packet, drawn=lambda *given: is_drawn, **names)(sim, link, 1)
    assert (hop.mark_came, hop.mark_at) == (210.0, 2.0)
    if does is None:
        assert calls.made == [("retime", "b", hop, "trees", link)]
        assert core.marks == 3
        return
    assert core.marks == 4
    out = ("received", core, "b", hop, "trees", "looks", "cnps", "marks", "calendar", link, does[1])
    on = ("send_on", core, "times", "hops", link, 2, does[1])
    assert calls.made == [out if does[0] == "received" else on, ("listen", core, "b", hop, "trees", link, 1)]


def test_a_packet_after_which_its_flow_is_deaf_is_not_listened_after() -> None:
    calls, hop = Calls(), hop_of(wait=RIPE)
    sim = SimpleNamespace(
        core=[core_of(marks=0)], hops=[hop], flows=["a"], trees=0, looks=0, cnps=0, marks=0, calendar=0
    )

    def received(core: Any, flow: Any, hop: Any, *rest: Any) -> None:
        hop.wait = DEAF

    replaced(hops.packet, received=received, listen=calls.listen)(sim, link_of(), 0)
    assert calls.made == []


@pytest.mark.parametrize(
    ("deaf", "wait", "spaced", "then"),
    [
        (3.6, RIPE, 0.0, DEAF),
        (3.5, RIPE, 0.0, RIPE),  # the next one matters
        (3.6, IDLE, 0.0, IDLE),
        (3.6, RIPE, 0.4, DEAF),
    ],
)
def test_a_receiver_is_told_as_the_packet_arrives(deaf: float, wait: Any, spaced: float, then: Any) -> None:
    """It leaves at 3 s, and is 0.5 s on its way."""
    calls, hop, link, core = Calls(), hop_of(wait=wait, flow=6), link_of(), core_of()
    flow = flow_of(deaf=deaf, nic_cnp_interval=spaced)
    names = {name: getattr(calls, name) for name in ("marked", "marked_for_nic", "schedule", "retime")}
    replaced(hops.received, **names)(core, flow, hop, "trees", "looks", "cnps", "marks", "calendar", link, 3.0)
    told = ("marked_for_nic", core, flow, "marks", 6, 3.5) if spaced else ("marked", core, flow, "cnps", 6, 3.5)
    assert calls.made[:2] == [told, ("schedule", core, flow, 6, "looks", "cnps", "calendar")]
    assert hop.wait == then
    assert calls.made[2:] == ([("retime", flow, hop, "trees", link)] if then == DEAF else [])


# -- queues ------------------------------------------------------------------------------------------------------------


def test_a_queue_goes_on_its_line_with_its_clock_and_its_statistics() -> None:
    """From 50 by 20 a second on a ramp of 1/80 a byte, for half a second; the link is busy."""
    calls, link = Calls(), link_of(zone=1, sent=300.0, most=55.0, chance=0.125, per_packet=-math.log1p(-0.125))
    replaced(queue.advance, account=calls.account)(core_of(watching=1), link, 2.5)
    assert (link.at, link.queue, link.sent, link.most) == (2.5, 60.0, 350.0, 60.0)
    assert (link.chance, link.per_packet) == (0.25, -math.log1p(-0.25))
    mean = -math.log1p(-0.1875)  # of the middle, which the integral is a little more than
    assert link.hazard == pytest.approx(7.0 + 0.5 * mean, rel=1e-4)
    assert link.hazard > 7.0 + 0.5 * mean
    assert calls.made == [("account", link, 50.0, 60.0, 0.5)]
    likely = link_of(zone=1, likely=1, sent=300.0, most=55.0, chance=0.125)
    replaced(queue.advance, account=calls.account)(core_of(watching=0), likely, 2.5)
    assert (likely.chance, likely.hazard) == (0.25, 7.0)  # each packet is drawn there, by no clock


@pytest.mark.parametrize(
    ("values", "queue_then", "sent", "most", "hazard_then"),
    [
        ({"queue": 0.0, "slope": 0.0, "arriving": 60.0, "zone": EMPTY}, 0.0, 60.0, 55.0, 7.5),  # 0.5 a packet
        ({"queue": 0.0, "slope": 0.0, "arriving": 160.0, "zone": EMPTY}, 0.0, 100.0, 55.0, 7.5),
        ({"queue": 30.0, "slope": -40.0, "arriving": 60.0, "zone": 2}, 0.0, 100.0, 55.0, 7.0),
        ({"queue": 0.0, "slope": 40.0, "arriving": 140.0, "zone": 2}, 40.0, 100.0, 55.0, 7.0),  # no clock up there
        ({"queue": 50.0, "slope": 20.0, "zone": 2}, 70.0, 100.0, 70.0, 7.0),
    ],
)
def test_what_a_link_sends_in_a_second(
    values: Any, queue_then: float, sent: float, most: float, hazard_then: float
) -> None:
    calls, link = Calls(), link_of(**{"sent": 0.0, "most": 55.0, "per_packet": 0.5, **values})
    replaced(queue.advance, account=calls.account)(core_of(watching=0), link, 3.0)
    assert (link.queue, link.sent, link.most, link.hazard) == (queue_then, sent, most, hazard_then)
    assert calls.made == []


def test_a_time_that_has_come_already_changes_nothing() -> None:
    calls, link = Calls(), link_of(sent=0.0, most=0.0)
    replaced(queue.advance, account=calls.account)(core_of(watching=1), link, 2.0)
    assert (link.at, link.queue, link.sent, link.hazard) == (2.0, 50.0, 0.0, 7.0)
    assert calls.made == []


@pytest.mark.parametrize(
    ("zone", "length", "chance"), [(EMPTY, 0.0, 0.05), (1, 60.0, 0.25), (0, 10.0, 0.0), (2, 90.0, -1.0)]
)
def test_a_queue_that_is_put_somewhere_is_marked_by_what_is_there(zone: int, length: float, chance: float) -> None:
    """Empty it is by its load, one half; above the top there is no chance."""
    meeting = np.append(np.linspace(0, 0.1, queue.LOADS + 1), 0.1)
    link = link_of(arriving=50.0, meeting=meeting, chance=-1.0, per_packet=-1.0)
    plain(queue.place)(link, length, zone)
    assert (link.queue, link.zone, link.chance) == (length, zone, pytest.approx(chance))
    assert link.per_packet == (-1.0 if chance < 0 else -math.log1p(-link.chance))


@pytest.mark.parametrize(
    ("values", "slope", "zone"),
    [
        ({"queue": 50.0, "zone": 1, "arriving": 130.0}, 30.0, 1),
        ({"queue": 50.0, "zone": 1, "arriving": 70.0}, -30.0, 1),
        ({"queue": 0.0, "zone": EMPTY, "arriving": 130.0}, 30.0, FIRST),
        ({"queue": 0.0, "zone": EMPTY, "arriving": 100.0}, 0.0, EMPTY),
        ({"queue": 0.0, "zone": FIRST, "arriving": 70.0}, 0.0, EMPTY),
    ],
)
def test_a_queue_begins_as_more_comes_than_leaves_and_ends_as_it_is_empty(values: Any, slope: float, zone: int) -> None:
    link = link_of(**{"slope": -1.0, **values})
    plain(queue.steer)(link)
    assert (link.slope, link.zone, link.queue) == (slope, zone, values["queue"])


@pytest.mark.parametrize(("queued", "arriving", "is_"), [(1.0, 0.0, True), (0.0, 101.0, True), (0.0, 100.0, False)])
def test_a_link_is_busy_with_a_queue_or_about_to_have_one(queued: float, arriving: float, is_: bool) -> None:
    assert plain(queue.busy)(link_of(queue=queued, arriving=arriving)) is is_


# -- flows that wait for others ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "what", "end"),
    [(True, calendar.LEFT, 1.75), (False, calendar.RECEIPT, 7.25), (False, calendar.ANSWER, 8.0)],
)
def test_a_follower_begins_a_pause_after_the_last_end_that_it_waits_for(left: bool, what: Any, end: float) -> None:
    """The flow's clock is 0.25 s ahead of 2 s; its last ACK is back at 8 s, 0.75 s after the receipt."""
    calls = Calls()
    kinds = [calendar.LEFT, calendar.RECEIPT, calendar.ANSWER]
    known = {"told": 1.0, "start": NEVER, "ahead": 0.125, "pause": 3.0}
    followers = [flow_of(awaits=2, **known), flow_of(awaits=1, **known), flow_of(awaits=1, **{**known, "told": 9.0})]
    flow = flow_of(ahead=0.25, finish=8.0, followers=1, followers_end=7)
    sim = SimpleNamespace(
        core=[core_of()], flows=[*followers, flow], looks="looks", cnps="cnps", calendar="calendar",
        waits=[what, what, what, what, *(each for each in kinds if (each == calendar.LEFT) != left)],
        followers=[0, 0, 1, 2, 0, 0, 0, 0],
    )  # fmt: skip
    flow.followers_end = 4 + sum((each == calendar.LEFT) != left for each in kinds)
    replaced(calendar.tell, schedule=calls.schedule)(sim, 3, left)
    assert [each.awaits for each in followers] == [1, 0, 0]
    assert [each.told for each in followers] == [end, end, max(end, 9.0)]
    assert [each.start for each in followers] == [NEVER, 0.125 + end + 3.0, 0.125 + max(end, 9.0) + 3.0]
    assert calls.made == [("schedule", sim.core[0], followers[f], f, "looks", "cnps", "calendar") for f in (1, 2)]


def test_those_who_wait_know_all_that_they_wait_for() -> None:
    """Two chains that meet in flow 4, which stands before what it waits for; flow 5 is alone."""
    after: list[tuple[int, ...]] = [(), (0,), (1,), (), (2, 3), ()]
    found = region._before(after)
    assert [[k for k in range(6) if bits >> k & 1] for bits in found] == [[], [0], [0, 1], [], [0, 1, 2, 3], []]
    back = region._before([(1, 2), (3,), (3,), ()])
    assert [[k for k in range(4) if bits >> k & 1] for bits in back] == [[1, 2, 3], [3], [3], []]
