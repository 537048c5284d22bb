"""The explorer itself: widgets and figures around one setting, in a page or in a notebook."""

from __future__ import annotations

import html
import io
import threading
import time
from typing import Any
from urllib.parse import parse_qs, urlencode

import panel as pn

from fluidcc.errors import InputError
from fluidcc.explorer import answers, views
from fluidcc.explorer.answers import Answer, Latest
from fluidcc.explorer.chart import Chart, axes_of, default_axes
from fluidcc.explorer.devices import Devices
from fluidcc.explorer.figures import ChartPlot, DistributionPlot, QueuePlot, RatePlot, RootPlot
from fluidcc.explorer.knobs import TOPOLOGIES
from fluidcc.explorer.pieces import SMALL, KnobRow, error, numbers_table, rows_of, status, text
from fluidcc.explorer.python_text import python_of
from fluidcc.explorer.settings import Setting, preset_names, schemes

_REST = 0.15  # s without a move, after which the chart is worked out
_LEFT, _TALL, _LOW = 290, 235, 255  # pixels


class OutdatedError(Exception):
    """A newer setting has come, so that what is worked out for an older one ends."""


class Explorer:
    """Widgets and figures around a setting.

    Parameters
    ----------
    setting : Setting
    kept : Setting or None
        The one beside it.
    threaded : bool
        Whether answers are worked out in threads, as in a page; else at once, as in a notebook.
    """

    def __init__(self, setting: Setting, kept: Setting | None = None, *, threaded: bool = True) -> None:
        self.setting, self._threaded = setting, threaded
        self._document = pn.state.curdoc if threaded else None
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
        self._make_widgets()
        self._fill_knobs()
        self.view = self._layout()
        if kept is not None:
            self._keep(kept)
        self._ask()

    # -- widgets ---------------------------------------------------------------------------------------------------

    def _make_widgets(self) -> None:
        of = self.setting
        narrow: dict[str, Any] = {"width": 88, "margin": (0, 4), "stylesheets": [SMALL]}
        given = of.given is not None
        self._scheme = pn.widgets.Select(name="scheme", options=[of.scheme] if given else list(schemes()),
                                         value=of.scheme, css_classes=["pick-scheme"], **narrow)  # fmt: skip
        self._preset = pn.widgets.Select(name="preset", options=[of.preset] if given else preset_names(of.scheme),
                                         value=of.preset, css_classes=["pick-preset"], **narrow)  # fmt: skip
        self._topology = pn.widgets.Select(name="topology", options=[of.topology] if given else list(TOPOLOGIES),
                                           value=of.topology, css_classes=["pick-topology"], **narrow)  # fmt: skip
        for widget, name in ((self._scheme, "scheme"), (self._preset, "preset"), (self._topology, "topology")):
            widget.disabled = given
            widget.param.watch(lambda event, name=name: self._switch(**{name: event.new}), "value")
        self._front = pn.Column(margin=(10, 0, 0, 0), width=_LEFT)
        self._more = pn.Card(pn.Column(margin=0), title="more of NIC, marking, packets", collapsed=True,
                             width=_LEFT - 10, margin=(6, 0), css_classes=["more"])  # fmt: skip
        self._more.param.watch(lambda event: self._fill_more(), "collapsed")
        self._status, self._error = text(status("starting", 0)), text(error(""))
        self._numbers = text('<div class="quiet" id="verdict">compiling, the first time a few seconds ...</div>', min_height=70)
        self._python = text("")
        self._figures = (QueuePlot(_TALL), RatePlot(_TALL), RootPlot(_LOW), DistributionPlot(_LOW))
        self._map = ChartPlot(_LOW - 30)
        self._why = text("")
        self._x = pn.widgets.Select(name="", width=115, margin=(0, 2), stylesheets=[SMALL], css_classes=["axis-x"])
        self._y = pn.widgets.Select(name="", width=115, margin=(0, 2), stylesheets=[SMALL], css_classes=["axis-y"])
        for axis in (self._x, self._y):
            axis.param.watch(lambda event: self._filling or self._ask_chart(), "value")
        small: dict[str, Any] = {"height": 26, "margin": (2, 4), "stylesheets": [SMALL]}
        self._keep_button = pn.widgets.Button(name="Keep beside", css_classes=["keep"], width=100, **small)
        self._swap_button = pn.widgets.Button(name="Swap", css_classes=["swap"], width=60, disabled=True, **small)
        self._drop_button = pn.widgets.Button(name="Drop", css_classes=["drop"], width=60, disabled=True, **small)
        self._packet_button = pn.widgets.Button(name="Run packets", css_classes=["packets"], width=100, **small)
        self._progress = pn.indicators.Progress(value=0, max=100, width=110, height=10, visible=False, margin=(9, 4))
        self._keep_button.on_click(lambda event: self._keep(self.setting))
        self._swap_button.on_click(lambda event: self._swap())
        self._drop_button.on_click(lambda event: self._keep(None))
        self._packet_button.on_click(lambda event: self._ask_packets())
        self._download = pn.widgets.FileDownload(
            callback=lambda: io.StringIO(self._program()), filename="explore.py", label="Save explore.py", width=140, **small
        )
        self._code = pn.Card(self._download, self._python, title="Python that makes this", collapsed=True,
                             css_classes=["code"], sizing_mode="stretch_width", margin=(6, 0))  # fmt: skip
        self._code.param.watch(lambda event: self._show_program(), "collapsed")
        self._devices = Devices(self._take)

    def _layout(self) -> Any:
        picks = pn.Row(self._scheme, self._preset, self._topology, margin=0)
        left = pn.Column(picks, self._front, self._more, width=_LEFT, margin=(0, 8, 0, 0))
        buttons = pn.Row(self._keep_button, self._swap_button, self._drop_button, self._packet_button, self._progress,
                         self._status, margin=0)  # fmt: skip
        queue, rates, roots, share = (figure.plot for figure in self._figures)
        chart = pn.Column(pn.Row(text('<span class="quiet">over</span>'), self._x, self._y, margin=0), self._why,
                          pn.pane.Bokeh(self._map.plot, sizing_mode="stretch_width"),
                          sizing_mode="stretch_width", margin=0)  # fmt: skip
        wide: dict[str, Any] = {"sizing_mode": "stretch_width", "margin": 0}
        right = pn.Column(
            buttons, self._error, self._numbers,
            pn.Row(pn.pane.Bokeh(queue, **wide), pn.pane.Bokeh(rates, **wide), **wide),
            pn.Row(pn.pane.Bokeh(roots, **wide), chart, pn.pane.Bokeh(share, **wide), **wide),
            self._code,
            pn.Card(self._devices.view, title="A switch's and a NIC's own configuration: where does it stand?",
                    collapsed=True, css_classes=["devices"], sizing_mode="stretch_width", margin=(6, 0)),
            **wide,
        )  # fmt: skip
        return pn.Row(left, right, sizing_mode="stretch_width", margin=(4, 8))

    def _fill_knobs(self) -> None:
        """Rows of the setting's own values, after another scheme, preset or topology."""
        of = self.setting
        self._rows: dict[str, KnobRow] = rows_of(of.knobs, of.text, self._move, True)
        self._front.objects = [row.view for row in self._rows.values()]
        self._more.objects = [pn.Column(margin=0)]
        self._fill_more()
        names, axes = axes_of(of), default_axes(of)
        self._filling = True
        try:
            for widget, name in ((self._x, axes[0]), (self._y, axes[1])):
                kept = widget.value if widget.value in names and len(names) > 1 else name
                widget.options = names
                widget.value = kept
            if self._x.value == self._y.value:
                self._x.value, self._y.value = axes
        finally:
            self._filling = False

    def _fill_more(self) -> None:
        """The rows behind the fold are made when it is first opened: they are many."""
        if self._more.collapsed or self._more.objects[0].objects:
            return
        rows = rows_of(self.setting.knobs, self.setting.text, self._move, False)
        self._rows |= rows
        self._more.objects = [pn.Column(*(row.view for row in rows.values()), margin=0)]

    # -- moves -----------------------------------------------------------------------------------------------------

    def _move(self, name: str, content: str) -> None:
        """A person moved one value."""
        try:
            moved = self.setting.moved(name, content)
            moved.scenario()
        except InputError as refused:
            self._refused.add(name)
            self._say(str(refused))
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
            self._say(str(refused))

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
            self._preset.options = preset_names(setting.scheme) if setting.given is None else [setting.preset]
            self._scheme.value, self._preset.value, self._topology.value = (
                setting.scheme, setting.preset, setting.topology,
            )  # fmt: skip
        finally:
            self._filling = False
        self._fill_knobs()
        self._ask()

    def _say(self, refused: str) -> None:
        """Say why something was refused; the page shows what it showed."""
        self._error.object = error(refused)
        self._serial += 1
        self._status.object = status("refused", self._serial)

    def _ask(self) -> None:
        """Have the setting answered; what waits behind it is dropped."""
        self._serial += 1
        self._error.object = error("")
        words = "computing ..." if answers.is_compiled(self.setting) else "compiling for this kind of setting, some seconds ..."
        self._status.object = status(words, self._answered)
        self._share()
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
            self._error.object = error(_words(failed))
            self._answered = serial
            self._status.object = status("refused", serial)
            return
        self._now, self._packets = found, None
        self._answered = serial
        self._draw()
        self._status.object = status(f"answered in {1e3 * found.seconds:.0f} ms", serial, found.seconds)
        self._ask_chart()

    def _draw(self) -> None:
        if self._now is None:
            return
        for figure in self._figures:
            figure.show(self._now, self._packets, self._kept)
        self._numbers.object = numbers_table(self._now, self._packets, self._kept)

    def _ask_chart(self) -> None:
        self._run(self._charting, (self._serial, self.setting, (self._x.value, self._y.value)))

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
        self._why.object = f'<div class="quiet" id="chart" data-serial="{serial}">{html.escape(why)}</div>'
        if found is None:
            return
        self._chart = found
        kept = {} if self._kept is None or self._kept.setting.scheme != setting.scheme else self._kept.setting.numbers()
        self._map.show(found, setting.knobs, setting.numbers(), kept)
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
            self._error.object = error(_words(failed) if failed else "")
            self._after_keeping()

        self._later(put)

    def _after_keeping(self) -> None:
        self._swap_button.disabled = self._drop_button.disabled = self._kept is None
        self._draw()
        self._share()
        if self._now is not None:
            self._ask_chart()

    def _swap(self) -> None:
        if self._kept is not None and self._now is not None:
            self._kept, other = self._now, self._kept.setting
            self._take(other)

    def _ask_packets(self) -> None:
        self._progress.value, self._progress.visible = 0, True
        self._run(self._packeting, (self._serial, self.setting))

    def _run_packets(self, what: tuple[int, Setting]) -> views.Run:
        serial, setting = what
        last = [0]

        def report(share: float) -> None:
            if serial != self._serial:
                raise OutdatedError
            if (now := int(100 * share)) > last[0]:
                last[0] = now
                self._later(lambda: setattr(self._progress, "value", min(now, 100)))

        return views.packets(setting.scenario(), setting.until, report=report)

    def _on_packets(self, what: tuple[int, Setting], found: views.Run | None, failed: Exception | None) -> None:
        def put() -> None:
            self._progress.visible = False
            if isinstance(failed, OutdatedError) or what[0] != self._serial:
                return
            self._packets = found
            self._error.object = error(_words(failed) if failed else "")
            self._draw()

        self._later(put)

    def _show_program(self) -> None:
        if not self._code.collapsed:
            self._python.object = f'<pre class="python" id="python">{html.escape(self._program())}</pre>'

    def _program(self) -> str:
        hybrid = self._now is not None and self._now.hybrid is not None
        return python_of(self.setting, self._chart, hybrid=hybrid)

    def _share(self) -> None:
        """Put the setting into the page's address."""
        location = pn.state.location if self._threaded else None
        if location is not None and self.setting.given is None:
            kept = "" if self._kept is None else "&" + urlencode({"kept": self._kept.setting.query()})
            location.search = f"?{self.setting.query()}{kept}"


def _words(failed: Exception | None) -> str:
    """What to say of an error; one that is not ours is named."""
    return str(failed) if isinstance(failed, InputError) else f"{type(failed).__name__}: {failed}"


_extension = threading.Lock()


def load() -> None:
    """Set Panel up: nothing is loaded from other hosts."""
    with _extension:
        pn.extension(notifications=False)


def page() -> Any:
    """A page of its own for each visitor, from the address that was called."""
    search = pn.state.location.search if pn.state.location is not None else ""
    refused, setting, kept = "", Setting(), None
    try:
        old = parse_qs(search.lstrip("?")).get("kept")
        setting = Setting.of_query("&".join(p for p in search.lstrip("?").split("&") if p and not p.startswith("kept=")))
        setting.scenario()
        kept = Setting.of_query(old[0]) if old else None
    except InputError as problem:
        refused, setting, kept = str(problem), Setting(), None
    explorer = Explorer(setting, kept)
    if refused:
        explorer._say(refused)
    return explorer.view
