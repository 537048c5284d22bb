"""Parts of the readers of other systems' texts: numbers, points of a curve, names of queues, defaults of DSCPs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fluidcc.operators.dialect import in_words
from fluidcc.operators.finding import Finding
from fluidcc.operators.sonic import SwitchPort
from fluidcc.operators.switches import eos, junos, nvue, nxos, sonic_show
from fluidcc.operators.switches.description import Curve, Description, Interface, amount, names, numbers, tables_of
from fluidcc.units import Rate

DATA = Path(__file__).parents[1] / "data" / "switches"


# -- lists and amounts -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (("9", ""), (9.0, False)),
        (("9", "bytes"), (9.0, False)),
        (("2", "kbytes"), (2e3, False)),
        (("2", "KB"), (2e3, False)),
        (("2", "mbytes"), (2e6, False)),
        (("2", "us"), (2e-6, True)),
        (("2", "microseconds"), (2e-6, True)),
        (("2", "ms"), (2e-3, True)),
        (("2", "milliseconds"), (2e-3, True)),
        (("2", "cells"), None),
    ],
)
def test_thresholds_in_units_of_bytes_or_of_time(given: tuple[str, str], wanted: tuple[float, bool] | None) -> None:
    assert amount(*given) == wanted
    assert amount("2", "cells", {"cell": 100.0}) == (200.0, False)


def test_lists_of_ports_end_where_they_say_and_are_bounded() -> None:
    assert names("swp3-3") == ["swp3"]
    assert names("swp4-3") == ["swp4-3"]  # no range
    assert names("Ethernet1/1-Ethernet1/3") == ["Ethernet1/1", "Ethernet1/2", "Ethernet1/3"]
    assert names("Ethernet1/1-Port1/3") == ["Ethernet1/1-Port1/3"]
    assert len(names("swp1-1024")) == 1024
    assert names("swp1-1025") == ["swp1-1025"]
    assert numbers("3 - 5,7-7") == [3, 4, 5, 7]


def test_priorities_and_queues_that_differ_are_mapped_and_others_are_not() -> None:
    alike, apart = Interface(pauses={3: 3}), Interface(pauses={4: 4, 3: 5}, speed=400e3, mtu=9000, up=False)
    tables = tables_of(Description(interfaces={"a": alike, "b": apart}, dscps={26: 3}))
    assert tables["PORT_QOS_MAP"] == {
        "a": {"pfc_enable": "3", "dscp_to_tc_map": "FILE"},
        "b": {"pfc_enable": "3,4", "pfc_to_queue_map": "b", "dscp_to_tc_map": "FILE"},
    }
    assert tables["MAP_PFC_PRIORITY_TO_QUEUE"] == {"b": {"4": "4", "3": "5"}}
    assert tables["DSCP_TO_TC_MAP"] == {"FILE": {"26": "3"}}
    assert tables["PORT"] == {
        "a": {"admin_status": "up"},
        "b": {"admin_status": "down", "speed": "400000", "mtu": "9000"},
    }
    assert "PFC_WD" not in tables  # nothing says so
    plain = tables_of(Description(interfaces={"a": Interface(watchdog=False), "b": Interface(watchdog=True)}))
    assert [*plain["PFC_WD"]] == ["b"]
    assert "DSCP_TO_TC_MAP" not in plain
    assert "dscp_to_tc_map" not in plain["PORT_QOS_MAP"]["a"]


# -- Arista EOS --------------------------------------------------------------------------------------------------------


def test_dscps_of_eos_are_the_64_there_are_by_eights_with_the_first_two_exchanged() -> None:
    """Two are mapped by the file, 26 to 3 as before and 48 to 6 as before; a third is mapped here."""
    usual = [1] * 8 + [0] * 8 + [2] * 8 + [3] * 8 + [4] * 8 + [5] * 8 + [6] * 8 + [7] * 8
    text = (DATA / "eos.txt").read_text()
    assert eos.read(text).dscps == dict(enumerate(usual))
    assert eos.read(text + "qos map dscp 0 to traffic-class 5\n").dscps == dict(enumerate([5, *usual[1:]]))
    assert eos.read(text + "qos map traffic-class 7 to tx-queue 2\n").dscps[63] == 2
    assert eos.read("qos profile R\n   priority-flow-control on\n").dscps == {}  # no line maps any


def test_lines_of_an_eos_interface() -> None:
    lines = "priority-flow-control on|speed forced 100gfull|mtu 9214|shutdown|priority-flow-control pause watchdog"
    found = eos.read("interface Ethernet1\n" + "".join(f"   {line}\n" for line in lines.split("|")))
    port = found.interfaces["Ethernet1"]
    assert (port.speed, port.mtu, port.up, port.watchdog) == (100e3, 9214, False, True)


# -- Junos -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "speed"),
    [
        (["speed", "400g"], 400e3),
        (["ether-options", "speed", "100g"], 100e3),
        (["gigether-options", "speed", "10g", "auto"], 10e3),
        (["speed"], None),
        (["description", "speed", "fast"], None),
    ],
)
def test_a_speed_of_junos_is_the_word_behind_it(words: list[str], speed: float | None) -> None:
    port = Interface()
    junos._take(port, words)
    assert port.speed == speed


def test_a_junos_interface_may_be_off_and_have_an_mtu() -> None:
    port = Interface()
    junos._take(port, ["mtu", "9216"])
    junos._take(port, ["mtu"])
    assert (port.mtu, port.up) == (9216, True)
    junos._take(port, ["disable"])
    assert not port.up


@pytest.mark.parametrize(
    ("levels", "odds", "wanted"),
    [
        ([20, 60], [0, 90], (0.2, 0.6, 90)),
        ([60, 20], [90, 0], (0.2, 0.6, 90)),
        ([10, 20, 60], [0, 0, 90], (0.2, 0.6, 90)),  # the last without drops
        ([20, 40, 60], [5, 40, 90], (0.2, 0.6, 90)),  # or the first, where all drop
        ([20, 60], [0], None),
        ([20], [0], None),
    ],
)
def test_a_curve_of_junos_is_from_its_last_point_without_drops(
    levels: list[float], odds: list[float], wanted: tuple[float, float, float] | None
) -> None:
    found = junos._curve(levels, odds)
    assert (None if found is None else (found.low, found.high, found.percent)) == wanted
    assert found is None or found.shares


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("fill-level [ 20 60 ] drop-probability [ 0 90 ]", [20, 60]),
        ("fill-level 20 drop-probability 0 fill-level 60 drop-probability 90", [20, 60]),
        ("fill-level many", []),
        ("drop-probability 5", []),
    ],
)
def test_numbers_of_junos_stand_behind_their_key(words: str, found: list[float]) -> None:
    assert junos._after(words.split(), "fill-level") == found


@pytest.mark.parametrize(
    ("no_loss", "paused", "priorities", "wanted"),
    [
        ({"A": 3}, {}, set(), {3: 4}),  # a class says its priority
        ({"A": None}, {}, set(), {4: 4}),  # or that of its queue
        ({"A": None}, {5: 4}, set(), {5: 4}),  # which the profile may give
        ({"A": 3}, {5: 4}, set(), {3: 4}),
        ({"B": 3}, {5: 6}, {5, 2}, {2: 2, 5: 6}),  # a class without a queue says nothing
        ({}, {5: 6}, set(), {5: 6}),
        ({}, {}, set(), {}),
    ],
)
def test_lossless_priorities_of_junos(no_loss: Any, paused: Any, priorities: set[int], wanted: dict[int, int]) -> None:
    known = junos._Classes(queues={"A": 4}, no_loss=no_loss, paused={"P": paused}, priorities={"P": priorities})
    assert junos._pauses(known, "P") == wanted


def test_priorities_of_a_notification_profile_are_binary() -> None:
    known = junos._Classes()
    for words in (
        ["input", "ieee-802.1", "code-point", "011", "pfc"],
        ["input", "ieee-802.1", "code-point", "100", "pfc"],
        ["input", "ieee-802.1", "code-point", "0110", "pfc"],  # three bits
        ["output", "ieee-802.1", "code-point", "011", "flow-control-queue", "[", "4", "]"],
        ["pfc-watchdog"],
    ):
        known.take(["congestion-notification-profile", "P", *words])
    assert known.priorities == {"P": {3, 4}}
    assert known.paused == {"P": {3: 4}}
    assert known.watched == {"P"}


def test_code_points_of_a_classifier_are_binary() -> None:
    known = junos._Classes()
    rest = ["loss-priority", "low", "code-points", "[", "011010", "011000", "01100", "ef", "]"]
    known.take(["classifiers", "dscp", "mine", "forwarding-class", "A", *rest])
    known.take(["classifiers", "dscp", "mine", "forwarding-class", "B", "loss-priority", "low"])
    assert known.classifiers == {"mine": {26: "A", 24: "A"}}


def test_classes_of_junos_and_their_queues() -> None:
    known = junos._Classes()
    lossless = ("A queue-num 4 no-loss pfc-priority 3", "C queue-num 5 no-loss", "D no-loss", "E pfc-priority 5")
    for words in (*lossless, "B queue-num 3"):
        known.take(["forwarding-classes", "class", *words.split()])
    assert known.queues == {"A": 4, "B": 3, "C": 5}
    assert known.no_loss == {"A": 3, "C": None, "D": None}
    assert known.pfc == {"A": 3, "E": 5}  # without no-loss the switch does not pause it


def test_patterns_that_fit_no_port_stand_for_ports_by_themselves() -> None:
    found = Description(interfaces={"et-0/0/1": Interface()})
    junos._name_ports(found, ["all", "et-*", "et-0/0/1", "et-0/0/2", "xe-*"])
    assert [*found.interfaces] == ["et-0/0/1", "et-0/0/2", "xe-*"]


# -- NVUE --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("150000", 150e3),
        ("150000B", 150e3),
        ("1.5 KB", 1536.0),
        ("2 MB", 2097152.0),
        ("2m", 2097152.0),
        ("9 cells", None),
    ],
)
def test_sizes_of_nvue_are_binary(text: str, size: float | None) -> None:
    assert nvue._size(text) == size


def test_nvues_priorities_end_at_seven() -> None:
    """And the global profiles are of ports that name none; what is mapped goes to its class."""
    lines = """nv set qos pfc default-global switch-priority 3,7-9
    nv set qos egress-queue-mapping default-global switch-priority 3 traffic-class 5
    nv set qos mapping default-global dscp 26,70 switch-priority 3
    nv set qos mapping default-global dscp 48 switch-priority 6
    nv set interface swp1 link speed 100G"""
    found = nvue.read(lines)
    assert found.interfaces["swp1"].pauses == {3: 5, 7: 7}
    assert found.dscps == {26: 5, 48: 6}
    assert found.interfaces["swp1"].watchdog is False


def test_a_profile_of_nvue_without_ports_is_of_the_one_that_stands_for_all() -> None:
    """Ports that are listed without a profile have the global one alone."""
    line = "nv set qos congestion-control P traffic-class 3 {} {}\n"
    profile = line.format("min-threshold", "1") + line.format("max-threshold", "2")
    assert nvue.read(profile.replace("-threshold ", "-threshold-bytes ")).curves == nvue.read(profile).curves
    alone = nvue.read(profile)
    assert [(port.queues, port.pauses) for port in alone.interfaces.values()] == [({3: "P-3"}, {3: 3})]
    for ports in ("swp1", "swp1-2"):
        listed = nvue.read(f"{profile}nv set interface {ports} link speed 100G\n")
        assert all(port.queues == {} for port in listed.interfaces.values())
    named = nvue.read(f"{profile}nv set interface swp1 qos congestion-control profile P\n")
    assert named.interfaces["swp1"].queues == {3: "P-3"}


def test_lines_of_an_nvue_interface() -> None:
    port, profiles = Interface(), dict[str, str]()
    lines = ["link speed 400G", "link mtu 9216", "qos pfc profile P", "qos congestion-control profile C"]
    for line in lines:
        nvue._take(port, profiles, line.split())
    assert (port.speed, port.mtu, port.up, port.watchdog) == (400e3, 9216, True, None)
    assert profiles == {"pfc": "P", "congestion-control": "C"}
    nvue._take(port, profiles, ["link", "state", "down"])
    nvue._take(port, profiles, ["qos", "pfc-watchdog", "state", "disable"])
    assert (port.up, port.watchdog) == (False, False)
    nvue._take(port, profiles, ["qos", "pfc-watchdog", "state", "enable"])
    assert port.watchdog


@pytest.mark.parametrize(
    ("fields", "curve"),
    [
        ({"ecn": "enable"}, Curve(1.0, 2.0, 100.0)),
        ({}, Curve(1.0, 2.0, 100.0)),
        ({"ecn": "disable"}, None),
        ({"ecn": "disable", "red": "enable"}, Curve(1.0, 2.0, 100.0, ecn=False)),
        ({"probability": "7"}, Curve(1.0, 2.0, 7.0)),
    ],
)
def test_a_class_of_nvue_marks_or_drops_or_neither(fields: dict[str, str], curve: Curve | None) -> None:
    found = Description()
    made = nvue._curves(found, "P", {3: {"min-threshold": "1", "max-threshold": "2"} | fields})
    assert made == ({} if curve is None else {3: "P-3"})
    assert found.curves == ({} if curve is None else {"P-3": curve})
    assert any("taken as 100 %" in note for note in found.notes) == (bool(made) and "probability" not in fields)


# -- Cisco NX-OS -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "queue"),
    [
        ("c-out-8q-q3", 3),
        ("c-8q-nq3", 3),
        ("c-out-q1", 1),
        ("c-nq5", 5),
        ("c-out-8q-q-default", 0),
        ("c-8q-nq-default", 0),
        ("own", 6),
        ("class-default", None),
    ],
)
def test_queues_of_nxos_by_the_names_of_its_classes(name: str, queue: int | None) -> None:
    known = nxos._Policies()
    known.groups["own"] = 6
    assert known.queue(name) == queue


def test_lines_of_an_nxos_interface() -> None:
    port = Interface()
    for line in ("speed 400000", "mtu 9216"):
        nxos._take_line(port, line)
    assert (port.speed, port.mtu, port.up, port.watchdog) == (400e3, 9216, True, None)
    nxos._take_line(port, "shutdown")
    nxos._take_line(port, "priority-flow-control watch-dog-interval off")
    assert (port.up, port.watchdog) == (False, False)
    nxos._take_line(port, "priority-flow-control watch-dog-interval on")
    assert port.watchdog


# -- what SONiC shows --------------------------------------------------------------------------------------------------

SHOWN = """Profile: P
green_min_threshold  1000
green_max_threshold  2000
green_drop_probability  5
ecn  ecn_all
"""


@pytest.mark.parametrize(
    ("row", "speed", "up"),
    [
        ("Ethernet0  1,2  400G  9100  N/A  etp1  routed  up  up  QSFP", 400e3, True),
        ("Ethernet0  1,2  2.5G  9100  N/A  etp1  routed  down  up  QSFP", 2.5e3, True),
        ("Ethernet0  1,2  100M  9100  N/A  etp1  routed  up  down  QSFP", 100.0, False),
        ("Ethernet0  1,2  10G  9100", 10e3, True),
    ],
)
def test_a_port_that_is_shown_is_up_by_its_second_state(row: str, speed: float, up: bool) -> None:
    """The operational state goes before the administrative one."""
    found = sonic_show.read(f"{SHOWN}\n  Interface  Lanes  Speed  MTU\n-----  -----\n{row}\n")
    port = found.interfaces["Ethernet0"]
    assert (port.speed, port.up, port.pauses, port.queues) == (speed, up, {3: 3}, {3: "P"})


@pytest.mark.parametrize("line", ["green_min_threshold  1000\n", "green_max_threshold  2000\n"])
def test_a_profile_that_is_shown_without_both_thresholds_is_unread(line: str) -> None:
    """Catches `no WRED profile` of output that was cut, or that gives other thresholds; one without ECN marks not."""
    (curve,) = sonic_show.read(SHOWN.replace(line, "")).curves.values()
    assert curve.unread == f"Profile: P, without {line.split()[0]}"
    assert sonic_show.read(SHOWN.replace(line, "").replace("ecn_all", "ecn_none")).curves == {}


def test_lossless_queues_have_the_profile_that_is_named_so() -> None:
    """Catches ECN that is taken from the profile of lossy queues."""
    lossy = SHOWN.replace("Profile: P", "Profile: LOSSY")
    lossless = SHOWN.replace("Profile: P", "Profile: AZURE_LOSSLESS").replace("ecn_all", "ecn_none")
    for text in (lossy + lossless, lossless + lossy):
        found = sonic_show.read(text)
        assert {name for port in found.interfaces.values() for name in port.queues.values()} == {"AZURE_LOSSLESS"}
        assert not found.curves["AZURE_LOSSLESS"].ecn


def test_a_queue_that_ecnconfig_shows_off_has_no_profile() -> None:
    (on,) = sonic_show.read(f"{SHOWN}\nECN status:\nqueue 3: on\n").interfaces.values()
    (off,) = sonic_show.read(f"{SHOWN}\nECN status:\nqueue 3: off\n").interfaces.values()
    assert (on.queues, off.queues) == ({3: "P"}, {})


@pytest.mark.parametrize(("profile", "typed"), [("P", "hset 'WRED_PROFILE|P' ecn ecn_all"), ("", "ecnconfig -q 3 on")])
def test_ecn_is_turned_on_where_ecnconfig_cannot(profile: str, typed: str) -> None:
    port = SwitchPort("show.txt", "Ethernet0", Rate(1e10), 1, 3, 3, True, profile=profile)
    assert typed in in_words(Finding("bad", "ECN is off", "why", "do"), port, sonic_show.WORDS).suggest


@pytest.mark.parametrize(("states", "up"), [("up  down", True), ("down  up", False)])
def test_a_speed_is_found_whatever_columns_are_shown(states: str, up: bool) -> None:
    found = sonic_show.read(f"{SHOWN}\n  Interface  Admin  Oper  Speed  Alias\n----\nEthernet0  {states}  25G  etp1\n")
    assert (found.interfaces["Ethernet0"].speed, found.interfaces["Ethernet0"].up) == (25e3, up)


@pytest.mark.parametrize(("mode", "marks"), [("ecn_all", True), ("ecn_green_red", True), ("ecn_red", False)])
def test_a_profile_that_is_shown_marks_by_its_mode(mode: str, marks: bool) -> None:
    (curve,) = sonic_show.read(SHOWN.replace("ecn_all", mode)).curves.values()
    assert curve == Curve(1e3, 2e3, 5.0, ecn=marks, green=None)
