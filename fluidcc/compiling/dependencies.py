"""Source files that a module depends on, by the imports in their text."""

from __future__ import annotations

import functools
import importlib.util
import re
from collections.abc import Iterable
from importlib.machinery import ModuleSpec
from pathlib import Path

_IMPORT = re.compile(r"^\s*(?:from\s+([\w.]+)\s+import\s+(\([^)]*\)|.*)|import\s+(.*))", re.MULTILINE)
_NAME = re.compile(r"[\w.]+")


def files_behind(modules: Iterable[str], roots: Iterable[str]) -> list[Path]:
    """Files of modules and of all that they import, directly or not, of packages.

    Parameters
    ----------
    modules : iterable of str
        Dotted names; one that does not exist is passed over.
    roots : iterable of str
        Packages in which imports are followed.
    """
    inside = tuple(f"{root}." for root in roots)
    found: dict[str, Path] = {}
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        path = None if name in found else file_of(name)
        if path is not None:
            found[name] = path
            waiting += [each for each in _imported(path, name) if each.startswith(inside)]
    return [found[name] for name in sorted(found)]


@functools.cache
def file_of(name: str) -> Path | None:
    """Source of a module; None if there is no such module, or no source of it."""
    spec = _spec_of(name)
    return None if spec is None or spec.origin is None or not spec.has_location else Path(spec.origin)


@functools.cache
def _spec_of(name: str) -> ModuleSpec | None:
    """Find a module without importing more than packages: `find_spec` imports all above it, a fluid side JAX too."""
    above = name.rpartition(".")[0]
    if above and ((parent := _spec_of(above)) is None or parent.submodule_search_locations is None):
        return None
    try:
        return importlib.util.find_spec(name)
    except (ModuleNotFoundError, ValueError):  # ValueError: `__main__`, where it is a script
        return None


@functools.cache
def _imported(path: Path, name: str) -> tuple[str, ...]:
    """Names of what a module imports, each also with what it takes of it: that may be a module too.

    By their text, as parsing takes ten times as long, which every start would wait for. A line of a docstring that
    looks like an import adds a file at most.
    """
    found = []
    for source, given, plain in _IMPORT.findall(path.read_text(encoding="utf-8")):
        if plain:
            found += _NAME.findall(plain)
            continue
        dots = len(source) - len(source.lstrip("."))
        above = name.rsplit(".", dots)[0] if dots else ""
        base = ".".join(part for part in (above, source[dots:]) if part)
        found += [base, *(f"{base}.{each}" for each in _NAME.findall(given))]
    return tuple(found)
