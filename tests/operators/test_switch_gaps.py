"""Lines that a switch's text lacks, does not apply, or lost on the way: none of them counts as if it were there."""

from __future__ import annotations

from pathlib import Path

import pytest

from fluidcc.errors import InputError
from fluidcc.operators import SwitchPort, lossless, read_sonic
from fluidcc.operators.checks import marking
from fluidcc.operators.dialect import in_words
from fluidcc.operators.finding import Finding
from fluidcc.operators.ports import read_ports
from fluidcc.operators.switches import reader_of

DATA = Path(__file__).parents[1] / "data" / "switches"


def said(port: SwitchPort, text: str) -> dict[str, Finding]:
    """Return what is found of a port's marking, pausing and traffic, in its system's words."""
    reader = reader_of(text)
    assert reader is not None
    found = [*marking(port), *lossless.traffic(port, None), *lossless.watchdog(port)]
    return {each.what: in_words(each, port, reader.WORDS) for each in found}


def sample(folder: Path, name: str, *changes: tuple[str, str]) -> tuple[Path, str]:
    """Write a sample with some of its text replaced, and return the file and its text."""
    text, path = (DATA / name).read_text(), folder / name
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    path.write_text(text)
    return path, text


# -- Cisco NX-OS -------------------------------------------------------------------------------------------------------

QUEUING, PAUSING = (
    "  service-policy type queuing output QOS_EGRESS_PORT\n",
    "  service-policy type network-qos qos_network\n",
)
CLASSIFYING = "  service-policy type qos input QOS_CLASSIFICATION\n"


@pytest.mark.parametrize(
    ("line", "what", "suggest"),
    [
        (QUEUING, "ECN is off", f"{QUEUING.strip()} under system qos"),
        (
            PAUSING,
            "PFC is off",
            f"{PAUSING.strip()} under system qos, and priority-flow-control mode on at Ethernet1/1",
        ),
        (CLASSIFYING, "no DSCP leads to this queue", f"{CLASSIFYING.strip()} at Ethernet1/1"),
    ],
)
def test_a_policy_of_nxos_that_nothing_applies_does_nothing(line: str, what: str, suggest: str, tmp_path: Path) -> None:
    """The only policy of a kind counted as applied: marking, PFC and DSCPs were ok."""
    whole, text = sample(tmp_path, "nxos.txt")
    assert what not in said(read_sonic(whole, "Ethernet1/1"), text)
    path, text = sample(tmp_path, "nxos.txt", (line, ""))
    assert said(read_sonic(path, "Ethernet1/1"), text)[what].suggest == suggest


def test_policies_of_nxos_without_ports_are_taken_as_applied(tmp_path: Path) -> None:
    path, text = sample(tmp_path, "nxos.txt")
    path.write_text(text[: text.index("system qos")])
    port = read_sonic(path)
    assert (port.lossless, port.kmin) == (True, 150e3)
    assert any("taken as applied" in note for note in port.notes)


def test_one_port_of_nxos_without_its_input_policy_puts_all_into_queue_0(tmp_path: Path) -> None:
    """DSCPs of one port were those of all."""
    path, text = sample(tmp_path, "nxos.txt")
    at = text.rindex(CLASSIFYING)
    path.write_text(text[:at] + text[at + len(CLASSIFYING) :])
    for name, dscps in (("Ethernet1/1", (24, 26)), ("Ethernet1/2", ())):
        traffic = read_sonic(path, name).traffic
        assert traffic is not None
        assert traffic.dscps == dscps


def test_a_class_by_cos_is_no_class_without_dscps(tmp_path: Path) -> None:
    """It was said that no DSCP leads to the queue, where CoS does."""
    path, text = sample(tmp_path, "nxos.txt", ("match dscp 24,26", "match cos 3"))
    port = read_sonic(path)
    assert "no DSCP leads to this queue" not in said(port, text)
    assert "class-map ROCEv2: not by DSCP alone: its DSCPs are not checked" in port.notes


def test_ports_whose_priorities_have_other_queues_are_one_kind(tmp_path: Path) -> None:
    """Each port had a map of its own name, so that equal ports were printed one by one."""
    path, _ = sample(tmp_path, "eos.txt")
    path.write_text(
        path.read_text().replace("   shutdown\n", "   mtu 9214\n") + "qos map traffic-class 3 to tx-queue 5\n"
    )
    queues = {group.switch.queue: group.names for group in read_ports(path)[0] if group.switch.priority == 3}
    assert queues[5] == ("Ethernet1/1", "Ethernet2/1")


