"""Stores of sweeps: what they hold, whose they are, and what is left of one that is killed."""

from __future__ import annotations

import os
import random
import signal
import time
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

import fluidcc as fc
from benchmarks import killed_sweeps
from fluidcc.studies.sweeps import run
from fluidcc.studies.sweeps.grid import blocks_of
from fluidcc.studies.sweeps.store import PENDING, Store

UNTIL = "3ms"
OVER = {"kmin": ["5KB", "20KB", "50KB"], "x": [1.0, 2.0]}


def make(kmin: Any, g: Any) -> fc.Scenario:
    return fc.incast(2, marking=fc.RED(kmin, "60KB", "5%"), scheme=fc.DCQCN(g=g), initial_rate=["40Gbps", "10Gbps"])


def store(path: Path, g: Any = lambda x: x / 256, **options: Any) -> fc.studies.SweepResult:
    return fc.sweep(lambda kmin, x: make(kmin, g(x)), OVER, until=UNTIL, estimate_error=False, store=path, **options)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, fc.studies.SweepResult]:
    path = tmp_path_factory.mktemp("kept") / "s.zarr"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "chunk_size", lambda *_: 2)
        return path, store(path)


def test_a_store_opens_as_the_dataset_that_the_sweep_returns(kept: tuple[Path, fc.studies.SweepResult]) -> None:
    path, result = kept
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = xr.open_zarr(path)
    assert found.sizes == {"kmin": 3, "x": 2, "flow": 2}
    assert found["kmin"].attrs["units"] == "bytes"
    assert "units" not in found["x"].attrs  # nobody knows what it is
    for name, values in result.dataset.data_vars.items():
        assert found[name].dims == values.dims
        assert found[name].attrs["units"] == values.attrs["units"]
        np.testing.assert_array_equal(found[name].values, values.values)
    assert found["flow"].values.tolist() == result["flow"].values.tolist()


