"""Forms of (1-p)^n by NumPy's own functions, and their derivatives by differences, without compiling."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from fluidcc.engines.fluid import stable_math as special

# As they are before NumPy stands in for JAX: with the rules of their derivatives.
RULES: dict[str, Any] = {
    name: getattr(special, name) for name in ("_minus_log1p", "_per_log", "decay", "saturation", "bernoulli")
}
EXPONENTS = np.concatenate([[0.0], np.geomspace(1e-12, 700.0, 300), np.linspace(0.0, 5.0, 300)])
PROBABILITIES = np.concatenate([[0.0], np.geomspace(1e-15, 1.0, 300)[:-1], 1 - np.geomspace(1e-15, 1.0, 300), [0.4]])
FEW = 4 * 2.0**-53  # four roundings, relative

pytestmark = pytest.mark.usefixtures("numpy_only")


def test_values_to_a_few_roundings() -> None:
    np.testing.assert_allclose(special.decay(EXPONENTS), [math.exp(-y) for y in EXPONENTS], rtol=FEW)
    np.testing.assert_allclose(special.saturation(EXPONENTS), [-math.expm1(-y) for y in EXPONENTS], rtol=FEW)
    exact = [y / math.expm1(y) if y else 1.0 for y in EXPONENTS]
    np.testing.assert_allclose(special.bernoulli(EXPONENTS), exact, rtol=2 * FEW)
    log, per_log = special.hazard(PROBABILITIES)
    exact = [-math.log1p(-min(p, 1 - 2.0**-53)) for p in PROBABILITIES]
    np.testing.assert_allclose(log, exact, rtol=FEW)
    ratio = [p / h if h else 1.0 for p, h in zip(PROBABILITIES, exact, strict=True)]
    np.testing.assert_allclose(per_log, ratio, rtol=2 * FEW)


@pytest.mark.parametrize("name", ["decay", "saturation", "bernoulli", "_minus_log1p"])
def test_single_precision(name: str) -> None:
    exact: Any = {
        "decay": lambda y: math.exp(-y),
        "saturation": lambda y: -math.expm1(-y),
        "bernoulli": lambda y: y / math.expm1(y) if y else 1.0,
        "_minus_log1p": lambda p: -math.log1p(-p),
    }[name]
    values = np.array([0.0, 1e-4, 0.3, 0.9], np.float32)
    np.testing.assert_allclose(getattr(special, name)(values), [exact(float(v)) for v in values], rtol=1e-6)
    log, _ = special.hazard(np.array([1.0, 2.0], np.float32))
    np.testing.assert_allclose(log, 24 * math.log(2), rtol=1e-6)
    np.testing.assert_allclose(special.hazard(np.array([1.0]))[0], 53 * math.log(2), rtol=1e-12)


@pytest.mark.parametrize("name", ["decay", "saturation", "bernoulli", "_minus_log1p"])
def test_derivatives_are_those_of_long_differences(name: str) -> None:
    """Central differences of exact formulas in extended precision, to 1e-7; times the tangent."""
    one = np.longdouble(1)
    exact: Any = {
        "decay": lambda y: np.exp(-y),
        "saturation": lambda y: -np.expm1(-y),
        "bernoulli": lambda y: y / np.expm1(y),
        "_minus_log1p": lambda p: -np.log1p(-p),
    }[name]
    at = np.array([1e-3, 0.02, 0.09, 0.0999, 0.11, 0.5, 0.9])
    step = np.longdouble(1e-6)
    wanted = (exact(one * at + step) - exact(one * at - step)) / (2 * step)
    value, slope = RULES[name].jvp((at,), (np.full(len(at), 3.0),))
    np.testing.assert_allclose(value, exact(at), rtol=1e-13)
    np.testing.assert_allclose(slope, 3.0 * np.array(wanted, float), rtol=1e-7)


def test_derivative_of_the_ratio() -> None:
    """d(p/l)/dp, by the series below 1e-3 and by the quotient above, to 1e-7 of central differences."""
    at = np.array([1e-5, 5e-4, 9.99e-4, 1.001e-3, 0.01, 0.3, 0.9])
    long, step = np.longdouble(at), np.longdouble(1e-7) * np.minimum(1, 100 * at)
    wanted = ((long + step) / -np.log1p(-long - step) - (long - step) / -np.log1p(-long + step)) / (2 * step)
    _, slope = RULES["_per_log"].jvp((at, -np.log1p(-at)), (np.full(len(at), 2.0), np.zeros(len(at))))
    np.testing.assert_allclose(slope, 2.0 * np.array(wanted, float), rtol=1e-7)


def test_series_end_where_they_are_longer_off_than_quotients() -> None:
    """At 0.1 the one of y/(exp(y) - 1) leaves out y^7/151200; at 1e-3 that of p/l leaves out 863/10080 p^5."""
    y, p = np.array([0.1]), np.array([1e-3])
    long = np.longdouble(y)
    exact = (np.expm1(long) - long * np.exp(long)) / np.expm1(long) ** 2
    _, slope = RULES["bernoulli"].jvp((y,), (np.ones(1),))
    assert abs(slope - exact) < 2e-13 < 0.5 * y**7 / 151200
    log = -np.log1p(-np.longdouble(p))
    _, slope = RULES["_per_log"].jvp((p, -np.log1p(-p)), (np.ones(1), np.zeros(1)))
    quotient = (1.0 - p / -np.log1p(-p) / (1.0 - p)) / -np.log1p(-p)
    assert slope == quotient
    np.testing.assert_allclose(np.float64((1 - p / log / (1 - p)) / log), quotient, rtol=1e-12)
