"""Result of a fit: values with intervals, and combinations that cannot be told apart."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.builders.names import format_value
from fluidcc.results.display import draw
from fluidcc.results.result import Comparable
from fluidcc.results.schema import plain
from fluidcc.studies.fitting.measured import Measured
from fluidcc.studies.fitting.shares import Shares
from fluidcc.surface import constructor, public

if TYPE_CHECKING:
    from fluidcc.results.display import Picture


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
