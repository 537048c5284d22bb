"""Sweeps: many settings of one scenario, compiled once and run on all cores."""

from fluidcc.studies.sweeps.result import SweepResult
from fluidcc.studies.sweeps.run import sweep

__all__ = ["SweepResult", "sweep"]
