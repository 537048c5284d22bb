"""Duration of a flow in an idle network: packets stored and forwarded, the last one behind a train of full ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fluidcc.scenario.model import Flow, Scenario, base_rtt
from fluidcc.scenario.round_trips import hop_rates

if TYPE_CHECKING:
    import numpy as np


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
