"""Reading files with counters, and the counters of all files together."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from fluidcc.errors import InputError
from fluidcc.files import LARGEST, read_whole, refuse_special
from fluidcc.operators.counters.model import (
    ETHERNET,
    NIC_VALUES,
    PORT,
    PORT_VALUES,
    PRIORITY_VALUES,
    QUEUE_VALUES,
    RDMA,
    Counters,
    Entry,
    Meaning,
    NicCounters,
    PortCounters,
    is_sum,
    meaning_of,
    number,
    shown,
)
from fluidcc.operators.counters.terminal import Terminal, stem

# -- long form: a CSV with a row for each counter, as queries of monitoring systems give it ----------------


_COLUMNS = (("device", "host", "switch"), ("port", "interface"), ("queue", "priority"), ("counter",), ("value", "rate"))
_HEADER = "device,port,queue,counter,value"
_RDMA = re.compile(r"(?:mlx|roce|ibp)\S*", re.ASCII)


class _Row(NamedTuple):
    where: str
    device: str
    unit: str
    queue: str
    counter: str
    value: str


def header_of(text: str) -> list[str] | None:
    """Return the names of the columns; None if the text is no such CSV."""
    first = text.lstrip().partition("\n")[0][:1000].lower().replace('"', "")
    names = [name.strip() for name in first.split(",")]
    return names if "counter" in names and {"value", "rate"} & {*names} else None


def csv_entries(text: str, name: str) -> Iterator[Entry]:
    """Read a CSV in long form; a unit with a counter that ports lack is a NIC, as is one without a name.

    Raises
    ------
    InputError
        If a column is missing or given twice, a row has another number of them, a counter is unknown, or a value is no
        number.
    """
    read = [(row, *_meanings(row)) for row in _rows(text, name)]
    nics = {(row.device, row.unit) for row, of_port, _ in read if not (of_port and row.unit)}
    for row, of_port, of_nic in read:
        is_nic = (row.device, row.unit) in nics
        meaning = of_nic if is_nic else of_port
        if meaning is None:
            raise InputError(
                f"{row.where}: {shown(row.counter)} is a switch's counter, and {shown(f'{row.device} {row.unit}')} a "
                "NIC, by other counters or by having no port; write the port of a switch, and none for a NIC"
            )
        if (value := number(row.value, row.where, row.counter)) is not None:
            kind = PORT if not is_nic else RDMA if _RDMA.fullmatch(row.unit) else ETHERNET
            value *= meaning.factor
            yield Entry(
                *(kind, row.device, row.unit, meaning.queue, meaning.counter, row.counter, value, row.where),
                meaning.fallback,
            )


def _meanings(row: _Row) -> tuple[Meaning | None, Meaning | None]:
    """Return the meaning of a row's counter as one of a port, and as one of a NIC."""
    own = meaning_of(row.counter)
    queue = int(row.queue) if row.queue else own.queue if own else None
    ports, nics = (PORT_VALUES, NIC_VALUES) if queue is None else (QUEUE_VALUES, PRIORITY_VALUES)
    found = own or Meaning(False, row.counter)
    if own is None or own.queue in (None, queue):
        of_port = found._replace(queue=queue) if found.counter in ports and not found.nic else None
        of_nic = found._replace(queue=queue) if found.counter in nics and (own is None or own.nic) else None
        if of_port or of_nic:
            return of_port, of_nic
    place = f"of queue {row.queue}" if row.queue else "without a queue"
    raise InputError(
        f"{row.where}: unknown counter {shown(row.counter)} {place}; write one of {', '.join(sorted(ports | nics))}, "
        "or the device's own name such as tx_prio3_pause"
    )


