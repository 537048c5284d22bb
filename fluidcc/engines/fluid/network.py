"""The arrays behind a `Scenario`: what the fluid network needs, with flows and links stacked.

Shapes: a column has one row per link, flow or path, or a single row if all are the same, so that equal flows
share work; the points of a batch come on a last axis that `with_points` adds. Values may be traced: the
network of a whole sweep is built once, from one scenario of traced scalars.

Lags are those with which each flow observes each queue on its path, without the time spent in queues. Flow control is
what is counted where, which sender is paused for it, and how late: a switch counts its contents by the link they came
by, from another switch or from a host; above ``xoff`` the port at the far end of that link is stopped, a link's delay
later, until the count is ``xon_gap`` lower.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections.abc import Collection
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from fluidcc.contract.bind import binder
from fluidcc.contract.registry import fluid_of, scheme_of
from fluidcc.engines.fluid.state import column, same
from fluidcc.errors import InputError
from fluidcc.scenario.dependencies import ANSWER, RECEIPT, SENT, end_of
from fluidcc.scenario.model import Flow, Scenario, base_rtt, refuse_losses
from fluidcc.scenario.parameters import fractional, out_of_range, register, specs
from fluidcc.scenario.round_trips import ack_delay, serialisation_delays, smaller
from fluidcc.scenario.routing import refuse_spraying
from fluidcc.scenario.switches import in_bytes
from fluidcc.units import is_concrete


@register(meta=("flows",))
class Group:
    """Flows that run the same scheme.

    Parameters
    ----------
    flows : tuple of int
    parameters : scheme parameters
        Every number a column over these flows.
    line_rate : Array
        Of these flows [bytes/s].
    """

    flows: tuple[int, ...]
    parameters: Any
    line_rate: Any


@register(meta=("paths", "queueing", "waits", "starts", "tracked", "flows", "priorities", "departure"))
class Network:
    """Columns of a scenario.

    Parameters
    ----------
    capacity, kmin, kmax, pmax : Array
        Per queue; bytes/s of its link, bytes, bytes, probability. Links without marking have infinite thresholds.
    start, multiplicity, initial_rate, line_rate : Array
        Per flow; s, count, bytes/s, bytes/s.
    size : Array or None
        Per flow, wire bytes; None if all are long-lived.
    packet, window_packet : Array
        Per flow, bytes of a packet on the wire, and as windows count them.
    marking_lag : Array
        Time [s] from a mark on arrival at a queue to the sender's reaction, without queueing, per view and
        hop; a single row if all are the same.
    own_lag : Array or None
        Time [s] from sending at a rate to the reaction to its marks, without queueing, per flow; None if
        everything is read at the single marking lag.
    arrival_lag : Array or None
        Time [s] from sender to each queue, without queueing, per flow and hop; None if all are zero.
    groups : tuple of Group
    weight : Array
        Per traffic class.
    paths : tuple of tuple of int
        Queues crossed by each view: a view is a distinct pair of path and lags, and marks are computed once
        for all flows that share it. A link has a queue for each class, one after the other.
    flows : tuple of (int, tuple of int)
        View and path of each flow.
    queueing : bool
        Whether the time spent in queues is followed.
    waits : tuple of bool
        Of each view, whether that time is added to its lags: not where a feedback delay is given.
    starts : bool
        Whether some flow starts later than at 0.
    tracked : bool
        Whether bytes are tracked: some scheme needs telemetry or windows (`contract.signals`), or there are classes.
    priorities : tuple of float
        Of each traffic class.
    departure : tuple of bool
        Of each queue, whether packets are marked as they leave it; used where bytes are tracked.
    ingress : Ingress or None
        Flow control, if some scheme observes it; None: no link is paused.
    order : Order or None
        Which flows wait for others; None: none does, and each begins at its start.
    """

    capacity: Any
    kmin: Any
    kmax: Any
    pmax: Any
    start: Any
    multiplicity: Any
    initial_rate: Any
    line_rate: Any
    size: Any
    packet: Any
    window_packet: Any
    marking_lag: Any
    own_lag: Any
    arrival_lag: Any
    weight: Any
    groups: tuple[Group, ...]
    paths: tuple[tuple[int, ...], ...]
    flows: tuple[tuple[int, tuple[int, ...]], ...]
    queueing: bool
    waits: tuple[bool, ...]
    starts: bool
    tracked: bool
    priorities: tuple[float, ...]
    departure: tuple[bool, ...]
    ingress: Ingress | None = None
    order: Order | None = None

    @property
    def links(self) -> int:
        """Number of links."""
        return 1 + max(queue for _, path in self.flows for queue in path) // len(self.priorities)

    @property
    def queues(self) -> int:
        """Number of queues: one for each link and class."""
        return self.links * len(self.priorities)

    @property
    def link_capacity(self) -> Any:
        """Capacity per link, or a single row."""
        return self.capacity if len(self.capacity) == 1 else self.capacity[:: len(self.priorities)]

    def by_link(self, values: Any) -> Any:
        """Sums over the classes of each link: (queues, points) to (links, points)."""
        classes = len(self.priorities)
        return values if classes == 1 else values.reshape(self.links, classes, -1).sum(axis=1)


def network_of(scenario: Scenario) -> Network:
    """Stack a resolved scenario, whose values may be traced, into columns.

    Links that no flow crosses are left out of the model by construction: `Network.links` counts up to the
    last link in use.

    Raises
    ------
    InputError
        If the scenario has what only the packet engine models.
    """
    _refuse_packets_own(scenario)
    used = 1 + max(link for flow in scenario.flows for link in flow.path)
    links = [link for link in scenario.links[:used] for _ in scenario.classes]
    infinite = float("inf")
    lags = [lags_of(scenario, flow) for flow in scenario.flows]
    views: dict[Any, int] = {}
    for flow, lag in zip(scenario.flows, lags, strict=True):
        views.setdefault(view_key(flow, lag), len(views))
    view_of = tuple(views[view_key(f, lag)] for f, lag in zip(scenario.flows, lags, strict=True))
    first = {view: i for i, view in reversed(list(enumerate(view_of)))}
    view_lags = [lags[first[v]] for v in range(len(views))]
    queues = [_queues(scenario, flow) for flow in scenario.flows]
    paths = tuple(queues[first[v]] for v in range(len(views)))
    tracked = any(needs(flow.scheme) - {"delay"} for flow in scenario.flows) or len(scenario.classes) > 1
    queueing = tracked or not all(lag.fixed for lag in lags)
    one_lag = not queueing and len(views) == 1 and same([*view_lags[0].marking, view_lags[0].own])
    arrivals = [lag for each in lags for lag in each.arrival]
    no_arrival_lag = all(is_concrete(lag) and lag == 0 for lag in arrivals)
    finite = not all(is_concrete(f.size) and f.size == infinite for f in scenario.flows)
    markings = [link.marking and in_bytes(link.marking, scenario.wire_packet) for link in links]
    return Network(
        capacity=column([link.rate for link in links]),
        kmin=column([infinite if m is None else m.kmin for m in markings]),
        kmax=column([infinite if m is None else m.kmax for m in markings]),
        pmax=column([1.0 if m is None else m.pmax for m in markings]),
        start=column([f.start for f in scenario.flows]),
        multiplicity=column([f.multiplicity for f in scenario.flows]),
        initial_rate=column([f.initial_rate for f in scenario.flows]),
        line_rate=column([f.line_rate for f in scenario.flows]),
        size=column([f.size * (scenario.wire_packet_of(f) / scenario.packet_size) for f in scenario.flows])
        if finite
        else None,
        packet=column(_packets(scenario)),
        window_packet=column(_packets(scenario) if scenario.window_unit == "wire" else [scenario.packet_size]),
        marking_lag=column([view_lags[0].own] if one_lag else [lag for v in view_lags for lag in v.marking]),
        own_lag=None if one_lag else column([lag.own for lag in lags]),
        arrival_lag=None if no_arrival_lag else column(arrivals),
        groups=_groups(scenario),
        paths=paths,
        weight=column([each.weight for each in scenario.classes], collapse=False),
        flows=tuple(zip(view_of, queues, strict=True)),
        queueing=queueing,
        waits=tuple(not lag.fixed for lag in view_lags),
        starts=not all(is_concrete(f.start) and f.start == 0 and not f.after for f in scenario.flows),
        tracked=tracked,
        priorities=tuple(float(each.priority) for each in scenario.classes),
        departure=tuple(m is not None and m.mark_on == "departure" for m in markings),
        ingress=ingress_of(scenario, lags),
        order=order_of(scenario),
    )


def _queues(scenario: Scenario, flow: Flow) -> tuple[int, ...]:
    return tuple(link * len(scenario.classes) + int(flow.traffic_class) for link in flow.path)


def _refuse_packets_own(scenario: Scenario) -> None:
    """Refuse what would change the fluid's equations; it leaves out buffers and flow control."""
    if scenario.failures:
        raise InputError("failures: the fluid model's links do not fail; leave them out, or write engine='packet'")
    if scenario.storms:
        raise InputError("storms: the fluid model's links do not pause; leave them out, or write engine='packet'")
    refuse_losses(scenario, "fluid")
    refuse_spraying(scenario, "fluid")
    fixed = [each.priority for each in scenario.classes] + [flow.traffic_class for flow in scenario.flows]
    if not all(map(is_concrete, fixed)):
        raise InputError("priority, traffic_class: they order the queues and cannot be swept; give plain numbers")
    for i, flow in enumerate(scenario.flows):
        for name, modelled in fluid_of(flow.scheme).ONLY.items():
            value = getattr(flow.scheme, name)
            static = specs(flow.scheme)[name].static
            if (not static and not is_concrete(value)) or value != modelled:  # a traced value is swept
                engine = "packet" if name in _hybrid_only(flow.scheme) else "hybrid"
                raise InputError(
                    f"flow {i} {name}: the fluid model of {flow.scheme.name} has only {name}={modelled}; "
                    f"write that, or engine='{engine}'"
                )


