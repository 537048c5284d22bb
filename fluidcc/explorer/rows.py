"""Rows of values, each a label, a slider and a text, as elements of the browser's own."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import param
from panel.custom import JSComponent

from fluidcc.explorer.settings import Knob

# A slider reports the number of its move, and goes where the program says only once that has seen its last one.
_SCRIPT = """
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
_STYLE = """
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


class Elements(JSComponent):
    """The rows in the browser; both texts are JSON, which arrives as it was sent."""

    rows = param.String(default="[]")
    values = param.String(default="{}")
    _esm = _SCRIPT
    _stylesheets: ClassVar[list[str]] = [_STYLE]


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
