"""The one list of schemes: a line here and a folder beside make a scheme known everywhere."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

from fluidcc.errors import InputError

SCHEMES = {
    "acc": "fluidcc.schemes.acc",
    "dcqcn": "fluidcc.schemes.dcqcn",
    "dctcp": "fluidcc.schemes.dctcp",
    "hpcc": "fluidcc.schemes.hpcc",
    "hpcc-multiq": "fluidcc.schemes.hpcc_multiq",
    "hpcc-rx": "fluidcc.schemes.hpcc_rx",
    "none": "fluidcc.schemes.none",
    "swift": "fluidcc.schemes.swift",
    "timely": "fluidcc.schemes.timely",
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


def optional_part(parameters: Any, room: str) -> ModuleType | None:
    """A scheme's module, for example its ``equilibrium``, from its parameters; None if it has none."""
    path = f"{SCHEMES[parameters.name]}.{room}"
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError as error:
        if error.name != path:
            raise
        return None


def part(parameters: Any, room: str) -> ModuleType:
    """A scheme's module that it cannot do without: its ``fluid`` or ``packet`` side.

    Raises
    ------
    InputError
        If it has none.
    """
    module = optional_part(parameters, room)
    if module is None:
        other = {"fluid": "; run the packet engine instead", "packet": "; run the fluid engine instead"}.get(room, "")
        raise InputError(f"scheme: {parameters.name} has no {room} model{other}")
    return module
