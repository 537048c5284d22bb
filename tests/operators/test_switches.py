"""Configurations of switches that are no config_db.json: each form gives the same few numbers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fluidcc.cli.app import run
from fluidcc.cli.request import is_switch
from fluidcc.errors import InputError
from fluidcc.operators import read_nic, read_sonic
from fluidcc.operators.checks import marking
from fluidcc.operators.config_db import Assumed
from fluidcc.operators.dialect import in_words
from fluidcc.operators.ports import read_ports
from fluidcc.operators.switches import READERS, eos, reader_of
from fluidcc.operators.switches.description import code_points, names, numbers, whole_percent
from fluidcc.operators.switches.unread_systems import UnreadSystem
from fluidcc.units import Rate
from tests.operators.test_fuzz import attempt

DATA = Path(__file__).parents[1] / "data" / "switches"
SAMPLES = Path(__file__).parents[2] / "examples" / "leaf-100g"
FILES = sorted(path for path in DATA.iterdir() if path.suffix != ".md")

# Of each port: queue, priority, lossless, Kmin, Kmax, Pmax, Gb/s.
EXPECTED = {
    "eos.txt": {
        "Ethernet1/1": (3, 3, True, 500e3, 1500e3, 0.2, 400),
        "Ethernet3/1": (4, 4, True, 2000 * 208, 10000 * 208, 0.05, 400),
    },
    "nxos.txt": {
        "Ethernet1/1": (3, 3, True, 150e3, 3000e3, 0.07, 400),
        "Ethernet1/2": (3, 3, False, 150e3, 3000e3, 0.07, 400),  # without priority-flow-control mode
    },
    "nvue_set.txt": dict.fromkeys(("swp1", "swp2"), (5, 3, True, 150e3, 300e3, 1.0, 200)),
    "nvue.yaml": dict.fromkeys(("swp1", "swp2"), (3, 3, True, 150e3, 300e3, 0.2, 200)),
    "nvue.json": {"swp1": (3, 3, True, 200e3, 800e3, 0.1, 400)},
    "nvue_show.txt": {"port": (3, 3, True, 146.48 * 1024, 1.43 * 1024**2, 0.3, 100)},
    "sonic_show.txt": {
        "Ethernet0": (3, 3, True, 400e3, 1600e3, 0.1, 400),
        "Ethernet4": (3, 3, True, 400e3, 1600e3, 0.1, 400),
    },
    "junos.conf": dict.fromkeys(("et-0/0/0", "et-0/0/1"), (4, 3, True, 2e6, 6e6, 0.9, 400)),
    "junos_set.txt": {"et-0/0/0": (4, 3, True, 2e6, 6e6, 0.9, 400)},
}


@pytest.mark.parametrize("name", EXPECTED)
def test_each_form_gives_marking_pausing_and_speed(name: str) -> None:
    """Junos's shares are of 10 MB here."""
    groups, _ = read_ports(DATA / name, "all", Assumed(Rate(100e9 / 8), 10e6))
    found = {}
    for group in groups:
        port = group.switch
        read = (port.queue, port.priority, port.lossless, port.kmin, port.kmax, port.pmax, port.rate * 8 / 1e9)
        for each in group.names:
            found.setdefault(each, read)
        assert port.ecn
        assert port.system != "SONiC" or name == "sonic_show.txt"
    assert found == {port: pytest.approx(numbers) for port, numbers in EXPECTED[name].items()}


def test_every_file_has_its_numbers() -> None:
    assert {path.name for path in FILES} == EXPECTED.keys()
    assert {reader.__name__ for reader in map(reader_of, map(Path.read_text, FILES)) if reader} == {  # type: ignore[attr-defined]
        reader.__name__
        for reader in READERS  # type: ignore[attr-defined]
        if not isinstance(reader, UnreadSystem)
    }


