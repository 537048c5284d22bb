"""Mutations of fluidcc's sources: small mistakes that the tests must notice. ``make mutants`` runs them.

A mutation is an entry of a table, one file ``*.toml`` for each room of the house:

    [[mutation]]
    name = "red-jumps-at-kmax"              # unique, of lower case, digits and dashes
    module = "marking"                      # where: below
    before = "queue > kmax, 1.0"            # occurs exactly once in that file
    after = "queue >= kmax, 1.0"
    tests = ["test_network.py::test_marking_of_a_queue_and_of_a_path"]  # those nearest, not slow ones
    why = "..."                             # optional: what is wrong with it
    plain = true                            # optional: run its tests without compiling the packet engine

Nothing here names a folder, so that files may move. ``module`` is the end of a module's dotted name, as much of it as
is unique (``packet.switch``, ``dcqcn.fluid``); a test is named by its file alone, with ``::function`` or without. What
was renamed altogether gets a line in `RENAMED`, the one place for that.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import tomllib
from pathlib import Path

TABLES = Path(__file__).parent
RENAMED: dict[str, str] = {}  # end of a module's name, as the tables have it: as it is now


class Refused(Exception):  # noqa: N818
    """A mutation that cannot be made: its place is gone, or no longer the only one."""


@dataclasses.dataclass(frozen=True)
class Mutation:
    """One small mistake.

    Parameters
    ----------
    name : str
    module : str
        End of the module's dotted name.
    before, after : str
        Text in its file, and what takes its place.
    tests : tuple of str
        File names below ``tests``, or ``file.py::function``.
    room : str
        Name of the table.
    why : str
    plain : bool
        Whether its tests run without machine code: quicker where they are short, for every change of the packet
        engine is compiled anew.
    """

    name: str
    module: str
    before: str
    after: str
    tests: tuple[str, ...]
    room: str
    why: str = ""
    plain: bool = False


def mutations() -> list[Mutation]:
    """All of them, table by table."""
    found = []
    for path in sorted(set(TABLES.glob("*.toml")) - {TABLES / "equivalent.toml"}):
        for entry in tomllib.loads(path.read_text(encoding="utf-8"))["mutation"]:
            tests = tuple(entry.pop("tests"))
            found.append(Mutation(**entry, tests=tests, room=path.stem))
    return found


def source_of(mutation: Mutation, root: Path) -> Path:
    """The file that a mutation changes, in a checkout.

    Raises
    ------
    Refused
        If no module has that name, or several do.
    """
    wanted = RENAMED.get(mutation.module, mutation.module).split(".")
    found = [path for parts, path in _modules(root) if parts[-len(wanted) :] == wanted]
    if len(found) != 1:
        places = ", ".join(str(path.relative_to(root)) for path in found) or "none"
        raise Refused(f"module {mutation.module} should name one file, and names {places}")
    return found[0]


def mutated(mutation: Mutation, root: Path) -> str:
    """The text of its file with the mutation in it.

    Raises
    ------
    Refused
        If the text before is not there exactly once, or nothing would change.
    """
    path = source_of(mutation, root)
    text = _text(path, path.stat().st_mtime_ns)
    count = text.count(mutation.before)
    if count != 1:
        raise Refused(f"its text occurs {count} times in {path.relative_to(root)}, not once")
    changed = text.replace(mutation.before, mutation.after)
    if changed == text:
        raise Refused("it changes nothing")
    return changed


def nearest_tests(mutation: Mutation, root: Path) -> list[str]:
    """Its tests as pytest takes them, with folders.

    Raises
    ------
    Refused
        If a file or a function is not there, or several files have the name.
    """
    found = []
    for test in mutation.tests:
        name, colons, function = test.partition("::")
        paths = [path for path in _tests(root) if path.as_posix().endswith(f"/{name}")]
        if len(paths) != 1:
            raise Refused(f"tests: {len(paths)} files are named {name}, not one")
        if function and function not in _functions(_text(paths[0], paths[0].stat().st_mtime_ns)):
            raise Refused(f"tests: {name} has no function {function}")
        found.append(f"{paths[0].relative_to(root)}{colons}{function}")
    if not found:
        raise Refused("tests: there are none")
    return found


def changed_statements(mutation: Mutation, root: Path) -> str:
    """Statements of the module that a mutation changes, whole, as they are then: Python if and only if the file is."""
    path = source_of(mutation, root)
    text, changed = _text(path, path.stat().st_mtime_ns), mutated(mutation, root)
    at = text.index(mutation.before)
    begin, end = _around(text, at, at + len(mutation.before))
    return changed[begin : end + len(changed) - len(text)]


@functools.cache
def _statement_lines(text: str) -> list[tuple[int, int]]:
    """First and last line of each statement of a module, decorators among them."""
    return [
        (min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))]), node.end_lineno or 0)
        for node in ast.parse(text).body
    ]


def _around(text: str, begin: int, end: int) -> tuple[int, int]:
    """The part of a text between two positions, extended to whole statements."""
    lines = text.splitlines(keepends=True)
    first, last = text.count("\n", 0, begin) + 1, text.count("\n", 0, end) + 1
    for low, high in _statement_lines(text):
        if low <= last and high >= first:
            first, last = min(first, low), max(last, high)
    return sum(map(len, lines[: first - 1])), sum(map(len, lines[:last]))


@functools.cache
def _modules(root: Path) -> list[tuple[list[str], Path]]:
    """Parts of each module's dotted name, and its file. Listed once for each checkout, as tests are."""
    found = []
    for path in (*sorted((root / "fluidcc").rglob("*.py")), *sorted((root / "proofs").rglob("*.py"))):
        parts = path.relative_to(root).with_suffix("").parts
        found.append((list(parts[:-1] if parts[-1] == "__init__" else parts), path))
    return found


@functools.cache
def _tests(root: Path) -> list[Path]:
    return sorted(path for path in (root / "tests").rglob("*.py"))


@functools.cache
def _text(path: Path, changed: int) -> str:
    """The text of a file that was changed at that time, read once."""
    return path.read_text(encoding="utf-8")


@functools.cache
def _functions(text: str) -> set[str]:
    """Names of a file's test functions that are not slow; of some cases only a few are."""
    tree = ast.parse(text)
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and "pytest.mark.slow" not in map(ast.unparse, node.decorator_list):
            found.add(node.name)
    return found
