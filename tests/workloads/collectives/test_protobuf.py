"""Protobuf's wire format: what an encoder of the tests' own writes is read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluidcc.workloads.collectives import protobuf as pb
from tests.workloads.collectives import wire


@given(st.integers(0, 2**64 - 1), st.binary(max_size=9))
def test_numbers_are_read_as_they_are_written(value: int, behind: bytes) -> None:
    """Sevens of bits in the wrong order, or a top bit left in, would change them."""
    raw = wire.number(value)
    assert pb.varint(raw + behind, 0) == (value, len(raw))


@given(st.integers(-(2**63), 2**63 - 1))
def test_negative_numbers(value: int) -> None:
    assert pb.signed(pb.varint(wire.number(value), 0)[0]) == value
    assert pb.zigzag(2 * value if value >= 0 else -2 * value - 1) == value


@given(st.lists(st.tuples(st.integers(1, 2**29 - 1), st.integers(0, 2**64 - 1) | st.binary(max_size=300))))
def test_fields_are_read_as_they_are_written(expected: list[tuple[int, int | bytes]]) -> None:
    raw = b"".join(
        wire.key(field, 0) + wire.number(value) if isinstance(value, int) else wire.key(field, 2) + wire.framed(value)
        for field, value in expected
    )
    assert [(field, value) for field, _, value in pb.fields(raw)] == expected
    assert list(pb.messages(wire.framed(raw) * 2)) == [raw, raw]


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"\x08", "byte 1: a number does not end"),
        (b"\x08" + b"\xff" * 11, "byte 1: a number does not end"),
        (b"\x12\x05ab", "byte 2: 5 bytes are announced, and 2 are there"),
        (b"\x0d\x00\x00", "byte 1: 4 bytes are announced, and 2"),
        (b"\x08\x01\x0b", "byte 2: a field has wire type 3"),
        (b"\x00\x01", "byte 0: a field has number 0"),
    ],
)
def test_bytes_that_are_no_protobuf(raw: bytes, says: str) -> None:
    with pytest.raises(pb.WireError, match=says):
        list(pb.fields(raw))
