"""Arista EOS: ``show running-config``, with QoS profiles or with the same commands at interfaces."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fluidcc.operators.switches.blocks import indented
from fluidcc.operators.switches.description import (
    Curve,
    Description,
    Interface,
    Lines,
    Words,
    alone,
    amount,
    code_points,
    names,
    random_detect,
    unread,
    whole_percent,
)

WORDS = Words(
    "Arista EOS",
    lossless="priority-flow-control on, and priority-flow-control priority {priority} no-drop",
    marking="random-detect ecn minimum-threshold {kmin} bytes maximum-threshold {kmax} bytes max-mark-probability "
    "{pmax} at tx-queue {queue}",
    watchdog="priority-flow-control pause watchdog action drop, with a timeout",
    buffers="show qos interfaces {port}, show priority-flow-control",
    counters="show interfaces counters queue, show priority-flow-control counters, "
    "show qos interfaces ecn counters queue",
    comment="!",
    enter=("configure terminal",),
    leave=("end", "! to keep it at a reboot: copy running-config startup-config"),
)
_SEGMENT = {"segment": 208.0}  # bytes of a cell of Trident and Tomahawk, which EOS counts
_SIGNS = re.compile(
    r"^\s*(random-detect ecn minimum-threshold\b.*|qos profile \S+|priority-flow-control priority \d no-drop|"
    r"qos map dscp .*|service-profile \S+)\s*$",
    re.MULTILINE,
)
_QUEUE = re.compile(r"(?:class\s+)?(?:uc-)?tx-queue (\d+)", re.ASCII)
_MARKS = re.compile(
    r"random-detect ecn minimum-threshold (\d+)\s*([a-z]*) maximum-threshold (\d+)\s*([a-z]*).*",
    re.ASCII,
)
_PERCENT = re.compile(r"max-mark-probability (\S+)")
_SPEED = re.compile(r"speed (?:forced |auto )?(\d+)g.*", re.ASCII | re.IGNORECASE)
_DSCPS = re.compile(r"qos map dscp (.+?) to traffic-class (\d+).*", re.ASCII)
_QUEUE_OF = re.compile(r"qos map traffic-class (.+?) to (?:uc-)?tx-queue (\d+)", re.ASCII)
_WATCHDOG = re.compile(r"(no )?priority-flow-control (?:pause )?watchdog\b(.*)")
_ACTIONS = {"notify-only": "alert", "errdisable": "drop", "drop": "drop", "forward": "forward"}


def recognises(text: str) -> bool:
    """Tell whether a text is of EOS."""
    return _SIGNS.search(text) is not None


def read(text: str) -> Description:
    """Return the marking and pausing of each interface, from its QoS profile and its own commands."""
    found = Description()
    profiles: dict[str, Interface] = {}
    on: set[str] = set()  # profiles and interfaces with PFC
    used: dict[str, str] = {}
    to_class = {dscp: _usual_class(dscp) for dscp in range(64)}
    to_queue: dict[int, int] = {}  # where it is not that of the same number
    watched, mapped = False, False
    for lines in indented(text):
        head, last = lines[0], lines[-1]
        if match := _DSCPS.fullmatch(last):
            to_class |= dict.fromkeys(code_points(match[1]), int(match[2]))
            mapped = True
        elif match := _QUEUE_OF.fullmatch(last):
            to_queue |= dict.fromkeys(code_points(match[1]), int(match[2]))
        elif len(lines) == 1 and (match := _WATCHDOG.fullmatch(last)):
            watched = not match[1]
            action = next((word for word in _ACTIONS if word in match[2]), None)
            found.action = _ACTIONS[action] if action else found.action
        elif head.startswith(("qos profile ", "policy-map type tx-queue ")):
            name = head.split()[-1]
            _apply(found, profiles.setdefault(name, Interface()), name, lines, on)
        elif match := re.fullmatch(r"interface (Ethernet.+)", head):
            for name in names(match[1]):
                _apply(found, found.interfaces.setdefault(name, Interface()), name, lines, on)
                if last.startswith(("service-profile ", "service-policy type tx-queue output ")):
                    used[name] = last.split()[-1]
    if not found.interfaces:
        alone(found)
        used = dict.fromkeys(found.interfaces, next(iter(profiles), ""))
    for name, port in found.interfaces.items():
        profile = profiles.get(used.get(name, ""), Interface())
        port.queues = profile.queues | port.queues
        paused = profile.pauses | port.pauses
        port.pauses = {
            priority: to_queue.get(priority, priority) for priority in paused if name in on or used.get(name) in on
        }
        port.watchdog = watched if port.watchdog is None else port.watchdog
    if mapped:
        found.dscps = {dscp: to_queue.get(each, each) for dscp, each in to_class.items()}
        found.notes.append("DSCPs that no line maps are taken as EOS maps them: 8 to 15 to class 0, 24 to 31 to 3")
    return found


def _usual_class(dscp: int) -> int:
    """Return the default traffic class of a DSCP on a switch: by eights, the first two exchanged."""
    return {0: 1, 1: 0}.get(dscp // 8, dscp // 8)


def _apply(found: Description, port: Interface, name: str, lines: Sequence[str], on: set[str]) -> None:
    """Take one command of a profile or an interface."""
    last = lines[-1]
    if match := re.fullmatch(r"priority-flow-control priority (\d) no-drop", last, re.ASCII):
        port.pauses[int(match[1])] = int(match[1])
    elif re.fullmatch(r"priority-flow-control (mode )?on", last):
        on.add(name)
    elif last.startswith("random-detect ecn ") and last != "random-detect ecn count":
        queue = next((each for each in map(_QUEUE.fullmatch, reversed(lines)) if each), None)
        if queue is None:
            found.notes.append(f"{name}: not understood: {last[:80]}")
            return
        curve = f"{name}-{queue[1]}"
        found.curves[curve] = _curve(lines)
        port.queues[int(queue[1])] = curve
        if "segment" in last:
            found.notes.append(f"{name}: a segment is taken as 208 B, as on Trident and Tomahawk")
    elif match := _SPEED.fullmatch(last):
        port.speed = 1000.0 * int(match[1])
    elif match := re.fullmatch(r"mtu (\d{2,6})", last, re.ASCII):
        port.mtu = int(match[1])
    elif last == "shutdown":
        port.up = False
    elif match := _WATCHDOG.fullmatch(last):
        port.watchdog = not match[1]


def _curve(lines: Sequence[str]) -> Curve:
    """Return the curve of a line of ``random-detect ecn``, the last, and how to type it within the others."""
    line = lines[-1]
    match = _MARKS.fullmatch(line)
    low, high = (amount(match[i], match[i + 1], _SEGMENT) for i in (1, 3)) if match else (None, None)
    said = _PERCENT.search(line)
    percent = whole_percent(said[1]) if said else 100.0
    if low is None or high is None or low[1] != high[1] or percent is None:
        return unread(line)
    typed = Lines(missing="its thresholds are times") if low[1] else random_detect(lines, "max-mark-probability")
    return Curve(low[0], high[0], percent, times=low[1], lines=typed)
