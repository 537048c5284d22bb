"""Common ground of the readers: what a switch's configuration says of marking and pausing, whoever made the switch."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from fluidcc.errors import InputError

# -- texts of nested commands as statements: by indentation, by braces, or each on a line of its own -------


_TOKEN = re.compile(r'/\*.*?\*/|#[^\n]*|"(?:[^"\\\n]|\\.)*"|[{};\[\]]|[^\s{};\[\]"#]+', re.DOTALL)
_DEEPEST = 64
_WORD = 3  # letters of a word that may be cut


def check_whole(text: str, heads: str = "") -> None:
    """Refuse a text that ends at a page, or lost its indentation.

    Parameters
    ----------
    text : str
    heads : str
        Pattern of lines under which others are indented; empty: none are.

    Raises
    ------
    InputError
        If it is such a text.
    """
    rows = [line for line in text.splitlines() if line.strip()]
    if rows and re.fullmatch(r"\s*[-<(]+\s*more\b.*", rows[-1], re.IGNORECASE):
        raise InputError(f"the text ends at {rows[-1].strip()[:40]}: it is cut; give all of it, printed without pages")
    follows = rf"^(?:{heads})\b.*\n(?!(?:{heads})\b|!)\S"
    if heads and not any(row[0].isspace() for row in rows) and (match := re.search(follows, text, re.MULTILINE)):
        raise InputError(
            f"{match[0].splitlines()[0][:60]}: the lines below are not indented, so that nothing says which are its "
            "own; give the text as the switch prints it"
        )


def doubt(text: str) -> str:
    """Say why a text may have been cut within its last line; empty if nothing speaks for it."""
    last = "" if text.endswith("\n") else text.split("\n")[-1].strip()
    *_, word = last.split() or [""]
    others = {each for each in text.split() if each != word}
    if len(word) < _WORD or text.split().count(word) > 1 or not any(each.startswith(word) for each in others):
        return ""
    longer = next(each for each in sorted(others) if each.startswith(word))
    return f"it ends within a line, `{last[-60:]}`, at what may be the start of {longer[:40]}"


def indented(text: str, comments: tuple[str, ...] = ("!", "#")) -> Iterator[tuple[str, ...]]:
    """Yield each line with the lines that it is indented under, the outermost first."""
    above: list[tuple[int, str]] = []
    for line in text.splitlines():
        words = line.strip()
        if not words or words.startswith(comments):
            continue
        depth = len(line) - len(line.lstrip())
        while above and above[-1][0] >= depth:
            above.pop()
        if len(above) < _DEEPEST:
            above.append((depth, words))
            yield tuple(each for _, each in above)


def nested(lines: Sequence[str]) -> tuple[str, ...]:
    """Indent each line under the one before it."""
    return tuple("  " * depth + line for depth, line in enumerate(lines))


def braced(text: str) -> Iterator[list[str]]:
    """Yield the statements of a text with braces as their words, those around them first.

    Raises
    ------
    InputError
        At the end, if a brace is not closed.
    """
    above: list[list[str]] = []
    now: list[str] = []
    for token in _TOKEN.findall(text):
        if token.startswith(("/*", "#")):
            continue
        if token == "{":
            above.append(now)
            now = []
        elif token == "}":
            now = []
            if above:
                above.pop()
        elif token == ";":
            yield [word for words in above for word in words] + now
            now = []
        else:
            now.append(token.strip('"'))
    if above:
        raise InputError(f"{' '.join(above[0])[:40]} {{ is not closed: the text is cut; give all of it")


def mapped(text: str) -> Iterator[list[str]]:
    """Yield the leaves of nested mappings (YAML without its fine points) as words, the keys above first.

    Raises
    ------
    InputError
        If a mapping is written in braces.
    """
    # A list's dash is of the depth of what follows it.
    plain = "\n".join(re.sub(r"^(\s*)-(\s)", r"\1 \2", line) for line in text.splitlines())
    for lines in indented(plain, comments=("#", "---")):
        key, colon, value = re.sub(r"\s#.*", "", lines[-1]).partition(":")
        if value.strip().startswith("{") and value.strip(" {}"):
            raise InputError(f"{lines[-1][:60]}: write each key on a line of its own, as `nv config show` prints them")
        if colon and value.strip():
            yield [line.partition(":")[0].strip(" '\"") for line in (*lines[:-1], key)] + [value.strip(" '\"")]


# -- descriptions ------------------------------------------------------------------------------------------


_KB = {"": 1.0, "b": 1.0, "byte": 1.0, "kbyte": 1e3, "kb": 1e3, "mbyte": 1e6, "mb": 1e6}
_SECONDS = {"us": 1e-6, "microsecond": 1e-6, "ms": 1e-3, "millisecond": 1e-3}
_CLASSES = {"ef": 46, "default": 0} | {f"cs{n}": 8 * n for n in range(8)}  # RFC 2474, 2597, 3246
_CLASSES |= {f"af{i}{j}": 8 * i + 2 * j for i in range(1, 5) for j in range(1, 4)}
_MAP = "FILE"  # name of the one map of each kind that a description becomes
_THRESHOLDS = re.compile(r"minimum-threshold \d+\s*[a-z]* maximum-threshold \d+\s*[a-z]*", re.ASCII)
_RANGE = re.compile(r"(.*?)(\d+)-(.*?)(\d+)", re.ASCII)
_FIRST_OF_LANES = re.compile(r"([A-Za-z]+)(\d+)-(\d+)((?:/\d+)+)", re.ASCII)  # Ethernet1-4/1
_ETHERNET = re.compile(r"interface\s+(e[a-z]*)\s*(\d[^.]*)", re.ASCII | re.IGNORECASE)  # with a dot: part of a port
_MOST_PORTS = 1024  # of a range
ERRDISABLE = "errdisable"  # a watchdog's action, by which the port goes down
UNNAMED = "port"  # one that stands for all


class Words(NamedTuple):
    """Names that a system has for what an audit suggests; ``{port}``, ``{queue}``, ``{priority}``... are filled in.

    ``counters`` are the commands that show what a rollout must look at; those of SONiC an audit reads again. Lines that
    set marking (`Lines`) stand between ``enter`` and ``leave``; what begins with ``comment`` the system ignores.
    ``ecn`` turns ECN on in a profile, and at a queue without one, where ``marking`` does not; ``green`` a SONiC profile
    for green packets.
    """

    system: str
    lossless: str = ""
    lossy: str = ""
    marking: str = ""
    watchdog: str = ""
    buffers: str = ""
    classify: str = ""
    counters: str = (
        "show interfaces counters, show pfc counters, show queue counters, show queue watermark unicast, "
        "show priority-group drop counters"
    )
    comment: str = "#"
    ecn: tuple[str, ...] = ()
    green: str = ""
    enter: tuple[str, ...] = ()
    leave: tuple[str, ...] = ()


class Lines(NamedTuple):
    """Lines to type for a curve; ``{kmin}``, ``{kmax}`` and ``{pmax}`` stand for its values, in the curve's own units.

    ``back`` are those for the values of the file. Where there are none, ``missing`` says what the file leaves open.
    """

    new: tuple[str, ...] = ()
    back: tuple[str, ...] = ()
    missing: str = "the file does not name what sets them"


_OPEN = Lines()


@dataclasses.dataclass(frozen=True)
class Curve:
    """A queue's marking: from ``low`` on, with ``percent`` at ``high``.

    Attributes
    ----------
    low, high : float
        In bytes; as shares from 0 to 1 of what the queue may fill if ``shares``; in seconds of the port's rate if
        ``times``.
    percent : float
    ecn : bool
        Whether packets are marked rather than dropped.
    unread : str
        The line that makes the queue mark, where its numbers were not read and none of those above holds.
    lines : Lines
        What to type for other values.
    green : bool or None
        Whether SONiC's profile is on for green packets; None where it does not say.
    """

    low: float
    high: float
    percent: float
    ecn: bool = True
    shares: bool = False
    times: bool = False
    unread: str = ""
    lines: Lines = dataclasses.field(default=_OPEN, compare=False)
    green: bool | None = True


def unread(line: str) -> Curve:
    """Return the curve of a queue that marks by a line whose numbers were not read."""
    return Curve(0.0, 0.0, 0.0, unread=line, lines=Lines(missing="the line of marking was not read"))


def random_detect(lines: Sequence[str], probability: str) -> Lines:
    """Return how to type a line of ``random-detect`` within those around it; ``probability`` is its word for Pmax."""
    *above, line = lines
    others = re.sub(rf"\s+{probability} \S+", "", line)
    values = f"minimum-threshold {{kmin}} bytes maximum-threshold {{kmax}} bytes {probability} {{pmax}}"
    return Lines(nested([*above, _THRESHOLDS.sub(values, others)]), nested(lines))


@dataclasses.dataclass
class Interface:
    """A port.

    Attributes
    ----------
    speed : float or None
        In Mb/s.
    queues : dict
        Name of a curve by queue.
    pauses : dict
        Queue by PFC priority that is lossless.
    watchdog : bool or None
        Whether PFC is watched; None where the file does not say.
    action : str
        The watchdog's own action here; empty: the switch's.
    by_dscp : bool
        Whether a map of DSCPs decides on the queue here.
    dscps : dict or None
        The port's own map, queue by DSCP; None: the switch's.
    negotiated : str
        Why PFC is left to DCBX, so that `pauses` holds only where the other end agrees; or else empty.
    sends_pause : bool
        Whether the switch sends PAUSE here at all; if not, no priority is lossless.
    overrides : list of tuple
        Lines that override what others say of the port: the line, what it does, and what to type instead.
    asymmetric : bool
        Whether it obeys PAUSE of all priorities and sends it for the lossless ones alone.
    buffers : list of str
        Lines on its buffers and on the thresholds of PAUSE, which are not read.
    typed : dict
        By the name of a field of `Words`: what to type instead, where the file has most of it; ``{port}`` is filled in.
    """

    speed: float | None = None
    mtu: int | None = None
    up: bool = True
    queues: dict[int, str] = dataclasses.field(default_factory=dict)
    pauses: dict[int, int] = dataclasses.field(default_factory=dict)
    watchdog: bool | None = None
    action: str = ""
    by_dscp: bool = True
    dscps: dict[int, int] | None = None
    negotiated: str = ""
    sends_pause: bool = True
    asymmetric: bool = False
    overrides: list[tuple[str, str, str]] = dataclasses.field(default_factory=list)
    buffers: list[str] = dataclasses.field(default_factory=list)
    typed: dict[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Description:
    """A switch's marking and pausing.

    Attributes
    ----------
    curves : dict
    interfaces : dict
    dscps : dict
        Queue by DSCP; empty where the file does not say.
    action : str
        What a watchdog does: drop, forward, alert or errdisable.
    notes : list of str
        Assumptions, and what was left out.
    doubts : list of str
        Why the text may be cut.
    """

    curves: dict[str, Curve] = dataclasses.field(default_factory=dict)
    interfaces: dict[str, Interface] = dataclasses.field(default_factory=dict)
    dscps: dict[int, int] = dataclasses.field(default_factory=dict)
    action: str = "drop"
    detection: str = ""
    notes: list[str] = dataclasses.field(default_factory=list)
    doubts: list[str] = dataclasses.field(default_factory=list)


class Reader(Protocol):
    """A module that reads one system's texts."""

    WORDS: Words

    def recognises(self, text: str, /) -> bool:
        """Tell whether a text is of this system."""
        ...

    def read(self, text: str, /) -> Description:
        """Return what it says."""
        ...


