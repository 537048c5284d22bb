"""Look-ups in a SONiC ``config_db.json``: tables, references between them, keys of ports and queues."""

from __future__ import annotations

import json
import os
import re
from typing import Any

from fluidcc.errors import InputError
from fluidcc.operators.config_files import clip, label, listing, read_text

EXPECTED = "a SONiC switch's config_db.json"
Fields = dict[str, Any]
_QUEUES = re.compile(r"(\d{1,3})(?:-(\d{1,3}))?", re.ASCII)


class ConfigDB:
    """The parsed file, with look-ups that name the table and the key in what they refuse."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.name = label(os.fspath(path))
        text = read_text(path, EXPECTED)
        try:
            self.tables = json.loads(text)
        except json.JSONDecodeError as error:
            place = f"{self.name}:{error.lineno}:{error.colno}"
            raise InputError(f"{place}: not JSON ({error.msg}); give {EXPECTED}") from None
        except (RecursionError, ValueError) as error:  # ValueError: a number of thousands of digits
            reason = "nested too deep" if isinstance(error, RecursionError) else "a number has too many digits"
            raise InputError(f"{self.name}: not usable JSON ({reason}); give {EXPECTED}") from None
        if not isinstance(self.tables, dict):
            raise InputError(f"{self.name}: holds {clip(self.tables)}, not an object of tables; give {EXPECTED}")
        self._by_port: dict[str, dict[str, list[Fields]]] = {}
        self._ranges: dict[str, dict[str, list[tuple[int, int, Fields]]]] = {}

    def table(self, name: str, *, needed: bool = True) -> Fields:
        """Return a table; an empty one if it may be missing and is."""
        if name not in self.tables and not needed:
            return {}
        if name not in self.tables:
            raise InputError(f"{self.name}: has no table {name}; give {EXPECTED}, which has one")
        table = self.tables[name]
        if not isinstance(table, dict):
            raise InputError(f"{self.name}: table {name} is {clip(table)}; write an object of entries")
        return table

    def entry(self, table: str, key: str) -> Fields:
        """Return an entry that the table is known to have."""
        entry = self.table(table)[key]
        if not isinstance(entry, dict):
            raise InputError(f"{self.name}: {table}|{label(key)} is {clip(entry)}; write an object of fields")
        return entry

    def needed(self, table: str, key: str, where: str) -> Fields:
        """Return an entry that another one refers to."""
        known = self.table(table, needed=False)
        if key not in known:
            names = listing(list(known)) or "empty or missing"
            raise InputError(
                f"{self.name}: {label(where)} names {clip(key)}, which table {table} lacks (it has: {names})"
            )
        return self.entry(table, key)

    def reference(self, value: Any, table: str, where: str) -> str:
        """Return the key that a reference names, spelled ``X`` or ``[TABLE|X]``; empty if there is none."""
        if value is None:
            return ""
        text = value.strip() if isinstance(value, str) else None
        if text is not None and text.startswith("["):
            prefix, bar, text = text.strip("[]").partition("|")
            if not bar or prefix != table:
                text = None
        if text is None:
            raise InputError(
                f'{self.name}: {label(where)}: {clip(value)} is no reference; write "NAME" of table {table}'
            )
        return "" if text == "NULL" else text

    def by_port(self, table: str) -> dict[str, list[Fields]]:
        """Return the entries of a table whose keys are ports, or lists of ports."""
        if table not in self._by_port:
            found: dict[str, list[Fields]] = {}
            for key in self.table(table, needed=False):
                for port in key.split(","):
                    found.setdefault(port.strip(), []).append(self.entry(table, key))
            self._by_port[table] = found
        return self._by_port[table]

    def ranges(self, table: str) -> dict[str, list[tuple[int, int, Fields]]]:
        """Return the entries of a table with keys ``ports|queues`` by port, with first and last queue."""
        if table not in self._ranges:
            found: dict[str, list[tuple[int, int, Fields]]] = {}
            for key in self.table(table, needed=False):
                ports, _, queues = key.rpartition("|")
                match = _QUEUES.fullmatch(queues.strip())
                if match is None or not ports:
                    raise InputError(
                        f"{self.name}: {table}|{label(key)}: write a key such as Ethernet0|3 or Ethernet0|3-4"
                    )
                first, last = int(match[1]), int(match[2] or match[1])
                if not first <= last <= 255:
                    raise InputError(
                        f"{self.name}: {table}|{label(key)}: {queues} is no range of queues; write 3 or 3-4"
                    )
                for port in ports.split("|")[-1].split(","):  # a chassis puts host and chip before the port
                    found.setdefault(port.strip(), []).append((first, last, self.entry(table, key)))
            self._ranges[table] = found
        return self._ranges[table]
