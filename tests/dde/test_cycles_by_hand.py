"""Limit cycles by hand: extremes, meshes that agree, least periods, and how a branch steps, of written profiles."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fluidcc.dde import branch as branch_module
from fluidcc.dde import cycle as cycle_module
from fluidcc.dde.branch import _along, _Branch, _Point
from fluidcc.dde.cycle import _away, _compared, _Found, _highest, _minimal, _others, _repels, _resolved
from fluidcc.dde.delay_system import DelaySystem
from fluidcc.dde.hopf import Crossing
from fluidcc.dde.periodic import ONE, Profile, _largest, _phase, sampled
from fluidcc.errors import InputError

EVEN = np.linspace(0.0, 1.0, 9)
TURN = 2 * np.pi
EQUATION: Any = SimpleNamespace(states=("x",), vector=np.array([2.0, 0.3]))


def swing(times: int = 1, size: float = 1.0, shift: float = 0.0, count: int = 8, period: float = 3.0) -> Profile:
    """A profile of one state, 5 + sin, so many times in a period."""
    return sampled(
        lambda theta: 5 + size * np.sin(TURN * times * (theta - shift))[:, None], np.linspace(0, 1, count + 1), period
    )


def test_the_highest_value_is_that_of_a_parabola() -> None:
    """Between uneven nodes, across the end of the period, and a node itself where all are alike."""
    time = 2 + np.array([0.0, 0.4, 0.5, 0.7, 1.1, 1.4, 2.0, 2.4])
    x = 3 - 0.5 * (time - 2.63) ** 2
    assert _highest(time, np.append(x[:-1], x[0])) == pytest.approx(3.0, rel=1e-12)
    later = np.array([0.0, 0.3, 1.0, 1.6, 2.0])
    folded = np.where(later > 1.0, later - 2.0, later)  # the peak lies at -0.1, just before the period begins
    assert _highest(7 + later, 1 - 4 * (folded + 0.1) ** 2) == pytest.approx(1.0, rel=1e-12)
    ahead = np.where(later > 1.0, later - 2.0, later)
    assert _highest(later, 1 - 4 * (ahead - 0.12) ** 2) == pytest.approx(1.0, rel=1e-12)
    assert _highest(later, np.full(5, 2.5)) == 2.5


def test_multipliers_attract_repel_or_decide_nothing() -> None:
    """By a part in 10^5, in modulus; that of a shift in time is the nearest to 1, within 10^-4."""
    for modulus, repels, attracts in (
        (1.1, True, False),
        (1 + 2e-5, True, False),
        (1 + cycle_module._NEUTRAL, False, False),
        (1 + 0.5e-5, False, False),
        (1 - cycle_module._NEUTRAL, False, False),
        (1 - 0.5e-5, False, False),
        (1 - 2e-5, False, True),
    ):
        for turned in (1, -1, 1j):
            assert _repels(np.array([0.1, modulus * turned])) is repels
            made: Any = SimpleNamespace(multipliers=np.array([modulus * turned, 0.2]))
            assert cycle_module.Cycle.attracts.fget(made) is attracts  # type: ignore[attr-defined]
    assert _others(np.array([1.5, 1 + 0.9e-4, 1.2, 0.3])).tolist() == [1.5, 1.2, 0.3]
    assert _others(np.array([1 + 1e-5, 1 - 1e-6])).tolist() == [1 + 1e-5]
    for none in ([], [1 + 1.1e-4, 0.5], [-1.0]):
        with pytest.raises(InputError, match="no multiplier that is found is 1"):
            _others(np.array(none))


def test_six_multipliers_and_all_that_do_not_shrink_are_kept() -> None:
    small = np.array([0.1, -0.9, 0.3j, 0.2, 0.05, 0.4, 0.6, 0.01])
    assert _largest(small).tolist() == [-0.9, 0.6, 0.4, 0.3j, 0.2, 0.1]
    large = np.array([0.5, 1 - 0.5e-4, 2.0, -3.0, 1j, 1.5, 1.1, 0.2, 0.9])
    assert np.abs(_largest(large)).tolist() == pytest.approx([3, 2, 1.5, 1.1, 1, 1 - 0.5e-4, 0.9])
    least = [1 - ONE] * 8  # the least that does not shrink
    assert _largest(np.array([0.2, *least, 0.5])).real.tolist() == [*least, 0.5]


def test_a_course_is_compared_with_as_many_periods_as_it_has() -> None:
    """One of three periods is spoiled by a tenth of peak to peak; the period is off by a hundredth."""
    profile = swing(period=2.0)

    def course(share: np.ndarray) -> np.ndarray:
        return profile(3 * share) + np.where((share > 0.7) & (share < 0.8), 0.2, 0.0)[:, None]

    shape, time = _away(profile, course, 6.06)
    assert shape == pytest.approx(0.1, abs=0.02)
    assert time == pytest.approx(0.06 / 6.06, rel=1e-9)
    assert _away(profile, profile, 2.0) == (pytest.approx(0, abs=1e-9), 0.0)
    assert _away(profile, profile, 0.5)[1] == pytest.approx(3.0)  # never less than one


def test_a_run_shows_a_cycle_within_bounds_of_shape_and_period(monkeypatch: pytest.MonkeyPatch) -> None:
    found = _Found(swing(), 0.0)
    monkeypatch.setattr(cycle_module, "_resolved", lambda *_: found)
    for away, shown in (((2e-2, 1e-3), True), ((0.021, 0.0), False), ((0.0, 1.1e-3), False), ((1.0, 1.0), False)):
        monkeypatch.setattr(cycle_module, "_away", lambda *_, away=away: away)
        assert _compared(EQUATION, found.profile, 3.0) == (found, shown)


@pytest.mark.parametrize(("parts", "spoil"), [(1, 0.0), (2, 0.0), (3, 0.0), (12, 0.0), (4, 3e-6), (4, 1e-7)])
def test_the_least_period_is_a_whole_part(monkeypatch: pytest.MonkeyPatch, parts: int, spoil: float) -> None:
    """Parts that differ by a millionth of peak to peak are not alike."""
    profile = sampled(
        lambda theta: (np.sin(TURN * parts * theta) + spoil * np.sin(TURN * theta))[:, None], np.linspace(0, 1, 49), 6.0
    )
    found, begun = _Found(profile, 0.0), []

    def resolved(equation: Any, course: Any, period: float) -> Any:
        begun.append(period)
        return course(np.array([0.0, 0.25]))

    monkeypatch.setattr(cycle_module, "_resolved", resolved)
    got: Any = _minimal(EQUATION, found)
    if parts == 1 or spoil > 1e-6:
        assert got is found
        assert begun == []
    else:
        assert begun == [pytest.approx(6.0 / parts)]
        assert got == pytest.approx(np.array([[0.0], [1.0]]), abs=1e-6)


class Solver:
    """In place of the collocation: gives written profiles one after the other, and remembers the guesses."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, given: list[Any], residuals: list[float]) -> None:
        self.given, self.residuals, self.guesses = list(given), list(residuals), []
        monkeypatch.setattr(cycle_module, "solved", self.solve)
        monkeypatch.setattr(cycle_module, "residual", lambda equation, profile: self.residuals.pop(0))
        monkeypatch.setattr(cycle_module, "_minimal", lambda equation, found: found)
        for name in ("mesh_for", "refined"):
            monkeypatch.setattr(cycle_module, name, lambda course, count: np.linspace(0, 1, count + 1))

    def solve(self, equation: Any, vector: Any, guess: Profile) -> Any:
        assert vector is EQUATION.vector
        self.guesses.append(guess)
        each = self.given.pop(0) if self.given else None
        return each and (each, vector)


