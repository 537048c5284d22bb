"""HPCC's fluid law against its packet rule, an ACK at a time, and against (2) to (7) and A.3 in plain Python.

Nothing is compiled; to rounding, but for the simulator's whole bits per second.
"""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest

import fluidcc as fc
from fluidcc.contract.signals import Progress, Signals, Telemetry
from fluidcc.engines.packet.layout import COLUMNS, QLEN, QLEN_CLASS, TS, TX_BYTES, TX_CLASS
from fluidcc.schemes.hpcc import fluid, law, packet
from fluidcc.schemes.hpcc.parameters import check_mechanisms
from tests.schemes.plain_laws import (
    SHAPE,
    Chance,
    Draws,
    bound,
    check,
    check_compiled,
    fill,
    filled,
    mechanisms,
    plain,
    progress,
    record,
    replaced,
    rows,
    tokens,
)

LAW = plain(fluid)
LINE, PAYLOAD, T, ETA = 12.5e9, 1000.0, 4e-6, 0.95
W_INIT = LINE * T
REGISTERS = 3
# The packet rule from a U that is given; what it records of telemetry is looked at elsewhere.
RULE = plain(
    packet,
    measure_inflight=lambda ports, me, ack, line_rate: me.U,
    same_path=lambda *_: True,
    record=lambda me, ack: None,
    deepest_queue=lambda me, ack: ack.deepest,
)


def test_u_follows_in_a_base_rtt_and_no_faster() -> None:
    """U moves towards what a step observes by the step's share of a base RTT, and all the way in a longer step."""
    p = bound(fc.HPCC(), base_rtt=T, line_rate=LINE)
    state = law.start(p, LINE)._replace(utilisation=0.5, last_update=0.0)
    for step, u in ((T / 4, 0.6), (T, 0.9), (3 * T, 0.9)):
        now = progress(sent=2e4, acked=1e4, newly=1e3, dt=step)
        assert law.on_step(p, state, now, 0.9).utilisation == pytest.approx(u)


def drawn(seed: int, **switches: Any) -> tuple[Any, fluid.State, Progress, fluid.Feedback]:
    """U below, at and above eta; stages below and at the last; ACKs before, of and after the present W^c."""
    draw = Draws(seed)
    links = switches.get("registers", "one") == "per-link"
    thresh = 5e4 * draw(0.5, 1.0)
    named = {name: switches.pop(name) for name in ("reaction", "registers", "variant", "form") if name in switches}
    on = mechanisms(draw, thresh, 1e3, **switches)
    p = bound(
        fc.HPCC(**named),
        **on,
        eta=draw(ETA, 0.9),
        max_stage=draw(5.0, 0.0, 2.0),
        base_rtt=T * np.ones(SHAPE),
        initial_window=W_INIT * np.ones(SHAPE),
        min_rate=draw(1e8, 1e9),
        alpha_fair=draw(math.inf, 1.0, 2.0, 4.0) if links else math.inf,
        w_ai=draw(0.0, 80.0, 3000.0),
    )
    p = replaced(p, rate_ai=p.w_ai / T)
    shape = (REGISTERS if links else 1, *SHAPE)
    wire, windows = draw(PAYLOAD, 2 * PAYLOAD), draw(0, 1)
    size = np.where(windows > 0, wire, PAYLOAD)
    U = draw(ETA, 0.9, (0.0, 1.0), (0.9, 4.0), shape=shape)
    reference = np.floor(draw(W_INIT, (2.5e3, W_INIT), (0.8 * W_INIT, 3 * W_INIT if links else W_INIT), shape=shape))
    own = np.ones(shape)
    if links:
        own[2] = draw(0.0, 1.0)
        reference[2], U[2] = np.where(own[2] > 0, (reference[2], U[2]), (reference[1], U[1]))
    stage = np.floor(draw(0, 1, 2, 4, 5, shape=shape))
    if links:
        stage[2] = np.where(own[2] > 0, stage[2], stage[1])
    acked, newly = np.floor(draw((5, 30))), np.floor(draw(1, 1, 2, 3))
    last = np.maximum(acked + draw(-2, -1, 0, 1), 0.0)
    sent = acked + np.floor(draw(2, (2, 40)))
    window = np.floor(draw(W_INIT, (2e3, W_INIT)))
    rate = window / T
    if p.variant == "hpcc-sim":
        rate = np.floor(draw(LINE, (1.1e8, LINE), 2e8))
        window, reference = np.maximum(rate * T, size), np.floor(reference / T) * T
    state = fluid.State(rate, window, reference, U, stage, last * wire, tokens(draw, p, acked * wire, wire))
    deepest = draw(0.0, 2.5e4, 5e4, (0.0, 2e5)) if p.vai else None
    now = progress(sent=sent * wire, acked=acked * wire, newly=newly * wire, packet=size, wire_packet=wire, own=own)
    return p, state, now, fluid.Feedback(0 * U, deepest)


