"""Equilibrium of a DCQCN flow under a constant marking probability: (7)-(9) with their left sides at zero.

Written in NumPy, independently of the fluid model, so that each checks the other.

At a rate R the growth (R_T - R) recovery falls with the marking, and the cut R depth cut rises: one marking holds it.
Conversely, one marking may hold several rates, where a faster flow grows faster (section 5.2: a small byte
counter with a slow timer). Flows that are marked alike may then differ for good.

For NVIDIA's NICs the means are those of the fluid model. A cut that keeps its target leaves a larger gap R_T - R to
recover: at the fixed point it is increase/fall, and the fall is (1-p)^m/2 of the cuts, m packets to an increase.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import root_scalar

from fluidcc.schemes.dcqcn.fluid import State
from fluidcc.schemes.dcqcn.noise import noise as noise
from fluidcc.schemes.dcqcn.parameters import DCQCN

_LEAST_RATE = 1e-9  # of the line rate, where there is no other limit
_HAZARDS = 1e-18, 27.6  # -ln(1-p) searched: to a probability of 1 - 1e-12
_HALVINGS = 70  # of their logarithms' range: to rounding


class FixedPoint(NamedTuple):
    """State of a flow at equilibrium: rates [bytes/s] and alpha."""

    rate: float
    target_rate: float
    alpha: float

    def observables(self) -> dict[str, float]:
        """Keys as `fluidcc equilibrium` shows them."""
        return {"alpha": self.alpha, "target_rate_bytes_per_s": self.target_rate}


def largest_rate(parameters: DCQCN, line_rate: float) -> float:
    """Largest rate of a flow that has a line rate [bytes/s]."""
    return line_rate if parameters.max_rate is None else min(parameters.max_rate, line_rate)


def least_rate(parameters: DCQCN, line_rate: float) -> float:
    """Least rate of a flow that has a line rate [bytes/s]."""
    return min(max(parameters.min_rate, _LEAST_RATE * line_rate), line_rate)


def solve_equilibrium(parameters: DCQCN, marking: float, line_rate: float, packet: float) -> FixedPoint:
    """A rate at which a flow settles, between its least rate and the line rate; there may be others.

    Parameters
    ----------
    parameters : DCQCN
        Plain numbers.
    marking : float
        Probability of a mark along the path.
    line_rate, packet : float
        NIC's rate [bytes/s], packet on the wire [bytes].
    """
    line_rate = largest_rate(parameters, line_rate)
    if marking <= 0:
        return FixedPoint(line_rate, line_rate, 0.0)
    low, hazard = least_rate(parameters, line_rate), -math.log1p(-min(marking, 1 - 2.0**-53))

    def surplus(log_rate: float) -> float:
        return float(_balance(parameters, hazard, math.exp(log_rate), line_rate, packet)[0])

    if low == line_rate or surplus(math.log(low)) <= 0:
        rate = low
    elif surplus(math.log(line_rate)) >= 0:
        rate = line_rate  # but for rounding
    else:
        span = math.log(low), math.log(line_rate)
        rate = min(math.exp(root_scalar(surplus, bracket=span, xtol=1e-15, rtol=1e-14).root), line_rate)
    return fixed_point(parameters, rate, marking, line_rate, packet)


def fixed_point(parameters: DCQCN, rate: float, marking: float, line_rate: float, packet: float) -> FixedPoint:
    """State of a flow that a marking holds at a rate."""
    line_rate = largest_rate(parameters, line_rate)
    if marking <= 0:
        return FixedPoint(rate, line_rate, 0.0)
    hazard = -math.log1p(-min(marking, 1 - 2.0**-53))
    _, gap, alpha = _balance(parameters, hazard, rate, line_rate, packet)
    return FixedPoint(rate, min(rate + float(gap), line_rate), float(alpha))


def marking_at(parameters: DCQCN, rate: Any, line_rate: float, packet: float) -> Any:
    """Probability of a mark that holds a flow at each of some rates; there is one.

    Parameters
    ----------
    parameters : DCQCN
        Plain numbers.
    rate : array_like
        At least `least_rate` and below the line rate [bytes/s].
    line_rate, packet : float
        NIC's rate [bytes/s], packet on the wire [bytes].

    Returns
    -------
    ndarray
        Of the rates' shape; 0 where the rate falls whatever is marked, 1 where it grows even if all is.
    """
    rate = np.asarray(rate, float)
    low, high = (np.full(rate.shape, math.log(end)) for end in _HAZARDS)
    falls = _balance(parameters, np.exp(low), rate, line_rate, packet)[0] < 0
    grows = _balance(parameters, np.exp(high), rate, line_rate, packet)[0] > 0
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        above = _balance(parameters, np.exp(middle), rate, line_rate, packet)[0] > 0
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.where(falls, 0.0, np.where(grows, 1.0, -np.expm1(-np.exp(0.5 * (low + high)))))


def single_marking(parameters: DCQCN) -> bool:
    """Check whether `marking_at` is the only one: increase events fall with the marking, hyper increases give no less.

    And where cuts may keep their target, the growth of targets falls no slower with the marking than the share of cuts
    that lower them: (1-p)^(F m) against (1-p)^m, with the same m if increases by the timer count.
    """
    p = parameters
    grows = not p.hyper_increase or bool(p.rate_hai >= p.rate_ai)
    return grows and (p.clamp_tgt_rate or (p.clamp_tgt_rate_after_time_inc and bool(p.fast_recovery_steps >= 1)))


def _balance(p: DCQCN, hazard: Any, rate: Any, line_rate: float, packet: float) -> tuple[Any, Any, Any]:
    """Log of growth over cut of the rate, R_T - R [bytes/s] and alpha, from the paper's a to e.

    The hazard is -ln(1-p). Growth and cut are compared as logarithms, since (1-p)^-B overflows; -1e300 stands for
    that of 0.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        r, rate_ai, rate_hai = (x / packet for x in (rate, p.rate_ai, p.rate_hai))
        counter, timer = p.byte_counter / packet, p.timer * r
        log_p, steps = np.log(-np.expm1(-hazard)), p.fast_recovery_steps
        apart = max(p.cnp_interval, p.rate_decrease_interval)
        a = -np.expm1(-apart * r * hazard)
        log_kept = np.log(apart / a)  # for how long the target keeps what it grows by
        if not p.clamp_tgt_rate:  # ours: cuts before which an increase came lower it, by the half of the gap left then
            first = np.minimum(counter, timer) if p.clamp_tgt_rate_after_time_inc else counter
            log_kept = log_kept + first * hazard + np.log(2.0)
        log_b, log_d = (log_p - n * hazard - np.log(-np.expm1(-n * hazard)) for n in (counter, timer))
        log_c, log_e = (log - steps * n * hazard for log, n in ((log_b, counter), (log_d, timer)))
        both = np.logaddexp(log_b, log_d)
        log_increase = np.log(rate_ai * r) + np.logaddexp(log_c, log_e)
        if p.hyper_increase:  # ours: the rest of R_HAI once both stages are through
            both_through = both - steps * np.maximum(counter, timer) * hazard
            more = np.log(abs(rate_hai - rate_ai) * r) + both_through
            less = np.log1p(-np.minimum(np.exp(more - log_increase), 1.0))
            log_increase = np.logaddexp(log_increase, more) if rate_hai >= rate_ai else log_increase + less
        log_gap = np.minimum(log_increase + log_kept, np.log((line_rate - rate) / packet))  # R_T <= line rate
        alpha = -np.expm1(-max(p.cnp_interval, p.alpha_timer) * r * hazard)
        alpha = min(p.alpha_timer / p.cnp_interval, 1.0) * alpha
        depth = np.minimum(p.decrease_gain * alpha, p.max_decrease)
        surplus = log_gap + both - np.log(2.0) - np.log(depth * a / apart)
    return np.nan_to_num(surplus, nan=-1e300, posinf=1e300, neginf=-1e300), packet * np.exp(log_gap), alpha


MOVES = State._fields


def smooth(parameters: DCQCN) -> bool:
    """Check whether nothing changes in jumps at equilibrium, so that the equations can be linearised."""
    return True
