"""Files of operations: a GOAL schedule, a SimAI workload or Chakra execution traces, told apart by what they are."""

from __future__ import annotations

import os
from pathlib import Path

from fluidcc.workloads.collectives.chakra import is_chakra, read_chakra
from fluidcc.workloads.collectives.goal import goal_of
from fluidcc.workloads.collectives.schedule import Schedule
from fluidcc.workloads.collectives.simai import is_simai, simai_of
from fluidcc.workloads.fabrics.lines import LARGEST_LIST, Lines

_EXPECTED = (
    "a GOAL schedule (num_ranks 2, ...), a SimAI workload (HYBRID_TRANSFORMER_FWD_IN_BCKWD ...), "
    "or Chakra execution traces (NAME.0.et)"
)


def read_schedule(path: str | os.PathLike[str], ranks: int | None = None) -> Schedule:
    """Read a file of operations, of so many ranks if it leaves that open.

    Raises
    ------
    InputError
        If it is none, with the line or node.
    """
    if is_chakra(Path(path)):
        return read_chakra(path)
    lines = Lines(path, _EXPECTED, LARGEST_LIST)
    return simai_of(lines, ranks) if is_simai(next(iter(lines.peek()), "")) else goal_of(lines)
