"""Equilibria of an equation: Newton's method, from many starts or along parameters; every state in its own units.

The slope's rows and columns are scaled until the largest of each is 1 (Ruiz, RAL-TR-2001-034), so that neither a large
nor a small state hides another.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from scipy.stats import qmc

from fluidcc.compiling.settings import our_settings
from fluidcc.dde.checks import shown, state_of, whole
from fluidcc.dde.equation import Array, Equation, Kernels, check_autonomous, check_equation
from fluidcc.errors import InputError
from fluidcc.surface import public, refuse_unknown

_AT_ONCE = 128  # one size, compiled once
_STEPS = 60
_HALVINGS = 12  # of a step that makes things worse
_NEAR = 1e-10  # of a Newton step, relative to each state: nearer than that it has converged
_ROUNDING = 8 * float(np.finfo(float).eps)  # relative, of what is summed up to a derivative
_SOLVES = 1e-6  # of the residual: more is left where a step does not lead to an equilibrium
_OTHERS = 1e-4  # of other states, in units that make them comparable
_RANK = 1e-12  # of the scaled slope's largest singular value: what is below does not steer
_SCALINGS = 8
_HELPS = 0.3  # of the residual: a step leaves less, unless rounding is all of it
_SHORT = 1e-12  # of what a state began with: a step that rounding may be all of
_HALF = 0.5  # change of the slope over a step, relative
_FIRST, _LEAST = 0.125, 2.0**-20  # steps on the way from one set of parameters to another, of its length
_ABRUPT = 2.0**-17  # a step within which the slope may change as it likes: branches that cross, kinks
_ATTEMPTS = 10_000
_BACK = 1e-6  # relative: how near to where it came from the way back must lead
_MOST = 2**20  # starts
_SAME = 1e-7  # relative to each state: nearer than that two are one
_STARTS = (0.1, -0.1, 1.0, -1.0, 10.0, -10.0, 100.0, -100.0, 0.0)  # for all states
_APART = 24  # further starts whose states differ, in sign and from 0.1 to 100
_CONTINUUM = "equilibria lie next to each other (a symmetry, or a sum that the equation keeps)"


class Found(NamedTuple):
    """Result of Newton's method.

    Parameters
    ----------
    x : ndarray
        (batch, n)
    good : ndarray of bool
        (batch,): whether it converged.
    blur : ndarray
        (batch, n): how far rounding alone moves each state.
    singular : ndarray of bool
        (batch,): whether other equilibria may be next to it: the slope does not determine it.
    """

    x: Array
    good: Array
    blur: Array
    singular: Array


def newton(equation: Equation, x: Array, vectors: Array) -> Found:
    """Equilibria (batch, n) from starts, for parameters (batch, m)."""
    kernels = equation.kernels
    solve = kernels.once("newton", lambda: jax.jit(jax.vmap(lambda *given: _from(kernels, *given))))
    return Found(*_batched(solve, x, vectors))


def _from(kernels: Kernels, begin: Any, vector: Any) -> tuple[Any, Any, Any, Any]:
    """The parts of `Found`, and 0 where that is what it is but for rounding."""
    x, *rest = _newton(kernels, begin, vector, jnp.abs(begin))
    return _with_zeros(kernels, x, vector, _scale(begin, jnp.ones_like(x))), *rest


def _with_zeros(kernels: Kernels, x: Any, vector: Any, scale: Any) -> Any:
    """An equilibrium with 0 where it is that, and something else by rounding alone."""
    zero = jnp.where(jnp.abs(x) <= _SHORT * scale, 0.0, x)
    better = (jnp.abs(kernels.still(zero, vector)) <= jnp.abs(kernels.still(x, vector))).all()
    return jnp.where(better, zero, x)


def followed(equation: Equation, x: Array, vectors: Array) -> tuple[Array, Array, Array]:
    """The equilibrium (n,) of the equation's own parameters, followed to others (batch, m) on straight ways.

    Each step begins where the tangent leads. It counts if the slope is much the same there (Kantorovich), and if
    Newton's method leads from its end back to where it came from. Else the step is halved. One that has others next to
    it all along (`Found.singular`) counts while it stays where it is: which of them it would be elsewhere is unknown.

    Returns
    -------
    x, good, loose : ndarray
        (batch, n); whether it was found, (batch,); whether it was not because others lie next to it.
    """
    kernels = equation.kernels
    solve = kernels.once("followed", lambda: jax.jit(jax.vmap(lambda *given: _followed(kernels, *given))))
    own = np.tile(equation.vector, (len(vectors), 1))
    found, good, loose = _batched(solve, np.tile(x, (len(vectors), 1)), vectors, own)
    return found, good, loose


class _Way(NamedTuple):
    """Progress along the way."""

    attempts: Any
    share: Any  # of the way
    step: Any
    x: Any
    units: Any  # of states, where the way begins
    singular: Any  # whether others lie next to it there
    scale: Any  # the largest |x| so far
    loose: Any


def _followed(kernels: Kernels, x: Any, end: Any, begin: Any) -> tuple[Any, Any, Any]:
    direction = end - begin

    def attempt(now: _Way) -> _Way:
        share = jnp.minimum(now.share + now.step, 1.0)
        step = share - now.share
        before, after = begin + now.share * direction, begin + share * direction
        # Here alone, in the loop, for the first step too: each slope in the program takes long to compile.
        at, begins = _slope(kernels, now.x, before), now.attempts == 0
        now = now._replace(
            units=jnp.where(begins, at.units, now.units),
            singular=jnp.where(begins, at.singular, now.singular),
            scale=jnp.where(begins, _scale(x, at.units), now.scale),
        )
        tangent = -at.inverse @ (jax.jacfwd(lambda v: kernels.still(now.x, v))(before) @ direction)
        ahead = now.x + step * tangent
        scale = jnp.maximum(now.scale, jnp.abs(ahead))

        slope_there = jax.jacfwd(lambda x: kernels.still(x, after))(ahead)
        changes = jnp.abs(at.inverse @ (slope_there - at.by_x) * now.units / now.units[:, None])
        steady = changes.sum(axis=-1).max() <= _HALF

        def there_and_back(x: Any, vector: Any) -> Any:
            found = _newton(kernels, x, vector, scale)
            return found[0], found

        _, (ends, found, blurs, singulars) = lax.scan(there_and_back, ahead, jnp.stack([after, before]))
        (new, back), blur, singular = ends, blurs[0], singulars[0]
        good = found.all() & _nearby(back, now.x, _BACK, blur + _SHORT * scale) & (steady | (step <= _ABRUPT))
        moved = good & now.singular & singular & ~_nearby(new, now.x, _NEAR, blur)
        good = good & ~moved
        return _Way(
            now.attempts + 1,
            jnp.where(good, share, now.share),
            jnp.where(good, 2 * step, jnp.where(moved, 0.0, step / 2)),
            jnp.where(good, new, now.x),
            now.units,
            now.singular,
            jnp.where(good, jnp.maximum(now.scale, jnp.abs(new)), now.scale),
            now.loose | moved,
        )

    def goes_on(now: _Way) -> Any:
        return (now.share < 1.0) & (now.step >= _LEAST) & (now.attempts < _ATTEMPTS)

    still = jnp.zeros_like(x)
    way = _Way(
        0,
        0.0,
        _FIRST,
        x,
        still,
        jnp.asarray(False),
        still,
        jnp.asarray(False),
    )
    way = lax.while_loop(goes_on, attempt, jax.tree.map(jnp.asarray, way))
    return _with_zeros(kernels, way.x, end, way.scale), way.share >= 1.0, way.loose


def _nearby(one: Any, other: Any, share: float, blur: Any) -> Any:
    return (jnp.abs(one - other) <= share * jnp.maximum(jnp.abs(one), jnp.abs(other)) + 2 * blur).all()


def _batched(solve: Any, *columns: Array) -> list[Array]:
    """Apply a compiled function of batches to these columns, a fixed number of rows at a time."""
    count = len(columns[0])
    rows = np.arange(-(-count // _AT_ONCE) * _AT_ONCE).clip(max=count - 1).reshape(-1, _AT_ONCE)
    with our_settings():
        parts = [solve(*(jnp.asarray(column[some]) for column in columns)) for some in rows]
        return [np.concatenate([np.asarray(part) for part in each])[:count] for each in zip(*parts, strict=True)]


class _Slope(NamedTuple):
    """The residual and its slope at a state, scaled; and what rounding makes of it."""

    value: Any
    by_x: Any
    inverse: Any
    move: Any
    weights: Any  # of residuals, that make them comparable
    units: Any  # of states
    blur: Any
    solves: Any
    singular: Any


def _slope(kernels: Kernels, x: Any, vector: Any) -> _Slope:
    value = kernels.still(x, vector)
    by_x = jax.jacfwd(lambda x: kernels.still(x, vector))(x)
    summed = jnp.abs(by_x) @ jnp.abs(x)
    rounding = jnp.where(jnp.isfinite(summed), _ROUNDING * summed, 0.0)

    def scale(_: Any, carry: Any) -> Any:
        rows, columns = carry
        now = jnp.abs(rows[:, None] * by_x * columns)
        down, across = now.max(axis=1), now.max(axis=0)
        return (
            rows / jnp.sqrt(jnp.where(down > 0, down, 1.0)),
            columns / jnp.sqrt(jnp.where(across > 0, across, 1.0)),
        )

    rows, columns = lax.fori_loop(0, _SCALINGS, scale, (jnp.ones_like(x), jnp.ones_like(x)))
    scaled = rows[:, None] * by_x * columns
    finite = jnp.isfinite(scaled).all()
    u, sigma, vh = jnp.linalg.svd(jnp.where(finite, scaled, 0.0))
    kept = sigma > _RANK * jnp.maximum(sigma[0], 1e-300)
    inverse = columns[:, None] * ((vh.T * jnp.where(kept, 1 / jnp.where(kept, sigma, 1.0), 0.0)) @ u.T) * rows
    move = -inverse @ value
    left = jnp.abs(value + by_x @ move)
    solves = (left <= rounding) | (rows * left <= _SOLVES * (rows * jnp.abs(value)).max())
    blur, singular = jnp.abs(inverse) @ rounding, ~kept.all() | ~finite
    return _Slope(value, by_x, inverse, move, rows, columns, blur, solves.all() & finite, singular)


def _scale(x: Any, units: Any) -> Any:
    """Moduli (n,) of states; of one that is 0 a share of the others'."""
    return jnp.where(x != 0, jnp.abs(x), _OTHERS * units * jnp.max(jnp.abs(x) / units))


