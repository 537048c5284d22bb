"""Tables that SONiC's ``show`` commands print: a header, a line of dashes, and a row for each port or queue."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from fluidcc.errors import InputError
from fluidcc.operators.counters.names import PORT, Entry, number, shown

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


def entries(header: Row, rows: Sequence[Row], titles: Sequence[str], device: str) -> Iterator[Entry]:
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
