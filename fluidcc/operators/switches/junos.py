"""Junos (and Junos Evolved): ``class-of-service`` in braces or as ``set`` commands."""

from __future__ import annotations

import dataclasses
import fnmatch
import itertools
import re
from collections.abc import Iterator, Sequence

from fluidcc.errors import InputError
from fluidcc.operators.switches.description import (
    UNNAMED,
    Curve,
    Description,
    Interface,
    Lines,
    Words,
    alone,
    braced,
    check_whole,
    names,
    numbers,
    shaped,
    unread,
)

WORDS = Words(
    "Junos",
    lossless="a forwarding class with no-loss for queue {queue}, and congestion-notification-profile NAME at {port}",
    lossy="delete no-loss of the forwarding class of queue {queue}, unless other traffic needs it",
    marking="a scheduler with explicit-congestion-notification for queue {queue}, in the scheduler-map of {port}, and "
    "a drop-profile with interpolate fill-level [ LOW HIGH ] and drop-probability [ 0 PERCENT ]",
    watchdog="pfc-watchdog in the congestion-notification-profile of {port}",
    buffers="show class-of-service shared-buffer",
    classify="set class-of-service classifiers dscp NAME forwarding-class CLASS loss-priority low code-points BITS, "
    "with the class of queue {queue}; set class-of-service interfaces {port} unit 0 classifiers dscp NAME",
    counters="show interfaces queue, show interfaces extensive",
    enter=("configure",),
    leave=("commit and-quit",),
)
_SIGNS = re.compile(r"^\s*(set (groups \S+ )?class-of-service\b.*|class-of-service \{)\s*$", re.MULTILINE)
_COMMAND = re.compile(
    r"^.*?\b(set|delete|deactivate|activate) ((?:class-of-service|interfaces|chassis|groups|apply-groups)\b.*?)\s*$",
    re.MULTILINE,
)
_WORD = re.compile(r'"[^"]*"|[^\s\[\]"]+\[[\d,-]+\]|[\[\]]|[^\s\[\]"]+')
_CLASSES = re.compile(r"(.*?)\[([\d,-]+)\](.*)", re.ASCII)
_EDITED = re.compile(
    r"^\s*(?:\S+[#>] )?(rename|copy|wildcard delete|wildcard range|replace pattern)\b.*$", re.MULTILINE
)
_SETS = "what `show configuration | display set` prints after the commit"
_BITS, _DSCP = re.compile("[01]{3}"), re.compile("[01]{6}")
_CONTROL = (48, 56)  # DSCPs that the classifier by default does not put into best-effort, whatever the model
_SPEED = re.compile(r"(\d+)g", re.ASCII | re.IGNORECASE)
_HARDWARE = ("et-", "xe-", "ge-")  # others are logical
_ANY, _LOW = "any", "low"  # loss priorities; RoCE has the low one where no classifier says another


def recognises(text: str) -> bool:
    """Tell whether a text is of Junos."""
    return _SIGNS.search(text) is not None


