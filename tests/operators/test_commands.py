"""What to type: applied by a JSON patch of our own in a few lines and read again, and taken back."""

from __future__ import annotations

import copy
import dataclasses
import json
import random
import shlex
from pathlib import Path
from typing import Any

import pytest

import fluidcc as fc
from fluidcc.cli.app import run
from fluidcc.cli.audit import FAILED
from fluidcc.errors import InputError
from fluidcc.operators import NicSettings, commands, dcqcn_of, read_nic, read_sonic
from fluidcc.operators.commands import FILES, Commands, commands_of, pointer
from fluidcc.operators.config_db import ConfigDB
from fluidcc.operators.nvidia_settings import REGISTERS, SETTINGS, register_of
from fluidcc.operators.ports import alike, read_ports, staying
from tests.operators.short_audits import short_audits

EXAMPLE = Path(__file__).parents[2] / "examples" / "leaf-100g"
BEST = {"kmin": 2e3, "kmax": 123e3, "pmax": 0.06}


def applied(tables: Any, patch: list[dict[str, Any]]) -> Any:
    """RFC 6902's add, remove and replace, on objects."""
    tables = copy.deepcopy(tables)
    for step in patch:
        parts = [part.replace("~1", "/").replace("~0", "~") for part in step["path"].split("/")[1:]]
        place = tables
        for part in parts[:-1]:
            place = place[part]
        if step["op"] in ("remove", "replace"):
            assert parts[-1] in place, step
        if step["op"] == "remove":
            del place[parts[-1]]
        else:
            assert step["op"] in ("add", "replace")
            place[parts[-1]] = step["value"]
    return tables


def sample() -> Any:
    return json.loads((EXAMPLE / "config_db.json").read_text())


