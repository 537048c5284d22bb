"""Quantities with units at the edge, SI floats (seconds, bytes, bytes per second) inside.

The grammar is closed: a finite decimal number, optionally divided by another, then one suffix of the
table of its dimension. ``KB`` is 1000 bytes, as in the congestion-control papers; ``KiB`` is 1024.

Sizes and times may be plain SI numbers. A plain rate other than 0 is refused, because bits and bytes are too easy to
mix up: ``rate=40e9`` would be 320 Gb/s, and so would an element of ``np.linspace(10e9, 40e9, 4)``. What knows that it
is in bytes/s is a `Rate`, which all that is read becomes, a JAX array or a traced value, or text with the suffix
``B/s``. A plain time above 10 s is refused too: ``timer=55`` was meant in microseconds. What knows that it is that long
is a `Seconds`.
"""

from __future__ import annotations

import contextlib
import math
import numbers
import re
import sys
from typing import Any

from fluidcc.errors import InputError

__all__ = [
    "COUNT",
    "RATE",
    "RATIO",
    "SIZE",
    "TIME",
    "Rate",
    "Seconds",
    "interval",
    "parse",
    "quantity",
    "scale_of",
    "show",
]


def __dir__() -> list[str]:
    return __all__


RATE, SIZE, TIME, RATIO, COUNT = "bytes/s", "bytes", "s", "1", "count"
DIMENSIONS = {RATE: "RATE", SIZE: "SIZE", TIME: "TIME", RATIO: "RATIO", COUNT: "COUNT"}

