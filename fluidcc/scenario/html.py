"""Tables that notebooks show: plain HTML, with every text escaped, since names are the user's."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

_CELL = "text-align:left;vertical-align:top;padding:2px 12px 2px 0"


def table(title: str, rows: Sequence[Sequence[Any]], header: Sequence[str] = ()) -> str:
    """A compact table; the first column is bold. Titles and cells are text, never HTML."""
    head = "".join(f'<th style="{_CELL}">{escape(str(cell))}</th>' for cell in header)
    body = "".join(
        "<tr>"
        + "".join(
            f'<{"th" if k == 0 else "td"} style="{_CELL}">{escape(str(cell))}</{"th" if k == 0 else "td"}>'
            for k, cell in enumerate(row)
        )
        + "</tr>"
        for row in rows
    )
    top = f"<thead><tr>{head}</tr></thead>" if header else ""
    return f"<div><strong>{escape(title)}</strong><table>{top}<tbody>{body}</tbody></table></div>"


def folded(title: str, content: str) -> str:
    """HTML that opens on a click; ``content`` is HTML."""
    return f"<details><summary>{escape(title)}</summary>{content}</details>"
