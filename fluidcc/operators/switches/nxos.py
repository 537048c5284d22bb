"""Cisco NX-OS: ``show running-config`` with class maps, policy maps and where they are applied."""

from __future__ import annotations

import dataclasses
import re

from fluidcc.operators.switches.description import (
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
    "Cisco NX-OS",
    lossless="pause pfc-cos {priority} in the network-qos policy, and priority-flow-control mode on at {port}",
    lossy="no pause pfc-cos {priority} in the network-qos policy, unless other traffic needs it",
    marking="random-detect minimum-threshold {kmin} bytes maximum-threshold {kmax} bytes drop-probability {pmax} "
    "weight 0 ecn in the class of queue {queue}",
    watchdog="priority-flow-control watch-dog-interval on, for the switch and at {port}",
    buffers="show queuing interface {port}",
    classify="match dscp DSCP in a class-map type qos, set qos-group {queue} for it in a policy-map type qos, and "
    "service-policy type qos input POLICY at {port}",
    counters="show queuing interface, show interface priority-flow-control",
    comment="!",
    enter=("! traffic may be lost for a moment while a queuing policy changes", "configure terminal"),
    leave=("end", "! to keep it at a reboot: copy running-config startup-config"),
)
_SIGNS = re.compile(
    r"^\s*((policy|class)-map type (queuing|network-qos) .*|class type (queuing|network-qos) .*|"
    r"pause (no-drop )?pfc-cos \d.*|priority-flow-control mode .*|system qos)\s*$",
    re.MULTILINE,
)
_MARKS = re.compile(
    r"(?:congestion-control )?random-detect minimum-threshold (\d+)\s*([a-z]*) maximum-threshold (\d+)\s*([a-z]*)(.*)",
    re.ASCII,
)
_PERCENT = re.compile(r"drop-probability (\S+)")
_TYPED = re.compile(r"(class-map|policy-map) type (qos|queuing|network-qos)(?: match-\w+)? (\S+)")
_CLASS = re.compile(r"class (?:type \S+ )?(\S+)")
_APPLIED = re.compile(r"(no )?service-policy type (\S+) (?:(?:input|output) )?(\S+).*")
_WHOLE = re.compile(r"^!Command: show running-config\s*$", re.MULTILINE)
_LATE = re.compile(r"^(line (console|vty)|boot nxos )", re.MULTILINE)  # what it ends in
_UNKNOWN, _QUEUES = -1, 8  # queue of a class that the file lacks; queues of a port
_AUTO = "no line of priority-flow-control mode, of which auto is the default"
# Cisco 118994, "Configure and Verify Maximum Transmission Unit on Nexus Platforms": a port has 1500, or what its own
# line says, or at layer 2 the network-qos policy.
_MTU = 1500
_OWN_QUEUE = re.compile(r"c-(?:out-)?(?:\dq-)?n?q(\d|-default)", re.ASCII)


def recognises(text: str) -> bool:
    """Tell whether a text is of NX-OS."""
    return _SIGNS.search(text) is not None


class _Policies:
    """Class maps and policy maps by name."""

    def __init__(self) -> None:
        self.matches: dict[str, list[int]] = {}  # DSCPs of a class of type qos
        self.groups: dict[str, int] = {}  # of a class of the other types
        self.others: set[str] = set()  # classes that match by something else, such as CoS
        self.sets: dict[str, dict[str, int]] = {}  # qos-group by class, of policies of type qos
        self.curves: dict[str, dict[int, str]] = {}  # of policies of type queuing, by queue
        self.shapes: dict[str, dict[int, str]] = {}  # lines of policies of type queuing, by queue
        self.pauses: dict[str, dict[int, int]] = {}  # of policies of type network-qos, queue by priority
        self.mtus: dict[str, int] = {}  # of policies of type network-qos, the largest of their classes

    def forget(self, kind: str, name: str) -> None:
        """Take a policy back."""
        of_queues = {"queuing": (self.curves, self.shapes), "network-qos": (self.pauses, self.mtus)}
        for each in of_queues.get(kind, (self.sets,)):
            each.pop(name, None)

    def queue(self, name: str) -> int | None:
        """Return the queue of a class of type queuing or network-qos."""
        if name in self.groups:
            return self.groups[name]
        match = _OWN_QUEUE.fullmatch(name)
        return None if match is None else 0 if match[1] == "-default" else int(match[1])

    def dscps(self, policy: str) -> dict[int, int] | None:
        """Return queue by DSCP of a policy of type qos, or of none; None where it classifies by something else."""
        sets = self.sets.get(policy, {})
        if self.others & sets.keys() or (policy and policy not in self.sets):
            return None
        found = dict.fromkeys(range(64), sets.get("class-default", 0))
        for each, group in sets.items():
            found |= dict.fromkeys(self.matches.get(each, ()), group)
        return found


