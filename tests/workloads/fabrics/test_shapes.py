"""Named topologies: what the papers say of theirs, and refusals."""

from __future__ import annotations

import gzip
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.errors import InputError
from fluidcc.scenario.round_trips import base_rtt_with_serialisation
from fluidcc.units import Rate
from fluidcc.workloads import fabrics
from fluidcc.workloads.fabrics import Cable, Topology, Traffic, named_topology, shapes
from fluidcc.workloads.fabrics.lines import Lines


def cables(found: Topology, rate: str) -> int:
    return sum(cable.rate == fc.units.parse(rate, fc.units.RATE) for cable in found.cables)


def base_rtt(found: Topology, source: int, target: int) -> float:
    scenario = found.scenario([(source, target, 0.0, 1e6)], scheme="hpcc")
    return float(base_rtt_with_serialisation(scenario, scenario.flows[0]))


def test_hpccs_tree() -> None:
    """HPCC 5.1: 16 Cores, 20 Aggs, 20 ToRs, 320 servers; 100 Gb/s to servers, 400 Gb/s above; 1 us each, so 12 us."""
    found = named_topology("fat-tree:320")
    assert (len(found.hosts), len(found.switches)) == (320, 56)
    assert (cables(found, "100Gbps"), cables(found, "400Gbps")) == (320, 80 + 80)
    tiers = list(found.tiers.values())
    assert [tiers.count(tier) for tier in (1, 2, 3)] == [20, 20, 16]
    assert base_rtt(found, 0, 319) == pytest.approx(12e-6, rel=0.05)


def test_hpccs_tree_has_the_cables_of_the_published_file() -> None:
    """Other spines under an Agg: every cable of the simulator's ``topology.txt``, with its rate and delay."""
    published = gzip.decompress((Path(__file__).parents[2] / "data" / "ns3_hpcc_fat_tree.txt.gz").read_bytes())
    lines = published.decode().strip().splitlines()[2:]
    speeds = {"100Gbps": 12.5e9, "400Gbps": 50e9}
    wanted = [(int(a), int(b), speeds[rate], delay) for a, b, rate, delay, _ in map(str.split, lines)]
    assert {row[3] for row in wanted} == {"1000ns"}
    found = named_topology("fat-tree:320").cables
    assert {cable.delay for cable in found} == {1e-6}
    assert sorted((*sorted(cable.ends), cable.rate) for cable in found) == sorted(
        (*sorted(row[:2]), row[2]) for row in wanted
    )


