"""Receiver-based HPCC: the receiver computes the window and notifies the sender (HPCC++, IETF slides)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fluidcc.schemes.hpcc_rx.parameters import PRESETS, HPCCRx

Parameters = HPCCRx

__all__ = ["PRESETS", "HPCCRx", "Parameters"]


if TYPE_CHECKING:  # the contract, held by pyright; at run time sides are imported when used
    from fluidcc.contract import protocol
    from fluidcc.schemes.hpcc_rx import packet

    _parameters: type[protocol.Parameters] = HPCCRx
    _packet: protocol.Shown[HPCCRx] = packet
