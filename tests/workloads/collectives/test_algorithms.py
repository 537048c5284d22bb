"""What collectives are for: at the end each rank has something of all whose data it needs, and no more was sent."""

from __future__ import annotations

import numpy as np
import pytest

from fluidcc.workloads.collectives import Job
from fluidcc.workloads.collectives.algorithms import Team, all_to_all, broadcast
from fluidcc.workloads.collectives.graph import Building
from fluidcc.workloads.collectives.jobs import Work, work_of

CASES = [
    ("all-reduce", {}),
    ("all-reduce", {"chunks": 3}),
    ("all-reduce", {"algorithm": "tree"}),
    ("all-reduce", {"algorithm": "tree", "chunks": 3}),
    ("all-gather", {}),
    ("reduce-scatter", {"chunks": 2}),
    ("all-to-all", {"skew": 1}),
    ("pipeline", {"chunks": 3, "compute": "1us"}),
]


def origins(work: Work) -> list[int]:
    """For each operation the ranks whose first begin is before it, as bits."""
    found: list[int] = []
    first = {place: rank for rank, place in enumerate(work.begins[0][0])}
    for i, before in enumerate(map(work.graph.before, range(len(work.graph)))):
        mine = 1 << first[i] if i in first else 0
        for k in before:
            assert k < i
            mine |= found[k]
        found.append(mine)
    return found


def built(kind: str, ranks: int, **options: object) -> Work:
    job = Job(kind, "1MB", ranks=ranks, **options)  # pyright: ignore[reportArgumentType]
    return work_of([job], [list(range(ranks))])


@pytest.mark.parametrize(("kind", "options"), CASES, ids=[f"{kind} {options}" for kind, options in CASES])
@pytest.mark.parametrize("ranks", [2, 3, 5, 8, 13, 16])
def test_everybody_has_heard_of_everybody(kind: str, options: dict[str, object], ranks: int) -> None:
    work = built(kind, ranks, **options)
    found = origins(work)
    assert {found[end] for end in work.ends[0][-1]} == {(1 << ranks) - 1}


