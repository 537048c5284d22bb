"""A fluid network about its equilibrium, for all points of a batch: where it settles, and its Jacobians there."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from fluidcc.compiling.functions import per_shape
from fluidcc.compiling.settings import our_settings
from fluidcc.dde.delay_system import Array, DelaySystem
from fluidcc.engines.fluid.classes import system_of
from fluidcc.engines.fluid.network import Network, with_points
from fluidcc.theory.control.newton import jacobian, moved, solve_equilibrium
from fluidcc.theory.control.states import STARTS, Start, States, extended

STILL = 1e-9  # of itself that a state may move in the shortest delay, and count as at equilibrium: Newton leaves 1e-16
_SAME_DELAY = 1e-9  # relative: rounding apart


class Jacobians(NamedTuple):
    """Equilibria and derivatives there, points first. JAX's arrays while traced, then NumPy's."""

    x: Any  # (points, rows)
    moved: Any  # (points,) as in `newton.FixedPoint`
    held: Any  # (points, rows)
    present: Any  # (points, rows, rows) of the right-hand side by the present state
    past: Any  # (points, rows, delayed inputs) of the right-hand side by the delayed inputs
    observed: Any  # (points, delayed inputs, rows) of the delayed inputs by the state
    delay: Any  # (points, delayed inputs) [s]
    rates: Any  # (points, flows, rows) of rates by the state


class Modes(NamedTuple):
    """Delay equations of some points whose moving states are the same."""

    points: Array  # (count,) which
    rows: tuple[int, ...]
    aggregate: DelaySystem
    fairness: tuple[tuple[int, DelaySystem], ...]  # by flow class


@dataclasses.dataclass(frozen=True)
class Local:
    """A network about its equilibrium.

    Parameters
    ----------
    states : States
        Names of the rows.
    slopes : Jacobians
    """

    states: States
    slopes: Jacobians

    @property
    def exists(self) -> Array:
        """True where an equilibrium was found, (points,)."""
        return self.slopes.moved < STILL

    @cached_property
    def moving(self) -> Array:
        """States (points, rows) that take part: a link without a queue stays so, and a flow that observes nothing too.

        What nobody listens to is left out: it follows, and decides nothing.
        """
        s, flow = self.slopes, np.array(self.states.flow)
        free = ~s.held & ((flow >= 0) | (s.x > 0))
        hears = (s.past != 0).any(axis=2) & free
        for one in np.unique(flow[flow >= 0]):
            free[:, flow == one] &= hears[:, flow == one].any(axis=1, keepdims=True)
        # Queues and what rates are made of, and all that these follow.
        kept = free & ((flow < 0) | (s.rates != 0).any(axis=1))
        acts = ((s.present != 0) | (np.abs(s.past) @ np.abs(s.observed) > 0)) & free[:, None, :]
        while True:
            more = kept | (acts & kept[:, :, None]).any(axis=1)
            if (more == kept).all():
                return kept
            kept = more

    def modes(self) -> list[Modes]:
        """Delay equations of all points that have an equilibrium and moving states, those of equal states together."""
        usable = self.exists & self.moving.any(axis=1)
        patterns, which = np.unique(self.moving[usable], axis=0, return_inverse=True)
        found = []
        for number, pattern in enumerate(patterns):
            points = np.flatnonzero(usable)[np.ravel(which) == number]
            rows = np.flatnonzero(pattern)
            found.append(Modes(points, tuple(rows.tolist()), self._part(points, rows), self._fairness(points, rows)))
        return found

    def _fairness(self, points: Array, rows: Array) -> tuple[tuple[int, DelaySystem], ...]:
        """Return the dynamics of a difference between two flows, for each class with several flows."""
        flow = np.array(self.states.flow)[rows]
        net = self.states.system.network
        many = np.broadcast_to(np.asarray(net.multiplicity), (len(net.flows), len(self.exists)))
        found = []
        for one in np.unique(flow[flow >= 0]):
            if (many[one][points] > 1).any():
                found.append((int(one), self._part(points, rows[flow == one], alone=True)))
        return tuple(found)

    def _part(self, points: Array, rows: Array, alone: bool = False) -> DelaySystem:
        """Some states of some points, the others still; for differences between equal flows without their sums."""
        s = self.slopes
        delayed_inputs = [
            k
            for k, delayed_input in enumerate(self.states.delayed_inputs.delayed_inputs)
            if not (alone and delayed_input.summed)
        ]
        parts: list[tuple[Array, Array]] = []
        for k in delayed_inputs:
            by_delayed_input, by_state = s.past[points][:, :, k][:, rows], s.observed[points][:, k][:, rows]
            matrix = by_delayed_input[:, :, None] * by_state[:, None, :]
            if not matrix.any():
                continue
            delay = s.delay[points, k]
            same = next((i for i, (d, _) in enumerate(parts) if np.allclose(d, delay, rtol=_SAME_DELAY, atol=0)), None)
            if same is None:
                parts.append((delay, matrix))
            else:
                parts[same] = parts[same][0], parts[same][1] + matrix
        parts.sort(key=lambda part: float(part[0][0]))
        n, count = len(rows), len(points)
        A = np.array([matrix for _, matrix in parts]).reshape(-1, count, n, n).swapaxes(0, 1)
        tau = np.array([delay for delay, _ in parts]).reshape(-1, count).T
        return DelaySystem(s.present[points][:, rows[:, None], rows], A, tau)


def _states(network: Network, points: int) -> States:
    return States(system_of(network, points, jnp.asarray(np.inf)))


@per_shape(rooms=("fluid", "equilibrium"))
def _moved(network: Network, x: Any, *, points: int) -> Any:
    return moved(_states(extended(network), points), x)


@per_shape(rooms=("fluid", "equilibrium"))
def _jacobians(network: Network, start: Start, x: Any, *, points: int) -> Jacobians:
    """Solve for the equilibrium from ``x``, or from ``start`` where it is NaN; return the Jacobians there."""
    states = _states(extended(network), points)
    x, moved, held = solve_equilibrium(states, jnp.where(jnp.isnan(x), states.first(start), x))
    values, rows = states.observed(x), len(x)
    both = jnp.concatenate([x, values])
    slopes = jacobian(lambda both: states.slope(both[:rows], both[rows:]), both)
    heard = jacobian(lambda x: jnp.concatenate([states.observed(x), states.rates(x)]), x)
    found = Jacobians(
        x, moved, held, slopes[:, :rows], slopes[:, rows:], heard[: len(values)], states.delays(x), heard[len(values) :]
    )
    return jax.tree.map(lambda a: jnp.moveaxis(a, -1, 0), found)


def local(network: Network, points: int = 1) -> Local:
    """Search for the equilibrium of every point, from `STARTS` in turn until all have one, and differentiate there.

    Parameters
    ----------
    network : Network
        Of plain numbers; equal flows in one class.
    points : int
        Of the columns that have points.

    Raises
    ------
    NoEquilibriumError
        If a scheme changes its state in jumps.
    """
    with our_settings():
        network = _spread(network, points)
        states = _states(network, points)
        best = _from(network, STARTS[0], points, states)
        for start in STARTS[1:]:
            lost = best.moved >= STILL
            if not lost.any():
                break
            again = _from(network, start, points, states)
            best = jax.tree.map(lambda old, new, at=lost: np.where(_like(at, old), new, old), best, again)
        return Local(states, best)


def multi_start(network: Network) -> list[Local]:
    """Search from each of `STARTS` for a single point, and return where each search ends, at equilibrium or not."""
    with our_settings():
        network = _spread(network, 1)
        states = _states(network, 1)
        ends = [_from(network, start, 1, states) for start in STARTS]
    return [Local(states, end) for end in ends]


def near(network: Network, given: Mapping[str, float]) -> Local:
    """Search from a state of a single point; ``given`` has rows by name, what it lacks is of the first start."""
    with our_settings():
        network = _spread(network, 1)
        states = _states(network, 1)
        return Local(states, _from(network, STARTS[0], 1, states, given))


def movement(network: Network, given: Mapping[str, float]) -> float | None:
    """Return the relative move of a point's state in the shortest delay; None if ``given`` lacks a row."""
    with our_settings():
        network = _spread(network, 1)
        rows = _rows(_states(network, 1), given)
        if np.isnan(rows).any():
            return None
        found = float(np.asarray(_moved(network, jnp.asarray(rows)[:, None], points=1))[0])
        return found if np.isfinite(found) else np.inf


def _rows(states: States, given: Mapping[str, float]) -> Array:
    return np.array([given.get(name, np.nan) for name in states.names])


def _from(
    network: Network, start: Start, points: int, states: States, given: Mapping[str, float] | None = None
) -> Jacobians:
    rows = _rows(states, given or {})  # refuses schemes that jump, before anything is compiled
    x = jnp.broadcast_to(jnp.asarray(rows)[:, None], (len(rows), points))
    found = jax.tree.map(np.asarray, _jacobians(network, Start(*map(jnp.float64, start)), x, points=points))
    return found._replace(moved=np.where(np.isfinite(found.moved), found.moved, np.inf))


def _spread(network: Network, points: int) -> Network:
    """Broadcast every column of the network to all points."""
    whole = with_points(network, np.dtype("float64"))
    return jax.tree.map(lambda a: jnp.asarray(np.broadcast_to(a, (a.shape[0], points))), whole)


def _like(mask: Array, values: Any) -> Array:
    return mask.reshape(mask.shape + (1,) * (np.ndim(values) - 1))
