"""Ternary congestion detection: the port's states, marks on a path and on ACKs, and who heeds them.

The states are those of Zhang et al. (SIGCOMM 2021) as their public simulator runs them: restated in `Port` in plain
Python that shares nothing with the package. Comparisons are exact.
"""

from __future__ import annotations

import dataclasses
import math
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fluidcc as fc
from fluidcc.engines.packet import layout
from fluidcc.engines.packet.build import grown_packets, prepare
from fluidcc.engines.packet.calendar import new_calendar
from fluidcc.engines.packet.host import deliver
from fluidcc.engines.packet.layout import ACK, CNP, DATA, records
from fluidcc.engines.packet.marking import CE, CHECKING, CONGESTED, NOTHING, UE, UNCONGESTED, UNDETERMINED, ternary
from fluidcc.engines.packet.run import times_of
from fluidcc.engines.packet.switch import stamp
from fluidcc.scenario.model import resolve
from fluidcc.schemes.dcqcn import packet as dcqcn
from fluidcc.schemes.timely import packet as timely
from tests.engines.packet.plain import plain

US = 1_000_000  # ps
MAX_ON = 24 * US
PACKET = 1000


@dataclasses.dataclass
class Port:
    """The port of the note: t_on, the queue, and what was remembered."""

    threshold: float
    state: str = "uncongested"
    resumed: float = -math.inf
    at_resume: int = 0
    remembered: tuple[float, int] = (0.0, 0)

    def resume(self, now: float, queue: int) -> None:
        self.resumed, self.at_resume = now, queue

    def leaves(self, now: float, queue: int, size: int) -> str | None:
        """Mark of a packet that leaves ``queue`` behind."""
        if now - self.resumed <= MAX_ON:
            self.state = "undetermined"
            return "UE"
        if self.state == "undetermined":
            if queue >= self.at_resume:
                return self.by_threshold(queue)
            self.state, self.remembered = "checking", (now, queue)
            return None
        if self.state == "checking":
            when, then = self.remembered
            if now - when > MAX_ON:
                if queue - then >= 0.9 * size:
                    self.state = "congested"
                    return "CE"
                self.remembered = now, queue
            if queue <= 2 * size:
                self.state = "uncongested"
            return None
        return self.by_threshold(queue)

    def by_threshold(self, queue: int) -> str | None:
        self.state = "congested" if queue > self.threshold else "uncongested"
        return "CE" if queue > self.threshold else None


STATES = {
    "uncongested": UNCONGESTED,
    "congested": CONGESTED,
    "undetermined": UNDETERMINED,
    "checking": CHECKING,
}
MARKS = {None: NOTHING, "UE": UE, "CE": CE}


class Ours:
    """A port's record, and the package's rule on it."""

    def __init__(self, threshold: int = 2 * PACKET) -> None:
        self.core, self.port = records(layout.CORE, 1)[0], records(layout.PORT, 1)[0]
        self.port.kmin = self.port.kmax = threshold
        self.port.pmax, self.port.max_on = 1.0, MAX_ON

    def resume(self, now: int, queue: int) -> None:
        self.port.resumed[1], self.port.at_resume[1] = now, queue

    def leaves(self, now: int, queue: int, size: int = PACKET) -> Any:
        self.core.now, self.port.queues[1].bytes = now, queue
        return plain(ternary)(self.core, None, self.port, 1, size)

    @property
    def state(self) -> Any:
        return self.port.queues[1].state


STEPS = st.lists(
    st.tuples(
        st.integers(0, 30 * US),  # since the step before
        st.integers(0, 8) | st.sampled_from([1.9, 2.1, 2.9, 3.0, 3.9]),  # queue, packets
        st.sampled_from([False, False, False, True]),  # a RESUME comes just before
    ),
    max_size=40,
)


@given(STEPS, st.sampled_from([0, 2 * PACKET, 5 * PACKET]))
def test_states_and_marks_are_those_of_the_published_port(steps: list[Any], threshold: int) -> None:
    ours, theirs, now = Ours(threshold), Port(threshold), 1
    for wait, packets, resumes in steps:
        now, queue = now + wait, int(packets * PACKET)
        if resumes:
            ours.resume(now, queue)
            theirs.resume(now, queue)
        mark = ours.leaves(now, queue)
        assert mark == MARKS[theirs.leaves(now, queue, PACKET)]
        assert ours.state == STATES[theirs.state]


