"""Windows of a long run by hand: queues that grow or drain evenly, whole periods, and errors of three runs."""

from __future__ import annotations

import dataclasses
import math
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.engines.fluid.network import network_of
from fluidcc.engines.fluid.plan import plan_of
from fluidcc.errors import InputError
from fluidcc.scenario.model import resolve
from fluidcc.theory.control import limit_cycle
from fluidcc.theory.control.limit_cycle import (
    _falls,
    _finite,
    _Found,
    _grows,
    _period,
    _relative,
    _settle,
    _step_error,
    _whole,
)


def ends(lows: list[float], swing: float, times: list[float] | None = None) -> list[tuple[float, float, float]]:
    """Begin, least and largest queue of windows."""
    begins = [float(k) for k in range(len(lows))] if times is None else times
    return [(begin, low, low + swing) for begin, low in zip(begins, lows, strict=True)]


@pytest.mark.parametrize(
    ("lows", "swing", "times", "grows"),
    [
        ([10, 20, 30, 40], 10.0, None, True),
        ([0, 10, 20, 30], 9.0, None, True),
        ([1.0, 1.5, 2.0, 2.5], 0.5, None, True),  # however slowly
        ([7, 10, 20, 30, 40], 10.0, None, True),  # what was before does not count
        ([20, 30, 40], 10.0, None, False),  # three are not enough
        ([10, 20, 30, 40], 10.1, None, False),  # windows overlap
        ([10, 20, 30, 40.05], 10.0, None, True),  # by half a hundredth faster
        ([10, 20, 30, 40.2], 10.0, None, False),
        ([10, 20, 30, 39.8], 9.0, None, False),
        ([40, 30, 20, 10], 10.0, None, False),
        ([10, 20, 20, 30], 0.0, None, False),
        ([10, 30, 40, 50], 10.0, [0.0, 2.0, 3.0, 4.0], True),  # speeds, not steps
        ([10, 20, 30, 40], 10.0, [0.0, 2.0, 3.0, 4.0], False),
        ([9e3, 9e3 + 10, 9e3 + 20, 9e3 + 30], 10.0, None, True),
        ([11e3, 11e3 + 10, 11e3 + 20, 11e3 + 30], 10.0, None, False),  # by less than a thousandth
    ],
)
def test_a_queue_grows_if_evenly_over_four_windows(lows: Any, swing: float, times: Any, grows: bool) -> None:
    assert _grows(ends(lows, swing, times)) is grows


@pytest.mark.parametrize(
    ("lows", "swing", "times", "falls"),
    [
        ([30, 20, 10], 10.0, None, True),
        ([99, 30, 20, 10], 10.0, None, True),
        ([20, 10], 10.0, None, False),
        ([30, 20, 10], 10.1, None, False),
        ([30, 20, 10], 10 * (1 + 0.5e-5), None, True),
        ([30, 20, 9.95], 10.0, None, True),
        ([30, 20, 9.8], 10.0, None, False),
        ([10, 20, 30], 10.0, None, False),
        ([40, 20, 10], 10.0, [0.0, 2.0, 3.0], True),
        ([30, 20, 10], 10.0, [0.0, 2.0, 3.0], False),
        ([1e6 + 22, 1e6 + 11, 1e6], 0.0, None, True),
        ([1e6 + 18, 1e6 + 9, 1e6], 0.0, None, False),  # by less than a part in 10^5: rounding
        ([1e5 + 2, 1e5 + 1, 1e5], 0.0, None, False),  # by no more than that
    ],
)
def test_a_queue_falls_if_evenly_over_three_windows(lows: Any, swing: float, times: Any, falls: bool) -> None:
    assert _falls(ends(lows, swing, times)) is falls


def test_whole_periods_are_between_the_first_and_the_last_crossing() -> None:
    times = np.arange(10.0)
    assert _whole(times, np.array([1.5, 4.0, 7.2])) == slice(2, 8)
    assert _whole(times, np.array([1.5, 4.0])) == slice(2, 4)
    assert _whole(times, np.array([1.5])) == slice(None)


def test_a_period_repeats_after_the_fewest_crossings() -> None:
    """Two gaps at least, alike to a fiftieth; else the mean gap of what is irregular, or nothing."""
    assert _period(np.array([0.0, 2.0, 4.0])) == (2.0, 0.0, True)
    mean, spread, regular = _period(np.array([0.0, 1.0, 3.0, 4.0, 6.0, 7.0]))
    assert (mean, spread, regular) == (3.0, 0.0, True)
    mean, spread, regular = _period(np.array([0.0, 2.0, 4.07]))
    assert (mean, spread, regular) == (pytest.approx(2.035), pytest.approx(0.035), True)
    assert _period(np.array([0.0, 2.0, 4.2]))[2] is False
    assert _period(np.array([0.0, 2.0]))[::2] == (2.0, False)
    assert math.isnan(_period(np.array([1.0]))[0])
    five = np.cumsum(np.tile([1.0, 2.0, 3.0, 4.0, 5.0], 4))
    assert _period(five)[0] == pytest.approx(np.diff(five).mean())  # five crossings in a period are too many


