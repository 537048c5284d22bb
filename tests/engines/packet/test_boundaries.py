"""Boundaries of buffers, timers and deadlocks, counted by hand or seen by running on."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.contract.models import Packet, Scheme
from fluidcc.engines.common.topology import Port, topology_of
from fluidcc.engines.packet import dispatch, layout, recovery
from fluidcc.engines.packet.build import grown_packets, prepare
from fluidcc.engines.packet.host import send_ack
from fluidcc.engines.packet.record import _resumes, stuck_ports
from fluidcc.engines.packet.run import times_of
from fluidcc.engines.packet.switch import admit, headroom, release
from fluidcc.scenario.model import resolve
from tests.engines.packet.plain import plain
from tests.engines.packet.test_flow_control import further, ran, ring

PACKET = 1000  # bytes
NS = 1000  # ps
UNLIMITED = 1 << 50


def switch(**given: int) -> tuple[Any, Any, Any]:
    """Records of the core, of an ingress port of class 1 and of its switch; nothing is in the buffer."""
    core, port, node = (layout.records(kind, 1)[0] for kind in (layout.CORE, layout.PORT, layout.NODE))
    core.pfc, node.buffer, node.shared = 1 << 1, UNLIMITED, UNLIMITED
    port.xoff = given.get("xoff", 0)
    port.headroom, node.reserve = given.get("headroom", 0), given.get("reserve", 0)
    return core, port, node


def test_headroom_is_for_both_ways_and_for_a_packet_at_each_end() -> None:
    """At 20 Gb/s: 604.8 ns behind a packet and 8 frames of 64 bytes on the 20 Gb/s back, and 1 and 3 us of cables."""
    port, back = Port("a", "b", 5e9, 1e-6), Port("b", "a", 2.5e9, 3e-6)
    assert headroom(port, back, PACKET) - 2 * PACKET in (3024 + 20_000, 3025 + 20_000)  # rounded upwards


def taken(core: Any, port: Any, node: Any, most: int = 50) -> int:
    """Packets that are admitted until one is not."""
    return next(n for n in range(most) if not plain(admit)(core, port, node, 1, 0, PACKET))


@pytest.mark.parametrize("packets", [1, 3])
@pytest.mark.parametrize(("short", "less"), [(0, 0), (1, 1)])
def test_headroom_holds_what_fits_exactly(packets: int, short: int, less: int) -> None:
    """Above a threshold of 0 all goes to the headroom: N packets of it hold N, and a byte less one packet less."""
    core, port, node = switch(headroom=packets * PACKET - short)
    assert taken(core, port, node) == packets - less
    assert (port.queues[1].headroom_used, port.queues[1].ingress, node.shared_used) == ((packets - less) * PACKET, 0, 0)


@pytest.mark.parametrize(("xoff", "reserve", "pool"), [(2000, 0, 2), (1999, 0, 1), (2000, 1000, 3), (2000, 999, 2)])
def test_reserve_pool_and_headroom_fill_one_after_the_other(xoff: int, reserve: int, pool: int) -> None:
    """The pool takes up to xoff above the reserve, and headroom for one packet takes one; all is given back."""
    core, port, node = switch(xoff=xoff, reserve=reserve, headroom=PACKET)
    assert taken(core, port, node) == pool + 1
    queue = port.queues[1]
    assert (queue.ingress, queue.headroom_used) == (pool * PACKET, PACKET)
    assert node.shared_used == pool * PACKET - reserve
    for n in range(pool + 1):
        plain(release)(core, port, node, 1, PACKET)
        assert queue.headroom_used == 0  # what came last to the headroom is given back first
        assert queue.ingress == (pool - n) * PACKET
        assert node.shared_used == max((pool - n) * PACKET - reserve, 0)
    assert node.used == 0


def test_headroom_in_a_run() -> None:
    """A threshold of 0 sends all to the headroom: with 99 bytes of it no packet of two hosts has a place."""
    drops = []
    for kept in (100 * PACKET, 99):
        pfc = fc.PFC(xoff=0, headroom=kept)
        scenario = fc.incast(2, rate="10Gbps", scheme=fc.NoControl(), marking=None, buffer="1MB", pfc=pfc, size="2KB")
        drops.append(fc.simulate(scenario, "1ms", engine="packet").summary["drops"])
    assert drops[0] == 0
    assert drops[1] == 4  # no packet has a place


def test_a_timer_looks_after_the_oldest_packet_of_which_nothing_is_known() -> None:
    """Packets every 40 us, of which a wire loses the first and the fifth: each goes again a timeout after it was sent.

    A round trip takes 82 us. When the timer of the first is over, at 330 us, nothing is known either of the fifth, sent
    at 160 us, and of those of 280 and 320 us, which are under way. So the first goes again in the next place, 360 us,
    and the fifth, known to be lost at 490 us, at 520 us. A timer after the youngest would look at 650 us.
    """
    link = fc.Link("100Gbps", "20us", name="a>b", source="a", target="b", loss=1e-12)
    flow = fc.Flow(
        (0,), fc.NoControl(), "100Gbps", access_delay="20us", initial_rate="200Mbps", source="host", target="b"
    )
    scenario = fc.Scenario((link,), (flow,), loss_recovery="trimming", retransmission_timeout="330us")
    sim = ran(scenario, "1us").sim
    wire = int(np.flatnonzero(sim.ports["link"] == 0)[0])
    again = []
    for time in range(10, 700, 10):  # [us]
        sim.ports[wire].loss = float(30 <= time % 160 <= 50 and time < 220)
        before = int(sim.core[0].retransmissions)
        sim = further(sim, time * 1000 * NS)
        again += [time] * (int(sim.core[0].retransmissions) - before)
    assert sim.core[0].dropped == 2
    assert again == [360, 520]


def stuck_bytes(sim: Any, i: int) -> dict[int, int]:
    """Bytes in the queue of port ``i`` by the port that they came in by."""
    found: dict[int, int] = {}
    k = int(sim.ports[i].queues[1].head)
    while k >= 0:
        came = int(sim.packets[k].ingress)
        found[came] = found.get(came, 0) + int(sim.packets[k].wire)
        k = int(sim.packets[k].next)
    return found


@pytest.mark.parametrize(("stays", "xoff", "goes"), [(0, 100, True), (1, 100, False), (1, 501, True), (2, 501, False)])
def test_an_empty_ingress_goes_on_whatever_the_gap(stays: int, xoff: int, goes: bool) -> None:
    """A gap of 500 B above a threshold of 100 would hold it for ever; one that keeps bytes must be a gap below."""
    _, port, node = switch(xoff=xoff)
    node.xon_gap, port.stopping, port.wire_head = 500, 1 << 1, 0
    port.queues[1].ingress = 5000
    sim: Any = SimpleNamespace(ports=[port], nodes=[node])
    assert _resumes(sim, 0, 1, {(0, 1): stays}) is goes


@pytest.mark.parametrize(("head", "goes"), [(0, True), (7, True), (-1, False)])
def test_a_packet_on_the_wire_applies_the_rule_again(head: int, goes: bool) -> None:
    """All bytes stay, which are a gap below the threshold: the first packet of the table is one too, none is none."""
    _, port, node = switch(xoff=5500)
    node.xon_gap, port.stopping, port.wire_head = 500, 1 << 1, head
    port.queues[1].ingress = 5000
    sim: Any = SimpleNamespace(ports=[port], nodes=[node])
    assert _resumes(sim, 0, 1, {(0, 1): 5000}) is goes


def test_a_ring_holds_as_long_as_its_reserve_is_short() -> None:
    """Bytes in the reserve of an ingress pause nobody: a byte more of it, and the ring of three comes free.

    Of what comes over a link those bytes are stuck that go on over the ring. Its port goes on when these, less the
    reserve, are a gap below the threshold. A dynamic one is a share of the pool less what is beyond reserves, also of
    the host's ingress.
    """
    sim = ran(ring(3, 3, pfc=fc.PFC(xoff="8KB", reserve="2KB", xon_gap="1KB")), "300us").sim
    sim.ports["queues"]["ingress"][:, 1] += 20_000  # of packets that leave, so that a RESUME may be asked for
    stays, of_hosts = 12_000, 13_000
    for i in range(3):
        assert sorted(stuck_bytes(sim, i).values()) == [stays, of_hosts]

    def stuck(reserve: int) -> bool:
        sim.nodes["reserve"] = reserve
        found = {i for i, _ in stuck_ports(sim)} & set(range(3))
        assert len(found) in (0, 3)
        return bool(found)

    assert stuck(stays + 1000 - 8000 - 1)
    assert not stuck(stays + 1000 - 8000)
    # Half of a pool of 20,500 B: stays - r + gap <= (20,500 - (stays - r) - (of_hosts - r))/2 from r = 7625 on.
    sim.ports["xoff"], sim.ports["alpha"], sim.nodes["shared"] = -1, 0.5, 20_500
    assert stuck(7624)
    assert not stuck(7625)


@pytest.mark.parametrize("kind", range(7))
def test_wires_lose_all_but_frames_of_pfc(kind: int) -> None:
    """Real switches repeat PAUSE and RESUME; neither draws a number."""
    core = SimpleNamespace(drawn=0)
    spared = kind in (layout.PAUSE, layout.RESUME)
    lost = plain(recovery.lost)(core, [0.5, 0.5], SimpleNamespace(loss=1.0), SimpleNamespace(kind=kind))
    assert (lost, core.drawn) == (not spared, int(not spared))


def test_the_simulator_s_threshold_is_alpha_itself_where_ports_are_as_fast_as_nics() -> None:
    """Faster ones get two, four or eight times as much."""
    scenario = resolve(fc.incast(2, rate="100Gbps", timing="ns3", pfc=fc.PFC(alpha=0.5), buffer="9MB"))
    plan = prepare(scenario, times_of(scenario, "1us", None, None), 0)
    found = {float(port.alpha) for port in plan.sim.ports if port.headroom > 0}
    assert found == {0.5}


@pytest.mark.parametrize(("sent", "expires"), [(2001, 57), (3000, 57), (3001, 1007)])
def test_a_timeout_is_short_with_few_packets_under_way(sent: int, expires: int) -> None:
    """IRN's, of 50 with up to three packets of 1000 bytes, the last begun or not, and of 1000 with more, after 7."""
    core = SimpleNamespace(few=3, low_timeout=50, timeout=1000)
    assert plain(recovery.due)(core, SimpleNamespace(payload=1000, news=7, acked=0, sent=sent)) == expires


