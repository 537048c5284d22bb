"""The packet engine: speed, its growth with the number of hosts, compilation, start of a second process, memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from typing import Any

from fluidcc.builders import fat_tree, incast
from fluidcc.engines.packet import run as packet_run
from fluidcc.engines.packet.build import prepare
from fluidcc.scenario.model import Scenario, resolve
from fluidcc.schemes.hpcc import HPCC

ROUNDS = 5
HOSTS = (2, 16, 64, 320)

_FIRST_USE = """
import time
began = time.perf_counter()
import fluidcc as fc
fc.simulate(fc.incast(2), "10us", engine="packet")
print(time.perf_counter() - began)
"""


def star(senders: int) -> Scenario:
    """So many HPCC senders, one 100 Gb/s switch, one receiver, 1 us per link."""
    return incast(senders, rate="100Gbps", delay="1us", scheme=HPCC())


def permutation(hosts: int = 320) -> Scenario:
    """HPCC's fat tree, every host sending to the one half the fabric away."""
    return fat_tree([(h, (h + hosts // 2) % hosts, 0.0, float("inf")) for h in range(hosts)], scheme=HPCC())


def timed(scenario: Scenario, until: str) -> dict[str, float]:
    """The loop's least time over the rounds, and what it did [per second]; memory taken from the pools."""
    scenario = resolve(scenario)
    times = packet_run.times_of(scenario, until, None, until)
    best, core, packets = float("inf"), None, 0
    for _ in range(ROUNDS):
        plan = prepare(scenario, times, 0)
        packet_run.warm_up(plan)
        sim, seconds = packet_run.execute(plan, 0)
        best, core, packets = min(best, seconds), sim.core[0], len(sim.packets)
    assert core is not None
    return {
        "packets_per_s": int(core.delivered) / best,
        "events_per_s": int(core.events) / best,
        "ns_per_event": best / int(core.events) * 1e9,
        "events": int(core.events),
        "pool": packets,
    }


def speed() -> dict[str, Any]:
    """The star of 16, for 20 ms."""
    return timed(star(16), "20ms")


def growth() -> dict[str, Any]:
    """Cost of an event in stars of 2 to 320 senders once their first burst has drained, and in the fat tree."""
    found = {str(hosts): timed(star(hosts), "20ms") for hosts in HOSTS}
    return {"stars": found, "fat_tree": timed(permutation(), "500us")}


def first_use() -> dict[str, float]:
    """Seconds to a first result in a process with an empty cache, and in the next one."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"FLUIDCC_CACHE_DIR": folder}
        seconds = []
        for _ in range(2):
            began = time.perf_counter()
            command = [sys.executable, "-W", "ignore", "-c", _FIRST_USE]
            subprocess.run(command, stdout=subprocess.PIPE, check=True, env=environment)
            seconds.append(time.perf_counter() - began)
    return {"empty": seconds[0], "cached": seconds[1]}


def lossless() -> dict[str, float]:
    """Seconds of ACC's Fig. 11, the dearest of its schemes, and of a run of its Table 2, 100 ms; each with building."""
    from fluidcc.proofs.acc.common import COMPARED, bursty_chain
    from fluidcc.proofs.acc.table2 import unit

    packet_run.simulate(resolve(star(2)), "10us")  # compiles
    seconds = []
    for name in COMPARED:
        began = time.perf_counter()
        packet_run.simulate(bursty_chain(name, 15), "6ms")
        seconds.append(time.perf_counter() - began)
    began = time.perf_counter()
    packet_run.simulate(unit("acc", 0, 100e-3), "100ms")
    return {"chain": max(seconds), "unit": time.perf_counter() - began}


def measure(name: str) -> dict[str, Any]:
    """Run a measurement in a process of its own."""
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.packets", name]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    measurements = {f.__name__: f for f in (speed, growth, first_use, lossless)}
    print(json.dumps(measurements[sys.argv[1]]()))
