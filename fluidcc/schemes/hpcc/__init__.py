"""HPCC: high precision congestion control (Li et al., SIGCOMM 2019)."""

from fluidcc.schemes.hpcc.parameters import HPCC, PRESETS

Parameters = HPCC

__all__ = ["HPCC", "PRESETS", "Parameters"]
