"""``fluidcc collective``: keys as promised, what it leaves behind, and one line for what makes no sense."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fluidcc.cli.app import run

FAST = ["--topology", "leaf-spine:2x1x4", "--bytes", "40KB", "--scheme", "none,hpcc"]


def test_its_json_has_the_promised_keys(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["collective", "all-reduce,all-to-all", *FAST, "--seeds", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(each["collective"], each["scheme"], each["seed"]) for each in found["runs"]] == [
        (kind, scheme, seed) for kind in ("all-reduce", "all-to-all") for scheme in ("none", "hpcc") for seed in (1, 2)
    ]
    first = found["runs"][0]
    assert (found["packet_bytes"], found["header_bytes"]) == (1000.0, 0.0)
    promised = {"scheme", "engine", "ranks", "bytes", "time_s", "bus_bandwidth_bytes_per_s", "pfc_pauses", "wall_s"}
    assert promised <= first.keys()
    assert {"mean", "p99"} <= first["step_time_s"].keys()
    assert (first["engine"], first["ranks"], first["bytes"], first["unfinished"]) == ("packet", 8, 40e3, 0)
    row = found["summary"][0]["time_s"]
    assert row["mean"] == pytest.approx(sum(each["time_s"] for each in found["runs"][:2]) / 2)


def test_a_person_sees_tables_and_a_folder(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["--jobs", "2", "--separately", "--placement", "round-robin", "--out", str(out)]
    assert run(["collective", "all-gather", *FAST, *words]) == 0
    told = capsys.readouterr()
    assert "2 jobs: all-gather (ring) of 40KB on 4 ranks" in " ".join(told.out.split())
    assert "of alone" in told.out
    assert "wrote" in told.err
    assert {path.suffix for path in out.iterdir()} == {".png", ".csv", ".nc"}


def test_a_file_takes_the_place_of_kinds(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "a.goal"
    path.write_text("num_ranks 2\nrank 0 {\nsend 5000b to 1\n}\nrank 1 {\nrecv 5000b from 0\n}\n")
    words = ["--topology", "leaf-spine:1x1x2", "--scheme", "none", "--placement", "1,0"]
    assert run(["collective", "--file", str(path), *words]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "a.goal: 2 operations of 2 ranks" in told
    assert "1 to 0, 1.00 of alone" in told


def test_names_are_printed_as_they_are(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """They are no markup of the console or of a picture."""
    path = tmp_path / "a[red]$\\x$ [b].toml"
    job = '[[job]]\nkind = "broadcast"\nbytes = "8KB"\nranks = 2\nname = "%s"\n'
    path.write_text("fluidcc_jobs = 1\n" + job % "x[/red] :smile: [b" + job % "[bold]y")
    words = ["--topology", "leaf-spine:1x1x4", "--scheme", "none", "--out", str(tmp_path / "out")]
    assert run(["collective", "--file", str(path), *words]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "x[/red] :smile: [b" in told
    assert "[bold]y" in told
    path = path.with_suffix(".goal")
    path.write_text("num_ranks 2\nrank 0 {\nsend 5000b to 1\n}\nrank 1 {\nrecv 5000b from 0\n}\n")
    assert run(["collective", "--file", str(path), *words]) == 0
    assert "a[red]$\\x$ [b].goal: 2 operations" in " ".join(capsys.readouterr().out.split())


def test_a_narrow_terminal_has_all_units(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    assert run(["collective", "all-reduce", *FAST, "--seeds", "3"]) == 0
    told = capsys.readouterr().out
    assert "…" not in told
    assert told.count("bps (") == 2
    assert "3 seeds (with 95 % intervals)" in " ".join(told.split())


def test_lost_packets_are_given_a_way(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["all-to-all", "--topology", "leaf-spine:1x1x8", "--scheme", "none", "--bytes", "2MB", "--until", "2ms"]
    lossy = ["--set", "pfc=off", "--set", "buffer=100KB"]
    assert run(["collective", *words, "--skew", "2", *lossy]) == 0
    assert "sends them again: --loss-recovery irn does" in " ".join(capsys.readouterr().out.split())


def test_what_has_not_ended_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["collective", "all-reduce", *FAST, "--until", "20us"]) == 0
    assert "transfers unfinished" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "KIND: give one, or --file"),
        (["all-reduce", "--file", "x.goal"], "KIND: give one, or --file"),
        (["all-redcue"], "kind: 'all-redcue' is unknown"),
        (["all-reduce", "--scheme", "none,none"], "--scheme: "),
        (["all-reduce", "--scheme", "nothing"], "nothing"),
        (["all-reduce", "--engine", "ns3"], "engine: 'ns3' runs no collectives"),
        (["all-reduce", "--hosts", "99"], "hosts: "),
        (["all-reduce", "--set", "kmini=3KB"], "kmini"),
        (["all-reduce", "--placement", "0,1"], "ranks: "),
        (["all-to-all", "--chunks", "2"], "chunks: changes nothing"),
        (["--file", "missing.toml"], "missing.toml: No such file"),
        (["--file", "missing.toml", "--steps", "2"], "steps: missing.toml says all that"),
    ],
)
def test_one_line_for_what_makes_no_sense(words: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["collective", "--topology", "leaf-spine:2x1x4", *words]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert says in told.err
    assert told.err.count("\n") == 1


@pytest.mark.parametrize(
    "command",
    [
        ["collective", "all-gather", *FAST],
        ["fabric", "none", "--topology", "leaf-spine:2x1x4", "--workload", "permutation", "--size", "20KB"],
    ],
)
def test_a_full_disk_takes_files_and_no_result(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: list[str]
) -> None:
    """Runs are kept by threads, which a full disk must not stop; what was found is printed, and files lie elsewhere."""

    def full(path: Path, content: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("fluidcc.files._write", full)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert run([*command, "--out", str(tmp_path / "out")]) == 2
    told = capsys.readouterr()
    assert "all runs: setup" in " ".join(told.out.split())
    assert told.err.count("No space left on device") == told.err.count("saved as") > 2
    assert [*(tmp_path / "out").iterdir()] == []
