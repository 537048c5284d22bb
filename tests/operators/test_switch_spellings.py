"""Other spellings of a switch's text, texts that are cut, and texts of systems that are not read."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from fluidcc.errors import InputError
from fluidcc.operators import SwitchPort, lossless, missing_parts, read_sonic
from fluidcc.operators.audit import _as_read
from fluidcc.operators.checks import marking
from fluidcc.operators.config_db import ConfigDB
from fluidcc.operators.dialect import in_words
from fluidcc.operators.finding import Finding, set_registers
from fluidcc.operators.ports import read_ports
from fluidcc.operators.switches import eos, junos, nvue, nxos, reader_of, sonic_show
from fluidcc.operators.switches.description import doubt, ethernets, names

DATA = Path(__file__).parents[1] / "data" / "switches"
LEAF = Path(__file__).parents[2] / "examples" / "leaf-100g" / "config_db.json"


def text(name: str) -> str:
    return (DATA / name).read_text()


def port(folder: Path, given: str, name: str | None = None) -> SwitchPort:
    """Read a port of a text."""
    path = folder / "switch.txt"
    path.write_text(given)
    return read_sonic(path, name)


# -- Lists of ports ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("head", "listed"),
    [
        ("interface Ethernet1-4,7", ["Ethernet1", "Ethernet2", "Ethernet3", "Ethernet4", "Ethernet7"]),
        ("interface Ethernet1/1-3", ["Ethernet1/1", "Ethernet1/2", "Ethernet1/3"]),
        ("interface Ethernet1-3/1", ["Ethernet1/1", "Ethernet2/1", "Ethernet3/1"]),
        ("interface Ethernet1/1-1/3", ["Ethernet1/1", "Ethernet1/2", "Ethernet1/3"]),
        ("interface eth 1/1 - 2, Ethernet3/1", ["Ethernet1/1", "Ethernet1/2", "Ethernet3/1"]),
        ("interface et5", ["Ethernet5"]),
        ("interface Ethernet1.100", []),
        ("interface Management1", []),
    ],
)
def test_lists_of_ethernet_ports(head: str, listed: list[str]) -> None:
    """Ranges of the first of two numbers, abbreviations and spaces were one port of an odd name, or none."""
    assert ethernets(head) == listed


@pytest.mark.parametrize("head", ["interface Ethernet1/1-$", "interface Ethernet1/1-4/1"])
def test_a_list_of_ports_that_is_not_understood_is_refused(head: str) -> None:
    """One port of that name was audited, and others silently not."""
    with pytest.raises(InputError, match="is no port; write ports with commas between"):
        ethernets(head)


def test_lanes_of_other_names_stay() -> None:
    assert names("swp1s0-1,swp5") == ["swp1s0", "swp1s1", "swp5"]


# -- Bundles whose members the text does not name ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "old", "bundle"),
    [
        ("eos.txt", "interface Ethernet1/1", "Port-Channel7"),
        ("nxos.txt", "interface Ethernet1/1", "port-channel7"),
        ("nvue_set.txt", "interface swp1-2", "bond7"),
    ],
)
def test_a_bundle_without_members_stands_for_them(name: str, old: str, bundle: str) -> None:
    """Lines of PFC and ECN at a bundle were left out where the text has no members."""
    reader = {"eos.txt": eos, "nxos.txt": nxos, "nvue_set.txt": nvue}[name]
    given = text(name)
    assert old in given, old
    found = reader.read(given.replace(old, f"interface {bundle}"))
    assert found.interfaces[bundle].queues
    assert found.interfaces[bundle].pauses
    assert f"no members of {bundle} are in the file: it stands for them" in found.notes


def test_an_empty_bundle_is_no_port() -> None:
    assert "Port-Channel9" not in eos.read(text("eos.txt") + "interface Port-Channel9\n   mtu 9214\n").interfaces


# -- Watchdog of an EOS profile ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("of_profile", "of_port", "watched"),
    [("", "", False), ("   {}\n", "", True), ("   {}\n", "   no {}\n", False), ("", "   {}\n", True)],
)
def test_the_watchdog_of_an_eos_profile_counts(of_profile: str, of_port: str, watched: bool) -> None:
    """A line in the profile was not read, so that a port that is watched was said not to be."""
    line = "priority-flow-control pause watchdog"
    given = (
        "qos profile P\n   priority-flow-control on\n   priority-flow-control priority 3 no-drop\n"
        f"{of_profile.format(line)}interface Ethernet1\n   service-profile P\n{of_port.format(line)}"
    )
    assert eos.read(given).interfaces["Ethernet1"].watchdog is watched


# -- show ecn, show interfaces status ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("row", "green"), [("false", False), ("true", True), (None, None)])
def test_show_ecn_says_if_green_packets_are_marked(row: str | None, green: bool | None, tmp_path: Path) -> None:
    """``wred_green_enable false`` was taken as true."""
    line = "" if row is None else f"wred_green_enable        {row}\n"
    given = (
        f"Profile: P\n{line}ecn                      ecn_all\ngreen_min_threshold      200000\n"
        "green_max_threshold      800000\ngreen_drop_probability   10\n\n"
        "Interface    Lossless priorities\n-----------  ---\nEthernet0    3\n"
    )
    found = port(tmp_path, given)
    assert found.wred_green is green
    said = {each.what: in_words(each, found, sonic_show.WORDS).suggest for each in marking(found)}
    wanted = "sonic-db-cli CONFIG_DB hset 'WRED_PROFILE|P' wred_green_enable true"
    assert said.get("green packets may go unmarked") == (None if green else wanted)


STATUS = "  Interface    Speed    MTU    Oper    Admin    Asym PFC\n-----------  -------\n"


@pytest.mark.parametrize(("cell", "asymmetric"), [("on", True), ("off", False), ("N/A", False)])
def test_the_column_of_asymmetric_pfc_is_read(cell: str, asymmetric: bool) -> None:
    given = text("sonic_show.txt") + f"\n{STATUS}  Ethernet0    100G    9100    up    up    {cell}\n"
    assert sonic_show.read(given).interfaces["Ethernet0"].asymmetric is asymmetric


# -- Texts that are cut ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("last", "cut"), [("   service-prof", True), ("   service-profile ROCE", False), ("", False)])
def test_a_last_line_may_end_within_a_word(last: str, cut: bool) -> None:
    """A text that was cut was read as whole: its last port was without a profile."""
    given = f"interface Ethernet1\n   service-profile ROCE\ninterface Ethernet2\n{last}"
    assert bool(doubt(given)) is cut
    assert not doubt(f"{given}\n")


def test_a_cut_text_is_warned_of(tmp_path: Path) -> None:
    given = text("junos_set.txt").rstrip()
    found = port(tmp_path, f"{given}\nset class-of-ser")
    (said,) = missing_parts.whole(found)
    assert said.severity == "warn"
    assert "`set class-of-ser`" in said.why
    assert not [*missing_parts.whole(port(tmp_path, given))]


def test_an_eos_configuration_ends_in_end() -> None:
    """``show running-config`` that ended within a profile was read as if it were whole."""
    part = text("eos.txt").removesuffix("end\n")
    assert part != text("eos.txt")
    with pytest.raises(InputError, match="no line `end`"):
        eos.read(part)
    eos.read(part.partition("\n")[2])  # a part, which no command is said to have printed


def test_an_nxos_configuration_goes_on_to_lines() -> None:
    head = "!Command: show running-config\n"
    assert nxos.read(f"{head}{text('nxos.txt')}").doubts
    assert not nxos.read(f"{head}{text('nxos.txt')}line console\n").doubts
    assert not nxos.read(text("nxos.txt")).doubts


def test_a_command_without_its_value_is_a_doubt() -> None:
    """``probab`` at the end left Pmax at 100 %."""
    whole = text("nvue_set.txt")
    assert not nvue.read(whole).doubts
    cut = "nv set qos congestion-control ROCE traffic-class 3 probab"
    assert nvue.read(f"{whole}\n{cut}").doubts == [f"`{cut.removeprefix('nv set ')}` has no value"]


@pytest.mark.parametrize(
    ("last", "undefined"),
    [("scheduler-map sm1", "scheduler-map sm1"), ("scheduler s1", "scheduler s1"), ("drop-profile dp1", "")],
)
def test_set_lines_cut_behind_a_name_are_a_doubt(last: str, undefined: str) -> None:
    """Lines that were missing at the end left no trace: the queue was said not to mark."""
    lines = text("junos_set.txt").splitlines()
    end = next(number for number, line in enumerate(lines, 1) if line.endswith(last))
    assert junos.read("\n".join(lines[:end])).doubts == ([f"{undefined} is named and not defined"] if undefined else [])


def test_a_row_without_its_cells_is_cut() -> None:
    """The port was left out."""
    with pytest.raises(InputError, match="row of Ethernet88 has nothing behind"):
        sonic_show.read(f"{text('sonic_show.txt').split('Interface')[0]}Interface    Lossless priorities\nEthernet88\n")


def test_a_port_that_only_one_table_has_is_a_doubt() -> None:
    given = f"{text('sonic_show.txt')}\n{STATUS}  Ethernet88    100G    9100    up    up    off\n"
    assert "Ethernet88" in sonic_show.read(given).doubts[0]


@pytest.mark.parametrize("length", [-2, 5000, 700])
def test_json_that_ends_early_is_cut(length: int, tmp_path: Path) -> None:
    """The message said "not JSON"."""
    path = tmp_path / "config_db.json"
    path.write_text(LEAF.read_text().rstrip()[:length])
    with pytest.raises(InputError, match=r"config_db.json:\d+:\d+: the JSON ends early .*: it is cut; give all of it"):
        ConfigDB(path)


# -- Systems that are not read -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "system"),
    [
        ("  random-detect dscp-based", "Cisco IOS or IOS-XE"),
        ("  random-detect dscp 26 percent 20 40", "Cisco IOS or IOS-XE"),
        (" dcb pfc enable mode manual", "Huawei VRP"),
        (" qos queue 3 ecn", "Huawei VRP"),
        ("qos wred queue table roce", "HPE or H3C Comware"),
        (" priority-flow-control no-drop dot1p 3", "HPE or H3C Comware"),
        ("--{ running }--[  ]--", "Nokia SR Linux"),
        ("    interface ethernet-1/1 {", "Nokia SR Linux"),
        ("interface ethernet 1/1 traffic-class 3 congestion-control ecn minimum-absolute 150", "NVIDIA Onyx"),
        ("    apply qos threshold-profile t1", "Aruba AOS-CX"),
        ("sonic(config)# qos wred-policy ROCE", "SONiC's sonic-cli"),
        ("ecn_red.my_red.cos_list = [3]", "Cumulus Linux's traffic.conf"),
        (" random-detect color green minimum-threshold 1 maximum-threshold 2 drop-probability 5", "Dell OS10"),
        ("! Version 9.14(2.4)", "Dell OS9"),
        ("wred-profile roce", "Dell OS9"),
        ("dcb-map roce", "Dell OS9"),
        (" priority-group 1 bandwidth 50 pfc on", "Dell OS9"),
        ("# TiMOS-C-22.10.R1 cpm/hops64 Nokia 7750 SR", "Nokia SR OS"),
        ('        slope-policy "roce" create', "Nokia SR OS"),
        ("        high-slope", "Nokia SR OS"),
        ("exit all", "Nokia SR OS"),
        ("# Module vlan configuration.", "ExtremeXOS"),
        ('create qosprofile "QP4"', "ExtremeXOS"),
        ("configure dot1p type 3 qosprofile QP4", "ExtremeXOS"),
        ("enable flow-control rx-pause qosprofile qp4 ports 1-4", "ExtremeXOS"),
        ("version S6510_RGOS 12.5(3)B0702", "Ruijie RGOS"),
        ("version RGOS 11.0(5)B9", "Ruijie RGOS"),
        ("interface TFGigabitEthernet 0/1", "Ruijie RGOS"),
        (" mmu queue-threshold output unicast 4 set 20", "Ruijie RGOS"),
    ],
)
def test_other_systems_are_named_and_refused(line: str, system: str, tmp_path: Path) -> None:
    """The form was "unknown", or the settings "Broadcom's"."""
    path = tmp_path / "switch.txt"
    path.write_text(f"hostname leaf\n{line}\n")
    with pytest.raises(InputError, match=rf"looks like {system}, which is not read; give "):
        ConfigDB(path)


@pytest.mark.parametrize("path", sorted(DATA.glob("*.*")), ids=lambda path: path.name)
def test_systems_that_are_read_are_taken_for_no_other(path: Path) -> None:
    reader = reader_of(path.read_text())
    assert reader is None or reader.read(path.read_text()).interfaces


# -- PFC and ECN on different queues -----------------------------------------------------------------------------------

PFC, ECN = "PFC is on for another queue than ECN", "ECN is on for another queue than PFC"
EOS = """qos map dscp 26 to traffic-class 3
qos profile P
   qos trust dscp
   priority-flow-control on
   priority-flow-control priority {pfc} no-drop
   uc-tx-queue {ecn}
      random-detect ecn minimum-threshold 500 kbytes maximum-threshold 1500 kbytes max-mark-probability 20
