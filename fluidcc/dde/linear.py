"""An equation about an equilibrium: linear, with its delays as they are; roots, margins, critical delays."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fluidcc.compiling.settings import our_settings
from fluidcc.dde import characteristic, response
from fluidcc.dde.characteristic import Abscissa, Roots, structural
from fluidcc.dde.checks import check_lags, column, number, shown, whole
from fluidcc.dde.delay_system import DelaySystem
from fluidcc.dde.equation import Array, Equation, padded
from fluidcc.dde.fixed_points import equilibrium_near
from fluidcc.dde.response import CriticalDelay, DelayLoop, Margins
from fluidcc.errors import InputError
from fluidcc.surface import public

_ELSEWHERE = (0.37, 1.0, 2.7)  # of the longest lag, beyond the least: what is 0 there too is so for every lag
_RANK = 1e-12  # of a matrix's largest singular value: a smaller one is rounding


@public()
def linearize(equation: Equation, at: Any = None) -> DelaySystem:
    """x'(t) = A0 x(t) + sum_k A_k x(t - tau_k) about an equilibrium, by automatic differentiation.

    Parameters
    ----------
    equation : Equation
    at : array_like or mapping, optional
        A state (n,) near the equilibrium, in order or by names; needed where there are several. It need not be one
        itself: Newton's method goes from there to the equilibrium, and the answer is about that.

    Returns
    -------
    DelaySystem
        Lags that depend on the state are those at the equilibrium, which is exact to first order.

    Raises
    ------
    InputError
        If no equilibrium is found there, or several are.
    """
    return systems(equation, equilibrium_near(equation, at)[None], equation.vector[None])[0]


@public()
def roots(equation: Equation | DelaySystem, count: int = 10, *, at: Any = None, threads: int | None = None) -> Roots:
    """Rightmost characteristic roots about an equilibrium, to rounding.

    Parameters
    ----------
    equation : Equation or DelaySystem
    count : int
        How many.
    at : array_like or mapping, optional
        As of `linearize`.
    threads : int, optional
        Among which to divide a batch of systems; one per core by default.

    Returns
    -------
    Roots

    Raises
    ------
    InputError
        As of `linearize`, or if ``count`` is less than 1.
    """
    return characteristic.roots(_system(equation, at), whole("count", count), threads=_threads(threads))


@public()
def abscissa(equation: Equation | DelaySystem, *, at: Any = None, threads: int | None = None) -> Abscissa:
    """The rightmost characteristic root: the equilibrium is stable where its real part is negative.

    Parameters
    ----------
    equation : Equation or DelaySystem
        A system may be a batch.
    at : array_like or mapping, optional
        As of `linearize`.
    threads : int, optional
        Among which to divide a batch of systems; one per core by default.

    Returns
    -------
    Abscissa

    Raises
    ------
    InputError
        As of `linearize`.
    """
    return characteristic.abscissa(_system(equation, at), threads=_threads(threads))


@public()
def count_right(equation: Equation | DelaySystem, sigma: Any = 0.0, *, at: Any = None) -> Array:
    """Number of characteristic roots s with Re s > sigma, multiple ones as often as they count.

    Parameters
    ----------
    equation : Equation or DelaySystem
        A system may be a batch.
    sigma : float or array_like
        The line [1/time], one for all or one per system.
    at : array_like or mapping, optional
        As of `linearize`.

    Returns
    -------
    ndarray of int

    Raises
    ------
    InputError
        If a root is on the line, ``sigma`` is no number, or as of `linearize`.
    """
    system = _system(equation, at)
    line = np.asarray(column("sigma", sigma)) if np.ndim(sigma) else number("sigma", sigma)
    return characteristic.count_right(system, line)


@public()
def critical_delay(
    equation: Equation | DelaySystem, lag: Any = 0, start: float = 0.0, *, at: Any = None
) -> CriticalDelay:
    """The least value of one lag, all others as they are, at which stability is lost.

    Roots that are 0 whatever the lag is (a sum that the equation keeps, a symmetry) are left out.

    Parameters
    ----------
    equation : Equation or DelaySystem
        Linear parts are those of the lag as it is. Where the equilibrium moves with the lag, or the function or another
        lag has the same parameter in it, use `crossings`.
    lag : int or str
        Its place in ``lags``, or the name of the parameter that it is, of all lags that are this parameter.
    start : float
        From which value on to look; the equation must be stable there.
    at : array_like or mapping, optional
        As of `linearize`.

    Returns
    -------
    CriticalDelay
        Its ``state`` says in words what was done: "ok", "never" (stable for every greater value), "unstable" (at
        ``start`` already) or "unresolved"; and how many roots were left out that stay at 0, if there are any.

    Raises
    ------
    InputError
        If there is no such lag, ``start`` is no number of 0 or more, or as of `linearize`.
    """
    if isinstance(equation, Equation) and isinstance(lag, str) and lag in equation.lags and equation.kernels.uses(lag):
        raise InputError(f"lag: {lag} is in the function too, or in another lag; use fluidcc.delay.crossings")
    system, k = _merged(_system(equation, at), _lags(equation, lag))
    begin = number("start", start)
    if begin < 0:
        raise InputError(f"start: {shown(start)}; give a lag of 0 or more")
    tau = np.tile(system.tau, (len(_ELSEWHERE) + 1, 1))
    tau[:, k] = begin + np.array([0.0, *_ELSEWHERE]) * max(float(system.tau.max(initial=0.0)), begin, 1 / _size(system))
    zeros = structural(DelaySystem(system.A0, system.A, tau))
    found = response.critical_delay(system, k, begin, zeros=zeros)
    if not zeros:
        return found
    return found._replace(state=f"{found.state}; left out: {zeros} root{'s'[: zeros != 1]} at 0 for every lag")


@public()
def margins(equation: Equation | DelaySystem, lag: Any = 0, *, at: Any = None) -> Margins:
    """Gain, phase and delay margin of the loop that is closed through one lag.

    Parameters
    ----------
    equation : Equation or DelaySystem
    lag : int or str
        At which the loop is opened, as of `critical_delay`: what comes back through it must be one signal (a matrix of
        rank one).
    at : array_like or mapping, optional
        As of `linearize`.

    Returns
    -------
    Margins
        `DelayLoop.margins`.

    Raises
    ------
    InputError
        If several signals come back through that lag, or none, or as of `linearize`.
    """
    return loop(equation, lag, at=at).margins()


def loop(equation: Equation | DelaySystem, lag: Any = 0, *, at: Any = None) -> DelayLoop:
    """The loop opened at one lag; see `margins`."""
    system, k = _merged(_system(equation, at), _lags(equation, lag))
    u, sigma, vh = np.linalg.svd(system.A[k])
    rank = int((sigma > _RANK * max(sigma[0], 1e-300)).sum()) if sigma[0] > 0 else 0
    if rank != 1:
        what = "nothing comes" if rank == 0 else f"{rank} signals come"
        raise InputError(f"lag: {what} back through lag {k} at this equilibrium; margins are those of one signal")
    others = np.arange(len(system.tau)) != k
    rest = DelaySystem(system.A0, system.A[others], system.tau[others])
    return DelayLoop(rest, B=-(u[:, 0] * sigma[0])[None], input_delay=system.tau[k : k + 1], C=vh[0])


def jacobians(equation: Equation, x: Array, vectors: Array) -> tuple[Array, Array, Array]:
    """A0 (batch, n, n), A (batch, K, n, n) and lags (batch, K) at states (batch, n) for parameters (batch, m)."""
    kernels = equation.kernels
    found = kernels.once("jacobians", lambda: jax.jit(jax.vmap(kernels.jacobians)))
    count, rows = len(x), padded(len(x))
    with our_settings():
        A0, A, lags = (np.asarray(part)[:count] for part in found(jnp.asarray(x[rows]), jnp.asarray(vectors[rows])))
    return A0, A, lags


def systems(equation: Equation, x: Array, vectors: Array) -> DelaySystem:
    """Linearisations (batch) about equilibria (batch, n) for parameters (batch, m)."""
    A0, A, lags = jacobians(equation, x, vectors)
    check_lags(lags)
    if not (np.isfinite(A0).all() and np.isfinite(A).all()):
        raise InputError("function: has no derivative at this equilibrium; give another, or smooth the function")
    return DelaySystem(A0, A, lags)


def _threads(threads: Any) -> int | None:
    return None if threads is None else whole("threads", threads)


def _system(equation: Any, at: Any) -> DelaySystem:
    if isinstance(equation, DelaySystem):
        if at is not None:
            raise InputError("at: a DelaySystem is about its equilibrium already; leave it out")
        return equation
    if not isinstance(equation, Equation):
        raise InputError(f"equation: {shown(equation)}; give a fluidcc.delay.Equation or a DelaySystem")
    return linearize(equation, at)


def _lags(equation: Equation | DelaySystem, lag: Any) -> list[int]:
    """Places of the lags that are meant."""
    if isinstance(lag, str) and isinstance(equation, Equation) and lag in equation.lags:
        return [i for i, each in enumerate(equation.lags) if isinstance(each, str) and each == lag]
    count = equation.tau.shape[-1] if isinstance(equation, DelaySystem) else len(equation.lags)
    if isinstance(lag, bool) or not isinstance(lag, (int, np.integer)) or not 0 <= lag < count:
        raise InputError(_no_lag(equation, lag, count))
    return [int(lag)]


def _no_lag(equation: Equation | DelaySystem, lag: Any, count: int) -> str:
    """Explain why a value names no lag, and list the lags that there are."""
    if not isinstance(equation, Equation):
        return f"lag: {shown(lag)}; write a place in the system's tau, {f'0 to {count - 1}' if count > 1 else 0}"
    what = [
        each if isinstance(each, str) else "a function" if callable(each) else f"{each:g}" for each in equation.lags
    ]
    named = dict.fromkeys(each for each in equation.lags if isinstance(each, str))
    inside = isinstance(lag, str) and lag in equation.parameters
    told = f"{lag} is a parameter, but no lag is that alone" if inside else f"{shown(lag)} is no lag of this equation"
    choices = ", ".join([*(f"{k} ({each})" for k, each in enumerate(what)), *(f"'{each}'" for each in named)])
    return f"lag: {told}; write {'one of ' if ', ' in choices else ''}{choices}" + (
        f", or follow {lag} with fluidcc.delay.crossings" if inside else ""
    )


def _merged(system: DelaySystem, places: list[int]) -> tuple[DelaySystem, int]:
    """The system with these equal lags as one, and its place."""
    if system.shape:
        raise InputError(f"equation: a batch of shape {system.shape}; give one system, system[i]")
    first = places[0]
    A = system.A.copy()
    A[first] = system.A[places].sum(axis=0)
    kept = [k for k in range(len(system.tau)) if k == first or k not in places]
    return DelaySystem(system.A0, A[kept], system.tau[kept]), kept.index(first)


def _size(system: DelaySystem) -> float:
    """|A0| + sum |A_k|."""
    return max(float(np.linalg.norm(system.A0) + np.linalg.norm(system.A, axis=(-2, -1)).sum()), 1e-300)
