"""RoCEv2's packets: headers byte by byte, sizes from the NIC, rates of bytes in a buffer."""

from __future__ import annotations

from pathlib import Path

import pytest

import fluidcc as fc
from fluidcc.operators import read_nic
from fluidcc.scenario.frames import IN_BUFFER, ON_WIRE_ALONE, active_mtu, framed, payloads, said, wire_share


def test_headers_are_those_of_the_standards() -> None:
    """62 bytes in a buffer and 82 on the wire."""
    assert IN_BUFFER == 14 + 20 + 8 + 12 + 4 + 4
    assert IN_BUFFER + ON_WIRE_ALONE == 82


@pytest.mark.parametrize(
    ("ethernet", "payload"),
    [(1500, 1024), (9000, 4096), (9100, 4096), (4192, 4096), (4191, 2048), (2144, 2048), (351, None), (352, 256)],
)
def test_a_nic_takes_the_largest_packet_that_fits(ethernet: int, payload: float | None) -> None:
    assert active_mtu(ethernet) == payload


@pytest.mark.parametrize(
    ("lines", "mtu"),
    [
        ("active_mtu: 1024 (3)", 1024.0),
        ("active_mtu = 4096", 4096.0),
        ("mtu 4200", 4096.0),
        ("mtu: 1500", 1024.0),
        ("active_mtu: 4096 (5)\nmtu: 9000", 4096.0),
        ("# nothing", None),
    ],
)
@pytest.mark.parametrize("registers", ["rpg_ai_rate = 5", "Configurations:   Current\n  RPG_AI_RATE_P1   5"])
def test_a_nics_mtu_is_read_with_its_settings(lines: str, mtu: float | None, registers: str, tmp_path: Path) -> None:
    """Beside registers in either form; `mlxconfig query` has no line of it."""
    (tmp_path / "nic.txt").write_text(f"{registers}\n{lines}\n")
    found = read_nic(tmp_path / "nic.txt")
    assert found.mtu == mtu
    assert not any("mtu" in line for line in found.ignored)


@pytest.mark.parametrize("lines", ["active_mtu: 1000", "mtu: 300", "active_mtu: 4096\nactive_mtu: 1024"])
def test_an_mtu_that_is_none_is_refused(lines: str, tmp_path: Path) -> None:
    (tmp_path / "nic.txt").write_text(f"rpg_ai_rate = 5\n{lines}\n")
    with pytest.raises(fc.InputError, match="mtu"):
        read_nic(tmp_path / "nic.txt")


def test_a_folder_has_it_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "rpg_ai_rate").write_text("5\n")
    (tmp_path / "mtu").write_text("9000\n")
    assert read_nic(tmp_path).mtu == 4096.0


def test_what_is_given_goes_before_what_the_nic_says_and_that_before_both_usual_sizes(tmp_path: Path) -> None:
    (tmp_path / "nic.txt").write_text("rpg_ai_rate = 5\nactive_mtu = 2048\n")
    nic = read_nic(tmp_path / "nic.txt")
    assert payloads(nic, "1500B") == (1500.0,)
    assert payloads(nic) == (2048.0,)
    assert payloads(None) == (1024.0, 4096.0)
    assert "not known" in said(payloads(None), None)
    assert "active MTU" in said(payloads(nic), nic)
    with pytest.raises(fc.InputError, match="packet_size"):
        payloads(nic, "1B")


def test_rates_are_those_of_bytes_in_a_buffer() -> None:
    """At 1000 B a wire of 100 Gb/s carries 1062 of every 1082 bytes into a buffer, and 1000 of them are payload."""
    scenario = framed(fc.incast(2, rate="100Gbps", initial_rate=["10Gbps", None]), 1000.0)
    share = 1062 / 1082
    assert wire_share(1000.0) == pytest.approx(share)
    assert scenario.wire_packet == 1062.0
    assert scenario.links[0].rate == pytest.approx(12.5e9 * share)
    assert scenario.flows[0].line_rate == pytest.approx(12.5e9 * share)
    assert scenario.flows[0].initial_rate == pytest.approx(1.25e9 * share)
    assert float(scenario.links[0].rate / scenario.wire_packet * 1000) == pytest.approx(12.5e9 * 1000 / 1082)
