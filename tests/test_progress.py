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
from fluidcc.cli import process


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


class Clock:
    """A clock that a test moves, and with which the thread that looks for lines never looks by itself."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now

    def passes(self, seconds: float) -> None:
        """Time passes, and the thread looks once a second."""
        for _ in range(round(seconds)):
            self.now += 1
            progress._lines.say()


@pytest.fixture
def clock(monkeypatch):
    moved = Clock()
    monkeypatch.setattr(progress, "BETWEEN_LINES", 10.0)
    monkeypatch.setattr(progress, "time", moved)
    monkeypatch.setattr(progress, "_lines", progress._Lines())
    monkeypatch.setattr(progress._Lines, "_tick", lambda self: None)
    return moved


def test_elsewhere_the_outermost_says_lines(clock, capsys):
    """One in ten seconds, though nothing was reported meanwhile."""
    with progress.Bar("outer", 4, "runs") as outer:
        outer(0.25)
        with progress.Bar("inner", 10_000, "steps") as inner:
            inner(0.5, "at 1ms")
            clock.passes(35)
    assert capsys.readouterr() == (
        "",
        "outer: 1 of 4, 10 s, about 30 s left\n"
        "outer: 1 of 4, 20 s, about 60 s left\n"
        "outer: 1 of 4, 30 s, about 90 s left\n",
    )


def test_lines_go_on_from_one_short_bar_to_the_next(clock, capsys):
    for _ in range(6):
        with progress.Bar("short", 10_000, "steps") as bar:
            bar(0.5, "at 1ms")
            clock.passes(4)
    assert capsys.readouterr().err == (
        "short (at 1ms): 50%, 2 s, about 2 s left\nshort (at 1ms): 50%, 4 s, about 4 s left\n"
    )


def test_of_unknown_length_is_said_since_when(clock, capsys):
    with progress.waiting("preparing"):
        clock.passes(12)
        with progress.Bar("simulating", 3, "runs"):
            clock.passes(10)
    assert capsys.readouterr().err == "preparing: 10 s\nsimulating: 0 of 3, 8 s\n"


def test_what_is_compiled_is_said_before_that_a_command_is_at_work(clock, capsys):
    """It was "audit is at work" for a minute of compiling, as that came last; and a bar told nothing of it."""
    with progress.waiting("compiling"):
        with progress.waiting("audit is at work", general=True):
            clock.passes(12)
        with progress.Bar("finding roots", 3, "points"), progress.waiting("compiling another"):
            clock.passes(10)
    assert capsys.readouterr().err == "compiling: 10 s\nfinding roots: 0 of 3, 8 s; compiling another\n"


def test_on_a_terminal_the_bar_is_enough(clock, monkeypatch, capsys):
    console = Console(file=io.StringIO(), force_terminal=True, width=100)
    monkeypatch.setattr(progress, "Console", lambda stderr: console)
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    with progress.Bar("seen", 4, "runs") as bar:
        clock.passes(10)
        bar(0.25)  # until then there was none
        clock.passes(20)
    assert re.findall(r"^seen: .*$", capsys.readouterr().err, re.MULTILINE) == ["seen: 0 of 4, 10 s"]


def test_a_thread_looks_and_ends_when_nothing_is_under_way(monkeypatch, capsys):
    """In real time: what is left to the thread is that it looks at all, and that it ends."""
    monkeypatch.setattr(progress, "BETWEEN_LINES", 0.0)
    monkeypatch.setattr(progress, "_TICK", 0.01)
    monkeypatch.setattr(progress, "_lines", progress._Lines())
    said = ""
    with progress.Bar("long", 4, "runs"):
        while not said:
            said = capsys.readouterr().err
    assert said.startswith("long: 0 of 4, ")
    while progress._lines._ticks:
        time.sleep(0.01)


def test_a_command_that_says_nothing_is_at_work(monkeypatch, capsys):
    monkeypatch.setattr(progress, "BETWEEN_LINES", 0.0)
    monkeypatch.setattr(progress, "_TICK", 0.01)
    monkeypatch.setattr(progress, "_lines", progress._Lines())
    monkeypatch.setattr(process, "_SOON", 0.0)
    said = ""
    with process.working("reproduce"):
        while not said:
            said = capsys.readouterr().err
    for thread in threading.enumerate():
        if thread.name == "fluidcc-working":
            thread.join()
    assert said.startswith("reproduce is at work: ")


def test_durations_are_told_as_people_do():
    assert [progress._spoken(s) for s in (0.4, 100, 600, 7200)] == ["0 s", "100 s", "10 min", "2.0 h"]


def test_the_time_left_is_that_of_what_is_left():
    bar = progress.Bar("simulating", 4, "runs")
    bar(0.25)
    assert bar.line(bar._began + 30) == "simulating: 1 of 4, 30 s, about 90 s left"
