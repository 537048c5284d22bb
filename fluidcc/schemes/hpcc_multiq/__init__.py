"""HPCC++ MultiQ: HPCC in a class that shares its links with others (HPCC++, IETF slides)."""

from fluidcc.schemes.hpcc_multiq.parameters import PRESETS, HPCCMultiQ

Parameters = HPCCMultiQ

__all__ = ["PRESETS", "HPCCMultiQ", "Parameters"]
