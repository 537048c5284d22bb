"""The unknowns of a fit, each between two bounds, as coordinates from 0 to 1."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from fluidcc import units
from fluidcc.builders.names import dimension_of, format_value, spec_of
from fluidcc.errors import InputError

MOST = 6  # unknowns; a quadratic in more asks for thousands of runs


@dataclasses.dataclass(frozen=True)
class Space:
    """Names and bounds [SI]; a name whose bounds are above 0 is searched in its logarithm."""

    names: tuple[str, ...]
    low: np.ndarray
    high: np.ndarray

    @property
    def logarithmic(self) -> np.ndarray:
        """True for each name that is searched in its logarithm."""
        return self.low > 0

    def values(self, at: np.ndarray) -> dict[str, float]:
        """Values [SI] at a point of the unit cube; the nearest whole one of what counts."""
        found = {}
        for name, low, high, share in zip(self.names, self.low, self.high, at, strict=True):
            value = float(low * (high / low) ** share if low > 0 else low + (high - low) * share)
            spec = spec_of(name)
            value = float(round(value)) if spec is not None and spec.integer else value
            found[name] = units.marked(value, dimension_of(name))
        return found

    def shown(self, at: np.ndarray) -> str:
        """Values at a point, with units."""
        return ", ".join(f"{name} = {format_value(name, value)}" for name, value in self.values(at).items())


def space_of(over: Mapping[str, Any]) -> Space:
    """The unknowns of ``over``: a pair of bounds by name, text with units or numbers in SI.

    Raises
    ------
    InputError
        If there is none, there are too many, or a pair is no range.
    """
    if not isinstance(over, Mapping) or not over:
        raise InputError("over: expected a range by name; write for example {'timer': ('20us', '500us')}")
    if len(over) > MOST:
        raise InputError(f"over: {len(over)} unknowns are more than {MOST}; fix some of them")
    bounds = []
    for name, pair in over.items():
        if not isinstance(pair, (tuple, list, np.ndarray)) or len(pair) != 2:
            raise InputError(f"over {name}: expected two bounds, not {repr(pair)[:40]}; write ('20us', '500us')")
        dimension = dimension_of(name)
        low, high = (units.quantity(each, dimension, f"over {name}") for each in pair)
        if not np.isfinite([low, high]).all() or low >= high:
            raise InputError(f"over {name}: {repr(pair)[:40]} is no range; give the lower bound first")
        spec = spec_of(name)
        if spec is not None and spec.integer:
            if np.floor(high) <= np.ceil(low) or low < spec.low:
                able = f"two whole numbers from {spec.low:g} on"
                raise InputError(f"over {name}: {repr(pair)[:40]} does not hold {able}; write for example (1, 16)")
            low, high = np.ceil(low), np.floor(high)
        bounds.append((float(low), float(high)))
    low, high = np.array(bounds).T
    return Space(tuple(map(str, over)), low, high)