def test_meshes_are_tried_until_two_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is the larger of residual and difference; the next guess is the last solution, not the first."""
    begin = swing(size=1.5)
    a, b, c = swing(count=16, period=3.0), swing(count=32, period=3.0 * (1 + 1e-7)), swing(count=64, period=3.0)
    tries = Solver(monkeypatch, [a, b, c, c], [1e-12, 1e-12, 3e-10, 2e-10])
    found = _resolved(EQUATION, begin, 3.3)
    assert [len(each.mesh) - 1 for each in tries.guesses] == [16, 32, 64, 128]
    assert [each.period for each in tries.guesses] == pytest.approx([3.3, 3.0, b.period, 3.0], rel=1e-12)
    assert np.ptp(tries.guesses[0].x) == pytest.approx(3.0, rel=1e-2)
    assert np.ptp(tries.guesses[1].x) == pytest.approx(2.0, rel=1e-2)
    assert found.profile is c
    assert found.error == pytest.approx(2e-10)


def test_the_best_of_all_meshes_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Periods differ by 10^-6, 10^-7 and then more again."""
    periods = 3 * (1 + np.array([0, 1e-6, 1.1e-6, 3e-6, 6e-6, 9e-6, 2e-5]))
    each = [swing(count=8, period=period) for period in periods]
    Solver(monkeypatch, each, [1e-9] * 7)
    found = _resolved(EQUATION, swing(), 3.0)
    assert found.profile is each[2]
    assert found.error == pytest.approx(1e-7, rel=1e-3)


