"""HPCC: high precision congestion control (Li et al., SIGCOMM 2019)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fluidcc.schemes.hpcc.parameters import HPCC, PRESETS

Parameters = HPCC

__all__ = ["HPCC", "PRESETS", "Parameters"]


if TYPE_CHECKING:  # the contract, held by pyright; at run time sides are imported when used
    from fluidcc.contract import protocol
    from fluidcc.schemes.hpcc import crosscheck, equilibrium, fluid, law, packet

    _parameters: type[protocol.Parameters] = HPCC
    _fluid: protocol.Windowed[HPCC, fluid.State, fluid.Feedback] = fluid
    _packet: protocol.Shown[HPCC] = packet
    _law: protocol.WindowLaw[HPCC] = law
    _equilibrium: protocol.SolvedByUtilisation[HPCC] = equilibrium
    _crosscheck: protocol.CrosscheckSide = crosscheck
