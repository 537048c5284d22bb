"""Saved results that are damaged, or are none: refused in one line, never read as other numbers."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray as xr

import fluidcc as fc
from fluidcc.errors import InputError
from tests.fuzz import mutated

LINE = r"^[^\n]{20,800}$"


@pytest.fixture(scope="module")
def trace() -> fc.Trace:
    return fc.simulate(fc.incast(2), "100us", engine="packet", sample_interval="5us")


@pytest.fixture(scope="module")
def result() -> fc.studies.SweepResult:
    def make(kmin: Any) -> fc.Scenario:
        return fc.incast(2, marking=fc.RED(kmin, "200KB", "1%"))

    return fc.sweep(make, over={"kmin": ["5KB", "300KB"]}, until="100us")


@pytest.fixture(params=["trace", "result"])
def saved(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return request.getfixturevalue(request.param).save(tmp_path / "saved.nc")


def use(found: Any) -> None:
    """What asks most of a result."""
    assert repr(found)
    if isinstance(found, fc.Trace):
        assert found.summary["engine"] == "packet"
        found.bottleneck()
    else:
        assert found.best()["metric"] == "queue_bytes.mean"
        assert found.reasons == {"kmin above kmax": 1} or found.failed == 1


def test_whole_it_is_read_as_it_was(saved: Path, trace: fc.Trace, result: fc.studies.SweepResult) -> None:
    found = fc.load(saved)
    assert found.identical(trace if isinstance(found, fc.Trace) else result)
    use(found)


def test_a_flipped_bit_among_the_numbers_is_noticed(
    trace: fc.Trace, result: fc.studies.SweepResult, tmp_path: Path
) -> None:
    for each, name in ((trace, "rate"), (result, "rate_bytes_per_s")):
        path = each.save(tmp_path / "saved.nc")
        values = each.dataset[name].values
        content = bytearray(path.read_bytes())
        at = content.find(values[np.isfinite(values).all(axis=-1)][0].tobytes())
        assert at >= 0
        content[at] ^= 1
        path.write_bytes(content)
        with pytest.raises(InputError, match=LINE):
            fc.load(path)


def test_a_damaged_file_is_refused_in_a_line(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also nothing that is printed as it is cleared away."""
    ignored: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", ignored.append)
    whole, refused = saved.read_bytes(), 0
    for seed in range(80):
        saved.write_bytes(mutated(random.Random(seed), whole))
        said = None
        try:
            assert repr(fc.load(saved))
        except InputError as error:
            refused, said = refused + 1, str(error)
        assert said is None or (said.startswith(str(saved)) and "\n" not in said)
    assert refused > 40
    assert ignored == []


def test_what_is_no_file_at_all(tmp_path: Path) -> None:
    (tmp_path / "empty.nc").touch()
    (tmp_path / "random.nc").write_bytes(random.Random(1).randbytes(10_000))
    (tmp_path / "text.nc").write_text("not a trace")
    reasons = {
        ".": "Is a directory",
        "none.nc": "No such file or directory",
        "a\0b": "null byte",
        "x" * 300: "too long",
    }
    for name in ("empty.nc", "random.nc", "text.nc", *reasons):
        for load in (fc.load, fc.Trace.load):
            with pytest.raises(InputError, match=reasons.get(name, "signature not found")) as said:
                load(tmp_path / name)
            assert "\n" not in str(said.value)


def test_numbers_that_are_declared_and_not_there_take_no_memory(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "huge.nc", "w") as file:
        for name, size in (("time", 1 << 34), ("link", 1)):
            file.create_dataset(name, (size,), "f8", chunks=(1,)).make_scale(name)
        queue = file.create_dataset("queue", (1 << 33, 1), "f8", chunks=(1 << 10, 1))
        queue.dims[0].attach_scale(file["time"])
        queue.dims[1].attach_scale(file["link"])
    with pytest.raises(InputError, match=r"declares 2.06e[+]11 bytes of numbers"):
        fc.load(tmp_path / "huge.nc")


def over_flows(data: xr.Dataset) -> xr.Dataset:
    return data.drop_vars("queue").assign(queue=data["rate"])


def backwards(data: xr.Dataset) -> xr.Dataset:
    return data.assign_coords(time=data["time"].values[::-1])


def of_text(data: xr.Dataset) -> xr.Dataset:
    return data.assign(rate=(data["rate"].dims, data["rate"].values.astype(str)))


def summarised(summary: Any) -> Callable[[xr.Dataset], xr.Dataset]:
    return lambda data: data.assign_attrs(summary=summary)


def without(*names: str) -> Callable[[xr.Dataset], xr.Dataset]:
    return lambda data: data.drop_vars(names)


@pytest.mark.parametrize(
    ("which", "change", "says"),
    [
        ("trace", over_flows, "queue over time, flow, not time, link"),
        ("trace", without("time"), "no queue over time"),
        ("trace", backwards, "times that do not grow"),
        ("trace", of_text, "rate that is no number"),
        ("trace", summarised("{"), "a summary that is no JSON object"),
        ("trace", summarised("[1]"), "a summary that is no JSON object"),
        ("trace", summarised(3), "a summary that is no JSON object"),
        ("result", without("jain"), "no jain"),
        ("result", without("kmin"), "no kmin"),
        ("result", without("rate_bytes_per_s"), "no rate_bytes_per_s"),
        ("result", lambda data: data.assign(jain=1.0), "jain over nothing, not kmin"),
        ("result", lambda data: data.isel(kmin=0, drop=True).expand_dims("x"), "no x"),
    ],
)
def test_what_is_no_result(which: str, change: Any, says: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    path = tmp_path / "other.nc"
    change(request.getfixturevalue(which).dataset).to_netcdf(path, engine="h5netcdf")
    with pytest.raises(InputError, match=says):
        fc.load(path)
    if which == "trace":
        with pytest.raises(InputError, match=says):
            fc.Trace.load(path)


def test_what_a_version_before_did_not_write_may_be_missing(trace: fc.Trace, tmp_path: Path) -> None:
    path = tmp_path / "old.nc"
    trace.dataset.drop_vars(["pacing_rate", "capacity"]).to_netcdf(path, engine="h5netcdf")
    assert fc.load(path).summary == trace.summary
