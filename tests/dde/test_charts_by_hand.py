"""Charts by hand: which numbers and reasons each point gets, where equilibria, slopes and roots stand in."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import xarray as xr

import fluidcc as fc
from fluidcc.dde import charts
from fluidcc.dde.charts import Chart, _grid, _points
from fluidcc.errors import InputError

EQUATION = fc.delay.Equation(
    lambda t, x, past, p: [-p.a * past[0][0], x[0] - x[1]], ["tau"], {"a": 1.5, "tau": 2.0}, ["x", "y"]
)
INF = complex(-np.inf, 0)


class Parts:
    """In place of what is compiled: a equals the point's number; what was asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.good, self.loose, self.smooth, self.sure = [np.ones(9, bool) for _ in range(4)]
        self.loose = ~self.loose
        self.number = np.full(9, 5)
        self.zeros: list[int] = []
        self.followed: list[list[list[float]]] = []
        self.asked: list[tuple[list[float], int]] = []
        self.left: list[tuple[int, list[float]]] = []
        monkeypatch.setattr(charts, "_CHUNK", 4)
        for name in ("followed", "jacobians", "roots", "structural", "without", "size"):
            monkeypatch.setattr(charts, name, getattr(self, f"{name}_"))

    def followed_(self, equation: Any, begin: Any, vectors: Any) -> Any:
        at = vectors[:, 0].astype(int)
        self.followed.append(vectors.tolist())
        return begin + vectors[:, :1], self.good[at], self.loose[at]

    def jacobians_(self, equation: Any, x: Any, vectors: Any) -> Any:
        at = vectors[:, 0].astype(int)
        np.testing.assert_array_equal(x[:, 0], 10 + at)
        A0 = at[:, None, None] * np.ones((len(at), 2, 2))
        A = A0[:, None].copy()
        A[~self.smooth[at], 0, 1, 0] = np.nan
        return A0, A, vectors[:, 1:]

    def roots_(self, batch: Any, number: int) -> Any:
        at = batch.A0[:, 0, 0].astype(int)
        self.asked.append((at.tolist(), number))
        s = at[:, None] - 2.0 - np.arange(number) - 3j * at[:, None]
        return SimpleNamespace(s=s, number=self.number[at], state=np.where(self.sure[at], "ok", "many"))

    def structural_(self, batch: Any) -> int:
        return self.zeros.pop(0)

    def size_(self, batch: Any) -> Any:
        return 100 + batch.A0[:, 0, 0]

    def without_(self, s: Any, zeros: int, sizes: Any) -> Any:
        self.left.append((zeros, sizes.tolist()))
        return s[:, zeros:]


def points(parts: Parts, zeros: int | None, count: int = 9, **options: Any) -> Any:
    return _points(EQUATION, np.array([10.0, 20.0]), {"a": np.arange(float(count))}, zeros, **options)


def test_each_point_has_its_root_and_its_equilibrium(monkeypatch: pytest.MonkeyPatch) -> None:
    """By parts of four, which report how far they are."""
    parts, told = Parts(monkeypatch), []
    zeros, root, frequency, state, x = points(parts, 0, report=told.append)
    assert zeros == 0
    assert root.tolist() == [a - 2.0 for a in range(9)]
    assert frequency.tolist() == [3.0 * a for a in range(9)]
    assert state.tolist() == ["ok"] * 9
    assert x.tolist() == [[10.0 + a, 20.0 + a] for a in range(9)]
    assert parts.followed == [[[float(a), 2.0] for a in some] for some in ([0, 1, 2, 3], [4, 5, 6, 7], [8])]
    assert parts.asked == [([0, 1, 2, 3], 1), ([4, 5, 6, 7], 1), ([8], 1)]
    assert parts.left[0] == (0, [1.0] * 4)
    assert told == pytest.approx([4 / 9, 8 / 9, 1.0])
    assert points(parts, 0, 4)[1].tolist() == [-2.0, -1.0, 0.0, 1.0]  # without a report


def test_points_without_a_number_say_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """They harm no other; what has no equilibrium has no state either."""
    parts = Parts(monkeypatch)
    parts.good[[1, 2, 8]] = False
    parts.loose[2] = True
    parts.smooth[[2, 3]] = False
    parts.sure[5] = False
    parts.number[6] = 0
    _, root, frequency, state, x = points(parts, 0)
    lost, unknown = [1, 2, 8], [1, 2, 3, 5, 8]
    assert np.flatnonzero(np.isnan(root)).tolist() == np.flatnonzero(np.isnan(frequency)).tolist() == unknown
    assert root[[0, 4, 7]].tolist() == [-2.0, 2.0, 5.0]
    assert (root[6], frequency[6]) == (-np.inf, 0.0)  # of no root at all
    assert np.flatnonzero(np.isnan(x[:, 0])).tolist() == lost
    assert state[[0, 4, 6, 7]].tolist() == ["ok"] * 4
    assert (state[1], state[8]) == (charts.NO_EQUILIBRIUM,) * 2
    assert state[2].startswith("the equilibrium moves, but ")
    assert (state[3], state[5]) == (charts.NO_SLOPE, charts.UNRESOLVED)
    assert [at for at, _ in parts.asked] == [[0], [4, 5, 6, 7]]
    assert parts.left[-1] == (0, [1.0] * 4)


