"""Several long-run behaviours of the same settings: one run that moves there and back, or two starts.

`hysteresis` follows one run whose parameter moves, as in a live network: it shows how far a behaviour lasts.
`bistability` starts every point of a grid twice: it shows where two behaviours exist, if the starts find them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
import xarray as xr

from fluidcc.compiling.threads import cores
from fluidcc.engines.fluid.engine import Continued, with_room
from fluidcc.engines.fluid.network import REASONS
from fluidcc.engines.fluid.plan import Plan, plan_of
from fluidcc.engines.fluid.running_statistics import Summary
from fluidcc.engines.run_many import Place, run_all
from fluidcc.errors import InputError
from fluidcc.progress import Bar
from fluidcc.results.dataset import DatasetResult, Row
from fluidcc.results.drawing import draw
from fluidcc.results.grid import Grid
from fluidcc.results.text import span
from fluidcc.scenario.model import Scenario
from fluidcc.studies.sweeps.batch import NOT_FINITE, Batch, batch_of, chunk_size, take
from fluidcc.studies.sweeps.grid import axis_text, grid_of
from fluidcc.studies.sweeps.run import QUEUEING_ALLOWANCE
from fluidcc.surface import constructor, public
from fluidcc.theory.control.equilibrium import equilibrium
from fluidcc.theory.control.settling import AGREE, kinds
from fluidcc.units import TIME, quantity, show

APART = 0.1  # of the larger oscillation: by how much oscillates differ that are not the same
_TEXTS = {
    "peak_to_peak": "queue of the most loaded link, largest less smallest",
    "queue_bytes.min": "queue of the most loaded link, min",
    "queue_bytes.max": "queue of the most loaded link, max",
    "queue_bytes.mean": "queue of the most loaded link, mean",
}
_PARTS = 4  # windows in a dwell; the last three say what it is
_RATE = "rate"  # (flows, points) mean of a window [bytes/s]
_OTHER, _FROM_EQUILIBRIUM = "other", "from equilibrium"
_PIECES = 100  # steps of a ramp


@constructor()
@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Branches(DatasetResult):
    """Long-run oscillations of the queue on two branches, made by `hysteresis` and `bistability`.

    Parameters
    ----------
    dataset : xarray.Dataset
        Over ``branch`` and the names that were swept: ``peak_to_peak``, ``queue_bytes.min``, ``queue_bytes.max``,
        ``queue_bytes.mean`` [bytes] and ``kind`` (as of `control.settling.kinds`, or why a point failed), all of the
        last window. Over the names: ``bistable``, whether the oscillations differ by more than a tenth of the larger,
        and not because the smaller still grows or the larger decays.
    """

    def __repr__(self) -> str:
        """Names, sizes and where the branches differ."""
        sizes = ", ".join(f"{name}: {self.dataset.sizes[name]}" for name in self.names)
        return f"<Branches {sizes}; bistable at {int(self.dataset['bistable'].sum())}>"

    WHOLE: ClassVar[tuple[str, ...]] = ("branch",)

    def _rows(self) -> list[Row]:
        data = self.dataset
        rows = [(name, axis_text(name, data[name])) for name in self.names]
        for branch in data["branch"].values:
            at = data.sel(branch=branch)
            kinds, counts = np.unique(at["kind"].values, return_counts=True)
            told = ", ".join(f"{kind} {count}" for kind, count in zip(kinds, counts, strict=True))
            rows.append((str(branch), f"{told}; peak to peak {span('queue_bytes', at['peak_to_peak'])}"))
        return rows

    @property
    def names(self) -> list[str]:
        """Names that were swept."""
        return [str(d) for d in self.dataset["bistable"].dims]

    @public()
    def plot(self, *, title: str | None = None, labels: Mapping[str, str] | None = None) -> Any:
        """Oscillation of both branches over one name, or of each as a map over two; ``labels`` of the axes by name.

        Parameters
        ----------
        title : str
            Above the picture; one that says what it is if not given.
        labels : mapping of str to str
            Of the axes, by name.

        Returns
        -------
        fluidcc.plotting.style.Picture
        """
        return draw("plot_branches", self, title=title, labels=labels or {})


def branches_of(grid: Grid, branches: Mapping[str, Mapping[str, np.ndarray]]) -> Branches:
    """Put branches together: for each its variables by name, (points,)."""
    names = list(grid.axes)
    stacked = {key: np.stack([found[key] for found in branches.values()]) for key in (*_TEXTS, "kind")}
    amplitude, kind = stacked["peak_to_peak"], stacked["kind"]
    larger = np.argmax(np.nan_to_num(amplitude, nan=-1.0), axis=0)[None]
    more, less = (np.take_along_axis(amplitude, at, axis=0)[0] for at in (larger, 1 - larger))
    falls = np.take_along_axis(kind, larger, axis=0)[0] == "decaying"
    rises = np.take_along_axis(kind, 1 - larger, axis=0)[0] == "growing"
    fixed_points = (kind == "equilibrium").all(axis=0)
    apart = (more - less > APART * more) & ~fixed_points & ~falls & ~rises
    shape = (len(branches), *grid.shape)
    data = xr.Dataset(
        {
            **{
                key: (["branch", *names], stacked[key].reshape(shape), {"units": "bytes", "long_name": text})
                for key, text in _TEXTS.items()
            },
            "kind": (["branch", *names], kind.reshape(shape)),
            "bistable": (names, apart.reshape(grid.shape), {"long_name": "whether the branches differ"}),
        },
        coords={"branch": list(branches), **grid.axes},
    )
    return Branches(data)


@public()
def hysteresis(
    make_scenario: Callable[..., Scenario],
    over: Mapping[str, Any],
    *,
    dwell: Any = "100ms",
    ramp: Any = None,
    before: Any = None,
    perturbation: float = 1e-3,
    dt: Any = None,
    method: str = "heun",
) -> Branches:
    """Move one parameter of a running network through its values, and back.

    One run: at a new value it goes on with the state, the memory and the history of delays that it has.

    Parameters
    ----------
    make_scenario : callable
        ``make_scenario(value) -> Scenario``, called once with a traced scalar, as in `sweep`. Flows start as it says.
    over : mapping
        One name and its values, rising or falling: the number of flows as a multiplicity, a feedback delay, a
        threshold, a gain, a rate.
    dwell : quantity
        Time at each value [s]; its last quarter is reported, its last three say whether that is steady.
    ramp : quantity
        Time in which it moves from a value to the next, in a hundred steps [s]; one dwell by default. 0: at once. A
        step may throw it from one behaviour to the other, where each of them would last.
    before : quantity
        Time at the first value before its own dwell [s]; one dwell by default.
    perturbation : float
        Share by which the queue is made longer as a dwell begins, so that an equilibrium that has become unstable is
        left. Without it a run at an equilibrium that the parameter does not move would stay there.
    dt, method
        As in `simulate`; one step for all values.

    Returns
    -------
    Branches
        With ``branch`` "up" and "down", in the order of the run; the last value there is the first back.

    Raises
    ------
    InputError
        If there is not one name, values are not in order or make no sense, or an option makes none.

    Examples
    --------
    >>> import fluidcc as fc
    >>> moved = fc.studies.hysteresis(lambda n: fc.incast(1, multiplicity=n), over={"n": range(6, 17)})
    >>> moved.plot()  # doctest: +SKIP
    """
    grid = grid_of(over)
    if len(grid.axes) != 1:
        raise InputError("over: one parameter moves at a time; give one name, for example over={'n': range(2, 20)}")
    (name, values), *_ = grid.axes.items()
    rises = bool(values[-1] > values[0])
    if grid.points < 2 or not (np.diff(values) * (1 if rises else -1) > 0).all():
        raise InputError(f"over {name}: expected two or more values, rising or falling; it moves through them and back")
    stay = quantity(dwell, TIME, "dwell")
    move, early = (
        stay if time is None else quantity(time, TIME, text) for time, text in ((ramp, "ramp"), (before, "before"))
    )
    pieces = _PIECES if move > 0 else 1
    # What it passes between two values are points as well, so that each is the scenario of that value.
    along = np.interp(np.arange((grid.points - 1) * pieces + 1) / pieces, np.arange(grid.points), values)
    batch = batch_of(make_scenario, Grid({name: along}))
    bad = np.flatnonzero(batch.reasons)
    if len(bad):
        raise InputError(f"over {name}: {REASONS[batch.reasons[bad[0]]]} at {along[bad[0]]:g}; leave it out")
    whole = early + 2 * grid.points * (stay + move)

    def job(allowance: float | None) -> dict[str, list[dict[str, np.ndarray]]]:
        plan = plan_of(batch.network, until=whole, dt=dt, method=method, queueing_allowance=allowance)
        steps, piece, first = (round(time / plan.dt) for time in (stay / _PARTS, move / pieces, early))
        if steps < 1 or piece < (move > 0) or first < 0:
            raise InputError(f"dwell, ramp: too short for steps of {show(plan.dt, TIME)}; write for example 100ms")
        at, run = 0, Continued(take(batch.network, np.array([0])), plan)
        if first:
            run.window(first)
        found: dict[str, list[dict[str, np.ndarray]]] = {branch: [] for branch in names}
        with Bar(f"moving {name} there and back", 2 * grid.points, "values") as bar:
            for stop in (*range(grid.points), *range(grid.points)[::-1]):
                while at != stop * pieces:
                    at += 1 if at < stop * pieces else -1
                    run.change(take(batch.network, np.array([at])))
                    if piece:
                        run.window(piece)
                if perturbation:
                    run.perturb(perturbation)
                windows = [_amplitudes(run.window(steps)) for _ in range(_PARTS)]
                branch = names[len(found[names[0]]) == grid.points]
                found[branch].append(_judged(windows, packet)[0])
                bar(sum(map(len, found.values())) / (2 * grid.points))
        found[names[1]].reverse()
        return found

    names = ("up", "down") if rises else ("down", "up")
    packet = float(np.max(batch.network.packet))
    found = with_room(job)
    if any((each["kind"] == REASONS[NOT_FINITE]).any() for parts in found.values() for each in parts):
        raise InputError("hysteresis: the run is not finite; give a smaller dt")
    joined = {
        branch: {key: np.concatenate([each[key] for each in parts]) for key in parts[0]}
        for branch, parts in found.items()
    }
    return branches_of(grid, joined)


@public()
def bistability(
    make_scenario: Callable[..., Scenario],
    over: Mapping[str, Any],
    other: Callable[..., Scenario] | None = None,
    *,
    until: Any = "1s",
    window: Any = "20ms",
    dt: Any = None,
    method: str = "heun",
    workers: int | None = None,
) -> Branches:
    """Integrate every point of a grid from two starts, until both are steady, and say where they differ.

    Parameters
    ----------
    make_scenario : callable
        As in `sweep`; flows start as it says, by default at line rate.
    over : mapping
        For each name its values, as in `sweep`.
    other : callable
        The same scenarios with another start. By default `from_equilibrium`: its rates, and empty queues.
    until : quantity
        Time at which to give up [s]; a chunk of points ends when all of them are steady.
    window : quantity
        Length of the windows that are compared [s]; of some periods at least.
    dt, method, workers
        As in `sweep`.

    Returns
    -------
    Branches
        With ``branch`` "given" and "from equilibrium" (or "other").

    Raises
    ------
    InputError
        If the grid, a scenario or an option makes no sense. A point that does not says so in ``kind``.

    Examples
    --------
    >>> import fluidcc as fc
    >>> two = fc.studies.bistability(lambda n: fc.incast(1, multiplicity=n), over={"n": range(2, 17)})
    >>> two.n[two.bistable].values.tolist()
    [9.0, 10.0, 11.0, 12.0, 13.0, 14.0]
    """
    grid = grid_of(over)
    starts = {
        "given": make_scenario,
        _OTHER if other else _FROM_EQUILIBRIUM: other or from_equilibrium(make_scenario, over),
    }
    length, horizon = quantity(window, TIME, "window"), quantity(until, TIME, "until")
    if not 0 < length <= horizon / 3:
        raise InputError(f"window: {show(length, TIME)} does not fit three times into {show(horizon, TIME)}")
    found: dict[str, dict[str, np.ndarray]] = {}
    with Bar(f"settling {grid.points:,} points from two starts", 2 * grid.points, "points") as bar:
        for k, (branch, make) in enumerate(starts.items()):
            batch = batch_of(make, grid)

            def job(allowance: float | None, batch: Batch = batch, k: int = k) -> dict[str, np.ndarray]:
                plan = plan_of(batch.network, until=horizon, dt=dt, method=method, queueing_allowance=allowance)
                return _settled(
                    batch, plan, grid.points, length, workers or cores(), lambda share, *_: bar((k + share) / 2)
                )

            results = with_room(job, QUEUEING_ALLOWANCE)
            bad = batch.reasons != 0
            for key, values in results.items():
                values[bad] = np.array(REASONS)[batch.reasons[bad]] if key == "kind" else np.nan
            found[branch] = results
    return branches_of(grid, found)


@public()
def from_equilibrium(make_scenario: Callable[..., Scenario], over: Mapping[str, Any]) -> Callable[..., Scenario]:
    """The same scenarios, with flows that start at their rates in equilibrium (and what else may be given: alpha).

    Queues start empty, so that it is no start in equilibrium.

    Parameters
    ----------
    make_scenario : callable
        As in `sweep`. Here it is also called with the numbers of each point of the grid.
    over : mapping
        The grid; what is returned knows the equilibria of its points only.

    Returns
    -------
    callable
        Like ``make_scenario``.

    Raises
    ------
    InputError
        If a scenario has no equilibrium.
    """
    grid = grid_of(over)
    columns = grid.columns()
    rows = []
    with Bar("finding equilibria", grid.points, "points") as bar:
        for i in range(grid.points):
            scenario = make_scenario(**{name: v[i] for name, v in columns.items()})
            fixed_point = equilibrium(scenario)
            if fixed_point.cycle is not None and fixed_point.cycle.kind != "equilibrium":
                raise InputError(
                    f"from_equilibrium: {scenario.flows[0].scheme.name} has no equilibrium here, it oscillates; "
                    "give another start: other"
                )
            rows.append(fixed_point.flows)
            bar((i + 1) / grid.points)

    def make(**values: Any) -> Scenario:
        at: Any = 0
        for name, axis in grid.axes.items():
            at = at * len(axis) + jnp.argmin(jnp.abs(jnp.asarray(axis) - values[name]))

        def at_equilibrium(flow: int, key: str) -> Any:
            return jnp.asarray([row[flow][key] for row in rows])[at]

        scenario = make_scenario(**values)
        flows = []
        for i, flow in enumerate(scenario.flows):
            starts = {f"initial_{key}": key for key in rows[0][i] if hasattr(flow.scheme, f"initial_{key}")}
            scheme = dataclasses.replace(flow.scheme, **{name: at_equilibrium(i, key) for name, key in starts.items()})
            flows.append(dataclasses.replace(flow, scheme=scheme, initial_rate=at_equilibrium(i, "rate_bytes_per_s")))
        return dataclasses.replace(scenario, flows=tuple(flows))

    return make


def _amplitudes(summary: Summary) -> dict[str, np.ndarray]:
    """Numbers of the most loaded link's queue, each (points,) [bytes]."""
    link = np.argmax(np.nan_to_num(summary.queue_mean, nan=-1.0), axis=0)
    points = np.arange(len(link))
    low, high, mean = (v[link, points] for v in (summary.queue_min, summary.queue_max, summary.queue_mean))
    return {
        "peak_to_peak": high - low,
        "queue_bytes.min": low,
        "queue_bytes.max": high,
        "queue_bytes.mean": mean,
        _RATE: summary.rate_mean,
    }


