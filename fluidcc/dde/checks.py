"""Checks that turn a user's input into numbers, or raise an `InputError` that says what to write instead."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np

from fluidcc.errors import InputError
from fluidcc.surface import refuse_unknown

Array = np.ndarray[Any, Any]
# Names of columns and axes of the results.
RESERVED = ("time", "root", "frequency", "stable", "reason", "boundary", "curve", "point", "name")


def shown(value: Any) -> str:
    """A value for a message: short, on one line."""
    try:
        return " ".join(repr(value).split())[:40]
    except Exception:  # Python refuses to write integers of thousands of digits; a repr may be anyone's
        return f"a value of type {type(value).__name__}"


def number(name: str, value: Any) -> float:
    """A finite number."""
    try:
        if isinstance(value, (str, bytes)):
            raise TypeError
        found = float(value)
    except OverflowError:
        raise InputError(f"{name}: more than a number of 64 bits holds; give less") from None
    except (TypeError, ValueError):
        raise InputError(f"{name}: {shown(value)} is no number; write for example {name}=1.5") from None
    except Exception as error:  # of another library's arrays
        raise InputError(f"{name}: {shown(value)} is no number ({error}); write for example {name}=1.5") from None
    if not math.isfinite(found):
        raise InputError(f"{name}: {found}; give a finite number")
    return found


def positive(name: str, value: Any) -> float:
    """A finite number greater than 0."""
    try:
        found = number(name, value)
    except InputError:
        found = math.nan
    if not found > 0:
        raise InputError(f"{name}: {shown(value)}; give a number greater than 0")
    return found


def whole(name: str, value: Any, least: int = 1) -> int:
    """A whole number that is not too small."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise InputError(f"{name}: {shown(value)}; give a whole number of {least} or more")
    return int(value)


def listed(name: str, values: Any) -> list[Any]:
    """A list, also from an array; not empty."""
    if hasattr(values, "tolist") and getattr(values, "ndim", 0) == 1:
        values = values.tolist()
    if isinstance(values, (str, bytes)) or not isinstance(values, Sequence) or not len(values):
        raise InputError(f"{name}: {shown(values)}; give a list of one or more")
    return list(values)


def named(name: str, values: Any) -> dict[str, float]:
    """Names and finite numbers."""
    if not isinstance(values, Mapping):
        raise InputError(f"{name}: {shown(values)}; give names and numbers, for example {{'tau': 1.5}}")
    return {key: number(str(key)[:40], value) for key, value in values.items()}


def column(name: str, values: Any) -> Array:
    """Finite numbers (m,), m of 1 or more."""
    try:
        found = np.atleast_1d(np.asarray(values, float))
    except (TypeError, ValueError, OverflowError):
        found = np.empty(0)
    if found.ndim != 1 or not found.size or not np.isfinite(found).all():
        raise InputError(f"{name}: {shown(values)}; give finite numbers")
    return found


def check_names(states: Sequence[Any], parameters: Mapping[Any, Any]) -> None:
    """Refuse names that are no text, twice there, or those of columns of the results."""
    names = [*states, *parameters]
    for each in names:
        if not isinstance(each, str) or not each:
            raise InputError(f"name {shown(each)}: states and parameters are named by text; write for example 'tau'")
        if names.count(each) > 1:
            raise InputError(f"name {each!r} is there twice; name each state and parameter once")
        if each in RESERVED or each.startswith("state_"):
            raise InputError(f"name {each!r}: is a column of the results; take another, for example {each + '0'!r}")


def check_parameter(equation: Any, name: Any, where: str) -> None:
    """Refuse what is no parameter's name."""
    if not isinstance(name, str):
        raise InputError(f"{where}: {shown(name)}; give the name of a parameter, for example 'tau'")
    refuse_unknown([name], equation.parameters, where)


def check_lags(lags: Array) -> None:
    """Refuse lags (..., K), as functions gave them, that are negative or no numbers."""
    bad = np.argwhere(~(np.isfinite(lags) & (lags >= 0)))
    if len(bad):
        value = lags[tuple(bad[0])]
        raise InputError(f"lags[{bad[0][-1]}]: is {value:g} at this state; a lag is 0 or more")


def state_of(equation: Any, given: Any, name: str) -> Array:
    """A state (n,) as an array, by names or in order.

    Raises
    ------
    InputError
        If it has another size, or is not finite.
    """
    if isinstance(given, Mapping):
        refuse_unknown(given, equation.states, name)
        missing = [state for state in equation.states if state not in given]
        if missing:
            raise InputError(f"{name}: {missing[0]} is missing; give a number for each of {', '.join(equation.states)}")
        given = [given[state] for state in equation.states]
    try:
        x = np.atleast_1d(np.asarray(given, float))
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name}: {shown(given)} is no state; give {len(equation.states)} numbers") from None
    if x.shape != (len(equation.states),) or not np.isfinite(x).all():
        raise InputError(
            f"{name}: {shown(given)}; give {len(equation.states)} finite numbers ({', '.join(equation.states)})"
        )
    return x
