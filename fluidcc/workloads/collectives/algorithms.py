"""Collectives as what each rank sends after what it has received: NCCL's rings and trees, and plain exchanges.

Each function adds the operations of one collective of a `Team` and returns, for each rank, what it has at the end:
places of operations behind which its part is done. Steps are counted as in a picture of it, from 0.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from fluidcc.workloads.collectives.graph import After, Building

Ends = list[list[int]] | list[np.ndarray]


@dataclasses.dataclass(frozen=True)
class Team:
    """Ranks that do a collective together.

    Parameters
    ----------
    graph : Building
    ranks : sequence of int
        In the graph's numbers.
    size : float
        Bytes, as nccl-tests count them.
    begins : sequence of sequences of int
        For each rank, what it waits for before all else.
    chunks : int
    server : int
        Ranks of one server, neighbours in ``ranks``; 1 without servers.
    server_rate : float
        Of all that a rank copies inside of one [bytes/s].
    compute : float
        Of a stage of a pipeline, for each of its chunks [s].
    weights : ndarray or None
        Of all-to-all: each rank's share of what every rank sends.
    channel : int
        The first; where teams share ranks, each has its own.
    """

    graph: Building
    ranks: Sequence[int]
    size: float
    begins: Sequence[After]
    chunks: int = 1
    server: int = 1
    server_rate: float = np.inf
    compute: float = 0.0
    weights: np.ndarray | None = None
    channel: int = 0

    def send(self, a: int, b: int, size: float, after: After, step: int, channel: int = 0) -> int:
        """Add a transfer between two ranks, numbered within the team: by the fabric, or inside a server."""
        source, target = self.ranks[a], self.ranks[b]
        if a // self.server == b // self.server and self.server > 1:
            return self.graph.copy(source, target, size / self.server_rate, after, step)
        return self.graph.send(source, target, size, after, step, self.channel + channel)


def _ring(team: Team, steps: int, size: float) -> Ends:
    """Pass data around the ring, each rank what it has received; as many rings as chunks, in parallel.

    Sends of a connection follow each other, so that who has not begun passes nothing on. What came is each rank's end.
    """
    count, ranks = len(team.ranks), np.array(team.ranks)
    following = np.roll(ranks, -1)
    parts: list[np.ndarray] = []
    for c in range(team.chunks):
        sent = np.array([
            team.send(r, (r + 1) % count, size / team.chunks, team.begins[r], 0, c) for r in range(count)
        ])  # fmt: skip
        parts.append(sent)
        for step in range(1, steps):
            came = np.roll(sent, 1)[:, None]
            sent = team.graph.send_all(ranks, following, size / team.chunks, came, step, team.channel + c)
            parts.append(sent)
    received = np.roll(np.array(parts), 1, axis=1)  # by whom
    return [np.concatenate([first, received[:, r]]) for r, first in enumerate(team.begins)]


def ring_all_reduce(team: Team) -> Ends:
    """Schedule 2 (N - 1) steps of 1/N: reduced as they go round once, and spread as they go round again."""
    count = len(team.ranks)
    return _ring(team, 2 * (count - 1), team.size / count)


def ring_half(team: Team) -> Ends:
    """Schedule an all-gather or a reduce-scatter: N - 1 steps of 1/N."""
    count = len(team.ranks)
    return _ring(team, count - 1, team.size / count)


def parents(count: int) -> tuple[list[int], list[int]]:
    """Parents of each rank in NCCL's two binary trees, -1 of the roots; who has children in one is a leaf of the other.

    In the first a rank's parent has its lowest bit moved up by one, or taken away where that is beyond the last rank;
    the second is its mirror image, or, of an odd number, the same moved on by one.
    """
    first = [-1] * count
    for rank in range(1, count):
        low = rank & -rank
        up = (rank ^ low) | (low << 1)
        first[rank] = up if up < count else rank ^ low
    if count % 2:
        second = [-1 if first[rank - 1] < 0 else (first[rank - 1] + 1) % count for rank in range(count)]
    else:
        second = [-1 if first[-1 - rank] < 0 else count - 1 - first[-1 - rank] for rank in range(count)]
    return first, second


def tree_all_reduce(team: Team) -> Ends:
    """Send halves of the data up and down NCCL's two trees, chunk by chunk."""
    ends = _lists(team.begins)
    for channel, above in enumerate(parents(len(team.ranks))):
        _tree(team, above, team.size / 2 / team.chunks, channel, ends)
    return ends


