"""Traces of training jobs, SimAI's and Chakra's: what they mean, worked out by hand, and that bad ones are refused."""

from __future__ import annotations

import random
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fluidcc as fc
from examples import traces
from fluidcc.errors import InputError
from fluidcc.workloads.collectives import Job, Replay, read_chakra, read_goal, read_jobs, read_simai
from fluidcc.workloads.collectives import protobuf as pb
from fluidcc.workloads.collectives.graph import Graph
from fluidcc.workloads.collectives.jobs import work_of
from fluidcc.workloads.collectives.read import read_schedule
from fluidcc.workloads.collectives.simai import _groups
from fluidcc.workloads.collectives.validity import patterns_of
from fluidcc.workloads.fabrics import named_topology
from tests.workloads.collectives import wire
from tests.workloads.collectives.test_schedules import mutated

COMPUTE, SEND, RECEIVE, COLLECTIVE = 4, 5, 6, 7
EXAMPLES = Path(__file__).parents[3] / "examples" / "traces"
QUIET: dict[str, Any] = {"packet_size": 1000, "header_bytes": 48, "ack_bytes": "1B", "ack_interval": 100}
RATE, DELAY = 50e9, 2e-6  # bytes/s and s of a path over the star
PACKET = 1048 / RATE


def reduced(size: float, ranks: int) -> float:
    """Time of a ring all-reduce on a star: each step all packets, and one once more, stored and forwarded.

    Each part has a full packet; the last, if shorter, waits at the switch behind that.
    """
    full, rest = divmod(round(size / ranks), 1000)
    sent = full * 1048 + (rest + 48 if rest else 0)
    return 2 * (ranks - 1) * ((sent + 1048) / RATE + DELAY)


def graph_of(path: Path) -> Graph:
    return read_schedule(path).build()[0].done()


def idle(graph: Graph) -> dict[int, float]:
    """When each operation begins [s] in plain Python, where a transfer leaves after its bytes and arrives 1 us later.

    Transfers do not slow each other.
    """
    began: dict[int, float] = {}

    def left(k: int, of: int) -> float:
        if not graph.sends[k]:
            return began[k]
        behind = graph.sends[of] and graph.source[k] == graph.source[of]
        return began[k] + graph.size[k] * 1e-9 + (0.0 if behind else 1e-6)

    for i in range(len(graph)):
        began[i] = max((left(k, i) for k in graph.before(i)), default=0.0) + float(graph.delay[i])
    return began


def last_of(path: Path) -> float:
    """Length [s] of what a file says, by `idle`."""
    graph = graph_of(path)
    began = idle(graph)
    return max(began[i] + (graph.size[i] * 1e-9 + 1e-6 if graph.sends[i] else 0.0) for i in range(len(graph)))


def ring(size: float, ranks: int, steps: int) -> float:
    """Time of a ring by `idle`'s rates."""
    return steps * (round(size / ranks) * 1e-9 + 1e-6)


def written(folder: Path, *files: bytes, name: str = "a") -> Path:
    for rank, content in enumerate(files):
        (folder / f"{name}.{rank}.et").write_bytes(content)
    return folder / f"{name}.0.et"


# Protobuf ---------------------------------------------------------------------------------------------------------


@given(st.integers(0, 2**64 - 1), st.binary(max_size=9))
def test_numbers_are_read_as_they_are_written(value: int, behind: bytes) -> None:
    """Sevens of bits in the wrong order, or a top bit left in, would change them."""
    raw = wire.number(value)
    assert pb.varint(raw + behind, 0) == (value, len(raw))


@given(st.integers(-(2**63), 2**63 - 1))
def test_negative_numbers(value: int) -> None:
    assert pb.signed(pb.varint(wire.number(value), 0)[0]) == value
    assert pb.zigzag(2 * value if value >= 0 else -2 * value - 1) == value


