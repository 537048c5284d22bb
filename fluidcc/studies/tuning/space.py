"""Space of tuning: variables between bounds, on the values that their registers take."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from fluidcc import units
from fluidcc.builders.names import dimension_of, format_value, spec_of
from fluidcc.errors import InputError
from fluidcc.studies.tuning.device_grids import GRIDS, typed
from fluidcc.units import parse

Point = dict[str, float]

_WIDE = 8.0  # ends whose ratio is larger are searched by ratios
_HALF, _LEAST = 0.5, 5  # of a range, and how many settings of a plateau, for a variable not to matter
_FINE = 1 << 20  # steps of a range that has no register


@dataclasses.dataclass(frozen=True)
class Variable:
    """Parameter that is tuned between bounds.

    Parameters
    ----------
    name : str
    low, high : float
        Least and largest value that is tried, in SI, both settable.
    step : float or None
        Values are whole multiples of it; None: any between the bounds.
    """

    name: str
    low: float
    high: float
    step: float | None = None

    @property
    def logarithmic(self) -> bool:
        """True if the variable is searched by ratios."""
        return self.low > 0 and self.high > _WIDE * self.low

    def at(self, share: float) -> float:
        """The settable value at a share of the range, 0 to 1."""
        share = min(max(float(share), 0.0), 1.0)
        if self.logarithmic:
            value = self.low * (self.high / self.low) ** share
        else:
            value = self.low + share * (self.high - self.low)
        return self.snapped(value)

    def rounded(self, value: float) -> float:
        """Round a settable value as one would type it; an end stays as it is."""
        if value in (self.low, self.high) or self.name not in GRIDS:
            return value
        value = min(max(typed(self.name, value), self.low), self.high)
        return value if self.step == GRIDS[self.name].step else self.snapped(value)

    def in_cells(self, cell: float) -> Variable:
        """Return the same threshold on whole cells of a switch's memory [bytes]."""
        low, high = math.ceil(self.low / cell) * cell, math.floor(self.high / cell) * cell
        if low >= high:
            ends = " to ".join(format_value(self.name, end) for end in (self.low, self.high))
            raise InputError(f"over {self.name}: {ends} holds fewer than two multiples of a {cell:g}B cell; widen it")
        return dataclasses.replace(self, low=low, high=high, step=cell)

    def axis(self, count: int) -> list[float]:
        """Return ``count`` settable values from end to end, or as many as there are."""
        return sorted({self.at(k / (count - 1)) for k in range(count)})

    def snapped(self, value: float) -> float:
        """The settable value nearest to another, within the bounds."""
        if self.step is not None:
            value = round(value / self.step) * self.step
        return min(max(value, self.low), self.high)

    def share(self, value: float) -> float:
        """Return the place of a value in the range, 0 to 1."""
        value = min(max(value, self.low), self.high)
        if self.high == self.low:
            return 0.0
        if self.logarithmic:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def spacing(self, share: float) -> float:
        """Return how far from a place another value is, about the next, as a share of the range; 0 without a step."""
        if self.step is None:
            return 0.0
        value, found = self.rounded(self.at(share)), 0.0
        for sign in (1.0, -1.0):
            gap = self.step
            while self.low < value + sign * gap < self.high and self.rounded(value + sign * gap) == value:
                gap *= 2
            found = max(found, abs(self.share(self.rounded(value + sign * gap)) - share))
        return found


@dataclasses.dataclass(frozen=True)
class Space:
    """The box that is searched, as a unit cube."""

    variables: tuple[Variable, ...]

    @property
    def names(self) -> list[str]:
        """Names of the variables."""
        return [each.name for each in self.variables]

    def in_cells(self, cells: Iterable[float | None]) -> Space:
        """Return the space with thresholds on whole cells, if switches count their queues in these [bytes or None].

        Raises
        ------
        InputError
            If a range holds fewer than two such thresholds.
        """
        largest = max((float(cell) for cell in cells if cell is not None), default=None)
        if largest is None:
            return self
        return Space(tuple(e.in_cells(largest) if e.name in ("kmin", "kmax") else e for e in self.variables))

    def point(self, shares: Sequence[float] | np.ndarray) -> Point:
        """Values that one would type at a place in the cube; a Kmin above Kmax becomes Kmax."""
        found = {
            e.name: marked(e.name, e.rounded(e.at(share))) for e, share in zip(self.variables, shares, strict=True)
        }
        if "kmin" in found and "kmax" in found:
            found["kmin"] = min(found["kmin"], found["kmax"])
        return found

    def ranges(self, points: Sequence[Mapping[str, float]]) -> dict[str, tuple[float, float]]:
        """Least and largest value of each variable among some points; empty of none."""
        return {
            name: (min(each[name] for each in points), max(each[name] for each in points))
            for name in self.names
            if points
        }

    def irrelevant(self, points: Sequence[Mapping[str, float]]) -> list[str]:
        """Variables of which some points cover half the range or more; none of fewer than five points."""
        return [
            each.name
            for each in self.variables
            if len(points) >= _LEAST and np.ptp([each.share(point[each.name]) for point in points]) >= _HALF
        ]

    def ends(self, point: Mapping[str, float]) -> list[str]:
        """Variables that are at an end of their range."""
        return [each.name for each in self.variables if point[each.name] in (each.low, each.high)]

    def named(self, values: Sequence[float]) -> Point:
        """A point from its values in the order of the names."""
        return {name: marked(name, value) for name, value in zip(self.names, values, strict=True)}

    def shares(self, point: Mapping[str, float]) -> np.ndarray:
        """Place of a point in the cube; the nearest, if it is outside."""
        return np.array([each.share(point[each.name]) for each in self.variables])

    def spacing(self, shares: np.ndarray) -> np.ndarray:
        """Return the distance to the next settable values along each axis, (variables,)."""
        return np.array([each.spacing(share) for each, share in zip(self.variables, shares, strict=True)])

    def snapped(self, shares: np.ndarray) -> np.ndarray:
        """Places of the settable points nearest to some places, (points, variables)."""
        return np.stack([self.shares(self.point(row)) for row in np.atleast_2d(shares)])


