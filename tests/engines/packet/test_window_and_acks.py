"""A window and ACKs that answer several packets."""

import pytest

import fluidcc as fc


@pytest.mark.parametrize("ack_interval", [1, 8, 32])
@pytest.mark.parametrize("scheme", [fc.TIMELY(win=True), fc.DCQCN(win=True), fc.HPCC()])
def test_a_window_below_what_an_ack_answers_does_not_stall(scheme: object, ack_interval: int) -> None:
    """32 flows whose windows fall to a few packets: the receiver answers the eighth, which was never sent."""
    scenario = fc.incast(32, rate="25Gbps", size="1MB", scheme=scheme, ack_interval=ack_interval)
    times = fc.simulate(scenario, "60ms", engine="packet", sample_interval="1ms").summary["fct_s"]
    assert None not in times
