"""Tuning: the best setting under constraints, found on the hybrid or the fluid, proved by packets."""

from fluidcc.studies.tuning.result import Candidate, Tuning
from fluidcc.studies.tuning.tune import tune

__all__ = ["Candidate", "Tuning", "tune"]