@given(st.lists(st.tuples(st.integers(1, 2**29 - 1), st.integers(0, 2**64 - 1) | st.binary(max_size=300))))
def test_fields_are_read_as_they_are_written(expected: list[tuple[int, int | bytes]]) -> None:
    raw = b"".join(
        wire.key(field, 0) + wire.number(value) if isinstance(value, int) else wire.key(field, 2) + wire.framed(value)
        for field, value in expected
    )
    assert [(field, value) for field, _, value in pb.fields(raw)] == expected
    assert list(pb.messages(wire.framed(raw) * 2)) == [raw, raw]


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"\x08", "byte 1: a number does not end"),
        (b"\x08" + b"\xff" * 11, "byte 1: a number does not end"),
        (b"\x12\x05ab", "byte 2: 5 bytes are announced, and 2 are there"),
        (b"\x0d\x00\x00", "byte 1: 4 bytes are announced, and 2"),
        (b"\x08\x01\x0b", "byte 2: a field has wire type 3"),
        (b"\x00\x01", "byte 0: a field has number 0"),
    ],
)
def test_bytes_that_are_no_protobuf(raw: bytes, says: str) -> None:
    with pytest.raises(pb.WireError, match=says):
        list(pb.fields(raw))


# Chakra -----------------------------------------------------------------------------------------------------------


def all_reduce(identity: int, size: Any, after: Any = (), **more: Any) -> bytes:
    return wire.node(identity, COLLECTIVE, after, comm_type=0, comm_size=size, **more)


@pytest.mark.parametrize(
    "entry",
    ["int32_val", "int64_val", "uint32_val", "uint64_val", "sint32_val", "sint64_val", "fixed32_val", "fixed64_val",
     "sfixed32_val", "sfixed64_val"],
)  # fmt: skip
def test_sizes_are_read_in_every_kind_of_number(tmp_path: Path, entry: str) -> None:
    path = written(tmp_path, *[wire.trace(all_reduce(0, (entry, 123_456_700)))] * 2)
    assert [each.amount for each in read_chakra(path).operations] == [123_456_700] * 2


def test_a_lone_all_reduce_is_that_of_a_job(tmp_path: Path) -> None:
    """The same transfers, to the last number, with waits that take no time before and behind."""
    path = written(tmp_path, *[wire.trace(all_reduce(0, 40_000))] * 4)
    simai = tmp_path / "a.txt"
    simai.write_text("MICRO all_gpus: 4\n1\nlayer -1 0 NONE 0 0 NONE 0 0 ALLREDUCE 40000 0\n")
    job = work_of([Job("all-reduce", "40KB", ranks=4)], [[0, 1, 2, 3]]).graph
    for graph in (graph_of(path), graph_of(simai)):
        for name in ("source", "target", "size", "step", "channel"):
            one, other = (getattr(each, name)[each.sends] for each in (graph, job))
            np.testing.assert_array_equal(one, other)
        assert last_of(path) == pytest.approx(ring(40_000, 4, 6), rel=1e-12)


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


NODES = """{"version": "0.0.4"}{
  "name": "gemm", "type": "COMP_NODE", "durationMicros": "5", "attr": [{"name": "is_cpu_op", "boolVal": false}]
}{
  "id": "1", "name": "reduce", "type": "COMM_COLL_NODE", "ctrlDeps": ["0"], "dataDeps": ["0"],
  "inputs": {"values": "[]"},
  "attr": [{"name": "comm_type", "int64Val": "0"}, {"name": "comm_size", "docString": "B", "uint64Val": "40000"},
           {"name": "pg_name", "stringVal": "0"}, {"name": "involved_dim", "boolList": {"values": [true]}}]
}{"id": "2", "type": "COMM_SEND_NODE", "dataDeps": ["1"], "attr": [{"name": "comm_size", "sint32Val": 70},
  {"name": "comm_dst", "int32Val": DST}, {"name": "comm_tag", "fixed64Val": "6"}]}
"""


def test_the_form_in_json_is_the_same(tmp_path: Path) -> None:
    """As protobuf's JSON mapping writes it: zeros are left out, numbers of 64 bits are texts."""
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


def test_what_of_a_trace_has_no_effect_is_said(tmp_path: Path) -> None:
    counted = wire.node(3, COMPUTE, num_ops=("uint64_val", 5), name="gemm")
    path = written(tmp_path, *[wire.trace(all_reduce(0, 8), counted)] * 2)
    assert read_chakra(path).words == (f"{path}, node 3: num_ops has no effect: give duration_micros",)
    simai = tmp_path / "a.txt"
    simai.write_text(HEAD.replace("pp: 1", "pp: 2").replace("pp_comm: 0", "pp_comm: 5") + LAYERS)
    assert read_simai(simai).words == (
        f"{simai}, line 1: pp_comm has no effect: stages send each other nothing, as in SimAI",
    )


