"""What hosts send: patterns, workloads, incasts, lists."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.builders.workloads import SIZES, WEB_SEARCH
from fluidcc.workloads import fabrics
from fluidcc.workloads.fabrics import Cable, Incast, Topology, Traffic, named_topology
from fluidcc.workloads.fabrics.traffic import parts_of, sizes_of

SMALL = named_topology("leaf-spine:2x1x4")
MATRIX = """# a comment
Nodes 8
Connections 3
0->5 id 1 start 0 size 2000000
1->5 id 2 start 1500000 size 20000
2->7 start 0 size 0
"""


def test_a_permutation() -> None:
    for seed in range(20):
        rows = fc.fabrics.permutation_flows(9, size="5KB", seed=seed)
        assert sorted(rows[:, 1]) == list(range(9))
        assert (rows[:, 0] != rows[:, 1]).all()
        assert set(rows[:, 3]) == {5000.0}
    assert len({tuple(fc.fabrics.permutation_flows(9, seed=seed)[:, 1]) for seed in range(20)}) > 15


def test_all_to_all() -> None:
    pairs = fc.fabrics.all_to_all_flows(5, size="1KB")[:, :2].tolist()
    assert sorted(pairs) == [[a, b] for a in range(5) for b in range(5) if a != b]


def test_a_workload_loads_the_hosts() -> None:
    """Bytes over the time and all hosts' rate, within 4 standard errors of some 50 000 flows; numbers of a topology."""
    odd = Topology(tuple(range(10, 18)), (3,), tuple(fabrics.Cable((h, 3), "40Gbps", "1us") for h in range(10, 18)))
    rows = np.asarray(Traffic("alibaba-storage", load=0.4, until="100ms").rows(odd, seed=3))
    assert set(np.unique(rows[:, :2])) == set(range(10, 18))
    assert (np.diff(rows[:, 2]) >= 0).all()
    sizes = rows[:, 3]
    expected = 0.4 * 8 * 5e9 * 100e-3
    spread = np.sqrt(len(sizes) * (sizes**2).mean())  # of a compound Poisson sum
    assert abs(sizes.sum() - expected) < 4 * spread
    assert spread / expected < 0.03


@pytest.mark.parametrize(
    ("workload", "part", "says"),
    [
        ("web-search+alibaba-storage", 0.5, "web-search + alibaba-storage"),
        ("alibaba-storage:20%+web-search:80%", 0.8, "alibaba-storage (20 %) + web-search (80 %)"),
    ],
)
def test_a_mix_has_the_load_and_the_sizes_of_its_parts(workload: str, part: float, says: str) -> None:
    """Bytes of all flows, and of those over 2 MB, which no flow of storage exceeds, within 4 standard errors."""
    traffic = Traffic(workload, load=0.4, until="400ms")
    assert traffic.says == f"{says} at 40 % load"
    mean = [np.diff([s for _, s in WEB_SEARCH]), [(a + b) / 2 for (a, _), (b, _) in pairwise(WEB_SEARCH)]]
    large = float(np.sum(np.prod(mean, axis=0)[-3:]) / np.sum(np.prod(mean, axis=0)))  # of web-search's bytes
    total = 0.4 * 8 * 12.5e9 * 400e-3
    sizes = np.asarray(traffic.rows(SMALL, seed=3))[:, 3]
    for found, expected in ((sizes, total), (sizes[sizes > 2e6], large * part * total)):
        spread = np.sqrt((found**2).sum())
        assert abs(found.sum() - expected) < 4 * spread
        assert spread < 0.05 * expected


def test_a_mix_of_one_kind_is_that_kind(tmp_path: Path) -> None:
    """Two files with the table of a workload between them: its flows, one by one."""
    for name in ("a", "b"):
        lines = [f"{size} {100 * share}" for size, share in SIZES["hadoop"]]
        (tmp_path / name).write_text("\n".join(lines))
    mixed = Traffic(f"{tmp_path / 'a'}:30%+{tmp_path / 'b'}:70%", until="1ms")
    assert mixed.says == "a (30 %) + b (70 %) at 50 % load"
    np.testing.assert_allclose(
        np.asarray(mixed.rows(SMALL, 1)), np.asarray(Traffic("hadoop", until="1ms").rows(SMALL, 1)), rtol=0, atol=1
    )