def test_differences_are_relative_to_the_finer_run() -> None:
    assert _relative(3.0, 2.0) == 0.5
    assert _relative(3.0, -4.0) == 1.75
    assert _relative(1.0, 0.0) is None
    assert _relative(math.nan, 1.0) is None
    assert _finite(math.inf) is None
    assert _finite(0.0) == 0.0


def run(high: float, low: float, period: float, kind: str = "cycle") -> Any:
    return SimpleNamespace(high=high, low=low, period=period, kind=kind)


def test_errors_of_the_run_that_is_reported() -> None:
    """Heun's shrink to a quarter; of the first pair, or of the second where a coarser run came before."""
    runs = [run(11.6, 1.0, 2.16), run(11.1, 1.0, 2.04), run(11.0, 1.025, 2.01)]
    for reported, (size, period) in enumerate([(0.5 / 10.1, 0.12 / 2.04), (0.125 / 9.975, 0.03 / 2.01)]):
        found = _step_error(runs, reported, "heun")
        assert found["peak_to_peak_rel"] == pytest.approx(size)
        assert found["period_rel"] == pytest.approx(period)
        assert found["as_expected"] is True
    runs[2] = run(11.0, 1.0, 2.3)
    assert _step_error(runs, 0, "heun")["as_expected"] is False
    runs[2] = run(11.0, 1.025, 2.01, "irregular")
    assert _step_error(runs, 0, "heun")["as_expected"] is False


# -- window by window ---------------------------------------------------------------------------------------------


class Course:
    """Stands in for the run: queues of two links and rates of two flows are functions of the time, a step each."""

    def __init__(self, queue: Any, rate: Any, link: int = 1) -> None:
        self.queue, self.rate, self.link = queue, rate, link
        self.steps, self.windows, self.reports = 0, [], []

    def follow(self, steps: int) -> Any:
        times = np.arange(self.steps, self.steps + steps) * DT
        self.steps += steps
        self.windows.append(steps)
        queue = np.broadcast_to(self.queue(times), len(times))
        queues = np.stack([np.full(len(times), 1e4), queue][:: 1 if self.link else -1], axis=1)[..., None]
        rate = np.stack(np.broadcast_arrays(*self.rate(times), times)[:2], axis=1)[..., None]
        means = np.array([[0.0], [1.0]][:: 1 if self.link else -1])
        return SimpleNamespace(summary=SimpleNamespace(queue_mean=means), queue=queues, trace={"rate": rate}), times

    def settle(self, monkeypatch: pytest.MonkeyPatch, width: float, horizon: float, packet: float = 1.0) -> Any:
        monkeypatch.setattr(limit_cycle, "Continued", lambda network, plan: self)
        network: Any = SimpleNamespace(packet=np.array([[0.5 * packet], [packet]]))
        return _settle(network, cast(Any, SimpleNamespace(dt=DT)), width, horizon, self.reports.append)


DT = 0.01


def swing(size: float = 50.0, period: float = 1.0, mean: float = 100.0) -> Any:
    """A wave that meets its mean between two samples."""
    return lambda t: mean + size * np.sin(2 * np.pi * (t + 0.3 * DT) / period)


def still(t: Any) -> Any:
    return 3e3, 4e3


@pytest.mark.parametrize("link", [0, 1])
def test_a_wave_is_a_cycle_after_three_windows(monkeypatch: pytest.MonkeyPatch, link: int) -> None:
    """Take the link with the largest mean queue; means are over whole periods; nothing is reported beyond the whole."""
    course = Course(swing(), lambda t: (swing(2e3, mean=3e3)(t), 4e3), link)
    found = course.settle(monkeypatch, 10.5, 200.0)
    assert (found.kind, found.link, course.windows) == ("cycle", link, [1050] * 3)
    assert (found.low, found.high) == (pytest.approx(50.0, abs=0.1), pytest.approx(150.0, abs=0.1))
    assert (found.period, found.spread) == (pytest.approx(1.0, rel=1e-4), pytest.approx(0.0, abs=1e-4))
    assert found.mean == pytest.approx(100.0, rel=1e-9)
    assert found.rates == pytest.approx([3e3, 4e3], rel=1e-9)
    assert found.times[[0, -1]] == pytest.approx([21.0, 31.49])
    assert (found.queue.shape, found.rate.shape) == ((1050,), (1050, 2))
    assert course.reports == pytest.approx([10.5 / 200, 21 / 200, 31.5 / 200, 1.0])


