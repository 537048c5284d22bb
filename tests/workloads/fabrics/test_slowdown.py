"""Slowdowns: one flow alone has 1, whatever its size and path; what did not finish is in no mean."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr

import fluidcc as fc
from fluidcc.workloads import fabrics
from fluidcc.workloads.fabrics import Cable, Topology
from fluidcc.workloads.fabrics.slowdowns import bin_ends, ends_alone, slowdown_of
from fluidcc.workloads.fabrics.study import seeds_of
from fluidcc.workloads.fabrics.topology import _listed

# Hosts 0 to 3 of two ToRs (4, 5) under one spine (6), the fourth behind a slow port.
PODS = Topology(
    (0, 1, 2, 3),
    (4, 5, 6),
    (
        *(Cable((host, tor), "100Gbps", "1us") for host, tor in ((0, 4), (1, 4), (2, 5))),
        Cable((3, 5), "25Gbps", "300ns"),
        Cable((4, 6), "400Gbps", "2us"),
        Cable((6, 5), "40Gbps", "2us"),
    ),
)
SIZES = [1, 17, 999, 1000, 1001, 1999, 2500, 64_000, 1_000_001]


@pytest.mark.parametrize("ends", [(0, 1), (0, 2), (2, 0), (0, 3), (3, 1)])
@pytest.mark.parametrize("scheme", ["none", "hpcc"])
def test_one_flow_alone_has_one(ends: tuple[int, int], scheme: str) -> None:
    """By the recursion over hops, against the packet engine: the same picoseconds."""
    flows = [(*ends, 2e-3 * k, size) for k, size in enumerate(SIZES)]
    scenario = PODS.scenario(flows, scheme=scheme, header_bytes=48)
    if scheme == "hpcc":  # a window of its own round trip holds nobody back who is alone but for the first ACK
        scenario = PODS.scenario(flows[:4], scheme=scheme, header_bytes=48)
    found = fc.fabrics.slowdown(scenario, fc.simulate(scenario, "20ms", engine="packet"))
    np.testing.assert_allclose(found["slowdown"].values, 1.0, rtol=0, atol=1e-7)
    assert found.unfinished == 0


def test_slowdowns_are_times_over_times_alone() -> None:
    """Times that are written here; a long-lived flow has none, and one that has not ended is NaN."""
    rows = [(0, 1, 1e-3, 2500), (0, 1, 0.0, np.inf), (2, 0, 0.0, 1000), (3, 1, 0.0, 1000)]
    scenario = PODS.scenario(rows, scheme="none", header_bytes=48)
    least = fabrics.alone(scenario)
    found = slowdown_of(scenario, [3 * least[0], None, 1.5 * least[3]], "alone", [1e-3, 0.0, 2e-6, None])
    np.testing.assert_allclose(found["slowdown"].values, [3, np.nan, 1.5], rtol=1e-12)
    np.testing.assert_allclose(found["start"].values, [1e-3, 2e-6, np.nan])
    np.testing.assert_allclose(found["alone"].values, least[[0, 2, 3]])
    assert found["flow"].values.tolist() == ["flow 0", "flow 2", "flow 3"]
    assert found.unfinished == 1
    # Two full packets and 548 B: the second is through both hops after 3 x 1048 B, the last behind it; then its ACK.
    through = (3 * 1048 + 548 + 2 * float(scenario.ack_bytes)) / 12.5e9
    assert least[0] == pytest.approx(through + 4e-6, rel=1e-9)
    with pytest.raises(fc.InputError, match="3 flows of finite size"):
        slowdown_of(scenario, [None] * 4, "alone")


@pytest.mark.parametrize(
    ("seeds", "found"), [(3, [1, 2, 3]), (1, [1]), ([5, 0], [5, 0]), ([7], [7]), ([2**63 - 1], [2**63 - 1])]
)
def test_seeds_as_given_or_so_many(seeds: Any, found: list[int]) -> None:
    assert seeds_of(seeds) == found


@pytest.mark.parametrize("seeds", [0, [], [1, 1], [-1], [2**63], 1001])
def test_seeds_that_are_none(seeds: Any) -> None:
    with pytest.raises(fc.InputError, match="seeds"):
        seeds_of(seeds)


def test_the_simulators_rule_is_its_formula() -> None:
    """(third.cc:165): a round trip of 1000 B stored once a link, and all bytes with headers at the slowest link."""
    scenario = PODS.scenario([(0, 2, 0.0, 2500)], scheme="none", header_bytes=48)
    found = fc.fabrics.slowdown(scenario, fc.simulate(scenario, "1ms", engine="packet"), ideal="hpcc-sim")
    trip = 2 * (1 + 2 + 2 + 1) * 1e-6 + 8000 * (2 / 100e9 + 1 / 400e9 + 1 / 40e9)
    assert found["alone"].values[0] == pytest.approx(trip + (2500 + 3 * 48) * 8 / 40e9, rel=1e-12)


def test_two_at_once_share_and_the_third_does_not_finish() -> None:
    flows = [(0, 2, 0.0, 1_000_000), (1, 2, 0.0, 1_000_000), (3, 2, 1e-3, 10**9)]
    scenario = PODS.scenario(flows, scheme="none")
    found = fc.fabrics.slowdown(scenario, fc.simulate(scenario, "2ms", engine="packet"))
    assert 1.9 < found["slowdown"].values[:2].max() < 2.0
    assert found.unfinished == 1
    numbers = found.statistics()
    assert (numbers["flows"], numbers["unfinished"]) == (2, 1)
    assert numbers["mean"] == pytest.approx(np.nanmean(found["slowdown"].values))
    bins = found.bins(["0B", "1MB", "1GB"])
    assert bins["flows"].values.tolist() == [2, 0]
    assert bins["unfinished"].values.tolist() == [0, 1]
    assert np.isnan(bins["p99"].values[1])
    assert "1 unfinished" in repr(found)
    assert "none finished" in repr(fc.fabrics.Slowdown(found.dataset.isel(flow=[2])))


def test_bins_of_as_many_flows_each() -> None:
    sizes = np.arange(1.0, 1001.0)
    data = {"size": ("flow", sizes), "slowdown": ("flow", 1 + sizes / 1000)}
    found = fc.fabrics.Slowdown(xr.Dataset(data)).bins(4)
    assert found["flows"].values.tolist() == [250, 250, 250, 250]
    assert found["to_bytes"].values.tolist() == [250, 500, 750, 1000]
    np.testing.assert_allclose(found["p50"].values, [1.1255, 1.3755, 1.6255, 1.8755])


@pytest.mark.parametrize(
    ("sizes", "count", "ends"),
    [
        ([5.0, 5.0, 5.0], 3, [0.0, 5.0]),  # of one size alone: from 0
        ([1.0, 2.0, 3.0], 1, [1.0, 3.0]),
        ([4.0, 1.0, 3.0, 2.0], 2, [1.0, 2.0, 4.0]),
        ([1.0, 1.0, 1.0, 9.0], 2, [1.0, 9.0]),  # a size is in one bin
    ],
)
def test_ends_of_bins_by_hand(sizes: list[float], count: int, ends: list[float]) -> None:
    assert bin_ends(np.array(sizes), count).tolist() == ends


def test_a_size_at_an_end_belongs_to_the_bin_below_and_the_first_to_the_first() -> None:
    """Flows of 9 to 31 bytes: the first and the last are in neither bin."""
    sizes = np.array([9.0, 10.0, 20.0, 21.0, 30.0, 31.0])
    found = fc.fabrics.Slowdown(xr.Dataset({"size": ("flow", sizes), "slowdown": ("flow", sizes)})).bins(
        ["10B", "20B", "30B"]
    )
    assert found["flows"].values.tolist() == [2, 2]
    assert found["mean"].values.tolist() == [15.0, 25.5]
    assert found["from_bytes"].values.tolist() == [10.0, 20.0]


def test_a_flow_alone_leaves_arrives_and_is_answered_by_hand() -> None:
    """Three packets of 2500 B in all with 48 B each, at 100 Gb/s twice; then 2 us of cables, and as many back."""
    scenario = PODS.scenario([(0, 1, 0.0, 2500), (0, 1, 0.0, np.inf)], scheme="none", header_bytes=48)
    found = ends_alone(scenario)
    through = (3 * 1048 + 548) / 12.5e9 + 2e-6
    ack = 2 * float(scenario.ack_bytes) / 12.5e9 + 2e-6
    assert found[:, 0] == pytest.approx([2644 / 12.5e9, through, through + ack], rel=1e-9)
    assert np.isinf(found[:, 1]).all()


@pytest.mark.parametrize(("delay", "back"), [(None, 4 * 6e-6), ("50us", 50e-6)])
def test_a_feedback_delay_replaces_the_propagation_of_a_time_alone(delay: str | None, back: float) -> None:
    """Two packets of 1000 B and one of 500 B over two links of 6 us. Catches a delay that is left out."""
    scheme = fc.DCQCN(feedback_delay=delay)
    scenario = fc.incast(1, rate="100Gbps", delay="6us", scheme=scheme, size=2500)
    stored = (3 * 1000 + 500 + 2 * float(scenario.ack_bytes)) / 12.5e9
    assert fabrics.alone(scenario) == pytest.approx([stored + back], rel=1e-12)


@pytest.mark.parametrize("edges", ["0B", [], ["1KB"], ["2KB", "1KB"], ["0B", "1kg"], 0, None])
def test_edges_that_are_none(edges: Any) -> None:
    data = {"size": ("flow", [1.0, 2.0]), "slowdown": ("flow", [1.0, 2.0])}
    with pytest.raises(fc.InputError, match="edges"):
        fc.fabrics.Slowdown(xr.Dataset(data)).bins(edges)


def test_what_has_no_slowdown_is_refused() -> None:
    long_lived = fc.incast(2)
    trace = fc.simulate(fc.incast(2, size="10KB", scheme="none"), "1ms", engine="packet")
    with pytest.raises(fc.InputError, match="0 flows of finite size, and the trace 2"):
        fc.fabrics.slowdown(long_lived, trace)
    with pytest.raises(fc.InputError, match="alone or hpcc-sim"):
        fc.fabrics.slowdown(fc.incast(2, size="10KB", scheme="none"), trace, ideal="best")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"hosts": (0, 1, 2, 3, 4)}, "node 4 is there twice"),
        ({"hosts": (0, 1, 2)}, "leads to node 3"),
        ({"cables": PODS.cables[1:]}, "host 0 has 0 cables"),
        ({"cables": (*PODS.cables, Cable((0, 5), "1Gbps", "1us"))}, "host 0 has 2 cables"),
        ({"cables": (*PODS.cables, Cable((0, 1), "1Gbps", "1us"))}, "hosts 0 and 1 are linked with each other"),
    ],
)
def test_topologies_that_are_none(change: dict[str, Any], words: str) -> None:
    parts = {"hosts": PODS.hosts, "switches": PODS.switches, "cables": PODS.cables} | change
    with pytest.raises(fc.InputError, match=words):
        Topology(**parts)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ((0, 9, 0.0, 1e3), "target: there is no host 9; the topology's hosts are 0 to 3"),
        ((6, 0, 0.0, 1e3), "source: there is no host 6"),
        ((float("nan"), 0, 0.0, 1e3), "source: there is no host nan"),
        ((0, None, 0.0, 1e3), "target: there is no host None"),
        ((0, 1.5, 0.0, 1e3), "target: there is no host 1.5"),
        ((2, 2, 0.0, 1e3), "from host 2 to itself"),
        ((0,), "is no flow"),
        ((0, 1, 0.0, 1e3, 7), "is no flow"),
        ((0, 1, "soon", 1e3), "start"),
        ((0, 1, 0.0, -5), "size"),
    ],
)
def test_flows_that_lead_nowhere(row: tuple[Any, ...], words: str) -> None:
    with pytest.raises(fc.InputError, match=f"flow 1.*{words}"):
        PODS.scenario([(0, 1, 0.0, 1e3), row])


@pytest.mark.parametrize(
    ("hosts", "said"),
    [
        ([3], "3"),
        ([3, 4], "3 to 4"),
        ([3, 5], "3, 5"),
        ([4, 3], "4, 3"),
        ([*range(0, 16, 2)], "0, 2, 4, 6, 8, 10, 12, 14"),
        ([*range(0, 18, 2)], "0, 2, 4, 6, 8, 10, 12, 14 and 1 more"),
    ],
)
def test_hosts_in_a_few_words(hosts: list[int], said: str) -> None:
    assert _listed(hosts) == said


def test_hosts_that_are_no_range_are_named() -> None:
    odd = Topology((3, 7), (5,), (Cable((3, 5), "1Gbps", "1us"), Cable((7, 5), "1Gbps", "1us")))
    with pytest.raises(fc.InputError, match="hosts are 3, 7"):
        odd.scenario([(3, 4)])


def test_a_fabric_in_parts_is_refused() -> None:
    parts = Topology((0, 1), (2, 3), (Cable((0, 2), "1Gbps", "1us"), Cable((1, 3), "1Gbps", "1us")))
    with pytest.raises(fc.InputError, match="no path leads from host 0 to 1"):
        parts.scenario([(0, 1, 0.0, 1e3)])


def test_a_topology_and_the_builder_of_a_fat_tree_are_the_same_network() -> None:
    """Every flow takes as long over HPCC's tree by `fat_tree` as over the same tree as cables."""
    sizes = {"pods": 2, "tors": 2, "leaves": 2, "spines": 2, "hosts": 2}
    tors, leaves, spines = range(8, 12), range(12, 16), range(16, 18)
    cables = [Cable((host, tors[host // 2]), "100Gbps", "1us") for host in range(8)]
    cables += [
        Cable((tors[2 * p + t], leaves[2 * p + k]), "400Gbps", "1us") for p in (0, 1) for t in (0, 1) for k in (0, 1)
    ]
    cables += [Cable((leaves[2 * p + k], spines[k]), "400Gbps", "1us") for p in (0, 1) for k in (0, 1)]
    same = Topology(tuple(range(8)), (*tors, *leaves, *spines), tuple(cables))
    rows = [(0, 7, 0.0, 50_000), (3, 4, 1e-6, 2_000), (1, 2, 0.0, 9_999), (5, 4, 0.0, 30_000)]
    times = [
        fabrics.alone(made) for made in (fc.fat_tree(rows, **sizes, scheme="none"), same.scenario(rows, scheme="none"))
    ]
    np.testing.assert_allclose(times[0], times[1], rtol=1e-12)
