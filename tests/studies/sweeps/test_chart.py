"""Stability over grids: every point as alone, the boundary where the critical delay is, points that have no
equilibrium.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.dde.boundary import traced
from fluidcc.dde.characteristic import Abscissa, abscissa
from fluidcc.dde.delay_system import DelaySystem
from fluidcc.errors import InputError
from fluidcc.studies.sweeps.chart import stability_chart

FLOWS, DELAYS = [2.0, 8.0, 14.0, 20.0, 40.0], [20e-6, 50e-6, 85e-6, 120e-6]


def dcqcn(n: Any, tau: Any) -> fc.Scenario:
    return fc.incast(1, rate="40Gbps", multiplicity=n, scheme=fc.DCQCN(feedback_delay=tau))


@pytest.fixture(scope="module", autouse=True)
def few() -> Iterator[None]:
    """Compute 20 points at once in place of 512: no chart here has more before its boundary is followed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(importlib.import_module("fluidcc.studies.sweeps.chart"), "_CHUNK", 20)
        yield


@pytest.fixture(scope="module")
def chart() -> Any:
    return stability_chart(dcqcn, {"n": FLOWS, "tau": DELAYS})


def test_every_point_as_alone(chart: Any) -> None:
    """Roots to 1e-6, where the equilibrium of one point is solved in another way; marking and queue to 1e-9."""
    for n, tau in zip(FLOWS[::2], [*DELAYS[::2], DELAYS[-1]], strict=True):
        here = chart.dataset.sel(n=n, tau=tau)
        alone = fc.stability(dcqcn(n, tau))
        fixed_point = fc.equilibrium(dcqcn(n, tau)).as_dict()
        assert float(here.root) == pytest.approx(alone.rightmost_root.real, rel=1e-6)
        assert float(here.fairness_root) == pytest.approx(alone.fairness_root.real, rel=1e-6)
        assert bool(here.stable) == alone.stable
        assert bool(here.on_ramp) == alone.on_ramp
        assert float(here.marking_probability) == pytest.approx(fixed_point["marking_probability"], rel=1e-9)
        assert float(here.queue_bytes) == pytest.approx(fixed_point["queue_bytes"], rel=1e-9)


def test_the_boundary_is_the_critical_delay(chart: Any) -> None:
    """At every third point of the curve, on the grid's edges and between; the curve is one, from rim to rim."""
    edge, curve = chart.dataset.boundary.values, chart.dataset.curve.values
    assert set(curve) == {0}
    ends = [np.isclose(n, [2, 40]).any() or np.isclose(tau, [20e-6, 120e-6]).any() for n, tau in edge]
    assert ends[0] or ends[-1]
    assert len(edge) > 8
    for n, tau in edge[::3]:
        critical = fc.stability(dcqcn(n, "50us")).critical_feedback_delay
        assert tau == pytest.approx(critical, rel=1e-6)


def test_a_circle_is_followed_around() -> None:
    """x^2 + y^2 = 1 on grids that see it well, and hardly; points lie on it to 1e-9, and the curve is closed."""
    for count in (41, 9):
        axis = np.linspace(-2, 2, count)
        x, y = np.meshgrid(axis, axis + 0.07, indexing="ij")
        (curve,) = traced(lambda at: at[:, 0] ** 2 + at[:, 1] ** 2 - 1, (axis, axis + 0.07), x**2 + y**2 - 1)
        np.testing.assert_allclose(np.hypot(*curve.T), 1.0, atol=1e-9)
        np.testing.assert_array_equal(curve[0], curve[-1])
        angle = np.unwrap(np.arctan2(curve[:, 1], curve[:, 0]))
        assert abs(angle[-1] - angle[0]) == pytest.approx(2 * np.pi)
        assert (np.diff(angle) * np.sign(angle[-1]) > 0).all() or (np.diff(angle) * -np.sign(angle[-1]) > 0).all()


def test_curves_of_any_number_and_uneven_values() -> None:
    """sin(3 x) = y/10 on a geometric axis that falls: a line for each half turn; and where nothing is zero, none."""
    x, y = np.geomspace(5.0, 0.5, 60), np.linspace(-1, 1, 12)
    f = lambda at: np.sin(3 * at[:, 0]) - at[:, 1] / 10  # noqa: E731
    values = f(np.stack(np.meshgrid(x, y, indexing="ij"), axis=-1).reshape(-1, 2)).reshape(60, 12)
    curves = traced(f, (x, y), values)
    assert len(curves) == 4
    for curve in curves:
        np.testing.assert_allclose(f(curve), 0.0, atol=1e-8)
        assert np.ptp(curve[:, 1]) == pytest.approx(2.0, abs=1e-9)
    assert traced(f, (x, y), np.ones((60, 12))) == []


