"""Bars are seen one at a time, on a terminal and in a notebook, and leave nothing behind; lines elsewhere."""

import io
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import IPython.display
import pytest
from rich.console import Console

from fluidcc import progress
from fluidcc.cli import working


@pytest.fixture
def notebook(monkeypatch):
    """What is displayed in a notebook, one list of drawings for each display."""
    displays = []

    def display(first, *, display_id):
        assert display_id
        drawn = [first]
        displays.append(drawn)
        return SimpleNamespace(update=lambda what, raw=False: drawn.append(what))

    monkeypatch.setattr(IPython.display, "display", display)
    monkeypatch.setattr(progress, "Console", lambda stderr: Console(file=io.StringIO(), force_jupyter=True))
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr(progress, "BETWEEN_DRAWINGS", 0.0)
    return displays


def test_of_nested_bars_one_is_seen(notebook):
    with progress.Bar("outer", 4, "runs") as outer:
        outer(0.25)
        with progress.Bar("inner", 10, "steps") as inner:
            inner(0.5)
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda _: _use(), range(2)))
        outer(0.5)
    assert len(notebook) == 1
    assert [task.description for task in notebook[0][0].tasks] == ["outer"]
    assert notebook[0][0].tasks[0].completed == 2
    assert notebook[0][-1] == {"text/plain": ""}  # nothing is left


def _use():
    with progress.Bar("thread", 2, "runs") as bar:
        bar(0.5)


def test_the_next_bar_is_seen_after_one_that_failed(notebook):
    def fails():
        with progress.Bar("first", 2, "runs") as bar:
            bar(0.5)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    with progress.Bar("second", 2, "runs") as bar:
        bar(0.5)
    assert [drawn[0].tasks[0].description for drawn in notebook] == ["first", "second"]


def test_a_terminal_has_one_bar(monkeypatch):
    written = io.StringIO()
    console = Console(file=written, force_terminal=True, width=100)
    monkeypatch.setattr(progress, "Console", lambda stderr: console)
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    with progress.Bar("outer", 4, "runs") as outer:
        outer(0.25)
        _use()
    assert "outer" in written.getvalue()
    assert "thread" not in written.getvalue()


def test_nothing_is_written_where_nobody_watches(capsys):
    with progress.Bar("quiet", 2, "runs") as bar:
        bar(0.5)
    assert capsys.readouterr() == ("", "")


@pytest.fixture
def impatient(monkeypatch):
    """Lines ten times a second."""
    monkeypatch.setattr(progress, "BETWEEN_LINES", 0.1)
    monkeypatch.setattr(progress, "_TICK", 0.02)
    monkeypatch.setattr(progress, "_lines", progress._Lines())


def test_elsewhere_the_outermost_says_lines(impatient, capsys):
    with progress.Bar("outer", 4, "runs") as outer:
        outer(0.25)
        with progress.Bar("inner", 10_000, "steps") as inner:
            inner(0.5, "at 1ms")
            time.sleep(0.35)
    out, err = capsys.readouterr()
    assert out == ""
    assert 2 <= len(err.splitlines()) <= 4  # one in each tenth of a second, though nothing was reported meanwhile
    assert all(re.fullmatch(r"outer: 1 of 4, \d s, about \d s left", line) for line in err.splitlines())


def test_lines_go_on_from_one_short_bar_to_the_next(impatient, capsys):
    for _ in range(6):
        with progress.Bar("short", 10_000, "steps") as bar:
            bar(0.5, "at 1ms")
            time.sleep(0.05)
    lines = capsys.readouterr().err.splitlines()
    assert 2 <= len(lines) <= 3
    assert lines[0].startswith("short (at 1ms): 50%, 0 s")


def test_of_unknown_length_is_said_since_when(impatient, capsys):
    with progress.waiting("preparing"):
        time.sleep(0.15)
        with progress.Bar("simulating", 3, "runs"):
            time.sleep(0.1)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "preparing: 0 s"
    assert lines[-1] == "simulating: 0 of 3, 0 s"


def test_on_a_terminal_the_bar_is_enough(impatient, monkeypatch, capsys):
    console = Console(file=io.StringIO(), force_terminal=True, width=100)
    monkeypatch.setattr(progress, "Console", lambda stderr: console)
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    with progress.Bar("seen", 4, "runs") as bar:
        time.sleep(0.2)
        bar(0.25)  # until then there was none
        time.sleep(0.3)
    # A busy machine may say it twice before there is a bar; what says 1 of 4 comes after it.
    assert set(re.findall(r"^seen: (\d) of 4", capsys.readouterr().err, re.MULTILINE)) == {"0"}


def test_a_command_that_says_nothing_is_at_work(impatient, monkeypatch, capsys):
    monkeypatch.setattr(working, "_SOON", 0.0)
    with working.working("reproduce"):
        time.sleep(0.3)
    for thread in threading.enumerate():
        if thread.name == "fluidcc-working":
            thread.join()
    assert re.match(r"reproduce is at work: 0 s\n", capsys.readouterr().err)


def test_durations_are_told_as_people_do():
    assert [progress._spoken(s) for s in (0.4, 100, 600, 7200)] == ["0 s", "100 s", "10 min", "2.0 h"]


def test_the_time_left_is_that_of_what_is_left():
    bar = progress.Bar("simulating", 4, "runs")
    bar(0.25)
    assert bar.line(bar._began + 30) == "simulating: 1 of 4, 30 s, about 90 s left"
