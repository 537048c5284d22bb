"""Workloads by name: a published distribution of flow sizes, a file's, or a mix of several."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fluidcc.builders.workloads import SIZES, mean_of
from fluidcc.errors import InputError
from fluidcc.units import RATIO, quantity
from fluidcc.workloads.fabrics.hpcc_files import read_sizes

PATTERNS = ("permutation", "all-to-all")
KNOWN = ", ".join([*SIZES, *PATTERNS])

Sizes = Sequence[tuple[float, float]]  # size [bytes], and the share of flows of at most that size


class Part(NamedTuple):
    """One workload of a mix, and its share of the load."""

    name: str
    share: float


def parts_of(workload: str | os.PathLike[str]) -> list[Part]:
    """Return the parts of a workload: of ``A+B`` two with half the load each, of ``A:70%+B:30%`` as it says.

    Raises
    ------
    InputError
        If shares do not add up, are given for some parts only, or a part has no sizes.
    """
    text = os.fspath(workload)
    if text in PATTERNS or text in SIZES or os.path.exists(text) or "+" not in text:
        return [Part(text, 1.0)]
    words = [each.strip() for each in text.split("+")]
    if not all(words):
        raise InputError(f"workload: {text[:60]!r} lacks a part; write for example web-search+alibaba-storage")
    split = [(each, None) if _is_one(each) else _named(each) for each in words]
    names = [name for name, _ in split]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"workload: {twice[:60]!r} is in the mix twice; write it once, with its whole share")
    alien = next((name for name in names if name in PATTERNS), None)
    if alien is not None:
        raise InputError(f"workload: {alien} is all at once and has no load to share; a mix is of {', '.join(SIZES)}")
    given = [share for _, share in split if share is not None]
    if not given:
        return [Part(name, 1 / len(names)) for name in names]
    if len(given) < len(names):
        raise InputError(f"workload: {text[:60]!r} has shares of some parts only; give all of them, or none")
    if not math.isclose(sum(given), 1.0, rel_tol=1e-6):
        raise InputError(f"workload: the shares of {text[:60]!r} add up to {sum(given):.0%}, not to 100%")
    return [Part(name, share) for name, share in zip(names, given, strict=True)]


def sizes_of(workload: str | os.PathLike[str]) -> Sizes:
    """The distribution of flow sizes of a workload that has one.

    Flows of independent parts that arrive at random are, together, flows that arrive at random, whose sizes are of a
    part as often as it sends: its share of the load over its mean size.

    Raises
    ------
    InputError
        If a part is neither known nor a file, or as `parts_of`.
    """
    parts = parts_of(workload)
    tables = [np.array(_table(part.name)).T for part in parts]
    if len(parts) == 1:
        return [(float(at), float(share)) for at, share in tables[0].T]
    rates = np.array([part.share / mean_of(*table) for part, table in zip(parts, tables, strict=True)])
    at = np.unique(np.concatenate([table[0] for table in tables]))
    each = np.array([np.interp(at, *table, left=0.0, right=1.0) for table in tables])
    share = rates @ each
    return [(float(size), float(below)) for size, below in zip(at, share / share[-1], strict=True)]


def mean_size(workload: str | os.PathLike[str]) -> float:
    """Mean size of a workload's flows [bytes].

    Raises
    ------
    InputError
        As `sizes_of`.
    """
    return mean_of(*np.array(sizes_of(workload)).T)


def words_of(workload: str | os.PathLike[str]) -> str:
    """A workload in a few words, files without their folders."""
    parts = parts_of(workload)
    names = [os.path.basename(part.name) for part in parts]
    if len({part.share for part in parts}) == 1:
        return " + ".join(names)
    return " + ".join(f"{name} ({100 * part.share:g} %)" for name, part in zip(names, parts, strict=True))


def _is_one(name: str) -> bool:
    return name in SIZES or name in PATTERNS or os.path.exists(name)


def _named(text: str) -> tuple[str, float | None]:
    """Split ``NAME:SHARE`` into name and share."""
    name, colon, share = text.rpartition(":")
    if not colon:
        return text, None
    value = quantity(share, RATIO, "workload")
    if not 0 < value <= 1:
        raise InputError(f"workload: {share[:20]!r} of {name[:40]!r} is no share of the load; write for example 70%")
    return name.strip(), value


def _table(name: str) -> Sizes:
    if name in SIZES:
        return SIZES[name]
    if not os.path.exists(name):
        raise InputError(f"workload: {name[:60]!r} is neither known nor a file; write one of {KNOWN}")
    return read_sizes(name)
