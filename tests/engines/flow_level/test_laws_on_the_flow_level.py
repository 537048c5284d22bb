"""Sides that the flow level makes of laws: the record, the first state, the signals, and what a law calls."""

from __future__ import annotations

from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.contract import registry
from fluidcc.contract.law import in_world
from fluidcc.contract.signals import Progress
from fluidcc.engines.common import scalars
from fluidcc.engines.flow_level.dispatch import side_of
from fluidcc.engines.flow_level.layout import records
from tests.engines.packet.plain import plain
from tests.schemes.plain_laws import SHAPE, Draws, bound

SIGNALS = {"sent": 2e5, "acked": 9e4, "newly": 3000.0, "counted": 1000.0, "packet": 1062.0, "line_rate": 12.5e9}
SIGNALS |= {"rtt": 17e-6, "marking": 0.25}
LAWS = {name: registry.scheme(name) for name in ("dctcp", "nscc")}


def begun(name: str, parameters: Any, share: float = 0.5) -> tuple[Any, Any]:
    """A flow of the line rate times a share, and its record."""
    side = side_of(LAWS[name])
    assert side is not None
    flow, state = SimpleNamespace(initial_rate=share * 12.5e9, **SIGNALS), records(side.STATE, 1)[0]
    side.init_state(parameters, flow, state)
    return flow, state


@pytest.mark.parametrize(("name", "options"), [("dctcp", {"g": 0.3}), ("nscc", {"quick_adapt": False})])
def test_a_record_has_every_number_of_the_parameters_and_the_first_state(name: str, options: dict[str, Any]) -> None:
    """A number of another, a switch taken for its default, or a state that stays 0."""
    p = bound({"dctcp": fc.DCTCP, "nscc": fc.NSCC}[name](**options))
    flow, state = begun(name, p)
    law = LAWS[name].law
    for key in state.parameters.dtype.names:
        want = getattr(p, key)
        assert getattr(state.parameters, key) == want or (want is None and np.isnan(getattr(state.parameters, key)))
    assert set(options) < set(state.parameters.dtype.names)
    assert not {"variant", "form"} & set(state.parameters.dtype.names)
    first = law.start(p, 0.5 * 12.5e9)
    assert [getattr(state.now, key) for key in law.State._fields] == [float(each) for each in first]
    assert (flow.rate, flow.window) == (first.rate, law.window(p, first))


@pytest.mark.parametrize("name", LAWS)
def test_a_step_gives_the_law_each_signal_in_its_place(name: str) -> None:
    """Each number of the flow differs from the others: two that are exchanged change the state."""
    p = bound({"dctcp": fc.DCTCP, "nscc": fc.NSCC}[name]())
    flow, state = begun(name, p)
    law, source = LAWS[name].law, side_of(LAWS[name]).rules["on_step"]
    called = {"step": law.on_step, "rate": law.rate, "window": law.window}
    source = getattr(source, "py_func", source)
    rule = FunctionType(source.__code__, {**source.__globals__, **called})
    now = law.State(*(float(getattr(state.now, key)) for key in law.State._fields))
    for dt in (2e-6, 3e-6):
        acks = Progress(2e5, 9e4, 3000.0, 1000.0, 1062.0, 12.5e9, 0.0, 17e-6, dt)
        now = law.on_step(p, now, acks, 0.25)
        rule(flow, state, dt)
        assert [getattr(state.now, key) for key in law.State._fields] == pytest.approx(
            [float(each) for each in now], rel=1e-15
        )
        assert (flow.rate, flow.window) == (pytest.approx(law.rate(now)), pytest.approx(law.window(p, now)))


def test_scalars_are_numpy_s_for_one_number() -> None:
    draw = Draws(7)
    a, b = draw(0.0, 1.0, (-2.0, 2.0)), draw(0.0, 1.0, (-2.0, 2.0))
    for i in np.ndindex(SHAPE):
        x, y = float(a[i]), float(b[i])
        assert plain(scalars.maximum)(x, y) == np.maximum(x, y)
        assert plain(scalars.minimum)(x, y) == np.minimum(x, y)
        assert plain(scalars.where)(x > y, x, y) == np.where(x > y, x, y)
        assert plain(scalars.logical_not)(x > y) == np.logical_not(x > y)


def test_a_rule_goes_to_another_world_with_what_it_calls() -> None:
    """An attribute named as a function of the module is none; the rule itself stays in its own world."""
    from fluidcc.schemes.swift import law

    other = SimpleNamespace(where=lambda *_: "where", minimum=lambda *_: "least", maximum=max)
    made: list[str] = []

    def noted(function: Any) -> Any:
        made.append(function.__name__)
        return function

    rule = in_world(law.on_step, other, noted)  # type: ignore[arg-type]
    called = {"after", "bounded", "decrease", "held", "reaction", "target_delay"}
    assert set(made) == called | {"on_step"}
    assert rule.__globals__["xp"] is rule.__globals__["after"].__globals__["xp"] is other
    assert law.on_step.__globals__["xp"] is law.after.__globals__["xp"] is np
    assert (rule.__doc__, rule.__module__) == (law.on_step.__doc__, law.on_step.__module__)
