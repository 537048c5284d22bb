"""Grids of values that a switch or a NIC takes: a parameter's least and largest value, and the step, in SI."""

from __future__ import annotations

import math
from typing import NamedTuple


class Grid(NamedTuple):
    """Values of a parameter that a device takes: multiples of ``step`` from ``low`` to ``high``."""

    low: float
    high: float
    step: float


_US, _MBPS, _BINARY = 1e-6, 1e6 / 8, 1 / 1024

GRIDS: dict[str, Grid] = {
    "kmin": Grid(1e3, 1e9, 1e3),
    "kmax": Grid(1e3, 1e9, 1e3),
    "pmax": Grid(0.01, 1.0, 0.01),
    "g": Grid(1 / 1024, 1.0, 1 / 1024),
    "timer": Grid(_US, 131071 * _US, _US),
    "alpha_timer": Grid(_US, 131071 * _US, _US),
    "cnp_interval": Grid(_US, 131071 * _US, _US),
    "rate_decrease_interval": Grid(_US, 131071 * _US, _US),
    "fast_recovery_steps": Grid(1.0, 31.0, 1.0),
    "initial_alpha": Grid(0.0, 1023 / 1024, 1 / 1024),
    "max_decrease": Grid(0.0, 1.0, 0.01),
    "byte_counter": Grid(1.0, 32767.0, 1.0),
    "rate_ai": Grid(_MBPS, 131071 * _MBPS, _MBPS),
    "rate_hai": Grid(_MBPS, 131071 * _MBPS, _MBPS),
    "min_rate": Grid(_MBPS, 131071 * _MBPS, _MBPS),
    "max_rate": Grid(_MBPS, 131071 * _MBPS, _MBPS),
    "rate_on_first_cnp": Grid(_MBPS, 131071 * _MBPS, _MBPS),
}

_DIGITS = 2  # of a value that one types


def typed(name: str, value: float) -> float:
    """Round a value as one would type it: two digits of its unit, or a power of two where the register counts in these.

    Parameters
    ----------
    name : str
        Of `GRIDS`.
    value : float
        In SI.

    Examples
    --------
    >>> typed("kmin", 182_345.0), typed("pmax", 0.148), typed("g", 0.03), typed("rate_ai", 13.4e6 / 8) * 8
    (180000.0, 0.15, 0.03125, 13000000.0)
    """
    if value <= 0:
        return value
    if GRIDS[name].step == _BINARY:
        return float(2.0 ** round(math.log2(value)))
    unit = 1 / 8 if GRIDS[name].step == _MBPS else 1.0  # of rates people type bits
    return float(f"{value / unit:.{_DIGITS}g}") * unit
