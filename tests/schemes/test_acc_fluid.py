"""ACC's fluid: Algorithm 1 by hand, closed forms of a line-rate start, cycles. Tolerances were set before measuring."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.contract.bind import bind
from fluidcc.contract.signals import Progress
from fluidcc.errors import InputError
from fluidcc.scenario.model import resolve
from fluidcc.scenario.round_trips import base_rtt_with_serialisation
from fluidcc.schemes.acc import fluid
from tests.schemes.plain_laws import plain

C = 12.5e9
T = 4e-6 + 2 * (1000 + 64) / C  # of an incast: two links there and back, each packet stored twice
DT = T / 100
ONE = np.ones((1, 1))
model = plain(fluid)


def of(flows: int, options: dict[str, Any] | None = None, rate: str = "100Gbps", **network: Any) -> Any:
    return fc.incast(flows, rate=rate, scheme=fc.ACC(**(options or {})), **network)


def bound(**options: Any) -> Any:
    scenario = resolve(of(2, options))
    return bind(scenario, scenario.flows[0])


def merged(flows: int, **options: Any) -> Any:
    """Equal flows as one class: one shape for all numbers."""
    return of(1, options, multiplicity=flows)


def run(scenario: Any, until: Any, **more: Any) -> fc.Trace:
    return fc.simulate(scenario, until, estimate_error=False, **more)


# -- Algorithm 1, by hand --------------------------------------------------------------------------------------


class Sender:
    """One flow, told of the bytes of each step by hand."""

    def __init__(self, rate: float = C, packet: float = 1.0, **options: Any) -> None:
        self.p, self.packet = bound(**options), packet
        self.state = model.start(self.p, rate * ONE, (1, 1), 1)
        self.sent = self.acked = 0.0

    def step(self, acks: float, ce: float = 0.0, ue: float = 0.0, dt: float = DT) -> None:
        """Send as it would, and observe ACKs at a rate, of which shares are marked."""
        self.sent += float(model.sending(self.p, self.state, np.asarray(dt))[0, 0]) * dt
        self.acked += acks * dt
        sent, acked, newly, packet, line = (x * ONE for x in (self.sent, self.acked, acks * dt, self.packet, C))
        progress = Progress(sent, acked, newly, packet, packet, line, ONE[None], T * ONE, dt)
        self.state = model.jump(self.p, self.state, progress, model.Feedback(ce * ONE, ue * ONE))

    def steps(self, count: int, acks: float, **marks: float) -> None:
        for _ in range(count):
            self.step(acks, **marks)

    def __getattr__(self, name: str) -> float:
        return float(np.asarray(getattr(self.state, name)).item())


def started(rate: float = C, **options: Any) -> Sender:
    """Line rate for T without ACKs, then the first."""
    sender = Sender(rate, **options)
    sender.steps(100, 0.0)
    return sender


@pytest.mark.parametrize(
    ("extension", "told", "halt"), [("at-once", 6.0, 6.0), ("printed", 6.0, 3.0), ("never", 3.0, 3.0)]
)
def test_a_halt_by_hand(extension: str, told: float, halt: float) -> None:
    """Sent C T, acknowledged C T / 4 in T: t_Halt = 3 T, and as much again for what T_i sent."""
    sender = started(extension=extension)
    sender.steps(98, C / 4, ce=1.0)
    assert sender.rate == pytest.approx(C)  # nothing is decided in the first period
    sender.steps(3, C / 4, ce=1.0)
    assert sender.rate == pytest.approx(C / 4, rel=1e-4)
    assert sender.halt_time == pytest.approx(told * T, rel=1e-3)
    assert sender.ack_rate == pytest.approx(C / 4, rel=1e-4)
    left, silent = sender.halt, 0
    assert left == pytest.approx(halt * T, abs=5 * DT)  # the last step's packets came too late, and delay the next
    before = sender.sent
    while sender.sent == before:
        sender.step(C / 4, ce=1.0)
        silent += 1
    assert silent * DT == pytest.approx(told * T, abs=6 * DT)
    assert sender.halted == 1  # until an ACK of what it sends now
    owed = sender.nxt_start - sender.acked
    while owed > 0:
        sender.step(C / 4)
        owed = sender.nxt_start - sender.acked
    assert sender.rate == pytest.approx(C / 4, rel=1e-4)
    sender.step(C / 4)
    assert sender.halted == 0
    assert sender.nxt_0 == sender.una_0 == sender.nxt_start
    sender.steps(100, C / 4)
    assert sender.rate == pytest.approx(C / 4 + 0.75 * C / 250, rel=1e-4)  # line 19


def test_off_only_matches_the_rate() -> None:
    sender = started(halt=False)
    sender.steps(101, C / 4, ce=1.0)
    assert sender.rate == pytest.approx(C / 4, rel=1e-4)
    assert (sender.halted, sender.halt_time) == (0, 0)
    assert sender.halt < 4 * DT  # what went out since the period's end, at the old rate


def test_increases_by_hand() -> None:
    """Lines 13 to 21: twice RI_Low, then RI_High; a mark resets the count, a share up to 90 % holds the rate."""
    line = C
    sender, expected = started(C / 2), C / 2
    for k in range(4):
        sender.steps(101 if k == 0 else 100, C / 2)
        expected += (line - expected) / line * (line / 250 if k < 2 else line / 25)
        assert sender.rate == pytest.approx(expected, rel=1e-5)
    sender.steps(11, C / 2, ce=1.0)
    sender.steps(89, C / 2)
    assert (sender.rate, sender.n_u) == (pytest.approx(expected, rel=1e-5), 0)
    sender.steps(100, C / 2)
    assert sender.rate == pytest.approx(expected + (line - expected) / 250, rel=1e-5)
    bold = started(C / 2, some_marks="increase")
    bold.steps(50, C / 2, ce=1.0)
    bold.steps(51, C / 2)
    assert bold.rate == pytest.approx(C / 2 * (1 + 1 / 250), rel=1e-5)


@pytest.mark.parametrize("p_thresh", [0.0, 1.0, 3.0])
def test_undetermined_flows_by_hand(p_thresh: float) -> None:
    """Lines 22 to 26: beyond P_thresh periods with UE in a row, each halves the rate; CE goes before UE."""
    sender = started(C / 2, p_thresh=p_thresh)
    for k in range(5):
        sender.steps(101 if k == 0 else 100, C / 2, ue=0.05)
        halvings = max(0, k + 1 - p_thresh)
        assert sender.rate == pytest.approx(C / 2 / 2**halvings, rel=1e-4)
        assert (sender.n_u, sender.n_v) == (0, k + 1)
    sender.steps(100, C / 2, ue=0.5, ce=0.5)
    assert sender.n_v == 0
    least = started(12e6, p_thresh=0.0, min_rate="80Mbps")
    least.steps(101, 12e6, ue=1.0)
    assert least.rate == pytest.approx(10e6)


@pytest.mark.parametrize("packet", [1000.0, 6000.0])
def test_acks_are_of_whole_packets(packet: float) -> None:
    """The clock starts with half a packet; a period without a whole one decides nothing, and R has the longer time.

    C/16 is 3258 bytes in T: packets of 6000 B are answered in every other period.
    """
    sender = started(packet=packet)
    half = packet / 2 / (C / 16 * DT)
    sender.steps(int(half), C / 16, ce=1.0)
    assert sender.clock == -1
    sender.step(C / 16, ce=1.0)
    assert sender.clock == pytest.approx((int(half) + 1 - half) * DT, rel=1e-3)
    periods = 1 if packet < 3258 else 2
    sender.steps(100 * periods - 2, C / 16, ce=1.0)
    assert (sender.rate, sender.silent) == (pytest.approx(C), periods - 1)
    sender.steps(2, C / 16, ce=1.0)
    assert sender.rate == pytest.approx(C / 16, rel=1e-3)
    waited = half * DT + T  # and T of silence before the first ACK
    sent = C * (waited + (periods - 1) * T)
    answered = packet / 2 + periods * C / 16 * T
    assert sender.halt_time == pytest.approx((sent - answered + C * T * 15 / 16) / (C / 16), rel=2e-3)


def test_without_acks_nothing_is_decided_and_ds_grows() -> None:
    sender = started(C / 2)
    sender.steps(101, C / 2)  # one increase
    rate = sender.rate
    sender.steps(100, 0.0)  # another, because of one step's ACKs
    more, una = sender.rate, sender.una_0
    assert more > rate
    sender.steps(100, 0.0)
    assert (sender.rate, sender.una_0) == (more, una)
    sender.steps(100, C / 8, ce=1.0)
    # Sent from the last decision but one on, up to this period: in two of them.
    assert sender.rate == pytest.approx(C / 8, rel=0.02)
    assert sender.halt_time == pytest.approx(((rate + more - C / 8) + (more - C / 8)) * T / (C / 8), rel=0.02)


# -- a line-rate start, against closed forms -------------------------------------------------------------------


@pytest.mark.parametrize("flows", [10, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 20))])
def test_line_rate_start(flows: int) -> None:
    """N flows send for L at C each: the queue peaks at (N-1) C L, halts last (N-1) L, all is gone after N L.

    L is 2 T, and half a packet of each flow until the first ACK. Steps of T/80: the queue begins to fill inside one,
    which is within 1/80 of R, and the decision comes up to one late, which is within 1/160 of the peak: 2 %.
    """
    L = 2 * T + flows * 1000 / 2 / C
    trace = run(merged(flows), 1.1 * (flows + 2) * L, sample_interval=T / 80)
    data = trace.dataset
    time, queue = data.time.values, data["queue"].values[:, 0]
    halt = data["halt_time"].values
    k = int(np.flatnonzero(halt[:, 0] > 0)[0])
    assert time[k] == pytest.approx(L, rel=0.02)
    assert halt[k] == pytest.approx([(flows - 1) * L], rel=0.02)
    assert flows * data["pacing_rate"].values[k, 0] == pytest.approx(C, rel=0.02)
    assert queue.max() == pytest.approx((flows - 1) * C * L, rel=0.02)
    # Silent until N L after the start; what then comes finds the queue all but empty: 1 % of its peak.
    silent = k + 2 + int(np.flatnonzero(data["rate"].values[k + 2 :, 0] > 0)[0])
    assert time[silent] == pytest.approx(flows * L, rel=0.02)
    way = time[int(np.flatnonzero(queue > 0)[0])]
    assert np.interp(flows * L + way, time, queue) < 0.02 * queue.max()


@pytest.mark.slow
def test_the_extension_is_half_of_the_halt() -> None:
    """Without it, what T_i sent is still in the queue when flows resume: (N-1) C T, and another halt drains it."""
    left = {}
    for extension in ("at-once", "printed", "never"):
        trace = run(merged(10, extension=extension), 45 * T, sample_interval=T / 20)
        data, time = trace.dataset, trace["time"].values
        halting = data["halting"].values[:, 0] > 0
        first = int(np.flatnonzero(halting)[0])
        resumed = first + int(np.flatnonzero(~halting[first:])[0])
        left[extension] = np.interp(time[resumed] + 0.3 * T, time, data["queue"].values[:, 0]) / (9 * C * T)
    assert left["at-once"] < 0.04
    assert left["printed"] < 0.04
    assert left["never"] == pytest.approx(1.0, abs=0.05)


@pytest.mark.slow
def test_halts_converge_with_the_step() -> None:
    """First order: events fall inside steps. Errors of halt and peak at T/40 and T/320 stay below a step's share."""
    L = 2 * T + 10 * 1000 / 2 / C
    for share in (40, 320):
        trace = run(merged(10), 3 * T, dt=T / share, sample_interval=T / 40)
        first = trace["halt_time"].values[:, 0]
        halt, peak = first[first > 0][0], float(trace["queue"].values.max())
        assert halt == pytest.approx(9 * L, rel=2 / share)
        assert peak == pytest.approx(9 * C * L, rel=2 / share)