def test_a_mesh_without_a_solution_begins_with_the_guess_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """An equilibrium is none either; nor is a neighbour one half of a peak to peak away."""
    begin, still = swing(size=1.5), swing(size=0.0)
    tries = Solver(monkeypatch, [swing(), still, None, swing(size=4.0), swing(), swing(), swing()], [0.0] * 5)
    _resolved(EQUATION, begin, 3.3)
    assert [each.period for each in tries.guesses] == pytest.approx([3.3, 3.0, 3.3, 3.3, 3.0, 3.3, 3.0])
    tries = Solver(monkeypatch, [None] * 9, [])
    with pytest.raises(InputError, match="no periodic solution is found from there with up to 256"):
        _resolved(EQUATION, begin, 3.3)
    assert len(tries.guesses) == 5


def test_what_no_mesh_makes_sure_of_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for residual, good in ((0.9e-5, True), (1.1e-5, False)):
        Solver(monkeypatch, [swing()] * 7, [residual] * 7)
        if good:
            assert _resolved(EQUATION, swing(), 3.0).error == residual
            continue
        with pytest.raises(InputError, match="uncertain by 1e-05; it moves faster than 1024"):
            _resolved(EQUATION, swing(), 3.0)


def test_states_along_a_step_move_in_logarithms_if_of_one_sign() -> None:
    """1 to 4, half way: 2; -1 to -4: -2; -1 to 4 and 0 to 4: by straight lines. Beyond the end likewise."""
    first, second = np.array([[1.0, -1.0, -1.0, 0.0, 3.0]]), np.array([[4.0, -4.0, 4.0, 4.0, 3.0]])
    assert _along(first, second, 0.5) == pytest.approx(np.array([[2.0, -2.0, 1.5, 2.0, 3.0]]))
    assert _along(first, second, 1.5) == pytest.approx(np.array([[8.0, -8.0, 6.5, 6.0, 3.0]]))
    other = _along(np.array([[1.0], [-1.0]]), np.array([[4.0], [-4.0]]), 0.5)
    assert other == pytest.approx(np.array([[2.5], [-2.5]]))  # a state with both signs along the period


def a_branch(value: float = 1.0, goal: float = 2.0) -> Any:
    near: Any = SimpleNamespace(parameter="k", value=value, state=np.array([5.0]), period=3.0)
    equation: Any = SimpleNamespace(parameters={"tau": 0.3, "k": goal}, lags=("tau",), states=("x",))
    return _Branch(equation, near)


def test_scales_of_a_branch() -> None:
    made = a_branch(-4.0, 2.0)
    assert (made.column, made.goal, made.way, made.span, made.far) == (1, 2.0, 6.0, 4.0, 184.0)
    points = [_Point(swing(), value) for value in (1.0, 2.0, 3.0)]
    assert made._beyond(points[0], points[2])
    assert made._beyond(points[2], points[0])
    assert made._beyond(points[0], points[1])
    assert not made._beyond(points[0], points[0])
    assert not made._beyond(points[2], points[2])
    still = made._constant()
    assert (still.period, len(still.mesh), still.x.tolist()) == (3.0, 17, [[5.0]] * 128)


