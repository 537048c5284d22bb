"""AIMD on ECN: a rate that grows by a constant in each round trip, and that every mark cuts by a share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aimd_ecn.parameters import AIMD, PRESETS

Parameters = AIMD

__all__ = ["AIMD", "PRESETS", "Parameters"]

if TYPE_CHECKING:  # a type checker holds the sides against the contract; at run time they are imported when needed
    from jax import Array

    from aimd_ecn import crosscheck, equilibrium, fluid, packet
    from fluidcc.contract import protocol

    _package: type[protocol.Parameters] = AIMD
    _fluid: protocol.Projecting[AIMD, fluid.State, Array] = fluid
    _packet: protocol.PacketSide[AIMD] = packet
    _equilibrium: protocol.SolvedByMarking[AIMD] = equilibrium
    _crosscheck: protocol.CrosscheckSide = crosscheck
