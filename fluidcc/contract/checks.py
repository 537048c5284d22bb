"""Requirements on a scheme's sides, as tables: a name that is missing, misspelt or of another shape is refused.

Sides are checked when first used (`fluidcc.contract.models`), parameters when they are registered.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import textwrap
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from fluidcc.contract import protocol

# How a constant is written, where the name alone does not say it.
CONSTANTS: Mapping[str, str] = MappingProxyType(
    {
        "OBSERVABLES": 'OBSERVABLES = {} or {"alpha": ("1", "what it is")}',
        "NEEDS": 'NEEDS = frozenset({"telemetry"})',
        "ONLY": 'ONLY = {"a_parameter": "its value"}',
        "PACED_BY": 'PACED_BY = ("timer",)',
        "STATE": 'STATE = np.dtype([("rate", np.float64)], align=True)',
        "MOVES": 'MOVES = ("rate",)',
        "UNTIL": 'UNTIL = "40ms"',
        "SMOOTH_INSTEAD": "SMOOTH_INSTEAD = \"write form='rate'\"",
        "BASE": 'BASE = "hpcc"',
    }
)
NEEDS = ("telemetry", "delay", "inflight", "undetermined")  # of `fluidcc.contract.signals`
TYPES: Mapping[str, tuple[type, ...]] = MappingProxyType(
    {
        "OBSERVABLES": (Mapping,),
        "ONLY": (Mapping,),
        "PACED_BY": (tuple,),
        "NEEDS": (frozenset, set),
        "MOVES": (tuple,),
        "UNTIL": (str,),
    }
)
# Which protocols say what the functions of a side take.
CONTRACTS: Mapping[str, tuple[type, ...]] = MappingProxyType(
    {
        "law": (protocol.WindowLaw, protocol.TelemetryLaw),
        "fluid": (protocol.Comparing, protocol.Windowed, protocol.Halting),
        "packet": (protocol.Shown,),
        "hybrid": (protocol.HybridSide,),
        "equilibrium": (protocol.SolvedByMarking, protocol.SolvedByUtilisation, protocol.Random, protocol.InUpdates),
        "crosscheck": (protocol.CrosscheckSide,),
    }
)
# What every trace has of the network itself (`fluidcc.results.schema`).
RESERVED = (
    *(
        "time",
        "link",
        "flow",
        "queue",
        "sent",
        "paused",
        "class_queue",
        "class_sent",
        "rate",
        "pacing_rate",
        "delivered",
    ),
    *("event_time", "event_what", "event_port", "event_flow", "event_kind", "event_end", "event_queue", "event_value"),
)
# Columns of a flow's samples that every scheme has: bytes sent, acknowledged, and pacing rate; bytes sent, and rate.
SAMPLED = MappingProxyType({"packet": 3, "hybrid": 2})
_ALIKE = 0.8  # of difflib: what is nearer to a name of the contract is that name misspelt


def taken(side: str, name: str) -> list[inspect.Parameter] | None:
    """Return the parameters of a side's function; None if the name is no function of the contract."""
    for contract in CONTRACTS[side]:
        found = vars(contract).get(name) or getattr(contract, name, None)
        if inspect.isfunction(found):
            return [each for each in inspect.signature(found).parameters.values() if each.name != "self"]
    return None


def written(side: str, name: str) -> str:
    """The line to write for a name of the contract."""
    parameters = taken(side, name)
    if parameters is None:
        return CONSTANTS.get(name, name)
    return f"def {name}({', '.join(each.name for each in parameters)})"