interface Ethernet1
   speed 100g
   service-profile P
"""


def judged(folder: Path, given: str) -> dict[int, dict[str, Finding]]:
    """Return by queue what reading finds, in the system's words."""
    path = folder / "switch.txt"
    path.write_text(given)
    config = ConfigDB(path)
    return {
        group.switch.queue: {
            each.what: in_words(each, group.switch, config.system)
            for each in _as_read(group.switch, config, None, (1024.0,), 4e-6)
        }
        for group in read_ports(path)[0]
    }


def test_pfc_of_the_wrong_priority_gets_no_advice_of_its_own(tmp_path: Path) -> None:
    """The queue that is lossless by mistake was to get marks and DSCPs."""
    found = judged(tmp_path, EOS.format(pfc=4, ecn=3))
    assert [*found[4]] == [PFC]
    assert found[4][PFC].suggest.startswith("priority-flow-control priority 4 drop at Ethernet1")
    assert found[3]["PFC is off"].suggest == "priority-flow-control on, and priority-flow-control priority 3 no-drop"


def test_ecn_of_the_wrong_queue_gets_no_pfc(tmp_path: Path) -> None:
    """The queue that marks by mistake was to become lossless."""
    found = judged(tmp_path, EOS.format(pfc=3, ecn=4))
    assert found[4][ECN].suggest == "give queue 3 the marking of queue 4"
    assert not {"PFC is off", "no DSCP leads to this queue"} & found[4].keys()
    assert found[3]["ECN is off"].severity == "bad"


