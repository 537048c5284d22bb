"""Columns of an array, of which a single row may stand for all."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array


def rows_of(column: Array, rows: tuple[int, ...]) -> Array:
    """Rows of a column; one of a single row stands for any."""
    if column.shape[0] == 1 or rows == tuple(range(column.shape[0])):
        return column
    return column[jnp.asarray(rows)]
