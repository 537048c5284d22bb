"""Forms of a SONiC switch's configuration as JSON: tables, a dump of a running database, an object for each ASIC."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

Tables = dict[str, Any]
# A key of a database: CONFIG_DB separates table and key by a bar, APPL_DB by a colon, and there adds _TABLE.
_KEY = re.compile(r"([A-Z][A-Z0-9_]*)([|:])(.+)", re.DOTALL)
_SUFFIX = "_TABLE"


def configurations(document: Tables) -> dict[str, Tables]:
    """Return the configurations that a document holds, by ASIC; one alone has no name.

    ``show runningconfiguration all`` of a switch with several ASICs gives an object for each, with one of the host
    that has no ports; a dump of several databases has an object for each database.
    """
    whole = _tables(document)
    if "PORT" in whole:
        return {"": whole}
    parts = {name: _tables(part) for name, part in document.items() if isinstance(part, dict)}
    found = {name: tables for name, tables in parts.items() if isinstance(tables.get("PORT"), dict)}
    found = {name: tables for name, tables in found.items() if tables["PORT"]} or found  # a host's own is empty
    if len(found) == 1 and not next(iter(found)).startswith("asic"):
        return {"": next(iter(found.values()))}
    return found or {"": whole}


def without_ports(document: Tables) -> list[str]:
    """Return the ASICs of a document that have no ports, where others have some."""
    asics = [name for name in document if re.fullmatch(r"asic\d+", name, re.ASCII)]
    return [name for name in asics if name not in configurations(document)]


def _tables(document: Tables) -> Tables:
    """Return a document as tables of entries; one of that form already is returned as it is."""
    found: Tables = {key: value for key, value in document.items() if _KEY.fullmatch(key) is None}
    if len(found) == len(document):
        return document
    # What the switch was told goes before what it made of that.
    for applied in (False, True):
        made: Tables = {}
        for table, of_applied, key, fields in _rows(document):
            if of_applied == applied and table not in found:
                made.setdefault(table, {})[key] = fields
        found |= made
    return found


def _rows(document: Tables) -> Iterator[tuple[str, bool, str, Any]]:
    """Yield table, whether it is of what the switch applied, key and fields of each key of a dump."""
    for name, value in document.items():
        match = _KEY.fullmatch(name)
        if match is None:
            continue
        table, separator, key = match.groups()
        if separator == ":" and "|" not in key:
            key = key.replace(":", "|")
        yield table.removesuffix(_SUFFIX), table.endswith(_SUFFIX), key, _fields(value)


def _fields(value: Any) -> Any:
    """Return the fields of a dump's entry, without the mark of an empty one and of lists."""
    if isinstance(value, dict) and "value" in value and "type" in value:
        value = value["value"]
    if not isinstance(value, dict):
        return value
    return {name.removesuffix("@"): each for name, each in value.items() if name != "NULL"}