def _hybrid_only(scheme: Any) -> Collection[str]:
    """Return switches of which the hybrid engine models one value too, or all if it lacks the scheme."""
    side = scheme_of(scheme).hybrid
    return specs(scheme) if side is None else side.ONLY


def _packets(scenario: Scenario) -> list[Any]:
    """Return each flow's packet on the wire [bytes]; equal ones are one object, so that their column is one row."""
    sizes: dict[Any, Any] = {}
    for flow in scenario.flows:
        key = identity(flow.scheme.int_bytes)
        if key not in sizes:
            sizes[key] = scenario.wire_packet_of(flow)
    return [sizes[identity(flow.scheme.int_bytes)] for flow in scenario.flows]


def _groups(scenario: Scenario) -> tuple[Group, ...]:
    schemes = [*map(binder(scenario), scenario.flows)]
    members: dict[Any, list[int]] = {}
    for i, scheme in enumerate(schemes):
        members.setdefault(jax.tree.structure(scheme), []).append(i)
    groups = []
    for treedef, indices in members.items():
        leaves = [jax.tree.leaves(schemes[i]) for i in indices]
        columns = [column([row[k] for row in leaves]) for k in range(treedef.num_leaves)]
        line_rate = column([scenario.flows[i].line_rate for i in indices])
        groups.append(Group(tuple(indices), jax.tree.unflatten(treedef, columns), line_rate))
    return tuple(groups)


