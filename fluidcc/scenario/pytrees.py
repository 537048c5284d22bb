"""Parameter classes as JAX's pytrees, as soon as JAX is there: packets and refusals do without it."""

from __future__ import annotations

import importlib.util
import operator
import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_waiting: list[tuple[type, tuple[str, ...], tuple[str, ...]]] = []


def register_pytree(cls: type, data: tuple[str, ...], meta: tuple[str, ...]) -> None:
    """Do what `jax.tree_util.register_dataclass` does, now or when JAX is imported."""
    if "jax" in sys.modules:
        _register(cls, data, meta)
        return
    if not _waiting:
        sys.meta_path.insert(0, _WhenJAXIsImported())
    _waiting.append((cls, data, meta))


class _WhenJAXIsImported(MetaPathFinder):
    """Registers what waits after the first import of JAX."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find JAX as Python does, and add to what is done if it is loaded: some only look whether it is there."""
        if fullname != "jax":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec("jax")
        sys.meta_path.insert(0, self)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def loaded(module: ModuleType) -> None:
                load(module)
                sys.meta_path.remove(self)
                while _waiting:
                    _register(*_waiting.pop())

            spec.loader.exec_module = loaded
        return spec


def _register(cls: type, data: tuple[str, ...], meta: tuple[str, ...]) -> None:
    """Objects are made without their constructor: a third of the time."""
    from jax import tree_util

    keys = [tree_util.GetAttrKey(name) for name in data]
    leaves, rest = _getter(data), _getter(meta)
    order, new = (*data, *meta), object.__new__

    def make(switches: tuple[Any, ...], values: Any) -> Any:
        made = new(cls)
        made.__dict__.update(zip(order, (*values, *switches), strict=True))
        return made

    tree_util.register_pytree_with_keys(
        cls,
        lambda each: (tuple(zip(keys, leaves(each), strict=True)), rest(each)),
        make,
        lambda each: (leaves(each), rest(each)),
    )


def _getter(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """Function from an object to a tuple of some of its attributes."""
    if len(names) > 1:
        return operator.attrgetter(*names)
    return lambda each: tuple(getattr(each, name) for name in names)
