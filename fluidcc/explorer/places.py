"""Places of an explorer: a page, which threads answer, or a notebook, which waits.

While a hand moves on, the job that waits for a thread is replaced by the last.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

import panel as pn
from bokeh.models import CustomJS
from tornado.ioloop import IOLoop

# Of all pages. What takes long has threads of its own: else two pages' packets would stop all pages' answers.
ANSWERS = ThreadPoolExecutor(2, thread_name_prefix="fluidcc-explorer-answers")
CHARTS = ThreadPoolExecutor(1, thread_name_prefix="fluidcc-explorer-charts")
PACKETS = ThreadPoolExecutor(1, thread_name_prefix="fluidcc-explorer-packets")
_T = TypeVar("_T")
# Back and forward change the address alone, which is that of another setting.
_BACK = 'window.addEventListener("popstate", () => window.location.reload())'


class OutdatedError(Exception):
    """Nobody waits any more for what is worked out."""


class Latest(Generic[_T]):
    """Runs jobs one after another in a thread, and of those that wait only the last.

    Parameters
    ----------
    job : callable
        ``job(what)``, in a thread; gives results one by one, and is left between two of them if another job waits.
    done : callable
        ``done(what, result, error)`` of each result, in that thread; the last time with an error, if there was one.
        Never called with an `OutdatedError`.
    pool : Executor
        Whose threads they are.
    """

    def __init__(
        self,
        job: Callable[[_T], Iterable[Any]],
        done: Callable[[_T, Any, Exception | None], None],
        pool: Executor = ANSWERS,
    ) -> None:
        self._job, self._done, self._pool = job, done, pool
        self._lock = threading.Lock()
        self._waiting: list[_T] = []
        self._running = False

    def __call__(self, what: _T) -> None:
        """Run the job for this, unless another comes before it begins."""
        with self._lock:
            self._waiting = [what]
            if self._running:
                return
            self._running = True
        self._pool.submit(self._work)

    def at_once(self, what: _T) -> None:
        """Run the job here and now."""
        self._run(what)

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._running = False
                    return
                what = self._waiting.pop()
            try:
                self._run(what)
            except Exception:  # of `done`: were it to end this loop, no later move would be answered
                logging.getLogger(__name__).exception("explorer: an answer could not be shown")

    def _run(self, what: _T) -> None:
        try:
            for result in self._job(what):
                self._done(what, result, None)
                if self._waiting:
                    return
        except OutdatedError:
            return
        except Exception as error:  # a page must outlive whatever a setting does
            self._done(what, None, error)


class Place(Protocol):
    """Interface that an explorer needs of its place."""

    # Whether a chart is drawn by itself: where all else waits for it, a person asks for it.
    draws_charts: bool

    def begin(self, act: Callable[[], None]) -> None:
        """Do something once there is somebody to see it."""
        ...

    def run(self, job: Latest[_T], what: _T) -> None:
        """Have a job done."""
        ...

    def show(self, change: Callable[[], None]) -> None:
        """Change what is seen, from any thread."""
        ...

    def rested(self, seconds: float, act: Callable[[], None]) -> None:
        """Do something after a while without a move, in the thread that changes what is seen."""
        ...

    def watch(self, seconds: float, act: Callable[[], None]) -> None:
        """Act after some seconds, to look after a job that should be done by then."""
        ...

    def share(self, query: str) -> None:
        """Put a setting into the address."""
        ...


class Page:
    """A page of the server; made in its thread, while a visitor's page is built.

    Parameters
    ----------
    left : callable
        Called once nobody sees the page any more.
    """

    draws_charts = True

    def __init__(self, left: Callable[[], None]) -> None:
        self._document, self._location, self._loop = pn.state.curdoc, pn.state.location, IOLoop.current()
        pn.state.on_session_destroyed(lambda context: left())
        if self._document is not None:
            self._document.js_on_event("document_ready", CustomJS(code=_BACK))

    def begin(self, act: Callable[[], None]) -> None:
        """Act once the page is drawn: Panel sends no change made while the page is on its way to the browser."""
        pn.state.onload(act)

    def run(self, job: Latest[_T], what: _T) -> None:
        """Have a thread do it."""
        job(what)

    def show(self, change: Callable[[], None]) -> None:
        """Change the page all at once, under its document's lock.

        By way of the loop: a callback that another thread hands to the document itself, while the loop holds back the
        document's events, may be lost (`list(events)`, then `events = []`), and with it the answer.
        """
        self._loop.add_callback(partial(self._next, change))

    def _next(self, change: Callable[[], None]) -> None:
        document: Any = self._document
        if document is not None and document.session_context is not None:  # else the visitor has left
            document.add_next_tick_callback(partial(self._apply, change))

    def _apply(self, change: Callable[[], None]) -> None:
        with pn.io.hold(self._document):
            change()

    def rested(self, seconds: float, act: Callable[[], None]) -> None:
        """Act after some seconds, by the event loop's clock."""
        self._loop.call_later(seconds, partial(self._next, act))

    watch = rested

    def share(self, query: str) -> None:
        """Set the page's address; the browser keeps a page of its history for each."""
        if self._location is not None:
            self._location.search = f"?{query}"


class Cell:
    """A notebook's cell, where nothing runs in the background.

    Parameters
    ----------
    view : callable
        Gives what is seen there.
    """

    draws_charts = False

    def __init__(self, view: Callable[[], Any]) -> None:
        self._view = view

    def begin(self, act: Callable[[], None]) -> None:
        """Act at once."""
        act()

    def run(self, job: Latest[_T], what: _T) -> None:
        """Do it here and now."""
        job.at_once(what)

    def show(self, change: Callable[[], None]) -> None:
        """Change it, and tell the notebook."""
        change()
        pn.io.push_notebook(*self._view().select(pn.pane.Bokeh))

    def rested(self, seconds: float, act: Callable[[], None]) -> None:
        """Act at once: no other move can come before."""
        act()

    def watch(self, seconds: float, act: Callable[[], None]) -> None:
        """Do nothing: the cell waits for each job."""

    def share(self, query: str) -> None:
        """Do nothing: a notebook's settings have no address."""
