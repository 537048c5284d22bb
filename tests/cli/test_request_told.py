"""Notes on a request's sources: each is told once, however often a scenario is made of it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from fluidcc.cli.request import Request, scenario_of, tell_devices, with_ports
from fluidcc.errors import InputError


def test_defaults_that_stand_in_are_told_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A search makes a scenario for each of its runs, of copies: its log had the note a thousand times."""
    file = tmp_path / "nic.txt"
    file.write_text("rpg_ai_rate = 40\n")
    request = Request("dcqcn", sources=[str(file)])
    for flows in (2, 4, 4):
        scenario_of(dataclasses.replace(request, flows=flows))
    assert capsys.readouterr().err.count("NVIDIA's defaults stand in for") == 1
    scenario_of(Request("dcqcn", sources=[str(file)]))
    assert "NVIDIA's defaults stand in for" in capsys.readouterr().err


def test_a_nic_with_dcqcn_off_and_a_speed_that_is_missing_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both change what runs: without a word the run is taken for that of the devices."""
    switch, nic = Path(__file__).parents[2] / "examples" / "leaf-100g" / "config_db.json", tmp_path / "nic.txt"
    nic.write_text("rpg_ai_rate = 40\nroce_rp/enable/3 = 0\n")
    request = with_ports(Request("dcqcn", sources=[str(switch), str(nic)], port="Ethernet0"))
    group = request.ports[0]
    group = dataclasses.replace(group, switch=dataclasses.replace(group.switch, assumed_rate=True))
    request = dataclasses.replace(request, ports=[group])
    tell_devices(request)
    said = capsys.readouterr().err
    assert "does not say how fast Ethernet0 is: taken as 100Gbps" in said
    assert "DCQCN is off at this NIC for priority 3" in said
    tell_devices(dataclasses.replace(request, rate="40Gbps"))
    assert "how fast" not in capsys.readouterr().err


def test_thresholds_that_are_shares_are_what_is_missing() -> None:
    """A queue that marks by shares of a buffer was said not to mark, with the advice to turn ECN on."""
    switch = Path(__file__).parents[2] / "examples" / "leaf-100g" / "config_db.json"
    request = with_ports(Request("dcqcn", sources=[str(switch)], port="Ethernet0"))
    group = request.ports[0]
    port = dataclasses.replace(group.switch, kmin=None, kmax=None, shares=(0.2, 0.8))
    request = dataclasses.replace(request, ports=[dataclasses.replace(group, switch=port)])
    with pytest.raises(InputError, match=r"marks from 20 to 80 % of a buffer.* or give --set kmin"):
        scenario_of(request)
