"""A host's own PFC, trust and DSCP, as ``mlnx_qos`` and ``cma_roce_tos`` print them."""

from __future__ import annotations

import dataclasses
import re

_TRUST = re.compile(r"^\s*Priority trust state:\s*(\w+)", re.MULTILINE)
_PFC = re.compile(r"^\s*enabled((?:\s+[01]){8})\s*$", re.MULTILINE)
_PRIORITIES = re.compile(r"^\s*prio:([0-7])\s+dscp:([\d,]+)", re.MULTILINE | re.ASCII)
_TOS = re.compile(
    r"\bcma_roce_tos\b[^\n]*?\s-t\s*(\d{1,3})\b|\bcma_roce_tos\b[^\n]*\n\s*(\d{1,3})\s*$|"
    r"\bGlobal tclass=(\d{1,3})\b|\becho\s+(\d{1,3})\s*>\s*\S*/tc/\d+/traffic_class\b",
    re.MULTILINE | re.ASCII,
)


@dataclasses.dataclass(frozen=True)
class NicQos:
    """Priorities of a host's packets.

    Attributes
    ----------
    pfc : tuple of int or None
        Priorities with PFC; None where the text does not say.
    trust : str
        What chooses a packet's priority, ``dscp`` or ``pcp``; empty where the text does not say.
    tos : tuple of int
        ToS bytes of RoCE's packets.
    priorities : tuple of (int, int)
        Priority of each DSCP; empty where the text does not say.
    """

    pfc: tuple[int, ...] | None = None
    trust: str = ""
    tos: tuple[int, ...] = ()
    priorities: tuple[tuple[int, int], ...] = ()


def read_qos(text: str) -> NicQos:
    """Read what ``mlnx_qos`` and ``cma_roce_tos`` print, of a NIC's text; of several interfaces what all have."""
    rows = [{i for i, on in enumerate(row.split()) if on == "1"} for row in _PFC.findall(text)]
    trusts = sorted({each.lower() for each in _TRUST.findall(text)})
    tos = {int(next(filter(None, found))) for found in _TOS.findall(text)}
    of_dscp = {int(dscp): int(row[0]) for row in _PRIORITIES.findall(text) for dscp in re.findall(r"\d+", row[1])}
    pfc = tuple(sorted(set.intersection(*rows))) if rows else None
    return NicQos(pfc, (trusts or [""])[-1], tuple(sorted(tos)), tuple(sorted(of_dscp.items())))
