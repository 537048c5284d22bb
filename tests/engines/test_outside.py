"""A scheme from outside that has DCQCN's own rules: its flows behave as DCQCN's, beside these, to the last bit."""

from __future__ import annotations

import dataclasses
import importlib
from pathlib import Path

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.contract import registry

RULES = {
    "packet": "STATE, OBSERVABLES, begin, init_state, observe, on_ack, on_cnp, on_sent, on_timer",
    "hybrid": "STATE, OBSERVABLES, ONLY, PACED_BY, begin, init_state, observe, on_bytes, on_cnp, on_timer",
}
PARAMETERS = """
from fluidcc.scenario.parameters import register
from fluidcc.schemes.dcqcn.parameters import DCQCN

@register()
class Twin(DCQCN):
    name = "twin"

Parameters = Twin
PRESETS = {}
"""


@pytest.mark.parametrize("engine", RULES)
def test_flows_of_a_twin_from_outside_are_dcqcn_s(engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Timers, CNPs and bytes reach the twin's rules by address; flows 1 and 3 of 4 run it, with states of their own."""
    folder = tmp_path / "twin"
    folder.mkdir()
    (folder / "__init__.py").write_text(PARAMETERS)
    for side, names in RULES.items():
        (folder / f"{side}.py").write_text(f"from fluidcc.schemes.dcqcn.{side} import {names}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(registry, "_outside", {})
    twin = fc.register(importlib.import_module("twin"))
    plain = fc.incast(4, rate="40Gbps", scheme=fc.DCQCN(byte_counter="150KB"), start=["0s", "10us", "20us", "30us"])
    scheme = twin.Twin(byte_counter="150KB")
    flows = [dataclasses.replace(flow, scheme=scheme) if i % 2 else flow for i, flow in enumerate(plain.flows)]
    mixed = dataclasses.replace(plain, flows=tuple(flows))
    own, other = (fc.simulate(each, "2ms", engine=engine, seed=1) for each in (plain, mixed))
    for name in ("queue", "rate", "alpha", "target_rate"):
        assert np.array_equal(own[name].values, other[name].values, equal_nan=True), name
    assert np.nanmin(own["alpha"].values) < 0.9  # CNPs and timers came
    assert own.summary["events"] == other.summary["events"]
