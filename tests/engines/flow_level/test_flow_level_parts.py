"""Parts of the flow level by hand: the calendar, loads, what a run is given, and who waits; nothing is compiled."""

from __future__ import annotations

import heapq
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.engines.flow_level import ideal, layout, run, senders
from fluidcc.engines.flow_level import transfers as calendar
from fluidcc.engines.flow_level.layout import HELD, LEFT, SENDING, STEP, USED, alone_of, layout_of
from fluidcc.engines.flow_level.transfers import (
    ALL,
    ANSWER,
    DEPARTURE,
    ENDS,
    RECEIPT,
    Transfers,
    transfers_of,
    waits_of,
)
from fluidcc.errors import InputError
from fluidcc.scenario.model import resolve
from fluidcc.units import Rate
from tests.engines.flow_level.network_by_hand import Calls, steps, waits
from tests.engines.fluid.in_numpy import numpy_only
from tests.engines.hybrid.by_hand import replaced
from tests.engines.packet.plain import plain

__all__ = ["numpy_only"]

# -- calendar ----------------------------------------------------------------------------------------------------------


def test_starts_come_in_order_of_time() -> None:
    """Python's heap gives the same, some of which go while others come."""
    rng = np.random.default_rng(1)
    begins, heap, held, known = rng.integers(0, 60, 200).astype(float), np.zeros(200, int), 0, []
    for t in range(200):
        plain(calendar.push)(heap, held, begins, t)
        heapq.heappush(known, begins[t])
        held += 1
        if rng.uniform() < 0.4:
            assert begins[plain(calendar.pop)(heap, held, begins)] == heapq.heappop(known)
            held -= 1
        assert all(begins[heap[(k - 1) // 2]] <= begins[heap[k]] for k in range(1, held))
    while held:
        assert begins[plain(calendar.pop)(heap, held, begins)] == heapq.heappop(known)
        held -= 1


def test_starts_at_one_time_have_an_order_that_stays() -> None:
    """Runs repeat to the bit."""
    heap, begins = np.zeros(5, int), np.ones(5)
    for t in range(5):
        plain(calendar.push)(heap, t, begins, t)
    assert heap.tolist() == [0, 1, 2, 3, 4]
    assert [int(plain(calendar.pop)(heap, held, begins)) for held in (5, 4, 3, 2, 1)] == [0, 4, 3, 2, 1]
    heap, begins = np.arange(4), np.array([0.0, 1.0, 1.0, 2.0])
    assert [int(plain(calendar.pop)(heap, held, begins)) for held in (4, 3, 2, 1)] == [0, 1, 2, 3]


def test_what_begins_or_ends_just_at_the_horizon_has() -> None:
    """At 3 s: one transfer begins, another has its last ACK; what comes later is not known."""
    ports, alone = SimpleNamespace(names=["a"], rate=np.ones(1)), SimpleNamespace(answered=np.ones(2))
    begins, ends = np.array([1.0, 3.0]), np.array([[2.0, 3.0, 1.5], [4.0, 5.0, 3.5]])
    found: Any = plain(run._made)(None, ports, alone, begins, ends, layout.load_of(1, 1.0), {}, 3.0, 0.0)
    assert (found.start.tolist(), found.numbers["ended"]) == ([1.0, 3.0], 1)
    for name, first in (("received", 2.0), ("answered", 3.0), ("left", 1.5)):
        np.testing.assert_array_equal(getattr(found, name), [first, np.nan])


@pytest.mark.parametrize(
    ("told", "awaits", "begins"),
    [
        (1 << DEPARTURE, [2, 1, 1], [3.0, 7.0, 6.0]),
        (ENDS, [1, 0, 0], [5.0, 17.0, 106.0]),
        (ALL, [0, 0, 0], [15.0, 17.0, 106.0]),
        (1 << RECEIPT, [2, 1, 0], [4.0, 7.0, 106.0]),
    ],
)
def test_followers_begin_a_delay_after_the_last_of_the_ends_that_they_wait_for(
    told: int, awaits: list[int], begins: list[float]
) -> None:
    """The last byte of transfer 3 left at 3 s, arrived at 4 and was answered at 5.

    Transfer 0 waits for all three ends, 1 for the answer, 2 for the receipt; 1 and 2 have heard of ends at 7 and 6 s.
    """
    pairs = [(0, DEPARTURE), (0, RECEIPT), (0, ANSWER), (1, ANSWER), (2, RECEIPT)]
    of = waits([[(2, DEPARTURE)], [], [], pairs], [3, 1, 1, 0])
    found, delay = np.array([0.0, 7.0, 6.0, 1.0]), np.array([10.0, 10.0, 100.0, 0.0])
    heap = np.full(4, 9)
    held = plain(calendar.tell)(*of, delay, found, 3, told, 3.0, 4.0, 5.0, heap, 0)
    assert of[3].tolist() == [*awaits, 0]
    assert found.tolist() == [*begins, 1.0]
    ready = [f for f in range(3) if awaits[f] == 0]
    assert held == len(ready)
    assert sorted(heap[:held].tolist()) == ready


def test_a_wait_ends_all_at_once() -> None:
    of, ends, heap = waits([[(1, RECEIPT)], []], [0, 1]), np.zeros((2, 3)), np.zeros(2, int)
    begins = np.array([5.0, 0.0])
    assert plain(calendar.pass_by)(*of, np.array([0.0, 2.0]), begins, ends, 0, heap, 0) == 1
    assert ends.tolist() == [[5.0] * 3, [0.0] * 3]
    assert (begins.tolist(), heap[0]) == ([5.0, 7.0], 1)


def test_operations_begin_after_departures_or_arrivals() -> None:
    """The first at its delay; the second as the first has left; the third as both have arrived."""
    begins = np.zeros(4)
    after, at, behind = np.array([0, 0, 1, 2]), np.array([0, 0, 1, 3, 4]), np.array([True, False, False, True])
    delay, left, arrived = (
        np.array([1.0, 2.0, 3.0, 0.5]),
        np.array([4.0, 5.0, 6.0, 0.0]),
        np.array([40.0, 9.0, 60.0, 0.0]),
    )
    plain(calendar.begin_after)(after, at, behind, delay, left, arrived, begins)
    assert begins.tolist() == [1.0, 7.0, 44.0, 50.5]


# -- loads -------------------------------------------------------------------------------------------------------------


def overlap(since: float, until: float, width: float) -> np.ndarray:
    edges = width * np.arange(layout.INTERVALS + 1)
    return np.maximum(np.minimum(until, edges[1:]) - np.maximum(since, edges[:-1]), 0.0)


@pytest.mark.parametrize(
    ("since", "until"), [(0.0, 2.0), (0.25, 0.75), (0.5, 3.25), (1.0, 2.0), (3.0, 3.0), (0.0, 256.0), (255.5, 256.0)]
)
def test_what_is_carried_lies_in_its_intervals(since: float, until: float) -> None:
    found = layout.load_of(2, 1.0)
    plain(layout.carry)(tuple(found), np.array([10.0, 20.0]), since, until)
    spent = overlap(since, until, 1.0)
    np.testing.assert_allclose(found.carried, spent[:, None] * [10.0, 20.0], atol=1e-12)
    alone = layout.load_of(3, 1.0)
    plain(layout.carry_on)(tuple(alone), np.array([[-1], [2]]), 1, 10.0, since, until)
    np.testing.assert_allclose(alone.carried, spent[:, None] * [0.0, 0.0, 10.0], atol=1e-12)
    assert found.width[0] == alone.width[0] == 1.0


@pytest.mark.parametrize(("until", "width"), [(256.0, 1.0), (256.1, 2.0), (512.0, 2.0), (1025.0, 8.0)])
def test_intervals_take_the_next_one_in_as_a_run_grows_longer(until: float, width: float) -> None:
    found = layout.load_of(1, 1.0)
    found.carried[:, 0] = np.arange(256.0)
    plain(layout.widen)(found.carried, found.width, until)
    times = int(width)
    expected = np.zeros(256)
    expected[: 256 // times] = np.arange(256.0).reshape(-1, times).sum(axis=1)
    assert found.width[0] == width
    np.testing.assert_array_equal(found.carried[:, 0], expected)


def test_a_port_that_carries_more_than_its_rate_sends_the_rest_in_the_next_interval() -> None:
    """Intervals of 2 s at 10 and 20 bytes/s; what is below nothing is none."""
    given = layout.Load(np.array([[50.0, 10.0], [0.0, -5.0], [0.0, 0.0], [0.0, 0.0]]), np.array([2.0]))
    rate = np.array([10.0, 20.0])
    expected = [[1.0, 0.25], [1.0, 0.0], [0.5, 0.0], [0.0, 0.0]]
    for until, count in ((1.0, 3), (6.0, 3), (6.1, 4), (99.0, 4), (math.inf, 4)):
        assert layout.shares_of(given, rate, until).tolist() == expected[:count]
    late = layout.Load(np.array([[0.0], [50.0]]), np.array([2.0]))  # beyond the intervals there are
    assert layout.shares_of(late, rate[:1], 4.0).tolist() == [[0.0], [1.0], [1.0], [0.5]]
    nothing = layout.Load(np.zeros((3, 1)), np.array([2.0]))
    assert layout.shares_of(nothing, rate[:1], 0.0).tolist() == [[0.0]]
    assert layout.shares_of(nothing, rate[:1], 3.0).tolist() == [[0.0], [0.0]]


# -- what a run is given -----------------------------------------------------------------------------------------------


class Stop(Exception):  # noqa: N818
    """Ends a run where what it has been given is looked at."""


def one_link(line: float, link: float, **options: Any) -> fc.Scenario:
    known = {"path": (0,), "scheme": fc.NoControl(), "size": 2500.0}
    flows = (
        fc.Flow(line_rate=Rate(line), start=3e-6, **known),
        fc.Flow(line_rate=Rate(line), start=1e-6, access_delay=1e-5, **known),
    )
    network = {"packet_size": 1000.0, "header_bytes": 62.0, **options}
    return resolve(fc.Scenario((fc.Link(rate=Rate(link), delay=1e-6),), flows, **network))


def looked_into(monkeypatch: pytest.MonkeyPatch, where: Any, name: str, scenario: Any, **options: Any) -> Any:
    """Arguments of a function that a run calls."""

    def stop(*given: Any) -> Any:
        raise Stop(given)

    monkeypatch.setattr(where, name, stop)
    with pytest.raises(Stop) as stopped:
        run.flow_times(scenario, **options)
    return stopped.value.args[0]


def test_ideal_events_share_the_work_of_an_eighth_of_the_shortest_round_trip(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = one_link(1e9, 4e9)
    paths = layout_of(scenario)[2]
    assert paths.rtt[1] > paths.rtt[0]
    assert looked_into(monkeypatch, run, "_ideal", scenario)[7] == paths.rtt[0] / 8
    assert looked_into(monkeypatch, run, "_ideal", scenario, apart="3us")[7] == 3e-6
    for apart in ("-1us", math.inf):
        with pytest.raises(InputError, match="apart"):
            run.flow_times(scenario, apart=apart)


def test_a_step_is_an_eighth_of_the_longest_round_trip_or_as_many_as_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = one_link(1e9, 4e9)
    paths = layout_of(scenario)[2]
    given = looked_into(monkeypatch, run, "_dynamics", scenario, model="dynamics")
    assert given[7] == min(paths.rtt.max() / 8, (paths.rtt / (2 * paths.hops)).min())
    most = float(paths.rtt.min()) / 2
    assert looked_into(monkeypatch, run, "_dynamics", scenario, model="dynamics", dt=most)[7] == most
    for dt in (most * 1.001, 0.0):
        with pytest.raises(InputError, match=r"dt: .* is no step"):
            run.flow_times(scenario, model="dynamics", dt=dt)


@pytest.mark.parametrize(("line", "link"), [(1e9, 4e9), (4e9, 1e9)])
def test_what_comes_behind_the_last_byte_is_the_time_alone_less_its_sending_at_the_slowest_port(
    line: float, link: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Be it the NIC's or the link's; in both models."""
    scenario = one_link(line, link)
    _, _, paths = layout_of(scenario)
    alone = alone_of(scenario, paths, transfers_of(scenario))
    assert alone.wire.tolist() == [2500 + 3 * 62.0] * 2
    tail = np.column_stack([alone.received, alone.answered]) - (alone.wire / 1e9)[:, None]

    def compiled(*given: Any) -> Any:
        return SimpleNamespace(prepare=lambda *more: (_ for _ in ()).throw(Stop((given, more))))

    monkeypatch.setattr(senders, "Compiled", compiled)
    with pytest.raises(Stop) as stopped:
        run.flow_times(scenario, model="dynamics", dt="1us", seed=5)
    (_, first, net, slots, seed), (m, dt, given) = stopped.value.args[0]
    assert (slots, seed, dt, len(first)) == (64, 5, 1e-6, 2)
    np.testing.assert_allclose(given[1], tail)
    np.testing.assert_allclose(given[0], alone.wire)
    assert given[4].tolist() == [3e-6, 1e-6]  # of what is free to begin
    assert given[6].tolist() == [1, 0]  # the first first
    assert given[7][1][0] == 8e-6
    assert m.now[[HELD, LEFT, USED, STEP]].tolist() == [2, 2, 0, 0]
    records = math.ceil(4.0 * paths.rtt.max() / 1e-6) + 2 * paths.there.shape[1] + 4
    assert m.ports.seen.shape == (records, len(net.rate), 5)
    given = looked_into(monkeypatch, ideal, "run", scenario)
    np.testing.assert_allclose(given[7], tail)
    np.testing.assert_allclose(given[5], alone.wire)


def test_there_are_slots_for_what_begins_within_a_round_trip_and_half_as_many_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[int] = []

    def compiled(*given: Any) -> Any:
        seen.append(given[3])
        raise Stop

    monkeypatch.setattr(senders, "Compiled", compiled)
    scenario = one_link(1e9, 4e9)
    rtt = layout_of(scenario)[2].rtt.max()
    for count in (42, 43, 85, 86):
        late = Transfers(np.zeros(200, int), 1e3, [0.0] * count + [rtt] * (200 - count))
        with pytest.raises(Stop):
            run.flow_times(scenario, late, model="dynamics")
    assert seen == [64, 128, 128, 256]


@pytest.mark.parametrize(("switches", "refused"), [(12, False), (13, True)])
def test_so_many_switches_of_a_path_are_followed(switches: int, refused: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = one_link(1e9, 4e9)
    topology, ports, paths = layout_of(scenario)
    paths = paths._replace(there=np.pad(paths.there, ((0, 0), (0, switches + 1 - paths.there.shape[1]))))
    transfers = transfers_of(scenario)
    given = scenario, transfers, topology, ports, paths, alone_of(scenario, paths, transfers)
    monkeypatch.setattr(run, "net_of", lambda *more: (_ for _ in ()).throw(Stop))
    with pytest.raises(InputError if refused else Stop, match="crosses 13 switches; at most 12" if refused else None):
        run._dynamics(*given, waits_of(scenario, transfers), 1e-6, 1.0, 0, None)


@pytest.mark.parametrize(
    ("backlog", "shared", "port"),
    [
        ([9e9, 50.0, 900.0, 9e9, 40.0, 60.0], [1000.0, 1000.0], "s2"),  # hosts' do not count
        ([9e9, 950.0, 900.0, 9e9, 40.0, 60.0], [1000.0, 1000.0], "s1"),
        ([0.0, 10.0, 10.0, 0.0, 0.0, 5.0], [5.0, 1000.0], "s1"),  # less than nothing is free there
        ([0.0, 10.0, 10.0, 0.0, 0.0, 995.0], [10.0, 1000.0], "s5"),  # nothing, and ten bytes are too many; there 15
    ],
)
def test_a_buffer_that_overflows_is_named(backlog: list[float], shared: list[float], port: str) -> None:
    m = steps(shared=shared, dropping=[1.0])
    m.ports.backlog[:], m.node_used[:] = backlog, [10.0, 20.0]
    topology = SimpleNamespace(ports=[SimpleNamespace(source=f"s{p}") for p in range(6)])
    with pytest.raises(InputError, match=f"buffer: 9MB of '{port}' overflows at 5s, "):
        run._refuse_overflow(SimpleNamespace(buffer=9e6), topology, m, 0.5)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("pfc", "xoff", "alpha", "gap"),
    [(None, -1.0, 0.0, 0.0), (fc.PFC("50KB", xon_gap="2KB"), 50e3, None, 2e3), (fc.PFC(alpha=0.25), -1.0, 0.25, 3e3)],
)
def test_a_net_has_the_switches_shared_buffers_and_thresholds(pfc: Any, xoff: float, alpha: Any, gap: float) -> None:
    scenario = one_link(1e9, 4e9, pfc=pfc, buffer="9MB")
    topology, ports, paths = layout_of(scenario)
    net = run.net_of(scenario, topology, ports, paths)
    assert (net.xoff == xoff).all()
    assert alpha is None or net.alpha[0] == alpha
    assert (net.gap[0], bool(net.pausing[0]), net.dropping[0]) == (gap, pfc is not None, 1e18)
    names = {name: i for i, name in enumerate(topology.nodes)}
    for p, port in enumerate(topology.ports):
        assert net.source[p] == (-1 if port.source in topology.hosts else names[port.source])
        assert net.target[p] == (-1 if port.target in topology.hosts else names[port.target])
    for name, shared in zip(topology.nodes, net.shared, strict=True):
        assert bool(shared < 9e6) is (pfc is not None and name not in topology.hosts)
    assert net.used.tolist() == sorted({*paths.there[paths.there >= 0], *paths.back[paths.back >= 0]})
    assert np.isinf(net.marking[:, 0]).all()
    assert not net.joining.any()


@pytest.mark.parametrize(("mark_on", "joins", "alpha"), [("arrival", True, 0.5), ("departure", False, None)])
def test_a_net_has_its_links_marking(mark_on: str, joins: bool, alpha: Any) -> None:
    marking = fc.RED("10KB", "40KB", 0.5, mark_on=mark_on)
    base = one_link(1e9, 4e9, egress_alpha=alpha)
    link = fc.Link(rate=Rate(4e9), delay=1e-6, marking=marking)
    scenario = resolve(fc.Scenario((link,), base.flows, packet_size=1000.0, egress_alpha=alpha))
    topology, ports, paths = layout_of(scenario)
    net = run.net_of(scenario, topology, ports, paths)
    marked = np.isfinite(net.marking[:, 0])
    assert marked.sum() >= 1
    assert net.marking[marked].tolist() == [[10e3, 40e3, 0.5]] * int(marked.sum())
    assert net.joining.tolist() == (marked & joins).tolist()
    assert net.dropping[0] == (alpha or 1e18)


# -- memory ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("time", "step"), [(0.0, 0), (0.3, 3), (0.29999, 2), (0.6, 6), (0.7, 7), (1.0, 10)])
def test_a_time_lies_in_a_step_as_steps_count(time: float, step: int) -> None:
    found = layout.step_of(time, 0.1)
    assert found * 0.1 <= time * (1 + 1e-12)
    assert time < found * 0.1 + 0.1
    assert abs(found - step) <= 1


def test_slots_grow_behind_those_there_are() -> None:
    slots = layout.slots_of(2, 3, 4)
    for column in slots:
        column[:] = 7
    for before, after in zip(slots, layout.grown(slots), strict=True):
        assert after.shape == (4, *before.shape[1:])
        assert (after[:2] == 7).all()
        assert not after[2:].any()


# -- senders -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by_cnp", [False, True])
@pytest.mark.parametrize("fresh", [0, 1])
def test_senders_choose_their_rates_at_a_step_s_end(by_cnp: bool, fresh: int) -> None:
    """Slot 2 sends, and slot 0 does no longer; one that begins has its kind's first numbers."""
    m = steps(3, 2, kind=[1])
    m.used[:2], m.slots.doing[:], m.slots.fresh[2], m.slots.transfer[2] = (
        [0, 2],
        [layout.DRAINING, 0, SENDING],
        fresh,
        8,
    )
    m.slots.pace[:], m.slots.window[:] = -1.0, -1.0
    flows = layout.records(layout.FLOW, 3)
    first = layout.records(layout.FLOW, 2)
    for each in (flows, first):
        each.rate, each.window, each.packet, each.counted = 60.0, 500.0, 12.0, 10.0
    first.scheme = [5, 6]
    law = SimpleNamespace(
        core=np.zeros(1), flows=flows, first=first, raw=np.zeros((3, 2), int), raw_first=np.array([[1, 2], [3, 4]]),
        by_cnp=[by_cnp], seed=[9], needs="needs",
    )  # fmt: skip
    dispatch, look, notice = SimpleNamespace(begin=Calls(), on_step=Calls()), Calls(), Calls()
    replaced(
        senders.tell_all, dispatch=dispatch, look=look, _notice=notice, exponential=lambda *given: 0.25 + sum(given)
    )(m, law, 0.5)
    assert law.core[0] == 5.0
    assert m.slots.pace.tolist() == [-1.0, -1.0, 60.0]
    assert m.slots.window.tolist() == [-1.0, -1.0, 600.0]
    assert look.made[0][1] == 2
    assert look.made[0][3:] == ("needs", 0.5, 0.0)
    assert [each[1:] for each in notice.made] == ([] if not by_cnp else [(flows[2], 2, 5.0)])
    assert dispatch.on_step.made == ([] if by_cnp else [(law, 2, 0.5)])
    assert dispatch.begin.made == ([(law, 2)] if by_cnp and fresh else [])
    assert m.slots.fresh[2] == 0
    mine = flows[2]
    assert (mine.scheme, mine.row, mine.number, mine.hops) == ((6, 2, 8, 2) if fresh else (0, 0, 0, 0))
    assert (mine.left, mine.draws) == ((17.25, 1) if by_cnp and fresh else (0.0, 0))
    assert law.raw.tolist() == [[0, 0], [0, 0], [3, 4] if fresh else [0, 0]]


def test_steps_are_taken_until_nothing_is_under_way() -> None:
    given = tuple("abcdefgh")

    def taken(count: int, status: list[int], used: list[int], answering: list[bool]) -> tuple[Any, int]:
        m, told = SimpleNamespace(now=np.zeros(8, np.int64)), Calls()

        def advance(m: Any, dt: Any, *more: Any) -> None:
            assert more == given
            k = m.now[STEP]
            m.now[layout.STATUS], m.now[USED] = status[k], used[k]
            m.now[STEP] += 1

        names = {"advance": advance, "tell_all": told, "answering": lambda m: answering[m.now[STEP] - 1]}
        found = replaced(senders.run, **names)(m, "law", 0.5, count, given)
        return found, len(told.made)

    running, full = layout.RUNNING, layout.FULL
    assert taken(2, [running] * 3, [1] * 3, [False] * 3) == (2, 2)
    assert taken(3, [running, full], [1] * 3, [False] * 3) == (1, 1)
    assert taken(3, [running] * 3, [1, 0, 0], [False] * 3) == (2, 2)
    assert taken(3, [running] * 3, [0, 0, 0], [True, False, True]) == (2, 2)


# -- who waits ---------------------------------------------------------------------------------------------------------


def test_ends_that_are_waited_for_go_by_the_hosts() -> None:
    """Flow 1 has the receiver of flow 0, flow 2 its sender, flow 3 neither, and the last names no hosts."""
    hosts = [("a", "b"), ("b", "c"), ("a", "d"), ("c", "d"), ("", "")]
    link = fc.Link(rate=Rate(1e9), delay=1e-6)
    flows = [
        fc.Flow(path=(0,), line_rate=Rate(1e9), scheme=fc.NoControl(), size=1e3, source=source, target=target)
        for source, target in hosts
    ]
    scenario = fc.Scenario((link,), tuple(flows))
    after: list[tuple[int, ...]] = [(), (0,), (0,), (0, 1), (0,)]
    expected = {
        "known": [RECEIPT, ANSWER, ANSWER, ANSWER, RECEIPT],
        "sent": [RECEIPT, DEPARTURE, RECEIPT, RECEIPT, RECEIPT],
        "receipt": [RECEIPT] * 5,
        "answer": [ANSWER] * 5,
    }
    for what, ends in expected.items():
        found = waits_of(scenario, Transfers(np.arange(5), 1e3, 0.0, after, after_what=what))
        assert found.at.tolist() == [0, 4, 5, 5, 5, 5]
        assert found.listed.tolist() == [1, 2, 3, 4, 3]
        assert found.what.tolist() == ends
        assert found.awaits.tolist() == [0, 1, 1, 2, 1]
