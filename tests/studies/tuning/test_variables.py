"""Variables between bounds, on values that can be set: places, spacings and what is refused, by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from fluidcc.errors import InputError
from fluidcc.studies.tuning.space import Space, Variable, number, space_of
from fluidcc.studies.tuning.tune import _at_ends
from fluidcc.units import Rate

EVEN = Variable("x", 2.0, 10.0)
STEPPED = Variable("x", 2.0, 10.0, 2.0)
RATIOS = Variable("x", 1.0, 100.0)
OCTAVES = Variable("x", 1.0, 128.0, 1.0)  # seven of them


@pytest.mark.parametrize(
    ("low", "high", "logarithmic"),
    [(1.0, 8.0, False), (1.0, 8.1, True), (0.0, 100.0, False), (-1.0, 100.0, False), (2.0, 15.0, False), (2, 17, True)],
)
def test_ranges_beyond_a_factor_of_eight_above_0_are_searched_by_ratios(
    low: float, high: float, logarithmic: bool
) -> None:
    assert Variable("x", low, high).logarithmic is logarithmic


@pytest.mark.parametrize(
    ("variable", "share", "value"),
    [
        (EVEN, 0.25, 4.0),
        (EVEN, -1.0, 2.0),
        (EVEN, 2.0, 10.0),
        (RATIOS, 0.5, 10.0),
        (RATIOS, 0.25, math.sqrt(10.0)),
        (STEPPED, 0.3, 4.0),  # 4.4 of 2, 4, 6 ...
        (STEPPED, 0.4, 6.0),  # 5.2
        (Variable("x", 3.0, 9.0, 2.0), 0.0, 4.0),  # to the even, and within the bounds
        (Variable("x", 3.0, 9.0, 4.0), 1.0, 8.0),
        (Variable("x", 3.0, 9.0, 4.0), 1.5, 8.0),  # no further than the end
        (Variable("x", 3.5, 9.0, 4.0), 0.0, 4.0),
        (Variable("x", 5.0, 9.0, 4.0), 0.0, 5.0),
    ],
)
def test_a_share_is_a_value_that_can_be_set(variable: Variable, share: float, value: float) -> None:
    assert variable.at(share) == pytest.approx(value)


@pytest.mark.parametrize(
    ("variable", "value", "share"),
    [
        (EVEN, 4.0, 0.25),
        (EVEN, 2.0, 0.0),
        (EVEN, 10.0, 1.0),
        (EVEN, -5.0, 0.0),
        (EVEN, 50.0, 1.0),
        (RATIOS, 10.0, 0.5),
        (RATIOS, 0.01, 0.0),
        (RATIOS, 1e9, 1.0),
        (OCTAVES, 4.0, 2 / 7),
        (Variable("x", 3.0, 3.0), 3.0, 0.0),
    ],
)
def test_a_value_has_its_place_in_the_range(variable: Variable, value: float, share: float) -> None:
    assert variable.share(value) == pytest.approx(share)


@pytest.mark.parametrize(
    ("variable", "share", "spacing"),
    [
        (EVEN, 0.5, 0.0),  # any value is the next
        (STEPPED, 0.25, 0.25),
        (STEPPED, 0.75, 0.25),
        (STEPPED, 1.0, 0.25),  # there is none above
        (STEPPED, 0.0, 0.25),
        (STEPPED, 0.3, 0.3),  # 4 is taken there: 2 is three tenths below and 6 two above
        (STEPPED, 0.2, 0.3),
        (OCTAVES, 1 / 7, 1 / 7),  # from 2 down to 1, further than up to 3
        (OCTAVES, 6 / 7, (6 - math.log2(63)) / 7),
        (OCTAVES, 0.0, 1 / 7),
    ],
)
def test_the_spacing_is_the_way_to_the_further_neighbour(variable: Variable, share: float, spacing: float) -> None:
    assert variable.spacing(share) == pytest.approx(spacing)


def test_an_axis_goes_from_end_to_end_without_doubles() -> None:
    assert EVEN.axis(3) == [2.0, 6.0, 10.0]
    assert EVEN.axis(5) == [2.0, 4.0, 6.0, 8.0, 10.0]
    assert STEPPED.axis(100) == [2.0, 4.0, 6.0, 8.0, 10.0]
    assert RATIOS.axis(3) == pytest.approx([1.0, 10.0, 100.0])


def test_a_cube_has_a_place_for_every_variable() -> None:
    space = Space((STEPPED, Variable("y", 0.0, 1.0)))
    point = space.point([0.3, 0.7])
    assert point == {"x": 4.0, "y": 0.7}
    assert space.shares(point).tolist() == pytest.approx([0.25, 0.7])
    assert space.snapped(np.array([0.3, 0.7])).tolist() == [pytest.approx([0.25, 0.7])]
    assert space.snapped(np.array([[0.3, 0.7], [0.4, 1.0]])).tolist() == [
        pytest.approx([0.25, 0.7]),
        pytest.approx([0.5, 1.0]),
    ]
    assert space.spacing(np.array([0.75, 0.3])).tolist() == pytest.approx([0.25, 0.0])
    assert space.named((6.0, 0.5)) == {"x": 6.0, "y": 0.5}
    for wrong in ([0.5], [0.5, 0.5, 0.5]):
        with pytest.raises(ValueError, match="zip"):
            space.point(wrong)


def test_ends_are_both_ends_and_nothing_between() -> None:
    space = Space((EVEN, Variable("y", 0.0, 1.0)))
    assert space.ends({"x": 2.0, "y": 0.5}) == ["x"]
    assert space.ends({"x": 9.9, "y": 1.0}) == ["y"]
    assert space.ends({"x": 10.0, "y": 0.0}) == ["x", "y"]
    assert space.ends({"x": 5.0, "y": 0.5}) == []


def test_a_kmin_above_kmax_becomes_kmax_and_no_other_moves() -> None:
    space = space_of({"kmin": ("1KB", "5KB"), "kmax": ("1KB", "5KB")})
    assert space.point([1.0, 0.25]) == {"kmin": 2e3, "kmax": 2e3}
    assert space.point([0.25, 1.0]) == {"kmin": 2e3, "kmax": 5e3}
    assert space_of({"kmin": ("1KB", "5KB")}).point([1.0]) == {"kmin": 5e3}
    assert space_of({"kmax": ("1KB", "5KB")}).point([0.0]) == {"kmax": 1e3}


@pytest.mark.parametrize(
    ("name", "bounds", "ends"),
    [
        ("kmin", ("2KB", "10KB"), (2e3, 10e3)),
        ("kmin", ("1.4KB", "10.2KB"), (2e3, 10e3)),  # inwards
        ("kmin", ("1.9KB", "3KB"), (2e3, 3e3)),  # two values will do
        ("kmin", (0, "5KB"), (1e3, 5e3)),  # a device's least
        ("pmax", (0.015, "100%"), (0.02, 1.0)),
        ("g", (0.0, "1/2"), (1 / 1024, 0.5)),
        ("timer", ("55us", "1s"), (55e-6, 131071e-6)),  # and its largest
        ("rate_ai", ("10.5Mbps", "40Mbps"), (11e6 / 8, 40e6 / 8)),
    ],
)
def test_bounds_move_inwards_to_what_a_device_takes(name: str, bounds: Any, ends: tuple[float, float]) -> None:
    (found,) = space_of({name: bounds}).variables
    assert (found.low, found.high) == pytest.approx(ends)
    assert found.step is not None
    assert found.at(0.0) == pytest.approx(ends[0])
    assert found.at(1.0) == pytest.approx(ends[1])


def test_what_has_no_register_takes_any_value() -> None:
    (found,) = space_of({"eta": (0.4, 0.8)}).variables
    assert (found.low, found.high, found.step) == (0.4, 0.8, None)
    assert found.at(0.123) == pytest.approx(0.4 + 0.123 * 0.4)


@pytest.mark.parametrize(
    ("over", "says"),
    [
        (None, "nothing to tune"),
        ({}, "nothing to tune"),
        ([("g", (0, 1))], "nothing to tune"),
        ({"eta": "12"}, "expected two bounds"),  # two letters are no pair
        ({"eta": (0.1, 0.2, 0.3)}, "expected two bounds"),
        ({"eta": 0.5}, "expected two bounds"),
        ({"eta": (0.5, 0.5)}, "two that differ"),
        ({"eta": (0.6, 0.5)}, "smaller first"),
        ({"eta": (-math.inf, 0.5)}, "are no bounds"),
        ({"eta": (0.5, math.nan)}, "are no bounds"),
        ({"kmin": ("2.5KB", "3.4KB")}, "fewer than two values"),  # 3 KB alone
        ({"kmin": ("2.1KB", "2.9KB")}, "fewer than two values"),
        ({"kmin": ("-1KB", "5KB")}, "nothing that it can be"),
        ({"pmax": (0.5, 1.5)}, "nothing that it can be"),
        ({"g": (True, 1.0)}, "is no number"),
    ],
)
def test_bounds_that_are_none_are_refused(over: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        space_of(over)


def test_numbers_are_in_si_and_text_has_the_unit_of_its_name() -> None:
    assert number("5KB", "kmin") == 5e3
    assert number("10us", "timer") == pytest.approx(1e-5)
    assert number("40Mbps", "rate_ai") == pytest.approx(5e6)
    assert number("1/4", "something") == 0.25
    assert number(np.float64(2.5), "eta") == 2.5
    assert number(7, "eta") == 7.0
    assert type(number(7, "eta")) is float
    for wrong in (True, None, [1.0], 1j):
        with pytest.raises(InputError, match=r"start eta: .* is no number"):
            number(wrong, "eta", "start")


def test_rates_keep_their_mark_so_that_they_can_be_given_again() -> None:
    space = space_of({"rate_ai": ("10Mbps", "40Mbps"), "g": ("1/16", "1/2")})
    for point in (space.point([0.0, 0.0]), space.named([1.25e6, 1 / 16])):
        assert isinstance(point["rate_ai"], Rate)
        assert not isinstance(point["g"], Rate)
        assert point == pytest.approx({"rate_ai": 1.25e6, "g": 1 / 16})


def test_what_one_would_type_stays_in_the_range() -> None:
    """Two digits of 127 KB are 130 KB, beyond the end; ends stay as they are, and so does what no device takes."""
    (narrow,) = space_of({"kmin": ("123KB", "128KB")}).variables
    assert [narrow.rounded(value) for value in (123e3, 124e3, 127e3, 128e3)] == [123e3, 123e3, 128e3, 128e3]
    (wide,) = space_of({"kmin": ("1KB", "1MB")}).variables
    assert wide.rounded(127e3) == 130e3
    (free,) = space_of({"eta": (0.4, 0.8)}).variables
    assert free.rounded(0.4567) == 0.4567


def test_what_counts_is_tuned_in_whole_numbers() -> None:
    """Cells of a buffer, packets of a burst: a fraction makes no scenario."""
    (cell,) = space_of({"cell": (64.5, 2000.0)}).variables
    assert (cell.low, cell.high, cell.step) == (65.0, 2000.0, 1.0)
    assert all(value == round(value) for value in cell.axis(7))


def test_thresholds_are_whole_cells_where_switches_count_in_cells() -> None:
    """A threshold of 190 KB on cells of 254 B is 748 of them, and so is each end; what is no threshold stays."""
    space = space_of({"kmin": ("10KB", "1MB"), "kmax": ("10KB", "2MB"), "pmax": ("1%", "100%")})
    assert space.in_cells([None, None]) is space
    found = space.in_cells([None, 254.0, 144.0])
    kmin, kmax, pmax = found.variables
    assert (kmin.low, kmin.high, kmax.high) == (40 * 254, 3937 * 254, 7874 * 254)
    assert kmin.rounded(188_722.0) == 748 * 254  # two digits first
    assert kmin.rounded(kmin.low) == kmin.low
    assert pmax == space.variables[2]
    for share in np.linspace(0, 1, 30):
        point = found.point([share, share, share])
        assert point["kmin"] % 254 == point["kmax"] % 254 == 0


def test_ends_that_the_best_or_others_as_good_reach_are_said() -> None:
    """Kmax of a setting as good is the least of its range; what the best reaches itself is not said twice."""
    space = space_of({"kmin": ("10KB", "90KB"), "kmax": ("100KB", "400KB")})
    inside, edge = {"kmin": 20e3, "kmax": 110e3}, {"kmin": 10e3, "kmax": 100e3}
    assert _at_ends(space, inside, [inside]) == []
    (said,) = _at_ends(space, inside, [inside, {**inside, "kmax": 100e3}])
    assert said.startswith("kmax: settings as good lie at the end")
    (said,) = _at_ends(space, edge, [edge])
    assert said.startswith("kmin, kmax lie at the end")


def test_a_range_within_a_cell_is_refused() -> None:
    space = space_of({"kmin": ("1KB", "9KB")})
    with pytest.raises(InputError, match=r"over kmin: 1KB to 9KB holds .* a 8192B cell; widen it"):
        space.in_cells([8192.0])
