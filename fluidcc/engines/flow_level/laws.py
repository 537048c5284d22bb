"""The flow level's side of a scheme that has a law: record, first state and rule, made from the law itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from fluidcc.contract.law import refuse_unbound
from fluidcc.contract.models import Scheme
from fluidcc.engines.common import laws

_OVER_HOPS = (
    "    observed = 0.0",
    "    for h in range(flow.hops):",
    "        seen = flow.queue[h], flow.output[h], flow.arriving[h], flow.capacity[h]",
    "        observed = max(observed, on_hop(state.parameters, seen[0], seen[1], seen[2], seen[3]))",
)


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
        laws.copy(parameters, state.parameters)
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
        *laws.stored(law, "new"),
    ]
    rules = {"on_step": laws.rule(lines, law, f"flow level's rule of {scheme.name}")}
    return CompiledLaw(laws.record(scheme.Parameters, law), init_state, law.NEEDS, law.ONLY, rules)
