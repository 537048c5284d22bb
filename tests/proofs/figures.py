"""What every figure of a paper is held to, whatever it shows."""

from __future__ import annotations

import math
from collections.abc import Collection
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.image import imread

from fluidcc.proofs.verdict.figure import Result
from fluidcc.proofs.verdict.registry import reproduce


def made(
    name: str, folder: Path, size: tuple[int, int], not_as_printed: Collection[str] = ()
) -> tuple[Result, xr.Dataset]:
    """Make a figure quickly: its checks hold, its two files and no others are there, its picture has this size.

    Checks of the paper's words that do not hold, ``not_as_printed``, are held to that.
    """
    result = reproduce(name, folder / "out", quick=True)
    failing = {key: (result.values[key], c) for key, c in result.expected.items() if not c.holds(result.values[key])}
    assert set(failing) == set(not_as_printed), failing
    assert result.agrees is not bool(not_as_printed)
    assert result.expected
    assert all(check.why for check in result.expected.values())
    assert all(isinstance(value, bool) or math.isfinite(value) for value in result.values.values())
    assert any("quick" in note for note in result.notes)
    picture, data = result.files
    # Runs of whole fabrics are kept; and no temporary file is left.
    assert sorted(each for each in (folder / "out").iterdir() if not each.name.endswith("-runs")) == sorted(
        result.files
    )
    pixels = imread(picture)
    assert pixels.shape[1::-1] == size
    # More than a blank page; a colour as one whole number, because rows take 70 times as long to sort.
    colours = np.rint(255 * pixels).astype(np.uint32) @ 256 ** np.arange(pixels.shape[-1], dtype=np.uint32)
    assert len(np.unique(colours)) > 100
    with xr.open_dataset(data, engine="h5netcdf") as opened:
        return result, opened.load()
