"""Builders of common scenarios. All quantities may be text with units, SI numbers, or traced values."""

from __future__ import annotations

import dataclasses
import numbers
from collections.abc import Sequence
from typing import Any

from fluidcc.errors import InputError
from fluidcc.scenario import RED, Flow, Link, Scenario, resolve

MAX_FLOW_CLASSES = 4096


def _per_flow(value: Any, flows: int, name: str) -> list[Any]:
    """One value per flow: a list repeats over the flows, a single value serves all."""
    listed = (isinstance(value, Sequence) and not isinstance(value, str)) or getattr(value, "ndim", 0) == 1
    values = list(value) if listed else [value]
    if not values:
        raise InputError(f"{name}: the list is empty; give at least one value")
    return [values[i % len(values)] for i in range(flows)]


def _check_flows(flows: Any, least: int) -> int:
    whole = isinstance(flows, numbers.Integral) and not isinstance(flows, bool)
    if not whole or not least <= int(flows) <= MAX_FLOW_CLASSES:
        raise InputError(
            f"flows: expected a whole number from {least} to {MAX_FLOW_CLASSES}, not {repr(flows)[:40]}; "
            f"more identical flows, or a swept number of them, go in multiplicity="
        )
    return int(flows)


def _scheme_and_marking(scheme: Any, marking: RED | None, feedback_delay: Any) -> tuple[Any, RED | None]:
    if scheme is None:
        from fluidcc.schemes.dcqcn import DCQCN

        scheme = DCQCN()
    if not hasattr(scheme, "feedback_delay"):
        raise InputError(f"scheme: expected a scheme's parameters, not {repr(scheme)[:40]}; write DCQCN()")
    if feedback_delay is not None:
        scheme = dataclasses.replace(scheme, feedback_delay=feedback_delay)
    return scheme, marking if marking is not None else scheme.default_marking


def incast(
    flows: int = 2,
    *,
    rate: Any = "40Gbps",
    delay: Any = "1us",
    scheme: Any = None,
    marking: RED | None = None,
    start: Any = 0.0,
    size: Any = float("inf"),
    initial_rate: Any = None,
    multiplicity: Any = 1.0,
    line_rate: Any = None,
    feedback_delay: Any = None,
    packet_size: Any = "1000B",
    header_bytes: Any = 0.0,
) -> Scenario:
    """``flows`` senders, one switch, one receiver: a single bottleneck.

    Parameters
    ----------
    flows : int
        Number of flow classes; each has its own state.
    rate : quantity
        Rate of the bottleneck and, unless ``line_rate`` is given, of the senders' NICs [bytes/s].
    delay : quantity or sequence
        One-way delay of each link [s]. In a sequence, the delays of the senders' links; the bottleneck then
        has the first of them.
    scheme : scheme parameters
        What every flow runs; ``DCQCN()`` if not given.
    marking : RED
        Marking at the bottleneck; the scheme's own default if not given.
    start, size, initial_rate, multiplicity, line_rate : quantity or sequence
        Per flow; a sequence repeats over the flows. Line-rate start and long-lived by default.
    feedback_delay : quantity
        If given, replaces the path's delays: forward lag 0, return lag this [s].
    packet_size, header_bytes : quantity
        Payload and header of a packet [bytes].

    Returns
    -------
    Scenario

    Raises
    ------
    InputError
        If a value cannot be read or is out of range.

    Examples
    --------
    >>> incast(8, rate="40Gbps", delay="1us", start=["0s", "10ms"]).flows[1].start
    0.01
    """
    flows = _check_flows(flows, 1)
    scheme, marking = _scheme_and_marking(scheme, marking, feedback_delay)
    delays = _per_flow(delay, flows, "delay")
    columns = _flow_columns(flows, rate, start, size, initial_rate, multiplicity, line_rate)
    link = Link(rate=rate, delay=delays[0], marking=marking, name="bottleneck")
    made = tuple(
        Flow(path=(0,), scheme=scheme, access_delay=delays[i], name=f"flow {i}", **columns[i]) for i in range(flows)
    )
    return resolve(Scenario((link,), made, packet_size, header_bytes))


def parking_lot(
    flows: int = 3,
    *,
    rate: Any = "40Gbps",
    delay: Any = "1us",
    scheme: Any = None,
    marking: RED | None = None,
    start: Any = 0.0,
    size: Any = float("inf"),
    initial_rate: Any = None,
    multiplicity: Any = 1.0,
    line_rate: Any = None,
    feedback_delay: Any = None,
    packet_size: Any = "1000B",
    header_bytes: Any = 0.0,
) -> Scenario:
    """``flows`` flows over ``flows - 1`` contended links in a row: flow 0 crosses all, flow i link i - 1.

    An access link at each host adds its delay at both ends. Parameters as in `incast`; ``delay`` is one
    value for all links.

    Raises
    ------
    InputError
        If a value cannot be read or is out of range.
    """
    flows = _check_flows(flows, 2)
    scheme, marking = _scheme_and_marking(scheme, marking, feedback_delay)
    columns = _flow_columns(flows, rate, start, size, initial_rate, multiplicity, line_rate)
    hops = tuple(range(flows - 1))
    links = tuple(Link(rate=rate, delay=delay, marking=marking, name=f"link {i + 1}") for i in hops)
    made = tuple(
        Flow(
            path=hops if i == 0 else (i - 1,),
            scheme=scheme,
            access_delay=delay,
            egress_delay=delay,
            name=f"flow {i}",
            **columns[i],
        )
        for i in range(flows)
    )
    return resolve(Scenario(links, made, packet_size, header_bytes))


def _flow_columns(
    flows: int, rate: Any, start: Any, size: Any, initial_rate: Any, multiplicity: Any, line_rate: Any
) -> list[dict[str, Any]]:
    """Per-flow keyword arguments from values or repeating lists."""
    columns = {
        "start": _per_flow(start, flows, "start"),
        "size": _per_flow(size, flows, "size"),
        "initial_rate": _per_flow(initial_rate, flows, "initial_rate"),
        "multiplicity": _per_flow(multiplicity, flows, "multiplicity"),
        "line_rate": _per_flow(rate if line_rate is None else line_rate, flows, "line_rate"),
    }
    return [{name: values[i] for name, values in columns.items()} for i in range(flows)]
