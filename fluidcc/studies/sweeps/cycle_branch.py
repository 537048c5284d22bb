"""Limit cycles of a scenario's fluid followed over a parameter, stable or not, with the folds where both meet.

A run finds a first cycle; from there `fluidcc.dde.orbit_branch` continues without runs. So also the unstable cycle is
found that lies between a stable equilibrium and a stable cycle, and where the two cycles meet and vanish. The law of a
scenario, its limits and what flows observe are those of the fluid engine (`control.states`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from fluidcc.builders.names import format_value
from fluidcc.compiling.functions import per_shape
from fluidcc.compiling.settings import our_settings
from fluidcc.dde.equation import Array
from fluidcc.dde.orbit import Limited, Orbit, Rates, solve_orbit
from fluidcc.dde.orbit_branch import Branch, follow
from fluidcc.engines.fluid.classes import system_of
from fluidcc.engines.fluid.network import REASONS, Network
from fluidcc.errors import InputError
from fluidcc.progress import Bar
from fluidcc.results.dataset import DatasetResult, Row
from fluidcc.results.drawing import draw
from fluidcc.results.text import span
from fluidcc.scenario.model import Scenario
from fluidcc.studies.sweeps.batch import Builder
from fluidcc.studies.sweeps.chart import RootFinder
from fluidcc.studies.sweeps.grid import grid_of
from fluidcc.surface import constructor, public
from fluidcc.theory.control.limit_cycle import last_period
from fluidcc.theory.control.newton import jacobian
from fluidcc.theory.control.states import States
from fluidcc.units import TIME, quantity, whole

STEPS = 1000  # of a period: DCQCN's periods then lie within 1e-4 of their limit, and folds within 1e-4
SMALLEST = 0.02  # of the first cycle's oscillation: a smaller cycle counts as an equilibrium
_ASIDE = 1e-4  # of a value, for derivatives by it: columns of a network are almost linear in it
_VALUES = 101  # at which equilibria are looked at


@dataclasses.dataclass(frozen=True, eq=False)
class FluidLaw:
    """A `Law` of a network.

    Parameters
    ----------
    network : Network
        Of plain numbers, each column (rows, 1); one queue.
    tangent : Network
        Its derivative by the parameter.
    observed : ndarray
        As `observed_of` gives it.
    """

    network: Network
    tangent: Network
    observed: Array

    @property
    def lag(self) -> tuple[float, float]:
        """The lag [s], and its derivative by the parameter."""
        return _number(self.network.marking_lag), _number(self.tangent.marking_lag)

    @property
    def jump(self) -> tuple[int, float, float]:
        """Marking jumps at kmax: the queue's row, that queue [bytes], and its derivative by the parameter."""
        rows = self.states.delayed_inputs.delayed_inputs
        queue = next(k for k, read in enumerate(rows) if read.row < self.network.queues)
        return queue, _number(self.network.kmax), _number(self.tangent.kmax)

    @property
    def flows(self) -> float:
        """Number of flows."""
        return _number(self.network.multiplicity)

    @cached_property
    def states(self) -> States:
        """States of the network by rows."""
        return states_of(self.network, 1)

    def rates(self, x: Array, u: Array) -> Rates:
        """Right-hand side at states (places, n) and observed values (places, k)."""
        with our_settings():
            found = _rates(self.network, self.tangent, jnp.asarray(x.T), jnp.asarray(u.T), points=len(x))
            return Rates(*(np.moveaxis(np.asarray(each), -1, 0) for each in found))

    def limits(self, x: Array) -> Limited:
        """Put states (places, n) back within limits: no queue below 0, no rate above the line's."""
        with our_settings():
            found = _limits(self.network, self.tangent, jnp.asarray(x.T), points=len(x))
            return Limited(*(np.moveaxis(np.asarray(each), -1, 0) for each in found))


def observed_of(network: Network) -> Array:
    """Return the matrix from states to what flows observe, of which all are observed equally late."""
    with our_settings():
        states = states_of(network, 1)
        return np.asarray(jacobian(states.observed, jnp.ones((len(states.names), 1))))[:, :, 0]


def _number(column: Any) -> float:
    return float(np.ravel(column)[0])


def states_of(network: Network, points: int) -> States:
    """States of a network by rows, at so many points."""
    return States(system_of(network, points, jnp.asarray(np.inf)))


@per_shape(rooms=("fluid", "equilibrium"))
def _rates(network: Network, tangent: Network, x: Any, u: Any, *, points: int) -> Any:
    def slope(network: Network, both: Any) -> Any:
        return states_of(network, points).slope(both[: len(x)], both[len(x) :])

    both = jnp.concatenate([x, u])
    by = jax.jvp(lambda network: slope(network, both), (network,), (tangent,))[1]
    slopes = jacobian(lambda both: slope(network, both), both)
    return slope(network, both), slopes[:, : len(x)], slopes[:, len(x) :], by


