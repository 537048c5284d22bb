"""Notes on a request's sources: each is told once, however often a scenario is made of it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from fluidcc.cli.request import Request, scenario_of


def test_defaults_that_stand_in_are_told_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A search makes a scenario for each of its runs, of copies: its log had the note a thousand times."""
    file = tmp_path / "nic.txt"
    file.write_text("rpg_ai_rate = 40\n")
    request = Request("dcqcn", sources=[str(file)])
    for flows in (2, 4, 4):
        scenario_of(dataclasses.replace(request, flows=flows))
    assert capsys.readouterr().err.count("NVIDIA's defaults stand in for") == 1
    scenario_of(Request("dcqcn", sources=[str(file)]))
    assert "NVIDIA's defaults stand in for" in capsys.readouterr().err
