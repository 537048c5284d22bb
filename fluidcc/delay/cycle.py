"""Limit cycles as boundary-value problems: trigonometric polynomials that satisfy the equation at every node.

Time over the period runs from 0 to 1. With N harmonics there are 2 N + 1 nodes, between which a real trigonometric
polynomial is exact interpolation, for its derivative and for what lies a lag back alike (Engelborghs, Luzyanina, in 't
Hout and Roose, SIAM J. Sci. Comput. 22 (2000) 1593-1609, collocate by pieces). The error falls exponentially with N
where the cycle is smooth. Nothing is integrated, so that cycles that repel are found as well.
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from fluidcc.compiling.settings import our_settings
from fluidcc.delay.equation import Array, Equation, Kernels, state_of
from fluidcc.delay.hopf import Crossing
from fluidcc.delay.linear import systems
from fluidcc.delay.solution import solve
from fluidcc.errors import InputError
from fluidcc.results.dataset import DatasetResult, Row
from fluidcc.results.drawing import draw
from fluidcc.results.metrics import upward_crossings
from fluidcc.surface import constructor, public

_HARMONICS = (8, 16, 32, 64, 128, 256)
_TAIL = 1e-9  # of the largest coefficient: a spectrum that has fallen so far is resolved
_RESOLVED = 1e-4  # or not even that
_STEPS = 25
_CONVERGED = 1e-10
_FLAT = 1e-6  # peak to peak of the mean's size: less is an equilibrium
_ALIKE = 1e-3  # two periods in a row
_PATTERN = 8  # crossings of the mean within a period, at most
_SIZES = (0.05, 0.2, 0.02, 0.5, 1.0)  # of the small cycles to begin with
_DENSE = 8192  # nodes at which extremes are read: to 1e-7 of what is smooth


@constructor()
@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Cycle(DatasetResult):
    """A periodic solution, made by `limit_cycle`.

    Parameters
    ----------
    dataset : xarray.Dataset
        Each state over one period, ``time``.
    period : float
    error : float
        Share of the last harmonics in the largest one: what the next would add is less.
    harmonics : int
    """

    KEPT: ClassVar[tuple[str, ...]] = ("time",)

    period: float
    error: float
    harmonics: int

    @property
    def amplitude(self) -> dict[str, float]:
        """Largest less smallest value of each state."""
        return {str(n): float(v.max() - v.min()) for n, v in self.dataset.data_vars.items()}

    def __repr__(self) -> str:
        """Period and amplitudes."""
        parts = ", ".join(f"{name} {value:.6g}" for name, value in self.amplitude.items())
        return f"<Cycle of period {self.period:.8g}, peak to peak {parts}; error {self.error:.1g}>"

    def _rows(self) -> list[Row]:
        data = self.dataset
        rows = [(str(n), f"{float(v.min()):.6g} to {float(v.max()):.6g}") for n, v in data.data_vars.items()]
        return [
            ("period", f"{self.period:.8g}"),
            *rows,
            ("harmonics", str(self.harmonics)),
            ("error", f"{self.error:.1g}"),
        ]

    @public()
    def plot(self, *, title: str | None = None) -> Any:
        """One period of each state; of two states or more also the second over the first.

        Parameters
        ----------
        title : str
            Above the picture.

        Returns
        -------
        fluidcc.plotting.style.Picture
        """
        return draw("plot_solution", self, title=title)


@public()
def limit_cycle(
    equation: Equation,
    *,
    past: Any = None,
    until: float | None = None,
    near: Crossing | Cycle | None = None,
    size: float | None = None,
) -> Cycle:
    """A periodic solution and its period, to many digits.

    Parameters
    ----------
    equation : Equation
        Autonomous.
    past : array_like or mapping, optional
        The state before time 0, from which the equation is integrated to come near a cycle that attracts.
    until : float, optional
        For how long; 60 times the longest of the lags and of the period that the equilibrium's roots tell by default.
    near : Crossing or Cycle, optional
        In place of that: begin with the small cycle of a Hopf point, or with the cycle of other parameters. So cycles
        that repel are found too.
    size : float, optional
        Of the small cycle, in shares of the equilibrium, or of 1 if that is 0; several in turn if not given.

    Returns
    -------
    Cycle
        Whether it attracts is not told: one that was found by ``past`` does.

    Raises
    ------
    InputError
        If the solution has come to rest, is not periodic, or no periodic solution is found from there, or the cycle
        has corners that 256 harmonics do not resolve.
    """
    if (past is None) == (near is None):
        raise InputError("limit_cycle: give past= to integrate from, or near= a Hopf point or a cycle to begin with")
    if past is not None:
        guesses = [_integrated(equation, past, until)]
    elif isinstance(near, Cycle):
        guesses = [(np.stack([near[name].values[:-1] for name in equation.states], axis=1), near.period)]
    else:
        guesses = [_nearby(equation, near, each) for each in (_SIZES if size is None else (size,))]
    for guess in guesses:
        found = _resolved(equation, *guess)
        if found is not None:
            break
    else:
        raise InputError("limit_cycle: no periodic solution is found from there; begin nearer to one")
    course, period, tail = found
    if not tail <= _RESOLVED:
        raise InputError(
            f"limit_cycle: the cycle has corners: {_HARMONICS[-1]} harmonics leave {tail:.1g} of it; use solve()"
        )
    harmonics = (len(course) - 1) // 2
    dense = _resampled(course, _DENSE + 1)
    times = np.linspace(0.0, period, len(dense) + 1)
    data = xr.Dataset(
        {s: ("time", np.append(dense[:, i], dense[0, i]), {"long_name": s}) for i, s in enumerate(equation.states)},
        coords={"time": ("time", times, {"units": equation.time_unit, "long_name": "time"})},
    )
    return Cycle(data, period, tail, harmonics)


def _resolved(equation: Equation, course: Array, period: float) -> tuple[Array, float, float] | None:
    """The cycle that a guess (M, n) leads to with more and more harmonics, its period and tail; None if to none."""
    found, scale = None, float(np.abs(course).max())
    for harmonics in _HARMONICS:
        x, T, good = _collocated(equation.kernels, equation.vector, _resampled(course, 2 * harmonics + 1), period)
        if not good or not T > 0 or np.ptp(x, axis=0).max() <= _FLAT * max(scale, 1e-300):
            continue
        course, period = x, T
        found = x, T, _tail(x)
        if found[2] <= _TAIL:
            break
    return found


def _collocated(kernels: Kernels, vector: Array, guess: Array, period: float) -> tuple[Array, float, bool]:
    """Newton's method for the states at the nodes (M, n) and the period; whether it converged."""
    M, n = guess.shape
    scale = np.append(np.tile(np.maximum(np.abs(guess).max(axis=0), 1e-12), M), period)
    z = np.append(guess.ravel(), period)
    with our_settings():
        compiled = kernels.once(("cycle", M), lambda: jax.jit(_newton_step(kernels, M)))
        for _ in range(_STEPS):
            move, residual = (np.asarray(each) for each in compiled(*map(jnp.asarray, (z, guess, vector))))
            if not np.isfinite(move).all():
                break
            share = min(1.0, 0.5 / max(np.abs(move / scale).max(), 1e-300))
            z = z + share * move
            if share == 1.0 and np.abs(move / scale).max() < _CONVERGED and np.isfinite(residual).all():
                return z[:-1].reshape(M, n), float(z[-1]), True
            if not z[-1] > 0:
                break
    return guess, period, False


