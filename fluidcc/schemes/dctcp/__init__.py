"""DCTCP: data center TCP (Alizadeh et al., SIGCOMM 2010), as HPCC's section 5.1 compares with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fluidcc.schemes.dctcp.parameters import DCTCP, PRESETS

Parameters = DCTCP

__all__ = ["DCTCP", "PRESETS", "Parameters"]


if TYPE_CHECKING:  # the contract, held by pyright; at run time sides are imported when used
    from jax import Array

    from fluidcc.contract import protocol
    from fluidcc.schemes.dctcp import crosscheck, equilibrium, fluid, law, packet

    _parameters: type[protocol.Parameters] = DCTCP
    _fluid: protocol.Windowed[DCTCP, fluid.State, Array] = fluid
    _packet: protocol.PacketSide[DCTCP] = packet
    _law: protocol.WindowLaw[DCTCP] = law
    _equilibrium: protocol.EquilibriumSide[DCTCP] = equilibrium
    _crosscheck: protocol.CrosscheckSide = crosscheck