def _rows(text: str, name: str) -> Iterator[_Row]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    places: list[int | None] = []
    header: list[str] = []
    try:
        for cells in reader:
            where = f"{name}:{reader.line_num}"
            if not any(each.strip() for each in cells):
                continue
            if not header:
                header = [each.strip().lower() for each in cells]
                places = [_place(header, known, where) for known in _COLUMNS]
                continue
            if len(cells) != len(header):
                raise InputError(f"{where}: {len(cells)} columns where the header has {len(header)}; write {_HEADER}")
            row = _Row(where, *("" if place is None else cells[place].strip() for place in places))
            if not row.device:
                raise InputError(f"{where}: names no device; write a switch or a host into the column device")
            if row.queue and not re.fullmatch(r"\d{1,3}", row.queue, re.ASCII):
                raise InputError(f"{where}: {shown(row.queue)} is no queue; write a number such as 3, or nothing")
            yield row
    except csv.Error as error:
        raise InputError(f"{name}:{reader.line_num}: not CSV ({error}); write {_HEADER}") from None


def _place(header: list[str], known: tuple[str, ...], where: str) -> int | None:
    """Return the place of a column by its names; None if it may be missing and is."""
    found = [place for place, name in enumerate(header) if name in known]
    if len(found) > 1 or not (found or known in _COLUMNS[1:3]):
        raise InputError(f"{where}: needs one column {' or '.join(known)}; write the header {_HEADER}")
    return found[0] if found else None


# -- files -------------------------------------------------------------------------------------------------


EXPECTED = (
    "what SONiC's show interfaces, pfc, queue or priority-group commands, ethtool -S or rdma statistic printed, a dump "
    "of COUNTERS_DB, or a CSV with the columns device,port,queue,counter,value"
)


def read_counters(paths: Sequence[str | os.PathLike[str]]) -> Counters:
    """Read the counters of switches and NICs from files; one file may hold those of several devices.

    A device has the name in the prompt before its output, or in a heading such as ``==> host7.txt <==``, or else that
    of the file. Of several watermarks of a queue the highest counts.

    Parameters
    ----------
    paths : sequence of str or path
        Files, or folders of files: what SONiC's ``show`` commands, ``ethtool -S`` or ``rdma statistic`` print, a dump
        of COUNTERS_DB, files of ``hw_counters``, or a CSV in long form.

    Returns
    -------
    Counters

    Raises
    ------
    InputError
        If a file cannot be read or has no counters, a line of it is damaged, a counter has two values, or totals and
        rates are mixed.
    """
    paths = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    if not paths:
        raise InputError(f"no file of counters; give {EXPECTED}")
    found: list[Entry] = []
    kinds: dict[bool, str] = {}
    silent: dict[str, str] = {}
    for path in _files(paths):
        name, text = _text(path)
        header = header_of(text)
        kinds.setdefault("rate" in (header or ()), name)
        read = list(csv_entries(text, name) if header else Terminal(text, name, stem(os.fspath(path))).entries())
        if not read:
            silent[name] = f"{name}: found no counters in it ({_impression(text)}); give {EXPECTED}"
        found += read
    # A host of many that gave none is left out; a file that was named has to have some.
    asked = {os.fspath(path) for path in paths}
    if refused := [said for name, said in silent.items() if not found or name in asked]:
        raise InputError(refused[0])
    if len(kinds) > 1:
        raise InputError(f"{kinds[True]} has rates and {kinds[False]} totals; give files of one kind")
    return Counters(_ports(found), _nics(found), 1.0 if True in kinds else None, tuple(silent))


def read_growth(
    late: Sequence[str | os.PathLike[str]],
    early: Sequence[str | os.PathLike[str]] = (),
    seconds: float | None = None,
) -> Counters:
    """Read what was counted between two readings, or without an earlier one all since the counters were cleared.

    Raises
    ------
    InputError
        As `read_counters` and `Counters.since`, or if there are rates and no seconds, or these are none.
    """
    if seconds is not None and seconds <= 0:
        raise InputError("interval: it is the time between two readings of counters; write for example 60s")
    read = read_counters(late)
    if early:
        return read.since(read_counters(early))
    if read.seconds is None:
        return read
    if seconds is None:
        raise InputError("counters: these are rates; give --interval, the time over which they are means")
    return read.times(seconds)


def _files(paths: Iterable[str | os.PathLike[str]]) -> list[str]:
    """Return files, and those of folders."""
    found: list[str] = []
    for path in (os.fspath(each) for each in paths):
        if not os.path.isdir(path):
            found.append(path)
            continue
        inside = [entry for entry in os.scandir(path) if not entry.name.startswith(".")]
        below = [entry.name for entry in inside if entry.is_dir()]
        if below or not inside:
            what = f"a folder {shown(below[0])} within" if below else "no files"
            raise InputError(f"{shown(path)}: has {what}; give a folder of files alone, each named as its device")
        found += sorted(entry.path for entry in inside)
    return found