def _newton(kernels: Kernels, x: Any, vector: Any, scale: Any) -> tuple[Any, Any, Any, Any]:
    """Newton's method with halved steps where a whole one makes things worse; the parts of `Found`.

    ``scale`` (n,) is what states are compared with where they are 0.
    """

    def step(carry: Any) -> Any:
        count, x, *_ = carry
        at = _slope(kernels, x, vector)
        size_of = _scale(scale, at.units)

        def size(x: Any) -> Any:
            found = jnp.abs(at.weights * kernels.still(x, vector)).max()  # whose square may be less than any number
            return jnp.where(jnp.isfinite(found), found, jnp.inf)

        before = size(x)
        shares = 0.5 ** jnp.arange(_HALVINGS)
        after = jax.vmap(lambda share: size(x + share * at.move))(shares)
        best = jnp.argmax(after < before)
        better = (after < before).any()
        rests = (at.value == 0).all()
        new = jnp.where(better & ~rests, x + shares[best] * at.move, x)
        length = jnp.abs(at.move)
        near = length <= _NEAR * jnp.abs(x)
        # Constants that cancel, as in 1 / (1 + exp(-x)) - 1 / 2 at 0, leave a residual of rounding. Steps then neither
        # help nor lead far.
        stalls = (length <= _SHORT * size_of) & (after[0] > _HELPS * before)
        done = ((near | stalls).all() & at.solves) | rests
        return count + 1, jnp.where(jnp.isfinite(new), new, x), done, at.blur, at.singular

    first = 0, x, jnp.asarray(False), jnp.zeros_like(x), jnp.asarray(False)
    _, x, done, blur, singular = lax.while_loop(lambda carry: (carry[0] < _STEPS) & ~carry[2], step, first)
    return x, done & jnp.isfinite(x).all(), blur, singular


