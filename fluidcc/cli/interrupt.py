"""Ending soon after Ctrl-C, also where Python cannot: it looks at a signal only when compiled code returns."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
import time
from types import FrameType
from typing import NoReturn

STATUS = 130
_GRACE = 1.0  # s for the command to end by itself: to remove its temporary files, and to finish writing a chunk
_said, _received = threading.Event(), threading.Event()


def say() -> None:
    """Say that the command was interrupted."""
    _said.set()
    sys.stderr.write("fluidcc: interrupted\n")


def received() -> bool:
    """Check whether SIGINT came, so that any error may result from it."""
    return _received.is_set()


def watch() -> None:
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
            say()
        sys.stderr.flush()
    os._exit(STATUS)