UNREAD = {  # of a file, its thresholds and what may stand there instead
    "nxos.txt": (
        "minimum-threshold 150 kbytes maximum-threshold 3000 kbytes drop-probability 7 weight 0 ecn",
        "threshold burst-optimized ecn",
        "minimum-threshold 150 packets maximum-threshold 3000 packets drop-probability 7 weight 0 ecn",
        "minimum-threshold 150 kbytes maximum-threshold 3000 kbytes drop-probability 0.1 weight 0 ecn",
        "minimum-threshold 150 kbytes maximum-threshold 3000 kbytes drop-probability .1 weight 0 ecn",
        "threshold mesh-optimized ecn",
        "ecn",
    ),
    "eos.txt": (
        "minimum-threshold 500 kbytes maximum-threshold 1500 kbytes max-mark-probability 20 weight 0",
        "minimum-threshold 5 cells maximum-threshold 15 cells max-mark-probability 20 weight 0",
        "minimum-threshold 500 kbytes maximum-threshold 1500 kbytes max-mark-probability 0.2 weight 0",
        "minimum-threshold 500 kbytes maximum-threshold 1500 kbytes weight 0 max-mark-probability 0.2",
        "delay threshold 5 microseconds",
    ),
    "junos.conf": (
        "drop-profile-map loss-priority any protocol any drop-profile dp1;",
        "",
        "drop-profile-map loss-priority any protocol any drop-profile other;",
    ),
    "nvue_set.txt": ("probability 100", "probability 0.1"),
    "nvue.json": ('"min-threshold": 200000', '"min-threshold": "200 cells"'),
    "nvue_show.txt": ("1.43 MB  30", "1.43 MB  0.3"),
}


@pytest.mark.parametrize("name", UNREAD)
def test_marking_that_is_not_read_is_not_said_to_be_off(name: str, tmp_path: Path) -> None:
    text, (read, *others) = (DATA / name).read_text(), UNREAD[name]
    reader = reader_of(text)
    assert text.count(read) == 1
    assert reader is not None
    for other in others:
        path = tmp_path / name
        path.write_text(text.replace(read, other))
        switch = read_ports(path, "all")[0][0].switch
        assert (switch.unread != "", switch.kmin) == (True, None), other
        said = {finding.what: in_words(finding, switch, reader.WORDS) for finding in marking(switch)}
        assert "ECN is off" not in said
        assert switch.unread in said["marking was not read"].why
        assert "PERCENT" in said["marking was not read"].suggest


def test_of_two_lines_of_marking_the_last_or_the_nearest_counts(tmp_path: Path) -> None:
    """At an interface rather than in its profile; a line that marks nothing takes nothing back."""
    read = "minimum-threshold 1 kbytes maximum-threshold 2 kbytes"
    other = "random-detect ecn delay threshold 5 microseconds"
    path = tmp_path / "eos.txt"
    profile = f"qos profile R\n   priority-flow-control on\n   tx-queue 3\n      random-detect ecn {read}\n"
    path.write_text(f"{profile}interface Ethernet1/1\n   service-profile R\n   tx-queue 3\n      {other}\n")
    assert (read_sonic(path).unread, read_sonic(path).kmin) == (other, None)
    text, path = (DATA / "nxos.txt").read_text(), tmp_path / "nxos.txt"
    line = next(line for line in text.splitlines() if "random-detect" in line)
    for last, kmin in (("threshold burst-optimized ecn", None), ("forward-nonecn", 150e3)):
        path.write_text(text.replace(line, f"{line}\n    random-detect {last}"))
        assert read_sonic(path).kmin == kmin


def test_marking_of_a_class_that_the_file_lacks_may_be_of_any_queue(tmp_path: Path) -> None:
    """It was said to be off, with advice to turn it on."""
    text, path = (DATA / "nxos.txt").read_text(), tmp_path / "nxos.txt"
    path.write_text(text.replace("class type queuing c-out-8q-q3\n", "class type queuing elsewhere\n"))
    switch = read_sonic(path)
    assert "random-detect" in switch.unread
    assert "ECN is off" not in {finding.what for finding in marking(switch)}