def test_where_the_usual_dscp_goes_to_neither_both_are_judged(tmp_path: Path) -> None:
    found = judged(tmp_path, EOS.format(pfc=4, ecn=3).replace("dscp 26", "dscp 24-31").replace("class 3", "class 0"))
    assert {"ECN is off", "DSCPs lead to this queue"} <= found[4].keys()


def test_pfc_is_turned_on_for_all_queues_that_mark_at_once(tmp_path: Path) -> None:
    """Two findings each set ``pfc_enable`` without the other's priority."""
    tables = ConfigDB(LEAF).tables
    name = next(iter(tables["PORT"]))
    given = read_sonic(LEAF, name)
    assert given.marking_alone == ()
    tables["PORT_QOS_MAP"][name]["pfc_enable"] = "5"
    path = tmp_path / "config_db.json"
    path.write_text(json.dumps(tables))
    found = read_ports(path, name)[0]
    alone = {group.switch.queue for group in found if not group.switch.lossless}
    values = {change.value for g in found for each in marking(g.switch) for change in each.apply if g.switch.ecn}
    assert values == {",".join(map(str, sorted({5, *alone})))}
    stopped = dataclasses.replace(found[-1].switch, marking_alone=())
    assert not stopped.paused_in_vain
    assert [*lossless.marked_in_vain(stopped)] == []
    assert [*lossless.traffic(stopped, None)]


