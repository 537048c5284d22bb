"""All ways in which equal flows can share a link that marks them alike.

A flow at a rate R is held there by one marking, P(R). Where P falls with R throughout, one marking means one rate, and
the flows can but share equally: for any number of flows and, since R is then the demand at a price -ln(1-p) that adds
up along a path (a concave programme), for any network. Where P rises somewhere, flows that are marked alike may keep
different rates: n at R_1 and N - n at R_2 with P(R_1) = P(R_2) and n R_1 + (N - n) R_2 = C. As many rates have one P
as P has monotone pieces, at most: DCQCN's falls, rises and falls, so that there may be a third group too.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar, root_scalar

from fluidcc.contract.models import Equilibrium
from fluidcc.dde.delay_system import Array
from fluidcc.units import RATE, show

_PER_DECADE, _NEAR_LINE = 240, 480  # rates looked at; near the line rate P falls to 0
_CLOSEST = 1e-9  # of the line rate, to it
_ABOUT = np.geomspace(1e-5, 0.1, 60)  # rates about a turn of P, relative to it
_FLAT = 1e-9  # of P: what rounding may raise it by
_RATES = 400  # of a group, for each size
_AROUND, _CLOSER = 3, 64  # of them, looked at more closely: to either side, and in so many parts
_NEAR = 0.02  # relative: Ps of both groups that may be the same between two of them
_SIZES = 200  # sizes of the groups that are tried, at most
_SAME = 1e-6  # relative: rates of groups that are one
_MARKINGS = 150  # looked at, of those that hold three rates
_HALVINGS = 45  # of a piece, until P there is one of them
MOST_TRIPLES = 20  # of three groups that are solved for; of many flows there are thousands
_STEPS, _ASIDE, _SOLVED = 20, 1e-6, 1e-12  # of Newton's method; of a rate, for P'; relative differences of P left


@dataclasses.dataclass(frozen=True)
class Sender:
    """Equilibrium of one flow, by the equilibrium side of its scheme.

    Parameters
    ----------
    side : Equilibrium
        With ``marking_at`` and its related functions.
    parameters : object
        Bound.
    line_rate, packet : float
        The flow's largest rate [bytes/s]; its packet on the wire [bytes].
    """

    side: Equilibrium
    parameters: Any
    line_rate: float
    packet: float

    @property
    def least(self) -> float:
        """Least rate [bytes/s]."""
        assert self.side.least_rate is not None
        return float(self.side.least_rate(self.parameters, self.line_rate))

    def marking(self, rate: Any) -> Array:
        """P(R); 0 at the line rate."""
        assert self.side.marking_at is not None
        rate = np.asarray(rate, float)
        at = np.minimum(rate, (1 - _CLOSEST) * self.line_rate)
        found = self.side.marking_at(self.parameters, at, self.line_rate, self.packet)
        return np.where(rate < self.line_rate, found, 0.0)

    @cached_property
    def curve(self) -> tuple[Array, Array]:
        """Rates from the least to the line rate, and P at each."""
        low, high = self.least, self.line_rate
        if low >= high:
            return np.array([high]), np.zeros(1)
        near = high - np.geomspace(_CLOSEST * high, 0.5 * high, _NEAR_LINE)
        count = max(2, math.ceil(_PER_DECADE * math.log10(high / low)))
        R = np.unique(np.concatenate([near[near > low], np.geomspace(low, high, count)]))
        return R, self.marking(R)

    @cached_property
    def falls(self) -> bool:
        """True if P falls with R from the least to the line rate, and is the only marking that holds each R."""
        _, P = self.curve
        return self.side.single_marking(self.parameters) and bool((np.diff(P) <= _FLAT * P[:-1]).all())

    @cached_property
    def pieces(self) -> list[tuple[float, float]]:
        """Ranges of rates in which P falls or rises, in turn; as many rates, at most, have one P."""
        R, P = self.curve
        change = np.diff(P)
        moving = np.flatnonzero(np.abs(change) > _FLAT * P[:-1])
        signs = np.sign(change[moving])
        edges = [float(R[0])]
        for k, sign in zip(moving[1:][np.diff(signs) != 0], signs[1:][np.diff(signs) != 0], strict=True):
            between = float(R[k - 1]), float(R[k + 1])
            turn: Any = minimize_scalar(
                lambda rate, sign=sign: float(sign * self.marking(rate)), bounds=between, method="bounded"
            )
            edges.append(float(turn.x))
        return list(itertools.pairwise([*edges, float(R[-1])]))

    @cached_property
    def table(self) -> tuple[Array, Array]:
        """The curve, and more of it about the turns of P, where straight lines between rates are far off."""
        turns = np.array([high for _, high in self.pieces[:-1]])
        more = (turns[:, None] * (1 + _ABOUT * np.array([[-1.0], [0.0], [1.0]])[:, None])).ravel()
        more = more[(more > self.least) & (more < self.line_rate)]
        R = np.concatenate([self.curve[0], more])
        P = np.concatenate([self.curve[1], self.marking(more)])
        order = np.argsort(R)
        return R[order], P[order]

    def rates_at(self, marking: Array) -> Array:
        """Return each piece's rate at markings (markings, pieces); its nearer end if a marking is beyond it."""
        ends = np.array(self.pieces)
        low, high = (np.tile(end, (len(marking), 1)) for end in ends.T)
        rising = self.marking(ends[:, 1]) > self.marking(ends[:, 0])
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            beyond = (self.marking(middle) > marking[:, None]) != rising  # the rate is further up
            low, high = np.where(beyond, middle, low), np.where(beyond, high, middle)
        return 0.5 * (low + high)

    @property
    def searched(self) -> str:
        """The range of rates in words."""
        return f"rates from {show(self.least, RATE)} to {show(self.line_rate, RATE)}"


