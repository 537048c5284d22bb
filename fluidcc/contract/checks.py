"""Requirements on a scheme's sides, as tables, and on its law, which is run on numbers without a value.

A name that is missing, misspelt or of another shape is refused. Sides are checked when first used
(`fluidcc.contract.models`), parameters when they are registered. A mistake in a law is found where the law is first
asked for, with the line on which it stands, and alike for all engines. Where a law branches on its parameters'
switches, each way is taken.
"""

from __future__ import annotations

import ast
import dataclasses
import difflib
import inspect
import linecache
import operator
import textwrap
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import CodeType, MappingProxyType, ModuleType
from typing import Any, NoReturn

from fluidcc.contract import protocol
from fluidcc.contract.law import VOCABULARY, in_world
from fluidcc.contract.signals import Progress
from fluidcc.scenario.parameters import specs
from fluidcc.surface import nearest

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
_OF_A_SLOPE = ("newly", "dt", "packet", "wire_packet", "line_rate")  # fields of `Progress` that a law of rates is given
_MOST_WAYS = 64
_BRANCH = (
    "a law cannot branch on a flow's numbers; write xp.where(condition, yes, no) instead of if, (a) & (b) and "
    "(a) | (b) instead of and and or, xp.logical_not instead of not, xp.minimum and xp.maximum instead of min and max"
)
_PLAIN = f"take plain numbers alone; write those of xp, which has {', '.join(VOCABULARY)}"
_INSTEAD = {"print": "show a field of State by OBSERVABLES", "random": "write its mean"}
_BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor")
_OPERATORS = ("lt", "le", "gt", "ge", "eq", "ne", "neg", "pos", "abs", "invert", *_BINARY, *(f"r{x}" for x in _BINARY))


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


class _SlipError(Exception):
    """A use that no engine has; its message says what to write."""


class _Number:
    """A number without a value; what is computed of it is one too."""

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        raise _SlipError(_BRANCH)

    def __float__(self) -> float:
        raise _SlipError(f"functions of math and of Python {_PLAIN}")

    __int__ = __index__ = __round__ = __float__  # type: ignore[assignment]

    def __array_ufunc__(self, function: Any, *_: Any, **__: Any) -> Any:
        if hasattr(operator, function.__name__) and function.__name__ not in VOCABULARY:
            return _Number()  # an operator between this and a number of NumPy
        self.__array_function__(function)

    def __array_function__(self, function: Any, *_: Any) -> NoReturn:
        raise _SlipError(f"functions of NumPy, as {function.__name__} is, {_PLAIN}")


for _name in _OPERATORS:
    setattr(_Number, f"__{_name}__", lambda *_: _Number())


class _Switch(_Number):
    """A parameter that is true or false, on which a law may branch: it goes one of its ``ways``."""

    def __init__(self, name: str, ways: dict[str, bool]) -> None:
        self._name, self._ways = name, ways

    def __bool__(self) -> bool:
        return self._ways.setdefault(self._name, False)


class _Named:
    """Something whose parts a law reads by name; ``refused`` says what to write where it may not."""

    def __init__(self, what: str, parts: dict[str, Any], refused: Callable[[str], str] = lambda name: "") -> None:
        self._what, self._parts, self._refused = what, parts, refused

    def __getattr__(self, name: str) -> Any:
        if name in self._parts:
            return self._parts[name]
        near = nearest(name, self._parts)
        hint = f"; did you mean {near}? It" if near else "; it"
        raise _SlipError(self._refused(name) or f"{self._what} has no {name}{hint} has {', '.join(self._parts)}")