@per_shape(rooms=("fluid", "equilibrium"))
def _limits(network: Network, tangent: Network, x: Any, *, points: int) -> Any:
    def limited(network: Network, x: Any) -> Any:
        return states_of(network, points).projected(x)

    by = jax.jvp(lambda network: limited(network, x), (network,), (tangent,))[1]
    return limited(network, x), jacobian(lambda x: limited(network, x), x), by


def check_one_link(network: Network) -> None:
    """Refuse networks with several links, lags or classes of flows.

    Raises
    ------
    InputError
    """
    if network.queues != 1 or len(network.flows) != 1:
        raise InputError(
            f"cycle_branch: {network.queues} links and {len(network.flows)} classes of flows; one link and one class "
            "can be followed: write incast(1, multiplicity=n)"
        )
    if network.own_lag is not None or network.queueing:
        raise InputError(
            "cycle_branch: what flows observe is as old as the queue is long; give one constant lag by "
            "feedback_delay to a scheme of rates, for example DCQCN(feedback_delay='50us') (schemes with windows or "
            "several lags cannot be followed)"
        )


class Laws:
    """Laws of a function's scenarios, compiled once for all values.

    Parameters
    ----------
    make_scenario : callable
        As of `cycle_branch`.
    name : str
        The parameter by which laws are differentiated.
    """

    def __init__(self, make_scenario: Callable[..., Scenario], name: str) -> None:
        self._build = Builder(make_scenario)
        self.name = name
        self._observed: Array | None = None

    def __call__(self, **values: float) -> FluidLaw:
        """The law at some values.

        Raises
        ------
        InputError
            If the scenario makes no sense there, or cannot be followed.
        """
        value = values[self.name]
        aside = _ASIDE * abs(value) or _ASIDE
        columns = {name: np.full(3, each) for name, each in values.items()}
        columns[self.name] = value + aside * np.array([0.0, -1.0, 1.0])
        batch = self._build(columns)
        if batch.reasons[0]:
            told = ", ".join(f"{name}={each:g}" for name, each in values.items())
            raise InputError(f"over: {REASONS[batch.reasons[0]]} at {told}; give other ends")
        check_one_link(batch.network)
        here, below, above = (_point(batch.network, k) for k in range(3))
        with np.errstate(invalid="ignore"):  # columns without a limit hold infinity
            by = jax.tree.map(lambda a, b: np.where(a == b, 0.0, (a - b) / (2 * aside)), above, below)
        if self._observed is None:
            self._observed = observed_of(here)
        return FluidLaw(here, by, self._observed)

    def at(self, **others: float) -> Callable[[float], FluidLaw]:
        """The law as a function of the parameter alone."""
        return lambda value: self(**{**others, self.name: value})


def _point(network: Network, k: int) -> Network:
    """One point of a network, each column (rows, 1)."""
    return jax.tree.map(
        lambda a: np.asarray(a)[..., [k]] if np.ndim(a) == 2 else np.asarray(a, float)[:, None], network
    )


