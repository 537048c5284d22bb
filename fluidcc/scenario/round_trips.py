"""Times without queueing: round trips, as the schemes that are configured with one count them, and whole flows."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import TYPE_CHECKING, Any

from fluidcc.scenario.model import Flow, Scenario, base_rtt
from fluidcc.units import is_concrete

if TYPE_CHECKING:
    import numpy as np


def hop_rates(scenario: Scenario, flow: Flow) -> list[Any]:
    """Rates of the sender's NIC, of every link of a flow's path, and of the receiver's access link [bytes/s]."""
    last = scenario.links[flow.path[-1]].target
    if flow.target and last:
        beyond = flow.target != last
    else:
        beyond = not is_concrete(flow.egress_delay) or flow.egress_delay > 0
    return [flow.line_rate, *(scenario.links[i].rate for i in flow.path), *([flow.line_rate] if beyond else [])]


def likeness(scenario: Scenario) -> Callable[[Flow], Any]:
    """Make the key that flows share whose packets cross equal rates and delays: in place, start and size they differ.

    Of a fabric's thousands of paths only a few are unlike; what is worked out of a path need be so once for each.

    Parameters
    ----------
    scenario : Scenario
        Resolved; values may be traced.

    Returns
    -------
    callable
        ``key(flow)``, hashable.
    """
    kinds: dict[Any, int] = {}
    kind = [kinds.setdefault((_hashed(link.rate), _hashed(link.delay)), len(kinds)) for link in scenario.links]
    targets = [link.target for link in scenario.links]
    paths: dict[tuple[int, ...], tuple[int, ...]] = {}

    def key(flow: Flow) -> Any:
        path = paths.get(flow.path)
        if path is None:
            path = paths[flow.path] = tuple(kind[i] for i in flow.path)
        last = targets[flow.path[-1]]
        ends = bool(flow.target), bool(last), flow.target == last
        delays = _hashed(flow.access_delay), _hashed(flow.egress_delay)
        sender = _hashed(flow.line_rate), _hashed(flow.initial_rate), _hashed(flow.traffic_class)
        return path, ends, delays, sender, id(flow.scheme)

    return key


def _hashed(value: Any) -> Any:
    """A number, or which one it is if it is traced."""
    return value if value is None or is_concrete(value) else id(value)


def switches(scenario: Scenario, flow: Flow) -> int:
    """Switches on a flow's path: each of its packets is stored once in its NIC, and then once in each."""
    return len(hop_rates(scenario, flow)) - 1


def propagation(scenario: Scenario, flow: Flow) -> Any:
    """Round trip [s] without serialisation, or the fixed delay that a flow's scheme takes in its place."""
    fixed = flow.scheme.feedback_delay
    return base_rtt(scenario, flow) if fixed is None else fixed


def serialisation_delays(scenario: Scenario, flow: Flow) -> list[Any]:
    """Time [s] that one data packet takes onto each link that it crosses, the sender's first."""
    return [scenario.wire_packet_of(flow) / rate for rate in hop_rates(scenario, flow)]


def ack_delay(scenario: Scenario, flow: Flow) -> Any:
    """Time [s] that one ACK takes onto all links of its way back, which are as fast as those there."""
    size = scenario.ack_bytes + flow.scheme.int_bytes
    return sum(size / rate for rate in hop_rates(scenario, flow))


def base_rtt_with_serialisation(scenario: Scenario, flow: Flow) -> Any:
    """Round trip [s] of a data packet and its ACK through empty queues: propagation, and serialisation at every hop."""
    return propagation(scenario, flow) + serialisation_rtt(scenario, flow)


def serialisation_rtt(scenario: Scenario, flow: Flow) -> Any:
    """Compute the part of a round trip [s] in which a data packet and its ACK are put onto their links."""
    return sum(serialisation_delays(scenario, flow)) + ack_delay(scenario, flow)


def payload_base_rtt(scenario: Scenario, flow: Flow) -> Any:
    """Round trip [s] as the HPCC authors' simulator counts it: a packet's payload alone is stored, and no ACK."""
    payload = sum(scenario.packet_size / rate for rate in hop_rates(scenario, flow))
    return propagation(scenario, flow) + payload