GOOD = wire.trace(wire.node(0, COMPUTE, (), 5), all_reduce(1, 40_000, (0,)))


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


# SimAI ------------------------------------------------------------------------------------------------------------

HEAD = (
    "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 1 pp: 1 vpp: 2 ga: 1 all_gpus: 4 "
    "checkpoints: 0 checkpoint_initiates: 0 pp_comm: 0\n2\n"
)
LAYERS = (
    "first\t-1\t3000\tALLREDUCE\t40000\t5000\tALLREDUCE\t20000\t7000\tALLREDUCE\t60000\t0\n"
    "second\t-1\t11000\tALLGATHER\t80000\t13000\tREDUCESCATTER\t40000\t17000\tREDUCESCATTER\t20000\t100\n"
)


@pytest.mark.parametrize(
    ("sizes", "kind", "rank", "expected"),
    [
        ({"tp": 4, "ep": 1, "pp": 1, "dp": 4}, "TP", 6, (4, 5, 6, 7)),
        ({"tp": 4, "ep": 1, "pp": 1, "dp": 4}, "DP", 6, (2, 6, 10, 14)),
        ({"tp": 2, "ep": 2, "pp": 1, "dp": 4}, "EP", 5, (5, 7)),
        ({"tp": 2, "ep": 2, "pp": 1, "dp": 4}, "DP_EP", 5, (1, 5)),
        ({"tp": 2, "ep": 2, "pp": 1, "dp": 4}, "DP_EP", 6, (2, 6)),
        ({"tp": 2, "ep": 1, "pp": 2, "dp": 3}, "TP", 7, (6, 7)),
        ({"tp": 2, "ep": 1, "pp": 2, "dp": 3}, "DP", 7, (3, 7, 11)),
    ],
)
def test_groups_by_hand(sizes: dict[str, int], kind: str, rank: int, expected: tuple[int, ...]) -> None:
    """Tensor ranks next to each other, data-parallel ones a stride apart, experts among those."""
    assert _groups(sizes)[kind](rank) == expected


@given(st.sampled_from([1, 2, 4]), st.sampled_from([1, 2]), st.sampled_from([1, 2, 3]), st.sampled_from([1, 2, 4]))
def test_groups_divide_the_ranks(tp: int, ep: int, pp: int, share: int) -> None:
    """Each rank is in one group of a kind, of the same size as all others."""
    groups = _groups({"tp": tp, "ep": ep, "pp": pp, "dp": ep * share})
    count = tp * pp * ep * share
    for kind, size in (("TP", tp), ("DP", ep * share), ("EP", ep), ("DP_EP", share)):
        found = {groups[kind](rank) for rank in range(count)}
        assert sorted(rank for group in found for rank in group) == list(range(count))
        assert {len(group) for group in found} == {size}
        assert all(rank in groups[kind](rank) for rank in range(count))


def test_a_transformer_by_hand(tmp_path: Path) -> None:
    """Forward, back, and gradients of weights that overlap with what follows them, pair by pair."""
    path = tmp_path / "a.txt"
    path.write_text(HEAD + LAYERS)
    forward = 3e-6 + ring(40_000, 2, 2) + 11e-6 + ring(80_000, 2, 1) + 0.1e-6
    back = forward + 13e-6 + ring(40_000, 2, 1) + 0.1e-6 + 17e-6
    second = back + ring(20_000, 2, 1) + 0.1e-6  # of weights, while the rank goes on
    first = back + 5e-6 + ring(20_000, 2, 2) + 7e-6
    assert second < first
    assert last_of(path) == pytest.approx(first + ring(60_000, 2, 2), rel=1e-9)


