"""Stability over a grid of parameters, all points at once, and the boundary between its halves refined to rounding.

The same linearisation as `control.linearize`, for one link and flows that are all equal: then each has C/N at rest, and
only the marking is to be found. Points lie on the last axis throughout; one compilation serves any grid of a shape.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from fluidcc.control.delay_system import Array, DelaySystem
from fluidcc.control.roots import abscissa
from fluidcc.control.taps import slope_of
from fluidcc.errors import InputError
from fluidcc.fluid.lags import needs
from fluidcc.fluid.network import REASONS, Network, with_points
from fluidcc.fluid.queues import QueueNetwork
from fluidcc.fluid.state import State
from fluidcc.labelled import Labelled
from fluidcc.progress import Bar
from fluidcc.scenario import Scenario
from fluidcc.schemes.dispatch import optional_part
from fluidcc.sweep.batch import batch_of
from fluidcc.sweep.grid import Grid, grid_of

_HALVINGS = 60  # of an interval of log p in 35 e-folds: to rounding
_SMALLEST, _LARGEST = 1e-15, 1 - 1e-12  # marking probabilities searched
_SECANTS = 40  # steps to the boundary; a third do for most
_ON_BOUNDARY = 1e-10  # change of a share of an edge that counts as none
_CHUNK = 2048  # points between two reports


class Points(NamedTuple):
    """Numbers of every point of a batch, each (points,); NaN where there is no rest."""

    aggregate: Array  # real part of the rightmost root [1/s]
    frequency: Array  # its imaginary part [1/s]
    fairness: Array  # real part of the rightmost root of differences between flows [1/s]
    marking: Array
    queue: Array  # [bytes]
    on_ramp: Array  # bool
    reason: Array  # index into `REASONS`, `NO_REST` and `UNRESOLVED`


NO_REST = "no rest: a cut-off marks all or nothing, or the line rate does not fill the link"
UNRESOLVED = "unresolved: the rightmost root may be missed, because too many lie near"


@dataclasses.dataclass(frozen=True, repr=False)
class StabilityChart(Labelled):
    """Stability over a grid, made by `stability_chart`.

    Parameters
    ----------
    dataset : xarray.Dataset
        Over the names that were swept: ``root`` (real part of the rightmost root of all modes) and ``frequency``
        [1/s], ``fairness_root`` [1/s], ``marking_probability``, ``queue_bytes``, ``stable`` and ``on_ramp`` (1, 0 or
        NaN), ``reason`` (text; "ok"). ``boundary`` (point, name), if two names were swept: where the root crosses the
        axis between neighbours of the grid.
    """

    def __repr__(self) -> str:
        """Names and sizes."""
        sizes = ", ".join(f"{name}: {size}" for name, size in self.dataset["root"].sizes.items())
        return f"<StabilityChart {sizes}>"

    def plot(self, *, title: str | None = None, labels: Mapping[str, str] | None = None) -> Any:
        """The rightmost root over two names, with the boundary; hatched where p* is beyond the RED ramp.

        ``labels`` are those of the axes, by name.
        """
        from fluidcc.sweep.chart_plot import plot_chart

        return plot_chart(self, title=title, labels=labels or {})


def stability_chart(make_scenario: Callable[..., Scenario], over: Mapping[str, Any]) -> StabilityChart:
    """Rightmost characteristic roots over a grid.

    Parameters
    ----------
    make_scenario : callable
        Called once with a traced value per name, as in `sweep`; it makes one link and one class of flows, whose number
        is its ``multiplicity``. The scheme rests on a marking.
    over : mapping of str to sequence
        Names and values; numbers in SI, or text with units.

    Returns
    -------
    StabilityChart
        Points that make no sense, or have no rest, carry a reason and NaN; they harm no other.

    Raises
    ------
    InputError
        If the scenario has several links or classes of flows, or its scheme does not rest on a marking.

    Examples
    --------
    >>> chart = stability_chart(
    ...     lambda n, tau: incast(1, multiplicity=n, scheme=DCQCN(feedback_delay=tau)),
    ...     over={"n": range(2, 31), "tau": ["20us", "50us", "85us"]},
    ... )
    """
    grid = grid_of({name: list(values) if isinstance(values, range) else values for name, values in over.items()})
    found = _points(make_scenario, grid)
    names = list(grid.axes)
    root = np.fmax(found.aggregate, found.fairness)
    known = np.isfinite(root)
    columns = {
        "root": (root, "1/s", "real part of the rightmost root"),
        "frequency": (found.frequency, "1/s", "imaginary part of the aggregate's rightmost root"),
        "fairness_root": (found.fairness, "1/s", "real part of the fairness modes' rightmost root"),
        "marking_probability": (found.marking, "1", "marking probability p*"),
        "queue_bytes": (found.queue, "bytes", "queue at rest"),
        "stable": (np.where(known, root < 0, np.nan), "1", "whether all roots lie left of the axis"),
        "on_ramp": (np.where(known, found.on_ramp, np.nan), "1", "whether p* lies on the RED ramp"),
    }
    texts = np.array([*REASONS, NO_REST, UNRESOLVED])[found.reason]
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
        edge = _boundary(make_scenario, grid, root.reshape(grid.shape))
        data["boundary"] = (("point", "name"), edge)
        data = data.assign_coords(name=names)
    return StabilityChart(data)


def _points(make_scenario: Callable[..., Scenario], grid: Grid) -> Points:
    """Numbers of every point of a grid."""
    batch = batch_of(make_scenario, grid)
    room = _checked(batch.scenario)
    with jax.enable_x64(True):
        network = jax.tree.map(
            lambda a: jnp.broadcast_to(a, (a.shape[0], grid.points)), with_points(batch.network, np.dtype("float64"))
        )
        numbers = {k: np.asarray(v) for k, v in _linearized(network, room.marking_at, grid.points).items()}
    usable = numbers["exists"] & (batch.reasons == 0)
    aggregate, frequency, fairness = (np.full(grid.points, np.nan) for _ in range(3))
    missed = np.zeros(grid.points, bool)
    at = np.flatnonzero(usable)
    with Bar("finding roots", grid.points, "points") as bar:
        for part in np.array_split(at, max(1, -(-len(at) // _CHUNK))):
            if len(part):
                A0, A, tau = (numbers[name][part] for name in ("A0", "A", "tau"))
                whole = abscissa(DelaySystem(A0, A, tau))
                apart = abscissa(DelaySystem(A0[:, 1:, 1:], A[:, :, 1:, 1:], tau))
                aggregate[part], frequency[part], fairness[part] = whole.value, whole.frequency, apart.value
                missed[part] = (whole.state != "ok") | (apart.state != "ok")
                bar((int(np.searchsorted(at, part[-1])) + 1) / max(len(at), 1))
    return Points(
        np.where(missed, np.nan, aggregate),
        np.where(missed, np.nan, frequency),
        np.where((numbers["flows"] > 1) & ~missed, fairness, np.nan),
        np.where(usable, numbers["marking"], np.nan),
        np.where(usable, numbers["queue"], np.nan),
        numbers["on_ramp"],
        np.select([batch.reasons != 0, ~usable, missed], [batch.reasons, len(REASONS), len(REASONS) + 1], 0),
    )


def _checked(scenario: Scenario) -> Any:
    scheme = scenario.flows[0].scheme
    room = optional_part(scheme, "equilibrium")
    (link, *links), (_, *flows) = scenario.links, scenario.flows
    if links or flows:
        raise InputError(
            "stability_chart: expected one link and one class of flows; write fluidcc.incast(1, multiplicity=8, ...)"
        )
    if room is None or not hasattr(room, "marking_at") or needs(scheme):
        raise InputError(f"stability_chart: {scheme.name} does not rest on a marking; it is built for dcqcn")
    if link.marking is None:
        raise InputError("stability_chart: the link marks nothing; give it marking=RED(kmin, kmax, pmax)")
    return room


@partial(jax.jit, static_argnames=("marking_at", "points"))
def _linearized(network: Network, marking_at: Any, points: int) -> dict[str, Any]:
    """Rest and linearisation of every point; arrays with the points first."""
    rate = jnp.minimum(network.capacity / network.multiplicity, network.line_rate)
    (group,) = network.groups
    low, high = jnp.log(jnp.full((1, points), _SMALLEST)), jnp.log(jnp.full((1, points), _LARGEST))

    def halve(_: int, ends: tuple[Any, Any]) -> tuple[Any, Any]:
        middle = (ends[0] + ends[1]) / 2
        rises = marking_at(group.parameters, jnp.exp(middle), rate, network.packet)[0] > 0
        return jnp.where(rises, middle, ends[0]), jnp.where(rises, ends[1], middle)

    low, high = jax.lax.fori_loop(0, _HALVINGS, halve, (low, high))
    marking = jnp.exp((low + high) / 2)
    _, state = marking_at(group.parameters, marking, rate, network.packet)
    width = network.kmax - network.kmin
    queue = network.kmin + marking / network.pmax * width
    exists = (width > 0) & (rate < network.line_rate) & (marking > 2 * _SMALLEST) & (marking < 1 - 1e-9)
    longer = jnp.where(width > 0, width / network.pmax, 1.0)
    extended = dataclasses.replace(network, kmax=network.kmin + longer, pmax=jnp.ones_like(network.pmax))
    system = QueueNetwork(extended, points, jnp.asarray(np.inf))
    y, z = system.start(jnp.float64)
    y = y._replace(queue=jnp.broadcast_to(queue, (1, points)), schemes=(state,))
    if z.wait is not None:
        z = z._replace(wait=y.queue / network.capacity, wait_growth=jnp.zeros((1, points)))
    reads = system.reads
    lags = [
        jnp.broadcast_to(lag, (len(read.rows), points)) for read, lag in zip(reads, system.lags(y, z, 0.0), strict=True)
    ]
    taps = jnp.asarray([row for read in reads for row in read.rows])
    rows = jnp.concatenate([y.queue, *state])

    def state_of(x: Any) -> State:
        return y._replace(queue=x[:1], schemes=(type(state)(*(x[k : k + 1] for k in range(1, len(x)))),))

    def heard(x: Any) -> Any:
        return system.remembered(state_of(x))[taps]

    def slope(x: Any, values: Any) -> Any:
        moved = slope_of(system, z, state_of(x), values)
        return jnp.concatenate([moved.queue, *moved.schemes[0]])

    values = heard(rows)

    # Points do not know of each other: one tangent of ones per row is that row's column for all of them.
    def columns(of: Any, at: Any) -> Any:
        ones = jnp.eye(at.shape[0])[:, :, None] * jnp.ones(points)
        return jnp.stack([jax.jvp(of, (at,), (one,))[1] for one in ones], axis=1)

    present = columns(lambda x: slope(x, values), rows)  # (n, n, points)
    past = columns(lambda v: slope(rows, v), values)  # (n, taps, points)
    of_state = columns(heard, rows)  # (taps, n, points)
    A = jnp.einsum("ikp,kjp->pkij", past, of_state)
    return {
        "A0": jnp.moveaxis(present, -1, 0),
        "A": A,
        "tau": jnp.concatenate(lags).T,
        "marking": marking[0],
        "queue": queue[0],
        "on_ramp": (marking <= network.pmax)[0],
        "exists": exists[0],
        "flows": jnp.broadcast_to(network.multiplicity, (1, points))[0],
    }


def _boundary(make_scenario: Callable[..., Scenario], grid: Grid, root: Array) -> Array:
    """Where the rightmost root crosses the axis, (n, 2): one point on each edge of the grid whose ends differ in sign.

    By the Illinois method along the edge, all edges at once.
    """
    (x, y), (first, second) = grid.axes.values(), grid.axes
    ends = []
    for axis in (0, 1):
        a = np.take(root, range(root.shape[axis] - 1), axis=axis)
        b = np.take(root, range(1, root.shape[axis]), axis=axis)
        i, j = np.nonzero(a * b < 0)
        step = (1, 0) if axis == 0 else (0, 1)
        ends += [((x[p], y[q]), (x[p + step[0]], y[q + step[1]]), a[p, q], b[p, q]) for p, q in zip(i, j, strict=True)]
    if not ends:
        return np.empty((0, 2))
    start, end = (np.array([edge[k] for edge in ends]) for k in (0, 1))
    low, high, moved = np.zeros(len(ends)), np.ones(len(ends)), np.zeros(len(ends))
    at_low, at_high = (np.array([edge[k] for edge in ends]) for k in (2, 3))
    share = low
    for _ in range(_SECANTS):
        before, share = share, (low * at_high - high * at_low) / (at_high - at_low)
        if np.nanmax(np.abs(share - before)) < _ON_BOUNDARY:
            break
        value = _roots_at(make_scenario, (first, second), start + share[:, None] * (end - start))
        as_low = value * at_low > 0
        # An end that stays twice in a row counts half, or the other would creep.
        at_high = np.where(as_low, np.where(moved == 1, at_high / 2, at_high), value)
        at_low = np.where(as_low, value, np.where(moved == 2, at_low / 2, at_low))
        low, high, moved = np.where(as_low, share, low), np.where(as_low, high, share), np.where(as_low, 1, 2)
    found = start + share[:, None] * (end - start)
    return found[np.isfinite(share)]  # an edge may cross where there is no rest


def _roots_at(make_scenario: Callable[..., Scenario], names: tuple[str, str], places: Array) -> Array:
    """Rightmost roots at places (n, 2) that form no grid."""
    columns = jnp.asarray(places)

    def make(_place: Any) -> Scenario:
        here = columns[_place.astype(jnp.int32)]
        return make_scenario(**{names[0]: here[0], names[1]: here[1]})

    found = _points(make, Grid({"_place": np.arange(len(places), dtype=float)}))
    return np.fmax(found.aggregate, found.fairness)
