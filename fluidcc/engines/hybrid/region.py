"""Limits of the hybrid: where packets that meet, full buffers, shared hosts or too many events rule it out.

With x = p_coll / p*, the marking that packets meet at a nearly full link over the one that holds a flow at its share,
packets fall below the share from about x = 1 on, and what they do then is decided by how their phases meet. An
independent program found 88 of 92 settings with x of 0.7 and more wrong by over a percent in a hybrid that did not mark
them. This one still gives four senders over 0.99 of the link at an x of about 0.6, where packets use 0.97 to 0.98.

Bounds on its numbers, its least period and a run's events, are in addition to `fluidcc.engines.common.bounds`.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterator

import numpy as np

from fluidcc.contract.bind import binder
from fluidcc.contract.registry import equilibrium_of, hybrid_of
from fluidcc.engines.hybrid.layout import LOADS
from fluidcc.engines.hybrid.packet_scale import marks, meetings
from fluidcc.errors import InputError
from fluidcc.scenario.model import Flow, Scenario
from fluidcc.scenario.parameters import specs
from fluidcc.units import SIZE, TIME, show

MOST = 0.5  # of x
_NEARLY_FULL = 0.99
_ANSWERED = 8  # packets by an ACK
MOST_FLOWS = 1 << 16
MOST_EVENTS = 1e10  # more than an hour's
_LEAST_TIME = 1e-12  # s; times within it are the same


class BeyondBufferError(Exception):
    """The queue is longer than the buffer: from there on PAUSE or loss decides, which the hybrid does not have."""


def meeting_share(scenario: Scenario) -> float:
    """Return x, the largest over the links that mark flows of a scheme whose marking at a rate is known; 0 of none.

    Parameters
    ----------
    scenario : Scenario
        Resolved.
    """
    senders: Counter[int] = Counter()
    for flow in scenario.flows:
        senders.update(dict.fromkeys(flow.path, float(flow.multiplicity)))
    bind, worst = binder(scenario), 0.0
    seen: set[tuple[int, int]] = set()
    for flow in scenario.flows:
        side = equilibrium_of(flow.scheme)
        if side is None or side.marking_at is None:
            continue
        for i in flow.path:
            link, key = scenario.links[i], (i, id(flow.scheme))
            share = link.rate / senders[i]
            if link.marking is None or key in seen or senders[i] < 2 or share >= flow.line_rate:
                continue
            seen.add(key)
            packet, spacing = float(scenario.wire_packet_of(flow)), float(link.rate / flow.line_rate)
            met = meetings(round(senders[i]), round(scenario.burst), float(scenario.jitter), spacing)
            meeting = marks(link.marking, met, packet).meeting
            found = float(np.interp(_NEARLY_FULL * LOADS, np.arange(LOADS + 1), meeting))
            needed = float(side.marking_at(bind(flow), share, flow.line_rate, packet))
            if found > 0.0:
                worst = max(worst, found / needed if needed > 0.0 else np.inf)
    return worst


def outside(scenario: Scenario) -> bool:
    """Check whether packets are to be used instead of the hybrid; for a resolved scenario."""
    return meeting_share(scenario) >= MOST


def by_packets(scenario: Scenario) -> Scenario:
    """Return a resolved scenario of the hybrid as packets run it in its place: an ACK answers eight packets.

    None of its schemes looks at ACKs, so queues and rates stay as they are but for chance, and packets take a fifth
    less time. A scenario stays whole where ACKs share a link with data, end a flow, tell of losses, or come rarely
    already.
    """
    ways = {(link.source, link.target) for link in scenario.links}
    hosts = {flow.source for flow in scenario.flows} & {flow.target for flow in scenario.flows} - {None}
    shared = hosts or any(one != other and (other, one) in ways for one, other in ways)
    ends = any(math.isfinite(float(flow.size)) for flow in scenario.flows)
    if shared or ends or scenario.loss_recovery != "none" or float(scenario.ack_interval) != 1.0:
        return scenario
    return dataclasses.replace(scenario, ack_interval=float(_ANSWERED))


def check_periods(scenario: Scenario) -> None:
    """Refuse times of schemes that the engine's clock cannot tell from 0.

    Raises
    ------
    InputError
    """
    for i, flow in _first_with_each_scheme(scenario):
        for name, spec in specs(flow.scheme).items():
            value = getattr(flow.scheme, name)
            if spec.dimension == TIME and value is not None and 0 < value < _LEAST_TIME:
                raise InputError(
                    f"flow {i} {name}: {value:.4g}s is less than a picosecond, within which the hybrid's times are the "
                    "same; write more, or engine='fluid'"
                )


def check_events(scenario: Scenario, until: float, most: float = MOST_EVENTS) -> None:
    """Refuse a run of more events than anyone waits for.

    In each period of a flow, be it a time or a number of bytes, there is an event: the period's end, or what restarts
    it.

    Parameters
    ----------
    scenario : Scenario
    until : float
        Horizon [s].
    most : float
        Events that are waited for.

    Raises
    ------
    InputError
        Names the parameter that causes them.
    """
    senders: defaultdict[int, float] = defaultdict(float)  # of each link
    for flow in scenario.flows:
        for link in flow.path:
            senders[link] += flow.multiplicity
    counts: defaultdict[str, float] = defaultdict(float)
    for i, flow in enumerate(scenario.flows):
        names = hybrid_of(flow.scheme).PACED_BY
        if not names:
            continue
        share = min(flow.line_rate, *(scenario.links[link].rate / senders[link] for link in flow.path))
        span = min(max(until - flow.start, 0.0), flow.size / share)
        for name in names:
            value, dimension = getattr(flow.scheme, name), specs(flow.scheme)[name].dimension
            if value is None:
                continue
            counts[name] += flow.multiplicity * span * (share if dimension == SIZE else 1.0) / value
            if counts[name] > most:
                raise InputError(
                    f"flow {i} {name}: {show(value, dimension)} makes more events by {show(until, TIME)} than the "
                    f"{most:.0e} that are waited for; write more, or a shorter until"
                )


def _first_with_each_scheme(scenario: Scenario) -> Iterator[tuple[int, Flow]]:
    """Yield the first flow, and its index, with each set of parameters, which flows share."""
    seen: set[int] = set()
    for i, flow in enumerate(scenario.flows):
        if id(flow.scheme) not in seen:
            seen.add(id(flow.scheme))
            yield i, flow


def refuse_sharing(scenario: Scenario) -> None:
    """Refuse flows of one host that may send at once: each has a NIC of its own.

    Raises
    ------
    InputError
        If of two flows of a host neither waits for the other, be it through further ones.
    """
    flows = scenario.flows
    hosts: dict[str, list[int]] = {}
    for f, flow in enumerate(flows):
        if flow.source:
            hosts.setdefault(flow.source, []).append(f)
    if all(len(sent) == 1 for sent in hosts.values()):
        return
    before = _before([flow.after for flow in flows])
    for host, sent in hosts.items():
        in_turn = sorted(sent, key=lambda f: before[f].bit_count())  # a follower waits for more flows
        for first, then in itertools.pairwise(in_turn):
            if not before[then] >> first & 1:
                first, then = sorted((first, then))
                raise InputError(
                    f"flow {then} source: host {host!r} sends flow {first} too, and the hybrid gives each flow a NIC "
                    "of its own; name another host, let one wait for the other (after), or write engine='packet'"
                )


def _before(after: list[tuple[int, ...]]) -> list[int]:
    """Return, as bits for each flow, the flows that it waits for, directly or through others."""
    found = [0] * len(after)
    left = [len(own) for own in after]
    followers: list[list[int]] = [[] for _ in after]
    for f, own in enumerate(after):
        for place in own:
            followers[place].append(f)
    free = [f for f, count in enumerate(left) if count == 0]
    for f in free:  # grows meanwhile
        for each in followers[f]:
            found[each] |= found[f] | 1 << f
            left[each] -= 1
            if left[each] == 0:
                free.append(each)
    return found
