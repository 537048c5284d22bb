"""The process of a command: its standard output and error, its end soon after Ctrl-C, and a sign of life.

The streams may be closed, full, or of an encoding that lacks a character. Python looks at a signal only when compiled
code returns.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import socket
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from fluidcc.compiling.settings import SOURCE


def prepare_streams() -> bool:
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


def drop_stream(stream: Any) -> None:
    """Send what is left in a stream's buffer nowhere, when the interpreter flushes it at exit."""
    with contextlib.suppress(OSError, ValueError):  # ValueError: it has no descriptor
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _formatted(message: Any, category: type[Warning], filename: str, lineno: int, line: str | None = None) -> str:
    if filename == SOURCE or Path(filename).is_relative_to(_PACKAGE):
        return f"fluidcc: {message}\n"
    return _others(message, category, filename, lineno, line)


_PACKAGE = Path(__file__).parents[1]
_others = warnings.formatwarning


# -- Ctrl-C ------------------------------------------------------------------------------------------------


INTERRUPTED = 130
_GRACE = 1.0  # s for the command to end by itself: to remove its temporary files, and to finish writing a chunk
_said, _received = threading.Event(), threading.Event()


def say_interrupted() -> None:
    """Say that the command was interrupted."""
    _said.set()
    sys.stderr.write("fluidcc: interrupted\n")


def interrupted() -> bool:
    """Check whether SIGINT came, so that any error may result from it."""
    return _received.is_set()


def watch_interrupts() -> None:
    """End the process some time after SIGINT, if the command has not ended by then; for the main thread, once."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:  # ignored, as by nohup
        return
    signal.signal(signal.SIGINT, _on_sigint)
    shown = sys.unraisablehook
    # Where an exception cannot be raised, as in callbacks of the garbage collector, it is dropped: the watch ends it.
    sys.unraisablehook = lambda what: None if what.exc_type is KeyboardInterrupt else shown(what)
    here, there = socket.socketpair()
    there.setblocking(False)
    signal.set_wakeup_fd(there.fileno(), warn_on_full_buffer=False)
    threading.Thread(target=_end, args=(here, there), daemon=True, name="fluidcc-interrupt").start()


def _on_sigint(_: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, but not into an import: extension modules that are half-way crash."""
    _received.set()
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            _leave()
        frame = frame.f_back
    raise KeyboardInterrupt


def _end(here: socket.socket, there: socket.socket) -> None:
    """Wait for the byte that Python writes at each signal; ``there`` is only kept open."""
    while signal.SIGINT not in (received := here.recv(64)):
        if not received:
            return
    time.sleep(_GRACE)
    _leave()


def _leave() -> NoReturn:
    """End the process now."""
    with contextlib.suppress(OSError, ValueError):
        if sys.stderr.isatty():
            sys.stderr.write("\x1b[?25h")  # a progress bar hides the cursor
        if not _said.is_set():
            say_interrupted()
        sys.stderr.flush()
    os._exit(INTERRUPTED)


# -- a sign of life: lines from time to time where no part of a command says how far it is -----------------


_SOON = 2.0  # s; what ends by then imports nothing for it


@contextmanager
def working(command: str) -> Iterator[None]:
    """Have `fluidcc.progress` report, within the block, that a command is at work if nothing else is reported."""
    ended = threading.Event()
    threading.Thread(target=_say_working, args=(command, ended), daemon=True, name="fluidcc-working").start()
    try:
        yield
    finally:
        ended.set()


def _say_working(command: str, ended: threading.Event) -> None:
    if ended.wait(_SOON):
        return
    from fluidcc.progress import waiting

    with waiting(f"{command} is at work", drawn=False, general=True):
        ended.wait()
