"""Senders and switches that are not ideal: bursts, jitter, and queues that count the packet that is being sent."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.engines.packet import layout
from fluidcc.engines.packet.marking import marks
from fluidcc.engines.packet.pacing import pace, repace
from fluidcc.operators import dcqcn_of, read_nic
from tests.engines.packet.plain import plain

NS = 1000  # ps
SAMPLE = Path(__file__).parents[3] / "examples" / "fabric-400g"
GAP = 800 * NS  # of 1000 bytes at 10 Gb/s


def sender(burst: int = 1, jitter: float = 0.0) -> tuple[Any, Any]:
    """Records of the core and of a flow of 10 Gb/s that has sent nothing."""
    core, flow = (layout.records(kind, 1)[0] for kind in (layout.CORE, layout.FLOW))
    core.burst, core.jitter, flow.rate = burst, jitter, 1.25e9
    return core, flow


def test_a_burst_goes_at_once_and_then_waits_for_all_of_it() -> None:
    """From the burst's start, not from its last packet: else the rate would be too low."""
    core, flow = sender(burst=3)
    for n in range(3):
        core.now = 100 * NS + n * 80 * NS  # at the NIC's own rate
        plain(pace)(core, np.zeros(1), flow, 1000)
        assert flow.next == (core.now if n < 2 else 100 * NS + 3 * GAP)
    core.now = flow.next
    plain(pace)(core, np.zeros(1), flow, 500)
    assert (flow.last, flow.last_size) == (core.now, 500)  # the next burst is counted from nothing


def test_a_new_rate_moves_the_next_burst_and_not_one_that_is_under_way() -> None:
    core, flow = sender(burst=2)
    plain(pace)(core, np.zeros(1), flow, 1000)
    flow.rate /= 2
    plain(repace)(core, flow)
    assert flow.next == 0
    plain(pace)(core, np.zeros(1), flow, 1000)
    assert flow.next == 4 * GAP
    flow.rate *= 4
    plain(repace)(core, flow)
    assert flow.next == GAP


@pytest.mark.parametrize(("draw", "stretch"), [(0.0, 0.75), (0.5, 1.0), (0.75, 1.125)])
def test_jitter_stretches_a_wait_evenly_about_it(draw: float, stretch: float) -> None:
    """A new rate keeps the draw: each change would else be one more chance of a short wait."""
    core, flow = sender(jitter=0.25)
    plain(pace)(core, np.array([draw]), flow, 1000)
    assert flow.next == stretch * GAP
    assert core.drawn == 1
    flow.rate /= 2
    plain(repace)(core, flow)
    assert flow.next == stretch * 2 * GAP


@pytest.mark.parametrize(
    ("counts", "busy", "free_at", "marked"),
    [(0, 1, 2, False), (1, 0, 2, False), (1, 1, 1, False), (1, 1, 2, True)],
    ids=["waiting only", "idle", "just over", "counted"],
)
def test_a_queue_counts_the_packet_that_is_being_sent(counts: int, busy: int, free_at: int, marked: bool) -> None:
    """One packet waits at step marking of 1500 B, and one of 1000 B is on the wire until ``free_at``; now is 1."""
    core, port = (layout.records(kind, 1)[0] for kind in (layout.CORE, layout.PORT))
    port.kmin = port.kmax = 1500.0
    core.now, port.counts_sending, port.busy, port.free_at, port.sending = 1, counts, busy, free_at, 1000
    assert bool(plain(marks)(core, np.zeros(1), port, 1000)) is marked


def test_bursts_and_jitter_keep_the_rate() -> None:
    script = fc.NoControl(schedule="0:3Gbps")
    scenario = fc.incast(2, scheme=script, rate="10Gbps", marking=None)
    for change in ({"burst": 8}, {"jitter": 1.0}, {"burst": 3, "jitter": 0.5}):
        found = fc.simulate(dataclasses.replace(scenario, **change), "4ms", engine="packet", window="2ms:4ms").summary
        assert found["utilisation"] == pytest.approx(0.6, abs=0.01), change


# Utilisation by a program that shares nothing with this one: 400 Gb/s, 8 flows, 4096 B, NICs as in the sample; paced,
# bursts of 4 and of 16, and the packet in service counted.
ALONE = {
    "2/54 KB, 97 %": (("2KB", "54KB", 0.97), (0.864, 0.387, 0.353, 0.534)),
    "2/54 KB, 5 %": (("2KB", "54KB", 0.05), (1.000, 0.971, 0.527, 1.000)),
    "100/400 KB, 20 %": (("100KB", "400KB", 0.2), (0.982, 0.958, 0.998, 0.987)),
    "SONiC's": ((1 << 20, 1 << 21, 0.05), (0.995, 0.948, 0.849, 0.995)),
}
WAYS = [(1, False), (4, False), (16, False), (1, True)]


def used(setting: tuple[Any, ...], burst: int, counts: bool, engine: str) -> float:
    """Mean utilisation of two seeds."""
    scheme, _ = dcqcn_of(read_nic(SAMPLE / "nic.txt"))
    marking = fc.RED(*setting, counts_sending=counts)
    start = np.linspace(0, 20e-6, 8).tolist()
    scenario = fc.incast(8, rate="400Gbps", delay="1us", scheme=scheme, marking=marking, start=start)
    scenario = dataclasses.replace(scenario, packet_size=4096.0, burst=burst)
    runs = [fc.simulate(scenario, "20ms", engine=engine, seed=seed, sample_interval="20ms") for seed in (1, 2)]
    return float(np.mean([run.summary["utilisation"] for run in runs]))


@pytest.mark.slow
@pytest.mark.parametrize("name", ALONE)
def test_another_program_has_the_same_utilisation(name: str) -> None:
    """And so has the hybrid, but for long bursts with a Kmin of less than one."""
    setting, theirs = ALONE[name]
    for (burst, counts), their in zip(WAYS, theirs, strict=True):
        assert used(setting, burst, counts, "packet") == pytest.approx(their, abs=0.025), (burst, counts)
        if burst < 16 or setting[0] != "2KB":
            assert used(setting, burst, counts, "hybrid") == pytest.approx(their, abs=0.025), (burst, counts)
