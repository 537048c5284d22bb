"""The linearisation of DCQCN that was published: ECN or Delay (Zhu, Ghobadi, Misra and Padhye, CoNEXT 2016).

It is not the model's own. (7)-(9) are expanded in p, with p* from the closed form of small p, 19 to 44 % above the
fixed point at the paper's settings. And five coefficients of nine are not those of the expanded equations: BB (of the
present rate) and CC (of the rate observed) stand in each other's place, EE has A R_AI in excess, alpha's pole is g R in
place of g/tau', and alpha observes no rates (proofs/dcqcn_loop.py). Margins differ from the equations' own by up to ten
degrees, and in sign: -6.43 against 1.92 degrees for 8 flows. It is here because it was published.

With A = 1/B + 1/(T R), h = 1/2 + A/4, k = N Pmax/(Kmax - Kmin), data in packets, the loop cut at the lag is
L(s) = exp(-s tau*) Num(s)/Den(s). |L| = 1 is a polynomial equation for w^2, so that no crossover is missed.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
from numpy.polynomial import Polynomial
from numpy.typing import ArrayLike, NDArray

from fluidcc.errors import InputError
from fluidcc.scenario.model import RED
from fluidcc.scenario.parameters import resolve
from fluidcc.schemes.dcqcn.parameters import DCQCN
from fluidcc.surface import public
from fluidcc.units import COUNT, RATE, SIZE, quantity

_REAL = 1e-7  # largest |imaginary/real part| of w^2 that is taken for a real root


@dataclasses.dataclass(frozen=True, eq=False)
class PublishedLoop:
    """Loop of N identical flows and their queue, as published; `published` makes it.

    Parameters
    ----------
    marking_probability : float
        p* by the closed form.
    queue : float
        Queue that marks with it on the RED line, extended beyond kmax if it must [bytes].
    on_ramp : bool
        Whether p* <= Pmax: beyond, (5) has no such queue, and all of this extrapolates.
    target_rate : float
        R_T* [bytes/s].
    alpha : float
    delay : float
        tau* [s].
    numerator, denominator : Polynomial
        Num and Den over a common scale, of s times ``unit``.
    unit : float
        Time in which s is counted [s].
    """

    marking_probability: float
    queue: float
    on_ramp: bool
    target_rate: float
    alpha: float
    delay: float
    numerator: Polynomial
    denominator: Polynomial
    unit: float

    def response(self, frequency: ArrayLike) -> NDArray[np.complex128]:
        """L(i w); the closed loop's characteristic equation is 1 + L = 0.

        Parameters
        ----------
        frequency : array_like
            w > 0 [rad/s], of any shape.

        Returns
        -------
        ndarray
            Complex, of that shape.
        """
        w = np.asarray(frequency, float)
        s = 1j * w * self.unit
        return np.exp(-1j * w * self.delay) * self.numerator(s) / self.denominator(s)

    def crossovers(self) -> NDArray[np.float64]:
        """Return all w > 0 with |L(i w)| = 1, rising [rad/s]: positive roots in w^2 of |Num|^2 - |Den|^2."""
        squares = (_squared(self.numerator) - _squared(self.denominator)).roots()
        real = squares[np.abs(squares.imag) <= _REAL * np.abs(squares)].real
        return np.sqrt(np.sort(real[real > 0])) / self.unit

    def phase_margins(self) -> NDArray[np.float64]:
        """180 degrees + arg L at each crossover, between -180 and 180 [degrees]."""
        return np.degrees(np.angle(-self.response(self.crossovers())))

    def phase_margin(self) -> float:
        """The least of them [degrees]; infinite if |L| crosses 1 nowhere."""
        return float(min(self.phase_margins(), default=math.inf))


@public()
def published(
    parameters: DCQCN | None = None,
    marking: RED | None = None,
    *,
    flows: Any = 2,
    rate: Any = DCQCN.default_rate,
    packet: Any = "1000B",
) -> PublishedLoop:
    """Linearise DCQCN as was published, N flows on one link; it is not the linearisation of `fluidcc`'s fluid.

    Parameters
    ----------
    parameters : DCQCN
        Table 14 and tau* = 50 us if not given. The published equations have no place for hyper increase, other cuts
        than alpha/2, floors, windows or the simulator's variant.
    marking : RED
        The paper's if not given.
    flows : number
        N.
    rate : quantity
        C, of the link [bytes/s].
    packet : quantity
        The unit in which the equations count data [bytes].

    Returns
    -------
    PublishedLoop

    Raises
    ------
    InputError
        If a value makes no sense or the equations have no place for it, the RED line is a step, tau* is not a number,
        or p* comes out at 1 or above.

    Notes
    -----
    ECN or Delay, CoNEXT 2016, the section on DCQCN's stability. p* is about
    (R_AI N^2/(tau' C^2) (1/B + N/(T C))^2)^(1/3), and R_T* = R (1 + (c+e) tau R_AI/a), alpha* = 1-(1-p*)^(tau' R)
    as at the fixed point of (7)-(9).

    Examples
    --------
    >>> round(published(flows=2).phase_margin(), 1)
    8.2
    """
    own = resolve(DCQCN() if parameters is None else parameters, "published: ")
    red = resolve(DCQCN.default_marking if marking is None else marking, "published: marking: ")
    _check(own, red)
    n, capacity, size = (
        _positive(value, dimension, name)
        for value, dimension, name in ((flows, COUNT, "flows"), (rate, RATE, "rate"), (packet, SIZE, "packet"))
    )
    # In packets from here on.
    C, R_AI, B = capacity / size, own.rate_ai / size, own.byte_counter / size
    g, F, T, tau, tau_prime = own.g, own.fast_recovery_steps, own.timer, own.cnp_interval, own.alpha_timer
    R = C / n
    A = 1 / B + 1 / (T * R)
    p = (R_AI / (tau_prime * R**2) * A**2) ** (1 / 3)
    if not 0 < p < 1:
        raise InputError(f"published: the closed form gives p* = {p:.4g}, which is no probability below 1")
    log = math.log1p(-p)
    a, alpha = -math.expm1(tau * R * log), -math.expm1(tau_prime * R * log)
    c, e = (p * math.exp((F + 1) * m * log) / -math.expm1(m * log) for m in (B, T * R))
    R_T = R * (1 + (c + e) * tau * R_AI / a)
    k = n * red.pmax / ((red.kmax - red.kmin) / size)
    h = 0.5 + A / 4
    S = A * R / 2 - h * p * R
    rise = 1 + 2 * F + A / 2
    AA = (-(R**2) * alpha / 2 - h * R * R_T + h * R**2) * k
    BB = -p * R * alpha / 2 - A * R / 2 + h * p * R
    CC = BB + A * R_T / 2 - h * p * R_T
    DD = -p * R**2 * g * C * k / 2
    EE = S * (p * R + A * R_AI)
    FF = S * (-p * R_T + p * R + A * R_AI - rise * R_AI * p)
    GG = S * (-R * R_T + R**2 - rise * R_AI * R) * k
    unit = tau_prime
    s = Polynomial([0, 1 / unit])
    slow, fast = n * s + g * C, s + p * R
    return PublishedLoop(
        marking_probability=p,
        queue=red.kmin + p / red.pmax * (red.kmax - red.kmin),
        on_ramp=p <= red.pmax,
        target_rate=R_T * size,
        alpha=alpha,
        delay=own.feedback_delay,
        numerator=(slow * fast * (AA + BB * s) + fast * DD + slow * (FF * s + GG)) * unit**3,
        denominator=s * slow * (-s * fast + fast * CC + EE) * unit**3,
        unit=unit,
    )


def _squared(polynomial: Polynomial) -> Polynomial:
    """|P(i w)|^2 as a polynomial in w^2, for a P with real coefficients: P(s) P(-s) at s^2 = -w^2."""
    coefficients = np.asarray(polynomial.coef, float)
    mirrored = coefficients.copy()
    mirrored[1::2] *= -1.0
    product = np.convolve(coefficients, mirrored)[::2]
    product[1::2] *= -1.0
    return Polynomial(product)


def _positive(value: Any, dimension: str, name: str) -> float:
    number = float(quantity(value, dimension, f"published: {name}"))
    if not 0 < number < math.inf:
        raise InputError(f"published: {name}: {value!r} is not positive and finite")
    return number


def _check(own: DCQCN, red: RED) -> None:
    """Refuse parameters and markings for which the published equations have no place.

    Raises
    ------
    InputError
        If one of them is set, or the feedback delay is not.
    """
    plain = DCQCN()
    nics = ("clamp_tgt_rate", "rate_decrease_interval", "rate_on_first_cnp", "max_rate")
    for name in ("hyper_increase", "decrease_gain", "max_decrease", "min_rate", "win", "variant", *nics):
        if getattr(own, name) != getattr(plain, name):
            raise InputError(
                f"published: the published equations have no {name} = {getattr(own, name)!r}; "
                f"write {name}={getattr(plain, name)!r}, or use the exact linearisation"
            )
    if own.feedback_delay is None:
        raise InputError("published: feedback_delay: the delays of a path are no tau*; write for example 50us")
    if red.kmax <= red.kmin:
        raise InputError("published: a marking step has no slope to linearise; write kmin < kmax")
