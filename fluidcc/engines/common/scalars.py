"""The vocabulary of laws (`fluidcc.contract.law`) for one flow's numbers, in machine code."""

from __future__ import annotations

from typing import Any

from fluidcc.engines.common.jit import inlined


@inlined
def where(condition: Any, yes: Any, no: Any) -> Any:
    """Choose one of two numbers."""
    return yes if condition else no


@inlined
def maximum(a: Any, b: Any) -> Any:
    """Return the larger of two numbers."""
    return a if a > b else b


@inlined
def minimum(a: Any, b: Any) -> Any:
    """Return the smaller of two numbers."""
    return a if a < b else b


@inlined
def logical_not(condition: Any) -> Any:
    """Return whether a condition does not hold."""
    return not condition
