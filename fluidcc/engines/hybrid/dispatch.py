"""Dispatch to the rule of a flow's scheme between fluid queues: see `fluidcc.engines.common.chains`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from fluidcc.contract import registry
from fluidcc.engines.common import jit
from fluidcc.engines.common.chains import Chain, field, known, made
from fluidcc.engines.hybrid.layout import records

_CHAINS = {
    "begin": Chain("kernel", "sim, f", "", "A flow starts."),
    "on_cnp": Chain("kernel", "sim, f", "", "A CNP reaches its sender."),
    "on_timer": Chain("kernel", "sim, f", "", "A flow's timer runs out."),
    "on_bytes": Chain("kernel", "sim, f", "", "A flow has sent the bytes that it counts."),
    "observe": Chain("kernel", "sim, f, row", "", "Write what a scheme shows of a flow into a row of the samples."),
}
_GIVEN = {"now": "sim.core[0].now", "samples": "sim.flow_samples"}
SIDES, REFUSED = known(lambda scheme: scheme.hybrid)
NUMBER = {name: number for number, name in enumerate(SIDES)}


def _rules() -> dict[str, dict[str, Callable[..., Any]]]:
    return {rule: {name: s.rules[rule] for name, s in SIDES.items() if rule in s.rules} for rule in _CHAINS}


_chains = made("hybrid", _CHAINS, _GIVEN, _rules(), NUMBER, jit)
begin: Any = _chains["begin"]
on_cnp: Any = _chains["on_cnp"]
on_timer: Any = _chains["on_timer"]
on_bytes: Any = _chains["on_bytes"]
observe: Any = _chains["observe"]

# A table of states for each scheme; a flow's `row` is in its own scheme's.
Senders: Any = NamedTuple("Senders", [(field(name), Any) for name in SIDES])  # pyright: ignore[reportArgumentType, reportGeneralTypeIssues]
Senders.__module__ = __name__  # where the cache of machine code looks for it


def tables(names: list[str]) -> Any:
    """Empty tables with a row for each flow of a scheme.

    Raises
    ------
    Exception
        That of an outside scheme whose side breaks the contract.
    """
    for name in names:
        if name in REFUSED:
            raise REFUSED[name]
    return Senders(*(records(side.STATE, max(1, names.count(name))) for name, side in SIDES.items()))


KNOWN = registry.outside()  # what was registered as this was made
