"""The last period of a run, of signals that are written here: a cycle by formula, reached from far away."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from fluidcc.dde import Equation, solution
from fluidcc.dde import cycle as cycle_module
from fluidcc.dde.cycle import _crossings, _repeating, _scale, _well_sampled, settled
from fluidcc.errors import InputError

TIMES = np.linspace(0.0, 96.0, 19_201)  # 24 periods, so that half of it has as many ups as downs
PERIOD = 4.0
EQUATION: Any = SimpleNamespace()  # which a run that moves is not asked for


def wave(times: np.ndarray = TIMES, period: float = PERIOD) -> np.ndarray:
    """Two states: about 2 and about -3, a quarter of a period and a half apart."""
    turn = 2 * np.pi * times / period
    return np.stack([2 + np.sin(turn), -3 + 0.1 * np.cos(turn) + 0.02 * np.sin(2 * turn)], axis=1)


@pytest.mark.parametrize("far", [0.0, 50.0, -1000.0])
def test_a_past_far_from_the_cycle(far: float) -> None:
    """A mean of the whole run would be passed seldom, or never: only the later half is where the run ends up."""
    x = wave() + far * np.exp(-TIMES / 2)[:, None]
    ups = _crossings(EQUATION, TIMES, x, 1e-5)
    late = ups[ups > 50]
    assert late == pytest.approx(PERIOD * np.arange(13, 26)[: len(late)], abs=1e-3)
    assert len(late) >= 11
    found = _repeating(TIMES, x, ups)
    assert found is not None
    course, period = found
    assert period == pytest.approx(PERIOD, rel=1e-5)
    shares = np.linspace(0, 1, 9)
    assert course(shares) == pytest.approx(wave(shares * PERIOD), abs=1e-3)
    assert course(shares - 3) == pytest.approx(wave(shares * PERIOD), abs=1e-3)


def test_the_state_that_moves_most_of_its_own_size_leads() -> None:
    """The first swings by 2 of 1003, the second by 0.2 of 3.1: crossings are the second's, a quarter later."""
    x = wave() + np.array([1000.0, 0.0])
    x[:, 1] = -3 - 0.1 * np.cos(2 * np.pi * TIMES / PERIOD)
    ups = _crossings(EQUATION, TIMES, x, 1e-5)
    assert (ups % PERIOD) == pytest.approx(PERIOD / 4, abs=1e-3)


def test_a_period_of_several_crossings() -> None:
    """A low and a high swing in turn: the mean is passed twice a period, and twice is what repeats."""
    x = (np.sin(2 * np.pi * TIMES / PERIOD) + 0.3 * np.sin(np.pi * TIMES / PERIOD))[:, None]
    found = _repeating(TIMES, x, _crossings(EQUATION, TIMES, x, 1e-5))
    assert found is not None
    assert found[1] == pytest.approx(2 * PERIOD, rel=1e-5)


@pytest.mark.parametrize("spoiled", ["pace", "swing", "other state", "too short"])
def test_what_does_not_repeat_is_no_cycle(spoiled: str) -> None:
    """Periods that become 1 % longer, swings that grow by 2 % in each, drift of the state that does not lead."""
    if spoiled == "pace":
        x = wave(20 * np.log1p(TIMES / 20) * PERIOD, PERIOD)
    elif spoiled == "swing":
        x = np.array([2, -3]) + (wave() - [2, -3]) * np.exp(0.005 * TIMES)[:, None]
    elif spoiled == "other state":
        x = wave() + [[0, 0.001]] * TIMES[:, None]  # 0.004 of 0.2 each, so 0.016 in four
    else:
        x = wave()
    ups = _crossings(EQUATION, TIMES, x, 1e-5)
    for unit in (1e-6, 1.0, 1e6):  # of time
        assert _repeating(TIMES * unit, x, (ups[-5:] if spoiled == "too short" else ups) * unit) is None
        assert _repeating(TIMES * unit, wave(), PERIOD * unit * np.array([1, 2, 3, 4, 5, 6.0005])) is not None
    assert _repeating(TIMES, wave(), PERIOD * np.arange(1, 7.0)) is not None  # five periods are enough
    assert _repeating(TIMES, wave(), PERIOD * np.array([1.01, 2, 3, 4, 5, 6])) is None  # and needed
    assert _repeating(TIMES, wave(), PERIOD * np.array([0.5, 2, 3, 4, 5, 6, 7])) is not None  # no more


def test_samples_that_resolve_a_period_and_that_do_not() -> None:
    """Every second of 40 a period misses 1.2 % at the peaks of pchip's line, of 200 next to nothing."""
    for each, enough in ((200, True), (12, False)):
        times = np.arange(0, 40, PERIOD / each)
        assert _well_sampled(times, wave(times), PERIOD) is enough
    early = np.where(TIMES < 50, np.sin(1e3 * TIMES), 1.0)[:, None] * wave()  # what was before does not count
    assert _well_sampled(TIMES, early, PERIOD)