def read(text: str) -> Description:
    """Return the marking and pausing of each interface, from the policies of the system and its own.

    Members of a port-channel have its lines.

    Raises
    ------
    InputError
        If the text is cut or lost its indentation.
    """
    check_whole(text, "interface|class-map|policy-map|system qos")
    found, known = Description(), _Policies()
    if _WHOLE.search(text) and not _LATE.search(text):
        found.doubts.append("`show running-config` goes on to `line vty`, which it does not have")
    system: dict[str, str] = {}
    own: dict[str, dict[str, str]] = {}
    modes: dict[str, str] = {}
    channels: dict[str, Interface] = {}
    members: dict[str, str] = {}  # channel by port
    routed: set[str] = set()  # ports of layer 3
    watched, elsewhere = False, False  # a policy of type qos may be of a VLAN
    for lines in indented(_joined(text)):
        head, last = lines[0], lines[-1]
        if match := _TYPED.fullmatch(head):
            _take_policy(found, known, match, lines)
        elif match := re.fullmatch(r"no policy-map type (qos|queuing|network-qos) (\S+)", last):
            known.forget(match[1], match[2])
        elif head == "system qos" and (match := _APPLIED.fullmatch(last)):
            system[match[2]] = match[3]
            if match[1]:
                del system[match[2]]
        elif len(lines) == 1 and last.startswith("priority-flow-control watch-dog-interval on"):
            watched = True
        elif of_line := _ports(head):
            for name in of_line:
                ports = channels if name.startswith("port-channel") else found.interfaces
                port = ports.setdefault(name, Interface())
                if member := re.fullmatch(r"channel-group (\d+)\b.*", last, re.ASCII):
                    members[name] = f"port-channel{member[1]}"
                elif match := _APPLIED.fullmatch(last):
                    own.setdefault(name, {})[match[2]] = "" if match[1] else match[3]
                elif mode := re.fullmatch(r"priority-flow-control mode (on|off|auto)\b.*", last):
                    modes[name] = mode[1]
                elif last == "no switchport":
                    routed.add(name)
                _take_line(port, last)
        elif (match := _APPLIED.fullmatch(last)) and match[2] == "qos" and not match[1]:
            elsewhere = True
    named = {name: each for name, each in channels.items() if name in own or name in modes}
    bundled(found, named, members.values())
    policies_of = {"queuing": known.curves, "network-qos": known.pauses, "qos": known.sets}
    untold: list[str] = []  # ports whose MTU is the default
    listed = bool(found.interfaces)
    if not listed:
        alone(found)
        modes = dict.fromkeys(found.interfaces, "on")
        if not system:
            system = {kind: next(iter(each), "") for kind, each in policies_of.items() if len(each) == 1}
            found.notes.append("no line applies a policy: those of the file are taken as applied")
    for name, port in found.interfaces.items():
        channel = members.get(name, "")
        own[name] = own.get(channel, {}) | own.get(name, {})
        modes |= {name: modes[channel]} if channel in modes and name not in modes else {}
        whole = channels.get(channel, Interface())
        port.speed, port.mtu, port.up = port.speed or whole.speed, port.mtu or whole.mtu, port.up and whole.up
        port.watchdog = whole.watchdog if port.watchdog is None else port.watchdog
        policies = system | own.get(name, {})
        if port.mtu is None and not {name, channel} & routed:
            port.mtu = known.mtus.get(policies.get("network-qos", ""))
        if port.mtu is None and listed:
            port.mtu = _MTU
            untold.append(name)
        port.queues = dict(known.curves.get(policies.get("queuing", ""), {}))
        if (stray := port.queues.pop(_UNKNOWN, None)) is not None:  # it may be any queue that has no other
            port.queues = dict.fromkeys(range(_QUEUES), stray) | port.queues
        mode = modes.get(name, "")
        if mode != "off":
            port.pauses = dict(known.pauses.get(policies.get("network-qos", ""), {}))
        if mode != "on":
            port.negotiated = "priority-flow-control mode auto" if mode else _AUTO
        port.watchdog = watched if port.watchdog is None else port.watchdog and watched
        for queue, line in known.shapes.get(policies.get("queuing", ""), {}).items():
            shaped(port, queue, line, f"no {line} in the class of queue {queue}")
        if known.sets:
            port.dscps = None if elsewhere and "qos" not in policies else known.dscps(policies.get("qos", ""))
            port.by_dscp = port.dscps is not None
        _take_unapplied(port, known)
    if untold:
        more = f" and {len(untold) - 8} more" if untold[8:] else ""
        found.notes.append(f"no line of mtu for {', '.join(untold[:8])}{more}: taken as {_MTU} B, the default of NX-OS")
    if others := sorted(known.others & {each for sets in known.sets.values() for each in sets}):
        found.notes.append(f"class-map {', '.join(others)[:80]}: not by DSCP alone: its DSCPs are not checked")
    return found


def _ports(head: str) -> list[str]:
    """Return the ports of a line of ``interface``, or its port-channels."""
    match = re.fullmatch(r"interface port-channel\s*(\d[\d,-]*)", head, re.ASCII | re.IGNORECASE)
    return names(f"port-channel{match[1]}") if match else ethernets(head)


