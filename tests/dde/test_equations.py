"""Solutions, equilibria, linear parts, margins and charts of equations that are no networks."""

from __future__ import annotations

import math
import shutil

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import fluidcc as fc
from tests.dde.equations import BLOOD, HAYES, NEAR

STEPS = 1e-9  # of solutions in pieces that are polynomials, to which the method is exact
ROUNDING = 1e-12
INTEGRATED = 1e-5


def lag_alone(t, x, past, p):
    return [-p.k * past[0][0]]


def predator(t, x, past, p):
    return [
        x[0] * (p.r1 - p.a11 * past[0][0] - p.a12 * x[1]),
        x[1] * (-p.r2 + p.a21 * x[0] - p.a22 * x[1]),
    ]


MAY = {"r1": 1.0, "a11": 0.5, "a12": 0.5, "r2": 0.5, "a21": 1.0, "a22": 0.25, "tau": 2.0}


PREY = fc.delay.Equation(predator, ["tau"], MAY, states=["prey", "predator"])


def may():
    return PREY


def test_by_the_method_of_steps():
    """x' = -x(t - 1) from 1: 1 - t, then 1 - t + (t-1)^2/2, then minus (t-2)^3/6."""
    run = fc.delay.solve(HAYES, 3.0, past=[1.0], samples=300)
    t = run["time"].values
    exact = 1 - t + np.where(t > 1, (t - 1) ** 2 / 2, 0) - np.where(t > 2, (t - 2) ** 3 / 6, 0)
    assert np.abs(run["x"].values - exact).max() < STEPS
    assert run.error < STEPS


def test_values_side_by_side():
    """Of a parameter that is a lag, with a past that moves: each is what it is alone."""
    equation = HAYES

    def past(t):
        return [jnp.cos(t)]

    both = fc.delay.solve(equation, 5.0, past=past, over={"tau": [0.7, 1.4]}, samples=100)
    for tau in (0.7, 1.4):
        alone = fc.delay.solve(equation.at(tau=tau), 5.0, past=past, samples=100)
        assert both["x"].sel(tau=tau).values == pytest.approx(alone["x"].values, abs=1e-6)
    # cos is a solution where k = 1 and tau = pi / 2: its derivative is -sin t = -cos(t - pi / 2).
    goes_on = fc.delay.solve(equation.at(tau=np.pi / 2), 20.0, past=past, tolerance=1e-9)
    assert np.abs(goes_on["x"].values - np.cos(goes_on["time"].values)).max() < 1e-7


def test_a_lag_of_zero_is_no_lag():
    """Against scipy's integration of the ordinary equation."""
    run = fc.delay.solve(may().at(tau=0.0), 30.0, past={"prey": 0.3, "predator": 0.4}, tolerance=1e-8)
    p = {name: value for name, value in MAY.items()}
    ordinary = solve_ivp(
        lambda t, x: [
            x[0] * (p["r1"] - p["a11"] * x[0] - p["a12"] * x[1]),
            x[1] * (-p["r2"] + p["a21"] * x[0] - p["a22"] * x[1]),
        ],
        (0, 30),
        [0.3, 0.4],
        t_eval=run["time"].values,
        rtol=1e-10,
        atol=1e-12,
    )
    assert run["prey"].values == pytest.approx(ordinary.y[0], rel=1e-6)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cc") is None, reason="jitcdde compiles its equations, and there is no C compiler")
def test_against_jitcdde(tmp_path, monkeypatch):
    from jitcdde import jitcdde, t, y

    monkeypatch.chdir(tmp_path)  # its build reads a pyproject.toml that it finds here
    theirs = jitcdde(
        [y(0) * (1 - y(0, t - 2) / 2 - y(1) / 2), y(1) * (y(0) - y(1) / 4 - 0.5)],
        delays=[0, 2.0],
        max_delay=2.0,
        verbose=False,
    )
    theirs.compile_C(simplify=False, verbose=False)
    theirs.constant_past([0.3, 0.4])
    theirs.set_integration_parameters(atol=1e-10, rtol=1e-9, first_step=1e-3, min_step=1e-12, max_step=0.1)
    theirs.step_on_discontinuities()
    ours = fc.delay.solve(may(), 40.0, past=[0.3, 0.4], tolerance=1e-8)
    late = [20.0, 26.0, 33.0, 40.0]
    expected = np.array([theirs.integrate(at) for at in late])
    found = ours.dataset.sel(time=late, method="nearest")
    assert found["time"].values == pytest.approx(late, abs=1e-12)
    assert np.stack([found["prey"], found["predator"]], axis=1) == pytest.approx(expected, rel=INTEGRATED)


