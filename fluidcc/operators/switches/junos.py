"""Junos (and Junos Evolved): ``class-of-service`` in braces or as ``set`` commands."""

from __future__ import annotations

import dataclasses
import fnmatch
import re
from collections.abc import Iterator, Sequence

from fluidcc.operators.switches.blocks import braced
from fluidcc.operators.switches.description import (
    Curve,
    Description,
    Interface,
    Lines,
    Words,
    alone,
    names,
    unread,
)

WORDS = Words(
    "Junos",
    lossless="a forwarding class with no-loss for queue {queue}, and congestion-notification-profile NAME at {port}",
    marking="a scheduler with explicit-congestion-notification for queue {queue}, in the scheduler-map of {port}, and "
    "a drop-profile with interpolate fill-level [ LOW HIGH ] and drop-probability [ 0 PERCENT ]",
    watchdog="pfc-watchdog in the congestion-notification-profile of {port}",
    buffers="show class-of-service shared-buffer",
    counters="show interfaces queue, show interfaces extensive",
    enter=("configure",),
    leave=("commit and-quit",),
)
_SIGNS = re.compile(r"^\s*(set class-of-service\b.*|class-of-service \{)\s*$", re.MULTILINE)
_BITS = re.compile("[01]{3}")
_SPEED = re.compile(r"(\d+)g", re.ASCII | re.IGNORECASE)
_HARDWARE = ("et-", "xe-", "ge-")  # others are logical


def recognises(text: str) -> bool:
    """Tell whether a text is of Junos."""
    return _SIGNS.search(text) is not None


@dataclasses.dataclass
class _Classes:
    """Settings of ``class-of-service``, by the names that it gives."""

    levels: dict[str, list[float]] = dataclasses.field(default_factory=dict)  # of drop profiles [%]
    odds: dict[str, list[float]] = dataclasses.field(default_factory=dict)
    interpolated: set[str] = dataclasses.field(default_factory=set)
    drop_profiles: dict[str, str] = dataclasses.field(default_factory=dict)  # by scheduler
    marking: set[str] = dataclasses.field(default_factory=set)  # schedulers with ECN
    maps: dict[str, dict[str, str]] = dataclasses.field(default_factory=dict)  # schedulers by forwarding class
    queues: dict[str, int] = dataclasses.field(default_factory=dict)  # by forwarding class
    no_loss: dict[str, int | None] = dataclasses.field(default_factory=dict)  # PFC priority by forwarding class
    priorities: dict[str, set[int]] = dataclasses.field(default_factory=dict)  # by notification profile
    paused: dict[str, dict[int, int]] = dataclasses.field(default_factory=dict)  # queue by priority, likewise
    watched: set[str] = dataclasses.field(default_factory=set)  # notification profiles
    points: dict[str, list[int]] = dataclasses.field(default_factory=dict)  # DSCPs by forwarding class
    traffic: dict[str, str] = dataclasses.field(default_factory=dict)  # scheduler map by traffic-control profile
    applied: list[tuple[str, str, str]] = dataclasses.field(default_factory=list)  # pattern of interfaces, what, name

    def take(self, words: list[str]) -> None:
        """Take a statement."""
        match words:
            case ["drop-profiles", name, *rest]:
                self.levels.setdefault(name, []).extend(_after(rest, "fill-level"))
                self.odds.setdefault(name, []).extend(_after(rest, "drop-probability"))
                self.interpolated |= {name} if "interpolate" in rest else set()
            case ["schedulers", name, "drop-profile-map", *_, "drop-profile", profile]:
                self.drop_profiles[name] = profile
            case ["schedulers", name, "explicit-congestion-notification"]:
                self.marking.add(name)
            case ["scheduler-maps", name, "forwarding-class", each, "scheduler", scheduler]:
                self.maps.setdefault(name, {})[each] = scheduler
            case ["forwarding-classes", "class", name, *rest]:
                if queue := _after(rest, "queue-num"):
                    self.queues[name] = int(queue[0])
                priority = _after(rest, "pfc-priority")
                if "no-loss" in rest or priority:
                    self.no_loss[name] = int(priority[0]) if priority else self.no_loss.get(name)
            case ["classifiers", "dscp", _, "forwarding-class", name, *rest]:
                bits = rest[rest.index("code-points") + 1 :] if "code-points" in rest else []
                self.points.setdefault(name, []).extend(int(each, 2) for each in bits if re.fullmatch("[01]{6}", each))
            case ["congestion-notification-profile", name, *rest]:
                self._take_notification(name, rest)
            case ["traffic-control-profiles", name, "scheduler-map", each]:
                self.traffic[name] = each
            case ["interfaces", pattern, *_, "output-traffic-control-profile", name]:
                self.applied.append((pattern, "output-traffic-control-profile", name))
            case ["interfaces", pattern, "scheduler-map" | "congestion-notification-profile" as what, name]:
                self.applied.append((pattern, what, name))
            case _:
                pass

    def _take_notification(self, name: str, words: list[str]) -> None:
        match words:
            case ["pfc-watchdog", *_]:
                self.watched.add(name)
            case ["input", "ieee-802.1", "code-point", bits, "pfc"] if _BITS.fullmatch(bits):
                self.priorities.setdefault(name, set()).add(int(bits, 2))
            case ["output", _, "code-point", bits, *rest] if _BITS.fullmatch(bits):
                queues = {int(bits, 2): int(queue) for queue in _after(rest, "flow-control-queue")}
                self.paused.setdefault(name, {}).update(queues)
            case _:
                pass


