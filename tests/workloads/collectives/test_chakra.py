"""Chakra execution traces: what they mean, worked out by hand, and that bad ones are refused by their node."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from fluidcc.errors import InputError
from fluidcc.workloads.collectives import Replay, read_chakra
from fluidcc.workloads.collectives.engines import patterns_of
from fluidcc.workloads.collectives.jobs_file import read_schedule
from tests.workloads.collectives import wire
from tests.workloads.collectives.traces_by_hand import (
    COLLECTIVE,
    COMPUTE,
    GOOD,
    NODES,
    RECEIVE,
    SEND,
    all_reduce,
    graph_of,
    idle,
    last_of,
    ring,
    written,
)


@pytest.mark.parametrize(
    "entry",
    ["int32_val", "int64_val", "uint32_val", "uint64_val", "sint32_val", "sint64_val", "fixed32_val", "fixed64_val",
     "sfixed32_val", "sfixed64_val"],
)  # fmt: skip
def test_sizes_are_read_in_every_kind_of_number(tmp_path: Path, entry: str) -> None:
    path = written(tmp_path, *[wire.trace(all_reduce(0, (entry, 123_456_700)))] * 2)
    assert [each.amount for each in read_chakra(path).operations] == [123_456_700] * 2


@pytest.mark.parametrize(
    ("kind", "size", "expected"),
    [
        (0, 40_000, ring(40_000, 4, 6)),
        (2, 10_000, ring(40_000, 4, 3)),  # of an all-gather, what one rank puts in
        (7, 40_000, ring(40_000, 4, 3)),
        (8, 40_000, ring(40_000, 4, 3)),
        (6, 40_000, 10e-6 + 1e-6),  # a quarter to each other at once
        (5, 40_000, 3 * (40e-6 + 1e-6)),  # of one part, from rank to rank
    ],
)
def test_collectives_by_hand(tmp_path: Path, kind: int, size: int, expected: float) -> None:
    path = written(tmp_path, *[wire.trace(wire.node(0, COLLECTIVE, comm_type=kind, comm_size=size))] * 4)
    assert last_of(path) == pytest.approx(expected, rel=1e-9)


def test_compute_overlaps_with_what_does_not_depend_on_it(tmp_path: Path) -> None:
    """20 us, then an all-reduce of 46 us and compute of 100 us beside it, and what waits for both; a METADATA_NODE."""
    nodes = [
        wire.node(7, COMPUTE, (), 20, packed=False),
        all_reduce(8, 40_000, (7,)),
        wire.node(9, COMPUTE, (7,), 100, packed=False),
        wire.node(1, 1, (9, 8)),
        wire.node(2, COMPUTE, (1,), 5),
    ]
    path = written(tmp_path, *[wire.trace(*nodes)] * 2)
    assert last_of(path) == pytest.approx(20e-6 + 100e-6 + 5e-6, rel=1e-9)
    path = written(tmp_path, *[wire.trace(*nodes[:2], wire.node(9, 2, (8,), 100), *nodes[3:])] * 2)
    assert last_of(path) == pytest.approx(20e-6 + ring(40_000, 2, 2) + 100e-6 + 5e-6, rel=1e-9)


def test_a_collective_begins_on_each_rank_as_that_is_ready(tmp_path: Path) -> None:
    """Its steps wait for the late rank, whose first transfer is the last."""
    late = wire.trace(wire.node(0, COMPUTE, (), 500), all_reduce(1, 40_000, (0,)))
    path = written(tmp_path, wire.trace(all_reduce(0, 40_000)), late)
    assert last_of(path) == pytest.approx(500e-6 + ring(40_000, 2, 2), rel=1e-9)
    began = idle(graph_of(path))
    assert min(at for i, at in began.items() if graph_of(path).sends[i]) == 0.0


def test_groups_run_side_by_side_and_a_group_one_after_the_other(tmp_path: Path) -> None:
    """Four ranks in two pairs by pg_name, twice each: twice the time of one, not four times, nor once."""

    def of(name: str) -> bytes:
        return wire.trace(all_reduce(0, 40_000, pg_name=name), all_reduce(1, 40_000, pg_name=name))

    path = written(tmp_path, of("a"), of("a"), of("b"), of("b"))
    assert [each.group for each in read_chakra(path).operations[::2]] == [(0, 1), (0, 1), (2, 3), (2, 3)]
    assert last_of(path) == pytest.approx(2 * ring(40_000, 2, 2), rel=1e-9)


def test_a_late_group_holds_up_no_other_on_its_connections(tmp_path: Path) -> None:
    """Both are of the same ranks: on one connection what begins first would wait for what is added to it first."""
    nodes = [
        wire.node(0, COMPUTE, (), 900),
        all_reduce(1, 44_000, (0,), pg_name="late"),
        wire.node(3, COMPUTE, (), 1),
        wire.node(4, COMPUTE, (3,), 1),
        all_reduce(2, 80_000, (4,)),
    ]
    others = [wire.trace(all_reduce(2, 80_000))] * 2  # a group may have some of another's ranks, too
    for ranks in (2, 4):
        graph = graph_of(written(tmp_path, *[wire.trace(*nodes)] * 2, *others[: ranks - 2]))
        began = idle(graph)
        assert max(began[i] for i in range(len(graph)) if graph.size[i] == 80_000 / ranks) < 900e-6


def test_sends_and_receives(tmp_path: Path) -> None:
    """A pipeline of two stages: 10 us, 30 KB over, 20 us, and back."""
    first = [
        wire.node(0, COMPUTE, (), 10),
        wire.node(1, SEND, (0,), comm_dst=("int32_val", 1), comm_size=30_000, comm_tag=("int32_val", 4)),
        wire.node(2, RECEIVE, (1,), comm_src=1, comm_size=30_000),
    ]
    second = [
        wire.node(0, RECEIVE, comm_src=0, comm_dst=1, comm_size=30_000, comm_tag=4),
        wire.node(1, COMPUTE, (0,), 20),
        wire.node(2, SEND, (1,), comm_dst=0, comm_size=30_000),
    ]
    path = written(tmp_path, wire.trace(*first), wire.trace(*second))
    assert last_of(path) == pytest.approx(10e-6 + 31e-6 + 20e-6 + 31e-6, rel=1e-9)
    assert patterns_of(Replay(read_chakra(path))) == ["ring", "tree", "all-to-all", "chain"]


def test_both_layouts_of_metadata_and_fields_that_are_unknown(tmp_path: Path) -> None:
    """The first message is passed over, whatever it has; so are a node's start, inputs and fields of later schemas."""
    old = wire.key(1, 2) + wire.framed(wire.attribute("schema", "string_val", "1.0.2"))
    new = wire.key(1, 2) + wire.framed(b"0.0.4") + wire.key(2, 2) + wire.framed(wire.attribute("pid", "int64_val", 3))
    later = all_reduce(0, 40_000) + wire.key(11, 2) + wire.framed(b"\x08\x01") + wire.key(99, 5) + struct.pack("<f", 1)
    paths = [
        written(tmp_path, *[wire.trace(later, metadata=metadata)] * 2, name=name)
        for name, metadata in (("old", old), ("new", new), ("none", b""))
    ]
    assert len({repr(read_chakra(path).operations) for path in paths}) == 1