def undetermined(at_resume: int = 5 * PACKET) -> Ours:
    """A port that was resumed at 1 us, and has sent a packet within max(T_on)."""
    port = Ours()
    port.resume(US, at_resume)
    assert port.leaves(US + MAX_ON, at_resume) == UE  # the last moment
    assert port.state == UNDETERMINED
    return port


LATER = US + MAX_ON + 1


def checking(queue: int = 4 * PACKET) -> Ours:
    port = undetermined()
    assert port.leaves(LATER, queue) == NOTHING
    assert port.state == CHECKING
    return port


def test_a_port_that_was_never_paused_has_a_threshold() -> None:
    port = Ours()
    assert [port.leaves(0, q) for q in (2000, 2001, 0)] == [NOTHING, CE, NOTHING]
    assert port.state == UNCONGESTED


@pytest.mark.parametrize(("queue", "mark", "state"), [(5000, CE, CONGESTED), (9000, CE, CONGESTED)])
def test_undetermined_to_congested(queue: int, mark: Any, state: Any) -> None:
    port = undetermined()
    assert (port.leaves(LATER, queue), port.state) == (mark, state)


def test_undetermined_to_uncongested_by_the_threshold() -> None:
    """The queue has not shrunk, but there is none to speak of."""
    port = undetermined(at_resume=1000)
    assert (port.leaves(LATER, 1000), port.state) == (NOTHING, UNCONGESTED)


def test_checking_marks_nothing_until_the_queue_has_grown_for_a_period() -> None:
    port = checking(4000)
    assert (port.leaves(LATER + MAX_ON, 9000), port.state) == (NOTHING, CHECKING)  # not over yet
    assert (port.leaves(LATER + MAX_ON + 1, 4900), port.state) == (CE, CONGESTED)  # by 0.9 packets


def test_checking_goes_on_if_the_queue_has_not_grown() -> None:
    port = checking(4000)
    second = LATER + MAX_ON + 1
    assert (port.leaves(second, 4899), port.state) == (NOTHING, CHECKING)
    assert (port.leaves(second + MAX_ON, 5900), port.state) == (NOTHING, CHECKING)  # remembered anew: 4899 at second
    assert (port.leaves(second + MAX_ON + 1, 5798), port.state) == (NOTHING, CHECKING)
    assert (port.leaves(second + 2 * MAX_ON + 2, 6698), port.state) == (CE, CONGESTED)


def test_checking_ends_where_the_queue_does() -> None:
    between, at_check = checking(), checking()
    assert (between.leaves(LATER + 1, 2000), between.state) == (NOTHING, UNCONGESTED)
    assert (at_check.leaves(LATER + MAX_ON + 1, 2000), at_check.state) == (NOTHING, UNCONGESTED)
    still = checking()
    assert (still.leaves(LATER + 1, 2001), still.state) == (NOTHING, CHECKING)


def test_a_resume_makes_any_state_undetermined() -> None:
    congested = Ours()
    congested.leaves(US, 9000)
    for port in (congested, Ours(), checking(), undetermined()):
        port.resume(90 * US, 9000)
        assert (port.leaves(91 * US, 9000), port.state) == (UE, UNDETERMINED)


# -- marks on a path, and on ACKs ----------------------------------------------------------------------------


def memory(scheme: Any, ack_interval: int = 1) -> Any:
    """Memory of two flows over two links, with room for packets; nothing has happened."""
    marking = fc.RED("2KB", "2KB", max_on="24us")
    scenario = fc.parking_lot(3, rate="10Gbps", scheme=scheme, marking=marking, ack_interval=ack_interval)
    scenario = resolve(scenario)
    sim = prepare(scenario, times_of(scenario, "1ms", None, None), 0).sim
    return grown_packets(sim, 64)


def packet_at(sim: Any, hop: int, k: int = 0) -> Any:
    """Data of flow 0 that came to the port which is this far on its route."""
    packet = sim.packets[k]
    packet.kind, packet.flow, packet.wire, packet.payload, packet.queue = DATA, 0, PACKET, PACKET, 1
    packet.route, packet.hop, packet.ingress = sim.flows[0].route, hop, sim.routes[sim.flows[0].route, hop - 1]
    return packet


