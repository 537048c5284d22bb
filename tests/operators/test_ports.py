"""Every port and every lossless priority: which are read, which stand together, and what an audit says of all."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fluidcc as fc
from fluidcc.cli.request import Request, tell_devices, with_ports
from fluidcc.cli.tune import _alike, _beside
from fluidcc.errors import InputError
from fluidcc.operators import behaviour, checks, lossless, missing_parts
from fluidcc.operators.config_db import ConfigDB
from fluidcc.operators.lossless import needed
from fluidcc.operators.ports import alike, forgotten, left_alone, read_ports
from tests.operators.short_audits import short_audits

EXAMPLE = Path(__file__).parents[2] / "examples" / "leaf-100g"


@pytest.fixture
def config(tmp_path: Path) -> Callable[..., Path]:
    """The sample, changed."""

    def write(change: Callable[[dict[str, Any]], Any] | None = None) -> Path:
        tables = json.loads((EXAMPLE / "config_db.json").read_text())
        if change is not None:
            change(tables)
        path = tmp_path / "config_db.json"
        path.write_text(json.dumps(tables))
        return path

    return write


def test_ports_that_are_set_alike_stand_together(config: Callable[..., Path]) -> None:
    """The sample's hosts hang on 5 m, its spines on 40 m; each port has two lossless priorities."""
    groups, left_out = read_ports(config())
    assert [(len(group.names), group.names[0], group.switch.queue) for group in groups] == [
        (24, "Ethernet0", 3),
        (24, "Ethernet0", 4),
        (8, "Ethernet96", 3),
        (8, "Ethernet96", 4),
    ]
    assert not left_out
    slower = config(lambda tables: tables["PORT"]["Ethernet8"].update(speed="40000"))
    assert [group.names for group in read_ports(slower)[0] if group.switch.queue == 3][1] == ("Ethernet8",)


def test_ports_by_name_and_alias(config: Callable[..., Path]) -> None:
    groups, _ = read_ports(config(), "Eth25, Ethernet0,Eth1")
    assert [group.names for group in groups if group.switch.queue == 3] == [("Ethernet96",), ("Ethernet0",)]
    for wrong in ("Ethernet1", "Eth0,Eth1", " , "):
        with pytest.raises(InputError, match="port"):
            read_ports(config(), wrong)


def test_a_port_that_is_down_is_left_out_unless_it_is_named(config: Callable[..., Path]) -> None:
    path = config(lambda tables: tables["PORT"]["Ethernet4"].update(admin_status="down"))
    assert all("Ethernet4" not in group.names for group in read_ports(path)[0])
    assert read_ports(path, "Ethernet4")[0][0].names == ("Ethernet4",)


@pytest.mark.parametrize(
    ("stripped", "beside"),
    [
        ((), {}),
        ((4, 8), {"Ethernet0": ["Ethernet4", "Ethernet8"]}),
        (range(0, 48, 4), {"Ethernet48": [f"Ethernet{each}" for each in range(0, 48, 4)]}),
        (range(0, 52, 4), {}),
    ],
)
def test_few_ports_left_out_beside_equal_lossless_ones_are_named(
    stripped: Any, beside: dict[str, list[str]], config: Callable[..., Path]
) -> None:
    """They were listed by --verbose alone; of 24 equal ports, 13 without RoCE are no lapse."""

    def strip(tables: dict[str, Any]) -> None:
        for port in [f"Ethernet{each}" for each in stripped]:
            tables["PORT_QOS_MAP"][port]["pfc_enable"] = ""
            for queue in (3, 4):
                del tables["QUEUE"][f"{port}|{queue}"]["wred_profile"]

        for port in range(96, 128, 4):
            tables["PORT"][f"Ethernet{port}"]["speed"] = "400000"

    path = config(strip)
    configs, groups = ConfigDB.all(path), read_ports(path)
    assert forgotten(configs, *groups) == beside
    [*found] = [each for name in beside for each in missing_parts.forgotten(groups[0][0].switch, beside[name])]
    assert [each.what for each in found] == ["equal ports are left out"] * len(beside)


def test_a_port_without_roce_is_said_to_be_left_out(config: Callable[..., Path]) -> None:
    def strip(tables: dict[str, Any]) -> None:
        tables["PORT_QOS_MAP"]["Ethernet4"]["pfc_enable"] = ""
        for queue in (3, 4):
            del tables["QUEUE"][f"Ethernet4|{queue}"]["wred_profile"]

    groups, left_out = read_ports(config(strip))
    assert left_out == ["Ethernet4"]
    assert all("Ethernet4" not in group.names for group in groups)
    assert read_ports(config(strip), "Ethernet4")[0][0].switch.profile == ""  # asked for by name, it is looked at
    groups, left_out = read_ports(config(strip), "Ethernet0,Ethernet4")  # beside another too
    assert [(group.names, group.switch.profile) for group in groups] == [
        (("Ethernet0",), "AZURE_LOSSLESS"),
        (("Ethernet0",), "AZURE_LOSSLESS"),
        (("Ethernet4",), ""),
    ]
    assert not left_out


