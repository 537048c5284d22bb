"""Digest of all that a compiled function depends on: its code as it is now, and the shapes of its arguments.

A hash of the sources would not do. A user who replaces a function or a constant of fluidcc in a running process must
not get code compiled from the sources, nor leave code that others would then get. And an edit in a package that a
function does not use must leave its file valid. So the digest is of the objects themselves: the bytecode of the
function and of all that it names, and the constants there. For a module imported within a function it is the source.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import hashlib
import sys
import types
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.core import Tracer

from fluidcc.compiling.folder import file_of
from fluidcc.contract import registry

# Of these, whose versions are in the folder's name, the names alone.
_OUTSIDE = frozenset(sys.stdlib_module_names) | {"jax", "jaxlib", "numpy", "scipy", "numba", "xarray", "pandas"}
_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis))
_METHODS = (types.FunctionType, classmethod, staticmethod, property)


class UnknownError(Exception):
    """Something whose meaning in the next process is not known."""


def digest_of(*parts: str) -> str:
    """The digest of some texts."""
    digest = hashlib.sha256()
    for each in parts:
        digest.update(f"{len(each)}:{each}".encode())
    return digest.hexdigest()


# -- code ----------------------------------------------------------------------------------------------------


def code_of(functions: Iterable[Any], classes: Iterable[type], rooms: tuple[str, ...] = ("fluid",)) -> str:
    """Digest of functions and of all that they name, of classes, and of the schemes' modules that go with these."""
    return reader_of(functions, classes, rooms).digest.hexdigest()


def reader_of(functions: Iterable[Any], classes: Iterable[type], rooms: tuple[str, ...] = ("fluid",)) -> Reader:
    """Read what `code_of` digests; the reader knows the code."""
    classes = sorted(classes, key=lambda cls: (cls.__module__, cls.__qualname__))
    known = {*registry.built_in(), *(each.name for each in registry.outside())}
    names = sorted({str(name) for cls in classes if (name := getattr(cls, "name", None)) in known})
    modules = [registry.scheme(name).module(room) for name in names for room in rooms]
    reader = Reader()
    for each in (*functions, *classes, *modules):
        reader.read(each)
    return reader


