"""Lines that a switch's text lacks, does not apply, or lost on the way: none of them counts as if it were there."""

from __future__ import annotations

from pathlib import Path

import pytest

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