def by_packets(p: Any, s: fluid.State, now: Progress, observed: fluid.Feedback) -> fluid.State:
    """The ACK through the packet rule."""
    per, sim, links = PAYLOAD / now.wire_packet, p.variant == "hpcc-sim", p.registers == "per-link"
    core = SimpleNamespace(payload_window=now.packet == PAYLOAD, drawn=0)
    flow = SimpleNamespace(
        rate=s.rate, line_rate=LINE, last_size=0, sent=now.sent * per, payload=PAYLOAD,
        overhead=now.wire_packet - PAYLOAD,
    )  # fmt: skip
    ack = SimpleNamespace(end=now.acked * per, covers=now.newly / now.wire_packet, deepest=observed.queue or 0.0)
    hops = round(sum(now.own))
    me = record(packet, U_link=[0.0] * 8, Wc_link=[0.0] * 8, W_link=[0.0] * 8, stage_link=[0] * 8)
    RULE.init_state(p, flow, me)
    RULE.begin(core, flow, me)
    fill(p, s.tokens, me, per)
    me.hops, me.U, me.stage, me.W, me.R = hops, s.utilisation[0], s.stage[0], s.window, s.rate
    me.last_update = s.last_update * per
    me.Wc, me.Rc = s.reference_window[0], s.reference_window[0] / T
    me.U_link, me.stage_link = list(s.utilisation), list(s.stage)
    me.Wc_link = [each / T if sim else each for each in s.reference_window]
    me.W_link = list(me.Wc_link)
    chance = Chance(p, 0.0, 0.0, 0.0)
    if s.tokens is not None:
        chance = Chance(p, s.tokens.drawn, s.reference_window[0] / W_INIT, ack.covers)
    RULE.on_ack(SimpleNamespace(core=[core], uniforms=chance, ports=None), 0, flow, me, ack)
    ignored = chance.asked and chance.sum < 1.0
    updated = me.last_update == flow.sent and not ignored
    references = me.Wc_link if links else [me.Rc if sim else me.Wc]
    references = [each * T if sim else each for each in references][: len(s.stage)]
    stages = [float(each) for each in (me.stage_link if links else [me.stage])][: len(s.stage)]
    if links and hops < REGISTERS:
        references[2], stages[2] = references[1], stages[1]
    window = max(me.R * T, now.packet) if sim else me.W
    t = None if s.tokens is None else filled(me, per, chance.left(updated))
    return fluid.State(flow.rate, window, references, s.utilisation, stages, me.last_update / per, t)


CASES = [
    {},
    {"reaction": "per-rtt"},
    {"variant": "hpcc-sim"},
    {"variant": "hpcc-sim", "reaction": "per-rtt"},
    {"registers": "per-link"},
    {"registers": "per-link", "reaction": "per-rtt"},
    {"registers": "per-link", "variant": "hpcc-sim"},
    {"vai": True},
    {"sampling": True},
    {"probabilistic": True},
    {"vai": True, "sampling": True, "probabilistic": True, "ignored_costs": "period"},
    {"vai": True, "sampling": True, "variant": "hpcc-sim", "token_rule": "excess"},
]


@pytest.mark.parametrize("switches", CASES, ids=lambda switches: " ".join(map(str, switches.values())) or "paper")
def test_an_ack_is_that_of_packets(switches: dict[str, Any]) -> None:
    """Lines 11 to 27, (7), the simulator's rates and all mechanisms: what one ACK does to every part of the state."""
    sim = switches.get("variant") == "hpcc-sim"
    p, state, now, observed = drawn(1, **switches)
    skip = () if p.sampling is not None or p.vai else ("acks",)
    found = LAW.jump(p, state, now, observed)
    check(found, [by_packets(*row) for row in rows(p, state, now, observed)], rel=1e-7 if sim else 1e-9, skip=skip)


