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
from fluidcc.proofs.verdict.figure import Check, Figure, Result, printed
from fluidcc.proofs.verdict.figure import status as status_of
from fluidcc.proofs.verdict.registry import list_figures, reproduce

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


# One test per figure, so that each is made once however the tests are spread over processes.
@pytest.mark.parametrize("name", [name for name in list_figures() if f"{name}.png" in PIXELS])
def test_figure(name, tmp_path):
    result = reproduce(name, tmp_path / "new" / "out", quick=True)
    check_values(result)
    check_files(result, tmp_path / "new" / "out")
    DATA[name[:11] if "fig11" in name else name](result)


def check_values(result):
    failing = {key: (result.values[key], c) for key, c in result.expected.items() if not c.holds(result.values[key])}
    assert not failing
    assert result.agrees
    assert result.expected
    assert all(isinstance(value, bool) or math.isfinite(value) for value in result.values.values())
    assert any("quick" in note for note in result.notes)


def check_files(result, folder):
    assert {path.suffix for path in result.files} in ({".png", ".nc"}, {".png", ".csv"})
    assert sorted(folder.iterdir()) == sorted(result.files)  # and no temporary file left
    for path in result.files:
        if path.suffix == ".png":
            width, height, pixels = decoded(path)
            assert (width, height) == PIXELS[path.name]
            assert np.unique(np.frombuffer(pixels, np.uint8)).size > 100  # more than a blank page


def loaded(result):
    with xr.open_dataset(result.files[1], engine="h5netcdf") as data:
        return data.load()


def check_figure_10(result):
    queue = loaded(result)["queue"]
    assert float(queue.max()) == pytest.approx(result.values["queue_peak_bytes"], rel=1e-4)
    assert queue.attrs["units"] == "bytes"


# (a) at 150 KB, (b) at 1.5 ms and (c) at Kmax = 40 KB are one setting, the strawman.
STRAWMAN_AT = {"dcqcn-fig11a": 0, "dcqcn-fig11b": -1, "dcqcn-fig11c": 0}
STRAWMAN_GAP = 37.16e9 / 8  # bytes/s: 37.99 - 0.83 Gb/s


def check_figure_11(result):
    data = loaded(result)
    gap = data["gap"]
    assert gap.attrs["units"] == "bytes/s"
    assert gap.dims[0] == "time"
    assert len(gap) == 401
    np.testing.assert_allclose(gap[0], 5e9)  # 40 Gb/s apart at the start, whatever is varied
    # The surface's own last 20 ms are the line's, as far as samples of 0.5 ms show a saw tooth.
    last = np.abs(gap.sel(time=slice(0.18, None)).mean("time"))
    np.testing.assert_allclose(last, data["last_gap_0"], rtol=0.02, atol=2e7)
    if result.figure.name in STRAWMAN_AT:
        at = float(data["last_gap_0"][STRAWMAN_AT[result.figure.name]])
        assert at == pytest.approx(STRAWMAN_GAP, rel=1.3e-3)  # twice the step's own error, 6.3e-4


def check_figure_12(result):
    data = loaded(result)
    assert (data["queue"] >= 0).all()
    assert set(data["flows"].values) == {2, 8, 15, 16, 32}


def check_table_14(result):
    with result.files[-1].open(newline="") as handle:
        rows = list(csv.DictReader(handle))
    assert len(rows) == 6 * 5 * 2
    # Every parameter's line passes through Table 14 itself.
    here = {"timer": 55e-6, "byte_counter": 10e6, "kmax": 200e3, "kmin": 5e3, "pmax": 0.01, "g": 1 / 256}
    at = [row for row in rows if math.isclose(float(row["value"]), here[row["parameter"]], rel_tol=1e-12)]
    assert len(at) == 12
    for senders in ("2", "8"):
        queues = [float(row["queue_mean_bytes"]) for row in at if row["senders"] == senders]
        np.testing.assert_allclose(queues, queues[0], rtol=1e-9)


DATA = {
    "dcqcn-fig10": check_figure_10,
    "dcqcn-fig11": check_figure_11,
    "dcqcn-fig12": check_figure_12,
    "dcqcn-table14": check_table_14,
}


