"""The event loop for the schemes that are known: one for those built in, made again once others are registered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fluidcc.engines.common.chains import follow_registry
from fluidcc.engines.packet import dispatch, engine


def run() -> Callable[..., Any]:
    """Return the compiled loop, `engine.run`; numbers and tables that `dispatch` has from now on go with it."""
    follow_registry(dispatch, engine)
    return engine.run
