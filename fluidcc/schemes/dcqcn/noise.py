"""Random motion of a DCQCN flow that is marked with a constant probability: the spectrum of its rate and alpha.

CNPs come at least tau apart (Fig. 6): at the end of an interval in which a mark came, else with the next mark. So they
are a renewal process, not a Poisson one. Every CNP sets R_T to R_C and restarts timer and byte counter: between two
CNPs the rate follows one curve (Fig. 7), cut short by the next. From CNP to CNP the flow then adds up independent
pieces of it, whose spectrum is known at every frequency; for a count of CNPs it is, at frequency 0, sigma^2/mean^3 (Cox
1962, Renewal Theory). It has all jumps of the flow, those of timers and counters too, whose number depends on the gap:
a long one regains more than the mean.

A piece begins at R_T = R_C and alpha of the equilibrium, so R_C and R_T move alike by it: what is recovered within a
gap is in the piece, and must not be recovered once more by the linear system that it drives.

Left out: that the rate, and with it the intensity of marks, moves within a piece; whole packets; limits of rates.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from fluidcc.errors import NoClosedFormError
from fluidcc.schemes.dcqcn.parameters import DCQCN

Array = np.ndarray[Any, Any]

_LONGEST = 25.0  # mean times to a mark after tau: one gap in 7e10 is longer
_MOST = 20_000  # jumps of a piece: some 10 MB at 21 frequencies


@dataclasses.dataclass(frozen=True)
class Gap:
    """Time between two CNPs of a flow whose packets are marked with a constant intensity.

    Parameters
    ----------
    least : float
        CNP interval tau [s].
    intensity : float
        Marks per second.
    """

    least: float
    intensity: float

    @property
    def unmarked(self) -> float:
        """Probability that no mark comes in an interval."""
        return math.exp(-self.intensity * self.least)

    @property
    def mean(self) -> float:
        """[s]; (7)-(9) have tau/(1 - exp(-lambda tau)), as if a late CNP still waited for an interval's end."""
        return self.least + self.unmarked / self.intensity

    @property
    def variance(self) -> float:
        """[s^2]."""
        return self.unmarked * (2.0 - self.unmarked) / self.intensity**2

    def longer(self, time: Array, frequency: Array) -> Array:
        """E[exp(i w X); X > t] for the gap X, (frequencies, times); at w = 0 the probability that it is longer."""
        w = np.asarray(frequency, float)[:, None]
        late = self.unmarked * np.exp(1j * w * self.least) * self.intensity / (self.intensity - 1j * w)
        past = np.exp(-(self.intensity - 1j * w) * np.maximum(time - self.least, 0.0))
        return np.where(time < self.least, (1.0 - self.unmarked) * np.exp(1j * w * self.least) + late, late * past)

    def shortfall(self, frequency: Array) -> Array:
        """1 - E[exp(i w X)], to rounding where w is small."""
        w = np.asarray(frequency, float)
        turn = 1j * w * self.least
        return -np.expm1(turn) - self.unmarked * np.exp(turn) * 1j * w / (self.intensity - 1j * w)


@dataclasses.dataclass(frozen=True, eq=False)
class Pieces:
    """Jumps that begin with each CNP and end with the next, as noise.

    Parameters
    ----------
    gap : Gap
    time : ndarray
        (jumps,) since the CNP, in order [s].
    jump : ndarray
        (jumps, 3) of R_C, R_T [bytes/s] and alpha.
    """

    gap: Gap
    time: Array
    jump: Array

    def mean(self) -> Array:
        """Compute the mean sum of a piece's jumps, (3,); 0 if the flow rests as the algorithm has it."""
        return self._longer @ self.jump

    def __call__(self, frequency: Array) -> Array:
        """Spectral density (frequencies, 3, 3) of the sum of all pieces, less its mean; two-sided, w > 0 [rad/s]."""
        turned = np.exp(-1j * frequency[:, None] * self.time)[..., None] * self.jump
        sums = np.cumsum(turned, axis=1)  # of a gap that ends after this jump and before the next
        ends = self._longer - np.append(self._longer[1:], 0.0)
        power = np.einsum("k,wki,wkj->wij", ends, sums, sums.conj())
        mean = np.einsum("k,wki->wi", self._longer, turned)
        # A piece and all that follow: E[F exp(i w X)] E[F]* (1 + psi + psi^2 + ...), psi = E[exp(i w X)].
        with_gap = np.einsum("wk,wki->wi", self.gap.longer(self.time, frequency), turned)
        later = with_gap[:, :, None] * mean[:, None, :].conj() / self.gap.shortfall(frequency)[:, None, None]
        return (power + later + later.conj().swapaxes(1, 2)) / self.gap.mean

    @property
    def _longer(self) -> Array:
        return self.gap.longer(self.time, np.zeros(1))[0].real


