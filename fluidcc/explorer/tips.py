"""Tooltips of all controls of a page, by mouse and by keyboard."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import ClassVar

import param
from panel.custom import JSComponent

# Events come through the shadow roots of all widgets with the path that they took, so one listener serves them all.
_SCRIPT = """
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
_STYLE = """
:host { display: block; height: 0; }
.tip { position: fixed; z-index: 1000; width: max-content; max-width: min(320px, calc(100vw - 8px)); padding: 6px 9px;
  box-sizing: border-box; border-radius: 4px; background: #333; color: white; font: 12px/1.35 system-ui, sans-serif;
  pointer-events: none; }
.tip[hidden] { display: none; }
"""


class Tips(JSComponent):
    """Show a control's tooltip while the mouse rests on it or the keyboard has reached it.

    Parameters
    ----------
    tips : str
        JSON: words by the CSS class of a control; set by `take`.
    """

    tips = param.String(default="{}")
    _esm = _SCRIPT
    _stylesheets: ClassVar[list[str]] = [_STYLE]

    def take(self, words: Mapping[str, str]) -> None:
        """Replace all tooltips."""
        self.tips = json.dumps(dict(words))
