"""JSON that holds counters: a dump of SONiC's COUNTERS_DB, and what ``rdma -j statistic`` prints."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from fluidcc.errors import InputError
from fluidcc.operators.counters.names import PORT, RDMA, Entry, is_of_queue, meaning_of, number

_UNCLEARED = ("PERSISTENT_WATERMARKS", "PERIODIC_WATERMARKS")  # an operator clears the user's, which go before them
_TABLES = ("COUNTERS", "RATES", "USER_WATERMARKS", *_UNCLEARED)
_PORTS, _MAPS = "COUNTERS_PORT_NAME_MAP", ("COUNTERS_QUEUE_NAME_MAP", "COUNTERS_PG_NAME_MAP")
_PRIORITY = (None, "SAI_QUEUE_TYPE_UNICAST", "SAI_QUEUE_TYPE_ALL")


def entries(document: Any, device: str, where: str) -> Iterator[Entry]:
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
