"""Safe forms of (1-p)^n against decimal arithmetic of 60 digits."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal, localcontext
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fluidcc.engines.fluid.marking import red
from fluidcc.engines.fluid.stable_math import bernoulli, hazard, saturation

# Tolerances, set before anything was measured.
ULPS = 4 * np.finfo(np.float64).eps  # a few roundings of a library function and one division
FLOAT32 = 4 * np.finfo(np.float32).eps
SMALLEST = 1e-300  # values below may be flushed to zero
GRADIENT = 1e-6  # of gradients: good enough for any optimiser, and for finite differences to agree

EXPONENTS = (0.0, 1e-300, 1e-170, 1e-12, 1e-3, 0.3466, 1.0, 36.0, 40.0, 709.0, 710.0, 746.0, 1e5)
PROBABILITIES = (0.0, 1e-300, 1e-170, 1e-12, 1e-4, 0.01, 0.5, 0.99)


def exponents(test: Any) -> Any:
    """Each of the named exponents, and hypothesis's choice."""
    for value in EXPONENTS:
        test = example(value)(test)
    return given(st.floats(0.0, 1e6) | st.floats(0.0, 2.0) | st.floats(1e-300, 1e-3))(test)


def probabilities(test: Any) -> Any:
    for value in PROBABILITIES:
        test = example(value)(test)
    return given(st.floats(0.0, 0.999) | st.floats(1e-300, 1e-3))(test)


@pytest.fixture(autouse=True, scope="module")
def double() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def exactly(formula: str, value: float) -> tuple[float, float]:
    """Value and derivative of a formula, in decimal arithmetic."""
    with localcontext() as context:
        context.prec = 60
        context.Emin, context.Emax = -999999, 999999
        result = FORMULAS[formula](Decimal(value))
        return float(result[0]), float(result[1])


def _saturation(y: Decimal) -> tuple[Decimal, Decimal]:
    if y < Decimal("1e-25"):
        return y - y * y / 2, 1 - y
    return 1 - (-y).exp(), (-y).exp()


def _bernoulli(y: Decimal) -> tuple[Decimal, Decimal]:
    if y < Decimal("1e-15"):
        return 1 - y / 2, Decimal("-0.5") + y / 6
    below = y.exp() - 1
    return y / below, (below - y * y.exp()) / below**2


def _log(p: Decimal) -> tuple[Decimal, Decimal]:
    if p < Decimal("1e-25"):
        return p + p * p / 2, 1 + p
    return -(1 - p).ln(), 1 / (1 - p)


def _per_log(p: Decimal) -> tuple[Decimal, Decimal]:
    if p < Decimal("1e-15"):
        return 1 - p / 2, Decimal("-0.5") - p / 6
    log = -(1 - p).ln()
    return p / log, (1 - p / (log * (1 - p))) / log


FORMULAS = {"saturation": _saturation, "bernoulli": _bernoulli, "log": _log, "per_log": _per_log}
OURS = {
    "saturation": jax.jit(jax.value_and_grad(saturation)),
    "bernoulli": jax.jit(jax.value_and_grad(bernoulli)),
    "log": jax.jit(jax.value_and_grad(lambda p: hazard(p)[0])),
    "per_log": jax.jit(jax.value_and_grad(lambda p: hazard(p)[1])),
}


@partial(jax.value_and_grad, argnums=(0, 1))
def _events(p: Any, packets: Any) -> Any:
    log, per_log = hazard(p)
    return per_log * bernoulli(packets * log)


EVENTS = jax.jit(_events)
SINGLE = [jax.jit(f) for f in (saturation, bernoulli, hazard)]  # as they are, in single precision


def compare(formula: str, value: float, absolute: float = SMALLEST) -> None:
    known, _ = exactly(formula, value)
    ours, slope = OURS[formula](jnp.float64(value))
    assert np.isfinite(ours)
    assert np.isfinite(slope)
    assert abs(ours - known) <= ULPS * abs(known) + absolute


def compare_slope(formula: str, value: float) -> None:
    _, known = exactly(formula, value)
    assert OURS[formula](jnp.float64(value))[1] == pytest.approx(known, rel=GRADIENT, abs=1e-15)


@exponents
def test_saturation(y: float) -> None:
    compare("saturation", y)
    compare_slope("saturation", y)


@exponents
@example(8.0)
@example(31.28)
def test_bernoulli(y: float) -> None:
    known, _ = exactly("bernoulli", y)
    # It counts events: what matters is the error relative to its largest value, 1.
    assert abs(OURS["bernoulli"](jnp.float64(y))[0] - known) <= ULPS


@exponents
def test_slope_of_bernoulli(y: float) -> None:
    compare("bernoulli", y, absolute=ULPS)
    compare_slope("bernoulli", y)


@probabilities
def test_log(p: float) -> None:
    compare("log", p)
    compare_slope("log", p)


@probabilities
def test_probability_per_log(p: float) -> None:
    known, _ = exactly("per_log", p)
    assert abs(OURS["per_log"](jnp.float64(p))[0] - known) <= ULPS


@probabilities
def test_slope_of_probability_per_log(p: float) -> None:
    compare("per_log", p)
    compare_slope("per_log", p)


@pytest.mark.parametrize("p", [1.0, 1.0 - 2.0**-53, 1.0 - 2.0**-52])
def test_certain_marking_is_finite(p: float) -> None:
    """p = 1 is read as the next smaller number: (1-p)^n vanishes for n of one packet or more."""
    for formula in ("log", "per_log"):
        assert np.all(np.isfinite(OURS[formula](jnp.float64(p))))
    log, _ = hazard(jnp.float64(p))
    assert saturation(log) == pytest.approx(1.0, abs=ULPS)
    assert 35 < log < 37


@pytest.mark.parametrize("p", [0.0, 1e-300, 1e-12, 0.01, 1.0])
@pytest.mark.parametrize("packets", [0.0, 1e-6, 1.0, 150.0, 1e4, 1e8])
def test_rate_of_events_and_its_slopes(p: float, packets: float) -> None:
    """p/((1-p)^-n - 1): 1/n where p = 0, 0 where p = 1, and at no packets the limit p/l times 1/n, n cancelled."""

    value, slopes = EVENTS(jnp.float64(p), jnp.float64(packets))
    assert np.isfinite(value)
    assert 0.0 <= value <= 1.0
    assert np.all(np.isfinite(slopes))


@pytest.mark.parametrize("value", [0.0, 1e-30, 1e-6, 0.3, 1.0, 20.0, 90.0, 1e5])
def test_single_precision(value: float) -> None:
    value = float(np.float32(value))
    y = jnp.float32(value)
    saturated, events, logs = (f(y) for f in SINGLE)
    assert saturated.dtype == jnp.float32
    assert abs(float(saturated) - exactly("saturation", value)[0]) <= FLOAT32
    assert abs(float(events) - exactly("bernoulli", value)[0]) <= FLOAT32
    if value < 1:
        log, per_log = logs
        assert abs(float(log) - exactly("log", value)[0]) <= FLOAT32
        assert abs(float(per_log) - exactly("per_log", value)[0]) <= FLOAT32


def test_an_empty_queue_with_kmin_0_has_a_mark_of_no_slope() -> None:
    """The slope of the ramp begins beyond kmin."""
    for kmin in (0.0, 10.0):
        value, slope = jax.jvp(lambda queue, kmin=kmin: red(queue, kmin, 30.0, 0.4), (kmin,), (1.0,))
        assert (float(value), float(slope)) == (0.0, 0.0)
