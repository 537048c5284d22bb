"""Records of the hybrid, written by hand: a link, a hop, a flow, and what was asked of rules that are replaced."""

from __future__ import annotations

import math
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np

from fluidcc.engines.hybrid import queue
from fluidcc.engines.hybrid.layout import FIRST, LISTENING, NEVER
from tests.engines.packet.plain import plain

RATE, PACKET = 100.0, 10.0  # bytes a second, and bytes
LEAVES = 4
GAP = 0.5  # of CNPs


def link_of(**values: Any) -> Any:
    """A link at 2 s with 50 bytes of queue that grows by 20 a second: what joins now leaves at 2.5 s."""
    known = {
        "number": 0, "at": 2.0, "rate": RATE, "arriving": 120.0, "queue": 50.0, "slope": 20.0, "on_departure": 0,
        "zone": FIRST, "top": 2, "likely": 2,
        "chance": 0.25, "per_packet": -math.log1p(-0.25), "hazard": 7.0, "draining": 0.5,
        "tree": 0, "leaves": LEAVES, "first": 0, "hops": 2, "after": 0.25, "head": 0, "stored": 0, "left": 0,
        "transit": 0, "transit_head": 0, "watch": NEVER, "queues": [0.0, 40.0, 80.0, math.inf],
        "chances": [0.0, 0.0, 0.5, 1.0], "reading": 0, "onward": 0, "meeting": np.linspace(0, 0.1, queue.LOADS + 2),
    }  # fmt: skip
    return SimpleNamespace(**{**known, **values})


def hop_of(**values: Any) -> Any:
    known = {
        "flow": 0, "link": 0, "place": 1, "last": 1, "packet": PACKET, "rate": 60.0, "at": 1.0, "came": 200.0,
        "mark_rate": 40.0, "mark_at": 1.0, "mark_came": 203.0, "wait": LISTENING, "left": 5.0, "hazard": 6.0,
        "draws": 3,
    }  # fmt: skip
    return SimpleNamespace(**{**known, **values})


def flow_of(**values: Any) -> Any:
    known = {
        "state": 2, "total": 500.0, "beyond": 0.5, "answer": 0.75, "finish": NEVER, "followers": 0, "followers_end": 0,
        "next_ended": -1, "deaf": 0.0, "cnp_next": 0.0, "cnp_interval": GAP, "nic_cnp_interval": 0.0, "head": 0,
        "waiting": 0, "back": 1.0, "request": NEVER, "first_mark": 0, "marks": 0, "nic": 1,
        "acked_open": -1.0, "acked_close": -1.0, "first": 0, "rate": 40.0, "pace": 40.0, "line_rate": RATE,
        "burst": PACKET, "sent": 203.0, "gone": 200.0, "counter": NEVER, "counted": NEVER, "repace": NEVER,
    }  # fmt: skip
    return SimpleNamespace(**{**known, **values})


def core_of(**values: Any) -> Any:
    return SimpleNamespace(**{"ended": 0, "seed": 5, "status": 0, "now": 2.0, "opens": 0.0, "closes": 9.0, **values})


def trees() -> Any:
    return np.full((3, 2 * LEAVES), NEVER)


class Calls:
    """Stands for a module: writes down which of its functions were called, and with what."""

    def __init__(self) -> None:
        self.made: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *given: self.made.append((name, *given))


def replaced(function: Any, **names: Any) -> Any:
    """A rule as plain Python, some of whose names stand for others."""
    source = plain(function)
    return FunctionType(source.__code__, source.__globals__ | names)