def tables_of(found: Description) -> dict[str, Any]:
    """Return a description as the tables of a SONiC configuration, which the audit reads."""
    tables: dict[str, Any] = {
        "PORT": {name: _port(interface) for name, interface in found.interfaces.items()},
        "WRED_PROFILE": {name: _profile(curve) for name, curve in found.curves.items()},
        "QUEUE": {
            f"{name}|{queue}": {"wred_profile": curve}
            for name, interface in found.interfaces.items()
            for queue, curve in sorted(interface.queues.items())
        },
        "PORT_QOS_MAP": {},
        "NOTES": {note: {} for note in found.notes},
        "DOUBTS": {doubt: {} for doubt in found.doubts},
        "LINES": {
            name: {
                "negotiated": interface.negotiated,
                "sends_pause": interface.sends_pause,
                "overrides": interface.overrides,
                "buffers": interface.buffers,
                "typed": interface.typed,
            }
            for name, interface in found.interfaces.items()
        },
    }
    pauses = {name: interface.pauses for name, interface in found.interfaces.items()}
    for name, lossless in pauses.items():
        entry = {"pfc_enable": ",".join(map(str, sorted(lossless)))}
        if any(priority != queue for priority, queue in lossless.items()):
            entry["pfc_to_queue_map"] = _named(tables, "MAP_PFC_PRIORITY_TO_QUEUE", name, lossless)
        port = found.interfaces[name]
        dscps = found.dscps if port.dscps is None else port.dscps
        if dscps and port.by_dscp:
            own = _MAP if port.dscps is None else name
            entry["dscp_to_tc_map"] = _named(tables, "DSCP_TO_TC_MAP", own, dscps)
        tables["PORT_QOS_MAP"][name] = entry
    watched = [name for name, interface in found.interfaces.items() if interface.watchdog]
    if any(interface.watchdog is not None for interface in found.interfaces.values()):
        tables["PFC_WD"] = {
            name: {"action": found.interfaces[name].action or found.action, "detection_time": found.detection}
            for name in watched
        }
    return tables


