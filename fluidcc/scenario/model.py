"""Scenarios: links with their marking, flows with their paths, and the scheme each flow runs.

A `Scenario` is written once and read by every engine. All its parts are frozen dataclasses and JAX
pytrees; values may be given as text with units (``"40Gbps"``) until `resolve` makes SI floats of them.
"""

from __future__ import annotations

import dataclasses
import importlib
import math
import numbers
from typing import Any

from fluidcc.errors import InputError
from fluidcc.scenario import dependencies, display
from fluidcc.scenario.parameters import converted, parameter, register
from fluidcc.scenario.parameters import resolve as resolve_fields
from fluidcc.scenario.switches import PFC, RED, Failure, Storm, TrafficClass, in_bytes, resolve_marking
from fluidcc.surface import public
from fluidcc.units import COUNT, RATE, RATIO, SIZE, TIME, is_concrete, quantity, show


@register(meta=("name", "source", "target"))
class Link:
    """A switch's egress port and the wire behind it.

    ``source`` and ``target`` name the nodes at its ends. Without them, a link starts at a switch of its own that
    the path's previous link leads to, and the last link of a path leads to the receiving host.

    Parameters
    ----------
    rate : quantity
        Nominal rate [bytes/s].
    delay : quantity
        One-way propagation delay [s].
    marking : RED or None
        Of the queue before it; None: it marks nothing.
    name : str
        Its own; ``link 0``, ... if empty.
    source, target : str
        Names of the nodes at its ends.
    loss : quantity
        Probability that a packet is lost on the wire [1], in both directions unless the other one is a link too
        (packet engine).
    """

    rate: Any = parameter(RATE, "nominal rate", symbol="C", low=0, open_low=True)
    delay: Any = parameter(TIME, "one-way propagation delay", default="1us", low=0)
    marking: RED | None = None
    name: str = ""
    source: str = ""
    target: str = ""
    loss: Any = parameter(RATIO, "probability that a packet is lost on the wire", default=0.0, low=0, high=1)


@register(meta=("path", "name", "source", "target", "after", "after_what"))
class Flow:
    """A class of ``multiplicity`` identical flows over one path of contended links.

    The sender's own access link is uncontended: ``line_rate`` and ``access_delay`` describe it. ``source`` and
    ``target`` name the hosts: flows with the same source share its NIC. Without names each flow has hosts of its
    own, but flows that end on the same last link share their receiver if nothing lies beyond it. Those of a class are
    independent senders, each with a NIC of its own, whether the class's host has a name or not.

    Parameters
    ----------
    path : tuple of int
        Indices of the scenario's links, in the order in which packets cross them.
    scheme : scheme parameters
        What it runs, such as ``DCQCN()``.
    line_rate : quantity
        Rate of the sender's NIC [bytes/s].
    start : quantity
        When it starts to send [s]; if it waits for others, how long after the last of them has ended.
    size : quantity
        Payload to send [bytes]; unlimited if long-lived.
    multiplicity : quantity
        How many identical flows [count].
    initial_rate : quantity or None
        Rate at start [bytes/s]; None: the line rate.
    access_delay, egress_delay : quantity
        One-way delay from the sender to the first link's queue, and beyond the last link to the receiver [s].
    traffic_class : int
        Index of its egress queue.
    name : str
    source, target : str
        Names of the hosts.
    after : tuple of int
        Places, in the scenario, of flows that must have ended first.
    after_what : {"known", "receipt", "answer", "sent"}
        When these have ended: as the last byte arrives, as its ACK does, or whichever this flow's host comes to know:
        receipt of what it received, else the ACK. With ``sent`` those of its own host as they send their last byte, as
        the next message of a queue pair begins, and all others as that arrives.
    """

    path: tuple[int, ...]
    scheme: Any
    line_rate: Any = parameter(RATE, "rate of the sender's NIC", low=0, open_low=True)
    start: Any = parameter(TIME, "when it starts to send", default=0.0, low=0)
    size: Any = parameter(
        SIZE, "payload to send; unlimited if long-lived", unlimited=True, default=math.inf, low=0, open_low=True
    )
    multiplicity: Any = parameter(COUNT, "how many identical flows", default=1.0, symbol="N", low=0, open_low=True)
    initial_rate: Any = parameter(RATE, "rate at start; line: the line rate", default=None, low=0, none_word="line")
    access_delay: Any = parameter(TIME, "one-way delay, sender to the first link's queue", default="1us", low=0)
    egress_delay: Any = parameter(TIME, "one-way delay, beyond the last link to the receiver", default=0.0, low=0)
    traffic_class: Any = parameter(COUNT, "index of its egress queue", default=0.0, low=0, high=6, integer=True)
    name: str = ""
    source: str = ""
    target: str = ""
    after: tuple[int, ...] = ()
    after_what: str = dependencies.KNOWN


