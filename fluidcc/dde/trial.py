"""A user's functions, called once to see what is wrong with them: with numbers that check their index, then traced."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fluidcc.compiling.settings import our_settings
from fluidcc.errors import InputError

_TRACED = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerBoolConversionError,
    jax.errors.TracerIntegerConversionError,
)
# What NumPy says of a tracer.
_NUMPYS = ("loop of ufunc", "Tracer", "Only integer scalar arrays", "setting an array element with a sequence")
_LONGEST = 300  # characters of another's message


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