def test_equilibria_and_linear_part():
    """Against what one solves by hand."""
    found = fc.delay.equilibria(may(), {"prey": (-0.5, 3), "predator": (-0.5, 3)})
    assert found == pytest.approx(np.array([[0, 0], [0.8, 1.2], [2, 0]]), abs=1e-9)
    system = fc.delay.linearize(may(), at={"prey": 0.7, "predator": 1.1})
    assert pytest.approx(np.array([[0, -0.4], [1.2, -0.3]]), abs=ROUNDING) == system.A0
    assert system.A[0] == pytest.approx(np.array([[-0.4, 0], [0, 0]]), abs=ROUNDING)
    assert system.tau.tolist() == [2.0]


def test_margins_of_an_integrator():
    """k e^(-s tau) / s: pi / (2 k tau), pi/2 - k tau, pi / (2 k) - tau."""
    k, tau = 0.8, 0.9
    equation = HAYES.at(k=k, tau=tau)
    found = fc.delay.margins(equation, "tau", at=[0.0])
    assert found.stable
    assert found.gain.value == pytest.approx(np.pi / (2 * k * tau), rel=1e-9)
    assert found.phase.value == pytest.approx(np.pi / 2 - k * tau, rel=1e-9)
    assert found.delay.value == pytest.approx(np.pi / (2 * k) - tau, rel=1e-9)
    least = fc.delay.critical_delay(equation, 0, at=[0.0])
    assert least.delay == pytest.approx(np.pi / (2 * k), rel=1e-12)
    assert fc.delay.roots(equation.at(tau=np.pi / (2 * k)), 2, at=[0.0]).s.real == pytest.approx([0, 0], abs=1e-12)


def test_chart_of_a_lag():
    """Mackey and Glass: the boundary of a chart over a lag is traced, though its steps may lead nowhere (NaN)."""
    found = fc.delay.chart(BLOOD, {"tau": np.linspace(1, 20, 5), "n": np.linspace(4, 14, 5)}, at=[1.0])
    tau, n = found["boundary"].values.T
    slope = 0.1 * (n / 2 - 1)  # x' = -slope x(t - tau) - 0.1 x
    w = np.sqrt(slope**2 - 0.01)
    assert tau == pytest.approx(np.arccos(-0.1 / slope) / w, rel=1e-6)


def test_chart():
    """Of x' = -k x(t - tau): stable below k tau = pi / 2; the boundary is on it, and points alone agree."""
    equation = HAYES
    over = {"k": np.linspace(0.2, 3, 20), "tau": np.linspace(0.1, 3, 16)}
    found = fc.delay.chart(equation, over, at=[0.0])
    product = found["k"] * found["tau"]
    assert ((found["root"] < 0) == (product < np.pi / 2)).all()
    boundary = found["boundary"].values
    assert len(boundary) > 20
    assert boundary[:, 0] * boundary[:, 1] == pytest.approx(np.pi / 2, rel=1e-6)
    i, j = 7, 11
    alone = fc.delay.roots(equation.at(k=over["k"][i], tau=over["tau"][j]), 1, at=[0.0])
    assert float(found["root"][i, j]) == pytest.approx(alone.s[0].real, rel=1e-9)
    assert set(found["reason"].values.ravel()) == {"ok"}
    assert found.isel(k=3).identical(found.isel(k=3))
    assert found.plot().axes[0].get_xlabel() == "k"


@pytest.mark.slow
def test_points_without_an_equilibrium_harm_no_other():
    found = fc.delay.chart(NEAR, {"e": [-1.0, 0.25, 1.0], "tau": [0.1, 2.0]}, at=[1.0])
    assert (found["reason"].sel(e=-1.0) == "the equilibrium is lost on the way").all()
    assert np.isnan(found["root"].sel(e=-1.0)).all()
    assert found["state_x"].sel(e=0.25).values == pytest.approx([0.5, 0.5])
    assert found["stable"].sel(e=1.0).values.tolist() == [1, 0]  # 2 tau against pi / 2


