"""CITATION.cff says what pyproject.toml says, and names the papers that claims and figures come from."""

from __future__ import annotations

import datetime
import tomllib
from pathlib import Path
from typing import Any

import pytest

from fluidcc.proofs import papers

yaml = pytest.importorskip("yaml", reason="needs PyYAML")
ROOT = Path(__file__).parents[1]
CITATION: dict[str, Any] = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
# Of version 1.2.0 of the format: what it must have, and what a reference must have.
REQUIRED = {"cff-version", "message", "title", "authors"}
OF_REFERENCE = {"type", "title", "authors"}
PAPERS = (papers.DCQCN, papers.HPCC, papers.ACC)  # with a conference in their names


def test_it_says_what_the_project_says() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert CITATION["version"] == project["version"]
    assert CITATION["license"] == project["license"]
    assert CITATION["authors"] == project["authors"]
    assert CITATION["title"].startswith(project["name"])


def test_it_keeps_to_the_format() -> None:
    assert CITATION["cff-version"] == "1.2.0"
    assert CITATION.keys() >= REQUIRED
    assert CITATION["type"] == "software"
    assert isinstance(CITATION["date-released"], datetime.date)
    for reference in CITATION["references"]:
        assert reference.keys() >= OF_REFERENCE, reference
        assert all(author.keys() == {"given-names", "family-names"} for author in reference["authors"])
        assert all(isinstance(author[key], str) for author in reference["authors"] for key in author)


def test_it_names_the_papers() -> None:
    conferences = {each["conference"]["name"] for each in CITATION["references"] if "conference" in each}
    assert {paper.partition(", ")[2] for paper in PAPERS} <= conferences
    assert len(CITATION["references"]) == 5
