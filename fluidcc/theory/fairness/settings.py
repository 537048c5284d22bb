"""Settings of a decrease, parsed and validated."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fluidcc.errors import InputError
from fluidcc.units import COUNT, RATE, RATIO, SIZE, TIME, quantity

Array = np.ndarray[Any, Any]

_EXAMPLE = {RATE: "100Gbps", SIZE: "1KB", TIME: "30us", COUNT: "30", RATIO: "0.5"}


class Decrease(NamedTuple):
    """Settings of the two rules of section IV-B; numbers or arrays that broadcast.

    Parameters
    ----------
    acks : float or ndarray
        s, ACKs between decreases.
    mtu : float or ndarray
        [bytes].
    rtt : float or ndarray
        r [s].
    beta : float or ndarray
        Between 0 and 1.
    """

    acks: Any
    mtu: Any
    rtt: Any
    beta: Any

    @property
    def sample(self) -> Any:
        """Bytes acknowledged between decreases, s MTU."""
        return self.acks * self.mtu


def settings_of(acks: Any, mtu: Any, rtt: Any, beta: Any) -> Decrease:
    """Parse one setting, each value a number or text with a unit.

    Raises
    ------
    InputError
        If a value is not above 0 and finite, or beta not below 1.
    """
    return Decrease(one("acks", acks, COUNT), one("mtu", mtu, SIZE), one("rtt", rtt, TIME), share("beta", beta))


def one(name: str, value: Any, dimension: str, *, zero: bool = False) -> float:
    """A finite quantity above 0 (``zero``: or 0), in SI.

    Raises
    ------
    InputError
        If it is not.
    """
    number = quantity(value, dimension, name)
    if np.ndim(number) or not np.isfinite(number) or number < 0 or (number == 0 and not zero):
        least = "of at least 0" if zero else "above 0"
        raise InputError(f"{name}: {str(value)[:40]} does not do; give one finite value {least}: {_EXAMPLE[dimension]}")
    return float(number)


def share(name: str, value: Any) -> float:
    """A number between 0 and 1, neither included.

    Raises
    ------
    InputError
        If it is not.
    """
    number = quantity(value, RATIO, name)
    if np.ndim(number) or not 0 < number < 1:
        raise InputError(f"{name}: {str(value)[:40]} is no share to decrease by; give one number between 0 and 1: 0.5")
    return float(number)


def rates_of(rates: Sequence[Any] | Array) -> Array:
    """Initial rates (flows,) of at least two flows [bytes/s].

    Raises
    ------
    InputError
        If there are fewer, or one is not above 0 and finite.
    """
    if isinstance(rates, str) or not np.iterable(rates):
        raise InputError(f"rates: {str(rates)[:40]!r} is no list; give one rate per flow: ['100Gbps', '50Gbps']")
    found = np.array([one(f"rates[{k}]", rate, RATE) for k, rate in enumerate(rates)])
    if len(found) < 2:
        raise InputError(f"rates: {len(found)} flow; fairness takes two: ['100Gbps', '50Gbps']")
    return found


def grid_of(name: str, values: Any, dimension: str) -> Array:
    """Quantities of any shape as float64 in SI: a number, text, array, or nested lists of these. NaN passes.

    Elements of arrays are in SI, rates too: what broadcasts is computed from what was read.

    Raises
    ------
    InputError
        If something is no quantity, or lists are ragged.
    """
    if isinstance(values, (str, numbers.Real)):
        return np.asarray(quantity(values, dimension, name), dtype=np.float64)
    try:
        raw = np.asarray(values, dtype=None if hasattr(values, "dtype") else object)
        if raw.dtype.kind in "fiu":
            return raw.astype(np.float64)
        read = [value if _is_nan(value) else quantity(value, dimension, name) for value in raw.ravel()]
        return np.array(read, dtype=np.float64).reshape(raw.shape)
    except InputError:
        raise
    except (TypeError, ValueError):
        raise InputError(f"{name}: no array of quantities; give a number, text or lists of equal length") from None


def _is_nan(value: Any) -> bool:
    return isinstance(value, (float, np.floating)) and bool(np.isnan(value))
