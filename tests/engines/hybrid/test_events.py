"""Events of the hybrid one by one: what each does to a flow, a hop and a link, and which rules it calls then."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fluidcc.engines.hybrid import calendar, engine, layout
from fluidcc.engines.hybrid.calendar import put_least
from fluidcc.engines.hybrid.layout import (
    CNP,
    COUNTER,
    CROSSING,
    DONE,
    END,
    GROW_CNPS,
    HAZARDS,
    JOIN,
    LEAVE,
    LOOK,
    MARK,
    NEVER,
    NOTHING,
    PACE,
    PACKETS,
    REQUEST,
    RUNNING,
    START,
    TIMER,
    TRANSIT,
    WAKE,
    WAKES,
)
from fluidcc.engines.hybrid.random_marks import antiderivative, hazard
from tests.engines.hybrid.by_hand import LEAVES, Calls, core_of, flow_of, hop_of, link_of, replaced, trees
from tests.engines.packet.plain import plain

# -- a flow's entry in the calendar ------------------------------------------------------------------------------------

LOOKS_AT = 3.25  # 3 s by the clock of a flow that is 0.25 s ahead


@pytest.mark.parametrize(
    ("values", "todo", "when"),
    [
        ({}, LOOK, LOOKS_AT),
        ({"look": 1}, LOOK, NEVER),
        ({"state": 0, "start": LOOKS_AT}, START, LOOKS_AT),  # what it starts with is seen
        ({"state": 0, "start": 3.3}, LOOK, LOOKS_AT),
        ({"state": 2, "start": 3.0}, LOOK, LOOKS_AT),
        ({"timer": 3.2}, TIMER, 3.2),
        ({"timer": LOOKS_AT}, LOOK, LOOKS_AT),  # of simultaneous things the look comes first
        ({"state": 0, "start": NEVER, "timer": 3.2}, LOOK, LOOKS_AT),
        ({"state": 2, "timer": 3.2}, LOOK, LOOKS_AT),
        ({"counted": 112.0}, COUNTER, 3.2),  # 12 bytes at 10 a second
        ({"repace": 112.0}, PACE, 3.2),
        ({"repace": 112.0, "counted": 112.0}, PACE, 3.2),  # a count begins with the rate at which its burst left
        ({"repace": 112.5}, LOOK, LOOKS_AT),
        ({"counted": 112.5}, LOOK, LOOKS_AT),
        ({"counted": 112.0, "timer": 3.2}, TIMER, 3.2),
        ({"total": 112.0}, END, 3.2),
        ({"total": 112.5}, LOOK, LOOKS_AT),
        ({"total": 112.0, "counted": 112.0}, COUNTER, 3.2),
        ({"total": 111.0, "counted": 112.0}, END, 3.1),
        ({"total": 112.0, "counted": 112.0, "pace": 0.0}, LOOK, LOOKS_AT),
        ({"waiting": 1}, CNP, 3.2),
        ({"waiting": 1, "head": 0}, LOOK, LOOKS_AT),
        ({"waiting": 0}, LOOK, LOOKS_AT),
        ({"waiting": 1, "state": 2}, LOOK, LOOKS_AT),
        ({"waiting": 1, "total": 112.0}, END, 3.2),
        ({"request": 3.2}, REQUEST, 3.2),
        ({"request": 3.2, "state": 2}, REQUEST, 3.2),
        ({"request": 3.2, "waiting": 1}, CNP, 3.2),
        ({"request": LOOKS_AT}, LOOK, LOOKS_AT),
        ({"request": 1.5}, REQUEST, 2.0),  # it is 2 s already
    ],
)
def test_the_first_of_what_a_flow_waits_for_is_entered(values: Any, todo: Any, when: float) -> None:
    known = {"state": 1, "at": 2.0, "sent": 100.0, "pace": 10.0, "timer": NEVER, "total": NEVER}
    flow = flow_of(**{**known, "look": 0, "ahead": 0.25, "head": 1, "start": 0.0, **values})
    entries = np.full(2 * LEAVES, NEVER)
    plain(calendar.schedule)(core_of(leaves=LEAVES), flow, 2, [3.0], np.array([[9.0] * 2] * 2 + [[9.0, 3.2]]), entries)
    assert flow.todo == todo
    assert entries[[1, LEAVES + 2]] == pytest.approx([when, when])


# -- what a flow does --------------------------------------------------------------------------------------------------


def acted(todo: Any, **values: Any) -> tuple[Any, Any, list[Any]]:
    """A flow that has sent 100 bytes until 1 s, at 40 a second, does something at 2 s; and what was called."""
    calls = Calls()
    known = {"state": 1, "at": 1.0, "sent": 100.0, "rate": 40.0, "initial_rate": 30.0, "counter": 150.0,
             "counted": 150.0, "cnps": 4}  # fmt: skip
    flow = flow_of(**{**known, "todo": todo, "first": 1, "head": 5, "waiting": 3, **values})
    sim = SimpleNamespace(
        core=[core_of(cnps=20)], flows=[None, flow], hops=["another", hop_of(link=1)], links=["another", "link"],
        cnps=np.zeros((2, 8)), marks="marks", nics="nics", trees="trees", sums="sums", looks="looks",
        calendar="calendar",
    )  # fmt: skip
    names = {name: calls for name in ("dispatch", "hops")}
    own = {name: getattr(calls, name) for name in ("schedule", "watch", "settle", "changed", "tell")}
    replaced(engine.act, **names, **own, begin=calls.listens)(sim, 1)
    assert calls.made.pop() == ("schedule", sim.core[0], flow, 1, "looks", sim.cnps, "calendar")
    assert flow.at == 2.0
    return sim, flow, calls.made


def rate_follows(sim: Any, flow: Any, made: list[Any]) -> None:
    """Its first link is brought to now before the rate changes there, and the link's queue after it."""
    hop = sim.hops[1]
    assert made == [
        ("settle", sim, "link", 2.0),
        ("arrive", sim.core[0], flow, hop, "trees", "sums", "link", 1, flow.rate),
        ("changed", sim, "link"),
    ]