def test_a_step_goes_on_as_the_last_one_went() -> None:
    """By its share, in state, period and parameter; what lies too far off its end is refused, a short step later."""
    made, solves = a_branch(), []
    old, new = _Point(swing(size=0.8, period=2.9), 1.2), _Point(swing(size=1.0, period=3.0), 1.3)

    def end(bent: float) -> Any:
        def solve(guess: Profile, value: float, along: Any) -> _Point:
            solves.append((guess, value, along))
            off = sampled(lambda theta: bent * 0.2 * np.sin(TURN * theta)[:, None], guess.mesh, 1.0).x
            return _Point(Profile(guess.mesh, guess.x + off, guess.period), value)

        return solve

    made._solved = end(0.0)
    step = made._next(old, new, 0.5)
    guess, value, along = solves[-1]
    assert step[1] == pytest.approx(0.0, abs=1e-9)
    assert (value, guess.period, along.value, along.period) == pytest.approx((1.35, 3.05, 0.1, 0.1))
    assert (along.column, along.span) == (1, 2.0)
    theta = np.linspace(0, 1, 50)
    wanted = new.profile(theta) * (new.profile(theta) / old.profile(theta)) ** 0.5
    assert guess(theta) == pytest.approx(wanted, abs=1e-4)
    difference = sampled(lambda t: 0.2 * np.sin(TURN * t)[:, None], guess.mesh, 1.0).x
    assert along.x == pytest.approx(difference, abs=1e-4)

    def away(bent: float, share: float) -> float:
        """Distances by hand: of states in peak to peak, the period in itself, the parameter in the span of 2."""
        size = np.ptp(guess.x) * 0 + 2.0
        rms = float(np.sqrt(((difference / size) ** 2).mean()))
        return bent * rms / (share * float(np.sqrt(rms**2 + (0.1 / 3.0) ** 2 + (0.1 / 2.0) ** 2)))

    for bent, share in ((0.1, 0.5), (0.1, 1.0), (0.1, 0.125), (0.15, 0.5), (0.17, 0.5), (0.14, 0.125), (0.16, 0.125)):
        made._solved = end(bent)
        step = made._next(old, new, share)
        wanted_off = away(bent, share)
        assert (step is None) == (wanted_off > (1.0 if share <= 0.125 else 0.3))
        if step is not None:
            assert step[1] == pytest.approx(wanted_off, rel=1e-2)
    made._solved = lambda *_: None
    assert made._next(old, new, 0.5) is None
    assert made._next(_Point(swing(period=3.0), 1.0), _Point(swing(period=1.0), 1.1), 0.5) is None  # no period is 0


def test_between_two_points_the_amplitude_is_a_root_near_the_first() -> None:
    """From rest a quarter of the way in the parameter is half of it in size; else a quarter."""
    made, begun, times = a_branch(), [], {"size": 1.0, "period": 1.0}

    def solve(guess: Profile, value: float, along: Any) -> _Point:
        begun.append((guess, value, along))
        return _Point(Profile(guess.mesh, guess.x * times["size"], guess.period * times["period"]), value)

    made._solved = solve
    new = _Point(swing(size=1.0, period=4.0), 5.0)
    for old, size in ((_Point(made._constant(), 1.0), 0.5), (_Point(swing(size=0.2, period=3.0), 1.0), 0.4)):
        assert made._between(old, new) is not None
        guess, value, along = begun[-1]
        assert (value, along, guess.period) == (2.0, None, pytest.approx(3.25))
        assert np.ptp(guess.x) == pytest.approx(2 * size, rel=0.02)
    times["size"] = 1.11  # 0.6 of 0.9 at the most: too far
    assert made._between(old, new) is None
    for longer, good in ((1.29, True), (1.31, False), (0.71, True), (0.69, False)):
        times.update(size=1.0, period=longer)
        assert (made._between(old, new) is not None) is good
    count = len(begun)
    assert made._between(_Point(made._constant(), 2 - 1e-5), _Point(swing(), 3.0)) is None  # too small to be told
    assert len(begun) == count


