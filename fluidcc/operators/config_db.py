"""Look-ups in a SONiC ``config_db.json``: tables, references between them, keys of ports and queues."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

from fluidcc.errors import InputError
from fluidcc.operators.config_files import clip, label, listing, read_text
from fluidcc.operators.switches import SONIC, reader_of
from fluidcc.operators.switches.description import Reader, doubt, tables_of
from fluidcc.units import Rate

# -- forms as JSON: tables, a dump of a running database, an object for each ASIC --------------------------


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


# -- look-ups ----------------------------------------------------------------------------------------------


EXPECTED = "a SONiC switch's config_db.json"
EXPECTED_SWITCH = f"{EXPECTED}, or the configuration of EOS, NX-OS, NVUE or Junos as text"
Fields = dict[str, Any]
# In-band and recirculation ports (sonic-py-common, interface.py; the roles are of PORT's schema).
_INNER_ROLES, _INNER_NAMES = ("Inb", "Rec"), ("Ethernet-IB", "Ethernet-Rec")
_OBJECT = re.compile(r"^\{", re.MULTILINE)  # among lines of a terminal
_QUEUES = re.compile(r"(\d{1,3})(?:-(\d{1,3}))?", re.ASCII)


class Assumed(NamedTuple):
    """Values to assume where a file gives none.

    Attributes
    ----------
    rate : float
        Rate of a port, which texts of other systems often leave out [bytes/s].
    buffer : float or None
        Buffer that a queue may fill, of which Junos gives shares [bytes].
    """

    rate: float = Rate(100e9 / 8)
    buffer: float | None = None


class Row(NamedTuple):
    """An entry whose key names ports and queues: ``ports|queues``, on a chassis after host and ASIC."""

    key: str
    before: tuple[str, ...]
    ports: tuple[str, ...]
    first: int
    last: int
    fields: Fields


class ConfigDB:
    """A switch's configuration, with look-ups that name the table and the key in what they refuse.

    Parameters
    ----------
    path : str or path
        A ``config_db.json`` in any of its forms, or a text of another system that `fluidcc.operators.switches` reads.
    asic : str, optional
        One of `asics`; the first by default.
    assumed : Assumed, optional
        What to take where a file is silent.

    Attributes
    ----------
    tables : dict
    source, name : str
        The file, as `SwitchPort.source` has it; in errors with the ASIC where there are several.
    asics : tuple of str
        ASICs that the file has a configuration for; one without a name of most switches.
    asic : str
    without_ports : tuple of str
        ASICs that are left out, and why.
    system : Words
        The system that runs on the switch, and what it calls things.
    """

    def __init__(self, path: str | os.PathLike[str], asic: str | None = None, assumed: Assumed | None = None) -> None:
        self.name = self.source = label(os.fspath(path))
        self.assumed = assumed or Assumed()
        text = read_text(path, EXPECTED_SWITCH)
        reader = reader_of(text)
        self.system = SONIC if reader is None else reader.WORDS
        document = self._document(text) if reader is None else {}
        found = configurations(document) if reader is None else {"": self._described(reader, text)}
        self.without_ports = tuple(f"{each} has no table PORT" for each in without_ports(document))
        self.asics = tuple(found)
        self.asic = self.asics[0] if asic is None else asic
        self.name += f", {self.asic}" if len(self.asics) > 1 else ""
        self.tables: dict[str, Any] = found[self.asic]
        self._local: dict[str, tuple[list[Row], list[str]]] = {}
        self._by_port: dict[str, dict[str, list[Fields]]] = {}
        self._ranges: dict[str, dict[str, list[tuple[int, int, Fields]]]] = {}

    @classmethod
    def all(cls, path: str | os.PathLike[str], assumed: Assumed | None = None) -> list[ConfigDB]:
        """Return the configurations of a file, one for each ASIC."""
        first = cls(path, None, assumed)
        return [first, *(cls(path, asic, assumed) for asic in first.asics[1:])]

    def _described(self, reader: Reader, text: str) -> dict[str, Any]:
        """Return the tables of another system's text."""
        try:
            found = reader.read(text)
            found.doubts += filter(None, [doubt(text)])
            return tables_of(found)
        except InputError as error:
            raise InputError(f"{self.name}: {error}") from None

    def _document(self, text: str) -> dict[str, Any]:
        """Return the text's JSON object, without the prompts around it; lines are counted from the text's first."""
        first, last = _OBJECT.search(text), text.rfind("\n}")
        if first and last > first.start():
            text = "\n" * text.count("\n", 0, first.start()) + text[first.start() : last + 2]
        try:
            document = json.loads(text)
        except json.JSONDecodeError as error:
            place = f"{self.name}:{error.lineno}:{error.colno}"
            if first and (error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated")):
                raise InputError(f"{place}: the JSON ends early ({error.msg}): it is cut; give all of it") from None
            raise InputError(f"{place}: not JSON ({error.msg}); give {EXPECTED_SWITCH}") from None
        except (RecursionError, ValueError) as error:  # ValueError: a number of thousands of digits
            reason = "nested too deep" if isinstance(error, RecursionError) else "a number has too many digits"
            raise InputError(f"{self.name}: not usable JSON ({reason}); give {EXPECTED}") from None
        if not isinstance(document, dict):
            raise InputError(f"{self.name}: holds {clip(document)}, not an object of tables; give {EXPECTED}")
        return document

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
            inner = text.strip("[]")
            prefix, bar, text = inner.partition("|" if "|" in inner else ":")  # APPL_DB has a colon, and _TABLE
            if not bar or prefix.removesuffix("_TABLE") != table:
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

    def rows(self, table: str) -> list[Row]:
        """Return the entries of a table with keys ``ports|queues`` that are of this card, and of this ASIC.

        On a chassis the table has rows of all its cards, for the queues that wait here for ports there; their keys
        begin with host and ASIC.

        Raises
        ------
        InputError
            If a key is none, or nothing says which of several cards this one is.
        """
        return self._split(table)[0]

    def remote(self, table: str) -> list[str]:
        """Return other cards and ASICs that a table has rows of."""
        return self._split(table)[1]

    def _split(self, table: str) -> tuple[list[Row], list[str]]:
        """Return a table's rows of this card, and the cards that the others are of."""
        if table not in self._local:
            every = list(self._rows(table))
            here = [row for row in every if self._is_local(row.before)] or every  # or of a card that was renamed
            card: dict[str, tuple[str, ...]] = {}
            for row in here:
                for port in row.ports if row.before else ():
                    if card.setdefault(port, row.before) != row.before:
                        cards = " and ".join(label("|".join(each)) for each in (card[port], row.before))
                        raise InputError(
                            f"{self.name}: {table} has {label(port)} of {cards}, and none is known to be this card; "
                            "give hostname and asic_name in DEVICE_METADATA|localhost"
                        )
            keys = {row.key for row in here}
            self._local[table] = here, sorted({"|".join(row.before) for row in every if row.key not in keys})
        return self._local[table]

    def _rows(self, table: str) -> Iterator[Row]:
        for key in self.table(table, needed=False):
            place, _, queues = key.rpartition("|")
            *before, ports = place.split("|")
            match = _QUEUES.fullmatch(queues.strip())
            if match is None or not ports:
                raise InputError(f"{self.name}: {table}|{label(key)}: write a key such as Ethernet0|3 or Ethernet0|3-4")
            first, last = int(match[1]), int(match[2] or match[1])
            if not first <= last <= 255:
                raise InputError(f"{self.name}: {table}|{label(key)}: {queues} is no range of queues; write 3 or 3-4")
            names = tuple(port.strip() for port in ports.split(","))
            yield Row(key, tuple(before), names, first, last, self.entry(table, key))

    def _is_local(self, before: tuple[str, ...]) -> bool:
        """Tell whether a key that begins with these is of this card; those that the file does not name are."""
        if not before:
            return True
        own = self.localhost
        known = [str(own.get(name, "")).strip().lower() for name in ("hostname", "asic_name")]
        if len(before) == 1:  # the host or the ASIC alone
            return not any(known) or before[0].strip().lower() in known
        return all(not name or name == given.strip().lower() for name, given in zip(known, before, strict=False))

    @property
    def is_sonic(self) -> bool:
        """True if the file is SONiC's own configuration, whose words and values can be changed as they are."""
        return self.system is SONIC

    @cached_property
    def senders(self) -> list[str]:
        """Ports that traffic comes in by: those that are up, without in-band and recirculation ports.

        Where no port is said to be up, they are those that are not said to be down; and all if all are.
        """
        ports = [name for name in self.table("PORT") if not self._is_inner(name)] or list(self.table("PORT"))
        states = {name: str(self.entry("PORT", name).get("admin_status", "")).strip().lower() for name in ports}
        up = [name for name, state in states.items() if state == "up"]
        return up or [name for name, state in states.items() if not state] or ports

    @cached_property
    def strays(self) -> list[str]:
        """Rows on queues and PFC whose port the table PORT does not have, so that the switch ignores them."""
        ports = {*self.table("PORT"), "global", "CPU"} if self.is_sonic else set()
        rows = [(f"QUEUE|{row.key}", row.ports) for row in self.rows("QUEUE") if not row.before]
        maps = self.table("PORT_QOS_MAP", needed=False)
        rows += [(f"PORT_QOS_MAP|{key}", tuple(map(str.strip, key.split(",")))) for key in maps]
        return [key for key, named in rows if ports and not ports.issuperset(named)]

    def _is_inner(self, port: str) -> bool:
        """Tell whether a port is of the switch itself, without a cable: by its role, or its name on older releases."""
        return self.entry("PORT", port).get("role") in _INNER_ROLES or port.startswith(_INNER_NAMES)

    @cached_property
    def localhost(self) -> Fields:
        """Entry of the switch itself in DEVICE_METADATA; empty if there is none."""
        devices = self.table("DEVICE_METADATA", needed=False)
        return self.entry("DEVICE_METADATA", "localhost") if "localhost" in devices else {}

    def ranges(self, table: str) -> dict[str, list[tuple[int, int, Fields]]]:
        """Return the entries of a table with keys ``ports|queues`` by port, with first and last queue."""
        if table not in self._ranges:
            found: dict[str, list[tuple[int, int, Fields]]] = {}
            for row in self.rows(table):
                for port in row.ports:
                    found.setdefault(port, []).append((row.first, row.last, row.fields))
            self._ranges[table] = found
        return self._ranges[table]
