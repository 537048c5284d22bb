"""Hosts against their switch: PFC, trust and DSCP beside a NIC's settings, its other port, and sizes of packets."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from fluidcc.operators import checks, read_nic, read_sonic
from fluidcc.operators.finding import Finding
from fluidcc.operators.lossless import host
from fluidcc.operators.nvidia import NicSettings
from fluidcc.operators.nvidia_text import NicQos, read_qos
from fluidcc.scenario.parameters import resolve
from fluidcc.schemes.dcqcn import PRESETS

PORT = read_sonic(Path(__file__).parents[2] / "examples" / "leaf-100g" / "config_db.json")
QOS = """DCBX mode: OS controlled
Priority trust state: {trust}
PFC configuration:
        priority    0   1   2   3   4   5   6   7
        enabled     0   0   0   {on}   0   0   0   0
"""


def found(qos: NicQos | None = None, payload: float | None = None, **changes: Any) -> dict[str, Finding]:
    nic = NicSettings({}, "nic.txt", mtu=payload, qos=qos or NicQos())
    return {each.what: each for each in host(dataclasses.replace(PORT, **changes), nic)}


def test_what_the_hosts_tools_print_is_read_beside_the_settings(tmp_path: Path) -> None:
    """Catches output of mlnx_qos and cma_roce_tos that is skipped in silence."""
    path = tmp_path / "nic.txt"
    tools = "a:~# cma_roce_tos -d mlx5_0\n0\nb:~# cma_roce_tos -d mlx5_0 -t 106\n106\n"
    path.write_text("    RPG_AI_RATE_P1    5\n" + QOS.format(trust="pcp", on=1) + tools)
    assert read_nic(path).qos == NicQos((3,), "pcp", (0, 106))
    path.write_text("rpg_ai_rate = 5\nGlobal tclass=96\n")
    assert read_nic(path).qos == NicQos(None, "", (96,))
    assert read_qos(QOS.format(trust="dscp", on=0)) == NicQos((), "dscp")


@pytest.mark.parametrize(("pfc", "severity"), [(None, ""), ((3,), ""), ((4,), "ok"), ((), "bad"), ((5,), "bad")])
def test_pfc_of_a_host_is_that_of_its_switch(pfc: tuple[int, ...] | None, severity: str) -> None:
    """Notice a host blamed for using one of two lossless priorities, or not blamed for using neither."""
    told = list(found(NicQos(pfc)).values())
    assert [each.severity for each in told] == ([severity] if severity else [])
    if severity == "bad":
        assert told[0].suggest == "mlnx_qos -i IFACE --pfc 0,0,0,1,1,0,0,0, on each host"


def test_packets_of_a_host_reach_a_lossless_queue() -> None:
    assert found(NicQos(tos=(106,), trust="dscp")) == {}
    assert found(NicQos(trust="pcp"))["the host does not trust DSCP"].severity == "warn"
    astray = found(NicQos(tos=(0,)))["RoCE's packets go to another queue"]
    assert astray.severity == "bad"
    assert "DSCP 0, which this switch puts into queue" in astray.why
    assert astray.suggest.startswith("cma_roce_tos -d DEVICE -t 106 (DSCP 26)")
    assert found(NicQos(tos=(0,), trust="pcp"), traffic=None) == {}  # what leads where is not known


@pytest.mark.parametrize(("mtu", "lost"), [(1500, True), (4155, True), (4156, False), (9100, False)])
def test_packets_with_their_headers_pass_the_switch(mtu: float, lost: bool) -> None:
    """4096 B of payload and 60 B of IPv4, UDP, BTH, RETH and ICRC."""
    assert ("packets are larger than the switch's MTU" in found(payload=4096.0, mtu=mtu)) is lost


def test_dcqcn_that_is_off_on_the_other_port_is_said(tmp_path: Path) -> None:
    """Catches a second port of which only the number of settings is told."""
    path = tmp_path / "nic.txt"
    path.write_text("RPG_AI_RATE_P1=5\nROCE_CC_PRIO_MASK_P1=255\nRPG_AI_RATE_P2=7\nROCE_CC_PRIO_MASK_P2=0\n")
    nic, scheme = read_nic(path), resolve(PRESETS["vendor"].scheme)
    assert "2 settings of port 2, which differ in rpg_ai_rate, roce_cc_prio_mask" in nic.ignored
    assert "DCQCN is off on port 2" in {each.what for each in checks.nic(PORT, nic, scheme)}
    path.write_text("RPG_AI_RATE_P1=5\nROCE_CC_PRIO_MASK_P1=255\nROCE_CC_PRIO_MASK_P2=8\n")
    assert not [each for each in checks.nic(PORT, read_nic(path), scheme) if "off on port" in each.what]
