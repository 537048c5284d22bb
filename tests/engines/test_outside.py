"""A scheme from outside that has DCQCN's own rules: its flows behave as DCQCN's, beside these, to the last bit."""

from __future__ import annotations

import dataclasses
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.contract import registry
from fluidcc.engines.flow_level.run import flow_times
from fluidcc.workloads.fabrics import named_topology

RULES = {
    "packet": "STATE, OBSERVABLES, begin, init_state, observe, on_ack, on_cnp, on_sent, on_timer",
    "hybrid": "STATE, OBSERVABLES, ONLY, PACED_BY, begin, init_state, observe, on_bytes, on_cnp, on_timer",
}
PARAMETERS = """
from fluidcc.scenario.parameters import register
from fluidcc.schemes.dcqcn.parameters import DCQCN

@register()
class Twin(DCQCN):
    name = "NAME"

Parameters = Twin
PRESETS = {}
"""


OF_DCQCN = {side: f"from fluidcc.schemes.dcqcn.{side} import {names}\n" for side, names in RULES.items()}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Makes and registers a package with DCQCN's parameters and given sides; it is forgotten afterwards."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(registry, "_outside", {})

    def make(name: str, **sides: str) -> Any:
        folder = tmp_path / name
        folder.mkdir()
        (folder / "__init__.py").write_text(PARAMETERS.replace("NAME", name.replace("_", "-")))
        for side, text in sides.items():
            (folder / f"{side}.py").write_text(text)
        monkeypatch.delitem(sys.modules, name, raising=False)
        return fc.register(importlib.import_module(name)).Parameters

    return make


@pytest.mark.parametrize("engine", RULES)
def test_flows_of_a_twin_from_outside_are_dcqcn_s(engine: str, package: Callable[..., Any]) -> None:
    """Timers, CNPs and bytes reach the twin's rules by address; flows 1 and 3 of 4 run it, with states of their own."""
    plain = fc.incast(4, rate="40Gbps", scheme=fc.DCQCN(byte_counter="150KB"), start=["0s", "10us", "20us", "30us"])
    scheme = package(f"twin_in_{engine}", **OF_DCQCN)(byte_counter="150KB")
    flows = [dataclasses.replace(flow, scheme=scheme) if i % 2 else flow for i, flow in enumerate(plain.flows)]
    mixed = dataclasses.replace(plain, flows=tuple(flows))
    own, other = (fc.simulate(each, "2ms", engine=engine, seed=1) for each in (plain, mixed))
    for name in ("queue", "rate", "alpha", "target_rate"):
        assert np.array_equal(own[name].values, other[name].values, equal_nan=True), name
    assert np.nanmin(own["alpha"].values) < 0.9  # CNPs and timers came
    assert own.summary["events"] == other.summary["events"]


BASE = """
import numpy as np
from fluidcc.engines.common.jit import kernel
from fluidcc.schemes.dcqcn.packet import STATE, init_state, begin, on_cnp, on_timer, on_sent
OBSERVABLES = {name: ("1", name) for name in "abcdefg"}

@kernel
def observe(state, samples, row, f):
    for column in range(7):
        samples[row, f, 3 + column] = 10.0 * column + f
"""
ADDS = """
from fluidcc.engines.common.jit import kernel
from fluidcc.schemes.dcqcn.packet import init_state
from base_of import packet
BASE, STATE, OBSERVABLES = "base-of", packet.STATE, {}

@kernel
def on_ack(flow, state):
    state.ue_gain += 1.0
"""


def test_rules_that_are_added_to_another_s_from_outside_write_all_that_it_shows(package: Callable[..., Any]) -> None:
    """Seven observables, where a sample has room for four otherwise: memory behind it would be written."""
    base, adds = package("base_of", packet=BASE), package("adds_to", packet=ADDS)
    found, own = (
        fc.simulate(fc.incast(3, rate="40Gbps", scheme=scheme()), "20us", engine="packet", seed=1)
        for scheme in (adds, base)
    )
    assert [found[name].values[-1].tolist() for name in "ag"] == [[0.0, 1.0, 2.0], [60.0, 61.0, 62.0]]
    assert np.array_equal(own["rate"].values, found["rate"].values)


@pytest.mark.parametrize("engine", RULES)
def test_what_observe_may_not_write_is_refused(engine: str, package: Callable[..., Any]) -> None:
    """Compiled, it would write into the next flow's sample, or behind them all; nothing is compiled."""
    fewer = OF_DCQCN[engine].replace("OBSERVABLES, ", "") + 'OBSERVABLES = {"alpha": ("1", "alpha")}\n'
    scheme = package(f"shows_more_in_{engine}", **OF_DCQCN | {engine: fewer})
    first = {"packet": 3, "hybrid": 2}[engine]
    said = rf"{engine}\.py: observe writes column {first + 1} of a sample; it has columns {first} to {first}, one for"
    with pytest.raises(fc.InputError, match=said):
        fc.simulate(fc.incast(2, scheme=scheme()), "20us", engine=engine, seed=1)


@pytest.mark.parametrize("engine", RULES)
def test_a_state_in_which_words_do_not_fit_is_refused(engine: str, package: Callable[..., Any]) -> None:
    odd = OF_DCQCN[engine] + "import numpy as np\nSTATE = np.dtype([*STATE.descr, ('odd', np.int8)])\n"
    scheme = package(f"odd_in_{engine}", **OF_DCQCN | {engine: odd})
    with pytest.raises(fc.InputError, match=rf"{engine}\.py: STATE has \d+ bytes, no multiple of 8; make its last"):
        fc.simulate(fc.incast(2, scheme=scheme()), "20us", engine=engine, seed=1)


def test_the_flow_level_runs_a_hybrid_side_from_outside(package: Callable[..., Any]) -> None:
    """It has rules that the flow level does not follow, such as what a sample shows."""
    fabric, rows = named_topology("leaf-spine:2x1x2"), [(0, 2, 0.0, "1MB"), (1, 2, 0.0, "1MB")]
    own, other = (
        flow_times(fabric.scenario(rows, scheme=scheme), model="dynamics", seed=1).makespan
        for scheme in (fc.DCQCN(), package("of_flows", **OF_DCQCN)())
    )
    assert own == other