def test_a_branch_takes_longer_steps_where_it_is_straight(monkeypatch: pytest.MonkeyPatch) -> None:
    """One and a half of the last where it bends by less than 0.075; half of it where none is found; then the goal."""
    made, shares = a_branch(1.0, 2.0), []
    answers = iter([0.0, 0.07, None, 0.08, None, None, 0.1])
    first = _Point(swing(), 1.01)
    made._first = lambda old, mode: first

    def following(old: _Point, new: _Point, share: float) -> Any:
        shares.append(share)
        bent = next(answers, 0.0)
        return None if bent is None else (_Point(swing(), new.value + share * (new.value - old.value)), bent)

    made._next = following
    found = swing()
    made._between = lambda old, new: found
    assert made.followed(np.array([1.0])) is found
    assert shares[:8] == [1.0, 1.5, 1.5, 0.75, 1.0, 0.5, 0.25, 1.0]
    made._next = lambda *_: None
    assert made.followed(np.array([1.0])) is None
    made._first = lambda old, mode: None
    assert made.followed(np.array([1.0])) is None


def test_the_first_cycle_is_tried_a_tenth_as_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight sizes at most, as long as it is beyond the goal and none lies between."""
    made, sizes = a_branch(1.0, 2.0), []

    def first(old: _Point, mode: np.ndarray) -> _Point:
        sizes.append(float(mode[0]))
        return _Point(swing(), 3.0)

    made._first, made._between = first, lambda old, new: None
    assert made.followed(np.array([2.0])) is None
    assert sizes == pytest.approx([0.02 * 0.1**k for k in range(8)])
    found = swing()
    made._between = lambda old, new: found if len(sizes) >= 10 else None
    assert made.followed(np.array([2.0])) is found
    assert len(sizes) == 10


def test_a_run_has_a_bound_on_lags_and_a_second_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only lags that depend on the state have one, four times those at the begin, unless it is given."""
    asked: list[Any] = []
    monkeypatch.setattr(cycle_module, "_begin", lambda equation, past: np.array([1.0]))
    monkeypatch.setattr(cycle_module, "_scale", lambda equation, begin: 2.0)

    def period(equation: Any, past: Any, until: float, longest_lag: Any) -> Any:
        asked.append((until, longest_lag))
        return None, "no cycle"

    monkeypatch.setattr(cycle_module, "_period", period)
    for depends, given, bound in ((False, None, None), (False, 9.0, 9.0), (True, None, 12.0), (True, 9.0, 9.0)):
        equation: Any = SimpleNamespace(state_dependent=depends, lags_at=lambda begin: np.array([1.0, 3.0]))
        for until, times in ((None, [120.0, 480.0]), (7.0, [7.0])):
            asked.clear()
            with pytest.raises(InputError, match="no cycle"):
                cycle_module.settled(equation, [1.0], until, given)
            assert asked == [(time, bound) for time in times]


class Runs(dict[str, Any]):
    """Solutions of one state with so many samples, of a written wave; all that were asked for."""

    error = 0.0

    def __init__(self, asked: list[int]) -> None:
        super().__init__()
        self.asked = asked

    def __call__(self, equation: Any, until: float, *, samples: int, **rest: Any) -> Any:
        assert rest == {"past": "past", "tolerance": 1e-6, "longest_lag": 3.0}
        self.asked.append(samples)
        times = np.linspace(0, until, 401)
        return self | {"time": SimpleNamespace(values=times), "x": SimpleNamespace(values=np.sin(TURN * times))}

    def __or__(self, other: Any) -> Any:
        made = Runs(self.asked)
        made.update(other)
        return made