# -- Junos -------------------------------------------------------------------------------------------------------------

COS = "class-of-service"
SECOND = "".join(
    f"set {line}\n"
    for line in (
        "interfaces et-0/0/1 speed 400g",
        f"{COS} interfaces et-0/0/1 congestion-notification-profile cnp",
        f"{COS} interfaces et-0/0/1 scheduler-map sm1",
    )
)


def junos(folder: Path, lines: str, *changes: tuple[str, str]) -> tuple[Path, str]:
    """Write the sample of commands with lines after it."""
    path, text = sample(folder, "junos_set.txt", *changes)
    path.write_text(text + lines)
    return path, text + lines


def test_a_port_of_junos_without_a_classifier_has_the_default_one(tmp_path: Path) -> None:
    """Another port's classifier was its own; a pattern of ports and units applies one, the default is best effort."""
    apply = f"set {COS} interfaces et-* unit * classifiers dscp mydscp\n"
    for lines, dscps in (("", ()), (apply, (26,)), (apply.replace("mydscp", "default"), ())):
        path, text = junos(tmp_path, SECOND + lines)
        port = read_sonic(path, "et-0/0/1")
        assert port.traffic is not None
        assert port.traffic.dscps == dscps
        if not lines:
            command = said(port, text)["no DSCP leads to this queue"].suggest
            assert command == f"set {COS} interfaces et-0/0/1 unit 0 classifiers dscp mydscp"
    other = f"set {COS} interfaces et-0/0/1 unit 0 classifiers ieee-802.1 x\n"
    elsewhere = apply.replace("mydscp", "elsewhere")
    # By other bits than DSCPs, beside DSCPs, and by a classifier that the file lacks.
    for lines, dscps in ((other, None), (apply + other, (26,)), (other + apply, (26,)), (elsewhere, None)):
        path, _ = junos(tmp_path, SECOND + lines)
        traffic = read_sonic(path, "et-0/0/1").traffic
        assert traffic is not None
        assert traffic.dscps == dscps


NO_LOSS = f"set {COS} forwarding-classes class NO-LOSS no-loss\n"
WATCHED = f"{COS} congestion-notification-profile cnp input"


@pytest.mark.parametrize(
    ("lines", "changes", "suggest"),
    [
        ("", (), ""),
        ("", ((NO_LOSS, ""),), NO_LOSS.strip()),
        (f"set {COS} forwarding-classes class NO-LOSS pfc-priority 3\n", ((NO_LOSS, ""),), NO_LOSS.strip()),
        (f"set {WATCHED} dscp code-point 011010 pfc\n", (), ""),
        (f"set {WATCHED} dscp code-point 100010 pfc\n", (), f"set {WATCHED} dscp code-point 011010 pfc"),
        (
            f"set {COS} forwarding-classes class NO-LOSS pfc-priority 4\n",
            (),
            f"set {WATCHED} ieee-802.1 code-point 100 pfc",
        ),
    ],
)
def test_a_class_of_junos_is_lossless_if_it_says_so_and_its_packets_are_watched(
    lines: str, changes: tuple[tuple[str, str], ...], suggest: str, tmp_path: Path
) -> None:
    """A class without no-loss, and a notification profile of another code point, counted as PFC."""
    path, text = junos(tmp_path, lines, *changes)
    port = read_sonic(path)
    assert port.lossless == (suggest == "")
    if suggest:
        assert said(port, text)["PFC is off"].suggest == suggest


def test_fill_levels_of_junos_that_fall_are_no_ramp(tmp_path: Path) -> None:
    """They were sorted, which left one level and a probability of 0."""
    path, text = junos(tmp_path, "", ("fill-level 20", "fill-level 70"))
    assert said(read_sonic(path), text)["Kmax is below Kmin"].why.endswith("fall from 70 to 60 %")


