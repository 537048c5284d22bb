"""Collectives on an idle star against closed forms, worked out here by hand, within one packet's time.

A rank's transfer of n packets of w bytes arrives over one switch, stored and forwarded, after (n + 1) w / R + 2 d: the
train onto the first link, and its last packet onto the second. ACKs are a byte for each hundred packets here, so that
they take none of the links.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.workloads.collectives import Job
from fluidcc.workloads.collectives.algorithms import parents

RATE = 12.5e9  # bytes/s
DELAY = 1e-6
WIRE = 1048
PACKET = WIRE / RATE
QUIET = {"packet_size": 1000, "header_bytes": 48, "ack_bytes": "1B", "ack_interval": 100}


def arrives(packets: int) -> float:
    """Time until a transfer has arrived."""
    return (packets + 1) * PACKET + 2 * DELAY


def one(what: Any, hosts: int = 8, **options: Any) -> dict[str, Any]:
    """Numbers of a run on a star."""
    study = fc.collective(what, f"leaf-spine:1x1x{hosts}", "none", **QUIET, **options)
    found = study.runs[0].numbers
    assert found["unfinished"] == 0
    return found


def near(expected: float) -> Any:
    return pytest.approx(expected, rel=0, abs=PACKET)


@pytest.mark.parametrize("ranks", [2, 3, 8])
def test_a_ring_all_reduce_has_two_rounds(ranks: int) -> None:
    found = one("all-reduce", ranks, bytes=100e3 * ranks)
    assert found["time_s"] == near(2 * (ranks - 1) * arrives(100))
    assert found["transfers"] == 2 * (ranks - 1) * ranks


def test_a_ring_over_two_racks_is_as_long_as_its_longest_chain() -> None:
    """Two of the eight hops cross a spine at four times the rate; of 14 in a row at most 4 do."""
    study = fc.collective("all-reduce", "leaf-spine:2x1x4", "none", bytes="800KB", **QUIET)
    across = 101 * PACKET + 2 * PACKET / 4 + 4 * DELAY
    assert study.runs[0].numbers["time_s"] == near(10 * arrives(100) + 4 * across)


@pytest.mark.parametrize("kind", ["all-gather", "reduce-scatter"])
def test_half_of_it_has_one(kind: str) -> None:
    assert one(kind, bytes="800KB")["time_s"] == near(7 * arrives(100))


def test_a_broadcast_goes_from_rank_to_rank() -> None:
    """Chunks leave the first rank back to back, and each next one passes on the last as it has arrived."""
    assert one("broadcast", bytes="100KB")["time_s"] == near(7 * arrives(100))
    found = one("broadcast", bytes="400KB", chunks=4)
    assert found["time_s"] == near(arrives(400) + 6 * arrives(100))


def test_all_to_all_fills_every_port() -> None:
    """Packet by packet, senders serve their peers in turn: at each time all ports receive one."""
    assert one("all-to-all", bytes="800KB")["time_s"] == near((7 * 100 + 1) * PACKET + 2 * DELAY)


def test_two_ranks_tree_is_up_and_down() -> None:
    """Each half in its own direction, at once."""
    assert one("all-reduce", 2, bytes="200KB", algorithm="tree", chunks=1)["time_s"] == near(2 * arrives(100))


def test_a_tree_of_four() -> None:
    """1 and 3 send to 2, and 2 and 0 to 1; on to the roots 0 and 3; back; and two at once to the leaves.

    Two transfers into one port, or out of one, take as long as one of twice the packets.
    """
    assert parents(4) == ([-1, 2, 0, 2], [1, 3, 1, -1])
    found = one("all-reduce", 4, bytes="200KB", algorithm="tree", chunks=1)
    assert found["time_s"] == near(2 * arrives(200) + 2 * arrives(100))


def test_trees_are_nccls() -> None:
    """The pictures in NCCL's sources, of 12 and 13 ranks; who has children in one tree is a leaf of the other."""
    first, second = parents(12)
    assert first == [-1, 2, 4, 2, 8, 6, 4, 6, 0, 10, 8, 10]
    assert second == [1, 3, 1, 11, 5, 7, 5, 3, 9, 7, 9, -1]
    first, second = parents(13)
    assert first == [-1, 2, 4, 2, 8, 6, 4, 6, 0, 10, 12, 10, 8]
    assert second == [9, -1, 3, 5, 3, 9, 7, 5, 7, 1, 11, 0, 11]
    for count in range(2, 40):
        inner = [set(each) - {-1} for each in parents(count)]
        assert len(inner[0] & inner[1]) <= 1  # an odd number's root, perhaps


