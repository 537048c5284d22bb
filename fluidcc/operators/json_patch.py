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
    root : str
        Pointer of the document within the switch's configuration; empty but for one of several ASICs.

    Attributes
    ----------
    patch, undo : list of dict
        Operations; those of ``undo`` take the others back, applied in their order.
    """

    def __init__(self, tables: dict[str, Any], root: str = "") -> None:
        self._tables, self._root = tables, root
        self._made: dict[str, dict[str, Any]] = {}
        self.patch: Patch = []
        self.undo: Patch = []

    def field(self, table: str, key: str, name: str, value: str) -> None:
        """Set a field of an entry that there is."""
        entry, path = self._tables[table][key], self._root + pointer(table, key, name)
        if name not in entry:
            self._add({"op": "add", "path": path, "value": value}, {"op": "remove", "path": path})
        elif entry[name] != value:
            back = {"op": "replace", "path": path, "value": entry[name]}
            self._add({"op": "replace", "path": path, "value": value}, back)

    def new(self, table: str, key: str, entry: dict[str, Any]) -> None:
        """Add an entry; one that there is keeps its other fields."""
        path = self._root + pointer(table, key)
        present = self._made.get(path, self._tables.get(table, {}).get(key))
        back = {"op": "remove", "path": path}
        if present is not None:
            back = {"op": "replace", "path": path, "value": present}
        self._made[path] = (present or {}) | entry
        op = "add" if present is None else "replace"
        self._add({"op": op, "path": path, "value": self._made[path]}, back)

    def drop(self, table: str, key: str) -> None:
        """Remove an entry."""
        path = self._root + pointer(table, key)
        self._add({"op": "remove", "path": path}, {"op": "add", "path": path, "value": self._tables[table][key]})

    def _add(self, there: dict[str, Any], back: dict[str, Any]) -> None:
        self.patch.append(there)
        self.undo.insert(0, back)


def pointer(*parts: str) -> str:
    """A JSON pointer (RFC 6901)."""
    return "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in parts)
