"""The picture of the architecture: its rooms are the folders that there are, its arrows the imports."""

from __future__ import annotations

import re
from pathlib import Path

from docs.pages.architecture import FLOW, GROUPS, IMPORTS, PICTURE, draw
from tests.test_imports import PACKAGE, between_packages

INSIDE = {"engines": PACKAGE / "engines"}  # whose own folders are drawn


def folders_of(parent: Path) -> set[str]:
    return {path.parent.name for path in parent.glob("*/__init__.py")}


def group_of(package: str) -> str:
    """Group in which a package such as fluidcc.engines.packet is drawn."""
    parts = package.split(".")[1:]
    if not parts:
        return "base"
    if parts[0] == "engines":
        return "engines"
    (found,) = (name for name, group in GROUPS.items() if name != "base" and parts[0] in group.rooms)
    return found


def words_of(svg: bytes) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg.decode())


def reached(start: str) -> set[str]:
    """Groups that arrows lead to, however far."""
    found, waiting = set[str](), [start]
    while waiting:
        one = waiting.pop()
        new = {used for user, used in IMPORTS if user == one} - found
        found |= new
        waiting += new
    return found


def test_rooms_are_the_folders_that_there_are() -> None:
    drawn = [room for name, group in GROUPS.items() if name != "base" for room in group.rooms]
    assert len(drawn) == len(set(drawn))
    wanted = folders_of(PACKAGE) - INSIDE.keys()
    for parent in INSIDE.values():
        wanted |= folders_of(parent)
    assert set(drawn) == wanted
    loose = {path.stem for path in PACKAGE.glob("*.py") if not path.name.startswith("__")}
    assert set(GROUPS["base"].rooms) == loose


def test_arrows_are_imports_and_imports_follow_arrows() -> None:
    there = {
        (group_of(user), group_of(used))
        for user, every in between_packages().items()
        for used in every
        if group_of(user) != group_of(used)
    }
    assert set(IMPORTS) <= there
    assert {(user, used) for user, used in there if used not in reached(user)} == set()


def test_nothing_reaches_itself() -> None:
    assert [name for name in GROUPS if name in reached(name)] == []


def test_a_run_goes_from_scenario_to_trace() -> None:
    titles = [GROUPS[FLOW[0][0]].title, *(GROUPS[other].title for _, other in FLOW)]
    assert titles == ["Scenario", "engines", "Trace"]


def test_the_picture_is_that_of_the_script() -> None:
    """Text by text: curves may differ in their last digits from one Matplotlib to another."""
    svg = PICTURE.read_bytes()
    assert words_of(svg) == words_of(draw())
    assert not re.search(rb"<(image|script|style[^>]*>[^<]*@import)", svg)