def _tree(team: Team, above: list[int], size: float, channel: int, ends: list[list[int]]) -> None:
    """Send chunks up one tree, each as all children's have come, and down again; what came joins ``ends``."""
    children: list[list[int]] = [[] for _ in above]
    for rank, up in enumerate(above):
        if up >= 0:
            children[up].append(rank)
    downward = [above.index(-1)]  # the root first, parents before children
    for rank in downward:
        downward += children[rank]
    depth = [0] * len(above)
    for rank in downward[1:]:
        depth[rank] = depth[above[rank]] + 1
    deepest = max(depth)
    for chunk in range(team.chunks):
        came: list[list[int]] = [[] for _ in above]
        for rank in reversed(downward[1:]):
            before = [*team.begins[rank], *came[rank]]
            step = deepest - depth[rank] + chunk
            came[above[rank]].append(team.send(rank, above[rank], size, before, step, channel))
        for rank in downward:
            here = [*team.begins[rank], *came[rank]]
            for child in children[rank]:
                place = team.send(rank, child, size, here, deepest + depth[rank] + chunk, channel)
                came[child] = [place]
                ends[child].append(place)
        ends[downward[0]] += came[downward[0]]


def all_to_all(team: Team) -> Ends:
    """Schedule sends from each rank to each other, all at once: the next rank's part first."""
    count, ends = len(team.ranks), _lists(team.begins)
    weights = np.full(count, 1 / count) if team.weights is None else team.weights
    alike = len({*map(len, team.begins)}) == 1 and team.server == 1
    ranks, begins = np.array(team.ranks), np.array(team.begins) if alike else None
    for step in range(1, count):
        to = (np.arange(count) + step) % count
        if alike:
            places = team.graph.send_all(
                ranks, ranks[to], team.size * weights[to], begins, step - 1, team.channel
            ).tolist()
        else:
            places = [
                team.send(r, int(to[r]), team.size * float(weights[to[r]]), team.begins[r], step - 1)
                for r in range(count)
            ]
        for target, place in zip(to.tolist(), places, strict=True):
            ends[target].append(place)
    return ends


def broadcast(team: Team) -> Ends:
    """Schedule sends from the first rank on along the ring, chunk by chunk, as NCCL does."""
    ends = _lists(team.begins)
    for chunk in range(team.chunks):
        came = list(team.begins[0])
        for rank in range(len(team.ranks) - 1):
            place = team.send(rank, rank + 1, team.size / team.chunks, came, rank + chunk)
            came = [*team.begins[rank + 1], place]
            ends[rank + 1].append(place)
            if rank == 0:  # which receives nothing
                ends[0].append(place)
    return ends


def pipeline(team: Team) -> Ends:
    """Stages with micro-batches: all forward, stage by stage, then all backward (GPipe), each after its compute."""
    count, graph = len(team.ranks), team.graph
    ends = _lists(team.begins)
    busy = [list(each) for each in team.begins]  # what each stage has computed last
    size = team.size / team.chunks
    for forward in (True, False):
        order = range(count) if forward else range(count - 1, -1, -1)
        for chunk in range(team.chunks):
            came: list[int] = []
            for k, rank in enumerate(order):
                busy[rank] = [graph.wait(team.ranks[rank], team.compute, [*busy[rank], *came])]
                if k < count - 1:
                    step = k + chunk + (0 if forward else count - 1 + team.chunks)
                    came = [team.send(rank, order[k + 1], size, busy[rank], step)]
    return [[*ends[rank], *busy[rank]] for rank in range(count)]


