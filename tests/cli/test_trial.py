"""A setting that was found, tried on a fabric: what is said is what the printed command finds."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from fluidcc.cli import trial
from fluidcc.cli.app import run
from fluidcc.cli.contenders import contenders, read
from fluidcc.units import RATIO, SIZE, quantity

LEAF = Path(__file__).parents[2] / "examples" / "leaf-100g"
FILES = [str(LEAF / "config_db.json"), str(LEAF / "nic.txt")]
POINT = {"kmin": 199e3, "pmax": 0.67, "g": 0.0127, "byte_counter": 1e12}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "SHAPE", "leaf-spine:2x1x2")
    monkeypatch.setattr(trial, "_BYTES", 2e7)


@pytest.mark.usefixtures("small")
def test_the_printed_command_says_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    """The files, the port, --set but for what a fabric has not, and the packets' size are in it."""
    sets = ["rate_ai=10Mbps", "flows=4"]
    words, command = trial.tried("dcqcn", FILES, POINT, port="Ethernet0", sets=sets)
    capsys.readouterr()
    where = "4 hosts of leaf-spine:2x1x2, web-search at 50 % load, packets of 4096 B, 3 seeds"
    assert words.startswith(f"on a whole fabric ({where}), against the present setting: ")
    typed = shlex.split(command.splitlines()[0])
    assert typed[0] == "fluidcc"
    assert "--set rate_ai=10Mbps" in command
    assert "flows=" not in command
    assert run(typed[1:]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert told.endswith(f"dcqcn-tuned against dcqcn, seed by seed: {words.partition('present setting: ')[2]}")


@pytest.mark.usefixtures("small")
def test_all_values_of_a_point_are_in_its_setting() -> None:
    """A value that is lost would leave the present one, unsaid."""
    words, command = trial.tried("dcqcn", FILES, POINT, sets=["packet_size = 1024B"])
    assert "packets of 1024 B, 3 seeds" in words
    typed = shlex.split(command.splitlines()[0])
    assert typed[typed.index("--packet-size") + 1] == "1024"
    setting = typed[typed.index("--setting") + 1]
    sent = contenders(["dcqcn"], "hpcc-eval", None, read(FILES, None), "4096", [setting])
    tuned = sent.options["dcqcn-tuned"]
    found = {name: getattr(tuned["scheme"], name) for name in ("g", "byte_counter")}
    found |= {name: getattr(tuned["marking"][0](12.5e9), name) for name in ("kmin", "pmax")}
    dimensions = {"kmin": SIZE, "pmax": RATIO, "g": RATIO, "byte_counter": SIZE}
    assert {name: quantity(value, dimensions[name]) for name, value in found.items()} == pytest.approx(POINT)


def test_what_cannot_be_tried_says_why(tmp_path: Path) -> None:
    """A search of minutes is not lost with it."""
    document = json.loads(Path(FILES[0]).read_text())
    document["WRED_PROFILE"]["AZURE_LOSSLESS"]["ecn"] = "ecn_none"
    file = tmp_path / "config_db.json"
    file.write_text(json.dumps(document))
    words, command = trial.tried("dcqcn", [file], {"kmin": 5e3, "kmax": 9e3, "pmax": 0.1})
    assert words.startswith("not tried on a whole fabric: ")
    assert "does not mark" in words
    assert command == ""


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("words", "more"), [("better: p99 x0.5; worse: goodput x0.9", True), ("better: p99 x0.5", False)]
)
def test_a_trade_names_the_command_that_finds_none(monkeypatch: pytest.MonkeyPatch, words: str, more: bool) -> None:
    """With the same files, packets and fabric, over what was tuned; no such line where nothing is worse."""
    monkeypatch.setattr("fluidcc.cli.fabric.words_against", lambda *_: words)
    _, lines = trial.tried("dcqcn", FILES, POINT, port="Ethernet0", sets=["rate_ai=10Mbps"])
    assert ("fluidcc tune" in lines) is more
    if more:
        run_again, _, typed = (shlex.split(line) for line in lines.splitlines())
        assert typed[:2] == ["fluidcc", "tune"]
        assert typed[2 : typed.index("--over")] == run_again[2 : run_again.index("--until")]
        assert typed[typed.index("--over") :] == ["--over", "kmin", "--over", "pmax", "--over", "g"]
