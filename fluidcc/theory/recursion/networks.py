"""Networks as the recursions see them: which path uses which link, and what each link carries.

>>> network = parking_lot(3)
>>> pareto(network.A, network.C, np.ones(3))
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fluidcc.errors import InputError
from fluidcc.theory.recursion.checks import Array, positive, scalar, whole


class Network(NamedTuple):
    """Incidence matrix ``A`` (..., links, paths), 0 or 1, and capacities ``C`` (..., links) in any unit of rate."""

    A: Array
    C: Array


def from_paths(paths: Iterable[Sequence[int]], capacities: ArrayLike) -> Network:
    """Network of the links that each path uses.

    Parameters
    ----------
    paths : iterable of sequences of int
        Per path its links, counted from 0; their order does not matter.
    capacities : array_like
        Per link, in any unit of rate.

    Returns
    -------
    Network

    Raises
    ------
    InputError
        If there is no path, a path has no link or one twice, a link does not exist or its capacity is not positive.
    """
    try:
        listed = [list(path) for path in paths]
    except TypeError:
        raise InputError("paths: not a list of lists; give the links of each path, for example [[0, 1], [0]]") from None
    C = positive("capacities", capacities, None, "link")
    if not listed:
        raise InputError("paths: none; give at least one, for example paths=[[0]]")
    A = np.zeros((len(C), len(listed)))
    for j, path in enumerate(listed):
        if not path:
            raise InputError(f"paths[{j}]: uses no link; give at least one, for example [0]")
        if len(set(path)) < len(path):
            raise InputError(f"paths[{j}]: {path} uses a link twice; name each link once")
        for i in path:
            if not isinstance(i, (int, np.integer)) or not 0 <= i < len(C):
                raise InputError(f"paths[{j}]: there is no link {i!r}; links are 0 to {len(C) - 1}")
            A[i, j] = 1.0
    return Network(A, C)


def linear(links: int, capacity: float = 1.0) -> Network:
    """Build one path over all links in a row (path 0), and one over each of them alone (path i + 1 over link i)."""
    whole("links", links)
    return from_paths([range(links), *([i] for i in range(links))], np.full(links, scalar("capacity", capacity)))


def parking_lot(links: int, capacity: float = 1.0) -> Network:
    """Paths that join a row of links one after the other and all leave at its end: path j uses links j, j+1, ..."""
    whole("links", links)
    return from_paths([range(j, links) for j in range(links)], np.full(links, scalar("capacity", capacity)))


def star(hosts: int, pairs: Iterable[tuple[int, int]] | None = None, capacity: float = 1.0) -> Network:
    """Hosts around one switch: link h goes up from host h, link hosts + h down to it.

    Parameters
    ----------
    hosts : int
        At least 2.
    pairs : iterable of (int, int)
        Source and destination of each path; every ordered pair by default.
    capacity : float
        Of every link.

    Returns
    -------
    Network

    Raises
    ------
    InputError
        If a pair names a host that does not exist, or one host twice.
    """
    whole("hosts", hosts, least=2)
    chosen = list(itertools.permutations(range(hosts), 2)) if pairs is None else _pairs(pairs, hosts)
    return from_paths([[s, hosts + d] for s, d in chosen], np.full(2 * hosts, scalar("capacity", capacity)))


def leaf_spine(
    leaves: int,
    spines: int,
    hosts_per_leaf: int,
    *,
    paths: int,
    seed: int = 0,
    host_capacity: float = 1.0,
    fabric_capacity: float = 1.0,
) -> Network:
    """Random pairs of hosts, each over one random spine if they hang on different leaves.

    Links, in this order: up from each host, down to each host, leaf to spine (leaf by leaf), spine to leaf
    (leaf by leaf). Paths are equal for equal seeds.

    Parameters
    ----------
    leaves, spines, hosts_per_leaf : int
    paths : int
        How many.
    seed : int
    host_capacity, fabric_capacity : float

    Returns
    -------
    Network

    Raises
    ------
    InputError
        If a count is not positive or there is only one host.
    """
    for name, value in (("leaves", leaves), ("spines", spines), ("hosts_per_leaf", hosts_per_leaf), ("paths", paths)):
        whole(name, value)
    hosts = leaves * hosts_per_leaf
    up = 2 * hosts
    down = up + leaves * spines
    rng = np.random.default_rng(seed)
    chosen: list[list[int]] = []
    for s, d in _random_pairs(rng, hosts, paths):
        a, b, spine = s // hosts_per_leaf, d // hosts_per_leaf, int(rng.integers(spines))
        fabric = [] if a == b else [up + a * spines + spine, down + b * spines + spine]
        chosen.append([s, *fabric, hosts + d])
    C = np.full(down + leaves * spines, scalar("fabric_capacity", fabric_capacity))
    C[:up] = scalar("host_capacity", host_capacity)
    return from_paths(chosen, C)


def fat_tree(k: int, *, paths: int, seed: int = 0, capacity: float = 1.0) -> Network:
    """Random pairs of hosts of a k-ary fat tree, each over one random shortest path of 2, 4 or 6 links.

    Links, in this order, k³/4 of each: up from and down to each host, edge to aggregation and back, aggregation
    to core and back.

    Parameters
    ----------
    k : int
        Ports of a switch, even.
    paths : int
        How many.
    seed : int
    capacity : float
        Of every link.

    Returns
    -------
    Network

    Raises
    ------
    InputError
        If k is odd or a count is not positive.
    """
    if whole("k", k, least=2) % 2:
        raise InputError(f"k: {k} ports; a fat tree needs an even number, give {k + 1}")
    half, hosts = k // 2, k**3 // 4
    rng = np.random.default_rng(seed)
    chosen: list[list[int]] = []
    for s, d in _random_pairs(rng, hosts, whole("paths", paths)):
        # Uplink u of edge e is the link 2 hosts + e half + u; uplink v of aggregation m is 4 hosts + m half + v.
        u, v = (int(n) for n in rng.integers(half, size=2))
        edges = s // half, d // half
        middle: list[int] = []
        if edges[0] != edges[1]:
            middle += [2 * hosts + edges[0] * half + u, 3 * hosts + edges[1] * half + u]
        pods = edges[0] // half, edges[1] // half
        if pods[0] != pods[1]:
            middle += [4 * hosts + (pods[0] * half + u) * half + v, 5 * hosts + (pods[1] * half + u) * half + v]
        chosen.append([s, *middle, hosts + d])
    return from_paths(chosen, np.full(6 * hosts, scalar("capacity", capacity)))


def random(links: int, paths: int, *, seed: int, count: int | None = None, density: float = 0.4) -> Network:
    """Networks whose paths use each link with the same probability, and at least one.

    Parameters
    ----------
    links, paths : int
    seed : int
    count : int
        How many networks: a leading axis; none by default, for a single network without that axis.
    density : float
        The probability. A path that would use no link uses one chosen at random.

    Returns
    -------
    Network
        Capacities are whole numbers from 1 to 10, so that exact arithmetic stays short.

    Raises
    ------
    InputError
        If a count is not positive or the density not within 0 and 1.
    """
    shape = (1 if count is None else whole("count", count), whole("links", links), whole("paths", paths))
    scalar("density", density, zero=True, most=1.0)
    rng = np.random.default_rng(seed)
    used = rng.random(shape) < density
    spare = rng.integers(links, size=(shape[0], 1, paths))
    used |= ~used.any(axis=1, keepdims=True) & (np.arange(links)[:, None] == spare)
    A, C = used.astype(np.float64), rng.integers(1, 11, size=shape[:2]).astype(np.float64)
    return Network(A[0], C[0]) if count is None else Network(A, C)


def _pairs(pairs: Iterable[tuple[int, int]], hosts: int) -> list[tuple[int, int]]:
    chosen = list(pairs)
    for n, pair in enumerate(chosen):
        if np.shape(pair) != (2,) or pair[0] == pair[1] or not all(h in range(hosts) for h in pair):
            raise InputError(f"pairs[{n}]: {pair}; give two different hosts of 0 to {hosts - 1}")
    return chosen


def _random_pairs(rng: np.random.Generator, hosts: int, count: int) -> list[tuple[int, int]]:
    if hosts < 2:
        raise InputError(f"hosts: {hosts}; paths need two ends, so give at least 2 hosts")
    source = rng.integers(hosts, size=count)
    other = (source + rng.integers(1, hosts, size=count)) % hosts
    return [(int(s), int(d)) for s, d in zip(source, other, strict=True)]
