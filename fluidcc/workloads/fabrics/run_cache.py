"""Runs that are kept in a folder when they end, so that a call that is made again does not run them again."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Protocol, TypeVar

from fluidcc.builders.common import marking_of
from fluidcc.engines.common.jit import sources
from fluidcc.errors import InputError
from fluidcc.scenario import frames
from fluidcc.units import Rate
from fluidcc.workloads.fabrics.topology import Topology


class Saved(Protocol):
    """A run that can be written."""

    def save(self, path: Any, /) -> None:
        """Write it."""
        ...


_R = TypeVar("_R", bound=Saved)


@cache
def code(*folders: Path) -> str:
    """A hash of the sources that make a run: the engines', the schemes', this package's, and those of these folders.

    Called once before threads are: Python 3.11 cannot parse sources in several.
    """
    digest = hashlib.blake2b(digest_size=16)
    places = Path(__file__).parent, *folders
    for path in (
        *sources(),
        Path(frames.__file__),
        *(path for folder in places for path in sorted(folder.glob("*.py"))),
    ):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def signature(made_by: str, topology: Topology, chosen: Mapping[str, Any], settings: Any, sent: bytes) -> str:
    """Hash all that a run depends on, so that a changed one is run again; ``made_by`` hashes sources (`code`)."""
    marking = chosen.get("marking")
    rules = marking if isinstance(marking, list) else [marking]
    links = sorted(topology.places)
    marks = [marking_of(rules[min(place, len(rules) - 1)], chosen["scheme"], Rate(rate)) for place, rate in links]
    rest = {name: value for name, value in chosen.items() if name != "marking"}
    text = repr((made_by, topology.hosts, topology.switches, topology.cables, rest, marks, settings))
    return hashlib.blake2b(text.encode() + sent, digest_size=6).hexdigest()


def kept_or_made(path: Path | None, read: Callable[[Path], _R], make: Callable[[], _R]) -> _R:
    """Read the stored result, or make and store it; a damaged file is made again."""
    if path is not None and path.exists():
        with contextlib.suppress(InputError):
            return read(path)
    found = make()
    if path is not None:
        found.save(path)
    return found


def folder_of(folder: Any) -> Path | None:
    """Return the folder, made if it is not there; None of None.

    Raises
    ------
    InputError
        If it cannot be made.
    """
    if folder is None:
        return None
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "no name of a folder"
        raise InputError(f"folder: {str(folder)[:200]!r}: {reason}; give a folder that can be written to") from None
    return place
