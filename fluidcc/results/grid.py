"""Product grids of parameter values."""

from __future__ import annotations

import dataclasses
import hashlib
import math

import numpy as np


@dataclasses.dataclass(frozen=True)
class Grid:
    """Axes of a product grid, in SI."""

    axes: dict[str, np.ndarray]

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return tuple(len(values) for values in self.axes.values())

    @property
    def points(self) -> int:
        """Number of combinations."""
        return math.prod(self.shape)

    def columns(self) -> dict[str, np.ndarray]:
        """Value of every name at every point, each (points,); the last name varies fastest."""
        meshes = np.meshgrid(*self.axes.values(), indexing="ij")
        return {name: mesh.reshape(-1) for name, mesh in zip(self.axes, meshes, strict=True)}

    def signature(self) -> str:
        """Digest of names and values, to recognise the same grid again."""
        digest = hashlib.sha256()
        for name, values in self.axes.items():
            digest.update(name.encode() + values.tobytes())
        return digest.hexdigest()[:16]