def leave_port(sim: Any, hop: int, says: str) -> None:
    """Stamp packet 0 at a port that says UE, CE or nothing."""
    packet = packet_at(sim, hop)
    i = sim.routes[packet.route, hop]
    sim.core[0].now = 100 * US
    sim.ports[i].queues[1].bytes = 9000 if says == "CE" else 0
    sim.ports[i].resumed[1] = 99 * US if says == "UE" else 0
    sim.ports[i].queues[1].state = UNCONGESTED
    plain(stamp)(sim, i, 0)


@pytest.mark.parametrize(
    ("path", "ce", "ue"),
    [
        (("CE", "UE"), 1, 0),
        (("UE", "CE"), 1, 0),
        (("UE", ""), 0, 1),
        (("", "UE"), 0, 1),
        (("CE", ""), 1, 0),
        (("UE", "UE"), 0, 1),
        (("", ""), 0, 0),
    ],
)
def test_ce_goes_before_ue_on_a_path(path: tuple[str, str], ce: int, ue: int) -> None:
    sim = memory(fc.ACC())
    for hop, says in enumerate(path, 1):
        leave_port(sim, hop, says)
    assert (sim.packets[0].marks, sim.packets[0].undetermined) == (ce, ue)


def arrive(sim: Any, marks: str, now: int = US) -> Any:
    """A marked packet of flow 0 reaches its receiver."""
    core = sim.core[0]
    core.now = now
    k = core.free
    core.free, core.spare = sim.packets[k].next, core.spare - 1
    packet = packet_at(sim, 2, k)
    packet.marks, packet.undetermined = marks == "CE", marks == "UE"
    plain(deliver)(sim, k)


def waiting_at_receiver(sim: Any) -> list[Any]:
    """Packets in the queues of its NIC, control frames first."""
    port, found = sim.ports[sim.routes[sim.flows[0].back, 0]], []
    for q in range(layout.QUEUES):
        k = port.queues[q].head
        while k >= 0:
            found.append(sim.packets[k])
            k = sim.packets[k].next
    return found


def test_an_ack_carries_the_counts_of_what_it_covers() -> None:
    sim = memory(fc.ACC(), ack_interval=4)
    for marks in ("CE", "UE", "", "UE", "CE"):
        arrive(sim, marks)
    (ack,) = waiting_at_receiver(sim)
    assert (ack.kind, ack.covers, ack.marks, ack.undetermined) == (ACK, 4, 1, 2)
    for marks in ("", "", "UE"):
        arrive(sim, marks)
    second = waiting_at_receiver(sim)[1]
    assert (second.covers, second.marks, second.undetermined) == (4, 1, 1)


@pytest.mark.parametrize(
    ("marks", "tcd", "told"),
    [
        (["UE"], True, (0, 1)),
        (["CE"], True, (1, 0)),
        (["UE"], False, None),
        (["CE"], False, (1, 0)),
        ([""], True, None),
    ],
)
def test_ue_makes_cnps_where_dcqcn_listens_to_it(marks: list[str], tcd: bool, told: Any) -> None:
    sim = memory(fc.DCQCN(tcd=tcd))
    for each in marks:
        arrive(sim, each)
    cnps = [(p.marks, p.undetermined) for p in waiting_at_receiver(sim) if p.kind == CNP]
    assert cnps == ([] if told is None else [told])


def test_the_cnp_of_an_interval_tells_the_worst_of_it() -> None:
    from fluidcc.engines.packet.host import interval_over

    sim = memory(fc.DCQCN(tcd=True, cnp_interval="50us"))
    for now, marks in enumerate(["UE", "CE", "UE", ""], 1):
        arrive(sim, marks, now * US)
    sim.core[0].now = 51 * US
    plain(interval_over)(sim, 0)
    cnps = [(p.marks, p.undetermined) for p in waiting_at_receiver(sim) if p.kind == CNP]
    assert cnps == [(0, 1), (1, 0)]
    arrive(sim, "UE", 60 * US)
    sim.core[0].now = 101 * US
    plain(interval_over)(sim, 0)
    assert [(p.marks, p.undetermined) for p in waiting_at_receiver(sim) if p.kind == CNP][2] == (0, 1)


# -- senders that heed UE ------------------------------------------------------------------------------------