def test_a_flow_that_starts_sends_at_its_first_rate_and_its_hops_listen() -> None:
    sim, flow, made = acted(START, state=0, rate=0.0, pace=0.0)
    assert (flow.state, flow.rate, flow.sent) == (1, 30.0, 100.0)
    assert made[:2] == [("begin", sim, 1), ("listens", sim, 1)]
    rate_follows(sim, flow, made[2:])


def test_a_flow_that_ends_has_sent_all_of_its_bytes_and_tells_its_followers_at_once() -> None:
    sim, flow, made = acted(END, total=139.0)
    assert (flow.state, flow.rate, flow.sent) == (2, 0.0, 139.0)
    assert made[0] == ("tell", sim, 1, True)
    rate_follows(sim, flow, made[1:])


@pytest.mark.parametrize(
    ("todo", "sent", "rule"), [(LOOK, 140.0, "watch"), (TIMER, 140.0, "on_timer"), (COUNTER, 150.0, "on_bytes")]
)
def test_a_rate_that_stays_moves_nothing_on_the_way(todo: Any, sent: float, rule: str) -> None:
    """The byte counter comes to its count exactly; anything else has sent for a second at 40."""
    sim, flow, made = acted(todo)
    assert flow.sent == sent
    assert made == [(rule, sim, 1)]


@pytest.mark.parametrize(
    ("todo", "rate", "paced", "pace", "until"),
    [
        (COUNTER, 60.0, 40.0, 40.0, 160.0),  # the burst that ends the count is paced by the rate before
        (COUNTER, 40.03, 40.0, 40.03, NEVER),  # by so little that it makes no difference
        (PACE, 60.0, 40.0, 60.0, NEVER),  # the burst after it by the new one
    ],
)
def test_a_count_paces_the_burst_after_next(todo: Any, rate: float, paced: float, pace: float, until: float) -> None:
    """The count ends as a whole burst leaves; the law sees the bytes of whole bursts."""
    calls, flow = Calls(), flow_of(at=1.0, sent=100.0, rate=40.0, pace=paced, counter=145.0, counted=150.0)
    flow.todo, flow.repace, flow.state, seen = todo, 150.0, 1, []

    def on_bytes(sim: Any, f: int) -> None:
        seen.append(flow.gone)
        flow.rate, flow.counter = rate, 165.0

    if todo == PACE:
        flow.rate = rate
    sim = SimpleNamespace(core=[core_of()], flows=[flow], hops=[hop_of()], links=["link"], cnps=None, trees=None)
    sim.looks = sim.calendar = sim.sums = None
    dispatch = SimpleNamespace(on_bytes=on_bytes)
    names = {name: getattr(calls, name) for name in ("schedule", "settle", "changed")}
    replaced(engine.act, dispatch=dispatch, hops=calls, **names)(sim, 0)
    assert (flow.sent, flow.pace, flow.repace, flow.gone) == (150.0, pace, until, 150.0)
    assert seen == ([150.0] if todo == COUNTER else [])
    assert flow.counted == (170.0 if todo == COUNTER else 150.0)
    assert [each[0] for each in calls.made] == (
        ["schedule"] if pace == paced else ["settle", "arrive", "changed", "schedule"]
    )


