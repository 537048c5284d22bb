"""The explorer itself: a setting, what moves it, and what is shown of it.

Packets run on a button, until another setting comes; a second setting is shown next to the one that is moved.
"""

from __future__ import annotations

import html
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, urlencode

import panel as pn
from panel.io.resources import LOCAL_DIST

from fluidcc.errors import InputError
from fluidcc.explorer import views
from fluidcc.explorer.answers import Answer, Chart, answers, chart_of, is_compiled
from fluidcc.explorer.board import ASK_FOR_CHART, NO_CHART_YET, Board
from fluidcc.explorer.controls import Controls
from fluidcc.explorer.devices import Devices
from fluidcc.explorer.pieces import error, numbers_table, quiet, status, verdict, words_of
from fluidcc.explorer.places import ANSWERS, CHARTS, PACKETS, Cell, Latest, OutdatedError, Page, Place
from fluidcc.explorer.python_text import python_of
from fluidcc.explorer.settings import Setting

_REST = 0.15  # s without a move, after which the chart is worked out
_WATCH = 2.0  # s after which a page says what it still waits for
_PYTHON = 'class="python" id="python" tabindex="0" role="region" aria-label="Python program"'  # scrolled by keys
_LONG = 60.0  # s after which nothing can still be compiling


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
        self.setting = setting  # where the controls stand; what is shown is `shown`
        self._place = Page(self._leave) if threaded else Cell(lambda: self.view)
        self._serial = self._answered = 0  # numbers of the last move, and of the last that was answered or refused
        self._now: Answer | None = None
        self._chart: Chart | None = None
        self._unshown: set[str] = set()  # whose text was refused, and so is not what is shown
        self._answering = Latest(lambda of: answers(of[1]), self._on_answer, ANSWERS)
        self._charting = Latest(self._work_out_chart, self._on_chart, CHARTS)
        self._board = Board(setting, Devices(self._take), self._move, self._program)
        self._controls = Controls(self._board, self._switch, self._ask_chart)
        self._packets = Packets(self._board, self._place, self._draw)
        self._beside = Beside(self._board, self._place, self._on_beside)
        self.view = self._board.view
        self._wire()
        self._controls.take(setting)
        self._place.begin(lambda: self._begin(kept, refused))

    @property
    def shown(self) -> Setting:
        """The setting that was answered last, whose picture this is; before there is any, the first."""
        return self.setting if self._now is None else self._now.setting

    def _wire(self) -> None:
        """Have the buttons do something."""
        board = self._board
        board.code.param.watch(lambda event: self._show_program(), "collapsed")
        board.keep_button.on_click(lambda event: self._beside.keep(self.setting, self._now))
        board.swap_button.on_click(lambda event: self._swap())
        board.drop_button.on_click(lambda event: self._beside.drop())
        board.chart_button.visible = not self._place.draws_charts
        board.chart_button.on_click(lambda event: self._ask_chart())
        board.packet_button.on_click(lambda event: self._packets.ask(self.setting))

    def _begin(self, kept: Setting | None, refused: str) -> None:
        """Have the first setting answered."""
        if kept is not None:
            self._beside.keep(kept)
        self._ask()
        self._board.error.object = error(refused)

    def _leave(self) -> None:
        """Drop all work for a page that nobody sees any more."""
        self._serial += 1
        self._packets.drop()

    # -- moves -----------------------------------------------------------------------------------------------------

    def _move(self, name: str, content: str) -> None:
        """Apply a user's move of one value."""
        self._unshown.add(name)
        with self._saying():
            moved = self.setting.moved(name, content)
            moved.scenario()
            self.setting = moved
            self._controls.show(moved, self._unshown)
            self._unshown.clear()
            self._ask()

    def _switch(self, **names: str) -> None:
        with self._saying():
            try:
                self._take(self.setting.switched(**names))
            except InputError:
                self._controls.choose(self.setting)
                raise

    @contextmanager
    def _saying(self) -> Iterator[None]:
        """Report any error of the block: else the page would stand still, as if nothing had been asked of it."""
        try:
            yield
        except Exception as failed:
            if not isinstance(failed, InputError):
                logging.getLogger(__name__).exception("explorer: %s", self.setting.title())
            self._refuse(words_of(failed))

    def _take(self, setting: Setting) -> None:
        """Show another setting altogether.

        Raises
        ------
        InputError
            If it makes no sense; then nothing changes.
        """
        setting.scenario()
        self.setting, self._chart = setting, None
        self._unshown.clear()
        self._controls.take(setting)
        self._board.map.clear()
        self._board.why.object = NO_CHART_YET
        self._ask()

    def _swap(self) -> None:
        """Swap the setting that is kept with the one that is moved."""
        other = self._beside.kept
        if other is not None and self._now is not None:
            with self._saying():
                self._beside.keep(self._now.setting, self._now)
                self._take(other.setting)

    def _refuse(self, why: str) -> None:
        """Say why something was refused; the page shows what it showed."""
        self._serial += 1
        self._answered = self._serial
        self._board.error.object = error(why)
        self._board.status.object = status("refused", self._serial)

    # -- answers ---------------------------------------------------------------------------------------------------

    def _ask(self) -> None:
        """Have the setting answered; what waits behind it is dropped."""
        self._serial += 1
        self._packets.drop()
        self._board.error.object = error("")
        words = "" if is_compiled(self.setting) else "compiling for this kind of setting, some seconds ..."
        if words:  # else the answer is there before this would be seen
            self._board.status.object = status(words, self._answered)
        self._watch(self._serial, time.monotonic(), words or "still working on it ...")
        self._place.run(self._answering, (self._serial, self.setting))

    def _watch(self, serial: int, began: float, words: str) -> None:
        """Report at intervals that there is no answer yet, so that the page does not seem to hang."""

        def look() -> None:
            if self._serial != serial or self._answered >= serial:
                return
            took = time.monotonic() - began
            late = "no answer; reload the page, its address holds what was answered last"
            self._board.status.object = status(f"{words if took < _LONG else late} ({took:.0f} s)", self._answered)
            self._watch(serial, began, words)

        self._place.watch(_WATCH, look)

    def _on_answer(self, what: tuple[int, Setting], found: Answer | None, failed: Exception | None) -> None:
        def show() -> None:
            with self._saying():
                self._show(what, found, failed)

        self._place.show(show)

    def _show(self, what: tuple[int, Setting], found: Answer | None, failed: Exception | None) -> None:
        serial, asked = what
        before = self._now
        if found is None:
            self._answered = max(serial, self._answered)
            if asked == self.setting:  # else a later one is on its way
                self._go_back()
            self._board.error.object = error(words_of(failed))
            self._board.status.object = status("refused", self._answered)
            return
        self._now = found
        self._draw(runs=not found.has_runs_of(before))
        if serial >= self._answered:  # else a later one was refused, and the page says so
            self._answered = serial
            words = f"answered in {1e3 * found.seconds:.0f} ms{'' if found.whole else ', the rest follows'}"
            self._board.status.object = status(words, serial, found.seconds, whole=found.whole)
        if found.whole:
            self._place.rested(_REST, lambda: self._rest(found.setting))

    def _go_back(self) -> None:
        """Restore the last answered setting, or the default if there is none: no control keeps a refused value."""
        good = Setting() if self._now is None and self.setting.given is None else self.shown
        if good == self.setting:
            return
        if self._now is None:
            self._take(good)
            return
        before, self.setting = self.setting, good
        if (before.scheme, before.preset, before.topology) == (good.scheme, good.preset, good.topology):
            self._controls.show(good, self._unshown | {name for name, _ in {*before.values} ^ {*good.values}})
        else:
            self._controls.take(good)
        self._unshown.clear()
        self._place.rested(_REST, lambda: self._rest(good))

    def _rest(self, setting: Setting) -> None:
        """Update address, program and chart if the hand still rests on a setting."""
        if setting == self.setting:
            self._share()
            self._show_program()
            self._chart_by_itself()

    def _draw(self, *, runs: bool = True) -> None:
        """Draw what there is; without runs the roots alone, which come after them."""
        if self._now is None:
            return
        packets, kept = self._packets.found, self._beside.kept
        if runs:
            for figure in self._board.over_time:
                figure.show(self._now, packets, kept)
            self._board.numbers.object = numbers_table(self._now, packets, kept)
        self._board.roots.show(self._now, kept)
        self._board.verdict.object = verdict(self._now)

    # -- the chart -------------------------------------------------------------------------------------------------

    def _chart_by_itself(self) -> None:
        """Draw the chart of the shown setting if the place draws charts by itself; else clear it."""
        if self._place.draws_charts:
            self._ask_chart()
        else:
            self._chart = None
            self._board.map.clear()
            self._board.why.object = ASK_FOR_CHART

    def _ask_chart(self) -> None:
        self._place.run(self._charting, (self.setting, self._controls.axes))

    def _work_out_chart(self, what: tuple[Setting, tuple[str, ...]]) -> Iterator[Chart]:
        yield chart_of(*what)

    def _on_chart(self, what: tuple[Setting, tuple[str, ...]], found: Chart | None, failed: Exception | None) -> None:
        def show() -> None:
            with self._saying():
                self._show_chart(what[0], found, failed)

        self._place.show(show)

    def _show_chart(self, setting: Setting, found: Chart | None, failed: Exception | None) -> None:
        if setting != self.setting:
            return
        self._board.why.object = quiet(words_of(failed) if found is None else found.why, "chart", self._serial)
        if found is None:
            return
        self._chart = found
        kept = self._beside.kept
        beside = {} if kept is None or kept.setting.scheme != setting.scheme else kept.setting.numbers()
        self._board.map.show(found, setting.knobs, setting.numbers(), beside)
        self._show_program()

    # -- beside, and sharing ---------------------------------------------------------------------------------------

    def _on_beside(self) -> None:
        """Update figures, address and chart after another setting, or none, is kept."""
        self._draw()
        self._share()
        if self._now is not None:
            self._chart_by_itself()

    def _show_program(self) -> None:
        if not self._board.code.collapsed:
            self._board.python.object = f"<pre {_PYTHON}>{html.escape(self._program())}</pre>"

    def _program(self) -> str:
        hybrid = self._now is not None and self._now.hybrid is not None
        return python_of(self.shown, self._chart if self.shown == self.setting else None, hybrid=hybrid)

    def _share(self) -> None:
        """Put what was answered last into the page's address; the browser's history grows by each."""
        if self.shown.given is None and self._now is not None:
            kept = self._beside.kept
            beside = "" if kept is None else "&" + urlencode({"kept": kept.setting.query()})
            self._place.share(f"{self.shown.query()}{beside}")


def load() -> None:
    """Set Panel up, once for a process."""
    pn.extension(notifications=False)


def page() -> Any:
    """The page of an address; one that makes no sense shows the default setting, and why."""
    if pn.state.curdoc is not None:  # else a session made anew, for a browser that is slow, has Panel's CDN for styles
        pn.state.curdoc.template_variables["dist_url"] = LOCAL_DIST
    search = (pn.state.location.search if pn.state.location is not None else "").lstrip("?")
    beside = parse_qs(search).get("kept")
    own = "&".join(part for part in search.split("&") if part and not part.startswith("kept="))
    setting, refused = _read(own)
    kept, refused_too = _read(beside[0]) if beside else (None, "")
    why = "; ".join([*filter(None, [refused]), *(f"kept: {words}" for words in filter(None, [refused_too]))])
    return Explorer(setting or Setting(), kept, refused=why).view


def _read(query: str) -> tuple[Setting | None, str]:
    """Read the setting of an address, or return why it is invalid."""
    try:
        found = Setting.of_query(query)
        found.scenario()
    except InputError as problem:
        return None, str(problem)
    return found, ""
