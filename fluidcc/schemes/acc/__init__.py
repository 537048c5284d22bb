"""ACC: ACK-driven congestion control for lossless Ethernet (Zhang et al., NSDI 2024)."""

from fluidcc.schemes.acc.parameters import ACC, PRESETS

Parameters = ACC

__all__ = ["ACC", "PRESETS", "Parameters"]
