"""Chakra execution traces, ``NAME.RANK.et`` or ``NAME.RANK.json`` of each rank, as a schedule of operations.

Nodes have two forms: protobuf, and the JSON that ``chakra_jsonizer`` makes of it. After the schema that MLCommons
publishes (``schema/protobuf/et_def.proto``): a message ``GlobalMetadata``, then messages ``Node``, each behind its
length. The metadata is passed over, so that both of its layouts are read: attributes alone, and a version before them.
Fields that are read are numbered below; the others are passed over.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fluidcc.errors import InputError
from fluidcc.files import read_whole
from fluidcc.surface import public
from fluidcc.workloads.collectives.jobs import MOST_RANKS
from fluidcc.workloads.collectives.mapping import MOST_FLOWS
from fluidcc.workloads.collectives.protobuf import (
    BYTES,
    FIXED32,
    FIXED64,
    VARINT,
    WireError,
    fields,
    messages,
    packed,
    signed,
    unpacked,
    zigzag,
)
from fluidcc.workloads.collectives.schedule import LARGEST, Operation, Schedule
from fluidcc.workloads.fabrics.lines import LARGEST_LIST

EXPECTED = "Chakra execution traces: files NAME.0.et, NAME.1.et, ... (or .json) of all ranks; name one, or NAME"
_ID, _NAME, _TYPE, _CONTROL, _DATA, _DURATION, _ATTRIBUTE = 1, 2, 3, 4, 5, 7, 10  # fields of a node
_TYPES = (
    "INVALID_NODE", "METADATA_NODE", "MEM_LOAD_NODE", "MEM_STORE_NODE", "COMP_NODE", "COMM_SEND_NODE",
    "COMM_RECV_NODE", "COMM_COLL_NODE", "STORAGE_NODE", "BATCH_NODE", "CHECKPOINT_NODE",
)  # fmt: skip
METADATA, SEND, RECEIVE, COLLECTIVE = 1, 5, 6, 7  # types that differ in what they do
_VALUES: dict[int, tuple[int, Callable[[Any], Any]]] = {  # of an attribute: field, wire type, what it means
    3: (FIXED64, lambda raw: unpacked("<d", raw)),
    5: (FIXED32, lambda raw: unpacked("<f", raw)),
    7: (VARINT, signed),
    9: (VARINT, signed),
    11: (VARINT, int),
    13: (VARINT, int),
    15: (VARINT, zigzag),
    17: (VARINT, zigzag),
    19: (FIXED32, lambda raw: unpacked("<I", raw)),
    21: (FIXED64, lambda raw: unpacked("<Q", raw)),
    23: (FIXED32, lambda raw: unpacked("<i", raw)),
    25: (FIXED64, lambda raw: unpacked("<q", raw)),
    27: (VARINT, bool),
    28: (BYTES, lambda raw: [value for number, _, each in fields(raw) if number == 1 for value in packed(each)]),
    29: (BYTES, lambda raw: raw.decode(errors="replace")),
}
_READ = (
    b"comm_type", b"comm_size", b"comm_src", b"comm_dst", b"comm_tag", b"pg_name", b"involved_dim", b"num_ops",
)  # fmt: skip
_DECODER = json.JSONDecoder()
_FILE = re.compile(r"(.+)\.(\d{1,6})\.(et|json)$")
_COLLECTIVES = (
    "ALL_REDUCE", "REDUCE", "ALL_GATHER", "GATHER", "SCATTER", "BROADCAST", "ALL_TO_ALL", "REDUCE_SCATTER",
    "REDUCE_SCATTER_BLOCK", "BARRIER",
)  # fmt: skip
_KINDS = {0: "all-reduce", 2: "all-gather", 5: "broadcast", 6: "all-to-all", 7: "reduce-scatter", 8: "reduce-scatter"}


@dataclasses.dataclass
class Node:
    """A node of one rank's trace, and where it is, for messages."""

    where: str
    id: int = 0
    name: str = ""
    type: int = 0
    after: list[int] = dataclasses.field(default_factory=list)
    duration: int = 0  # us
    attributes: dict[str, Any] = dataclasses.field(default_factory=dict)

    def wrong(self, text: str) -> InputError:
        """Return the error for what is wrong with the node."""
        return InputError(f"{self.where}, node {self.id} ({self.name[:40]}): {text}")

    def whole(self, name: str, most: int = LARGEST, default: int | None = None) -> int:
        """Return an attribute that is a whole number."""
        found = self.attributes.get(name, default)
        if found is None:
            raise self.wrong(f"has no attribute {name}; add it")
        if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found <= most:
            raise self.wrong(f"{name} {str(found)[:30]!r} is none; write a whole number, 0 to {most}")
        return found


