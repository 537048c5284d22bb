"""Rules for one flow's numbers against laws over arrays in NumPy, at hundreds of random points; nothing is compiled.

The two share no line: one is a scheme's flow-level side, or where that follows from the law a replay in
`tests.oracles`. Tolerance, stated before measuring: rounding, 1e-12.
"""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest

import fluidcc as fc
from fluidcc.contract.fluid_of_law import fluid_of
from fluidcc.schemes.dctcp import fluid as dctcp_fluid
from fluidcc.schemes.hpcc import fluid as hpcc_fluid
from fluidcc.schemes.nscc import law as nscc_law
from fluidcc.schemes.swift import fluid as swift_fluid
from tests.engines.packet import plain as without_numba
from tests.oracles import dctcp_steps as dctcp
from tests.oracles import hpcc_steps as hpcc
from tests.oracles import nscc_steps as nscc
from tests.oracles import swift_steps as swift
from tests.schemes.plain_laws import SAME, SHAPE, Draws, bound, plain, progress, record

COUNTED, WIRE, LINE, DT, HOPS = 1000.0, 1062.0, 12.5e9, 1e-6, 2


def drawn(seed: int) -> tuple[Draws, dict[str, Any], Any]:
    """Draw what ACKs of a step tell each flow, and the same as the fluid takes it: counts tie with each other often."""
    draw = Draws(seed)
    newly = draw(0.0, COUNTED, (0.0, 9000.0))
    acked = np.where(draw(0, 1, 1) > 0, newly + draw(0.0, (0.0, 1e5)), 0.0)
    told = {
        "newly": np.minimum(newly, acked), "acked": acked, "sent": acked + draw(0.0, (0.0, 2e5)),
        "marking": draw(0.0, 1.0, (0.0, 1.0)), "rate": LINE * draw(1.0, (0.01, 1.0)),
        "rtt": 1e-5 * draw(0.9, 1.0, (1.0, 4.0)),
    }  # fmt: skip
    counts = {name: told[name] for name in ("sent", "acked", "newly", "rtt")}
    return draw, told, progress(**counts, packet=COUNTED, wire_packet=WIRE, line_rate=LINE, dt=DT)


def beside(draw: Draws, acked: Any) -> Any:
    """Numbers of bytes that are nothing, just acknowledged, yet to be, or long ago."""
    return np.where(draw(0, 1, 1) > 0, np.maximum(acked + draw(-1e4, 0.0, 1e4), 0.0), 0.0)


def after(rule: Any, parameters: Any, told: dict[str, Any], given: dict[str, Any], side: Any, *more: Any) -> Any:
    """Flows and states after the rule, as arrays of all points; ``given`` replaces what a first state has."""
    flows, states = [], []
    begin, step = (without_numba.plain(getattr(side, name)) for name in ("init_state", rule))
    for f in range(SHAPE[0]):
        for i in range(SHAPE[1]):
            at = {name: np.moveaxis(values, (-2, -1), (0, 1))[f, i] for name, values in (told | given).items()}
            flow = SimpleNamespace(
                initial_rate=LINE, line_rate=LINE, counted=COUNTED, packet=WIRE, hops=HOPS, window=0.0,
                **{name: at[name] for name in told},
            )  # fmt: skip
            me = record(side)
            begin(parameters, flow, me)
            flow.rate = at["rate"]
            vars(me).update({name: at[name] for name in given})
            step(flow, me, *more)
            flows.append(flow)
            states.append(me)
    return lambda name, of="state": np.reshape(
        [float(getattr(each, name)) for each in (states if of == "state" else flows)], SHAPE
    )


def same(found: Any, expected: Any) -> None:
    expected = np.broadcast_to(np.asarray(expected, float), SHAPE)
    np.testing.assert_allclose(found, expected, SAME, SAME * np.abs(expected).max())


def fluid_state(side: Any, parameters: Any, **values: Any) -> Any:
    """A fluid's first state with some values replaced."""
    return side.start(parameters, np.full(SHAPE, LINE), SHAPE, HOPS)._replace(**values)