def saved(tables: Any, folder: Path, name: str = "config_db.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(tables))
    return path


def typed(path: Path, changes: dict[str, float], port: str | None = None) -> Commands:
    groups = read_ports(path)[0]
    return commands_of(path, alike(groups, read_sonic(path, port)), read_nic(EXAMPLE / "nic.txt"), changes)


def test_the_patch_gives_the_numbers_that_were_wanted_and_its_undo_takes_them_back(tmp_path: Path) -> None:
    path = saved(sample(), tmp_path)
    found = typed(path, BEST)
    after = applied(sample(), found.patch)
    port = read_sonic(saved(after, tmp_path, "after.json"))
    assert (port.kmin, port.kmax, port.pmax) == (2e3, 123e3, 0.06)
    assert applied(after, found.undo) == sample()
    assert [step["path"] for step in found.patch] == [
        f"/WRED_PROFILE/AZURE_LOSSLESS/green_{each}" for each in ("min_threshold", "max_threshold", "drop_probability")
    ]
    assert all(isinstance(step["value"], str) for step in found.patch)
    assert "ecnconfig -p AZURE_LOSSLESS -gmin 2000 -gmax 123000 -gdrop 6\n" in found.files["ecnconfig.txt"]
    assert "-gmin 1048576 -gmax 2097152 -gdrop 5" in found.files["ecnconfig.txt"]


@pytest.mark.parametrize("style", ["plain", "brackets", "ranges"])
def test_ports_that_are_not_meant_keep_their_profile(style: str, tmp_path: Path) -> None:
    """Two ports at 400G share the profile: changing those at 100G makes a profile for these, however it is written."""
    tables = sample()
    for name in ("Ethernet0", "Ethernet4"):
        tables["PORT"][name]["speed"] = "400000"
    if style == "brackets":
        for entry in tables["QUEUE"].values():
            if "wred_profile" in entry:
                entry["wred_profile"] = "[WRED_PROFILE|AZURE_LOSSLESS]"
    if style == "ranges":  # one entry for a port that is meant and one that is not, and for two queues
        for key in [f"Ethernet{n}|{q}" for n in (0, 8) for q in (3, 4)]:
            entry = tables["QUEUE"].pop(key)
        tables["QUEUE"]["Ethernet0,Ethernet8|3-4"] = entry
    path = saved(tables, tmp_path)
    found = typed(path, BEST, "Ethernet8")
    after = saved(applied(tables, found.patch), tmp_path, "after.json")
    assert applied(json.loads(after.read_text()), found.undo) == tables
    changed = {name: read_sonic(after, name).kmin for name in tables["PORT"]}
    assert {name for name, kmin in changed.items() if kmin != 2e3} == {"Ethernet0", "Ethernet4"}
    assert changed["Ethernet0"] == 1048576
    assert any("a profile of their own, AZURE_LOSSLESS_100G" in note for note in found.notes)
    assert "ecnconfig.txt" not in found.files
    # A profile is there before a queue names it, and goes after none does: SONiC refuses names that lead nowhere.
    assert found.patch[0]["path"] == "/WRED_PROFILE/AZURE_LOSSLESS_100G"
    assert found.undo[-1] == {"op": "remove", "path": "/WRED_PROFILE/AZURE_LOSSLESS_100G"}
    for group in read_ports(after)[0]:
        assert group.switch.kmin == (1048576 if "Ethernet0" in group.names else 2e3)


def test_independent_ecn_fields_are_what_is_changed(tmp_path: Path) -> None:
    tables = sample()
    tables["WRED_PROFILE"]["AZURE_LOSSLESS"] |= {
        "green_ect_min_threshold": "5000", "green_ect_max_threshold": "9000", "green_ect_mark_probability": "7",
    }  # fmt: skip
    path = saved(tables, tmp_path)
    found = typed(path, BEST)
    after = saved(applied(tables, found.patch), tmp_path, "after.json")
    port = read_sonic(after)
    assert (port.kmin, port.kmax, port.pmax) == (2e3, 123e3, 0.06)
    assert json.loads(after.read_text())["WRED_PROFILE"]["AZURE_LOSSLESS"]["green_min_threshold"] == "1048576"
    assert "ecnconfig.txt" not in found.files


def test_every_register_is_found_again() -> None:
    """From raw values to the model's parameters and back, for every setting that the model reads."""
    rng = random.Random(1)
    narrow = {"rpg_byte_reset": 32767, "rpg_time_reset": 131071, "rpg_ai_rate": 131071, "rpg_hai_rate": 131071}
    assert {register for register, _, _ in REGISTERS.values()} == set(SETTINGS)
    for _ in range(50):
        given = {
            name: float(rng.randint(int(each.low), min(int(each.high), narrow.get(name, 200_000))))
            for name, each in SETTINGS.items()
        }
        given["rpg_max_rate"] = max(1.0, given["rpg_max_rate"])  # 0 is none, and no parameter
        given["min_time_between_cnps"] = max(1.0, given["min_time_between_cnps"])
        given["rpg_min_dec_fac"] = min(99.0, given["rpg_min_dec_fac"])
        given["rpg_min_rate"] = min(given["rpg_min_rate"], given["rpg_max_rate"])
        _, rows = dcqcn_of(NicSettings(given, "drawn"))
        assert {register_of(row.parameter, float(row.value)) for row in rows} == {
            (name, int(value)) for name, value in given.items()
        }


def test_raw_values_are_typed_and_the_way_back_is_beside_them(tmp_path: Path) -> None:
    found = typed(saved(sample(), tmp_path), {"g": 1 / 256, "timer": 55e-6, "rate_ai": 40e6 / 8, "rate_hai": 50e6 / 8})
    assert found.registers == {"dce_tcp_g": 1020, "rpg_time_reset": 55, "rpg_ai_rate": 40}  # rate_hai is 50 already
    assert found.before == {"dce_tcp_g": 1019, "rpg_time_reset": 300, "rpg_ai_rate": 5}
    assert "DCE_TCP_G_P${NIC_PORT}=1020" in found.files["nic.sh"]
    assert 'echo 1020 > "/sys/class/net/${INTERFACE}/ecn/roce_rp/dce_tcp_g"' in found.files["nic.sh"]
    assert "DCE_TCP_G_P${NIC_PORT}=1019" in found.files["nic-undo.sh"]
    assert any("reset" in note for note in found.notes)
    assert set(found.files) == {"nic.sh", "nic-undo.sh", "README.txt"}
    assert found.patch == []


def test_nothing_to_change_is_nothing_to_type(tmp_path: Path) -> None:
    found = typed(saved(sample(), tmp_path), {"kmin": 1048576, "pmax": 0.05, "g": 5 / 1024})
    assert found.files == {}
    assert found.write(tmp_path / "none") == []


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"byte_counter": 10e6}, "takes 0 to 32767 bytes; 0 turns it off"),
        ({"timer": 0.2}, "takes 1 to 131071 us"),
        ({"kmim": 1e3}, "kmim is no setting"),
        ({"g": 2.0}, "dce_tcp_g"),
    ],
)
def test_what_a_device_does_not_take_is_refused(changes: dict[str, float], word: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=word) as said:
        typed(saved(sample(), tmp_path), changes)
    assert "\n" not in str(said.value)


