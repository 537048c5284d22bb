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
    for path in sorted(TABLES.glob("*.toml")):
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
    found = []
    for path in sorted((root / "fluidcc").rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        if list(parts[-len(wanted) :]) == wanted:
            found.append(path)
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
    text = path.read_text(encoding="utf-8")
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
        paths = sorted((root / "tests").rglob(name))
        if len(paths) != 1:
            raise Refused(f"tests: {len(paths)} files are named {name}, not one")
        if function and function not in _functions(paths[0].read_text(encoding="utf-8")):
            raise Refused(f"tests: {name} has no function {function}")
        found.append(f"{paths[0].relative_to(root)}{colons}{function}")
    if not found:
        raise Refused("tests: there are none")
    return found


@functools.cache
def _functions(text: str) -> set[str]:
    """Names of a file's test functions that are not slow; of some cases only a few are."""
    tree = ast.parse(text)
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and "pytest.mark.slow" not in map(ast.unparse, node.decorator_list):
            found.add(node.name)
    return found
