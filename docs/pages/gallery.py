"""The gallery: every figure that can be made, with its thumbnail, verdict and command."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection
from typing import Any

from docs.pages.found import Results, escape, number, slug, table, values_table
from fluidcc.proofs.verdict.figure import AGREES, DIFFERS, UNDECIDED, status

BADGES = {AGREES: "success", UNDECIDED: "warning", DIFFERS: "danger"}
VALUES = 40  # that a card shows


def page(figures: Results) -> str:
    """The page in Markdown."""
    said = Counter(map(status, figures.values()))
    lines = [
        "# Gallery",
        "",
        f"All {len(figures)} figures that `fluidcc reproduce` makes, with what its numbers say of the paper's: "
        f"{said[AGREES]} agree within tolerances that were stated before, {said[DIFFERS]} do not, and of "
        f"{said[UNDECIDED]} it is not decided: our runs have both answers in their interval. Each picture and number "
        "is from the command under it; a click on one enlarges it.",
        "",
    ]
    for paper in dict.fromkeys(figure["paper"] for figure in figures.values()):
        lines += [f"({slug(paper)})=", f"## {escape(paper)}", "", "::::{grid} 1 2 2 2", ":gutter: 3", ""]
        for figure in in_order([figure for figure in figures.values() if figure["paper"] == paper]):
            lines += _card(figure)
        lines += ["::::", ""]
    return "\n".join(lines) + "\n"


def in_order(figures: Collection[dict[str, Any]]) -> list[dict[str, Any]]:
    """Figures as the paper has them, 2 before 10; what it calls by no number comes after."""
    return sorted(figures, key=lambda figure: _place(figure["figure"]))


def _place(title: str) -> tuple[bool, list[tuple[bool, int, str]]]:
    parts = re.split(r"(\d+)", title)
    return not title.startswith("Figure "), [
        (not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in parts
    ]


def _card(figure: dict[str, Any]) -> list[str]:
    name = figure["name"]
    said = status(figure)
    badge = f"{{bdg-{BADGES[said]}}}`{said}`"
    if not figure["expected"]:
        badge = "{bdg-secondary}`nothing to compare`"
    quick = " --quick" if figure["quick"] else ""
    lines = [
        f":::{{grid-item-card}} {escape(figure['figure'])}",
        "",
        f"[![{escape(figure['figure'])}](../results/figures/{name}.webp)](../results/figures/{name}.webp)",
        "",
        f"{badge} `fluidcc reproduce {name}{quick}`, {figure['seconds']:.0f} s",
        "",
        f"**Sample**: {escape(figure.get('sample') or 'nothing is drawn')}.",
        "",
        "```{dropdown} Numbers",
        "",
    ]
    checks = [
        [f"`{key}`", number(figure["values"].get(key)), _expected(check), escape(check["why"])]
        for key, check in figure["expected"].items()
    ]
    if checks:
        lines += table(["value", "found", "expected", "why"], checks)
    rest = {key: value for key, value in figure["values"].items() if key not in figure["expected"]}
    if rest:
        lines += values_table(dict(list(rest.items())[:VALUES]))
    lines += [f"- {escape(note)}" for note in figure["notes"]]
    return [*lines, "```", ":::", ""]


def _expected(check: dict[str, Any]) -> str:
    if isinstance(check["value"], bool):
        return number(check["value"])
    return f"{number(check['value'])} ± {check['tolerance']:.2g}"
