"""Lines of switches' texts that take back, override or inherit others: none of them is passed over in silence."""

from __future__ import annotations

from pathlib import Path

import pytest

from fluidcc.errors import InputError
from fluidcc.operators import SwitchPort, lossless, read_sonic
from fluidcc.operators.checks import buffers, marking
from fluidcc.operators.dialect import in_words
from fluidcc.operators.finding import Finding
from fluidcc.operators.ports import read_ports
from fluidcc.operators.switches import eos, junos, nvue, nxos, reader_of
from fluidcc.operators.switches.description import Description
from fluidcc.operators.switches.unread_systems import IOS_XR

# -- Junos -------------------------------------------------------------------------------------------------------------

JUNOS = """set interfaces et-0/0/1 speed 100g
set class-of-service forwarding-classes class R queue-num 3 no-loss pfc-priority 3
set class-of-service drop-profiles d interpolate fill-level [ 10 40 ]
set class-of-service drop-profiles d interpolate drop-probability [ 0 20 ]
set class-of-service schedulers s drop-profile-map loss-priority low protocol any drop-profile d
set class-of-service schedulers s explicit-congestion-notification
set class-of-service scheduler-maps m forwarding-class R scheduler s
set class-of-service congestion-notification-profile c input dscp code-point 011010 pfc
set class-of-service interfaces et-0/0/1 congestion-notification-profile c
set class-of-service interfaces et-0/0/1 scheduler-map m
"""
ECN, PFC = "class-of-service schedulers s explicit-congestion-notification", "congestion-notification-profile"
OF_PORT = "class-of-service interfaces et-0/0/1"


def said(port: SwitchPort, text: str) -> dict[str, Finding]:
    """Return what is found of a port's marking and pausing, in its system's words."""
    reader = reader_of(text)
    assert reader is not None
    found = [*marking(port), *buffers(port), *lossless.traffic(port, None), *lossless.watchdog(port)]
    return {each.what: in_words(each, port, reader.WORDS) for each in found}


def of(found: Description, name: str) -> tuple[dict[int, bool], dict[int, int]]:
    """Return of a port whether each queue marks, and what is lossless."""
    port = found.interfaces[name]
    return {queue: found.curves[curve].ecn for queue, curve in port.queues.items()}, port.pauses


@pytest.mark.parametrize(
    ("lines", "marks", "pauses"),
    [
        ("", {3: True}, {3: 3}),
        (f"deactivate {ECN}", {3: False}, {3: 3}),
        (f"deactivate {ECN}\nactivate {ECN}", {3: True}, {3: 3}),
        (f"deactivate {OF_PORT} {PFC}", {3: True}, {}),
        (f"deactivate {OF_PORT}", {}, {}),
        (f"user@leaf# delete {ECN}", {3: False}, {3: 3}),
        (f"delete {OF_PORT} {PFC}", {3: True}, {}),
        (f"delete {OF_PORT} {PFC}\nset {OF_PORT} {PFC} c", {3: True}, {3: 3}),
        ("deactivate class-of-service schedulers other", {3: True}, {3: 3}),
    ],
)
def test_what_is_deactivated_or_deleted_is_absent(lines: str, marks: dict[int, bool], pauses: dict[int, int]) -> None:
    """It was an ok with marking or PFC off; Junos lists `deactivate` after all that it sets."""
    assert of(junos.read(f"{JUNOS}{lines}\n"), "et-0/0/1") == (marks, pauses)


def test_one_value_of_a_list_is_deleted_from_it() -> None:
    """One point is left, which is no curve."""
    path = "class-of-service drop-profiles d interpolate"
    (curve,) = junos.read(f"{JUNOS}delete {path} fill-level 10\ndelete {path} drop-probability 0\n").curves.values()
    assert curve.unread


GROUPED = "set groups G class-of-service interfaces <et-*> scheduler-map m\n"