def test_a_switch_as_it_leaves_the_factory_marks_nothing(config: Callable[..., Path]) -> None:
    """No QUEUE, no PORT_QOS_MAP: that is a finding, not an error."""

    def factory(tables: dict[str, Any]) -> None:
        for table in [*tables]:
            if table not in ("PORT", "DEVICE_METADATA"):
                del tables[table]

    found = fc.audit(config(factory), EXAMPLE / "nic.txt")
    assert found.findings[0].what == "ECN is off"
    assert found.count("bad") == 1
    assert len(found.groups) == 1
    assert len(found.names) == 32
    assert "usually RoCE's" in found.switch.notes[0]


def test_the_worst_group_comes_first_and_stands_for_all(config: Callable[..., Path]) -> None:
    path = config(lambda tables: tables["CABLE_LENGTH"]["AZURE"].update(Ethernet100="2000m"))
    with short_audits(3):
        found = fc.audit(path, EXAMPLE / "nic.txt", port="Ethernet0,Ethernet96,Ethernet100", packets=0)
    assert found.names == ("Ethernet100",)
    assert found.findings[0].what == "headroom is too small for the cable"
    assert [each.count("bad") for each in found.groups] == [1, 1, 0, 0, 0, 0]
    document = found.as_dict()
    assert [port["names"] for port in document["ports"]][:2] == [["Ethernet100"], ["Ethernet100"]]
    assert document["findings"] == document["ports"][0]["findings"]
    first = found.behaviour
    assert first is not None
    assert first["engine"] == "hybrid"
    assert first["seeds"] == 3
    assert first["utilisation_se"] > 0
    assert found.groups[-1].behaviour == first  # they mark alike


@pytest.mark.parametrize("long", ["", "Ethernet4", "Ethernet100"])
def test_a_run_takes_the_port_that_the_audit_calls_the_worst(config: Callable[..., Path], long: str) -> None:
    """Not the first that is up: the one whose faults can be read, here a cable that its headroom does not cover."""
    path = config(lambda tables: tables["CABLE_LENGTH"]["AZURE"].update({long: "2000m"} if long else {}))
    request = with_ports(Request("dcqcn", sources=[str(path), str(EXAMPLE / "nic.txt")]))
    with short_audits(1, "2.5ms", "5ms"):
        found = fc.audit(path, EXAMPLE / "nic.txt", packets=0)
    assert request.ports[0].names == found.names
    assert request.ports[0].switch == found.switch
    assert found.names[0] == (long or "Ethernet0")


def test_a_run_takes_a_port_that_marks(config: Callable[..., Path]) -> None:
    """A port without ECN is the audit's worst, and nothing to simulate."""

    def unmarked(tables: dict[str, Any]) -> None:
        for queue in (3, 4):
            del tables["QUEUE"][f"Ethernet0|{queue}"]["wred_profile"]

    request = with_ports(Request("dcqcn", sources=[str(config(unmarked))]))
    assert request.ports[0].names[0] == "Ethernet4"
    assert request.ports[-1].names == ("Ethernet0",)


def test_what_many_flows_do_is_asked_of_the_fluid(config: Callable[..., Path]) -> None:
    assert 64 <= behaviour.MOST_FLOWS < 1000
    with short_audits() as patch:
        patch.setattr(behaviour, "MOST_FLOWS", 7)  # so that eight are many
        found = fc.audit(config(), EXAMPLE / "nic.txt", port="Ethernet0", flows=8)
    assert found.behaviour is not None
    assert found.behaviour["engine"] == "fluid"
    assert found.behaviour["seeds"] is None
    assert any("averaged fluid" in finding.why for finding in found.findings)


def test_headroom_by_hand() -> None:
    """SONiC's own sum, without its rounding to KiB: 36 KB behind 5 m and 283 KB behind 2 km at 100 Gb/s."""
    low, high = needed(12.5e9, 5.0, 9100.0)
    on_the_way = 9100 + 2 * 5 / 1.98e8 * 12.5e9 + 0.8 * 1024 + 394 * 64
    assert low == pytest.approx(1024 + on_the_way)
    assert high == pytest.approx(1024 + on_the_way * 144 / 64)
    assert needed(12.5e9, 2000.0, 9100.0)[0] == pytest.approx(288_684, abs=1)
    assert needed(50e9, 5.0, 9100.0)[0] > low  # a faster port obeys later, in bytes


