"""Rewrite the table of claims in docs/verify.md: run every proof and replace the text between the markers."""

from __future__ import annotations

from pathlib import Path

from fluidcc.proofs.verdict.claim import Result
from fluidcc.proofs.verdict.registry import verify

PAGE = Path(__file__).resolve().parents[2] / "docs" / "verify.md"
BEGIN, END = "<!-- begin table -->\n", "<!-- end table -->\n"


def row(result: Result) -> str:
    """One claim."""
    claim, found = result.claim, result.finding
    document = result.as_dict()
    notes = [
        document["reason"],
        document["conditions"],
        f"instead: {found.correction}" if document["correction"] else "",
    ]
    cells = (f"`{claim.name}`", claim.section, claim.text, found.verdict, "; ".join(filter(None, notes)))
    return "| " + " | ".join(cell.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*") for cell in cells) + " |"


def table(results: list[Result]) -> str:
    """A section for each paper."""
    lines: list[str] = []
    for paper in dict.fromkeys(result.claim.paper for result in results):
        lines += [
            f"### {paper}",
            "",
            "| name | section | claim | verdict | conditions, correction |",
            "|---|---|---|---|---|",
        ]
        lines += [row(result) for result in results if result.claim.paper == paper] + [""]
    return "\n".join(lines)


if __name__ == "__main__":
    before, fixed_point = PAGE.read_text(encoding="utf-8").split(BEGIN)
    PAGE.write_text(before + BEGIN + "\n" + table(verify()) + "\n" + END + fixed_point.split(END)[1], encoding="utf-8")
