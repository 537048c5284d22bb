"""Values, keys and lines as they are found in the field: read, named, or refused, and never silently another thing."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fluidcc.errors import InputError
from fluidcc.operators import NicSettings, SwitchPort, checks, dcqcn_of, lossless, read_nic, read_sonic, thresholds
from fluidcc.operators.commands import commands_of
from fluidcc.operators.config_db import ConfigDB
from fluidcc.operators.devices import Devices, simulated
from fluidcc.operators.missing_parts import speed, strays, whole
from fluidcc.operators.nvidia import switched_off
from fluidcc.operators.ports import PortGroup, read_ports
from fluidcc.operators.switches import eos, junos, nvue, nxos, sonic_show
from fluidcc.units import Rate

DATA = Path(__file__).parents[1] / "data" / "switches"
LEAF = json.loads((Path(__file__).parents[2] / "examples" / "leaf-100g" / "config_db.json").read_text())
PORT = next(iter(LEAF["PORT"]))


def written(folder: Path, document: Any) -> Path:
    path = folder / "config_db.json"
    path.write_text(json.dumps(document))
    return path


def changed(folder: Path, change: Callable[[dict[str, Any]], Any]) -> Path:
    """Write the sample with a change."""
    tables = copy.deepcopy(LEAF)
    change(tables)
    return written(folder, tables)


def nic(folder: Path, text: str) -> NicSettings:
    path = folder / "nic.txt"
    path.write_text(text)
    return read_nic(path)


# -- SONiC -------------------------------------------------------------------------------------------------------------


def test_maps_of_global_but_that_of_dscps_are_ignored(tmp_path: Path) -> None:
    """Any map of ``global`` counted, which the switch ignores but for DSCPs."""

    def change(tables: dict[str, Any]) -> None:
        for entry in tables["PORT_QOS_MAP"].values():
            entry.pop("tc_to_queue_map", None)
            entry.pop("dscp_to_tc_map", None)
        tables["TC_TO_QUEUE_MAP"]["ZERO"] = {str(each): "0" for each in range(8)}
        name = next(iter(tables["DSCP_TO_TC_MAP"]))
        tables["PORT_QOS_MAP"]["global"] = {"tc_to_queue_map": "ZERO", "dscp_to_tc_map": name}

    traffic = read_sonic(changed(tmp_path, change), PORT).traffic
    assert traffic is not None
    assert traffic.queue_map == ""
    assert traffic.dscps


@pytest.mark.parametrize(("action", "taken"), [("drop", True), ("DROP", False)])
def test_a_watchdogs_action_is_in_lower_case(action: str, taken: bool, tmp_path: Path) -> None:
    """orchagent's map of actions has lower-case words alone (``PfcWdOrch::deserializeAction``)."""

    def change(tables: dict[str, Any]) -> None:
        tables["PFC_WD"] = {PORT: {"action": action, "detection_time": "200", "restoration_time": "200"}}
        tables["PORT_QOS_MAP"][PORT]["pfcwd_sw_enable"] = "3,4"

    found = {each.what for each in lossless.watchdog(read_sonic(changed(tmp_path, change), PORT))}
    assert ("the switch does not take the PFC watchdog" in found) is not taken


def test_a_fault_of_one_asic_names_it(tmp_path: Path) -> None:
    broken = {**LEAF, "WRED_PROFILE": {}}
    with pytest.raises(InputError, match=r"config_db\.json, asic1: QUEUE\|"):
        read_ports(written(tmp_path, {"asic0": LEAF, "asic1": broken}))


def test_an_asic_without_ports_is_named_and_the_others_paths_keep_theirs(tmp_path: Path) -> None:
    """It was left out silently, and the paths of what to change at the other began at the root."""
    other = {name: table for name, table in LEAF.items() if name != "PORT"}
    groups, _ = read_ports(written(tmp_path, {"localhost": {}, "asic0": LEAF, "asic1": other}))
    (said,) = whole(groups[0].switch)
    assert "asic1 has no table PORT" in said.why