def test_four_times_the_samples_until_they_resolve_a_period(monkeypatch: pytest.MonkeyPatch) -> None:
    """A period must have 200 samples of the whole run; where none repeats, samples do not help if it is resolved."""
    runs = Runs([])
    monkeypatch.setattr(cycle_module, "solve", runs)
    found: list[Any] = [("course", 2.0)]
    ups = np.append(np.arange(19.0), 18.75)
    resolved, periods = [True], list[float]()
    monkeypatch.setattr(cycle_module, "_crossings", lambda *_: ups)
    monkeypatch.setattr(cycle_module, "_repeating", lambda *_: found[0])
    monkeypatch.setattr(cycle_module, "_well_sampled", lambda _, __, period: periods.append(period) or resolved[0])

    def asked(until: float) -> Any:
        runs.asked.clear()
        return cycle_module._period(EQUATION, "past", until, 3.0)

    assert asked(200.0) == (("course", 2.0), "")  # 20000 over 200: 200 in a period
    assert runs.asked == [20_000]
    assert asked(201.0) == (("course", 2.0), "")
    assert runs.asked == [20_000, 80_000]
    with pytest.raises(InputError, match="1280000 samples do not resolve"):
        asked(13_000.0)
    assert runs.asked == [20_000, 80_000, 320_000, 1_280_000]
    assert set(periods) == {2.0}
    found[0] = None
    assert asked(100.0)[0] is None
    assert runs.asked == [20_000]
    assert periods[-1] == 0.75  # the last of those that do not repeat
    resolved[0] = False
    assert asked(100.0)[0] is None
    assert runs.asked == [20_000, 80_000, 320_000, 1_280_000]
    ups = ups[:5]
    assert "no 5 periods in a row" in asked(100.0)[1]
    assert runs.asked == [20_000]
    ups = np.arange(6.0)
    asked(100.0)
    assert len(runs.asked) == 4


def test_a_solution_is_kept_in_step_with_its_guess() -> None:
    """The integral of the guess's slope times what is asked, over its peak to peak squared, of polynomials exactly."""
    mesh = np.array([0.0, 0.3, 0.45, 1.0])
    guess = sampled(lambda t: np.stack([t**2 * (1 - t) ** 2, 2 * t * (1 - t)], axis=1), mesh, 2.0)
    asked = sampled(lambda t: np.stack([t * (1 - t), t**2 * (1 - t)], axis=1), mesh, 2.0)
    t = np.linspace(0, 1, 200_001)
    slopes = 2 * t * (1 - t) * (1 - 2 * t), 2 - 4 * t
    shown = t * (1 - t), t**2 * (1 - t)
    sizes = np.ptp(guess.x, axis=0)
    wanted = sum(np.trapezoid(a * b, t) / size**2 for a, b, size in zip(slopes, shown, sizes, strict=True))
    assert _phase(guess) @ asked.x.ravel() == pytest.approx(wanted, rel=1e-8)
    assert _phase(guess) @ guess.x.ravel() == pytest.approx(0.0, abs=1e-12)


# -- where a branch begins ----------------------------------------------------------------------------------------

TURNING = DelaySystem(np.array([[0.0, -2.0], [2.0, 0.0]]), np.zeros((0, 2, 2)), np.zeros(0))


def at_hopf(monkeypatch: pytest.MonkeyPatch, system: Any = TURNING, still: float = 0.0, **changed: Any) -> Any:
    """The mode at a crossing of x' = -2 y, y' = 2 x with frequency 2, of an equation that stands still there."""
    asked: list[Any] = []
    kernels = SimpleNamespace(still=lambda x, vector: still + 0.0 * x)
    there = SimpleNamespace(kernels=kernels, vector=np.array([0.5]))
    equation: Any = SimpleNamespace(
        parameters={"k": 0.7}, states=("x", "y"), at=lambda values: asked.append(values) or there
    )
    monkeypatch.setattr(branch_module, "systems", lambda equation, x, vectors: [system])
    near = Crossing(0.5, 2.0, "hopf", 2, np.array([3.0, 0.0]), "k")._replace(**changed)
    found = branch_module._mode(equation, near)
    assert asked == [{"k": near.value}]
    return found


