"""Constraints on the best point of a sweep: a queue is shortest where its link is idle."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import xarray as xr

from fluidcc.errors import InputError
from fluidcc.results.schema import METRICS
from fluidcc.units import parse, show

USED, FAIR = 0.98, 0.9  # least utilisation, as a share of what the scheme aims at, and least Jain index
_SAME_QUEUE, _SAME = 1.0, 1e-9  # bytes; relative: within these, values are the same
_DIGITS = 9  # of utilisation and Jain index, which the rounding of sums leaves alone
_TEXT = re.compile(r"\s*([\w.]+)\s*([<>]=)\s*(\S.*)")


@dataclasses.dataclass(frozen=True)
class Constraint:
    """A bound on a metric.

    Parameters
    ----------
    metric : str
        One of `METRICS`, or what else may be bounded there.
    sign : {">=", "<="}
    bound : float
        In the metric's unit.
    unit : str
    """

    metric: str
    sign: str
    bound: float
    unit: str = ""

    def __str__(self) -> str:
        """Return the constraint as it is written."""
        return f"{self.metric}{self.sign}{show(self.bound, self.unit)}"

    def kept(self, values: Any) -> Any:
        """Check which values satisfy the constraint; NaN does not."""
        return values >= self.bound if self.sign == ">=" else values <= self.bound


def parse_constraint(text: str, name: str = "subject_to", known: Mapping[str, tuple[str, str]] = METRICS) -> Constraint:
    """Read ``METRIC>=VALUE`` or ``METRIC<=VALUE``.

    Raises
    ------
    InputError
        If it is neither, there is no such metric, or the value cannot be read.
    """
    match = _TEXT.fullmatch(text)
    if match is None:
        raise InputError(f"{name}: {text[:60]!r} is no bound; write for example 'utilisation>=0.99'")
    metric, sign, value = match.groups()
    if metric not in known:
        raise InputError(f"{name}: {metric[:40]!r} is no metric; write one of {', '.join(known)}")
    unit = known[metric][0]
    return Constraint(metric, sign, parse(value, unit, f"{name} {metric}"), unit)


Given = str | Iterable[str | Constraint] | None


def constraints_of(data: xr.Dataset, given: Given, metric: str, *, minimise: bool) -> tuple[Constraint, ...]:
    """Constraints as given; if None, those that go with a metric.

    Parameters
    ----------
    data : xarray.Dataset
        Of a sweep.
    given : str, or sequence of str
    metric : str
        What is best; a queue that is to be short goes with a link that is used and shared fairly.
    minimise : bool

    Raises
    ------
    InputError
        If one of them cannot be read.
    """
    if given is not None:
        texts = [given] if isinstance(given, str) else given
        return tuple(each if isinstance(each, Constraint) else parse_constraint(each) for each in texts)
    if minimise and metric.startswith("queue_bytes."):
        used = USED * float(data.attrs.get("target_utilisation", 1.0))
        return tuple(
            Constraint(name, ">=", bound, METRICS[name][0]) for name, bound in (("utilisation", used), ("jain", FAIR))
        )
    return ()


def feasible(data: xr.Dataset, constraints: Iterable[Constraint]) -> xr.DataArray:
    """Return where all constraints are satisfied; False where a point failed."""
    found = data["reason"] == 0
    for each in constraints:
        found = found & each.kept(data[each.metric])
    return found


def best_index(data: xr.Dataset, metric: str, constraints: Iterable[Constraint], *, minimise: bool) -> int | None:
    """Index of the best point among those that keep the constraints, counted over the flattened grid; None: none does.

    Where several are the same, that which uses more of the link, and then the fairer one: any W_AI that leaves no queue
    has the shortest.
    """
    columns = [data[name].values.reshape(-1) for name in (metric, "utilisation", "jain")]
    kept = np.flatnonzero(feasible(data, constraints).values.reshape(-1) & np.isfinite(columns[0]))
    if not len(kept):
        return None
    values = columns[0][kept]
    best = values.min() if minimise else values.max()
    apart = _SAME_QUEUE if metric.startswith("queue_bytes.") else 0.0
    same = kept[np.abs(values - best) <= apart + _SAME * abs(best)]
    used, fair = (-np.nan_to_num(column[same]) for column in columns[1:])
    return int(same[np.lexsort((np.arange(len(same)), fair.round(_DIGITS), used.round(_DIGITS)))[0]])
