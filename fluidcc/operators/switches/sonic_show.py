"""SONiC's ``show ecn``, ``show pfc priority`` and ``show interfaces status``: one file may hold several."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fluidcc.errors import InputError
from fluidcc.operators.switches.description import (
    Curve,
    Description,
    Interface,
    Lines,
    Words,
    alone,
    numbers,
    unread,
    whole_percent,
)

WORDS = Words(
    "SONiC",
    lossless="config interface pfc priority {port} {priority} on",
    lossy="config interface pfc priority {port} {priority} off, unless other traffic needs it",
    marking="ecnconfig -p {profile} -gmin {kmin} -gmax {kmax} -gdrop {pmax}, with the profile at queue {queue}",
    watchdog="config pfcwd start --action drop {port} 200 --restoration-time 200",
    buffers="show buffer information, or hand over the whole config_db.json",
    ecn=(
        "sonic-db-cli CONFIG_DB hset 'WRED_PROFILE|{profile}' ecn ecn_all (ecnconfig changes thresholds alone)",
        "ecnconfig -q {queue} on",
    ),
    green="sonic-db-cli CONFIG_DB hset 'WRED_PROFILE|{profile}' wred_green_enable true",
    leave=("# to keep it at a reboot: config save",),
)
_PROFILE = re.compile(r"\s*Profile:\s*(\S+)\s*")
_PRIORITIES = re.compile(r"\s*Interface\s+Lossless priorities\s*", re.IGNORECASE)
_STATUS = re.compile(r"\s*Interface\b.*\bSpeed\b.*", re.IGNORECASE)
_FIELD = re.compile(
    r"\s*((?:green|yellow|red)_(?:min_threshold|max_threshold|drop_probability)|ecn|wred_\w+_enable):?\s+(\S+)\s*"
)
_NAME = r"\s*((?!PortChannel|Vlan|Loopback)[A-Za-z][\w/-]*\d[\w/-]*)"  # of a port, or its alias
_QUEUE = re.compile(r"^\s*queue (\d): (on|off)\s*$", re.MULTILINE | re.IGNORECASE)  # of ecnconfig -q
_SPEED = re.compile(r"(\d+(?:\.\d+)?)([MG])", re.ASCII)
_USUAL = 3  # of SONiC's own templates, where nothing says which queue has the profile


def recognises(text: str) -> bool:
    """Tell whether a text is of these commands."""
    return any(_PROFILE.fullmatch(line) or _PRIORITIES.fullmatch(line) for line in text.splitlines())


def read(text: str) -> Description:
    """Return the profiles, and for each port that is listed its lossless priorities.

    The commands do not say which queue has which profile: the lossless ones are taken to have the one that is named
    so, or else the first that marks.

    Raises
    ------
    InputError
        If there is no profile, a threshold is no number, a probability no whole percent, profiles of one name differ,
        or a row of a table is cut.
    """
    found, profiles = Description(), _profiles(text)
    if not profiles:
        raise InputError("show pfc alone says nothing of marking; put what show ecn prints into the same file")
    for name, fields in profiles.items():
        lacking = [each for each in ("green_min_threshold", "green_max_threshold") if each not in fields]
        if lacking and fields.get("ecn", "ecn_all") in ("ecn_all", "ecn_green", "ecn_green_yellow", "ecn_green_red"):
            found.curves[name] = unread(f"Profile: {name}, without {' and '.join(lacking)}")
        if "green_min_threshold" in fields and "green_max_threshold" in fields:
            low, high = (_bytes(fields, name, f"green_{end}_threshold") for end in ("min", "max"))
            said, mode = fields.get("green_drop_probability", "100"), fields.get("ecn", "ecn_none")
            if (percent := whole_percent(said)) is None:
                raise InputError(
                    f"Profile: {name[:40]}: green_drop_probability {said[:40]!r} is out of range; write percent, a "
                    "whole number from 0 to 100"
                )
            new, back = (
                f"ecnconfig -p {name} -gmin {kmin} -gmax {kmax} -gdrop {pmax}"
                for kmin, kmax, pmax in (("{kmin}", "{kmax}", "{pmax}"), (f"{low:.0f}", f"{high:.0f}", said))
            )
            unsaid = f"# show ecn does not say which queues have {name}: see QUEUE in config_db.json"
            marks, enabled = "all" in mode or "green" in mode, fields.get("wred_green_enable")
            green = None if enabled is None else enabled == "true"
            found.curves[name] = Curve(low, high, percent, ecn=marks, lines=Lines((unsaid, new), (back,)), green=green)
    for name, priorities in _table(text, _PRIORITIES):
        found.interfaces[name] = Interface(pauses={each: each for each in numbers(priorities) if each < 8})
    listed = bool(found.interfaces)
    asymmetric = re.search(r"^\s*Interface\b.*\bAsym PFC\s*$", text, re.MULTILINE) is not None
    admin_first = re.search(r"^\s*Interface\b.*\bAdmin\b.*\bOper\b", text, re.MULTILINE) is not None
    for name, rest in _table(text, _STATUS):
        port = found.interfaces.get(name) or (Interface() if not listed else None)
        if port is None and re.search(r"\bup\s+up\b", rest):
            found.doubts.append(
                f"show interfaces status lists {name}, and show pfc priority, which lists all, does not"
            )
        speed, states = _SPEED.search(rest), re.findall(r"\b(?:up|down)\b", rest)
        states = states[::-1] if admin_first else states
        if port is not None and speed:
            found.interfaces[name] = port
            port.speed = float(speed[1]) * (1000 if speed[2] == "G" else 1)
            port.up = states[1:2] != ["down"]  # the operational state goes before the administrative one
            port.asymmetric = asymmetric and rest.split()[-1] == "on"
    likely = [name for name in found.curves if "lossless" in name.lower()] or [*found.curves]
    marking = next((name for name in likely if found.curves[name].ecn), next(iter(likely), None))
    if not listed:
        alone(found)
        for port in found.interfaces.values():
            port.pauses = {_USUAL: _USUAL}
        found.notes.append(f"PFC is taken to be on for priority {_USUAL}: add the output of show pfc priority")
    if marking is not None:
        off = {int(queue) for queue, state in _QUEUE.findall(text) if state.lower() == "off"}
        for port in found.interfaces.values():
            port.queues = dict.fromkeys(sorted({*port.pauses.values()} - off), marking)
        found.notes.append(
            f"show ecn does not say which queues have which profile: the lossless ones are taken to have {marking}"
        )
    return found


def _bytes(fields: dict[str, str], profile: str, name: str) -> float:
    if re.fullmatch(r"\d{1,13}", fields[name], re.ASCII) is None:
        raise InputError(f"Profile: {profile[:40]}: {name}: {fields[name][:40]!r} is not a number; write bytes")
    return float(fields[name])


def _profiles(text: str) -> dict[str, dict[str, str]]:
    """Return the fields of each profile."""
    found: dict[str, dict[str, str]] = {}
    fields: dict[str, str] = {}
    for line in text.splitlines():
        if match := _PROFILE.fullmatch(line):
            fields = found.setdefault(match[1], {})
        elif (match := _FIELD.fullmatch(line)) and fields.setdefault(match[1], match[2]) != match[2]:
            raise InputError(
                f"{match[1]} is {match[2][:40]} here and {fields[match[1]][:40]} before, in profiles of one name: give "
                "each ASIC's output (-n) in a file of its own"
            )
    return found


def _table(text: str, header: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """Yield port and the rest of each row below a header."""
    within = False
    for line in text.splitlines():
        if header.fullmatch(line):
            within = True
        elif within and line.startswith("-"):
            continue
        elif within and (match := re.fullmatch(rf"{_NAME}\s*", line)):
            raise InputError(f"the row of {match[1][:40]} has nothing behind the name: the text is cut; give all of it")
        elif within and (match := re.fullmatch(rf"{_NAME}\s+(.*?)\s*", line)):
            yield match[1], match[2]
        elif within and line.strip():
            within = False
