"""Swift cuts its window in jumps, so that queues cycle, and there is nothing to linearise."""

from __future__ import annotations

from fluidcc.schemes.swift.parameters import Swift

MOVES: tuple[str, ...] = ()


def smooth(parameters: Swift) -> bool:
    """With no parameters."""
    return False
