"""The delay at which a system's rightmost root reaches the imaginary axis."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fluidcc.dde.axis_crossings import crossings, grid
from fluidcc.dde.characteristic import roots
from fluidcc.dde.delay_system import Array, DelaySystem
from fluidcc.errors import InputError
from fluidcc.surface import public

_ROUNDING = 1e-13  # of a root, relative to the bound on roots: nearer to the axis it is on it
_ON_CIRCLE = 1e-9  # | |mu| - 1 | at a frequency refined to rounding, times the condition of mu
_RESTS = 1e-11  # of log |mu|, towards frequency 0: less is rounding, of a curve that begins there


class CriticalDelay(NamedTuple):
    """Delay at which stability is lost.

    Parameters
    ----------
    delay : float
        [s]; inf where stability is lost at no delay, ``start`` where it is lost there already.
    frequency : float or None
        Frequency of the root on the axis [rad/s].
    residual : float
        Relative backward error of that root, as in `fluidcc.dde.characteristic.Roots`; 0 without one.
    state : str
        "ok", "never" (stable for every greater delay), "unstable" (at ``start``, or a root is on the axis there) or
        "unresolved" (the roots at ``start`` are not known).
    """

    delay: float
    frequency: float | None
    residual: float
    state: str


@public()
def critical_delay(system: DelaySystem, index: int, start: float = 0.0, *, zeros: int = 0) -> CriticalDelay:
    """The least delay tau_index >= start with a root on the imaginary axis, the system being stable at ``start``.

    Parameters
    ----------
    system : DelaySystem
        A single one; its own tau_index does not matter.
    index : int
        Which delay; the others stay.
    start : float
        [s], from where on to look.
    zeros : int
        How many roots are 0 whatever the delay is; they are left out.

    Returns
    -------
    CriticalDelay

    Raises
    ------
    InputError
        If the system is a batch, or there is no such delay, or ``start`` is negative.

    Notes
    -----
    With A_index = U V of full rank, i w is a root for delay tau if an eigenvalue mu of V Delta_rest(i w)^-1 U is e^(i
    w tau): ``|mu| = 1`` gives every w at which that can be, independently of tau, and then arg mu = w tau (mod 2 pi)
    gives the delays (the frequency sweep of Gu, Kharitonov and Chen, Stability of Time-Delay Systems, 2003, section
    2.3). Nothing is read off a grid.
    """
    if system.shape:
        raise InputError(f"critical_delay: a batch of shape {system.shape}; give one system, system[i]")
    count = system.tau.shape[-1]
    if not 0 <= index < count:
        raise InputError(f"index: {index}; the system has delays 0 to {count - 1}")
    if not start >= 0:
        raise InputError(f"start: {start} s; give a delay of 0 s or more")
    scaled, (unit,) = _with(system, index, start).normalised()  # or the rank below is one of the states' units
    system, start = scaled[0], start / unit
    begun = roots(_with(system, index, start), 1 + zeros, threads=1)
    if begun.state != "ok":
        return CriticalDelay(float(start * unit), None, 0.0, "unresolved")
    high = float(system.bound(0.0))
    others = np.sort(np.argsort(np.abs(begun.s[: begun.number]), kind="stable")[zeros:])  # by falling real part still
    if len(others) and begun.s[others[0]].real >= -_ROUNDING * high:
        first = others[0]
        frequency = float(abs(begun.s[first].imag) / unit)
        return CriticalDelay(float(start * unit), frequency, float(begun.residual[first]), "unstable")
    others = np.arange(count) != index
    rest = DelaySystem(system.A0, system.A[others], system.tau[others])
    U, V = _factored(system.A[index])
    if not U.size or high == 0:
        return CriticalDelay(np.inf, None, 0.0, "never")

    def loops(w: Array) -> Array:
        """Eigenvalues (m, rank), by modulus, so that moduli are continuous."""
        mu = np.linalg.eigvals(V @ np.linalg.solve(rest.characteristic(1j * w), np.broadcast_to(U, (len(w), *U.shape))))
        return np.take_along_axis(mu, np.argsort(np.abs(mu), axis=-1), axis=-1)

    def gains(w: Array) -> Array:
        return np.log(np.maximum(np.abs(loops(w)), 1e-300))

    best = CriticalDelay(np.inf, None, 0.0, "never")
    sampled = grid(roots(rest, 2 * rest.order, threads=1).s, float(rest.tau.max(initial=0.0)), 1.0001 * high)
    # Where a curve begins on the circle at frequency 0 it leaves it as w^2, unseen at first.
    off = np.flatnonzero((np.abs(gains(sampled)) > _RESTS).all(axis=-1))
    try:
        found = crossings(gains, sampled[off[0] :]) if len(off) else []
    except ArithmeticError:  # so long a delay that the curves turn faster than can be sampled
        return CriticalDelay(float(start * unit), None, 0.0, "unresolved")
    for w, _ in found:
        mu = loops(np.array([w]))[0]
        turns = np.angle(mu[np.abs(np.abs(mu) - 1) < _ON_CIRCLE])  # several, where curves coincide
        delay = float((turns / w + 2 * np.pi / w * np.ceil((start - turns / w) * w / (2 * np.pi))).min(initial=np.inf))
        if delay * unit < best.delay:
            there = _with(system, index, delay)
            smallest = np.linalg.svd(there.characteristic(1j * w), compute_uv=False)[-1]
            best = CriticalDelay(float(delay * unit), float(w / unit), float(smallest / there.size(1j * w)), "ok")
    return best


def _with(system: DelaySystem, index: int, delay: float) -> DelaySystem:
    tau = system.tau.copy()
    tau[index] = delay
    return DelaySystem(system.A0, system.A, tau)


def _factored(matrix: Array) -> tuple[Array, Array]:
    """U (n, rank) and V (rank, n) whose product the matrix is."""
    u, sigma, vh = np.linalg.svd(matrix)
    rank = int((sigma > sigma.max(initial=0.0) * 1e-13).sum())
    return u[:, :rank] * sigma[:rank], vh[:rank]