def test_sizes_of_a_mix_by_hand(tmp_path: Path) -> None:
    """Mean sizes of 500 B and 5500 B with the same load: of twelve flows eleven are small, none below its own sizes."""
    (tmp_path / "small").write_text("0 0\n1000 100\n")
    (tmp_path / "large").write_text("5000 0\n6000 100\n")
    found = sizes_of(f"{tmp_path / 'large'}+{tmp_path / 'small'}")
    assert [size for size, _ in found] == [0, 1000, 5000, 6000]
    assert [share for _, share in found] == pytest.approx([0, 11 / 12, 11 / 12, 1], rel=1e-12)


@pytest.mark.parametrize(
    ("workload", "parts"),
    [
        ("hadoop", [("hadoop", 1.0)]),
        ("permutation", [("permutation", 1.0)]),
        ("hadoop + web-search", [("hadoop", 0.5), ("web-search", 0.5)]),
        ("hadoop:25%+web-search:75%", [("hadoop", 0.25), ("web-search", 0.75)]),
        ("hadoop:100%", [("hadoop:100%", 1.0)]),  # no mix: a name, which nothing has
        ("hadoop:0.2+web-search:0.8", [("hadoop", 0.2), ("web-search", 0.8)]),
    ],
)
def test_parts_of_a_mix_have_shares_of_one(workload: str, parts: list[tuple[str, float]]) -> None:
    assert parts_of(workload) == parts


@pytest.mark.parametrize(
    ("workload", "words"),
    [
        ("hadoop+", "lacks a part"),
        ("hadoop+websearch", "'websearch' is neither known nor a file"),
        ("hadoop+permutation", "permutation is all at once"),
        ("hadoop+hadoop", "'hadoop' is in the mix twice"),
        ("hadoop:50%+web-search", "shares of some parts only"),
        ("hadoop:50%+web-search:60%", "add up to 110%"),
        ("hadoop:0%+web-search:100%", "is no share of the load"),
        ("hadoop:much+web-search:10%", "workload"),
    ],
)
def test_mixes_that_are_none(workload: str, words: str) -> None:
    with pytest.raises(fc.InputError, match=words):
        Traffic(workload, until="1ms")


def test_an_incast_beside_it() -> None:
    traffic = Traffic("hadoop", load=0.2, until="5ms", incast="5:20KB:10%")
    assert traffic.incast == Incast(5, "20KB", 0.1)
    assert traffic.says == "hadoop at 20 % load, incast of 5 at 10 %"
    rows = np.asarray(traffic.rows(SMALL))
    starts, counts = np.unique(rows[rows[:, 3] == 20e3][:, 2], return_counts=True)
    assert (counts == 5).mean() > 0.95  # but where a workload's flow is of 20 000 B
    assert len(starts) * 1e5 == pytest.approx(0.1 * 8 * 12.5e9 * 5e-3, rel=0.18)  # 4 deviations of 500 at random


def test_seeds_and_lists(tmp_path: Path) -> None:
    traffic = Traffic("web-search", until="1ms")
    assert np.array_equal(traffic.rows(SMALL, 1), traffic.rows(SMALL, 1))
    assert not np.array_equal(traffic.rows(SMALL, 1), traffic.rows(SMALL, 2))
    path = tmp_path / "flow.txt"
    path.write_text("1\n0 5 3 100 443 2.0\n")
    listed = Traffic(flows=path)
    assert np.array_equal(np.asarray(listed.rows(SMALL, 1)), np.asarray(listed.rows(SMALL, 2)))
    assert listed.says == "1 flows of a list"
    path.write_text(MATRIX)
    assert np.asarray(Traffic(flows=path).rows(SMALL)).shape == (3, 4)


