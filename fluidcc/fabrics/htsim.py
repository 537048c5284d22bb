"""Connection matrices of htsim (Broadcom/csg-htsim), read."""

from __future__ import annotations

import math
import os

import numpy as np

from fluidcc.fabrics.hpcc_files import LARGEST_NODE, Lines
from fluidcc.surface import public

_EXPECTED = "a connection matrix: Nodes, Connections, then a line like 0->5 id 1 start 0 size 2000000 for each"
_NOT_MODELLED = {
    "trigger": "flows that wait for others",
    "addon": "flows that wait for others",
    "send_done_trigger": "flows that others wait for",
    "recv_done_trigger": "flows that others wait for",
}


@public()
def read_connections(path: str | os.PathLike[str]) -> np.ndarray:
    """Read an htsim connection matrix.

    Lines ``Nodes N`` and ``Connections M``, then one for each flow: ``source->target``, and pairs of a word and a
    number: ``start`` [ps], ``size`` [bytes; 0 for a flow without end], ``id`` and ``prio``, which are not used. What
    begins with ``#`` is left out.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    ndarray, shape (flows, 4)
        Source, target, start [s] and size [bytes], in the order of the file.

    Raises
    ------
    InputError
        If it is none, with the line; or if flows wait for others (triggers) or links fail, which is not read.
    """
    lines = Lines(path, _EXPECTED)
    counts: dict[str, int] = {}
    rows = []
    for words in lines.rows():
        first = words[0]
        if "->" in first:
            rows.append(_flow(lines, words, counts.get("Nodes", 0)))
        elif first in ("Nodes", "Connections", "Triggers", "Failures"):
            if len(words) != 2:
                raise lines.wrong(f"{first} is one number; write for example {first} 16")
            if first in counts:
                raise lines.wrong(f"{first} is there twice; keep one")
            counts[first] = lines.number(words[1], int, 0, f"the number of {first}")
            if first in ("Triggers", "Failures") and counts[first]:
                raise lines.wrong(f"{first} are not read; delete them, and what refers to them")
            if first == "Nodes" and counts[first] > LARGEST_NODE:
                raise lines.wrong(f"{counts[first]:,} nodes are more than {LARGEST_NODE:,}")
        else:
            raise lines.wrong(f"{first[:30]!r} begins no line of a connection matrix; write 0->5 start 0 size 2000000")
    if counts.get("Connections") != len(rows):
        said = counts.get("Connections", "no number of them")
        raise lines.wrong(f"the file has {len(rows):,} connections and says {said}")
    return np.array(rows, float).reshape(-1, 4)


def _flow(lines: Lines, words: list[str], nodes: int) -> tuple[float, float, float, float]:
    ends = [lines.number(word, int, 0, "a node") for word in words[0].split("->", 1)]
    beyond = next((end for end in ends if end >= nodes), None)
    if beyond is not None:
        raise lines.wrong(f"node {beyond} is none of {nodes}, which count from 0")
    found = {"start": -1.0, "size": 0.0}
    rest = iter(words[1:])
    for word in rest:
        if word in _NOT_MODELLED:
            raise lines.wrong(f"{word}: {_NOT_MODELLED[word]} are not read; give each flow a start")
        if word not in ("start", "size", "id", "prio"):
            raise lines.wrong(f"{word[:30]!r} is unknown; write start and size")
        value = lines.number(next(rest, ""), float, 0.0, word)
        if word in found:
            found[word] = value
    if found["start"] < 0:
        raise lines.wrong("has no start; write for example start 0")
    return float(ends[0]), float(ends[1]), found["start"] * 1e-12, found["size"] or math.inf
