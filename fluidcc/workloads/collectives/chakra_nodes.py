"""Nodes of Chakra execution traces in their two forms: protobuf, and the JSON that ``chakra_jsonizer`` makes of it.

After the schema that MLCommons publishes (``schema/protobuf/et_def.proto``): a message ``GlobalMetadata``, then
messages ``Node``, each behind its length. The metadata is passed over, so that both of its layouts are read: attributes
alone, and a version before them. Fields that are read are numbered below; the others are passed over.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fluidcc.errors import InputError
from fluidcc.files import read_whole
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
from fluidcc.workloads.collectives.schedule import LARGEST
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