_BIT = 1.0 / 8.0
_PREFIXES = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_SUFFIXES: dict[str, dict[str, float]] = {
    RATE: {p + u: f * _BIT for p, f in _PREFIXES.items() for u in ("bps", "b/s", "bit/s")}
    | {p + "B/s": f for p, f in _PREFIXES.items()},
    SIZE: {p + "B": f for p, f in _PREFIXES.items()} | {"KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30},
    TIME: {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ns": 1e-9, "ps": 1e-12},
    RATIO: {"%": 1e-2},
    COUNT: {},
}
EXAMPLE = {RATE: "40Gbps", SIZE: "200KB", TIME: "50us", RATIO: "1%, 0.01 or 1/256", COUNT: "5"}
_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_QUANTITY = re.compile(rf"\s*({_NUMBER})(?:\s*/\s*({_NUMBER}))?\s*([A-Za-zµμ%/]*)\s*", re.ASCII)
_LONGEST_PLAIN = 10.0  # s; a plain number above it is more likely meant in us or ms
LEAST_RATE = 1e6  # a plain number below it is no rate that anybody means, in bits/s or in bytes/s
_LONGEST = 64  # characters; keeps a hostile string from costing more than its error message


class Rate(float):
    """A rate in bytes/s: a float that says so, where a plain one is refused.

    It stays one when plain numbers are added to or subtracted from it, when it is multiplied or divided by one, and
    under ``-``, ``abs``, ``round`` to digits, ``//`` and ``%``: half of a link's ``rate`` is a rate as well. A rate
    over a rate, or times one, is a plain number. What it is multiplied by is not known to be a time: ``rate * 1e-6``
    stays marked. To JAX, NumPy and JSON it is a float like others: ``np.float64(2) * rate`` is plain,
    ``rate * np.float64(2)`` a rate.

    Parameters
    ----------
    x : float
        The rate [bytes/s].

    Examples
    --------
    >>> quantity("40Gbps", RATE) / 2
    2500000000.0
    >>> quantity(Rate(5e9), RATE)
    5000000000.0
    """

    __slots__ = ()

    def __add__(self, other: Any) -> Any:
        return _rate(float.__add__, self, other)

    def __radd__(self, other: Any) -> Any:
        return _rate(float.__radd__, self, other)

    def __sub__(self, other: Any) -> Any:
        return _rate(float.__sub__, self, other)

    def __rsub__(self, other: Any) -> Any:
        return _rate(float.__rsub__, self, other)

    def __mul__(self, other: Any) -> Any:
        return _per_rate(float.__mul__, self, other)

    def __rmul__(self, other: Any) -> Any:
        return _per_rate(float.__rmul__, self, other)

    def __truediv__(self, other: Any) -> Any:
        return _per_rate(float.__truediv__, self, other)

    def __floordiv__(self, other: Any) -> Any:
        return _per_rate(float.__floordiv__, self, other)

    def __mod__(self, other: Any) -> Any:
        return _rate(float.__mod__, self, other)

    def __neg__(self) -> Rate:
        return Rate(float.__neg__(self))

    def __pos__(self) -> Rate:
        return self

    def __abs__(self) -> Rate:
        return Rate(float.__abs__(self))

    def __round__(self, ndigits: Any = None) -> Any:
        return float.__round__(self) if ndigits is None else Rate(float.__round__(self, ndigits))


def _rate(operate: Any, rate: Rate, other: Any) -> Any:
    """Apply a float's operation and mark its result as a rate; leave arrays to the rules of arrays."""
    if hasattr(other, "dtype"):
        if not isinstance(other, numbers.Real):
            return NotImplemented
        other = float(other)  # a NumPy scalar
    result = operate(rate, other)
    return result if result is NotImplemented else Rate(result)


def _per_rate(operate: Any, rate: Rate, other: Any) -> Any:
    """Apply an operation as `_rate` does; by another rate the result is a plain number."""
    return operate(rate, float(other)) if isinstance(other, Rate) else _rate(operate, rate, other)


class Seconds(float):
    """A time that may be above 10 s: a float that says that it had a unit, where a plain one is refused.

    Parameters
    ----------
    x : float
        The time [s].

    Examples
    --------
    >>> quantity("100s", TIME)
    100.0
    >>> quantity(Seconds(100), TIME)
    100.0
    """

    __slots__ = ()


def parse(text: str, dimension: str, name: str = "value") -> float:
    """Read one quantity.

    Parameters
    ----------
    text : str
        For example ``"40Gbps"``, ``"5KB"``, ``"50us"``, ``"1/256"``, ``"1%"``.
    dimension : str
        One of `RATE`, `SIZE`, `TIME`, `RATIO`, `COUNT`.
    name : str
        What the quantity is, for the error message.

    Returns
    -------
    float
        The value in bytes per second (a `Rate`), bytes, seconds (`Seconds`), or plain.

    Raises
    ------
    InputError
        If the text is not a finite number with a known suffix. A bare number is read as SI, except that
        a bare rate other than 0 is refused: bits or bytes is too easy to get wrong. So is a bare time above 10 s.
    """
    shown = text if len(text) <= _LONGEST else text[:_LONGEST] + "..."
    match = _QUANTITY.fullmatch(text.replace("µ", "u").replace("μ", "u")) if len(text) <= _LONGEST else None
    if match is None:
        raise InputError(f"{name}: cannot read {shown!r}; write a number and a unit, such as {EXAMPLE[dimension]}")
    numerator, denominator, suffix = match.groups()
    value = float(numerator)
    if denominator is not None:
        if float(denominator) == 0:
            raise InputError(f"{name}: {shown!r} divides by zero; write for example {EXAMPLE[dimension]}")
        value /= float(denominator)
    table = _SUFFIXES[dimension]
    if suffix:
        if suffix not in table:
            raise InputError(f"{name}: unknown unit {suffix!r} in {shown!r}; {_write(shown, suffix, dimension)}")
        factor = table[suffix]
        # Dividing by the exact inverse rounds once, so that "50us" is 5e-05 and not 4.9999999999999996e-05.
        value = value * factor if factor >= 1 else value / round(1 / factor)
    elif dimension == RATE and value != 0:
        raise _bare_rate(value, repr(shown), name)
    elif dimension == TIME:
        _refuse_long_plain(value, name)
    if not math.isfinite(value):
        raise InputError(f"{name}: {shown!r} is not finite; write for example {EXAMPLE[dimension]}")
    return marked(value, dimension)


def _bare_rate(value: float, shown: str, name: str) -> InputError:
    """Build the error for a rate without a unit: bits and bytes are both possible, but not for small numbers."""
    if abs(value) < LEAST_RATE or not math.isfinite(value):
        return InputError(f"{name}: {shown} has no unit (bits or bytes?); write for example {EXAMPLE[RATE]} or 5GB/s")
    bits, both, exact = show(value * _BIT, RATE, 12), show(value, RATE, 12), f"{value:.12g}".replace("e+", "e")
    return InputError(f"{name}: {shown} has no unit; write {bits}, or {both} if bytes/s were meant ({exact}B/s)")


def is_long(seconds: float) -> bool:
    """Say that a time needs a unit, as without one it would be taken for microseconds."""
    return _LONGEST_PLAIN < seconds < math.inf


def _refuse_long_plain(seconds: float, name: str) -> None:
    """Refuse a time without a unit that is longer than anybody means: it is in seconds."""
    if is_long(seconds):
        text = f"{seconds:g}"
        raise InputError(f"{name}: {text} has no unit, and would be seconds; write {text}us, {text}ms or {text}s")


def parse_any(text: str, name: str = "value") -> float:
    """Read a quantity whose dimension its suffix tells; a bare number is plain.

    Raises
    ------
    InputError
        As `parse`.
    """
    suffix = re.sub(r"^[\s\d.+/eE-]*", "", text[:_LONGEST]).strip().replace("µ", "u").replace("μ", "u")
    dimension = next((d for d, table in _SUFFIXES.items() if suffix in table), RATIO)
    return parse(text, dimension, name)


def _write(text: str, suffix: str, dimension: str) -> str:
    """Say what to write for a quantity with an unknown unit: the one that differs in capitals alone, or an example."""
    table = _SUFFIXES[dimension]
    if not table:
        return f"it has none: write a plain number, for example {EXAMPLE[dimension]}"
    alike = [each for each in table if each.lower() == suffix.lower()]
    if len({table[each] for each in alike}) == 1:  # not of Gb/s and GB/s
        return f"write {text.replace(suffix, alike[-1])}, with a unit as in {EXAMPLE[dimension]}"
    return f"write for example {EXAMPLE[dimension]} (units known here: {' '.join(table)})"


_MARKED: dict[str, type[float]] = {RATE: Rate, TIME: Seconds}
_PLAIN = (float, Rate, Seconds, int)  # almost all numbers; `numbers.Real` takes ten times as long to ask


def quantity(value: Any, dimension: str, name: str = "value") -> Any:
    """Bring a quantity to SI: text is parsed, a plain number or an array of one is SI already, a tracer passes.

    Parameters
    ----------
    value : quantity
        Text, a number, or an array without dimensions or a traced value in SI.
    dimension : str
        One of `RATE`, `SIZE`, `TIME`, `RATIO`, `COUNT`.
    name : str
        What the quantity is, for the error message.

    Returns
    -------
    float or traced
        In SI; a rate that is not traced is a `Rate` and a time a `Seconds`, so that they can be given again.

    Raises
    ------
    InputError
        If text cannot be read, or a number is NaN, or it is neither number nor text, as are arrays of several; and
        if it is a plain number other than 0 for a rate or above 10 s for a time, of NumPy or not (`Rate`, `Seconds`,
        JAX arrays and traced values are in SI).
    """
    if isinstance(value, str):
        return parse(value, dimension, name)
    if type(value) in _PLAIN or (isinstance(value, numbers.Real) and not isinstance(value, bool)):
        try:
            number = float(value)
        except OverflowError:
            raise InputError(f"{name}: the number is too large; write for example {EXAMPLE[dimension]}") from None
        if math.isnan(number):
            raise InputError(f"{name}: NaN is not a quantity; write for example {EXAMPLE[dimension]}")
        _refuse_bare(value, dimension, name)
        return marked(number, dimension)
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        _refuse_bare(value, dimension, name)
        return _of_array(value, dimension, name)
    raise InputError(f"{name}: expected a quantity such as {EXAMPLE[dimension]}, not {repr(value)[:_LONGEST]}")


def _of_array(value: Any, dimension: str, name: str) -> Any:
    """The number of an array without dimensions, SI, checked like any other; a traced one stays as it is."""
    if value.shape != () or value.dtype.kind in "bcOSUmM":
        what = f"an array of shape {value.shape}" if value.shape else f"of type {value.dtype}"
        raise InputError(f"{name}: expected one quantity such as {EXAMPLE[dimension]}, not {what}")
    jax = sys.modules.get("jax")
    if jax is not None and isinstance(value, jax.core.Tracer):
        return value
    return quantity(marked(float(value), dimension), dimension, name)


def marked(value: Any, dimension: str) -> Any:
    """Mark a number in SI, such as one worked out from others, as a `Rate` or as `Seconds`, so that it can be given.

    Parameters
    ----------
    value : number or array
        What is no plain number, such as a tracer or text, is left as it is.
    dimension : str
    """
    return _MARKED.get(dimension, float)(value) if is_concrete(value) else value


def refuse_bare_rate(value: Any, name: str) -> None:
    """Refuse a plain number other than 0 as a rate; anything else passes, also what no rate is.

    Parameters
    ----------
    value : object
    name : str
        What the quantity is, for the error message.

    Raises
    ------
    InputError
        If it is a plain number or a NumPy scalar, other than 0, or a NumPy array with such elements. A `Rate`, a JAX
        array and a traced value are in bytes/s.
    """
    if type(value) in (str, Rate, type(None)):  # what almost all are
        return
    if hasattr(value, "__array_interface__"):  # NumPy's; JAX's have none
        bare = next((each for each in value.ravel().tolist() if _is_bare_rate(each)), None)
        if bare is not None and value.ndim:
            problem = _bare_rate(float(bare), f"{bare:.12g} in an array", name)
            raise InputError(f"{problem}; an array in bytes/s is one of jax.numpy")
        value = bare
    if _is_bare_rate(value):
        raise _bare_rate(float(value), f"{float(value):.12g}", name)


def refuse_bare_time(value: Any, name: str) -> None:
    """Refuse a plain number above 10 s as a time, as `refuse_bare_rate` does one as a rate; what is marked passes.

    Raises
    ------
    InputError
        If it is one, or a NumPy array holds one.
    """
    known: type = type(value)
    if known in (str, Seconds, type(None)) or (known is float and value <= _LONGEST_PLAIN):
        return
    for each in value.ravel().tolist() if hasattr(value, "__array_interface__") else [value]:
        if isinstance(each, numbers.Real) and not isinstance(each, (bool, Rate, Seconds)):
            with contextlib.suppress(OverflowError):  # an integer that no float holds is refused as it is read
                _refuse_long_plain(float(each), name)


def _refuse_bare(value: Any, dimension: str, name: str) -> None:
    if dimension == RATE:
        refuse_bare_rate(value, name)
    elif dimension == TIME:
        refuse_bare_time(value, name)


def _is_bare_rate(value: Any) -> bool:
    if not isinstance(value, numbers.Real) or isinstance(value, (bool, Rate)):
        return False
    try:
        return value != 0 and math.isfinite(value)
    except OverflowError:  # an integer that no float holds
        return False


def interval(value: Any, name: str) -> tuple[float, float] | None:
    """Bring an interval of time to SI: text ``"A:B"``, a pair of quantities, or None.

    Raises
    ------
    InputError
        If it is neither, or ends before it begins.
    """
    if value is None:
        return None
    parts = value.split(":") if isinstance(value, str) else value
    if not isinstance(parts, (tuple, list)) or len(parts) != 2:
        raise InputError(f"{name}: {repr(value)[:_LONGEST]} is no A:B; write for example 50ms:100ms")
    opens, closes = quantity(parts[0], TIME, name), quantity(parts[1], TIME, name)
    if opens >= closes:
        ends = f"{show(opens, TIME)}:{show(closes, TIME)}"
        raise InputError(f"{name}: {ends} does not end after it begins; write the earlier time first")
    return opens, closes


def whole(value: Any, least: int, most: float, name: str, hint: str = "") -> int:
    """A whole number within bounds, as Python, NumPy or JAX have them, arrays without dimensions among them.

    Raises
    ------
    InputError
        If it is none.
    """
    plain = value
    if getattr(value, "ndim", None) == 0:
        with contextlib.suppress(TypeError):  # a traced one has no value
            plain = value.item()
    if not isinstance(plain, numbers.Integral) or isinstance(plain, bool) or not least <= int(plain) <= most:
        raise InputError(f"{name}: expected a whole number from {least} to {int(most)}, not {repr(value)[:40]}{hint}")
    return int(plain)


def is_concrete(value: Any) -> bool:
    """Check whether a value is a plain number, which can be compared and checked (a traced one cannot)."""
    return type(value) in _PLAIN or isinstance(value, numbers.Real)


_SCALES = {
    RATE: [(1e12 * _BIT, "Tbps"), (1e9 * _BIT, "Gbps"), (1e6 * _BIT, "Mbps"), (1e3 * _BIT, "Kbps"), (_BIT, "bps")],
    SIZE: [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "KB"), (1.0, "B")],
    TIME: [(1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")],
}


def scale_of(magnitude: float, dimension: str) -> tuple[float, str]:
    """Divisor and suffix that show a value of this magnitude well, for axis labels and tables.

    Examples
    --------
    >>> scale_of(5e9, RATE)
    (125000000.0, 'Gbps')
    """
    scales = _SCALES.get(dimension)
    if scales is None:
        return 1.0, ""
    for factor, suffix in scales:
        if abs(magnitude) >= factor * (1 - 1e-12):
            return factor, suffix
    return scales[-1] if magnitude else (1.0, {RATE: "B/s", SIZE: "B", TIME: "s"}[dimension])


def show(value: float, dimension: str, digits: int = 4) -> str:
    """Format an SI value with a suffix that `parse` reads back (to the digits shown).

    A ratio from 2^-20 to 1/16 that is a power of two is shown as a fraction, as gains are written.

    Examples
    --------
    >>> show(5e9, RATE)
    '40Gbps'
    >>> show(5.5e-05, TIME)
    '55us'
    >>> show(0.00390625, RATIO)
    '1/256'
    """
    if not math.isfinite(value):
        return "unlimited" if value > 0 else str(value)
    if dimension == RATIO and 2**-20 <= value <= 1 / 16 and math.frexp(value)[0] == 0.5:
        return f"1/{1 / value:.0f}"
    factor, suffix = scale_of(value, dimension)
    return f"{value / factor:.{digits}g}{suffix}"
