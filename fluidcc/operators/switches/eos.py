"""Arista EOS: ``show running-config``, with QoS profiles or with the same commands at interfaces.

Commands and how they are taken back (``no priority-flow-control``, ``priority-flow-control priority 3 drop``) are as
Arista's own templates write them (aristanetworks/avd, ``eos_cli_config_gen``, ``qos-profiles.j2``).
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

from fluidcc.errors import InputError
from fluidcc.operators.switches.description import (
    ERRDISABLE,
    UNNAMED,
    Curve,
    Description,
    Interface,
    Lines,
    Words,
    alone,
    amount,
    averaged,
    bundled,
    check_whole,
    code_points,
    ethernets,
    indented,
    names,
    numbers,
    random_detect,
    shaped,
    unread,
    whole_percent,
)

WORDS = Words(
    "Arista EOS",
    lossless="priority-flow-control on, and priority-flow-control priority {priority} no-drop",
    lossy="priority-flow-control priority {priority} drop at {port} or in its profile, unless other traffic needs it",
    marking="random-detect ecn minimum-threshold {kmin} bytes maximum-threshold {kmax} bytes max-mark-probability "
    "{pmax} at tx-queue {queue}",
    watchdog="priority-flow-control pause watchdog action drop, with a timeout",
    buffers="show qos interfaces {port}, show priority-flow-control",
    classify="qos map dscp DSCP to traffic-class {priority}",
    counters="show interfaces counters queue, show priority-flow-control counters, "
    "show qos interfaces ecn counters queue",
    comment="!",
    enter=("configure terminal",),
    leave=("end", "! to keep it at a reboot: copy running-config startup-config"),
)
_SEGMENT = {"segment": 208.0}  # bytes of a cell of Trident and Tomahawk, which EOS counts
_SIGNS = re.compile(
    r"^\s*(random-detect ecn minimum-threshold\b.*|qos profile \S+|priority-flow-control priority [\d,-]+ no-drop|"
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
_PAUSED = re.compile(r"(no )?priority-flow-control priority ([\d,-]+)( no-drop| drop)?", re.ASCII)
_MEMBER = re.compile(r"channel-group (\d+) mode \S+", re.ASCII)
_WATCHDOG = re.compile(r"(no )?priority-flow-control (?:pause )?watchdog\b(.*)")
_WHOLE = re.compile(r"^! Command: show running-config( all)?\s*$", re.MULTILINE)
_END = re.compile(r"^end\s*$", re.MULTILINE)
_ALL_OFF = "priority-flow-control all off"
# Without an action the port is errdisabled (aristanetworks/avd, priority-flow-control.md).
_ACTIONS = {
    "notify-only": "alert",
    "errdisable": ERRDISABLE,
    "drop": "drop",
    "no-drop": "forward",
    "forward": "forward",
}


def recognises(text: str) -> bool:
    """Tell whether a text is of EOS."""
    return _SIGNS.search(text) is not None


@dataclasses.dataclass
class _Layer:
    """Lines of a profile or an interface: what it sets, and what it takes back (False, or no curve)."""

    on: bool | None = None
    lossless: dict[int, bool] = dataclasses.field(default_factory=dict)
    curves: dict[int, str | None] = dataclasses.field(default_factory=dict)
    trust: str | None = None
    profile: str | None = None
    shapes: dict[int | None, str] = dataclasses.field(default_factory=dict)  # line by queue, None for the port
    watched: bool | None = None
    action: str = ""

    def over(self, below: _Layer) -> _Layer:
        """Return both, where these lines count before those below."""
        return _Layer(
            below.on if self.on is None else self.on,
            below.lossless | self.lossless,
            below.curves | self.curves,
            below.trust if self.trust is None else self.trust,
            below.profile if self.profile is None else self.profile,
            below.shapes | self.shapes,
            below.watched if self.watched is None else self.watched,
            self.action or below.action,
        )


def read(text: str) -> Description:
    """Return the marking and pausing of each interface: its own lines before those of its QoS profile.

    Members of a Port-Channel have its lines and its profile.

    Raises
    ------
    InputError
        If a port that is up names a profile that the file lacks, or the text is cut or lost its indentation.
    """
    check_whole(text, "qos profile|interface|policy-map")
    if _WHOLE.search(text) and not _END.search(text):
        raise InputError(
            "`show running-config` has no line `end`: the text is cut; give all of it, or take the line `! Command` "
            "out of a part"
        )
    found = Description(action=ERRDISABLE)
    profiles: dict[str, _Layer] = {}
    layers: dict[str, _Layer] = {}
    channels: dict[str, str] = {}
    bundles: dict[str, Interface] = {}
    to_class = {dscp: _usual_class(dscp) for dscp in range(64)}
    to_queue: dict[int, int] = {}  # where it is not that of the same number
    watched, mapped, all_off = False, False, False
    for lines in indented(text):
        head, last = lines[0], lines[-1]
        if match := _DSCPS.fullmatch(last):
            to_class |= dict.fromkeys(code_points(match[1]), int(match[2]))
            mapped = True
        elif match := _QUEUE_OF.fullmatch(last):
            to_queue |= dict.fromkeys(code_points(match[1]), int(match[2]))
        elif len(lines) == 1 and (match := _WATCHDOG.fullmatch(last)):
            turned, action = _watchdog(match)
            watched = watched if turned is None else turned
            found.action = action or found.action
        elif match := re.fullmatch(rf"(no )?{_ALL_OFF}", last):
            all_off = not match[1]
        elif match := re.fullmatch(r"no (?:qos profile|policy-map type tx-queue) (\S+)", last):
            profiles.pop(match[1], None)
        elif head.startswith("default interface "):
            for name in ethernets(head.removeprefix("default ")):
                layers[name], found.interfaces[name] = _Layer(), Interface()
                channels.pop(name, None)
        elif head.startswith(("qos profile ", "policy-map type tx-queue ")):
            name = head.split()[-1]
            _apply(found, profiles.setdefault(name, _Layer()), name, lines)
        elif match := re.fullmatch(r"interface (Port-Channel\d[\d,-]*)", head, re.ASCII):
            for name in names(match[1]):
                _apply(found, layers.setdefault(name, _Layer()), name, lines)
                _take_port(bundles.setdefault(name, Interface()), last)
        else:
            for name in ethernets(head):
                _apply(found, layers.setdefault(name, _Layer()), name, lines)
                _take_port(found.interfaces.setdefault(name, Interface()), last)
                if match := _MEMBER.fullmatch(last):
                    channels[name] = f"Port-Channel{match[1]}"
    bundled(found, {name: each for name, each in bundles.items() if layers[name] != _Layer()}, channels.values())
    if not found.interfaces:
        alone(found)
        layers = {UNNAMED: _Layer(profile=next(iter(profiles), None))}
    complete = next((name for name, each in profiles.items() if each.on and any(each.curves.values())), "")
    for name, port in found.interfaces.items():
        layer = layers[name].over(layers.get(channels.get(name, ""), _Layer()))
        if layer.profile and layer.profile not in profiles and port.up:
            raise InputError(
                f"interface {name[:40]}: the file lacks its service-profile {layer.profile[:40]} (it has: "
                f"{', '.join([*profiles][:8]) or 'none'}); correct the name, or give the whole `show running-config`"
            )
        layer = layer.over(profiles.get(layer.profile or "", _Layer()))
        port.queues = {queue: curve for queue, curve in layer.curves.items() if curve is not None}
        paused = [priority for priority, lossless in layer.lossless.items() if lossless and layer.on]
        port.pauses = {priority: to_queue.get(priority, priority) for priority in paused}
        port.watchdog = watched if layer.watched is None else layer.watched
        port.action = layer.action
        for queue, line in layer.shapes.items():
            for each in {*port.queues, *port.pauses.values()} if queue is None else {queue}:
                shaped(port, each, line, "no shape rate" if queue is None else f"no shape rate at tx-queue {queue}")
        if all_off and port.pauses:
            port.sends_pause = False
            port.overrides.append((_ALL_OFF, "PFC is off on every port, whatever their lines say", f"no {_ALL_OFF}"))
        if not layer.profile and complete:
            port.typed = {field: f"service-profile {complete} at {{port}}" for field in ("marking", "lossless")}
        if layer.trust is not None and layer.trust != "qos trust dscp":
            port.by_dscp = False
            port.overrides.append((layer.trust, "DSCPs do not decide on the queue here", "qos trust dscp"))
    if mapped:
        found.dscps = {dscp: to_queue.get(each, each) for dscp, each in to_class.items()}
        found.notes.append("DSCPs that no line maps are taken as EOS maps them: 8 to 15 to class 0, 24 to 31 to 3")
    return found


def _usual_class(dscp: int) -> int:
    """Return the default traffic class of a DSCP on a switch: by eights, the first two exchanged."""
    return {0: 1, 1: 0}.get(dscp // 8, dscp // 8)


def _apply(found: Description, layer: _Layer, name: str, lines: Sequence[str]) -> None:
    """Take one command of a profile or an interface on marking and pausing."""
    last = lines[-1]
    if match := _PAUSED.fullmatch(last):
        layer.lossless |= dict.fromkeys(numbers(match[2]), not match[1] and match[3] == " no-drop")
    elif match := re.fullmatch(r"(no )?priority-flow-control( mode)?( on| off)?", last):
        layer.on = not match[1] and match[3] == " on"
    elif match := _WATCHDOG.fullmatch(last):
        turned, action = _watchdog(match)
        layer.watched = layer.watched if turned is None else turned
        layer.action = action or layer.action
    elif last in ("random-detect ecn count", "no random-detect ecn count"):
        return
    elif last.startswith(("random-detect ecn ", "no random-detect ecn")):
        queue = next((each for each in map(_QUEUE.fullmatch, reversed(lines)) if each), None)
        if queue is None:
            found.notes.append(f"{name}: not understood: {last[:80]}")
        elif last.startswith("no "):
            layer.curves[int(queue[1])] = None
        else:
            curve = layer.curves[int(queue[1])] = f"{name}-{queue[1]}"
            found.curves[curve] = _curve(lines)
            if "segment" in last:
                found.notes.append(f"{name}: a segment is taken as 208 B, as on Trident and Tomahawk")
            found.notes += averaged(name, last)
    elif last.startswith("shape rate "):
        queue = next((each for each in map(_QUEUE.fullmatch, reversed(lines)) if each), None)
        layer.shapes[int(queue[1]) if queue else None] = last
    elif re.fullmatch(r"(no )?qos trust.*", last):
        layer.trust = last
    elif last.startswith(("service-profile ", "service-policy type tx-queue output ")):
        layer.profile = last.split()[-1]
    elif last.startswith(("no service-profile", "no service-policy type tx-queue output")):
        layer.profile = ""


def _watchdog(match: re.Match[str]) -> tuple[bool | None, str]:
    """Return whether a line turns the watchdog on, by a time or by itself, or off; and its action."""
    words = match[2].split()
    timeout = re.search(r"\btimeout (\S+)", match[2])
    if words and timeout is None:
        turned = None
    else:
        turned = not match[1] and (timeout is None or timeout[1].strip("0.") != "")
    action = next((_ACTIONS[word] for word in words if word in _ACTIONS), "")
    return turned, "" if match[1] else action


def _take_port(port: Interface, line: str) -> None:
    """Take a command of an interface on the port itself."""
    if match := _SPEED.fullmatch(line):
        port.speed = 1000.0 * int(match[1])
    elif match := re.fullmatch(r"mtu (\d{2,6})", line, re.ASCII):
        port.mtu = int(match[1])
    elif line in ("shutdown", "no shutdown"):
        port.up = line != "shutdown"


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