@pytest.mark.parametrize(
    ("values", "pace", "until", "last"),
    [
        # 4 of 10 bytes went at 40 a second, so the last left 0.1 s ago; the next goes a gap of the new rate after it.
        ({"rate": 20.0}, 6.0 / 0.4, 210.0, 1.9),
        ({"rate": 80.0}, 6.0 / 0.025, 210.0, 1.9),
        ({"rate": 80.0, "line_rate": 100.0}, 100.0, 210.0, 1.9),  # but not faster than its NIC
        ({"rate": 125.0}, 1000.0, 210.0, 1.9),  # the new gap is over: at once
        ({"rate": 20.0, "repace": 210.0, "last": 1.75}, 6.0 / 0.25, 210.0, 1.75),  # the rate has changed before
        ({"rate": 40.03}, 40.03, NEVER, None),
        ({"rate": 40.03, "repace": 210.0, "last": 1.75}, 0.0, 210.0, 1.75),
        ({"rate": 0.0}, 0.0, NEVER, None),
        ({"rate": 30.0, "pace": 0.0}, 30.0, NEVER, None),
    ],
)
def test_the_next_burst_leaves_the_newest_rates_gap_after_the_last(
    values: Any, pace: float, until: float, last: float | None
) -> None:
    flow = flow_of(**{"sent": 204.0, "gone": 200.0, "line_rate": 1000.0, "last": None, **values})
    plain(engine.repace)(core_of(), flow)
    if "last" in values and flow.rate == 40.03:
        rest = 1.75 + 10.0 / 40.03 - 2.0
        pace = 6.0 / rest if rest > 0.006 else 1000.0
    assert flow.pace == pytest.approx(pace, rel=1e-12)
    assert flow.repace == until
    assert flow.last == (None if last is None else pytest.approx(last, rel=1e-12))


@pytest.mark.parametrize(("head", "next_"), [(5, 6), (6, 7), (7, 0)])
def test_a_cnp_leaves_its_ring(head: int, next_: int) -> None:
    sim, flow, made = acted(CNP, head=head)
    assert (flow.head, flow.waiting, flow.cnps, sim.core[0].cnps) == (next_, 2, 5, 21)
    assert made == [("on_cnp", sim, 1)]


def test_a_receiver_asks_its_nic() -> None:
    sim, flow, made = acted(REQUEST)
    assert made == [("ask", sim.core[0], flow, "nics", sim.cnps, "marks", 1)]


@pytest.mark.parametrize(
    ("interval", "tops", "listen"), [(0.5, (2, 2), [1, 2]), (0.0, (2, 2), []), (0.5, (0, 2), [2]), (0.5, (2, 0), [1])]
)
def test_hops_listen_where_links_mark_and_receivers_answer(
    interval: float, tops: tuple[int, int], listen: list[int]
) -> None:
    calls = Calls()
    at = [link_of(top=top) for top in tops]
    mine = [hop_of(link=0), hop_of(link=1)]
    flow = flow_of(cnp_interval=interval, first=1, hops=2)
    sim = SimpleNamespace(
        core=[core_of()], flows=[flow], hops=["another", *mine, "another"], links=at, trees="trees"
    )  # fmt: skip
    replaced(engine.begin, settle=calls.settle, hops=calls)(sim, 0)
    expected = []
    for s in listen:
        link = at[s - 1]
        expected += [("settle", sim, link, 2.0), ("listen", sim.core[0], flow, mine[s - 1], "trees", link, s)]
    assert calls.made == expected


