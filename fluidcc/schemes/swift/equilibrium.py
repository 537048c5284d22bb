"""Swift cuts its window in jumps, so that queues cycle, and there is nothing to linearise."""

from __future__ import annotations

from fluidcc.schemes.swift.parameters import Swift

MOVES: tuple[str, ...] = ()


def smooth(parameters: Swift) -> bool:
    """Return False: Swift's window changes in jumps, whatever its parameters."""
    return False