@pytest.mark.slow
def test_delays_of_paths_and_other_parameters() -> None:
    """Queueing delay in the lags, and gain g swept over decades: as alone, to 1e-6."""

    def make(g: Any, delay: Any) -> fc.Scenario:
        return fc.incast(1, rate="40Gbps", delay=delay, multiplicity=8, scheme=fc.DCQCN(g=g, feedback_delay=None))

    chart = stability_chart(make, {"g": ["1/1024", "1/256", "1/16"], "delay": ["1us", "10us"]})
    for g in chart.dataset.g.values:
        for delay in chart.dataset.delay.values:
            alone = fc.stability(make(g, delay)).rightmost_root
            assert float(chart.dataset.root.sel(g=g, delay=delay)) == pytest.approx(alone.real, rel=1e-6)


def test_bad_points_harm_no_other() -> None:
    def make(kmin: Any, n: Any) -> fc.Scenario:
        return fc.incast(1, rate="40Gbps", multiplicity=n, marking=fc.RED(kmin, "200KB", 0.01), scheme=fc.DCQCN())

    chart = stability_chart(make, {"kmin": [5e3, 200e3, 300e3], "n": [1.0, 2.0]}).dataset
    assert str(chart.reason.values[0, 1]) == "ok"
    assert "step marking" in str(chart.reason.values[1, 1])  # kmin = kmax
    assert "kmin" in str(chart.reason.values[2, 1])
    assert "line rate" in str(chart.reason.values[0, 0])  # one flow observes no marks
    assert np.isnan(chart.root.values[1:]).all()
    assert float(chart.root[0, 1]) == pytest.approx(-64.898, abs=1e-3)


def test_one_name_has_no_boundary_and_no_picture() -> None:
    chart = stability_chart(lambda n: dcqcn(n, 50e-6), {"n": range(2, 5)})
    assert "boundary" not in chart.dataset
    with pytest.raises(InputError, match="two"):
        chart.plot()


def test_picture(chart: Any, tmp_path: Any) -> None:
    chart.plot(labels={"n": "flows", "tau": "feedback delay [s]"}).write(tmp_path / "chart.png")
    assert (tmp_path / "chart.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda n: fc.incast(1, rate="10Gbps", scheme=fc.DCTCP(), multiplicity=n), "dctcp"),
        (lambda n: fc.incast(1, rate="100Gbps", scheme=fc.HPCC(), multiplicity=n), "hpcc"),
    ],
)
def test_what_it_is_not_built_for(make: Any, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        stability_chart(make, {"n": [2.0, 3.0]})


def test_roots_that_may_be_missed_leave_a_hole(monkeypatch: pytest.MonkeyPatch) -> None:
    def unresolved(system: DelaySystem) -> Abscissa:
        state = np.where(np.arange(len(system.A0)) == 1, "unresolved", "ok")
        return abscissa(system)._replace(state=state)

    monkeypatch.setattr(importlib.import_module("fluidcc.studies.sweeps.chart"), "abscissa", unresolved)
    chart = stability_chart(lambda n: dcqcn(n, 50e-6), {"n": [2.0, 8.0, 9.0]}).dataset
    assert np.isnan(chart.root.values).tolist() == [False, True, False]
    assert np.isnan(chart.stable.values[1])
    assert str(chart.reason.values[1]).startswith("unresolved")


def test_hard_points_have_numbers_or_a_reason() -> None:
    """No delay, almost none, one of a second, and a negative one; 200 flows extend the ramp, 10 000 exceed the link."""
    chart = stability_chart(dcqcn, {"n": [8.0, 200.0, 10_000.0], "tau": [0.0, 1e-9, 50e-6, 1.0, -1.0]}).dataset
    reasons = [[str(reason)[:10] for reason in row] for row in chart.reason.values]
    assert reasons[0] == ["ok", "ok", "ok", "unresolved", "out of ran"]
    assert reasons[1] == reasons[0]
    assert all(reason == "no equilib" for reason in reasons[2][:4])
    assert float(chart.root[0, 0]) == pytest.approx(float(chart.root[0, 1]), rel=1e-3)
    assert chart.on_ramp.values[0, 0] == 1
    assert chart.on_ramp.values[1, 0] == 0
    assert (np.isnan(chart.root.values) == (chart.reason.values != "ok")).all()