@register()
class Scenario:
    """Links, flows and packets; what only the packet engine reads comes last.

    Parameters
    ----------
    links : tuple of Link
    flows : tuple of Flow
        ``path`` indexes ``links`` in the order in which packets cross them.
    packet_size : float or str
        Payload of a packet [bytes].
    header_bytes : float or str
        Wire bytes that each packet adds to its payload [bytes].
    pfc : PFC or None
        Flow control of all switches; None: off.
    classes : tuple of TrafficClass
        Egress queues of every port; ``Flow.traffic_class`` indexes them.
    failures : tuple of Failure
    storms : tuple of Storm
    """

    links: tuple[Link, ...]
    flows: tuple[Flow, ...]
    packet_size: Any = parameter(SIZE, "payload of a packet", default="1000B", low=0, open_low=True)
    header_bytes: Any = parameter(SIZE, "header of a packet on the wire", default=0.0, low=0)
    buffer: Any = parameter(
        SIZE, "buffer that a switch's ports share", default=math.inf, low=0, open_low=True, unlimited=True
    )
    burst: Any = parameter(
        COUNT,
        "packets, or bytes, that a NIC sends back to back before it waits as long as its flow's rate asks (packet "
        "engine, hybrid)",
        default=1.0,
        source="NICs differ",
        low=1,
        integer=True,
    )
    jitter: Any = parameter(
        RATIO,
        "share by which a NIC's waits vary, evenly (packet engine, hybrid)",
        default=0.0,
        source="NICs differ",
        low=0,
        high=1,
    )
    ack_bytes: Any = parameter(SIZE, "an ACK on the wire, without INT", default="64B", low=0, open_low=True)
    ack_interval: Any = parameter(COUNT, "data packets that an ACK answers", default=1.0, low=1, integer=True)
    ack_queue: str = parameter(
        "choice",
        "queue of ACKs: that of their data, or the control packets' above all data",
        default="data",
        choices=("data", "control"),
    )
    start_policy: str = parameter(
        "choice",
        "start of a flow whose NIC has others: at line rate, or at its share",
        default="line",
        source="DCQCN 3.1",
        choices=("line", "share"),
    )
    window_unit: str = parameter("choice", "bytes that windows count", default="wire", choices=("wire", "payload"))
    timing: str = parameter(
        "choice",
        "times of transmission: exact, or as in the HPCC authors' simulator (whole ns rounded down, its NIC's timer)",
        default="exact",
        choices=("exact", "ns3"),
    )
    load_balancing: str = parameter(
        "choice",
        "what takes one of the shortest paths at random: a flow, by its hash; each packet; or each flowlet",
        default="flow",
        choices=("flow", "packet", "flowlet"),
    )
    flowlet_gap: Any = parameter(
        TIME,
        "pause of a flow behind which it takes another path",
        default="50us",
        source="CONGA 3.3: 500us; shorter for round trips of some 10us",
        low=0,
        open_low=True,
    )
    loss_recovery: str = parameter(
        "choice",
        "what is done about lost packets: nothing; hosts go back N, or send again selectively within one BDP (IRN); or "
        "switches trim data to its header, and hosts send again what that names",
        default="none",
        source="HPCC 5.3; IRN 3; UE 4.1",
        choices=("none", "gbn", "irn", "trimming"),
    )
    retransmission_timeout: Any = parameter(
        TIME,
        "time without news of the oldest packet under way until it is sent again",
        default="320us",
        symbol="RTO_high",
        source="IRN 4.1",
        low=0,
        open_low=True,
    )
    low_timeout: Any = parameter(
        TIME,
        "the same with few packets under way (IRN)",
        default="100us",
        symbol="RTO_low",
        source="IRN 4.1",
        low=0,
        open_low=True,
    )
    low_timeout_packets: Any = parameter(
        COUNT, "how many are few (IRN)", default=3.0, symbol="N", source="IRN 4.1", low=0, integer=True
    )
    nack_interval: Any = parameter(
        TIME,
        "when go-back-N's receiver reports a gap again that is still open; never: the timeout alone closes it",
        default=None,
        source="HPCC's simulator: 500us",
        low=0,
        open_low=True,
        none_word="never",
    )
    egress_alpha: Any = parameter(
        RATIO,
        "share of the free buffer that one queue without PFC may fill before it drops; auto: 1 with loss recovery or "
        "next to lossless classes, else all",
        default=None,
        source="HPCC 5.3",
        low=0,
        open_low=True,
        unlimited=True,
        none_word="auto",
    )
    trim_above: Any = parameter(
        SIZE,
        "queue of a class at a port beyond which data is trimmed, as where the buffer has no room; auto: what the port "
        "sends in the largest base RTT",
        default=None,
        source="UE 3.6.13.5",
        low=0,
        unlimited=True,
        none_word="auto",
    )
    pfc: PFC | None = None
    classes: tuple[TrafficClass, ...] = (TrafficClass(),)
    failures: tuple[Failure, ...] = ()
    storms: tuple[Storm, ...] = ()

    def __repr__(self) -> str:
        """Links and flows, those that are alike in one line, and what differs from the defaults."""
        return display.summary_of(self)

    def _repr_html_(self) -> str:
        return display.html_of(self)

    @property
    def wire_packet(self) -> Any:
        """Bytes of one packet on the wire, without what a scheme adds (`wire_packet_of`)."""
        return self.packet_size + self.header_bytes

    @public()
    def wire_packet_of(self, flow: Flow) -> Any:
        """Bytes of one of a flow's packets on the wire, with the telemetry that its scheme collects.

        Parameters
        ----------
        flow : Flow
            One of the scenario's.

        Returns
        -------
        float
        """
        return self.wire_packet + flow.scheme.int_bytes

    @public()
    def explore(self) -> Any:
        """Move the scheme's parameters and the marking by hand, in a notebook.

        Returns
        -------
        panel.viewable.Viewable
            Sliders, queue, rates, roots, chart and distribution, as ``fluidcc explore`` serves them.

        Raises
        ------
        InputError
            If Panel is not installed (``pip install 'fluidcc[explore]'``), or the flows run several parameter sets.
        """
        # By name: widgets stand above all else, and are loaded when one asks for them.
        return importlib.import_module("fluidcc.explorer.serve").explore(self)