@pytest.mark.parametrize(
    ("table", "key", "stray"),
    [
        ("QUEUE", "etp1|3-4", True),
        ("QUEUE", "Ethernet0-12|3", True),
        ("QUEUE", f"{PORT}|3", False),
        ("PORT_QOS_MAP", "etp1", True),
        ("PORT_QOS_MAP", "global", False),
    ],
)
def test_rows_of_ports_that_are_not_there_are_named(table: str, key: str, stray: bool, tmp_path: Path) -> None:
    """Aliases and ranges of ports as keys made "ECN is off", and nothing said why."""
    port = read_sonic(changed(tmp_path, lambda tables: tables[table].setdefault(key, {})), PORT)
    assert bool(port.strays) is stray
    assert [f"{table}|{key}" in each.why for each in strays(port)] == [True] * stray


@pytest.mark.parametrize(("given", "slow"), [("100", True), ("1000", False), ("100000", False)])
def test_a_speed_that_may_be_in_other_units_is_named(given: str, slow: bool, tmp_path: Path) -> None:
    port = read_sonic(changed(tmp_path, lambda tables: tables["PORT"][PORT].update(speed=given)), PORT)
    assert ["slower than 1 Gb/s" in each.what for each in speed(port)] == [True] * slow


@pytest.mark.parametrize(("kmax", "asked"), [(800.0, True), (800e3, False)])
def test_thresholds_below_a_packet_may_be_in_other_units(kmax: float, asked: bool) -> None:
    port = SwitchPort("a.json", "Ethernet0", Rate(12.5e9), 4, 3, 3, True, profile="P", kmin=200.0, kmax=kmax, pmax=0.1)
    found = next(each for each in thresholds.packets_and_thresholds(port) if each.what == "Kmin is below two packets")
    assert ("are KB or cells meant?" in found.why) is asked


def test_a_state_in_capitals_is_not_both_up_and_down(tmp_path: Path) -> None:
    port = read_sonic(changed(tmp_path, lambda tables: tables["PORT"][PORT].update(admin_status="UP")), PORT)
    assert port.up
    assert not any("administratively" in note for note in port.notes)


# -- NICs --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "mask"), [("0xff", 255.0), ("0xF7", 247.0), ('"255"', 255.0), ("255", 255.0)])
def test_a_mask_may_be_hexadecimal_or_quoted(text: str, mask: float, tmp_path: Path) -> None:
    assert nic(tmp_path, f"ROCE_CC_PRIO_MASK_P1={text}\n").given["roce_cc_prio_mask"] == mask


def test_a_command_goes_on_behind_a_backslash(tmp_path: Path) -> None:
    """The value was refused with its backslash; lines after it keep their numbers."""
    given = "mlxconfig -d X set RPG_AI_RATE_P1=7 \\\n   RPG_GD_P1=10 \\\n   RPG_HAI_RATE_P1=70\nrpg_ai_rate = x\n"
    with pytest.raises(InputError, match=r"nic\.txt:4: rpg_ai_rate"):
        nic(tmp_path, given)
    found = nic(tmp_path, given.replace("rpg_ai_rate = x", "")).given
    assert (found["rpg_ai_rate"], found["rpg_gd"], found["rpg_hai_rate"]) == (7.0, 10.0, 70.0)


@pytest.mark.parametrize(("value", "off"), [(0, True), (1, False)])
def test_winof_2_switches_dcqcn_off_by_priority(value: int, off: bool, tmp_path: Path) -> None:
    """``DcQcnEnablePrio3`` was an unknown name, and DCQCN taken as on."""
    given = nic(tmp_path, f"DcQcnRpgAiRate : 5\nDcQcnEnablePrio3 : {value}\n")
    assert bool(switched_off(given, 3)[0]) is off
    assert not switched_off(given, 4)[0]


def test_the_ports_suffix_to_write_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"\(it has port 2\).* such as rpg_ai_rate or RPG_AI_RATE_P1$"):
        nic(tmp_path, "RPG_AI_RATE_P2=5\n")


@pytest.mark.parametrize(("most", "limited"), [(0, False), (1000, True), (100_000, False)])
def test_a_largest_rate_below_the_ports_is_named(most: int, limited: bool, tmp_path: Path) -> None:
    """An idle link was blamed on thresholds."""
    given = nic(tmp_path, f"RPG_MAX_RATE_P1={most}\n")
    port = SwitchPort("a.json", "Ethernet0", Rate(12.5e9), 4, 3, 3, True)
    found = [each.what for each in checks.nic(port, given, dcqcn_of(given)[0])]
    assert ("the NIC limits every flow" in found) is limited


QOS = """Priority trust state: dscp
dscp2prio mapping:
\tprio:{} dscp:26,
PFC configuration:
\tpriority    0   1   2   3   4   5   6   7
\tenabled     0   0   0   1   0   0   0   0
"""