def test_a_point_that_leads_nowhere_has_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    Parts(monkeypatch)
    columns = {"a": np.array([0.0, 1.0]), "tau": np.array([3.0, math.inf])}
    _, root, _, state, _ = _points(EQUATION, np.array([10.0, 20.0]), columns, 0)
    assert root.tolist() == [-2.0, pytest.approx(math.nan, nan_ok=True)]
    assert state.tolist() == ["ok", charts.NO_EQUILIBRIUM]
    with pytest.raises(InputError, match="lags"):
        _points(EQUATION, np.array([10.0, 20.0]), {"a": np.array([0.0, 1.0]), "tau": np.array([3.0, -1.0])}, 0)


def test_roots_that_are_0_everywhere_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count as many as all parts have; a point with no more has none that counts."""
    parts = Parts(monkeypatch)
    parts.zeros, parts.number[4] = [2, 1, 3], 1
    zeros, root, frequency, state, _ = points(parts, None)
    assert zeros == 1
    assert {number for _, number in parts.asked} == {2}
    assert parts.left == [(1, [100.0, 101, 102, 103]), (1, [104.0, 105, 106, 107]), (1, [108.0])]
    assert root.tolist() == [a - 3.0 if a != 4 else -np.inf for a in range(9)]
    assert (frequency[4], state[4]) == (0.0, "ok")
    parts.good[:] = False
    assert points(parts, None)[0] == 0


def test_axes_ascend_and_are_of_parameters() -> None:
    grid = _grid(EQUATION, {"tau": [0.0, 1.0], "a": 3})
    assert (grid.shape, grid.points) == ((2, 1), 2)
    assert {name: values.tolist() for name, values in grid.axes.items()} == {"tau": [0.0, 1.0], "a": [3.0]}
    assert _grid(EQUATION, {"a": [-1.0, 1.0]}).shape == (2,)
    for over, says in (
        (["a"], r"over: \['a'\]; give one or two"),
        ({}, "over: 0 parameters; give one or two"),
        ({"a": 1, "tau": 1, "b": 1}, "over: 3 parameters; give one or two"),
        ({"b": [1.0]}, "b"),
        ({"a": [1.0, 1.0]}, "over a: .*; give values that ascend"),
        ({"a": [1.0, 3.0, 2.0]}, "over a: .*; give values that ascend"),
        ({"tau": [-1.0, 2.0]}, "over tau: -1 is a lag; give 0 or more"),
    ):
        with pytest.raises(InputError, match=says):
            _grid(EQUATION, over)


def test_too_many_points_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(charts, "_MOST", 6)
    assert _grid(EQUATION, {"a": [1, 2], "tau": [1, 2, 3]}).points == 6
    with pytest.raises(InputError, match="over: 8 points are more than 6"):
        _grid(EQUATION, {"a": [1, 2], "tau": [1, 2, 3, 4]})


def test_a_chart_over_two_has_a_boundary(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the roots at 0 that its own points have left out; its curves are numbered."""
    parts = Parts(monkeypatch)
    parts.zeros = [1]
    monkeypatch.setattr(charts, "equilibrium_near", lambda equation, at: np.array([10.0, 20.0]))

    def traced(along: Any, axes: Any, root: Any) -> Any:
        assert [axis.tolist() for axis in axes] == [[3.0, 4.0], [1.0]]
        assert root.tolist() == [[0.0], [1.0]]
        assert along(np.array([[3.0, 1.0], [5.0, 2.0]])).tolist() == [0.0, 2.0]
        assert parts.asked[-1][1] == 2
        return [np.array([[3.0, 1.0], [3.5, 1.0]]), np.array([[4.0, 1.0]])]

    monkeypatch.setattr(charts, "traced", traced)
    data = charts.chart(EQUATION, {"a": [3.0, 4.0], "tau": [1.0]}).dataset
    assert data["root"].dims == ("a", "tau")
    assert data["stable"].values.tolist() == [[0.0], [0.0]]  # a root at 0 is not left of the axis
    assert data["boundary"].values.tolist() == [[3.0, 1.0], [3.5, 1.0], [4.0, 1.0]]
    assert data["curve"].values.tolist() == [0, 0, 1]
    assert data["name"].values.tolist() == ["a", "tau"]
    assert data["state_y"].values.tolist() == [[23.0], [24.0]]
    assert data.attrs["roots_at_0"] == 1


def test_a_chart_counts_what_is_stable() -> None:
    """Show those that are known; its rows say how many have which reason."""
    stable = np.array([1.0, 0.0, 1.0, np.nan])
    data = xr.Dataset(
        {
            "root": ("a", np.array([-1.0, 1.0, -2.0, np.nan])),
            "stable": ("a", stable),
            "reason": ("a", np.array(["ok", "ok", "ok", "why"])),
        },
        coords={"a": [0.5, 1.0, 2.0, 4.0]},
    )
    assert repr(Chart(data)) == "<Chart a: 4; stable at 2 of 3>"
    assert Chart(data)._rows() == [("a", "0.5 to 4"), ("ok", "3 points"), ("why", "1 points")]
    for zeros, says in ((1, "1 root at 0 everywhere"), (2, "2 roots at 0 everywhere")):
        rows = Chart(data.assign_attrs(roots_at_0=zeros))._rows()
        assert rows[1] == ("left out", says)
    assert len(Chart(data.assign_attrs(roots_at_0=0))._rows()) == 3
