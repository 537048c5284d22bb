"""ACC decides at the end of each period: its rate changes in jumps, and there is nothing to linearise."""

from __future__ import annotations

from fluidcc.schemes.acc.parameters import ACC

MOVES: tuple[str, ...] = ()


def smooth(parameters: ACC) -> bool:
    """Return False: ACC's rate changes in jumps, whatever its parameters."""
    return False
