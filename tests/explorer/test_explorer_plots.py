"""Pictures of the explorer read back: ends of axes and points, of runs whose numbers are written here."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("bokeh", reason="needs bokeh: pip install 'fluidcc[explore]'")

from fluidcc.explorer.answers import Answer, Chart
from fluidcc.explorer.plots import ChartPlot, DistributionPlot, QueuePlot, RatePlot, RootPlot, symlog
from fluidcc.explorer.settings import Setting
from fluidcc.explorer.views import RootMap, Run

TIMES = np.linspace(0.0, 0.020, 201)


def made(*queues: Any, rates: Any = 1e9, times: np.ndarray = TIMES) -> Run:
    """Runs over 20 ms, each queue as a number or a function of time."""
    rows = [queue(times) if callable(queue) else np.full(times.size, float(queue)) for queue in queues]
    levels = np.atleast_1d(np.asarray(rates, float))
    return Run(times, np.array(rows), np.outer(levels, np.ones(times.size)), {})


def answer(fluid: Run, hybrid: Run | None = None, roots: RootMap | None = None) -> Answer:
    return Answer(Setting(), fluid, hybrid, "", roots, 0.0)


def ends(axis: Any) -> tuple[float, float, float]:
    assert axis.reset_start == axis.start
    return axis.start, axis.end, axis.reset_end


def test_the_queues_axis_reaches_from_0_over_all_runs() -> None:
    """In KB and ms: 1.05 of the peak of whichever run is highest, rounded up, and the longest run's time."""
    plot = QueuePlot(300)
    plot.show(answer(made(60e3), made(20e3, 100e3)), None, None)
    assert ends(plot.plot.y_range) == pytest.approx((0, 120, 120))  # 105 KB, rounded up
    assert ends(plot.plot.x_range) == pytest.approx((0, 20, 20))
    plot.show(answer(made(60e3)), made(310e3), answer(made(10e3, times=2 * TIMES)))
    assert ends(plot.plot.y_range) == pytest.approx((0, 400, 400))  # 325.5 KB
    assert ends(plot.plot.x_range) == pytest.approx((0, 40, 40))
    plot.show(answer(made(0.0)), None, None)
    assert ends(plot.plot.y_range) == pytest.approx((0, 1, 1))
    assert plot._note.text == ""


def test_a_first_peak_is_cut_off_and_named() -> None:
    """Peaks after a tenth of the run, 50 KB, and a fifth of it; a reset shows the peak of 900 KB and a bit."""
    plot = QueuePlot(300)
    early = made(lambda t: np.where(t < 0.001, 900e3, 50e3))
    plot.show(answer(early), None, None)
    assert ends(plot.plot.y_range) == pytest.approx((0, 60, 945))
    assert "900KB" in str(plot._note.text)
    late = made(lambda t: np.where(np.isclose(t, 0.002), 900e3, 50e3))  # at a tenth: it counts
    plot.show(answer(late), None, None)
    assert ends(plot.plot.y_range) == pytest.approx((0, 1000, 1000))
    assert plot._note.text == ""


def test_lines_and_bands_are_those_of_the_runs() -> None:
    """Several seeds: the mean in a line and the least and largest as a band; packets before the hybrid."""
    plot = QueuePlot(300)
    plot.show(answer(made(60e3), made(20e3, 100e3, 30e3)), None, None)
    lines = {name: data.data for name, data in plot._lines.items()}
    assert set(lines["fluid"]["y"]) == {60.0}
    assert set(lines["hybrid"]["y"]) == {50.0}
    assert lines["fluid"]["x"] == pytest.approx(TIMES * 1e3)
    assert (set(plot._band.data["low"]), set(plot._band.data["high"])) == ({20.0}, {100.0})
    assert plot._band.data["x"] == pytest.approx(TIMES * 1e3)
    seen = {name: item.visible for name, item in plot._items.items()}
    assert seen == {"fluid": True, "hybrid": True, "packets": False, "kept": False, "range": True}
    plot.show(answer(made(60e3), made(20e3, 100e3)), made(7e3, 9e3), answer(made(1e3)))
    assert (set(plot._band.data["low"]), set(plot._band.data["high"])) == ({7.0}, {9.0})
    assert set(plot._lines["kept"].data["y"]) == {1.0}
    plot.show(answer(made(60e3)), None, None)
    assert len(plot._band.data["x"]) == len(plot._lines["kept"].data["y"]) == 0
    assert not plot._items["range"].visible


