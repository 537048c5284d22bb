"""Lines to paste into switches that are no SONiC: applied to each system's sample, read again, and taken back."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from fluidcc.errors import InputError
from fluidcc.operators import dialect
from fluidcc.operators.commands import Commands, commands_of
from fluidcc.operators.config_db import Assumed
from fluidcc.operators.dialect import in_words
from fluidcc.operators.finding import Finding
from fluidcc.operators.ports import PortGroup, alike, read_ports
from fluidcc.operators.switches import nvue, reader_of
from fluidcc.operators.switches.description import Curve, Description, indented
from fluidcc.units import Rate

DATA = Path(__file__).parents[1] / "data" / "switches"
BEST = {"kmin": 140e3, "kmax": 1.6e6, "pmax": 0.83}
BUFFER = 10e6  # that a queue of Junos may fill


def groups_of(path: Path, port: str = "all", buffer: float | None = BUFFER) -> list[PortGroup]:
    groups = read_ports(path, port, Assumed(Rate(100e9 / 8), buffer))[0]
    return alike(groups, groups[0].switch)


def typed(path: Path, changes: dict[str, float] | None = None, port: str = "all") -> Commands:
    return commands_of(path, groups_of(path, port), None, changes or BEST)


def within_blocks(text: str, lines: str) -> str:
    """Replace lines of ``random-detect`` in their place, as EOS and NX-OS do."""
    for *above, new in indented(lines):
        at = None
        for number, (*around, line) in enumerate(indented_with_gaps(text)):
            if around == above and line.split(" minimum-threshold")[0] == new.split(" minimum-threshold")[0]:
                at = number
        if new.startswith("random-detect"):
            assert at is not None, new
            rows = text.splitlines()
            rows[at] = rows[at][: len(rows[at]) - len(rows[at].lstrip())] + new
            text = "\n".join(rows)
    return text


def indented_with_gaps(text: str) -> list[tuple[str, ...]]:
    """Return each line with those around it, by the reader's own rule; comments as lines of their own."""
    rows, found = text.splitlines(), []
    for number, row in enumerate(rows):
        above = [*indented("\n".join(rows[: number + 1]))]
        found.append(above[-1] if above and above[-1][-1] == row.strip() else (row,))
    return found


def by_line(text: str, lines: str) -> str:
    """Add and delete commands that set a leaf, as NVUE and Junos do with ``set`` commands."""
    for line in lines.splitlines():
        verb = re.match(r"(nv |)(set|unset|delete) (.*)", line)
        if verb and verb[2] != "set":
            gone = f"{verb[1]}set {verb[3]}"
            text = "\n".join(row for row in text.splitlines() if not row.startswith(gone)) + "\n"
        elif verb:
            text += line + "\n"
    return text


def by_key(text: str, lines: str) -> str:
    """Set values of a YAML or JSON text that has one class."""
    for field, value in re.findall(r"^nv set .* (\S+) (\d+)$", lines, re.MULTILINE):
        text, count = re.subn(rf'({field}"?: )\d+', rf"\g<1>{value}", text)
        assert count == 1
    return text


def in_braces(text: str, lines: str) -> str:
    """Write the points of a drop profile between its braces."""
    points = re.findall(r"^set class-of-service drop-profiles dp1 interpolate (\S+) (\d+)$", lines, re.MULTILINE)
    lists = [[value for name, value in points if name == each] for each in ("fill-level", "drop-probability")]
    inner = " fill-level [ {} ]; drop-probability [ {} ]; ".format(*map(" ".join, lists))
    assert "delete class-of-service drop-profiles dp1 interpolate\n" in lines  # without it the points would be added
    return re.sub(r"(dp1 \{\s*interpolate \{)[^}]*", rf"\g<1>{inner}", text)


