"""The grid of a sweep: values by name, all their combinations, and blocks of points that follow each other."""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from fluidcc import units
from fluidcc.builders.names import dimension_of, format_value
from fluidcc.errors import InputError
from fluidcc.results.grid import Grid
from fluidcc.surface import nearest

MOST_POINTS = 50_000_000


def check_takes(make_scenario: Any, names: Iterable[str]) -> None:
    """Refuse a function that cannot be called with the names that are swept.

    Raises
    ------
    InputError
    """
    names, known = list(names), list[str]()
    try:
        signature = inspect.signature(make_scenario)
        known = list(signature.parameters)
        signature.bind(**dict.fromkeys(names))
    except ValueError:  # it has no signature to look at
        return
    except TypeError as error:
        near = next((each for name in names if name not in known and (each := nearest(name, known))), None)
        hint = f"did you mean {near}?" if near else "name its parameters in over="
        raise InputError(f"over: make_scenario cannot be called with {', '.join(names)} ({error}); {hint}") from None


def grid_of(over: Mapping[str, Any]) -> Grid:
    """Make a grid from names and values; values may be numbers in SI, arrays, or text with units.

    Raises
    ------
    InputError
        If there is no name, an axis is empty or holds something unreadable, or there are too many points.
    """
    if not isinstance(over, Mapping):
        raise InputError(f"over: expected names and values, not {repr(over)[:40]}; write for example {{'g': [1, 2]}}")
    if not over:
        raise InputError("over: nothing to sweep; give for example over={'kmin': ['5KB', '10KB']}")
    axes = {}
    for name, values in over.items():
        told = " ".join(repr(values).split())[:60]
        # JAX's arrays, and pandas' columns, are no sequences to Python.
        listed = isinstance(values, Sequence) or (hasattr(values, "__array__") and getattr(values, "ndim", 0) == 1)
        if isinstance(values, (str, bytes)) or not listed:
            raise InputError(f"over {name}: expected a list of values, not {told}; write for example [1, 2]")
        numbers = _read(values, name)
        try:
            axes[name] = np.asarray(numbers, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(f"over {name}: {told} holds something that is no number") from None
        if axes[name].ndim != 1 or not len(axes[name]):
            raise InputError(f"over {name}: expected a list of at least one value; write for example [1, 2]")
    grid = Grid(axes)
    if grid.points > MOST_POINTS:
        raise InputError(f"over: {grid.points:,} points are more than {MOST_POINTS:,}; give fewer values")
    return grid


def _read(values: Any, name: str) -> list[Any]:
    """Text with its units, numbers as they are; text without a unit is no rate, in a list of rates or by its name."""
    found = [units.parse_any(each, name) if isinstance(each, str) else each for each in values]
    if any(isinstance(each, str) for each in values) and (
        dimension_of(name) == units.RATE or any(isinstance(each, units.Rate) for each in found)
    ):
        found = [units.parse(each, units.RATE, name) if isinstance(each, str) else each for each in values]
    return found


def parse_axis(text: str, dimension: str, name: str) -> np.ndarray:
    """Read the command line's ``a:b:n``, ``log:a:b:n`` or ``v1,v2``; ends inclusive.

    Raises
    ------
    InputError
        If it is none of these, n is below 2 (or 1 where a equals b), or a logarithmic end is not positive.
    """
    if ":" not in text:
        return np.array([units.parse(part, dimension, name) for part in text.split(",")])
    parts = text.split(":")
    logarithmic = parts[0] == "log"
    if logarithmic:
        parts = parts[1:]
    if len(parts) != 3 or not parts[2].strip().isdigit():
        raise InputError(f"{name}: cannot read the range {text[:60]!r}; write a:b:n, log:a:b:n or v1,v2,...")
    low, high = (units.parse(part, dimension, name) for part in parts[:2])
    count = int(parts[2]) if len(parts[2]) < 10 else MOST_POINTS + 1
    if not 1 <= count <= MOST_POINTS or (count == 1 and low != high):
        raise InputError(
            f"{name}: {text[:60]!r} asks for {parts[2][:12]} values; write 2, for both ends, to {MOST_POINTS}"
        )
    if not logarithmic:
        return np.linspace(low, high, count)
    if min(low, high) <= 0:
        raise InputError(f"{name}: a logarithmic range needs ends above 0, not {text[:60]!r}")
    return np.geomspace(low, high, count)


def axis_text(name: str, values: Any) -> str:
    """Ends and number of the values of an axis, for people."""
    ends = [format_value(name, float(values[at])) for at in (0, -1)]
    return f"{ends[0]} to {ends[1]}, {len(values)} values" if len(values) > 1 else ends[0]


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
