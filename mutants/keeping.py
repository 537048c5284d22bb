"""Outcomes and durations in files, so that an interrupted run continues: in ``.mutants/``, or ``--keep``."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple


class Outcome(NamedTuple):
    """Result of a mutation, and a word on it."""

    result: str
    text: str
    seconds: float


def digest(path: Path) -> str:
    """Digest of a file; an empty text if there is none."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16] if path.is_file() else ""


class Kept:
    """Outcomes by mutation, each with digests of the files that it rests on, one line of JSON each.

    A kill rests on the mutated file and the file of the test that killed it, a survival on all of its tests' files.
    """

    def __init__(self, folder: Path, root: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.root = folder, root
        self.lock = threading.RLock()
        self.measuring: dict[str, threading.Lock] = defaultdict(threading.Lock)  # by file of tests
        self.path = folder / "outcomes.jsonl"
        self._lines: dict[str, dict[str, Any]] = {}
        self._digests: dict[str, str] = {}
        for line in self.path.read_text(encoding="utf-8").splitlines() if self.path.exists() else ():
            try:
                entry = json.loads(line)
            except ValueError:  # the last line of a run that was ended as it wrote
                continue
            self._lines[entry["key"]] = entry

    def find(self, key: str, source: str, tests: list[str]) -> Outcome | None:
        """The outcome, if what it rests on is as it was."""
        entry = self._lines.get(key)
        if entry is None or any(self.digest(name) != value for name, value in entry["files"].items()):
            return None
        if entry["survived"] and set(entry["files"]) != {source, *tests}:
            return None
        return Outcome(*entry["outcome"])

    def keep(self, key: str, outcome: Outcome, survived: bool, files: list[str]) -> None:
        """Add an outcome."""
        entry = {"key": key, "outcome": outcome, "survived": survived, "files": {n: self.digest(n) for n in files}}
        self._lines[key] = json.loads(json.dumps(entry))
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")

    def digest(self, name: str) -> str:
        """Digest of a file of the checkout, as it was when first asked for."""
        if name not in self._digests:
            self._digests[name] = digest(self.root / name)
        return self._digests[name]

    def durations(self, name: str) -> dict[str, Any]:
        """Seconds of the processor by test, of one kind."""
        path = self.folder / f"{name}.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}

    def keep_durations(self, name: str, seconds: dict[str, Any]) -> None:
        """Write them, whole or not at all."""
        path = self.folder / f"{name}.json"
        with self.lock:
            new = path.with_suffix(".new")
            new.write_text(json.dumps(seconds), encoding="utf-8")
            new.replace(path)

    def measured(self, name: str, file: str) -> bool:
        """Say that the durations of one kind are those of a file's tests as they are."""
        return self.durations(name).get("files", {}).get(file) == self.digest(file)

    def keep_measured(self, name: str, file: str, seconds: dict[str, float]) -> None:
        """Put a file's durations in place of its older ones."""
        with self.lock:
            found = self.durations(name) or {"files": {}, "seconds": {}}
            others = {test: value for test, value in found["seconds"].items() if test.partition("::")[0] != file}
            found["files"][file] = self.digest(file)
            self.keep_durations(name, {"files": found["files"], "seconds": others | seconds})