# Of each sample: how lines change it, the ports asked about, what must change (meant ports, then others), Kmin.
CASES: dict[str, tuple[Callable[[str, str], str], str, str, list[str], list[str], float]] = {
    "eos, profile": (within_blocks, "eos.txt", "Ethernet1/1", ["Ethernet1/1|3"], ["Ethernet2/1|3"], 140e3),
    "eos, interface": (within_blocks, "eos.txt", "Ethernet3/1", ["Ethernet3/1|4"], [], 140e3),
    "nxos": (within_blocks, "nxos.txt", "all", ["Ethernet1/1|3", "Ethernet1/2|3"], [], 140e3),
    "nxos, one port": (within_blocks, "nxos.txt", "Ethernet1/1", ["Ethernet1/1|3"], ["Ethernet1/2|3"], 140e3),
    "nvue, set": (by_line, "nvue_set.txt", "all", ["swp1|5", "swp2|5"], [], 140e3),
    "nvue, yaml": (by_key, "nvue.yaml", "swp2", ["swp2|3"], ["swp1|3"], 140e3),
    "nvue, json": (by_key, "nvue.json", "all", ["swp1|3"], [], 140e3),
    "junos, set": (by_line, "junos_set.txt", "all", ["et-0/0/0|4"], [], 100e3),  # whole percents of 10 MB
    "junos, braces": (in_braces, "junos.conf", "all", ["et-0/0/0|4", "et-0/0/1|4"], [], 100e3),
}


def described(text: str) -> Description:
    reader = reader_of(text)
    assert reader is not None
    return reader.read(text)


def curves_of(found: Description) -> dict[str, Curve]:
    return {
        f"{name}|{queue}": found.curves[curve]
        for name, port in found.interfaces.items()
        for queue, curve in port.queues.items()
    }


@pytest.mark.parametrize("case", CASES)
def test_lines_set_the_ports_that_are_meant_and_the_way_back_restores_them(case: str, tmp_path: Path) -> None:
    apply, name, port, meant, others, kmin = CASES[case]
    before = (DATA / name).read_text()
    found = typed(DATA / name, port=port)
    after = apply(before, found.files["switch.txt"])
    path = tmp_path / name
    path.write_text(after)
    for group in groups_of(path, port):
        assert (group.switch.kmin, group.switch.kmax, group.switch.pmax) == pytest.approx((kmin, 1.6e6, 0.83))
        assert group.switch.ecn
    old, new = curves_of(described(before)), curves_of(described(after))
    assert {each for each in old if new[each] != old[each]} == {*meant, *others}
    assert old.keys() == new.keys()
    same = "the same lines also change {}"
    assert [note for note in found.notes if "the same lines" in note] == [same.format(each) for each in others]
    assert all(same.format(each) in found.files["switch.txt"] for each in others)
    again = apply(after, found.files["switch-undo.txt"])
    assert described(again) == described(before)
    if apply is within_blocks:
        assert again.splitlines() == before.splitlines()  # the old line, word by word


def test_lines_stand_in_the_words_and_the_mode_of_each_system() -> None:
    """A comment that the system would take for a command, or lines outside of its configuration, would be refused."""
    first = {"eos.txt": "!", "nxos.txt": "!", "nvue.yaml": "#", "junos.conf": "#", "sonic_show.txt": "#"}
    ends = {
        "eos.txt": ("configure terminal", "end"),
        "nxos.txt": ("configure terminal", "end"),
        "nvue.yaml": ("nv set qos congestion-control ROCE_ECN traffic-class 3 min-threshold 140000", "nv config apply"),
        "junos.conf": ("configure", "commit and-quit"),
        "sonic_show.txt": ("ecnconfig -p AZURE_LOSSLESS -gmin 140000 -gmax 1600000 -gdrop 83",) * 2,
    }
    for name, comment in first.items():
        for text in (typed(DATA / name).files[each] for each in ("switch.txt", "switch-undo.txt")):
            lines = [line for line in text.splitlines() if not line.startswith(comment)]
            assert not any(line.startswith(("!", "#")) for line in lines)
            assert text.startswith(f"{comment} ")
        lines = [line for line in typed(DATA / name).files["switch.txt"].splitlines() if not line.startswith(comment)]
        assert (lines[0], lines[-1]) == ends[name]


def test_sonics_own_show_names_the_profile_and_its_old_values() -> None:
    files = typed(DATA / "sonic_show.txt").files
    assert "ecnconfig -p AZURE_LOSSLESS -gmin 400000 -gmax 1600000 -gdrop 10\n" in files["switch-undo.txt"]
    assert "does not say which queues have AZURE_LOSSLESS" in files["switch.txt"]


