"""Bars are seen one at a time, on a terminal and in a notebook, and leave nothing behind."""

import io
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import IPython.display
import pytest
from rich.console import Console

from fluidcc import progress


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
