"""Stamps: which sources a committed result was made of, so that the build can refuse one that is older."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]

# Rooms whose code says what is asked and of which equations. Engines are left out: what they answer is held bit for
# bit by their tests, and a stamp of all code would make every page stale with every line.
ROOMS = ("fluidcc.proofs", "fluidcc.schemes", "fluidcc.theory")


def stamp_of_module(name: str) -> str:
    """Stamp of a module and of what it imports from `ROOMS`, however indirectly.

    Comments, docstrings and where files lie (their names, imports) do not count.

    Parameters
    ----------
    name : str
        Such as ``fluidcc.proofs.dcqcn.fig3``.
    """
    digest = hashlib.sha256()
    for code in sorted(_code(each) for each in _closure(name)):
        digest.update(f"{code}\n".encode())
    return digest.hexdigest()[:16]


def stamp_of_notebook(notebook: Any) -> str:
    """Stamp of a notebook's code cells, as nbformat reads them.

    Nothing of fluidcc counts: a slow test runs each notebook, and does not compare its numbers with those stored. After
    a change of what an engine answers, ``python -m docs.pages.results NAME ...`` makes its outputs again.
    """
    digest = hashlib.sha256()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            digest.update(f"{cell.source}\0".encode())
    return digest.hexdigest()[:16]


def _closure(name: str) -> set[str]:
    found, waiting = set[str](), [name]
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            waiting += _imported(one)
    return found


@cache
def _path(name: str) -> Path | None:
    base = ROOT.joinpath(*name.split("."))
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        if path.is_file():
            return path
    return None


def _parsed(name: str) -> ast.Module:
    path = _path(name)
    assert path is not None, name
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def _imported(name: str) -> tuple[str, ...]:
    """Modules of `ROOMS` that a module imports, at its top or in a function."""
    found = set[str]()
    for node in ast.walk(_parsed(name)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return tuple(sorted(each for each in found if each.startswith(ROOMS) and _path(each) is not None))


@cache
def _code(name: str) -> str:
    """A module's code without docstrings and imports; the parser has left out comments and layout."""
    tree = _parsed(name)  # of its own: what follows changes it
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = _without_docstring(node.body)
        if isinstance(body := getattr(node, "body", None), list):
            kept = [each for each in body if not isinstance(each, ast.Import | ast.ImportFrom)]
            node.body = kept or [ast.Pass()]  # pyright: ignore[reportAttributeAccessIssue]
    return ast.unparse(tree)


def _without_docstring(body: Iterable[ast.stmt]) -> list[ast.stmt]:
    first, *rest = body
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        return rest or [ast.Pass()]
    return [first, *rest]
