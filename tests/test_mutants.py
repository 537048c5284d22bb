"""The table of mutations fits the sources and the tests as they are; what they come to is ``make mutants``."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mutants import Mutation, Refused, changed_statements, drawing, mutated, mutations, nearest_tests
from mutants.__main__ import KILLED, REFUSED, SURVIVED, Copy, Stage, ordered, table
from mutants.drawing import KINDS, Drawn, Equivalent, draw, is_equivalent, places
from mutants.keeping import Kept, Outcome
from mutants.rooms import ROOMS, files_of
from tests.together import together

ROOT = Path(__file__).parents[1]
TABLE = mutations()


@together(TABLE, lambda mutation: mutation.name)
def test_every_place_and_every_test_is_there(mutation: Mutation) -> None:
    text = mutated(mutation, ROOT)  # the text is there once, and something changes
    assert nearest_tests(mutation, ROOT)
    assert mutation.after in text
    # A mistake that the tests must find, not Python; the rest of the file is as it was.
    compile(changed_statements(mutation, ROOT), mutation.module, "exec")


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


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Copy]:
    """One process for all tests that run tests, which has imported pytest once and forks."""
    place = tmp_path_factory.mktemp("server")
    made = Copy(place, place, ["pytest", "xdist.plugin", "_hypothesis_pytestplugin"], fill=False)
    yield made
    made.stop()


@pytest.fixture
def checkout(tmp_path: Path, server: Copy) -> Copy:
    """A checkout of one module and one file of tests."""
    files = {"fluidcc/__init__.py": "", "fluidcc/room/sign.py": SOURCE, "tests/room/test_sign.py": TEST}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -p no:zarr -p no:anyio\n")
    made = Copy(tmp_path, tmp_path.parent / f"{tmp_path.name}-keep", fill=False)
    made.running = server._server()
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
    found = checkout.judge(dataclasses.replace(PLAIN, **changes), 60.0, {})
    assert found.result == result
    assert says in found.text
    assert file.read_text() == SOURCE  # and is taken back


def test_what_has_no_end_is_killed(checkout: Copy) -> None:
    endless = dataclasses.replace(
        PLAIN, before="return 1 if x > 0 else -1", after="while True: __import__('time').sleep(9)"
    )
    found = checkout.judge(endless, 1.5, {})
    assert (found.result, "1.5 s" in found.text) == (KILLED, True)


SLOW = """
import os
from concurrent.futures import ThreadPoolExecutor

def test_slow():
    while True:
        pass

def test_waits():
    with ThreadPoolExecutor(1) as pool:
        pool.submit(test_slow)

def test_quick():
    assert os.environ["NUMBA_DISABLE_JIT"] == "1"

def test_fails():
    assert False