@pytest.mark.parametrize(("look", "edge", "row"), [(0, "sent_open", None), (1, None, 7), (2, "sent_close", None)])
def test_a_flow_is_looked_at_as_each_instant_asks(look: int, edge: str | None, row: int | None) -> None:
    calls = Calls()
    flow = flow_of(look=look, sent=123.0, rate=45.0, state=1, sent_open=-1.0, sent_close=-1.0)
    samples = np.full((9, 2, 3), -1.0)
    sim = SimpleNamespace(flows=[None, flow], kinds=[1, 0, 2], rows=[0, 7, 0], flow_samples=samples)
    replaced(engine.watch, dispatch=calls)(sim, 1)
    assert flow.look == look + 1
    assert [flow.sent_open, flow.sent_close] == [
        123.0 if edge == name else -1.0 for name in ("sent_open", "sent_close")
    ]
    assert calls.made == ([("observe", sim, 1, 7)] if row else [])
    expected = np.full((9, 2, 3), -1.0)
    if row:
        expected[7, 1, :2] = 123.0, 45.0
    np.testing.assert_array_equal(samples, expected)


@pytest.mark.parametrize("state", [0, 1, 2])
def test_a_scheme_is_observed_from_its_flow_s_start_on(state: int) -> None:
    calls = Calls()
    sim = SimpleNamespace(
        flows=[flow_of(look=0, sent=0.0, rate=0.0, state=state)], kinds=[0], rows=[0], flow_samples=np.zeros((1, 1, 2))
    )
    replaced(engine.watch, dispatch=calls)(sim, 0)
    assert bool(calls.made) is (state > 0)
    sim.flows[0].look, sim.flow_samples = 0, np.zeros((0, 1, 2))
    replaced(engine.watch, dispatch=calls)(sim, 0)  # a run without samples takes none
    assert len(calls.made) == (state > 0)


# -- looks at links ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("at", "watching", "then"), [(0, 1, 6.0), (1, -1, 8.0), (2, 0, NEVER)])
def test_links_are_looked_at_as_each_instant_asks(at: int, watching: int, then: float) -> None:
    """The window opens, a sample is taken, the window closes: -1 stands for what stays as it was."""
    calls = Calls()
    core = core_of(look=at, leaves=LEAVES, watching=-1)
    known = {"sent_open": -1.0, "sent_close": -1.0, "bin": -1, "least_in_window": -1.0, "most_in_window": -1.0}
    mine = [link_of(queue=300.0 + i, sent=70.0 + i, **known) for i in range(2)]
    samples, entries = np.full((9, 2, 2), -1.0), np.full(2 * LEAVES, 1.0)
    sim = SimpleNamespace(
        core=[core], links=mine, flows=[None], kinds=[1, 0, 2], rows=[0, 7, 0], looks=np.array([5.0, 6.0, 8.0]),
        link_samples=samples, calendar=entries,
    )  # fmt: skip
    replaced(engine.look, settle=calls.settle)(sim)
    assert calls.made == [("settle", sim, link, 2.0) for link in mine]
    for i, link in enumerate(mine):
        opens, samples_it, closes = (at == kind for kind in range(3))
        assert link.sent_open == (70.0 + i if opens else -1.0)
        assert link.sent_close == (70.0 + i if closes else -1.0)
        assert (link.bin, link.least_in_window, link.most_in_window) == (
            (2, 300.0 + i, 300.0 + i) if opens else (-1, -1.0, -1.0)
        )
        assert samples[7, i].tolist() == ([300.0 + i, 70.0 + i] if samples_it else [-1.0, -1.0])
    assert (samples[np.arange(9) != 7] == -1.0).all()
    assert (core.watching, core.look) == (watching, at + 1)
    assert entries[LEAVES + 3] == then


def test_the_calendar_begins_with_all_flows_and_the_first_look() -> None:
    """Links note the departures whose ACKs are back at the window's edges: the earliest that is still to come."""
    calls = Calls()
    chances = np.array([0.0, 0.5, 1.0])
    mine = [link_of(top=2, chances=chances, wholes=[-1.0] * 4, watch=NEVER) for _ in range(2)]
    flows = [flow_of(first=0, hops=2), flow_of(first=2, hops=1, answer=4.0)]  # 1.25 s, and 4.5 s from leaving to ACK
    sim = SimpleNamespace(
        core=[core_of(opens=1.25, closes=5.0, leaves=8)], links=mine, flows=flows, looks=[0.5], cnps="cnps",
        hops=[hop_of(link=0), hop_of(link=1), hop_of(link=0)], calendar=np.full(16, NEVER),
    )  # fmt: skip
    replaced(engine.prime, schedule=calls.schedule)(sim)
    assert [link.watch for link in mine] == [5.0 - 4.5, 5.0 - 1.25]  # what left at 0 s is counted from the start
    exact = [plain(antiderivative)(p, plain(hazard)(p)) for p in chances]
    assert mine[0].wholes == [*exact, -1.0]
    assert exact[1:] == [0.5 - 0.5 * math.log(2), 1.0]
    assert calls.made == [
        ("schedule", sim.core[0], flow, f, [0.5], "cnps", sim.calendar) for f, flow in enumerate(flows)
    ]
    assert sim.calendar[LEAVES + 4 - 4 : LEAVES + 4].tolist() == [NEVER] * 4 or sim.calendar[LEAVES + 3] == NEVER
    assert sim.calendar[1] == 0.5


