"""A scheme's law in compiled engines: its record, and rules as text that call it, for one flow's numbers."""

from __future__ import annotations

import dataclasses
import linecache
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fluidcc.contract.law import in_world
from fluidcc.contract.models import Law
from fluidcc.contract.signals import Progress
from fluidcc.engines.common import scalars
from fluidcc.engines.common.jit import kernel
from fluidcc.scenario.parameters import specs


def constants(parameters: Any, switches: Sequence[str] = ()) -> list[tuple[str, Any]]:
    """Fields of a record for a parameters class: its numbers, what is true or false, and ``switches``, its properties.

    Units are SI, under the parameters' names, so that a law's formulas take the record for the parameters.
    """
    found: list[tuple[str, Any]] = [(name, np.bool_) for name in switches]
    known = specs(parameters)
    for field in dataclasses.fields(parameters):
        spec = known.get(field.name)
        if spec is None or not spec.static:
            found.append((field.name, np.float64))
        elif set(spec.choices) <= {True, False}:
            found.append((field.name, np.bool_))
    return found


def record(parameters: Any, law: Law, more: Sequence[Any] = ()) -> np.dtype[Any]:
    """Return the record of a flow: its parameters' numbers and switches, its state ``now``, and ``more`` fields."""
    state = np.dtype([(name, np.float64) for name in law.State._fields], align=True)
    given = np.dtype(constants(parameters, law.SWITCHES), align=True)
    return np.dtype([("parameters", given), ("now", state), *more], align=True)


def copy(parameters: Any, record: Any, given: Sequence[tuple[str, Any]] | None = None) -> None:
    """Copy bound parameters into a record, or those of its ``given`` fields; NaN is what is None."""
    names = (record.dtype.names or ()) if given is None else [name for name, _ in given]
    for name in names:
        value = getattr(parameters, name)
        setattr(record, name, np.nan if value is None else value)


def stored(law: Law, new: str) -> list[str]:
    """Lines of a rule that write a ``new`` state."""
    return [
        *(f"    state.now.{field} = {new}.{field}" for field in law.State._fields),
        f"    flow.rate = rate({new})",
        *([] if law.window is None else [f"    flow.window = window(state.parameters, {new})"]),
    ]


def rule(lines: Sequence[str], law: Law, where: str, **names: Any) -> Callable[..., None]:
    """Compile a rule from its text, which calls the law's functions; tracebacks and debuggers see the text."""
    text, file = "\n".join(lines) + "\n", f"<fluidcc {where}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    functions = {"start": law.start, "step": law.on_step, "rate": law.rate, "window": law.window, "on_hop": law.on_hop}
    used = {key: each for key, each in functions.items() if each is not None and key in text}
    space: dict[str, Any] = {key: in_world(each, scalars, kernel) for key, each in used.items()}
    space |= {"Progress": Progress, "__name__": __name__, **names}
    exec(compile(text, file, "exec"), space)  # our own text, made of checked names
    return kernel(space[lines[0].removeprefix("def ").partition("(")[0]])
