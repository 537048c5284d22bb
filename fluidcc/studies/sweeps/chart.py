"""Stability over a grid of parameters, all points at once, and its boundary.

The same linearisation as `control.linearize`, with points on the last axis throughout; chunks are of one size, so that
one compilation serves any grid and any point between.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from fluidcc.dde.boundary import traced
from fluidcc.dde.characteristic import abscissa
from fluidcc.dde.delay_system import Array
from fluidcc.engines.fluid.network import REASONS
from fluidcc.progress import Bar
from fluidcc.results.display import draw, labels_of, span
from fluidcc.results.result import DatasetResult, Row
from fluidcc.scenario.model import Scenario
from fluidcc.studies.sweeps.batch import Batch, Builder
from fluidcc.studies.sweeps.grid import axis_text, grid_of
from fluidcc.studies.sweeps.result import SweepResult
from fluidcc.surface import constructor, public
from fluidcc.theory.control.local import Local, local
from fluidcc.theory.control.states import smooth_side

_CHUNK = 512  # points at once
_MOST = 1 << 21  # numbers in a Jacobian of a chunk


class Points(NamedTuple):
    """Numbers of every point of a batch, each (points,); NaN where there is no equilibrium."""

    aggregate: Array  # real part of the rightmost root [1/s]
    frequency: Array  # its imaginary part [1/s]
    fairness: Array  # real part of the rightmost root of differences between flows [1/s]
    marking: Array
    queue: Array  # [bytes]
    on_ramp: Array  # bool
    reason: Array  # index into `REASONS`, `NO_EQUILIBRIUM` and `UNRESOLVED`

    @property
    def root(self) -> Array:
        """Real part of the rightmost root of all modes [1/s]."""
        return np.fmax(self.aggregate, self.fairness)


NO_EQUILIBRIUM = "no equilibrium: flows cycle, queues grow, a step marking marks all or nothing, or the line rate "
"does not fill the link"
UNRESOLVED = "unresolved: the rightmost root may be missed, because too many lie near"


@constructor()
@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class StabilityChart(DatasetResult):
    """Stability over a grid, made by `stability_chart`.

    Parameters
    ----------
    dataset : xarray.Dataset
        Over the names that were swept: ``root`` (real part of the rightmost root of all modes) and ``frequency``
        [1/s], ``fairness_root`` [1/s], ``marking_probability``, ``queue_bytes``, ``stable`` and ``on_ramp`` (1, 0 or
        NaN), ``reason`` (text; "ok"). If two names were swept, ``boundary`` (point, name): where the root crosses the
        axis, in order along each curve, whose number is ``curve`` (point).
    """

    def __repr__(self) -> str:
        """Names and sizes."""
        sizes = ", ".join(f"{name}: {size}" for name, size in self.dataset["root"].sizes.items())
        stable, known = ((self.dataset["stable"] == value).sum() for value in (1, 0))
        return f"<StabilityChart {sizes}; stable at {int(stable)} of {int(stable + known)}>"

    def _rows(self) -> list[Row]:
        data = self.dataset
        rows = [(str(name), axis_text(str(name), data[name])) for name in data["root"].dims]
        rows.append(("rightmost root", span("root_per_s", data["root"])))
        rows.append(("queue", span("queue_bytes", data["queue_bytes"])))
        why, counts = np.unique(data["reason"].values, return_counts=True)
        return rows + [(str(text), f"{count} points") for text, count in zip(why, counts, strict=True)]

    def _part(self, dataset: xr.Dataset) -> Any:
        """The boundary is one over two names: a chart over fewer has none."""
        both = len(dataset["root"].dims) == 2
        return super()._part(dataset if both else dataset.drop_dims(["point", "name"], errors="ignore"))

    @public()
    def plot(
        self,
        *,
        title: str | None = None,
        labels: Mapping[str, str] | None = None,
        oscillations: SweepResult | None = None,
    ) -> Any:
        """The rightmost root over two names, with the boundary; hatched where p* is beyond the RED ramp.

        Parameters
        ----------
        title : str
        labels : mapping of str to str
            Of the axes, by name; one that ends in a unit, as in "feedback delay [us]", scales its axis to it.
        oscillations : SweepResult
            Of the same names, on a grid of its own: adds how far the queue oscillates in runs.

        Returns
        -------
        fluidcc.plotting.style.Picture

        Raises
        ------
        InputError
            If not two names were swept, or the oscillations were swept over others.
        """
        return draw(
            "plot_chart",
            self,
            title=title,
            labels=labels_of(labels, map(str, self.dataset["root"].dims)),
            oscillations=oscillations,
        )


@public()
def stability_chart(make_scenario: Callable[..., Scenario], over: Mapping[str, Any]) -> StabilityChart:
    """Rightmost characteristic roots over a grid.

    Parameters
    ----------
    make_scenario : callable
        Called once with a traced value per name, as in `sweep`: the number of flows of a class is its
        ``multiplicity``. Any network, of schemes that move without jumps.
    over : mapping of str to sequence
        Names and values; numbers in SI, or text with units.

    Returns
    -------
    StabilityChart
        Points that make no sense, or have no equilibrium, carry a reason and NaN; they harm no other.

    Raises
    ------
    InputError
        If a scheme changes its state in jumps: then nothing is linear, and `limit_cycles` measures.

    Examples
    --------
    >>> chart = stability_chart(
    ...     lambda n, tau: incast(1, multiplicity=n, scheme=DCQCN(feedback_delay=tau)),
    ...     over={"n": range(2, 31), "tau": ["20us", "50us", "85us"]},
    ... )
    """
    grid = grid_of(over)
    points = RootFinder(make_scenario)
    with Bar("finding roots", grid.points, "points") as bar:
        found = points(grid.columns(), bar)
    names = list(grid.axes)
    known = np.isfinite(found.root)
    columns = {
        "root": (found.root, "1/s", "real part of the rightmost root"),
        "frequency": (found.frequency, "1/s", "imaginary part of the aggregate's rightmost root"),
        "fairness_root": (found.fairness, "1/s", "real part of the fairness modes' rightmost root"),
        "marking_probability": (found.marking, "1", "marking probability p* of the most loaded link"),
        "queue_bytes": (found.queue, "bytes", "queue at equilibrium of the most loaded link"),
        "stable": (np.where(known, found.root < 0, np.nan), "1", "whether all roots lie left of the axis"),
        "on_ramp": (np.where(known, found.on_ramp, np.nan), "1", "whether p* lies on the RED ramp"),
    }
    texts = np.array([*REASONS, NO_EQUILIBRIUM, UNRESOLVED])[found.reason]
    data = xr.Dataset(
        {
            **{
                name: (names, v.reshape(grid.shape), {"units": u, "long_name": t})
                for name, (v, u, t) in columns.items()
            },
            "reason": (names, texts.reshape(grid.shape)),
        },
        coords=dict(grid.axes),
    )
    if len(names) == 2:

        def root(places: Array) -> Array:
            return points(dict(zip(names, places.T, strict=True))).root

        first, second = grid.axes.values()
        curves = traced(root, (first, second), found.root.reshape(grid.shape))
        data["boundary"] = (("point", "name"), np.concatenate([np.empty((0, 2)), *curves]))
        data["curve"] = ("point", np.repeat(np.arange(len(curves)), [len(curve) for curve in curves]))
        data = data.assign_coords(name=names)
    return StabilityChart(data)


class RootFinder:
    """Numbers of any points of one function's scenarios, compiled once for all of them.

    Parameters
    ----------
    make_scenario : callable
        As of `stability_chart`.
    """

    def __init__(self, make_scenario: Callable[..., Scenario]) -> None:
        self._build = Builder(make_scenario)
        self._size = 0

    def __call__(self, columns: Mapping[str, Array], report: Callable[[float], None] | None = None) -> Points:
        """The points of some columns, each (points,); ``report`` is told the share that is done."""
        count = len(next(iter(columns.values())))
        if not self._size:
            self._size = _size(self._build({name: values[:1] for name, values in columns.items()}).scenario)
        parts = []
        for first in range(0, count, self._size):
            some = np.arange(first, first + self._size)  # always as many; the last chunk repeats its last point
            batch = self._build({name: values[np.minimum(some, count - 1)] for name, values in columns.items()})
            wanted = min(count - first, self._size)
            parts.append(Points(*(values[:wanted] for values in _found(batch, wanted))))
            if report is not None:
                report(min(first + self._size, count) / count)
        return Points(*(np.concatenate(values) for values in zip(*parts, strict=True)))


def _found(batch: Batch, wanted: int) -> Points:
    """Roots of the first so many points of a batch; the others only fill a shape that is compiled."""
    points = len(batch.reasons)
    found = local(batch.network, points)
    aggregate, frequency, fairness = (np.full(points, np.nan) for _ in range(3))
    missed, usable = np.zeros(points, bool), np.zeros(points, bool)
    many = np.broadcast_to(np.asarray(found.states.system.network.multiplicity), (len(batch.network.flows), points))
    for modes in found.modes():
        at = modes.points[(batch.reasons[modes.points] == 0) & (modes.points < wanted)]
        some = np.isin(modes.points, at)
        if not len(at):
            continue
        whole = abscissa(modes.aggregate[some])
        usable[at], missed[at] = True, whole.state != "ok"
        aggregate[at], frequency[at] = whole.value, whole.frequency
        for flow, system in modes.fairness:
            apart = abscissa(system[some])
            several = many[flow][at] > 1
            fairness[at] = np.where(several, np.fmax(fairness[at], apart.value), fairness[at])
            missed[at] |= several & (apart.state != "ok")
    marking, queue, on_ramp = _links(batch, found)
    nothing = ~usable | missed
    reason = np.select([batch.reasons != 0, ~usable, missed], [batch.reasons, len(REASONS), len(REASONS) + 1], 0)
    return Points(
        np.where(nothing, np.nan, aggregate),
        np.where(nothing, np.nan, frequency),
        np.where(nothing, np.nan, fairness),
        np.where(usable, marking, np.nan),
        np.where(usable, queue, np.nan),
        on_ramp,
        reason,
    )


def _links(batch: Batch, found: Local) -> tuple[Array, Array, Array]:
    """Marking and queue of the most loaded link, and whether all that mark do so on their ramps; each (points,)."""
    net, points = batch.network, len(batch.reasons)
    queues = found.slopes.x[:, : net.queues].T
    kmin, kmax, pmax = (
        np.broadcast_to(np.reshape(c, (len(c), -1)), queues.shape) for c in (net.kmin, net.kmax, net.pmax)
    )
    ramp = np.isfinite(kmin) & (kmax > kmin)
    with np.errstate(invalid="ignore", divide="ignore"):
        p = np.where(ramp, np.maximum(queues - kmin, 0.0) / (kmax - kmin) * pmax, 0.0)
    most = queues.argmax(axis=0), np.arange(points)
    marks = (p > 0).any(axis=0) | ~np.isfinite(kmin).any(axis=0)
    return p[most], queues[most], np.asarray(marks & (p <= pmax).all(axis=0))


def _size(scenario: Scenario) -> int:
    """Points at once, of a scenario that can be linearised."""
    for flow in scenario.flows:
        smooth_side(flow.scheme)
    rows = len(scenario.links) + 4 * len(scenario.flows)
    return max(1, min(_CHUNK, _MOST // rows**2))
