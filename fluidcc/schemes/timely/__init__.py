"""TIMELY: RTT-based congestion control (Mittal et al., SIGCOMM 2015)."""

from fluidcc.schemes.timely.parameters import PRESETS, TIMELY

Parameters = TIMELY

__all__ = ["PRESETS", "TIMELY", "Parameters"]