@pytest.mark.slow
def test_late_and_slow_starts() -> None:
    """A flow that starts into a full queue observes late: its clock starts with its own first ACK."""
    scenario = of(3, start=["0s", "0s", "6us"], initial_rate=["100Gbps", "100Gbps", "10Gbps"])
    trace = run(scenario, "60us", sample_interval="20ns")
    time, halt = trace["time"].values, trace["halt_time"].values
    first = [time[int(np.flatnonzero(halt[:, i] > 0)[0])] for i in range(3)]
    assert first[:2] == pytest.approx([2 * T + 1000 / C] * 2, rel=0.02)
    waited = float(np.interp(6e-6 + 1.08e-6, time, trace["queue"].values[:, 0])) / C
    half = 1000 / 2 / (C / 21)  # of a packet, at a tenth of the others' rate
    assert first[2] == pytest.approx(6e-6 + T + waited + half + T, abs=0.05 * T)


# -- cycles ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_cycle_after_a_halt_is_algorithm_1() -> None:
    """From decision to decision: twice RI_Low and then RI_High (line 19), and C/N after every halt.

    ACKs come at C while the queue is not empty; the step in which it fills counts as if it had been served all along,
    for a fortieth of R at most, in a period that spans two.
    """
    trace = run(merged(10), "400us", sample_interval=T / 80)
    rate, halt = trace["pacing_rate"].values[:, 0], trace["halting"].values[:, 0]
    changes = np.flatnonzero(np.diff(rate) != 0) + 1
    raises = falls = 0
    n_u = 0
    for i in changes:
        before, after = rate[i - 1], rate[i]
        if after > before and not halt[i]:
            step = (C - before) / C * (C / 250 if n_u < 2 else C / 25)
            assert after - before == pytest.approx(step, rel=1e-6)
            n_u, raises = n_u + 1, raises + 1
        else:
            n_u, falls = 0, falls + 1
            assert after * 10 == pytest.approx(C, rel=0.025)
    assert raises > 10
    assert falls > 5