def test_a_mode_turns_and_is_as_large_as_a_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """y lags x by a quarter; the smallest of what a state is of its own size, or 1 where all states are 0."""
    mode = at_hopf(monkeypatch)
    assert mode[1] / mode[0] == pytest.approx(-1j)
    assert abs(mode[0]) == pytest.approx(3.0)
    assert np.abs(at_hopf(monkeypatch, state=np.array([3.0, -0.5]))) == pytest.approx([0.5, 0.5])
    assert np.abs(at_hopf(monkeypatch, state=np.zeros(2))) == pytest.approx([1.0, 1.0])
    alone = DelaySystem(np.array([[0.0, -4.0], [1.0, 0.0]]), np.zeros((0, 2, 2)), np.zeros(0))
    assert np.abs(at_hopf(monkeypatch, alone, state=np.zeros(2))) == pytest.approx([1.0, 0.5])


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"kind": "zero"}, "kind 'hopf'"),
        ({"parameter": "m"}, "another equation, along m"),
        ({"state": np.zeros(3)}, "another equation"),
        ({"frequency": 2.0 + 1e-4}, "no root of this equation is on the axis"),
        ({"still": 1e-3}, "no root of this equation is on the axis"),
    ],
)
def test_a_branch_begins_at_a_crossing_of_its_own(monkeypatch: pytest.MonkeyPatch, changed: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        at_hopf(monkeypatch, **changed)
    at_hopf(monkeypatch, frequency=2.0 + 1e-6, still=1e-6)  # roundings apart


@pytest.mark.parametrize(
    ("way", "found", "says"), [(1e-9, True, "no size yet"), (0.5, False, "does not lead to"), (0.5, True, "")]
)
def test_a_branch_leads_to_its_goal_or_not(monkeypatch: pytest.MonkeyPatch, way: float, found: bool, says: str) -> None:
    """Nearer to where it begins than a part in 10^7 there is no cycle yet."""
    profile = SimpleNamespace(period=4.0)
    made = SimpleNamespace(way=way, span=2.0, goal=1.5, followed=lambda mode: profile if found else None)
    monkeypatch.setattr(branch_module, "_mode", lambda equation, near: "mode")
    monkeypatch.setattr(branch_module, "_Branch", lambda equation, near: made)
    near: Any = SimpleNamespace(parameter="k", value=1.0)
    if says:
        with pytest.raises(InputError, match=says):
            branch_module.from_hopf(EQUATION, near)
        return
    assert branch_module.from_hopf(EQUATION, near) == (profile, 4.0)


def test_the_first_cycle_is_the_mode_about_the_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the crossing's period, and as far as the mode says; a cycle at a lag below 0 is none, nor one at rest."""
    near = Crossing(0.5, 2.0, "hopf", 2, np.array([3.0, 1.0]), "k")
    equation: Any = SimpleNamespace(parameters={"k": 0.7}, vector=np.array([0.7]), lags=("k",))
    asked: list[Any] = []
    answers: list[Any] = []

    def solved(equation: Any, vector: Any, guess: Any, along: Any) -> Any:
        asked.append((vector.copy(), guess, along))
        return answers[-1]

    monkeypatch.setattr(branch_module, "solved", solved)
    branch = _Branch(equation, near)
    theta = np.array([0.0, 0.3, 0.8])
    turn = 2 * np.pi * theta
    mode = np.array([0.2, 0.1j])
    rest = branch._constant()
    assert rest(theta) == pytest.approx(np.tile([3.0, 1.0], (3, 1)))
    assert rest.period == pytest.approx(np.pi)
    moving = SimpleNamespace(moves=True)
    for answer, kept in (
        (None, None),
        ((SimpleNamespace(moves=False), np.array([0.6])), None),
        ((moving, np.array([-0.1])), None),
        ((moving, np.array([0.6])), (moving, 0.6)),
    ):
        answers.append(answer)
        assert branch._first(_Point(rest, 0.5), mode) == kept
    vector, guess, along = asked[-1]
    assert vector.tolist() == [0.5]
    expected = np.stack([3 + 0.2 * np.cos(turn), 1 - 0.1 * np.sin(turn)], axis=1)
    assert guess(theta) == pytest.approx(expected, abs=1e-9)
    assert guess.period == pytest.approx(np.pi)
    assert along.x == pytest.approx(guess.x - [3.0, 1.0])
    assert (along.period, along.value, along.column, along.span) == (0.0, 0.0, 0, 0.7)
    equation.lags = (1.0,)
    answers.append((moving, np.array([-0.1])))
    assert branch._first(_Point(rest, 0.5), mode) == (moving, -0.1)