def pairs(sender: Sender, flows: float, capacity: float) -> list[tuple[int, float, float]]:
    """Unequal shares of a link in two groups of equal rates.

    Parameters
    ----------
    sender : Sender
    flows : float
        N
    capacity : float
        C [bytes/s]

    Returns
    -------
    list of (n, R_1, R_2)
        n flows have R_1 and the others R_2, R_1 < R_2.
    """
    low, high = sender.least, sender.line_rate
    rates, markings = sender.table
    turns = np.array([high for _, high in sender.pieces[:-1]])
    found = []
    for n in sizes(flows):
        rest = flows - n
        # R_1 below the equal share, so that R_2 is above it, and no more than the line's.
        least, most = max(low, (capacity - rest * high) / n), capacity / flows
        if least >= most:
            continue

        def other(R: Any, n: int = n, rest: float = rest) -> Any:
            return (capacity - n * R) / rest

        def gap(R: Any, other: Callable[[Any], Any] = other) -> Any:
            slow, fast = sender.marking(np.stack([R, other(R)]))
            return (slow - fast) / (other(R) - R)

        if least == low and gap(low) < 0:  # more marks than hold the slow ones at their least rate
            found.append((n, low, float(other(low))))
        looked_at = [np.geomspace(least, most, _RATES), np.linspace(least, most, _RATES), (1 - _ABOUT) * most]
        grid = np.unique(np.concatenate([*looked_at, turns, (capacity - rest * turns) / n]))
        grid = grid[(grid >= least) & (grid < (1 - _SAME) * most)]  # R_1 = R_2 is a root of all
        slow, fast = np.interp(grid, rates, markings), np.interp(other(grid), rates, markings)
        apart = other(grid) - grid  # equal rates are a root that is divided out
        for k in _suspects((slow - fast) / apart, _NEAR * slow / other(grid)):
            window = grid[max(k - _AROUND, 0)], grid[min(k + _AROUND, len(grid) - 1)]
            for ends in _brackets(np.linspace(*window, _CLOSER + 1), gap):
                R = float(root_scalar(gap, bracket=ends, xtol=1e-15 * most, rtol=1e-15).root)
                if not any(n == m and abs(R - known) < _SAME * R for m, known, _ in found):
                    found.append((n, R, float(other(R))))
    return found


def _suspects(rough: Array, close: Array) -> Array:
    """Find where a roughly known function may be 0: at changes of sign, and where it comes close to 0 and turns."""
    size = np.abs(rough)
    turns = np.flatnonzero((size[1:-1] <= size[:-2]) & (size[1:-1] <= size[2:]) & (size[1:-1] < close[1:-1])) + 1
    first = np.flatnonzero(size[:1] < close[:1])
    return np.unique(np.concatenate([np.flatnonzero(np.diff(np.sign(rough)) != 0), turns, first]))