def test_a_shown_table_is_of_the_profile_that_its_command_names(tmp_path: Path) -> None:
    """It was taken for default-global's; without the command nothing says whose it is."""
    text, path = (DATA / "nvue_show.txt").read_text(), tmp_path / "show.txt"
    path.write_text(text.replace("congestion-control default-global", "congestion-control MINE"))
    files = typed(path).files
    assert "nv set qos congestion-control MINE traffic-class 3 max-threshold 1600000" in files["switch.txt"]
    assert "min-threshold 149996\n" in files["switch-undo.txt"]  # 146.48 KiB
    assert "as nv show rounds them" in files["switch-undo.txt"]
    path.write_text(text[text.index("ECN Configurations") :])
    files = typed(path).files
    assert "the command above the table" in files["switch.txt"]
    assert "switch-undo.txt" not in files


@pytest.mark.parametrize(
    ("name", "old", "new", "wanted"),
    [
        ("eos.txt", " max-mark-probability 20", "", "maximum-threshold 1600000 bytes max-mark-probability 83 weight 0"),
        ("nxos.txt", " drop-probability 7", "", "maximum-threshold 1600000 bytes drop-probability 83 weight 0 ecn"),
        ("nxos.txt", " weight 0 ecn", "\n    random-detect ecn", "1600000 bytes drop-probability 83\n"),
        ("nxos.txt", "150 kbytes", "150  kbytes", "minimum-threshold 140000 bytes maximum-threshold"),
    ],
)
def test_lines_of_other_forms_keep_their_other_words(
    name: str, old: str, new: str, wanted: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    text = (DATA / name).read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))
    found = typed(path)
    assert wanted in found.files["switch.txt"]
    after = within_blocks(path.read_text(), found.files["switch.txt"])
    assert within_blocks(after, found.files["switch-undo.txt"]).splitlines() == path.read_text().splitlines()
    path.write_text(after)
    assert (groups_of(path)[0].switch.pmax, groups_of(path)[0].switch.ecn) == (0.83, True)


def test_a_probability_that_was_not_there_is_unset_on_the_way_back(tmp_path: Path) -> None:
    path = tmp_path / "nvue.txt"
    text = (DATA / "nvue_set.txt").read_text()
    path.write_text("\n".join(line for line in text.splitlines() if "probability" not in line) + "\n")
    found = typed(path)
    after = by_line(path.read_text(), found.files["switch.txt"])
    again = by_line(after, found.files["switch-undo.txt"])
    assert "nv unset qos congestion-control ROCE_ECN traffic-class 5 probability\n" in found.files["switch-undo.txt"]
    assert described(again) == described(path.read_text())
    assert described(after) != described(again)


OPEN = {  # of a sample, what is replaced, and what is then said to be missing
    "eos.txt": ("500 kbytes maximum-threshold 1500 kbytes", "1 ms maximum-threshold 2 ms", "its thresholds are times"),
    "nxos.txt": ("150 kbytes", "150 packets", "the line of marking was not read"),
    "junos.conf": ("interpolate {", "{", "drop-profile dp1 has steps"),
}


@pytest.mark.parametrize("name", OPEN)
def test_what_the_file_leaves_open_stays_words_in_comments(name: str, tmp_path: Path) -> None:
    """Nothing of it can be pasted, and the way back is none that is above."""
    old, new, missing = OPEN[name]
    text, path = (DATA / name).read_text(), tmp_path / name
    assert old in text
    path.write_text(text.replace(old, new))
    found = typed(path)
    assert sorted(found.files) == ["README.txt", "switch.txt"]
    lines = found.files["switch.txt"].splitlines()
    assert all(line[0] in "!#" for line in lines)
    assert missing in lines[-1]
    assert any(missing in note for note in found.notes)
    assert "The way back is what you exported" in found.files["README.txt"]
    assert "Kmin 140000 bytes" in lines[0]
    partly = typed(path, {"kmax": 90e6}).files["switch.txt"]
    assert ("Kmin KMIN bytes" in partly) is (name != "eos.txt")  # not 0, where nothing is known


