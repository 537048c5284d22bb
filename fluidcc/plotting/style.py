"""The one style of all pictures: notebooks show them, they save whole or not at all, axes carry suitable units."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, cast

import numpy as np
from cycler import cycler
from matplotlib import rc_context, rcParams
from matplotlib.collections import Collection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.spines import Spine

from fluidcc import units
from fluidcc.errors import InputError
from fluidcc.files import is_special, write_atomically
from fluidcc.plotting.colours import SERIES
from fluidcc.plotting.colours import colour as colour

_SAME = 0.01  # of an axis' height: lines that lie nearer cannot be told apart in print


class Picture(Figure):
    """A figure that notebooks show by themselves and that saves whole or not at all, in the colours of `SERIES`."""

    def savefig(self, *arguments: Any, **options: Any) -> None:
        """Save as Matplotlib does; C0, C1, ... are `SERIES`, whatever colours the user's own pictures have."""
        _in_series(self)
        with _series():
            super().savefig(*arguments, **options)

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
    with _series():
        picture = Picture(figsize=size or (7.5 * columns, 0.8 + 2.4 * rows), layout="constrained")
        return picture, picture.subplots(rows, columns, squeeze=False, **options)


def _series() -> Any:
    """Context in which axes that are made, and names such as C2 that are drawn, have the colours of `SERIES`."""
    return rc_context({"axes.prop_cycle": cycler(color=SERIES)})


def _in_series(picture: Figure) -> None:
    """Turn areas to `SERIES`: Matplotlib reads a name such as C2 as an area is made, a line's only as it is drawn."""
    around = rcParams["axes.prop_cycle"].by_key().get("color", [])
    ours = {to_rgb(theirs): to_rgb(mine) for theirs, mine in zip(around, SERIES, strict=False)}
    for area in cast("list[Any]", picture.findobj(lambda one: isinstance(one, Patch | Collection)) or []):
        if isinstance(area, Spine) or (isinstance(area, Collection) and area.get_array() is not None):
            continue  # a frame, or it shows numbers
        for part in ("facecolor", "edgecolor"):
            before: np.ndarray = np.array(getattr(area, f"get_{part}")(), float, ndmin=2)
            after = np.array([[*(ours.get(tuple(row[:3])) or row[:3]), row[3]] for row in before])
            if not np.array_equal(before, after):
                getattr(area, f"set_{part}")(after if isinstance(area, Collection) else tuple(after[0]))


def label(text: str, unit: str) -> str:
    """Axis label with its unit."""
    return f"{text} [{unit}]" if unit else text


def legend(axis: Any, **options: Any) -> None:
    """A legend in which lines that coincide have one entry, of the line that is seen; call it once limits are set."""
    lines, names = axis.get_legend_handles_labels()
    groups = _coinciding(axis, lines)
    words = [", ".join(names[k] for k in group) + (" (coincide)" if len(group) > 1 else "") for group in groups]
    axis.legend([lines[group[-1]] for group in groups], words, **options)


def say_coinciding(axis: Any) -> None:
    """Name lines that coincide in a panel whose legend stands elsewhere; call it once limits are set."""
    lines, names = axis.get_legend_handles_labels()
    said = ["; ".join(names[k] for k in group) + " coincide" for group in _coinciding(axis, lines) if len(group) > 1]
    axis.text(0.98, 0.98, "\n".join(said), ha="right", va="top", fontsize="x-small", transform=axis.transAxes)


def nothing(axis: Any, why: str) -> None:
    """Words instead of an empty panel, in a picture whose other rows have something there."""
    axis.clear()  # also of marks at 0
    axis.set_axis_off()
    axis.text(0.5, 0.5, why, ha="center", transform=axis.transAxes)


def zeros(axis: Any, bars: Any) -> None:
    """A 0 where a bar has no height, which would look as if it were not there."""
    axis.bar_label(bars, ["" if bar.get_height() else "0" for bar in bars], fontsize="x-small", padding=1)


def _coinciding(axis: Any, lines: list[Any]) -> list[list[int]]:
    """Places of lines that cover each other, in groups; of one alone where none covers it."""
    groups: list[list[int]] = []
    for k, line in enumerate(lines):
        group = next((group for group in groups if _coincide(axis, lines[group[0]], line)), None)
        groups.append([k]) if group is None else group.append(k)
    return groups


def _coincide(axis: Any, one: Any, other: Any) -> bool:
    """Check whether two lines cover each other."""
    if not (hasattr(one, "get_xydata") and hasattr(other, "get_xydata")):
        return False  # an area
    first, second = (axis.transData.transform(line.get_xydata()) for line in (one, other))
    if len(first) != len(second):
        return False
    apart = np.abs(first - second)
    return bool(np.nanmax(apart, initial=0.0) <= _SAME * axis.bbox.height)


def scaled(values: np.ndarray, dimension: str) -> tuple[np.ndarray, str]:
    """Values and the suffix they are in, chosen by the largest."""
    finite = np.abs(values[np.isfinite(values)])
    factor, suffix = units.scale_of(float(finite.max()) if finite.size else 0.0, dimension)
    return values / factor, suffix
