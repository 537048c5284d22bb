"""Packets that meet: their queue in addition to the fluid's, and how likely it gets an arriving packet marked.

Traffic that a link could carry as a fluid still queues as packets, since packets of several flows come at once. Over
times as short as a packet's gap all senders pace evenly, with phases that know nothing of each other: N periodic
sources at one server, N*D/D/1, whose unfinished work V, in packets, has

    P(V > n) = sum over k in n+1..N of C(N, k) ((k-n)/D)^k (1-(k-n)/D)^(N-k) (D-N+n)/(D-k+n),  D = N/load

(Roberts, Virtamo: "The Superposition of Periodic Cell Arrival Streams in an ATM Multiplexer", IEEE Trans. Commun. 39,
1991). The queue's longer stories, in which rates exceed the link's, are the fluid's: the decomposition into a packet
scale and a burst scale is that of Roberts, Mocci and Virtamo (eds.), "Broadband Network Teletraffic", 1996.

So a queue is the fluid's, q, and n packets that meet, at the load of the link, which is 1 while the fluid has a queue.
A packet of one of N flows finds those of the N - 1 others. RED sees whole packets; between them q is a mean.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln, xlogy

from fluidcc.contract.red import red
from fluidcc.engines.hybrid.layout import KNOTS, LIKELY, LOADS
from fluidcc.scenario.switches import RED, in_bytes

Array = np.ndarray[Any, Any]
_FLAT, _NEARLY = 1e-5, 0.01  # of a probability: what straight pieces may miss it by, absolutely and as a share
_MANY = 1 << 14  # packets at which a ramp is looked at, at most
_REPLAYED, _FEWEST = 1 << 13, 32  # packets and draws of the phases that are replayed for a load, about and at least
_PERIODS, _LOOKS = 10, 32  # of a replay with jitter; instants at which each draw is looked at
_CERTAIN = 1.0 - 1e-9  # so that no hazard is infinite
_ROUNDING = 1e-9  # of the time of a packet


class Meetings(NamedTuple):
    """Distributions of the packets that meet, at evenly spaced loads from 0 to 1; shape (LOADS + 1, lengths) each.

    Parameters
    ----------
    waiting : ndarray
        Share of the time in which 0, 1, ... packets wait, besides the one that is being sent.
    found : ndarray
        Share of arriving packets that find as many waiting.
    found_with_sending : ndarray
        The same, the packet that is being sent included.
    """

    waiting: Array
    found: Array
    found_with_sending: Array


@lru_cache(maxsize=256)
def meetings(flows: int, burst: int = 1, jitter: float = 0.0, spacing: float = 1.0) -> Meetings:
    """Return packets that meet, of equal flows with random phases: by formula, or, for bursts and jitter, by a replay.

    Parameters
    ----------
    flows : int
    burst : int
        Packets that each sends back to back.
    jitter : float
        Share by which the waits between bursts vary.
    spacing : float
        Time between two packets of a burst, in the time that the link takes for one.
    """
    if burst > 1 or jitter > 0.0:
        return _replayed(flows, burst, jitter, spacing)
    found = _waiting(flows - 1, flows)
    idle = 1.0 - (flows - 1) / flows * np.arange(LOADS + 1) / LOADS  # the others leave the link free
    first = np.clip(found[:, 0] - idle, 0.0, 1.0)
    return Meetings(_waiting(flows, flows), found, np.column_stack([idle, first, found[:, 1:]]))


def _waiting(sources: int, flows: int) -> Array:
    """Distribution of the waiting packets of these sources, where ``flows`` of them are the load."""
    most = max(min(sources, 10 + math.ceil(5 * math.sqrt(sources))), 1)  # P(V > n) is at most exp(-2 n^2/N)
    k, n = np.arange(1, sources + 1)[:, None], np.arange(1, most)
    ahead = np.maximum(k - n, 0)
    ways = gammaln(sources + 1) - gammaln(k + 1) - gammaln(sources - k + 1)
    shares = np.zeros((LOADS + 1, most))
    shares[0, 0] = 1.0
    for row in range(1, LOADS + 1):
        period = flows * LOADS / row
        share = ahead / period
        factors = (period - sources + n) / (period - k + n)
        terms = np.exp(ways + xlogy(k, share) + xlogy(sources - k, 1 - share)) * factors
        more = np.append(np.where(ahead > 0, terms, 0.0).sum(axis=0), 0.0)  # P(V > 1), P(V > 2), ...
        shares[row] = np.clip(-np.diff(more, prepend=1.0), 0.0, 1.0)
    return shares


def _replayed(flows: int, burst: int, jitter: float, spacing: float) -> Meetings:
    """Lindley's recursion over periods of all senders, in many draws of their phases."""
    rng = np.random.default_rng(0)
    rounds = max(_FEWEST, _REPLAYED // (flows * burst))
    periods = _PERIODS if jitter > 0.0 else 2
    phases = rng.uniform(size=(rounds, flows, 1))
    waits = 1.0 + jitter * rng.uniform(-1.0, 1.0, (rounds, flows, periods - 1))
    begins = np.concatenate([phases, phases + waits.cumsum(axis=2)], axis=2)
    opens = periods - 1 - (jitter > 0.0)  # a period in which all that came before has been replayed
    looks = np.sort(rng.uniform(opens, opens + 1, (rounds, _LOOKS)))
    found, waiting = [np.zeros(1, np.int64)], [np.zeros(1, np.int64)]  # packets in the system; none without load
    for row in range(1, LOADS + 1):
        period = flows * burst * LOADS / row
        times = (period * begins[..., None] + spacing * np.arange(burst)).reshape(rounds, -1)
        times.sort(axis=1)
        order = np.arange(times.shape[1])
        latest = np.maximum.accumulate(times - order, axis=1)
        inside = (times >= opens * period) & (times < (opens + 1) * period)
        found.append(_packets((order - times + latest)[inside]))
        apart = np.arange(rounds)[:, None] * (float(times[:, -1].max()) + 2.0 * period)  # one draw behind the other
        before = np.searchsorted((times + apart).ravel(), (period * looks + apart).ravel()).reshape(looks.shape)
        count = before - np.arange(rounds)[:, None] * times.shape[1]
        work = count - period * looks + np.take_along_axis(latest, np.maximum(count - 1, 0), axis=1)
        waiting.append(_packets(np.where(count > 0, work, 0.0).ravel()))
    return Meetings(
        _shares([np.maximum(each - 1, 0) for each in waiting]),
        _shares([np.maximum(each - 1, 0) for each in found]),
        _shares(found),
    )


def _packets(work: Array) -> Array:
    """Count the packets of which this work is left to send, in the time that one takes."""
    return np.maximum(np.ceil(work - _ROUNDING), 0.0).astype(int)


def _shares(counts: Sequence[Array]) -> Array:
    """Share of each count, a row for each sample."""
    most = max(int(each.max()) for each in counts) + 1
    return np.stack([np.bincount(each, minlength=most) / len(each) for each in counts])


class Marks(NamedTuple):
    """Probability that an arriving packet is marked: straight between queues of the fluid, then certain.

    Parameters
    ----------
    queues, chances : ndarray, shape (pieces + 1,)
        From an empty queue on [bytes]; above the last one every packet is marked.
    meeting : ndarray, shape (LOADS + 1,)
        Where the fluid has no queue, at evenly spaced loads from 0 to 1.
    """

    queues: Array
    chances: Array
    meeting: Array


def marks(marking: RED, met: Meetings, packet: float) -> Marks:
    """Return the marking of a ramp (DCQCN, Fig. 5) as packets [bytes] see it that meet others."""
    marking = in_bytes(marking, packet)
    whole = math.floor(marking.kmax / packet) + 1  # packets that are above Kmax
    at = np.append(np.arange(0, whole, max(whole // _MANY, 1)), whole)
    shares = met.found_with_sending if marking.counts_sending else met.found

    def chance(packets: Array) -> Array:
        return red(packets * packet, marking.kmin, marking.kmax, marking.pmax)

    besides = np.arange(met.found.shape[1]) + marking.counts_sending  # there is always one while the fluid has a queue
    chances = chance(at[:, None] + besides) @ met.found[LOADS]
    kept = _straight(at.astype(float), chances)
    at, chances = at[kept].astype(float), chances[kept]
    k = int(np.searchsorted(chances, LIKELY))  # each piece is likely as a whole, or not at all
    if 0 < k < len(at) and chances[k] > LIKELY:
        share = (LIKELY - chances[k - 1]) / (chances[k] - chances[k - 1])
        at, chances = np.insert(at, k, at[k - 1] + share * (at[k] - at[k - 1])), np.insert(chances, k, LIKELY)
    meeting = shares @ chance(np.arange(shares.shape[1]))
    return Marks(packet * at, np.minimum(chances, _CERTAIN), np.minimum(meeting, _CERTAIN))


def _straight(x: Array, y: Array) -> Array:
    """Points of a curve between which it is nearly straight: Douglas and Peucker's, as coarse as needed."""
    near = _NEARLY
    while True:
        kept, todo = {0, len(x) - 1}, [(0, len(x) - 1)]
        while todo:
            first, last = todo.pop()
            line = y[first] + (y[last] - y[first]) * (x[first : last + 1] - x[first]) / max(x[last] - x[first], 1.0)
            off = np.abs(y[first : last + 1] - line) / (_FLAT + near * y[first : last + 1])
            worst = int(off.argmax())
            if off[worst] > 1.0:
                kept.add(first + worst)
                todo += [(first, first + worst), (first + worst, last)]
        if len(kept) < KNOTS:
            return np.array(sorted(kept))
        near *= 2


def as_many_equal(rates: Array) -> int:
    """Return the number of equal flows whose rates vary as much, (sum R)^2/(sum R^2); 1 of none."""
    squares = float(np.square(rates).sum())
    return max(round(float(rates.sum()) ** 2 / squares), 1) if squares > 0 else 1


def whole(lengths: Array, times: Array, packet: float) -> tuple[Array, Array]:
    """Return queues of whole packets, which those of the fluid are the means of, and the time of each."""
    below = np.floor(lengths / packet)
    more = lengths / packet - below
    return packet * np.concatenate([below, below + 1.0]), np.concatenate([times * (1.0 - more), times * more])
