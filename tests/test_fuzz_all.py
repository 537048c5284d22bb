"""A short run of `tests.fuzz`, and inputs that it once found: answers, or one line each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.builders.toml_file import from_toml, to_toml
from fluidcc.errors import InputError
from tests.fuzz import KINDS, LONGEST, fuzz

SECONDS = 90


@pytest.mark.parametrize("rounds", [range(6), pytest.param(range(6, 18), marks=pytest.mark.slow)], ids=["few", "more"])
def test_generated_inputs_are_answered(rounds: range) -> None:
    tried, wrong = fuzz(iter(range(rounds.start * len(KINDS), rounds.stop * len(KINDS))), SECONDS)
    assert wrong == []
    assert len(tried) == len(set(KINDS))


def test_it_notices_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(**_: object) -> None:
        raise ValueError("two\nlines")

    monkeypatch.setattr(fc, "incast", broken)
    assert fuzz(iter([KINDS.index(kind) for kind in KINDS if kind.__name__ == "an_object"][:1]), 10)[1]


@pytest.mark.parametrize(
    ("given_", "says"),
    [
        ({"preset": np.array([1.0, 2.0]), "scheme": "dcqcn"}, "^preset: "),
        ({"preset": [1], "scheme": "dcqcn"}, "^preset: "),
        ({"rate": 10**400}, "^(rate|link 0 rate): "),
        ({"scheme": np.zeros((2, 2))}, r"^scheme: [^\n]*$"),
    ],
    ids=["a preset of arrays", "a preset of lists", "a rate beyond floats", "a scheme of two lines"],
)
def test_what_it_found_in_builders(given_: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        fc.incast(2, **given_)


@pytest.mark.parametrize("option", ["engine", "method", "dtype"])
def test_what_it_found_in_runs(option: str) -> None:
    run: Any = fc.simulate
    with pytest.raises(InputError, match=rf"^{option}: expected text"):
        run(fc.incast(2), "100us", **{option: np.array(["a", "b"])})


@pytest.mark.parametrize("name", [np.array(2.0), fc.DCQCN(), True, "\udcff", None], ids=lambda it: type(it).__name__)
def test_what_it_found_in_names(name: Any) -> None:
    scenario = fc.incast(2)
    link = fc.Link("40Gbps", target=name)
    with pytest.raises(InputError, match=r"^link 0 target: .*is no text"):
        fc.simulate(fc.Scenario((link,), scenario.flows), "100us")


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("\ng = ", "\n" + "x" * 5000 + " = ", "unknown key"),
        ("path = [", "path = [" + "1," * 50_000 + "1,", "does not name links"),
        ('name = "bottleneck"', "name = [" + "1," * 50_000 + "1]", "is not text"),
        ("scheme = 0", 'scheme = "' + "y" * 100_000 + '"', "is none of the 1 written"),
        ("scheme = 0", "scheme = false", "is none of the 1 written"),
    ],
    ids=["key", "path", "name", "scheme", "truth"],
)
def test_what_it_found_in_scenario_files(before: str, after: str, says: str) -> None:
    """Lines as long as the file."""
    text = to_toml(fc.incast(2))
    assert before in text
    with pytest.raises(InputError, match=says) as said:
        from_toml(text.replace(before, after))
    assert len(str(said.value)) < LONGEST