def read(text: str) -> Description:
    """Return the marking and pausing of each interface: scheduler map, scheduler, drop profile, forwarding class.

    Junos's fill levels are shares of what the queue may fill, which its configuration does not say in bytes.
    """
    found, known = Description(), _Classes()
    for words in _statements(text):
        match words:
            case ["interfaces", name, *rest] if name.startswith(_HARDWARE):
                _take(found.interfaces.setdefault(name, Interface()), rest)
            case ["class-of-service", *rest]:
                known.take(rest)
            case _:
                pass
    curves: dict[str, Curve] = {}
    for name, levels in known.levels.items():
        if curve := _curve(levels, known.odds.get(name, [])):
            curves[name] = dataclasses.replace(curve, lines=_lines(known, name))
            if len(levels) > 2:
                found.notes.append(f"drop-profile {name}: of its {len(levels)} points the ends of the rise are taken")
    _name_ports(found, [pattern for pattern, _, _ in known.applied])
    alone(found)
    for name, port in found.interfaces.items():
        for pattern, what, given in known.applied or [("all", "scheduler-map", next(iter(known.maps), ""))]:
            if pattern != "all" and not fnmatch.fnmatchcase(name, pattern):
                continue
            if what == "congestion-notification-profile":
                port.pauses = _pauses(known, given)
                port.watchdog = given in known.watched
                continue
            scheduled = given if what == "scheduler-map" else known.traffic.get(given, "")
            for each, scheduler in known.maps.get(scheduled, {}).items():
                drops = known.drop_profiles.get(scheduler, "")
                curve = curves.get(drops)
                if curve is None and scheduler in known.marking:
                    profile = f", drop-profile {drops}" if drops else ""
                    curve = unread(f"scheduler {scheduler}: explicit-congestion-notification{profile}")
                if each in known.queues and curve is not None:
                    port.queues[known.queues[each]] = scheduler
                    found.curves[scheduler] = dataclasses.replace(curve, ecn=scheduler in known.marking)
    found.dscps = {
        dscp: known.queues[name] for name, each in known.points.items() if name in known.queues for dscp in each
    }
    return found


def _pauses(known: _Classes, profile: str) -> dict[int, int]:
    """Return queue by lossless priority: of the classes without loss, or else of the profile's own numbers."""
    outputs = known.paused.get(profile, {})
    of_queue = {queue: priority for priority, queue in outputs.items()}
    found = {}
    for name, priority in known.no_loss.items():
        if name in known.queues:
            queue = known.queues[name]
            found[of_queue.get(queue, queue) if priority is None else priority] = queue
    return found or {each: outputs.get(each, each) for each in sorted(known.priorities.get(profile, ()))} or outputs


def _curve(levels: list[float], odds: list[float]) -> Curve | None:
    """Return a curve through points of percent, from the last without drops, or the first, to the last.

    None where there are no two, or not all could be read.
    """
    if len(levels) != len(odds) or len(levels) < 2:
        return None
    pairs = sorted(zip(levels, odds, strict=True))
    low = max((level for level, odd in pairs if odd == 0), default=pairs[0][0])
    return Curve(low / 100, pairs[-1][0] / 100, pairs[-1][1], shares=True)


def _lines(known: _Classes, name: str) -> Lines:
    """Return how to type a drop profile: without the old points, which new ones would be added to."""
    if name not in known.interpolated:
        return Lines(missing=f"drop-profile {name} has steps, and no line between them")
    path = f"class-of-service drop-profiles {name} interpolate"

    def typed(levels: Sequence[str], odds: Sequence[str]) -> tuple[str, ...]:
        points = [f"fill-level {level}" for level in levels] + [f"drop-probability {odd}" for odd in odds]
        return (f"delete {path}", *(f"set {path} {point}" for point in points))

    old = [[f"{value:.0f}" for value in values[name]] for values in (known.levels, known.odds)]
    return Lines(typed(("{kmin}", "{kmax}"), ("0", "{pmax}")), typed(*old))


def _name_ports(found: Description, patterns: list[str]) -> None:
    """Let a pattern that no listed interface fits stand for a port by itself."""
    for pattern in patterns:
        if pattern != "all" and not fnmatch.filter(found.interfaces, pattern):
            for name in names(pattern) if "*" not in pattern else [pattern]:
                found.interfaces[name] = Interface()


def _take(port: Interface, words: list[str]) -> None:
    if words[:1] == ["mtu"] and words[1:] and re.fullmatch(r"\d{2,6}", words[1], re.ASCII):
        port.mtu = int(words[1])
    elif words[:1] == ["disable"]:
        port.up = False
    elif "speed" in words[:-1] and (match := _SPEED.fullmatch(words[words.index("speed") + 1])):
        port.speed = 1000.0 * int(match[1])


def _after(words: list[str], key: str) -> list[float]:
    """Return the numbers after each of a key, one or those in brackets."""
    found: list[float] = []
    for place, word in enumerate(words):
        if word == key:
            for each in words[place + 1 :]:
                if re.fullmatch(r"\d{1,9}", each, re.ASCII):
                    found.append(float(each))
                elif each not in ("[", "]"):
                    break
    return found


def _statements(text: str) -> Iterator[list[str]]:
    """Yield the statements as words, from braces or from ``set`` commands."""
    lines = re.findall(r"^.*?\bset ((?:class-of-service|interfaces) .+?)\s*$", text, re.MULTILINE)
    if lines:
        for line in lines:
            yield [word.strip('"') for word in re.findall(r"[\[\]]|[^\s\[\]]+", line)]
        return
    yield from braced(text)
