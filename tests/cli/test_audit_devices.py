"""Devices that ``fluidcc audit`` is given: one switch and one NIC, each recognised by what is in its file."""

from __future__ import annotations

from pathlib import Path

import pytest

from fluidcc.cli.app import run

EXAMPLE = Path(__file__).parents[2] / "examples" / "leaf-100g"
SWITCH, NIC = str(EXAMPLE / "config_db.json"), str(EXAMPLE / "nic.txt")


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(["audit", *arguments]) == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("--switch", SWITCH, "--sonic", SWITCH), "switch"),
        ((SWITCH, "--switch", SWITCH), "switch"),
        ((SWITCH, "--nic", NIC, "--nic", NIC), "NIC"),
    ],
)
def test_a_second_device_is_refused_however_it_is_given(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], what: str
) -> None:
    """Catches an option of which the last alone counts: two switches, and one of them audited."""
    assert f"is one more {what}; audit takes one of each" in refused(capsys, *arguments)


def test_a_file_of_no_known_form_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Catches `no switch is given` where one is, in a form that nothing reads."""
    path = tmp_path / "wred.txt"
    path.write_text("Policy : ROCE\necn : ecn_all\ngreen-min-threshold : 200 KBytes\n")
    assert "wred.txt: its form is unknown" in refused(capsys, str(path))
    (tmp_path / "folder").mkdir()
    assert "folder: its form is unknown" in refused(capsys, str(tmp_path / "folder"))
    assert "no switch is given" in refused(capsys, NIC)


def test_a_missing_file_is_not_said_to_be_of_an_option(capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, "nofile.json")
    assert "nofile.json: No such file" in said
    assert "--from" not in said
