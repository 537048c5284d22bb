"""Stages of a fit, with stand-ins for runs and searches: windows, samples, scales, and what the result says."""

from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.errors import InputError
from fluidcc.studies.fitting.measured import Measured
from fluidcc.studies.fitting.model import space_of
from fluidcc.studies.fitting.moments import Solution

fitting = importlib.import_module("fluidcc.studies.fitting.fit")
COUNT = 64
TIMES = 1e-5 * np.arange(COUNT)
SPACE = space_of({"kmin": (0, 100), "timer": (1e-5, 1e-3)})
MIDDLE: Any = SimpleNamespace(packet_size=1000, header_bytes=48)


def solution(at: tuple[float, float] = (0.5, 0.5), **changed: Any) -> Solution:
    """An estimate of both unknowns that is as sure as can be."""
    given: dict[str, Any] = {
        "low": np.array(at) - 0.01,
        "high": np.array(at) + 0.01,
        "jacobian": 100 * np.eye(2),
        "residual": 0.5,
        "misfits": np.zeros(3),
        "inside": np.ones(2, bool),
    }
    return Solution(np.array(at), **given | changed)


def problem(stretch: Measured, engine: str = "hybrid", window: tuple[float, float] = (0.0, 1e-3)) -> Any:
    return fitting._Problem(stretch, lambda **values: values, MIDDLE, SPACE, 3, window, engine)


# -- windows -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "begins"),
    [
        (0.0, 0.0),
        (3.0, 3.0),  # within the four seconds that it lasts
        (4.0, 4.0),
        (4.5, 1.0),  # later: its first sample is one interval after the start
        (-0.5, 1.0),
    ],
)
def test_times_of_what_starts_later_than_it_lasts_are_from_its_first_sample(first: float, begins: float) -> None:
    found = fitting._from_start(Measured(first + np.arange(5.0), np.ones(5), None))
    assert found.time.tolist() == pytest.approx([begins + k for k in range(5)])


@pytest.mark.parametrize(
    ("given", "skipped", "window"),
    [
        (None, 0.0, (2e-3, 10e-3)),  # all
        (None, 0.5, (5e-3, 10e-3)),
        (None, 0.1, (2e-3, 10e-3)),
        ((3e-3, 4e-3), 0.5, (3e-3, 4e-3)),
        ((0.0, 11.49e-3), 0.5, (0.0, 11.49e-3)),  # a sample and a half beyond the last
    ],
)
def test_the_second_half_is_fitted_unless_a_window_is_given(
    given: Any, skipped: float, window: tuple[float, float]
) -> None:
    measured = Measured(1e-3 * np.arange(2.0, 11.0), np.ones(9), None)
    assert fitting._window_of(measured, given, skipped) == pytest.approx(window)


@pytest.mark.parametrize("given", [(0.0, 11.51e-3), (4e-3, 4e-3), (5e-3, 4e-3), (-1e-3, 4e-3)])
def test_a_window_beyond_the_trace_is_refused(given: tuple[float, float]) -> None:
    with pytest.raises(InputError, match="window"):
        fitting._window_of(Measured(1e-3 * np.arange(2.0, 11.0), np.ones(9), None), given, 0.5)


# -- moments -----------------------------------------------------------------------------------------------------