def test_points_of_which_some_are_not_read_are_no_curve(tmp_path: Path) -> None:
    path = tmp_path / "junos.conf"
    text = (DATA / "junos.conf").read_text().replace("[ 20 60 ]", "[ 20 40 60 ]")
    path.write_text(text.replace("[ 0 90 ]", "[ 0 10 90 ]"))
    assert read_sonic(path).shares == (0.2, 0.6)
    path.write_text(text.replace("[ 0 90 ]", "[ 0 10 0.9 ]"))
    assert (read_sonic(path).shares, read_sonic(path).unread != "") == (None, True)


def test_a_fraction_of_a_percent_is_refused_where_sonic_shows_it(tmp_path: Path) -> None:
    path = tmp_path / "show.txt"
    text = (DATA / "sonic_show.txt").read_text()
    line = next(line for line in text.splitlines() if "green_drop_probability" in line)
    path.write_text(text.replace(line, "green_drop_probability  0.1"))
    with pytest.raises(InputError, match=r"show\.txt: .*green_drop_probability '0\.1' .* whole number from 0 to 100"):
        read_sonic(path)


@pytest.mark.parametrize(
    ("of_policy", "of_port", "mtu"),
    [
        ("", "", 1500),
        ("    mtu 9216\n", "", 9216),
        ("    mtu 9216\n", "  no switchport\n", 1500),  # a policy's is of layer 2
        ("    mtu 9216\n", "  no switchport\n  mtu 4200\n", 4200),
    ],
)
def test_the_mtu_of_nxos_is_the_ports_the_policys_or_1500(
    of_policy: str, of_port: str, mtu: int, tmp_path: Path
) -> None:
    """It was 9100, SONiC's default, so that hosts with packets of 4 KB were said to fit."""
    path = tmp_path / "nxos.txt"
    head = "policy-map type network-qos N\n  class type network-qos c-8q-nq3\n    pause pfc-cos 3\n"
    system = "system qos\n  service-policy type network-qos N\n"
    path.write_text(f"{head}{of_policy}{system}interface Ethernet1/1\n  priority-flow-control mode on\n{of_port}")
    port = read_sonic(path)
    assert port.mtu == mtu
    assert ("no line of mtu for Ethernet1/1" in " ".join(port.notes)) is (mtu == 1500)


def test_an_nxos_text_without_ports_says_nothing_of_their_mtu(tmp_path: Path) -> None:
    path = tmp_path / "nxos.txt"
    path.write_text("policy-map type network-qos N\n  class type network-qos c-8q-nq3\n    pause pfc-cos 3\n")
    assert "mtu" not in " ".join(read_sonic(path).notes)


def test_whole_percents() -> None:
    wanted = {"7": 7, " 20 %": 20, "0.1": None, ".1": None, "1e1": None, "": None}
    assert {text: whole_percent(text) for text in wanted} == wanted


def test_junos_schedules_by_traffic_control_profiles_too(tmp_path: Path) -> None:
    direct, path = (DATA / "junos.conf").read_text(), tmp_path / "junos.conf"
    by_class = "forwarding-class-set { all { output-traffic-control-profile t; } }"
    for instead in (by_class, "output-traffic-control-profile t;"):
        text = direct.replace("            scheduler-map sm1;", f"            {instead}")
        path.write_text(
            text.replace(
                "    scheduler-maps {",
                "    traffic-control-profiles { t { scheduler-map sm1; } }\n    scheduler-maps {",
            )
        )
        for group in read_ports(path, "all", Assumed(Rate(100e9 / 8), 10e6))[0]:
            assert (group.switch.queue, group.switch.kmin, group.switch.kmax) == (4, 2e6, 6e6)


def test_a_switch_that_is_not_read_is_not_taken_for_another(tmp_path: Path) -> None:
    path = tmp_path / "os10.txt"
    path.write_text(
        "wred ROCE\n random-detect color green minimum-threshold 400 maximum-threshold 1600 drop-probability 10\n"
        " random-detect ecn\n"
    )
    for text in (path.read_text(), "wred ROCE\n random-detect ecn\npolicy-map type network-qos P\n  pause\n"):
        path.write_text(text)
        assert is_switch(str(path))
        with pytest.raises(InputError, match="looks like Dell OS10, which is not read"):
            read_ports(path, "all")
    both = "interface Ethernet1\n   speed 100g\n   tx-queue 3\n      random-detect ecn minimum-threshold 400 kbytes "
    both += "maximum-threshold 800 kbytes max-mark-probability 10\n   priority-flow-control mode on\n"
    assert reader_of(both + "   priority-flow-control priority 3 no-drop\n") is eos  # NX-OS has such a mode too
    assert not eos.recognises("interface ethernet1/1/1\n random-detect ecn\n")


