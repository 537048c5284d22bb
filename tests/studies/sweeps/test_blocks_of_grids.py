"""Blocks of grids whose points one can count."""

from __future__ import annotations

import pytest

from fluidcc.studies.sweeps.grid import Blocks, blocks_of


@pytest.mark.parametrize(
    ("shape", "most", "block"),
    [
        ((2, 3), 6, (2, 3)),  # all at once
        ((2, 3), 5, (1, 3)),
        ((4, 3), 6, (2, 3)),
        ((5, 3), 12, (3, 3)),  # two pieces, about equal
        ((4, 3), 3, (1, 3)),
        ((4, 3), 2, (1, 2)),
        ((4, 7), 3, (1, 3)),  # three pieces: 3, 3 and 1
        ((4, 7), 4, (1, 4)),
        ((4, 7), 1, (1, 1)),
        ((4, 7), 0, (1, 1)),  # one at least
        ((2, 2, 3), 6, (1, 2, 3)),
        ((10,), 4, (4,)),
        ((), 5, ()),
    ],
)
def test_blocks_are_whole_along_the_last_axes_and_about_equal(
    shape: tuple[int, ...], most: int, block: tuple[int, ...]
) -> None:
    assert blocks_of(shape, most) == Blocks(shape, block)


def test_parts_follow_each_other_and_fill_their_boxes() -> None:
    blocks = Blocks((3, 4), (2, 4))
    assert blocks.points == 8
    assert blocks.parts() == [slice(0, 8), slice(8, 12)]
    assert blocks.box(slice(0, 8)) == (slice(0, 2), slice(0, 4))
    assert blocks.box(slice(8, 12)) == (slice(2, 3), slice(0, 4))
    pieces = Blocks((2, 5), (1, 3))
    assert pieces.parts() == [slice(0, 3), slice(3, 5), slice(5, 8), slice(8, 10)]
    assert pieces.box(slice(3, 5)) == (slice(0, 1), slice(3, 5))
    assert pieces.box(slice(8, 10)) == (slice(1, 2), slice(3, 5))