@pytest.mark.parametrize(("priority", "wrong"), [(0, True), (3, False)])
def test_the_hosts_priority_of_roces_dscp_needs_pfc(priority: int, wrong: bool, tmp_path: Path) -> None:
    """PFC of host and switch agreed, and the host's map of DSCPs to priorities was not read."""
    given = nic(tmp_path, f"RPG_AI_RATE_P1=5\n{QOS.format(priority)}")
    port = read_sonic(written(tmp_path, LEAF), PORT)
    found = {each.what: each for each in lossless.host(port, given)}
    what = "the host sends RoCE by a priority without PFC"
    assert (what in found) is wrong
    if wrong:
        assert found[what].suggest == "mlnx_qos -i IFACE --dscp2prio set,26,3, on each host"


# -- Other systems -----------------------------------------------------------------------------------------------------

WATCHED = "qos profile P\n   priority-flow-control on\n{}interface Ethernet1\n   service-profile P\n{}"


@pytest.mark.parametrize(
    ("lines", "of_profile", "watched", "action"),
    [
        ("timeout", "", True, "errdisable"),
        ("timeout|action drop", "", True, "drop"),
        ("timeout|action no-drop", "", True, "forward"),
        ("action drop", "", False, "drop"),
        ("timeout 0|action drop", "", False, "drop"),
        ("", "|port action notify-only", True, "alert"),
    ],
)
def test_what_turns_an_eos_watchdog_on_and_what_it_does(
    lines: str, of_profile: str, watched: bool, action: str
) -> None:
    """An action without a time counted as on, no action as drop, and ``no-drop`` as ``drop``."""
    line = "priority-flow-control pause watchdog"
    whole_lines = {"timeout": f"{line} default timeout 0.2", "timeout 0": f"{line} default timeout 0"}
    head = "".join(f"{whole_lines.get(each, f'{line} {each}')}\n" for each in lines.split("|") if each)
    profile = "".join(f"   {line} {each}".rstrip() + "\n" for each in of_profile.split("|")) if of_profile else ""
    found = eos.read(head + WATCHED.format(profile, ""))
    port = found.interfaces["Ethernet1"]
    assert (port.watchdog, port.action or found.action) == (watched, action)


def test_afd_marks_and_is_not_read() -> None:
    """``afd queue-desired ... ecn`` counted as no marking: "ECN is off"."""
    text = (DATA / "nxos.txt").read_text()
    line = next(each for each in text.splitlines() if "random-detect" in each)
    found = nxos.read(text.replace(line, "    afd queue-desired 150 kbytes ecn"))
    assert "afd queue-desired 150 kbytes ecn" in {curve.unread for curve in found.curves.values()}


@pytest.mark.parametrize(
    ("state", "watched"), [("enable", True), ("enabled", True), ("disabled", False), ("off", False)]
)
def test_a_watchdog_of_nvue_may_be_off(state: str, watched: bool) -> None:
    """``disabled`` counted as on."""
    text = (DATA / "nvue_set.txt").read_text() + f"nv set interface swp1 qos pfc-watchdog state {state}\n"
    assert nvue.read(text).interfaces["swp1"].watchdog is watched


def test_ecn_alone_is_turned_on_where_nvue_has_the_rest() -> None:
    text = (DATA / "nvue_set.txt").read_text().replace("ecn enable", "ecn disable")
    text += "nv set qos congestion-control ROCE_ECN traffic-class 3,5 red enable\n"
    typed = nvue.read(text).interfaces["swp1"].typed
    assert typed["marking"] == "nv set qos congestion-control ROCE_ECN traffic-class 3 ecn enable"


def test_a_pause_that_stops_another_queue_of_junos_is_named() -> None:
    """The class's own queue counted as stopped."""
    text = (DATA / "junos_set.txt").read_text()
    stops = next(each for each in text.splitlines() if "flow-control-queue" in each)
    assert not [line for port in junos.read(text).interfaces.values() for line in port.overrides]
    found = junos.read(text.replace(stops, f"{stops.rpartition(' ')[0]} 6"))
    said = [line for port in found.interfaces.values() for line in port.overrides]
    assert said
    assert all("flow-control-queue 6" in line and "stops queue 6" in why for line, why, _ in said)
    assert {typed.partition("output ")[2] for *_, typed in said} == {"ieee-802.1 code-point 011 flow-control-queue 4"}


