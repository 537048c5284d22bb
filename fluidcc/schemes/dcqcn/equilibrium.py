"""Where a DCQCN flow settles under a constant marking probability: (7)-(9) with their left sides at zero.

Written in plain floats, apart from the fluid model, so that each checks the other.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from scipy.optimize import root_scalar

from fluidcc.schemes.dcqcn.fluid import State
from fluidcc.schemes.dcqcn.parameters import DCQCN


class FixedPoint(NamedTuple):
    """State of a flow at equilibrium: rates [bytes/s] and alpha."""

    rate: float
    target_rate: float
    alpha: float

    def observables(self) -> dict[str, float]:
        """Keys as `fluidcc equilibrium` shows them."""
        return {"alpha": self.alpha, "target_rate_bytes_per_s": self.target_rate}


def solve_equilibrium(parameters: DCQCN, marking: float, line_rate: float, packet: float) -> FixedPoint:
    """Rate at which a flow settles, between its least rate and the line rate.

    With p the marking probability and R the rate: (8) gives R_T - R = increase/cut, (7) alpha, and (9) demands
    (R_T - R) recovery = R depth cut; the left side exceeds the right at small R.

    Parameters
    ----------
    parameters : DCQCN
        Plain numbers.
    marking : float
        Probability of a mark along the path.
    line_rate, packet : float
        NIC's rate [bytes/s], packet on the wire [bytes].
    """
    low = min(max(parameters.min_rate, 1e-9 * line_rate), line_rate)

    def surplus(log_rate: float) -> float:
        pull, push, _ = _balance(parameters, marking, math.exp(log_rate), packet)
        return math.log(max(pull, 1e-300)) - math.log(max(push, 1e-300))

    if marking <= 0 or surplus(math.log(line_rate)) >= 0:
        rate = line_rate
    elif surplus(math.log(low)) <= 0:
        rate = low
    else:
        span = math.log(low), math.log(line_rate)
        rate = math.exp(root_scalar(surplus, bracket=span, xtol=1e-15, rtol=1e-14).root)
    if marking <= 0:
        return FixedPoint(rate, line_rate, 0.0)
    _, _, at = _balance(parameters, marking, rate, packet)
    return FixedPoint(rate, min(at.target_rate, line_rate), at.alpha)


def _balance(p: DCQCN, marking: float, rate: float, packet: float) -> tuple[float, float, FixedPoint]:
    """Growth and cut of the rate [packets/s^2] and the rest of the state, from the paper's a to e."""
    log = math.log1p(-min(marking, 1 - 2.0**-53))
    r, rate_ai, rate_hai = (x / packet for x in (rate, p.rate_ai, p.rate_hai))
    counter = p.byte_counter / packet
    timer = p.timer * r
    a = -math.expm1(p.cnp_interval * r * log)
    b = marking * _one_over_expm1(-counter * log)
    d = marking * _one_over_expm1(-timer * log)
    steps = p.fast_recovery_steps
    c, e = b * math.exp(steps * counter * log), d * math.exp(steps * timer * log)
    increase = rate_ai * r * (c + e)
    if p.hyper_increase:
        increase += (rate_hai - rate_ai) * r * math.exp(steps * max(counter, timer) * log) * (b + d)
    share = p.alpha_timer / p.cnp_interval
    alpha = share * a if share < 1 else -math.expm1(p.alpha_timer * r * log)
    gap = increase * p.cnp_interval / a
    pull = gap * r * (b + d) / 2
    push = r * min(p.decrease_gain * alpha, p.max_decrease) * a / p.cnp_interval
    return pull, push, FixedPoint(rate, (r + gap) * packet, alpha)


def _one_over_expm1(x: float) -> float:
    """1/(e^x - 1), 0 where e^x overflows."""
    return 0.0 if x > 700 else 1.0 / math.expm1(x)


MOVES = State._fields


def smooth(parameters: DCQCN) -> bool:
    """Whether nothing changes in jumps at equilibrium, so that there is something to linearise."""
    return True
