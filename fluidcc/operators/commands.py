"""Commands for a setting: a patch of the switch's configuration and lines for the NIC, with the undo.

Nothing is applied here. The switch's part is a JSON patch (RFC 6902) for SONiC's ``config apply-patch``, and, where a
profile is changed in place, the ``ecnconfig`` line that does the same; of other systems it is lines to paste. The
NIC's is ``mlxconfig`` lines with raw register values, which hold from the next reset on, and writes to the driver's
files, which hold until then.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fluidcc.errors import InputError
from fluidcc.files import write_atomically
from fluidcc.operators.config_db import ConfigDB
from fluidcc.operators.dialect import BACK, NEW, files_of, in_order, threshold_text
from fluidcc.operators.nvidia import NicSettings
from fluidcc.operators.nvidia_settings import REGISTERS, SETTINGS, registers_of
from fluidcc.operators.ports import PortGroup
from fluidcc.operators.sonic import SwitchPort, threshold_fields
from fluidcc.operators.switches import SONIC
from fluidcc.operators.switches.description import Words
from fluidcc.operators.thresholds import most
from fluidcc.surface import constructor, public
from fluidcc.units import SIZE, show

# -- a change of a document, and the patch that takes it back ----------------------------------------------


Patch = list[dict[str, Any]]


class Patcher:
    """Collects changes of a document of tables, entries and fields.

    Parameters
    ----------
    tables : dict
        The document; it is not changed.
    root : str
        Pointer of the document within the switch's configuration; empty but for one of several ASICs.

    Attributes
    ----------
    patch, undo : list of dict
        Operations; those of ``undo`` take the others back, applied in their order.
    """

    def __init__(self, tables: dict[str, Any], root: str = "") -> None:
        self._tables, self._root = tables, root
        self._made: dict[str, dict[str, Any]] = {}
        self.patch: Patch = []
        self.undo: Patch = []

    def field(self, table: str, key: str, name: str, value: str) -> None:
        """Set a field of an entry that there is."""
        entry, path = self._tables[table][key], self._root + pointer(table, key, name)
        if name not in entry:
            self._add({"op": "add", "path": path, "value": value}, {"op": "remove", "path": path})
        elif entry[name] != value:
            back = {"op": "replace", "path": path, "value": entry[name]}
            self._add({"op": "replace", "path": path, "value": value}, back)

    def new(self, table: str, key: str, entry: dict[str, Any]) -> None:
        """Add an entry; one that there is keeps its other fields."""
        path = self._root + pointer(table, key)
        present = self._made.get(path, self._tables.get(table, {}).get(key))
        back = {"op": "remove", "path": path}
        if present is not None:
            back = {"op": "replace", "path": path, "value": present}
        self._made[path] = (present or {}) | entry
        op = "add" if present is None else "replace"
        self._add({"op": op, "path": path, "value": self._made[path]}, back)

    def drop(self, table: str, key: str) -> None:
        """Remove an entry."""
        path = self._root + pointer(table, key)
        self._add({"op": "remove", "path": path}, {"op": "add", "path": path, "value": self._tables[table][key]})

    def _add(self, there: dict[str, Any], back: dict[str, Any]) -> None:
        self.patch.append(there)
        self.undo.insert(0, back)


def pointer(*parts: str) -> str:
    """A JSON pointer (RFC 6901)."""
    return "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in parts)


# -- files of commands -------------------------------------------------------------------------------------


THRESHOLDS = ("kmin", "kmax", "pmax")
FILES = {  # by name, and what for
    "patch.json": "the switch: config apply-patch patch.json, then config save",
    "undo.json": "the way back: config apply-patch undo.json, then config save",
    "ecnconfig.txt": "the switch, by hand in place of the patch",
    NEW: "the switch: paste it at its prompt; comments say what is left to do",
    BACK: "the way back: paste it likewise",
    "nic.sh": "the NIC: DEVICE=... INTERFACE=... sh nic.sh, as root, on each host",
    "nic-undo.sh": "the way back",
}
README = "README.txt"
_ROLLOUT = """How to go on:
1. {first}. Before it, and after some hours of the usual load, read the counters of the switch and its hosts:
{counters}
2. Export the switch's and the NIC's settings again, as they are now, and compare:
   fluidcc audit {sources} --counters AFTER --before BEFORE --fail-on bad
   {compared}
3. Stop if a lossless queue drops, a PFC watchdog fires, out_of_sequence grows, more PAUSEs are sent for as many bytes
   than before, or jobs take longer than before, beyond what the report says of its trial.
