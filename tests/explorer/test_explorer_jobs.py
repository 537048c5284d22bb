"""Every move ends in an answer or in words, whatever a job does and however threads meet."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.errors import InputError
from fluidcc.explorer.places import Latest, OutdatedError
from fluidcc.explorer.settings import Setting


@pytest.fixture(autouse=True, scope="module")
def loaded() -> None:
    """Panel and what needs it, which take seconds to import: not where tests are only collected."""
    global answers, app, places, plots
    pytest.importorskip("panel", reason="needs panel: pip install 'fluidcc[explore]'")
    from fluidcc.explorer import answers, app, places, plots


def until(true: Callable[[], bool]) -> None:
    """Wait for something, ten seconds at most."""
    deadline = time.time() + 10
    while not true():
        assert time.time() < deadline
        time.sleep(0.005)


# -- the last of many jobs ---------------------------------------------------------------------------------------------


def test_only_the_last_of_many_moves_is_answered() -> None:
    seen: list[int] = []
    first = threading.Event()

    def job(what: int) -> Iterator[int]:
        first.wait(10)
        yield what

    latest = Latest(job, lambda what, result, failed: seen.append(result))
    for move in range(50):
        latest(move)
    first.set()
    until(lambda: seen[-1:] == [49])
    assert len(seen) <= 2  # that which had begun, and the last


def test_the_rest_of_an_answer_is_dropped_if_a_newer_move_waits() -> None:
    seen: list[tuple[int, str]] = []
    asked = threading.Event()

    def job(what: int) -> Iterator[str]:
        asked.wait(10)
        yield "runs"
        yield "roots"

    latest = Latest(job, lambda what, result, failed: seen.append((what, result)))
    latest(1)
    until(lambda: not latest._waiting)  # it has begun
    latest(2)
    asked.set()
    until(lambda: seen[-1:] == [(2, "roots")])
    assert seen == [(1, "runs"), (2, "runs"), (2, "roots")]


@pytest.mark.parametrize("where", ["job", "done"])
def test_what_fails_does_not_end_the_others(where: str) -> None:
    seen: list[tuple[int, str]] = []

    def job(what: int) -> Iterator[float]:
        yield 1 / what if where == "job" else what

    def done(what: int, result: Any, failed: Exception | None) -> None:
        seen.append((what, type(failed).__name__))
        if where == "done" and not what:
            raise RuntimeError("cannot be shown")

    latest = Latest(job, done)
    for what in (0, 1):
        latest(what)
        until(lambda what=what: seen[-1:] != [] and seen[-1][0] == what)
    assert seen[-1] == (1, "NoneType")
    assert seen[0] == (0, "ZeroDivisionError" if where == "job" else "NoneType")


def test_nobody_is_told_of_what_nobody_waits_for() -> None:
    def job(what: int) -> Iterator[int]:
        raise OutdatedError
        yield what

    Latest(job, lambda *told: pytest.fail(str(told))).at_once(1)


# -- from a thread to the page -----------------------------------------------------------------------------------------


class Meeting(list[Any]):
    """Events that are held back, and a thread that comes just after they have been copied."""

    comes: Callable[[], None]

    def __iter__(self) -> Iterator[Any]:
        yield from self[:]
        thread = threading.Thread(target=self.comes)
        thread.start()
        thread.join()


@pytest.mark.parametrize("by_the_loop", [True, False])
def test_an_answer_is_not_lost_as_events_are_let_go(by_the_loop: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Panel copies events that it has held back and then starts anew; what a thread adds in between is lost.

    So it is where a thread hands its callback to the document, and not by way of the loop.
    """
    from bokeh.core.types import ID
    from bokeh.document import Document
    from bokeh.document.events import SessionCallbackAdded
    from bokeh.server.callbacks import NextTickCallback
    from panel.io.document import unlocked
    from panel.io.state import set_curdoc, state
    from tornado.ioloop import IOLoop

    loop, document, shown = IOLoop(make_current=False), Document(), []

    def called(event: Any) -> None:
        if isinstance(event, SessionCallbackAdded):
            loop.add_callback(event.callback.callback)

    document.callbacks.on_change(called)
    with set_curdoc(document):
        page = places.Page(lambda: None)
        monkeypatch.setitem(state._loaded, document, True)
        state._thread_id_[document] = threading.get_ident()
    page._loop = loop
    monkeypatch.setattr(page, "_apply", lambda change: change())  # holds back what would go to the browser

    def answer() -> None:
        if by_the_loop:
            page.show(lambda: shown.append("answer"))
        else:
            document.add_next_tick_callback(lambda: shown.append("answer"))

    def moved() -> None:
        """A move: what it changes is held back, and let go."""
        with set_curdoc(document), unlocked():
            held = Meeting([SessionCallbackAdded(document, NextTickCallback(lambda: None, callback_id=ID("move")))])
            held.comes = answer
            document.callbacks._held_events = held

    session = SimpleNamespace(session=SimpleNamespace(_subscribed_connections=[]))
    document._session_context = lambda: session  # type: ignore[assignment]
    loop.add_callback(moved)
    loop.call_later(0.5, loop.stop)
    loop.start()
    loop.close()
    assert shown == (["answer"] if by_the_loop else [])


