"""``fluidcc verify``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fluidcc.cli import options as o
from fluidcc.cli import output

if TYPE_CHECKING:
    from fluidcc.verify import Result


def command(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME ...]", help="Claims; all if none.")] = None,
    listed: Annotated[bool, typer.Option("--list", help="Only name the claims.")] = False,
    json: o.Json = False,
) -> int:
    """Check the papers' claims and say which hold; exit status 1 if one is computed in two ways that disagree."""
    from fluidcc.verify import claims, verify

    if listed:
        known = claims()
        if json:
            output.print_json({"claims": [one.as_dict() for one in known.values()]})
        else:
            rows = [(one.name, f"{one.paper}, {one.section}: {one.text}") for one in known.values()]
            output.print_table("claims", rows)
        return 0
    results = verify(names or ())
    if json:
        output.print_json({"claims": [result.as_dict() for result in results]})
    else:
        print_results(results)
    return 0 if all(result.finding.agrees for result in results) else 1


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