def test_windows_that_hold_too_few_periods_are_made_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than eight crossings are enough; twice the length needs time for three windows of it."""
    for width, windows in ((9.0, [900, *[1800] * 3]), (10.0, [1000] * 3), (2.0, [200, 400, 800, *[1600] * 3])):
        course = Course(swing(), still)
        assert course.settle(monkeypatch, width, 200.0).kind == "cycle"
        assert course.windows == windows
    for horizon, windows in ((35.0, [500, 1000, 1000, 1000]), (34.99, [500] * 6)):
        course = Course(swing(), still)
        assert course.settle(monkeypatch, 5.0, horizon).kind == "cycle"
        assert course.windows == windows


def test_time_is_up_where_no_window_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """A last one may end with it."""
    for horizon, count in ((50.0, 5), (49.99, 4), (59.99, 5)):
        course = Course(lambda t: swing()(t) * 0.9**t, still)
        assert course.settle(monkeypatch, 10.0, horizon).kind == "decaying"
        assert len(course.windows) == count


@pytest.mark.parametrize(
    ("size", "mean", "packet", "kind", "period"),
    [
        (0.4e-3, 100.0, 1.0, "equilibrium", False),
        (0.049, 100.0, 1.0, "equilibrium", False),  # a swing from end to end of just below a thousandth of the mean
        (0.051, 100.0, 1.0, "cycle", True),
        (0.4, 1.0, 1e3, "equilibrium", False),  # or of a packet, if that is more
        (0.6, 1.0, 1e3, "cycle", True),
    ],
)
def test_a_swing_counts_from_a_thousandth_on(
    monkeypatch: pytest.MonkeyPatch, size: float, mean: float, packet: float, kind: str, period: bool
) -> None:
    """An equilibrium has no period, and needs none to be one."""
    found = Course(swing(size, mean=mean), still).settle(monkeypatch, 10.5, 200.0, packet)
    assert found.kind == kind
    assert math.isfinite(found.period) is period
    assert math.isfinite(found.spread) is period


def test_an_empty_queue_waits_for_rates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rates that climb, or swing for ever, are no equilibrium; those that swing by little are."""
    growing = Course(lambda t: 0.0 * t, lambda t: (3e3 + t, 4e3)).settle(monkeypatch, 10.0, 60.0)
    assert (growing.kind, growing.period) == ("cycle", pytest.approx(math.nan, nan_ok=True))
    for size, kind in ((1.9, "equilibrium"), (2.1, "cycle")):
        course = Course(lambda t: 0.0 * t, lambda t, size=size: (3e3, swing(size, mean=4e3)(t)))
        assert course.settle(monkeypatch, 10.5, 200.0).kind == kind
    tiny = Course(lambda t: 0.0 * t, lambda t: (3e3, 0.4e-3 * np.sin(2 * np.pi * t)))
    assert tiny.settle(monkeypatch, 10.5, 200.0).kind == "equilibrium"  # of 1 byte/s at least


def test_a_queue_that_rises_evenly_is_growing(monkeypatch: pytest.MonkeyPatch) -> None:
    """After four windows, if rates stand still to a hundredth; else when time is up."""
    course = Course(lambda t: 10 * t, still)
    assert course.settle(monkeypatch, 10.0, 200.0).kind == "growing"
    assert (course.windows, course.reports[-1]) == ([1000, 2000, 4000, 4000], 1.0)
    for size, windows in ((15.0, 4), (30.0, 6)):  # of 4 kB/s, from end to end less and more than 1 %
        course = Course(lambda t: 10 * t, lambda t, size=size: (3e3, swing(size, mean=4e3)(t)))
        course.settle(monkeypatch, 10.5, 65.0)
        assert len(course.windows) == windows


def test_a_queue_that_drains_evenly_is_decaying(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slowly: not an equilibrium, though it changes by less than a thousandth in a window."""
    course = Course(lambda t: 1e6 - 10 * t, still)
    assert course.settle(monkeypatch, 10.0, 95.0).kind == "decaying"
    assert course.windows == [1000] * 9


def test_a_cycle_repeats_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else it is irregular: two waves whose periods have no common one."""

    def two(t: Any) -> Any:
        return 100 + 30 * np.sin(2 * np.pi * t) + 30 * np.sin(2 * np.pi * t / 1.6180339)

    found = Course(two, still).settle(monkeypatch, 60.0, 600.0)
    assert found.kind == "irregular"
    assert found.spread > 0.02 * found.period


def test_a_run_that_is_not_finite_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="not finite"):
        Course(lambda t: np.where(t == 3.0, np.nan, 1.0), still).settle(monkeypatch, 10.0, 100.0)


# -- a run and those with other steps ------------------------------------------------------------------------------