def test_steps_of_junos_are_no_ramp(tmp_path: Path) -> None:
    """They were simulated as one; a profile that only drops is not said to mark."""
    path, text = junos(tmp_path, "", ("interpolate ", ""))
    assert "steps at 20 %, 60 %, no interpolate" in said(read_sonic(path), text)["marking was not read"].why
    path.write_text(text.replace(f"set {COS} schedulers s1 explicit-congestion-notification\n", ""))
    assert "ECN is off" in said(read_sonic(path), path.read_text())


def test_a_text_of_junos_whose_braces_are_open_is_refused(tmp_path: Path) -> None:
    """Notice a cut text of which the missing part counts as absent."""
    path, text = sample(tmp_path, "junos.conf")
    path.write_text(text[: text.rindex("schedulers")])
    with pytest.raises(InputError, match=r"class-of-service \{ is not closed: the text is cut"):
        read_sonic(path)


@pytest.mark.parametrize(
    "line",
    [
        "set interfaces et-0/0/1 ether-options 802.3ad ae7",
        "set interfaces interface-range R member et-0/0/1*\nset interfaces interface-range R ether-options 802.3ad ae7",
        "",
    ],
)
def test_members_of_a_bundle_of_junos_are_set_as_it_is(line: str, tmp_path: Path) -> None:
    """The bundle was a port of a speed that nothing says, and its members had no marking."""
    lines = SECOND.replace("interfaces et-0/0/1 c", "interfaces ae7 c").replace(
        "interfaces et-0/0/1 sch", "interfaces ae7 sch"
    )
    path, _ = junos(tmp_path, f"{lines}set interfaces ae7 mtu 9000\n{line}\n")
    names = {name: group.switch.rate for group in read_ports(path)[0] for name in group.names}
    second = "et-0/0/1" if line else "ae7"
    assert names == {"et-0/0/0": 50e9, second: 50e9 if line else 12.5e9}
    assert read_sonic(path, second).mtu == (9000 if line else 9100)


@pytest.mark.parametrize("path", [f"{COS} schedulers s1 explicit-congestion-notification", f"{COS} schedulers s1"])
def test_what_is_inactive_in_junos_is_activated(path: str, tmp_path: Path) -> None:
    """A scheduler, a drop profile and more were advised."""
    file, text = junos(tmp_path, f"deactivate {path}\n")
    assert said(read_sonic(file), text)["ECN is off"].suggest == f"activate {path}"
    file, text = sample(
        tmp_path, "junos.conf", ("explicit-congestion-notification;", "inactive: explicit-congestion-notification;")
    )
    command = f"activate {COS} schedulers s1 explicit-congestion-notification"
    assert said(read_sonic(file), text)["ECN is off"].suggest == command


@pytest.mark.parametrize(
    ("line", "limits"), [("shaping-rate 10g", True), ("transmit-rate 10g exact", True), ("transmit-rate 10g", False)]
)
def test_a_scheduler_of_junos_that_limits_its_queue_is_named(line: str, limits: bool, tmp_path: Path) -> None:
    path, text = junos(tmp_path, f"set {COS} schedulers s1 {line}\n")
    found = said(read_sonic(path), text).get("a line overrides others")
    assert (found is not None and line in found.why) is limits


# -- Arista EOS --------------------------------------------------------------------------------------------------------

ALL_OFF = "priority-flow-control all off"


@pytest.mark.parametrize(("lines", "lossless"), [(ALL_OFF, False), (f"{ALL_OFF}\nno {ALL_OFF}", True)])
def test_eos_may_turn_pfc_off_everywhere(lines: str, lossless: bool, tmp_path: Path) -> None:
    """The line was passed over."""
    path, text = sample(tmp_path, "eos.txt", ("qos map dscp 26", f"{lines}\nqos map dscp 26"))
    found = said(read_sonic(path), text)
    assert read_sonic(path).lossless is lossless
    assert ("a line overrides others" in found) is not lossless
    if not lossless:
        assert found["a line overrides others"].suggest == f"no {ALL_OFF}"


def test_a_profile_of_eos_that_no_port_names_is_to_be_named(tmp_path: Path) -> None:
    """Its lines were advised once more, with other thresholds."""
    path, text = sample(tmp_path, "eos.txt")
    path.write_text(f"{text[: text.index('interface ')]}interface Ethernet1\n   speed 400g\nend\n")
    found = said(read_ports(path)[0][0].switch, path.read_text())
    for what in ("ECN is off", "PFC is off"):
        assert found[what].suggest == "service-profile ROCE at Ethernet1"