def test_a_queue_without_a_profile_is_refused(tmp_path: Path) -> None:
    tables = sample()
    for entry in tables["QUEUE"].values():
        entry.pop("wred_profile", None)
    with pytest.raises(InputError, match="has no WRED profile to change"):
        typed(saved(tables, tmp_path), BEST)


def test_the_readme_is_of_the_files_that_there_are(tmp_path: Path) -> None:
    found = typed(saved(sample(), tmp_path), {"g": 1 / 256})
    lines = found.files["README.txt"].splitlines()
    assert [line.split()[0] for line in lines if line.split()[:1] and line.split()[0] in FILES] == [
        "nic.sh",
        "nic-undo.sh",
    ]
    after = lines.index("How to go on:") - 1
    assert lines[after - len(found.notes) : after] == list(found.notes)


def test_a_change_of_one_port_needs_no_list(tmp_path: Path) -> None:
    """Notice a note that names the port which was asked for; several ports are named."""
    tables = sample()
    alone = typed(saved(tables, tmp_path), BEST, "Ethernet0").notes
    assert not any("changes 1 port" in note for note in alone)
    assert any("ports that mark by" in note for note in typed(saved(tables, tmp_path), BEST).notes)


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (1, "changes 1 port that marks by P (E0), queues 3, 4"),
        (4, "changes 4 ports that mark by P (E0, E1, E2, E3), queues 3, 4"),
        (5, "changes 5 ports that mark by P (E0, E1, E2, E3, ...), queues 3, 4"),
    ],
)
def test_ports_on_which_a_change_takes_effect(count: int, said: str) -> None:
    assert commands._changed("P", {(f"E{k}", queue) for k in range(count) for queue in (4, 3)}) == said


def test_a_profile_that_is_made_has_a_name_that_is_free(tmp_path: Path) -> None:
    tables = sample()
    config = lambda: ConfigDB(saved(tables, tmp_path))  # noqa: E731
    assert commands._free_name(config(), "NEW_100G") == "NEW_100G"
    tables["WRED_PROFILE"] |= {"NEW_100G": {}}
    assert commands._free_name(config(), "NEW_100G") == "NEW_100G_2"
    tables["WRED_PROFILE"] |= {"NEW_100G_2": {}, "NEW_100G_3": {}}
    assert commands._free_name(config(), "NEW_100G") == "NEW_100G_4"
    assert [commands._speed(rate) for rate in (12.5e9, 1.25e9, 3.125e9)] == ["100G", "10G", "25G"]


@pytest.mark.parametrize(
    ("changes", "beyond"),
    [
        ({"kmin": 1e6, "kmax": 2e6}, ""),
        ({"kmin": 1e6, "kmax": 2_000_001.0}, "kmax: more than the 2MB"),
        ({"kmin": 2_000_001.0, "kmax": 3e6}, "kmin and kmax: more than the 2MB"),
    ],
)
def test_thresholds_beyond_what_the_queue_may_hold_are_said(
    changes: dict[str, float], beyond: str, tmp_path: Path
) -> None:
    path = saved(sample(), tmp_path)
    groups = [
        dataclasses.replace(group, switch=dataclasses.replace(group.switch, queue_limit=2e6, buffer_size=None))
        for group in alike(read_ports(path)[0], read_sonic(path))
    ]
    notes = [note for note in commands_of(path, groups, None, changes).notes if "may hold" in note]
    assert len(notes) == bool(beyond)
    assert beyond in "".join(notes)


def test_a_kmin_of_kmax_is_a_step_and_no_reversal(tmp_path: Path) -> None:
    path = saved(sample(), tmp_path)
    assert typed(path, {"kmin": 2097152.0}).patch
    with pytest.raises(InputError, match="would be above kmax"):
        typed(path, {"kmin": 2097153.0})


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"kmin": 1000.0}, "Kmin 1000 bytes, Kmax 1500000 bytes, Pmax 20 %"),
        ({"kmax": 2e6}, "Kmin 500000 bytes, Kmax 2000000 bytes, Pmax 20 %"),
        ({"pmax": 0.07}, "Kmin 500000 bytes, Kmax 1500000 bytes, Pmax 7 %"),
    ],
)
def test_thresholds_that_stay_are_typed_again_on_other_systems(changes: dict[str, float], line: str) -> None:
    path = Path(__file__).parents[1] / "data" / "switches" / "eos.txt"
    found = commands_of(path, read_ports(path)[0][:1], None, changes)
    assert (found.patch, found.undo) == ([], [])
    assert sorted(found.files) == ["README.txt", "switch-undo.txt", "switch.txt"]
    lines = found.files["switch.txt"].splitlines()
    assert lines[0] == f"! Arista EOS, queue 3 of Ethernet1/1: {line}"
    assert "show priority-flow-control counters" in found.files["README.txt"]  # what EOS has in place of SONiC's
    assert "watermark" not in found.files["README.txt"]
    _, kmin, _, _, kmax, _, _, pmax, _ = line.replace(",", "").split()
    values = f"minimum-threshold {kmin} bytes maximum-threshold {kmax} bytes max-mark-probability {pmax} weight 0"
    assert [each.strip() for each in lines if "random-detect" in each] == [f"random-detect ecn {values}"]