def _named(tables: dict[str, Any], table: str, name: str, numbers: dict[int, int]) -> str:
    """Return the name of a map in a table: of one that is there already, or else this one."""
    known, texts = tables.setdefault(table, {}), _texts(numbers)
    name = next((each for each, other in known.items() if other == texts), name)
    known[name] = texts
    return name


def _texts(numbers: dict[int, int]) -> dict[str, str]:
    return {str(key): str(value) for key, value in numbers.items()}


def _port(interface: Interface) -> dict[str, str]:
    fields = {"admin_status": "up" if interface.up else "down"}
    if interface.speed is not None:
        fields["speed"] = f"{interface.speed:.15g}"
    if interface.mtu is not None:
        fields["mtu"] = str(interface.mtu)
    if interface.asymmetric:
        fields["pfc_asym"] = "on"
    return fields


def _profile(curve: Curve) -> dict[str, Any]:
    if curve.unread:
        return {"unread": curve.unread, "lines": curve.lines}
    unit = "share" if curve.shares else "time" if curve.times else "threshold"
    enabled = {} if curve.green is None else {"wred_green_enable": str(curve.green).lower()}
    return enabled | {
        "ecn": "ecn_all" if curve.ecn else "ecn_none",
        f"green_min_{unit}": f"{curve.low:.15g}",
        f"green_max_{unit}": f"{curve.high:.15g}",
        "green_drop_probability": f"{curve.percent:.15g}",
        "lines": curve.lines,
    }