def test_the_scale_is_of_the_longest_lag_or_the_fastest_part() -> None:
    """Four lags, or 2 pi over the norms of the derivatives: x' = -3 x + 4 x(t - tau)."""
    for tau, scale in ((0.01, 2 * np.pi / 4), (2.0, 8.0)):
        slow = Equation(lambda t, x, past, p: [-3 * x[0] + 4 * past[0][0]], [tau])
        assert _scale(slow, np.array([1.0])) == pytest.approx(scale)


def test_a_run_at_rest_is_no_cycle() -> None:
    """Nearer than a part in 10^5 of the largest that the state ever was."""
    rests = Equation(lambda t, x, past, p: [-x[0] + 0 * past[0][0]], [1.0])
    x = 100 + np.where(TIMES < 50, 0.0, 4e-4 * np.sin(TIMES))[:, None]
    with pytest.raises(InputError, match="come to rest; it is no cycle"):
        _crossings(rests, TIMES, x, 1e-5)
    assert len(_crossings(rests, TIMES, 100 + 2 * (x - 100), 1e-6)) > 5
    grows = Equation(lambda t, x, past, p: [x[0] + 0 * past[0][0]], [1.0])
    with pytest.raises(InputError, match="nothing stays at rest"):
        _crossings(grows, TIMES, x, 1e-5)
    with pytest.raises(InputError, match="longest_lag"):
        settled(Equation(lambda t, x, past, p: [-past[0][0]], [lambda x, p: x[0] ** 2]), [0.0], 1.0, None)


class Run(dict[str, Any]):
    """A solution of two states, that is uncertain by so much of them."""

    def __init__(self, error: float) -> None:
        super().__init__(time=SimpleNamespace(values=TIMES))
        self |= {name: SimpleNamespace(values=values) for name, values in zip("ab", wave().T, strict=True)}
        self.error = error


@pytest.mark.parametrize(("error", "flat"), [(0.0, 1e-5), (0.9e-6, 1e-5), (1.1e-6, 1.1e-5), (5e-3, 5e-2)])
def test_a_run_rests_where_it_moves_by_less_than_it_is_uncertain(
    monkeypatch: pytest.MonkeyPatch, error: float, flat: float
) -> None:
    """Ten times as much, and 1e-5 at least."""
    heard: list[float] = []

    def crossings(equation: Any, times: Any, x: Any, flat: float) -> Any:
        heard.append(flat)
        return _crossings(equation, times, x, 1e-5)

    monkeypatch.setattr(cycle_module, "solve", lambda *_, **__: Run(error))
    monkeypatch.setattr(cycle_module, "_crossings", crossings)
    found, words = cycle_module._period(cast(Any, SimpleNamespace(states=("a", "b"))), None, 96.0, None)
    assert heard == pytest.approx([flat])
    assert found is not None
    assert found[1] == pytest.approx(PERIOD, rel=1e-5)
    assert words == ""


def test_a_run_that_is_too_uncertain_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cycle_module, "solve", lambda *_, **__: Run(5.1e-3))
    with pytest.raises(InputError, match=r"limit_cycle: the run is uncertain by 0\.005 of"):
        cycle_module._period(cast(Any, SimpleNamespace(states=("a", "b"))), None, 96.0, None)


@pytest.mark.parametrize(
    ("lags", "refused"),
    [
        ([1.0, 4.0], None),
        ([1.0 * (1 - 1e-9), 4.0 * (1 + 1e-9)], None),  # roundings apart
        ([1.0 * (1 - 2e-9), 4.0], "as short as 1, and the step is 1; give dt=0.5"),
        ([1.0, 4.0 * (1 + 2e-9)], "longest_lag: 4, but a lag reaches 4"),
        ([0.0, 4.0], "one turns 0 on the way"),
        ([-0.5, 4.0], "one turns negative, -0.5, on the way"),
    ],
)
def test_lags_of_a_run_lie_between_its_step_and_their_bound(lags: list[float], refused: str | None) -> None:
    """Take the longest of all states and points; lags that do not depend on the state are not looked at."""
    kernels = SimpleNamespace(lags=lambda x, vector: x * vector)
    equation: Any = SimpleNamespace(state_dependent=True, kernels=kernels)
    states = np.array([[[4.0, 8.0]], [[2 * lags[0], 4 * lags[1]]]])  # the first has lags of 2
    vectors = np.array([[0.5], [0.25]])
    if refused is None:
        solution._check_lags(equation, vectors, states, 1.0, 4.0)
        return
    with pytest.raises(InputError, match=refused):
        solution._check_lags(equation, vectors, states, 1.0, 4.0)
    equation.state_dependent = False
    solution._check_lags(equation, vectors, states, 1.0, 4.0)
