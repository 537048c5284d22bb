"""Runs that are kept in a folder: read back as they were, not run again, and run again where something changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import fluidcc as fc
from fluidcc.workloads.collectives import study

STAR = "leaf-spine:1x1x4"


def runs(folder: Path, **options: Any) -> Any:
    given = {"bytes": "80KB", "seeds": 2, "jobs": 2, "separately": True, "folder": folder, **options}
    return fc.collective("all-reduce", STAR, "none,hpcc", **given)


def test_what_is_kept_is_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = runs(tmp_path)
    assert len(list(tmp_path.glob("all-reduce-*.nc"))) == 4

    def never(*given: Any, **options: Any) -> Any:
        raise AssertionError("is run again")

    with monkeypatch.context() as patch:
        patch.setattr(study, "run", never)
        again = runs(tmp_path)
        for changed in ({"bytes": "84KB"}, {"seeds": [3]}, {"engine": "fluid", "unchecked": True}, {"pfc": None}):
            with pytest.raises(AssertionError, match="run again"):
                runs(tmp_path, **changed)
        patch.setattr(study, "code", lambda folder: "another version")
        with pytest.raises(AssertionError, match="run again"):
            runs(tmp_path)
    assert again.as_dict() == first.as_dict()
    for one, other in zip(first.runs, again.runs, strict=True):
        assert one.transfers.identical(other.transfers)
        assert one.load.identical(other.load)
    assert again.plot() is not None


def test_a_damaged_one_is_run_again(tmp_path: Path) -> None:
    first = runs(tmp_path)
    path = min(tmp_path.glob("all-reduce-hpcc-*.nc"))
    path.write_bytes(path.read_bytes()[:1000])
    times = [[run.numbers["time_s"] for run in each.runs] for each in (first, runs(tmp_path))]
    assert times[0] == times[1]
