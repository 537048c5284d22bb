"""The page of theorems names theorems that there are, and all that prove a claim."""

from __future__ import annotations

import re

from fluidcc.proofs.verdict.theorems import sources, theorems
from tests.docs.printed import ROOT

PAGE = (ROOT / "docs" / "theorems.md").read_text(encoding="utf-8")
NAMES = set(re.findall(r"`(\w+\.\w+\.\w+)`", PAGE))


def test_theorems_on_the_page_exist() -> None:
    """Notice a theorem that was renamed or moved."""
    assert NAMES
    assert sorted(NAMES - set(theorems())) == []


def test_each_claim_has_its_theorem_on_the_page() -> None:
    """Notice a claim whose theorem a reader of the page does not find."""
    assert sorted(one.name for one in theorems().values() if one.claims and one.name not in NAMES) == []


def test_each_paper_with_theorems_has_a_table() -> None:
    """Notice theorems about a paper of which the page says nothing, and a name in another paper's table."""
    tables = [set(re.findall(r"`(\w+)\.\w+\.\w+`", part)) for part in PAGE.split("\n## ")[1:-1]]
    assert all(len(folders) == 1 for folders in tables)
    proved = {name.partition(".")[0] for name in theorems()}
    assert set().union(*tables) == proved <= {name.partition(".")[0] for name in sources()}
