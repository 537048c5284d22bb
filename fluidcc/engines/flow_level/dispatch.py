"""Dispatch to the rule of a transfer's scheme: see `fluidcc.engines.common.chains`.

A scheme runs on its law, or, if it has none, on its hybrid side, whose CNPs come by chance.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fluidcc.contract.models import Hybrid, Scheme
from fluidcc.engines.common.chains import Chain, Schemes, field
from fluidcc.engines.flow_level.laws import CompiledLaw, side_of
from fluidcc.engines.flow_level.memory import records

_CHAINS = {
    "on_step": Chain("inlined", "sim, f, dt", "", "A step has ended."),
    "begin": Chain("kernel", "sim, f", "", "A flow starts."),
    "on_cnp": Chain("kernel", "sim, f", "", "A CNP reaches its sender."),
    "on_timer": Chain("kernel", "sim, f", "", "A flow's timer runs out."),
    "on_bytes": Chain("kernel", "sim, f", "", "A flow has sent the bytes that it counts."),
}
_GIVEN = {"now": "sim.core[0]"}


def _side_of(scheme: Scheme) -> CompiledLaw | Hybrid | None:
    return side_of(scheme) or scheme.hybrid


SCHEMES = Schemes("flow_level", _CHAINS, _GIVEN, _side_of, by_rows=True)

_chains = SCHEMES.chains()
on_step: Any = _chains["on_step"]
begin: Any = _chains["begin"]
on_cnp: Any = _chains["on_cnp"]
on_timer: Any = _chains["on_timer"]
on_bytes: Any = _chains["on_bytes"]

# A table of states for each scheme, with a row for each slot of the one that runs.
Senders: Any = NamedTuple("Senders", [(field(name), Any) for name in SCHEMES.tables])  # pyright: ignore[reportArgumentType, reportGeneralTypeIssues]
Senders.__module__ = __name__  # where the cache of machine code looks for it


def tables(scheme: str, rows: int) -> tuple[Any, Any, Any]:
    """Make empty tables, with ``rows`` rows for one scheme and one row for the others.

    Returns
    -------
    tables : Senders
    used : array of records
        The scheme's own.
    outside : array of bytes
        The same, if it is from outside.
    """
    all_of = Senders(*(records(side.STATE, rows if name == scheme else 1) for name, side in SCHEMES.tables.items()))
    if scheme in SCHEMES.number:
        return all_of, all_of[SCHEMES.number[scheme]], np.zeros(8, np.uint8)
    used = records(SCHEMES.side(scheme).STATE, rows)
    return all_of, used, np.asarray(used).view(np.uint8)
