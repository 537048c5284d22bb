"""Horizon, window and seed of a run, as they are given."""

from __future__ import annotations

from typing import Any

from fluidcc.engines.common.bounds import MOST_TIME
from fluidcc.errors import InputError
from fluidcc.units import TIME, interval, quantity, show, whole


def seed_of(seed: int | None) -> int:
    """Return a checked seed, 0 by default.

    Raises
    ------
    InputError
        If it is none.
    """
    return 0 if seed is None else whole(seed, 0, (1 << 63) - 1, "seed", "; write for example seed=1")


def horizon_and_window(until: Any, window: Any) -> tuple[float, float, float]:
    """Horizon, and the window's edges [s]; its second half by default.

    Raises
    ------
    InputError
        If one of them makes no sense.
    """
    seconds, edges = quantity(until, TIME, "until"), interval(window, "window")
    if not 0 < seconds <= MOST_TIME:
        raise InputError(f"until: {show(seconds, TIME)} is no horizon; write for example 10ms")
    opens, closes = edges or (seconds / 2, seconds)
    if not 0 <= opens < closes <= seconds * (1 + 1e-9):
        raise InputError(
            f"window: {show(opens, TIME)}:{show(closes, TIME)} does not lie inside the run of {show(seconds, TIME)}; "
            f"write for example {show(seconds / 2, TIME)}:{show(seconds, TIME)}"
        )
    return seconds, opens, closes
