"""Explicit Runge-Kutta methods on a fixed step."""

from __future__ import annotations

import dataclasses

from fluidcc.errors import InputError


@dataclasses.dataclass(frozen=True)
class Method:
    """Butcher tableau of an explicit method.

    Parameters
    ----------
    name : str
    order : int
        Order of convergence on smooth problems, delays included.
    nodes : tuple of float
    matrix : tuple of tuple of float
        Row i weighs the slopes of the stages before i.
    weights : tuple of float
    """

    name: str
    order: int
    nodes: tuple[float, ...]
    matrix: tuple[tuple[float, ...], ...]
    weights: tuple[float, ...]


EULER = Method("euler", 1, (0.0,), ((),), (1.0,))
HEUN = Method("heun", 2, (0.0, 1.0), ((), (1.0,)), (0.5, 0.5))
RK4 = Method(
    "rk4",
    4,
    (0.0, 0.5, 0.5, 1.0),
    ((), (0.5,), (0.0, 0.5), (0.0, 0.0, 1.0)),
    (1 / 6, 1 / 3, 1 / 3, 1 / 6),
)
METHODS = {m.name: m for m in (EULER, HEUN, RK4)}


def method_named(name: str) -> Method:
    """Look a method up.

    Raises
    ------
    InputError
        If there is none of that name.
    """
    if not isinstance(name, str) or name not in METHODS:
        raise InputError(f"method: {repr(name)[:40]} is unknown; write one of {', '.join(METHODS)}")
    return METHODS[name]