def _brackets(R: Array, gap: Callable[[Any], Any]) -> list[tuple[float, float]]:
    """Ranges at whose ends the gap has two signs; one that touches 0 between two rates is followed there."""
    exact = gap(R)
    crossed = np.flatnonzero(np.sign(exact[1:]) * np.sign(exact[:-1]) < 0)
    if len(crossed):
        return [(float(R[k]), float(R[k + 1])) for k in crossed]
    k, sign = int(np.abs(exact).argmin()), float(np.sign(exact[0]))
    ends = float(R[max(k - 1, 0)]), float(R[min(k + 1, len(R) - 1)])
    lowest: Any = minimize_scalar(lambda rate: sign * float(gap(rate)), bounds=ends, method="bounded")
    return [(ends[0], float(lowest.x)), (float(lowest.x), ends[1])] if lowest.fun < 0 else []


def triples(sender: Sender, flows: float, capacity: float) -> list[tuple[tuple[float, float], ...]]:
    """Unequal shares of a link in three groups of equal rates, of a P that has three pieces.

    Parameters
    ----------
    sender, flows, capacity
        As of `pairs`.

    Returns
    -------
    list of ((n_1, R_1), (n_2, R_2), (n_3, R_3))
        From the slowest on; of more than 20 the first.
    """
    if len(sender.pieces) != 3 or flows <= 2:
        return []
    (_, first), (_, second), _ = sender.pieces
    if first + second + (flows - 2) * sender.least > capacity:  # a rate beyond each turn, and the others at the least
        return []
    # P falls, rises, falls: what holds three rates lies between its turns; at more than P(least) that rate stays.
    bottom, top = (float(sender.marking(edge)) for edge in (first, second))
    angle = np.linspace(0, math.pi, _MARKINGS)  # close to the turns, where rates change most
    markings = bottom + (top - bottom) * 0.5 * (1 - np.cos(angle))
    rates = sender.rates_at(markings)
    found: list[tuple[tuple[float, float], ...]] = []
    for n in sizes(flows):
        others = np.array([m for m in sizes(flows) if n + m < flows], float)
        groups = np.stack([np.full(len(others), float(n)), others, flows - n - others])
        over = rates @ groups > capacity
        for k, m in zip(*np.nonzero(over[1:] != over[:-1]), strict=True):
            solved = _solved(sender, groups[:, m], rates[k : k + 2].mean(axis=0), capacity)
            if solved is None:  # at a turn rates change too fast for a start between two markings
                closer = sender.rates_at(np.linspace(markings[k], markings[k + 1], _CLOSER + 1))
                j = int(np.flatnonzero(np.diff(closer @ groups[:, m] > capacity))[0])
                solved = _solved(sender, groups[:, m], closer[j : j + 2].mean(axis=0), capacity)
            if solved is not None:
                members = n, int(others[m]), float(groups[2, m])
                found.append(tuple(zip(members, solved.tolist(), strict=True)))
            if len(found) == MOST_TRIPLES:
                return found
    return found


def _solved(sender: Sender, groups: Array, rates: Array, capacity: float) -> Array | None:
    """Rates of three groups that have one P and fill the link, by Newton's method from near ones; None if none are."""
    R, free = rates.copy(), np.array([rates[0] > (1 + _SAME) * sender.least, True, True])
    R[~free] = sender.least
    for _ in range(_STEPS):
        with np.errstate(divide="ignore", invalid="ignore"):  # at the line rate nothing is marked
            P, up, down = np.log(sender.marking(np.outer([1, 1 + _ASIDE, 1 - _ASIDE], R)))
            slope = (up - down) / (2 * _ASIDE * R)
            # A rate that is free has the third's P; all fill the link.
            jacobian = np.vstack([np.diag(slope)[:2] - [[0, 0, slope[2]]] * 2, groups])
            wrong = np.append(P[:2] - P[2], groups @ R - capacity)
        if not free[0]:
            jacobian[0], wrong[0] = [1, 0, 0], 0.0
        if max(np.abs(wrong[:2]).max(), abs(wrong[2]) / capacity) < _SOLVED:
            inside = all(low <= rate <= high for rate, (low, high) in zip(R, sender.pieces, strict=True))
            return R if inside and (free[0] or P[0] <= P[2]) else None
        if not np.isfinite(jacobian).all() or abs(np.linalg.det(jacobian)) == 0:
            return None
        R = np.clip(R - np.linalg.solve(jacobian, wrong), 0.5 * R, 2 * R)
    return None


def sizes(flows: float) -> list[int]:
    """Sizes of a group of N flows: all, or of many the smallest and largest and some between."""
    most = math.ceil(flows) - 1
    if most <= _SIZES:
        return list(range(1, most + 1))
    some = np.unique(np.geomspace(1, most / 2, _SIZES // 2).astype(int))
    return sorted({*some.tolist(), *(most + 1 - some).tolist()})