def slowest_rate(scenario: Scenario, flow: Flow) -> Any:
    """Least rate [bytes/s] of a flow's NIC and links; may be traced."""
    return reduce(smaller, hop_rates(scenario, flow))


def largest_base_rtt(scenario: Scenario, rule: Callable[[Scenario, Flow], Any] = base_rtt_with_serialisation) -> Any:
    """Largest round trip [s] of a scenario's flows, HPCC's T (HPCC 3.2: one for all flows).

    Parameters
    ----------
    scenario : Scenario
        Resolved; values may be traced.
    rule : callable
        ``rule(scenario, flow) -> seconds``: `base_rtt_with_serialisation` or `payload_base_rtt`.
    """
    return reduce(larger, _distinct(scenario, rule))


def least_bdp(scenario: Scenario) -> Any:
    """Least bandwidth-delay product [bytes] of a scenario's paths, each by its slowest link."""
    found = _distinct(scenario, lambda s, flow: slowest_rate(s, flow) * base_rtt_with_serialisation(s, flow))
    return reduce(smaller, found)


def _distinct(scenario: Scenario, rule: Callable[[Scenario, Flow], Any]) -> list[Any]:
    """A rule's value of each path; flows on paths that are alike are counted once: there may be thousands."""
    key = likeness(scenario)
    found: dict[Any, Any] = {}
    for flow in scenario.flows:
        mine = key(flow)
        if mine not in found:
            found[mine] = rule(scenario, flow)
    return list(found.values())


def larger(a: Any, b: Any) -> Any:
    """The larger of two values, of which either may be traced."""
    return _pick("maximum", a, b)


def smaller(a: Any, b: Any) -> Any:
    """The smaller of two values, of which either may be traced."""
    return _pick("minimum", a, b)


def _pick(name: str, a: Any, b: Any) -> Any:
    if is_concrete(a) and is_concrete(b):
        return max(a, b) if name == "maximum" else min(a, b)
    import jax.numpy as jnp  # only here: the packet engine needs no JAX

    return getattr(jnp, name)(a, b)


# -- a flow in an idle network: packets stored and forwarded, the last one behind a train of full ones -----


def train(scenario: Scenario, flow: Flow, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Time from the start until the last byte has arrived, and until its ACK has, of flows on one path.

    The train of full packets is as long as the slowest link makes it, and the last, shorter one goes behind it from hop
    to hop.

    Parameters
    ----------
    scenario : Scenario
        Resolved, of plain numbers.
    flow : Flow
        One of the scenario's; its size does not matter.
    sizes : ndarray
        Payloads [bytes].

    Returns
    -------
    received, answered : ndarray
        [s], with the path's delays, not a feedback delay of the scheme.
    """
    import numpy as np  # only here: a refused scenario needs none

    rates = np.array(hop_rates(scenario, flow), float)
    payload, packet = float(scenario.packet_size), float(scenario.wire_packet_of(flow))
    full = np.maximum(np.ceil(sizes / payload) - 1, 0)  # packets before the last
    last = sizes - full * payload + packet - payload
    fronts = np.cumsum(packet / rates)  # when the first has left each hop
    slowest = np.minimum.accumulate(rates)
    before, left = np.zeros_like(sizes), np.zeros_like(sizes)  # when the last full packet has left a hop, and the last
    for front, slow, rate in zip(fronts, slowest, rates, strict=True):
        before = np.where(full > 0, front + (full - 1) * packet / slow, 0.0)
        left = np.maximum(left, before) + last / rate
    there = float(base_rtt(scenario, flow))
    received = left + there / 2
    ack = float(scenario.ack_bytes) + float(flow.scheme.int_bytes)
    for rate in rates[::-1]:  # a short last packet's ACK may wait for the one before it
        before = np.where(full > 0, before + ack / rate, 0.0)
        left = np.maximum(left, before) + ack / rate
    return received, left + there
