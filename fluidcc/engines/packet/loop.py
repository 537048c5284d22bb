"""The event loop for the schemes that are known: one for those built in, made again once others are registered."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable
from typing import Any

from fluidcc.contract import registry
from fluidcc.engines.packet import dispatch, engine

_lock = threading.Lock()


def run() -> Callable[..., Any]:
    """Return the compiled loop, `engine.run`; numbers and tables that `dispatch` has from now on go with it."""
    with _lock:
        if registry.outside() != dispatch.KNOWN:
            # Another type of `Sim`: what takes one is compiled again for it, and finds the new chains.
            importlib.reload(dispatch)
            importlib.reload(engine)  # so that its machine code is kept apart
    return engine.run
