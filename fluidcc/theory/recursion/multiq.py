"""The rate of one class under HPCC++ MultiQ, once per round trip: R' = R eta/U + a with MultiQ's U.

The class is guaranteed w B of a link of rate B, and is served at A at most: what the other classes leave. What it sends
beyond A in a round trip is its backlog, which its window drains in the next.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from fluidcc.errors import InputError


class Orbit(NamedTuple):
    """Limit of a class's rate: its rates [as given], one for a fixed point, several for a cycle."""

    rates: tuple[float, ...]

    @property
    def period(self) -> int:
        """Round trips until the rate repeats."""
        return len(self.rates)


RULES = ("slides", "spare", "class")


def utilisation(
    rate: Any, *, share: float, line: float = 1.0, served: float | None = None, rule: str = "slides"
) -> Any:
    """U of a class that sends at ``rate`` (HPCC++ slides, MultiQ).

    Parameters
    ----------
    rate : array_like
        Of the class, in the unit of ``line``.
    share : float
        w, in (0, 1].
    line : float
        B.
    served : float
        A; the line if not given.
    rule : {"slides", "spare", "class"}
        The slides' three branches; or ours: the rate counts against what is guaranteed or, if that is more, against
        the present rate and what nobody uses; or HPCC as it is, whose U is the class's queue and rate over the line.

    Raises
    ------
    InputError
        If a number makes no sense.
    """
    served = line if served is None else served
    for name, value, top in (("line", line, math.inf), ("share", share, 1.0), ("served", served, line)):
        if not 0 < value <= top:
            raise InputError(f"{name}: {value:g} is out of range; write a number above 0, at most {top:g}")
    if rule not in RULES:
        raise InputError(f"rule: {str(rule)[:20]!r} is unknown; write {', '.join(RULES[:-1])} or {RULES[-1]}")
    rate = np.asarray(rate, dtype=float)
    sent, backlog = np.minimum(rate, served), np.maximum(rate - served, 0.0)  # backlog over T
    return of_class(sent, backlog, rule, guaranteed=share * line, line=line, unused=served - sent)


def of_class(
    sent: Any, backlog: Any, rule: str, *, guaranteed: Any, line: Any, unused: Any, threshold: float = 0.0
) -> Any:
    """U by one of `RULES`, from what a class sent and left waiting in a round trip, and what nobody used.

    Parameters
    ----------
    sent, backlog, guaranteed, line, unused : array_like
        All over the round trip's length, in one unit of rate.
    rule : str
    threshold : float
        Backlog up to which the slides' rule takes the queue for empty.
    """
    if rule == "class":
        return (sent + backlog) / line  # HPCC (2)
    if rule == "spare":
        return (sent + backlog) / np.maximum(guaranteed, sent + unused)
    return np.where(
        sent <= guaranteed,
        (sent + backlog) / guaranteed,
        np.where(backlog > threshold, backlog / sent + 1.0, sent / ((sent + line) / 2)),
    )


def step(rate: Any, *, eta: float = 0.95, increase: float = 0.0, **link: Any) -> Any:
    """Rate a round trip later: R eta/U + a; ``link`` as of `utilisation`."""
    return np.asarray(rate, dtype=float) * eta / utilisation(rate, **link) + increase


def orbit(start: float, *, steps: int = 2000, longest: int = 16, tolerance: float = 1e-9, **options: Any) -> Orbit:
    """Cycle that a class's rate ends in.

    Parameters
    ----------
    start : float
        First rate, above 0.
    steps : int
        Round trips before looking.
    longest : int
        Longest period that is told from none.
    tolerance : float
        Relative, of a rate that repeats.
    **options
        As of `step`.

    Raises
    ------
    InputError
        If the start is not above 0, or no cycle is found.
    """
    if not 0 < start < math.inf:
        raise InputError(f"start: {start:g} is no rate; write a number above 0")
    rate = float(start)
    for _ in range(steps):
        rate = float(step(rate, **options))
    found = [rate]
    for _ in range(longest):
        rate = float(step(rate, **options))
        if abs(rate - found[0]) <= tolerance * found[0]:
            return Orbit(tuple(found))
        found.append(rate)
    raise InputError(f"start: no cycle of up to {longest} round trips after {steps}; give more steps")
