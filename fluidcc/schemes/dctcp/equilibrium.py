"""DCTCP cuts its window in jumps, so that queues cycle, and there is nothing to linearise."""

from __future__ import annotations

from fluidcc.schemes.dctcp.parameters import DCTCP

MOVES: tuple[str, ...] = ()


def smooth(parameters: DCTCP) -> bool:
    """Return False: the protocol jumps, and the analysis' equations here hold from the first ACK on only."""
    return False