def test_what_is_not_done_is_no_number(
    kept: tuple[Path, fc.studies.SweepResult], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And is done when the sweep goes on, whatever half of a file lies there: then the files are those of one sweep."""
    real, calls = run.run_chunk, []

    def failing(*arguments: Any, **options: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*arguments, **options)

    monkeypatch.setattr(run, "chunk_size", lambda *_: 2)
    monkeypatch.setattr(run, "run_chunk", failing)
    with pytest.raises(KeyboardInterrupt):
        store(tmp_path / "s.zarr", workers=1)
    found = xr.open_zarr(tmp_path / "s.zarr")
    assert found["reason"].values.tolist() == [[0, 0], [PENDING, PENDING], [PENDING, PENDING]]
    assert np.isnan(found["jain"].values[1:]).all()
    assert fc.studies.SweepResult(found.load()).reasons == {"not done": 4}
    (tmp_path / "s.zarr" / "jain" / "c" / ".0123.partial").write_text("half of a fi")
    begun = len(calls)  # one may have begun as the sweep ended
    store(tmp_path / "s.zarr", resume=True)
    assert len(calls) - begun == 2
    assert killed_sweeps.files(tmp_path / "s.zarr") == killed_sweeps.files(kept[0])


@pytest.mark.parametrize("names", [("jain", "reason", "queue"), ("reason", "zeta")])
def test_reasons_are_written_last(names: tuple[str, ...]) -> None:
    """A block that is marked done, and whose numbers are not there yet, would never be made."""
    written: list[str] = []

    class Array:
        def __init__(self, name: str) -> None:
            self.name = name

        def __setitem__(self, box: Any, values: Any) -> None:
            written.append(self.name)

    arrays = {name: Array(name) for name in names}
    blocks = SimpleNamespace(box=lambda part: (part,))
    half: Any = SimpleNamespace(blocks=blocks, _variables=names, _arrays=arrays, _path="")
    Store.write(half, slice(0, 2), dict.fromkeys(names, np.zeros(2)))
    assert sorted(written) == sorted(names)
    assert written[-1] == "reason"


def test_other_numbers_at_any_point_are_another_sweep(kept: tuple[Path, fc.studies.SweepResult]) -> None:
    # The first valid point is the same in both: x is 1.
    with pytest.raises(fc.InputError, match=r"another sweep .settings of the points"):
        store(kept[0], lambda x: x**2 / 256, resume=True)


@pytest.mark.parametrize(
    ("what", "patched", "value"),
    [
        ("metrics", "METRICS", {"jain": ("1", "fair")}),
        ("versions", "VERSION", "0.0.1"),
        ("processor", "processor", lambda: ("another",)),
        ("equations", "sources", lambda: "others"),
    ],
)
def test_other_software_or_another_processor_does_not_go_on(
    kept: tuple[Path, fc.studies.SweepResult], monkeypatch: pytest.MonkeyPatch, what: str, patched: str, value: Any
) -> None:
    monkeypatch.setattr(f"fluidcc.studies.sweeps.store.{patched}", value)
    with pytest.raises(fc.InputError, match=f"another sweep .{what}"):
        store(kept[0], resume=True)


def test_a_store_that_is_done_is_read(
    kept: tuple[Path, fc.studies.SweepResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "run_chunk", None)
    again = store(kept[0], resume=True)
    xr.testing.assert_identical(again.dataset.drop_attrs(), kept[1].dataset.drop_attrs())


def test_without_a_store_there_is_nothing_to_resume() -> None:
    with pytest.raises(fc.InputError, match="resume: there is no store"):
        fc.sweep(make, {"kmin": [5e3], "g": [0.01]}, resume=True)


def test_a_store_that_cannot_be_written_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = run.run_chunk

    def spoiling(*arguments: Any, **options: Any) -> Any:
        (tmp_path / "s.zarr" / "jain" / "c").write_text("in the way")
        return real(*arguments, **options)

    monkeypatch.setattr(run, "run_chunk", spoiling)
    with pytest.raises(fc.InputError, match=r"s\.zarr cannot be written to .*--resume"):
        store(tmp_path / "s.zarr")


def test_a_name_that_results_have_is_refused() -> None:
    with pytest.raises(fc.InputError, match="over jain: a result has that name"):
        fc.sweep(lambda jain: make(jain, 0.01), {"jain": [5e3]}, until=UNTIL)


shapes = st.lists(st.integers(1, 12), min_size=1, max_size=4).map(tuple)


@given(shapes, st.integers(1, 300))
def test_blocks_tile_the_grid_in_its_order(shape: tuple[int, ...], most: int) -> None:
    blocks = blocks_of(shape, most)
    at = np.arange(np.prod(shape)).reshape(shape)
    assert blocks.points <= most
    parts = blocks.parts()
    assert [part.stop for part in parts[:-1]] == [part.start for part in parts[1:]]
    assert (parts[0].start, parts[-1].stop) == (0, at.size)
    for part in parts:
        box = blocks.box(part)
        assert at[box].reshape(-1).tolist() == list(range(part.start, part.stop))
        assert all(k.start % size == 0 for k, size in zip(box, blocks.block, strict=True))  # a chunk of Zarr's


@pytest.mark.slow
def test_a_killed_sweep_goes_on_and_is_the_same(tmp_path: Path) -> None:
    """Killed while the second chunk is under way, or soon after: at most a chunk of each of two workers is lost."""
    points, until = 600, "2ms"
    killed_sweeps.sweep(tmp_path / "whole.zarr", tmp_path / "whole.log", points, until=until)
    log = tmp_path / "killed.log"
    process = killed_sweeps.start(tmp_path / "killed.zarr", log, points, until, pause=0.1)
    while killed_sweeps.finished(tmp_path / "killed.zarr") < 1:
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    lost = sum(killed_sweeps.begun(log).values()) - killed_sweeps.finished(tmp_path / "killed.zarr")
    attempt = tmp_path / "killed.zarr" / "jain" / "c" / ".0123.partial"
    attempt.write_text("half of a fi")
    killed_sweeps.sweep(tmp_path / "killed.zarr", log, points, resume=True, until=until)
    assert killed_sweeps.files(tmp_path / "killed.zarr") == killed_sweeps.files(tmp_path / "whole.zarr")
    assert 0 <= lost <= 2
    assert sum(killed_sweeps.begun(log).values()) - len(killed_sweeps.begun(log)) == lost
    assert killed_sweeps.begun(log).keys() == killed_sweeps.begun(tmp_path / "whole.log").keys()


@pytest.mark.slow
def test_three_kills_and_a_lost_worker(tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="Dask is an optional extra")
    draw, points, until = random.Random(os.urandom(8)), 1_000, "15ms"
    began = time.perf_counter()
    killed_sweeps.sweep(tmp_path / "whole.zarr", tmp_path / "whole.log", points, until=until)
    took = time.perf_counter() - began
    whole = killed_sweeps.files(tmp_path / "whole.zarr")
    wasted = killed_sweeps.kill_sweep(tmp_path / "k.zarr", tmp_path / "k.log", points, 3, draw, took / 3, until)
    assert killed_sweeps.files(tmp_path / "k.zarr") == whole
    assert max(wasted) <= 2
    killed_sweeps.lose_worker(tmp_path / "d.zarr", tmp_path / "d.log", points, draw, until)
    assert killed_sweeps.files(tmp_path / "d.zarr") == whole
    begun = killed_sweeps.begun(tmp_path / "d.log")
    assert sum(begun.values()) - len(begun) <= 2