class Moments:
    """Stand-in for runs, whose queue counts their samples, and of the search, which asks for some."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, found: Solution) -> None:
        self.found = found
        self.ran: list[tuple[dict[str, float], int]] = []
        self.times: list[np.ndarray] = []
        self.asked: dict[str, Any] = {}
        self.numbers: list[np.ndarray] = []
        monkeypatch.setattr(fitting, "resolve", self.resolve)
        monkeypatch.setattr(fitting, "random_run", self.random_run)
        monkeypatch.setattr(fitting, "run_all", self.run_all)
        monkeypatch.setattr(fitting.moments, "minimise", self.minimise)

    @staticmethod
    def resolve(values: dict[str, float]) -> dict[str, float]:
        if values["kmin"] > 90:
            raise InputError("kmin: beyond kmax")
        return values

    def random_run(
        self, scenario: Any, engine: str, seed: int, time: np.ndarray, link: int, like: Measured
    ) -> Measured:
        assert link == 3
        self.ran.append((scenario, seed))
        self.times.append(time)
        more = len(time) + 2  # engines may take some more
        return Measured(np.arange(float(more)), 1e4 + np.arange(float(more)), None)

    @staticmethod
    def run_all(work: Any, jobs: Any, *, report: Any = None) -> list[Any]:
        return [work(job, None) for job in jobs]

    def minimise(self, run: Any, observed: np.ndarray, unknowns: int, **options: Any) -> Solution:
        self.asked = {"observed": observed, "unknowns": unknowns, **options}
        self.numbers = [run(np.array([[0.2, 0.5], [0.95, 0.5]]), 7), run(np.array([[0.3, 0.5]]), 9)]
        return self.found


@pytest.mark.parametrize("opens", [0, 100])
def test_runs_have_the_samples_of_the_stretch(monkeypatch: pytest.MonkeyPatch, opens: int) -> None:
    """Samples from 0 on to its last, of which the last as many are kept: of 164 from the hundredth on."""
    stretch = Measured(TIMES + opens * 1e-5, 1e4 + np.arange(COUNT), None)
    ran = Moments(monkeypatch, solution())
    found = fitting._by_moments(problem(stretch), 700)
    assert all(time == pytest.approx(1e-5 * np.arange(opens + COUNT)) for time in ran.times)
    assert [len(each.queue) for each in found.fitted] == [COUNT] * 12
    assert found.fitted[0].queue.tolist() == [1e4 + opens + k for k in range(COUNT)]
    assert found.fitted[0].time is stretch.time
    assert ran.ran[0] == (pytest.approx({"kmin": 50.0, "timer": 1e-4}), 1)  # the middle, before all
    assert [seed for _, seed in ran.ran[1:3]] == [7, 9]  # 8 made no sense
    assert [seed for _, seed in ran.ran[3:]] == list(range(1, 13))
    assert ran.ran[-1][0] == pytest.approx({"kmin": 50.0, "timer": 1e-4})
    assert np.isfinite(ran.numbers[0]).all(axis=1).tolist() == [True, False]
    if opens == 0:
        assert ran.numbers[0][0] == pytest.approx(ran.asked["observed"])
    assert (ran.asked["unknowns"], ran.asked["runs"], ran.asked["first_seed"]) == (2, 700, 1)
    assert found.runs == 3
    assert found.words == ()


@pytest.mark.parametrize(("engine", "errors"), [("hybrid", True), ("packet", False)])
def test_packets_have_no_error_of_a_fluid_queue(monkeypatch: pytest.MonkeyPatch, engine: str, errors: bool) -> None:
    ran = Moments(monkeypatch, solution())
    fitting._by_moments(problem(Measured(TIMES, 1e4 + np.arange(COUNT), None), engine), 700)
    assert (ran.asked["errors"] > 0).all() if errors else not ran.asked["errors"].any()
    assert len(ran.asked["errors"]) == len(ran.asked["observed"])


def test_moments_are_told_of_packets_with_their_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    told, features = [], fitting.features_of
    Moments(monkeypatch, solution())
    monkeypatch.setattr(fitting, "features_of", lambda given, packet: told.append(packet) or features(given, packet))
    fitting._by_moments(problem(Measured(TIMES, 1e4 + np.arange(COUNT), None)), 700)
    assert set(told) == {1048.0}


@pytest.mark.parametrize(("residual", "strange"), [(1.6, False), (1.61, True)])
def test_a_model_that_does_not_explain_is_said_with_what_differs_most(
    monkeypatch: pytest.MonkeyPatch, residual: float, strange: bool
) -> None:
    misfits = np.zeros(17)
    misfits[[1, 4, 8]] = [-3.0, 2.0, 5.0]
    Moments(monkeypatch, solution(residual=residual, misfits=misfits))
    stretch = Measured(TIMES, 1e4 + np.arange(COUNT), None)
    found = fitting._by_moments(problem(stretch), 700, "said before")
    assert found.words[0] == "said before"
    assert len(found.words) == 1 + strange
    if strange:
        assert "(residual 1.6): time without queue, queue std, queue p50 differ most" in found.words[1]


# -- trajectories ------------------------------------------------------------------------------------------------


class Trajectory:
    """Stand-in for the fluid, whose queue and rates are straight lines, and of the search."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, residual: float = 0.1) -> None:
        self.residual = residual
        self.runs: list[tuple[float, float, int]] = []
        self.observed = self.ours = np.empty(0)
        monkeypatch.setattr(fitting, "resolve", lambda values: values)
        monkeypatch.setattr(fitting, "fluid_run", self.fluid_run)
        monkeypatch.setattr(fitting, "nearest_trajectory", self.minimise)

    def fluid_run(self, scenario: Any, until: float, interval: float, link: int, like: Measured) -> Measured:
        self.runs.append((until, interval, link))
        time = np.array([0.0, 1.0])
        rates = None if like.rates is None else np.full((2, like.rates.shape[1]), 6.0)
        return Measured(time, None if like.queue is None else np.array([0.0, 1e5]), rates)

    def minimise(self, run: Any, observed: np.ndarray, unknowns: int, report: Any) -> Solution:
        self.observed = observed
        self.ours = run(np.full(unknowns, 0.5))
        return solution(residual=self.residual)