def with_points(network: Network, dtype: Any) -> Network:
    """Give every column that has none a last axis of one point, in the precision of the run, as JAX's arrays."""
    return jax.device_put(columns_of(network, dtype))  # all at once: one by one they take longer than a short run


def columns_of(network: Network, dtype: Any) -> Network:
    """Shape columns as `with_points` does, but keep plain numbers in NumPy: for a compiled function called once."""

    def whole(column: Any) -> Any:
        # Of plain numbers in NumPy: in JAX each shape would be compiled.
        column = jnp.asarray(column, dtype) if isinstance(column, Tracer) else np.asarray(column, dtype)
        return column[:, None] if column.ndim == 1 else column

    return jax.tree.map(whole, network)


REASONS = (
    "ok",
    "out of range",
    "kmin exceeds kmax",
    "initial rate exceeds line rate",
    "result is not finite",
    "not a whole number",
    "history takes too much memory",
)


def parts_of(scenario: Scenario) -> list[Any]:
    """Parameter sets that a scenario is made of."""
    schemes = {id(flow.scheme): flow.scheme for flow in scenario.flows}.values()
    links = (part for link in scenario.links for part in (link, link.marking) if part is not None)
    return [*links, *scenario.flows, *schemes, scenario]


def reason_of(scenario: Scenario) -> Array:
    """Index into `REASONS` of what is wrong with a scenario of traced values; 0 if nothing is.

    The traced counterpart of `fluidcc.scenario.model.resolve`.
    """
    parts = parts_of(scenario)
    outside = [condition for part in parts for _, condition in out_of_range(part)]
    broken = [condition for part in parts for _, condition in fractional(part)]
    crossed = [link.marking.kmin > link.marking.kmax for link in scenario.links if link.marking is not None]
    fast = [flow.initial_rate > flow.line_rate for flow in scenario.flows]
    reason: Any = 0
    for name, conditions in (
        ("not a whole number", broken),
        ("initial rate exceeds line rate", fast),
        ("kmin exceeds kmax", crossed),
        ("out of range", outside),
    ):
        reason = jnp.where(_any(conditions), REASONS.index(name), reason)
    return jnp.asarray(reason, jnp.int32)


