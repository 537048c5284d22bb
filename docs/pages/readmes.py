"""Write proofs/PAPER/README.md: claim by claim and figure by figure what was found, with the command; and ERRATUM.md.

    python -m docs.pages.readmes

From `docs/results`, as the pages of the documentation; `make results` does it too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import fluidcc.proofs
from docs.pages.gallery import in_order
from fluidcc.proofs import papers
from fluidcc.proofs.verdict.figure import status
from fluidcc.proofs.verdict.registry import homes
from fluidcc.proofs.verdict.theorems import theorems

PROOFS = Path(str(fluidcc.proofs.__file__)).parent  # in a checkout a link to proofs/
# Title and subject of each folder; a claim of another paper than the title says which.
FOLDERS = {
    "acc": (papers.ACC, "Algorithm 1, its appendix, and the figures of its evaluation."),
    "dcqcn": (papers.DCQCN, "The fluid model's fixed point and stability, thresholds, and the paper's figures."),
    "delay_based": ("Delay-based schemes", "Oscillation of TIMELY, Swift and DCTCP: figures of no single paper."),
    "equilibria": ("Equilibria", "Where schemes settle, derived by SymPy, against the engines."),
    "fairness": (papers.VAI, "Variable additive increase and sampling frequency, on HPCC and Swift."),
    "hpcc": (papers.HPCC, "The appendix's lemmas, section by section the paper's numbers, and its figures."),
    "hpccpp": (papers.HPCCPP, "MultiQ and receiver-based HPCC."),
    "shared": ("Several papers", "Claims of several papers on one table, and what figures share."),
}


def claim_row(claim: Mapping[str, Any], paper: str) -> str:
    """Make a claim's row from its result, as ``Result.as_dict`` or ``docs/results`` has it."""
    instead = f"instead: {claim['correction']}" if claim["correction"] else ""
    notes = "; ".join(filter(None, (claim["reason"], claim["conditions"], instead)))
    where = claim["section"] if claim["paper"] == paper else f"{claim['paper']}: {claim['section']}"
    return _row(f"`{claim['name']}`", where, claim["claim"], claim["verdict"], notes, _file("claim", claim["name"]))


def figure_row(figure: Mapping[str, Any]) -> str:
    """Make a figure's row from its result."""
    differ = ", ".join(name for name, check in figure["expected"].items() if not _holds(figure["values"], name, check))
    said = status(figure) if figure["expected"] else "nothing to compare"
    return _row(f"`{figure['name']}`", figure["figure"], said, differ, _file("reproduces", figure["name"]))


def page(folder: str, claims: Iterable[Mapping[str, Any]], figures: Iterable[Mapping[str, Any]]) -> str:
    """Text of a folder's README."""
    paper, about = FOLDERS[folder]
    lines = [f"# {paper}", "", about, ""]
    lines += ["Made by `python -m docs.pages.readmes` of what the commands below gave; older results are refused."]
    if claims := list(claims):
        lines += ["", "## Claims", "", "`fluidcc verify NAME` checks one and shows its numbers.", ""]
        lines += ["| name | section | claim | verdict | conditions, correction | file |", "|---|---|---|---|---|---|"]
        lines += [claim_row(claim, paper) for claim in claims]
    if own := [theorem for theorem in theorems().values() if theorem.name.startswith(f"{folder}.")]:
        lines += ["", "## Theorems", "", "Coq checks them for all networks and parameters: `make proofs`.", ""]
        lines += ["| theorem | what it says | claim |", "|---|---|---|"]
        lines += [_row(f"`{one.name}`", one.says, ", ".join(f"`{name}`" for name in one.claims)) for one in own]
    if figures := list(figures):
        lines += ["", "## Figures", "", "`fluidcc reproduce NAME` makes one, with its data.", ""]
        lines += ["| name | figure | our numbers | which are not as expected | file |", "|---|---|---|---|---|"]
        lines += [figure_row(figure) for figure in in_order(figures)]
    return "\n".join(lines) + "\n"


def write() -> None:
    """Write every folder's README, and each paper's erratum."""
    from docs.pages.found import erratum, with_errata
    from docs.pages.results import CLAIMS, FIGURES, load

    found = {"claim": load(CLAIMS), "reproduces": load(FIGURES)}
    for folder in FOLDERS:
        own = {
            kind: [results[name] for name, home in homes(kind).items() if home.split(".")[2] == folder]
            for kind, results in found.items()
        }
        (PROOFS / folder / "README.md").write_text(page(folder, own["claim"], own["reproduces"]), encoding="utf-8")
        paper = FOLDERS[folder][0]
        if paper in with_errata(found["claim"]):
            text = erratum(paper, found["claim"].values())
            (PROOFS / folder / "ERRATUM.md").write_text(text, encoding="utf-8")


def _file(kind: str, name: str) -> str:
    return f"`{homes(kind)[name].rpartition('.')[2]}.py`"


def _holds(values: Mapping[str, Any], name: str, check: Mapping[str, Any]) -> bool:
    from fluidcc.proofs.verdict.figure import Check

    return Check(**check).holds(values[name])


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*") for cell in cells) + " |"


if __name__ == "__main__":
    write()
