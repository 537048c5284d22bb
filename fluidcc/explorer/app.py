"""The explorer itself: widgets and figures around one setting, in a page or in a notebook."""

from __future__ import annotations

import html
import time
from typing import Any
from urllib.parse import urlencode

import panel as pn

from fluidcc.errors import InputError
from fluidcc.explorer import answers, views
from fluidcc.explorer.answers import Answer, Latest
from fluidcc.explorer.board import Board
from fluidcc.explorer.chart import Chart, axes_of, default_axes
from fluidcc.explorer.devices import Devices
from fluidcc.explorer.pieces import KnobRow, error, numbers_table, rows_of, status
from fluidcc.explorer.python_text import python_of
from fluidcc.explorer.settings import Setting, preset_names

_REST = 0.15  # s without a move, after which the chart is worked out


class OutdatedError(Exception):
    """A newer setting has come, so that what is worked out for an older one ends."""


class Explorer:
    """Widgets and figures around a setting.

    Parameters
    ----------
    setting : Setting
    kept : Setting or None
        The one beside it.
    refused : str
        Why another was refused, to be said beside the first answer.
    threaded : bool
        Whether answers are worked out in threads, as in a page; else at once, as in a notebook.
    """

    def __init__(
        self, setting: Setting, kept: Setting | None = None, *, refused: str = "", threaded: bool = True
    ) -> None:
        self.setting, self._threaded = setting, threaded
        self._document, self._location = (pn.state.curdoc, pn.state.location) if threaded else (None, None)
        self._serial = self._answered = 0
        self._now: Answer | None = None
        self._kept: Answer | None = None
        self._chart: Chart | None = None
        self._packets: views.Run | None = None
        self._filling = False
        self._refused: set[str] = set()  # whose text is not what is shown
        self._latest = Latest(lambda of: answers.answer(of[1]), self._on_answer)
        self._charting = Latest(self._work_out_chart, self._on_chart)
        self._packeting = Latest(self._run_packets, self._on_packets)
        self._board = Board(setting, Devices(self._take), self._program)
        self.view = self._board.view
        self._wire()
        self._fill_knobs()
        if kept is not None:
            self._keep(kept)
        self._ask()
        self._board.error.object = error(refused)

    # -- widgets ---------------------------------------------------------------------------------------------------

    def _wire(self) -> None:
        """Have the widgets do something."""
        board = self._board
        for widget, name in ((board.scheme, "scheme"), (board.preset, "preset"), (board.topology, "topology")):
            widget.param.watch(lambda event, name=name: self._switch(**{name: event.new}), "value")
        for axis in (board.x, board.y):
            axis.param.watch(lambda event: self._filling or self._ask_chart(), "value")
        board.more.param.watch(lambda event: self._fill_more(), "collapsed")
        board.code.param.watch(lambda event: self._show_program(), "collapsed")
        board.keep_button.on_click(lambda event: self._keep(self.setting))
        board.swap_button.on_click(lambda event: self._swap())
        board.drop_button.on_click(lambda event: self._keep(None))
        board.packet_button.on_click(lambda event: self._ask_packets())

    def _fill_knobs(self) -> None:
        """Rows of the setting's own values, after another scheme, preset or topology."""
        of = self.setting
        self._rows: dict[str, KnobRow] = rows_of(of.knobs, of.text, self._move, True)
        self._board.front.objects = [row.view for row in self._rows.values()]
        self._board.more.objects = [pn.Column(margin=0)]
        self._fill_more()
        self._chart = None
        self._board.map.clear()
        self._board.why.object = '<div class="quiet">the chart follows; the first of its kind is compiled ...</div>'
        names, axes = axes_of(of), default_axes(of)
        self._filling = True
        try:
            for widget, name in ((self._board.x, axes[0]), (self._board.y, axes[1])):
                kept = widget.value if widget.value in names and len(names) > 1 else name
                widget.options = names
                widget.value = kept
            if self._board.x.value == self._board.y.value:
                self._board.x.value, self._board.y.value = axes
        finally:
            self._filling = False

    def _fill_more(self) -> None:
        """The rows behind the fold are made when it is first opened: they are many."""
        inside: Any = self._board.more.objects[0]
        if self._board.more.collapsed or inside.objects:
            return
        rows = rows_of(self.setting.knobs, self.setting.text, self._move, False)
        self._rows |= rows
        self._board.more.objects = [pn.Column(*(row.view for row in rows.values()), margin=0)]

    # -- moves -----------------------------------------------------------------------------------------------------

    def _move(self, name: str, content: str) -> None:
        """A person moved one value."""
        try:
            moved = self.setting.moved(name, content)
            moved.scenario()
        except InputError as refused:
            self._refused.add(name)
            self.refuse(str(refused))
            return
        self.setting = moved
        for shown in {name, *self._refused} & self._rows.keys():
            self._rows[shown].show(moved.text(shown))
        self._refused.clear()
        self._ask()

    def _switch(self, **names: str) -> None:
        if self._filling:
            return
        try:
            self._take(self.setting.switched(**names))
        except InputError as refused:
            self.refuse(str(refused))

    def _take(self, setting: Setting) -> None:
        """Show another setting altogether.

        Raises
        ------
        InputError
            If it makes no sense; then nothing changes.
        """
        setting.scenario()
        self.setting = setting
        self._filling = True
        try:
            self._board.preset.options = preset_names(setting.scheme) if setting.given is None else [setting.preset]
            self._board.scheme.value, self._board.preset.value, self._board.topology.value = (
                setting.scheme, setting.preset, setting.topology,
            )  # fmt: skip
        finally:
            self._filling = False
        self._fill_knobs()
        self._ask()

    def refuse(self, refused: str) -> None:
        """Say why something was refused; the page shows what it showed."""
        self._board.error.object = error(refused)
        self._serial += 1
        self._answered = self._serial
        self._board.status.object = status("refused", self._serial)

    def _ask(self) -> None:
        """Have the setting answered; what waits behind it is dropped."""
        self._serial += 1
        self._board.error.object = error("")
        if not answers.is_compiled(self.setting):  # else the answer is there before this would be seen
            words = "compiling for this kind of setting, some seconds ..."
            self._board.status.object = status(words, self._answered)
        self._run(self._latest, (self._serial, self.setting))

    def _run(self, job: Latest[Any], what: Any) -> None:
        job(what) if self._threaded else job.at_once(what)

    def _later(self, change: Any) -> None:
        """Change the page from a thread: all at once, and under its document's lock."""

        def apply() -> None:
            with pn.io.hold(self._document):
                change()

        if self._document is None:
            change()
            pn.io.push_notebook(*self.view.select(pn.pane.Bokeh))
        elif self._document.session_context is not None:
            self._document.add_next_tick_callback(apply)

    # -- answers ---------------------------------------------------------------------------------------------------

    def _on_answer(self, what: tuple[int, Setting], found: Answer | None, failed: Exception | None) -> None:
        serial, setting = what
        self._later(lambda: self._show(serial, setting, found, failed))

    def _show(self, serial: int, setting: Setting, found: Answer | None, failed: Exception | None) -> None:
        if found is None:
            self._board.error.object = error(_words(failed))
            self._answered = serial
            self._board.status.object = status("refused", serial)
            return
        self._now, self._packets = found, None
        self._answered = serial
        self._draw()
        self._board.status.object = status(f"answered in {1e3 * found.seconds:.0f} ms", serial, found.seconds)
        self._ask_chart()

    def _draw(self) -> None:
        if self._now is None:
            return
        for figure in self._board.figures:
            figure.show(self._now, self._packets, self._kept)
        self._board.numbers.object = numbers_table(self._now, self._packets, self._kept)

    def _ask_chart(self) -> None:
        self._run(self._charting, (self._serial, self.setting, (self._board.x.value, self._board.y.value)))

    def _work_out_chart(self, what: tuple[int, Setting, tuple[str, str]]) -> Chart:
        """The chart, once the hand rests: it takes longer than all else."""
        serial, setting, axes = what
        if self._threaded:
            time.sleep(_REST)
        if serial != self._serial:
            raise OutdatedError
        return answers.chart_of(setting, axes)

    def _on_chart(self, what: Any, found: Chart | None, failed: Exception | None) -> None:
        self._later(lambda: self._show_chart(what[0], what[1], found, failed))

    def _show_chart(self, serial: int, setting: Setting, found: Chart | None, failed: Exception | None) -> None:
        if isinstance(failed, OutdatedError):
            return
        why = _words(failed) if found is None else found.why
        self._board.why.object = f'<div class="quiet" id="chart" data-serial="{serial}">{html.escape(why)}</div>'
        if found is None:
            return
        self._chart = found
        self._share()  # at rest: the browser keeps a page of its history for each
        kept = {} if self._kept is None or self._kept.setting.scheme != setting.scheme else self._kept.setting.numbers()
        self._board.map.show(found, setting.knobs, setting.numbers(), kept)
        self._show_program()

    # -- beside, packets, sharing ----------------------------------------------------------------------------------

    def _keep(self, setting: Setting | None) -> None:
        """Keep a setting beside the one that is moved; none to drop it."""
        if setting is None:
            self._kept = None
        elif self._now is not None and self._now.setting == setting:
            self._kept = self._now
        else:
            self._run(Latest(answers.answer, self._on_kept), setting)
            return
        self._after_keeping()

    def _on_kept(self, setting: Setting, found: Answer | None, failed: Exception | None) -> None:
        def put() -> None:
            self._kept = found
            self._board.error.object = error(_words(failed) if failed else "")
            self._after_keeping()

        self._later(put)

    def _after_keeping(self) -> None:
        self._board.swap_button.disabled = self._board.drop_button.disabled = self._kept is None
        self._draw()
        self._share()
        if self._now is not None:
            self._ask_chart()

    def _swap(self) -> None:
        if self._kept is not None and self._now is not None:
            self._kept, other = self._now, self._kept.setting
            self._take(other)

    def _ask_packets(self) -> None:
        self._board.progress.value, self._board.progress.visible = 0, True
        self._run(self._packeting, (self._serial, self.setting))

    def _run_packets(self, what: tuple[int, Setting]) -> views.Run:
        serial, setting = what
        last = [0]

        def report(share: float) -> None:
            if serial != self._serial:
                raise OutdatedError
            if (now := int(100 * share)) > last[0]:
                last[0] = now
                self._later(lambda: setattr(self._board.progress, "value", min(now, 100)))

        return views.packets(setting.scenario(), setting.until, report=report)

    def _on_packets(self, what: tuple[int, Setting], found: views.Run | None, failed: Exception | None) -> None:
        def put() -> None:
            self._board.progress.visible = False
            if isinstance(failed, OutdatedError) or what[0] != self._serial:
                return
            self._packets = found
            self._board.error.object = error(_words(failed) if failed else "")
            self._draw()

        self._later(put)

    def _show_program(self) -> None:
        if not self._board.code.collapsed:
            self._board.python.object = f'<pre class="python" id="python">{html.escape(self._program())}</pre>'

    def _program(self) -> str:
        hybrid = self._now is not None and self._now.hybrid is not None
        return python_of(self.setting, self._chart, hybrid=hybrid)

    def _share(self) -> None:
        """Put the setting into the page's address."""
        if self._location is not None and self.setting.given is None:
            kept = "" if self._kept is None else "&" + urlencode({"kept": self._kept.setting.query()})
            self._location.search = f"?{self.setting.query()}{kept}"


def _words(failed: Exception | None) -> str:
    """What to say of an error; one that is not ours is named."""
    return str(failed) if isinstance(failed, InputError) else f"{type(failed).__name__}: {failed}"