# -- the loop ----------------------------------------------------------------------------------------------------------


class Loop:
    """One flow, two links and the looks, each of which does something once and never again."""

    def __init__(self, times: list[float], until: float = 5.0, **core: Any) -> None:
        self.done: list[Any] = []
        self.entries = np.full(2 * LEAVES, NEVER)
        for i, time in enumerate(times):
            plain(put_least)(self.entries, 0, LEAVES, i, time)
        self.core = core_of(until=until, leaves=LEAVES, events=0, begun=0, **core)
        self.sim = SimpleNamespace(
            core=[self.core], flows=[flow_of(next_ended=0)], links=["first", "second"], calendar=self.entries
        )

    def happens(self, what: Any, i: int) -> None:
        self.done.append((what, self.core.now))
        plain(put_least)(self.entries, 0, LEAVES, i, NEVER)

    def run(self, most: int = 10) -> Any:
        names = {
            "prime": lambda sim: self.done.append("prime"),
            "act": lambda sim, f: self.happens(("flow", f), f),
            "happen": lambda sim, link: self.happens(link, 1 + sim.links.index(link)),
            "look": lambda sim: self.happens("look", 3),
            "tell": lambda sim, f, left: self.done.append(("tell", f, left)),
        }
        return replaced(engine.run, **names)(self.sim, most)


def test_the_soonest_event_is_next_until_the_horizon() -> None:
    """Events at the horizon itself still happen; at equal times flows come before links, links before looks."""
    loop = Loop([3.0, 5.0, 1.0, 3.0])
    assert loop.run() == DONE
    assert loop.done == ["prime", ("second", 1.0), (("flow", 0), 3.0), ("look", 3.0), ("first", 5.0)]
    assert (loop.core.events, loop.core.now) == (4, 5.0)
    assert Loop([5.1], 5.0).run() == DONE


def test_a_loop_that_is_asked_for_few_events_goes_on_where_it_was() -> None:
    loop = Loop([3.0, 4.0, 1.0, 3.5], status=GROW_CNPS)
    assert loop.run(2) == RUNNING
    assert loop.core.events == 2
    assert loop.run(2) == RUNNING
    assert loop.run(2) == DONE
    assert [each if each == "prime" else each[1] for each in loop.done] == ["prime", 1.0, 3.0, 3.5, 4.0]


def test_a_ring_that_must_grow_ends_the_loop_and_ended_flows_tell_their_followers() -> None:
    loop = Loop([3.0, 4.0], ended=0)
    happens = loop.happens

    def fills(what: Any, i: int) -> None:
        happens(what, i)
        loop.core.status, loop.core.ended = GROW_CNPS, 1

    loop.happens = fills  # pyright: ignore[reportAttributeAccessIssue]
    assert loop.run() == GROW_CNPS
    assert loop.done == ["prime", (("flow", 0), 3.0), ("tell", 0, False)]
    assert loop.core.ended == 0


# -- what a link does --------------------------------------------------------------------------------------------------


def happened(link: Any, **names: Any) -> tuple[Any, list[Any]]:
    """A link of two hops does what it was to do at 2 s, and finds what is next."""
    calls, tree = Calls(), trees()
    for clock in (HAZARDS, PACKETS, WAKES):
        plain(put_least)(tree[clock], 0, LEAVES, 1, 7.5)
        plain(put_least)(tree[clock], 0, LEAVES, 0, 8.0)
    sim = SimpleNamespace(
        core=[core_of()], links=[link], flows=[flow_of(), flow_of()], hops=[None, None, hop_of(flow=1), hop_of(flow=0)],
        hops_at=[0, 3, 2], trees=tree, output_times="outputs", transit_times="transits", calendar="calendar",
    )  # fmt: skip
    link.first = 1
    local = ("settle", "cross", "steer", "write_output", "leave", "join", "carry_on", "plan")
    given = {name: getattr(calls, name) for name in local} | {"hops": calls} | names
    replaced(engine.happen, **given)(sim, link)
    assert calls.made[0] == ("settle", sim, link, 2.0)
    assert calls.made[-1] == ("plan", sim.core[0], link, tree, "outputs", "transits", "calendar", 2)
    return sim, calls.made[1:-1]