def test_the_form_in_json_is_the_same(tmp_path: Path) -> None:
    """JSON as protobuf's mapping writes it: zeros are left out, numbers of 64 bits are texts."""
    for rank in range(2):
        text = NODES.replace("DST", str(1 - rank))
        (tmp_path / f"j.{rank}.json").write_text(text)
        group = {"pg_name": "0", "involved_dim": ("bool_list", [True])}
        nodes = [
            wire.node(0, COMPUTE, (), 5),
            all_reduce(1, 40_000, (0, 0), **group),
            wire.node(2, SEND, (1,), comm_size=70, comm_dst=1 - rank, comm_tag=6),
        ]
        (tmp_path / f"p.{rank}.et").write_bytes(wire.trace(*nodes))
    found = [repr(read_schedule(tmp_path / name).operations) for name in ("j.1.json", "j", "p")]
    assert found == [found[0]] * 3


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("COMP_NODE", "STORAGE_NODE", r"j\.1\.json: types of nodes that are not read: 8 \(STORAGE_NODE, node 0\)"),
        ("COMP_NODE", "ODD_NODE", r"j\.1\.json, node 0 \(gemm\): is of type 'ODD_NODE', which is not read"),
        ('"0.0.4"}', '"0.0.4"', r"j\.1\.json, GlobalMetadata \(JSONDecodeError: "),
        ('"uint64Val": "40000"', '"uint64Val": "many"', r"j\.1\.json, node 2 in order \(ValueError: "),
        ('"uint64Val": "40000"', '"doubleVal": 5.5', "node 1 .*comm_size '5.5' is none"),
        ('"dataDeps": ["0"]', '"dataDeps": 4', r"node 2 in order \(TypeError: "),
        ("{\n", "[\n" * 100_000, r"node 1 in order \(RecursionError: "),
    ],
)
def test_bad_json_is_refused_by_node(tmp_path: Path, before: str, after: str, says: str) -> None:
    assert before in NODES
    for rank, text in enumerate((NODES, NODES.replace(before, after, 1))):
        (tmp_path / f"j.{rank}.json").write_text(text.replace("DST", str(1 - rank)))
    with pytest.raises(InputError, match=says):
        read_schedule(tmp_path / "j")


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (b"", r"a\.1\.et: has no node"),
        (GOOD[:-3], r"a\.1\.et, byte 27: 52 bytes are announced, and 49 are there; give Chakra"),
        (wire.trace(wire.node(5, COMPUTE), metadata=wire.node(4, COMPUTE)), "begins with a node, as traces of the"),
        (
            wire.trace(wire.node(5, 8), wire.node(6, 77), wire.node(7, 0), wire.node(8, 8)),
            r"not read: 8 \(STORAGE_NODE, node 5\), 77 \(unknown, node 6\), 0 \(INVALID_NODE, node 7\)",
        ),
        (wire.trace(wire.node(0, COMPUTE), wire.node(0, COMPUTE)), r"node 0 \(n\): has the id of a later node"),
        (wire.trace(wire.node(5, COMPUTE, (9,))), r"a\.1\.et, node 5 \(n\): depends on node 9, which the file lacks"),
        (
            wire.trace(wire.node(5, COMPUTE, (6,)), wire.node(6, COMPUTE, (5,)), all_reduce(1, 40_000)),
            r"a\.1\.et, node 5: node 5 of rank 1 waits for node 6 of rank 1 waits for node 5 of rank 1; break",
        ),
        (wire.trace(wire.node(5, COLLECTIVE, comm_size=8)), "has no attribute comm_type"),
        (wire.trace(wire.node(5, COLLECTIVE, comm_type=1, comm_size=8)), r"comm_type 1 \(REDUCE\) is not read; write"),
        (wire.trace(wire.node(5, COLLECTIVE, comm_type=55, comm_size=8)), r"comm_type 55 \(unknown\) is not read"),
        (wire.trace(wire.node(5, COLLECTIVE, comm_type=0)), "has no attribute comm_size"),
        (wire.trace(all_reduce(5, -8)), "comm_size '-8' is none; write a whole number"),
        (wire.trace(all_reduce(5, "many")), "comm_size 'many' is none"),
        (wire.trace(all_reduce(5, ("double_val", 5.5))), "comm_size '5.5' is none"),
        (
            wire.trace(all_reduce(5, 40_000, involved_dim=("bool_list", [True, False]))),
            "involved_dim leaves a dimension out",
        ),
        (wire.trace(all_reduce(5, 80_000)), "node 5: is all-reduce of 80000 B, and node 1 of rank 0, the same coll"),
        (
            wire.trace(all_reduce(5, 40_000), all_reduce(6, 40_000)),
            r"a\.1\.et, node 6: is collective 2 of a group of 2 ranks, and rank 0 has 1; give each as many",
        ),
        (wire.trace(wire.node(5, SEND, comm_size=8)), "has no attribute comm_dst"),
        (wire.trace(wire.node(5, SEND, comm_size=8, comm_dst=1)), "comm_dst 1 is the rank itself, or none of 2"),
        (wire.trace(wire.node(5, SEND, comm_size=8, comm_dst=0, comm_src=0)), "comm_src is 0, in the file of rank 1"),
        (wire.trace(wire.node(5, RECEIVE, comm_size=8, comm_src=0)), "node 5: rank 0 sends no such message"),
        (wire.trace(wire.node(5, COMPUTE, (), 10**13)), "duration_micros 10000000000000 is more than"),
    ],
)  # fmt: skip
def test_bad_traces_are_refused_by_node(tmp_path: Path, bad: bytes, says: str) -> None:
    path = written(tmp_path, GOOD, bad)
    with pytest.raises(InputError, match=says):
        read_chakra(path).build()


def test_missing_ranks_are_named(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD, GOOD, GOOD)
    assert {read_chakra(each).ranks for each in (path, tmp_path / "a", tmp_path / "a.2.et")} == {3}
    with pytest.raises(InputError, match=r"a\.7\.et: there is no a\.7\.et; give Chakra"):
        read_schedule(tmp_path / "a.7.et")
    (tmp_path / "a.1.et").unlink()
    with pytest.raises(InputError, match=r"a\.1\.et: is missing, and rank 2 is there"):
        read_schedule(path)
    (tmp_path / "a.2.et").unlink()
    with pytest.raises(InputError, match=r"a\.0\.et: 1 ranks are none that can send"):
        read_schedule(path)
    for name in ("b", "b.et"):
        with pytest.raises(InputError, match=r"there is no b\.0\.et; give Chakra"):
            read_chakra(tmp_path / name)
    with pytest.raises(InputError, match="No such file"):
        read_chakra(tmp_path / "none" / "b.0.et")