class Still:
    """A place where nothing happens but by the test's hand."""

    draws_charts = True

    def __init__(self, left: Callable[[], None]) -> None:
        self.left, self.jobs, self.watching = left, [], []
        self.rests: list[Callable[[], None]] = []

    def begin(self, act: Callable[[], None]) -> None:
        act()

    def run(self, job: Any, what: Any) -> None:
        self.jobs.append((job, what))

    def show(self, change: Callable[[], None]) -> None:
        change()

    def rested(self, seconds: float, act: Callable[[], None]) -> None:
        self.rests.append(act)

    def watch(self, seconds: float, act: Callable[[], None]) -> None:
        self.watching.append(act)

    def share(self, query: str) -> None:
        self.query = query


@pytest.fixture
def explorer(monkeypatch: pytest.MonkeyPatch) -> app.Explorer:
    monkeypatch.setattr(app, "Page", Still)
    monkeypatch.setattr(answers, "_seen", set())  # kinds that tests before have had compiled
    return app.Explorer(Setting())


def status(explorer: app.Explorer) -> str:
    return str(explorer._board.status.object)


def test_a_page_that_gets_no_answer_says_so(explorer: app.Explorer, monkeypatch: pytest.MonkeyPatch) -> None:
    place: Any = explorer._place
    place.watching.pop()()
    assert "compiling" in status(explorer)
    assert "(0 s)" in status(explorer)
    began = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: began + 100)
    place.watching.pop()()
    assert "no answer; reload the page" in status(explorer)
    assert 'data-serial="0"' in status(explorer)  # the move is not answered
    explorer._refuse("enough")
    place.watching.pop()()
    assert place.watching == []  # nobody waits any more
    assert "refused" in status(explorer)


def test_a_job_that_breaks_is_said_on_the_page(explorer: app.Explorer, monkeypatch: pytest.MonkeyPatch) -> None:
    place: Any = explorer._place
    job, what = place.jobs[-1]

    def broken(setting: Setting) -> Iterator[Any]:
        raise FloatingPointError("out of paper")
        yield

    monkeypatch.setattr(app, "answers", broken)
    job.at_once(what)
    assert "FloatingPointError: out of paper" in explorer._board.error.object
    assert 'data-serial="1"' in status(explorer)


def test_a_picture_that_breaks_is_said_on_the_page(explorer: app.Explorer, monkeypatch: pytest.MonkeyPatch) -> None:
    place: Any = explorer._place
    monkeypatch.setattr(explorer, "_draw", lambda **parts: np.zeros(1)[3])
    job, what = place.jobs[-1]
    job.at_once(what)
    assert "IndexError" in explorer._board.error.object
    assert "refused" in status(explorer)


