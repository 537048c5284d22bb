"""Sliders, texts and choices that follow a setting, and say what a hand did to them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from fluidcc.explorer.answers import axes_of, default_axes
from fluidcc.explorer.board import TIPS, Board
from fluidcc.explorer.settings import Setting, preset_names


class Controls:
    """The widgets of a board by which a setting is moved.

    Parameters
    ----------
    board : Board
    switched : callable
        ``switched(scheme=...)`` as another scheme, preset or topology is chosen.
    turned : callable
        As another axis of the chart is chosen.
    """

    def __init__(
        self,
        board: Board,
        switched: Callable[..., None],
        turned: Callable[[], None],
    ) -> None:
        self._board = board
        self._folded: Setting | None = None  # whose rows behind the fold are not made yet
        self._following = False
        for name, widget in self._picks().items():
            widget.param.watch(lambda event, name=name: self._following or switched(**{name: event.new}), "value")
        for axis in (board.x, board.y):
            axis.param.watch(lambda event: self._following or turned(), "value")
        board.fold.param.watch(lambda event: self._unfold(), "collapsed")

    def _picks(self) -> dict[str, Any]:
        return {"scheme": self._board.scheme, "preset": self._board.preset, "topology": self._board.topology}

    @contextmanager
    def _follows(self) -> Iterator[None]:
        """Mark changes of widgets as made by the program, not by a person."""
        self._following = True
        try:
            yield
        finally:
            self._following = False

    @property
    def axes(self) -> tuple[str, ...]:
        """Names of the chart's axes, across and up; fewer where nothing has a range."""
        return tuple(name for name in (self._board.x.value, self._board.y.value) if name)

    def take(self, setting: Setting) -> None:
        """Follow another setting altogether."""
        with self._follows():
            self._board.preset.options = preset_names(setting.scheme) if setting.given is None else [setting.preset]
        self.choose(setting)
        front = {name: knob for name, knob in setting.knobs.items() if knob.main}
        self._board.front.take(front, setting.text)
        self._board.more.take({}, setting.text)
        self._board.tips.take(TIPS | {f"knob-{name}": knob.tip for name, knob in setting.knobs.items()})
        self._folded = setting
        self._unfold()
        self._take_axes(setting)

    def choose(self, setting: Setting) -> None:
        """Show its scheme, preset and topology."""
        with self._follows():
            for name, widget in self._picks().items():
                widget.value = getattr(setting, name)

    def _take_axes(self, setting: Setting) -> None:
        names, axes = axes_of(setting), default_axes(setting)
        widgets = (self._board.x, self._board.y)
        kept = [each.value if each.value in names else axis for each, axis in zip(widgets, axes, strict=False)]
        if len({*kept}) < len(kept):
            kept = list(axes)
        with self._follows():
            for widget, name in itertools.zip_longest(widgets, kept):
                widget.options = names if name else []
                widget.value = name

    def _unfold(self) -> None:
        """Make the rows behind the fold when it is first opened: they are many."""
        setting = self._folded
        if self._board.fold.collapsed or setting is None:
            return
        self._folded = None
        self._board.more.take({name: knob for name, knob in setting.knobs.items() if not knob.main}, setting.text)

    def show(self, setting: Setting, names: Iterable[str]) -> None:
        """Show some of its values."""
        if self._folded is not None:
            self._folded = setting
        texts = {name: setting.text(name) for name in names}
        self._board.front.show(texts)
        self._board.more.show(texts)
