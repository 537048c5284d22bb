"""DCQCN: congestion control for large-scale RDMA deployments (Zhu et al., SIGCOMM 2015)."""

from fluidcc.schemes.dcqcn.parameters import DCQCN, PRESETS

Parameters = DCQCN

__all__ = ["DCQCN", "PRESETS", "Parameters"]