def _judged(windows: list[dict[str, np.ndarray]], packet: float) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """The last window's numbers with their kind, and which points are settled.

    An empty queue stands still while rates are on their way: then nothing is settled.
    """
    last = {key: values for key, values in windows[-1].items() if key != _RATE}
    kind, settled = kinds(
        np.stack([each["peak_to_peak"] for each in windows]), np.maximum(last["queue_bytes.mean"], packet)
    )
    rates = np.stack([each[_RATE] for each in windows[-2:]])
    drifts = (np.ptp(rates, axis=0) > AGREE * np.abs(rates).max(axis=0)).any(axis=0) & (kind == "equilibrium")
    kind, settled = np.where(drifts, "unsettled", kind), settled & ~drifts
    finite = np.isfinite(last["peak_to_peak"])
    return {**last, "kind": np.where(finite, kind, REASONS[NOT_FINITE])}, settled


def _settled(
    batch: Batch, plan: Plan, points: int, length: float, threads: int, report: Callable[..., None]
) -> dict[str, np.ndarray]:
    """Numbers of all points once they are settled, or time is up; chunk by chunk."""
    steps = max(1, round(length / plan.dt))
    packet = float(np.max(batch.network.packet))
    chunk = chunk_size(batch, plan, points, threads)

    def settle(first: int, place: Place) -> dict[str, np.ndarray]:
        indices = np.minimum(np.arange(first, first + chunk), points - 1)  # the last is padded to the same shape
        run, windows = Continued(take(batch.network, indices), plan, chunk), []
        while True:
            place.check()
            windows = [*windows[-2:], _amplitudes(run.window(steps))]
            found, settled = _judged(windows, packet)
            if settled.all() or run.steps + steps > plan.steps:
                return {key: values[: points - first] for key, values in found.items()}

    parts = run_all(settle, range(0, points, chunk), threads=threads, report=report)
    return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
