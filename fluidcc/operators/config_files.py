"""Reading text that a person points at: bounded, decoded, and refused in one line."""

from __future__ import annotations

import codecs
import math
import os
import re
from typing import Any

from fluidcc.errors import InputError
from fluidcc.files import LARGEST, read_bounded

_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)", re.ASCII)
_EXPONENT = re.compile(rf"(?:{_NUMBER.pattern})[eE][+-]?\d{{1,3}}", re.ASCII)
_SHOWN = 40  # characters of a file's own text that an error message repeats


def clip(value: Any) -> str:
    """Show a value from a file within an error message: on one line, printable, and short."""
    if isinstance(value, (dict, list)):
        return "a nested object" if isinstance(value, dict) else "a list"
    text = value if isinstance(value, str) else _plain(value)
    if len(text) > _SHOWN:
        text = text[:_SHOWN] + "..."
    return ascii(text) if isinstance(value, str) else text


def _plain(value: Any) -> str:
    try:
        return str(value)
    except ValueError:  # an integer of thousands of digits
        return "a huge number"


def label(text: Any) -> str:
    """Show a file's name or a key from a file within an error message, without quotes if it is harmless."""
    text = str(text)
    return text if text.isprintable() and len(text) <= 200 else clip(text)


def listing(names: list[str], most: int = 8) -> str:
    """Join the first few names, and say how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(label(name) for name in names[:most]) + more


def decoded(raw: bytes, errors: str = "strict") -> str:
    """Decode UTF-8, or UTF-16 after its byte-order mark."""
    return raw.decode("utf-16" if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig", errors)


def read_text(path: str | os.PathLike[str], expected: str) -> str:
    """Read a whole text file.

    Parameters
    ----------
    path : str or path
    expected : str
        What the file should be, for the error message.

    Returns
    -------
    str
        Its text, decoded as UTF-8, or as UTF-16 after a byte-order mark, which is removed.

    Raises
    ------
    InputError
        If it is missing, a directory, unreadable, larger than 64 MiB, no such text, or a pipe that does not end.
    """
    name = label(os.fspath(path))
    try:
        raw = read_bounded(path, LARGEST)
    except IsADirectoryError:
        raise InputError(f"{name}: is a directory; give {expected}") from None
    except FileNotFoundError:
        raise InputError(f"{name}: no such file; give {expected}") from None
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        reason = error.strerror if isinstance(error, OSError) else "not a file name"
        raise InputError(f"{name}: cannot be read ({reason}); give {expected}") from None
    if len(raw) > LARGEST:
        raise InputError(f"{name}: is larger than {LARGEST // 2**20} MiB; give {expected}")
    try:
        return decoded(raw)
    except UnicodeDecodeError as error:
        raise InputError(f"{name}: is not UTF-8 text (byte {error.start}); give {expected}") from None


def number(value: Any, where: str, what: str, low: float, high: float, *, integer: bool = False) -> float:
    """Read a plain number that a file gives as text or as a JSON number.

    Parameters
    ----------
    value : object
        What the file has.
    where : str
        File and key, for the error message.
    what : str
        Meaning and unit, for the error message.
    low, high : float
        The range allowed, ends included.
    integer : bool
        Whether only whole numbers are allowed.

    Raises
    ------
    InputError
        If it is no finite number, outside the range, or text with an exponent: of ``2e5`` SONiC reads 2 (``stoi`` in
        orchagent/qosorch.cpp of sonic-swss).
    """
    wanted = f"write {what}, {'a whole number ' if integer else ''}from {low:.15g} to {high:.15g}"
    if isinstance(value, str):
        text = value.strip()
        if _EXPONENT.fullmatch(text):
            raise InputError(f"{where}: {clip(value)} has an exponent, which devices do not read; {wanted}, in digits")
        read = float(text) if len(text) <= 64 and _NUMBER.fullmatch(text) else math.nan
    elif isinstance(value, int) and not isinstance(value, bool):
        read = float(value) if abs(value) <= 10**18 else math.inf
    else:
        read = value if isinstance(value, float) else math.nan
    if math.isnan(read):
        raise InputError(f"{where}: {clip(value)} is not a number; {wanted}")
    if not low <= read <= high or (integer and read != round(read)):
        raise InputError(f"{where}: {clip(value)} is out of range; {wanted}")
    return read