"""


def test_what_is_slow_without_machine_code_is_ended_and_the_rest_goes_on(checkout: Copy) -> None:
    name = "tests/room/test_slow.py"
    (checkout.place / name).write_text(SLOW)
    assert set(checkout.seconds_plain(name, each=0.3)) == {f"{name}::test_quick"}
    done = checkout.pytest(Stage([name], only=[f"{name}::test_slow"]), 60.0, each=0.3)
    assert (done.failed, done.endless, done.passed) == (f"{name}::test_slow", True, False)
    others = tuple(f"{name}::test_{each}" for each in ("slow", "waits", "fails"))
    done = checkout.pytest(Stage([name], True, without=others), 60.0)
    assert done.passed


def test_copies_time_different_files_of_a_room_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for file in ("a", "b"):
        (tmp_path / f"test_{file}.py").write_text("")
    monkeypatch.setitem(ROOMS, "room", ROOMS["packet"]._replace(tests=("test_*.py",)))
    both, timed = threading.Barrier(2, timeout=20.0), []

    def seconds_plain(file: str) -> dict[str, float]:
        both.wait()  # breaks where one copy waits for the other
        timed.append(file)
        return {f"{file}::test_quick": 0.1, f"{file}::test_slow": 9.0}

    kept, copies = Kept(tmp_path / "keep", tmp_path), [Copy(tmp_path, tmp_path, fill=False) for _ in range(2)]
    for copy in copies:
        copy.seconds_plain = seconds_plain  # type: ignore[method-assign]
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda copy: copy.quick_tests("room", kept), copies))
    assert found == [["test_a.py::test_quick", "test_b.py::test_quick"]] * 2
    assert sorted(timed) == ["test_a.py", "test_b.py"]  # each once


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


# -- drawn mistakes ------------------------------------------------------------------------------------------

WHOLE = "label.count_up & ~(change < 1) | label.count_down"
DRAWN_FROM = '''
"""x < 0 in a docstring."""

LIMIT = 1


def step(old_rate, new_rate, gain: float = 1.0, line: int = 0):
    """x + 1 is not code."""
    if new_rate < 1 and gain == 2:
        raise ValueError(f"{old_rate + 1} < {LIMIT}")
    change = old_rate - gain * new_rate
    label = f"{change + 1}"
    line += label.count_up & ~(change < 1) | label.count_down
    return -max(change, 1) / line, label
'''


def test_each_kind_of_mistake_is_listed_and_nothing_that_is_text(tmp_path: Path) -> None:
    (tmp_path / "law.py").write_text(DRAWN_FROM)
    found = list(places(tmp_path, "room", "law.py", 1))
    changes = {(each.kind, each.before, each.after) for each in found}
    assert changes >= {
        ("sign", "old_rate - gain * new_rate", "old_rate + gain * new_rate"),
        ("sign", "-max(change, 1)", "max(change, 1)"),
        ("boundary", "new_rate < 1", "new_rate <= 1"),
        ("comparison", "new_rate < 1", "new_rate > 1"),
        ("comparison", "gain == 2", "gain != 2"),
        ("dropped", "old_rate - gain * new_rate", "old_rate"),
        ("dropped", "gain * new_rate", "(gain)"),
        ("dropped", "max(change, 1)", "(1)"),
        ("dropped", "new_rate < 1 and gain == 2", "gain == 2"),
        ("stale", "old_rate", "new_rate"),
        ("factor", "1", "2"),
        ("factor", "2", "(2 * 2)"),
        ("swapped", "max(change, 1)", "min(change, 1)"),
        ("swapped", "old_rate - gain * new_rate", "((gain * new_rate) - old_rate)"),
        ("logic", "new_rate < 1 and gain == 2", "(new_rate < 1 or gain == 2)"),
        ("logic", "label.count_up & ~(change < 1)", "(label.count_up | ~(change < 1))"),
        ("logic", "~(change < 1)", "(change < 1)"),
        ("stale", "label.count_up", "label.count_down"),
        ("sign", f"line += {WHOLE}", f"line -= {WHOLE}"),
        ("dropped", f"line += {WHOLE}", "pass"),
    }
    assert {each.kind for each in found} == set(KINDS)
    assert {each.line for each in found} == {9, 11, 13, 14}  # no docstring, message, annotation, label
    for each in found:
        text = each.text(tmp_path)
        assert text != DRAWN_FROM
        compile(text, "law.py", "exec")


def test_the_same_seed_draws_the_same_and_an_edit_elsewhere_changes_no_rank(tmp_path: Path) -> None:
    (tmp_path / "law.py").write_text(DRAWN_FROM)
    first = list(places(tmp_path, "room", "law.py", 1))
    assert first == list(places(tmp_path, "room", "law.py", 1))
    assert not {each.rank for each in first} & {each.rank for each in places(tmp_path, "room", "law.py", 2)}
    (tmp_path / "law.py").write_text("def other(x):\n    return x + 1\n" + DRAWN_FROM)
    assert {each.rank for each in first} < {each.rank for each in places(tmp_path, "room", "law.py", 1)}


def test_a_room_gets_its_share_and_fewer_are_the_first_of_more() -> None:
    drawn = draw(ROOT, 20 * len(ROOMS), 1, ["collectives"])
    assert (len(drawn), {each.room for each in drawn}) == (20, {"collectives"})
    assert drawn[:10] == draw(ROOT, 10 * len(ROOMS), 1, ["collectives"])
    assert {each.kind for each in drawn} == set(KINDS)
    assert len({each.name for each in drawn}) == 20


def test_what_is_proved_equivalent_is_not_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "law.py").write_text(DRAWN_FROM)
    known = Equivalent("law", "new_rate<1", "new_rate <= 1", "a reason")
    monkeypatch.setattr(drawing, "equivalent", lambda: [known])
    found = [each for each in places(tmp_path, "room", "law.py", 1) if is_equivalent(each)]
    assert [each.kind for each in found] == ["boundary"]


def test_every_room_has_sources_and_tests_and_no_source_is_in_two() -> None:
    assert len(ROOMS) == 12
    sources = [file for room in ROOMS.values() for file in files_of(ROOT, room.sources, "*.py", room.without)]
    assert len(set(sources)) == len(sources) > 200
    for room in ROOMS.values():
        for place in (*room.sources, *room.tests):
            assert list(ROOT.glob(place)), place


def test_tests_that_name_the_mistaken_function_come_first(tmp_path: Path) -> None:
    (tmp_path / "law.py").write_text(DRAWN_FROM)
    texts = {"a.py": "import law\n" * 99, "b.py": "from room.law import step\n", "c.py": "nothing\n"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    mistake = next(places(tmp_path, "room", "law.py", 1))
    assert ordered(mistake, tmp_path, list(texts), {})[0] == "b.py"
    assert ordered(mistake, tmp_path, list(texts), {"b.py::test": 99.0})[0] != "b.py"  # too dear


def test_an_outcome_is_kept_until_a_file_that_it_rests_on_changes(tmp_path: Path) -> None:
    files = {"law.py": "1", "test_a.py": "2", "test_b.py": "3"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    tests, keep = ["test_a.py", "test_b.py"], tmp_path / "keep"
    killed, survived = Outcome(KILLED, "test_a.py::test", 1.0), Outcome(SURVIVED, "", 1.0)
    kept = Kept(keep, tmp_path)
    kept.keep("one", killed, False, ["law.py", "test_a.py"])
    kept.keep("two", survived, True, ["law.py", *tests])
    with (keep / "outcomes.jsonl").open("a") as file:
        file.write('{"key": "thr')  # interrupted
    found = Kept(keep, tmp_path)
    assert found.find("one", "law.py", tests) == killed
    assert found.find("two", "law.py", tests) == survived
    assert found.find("two", "law.py", [*tests, "test_c.py"]) is None  # a new file of tests may kill it
    (tmp_path / "test_b.py").write_text("4")
    again = Kept(keep, tmp_path)
    assert again.find("one", "law.py", tests) == killed  # by another file
    assert again.find("two", "law.py", tests) is None
    (tmp_path / "law.py").write_text("5")
    assert Kept(keep, tmp_path).find("one", "law.py", tests) is None


@pytest.mark.slow
def test_scores_are_by_room_and_survivors_show_their_place_and_change() -> None:
    drawn = [
        Drawn(room, f"{room}.py", 7, 0, 1, "a < b", "a <= b", "boundary", "f", f"{room}{k}{'0' * 8}")
        for room, number in (("one", 3), ("two", 1))
        for k in range(number)
    ]
    results = [KILLED, SURVIVED, REFUSED, KILLED]
    outcomes = {each.name: Outcome(result, "", 1.0) for each, result in zip(drawn, results, strict=True)}
    said = "\n".join(table(drawn, outcomes))
    assert re.search(r"^one +1 of 3 .*\(33%\); 1 could not be judged$", said, re.MULTILINE)
    assert re.search(r"^two +1 of 1 .*\(100%\); 0 could not be judged$", said, re.MULTILINE)
    assert re.search(r"^2 of 4 .*\(50%\); 1 could not be judged$", said, re.MULTILINE)
    assert said.splitlines()[-1].endswith("one.py:7  a < b  ->  a <= b")
