"""AIMD on ECN: a rate that grows by a constant in each round trip, and that every mark cuts by a share."""

from __future__ import annotations

from aimd_ecn.parameters import AIMD, PRESETS

Parameters = AIMD

__all__ = ["AIMD", "PRESETS", "Parameters"]
