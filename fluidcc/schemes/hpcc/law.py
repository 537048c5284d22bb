"""HPCC's law: Algorithm 1 of Li et al., SIGCOMM 2019, for the ACKs of a step, with one register and no mechanisms.

Between ACKs of a step nothing is distinguished: U follows the telemetry as line 9 does for many ACKs in T, and W
follows U after every step (lines 12-20). W^c and incStage change when the first byte sent with the present W^c is
acknowledged (lines 21-27). The parts are functions of their own: packets take the formulas, and the fluid has other
registers, forms and mechanisms.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as xp

from fluidcc.contract.signals import Progress

NEEDS = frozenset({"telemetry"})
ONLY = {"form": "window", "registers": "one", "multiq": "off", "vai": False, "sampling": None, "int_format": "exact"}
SWITCHES = ("by_ack", "by_rtt", "by_arrivals", "simulates", "counts_link", "counts_spare")
LEAST_U = 1e-3  # windows are divided by U


class State(NamedTuple):
    """State of a flow."""

    rate: Any  # R = W/T [bytes/s]
    window: Any  # W [bytes]
    reference_window: Any  # W^c [bytes]
    utilisation: Any  # U
    stage: Any  # incStage
    last_update: Any  # lastUpdateSeq [bytes]; -1 before the first ACK


def start(parameters: Any, initial_rate: Any) -> State:
    """State before the first ACK: W = W^c = W_init and U = 1; W_init/T is the line rate unless given."""
    window = xp.minimum(parameters.initial_window, initial_rate * parameters.base_rtt)
    return State(initial_rate, window, window, 1.0, 0.0, -1.0)


def rate(state: Any) -> Any:
    """Pacing rate R [bytes/s]."""
    return state.rate


def window(parameters: Any, state: Any) -> Any:
    """Limit W of the bytes in flight."""
    return state.window


def largest_window(parameters: Any) -> Any:
    """W_init, which W never exceeds [bytes]."""
    return parameters.initial_window


def link_utilisation(parameters: Any, queue: Any, rate: Any, capacity: Any) -> Any:
    """Normalised inflight bytes u of a link (2), (3): q/(B T) + txRate/B (line 5)."""
    u = rate / capacity
    return u + queue / (capacity * parameters.base_rtt) if parameters.u_queue else u


def class_utilisation(parameters: Any, queue: Any, own: Any, output: Any, capacity: Any, share: Any) -> Any:
    """U of a class that shares a link (HPCC++ MultiQ): its rate and backlog over what it may count on.

    ``class`` is "HPCC applied for MultiQ w/o any changes": the whole link. The slides' three branches lock an idle
    link's only class at eta of its guaranteed rate if its flows add less than 1 - eta of it. ``spare`` is ours: what it
    may count on is its guaranteed rate, or its present rate and all that nobody uses, whichever is more.
    """
    p, guaranteed = parameters, share * capacity
    spare = xp.maximum(guaranteed, own + xp.maximum(capacity - output, 0.0))
    counted = capacity if p.counts_link else spare if p.counts_spare else guaranteed
    u = queue / (counted * p.base_rtt) + own / counted
    busy = queue / (xp.maximum(own, guaranteed) * p.base_rtt) + 1.0
    above = xp.where(queue > p.min_backlog, busy, own / ((own + capacity) / 2))
    return u if p.counts_link or p.counts_spare else xp.where(own <= guaranteed, u, above)


def on_hop(parameters: Any, queue: Any, output: Any, arriving: Any, capacity: Any) -> Any:
    """Return u of a link, by what it sends or what arrives; a step reacts to the largest of a path."""
    return link_utilisation(parameters, queue, arriving if parameters.by_arrivals else output, capacity)


def on_class_hop(parameters: Any, queue: Any, output: Any, arriving: Any, capacity: Any) -> Any:
    """Return U of a class that has a link to itself."""
    return class_utilisation(parameters, queue, output, output, capacity, parameters.share)


def averaged(parameters: Any, utilisation: Any, observed: Any, seconds: Any) -> Any:
    """Return U after what was observed in some time, of a base RTT at most (lines 8, 9)."""
    weight = xp.minimum(seconds, parameters.base_rtt) / parameters.base_rtt
    return (1.0 - weight) * utilisation + weight * observed


def adds(parameters: Any, utilisation: Any, stage: Any) -> Any:
    """Check whether W only adds (lines 15-17): U is below eta, and has been for less than maxStage updates."""
    return (utilisation < parameters.eta) & (stage < parameters.max_stage)


def next_stage(parameters: Any, utilisation: Any, stage: Any) -> Any:
    """Return incStage after an update of W^c (lines 14, 18)."""
    return xp.where(adds(parameters, utilisation, stage), stage + 1, 0)


def reacted(parameters: Any, reference: Any, utilisation: Any, stage: Any, increase: Any) -> Any:
    """Return what lines 12-20 make of a W^c, of a register, or of the simulator's rate, by (4)."""
    multiplied = reference / (xp.maximum(utilisation, LEAST_U) / parameters.eta)
    return xp.where(adds(parameters, utilisation, stage), reference, multiplied) + increase


