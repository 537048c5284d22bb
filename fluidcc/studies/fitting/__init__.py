"""Fitting: unknown parameters from a measured queue or rate, with intervals and with what cannot be told apart."""

from fluidcc.studies.fitting.fit import fit
from fluidcc.studies.fitting.result import Estimate, Fit

__all__ = ["Estimate", "Fit", "fit"]
