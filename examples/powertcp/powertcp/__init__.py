"""PowerTCP (Addanki, Michel and Schmid, NSDI 2022): windows by the power of a link, its current times its voltage."""

from __future__ import annotations

from powertcp.parameters import PRESETS, PowerTCP

Parameters = PowerTCP

__all__ = ["PRESETS", "Parameters", "PowerTCP"]
