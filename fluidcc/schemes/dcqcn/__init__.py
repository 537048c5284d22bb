"""DCQCN: congestion control for large-scale RDMA deployments (Zhu et al., SIGCOMM 2015)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fluidcc.schemes.dcqcn.parameters import DCQCN, PRESETS

Parameters = DCQCN

__all__ = ["DCQCN", "PRESETS", "Parameters"]


if TYPE_CHECKING:  # the contract, held by pyright; at run time sides are imported when used
    from fluidcc.contract import protocol
    from fluidcc.schemes.dcqcn import crosscheck, equilibrium, fluid, hybrid, packet

    _parameters: type[protocol.Parameters] = DCQCN
    _fluid: protocol.Projecting[DCQCN, fluid.State, fluid.Feedback] = fluid
    _packet: protocol.PacketSide[DCQCN] = packet
    _hybrid: protocol.HybridSide[DCQCN] = hybrid
    _equilibrium: protocol.SolvedByRate[DCQCN] = equilibrium
    _random: protocol.Random[DCQCN] = equilibrium
    _crosscheck: protocol.CrosscheckSide = crosscheck