@pytest.mark.slow
def test_the_link_is_full_and_flows_are_equal() -> None:
    """Fig. 10: ten flows at 100 Gb/s; stated first: 0.98 in the second half. Peaks stay below a period's bytes."""
    trace = run(of(10), "1ms")
    assert trace.summary["utilisation"] > 0.98
    assert trace.summary["jain"] == pytest.approx(1.0, abs=1e-9)
    assert trace.summary["queue_bytes"]["max"] < C * T


@pytest.mark.slow
def test_unequal_flows_become_fair() -> None:
    """Proposition 2: of starts at 70 % and 10 % what is left after 10 ms is a tenth; in Jain's index 0.99."""
    trace = run(of(4, initial_rate=["70Gbps", "10Gbps", "10Gbps", "10Gbps"]), "10ms")
    rates = trace["pacing_rate"].values
    share = rates[-200:].mean(axis=0) / rates[-200:].mean(axis=0).sum()
    assert share == pytest.approx(np.full(4, 0.25), abs=(0.7 - 0.25) / 10)
    assert trace.summary["jain"] > 0.99


@pytest.mark.slow
def test_two_bottlenecks() -> None:
    """The long flow of a parking lot shares either link; both are full, and queues drain."""
    scenario = fc.parking_lot(3, rate="100Gbps", scheme=fc.ACC())
    trace = run(scenario, "2ms")
    assert all(row["utilisation"] > 0.97 for row in trace.summary["links"])
    assert min(trace.summary["rate_bytes_per_s"]) > 0.1 * C