def _any(conditions: list[Any]) -> Array:
    return functools.reduce(operator.or_, conditions, jnp.asarray(False))


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


@register(meta=("before", "queues", "waits"))
class Order:
    """Ends that are waited for, and the flows that wait for them.

    Parameters
    ----------
    way : Array
        From sending the last byte until it counts, without queueing, per end [s].
    before : tuple of int
        Flow of each end.
    queues : tuple of bool
        Of each end, whether the last byte has waited in queues by then.
    waits : tuple of tuple of int
        Ends that each flow waits for.
    """

    way: Any
    before: tuple[int, ...]
    queues: tuple[bool, ...]
    waits: tuple[tuple[int, ...], ...]


def order_of(scenario: Scenario) -> Order | None:
    """Return the ends that flows of a resolved scenario wait for; None if none waits."""
    if not any(flow.after for flow in scenario.flows):
        return None
    ends: dict[tuple[int, str], int] = {}
    waits = tuple(
        tuple(ends.setdefault((before, end_of(flow, scenario.flows[before])), len(ends)) for before in flow.after)
        for flow in scenario.flows
    )
    rules = {RECEIPT: receipt_delay, ANSWER: answer_delay}
    ways = [0.0 if end == SENT else rules[end](scenario, scenario.flows[before]) for before, end in ends]
    return Order(
        column(ways, collapse=False),
        tuple(before for before, _ in ends),
        tuple(end != SENT for _, end in ends),
        waits,
    )


def receipt_delay(scenario: Scenario, flow: Flow) -> Any:
    """Return the time from a flow's last byte on the first wire until its arrival, through empty queues [s]."""
    last = smaller(1.0, flow.size / scenario.packet_size)  # a whole packet is stored at every link
    return base_rtt(scenario, flow) / 2 + last * sum(serialisation_delays(scenario, flow)[1:])


def answer_delay(scenario: Scenario, flow: Flow) -> Any:
    """Compute the time of `receipt_delay`, and until the ACK is back at the sender [s]."""
    return receipt_delay(scenario, flow) + base_rtt(scenario, flow) / 2 + ack_delay(scenario, flow)


