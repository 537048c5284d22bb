"""Protobuf's wire format as its documentation states it, written apart from reader and examples: for tests."""

from __future__ import annotations

import struct
from typing import Any

LISTS = {"ctrl_deps": 4, "data_deps": 5}
ENTRIES = {  # field and encoding of an attribute's value
    "double_val": (3, "<d"), "float_val": (5, "<f"), "int32_val": (7, "int"), "int64_val": (9, "int"),
    "uint32_val": (11, "int"), "uint64_val": (13, "int"), "sint32_val": (15, "zigzag"), "sint64_val": (17, "zigzag"),
    "fixed32_val": (19, "<I"), "fixed64_val": (21, "<Q"), "sfixed32_val": (23, "<i"), "sfixed64_val": (25, "<q"),
    "bool_val": (27, "int"), "bool_list": (28, "list"), "string_val": (29, "text"),
}  # fmt: skip


def number(value: int) -> bytes:
    """Groups of seven bits from the lowest, each but the last with its top bit set; negative ones as 64 bits."""
    bits = format(value % 2**64, "b")
    bits = bits.zfill(-(-len(bits) // 7) * 7)
    groups = [bits[k : k + 7] for k in range(0, len(bits), 7)][::-1]
    return bytes(int(("0" if k == len(groups) - 1 else "1") + each, 2) for k, each in enumerate(groups))


def key(field: int, wire: int) -> bytes:
    return number(field * 8 + wire)


def framed(raw: bytes) -> bytes:
    return number(len(raw)) + raw


def attribute(name: str, entry: str, value: Any) -> bytes:
    """An ``AttributeProto``."""
    field, way = ENTRIES[entry]
    raw = key(1, 2) + framed(name.encode())
    if way == "int":
        return raw + key(field, 0) + number(int(value))
    if way == "zigzag":
        return raw + key(field, 0) + number(2 * value if value >= 0 else -2 * value - 1)
    if way == "text":
        return raw + key(field, 2) + framed(value.encode())
    if way == "list":
        values = b"".join(number(int(each)) for each in value)
        return raw + key(field, 2) + framed(key(1, 2) + framed(values))
    packed = struct.pack(way, value)
    return raw + key(field, 5 if len(packed) == 4 else 1) + packed


def node(
    identity: int,
    kind: int,
    after: Any = (),
    micros: int = 0,
    *,
    name: str = "n",
    packed: bool = True,
    **attributes: Any,
) -> bytes:
    """A ``Node``, with integers as ``int64_val`` and texts as ``string_val``, or as (entry, value)."""
    raw = key(1, 0) + number(identity) + key(2, 2) + framed(name.encode()) + key(3, 0) + number(kind)
    if packed and after:
        raw += key(5, 2) + framed(b"".join(map(number, after)))
    else:
        raw += b"".join(key(4, 0) + number(each) for each in after)
    raw += key(6, 0) + number(12) + key(7, 0) + number(micros)
    raw += key(8, 2) + framed(key(1, 2) + framed(b"[]"))  # inputs
    for each, value in attributes.items():
        pair = value if isinstance(value, tuple) else ("string_val" if isinstance(value, str) else "int64_val", value)
        raw += key(10, 2) + framed(attribute(each, *pair))
    return raw


def trace(*nodes: bytes, metadata: bytes | None = None) -> bytes:
    """A file: metadata, here with a version, and nodes."""
    first = key(1, 2) + framed(b"0.0.4") if metadata is None else metadata
    return b"".join(map(framed, (first, *nodes)))
