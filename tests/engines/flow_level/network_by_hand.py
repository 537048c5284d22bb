"""A small network of the flow level, written by hand: one path over two switches, there and back, and some slots."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fluidcc.engines.flow_level import layout
from fluidcc.engines.flow_level.layout import STEP, USED

DT, RATE, RECORDS, STEPS = 0.5, 100.0, 16, 10  # s, bytes/s, records kept, steps taken so far
# Ports 0 (a NIC), 1 and 2 lead there, 3 (a NIC), 4 and 5 back; switch 0 has ports 1 and 5, switch 1 has 2 and 4.
THERE, BACK = [[0, 1, 2]], [[3, 4, 5]]
NOW = STEPS * DT


def exactly(values: Any) -> Any:
    """Compare to rounding."""
    return pytest.approx(values, rel=1e-12, abs=1e-12)


def network(**values: Any) -> Any:
    """Make one path's standing values; some of them may be replaced."""
    known = {
        "there": THERE, "back": BACK, "hops": [3], "ack_share": [0.1], "rtt": [6.0], "kind": [0],
        "initial_rate": [80.0], "rate": [RATE] * 6, "marking": [[np.inf, np.inf, 1.0]] * 6,
        "joining": [True] * 6, "source": [-1, 0, 1, -1, 1, 0], "target": [0, 1, -1, 1, 0, -1], "xoff": [-1.0] * 6,
        "shared": [1000.0, 1000.0], "alpha": [0.5], "gap": [0.0], "pausing": [False], "dropping": [1e18],
        "used": np.arange(6),
    }  # fmt: skip
    given = {name: np.array(value) for name, value in {**known, **values}.items()}
    return layout.Net(**given)


def steps(slots: int = 3, used: int = 1, **values: Any) -> Any:
    """Memory after some steps, with slots of one path that have nothing under way."""
    net = network(**values)
    ports = layout.ports_of(len(net.rate), RECORDS)
    made = layout.slots_of(slots, net.there.shape[1], RECORDS)
    made.doing[:used] = layout.SENDING
    now = np.zeros(8, np.int64)
    now[STEP], now[USED] = STEPS, used
    return layout.Steps(
        net,
        ports,
        made,
        np.arange(slots),
        now,
        np.zeros(len(net.shared)),
        np.zeros(9, np.int32),
        np.zeros(len(net.rate)),
    )


def waits(of: list[Any], awaits: list[int]) -> tuple[Any, Any, Any, Any]:
    """Followers of each transfer, and what of it each waits for, as `Waits` has them."""
    at = np.cumsum([0, *map(len, of)])
    pairs = [pair for each in of for pair in each]
    return at, np.array([f for f, _ in pairs]), np.array([what for _, what in pairs]), np.array(awaits)


class Calls:
    """Stands for a function: writes down with what it was called."""

    def __init__(self, result: Any = None) -> None:
        self.made: list[Any] = []
        self.result = result

    def __call__(self, *given: Any) -> Any:
        self.made.append(given)
        return self.result


def flow(**values: Any) -> Any:
    """A transfer's record, with room for its path's ports."""
    zeros = {name: np.zeros(layout.HOPS) for name in ("queue", "output", "arriving", "capacity")}
    return SimpleNamespace(**{**zeros, **values})