@pytest.mark.parametrize("g", [0.0625, 0.9])
def test_dctcp_is_its_fluid(g: float) -> None:
    """Marks that are expected, cuts that hold for a window, alpha once a window, and windows that hold nothing back."""
    draw, told, acks = drawn(1)
    p, side = bound(fc.DCTCP(), g=g, increase=1.5), plain(dctcp_fluid)
    given = {
        "window": draw((COUNTED, 3000.0), (COUNTED, 2e5)), "alpha": draw(0.0, 1.0, (0.0, 1.0)),
        "answered": draw(0.0, (0.0, 1e5)), "marked": draw(0.0, (0.0, 5e4)), "expected": draw(0.0, 0.5, (0.0, 1.0)),
        "window_end": beside(draw, told["acked"]), "cut_end": beside(draw, told["acked"]),
    }  # fmt: skip
    state = side.jump(p, fluid_state(side, p, rate=told["rate"], **given), acks, told["marking"])
    found = after("on_step", p, told, given, dctcp)
    for name in given:
        same(found(name), getattr(state, name))
    same(found("rate", "flow"), state.rate)
    same(found("window", "flow"), state.window)


HPCCS = [
    {}, {"u_rate": "rx"}, {"u_queue": False}, {"reaction": "per-rtt"}, {"reaction": "per-ack"}, {"variant": "hpcc-sim"},
    {"variant": "hpcc-sim", "reaction": "per-ack"}, {"variant": "hpcc-sim", "reaction": "per-rtt"},
]  # fmt: skip


@pytest.mark.parametrize("given_options", HPCCS)
def test_hpcc_is_its_fluid(given_options: dict[str, Any]) -> None:
    """U of the most loaded port, and both windows by it: at once, once a round trip, and in stages."""
    draw, told, acks = drawn(2)
    p, side = bound(fc.HPCC(**given_options)), plain(hpcc_fluid)
    many = (HOPS, *SHAPE)
    told |= {
        "queue": draw(0.0, (0.0, 3e5), shape=many), "output": LINE * draw(0.0, 1.0, (0.0, 1.0), shape=many),
        "arriving": LINE * draw(0.0, (0.0, 2.0), shape=many), "capacity": LINE * draw(1.0, 4.0, shape=many),
    }  # fmt: skip
    given = {
        "window": draw((200.0, 3000.0), (COUNTED, 1.2e5)), "reference": draw((200.0, 3000.0), (COUNTED, 1.2e5)),
        "load": draw(0.0, 0.5, (0.5, 1.5)), "stage": draw(0.0, 4.0, 5.0, 6.0),
        "last_update": np.where(draw(0, 0, 1) > 0, -1.0, beside(draw, told["acked"])),
    }  # fmt: skip
    seen = SimpleNamespace(**{name: told[name] for name in ("queue", "output", "arriving", "capacity")})
    observed = side.feedback(p, SimpleNamespace(telemetry=seen))
    state = fluid_state(
        side, p, rate=told["rate"], window=given["window"], reference_window=given["reference"][None],
        utilisation=given["load"][None], stage=given["stage"][None], last_update=given["last_update"],
    )  # fmt: skip
    moves = side.derivative(p, state, observed)
    state = state._replace(utilisation=state.utilisation + DT * moves.utilisation)
    state = side.jump(p, state, acks, observed)
    found = after("on_step", p, told, given, hpcc, DT)
    same(found("load"), state.utilisation[0])
    same(found("reference"), state.reference_window[0])
    same(found("stage"), state.stage[0])
    same(found("last_update"), state.last_update)
    same(found("rate", "flow"), state.rate)
    same(found("window", "flow"), state.window)


@pytest.mark.parametrize("quick", [True, False])
def test_nscc_is_its_fluid(quick: bool) -> None:
    """Four cases by marks and delay, cuts at an expected mark, periods, and Quick Adapt with what it then ignores."""
    draw, told, acks = drawn(4)
    p = bound(fc.NSCC(quick_adapt=quick))
    target, clear, base = float(p.target_delay), float(p.clear_delay), 1e-5
    delay = draw(0.0, clear, target, (0.0, clear), (clear, target), (target, 4 * target), float(p.qa_threshold) * 1.01)
    told["rtt"] = base + delay
    acks = acks._replace(rtt=told["rtt"])
    same_names = (
        "window",
        "average_delay",
        "clear",
        "fast",
        "since_adjust",
        "since_cut",
        "expected",
        "achieved",
        "qa_left",
    )
    given = {
        "window": draw((COUNTED, 5000.0), (COUNTED, 2e5)), "average_delay": draw(0.0, target, (0.0, 3 * target)),
        "clear": draw(0.0, (0.0, 2e5)), "fast": draw(0.0, 1.0),
        "since_adjust": draw(0.0, float(p.adjust_period) - DT, (0.0, 2e-5)),
        "since_cut": draw(0.0, base - DT, (0.0, 3e-5)), "expected": draw(0.0, 0.5, (0.0, 1.0)),
        "achieved": draw(0.0, (0.0, 2e4), (0.0, 2e5)), "qa_left": draw(-1.0, 0.0, DT, (0.0, 2e-5)),
        "to_ignore": draw(0.0, COUNTED, (0.0, 1e4)), "base_rtt": draw(base, 2 * base, 0.5 * base),
    }  # fmt: skip
    state = nscc_law.on_step(p, nscc_law.start(p, LINE)._replace(**given), acks, told["marking"])
    found = after("on_step", p, told, given, nscc, DT)
    for name in (*same_names, "to_ignore", "base_rtt"):
        same(found(name), getattr(state, name))
    same(found("window", "flow"), nscc_law.window(p, state))


