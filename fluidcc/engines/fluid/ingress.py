"""Flow control as the fluid network knows it: what is counted where, which sender is paused for it, and how late.

A switch counts its contents by the link they came by, from another switch or from a host; above ``xoff`` the port at
the far end of that link is stopped, a link's delay later, until the count is ``xon_gap`` lower.
"""

from __future__ import annotations

from typing import Any

from fluidcc.engines.fluid.lags import Lags, needs
from fluidcc.engines.fluid.rows import column
from fluidcc.scenario.model import Scenario
from fluidcc.scenario.parameters import register


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
