"""``fluidcc tune``: keys as promised, and one line for what makes no sense."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import fluidcc as fc
import fluidcc.studies.tuning
from fluidcc.cli.app import run
from fluidcc.cli.tune import _mends
from fluidcc.errors import InputError
from fluidcc.scenario.model import resolve

FAST = ["--until", "5ms", "--evaluations", "10", "--seeds", "2", "--sensitivity", "0"]
RANGES = ["--over", "kmin=2KB:100KB", "--over", "pmax=1%:50%"]
EXAMPLES = Path(__file__).parents[3] / "examples"
LEAF = EXAMPLES / "leaf-100g"

SWITCH = ["--from", str(LEAF / "config_db.json")]
FABRIC = ["--from", str(EXAMPLES / "fabric-400g" / "config_db.json")]


def test_its_json_has_the_promised_keys(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "out"
    fast = ["--until", "2ms", "--evaluations", "6", "--seeds", "1", "--sensitivity", "0", "--packets", "2"]
    arguments = ["tune", "dcqcn", "--flows", "2:3", *RANGES, *fast, "--subject-to", "jain>=0.2"]
    assert run([*arguments, "--write", str(out), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {"start", "best", "evaluations", "pareto", "sensitivity", "packets", "confirmed", "files"} <= found.keys()
    assert (found["packet_bytes"], found["header_bytes"]) == (1000.0, 0.0)
    assert found["start"]["kmin"] == 5e3
    assert found["start"]["pmax"] == 0.01
    assert 2e3 <= found["best"]["kmin"] <= 1e5
    assert found["best"]["metrics"]["queue_bytes.p99"] >= 0
    assert set(found["packets"]) == {"start", "best"}
    assert found["packets"]["best"]["pfc_pauses"] == 0
    assert isinstance(found["confirmed"], bool)
    assert {Path(file).name for file in found["files"]} == {"tuning.json", "front.png", "packets.png"}
    assert json.loads((out / "tuning.json").read_text())["best"] == found["best"]


def test_a_switchs_own_buffers_and_pauses_are_in_what_packets_see(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Also, what packets ask beyond the bounds is told."""
    arguments = ["tune", "dcqcn", "--from", str(LEAF / "config_db.json"), "--from", str(LEAF / "nic.txt")]
    fast = ["--until", "3ms", "--evaluations", "4", "--seeds", "1", "--sensitivity", "0", "--packets", "1"]
    assert run([*arguments, "--flows", "8", "--over", "kmin=1KB:100KB", *fast, "--write", str(tmp_path)]) == 0
    assert "no more PAUSEs and drops" in " ".join(capsys.readouterr().out.split())
    found = json.loads((tmp_path / "tuning.json").read_text())
    assert found["packets"]["start"]["pfc_pauses"] > 0  # its thresholds of megabytes fill the buffer
    assert found["start"]["kmin"] == 1048576