@pytest.mark.parametrize(
    ("way", "expected"),
    [
        # Weights of the second layer are reduced while inputs of the second and weights of the first are computed.
        ("DATA", 3e-6 + 11e-6 + 17e-6 + max(ring(20_000, 4, 3) + 0.1e-6, 13e-6 + 7e-6) + ring(60_000, 4, 6)),
        ("MICRO", ring(60_000, 4, 6) + ring(20_000, 4, 3) + 0.1e-6),
        (
            "MODEL",
            3e-6 + ring(40_000, 4, 6) + 11e-6 + ring(80_000, 4, 3) + 0.1e-6
            + 13e-6 + max(ring(40_000, 4, 3) + 0.1e-6, 17e-6) + 5e-6 + 7e-6,
        ),
    ],
)  # fmt: skip
def test_ways_of_astra_sim_by_hand(tmp_path: Path, way: str, expected: float) -> None:
    """All ranks in one group; the update of 100 ns is behind the second layer's collectives."""
    path = tmp_path / "a.txt"
    path.write_text(f"{way} all_gpus: 4\n2\n{LAYERS}")
    assert last_of(path) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("HYBRID_TRANSFORMER_FWD_IN_BCKWD", "HYBRID_DLRM", "line 1: 'HYBRID_DLRM' is no way of training that is read"),
        ("all_gpus: 4", "", "line 1: there is no all_gpus: N"),
        ("all_gpus: 4", "all_gpus: 5", "line 1: all_gpus 5 are no whole number of 2 x 1 ranks"),
        ("ep: 1", "ep: 3", "line 1: ep: 3 divides no 2 replicas"),
        ("ep: 1", "ep: one", "line 1: ep 'one' is none; write a whole number"),
        ("checkpoints: 0", "checkpoints: 1 1", "line 1: checkpoints: are not read"),
        ("\n2\n", "\n3\n", "line 4: there are 2 layers, and 3 are announced"),
        ("\n2\n", "\nmany\n", "line 2: number of layers 'many' is none"),
        ("\t7000", "", "line 3: a layer has 11 columns; write 12"),
        ("ALLREDUCE\t40000", "REDUCE\t40000", "line 3: collective 'REDUCE' is not read; write one of NONE, ALLREDUCE"),
        ("ALLREDUCE\t40000", "ALLREDUCE_TP\t40000", "line 3: collective 'ALLREDUCE_TP' is not read"),
        ("\t3000", "\t-3", "line 3: compute time '-3' is less than 0"),
        ("40000", "4e4", "line 3: size '4e4' is none"),
        ("all_gpus: 4", "all_gpus: 64", r"a\.txt, line 1: ranks: 64 need as many hosts, and there are 4"),
    ],
)
def test_bad_workloads_are_refused_by_line(tmp_path: Path, before: str, after: str, says: str) -> None:
    path = tmp_path / "a.txt"
    assert before in HEAD + LAYERS
    path.write_text((HEAD + LAYERS).replace(before, after, 1))
    with pytest.raises(InputError, match=says):
        fc.collective(path, named_topology("leaf-spine:1x1x4"), "none")


# Both -------------------------------------------------------------------------------------------------------------


def test_mutated_traces_are_read_or_refused_in_one_line(tmp_path: Path) -> None:
    """200 of each: a text as its like, and bytes with some changed, left out or put in, of one rank of two.

    Long names leave room for bytes that change nothing.
    """
    generator = random.Random(20)
    named = wire.trace(wire.node(0, COMPUTE, (), 5, name="x" * 120), all_reduce(1, 40_000, (0,), name="y" * 120))
    files = {"a.txt": (HEAD + LAYERS).encode(), "a.1.et": named, "a.1.json": NODES.replace("DST", "0").encode()}
    (tmp_path / "a.0.json").write_text(NODES.replace("DST", "1"))
    written(tmp_path, named)
    for name, good in files.items():
        read, said = 0, list[str]()
        for _ in range(200):
            content = scrambled(good, generator) if name == "a.1.et" else mutated(good, generator)
            (tmp_path / name).write_bytes(content)
            try:
                read_schedule(tmp_path / name).build()
                read += 1
            except InputError as error:
                said.append(str(error))
        assert all("\n" not in line and "a." in line for line in said)
        assert min(read, len(said)) > 20, name