def test_the_rates_axis_reaches_from_0_over_all_classes() -> None:
    """1 GB/s are 8 Gb/s; at most six classes have a line, and all count for the axis."""
    plot = RatePlot(300)
    rates = 1e9 * np.array([1, 2, 3, 1, 1, 1, 9])
    plot.show(answer(made(0, rates=rates), made(0, rates=[11e9])), None, None)
    assert ends(plot.plot.y_range) == pytest.approx((0, 100, 100))  # 88 Gb/s
    assert ends(plot.plot.x_range) == pytest.approx((0, 20, 20))
    assert [set(row) for row in plot._fluid.data["ys"]] == [{8}, {16}, {24}, {8}, {8}, {8}]
    assert plot._fluid.data["xs"][0] == pytest.approx(TIMES * 1e3)
    assert len(set(plot._fluid.data["colour"])) == 6
    assert [set(row) for row in plot._mean.data["ys"]] == [{88}]
    assert plot._kept.data["ys"] == []
    for three in (
        (answer(made(0, rates=rates)), None, None),
        (answer(made(0)), made(0, rates=rates), None),
        (answer(made(0)), None, answer(made(0, rates=rates))),
    ):
        plot.show(*three)
        assert ends(plot.plot.y_range) == pytest.approx((0, 80, 80))  # the seventh class's 72 Gb/s
    plot.show(answer(made(0)), made(0, rates=[2e9]), answer(made(0, rates=[3e9], times=3 * TIMES)))
    assert ends(plot.plot.y_range) == pytest.approx((0, 25, 25))
    assert ends(plot.plot.x_range) == pytest.approx((0, 60, 60))
    assert [set(row) for row in plot._mean.data["ys"]] == [{16}]


def test_a_distributions_axis_holds_its_bins() -> None:
    """Two levels of the second half, 3 to 1: bars of 75 and 25 % at 10 and 40 KB, of bins up to 1.02 of the largest."""
    plot = DistributionPlot(300)
    plot.show(
        answer(made(lambda t: np.where(t < 0.01, 500e3, np.where(t < 0.01 + 0.0100 * 0.75, 10e3, 40e3)))), None, None
    )
    bars = plot._sets["fluid"].data
    assert bars["top"] == pytest.approx([75, 25], abs=1)  # of 101 samples
    for low, high, level in zip(bars["left"], bars["right"], (10, 40), strict=True):
        assert low <= level <= high
        assert high - low == pytest.approx(40 * 1.02 / 60)
    assert ends(plot.plot.x_range) == pytest.approx((0, 50, 50))  # 40.8 KB
    assert ends(plot.plot.y_range) == pytest.approx((0, 80, 80))
    plot.show(answer(made(100.0)), None, None)
    assert ends(plot.plot.x_range) == pytest.approx((0, 1, 1))
    assert ends(plot.plot.y_range) == pytest.approx((0, 100, 100))


def test_axes_of_roots_hold_the_roots_and_the_border() -> None:
    """Scales of sign times log10(1 + |s| / 100): -900 is at -1, 9900 at 2; whole half steps beyond, both ways up."""
    assert symlog([-900, 0, 9900]).tolist() == [-1.0, 0.0, 2.0]
    plot = RootPlot(300)
    found = RootMap(np.array([-900 + 9900j, -900 - 9900j]), np.array([-99900.0 + 0j]), True, "")
    plot.show(answer(made(0)), None)
    assert len(plot._sets["aggregate"].data["x"]) == 0  # not worked out yet
    plot.show(answer(made(0), roots=found), None)
    assert plot._sets["aggregate"].data["x"] == pytest.approx([-1, -1])
    assert plot._sets["aggregate"].data["y"] == pytest.approx([2, -2])
    assert plot._sets["fairness"].data["x"] == pytest.approx([-3])
    assert ends(plot.plot.x_range) == pytest.approx((-3.5, 1, 1))
    assert ends(plot.plot.y_range) == pytest.approx((-2.5, 2.5, 2.5))
    assert not plot._items["kept"].visible
    grows = RootMap(np.array([99900.0 + 0j]), np.empty(0, complex), False, "")
    plot.show(answer(made(0), roots=grows), answer(made(0), roots=found))
    assert ends(plot.plot.x_range) == pytest.approx((-1.5, 3.5, 3.5))
    assert ends(plot.plot.y_range) == pytest.approx((-1.5, 1.5, 1.5))
    assert plot._sets["kept"].data["x"] == pytest.approx([-1, -1, -3])


def test_a_charts_point_ticks_and_colours() -> None:
    """The unit square of a grid: the setting a quarter along, the zero line half way, colours as far both ways."""
    plot, setting = ChartPlot(300), Setting()
    x, y = np.linspace(2.0, 10.0, 5), np.array([1e-5, 2e-5, 4e-5])
    root = np.repeat([[-900.0, -450.0, 0.0, 450.0, 9900.0]], 3, axis=0)
    chart = Chart(("flows", "feedback_delay"), x, y, root)
    plot.show(chart, setting.knobs, {"flows": 4.0, "feedback_delay": 3e-5}, {"flows": 11.0, "feedback_delay": 3e-5})
    assert plot._points["here"].data == {"x": [pytest.approx(0.25)], "y": [pytest.approx(0.75)]}
    assert len(plot._points["kept"].data["x"]) == 0  # outside
    assert (plot._mapper.low, plot._mapper.high) == (-2.0, 2.0)
    assert set(plot._edge.data["xs"][0]) == {0.5}
    labels = [axis.major_label_overrides for axis in plot._axes]
    assert list(labels[0].items()) == [(0.0, "2"), (0.25, "4"), (0.5, "6"), (0.75, "8"), (1.0, "10")]
    assert list(labels[1].values()) == ["10us", "20us", "40us"]
    plot.show(Chart(chart.names, x, y, np.empty((0, 0))), setting.knobs, {}, {})
    assert len(plot._points["here"].data["x"]) == 0
    assert np.isnan(plot._image.data["image"][0]).all()