def test_pictures_have_labels():
    run = fc.delay.solve(may(), 20.0, past=[0.3, 0.4])
    picture = run.plot()
    assert [axis.get_xlabel() for axis in picture.axes[:3:2]] == ["", "time [s]"] or picture.axes[
        2
    ].get_xlabel() == "time [s]"
    assert picture.axes[1].get_xlabel() == "prey"
    assert "Solution of prey, predator to 20" in repr(run)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: fc.delay.Equation(lag_alone, [], {"k": 1}), "lags: .*give a list of one or more"),
        (lambda: fc.delay.Equation(lag_alone, ["tua"], {"k": 1, "tau": 1}), "there is no 'tua'; did you mean tau?"),
        (lambda: fc.delay.Equation(lag_alone, [-1.0], {"k": 1}), r"lags\[0\]: -1.0; give a lag of 0 or more"),
        (lambda: fc.delay.Equation(lag_alone, [1.0], {"k": "fast"}), "k: 'fast' is no number"),
        (lambda: fc.delay.Equation(lag_alone, [1.0], {"k": 1}, states=["a", "b"]), "gives 1 number for 2 states"),
        (lambda: fc.delay.Equation(lag_alone, [1.0], {"x": 1}), "name 'x' is there twice"),
        (lambda: fc.delay.Equation(lambda t, x, past, p: [np.sin(x[0])], [1.0]), "write jax.numpy instead of numpy"),
        (lambda: fc.delay.Equation(lambda t, x, past, p: [math.sin(x[0])], [1.0]), "write jax.numpy instead of numpy"),
        (lambda: fc.delay.Equation(lambda t, x, past, p: [x[0] if x[0] > 0 else 0], [1.0]), "where instead of if"),
        (lambda: may().at(tua=2.0), "there is no 'tua'; did you mean tau?"),
        (lambda: fc.delay.solve(may(), 10.0, past=[1.0]), "past: .*give 2 finite numbers .prey, predator."),
        (lambda: fc.delay.solve(may(), 10.0, past={"prey": 1.0}), "past: predator is missing"),
        (lambda: fc.delay.solve(may(), -1.0, past=[1, 1]), "until: -1.0; give a number greater than 0"),
        (lambda: fc.delay.solve(may(), 10.0, past=[1, 1], dt=3.0), "no step may be longer than the shortest lag, 2"),
        (lambda: fc.delay.solve(may(), 10.0, past=[1, 1], over={"tau": [0, 1]}), "a lag of 0 among longer ones"),
        (lambda: fc.delay.linearize(may()), "there are several equilibria"),
        (lambda: fc.delay.linearize(may(), at=[np.nan, 1]), "at: .*give 2 finite numbers"),
        (lambda: fc.delay.equilibria(may(), (1, 0)), "between: .*give least and largest"),
        (lambda: fc.delay.margins(may(), "tua", at=[1, 1]), "lag: 'tua' is no lag .*; write one of 0 .tau., 'tau'"),
        (lambda: fc.delay.margins(may(), at=[0, 0]), "nothing comes back through lag 0"),
        (lambda: fc.delay.crossings(may(), "tau", (-1, 3), at=[1, 1]), "tau is a lag; give 0 or more"),
        (lambda: fc.delay.chart(may(), {"a": [1]}, at=[1, 1]), "there is no 'a'"),
        (lambda: fc.delay.chart(may(), {"tau": [1], "r1": [1], "r2": [1]}, at=[1, 1]), "3 parameters; give one or two"),
        (
            lambda: fc.delay.equilibria(fc.delay.Equation(lambda t, x, past, p: [t - past[0][0]], [1.0]), (0, 1)),
            "depends on time",
        ),
    ],
)
def test_what_is_refused(make, says):
    with pytest.raises(fc.InputError, match=says):
        make()


def test_a_lag_shorter_than_the_step_is_seen():
    shrinks = fc.delay.Equation(lambda t, x, past, p: [-past[0][0]], [lambda x, p: 0.05 + x[0] ** 2])
    with pytest.raises(fc.InputError, match=r"lags: one gets as short as .* give dt=0\.02"):
        fc.delay.solve(shrinks, 5.0, past=[1.0], longest_lag=2.0, dt=0.5, samples=5)
    with pytest.raises(fc.InputError, match="longest_lag: needed"):
        fc.delay.solve(shrinks, 5.0, past=[1.0])


@pytest.mark.parametrize("samples", [2, 4])
def test_a_lag_that_is_too_short_between_samples_is_seen(samples):
    """1 + 1.2 sin t is -0.2 in between, and 1 at every sample."""

    def turns(t, x, past, p):
        return [x[1], -x[0], -past[0][2]]

    swings = fc.delay.Equation(turns, [lambda x, p: 1 + 1.2 * x[0]], states=["x", "v", "y"])
    with pytest.raises(fc.InputError, match=r"lags: one turns negative, -0\..* no step helps; change the lag"):
        fc.delay.solve(swings, 4 * math.pi, past=[0.0, 1.0, 1.0], samples=samples, longest_lag=3.0)


def test_few_samples_are_those_of_many():
    """A lag that depends on the state is looked at more often than the solution is kept."""
    slows = fc.delay.Equation(lambda t, x, past, p: [-past[0][0]], [lambda x, p: 0.5 + 0.1 * x[0] ** 2])
    few, many = (fc.delay.solve(slows, 5.0, past=[1.0], longest_lag=1.0, samples=n) for n in (5, 640))
    assert few["time"].values.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert few["x"].values == pytest.approx(many["x"].values[::128], abs=10 * (few.error + many.error))


def test_nothing_is_compiled_for_other_values():
    equation = may()
    fc.delay.solve(equation, 10.0, past=[1, 1], tolerance=1.0)
    before = len(equation.kernels.compiled)
    fc.delay.solve(equation.at(r1=1.1), 10.0, past=[1, 1.2], tolerance=1.0)
    assert len(equation.kernels.compiled) == before
