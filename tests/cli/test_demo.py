"""The demo: what it takes from an audit, and how it tells numbers; by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from examples import demo
from fluidcc.operators.finding import Change


def found(*paths: str) -> Any:
    return SimpleNamespace(findings=[SimpleNamespace(apply=[Change("nic.txt", path, 0)]) for path in paths])


@pytest.mark.parametrize("path", ["rpg_byte_reset", "RPG_BYTE_RESET", "RPG_BYTE_RESET_P1"])
def test_the_byte_counter_goes_off_where_the_audit_says_so(path: str) -> None:
    """Whatever the file spells it, or the best is searched with a NIC that the page tells to change."""
    assert demo.registers(found("green_min_threshold", path)) == {"byte_counter": demo.NEVER}
    assert demo.registers(found("green_min_threshold")) == {}


@pytest.mark.parametrize(
    ("number", "says"),
    [
        ((137_207.0, 250.0, "bytes"), "137.2KB +- 0.2KB"),
        ((137_207.0, 1e-10, "bytes"), "137.2KB +- 0KB"),
        ((363_800.0, 12_000.0, "bytes"), "363.8KB +- 12KB"),
        ((12_330.0, 400.0, "1"), "12,330 +- 400"),
        ((0.9938, 0.003, "1"), "0.9938 +- 0.003"),
    ],
)
def test_a_number_and_its_error_have_one_unit(number: tuple[float, float, str], says: str) -> None:
    assert demo.told(*number) == says


def test_better_is_what_chance_does_not_explain() -> None:
    assert demo.verdict("utilisation", (0.90, 0.01), (0.97, 0.01)) == "better"
    assert demo.verdict("queue_bytes.p99", (90e3, 1e3), (97e3, 1e3)) == "worse"
    assert demo.verdict("jain", (0.95, 0.02), (0.97, 0.02)) == ""