def test_class_of_service_in_a_group_that_is_applied_is_refused() -> None:
    """Its lines were passed over; a group that nothing applies says nothing, nor does an inactive apply-groups."""
    wanted = r"groups G class-of-service .*scheduler-map m: .*class-of-service \| display inheritance \| display set"
    with pytest.raises(InputError, match=wanted):
        junos.read(f"{GROUPED}set apply-groups G\n{JUNOS}")
    for others in ("", "set apply-groups G\ndeactivate apply-groups G\n", "set apply-groups H\n"):
        assert junos.read(GROUPED + JUNOS + others) == junos.read(JUNOS)
    braces = "groups { G { class-of-service { interfaces { et-0/0/1 { scheduler-map m; } } } } }\n{} G;\n"
    with pytest.raises(InputError, match="G is applied"):
        junos.read(braces.replace("{} G", "apply-groups G"))
    assert junos.recognises(GROUPED)
    assert junos.read(braces.replace("{} G", "inactive: apply-groups G")).notes == junos.read("").notes
    ports = junos.read(f"set groups G interfaces <et-*> mtu 9000\nset apply-groups G\n{JUNOS}")
    assert ports.notes == ["groups are not read: interfaces of G"]


@pytest.mark.parametrize(
    ("member", "ports"),
    [
        ('member "et-0/0/[2-3]"', ["et-0/0/2", "et-0/0/3"]),
        ("member et-0/0/[2,4]", ["et-0/0/2", "et-0/0/4"]),
        ("member-range et-0/0/2 to et-0/0/4", ["et-0/0/2", "et-0/0/3", "et-0/0/4"]),
        ("member et-0/0/*", ["et-0/0/1"]),
    ],
)
def test_ports_of_an_interface_range_are_set_as_it_is(member: str, ports: list[str]) -> None:
    """Their speeds were not known, and the map that the range has was a port's by the range's name."""
    lines = f"set interfaces interface-range N {member}\nset interfaces interface-range N speed 400g\n"
    found = junos.read(f"{JUNOS}{lines}set class-of-service interfaces N scheduler-map m\n")
    assert {*found.interfaces} == {"et-0/0/1", *ports}
    assert all(found.interfaces[name].queues == {3: "s"} for name in ports)
    speeds = {name: port.speed for name, port in found.interfaces.items()}
    assert speeds == dict.fromkeys(ports, 400e3) | {"et-0/0/1": 100e3}  # a port's own line counts


def test_a_speed_of_the_chassis_is_that_of_its_port_and_channels() -> None:
    lines = "set chassis fpc 0 pic 1 port 2 speed 400g\n"
    for name, speed in (("et-0/1/2", 400e3), ("et-0/1/2:1", 400e3), ("et-0/1/3", None)):
        assert junos.read(f"set interfaces {name} mtu 9000\n{lines}").interfaces[name].speed == speed
    assert junos.read(f"set interfaces et-0/1/2 speed 100g\n{lines}").interfaces["et-0/1/2"].speed == 100e3


def test_nothing_is_applied_to_listed_ports_that_the_file_does_not_apply() -> None:
    """The only map was taken for all; it still is where the file has no ports."""
    assert of(junos.read(f"{JUNOS}deactivate {OF_PORT} scheduler-map"), "et-0/0/1") == ({}, {3: 3})
    alone = "".join(line for line in JUNOS.splitlines(keepends=True) if "interfaces" not in line)
    assert [port.queues for port in junos.read(alone).interfaces.values()] == [{3: "s"}]


def test_the_queue_of_a_class_as_older_releases_write_it() -> None:
    older = JUNOS.replace("class R queue-num 3 no-loss pfc-priority 3", "queue 3 R")
    assert of(junos.read(older), "et-0/0/1")[0] == {3: True}


