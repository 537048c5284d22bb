"""Functions that are compiled once for each shape of their arguments, by all threads and, through files, all processes.

A compiled function maps a hundred pieces of memory or more, of which a process may have 65 530 on Linux. So a process
holds the `MOST` that it used last, of all functions together. Each has its own wrapper, which alone frees it when
it is let go; `jax.clear_caches` would throw away what the user compiled.

Each is also kept in a file named after a digest, whole or not at all: a run from a file gives the same bits, and
neither traces, nor lowers, nor compiles. JAX's own cache of compilations is not used: it is one for all of a process,
with the user's functions, and asks for the lowered program, which takes as long to make as to compile. Where the user
has switched it on, what it gives is not kept here: XLA leaves the machine code out when it serialises what it has read
itself.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import os
import pickle
import platform
import re
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.core import Tracer
from jax.experimental import serialize_executable

from fluidcc.compiling import folder
from fluidcc.compiling.identity import UnknownError, code_of, digest_of, plain, shape_of, structure_of
from fluidcc.compiling.settings import ours
from fluidcc.compiling.threads import cores
from fluidcc.contract import registry
from fluidcc.progress import waiting
from fluidcc.version import VERSION

# XLA's older way to make machine code of fused operations. The fluid's loops give the same bits with it, and take three
# quarters of the time to compile. Not for derivatives: where terms tie at an equilibrium, rounding decides on them.
OLDER_FUSION: dict[str, bool | str] = {"xla_cpu_use_fusion_emitters": False}
MOST = 200  # compiled functions that a process holds; a shape of a run needs two

_lock = threading.Lock()
_held: OrderedDict[Any, Any] = OrderedDict()  # the last used is the last
_making: dict[Any, threading.Event] = {}
# What is compiled, by the beginning of its name.
_WHAT = {
    "fluidcc.engines.fluid": "the fluid engine",
    "fluidcc.theory.control": "the fluid's derivatives",
    "fluidcc.theory": "a paper's recursion",
}
made = 0  # compiled or loaded by this process so far
watchers: list[Callable[[str, Any], None]] = []  # called with name and key of each function that is requested
_HIT = "/jax/compilation_cache/cache_hits"  # event of JAX's own cache
_CALLED = re.compile(r'custom_call_target="([^"]*)"')


class PerShape:
    """A function that is compiled for each shape of its arguments and each value of its keywords.

    Called with traced values it is a part of what is traced.

    Parameters
    ----------
    function : callable
        Arguments are pytrees of numbers, keywords switches.
    donate : tuple of int
        Arguments whose memory the result may take.
    rooms : tuple of str
        Modules of a scheme that it calls.
    options : dict
        XLA's, for this function.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        donate: tuple[int, ...],
        rooms: tuple[str, ...],
        options: dict[str, bool | str],
    ) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.donate = donate
        self.rooms = rooms
        self.options = options

    @property
    def name(self) -> str:
        """Dotted name of the function, for files and lists."""
        return f"{self.function.__module__}.{self.function.__name__}"

    def __call__(self, *arguments: Any, **switches: Any) -> Any:
        """Call the function: compiled for the shapes of its arguments, or as it is while JAX traces."""
        if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(arguments)):
            return self.function(*arguments, **switches)
        return self.ready(*arguments, **switches)[0](*arguments)

    def ready(self, *arguments: Any, **switches: Any) -> tuple[Callable[..., Any], float]:
        """The compiled function, to be called with the arguments alone, and the seconds it took; 0 if it was held."""
        leaves, tree = jax.tree.flatten(arguments)
        double = jax.dtypes.canonicalize_dtype(np.float64) == np.float64
        key = (self, tree, tuple(map(shape_of, leaves)), tuple(sorted(switches.items())), double, registry.replaced)
        for tell in watchers:
            tell(self.name, key)
        while True:
            with _lock:
                if key in _held:
                    _held.move_to_end(key)
                    return _held[key], 0.0
                waiting = _making.get(key)
                if waiting is None:
                    _making[key] = threading.Event()
                    break
            waiting.wait()  # another thread makes it; should it fail, we try
        try:
            began = time.perf_counter()
            found = self._make(arguments, switches, tree, leaves)
            _hold(key, found)
            return found, time.perf_counter() - began
        finally:
            with _lock:
                _making.pop(key).set()

    def _make(self, arguments: tuple[Any, ...], switches: dict[str, Any], tree: Any, leaves: list[Any]) -> Any:
        digest = self._digest(switches, tree, leaves)
        if digest is not None:
            # The tree of arguments and of no keywords.
            found = load(self.name, digest, jax.tree.structure((arguments, {})))
            if found is not None:
                return found

        def call(*values: Any) -> Any:
            return self.function(*values, **switches)

        call.__name__ = call.__qualname__ = self.function.__name__
        before = hits()
        what = next((said for prefix, said in _WHAT.items() if self.name.startswith(prefix)), self.name)
        with waiting(f"compiling {what} (1 to 10 s, once for scenarios of this shape)", drawn=False):
            found = jax.jit(call, donate_argnums=self.donate).lower(*arguments).compile(self.options)
        if digest is not None and hits() == before:
            save(self.name, digest, found)
        return found

    def _digest(self, switches: dict[str, Any], tree: Any, leaves: list[Any]) -> str | None:
        """Name of the file; None if none can be kept."""
        if place() is None:
            return None
        try:
            structure, classes = structure_of(tree)
            values = plain(sorted(switches.items()))
        except UnknownError:
            return None
        code = code_of([self.function], classes, self.rooms)
        shapes = repr([shape_of(leaf) for leaf in leaves])
        return digest_of(self.name, repr(self.donate), structure, values, shapes, code, str(self.options), context())[
            :32
        ]


