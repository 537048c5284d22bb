"""No congestion control: line rate, or rates that follow a schedule."""

from fluidcc.schemes.none.parameters import PRESETS, NoControl

Parameters = NoControl

__all__ = ["PRESETS", "NoControl", "Parameters"]
