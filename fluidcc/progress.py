"""Progress on standard error of whatever takes longer than two seconds: a bar where somebody watches, else lines."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

PATIENCE = 2.0  # s
BETWEEN_LINES = 10.0  # s
BETWEEN_DRAWINGS = 0.2  # s, in a notebook
_TICK = 1.0  # s between looks whether a line is due
_LULL = 5  # looks at nothing under way, after which the next work is not a part of what was there before
_COUNTABLE = 1000  # units; more are shown as per cent
_TELLING = 0.01  # share done from which on the time left is more than a guess
_SHOWN = threading.Lock()  # by the bar that is seen: two at once would draw over each other

# Called by every bar that is, in work that may be stopped from elsewhere: raises then.
watch: ContextVar[Callable[[], None] | None] = ContextVar("watch", default=None)


class _Lines:
    """Reporter of all work under way without a visible bar: one line in ten seconds, by the outermost `Bar`.

    A thread looks for it, because a part may report nothing for long; it ends when nothing is under way.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: list[Bar | _Wait] = []
        self._ticks = False
        self._said = 0.0

    def enter(self, one: Bar | _Wait) -> None:
        with self._lock:
            self._open.append(one)
            if not self._ticks:
                self._ticks, self._said = True, time.perf_counter()
                threading.Thread(target=self._tick, daemon=True, name="fluidcc-progress").start()

    def leave(self, one: Bar | _Wait) -> None:
        with self._lock:
            self._open.remove(one)

    def say(self) -> None:
        """Say a line if one is due."""
        now = time.perf_counter()
        with self._lock:
            if _SHOWN.locked():
                self._said = now
            if not self._open or _SHOWN.locked() or now - self._said < BETWEEN_LINES:
                return
            self._said = now
            line = self._line(now)
        with contextlib.suppress(OSError, ValueError):  # nobody reads it any more
            if sys.stderr is not None:
                sys.stderr.write(f"{line}\n")
                sys.stderr.flush()

    def _line(self, now: float) -> str:
        """The outermost bar with what it waits for now, or else the last wait, before what is said for want of any."""
        first = next((k for k, one in enumerate(self._open) if isinstance(one, Bar)), None)
        waits = [one for one in self._open[first or 0 :] if isinstance(one, _Wait)]
        if first is not None:
            inner = next((f"; {one.text}" for one in reversed(waits) if not one.general), "")
            return self._open[first].line(now) + inner
        return next((one for one in reversed(waits) if not one.general), waits[-1]).line(now)

    def _tick(self) -> None:
        lull = 0
        while True:
            time.sleep(_TICK)
            self.say()
            with self._lock:
                lull = 0 if self._open else lull + 1
                if lull == _LULL:
                    self._ticks = False
                    return


_lines = _Lines()


class Bar:
    """Context manager; call it with the share that is done.

    The bar, with the time left, appears once the work is expected to take longer than `PATIENCE`, if standard error is
    a terminal or a notebook, and no other bar is seen at that time. Where none is seen, lines say so in its place, one
    in `BETWEEN_LINES`.

    Parameters
    ----------
    label : str
    total : int
        Number of units, shown with their rate.
    unit : str
        Empty: there is no rate to show.
    """

    def __init__(self, label: str, total: int, unit: str) -> None:
        self._label, self._total, self._unit = label, total, unit
        self._where, self._share = label, 0.0
        self._ended, self._began = False, time.perf_counter()
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._drawn = 0.0
        self._cell: Any = None  # of a notebook: where the bar is drawn
        self._console = Console(stderr=True)
        self._watched = self._console.is_jupyter or self._console.is_terminal

    def __enter__(self) -> Bar:
        if not self._console.is_jupyter:
            _lines.enter(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended = True
        if not self._console.is_jupyter:
            _lines.leave(self)
        if self._bar is not None:
            try:
                if self._cell is None:
                    self._bar.stop()
                else:
                    self._cell.update({"text/plain": ""}, raw=True)
            finally:
                _SHOWN.release()

    def __call__(self, share: float, where: str = "") -> None:
        """Report the share done, 0 to 1, and in words where the work is; any thread may, also when it is over."""
        if (look := watch.get()) is not None:
            look()
        if self._ended:
            return
        self._where, self._share = f"{self._label} ({where})" if where else self._label, share
        now = time.perf_counter()
        elapsed = now - self._began
        if self._bar is None:
            if share < 1:
                _lines.say()
            if not self._watched or share >= 1 or elapsed / max(share, 1e-9) < PATIENCE:
                return
            if not _SHOWN.acquire(blocking=False):
                return
            self._show()
        if self._bar is None or self._task is None:  # another thread is about to show it
            return
        done = round(share * self._total)
        rate = f"{done / max(elapsed, 1e-9):,.3g} {self._unit}/s" if self._unit else ""
        self._bar.update(self._task, completed=done, rate=rate, description=self._where)
        if self._cell is not None and now - self._drawn >= BETWEEN_DRAWINGS:
            self._drawn = now
            self._cell.update(self._bar)

    def line(self, now: float) -> str:
        """Format what is done, how long it took, and how long the rest takes at that pace."""
        share, elapsed = min(self._share, 1.0), now - self._began
        done = f"{round(share * self._total)} of {self._total}" if self._total <= _COUNTABLE else f"{share:.0%}"
        left = f", about {_spoken(elapsed * (1 - share) / share)} left" if share > _TELLING else ""
        return f"{self._where}: {done}, {_spoken(elapsed)}{left}"

    def _show(self) -> None:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
        )
        self._bar = Progress(*columns, console=self._console, transient=True)
        self._task = self._bar.add_task(self._label, total=self._total, rate="")
        if self._console.is_jupyter:
            # Its own widget takes over what a cell prints, from a second thread: the two mix up whose output is whose.
            from IPython.display import display

            self._cell = display(self._bar, display_id=True)
        else:
            self._bar.start()


class _Wait:
    """A wait of unknown length."""

    def __init__(self, text: str, general: bool) -> None:
        self.text, self.general, self._began = text, general, time.perf_counter()

    def line(self, now: float) -> str:
        return f"{self.text}: {_spoken(now - self._began)}"


@contextmanager
def waiting(text: str, *, drawn: bool = True, general: bool = False) -> Iterator[None]:
    """Say what is waited for and since when, where its length is not known.

    Parameters
    ----------
    text : str
    drawn : bool
        On a terminal by something that turns, unless a bar is seen; else by lines there too.
    general : bool
        Said only while nothing else is.
    """
    console = Console(stderr=True)
    one = _Wait(text, general)
    _lines.enter(one)
    try:
        if drawn and console.is_terminal and _SHOWN.acquire(blocking=False):
            try:
                with console.status(text):
                    yield
            finally:
                _SHOWN.release()
        else:
            yield
    finally:
        _lines.leave(one)


def _spoken(seconds: float) -> str:
    """A duration, for a person."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
