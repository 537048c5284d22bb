"""The engine's functions as plain Python, for tests that call one of them with records of their own."""

from __future__ import annotations

import sys
from types import FunctionType, ModuleType
from typing import Any

_spaces: dict[str, dict[str, Any]] = {}


class _Module:
    def __init__(self, names: dict[str, Any]) -> None:
        self.__dict__ = names


def plain(function: Any) -> Any:
    """The source of a compiled function, which calls the sources of others; the package stays as it is."""
    source = getattr(function, "py_func", None)
    return function if source is None else _space(source.__module__)[source.__name__]


def _space(name: str) -> dict[str, Any]:
    """A module's names, what is compiled among them replaced."""
    if name not in _spaces:
        module = sys.modules[name]
        names = _spaces[name] = dict(vars(module))
        for key, value in vars(module).items():
            source = getattr(value, "py_func", None)
            if isinstance(value, ModuleType) and value.__name__.startswith("fluidcc."):
                names[key] = _Module(_space(value.__name__))
            elif source is not None and source.__module__ == name:
                names[key] = FunctionType(source.__code__, names, key, source.__defaults__, source.__closure__)
            elif source is not None:
                names[key] = _space(source.__module__)[source.__name__]
    return _spaces[name]
