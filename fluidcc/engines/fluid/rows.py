"""Columns of an array, of which a single row may stand for all."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from fluidcc.units import is_concrete


def rows_of(column: Array, rows: tuple[int, ...]) -> Array:
    """Rows of a column; one of a single row stands for any."""
    if column.shape[0] == 1 or rows == tuple(range(column.shape[0])):
        return column
    return column[jnp.asarray(rows)]


def same(values: list[Any]) -> bool:
    """Check whether all values are known to be equal: the same object, or plain numbers that compare equal."""
    return all(v is values[0] or (is_concrete(v) and is_concrete(values[0]) and v == values[0]) for v in values)


def column(values: list[Any], collapse: bool = True) -> Any:
    """Stack values into a column, of a single row if they are all the same."""
    if collapse and same(values):
        values = values[:1]
    if all(is_concrete(v) for v in values):
        return np.asarray(values, dtype=np.float64)
    return jnp.stack([jnp.asarray(v) for v in values])