def test_dscps_of_each_form() -> None:
    """EOS maps 24 to 31 to class 3 untold; NX-OS and Junos only what they say; NVUE's priority 3 is in queue 5."""
    wanted = {"eos.txt": tuple(range(24, 32)), "nxos.txt": (24, 26), "nvue_set.txt": (24, 26), "junos.conf": (24, 26)}
    for name, dscps in wanted.items():
        traffic = read_sonic(DATA / name).traffic
        assert traffic is not None
        assert traffic.dscps == dscps, name
        assert not traffic.groups  # priority 3 may be in queue 5: nothing says that they are counted elsewhere


def test_a_watchdog_is_on_off_or_not_told() -> None:
    wanted = {"eos.txt": "drop", "nxos.txt": "drop", "junos.conf": "drop", "junos_set.txt": None, "nvue.yaml": None}
    for name, action in wanted.items():
        port = read_sonic(DATA / name)
        assert not port.watchdog_unsaid
        assert (port.watchdog and port.watchdog.action) == action, name
        assert port.watchdog is None or port.watchdog.faults == ()
    assert read_sonic(DATA / "eos.txt", "Ethernet3/1").watchdog is None  # switched off at the interface
    assert read_sonic(DATA / "sonic_show.txt").watchdog_unsaid


def test_shares_of_an_unknown_buffer_are_no_bytes() -> None:
    port = read_sonic(DATA / "junos.conf")
    assert (port.shares, port.red, port.profile, port.ecn) == ((0.2, 0.6), None, "s1", True)


def test_ports_that_are_down_are_left_out() -> None:
    assert [group.names for group in read_ports(DATA / "eos.txt")[0]] == [("Ethernet1/1",), ("Ethernet3/1",)]
    assert read_sonic(DATA / "eos.txt").ports == 2


@pytest.mark.parametrize(
    ("low", "high", "wanted"),
    [
        ("500 kbytes", "1500 kbytes", (500e3, 1500e3, 1.0)),
        ("9 bytes", "2 mbytes max-mark-probability 7", (9, 2e6, 0.07)),
        ("1 milliseconds", "2 milliseconds", (12.5e6, 25e6, 1.0)),
    ],
)
def test_units_of_eos(low: str, high: str, wanted: tuple[float, ...], tmp_path: Path) -> None:
    """Times are bytes at the port's rate, 100 Gb/s where none is given; a profile that no port has stands for all."""
    path = tmp_path / "eos.txt"
    text = f"random-detect ecn minimum-threshold {low} maximum-threshold {high}"
    pauses = "priority-flow-control on\n   priority-flow-control priority 3 no-drop"
    path.write_text(f"qos profile R\n   {pauses}\n   tx-queue 3\n      {text}\n")
    port = read_sonic(path)
    assert (port.kmin, port.kmax, port.pmax) == pytest.approx(wanted)
    assert port.assumed_rate
    assert port.lossless


def test_roce_of_cumulus_by_one_command(tmp_path: Path) -> None:
    path = tmp_path / "nvue.txt"
    path.write_text("nv set qos roce\nnv set interface swp1-4 link speed 100G\n")
    port = read_sonic(path)
    assert (port.kmin, port.kmax, port.pmax, port.priority, port.lossless) == (150e3, 1500e3, 1.0, 3, True)
    assert any("Cumulus" in note for note in port.notes)
    path.write_text("nv set qos roce mode lossy\nnv set interface swp1 link speed 100G\n")
    assert not read_sonic(path).lossless


