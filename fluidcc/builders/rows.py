"""Scenarios whose contended links stand in a row: incast, parking lot, ACC's chain."""

from __future__ import annotations

import math
from typing import Any

from fluidcc.builders.common import (
    CHAIN_PFC,
    MAX_FLOW_CLASSES,
    NETWORK,
    Marking,
    assembled,
    chosen,
    flow_columns,
    flow_count,
    marking_of,
    per_flow,
)
from fluidcc.errors import InputError
from fluidcc.scenario.model import PFC, Flow, Link, Scenario
from fluidcc.surface import public
from fluidcc.units import RATE, SIZE, TIME, is_concrete, marked, quantity, whole

_CHAIN_SWITCHES = 4


@public(passes_on=NETWORK)
def incast(
    flows: int = 2,
    *,
    rate: Any = "40Gbps",
    delay: Any = "1us",
    scheme: Any = None,
    preset: str | None = None,
    marking: Marking = None,
    start: Any = 0.0,
    size: Any = math.inf,
    initial_rate: Any = None,
    multiplicity: Any = 1.0,
    line_rate: Any = None,
    feedback_delay: Any = None,
    stagger: Any = 0.0,
    stagger_group: int = 1,
    **network: Any,
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
    scheme : scheme parameters, or str
        What every flow runs; ``DCQCN()`` if not given. A name, such as ``"hpcc"``, is that scheme with its preset's
        marking and network, where these are not given, as on the command line.
    preset : str
        Of a scheme given by name: one of `fluidcc.presets`; ``"paper"`` if not given.
    marking : RED, or callable
        Marking at the bottleneck, or a function of its rate; the scheme's own default if not given.
    start, size, initial_rate, multiplicity, line_rate : quantity or sequence
        Per flow: when it starts [s], payload [bytes], rate at start [bytes/s], how many identical flows, rate of its
        NIC [bytes/s]. A sequence repeats over the flows. Line-rate start and long-lived by default.
    feedback_delay : quantity
        If given, replaces the path's delays: forward lag 0, return lag this [s].
    stagger : quantity
        Time from one group of flows to the next, added to their starts [s].
    stagger_group : int
        Flows in such a group.
    **network
        Further fields of `Scenario`, such as ``packet_size``, ``header_bytes``, ``buffer``, ``pfc``.

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
    >>> incast(16, stagger="20us", stagger_group=2, size="1MB").flows[15].start  # two flows every 20 us
    0.00014
    """
    flows = flow_count(flows, 1)
    scheme, marking, network = chosen(scheme, preset, marking, feedback_delay, network)
    delays = per_flow(delay, flows, "delay")
    columns = flow_columns(flows, rate, start, size, initial_rate, multiplicity, line_rate)
    later = quantity(stagger, TIME, "stagger")
    if is_concrete(later) and not 0 <= later < math.inf:
        raise InputError("stagger: expected a time of at least 0 s; write for example 20us")
    group = whole(stagger_group, 1, MAX_FLOW_CLASSES, "stagger_group")
    for i, column in enumerate(columns):
        column["start"] = marked(quantity(column["start"], TIME, f"flow {i} start") + i // group * later, TIME)
    marks = marking_of(marking, scheme, rate)
    link = Link(rate, delays[0], marks, name="bottleneck", source="switch", target="receiver")
    made = [
        Flow(
            path=(0,),
            scheme=scheme,
            access_delay=delays[i],
            name=f"flow {i}",
            source=f"sender {i}",
            target="receiver",
            **columns[i],
        )
        for i in range(flows)
    ]
    return assembled([link], made, network)


@public(passes_on=NETWORK)
def parking_lot(
    flows: int = 3,
    *,
    rate: Any = "40Gbps",
    delay: Any = "1us",
    scheme: Any = None,
    preset: str | None = None,
    marking: Marking = None,
    start: Any = 0.0,
    size: Any = math.inf,
    initial_rate: Any = None,
    multiplicity: Any = 1.0,
    line_rate: Any = None,
    feedback_delay: Any = None,
    **network: Any,
) -> Scenario:
    """``flows`` flows over ``flows - 1`` contended links in a row: flow 0 crosses all, flow i link i.

    Link i leads from switch i - 1 to switch i, and an access link at each host adds its delay at both ends.

    Parameters
    ----------
    flows : int
        Number of flow classes, at least 2.
    rate, delay : quantity
        Of all links [bytes/s], [s].
    scheme, preset, marking, start, size, initial_rate, multiplicity, line_rate, feedback_delay, **network
        As in `incast`.

    Returns
    -------
    Scenario

    Raises
    ------
    InputError
        If a value cannot be read or is out of range.
    """
    flows = flow_count(flows, 2)
    scheme, marking, network = chosen(scheme, preset, marking, feedback_delay, network)
    columns = flow_columns(flows, rate, start, size, initial_rate, multiplicity, line_rate)
    hops = tuple(range(flows - 1))
    marks = marking_of(marking, scheme, rate)
    links = [
        Link(rate, delay, marks, name=f"link {i + 1}", source=f"switch {i}", target=f"switch {i + 1}") for i in hops
    ]
    made = [
        Flow(
            path=hops if i == 0 else (i - 1,),
            scheme=scheme,
            access_delay=delay,
            egress_delay=delay,
            name=f"flow {i}",
            source=f"sender {i}",
            target=f"receiver {i}",
            **columns[i],
        )
        for i in range(flows)
    ]
    return assembled(links, made, network)


@public(passes_on=NETWORK)
def chain(
    bursts: int = 15,
    *,
    burst_start: Any = "1ms",
    burst_time: Any = "2ms",
    burst_size: Any = "64KB",
    rate: Any = "100Gbps",
    delay: Any = "2us",
    scheme: Any = None,
    preset: str | None = None,
    marking: Marking = None,
    start: Any = 0.0,
    size: Any = math.inf,
    initial_rate: Any = None,
    feedback_delay: Any = None,
    pfc: PFC | None = CHAIN_PFC,
    **network: Any,
) -> Scenario:
    """ACC's Fig. 1(a): a victim flow behind a burst (Zhang et al., NSDI 2024, section 2.3).

    Switches SW1 to SW4 stand in a row. F0, from S0 to R0, and F1, from S1 to R1, share its links; hosts H1, H2,
    ... at SW4 send bursts to R1. The paper's ports P1, P2, P3 are the links SW1->SW2, SW2->SW3, SW3->SW4, and
    P4, where F1 and the bursts meet, is SW4->R1. Its figure is described in words only: that S0 and S1 are at
    SW1 and R0 and R1 at SW4 follows from its ports and from the utilisation of SW3->SW4 in Fig. 20.

    The bursting hosts send flows of ``burst_size`` back to back, each at line rate from its start. Starts are
    scheduled, not triggered by the end of the flow before. They are those of a host that flow control pauses: at
    line rate until its port at SW4 holds the threshold ``XOFF`` of 512 KB, then at its share of R1's link. So by t
    after ``burst_start``, ``min(C t, XOFF + C t / (bursts + 1))`` bytes have started, C the rate; the last flow
    starts before ``burst_time``. They stay so when ``pfc`` is changed.

    Parameters
    ----------
    bursts : int
        Number of bursting hosts (N).
    burst_start, burst_time : quantity
        When the first flows of the bursts start, and for how long further ones do [s]; 0 s: no burst.
    burst_size : quantity
        Size of each of the bursts' flows [bytes].
    start, size, initial_rate : quantity or sequence
        Of F0 and F1 [s], [bytes], [bytes/s]; at once, long-lived and at line rate by default.
    pfc : PFC or None
    rate, delay, scheme, preset, marking, feedback_delay, **network
        As in `incast`; of all links.

    Returns
    -------
    Scenario

    Raises
    ------
    InputError
        If a value cannot be read or is out of range.
    """
    bursts = whole(bursts, 0, MAX_FLOW_CLASSES, "bursts")
    scheme, marking, network = chosen(scheme, preset, marking, feedback_delay, {"pfc": pfc, **network})
    columns = flow_columns(2, rate, start, size, initial_rate, 1.0, None)
    marks = marking_of(marking, scheme, rate)
    ends = [(f"SW{i}", f"SW{i + 1}") for i in range(1, _CHAIN_SWITCHES)] + [("SW4", "R0"), ("SW4", "R1")]
    links = [Link(rate, delay, marks, name=f"{a}->{b}", source=a, target=b) for a, b in ends]
    shared = (0, 1, 2)
    flows = [
        Flow((*shared, 3), scheme, access_delay=delay, name="F0", source="S0", target="R0", **columns[0]),
        Flow((*shared, 4), scheme, access_delay=delay, name="F1", source="S1", target="R1", **columns[1]),
    ]
    starts = _burst_starts(bursts, burst_start, burst_time, burst_size, rate) if bursts else []
    flows += [
        Flow((4,), scheme, rate, at, burst_size, access_delay=delay, name=f"H{i}.{k}", source=f"H{i}", target="R1")
        for k, at in enumerate(starts, 1)
        for i in range(1, bursts + 1)
    ]
    return assembled(links, flows, network)


def _burst_starts(bursts: int, opens: Any, lasts: Any, size: Any, rate: Any) -> list[float]:
    """Starts of one bursting host's flows [s]."""
    opens, lasts = quantity(opens, TIME, "burst_start"), quantity(lasts, TIME, "burst_time")
    size, rate = quantity(size, SIZE, "burst_size"), quantity(rate, RATE, "rate")
    if not all(map(is_concrete, (lasts, size, rate))):
        raise InputError("rate: the number of a chain's bursts follows from it, so it is fixed; give a plain number")
    if not size > 0 or not rate > 0 or not lasts >= 0:
        raise InputError("burst_time: expected a burst_size above 0 and a time of at least 0; write for example 2ms")
    xoff = quantity(CHAIN_PFC.xoff, SIZE)
    flows = min(rate * lasts, xoff + rate * lasts / (bursts + 1)) / size * (1 - 1e-12)
    if bursts * flows > MAX_FLOW_CLASSES:
        raise InputError(
            f"burst_time: {bursts} hosts would send more than {MAX_FLOW_CLASSES} flows; give a shorter time, "
            f"or a larger burst_size"
        )
    sent = [k * size for k in range(math.ceil(flows))]
    return [marked(opens + max(b / rate, (b - xoff) * (bursts + 1) / rate), TIME) for b in sent]