@register(meta=("hops", "ports", "hosts", "own"))
class Ingress:
    """Columns of what is counted: one ingress for each host, and for each link that leads on to another.

    Parameters
    ----------
    xoff, xon : Array
        Contents of an ingress above which it stops its sender, and up to which it lets it go on [bytes].
    delay : Array
        Time until its PAUSE is obeyed, per ingress [s].
    share : Array
        Of a class's contents that one ingress holds, per hop: each flow of a class has a host of its own.
    hop_lag : Array
        From the queue before, or from the sender, per hop [s].
    ack_lag : Array
        From leaving the last queue to the ACK's arrival at the sender, per flow [s].
    max_on : Array
        Of ternary detection, per queue [s]; -1 without.
    hops : tuple of int
        Ingress of each hop of each flow.
    ports : tuple of int
        Ingress that stops each queue; -1 if none does, because its link leads to hosts.
    hosts : tuple of int
        Ingress that stops each flow.
    own : tuple of bool
        Of each hop, whether it is its flow's first.
    """

    xoff: Any
    xon: Any
    delay: Any
    share: Any
    hop_lag: Any
    ack_lag: Any
    max_on: Any
    hops: tuple[int, ...]
    ports: tuple[int, ...]
    hosts: tuple[int, ...]
    own: tuple[bool, ...]

    @property
    def count(self) -> int:
        """Number of ingresses."""
        return 1 + max(self.hops)


def controls_flow(scenario: Scenario) -> bool:
    """Check whether flow control is modelled: where a scheme observes ``"undetermined"`` (`fluidcc.contract.signals`).

    The threshold must be fixed, delays the path's, traffic of one class, and no scheme may need what the lossless fluid
    has not.
    """
    pfc = scenario.pfc
    told = [needs(flow.scheme) for flow in scenario.flows]
    if pfc is None or pfc.xoff is None or len(scenario.classes) > 1 or not any("undetermined" in n for n in told):
        return False
    own = any(flow.scheme.feedback_delay is not None for flow in scenario.flows)
    return not own and not any(n & {"telemetry", "delay"} for n in told)


def ingress_of(scenario: Scenario, lags: list[Lags]) -> Ingress | None:
    """Flow control of a resolved scenario; None where the fluid leaves it out (`controls_flow`)."""
    pfc = scenario.pfc
    if pfc is None or not controls_flow(scenario):
        return None
    found: dict[Any, int] = {}
    delays: list[Any] = []

    def ingress(key: Any, delay: Any) -> int:
        if key not in found:
            found[key] = len(delays)
            delays.append(delay)
        return found[key]

    hops, own, share, hop_lag = [], [], [], []
    for i, (flow, lag) in enumerate(zip(scenario.flows, lags, strict=True)):
        for k in range(len(flow.path)):
            link = flow.path[k - 1]
            at_host = ingress(("host", flow.source or i), flow.access_delay) if k == 0 else None
            hops.append(ingress(("link", link), scenario.links[link].delay) if at_host is None else at_host)
            own.append(k == 0)
            share.append(1.0 / flow.multiplicity if k == 0 else 1.0)
            hop_lag.append(lag.arrival[k] - (lag.arrival[k - 1] if k else 0.0))
    used = 1 + max(link for flow in scenario.flows for link in flow.path)
    markings = [link.marking for link in scenario.links[:used]]
    return Ingress(
        xoff=column([pfc.xoff + pfc.reserve]),
        xon=column([_at_least_0(pfc.xoff + pfc.reserve - pfc.xon_gap)]),
        delay=column(delays, collapse=False),
        share=column(share, collapse=False),
        hop_lag=column(hop_lag, collapse=False),
        ack_lag=column([lag.own - lag.arrival[-1] for lag in lags], collapse=False),
        max_on=column([-1.0 if m is None or m.max_on is None else m.max_on for m in markings], collapse=False),
        hops=tuple(hops),
        ports=tuple(found.get(("link", link), -1) for link in range(used)),
        hosts=tuple(hop for hop, first in zip(hops, own, strict=True) if first),
        own=tuple(own),
    )


def _at_least_0(value: Any) -> Any:
    return value * (value > 0)
