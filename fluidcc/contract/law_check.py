"""Check of a law: it is run on numbers without a value, before any engine has it.

So a mistake is found where a scheme's law is first asked for, with the line on which it stands, and alike for all
engines. Where a law branches on its parameters' switches, each way is taken.
"""

from __future__ import annotations

import dataclasses
import linecache
import operator
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, NoReturn

from fluidcc.contract.law import VOCABULARY, in_world
from fluidcc.contract.signals import Progress
from fluidcc.scenario.parameters import specs
from fluidcc.surface import nearest

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
