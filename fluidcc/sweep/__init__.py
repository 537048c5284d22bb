"""Sweeps: many settings of one scenario, compiled once and run on all cores."""

from fluidcc.sweep.result import SweepResult
from fluidcc.sweep.run import sweep

__all__ = ["SweepResult", "sweep"]
