"""Results of the recursions: rates step by step, and the quantities derived from them."""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from fluidcc.results.display import draw
from fluidcc.results.result import Comparable
from fluidcc.theory.recursion.checks import Array

if TYPE_CHECKING:
    from fluidcc.results.display import Picture

_SAME = 1e-14  # relative: float utilisations nearer than this are equal
_ROUNDING = 2e-15  # a gap to capacity that may be rounding alone
_MOVING = 1e-12  # a gap to capacity that rounding leaves at least two digits of


@dataclasses.dataclass(frozen=True, eq=False)
class Rates(Comparable):
    """Rates of every path, step by step.

    Parameters
    ----------
    A : ndarray
        Incidence, (links, paths).
    C : ndarray
        Capacities, (links,).
    rates : ndarray
        (steps + 1, paths), in the unit of ``C``; row 0 is the start. Objects (`Fraction`) if computed exactly.
    title : str
        For the picture.
    """

    A: Array
    C: Array
    rates: Array
    title: str

    @property
    def final(self) -> Array:
        """The last row of ``rates``."""
        return self.rates[-1]

    @cached_property
    def utilization(self) -> Array:
        """Load over capacity (5), (steps + 1, links)."""
        return self.rates @ self.A.T / self.C

    def plot(self, *, title: str | None = None) -> Picture:
        """Rates of the paths above, utilisation of the links below, over the steps."""
        return draw("plot_rates", self, title=title)


@dataclasses.dataclass(frozen=True, eq=False)
class Pareto(Rates):
    """A run of the recursion (5)-(6); made by `pareto`.

    Everything below is read off the last row that rounding leaves any information in: the last one where a
    path's most loaded link is away from its capacity by more than 1e-12 (0 in exact arithmetic).
    """

    @property
    def exact(self) -> bool:
        """True if the rates are rationals."""
        return self.rates.dtype == object

    @cached_property
    def _worst(self) -> Array:
        """Utilisation of the most loaded link of each path, (steps + 1, paths)."""
        return on_path(self.A, self.utilization).max(axis=-2)

    @cached_property
    def _row(self) -> int:
        gaps = np.abs(1 - self._worst[1:]).max(axis=1)
        moving = np.flatnonzero(gaps > (0 if self.exact else _MOVING))
        return int(moving[-1]) + 1 if moving.size else 0

    @cached_property
    def _bound(self) -> Array:
        """True where a link limits a path, (links, paths): no link of the path is more loaded."""
        n = self._row
        tolerance = 0 if self.exact else _SAME
        return (self.A > 0) & (self.utilization[n][:, None] >= self._worst[n] * (1 - tolerance))

    @cached_property
    def bottleneck(self) -> Array:
        """The link that limits each path, (paths,); of equals the one more loaded on the way, then the first."""
        so_far = self.utilization[1 : max(self._row, 1) + 1].astype(np.float64).sum(axis=0)
        return np.where(self._bound, so_far[:, None], -1.0).argmax(axis=0)

    @cached_property
    def asymptotic_rate(self) -> float:
        """Factor by which the distance to the limit shrinks per step in the end; 0 if the limit is reached.

        The largest over the links that still move a path: the load on the link of paths that another link
        limits, over its capacity. It is that of the present bottlenecks: with too few steps they may change.
        """
        if self.settled_after is not None:
            return 0.0
        return self._shrinks()

    def _shrinks(self) -> float:
        n = self._row
        active = self._bound.any(axis=1) & (self.utilization[n] < 1)
        foreign = (np.where(self._bound, 0, self.A) * self.rates[n]).sum(axis=1) / self.C
        return float(max(foreign[active], default=0.0))

    @cached_property
    def settled_after(self) -> int | None:
        """Steps until the rates stay as they are; None if they still move, or in the limit never stop.

        Rounding makes every float run stop. It counts as settled if the last gap closed more than twice as fast as
        the asymptotic rate says: on one link that rate is a lower bound of the gap that is left.
        """
        n = self._row
        if n == 0:
            return 0 if (np.abs(1 - self._worst[0]) <= (0 if self.exact else _MOVING)).all() else 1
        if n == len(self.rates) - 1:
            return None
        gap, left = (np.abs(1 - self._worst[m]).max() for m in (n, n + 1))
        return n + 1 if left <= max(0.5 * self._shrinks() * gap, 0 if self.exact else _ROUNDING) else None

    @cached_property
    def limit(self) -> Array:
        """Limit of the rates, (paths,), in exact arithmetic if the run was.

        Once bottlenecks no longer change, paths with one bottleneck keep the ratio of their rates, and fill it in the
        limit. The most loaded link has only paths that it limits; the next one also has settled paths, and so on.

        Returns
        -------
        ndarray
            A limit only if the bottlenecks stay as they are; `pareto_optimal` is false where they cannot.
        """
        n = self._row
        limit = np.zeros_like(self.final)
        placed = np.zeros(len(limit), dtype=bool)
        for k in sorted(range(len(self.C)), key=lambda k: self.utilization[n][k], reverse=True):
            own = self._bound[k] & ~placed
            if own.any():
                room = self.C[k] - (self.A[k] * limit).sum()
                limit[own] = self.rates[n][own] * (room / self.rates[n][own].sum())
                placed |= own
        return limit

    @cached_property
    def pareto_optimal(self) -> bool:
        """True if a linear programme finds the limit feasible, and no path's rate can grow at no other's cost."""
        from fluidcc.theory.recursion.optimal import is_pareto

        return is_pareto(self.A, self.C, self.limit)


@dataclasses.dataclass(frozen=True, eq=False)
class Repaired(Rates):
    """A run of the repaired recursion, made by `residual`: it ends where the rates stay."""

    @property
    def settled_after(self) -> int:
        """Steps until the rates stay as they are."""
        return len(self.rates) - 1

    @cached_property
    def pareto_optimal(self) -> bool:
        """True if a linear programme finds the last rates feasible, and none can grow at no other path's cost."""
        from fluidcc.theory.recursion.optimal import is_pareto

        return is_pareto(self.A, self.C, self.final)


def on_path(A: Array, U: Array) -> Array:
    """Utilisation (..., links) of every link as each path sees it, 0 where it does not pass: (..., links, paths)."""
    return A * U[..., None]