def _take_unapplied(port: Interface, known: _Policies) -> None:
    """Take policies that are there and not applied as what to type."""
    pausing = next((name for name, each in known.pauses.items() if each), "")
    if not port.queues and (marking := next((name for name, each in known.curves.items() if each), "")):
        port.typed["marking"] = f"service-policy type queuing output {marking} under system qos"
    if not port.pauses and pausing:
        port.typed["lossless"] = (
            f"service-policy type network-qos {pausing} under system qos, and priority-flow-control "
        )
        port.typed["lossless"] += "mode on at {port}"
    if port.dscps is not None and not any(port.dscps.values()) and known.sets:
        port.typed["classify"] = f"service-policy type qos input {next(iter(known.sets))} at {{port}}"


def _joined(text: str) -> str:
    """Return the text with lines that end in a backslash joined to the next."""
    return re.sub(r"\\\s*\n\s*", "", text)


def _take_policy(found: Description, known: _Policies, head: re.Match[str], lines: tuple[str, ...]) -> None:
    kind, of, name = head.groups()
    last = lines[-1]
    if kind == "class-map":
        if match := re.fullmatch(r"match (?:ip )?dscp (.+)", last):
            known.matches.setdefault(name, []).extend(code_points(match[1]))
        elif match := re.fullmatch(r"match qos-group (\d)", last, re.ASCII):
            known.groups[name] = int(match[1])
        elif last.startswith("match "):
            known.others.add(name)
        return
    {"qos": known.sets, "queuing": known.curves, "network-qos": known.pauses}[of].setdefault(name, {})
    within = next((match[1] for match in map(_CLASS.fullmatch, reversed(lines)) if match), "")
    queue = known.queue(within)
    if of == "qos" and (match := re.fullmatch(r"set qos-group (\d)", last, re.ASCII)):
        known.sets.setdefault(name, {})[within] = int(match[1])
    elif of == "network-qos" and last.startswith("no pause") and queue is not None:
        known.pauses[name] = {each: of_it for each, of_it in known.pauses[name].items() if of_it != queue}
    elif of == "queuing" and re.match(r"no (congestion-control )?random-detect", last) and queue is not None:
        known.curves[name].pop(queue, None)
    elif of == "network-qos" and (match := re.fullmatch(r"mtu (\d{3,5})", last, re.ASCII)):
        known.mtus[name] = max(known.mtus.get(name, 0), int(match[1]))
    elif of == "network-qos" and last.startswith("pause") and queue is not None:
        for priority in numbers(last.partition("pfc-cos")[2]) or [queue]:
            known.pauses.setdefault(name, {})[priority] = queue
    elif of == "queuing" and last.startswith("shape ") and queue is not None:
        known.shapes.setdefault(name, {})[queue] = last
    elif of == "queuing" and last.startswith(("random-detect", "congestion-control random-detect")):
        _take_curve(found, known, name, queue, lines)
    elif of == "queuing" and re.fullmatch(r"afd queue-desired .* ecn", last):
        curve = f"{name}-{queue}"
        found.curves[curve] = unread(last)
        known.curves.setdefault(name, {})[_UNKNOWN if queue is None else queue] = curve


def _take_curve(found: Description, known: _Policies, name: str, queue: int | None, lines: tuple[str, ...]) -> None:
    """Take a line of random-detect; one that only says ``ecn`` is about the thresholds before it."""
    curves, line = known.curves.setdefault(name, {}), lines[-1]
    if line == "random-detect ecn" and queue in curves:
        found.curves[curves[queue]] = dataclasses.replace(found.curves[curves[queue]], ecn=True)
        return
    match = _MARKS.fullmatch(line)
    low, high = (amount(match[i], match[i + 1] or "packets") for i in (1, 3)) if match else (None, None)
    said = _PERCENT.search(line)
    percent = whole_percent(said[1]) if said else 100.0
    found.notes += averaged(name, line)
    ecn = "ecn" in line.split()
    curve = f"{name}-{queue}"
    if queue is None or low is None or high is None or low[1] != high[1] or percent is None:
        why = "no thresholds in bytes and whole percent" if queue is not None else "of a class that is not in the file"
        found.notes.append(f"{name}: {why}: {line[:80]}")
        if ecn:
            found.curves[curve] = unread(line)
            curves[_UNKNOWN if queue is None else queue] = curve
        return
    if said is None:
        found.notes.append(f"{name}: no drop-probability: taken as 100 %")
    typed = Lines(missing="its thresholds are times") if low[1] else random_detect(lines, "drop-probability")
    found.curves[curve] = Curve(low[0], high[0], percent, ecn=ecn, times=low[1], lines=typed)
    curves[queue] = curve


def _take_line(port: Interface, line: str) -> None:
    """Take a command of an interface."""
    if match := re.fullmatch(r"mtu (\d{2,6})", line, re.ASCII):
        port.mtu = int(match[1])
    elif match := re.fullmatch(r"speed (\d{3,7})", line, re.ASCII):
        port.speed = float(match[1])
    elif line in ("shutdown", "no shutdown"):
        port.up = line != "shutdown"
    elif line.startswith("priority-flow-control watch-dog-interval"):
        port.watchdog = line.split()[-1] == "on"
