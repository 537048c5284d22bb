"""Traffic of datacenters, as rows for `fluidcc.clos`: flows of published sizes at random, incasts, closed loops."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fluidcc.builders.clos import clos
from fluidcc.errors import InputError
from fluidcc.scenario.model import Scenario
from fluidcc.surface import one_of, public
from fluidcc.units import RATE, RATIO, SIZE, TIME, quantity, whole

# Shares of flows up to a size [bytes]; in between, sizes are uniform.
WEB_SEARCH = (  # Alizadeh et al., SIGCOMM 2010, as the HPCC authors' public simulator tabulates it
    (0, 0.0), (10e3, 0.15), (20e3, 0.2), (30e3, 0.3), (50e3, 0.4), (80e3, 0.53), (200e3, 0.6), (1e6, 0.7),
    (2e6, 0.8), (5e6, 0.9), (10e6, 0.97), (30e6, 1.0),
)  # fmt: skip
HADOOP = (  # Roy et al., SIGCOMM 2015, likewise
    (0, 0.0), (100, 0.01), (200, 0.02), (300, 0.05), (350, 0.15), (400, 0.2), (500, 0.3), (600, 0.4), (700, 0.5),
    (1e3, 0.6), (2e3, 0.67), (7e3, 0.7), (30e3, 0.72), (50e3, 0.82), (80e3, 0.87), (120e3, 0.9), (300e3, 0.95),
    (1e6, 0.975), (2e6, 0.99), (10e6, 1.0),
)  # fmt: skip
ALIBABA_STORAGE = (  # of the same simulator's repository (AliStorage2019): the storage workload of Fairness, section 6
    (0, 0.0), (4e3, 0.2293), (8e3, 0.6921), (16e3, 0.8061), (32e3, 0.9047), (64e3, 0.9353), (128e3, 0.9677),
    (256e3, 0.9753), (2e6, 1.0),
)  # fmt: skip
SIZES = {"web-search": WEB_SEARCH, "hadoop": HADOOP, "alibaba-storage": ALIBABA_STORAGE}

_MOST_HOSTS = 1 << 20

Rows = np.ndarray[tuple[int, int], np.dtype[np.float64]]


@public()
def poisson_flows(
    hosts: int,
    *,
    load: Any,
    until: Any,
    rate: Any = "100Gbps",
    sizes: str | Sequence[tuple[float, float]] = "web-search",
    seed: int = 0,
) -> Rows:
    """Flows between random pairs of hosts that arrive at random, and are of random size.

    Parameters
    ----------
    hosts : int
        At least 2.
    load : quantity
        Mean rate of what they send, over that of all hosts' links [1].
    until : quantity
        Arrivals end then [s].
    rate : quantity
        Of a host's link [bytes/s].
    sizes : {"web-search", "hadoop", "alibaba-storage"} or sequence of (size, share)
        Distribution: share of the flows of at most that size [bytes], rising from 0 to 1.
    seed : int

    Returns
    -------
    array, shape (flows, 4)
        Source, target, start [s] and size [bytes], by start.

    Raises
    ------
    InputError
        If a value cannot be read or makes no sense.

    Examples
    --------
    >>> poisson_flows(32, load=0.6, until="1ms").shape[1]
    4
    """
    hosts, until, rate = checked(hosts, until, rate)
    bytes_per_s = load_of(load) * hosts * rate
    table = distribution(sizes)
    at, share = np.array(table).T
    mean = mean_of(at, share)
    generator = np.random.default_rng([seed, 0])
    count = generator.poisson(bytes_per_s / mean * until)
    start = np.sort(generator.uniform(0.0, until, count))
    source = generator.integers(0, hosts, count)
    target = (source + generator.integers(1, hosts, count)) % hosts
    size = np.maximum(np.ceil(np.interp(generator.random(count), share, at)), 1.0)
    return np.stack([source, target, start, size], axis=1)


def star(
    hosts: int, *, load: Any, until: Any, rate: Any, sizes: str, seed: int, delay: Any, scheme: Any, marking: Any
) -> Scenario:
    """One switch with hosts that send to each other at random; options as of `poisson_flows` and `fluidcc.clos`."""
    rows = poisson_flows(hosts, load=load, until=until, rate=rate, sizes=sizes, seed=seed)
    return clos(
        [(int(source), int(target), start, size) for source, target, start, size in rows.tolist()],
        pods=1, tors=1, leaves=1, spines=0, hosts=hosts, rate=rate, delay=delay, scheme=scheme, marking=marking,
    )  # fmt: skip


@public()
def incasts(
    hosts: int,
    *,
    load: Any,
    until: Any,
    senders: int = 64,
    size: Any = "20KB",
    rate: Any = "100Gbps",
    seed: int = 0,
) -> Rows:
    """Random senders that send to a random receiver at once, again and again at random times (ACC 6.1, HPCC 5.3).

    Parameters
    ----------
    senders : int
        Of one incast; less than ``hosts``.
    size : quantity
        That each sends [bytes].
    hosts, load, until, rate, seed
        As of `poisson_flows`, which this returns like.

    Returns
    -------
    array, shape (flows, 4)
        Source, target, start [s] and size [bytes].

    Raises
    ------
    InputError
        If a value cannot be read or makes no sense.
    """
    hosts, until, rate = checked(hosts, until, rate)
    senders = whole(senders, 1, hosts - 1, "senders", f"; {hosts} hosts have at most {hosts - 1} senders for one")
    size = _size(size)
    generator = np.random.default_rng([seed, 1])
    events = generator.poisson(load_of(load) * hosts * rate / (senders * size) * until)
    rows = []
    for start in np.sort(generator.uniform(0.0, until, events)):
        chosen = generator.permutation(hosts)[: senders + 1]
        rows += [(source, chosen[0], start, size) for source in chosen[1:]]
    return np.array(rows, float).reshape(-1, 4)


@public()
def permutation_flows(hosts: int, *, size: Any = "1MB", seed: int = 0) -> Rows:
    """One flow from every host to another, such that each receives one, all at once.

    Parameters
    ----------
    hosts : int
        At least 2.
    size : quantity
        Of each flow [bytes].
    seed : int

    Returns
    -------
    array, shape (hosts, 4)
        Source, target, start [s] and size [bytes].

    Raises
    ------
    InputError
        If a value cannot be read or makes no sense.

    Examples
    --------
    >>> sorted(permutation_flows(4)[:, 1].tolist())
    [0.0, 1.0, 2.0, 3.0]
    """
    hosts, size = whole(hosts, 2, _MOST_HOSTS, "hosts"), _size(size)
    # Sattolo's shuffle makes one cycle of all hosts, so that nobody sends to itself.
    target, generator = np.arange(hosts), np.random.default_rng([seed, 2])
    for i in range(hosts - 1, 0, -1):
        j = generator.integers(0, i)
        target[i], target[j] = target[j], target[i]
    return np.stack([np.arange(hosts), target, np.zeros(hosts), np.full(hosts, size)], axis=1).astype(float)


@public()
def all_to_all_flows(hosts: int, *, size: Any = "1MB") -> Rows:
    """A flow from every host to every other, all at once.

    Parameters
    ----------
    hosts : int
        At least 2.
    size : quantity
        Of each flow [bytes].

    Returns
    -------
    array, shape (hosts * (hosts - 1), 4)
        Source, target, start [s] and size [bytes]; of each source, first the flow to the host after it.

    Raises
    ------
    InputError
        If a value cannot be read or makes no sense.
    """
    hosts, size = whole(hosts, 2, 1024, "hosts", "; all-to-all of more would be over a million flows"), _size(size)
    source = np.repeat(np.arange(hosts), hosts - 1)
    target = (source + np.tile(np.arange(1, hosts), hosts)) % hosts
    return np.stack([source, target, np.zeros(len(source)), np.full(len(source), size)], axis=1).astype(float)


def check_workload(name: str) -> None:
    """Refuse a name that is no workload's.

    Raises
    ------
    InputError
    """
    if name not in SIZES:
        raise InputError(f"workload: {name[:40]!r} is none; {one_of(name, SIZES)}")


def checked(hosts: int, until: Any, rate: Any) -> tuple[int, float, float]:
    """Hosts, end [s] and rate [bytes/s], read.

    Raises
    ------
    InputError
        If one cannot be read or makes no sense.
    """
    hosts = whole(hosts, 2, _MOST_HOSTS, "hosts")
    until, rate = quantity(until, TIME, "until"), quantity(rate, RATE, "rate")
    if not 0 < until < math.inf or not 0 < rate < math.inf:
        raise InputError("until, rate: expected a time and a rate above 0; write for example until='10ms'")
    return hosts, until, rate


def mean_of(at: np.ndarray, share: np.ndarray) -> float:
    """Mean of a distribution whose sizes are uniform between those in the table [bytes]."""
    return float(np.sum(np.diff(share) * (at[1:] + at[:-1]) / 2))


def _size(value: Any) -> float:
    size = quantity(value, SIZE, "size")
    if not 1 <= size < math.inf:
        raise InputError("size: flows have at least a byte each, and an end; write for example 20KB")
    return size


def load_of(load: Any) -> float:
    """A load, read [1].

    Raises
    ------
    InputError
        If it is none.
    """
    value = quantity(load, RATIO, "load")
    if not 0 < value <= 1:
        raise InputError(f"load: {str(load)[:20]} is no share of the links' rate; write for example 0.6")
    return value


def distribution(sizes: str | Sequence[tuple[float, float]]) -> Sequence[tuple[float, float]]:
    """Sizes [bytes] and shares, of a name in `SIZES` or as given.

    Raises
    ------
    InputError
        If there is no such name, or they do not rise from 0 to 1.
    """
    if isinstance(sizes, str):
        if sizes not in SIZES:
            raise InputError(f"sizes: {sizes[:20]!r} is unknown; write {' or '.join(SIZES)}, or (size, share) pairs")
        return SIZES[sizes]
    at, share = np.array(sizes, float).reshape(-1, 2).T
    rises = len(at) > 1 and np.all(np.diff(at) > 0) and np.all(np.diff(share) >= 0)
    if not rises or share[0] != 0 or share[-1] != 1 or at[0] < 0:
        raise InputError("sizes: expected (size, share) pairs that rise, the share from 0 to 1")
    return sizes


# -- closed loops: pairs whose next transfer waits for the last, and a disk's rebuild during them ----------


_MOST_PAIRS = 4096
_AT_ONCE = 256  # sizes drawn at a time

Row = tuple[float, float, float, float, tuple[int, ...]]


@public()
def pair_flows(
    hosts: int,
    *,
    pairs: int,
    until: Any,
    rate: Any = "100Gbps",
    sizes: str | Sequence[tuple[float, float]] = "web-search",
    seed: int = 0,
) -> list[Row]:
    """Random pairs of hosts that send transfers back to back: each begins as the last one's end is known (DCQCN 6.2).

    A pair's first transfer begins at random within the time that a mean one takes at line rate. Pairs are the first of
    those of any larger number with the same seed, and transfer the same sizes.

    Parameters
    ----------
    hosts : int
        At least 2.
    pairs : int
        Senders are all hosts in a random order, again and again; receivers are random.
    until : quantity
        The pairs send at least until then, for which there are transfers enough [s].
    rate : quantity
        Of the fastest host's link [bytes/s].
    sizes : {"web-search", "hadoop", "alibaba-storage"} or sequence of (size, share)
        As of `poisson_flows`.
    seed : int

    Returns
    -------
    list of tuple
        Rows of source, target, start [s], size [bytes], and the place of the transfer before it, pair by pair.

    Raises
    ------
    InputError
        If a value cannot be read or makes no sense.

    Examples
    --------
    >>> rows = pair_flows(20, pairs=20, until="1ms", rate="40Gbps")
    >>> len({row[:2] for row in rows if row[4] == ()})
    20
    """
    hosts, until, rate = checked(hosts, until, rate)
    pairs = whole(pairs, 1, _MOST_PAIRS, "pairs")
    at, share = np.array(distribution(sizes)).T
    mean = mean_of(at, share)
    order = np.random.default_rng([seed, 3]).permutation(hosts)
    rows: list[Row] = []
    for pair in range(pairs):
        generator = np.random.default_rng([seed, 4, pair])
        source = int(order[pair % hosts])
        target = int((source + generator.integers(1, hosts)) % hosts)
        start, left, after = float(generator.uniform(0.0, mean / rate)), until * rate, ()
        while left > 0:  # no transfer is faster than the link, so that these suffice
            drawn = np.maximum(np.ceil(np.interp(generator.random(_AT_ONCE), share, at)), 1.0)
            for size in drawn[: int(np.searchsorted(np.cumsum(drawn), left)) + 1].tolist():
                rows.append((source, target, start, size, after))
                left -= size
                start, after = 0.0, (len(rows) - 1,)
    return rows


@public()
def rebuild_flows(hosts: int, *, senders: int, until: Any, rate: Any = "100Gbps", seed: int = 0) -> Rows:
    """One incast from random hosts to another, for all the time: a failed disk is rebuilt from others (DCQCN 6.2).

    The receiver is the same for any number of senders with the same seed, and senders are the first of those of a
    larger number.

    Parameters
    ----------
    hosts : int
    senders : int
        Less than ``hosts``.
    until : quantity
        They all send from 0 on, and each has so much that no link could carry it earlier [s].
    rate : quantity
        Of the fastest host's link [bytes/s].
    seed : int

    Returns
    -------
    array, shape (senders, 4)
        Source, target, start [s] and size [bytes].

    Raises
    ------
    InputError
        If a value cannot be read or makes no sense.
    """
    hosts, until, rate = checked(hosts, until, rate)
    senders = whole(senders, 1, _MOST_PAIRS, "rebuild")
    if senders >= hosts:
        raise InputError(f"rebuild: {senders} senders and a receiver are more than {hosts} hosts; give fewer")
    order = np.random.default_rng([seed, 5]).permutation(hosts).astype(float)
    sources = order[1 : senders + 1]
    same = np.ones(senders)
    return np.stack([sources, order[0] * same, 0 * same, np.ceil(until * rate) * same], axis=1)