_MOST_IN_BURST = 512  # packets; a larger number means bytes
_RESOLVED = "_resolved"  # an attribute of a scenario that has been resolved


def resolve(scenario: Scenario) -> Scenario:
    """Convert every quantity to SI floats and check what can be checked.

    Parameters
    ----------
    scenario : Scenario

    Returns
    -------
    Scenario
        The same scenario, all plain values floats; idempotent.

    Raises
    ------
    InputError
        If a value cannot be read or is out of range, a path names no link or one twice, kmin exceeds kmax,
        a flow would start faster than its NIC, or flows wait for each other.
    """
    if _RESOLVED in getattr(scenario, "__dict__", ()):
        return scenario
    if not isinstance(scenario, Scenario):
        raise InputError(f"scenario: expected a Scenario, not {type(scenario).__name__}; make one with fluidcc.incast")
    for name, kind in (("links", Link), ("flows", Flow), ("failures", Failure), ("storms", Storm)):
        _check_members(getattr(scenario, name), kind, name)
    if not scenario.links:
        raise InputError("scenario: it has no links; give at least one Link")
    if not scenario.flows:
        raise InputError("scenario: it has no flows; give at least one Flow")
    for kind, parts in (("link", scenario.links), ("flow", scenario.flows)):
        for i, part in enumerate(parts):
            _check_names(part, f"{kind} {i} ")
    links = tuple(_resolve_link(link, f"link {i} ") for i, link in enumerate(scenario.links))
    names = [link.name or f"link {i}" for i, link in enumerate(links)]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"link {names.index(twice)} name: {twice[:60]!r} names two links; give each its own")
    schemes: dict[int, Any] = {}  # flows share what they run
    known: dict[Any, Any] = {}
    flows = tuple(_resolve_flow(f, f"flow {i} ", len(links), schemes, known) for i, f in enumerate(scenario.flows))
    if any(flow.after for flow in flows):
        dependencies.in_order(flows)
    scenario = _resolve_burst(dataclasses.replace(scenario, links=links, flows=flows))
    scenario = _resolve_switches(scenario, names)
    object.__setattr__(scenario, _RESOLVED, True)  # what is made of it by `dataclasses.replace` is not
    return scenario


