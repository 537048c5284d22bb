"""Texts copied from terminals: prompts and headings name the devices of the outputs below them, tables and JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from fluidcc.errors import InputError
from fluidcc.operators.counters.model import ETHERNET, PORT, RDMA, Entry, is_of_queue, meaning_of, number, shown

# -- tables of SONiC's `show` commands: a header, a line of dashes, a row for each port or queue -----------


Row = tuple[str, str]  # a line and where it is
Column = tuple[str, int | None]  # a counter and its queue

_RULE = re.compile(r"\s*-{2,}(?:\s+-{2,})+\s*")
_UNIT = re.compile(r"(?<=[\d.]) (?=[KMG]?[Bb](?:ps|/s)(?:\s|$))")
_CELL = re.compile(r"[\d.,+-]+\S*|N/A|[UDX]|(?:UC|MC|ALL|VOQ)\d+", re.ASCII)
_QUEUE = re.compile(r"(PFC|PG|UC|ALL|MC|VOQ)(\d{1,3})", re.ASCII)
_NO_PRIORITY = ("MC", "VOQ")
_OF_PORT = {
    f"{way}_{name}": f"{ours}_{what}"
    for way, ours in (("RX", "received"), ("TX", "sent"))
    for name, what in (("OK", "packets"), ("BPS", "bytes_per_s"), ("ERR", "errors"), ("DRP", "drops"))
}
_OF_QUEUE = {
    "Counter/pkts": "sent_packets",
    "Counter/bytes": "sent_bytes",
    "Drop/pkts": "dropped_packets",
    "EcnMarked/pkts": "marked_packets",
}
_OF_GROUP = {  # by a word of the title or of the command
    "headroom": "headroom_watermark_bytes",
    "drop": "ingress_dropped_packets",
    "shared": "ingress_watermark_bytes",
}


def is_rule(line: str) -> bool:
    """Tell whether a line is the dashes below a header."""
    return line.startswith((" ", "-")) and _RULE.fullmatch(line) is not None


def is_row(line: str) -> bool:
    """Tell whether a line below a header is a row, and not the next title, prompt or remark."""
    cells = line.split(maxsplit=2)
    return bool(cells) and (cells[0].startswith("Ethernet") or (len(cells) > 1 and bool(_CELL.fullmatch(cells[1]))))


def table_entries(header: Row, rows: Sequence[Row], titles: Sequence[str], device: str) -> Iterator[Entry]:
    """Read a table; one of another command has no entries, nor have multicast queues.

    Parameters
    ----------
    header, rows : Row
    titles : sequence of str
        Line above the header, and command: they tell tables of priority groups apart.
    device : str
        Name of the switch.

    Raises
    ------
    InputError
        If a row has another number of columns than the header, or a value is no number.
    """
    names = header[0].replace("Port Rx", "PortRx").replace("Port Tx", "PortTx").split()
    columns = _columns(names, titles, header[1])
    of_queues = names[1:2] == ["TxQ"]
    for text, where in rows if any(columns) else ():
        cells = _UNIT.sub("", text).split()
        if len(cells) != len(names):
            raise InputError(
                f"{where}: the row of {shown(cells[0])} has {len(cells)} columns where the header has {len(names)}; "
                "give the command's output unchanged"
            )
        row = _QUEUE.fullmatch(cells[1]) if of_queues else None
        if of_queues and (row is None or row[1] in _NO_PRIORITY):
            continue
        for name, cell, column in zip(names, cells, columns, strict=True):
            if column and (value := number(cell, where, name)) is not None:
                queue = int(row[2]) if row else column[1]
                yield Entry(PORT, device, cells[0], queue, column[0], column[0], value, where)


def _columns(names: list[str], titles: Sequence[str], where: str) -> list[Column | None]:
    """Return counter and queue of each column; all None if the table is of another command."""
    first, second = [*names, "", ""][:2]
    known = _OF_PORT if first.upper() == "IFACE" else _OF_QUEUE if (first, second) == ("Port", "TxQ") else {}
    if known:
        return [(known[name], None) if name in known else None for name in names]
    found = [_QUEUE.fullmatch(name) for name in names]
    kind = found[1][1] if len(found) > 1 and found[1] else ""
    counter = {"PortRx": "pauses_received", "PortTx": "pauses_sent"}.get(first, "") if kind == "PFC" else ""
    if first == "Port" and kind == "PG":
        words = (ours for title in titles for word, ours in _OF_GROUP.items() if word in title.lower())
        if not (counter := next(words, "")):
            raise InputError(
                f"{where}: a table of priority groups without its title; copy also the line above it, such as "
                "Ingress headroom per PG:"
            )
    elif first == "Port" and kind not in ("", "PFC"):
        counter = "watermark_bytes"
    return [(counter, int(each[2])) if counter and each and each[1] not in _NO_PRIORITY else None for each in found]


# -- JSON: a dump of SONiC's COUNTERS_DB, and what `rdma -j statistic` prints ------------------------------


_UNCLEARED = ("PERSISTENT_WATERMARKS", "PERIODIC_WATERMARKS")  # an operator clears the user's, which go before them
_TABLES = ("COUNTERS", "RATES", "USER_WATERMARKS", *_UNCLEARED)
_PORTS, _MAPS = "COUNTERS_PORT_NAME_MAP", ("COUNTERS_QUEUE_NAME_MAP", "COUNTERS_PG_NAME_MAP")
_PRIORITY = (None, "SAI_QUEUE_TYPE_UNICAST", "SAI_QUEUE_TYPE_ALL")


def json_entries(document: Any, device: str, where: str) -> Iterator[Entry]:
    """Read a JSON document; one without counters has no entries.

    Raises
    ------
    InputError
        If a dump lacks the names of its ports, or a value is no number.
    """
    for link in document if isinstance(document, list) else ():
        if isinstance(link, dict) and isinstance(link.get("ifname"), str) and "cntn" not in link:
            yield from of_nic(RDMA, device, rdma_unit(link["ifname"], str(link.get("port", 1))), link, where)
    if isinstance(document, dict):
        yield from _of_database(document, device, where)


def rdma_unit(name: str, port: str) -> str:
    """Return a name of an RDMA device's port; most devices have one."""
    return name if port == "1" else f"{name}/{port}"


