"""Findings of an audit, and the changes that cure them."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Sequence

SWITCH, NIC = "switch", "nic"
_OF_ALL_PORTS = ("USER_PROGRAMMABLE_CC", "ROCE_CC_LEGACY_DCQCN")
_NAMED = 4  # ports that a suggestion lists after the first


@dataclasses.dataclass(frozen=True)
class Change:
    """A value that cures a finding: where it goes, and what.

    ``path`` is a JSON pointer (RFC 6901) into a switch's configuration, or the name of a NIC's setting.
    """

    file: str
    path: str
    value: str | int


@dataclasses.dataclass(frozen=True)
class Finding:
    """Result of one check: ``severity`` is ok, warn or bad.

    ``apply`` has the changes of the first way that ``suggest`` names, where that is a matter of values alone; ``at``
    the ports and NICs that it is about, where counters tell them.
    """

    severity: str
    what: str
    why: str
    suggest: str = ""
    apply: tuple[Change, ...] = ()
    at: tuple[str, ...] = ()

    def of_files(self, switch: str, nic: str | None) -> Finding:
        """Return the finding with the files' names; a change of a NIC without a file is left out."""
        names = {SWITCH: switch, NIC: nic}
        changes = [(names[change.file], change) for change in self.apply]
        kept = tuple(dataclasses.replace(change, file=name) for name, change in changes if name is not None)
        return dataclasses.replace(self, apply=kept)

    def of_ports(self, names: Sequence[str]) -> Finding:
        """Return the finding for ports that are set alike: what it changes at the first it changes at each."""
        first, others = names[0], names[1:]
        entry = re.compile(rf"{re.escape(_pointer([first]))}(?=[/|])")  # a key is the port, or the port and queues
        own = [change for change in self.apply if change.file == SWITCH and entry.search(change.path)]
        more = [
            dataclasses.replace(change, path=entry.sub(lambda _, name=name: _pointer([name]), change.path))
            for name in others
            for change in own
        ]
        suggest = self.suggest
        if others and re.search(rf"(?<![\w/]){re.escape(first)}(?![\w/])", suggest):
            rest = f" and {len(others) - _NAMED} more" if others[_NAMED:] else ""
            suggest += f"; likewise for {', '.join(others[:_NAMED])}{rest}"
        return dataclasses.replace(self, suggest=suggest, apply=(*self.apply, *more))

    def within(self, asic: str) -> Finding:
        """Return the same for a file with a configuration for each ASIC, where paths begin with its name."""
        if not asic:
            return self
        moved = [
            dataclasses.replace(change, path=_pointer([asic]) + change.path) if change.file == SWITCH else change
            for change in self.apply
        ]
        return dataclasses.replace(self, apply=tuple(moved))


def set_fields(table: str, key: str, **fields: object) -> tuple[Change, ...]:
    """Return changes of an entry of a switch's configuration, whose values are all text."""
    return tuple(Change(SWITCH, _pointer((table, key, name)), str(value)) for name, value in fields.items())


def set_registers(**registers: int) -> tuple[Change, ...]:
    """Return changes of a NIC's settings, under the names that they are typed by."""
    return tuple(Change(NIC, typed(name), value) for name, value in registers.items())


def typed(name: str) -> str:
    """Return a setting's name as ``mlxconfig`` takes it: with the port, except of those that all ports share.

    A path of the driver stays as it is. Names are of mstflint's mlxconfig.
    """
    return name if "/" in name or name in _OF_ALL_PORTS else f"{name}_P1"


def _pointer(parts: Iterable[str]) -> str:
    return "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in parts)