@pytest.mark.parametrize("loss", ["low", "high", ""])
def test_of_several_drop_profiles_that_of_the_classifiers_loss_priority_counts(loss: str) -> None:
    """The last line counted; without a classifier it is that of loss-priority low."""
    other = "drop-profiles e interpolate"
    text = (
        JUNOS
        + f"set class-of-service {other} fill-level [ 1 2 ]\nset class-of-service {other} drop-probability [ 0 9 ]\n"
    )
    text += "set class-of-service schedulers s drop-profile-map loss-priority high protocol any drop-profile e\n"
    if loss:
        text += f"set class-of-service classifiers dscp x forwarding-class R loss-priority {loss} code-points 011010\n"
    found = junos.read(text)
    assert found.curves["s"].percent == (9 if loss == "high" else 20)
    taken, rest = ("e", "low has d") if loss == "high" else ("d", "high has e")
    assert found.notes == [
        f"scheduler s: drop-profile {taken}, of loss-priority {loss or 'low'}, is taken; loss-priority {rest}"
    ]
    assert junos.read(JUNOS).notes == []


# -- Arista EOS --------------------------------------------------------------------------------------------------------

EOS = """qos map dscp 26 to traffic-class 3
qos profile P
   qos trust dscp
   priority-flow-control on
   priority-flow-control priority 3,4 no-drop
   tx-queue 3
      random-detect ecn minimum-threshold 1 mbytes maximum-threshold 2 mbytes max-mark-probability 10 weight 0
interface Ethernet1
   speed 100g
   service-profile P
"""


@pytest.mark.parametrize(
    ("lines", "marks", "pauses"),
    [
        ("", {3: True}, {3: 3, 4: 4}),
        ("priority-flow-control priority 3 drop", {3: True}, {4: 4}),
        ("no priority-flow-control priority 3", {3: True}, {4: 4}),
        ("priority-flow-control priority 5 no-drop", {3: True}, {3: 3, 4: 4, 5: 5}),
        ("priority-flow-control off", {3: True}, {}),
        ("no priority-flow-control", {3: True}, {}),
        ("tx-queue 3\n      no random-detect ecn", {}, {3: 3, 4: 4}),
        ("tx-queue 3\n      no random-detect ecn count", {3: True}, {3: 3, 4: 4}),
    ],
)
def test_a_line_of_an_eos_interface_counts_before_its_profile(
    lines: str, marks: dict[int, bool], pauses: dict[int, int]
) -> None:
    assert of(eos.read(f"{EOS}   {lines}\n"), "Ethernet1") == (marks, pauses)


def test_members_have_the_lines_and_the_profile_of_their_port_channel() -> None:
    """They neither marked nor paused; their own lines still count first."""
    channel = "interface Port-Channel7\n   service-profile P\n   priority-flow-control priority 4 drop\n"
    member = "interface Ethernet2\n   channel-group 7 mode active\n"
    assert of(eos.read(f"{EOS}{channel}{member}"), "Ethernet2") == ({3: True}, {3: 3})
    assert of(eos.read(f"{EOS}{member}   priority-flow-control off\n{channel}"), "Ethernet2") == ({3: True}, {})
    assert [*eos.read(f"{EOS}{channel}{member}interface Ethernet1.100\n").interfaces] == ["Ethernet1", "Ethernet2"]


def test_a_profile_of_eos_that_the_file_lacks_is_refused_by_name() -> None:
    text = EOS.replace("service-profile P", "service-profile TYPO")
    with pytest.raises(InputError, match=r"interface Ethernet1: .*service-profile TYPO \(it has: P\).*running-config"):
        eos.read(text)
    assert eos.read(f"{text}   shutdown\n").interfaces["Ethernet1"].queues == {}


@pytest.mark.parametrize("line", ["qos trust cos", "no qos trust"])
def test_where_dscps_do_not_decide_none_is_said_to_lead_to_the_queue(line: str, tmp_path: Path) -> None:
    path, lines = tmp_path / "eos.txt", f"{EOS}   {line}\n"
    for text, dscps in ((EOS, tuple(range(24, 32))), (lines, None)):
        path.write_text(text)
        port = read_sonic(path)
        assert port.traffic is not None
        assert port.traffic.dscps == dscps
        assert ("DSCPs lead to this queue" in said(port, text)) == (text == EOS)
    found = said(read_sonic(path), lines)["a line overrides others"]
    assert (f"`{line}`" in found.why, found.suggest) == (True, "qos trust dscp")