@pytest.mark.parametrize(("where", "undo"), [("      ", "no shape rate at tx-queue 3"), ("   ", "no shape rate")])
def test_a_shaper_of_eos_is_named_at_its_queue_or_port(where: str, undo: str, tmp_path: Path) -> None:
    path, text = sample(tmp_path, "eos.txt", ("      random-detect ecn count", f"{where}shape rate 10 percent"))
    found = said(read_sonic(path), text)["a line overrides others"]
    assert ("`shape rate 10 percent`: queue 3 may send" in found.why, found.suggest) == (True, undo)


@pytest.mark.parametrize("name", ["eos.txt", "nxos.txt"])
def test_a_text_without_its_indentation_is_refused(name: str, tmp_path: Path) -> None:
    """All its lines counted as global: ECN and PFC were off."""
    path, text = sample(tmp_path, name)
    path.write_text("\n".join(line.strip() for line in text.splitlines()))
    with pytest.raises(InputError, match="the lines below are not indented"):
        read_sonic(path)


@pytest.mark.parametrize("end", [" --More-- ", "---(more 45%)---", "<--- More --->", "end"])
@pytest.mark.parametrize("name", ["eos.txt", "nxos.txt", "junos_set.txt"])
def test_a_text_that_ends_at_a_page_is_refused(name: str, end: str, tmp_path: Path) -> None:
    path, text = sample(tmp_path, name)
    path.write_text(f"{text}{end}\n")
    if end == "end":
        assert read_sonic(path).ecn
        return
    with pytest.raises(InputError, match="it is cut; give all of it"):
        read_sonic(path)


# -- NX-OS: channels and shapers ---------------------------------------------------------------------------------------


def test_ports_of_nxos_may_be_classified_by_their_vlans_policy(tmp_path: Path) -> None:
    path, text = sample(tmp_path, "nxos.txt", (CLASSIFYING, ""))
    path.write_text(f"{text}vlan configuration 10\n{CLASSIFYING}")
    traffic = read_sonic(path).traffic
    assert traffic is not None
    assert traffic.dscps is None


@pytest.mark.parametrize("line", ["  channel-group 7 mode active\n", ""])
def test_members_of_a_port_channel_of_nxos_have_its_lines(line: str, tmp_path: Path) -> None:
    path, text = sample(tmp_path, "nxos.txt")
    channel = f"interface port-channel7\n  priority-flow-control mode on\n  mtu 9000\n{CLASSIFYING}"
    path.write_text(f"{text}{channel}interface Ethernet1/9\n{line}  speed 400000\n")
    port = read_sonic(path, "Ethernet1/9")
    assert port.traffic is not None
    assert (port.lossless, port.traffic.dscps, port.mtu) == (
        (True, (24, 26), 9000) if line else (False, (), 9216)
    )  # the policy's MTU


def test_a_shaper_of_nxos_is_named(tmp_path: Path) -> None:
    percent = "bandwidth remaining percent 50\n    random"
    path, text = sample(tmp_path, "nxos.txt", (percent, percent.replace("\n", "\n    shape min 1 gbps max 9 gbps\n")))
    assert "`shape min 1 gbps max 9 gbps`: queue 3" in said(read_sonic(path), text)["a line overrides others"].why


# -- NVUE --------------------------------------------------------------------------------------------------------------

MAPPED = "nv set interface swp1-2 qos mapping profile ROCE_MAP\n"


@pytest.mark.parametrize(
    ("old", "new", "line", "suggest"),
    [
        ("trust both", "trust l3", "", ""),
        ("trust both", "trust l2", "qos mapping ROCE_MAP trust l2", "nv set qos mapping ROCE_MAP trust l3"),
        ("trust both", "trust port", "qos mapping ROCE_MAP trust port", "nv set qos mapping ROCE_MAP trust l3"),
        (
            "nv set qos mapping ROCE_MAP trust both\n",
            "",
            "qos mapping ROCE_MAP",
            "nv set qos mapping ROCE_MAP trust l3",
        ),
        (MAPPED, "", "qos mapping ROCE_MAP", "nv set interface swp1 qos mapping profile ROCE_MAP"),
    ],
)
def test_dscps_decide_in_nvue_where_the_ports_map_trusts_them(
    old: str, new: str, line: str, suggest: str, tmp_path: Path
) -> None:
    """Notice a map of the file that counts at a port which does not apply it: by default none is trusted."""
    path, text = sample(tmp_path, "nvue_set.txt", (old, new))
    port = read_sonic(path)
    assert port.traffic is not None
    assert port.traffic.dscps == (None if line else (24, 26))
    found = said(port, text).get("a line overrides others")
    assert (found.suggest if found else "") == suggest
    assert found is None or f"`{line}`" in found.why