def alone(found: Description) -> None:
    """Give a description without ports one that stands for all of them."""
    if not found.interfaces:
        found.interfaces[UNNAMED] = Interface()
        found.notes.append("no ports are listed: one stands for all")


def bundled(found: Description, bundles: dict[str, Interface], used: Iterable[str]) -> None:
    """Let bundles of ports whose members the file does not name stand for them."""
    for name in sorted(bundles.keys() - {*used}):
        found.interfaces[name] = bundles[name]
        found.notes.append(f"no members of {name} are in the file: it stands for them")


def numbers(text: str) -> list[int]:
    """Return the whole numbers of a list such as ``0,3-5 7``."""
    found: list[int] = []
    for first, last in re.findall(r"(\d{1,4})(?:\s*-\s*(\d{1,4}))?", text, re.ASCII):
        found += range(int(first), int(last or first) + 1)
    return found


def shaped(port: Interface, queue: int, line: str, back: str) -> None:
    """Take a line that keeps a queue below the port's rate, and the one that takes it back."""
    if queue in port.queues or queue in port.pauses.values():
        why = f"queue {queue} may send no more than that, which is not modelled: what follows is of the port's rate"
        port.overrides.append((line, why, back))


def code_points(text: str) -> list[int]:
    """Return the DSCPs of a list of numbers, ranges and names such as ``af31``."""
    found = numbers(re.sub(r"[A-Za-z]\w*", "", text))
    found += [_CLASSES[word] for word in re.findall(r"[a-z]\w*", text.lower()) if word in _CLASSES]
    return [dscp for dscp in found if dscp < 64]


