"""The one list of schemes: a line here and a folder beside make a scheme known everywhere."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

from fluidcc.errors import InputError

SCHEMES = {
    "dcqcn": "fluidcc.schemes.dcqcn",
    "dctcp": "fluidcc.schemes.dctcp",
    "hpcc": "fluidcc.schemes.hpcc",
    "hpcc-multiq": "fluidcc.schemes.hpcc_multiq",
    "hpcc-rx": "fluidcc.schemes.hpcc_rx",
    "none": "fluidcc.schemes.none",
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


def part(parameters: Any, room: str) -> ModuleType:
    """A scheme's module, for example its ``fluid`` side, from its parameters.

    Raises
    ------
    InputError
        If it has no fluid side; any other missing module raises ModuleNotFoundError.
    """
    path = f"{SCHEMES[parameters.name]}.{room}"
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError as error:
        if room != "fluid" or error.name != path:
            raise
        raise InputError(f"scheme: {parameters.name} has no fluid model; run the packet engine instead") from None
