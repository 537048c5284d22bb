"""The one list of schemes: a line here and a folder beside make a scheme known everywhere."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

from fluidcc.errors import InputError

SCHEMES = {
    "dcqcn": "fluidcc.schemes.dcqcn",
    "hpcc": "fluidcc.schemes.hpcc",
}


def package(name: str) -> ModuleType:
    """Package of a scheme: its ``Parameters`` class and its ``PRESETS``.

    Raises
    ------
    InputError
        If there is no such scheme.
    """
    if name not in SCHEMES:
        raise InputError(f"scheme: {str(name)[:40]!r} is unknown; write one of {', '.join(SCHEMES)}")
    return importlib.import_module(SCHEMES[name])


def parameters_of(name: str) -> Any:
    """Parameter class of a scheme.

    Raises
    ------
    InputError
        If there is no such scheme.
    """
    return package(name).Parameters


def part(parameters: Any, room: str) -> ModuleType:
    """A scheme's module, for example its ``fluid`` side, from its parameters."""
    return importlib.import_module(f"{SCHEMES[parameters.name]}.{room}")
