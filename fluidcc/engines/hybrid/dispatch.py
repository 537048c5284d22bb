"""Dispatch to the rule of a flow's scheme between fluid queues: see `fluidcc.engines.common.chains`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from fluidcc.contract import registry
from fluidcc.contract.models import Hybrid
from fluidcc.engines.common.chains import Chain, field, made
from fluidcc.engines.common.outside import Outside, call
from fluidcc.engines.hybrid.layout import records

_CHAINS = {
    "begin": Chain("kernel", "sim, f", "", "A flow starts."),
    "on_cnp": Chain("kernel", "sim, f", "", "A CNP reaches its sender."),
    "on_timer": Chain("kernel", "sim, f", "", "A flow's timer runs out."),
    "on_bytes": Chain("kernel", "sim, f", "", "A flow has sent the bytes that it counts."),
    "observe": Chain("kernel", "sim, f, row", "", "Write what a scheme shows of a flow into a row of the samples."),
}
_GIVEN = {"now": "sim.core[0].now", "samples": "sim.flow_samples"}
SIDES: dict[str, Hybrid] = {
    scheme.name: scheme.hybrid for scheme in map(registry.scheme, registry.built_in()) if scheme.hybrid is not None
}
NUMBER = {name: number for number, name in enumerate(SIDES)}


def _rules() -> dict[str, dict[str, Callable[..., Any]]]:
    return {rule: {name: s.rules[rule] for name, s in SIDES.items() if rule in s.rules} for rule in _CHAINS}


_chains = made("hybrid", _CHAINS, _GIVEN, _rules(), NUMBER, call)
OUTSIDE = Outside("hybrid", _CHAINS, _GIVEN, lambda scheme: scheme.hybrid)
begin: Any = _chains["begin"]
on_cnp: Any = _chains["on_cnp"]
on_timer: Any = _chains["on_timer"]
on_bytes: Any = _chains["on_bytes"]
observe: Any = _chains["observe"]

# A table of states for each built-in scheme; a flow's `row` is in its own scheme's.
Senders: Any = NamedTuple("Senders", [(field(name), Any) for name in SIDES])  # pyright: ignore[reportArgumentType, reportGeneralTypeIssues]
Senders.__module__ = __name__  # where the cache of machine code looks for it


def tables(names: list[str]) -> Any:
    """Empty tables with a row for each flow of a built-in scheme."""
    return Senders(*(records(side.STATE, max(1, names.count(name))) for name, side in SIDES.items()))


def side(name: str) -> Hybrid:
    """Return the side of any scheme."""
    return SIDES[name] if name in SIDES else OUTSIDE.side(name)


def numbers(schemes: Iterable[str]) -> dict[str, int]:
    """Return the numbers of a run's schemes: those from outside come behind the tables of all built-in ones."""
    behind = {name: len(NUMBER) + k for k, name in enumerate(OUTSIDE.names(schemes))}
    return {name: behind[name] if name in behind else NUMBER[name] for name in schemes}
