"""Packets on a button, with progress, until another setting comes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fluidcc.explorer import views
from fluidcc.explorer.board import Board
from fluidcc.explorer.pieces import error, words_of
from fluidcc.explorer.places import PACKETS, Latest, OutdatedError, Place
from fluidcc.explorer.settings import Setting


class Packets:
    """A run of packets of the present setting.

    Parameters
    ----------
    board : Board
    place : Place
    drawn : callable
        Called once there is something to draw.

    Attributes
    ----------
    found : Run or None
        Of the present setting.
    """

    def __init__(self, board: Board, place: Place, drawn: Callable[[], None]) -> None:
        self.found: views.Run | None = None
        self._board, self._place, self._drawn = board, place, drawn
        self._number = 0  # of the run that is waited for
        self._running = Latest(self._run, self._on_run, PACKETS)

    def ask(self, setting: Setting) -> None:
        """Run them."""
        self.drop()
        self._board.progress.value, self._board.progress.visible = 0, True
        self._place.run(self._running, (self._number, setting))

    def drop(self) -> None:
        """Forget them, and end what runs: another setting is shown."""
        self._number += 1
        self.found = None
        self._board.progress.visible = False

    def _run(self, what: tuple[int, Setting]) -> Iterator[views.Run]:
        number, setting = what
        last = 0

        def report(share: float) -> None:
            nonlocal last
            if number != self._number:
                raise OutdatedError
            if (now := min(int(100 * share), 100)) > last:
                last = now
                self._place.show(lambda: self._progress(number, now))

        report(0.0)
        yield views.packets(setting.scenario(), setting.until, report=report)

    def _progress(self, number: int, percent: int) -> None:
        if number == self._number:
            self._board.progress.value = percent

    def _on_run(self, what: tuple[int, Setting], found: views.Run | None, failed: Exception | None) -> None:
        def put() -> None:
            if what[0] != self._number:
                return
            self._board.progress.visible = False
            self.found = found
            self._board.error.object = error(words_of(failed) if failed else "")
            self._drawn()

        self._place.show(put)