def test_pointers_escape() -> None:
    assert pointer("A/B", "c~d") == "/A~1B/c~0d"


def test_an_audit_says_what_to_type(tmp_path: Path) -> None:
    with short_audits():
        found = fc.audit(EXAMPLE / "config_db.json", EXAMPLE / "nic.txt", port="Ethernet0")
    commands = found.commands({"kmin": "5KB", "kmax": "200KB", "pmax": "1%", "g": "1/256"})
    assert commands.registers == {"dce_tcp_g": 1020}
    assert "a profile of their own" in " ".join(commands.notes)  # 31 others have it too, and only one was asked about
    written = commands.write(tmp_path / "typed")
    assert {path.name for path in written} == {"patch.json", "undo.json", "nic.sh", "nic-undo.sh", "README.txt"}
    tables = applied(sample(), json.loads((tmp_path / "typed" / "patch.json").read_text()))
    after = saved(tables, tmp_path, "after.json")
    assert read_sonic(after, "Ethernet0").kmin == 5e3
    assert read_sonic(after, "Ethernet4").kmin == 1048576


def test_what_is_stored_for_the_next_boot_is_changed_too() -> None:
    nic = NicSettings({"rpg_ai_rate": 5, "rpg_hai_rate": 50}, "nic.txt", (), {"rpg_ai_rate": (5, 50)})
    same = commands_of(None, [], nic, {"rate_ai": 5e6 / 8})
    assert same.registers == {"rpg_ai_rate": 5}  # runs already, and would be gone at the next boot
    assert "RPG_AI_RATE_P${NIC_PORT}=5" in same.files["nic.sh"]
    other = commands_of(None, [], nic, {"rate_ai": 20e6 / 8})
    back = other.files["nic-undo.sh"].splitlines()
    assert any(line.endswith("set RPG_AI_RATE_P${NIC_PORT}=50") for line in back)  # as it was stored
    assert any(line.startswith("echo 5 >") for line in back)  # as it ran


def test_what_is_rounded_is_said_and_never_to_nothing(tmp_path: Path) -> None:
    path = saved(sample(), tmp_path)
    found = typed(path, {"cnp_interval": 4.4e-6, "decrease_gain": 0.3, "rate_ai": 20e6 / 8})
    assert [note.split(":")[0] for note in found.notes if "is written as" in note] == ["cnp_interval", "decrease_gain"]
    tiny = {"pmax": 0.004, "cnp_interval": 0.4e-6, "rate_ai": 0.4e6 / 8, "byte_counter": 0.3, "max_rate": 0.4e6 / 8}
    for name, value in tiny.items():
        with pytest.raises(InputError, match=f"^{name}: .* rounded to 0, which means another thing"):
            typed(path, {name: value})
    for name, value in {"decrease_gain": 0.0, "timer": float("nan"), "kmax": float("inf")}.items():
        with pytest.raises(InputError, match=f"^{name}: "):
            typed(path, {name: value})
    with pytest.raises(InputError, match="kmin: 5000000 bytes would be above kmax, 2097152 bytes"):
        typed(path, {"kmin": 5e6})


def test_entries_that_overlap_keep_their_other_fields(tmp_path: Path) -> None:
    tables = sample()
    tables["QUEUE"] = {
        key: {"wred_profile": entry["wred_profile"]}
        for key, entry in tables["QUEUE"].items()
        if key.endswith("|3") and "wred_profile" in entry
    }
    for key in list(tables["QUEUE"]):
        tables["QUEUE"][key.replace("|3", "|3-4")] = tables["QUEUE"].pop(key)
    tables["QUEUE"]["Ethernet0|3"] = {"scheduler": "scheduler.9"}
    path = saved(tables, tmp_path)
    groups = read_ports(path, "Ethernet0")[0]
    found = commands_of(path, groups[:1], read_nic(EXAMPLE / "nic.txt"), {"kmin": 2e3})
    new = applied(tables, found.patch)
    assert new["QUEUE"]["Ethernet0|3"]["scheduler"] == "scheduler.9"
    assert new["QUEUE"]["Ethernet0|3"]["wred_profile"] != tables["QUEUE"]["Ethernet0|3-4"]["wred_profile"]
    assert applied(new, found.undo) == tables


