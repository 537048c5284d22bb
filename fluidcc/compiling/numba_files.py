"""Numba's files of machine code: read only if they are ours and whole.

Numba reads its index and its data as pickles, as they are: an index cut short by a full disk breaks every later run,
and one that somebody planted is executed.

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
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile

from fluidcc.compiling import folder
from fluidcc.progress import waiting

_CHECK = 32  # bytes of a file that tell whether the rest is whole


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
            stamp, overloads = pickle.loads(_whole(self._index_path))
        except FileNotFoundError:
            return {}
        return overloads if stamp == self._stamp else {}

    def _save_index(self, overloads: Any) -> None:
        self._write(self._index_path, (self._stamp, overloads))

    def _load_data(self, name: str) -> Any:
        return pickle.loads(_whole(self._data_path(name)))

    def _save_data(self, name: str, data: Any) -> None:
        self._write(self._data_path(name), data)

    @property
    def _stamp(self) -> tuple[Any, Any]:
        return self._version, self._source_stamp

    def _write(self, path: str, data: Any) -> None:
        content = self._dump(data)
        with self._open_for_write(path) as file:
            file.write(hashlib.sha256(content).digest() + content)


def _whole(path: str) -> bytes:
    content = Path(path).read_bytes()
    check, rest = content[:_CHECK], content[_CHECK:]
    if hashlib.sha256(rest).digest() != check:
        raise ValueError("not whole")
    return rest


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