@dataclasses.dataclass
class _Classes:
    """Settings of ``class-of-service``, by the names that it gives."""

    levels: dict[str, list[float]] = dataclasses.field(default_factory=dict)  # of drop profiles [%]
    odds: dict[str, list[float]] = dataclasses.field(default_factory=dict)
    interpolated: set[str] = dataclasses.field(default_factory=set)
    drop_profiles: dict[str, dict[str, str]] = dataclasses.field(default_factory=dict)  # by scheduler, loss priority
    losses: dict[str, set[str]] = dataclasses.field(default_factory=dict)  # loss priorities by forwarding class
    marking: set[str] = dataclasses.field(default_factory=set)  # schedulers with ECN
    maps: dict[str, dict[str, str]] = dataclasses.field(default_factory=dict)  # schedulers by forwarding class
    queues: dict[str, int] = dataclasses.field(default_factory=dict)  # by forwarding class
    classes: set[str] = dataclasses.field(default_factory=set)  # that say themselves if they are without loss
    no_loss: dict[str, int | None] = dataclasses.field(default_factory=dict)  # PFC priority by class without loss
    pfc: dict[str, int] = dataclasses.field(default_factory=dict)  # PFC priority by forwarding class
    priorities: dict[str, set[int]] = dataclasses.field(default_factory=dict)  # by notification profile
    paused: dict[str, dict[int, int]] = dataclasses.field(default_factory=dict)  # queue by priority, likewise
    input_dscps: dict[str, set[int]] = dataclasses.field(default_factory=dict)  # by notification profile
    watched: set[str] = dataclasses.field(default_factory=set)  # notification profiles
    classifiers: dict[str, dict[int, str]] = dataclasses.field(default_factory=dict)  # class by DSCP
    schedulers: set[str] = dataclasses.field(default_factory=set)
    shaped: dict[str, str] = dataclasses.field(default_factory=dict)  # line by scheduler
    traffic: dict[str, str] = dataclasses.field(default_factory=dict)  # scheduler map by traffic-control profile
    applied: list[tuple[str, str, str]] = dataclasses.field(default_factory=list)  # pattern of interfaces, what, name

    def take(self, words: list[str]) -> None:
        """Take a statement."""
        if words[:1] == ["schedulers"]:
            self.schedulers.update(words[1:2])
        match words:
            case ["drop-profiles", name, *rest]:
                self.levels.setdefault(name, []).extend(_after(rest, "fill-level"))
                self.odds.setdefault(name, []).extend(_after(rest, "drop-probability"))
                self.interpolated |= {name} if "interpolate" in rest else set()
            case ["schedulers", name, "drop-profile-map", *rest, "drop-profile", profile]:
                loss = rest[rest.index("loss-priority") + 1] if "loss-priority" in rest[:-1] else _ANY
                self.drop_profiles.setdefault(name, {})[loss] = profile
            case ["schedulers", name, "explicit-congestion-notification"]:
                self.marking.add(name)
            case ["schedulers", name, "shaping-rate", *rest] | ["schedulers", name, "transmit-rate", *rest]:
                if words[2] == "shaping-rate" or "exact" in rest:
                    self.shaped[name] = " ".join(words)
            case ["scheduler-maps", name, "forwarding-class", each, "scheduler", scheduler]:
                self.maps.setdefault(name, {})[each] = scheduler
            case ["forwarding-classes", "class", name, *rest]:
                if queue := _after(rest, "queue-num"):
                    self.queues[name] = int(queue[0])
                self.classes.add(name)
                if priority := _after(rest, "pfc-priority"):
                    self.pfc[name] = int(priority[0])
                if "no-loss" in rest or name in self.no_loss:
                    self.no_loss[name] = self.pfc.get(name)
            case ["forwarding-classes", "queue", queue, name] if queue.isdecimal():  # as older releases write it
                self.queues[name] = int(queue)
            case ["classifiers", "dscp", classifier, "forwarding-class", name, *rest]:
                self.losses.setdefault(name, set()).update(rest[1:2] if rest[:1] == ["loss-priority"] else ())
                bits = rest[rest.index("code-points") + 1 :] if "code-points" in rest else []
                found = {int(each, 2): name for each in bits if _DSCP.fullmatch(each)}
                self.classifiers.setdefault(classifier, {}).update(found)
            case ["congestion-notification-profile", name, *rest]:
                self._take_notification(name, rest)
            case ["traffic-control-profiles", name, "scheduler-map", each]:
                self.traffic[name] = each
            case ["interfaces", pattern, *_, "output-traffic-control-profile", name]:
                self.applied.append((pattern, "output-traffic-control-profile", name))
            case ["interfaces", pattern, "scheduler-map" | "congestion-notification-profile" as what, name]:
                self.applied.append((pattern, what, name))
            case ["interfaces", pattern, *_, "classifiers", kind, name]:
                self.applied.append((pattern, "classifiers", name if kind == "dscp" else ""))
            case _:
                pass

    def undefined(self) -> list[str]:
        """Return what is named and not defined, which Junos refuses to commit: the text is a part of what it has."""
        maps = [name for _, what, name in self.applied if what == "scheduler-map" and name]
        named = {
            "scheduler-map": ([*maps, *self.traffic.values()], self.maps),
            "scheduler": ([each for of_map in self.maps.values() for each in of_map.values()], self.schedulers),
            "drop-profile": ([each for of_one in self.drop_profiles.values() for each in of_one.values()], self.levels),
            "traffic-control-profile": (
                [name for _, what, name in self.applied if what == "output-traffic-control-profile"],
                self.traffic,
            ),
        }
        return [f"{what} {each}" for what, (names, known) in named.items() for each in names if each not in known]

    def dscps(self, classifier: str | None) -> dict[int, int] | None:
        """Return queue by DSCP of a classifier, or of none; None where it is not known."""
        if not self.classifiers or classifier not in {None, "default", *self.classifiers}:
            return None
        if classifier in self.classifiers:
            return {
                dscp: self.queues[each] for dscp, each in self.classifiers[classifier].items() if each in self.queues
            }
        return dict.fromkeys((dscp for dscp in range(64) if dscp not in _CONTROL), self.queues.get("best-effort", 0))

    def drops(self, each: str, scheduler: str) -> tuple[str, str]:
        """Return the drop profile that a scheduler has for a forwarding class, and a note where it has others."""
        profiles = self.drop_profiles.get(scheduler, {})
        losses = self.losses.get(each, set[str]())
        loss = next(iter(losses)) if len(losses) == 1 else _LOW
        chosen = profiles.get(loss, profiles.get(_ANY, ""))
        others = [f"{name} has {profile}" for name, profile in profiles.items() if chosen and profile != chosen]
        said = f"scheduler {scheduler}: drop-profile {chosen}, of loss-priority {loss}, is taken; loss-priority "
        return chosen, said + " and ".join(others) if others else ""

    def _take_notification(self, name: str, words: list[str]) -> None:
        match words:
            case ["pfc-watchdog", *_]:
                self.watched.add(name)
            case ["input", "ieee-802.1", "code-point", bits, "pfc"] if _BITS.fullmatch(bits):
                self.priorities.setdefault(name, set()).add(int(bits, 2))
            case ["input", "dscp", "code-point", bits, "pfc"] if _DSCP.fullmatch(bits):
                self.input_dscps.setdefault(name, set()).add(int(bits, 2))
            case ["output", _, "code-point", bits, *rest] if _BITS.fullmatch(bits):
                queues = {int(bits, 2): int(queue) for queue in _after(rest, "flow-control-queue")}
                self.paused.setdefault(name, {}).update(queues)
            case _:
                pass


