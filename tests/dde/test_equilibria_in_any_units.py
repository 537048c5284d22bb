"""Where equations stand still: states of any size, continua, folds, and equations that do not stand still at all."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fluidcc as fc
from tests.dde.equations import EXCHANGE, LASER, NEAR, SINE, SIZES

Equation = fc.delay.Equation


def test_a_large_state_hides_no_small_one():
    """The slope of A - x^2 at its root is -2 sqrt(A)."""
    equation = SIZES
    system = fc.delay.linearize(equation, at=[1e10, 1.0])
    assert system.A0[1, 1] == pytest.approx(-2 * np.sqrt(2), rel=1e-12)
    found = fc.delay.equilibria(equation, {"big": (0, 2e10), "small": (0, 3)})
    assert found == pytest.approx(np.array([[1e10, np.sqrt(2)]]), rel=1e-12)
    charted = fc.delay.chart(equation, {"A": [1.0, 2.0, 3.0]}, at=[1e10, 1.4])
    assert charted["state_small"].values == pytest.approx(np.sqrt([1.0, 2.0, 3.0]), rel=1e-12)


@pytest.mark.slow
def test_a_laser_in_si():
    """1e24 carriers and a field of 1: N = 1e24 and E^2 = P - 1 in closed form."""
    found = fc.delay.equilibria(LASER, {"N": (0, 3e24), "E": (0.1, 3)})
    assert found == pytest.approx(np.array([[1e24, 1.0]]), rel=1e-9)
    charted = fc.delay.chart(LASER, {"P": [1.5, 2.0, 3.0]}, at=[1e24, 1.0])
    assert charted["state_E"].values == pytest.approx(np.sqrt([0.5, 1.0, 2.0]), rel=1e-9)


def test_a_continuum_is_told():
    """A -> B keeps A + B: every (0, b) is an equilibrium."""
    with pytest.raises(fc.InputError, match=r"next to each other .a symmetry, or a sum that the equation keeps."):
        fc.delay.equilibria(EXCHANGE, (0, 1))
    with pytest.raises(fc.InputError, match=r"next to each other .*\(0, 0.1\) and \(0, -0.1\) among them"):
        fc.delay.roots(EXCHANGE)
    with pytest.raises(fc.InputError, match=r"\(0.3, 1\) is none itself"):
        fc.delay.linearize(EXCHANGE, at=[0.3, 1.0])
    # At one of them, named, there is a linear part.
    assert fc.delay.linearize(EXCHANGE, at=[0.0, 1.0]).A[0] == pytest.approx(np.array([[-1.0, 0.0], [1.0, 0.0]]))


def test_several_equilibria_are_told_apart():
    """0 and 1 lie among the first starts, 20 and 30 do not; the message shows two that differ."""
    equation = Equation(lambda t, x, past, p: [(past[0][0] - 20) * (x[0] - 30) * (x[0] + 40)], [1.0])
    with pytest.raises(fc.InputError, match=r"several equilibria, \((\S+)\) and \((?!\1\))") as told:
        fc.delay.roots(equation)
    assert any(number in str(told.value) for number in ("20", "30", "-40"))
    with pytest.raises(fc.InputError, match=r"several equilibria"):
        fc.delay.roots(SINE)


def test_no_equilibrium_is_none():
    """x^2 = -1e-12 has no root; x^2 = 1e-12 has two."""
    assert len(fc.delay.equilibria(NEAR.at(e=-1e-12), (-1, 1))) == 0
    assert fc.delay.equilibria(NEAR.at(e=1e-12), (-1, 1)).ravel() == pytest.approx([-1e-6, 1e-6])


@pytest.mark.parametrize(
    "forcing",
    [
        lambda t: jnp.cos(t),
        lambda t: t**2,
        lambda t: jnp.where(t > 5, 1.0, 0.0),
        lambda t: jax.jit(lambda a: a * 1e-300)(t),
        lambda t: jax.lax.cond(t > 3, lambda a: 2 * a, lambda a: a, 1.0),
        lambda t: jax.lax.fori_loop(0, 3, lambda i, total: total + t, 0.0),
    ],
)
def test_time_is_seen_wherever_it_is_used(forcing):
    equation = Equation(lambda t, x, past, p: [-past[0][0] + forcing(t)], ["tau"], {"tau": 1.0})
    for ask in (
        lambda: fc.delay.equilibria(equation, (-1, 1)),
        lambda: fc.delay.roots(equation, at=[0.0]),
        lambda: fc.delay.crossings(equation, "tau", (0, 3)),
    ):
        with pytest.raises(fc.InputError, match="depends on time"):
            ask()


def test_time_that_comes_to_nothing_is_not_used():
    def idle(t, x, past, p):
        unused = jnp.sin(t) + x[0]
        del unused
        return [jax.jit(lambda a, b: -b)(t, past[0][0])]

    assert fc.delay.abscissa(Equation(idle, [1.0])).value == pytest.approx(-0.31813150520476413)  # of W(-1)
