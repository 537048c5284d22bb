"""Identity of two results in content, which ``==`` does not check for arrays."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import xarray as xr

CLOCKS = frozenset(
    {"compile_s", "wall_s", "setup_s", "analysis_s", "points_per_s"}
)  # of the machine, not of what was computed


class Comparable:
    """A frozen dataclass of arrays: ``==`` and ``hash`` go by identity, `identical` by content."""

    def identical(self, other: Any) -> bool:
        """Check whether another result is of the same class and the same in all that was computed, exactly.

        Datasets are compared as `xarray.Dataset.identical` does, values, coordinates, names and attributes, and their
        dtypes; NaN equals NaN. Times of the machine's clock are left out (``compile_s``, ``wall_s``,
        ``setup_s``, ``analysis_s``, ``points_per_s``), so that two runs of one scenario with one seed are identical.
        """
        return same(self, other)


def same(a: Any, b: Any) -> bool:
    """Check whether two values are of one type and exactly alike, including what they contain."""
    import xarray as xr

    if type(a) is not type(b):
        return False
    if isinstance(a, xr.Dataset):
        return _same_dataset(a, b)
    if isinstance(a, xr.DataArray):
        return a.dtype == b.dtype and a.identical(b)
    if isinstance(a, np.ndarray):
        return _same_array(a, b)
    if isinstance(a, Mapping):
        ours, theirs = ({key: value for key, value in each.items() if key not in CLOCKS} for each in (a, b))
        return ours.keys() == theirs.keys() and all(same(value, theirs[key]) for key, value in ours.items())
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if dataclasses.is_dataclass(a):
        return all(same(getattr(a, f.name), getattr(b, f.name)) for f in dataclasses.fields(a))
    return bool(a is b or a == b or (a != a and b != b))


def _same_array(a: Any, b: Any) -> bool:
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind == "O":
        return all(same(x, y) for x, y in zip(a.ravel(), b.ravel(), strict=True))
    return bool(np.array_equal(a, b, equal_nan=a.dtype.kind in "fc"))


def _same_dataset(a: xr.Dataset, b: xr.Dataset) -> bool:
    bare = [each.copy(deep=False) for each in (a, b)]
    for each in bare:
        each.attrs = {}
    return (
        bare[0].identical(bare[1])
        and all(a[name].dtype == b[name].dtype for name in a.variables)
        and same(_read(a.attrs), _read(b.attrs))
    )


def _read(attrs: Mapping[Any, Any]) -> dict[Any, Any]:
    """Attributes with the summary as it was before it became text, clocks and all."""
    found = {key: value.item() if isinstance(value, np.generic) else value for key, value in attrs.items()}
    if isinstance(found.get("summary"), str):
        found["summary"] = json.loads(found["summary"])
    return found
