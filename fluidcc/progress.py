"""A progress bar on standard error for whatever takes longer than two seconds, and only there."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

PATIENCE = 2.0  # s
BETWEEN_LINES = 5.0  # s
BETWEEN_DRAWINGS = 0.2  # s, in a notebook
_SHOWN = threading.Lock()  # by the bar that is seen: two at once would draw over each other


class Bar:
    """Context manager; call it with the share that is done.

    The bar appears once the work is expected to take longer than `PATIENCE`, if standard error is a terminal
    or a notebook, and no other bar is seen at that time.

    Parameters
    ----------
    label : str
    total : int
        Number of units, shown with their rate.
    unit : str
        Empty: there is no rate to show.
    lines : bool
        Where there is no such place, say so in lines on standard error instead, at most one in `BETWEEN_LINES`.
    """

    def __init__(self, label: str, total: int, unit: str, *, lines: bool = False) -> None:
        self._label, self._total, self._unit = label, total, unit
        self._began = self._said = time.perf_counter()
        self._bar: Progress | None = None
        self._drawn = 0.0
        self._cell: Any = None  # of a notebook: where the bar is drawn
        self._console = Console(stderr=True)
        self._watched = self._console.is_jupyter or self._console.is_terminal
        self._lines = lines and not self._watched

    def __enter__(self) -> Bar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            try:
                if self._cell is None:
                    self._bar.stop()
                else:
                    self._cell.update({"text/plain": ""}, raw=True)
            finally:
                _SHOWN.release()

    def __call__(self, share: float, where: str = "") -> None:
        """Report the share done, 0 to 1, and in words where the work is."""
        label = f"{self._label} ({where})" if where else self._label
        now = time.perf_counter()
        elapsed = now - self._began
        if self._lines and share < 1 and now - self._said >= BETWEEN_LINES:
            self._said = now
            line = f"{label}: {round(share * self._total)} of {self._total}, {elapsed:.0f} s"
            self._console.print(line, markup=False, highlight=False, soft_wrap=True)
        if self._bar is None:
            if not self._watched or share >= 1 or elapsed / max(share, 1e-9) < PATIENCE:
                return
            if not _SHOWN.acquire(blocking=False):
                return
            self._show()
        assert self._bar is not None
        done = round(share * self._total)
        rate = f"{done / max(elapsed, 1e-9):,.3g} {self._unit}/s" if self._unit else ""
        self._bar.update(self._task, completed=done, rate=rate, description=label)
        if self._cell is not None and now - self._drawn >= BETWEEN_DRAWINGS:
            self._drawn = now
            self._cell.update(self._bar)

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


@contextmanager
def waiting(text: str) -> Iterator[None]:
    """Say what is waited for, where somebody watches and its length is not known."""
    console = Console(stderr=True)
    if console.is_terminal:
        with console.status(text):
            yield
    else:
        yield
