"""Errata of the papers: what is false as printed or needs a condition, and what is true instead, one page each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import fluidcc
from docs.pages.words import escape, number, table
from fluidcc.proofs.verdict.claim import AMBIGUOUS, CONDITIONAL, FALSE, HOLDS
from fluidcc.proofs.verdict.theorems import Theorem, proof_of, theorems

SHOWN = 6  # numbers of the evidence


def page(paper: str, claims: Iterable[Mapping[str, Any]]) -> str:
    """Text of a paper's erratum in Markdown.

    Parameters
    ----------
    paper : str
    claims : iterable of mapping
        Results of its claims, as ``Result.as_dict`` or ``docs/results`` has them.
    """
    own = [claim for claim in claims if claim["paper"] == paper]
    wrong = [claim for claim in own if claim["verdict"] in (FALSE, AMBIGUOUS)]
    bound = [claim for claim in own if claim["verdict"] == CONDITIONAL]
    right = [claim for claim in own if claim["verdict"] == HOLDS and proof_of(claim["name"])]
    lines = [
        f"# Erratum: {escape(paper)}",
        "",
        f"{len(own)} statements were checked: {len(wrong)} are false as printed, {len(bound)} hold under a condition "
        "that the text does not state. This is ours, not the authors'. Sections and equations are the paper's; we had "
        "its text without page numbers.",
        "",
        f"Cite as: *Erratum to {escape(paper)}*, fluidcc {fluidcc.__version__}.",
        "",
    ]
    if wrong:
        lines += ["## False as printed", ""]
        for claim in wrong:
            lines += _entry(claim)
    if bound:
        lines += ["## True under a condition", "", "`fluidcc verify NAME` checks one and shows its numbers.", ""]
        rows = [
            [escape(claim["section"]), escape(claim["claim"]), escape(claim["conditions"]), _named(claim)]
            for claim in bound
        ]
        lines += table(["section", "statement", "condition", "name, and theorem"], rows)
    if right:
        lines += ["## True, and proved in general", ""]
        rows = [[escape(claim["section"]), escape(claim["claim"]), _named(claim)] for claim in right]
        lines += table(["section", "statement", "name, and theorem"], rows)
    return "\n".join(lines).rstrip() + "\n"


def _entry(claim: Mapping[str, Any]) -> list[str]:
    numbers = [
        f"{name} = {number(value)}" for name, value in claim["evidence"].items() if isinstance(value, int | float)
    ]
    evidence = "; ".join(filter(None, [claim.get("sample"), *numbers[:SHOWN]])) or "none but the argument"
    theorem = _theorem(claim)
    return [
        f"### {escape(claim['section'])}",
        "",
        f"> {escape(claim['claim'])}",
        "",
        f"- **Instead**: {escape(claim['correction'] or claim['conditions'] or 'no correction is known')}",
        f"- **Evidence**: {escape(evidence)}",
        *([f"- **Proof** (Coq): `{theorem.name}`. {escape(theorem.says)}"] if theorem else []),
        f"- **Command**: `fluidcc verify {claim['name']}`",
        "",
    ]


def _named(claim: Mapping[str, Any]) -> str:
    theorem = _theorem(claim)
    return f"`{claim['name']}`" + (f"; `{theorem.name}`" if theorem else "")


def _theorem(claim: Mapping[str, Any]) -> Theorem | None:
    name = proof_of(claim["name"])
    return theorems()[name] if name else None
