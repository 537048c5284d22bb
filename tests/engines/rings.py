"""Flows one after the other, and how long they take where nobody else sends; rings are `benchmarks.order`'s."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

import fluidcc as fc
from fluidcc.scenario.model import Scenario, resolve


def chain(scheme: str, waits: Sequence[tuple[tuple[int, ...], str, Any]], size: str = "100KB") -> Scenario:
    """Flows of one size from one host each over a link, the first at 0; what the others wait for is given.

    A flow that waits for "sent" is of the same host as the first that it waits for.
    """
    base = fc.incast(1 + len(waits), scheme=scheme, size=size, marking=None)
    flows = [base.flows[0]]
    for flow, (after, what, pause) in zip(base.flows[1:], waits, strict=True):
        source = flows[after[0]].source if what == "sent" else flow.source
        flows.append(dataclasses.replace(flow, after=after, after_what=what, start=pause, source=source))
    return resolve(dataclasses.replace(base, flows=tuple(flows)))


def closed_form(scenario: Scenario) -> tuple[float, float, float]:
    """Of the first flow alone at its line rate: time to send it, from there to receipt, and the ACK's way [s]."""
    flow = scenario.flows[0]
    packet = scenario.wire_packet_of(flow)
    links = [scenario.links[i] for i in flow.path]
    assert {link.rate for link in links} == {flow.line_rate}
    one_way = flow.access_delay + sum(link.delay for link in links) + flow.egress_delay
    ack = (scenario.ack_bytes + flow.scheme.int_bytes) * (1 + len(links)) / flow.line_rate
    wire = flow.size / scenario.packet_size * packet / flow.line_rate
    return wire, one_way + len(links) * packet / flow.line_rate, one_way + ack


def ends(trace: fc.Trace) -> np.ndarray:
    """When each flow's last ACK came [s]."""
    return np.array(trace.summary["began_s"], float) + np.array(trace.summary["fct_s"], float)
