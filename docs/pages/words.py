"""Small pieces of Markdown that pages of results share."""

from __future__ import annotations

import re
from typing import Any


def slug(paper: str) -> str:
    """A file's name for a paper."""
    return re.sub(r"[^a-z0-9]+", "-", paper.lower()).strip("-")


def number(value: Any) -> str:
    """A number as one reads it, four digits."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)


def escape(text: str) -> str:
    """Text that Markdown leaves as it is, in a table too."""
    return re.sub(r"([\\`*_{}\[\]<>|$#~^])", r"\\\1", text)


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    """Lines of a table."""
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return [*lines, *(f"| {' | '.join(row)} |" for row in rows), ""]


def values_table(values: dict[str, Any]) -> list[str]:
    """Names and numbers, nested ones as text."""
    return table(["", ""], [[f"`{name}`", escape(_short(value))] for name, value in values.items()])


def _short(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_short(item)}" for key, item in value.items())
    if isinstance(value, list):
        return "(" + ", ".join(_short(item) for item in value) + ")"
    return number(value)
