"""Compiling an engine, and keeping what was compiled.

Numba notices an edit of the function that it cached, but not one of a function in another file that it calls:
it would run stale physics. The folder of a compiled loop is therefore named after a hash of the files that the loop is
made of: those that its module imports of engines and schemes, the sides of schemes if it calls them, and of the
versions and switches that change the machine code. An edit in one engine leaves the others' files valid.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np
from numba.core import config as _numba_config

from fluidcc.compiling import folder, numba_files
from fluidcc.compiling.dependencies import files_behind
from fluidcc.contract import registry

config: Any = _numba_config  # its attributes are made at import
_OPTIONS: dict[str, Any] = {"_nrt": False, "error_model": "numpy"}
# What Python never calls needs no code that takes a whole `Sim` apart: half the time to compile.
_NO_WRAPPERS = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
OPTIONS: Any = _OPTIONS | _NO_WRAPPERS
_F = TypeVar("_F", bound=Callable[..., Any])
# Modules of a scheme's package that an engine calls, by its folder.
_SIDES = {"packet": ("packet", "law"), "hybrid": ("hybrid",), "flow_level": ("law", "hybrid")}
_ENGINES = "fluidcc.engines"
# Seconds of a processor that compiling took on a server of 2024, in words.
_COMPILED = {
    "packet": "the packet engine (about 40 s, once)",
    "hybrid": "the hybrid engine (about 10 s, once)",
    "flow_level": "the flow-level engine (about 10 s, once)",
}
_RULES = ("fluidcc.contract.law", "fluidcc.contract.red", "fluidcc.contract.signals")  # what all may compile


def sources(*modules: str) -> list[Path]:
    """Files that the machine code of modules of engines depends on; of all engines if none is named."""
    modules = modules or tuple(f"{_ENGINES}.{engine}.run" for engine in _SIDES)
    packages = [registry.scheme(name).package for name in registry.built_in()]
    roots = (_ENGINES, "fluidcc.schemes", *packages)
    found = files_behind(modules, roots)
    dispatching = {path.parent.name for path in found if path.name == "dispatch.py"}
    sides = [f"{p}.{side}" for p in packages for engine in sorted(dispatching) for side in _SIDES[engine]]
    return files_behind([*modules, *sides, *_RULES], roots)


@cache
def cache_folder(module: str = f"{_ENGINES}.packet.engine") -> str:
    """Return the folder of a module's compiled loop; an empty text if nothing can be written or trusted.

    See `fluidcc.compiling.folder`.
    """
    digest = hashlib.sha256()
    for path in sources(module):
        digest.update(path.name.encode() + path.read_bytes())
    switches = (numba.__version__, platform.python_version(), config.BOUNDSCHECK, config.OPT, folder.processor())
    digest.update(repr(switches).encode())
    return str(folder.folder("numba", digest.hexdigest()[:16]) or "")


@contextmanager
def _cache_in(place: str) -> Any:
    """Set Numba's cache folder, read when a function is decorated, within the block; restore it afterwards."""
    before = config.CACHE_DIR
    config.CACHE_DIR = place
    try:
        yield
    finally:
        config.CACHE_DIR = before


def kernel(function: _F) -> _F:
    """Compile a part of the engine; it is kept with the entry that calls it. No memory is ever allocated inside."""
    return numba.njit(**OPTIONS)(function)  # type: ignore[return-value]


def wrapping(function: _F) -> _F:
    """Like `kernel`, for integers that wrap on purpose: in plain Python NumPy does not warn of it."""
    return np.errstate(over="ignore")(function) if config.DISABLE_JIT else kernel(function)


def inlined(function: _F) -> _F:
    """Like `kernel`, for a part of the loop that is called from one place.

    It becomes text of its caller, which saves the passing of arguments (a hundred words for a whole `Sim`) and
    most of the time to compile: a function is otherwise optimised again in every one that calls it.
    """
    return numba.njit(**OPTIONS, inline="always")(function)  # type: ignore[return-value]


def inlined_by_llvm(function: _F) -> _F:
    """Like `inlined`, for a large part: Numba copies all names of a part once for each of its branches.

    The packet loop is a tenth faster so, and no slower to compile; with all parts it would be.
    """
    return numba.njit(**OPTIONS, forceinline=True)(function)  # type: ignore[return-value]


def entry(function: _F) -> _F:
    """Compile what Python calls, and keep it in the cache folder; it runs without Python's lock, so in threads.

    Compiled code calls no entry: one that was loaded cannot be compiled into a caller.
    """
    made = numba.njit(**_OPTIONS, nogil=True)(function)
    place = "" if config.DISABLE_JIT else cache_folder(function.__module__)
    if place:
        with _cache_in(place):
            numba_files.keep(made, Path(place))
    if not config.DISABLE_JIT:
        engine = function.__module__.removeprefix(f"{_ENGINES}.").partition(".")[0]
        numba_files.announce(made, _COMPILED.get(engine, function.__name__))
    return made  # type: ignore[return-value]


def compiled(function: Callable[..., Any]) -> int:
    """Count the kinds of arguments for which a function was compiled or loaded; 0 in plain Python."""
    return len(getattr(function, "signatures", ()))
