"""Closed-loop traffic: pairs of hosts whose next transfer waits for the last, and a disk's rebuild during them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fluidcc.builders.workloads import Rows, checked, distribution
from fluidcc.errors import InputError
from fluidcc.surface import public
from fluidcc.units import whole

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
    mean = float(np.sum(np.diff(share) * (at[1:] + at[:-1]) / 2))
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
