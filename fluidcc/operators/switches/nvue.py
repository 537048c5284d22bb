"""NVIDIA's NVUE (Cumulus Linux): ``nv set`` commands, ``nv config show`` as YAML or JSON, ``nv show qos``'s table."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from fluidcc.operators.switches.description import (
    Curve,
    Description,
    Interface,
    Lines,
    Words,
    alone,
    bundled,
    mapped,
    names,
    numbers,
    shaped,
    unread,
    whole_percent,
)

WORDS = Words(
    "NVUE",
    lossless="nv set qos pfc PROFILE switch-priority {priority}, and nv set interface {port} qos pfc profile PROFILE",
    lossy="nv unset qos pfc PROFILE switch-priority {priority}, unless other traffic needs it",
    marking="; ".join(
        f"nv set qos congestion-control {{profile}} traffic-class {{queue}} {field}"
        for field in ("min-threshold {kmin}", "max-threshold {kmax}", "probability {pmax}", "ecn enable")
    )
    + "; nv set interface {port} qos congestion-control profile {profile}",
    watchdog="nv set interface {port} qos pfc-watchdog state enable",
    buffers="nv show interface {port} qos buffer",
    classify="nv set qos mapping default-global dscp DSCP switch-priority {priority}; "
    "nv set qos mapping default-global trust l3",
    counters="nv show interface INTERFACE counters qos",
    leave=("# Cumulus Linux before 5.9 keeps it at a reboot after nv config save only", "nv config apply"),
)
_SET = re.compile(r"^.*?\bnv set (.+?)\s*$", re.MULTILINE)
_COMMAND = re.compile(r"^.*?\bnv (set|unset) (.+?)\s*$", re.MULTILINE)
_LISTED = {"interface": names, "member": names, "switch-priority": numbers, "traffic-class": numbers, "dscp": numbers}
_BUFFERS = ("xoff-threshold", "xon-threshold", "port-buffer", "cable-length")  # of a PFC profile
_YAML = re.compile(r"^(- set:|set:)\s*$", re.MULTILINE)
_SHOW = re.compile(r".*\bnv show qos congestion-control (\S+)\s*")
_SHOWN = re.compile(r"^\s*traffic-class\s+ECN\s+RED\s+Min Th\s+Max Th\s+Probability\s*$", re.MULTILINE)
_ROW = re.compile(r"\s*(\d)\s+(\w+)\s+(\w+)\s+([\d.]+ ?\w*)\s+([\d.]+ ?\w*)\s+(\S+)\s*", re.ASCII)
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KM]?)i?B?", re.ASCII | re.IGNORECASE)
_KIB = {"": 1.0, "K": 1024.0, "M": 1024.0**2}  # as nv show writes them: 150000 B are 146.48 KB
_ON = ("enable", "enabled", "on", "true", "yes")
_EVERY = "default-global"
_NO_PAUSES = {
    "tx": "the switch never sends PAUSE here: what comes in by this port may be lost",
    "rx": "the switch obeys no PAUSE here: what it sends may be lost at the other end",
}
_UNKNOWN = "PROFILE"  # of a table without the command that shows it
# What "nv set qos roce" sets up (Cumulus Linux, Quality of Service): classes 0 and 3 mark, 3 is lossless, CNPs in 6.
_ROCE = Curve(150e3, 1500e3, 100.0, lines=Lines(missing="nv set qos roce names no congestion-control profile"))
_ROCE_FIELDS = {"ecn": "enable", "min-threshold": "150000", "max-threshold": "1500000", "probability": "100"}
_ROCE_QUEUE, _ROCE_DSCPS = 3, dict.fromkeys(range(64), 0) | {26: 3, 48: 6}


def recognises(text: str) -> bool:
    """Tell whether a text is of NVUE."""
    if text.lstrip()[:1] in ("{", "["):
        return ('"congestion-control"' in text or '"roce"' in text) and _document(text) is not None
    signs = "qos", "interface"
    by_line = any(line.split()[0] in signs for line in _SET.findall(text))
    return by_line or (_YAML.search(text) is not None and "qos:" in text) or _SHOWN.search(text) is not None


def read(text: str) -> Description:
    """Return the marking and pausing of each interface, from its profiles and the global ones."""
    found = Description()
    curves: dict[str, dict[int, dict[str, str]]] = {}
    pauses: dict[str, set[int]] = {}
    priorities: dict[str, dict[int, int]] = {}  # by DSCP, of mapping profiles
    trust: dict[str, str] = {}  # of mapping profiles
    shapes: dict[str, dict[int, str]] = {}  # lines by class, of egress-shaper profiles
    bonds: dict[str, Interface] = {}  # and other interfaces that are no ports
    members: dict[str, str] = {}  # bond by port
    queues: dict[int, int] = {}  # by priority, where it is not that of the same number
    profiles: dict[str, dict[str, str]] = {}
    roce: dict[str, str] = {}
    of_pfc: dict[str, dict[str, str]] = {}  # other settings of PFC's profiles
    for words in _statements(text):
        match words:
            case ["qos", "congestion-control", name, "traffic-class", classes, field, *value] if value:
                for each in numbers(classes):
                    curves.setdefault(name, {}).setdefault(each, {})[field] = " ".join(value)
            case ["qos", "congestion-control", _, "traffic-class", _, _]:
                found.doubts.append(f"`{' '.join(words)[:100]}` has no value")
            case ["qos", "pfc", name, "switch-priority", listed, *_]:
                pauses.setdefault(name, set()).update(each for each in numbers(listed) if each < 8)
            case ["qos", "pfc", name, ("tx" | "rx") as field, *value] if value:
                of_pfc.setdefault(name, {})[field] = value[0]
            case ["qos", "pfc", name, field, *value] if field in _BUFFERS and value:
                of_pfc.setdefault(name, {})[field] = " ".join(value)
            case ["qos", "mapping", name, "dscp", listed, "switch-priority", value]:
                found_here = dict.fromkeys(numbers(listed), int((numbers(value) or [0])[0]))
                priorities.setdefault(name, {}).update(found_here)
            case ["qos", "mapping", name, "trust", value]:
                trust[name] = value
            case ["qos", "egress-shaper", name, "traffic-class", classes, "max-rate", *_]:
                shapes.setdefault(name, {}).update(dict.fromkeys(numbers(classes), " ".join(words)))
            case ["qos", "egress-queue-mapping", _, "switch-priority", listed, "traffic-class", value]:
                queues |= dict.fromkeys(numbers(listed), (numbers(value) or [0])[0])
            case ["qos", "roce", *rest]:
                roce |= {rest[0]: rest[1]} if len(rest) == 2 else {"enable": "on"}
            case ["interface", listed, *rest]:
                for name in names(listed):
                    port = (found.interfaces if name.startswith("swp") else bonds).setdefault(name, Interface())
                    _take(port, profiles.setdefault(name, {}), rest)
                    if rest[:2] == ["bond", "member"] and rest[2:]:
                        members |= dict.fromkeys(names(rest[2]), name)
            case _:
                pass
    for name, bond in members.items():
        port, whole = found.interfaces.setdefault(name, Interface()), bonds.get(bond, Interface())
        profiles[name] = profiles.get(bond, {}) | profiles.get(name, {})
        port.mtu, port.up = port.mtu or whole.mtu, port.up and whole.up
        port.watchdog = whole.watchdog if port.watchdog is None else port.watchdog
    bundled(found, {name: each for name, each in bonds.items() if profiles[name]}, members.values())
    by_roce = roce.get("enable", "on" if roce else "off") in _ON
    if by_roce and (own := curves.get(_EVERY, {}).get(_ROCE_QUEUE)):
        curves[_EVERY][_ROCE_QUEUE] = _ROCE_FIELDS | own
        found.notes.append(f"qos congestion-control {_EVERY} traffic-class {_ROCE_QUEUE}: counts before qos roce")
    by_class = {name: _curves(found, name, each) for name, each in curves.items()}
    if by_roce:
        if _ROCE_QUEUE not in curves.get(_EVERY, {}):
            found.curves.setdefault("roce", _ROCE)
            by_class[_EVERY] = {_ROCE_QUEUE: "roce"} | by_class.get(_EVERY, {})
        if roce.get("mode", "lossless") == "lossless":
            pauses.setdefault(_EVERY, {_ROCE_QUEUE})
        priorities[_EVERY] = _ROCE_DSCPS | priorities.get(_EVERY, {})
        trust.setdefault(_EVERY, "both")
        found.notes.append(
            "qos roce is taken as Cumulus Linux sets it up: 150 and 1500 KB, 100 %, priority 3; class 0 marks alike, "
            "but carries no RoCE"
        )
    listed = bool(found.interfaces)
    mapped = _EVERY if listed else next(iter(priorities), _EVERY)
    alone(found)
    for name, port in found.interfaces.items():
        chosen = profiles.get(name, {})
        only = _EVERY if listed else next(iter(by_class), _EVERY)
        port.queues = dict(by_class.get(chosen.get("congestion-control", only), {}))
        profile = chosen.get("pfc", _EVERY)
        paused = pauses.get(profile, set[int]())
        port.pauses = {each: queues.get(each, each) for each in sorted(paused)}
        _obey(port, profile, of_pfc.get(profile, {}))
        _classify(port, chosen.get("mapping", mapped), priorities, trust, queues)
        for queue, line in shapes.get(chosen.get("egress-shaper", _EVERY), {}).items():
            shaped(port, queue, line, f"nv unset {' '.join(line.split()[:6])}")
        at = "nv set interface {port} qos"
        marking = any(found.curves[name].ecn for name in port.queues.values())
        if off := [each for each in _off(curves.get(chosen.get("congestion-control", only), {})) if not marking]:
            path = f"nv set qos congestion-control {chosen.get('congestion-control', only)}"
            port.typed["marking"] = f"{path} traffic-class {off[0]} ecn enable"
        elif profile := next((name for name, each in by_class.items() if each and not port.queues), ""):
            port.typed["marking"] = f"{at} congestion-control profile {profile}"
        if pausing := next((name for name, each in pauses.items() if each and not port.pauses), ""):
            port.typed["lossless"] = f"{at} pfc profile {pausing}"
        if not listed and not pauses:
            port.pauses = {queue: queue for queue in port.queues}
            found.notes.append("nothing is said of PFC: it is taken to be on for the priorities that are marked")
        elif listed and port.watchdog is None:
            port.watchdog = False
    found.dscps = _dscps(priorities.get(mapped, {}), queues)
    return found


def _dscps(priorities: dict[int, int], queues: dict[int, int]) -> dict[int, int]:
    """Return queue by DSCP."""
    return {dscp: queues.get(each, each) for dscp, each in priorities.items() if dscp < 64}


def _off(classes: dict[int, dict[str, str]]) -> list[int]:
    """Return the classes that have all but ECN."""
    return [queue for queue, fields in sorted(classes.items()) if fields.get("ecn", "enable") not in _ON]


def _classify(
    port: Interface,
    profile: str,
    priorities: dict[str, dict[int, int]],
    trust: dict[str, str],
    queues: dict[int, int],
) -> None:
    """Take a port's mapping profile: DSCPs decide where it trusts them, which none does by default."""
    here = profile in priorities or profile in trust
    if not here and priorities:
        given = next(iter(priorities))
        why, typed = (
            "not applied here, and by default DSCPs do",
            f"nv set interface {{port}} qos mapping profile {given}",
        )
        port.overrides.append((f"qos mapping {given}", f"{why} not decide on the queue", typed))
    elif here and trust.get(profile) not in ("l3", "both"):
        line = f"qos mapping {profile} trust {trust[profile]}" if profile in trust else f"qos mapping {profile}"
        why = "" if profile in trust else "no line of trust, of which l2 is the default: "
        typed = f"nv set qos mapping {profile} trust l3"
        port.overrides.append((line, f"{why}DSCPs do not decide on the queue here", typed))
    port.by_dscp = here and trust.get(profile) in ("l3", "both")
    port.dscps = _dscps(priorities.get(profile, {each: each // 8 for each in range(64)}), queues) if here else None


def _curves(found: Description, name: str, classes: dict[int, dict[str, str]]) -> dict[int, str]:
    """Return the names of a profile's curves by class."""
    made = {}
    for queue, fields in sorted(classes.items()):
        ends = _ends(fields)
        low, high = (_size(fields.get(end, "")) for end in ends)
        ecn = fields.get("ecn", "enable") in _ON
        if not ecn and fields.get("red", "disable") not in _ON:
            continue
        where = f"congestion-control {name} traffic-class {queue}"
        percent = whole_percent(fields.get("probability", "100"))
        if low is None or high is None or percent is None:
            found.notes.append(f"{where}: no two thresholds in bytes and whole percent")
            if ecn:
                made[queue] = f"{name}-{queue}"
                given = ", ".join(f"{field} {value}" for field, value in fields.items())
                found.curves[made[queue]] = unread(f"{where}: {given}")
            continue
        made[queue] = f"{name}-{queue}"
        if "ecn" not in fields:
            found.notes.append(f"{where}: no line of ecn: taken as enabled, the default")
        if "probability" not in fields:
            found.notes.append(f"{where}: no probability, taken as 100 %")
        missing = "the command above the table, which names the profile, is not in the file"
        typed = Lines(missing=missing) if name == _UNKNOWN else _lines(f"qos {where}", fields, ends)
        found.curves[made[queue]] = Curve(low, high, percent, ecn=ecn, lines=typed)
    return made


def _ends(fields: dict[str, str]) -> list[str]:
    """Return the names of both thresholds as they are given."""
    ends = ("min-threshold", "max-threshold")
    return [f"{end}-bytes" if f"{end}-bytes" in fields else end for end in ends]


def _lines(path: str, fields: dict[str, str], ends: list[str]) -> Lines:
    """Return how to type a class's marking; thresholds are set in bytes, however they were shown."""
    new = tuple(f"nv set {path} {field} {{{name}}}" for field, name in zip(ends, ("kmin", "kmax"), strict=True))
    sizes = {end: _size(fields[end]) or 0.0 for end in ends}
    rounded = () if all(fields[end].isdigit() for end in ends) else ("# thresholds as nv show rounds them",)
    before = f"set {path} probability {fields['probability']}" if "probability" in fields else ""
    back = (
        *(f"nv set {path} {end} {size:.0f}" for end, size in sizes.items()),
        f"nv {before or f'unset {path} probability'}",
    )
    return Lines((*new, f"nv set {path} probability {{pmax}}"), (*rounded, *back))


def _take(port: Interface, profiles: dict[str, str], words: list[str]) -> None:
    """Take a statement of an interface."""
    match words:
        case ["link", "speed", value] if found := re.match(r"(\d+)G", value, re.ASCII | re.IGNORECASE):
            port.speed = 1000.0 * int(found[1])
        case ["link", "mtu", value]:
            port.mtu = (numbers(value) or [None])[0]
        case ["link", "state", "down"] | ["link", "state", "down", *_]:
            port.up = False
        case ["qos", "pfc-watchdog", *rest]:
            port.watchdog = not any(word.startswith(("disable", "off")) for word in rest)
        case ["qos", kind, "profile", name]:
            profiles[kind] = name
        case _:
            pass


def _obey(port: Interface, profile: str, fields: dict[str, str]) -> None:
    """Take the settings of a port's PFC profile that are no priorities."""
    if not port.pauses:
        return
    for field, why in _NO_PAUSES.items():
        value = fields.get(field, "enable")
        if value not in _ON:
            path = f"qos pfc {profile} {field}"
            port.overrides.append((f"{path} {value}", why, f"nv set {path} enable"))
            port.sends_pause = port.sends_pause and field != "tx"
    port.buffers = [f"qos pfc {profile} {field} {fields[field]}" for field in _BUFFERS if field in fields]


def _size(text: str) -> float | None:
    match = _SIZE.fullmatch(text.strip())
    return float(match[1]) * _KIB[match[2].upper()] if match else None


def _statements(text: str) -> Iterator[list[str]]:
    """Yield the settings as words, whatever form they are in."""
    if text.lstrip()[:1] in ("{", "["):
        yield from _leaves([], _document(text))
    elif _SET.search(text):
        left: list[list[str]] = []
        for verb, line in _COMMAND.findall(text):
            for words in _each(line.split()):
                if verb == "set":
                    left.append(words)
                else:
                    left = [before for before in left if before[: len(words)] != words]
        yield from left
    elif _SHOWN.search(text):
        name = _UNKNOWN
        for line in text.splitlines():
            if match := _SHOW.fullmatch(line):
                name = match[1]
            elif match := _ROW.fullmatch(line):
                fields = ("ecn", "red", "min-threshold", "max-threshold", "probability")
                for field, value in zip(fields, match.groups()[1:], strict=True):
                    yield ["qos", "congestion-control", name, "traffic-class", match[1], field, value]
    else:
        for words in mapped(text):
            yield words[words.index("set") + 1 :] if "set" in words else words


def _each(words: list[str]) -> list[list[str]]:
    """Return a command of lists, such as ``interface swp1-4``, as one for each of their members."""
    found: list[list[str]] = [[]]
    for before, word in zip(["", *words], words, strict=False):
        members = _LISTED[before](word) if before in _LISTED else []
        found = [[*each, str(member)] for each in found for member in members or [word]]
    return found


def _document(text: str) -> Any:
    """Return what is in a text of JSON; None if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _leaves(above: list[str], value: Any) -> Iterator[list[str]]:
    """Yield the leaves of JSON with the keys above them, below ``set`` if there is one."""
    if isinstance(value, list):
        for each in value:
            yield from _leaves(above, each)
    elif isinstance(value, dict) and value:
        for key, each in value.items():
            yield from _leaves([] if key == "set" else [*above, key], each)
    else:
        yield above if value == {} else [*above, str(value)]
