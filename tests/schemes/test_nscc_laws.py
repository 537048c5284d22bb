"""NSCC's fluid law against its packet rule, ACK by ACK, and with shares of marks against its text in plain Python.

Nothing is compiled. Packets' increases take effect with each ACK here, as in the fluid; to rounding.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.contract.fluid_of_law import fluid_of
from fluidcc.contract.signals import Progress, Signals
from fluidcc.schemes.nscc import law, packet
from tests.schemes.plain_laws import SHAPE, Draws, bound, check, check_compiled, plain, progress, record, replaced, rows

RULE = plain(packet)
PAYLOAD, US, PS = 1000.0, 1e-6, 1e-12
DT = 1 * US
NOW = 10**12  # ps
REFERENCE_BDP, REFERENCE_RTT = 150e3, 12 * US  # for which the specification gives its gains


def drawn(seed: int, *shares: Any, **switches: Any) -> tuple[Any, law.State, Progress, np.ndarray]:
    """Delays of none to extreme, averages around the target, ends of all periods before, at and after the step's."""
    draw = Draws(seed)
    wire = PAYLOAD * draw(1.0, 2.0)
    mtu = np.where(draw(0, 1) > 0, wire, PAYLOAD)
    base, target = US * draw(12.0, (5.0, 15.0)), US * draw(12.0, (5.0, 15.0))
    threshold = 4 * target * draw(0.5, 1.0)
    # Delays in picoseconds: packets measure them so.
    rtt = np.round((base + np.where(draw(0, 1, 1, 1) > 0, draw(0.0, -1 * US, (0.0, 60 * US)), target)) / PS) * PS
    p = bound(
        fc.NSCC(**switches),
        base_rtt=US * draw(12.0, (8.0, 15.0)),
        target_delay=target,
        qa_threshold=threshold,
        adjust_period=DT * draw(12.5, 3.5),
        averaging=DT * draw(12.0, 0.5),
        max_window=mtu * draw(150.0, 30.0),
        mtu=mtu,
        bdp=draw(150e3, 50e3, 600e3),
        gamma=draw(0.8, (0.1, 1.0)),
        max_md_jump=draw(0.5, 0.9),
        clear_delay=US * draw(1.0, 3.0, 30.0),
        qa_gate=draw(3.0, 1.0),
        eta=draw(0.15, 2.0),
        fast_increase=draw(0.25, 1.0),
        fair_increase=draw(5.0, 1.0),
        proportional_increase=draw(4.0, 1.0),
    )
    newly, acked = np.floor(draw(1, 1, 2, 3)), np.floor(draw((5, 30)))
    sent = acked + np.floor(draw(0, 3, (0, 40)))
    window = mtu * draw(1.0, 1.25, (1.0, 60.0), (1.0, 150.0))
    one = np.ones(SHAPE)
    state = law.State(
        rate=12.5e9 * one, window=window, base_rtt=base, queueing_delay=one,
        average_delay=target * draw(1.0, (0.2, 3.0)), clear=window * draw(0.0, (0.0, 1.5)), fast=draw(0.0, 1.0),
        since_adjust=DT * np.floor(draw((0, 14))),
        since_cut=DT * np.floor(draw((0, 30))), expected=draw(0.0, 0.25, 0.5), achieved=mtu * np.floor(draw((0, 30))),
        qa_left=DT * draw(0.0, 1.0, 2.0, 20.0), to_ignore=mtu * draw(0.0, 0.0, 1.0, 2.5, 20.0),
    )  # fmt: skip
    state = state._replace(qa_left=np.where(draw(0, 1, 1, 1) > 0, state.qa_left, -1.0))
    if not p.quick_adapt:
        state = state._replace(to_ignore=0.0 * one)
    now = progress(
        sent=sent * wire, acked=acked * wire, newly=newly * wire, packet=mtu, wire_packet=wire, rtt=rtt, dt=DT
    )
    return p, state, now, draw(*shares)