@pytest.mark.parametrize(("todo", "rule"), [(LEAVE, "leave"), (JOIN, "join"), (TRANSIT, "carry_on")])
def test_what_leaves_joins_or_goes_on_is_called_by_its_name(todo: Any, rule: str) -> None:
    link = link_of(todo=todo)
    sim, made = happened(link)
    assert made == [(rule, sim, link)]
    assert happened(link_of(todo=NOTHING))[1] == []


@pytest.mark.parametrize(("wanted", "hazard_then"), [(7.0, 7.5), (7.6, 7.6)])
def test_a_mark_is_due_to_the_hop_whose_hazard_is_least(wanted: float, hazard_then: float) -> None:
    """The clock is put to where it was due, and never back."""
    link = link_of(todo=MARK, hazard=wanted)
    sim, made = happened(link)
    assert made == [("ripen", sim, link, 2)]
    assert link.hazard == hazard_then


def test_a_packet_or_a_wake_is_that_of_the_first_hop() -> None:
    link = link_of(todo=layout.PACKET)
    sim, made = happened(link)
    assert made == [("packet", sim, link, 2)]
    link = link_of(todo=WAKE)
    sim, made = happened(link)
    assert made == [("listen", sim.core[0], sim.flows[1], sim.hops[2], sim.trees, link, 2)]


@pytest.mark.parametrize(
    ("steered", "reading", "written"), [(20.0, 1, False), (0.0, 1, True), (0.0, 0, False), (20.0, 0, False)]
)
def test_a_queue_that_runs_empty_changes_what_leaves(steered: float, reading: int, written: bool) -> None:
    link = link_of(todo=CROSSING, reading=reading, zone=1)

    def cross(link: Any) -> None:
        link.zone, link.slope = 0, 20.0

    def steer(link: Any) -> None:
        link.slope = steered

    sim, made = happened(link, cross=cross, steer=steer)
    assert made == [*([("write_output", sim, link)] if written else []), ("rezone", sim, link, 1)]


@pytest.mark.parametrize(("watch", "counted"), [(3.7, True), (3.71, False), (NEVER, False)])
def test_a_link_counts_as_what_is_watched_has_left(watch: float, counted: bool) -> None:
    """A packet that joins at 3 s leaves at 3.7 s; one that leaves just then is counted: nobody looks at it again."""
    calls, link = Calls(), link_of(watch=watch)
    sim = SimpleNamespace(core=["core"])
    replaced(engine.settle, count_acknowledged=calls.count, advance=calls.advance)(sim, link, 3.0)
    assert calls.made == [*([("count", sim, link, 3.0)] if counted else []), ("advance", "core", link, 3.0)]


@pytest.mark.parametrize("reading", [0, 1])
def test_a_change_of_what_arrives_steers_the_queue_and_is_written_down(reading: int) -> None:
    calls, link = Calls(), link_of(reading=reading)
    sim = SimpleNamespace(
        core=["core"],
        trees="trees",
        output_times="outputs",
        transit_times="transits",
        calendar="calendar",
        flows=[1, 2],
    )
    names = {name: getattr(calls, name) for name in ("steer", "write_output", "plan")}
    replaced(engine.changed, **names)(sim, link)
    written = [("write_output", sim, link)] if reading else []
    planned = ("plan", "core", link, "trees", "outputs", "transits", "calendar", 2)
    assert calls.made == [("steer", link), *written, planned]