def problem(side: str, module: Any, known: Iterable[str], shown: bool) -> str | None:
    """Describe what is wrong with a module's names, and what to write instead; None if nothing is.

    Parameters
    ----------
    side : str
    module : module
    known : iterable of str
        Names of the contract.
    shown : bool
        Whether the module writes its observables itself.
    """
    known = tuple(known)
    for name in known:
        given = getattr(module, name, None)
        if given is None:
            continue
        if name in TYPES and not isinstance(given, TYPES[name]):
            is_need = name == "NEEDS" and isinstance(given, str) and given in NEEDS
            right = f"NEEDS = frozenset({{{given!r}}})" if is_need else CONSTANTS[name]
            return f"{name} is {repr(given)[:40]}; write {right}"
        if (parameters := taken(side, name)) is not None:
            if not _fits(given, len(parameters)):
                return f"{name} does not take {len(parameters)} arguments; write {written(side, name)}"
            names = [each.name for each in parameters]
            if (own := _arguments(given)) != names and sorted(own) == sorted(names):
                return f"{name} takes its arguments in another order; write {written(side, name)}"
    return _misspelt(side, module, known) or _names(side, module, shown) or _memory(side, module)


def _memory(side: str, module: Any) -> str | None:
    """Reads and writes of memory that is not a flow's own: compiled code does so without a word."""
    size = getattr(getattr(module, "STATE", None), "itemsize", 0)
    if size % 8:
        return f"STATE has {size} bytes, no multiple of 8; make its last number one of 64 bits, and add align=True"
    observe = getattr(module, "observe", None)
    if observe is None or side not in SAMPLED or getattr(module, "BASE", None) is not None:
        return None
    first, own = SAMPLED[side], len(getattr(module, "OBSERVABLES", ()))
    for column in _written(getattr(observe, "py_func", observe)):
        if not first <= column < first + own:
            has = f"columns {first} to {first + own - 1}" if own else "none"
            return f"observe writes column {column} of a sample; it has {has}, one for each of OBSERVABLES"
    return None


def _written(observe: Any) -> list[int]:
    """Columns of ``samples`` that a function names by number; none if its text is not to be had."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(observe)))
    except (OSError, TypeError):
        return []
    found = []
    for node in ast.walk(tree):
        match node:
            case ast.Subscript(ast.Name("samples"), ast.Tuple([*_, ast.Constant(int() as column)])):
                found.append(column)
    return found


def _names(side: str, module: Any, shown: bool) -> str | None:
    """Names within the constants."""
    allowed = [each for each in NEEDS if side != "law" or each != "inflight"]  # which a law has by its window
    alien = sorted(set(getattr(module, "NEEDS", ())) - set(allowed))
    if alien:
        return f"NEEDS has {str(alien[0])[:40]!r}; it may have {', '.join(allowed)}"
    observables = getattr(module, "OBSERVABLES", {})
    for name, text in observables.items():
        if name in RESERVED:
            return f"OBSERVABLES has {name!r}, which every trace has of the network; give it another name"
        if not isinstance(text, tuple) or len(text) != 2:
            return f"OBSERVABLES[{name!r}] is {repr(text)[:40]}; write its unit and meaning: {CONSTANTS['OBSERVABLES']}"
    if observables and not shown:
        return "OBSERVABLES has names, but nothing writes them; write @kernel def observe(flow, state, f, samples, row)"
    return None


def _fits(function: Any, arguments: int) -> bool:
    try:
        inspect.signature(function).bind(*range(arguments))
    except TypeError:
        return False
    except ValueError:  # it says nothing of what it takes
        return True
    return callable(function)


def _arguments(function: Any) -> list[str]:
    try:
        return list(inspect.signature(function).parameters)
    except ValueError:
        return []


def _misspelt(side: str, module: Any, known: tuple[str, ...]) -> str | None:
    """A name of the module's own that is nearly one of the contract, which the module lacks."""
    absent = [name for name in known if not hasattr(module, name)]
    for name, value in vars(module).items():
        own = getattr(getattr(value, "py_func", value), "__module__", module.__name__) == module.__name__
        if name.startswith("_") or name in known or not own or inspect.ismodule(value):
            continue
        near = difflib.get_close_matches(name, absent, 1, _ALIKE)
        if near and near[0].isupper() == name.isupper():
            return f"has {name}; did you mean {near[0]}? Write {written(side, near[0])}, or give it another name"
    return None