def scrambled(raw: bytes, generator: random.Random) -> bytes:
    for _ in range(generator.randint(1, 3)):
        at, gone = generator.randrange(len(raw)), generator.choice([0, 1, 1, 1, 4])
        raw = raw[:at] + generator.randbytes(generator.choice([0, 1, 1, 1, 3])) + raw[at + gone :]
    return raw


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        (2, {"TP": 2 * 20e-6 + 2 * 20e-6, "DP": ring(60_000, 2, 2)}),  # twice half of 40 KB at 1 GB/s, there and back
        (4, {"TP": 4 * 20e-6, "DP": 60e-6}),
    ],
)
def test_a_tensor_group_in_one_server_by_hand(tmp_path: Path, server: int, expected: dict[str, float]) -> None:
    """All-reduces of 40 KB forward and back, and one of 60 KB over both servers, or in the one that all are in."""
    path = tmp_path / "a.txt"
    path.write_text(
        HEAD.replace("\n2\n", "\n1\n") + "first -1 3000 ALLREDUCE 40000 5000 ALLREDUCE 40000 7000 ALLREDUCE 60000 0\n"
    )
    job = Replay(read_simai(path), server=server, server_rate="1GB/s")
    work = work_of([job], [[0, 1, 2, 3]])
    began = idle(work.graph)
    took = max(began[i] for i in work.ends[0][0])
    assert took == pytest.approx(15e-6 + sum(expected.values()), rel=1e-9)


def test_messages_inside_a_server_are_copies(tmp_path: Path) -> None:
    """Of four messages one after the other, two stay inside servers, at 10 GB/s."""
    path = tmp_path / "a.goal"
    text = "num_ranks 4\nrank 0 {\nsend 1000b to 1\nrecv 1000b from 3\n}\n"
    for rank in (1, 2, 3):
        text += f"rank {rank} {{\nr: recv 1000b from {rank - 1}\ns: send 1000b to {(rank + 1) % 4}\ns requires r\n}}\n"
    path.write_text(text)
    for server, expected in ((1, 4 * 2e-6), (2, 2 * 2e-6 + 2 * 0.1e-6)):
        rate = None if server == 1 else "10GB/s"
        work = work_of([Replay(read_goal(path), server=server, server_rate=rate)], [[0, 1, 2, 3]])
        began = idle(work.graph)
        assert max(began[i] for i in work.ends[0][0]) == pytest.approx(expected, rel=1e-9)


def test_groups_that_servers_divide_unevenly_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, *[wire.trace(all_reduce(0, 40_000, pg_name=name)) for name in "aaab"])
    job = Replay(read_chakra(path), server=2, server_rate="1GB/s")
    with pytest.raises(InputError, match="node 0: has 2 of its 3 ranks in one server and 1 in another"):
        work_of([job], [[0, 1, 2, 3]])
    with pytest.raises(InputError, match="server: 4 ranks are no whole number of servers of 3"):
        Replay(read_chakra(path), server=3, server_rate="1GB/s")
    with pytest.raises(InputError, match="server_rate: none is given"):
        Replay(read_chakra(path), server=2)


def test_jobs_of_files_side_by_side(tmp_path: Path) -> None:
    """A trace twice, later and on hosts of its own, next to a collective."""
    written(tmp_path, *[wire.trace(all_reduce(0, 40_000))] * 2)
    path = tmp_path / "jobs.toml"
    path.write_text(
        'fluidcc_jobs = 1\n[[job]]\nfile = "a"\nsteps = 2\nstart = "70us"\nranks = [3, 2]\nname = "trace"\n'
        '[[job]]\nkind = "all-reduce"\nbytes = "40KB"\nranks = 2\n'
    )
    jobs = read_jobs(path)
    work = work_of(jobs, [[3, 2], [0, 1]])
    began = idle(work.graph)
    took = [[max(began[i] for i in each) for each in ends] for ends in work.ends]
    once = ring(40_000, 2, 2)
    assert took == [pytest.approx([70e-6 + once, 70e-6 + 2 * once]), pytest.approx([once])]
    assert [min(began[i] for i in each) for each in work.begins[0]] == pytest.approx([70e-6, 70e-6 + once])
    study = fc.collective(path, named_topology("leaf-spine:1x1x4"), "none", separately=True, **QUIET)
    rows = study.runs[0].numbers["jobs"]
    assert [(row["name"], row["kind"]) for row in rows] == [("trace", "schedule"), ("job 1", "all-reduce")]
    assert [row["slowdown"] for row in rows] == pytest.approx([1.0, 1.0], rel=1e-4)
    assert rows[0]["time_s"] == pytest.approx(rows[1]["time_s"], abs=1e-9)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ('file = "a"\nkind = "all-reduce"', "line 4: a job of a file has no 'kind'; write one of file, ranks"),
        ("file = 3", "line 3: file: is no text"),
        ('file = "b.0.et"', r"b\.0\.et: there is no b\.0\.et"),
        ('file = "a"\nranks = [1, 2, 3]', "line 4: ranks: the file has 2; list as many hosts"),
        ('file = "a"\nranks = [1, 1]', "line 4: ranks: two are on one host"),
        ('file = "a"\nsteps = 0', "line 4: steps: "),
        ('file = "a"\nstart = "-1us"', "line 4: start: "),
    ],
)
def test_bad_jobs_of_files_are_refused_by_line(tmp_path: Path, fields: str, says: str) -> None:
    written(tmp_path, GOOD, GOOD)
    path = tmp_path / "bad.toml"
    path.write_text(f"fluidcc_jobs = 1\n[[job]]\n{fields}\n")
    with pytest.raises(InputError, match=says):
        read_jobs(path)


