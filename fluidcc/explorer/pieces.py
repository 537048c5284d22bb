"""Texts and widgets that the explorer's page is made of."""

from __future__ import annotations

import html
from typing import Any

import panel as pn

from fluidcc import units
from fluidcc.errors import InputError
from fluidcc.explorer.answers import Answer
from fluidcc.explorer.views import Run

METRICS = {
    "queue_mean": ("mean queue", units.SIZE),
    "queue_p99": ("99th percentile", units.SIZE),
    "queue_max": ("largest queue", units.SIZE),
    "utilisation": ("utilisation", ""),
    "jain": ("Jain's index", ""),
}
STYLE = """
:host, .bk-root { font-family: system-ui, sans-serif; }
table.numbers { border-collapse: collapse; font: 12px system-ui, sans-serif; color: #333; }
table.numbers td, table.numbers th { padding: 1px 14px 1px 0; text-align: right; font-variant-numeric: tabular-nums; }
table.numbers th { font-weight: 600; color: #666; }
table.numbers td:first-child { text-align: left; font-weight: 600; }
.verdict { font: 13px system-ui, sans-serif; margin: 0 0 2px; }
.stable { color: #2166ac; font-weight: 600; } .unstable { color: #b2182b; font-weight: 600; }
.error { color: #b2182b; background: #fdecea; padding: 4px 8px; border-radius: 4px; font: 13px system-ui, sans-serif; }
.quiet { color: #666; font: 12px system-ui, sans-serif; }
.finding { font: 12px system-ui, sans-serif; margin: 2px 0; } .bad { color: #b2182b; } .warn { color: #9a6700; }
@media (max-width: 700px) {
  table.numbers td, table.numbers th { padding-right: 6px; }
}
pre.python { font: 12px ui-monospace, monospace; background: #f6f6f6; padding: 8px; overflow: auto; margin: 0; }
"""
FOCUS = ":focus-visible { outline: 2px solid #1f6fb2 !important; outline-offset: 1px; }"
TOUCH = "@media (pointer: coarse), (max-width: 700px)"  # where a control has to be as tall as a thumb
SMALL = f"""
.bk-input {{ height: 26px; min-height: 26px; padding: 0 4px; font: 12px system-ui, sans-serif; }}
.bk-btn {{ height: 26px; padding: 2px 8px; font: 12px system-ui, sans-serif; line-height: 18px; }}
label {{ font: 12px system-ui, sans-serif; color: #333; margin: 0; }}
.bk-input-group {{ gap: 0; }}
{FOCUS}
{TOUCH} {{
  .bk-input {{ min-height: 40px; font-size: 16px; }}
  .bk-btn {{ height: 40px; font-size: 14px; }}
}}
"""


def text(content: str, **options: Any) -> Any:
    """A piece of HTML."""
    return pn.pane.HTML(content, stylesheets=[STYLE], margin=(0, 5), **options)


def wrapped(*parts: Any, least: int = 0) -> Any:
    """Return a row that goes on in a next line where parts find no room; with `least` [pixels] they share each line."""
    share = f":host > * {{ flex: 1 1 {least}px; min-width: 0 !important; }}" if least else ""
    style = f":host {{ flex-wrap: wrap !important; min-width: 0 !important; }} {share}"  # Panel's would be of one line
    return pn.Row(*parts, stylesheets=[style], sizing_mode="stretch_width", margin=0)


def verdict(now: Answer) -> str:
    """The roots' verdict, in a line; pale while it is that of the setting before."""
    if now.roots is None:
        return '<div class="verdict quiet" id="verdict">roots ...</div>'
    kind = {True: "stable", False: "unstable", None: "quiet"}[now.roots.stable]
    return f'<div class="verdict {kind}" id="verdict">{html.escape(now.roots.why)}</div>'


def numbers_table(now: Answer, packets: Run | None, kept: Answer | None) -> str:
    """Numbers of the second half: an engine in each row, what is kept below."""
    rows: list[tuple[str, Run | None]] = [("fluid", now.fluid), ("hybrid", now.hybrid), ("packets", packets)]
    if kept is not None:
        rows += [("kept fluid", kept.fluid), ("kept hybrid", kept.hybrid)]
    head = "".join(f"<th>{name}</th>" for name, _ in METRICS.values())
    body = "".join(_row(name, run) for name, run in rows if run is not None)
    note = f'<div class="quiet">{html.escape(now.hybrid_why)}</div>' if now.hybrid_why else ""
    old = "" if kept is None else f'<div class="quiet">kept: {html.escape(kept.setting.title())}</div>'
    return f'<table class="numbers"><tr><th></th>{head}</tr>{body}</table>{note}{old}'


def _row(name: str, run: Run) -> str:
    cells = []
    for key, (_, dimension) in METRICS.items():
        value = run.metrics[key]
        shown = units.show(value, dimension) if dimension else f"{value:.4f}"
        cells.append(f'<td id="{name.replace(" ", "-")}-{key}" data-value="{value!r}">{shown}</td>')
    return f"<tr><td>{name}</td>{''.join(cells)}</tr>"


def status(words: str, serial: int, seconds: float | None = None, *, whole: bool = False) -> str:
    """Render what the page is doing; tests read how long an answer took, and whether the roots are in it."""
    took = "" if seconds is None else f' data-ms="{1e3 * seconds:.1f}"'
    took += f' data-whole="{serial}"' if whole else ""
    return f'<span id="status" class="quiet" data-serial="{serial}"{took}>{html.escape(words)}</span>'


def quiet(words: str, name: str = "", serial: int = 0) -> str:
    """Render a remark."""
    named = f' id="{name}" data-serial="{serial}"' if name else ""
    return f'<div class="quiet"{named}>{html.escape(words)}</div>'


def words_of(failed: Exception | None) -> str:
    """Return the text for an error; one that is not ours is named."""
    return str(failed) if isinstance(failed, InputError) else f"{type(failed).__name__}: {failed}"


def error(message: str) -> str:
    """Render why a value was refused, in the words of the library."""
    return f'<div class="error" id="error">{html.escape(message)}</div>' if message else '<div id="error"></div>'
