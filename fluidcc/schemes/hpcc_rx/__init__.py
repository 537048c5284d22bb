"""Receiver-based HPCC: the receiver computes the window and notifies the sender (HPCC++, IETF slides)."""

from fluidcc.schemes.hpcc_rx.parameters import PRESETS, HPCCRx

Parameters = HPCCRx

__all__ = ["PRESETS", "HPCCRx", "Parameters"]
