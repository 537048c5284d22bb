"""NSCC, the network-signalled congestion control of the Ultra Ethernet transport (Specification 1.0, 3.6.13)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fluidcc.schemes.nscc.parameters import NSCC, PRESETS

Parameters = NSCC

__all__ = ["NSCC", "PRESETS", "Parameters"]


if TYPE_CHECKING:  # the contract, held by pyright; at run time sides are imported when used
    from fluidcc.contract import protocol
    from fluidcc.schemes.nscc import crosscheck, equilibrium, law, packet

    _parameters: type[protocol.Parameters] = NSCC
    _packet: protocol.PacketSide[NSCC] = packet
    _law: protocol.WindowLaw[NSCC] = law
    _equilibrium: protocol.EquilibriumSide[NSCC] = equilibrium
    _crosscheck: protocol.CrosscheckSide = crosscheck