@pytest.mark.parametrize("variant", ["paper", "hpcc-sim"])
def test_every_link_begins_full_and_at_line_rate(variant: str) -> None:
    """Compare with the simulator's `hopState[i].u = 1` and `Rc = m_max_rate`. Catches a U of 0 or 2 at the start."""
    p = bound(fc.HPCC(variant=variant), base_rtt=T, initial_window=LINE * T)
    flow = SimpleNamespace(rate=LINE, line_rate=LINE, payload=PAYLOAD, overhead=0)
    me = record(packet, U_link=[0.0] * 8, Wc_link=[0.0] * 8, W_link=[0.0] * 8, stage_link=[0] * 8)
    RULE.init_state(p, flow, me)
    RULE.begin(SimpleNamespace(payload_window=1), flow, me)
    assert (me.U, list(me.U_link)) == (1.0, [1.0] * 8)
    assert list(me.Wc_link) == list(me.W_link) == [LINE if variant == "hpcc-sim" else pytest.approx(LINE * T)] * 8


@pytest.mark.parametrize("max_stage", [0, 2, 5])
@pytest.mark.parametrize("U", [0.5, ETA * (1 - 1e-9), ETA, 2.0])
def test_per_ack_is_what_as_many_acks_do_to_packets(U: float, max_stage: int) -> None:
    """maxStage + 1 ACKs one by one, from any stage: below eta one of them multiplies, from eta on each does.

    W (eta/U)^k + n W_AI leaves out what becomes of an increase that is multiplied later: exact without W_AI, and to
    1e-7 where eta/U is 1 to 1e-9.
    """
    for w_ai in (0.0, 80.0) if abs(U - ETA) < 1e-6 else (0.0,):
        for stage in range(max_stage + 1):
            p = bound(
                fc.HPCC(reaction="per-ack"), base_rtt=T, initial_window=1e6, w_ai=w_ai, max_stage=float(max_stage)
            )
            flow = SimpleNamespace(rate=LINE, line_rate=LINE, last_size=0, sent=5, payload=PAYLOAD, overhead=0)
            me = record(packet, U_link=[0.0] * 8, Wc_link=[0.0] * 8, W_link=[0.0] * 8, stage_link=[0] * 8)
            RULE.init_state(p, flow, me)
            RULE.begin(SimpleNamespace(payload_window=1), flow, me)
            me.Wc, me.U, me.stage, me.hops = 2e5, U, stage, 1
            for _ in range(max_stage + 1):
                sim = SimpleNamespace(core=[SimpleNamespace(drawn=0)], uniforms=None, ports=None)
                RULE.on_ack(sim, 0, flow, me, SimpleNamespace(end=1, covers=1, deepest=0))
            one = np.ones((1, 1))
            state = fluid.State(LINE * one, 2e5 * one, 2e5 * one[None], U * one[None], 3 * one[None], 0 * one)
            wire = 1500.0
            now = progress(sent=9e3, acked=8e3, newly=wire * (max_stage + 1), wire_packet=wire)
            found = LAW.jump(p, state, now, fluid.Feedback(U * one[None], None))
            assert found.window[0, 0] == pytest.approx(me.W, rel=1e-7 if w_ai else 1e-12)
            assert found.reference_window[0, 0, 0] == found.window[0, 0]
            assert flow.rate == pytest.approx(min(me.W / T, LINE), rel=1e-12)  # line 27, at most the NIC's
            assert found.rate[0, 0] == pytest.approx(min(me.W / T, LINE), rel=1e-7)
            assert (found.last_update[0, 0], found.stage[0, 0, 0]) == (9e3, 3.0)
            waits = LAW.jump(p, state._replace(last_update=-one), now, fluid.Feedback(U * one[None], None))
            assert (waits.window[0, 0], waits.reference_window[0, 0, 0], waits.last_update[0, 0]) == (2e5, 2e5, 9e3)


@pytest.mark.parametrize("switches", [{}, {"form": "rate"}, {"variant": "hpcc-sim"}, {"sampling": True, "vai": True}])
def test_the_first_ack_only_records(switches: dict[str, Any]) -> None:
    """Before it nothing happens at all."""
    p, state, now, observed = drawn(2, **switches)
    waiting = state._replace(last_update=-np.ones(SHAPE))
    if p.variant == "paper":
        waiting = waiting._replace(rate=state.window / T)
    for acked, last in ((0.0 * now.acked, waiting.last_update), (now.acked, now.sent)):
        found = LAW.jump(p, waiting, now._replace(acked=acked), observed)
        for one, other in zip(found[:6], waiting._replace(last_update=last)[:6], strict=True):
            assert one == pytest.approx(np.broadcast_to(other, one.shape), rel=1e-12)


