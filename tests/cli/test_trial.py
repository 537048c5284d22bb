"""A setting that was found, beside the present one and public ones: what is said is what the printed command finds."""

from __future__ import annotations

import json
import math
import shlex
from pathlib import Path

import numpy as np
import pytest

from fluidcc.cli import contenders as trial
from fluidcc.cli.app import run
from fluidcc.cli.contenders import contenders, read
from fluidcc.studies.tuning.trial import COUNT, RECOMMENDED, Row, Trial
from fluidcc.units import RATIO, SIZE, quantity

LEAF = Path(__file__).parents[2] / "examples" / "leaf-100g"
FILES = [str(LEAF / "config_db.json"), str(LEAF / "nic.txt")]
POINT = {"kmin": 199e3, "pmax": 0.67, "g": 0.0127, "byte_counter": 1e12}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "SHAPE", "leaf-spine:2x1x2")
    monkeypatch.setattr(trial, "_BYTES", 2e7)
    monkeypatch.setattr(trial, "_SENT", 1e-5)


@pytest.mark.usefixtures("small")
def test_the_printed_command_says_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    """The files, the port, --set but for what a fabric has not, and the packets' size are in it."""
    sets = ["rate_ai=10Mbps", "flows=4"]
    found = trial.tried("dcqcn", FILES, POINT, port="Ethernet0", sets=sets)
    capsys.readouterr()
    assert "packets of 4096 B; leaf-spine:2x1x2 with web-search at 50 % load" in found.words
    typed = shlex.split(found.commands.splitlines()[0])
    assert typed[0] == "fluidcc"
    assert "--set rate_ai=10Mbps" in found.commands
    assert "flows=" not in found.commands
    assert run([*typed[1:], "--json"]) == 0
    told = {each["scheme"]: each["ratios"] for each in json.loads(capsys.readouterr().out)["against"]}
    assert found.trial is not None
    assert [f"dcqcn-{name}" for name in found.trial.settings] == list(told)
    for row in found.trial.of("web-search"):
        for name in found.trial.settings:
            if row.unit != COUNT:
                ratio = told[f"dcqcn-{name}"][row.measure]
                assert row.ratio(name) == pytest.approx({end: ratio[end] or math.nan for end in ratio}, nan_ok=True)


@pytest.mark.usefixtures("small")
def test_all_values_of_a_point_are_in_its_setting() -> None:
    """A value that is lost would leave the present one, unsaid."""
    found = trial.tried("dcqcn", FILES, POINT, sets=["packet_size = 1024B"])
    assert "packets of 1024 B; " in found.words
    typed = shlex.split(found.commands.splitlines()[0])
    assert typed[typed.index("--packet-size") + 1] == "1024"
    setting = typed[typed.index("--setting") + 1]
    sent = contenders(["dcqcn"], "hpcc-eval", None, read(FILES, None), "4096", [setting])
    tuned = sent.options["dcqcn-recommended"]
    values = {name: getattr(tuned["scheme"], name) for name in ("g", "byte_counter")}
    values |= {name: getattr(tuned["marking"][0](12.5e9), name) for name in ("kmin", "pmax")}
    dimensions = {"kmin": SIZE, "pmax": RATIO, "g": RATIO, "byte_counter": SIZE}
    assert {name: quantity(value, dimensions[name]) for name, value in values.items()} == pytest.approx(POINT)


