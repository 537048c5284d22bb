"""Verdicts with their evidence, for a person to read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fluidcc.claims.claim import Result


def print_results(results: Sequence[Result]) -> None:
    """Print verdicts with their evidence for a person."""
    from rich.console import Console
    from rich.padding import Padding

    console = Console(highlight=False)
    colours = {"holds": "green", "holds-with-conditions": "green", "false-as-printed": "red", "ambiguous": "yellow"}

    def under(text: str) -> None:
        console.print(Padding(text, (0, 0, 0, 4)), markup=False)

    for result in results:
        claim, found, document = result.claim, result.finding, result.as_dict()
        console.print(
            f"[{colours[found.verdict]}]{found.verdict}[/] [bold]{claim.name}[/] {claim.paper}, {claim.section}"
        )
        under(claim.text)
        if document["conditions"]:
            under(f"conditions: {found.conditions}")
        if document["correction"]:
            under(f"instead: {found.correction}" + ("" if found.corrected else " (FAILS ITS OWN CHECK)"))
        if len(found.readings) > 1:
            under("; ".join(f"{reading}: {'yes' if holds else 'no'}" for reading, holds in found.readings.items()))
        under(", ".join(f"{key} = {_shown(value)}" for key, value in document["evidence"].items()))
        for way in found.ways:
            if not way.agrees:
                under(f"THE TWO WAYS DISAGREE: {way.what}: {way.first!r} against {way.second!r}")
    counts = {verdict: sum(r.finding.verdict == verdict for r in results) for verdict in colours}
    console.print(", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count))


def _shown(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "undefined"}[value]
    if isinstance(value, float):
        return f"{value:.7g}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_shown, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_shown(item)}" for key, item in value.items()) + "}"
    return str(value)