def ended(kind: str, high: float = 11.0) -> Any:
    times = np.array([7.0, 8.0])
    numbers = (1.0, high, 5.0, 0.5, 0.0)
    return _Found(kind, 0, *numbers, np.array([6.0]), times, np.array([1.0, 2.0]), np.array([[3.0], [4.0]]))


@pytest.mark.parametrize("coarsens", [True, False])
@pytest.mark.parametrize("estimate", [True, False])
@pytest.mark.parametrize("kind", ["cycle", "equilibrium"])
def test_a_cycle_is_run_again_with_other_steps(
    monkeypatch: pytest.MonkeyPatch, kind: str, estimate: bool, coarsens: bool
) -> None:
    """Half the step, and twice it or a quarter; the bar ends where all is done. Windows are 200 of the longest lag."""
    runs: list[tuple[Any, ...]] = []
    shown: list[float] = []
    errors: list[Any] = []

    def settle(network: Any, plan: Any, width: float, horizon: float, report: Any) -> Any:
        runs.append((plan.dt, width, horizon))
        report(0.5)
        report(1.0)
        return ended(kind, 11.0 + len(runs))

    def planned(*given: Any, **options: Any) -> Any:
        return dataclasses.replace(plan_of(*given, **options), coarsens=coarsens)

    monkeypatch.setattr(limit_cycle, "plan_of", planned)
    monkeypatch.setattr(limit_cycle, "_settle", settle)
    monkeypatch.setattr(limit_cycle, "_step_error", lambda *given: errors.append(given) or {"peak_to_peak_rel": 0.5})

    class Shown:
        def __init__(self, _: str, count: int, what: str) -> None:
            self.count = count

        def __enter__(self) -> Any:
            return shown.append

        def __exit__(self, *_: Any) -> None:
            pass

    monkeypatch.setattr(limit_cycle, "Bar", Shown)
    found = fc.limit_cycle(fc.incast(1, multiplicity=2), "1s", dt="1us", estimate_error=estimate)
    again = estimate and kind == "cycle"
    steps = [1.0, *([0.5, 2.0 if coarsens else 0.25] if again else [])]
    assert [dt / 1e-6 for dt, *_ in runs] == pytest.approx(steps)
    network = network_of(resolve(fc.incast(1, multiplicity=2)))
    longest = max(float(np.max(lag)) for lag in (network.marking_lag, network.own_lag) if lag is not None)
    assert runs[0][1:] == (pytest.approx(200 * longest), 1.0)
    work = 1.0 if not estimate else 3.5 if coarsens else 7.0
    parts = [(0.0, 1.0), (1.0, 2.0), (3.0, 0.5 if coarsens else 4.0)][: len(runs)]
    assert shown == pytest.approx([(begun + part * share) / work for begun, part in parts for share in (0.5, 1.0)])
    assert found.high == 12.0
    if not again:
        assert found.discretisation_error == dict.fromkeys(("peak_to_peak_rel", "period_rel", "as_expected"))
        return
    assert found.discretisation_error == {"peak_to_peak_rel": 0.5}
    ((three, reported, method),) = errors
    assert ([one.high for one in three], reported, method) == (
        ([14.0, 12.0, 13.0], 1, "heun") if coarsens else ([12.0, 13.0, 14.0], 0, "heun")
    )


def test_a_cycle_has_the_names_of_its_link_and_flows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows of a third of the time are the longest, of a step the shortest; numbers are the run's."""
    monkeypatch.setattr(limit_cycle, "_settle", lambda *_: ended("cycle"))
    scenario = fc.incast(1, multiplicity=3)
    found = fc.limit_cycle(scenario, "3s", window="1s", dt="1us", estimate_error=False)
    assert (found.kind, found.low, found.high, found.mean) == ("cycle", 1.0, 11.0, 5.0)
    assert (found.period, found.period_spread, found.rates, found.settled_at) == (0.5, 0.0, (6.0,), 7.0)
    assert found.peak_to_peak == 10.0
    assert found.dataset.multiplicity.values.tolist() == [3.0]
    assert found.dataset.crosses.values.tolist() == [True]
    assert found.dataset.queue.values.tolist() == [1.0, 2.0]
    assert found.dataset.rate.values.tolist() == [[3.0], [4.0]]
    assert found.link == (scenario.links[0].name or "link 0")
    assert found.as_dict()["queue_bytes"] == {"min": 1.0, "max": 11.0, "mean": 5.0, "peak_to_peak": 10.0}
    assert fc.limit_cycle(scenario, "3s", window="1us", dt="1us", estimate_error=False).kind == "cycle"
    for window in ("1.001s", "0.9us"):
        with pytest.raises(InputError, match="until"):
            fc.limit_cycle(scenario, "3s", window=window, dt="1us", estimate_error=False)
