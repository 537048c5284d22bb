"""The table of mutations fits the sources and the tests as they are; what they come to is ``make mutants``."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mutants import Mutation, Refused, mutated, mutations, nearest_tests
from mutants.__main__ import KILLED, REFUSED, SURVIVED, Copy

ROOT = Path(__file__).parents[1]
TABLE = mutations()


@pytest.mark.parametrize("mutation", TABLE, ids=lambda m: m.name)
def test_every_place_and_every_test_is_there(mutation: Mutation) -> None:
    text = mutated(mutation, ROOT)  # the text is there once, and something changes
    assert nearest_tests(mutation, ROOT)
    assert mutation.after in text
    compile(text, mutation.module, "exec")  # a mistake that the tests must find, not Python


def test_names_are_unique_and_readable() -> None:
    names = [mutation.name for mutation in TABLE]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", name) for name in names)
    rooms = {mutation.room for mutation in TABLE}
    assert not rooms & set(names)  # --only takes either


SOURCE = """
def sign(x):
    return 1 if x > 0 else -1


def none(x):
    return 0
"""
TEST = """
from fluidcc.room.sign import sign

def test_sign():
    assert (sign(2), sign(-2)) == (1, -1)

def test_always_fails():
    assert False
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Copy:
    """A checkout of one module and one file of tests."""
    files = {"fluidcc/__init__.py": "", "fluidcc/room/sign.py": SOURCE, "tests/room/test_sign.py": TEST}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -ra\n")
    made = object.__new__(Copy)
    made.place, made.running = tmp_path, None
    return made


PLAIN = Mutation("plain", "room.sign", "x > 0", "x < 0", ("test_sign.py::test_sign",), "table")


@pytest.mark.parametrize(
    ("changes", "result", "says"),
    [
        ({}, KILLED, "tests/room/test_sign.py::test_sign"),
        ({"after": "x >= 0"}, SURVIVED, "test_sign"),
        ({"before": "return 0", "after": "return 0\n\n\nnone(0, 0)"}, KILLED, "test_sign.py"),  # no import
        ({"before": "return"}, REFUSED, "2 times"),
        ({"before": "y > 0"}, REFUSED, "0 times"),
        ({"module": "room.sine"}, REFUSED, "none"),
        ({"tests": ("test_sine.py",)}, REFUSED, "0 files"),
        ({"tests": ("test_sign.py::test_cosine",)}, REFUSED, "no function test_cosine"),
        ({"tests": ("test_sign.py::test_always_fails",)}, REFUSED, "fails without it too"),
    ],
    ids=lambda value: ", ".join(value) if isinstance(value, dict) else None,
)
def test_a_mutation_is_killed_survives_or_is_refused(
    checkout: Copy, changes: dict[str, str], result: str, says: str
) -> None:
    file = checkout.place / "fluidcc" / "room" / "sign.py"
    found = checkout.judge(dataclasses.replace(PLAIN, **changes), 60.0, checkout.place, {})
    assert found.result == result
    assert says in found.text
    assert file.read_text() == SOURCE  # and is taken back


def test_what_has_no_end_is_killed(checkout: Copy) -> None:
    endless = dataclasses.replace(PLAIN, before="return 1 if x > 0 else -1", after="while True: pass")
    found = checkout.judge(endless, 3.0, checkout.place, {})
    assert (found.result, "3 s" in found.text) == (KILLED, True)


def test_two_modules_of_a_name_are_refused(checkout: Copy) -> None:
    other = checkout.place / "fluidcc" / "other" / "room"
    other.mkdir(parents=True)
    (other / "sign.py").write_text(SOURCE)
    with pytest.raises(Refused, match="one file"):
        mutated(PLAIN, checkout.place)


def test_the_list_and_a_name_that_is_none() -> None:
    command = [sys.executable, "-m", "mutants"]
    done = subprocess.run([*command, "--list", "--only", TABLE[0].name], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert TABLE[0].name in done.stdout
    assert done.stdout.count("\n") == 1
    done = subprocess.run([*command, "--only", "nothing"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert "nothing is no mutation" in done.stderr
