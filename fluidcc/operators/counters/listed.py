"""Counters in long form: a CSV with a row for each counter, as queries of monitoring systems give it."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from typing import NamedTuple

from fluidcc.errors import InputError
from fluidcc.operators.counters.names import (
    ETHERNET,
    NIC_VALUES,
    PORT,
    PORT_VALUES,
    PRIORITY_VALUES,
    QUEUE_VALUES,
    RDMA,
    Entry,
    Meaning,
    meaning_of,
    number,
    shown,
)

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


def entries(text: str, name: str) -> Iterator[Entry]:
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