def _resolve_burst(scenario: Scenario) -> Scenario:
    """Return a scenario with resolved values, its burst in packets: of one in bytes as many as hold these."""
    given = scenario.burst
    if isinstance(given, str) and given.strip().endswith(("B", "b")):
        scenario = resolve_fields(dataclasses.replace(scenario, burst=1.0))
        packets = math.ceil(quantity(given, SIZE, "burst") / scenario.packet_size)
        scenario = dataclasses.replace(scenario, burst=packets)
    scenario = resolve_fields(scenario)
    if is_concrete(scenario.burst) and scenario.burst > _MOST_IN_BURST:
        raise InputError(
            f"burst: {scenario.burst:.15g} packets are more than {_MOST_IN_BURST}; write for example 16, or bytes: 64KB"
        )
    return scenario


def _check_members(given: Any, kind: type, name: str) -> None:
    """Refuse what is no tuple or list of some kind, such as the class instead of one of its objects."""
    if isinstance(given, (tuple, list)):
        given = next((each for each in given if not isinstance(each, kind)), None)
        if given is None:
            return
    raise InputError(
        f"{name}: expected a tuple of {kind.__name__}, not {repr(given)[:60]}; write ({kind.__name__}(..),)"
    )


def _check_names(part: Link | Flow, where: str) -> None:
    for field in ("name", "source", "target"):
        text = getattr(part, field)
        if not isinstance(text, str) or text.encode(errors="ignore").decode() != text:
            raise InputError(f"{where}{field}: {repr(text)[:60]} is no text; write for example 'switch 1'")


def _resolve_switches(scenario: Scenario, links: list[str]) -> Scenario:
    pfc, classes = scenario.pfc, scenario.classes
    if pfc is not None:
        if not isinstance(pfc, PFC):
            raise InputError(f"pfc: expected a PFC, not {repr(pfc)[:40]}; write PFC() or PFC(xoff='512KB')")
        pfc = resolve_fields(pfc, "pfc ")
    _check_members(classes, TrafficClass, "classes")
    if not classes:
        raise InputError("classes: expected one or more TrafficClass; write (TrafficClass(),) for a single queue")
    classes = tuple(resolve_fields(each, f"class {i} ") for i, each in enumerate(classes))
    for i, flow in enumerate(scenario.flows):
        if is_concrete(flow.traffic_class) and flow.traffic_class >= len(classes):
            raise InputError(
                f"flow {i} traffic_class: there is no class {flow.traffic_class:g}; the scenario has "
                f"{len(classes)}, counted from 0"
            )
    failures = tuple(resolve_fields(each, f"failure {i} ") for i, each in enumerate(scenario.failures))
    for i, failure in enumerate(failures):
        if not isinstance(failure.link, str) or failure.link not in links:
            raise InputError(f"failure {i} link: {failure.link!r} names no link; write one of {', '.join(links[:8])}")
    storms = tuple(resolve_fields(each, f"storm {i} ") for i, each in enumerate(scenario.storms))
    for i, storm in enumerate(storms):
        if not isinstance(storm.link, str) or storm.link not in links:
            raise InputError(f"storm {i} link: {storm.link!r} names no link; write one of {', '.join(links[:8])}")
    if storms and pfc is None:
        raise InputError("storms: without flow control no port can be paused; add pfc=PFC()")
    return dataclasses.replace(scenario, pfc=pfc, classes=classes, failures=failures, storms=storms)