class Reader:
    """Goes through objects, each once, in an order that is the same in every process."""

    def __init__(self) -> None:
        self.digest = hashlib.sha256()
        self.codes: set[types.CodeType] = set()
        self.files: set[str] = set()  # read as text
        self._seen: dict[int, int] = {}
        self._kept: list[Any] = []  # so that no other object gets the same id

    def _note(self, *tokens: object) -> None:
        self.digest.update(repr(tokens).encode())

    def read(self, what: Any) -> None:
        """Take an object in."""
        if isinstance(what, _PLAIN):
            self._note(type(what).__name__, what)
            return
        if id(what) in self._seen:
            self._note("seen", self._seen[id(what)])
            return
        self._seen[id(what)] = len(self._seen)
        self._kept.append(what)
        if isinstance(what, types.CodeType):
            self._code(what)
        elif isinstance(what, types.FunctionType):
            self._function(what)
        elif isinstance(what, types.ModuleType):
            self._module(what)
        elif isinstance(what, type):
            self._class(what)
        elif isinstance(what, (tuple, list)):
            self._several(type(what).__name__, what)
        elif isinstance(what, (set, frozenset)):
            self._several("set", sorted(what, key=repr))
        elif isinstance(what, (dict, types.MappingProxyType)):
            self._several("dict", [part for pair in what.items() for part in pair])
        elif isinstance(what, (np.ndarray, np.generic, jax.Array)) and not isinstance(what, Tracer):
            values = np.asarray(what)
            self._note("array", str(values.dtype), values.shape, values.tobytes())
        else:
            self._other(what)

    def _several(self, kind: str, parts: Iterable[Any]) -> None:
        parts = list(parts)
        self._note(kind, len(parts))
        for each in parts:
            self.read(each)

    def _code(self, code: types.CodeType) -> None:
        self.codes.add(code)
        self._note("code", code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
        self._note(code.co_argcount, code.co_kwonlyargcount, code.co_flags)
        self._several("constants", code.co_consts)

    def _function(self, function: types.FunctionType) -> None:
        self._note("function", function.__module__, function.__qualname__)
        if _outside(function.__module__):
            return
        self.read(function.__code__)
        self._several("defaults", [function.__defaults__, function.__kwdefaults__])
        for cell in function.__closure__ or ():
            try:
                self.read(cell.cell_contents)
            except ValueError:  # still empty
                self._note("empty")
        for name in _names(function.__code__):
            if name in function.__globals__:
                self._note("global", name)
                self.read(function.__globals__[name])
        for path in _imported(function.__code__):
            self.files.add(str(path))
            self._note("imports", path.name, path.read_bytes())

    def _module(self, module: types.ModuleType) -> None:
        self._note("module", module.__name__)
        if _outside(module.__name__) or hasattr(module, "__path__"):  # what is in a package depends on what was loaded
            return
        for name, value in sorted(vars(module).items()):
            if not name.startswith("__") and not isinstance(value, types.ModuleType):
                self._note("of module", name)
                self.read(value)

    def _class(self, cls: type) -> None:
        self._note("class", cls.__module__, cls.__qualname__)
        if _outside(cls.__module__):
            return
        self._several("bases", cls.__bases__)
        for name, value in sorted(vars(cls).items()):
            # What else has such a name comes and goes as classes are pickled, compared and inspected.
            if isinstance(value, _METHODS) or not name.startswith(("__", "_abc_")):
                self._note("of class", name)
                self.read(value)

    def _other(self, what: Any) -> None:
        kind = type(what)
        self._note("object", kind.__module__, kind.__qualname__)
        for name in ("fget", "__func__", "func", "fun", "jvp", "fwd", "bwd", "__wrapped__", "function"):
            inner = getattr(what, name, None)
            if inner is not None and (callable(inner) or isinstance(inner, staticmethod)):
                self._note("wraps", name)
                self.read(inner)
        if isinstance(what, functools.partial):
            self._several("partial", [what.args, what.keywords])
        if isinstance(what, enum.Enum):
            self._note("member", what.name)
        elif not _outside(kind.__module__):
            self.read(kind)
            if isinstance(getattr(what, "__dict__", None), dict) and dataclasses.is_dataclass(kind):
                self._several("fields", [part for pair in sorted(vars(what).items()) for part in pair])


def _names(code: types.CodeType) -> list[str]:
    """Names that code and the code within it use, in order."""
    found = list(code.co_names)
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            found += _names(each)
    return list(dict.fromkeys(found))


def _imported(code: types.CodeType) -> list[Path]:
    """Sources of what code imports of fluidcc as it runs; of a package, those of its modules that the code names."""
    names = _names(code)
    wanted = [name for name in names if name.partition(".")[0] == "fluidcc"]
    files = [file_of(each) for name in wanted for each in (name, *(f"{name}.{other}" for other in names))]
    return [file for file in files if file is not None]


def _outside(module: str | None) -> bool:
    return (module or "").partition(".")[0] in _OUTSIDE


# -- shapes --------------------------------------------------------------------------------------------------


def shape_of(leaf: Any) -> tuple[Any, ...]:
    """Return the part of a value that a compilation sees: shape and type, not the number."""
    return np.shape(leaf), _text(getattr(leaf, "dtype", type(leaf).__name__)), bool(getattr(leaf, "weak_type", False))


@functools.cache
def _text(dtype: Any) -> str:
    """Return a dtype's name, cached: writing it takes NumPy 7 us, for sixty leaves a third of a short run."""
    return str(dtype)


def structure_of(tree: Any) -> tuple[str, set[type]]:
    """A text for the structure of arguments that is the same in every process, and the classes in it.

    Raises
    ------
    UnknownError
        If there is a class from outside fluidcc in it, or a switch that is no plain value.
    """
    classes: set[type] = set()

    def text(node: Any) -> str:
        data = node.node_data()
        if data is None:
            return "*"
        kind, switches = data
        if kind.__module__.partition(".")[0] == "fluidcc":
            classes.add(kind)
        elif kind.__module__ != "builtins":
            raise UnknownError(f"{kind.__module__}.{kind.__qualname__}")
        inner = ",".join(text(child) for child in node.children())
        return f"{kind.__module__}.{kind.__qualname__}[{plain(switches)}]({inner})"

    return text(tree), classes


def plain(value: Any) -> str:
    """A text for a plain value, or for several.

    Raises
    ------
    UnknownError
        If it is none.
    """
    if isinstance(value, enum.Enum) or (isinstance(value, type) and value.__module__.startswith("fluidcc.")):
        return f"{type(value).__qualname__}:{value}"
    if type(value) in _PLAIN:
        return f"{type(value).__name__}:{value!r}"
    if isinstance(value, (tuple, list)) and type(value) in (tuple, list):
        return f"{type(value).__name__}:({','.join(map(plain, value))})"
    if isinstance(value, (np.bool_, np.integer, np.floating)):
        return f"{value.dtype}:{value!r}"
    raise UnknownError(type(value).__qualname__)
