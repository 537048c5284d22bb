"""Tuning: the best setting under constraints, proved by packets; of one queue, or of a whole fabric."""

from fluidcc.studies.tuning.on_fabric import FabricTuning, tune_fabric
from fluidcc.studies.tuning.result import Candidate, Tuning
from fluidcc.studies.tuning.tune import tune

__all__ = ["Candidate", "FabricTuning", "Tuning", "tune", "tune_fabric"]
