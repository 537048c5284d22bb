"""Widgets and figures of the explorer's page, and their layout; no behaviour.

Rows of values, each a label, a slider and a text, and tooltips are elements of the browser's own.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import panel as pn
import param
from panel.custom import JSComponent

from fluidcc.contract.registry import DEFAULT
from fluidcc.explorer.devices import Devices
from fluidcc.explorer.pieces import FOCUS, SMALL, error, quiet, status, text, wrapped
from fluidcc.explorer.plots import ChartPlot, DistributionPlot, QueuePlot, RatePlot, RootPlot
from fluidcc.explorer.settings import TOPOLOGIES, Knob, Setting, preset_names, schemes

# Events come through the shadow roots of all widgets with the path that they took, so one listener serves them all.
_TIPS_SCRIPT = """
export function render({ model, el }) {
  const tip = document.createElement("div")
  tip.className = "tip"
  tip.setAttribute("role", "tooltip")
  tip.hidden = true
  let timer = 0, control = null, hovered = null, tips = {}

  const read = () => { tips = JSON.parse(model.tips) }

  const hide = () => { clearTimeout(timer); tip.hidden = true }
  const find = event => {
    for (const at of event.composedPath())
      for (const name of at.classList ?? []) if (tips[name]) return [at, tips[name]]
  }
  const show = (at, words) => {
    control = at
    tip.textContent = words
    tip.hidden = false
    place()
  }
  const place = () => {
    if (tip.hidden) return
    const box = control.getBoundingClientRect()
    const left = Math.max(4, Math.min(box.left, document.documentElement.clientWidth - tip.offsetWidth - 4))
    const below = box.bottom + 4 + tip.offsetHeight < window.innerHeight
    tip.style.left = `${left}px`
    tip.style.top = `${below ? box.bottom + 4 : Math.max(4, box.top - tip.offsetHeight - 4)}px`
  }
  const listen = () => {
    const root = el.getRootNode()
    if (root.host === undefined || !el.isConnected) return setTimeout(listen, 50)
    const over = root.host.getRootNode()
    const on = (name, act) => over.addEventListener(name, act)
    on("pointermove", event => {  // not pointerover, which also comes as the page scrolls below a mouse that rests
      const found = find(event)
      if (event.pointerType !== "mouse" || found?.[0] === hovered) return
      hide()
      hovered = found?.[0]
      if (found) timer = setTimeout(() => show(...found), 500)
    })
    // No focusin comes here as the focus moves within one shadow root, but the key that moved it does.
    on("keyup", event => {
      if (event.key !== "Tab") return
      hide()
      const [at] = event.composedPath()
      const found = find(event)
      if (!found) return
      const drawn = at.matches(".bk-events")  // a picture, to which Bokeh gives no name
      if (drawn) at.setAttribute("role", "img")
      at.setAttribute(drawn ? "aria-label" : "aria-description", found[1])
      show(...found)
    })
    on("focusout", hide)
    on("pointerdown", hide)
    on("keydown", event => { if (event.key === "Escape") hide() })
    window.addEventListener("scroll", place)
  }
  model.on("tips", read)
  read()
  setTimeout(listen)
  return tip
}
"""
_TIPS_STYLE = """
:host { display: block; height: 0; }
.tip { position: fixed; z-index: 1000; width: max-content; max-width: min(320px, calc(100vw - 8px)); padding: 6px 9px;
  box-sizing: border-box; border-radius: 4px; background: #333; color: white; font: 12px/1.35 system-ui, sans-serif;
  pointer-events: none; }
