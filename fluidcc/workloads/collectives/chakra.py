"""Chakra execution traces, ``NAME.RANK.et`` or ``NAME.RANK.json`` of each rank, as a schedule of operations."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from pathlib import Path

from fluidcc.errors import InputError
from fluidcc.surface import public
from fluidcc.workloads.collectives.chakra_nodes import COLLECTIVE, EXPECTED, METADATA, RECEIVE, SEND, Node, nodes_of
from fluidcc.workloads.collectives.jobs import MOST_RANKS
from fluidcc.workloads.collectives.mapping import MOST_FLOWS
from fluidcc.workloads.collectives.schedule import LARGEST, Operation, Schedule

_FILE = re.compile(r"(.+)\.(\d{1,6})\.(et|json)$")
_COLLECTIVES = (
    "ALL_REDUCE", "REDUCE", "ALL_GATHER", "GATHER", "SCATTER", "BROADCAST", "ALL_TO_ALL", "REDUCE_SCATTER",
    "REDUCE_SCATTER_BLOCK", "BARRIER",
)  # fmt: skip
_KINDS = {0: "all-reduce", 2: "all-gather", 5: "broadcast", 6: "all-to-all", 7: "reduce-scatter", 8: "reduce-scatter"}


@public()
def read_chakra(path: str | os.PathLike[str]) -> Schedule:
    """Read Chakra execution traces.

    Rank k is on the k-th host of the placement. A node starts as its ``ctrl_deps`` and ``data_deps`` are done.
    COMP_NODE, MEM_LOAD_NODE and MEM_STORE_NODE take ``duration_micros``, and nodes that do not depend on each other
    overlap; a METADATA_NODE takes no time. ``comm_size`` is what a rank puts in [bytes].
    Collectives of one ``pg_name`` (none: of all ranks) follow each other on each rank in the order of its file; the
    k-th of one rank is that of the others. Sends and receives match as in `read_goal`.

    Parameters
    ----------
    path : str or path
        One rank's file, ``NAME.0.et``, or ``NAME``; or ``NAME.0.json``, as ``chakra_jsonizer`` writes it.

    Returns
    -------
    Schedule

    Raises
    ------
    InputError
        If they are none, a rank is missing, or a node cannot be read, with the file and the node.
    """
    name, files = _files(Path(path))
    ranks = [nodes_of(file) for file in files]
    groups = _groups(ranks)
    operations: list[Operation] = []
    unused: dict[str, str] = {}
    for rank, nodes in enumerate(ranks):
        at = {node.id: len(operations) + k for k, node in enumerate(nodes)}
        if len(at) < len(nodes):
            twice = next(node for k, node in enumerate(nodes) if at[node.id] != len(operations) + k)
            raise twice.wrong("has the id of a later node; give each its own")
        if len(operations) + len(nodes) > MOST_FLOWS:
            raise InputError(f"{nodes[0].where}: there are more than {MOST_FLOWS:,} nodes; give a part of them")
        for node in nodes:
            made = _operation(node, rank, len(ranks), groups)
            lacking = next((each for each in node.after if each not in at), None)
            if lacking is not None:
                raise node.wrong(f"depends on node {lacking}, which the file lacks; add it, or leave that out")
            made.requires = [at[each] for each in dict.fromkeys(node.after)]
            operations.append(made)
            if made.kind == "calc" and not made.amount and node.attributes.get("num_ops"):
                unused.setdefault("num_ops", f"{node.where}, node {node.id}")
    words = [f"{where}: {each} has no effect: give duration_micros" for each, where in unused.items()]
    return Schedule(name, len(ranks), operations, 1, tuple(words), tuple(node[0].where for node in ranks))


def _files(path: Path) -> tuple[str, list[Path]]:
    """Return the name that all ranks' files have in common, and the files in order."""
    given = _FILE.match(path.name)
    name, folder = given[1] if given else path.name.removesuffix(".et"), path.parent
    try:
        matches = [found for each in os.listdir(folder) if (found := _FILE.match(each)) and found[1] == name]
    except OSError as error:
        raise InputError(f"{str(folder)[:200]}: {error.strerror}; give {EXPECTED}") from None
    ending = given[3] if given else min((found[3] for found in matches), default="et")
    at = {int(found[2]): folder / found[0] for found in matches if found[3] == ending}
    shown = str(folder / name)[:200]
    wanted = int(given[2]) if given else 0
    if not at or (given and wanted not in at):
        raise InputError(f"{str(path)[:200]}: there is no {name[:60]}.{wanted}.{ending}; give {EXPECTED}")
    lacking = next((rank for rank in range(max(at) + 1) if rank not in at), None)
    if lacking is not None:
        raise InputError(f"{shown}.{lacking}.{ending}: is missing, and rank {max(at)} is there; give {EXPECTED}")
    if not 2 <= len(at) <= MOST_RANKS:
        raise InputError(f"{shown}.0.{ending}: {len(at)} ranks are none that can send; give 2 to {MOST_RANKS}")
    return str(folder / name), [at[rank] for rank in range(len(at))]