def test_a_connection_matrix(tmp_path: Path) -> None:
    path = tmp_path / "three.cm"
    path.write_text(MATRIX)
    assert fabrics.read_connections(path) == [(0, 5, 0, 2e6), (1, 5, 1.5e-6, 2e4), (2, 7, 0, np.inf)]


CHAIN = """Nodes 8
Connections 5
Triggers 2
0->5 id 1 start 0 size 100000 send_done_trigger 7
1->5 id 2 start 0 size 300000 send_done_trigger 7
5->2 id 3 trigger 7 size 100000 recv_done_trigger 8
2->6 id 4 trigger 8 size 100000
3->6 id 5 trigger 8 size 100000
trigger id 7 barrier count 2
trigger id 8 oneshot
"""


def test_triggers_of_a_connection_matrix(tmp_path: Path) -> None:
    """A barrier goes off with the last ACK of two, a shot with the last byte; the run says when flows began.

    Their numbers count from 0, if one likes.
    """
    path = tmp_path / "chain.cm"
    path.write_text(CHAIN.replace("trigger 7", "trigger 0").replace("trigger id 7", "trigger id 0"))
    numbered = fabrics.read_connections(path)
    path.write_text(CHAIN)
    rows = fabrics.read_connections(path)
    assert numbered == rows
    assert [row[4:] for row in rows] == [(), (), ((0, 1), "answer"), ((2,), "receipt"), ((2,), "receipt")]
    study = fc.fabric("hpcc", SMALL, flows=path)
    found = study.runs[0].slowdown
    ends = (found["start"] + found["completion"]).values
    assert found.unfinished == 0
    assert found["start"].values[2] == pytest.approx(ends[:2].max(), abs=1e-12)
    assert found["start"].values[3] == found["start"].values[4] < ends[2]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("barrier count 2", "barrier count 3", "line 9: trigger 7 counts 3, and 2 flows are for it"),
        ("barrier count 2", "oneshot", "line 9: trigger 7 goes off with the first of 2"),
        ("barrier count 2", "barrier count 0", "line 9: the count '0'"),
        ("barrier count 2", "barrier", "line 9: 'barrier' is no kind of trigger"),
        ("trigger id 8 oneshot", "trigger id 7 oneshot", "line 10: trigger 7 is there twice"),
        ("trigger id 8 oneshot", "trigger 8 oneshot", "line 10: is no trigger"),
        ("trigger id 8 oneshot", "trigger id 8", "line 10: is no trigger"),
        ("trigger id 8 oneshot", "trigger no 8 oneshot", "line 10: is no trigger"),
        ("trigger id 8 oneshot", "trigger id 8 oneshot 3", "line 10: 'oneshot 3' is no kind of trigger"),
        ("barrier count 2", "barrier counts 2", "line 9: 'barrier counts 2' is no kind of trigger"),
        ("trigger id 8 oneshot\n", "", "the file has 1 triggers and says 2"),
        ("id 3 trigger 7", "id 3 trigger 9", "line 6: trigger 9 is none of the file's 2"),
        ("recv_done_trigger 8", "recv_done_trigger 9", "line 6: recv_done_trigger 9 is none"),
        ("id 3 trigger 7", "id 3 start 0 trigger 7", "line 6: has no start, or a trigger beside it"),
        ("size 300000 send_done", "size 300000 recv_done", "line 9: trigger 7 is for ACKs of some flows and data of"),
        ("size 100000 recv_done_trigger 8", "size 100000", "line 10: trigger 8 is for no flow to set off"),
        ("id 3 trigger 7", "id 3 trigger -7", "line 6: trigger '-7'"),
    ],
)
def test_triggers_that_are_none(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert CHAIN.count(old) == 1
    path = tmp_path / "bad.cm"
    path.write_text(CHAIN.replace(old, new))
    with pytest.raises(fc.InputError, match=f"bad.cm.*{words}"):
        fabrics.read_connections(path)


def test_a_matrix_may_have_as_many_nodes_as_a_topology(tmp_path: Path) -> None:
    path = tmp_path / "largest.cm"
    path.write_text(MATRIX.replace("Nodes 8", f"Nodes {1 << 20}"))
    assert len(fabrics.read_connections(path)) == 3
    path.write_text(MATRIX.replace("Nodes 8", f"Nodes {(1 << 20) + 1}"))
    with pytest.raises(fc.InputError, match="1,048,577 nodes are more than 1,048,576"):
        fabrics.read_connections(path)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("Nodes 8", "Nodes", "line 2: Nodes is one number"),
        ("Nodes 8", "Nodes x", "line 2: the number of Nodes 'x'"),
        ("Nodes 8", "Nodes 99999999", "line 2: .* are more than"),
        ("Nodes 8", "Nodes 8\nNodes 8", "line 3: Nodes is there twice"),
        ("Nodes 8", "Knots 8", "line 2: 'Knots' begins no line"),
        ("Connections 3", "Connections 4", "has 3 connections and says 4"),
        ("Connections 3\n", "", "says no number of them"),
        ("2->7", "2->8", "line 6: node 8 is none of 8"),
        ("2->7", "2->", "line 6: a node ''"),
        ("2->7", "-2->7", "line 6: a node '-2'"),
        ("start 1500000", "start soon", "line 5: start 'soon'"),
        ("start 1500000", "trigger 3", "line 5: trigger 3 is none of the file's 0"),
        ("start 1500000", "addon 3", "line 5: 'addon' is unknown"),
        ("start 1500000 ", "", "line 5: has no start"),
        ("size 20000\n", "size -1\n", "line 5: size '-1'"),
        ("size 20000\n", "size\n", "line 5: size ''"),
        ("size 20000\n", "weight 1\n", "line 5: 'weight' is unknown"),
        ("Connections 3", "Connections 3\nTriggers 1", "the file has 0 triggers and says 1"),
        ("Connections 3", "Connections 3\nFailures 1", "line 4: Failures are not read"),
    ],
)
def test_matrices_that_are_none(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert MATRIX.count(old) == 1
    path = tmp_path / "bad.cm"
    path.write_text(MATRIX.replace(old, new))
    with pytest.raises(fc.InputError, match=f"bad.cm.*{words}"):
        fabrics.read_connections(path)


@pytest.mark.parametrize("extra", [{"incast": "4:50KB:2%"}, {"rebuild": 3}])
def test_a_pattern_takes_an_end_for_what_arrives_beside_it(extra: dict[str, Any]) -> None:
    """Notice an end refused where one of the two, not both, is random."""
    assert Traffic("permutation", until="1ms", **extra).until == 1e-3


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "nothing is sent"),
        ({"workload": "permutation", "until": "1ms"}, "until: changes nothing for permutation"),
        ({"workload": "permutation", "load": 0.1}, "load: changes nothing for permutation"),
        ({"workload": "hadoop", "until": "1ms", "size": "1KB"}, "size: changes nothing for hadoop"),
        ({"workload": "hadoop", "until": "1ms", "pairs": 4, "load": 0.3}, "load: changes nothing for pairs"),
        ({"incast": "4:50KB:2%", "until": "1ms", "load": 0.3}, "load: changes nothing for an incast"),
        ({"flows": [(0, 1)], "until": "1ms"}, "until: flows are listed already"),
        ({"flows": [(0, 1)], "load": 0.5}, "load: flows are listed already"),
        ({"workload": "hadoop", "until": "1ms", "load": float("nan")}, "load"),
        ({"workload": "websearch", "until": "1ms"}, "neither known nor a file"),
        ({"workload": "hadoop"}, "until"),
        ({"incast": "5:20KB:10%"}, "until"),
        ({"workload": "permutation", "incast": "5:20KB:10%"}, "until: says when arrivals end"),
        ({"workload": "permutation", "rebuild": 3}, "until: says when arrivals end"),
        ({"incast": "5:20KB", "until": "1ms"}, "no DEGREE:SIZE:LOAD"),
        ({"incast": "0:20KB:1%", "until": "1ms"}, "incast"),
        ({"flows": [(0, 1)], "workload": "hadoop"}, "workload: flows are listed"),
        ({"flows": "nowhere.txt"}, "nowhere.txt"),
    ],
)
def test_traffic_that_is_none(options: dict[str, Any], words: str) -> None:
    with pytest.raises(fc.InputError, match=words):
        Traffic(**options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"workload": "hadoop", "until": "1ns", "load": 0.01}, "no flow arrives"),
        ({"workload": "hadoop", "until": "1ms", "load": 2}, "load"),
        ({"incast": "8:20KB:1%", "until": "1ms"}, "senders"),
        ({"workload": "permutation", "size": "0B"}, "size"),
    ],
)
def test_what_a_fabric_cannot_send(options: dict[str, Any], words: str) -> None:
    with pytest.raises(fc.InputError, match=words):
        Traffic(**options).rows(SMALL)


