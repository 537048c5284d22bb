"""Dispatch to the rule of a transfer's scheme: see `fluidcc.engines.common.chains`.

A scheme runs on its law, or, if it has none, on its hybrid side, whose CNPs come by chance.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fluidcc.contract import registry
from fluidcc.contract.models import Hybrid, Scheme
from fluidcc.engines.common.chains import Chain, field, made
from fluidcc.engines.common.outside import Outside, call
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


_BUILT_IN = {scheme.name: _side_of(scheme) for scheme in map(registry.scheme, registry.built_in())}
SIDES = {name: side for name, side in _BUILT_IN.items() if side is not None}
NUMBER = {name: number for number, name in enumerate(SIDES)}


def _rules() -> dict[str, dict[str, Callable[..., Any]]]:
    return {rule: {name: s.rules[rule] for name, s in SIDES.items() if rule in s.rules} for rule in _CHAINS}


_chains = made("flow_level", _CHAINS, _GIVEN, _rules(), NUMBER, call)
OUTSIDE = Outside("flow_level", _CHAINS, _GIVEN, _side_of, by_rows=True)
on_step: Any = _chains["on_step"]
begin: Any = _chains["begin"]
on_cnp: Any = _chains["on_cnp"]
on_timer: Any = _chains["on_timer"]
on_bytes: Any = _chains["on_bytes"]

# A table of states for each scheme, with a row for each slot of the one that runs.
Senders: Any = NamedTuple("Senders", [(field(name), Any) for name in SIDES])  # pyright: ignore[reportArgumentType, reportGeneralTypeIssues]
Senders.__module__ = __name__  # where the cache of machine code looks for it


def side(name: str) -> CompiledLaw | Hybrid | None:
    """Return what a scheme runs on; None if there is nothing."""
    return SIDES.get(name) if name in registry.built_in() else OUTSIDE.side(name)


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
    all_of = Senders(*(records(side.STATE, rows if name == scheme else 1) for name, side in SIDES.items()))
    if scheme in NUMBER:
        return all_of, all_of[NUMBER[scheme]], np.zeros(8, np.uint8)
    used = records(OUTSIDE.side(scheme).STATE, rows)
    return all_of, used, np.asarray(used).view(np.uint8)