# -- Names of a NIC's settings -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "typed"),
    [
        ("ROCE_CC_PRIO_MASK", "ROCE_CC_PRIO_MASK_P1"),
        ("RPG_TIME_RESET", "RPG_TIME_RESET_P1"),
        ("ROCE_CC_CNP_MODERATION", "ROCE_CC_CNP_MODERATION_P1"),
        ("ROCE_CC_LEGACY_DCQCN", "ROCE_CC_LEGACY_DCQCN"),
        ("roce_rp/enable/3", "roce_rp/enable/3"),
    ],
)
def test_settings_are_named_as_mlxconfig_takes_them(name: str, typed: str) -> None:
    """``mlxconfig set ROCE_CC_PRIO_MASK=8`` is refused: a port's settings end in it."""
    assert [change.path for change in set_registers(**{name: 1})] == [typed]


# -- Lines that take others back ---------------------------------------------------------------------------------------

PROFILE = EOS.format(pfc=3, ecn=3)


@pytest.mark.parametrize(
    ("line", "marks"),
    [
        ("", True),
        ("interface Ethernet1\n   no service-profile P\n", False),
        ("default interface Ethernet1\n", False),
        ("default interface Ethernet2\n", True),
    ],
)
def test_lines_of_eos_that_are_taken_back_are_absent(line: str, marks: bool) -> None:
    """``no service-profile`` and ``default interface`` were not read, so that the port still marked."""
    port = eos.read(PROFILE + line).interfaces["Ethernet1"]
    assert (bool(port.queues), bool(port.pauses)) == (marks, marks)


