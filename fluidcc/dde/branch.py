"""The cycles that are born at a Hopf point, followed along its parameter to where they are wanted.

A step continues in the direction of the last one, and then at right angles to it (pseudo-arclength): so a branch is
followed where it turns back in the parameter, as one that begins on the other side may do.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from fluidcc.compiling.settings import our_settings
from fluidcc.dde.equation import Array, Equation
from fluidcc.dde.hopf import Crossing
from fluidcc.dde.linear import systems
from fluidcc.dde.periodic import Direction, Profile, refined, sampled, solved, tail
from fluidcc.errors import InputError

_INTERVALS, _MOST_INTERVALS = 16, 256
_TAIL = 1e-3  # of a profile's polynomials: more asks for twice the intervals
_FIRST = 1e-2  # amplitude of the first cycle, of the state's size
_SMALLER = 8  # times a tenth of it, where that is too far already
_STEPS = 300
_LONGEST, _SHORTEST = 2.0, 1e-3  # a step, of the last one
_BENT = 0.3  # of a step: how far from its end the solution may be
_SHORT = 0.125  # of the last step; a shorter one begins as the last one ended, which may have bent:
_TURNED = 1.0  # of such a step
_AWAY = 30.0  # of the way to go, beyond the value's own size: so far off a branch is given up
_NEAREST = 1e-7  # of the parameter: nearer, a cycle cannot be distinguished from rounding
_ON_AXIS = 1e-6  # of the equation's gains: less, and a root is there


class _Point(NamedTuple):
    profile: Profile
    value: float


def from_hopf(equation: Equation, near: Any) -> tuple[Profile, float]:
    """A cycle of the branch that begins at a Hopf point, at the equation's parameters, and its period.

    Raises
    ------
    InputError
        If it is no Hopf point of this equation, or the branch does not reach the parameters.
    """
    mode = _mode(equation, near)
    branch = _Branch(equation, near)
    if branch.way <= _NEAREST * branch.span:
        raise InputError(f"near: the cycle has no size yet at {near.parameter} = {branch.goal:.10g}; go beyond it")
    found = branch.followed(mode)
    if found is None:
        raise InputError(
            f"near: the branch of cycles from {near.parameter} = {near.value:.8g} does not lead to {branch.goal:.8g}; "
            "it may end before, or lie on the other side: give another value, or past= where a cycle attracts"
        )
    return found, found.period


def _mode(equation: Equation, near: Any) -> Array:
    """Return the mode in which the states oscillate at a Hopf point, complex (n,); check that they do."""
    if not isinstance(near, Crossing) or near.kind != "hopf":
        raise InputError(f"near: {repr(near)[:40]}; give a crossing of kind 'hopf' from crossings(), or a cycle")
    if near.parameter not in equation.parameters or np.shape(near.state) != (len(equation.states),):
        raise InputError(f"near: a crossing of another equation, along {near.parameter}; give one of this")
    there = equation.at({near.parameter: near.value})
    system = systems(there, near.state[None], there.vector[None])[0]
    _, sizes, modes = np.linalg.svd(system.characteristic(1j * near.frequency))
    gains = near.frequency + np.linalg.norm(system.A0) + np.linalg.norm(system.A, axis=(1, 2)).sum()
    with our_settings():
        still = np.abs(np.asarray(there.kernels.still(jnp.asarray(near.state), jnp.asarray(there.vector)))).max()
    least = max(float(np.abs(near.state).max()), 1.0)
    if not (sizes[-1] <= _ON_AXIS * gains and still <= _ON_AXIS * gains * least):
        raise InputError(
            f"near: no root of this equation is on the axis at {near.parameter} = {near.value:.6g}; the other "
            "parameters must be those that crossings() had, give a crossing of this equation"
        )
    mode = modes[-1].conj()
    moved = np.abs(mode) > 1e-9
    sized = moved & (near.state != 0)
    size = (np.abs(near.state[sized]) / np.abs(mode[sized])).min() if sized.any() else 1 / np.abs(mode).max()
    return mode * size


class _Branch:
    """Steps along a branch, each from the last two points."""

    def __init__(self, equation: Equation, near: Crossing) -> None:
        self.equation, self.near = equation, near
        self.column = list(equation.parameters).index(near.parameter)
        self.goal = equation.parameters[near.parameter]
        self.way, self.span = abs(self.goal - near.value), max(abs(self.goal), abs(near.value))
        self.far = self.span + _AWAY * self.way
        self.count = _INTERVALS

    def followed(self, mode: Array) -> Profile | None:
        """The branch's cycle at the parameters wanted; None if it does not get there."""
        old = _Point(self._constant(), self.near.value)
        for k in range(_SMALLER):
            new = self._first(old, mode * (_FIRST * 0.1**k))
            if new is not None and not self._beyond(old, new):
                break
            found = None if new is None else self._between(old, new)
            if found is not None:
                return found
        else:
            return None
        share = 1.0
        for _ in range(_STEPS):
            step = self._next(old, new, share)
            if step is None:
                share /= 2
            elif self._beyond(new, step[0]):
                found = self._between(new, step[0])
                if found is not None:
                    return found
                share /= 2
            else:
                old, new, share = new, step[0], min(1.5, _LONGEST) if step[1] < _BENT / 4 else 1.0
            if share < _SHORTEST or abs(new.value - self.near.value) > self.far:
                return None
        return None

    def _constant(self) -> Profile:
        mesh = np.linspace(0.0, 1.0, _INTERVALS + 1)
        return sampled(lambda theta: np.tile(self.near.state, (len(theta), 1)), mesh, self.near.period)

    def _first(self, old: _Point, mode: Array) -> _Point | None:
        """The small cycle, as far along the mode as is said."""

        def moved(theta: Array) -> Array:
            return np.real(np.exp(2j * np.pi * theta)[:, None] * mode)

        mesh = old.profile.mesh
        guess = sampled(lambda theta: self.near.state + moved(theta), mesh, self.near.period)
        return self._solved(guess, old.value, Direction(guess.x - self.near.state, 0.0, 0.0, self.column, self.span))

    def _next(self, old: _Point, new: _Point, share: float) -> tuple[_Point, float] | None:
        """Find the point ``share`` of the last step further, and how far off straight on it is, of the step."""
        if tail(new.profile).max() > _TAIL:
            self.count = min(2 * self.count, _MOST_INTERVALS)
        mesh = refined(new.profile, self.count)
        begin, last = (sampled(each.profile, mesh, each.profile.period) for each in (new, old))
        x, period, value = begin.x - last.x, begin.period - last.period, new.value - old.value
        guess = Profile(mesh, _along(last.x, begin.x, 1 + share), begin.period + share * period)
        if not guess.period > 0:
            return None
        found = self._solved(guess, new.value + share * value, Direction(x, period, value, self.column, self.span))
        if found is None:
            return None
        size = begin.size

        def length(x: Array, period: float, value: float) -> float:
            return float(np.sqrt(((x / size) ** 2).mean() + (period / begin.period) ** 2 + (value / self.span) ** 2))

        away = length(
            found.profile.x - guess.x, found.profile.period - guess.period, found.value - new.value - share * value
        ) / length(share * x, share * period, share * value)
        return None if away > (_TURNED if share <= _SHORT else _BENT) else (found, away)

    def _solved(self, guess: Profile, value: float, along: Direction | None) -> _Point | None:
        vector = self.equation.vector
        vector[self.column] = value
        found = solved(self.equation, vector, guess, along)
        if found is None or not found[0].moves:
            return None
        value = float(found[1][self.column])
        return None if value < 0 and self.near.parameter in self.equation.lags else _Point(found[0], value)

    def _beyond(self, old: _Point, new: _Point) -> bool:
        return (old.value - self.goal) * (new.value - self.goal) <= 0

    def _between(self, old: _Point, new: _Point) -> Profile | None:
        """The cycle at the value wanted, which lies between two points; near the first one, amplitude is a root."""
        share = (self.goal - old.value) / (new.value - old.value)
        moved = share if old.profile.moves else np.sqrt(share)
        if moved < _FIRST:
            return None
        mesh = refined(new.profile, self.count)
        begin, end = (sampled(each.profile, mesh, each.profile.period) for each in (old, new))
        period = begin.period + share * (end.period - begin.period)
        x = _along(begin.x, end.x, moved)
        found = self._solved(Profile(mesh, x, period), self.goal, None)
        if found is None:
            return None
        off = np.abs(found.profile.x - x) / found.profile.size
        return found.profile if off.max() < _BENT and abs(found.profile.period / period - 1) < _BENT else None


def _along(first: Array, second: Array, share: float) -> Array:
    """States (M, n) so far from the first to the second; in logarithms those that never change sign."""
    signs = np.sign(np.concatenate([first, second]))
    constant = (signs != 0).all(axis=0) & (signs == signs[0]).all(axis=0)
    ratio = np.where(constant, second, 1.0) / np.where(constant, first, 1.0)
    return np.where(constant, first * ratio**share, first + share * (second - first))