def _lists(begins: Sequence[After]) -> list[list[int]]:
    return [list(each) for each in begins]


@dataclasses.dataclass(frozen=True)
class Kind:
    """A collective.

    Parameters
    ----------
    algorithms : dict
        By name, the default first.
    factor : callable
        Of the number of ranks: bus bandwidth over bytes per second, as nccl-tests have it.
    takes : tuple of str
        Options of a job that change something.
    within : float
        Of bytes over a server's rate, what a hierarchical one spends inside: times (G - 1)/G of G ranks. 0 where there
        is no hierarchy.
    shared : bool
        Whether a transfer is of one rank's part of the bytes, not of all.
    """

    algorithms: dict[str, Callable[[Team], Ends]]
    factor: Callable[[int], float]
    takes: tuple[str, ...] = ()
    within: float = 0.0
    shared: bool = True

    def parts(self, algorithm: str, ranks: int, chunks: int, server: int) -> int:
        """Return the number of parts of the bytes, each sent as one transfer."""
        if algorithm == "tree":
            return 2 * server * chunks
        return (ranks if self.shared else 1) * chunks


def _part(count: int) -> float:
    return (count - 1) / count


KINDS = {
    "all-reduce": Kind(
        {"ring": ring_all_reduce, "tree": tree_all_reduce}, lambda n: 2 * _part(n), ("chunks", "hierarchy"), 2.0
    ),
    "all-gather": Kind({"ring": ring_half}, _part, ("chunks", "hierarchy"), 1.0),
    "reduce-scatter": Kind({"ring": ring_half}, _part, ("chunks", "hierarchy"), 1.0),
    "all-to-all": Kind({"direct": all_to_all}, _part, ("skew",)),
    "broadcast": Kind({"ring": broadcast}, lambda n: 1.0, ("chunks",), shared=False),
    "pipeline": Kind({"gpipe": pipeline}, lambda n: 1.0, ("chunks",), shared=False),
}


def done(kind: str, team: Team, algorithm: str | None = None) -> Ends:
    """Schedule a collective by an algorithm, or its usual one; with servers, inside them first or last."""
    made = KINDS[kind].algorithms[algorithm or next(iter(KINDS[kind].algorithms))]
    if team.server == 1 or not KINDS[kind].within:
        return made(team)
    return _hierarchical(kind, team, made, KINDS[kind].within)


def _hierarchical(kind: str, team: Team, algorithm: Callable[[Team], Ends], within: float) -> Ends:
    """Schedule inside each server first or last, and between servers a team of each place's ranks with its share."""
    graph, ranks, size = team.graph, list(team.ranks), team.server
    inside = team.size * (size - 1) / size / team.server_rate
    servers = [range(k, k + size) for k in range(0, len(ranks), size)]
    before, after = (within == 2 or kind == "reduce-scatter"), (within == 2 or kind == "all-gather")

    def together(of: Sequence[After], delay: float) -> list[list[int]]:
        """Have each server's ranks wait until all of them have what they wait for."""
        found: list[list[int]] = [[] for _ in ranks]
        for server in servers:
            joined = [graph.wait(ranks[server[0]], delay, np.unique(np.concatenate([of[r] for r in server])))]
            for rank in server:
                found[rank] = joined
        return found

    start: Sequence[After] = together(team.begins, inside) if before else team.begins
    ends: list[After] = [[] for _ in ranks]
    if len(servers) > 1:
        for local in range(size):
            mine = [server[local] for server in servers]
            part = dataclasses.replace(
                team, ranks=[ranks[r] for r in mine], size=team.size / size, begins=[start[r] for r in mine], server=1
            )
            for rank, each in zip(mine, algorithm(part), strict=True):
                ends[rank] = each
    else:
        ends = list(start)
    return together(ends, inside) if after else ends  # type: ignore[return-value]