@pytest.mark.parametrize("prefix", ["green_ect", "ecn_green"])
def test_thresholds_of_marking_alone_replace_those_of_dropping(prefix: str, config: Callable[..., Path]) -> None:
    def change(tables: dict[str, Any]) -> None:
        tables["WRED_PROFILE"]["AZURE_LOSSLESS"] |= {
            f"{prefix}_min_threshold": "20000",
            f"{prefix}_max_threshold": "300000",
            f"{prefix}_mark_probability": "7",
        }

    switch = read_ports(config(change), "Ethernet0")[0][0].switch
    assert (switch.kmin, switch.kmax, switch.pmax) == (20000.0, 300000.0, 0.07)
    assert any(prefix in note for note in switch.notes)


def test_a_length_that_is_none_is_refused(config: Callable[..., Path]) -> None:
    with pytest.raises(InputError, match=r"CABLE_LENGTH\|AZURE Ethernet0"):
        read_ports(config(lambda tables: tables["CABLE_LENGTH"]["AZURE"].update(Ethernet0="long")))


def test_a_profile_of_another_asic_with_other_values_is_left_alone(config: Callable[..., Path]) -> None:
    """A patch for what one ASIC's port runs best with would be written for marking that nobody compared."""
    path = config()
    tables = json.loads(path.read_text())
    other = json.loads(path.read_text())
    other["WRED_PROFILE"]["AZURE_LOSSLESS"] |= {"green_min_threshold": "5000", "green_max_threshold": "8000"}
    path.write_text(json.dumps({"localhost": {}, "asic0": tables, "asic1": other, "asic2": tables}))
    groups = read_ports(path)[0]
    first = next(each.switch for each in groups if each.switch.asic == "asic0")
    chosen = alike(groups, first)
    assert {each.switch.asic for each in chosen} == {"asic0", "asic2"}
    said = left_alone(groups, chosen)
    assert said
    assert all(text.startswith("asic1:Ethernet") and "Kmin 5KB, Kmax 8KB" in text for text in said)


def _two_queues(tables: dict[str, Any]) -> None:
    tables["WRED_PROFILE"]["OTHER"] = tables["WRED_PROFILE"]["AZURE_LOSSLESS"] | {"green_min_threshold": "9000"}
    tables["QUEUE"]["Ethernet0|4"]["wred_profile"] = "OTHER"


def test_a_port_whose_queues_differ_is_tuned_for_the_worst(
    config: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """Its other queue is no other port: "Ethernet0 differs from Ethernet0" left nothing to type."""
    request = with_ports(Request("dcqcn", sources=[str(config(_two_queues))], port="Ethernet0"))
    assert len(request.ports) == 2
    (chosen,) = _alike(request)
    assert chosen.switch.queue == request.ports[0].switch.queue
    assert _beside(request.ports, [chosen]).startswith(f"queue {request.ports[1].switch.queue} of the same ports, with")
    assert _beside(request.ports, request.ports) == ""
    tell_devices(request)
    assert "the worst of queues 3, 4, among which --port does not choose" in capsys.readouterr().err.splitlines()[0]


def test_queues_that_mark_are_read_where_pfc_is_of_others(config: Callable[..., Path]) -> None:
    """Catches an audit of the queues that PFC pauses by mistake, in which those of RoCE do not appear."""

    def change(tables: dict[str, Any], **fields: str) -> None:
        for name in tables["PORT_QOS_MAP"]:
            tables["PORT_QOS_MAP"][name] |= fields

    def queues(path: Path) -> list[int]:
        return [group.switch.queue for group in read_ports(path, "Ethernet0")[0]]

    wrong = config(lambda tables: change(tables, pfc_enable="5,6"))
    assert queues(wrong) == [3, 4, 5, 6]
    first = read_ports(wrong, "Ethernet0")[0][0].switch
    (off,) = (each for each in checks.marking(first) if each.what == "PFC is off")
    assert "PFC is on for priority 5,6" in off.why
    assert queues(config(lambda tables: change(tables, pfc_enable="3"))) == [3]
    silent = config(
        lambda tables: (change(tables, pfc_enable="5"), tables["WRED_PROFILE"]["AZURE_LOSSLESS"].update(ecn="ecn_none"))
    )
    assert queues(silent) == [5]


def test_a_pause_that_stops_another_queue_is_told_of_the_queue_that_marks(config: Callable[..., Path]) -> None:
    path = config(lambda tables: tables["MAP_PFC_PRIORITY_TO_QUEUE"]["AZURE"].update({"3": "0", "4": "1"}))
    first = read_ports(path, "Ethernet0")[0][0].switch
    assert (first.queue, first.lossless) == (3, False)
    assert "PAUSE stops another queue" in {each.what for each in lossless.traffic(first, None)}