4. The way back {back}; then read the counters again.
5. Else the other racks one by one, {last}.
"""
_COMPARED = "It says what the counters contradict: losses, PAUSEs without marks, marks that no NIC answers."
_COMPARED_HOSTS = "It reads the hosts' counters; those of {} compare by eye: losses, PAUSEs without marks."
_RECEIVER = ("min_time_between_cnps",)  # of the notification point; all others are the reaction point's


@constructor()
@dataclasses.dataclass(frozen=True)
class Commands:
    """Commands for a setting, and their undo.

    Parameters
    ----------
    patch, undo : list of dict
        JSON patches of the switch's configuration; empty if nothing changes there.
    registers : dict of int
        Raw values of the NIC's settings that change.
    before : dict of int
        Their present values: from the NIC's file, or NVIDIA's defaults.
    files : dict of str
        Texts by file name, as `write` writes them.
    notes : tuple of str
        What to know: resets, profiles that had to be split, values that were rounded.
    """

    patch: Patch
    undo: Patch
    registers: dict[str, int]
    before: dict[str, int]
    files: dict[str, str]
    notes: tuple[str, ...]

    @public()
    def write(self, folder: str | Path) -> list[Path]:
        """Write the files, each whole or not at all.

        Parameters
        ----------
        folder : str or Path
            Made if it is not there.

        Returns
        -------
        list of Path

        Raises
        ------
        InputError
            If the folder or a file cannot be written.
        """
        target = Path(folder)
        try:
            target.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{folder}: {error.strerror}; give a folder that can be written to") from None
        return [write_atomically(target / name, text.encode()) for name, text in self.files.items()]


def commands_of(
    sonic: str | os.PathLike[str] | None,
    groups: Sequence[PortGroup],
    nic: NicSettings | None,
    changes: Mapping[str, float],
    said: Sequence[str] = (),
) -> Commands:
    """Return the commands for some changes.

    Parameters
    ----------
    sonic : path or None
        The switch's ``config_db.json``; None changes nothing there.
    groups : sequence of PortGroup
        Ports and queues to change, profile by profile.
    nic : NicSettings or None
        The NIC's present settings; None: NVIDIA's defaults.
    changes : mapping
        Values in SI of the model's parameters: ``kmin``, ``kmax``, ``pmax``, and those of `REGISTERS`.
    said : sequence of str
        What is known of the setting, such as what gets worse: it stands in what is typed too.

    Returns
    -------
    Commands

    Raises
    ------
    InputError
        If a name is unknown, a register's range is too small, or the queue has no profile to change.
    """
    unknown = [name for name in changes if name not in (*THRESHOLDS, *REGISTERS)]
    if unknown:
        raise InputError(
            f"changes: {unknown[0]} is no setting of a switch or a NIC; give {', '.join((*THRESHOLDS, *REGISTERS))}"
        )
    wrong = next((name for name, value in changes.items() if not math.isfinite(value)), None)
    if wrong is not None:
        raise InputError(f"{wrong}: {changes[wrong]} is nothing that can be typed; give a finite value")
    notes = [*said]
    patch, undo, files = _switch(sonic, groups, changes, notes) if sonic is not None else ([], [], {})
    given = nic.given if nic is not None else {}
    present = {name: int(given.get(name, SETTINGS[name].default)) for name in SETTINGS}
    # What is stored for the next boot may be another value than what runs now.
    stored = present | {name: int(then) for name, (_, then) in (nic.pending if nic is not None else {}).items()}
    wanted = registers_of(changes, notes)
    registers = {name: raw for name, raw in wanted.items() if raw != present[name] or raw != stored[name]}
    before = {name: present[name] for name in registers}
    assumed = [name for name in registers if name not in given]
    if assumed:
        notes.append(f"not in the NIC's file, taken as NVIDIA's defaults for the way back: {', '.join(assumed)}")
    if registers:
        notes.append(
            "mlxconfig holds from the next reset on (mlxfwreset, or a power cycle), the driver's files until then: "
            "nic.sh does both"
        )
        notes.append("each host needs nic.sh: a NIC's settings hold for all that it sends, also to ports that stay")
        stored = {name: stored[name] for name in registers}
        files |= {"nic.sh": _script(registers, registers, "apply"), "nic-undo.sh": _script(stored, before, "take back")}
    if files:
        switch = "config_db.json" if sonic is None else shlex.quote(Path(sonic).name)
        system = SONIC if sonic is None else ConfigDB(sonic, groups[0].switch.asic or None).system
        if NEW in files:
            files[NEW] = "".join(f"{system.comment} {line}\n" for line in said) + files[NEW]
        files[README] = _readme(files, notes, f"{switch} nic.txt", system)
    return Commands(patch, undo, registers, before, files, tuple(notes))


def _switch(
    sonic: str | os.PathLike[str], groups: Sequence[PortGroup], changes: Mapping[str, float], notes: list[str]
) -> tuple[Patch, Patch, dict[str, str]]:
    """Return the patch, its inverse, and files, over all ASICs and profiles that the ports are of."""
    patch: Patch = []
    undo: Patch = []
    lines: list[str] = []
    wanted = {name: changes[name] for name in THRESHOLDS if name in changes}
    if not wanted or not groups:
        return patch, undo, {}
    by_hand = True  # as long as each part of the patch has such lines
    places: dict[tuple[str, str], list[PortGroup]] = {}
    for group in groups:
        places.setdefault((group.switch.asic, group.switch.profile), []).append(group)
    first = ConfigDB(sonic, groups[0].switch.asic or None)
    for (asic, _), alike in places.items():
        _check(first.name, alike[0].switch, wanted, notes)
        if first.is_sonic:
            config = ConfigDB(sonic, asic or None)
            root = pointer(config.asic) if config.asic else ""  # also where only one of several has ports
            there, back, typed = _profile(config, alike, root, wanted, notes)
            patch, undo, by_hand = [*patch, *there], [*back, *undo], by_hand and (bool(typed) or not there)
            lines += [f"{line} -n {asic}" if asic and "ecnconfig" in line else line for line in typed]
    if not first.is_sonic:
        return patch, undo, files_of(first, groups, wanted, notes)
    files = {"patch.json": _json(patch), "undo.json": _json(undo)} if patch else {}
    return patch, undo, files | ({"ecnconfig.txt": "\n".join([*lines, ""])} if by_hand and lines else {})


def _check(name: str, switch: SwitchPort, wanted: Mapping[str, float], notes: list[str]) -> None:
    """Refuse a queue without a profile, and note thresholds that it never reaches."""
    if not switch.profile:
        raise InputError(
            f"{name}: queue {switch.queue} of {switch.name} has no WRED profile to change; "
            "turn ECN on first, as the audit says"
        )
    limit = most(switch)
    above = [each for each in ("kmin", "kmax") if limit is not None and wanted.get(each, 0) > limit]
    if above and limit is not None:
        notes.append(f"{' and '.join(above)}: more than the {show(limit, SIZE)} that the queue may hold: never reached")


def _profile(
    config: ConfigDB, groups: Sequence[PortGroup], root: str, wanted: Mapping[str, float], notes: list[str]
) -> tuple[Patch, Patch, list[str]]:
    """Return the patch, its inverse and lines to type for the ports of one profile of an ASIC."""
    profile = groups[0].switch.profile
    entry = config.needed("WRED_PROFILE", profile, "the ports that are meant")
    names = threshold_fields(entry)
    texts = {names[name]: threshold_text(name, value, notes) for name, value in wanted.items()}
    low, high = (float((entry | texts).get(names[name], "nan")) for name in ("kmin", "kmax"))
    in_order(low, high)
    meant = {(port, group.switch.queue) for group in groups for port in group.names}
    if len(meant) > 1:
        notes.append(_changed(profile, meant))
    patcher, shared = Patcher(config.tables, root), _others(config, profile, meant)
    if not shared:
        for name, text in texts.items():
            patcher.field("WRED_PROFILE", profile, name, text)
        options = {"kmin": "-gmin", "kmax": "-gmax", "pmax": "-gdrop"}
        plain = all(names[name].startswith("green_") and "ect" not in names[name] for name in wanted)
        arguments = " ".join(f"{options[name]} {texts[names[name]]}" for name in wanted)
        back = " ".join(f"{options[name]} {entry[names[name]]}" for name in wanted if names[name] in entry)
        lines = [
            "# the same by hand, at once but not saved (config save keeps it):",
            f"ecnconfig -p {profile} {arguments}",
            f"# back: ecnconfig -p {profile} {back}",
        ]
        return patcher.patch, patcher.undo, lines if plain and patcher.patch else []
    new = _free_name(config, f"{profile}_{_speed(groups[0].switch.rate)}")
    patcher.new("WRED_PROFILE", new, entry | texts)
    _point_to(config, patcher, profile, new, meant)
    notes.append(
        f"{profile} also serves {', '.join(f'{port}|{queue}' for port, queue in shared[:4])}"
        + (f" and {len(shared) - 4} more" if len(shared) > 4 else "")
        + f": the ports that are meant get a profile of their own, {new}"
    )
    return patcher.patch, patcher.undo, []


def _changed(profile: str, meant: set[tuple[str, int]]) -> str:
    """Describe on which ports and queues a profile's change takes effect."""
    ports, queues = sorted({port for port, _ in meant}), sorted({queue for _, queue in meant})
    listed = ", ".join(ports[:4]) + (", ..." if len(ports) > 4 else "")
    who = "1 port that marks" if len(ports) == 1 else f"{len(ports)} ports that mark"
    return f"changes {who} by {profile} ({listed}), queues {', '.join(map(str, queues))}"


