"""Autonomy of an equation: its right-hand side is the same at all times."""

from __future__ import annotations

from fluidcc.dde.equation import Equation
from fluidcc.errors import InputError


def check_autonomous(equation: Equation) -> None:
    """Refuse an equation whose right-hand side uses the time.

    The traced program is searched from its results back (sub-programs included), so that no particular time or value
    decides: cos t, whose slope is 0 at t = 0, uses the time, and so do a step that comes later and a term whose factor
    happens to be 0.

    Raises
    ------
    InputError
        If it uses the time.
    """
    if equation.kernels.timed:
        raise InputError(
            "function: depends on time, so that nothing stands still and no cycle is its own; leave t out of it, or "
            "integrate with solve()"
        )
