"""Unknowns of a fit as coordinates from 0 to 1."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fluidcc.errors import InputError
from fluidcc.studies.fitting.model import space_of
from fluidcc.units import Rate


def test_bounds_above_0_are_searched_in_their_logarithm_and_others_evenly() -> None:
    space = space_of({"timer": ("10us", "1ms"), "kmin": (0, "8KB"), "rate_ai": ("10Mbps", "40Mbps")})
    assert space.names == ("timer", "kmin", "rate_ai")
    assert space.logarithmic.tolist() == [True, False, True]
    values = space.values(np.array([0.5, 0.25, 0.5]))
    assert values == pytest.approx({"timer": 1e-4, "kmin": 2e3, "rate_ai": 20e6 / 8})
    assert isinstance(values["rate_ai"], Rate)
    assert space.values(np.zeros(3)) == pytest.approx({"timer": 1e-5, "kmin": 0.0, "rate_ai": 10e6 / 8})
    assert space.values(np.ones(3)) == pytest.approx({"timer": 1e-3, "kmin": 8e3, "rate_ai": 40e6 / 8})
    assert space.shown(np.array([0.5, 0.25, 0.5])) == "timer = 100us, kmin = 2KB, rate_ai = 20Mbps"


def test_what_counts_takes_whole_values() -> None:
    """Bursts of 5.66 packets would be refused, and leave no run."""
    space = space_of({"burst": (2, 16), "g": (0.5, 1)})
    assert space.values(np.array([0.5, 0.5])) == pytest.approx({"burst": 6.0, "g": 0.5**0.5})
    assert [space.values(np.array([share, 0.0]))["burst"] for share in (0.0, 0.1, 0.2, 1.0)] == [2.0, 2.0, 3.0, 16.0]


@pytest.mark.parametrize(
    ("over", "says"),
    [
        ({}, "expected a range by name"),
        ({"timer": "20us"}, "over timer: expected two bounds"),
        ({"timer": ("1us", "2us", "3us")}, "over timer: expected two bounds"),
        ({"timer": ("2us", "2us")}, "is no range; give the lower bound first"),
        ({"timer": ("2us", "1us")}, "is no range"),
        ({"timer": ("2us", float("inf"))}, "is no range"),
        (
            {f"{name}": (1, 2) for name in ("kmin", "kmax", "pmax", "g", "timer", "cnp_interval", "byte_counter")},
            "7 unkn",
        ),
    ],
)
def test_what_is_no_range_is_refused(over: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        space_of(over)


@pytest.mark.parametrize("pair", [(1.5, 1.7), (0, 16), (3, 3.9)])
def test_a_range_of_what_counts_holds_two_whole_numbers(pair: tuple[float, float]) -> None:
    with pytest.raises(InputError, match="two whole numbers from 1 on"):
        space_of({"burst": pair})
    assert space_of({"burst": (1.2, 16.9)}).values(np.array([1.0])) == {"burst": 16.0}