@pytest.mark.parametrize(
    ("more", "until", "case"),
    [
        ([], 0.02, 0.16),  # the search begins at the share, and 32 senders at line rate run four times as long
        (["--engine", "fluid"], 0.04, 0.16),  # whose flows begin at line rate
        (["--no-defaults"], 0.04, None),
        (["--until", "5ms"], "5ms", None),
    ],
)
def test_a_run_is_as_long_as_its_start_needs(
    more: list[str], until: object, case: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {}

    def tune(*_: Any, **options: Any) -> None:
        asked.update(options)
        raise InputError("enough")

    monkeypatch.setattr(fluidcc.studies.tuning, "tune", tune)
    assert run(["tune", "dcqcn", "--rate", "400Gbps", *RANGES, *more]) == 2
    assert asked["until"] == until
    assert max((each.get("until", 0.0) for each in asked["packet_cases"] or []), default=0.0) == (case or 0.0)


@pytest.mark.parametrize(
    ("more", "least", "most"),
    [
        (
            ["--rate", "25Gbps", "--packet-size", "1000"],
            3 * 1062,
            2 * 1_048_576,
        ),  # SONiC's template has the largest Kmin
        (["--rate", "400Gbps", "--set", "packet_size=4096"], 3 * 4158, 2 * 1_600_000),  # Alibaba's, in proportion
    ],
)
def test_names_alone_are_tuned_between_the_usual_bounds(
    more: list[str], least: float, most: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No Kmin below what eight flows' packets wait for each other, nor above twice what anybody uses at the speed.

    At full load 99 of 100 packets find three at most.
    """
    asked: list[Any] = []

    def tune(_: Any, bounds: Any, **options: Any) -> None:
        asked.append(bounds)
        raise InputError("enough")

    monkeypatch.setattr(fluidcc.studies.tuning, "tune", tune)
    assert run(["tune", "dcqcn", "--over", "kmin", "--over", "kmax", "--over", "g=1/256:1/16", *more]) == 2
    (found,) = asked
    assert found["g"] == ("1/256", "1/16")
    assert found["kmin"][0] == pytest.approx(least)
    assert found["kmin"][1] == most
    assert found["kmax"][0] == 2 * found["kmin"][0]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--over", "kmin=1KB"], "NAME=LO:HI"),
        (["--over", "kmin=1KB:2KB:3"], "NAME=LO:HI"),
        (["--over", "kmim=1KB:2KB"], "did you mean kmin"),
        (["--over", "timer"], "timer has no usual bounds; write --over timer=LO:HI"),
        (["--over", "flows=2:8"], "nothing to search"),
        (["--over", "kmin=1KB:20KB", "--over", "kmin=1KB:30KB"], "twice"),
        ([*RANGES, "--across", "delay"], "--across"),
        ([*RANGES, "--across", "kmin=1KB,2KB"], "twice"),
        ([*RANGES, "--objective", "speed"], "no metric"),
        ([*RANGES, "--subject-to", "utilisation=1"], "no bound"),
        ([*RANGES, "--flows", "none"], "--flows"),
        ([*RANGES, "--engine", "packet"], "packets prove"),
        (["--over", "kmin=-5KB:100KB"], "over kmin: -5KB is nothing that it can be; it takes 0B or more"),
        (["--over", "pmax=1%:200%"], "over pmax: 2 is nothing that it can be; it takes 0 to 1"),
        ([*RANGES, "--subject-to", "utilisation>=2"], "from 0 to 1"),
        ([*RANGES, "--subject-to", "jain<=-1"], "from 0 to 1"),
        ([*RANGES, "--window", "4ms:2ms"], "window: 4ms:2ms does not end after it begins"),
        ([*RANGES, "--window", "2ms:6ms"], "does not lie inside the run of 5ms"),
        ([*RANGES, "--write", ""], "no folder is named"),
        ([*RANGES, "--narrow"], "no trial without a switch's file"),
        ([*RANGES, "--write", str(LEAF / "nic.txt" / "out")], "--write"),
        ([*RANGES, *SWITCH, *SWITCH], "one of 2 switches"),
        ([*RANGES, *SWITCH, "--set", "kmin=30KB"], "kmin is held by --set"),
        ([*RANGES, *SWITCH, "--port", "Eth1,Ethernet999"], "has no 'Ethernet999'"),
        (["--over", "kmin=1KB:99KB", *FABRIC, "--port", "Ethernet0,Ethernet124"], "differs from Ethernet0"),
    ],
)
def test_one_line_for_what_makes_no_sense(arguments: list[str], word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["tune", "dcqcn", *arguments, *FAST]) == 2
    said = capsys.readouterr()
    assert word in said.err
    assert said.err.count("\n") == 1
    assert said.out == ""


@pytest.mark.parametrize(
    ("sets", "bounds", "hint"),
    [
        ({}, {"kmin": 1}, True),  # 32 KB at 100 Gb/s: every 2.6 us, where the timer takes 300
        ({}, {"byte_counter": 1}, False),
        ({"byte_counter": 4e6}, {"kmin": 1}, False),
        ({"byte_counter": 3.7e6}, {"kmin": 1}, True),
        ({"cnp_interval": 50e-6}, {"kmin": 1}, True),
    ],
)
def test_where_nothing_is_found_the_byte_counter_is_named(sets: Any, bounds: Any, hint: bool) -> None:
    """It makes flows unfair whatever the thresholds; with a timer of 300 us from 3.75 MB at 100 Gb/s on it does not."""
    scheme = fc.DCQCN(**{"byte_counter": 32767.0, "timer": 300e-6, "cnp_interval": 4e-6, **sets})
    scenario = resolve(fc.incast(2, rate="100Gbps", scheme=scheme))
    found = _mends(scenario, "dcqcn", bounds)
    assert bool(found) is hint
    quick = " --set timer=100us" * ("cnp_interval" not in sets)  # of CNPs each 50 us two come before an increase
    assert all(f"--set byte_counter=1TB{quick}, as if" in each for each in found)


def test_what_packets_refuse_is_not_typed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fluidcc.studies.tuning.choice.contradictions", lambda *_: ["the queue is far longer"])
    files = ["--from", str(LEAF / "config_db.json"), "--from", str(LEAF / "nic.txt"), "--write", str(tmp_path)]
    arguments = ["--flows", "2", "--over", "kmin=4KB:400KB", *FAST, "--packets", "1", "--subject-to", "jain>=0.1"]
    assert run(["tune", "dcqcn", *files, *arguments, "--no-defaults"]) == 0
    said = capsys.readouterr()
    assert "the queue is far longer" in " ".join(said.out.split())
    assert "nothing to type" in said.out
    assert "packets of 4096 B" in said.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["front.png", "packets.png", "tuning.json"]


def test_what_is_held_by_set_is_typed_too(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """All settings ran with the byte counter off: a NIC that keeps it was never tried."""
    arguments = [*SWITCH, "--from", str(LEAF / "nic.txt"), "--over", "g=1/1024:1/4", "--set", "byte_counter=1TB", *FAST]
    assert run(["tune", "dcqcn", "--flows", "2", *arguments, "--packets", "0", "--write", str(tmp_path)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "the present setting ran with --set's byte_counter too; what is typed has them" in told
    assert "RPG_BYTE_RESET_P${NIC_PORT}=0" in (tmp_path / "nic.sh").read_text()
    assert "RPG_BYTE_RESET_P${NIC_PORT}=32767" in (tmp_path / "nic-undo.sh").read_text()


def test_what_is_typed_is_for_the_ports_that_are_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """By name or alias; what an earlier run has left is pointed at, and what has no device."""
    (tmp_path / "nic-undo.sh").write_text("of yesterday")
    arguments = [*SWITCH, "--port", "Eth1,Ethernet4", "--over", "kmin=4KB:400KB", "--over", "g=1/1024:1/4", *FAST]
    assert run(["tune", "dcqcn", "--flows", "2", *arguments, "--packets", "0", "--write", str(tmp_path)]) == 0
    said = capsys.readouterr()
    assert "nic-undo.sh is of an earlier run, not of this setting" in said.err
    assert "nothing to type for g: give a NIC's settings by --from too" in " ".join(said.out.split())
    assert "no more PAUSEs and drops" not in said.out  # no packets ran
    assert "changes 2 ports" in (tmp_path / "README.txt").read_text()
    added = [each for each in json.loads((tmp_path / "patch.json").read_text()) if "QUEUE" in each["path"]]
    assert added
    assert all("Ethernet0|" in each["path"] or "Ethernet4|" in each["path"] for each in added)