def _text(path: str | os.PathLike[str]) -> tuple[str, str]:
    """Return the name of a file for messages, and its text."""
    plain = os.fspath(path)
    name = plain if plain.isprintable() and len(plain) <= 200 else ascii(plain)[:200]
    refuse_special(path, "a file of counters")
    try:
        raw = read_whole(path, LARGEST)
        text = raw.decode("utf-16" if raw.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{name}: is not UTF-8 text (byte {error.start}); give {EXPECTED}") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a file name"
        raise InputError(f"{name}: cannot be read ({reason}); give {EXPECTED}") from None
    if "\0" in text or not text.strip():
        raise InputError(f"{name}: is {'no text' if text.strip() else 'empty'}; give {EXPECTED}")
    return name, text


def _impression(text: str) -> str:
    """Say what a text without counters begins with."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return f"it begins with {shown(text.strip().partition(chr(10))[0])}"
    return f"it is JSON with {', '.join(map(shown, [*document][:6]))}" if isinstance(document, dict) else "it is JSON"


def _ports(found: Iterable[Entry]) -> tuple[PortCounters, ...]:
    grouped: dict[tuple[str, str], list[Entry]] = {}
    for each in found:
        if each.kind == PORT:
            grouped.setdefault((each.device, each.unit), []).append(each)
    return tuple(PortCounters(*key, *_values(every)) for key, every in sorted(grouped.items()))


def _nics(found: Iterable[Entry]) -> tuple[NicCounters, ...]:
    """Return the NICs: interface and RDMA device of a host are one where it has one of each."""
    hosts: dict[str, dict[tuple[str, str], list[Entry]]] = {}
    for each in found:
        if each.kind != PORT:
            hosts.setdefault(each.device, {}).setdefault((each.kind, each.unit), []).append(each)
    named: dict[str, list[Entry]] = {}
    for host, units in hosts.items():
        one = len({kind for kind, _ in units}) == len(units)
        for (_, unit), every in units.items():
            named.setdefault(host if one else f"{host} {unit}".strip(), []).extend(every)
    return tuple(NicCounters(name, *_values(every)) for name, every in sorted(named.items()))


def _values(entries: Iterable[Entry]) -> tuple[dict[str, float], dict[int, dict[str, float]]]:
    """Return the counters of a device, and those of its queues."""
    read: dict[tuple[int | None, str], dict[str, Entry]] = {}
    for each in entries:
        sources = read.setdefault((each.queue, each.counter), {})
        known = sources.setdefault(each.source, each)
        if is_sum(each.counter) and known.value != each.value:
            raise _conflict(known, each, each.value)
        if each.value > known.value:
            sources[each.source] = each
    values: dict[str, float] = {}
    queues: dict[int, dict[str, float]] = {}
    for (queue, counter), sources in read.items():
        (values if queue is None else queues.setdefault(queue, {}))[counter] = _total(counter, sources)
    return values, dict(sorted(queues.items()))


def _total(counter: str, sources: dict[str, Entry]) -> float:
    """Return a counter as one name gives it, or as the sum of several; the highest of what is no sum."""
    if not is_sum(counter):
        return max(each.value for each in sources.values())
    best = {name: each for name, each in sources.items() if not each.fallback} or sources
    whole = best.pop(counter, None)
    parts = sum(each.value for each in best.values())
    if whole and best and parts != whole.value:
        raise _conflict(whole, next(iter(best.values())), parts)
    return whole.value if whole else parts


def _conflict(known: Entry, other: Entry, value: float) -> InputError:
    queue = f" queue {known.queue}" if known.queue is not None else ""
    return InputError(
        f"{other.where}: {shown(f'{known.device} {known.unit}'.strip())}{queue}: {known.counter} is {value:.15g} here "
        f"and {known.value:.15g} in {known.where}; give one reading, with the prompts that name devices and interfaces"
    )
