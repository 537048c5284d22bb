"""The vocabulary of laws (`fluidcc.contract.law`) for one flow's numbers, in machine code.

As NumPy's, ``maximum``, ``minimum`` and ``clip`` of NaN are NaN: a law that divides by 0 shows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidcc.engines.common.jit import inlined


@inlined
def where(condition: Any, yes: Any, no: Any) -> Any:
    """Choose one of two numbers."""
    return yes if condition else no


@inlined
def maximum(a: Any, b: Any) -> Any:
    """Return the larger of two numbers."""
    return a if a > b or a != a else b


@inlined
def minimum(a: Any, b: Any) -> Any:
    """Return the smaller of two numbers."""
    return a if a < b or a != a else b


@inlined
def clip(x: Any, low: Any, high: Any) -> Any:
    """Return a number within bounds."""
    least = low if x < low else x
    return high if least > high else least


@inlined
def abs(x: Any) -> Any:
    """Return a number without its sign."""
    return np.abs(x)


@inlined
def exp(x: Any) -> Any:
    """Return e to the power of a number."""
    return np.exp(x)


@inlined
def log(x: Any) -> Any:
    """Return the natural logarithm."""
    return np.log(x)


@inlined
def sqrt(x: Any) -> Any:
    """Return the square root."""
    return np.sqrt(x)


@inlined
def logical_not(condition: Any) -> Any:
    """Return whether a condition does not hold."""
    return not condition