def _others(config: ConfigDB, profile: str, meant: set[tuple[str, int]]) -> list[tuple[str, int]]:
    """Ports and queues that have the profile and are not meant."""
    found = []
    for port, ranges in config.ranges("QUEUE").items():
        for first, last, fields in ranges:
            named = config.reference(fields.get("wred_profile"), "WRED_PROFILE", f"QUEUE|{port}|{first} wred_profile")
            found += [(port, q) for q in range(first, last + 1) if named == profile and (port, q) not in meant]
    return found


def _point_to(config: ConfigDB, patcher: Patcher, profile: str, new: str, meant: set[tuple[str, int]]) -> None:
    """Have the queues that are meant, and no others, name the new profile; entries of both are split."""
    for row in config.rows("QUEUE"):
        key, fields, before = row.key, row.fields, "".join(f"{each}|" for each in row.before)
        named = config.reference(fields.get("wred_profile"), "WRED_PROFILE", f"QUEUE|{key} wred_profile")
        if named != profile:
            continue
        pairs = [(port, queue) for port in row.ports for queue in range(row.first, row.last + 1)]
        ours = [pair for pair in pairs if pair in meant]
        old = str(fields["wred_profile"])
        text = f"[WRED_PROFILE|{new}]" if old.strip().startswith("[") else new
        if len(ours) == len(pairs):
            patcher.field("QUEUE", key, "wred_profile", text)
        elif ours:
            patcher.drop("QUEUE", key)
            for port, queue in pairs:
                one = fields | ({"wred_profile": text} if (port, queue) in meant else {})
                patcher.new("QUEUE", f"{before}{port}|{queue}", one)


