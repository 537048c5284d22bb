"""The last of many jobs, in a thread: while a hand moves on, what waits is replaced."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any, Generic, TypeVar

# Of all pages. What takes long has threads of its own: else two pages' packets would stop all pages' answers.
ANSWERS = ThreadPoolExecutor(2, thread_name_prefix="fluidcc-explorer-answers")
CHARTS = ThreadPoolExecutor(1, thread_name_prefix="fluidcc-explorer-charts")
PACKETS = ThreadPoolExecutor(1, thread_name_prefix="fluidcc-explorer-packets")
_T = TypeVar("_T")


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