def noise(parameters: DCQCN, state: Mapping[str, float], marking: float, packet: float) -> Pieces:
    """Noise that drives R_C, R_T and alpha of a flow at its equilibrium.

    Parameters
    ----------
    parameters : DCQCN
        Plain numbers.
    state : mapping
        ``rate`` [bytes/s] and ``alpha`` there.
    marking : float
        Probability of a mark along the path.
    packet : float
        On the wire [bytes].

    Returns
    -------
    Pieces

    Raises
    ------
    NoClosedFormError
        If CNPs do not restart the flow's increases, or there is no mark.
    """
    p, rate = parameters, state["rate"]
    if not p.clamp_tgt_rate:
        raise NoClosedFormError("without clamp_tgt_rate a cut may keep its target, and gaps between CNPs are not alike")
    if p.alpha_update != "restarted":
        raise NoClosedFormError("slots of alpha do not begin with CNPs")
    if p.rate_decrease_interval > p.cnp_interval:
        raise NoClosedFormError("cuts are further apart than CNPs")
    if not 0.0 < marking < 1.0:
        raise NoClosedFormError("nothing is left to chance: no packet is marked, or every one")
    gap = Gap(p.cnp_interval, -math.log1p(-marking) * rate / packet)
    end = gap.least + _LONGEST / gap.intensity
    if end * (1.0 / p.timer + rate / p.byte_counter + 1.0 / p.alpha_timer) > _MOST:
        raise NoClosedFormError(f"marks are so rare that more than {_MOST} increases may come between two CNPs")
    rates, alphas = _rates(p, rate, state["alpha"], end), _alphas(p, state["alpha"], end)
    time = np.concatenate([rates[0], alphas[0]])
    jump = np.zeros((len(time), 3))
    jump[: len(rates[0]), :2] = rates[1][:, None]
    jump[len(rates[0]) :, 2] = alphas[1]
    order = np.argsort(time, kind="stable")
    return Pieces(gap, time[order], jump[order])


def _rates(p: DCQCN, rate: float, alpha: float, end: float) -> tuple[Array, Array]:
    """Compute when R_C jumps after a CNP, and by how much [bytes/s]: the cut (1), then Fig. 7's increases."""
    by_timer = np.arange(1, int(end / p.timer) + 1) * p.timer
    by_bytes = np.arange(1, int(end * rate / p.byte_counter) + 1) * p.byte_counter / rate
    target, now = rate, rate * (1.0 - min(p.decrease_gain * alpha, p.max_decrease))
    times, jumps, stages = [0.0], [now - rate], [0, 0]
    for time, which in sorted([(t, 0) for t in by_timer.tolist()] + [(t, 1) for t in by_bytes.tolist()]):
        stages[which] += 1
        if max(stages) > p.fast_recovery_steps:
            hyper = p.hyper_increase and min(stages) > p.fast_recovery_steps
            target += p.rate_hai if hyper else p.rate_ai
        times.append(time)
        jumps.append((target - now) / 2)
        now += jumps[-1]
    return np.array(times), np.array(jumps)


def _alphas(p: DCQCN, alpha: float, end: float) -> tuple[Array, Array]:
    """Compute when alpha jumps, and by how much: up (1), then down at each end of its timer (2)."""
    up, periods = p.g * (1.0 - alpha), int(end / p.alpha_timer)
    downs = -p.g * (alpha + up) * (1.0 - p.g) ** np.arange(periods)
    return np.arange(periods + 1) * p.alpha_timer, np.append(up, downs)