def _resolve_link(link: Link, where: str) -> Link:
    marking = None if link.marking is None else resolve_marking(link.marking, where)
    return dataclasses.replace(link, marking=marking, **converted(link, where))


def thresholds_in_bytes(scenario: Scenario) -> Scenario:
    """Return a resolved scenario whose switches count bytes, for those who know one size of packet (`in_bytes`)."""
    if all(link.marking is None or link.marking.cell is None for link in scenario.links):
        return scenario
    packet = scenario.wire_packet
    links = tuple(
        dataclasses.replace(link, marking=link.marking and in_bytes(link.marking, packet)) for link in scenario.links
    )
    return dataclasses.replace(scenario, links=links)


def _resolve_flow(flow: Flow, where: str, links: int, schemes: dict[int, Any], known: dict[Any, Any]) -> Flow:
    if not isinstance(flow.path, (tuple, list)):
        raise InputError(f"{where}path: expected link indices, not {repr(flow.path)[:40]}; write for example (0,)")
    path: tuple[Any, ...] = tuple(flow.path)
    if not path:
        raise InputError(f"{where}path: it crosses no link; give at least one link index")
    for hop in path:
        if not isinstance(hop, numbers.Integral) or isinstance(hop, bool) or not 0 <= int(hop) < links:
            raise InputError(f"{where}path: {repr(hop)[:60]} names no link; the links are 0 to {links - 1}")
    if len(set(path)) != len(path):
        raise InputError(f"{where}path: {path} crosses a link twice; routes must be free of loops")
    if isinstance(flow.scheme, type) or not hasattr(flow.scheme, "feedback_delay"):
        raise InputError(f"{where}scheme: expected a scheme's parameters, not {repr(flow.scheme)[:40]}; write DCQCN()")
    scheme = schemes.get(id(flow.scheme))
    if scheme is None:
        scheme = schemes[id(flow.scheme)] = resolve_fields(flow.scheme, where)
    plain = converted(flow, where, known)
    start, line = plain["initial_rate"], plain["line_rate"]
    if start is None:
        plain["initial_rate"] = line
    elif is_concrete(start) and is_concrete(line) and start > line:
        raise InputError(
            f"{where}initial_rate: {show(start, RATE)} exceeds the line rate; give at most {show(line, RATE)}"
        )
    if flow.after != () or flow.after_what != dependencies.KNOWN:
        plain["after"] = dependencies.resolve_order(flow.after, flow.after_what, where)
    return dataclasses.replace(flow, path=tuple(map(int, path)), scheme=scheme, **plain)


def base_rtt(scenario: Scenario, flow: Flow) -> Any:
    """Propagation there and back along a flow's path, without queueing or serialisation [s]."""
    one_way = flow.access_delay + sum(scenario.links[i].delay for i in flow.path) + flow.egress_delay
    return 2 * one_way


__all__ = [
    "PFC",
    "RED",
    "Failure",
    "Flow",
    "Link",
    "Scenario",
    "Storm",
    "TrafficClass",
    "base_rtt",
    "resolve",
    "resolve_marking",
    "thresholds_in_bytes",
]