def marked(name: str, value: float) -> float:
    """A value of a name, in SI, that can be given again."""
    return units.marked(value, dimension_of(name))


def space_of(over: Mapping[str, Any]) -> Space:
    """Read names with their bounds.

    Parameters
    ----------
    over : mapping
        For each name a pair of numbers in SI, or of texts with units. Names of DCQCN's registers and of the switch's
        thresholds take the values that can be set (`fluidcc.studies.tuning.device_grids`).

    Raises
    ------
    InputError
        If there is no name, a pair is none, or no value between the bounds can be set.
    """
    if not isinstance(over, Mapping) or not over:
        raise InputError("over: nothing to tune; give names and bounds, for example {'kmin': ('5KB', '400KB')}")
    variables = []
    for name, bounds in over.items():
        if isinstance(bounds, str) or not isinstance(bounds, Sequence) or len(bounds) != 2:
            raise InputError(f"over {name}: expected two bounds, not {repr(bounds)[:40]}; write for example (1, 2)")
        low, high = (number(bound, name) for bound in bounds)
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            ends = " and ".join(format_value(name, end) for end in (low, high))
            raise InputError(f"over {name}: {ends} are no bounds; write the smaller first, and two that differ")
        grid = GRIDS.get(name)
        if grid is None:
            spec = spec_of(name)
            whole = spec is not None and spec.integer
            variables.append(
                Variable(name, math.ceil(low), math.floor(high), 1.0) if whole else Variable(name, low, high)
            )
            continue
        _check_ends(name, low, high)
        first = math.ceil(max(low, grid.low) / grid.step - 1e-9) * grid.step
        last = math.floor(min(high, grid.high) / grid.step + 1e-9) * grid.step
        if first >= last:
            able = f"{format_value(name, grid.low)} to {format_value(name, grid.high)}"
            raise InputError(
                f"over {name}: fewer than two values in {format_value(name, low)} to {format_value(name, high)} can be "
                f"set; a device takes {able} in steps of {format_value(name, grid.step)}"
            )
        variables.append(Variable(name, first, last, grid.step))
    return Space(tuple(variables))


def _check_ends(name: str, low: float, high: float) -> None:
    """Refuse bounds beyond what a parameter may be; an end that it may only come near to is none."""
    spec = spec_of(name)
    for end in (low, high):
        if spec is not None and not spec.low <= end <= spec.high:
            least, most = (format_value(name, each) for each in (spec.low, spec.high))
            able = f"{least} to {most}" if math.isfinite(spec.high) else f"{least} or more"
            raise InputError(f"over {name}: {format_value(name, end)} is nothing that it can be; it takes {able}")


def point_of(values: Mapping[str, Any], space: Space, where: str) -> Point:
    """A setting in SI, as it is: it need be neither in the range nor settable.

    Raises
    ------
    InputError
        If a variable has no value, or a value no variable.
    """
    unknown = [name for name in values if name not in space.names]
    missing = [name for name in space.names if name not in values]
    if unknown or missing:
        word = f"{unknown[0]} is not tuned" if unknown else f"{missing[0]} is missing"
        raise InputError(f"{where}: {word}; give a value for each of {', '.join(space.names)}")
    return {name: marked(name, number(values[name], name, where)) for name in space.names}


def number(bound: Any, name: str, where: str = "over") -> float:
    """A number in SI, or text with a unit.

    Raises
    ------
    InputError
        If it is neither.
    """
    if isinstance(bound, str):
        return float(parse(bound, dimension_of(name), f"{where} {name}"))
    if isinstance(bound, bool) or not isinstance(bound, (int, float, np.number)):
        raise InputError(f"{where} {name}: {repr(bound)[:40]} is no number; write for example '5KB'")
    return float(bound)
