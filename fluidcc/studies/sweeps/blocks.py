"""A grid in parts: runs of points that follow each other, each of which is a block of the grid."""

from __future__ import annotations

import dataclasses
import math

import numpy as np


@dataclasses.dataclass(frozen=True)
class Blocks:
    """Equal blocks of a grid, but for those at its edge.

    A block is whole along the last axes, a piece of one axis, and a single value of those before; so its points follow
    each other, and it is a chunk of an array over the grid.

    Parameters
    ----------
    shape : tuple of int
        Of the grid.
    block : tuple of int
        Of a block.
    """

    shape: tuple[int, ...]
    block: tuple[int, ...]

    @property
    def points(self) -> int:
        """Points of a whole block."""
        return math.prod(self.block)

    def parts(self) -> list[slice]:
        """The points of each block, counted as in `Grid.columns`."""
        stops = []
        counts = [-(-length // size) for length, size in zip(self.shape, self.block, strict=True)]
        for at in np.ndindex(*counts):
            lengths = [min(size, length - k * size) for k, size, length in zip(at, self.block, self.shape, strict=True)]
            stops.append(math.prod(lengths))
        ends = np.cumsum(stops)
        return [slice(int(end) - count, int(end)) for end, count in zip(ends, stops, strict=True)]

    def box(self, part: slice) -> tuple[slice, ...]:
        """Return the slices of the grid that the points of a block fill."""
        first = np.unravel_index(part.start, self.shape)
        last = np.unravel_index(part.stop - 1, self.shape)
        return tuple(slice(int(a), int(b) + 1) for a, b in zip(first, last, strict=True))


def blocks_of(shape: tuple[int, ...], most: int) -> Blocks:
    """Blocks of at most so many points, about equal along the axis that is cut."""
    block, room = [1] * len(shape), max(1, most)
    for axis in reversed(range(len(shape))):
        pieces = -(-shape[axis] // room)
        block[axis] = -(-shape[axis] // pieces)
        if pieces > 1:
            break
        room //= shape[axis]
    return Blocks(shape, tuple(block))