@pytest.mark.parametrize(
    ("options", "endless", "says"),
    [
        ({"workload": "hadoop", "until": "1ms"}, False, "hadoop at 50 % load"),
        ({"workload": "hadoop", "until": "1ms", "load": "30%"}, False, "hadoop at 30 % load"),
        ({"workload": "hadoop", "until": "1ms", "pairs": 4}, True, "hadoop by 4 pairs"),
        ({"rebuild": 3, "until": "1ms"}, True, "rebuild from 3"),
        ({"workload": "permutation"}, False, "permutation of 1000 KB"),
        ({"workload": "all-to-all", "size": "7KB"}, False, "all-to-all of 7 KB"),
        ({"incast": "4:50KB:2%", "until": "1ms"}, False, "incast of 4 at 2 %"),
        (
            {"workload": "permutation", "rebuild": 3, "incast": "4:50KB:2%", "until": "1ms"},
            True,
            "permutation of 1000 KB, rebuild from 3, incast of 4 at 2 %",
        ),
        ({"flows": [(0, 1), (1, 0)]}, False, "2 flows of a list"),
    ],
)
def test_traffic_in_a_few_words(options: dict[str, Any], endless: bool, says: str) -> None:
    """Hosts that send in pairs, or rebuild, send without end."""
    found = Traffic(**options)
    assert (found.endless, found.says) == (endless, says)


