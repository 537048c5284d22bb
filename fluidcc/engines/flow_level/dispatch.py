"""Dispatch to the rule of a transfer's scheme: see `fluidcc.engines.common.rules`.

A scheme runs on its law, of which record, first state and rule are made here, or, if it has none, on its hybrid side,
whose CNPs come by chance.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from fluidcc.contract.law import refuse_unbound
from fluidcc.contract.models import Hybrid, Scheme
from fluidcc.engines.common import rules as chains
from fluidcc.engines.common.rules import Chain, Schemes, field
from fluidcc.engines.flow_level.layout import records

_OVER_HOPS = (
    "    observed = 0.0",
    "    for h in range(flow.hops):",
    "        seen = flow.queue[h], flow.output[h], flow.arriving[h], flow.capacity[h]",
    "        observed = max(observed, on_hop(state.parameters, seen[0], seen[1], seen[2], seen[3]))",
)
_CHAINS = {
    "on_step": Chain("inlined", "sim, f, dt", "", "A step has ended."),
    "begin": Chain("kernel", "sim, f", "", "A flow starts."),
    "on_cnp": Chain("kernel", "sim, f", "", "A CNP reaches its sender."),
    "on_timer": Chain("kernel", "sim, f", "", "A flow's timer runs out."),
    "on_bytes": Chain("kernel", "sim, f", "", "A flow has sent the bytes that it counts."),
}
_GIVEN = {"now": "sim.core[0]"}


@dataclasses.dataclass(frozen=True)
class CompiledLaw:
    """Record, first state and rule that the flow level makes of a law; ``NEEDS`` and ``ONLY`` are the law's."""

    STATE: np.dtype[Any]
    init_state: Callable[..., None]
    NEEDS: frozenset[str]
    ONLY: Mapping[str, Any]
    rules: Mapping[str, Callable[..., Any]]


@cache
def side_of(scheme: Scheme) -> CompiledLaw | None:
    """Return the side of a scheme; None if it has no law."""
    law = scheme.law
    if law is None:
        return None

    def init_state(parameters: Any, flow: Any, state: Any) -> None:
        """Copy the parameters' numbers, and start."""
        if scheme.packet is None:  # those written by hand may have no use for it
            refuse_unbound(parameters)
        chains.copy(parameters, state.parameters)
        first = law.start(parameters, flow.initial_rate)
        for name, value in first._asdict().items():
            setattr(state.now, name, value)
        flow.rate = law.rate(first)
        if law.window is not None:
            flow.window = law.window(parameters, first)

    lines = [
        "def on_step(flow, state, dt):",
        '    """Follow the law for the ACKs of a step."""',
        "    progress = Progress(",
        "        flow.sent, flow.acked, flow.newly, flow.counted, flow.packet, flow.line_rate, 0.0, flow.rtt, dt",
        "    )",
        *(["    observed = flow.marking"] if law.on_hop is None else _OVER_HOPS),
        "    new = step(state.parameters, state.now, progress, observed)",
        *chains.stored(law, "new"),
    ]
    rules = {"on_step": chains.rule(lines, law, f"flow level's rule of {scheme.name}")}
    return CompiledLaw(chains.record(scheme.Parameters, law), init_state, law.NEEDS, law.ONLY, rules)


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
