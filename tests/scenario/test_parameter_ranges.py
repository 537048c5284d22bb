"""Ranges of parameters: plain numbers that are refused, and traced ones that are masked by the same bounds."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest

from fluidcc.errors import InputError
from fluidcc.scenario import parameters
from fluidcc.scenario.parameters import Spec, convert, converted, fractional, out_of_range, parameter, register
from fluidcc.units import COUNT, RATE, RATIO, SIZE, Rate

CLOSED = Spec(RATIO, "", low=1.0, high=3.0)
OPEN = dataclasses.replace(CLOSED, open_low=True)
WHOLE = Spec(COUNT, "", low=0.0, integer=True)


@register()
class Some:
    """Parameters of every kind."""

    closed: Any = parameter(RATIO, "between", default=2.0, low=1.0, high=3.0)
    above: Any = parameter(RATIO, "above", default=2.0, low=1.0, open_low=True)
    below: Any = parameter(RATIO, "below", default=2.0, high=3.0)
    free: Any = parameter(RATIO, "any", default=2.0)
    whole: Any = parameter(COUNT, "whole", default=2.0, integer=True)
    rate: Any = parameter(RATE, "a rate", default=None, low=0, none_word="line")
    kind: str = parameter("choice", "which", default="a", choices=("a", "b"))


@pytest.mark.parametrize(
    ("value", "spec", "problem"),
    [
        (1.0, CLOSED, ""),
        (3.0, CLOSED, ""),
        (0.999, CLOSED, "is too small; it must be at least 1"),
        (3.001, CLOSED, "is too large; it must be at most 3"),
        (1.0, OPEN, "is too small; it must be above 1"),
        (1.001, OPEN, ""),
        (0.5, OPEN, "is too small; it must be above 1"),
        (3.0, OPEN, ""),
        (2.0, WHOLE, ""),
        (0.0, WHOLE, ""),
        (2.5, WHOLE, "is not a whole number"),
        (math.inf, WHOLE, "is not finite"),
        (-math.inf, CLOSED, "is not finite"),
        (math.inf, dataclasses.replace(OPEN, high=math.inf, unlimited=True), ""),
        (math.inf, dataclasses.replace(OPEN, unlimited=True), "is too large; it must be at most 3"),
        (1e300, Spec(RATIO, ""), ""),
    ],
)
def test_a_range_includes_its_ends_unless_it_is_open(value: float, spec: Spec, problem: str) -> None:
    assert parameters._range_problem(value, spec) == problem
    if problem:
        with pytest.raises(InputError, match=rf"^x: .*{problem}"):
            convert(value, spec, "x")
    else:
        assert convert(value, spec, "x") == value


@pytest.mark.parametrize(
    ("field", "value", "bad"),
    [
        ("closed", 1.0, False),
        ("closed", 3.0, False),
        ("closed", 0.999, True),
        ("closed", 3.001, True),
        ("closed", math.nan, True),
        ("above", 1.0, True),
        ("above", 1.001, False),
        ("above", 1e300, False),
        ("below", -1e300, False),
        ("below", 3.0, False),
        ("below", 3.001, True),
        ("free", -1e300, False),
        ("free", math.nan, True),
    ],
)
def test_what_is_traced_is_masked_by_the_same_bounds(field: str, value: float, bad: bool) -> None:
    found = dict(out_of_range(dataclasses.replace(Some(), **{field: value})))
    assert found[field] is bad
    assert [name for name, wrong in found.items() if wrong] == ([field] if bad else [])


def test_switches_and_what_is_not_given_have_no_range() -> None:
    assert [name for name, _ in out_of_range(Some())] == ["closed", "above", "below", "free", "whole"]
    assert [name for name, _ in out_of_range(Some(rate=Rate(1)))] == [
        "closed", "above", "below", "free", "whole", "rate",
    ]  # fmt: skip


@pytest.mark.parametrize(("value", "bad"), [(2.0, False), (2.5, True), (-1.0, False), (0.0, False)])
def test_whole_numbers_that_are_none_are_masked(value: float, bad: bool) -> None:
    assert list(fractional(Some(whole=value))) == [("whole", bad)]
    assert list(fractional(Some(whole=None))) == []


def test_conversions_are_known_by_name_type_and_value() -> None:
    known: dict[Any, Any] = {}
    first = converted(Some(rate="8Gbps", closed="150%"), "flow 0 ", known)
    assert first == {
        "closed": 1.5, "above": 2.0, "below": 2.0, "free": 2.0, "whole": 2.0, "rate": 1e9, "kind": "a",
    }  # fmt: skip
    assert known[("rate", str, "8Gbps")] == 1e9
    known[("rate", str, "8Gbps")] = 7.0  # so that one sees where it comes from
    assert converted(Some(rate="8Gbps"), "flow 1 ", known)["rate"] == 7.0
    assert converted(Some(rate="8Gbps"), "flow 1 ")["rate"] == 1e9
    assert converted(Some(whole=2), "", known)["whole"] == 2.0
    assert {key for key in known if key[0] == "whole"} == {("whole", float, 2.0), ("whole", int, 2)}


def test_what_cannot_be_a_key_is_converted_each_time() -> None:
    known: dict[Any, Any] = {}

    class Odd(float):
        """A number of another kind."""

    assert converted(Some(closed=Odd(1.5)), "", known)["closed"] == 1.5
    assert not any(key[0] == "closed" for key in known)


def test_no_more_than_so_many_conversions_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parameters, "_MOST_KNOWN", 7)
    known: dict[Any, Any] = {}
    converted(Some(), "", known)
    assert len(known) == 7
    assert converted(Some(free=2.5), "", known)["free"] == 2.5
    assert len(known) == 7
    known.pop(("kind", str, "a"))
    converted(Some(free=2.5), "", known)
    assert ("free", float, 2.5) in known
    assert len(known) == 7


def test_errors_name_the_place_and_what_to_write_for_none() -> None:
    with pytest.raises(InputError, match=r"^flow 3 closed: 5 is too large"):
        converted(Some(closed=5.0), "flow 3 ")
    with pytest.raises(InputError, match=r"^flow 3 closed: 5 is too large"):
        converted(Some(closed=5.0), "flow 3 ", {})
    with pytest.raises(InputError, match=r"^flow 3 rate: .*, or line$"):
        converted(Some(rate="soon"), "flow 3 ")
    assert converted(Some(rate="line"))["rate"] is None
    spec = Spec(SIZE, "")
    with pytest.raises(InputError):
        convert(None, spec, "x")  # without a word for it None is nothing


@pytest.mark.parametrize(
    ("value", "choices", "chosen"),
    [
        ("a", ("a", "b"), "a"),
        ("B", ("a", "b"), "b"),
        ("on", (False, True), True),
        ("No", (False, True), False),
        (True, (False, True), True),
        (0, (False, True), False),
        (2, (1, 2), 2),
        ("2", (1, 2), 2),
    ],
)
def test_choices_are_taken_in_several_spellings(value: Any, choices: tuple[Any, ...], chosen: Any) -> None:
    found = convert(value, Spec("choice", "", choices=choices), "x")
    assert found is chosen
    with pytest.raises(InputError, match="x: 'soon' is not a choice; write"):
        convert("soon", Spec("choice", "", choices=choices), "x")