PROFILE = "Profile: P\n{}\n{}\ngreen_max_threshold{} 800000\ngreen_drop_probability{} {}\necn{} ecn_all\n"


@pytest.mark.parametrize("colon", ["", ":"])
@pytest.mark.parametrize(("probability", "percent"), [("10", 10.0), ("10%", 10.0)])
def test_fields_of_a_profile_that_is_shown(colon: str, probability: str, percent: float) -> None:
    """``10%`` was no field, so that 100 % held; older releases print colons."""
    given = PROFILE.format("-----", f"green_min_threshold{colon} 200000", colon, colon, probability, colon)
    (curve,) = sonic_show.read(given).curves.values()
    assert (curve.low, curve.high, curve.percent) == (200e3, 800e3, percent)


def test_profiles_of_one_name_that_differ_are_refused() -> None:
    """The second ASIC's thresholds held for both."""
    given = PROFILE.format("-----", "green_min_threshold 200000", "", "", "10", "")
    with pytest.raises(InputError, match=r"green_min_threshold is 400000 here and 200000 before"):
        sonic_show.read(given + given.replace("200000", "400000"))


def test_a_threshold_that_is_shown_must_be_a_number() -> None:
    given = PROFILE.format("-----", "green_min_threshold 200KB", "", "", "10", "")
    with pytest.raises(InputError, match="'200KB' is not a number; write bytes"):
        sonic_show.read(given)


def test_aliases_name_ports_too() -> None:
    """With ``SONIC_CLI_IFACE_MODE=alias`` no row was a port."""
    text = (DATA / "sonic_show.txt").read_text()
    found = sonic_show.read(text.replace("Ethernet", "etp"))
    assert [*found.interfaces] == [name.replace("Ethernet", "etp") for name in sonic_show.read(text).interfaces]


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ('{"cmds": {"qos profile P": null}}', "`show running-config` as text"),
        ('{"configuration": {"class-of-service": {}}}', "`show configuration | display set`"),
        ("<rpc-reply><configuration/></rpc-reply>", "`show configuration | display set`"),
    ],
)
def test_other_forms_of_a_systems_configuration_say_what_to_give(text: str, instead: str, tmp_path: Path) -> None:
    """They were a SONiC file without the table PORT."""
    path = tmp_path / "switch"
    path.write_text(text)
    with pytest.raises(InputError) as refused:
        ConfigDB(path)
    assert str(refused.value).endswith(instead)


# -- Ports that a tuned fabric stands for ------------------------------------------------------------------------------


def kind(name: str, gbps: float, asic: str = "", *, ecn: bool = True) -> PortGroup:
    """A kind of one port that marks."""
    port = SwitchPort(
        "a.json",
        name,
        Rate(gbps * 1e9 / 8),
        4,
        3,
        3,
        True,
        profile="P",
        ecn=ecn,
        kmin=1e5,
        kmax=4e5,
        pmax=0.1,
        asic=asic,
    )
    return PortGroup((name,), port)


def test_ports_of_speeds_that_the_fabric_has_not_stay() -> None:
    """All kinds that mark of the ToR's file were written, also those of no link's speed."""
    up = kind("Ethernet4", 400), kind("Ethernet8", 25, "asic1"), kind("Ethernet12", 400)
    spine = kind("Ethernet16", 400, ecn=False)
    devices = Devices((kind("Ethernet0", 100),), up, ((spine,),))
    links = [(0, 12.5e9), (1, 50e9), (2, 50e9), (3, 50e9)]
    leaf, above = simulated(devices, links)
    assert [group.names[0] for group in leaf[0]] == ["Ethernet0", "Ethernet4", "Ethernet12"]
    assert leaf[1] == ["no link of the fabric has the speed of asic1:Ethernet8: left as they are"]
    assert above == ((), [])
    assert simulated(Devices(nic=None), links) == []


def test_paths_of_the_only_asic_with_ports_begin_with_its_name(tmp_path: Path) -> None:
    """``config apply-patch`` of a switch with several ASICs takes them below ``/asic0``; they began at the root."""
    other = {name: table for name, table in LEAF.items() if name != "PORT"}
    path = written(tmp_path, {"localhost": {}, "asic0": LEAF, "asic1": other})
    patch = commands_of(path, read_ports(path)[0][:1], None, {"kmin": 1e5}).patch
    assert patch
    assert all(each["path"].startswith("/asic0/") for each in patch)