def per_shape(
    *,
    donate: tuple[int, ...] = (),
    rooms: tuple[str, ...] = ("fluid",),
    options: dict[str, bool | str] | None = None,
) -> Callable[[Callable[..., Any]], PerShape]:
    """Decorator: compile once for each shape of the arguments, and hold what was used last."""
    return lambda function: PerShape(function, donate, rooms, options or {})


def _hold(key: Any, found: Any) -> None:
    global made
    with _lock:
        made += 1
        _held[key] = found
        while len(_held) > MOST:
            _held.popitem(last=False)


def held() -> int:
    """Count the compiled functions that this process holds."""
    return len(_held)


class _Hits(threading.local):
    count = 0


_hits = _Hits()


def hits() -> int:
    """Return how many programs JAX's own cache has given this thread since the first call."""
    _listen()
    return _hits.count


@functools.cache
def _listen() -> None:
    def note(event: str, **_: Any) -> None:
        _hits.count += event == _HIT

    jax.monitoring.register_event_listener(note)


def place() -> Path | None:
    """The folder, or None if nothing is to be kept, or can be."""
    settings = jax.config.values
    if not ours() or not settings.get("jax_enable_compilation_cache", True):
        return None
    if jax.default_backend() != "cpu" or settings.get("jax_default_device") is not None:
        return None
    return folder.folder("jax", _version())


@functools.cache
def _version() -> str:
    """Digest of all that no key of a function holds: versions and the processor. Its sources are in the key."""
    versions = [importlib.metadata.version(name) for name in ("jax", "jaxlib", "numpy", "scipy")]
    parts = (
        VERSION,
        *versions,
        platform.python_version(),
        *folder.processor(),
        str(cores()),  # that the compiler may use
    )
    return digest_of(*parts)[:16]


@functools.cache
def sources() -> str:
    """Digest of all of fluidcc's sources."""
    base = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(base.rglob("*.py")):
        text = path.read_bytes()
        digest.update(f"{path.relative_to(base)} {len(text)} ".encode() + text)
    return digest.hexdigest()


@functools.cache
def flags() -> str:
    """Return XLA's flags as JAX reads them, once, when it starts; which it does here if it has not."""
    jax.devices()
    return os.environ.get("XLA_FLAGS", "")


def context() -> str:
    """Settings of JAX and XLA that decide on what is compiled."""
    settings = {name: value for name, value in jax.config.values.items() if "cache" not in name and "log" not in name}
    backend = jax.devices()[0].client
    known = sorted(settings.items(), key=repr)
    return repr((known, flags(), backend.platform_version, str(jax.devices()[0])))


def load(name: str, digest: str, in_tree: Any) -> Any | None:
    """A compiled function from its file; None if there is none, or it is damaged, which is said."""
    where = place()
    if where is None:
        return None
    path = where / f"{name}-{digest}"
    try:
        content = _read(path)
        payload, shape, algebra = pickle.loads(content)
        if algebra and not _prepare_algebra():
            return None
        out_tree = jax.tree.structure(shape)
        device = jax.devices("cpu")[0]
        made = serialize_executable.deserialize_and_load(payload, in_tree, out_tree, "cpu", [device])
    except FileNotFoundError:
        return None
    except folder.RefusedError as error:
        folder.say(f"{error}; it is compiled again")
        return None
    except Exception as error:  # a file may be damaged in any way
        folder.say(f"the cache: {str(path)!r} is damaged ({type(error).__name__}) and is made again")
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
        return None
    with contextlib.suppress(OSError):
        os.utime(path)
    return made


def _prepare_algebra() -> bool:
    """Have JAX find LAPACK's functions, which it does as it lowers; without them a call of one ends the process."""
    try:
        from jaxlib import lapack

        lapack.prepare_lapack_call("getrf_ffi", np.dtype(np.float64))
    except (ImportError, AttributeError, TypeError):
        return False
    return True


def _read(path: Path) -> bytes:
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    with open(handle, "rb") as file:
        if hasattr(os, "getuid") and os.fstat(file.fileno()).st_uid != os.getuid():
            raise folder.RefusedError(f"the cache: {str(path)!r} belongs to somebody else")
        return folder.unsealed(file.read())


def save(name: str, digest: str, made: Any) -> None:
    """Keep a compiled function, if it can be kept."""
    where = place()
    if where is None:
        return
    try:
        called = set(_CALLED.findall(made.as_text()))
        if not all(name.startswith("lapack_") for name in called):  # what prepares the others is not known
            return
        payload, _, out_tree = serialize_executable.serialize(made)
    except Exception:  # one that cannot be kept: it calls back into Python
        return
    shape = jax.tree.unflatten(out_tree, range(out_tree.num_leaves))
    content = pickle.dumps((payload, shape, bool(called)))
    try:
        handle, temporary = tempfile.mkstemp(dir=where, prefix=".new-")
        try:
            with open(handle, "wb") as file:
                file.write(folder.sealed(content))
            os.replace(temporary, where / f"{name}-{digest}")
        finally:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        folder.prune(where)
    except OSError as error:
        folder.say_unwritten(where, error)