def test_all_kinds_of_traffic_go_by_start() -> None:
    """Numbers of hosts are the topology's; loads are of their mean rate, and who rebuilds is as fast as the fastest."""
    cables = [Cable((host, 5), "10Gbps" if host < 4 else "40Gbps", "1us") for host in (1, 2, 3, 4)]
    star = Topology((1, 2, 3, 4), (5,), tuple(cables))
    assert star.host_rate == pytest.approx(17.5e9 / 8)
    rows: Any = Traffic(workload="permutation", rebuild=2, incast="2:1KB:1%", until="1ms").rows(star, 3)
    assert (np.diff(rows[:, 2]) >= 0).all()
    assert set(rows[:, 0]) <= {1, 2, 3, 4}
    assert (rows[:, 0] != rows[:, 1]).all()
    rebuilt = rows[(rows[:, 2] == 0) & (rows[:, 3] != 1e6)]
    assert len(rebuilt) == 2
    assert (rebuilt[:, 3] >= 40e9 / 8 * 1e-3).all()
    assert (rows[:, 3] == 1e6).sum() == 4
    burst = rows[rows[:, 3] == 1e3]
    mean = 0.01 * 4 * 17.5e9 / 8 * 1e-3 / 1e3
    assert 0.3 * mean < len(burst) < 3 * mean
    mixed: Any = Traffic(workload="hadoop", pairs=2, rebuild=1, until="1ms").rows(star, 3)
    assert isinstance(mixed, list)
    assert len(mixed[0]) > 4
    assert len(mixed[-1]) == 4
    assert {mixed[-1][0], mixed[-1][1]} <= {1, 2, 3, 4}
    listed = [(1, 2, 0.0, 1e3)]
    assert Traffic(flows=listed).rows(star, 3) is listed
