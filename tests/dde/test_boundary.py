"""Curves on which a function is zero, against curves that are known."""

from __future__ import annotations

import numpy as np
import pytest

from fluidcc.dde.boundary import _STEP, _corrected, traced

AXIS = np.arange(0.0, 9.0)
Array = np.ndarray


def curves_of(function, axes=(AXIS, AXIS)) -> list[Array]:
    places = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    return traced(function, axes, function(places.reshape(-1, 2)).reshape(places.shape[:2]))


def apart(curve: Array) -> Array:
    return np.linalg.norm(np.diff(curve, axis=0), axis=1)


@pytest.mark.parametrize("slope", [0.0, 0.3, -0.7, 1.4])  # with 0.3 and -0.7 through corners of the grid
def test_a_line_is_followed_along_itself_from_rim_to_rim(slope: float) -> None:
    """In steps of one length: a tangent that leans to one side would make them shorter."""
    (curve,) = curves_of(lambda at: at[:, 1] - 4.1 - slope * (at[:, 0] - 4.0))
    assert curve[:, 1] == pytest.approx(4.1 + slope * (curve[:, 0] - 4.0), abs=1e-9)
    ends = np.sort(curve[[0, -1]], axis=0)
    reach = min(4.0, 3.9 / abs(slope)) if slope else 4.0
    assert abs(ends[:, 0] - 4.0).min() > reach - 2 * _STEP  # a step that would lead out is not taken
    # Whole steps, but for those that end at the next start.
    lengths = apart(curve)
    assert np.median(lengths) == pytest.approx(_STEP, rel=1e-6)
    assert lengths.max() < _STEP * 1.6
    assert (np.diff(curve[:, 0]) * (curve[-1, 0] - curve[0, 0]) > 0).all()  # and never back


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_circle_is_closed_with_the_positive_side_on_its_right(sign: float) -> None:
    (curve,) = curves_of(lambda at: sign * (((at - 4.1) ** 2).sum(axis=1) - 2.3**2))
    assert np.linalg.norm(curve - 4.1, axis=1) == pytest.approx(2.3, rel=1e-6)
    np.testing.assert_array_equal(curve[0], curve[-1])
    assert apart(curve).max() < _STEP * 1.6
    assert apart(curve).sum() == pytest.approx(2 * np.pi * 2.3, rel=5e-3)
    x, y = (curve - 4.1).T
    area = 0.5 * (x[:-1] * y[1:] - x[1:] * y[:-1]).sum()
    assert np.sign(area) == sign  # counterclockwise where it is positive outside


def test_axes_may_be_of_any_spacing_and_direction() -> None:
    axes = (np.geomspace(1e-6, 1e-3, 9), np.linspace(5.0, -3.0, 9))
    (curve,) = curves_of(lambda at: at[:, 1] - 2.1 - np.log10(at[:, 0] / 1e-4), axes)
    assert curve[:, 1] == pytest.approx(2.1 + np.log10(curve[:, 0] / 1e-4), abs=1e-6)
    assert len(curve) > 20


@pytest.mark.parametrize(("below", "above"), [(-1.0, 1.0), (-1e4, 1e4), (-1e-4, 1e-4), (-1e-4, 3.0)])
def test_where_a_function_jumps_there_is_nothing_to_follow(below: float, above: float) -> None:
    """Each edge that the jump crosses is a curve of its own, at the jump, in any unit."""
    curves = curves_of(lambda at: np.where(at[:, 0] < 3.4, below, above))
    assert [curve.shape for curve in curves] == [(1, 2)] * len(AXIS)
    assert np.concatenate(curves)[:, 0] == pytest.approx(3.4, abs=1e-6 if above == -below else 1e-3)


def test_a_curve_ends_where_the_function_does() -> None:
    def function(at: Array) -> Array:
        return np.where(at[:, 0] < 5.5, at[:, 1] - 4.3, np.nan)

    (curve,) = curves_of(function)
    assert curve[:, 1] == pytest.approx(4.3, abs=1e-9)
    assert curve[:, 0].max() == pytest.approx(5.0)  # the last edge; nobody starts beyond, and all go the other way
    assert curve[:, 0].min() == pytest.approx(0.0)


def test_a_step_of_rounding_tells_no_slope() -> None:
    """Stop at 10^-12 of a cell or less: a point that is there keeps its slope, while another still moves."""
    asked: list[Array] = []

    def at(cells: Array) -> Array:
        asked.append(cells[:, 1].copy())
        v = cells[:, 1]
        return np.where(v < 0.5, 2 * v + 1e-12, (v - 1) + (v - 1) ** 2)

    cells = np.array([[3.0, 0.0], [3.0, 1.2]])
    found, good = _corrected(at, cells, np.array([[0.0, 1.0]] * 2), np.array([1.0, 1.0]))
    assert good.tolist() == [True, True]
    assert found[1] == pytest.approx([3.0, 1.0], abs=1e-7)
    assert [float(each[0]) for each in asked[:3]] == [0.0, -1e-12, 0.0]
