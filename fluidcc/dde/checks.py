"""Checks of a user's input, which turn it into numbers or raise an `InputError` that says what to write instead.

Functions are called to see what is wrong with them: once with numbers that check their index, then traced.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from numbers import Integral
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fluidcc.compiling.settings import our_settings
from fluidcc.dde.delay_system import Array as Array
from fluidcc.errors import InputError
from fluidcc.surface import refuse_unknown

# Names of columns and axes of the results.
RESERVED = ("time", "root", "frequency", "stable", "reason", "boundary", "curve", "point", "name")
_TRACED = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerBoolConversionError,
    jax.errors.TracerIntegerConversionError,
)
# What NumPy says of a tracer.
_NUMPYS = ("loop of ufunc", "Tracer", "Only integer scalar arrays", "setting an array element with a sequence")
_LONGEST = 300  # characters of another's message


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


class _Numbers(np.ndarray):
    """NumPy's array, which refuses an index that JAX would clamp, with the one thing that only JAX's have."""

    @property
    def at(self) -> Any:
        return jnp.asarray(self).at


def numbers(count: int) -> Any:
    """A state of ``count`` numbers that check their index."""
    return np.ones(count).view(_Numbers)


def stacked(given: Any, count: int, dtype: Any) -> Any:
    """Convert what a user's function returned to an array (count,): a list or an array of ``count`` real numbers.

    Raises
    ------
    TypeError
        If it is anything else; `tried` makes an `InputError` of it.
    """
    if isinstance(given, (list, tuple)):
        parts = list(given)
        for i, part in enumerate(parts):
            if isinstance(part, (str, bytes, dict, list, tuple)) or part is None:
                raise _ReturnedError(f"gives {_kind(part)} at place {i}; give a number")
            if np.shape(part) != ():
                raise _ReturnedError(
                    f"gives an array of shape {np.shape(part)} at place {i}; give a number, such as x[0] for x"
                )
    elif hasattr(given, "dtype") and hasattr(given, "shape"):
        if given.shape not in ((count,), ()):
            raise _ReturnedError(f"gives an array of shape {given.shape}; give a list of {count}, one for each state")
        parts = list(given) if given.shape else [given]
    elif isinstance(given, (int, float)) and count == 1:
        parts = [given]
    else:
        raise _ReturnedError(f"gives {_kind(given)}; give a list of {count}, one number for each state")
    if len(parts) != count:
        raise _ReturnedError(f"gives {len(parts)} number{'s'[: len(parts) != 1]} for {count} states; give one for each")
    if any(np.iscomplexobj(part) for part in parts):
        raise _ReturnedError("gives complex numbers; write real and imaginary parts as states of their own")
    return jnp.stack([jnp.asarray(part, dtype) for part in parts])


def scalar(given: Any) -> None:
    """Refuse what is no real number; see `stacked`."""
    if isinstance(given, (str, bytes, dict, list, tuple)) or not hasattr(given, "__float__"):
        raise _ReturnedError(f"gives {_kind(given)}; give a number")
    if np.shape(given) != ():
        raise _ReturnedError(f"gives an array of shape {np.shape(given)}; give a number, such as x[0] for x")
    if np.iscomplexobj(given):
        raise _ReturnedError("gives a complex number; give a real one")


def tried(what: str, call: Callable[..., Any], plain: tuple[Any, ...], shapes: tuple[Any, ...]) -> None:
    """Call a user's function with plain numbers, for their indices, and with tracers.

    Parameters
    ----------
    what : str
        What it is, for the message.
    call : callable
        Calls it, and refuses what it gives.
    plain, shapes : tuple
        Arguments of either call.

    Raises
    ------
    InputError
        With the message of whatever it raised.
    """
    with our_settings():
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                call(*plain)
        except IndexError as error:
            raise InputError(f"{what}: {error}; count states and lags from 0") from error
        except Exception:
            pass
        with refusing(what):
            jax.eval_shape(call, *shapes)


@contextmanager
def refusing(what: str) -> Iterator[None]:
    """Whatever a user's function raises within becomes an `InputError` that carries its message."""
    try:
        yield
    except InputError:
        raise
    except _ReturnedError as error:
        raise InputError(f"{what}: {error}") from None
    except Exception as error:
        text = " ".join(str(error).split())[:_LONGEST]
        if isinstance(error, _TRACED) or any(part in text for part in _NUMPYS):
            raise InputError(
                f"{what}: asks for a number where there is none yet; write jax.numpy instead of numpy and math, and "
                "jax.numpy.where instead of if"
            ) from error
        raise InputError(f"{what}: fails with {type(error).__name__}: {text}") from error


class _ReturnedError(TypeError):
    """A user's function returned a value of the wrong kind."""


def _kind(given: Any) -> str:
    return "nothing (None)" if given is None else f"a {type(given).__name__}"


def argument_count(what: str, function: Any, example: str) -> None:
    """Refuse what cannot be called."""
    if not callable(function):
        raise InputError(f"{what}: {type(function).__name__} cannot be called; give a function, for example {example}")
