"""Tolerances of a scheme's fluid model against packets, with their reasons."""

from __future__ import annotations

from typing import NamedTuple


class Tolerance(NamedTuple):
    """Largest difference, relative or absolute as the compared key says, and the reason for it."""

    value: float
    reason: str