def by_packets(p: Any, s: law.State, now: Progress, marks: float) -> law.State:
    """An ACK of several packets, all of them marked or none."""

    def before(since: float) -> int:
        return NOW - round((since + now.dt) / PS)

    per, covers = PAYLOAD / now.wire_packet, now.newly / now.wire_packet
    core = SimpleNamespace(now=NOW, payload_window=now.packet == PAYLOAD, recovery=0)
    flow = SimpleNamespace(sent=now.sent * per, acked=now.acked * per, sent_wire=now.sent, acked_wire=now.acked)
    me, first = record(packet), s.qa_left < 0
    RULE.init_state(p, flow, me)
    me.adjust_bytes = 0.0
    me.W, me.least_rtt, me.average, me.clear, me.fast_mode = s.window, s.base_rtt, s.average_delay, s.clear, s.fast
    me.sampled = 0 if first else before(0.0)
    me.adjusted, me.decreased, me.achieved, me.to_ignore = (
        before(s.since_adjust),
        before(s.since_cut),
        s.achieved,
        s.to_ignore,
    )
    end = me.qa_end = 0 if first else NOW + round((s.qa_left - now.dt) / PS)
    ack = SimpleNamespace(covers=covers, marks=marks * covers, sent=NOW - round(now.rtt / PS))
    RULE.on_ack(core, flow, me, ack)
    left = me.least_rtt + me.target_delay
    if me.qa_end == end:
        left = -1.0 if first else max((me.qa_end - NOW) * PS, 0.0)
    else:
        assert me.qa_end == NOW + int(left * 1e12)
    return s._replace(
        window=me.W, base_rtt=me.least_rtt, queueing_delay=me.delay, average_delay=me.average,
        clear=me.clear, fast=me.fast_mode, achieved=me.achieved, qa_left=left,
        since_adjust=(NOW - me.adjusted) * PS, since_cut=(NOW - me.decreased) * PS,
        to_ignore=max(me.to_ignore - me.ignored, 0.0),
    )  # fmt: skip


@pytest.mark.parametrize("quick_adapt", [True, False])
def test_an_ack_is_that_of_packets(quick_adapt: bool) -> None:
    """The four cases, Quick Adapt, periods and averages.

    A step that is marked whole ends a row of bytes without marks, and one with delay ends fast increase, at once;
    packets wait with that for the next ACK without a mark, or for one without delay.
    """
    p, state, now, marks = drawn(1, 0.0, 1.0, quick_adapt=quick_adapt)
    state = state._replace(expected=0.0 * marks)
    found, want = law.on_step(p, state, now, marks), [by_packets(*row) for row in rows(p, state, now, marks)]
    skip = ("expected",) if quick_adapt else ("expected", "achieved", "qa_left")
    check(found, want, 1e-9, skip=(*skip, "clear", "fast"))
    as_packets = (marks == 0) & (found.queueing_delay < p.target_delay) | (marks == 1) & (
        found.queueing_delay >= p.target_delay
    )
    for name in ("clear", "fast"):
        expected = np.reshape([getattr(row, name) for row in want], SHAPE)
        np.testing.assert_allclose(getattr(found, name)[as_packets], expected[as_packets], rtol=1e-12)


def by_hand(p: Any, s: law.State, now: Progress, marks: float) -> law.State:
    """NSCC.OnACK of a step's ACKs: their unmarked share increases the window, an expected mark cuts it."""
    a, b = p.bdp / REFERENCE_BDP, p.target_delay / REFERENCE_RTT
    packets, first = now.newly / now.wire_packet, s.qa_left < 0
    newly, unmarked = packets * now.packet, (1 - marks) * packets * now.packet
    base, delay = s.base_rtt, 0.0
    if now.acked > 0:
        base = min(base, now.rtt)
        delay = now.rtt - base
    average = s.average_delay
    if packets > 0:
        average += (1.0 if first else min(now.dt / p.averaging, 1.0)) * (delay - average)
    largest = max(p.max_window * base / p.base_rtt, p.mtu)
    achieved, to_ignore = s.achieved + newly, max(s.to_ignore - newly, 0.0)
    ignores = marks > 0 and to_ignore > 0
    over = packets > 0 and s.qa_left <= now.dt and not (ignores and marks >= 1)
    window, clear, fast, expected, ends, cuts = s.window, s.clear, s.fast, 0.0, False, False
    if over and p.quick_adapt and not first and delay > p.qa_threshold and achieved < largest / 2**p.qa_gate:
        window, to_ignore = max(achieved, p.mtu), (now.sent - now.acked) / now.wire_packet * now.packet
    elif packets > 0 and not ignores:
        if delay >= p.target_delay:
            window += p.fair_increase * a * p.mtu * unmarked / s.window
            fast = 0.0
            if s.since_cut + now.dt > base:
                expected = s.expected + marks * packets
                cuts = expected >= 1 and average > p.target_delay
            if marks > 0:
                clear = 0.0
        elif delay >= p.clear_delay:
            clear = fast = 0.0
        else:
            clear += unmarked
            fast = float(fast > 0 or clear > s.window)
        if delay < p.target_delay and fast:
            window += p.fast_increase * a * unmarked
        elif delay < p.target_delay:
            gain = p.proportional_increase * a * b * p.mtu / p.target_delay
            window += gain * (p.target_delay - delay) * unmarked / s.window
        if cuts:
            factor = 1 - p.gamma * (average - p.target_delay) / average
            window, expected = max(window * max(factor, p.max_md_jump), p.mtu), 0.0
        ends = s.since_adjust + now.dt >= p.adjust_period
        window = min(window + (p.eta * a * p.mtu if ends else 0.0), largest)
    left = base + p.target_delay if over else -1.0 if first else max(s.qa_left - now.dt, 0.0)
    return law.State(
        s.rate, window, base, delay, average, clear, fast, 0.0 if ends else s.since_adjust + now.dt,
        0.0 if cuts else s.since_cut + now.dt, expected, 0.0 if over else achieved, left, to_ignore,
    )  # fmt: skip