# -- batches, bad input ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_sweep_is_its_points() -> None:
    """Increments, periods and numbers of flows, traced: as each alone, to 1e-6 with the same step."""

    def make(ri_low: Any, period: Any, flows: Any) -> Any:
        return of(2, {"ri_low": ri_low, "period": period}, multiplicity=flows)

    over = {"ri_low": ["100Mbps", "1Gbps"], "period": ["5us", "10us"], "flows": [1.0, 4.0]}
    found = fc.sweep(make, over, until="300us", dt="50ns", estimate_error=False).dataset
    assert (found.reason == 0).all()
    for at in ((0, 0, 0), (1, 0, 1), (0, 1, 1)):
        values = [over[name][i] for name, i in zip(over, at, strict=True)]
        alone = run(make(*values), "300us", dt="50ns").summary["queue_bytes"]["mean"]
        assert float(found["queue_bytes.mean"][at]) == pytest.approx(alone, rel=1e-6)


def test_period_is_at_least_the_base_rtt() -> None:
    with pytest.raises(InputError, match=r"period: .* is shorter than the base RTT"):
        run(of(2, {"period": "2us"}), "50us")
    scenario = resolve(of(2))
    p = bind(scenario, scenario.flows[0])
    assert p.period == pytest.approx(base_rtt_with_serialisation(scenario, scenario.flows[0]))
    assert p.period == pytest.approx(T)
    assert (p.ri_low, p.ri_high) == (C / 250, C / 25)


@pytest.mark.slow
def test_marks_are_those_of_packets_that_leave() -> None:
    """On arrival, a byte observes the queue before it waits; on departure of that after: earlier by the wait.

    Ten flows fill the queue at 9 C. Of the bytes that come before it has 20 KB, 22 KB, none is marked on arrival: 17 KB
    of the first period's 52 KB, less 5 before the clock starts; of those that leave before, 2 KB, none on departure,
    and the clock starts after these. Flows halt after the second period, or after the first.
    """
    first = {}
    for mark_on in ("arrival", "departure"):
        marking = fc.RED("20KB", "20KB", 1.0, mark_on=mark_on)
        scenario = resolve(merged(10))
        link = dataclasses.replace(scenario.links[0], marking=marking)
        trace = run(dataclasses.replace(scenario, links=(link,)), 4 * T, sample_interval=T / 80)
        first[mark_on] = trace["time"].values[int(np.flatnonzero(trace["halt_time"].values[:, 0] > 0)[0])]
    assert first["departure"] == pytest.approx(2 * T + 5000 / C, rel=0.02)
    assert first["arrival"] == pytest.approx(3 * T + 5000 / C, rel=0.02)
