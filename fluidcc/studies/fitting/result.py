"""Result of a fit: values with intervals, and the combinations of unknowns that measurements determine."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.builders.names import format_value
from fluidcc.results.drawing import draw
from fluidcc.results.identity import Comparable
from fluidcc.results.schema import plain
from fluidcc.studies.fitting.measured import Measured
from fluidcc.studies.fitting.model import Space
from fluidcc.studies.fitting.shares import Shares
from fluidcc.surface import constructor, public

if TYPE_CHECKING:
    from fluidcc.results.drawing import Picture

WIDEST = 0.5  # interval of what is called identifiable, as a share of the value
_PART = 0.25  # of a direction, below which a parameter has no part in it


def combinations(jacobian: np.ndarray, space: Space) -> tuple[np.ndarray, np.ndarray]:
    """Singular values, largest first, and directions (rows), by the logarithms of the unknowns.

    Parameters
    ----------
    jacobian : ndarray
        Of numbers with standard deviation 1, by the unit cube.
    space : Space
    """
    scale = np.where(space.logarithmic, np.log(space.high / np.where(space.logarithmic, space.low, 1.0)), 1.0)
    _, values, rows = np.linalg.svd(jacobian / scale, full_matrices=False)
    signs = np.sign(rows[np.arange(len(rows)), np.abs(rows).argmax(axis=1)])
    return values, rows * signs[:, None]


def in_words(
    values: np.ndarray, rows: np.ndarray, identifiable: Mapping[str, bool], source: str = "the trace"
) -> list[str]:
    """Directions that are not determined to within `WIDEST`, in sentences.

    Parameters
    ----------
    values, rows : ndarray
        As `combinations` has them.
    identifiable : mapping
        Of the unknowns, in order: a direction of which all are is not spoken of.
    source : str
        Name of what was measured.
    """
    found, names = [], tuple(identifiable)
    for value, row in zip(values, rows, strict=True):
        if 2 * 1.96 / max(float(value), 1e-300) < WIDEST:
            continue
        parts = [(name, share) for name, share in zip(names, row, strict=True) if abs(share) >= _PART]
        if all(identifiable[name] for name, _ in parts):
            continue
        listed = " and ".join(name for name, _ in parts)
        if len(parts) == 1:
            found.append(f"{source} does not determine {listed} to within half of its value")
            continue
        kept = _product(parts)
        found.append(f"{listed} cannot be told apart: {kept} may change and {source} stays as it is")
    return found


def _product(parts: list[tuple[str, float]]) -> str:
    """A direction in logarithms, as the product that moves along it."""
    return " * ".join(f"{name}^{share:.2g}" for name, share in parts)


@constructor()
@dataclasses.dataclass(frozen=True)
class Estimate:
    """A value and the ends of its 95 % interval.

    Parameters
    ----------
    value, low, high : float
        In SI.
    """

    value: float
    low: float
    high: float

    @property
    def width(self) -> float:
        """Width of the interval, as a share of the value."""
        return (self.high - self.low) / abs(self.value) if self.value else float("inf")


@constructor()
@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Fit(Comparable):
    """Unknown parameters, estimated from a measured trace or from counters.

    Parameters
    ----------
    estimate : dict
        `Estimate` of each unknown.
    identifiable : dict
        Whether the trace determines it: its interval is narrower than half of its value and ends within the range
        searched.
    residual : float
        Of simulated moments (hybrid, packet), the root mean square of what is left between measured and fitted
        numbers, in their standard deviations: about 1 if the model explains the trace. Of the fluid, that of the
        trajectory as a share of the measured one's. As many unknowns as shares leave next to none.
    words : tuple of str
        What was found, in sentences: which parameters cannot be told apart, and whether the model explains the trace.
    singular_values : ndarray
        Of the weighted Jacobian by the unknowns' logarithms (those with a lower bound of 0: by value over range).
    combinations : ndarray
        Rows: the directions that belong to them.
    engine : {"hybrid", "fluid", "packet"}
    runs : int
        Simulations taken.
    window : tuple of float
        What was fitted [s]; with counters the part of each run in which is counted.
    measured : Measured or Shares
        The samples of the window, or what was counted.
    fitted : tuple of Measured, or of ndarray, shape (shares,)
        Runs at the estimate, one for each of some seeds; with counters the shares there, at the counted load.
    """

    estimate: dict[str, Estimate]
    identifiable: dict[str, bool]
    residual: float
    words: tuple[str, ...]
    singular_values: np.ndarray
    combinations: np.ndarray
    engine: str
    runs: int
    window: tuple[float, float]
    measured: Measured | Shares = dataclasses.field(repr=False)
    fitted: tuple[Any, ...] = dataclasses.field(repr=False)

    @public()
    def as_dict(self) -> dict[str, Any]:
        """Keys as in the CLI.

        Returns
        -------
        dict
            None for what is not finite.
        """
        return plain(
            {
                "estimate": {name: dataclasses.asdict(each) for name, each in self.estimate.items()},
                "identifiable": self.identifiable,
                "residual": self.residual,
                "words": list(self.words),
                "singular_values": self.singular_values,
                "combinations": [dict(zip(self.estimate, row, strict=True)) for row in self.combinations],
                "engine": self.engine,
                "runs": self.runs,
                "window_s": list(self.window),
                **({"shares": self.shares} if self.shares else {}),
            }
        )

    @property
    def shares(self) -> dict[str, dict[str, float]]:
        """Shares that were counted, and those at the estimate; empty without counters."""
        if not isinstance(self.measured, Shares):
            return {}
        return {
            name: {"counted": value, "fitted": float(fitted)}
            for (name, value), fitted in zip(self.measured.values.items(), self.fitted[0], strict=True)
        }

    @property
    def rows(self) -> list[tuple[str, str]]:
        """Names, and values with their intervals, for people."""
        found = []
        for name, each in self.estimate.items():
            ends = f"{format_value(name, each.low)} to {format_value(name, each.high)}"
            known = "" if self.identifiable[name] else ": not identifiable"
            found.append((name, f"{format_value(name, each.value)} ({ends}){known}"))
        return found

    def __repr__(self) -> str:
        """Values and intervals in a line."""
        return f"<Fit {self.engine}: {'; '.join(f'{name} {text}' for name, text in self.rows)}>"

    @public()
    def plot(self, *, title: str | None = None) -> Picture:
        """Draw the measured against the fitted: over time, and the queue's distribution or the rates'.

        Parameters
        ----------
        title : str
            The estimate if not given.

        Returns
        -------
        fluidcc.plotting.style.Picture
        """
        return draw("plot_fit", self, title=title)