@public()
def equilibria(equation: Equation, between: Any, *, starts: int = 256) -> Array:
    """Equilibria in a box: constant solutions.

    Parameters
    ----------
    equation : Equation
        Autonomous.
    between : mapping of str to (float, float), or a pair
        Least and largest value of each state; one pair for all.
    starts : int
        From how many places, spread evenly (Sobol), Newton's method starts: 256 are 256 tries, no proof. An equilibrium
        that no start leads to is missed, and so is one at which the slope vanishes (a fold itself).

    Returns
    -------
    ndarray, shape (count, n)
        By the first state, then the next; count may be 0.

    Raises
    ------
    InputError
        If the box makes no sense, the equation depends on time, or equilibria form a continuum.
    """
    check_equation(equation)
    low, high = _box(equation, between)
    starts = whole("starts", starts)
    if starts > _MOST:
        raise InputError(f"starts: {starts}; give at most {_MOST}")
    check_autonomous(equation)
    places = qmc.Sobol(len(low), rng=0).random_base2(int(np.ceil(np.log2(starts))))
    found = newton(equation, low + places * (high - low), np.tile(equation.vector, (len(places), 1)))
    room = _SAME * (high - low)  # beyond the edges
    inside = found.good & (found.x >= low - room).all(axis=1) & (found.x <= high + room).all(axis=1)
    order = np.flatnonzero(inside)
    kept: list[int] = []
    for i in order[np.lexsort(found.x[order].T[::-1])]:
        if not _alike(found, int(i), kept).any():
            kept.append(int(i))
    rows = found.x[kept].reshape(-1, len(low))
    loose = rows[found.singular[kept]] if kept else rows
    if len(loose) > 1:
        raise InputError(
            f"between: {_CONTINUUM}: {_told(loose[0])} and {_told(loose[len(loose) // 2])} are two of {len(loose)} "
            "found; name the one that you mean as at="
        )
    return rows


