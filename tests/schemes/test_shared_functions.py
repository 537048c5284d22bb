"""Functions that two engines share, by scheme: what their agreement says nothing of."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from fluidcc.contract import registry
from fluidcc.contract.models import Scheme
from fluidcc.contract.registry import shared_functions

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(
    ("scheme", "other", "shared"),
    [
        ("dcqcn", "fluid", set()),  # equations, and events
        ("dcqcn", "hybrid", {"dcqcn.reaction_point.cut_rate", "dcqcn.reaction_point.recovered"}),
        ("timely", "fluid", set()),  # its equations are those of ECN or Delay
        ("dctcp", "fluid", {"dctcp.law.averaged", "dctcp.law.cut", "dctcp.law.increase"}),
        ("acc", "fluid", {"acc.law.raised", "acc.law.matched", "acc.law.beyond"}),
        ("swift", "fluid", {"swift.law.bounded", "swift.law.decrease", "swift.law.target_delay"}),
        ("hpcc", "fluid", {"hpcc.law.reacted", "hpcc.law.adds", "hpcc.law.link_utilisation"}),
        ("hpcc-multiq", "fluid", {"hpcc.law.class_utilisation"}),  # its rules are HPCC's
        ("nscc", "fluid", {"nscc.parameters.gains", "nscc.law.growth", "nscc.law.reduced"}),
    ],
)
def test_what_a_scheme_s_sides_call_is_found(scheme: str, other: str, shared: set[str]) -> None:
    """Also what is called by a function that is called; of two that share nothing, nothing."""
    found = set(shared_functions(registry.scheme(scheme), other, "packet"))
    assert found >= shared
    assert bool(found) == bool(shared)
    if scheme == "hpcc":
        assert "hpcc.law.averaged" not in found  # the fluid moves U by a derivative


def test_of_one_law_all_is_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES / "powertcp"))
    package = importlib.import_module("powertcp")
    found = shared_functions(Scheme(package.Parameters, package.PRESETS, "powertcp"), "fluid", "packet")
    assert {"law.on_step", "law.on_hop", "law.window"} <= set(found)
