"""Frequency response of a loop with delays, its margins, and the delay at which roots reach the imaginary axis.

e^(-i w tau) is as it is: no Padé approximation. Adaptive sampling separates the frequencies at which curves cross zero,
root-finding makes them exact.

>>> integrator = DelaySystem([[0.0]], np.zeros((0, 1, 1)), [])
>>> loop = DelayLoop(integrator, B=[[2.0]], input_delay=[0.1], C=[1.0])  # 2 e^(-0.1 s) / s
>>> loop.margins().phase
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import root_scalar

from fluidcc.dde.characteristic import abscissa, count_right, roots
from fluidcc.dde.delay_system import Array, DelaySystem, balance, real
from fluidcc.errors import InputError
from fluidcc.results.drawing import draw
from fluidcc.surface import constructor, public

_DECADES = 10  # below the highest frequency
_PER_DECADE = 24
_PER_RADIAN = 4  # of the phase of the delays
_MOST = 1_000_000
_NARROWEST = 1e-9  # relative width of an interval that is not halved any more: there the curves only touch zero
_GAIN_STEP, _LARGEST_GAIN = 10.0, 1e6  # gain margins beyond are reported as none
_ROUNDING = 1e-13  # of a root, relative to the bound on roots: nearer to the axis it is on it
_ON_CIRCLE = 1e-9  # | |mu| - 1 | at a frequency refined to rounding, times the condition of mu
_RESTS = 1e-11  # of log |mu|, towards frequency 0: less is rounding, of a curve that begins there


def grid(poles: Array, longest: float, high: float) -> Array:
    """Frequencies to begin with, up to ``high`` [rad/s].

    By decades, as fine as the phase of e^(-i w longest) needs, and closer around the poles, roots [1/s] of the open
    loop: a lightly damped one is a peak that no even grid sees.
    """
    low = high * 10.0**-_DECADES
    parts = [np.geomspace(low, high, _DECADES * _PER_DECADE)]
    turns = min(int(high * longest * _PER_RADIAN), _MOST)
    parts.append(np.linspace(low, high, turns + 2))
    poles = poles[poles.imag > 0]
    width = np.maximum(np.abs(poles.real), 1e-7 * poles.imag)
    parts += [poles.imag + step * width for step in (-9, -3, -1, -0.3, 0.3, 1, 3, 9)]
    together = np.unique(np.concatenate(parts))
    return together[(together >= low) & (together <= high)]


def crossings(curves: Callable[[Array], Array], frequencies: Array) -> list[tuple[float, int]]:
    """Zeros of continuous curves between the first and the last of these frequencies.

    Parameters
    ----------
    curves : callable
        Frequencies (m,) to values (m, r).
    frequencies : ndarray
        (m,), ascending: the sampling to begin with. Intervals in which a curve bends so much that it may reach zero
        are halved.

    Returns
    -------
    list of (float, int)
        Frequency and curve, by frequency. Two zeros that the sampling does not separate, closer than what it
        resolves, are missed.
    """
    a, b = frequencies[:-1], frequencies[1:]
    at_a, at_b = _split(curves(frequencies))
    found: list[tuple[float, int]] = []
    while a.size:
        if a.size > _MOST:
            raise ArithmeticError("crossings: a curve rests on zero")
        middle = (a + b) / 2
        at_middle = curves(middle)
        bend = np.abs(at_middle - (at_a + at_b) / 2)
        lowest = np.minimum(np.minimum(np.abs(at_a), np.abs(at_b)), np.abs(at_middle))
        one_sign = (np.sign(at_a) == np.sign(at_b)) & (np.sign(at_a) == np.sign(at_middle))
        none = one_sign & (lowest > 4 * bend)
        once = (at_a * at_b < 0) & (bend < 0.1 * np.abs(at_b - at_a))
        narrow = (b - a <= _NARROWEST * b)[:, None] & np.ones_like(none)
        decided = (none | once | narrow).all(axis=-1)
        for i, curve in np.argwhere(decided[:, None] & (at_a * at_b <= 0) & ~none):
            found.append((_refine(curves, float(a[i]), float(b[i]), int(curve)), int(curve)))
        open_ = ~decided
        a, middle, b = a[open_], middle[open_], b[open_]
        at_a, at_middle, at_b = at_a[open_], at_middle[open_], at_b[open_]
        a, b = np.concatenate([a, middle]), np.concatenate([middle, b])
        at_a, at_b = np.concatenate([at_a, at_middle]), np.concatenate([at_middle, at_b])
    return _distinct(sorted(found))


def _split(values: Array) -> tuple[Array, Array]:
    return values[:-1], values[1:]


def _refine(curves: Callable[[Array], Array], a: float, b: float, curve: int) -> float:
    def value(w: float) -> float:
        return float(curves(np.array([w]))[0, curve])

    ends = value(a), value(b)
    if ends[0] * ends[1] >= 0:
        return a if abs(ends[0]) <= abs(ends[1]) else b
    return root_scalar(value, bracket=(a, b), xtol=1e-300, rtol=4 * np.finfo(float).eps).root


def _distinct(found: list[tuple[float, int]]) -> list[tuple[float, int]]:
    """A zero on the border of two intervals is found in both."""
    kept: list[tuple[float, int]] = []
    for w, curve in found:
        if not any(curve == other and w - at <= _NARROWEST * w for at, other in kept[-4:]):
            kept.append((w, curve))
    return kept


class Margin(NamedTuple):
    """A margin and its frequency [rad/s]; inf and None where nothing crosses."""

    value: float
    frequency: float | None


class Margins(NamedTuple):
    """Distances from instability under negative feedback.

    Parameters
    ----------
    stable : bool
        Whether the closed loop is, by its roots. Where it is not, margins are distances to a crossing, not reserves.
    gain : Margin
        Factor, nearest to 1 on a logarithmic scale, at which L would pass through -1.
    phase : Margin
        [rad], pi + arg L at |L| = 1, the nearest to 0, in (-pi, pi].
    delay : Margin
        [s], the least additional delay with which L passes through -1.
    gain_crossings, phase_crossings : ndarray
        [rad/s], all frequencies with |L| = 1; those with L < 0, as far up as the gain margin needs.
    """

    stable: bool
    gain: Margin
    phase: Margin
    delay: Margin
    gain_crossings: Array
    phase_crossings: Array


@constructor()
@dataclasses.dataclass(frozen=True, eq=False)
class DelayLoop:
    """An open loop: x' = A0 x + sum A_k x(t - tau_k) + sum_j B_j u(t - input_delay_j), y = C x; closed by u = -y.

    Parameters
    ----------
    system : DelaySystem
        A single one.
    B : array_like
        (J, n), one row for each input delay.
    input_delay : array_like
        (J,) [s].
    C : array_like
        (n,)

    Raises
    ------
    InputError
        If shapes do not belong together, or a number is not finite, or a delay is negative.
    """

    system: DelaySystem
    B: Array
    input_delay: Array
    C: Array

    def __post_init__(self) -> None:
        if self.system.shape:
            raise InputError(f"system: a batch of shape {self.system.shape}; give one system, system[i]")
        n = self.system.order
        B, delays, C = real("B", self.B), real("input_delay", self.input_delay), real("C", self.C)
        if B.ndim != 2 or B.shape[1] != n or not len(B):
            raise InputError(f"B: shape {B.shape}; give one row of {n} numbers for each input delay, (J, {n})")
        if delays.shape != (len(B),):
            raise InputError(f"input_delay: shape {delays.shape}; give one delay per row of B, ({len(B)},)")
        if (delays < 0).any():
            raise InputError(f"input_delay: {delays.min():g} s; give delays of 0 s or more")
        if C.shape != (n,):
            raise InputError(f"C: shape {C.shape}; give one number per state, ({n},)")
        for name, value in (("B", B), ("input_delay", delays), ("C", C)):
            object.__setattr__(self, name, value)

    @public()
    def response(self, frequency: ArrayLike) -> Array:
        """L(i w) = C Delta(i w)^-1 sum_j B_j e^(-i w input_delay_j).

        Parameters
        ----------
        frequency : array_like
            w [rad/s], of any shape; not where the open loop has a root on the axis.

        Returns
        -------
        ndarray
            Complex, the same shape.

        Raises
        ------
        InputError
            If the response is infinite.
        """
        s = 1j * np.asarray(frequency, float)
        system, B, C = self._balanced
        driven = np.exp(-s[..., None] * self.input_delay) @ B
        try:
            return np.linalg.solve(system.characteristic(s), driven[..., None])[..., 0] @ C
        except np.linalg.LinAlgError:
            raise InputError("frequency: the open loop has a root at one of them; leave it out") from None

    @public()
    def closed(self, gain: float = 1.0, delay: float = 0.0) -> DelaySystem:
        """The system with u(t) = -gain y(t - delay).

        Parameters
        ----------
        gain : float
            Of the feedback.
        delay : float
            Added to the loop [s].

        Returns
        -------
        DelaySystem
        """
        feedback = -gain * self.B[:, :, None] * self.C
        return DelaySystem(
            self.system.A0,
            np.concatenate([self.system.A, feedback]),
            np.concatenate([self.system.tau, self.input_delay + delay]),
        )

    @public()
    def margins(self) -> Margins:
        """Gain, phase and delay margin, from all crossings.

        Returns
        -------
        Margins

        Notes
        -----
        No crossing lies above the bound on the roots of the closed loop, whatever the phase. Where L < 0 is sought up
        to the bound for the gain margin found so far, and none above 1e6 is. Crossings are refined on the exact
        response to rounding.
        """
        longest = float(self.system.tau.max(initial=0.0) + self.input_delay.max())

        def magnitude(w: Array) -> Array:
            return np.log(np.maximum(np.abs(self.response(w)), 1e-300))[:, None]

        def across(w: Array) -> Array:
            L = self.response(w)
            return np.where(np.abs(L) > 1e-300, L.imag / np.maximum(np.abs(L), 1e-300), 1.0)[:, None]

        high = 1.0001 * float(self.closed().bound(0.0))
        poles = roots(self.system, 2 * self.system.order, threads=1).s
        sampled = grid(poles, longest, high)
        unit = np.array([w for w, _ in crossings(magnitude, sampled)]) if high > 0 else np.empty(0)
        phase = delay = Margin(np.inf, None)
        if unit.size:
            angles = np.angle(-self.response(unit))  # pi + arg L, in (-pi, pi]
            i, waits = int(np.argmin(np.abs(angles))), angles % (2 * np.pi) / unit
            phase = Margin(float(angles[i]), float(unit[i]))
            delay = Margin(float(waits.min()), float(unit[np.argmin(waits)]))
        negative, gain = np.empty(0), 1.0
        while high > 0:
            negative = np.array([w for w, _ in crossings(across, sampled)])
            negative = negative[self.response(negative).real < 0] if negative.size else negative
            if self._static() < 0:
                negative = np.concatenate([[0.0], negative])
            # Every crossing with a factor up to gain is found: none that is still missing is nearer to 1 than these.
            if _nearest_to_one(1 / np.abs(self.response(negative))) <= gain or gain >= _LARGEST_GAIN:
                break
            gain *= _GAIN_STEP
            sampled = grid(poles, longest, 1.0001 * float(self.closed(gain).bound(0.0)))
        least = Margin(np.inf, None)
        if negative.size:
            factors = 1 / np.abs(self.response(negative))
            i = int(np.argmin(np.abs(np.log(factors))))
            least = Margin(float(factors[i]), float(negative[i]))
        return Margins(self._stable(), least, phase, delay, unit, negative)

    @public()
    def plot(self, frequency: ArrayLike | None = None, *, title: str | None = None) -> Any:
        """Bode and Nyquist diagrams with the crossings that the margins come from.

        ``frequency`` (m,) [rad/s]: two decades below the crossings to one above if not given.

        Parameters
        ----------
        frequency : array_like
            At which to draw [rad/s]; where it matters if not given.
        title : str
            Above the picture; one that says what it is if not given.

        Returns
        -------
        fluidcc.plotting.style.Picture
        """
        return draw("plot_loop", self, None if frequency is None else np.asarray(frequency, float), title=title)

    @public()
    def to_control(self, frequency: ArrayLike) -> Any:
        """The response at these frequencies (m,) [rad/s] as `control.FrequencyResponseData`, for its plots.

        Parameters
        ----------
        frequency : array_like, shape (m,)
            [rad/s].

        Returns
        -------
        control.FrequencyResponseData

        Raises
        ------
        InputError
            If python-control is not installed.
        """
        try:
            from control import frd  # pyright: ignore[reportMissingImports, reportAttributeAccessIssue]
        except ImportError:
            raise InputError(
                "to_control: needs python-control; install it with: pip install 'fluidcc[control]'"
            ) from None
        frequency = np.asarray(frequency, float)
        return frd(self.response(frequency), frequency)

    def _stable(self) -> bool:
        closed = self.closed()
        found = abscissa(closed, threads=1)
        return bool(found.value < 0 and (found.state == "ok" or count_right(closed) == 0))

    @functools.cached_property
    def _balanced(self) -> tuple[DelaySystem, Array, Array]:
        """System, B and C with states scaled such that the loop's rows and columns are alike."""
        closed = self.closed()
        (scale,) = balance((np.abs(closed.A0) + np.abs(closed.A).sum(axis=0))[None])
        ratio = scale / scale[:, None]
        return (
            DelaySystem(self.system.A0 * ratio, self.system.A * ratio, self.system.tau),
            self.B / scale,
            self.C * scale,
        )

    def _static(self) -> float:
        """L(0); 0 where the open loop has a root there."""
        system = self._balanced[0]
        if np.linalg.svd(system.characteristic(0.0), compute_uv=False)[-1] <= 1e-12 * system.size(0.0):
            return 0.0
        return float(self.response(0.0).real)


def _nearest_to_one(factors: Array) -> float:
    """The least factor, or reciprocal of one."""
    return float(np.exp(np.abs(np.log(factors)).min(initial=np.inf)))


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