def slip(law: ModuleType, parameters: type[Any], by_slope: bool) -> str | None:
    """Describe the first mistake in a law, with its line and what to write; None if there is none.

    Parameters
    ----------
    law : module
        With all functions of `fluidcc.contract.protocol.LawSide`.
    parameters : type
        The scheme's.
    by_slope : bool
        Whether the fluid follows the law's slope.
    """
    ways: dict[str, bool] = {}
    p, one, state = _parameters(law, parameters, ways), _Number(), law.State(*(_Number() for _ in law.State._fields))
    given = {
        "start": (p, one),
        "rate": (state,),
        "window": (p, state),
        "largest_window": (p,),
        "on_hop": (p, one, one, one, one),
        "on_step": (p, state, _progress(getattr(law, "NEEDS", ()), by_slope), one),
    }
    vocabulary: Any = _Named("xp", {name: _function(name, count) for name, count in VOCABULARY.items()})
    for name, rule in ((name, getattr(law, name)) for name in given if hasattr(law, name)):
        kind, what = (law.State, "State(...)") if name in ("start", "on_step") else ((_Number, float, int), "a number")
        try:
            run = in_world(rule, vocabulary, _without_chance)
            for _ in _each(ways):
                if not isinstance(made := run(*given[name]), kind):
                    raise _SlipError(f"{name} returns {type(made).__name__}; return {what}")
        except Exception as error:
            return _told(error, law, rule.__code__)
    return None


def _each(ways: dict[str, bool]) -> Iterator[None]:
    """Go through the values of switches, by name: a law adds those on which it branches, and takes each way once."""
    ways.clear()
    for _ in range(_MOST_WAYS):
        yield
        while ways and ways[next(reversed(ways))]:
            ways.popitem()
        if not ways:
            return
        ways[next(reversed(ways))] = True


def _function(name: str, count: int) -> Callable[..., _Number]:
    def function(*given: Any) -> _Number:
        if len(given) != count:
            raise _SlipError(f"xp.{name} takes {count} arguments, not {len(given)}")
        return _Number()

    return function


def _parameters(law: ModuleType, cls: type[Any], ways: dict[str, bool]) -> Any:
    known, switches = specs(cls), list(getattr(law, "SWITCHES", ()))
    words = {name for name, spec in known.items() if spec.static}
    switches += [name for name in words if set(known[name].choices) == {True, False}]
    parts: dict[str, Any] = {each.name: _Number() for each in dataclasses.fields(cls) if each.name not in words}
    parts |= {name: _Switch(name, ways) for name in switches}

    def refused(name: str) -> str:
        if name in words:
            return f"{name} is a word; write a property of parameters that is true or false, and SWITCHES = (its name,)"
        more = f"is no field of parameters; write a field {name}: Any = bound(...), and fill it in in bind"
        return f"{name} {more}" if hasattr(cls, name) else ""

    return _Named("parameters", parts, refused)


def _progress(needs: Any, by_slope: bool) -> Any:
    parts = {name: _Number() for name in (_OF_A_SLOPE if by_slope else Progress._fields)}
    if "delay" not in needs:
        parts.pop("rtt", None)

    def refused(name: str) -> str:
        if by_slope and name in Progress._fields:
            return f"a law of rates is not given progress.{name}, but {', '.join(parts)}; write window, or fluid.py"
        return 'progress.rtt has to be asked for; write NEEDS = frozenset({"delay"})' if name == "rtt" else ""

    return _Named("progress", parts, refused)


def _without_chance(function: Any) -> Any:
    """Return a function of a law, whose ``print`` and ``random`` are refused where they are met."""

    def refuse(name: str, *_: Any) -> NoReturn:
        raise _SlipError(f"a law has no {name}; {_INSTEAD[name]}")

    space = function.__globals__  # of its own (`in_world`)
    space["print"] = lambda *_, **__: refuse("print")
    if isinstance(space.get("random"), ModuleType):
        space["random"] = _Named("random", {}, lambda _: refuse("random"))
    return function


def _told(error: Exception, law: ModuleType, code: CodeType) -> str:
    """Say a mistake with its line: the last one of the law's own folder, or that with which the function begins."""
    folder = Path(code.co_filename).parent
    frames = [each for each in traceback.extract_tb(error.__traceback__) if Path(each.filename).parent == folder]
    file, line = (frames[-1].filename, frames[-1].lineno or 0) if frames else (code.co_filename, code.co_firstlineno)
    where = f"line {line}" if file == law.__file__ else f"{Path(file).name}, line {line}"
    said = str(error) if isinstance(error, _SlipError) else f"{type(error).__name__}: {error}"
    if "State" in said and not isinstance(error, _SlipError):
        said += f"; its State has {', '.join(law.State._fields)}"
    return f"{where}, {linecache.getline(file, line).strip()!r}: {said}"