@pytest.mark.parametrize("quick_adapt", [True, False])
def test_shares_of_marks_by_hand(quick_adapt: bool) -> None:
    """Also at the very ends of periods, of windows of a packet, and of steps without ACKs or before the first."""
    draw = Draws(7)
    p, state, now, marks = drawn(2, 0.0, 0.25, 0.5, 1.0, (0.0, 1.0), quick_adapt=quick_adapt)
    none, ever = draw(1, 1, 1, 0.25, 0), draw(1, 1, 1, 0)
    now = now._replace(newly=now.newly * none * ever, acked=now.acked * ever)
    tie, other = draw(0, 0, 1) > 0, draw(0, 0, 1) > 0
    delay = now.rtt - np.minimum(state.base_rtt, now.rtt)
    p = replaced(
        p,
        qa_threshold=np.where(other, delay, p.qa_threshold),
        max_window=p.max_window * draw(1.0, 1.0, 1.0, 0.005),
    )
    state = state._replace(
        since_adjust=np.where(tie, p.adjust_period - DT, state.since_adjust),
        achieved=state.achieved * draw(0.0, 1.0, 1.0),
        since_cut=np.where(tie, np.minimum(state.base_rtt, now.rtt) - DT, state.since_cut),
    )
    check(law.on_step(p, state, now, marks), [by_hand(*row) for row in rows(p, state, now, marks)], 1e-9)


def test_the_rest() -> None:
    one = np.ones((1, 1))
    p = bound(fc.NSCC(), base_rtt=8 * US, initial_window=5e4, mtu=1500.0, line_rate=12.5e9)
    for initial, window in ((12.5e9, 5e4), (2.5e9, 1e4), (1e6, 1500.0)):
        assert law.start(p, initial) == pytest.approx([12.5e9, window, 8 * US, *[0.0] * 8, -1.0, 0.0])
    state = drawn(1, 0.0)[1]
    assert law.rate(state) is state.rate
    assert law.window(p, state._replace(window=np.array([1e4, 2e3]))).tolist() == [9250.0, 1500.0]
    for first, most, packet_size, largest in ((1.0, 2.0, 0.5, 2.0), (3.0, 2.0, 0.5, 3.0), (1.0, 2.0, 4.0, 4.0)):
        assert law.largest_window(bound(fc.NSCC(), initial_window=first, max_window=most, mtu=packet_size)) == largest
    shown = {"window": state.window, "queueing_delay": state.queueing_delay, "average_delay": state.average_delay}
    fluid = fluid_of(law, law.on_step)
    assert fluid.observables(state) == shown
    assert list(shown) == list(fluid.OBSERVABLES)
    assert fluid.feedback(p, Signals(one, 2 * one, 3 * one)) is one
    assert not any(leaf.any() for leaf in fluid.derivative(p, state, one))
    assert fluid.time_scale(bound(fc.NSCC(), base_rtt=1e-5), 1.0) == pytest.approx(1e-6)


def test_numpy_s_law_is_the_compiled_one() -> None:
    made = fluid_of(law, law.on_step)
    check_compiled(made.jump, made, *drawn(2, 0.0, 1.0, (0.0, 1.0)), by_numpy=law.on_step)
