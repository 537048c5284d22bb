"""SimAI's workloads: groups and ways of training, worked out by hand, and that bad ones are refused by line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fluidcc as fc
from fluidcc.errors import InputError
from fluidcc.workloads.collectives import read_jobs, read_simai, simai
from fluidcc.workloads.collectives.simai import _groups
from fluidcc.workloads.collectives.study import cases_of
from fluidcc.workloads.fabrics import named_topology
from tests.workloads.collectives.traces_by_hand import HEAD, LAYERS, last_of, ring


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


def test_there_are_so_many_operations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Operations count for all ranks together: each step is done by each of four."""
    path = tmp_path / "a.txt"
    path.write_text(HEAD + LAYERS)
    count = len(read_simai(path).operations)
    assert count % 4 == 0
    monkeypatch.setattr(simai, "MOST_FLOWS", count)
    read_simai(path)
    monkeypatch.setattr(simai, "MOST_FLOWS", count - 1)
    with pytest.raises(InputError, match="4 ranks do more than"):
        read_simai(path)


def test_ranks_that_a_file_leaves_open(tmp_path: Path) -> None:
    """All hosts of the topology, or as many as are asked for; those that the file gives stay."""
    path, topology = tmp_path / "a.txt", named_topology("leaf-spine:1x1x4")
    path.write_text(f"MICRO\n2\n{LAYERS}")
    for hosts, ranks in ((None, 4), (3, 3)):
        (case,) = cases_of(path, topology, hosts, None, {})
        assert case.jobs[0].count == ranks
    with pytest.raises(InputError, match="line 1: there is no all_gpus: N of two or more ranks; add it"):
        read_simai(path)
    jobs = tmp_path / "jobs.toml"
    jobs.write_text('fluidcc_jobs = 1\n[[job]]\nfile = "a.txt"\nranks = [1, 3]\n')
    assert read_jobs(jobs)[0].count == 2
    path.write_text(HEAD + LAYERS)
    assert cases_of(path, topology, 4, None, {})[0].jobs[0].count == 4
    with pytest.raises(InputError, match=r"hosts: a\.txt is of 4 ranks; leave it out, or change it there"):
        cases_of(path, topology, 2, None, {})