@pytest.mark.parametrize("kind", ["all-reduce", "all-gather", "reduce-scatter"])
@pytest.mark.parametrize("algorithm", ["ring", "tree"])
@pytest.mark.parametrize("server", [2, 4, 8])
def test_servers_have_too(kind: str, algorithm: str, server: int) -> None:
    if algorithm == "tree" and kind != "all-reduce":
        return
    work = built(kind, 8, server=server, server_rate="100GB/s", algorithm=algorithm, steps=2)
    found = origins(work)
    assert {found[end] for end in work.ends[0][-1]} == {255}
    rounds = 2 if kind == "all-reduce" else 1
    assert sum(work.graph.size) / 1e6 == pytest.approx(2 * rounds * (8 // server - 1), rel=1e-4)  # done twice


def test_a_broadcast_is_from_the_first() -> None:
    work = built("broadcast", 7, chunks=3)
    found = origins(work)
    assert all(found[end] & 1 for end in work.ends[0][-1])
    graph = work.graph
    first = [
        int(step)
        for step, source, sends in zip(graph.step, graph.source, graph.sends, strict=True)
        if sends and source == 0
    ]
    assert first == [0, 1, 2]  # chunk after chunk


def test_a_broadcast_ends_as_the_first_has_sent_and_the_others_have_received() -> None:
    """Two chunks through three ranks. Catches a first rank that is done before it has sent."""
    graph = Building()
    begins = [[graph.wait(rank, 1.0)] for rank in range(3)]
    ends = broadcast(Team(graph, [0, 1, 2], 2e6, begins, chunks=2))
    made = graph.done()
    ways = zip(made.source.tolist(), made.target.tolist(), made.sends.tolist(), strict=True)
    own: list[list[int]] = [[0], [1], [2]]  # what each begins with
    for place, (source, target, sends) in enumerate(ways):
        if sends:
            own[target].append(place)
            if source == 0:
                own[0].append(place)
    assert [len(each) for each in own] == [1 + 2] * 3
    assert [sorted(each) for each in ends] == own


@pytest.mark.parametrize("ranks", [2, 3, 8, 13])
@pytest.mark.parametrize(
    ("kind", "options", "times"),
    [
        ("all-reduce", {}, lambda n: 2 * (n - 1)),
        ("all-reduce", {"algorithm": "tree", "chunks": 4}, lambda n: 2 * (n - 1)),
        ("all-gather", {"chunks": 2}, lambda n: n - 1),
        ("reduce-scatter", {}, lambda n: n - 1),
        ("all-to-all", {}, lambda n: n - 1),
        ("broadcast", {"chunks": 5}, lambda n: n - 1),
    ],
)
def test_no_more_is_sent_than_need_be(kind: str, options: dict[str, object], times: object, ranks: int) -> None:
    """Bytes over all links in all, in units of the collective's; each chunk is rounded to bytes."""
    graph = built(kind, ranks, **options).graph
    assert sum(graph.size) / 1e6 == pytest.approx(times(ranks), rel=1e-4)  # pyright: ignore[reportCallIssue]


def test_half_of_a_tree_is_in_each() -> None:
    """No rank sends more than twice the data, up and down in both trees, and no transfer is to itself."""
    for ranks in range(2, 33):
        graph = built("all-reduce", ranks, algorithm="tree").graph
        sent = np.bincount(graph.source, graph.size, ranks) / 1e6
        assert sent.max() <= 2.0 + 1e-6
        assert all(a != b for a, b, size in zip(graph.source, graph.target, graph.size, strict=True) if size)


@pytest.mark.parametrize(("kind", "options"), CASES, ids=[f"{kind} {options}" for kind, options in CASES])
@pytest.mark.parametrize("ranks", [2, 3, 8, 13])
def test_steps_grow_along_all_that_waits(kind: str, options: dict[str, object], ranks: int) -> None:
    """Mistakes in a step's label: each is beyond all it waits for, and so beyond the last of its connection."""
    graph = built(kind, ranks, **options).graph
    latest: list[int] = []  # step of an operation; of one that is no transfer, the latest it waits for
    for i, step in enumerate(graph.step.tolist()):
        before = max((latest[k] for k in graph.before(i)), default=-1)
        assert step < 0 or step > before
        latest.append(max(step, before))
    rows = zip(graph.source, graph.target, graph.channel, graph.step, strict=True)
    labels = [tuple(map(int, row)) for row in rows if row[3] >= 0]
    assert len(set(labels)) == len(labels)  # none twice on a connection
    assert min(label[3] for label in labels) == 0


def test_parts_inside_a_server_are_copied_and_all_have_the_step_of_their_distance() -> None:
    """All-to-all of four ranks, two to a server: the next one's part is of step 0, and so on."""
    for options in ({}, {"server": 2, "server_rate": "1GB/s"}):
        graph = built("all-to-all", 4, **options).graph
        listed = np.flatnonzero(graph.step >= 0)
        ends = list(zip(graph.source[listed].tolist(), graph.target[listed].tolist(), strict=True))
        assert sorted(ends) == [(a, b) for a in range(4) for b in range(4) if a != b]
        assert graph.step[listed].tolist() == [(b - a - 1) % 4 for a, b in ends]
        assert graph.sends[listed].tolist() == [not options or a // 2 != b // 2 for a, b in ends]


def test_ranks_that_wait_for_unlike_numbers_send_all_the_same() -> None:
    """The second of three waits for two operations, and each of its parts for both."""
    graph = Building()
    first, second = graph.wait(0, 1.0), graph.wait(1, 1.0)
    ends = all_to_all(Team(graph, [0, 1, 2], 3e6, [[first], [first, second], []]))
    made = graph.done()
    for i in np.flatnonzero(made.sends).tolist():
        assert made.before(i) == [[first], [first, second], []][made.source[i]]
        assert made.step[i] == (made.target[i] - made.source[i] - 1) % 3
        assert i in ends[made.target[i]]
    assert [len(each) for each in ends] == [1 + 2, 2 + 2, 0 + 2]


def test_begins_wait_for_the_start_once_and_for_compute_each_time() -> None:
    """A pipeline computes chunk by chunk instead: forth and back, at each stage."""
    twice: dict[str, object] = {"steps": 2, "compute": "5s", "start": "2s"}
    for kind, wanted in (("all-gather", [7.0, 5.0]), ("pipeline", [2.0, 0.0])):
        work = built(kind, 3, **twice)
        begins = [[work.graph.delay[i] for i in each] for each in work.begins[0]]
        assert begins == [[delay] * 3 for delay in wanted]
    computed = [delay for delay, step in zip(work.graph.delay, work.graph.step, strict=True) if step < 0 and delay > 2]
    assert computed == [5.0] * (2 * 3 * 2)


def test_steps_of_a_pipeline_are_slots_in_which_stages_compute() -> None:
    """Three stages and two chunks: the first computes in slots 0, 1, 6 and 7, the last from 2 to 5."""
    graph = built("pipeline", 3, chunks=2, compute="1us").graph
    rows = zip(graph.source.tolist(), graph.target.tolist(), graph.step.tolist(), strict=True)
    found = sorted((step, a, b) for a, b, step in rows if step >= 0)
    assert found == [(0, 0, 1), (1, 0, 1), (1, 1, 2), (2, 1, 2), (4, 2, 1), (5, 1, 0), (5, 2, 1), (6, 1, 0)]


@pytest.mark.parametrize(("kind", "rounds"), [("all-reduce", 2), ("all-gather", 1), ("reduce-scatter", 1)])
@pytest.mark.parametrize(("server", "inside"), [(4, 0.75e-3), (2, 0.5e-3)])
def test_inside_a_server_each_round_takes_its_share_of_the_bytes(
    kind: str, rounds: int, server: int, inside: float
) -> None:
    """1 MB at 1 GB/s, (G - 1)/G of it among G ranks; one server of all four sends nothing."""
    graph = built(kind, 4, server=server, server_rate="1GB/s").graph
    assert graph.sends.any() == (server == 2)
    latest: list[float] = []
    for i in range(len(graph)):
        latest.append(graph.delay[i] + max((latest[k] for k in graph.before(i)), default=0.0))
    assert max(latest) == pytest.approx(rounds * inside)


def test_steps_of_a_tree_by_hand() -> None:
    """Three ranks: 1 under 2 under 0, and moved on by one 2 under 0 under 1. Up in two steps, down in two."""
    graph = built("all-reduce", 3, algorithm="tree", chunks=2).graph
    found = {
        (int(a), int(b), int(c)): graph.step[(graph.source == a) & (graph.target == b) & (graph.channel == c)].tolist()
        for a, b, c, step in zip(graph.source, graph.target, graph.channel, graph.step, strict=True)
        if step >= 0
    }
    first = {(1, 2): 0, (2, 0): 1, (0, 2): 2, (2, 1): 3}
    second = {((a + 1) % 3, (b + 1) % 3): step for (a, b), step in first.items()}
    trees = enumerate([first, second])
    assert found == {(a, b, c): [step, step + 1] for c, tree in trees for (a, b), step in tree.items()}
