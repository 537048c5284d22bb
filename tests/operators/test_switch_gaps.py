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
    path, _ = junos(tmp_path, f"{SECOND}set {COS} interfaces et-0/0/1 unit 0 classifiers ieee-802.1 x\n")
    port = read_sonic(path, "et-0/0/1")
    assert port.traffic is not None
    assert port.traffic.dscps is None  # by other bits than DSCPs


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
    """What was cut off counted as absent."""
    path, text = sample(tmp_path, "junos.conf")
    path.write_text(text[: text.rindex("schedulers")])
    with pytest.raises(InputError, match="class-of-service { is not closed: the text is cut"):
        read_sonic(path)


@pytest.mark.parametrize("line", ["set interfaces et-0/0/1 ether-options 802.3ad ae7", ""])
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