@constructor()
@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class CycleBranch(DatasetResult):
    """A branch of limit cycles, made by `cycle_branch`.

    Parameters
    ----------
    dataset : xarray.Dataset
        Over ``point``, in order along the branch: the parameter (by its name), ``period`` [s], ``queue_bytes.min``,
        ``queue_bytes.max``, ``queue_bytes.mean`` [bytes], ``multiplier`` (the largest modulus of Floquet multipliers
        but that of a shift in time), ``shift_multiplier`` (the modulus of that one, which should be 1),
        ``fairness_multiplier`` (the largest for differences between equal flows), ``stable``, ``fold``. Over ``point``
        and ``phase``: ``queue`` [bytes] and ``rate`` of a flow [bytes/s] in one period. Over ``value``:
        ``equilibrium_queue`` [bytes], NaN where there is none on the RED ramp, and ``equilibrium_stable``.
    name : str
        Of the parameter.
    ends : tuple of str
        Why the branch ends, at its first and last point.
    """

    KEPT: ClassVar[tuple[str, ...]] = ("point", "phase", "value")

    name: str
    ends: tuple[str, str]

    @property
    def folds(self) -> list[float]:
        """Values of the parameter at which a stable and an unstable cycle meet."""
        return [float(v) for v in self.dataset[self.name].values[self.dataset["fold"].values]]

    def __repr__(self) -> str:
        """Name, ends and folds."""
        told = ", ".join(f"{fold:.6g}" for fold in self.folds) or "none"
        first, last = (format_value(self.name, float(self.dataset[self.name][k])) for k in (0, -1))
        return (
            f"<CycleBranch over {self.name}: {len(self.dataset['point'])} cycles, {first} to {last}; folds at {told}>"
        )

    def _rows(self) -> list[Row]:
        data = self.dataset
        return [
            ("folds at", ", ".join(f"{fold:.6g}" for fold in self.folds) or "none"),
            ("cycles", f"{len(data['point'])}, {int(data['stable'].sum())} of them stable"),
            ("period", span("period_s", data["period"])),
            ("queue, max", span("queue_bytes", data["queue_bytes.max"])),
            ("ends", "; ".join(self.ends)),
        ]

    @public()
    def as_dict(self) -> dict[str, Any]:
        """Numbers in SI, with the unit in the key: a list of cycles, and the folds."""
        data = self.dataset
        keys = {self.name: self.name, "period": "period_s"} | {
            name: name for name in ("multiplier", "fairness_multiplier", "stable", "fold")
        }
        cycles: list[dict[str, Any]] = [
            {key: data[name].values[k].item() for name, key in keys.items()}
            | {"queue_bytes": {part: float(data[f"queue_bytes.{part}"][k]) for part in ("min", "max", "mean")}}
            for k in range(len(data["point"]))
        ]
        return {"parameter": self.name, "folds": self.folds, "ends": list(self.ends), "cycles": cycles}

    @public()
    def plot(self, *, title: str | None = None, label: str | None = None) -> Any:
        """Largest and least queue of the cycles and the equilibrium's over the parameter; dashed where unstable.

        Parameters
        ----------
        title : str
            Above the picture.
        label : str
            Of the parameter's axis; its name if not given.

        Returns
        -------
        fluidcc.plotting.style.Picture
        """
        return draw("plot_cycle_branch", self, title=title, label=label)


@public()
def cycle_branch(
    make_scenario: Callable[..., Scenario],
    over: Mapping[str, Any],
    *,
    at: Any = None,
    steps: int = STEPS,
    until: Any = "4s",
) -> CycleBranch:
    """Follow limit cycles over one parameter, also where they are unstable, without runs but the first.

    The fluid's own equations are solved for a periodic solution on a grid, and for how it depends on the parameter.

    Parameters
    ----------
    make_scenario : callable
        ``make_scenario(value) -> Scenario``, called with a traced scalar, as in `sweep`: one link, and one class of
        flows (``multiplicity``) with a constant ``feedback_delay``.
    over : mapping
        One name and its ends, as numbers or text with units: the branch is followed from the least to the largest.
    at : float or str
        Value in between at which a run from the scenario's start ends in a cycle; the last end if not given.
    steps : int
        In a period.
    until : quantity
        Time at which to give up that run [s].

    Returns
    -------
    CycleBranch

    Raises
    ------
    InputError
        If the scenario has several links, classes or lags; if the run does not cycle; or an option makes no sense.

    Examples
    --------
    >>> import fluidcc as fc
    >>> branch = fc.studies.cycle_branch(lambda n: fc.incast(1, multiplicity=n), over={"n": [6, 20]})
    >>> branch.folds  # doctest: +SKIP
    [8.288]
    """
    grid = grid_of(over)
    if len(grid.axes) != 1 or grid.points < 2:
        raise InputError("over: give one name and its two ends, for example over={'n': [6, 20]}")
    (name, values), *_ = grid.axes.items()
    ends, begin = way_of(name, values, at)
    check_options(steps, until)
    laws = Laws(make_scenario, name)
    first = first_orbit(laws, {name: begin}, steps, until)
    with Bar(f"following cycles over {name}", 1, "branch") as bar:
        branch = follow(laws.at(), first, ends, SMALLEST, bar)
    found = np.linspace(*ends, _VALUES)
    equilibria = RootFinder(make_scenario)({name: found})
    stable = (equilibria.root < 0) & equilibria.on_ramp
    queue = np.where((equilibria.reason == 0) & equilibria.on_ramp, equilibria.queue, np.nan)
    data = _dataset(name, branch).assign_coords(value=("value", found, {"long_name": name}))
    data["equilibrium_queue"] = ("value", queue, {"units": "bytes", "long_name": "queue at equilibrium"})
    data["equilibrium_stable"] = ("value", stable, {"long_name": "whether the equilibrium is stable"})
    return CycleBranch(data, name, branch.ends)


