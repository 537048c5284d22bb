"""Limits of the hybrid: marks of packets that meet hold the flows down, or a buffer is full.

With x = p_coll / p*, the marking that packets meet at a nearly full link over the one that holds a flow at its share,
packets fall below the share from about x = 1 on, and what they do then is decided by how their phases meet. An
independent program found 88 of 92 settings with x of 0.7 and more wrong by over a percent in a hybrid that did not mark
them. This one still gives four senders over 0.99 of the link at an x of about 0.6, where packets use 0.97 to 0.98.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter

import numpy as np

from fluidcc.contract.bind import binder
from fluidcc.contract.registry import equilibrium_of
from fluidcc.engines.hybrid.layout import LOADS
from fluidcc.engines.hybrid.packet_scale import marks, meetings
from fluidcc.scenario.model import Scenario

MOST = 0.5  # of x
_NEARLY_FULL = 0.99
_ANSWERED = 8  # packets by an ACK


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