def test_what_cannot_be_tried_says_why(tmp_path: Path) -> None:
    """A search of minutes is not lost with it."""
    document = json.loads(Path(FILES[0]).read_text())
    document["WRED_PROFILE"]["AZURE_LOSSLESS"]["ecn"] = "ecn_none"
    file = tmp_path / "config_db.json"
    file.write_text(json.dumps(document))
    found = trial.tried("dcqcn", [file], {"kmin": 5e3, "kmax": 9e3, "pmax": 0.1})
    assert found.words.startswith("not tried on a whole fabric: ")
    assert "does not mark" in found.words
    assert (found.trial, found.commands) == (None, "")


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("worse", [True, False])
def test_a_trade_names_the_command_that_finds_none(monkeypatch: pytest.MonkeyPatch, worse: bool) -> None:
    """With the same files, packets and fabric, over what was tuned; no such line where nothing is worse."""
    monkeypatch.setattr(trial, "words_of", lambda _: ("", worse))
    lines = trial.tried("dcqcn", FILES, POINT, port="Ethernet0", sets=["rate_ai=10Mbps"]).commands
    assert ("fluidcc tune" in lines) is worse
    if worse:
        run_again, _, typed = (shlex.split(line) for line in lines.splitlines())
        assert typed[:2] == ["fluidcc", "tune"]
        assert typed[2 : typed.index("--over")] == run_again[2 : run_again.index("--until")]
        assert typed[typed.index("--over") :] == ["--over", "kmin", "--over", "pmax", "--over", "g"]


def test_two_public_settings_that_are_not_the_present_one() -> None:
    """The sample has SONiC's template, which would be compared with itself."""
    found = trial._public("dcqcn", read(FILES, "Ethernet0"))
    assert list(found) == ["alibaba", "paper"]
    assert found["alibaba"] == {"kmin": 400e3, "kmax": 1.6e6, "pmax": 0.2}
    assert trial._public("dctcp", read(FILES, "Ethernet0")) == {}


def row(case: str, measure: str, own: list[float], present: list[float], unit: str = "") -> Row:
    return Row(case, measure, measure, unit, {RECOMMENDED: np.stack([own, present], axis=1)})


def test_the_first_sentence_says_what_is_better_and_what_worse() -> None:
    """More is better of some; what chance explains is neither; cases of a measure stand together, most change first."""
    rows = [
        row("2 flows", "queue p99", [10.0, 11.0, 10.0], [100.0, 101.0, 100.0]),
        row("8 flows", "queue p99", [50.0, 51.0, 50.0], [100.0, 101.0, 100.0]),
        row("2 flows", "utilisation", [0.80, 0.81, 0.80], [0.99, 0.99, 0.99]),
        row("web-search", "p99", [3.0, 5.0, 4.0], [4.0, 4.0, 4.0]),
        row("web-search", "goodput", [2.0, 2.01, 2.0], [1.0, 1.0, 1.0]),
        row("web-search", "unfinished", [1.0, 0.0, 2.0], [0.0, 0.0, 0.0], COUNT),
        row("web-search", "pfc_pauses", [9.0, 9.0, 9.0], [0.0, 0.0, 0.0], COUNT),
        row("8 flows", "pfc_pauses", [100.0, 100.0, 109.0], [100.0, 100.0, 100.0], COUNT),  # by chance
        row("web-search", "p50", [1.004, 1.0041, 1.0039], [1.0, 1.0, 1.0]),  # sure, and nobody would notice
        row("all-to-all", "time", [math.nan, 1.0, 1.0], [math.nan, math.nan, math.nan]),
    ]
    words, worse = trial.words_of(Trial({RECOMMENDED: {}}, rows, {}))
    assert worse
    assert words == (
        "The recommended setting over the present one. Worse: 3 unfinished with web-search, not 0; 27 pfc_pauses with "
        "web-search, not 0; utilisation with 2 flows x0.811. "
        "Better: queue p99 with 2 flows and 8 flows x0.103 to x0.502; goodput with web-search x2. "
        "The same, or not told apart: 2 of 6"
    )
    assert not trial.words_of(Trial({RECOMMENDED: {}}, rows[:2], {}))[1]


def test_a_table_shows_counts_as_they_are_and_leaves_out_zeros() -> None:
    rows = [
        row("8 flows", "queue p99", [10e3] * 3, [100e3] * 3, "bytes"),
        row("8 flows", "pfc_pauses", [1.0, 2.0, 3.0], [100.0, 200.0, 800.0], COUNT),
        row("8 flows", "drops", [0.0] * 3, [0.0] * 3, COUNT),
    ]
    found = trial.cells(Trial({RECOMMENDED: {}}, rows, {"8 flows": "8 flows into the port"}))
    assert found == [("8 flows", "", ""), ("  queue p99", "100KB", "x0.1"), ("  pfc_pauses", "1,100", "6")]
