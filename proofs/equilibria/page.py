"""Rewrite the formulas in docs/theory/equilibria.md: after each marker ``<!-- NAME -->`` the one of that name."""

from __future__ import annotations

import re
from pathlib import Path

import sympy

from fluidcc.proofs.equilibria.formulas import formulas

PAGE = Path(__file__).resolve().parents[2] / "docs" / "theory" / "equilibria.md"
BLOCK = re.compile(r"<!-- ([a-z_.]+) -->\n\$\$\n(?:[^$]+\n)?\$\$\n")


def written(page: str) -> str:
    """The page with the formulas of the code.

    Raises
    ------
    KeyError
        If a marker names none.
    """
    found = formulas()
    return BLOCK.sub(lambda m: f"<!-- {m[1]} -->\n$$\n{sympy.latex(found[m[1]])}\n$$\n", page)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