@pytest.mark.parametrize(("name", "pods", "times"), [("k-ary:4", 4, 1), ("k-ary:6", 6, 1), ("dcqcn-clos", 2, 2)])
def test_pods_reach_every_spine(name: str, pods: int, times: int) -> None:
    """Shares of spines that overlap or are left out: each pod has as many cables to each spine, on leaves in turn."""
    found = named_topology(name)
    numbers: list[int] = list(found.tiers.values())
    tier = dict(zip(found.switches, numbers, strict=True))
    cables = [sorted(cable.ends) for cable in found.cables if all(end in tier for end in cable.ends)]
    leaves = [switch for switch in found.switches if tier[switch] == 2]
    for spine in (switch for switch in found.switches if tier[switch] == 3):
        at = [leaves.index(leaf) * pods // len(leaves) for leaf, upper in cables if upper == spine]
        assert sorted(at) == sorted(list(range(pods)) * times)
    for leaf in leaves:
        mine = [lower for lower, upper in cables if upper == leaf]
        assert len(mine) == len(set(mine)) == sum(tier[switch] == 1 for switch in found.switches) // pods


def test_it_is_the_builders_tree() -> None:
    """The same flows take as long alone over `fat_tree`, whose links are built apart."""
    rows = [(0, 319, 0.0, 50_000), (1, 17, 0.0, 999), (5, 4, 0.0, 30_000), (63, 64, 0.0, 1e6)]
    times = [
        fabrics.alone(made)
        for made in (fc.fat_tree(rows, scheme="none"), named_topology("fat-tree:320").scenario(rows, scheme="none"))
    ]
    np.testing.assert_allclose(*times, rtol=1e-12)


@pytest.mark.parametrize("k", [2, 4, 8])
def test_a_fat_tree_of_k_ports(k: int) -> None:
    """K^3/4 hosts; every switch has K cables."""
    found = named_topology(f"k-ary:{k}")
    assert (len(found.hosts), len(found.switches)) == (k**3 // 4, 5 * k * k // 4)
    ends = np.bincount([end for cable in found.cables for end in cable.ends])
    assert (ends[list(found.switches)] == k).all()


def test_leaves_and_spines() -> None:
    found = named_topology("leaf-spine:4x2x16", oversubscription=4)
    assert (len(found.hosts), len(found.switches)) == (64, 6)
    assert cables(found, "200Gbps") == 8  # 1.6 Tb/s from a leaf's hosts, over 4, over 2 spines
    assert list(found.tiers.values()) == [1, 1, 1, 1, 2, 2]
    slow = named_topology("leaf-spine:4x2x16", rate="25Gbps", fabric_rate="100Gbps", delay="500ns")
    assert (cables(slow, "25Gbps"), cables(slow, "100Gbps")) == (64, 8)
    assert {cable.delay for cable in slow.cables} == {500e-9}
    assert slow.host_rate == 25e9 / 8


@pytest.mark.parametrize(
    ("name", "fits"),
    [("4x1x16", True), ("4x1x17", False), ("4x16x1", True), ("4x17x1", False), ("64x1x1", True), ("65x1x1", False)],
)
def test_hosts_and_cables_of_leaves_and_spines_are_bounded(
    name: str, fits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither more hosts than the most there may be, nor more cables up."""
    monkeypatch.setattr(shapes, "_MOST_HOSTS", 64)
    if fits:
        leaves, spines, hosts = map(int, name.split("x"))
        found = named_topology(f"leaf-spine:{name}")
        assert (len(found.hosts), len(found.cables)) == (leaves * hosts, leaves * (hosts + spines))
        return
    with pytest.raises(InputError, match="topology: "):
        named_topology(f"leaf-spine:{name}")


@pytest.mark.parametrize(
    ("name", "ends"),
    [
        ("leaf-spine:2x2x1", [(0, 2), (1, 3), (2, 4), (2, 5), (3, 4), (3, 5)]),
        ("leaf-spine:1x1x3", [(0, 3), (1, 3), (2, 3), (3, 4)]),
        ("k-ary:2", [(0, 2), (1, 3), (2, 4), (4, 6), (3, 5), (5, 6)]),
    ],
)
def test_cables_by_hand(name: str, ends: list[tuple[int, int]]) -> None:
    assert [cable.ends for cable in named_topology(name).cables] == ends


@pytest.mark.parametrize(
    ("name", "ratio", "rate", "up"),
    [
        ("leaf-spine:4x2x16", 4, "50Gbps", "100Gbps"),
        ("leaf-spine:4x2x16", 0.5, None, "1600Gbps"),
        ("fat-tree:64", 1, None, "400Gbps"),
        ("k-ary:4", 2, "10Gbps", "5Gbps"),
    ],
)
def test_oversubscription_is_of_what_hosts_send_over_what_leads_up(
    name: str, ratio: float, rate: str | None, up: str
) -> None:
    found = named_topology(name, oversubscription=ratio, rate=rate)
    hosts = set(found.hosts)
    above = {cable.rate for cable in found.cables if not hosts.intersection(cable.ends)}
    assert above == {fc.units.parse(up, fc.units.RATE)}


@pytest.mark.parametrize(
    ("rate", "delay", "fits"),
    [(1.25e14, 0.0, True), (1.26e14, 0.0, False), (0.0, 0.0, False), (1.0, -1e-9, False), (1.0, math.inf, False)],
)
def test_rates_and_delays_that_cables_may_have(rate: float, delay: float, fits: bool) -> None:
    """A petabit each second is the most; a cable may take no time."""
    if fits:
        assert Cable((0, 1), Rate(rate), delay).delay == delay
        return
    with pytest.raises(InputError, match=r"cable( 0 to 1| delay)"):
        Cable((0, 1), Rate(rate), delay)


def test_hpccs_testbed() -> None:
    """HPCC 5.1: 5.4 us within a rack, 8.5 us across."""
    found = named_topology("testbed")
    assert (len(found.hosts), len(found.switches)) == (64, 5)
    assert base_rtt(found, 0, 1) == pytest.approx(5.4e-6, rel=1e-3)
    assert base_rtt(found, 0, 63) == pytest.approx(8.5e-6, rel=1e-3)


def test_a_pod_and_dcqcns_testbed() -> None:
    """HPCC 2.3: 230 servers with two NICs, 16 ToRs, 8 Aggs. DCQCN Fig. 2: the same paths as `clos_testbed`."""
    pod = named_topology("pod")
    assert (len(pod.hosts), len(pod.switches)) == (460, 24)
    rows = [(0, 19, 0.0, 1e6), (0, 6, 0.0, 1e6), (0, 1, 0.0, 1e6)]
    there, here = fc.clos_testbed(rows, scheme="none"), named_topology("dcqcn-clos").scenario(rows, scheme="none")
    assert [len(flow.path) for flow in here.flows] == [len(flow.path) for flow in there.flows]
    np.testing.assert_allclose(fabrics.alone(here), fabrics.alone(there), rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("fat-tree:100", {}, "pods have 64 hosts; write fat-tree:128"),
        ("fat-tree:", {}, "no shape"),
        ("fat-tree:99999999", {}, "no shape"),
        ("k-ary:5", {}, "write k-ary:6"),
        ("k-ary:-4", {}, "no shape"),
        ("leaf-spine:4x2", {}, "leaf-spine:4x2x16"),
        ("leaf-spine:4x2xx", {}, "leaf-spine:4x2x16"),
        ("leaf-spine:0x2x2", {}, "leaf-spine:4x2x16"),
        ("leaf-spine:9999x9999x9999", {}, "larger than"),
        ("pod:3", {}, "has one size"),
        ("pod:", {}, "has one size"),
        ("fat-tree:63", {}, "no shape"),
        ("fat-tree:90", {}, "write fat-tree:64"),
        ("k-ary:1", {}, "no shape"),
        ("k-ary:34", {}, "no shape"),
        ("mesh", {}, "neither a shape nor a file"),
        ("k-ary:4", {"rate": 100e9}, "rate"),
        ("k-ary:4", {"fabric_rate": "fast"}, "rate"),
        ("k-ary:4", {"oversubscription": 0}, "no ratio"),
        ("k-ary:4", {"oversubscription": 2, "fabric_rate": "1Gbps"}, "leave out one of the two"),
        ("k-ary:4", {"delay": "-1us"}, "delay"),
    ],
)
def test_shapes_that_are_none(name: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(fc.InputError, match=words):
        named_topology(name, **options)


@pytest.mark.skipif(not Path("/dev/zero").is_char_device(), reason="there is no /dev/zero")
def test_a_device_is_no_topology_and_no_flows() -> None:
    """Both are read twice, which a pipe or a device cannot be."""
    with pytest.raises(InputError, match="/dev/zero: is a pipe or a device"):
        named_topology("/dev/zero")
    with pytest.raises(InputError, match="/dev/zero: is a pipe or a device"):
        Traffic(flows="/dev/zero")


def test_a_file_beyond_its_bound_is_refused_rather_than_cut(tmp_path: Path) -> None:
    path = tmp_path / "many.txt"
    path.write_text("1 2\n3 4\n")
    assert [*Lines(path, "numbers", 8).rows()] == [["1", "2"], ["3", "4"]]
    with pytest.raises(InputError, match=r"many\.txt: is larger than 0 MiB; give numbers"):
        Lines(path, "numbers", 7)


def test_a_file_has_its_own_rates(tmp_path: Path) -> None:
    path = tmp_path / "topology.txt"
    path.write_text("3 1 2\n2\n0 2 100Gbps 1us 0\n1 2 100Gbps 1us 0\n")
    assert named_topology(path).hosts == (0, 1)
    with pytest.raises(fc.InputError, match=r"rate: .* has its own"):
        named_topology(path, rate="10Gbps")