def test_signals_are_divided_by_their_root_mean_square(monkeypatch: pytest.MonkeyPatch) -> None:
    """A queue of 3 and 4 and rates of 2; one of nothing at all is left as it is."""
    queue = np.resize([3.0, 4.0], COUNT)
    rates = np.stack([np.full(COUNT, 2.0), np.zeros(COUNT)], axis=1)
    ran = Trajectory(monkeypatch)
    found = fitting._by_trajectory(problem(Measured(TIMES, queue, rates), "fluid", (0.0, 5.0)))
    scale = (25 / 2) ** 0.5
    assert ran.observed[:2] == pytest.approx(np.array([[3 / scale, 1.0, 0.0], [4 / scale, 1.0, 0.0]]))
    assert ran.ours[:, 0] == pytest.approx(1e5 * TIMES / scale)
    assert ran.ours[1:, 1:] == pytest.approx(np.full((COUNT - 1, 2), [3.0, 6.0]))
    assert ran.runs == [(5.0, pytest.approx(1e-5), 3)] * 2
    assert found.runs == 1
    assert len(found.fitted) == 1
    assert found.engine == "fluid"


def test_gaps_count_for_no_scale_and_runs_have_50_samples_at_least(monkeypatch: pytest.MonkeyPatch) -> None:
    rates = np.full((COUNT, 1), 4.0)
    rates[10:40] = np.nan
    ran = Trajectory(monkeypatch)
    fitting._by_trajectory(problem(Measured(TIMES, None, rates), "fluid", (0.0, 1e-4)))
    assert ran.observed[0] == pytest.approx([1.0])
    assert np.isnan(ran.observed[10:40]).all()
    assert ran.runs[0][1] == pytest.approx(1e-4 / 50)


@pytest.mark.parametrize(("count", "stride"), [(4000, 1), (4001, 2), (8000, 2), (8001, 3)])
def test_many_samples_are_thinned_evenly(monkeypatch: pytest.MonkeyPatch, count: int, stride: int) -> None:
    time = 1e-3 + 1e-6 * np.arange(count)
    ran = Trajectory(monkeypatch)
    found = fitting._by_trajectory(problem(Measured(time, np.ones(count), None), "fluid"))
    assert len(ran.observed) == (count - 1) // stride + 1
    assert found.measured.time[0] == pytest.approx(1e-3)
    assert np.diff(found.measured.time) == pytest.approx(stride * 1e-6)
    assert found.measured.time[-1] <= time[-1] + 1e-12


# -- the result --------------------------------------------------------------------------------------------------


def result(found: Solution) -> Any:
    stretch = Measured(TIMES, np.ones(COUNT), None)
    return fitting._result(found, problem(stretch), 9, stretch, (), ["a word"])


def test_an_estimate_has_its_interval_within_the_range() -> None:
    found = result(solution((0.5, 0.5), low=np.array([-0.3, 0.25]), high=np.array([0.75, 1.7])))
    assert found.estimate["kmin"] == fitting.Estimate(50.0, 0.0, 75.0)
    each = found.estimate["timer"]
    assert (each.value, each.low, each.high) == pytest.approx((1e-4, 1e-5 * 10**0.5, 1e-3))
    assert found.identifiable == {"kmin": False, "timer": False}
    assert [word.partition(":")[0] for word in found.words[-2:]] == ["kmin", "timer"]
    assert "a word" in found.words


@pytest.mark.parametrize(
    ("low", "high", "inside", "known", "at_bound"),
    [
        (0.4, 0.6, True, True, False),  # 40 to 60 about 50
        (0.4, 0.66, True, False, False),  # 52 % of the value is too wide
        (0.38, 0.62, True, True, False),
        (0.4, 0.6, False, False, True),
        (0.5, 0.9995, True, False, True),
        (0.0005, 0.5, True, False, True),
        (0.48, 0.52, True, True, False),
    ],
)
def test_what_is_known_has_a_narrow_interval_inside(
    low: float, high: float, inside: bool, known: bool, at_bound: bool
) -> None:
    found = result(solution(low=np.array([low, 0.49]), high=np.array([high, 0.51]), inside=np.array([inside, True])))
    assert found.identifiable == {"kmin": known, "timer": True}
    assert any(word.startswith("kmin: its interval ends at a bound") for word in found.words) is at_bound


