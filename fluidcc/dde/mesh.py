"""Periodic functions as piecewise polynomials, on intervals that are short where the function moves fast.

Time over the period runs from 0 to 1. An interval's polynomial shares its values at both ends with its neighbours.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.polynomial import legendre

from fluidcc.dde.equation import Array

DEGREE = 8
STILL = 1e-9  # of a state's modulus: less is rounding
_NOISE = 1e-13
_FLAT = 1e-7  # of a state's largest modulus: less moves no more than rounding does
_LOCAL = 1e-200  # of a state's largest modulus: not looked at closer
_LOG = 12.0  # change of a logarithm over the period, from which on it counts as much as the rest
_FINE = 20001  # places at which a profile is looked at to choose intervals

_NODES = (1 - np.cos(np.pi * np.arange(DEGREE + 1) / DEGREE)) / 2  # Chebyshev's, both ends among them
_TO_LEGENDRE = np.linalg.inv(legendre.legvander(2 * _NODES - 1, DEGREE))
_DERIVATIVE = 2 * np.array([np.append(legendre.legder(row), 0.0) for row in np.eye(DEGREE + 1)])

Course = Callable[[Array], Array]  # states (count, n) at shares of the period (count,)


class Places(NamedTuple):
    """Weights that interpolate from values at the nodes to other places: (count, DEGREE + 1) each."""

    nodes: Array
    back: Array  # periods before the one that begins at 0
    weights: Array
    slopes: Array


@dataclasses.dataclass(frozen=True)
class Profile:
    """One period of a solution.

    Parameters
    ----------
    mesh : ndarray, shape (L + 1,)
        Ends of the intervals, from 0 to 1.
    x : ndarray, shape (L * DEGREE, n)
        States at the nodes, but that at 0; the last is at 1.
    period : float
    """

    mesh: Array
    x: Array
    period: float

    def __call__(self, theta: Array) -> Array:
        """States (count, n) at shares of the period."""
        return values(places(self.mesh, theta), self.x)

    def slope(self, theta: Array) -> Array:
        """Derivatives by share of the period."""
        return moves(places(self.mesh, theta), self.x)

    @property
    def size(self) -> Array:
        """Peak to peak of each state; the modulus of one that stands still."""
        return _size(self.x)

    @property
    def moves(self) -> bool:
        """Check whether the profile is no equilibrium."""
        return bool((np.ptp(self.x, axis=0) > _FLAT * np.maximum(np.abs(self.x).max(axis=0), 1e-300)).any())


def places(mesh: Array, theta: Array) -> Places:
    """Compute the `Places` of shares of the period (count,), any numbers."""
    count = len(mesh) - 1
    turns = np.floor(theta)
    share = theta - turns
    interval = np.clip(np.searchsorted(mesh, share, "right") - 1, 0, count - 1)
    width = mesh[interval + 1] - mesh[interval]
    basis = legendre.legvander(2 * (share - mesh[interval]) / width - 1, DEGREE)
    number = interval[:, None] * DEGREE + np.arange(DEGREE + 1) - 1
    nodes = number % (count * DEGREE)
    back = -(number // (count * DEGREE)) - turns[:, None].astype(int)
    slopes = basis @ _DERIVATIVE.T @ _TO_LEGENDRE / width[:, None]
    return Places(nodes, back, basis @ _TO_LEGENDRE, slopes)


def values(where: Places, x: Array) -> Array:
    """States (count, n) from those at the nodes."""
    return np.einsum("ji,jia->ja", where.weights, x[where.nodes])


def moves(where: Places, x: Array) -> Array:
    """Derivatives (count, n); what all nodes share is left out, so that it causes no rounding."""
    at = x[where.nodes]
    return np.einsum("ji,jia->ja", where.slopes, at - at[:, :1])


def everywhere(mesh: Array, count: int) -> Array:
    """Shares of the period, some spread evenly and 16 in each interval."""
    inner = mesh[:-1, None] + np.diff(mesh)[:, None] * np.arange(2 * DEGREE) / (2 * DEGREE)
    return np.unique(np.concatenate([np.linspace(0.0, 1.0, count), inner.ravel()]))


def _size(x: Array) -> Array:
    """Peak to peak of states (count, n); the modulus of one that stands still."""
    ptp, modulus = np.ptp(x, axis=0), np.abs(x).max(axis=0)
    return np.where(ptp > STILL * modulus, ptp, np.maximum(modulus, 1e-300))


def local(x: Array) -> Array:
    """Return the scale of a state's changes, (count, n): itself if it never changes sign, else its peak to peak."""
    least = np.maximum(np.abs(x), _LOCAL * np.abs(x).max(axis=0))
    return np.where(x.min(axis=0) * x.max(axis=0) > 0, least, _size(x))