def proposed(parameters: Any, state: Any, progress: Progress, increase: Any) -> Any:
    """Lines 12-20: the window that the ACKs of a step make of W^c, with an additive ``increase`` [bytes].

    ``reaction="per-ack"`` sets W^c = W at every ACK: each multiplies W by eta/U and adds W_AI. With n ACKs in a step
    that is W (eta/U)^n + n W_AI; below eta, where one ACK in maxStage + 1 multiplies, the share of such ACKs.
    """
    p, s = parameters, state
    if p.by_ack:
        ratio = p.eta / xp.maximum(s.utilisation, LEAST_U)
        acks = xp.where(s.last_update < 0, 0.0, progress.newly / progress.wire_packet)
        share = xp.where(s.utilisation < p.eta, 1.0 / (p.max_stage + 1.0), 1.0)
        return s.reference_window * ratio ** (acks * share) + acks * increase
    return reacted(p, s.reference_window, s.utilisation, s.stage, increase)


def least_window(parameters: Any, progress: Progress) -> Any:
    """One packet, unless W_init is less; the simulator has a least rate [bytes]."""
    p = parameters
    return p.min_rate * p.base_rtt if p.simulates else xp.minimum(progress.packet, p.initial_window)


def after(
    parameters: Any, state: Any, progress: Progress, window: Any, reference: Any, moves: Any, update: Any, last: Any
) -> State:
    """State after a step whose ACKs propose W and W^c; W ``moves``, W^c takes an ``update``, ``last`` is recorded."""
    p, s = parameters, state
    # The simulator's windows follow from its rates, and one packet may always be in flight.
    kept = xp.minimum(s.window, s.rate * p.base_rtt) if p.simulates else s.window
    window = xp.where(moves, window, kept)
    allowed = xp.maximum(window, xp.minimum(progress.packet, p.initial_window)) if p.simulates else window
    stage = s.stage if p.by_ack else xp.where(update, next_stage(p, s.utilisation, s.stage), s.stage)
    return State(
        rate=xp.minimum(window / p.base_rtt, progress.line_rate),  # line 27
        window=allowed,
        reference_window=xp.where(update, reference, s.reference_window),  # lines 15, 19
        utilisation=s.utilisation,
        stage=stage,
        last_update=xp.where(last, progress.sent, s.last_update),  # line 24
    )


def first_ack(state: Any, progress: Progress) -> Any:
    """Check whether the first ACK has come: it records L, and lastUpdateSeq = snd_nxt."""
    return (state.last_update < 0) & (progress.acked > 0)


def updates(state: Any, progress: Progress) -> Any:
    """Check whether what was sent with the present W^c is acknowledged (line 22)."""
    return (state.last_update >= 0) & (progress.acked > state.last_update)


def on_step(parameters: Any, state: Any, progress: Progress, observed: Any) -> State:
    """Line 9, and lines 11-27."""
    p, s = parameters, state
    runs = s.last_update >= 0
    utilisation = xp.where(runs, averaged(p, s.utilisation, observed, progress.dt), s.utilisation)
    s = State(s.rate, s.window, s.reference_window, utilisation, s.stage, s.last_update)
    new = proposed(p, s, progress, p.w_ai)
    new = xp.minimum(xp.maximum(new, least_window(p, progress)), p.initial_window)
    update = runs if p.by_ack else updates(s, progress)
    return after(p, s, progress, new, new, update if p.by_rtt else runs, update, first_ack(s, progress) | update)
