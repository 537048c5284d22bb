"""The one style of all pictures: notebooks show them, they save whole or not at all, axes carry suitable units."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import style
from matplotlib.figure import Figure

from fluidcc import units
from fluidcc.errors import InputError
from fluidcc.files import is_special, write_atomically


class Picture(Figure):
    """A figure that notebooks show by themselves and that saves whole or not at all."""

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", dpi=110)
        return buffer.getvalue()

    def write(self, path: str | Path) -> Path:
        """Write PNG, PDF or SVG by the name's ending.

        Raises
        ------
        InputError
            If the ending is unknown or the file cannot be written.
        """
        kind = Path(path).suffix.lstrip(".").lower() or ("png" if is_special(path) else "")
        if kind not in ("png", "pdf", "svg"):
            raise InputError(f"{path}: unknown ending {kind!r}; write a name that ends in .png, .pdf or .svg")
        buffer = io.BytesIO()
        self.savefig(buffer, format=kind, dpi=150)
        return write_atomically(path, buffer.getvalue())


def figure(rows: int = 1, columns: int = 1, *, size: tuple[float, float] | None = None, **options: Any) -> Any:
    """A `Picture` and its axes, an array (rows, columns)."""
    picture = Picture(figsize=size or (7.5 * columns, 0.8 + 2.4 * rows), layout="constrained")
    return picture, picture.subplots(rows, columns, squeeze=False, **options)


def colour(k: int) -> str:
    """The k-th of a series, told apart also by those who see fewer colours (Petroff, arXiv:2107.02270)."""
    colours = style.library["petroff10"]["axes.prop_cycle"].by_key()["color"]
    return colours[k % len(colours)]


def label(text: str, unit: str) -> str:
    """Axis label with its unit."""
    return f"{text} [{unit}]" if unit else text


def scaled(values: np.ndarray, dimension: str) -> tuple[np.ndarray, str]:
    """Values and the suffix they are in, chosen by the largest."""
    finite = np.abs(values[np.isfinite(values)])
    factor, suffix = units.scale_of(float(finite.max()) if finite.size else 0.0, dimension)
    return values / factor, suffix