def test_a_move_that_breaks_is_said_on_the_page(explorer: app.Explorer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Setting, "moved", lambda self, name, text: 1 // 0)
    explorer._move("kmin", "6KB")
    assert "ZeroDivisionError" in explorer._board.error.object
    monkeypatch.setattr(Setting, "switched", lambda self, **names: 1 // 0)
    explorer._switch(scheme="hpcc")
    assert "ZeroDivisionError" in explorer._board.error.object
    assert "refused" in status(explorer)


def test_an_answer_that_comes_after_a_refusal_is_drawn(explorer: app.Explorer) -> None:
    """What was refused in the meantime stays said, and its number stays the last."""
    place: Any = explorer._place
    explorer._move("kmin", "five")
    job, what = place.jobs[-1]
    job.at_once(what)
    assert explorer._now is not None
    assert "fluid-queue_mean" in explorer._board.numbers.object
    assert "cannot read" in explorer._board.error.object
    assert 'data-serial="2"' in status(explorer)
    place.rests.pop()()  # the chart is asked for all the same
    assert place.jobs[-1][0] is explorer._charting


def test_a_refused_choice_goes_back(explorer: app.Explorer, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Setting, **names: str) -> Setting:
        raise InputError("scheme: not today")

    monkeypatch.setattr(Setting, "switched", refuse)
    explorer._board.scheme.value = "hpcc"
    assert explorer._board.scheme.value == "dcqcn"
    assert "not today" in explorer._board.error.object


@pytest.mark.parametrize("scheme", ["none", pytest.param("hpcc-multiq", marks=pytest.mark.slow)])
def test_a_scheme_without_a_chart_is_shown(scheme: str) -> None:
    made = app.Explorer(Setting.of(fc.incast(4, scheme=scheme)), threaded=False)
    assert "fluid-queue_mean" in made._board.numbers.object
    made._board.chart_button.clicks += 1
    assert f"no analysis of an equilibrium for {scheme}" in made._board.why.object
    assert made._board.error.object == '<div id="error"></div>'


def test_packets_end_as_the_visitor_leaves(explorer: app.Explorer) -> None:
    place: Any = explorer._place
    explorer._packets.ask(explorer.setting)
    job, what = place.jobs[-1]
    assert explorer._board.progress.visible
    place.left()
    job.at_once(what)
    assert explorer._packets.found is None
    assert not explorer._board.progress.visible


# -- addresses --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("search", "flows", "kept", "said"),
    [
        ("?flows=16&kept=bogus%3D1", "16", 0, "kept: bogus: there is no such value"),
        ("?flows=0&kept=flows%3D4", "8", 1, "flows: 0 is too small"),
        ("?flows=16&kept=flows%3D4", "16", 1, ""),
        ("?scheme=hpcc-rx", "8", 0, "scheme: &#x27;hpcc-rx&#x27; has no fluid"),
    ],
)
def test_a_bad_part_of_an_address_leaves_the_other(
    search: str, flows: str, kept: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "Page", Still)
    made: list[app.Explorer] = []
    build = app.Explorer

    def make(*given: Any, **options: Any) -> app.Explorer:
        made.append(build(*given, **options))
        return made[0]

    monkeypatch.setattr(app, "Explorer", make)
    monkeypatch.setattr(app.pn.state, "_location", SimpleNamespace(search=search))
    app.page()
    place: Any = made[0]._place
    assert made[0].setting.text("flows") == flows
    assert sum(job is made[0]._beside._answering for job, _ in place.jobs) == kept
    assert said in made[0]._board.error.object
    assert bool(said) == ("class" in made[0]._board.error.object)


# -- lines as pixels ---------------------------------------------------------------------------------------------------


def test_a_thinned_line_covers_the_same_pixels() -> None:
    """In each column of pixels the least and the largest value are those of all samples; short lines stay whole."""
    values = np.random.default_rng(3).normal(size=100_000)
    seen = plots.extremes(values)
    assert seen.size <= 2 * plots.COLUMNS + 2
    assert {0, values.size - 1} <= set(seen)
    edges = [*range(0, values.size, values.size // plots.COLUMNS + 1), values.size]
    for begin, end in pairwise(edges):
        inside = values[seen[(seen >= begin) & (seen < end)]]
        assert (inside.min(), inside.max()) == (values[begin:end].min(), values[begin:end].max())
    assert np.array_equal(plots.extremes(values[:1000]), np.arange(1000))


@pytest.mark.parametrize(("value", "top"), [(0, 1), (np.nan, 1), (1, 1), (1.01, 1.2), (99, 100), (240e3, 250e3)])
def test_axes_end_at_round_values(value: float, top: float) -> None:
    assert plots.rounded_up(value) == pytest.approx(top)


@pytest.mark.slow
def test_a_notebook_draws_a_chart_when_asked() -> None:
    """Nothing moves there until it is there, so it comes by its button alone, and goes as the setting moves on."""
    made = app.Explorer(Setting.of(fc.incast(2, scheme="dcqcn")), threaded=False)
    board = made._board
    assert board.chart_button.visible
    assert made._chart is None
    assert "if you ask" in board.why.object
    board.chart_button.clicks += 1
    assert made._chart is not None
    assert "if you ask" not in board.why.object
    made._move("kmin", "7KB")
    assert made._chart is None
    assert "if you ask" in board.why.object


# -- back to what was answered -----------------------------------------------------------------------------------------


def answer(explorer: app.Explorer) -> None:
    """Have the last job done."""
    place: Any = explorer._place
    job, what = place.jobs[-1]
    job.at_once(what)


def rest(explorer: app.Explorer) -> None:
    """The hand rests: what is to be done then is."""
    place: Any = explorer._place
    while place.rests:
        place.rests.pop()()


@pytest.fixture
def answered(explorer: app.Explorer) -> app.Explorer:
    answer(explorer)
    rest(explorer)
    return explorer


def test_a_value_that_no_answer_takes_goes_back(answered: app.Explorer) -> None:
    """Controls, address and Python are of the picture; the next move is answered."""
    before, place = answered._board.numbers.object, answered._place
    answered._move("until", "10s")
    assert place.query == Setting().query()  # type: ignore[attr-defined]
    assert 'until="40ms"' in answered._program()  # what one sees, until there is another answer
    answer(answered)
    assert "too many to wait for" in answered._board.error.object
    assert "refused" in status(answered)
    assert answered.setting == Setting()
    assert answered._board.front.texts["until"] == "40ms"
    assert answered._board.numbers.object == before
    rest(answered)
    assert place.jobs[-1][0] is answered._charting  # type: ignore[attr-defined]
    answered._move("kmin", "20KB")
    answer(answered)
    assert answered._board.error.object == '<div id="error"></div>'
    assert answered.setting == Setting().moved("kmin", "20KB")
    rest(answered)
    assert place.query == answered.setting.query()  # type: ignore[attr-defined]


def test_a_choice_that_no_answer_takes_goes_back(answered: app.Explorer, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(setting: Setting) -> Iterator[Any]:
        raise InputError("scheme: not today")
        yield

    answered._switch(scheme="hpcc")
    assert "w_ai" in answered._board.front.texts
    monkeypatch.setattr(app, "answers", refuse)
    answer(answered)
    assert answered._board.scheme.value == "dcqcn"
    assert "kmin" in answered._board.front.texts
    assert "not today" in answered._board.error.object


def test_a_refusal_that_comes_late_moves_nothing_back(answered: app.Explorer) -> None:
    """What was asked since may be answered."""
    place: Any = answered._place
    answered._move("until", "10s")
    job, what = place.jobs[-1]
    answered._move("until", "20ms")
    job.at_once(what)
    assert answered.setting == Setting().moved("until", "20ms")


def test_an_address_that_no_answer_takes_shows_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "Page", Still)
    explorer = app.Explorer(Setting().moved("until", "10s"))
    answer(explorer)
    assert explorer.setting == Setting()
    answer(explorer)
    assert "fluid-queue_mean" in explorer._board.numbers.object
    assert "too many to wait for" in explorer._board.error.object


def test_what_is_kept_stays_as_another_is_refused(answered: app.Explorer) -> None:
    answered._beside.keep(answered.setting, answered._now)
    assert answered._beside.kept is not None
    answered._move("until", "10s")
    answered._beside.keep(answered.setting, answered._now)
    answer(answered)
    assert "kept: until" in answered._board.error.object
    assert answered._beside.kept.setting == Setting()
    answered._share()
    assert "10s" not in answered._place.query  # type: ignore[attr-defined]
