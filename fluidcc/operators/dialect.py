"""Words of the system that runs on a switch, where that is no SONiC or its file is none: findings, and lines to type.

What SONiC calls one thing, others call another.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fluidcc.errors import InputError
from fluidcc.operators.config_db import ConfigDB, Fields
from fluidcc.operators.finding import SWITCH, Finding
from fluidcc.operators.nvidia_settings import whole_of
from fluidcc.operators.ports import PortGroup
from fluidcc.operators.sonic import SwitchPort
from fluidcc.operators.switches import SONIC
from fluidcc.operators.switches.description import Lines, Words
from fluidcc.operators.thresholds import advice
from fluidcc.units import SIZE, show

# Names of SONiC's fields and tables within sentences.
_FIELDS = {
    r"green_min_threshold": "Kmin",
    r"green_max_threshold": "Kmax",
    r"WRED_PROFILE": "profile",
    r"DSCP_TO_TC_MAP\|\S+(?= and)": "the map of DSCPs",
    r"(?: in)? DSCP_TO_TC_MAP\|\S+": "",
}
# What to do about a kind of finding: a field of `Words`.
_SUGGESTIONS = {
    "PFC is off": "lossless",
    "PFC is on for another queue than ECN": "lossy",
    "ECN is off": "marking",
    "marking was not read": "marking",
    "green packets may go unmarked": "green",
    "no PFC watchdog": "watchdog",
    "the PFC watchdog only reports": "watchdog",
    "the PFC watchdog takes the port down": "watchdog",
    "PFC depends on DCBX": "lossless",
    "PFC before ECN not checked": "buffers",
    "no DSCP leads to this queue": "classify",
}
_UNSAID = "such a file says nothing of buffers and of the thresholds of PAUSE"


def in_words(finding: Finding, port: SwitchPort, words: Words) -> Finding:
    """Return a finding of a switch that is no SONiC, or whose file is none, with what to type there.

    Values are not changed by a JSON pointer in such a file.
    """
    why, suggest = finding.why, finding.suggest
    for pattern, name in _FIELDS.items():
        why, suggest = re.sub(pattern, name, why), re.sub(pattern, name, suggest)
    wanted = _SUGGESTIONS.get(finding.what)
    kmin, kmax = advice(port) or ("KMIN", "KMAX")
    pmax, profile = "1", port.profile if words.system == SONIC.system else port.profile.removesuffix(f"-{port.queue}")
    if finding.what == "DSCPs are not checked":
        suggest = "hand over the whole configuration, with what leads DSCPs to queues"
    elif wanted == "buffers":
        why = f"not read: {', '.join(port.buffer_lines)}" if port.buffer_lines else _UNSAID
        suggest = "compare Kmin with these on the switch: {}"
    elif finding.what == "marking was not read":  # the thresholds are there, and nothing says that others are better
        suggest += ": {}"
        kmin, kmax, pmax = "KMIN", "KMAX", "PERCENT"
    elif wanted is not None:
        suggest = "{}"
    if wanted is not None:
        own = dict(port.typed).get(wanted)
        on = words.ecn and finding.what == "ECN is off"
        text = (words.ecn[not port.profile] if on else getattr(words, wanted)).format(
            port=port.name,
            queue=port.queue,
            priority=port.priority,
            kmin=kmin,
            kmax=kmax,
            pmax=pmax,
            profile=profile or "PROFILE",
        )
        text = text if own is None else own.replace("{port}", port.name)
        suggest = suggest.format(text)
    kept = tuple(change for change in finding.apply if change.file != SWITCH)
    return dataclasses.replace(finding, why=why, suggest=suggest, apply=kept)


# -- lines that set thresholds, and those that take them back ----------------------------------------------


NEW, BACK = "switch.txt", "switch-undo.txt"
_FULL = 100  # percent


def threshold_text(name: str, value: float, notes: list[str]) -> str:
    """Format a threshold as most switches have it: whole bytes, whole percents, as text."""
    exact = 100 * value if name == "pmax" else value
    return str(whole_of(name, exact, notes, "percent" if name == "pmax" else "bytes"))


def in_order(low: float, high: float) -> None:
    """Refuse a Kmin above Kmax.

    Raises
    ------
    InputError
        If it is.
    """
    if low > high:
        raise InputError(f"kmin: {low:.0f} bytes would be above kmax, {high:.0f} bytes; change both")


class _Typed(NamedTuple):
    """Comments and lines for the ports that one place of the file sets."""

    comments: list[str]
    new: tuple[str, ...] = ()
    back: tuple[str, ...] = ()


def files_of(
    config: ConfigDB, groups: Sequence[PortGroup], wanted: Mapping[str, float], notes: list[str]
) -> dict[str, str]:
    """Return what to paste for some ports' thresholds, and the way back, by file name.

    Parameters
    ----------
    config : ConfigDB
    groups : sequence of PortGroup
    wanted : mapping
        Thresholds in SI; those that are not there stay.
    notes : list of str
        Receives what else the lines change, and what is rounded or left open.

    Returns
    -------
    dict of str
        `BACK` only if there is something to paste.

    Raises
    ------
    InputError
        If Kmin is above Kmax, or a value is rounded to nothing.
    """
    places: dict[tuple[str, ...], list[PortGroup]] = {}
    for group in groups:
        profile = group.switch.profile
        places.setdefault(_lines(config, profile).new or (profile,), []).append(group)
    found = [_place(config, alike, wanted, notes) for alike in places.values()]
    words, comments = config.system, [line for each in found for line in each.comments]
    if not comments:
        return {}
    files = {NEW: _text(words, comments, [line for each in found for line in each.new])}
    back = [line for each in found for line in each.back]
    if back:
        files[BACK] = _text(words, ["the values that the file had"], back)
    return files


def _text(words: Words, comments: Sequence[str], lines: Sequence[str]) -> str:
    within = [*words.enter, *lines, *words.leave] if lines else []
    return "\n".join([*(f"{words.comment} {comment}" for comment in comments), *within, ""])


def _profile(config: ConfigDB, name: str) -> Fields:
    return config.needed("WRED_PROFILE", name, "the ports that are meant")


def _lines(config: ConfigDB, name: str) -> Lines:
    return _profile(config, name)["lines"]


def _place(config: ConfigDB, groups: Sequence[PortGroup], wanted: Mapping[str, float], notes: list[str]) -> _Typed:
    """Return the lines for ports whose queues are set in one place; in words if that is open."""
    switch, words = groups[0].switch, config.system
    entry, lines = _profile(config, switch.profile), _lines(config, switch.profile)
    now = {"kmin": switch.kmin, "kmax": switch.kmax, "pmax": switch.pmax}
    after = {name: wanted.get(name, value) for name, value in now.items()}
    if after == now:
        return _Typed([])
    texts = {
        name: name.upper() if value is None else threshold_text(name, value, notes) for name, value in after.items()
    }
    if after["kmin"] is not None and after["kmax"] is not None:
        in_order(after["kmin"], after["kmax"])
    which = _named(groups)
    values = f"Kmin {texts['kmin']} bytes, Kmax {texts['kmax']} bytes, Pmax {texts['pmax']} %"
    comments, missing = [f"{words.system}, {which}: {values}"], lines.missing
    typed = dict(texts)
    if lines.new and "green_max_share" in entry:
        whole = switch.kmax / float(entry["green_max_share"]) if switch.kmax else None
        levels, missing = _levels(whole, after, notes)
        if levels and whole is not None:
            comments.append(f"fill levels are {levels['kmin']} and {levels['kmax']} % of {show(whole, SIZE)}")
        typed |= levels
    elif lines.new:
        missing = ""
    if missing:
        notes.append(f"{which}: {missing}: {NEW} says in words what to set")
        named = {"port": ", ".join(groups[0].names), "queue": switch.queue, "priority": switch.priority}
        told = words.marking.format(**named, **texts, profile="PROFILE")
        return _Typed([*comments, f"nothing to paste, as {missing}; set it by hand: {told}"])
    if others := _others(config, lines, groups):
        also = f"the same lines also change {', '.join(f'{port}|{queue}' for port, queue in others)}"
        notes.append(also)
        comments.append(also)
    return _Typed(comments, tuple(_filled(line, typed) for line in lines.new), lines.back)


def _named(groups: Sequence[PortGroup]) -> str:
    """Name queues and their ports."""
    ports: dict[int, list[str]] = {}
    for group in groups:
        ports.setdefault(group.switch.queue, []).extend(group.names)
    return ", ".join(f"queue {queue} of {', '.join(names)}" for queue, names in ports.items())


def _filled(line: str, texts: Mapping[str, str]) -> str:
    for name, text in texts.items():
        line = line.replace(f"{{{name}}}", text)
    return line


def _levels(whole: float | None, after: Mapping[str, float | None], notes: list[str]) -> tuple[dict[str, str], str]:
    """Return thresholds as whole percents of what the queue may fill, or why there are none."""
    kmin, kmax = after["kmin"], after["kmax"]
    if whole is None or kmin is None or kmax is None:
        return {}, "fill levels are percent of what the queue may fill, which was not given (--buffer)"
    exact = {"kmin": _FULL * kmin / whole, "kmax": _FULL * kmax / whole}
    low, high = (round(value) for value in exact.values())
    if high > _FULL:
        return {}, f"Kmax is more than the {show(whole, SIZE)} that the queue may fill"
    if low == high:
        return {}, f"both thresholds are {low} % of the {show(whole, SIZE)} that the queue may fill"
    for name, level in (("kmin", low), ("kmax", high)):
        if abs(level - exact[name]) > 0.01 * exact[name]:
            notes.append(
                f"{name}: {exact[name]:.3g} % of the {show(whole, SIZE)} that the queue may fill is written as "
                f"{level} %, {show(level * whole / _FULL, SIZE)}"
            )
    return {"kmin": str(low), "kmax": str(high)}, ""


def _others(config: ConfigDB, lines: Lines, groups: Sequence[PortGroup]) -> list[tuple[str, int]]:
    """Ports and queues that the same lines set, and that are not meant."""
    meant = {(port, group.switch.queue) for group in groups for port in group.names}
    return [
        (port, queue)
        for port, ranges in config.ranges("QUEUE").items()
        for first, last, fields in ranges
        for queue in range(first, last + 1)
        if (port, queue) not in meant and _lines(config, str(fields["wred_profile"])).new == lines.new
    ]