def test_a_trusted_map_of_nvue_without_lines_is_by_eights(tmp_path: Path) -> None:
    path, _ = sample(tmp_path, "nvue_set.txt", ("nv set qos mapping ROCE_MAP dscp 24,26 switch-priority 3\n", ""))
    traffic = read_sonic(path).traffic
    assert traffic is not None
    assert traffic.dscps == (*range(24, 32), *range(40, 48))  # priority 3 is put into class 5 too


ROCE = "nv set interface swp1 link speed 200G\nnv set qos roce\n"
CLASS_3 = "nv set qos congestion-control default-global traffic-class 3"


@pytest.mark.parametrize(("lines", "kmin"), [("", 150e3), (f"{CLASS_3} min-threshold 9000\n", 9e3)])
def test_lines_of_a_class_count_before_roces(lines: str, kmin: float, tmp_path: Path) -> None:
    """The one command beat all that said otherwise, ECN that is off as well."""
    path = tmp_path / "nvue.txt"
    path.write_text(ROCE + lines)
    port = read_sonic(path)
    assert (port.kmin, port.kmax, port.ecn, port.lossless) == (kmin, 1.5e6, True, True)
    path.write_text(text := f"{ROCE}{lines}{CLASS_3} ecn disable\n")
    assert said(read_sonic(path), text)["ECN is off"].suggest == f"{CLASS_3} ecn enable"


def test_a_class_of_nvue_without_a_line_of_ecn_is_noted(tmp_path: Path) -> None:
    """It marks by default; what `nv unset` took back left no trace."""
    path, _ = sample(tmp_path, "nvue_set.txt")
    assert not any("no line of ecn" in note for note in read_sonic(path).notes)
    path.write_text(f"{path.read_text()}nv unset qos congestion-control ROCE_ECN traffic-class 3,5 ecn\n")
    assert any("traffic-class 5: no line of ecn: taken as enabled" in note for note in read_sonic(path).notes)


@pytest.mark.parametrize(
    ("line", "what", "suggest"),
    [
        ("qos congestion-control profile ROCE_ECN", "ECN is off", "congestion-control profile ROCE_ECN"),
        ("qos pfc profile ROCE_PFC", "PFC is off", "pfc profile ROCE_PFC"),
    ],
)
def test_a_profile_of_nvue_that_no_port_has_is_to_be_applied(
    line: str, what: str, suggest: str, tmp_path: Path
) -> None:
    """Its values were advised once more, on a line that nobody can type."""
    path, text = sample(tmp_path, "nvue_set.txt", (f"nv set interface swp1-2 {line}\n", ""))
    assert said(read_sonic(path), text)[what].suggest == f"nv set interface swp1 qos {suggest}"


def test_members_of_a_bond_are_set_as_it_is(tmp_path: Path) -> None:
    path, text = sample(tmp_path, "nvue_set.txt", ("interface swp1-2 qos", "interface bond1 qos"))
    path.write_text(f"{text}nv set interface bond1 bond member swp1-2\n")
    assert [group.names for group in read_ports(path)[0]] == [("swp1", "swp2")]
    assert (read_sonic(path).kmin, read_sonic(path).lossless) == (150e3, True)


def test_a_shaper_of_nvue_is_named(tmp_path: Path) -> None:
    path, text = sample(tmp_path, "nvue_set.txt")
    lines = (
        "nv set qos egress-shaper S traffic-class 5 max-rate 1000\nnv set interface swp1 qos egress-shaper profile S\n"
    )
    path.write_text(text + lines)
    found = said(read_sonic(path, "swp1"), text)["a line overrides others"]
    assert found.suggest == "nv unset qos egress-shaper S traffic-class 5 max-rate"
    assert "a line overrides others" not in said(read_sonic(path, "swp2"), text)
