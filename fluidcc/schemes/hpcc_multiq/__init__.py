"""HPCC++ MultiQ: HPCC in a class that shares its links with others (HPCC++, IETF slides)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fluidcc.schemes.hpcc_multiq.parameters import PRESETS, HPCCMultiQ

Parameters = HPCCMultiQ

__all__ = ["PRESETS", "HPCCMultiQ", "Parameters"]


if TYPE_CHECKING:  # the contract, held by pyright; at run time sides are imported when used
    from fluidcc.contract import protocol
    from fluidcc.schemes.hpcc.fluid import Feedback, State
    from fluidcc.schemes.hpcc_multiq import fluid, law, packet

    _parameters: type[protocol.Parameters] = HPCCMultiQ
    _law: protocol.LawSide[HPCCMultiQ] = law
    _fluid: protocol.Windowed[HPCCMultiQ, State, Feedback] = fluid
    _packet: protocol.Shown[HPCCMultiQ] = packet