def _free_name(config: ConfigDB, name: str) -> str:
    known, number, found = config.table("WRED_PROFILE", needed=False), 2, name
    while found in known:
        found, number = f"{name}_{number}", number + 1
    return found


def _speed(rate: float) -> str:
    return f"{round(rate * 8 / 1e9)}G"


def _json(patch: Patch) -> str:
    return json.dumps(patch, indent=2) + "\n"


def _script(stored: Mapping[str, int], running: Mapping[str, int], what: str) -> str:
    """Shell lines for one NIC: what survives a reset, and what holds now."""
    fields = " ".join(f"{name.upper()}_P${{NIC_PORT}}={raw}" for name, raw in stored.items())
    driver = [
        f'echo {raw} > "/sys/class/net/${{INTERFACE}}/ecn/roce_{"np" if name in _RECEIVER else "rp"}/{name}"'
        for name, raw in running.items()
    ]
    return "\n".join(
        [
            "#!/bin/sh",
            f"# To {what} the NIC's settings; read it, then run it as root on each host.",
            "set -eu",
            ': "${DEVICE:?the NIC, such as 0000:3b:00.0}" "${INTERFACE:?its network interface, such as ens1f0}"',
            ': "${NIC_PORT:=1}"',
            '# From the next reset on (mlxfwreset -d "$DEVICE" reset, or a power cycle):',
            f'mlxconfig -y -d "$DEVICE" set {fields}',
            "# At once, until the next reset; where the driver has no such files, they are cc_params of its debugfs:",
            *driver,
            "",
        ]
    )


def _readme(files: Mapping[str, str], notes: Sequence[str], sources: str, system: Words) -> str:
    """Say what each file is for, what to know, and how to roll it out."""
    lines = ["What to type. Nothing here has been applied.", ""]
    lines += [f"{name:14} {text}" for name, text in FILES.items() if name in files]
    lines += ["", *notes] if notes else []
    first = "One rack first: its switch, and its hosts' NICs at the same time"
    last = "and the switches above when all racks have it"
    if "nic.sh" not in files:
        first = "One rack's switch first"
    elif not {"patch.json", NEW} & files.keys():
        first, last = "The hosts of one rack first, all at the same time: old and new NICs share unfairly", "all hosts"
    told = _COMPARED if system.system == SONIC.system else _COMPARED_HOSTS.format(system.system)
    shown = [*system.counters.split(", "), "ethtool -S INTERFACE and rdma statistic, on each host"]
    there = {"undo.json", BACK, "nic-undo.sh"} & files.keys()
    back = "is above, and holds at once" if there else "is what you exported: set it again by hand"
    words = {"back": back, "counters": "\n".join(f"   {each}" for each in shown), "compared": told}
    return "\n".join([*lines, "", _ROLLOUT.format(first=first, last=last, sources=sources, **words)])


def as_dict(found: Commands) -> dict[str, Any]:
    """Return keys as in JSON."""
    return {
        "patch": found.patch,
        "undo": found.undo,
        "registers": found.registers,
        "before": found.before,
        "notes": list(found.notes),
    }
