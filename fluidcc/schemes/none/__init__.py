"""No congestion control: line rate, or rates that follow a schedule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fluidcc.schemes.none.parameters import PRESETS, NoControl

Parameters = NoControl

__all__ = ["PRESETS", "NoControl", "Parameters"]


if TYPE_CHECKING:  # the contract, held by pyright; at run time sides are imported when used
    from jax import Array

    from fluidcc.contract import protocol
    from fluidcc.schemes.none import fluid, packet

    _parameters: type[protocol.Parameters] = NoControl
    _fluid: protocol.Projecting[NoControl, fluid.State, Array] = fluid
    _packet: protocol.PacketSide[NoControl] = packet
