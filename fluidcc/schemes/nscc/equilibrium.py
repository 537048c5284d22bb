"""NSCC cuts its window in jumps, so that queues cycle, and there is nothing to linearise."""

from __future__ import annotations

from fluidcc.schemes.nscc.parameters import NSCC

MOVES: tuple[str, ...] = ()


def smooth(parameters: NSCC) -> bool:
    """Return False: NSCC's window changes in jumps, whatever its parameters."""
    return False
