"""DCTCP: data center TCP (Alizadeh et al., SIGCOMM 2010), as HPCC's section 5.1 compares with it."""

from fluidcc.schemes.dctcp.parameters import DCTCP, PRESETS

Parameters = DCTCP

__all__ = ["DCTCP", "PRESETS", "Parameters"]
