"""Modules that are loaded when a test first uses them, so that collecting the tests does not wait for them."""

from __future__ import annotations

import importlib
from typing import Any


class Lazy:
    """A module by its name: what is read from it or set in it is the module's.

    (`importlib.util.LazyLoader` would load it as pytest looks through the names of a test file.)
    """

    def __init__(self, name: str) -> None:
        self.__dict__["_name"] = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # pytest asks everything in a test file whether it is a fixture
            raise AttributeError(name)
        return getattr(importlib.import_module(self._name), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(importlib.import_module(self._name), name, value)