def test_nxos_marks_only_with_ecn_and_in_bytes(tmp_path: Path) -> None:
    path = tmp_path / "nxos.txt"
    text = (DATA / "nxos.txt").read_text()
    path.write_text(text.replace("weight 0 ecn", "weight 0"))
    assert not read_sonic(path).ecn
    path.write_text(text.replace("150 kbytes", "150 packets").replace("3000 kbytes", "3000 packets"))
    port = read_sonic(path)
    assert port.red is None
    assert any("no thresholds in bytes" in note for note in port.notes)


def test_lists_of_ports_numbers_and_code_points() -> None:
    assert names("swp1-3,swp5s0-1") == ["swp1", "swp2", "swp3", "swp5s0", "swp5s1"]
    assert names("Ethernet1/1-2,1/5") == ["Ethernet1/1", "Ethernet1/2", "Ethernet1/5"]
    assert names("et-0/0/1") == ["et-0/0/1"]
    assert numbers("0,3-5 7") == [0, 3, 4, 5, 7]
    assert sorted(code_points("24,26 af31 cs6 ef")) == [24, 26, 26, 46, 48]
    assert code_points("63-65") == [63]  # six bits


def test_a_nics_settings_are_no_switchs() -> None:
    assert reader_of((SAMPLES / "nic.txt").read_text()) is None
    assert reader_of((SAMPLES / "config_db.json").read_text()) is None
    with pytest.raises(InputError):
        read_nic(DATA / "eos.txt")


def test_pausing_alone_says_nothing_of_marking(tmp_path: Path) -> None:
    path = tmp_path / "show.txt"
    path.write_text("Interface    Lossless priorities\n-----------  ----\nEthernet0    3,4\n")
    with pytest.raises(InputError, match=r"show\.txt: .*show ecn"):
        read_sonic(path)


def test_a_text_that_is_nobodys_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "switch.txt"
    path.write_text("hostname leaf\n")
    with pytest.raises(InputError, match=r"not JSON .* EOS, NX-OS, NVUE or Junos"):
        read_sonic(path)


JUNK = st.one_of(
    st.text(max_size=6),
    st.sampled_from(["9" * 400, "{", "}", "[", "3-9", "\n", "  ", "-1", "1.5", ";", "0-99999"]),
)
EDITS = st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 2), JUNK), min_size=1, max_size=4)


@settings(max_examples=120)
@given(file=st.sampled_from(FILES), edits=EDITS)
def test_mutated_texts_are_read_or_refused_in_a_line(
    file: Path, edits: list[tuple[int, int, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    words = file.read_text().split(" ")
    for place, length, patch in edits:
        at = place % (len(words) + 1)
        words[at : at + length] = [patch]
    path = tmp_path_factory.getbasetemp() / "mutated.txt"
    path.write_text(" ".join(words), encoding="utf-8", errors="replace")
    port = attempt(read_sonic, path)
    assert port is None or (port.rate > 0 and all(note.isprintable() for note in port.notes))


def test_the_command_line_tells_switches_from_nics(capsys: pytest.CaptureFixture[str]) -> None:
    """Named as they are, by --switch, or by --sonic as scripts have it; Junos's shares leave nothing to simulate."""
    assert all(is_switch(str(path)) for path in FILES)
    assert not is_switch(str(SAMPLES / "nic.txt"))
    said = set()
    for option in ([], ["--switch"], ["--sonic"]):
        assert run(["audit", *option, str(DATA / "junos.conf"), "--packets", "0", "--json"]) == 0
        said.add(capsys.readouterr().out)
    assert len(said) == 1
    assert json.loads(said.pop())["settings"]["system"] == "Junos"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("[irdma]\ndcqcn_enable=1\n", False),
        ("[]", True),
        (' [{"PORT": {}}]', True),
        ("\n {", True),
        ("$ show runningconfiguration all\n{\n}\n$ ", True),
        ("rpg_ai_rate = 5 {\n", False),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_section_of_settings_is_no_json(tmp_path: Path, text: str, wanted: bool, encoding: str) -> None:
    path = tmp_path / "device.txt"
    path.write_text(text, encoding=encoding)
    assert is_switch(str(path)) is wanted
