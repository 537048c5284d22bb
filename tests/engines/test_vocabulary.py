"""The vocabulary of laws in its worlds: NumPy, JAX, machine code and symbols."""

from __future__ import annotations

from typing import Any, cast

import jax
import numba
import numpy as np
import pytest
import sympy

from fluidcc.contract.law import VOCABULARY, in_world
from fluidcc.engines.common import scalars
from fluidcc.engines.common.jit import kernel
from fluidcc.theory.symbolic.system import World

xp = np  # of the rules below
VALUES = [-3.7e5, -2.0, -1.0, -1e-9, -0.0, 0.0, 1e-300, 1e-9, 0.3, 1.0, 2.0, 31.6, 700.0, 1.3e10]
PAIRS = [(a, b) for a in VALUES for b in VALUES]
RULES = {
    "clip": lambda a, b: xp.clip(a, b, 1.0),
    "abs": lambda a, b: xp.abs(a - b),
    "exp": lambda a, b: xp.exp(xp.minimum(a, 700.0)),
    "log": lambda a, b: xp.log(xp.maximum(a, 0.0)),
    "sqrt": lambda a, b: xp.sqrt(xp.abs(a)),
    "maximum": lambda a, b: xp.maximum(a, b),
    "minimum": lambda a, b: xp.minimum(a, b),
    "where": lambda a, b: xp.where(xp.logical_not(a < b), a, b),
}
ROUNDED = {"exp", "log"}  # by libraries that may differ in the last bit


@pytest.mark.parametrize("name", RULES)
def test_machine_code_computes_as_numpy_does(name: str) -> None:
    """To the bit, or to the last one where two libraries of functions round."""
    rule = in_world(RULES[name], cast("Any", scalars), kernel)

    @numba.njit(error_model="numpy")
    def run(a: Any, b: Any, out: Any) -> None:
        for i in range(len(a)):
            out[i] = rule(a[i], b[i])

    a, b = (np.array(each) for each in zip(*PAIRS, strict=True))
    found = np.empty_like(a)
    run(a, b, found)
    with np.errstate(divide="ignore"):
        expected = RULES[name](a, b)
    if name in ROUNDED:
        finite = np.isfinite(expected)
        assert np.array_equal(found[~finite], expected[~finite])
        assert np.all(np.abs(found[finite] - expected[finite]) <= np.spacing(np.abs(expected[finite])))
    else:
        assert np.array_equal(found, expected)
        assert not np.isnan(found).any()


def test_what_is_undefined_stays_so_in_machine_code() -> None:
    """NaN passes as in NumPy, on either side; or a law's least rate would hide it."""
    for rule in (scalars.maximum, scalars.minimum):
        run = numba.njit(lambda a, b: rule(a, b))  # noqa: B023
        assert np.isnan([run(np.nan, 1.0), run(1.0, np.nan)]).all()
    assert np.isnan(numba.njit(lambda a: scalars.clip(a, 0.0, 1.0))(np.nan))


def test_each_world_has_the_vocabulary() -> None:
    for name in VOCABULARY:
        assert hasattr(np, name), name
        assert hasattr(jax.numpy, name), name
        assert hasattr(scalars, name), name
        assert hasattr(World, name), name


def test_functions_of_symbols_are_sympys() -> None:
    x = sympy.Symbol("x", positive=True)
    assert (World.exp(x), World.log(x), World.sqrt(x)) == (sympy.exp(x), sympy.log(x), sympy.sqrt(x))
