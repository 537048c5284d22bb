"""Texts copied from terminals: prompts and headings name the devices of the outputs below them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from fluidcc.errors import InputError
from fluidcc.operators.counters import dump, tables
from fluidcc.operators.counters.names import ETHERNET, RDMA, Entry, meaning_of, shown

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
                yield from dump.entries(self._document(), self._device, where)
            elif tables.is_rule(line):
                yield from tables.entries(header, list(self._rows()), (above, self._command), self._device)
                line = ""
            elif found := _LINK.fullmatch(line):
                yield from self._link(found, where)
            elif found := _SYSFS.match(line) or (awaited if line.strip() else None):
                value = line if found is awaited else line[found.end() :]
                unit, awaited = dump.rdma_unit(found[1], found[2]), None
                yield from dump.of_nic(RDMA, self._device, unit, {found[3]: value}, where)
            elif (found := _COUNTER.fullmatch(line)) and meaning_of(found[1]):
                yield from dump.of_nic(ETHERNET, self._device, self._interface, {found[1]: found[2]}, where)
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

    def _rows(self) -> Iterator[tables.Row]:
        for line in self._while(tables.is_row):
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
        yield from dump.of_nic(RDMA, self._device, dump.rdma_unit(found[1], found[2]), values, where)
