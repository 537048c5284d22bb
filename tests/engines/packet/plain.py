"""The engine's functions as plain Python, for tests that call one of them with records of their own, or run it all."""

from __future__ import annotations

import dataclasses
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from fluidcc import Scenario, Trace
from fluidcc.engines.packet import run
from fluidcc.engines.packet.pool import _nothing, prefetch
from fluidcc.scenario.model import resolve

_spaces: dict[int, dict[str, Any]] = {}


def plain(function: Any) -> Any:
    """The source of a compiled function, which calls the sources of others; the package stays as it is."""
    source = getattr(function, "py_func", None)
    if source is None:
        return _nothing if function is prefetch else function
    names = _space(source.__globals__)
    return FunctionType(source.__code__, names, source.__name__, source.__defaults__, source.__closure__)


def simulated(scenario: Scenario, until: str, *, sample_interval: str, log: bool = False) -> Trace:
    """Run the packet engine without machine code: a packet takes a millisecond."""
    resolved = resolve(scenario)
    plan = run.prepare(resolved, run.times_of(resolved, until, None, sample_interval), 1 << 10 if log else 0)
    with np.errstate(over="ignore"):
        return run.traced(resolved, dataclasses.replace(plan, run=plain(plan.run)), seed=1)


def _space(names: dict[str, Any]) -> dict[str, Any]:
    """The names that a function sees, what is compiled among them replaced."""
    if id(names) not in _spaces:
        found = _spaces[id(names)] = dict(names)
        for key, value in names.items():
            if isinstance(value, ModuleType) and value.__name__.startswith("fluidcc."):
                found[key] = _Module(_space(vars(value)))
            else:
                found[key] = plain(value)
    return _spaces[id(names)]


class _Module:
    def __init__(self, names: dict[str, Any]) -> None:
        self.__dict__ = names
