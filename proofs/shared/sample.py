"""Descriptions of what was drawn for a finding: numbers of runs and seeds, windows, and 95 % intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from fluidcc.units import TIME, show

MARKS = "RED's marks"  # what packets draw where a port marks by a ramp


def listed(values: Iterable[object]) -> str:
    """Values as a sentence has them.

    Examples
    --------
    >>> listed((2, 4, 8))
    '2, 4 and 8'
    """
    *first, last = [f"{value:g}" if isinstance(value, float) else str(value) for value in values]
    return f"{', '.join(first)} and {last}" if first else last


def share(hits: int, of: int) -> str:
    """A share of draws with Wilson's interval.

    Examples
    --------
    >>> share(3, 50)
    '3 of 50 (6.0 %; 95 % Wilson interval 2.1 to 16.2 %)'
    """
    from scipy.stats import binomtest

    ends = binomtest(hits, of).proportion_ci(0.95, "wilson")
    low, high = 100 * float(ends.low), 100 * float(ends.high)
    return f"{hits} of {of} ({100 * hits / of:.1f} %; 95 % Wilson interval {low:.1f} to {high:.1f} %)"


def mean(what: str, values: Sequence[float], unit: str, scale: float = 1.0) -> str:
    """A mean over seeds or outcomes with Student's interval.

    Parameters
    ----------
    what : str
    values : sequence of float
        One of each, SI.
    unit : str
    scale : float
        Of the unit.

    Examples
    --------
    >>> mean("queue", [9e3, 10e3, 11e3], "KB", 1e3)
    "queue 10 KB (95 %, Student's: 7.52 to 12.5)"
    """
    from fluidcc.workloads.fabrics.study import interval

    middle, low, high = (each / scale for each in interval(values))
    if len(values) < 2:
        return f"{what} {middle:.3g} {unit} (of one, so no interval)"
    return f"{what} {middle:.3g} {unit} (95 %, Student's: {low:.3g} to {high:.3g})"


def median(what: str, values: Sequence[float], unit: str, scale: float = 1.0) -> str:
    """A median over seeds with the range of all, which holds the true one unless all lie on one side of it.

    Parameters
    ----------
    what : str
    values : sequence of float
        One of each, SI.
    unit : str
    scale : float
        Of the unit.

    Examples
    --------
    >>> median("queue", [9e3, 10e3, 11e3, 12e3, 13e3, 14e3], "KB", 1e3)
    'queue 11.5 KB (96.8 %: 9 to 14)'
    """
    from statistics import median as middle

    if len(values) < 2:
        return f"{what} {values[0] / scale:.3g} {unit} (of one, so no interval)"
    confidence = math.floor(1000 * (1 - 2.0 ** (1 - len(values)))) / 10  # never 100 %
    low, high = min(values) / scale, max(values) / scale
    return f"{what} {middle(values) / scale:.3g} {unit} ({confidence:g} %: {low:.3g} to {high:.3g})"


def fluid(until: float, runs: int = 1, *, since: float | None = None) -> str:
    """Runs of the fluid, which draws nothing.

    Parameters
    ----------
    until : float
        What a run lasts [s].
    runs : int
    since : float, optional
        From when on it is measured [s].

    Examples
    --------
    >>> fluid(0.2, 3)
    '3 runs of the fluid of 200ms; nothing is drawn'
    """
    return f"{_runs(runs, 'the fluid', until, since)}; nothing is drawn"


def packets(
    until: float,
    runs: int = 1,
    *,
    since: float | None = None,
    seeds: int | Sequence[int] = 0,
    drawn: str = "",
) -> str:
    """Runs of packets.

    Parameters
    ----------
    until : float
        What a run lasts [s].
    runs : int
    since : float, optional
        From when on it is measured [s].
    seeds : int or sequence of int
        The one of all runs, or one of each.
    drawn : str
        What is random in them, such as `MARKS`; nothing if empty.

    Examples
    --------
    >>> packets(0.25, since=0.05, seeds=1, drawn=MARKS)
    "one run of packets of 250ms, measured from 50ms on, seed 1, which draws RED's marks: one draw, so no interval"
    >>> packets(0.01, 8)
    '8 runs of packets of 10ms; nothing in them is random'
    """
    words = _runs(runs, "packets", until, since)
    if not drawn:
        return f"{words}; nothing in {'it' if runs == 1 else 'them'} is random"
    if runs == 1 and not isinstance(seeds, int):
        seeds = seeds[0]
    if isinstance(seeds, int):
        return f"{words}, seed {seeds}, which draws {drawn}: one draw{'' if runs == 1 else ' each'}, so no interval"
    return f"{words}, seeds {min(seeds)} to {max(seeds)}, which draw {drawn}"


def _runs(runs: int, of: str, until: float, since: float | None) -> str:
    count = "one run" if runs == 1 else f"{runs} runs"
    window = "" if since is None else f", measured from {show(since, TIME)} on"
    return f"{count} of {of} of {show(until, TIME)}{window}"
