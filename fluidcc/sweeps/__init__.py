"""Sweeps: many settings of one scenario, compiled once and run on all cores."""

from fluidcc.sweeps.result import SweepResult
from fluidcc.sweeps.run import sweep

__all__ = ["SweepResult", "sweep"]
