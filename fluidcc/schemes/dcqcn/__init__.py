"""DCQCN: congestion control for large-scale RDMA deployments (Zhu et al., SIGCOMM 2015)."""

from fluidcc.schemes.dcqcn.parameters import DCQCN, PRESETS, preset

__all__ = ["DCQCN", "PRESETS", "preset"]
