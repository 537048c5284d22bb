"""NVIDIA's NVUE (Cumulus Linux): ``nv set`` commands, ``nv config show`` as YAML or JSON, ``nv show qos``'s table."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from fluidcc.operators.switches.blocks import mapped
from fluidcc.operators.switches.description import (
    Curve,
    Description,
    Interface,
    Words,
    alone,
    names,
    numbers,
    unread,
    whole_percent,
)

WORDS = Words(
    "NVUE",
    lossless="nv set qos pfc PROFILE switch-priority {priority}, and nv set interface {port} qos pfc profile PROFILE",
    marking="nv set qos congestion-control PROFILE traffic-class {queue} min-threshold {kmin}, max-threshold {kmax}, "
    "probability {pmax} and ecn enable; nv set interface {port} qos congestion-control profile PROFILE",
    watchdog="nv set interface {port} qos pfc-watchdog state enable",
    buffers="nv show interface {port} qos buffer",
    counters="nv show interface INTERFACE counters qos",
)
_SET = re.compile(r"^.*?\bnv set (.+?)\s*$", re.MULTILINE)
_YAML = re.compile(r"^(- set:|set:)\s*$", re.MULTILINE)
_SHOWN = re.compile(r"^\s*traffic-class\s+ECN\s+RED\s+Min Th\s+Max Th\s+Probability\s*$", re.MULTILINE)
_ROW = re.compile(r"\s*(\d)\s+(\w+)\s+(\w+)\s+([\d.]+ ?\w*)\s+([\d.]+ ?\w*)\s+(\S+)\s*", re.ASCII)
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KM]?)i?B?", re.ASCII | re.IGNORECASE)
_KIB = {"": 1.0, "K": 1024.0, "M": 1024.0**2}  # as nv show writes them: 150000 B are 146.48 KB
_ON = ("enable", "enabled", "on", "true", "yes")
_EVERY = "default-global"
# What "nv set qos roce" sets up (Cumulus Linux, Quality of Service): classes 0 and 3 mark, 3 is lossless, CNPs in 6.
_ROCE = Curve(150e3, 1500e3, 100.0)
_ROCE_MARKS, _ROCE_LOSSLESS, _ROCE_DSCPS = (0, 3), 3, {26: 3, 48: 6}


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
    priorities: dict[int, int] = {}  # by DSCP
    queues: dict[int, int] = {}  # by priority, where it is not that of the same number
    profiles: dict[str, dict[str, str]] = {}
    roce: dict[str, str] = {}
    for words in _statements(text):
        match words:
            case ["qos", "congestion-control", name, "traffic-class", classes, field, value]:
                for each in numbers(classes):
                    curves.setdefault(name, {}).setdefault(each, {})[field.removesuffix("-bytes")] = value
            case ["qos", "pfc", name, "switch-priority", listed, *_]:
                pauses.setdefault(name, set()).update(each for each in numbers(listed) if each < 8)
            case ["qos", "mapping", _, "dscp", listed, "switch-priority", value]:
                priorities |= dict.fromkeys(numbers(listed), int((numbers(value) or [0])[0]))
            case ["qos", "egress-queue-mapping", _, "switch-priority", listed, "traffic-class", value]:
                queues |= dict.fromkeys(numbers(listed), (numbers(value) or [0])[0])
            case ["qos", "roce", *rest]:
                roce |= {rest[0]: rest[1]} if len(rest) == 2 else {"enable": "on"}
            case ["interface", listed, *rest]:
                for name in names(listed):
                    if name.startswith("swp"):
                        port = found.interfaces.setdefault(name, Interface())
                        _take(port, profiles.setdefault(name, {}), rest)
            case _:
                pass
    by_class = {name: _curves(found, name, each) for name, each in curves.items()}
    if roce.get("enable", "on" if roce else "off") in _ON:
        found.curves.setdefault("roce", _ROCE)
        by_class[_EVERY] = dict.fromkeys(_ROCE_MARKS, "roce") | by_class.get(_EVERY, {})
        if roce.get("mode", "lossless") == "lossless":
            pauses.setdefault(_EVERY, {_ROCE_LOSSLESS})
        priorities = _ROCE_DSCPS | priorities
        found.notes.append("qos roce is taken as Cumulus Linux sets it up: 150 and 1500 KB, 100 %, priority 3")
    listed = bool(found.interfaces)
    alone(found)
    for name, port in found.interfaces.items():
        chosen = profiles.get(name, {})
        only = _EVERY if listed else next(iter(by_class), _EVERY)
        port.queues = dict(by_class.get(chosen.get("congestion-control", only), {}))
        paused = pauses.get(chosen.get("pfc", _EVERY), set[int]())
        port.pauses = {each: queues.get(each, each) for each in sorted(paused)}
        if not listed and not pauses:
            port.pauses = {queue: queue for queue in port.queues}
            found.notes.append("nothing is said of PFC: it is taken to be on for the priorities that are marked")
        elif listed and port.watchdog is None:
            port.watchdog = False
    found.dscps = {dscp: queues.get(each, each) for dscp, each in priorities.items() if dscp < 64}
    return found


def _curves(found: Description, name: str, classes: dict[int, dict[str, str]]) -> dict[int, str]:
    """Return the names of a profile's curves by class."""
    made = {}
    for queue, fields in sorted(classes.items()):
        low, high = (_size(fields.get(f"{end}-threshold", "")) for end in ("min", "max"))
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
        if "probability" not in fields:
            found.notes.append(f"{where}: no probability, taken as 100 %")
        found.curves[made[queue]] = Curve(low, high, percent, ecn=ecn)
    return made


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
            port.watchdog = "disable" not in rest
        case ["qos", kind, "profile", name]:
            profiles[kind] = name
        case _:
            pass


def _size(text: str) -> float | None:
    match = _SIZE.fullmatch(text.strip())
    return float(match[1]) * _KIB[match[2].upper()] if match else None


def _statements(text: str) -> Iterator[list[str]]:
    """Yield the settings as words, whatever form they are in."""
    if text.lstrip()[:1] in ("{", "["):
        yield from _leaves([], _document(text))
    elif _SET.search(text):
        for line in _SET.findall(text):
            yield line.split()
    elif _SHOWN.search(text):
        for line in text.splitlines():
            if match := _ROW.fullmatch(line):
                fields = ("ecn", "red", "min-threshold", "max-threshold", "probability")
                for field, value in zip(fields, match.groups()[1:], strict=True):
                    yield ["qos", "congestion-control", _EVERY, "traffic-class", match[1], field, value]
    else:
        for words in mapped(text):
            yield words[words.index("set") + 1 :] if "set" in words else words


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
