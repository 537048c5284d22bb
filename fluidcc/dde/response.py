"""Frequency response of a loop with delays, and its margins, with e^(-i w tau) as it is: no Padé approximation.

>>> integrator = DelaySystem([[0.0]], np.zeros((0, 1, 1)), [])
>>> loop = DelayLoop(integrator, B=[[2.0]], input_delay=[0.1], C=[1.0])  # 2 e^(-0.1 s) / s
>>> loop.margins().phase
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fluidcc.dde.axis_crossings import crossings, grid
from fluidcc.dde.characteristic import abscissa, roots
from fluidcc.dde.delay_system import Array, DelaySystem, balance, real
from fluidcc.dde.winding import count_right
from fluidcc.errors import InputError
from fluidcc.results.display import draw
from fluidcc.surface import constructor, public

_GAIN_STEP, _LARGEST_GAIN = 10.0, 1e6  # gain margins beyond are reported as none


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