@pytest.mark.parametrize("base", ["nowhere", "hpcc-rx"])
def test_rules_are_added_to_a_scheme_that_has_all_its_own(base: str) -> None:
    """Not to one that there is not, nor to one that adds to another's itself."""
    added = Scheme(SimpleNamespace(name="adds"), {}, "adds")
    vars(added).update(law=None, packet=Packet(None, {}, lambda *given: None, BASE=base))
    with pytest.raises(fc.InputError, match=f"scheme adds: BASE names '{base}', which has no packet side of its own"):
        dispatch._side_of(added)


@pytest.mark.parametrize(("ack_queue", "queue"), [("data", 1), ("control", 0)])
def test_acks_go_in_the_queue_that_was_asked_for(ack_queue: str, queue: int) -> None:
    """Before all data, or behind their own class's. Catches a switch that another option sets."""
    scenario = resolve(fc.incast(2, rate="10Gbps", scheme=fc.NoControl(), ack_queue=ack_queue))
    plan = prepare(scenario, times_of(scenario, "1us", None, None), 0)
    sim = grown_packets(plan.sim, 4)
    plain(send_ack)(sim, 0, 0)
    assert sim.packets[0].queue == queue


def test_a_port_is_the_way_back_of_one_other() -> None:
    """Two links one way and one back. Catches a way back that two ports share, whose PAUSE would stop one alone."""
    ways = [("a", "b"), ("a", "b"), ("b", "a")]
    links = tuple(fc.Link("10Gbps", "1us", source=source, target=target) for source, target in ways)
    flows = tuple(fc.Flow((k,), fc.NoControl(), "10Gbps", target=f"r{k}", egress_delay="1us") for k in range(3))
    ports = topology_of(resolve(fc.Scenario(links, flows))).ports
    assert [ports[port.reverse].reverse for port in ports] == list(range(len(ports)))