.tip[hidden] { display: none; }
"""
# A slider reports the number of its move, and goes where the program says only once that has seen its last one.
_ROWS_SCRIPT = """
export function render({ model }) {
  const list = document.createElement("div")
  let inputs = new Map()

  const add = (parent, tag, attributes) => {
    const made = document.createElement(tag)
    for (const [name, value] of Object.entries(attributes)) made[name] = value
    parent.append(made)
    return made
  }

  const build = () => {
    list.replaceChildren()
    inputs = new Map()
    for (const { name, label, tip, end, choices } of JSON.parse(model.rows)) {
      const row = add(list, "div", { className: `row knob-${name}` })
      const words = add(row, "label", { textContent: label, htmlFor: end ? `slider-${name}` : `text-${name}` })
      const own = { count: 0 }
      const send = (what, value) => model.send_msg({ name, [what]: value, count: ++own.count })
      if (end) {
        own.slider = add(row, "input", { type: "range", id: `slider-${name}`, min: 0, max: end, step: 1 })
        own.slider.addEventListener("input", () => send("place", Number(own.slider.value)))
      }
      own.text = add(row, choices.length ? "select" : "input", { id: `text-${name}`, spellcheck: false })
      for (const choice of choices) add(own.text, "option", { value: choice, textContent: choice })
      own.text.addEventListener("change", () => send("text", own.text.value))
      for (const control of [own.slider, own.text]) control?.setAttribute("aria-description", tip)
      if (end) own.text.setAttribute("aria-label", label)
      else row.classList.add("wide")
      inputs.set(name, own)
    }
    show()
  }

  const show = () => {
    for (const [name, { text, place, count }] of Object.entries(JSON.parse(model.values))) {
      const own = inputs.get(name)
      if (!own) continue
      if (own.shown !== text) own.text.value = own.shown = text
      if (!own.slider) continue
      own.slider.setAttribute("aria-valuetext", text)
      if (count >= own.count) own.slider.value = place
    }
  }

  model.on("rows", build)
  model.on("values", show)
  build()
  return list
}
"""
_ROWS_STYLE = """
:host { display: block; }
.row { display: grid; grid-template-columns: minmax(0, 1fr) 84px; column-gap: 8px; align-items: center;
  margin: 0 0 4px; }
