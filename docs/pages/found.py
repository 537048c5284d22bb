"""Pages of findings: every claim with its verdict, as `fluidcc verify` gave it, and an erratum for each paper."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import fluidcc
from fluidcc.proofs.verdict.claim import AMBIGUOUS, CONDITIONAL, FALSE, HOLDS
from fluidcc.proofs.verdict.theorems import Theorem, proof_of, theorems

SHOWN = 6  # numbers of the evidence
VERDICTS = {
    "holds": ("holds", "success"),
    "holds-with-conditions": ("with conditions", "info"),
    "false-as-printed": ("false as printed", "danger"),
    "ambiguous": ("ambiguous", "warning"),
    "not-testable-here": ("not testable here", "secondary"),
    "undecided": ("undecided", "warning"),
}
WAYS = 4  # shown of a claim's quantities in two ways
Results = dict[str, dict[str, Any]]


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


def erratum(paper: str, claims: Iterable[Mapping[str, Any]]) -> str:
    """Text of a paper's erratum in Markdown: what is false as printed or needs a condition, and what is true instead.

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


def pages(claims: Results, figures: Results) -> dict[str, str]:
    """The overview and a page for each paper, by file name."""
    papers = list(dict.fromkeys(claim["paper"] for claim in claims.values()))
    made = {f"found-{slug(paper)}": _paper(paper, claims, figures) for paper in papers}
    made |= {f"erratum-{slug(paper)}": erratum(paper, claims.values()) for paper in with_errata(claims)}
    return {"found": _overview(papers, claims, figures), **made}


def with_errata(claims: Results) -> list[str]:
    """List the papers of which a statement is false as printed."""
    return list(dict.fromkeys(claim["paper"] for claim in claims.values() if claim["verdict"] == "false-as-printed"))


def _overview(papers: list[str], claims: Results, figures: Results) -> str:
    counts = Counter((claim["paper"], claim["verdict"]) for claim in claims.values())
    total = Counter(claim["verdict"] for claim in claims.values())
    used = [verdict for verdict in VERDICTS if total[verdict]]
    rows = [
        [f"[{escape(paper)}](found-{slug(paper)}.md)"]
        + [str(counts[paper, verdict] or "") for verdict in used]
        + [_agreeing([figure for figure in figures.values() if figure["paper"] == paper])]
        for paper in papers
    ]
    rows.append(["**all**", *(f"**{total[verdict]}**" for verdict in used), f"**{_agreeing(figures.values())}**"])
    wrong = [
        [
            f"[{escape(claim['paper'].split(',')[0])}, {escape(claim['section'])}]"
            f"(found-{slug(claim['paper'])}.md#{claim['name']})",
            escape(claim["claim"]),
            escape(claim["correction"] or "no correction is known"),
        ]
        for claim in claims.values()
        if claim["verdict"] == "false-as-printed"
    ]
    lines = [
        "# What we found",
        "",
        f"Of {len(claims)} claims that were checked, {total['holds']} hold as printed, "
        f"{total['holds-with-conditions']} under conditions that the text does not state, and "
        f"{total['false-as-printed']} are false as printed. No verdict is written by hand: the build takes this page "
        "from what `fluidcc verify` and `fluidcc reproduce` found, and fails if a check has changed since.",
        "",
        *table(["paper", *(VERDICTS[verdict][0] for verdict in used), "figures that agree"], rows),
        "```{toctree}",
        ":hidden:",
        "",
        *(f"found-{slug(paper)}" for paper in papers),
        *(f"erratum-{slug(paper)}" for paper in with_errata(claims)),
        "```",
        "",
        "## What is false as printed, and what to put in its place",
        "",
        *table(["where", "claim", "instead"], wrong),
        "One page for each paper, to cite: "
        + ", ".join(f"[{escape(paper)}](erratum-{slug(paper)}.md)" for paper in with_errata(claims))
        + ".",
        "",
        "A claim is false if it is under every reading of its words; how each was read, two independent ways to its "
        "numbers, and the sample are on the papers' pages. The arguments in words, and what packets add: "
        "[DCQCN](../findings.md), [HPCC](../findings_hpcc.md), [ACC](../findings_acc.md), "
        "[fairness](../findings_fairness.md). How verdicts come about: [claims, checked](../verify.md).",
    ]
    return "\n".join(lines) + "\n"


def _agreeing(figures: Collection[dict[str, Any]]) -> str:
    return f"{sum(figure['agrees'] for figure in figures)} of {len(figures)}" if figures else ""


def _paper(paper: str, claims: Results, figures: Results) -> str:
    own = [claim for claim in claims.values() if claim["paper"] == paper]
    drawn = [figure for figure in figures.values() if figure["paper"] == paper]
    lines = [f"# {escape(paper)}", ""]
    rows = [
        [f"[{escape(claim['section'])}](#{claim['name']})", escape(claim["claim"]), VERDICTS[claim["verdict"]][0]]
        for claim in own
    ]
    lines += table(["section", "claim", "verdict"], rows)
    if drawn:
        lines += [f"Its figures, drawn again: [gallery](gallery.md#{slug(paper)}).", ""]
    for claim in own:
        lines += _claim(claim)
    return "\n".join(lines) + "\n"


def _claim(claim: dict[str, Any]) -> list[str]:
    word, colour = VERDICTS[claim["verdict"]]
    proof = proof_of(claim["name"])
    lines = [
        f"({claim['name']})=",
        f"## {escape(claim['section'])}: `{claim['name']}`",
        "",
        f"> {escape(claim['claim'])}",
        "",
        f"{{bdg-{colour}}}`{word}` {escape(_why(claim))}",
        "",
        *([f"**Proved** by [`{proof}`](../theorems.md), which Coq checks.", ""] if proof else []),
        f"**Sample**: {escape(claim.get('sample') or 'nothing is drawn; there is no sampling error')}.",
        "",
    ]
    if len(claim["readings"]) > 1:
        lines += table(
            ["reading", "holds"], [[escape(name), number(holds)] for name, holds in claim["readings"].items()]
        )
    lines += [":::{dropdown} Numbers", ""]
    if claim["ways"]:
        rows = [
            [escape(way["what"]), number(way["first"]), number(way["second"]), f"{way['tolerance']:.2g}"]
            for way in claim["ways"][:WAYS]
        ]
        lines += table(["in two independent ways", "one", "the other", "tolerance"], rows)
        if len(claim["ways"]) > WAYS:
            lines += [f"And {len(claim['ways']) - WAYS} more.", ""]
    if claim["evidence"]:
        lines += values_table(claim["evidence"])
    return [*lines, ":::", "", f"    fluidcc verify {claim['name']}", ""]


def _why(claim: dict[str, Any]) -> str:
    """What goes with the verdict: conditions, the correction, what is missing."""
    parts = [claim["conditions"], claim["correction"] and f"Instead: {claim['correction']}", claim["reason"]]
    return ". ".join(part for part in parts if part)
