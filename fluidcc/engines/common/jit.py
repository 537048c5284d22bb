"""Compiling an engine, and keeping what was compiled.

Numba notices an edit of the function that it cached, but not one of a function in another file that it calls:
it would run stale physics. The folder of a compiled loop is therefore named after a hash of the files that the loop is
made of: those that its module imports of engines and schemes, the sides of schemes if it calls them, and of the
versions and switches that change the machine code. An edit in one engine leaves the others' files valid.

Numba reads its index and its data as pickles, as they are: an index cut short by a full disk breaks every later run,
and one that somebody planted is executed. So files are read only if they are ours and whole.

Numba is made to load a function into which others may be compiled. For that it imports all that it can compile, SciPy's
linear algebra among it, and parses LLVM's bitcode of the function. What Python alone calls needs neither. Without them
the packet loop takes 0.035 s of a processor and 21 MB to load, not 0.40 s and 95 MB.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import os
import pickle
import platform
from collections.abc import Callable
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import llvmlite.binding as llvm
import numba
import numpy as np
from numba.core import config as _numba_config
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile

from fluidcc.compiling import folder
from fluidcc.compiling.folder import files_behind
from fluidcc.contract import registry
from fluidcc.progress import waiting

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
            keep(made, Path(place))
    if not config.DISABLE_JIT:
        engine = function.__module__.removeprefix(f"{_ENGINES}.").partition(".")[0]
        announce(made, _COMPILED.get(engine, function.__name__))
    return made  # type: ignore[return-value]


def compiled(function: Callable[..., Any]) -> int:
    """Count the kinds of arguments for which a function was compiled or loaded; 0 in plain Python."""
    return len(getattr(function, "signatures", ()))


class _WholeFiles(IndexDataCacheFile):
    """Index and data with a checksum before each; a damaged file is made again."""

    def load(self, key: Any) -> Any:
        try:
            return super().load(key)
        except Exception as error:  # a file may be damaged in any way
            self._start_anew(error)
            return None

    def save(self, key: Any, data: Any) -> None:
        place = Path(self._cache_path).parent
        try:
            try:
                super().save(key, data)
            except Exception as error:
                if isinstance(error, OSError):
                    raise
                self._start_anew(error)
                super().save(key, data)
            folder.prune(place)
        except OSError as error:
            folder.say_unwritten(place, error)

    def _start_anew(self, error: Exception) -> None:
        folder.say(f"the cache: {self._index_path!r} is damaged ({type(error).__name__}) and is made again")
        with contextlib.suppress(OSError):
            self.flush()

    def _load_index(self) -> Any:
        try:
            stamp, overloads = pickle.loads(folder.unsealed(Path(self._index_path).read_bytes()))
        except FileNotFoundError:
            return {}
        return overloads if stamp == self._stamp else {}

    def _save_index(self, overloads: Any) -> None:
        self._write(self._index_path, (self._stamp, overloads))

    def _load_data(self, name: str) -> Any:
        return pickle.loads(folder.unsealed(Path(self._data_path(name)).read_bytes()))

    def _save_data(self, name: str, data: Any) -> None:
        self._write(self._data_path(name), data)

    @property
    def _stamp(self) -> tuple[Any, Any]:
        return self._version, self._source_stamp

    def _write(self, path: str, data: Any) -> None:
        content = folder.sealed(self._dump(data))
        with self._open_for_write(path) as file:
            file.write(content)


class _MachineCode(CompileResultCacheImpl):
    """Kept form of a compiled function: machine code alone."""

    def reduce(self, cres: Any) -> Any:
        (name, kind, (code, _)), *rest = super().reduce(cres)
        called = f'@"{cres.fndesc.llvm_cpython_wrapper_name}" = constant i8 0'  # Numba finds only names in the bitcode
        return (name, kind, (code, llvm.parse_assembly(called).as_bitcode())), *rest

    def rebuild(self, target_context: Any, payload: Any) -> Any:
        found = super().rebuild(target_context, payload)
        found.library._shared_module = None  # so Numba refuses to compile what calls it; make that a `kernel`
        return found


class _Cache(FunctionCache):
    _impl_class = _MachineCode

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        known = self._cache_file
        stamp = self._impl.locator.get_source_stamp()
        self._cache_file = _WholeFiles(known._cache_path, self._impl.filename_base, stamp)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        return self._load_overload(sig, target_context)  # without `target_context.refresh()`


def announce(dispatcher: Any, what: str) -> None:
    """Have progress say what is compiled, while it is; loading says nothing."""
    compiler = dispatcher._compiler
    compile = compiler.compile

    @functools.wraps(compile)
    def said(*arguments: Any) -> Any:
        with waiting(f"compiling {what}"):
            return compile(*arguments)

    compiler.compile = said


def keep(dispatcher: Any, place: Path) -> None:
    """Have what a compiled function compiles kept in a folder, which Numba's setting names at this time.

    A folder that holds what is not ours is left alone, which is said.
    """
    try:
        folder.require_own(place, "the cache")
    except folder.RefusedError as error:
        folder.say(f"{error}; the packet engine is compiled again")
        return
    except OSError:
        return
    with contextlib.suppress(RuntimeError):  # no place for files
        cache = _Cache(dispatcher.py_func)
        os.chmod(cache.cache_path, 0o700)  # Numba makes it as the umask says
        dispatcher._cache = cache
        dispatcher.compile = _in_turn(dispatcher.compile, Path(cache.cache_path) / f"{dispatcher.__name__}.lock")


def _in_turn(compile: Callable[..., Any], lock: Path) -> Callable[..., Any]:
    """Let one process at a time compile or load a function: a minute of work, which the others then find done."""

    @functools.wraps(compile)
    def alone(*arguments: Any) -> Any:
        with contextlib.ExitStack() as held:
            with contextlib.suppress(OSError):  # the folder is gone or full: each for itself
                file = held.enter_context(open(lock, "wb"))
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    with waiting("another process compiles what this one needs"):
                        fcntl.flock(file, fcntl.LOCK_EX)
            return compile(*arguments)

    return alone
