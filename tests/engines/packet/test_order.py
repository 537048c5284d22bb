"""Flows that wait for others: when they begin, who may wait, and what is refused."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.builders.toml_file import from_toml, to_toml
from fluidcc.errors import InputError
from fluidcc.workloads.fabrics import named_topology
from fluidcc.workloads.fabrics.slowdowns import alone

FABRIC = named_topology("leaf-spine:2x1x4")
SIZE = 100e3
LEG = 5e-6


def run(rows, until="2ms", **options):
    scenario = FABRIC.scenario(rows, scheme=options.pop("scheme", "none"), preset="hpcc-eval", **options)
    return scenario, fc.simulate(scenario, until, engine="packet", log=True)


def last_receipt(trace, flow: int) -> float:
    d = trace.dataset
    here = (d.event_what.values == "receive") & (d.event_flow.values == flow)
    return float(d.event_time.values[here].max())


def test_a_ring_passes_on_what_has_arrived():
    """Each step begins as the data of the one before has arrived, to the picosecond, and each is as fast as alone."""
    rows = [(0, 1, 0, SIZE)] + [(i, (i + 1) % 8, LEG, SIZE, (i - 1,)) for i in range(1, 8)]
    scenario, trace = run(rows)
    began = np.array(trace.summary["began_s"])
    receipts = np.array([last_receipt(trace, f) for f in range(8)])
    np.testing.assert_allclose(began[1:], receipts[:-1] + LEG, rtol=0, atol=1e-12)
    np.testing.assert_allclose(trace.summary["fct_s"], alone(scenario), rtol=1e-6)


def test_a_sender_learns_by_the_ack():
    """The same host's next flow begins as the last ACK comes; a stranger's, and by request any, too."""
    rows = [(0, 4, 0, SIZE), (0, 5, 0, SIZE, (0,)), (2, 6, 0, SIZE, (0,)), (4, 7, 0, SIZE, (0,), "answer")]
    _, trace = run(rows)
    np.testing.assert_allclose(trace.summary["began_s"][1:], trace.summary["fct_s"][0], rtol=0, atol=1e-12)


def test_receipt_may_be_asked_for():
    _, trace = run([(0, 4, 0, SIZE), (1, 5, 0, SIZE, (0,), "receipt")])
    assert trace.summary["began_s"][1] == pytest.approx(last_receipt(trace, 0), abs=1e-12)


def test_messages_of_a_host_leave_back_to_back():
    """With "sent" a host's next flow begins as the last packet of the one before goes; a stranger's by receipt."""
    rows = [
        (0, 4, 0, SIZE),
        (0, 5, 0, SIZE, (0,), "sent"),
        (2, 6, 0, SIZE, (0,), "sent"),
        (0, 4, 0, SIZE, (1,), "sent"),
    ]
    _, trace = run(rows)
    d = trace.dataset
    last = [
        float(d.event_time.values[(d.event_what.values == "send") & (d.event_flow.values == flow)].max())
        for flow in (0, 1)
    ]
    began = trace.summary["began_s"]
    assert began[1] == pytest.approx(last[0], abs=1e-12)
    assert began[2] == pytest.approx(last_receipt(trace, 0), abs=1e-12)
    assert began[3] == pytest.approx(last[1], abs=1e-12)
    nic = d.event_time.values[(d.event_what.values == "send") & np.isin(d.event_flow.values, (0, 1, 3))]
    np.testing.assert_allclose(np.diff(np.sort(np.asarray(nic, float))), 1000 / 12.5e9, rtol=0, atol=1e-12)


def test_a_barrier_waits_for_the_last():
    """Forty flows wait for forty: more than one event tells."""
    first = [(k % 4, 4 + k % 4, 0, SIZE * (1 + k)) for k in range(40)]
    second = [(4 + k % 4, k % 4, 0, SIZE, tuple(range(40)), "answer") for k in range(40)]
    _, trace = run([*first, *second], until="20ms")
    ends = np.array(trace.summary["fct_s"][:40])
    np.testing.assert_allclose(trace.summary["began_s"][40:], ends.max(), rtol=0, atol=1e-12)
    assert all(took is not None for took in trace.summary["fct_s"])


@pytest.mark.parametrize("recovery", ["gbn", "irn"])
def test_order_holds_where_packets_are_lost(recovery):
    rows = [(0, 4, 0, SIZE)] + [(4 * (i % 2), 4 * (1 - i % 2), 0, SIZE, (i - 1,)) for i in range(1, 6)]
    scenario = FABRIC.scenario(rows, scheme="dcqcn", preset="hpcc-eval", loss_recovery=recovery, loss=0.01)
    trace = fc.simulate(scenario, "50ms", engine="packet", seed=3)
    began, took = np.array(trace.summary["began_s"]), np.array(trace.summary["fct_s"], float)
    assert trace.summary["retransmissions"] > 0
    assert (np.diff(began) > 0).all()
    assert (began[1:] <= (began + took)[:-1]).all()  # data is there before its ACK


def test_who_waits_in_vain_has_not_begun():
    """A link that loses all: the flow behind it never begins, and is named as unfinished."""
    rows = [(0, 4, 0, SIZE), (4, 1, 0, SIZE, (0,))]
    _, trace = run(rows, until="1ms", loss=1.0)
    assert trace.summary["began_s"] == [0.0, None]
    assert trace.summary["fct_s"] == [None, None]
    study = fc.fabric("none", FABRIC, flows=rows, loss=1.0, drain="1ms")
    assert study.runs[0].slowdown.unfinished == 2
    assert np.isnan(study.runs[0].slowdown["start"].values).tolist() == [False, True]
    assert fc.theory.finish_times(trace).tolist() == [np.inf, np.inf]


def test_all_of_a_class_wait_for_all_of_another():
    scenario, _ = run([(0, 4, 0, SIZE), (1, 5, 0, SIZE, (0,), "answer")], until="10us")
    first, second = scenario.flows
    many = dataclasses.replace(
        scenario,
        flows=(
            dataclasses.replace(first, multiplicity=3.0, source="", target=""),
            dataclasses.replace(second, multiplicity=2.0, source="", target=""),
        ),
    )
    trace = fc.simulate(many, "2ms", engine="packet", log=True)
    d = trace.dataset
    sent = {f: d.event_time.values[(d.event_what.values == "send") & (d.event_flow.values == f)].min() for f in (3, 4)}
    acked = max(
        d.event_time.values[(d.event_what.values == "acknowledge") & (d.event_flow.values == f)].max() for f in range(3)
    )
    assert sent[3] == pytest.approx(acked, abs=1e-12)
    assert sent[4] == pytest.approx(acked, abs=1e-12)


def test_long_chains_are_waited_for():
    """The horizon counts the chain, not the longest flow: forty steps in turn all end."""
    rows = [(0, 4, 0, SIZE)] + [(4 * (i % 2), 4 * (1 - i % 2), "20us", SIZE, (i - 1,)) for i in range(1, 40)]
    study = fc.fabric("hpcc", FABRIC, flows=rows)
    assert study.runs[0].slowdown.unfinished == 0


def test_files_keep_the_order():
    rows = [(0, 4, 0, SIZE), (1, 5, "1us", SIZE, (0,), "answer")]
    scenario = FABRIC.scenario(rows, scheme="hpcc", preset="hpcc-eval")
    again = from_toml(to_toml(scenario))
    assert [(flow.after, flow.after_what) for flow in again.flows] == [((), "known"), ((0,), "answer")]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([(0, 4, 0, SIZE, (1,)), (1, 4, 0, SIZE, (2,)), (2, 4, 0, SIZE, (0,))], "flow 0 waits for flow 1 waits for"),
        ([(0, 4, 0, SIZE, (0,))], "flow 0 waits for flow 0"),
        ([(0, 4, 0, SIZE, (5,))], "flow 0 after: there is no flow 5; there are 1"),
        ([(0, 4), (0, 5, 0, SIZE, (0,))], "flow 1 after: flow 0 has no end"),
        ([(0, 4, 0, SIZE), (0, 5, 0, SIZE, (0.5,))], "flow 1 after: 0.5 is no place"),
        ([(0, 4, 0, SIZE), (0, 5, 0, SIZE, (0, 0))], "flow 1 after: a flow is there twice"),
        ([(0, 4, 0, SIZE), (0, 5, 0, SIZE, (0,), "soon")], "flow 1 after_what: 'soon' is unknown"),
        ([(0, 4, 0, SIZE, (), "known", 1)], "flow 0: "),
    ],
)
def test_what_cannot_be_is_refused(rows, said):
    with pytest.raises(InputError, match=said.replace("(", r"\(")):
        FABRIC.scenario(rows, scheme="hpcc", preset="hpcc-eval")
