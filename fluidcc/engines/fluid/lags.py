"""Lags with which each flow observes each queue on its path, without the time spent in queues."""

from __future__ import annotations

import dataclasses
from typing import Any

from fluidcc.contract.registry import fluid_of
from fluidcc.scenario.model import Flow, Scenario
from fluidcc.scenario.round_trips import ack_delay, serialisation_delays
from fluidcc.units import is_concrete


@dataclasses.dataclass(frozen=True)
class Lags:
    """Propagation lags of one flow, hop by hop, or one lag for all."""

    marking: tuple[Any, ...]
    own: Any
    arrival: tuple[Any, ...]
    fixed: bool


def lags_of(scenario: Scenario, flow: Flow) -> Lags:
    """Lags of one flow of a resolved scenario, whose values may be traced."""
    fixed = flow.scheme.feedback_delay
    hops = len(flow.path)
    windowed = "inflight" in needs(flow.scheme)
    # Windows are set for round trips that include storing the packet at every hop, and delays are measured over these.
    whole = windowed or (fixed is None and "delay" in needs(flow.scheme))
    stored, ack = (
        (serialisation_delays(scenario, flow), ack_delay(scenario, flow)) if whole else ([0.0] * (hops + 1), 0.0)
    )
    if fixed is not None:
        lag = fixed + (sum(stored) + ack)
        return Lags((lag,) * hops, lag, (0.0,) * hops, not windowed)
    delays = [scenario.links[i].delay for i in flow.path]
    arrival, marking = [], []
    for hop in range(hops):
        arrival.append(flow.access_delay + sum(delays[:hop]) + sum(stored[: hop + 1]))
    total = arrival[-1] + delays[-1] + flow.egress_delay + sum(stored[hops:])
    back = total - sum(stored) + ack + flow.scheme.feedback_pause
    for hop in range(hops):
        marking.append((total - arrival[hop]) + back)
    return Lags(tuple(marking), total + back, tuple(arrival), False)


def view_key(flow: Flow, lags: Lags) -> Any:
    """Return a key, equal for flows that see the same marks: same path, and lags equal or of the same traced parts."""
    if all(is_concrete(lag) for lag in lags.marking):
        return flow.path, flow.traffic_class, lags.fixed, lags.marking, lags.own if is_concrete(lags.own) else None
    scheme = flow.scheme
    parts = (flow.access_delay, flow.egress_delay, scheme.feedback_delay, scheme.feedback_pause)
    if needs(scheme) & {"inflight", "delay"}:
        parts += (flow.line_rate, scheme.int_bytes)
    return flow.path, flow.traffic_class, lags.fixed, tuple(map(identity, parts))


def identity(value: Any) -> Any:
    """Return a key, equal for values known to be equal: plain numbers that are, or one traced object."""
    return value if value is None or is_concrete(value) else id(value)


def needs(scheme: Any) -> frozenset[str]:
    """Return what the network must keep track of for a scheme (`fluidcc.contract.signals`)."""
    return fluid_of(scheme).NEEDS