def read(text: str) -> Description:
    """Return the marking and pausing of each interface: scheduler map, scheduler, drop profile, forwarding class.

    Junos's fill levels are shares of what the queue may fill, which its configuration does not say in bytes.

    Raises
    ------
    InputError
        If ``class-of-service`` is in a group that is applied, a command edits others, or the text is cut.
    """
    check_whole(text)
    if match := _EDITED.search(text):
        raise InputError(f"{match[0].strip()[:60]}: only set, delete, activate and deactivate are read; give {_SETS}")
    found, known = Description(), _Classes()
    ranges: dict[str, _Range] = {}
    bundles: dict[str, Interface] = {}
    members: dict[str, str] = {}  # bundle by port
    speeds: dict[str, float] = {}
    for words in _without_groups(found, list(_statements(text))):
        match words:
            case ["interfaces", "interface-range", name, *rest]:
                ranges.setdefault(name, _Range()).take(rest)
            case ["interfaces", name, _, "802.3ad", bundle, *_] if name.startswith(_HARDWARE):
                found.interfaces.setdefault(name, Interface())
                members[name] = bundle
            case ["interfaces", name, *rest] if name.startswith(_HARDWARE):
                _take(found.interfaces.setdefault(name, Interface()), rest)
            case ["interfaces", name, *rest] if name.startswith("ae"):
                _take(bundles.setdefault(name, Interface()), rest)
            case ["chassis", "fpc", fpc, "pic", pic, "port", number, "speed" | "channel-speed", value]:
                if match := _SPEED.fullmatch(value):
                    speeds[f"{fpc}/{pic}/{number}"] = 1000.0 * int(match[1])
            case ["class-of-service", *rest]:
                known.take(rest)
            case _:
                pass
    for each in ranges.values():
        each.apply(found)
        for pattern in each.members if each.bundle else ():
            members |= dict.fromkeys(fnmatch.filter(found.interfaces, pattern), each.bundle)
    for name, bundle in members.items():
        port, whole = found.interfaces[name], bundles.get(bundle, Interface())
        port.mtu, port.up = port.mtu or whole.mtu, port.up and whole.up
    known.applied = [
        (member, what, name)
        for pattern, what, name in known.applied
        for member in (
            ranges[pattern].members
            if pattern in ranges
            else [port for port, bundle in members.items() if fnmatch.fnmatchcase(bundle, pattern)] or [pattern]
        )
    ]
    found.doubts += [f"{each} is named and not defined" for each in dict.fromkeys(known.undefined())]
    curves: dict[str, Curve] = {}
    for name, levels in known.levels.items():
        if curve := _curve(levels, known.odds.get(name, [])):
            curves[name] = dataclasses.replace(curve, lines=_lines(known, name))
            if name in known.interpolated and len(levels) > 2:
                found.notes.append(f"drop-profile {name}: of its {len(levels)} points the ends of the rise are taken")
    _name_ports(found, [pattern for pattern, _, _ in known.applied])
    alone(found)
    if UNNAMED in found.interfaces:
        known.applied = known.applied or [
            (UNNAMED, "scheduler-map", next(iter(known.maps), "")),
            (UNNAMED, "classifiers", next(iter(known.classifiers), "")),
        ]
    asleep = _inactive(text)
    for name, port in found.interfaces.items():
        if port.speed is None:
            port.speed = speeds.get(name.partition("-")[2].partition(":")[0])
        classifier, notified = None, ""
        for pattern, what, given in known.applied:
            if pattern != "all" and not fnmatch.fnmatchcase(name, pattern):
                continue
            if what == "classifiers":
                classifier = given or classifier or ""  # that of DSCPs counts before others
                continue
            if what == "congestion-notification-profile":
                notified, port.pauses = given, _pauses(known, given)
                port.watchdog = given in known.watched
                continue
            scheduled = given if what == "scheduler-map" else known.traffic.get(given, "")
            for each, scheduler in known.maps.get(scheduled, {}).items():
                if command := asleep.get(
                    ("class-of-service", "schedulers", scheduler, "explicit-congestion-notification")
                ):
                    port.typed.setdefault("marking", command)
                drops, said = known.drops(each, scheduler)
                found.notes += [said] if said and said not in found.notes else []
                curve = curves.get(drops)
                if curve is None and scheduler in known.marking:
                    profile = f", drop-profile {drops}" if drops else ""
                    curve = unread(f"scheduler {scheduler}: explicit-congestion-notification{profile}")
                elif curve is not None and scheduler in known.marking and drops not in known.interpolated:
                    steps = " ".join(f"{level:g} %," for level in known.levels[drops])
                    curve = dataclasses.replace(curve, unread=f"drop-profile {drops}: steps at {steps} no interpolate")
                if each in known.queues and curve is not None:
                    port.queues[known.queues[each]] = scheduler
                    found.curves[scheduler] = dataclasses.replace(curve, ecn=scheduler in known.marking)
        _stops_another(port, known, notified)
        port.dscps = known.dscps(classifier)
        port.by_dscp = port.dscps is not None
        _advise(port, known, classifier, notified)
        for queue, scheduler in port.queues.items():
            if line := known.shaped.get(scheduler):
                shaped(port, queue, line, f"delete class-of-service {' '.join(line.split()[:3])}")
    return found