def of_nic(kind: str, device: str, unit: str, values: Mapping[str, Any], where: str) -> Iterator[Entry]:
    """Read counters that have the names of NVIDIA's driver; others are skipped.

    Raises
    ------
    InputError
        If a value is no number.
    """
    for name, value in values.items():
        found = meaning_of(name)
        if found and found.nic and (read := number(value, where, name)) is not None:
            read *= found.factor
            yield Entry(kind, device, unit, found.queue, found.counter, name, read, where, found.fallback)


def _of_database(document: dict[str, Any], device: str, where: str) -> Iterator[Entry]:
    if isinstance(document.get("COUNTERS_DB"), dict):
        document = document["COUNTERS_DB"]
    owners = _owners(document)
    for key, entry in document.items():
        table, _, oid = key.partition(":")
        if table not in _TABLES or not oid:
            continue
        if table in _UNCLEARED and f"USER_WATERMARKS:{oid}" in document:
            continue
        if not owners:
            raise InputError(
                f"{where}: has counters of objects, but no {_PORTS} that names their ports; "
                "give the whole dump of redis-dump -d 2 -y"
            )
        port, queue = owners.get(oid, ("", None))
        for name, value in _fields(entry).items() if port else ():
            found = meaning_of(name)
            if found is None or found.nic or is_of_queue(name) != (queue is not None):
                continue
            if (read := number(value, where, f"{oid} {name}")) is not None:
                of_queue = found.queue if queue is None else queue
                yield Entry(PORT, device, port, of_queue, found.counter, name, read, where)


def _owners(document: dict[str, Any]) -> dict[str, tuple[str, int | None]]:
    """Return port, and queue or priority group, of each object."""
    found: dict[str, tuple[str, int | None]] = {
        oid: (port, None) for port, oid in _fields(document.get(_PORTS)).items() if isinstance(oid, str)
    }
    types = _fields(document.get("COUNTERS_QUEUE_TYPE_MAP"))
    for name in _MAPS:
        for key, oid in _fields(document.get(name)).items():
            port, _, queue = key.rpartition(":")
            if isinstance(oid, str) and types.get(oid) in _PRIORITY and re.fullmatch(r"\d{1,3}", queue, re.ASCII):
                found[oid] = port, int(queue)
    return found


def _fields(value: Any) -> dict[str, Any]:
    """Return the fields of an entry, in either form of dump; none if it has none."""
    if isinstance(value, dict) and "value" in value and "type" in value:
        value = value["value"]
    return value if isinstance(value, dict) else {}


# -- whole texts -------------------------------------------------------------------------------------------


_LONGEST = 100_000  # characters of a line
_PROMPT = re.compile(r"\s*(?:\([\w.\-]+\) ?)?\[?[\w.\-]+@([\w.\-]+)[^$#]*[$#]\s*(.*)")
_HEADING = re.compile(r"==> (.+) <==\s*")
_ETHTOOL = re.compile(r"ethtool\s+(?:-S|--statistics)\s+([^\s|;>]+)")
_COUNTER = re.compile(r"\s*([A-Za-z]\w*):\s*(\S+)\s*", re.ASCII)
_LINK = re.compile(r"\s*link ([\w.\-]+)/(\d{1,3})\b(.*)", re.ASCII)
_WORDS = re.compile(r"\s*(?:[a-z]\w*|\d+)(?:\s+\w+)*\s*", re.ASCII)
_SYSFS = re.compile(r"\S*infiniband/([\w.\-]+)/ports/(\d{1,3})/(?:hw_)?counters/(\w+):?", re.ASCII)
_SPACE = re.compile(r"\s*")
_JSON = re.compile(r"\s*(?:\{|\[\s*(?:\{|$))")
_ENDINGS = (".txt", ".log", ".out", ".json", ".csv")


