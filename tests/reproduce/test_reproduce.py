import csv
import json
import math
import struct
import zlib

import numpy as np
import pytest
import xarray as xr

from fluidcc.cli.app import run
from fluidcc.errors import InputError
from fluidcc.reproduce import FIGURES, Check, Figure, Result, reproduce
from fluidcc.reproduce.result import printed

PIXELS = {  # width and height of every picture
    "dcqcn-fig10.png": (1650, 1050),
    "dcqcn-fig11a.png": (1650, 750),
    "dcqcn-fig11b.png": (1650, 750),
    "dcqcn-fig11c.png": (1650, 750),
    "dcqcn-fig11d.png": (1650, 750),
    "dcqcn-fig12.png": (1650, 1200),
    "dcqcn-table14.png": (1950, 1050),
    "dcqcn-table14-fixed-points.png": (1650, 660),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Every figure, made once with --quick."""
    folder = tmp_path_factory.mktemp("figures") / "new" / "out"
    return {name: reproduce(name, folder, quick=True) for name in FIGURES}


def decoded(path):
    """Width, height and pixel bytes of a PNG, read by its own rules: every chunk whole, its checksum right."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    place, chunks = 8, []
    while place < len(data):
        (length,) = struct.unpack(">I", data[place : place + 4])
        kind, body = data[place + 4 : place + 8], data[place + 8 : place + 8 + length]
        (check,) = struct.unpack(">I", data[place + 8 + length : place + 12 + length])
        assert check == zlib.crc32(kind + body)
        chunks.append((kind, body))
        place += 12 + length
    assert chunks[-1][0] == b"IEND"
    width, height = struct.unpack(">II", chunks[0][1][:8])
    return width, height, zlib.decompress(b"".join(body for kind, body in chunks if kind == b"IDAT"))


@pytest.mark.parametrize("name", FIGURES)
def test_values_agree(made, name):
    result = made[name]
    failing = {key: (result.values[key], c) for key, c in result.expected.items() if not c.holds(result.values[key])}
    assert not failing
    assert result.agrees
    assert result.expected
    assert all(isinstance(value, bool) or math.isfinite(value) for value in result.values.values())
    assert any("quick" in note for note in result.notes)


@pytest.mark.parametrize("name", FIGURES)
def test_files_are_whole(made, name):
    files = made[name].files
    assert {path.suffix for path in files} in ({".png", ".nc"}, {".png", ".csv"})
    for path in files:
        if path.suffix == ".png":
            width, height, pixels = decoded(path)
            assert (width, height) == PIXELS[path.name]
            assert np.unique(np.frombuffer(pixels, np.uint8)).size > 100  # more than a blank page
    assert not [path for path in files[0].parent.iterdir() if path.name.startswith(".")]  # no temporary file left


def test_figure_10_data_is_the_trace(made):
    with xr.open_dataset(made["dcqcn-fig10"].files[1], engine="h5netcdf") as data:
        assert float(data["queue"].max()) == pytest.approx(made["dcqcn-fig10"].values["queue_peak_bytes"], rel=1e-4)
        assert data["queue"].attrs["units"] == "bytes"


@pytest.mark.parametrize("letter", "abcd")
def test_figure_11_data(made, letter):
    with xr.open_dataset(made[f"dcqcn-fig11{letter}"].files[1], engine="h5netcdf") as data:
        gap = data["gap"]
        assert gap.attrs["units"] == "bytes/s"
        assert gap.shape == (401, 7)
        assert float(gap[0].min()) == pytest.approx(5e9)  # 40 Gb/s apart at the start, whatever is varied
        # The surface's own last 20 ms are the line's.
        last = np.abs(gap.sel(time=slice(0.18, None)).mean("time"))
        np.testing.assert_allclose(last, data["last_gap_0"], rtol=0.02, atol=2e7)


def test_readings_share_the_strawman(made):
    """(a) at 150 KB, (b) at 1.5 ms and (c) at Kmax = 40 KB are one setting."""
    ends = []
    for letter, index in (("a", 0), ("b", -1), ("c", 0)):
        with xr.open_dataset(made[f"dcqcn-fig11{letter}"].files[1], engine="h5netcdf") as data:
            ends.append(float(data["last_gap_0"][index]))
    # Cut-off marking amplifies rounding, which may differ between batches; the step's own error is 6e-4.
    np.testing.assert_allclose(ends, ends[0], rtol=1e-3)


def test_figure_12_data(made):
    with xr.open_dataset(made["dcqcn-fig12"].files[1], engine="h5netcdf") as data:
        assert (data["queue"] >= 0).all()
        assert set(data["flows"].values) == {2, 8, 15, 16, 32}


def test_table_14_rows(made):
    path = made["dcqcn-table14"].files[-1]
    with path.open(newline="") as handle:
        rows = list(csv.DictReader(handle))
    assert len(rows) == 6 * 5 * 2
    # Every parameter's line passes through Table 14 itself.
    here = {"timer": 55e-6, "byte_counter": 10e6, "kmax": 200e3, "kmin": 5e3, "pmax": 0.01, "g": 1 / 256}
    at = [row for row in rows if math.isclose(float(row["value"]), here[row["parameter"]], rel_tol=1e-12)]
    assert len(at) == 12
    for senders in ("2", "8"):
        queues = [float(row["queue_mean_bytes"]) for row in at if row["senders"] == senders]
        np.testing.assert_allclose(queues, queues[0], rtol=1e-9)


def test_check_and_agreement():
    figure = Figure("x", "paper", "figure", "module")
    assert Check(1.0, 0.1, "").holds(1.05)
    assert not Check(1.0, 0.1, "").holds(1.2)
    assert not Check(1.0, 0.1, "").holds(math.nan)
    assert not Check(True, 0, "").holds(False)
    assert printed(2.0, 0.1, -0.2, "").tolerance == pytest.approx(0.45)
    assert not Result(figure, {"a": 1.0}, {"a": Check(2.0, 0.5, "")}, ()).agrees


def test_list(capsys):
    assert run(["reproduce", "list", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)["figures"]
    assert [f["name"] for f in figures] == list(FIGURES)
    assert all(set(f) == {"name", "paper", "figure"} for f in figures)
    assert run(["reproduce", "list"]) == 0
    assert "dcqcn-fig11a" in capsys.readouterr().out


def test_document_and_status(made, monkeypatch, tmp_path, capsys):
    import fluidcc.reproduce as rooms

    result = made["dcqcn-fig12"]
    monkeypatch.setattr(rooms, "reproduce", lambda name, out, quick: result)
    assert run(["reproduce", "dcqcn-fig12", "--json", "--out", str(tmp_path)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert {"name", "paper", "figure", "values", "expected", "agrees", "files"} <= set(document)
    assert document["agrees"] is True
    assert set(document["expected"]) <= set(document["values"])
    assert run(["reproduce", "dcqcn-fig12"]) == 0
    assert "agrees" in capsys.readouterr().out

    name = next(key for key, check in result.expected.items() if not isinstance(check.value, bool))
    wrong = Result(result.figure, result.values | {name: -1.0}, result.expected, result.files)
    monkeypatch.setattr(rooms, "reproduce", lambda name, out, quick: wrong)
    assert run(["reproduce", "dcqcn-fig12", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["agrees"] is False
    assert run(["reproduce", "dcqcn-fig12"]) == 1
    assert "does not agree" in capsys.readouterr().out


def test_bad_input(tmp_path, capsys):
    with pytest.raises(InputError, match="is no figure"):
        reproduce("dcqcn-fig99", tmp_path)
    taken = tmp_path / "file"
    taken.write_text("x")
    for arguments in (
        ["dcqcn-fig99"],
        ["dcqcn-fig10", "--out", str(taken)],
        ["dcqcn-fig10", "--out", str(taken / "in")],
    ):
        assert run(["reproduce", *arguments]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.count("\n") == 1
    assert run(["reproduce", "dcqcn-fig10", "--out", "a\0b"]) == 2
    assert run(["reproduce"]) == 2