def _newton_step(kernels: Kernels, M: int) -> Any:
    """A step and the residual at z, which is the states at the nodes and the period."""
    nodes = np.arange(M) / M
    apart = nodes[:, None] - nodes
    k = np.arange(1, (M - 1) // 2 + 1)
    slopes = jnp.array(-4 * np.pi / M * np.stack([np.sin(2 * np.pi * np.outer(row, k)) @ k for row in apart]))

    def interpolation(back: Any) -> Any:
        """What takes values at the nodes to those so far back from each, (M, M): Dirichlet's kernel."""
        u = jnp.asarray(apart) - back[:, None]
        u = u - jnp.round(u)
        near = jnp.abs(u) < 1e-9
        safe = jnp.where(near, 0.25, u)
        return jnp.where(near, 1.0, jnp.sin(M * jnp.pi * safe) / (M * jnp.sin(jnp.pi * safe)))

    def step(z: Any, guess: Any, vector: Any) -> tuple[Any, Any]:
        x, T = z[:-1].reshape(M, -1), z[-1]
        n = x.shape[1]
        lags, steer = jax.vmap(lambda one: (kernels.lags(one, vector), jax.jacfwd(kernels.lags)(one, vector)))(x)
        each = [interpolation(lags[:, i] / T) for i in range(lags.shape[1])]
        delayed = tuple(weights @ x for weights in each)
        moving = [weights @ (slopes @ x) for weights in each]  # by time over the period

        def rate(now: Any, past: Any) -> Any:
            return kernels.rate(0.0, now, past, vector)

        rates = jax.vmap(rate)(x, delayed)
        own = jax.vmap(jax.jacfwd(rate, 0))(x, delayed)
        lagged = jax.vmap(jax.jacfwd(rate, 1))(x, delayed)
        by_x = jnp.einsum("jl,ab->jalb", slopes, jnp.eye(n)) - T * jnp.einsum("jl,jab->jalb", jnp.eye(M), own)
        by_T = -rates
        for i, (weights, moves, gain) in enumerate(zip(each, moving, lagged, strict=True)):
            by_x = by_x - T * jnp.einsum("jab,jl->jalb", gain, weights)
            later = jnp.einsum("jab,jb->ja", gain, moves)  # by a smaller lag
            by_x = by_x + jnp.einsum("jl,ja,jb->jalb", jnp.eye(M), later, steer[:, i])
            by_T = by_T - later * lags[:, i, None] / T
        along = slopes @ guess
        along = along / jnp.linalg.norm(along)
        found = jnp.append((slopes @ x - T * rates).ravel(), ((x - guess) * along).sum())
        top = jnp.concatenate([by_x.reshape(M * n, M * n), by_T.reshape(-1, 1)], axis=1)
        jacobian = jnp.concatenate([top, jnp.append(along.ravel(), 0.0)[None]])
        return -jnp.linalg.solve(jacobian, found), found

    return step


def _integrated(equation: Equation, past: Any, until: float | None) -> tuple[Array, float]:
    """One period of where the solution ends up, (M, n), and the period."""
    if until is None:
        begin = state_of(equation, past, "past")
        found = systems(equation, begin[None], equation.vector[None])[0]
        fastest = max(float(np.linalg.norm(found.A0)), float(np.linalg.norm(found.A, axis=(1, 2)).sum()), 1e-300)
        until = 60 * max(float(found.tau.max()) * 4, 2 * np.pi / fastest)
    longest = 4 * float(equation.lags_at(state_of(equation, past, "past")).max()) if equation.state_dependent else None
    solution = solve(equation, until, past=past, samples=20000, tolerance=1e-4, longest_lag=longest)
    times = solution["time"].values
    states = np.stack([solution[name].values for name in equation.states], axis=1)
    late = times >= until / 2
    times, states = times[late], states[late]
    moves = np.ptp(states, axis=0) / np.maximum(np.abs(states).max(axis=0), 1e-300)
    lead = int(np.argmax(moves))
    if moves[lead] < _FLAT:
        raise InputError("limit_cycle: the solution has come to rest; it is no cycle that attracts from there")
    ups = upward_crossings(times, states[:, lead], float(states[:, lead].mean()))
    for count in range(1, _PATTERN + 1):
        gaps = ups[count:] - ups[:-count]
        if len(gaps) >= 2 and np.ptp(gaps[-2:]) <= _ALIKE * gaps[-1]:
            period = float(gaps[-1])
            at = ups[-1] - period + period * np.arange(257) / 257
            one = np.stack([np.interp(at, times, states[:, i]) for i in range(states.shape[1])], axis=1)
            return one, period
    raise InputError("limit_cycle: the solution is not periodic by then; give a longer until=, or other parameters")


def _nearby(equation: Equation, near: Any, size: float) -> tuple[Array, float]:
    """The small cycle of a Hopf point."""
    if not isinstance(near, Crossing) or near.kind != "hopf":
        raise InputError(f"near: {repr(near)[:40]}; give a crossing of kind 'hopf' from crossings(), or a cycle")
    if not size > 0:
        raise InputError(f"size: {size}; give a number greater than 0")
    system = systems(equation, near.state[None], equation.vector[None])[0]
    mode = np.linalg.svd(system.characteristic(1j * near.frequency))[2][-1].conj()
    mode = mode / np.abs(mode).max()
    amount = size * max(float(np.abs(near.state).max()), 1.0 if not near.state.any() else 0.0)
    phase = np.exp(2j * np.pi * np.arange(257) / 257)
    return near.state + amount * (phase[:, None] * mode).real, near.period


def _resampled(course: Array, count: int) -> Array:
    """The trigonometric polynomial through (M, n), M odd, at another odd number of nodes."""
    values = np.fft.rfft(course, axis=0) / len(course)
    kept = min(len(values), count // 2 + 1)
    wide = np.zeros((count // 2 + 1, course.shape[1]), complex)
    wide[:kept] = values[:kept]
    return np.fft.irfft(wide * count, n=count, axis=0)


def _tail(x: Array) -> float:
    """Largest of the last eighth of the harmonics, over the largest but the mean."""
    found = np.abs(np.fft.rfft(x, axis=0))[1:].max(axis=1)
    last = max(len(found) // 8, 1)
    return float(found[-last:].max() / found.max())
