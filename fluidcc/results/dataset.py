"""Results that are labelled datasets with something more."""

from __future__ import annotations

import dataclasses
from typing import Any

import xarray as xr


@dataclasses.dataclass(frozen=True, repr=False)
class DatasetResult:
    """An `xarray.Dataset` with metrics: its variables by name, and everything a dataset can do.

    Parameters
    ----------
    dataset : xarray.Dataset
        Units in ``attrs["units"]`` of each variable.
    """

    dataset: xr.Dataset

    def __getitem__(self, name: str) -> xr.DataArray:
        """One variable, by name."""
        return self.dataset[name]

    def __getattr__(self, name: str) -> Any:
        """Variables, coordinates and methods of the dataset: ``trace.queue``, ``result.sel(g=1 / 256)``."""
        if name.startswith("__") or name == "dataset":
            raise AttributeError(name)
        return getattr(self.dataset, name)

    def _repr_html_(self) -> str:
        return self.dataset._repr_html_()
