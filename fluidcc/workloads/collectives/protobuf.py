"""Protobuf's wire format: messages one after the other, and the fields of one, with no package and no schema.

After the encoding that protobuf documents: a field is a varint of its number and wire type, then its value.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_WIDTHS = {FIXED64: 8, FIXED32: 4}


class WireError(ValueError):
    """Bytes that are no protobuf; the message says from which byte on."""


def varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the unsigned number at a byte, and the place behind it."""
    found = shift = 0
    for k in range(at, min(at + 10, len(data))):
        found |= (data[k] & 0x7F) << shift
        if data[k] < 0x80:
            return found & 0xFFFF_FFFF_FFFF_FFFF, k + 1
        shift += 7
    raise WireError(f"byte {at}: a number does not end")


def _taken(data: bytes, at: int, size: int) -> tuple[bytes, int]:
    if at + size > len(data):
        raise WireError(f"byte {at}: {size} bytes are announced, and {len(data) - at} are there")
    return data[at : at + size], at + size


def messages(data: bytes) -> Iterator[bytes]:
    """Yield messages, each behind its length as a varint.

    Raises
    ------
    WireError
        If the bytes end within one.
    """
    at = 0
    while at < len(data):
        size, at = varint(data, at)
        message, at = _taken(data, at, size)
        yield message


def fields(message: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """Yield the number, the wire type and the value of each field: a whole number of a varint, bytes of the others.

    Raises
    ------
    WireError
        If the bytes end within one, or are none.
    """
    at = 0
    while at < len(message):
        start = at
        key, at = varint(message, at)
        number, wire = key >> 3, key & 7
        value: int | bytes
        if wire == VARINT:
            value, at = varint(message, at)
        elif wire == BYTES:
            size, at = varint(message, at)
            value, at = _taken(message, at, size)
        elif wire in _WIDTHS:
            value, at = _taken(message, at, _WIDTHS[wire])
        else:
            raise WireError(f"byte {start}: a field has wire type {wire}, which is none of 0, 1, 2 and 5")
        if not number:
            raise WireError(f"byte {start}: a field has number 0")
        yield number, wire, value


def packed(value: int | bytes) -> list[int]:
    """Return the numbers of a repeated field of varints, in one value or one each."""
    if isinstance(value, int):
        return [value]
    found, at = [], 0
    while at < len(value):
        number, at = varint(value, at)
        found.append(number)
    return found


def signed(value: int) -> int:
    """Return an int32 or int64, of which negative ones have all 64 bits."""
    return value - (1 << 64) if value >> 63 else value


def zigzag(value: int) -> int:
    """Return a sint32 or sint64: 0, -1, 1, -2, ..."""
    return (value >> 1) ^ -(value & 1)


def unpacked(layout: str, value: bytes) -> int | float:
    """Return the number of fixed width, as `struct` lays it out."""
    return struct.unpack(layout, value)[0]
