"""The arrays behind a `Scenario`: what the fluid network needs, with flows and links stacked.

Shapes: a column has one row per link, flow or path, or a single row if all are the same, so that equal flows
share work; the points of a batch come on a last axis that `with_points` adds. Values may be traced: the
network of a whole sweep is built once, from one scenario of traced scalars.
"""

from __future__ import annotations

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
from fluidcc.engines.fluid.dependencies import Order, order_of
from fluidcc.engines.fluid.ingress import Ingress, ingress_of
from fluidcc.engines.fluid.lags import identity, lags_of, needs, view_key
from fluidcc.engines.fluid.rows import column, same
from fluidcc.errors import InputError
from fluidcc.scenario.model import Flow, Scenario, refuse_losses
from fluidcc.scenario.parameters import fractional, out_of_range, register, specs
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