def nodes_of(path: Path) -> list[Node]:
    """Read one rank's trace.

    Raises
    ------
    InputError
        If it is none, or has types of nodes that are not read.
    """
    where = str(path)[:200]
    try:
        data = read_whole(path, LARGEST_LIST)
    except (OSError, ValueError) as error:
        raise InputError(f"{where}: {getattr(error, 'strerror', None) or error}; give {EXPECTED}") from None
    found = _from_json(data, where) if path.suffix == ".json" else _from_protobuf(data, where)
    if not found:
        raise InputError(f"{where}: has no node; give {EXPECTED}")
    unread: dict[int, Node] = {}
    for node in found:
        if not METADATA <= node.type <= COLLECTIVE:
            unread.setdefault(node.type, node)
    if unread:
        told = [f"{kind} ({_type_name(kind)}, node {node.id})" for kind, node in unread.items()]
        raise InputError(f"{where}: types of nodes that are not read: {', '.join(told[:8])}; leave these out")
    return found


def _type_name(kind: int) -> str:
    return _TYPES[kind] if kind < len(_TYPES) else "unknown"


def _from_protobuf(data: bytes, where: str) -> list[Node]:
    found: list[Node] = []
    at = ""
    try:
        for k, message in enumerate([*messages(data)]):
            at = f", {f'node {k} in order' if k else 'GlobalMetadata'}"
            if k:
                found.append(_node(message, where))
            elif any(number == _ID and wire == VARINT for number, wire, _ in fields(message)):
                raise InputError(
                    f"{where}: begins with a node, as traces of the first schema (2022), which are not read; "
                    "write GlobalMetadata before it, and nodes as of version 0.0.4"
                )
    except WireError as error:
        raise InputError(f"{where}{at}, {error}; give {EXPECTED}") from None
    return found


def _node(message: bytes, where: str) -> Node:
    node = Node(where)
    for number, wire, value in fields(message):
        if number in (_CONTROL, _DATA) and wire in (VARINT, BYTES):
            node.after += packed(value)
        elif number == _ATTRIBUTE and isinstance(value, bytes):
            _attribute(node, value)
        elif number == _NAME and isinstance(value, bytes):
            node.name = " ".join(value.decode(errors="replace").split())
        elif number in (_ID, _TYPE, _DURATION):
            if not isinstance(value, int):
                raise WireError(f"field {number} of a node has wire type {wire}")
            node.id, node.type, node.duration = (
                value if number == each else now
                for each, now in ((_ID, node.id), (_TYPE, node.type), (_DURATION, node.duration))
            )
    return node


def _attribute(node: Node, message: bytes) -> None:
    """Read an attribute that has an effect."""
    name, number, wire, value = b"", 0, 0, None
    for each in fields(message):
        if each[0] == 1 and isinstance(each[2], bytes):
            name = each[2]
        elif each[0] > 2:
            number, wire, value = each
    if name in _READ:
        expected, meaning = _VALUES.get(number, (-1, int))
        if wire != expected:
            raise WireError(f"attribute {name.decode()} of node {node.id} has field {number} of wire type {wire}")
        node.attributes[name.decode()] = meaning(value)


def _from_json(data: bytes, where: str) -> list[Node]:
    """Read the same as protobuf's JSON, one object after the other, the metadata first."""
    found: list[Node] = []
    at, k = 0, 0
    try:
        text = data.decode("utf-8-sig")
        while at < len(text):
            if text[at].isspace():
                at += 1
                continue
            document, at = _DECODER.raw_decode(text, at)
            if k:
                found.append(_json_node(document, where))
            k += 1
    except InputError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError) as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0][:100]
        raise InputError(
            f"{where}, {f'node {k} in order' if k else 'GlobalMetadata'} ({reason}); give {EXPECTED}"
        ) from None
    return found


def _json_node(document: Any, where: str) -> Node:
    """Read a node as protobuf's JSON mapping has it: names in camels, numbers of 64 bits as texts, zeros left out."""
    node = Node(where, int(document.get("id", 0)), " ".join(str(document.get("name", "")).split()))
    kind = document.get("type", 0)
    if isinstance(kind, str) and kind not in _TYPES:
        raise node.wrong(f"is of type {kind[:40]!r}, which is not read; leave it out")
    node.type = _TYPES.index(kind) if isinstance(kind, str) else int(kind)
    node.after = [int(each) for name in ("ctrlDeps", "dataDeps") for each in document.get(name, ())]
    node.duration = int(document.get("durationMicros", 0))
    for attribute in document.get("attr", ()):
        name = str(attribute["name"])
        if name.encode() in _READ:
            (key,) = attribute.keys() - {"name", "docString"}
            value = attribute[key]
            whole = key.removesuffix("Val").rstrip("0123456789").endswith(("int", "fixed"))
            node.attributes[name] = value["values"] if key.endswith("List") else int(value) if whole else value
    return node


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
