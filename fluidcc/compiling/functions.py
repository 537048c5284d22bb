"""Functions that are compiled once for each shape of their arguments, by all threads and, through files, all processes.

A compiled function maps a hundred pieces of memory or more, of which a process may have 65 530 on Linux. So a process
holds the `MOST` that it used last, of all functions together. Each has its own wrapper, which alone frees it when
it is let go; `jax.clear_caches` would throw away what the user compiled.
"""

from __future__ import annotations

import functools
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.core import Tracer

from fluidcc.compiling import store
from fluidcc.compiling.identity import UnknownError, code_of, digest_of, plain, shape_of, structure_of
from fluidcc.contract import registry
from fluidcc.progress import waiting

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
            found = store.load(self.name, digest, jax.tree.structure((arguments, {})))
            if found is not None:
                return found

        def call(*values: Any) -> Any:
            return self.function(*values, **switches)

        call.__name__ = call.__qualname__ = self.function.__name__
        hits = store.hits()
        what = next((said for prefix, said in _WHAT.items() if self.name.startswith(prefix)), self.name)
        with waiting(f"compiling {what} (1 to 10 s, once for scenarios of this shape)", drawn=False):
            found = jax.jit(call, donate_argnums=self.donate).lower(*arguments).compile(self.options)
        if digest is not None and store.hits() == hits:
            store.save(self.name, digest, found)
        return found

    def _digest(self, switches: dict[str, Any], tree: Any, leaves: list[Any]) -> str | None:
        """Name of the file; None if none can be kept."""
        if store.place() is None:
            return None
        try:
            structure, classes = structure_of(tree)
            values = plain(sorted(switches.items()))
        except UnknownError:
            return None
        code = code_of([self.function], classes, self.rooms)
        shapes = repr([shape_of(leaf) for leaf in leaves])
        return digest_of(
            self.name, repr(self.donate), structure, values, shapes, code, str(self.options), store.context()
        )[:32]


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