def is_chakra(path: Path) -> bool:
    """Check whether a path names execution traces: by its ending, or as the name that all ranks' have in common."""
    beside = (path.with_name(f"{path.name}.0.{ending}") for ending in ("et", "json"))
    return path.suffix == ".et" or bool(_FILE.match(path.name)) or (not path.exists() and any(map(Path.exists, beside)))


def _groups(ranks: list[list[Node]]) -> dict[str, tuple[int, ...]]:
    """Return the ranks of each process group: those that do a collective of its name."""
    members: dict[str, list[int]] = defaultdict(list)
    for rank, nodes in enumerate(ranks):
        for name in dict.fromkeys(_group(node) for node in nodes if node.type == COLLECTIVE):
            members[name].append(rank)
    return {name: tuple(of) for name, of in members.items()} | {"": tuple(range(len(ranks)))}


def _group(node: Node) -> str:
    return str(node.attributes.get("pg_name", ""))


def _operation(node: Node, rank: int, ranks: int, groups: dict[str, tuple[int, ...]]) -> Operation:
    """Return what a node does."""
    if node.type in (SEND, RECEIVE):
        kind, theirs, own = ("send", "comm_dst", "comm_src") if node.type == SEND else ("recv", "comm_src", "comm_dst")
        peer = node.whole(theirs)
        if node.whole(own, default=rank) != rank:
            raise node.wrong(f"{own} is {node.attributes[own]}, in the file of rank {rank}; write that")
        if peer >= ranks or peer == rank:
            raise node.wrong(f"{theirs} {peer} is the rank itself, or none of {ranks}; write another, from 0 on")
        return Operation(node.id, kind, rank, node.whole("comm_size"), peer, node.whole("comm_tag", default=0))
    if node.type == COLLECTIVE:
        kind = node.whole("comm_type")
        if kind not in _KINDS:
            told = f"{kind} ({_COLLECTIVES[kind] if kind < len(_COLLECTIVES) else 'unknown'})"
            known = ", ".join(f"{k} {_COLLECTIVES[k]}" for k in _KINDS)
            raise node.wrong(f"comm_type {told} is not read; write one of {known}")
        if not all(node.attributes.get("involved_dim") or [True]):
            raise node.wrong("involved_dim leaves a dimension out, which no file here has; name a group by pg_name")
        size, group = node.whole("comm_size"), groups[_group(node)]
        if size:
            total = size * len(group) if _KINDS[kind] == "all-gather" else size
            return Operation(node.id, _KINDS[kind], rank, total, tag=[*groups].index(_group(node)), group=group)
        return Operation(node.id, "calc", rank, 0)
    duration = 0 if node.type == METADATA else node.duration * 1000
    if duration > LARGEST:
        raise node.wrong(f"duration_micros {node.duration} is more than {LARGEST // 1000}; write less")
    return Operation(node.id, "calc", rank, duration)
