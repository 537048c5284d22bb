"""A sign of life of a command: lines from time to time where no part of it says how far it is."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_SOON = 2.0  # s; what ends by then imports nothing for it


@contextmanager
def working(command: str) -> Iterator[None]:
    """Have `fluidcc.progress` report, within the block, that a command is at work if nothing else is reported."""
    ended = threading.Event()
    threading.Thread(target=_say, args=(command, ended), daemon=True, name="fluidcc-working").start()
    try:
        yield
    finally:
        ended.set()


def _say(command: str, ended: threading.Event) -> None:
    if ended.wait(_SOON):
        return
    from fluidcc.progress import waiting

    with waiting(f"{command} is at work", drawn=False, general=True):
        ended.wait()
