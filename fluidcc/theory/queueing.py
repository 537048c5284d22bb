"""Queues of periodic sources with random phases in closed form: N*D/D/1 (HPCC A.1), and that of bursts.

Sizes are in packets, times in service times of one; `burst_queue` is in bytes. At a load of 1 the queue is still
bounded, because its sources repeat themselves.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fluidcc.contract.red import red
from fluidcc.errors import InputError
from fluidcc.surface import constructor, public
from fluidcc.units import RATE, RATIO, SIZE, quantity, whole

_MOST_PACKETS = 2048  # in a period; more take over ten seconds
_LEAST_LOAD = 0.05  # periods of less are long, and take memory
_LEAST_CHANCE = 1e-12  # smaller probabilities are rounding
_TIE = 1e-9  # of the time of a packet: what is that near to a whole number is one


def exceeds(x: ArrayLike, sources: int, load: float) -> Any:
    """P(V > x), V being the unfinished work at a random time, which is the number in the system before rounding up.

    Parameters
    ----------
    x : array_like
        At least 0. The probability that more than k packets wait, without the one in service, is that of V > k + 1.
    sources : int
        N, each with one packet per period D = N/load, at independent uniform phases.
    load : float

    Returns
    -------
    ndarray
        Of the shape of ``x``; all terms are positive, so that small probabilities keep their digits.

    Raises
    ------
    InputError
        If there are no sources, or the load is not in (0, 1].

    Notes
    -----
    Roberts and Virtamo (1991), by the ballot theorem: the sum over n > x of
    C(N,n) ((n-x)/D)^n (1-(n-x)/D)^(N-n) (D-N+x)/(D-n+x).
    """
    from scipy.stats import binom

    N, D = _checked(sources, load)
    at = np.asarray(x, float)[..., None]
    n = np.arange(1.0, N + 1)
    share = np.clip((n - at) / D, 0.0, 1.0)
    # At full load and x = 0 the last term is 0/0: all sources within the period, and the server never idle.
    never_idle = (D - n + at) <= 0
    ballot = (D - N + at) / np.where(never_idle, 1.0, D - n + at)
    terms = np.where(never_idle, 1.0, np.where(n > at, binom.pmf(n, N, share) * ballot, 0.0))
    return terms.sum(axis=-1)


def bridge_exceeds(x: ArrayLike, sources: int, load: float) -> Any:
    """The same by a Brownian bridge: exp(-2 x (x + D - N)/N), for heavy traffic; parameters as of `exceeds`."""
    N, D = _checked(sources, load)
    at = np.asarray(x, float)
    return np.exp(-2 * at * (at + D - N) / N)


def mean_waiting(sources: int, load: float) -> float:
    """Mean number of packets that wait, without the one in service; parameters as of `exceeds`."""
    return float(exceeds(np.arange(sources), sources, load).sum()) - load


def bridge_mean(sources: int) -> float:
    """Mean unfinished work at full load by a Brownian bridge, (pi N/8)^0.5: the integral of `bridge_exceeds`."""
    return math.sqrt(math.pi * _checked(sources, 1.0)[0] / 8)


@constructor()
@dataclasses.dataclass(frozen=True, eq=False)
class BurstQueue:
    """Queue that an arriving packet finds where bursts meet by chance.

    Parameters
    ----------
    packet : float
        In bytes.
    chances : ndarray, shape (lengths,)
        Probability that more than 0, 1, 2, ... packets wait.
    """

    packet: float
    chances: np.ndarray[Any, Any]

    @property
    def mean(self) -> float:
        """Mean queue [bytes]."""
        return self.packet * float(self.chances.sum())

    @public()
    def quantile(self, share: float) -> float:
        """Return the least queue that a share of the packets does not exceed.

        Parameters
        ----------
        share : float
            Such as 0.99.

        Returns
        -------
        float
            In bytes.

        Raises
        ------
        InputError
            If the share is not between 0 and 1.
        """
        share = quantity(share, RATIO, "share")
        if not 0 < share < 1:
            raise InputError(f"share: {share:g} is no quantile; write for example 0.99")
        above = self.chances > 1 - share
        return self.packet * (len(above) if above.all() else int(above.argmin()))

    @public()
    def marked(self, kmin: float, kmax: float, pmax: float) -> float:
        """Return the share of the packets that a RED marks.

        Parameters
        ----------
        kmin, kmax : float
            In bytes.
        pmax : float

        Returns
        -------
        float
        """
        shares = -np.diff(self.chances, prepend=1.0, append=0.0)
        return float(shares @ red(self.packet * np.arange(len(shares)), kmin, kmax, pmax))


@public()
def burst_queue(
    flows: int,
    *,
    burst: int = 1,
    packet: Any = "1000B",
    rate: Any = "100Gbps",
    line_rate: Any = None,
    load: float = 0.95,
    counts_sending: bool = False,
) -> BurstQueue:
    """Compute the queue that bursts alone make: equal flows that load a link without overloading it.

    Each flow sends bursts of equal packets back to back at its line rate and then waits as long as its share of the
    link asks; the phases are independent and uniform. Switches mark such a queue if Kmin is below it.

    Parameters
    ----------
    flows : int
        Each from a NIC of its own.
    burst : int
        Packets of a burst; 1 is N*D/D/1. A period has at most 2048 packets of all flows.
    packet : quantity
        With headers [bytes].
    rate : quantity
        Of the link [bytes/s].
    line_rate : quantity, optional
        Of the NICs [bytes/s]; the link's by default, ``math.inf`` for bursts that come at once. Of slower NICs the
        queue is shorter: it is computed for the link's rate, as an upper bound.
    load : float
        Share of the link that all flows use, above 0 and at most 1.
    counts_sending : bool
        Whether the queue includes the packet that is being sent, as a marking's.

    Returns
    -------
    BurstQueue

    Raises
    ------
    InputError
        If a value cannot be read, or is out of range.

    Notes
    -----
    With d = C/R, a flow's packet k finds what the others have sent in some time u before it, less u, plus k of its own.
    The last u at which that is still above x is Benes' sum: over m, others sent m = x - k + u packets in u > k d, and
    the server was idle before. It is idle only where all are silent, since d <= 1; n flows that began within u have
    then sent min(1 + floor(age/d), B) packets each, at uniform ages, and the N - 1 - n others, in the rest of the
    period D, leave it idle with the ballot theorem's 1 - (N-1-n)B/(D-u). For d = 1 and d = 0 the means are those of the
    work of N - 1 bursts that come at once, with (B-1)/2 more at d = 0.

    Packets over one hop agree. At the third of three hops of equal rate, where a half of eight flows is new at each,
    they found less, since an earlier hop spaces what leaves it: 0.72 to 0.83 of this mean at loads of 0.6 and 0.9, and
    for bursts of 4 a p99 one to three packets lower. So this is an upper bound there, but not where bursts of others
    cross a faster link before.
    """
    flows, burst = whole(flows, 1, _MOST_PACKETS, "flows"), whole(burst, 1, _MOST_PACKETS, "burst")
    if flows * burst > _MOST_PACKETS:
        raise InputError(
            f"burst: {flows} flows with bursts of {burst} have {flows * burst} packets in a period; write "
            f"{_MOST_PACKETS // flows} or less"
        )
    load = quantity(load, RATIO, "load")
    _checked(flows, load)
    if load < _LEAST_LOAD:
        raise InputError(f"load: of {load:g} there is next to no queue; write {_LEAST_LOAD:g} or more")
    size, link = quantity(packet, SIZE, "packet"), quantity(rate, RATE, "rate")
    given = rate if line_rate is None else line_rate
    line = math.inf if given == math.inf else quantity(given, RATE, "line_rate")
    if not (0 < size < math.inf and 0 < link < math.inf and line > 0):
        raise InputError("packet, rate, line_rate: give them above 0, for example 1086B and 100Gbps")
    more = _found(flows, burst, min(link / line, 1.0), float(load))
    more = more if counts_sending else more[1:]
    return BurstQueue(float(size), more[: int((more > _LEAST_CHANCE).sum())])


@functools.lru_cache(maxsize=64)
def _found(flows: int, burst: int, spacing: float, load: float) -> np.ndarray[Any, Any]:
    """P(V > x) for x = 0, 1, ..., V being the work that a packet of a burst finds."""
    from scipy.special import gammaln, xlogy  # scipy.stats would take most of a second

    others = flows - 1
    period, most = flows * burst / load, others * burst
    last = math.ceil(period) - 1
    # Row u, column m: others sent m packets in the time u before now, and the server was idle at its beginning.
    crossings = np.zeros((last + 1, most + 1))
    numbers, points = np.arange(flows), 1 << most.bit_length()
    ways = gammaln(flows) - gammaln(numbers + 1) - gammaln(flows - numbers)
    before = spacing * np.arange(burst)  # ages at which a flow has sent one packet more
    for u in range(1, last + 1):
        sent = np.append(0.0, np.diff(np.append(np.clip(before, 0.0, u), u)) / u)
        idle = np.maximum(1 - (others - numbers) * burst / (period - u), 0.0)
        share = u / period
        weights = np.exp(ways + xlogy(numbers, share) + xlogy(others - numbers, 1 - share)) * idle
        (likely,) = np.nonzero(weights > 1e-4 * _LEAST_CHANCE)
        transform, total = np.fft.rfft(sent, points), 0.0
        for n in range(likely[-1], likely[0] - 1, -1) if len(likely) else ():
            total = total * transform + weights[n]
        if len(likely):
            crossings[u] = np.fft.irfft(total * transform ** likely[0], points)[: most + 1]
    found = np.zeros(most + burst)
    own = np.arange(burst)
    first = np.minimum(np.floor(spacing * own + _TIE).astype(int) + 1, last + 1)
    for ahead in range(1 - burst, most + 1):  # packets by which others sent more than u
        diagonal = crossings.diagonal(ahead)
        since = np.zeros(last + 2)
        since[max(-ahead, 0) : max(-ahead, 0) + len(diagonal)] = diagonal
        at = ahead + own
        np.add.at(found, at[at >= 0], since[::-1].cumsum()[::-1][first][at >= 0] / burst)
    return np.clip(found, 0.0, 1.0)


def _checked(sources: int, load: float) -> tuple[int, float]:
    """Sources and the period that goes with the load."""
    if isinstance(sources, bool) or not isinstance(sources, (int, np.integer)) or sources < 1:
        raise InputError(f"sources: {sources!r}; give a whole number of at least 1")
    if not 0 < load <= 1:
        raise InputError(f"load: {load:g}; give one above 0 and at most 1: beyond, the queue grows for ever")
    return int(sources), sources / load
