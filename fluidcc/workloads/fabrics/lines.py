"""Lines of a text file in words, each refused by its number."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from fluidcc.errors import InputError
from fluidcc.files import LARGEST, read_whole

T = TypeVar("T")
LARGEST_LIST = 1 << 30  # bytes of flows, or of a schedule


class Lines:
    """The lines of a file that hold something, with their numbers."""

    def __init__(self, path: str | os.PathLike[str], expected: str, most: int = LARGEST) -> None:
        self.name, self.expected = str(path)[:200], expected
        raw = b""
        try:
            raw = read_whole(Path(path), most)
            text = raw.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            at = raw.count(b"\n", 0, error.start) + 1
            raise InputError(f"{self.name}, line {at}: is no text (UTF-8); give {expected}") from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise InputError(f"{self.name}: {reason}; give {expected}") from None
        self._rows: Iterator[tuple[int, list[str]]] = (
            (n, line.split()) for n, line in enumerate(text.splitlines(), 1) if line.strip()[:1] not in "#"
        )
        self.at = 0

    def rows(self) -> Iterator[list[str]]:
        """Yield the remaining lines, each split into words."""
        for at, words in self._rows:
            self.at = at
            yield words

    def peek(self) -> list[str]:
        """Return the next line's words, which stays the next; none at the end."""
        following = next(self._rows, None)
        self._rows = iter(()) if following is None else chain((following,), self._rows)
        return [] if following is None else following[1]

    def next(self, what: str) -> list[str]:
        """Return the next line, split into words."""
        for words in self.rows():
            return words
        raise InputError(f"{self.name}: ends before {what}; give {self.expected}")

    def wrong(self, text: str) -> InputError:
        """Return the error for what is wrong with the last line read."""
        return InputError(f"{self.name}, line {self.at}: {text}")

    def number(self, word: str, read: Callable[[str], T], least: float, what: str, most: float = float("inf")) -> T:
        """Parse a number of the last line read."""
        try:
            value: Any = read(word)
        except ValueError:
            value = None
        if value is not None and value < least:
            raise self.wrong(f"{what} {word[:30]!r} is less than {least:g}; write at least that")
        if value is not None and most < value < float("inf"):
            raise self.wrong(f"{what} {word[:30]!r} is more than {most:g}; write at most that")
        if value is None or not value < float("inf"):
            raise self.wrong(f"{what} {word[:30]!r} is none; write {'a whole' if read is int else 'a'} number")
        return value
