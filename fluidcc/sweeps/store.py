"""Results on disk while they come in, so that an interrupted sweep loses nothing and can go on.

A Zarr folder of flat arrays over the points, one Zarr chunk for each chunk of the sweep; a point that is not
done has reason -1.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fluidcc.errors import InputError
from fluidcc.sweeps.grid import Grid

PENDING = -1


class Store:
    """A folder of results.

    Parameters
    ----------
    path : str or Path
        The folder; made if missing.
    grid : Grid
    chunk : int
        Points per chunk; an existing store keeps its own.
    signature : str
        What was run; a store of another run is refused.
    resume : bool
        Whether to go on with an existing store; otherwise one must not exist.

    Raises
    ------
    InputError
        If the folder exists and ``resume`` is not set, holds another sweep, or Zarr is not installed.
    """

    def __init__(self, path: str | Path, grid: Grid, chunk: int, signature: str, resume: bool) -> None:
        try:
            import zarr
        except ImportError:
            raise InputError("store: needs the package zarr; install it with: pip install 'fluidcc[sweep]'") from None
        path = Path(path)
        if path.exists() and not resume:
            raise InputError(f"store: {path} exists; add --resume to go on with it, or give another folder")
        if path.exists():
            try:
                self._group = zarr.open_group(path, mode="r+")
                found = self._group.attrs["signature"]
                self.chunk = int(str(self._group.attrs["chunk"]))
            except (OSError, KeyError, ValueError) as error:
                raise InputError(f"store: {path} is no sweep's store ({error}); give another folder") from None
            if found != signature:
                raise InputError(f"store: {path} holds another sweep; give the same options, or another folder")
            return
        try:
            self._group = zarr.open_group(path, mode="w-")
        except OSError as error:
            raise InputError(f"store: {path} cannot be made ({error.strerror}); give another folder") from None
        self.chunk = chunk
        self._group.attrs.update({"signature": signature, "chunk": chunk, "axes": list(grid.axes)})
        for name, values in grid.axes.items():
            self._group.create_array(f"axis.{name}", data=values)
        self._make("reason", np.full(grid.points, PENDING, np.int32))

    def _make(self, name: str, values: np.ndarray) -> None:
        chunks = (self.chunk, *values.shape[1:])
        self._group.create_array(name, data=values, chunks=chunks)

    def done(self) -> dict[str, np.ndarray]:
        """All arrays so far, by name; empty before the first chunk."""
        if len(list(self._group.array_keys())) <= 1 + len(list(self._group.attrs["axes"])):  # type: ignore[arg-type]
            return {}
        return {
            name: np.asarray(self._group[name][...])  # type: ignore[index]
            for name in self._group.array_keys()
            if not name.startswith("axis.")
        }

    def write(self, points: slice, results: dict[str, np.ndarray], total: int) -> None:
        """Write a chunk; its reasons last, so that what is marked done is there."""
        for name in sorted(results, key=lambda n: n == "reason"):
            if name not in self._group:
                self._make(name, np.full((total, *results[name].shape[1:]), np.nan))
            self._group[name][points] = results[name]  # type: ignore[index]