@pytest.mark.parametrize("split", [False, True])
def test_ports_of_two_profiles_are_changed_and_taken_back(tmp_path: Path, split: bool) -> None:
    """Uplinks have a profile of their own; lines by hand that leave one out would change a part of the ports."""
    tables = json.loads((EXAMPLE.parent / "fabric-400g" / "config_db.json").read_text())
    for key in [key for key in tables["QUEUE"] if key.endswith("|4")]:
        if tables["QUEUE"][key].get("wred_profile") == "RDMA_SPINE" or not split:
            del tables["QUEUE"][key]["wred_profile"]  # then queue 3 has the profile for itself
    path = saved(tables, tmp_path)
    groups = [group for group in read_ports(path)[0] if group.switch.queue == 3]
    assert {group.switch.profile for group in groups} == {"RDMA_HOST", "RDMA_SPINE"}
    found = commands_of(path, groups, None, {"kmin": 99e3})
    after = applied(tables, found.patch)
    again = read_ports(saved(after, tmp_path, "after.json"))[0]
    mine = [group.switch.kmin for group in again if group.switch.queue == 3]
    assert set(mine) == {99e3}
    assert sum(len(group.names) for group in again if group.switch.queue == 3) == 32
    others = {group.switch.kmin for group in again if group.switch.queue != 3}
    assert others - {None} == ({400e3} if split else set())
    assert applied(after, found.undo) == tables
    assert ("ecnconfig.txt" in found.files) is not split
    if not split:
        typed_lines = [line for line in found.files["ecnconfig.txt"].splitlines() if line.startswith("ecnconfig")]
        assert typed_lines == [f"ecnconfig -p RDMA_{name} -gmin 99000" for name in ("HOST", "SPINE")]


@pytest.mark.parametrize(
    ("changes", "first"),
    [
        ({"kmin": 200e3, "kmax": 800e3, "g": 1 / 64}, "1. One rack first: its switch, and its hosts' NICs"),
        ({"kmin": 200e3, "kmax": 800e3}, "1. One rack's switch first."),
        ({"g": 1 / 64}, "1. The hosts of one rack first, all at the same time"),
    ],
)
def test_the_readme_says_how_to_roll_out(changes: dict[str, float], first: str) -> None:
    """Name the devices that come first, and an audit of counters that can be typed: the sample's finds H1."""
    sonic, nic, there = EXAMPLE / "config_db.json", EXAMPLE / "nic.txt", EXAMPLE / "counters"
    text = commands_of(sonic, read_ports(sonic)[0], read_nic(nic), changes).files["README.txt"]
    steps = text[text.index("How to go on:") :]
    assert first in steps
    line = next(line for line in steps.splitlines() if "fluidcc audit" in line)
    words = shlex.split(line[line.index("fluidcc") :])
    assert words[2:4] == [sonic.name, nic.name]
    known = {"config_db.json": sonic, "nic.txt": nic, "AFTER": there / "after", "BEFORE": there / "before"}
    assert run([*(str(known.get(word, word)) for word in words[1:]), "--packets", "0"]) == FAILED


def test_a_nic_alone_is_rolled_out_with_a_name_to_fill_in() -> None:
    found = commands_of(None, [], None, {"g": 1 / 64})
    assert "fluidcc audit config_db.json nic.txt --counters" in found.files["README.txt"]


def test_what_is_typed_says_what_gets_worse_and_which_ports_stay() -> None:
    """Catches a folder that is taken to another room without what the screen said of its setting."""
    path, said = EXAMPLE / "config_db.json", "Worse: goodput with web-search x0.889"
    every = read_ports(path)[0]
    named = read_ports(path, "Ethernet4")[0]
    stay = staying(every, named)
    assert "Ethernet0, Ethernet8" in stay[0]
    assert "Ethernet4," not in stay[0]
    assert staying(every, every) == []
    text = commands_of(path, named, None, {"kmin": 99e3, "g": 1 / 64}, [said, *stay]).files["README.txt"]
    assert said in text
    assert stay[0] in text
    assert "each host needs nic.sh" in text
    other = EXAMPLE.parents[1] / "tests" / "data" / "switches" / "eos.txt"
    typed = commands_of(other, read_ports(other)[0][:1], None, {"kmin": 99e3}, [said]).files["switch.txt"]
    assert typed.startswith(f"! {said}\n")
