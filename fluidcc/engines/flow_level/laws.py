"""The flow level's side of a scheme that has a law: record, first state and rule, made from the law itself."""

from __future__ import annotations

import dataclasses
import linecache
from collections.abc import Callable
from typing import Any

import numpy as np

from fluidcc.contract.law import in_world
from fluidcc.contract.models import FlowLevel, Law, Scheme
from fluidcc.contract.signals import Progress
from fluidcc.engines.common import scalars
from fluidcc.engines.common.jit import kernel
from fluidcc.scenario.parameters import specs


def side_of(scheme: Scheme) -> FlowLevel | None:
    """Return the side of a scheme; None if it has no law."""
    law = scheme.law
    if law is None:
        return None
    constants = _constants(scheme.Parameters)
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

    return FlowLevel(record, init_state, law.NEEDS, law.ONLY, {"on_step": _on_step(law, scheme.name)})


def _constants(parameters: Any) -> np.dtype[Any]:
    """Return the record of a parameter set's numbers and switches; choices among words select the law's equations."""
    found: list[tuple[str, Any]] = []
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
    lines = [
        "def on_step(flow, state, dt):",
        '    """Follow the law for the ACKs of a step."""',
        "    progress = Progress(",
        "        flow.sent, flow.acked, flow.newly, flow.counted, flow.packet, flow.line_rate, 0.0, flow.rtt, dt",
        "    )",
        "    new = step(state.parameters, state.now, progress, flow.marking)",
        *(f"    state.now.{field} = new.{field}" for field in law.State._fields),
        "    flow.rate, flow.window = rate(new), window(state.parameters, new)",
    ]
    text, file = "\n".join(lines) + "\n", f"<fluidcc flow level's rule of {name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    functions = {"step": law.on_step, "rate": law.rate, "window": law.window}
    space: dict[str, Any] = {key: in_world(rule, scalars, kernel) for key, rule in functions.items()}
    space |= {"Progress": Progress, "__name__": __name__}
    exec(compile(text, file, "exec"), space)  # our own text, made of checked names
    return kernel(space["on_step"])