def test_the_rate_form() -> None:
    """T dR/dt = R eta/u - R + a of each register as W = R T; W is their least, without a least window."""
    p, state, now, _ = drawn(3, form="rate", registers="per-link")
    p = replaced(p, alpha_fair=math.inf)
    draw = Draws(4)
    u = draw(0.0, 1e-3, 0.95, (0.1, 3.0), shape=(REGISTERS, *SHAPE))
    state = state._replace(last_update=draw(-1.0, 0.0, 5.0))
    moved = LAW.derivative(p, state, fluid.Feedback(u, None))
    W = state.reference_window
    a = p.w_ai / T
    since = state.last_update >= 0
    want = np.where(since, (W / T * p.eta / np.maximum(u, 1e-3) - W / T + a), 0.0)
    np.testing.assert_allclose(moved.reference_window, want, rtol=1e-9, atol=1e-3)
    np.testing.assert_allclose(moved.utilisation, np.where(since, (u - state.utilisation) / T, 0.0))
    for leaf in (moved.rate, moved.window, moved.stage, moved.last_update):
        assert not leaf.any()
    found = LAW.jump(p, state, now, fluid.Feedback(u, None))
    jumped = np.minimum(W.min(axis=0), W_INIT)
    kept = np.where(since, jumped, state.window)
    np.testing.assert_allclose(found.window, kept, rtol=1e-12)
    np.testing.assert_allclose(found.rate, np.minimum(kept / T, LINE), rtol=1e-12)
    np.testing.assert_allclose(found.reference_window, np.where(since, np.minimum(W, W_INIT), W), rtol=1e-12)
    assert LAW.window(p, state) == math.inf


@pytest.mark.parametrize("tokens", [False, True])
def test_u_follows_the_telemetry(tokens: bool) -> None:
    """Line 9 for many ACKs; nothing else moves between jumps."""
    p, state, _, _ = drawn(5, vai=tokens)
    state = state._replace(last_update=Draws(5)(-1.0, 0.0, 3.0))
    moved = LAW.derivative(p, state, fluid.Feedback(2.0 * state.utilisation + 1.0, None))
    want = np.where(state.last_update >= 0, (state.utilisation + 1.0) / T, 0.0)
    np.testing.assert_allclose(moved.utilisation, want)
    assert not any(leaf.any() for leaf in jax.tree.leaves(moved._replace(utilisation=0 * want)))
    assert (moved.tokens is None) == (not tokens)


def test_a_step_without_acks_notes_no_congestion() -> None:
    """Variable AI keeps the most congestion of its round trip, and whether there was some."""
    p, state, now, observed = drawn(6, vai=True)
    t = state.tokens
    assert t is not None
    found = LAW.jump(p, state, now._replace(newly=0.0 * now.newly), observed).tokens
    ends = (now.acked > t.trip_end) & (t.trip_end > 0)
    assert (found.measured == np.where(ends, 0.0, t.measured)).all()
    assert (found.congested == np.where(ends, 0.0, t.congested)).all()
    assert (found.trip_end == np.where(now.acked > t.trip_end, now.sent, t.trip_end)).all()


# -- telemetry ------------------------------------------------------------------------------------------------


def reports(seed: int, p: Any) -> Telemetry:
    """Idle and full links, own rates below, at and above the guaranteed one, backlogs around the least."""
    draw, shape = Draws(seed), (REGISTERS, *SHAPE)
    capacity = draw(2.5e9, LINE, shape=shape)
    output = capacity * draw(1.0, 0.5, (0.0, 1.0), shape=shape)
    share = draw(0.25, 0.5, shape=SHAPE)
    own = np.where(draw(0, 1, shape=shape) > 0, share * capacity, output * draw(1.0, (0.01, 1.0), shape=shape))
    backlog = draw(0.0, 1500.0, (0.0, 1e5), shape=shape)
    queue = backlog + draw(0.0, (0.0, 1e5), shape=shape)
    return Telemetry(queue, output, output * draw(1.0, 2.0, shape=shape), capacity, backlog, own, share)


