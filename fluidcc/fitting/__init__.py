"""Fitting: unknown parameters from a measured queue or rate, with intervals and with what cannot be told apart."""

from fluidcc.fitting.fit import fit
from fluidcc.fitting.result import Estimate, Fit

__all__ = ["Estimate", "Fit", "fit"]
