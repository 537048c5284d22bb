"""ACC: ACK-driven congestion control for lossless Ethernet (Zhang et al., NSDI 2024)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fluidcc.schemes.acc.parameters import ACC, PRESETS

Parameters = ACC

__all__ = ["ACC", "PRESETS", "Parameters"]


if TYPE_CHECKING:  # the contract, held by pyright; at run time sides are imported when used
    from fluidcc.contract import protocol
    from fluidcc.schemes.acc import crosscheck, equilibrium, fluid, law, packet

    _parameters: type[protocol.Parameters] = ACC
    _law: protocol.LawSide[ACC] = law
    _fluid: protocol.Halting[ACC, fluid.State, fluid.Feedback] = fluid
    _packet: protocol.PacketSide[ACC] = packet
    _equilibrium: protocol.EquilibriumSide[ACC] = equilibrium
    _crosscheck: protocol.CrosscheckSide = crosscheck