def test_a_goal_file_is_still_one(tmp_path: Path) -> None:
    """Whatever its name; and the first line decides."""
    path = tmp_path / "a.txt"
    path.write_text("# made by hand\n\nnum_ranks 2\nrank 0 {\nsend 8b to 1\n}\n")
    assert repr(read_schedule(path).operations) == repr(read_goal(path).operations)


# The examples -----------------------------------------------------------------------------------------------------


def test_the_examples_are_what_their_script_writes(tmp_path: Path) -> None:
    for path in traces.write(tmp_path):
        assert path.read_bytes() == (EXAMPLES / path.name).read_bytes()
    assert len(list(tmp_path.iterdir())) == len(list(EXAMPLES.iterdir()))


def transformer() -> tuple[float, float, int]:
    """The example's time by hand: compute, and what is on the critical path of the fabric, and its transfers' count.

    Gradients of weights are reduced while the next layer's inputs are computed, which takes longer; the last are not.
    """
    lines = [line.split() for line in (EXAMPLES / "transformer.txt").read_text().splitlines()[2:]]
    compute, fabric, free = 0.0, 0.0, 0.0
    for each in lines:
        compute += int(each[2]) * 1e-9
        fabric += reduced(int(each[4]), 4)
    for each in reversed(lines):
        compute += int(each[5]) * 1e-9
        assert compute + fabric >= free or each[6] == "NONE"
        fabric += reduced(int(each[7]), 4) if each[6] != "NONE" else 0.0
        compute += int(each[8]) * 1e-9
        if each[9] != "NONE":
            free = compute + fabric + reduced(int(each[10]), 4)
    return max(compute + fabric, free), free - (compute - 2e-6), 10  # less the embedding's, which has no part in it


def step(layers: int = 4) -> tuple[float, float, int]:
    """The other's: forward, back while gradients are reduced one after the other, and the optimizer."""
    weights = 12 * 1024**2
    micros = round(2 * 1024 * weights / 12e12 * 1e6) * 1e-6
    now, free = layers * micros, 0.0
    for _ in range(layers):
        now += 2 * micros
        free = max(now, free) + reduced(2 * weights, 4)
    return free + round(micros * 1e6) // 10 * 1e-6, free - now, layers


@pytest.mark.parametrize(("name", "by_hand"), [("transformer.txt", transformer), ("step", step)])
@pytest.mark.parametrize("engine", ["packet", "fluid"])
def test_the_examples_take_as_long_as_by_hand(name: str, by_hand: Any, engine: str) -> None:
    """On a star: packets within a packet for each collective; the fluid within 2 % of what the fabric takes.

    Both stated before. The fluid's error on rings was 1.1 to 1.3 % where it was measured.
    """
    expected, fabric, collectives = by_hand()
    star = named_topology("leaf-spine:1x1x16", rate="400Gbps")
    run = fc.collective(EXAMPLES / name, star, "none", engine=engine, **QUIET).runs[0].numbers
    assert (run["unfinished"], run["unchecked"]) == (0, [])
    allowed = collectives * PACKET if engine == "packet" else 0.02 * fabric
    assert run["time_s"] == pytest.approx(expected, abs=allowed)
