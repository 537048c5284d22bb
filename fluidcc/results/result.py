"""Results: frozen dataclasses that compare by content, and labelled datasets with something more."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from fluidcc.errors import InputError
from fluidcc.files import is_special, write_atomically, write_netcdf
from fluidcc.scenario.display import folded, table
from fluidcc.surface import constructor

if TYPE_CHECKING:
    import pandas as pd
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


Row = tuple[str, str]
_OPTIONS = ("method", "tolerance", "drop", "missing_dims")  # of xarray's selections


class Parts(NamedTuple):
    """Arguments of `xarray.Dataset`, which takes longer to import than a short run of packets takes in all."""

    variables: dict[str, Any]
    coordinates: dict[str, Any]
    attrs: dict[str, Any]


@constructor()
@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class DatasetResult(Comparable):
    """An `xarray.Dataset` with metrics: its variables by name, and everything a dataset can do.

    ``==`` and ``hash`` go by identity; `identical` compares content.

    Parameters
    ----------
    dataset : xarray.Dataset
        Units in ``attrs["units"]`` of each variable.
    """

    dataset: xr.Dataset

    def __post_init__(self) -> None:
        """Refuse what is no dataset: it has no variables to look up."""
        import xarray as xr

        if not isinstance(self.dataset, xr.Dataset):
            given = repr(self.dataset)[:40]
            raise InputError(
                f"{type(self).__name__}: expected an xarray.Dataset, not {given}; read a file by fluidcc.load"
            )

    KEPT: ClassVar[tuple[str, ...]] = ()  # dimensions that stay with one entry if one is selected
    WHOLE: ClassVar[tuple[str, ...]] = ()  # dimensions whose parts are no result of the class

    def __getitem__(self, name: str) -> xr.DataArray:
        """Return one variable, by name."""
        return self.dataset[name]

    def __contains__(self, name: object) -> bool:
        """Check whether there is a variable or coordinate of that name."""
        return name in self.dataset

    def __getattr__(self, name: str) -> Any:
        """Variables, coordinates and methods of the dataset: ``trace.queue``, ``result.to_dataframe()``."""
        parts = vars(self).get("_parts")  # see `fluidcc.results.trace.trace_of`
        if name == "dataset" and parts is not None:
            import xarray as xr

            vars(self).setdefault("dataset", xr.Dataset(*parts))  # of threads that ask at once one's is kept
            vars(self).pop("_parts", None)
        if name == "dataset" and name in vars(self):
            return vars(self)[name]
        if name.startswith("__") or name == "dataset":
            raise AttributeError(name)
        return getattr(self.dataset, name)

    # -- parts -----------------------------------------------------------------------------------------------

    def sel(self, indexers: Mapping[Any, Any] | None = None, **options: Any) -> Any:
        """Select by label, as `xarray.Dataset.sel` does, as a result of the same class.

        A single label drops its dimension, as in xarray: a sweep at one value of a name is a sweep over the others. The
        dimensions that a class needs (``KEPT``) stay, with one entry: a trace of one flow still has ``flow``. What was
        reduced from the whole stays that of the whole: a trace's ``summary``, a comparison's differences, the numbers
        of a limit cycle.

        Returns
        -------
        DatasetResult
            Of this class.
        xarray.Dataset
            Where a part is no such result any more: one of two branches, rules or engines that it compares (``WHOLE``).
        """
        return self._part(self.dataset.sel(**self._arguments(indexers, options)))

    def isel(self, indexers: Mapping[Any, Any] | None = None, **options: Any) -> Any:
        """Select by index, as `xarray.Dataset.isel` does; see `sel`."""
        return self._part(self.dataset.isel(**self._arguments(indexers, options)))

    def _arguments(self, indexers: Mapping[Any, Any] | None, options: Mapping[str, Any]) -> dict[str, Any]:
        """Build the arguments of xarray: one entry of a dimension in ``KEPT`` becomes a list of one."""
        chosen = {name: value for name, value in options.items() if name not in _OPTIONS} | dict(indexers or {})
        listed = {
            name: [value] if name in self._kept() and not isinstance(value, slice) and np.ndim(value) == 0 else value
            for name, value in chosen.items()
        }
        return {"indexers": listed, **{name: value for name, value in options.items() if name in _OPTIONS}}

    def _kept(self) -> tuple[str, ...]:
        """Dimensions that stay; a class whose dimensions have their users' names overrides this."""
        return self.KEPT

    def _part(self, dataset: xr.Dataset) -> Any:
        if any(dataset.sizes.get(name) != self.dataset.sizes.get(name) for name in self.WHOLE):
            return dataset
        return dataclasses.replace(self, dataset=dataset)

    # -- what notebooks show ---------------------------------------------------------------------------------

    def _rows(self) -> list[Row]:
        """Names and values of the table that a notebook shows."""
        return []

    def _repr_html_(self) -> str:
        return table(repr(self).strip("<>"), self._rows()) + folded("dataset", self.dataset._repr_html_())


def write_dataset(path: str | Path, dataset: xr.Dataset, rows: Callable[[], pd.DataFrame]) -> Path:
    """Write NetCDF4 (``.nc``), or rows as CSV (``.csv``); the file appears whole or not at all.

    Raises
    ------
    InputError
        If the ending is neither, or the file cannot be written.
    """
    kind = Path(path).suffix
    if kind == ".nc":
        return write_netcdf(path, dataset)
    if kind == ".csv" or is_special(path):
        return write_atomically(path, rows().to_csv(index=False).encode())
    raise InputError(f"{path}: unknown ending {kind!r}; write a name that ends in .nc or .csv")
