"""Number of characteristic roots right of a line, by the argument principle: a check on collocation."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from fluidcc.dde.delay_system import Array, DelaySystem
from fluidcc.errors import InputError
from fluidcc.surface import public

_MOST = 2_000_000  # points on the line
_TURN = 0.8  # of half a turn: the most that the determinant's argument can change between neighbours
_BEYOND = 1.5  # the line is followed up to this many times the bound on its roots' frequency


@public()
def count_right(system: DelaySystem, sigma: ArrayLike = 0.0) -> Array:
    """Number of roots s with Re s > sigma, multiple ones as often as they count.

    Parameters
    ----------
    system : DelaySystem
        One, or a batch.
    sigma : array_like
        The line [1/s], one for all or one per system.

    Returns
    -------
    ndarray of int
        (...,)

    Raises
    ------
    InputError
        If a root is on the line, as near as double precision can tell, or the line is so far left that its values
        overflow.

    Notes
    -----
    Mikhailov's form of the principle: f(s) = det Delta(s) turns by n pi / 2 - pi Z along the upper half of the line.
    Between two points h apart Delta changes by at most h L with ``L = 1 + sum tau_k |A_k| e^(-sigma tau_k)``, so that
    each eigenvalue of Delta(a)^-1 Delta(b) is within h L / smin(Delta(a)) of 1; intervals are halved until n times
    the arcsine of that is less than half a turn, and the change of the argument is then known, not guessed. From
    where all the matrices together are smaller than ``|s|`` to infinity it is a closed form.
    """
    scaled, unit = system.normalised()
    lines = np.broadcast_to(np.asarray(sigma, float), system.shape).reshape(-1) * unit
    counts = [_count(scaled[i : i + 1], float(line)) for i, line in enumerate(lines)]
    return np.array(counts, int).reshape(system.shape)


def _count(system: DelaySystem, line: float) -> int:
    n = system.order
    with np.errstate(over="ignore"):
        if np.isfinite(np.exp(-line * system.tau)).all():
            system = system.balanced(np.array([line]))
        norms = np.linalg.norm(system.A, axis=(-2, -1))[0] * np.exp(-line * system.tau[0])
    reach = np.linalg.norm(system.A0[0] - line * np.eye(n)) + norms.sum()
    steepest = 1 + (system.tau[0] * norms).sum()
    if not np.isfinite(reach):
        raise InputError(f"sigma: e^(-sigma tau) overflows at {line:.3g} / longest delay; give a line nearer to 0")
    end = _BEYOND * max(reach, 1e-300)
    share = np.sin(np.pi * min(_TURN / n, 0.45))  # of smin that the change may be
    begins, ends = np.array([0.0]), np.array([end])
    turned, points = 0.0, 0
    floor = 1e-14 * (1 + end)
    while begins.size:
        left = system.characteristic(line + 1j * begins[None])[0]
        right = system.characteristic(line + 1j * ends[None])[0]
        smallest = np.linalg.svd(left, compute_uv=False)[:, -1]
        smallest = np.maximum(smallest, np.linalg.svd(right, compute_uv=False)[:, -1])
        width = ends - begins
        sure = width * steepest <= share * smallest
        turn = np.linalg.slogdet(right[sure])[0] * np.linalg.slogdet(left[sure])[0].conj()
        turned += np.angle(turn).sum()
        begins, ends, width = begins[~sure], ends[~sure], width[~sure]
        points += begins.size
        if (begins.size and width.min() < floor) or points > _MOST:
            at = begins[np.argmin(width)]
            raise InputError(
                f"sigma: a root is on the line, at {at:.6g} / longest delay, or too many are near; move the line"
            )
        middle = (begins + ends) / 2
        begins, ends = np.concatenate([begins, middle]), np.concatenate([middle, ends])
    top = line + 1j * end
    last = np.linalg.eigvals(np.eye(n) - system.characteristic(np.array([top]))[0] / (1j * end))
    turned -= np.angle(1 - last).sum()
    zeros = n / 2 - turned / np.pi
    if abs(zeros - round(zeros)) > 1e-6:
        raise ArithmeticError(f"the argument turned by a fraction, {zeros}")
    return round(zeros)