.row.wide { grid-template-columns: minmax(0, 1fr); }
label { grid-column: 1; font: 12px system-ui, sans-serif; color: #333; overflow-wrap: anywhere; }
input:not([type]), select { grid-column: 2; grid-row: 1 / span 2; width: 100%; height: 26px; padding: 0 4px;
  font: 12px system-ui, sans-serif; box-sizing: border-box; border: 1px solid #8a8a8a; border-radius: 4px;
  background: white; color: #222; }
.wide input:not([type]), .wide select { grid-column: 1; grid-row: auto; }
input[type=range] { grid-column: 1; width: 100%; height: 18px; margin: 0; accent-color: #1f6fb2; }
:focus-visible { outline: 2px solid #1f6fb2; outline-offset: 1px; }
@media (pointer: coarse), (max-width: 700px) {
  .row { grid-template-columns: minmax(0, 1fr) 120px; margin-bottom: 10px; }
  label { font-size: 14px; }
  input:not([type]), select { height: 40px; font-size: 16px; }
  input[type=range] { height: 36px; }
}
"""
_LEFT, _TALL, _LOW = 290, 235, 255  # pixels, for a page of 1280 by 800
NO_CHART_YET = quiet("the chart follows; the first of its kind is compiled ...")
ASK_FOR_CHART = quiet("drawn if you ask for it: nothing moves until it is there")
_STARTING = '<div class="quiet" id="verdict">compiling, the first time a few seconds ...</div>'
TIPS = {
    "pick-scheme": f"Congestion control of all flows; default: {DEFAULT}.",
    "pick-preset": "Named set of the scheme's and the marking's values; default: paper.",
    "pick-topology": f"Links and paths: all senders into one port, or links in a row; default: {TOPOLOGIES[0]}.",
    "keep": "Keep this setting in the pictures, dashed and grey, while you move on.",
    "swap": "Exchange the kept setting with the present one.",
    "drop": "Forget the kept setting.",
    "packets": "Run the present setting packet by packet, with two seeds; takes seconds to minutes.",
    "axis-x": "Value along the stability chart.",
    "axis-y": "Value up the stability chart.",
    "draw-chart": "Work out the stability chart of the present setting.",
    "more": "Less common values of NIC, marking and packets.",
    "code": "Program that makes these runs, roots and chart with fluidcc.",
    "save": "Save that program as a file.",
    "devices": "Read the marking, rate and timers that your devices are set to.",
    "switch-file": "SONiC's config_db.json of the switch; read, then deleted.",
    "nic-file": "Text of the NIC's settings, as its tools print them; read, then deleted.",
    "port": "Port of the switch; default: the one that marks worst, of those that are up.",
    "view-queue": "Queue of the most loaded link over time; range: over seeds. A click on the legend hides a line.",
    "view-rates": "Sending rate of a flow of each class (late flows red). A click on the legend hides a line.",
    "view-share": "Share of the run's second half that the queue spends at each length.",
    "view-roots": "Rightmost characteristic roots; right of the dashed line perturbations grow.",
    "view-chart": "Rightmost root over two values: black where it crosses the axis, grey without an equilibrium.",
    "load": "Show the setting of these files, and the audit's findings.",
}
VIEWS = ("view-queue", "view-rates", "view-share", "view-roots", "view-chart")
# A narrow page has the answer first, then what moves it, then the rest; a wide one has the sliders on the left.
_PAGE = f"""
:host {{
  display: grid !important;
  grid-template: "picks head" 52px "knobs head" auto "knobs rest" 1fr / {_LEFT}px minmax(0, 1fr);
  column-gap: 14px;
  min-width: 0 !important;
}}
.picks {{ grid-area: picks; }} .knobs {{ grid-area: knobs; }} .head {{ grid-area: head; }} .rest {{ grid-area: rest; }}
.picks, .knobs, .head, .rest {{ width: auto; min-width: 0 !important; align-self: start; justify-self: stretch; }}
@media (max-width: 700px) {{
  :host {{ grid-template: "picks" auto "head" auto "knobs" auto "rest" auto / minmax(0, 1fr); row-gap: 8px; }}
}}
"""


class Tips(JSComponent):
    """Show a control's tooltip while the mouse rests on it or the keyboard has reached it.

    Parameters
    ----------
    tips : str
        JSON: words by the CSS class of a control; set by `take`.
    """

    tips = param.String(default="{}")
    _esm = _TIPS_SCRIPT
    _stylesheets: ClassVar[list[str]] = [_TIPS_STYLE]

    def take(self, words: Mapping[str, str]) -> None:
        """Replace all tooltips."""
        self.tips = json.dumps(dict(words))


class Elements(JSComponent):
    """The rows in the browser; both texts are JSON, which arrives as it was sent."""

    rows = param.String(default="[]")
    values = param.String(default="{}")
    _esm = _ROWS_SCRIPT
    _stylesheets: ClassVar[list[str]] = [_ROWS_STYLE]


class Rows:
    """Sliders and texts of values, each pair following the other.

    Parameters
    ----------
    moved : callable
        ``moved(name, text)`` when a person moves a value.
    """

    def __init__(self, moved: Callable[[str, str], None]) -> None:
        self._moved = moved
        self._knobs: Mapping[str, Knob] = {}
        self._values: dict[str, dict[str, Any]] = {}
        self.view = Elements(sizing_mode="stretch_width", margin=0)
        self.view.on_msg(lambda event: self._on_move(event.data))

    @property
    def texts(self) -> dict[str, str]:
        """Texts that the rows show, by name."""
        return {name: value["text"] for name, value in self._values.items()}

    def take(self, knobs: Mapping[str, Knob], texts: Callable[[str], str]) -> None:
        """Show other values altogether."""
        self._knobs = knobs
        self._values = {name: self._value(name, texts(name), 0) for name in knobs}
        with param.parameterized.batch_call_watchers(self.view):
            self.view.rows = json.dumps([_row(knob) for knob in knobs.values()])
            self._send()

    def show(self, texts: Mapping[str, str]) -> None:
        """Follow values that came from elsewhere, or were typed; names of other rows are ignored."""
        for name in texts.keys() & self._knobs.keys():
            self._values[name] = self._value(name, texts[name], self._values[name]["count"])
        self._send()

    def _on_move(self, move: Mapping[str, Any]) -> None:
        """Take a person's move: the stop of a slider, or a text."""
        name = move["name"]
        if name not in self._knobs:  # of a scheme that was left while the move was on its way
            return
        knob, slid = self._knobs[name], "place" in move
        text = knob.stop_text(move["place"]) if slid else move["text"]
        place = move["place"] if slid else self._values[name]["place"]
        self._values[name] = {"text": text, "place": place, "count": move["count"]}
        self._send()
        self._moved(name, text)

    def _value(self, name: str, text: str, count: int) -> dict[str, Any]:
        knob = self._knobs[name]
        return {"text": text, "place": knob.nearest_stop(knob.read(text)), "count": count}

    def _send(self) -> None:
        self.view.values = json.dumps(self._values)


def _row(knob: Knob) -> dict[str, Any]:
    choices = [knob.text(choice) for choice in knob.spec.choices]
    end = max(len(knob.stops) - 1, 0)
    return {"name": knob.name, "label": knob.label, "tip": knob.tip, "end": end, "choices": choices}


class Board:
    """Widgets and figures of the page, laid out.

    Parameters
    ----------
    setting : Setting
        What the choices begin with.
    devices : Devices
    moved : callable
        ``moved(name, text)`` as a person moves a value.
    program : callable
        Gives the Python to be saved.
    """

    def __init__(
        self, setting: Setting, devices: Devices, moved: Callable[[str, str], None], program: Callable[[], str]
    ) -> None:
        self._pick(setting)
        self.front, self.more, self.tips = Rows(moved), Rows(moved), Tips(margin=0)
        self.fold = _card("more of NIC, marking, packets", "more", self.more.view)
        self.status, self.error = text(status("starting", 0)), text(error(""))
        self.verdict, self.numbers = text(_STARTING, min_height=20), text("", min_height=54)
        self.why, self.python = text(NO_CHART_YET), text("", sizing_mode="stretch_width")
        self.over_time = (QueuePlot(_TALL), RatePlot(_TALL), DistributionPlot(_LOW))
        self.roots, self.map = RootPlot(_LOW), ChartPlot(_LOW - 30)
        axis: dict[str, Any] = {"width": 148, "margin": (0, 2), "stylesheets": [SMALL]}
        self.x = pn.widgets.Select(name="chart across", css_classes=["axis-x"], **axis)
        self.y = pn.widgets.Select(name="chart up", css_classes=["axis-y"], **axis)
        small: dict[str, Any] = {"margin": (2, 4), "stylesheets": [SMALL]}
        self.keep_button = pn.widgets.Button(name="Keep beside", css_classes=["keep"], width=100, **small)
        self.swap_button = pn.widgets.Button(name="Swap", css_classes=["swap"], width=60, disabled=True, **small)
        self.drop_button = pn.widgets.Button(name="Drop", css_classes=["drop"], width=60, disabled=True, **small)
        self.packet_button = pn.widgets.Button(name="Run packets", css_classes=["packets"], width=100, **small)
        self.chart_button = pn.widgets.Button(name="Draw chart", css_classes=["draw-chart"], width=90, **small)
        self.progress = pn.indicators.Progress(value=0, max=100, width=110, height=10, visible=False, margin=(9, 4))
        saved: dict[str, Any] = {"filename": "explore.py", "label": "Save explore.py", "css_classes": ["save"]}
        download = pn.widgets.FileDownload(callback=lambda: io.StringIO(program()), width=140, **saved, **small)
        self.code = _card("Python that makes this", "code", download, self.python)
        title = "A switch's and a NIC's own configuration: where does it stand?"
        self.view = self._layout(_card(title, "devices", devices.view))

    def _pick(self, setting: Setting) -> None:
        """Build the choices of scheme, preset and topology; a scenario that was handed in has one of each."""
        given = setting.given is not None
        options = {"scheme": list(schemes()), "preset": preset_names(setting.scheme), "topology": list(TOPOLOGIES)}

        def choice(name: str, width: int) -> Any:
            value = getattr(setting, name)
            return pn.widgets.Select(
                name=name,
                options=[value] if given else options[name],
                value=value,
                disabled=given,
                css_classes=[f"pick-{name}"],
                width=width,
                margin=(0, 4),
                stylesheets=[SMALL],
            )

        self.scheme, self.preset, self.topology = (
            choice("scheme", 96), choice("preset", 82), choice("topology", 96),
        )  # fmt: skip

    def _layout(self, devices: Any) -> Any:
        wide: dict[str, Any] = {"sizing_mode": "stretch_width", "margin": 0}
        buttons = (self.keep_button, self.swap_button, self.drop_button, self.packet_button, self.progress)
        figures = (*self.over_time, self.roots, self.map)
        for kind, figure in zip(VIEWS, figures, strict=True):
            figure.plot.css_classes = [kind]
        queue, rates, share, roots, chart = (pn.pane.Bokeh(figure.plot, **wide) for figure in figures)
        chart = pn.Column(wrapped(self.x, self.y, self.chart_button), self.why, chart, **wide)
        picks = pn.Row(self.scheme, self.preset, self.topology, css_classes=["picks"], **wide)
        knobs = pn.Column(self.front.view, self.fold, css_classes=["knobs"], **wide)
        lines = (wrapped(*buttons, self.status), self.error, self.verdict, self.numbers)
        head = pn.Column(*lines, wrapped(queue, rates, least=380), css_classes=["head"], **wide)
        rest = pn.Column(wrapped(roots, chart, share, least=290), self.code, devices, css_classes=["rest"], **wide)
        page: dict[str, Any] = {"stylesheets": [_PAGE], "sizing_mode": "stretch_width", "margin": (4, 8)}
        return pn.Column(picks, knobs, head, rest, self.tips, **page)


def _card(title: str, kind: str, *parts: Any) -> Any:
    """Return a card that is folded until somebody opens it."""
    wide: dict[str, Any] = {"sizing_mode": "stretch_width", "margin": (6, 0)}
    return pn.Card(*parts, title=title, collapsed=True, css_classes=[kind], stylesheets=[FOCUS], **wide)