def test_roce_by_one_command_names_no_profile(tmp_path: Path) -> None:
    path = tmp_path / "nvue.txt"
    path.write_text("nv set qos roce\nnv set interface swp1-4 link speed 100G\n")
    text = typed(path).files["switch.txt"]
    assert "nv set qos roce names no congestion-control profile" in text
    assert "congestion-control PROFILE traffic-class 3" in text


def test_shares_of_a_buffer_that_was_not_given_are_no_fill_levels() -> None:
    found = commands_of(DATA / "junos.conf", groups_of(DATA / "junos.conf", buffer=None), None, BEST)
    assert "was not given (--buffer)" in found.files["switch.txt"]
    assert "switch-undo.txt" not in found.files


@pytest.mark.parametrize(
    ("whole", "kmin", "kmax", "wanted", "said"),
    [
        (10e6, 200e3, 1.6e6, {"kmin": "2", "kmax": "16"}, 0),
        (10e6, 140e3, 1.6e6, {"kmin": "1", "kmax": "16"}, 1),  # 1.4 %
        (10e6, 40e3, 10e6, {"kmin": "0", "kmax": "100"}, 1),
        (10e6, 140e3, 10.1e6, "Kmax is more than the 10MB", 0),
        (10e6, 110e3, 140e3, "both thresholds are 1 %", 0),
        (None, 110e3, 140e3, "was not given", 0),
        (10e6, None, 140e3, "was not given", 0),
    ],
)
def test_fill_levels_are_whole_percents(
    whole: float | None, kmin: float | None, kmax: float, wanted: dict[str, str] | str, said: int
) -> None:
    notes: list[str] = []
    levels, missing = dialect._levels(whole, {"kmin": kmin, "kmax": kmax}, notes)
    assert levels == (wanted if isinstance(wanted, dict) else {})
    assert len(notes) == said
    assert (wanted in missing) if isinstance(wanted, str) else (missing == "")


def test_a_drop_profile_of_two_schedulers_is_set_once_or_said_to_be_shared(tmp_path: Path) -> None:
    path = tmp_path / "junos.txt"
    more = (
        "set class-of-service forwarding-classes class OTHER queue-num 2\n"
        "set class-of-service scheduler-maps sm1 forwarding-class OTHER scheduler s2\n"
        "set class-of-service schedulers s2 drop-profile-map loss-priority any protocol any drop-profile dp1\n"
        "set class-of-service schedulers s2 explicit-congestion-notification\n"
    )
    path.write_text((DATA / "junos_set.txt").read_text() + more)
    assert "the same lines also change et-0/0/0|2" in typed(path).notes
    both = "set class-of-service forwarding-classes class OTHER no-loss\n"
    path.write_text(path.read_text() + both)
    groups = read_ports(path, "all", Assumed(Rate(100e9 / 8), BUFFER))[0]
    found = commands_of(path, groups, None, BEST)
    assert found.files["switch.txt"].count("delete") == 1
    assert not any("the same lines" in note for note in found.notes)


def test_a_kmin_above_kmax_is_refused_and_no_change_is_nothing_to_paste() -> None:
    path = DATA / "eos.txt"
    with pytest.raises(InputError, match="kmin: 2000000 bytes would be above kmax, 1500000 bytes"):
        typed(path, {"kmin": 2e6})
    assert typed(path, {"kmin": 500e3, "pmax": 0.2}).files == {}


def test_a_suggestion_names_the_profile_that_the_file_has() -> None:
    off = Finding("bad", "ECN is off", "")
    port = groups_of(DATA / "nvue.yaml")[0].switch
    assert "congestion-control ROCE_ECN traffic-class 3 min-threshold" in in_words(off, port, nvue.WORDS).suggest
    shown = DATA / "sonic_show.txt"
    reader = reader_of(shown.read_text())
    assert reader is not None
    said = in_words(off, groups_of(shown)[0].switch, reader.WORDS).suggest
    assert said.startswith("sonic-db-cli CONFIG_DB hset 'WRED_PROFILE|AZURE_LOSSLESS' ecn ecn_all")


def test_values_of_json_are_read_as_they_are_set() -> None:
    assert json.loads(by_key((DATA / "nvue.json").read_text(), typed(DATA / "nvue.json").files["switch.txt"]))
