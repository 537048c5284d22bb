"""Meshes of periodic profiles, by hand: intervals share out what moves, alike on both sides of it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.polynomial import legendre

from fluidcc.dde import periodic
from fluidcc.dde.fixed_points import _starts

EXACT = 1e-12
EVEN = np.linspace(0.0, 1.0, 10)  # nine intervals: the middle of the fifth is that of the period


def bump(theta: np.ndarray) -> np.ndarray:
    """A peak in the middle of the period, a tenth of it wide, the same on both sides; it changes sign."""
    return np.exp(-(((theta[:, None] - 0.5) / 0.05) ** 2)) - 0.5


def ramp(theta: np.ndarray) -> np.ndarray:
    """Rises from 0 by 1 in the second half of the period, and by nothing before."""
    return np.maximum(theta[:, None] - 0.5, 0.0) * 2


def decay(theta: np.ndarray) -> np.ndarray:
    """A state of one sign which falls by e^40 in the second half of the period, and rests before."""
    return np.exp(-80 * np.maximum(theta[:, None] - 0.5, 0.0))


def test_values_and_slopes_of_polynomials_are_exact() -> None:
    """Of theta^3 and 5 theta over one period; a period later they are the same."""
    made = periodic.sampled(lambda theta: np.stack([theta**3, 5 * theta], axis=1), np.array([0.0, 0.3, 0.5, 1.0]), 2.0)
    theta = np.array([0.35, 0.49, 0.5, 0.7, 0.999])
    assert made(theta) == pytest.approx(np.stack([theta**3, 5 * theta], axis=1), abs=EXACT)
    assert made.slope(theta) == pytest.approx(np.stack([3 * theta**2, 5 + 0 * theta], axis=1), abs=1e-10)
    assert made(theta + 3) == pytest.approx(made(theta), abs=1e-9)
    assert periodic.places(made.mesh, np.array([0.7, -1.3, 2.7])).back[:, -1].tolist() == [0, 2, -2]


def test_sizes() -> None:
    """Peak to peak of what moves, and the modulus of what stands still; of what keeps its sign, what it is there."""
    x = np.array([[1.0, -7.0, 2.0, 0.0], [-3.0, -7.0, 6.0, 0.0]])
    made = periodic.Profile(np.array([0.0, 1.0]), x, 1.0)
    assert made.size == pytest.approx([4.0, 7.0, 4.0, 1e-300])
    assert made.moves
    assert not periodic.Profile(made.mesh, x[:, [1, 3]], 1.0).moves
    assert periodic.local(x) == pytest.approx(np.array([[4.0, 7.0, 2.0, 1e-300], [4.0, 7.0, 6.0, 1e-300]]))


def test_intervals_have_the_same_share() -> None:
    """Parts of 1, 3 and 4 on intervals of 1/4, 1/4 and 1/2: each of four has 2."""
    ends = np.array([0.0, 0.25, 0.5, 1.0])
    assert periodic._shared(np.array([1.0, 3.0, 4.0]), ends, 4) == pytest.approx([0.0, 1 / 3, 0.5, 0.75, 1.0])


def test_a_mesh_is_alike_on_both_sides_of_a_peak() -> None:
    """Within 1e-4, twice the distance of the places looked at; the peak has the shortest intervals."""
    for found in (periodic.refined(periodic.sampled(bump, EVEN, 1.0), 9), periodic.mesh_for(bump, 9)):
        assert found == pytest.approx(1 - found[::-1], abs=1e-4)
        assert found[[0, -1]] == pytest.approx([0.0, 1.0], abs=EXACT)
        widths = np.diff(found)
        assert (widths > 0).all()
        assert widths.argmin() in (3, 4, 5)
        assert widths[4] < 1 / 9 < widths[0]


def test_neighbours_of_what_is_left_are_made_short_too() -> None:
    """A profile with all of its tail in one interval of nine: half of its density is in those next to it."""
    made = periodic.sampled(bump, EVEN, 1.0)
    left = (periodic.tail(made) + periodic._NOISE) ** (1 / (periodic.DEGREE + 1))
    smooth = [max(left[k], (left[k - 1] + left[(k + 1) % 9]) / 2) for k in range(9)]
    found = periodic.refined(made, 50)
    counts = np.histogram(found[1:-1], EVEN)[0]
    assert counts == pytest.approx(50 * np.array(smooth) / sum(smooth), abs=1.01)


@pytest.mark.parametrize(
    ("coefficients", "left"),
    [
        ([0, 0, -1, 0, 0, 0, 1], 0.0),  # what has a degree below the last two is no tail
        ([0, -1, 0, 0, 0, 0, 0, 1], 1.0),
        ([0, 0, 0, 0, 0, 0, 0, 0, -2], 2.0),
    ],
)
def test_a_tail_is_of_the_last_two_degrees(coefficients: list[float], left: float) -> None:
    """A small sum of Legendre's polynomials, by NumPy, on top of 1: only its last two degrees count."""
    made = periodic.sampled(
        lambda theta: 1 + 1e-6 * legendre.legval(2 * theta - 1, coefficients)[:, None], np.array([0.0, 1.0]), 1.0
    )
    assert periodic.tail(made) == pytest.approx([1e-6 * left], rel=1e-5, abs=EXACT)


@pytest.mark.parametrize("course", [ramp, decay])
def test_short_intervals_where_it_moves(course: object) -> None:
    """By its slope, or by that of its logarithm, all along: three of ten may lie in the half that rests."""
    found = periodic.mesh_for(course, 10)  # type: ignore[arg-type]
    widths = np.diff(found)
    assert (widths > 0).all()
    assert (found[1:] < 0.5).sum() <= 3
    assert widths[-1] < 0.1 < widths[0]


def test_all_of_a_decay_counts() -> None:
    """Its logarithm falls evenly up to the end, where its slope is nothing: so intervals are alike there."""
    widths = np.diff(periodic.mesh_for(decay, 40))
    assert widths[-5:] == pytest.approx(widths[-1], rel=0.05)
    assert widths[-1] < 0.5 / 15


def test_starts_differ_in_sign_and_size() -> None:
    """All states alike, and 24 more where they are not: from 0.1 to 100, of both signs in each."""
    assert [start.tolist() for start in _starts(1)] == [[v] for v in (0.1, -0.1, 1, -1, 10, -10, 100, -100, 0)]
    two = np.array(_starts(2))
    assert (two[:9, 0] == two[:9, 1]).all()
    apart = two[9:]
    assert len(apart) == 24
    assert (apart[:, 0] != apart[:, 1]).all()
    assert (np.abs(apart) >= 0.1).all()
    assert (np.abs(apart) <= 100).all()
    for column in apart.T:
        assert 6 <= (column < 0).sum() <= 18
        assert 6 <= (np.abs(column) < np.sqrt(0.1 * 100)).sum() <= 18


@pytest.mark.parametrize(
    ("values", "size"),
    [
        ([1e6, 1e6 + 0.9e-3], 1e6),  # as far as rounding tells, it stands still
        ([1e6, 1e6 + 1.1e-3], 1.1e-3),
        ([1e-6, 1e-6 + 1.1e-15], 1.1e-15),
    ],
)
def test_what_moves_by_less_than_rounding_of_its_modulus_stands_still(values: list[float], size: float) -> None:
    assert periodic._size(np.array(values)[:, None])[0] == pytest.approx(size, rel=1e-5, abs=0.0)
