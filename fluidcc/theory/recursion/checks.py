"""Checks of a network and its rates before a recursion runs on them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fluidcc.errors import InputError

Array = np.ndarray[Any, Any]
Numbers = ArrayLike | Sequence[Fraction]


def incidence(A: ArrayLike, *, batched: bool = False) -> Array:
    """Incidence matrix as float64 zeros and ones, shape (..., links, paths).

    Raises
    ------
    InputError
        If it is no matrix of zeros and ones with at least one link on every path.
    """
    matrix = _numbers("A", A)
    if matrix.ndim < 2 or (matrix.ndim > 2 and not batched) or 0 in matrix.shape:
        shape = "(..., links, paths)" if batched else "(links, paths)"
        more = "" if batched or matrix.ndim < 3 else "; for many networks at once call pareto_batch"
        raise InputError(f"A: shape {matrix.shape}; give a matrix {shape} with at least one of each{more}")
    odd = np.argwhere((matrix != 0) & (matrix != 1))
    if odd.size:
        at = tuple(int(i) for i in odd[0])
        raise InputError(f"A{list(at)}: {matrix[at]:g}; give 1 where the path uses the link and 0 where it does not")
    empty = np.argwhere(matrix.sum(axis=-2) == 0)
    if empty.size:
        raise InputError(f"A: path {_index(empty[0])} uses no link; set A[i, {int(empty[0][-1])}] = 1 for its links i")
    return matrix


def positive(name: str, values: Numbers, size: int | None, what: str, *, batched: bool = False) -> Array:
    """Positive finite numbers, float64, shape (..., size), one per ``what``; of any size but 0 if that is None.

    Raises
    ------
    InputError
        If a number is not positive and finite, or their count is not ``size``.
    """
    numbers = _numbers(name, values)
    if size is None and (numbers.ndim != 1 or not numbers.size):
        raise InputError(f"{name}: shape {numbers.shape}; give a list of one number per {what}, for example [1, 2]")
    _sized(name, numbers, numbers.size if size is None else size, what, batched=batched)
    bad = np.argwhere(numbers <= 0)
    if bad.size:
        raise InputError(
            f"{name}[{_index(bad[0])}]: {numbers[tuple(bad[0])]:g}; give every {what} a number greater than 0"
        )
    return numbers


def rational(name: str, values: Numbers, size: int, what: str) -> Array:
    """Positive numbers as an object array of `Fraction`, shape (size,); floats are taken at their exact binary value.

    Raises
    ------
    InputError
        As `positive`.
    """
    given = np.asarray(values, dtype=object)
    _sized(name, given, size, what)
    exact = np.empty(size, dtype=object)
    for i, value in enumerate(given):
        try:
            exact[i] = Fraction(value.item() if isinstance(value, np.generic) else value)
        except (TypeError, ValueError, OverflowError, ZeroDivisionError):
            raise InputError(f"{name}[{i}]: {value!r} is no rational number; give for example Fraction(1, 3)") from None
        if exact[i] <= 0:
            raise InputError(f"{name}[{i}]: {exact[i]}; give every {what} a number greater than 0")
    return exact


def scalar(name: str, value: float, *, zero: bool = False, most: float = np.inf) -> float:
    """A finite number greater than 0 (``zero``: or 0) and at most ``most``.

    Raises
    ------
    InputError
        If it is not.
    """
    number = _numbers(name, value)
    if number.ndim or number < 0 or (number == 0 and not zero) or number > most:
        least = "at least 0" if zero else "greater than 0"
        raise InputError(f"{name}: {value}; give one number {least}" + (f", at most {most:g}" if most < np.inf else ""))
    return float(number)


def whole(name: str, value: int, *, least: int = 1) -> int:
    """A whole number of at least ``least``.

    Raises
    ------
    InputError
        If it is not.
    """
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise InputError(f"{name}: {value!r}; give a whole number of at least {least}")
    return int(value)


def whole_numbers(name: str, values: ArrayLike, size: int, *, least: int) -> Array:
    """Whole numbers of at least ``least``, int64, shape (size,); a single one counts for every path.

    Raises
    ------
    InputError
        If they are not.
    """
    numbers = _numbers(name, values)
    numbers = np.full(size, numbers) if numbers.ndim == 0 else numbers
    _sized(name, numbers, size, "path")
    bad = np.argwhere((numbers != np.round(numbers)) | (numbers < least))
    if bad.size:
        raise InputError(
            f"{name}[{_index(bad[0])}]: {numbers[tuple(bad[0])]:g}; give whole numbers of at least {least}"
        )
    return numbers.astype(np.int64)


def _numbers(name: str, values: Numbers) -> Array:
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name}: not an array of numbers; give lists of equal length, or a NumPy array") from None
    bad = np.argwhere(~np.isfinite(numbers))
    if len(bad):  # of a scalar, its places have size 0
        where = f"[{_index(bad[0])}]" if numbers.ndim else ""
        raise InputError(f"{name}{where}: {numbers[tuple(bad[0])]}; give finite numbers")
    return numbers


def _sized(name: str, numbers: Array, size: int, what: str, *, batched: bool = False) -> None:
    if numbers.ndim < 1 or (numbers.ndim > 1 and not batched) or numbers.shape[-1] != size:
        shape = f"(..., {size})" if batched else f"({size},)"
        raise InputError(f"{name}: shape {numbers.shape}; A has {size} {what}s, so give shape {shape}")


def _index(place: Array) -> str:
    return ", ".join(str(int(i)) for i in place)