def _advise(port: Interface, known: _Classes, classifier: str | None, notified: str) -> None:
    """Say what to type where the file has most of it."""
    at = "set class-of-service interfaces {port}"
    profiles = [*known.priorities, *known.input_dscps, *known.paused]
    paused = known.paused.get(notified, {}).values()
    lossy = sorted(known.classes - known.no_loss.keys())
    lossy = [name for name in lossy if name in known.pfc or known.queues.get(name) in paused]
    if not notified and profiles:
        port.typed["lossless"] = f"{at} congestion-notification-profile {profiles[0]}"
    elif lossy:
        port.typed["lossless"] = f"set class-of-service forwarding-classes class {lossy[0]} no-loss"
    else:
        missed = [code for name in known.no_loss if (code := _missed(known, notified, name))]
        path = f"set class-of-service congestion-notification-profile {notified} input"
        port.typed |= {"lossless": f"{path} {missed[0]} pfc"} if missed else {}
    marking = [name for name, each in known.maps.items() if known.marking & {*each.values()}]
    if not port.queues and marking and "marking" not in port.typed:
        port.typed["marking"] = f"{at} scheduler-map {marking[0]}"
    if classifier is None and known.classifiers:
        port.typed["classify"] = f"{at} unit 0 classifiers dscp {next(iter(known.classifiers))}"