def test_a_watchdog_that_takes_the_port_down_is_no_drop(tmp_path: Path) -> None:
    path = tmp_path / "eos.txt"
    for action, what in (("drop", "PFC watchdog"), ("errdisable", "the PFC watchdog takes the port down")):
        line = "priority-flow-control pause watchdog"
        text = f"{EOS}{line} default timeout 1\n{line} action {action}\n"
        path.write_text(text)
        assert [name for name in said(read_sonic(path), text) if "watchdog" in name] == [what]
    assert "action drop" in said(read_sonic(path), text)[what].suggest


def test_marking_by_an_average_is_noted() -> None:
    """The model marks by the queue at that moment."""
    assert not any("average" in note for note in eos.read(EOS).notes)
    (note,) = (note for note in eos.read(EOS.replace("weight 0", "weight 12")).notes if "average" in note)
    assert note.startswith("P: weight 12: ")


# -- NVUE --------------------------------------------------------------------------------------------------------------

NVUE = """nv set qos congestion-control C traffic-class 3,4 min-threshold 400000
nv set qos congestion-control C traffic-class 3,4 max-threshold 2000000
nv set qos congestion-control C traffic-class 3,4 probability 10
nv set qos pfc P switch-priority 3,4
nv set interface swp1-2 link speed 200G
nv set interface swp1-2 qos congestion-control profile C
nv set interface swp1-2 qos pfc profile P
"""
BOTH = {3: True, 4: True}, {3: 3, 4: 4}


@pytest.mark.parametrize(
    ("line", "first", "second"),
    [
        ("nv unset interface swp2 qos congestion-control", BOTH, ({}, BOTH[1])),
        ("nv unset interface swp1-2 qos congestion-control profile", ({}, BOTH[1]), ({}, BOTH[1])),
        ("nv unset interface swp2 qos", BOTH, ({}, {})),
        ("leaf$ nv unset qos pfc P switch-priority 4", (BOTH[0], {3: 3}), (BOTH[0], {3: 3})),
        ("nv unset qos congestion-control C traffic-class 3-4", ({}, BOTH[1]), ({}, BOTH[1])),
        ("nv unset interface swp3", BOTH, BOTH),
        ("nv unset qos pfc\nnv set qos pfc P switch-priority 3", (BOTH[0], {3: 3}), (BOTH[0], {3: 3})),
    ],
)
def test_what_nvue_unsets_is_gone_for_the_ports_and_classes_that_it_lists(
    line: str,
    first: tuple[dict[int, bool], dict[int, int]],
    second: tuple[dict[int, bool], dict[int, int]],
) -> None:
    found = nvue.read(f"{NVUE}{line}\n")
    assert (of(found, "swp1"), of(found, "swp2")) == (first, second)


@pytest.mark.parametrize(("value", "sends"), [("enable", True), ("on", True), ("disable", False), ("disabled", False)])
def test_a_port_of_nvue_that_never_sends_pause_is_not_lossless(value: str, sends: bool, tmp_path: Path) -> None:
    """One that obeys none still sends them; both are said."""
    path = tmp_path / "nvue.txt"
    for field, pauses in (("tx", sends), ("rx", True)):
        text = f"{NVUE}nv set qos pfc P {field} {value}\n"
        path.write_text(text)
        found = said(read_sonic(path), text)
        assert (read_sonic(path).lossless, read_sonic(path).priority) == (pauses, 3)
        assert "PFC is off" not in found  # but for the line that says so
        assert ("a line overrides others" in found) != sends
        if not sends:
            line = found["a line overrides others"]
            assert (f"`qos pfc P {field} {value}`" in line.why, line.suggest) == (
                True,
                f"nv set qos pfc P {field} enable",
            )


def test_thresholds_of_pause_in_nvue_are_named_as_not_read(tmp_path: Path) -> None:
    """They were said not to be in the file."""
    path = tmp_path / "nvue.txt"
    for lines, wanted in (
        ("", "such a file says nothing"),
        ("xoff-threshold 100 KB", "not read: qos pfc P xoff-threshold"),
    ):
        text = NVUE + (f"nv set qos pfc P {lines}\n" if lines else "")
        path.write_text(text)
        assert said(read_sonic(path), text)["PFC before ECN not checked"].why.startswith(wanted)


