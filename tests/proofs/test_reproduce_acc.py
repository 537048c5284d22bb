"""The ACC paper's figures of one bottleneck and of the chain: quick runs agree, and their data is what they say."""

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.proofs.acc.common import COMPARED, LINE, LINKS, FlowLog, bursty_chain
from fluidcc.proofs.shared.runs import GBPS, packet_runs
from tests.proofs.figures import made


def check_packets(values, data):
    """Nothing is lost: what is in flight is never less than what waits, by more than the packets on the wires."""
    beyond = data["in_flight"] - data["backlog"].sum("port")
    assert (beyond >= 0).all()
    assert (beyond <= 2 * LINE * 20.5e-6).all()  # the wires both ways, full
    assert (np.diff(data["acked"].values) >= 0).all()
    # What is printed is the mean over the bursts, of a rate that is half as much at first and more later.
    fair = LINE / 21
    assert values["N20_shared_first_queue_rate_bytes_per_s"] < 0.6 * fair
    assert values["N20_shared_ack_rate_bytes_per_s"] == pytest.approx(fair, rel=0.05)
    assert values["N20_shared_later_rate_bytes_per_s"] > fair


def check_blocking(values, data):
    assert data["backlog"].dims == ("case", "flow", "time")
    assert (data["backlog"].sel(time=slice(0, 1e-3)) <= 2e3).all()  # nothing waits before the bursts
    blocked = (data["backlog"].sel(flow="F0") > 2e3).sum("time")
    assert list(blocked.values) == sorted(blocked.values, reverse=True)  # less with each longer stop
    assert values["dcqcn_pauses_at_SW3"] > values["ideal_pauses_at_SW3"]


def check_total(values, data):
    assert data["scheme"].values.tolist() == ["acc", "dcqcn"]
    total = data["pacing_rate"].sum("flow") / GBPS
    assert float(total[0].isel(time=0)) == float(total[1].isel(time=0)) == 40
    # ACC sends nothing in its halt, though it records 10 Gb/s.
    halt = data["rate"].sel(scheme="acc", time=slice(0.1e-3, 0.25e-3)).sum("flow")
    assert float(halt.max()) == 0
    assert values["dcqcn_std_bytes_per_s"] > 2 * values["acc_std_bytes_per_s"]


def check_ten(values, data):
    assert data["scheme"].values.tolist() == list(COMPARED)
    assert data["first_halt"].shape == (10,)
    sent = data["mean_rate"].sum("flow") / LINE
    for name in COMPARED:  # what is sent is what the link carries
        assert float(sent.sel(scheme=name)) == pytest.approx(values[f"{name}_utilisation"], abs=0.02)
    assert values["acc_queue_max_bytes"] > values["hpcc_queue_max_bytes"]
    assert values["acc_drained_after_s"] < values["dcqcn_drained_after_s"] < values["timely_drained_after_s"]


def check_bursts(values, data):
    assert (data["F1"] <= data["P4"] + 1).all()
    assert (data["pauses"] >= 0).all()
    quiet = data["pauses"].sel(variant=["hpcc", "acc_inflight"], receiver=["SW1", "SW2", "SW3"])
    assert int(quiet.sum()) == 0
    assert int(data["pauses"].sel(receiver="hosts").min()) > 100  # the hosts are always paused


def check_recovery(values, data):
    assert ((data["utilisation"] >= 0) & (data["utilisation"] < 1.001)).all()
    before = data["utilisation"].sel(scheme="acc", time=slice(2e-3, 4.9e-3))
    assert float(before.mean()) > 0.98
    assert values["acc_N10_least"] > values["dcqcn_N10_least"]


FIGURES = {
    "acc-fig2": ((1650, 1110), check_packets),
    "acc-fig3": ((1650, 900), check_blocking),
    "acc-fig4": ((1650, 900), check_blocking),
    "acc-fig9": ((1650, 900), check_total),
    "acc-fig10": ((1650, 1050), check_ten),
    "acc-fig11": ((1650, 1050), check_bursts),
    "acc-fig20": ((1650, 1050), check_recovery),
}


@pytest.mark.parametrize("name", FIGURES)
def test_figure(name, tmp_path):
    size, check = FIGURES[name]
    result, data = made(name, tmp_path, size)
    check(result.values, data)


@pytest.fixture(scope="module")
def logged():
    scenario = bursty_chain("dcqcn", 4, burst_time="0.3ms")
    return packet_runs([scenario], 1.6e-3, log=True, sample_interval=10e-6)[0]


def test_log_of_a_flow_adds_up_to_the_queues(logged):
    """At the links that only F0 and F1 cross, their backlogs are the queue, but for a packet that just leaves."""
    times = logged["time"].values
    flows = [FlowLog(logged, k) for k in (0, 1)]
    for link in LINKS[:3]:
        total = sum(flow.backlog(times, link) for flow in flows)
        np.testing.assert_allclose(total, logged["queue"].sel(link=link).values, atol=1000)
    assert max(flows[1].backlog(times, "SW4->R1")) > 100e3


def test_log_of_a_flow_keeps_every_packet(logged):
    times = logged["time"].values
    flow = FlowLog(logged, 1)
    ports = [LINKS[0], LINKS[1], LINKS[2], LINKS[4]]
    waiting = sum(flow.backlog(times, link) for link in ports)
    assert (flow.in_flight(times) >= waiting).all()
    np.testing.assert_allclose(flow.count(times, "acknowledge"), logged["delivered"].values[:, 1], atol=1000)


def test_bursts_come_when_both_flows_have_half_the_line():
    trace = fc.simulate(bursty_chain("acc", 10, burst_time="0s"), "1ms", engine="packet")
    np.testing.assert_allclose(np.array(trace.summary["rate_bytes_per_s"][:2]) / LINE, 0.5, rtol=0.1)
