"""Equilibria of a fluid network, by Newton's method on its own right-hand side, for all points of a batch at once.

Far from an equilibrium Newton's method leads anywhere. Pseudo-transient continuation (Kelley and Keyes, SIAM J. Numer.
Anal. 35, 1998) takes implicit Euler steps of x' = F(x), F the right-hand side with every lag 0, along which a network
without delays would settle; they lengthen as F falls, and an infinitely long one is Newton's. Limits hold by
projection: a state that is pushed against one stays there, and is left out of the step.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from fluidcc.theory.control.states import States

_STEPS = 150
_PUSH = 1e-7  # of a state, to see whether a limit holds it
_LEAST = 1e-6  # of a state's first value: what counts as its size if it is less; of 1 for states without units
_LARGEST_MOVE = 1.0  # of a state's size, in a step
_LEAST_MOVE = 0.3  # of the fastest state's size
_GROWTH = 3.0  # of the step, at most
_INSTANT = 1e-6  # s: what a shorter delay counts as, or nothing would move in it
_ASIDE = 1e-6  # of the states: where it is compared with its linear part
_BENT = 0.1  # of that: a larger difference is a jump
_SETTLED = 1e-9  # of itself that a state may move in the shortest delay, before the last steps
_LAST_STEPS = 4  # of Newton, which halve the digits that are missing


class FixedPoint(NamedTuple):
    """Equilibria of all points."""

    x: Array  # (rows, points)
    moved: Array  # (points,) of itself that the state which moves most does so in the shortest delay; or, of a link's
    # capacity, by how much its queue grows, if that is more; inf where the right-hand side jumps
    held: Array  # (rows, points) whether a limit holds a state


class _Seen(NamedTuple):
    """A state, and what is known of it: each evaluation of the right-hand side takes long to compile."""

    x: Array  # (rows, points)
    slope: Array  # (rows, points) [1/s]
    held: Array  # (rows, points) whether a limit holds a state
    speed: Array  # (points,) of itself that the fastest free state moves [1/s]


class _Step(NamedTuple):
    number: Array
    seen: _Seen
    length: Array  # (points,) [s]
    last: Array  # of the last steps, how many are done


def jacobian(function: Callable[[Array], Array], at: Array) -> Array:
    """Jacobians (outputs, inputs, points) of a function of (inputs, points) that keeps points apart."""
    ones = jnp.broadcast_to(jnp.eye(at.shape[0])[:, :, None], (at.shape[0], *at.shape))
    return jax.vmap(lambda one: jax.jvp(function, (at,), (one,))[1], out_axes=1)(ones)


@dataclasses.dataclass(frozen=True)
class _RightHandSide:
    """F with every lag 0, and how far from an equilibrium a state is; sizes are judged by those of some rows."""

    states: States
    least: Array  # (rows, points) what counts as a state's size if it is less
    shortest: Array  # (points,) shortest delay [s]

    @staticmethod
    def about(states: States, x: Array) -> _RightHandSide:
        network, delays = states.system.network, states.delays(x)
        least = jnp.where(x > 1.0, _LEAST * x, _LEAST).at[: network.queues].set(jnp.max(network.packet))
        shortest = jnp.min(jnp.where(delays > 0, delays, jnp.max(delays, axis=0)), axis=0)
        return _RightHandSide(states, least, jnp.maximum(shortest, _INSTANT))

    def __call__(self, x: Array) -> Array:
        return self.states.slope(x, self.states.observed(x))

    def size(self, x: Array) -> Array:
        return jnp.maximum(jnp.abs(x), self.least)

    def look(self, x: Array) -> _Seen:
        slope = self(x)
        push = jnp.sign(slope) * _PUSH * self.size(x)
        held = jnp.abs(self.states.projected(x + push) - x) < 0.5 * jnp.abs(push)
        return _Seen(x, slope, held, jnp.max(jnp.where(held, 0.0, jnp.abs(slope) / self.size(x)), axis=0))

    def judged(self, seen: _Seen) -> FixedPoint:
        """Return the end of a search, with how far it still moves."""
        x, slope, stays, speed = seen

        def largest(change: Array) -> Array:
            return jnp.max(jnp.where(stays, 0.0, jnp.abs(change)) / self.size(x), axis=-2)

        # A right-hand side that jumps between signs may come near 0 on one side: that is no equilibrium.
        aside = jnp.where(stays, 0.0, _ASIDE * x)
        linear, sides = jax.jvp(self, (x,), (aside,))[1], jnp.array([-1.0, 1.0])[:, None, None]
        off = largest(jax.vmap(self)(x + sides * aside) - slope - sides * linear)
        smooth = (off <= _BENT * largest(linear)).all(axis=0)
        # The relative growth of a queue that grows without limit falls towards 0.
        network = self.states.system.network
        grows = jnp.max(jnp.where(stays, 0.0, jnp.abs(slope))[: network.queues] / network.capacity, axis=0)
        return FixedPoint(x, jnp.where(smooth, jnp.maximum(speed * self.shortest, grows), jnp.inf), stays)


def moved(states: States, x: Array) -> Array:
    """Compute how far a network moves that is at some rows, as `FixedPoint.moved`: only rounding at an equilibrium.

    Parameters
    ----------
    states : States
    x : Array, shape (rows, points)

    Returns
    -------
    Array, shape (points,)
        Traceable.
    """
    F = _RightHandSide.about(states, x)
    return F.judged(F.look(x)).moved


def solve_equilibrium(states: States, x: Array) -> FixedPoint:
    """Search for the equilibrium at which a network settles from some rows.

    Parameters
    ----------
    states : States
    x : Array, shape (rows, points)

    Returns
    -------
    FixedPoint
        A point has an equilibrium if ``moved`` is small; else the search ended somewhere. Traceable.
    """
    F = _RightHandSide.about(states, x)

    def move(at: _Seen, length: Any) -> Array:
        x, s, free = at.x, F.size(at.x), ~at.held
        J = jacobian(F, x) * s / s[:, None]
        J = jnp.where(free[:, None] & free[None], J, 0.0)
        eye = jnp.eye(len(x))[:, :, None]
        matrix = eye * jnp.where(free, 1.0 / length, 1.0) - J
        right = jnp.where(free, at.slope / s, 0.0)
        step = jnp.linalg.solve(jnp.moveaxis(matrix, -1, 0), right.T[..., None])[..., 0].T
        share = jnp.minimum(1.0, _LARGEST_MOVE / jnp.max(jnp.abs(step), axis=0))
        new = states.projected(x + share * step * s)
        return jnp.where(jnp.isfinite(new).all(axis=0), new, x)

    def searches(at: _Step) -> Array:
        return (at.number < _STEPS) & jnp.any(at.seen.speed * F.shortest > _SETTLED) & (at.last == 0)

    def once(at: _Step) -> _Step:
        # The last steps run in the same loop, as each copy of a step takes long to compile.
        last, before = ~searches(at), at.seen.speed
        new = F.look(move(at.seen, jnp.where(last, 1e6, at.length)))
        after = new.speed
        worse, done = ~jnp.isfinite(after), before * F.shortest <= _SETTLED
        falls = after < before
        longer = at.length * jnp.where(falls, jnp.minimum(before / jnp.maximum(after, 1e-300), _GROWTH), 0.5)
        # The step moves the fastest state far enough, so that a long way does not take too many steps.
        length = jnp.where(worse, 0.1 * at.length, jnp.maximum(longer, _LEAST_MOVE / jnp.maximum(after, 1e-300)))
        keep = jnp.where(last, ~falls, worse | done)
        kept = jax.tree.map(lambda old, new: jnp.where(keep, old, new), at.seen, new)
        return _Step(at.number + 1, kept, jnp.where(done, at.length, length), at.last + last)

    begun = F.look(states.projected(x))
    at = _Step(jnp.int32(0), begun, _LEAST_MOVE / jnp.maximum(begun.speed, 1e-300), jnp.int32(0))
    return F.judged(lax.while_loop(lambda at: at.last < _LAST_STEPS, once, at).seen)