def tail(profile: Profile) -> Array:
    """Last coefficients of each interval's polynomials (L,), of what changes are measured by there: the largest."""
    theta = (profile.mesh[:-1, None] + np.diff(profile.mesh)[:, None] * _NODES).ravel()
    x = profile(theta)
    each = x.reshape(-1, DEGREE + 1, x.shape[1])
    last = np.abs(np.einsum("ki,jia->jka", _TO_LEGENDRE[-2:], each)).max(axis=1)
    return (last / local(x).reshape(each.shape).max(axis=1)).max(axis=1)


def refined(profile: Profile, count: int) -> Array:
    """Ends of intervals (count + 1,) that share out what a profile's own intervals leave."""
    density = (tail(profile) + _NOISE) ** (1 / (DEGREE + 1)) / np.diff(profile.mesh)
    smooth = np.maximum(density, (np.roll(density, 1) + np.roll(density, -1)) / 2)
    return _shared(smooth * np.diff(profile.mesh), profile.mesh, count)


def _shared(parts: Array, ends: Array, count: int) -> Array:
    """Ends of count intervals that have the same share of parts, which lie between ends."""
    reached = np.append(0.0, np.cumsum(parts)) / parts.sum()
    return np.interp(np.linspace(0.0, 1.0, count + 1), reached, ends)


def mesh_for(course: Course, count: int) -> Array:
    """Ends of intervals (count + 1,) that share out a solution's slope, curvature, and growth if of one sign."""
    theta = np.linspace(0.0, 1.0, _FINE)
    x = course(theta)
    slope = np.gradient(x / _size(x), theta, axis=0)
    bend = np.sqrt(np.linalg.norm(np.gradient(slope, theta, axis=0), axis=1))
    speed = np.linalg.norm(slope, axis=1)
    density = 0.5 + speed / max(speed.mean(), 1e-300) + bend / max(bend.mean(), 1e-300)
    for state in x.T:
        if state.min() * state.max() > 0:
            growth = np.abs(np.gradient(np.log(np.abs(state)), theta))
            density = density + 3 * growth / max(growth.mean(), _LOG)
    return _shared((density[1:] + density[:-1]) / 2 + 0.05 * density.mean(), theta, count)


def sampled(course: Course, mesh: Array, period: float) -> Profile:
    """A profile through a course."""
    theta = (mesh[:-1, None] + np.diff(mesh)[:, None] * _NODES[1:]).ravel()
    return Profile(mesh, course(theta), period)


def apart(profile: Profile, other: Course) -> float:
    """Largest difference to another course, of each state's peak to peak, with both in step."""
    theta = everywhere(profile.mesh, 2001)
    weight, shown, shift = profile.size, other(theta), 0.0
    for _ in range(3):
        slope, miss = profile.slope(theta + shift) / weight, (shown - profile(theta + shift)) / weight
        shift += float(np.clip((slope * miss).sum() / max((slope**2).sum(), 1e-300), -0.02, 0.02))
    return float((np.abs(shown - profile(theta + shift)) / weight).max())
