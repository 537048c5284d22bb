"""Trimming: single incidents by hand to the picosecond, what headers and NACKs do in a log, incasts, refusals.

What was stated before anything was measured stands beside each tolerance.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.engines.packet import layout, trimming
from fluidcc.engines.packet.build import prepare
from fluidcc.engines.packet.run import execute, times_of
from fluidcc.scenario.model import resolve
from fluidcc.workloads.fabrics import named_topology
from tests.engines.packet.plain import plain

PACKET, HEADER = 1000, 64  # bytes
RATE = 12.5e9  # bytes/s: a packet takes 80 ns, a header 5.12 ns
NS = 1000  # ps
FABRIC = named_topology("leaf-spine:2x4x4", fabric_rate="100Gbps")


def burst(starts: list[str], **options: Any) -> fc.Scenario:
    """A packet each of some hosts, for one receiver; links of 100 Gb/s and 1 us, a queue of one packet."""
    given = {"loss_recovery": "trimming", "trim_above": "1KB", "size": "1KB", "start": starts, "pfc": None}
    return fc.incast(len(starts), rate="100Gbps", delay="1us", scheme=fc.NoControl(), **{**given, **options})


def logged(scenario: fc.Scenario, until: str, seed: int = 1) -> tuple[fc.Trace, Any]:
    """A run, and its log as a table; times in ps."""
    trace = fc.simulate(scenario, until, engine="packet", log=True, seed=seed)
    names = ("time", "what", "port", "flow", "kind", "end", "queue", "value")
    table = {name: trace.dataset[f"event_{name}"].values for name in names}
    table["time"] = np.round(table["time"] * 1e12).astype(np.int64)
    return trace, table


def times(log: Any, what: str, kind: str, flow: int) -> list[int]:
    return log["time"][(log["what"] == what) & (log["kind"] == kind) & (log["flow"] == flow)].tolist()


def ended(scenario: fc.Scenario, until: Any, seed: int = 1) -> layout.Sim:
    scenario = resolve(scenario)
    return execute(prepare(scenario, times_of(scenario, until, None, None), 0), seed)[0]


# -- by hand -----------------------------------------------------------------------------------------------------


def test_one_trim_to_the_picosecond() -> None:
    """The third of three packets that arrive at 1.08 us meets a queue of one, and its header goes before that.

    The header leaves with the first packet's end, at 1.16 us, and is there 1005.12 ns later, just as the first packet's
    ACK has left; its NACK takes two hops of 1005.12 ns. The packet goes at once, 2 x 1.08 us, and its ACK comes.
    """
    trace, log = logged(burst(["0s"] * 3), "20us")
    assert times(log, "trim", "data", 2) == [1080 * NS]
    there = 1160 * NS + 1_005_120
    assert times(log, "receive", "header", 2) == [there]
    back = there + 2 * 1_005_120
    assert times(log, "acknowledge", "nack", 2) == [back] == times(log, "send", "data", 2)[1:]
    assert trace.summary["fct_s"][2] * 1e12 == pytest.approx(back + 2 * 1_080_000 + 2 * 1_005_120, abs=1)
    assert (trace.summary["trims"], trace.summary["retransmissions"], trace.summary["drops"]) == (1, 1, 0)
    assert times(log, "trim", "data", 0) == times(log, "trim", "data", 1) == []


def test_a_retransmission_that_is_trimmed_goes_again() -> None:
    """Two more packets arrive at 5.25 us, and what was trimmed is back 5.36 ns later: it meets a queue again."""
    trace, log = logged(burst(["0s", "0s", "0s", "4.17us", "4.17us"]), "30us")
    first = 1160 * NS + 3 * 1_005_120
    assert first == 4_175_360  # when the first NACK comes: the packet is at the switch 1.08 us later
    assert times(log, "trim", "data", 2) == [1080 * NS, first + 1080 * NS]
    second = 5330 * NS + 3 * 1_005_120  # the header leaves as the first of the two packets is gone
    assert times(log, "acknowledge", "nack", 2) == [first, second]
    assert trace.summary["fct_s"][2] * 1e12 == pytest.approx(second + 2 * 1_080_000 + 2 * 1_005_120, abs=1)
    assert (trace.summary["trims"], trace.summary["retransmissions"]) == (2, 2)


def test_what_leaves_no_header_waits_for_the_timeout() -> None:
    """A buffer that holds a packet but no header beside it drops both: 320 us, and a round trip of 4170.24 ns."""
    scenario = burst(["0s"] * 3, buffer="1063B", egress_alpha=math.inf, trim_above=math.inf)
    trace, log = logged(scenario, "400us")
    assert (trace.summary["trims"], trace.summary["drops"], trace.summary["retransmissions"]) == (0, 1, 1)
    assert times(log, "send", "data", 2) == [0, 320_000 * NS]
    assert trace.summary["fct_s"][2] * 1e12 == pytest.approx(320_000 * NS + 4_170_240, abs=1)
    room = dataclasses.replace(scenario, buffer="1064B")  # one byte more, and the header has room
    assert fc.simulate(room, "400us", engine="packet").summary["trims"] == 1


def test_a_packet_is_cut_to_its_headers_and_64_bytes() -> None:
    """Whatever a scenario's headers and a scheme's telemetry add; what has less payload stays as it is."""
    for size, options, wire in (("1KB", {}, 64), ("1KB", {"header_bytes": "48B"}, 112), ("40B", {}, 40)):
        _, log = logged(burst(["0s"] * 3, size=size, trim_above="0B", **options), "3us")
        there = log["time"][(log["what"] == "receive") & (log["kind"] == "header")]
        left = log["time"][(log["what"] == "transmit") & (log["kind"] == "header")]
        assert (there[0] - left[0]) == round(wire * 80) + 1000 * NS


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_each_packet_counts_once_in_whatever_order_acks_come(order: tuple[int, ...]) -> None:
    """Packets arrive as 0, 2, 1. Catches packet 2 counted twice, as its ACK is overtaken by the one for all three."""
    core, flow = (layout.records(kind, 1)[0] for kind in (layout.CORE, layout.FLOW))
    ack = layout.records(layout.PACKET, 1)[0]
    flow.payload, flow.overhead, flow.total, flow.room = PACKET, HEADER, 3 * PACKET, 5
    bitmaps = np.zeros(2 * 5, np.int64)
    for k in order:
        ack.end, ack.reports = ((PACKET, -1), (PACKET, 3 * PACKET), (3 * PACKET, -1))[k]
        plain(trimming.on_ack)(core, flow, bitmaps, ack)
    assert (flow.una, flow.acked, flow.acked_wire) == (3 * PACKET, 3 * PACKET, 3 * (PACKET + HEADER))


# -- logs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["none", "dcqcn", "nscc", "hpcc-rx"])
@pytest.mark.parametrize("spread", ["flow", "packet"])
def test_every_trim_is_answered_and_sent_again_before_anything_new(scheme: str, spread: str) -> None:
    """Recounted from the log: a NACK for each header, and then that packet, which is no later than any new one."""
    rows = [(source, 4, 0, "60500B") for source in (0, 1, 2, 3, 5)] + [(5, 6, 0, "30KB")]
    scenario = FABRIC.scenario(rows, scheme=scheme, preset="hpcc-eval", pfc=None, loss_recovery="trimming",
                               trim_above="8KB", load_balancing=spread)  # fmt: skip
    trace, log = logged(scenario, "2ms", seed=3)
    assert None not in trace.summary["fct_s"]
    cut = np.flatnonzero(log["what"] == "trim")
    assert trace.summary["trims"] == len(cut) > 20
    assert trace.summary["retransmissions"] == len(cut)
    assert trace.summary["drops"] == 0
    assert (log["queue"][cut] + PACKET > 8000).all()
    for flow in range(len(rows)):
        mine = log["flow"] == flow
        waiting: list[int] = []  # named by NACKs and not sent since
        highest = 0
        for row in np.flatnonzero(mine & np.isin(log["what"], ["acknowledge", "send"])):
            end = int(log["end"][row])
            if log["what"][row] == "send":
                if end <= highest:
                    waiting.remove(end)  # exactly what a NACK named
                else:
                    assert not waiting
                    highest = end
            elif log["kind"][row] == "nack":
                waiting.append(end)
        assert not waiting
        named = log["end"][mine & (log["what"] == "acknowledge") & (log["kind"] == "nack")]
        assert sorted(named) == sorted(log["end"][mine & (log["what"] == "trim")])


@pytest.mark.parametrize("interval", [1, 8])
def test_reordering_is_no_loss(interval: int) -> None:
    """Sprayed packets that meet no long queue come late and are not sent again; IRN sends some."""
    rows = [(source, 4 + source, 0, "300KB") for source in range(4)]
    for recovery in ("trimming", "irn"):
        scenario = FABRIC.scenario(rows, scheme="nscc", preset="hpcc-eval", pfc=None, loss_recovery=recovery,
                                   load_balancing="packet", ack_interval=interval, trim_above="10MB")  # fmt: skip
        summary = fc.simulate(scenario, "2ms", engine="packet", seed=2).summary
        assert None not in summary["fct_s"]
        assert summary["reordered"] > 50
        assert (summary["retransmissions"] == 0) == (recovery == "trimming")


def test_headers_have_a_quarter_of_the_link() -> None:
    """Where data and headers both wait, deficit round robin gives headers a quarter; 2 % were stated beforehand."""
    scenario = fc.incast(32, rate="100Gbps", delay="3us", scheme=fc.NoControl(), loss_recovery="trimming", pfc=None)
    _, log = logged(scenario, "100us")
    port = log["port"] == "switch -> receiver"
    late = log["time"] > 50e6  # both queues are long
    sent = {kind: (port & late & (log["what"] == "transmit") & (log["kind"] == kind)).sum() for kind in
            ("data", "header")}  # fmt: skip
    share = sent["header"] * HEADER / (sent["header"] * HEADER + sent["data"] * PACKET)
    assert share == pytest.approx(0.25, abs=0.02)
    assert (sent["header"] * HEADER + sent["data"] * PACKET) / RATE == pytest.approx(50e-6, rel=0.01)


def test_ports_trim_from_a_bandwidth_delay_product_on() -> None:
    """By default the longest queue of data is what a port sends in the largest base RTT; headers wait beside it."""
    scenario = fc.incast(8, rate="100Gbps", delay="3us", scheme=fc.NoControl(), loss_recovery="trimming", pfc=None)
    _, log = logged(scenario, "60us")
    queues = log["queue"][log["what"] == "trim"]
    base = 12e-6 + 2 * (PACKET + HEADER) / RATE
    assert (queues > RATE * base - PACKET - 1).all()
    assert queues.max() <= RATE * base + 1


def test_only_lossy_classes_are_trimmed() -> None:
    """PFC pauses the lossless class beside them and keeps all of it, whatever headers take of the buffer."""
    classes = (fc.TrafficClass(), fc.TrafficClass(lossless=False))
    scenario = fc.incast(16, rate="10Gbps", scheme=fc.NoControl(), size="100KB", buffer="400KB", pfc=fc.PFC(),
                         classes=classes, loss_recovery="trimming")  # fmt: skip
    flows = tuple(dataclasses.replace(flow, traffic_class=i % 2) for i, flow in enumerate(scenario.flows))
    scenario = dataclasses.replace(scenario, flows=flows)
    trace, log = logged(scenario, "20ms")
    assert None not in trace.summary["fct_s"]
    assert set(log["flow"][log["what"] == "trim"] % 2) == {1}
    assert trace.summary["pfc_pauses"] > 0
    assert not (log["flow"][log["what"] == "drop"] % 2 == 0).any()
    sim = ended(scenario, "20ms")
    assert (sim.nodes["shared_used"] == 0).all()
    assert (sim.nodes["used"] == 0).all()


# -- incasts -------------------------------------------------------------------------------------------------------


def incast(recovery: str, buffer: Any, **options: Any) -> fc.Scenario:
    return fc.incast(64, rate="100Gbps", delay="3us", scheme="nscc", preset="paper", size="100KB", buffer=buffer,
                     loss_recovery=recovery, **options)  # fmt: skip


def test_an_incast_of_64_to_1() -> None:
    """6.4 MB through one port: all of it arrives once, and the last of it within a tenth of what the link needs.

    Stated beforehand: 10 % above 6.4 MB and the headers at 100 Gb/s, and a round trip. IRN, which learns of drops by
    gaps, is slower with the same buffer; with an unlimited one nothing is lost.
    """
    bound = 64 * 100e3 / RATE
    trimmed = fc.simulate(incast("trimming", "1MB"), "20ms", engine="packet").summary
    needed = bound + trimmed["trims"] * HEADER / RATE + 12.2e-6
    assert trimmed["trims"] > 1000
    assert bound < max(trimmed["fct_s"]) < 1.1 * needed
    assert trimmed["retransmissions"] == trimmed["trims"] + trimmed["drops"]
    assert trimmed["packets"] == 6400
    irn = fc.simulate(incast("irn", "1MB"), "20ms", engine="packet").summary
    assert irn["drops"] > 0
    assert max(irn["fct_s"]) > max(trimmed["fct_s"])
    unlimited = fc.simulate(incast("none", math.inf), "20ms", engine="packet").summary
    assert bound < max(unlimited["fct_s"]) < 1.1 * (bound + 12.2e-6)


@pytest.mark.parametrize("scheme", ["dcqcn", "hpcc", "hpcc-rx", "swift", "acc", "timely", "dctcp", "nscc", "none"])
def test_every_scheme_recovers(scheme: str) -> None:
    """From wires that lose data, headers, NACKs and ACKs, and from a buffer that is too small."""
    scenario = fc.incast(4, rate="25Gbps", scheme=scheme, size="200KB", buffer="60KB", loss_recovery="trimming",
                         pfc=None, ack_interval=2, trim_above="10KB")  # fmt: skip
    scenario = dataclasses.replace(scenario, links=(dataclasses.replace(scenario.links[0], loss=0.01),))
    summary = fc.simulate(scenario, "60ms", engine="packet", seed=3).summary
    assert None not in summary["fct_s"]
    assert summary["trims"] > 0 < summary["drops"]
    assert summary["retransmissions"] >= summary["trims"] + summary["drops"]


@pytest.mark.parametrize("until", ["0us", "5us", "12us", "18us"])
@pytest.mark.parametrize("interval", [1, 8])
def test_a_window_that_is_lost_whole_goes_again_at_once(until: str, interval: int) -> None:
    """A link that fails tells nobody: after the timeout all goes again, not a timeout for each packet."""
    ways = (("switch", "x"), ("x", "receiver"), ("switch", "y"), ("y", "receiver"))
    links = tuple(fc.Link("100Gbps", "1us", name=f"{a}>{b}", source=a, target=b) for a, b in ways)
    flow = fc.Flow((0, 1), fc.NoControl(), "100Gbps", start="1us", size="200500B", target="receiver")
    failure = fc.Failure("x>receiver", until, "50us")
    scenario = fc.Scenario(links, (flow,), failures=(failure,), loss_recovery="trimming", ack_interval=interval)
    sim = ended(scenario, "2ms")
    assert sim.core[0].dropped > 4
    found = sim.flows[0]
    assert (found.received, found.acked, found.received_end) == (200_500,) * 3
    assert 320e6 < found.finish < 500e6  # ps: one timeout, the flow and a round trip


def test_timeouts_take_what_is_lost_alone() -> None:
    """Wires that lose data tell nobody: each packet is timed by itself, and none goes again that was under way."""
    links = (
        fc.Link("100Gbps", "5us", source="a", target="b", loss=0.003),
        fc.Link("100Gbps", "5us", source="b", target="a"),
    )
    flow = fc.Flow((0,), fc.NoControl(), "100Gbps", access_delay="5us", size="8MB", target="receiver")
    scenario = fc.Scenario(links, (flow,), loss_recovery="trimming", retransmission_timeout="60us")
    core = ended(scenario, "20ms").core[0]
    assert core.dropped > 10
    assert core.retransmissions == core.dropped
    assert 0 < core.timeouts <= core.dropped


# -- what makes no sense -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"pfc": fc.PFC(), "buffer": "9MB"}, "loss_recovery: PFC keeps all that might be trimmed; write pfc=None"),
        ({"classes": (fc.TrafficClass(),) * 7}, "classes: 7 leave trimmed headers no queue; write 6 at most"),
        ({"trim_above": "-1KB"}, "trim_above"),
        ({"retransmission_timeout": "3us"}, "retransmission_timeout: 3us is over before"),
    ],
)
def test_what_makes_no_sense_is_refused(change: dict[str, Any], word: str) -> None:
    with pytest.raises(fc.InputError, match=word):
        fc.simulate(fc.incast(2, loss_recovery="trimming", **{"pfc": None, **change}), "10us", engine="packet")


@pytest.mark.parametrize("engine", ["fluid", "hybrid"])
def test_other_engines_refuse_it_by_name(engine: str) -> None:
    with pytest.raises(fc.InputError, match=f"loss_recovery: the {engine} engine loses nothing"):
        fc.simulate(fc.incast(2, loss_recovery="trimming"), "1ms", engine=engine)


def test_a_scenario_file_keeps_it(tmp_path: Any) -> None:
    scenario = burst(["0s"] * 3)
    path = tmp_path / "scenario.toml"
    fc.save_scenario(scenario, path)
    again = fc.load_scenario(path)
    assert (again.loss_recovery, again.trim_above) == ("trimming", 1000.0)
    assert fc.simulate(again, "20us", engine="packet").summary["trims"] == 1