def _stops_another(port: Interface, known: _Classes, notified: str) -> None:
    """Name a queue of a class without loss that no PAUSE stops, where the profile says which ones are."""
    outputs = known.paused.get(notified, {})
    for priority, queue in port.pauses.items() if outputs else ():
        if queue not in outputs.values():
            path = f"class-of-service congestion-notification-profile {notified} output ieee-802.1"
            first, stopped = next(iter(outputs.items()))
            bits = f"{first if priority not in outputs else priority:03b}"
            line = f"congestion-notification-profile {notified} output flow-control-queue {stopped}"
            why = f"a PAUSE stops queue {stopped}, and the class without loss has queue {queue}"
            port.overrides.append((line, why, f"set {path} code-point {bits} flow-control-queue {queue}"))


def _pauses(known: _Classes, profile: str) -> dict[int, int]:
    """Return queue by lossless priority: of the classes without loss, or else of the profile's own numbers."""
    outputs = known.paused.get(profile, {})
    of_queue = {queue: priority for priority, queue in outputs.items()}
    classes = [name for name in known.no_loss if name in known.queues]
    if not classes:
        lossy = {known.queues[name] for name in known.classes & known.queues.keys()}
        listed = {each: outputs.get(each, each) for each in sorted(known.priorities.get(profile, ()))} or outputs
        return {priority: queue for priority, queue in listed.items() if queue not in lossy}
    found = {}
    for name in classes:
        if not _missed(known, profile, name):
            queue, priority = known.queues[name], known.no_loss[name]
            found[of_queue.get(queue, queue) if priority is None else priority] = queue
    return found


def _missed(known: _Classes, profile: str, name: str) -> str:
    """Return the code point of a class that a notification profile does not watch; empty if it watches one."""
    dscps, priorities = known.input_dscps.get(profile, set()), known.priorities.get(profile, set())
    own = [dscp for each in known.classifiers.values() for dscp, of in each.items() if of == name]
    if dscps:
        return f"dscp code-point {own[0]:06b}" if own and not dscps & {*own} else ""
    priority = known.no_loss[name]
    return f"ieee-802.1 code-point {priority:03b}" if priorities and priority not in {None, *priorities} else ""


def _curve(levels: list[float], odds: list[float]) -> Curve | None:
    """Return a curve through points of percent, from the last without drops, or the first, to the last.

    None where there are no two, or not all could be read. Levels that fall while odds rise stay as they are.
    """
    if len(levels) != len(odds) or len(levels) < 2:
        return None
    pairs = sorted(zip(levels, odds, strict=True))
    if [odd for _, odd in pairs] != sorted(odds):
        fall = next((pair for pair in itertools.pairwise(levels) if pair[1] < pair[0]), None)
        return Curve(fall[0] / 100, fall[1] / 100, odds[-1], shares=True) if fall and odds == sorted(odds) else None
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
    """Yield the statements as words, from braces or from commands."""
    commands = [(verb, _words(line)) for verb, line in _COMMAND.findall(text)]
    if any(verb == "set" for verb, _ in commands):
        yield from _in_force(commands)
        return
    yield from (words for words in braced(text) if "inactive:" not in words)