def amount(number: str, unit: str, others: dict[str, float] | None = None) -> tuple[float, bool] | None:
    """Return a threshold in bytes, or in seconds and True; None in a unit that is neither."""
    name = unit.lower()
    known = _KB | (others or {})
    for each in (name, name.removesuffix("s")):
        if each in known:
            return float(number) * known[each], False
        if each in _SECONDS:
            return float(number) * _SECONDS[each], True
    return None


def averaged(where: str, line: str) -> list[str]:
    """Return the note on a line of marking whose ``weight`` averages the queue; none on others."""
    match = re.search(r"\bweight ([1-9]\d*)\b", line, re.ASCII)
    said = "the switch marks by an average of the queue, the model by the queue at that moment"
    return [f"{where}: weight {match[1][:4]}: {said}; weight 0 averages nothing"] if match else []


def whole_percent(text: str) -> float | None:
    """Return a whole percent; None of anything else, such as the fraction 0.1 where 10 is meant, or 0.1 %."""
    match = re.fullmatch(r"(\d+)\s*%?", text.strip(), re.ASCII)
    return float(match[1]) if match else None


def names(text: str) -> list[str]:
    """Return the ports of a list such as ``swp1-3,swp5s0-1`` or ``Ethernet1/1-4``."""
    found: list[str] = []
    stem = ""
    for part in filter(None, re.split(r"\s*,\s*", text.strip())):
        if part[0].isdigit():  # Ethernet1/1,1/5: as the one before
            part = stem + part
        stem = re.match(r"[A-Za-z]*", part)[0]  # type: ignore[index]
        match, lanes = _RANGE.fullmatch(part), _FIRST_OF_LANES.fullmatch(part)
        if lanes is not None:
            before, first, last, after = lanes.groups()
            again = ""
        elif match is not None:
            before, first, again, last = match.groups()
            after = ""
        else:
            found.append(part)
            continue
        if again in ("", before, before.removeprefix(stem)) and int(first) <= int(last) < int(first) + _MOST_PORTS:
            found += [f"{before}{number}{after}" for number in range(int(first), int(last) + 1)]
        else:
            found.append(part)
    return found


def ethernets(head: str) -> list[str]:
    """Return the ports of a line such as ``interface Ethernet1/1-4,7`` or ``interface eth1/1``; none of other lines.

    Raises
    ------
    InputError
        If it lists ports in another way.
    """
    match = _ETHERNET.fullmatch(head)
    if match is None or not "ethernet".startswith(match[1].lower()):
        return []
    listed = re.sub(r"(?<=[,-])e[a-z]*", "", re.sub(r"\s", "", match[2]), flags=re.IGNORECASE)
    found = names(f"Ethernet{listed}")
    if wrong := next((name for name in found if not re.fullmatch(r"Ethernet\d+(/\d+)*", name, re.ASCII)), None):
        raise InputError(
            f"{head[:60]}: {wrong[:40]} is no port; write ports with commas between, or a range of one number, such as "
            "Ethernet1/1-4 or Ethernet1-4/1"
        )
    return found


def united(parts: Iterable[str]) -> str:
    """Join the words of a statement by single spaces."""
    return " ".join(" ".join(parts).split())