def stem(path: str) -> str:
    """Return the device that a file is named after; dots of its name stay."""
    name = PurePosixPath(path).name
    return next((name[: -len(end)] for end in _ENDINGS if name.lower().endswith(end)), name) or name


class Terminal:
    """Reader of a text, from its first line to its last.

    Parameters
    ----------
    text : str
    name : str
        Name of the file, for error messages.
    device : str
        Device that is read until a prompt or a heading names another.
    """

    def __init__(self, text: str, name: str, device: str) -> None:
        self._text, self._name, self._device = text, name, device
        self._start = self._next = self._number = 0  # of the last line, where it begins and the next one does
        self._interface = self._command = ""

    def entries(self) -> Iterator[Entry]:
        """Read the counters of all outputs, in their order.

        Raises
        ------
        InputError
            If a table, a JSON document or a value is damaged.
        """
        above, header = "", ("", "")  # the last lines that are not empty
        awaited: re.Match[str] | None = None
        while (line := self._read()) is not None:
            where = f"{self._name}:{self._number}"
            if found := _PROMPT.match(line):
                self._device, self._command, self._interface = found[1], found[2], ""
            elif found := _HEADING.fullmatch(line):
                awaited = _SYSFS.fullmatch(found[1])
                if awaited is None:
                    self._device, self._command, self._interface = stem(found[1]), "", ""
            elif _JSON.match(line):
                yield from json_entries(self._document(), self._device, where)
            elif is_rule(line):
                yield from table_entries(header, list(self._rows()), (above, self._command), self._device)
                line = ""
            elif found := _LINK.fullmatch(line):
                yield from self._link(found, where)
            elif found := _SYSFS.match(line) or (awaited if line.strip() else None):
                value = line if found is awaited else line[found.end() :]
                unit, awaited = rdma_unit(found[1], found[2]), None
                yield from of_nic(RDMA, self._device, unit, {found[3]: value}, where)
            elif (found := _COUNTER.fullmatch(line)) and meaning_of(found[1]):
                yield from of_nic(ETHERNET, self._device, self._interface, {found[1]: found[2]}, where)
            if found := _ETHTOOL.search(line):
                self._interface = found[1]
            if line.strip():
                above, header = header[0], (line, where)

    def _read(self) -> str | None:
        """Return the next line; one that is too long for any counter counts as empty."""
        if self._next >= len(self._text):
            return None
        end = self._text.find("\n", self._next)
        end = len(self._text) if end < 0 else end
        line = self._text[self._next : end].rstrip("\r")
        self._start, self._next, self._number = self._next, end + 1, self._number + 1
        return line if len(line) <= _LONGEST or _JSON.match(line[:100]) else ""

    def _while(self, belongs: Any) -> Iterator[str]:
        """Read lines as long as they belong to what is above."""
        while True:
            before = self._start, self._next, self._number
            line = self._read()
            if line is None or not belongs(line):
                self._start, self._next, self._number = before
                return
            yield line

    def _rows(self) -> Iterator[Row]:
        for line in self._while(is_row):
            yield line, f"{self._name}:{self._number}"

    def _document(self) -> Any:
        """Return the JSON document that begins in the last line, and continue behind it."""
        start = _SPACE.match(self._text, self._start).end()  # type: ignore[union-attr]
        try:
            document, end = json.JSONDecoder().raw_decode(self._text, start)
        except (ValueError, RecursionError) as error:
            reason = getattr(error, "msg", "nested too deep, or a number has too many digits")
            line = getattr(error, "lineno", self._number)
            raise InputError(f"{self._name}:{line}: not JSON ({reason}); give the whole dump unchanged") from None
        self._number += self._text.count("\n", start, end) - 1
        self._next = end
        rest = self._read()
        if rest and _PROMPT.match(rest):  # behind a document without a line end
            self._next, self._number = end, self._number - 1
        return document

    def _link(self, found: re.Match[str], where: str) -> Iterator[Entry]:
        """Read a line of ``rdma statistic``, and those that it is wrapped into."""
        words = found[3].split()
        for line in self._while(lambda line: _WORDS.fullmatch(line) and not _LINK.match(line)):
            words += line.split()
        if "cntn" in words:  # of some queue pairs, which the link's counters hold as well
            return
        values = dict(zip(words[::2], words[1::2], strict=False))
        if len(words) % 2 or not all(value.isdigit() for value in values.values()):
            raise InputError(
                f"{where}: {shown(found[1])} has no pairs of name and number; copy rdma's output unchanged"
            )
        yield from of_nic(RDMA, self._device, rdma_unit(found[1], found[2]), values, where)
