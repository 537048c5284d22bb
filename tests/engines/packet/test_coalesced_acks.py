"""ACKs that answer four packets: the last packet of a flow is answered though fewer are left, and ACKs are counted.

Times of a lone flow are closed forms, compared to the picosecond.
"""

from __future__ import annotations

import math
from typing import Any

import pytest

import fluidcc as fc

TOGETHER = 4


def answers(trace: fc.Trace, flow: int) -> list[int]:
    """Payload up to which each ACK acknowledges."""
    log = trace.dataset
    observed = (log.event_what.values == "acknowledge") & (log.event_flow.values == flow)
    return [int(end) for end in log.event_end.values[observed]]


def by_hand(size: int) -> list[int]:
    """One at each fourth packet, and one at the last."""
    return sorted({*range(4000, size + 1, 4000), size})


@pytest.mark.parametrize("packets", [1, 2, 3, 4, 5, 6, 8, 9, 13, 17, 41])
def test_a_lone_flow_ends_with_the_ack_of_its_last_packet(packets: int) -> None:
    """n + 1 stores of 80 ns (1000 B at 100 Gb/s), two of 5.12 ns (an ACK of 64 B), four delays of 1 us."""
    scenario = fc.incast(1, rate="100Gbps", scheme=fc.NoControl(), size=packets * 1000, ack_interval=TOGETHER)
    trace = fc.simulate(scenario, "20us", engine="packet", log=True)
    assert trace.summary["fct_s"] == [pytest.approx((packets + 1) * 80e-9 + 2 * 5.12e-9 + 4e-6, abs=1e-12)]
    assert trace.summary["packets"] == packets
    assert trace.summary["acks"] == math.ceil(packets / TOGETHER)
    assert answers(trace, 0) == by_hand(packets * 1000)


# 4k + 1 packets for k of 0, 1, 2, 4 and 10; then 4k; then a last packet of one byte.
SIZES = [1_000, 5_000, 9_000, 17_000, 41_000, 16_000, 16_001]


@pytest.mark.parametrize("scheme", [fc.NoControl(), fc.HPCC(), fc.DCTCP(), fc.DCQCN(), fc.ACC()], ids=lambda s: s.name)
def test_all_flows_of_an_incast_finish(scheme: Any) -> None:
    """Windows that wait for the last ACK too; so many ACKs as packets by fours, counted up, of each flow."""
    scenario = fc.incast(len(SIZES), rate="100Gbps", scheme=scheme, size=SIZES, ack_interval=TOGETHER)
    trace = fc.simulate(scenario, "1ms", engine="packet", log=True)
    assert None not in trace.summary["fct_s"]
    for flow, size in enumerate(SIZES):
        assert answers(trace, flow) == by_hand(size)
    assert trace.summary["acks"] == 1 + 2 + 3 + 5 + 11 + 4 + 5
