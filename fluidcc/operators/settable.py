"""What can be typed into a switch or a NIC: least and largest value of a parameter, and the step between, in SI."""

from __future__ import annotations

from typing import NamedTuple


class Grid(NamedTuple):
    """Values of a parameter that a device takes: multiples of ``step`` from ``low`` to ``high``."""

    low: float
    high: float
    step: float


_US, _MBPS = 1e-6, 1e6 / 8

GRIDS: dict[str, Grid] = {
    "kmin": Grid(1e3, 1e9, 1e3),
    "kmax": Grid(1e3, 1e9, 1e3),
    "pmax": Grid(0.01, 1.0, 0.01),
    "g": Grid(1 / 1024, 1.0, 1 / 1024),
    "timer": Grid(_US, 131071 * _US, _US),
    "byte_counter": Grid(1.0, 32767.0, 1.0),
    "rate_ai": Grid(_MBPS, 131071 * _MBPS, _MBPS),
    "rate_hai": Grid(_MBPS, 131071 * _MBPS, _MBPS),
}