def test_lossy_roce_of_nvue_is_in_class_3_and_all_else_in_class_0(tmp_path: Path) -> None:
    """It was advised to map RoCE to class 0, which marks too."""
    text, path = "nv set interface swp1 link speed 200G\nnv set qos roce mode lossy\n", tmp_path / "nvue.txt"
    path.write_text(text)
    (group,) = read_ports(path)[0]
    assert (group.switch.queue, group.switch.lossless) == (3, False)
    assert "DSCPs lead to this queue" in said(group.switch, text)
    dscps = nvue.read(text).dscps
    assert (len(dscps), {dscp: queue for dscp, queue in dscps.items() if queue}) == (64, {26: 3, 48: 6})


def test_a_size_of_nvue_may_be_two_words() -> None:
    text = NVUE.replace("2000000", "2 MB")
    assert nvue.read(text).curves["C-3"].high == 2 * 1024**2


# -- Cisco NX-OS, and what is taken for it -----------------------------------------------------------------------------

NXOS = """policy-map type queuing OUT
  class type queuing c-out-8q-q3
    random-detect minimum-threshold 150 kbytes maximum-threshold 3000 kbytes drop-probability 7 weight 0 ecn
  class type queuing c-out-8q-q-default
    random-detect minimum-threshold 150 kbytes maximum-threshold 3000 kbytes drop-probability 7 weight 0 ecn
policy-map type network-qos NQ
  class type network-qos c-8q-nq3
    pause pfc-cos 3
system qos
  service-policy type queuing output OUT
  service-policy type network-qos NQ
interface Ethernet1/1
  speed 100000
"""


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("", "PFC depends on DCBX"),
        ("priority-flow-control mode auto", "PFC depends on DCBX"),
        ("no priority-flow-control mode", "PFC depends on DCBX"),
        ("priority-flow-control mode off", "PFC is off"),
        ("priority-flow-control mode on", ""),
    ],
)
def test_pfc_that_is_left_to_dcbx_is_neither_on_nor_off(line: str, what: str, tmp_path: Path) -> None:
    """It is the queue that the policy would pause that is looked at, and its priority; another marks too."""
    path, text = tmp_path / "nxos.txt", f"{NXOS}  {line}\n"
    path.write_text(text)
    groups = {group.switch.queue: group.switch for group in read_ports(path)[0]}
    found = {each.what: each for each in (in_words(f, groups[3], nxos.WORDS) for f in marking(groups[3]))}
    assert [name for name in found if "PFC" in name] == ([what] if what else [])
    assert groups[3].lossless == (what == "")
    if what == "PFC depends on DCBX":
        assert (line.removeprefix("no ") or "no line") in found[what].why
        assert "priority-flow-control mode on at Ethernet1/1" in found[what].suggest
    assert [*groups] == ([0, 3] if what == "PFC is off" else [3])


def test_ios_xr_is_not_taken_for_nxos(tmp_path: Path) -> None:
    shared = "priority-flow-control mode on\n"
    path = tmp_path / "xr.txt"
    for line in (
        "!! IOS XR Configuration 7.10.1",
        "interface HundredGigE0/0/0/0",
        "  random-detect 1 mbytes 3 mbytes",
        " end-policy-map",
    ):
        path.write_text(f"{line}\n{shared}")
        with pytest.raises(InputError, match="looks like Cisco IOS-XR, which is not read; give"):
            read_ports(path)
    for text in (EOS, NXOS, shared, "interface HundredGigE1/0/1\n"):
        assert not IOS_XR.recognises(text)


def test_marking_of_nxos_by_an_average_is_noted() -> None:
    assert not any("average" in note for note in nxos.read(NXOS).notes)
    assert any("OUT: weight 9: " in note for note in nxos.read(NXOS.replace("weight 0", "weight 9")).notes)