def way_of(name: str, values: Array, at: Any) -> tuple[tuple[float, float], float]:
    """The ends of what is followed, and the value to begin at.

    Raises
    ------
    InputError
        If the ends are equal or not finite, or ``at`` cannot be read or is not between them.
    """
    ends = float(values.min()), float(values.max())
    if not (np.isfinite(values).all() and ends[0] < ends[1]):
        raise InputError(f"over {name}: {ends[0]:g} and {ends[1]:g} are no two ends; write for example [6, 20]")
    begin = float(values[-1] if at is None else grid_of({name: [at]}).axes[name][0])
    if not ends[0] <= begin <= ends[1]:
        raise InputError(f"at: {begin:g} is not between the ends, {ends[0]:g} and {ends[1]:g}")
    return ends, begin


def check_options(steps: Any, until: Any) -> None:
    """Refuse steps and times that make no sense.

    Raises
    ------
    InputError
    """
    whole(steps, 10, 1e6, "steps", "; write 500 or more")
    quantity(until, TIME, "until")


def first_orbit(laws: Laws, values: Mapping[str, float], steps: int, until: Any) -> Orbit:
    """The cycle that a run from the scenario's start ends in.

    Raises
    ------
    InputError
        If it does not end in a cycle, or no periodic solution is found near it.
    """
    law = laws(**values)
    told = ", ".join(f"{name}={each:g}" for name, each in values.items())
    states = states_of(law.network, 1)

    def rows(state: Any) -> Array:
        with our_settings():
            return np.asarray(states.rows(state))[:, 0]

    try:
        course, period = last_period(law.network, rows, steps, until)
    except InputError as error:
        raise InputError(
            f"cycle_branch: at {told}: {error}; give another value by at=, or a start from which it oscillates "
            "(fluidcc.studies.from_equilibrium)"
        ) from None
    # An orbit's first state is at the end of the first step.
    guess = Orbit(law, np.roll(course, -1, axis=0), period, values[laws.name])
    others = {name: each for name, each in values.items() if name != laws.name}
    found = solve_orbit(laws.at(**others), guess)
    if found is None:
        raise InputError(
            f"cycle_branch: no periodic solution is found near the run's at {told}; give more steps=, or another "
            "value by at= (a scheme that jumps elsewhere than at Kmax, such as TIMELY, cannot be followed)"
        )
    return found


def _dataset(name: str, branch: Branch) -> xr.Dataset:
    orbits = [point.orbit for point in branch.points]
    law = orbits[0].law
    assert isinstance(law, FluidLaw)
    x = np.stack([orbit.x for orbit in orbits])
    with our_settings():
        flows = np.flatnonzero(np.array(law.states.flow) >= 0)
        states = states_of(law.network, x.shape[1])
        rate = np.stack([np.asarray(states.rates(jnp.asarray(each.T)))[0] for each in x])
    grow = [orbit.multipliers for orbit in orbits]
    largest = np.array([np.abs(each[1:]).max(initial=0.0) for each in grow])
    apart = np.array([np.abs(orbit.multipliers_of(flows)).max(initial=0.0) for orbit in orbits])
    many = np.array([law.flows for law in (orbit.law for orbit in orbits) if isinstance(law, FluidLaw)])
    fold = np.isin(np.arange(len(orbits)), branch.folds)
    queue = x[:, :, 0]
    columns = {
        name: (np.array([orbit.value for orbit in orbits]), None, name),
        "period": (np.array([orbit.period for orbit in orbits]), "s", "period"),
        "queue_bytes.min": (queue.min(axis=1), "bytes", "least queue"),
        "queue_bytes.max": (queue.max(axis=1), "bytes", "largest queue"),
        "queue_bytes.mean": (queue.mean(axis=1), "bytes", "mean queue"),
        "multiplier": (largest, "1", "largest Floquet multiplier but that of a shift in time"),
        "shift_multiplier": (np.array([abs(each[0]) for each in grow]), "1", "multiplier of a shift in time"),
        "fairness_multiplier": (apart, "1", "largest multiplier of differences between equal flows"),
        "stable": ((largest < 1) & ((apart < 1) | (many <= 1)), None, "whether the cycle is stable"),
        "fold": (fold, None, "whether a stable and an unstable cycle meet"),
    }
    variables: dict[str, Any] = {
        key: ("point", values, {"long_name": text} | ({} if unit is None else {"units": unit}))
        for key, (values, unit, text) in columns.items()
    }
    variables["queue"] = (("point", "phase"), queue, {"units": "bytes", "long_name": "queue"})
    variables["rate"] = (("point", "phase"), rate, {"units": "bytes/s", "long_name": "rate of a flow"})
    share = np.arange(1, x.shape[1] + 1) / x.shape[1]
    return xr.Dataset(variables, coords={"phase": ("phase", share, {"long_name": "share of the period"})})