@pytest.mark.parametrize(("low", "high", "known"), [(0.47, 0.988, True), (0.47, 0.9995, False), (0.0005, 0.03, False)])
def test_an_interval_at_a_bound_is_not_known_however_narrow(low: float, high: float, known: bool) -> None:
    """A thousandth of the range is the bound."""
    at = 0.98 if high > 0.5 else 0.02
    found = result(
        solution((at, 0.5), low=np.array([at - 0.01 if high > 0.5 else low, 0.49]), high=np.array([high, 0.51]))
    )
    assert found.identifiable["kmin"] is known


# -- which engine ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scheme", "options", "engine", "runs"),
    [
        (fc.DCQCN(), {}, "hybrid", 700),
        (fc.HPCC(), {}, "fluid", None),
        (fc.DCQCN(), {"engine": "packet"}, "packet", 300),
        (fc.DCQCN(), {"engine": "packet", "runs": 100}, "packet", 100),
        (fc.DCQCN(), {"runs": 1234}, "hybrid", 1234),
    ],
)
def test_chance_is_fitted_by_moments_and_the_rest_by_trajectory(
    monkeypatch: pytest.MonkeyPatch, scheme: Any, options: dict[str, Any], engine: str, runs: int | None
) -> None:
    asked = stood(monkeypatch, 0.1)
    trace = Measured(TIMES, np.ones(COUNT), None)
    make = lambda delay: fc.incast(2, scheme=scheme, delay=delay)  # noqa: E731
    fc.fit(trace, make, {"delay": ("1us", "9us")}, **options)
    ((how, given, found, *_),) = asked
    assert (how, given.engine, found) == ("trajectory" if runs is None else "moments", engine, runs)
    assert given.window == (0.0 if engine == "fluid" else pytest.approx(TIMES[-1] / 2), TIMES[-1])
    assert len(given.stretch.time) == (COUNT if engine == "fluid" else COUNT // 2)


def stood(monkeypatch: pytest.MonkeyPatch, residual: float) -> list[tuple[Any, ...]]:
    asked: list[tuple[Any, ...]] = []

    def by_trajectory(given: Any) -> Any:
        asked.append(("trajectory", given, None))
        return SimpleNamespace(residual=residual)

    monkeypatch.setattr(fitting, "_by_trajectory", by_trajectory)
    monkeypatch.setattr(fitting, "_by_moments", lambda given, *more: asked.append(("moments", given, *more)))
    return asked


@pytest.mark.parametrize(("residual", "moments"), [(0.249, False), (0.25, True), (0.6, True)])
def test_a_trajectory_far_off_is_fitted_by_its_moments(
    monkeypatch: pytest.MonkeyPatch, residual: float, moments: bool
) -> None:
    asked = stood(monkeypatch, residual)
    make = lambda delay: fc.incast(2, scheme=fc.HPCC(), delay=delay)  # noqa: E731
    fc.fit(Measured(TIMES, np.ones(COUNT), None), make, {"delay": ("1us", "9us")})
    assert [how for how, *_ in asked] == ["trajectory", "moments"][: 1 + moments]
    if moments:
        assert asked[1][2] == 300
        assert f"({residual:.0%} off)" in asked[1][3]


@pytest.mark.parametrize(("unknowns", "runs", "usual"), [(1, 99, 700), (3, 299, 700), (2, 199, 700), (4, 399, 700)])
def test_each_unknown_takes_a_hundred_runs(
    monkeypatch: pytest.MonkeyPatch, unknowns: int, runs: int, usual: int
) -> None:
    asked = stood(monkeypatch, 0.1)
    over = dict(list({"kmin": (1, 9), "kmax": (1e5, 2e5), "pmax": (0.1, 0.2), "g": (0.1, 0.2)}.items())[:unknowns])
    trace, scenario = Measured(TIMES, np.ones(COUNT), None), fc.incast(2, marking=fc.RED("5KB", "200KB", "1%"))
    with pytest.raises(InputError, match="runs"):
        fc.fit(trace, scenario, over, runs=runs)
    fc.fit(trace, scenario, over, runs=runs + 1)
    fc.fit(trace, scenario, over)
    fc.fit(trace, scenario, over, engine="packet")
    assert [found for _, _, found in asked] == [runs + 1, usual, max(300, 100 * unknowns)]


def test_a_window_between_samples_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    stood(monkeypatch, 0.1)
    trace = Measured(TIMES, np.ones(COUNT), None)
    for window, said in (((1.1e-5, 2.9e-5), True), ((1e-5, 2e-5), False)):
        if said:
            with pytest.raises(InputError, match="holds no samples"):
                fc.fit(trace, fc.incast(2), {"g": (0.1, 0.2)}, window=window)
        else:
            fc.fit(trace, fc.incast(2), {"g": (0.1, 0.2)}, window=window)