def measured(p: Any, seen: Telemetry, share: float) -> tuple[list[float], float]:
    """u of each link alone by lines 1 to 7, and the deepest queue that the packets' Variable AI looks at."""
    rule, found = plain(packet), []
    me = record(packet, U_link=[1.0] * 8, L=np.zeros((8, COLUMNS)))
    rule.init_state(p, SimpleNamespace(), me)
    me.share = share
    ack = SimpleNamespace(telemetry=np.zeros((8, COLUMNS), object), hops=1)
    deepest = 0.0
    for k in range(REGISTERS):
        # The rates over T, which line 9 then weighs alone.
        rate = seen.output[k] if p.u_rate == "tx" else seen.arriving[k]
        for column, value in ((TS, T * 1e12), (TX_BYTES, rate * T), (TX_CLASS, seen.class_output[k] * T),
                              (QLEN, seen.queue[k]), (QLEN_CLASS, seen.class_queue[k])):  # fmt: skip
            ack.telemetry[0, column] = value
        me.L[0, QLEN], me.L[0, QLEN_CLASS] = seen.queue[k], seen.class_queue[k]
        me.U = 77.0
        found.append(rule.measure_inflight([SimpleNamespace(rate=seen.capacity[k])], me, ack, LINE))
        deepest = max(deepest, rule.deepest_queue(me, ack))
    return found, deepest


@pytest.mark.parametrize(
    "switches",
    [
        {"registers": "per-link", "vai": True},
        {"u_rate": "rx"},
        {"u_queue": False, "registers": "per-link"},
        {"multiq": "class", "vai": True},
        {"multiq": "slides", "registers": "per-link"},
        {"multiq": "spare", "registers": "per-link"},
    ],
    ids=lambda switches: " ".join(map(str, switches.values())),
)
def test_u_is_that_of_packets(switches: dict[str, Any]) -> None:
    """(2) and (3), MultiQ's three ways, and the deepest queue: of each link, or the largest."""
    p = bound(fc.HPCC(), base_rtt=T, **switches)
    seen = reports(1, p)
    one = np.ones(SHAPE)
    found = LAW.feedback(p, Signals(one, one, one, telemetry=seen))
    expected = []
    for each, _ in rows(seen, 0.0 * one):
        u, deepest = measured(p, each, each.share)
        expected.append(fluid.Feedback(u if p.registers == "per-link" else [max(u)], deepest if p.vai else None))
    check(found, expected, rel=1e-9)


def test_the_rest() -> None:
    one = np.ones((1, 1))
    for initial, window in ((LINE, W_INIT), (LINE / 2, W_INIT / 2)):
        for registers, count in (("one", 1), ("per-link", 4)):
            p = bound(fc.HPCC(registers=registers), base_rtt=T, initial_window=W_INIT)
            begun = LAW.start(p, initial * one, (2, 3), 4)
            want = [initial, window, window, 1.0, 0.0, -1.0]
            shapes = [(2, 3)] * 2 + [(count, 2, 3)] * 3 + [(2, 3)]
            assert [leaf.shape for leaf in begun[:6]] == shapes
            assert [leaf.ravel()[0] for leaf in begun[:6]] == pytest.approx(want)
            assert begun.tokens is None
    begun = LAW.start(bound(fc.HPCC(vai=True)), LINE * one, (2, 3), 4)
    assert [leaf[0, 0] for leaf in begun.tokens] == [0.0] * 7 + [1.0]
    p, state, _, _ = drawn(2, registers="per-link")
    assert LAW.rate(state) is state.rate
    assert LAW.window(p, state) is state.window
    assert LAW.largest_window(p) is p.initial_window
    shown = LAW.observables(state)
    assert list(shown) == ["window", "reference_window", "utilisation_estimate"]
    assert shown["window"] is state.window
    assert (shown["reference_window"] == state.reference_window.min(axis=0)).all()
    assert (shown["utilisation_estimate"] == state.utilisation.max(axis=0)).all()
    t = drawn(2, vai=True)[1]
    assert list(LAW.observables(t)) == list(fluid.OBSERVABLES)
    assert LAW.time_scale(bound(fc.HPCC(), base_rtt=1e-5), LINE) == pytest.approx(1e-6)


def test_numpy_s_law_is_the_compiled_one() -> None:
    p, state, now, observed = drawn(2, vai=True, sampling=True, probabilistic=True)
    check_compiled(fluid.jump, fluid, p, state, now, observed)
    p, state, now, observed = drawn(2, registers="per-link")
    check_compiled(fluid.jump, fluid, p, state, now, observed)


def test_only_multiq_is_another_hpcc_with_one_window() -> None:
    """Notice Variable AI refused for HPCC++'s MultiQ, whose sender has one reference window, or taken per ACK."""
    check_mechanisms(fc.HPCCMultiQ(vai=True))
    with pytest.raises(fc.InputError, match="reaction=combined"):
        check_mechanisms(fc.HPCC(vai=True, reaction="per-ack"))