@pytest.mark.parametrize("onward", [0, 1])
def test_a_mixture_that_leaves_is_the_first_unread_one(onward: int) -> None:
    """Entry 6 + 3 of a ring of 8, each hop at its own rate; it is kept for the next link, if there is one."""
    calls = Calls()
    link, rates = link_of(head=6, left=3, stored=5, first=1, onward=onward), np.arange(16.0).reshape(1, 8, 2)
    own = [None, hop_of(flow=1), hop_of(flow=0)]
    sim = SimpleNamespace(
        core=["core"], hops=own, flows=["a", "b"], hops_at=[0, 2, 1], trees="trees", output_times=np.zeros((1, 8)),
        output_rates=rates,
    )  # fmt: skip
    replaced(engine.leave, hops=calls)(sim, link)
    assert calls.made == [
        ("candidates", "core", "a", own[2], "trees", link, 2, 2.0),
        ("candidates", "core", "b", own[1], "trees", link, 1, 3.0),
    ]
    assert (link.head, link.left, link.stored) == ((6, 4, 5) if onward else (7, 3, 4))


def test_a_mixture_that_joins_goes_to_each_hop_s_next_link_and_each_link_is_told_once() -> None:
    """Hops 0, 2 and 5 of this link lead to links 1, 1 and 2; hop 4 ends here."""
    calls, link = Calls(), link_of(head=6, left=1, stored=5, hops=4)
    leads = [hop_of(last=0, flow=0), hop_of(link=1, flow=0), hop_of(last=0, flow=1), hop_of(link=1, flow=1)]
    own = [*leads, hop_of(last=1, flow=2), hop_of(last=0, flow=3), hop_of(link=2, flow=3)]
    sim = SimpleNamespace(
        core=[core_of()], hops=own, flows=["a", "b", "c", "d"], hops_at=[0, 2, 4, 5], trees="trees", sums="sums",
        links=[link, "near", "far"], output_times=np.zeros((1, 8)), output_rates=np.arange(32.0).reshape(1, 8, 4),
    )  # fmt: skip
    replaced(engine.join, hops=calls, settle=calls.settle, changed=calls.changed)(sim, link)
    arrivals = [(1, "near", "a", 24.0), (3, "near", "b", 25.0), (6, "far", "d", 27.0)]
    expected: list[Any] = []
    for s, onward, flow, rate in arrivals:
        expected += [
            ("settle", sim, onward, 2.0),
            ("arrive", sim.core[0], flow, own[s], "trees", "sums", onward, s, rate),
        ]
    assert calls.made == [*expected, ("changed", sim, "near"), ("changed", sim, "far")]
    assert (link.head, link.left, link.stored) == (7, 0, 4)


@pytest.mark.parametrize(
    ("where", "last", "on_departure", "does"),
    [
        (0, 1, 0, ("received", 3.0)),  # it has waited here: it left the queue before the way to the next
        (0, 0, 0, ("received", 3.0)),
        (1, 1, 0, ("received", 3.75)),  # 45 of the queue at 3.25 s, at 100 a second
        (1, 1, 1, ("send_on", 2, 3.75)),  # marks of departing packets may come before it
        (1, 0, 0, ("send_on", 3, 3.75)),
        (1, 0, 1, ("send_on", 3, 3.75)),
    ],
)
def test_a_marked_packet_goes_on_or_out(where: int, last: int, on_departure: int, does: tuple[Any, ...]) -> None:
    calls = Calls()
    link = link_of(number=0, transit=4, transit_head=7, after=0.25)
    onward = link_of(number=1, queue=25.0, slope=20.0, arriving=120.0, on_departure=on_departure)
    hop = hop_of(link=where, last=last)
    sim = SimpleNamespace(
        core=["core"], flows=["flow"], links=[link, onward], hops=[None, None, hop], trees="trees", looks="looks",
        cnps="cnps", marks="marks", calendar="calendar", output_times="outputs", transit_times=np.zeros((2, 8)),
        transit_hops=np.zeros((2, 8), int),
    )  # fmt: skip
    sim.transit_times[0, 7], sim.transit_hops[0, 7] = 3.25, 2
    replaced(engine.carry_on, hops=calls, plan=calls.plan)(sim, link)
    assert (link.transit, link.transit_head) == (3, 0)
    following = onward if where else link
    if does[0] == "received":
        rest = ("trees", "looks", "cnps", "marks", "calendar", following, does[1])
        assert calls.made[0] == ("received", "core", "flow", hop, *rest)
    else:
        assert calls.made[0] == ("send_on", "core", sim.transit_times, sim.transit_hops, onward, does[1], does[2])
    plans = [("plan", "core", onward, "trees", "outputs", sim.transit_times, "calendar", 1)]
    assert calls.made[1:] == (plans if where else [])
