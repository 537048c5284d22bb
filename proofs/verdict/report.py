"""Verdicts with their evidence, for a person to read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fluidcc.proofs.verdict.claim import AMBIGUOUS, CONDITIONAL, FALSE, HOLDS, UNDECIDED, UNTESTABLE, Result

_COLOURS = {
    HOLDS: "green",
    CONDITIONAL: "green",
    FALSE: "red",
    AMBIGUOUS: "yellow",
    UNTESTABLE: "yellow",
    UNDECIDED: "bold red",
}


def print_results(results: Iterable[Result]) -> list[Result]:
    """Print verdicts with their evidence for a person, each as it comes, and at the end how many there are of each.

    Returns
    -------
    list of Result
        All of them.
    """
    from rich.console import Console
    from rich.padding import Padding

    console = Console(highlight=False)
    printed = []

    def under(text: str) -> None:
        console.print(Padding(text, (0, 0, 0, 4)), markup=False)

    for result in results:
        printed.append(result)
        claim, found, document = result.claim, result.finding, result.as_dict()
        console.print(
            f"[{_COLOURS[found.verdict]}]{found.verdict}[/] [bold]{claim.name}[/] {claim.paper}, {claim.section}"
        )
        under(claim.text)
        if found.reason:
            under(f"no verdict: {found.reason}")
        elif found.missing:
            under(f"missing: {found.missing}")
        if document["conditions"]:
            under(f"conditions: {found.conditions}")
        if document["correction"]:
            under(f"instead: {found.correction}" + ("" if found.corrected else " (FAILS ITS OWN CHECK)"))
        if document["proved_by"]:
            under(f"proved by {document['proved_by']}, which Coq checks: make proofs")
        if len(found.readings) > 1:
            under("; ".join(f"{reading}: {'yes' if holds else 'no'}" for reading, holds in found.readings.items()))
        if found.evidence:
            under(", ".join(f"{key} = {_shown(value)}" for key, value in document["evidence"].items()))
    counts = {verdict: sum(r.finding.verdict == verdict for r in printed) for verdict in _COLOURS}
    console.print(", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count))
    return printed


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
