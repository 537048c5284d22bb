"""TIMELY: RTT-based congestion control (Mittal et al., SIGCOMM 2015)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fluidcc.schemes.timely.parameters import PRESETS, TIMELY

Parameters = TIMELY

__all__ = ["PRESETS", "TIMELY", "Parameters"]


if TYPE_CHECKING:  # the contract, held by pyright; at run time sides are imported when used
    from fluidcc.contract import protocol
    from fluidcc.schemes.timely import crosscheck, equilibrium, fluid, law, packet

    _parameters: type[protocol.Parameters] = TIMELY
    _law: protocol.LawSide[TIMELY] = law
    _fluid: protocol.Comparing[TIMELY, fluid.State, fluid.Feedback] = fluid
    _packet: protocol.PacketSide[TIMELY] = packet
    _equilibrium: protocol.EquilibriumSide[TIMELY] = equilibrium
    _crosscheck: protocol.CrosscheckSide = crosscheck
