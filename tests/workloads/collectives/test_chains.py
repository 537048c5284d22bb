"""What the end had waited for, and the time of an idle fabric that follows from what each transfer waits for."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.contract.registry import preset
from fluidcc.workloads.collectives.engines import packets
from fluidcc.workloads.collectives.jobs import Job, work_of
from fluidcc.workloads.collectives.mapping import laid_out
from fluidcc.workloads.fabrics import named_topology

STAR = "leaf-spine:1x1x8"
QUIET: dict[str, Any] = {"packet_size": 1000, "header_bytes": 48, "ack_bytes": "1B", "ack_interval": 100}
PACKET = 1048 / 12.5e9
ARRIVES = 101 * PACKET + 2e-6  # 100 KB over one switch


def test_the_chain_of_a_ring_goes_round_it() -> None:
    """Over racks: a neighbour's ACK comes late over two more links, and yet nobody waits for that."""
    run = fc.collective("all-reduce", "leaf-spine:4x4x4", "none", bytes="800KB", hosts=8).runs[0]
    assert run.numbers["critical_path"]["ranks"] == 8
    chain = run.transfers.isel(transfer=np.flatnonzero(run.transfers["critical"].values)).sortby("began")
    assert chain["step"].values.tolist() == list(range(14))
    assert (chain["source"].values[1:] == chain["target"].values[:-1]).all()
    assert chain["began"].values[1:] == pytest.approx(chain["arrived"].values[:-1], abs=1e-11)
    assert chain["arrived"].values[-1] == pytest.approx(run.numbers["total_s"], abs=1e-11)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("all-reduce", {"chunks": 2, "steps": 2, "compute": "3us"}),
        ("all-reduce", {"algorithm": "tree", "chunks": 3}),
        ("broadcast", {"chunks": 5}),
        ("broadcast", {"chunks": 3, "server": 2, "server_rate": "10GB/s"}),
        ("pipeline", {"chunks": 4, "compute": "7us"}),
        ("all-to-all", {"steps": 2}),
    ],
)
def test_each_link_begins_as_it_is_released(kind: str, options: dict[str, Any]) -> None:
    """Each begins its delay after what released it, and nothing else released it later: to a tick of the clock."""
    topology = named_topology("leaf-spine:2x2x4")
    work = work_of([Job(kind, "200KB", ranks=8, **options)], [list(topology.hosts)])
    laid = laid_out(work.graph, topology, work.hosts, 1, preset("dctcp", "hpcc-eval").options())
    found = packets(laid, 0.1, seed=1, interval=1e-3)
    graph, chain = work.graph, work.graph.critical(found.began, found.left, found.arrived)
    crossed = 0
    for before, i in itertools.pairwise(chain):
        own = graph.size[i] > 0 < graph.size[before] and graph.source[i] == graph.source[before]
        crossed += own
        released = found.left[before] if own else found.arrived[before]
        if graph.size[i] == 0 == graph.size[before]:
            released = found.began[before]
        assert found.began[i] == pytest.approx(released + graph.delay[i], abs=2e-12)
    assert found.began[chain[0]] == pytest.approx(graph.delay[chain[0]], abs=1e-12)
    assert crossed or kind != "broadcast" or "server" in options  # its chunks leave the first rank one by one


@pytest.mark.parametrize(
    ("kind", "options", "expected"),
    [
        ("all-reduce", {}, 14 * ARRIVES),
        ("all-gather", {"steps": 2, "compute": "9us"}, 14 * ARRIVES + 18e-6),
        # Chunks leave the first back to back; the last goes on through six.
        ("broadcast", {"chunks": 8}, 700 * PACKET + 7 * ARRIVES),
    ],
)
def test_an_idle_fabric_takes_what_is_said(kind: str, options: dict[str, Any], expected: float) -> None:
    """From below, within two packets of what is simulated where ACKs take no room."""
    found = fc.collective(kind, STAR, "none", bytes="800KB", **options, **QUIET).runs[0].numbers
    assert found["idle_s"] == pytest.approx(expected, abs=1e-9)
    assert found["total_s"] - 2 * PACKET < found["idle_s"] <= found["total_s"] + 1e-11
    assert found["until_s"] == pytest.approx(20 * found["idle_s"])


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("all-reduce", {}),
        ("all-reduce", {"algorithm": "tree", "chunks": 4}),
        ("all-to-all", {"skew": 1}),
        ("broadcast", {"chunks": 8, "server": 2, "server_rate": "10GB/s"}),
        ("pipeline", {"chunks": 4, "compute": "7us"}),
    ],
)
@pytest.mark.parametrize("scheme", ["none", "hpcc"])
def test_no_run_is_faster_than_an_idle_fabric(kind: str, options: dict[str, Any], scheme: str) -> None:
    found = fc.collective(kind, "leaf-spine:2x2x4", scheme, bytes="800KB", **options).runs[0].numbers
    assert 0.3 * found["total_s"] < found["idle_s"] <= found["total_s"] + 1e-11


def test_sprayed_packets_do_not_fill_one_path() -> None:
    """Their flow's own path would be full for longer than all of them take over all paths."""
    options: dict[str, Any] = {"placement": "round-robin", "oversubscription": 2, "bytes": "4MB"}
    found = [
        fc.collective("all-reduce", "leaf-spine:2x4x4", "none", load_balancing=how, **options).runs[0].numbers
        for how in ("flow", "packet")
    ]
    for numbers in found:
        assert 0.5 * numbers["total_s"] < numbers["idle_s"] <= numbers["total_s"] + 1e-11
    assert found[0]["idle_s"] > found[1]["total_s"]


def test_usual_acks_are_not_in_it() -> None:
    """A full ring of 8 with ACKs of 64 B: 141.1 us are said, and 146.5 us pass."""
    found = fc.collective("all-reduce", STAR, "none", bytes="800KB").runs[0].numbers
    assert found["idle_s"] == pytest.approx(14 * (101 * 80e-9 + 2e-6), abs=1e-9)
    assert 0.95 < found["idle_s"] / found["total_s"] < 1


def test_what_crossed_is_in_the_order_of_time() -> None:
    table = fc.collective("all-to-all", STAR, "none", bytes="80KB").runs[0].transfers
    assert np.all(table["began"] <= table["left"])
    assert np.all(table["left"] < table["arrived"])
    assert np.all(table["arrived"] < table["finished"])
