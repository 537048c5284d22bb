"""Pictures of steps: every transfer that began is there, as long as it took, beside those it overlaps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matplotlib.collections import PolyCollection

import fluidcc as fc
from fluidcc.plotting import collectives as drawing

STAR = "leaf-spine:1x1x4"


def bars(picture: Any) -> list[PolyCollection]:
    """What has not arrived, what was on its way, and what was sent, those that there are."""
    return [each for each in picture.axes[0].collections if isinstance(each, PolyCollection)]


def test_what_did_not_end_is_drawn_to_the_end() -> None:
    study = fc.collective("all-reduce", STAR, "none", bytes="800KB", until="40us")
    picture = study.plot()
    table = study.runs[0].transfers
    cut, late, whole = bars(picture)
    began, left, ended = (np.isfinite(table[name].values) for name in ("began", "left", "arrived"))
    assert len(cut.get_paths()) == (began & ~ended).sum() > 0
    assert len(late.get_paths()) == ended.sum() > 0
    assert len(whole.get_paths()) == left.sum()
    assert [bool(each.get_hatch()) for each in (cut, late, whole)] == [True, False, False]
    assert picture.axes[0].get_xlim() == pytest.approx((0, 40))
    assert [path.get_extents().x1 for path in cut.get_paths()] == pytest.approx([40] * len(cut.get_paths()))


def test_a_picture_is_as_long_as_the_jobs_are() -> None:
    study = fc.collective("all-reduce", STAR, "none", bytes="80KB", chunks=2)
    picture = study.plot()
    assert picture.axes[0].get_xlim()[1] == pytest.approx(study.runs[0].numbers["total_s"] * 1e6)
    assert [axis.get_ylabel() for axis in picture.axes] == ["rank", "step"]  # the latter of colours


def test_overlapping_transfers_have_lanes() -> None:
    """Three at once of each rank of all-to-all, none over another, and all inside their row."""
    *_, found = bars(fc.collective("all-to-all", STAR, "none", bytes="80KB").plot())
    boxes = [path.get_extents() for path in found.get_paths()]
    assert len(boxes) == 12
    for box in boxes:
        assert box.height == pytest.approx(0.84 / 3)
        assert abs(box.y0 - round((box.y0 + box.y1) / 2)) <= 0.43
    tops = {round(box.y0, 6) for box in boxes}
    assert len(tops) == 12


def test_lanes_are_as_many_as_overlap() -> None:
    rank = np.array([0, 0, 0, 0, 1])
    lane, lanes = drawing.lanes_of(rank, np.array([0.0, 1.0, 2.0, 5.0, 0.0]), np.array([2.0, 4.0, 3.0, 6.0, 9.0]))
    assert lane.tolist() == [0, 1, 0, 0, 0]
    assert lanes.tolist() == [2, 2, 2, 1, 1]


def test_what_is_cut_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "_MOST_BARS", 10)
    picture = fc.collective("all-reduce", STAR, "none", bytes="80KB").plot()
    assert [len(each.get_paths()) for each in bars(picture)] == [6, 6]  # of ranks 0 and 3 there would be 12
    assert "(6 of 24 transfers, every 4th rank)" in picture.axes[0].get_title(loc="left")
    assert {round(path.get_extents().y0 + path.get_extents().y1) / 2 for path in bars(picture)[1].get_paths()} == {0}


def test_loads_are_of_links_in_use() -> None:
    """Two of eight hosts' links carry all."""
    run = fc.collective("broadcast", "leaf-spine:1x1x8", "none", bytes="1MB", hosts=2, header_bytes=0).runs[0]
    load = run.load["mean"].sel(tier="tier 1 to hosts").values
    spacing = float(np.diff(run.load["time"].values).mean())
    assert load.sum() * spacing == pytest.approx(1.064e6 / 12.5e9 / 2, rel=0.03)
