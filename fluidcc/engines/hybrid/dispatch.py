"""Dispatch to the rule of a flow's scheme between fluid queues: see `fluidcc.engines.common.rules`."""

from __future__ import annotations

from typing import Any, NamedTuple

from fluidcc.engines.common.rules import Chain, Schemes, field
from fluidcc.engines.hybrid.layout import records

_CHAINS = {
    "begin": Chain("kernel", "sim, f", "", "A flow starts."),
    "on_cnp": Chain("kernel", "sim, f", "", "A CNP reaches its sender."),
    "on_timer": Chain("kernel", "sim, f", "", "A flow's timer runs out."),
    "on_bytes": Chain("kernel", "sim, f", "", "A flow has sent the bytes that it counts."),
    "observe": Chain("kernel", "sim, f, row", "", "Write what a scheme shows of a flow into a row of the samples."),
}
_GIVEN = {"now": "sim.core[0].now", "samples": "sim.flow_samples"}
SCHEMES = Schemes("hybrid", _CHAINS, _GIVEN, lambda scheme: scheme.hybrid)

_chains = SCHEMES.chains()
begin: Any = _chains["begin"]
on_cnp: Any = _chains["on_cnp"]
on_timer: Any = _chains["on_timer"]
on_bytes: Any = _chains["on_bytes"]
observe: Any = _chains["observe"]

# A table of states for each built-in scheme; a flow's `row` is in its own scheme's.
Senders: Any = NamedTuple("Senders", [(field(name), Any) for name in SCHEMES.tables])  # pyright: ignore[reportArgumentType, reportGeneralTypeIssues]
Senders.__module__ = __name__  # where the cache of machine code looks for it


def tables(names: list[str]) -> Any:
    """Empty tables with a row for each flow of a built-in scheme."""
    return Senders(*(records(side.STATE, max(1, names.count(name))) for name, side in SCHEMES.tables.items()))
