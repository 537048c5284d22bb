"""Limit on the memory that runs may take, checked before it is taken; the user can set it."""

from __future__ import annotations

import contextlib
import math
import os
from pathlib import Path
from typing import Any

from fluidcc.errors import InputError
from fluidcc.units import SIZE, quantity, show

VARIABLE = "FLUIDCC_MEMORY"
_SHARE = 0.5  # of the machine's memory, where nobody sets a limit
_CONTAINER = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def limit(given: Any = None, default: float | None = None) -> float:
    """Bytes that may be taken: as given, else as ``FLUIDCC_MEMORY`` says, else the default.

    Parameters
    ----------
    given : quantity
        [bytes].
    default : float
        [bytes]; half of the memory of the machine, or of its container, if not given.

    Raises
    ------
    InputError
        If what is set is no size above 0.
    """
    name, value = ("memory", given) if given is not None else (VARIABLE, os.environ.get(VARIABLE) or None)
    if value is None:
        return _SHARE * _installed() if default is None else default
    most = quantity(value, SIZE, name)
    if not most > 0:
        raise InputError(f"{name}: {show(most, SIZE)} is no amount of memory; write for example {name}=4GB")
    return most


def require(needed: float, most: float, what: str, instead: str) -> None:
    """Refuse what needs more memory than may be taken.

    Parameters
    ----------
    needed, most : float
        [bytes].
    what : str
        What needs it, with its verb.
    instead : str
        What to do about it.

    Raises
    ------
    InputError
    """
    if needed > most:
        # Rounded up, so that what is named is enough.
        amount = show(math.ceil(needed / 1e8) * 1e8, SIZE)
        raise InputError(
            f"{what} {amount} of memory, where {show(most, SIZE)} may be taken; {instead}, "
            f"or allow more: {VARIABLE}={amount}"
        )


def _installed() -> float:
    """Memory of the machine, or of the container that this runs in [bytes]."""
    found = [math.inf]
    with contextlib.suppress(AttributeError, OSError, ValueError):
        found.append(float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES"))
    for path in _CONTAINER:
        with contextlib.suppress(OSError, ValueError):
            found.append(float(Path(path).read_text()))
    return min(found)