def test_a_profile_of_eos_that_is_taken_back_is_lacking() -> None:
    with pytest.raises(InputError, match="the file lacks its service-profile P"):
        eos.read(f"{PROFILE}no qos profile P\n")


def test_no_shutdown_counts_behind_shutdown() -> None:
    for reader in (eos, nxos):
        port = reader.read("interface Ethernet1\n   shutdown\n   no shutdown\n").interfaces["Ethernet1"]
        assert port.up


@pytest.mark.parametrize(
    ("line", "marked", "paused", "classified"),
    [
        ("", True, True, True),
        ("system qos\n  no service-policy type queuing output QOS_EGRESS_PORT\n", False, True, True),
        ("no policy-map type queuing QOS_EGRESS_PORT\n", False, True, True),
        ("system qos\n  no service-policy type network-qos qos_network\n", True, False, True),
        ("interface Ethernet1/1\n  no service-policy type qos input QOS_CLASSIFICATION\n", True, True, False),
        (
            "policy-map type network-qos qos_network\n  class type network-qos c-8q-nq3\n    no pause pfc-cos 3\n",
            True,
            False,
            True,
        ),
        (
            "policy-map type queuing QOS_EGRESS_PORT\n  class type queuing c-out-8q-q3\n    no random-detect\n",
            False,
            True,
            True,
        ),
    ],
)
def test_lines_of_nxos_that_are_taken_back_are_absent(line: str, marked: bool, paused: bool, classified: bool) -> None:
    """``no`` before a policy, ``pause`` or ``random-detect`` was not read: the port still marked and paused."""
    port = nxos.read(text("nxos.txt") + line).interfaces["Ethernet1/1"]
    assert (bool(port.queues), bool(port.pauses)) == (marked, paused)
    assert bool(port.dscps and any(port.dscps.values())) is classified


@pytest.mark.parametrize(
    "command", ["rename class-of-service schedulers s1 to s9", "wildcard delete class-of-service interfaces et-.*"]
)
def test_commands_of_junos_that_edit_others_are_refused(command: str) -> None:
    """They were not read, so that the statements before them held."""
    with pytest.raises(InputError, match=r"only set, delete, activate and deactivate are read; give what `show "):
        junos.read(f"{text('junos_set.txt')}{command}\n")


def test_a_comment_behind_a_value_of_yaml_is_none_of_it() -> None:
    """``ecn: enable  # on`` was no "enable"."""
    plain = nvue.read(text("nvue.yaml"))
    assert any(port.queues for port in plain.interfaces.values())
    assert nvue.read(text("nvue.yaml").replace("ecn: enable", "ecn: enable  # on")).interfaces == plain.interfaces


def test_yaml_in_braces_is_refused() -> None:
    """Nothing of it was read: ECN was off."""
    with pytest.raises(InputError, match="write each key on a line of its own"):
        nvue.read("- set:\n    qos: {congestion-control: {R: {}}}\n    interface: {swp1: {}}\n")
