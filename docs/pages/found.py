"""What we found: every claim with its verdict, of the results that `fluidcc verify` gave."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any

from docs.pages import errata
from docs.pages.words import escape, number, slug, table, values_table
from fluidcc.proofs.verdict.theorems import proof_of

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


def pages(claims: Results, figures: Results) -> dict[str, str]:
    """The overview and a page for each paper, by file name."""
    papers = list(dict.fromkeys(claim["paper"] for claim in claims.values()))
    made = {f"found-{slug(paper)}": _paper(paper, claims, figures) for paper in papers}
    made |= {f"erratum-{slug(paper)}": errata.page(paper, claims.values()) for paper in with_errata(claims)}
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
