"""A change of a switch's configuration as a JSON patch (RFC 6902), with the patch that takes it back."""

from __future__ import annotations

from typing import Any

Patch = list[dict[str, Any]]


class Patcher:
    """Collects changes of a document of tables, entries and fields.

    Parameters
    ----------
    tables : dict
        The document; it is not changed.

    Attributes
    ----------
    patch, undo : list of dict
        Operations; those of ``undo`` take the others back, applied in their order.
    """

    def __init__(self, tables: dict[str, Any]) -> None:
        self._tables = tables
        self.patch: Patch = []
        self.undo: Patch = []

    def field(self, table: str, key: str, name: str, value: str) -> None:
        """Set a field of an entry that there is."""
        entry, path = self._tables[table][key], pointer(table, key, name)
        if name not in entry:
            self._add({"op": "add", "path": path, "value": value}, {"op": "remove", "path": path})
        elif entry[name] != value:
            back = {"op": "replace", "path": path, "value": entry[name]}
            self._add({"op": "replace", "path": path, "value": value}, back)

    def new(self, table: str, key: str, entry: dict[str, Any]) -> None:
        """Add an entry."""
        path = pointer(table, key)
        self._add({"op": "add", "path": path, "value": entry}, {"op": "remove", "path": path})

    def drop(self, table: str, key: str) -> None:
        """Remove an entry."""
        path = pointer(table, key)
        self._add({"op": "remove", "path": path}, {"op": "add", "path": path, "value": self._tables[table][key]})

    def _add(self, there: dict[str, Any], back: dict[str, Any]) -> None:
        self.patch.append(there)
        self.undo.insert(0, back)


def pointer(*parts: str) -> str:
    """A JSON pointer (RFC 6901)."""
    return "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in parts)