def equilibrium_near(equation: Equation, at: Any = None) -> Array:
    """The equilibrium (n,) that Newton's method finds from a state.

    If none is given, from 0, +-0.1, +-1, +-10 and +-100 for all states, and of several states from 24 more where they
    differ, as long as no two of these lead to different ones.

    Raises
    ------
    InputError
        If it finds none, or several.
    """
    check_equation(equation)
    n = len(equation.states)
    guesses = _starts(n) if at is None else [state_of(equation, at, "at")]
    check_autonomous(equation)
    found = newton(equation, np.array(guesses), np.tile(equation.vector, (len(guesses), 1)))
    if not found.good.any():
        where = "several starts" if at is None else _told(guesses[0])
        raise InputError(
            f"at: no equilibrium found from {where}; give a state near one, or look with fluidcc.delay.equilibria"
        )
    places = np.flatnonzero(found.good)
    apart = ~_alike(found, int(places[0]), places)
    if apart.any():
        other = int(places[np.argmax(apart)])
        one, two = found.x[places[0]], found.x[other]
        what = _CONTINUUM if found.singular[[places[0], other]].all() else "there are several equilibria"
        raise InputError(f"at: {what}, {_told(one)} and {_told(two)} among them; say near which, at=[...]")
    x, blur = found.x[places[0]], found.blur[places[0]]
    if at is not None and found.singular[places[0]] and (np.abs(x - guesses[0]) > _SAME * np.abs(x) + blur).any():
        raise InputError(
            f"at: {_CONTINUUM}; {_told(guesses[0])} is none itself, and {_told(x)} is only one near by; give one to "
            "all digits, or leave out a state by what is kept"
        )
    return x


def _starts(n: int) -> list[Array]:
    """Return the default starts of a search: all states equal, and states apart."""
    alike = [np.full(n, v) for v in _STARTS]
    if n == 1:
        return alike
    places = qmc.Sobol(2 * n, rng=0).random(_APART + 8)[:_APART]
    return alike + list(np.where(places[:, n:] < 0.5, -1.0, 1.0) * 10 ** (3 * places[:, :n] - 1))


def _alike(found: Found, i: int, others: Any) -> Array:
    """Check whether a start led to the equilibrium of others (count,): each state in its own units."""
    x, y = found.x[i], found.x[others]
    away = np.abs(x - y)
    room = _SAME * np.maximum(np.abs(x), np.abs(y)) + found.blur[i] + found.blur[others]
    return (away <= room).all(axis=-1)


def _told(x: Array) -> str:
    return "(" + ", ".join(f"{v + 0.0:.6g}" for v in x) + ")"


def _box(equation: Equation, between: Any) -> tuple[Array, Array]:
    if isinstance(between, Mapping):
        refuse_unknown(between, equation.states, "between")
        missing = [state for state in equation.states if state not in between]
        if missing:
            raise InputError(f"between: {missing[0]} is missing; give a pair for each of {', '.join(equation.states)}")
        pairs = [between[state] for state in equation.states]
    else:
        pairs = [between] * len(equation.states)
    try:
        box = np.array(pairs, float)
    except (TypeError, ValueError, OverflowError):
        box = np.empty(0)
    if box.shape != (len(equation.states), 2) or not np.isfinite(box).all() or (box[:, 0] >= box[:, 1]).any():
        example = ", ".join(f"{state!r}: (0, 1)" for state in equation.states)
        raise InputError(f"between: {shown(between)}; give least and largest, for example {{{example}}}")
    return box[:, 0], box[:, 1]