def _inactive(text: str) -> dict[tuple[str, ...], str]:
    """Return of each statement that is inactive the command that activates it."""
    commands = [(verb, _words(line)) for verb, line in _COMMAND.findall(text)]
    found: dict[tuple[str, ...], str] = {}
    off = [words for verb, words in commands if verb == "deactivate"]
    for words in _in_force([each for each in commands if each[0] in ("set", "delete")]):
        for path in (each for each in off if words[: len(each)] == each):
            found[tuple(words)] = f"activate {' '.join(path)}"
    for words in () if commands else braced(text):
        if "inactive:" in words:
            at = words.index("inactive:")
            path = [*words[:at], words[at + 1]] if words[at + 1 :] else words[:at]
            found[tuple(word for word in words if word != "inactive:")] = f"activate {' '.join(path)}"
    return found


def _words(line: str) -> list[str]:
    return [word.strip('"') for word in _WORD.findall(line)]


def _in_force(commands: list[tuple[str, list[str]]]) -> Iterator[list[str]]:
    """Yield what ``set`` commands leave, without what is deleted after them or inactive in the end."""
    left: list[list[str]] = []
    inactive: list[list[str]] = []
    for verb, words in commands:
        if verb == "set" and "[" in words:  # a list is as many statements
            at = words.index("[")
            left += [[*words[:at], each] for each in words[at + 1 :] if each != "]"]
        elif verb == "set":
            left.append(words)
        elif verb == "delete":
            left = [each for each in left if each[: len(words)] != words]
        elif verb == "deactivate":
            inactive.append(words)
        else:
            inactive = [each for each in inactive if each != words]
    for words in left:
        if not any(words[: len(each)] == each for each in inactive):
            yield words


def _without_groups(found: Description, statements: list[list[str]]) -> Iterator[list[str]]:
    """Yield the statements outside of groups.

    Raises
    ------
    InputError
        If a group that is applied has ``class-of-service``.
    """
    applied = {name for words in statements if "apply-groups" in words for name in words[words.index("apply-groups") :]}
    for words in statements:
        match words:
            case ["groups", name, "class-of-service", *_] if name in applied:
                raise InputError(
                    f"{' '.join(words)[:160]}: groups are not read, and {name[:40]} is applied; give what `show "
                    "configuration class-of-service | display inheritance | display set` prints, and the same of "
                    "interfaces"
                )
            case ["groups", name, "interfaces" | "chassis" as what, *_] if name in applied:
                note = f"groups are not read: {what} of {name[:40]}"
                found.notes += [note] if note not in found.notes else []
            case ["groups", *_]:
                pass
            case _:
                yield words


@dataclasses.dataclass
class _Range:
    """An ``interface-range``: its ports, and the statements that hold for each."""

    members: list[str] = dataclasses.field(default_factory=list)
    statements: list[list[str]] = dataclasses.field(default_factory=list)
    bundle: str = ""

    def take(self, words: list[str]) -> None:
        match words:
            case ["member", *patterns]:
                self.members += [name for each in patterns for name in _members(each)]
            case ["member-range", first, "to", last]:
                self.members += names(f"{first}-{last.rpartition('/')[2]}")
            case [_, "802.3ad", bundle]:
                self.bundle = bundle
            case _:
                self.statements.append(words)

    def apply(self, found: Description) -> None:
        """Give each port the statements that it does not have itself."""
        for member in self.members:
            ports = fnmatch.filter(found.interfaces, member) if "*" in member else [member]
            for name in ports:
                own = found.interfaces.get(name, Interface())
                port = found.interfaces[name] = Interface()
                for words in self.statements:
                    _take(port, words)
                port.speed = own.speed or port.speed
                port.mtu = own.mtu or port.mtu
                port.up = own.up and port.up


def _members(pattern: str) -> list[str]:
    """Return the ports of a pattern such as ``et-0/0/[0-3,8]``."""
    match = _CLASSES.fullmatch(pattern)
    return [f"{match[1]}{number}{match[3]}" for number in numbers(match[2])] if match else [pattern]
