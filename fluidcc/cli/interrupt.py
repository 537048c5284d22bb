"""Ending soon after Ctrl-C, also where Python cannot: it looks at a signal only when compiled code returns."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
import time

STATUS = 130
_GRACE = 1.0  # s for the command to end by itself: to remove its temporary files, and to finish writing a chunk
_said = threading.Event()


def say() -> None:
    """Say that the command was interrupted."""
    _said.set()
    sys.stderr.write("fluidcc: interrupted\n")


def watch() -> None:
    """End the process some time after SIGINT, if the command has not ended by then; for the main thread, once."""
    here, there = socket.socketpair()
    there.setblocking(False)
    signal.set_wakeup_fd(there.fileno(), warn_on_full_buffer=False)
    threading.Thread(target=_end, args=(here, there), daemon=True, name="fluidcc-interrupt").start()


def _end(here: socket.socket, there: socket.socket) -> None:
    """Wait for the byte that Python writes at each signal; ``there`` is only kept open."""
    while signal.SIGINT not in (received := here.recv(64)):
        if not received:
            return
    time.sleep(_GRACE)
    with contextlib.suppress(OSError, ValueError):
        if sys.stderr.isatty():
            sys.stderr.write("\x1b[?25h")  # a progress bar hides the cursor
        if not _said.is_set():
            say()
        sys.stderr.flush()
    os._exit(STATUS)
