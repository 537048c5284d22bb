"""Standard output and error where they are closed, full, or of an encoding that lacks a character."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import warnings
from pathlib import Path
from typing import Any

from fluidcc.compiling.settings import SOURCE


def prepare() -> bool:
    """Prepare the streams; return whether there is a standard output. Without standard error nothing is reported.

    Closed descriptors are opened on the null device, so that no file gets their numbers, and with them what C code
    prints. Characters that the locale's encoding lacks are written as escapes. Warnings of our own are one line, as
    errors are.
    """
    warnings.formatwarning = _formatted
    while (handle := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(handle)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - for as long as the process
    if sys.stdout is None:
        with contextlib.suppress(OSError):
            sys.stderr.write("fluidcc: standard output is closed; give it a place, such as > answer.txt\n")
        return False
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    return True


def drop(stream: Any) -> None:
    """Send what is left in a stream's buffer nowhere, when the interpreter flushes it at exit."""
    with contextlib.suppress(OSError, ValueError):  # ValueError: it has no descriptor
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _formatted(message: Any, category: type[Warning], filename: str, lineno: int, line: str | None = None) -> str:
    if filename == SOURCE or Path(filename).is_relative_to(_PACKAGE):
        return f"fluidcc: {message}\n"
    return _others(message, category, filename, lineno, line)


_PACKAGE = Path(__file__).parents[1]
_others = warnings.formatwarning