def test_a_pipeline_is_as_long_as_its_bubbles() -> None:
    """GPipe: P + K - 1 computes and P - 1 transfers there, and as many back."""
    found = one("pipeline", 4, bytes="400KB", chunks=4, compute="50us")
    assert found["time_s"] == near(2 * (7 * 50e-6 + 3 * arrives(100)))


def test_inside_servers_first() -> None:
    """Four servers of two: half reduced and gathered inside, and two rings of four between them."""
    found = one("all-reduce", 8, bytes="800KB", server=2, server_rate="100GB/s")
    inside = 0.5 * 800e3 / 100e9
    assert found["time_s"] == near(2 * inside + 6 * arrives(100))
    gathered = one("all-gather", 8, bytes="800KB", server=2, server_rate="100GB/s")
    assert gathered["time_s"] == near(inside + 3 * arrives(100))


def test_copies_in_a_server_cross_no_fabric() -> None:
    found = one("broadcast", 4, bytes="100KB", server=2, server_rate="1GB/s")
    assert found["transfers"] == 1
    assert found["time_s"] == near(2 * 100e-6 + arrives(100))


def test_repetitions_wait_for_compute() -> None:
    found = one("all-reduce", bytes="800KB", steps=3, compute="20us")
    ring = 14 * arrives(100)
    assert found["jobs"][0]["iteration_times_s"] == [near(ring)] * 3
    assert found["total_s"] == pytest.approx(3 * (ring + 20e-6), abs=3 * PACKET)
    assert found["critical_path"]["compute_s"] == pytest.approx(60e-6)
    assert found["critical_path"]["transfers"] == 3 * 14


def test_popular_experts_are_the_bottleneck() -> None:
    """Seven send the most popular rank its share of all; its port is never idle, but for the start."""
    found = one("all-to-all", bytes="800KB", skew=1)
    most = 1 / np.sum(1 / np.arange(1, 9))
    expected = (7 * most * 800 + 1) * PACKET + 2 * DELAY
    assert expected - PACKET < found["time_s"] < 1.02 * expected


@pytest.mark.parametrize(
    ("kind", "factor"),
    [
        ("all-reduce", 2 * 7 / 8),
        ("all-gather", 7 / 8),
        ("reduce-scatter", 7 / 8),
        ("all-to-all", 7 / 8),
        ("broadcast", 1),
        ("pipeline", 1),
    ],
)
def test_bus_bandwidth_is_nccl_tests(kind: str, factor: float) -> None:
    """The factors of nccl-tests' doc/PERFORMANCE.md for 8 ranks (sendrecv's for a pipeline)."""
    assert Job(kind, ranks=8).factor == pytest.approx(factor)
    found = one(kind, bytes="80KB")
    assert found["bus_bandwidth_bytes_per_s"] == pytest.approx(factor * 80e3 / found["time_s"])


def test_a_full_ring_with_usual_acks_is_slower_by_these_at_most() -> None:
    """ACKs of 64 B of what a rank receives share its link with what it sends."""
    study = fc.collective("all-reduce", "leaf-spine:1x1x8", "none", bytes="800KB", packet_size=1000, header_bytes=48)
    took = study.runs[0].numbers["time_s"]
    least, most = 14 * arrives(100), 14 * (arrives(100) + 100 * 64 / RATE)
    assert least < took < most


@pytest.mark.parametrize("chunks", [1, 4, 16])
def test_a_rank_copies_no_faster_than_its_rate(chunks: int) -> None:
    """The first of a server of two hands all on at 2 GB/s: 200 us, however many chunks; then they cross the fabric."""
    found = one("broadcast", 4, bytes="400KB", server=2, server_rate="2GB/s", chunks=chunks)
    last = arrives(400 // chunks) + 400e3 / chunks / 2e9  # of the last chunk: over the fabric, and inside the other
    assert found["time_s"] == near(400e3 / 2e9 + last)


def test_all_to_all_inside_a_server_shares_a_ranks_rate() -> None:
    """Three copies of 100 KB of each of four ranks at 1 GB/s; what crosses the fabric is done long before."""
    study = fc.collective(
        "all-to-all", "leaf-spine:1x1x8", "none", **QUIET, bytes="800KB", server=4, server_rate="1GB/s"
    )
    table = study.runs[0].transfers.to_dataframe()
    copies = table[table["size"] == 0]
    assert len(copies) == 8 * 3
    for _, mine in copies.groupby("rank"):
        starts, ends = np.sort(np.array(mine["began"])), np.sort(np.array(mine["finished"]))
        assert starts == pytest.approx([0, 100e-6, 200e-6], abs=1e-9)
        assert ends == pytest.approx([100e-6, 200e-6, 300e-6], abs=1e-9)
    assert study.runs[0].numbers["time_s"] == pytest.approx(300e-6, abs=1e-9)
