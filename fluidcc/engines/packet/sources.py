"""Which files machine code depends on beside the engine: packet sides, and what these import of schemes' packages."""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterable
from pathlib import Path


def sources_of(packages: Iterable[str]) -> list[Path]:
    """Files of the compiled sides of schemes' packages, and of all modules of any scheme's that they import."""
    packages = list(packages)
    roots = tuple(dict.fromkeys(("fluidcc.schemes", *packages)))
    found: dict[str, Path] = {}
    waiting = [f"{package}.{side}" for package in packages for side in ("packet", "hybrid", "flow_level")]
    while waiting:
        name = waiting.pop()
        path = None if name in found else _file(name)
        if path is not None:
            found[name] = path
            waiting += [each for each in _imported(path, name) if each.startswith(tuple(f"{r}." for r in roots))]
    return [found[name] for name in sorted(found)]


def _file(name: str) -> Path | None:
    """Source of a module; None if there is no such module, or no source of it."""
    try:
        spec = importlib.util.find_spec(name)
    except ModuleNotFoundError:
        return None
    return None if spec is None or spec.origin is None or not spec.has_location else Path(spec.origin)


def _imported(path: Path, name: str) -> list[str]:
    """Names of what a module imports, each also with what it takes of it: that may be a module too."""
    found = []
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except SyntaxError:  # said where it is imported
        return []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = name.rsplit(".", node.level)[0] if node.level else ""
            base = ".".join(part for part in (above, node.module) if part)
            found += [base, *(f"{base}.{alias.name}" for alias in node.names)]
    return found
