"""The hybrid's speed beside the packet engine's, in one run and on one core: ``python -m benchmarks.hybrid``.

Ratios of the loops' times for the same scenario and horizon, each the least of several runs, in turn; the cost of an
event from 2 to 512 flows; and a sweep on all cores.
"""

from __future__ import annotations

import dataclasses
import math
import time
from pathlib import Path
from typing import Any

import numpy as np

import fluidcc as fc
from fluidcc.engines.hybrid import run as hybrid
from fluidcc.engines.packet import run as packet
from fluidcc.engines.packet.build import prepare
from fluidcc.scenario.model import Scenario, resolve

ROUNDS = 5
FLOWS = (2, 8, 64, 512)
_LEAF = Path(__file__).parent.parent / "examples" / "leaf-100g"


def incast(flows: int) -> Scenario:
    """So many of the paper's senders at 100 Gb/s."""
    return resolve(fc.incast(flows, rate="100Gbps"))


def leaf(flows: int) -> Scenario:
    """The sample leaf with its own NIC, without flow control."""
    found = fc.audit(_LEAF / "config_db.json", _LEAF / "nic.txt", flows=flows)
    return resolve(dataclasses.replace(found.scenario(flows=flows), pfc=None, buffer=math.inf))


def hybrid_once(scenario: Scenario, until: str, seed: int) -> tuple[float, Any]:
    """Seconds of the loop, and its counts."""
    prepared = hybrid.prepare(scenario, hybrid.unsampled(until, None))
    sim, seconds = hybrid.execute(prepared, seed)
    return seconds, sim.core[0]


def packet_once(scenario: Scenario, until: str, seed: int) -> tuple[float, Any]:
    """The same of packets."""
    plan = prepare(scenario, packet.times_of(scenario, until, None, until), 0)
    packet.warm_up(plan)
    sim, seconds = packet.execute(plan, seed)
    return seconds, sim.core[0]


def ratio(scenario: Scenario, until: str) -> tuple[float, float, float]:
    """Least seconds of the hybrid and of packets, in turn, and their ratio."""
    hybrid_once(scenario, "1us", 0)
    pairs = [(hybrid_once(scenario, until, k)[0], packet_once(scenario, until, k)[0]) for k in range(ROUNDS)]
    ours, theirs = (min(column) for column in zip(*pairs, strict=True))
    return ours, theirs, theirs / ours


def sweep_seconds(points: int = 1000, seeds: int = 4) -> float:
    """Wall time of a sweep, compiling left out."""

    def make(kmin: Any, g: Any) -> Scenario:
        return fc.incast(8, rate="100Gbps", marking=fc.RED(kmin, "400KB", "1%"), scheme=fc.DCQCN(g=g))

    over = {"kmin": np.linspace(5e3, 1e5, 40), "g": np.geomspace(1 / 1024, 1 / 16, points // 40)}
    began = time.perf_counter()
    found = fc.sweep(make, over, until="50ms", engine="hybrid", seeds=seeds)
    assert found.failed == 0
    return time.perf_counter() - began


def main() -> None:
    """Print the table."""
    print("ratio of the packet loop's time to the hybrid's, one core, 50 ms:")
    for name, scenario in (
        ("8 flows, 100G, paper", incast(8)),
        ("64 flows, 100G, paper", incast(64)),
        ("sample leaf, 8 flows, vendor", leaf(8)),
        ("sample leaf, 16 flows, vendor", leaf(16)),
    ):
        ours, theirs, times = ratio(scenario, "50ms")
        print(f"  {name:32} {ours * 1e3:8.2f} ms  {theirs * 1e3:8.1f} ms  {times:6.0f}")
    print("cost of an event, and events of 50 ms:")
    for flows in FLOWS:
        runs = [hybrid_once(incast(flows), "50ms", k) for k in range(ROUNDS)]
        cost = min(seconds / int(core.events) for seconds, core in runs)
        print(f"  {flows:4} flows {cost * 1e9:6.0f} ns {int(runs[0][1].events):9,}")
    print(f"1000 points x 4 seeds, all cores: {sweep_seconds():.1f} s")


if __name__ == "__main__":
    main()
