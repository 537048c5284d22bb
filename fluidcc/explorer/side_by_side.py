"""A second setting, shown next to the one that is moved."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fluidcc.explorer.answers import Answer, answers
from fluidcc.explorer.board import Board
from fluidcc.explorer.pieces import error, words_of
from fluidcc.explorer.places import Latest, Place
from fluidcc.explorer.settings import Setting


class Beside:
    """The setting that is kept, answered.

    Parameters
    ----------
    board : Board
    place : Place
    changed : callable
        Called as another, or none, is kept.

    Attributes
    ----------
    kept : Answer or None
    """

    def __init__(self, board: Board, place: Place, changed: Callable[[], None]) -> None:
        self.kept: Answer | None = None
        self._board, self._place, self._changed = board, place, changed
        self._wanted: Setting | None = None
        self._answering = Latest(self._work_out, self._on_answer)

    def keep(self, setting: Setting, known: Answer | None = None) -> None:
        """Keep a setting, with its answer if that is known."""
        self._wanted = setting
        if known is not None and known.setting == setting and known.whole:
            self._put(known)
        else:
            self._place.run(self._answering, setting)

    def drop(self) -> None:
        """Keep none."""
        self._wanted = None
        self._put(None)

    def _work_out(self, setting: Setting) -> Iterator[Answer]:
        yield list(answers(setting))[-1]

    def _on_answer(self, setting: Setting, found: Answer | None, failed: Exception | None) -> None:
        def put() -> None:
            if setting != self._wanted:
                return
            if failed is not None:  # what was kept stays so
                self._board.error.object = error(f"kept: {words_of(failed)}")
                self._wanted = None if self.kept is None else self.kept.setting
                return
            self._put(found)

        self._place.show(put)

    def _put(self, kept: Answer | None) -> None:
        self.kept = kept
        self._board.swap_button.disabled = self._board.drop_button.disabled = kept is None
        self._changed()
