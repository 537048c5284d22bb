"""Functions of schemes that two engines both call: their agreement says nothing of these."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import FunctionType, ModuleType
from typing import Any

from fluidcc.contract import registry
from fluidcc.contract.models import Scheme


def shared_functions(scheme: Scheme, one: str, other: str) -> list[str]:
    """Return the names, such as ``hpcc.law.reacted``, of what two engines share, in the order of the alphabet.

    An engine for which a scheme has no file is made of its law.
    """
    return sorted(_functions(scheme, one) & _functions(scheme, other))


def _functions(scheme: Scheme, engine: str) -> set[str]:
    """Functions that an engine's side calls and that are not of the side's own file."""
    side = scheme.module(engine)
    made = getattr(side, "__file__", None) is None
    home = scheme.module("law") if made else side
    within = f"{scheme.package.rpartition('.')[0] or scheme.package}."  # one scheme may add to another's rules
    waiting = [] if home is None else list(_of_schemes(vars(home).values(), within))
    if (base := getattr(side, "BASE", None)) is not None:
        waiting += _of_schemes(vars(registry.scheme(base).module(engine)).values(), within)
    found = dict[int, FunctionType]()
    while waiting:
        function = waiting.pop()
        if id(function) not in found:
            found[id(function)] = function
            names = function.__code__.co_names
            called = [function.__globals__.get(name) for name in names]
            by_module = [getattr(each, name, None) for each in called if isinstance(each, ModuleType) for name in names]
            waiting += _of_schemes([*called, *by_module], within)
    own = f".{engine}"
    return {
        f"{each.__module__.removeprefix(within)}.{each.__name__}"
        for each in found.values()
        if made or not each.__module__.endswith(own)
    }


def _of_schemes(values: Iterable[Any], within: str) -> Iterator[FunctionType]:
    """Functions among some values that are of schemes, compiled or not."""
    for value in values:
        function = getattr(value, "py_func", value)
        if isinstance(function, FunctionType) and f"{function.__module__}.".startswith(within):
            yield function
