"""Swift (Kumar et al., SIGCOMM 2020), as Snyder and Lebeck's "Fast Convergence to Fairness" uses it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fluidcc.schemes.swift.parameters import PRESETS, Swift

Parameters = Swift

__all__ = ["PRESETS", "Parameters", "Swift"]


if TYPE_CHECKING:  # the contract, held by pyright; at run time sides are imported when used
    from jax import Array

    from fluidcc.contract import protocol
    from fluidcc.schemes.swift import crosscheck, equilibrium, fluid, law, packet

    _parameters: type[protocol.Parameters] = Swift
    _fluid: protocol.Windowed[Swift, fluid.State, Array] = fluid
    _packet: protocol.Shown[Swift] = packet
    _law: protocol.WindowLaw[Swift] = law
    _equilibrium: protocol.EquilibriumSide[Swift] = equilibrium
    _crosscheck: protocol.CrosscheckSide = crosscheck
