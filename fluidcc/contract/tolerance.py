"""How far the fluid model of a scheme may be from the packets, and why."""

from __future__ import annotations

from typing import NamedTuple


class Tolerance(NamedTuple):
    """Largest difference, relative or absolute as the compared key says, and the reason for it."""

    value: float
    reason: str