def test_check_and_agreement():
    figure = Figure("x", "paper", "figure", None)
    assert Check(1.0, 0.1, "").holds(1.05)
    assert not Check(1.0, 0.1, "").holds(1.2)
    assert not Check(1.0, 0.1, "").holds(math.nan)
    assert not Check(True, 0, "").holds(False)
    assert printed(2.0, 0.1, -0.2, "").tolerance == pytest.approx(0.45)
    assert not Result(figure, {"a": 1.0}, {"a": Check(2.0, 0.5, "")}, ()).agrees
    both = {"a": 2.0, "b": 1.0, "c": True}, {"a": Check(2.0, 0.5, ""), "b": Check(2.0, 0.5, "")}
    assert not Result(figure, *both, ()).agrees  # one that holds does not save another
    assert not Check(False, 0, "").holds(True)
    assert not Check(False, 0, "").holds(0.0)  # a number is no answer to yes or no


@pytest.mark.parametrize(
    ("holds", "fails", "other", "said"),
    [
        (True, False, 1.0, "agrees"),
        (False, False, 1.0, "not decided"),
        (False, True, 1.0, "does not agree"),
        (False, False, 2.0, "does not agree"),
        (True, False, 2.0, "does not agree"),
    ],
)
def test_what_runs_cannot_tell_is_not_decided(holds, fails, other, said, monkeypatch, capsys):
    expected = {"gain_holds": Check(True, 0, "why"), "other": Check(1.0, 0.1, "why")}
    values = {"gain": math.nan, "gain_holds": holds, "gain_fails": fails, "other": other}
    result = Result(list_figures()["dcqcn-fig12"], values, expected, ())
    assert status_of(result.as_dict()) == said
    monkeypatch.setattr("fluidcc.proofs.verdict.registry.reproduce", lambda *_, **__: result)
    assert run(["reproduce", "dcqcn-fig12"]) == (said != "agrees")
    assert capsys.readouterr().out.splitlines()[-1].strip() == said
    run(["reproduce", "dcqcn-fig12", "--json"])
    assert json.loads(capsys.readouterr().out)["status"] == said


def test_list(capsys):
    assert run(["reproduce", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["figures"]
    assert [f["name"] for f in listed] == list(list_figures())
    assert all(set(f) == {"name", "paper", "figure"} for f in listed)
    assert run(["reproduce", "--list"]) == 0  # as `verify --list`
    listed = capsys.readouterr().out
    assert run(["reproduce", "list"]) == 0
    assert capsys.readouterr().out == listed
    assert run(["reproduce"]) == 2
    assert "no figure is named; write fluidcc reproduce --list" in capsys.readouterr().err
    assert run(["reproduce", "list"]) == 0
    assert "dcqcn-fig11a" in capsys.readouterr().out


def test_document_and_status(monkeypatch, capsys):
    figure, expected = (
        list_figures()["dcqcn-fig12"],
        {"queue_bytes": Check(2e4, 10.0, "why"), "starves": Check(True, 0, "why")},
    )
    values = {"queue_bytes": 20001.0, "starves": True, "rate_bytes_per_s": 5e9, "share": math.nan}
    for queue, status in ((20001.0, 0), (20100.0, 1)):
        result = Result(figure, values | {"queue_bytes": queue}, expected, (), ("a note",))
        monkeypatch.setattr("fluidcc.proofs.verdict.registry.reproduce", lambda *_, made=result, **__: made)
        assert run(["reproduce", "dcqcn-fig12", "--json"]) == status
        document = json.loads(capsys.readouterr().out)
        assert {"name", "paper", "figure", "values", "expected", "agrees", "files"} <= set(document)
        assert document["agrees"] is (status == 0)
        assert document["expected"]["queue_bytes"] == {"value": 2e4, "tolerance": 10.0, "why": "why"}
        assert document["values"]["share"] is None
        assert run(["reproduce", "dcqcn-fig12"]) == status
        text = capsys.readouterr().out
        assert ("does not agree" in text) == (status == 1)
        assert "40Gbps" in text
        assert "note: a note" in text


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


@pytest.mark.slow
def test_margins_published_and_exact(tmp_path):
    result = reproduce("dcqcn-margins", tmp_path, quick=True)
    failing = {key: (result.values[key], c) for key, c in result.expected.items() if not c.holds(result.values[key])}
    assert not failing
    assert result.values["published_margin_has_not"] > 0
    with xr.open_dataset(result.files[1], engine="h5netcdf") as data:
        at = data.sel(delay=50e-6)
        assert (at.exact > 0).all()
        assert float(at.exact.min()) < 2.0
        assert (at.root < 0).all()


def test_a_figure_s_old_name_answers_with_the_new_one(tmp_path):
    with pytest.warns(DeprecationWarning, match="dctcp-swings is now dctcp-oscillation"), pytest.raises(InputError):
        reproduce("dctcp-swings", tmp_path / "\0")
    assert {"dctcp-oscillation", "swift-oscillation"} <= list_figures().keys()
