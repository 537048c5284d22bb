"""Fitting: unknown parameters from a queue, rates or counters, with intervals and with what cannot be told apart."""

from fluidcc.studies.fitting.fit import fit
from fluidcc.studies.fitting.result import Estimate, Fit
from fluidcc.studies.fitting.shares import Shares

__all__ = ["Estimate", "Fit", "Shares", "fit"]
