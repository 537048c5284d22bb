"""htsim's topologies: switches that follow from counts of ports, and what is refused."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import fluidcc as fc
from fluidcc.workloads.fabrics import named_topology

# After leaf_spine_tiny.topo of Broadcom/csg-htsim, with counts of ours.
TWO = """# two tiers: 4 leaves of 4 hosts, 2 spines
Nodes 16
Tiers 2
Podsize 16

Tier 0
Downlink_speed_Gbps 100
Radix_Down 4
Radix_Up 2
Downlink_Latency_ns 1000
Switch_Latency_ns 300
Oversubscribed 2

Tier 1
Downlink_speed_Gbps 100
Radix_Down 4
Downlink_Latency_ns 2000
Switch_Latency_ns 500
"""
# Three tiers, and cores by bundles of three cables, as of zrs.topo.
THREE = """nodes 36
tiers 3
podsize 18
tier 0
downlink_speed_gbps 100
radix_down 6
radix_up 6
downlink_latency_ns 1000
tier 1
downlink_speed_gbps 100
radix_down 3
radix_up 3
downlink_latency_ns 1000
tier 2
downlink_speed_gbps 100
radix_down 6
bundle 3
downlink_latency_ns 600000
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "a.topo"
    path.write_text(text)
    return path


def test_leaves_and_spines(tmp_path: Path) -> None:
    found = named_topology(written(tmp_path, TWO))
    assert (len(found.hosts), Counter(found.tiers.values()), found.words) == (16, {1: 4, 2: 2}, ())
    assert len(found.cables) == 16 + 4 * 2
    assert {float(cable.rate) for cable in found.cables} == {12.5e9}
    # A way from leaf to leaf: two hosts' cables, two to a spine, and each switch once.
    way = 2 * found.cables[0].delay + 2 * found.cables[-1].delay
    assert way == pytest.approx((2 * 1000 + 2 * 2000 + 2 * 300 + 500) * 1e-9)


def test_bundles_to_the_cores(tmp_path: Path) -> None:
    found = named_topology(written(tmp_path, THREE))
    assert Counter(found.tiers.values()) == {1: 6, 2: 12, 3: 6}
    between = Counter(cable.ends for cable in found.cables)
    cores = [node for node, tier in found.tiers.items() if tier == 3]
    assert {count for ends, count in between.items() if ends[1] in cores} == {3}
    assert {sum(count for ends, count in between.items() if core in ends) for core in cores} == {6}
    assert len(found.scenario([(0, 35)], scheme="none").flows[0].path) == 5


FAN = """nodes 16
tiers 3
podsize 8
tier 0
downlink_speed_gbps 100
radix_down 4
radix_up 4
downlink_latency_ns 1000
tier 1
downlink_speed_gbps 100
radix_down 2
radix_up 2
downlink_latency_ns 1000
tier 2
downlink_speed_gbps 100
radix_down 2
downlink_latency_ns 1000
"""


def test_cores_above_an_agg_by_hand(tmp_path: Path) -> None:
    """Two pods of two ToRs and four Aggs: each Agg is under two of the eight Cores, the same in both pods."""
    found = named_topology(written(tmp_path, FAN))
    tors, aggs, cores = range(16, 20), range(20, 28), range(28, 36)
    ends = [cable.ends for cable in found.cables]
    assert ends[:16] == [(host, 16 + host // 4) for host in range(16)]
    assert ends[16:32] == [(tor, agg) for tor in tors for agg in (aggs[:4] if tor < 18 else aggs[4:])]
    assert ends[32:] == [(agg, core) for k, agg in enumerate(aggs) for core in (cores[k % 4], cores[k % 4 + 4])]
    assert found.words == ()
    with pytest.raises(fc.InputError, match="4 Aggs of a pod lead to 4 Cores, and there are 8"):
        named_topology(written(tmp_path, FAN.replace("radix_up 2", "radix_up 1")))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("Podsize 16\n", "", "has no Podsize"),
        ("Tiers 2\n", "Tiers 4\n", "has 4 tiers"),
        ("Tiers 2\n", "Tiers 3\n", "has no Tier 2"),
        ("Nodes 16", "Nodes x", "line 2: Nodes 'x'"),
        ("Nodes 16", "Nodes", "line 2: 'Nodes' has no number"),
        ("Podsize 16", "Podsize 0", "Podsize .0. is less than 1"),
        ("Nodes 16", "Nodes 24", "Nodes over Podsize: 24 is not a multiple of 16"),
        ("Radix_Down 4\nRadix_Up 2", "Radix_Down 3\nRadix_Up 2", "16 is not a multiple of 3"),
        ("Radix_Up 2\n", "", "Tier 0 has no radix_up"),
        ("Oversubscribed 2", "Bundle 2", "Tier 0 has a Bundle of 2"),
        ("Oversubscribed 2", "Radix_Up 2", "line 12: Radix_Up is there twice"),
        ("Tier 1", "Tier 0", "line 14: tier 0 is there twice"),
        ("Tier 1", "Tier 3", "line 14: a tier '3' is more than 2"),
    ],
)
def test_what_is_no_topology_of_htsim(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert TWO.count(old) == 1
    with pytest.raises(fc.InputError, match=words):
        named_topology(written(tmp_path, TWO.replace(old, new)))


@pytest.mark.parametrize(
    ("line", "fits"),
    [
        ("Switch_Latency_ns 0", True),
        ("Switch_Latency_ns 1048576000", True),
        ("Switch_Latency_ns 1048576001", False),
        ("Switch_Latency_ns -1", False),
    ],
)
def test_numbers_have_a_range(tmp_path: Path, line: str, fits: bool) -> None:
    """Up to a thousand times the nodes there may be; latencies may be 0, and counts may not."""
    path = written(tmp_path, TWO.replace("Switch_Latency_ns 300", line))
    if fits:
        latency = int(line.split()[1])
        assert named_topology(path).cables[0].delay == pytest.approx((1000 + latency / 2) * 1e-9)
    else:
        with pytest.raises(fc.InputError, match="line 11: Switch_Latency_ns"):
            named_topology(path)
    with pytest.raises(fc.InputError, match="line 12: Oversubscribed '0' is less than 1"):
        named_topology(written(tmp_path, TWO.replace("Oversubscribed 2", "Oversubscribed 0")))


def test_what_is_not_as_in_the_file_is_said(tmp_path: Path) -> None:
    found = named_topology(written(tmp_path, TWO.replace("Radix_Up 2", "Radix_Up 4\nQueue_Down 1001")))
    assert [line.partition("topo")[2] for line in found.words] == [
        ", line 10: Queue_Down is not used",
        ": ToRs have 2 cables up, as follows from speeds, Oversubscribed and Radix_Down, and not Radix_Up 4",
    ]
