"""The flow level's side of a scheme that has a law: record, first state and rule, made from the law itself."""

from __future__ import annotations

import dataclasses
import linecache
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fluidcc.contract.law import in_world
from fluidcc.contract.models import Law, Scheme
from fluidcc.contract.signals import Progress
from fluidcc.engines.common import scalars
from fluidcc.engines.common.jit import kernel
from fluidcc.scenario.parameters import specs

_OVER_HOPS = (
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


def side_of(scheme: Scheme) -> CompiledLaw | None:
    """Return the side of a scheme; None if it has no law."""
    law = scheme.law
    if law is None:
        return None
    constants = _constants(scheme.Parameters, law)
    state = np.dtype([(name, np.float64) for name in law.State._fields], align=True)
    record = np.dtype([("parameters", constants), ("now", state)], align=True)

    def init_state(parameters: Any, flow: Any, state: Any) -> None:
        """Copy the parameters' numbers, and start."""
        for name in constants.names or ():
            value = getattr(parameters, name)
            setattr(state.parameters, name, np.nan if value is None else value)
        first = law.start(parameters, flow.initial_rate)
        for name, value in first._asdict().items():
            setattr(state.now, name, value)
        flow.rate, flow.window = law.rate(first), law.window(parameters, first)

    return CompiledLaw(record, init_state, law.NEEDS, law.ONLY, {"on_step": _on_step(law, scheme.name)})


def _constants(parameters: Any, law: Law) -> np.dtype[Any]:
    """Return the record of a parameter set's numbers and switches, and of those that the law makes of its words."""
    found: list[tuple[str, Any]] = [(name, np.bool_) for name in law.SWITCHES]
    known = specs(parameters)
    for field in dataclasses.fields(parameters):
        spec = known.get(field.name)
        if spec is None or not spec.static:
            found.append((field.name, np.float64))
        elif set(spec.choices) <= {True, False}:
            found.append((field.name, np.bool_))
    return np.dtype(found, align=True)


def _on_step(law: Law, name: str) -> Callable[..., None]:
    """Compile the rule: it gives a flow's signals to the law, and writes the state that comes of them."""
    observed = ["    observed = flow.marking"] if law.on_hop is None else ["    observed = 0.0", *_OVER_HOPS]
    lines = [
        "def on_step(flow, state, dt):",
        '    """Follow the law for the ACKs of a step."""',
        "    progress = Progress(",
        "        flow.sent, flow.acked, flow.newly, flow.counted, flow.packet, flow.line_rate, 0.0, flow.rtt, dt",
        "    )",
        *observed,
        "    new = step(state.parameters, state.now, progress, observed)",
        *(f"    state.now.{field} = new.{field}" for field in law.State._fields),
        "    flow.rate, flow.window = rate(new), window(state.parameters, new)",
    ]
    text, file = "\n".join(lines) + "\n", f"<fluidcc flow level's rule of {name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    functions = {"step": law.on_step, "rate": law.rate, "window": law.window}
    functions |= {} if law.on_hop is None else {"on_hop": law.on_hop}
    space: dict[str, Any] = {key: in_world(rule, scalars, kernel) for key, rule in functions.items()}
    space |= {"Progress": Progress, "__name__": __name__}
    exec(compile(text, file, "exec"), space)  # our own text, made of checked names
    return kernel(space["on_step"])