def sender(module: Any, scheme: Any, rate: float) -> tuple[Any, Any]:
    """A flow's record and its scheme's, at a rate."""
    resolved = resolve(fc.incast(1, rate="10Gbps", scheme=scheme)).flows[0].scheme
    flow, me = records(layout.FLOW, 1)[0], records(module.STATE, 1)[0]
    flow.line_rate, flow.rate = 1.25e9, rate
    path: Any = SimpleNamespace(largest_base_rtt=4e-6, base_rtt=4e-6, empty_rtt=4e-6, line_rate=flow.line_rate)
    module.init_state(resolved.bind(path), flow, me)
    return flow, me


@pytest.mark.parametrize("gain", [0.0, 0.25, 0.5, 1.0])
def test_dcqcn_cuts_less_for_ue(gain: float) -> None:
    cuts = []
    for undetermined_only in (0, 1):
        flow, me = sender(dcqcn, fc.DCQCN(tcd=True, ue_gain=gain, initial_alpha=0.4), 1e9)
        core = records(layout.CORE, 1)
        sim = SimpleNamespace(core=core, calendar=new_calendar(core[0], 64, 0.0))
        plain(dcqcn.on_cnp)(
            sim, 0, flow, me, SimpleNamespace(marks=1 - undetermined_only, undetermined=undetermined_only)
        )
        cuts.append(1 - flow.rate / 1e9)
        assert me.target == 1e9
    assert cuts == pytest.approx([0.4 / 2, gain * 0.4 / 2], abs=1e-15)  # DCQCN (1)


@pytest.mark.parametrize(("marks", "ue", "share"), [(0, 0, 0.0), (0, 3, 0.5), (2, 0, 1.0), (1, 3, 1.0)])
def test_timely_with_tcd_does_not_cut_on_delay_alone(marks: int, ue: int, share: float) -> None:
    """Above T_high: rate * (1 - beta (1 - T_high / RTT)), beta as the marks have it."""
    flow, me = sender(timely, fc.TIMELY(tcd=True, ue_gain=0.5, beta=0.8, t_low="50us", t_high="500us"), 1e9)
    me.rtt, me.marks, me.undetermined = 900e3, marks, ue
    plain(timely.completed)(records(layout.CORE, 1)[0], flow, me, 1000e3)
    assert flow.rate == pytest.approx(1e9 * (1 - share * 0.8 * (1 - 500 / 1000)), rel=1e-14)


def test_timely_without_tcd_cuts_on_delay() -> None:
    flow, me = sender(timely, fc.TIMELY(beta=0.8, t_low="50us", t_high="500us"), 1e9)
    me.rtt = 900e3
    plain(timely.completed)(records(layout.CORE, 1)[0], flow, me, 1000e3)
    assert flow.rate == pytest.approx(0.6e9, rel=1e-14)


def test_timely_forgets_marks_at_each_completion() -> None:
    flow, me = sender(timely, fc.TIMELY(tcd=True, segment="16KB"), 1e9)
    core = records(layout.CORE, 1)[0]
    ack = SimpleNamespace(marks=1, undetermined=2, end=16_000, sent=0)
    core.now = 10 * US
    plain(timely.on_ack)(core, flow, me, ack)
    assert (me.marks, me.undetermined) == (0, 0)
    ack.end = 17_000
    plain(timely.on_ack)(core, flow, me, ack)
    assert (me.marks, me.undetermined) == (1, 2)  # within a segment they add up


def test_ue_in_a_run_comes_from_paused_ports_alone() -> None:
    """Incast behind a link: the link that flow control stops marks UE, and CE comes from the port beyond alone."""
    links = (
        fc.Link("40Gbps", name="up", source="a", target="b", marking=fc.RED("2KB", "2KB", max_on="24us")),
        fc.Link("40Gbps", name="out", source="b", target="sink", marking=fc.RED("2KB", "2KB", max_on="24us")),
    )
    flows = [fc.Flow((0, 1), fc.NoControl(), "40Gbps", source="far", target="sink")]
    flows += [fc.Flow((1,), fc.NoControl(), "40Gbps", source=f"near {i}", target="sink", size="500KB") for i in (1, 2)]
    scenario = fc.Scenario(links, tuple(flows), buffer="2MB", pfc=fc.PFC(xoff="30KB"))
    log = fc.simulate(scenario, "400us", engine="packet", log=True).dataset
    marked = log.event_what.values == "mark"
    assert set(log.event_port.values[marked]) == {"b -> sink"}
    assert (log.event_what.values == "pause").any()
