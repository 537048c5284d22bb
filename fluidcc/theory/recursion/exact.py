"""Steps (5)-(6) in rationals: `Fraction` outside, and inside the rationals of gmpy2 where that is installed.

The size of the fractions doubles every few steps, so that all the time goes into greatest common divisors. Python's
take the square of the size; gmpy2's hardly more than its first power.
"""

from __future__ import annotations

import importlib
import importlib.util
from fractions import Fraction
from typing import Any

import numpy as np

from fluidcc.theory.recursion.checks import Array


def rational_type() -> Any:
    """The fastest class of rationals that is installed: gmpy2's mpq, or `Fraction`."""
    return importlib.import_module("gmpy2").mpq if importlib.util.find_spec("gmpy2") else Fraction


def trajectory(A: Array, C: Array, R0: Array, steps: int) -> Array:
    """R(0) to R(steps).

    Parameters
    ----------
    A : ndarray
        Incidence, (links, paths), 0 or 1.
    C, R0 : ndarray
        Capacities, (links,), and rates to start from, (paths,), objects of `Fraction`.
    steps : int

    Returns
    -------
    ndarray
        (steps + 1, paths), objects of `Fraction`.
    """
    number = rational_type()
    of_link = [np.flatnonzero(row) for row in A]
    of_path = [np.flatnonzero(column) for column in A.T]
    capacities, rates = ([number(x.numerator, x.denominator) for x in values] for values in (C, R0))
    rows = np.empty((steps + 1, len(rates)), dtype=object)
    rows[0] = R0
    for n in range(1, steps + 1):
        U = [sum(rates[j] for j in paths) / c for paths, c in zip(of_link, capacities, strict=True)]  # HPCC (5)
        rates = [rate / max(U[i] for i in links) for rate, links in zip(rates, of_path, strict=True)]  # HPCC (6)
        rows[n] = [_fraction(rate) for rate in rates]
    return rows


def _fraction(value: Any) -> Fraction:
    """The same number as a `Fraction`: in lowest terms already, which `Fraction` would take minutes to find out."""
    if isinstance(value, Fraction):
        return value
    made = object.__new__(Fraction)
    made._numerator, made._denominator = int(value.numerator), int(value.denominator)  # type: ignore[attr-defined]
    return made