@pytest.mark.parametrize("scales", [False, True])
def test_swift_is_its_fluid(scales: bool) -> None:
    """Targets that grow for small windows, cuts that hold for a window, and pacing below a packet."""
    draw, told, acks = drawn(5)
    p, side = bound(fc.Swift(flow_scaling=scales)), plain(swift_fluid)
    told["rtt"] = float(p.base_target) * draw(0.5, 1.0, (0.9, 1.5), (1.0, 8.0))
    acks = acks._replace(rtt=told["rtt"])
    given = {"window": COUNTED * draw(0.001, (0.001, 2.0), (0.5, 200.0)), "cut_end": beside(draw, told["acked"])}
    state = side.jump(p, fluid_state(side, p, rate=told["rate"], **given), acks, np.zeros(SHAPE))
    found = after("on_step", p, told, given, swift)
    for name in given:
        same(found(name), getattr(state, name))
    same(found("rate", "flow"), state.rate)
    began = told["acked"] > 0  # the window is told with the first ACK
    same(np.where(began, found("window", "flow"), 0.0), np.where(began, state.window, 0.0))


@pytest.mark.parametrize(
    ("scheme", "side", "fluid"),
    [
        (fc.DCTCP(), dctcp, dctcp_fluid),
        (fc.HPCC(), hpcc, hpcc_fluid),
        (fc.HPCC(variant="hpcc-sim"), hpcc, hpcc_fluid),
        (fc.NSCC(), nscc, fluid_of(nscc_law, nscc_law.on_step)),
        (fc.Swift(), swift, swift_fluid),
    ],
)
@pytest.mark.parametrize("share", [1.0, 0.25, 1e-9])
def test_flows_begin_with_the_fluid_s_first_window(scheme: Any, side: Any, fluid: Any, share: float) -> None:
    """That of the initial rate, if it is less; what has no ACK yet is as in the fluid."""
    p, law = bound(scheme), plain(fluid)
    flow = SimpleNamespace(initial_rate=share * LINE, line_rate=LINE, counted=COUNTED, rate=share * LINE)
    me = record(side)
    without_numba.plain(side.init_state)(p, flow, me)
    with jax.enable_x64(True):
        state = law.start(p, np.full((1, 1), share * LINE), (1, 1), 1)
        window, rate = law.window(p, state), law.rate(state)
    for name, theirs in (("window", "window"), ("reference", "reference_window"), ("load", "utilisation")):
        if hasattr(me, name):
            assert getattr(me, name) == pytest.approx(float(np.ravel(getattr(state, theirs))[0]), rel=1e-12)
    for name in ("alpha", "last_update", "qa_left", "base_rtt", "stage", "cut_end"):
        if hasattr(me, name) and hasattr(state, name):
            assert getattr(me, name) == pytest.approx(float(np.ravel(getattr(state, name))[0]), rel=1e-12)
    assert flow.window == pytest.approx(float(np.ravel(window)[0]), rel=1e-12)
    assert flow.rate == pytest.approx(float(np.ravel(rate)[0]), rel=1e-12)


def test_hpcc_s_least_window_is_a_packet_or_its_least_rate() -> None:
    """In the paper a packet, or the first window if that is less; the simulator's is a rate's."""

    def begun(p: Any) -> Any:
        flow, me = SimpleNamespace(initial_rate=LINE, line_rate=LINE, counted=COUNTED), record(hpcc)
        without_numba.plain(hpcc.init_state)(p, flow, me)
        return me

    paper, simulator = bound(fc.HPCC()), bound(fc.HPCC(variant="hpcc-sim", min_rate="80Mbps"))
    assert begun(paper).least == COUNTED
    assert begun(paper).most == paper.initial_window
    assert begun(simulator).least == pytest.approx(1e7 * float(simulator.base_rtt))
    assert begun(dataclasses.replace(paper, initial_window=600.0)).least == 600.0
