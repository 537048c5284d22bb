"""Records of a run: exact statistics of queues over the window, samples for the trace, the log, and flow control.

Flow control is who was paused, how far that spread, what it cost, and whether any pause is permanent.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from fluidcc.engines.common.jit import kernel
from fluidcc.engines.common.topology import Topology
from fluidcc.engines.packet.calendar import SHIFT, events_of
from fluidcc.engines.packet.layout import BINS, NEVER, PAUSE, PS, QUEUES, RECEIVED, RELEASE, Sim

_FINE = 128  # bytes in a bin up to _KNEE
_KNEE = 65536  # bytes; beyond, bins grow by 1 %
_LINEAR = _KNEE // _FINE
_PER_E = 1 / math.log(1.01)


@kernel
def bin_of(queue: Any) -> Any:
    """Bin of a queue length [bytes]: 128 B wide up to 64 KiB, then 1 %."""
    if queue < _KNEE:
        return queue // _FINE
    return min(_LINEAR + int(math.log(queue / _KNEE) * _PER_E), BINS - 1)


@kernel
def account(core: Any, links: Any, bins: Any, row: Any, queue: Any) -> None:
    """Count the time that a link's queue has had its present length; call before it changes.

    The length after the change goes to `peak`.
    """
    link = links[row]
    span = core.now - link.changed
    link.changed = core.now
    if span > 0 and core.watching:
        weight = span * 1e-12
        if queue < link.least_in_window:
            link.least_in_window = queue
        area = weight * queue
        link.area += area
        link.area2 += area * queue
        at = bin_of(queue)
        if at == 0:
            link.near[0] += weight
            link.near[1] += area
        else:
            bins[row, at, 0] += weight
            bins[row, at, 1] += area


@kernel
def peak(core: Any, links: Any, row: Any, queue: Any) -> None:
    """Keep the longest queue, of the run and of the window."""
    link = links[row]
    if queue > link.most:
        link.most = queue
    if core.watching and queue > link.most_in_window:
        link.most_in_window = queue


@kernel
def write(core: Any, log: Any, what: Any, port: Any, flow: Any, kind: Any, end: Any, queue: Any, value: Any) -> None:
    """Write a line of the log; the loop returns to Python to grow it before it is full."""
    if core.frames_only and (what != RECEIVED or kind < PAUSE):
        return
    line = log[core.logged]
    core.logged += 1
    line.time = core.now
    line.what = what
    line.port = port
    line.flow = flow
    line.kind = kind
    line.end = end
    line.queue = queue
    line.value = value


def paused_for(sim: Sim) -> Any:
    """Time (ports,) for which each port was paused, up to now [ps]."""
    since = sim.ports["paused_since"]
    return sim.ports["paused_for"] + np.where(since < NEVER, sim.core[0].now - since, 0)


def flow_control(topology: Topology, sim: Sim) -> dict[str, Any]:
    """Metrics of flow control over the whole run.

    Returns
    -------
    dict
        ``pauses_received`` of each switch, and of all hosts together; ``depths``, how many pauses were 1, 2, ... hops
        from the root of their tree (HPCC, Fig. 1a: a port paused by a node none of whose own ports is paused is 1 hop
        away); ``suppressed``, share of the rates of all ports that was paused, mean over the run and largest (Fig. 1b);
        ``deadlock_s``, since when ports are paused forever [s], the first that hold each other; and ``deadlock``,
        which of the switches'; None if none are.
    """
    core, ports = sim.core[0], sim.ports
    received = {name: 0 for name in topology.nodes if name not in topology.hosts} | {"hosts": 0}
    for port, count in zip(topology.ports, ports["pauses"], strict=True):
        received[port.source if port.source in received else "hosts"] += int(count)
    total, now = float(ports["rate"].sum()), float(max(core.now, 1))
    stuck = stuck_ports(sim)
    switches = [topology.ports[i] for i in sorted({i for i, _ in stuck}) if topology.ports[i].source in received]
    return {
        "pauses_received": received,
        "depths": [int(count) for count in core.depths[1:]],
        "suppressed": {
            "mean": float((ports["rate"] * paused_for(sim)).sum() / (total * now)),
            "max": float(core.stopped_max / total),
        },
        "deadlock_s": _closed(sim, stuck) / PS if stuck else None,
        "deadlock": ", ".join(f"{port.source}->{port.target}" for port in switches) if stuck else None,
    }


def _closed(sim: Sim, stuck: set[tuple[int, int]]) -> int:
    """Return since when some of these ports block each other [ps], ignoring those paused later, behind them."""
    times = sorted({int(sim.ports[i].paused_since) for i, _ in stuck})
    return next(time for time in times if stuck_ports(sim, time))


def stuck_ports(sim: Sim, since: int = NEVER - 1) -> set[tuple[int, int]]:
    """Return ports and queues, paused since then or before, that stay paused whatever else happens.

    The far end of a paused port resumes it when enough of what came in by it has left. What waits at ports that are
    themselves of the set never leaves; all else may. So the set is the largest one in which none would be resumed even
    when all else has left: a cycle of buffers that wait for each other, and what waits behind it. A port in a storm
    without end is stuck by itself.
    """
    endless = _endless_storms(sim)
    early = np.flatnonzero((sim.ports["paused"] != 0) & (sim.ports["paused_since"] <= since))
    stuck = {(int(i), q) for i in early for q in _bits(sim.ports[i].paused)}
    while stuck:
        left: dict[tuple[int, int], int] = {}  # bytes by the port that they came in by, that cannot leave
        for i, q in stuck:
            for k in _queue(sim, i, q):
                if sim.packets[k].ingress >= 0:
                    came = int(sim.packets[k].ingress), int(q)
                    left[came] = left.get(came, 0) + int(sim.packets[k].wire)
        free = {(i, q) for i, q in stuck if i not in endless and _resumes(sim, i, q, left)}
        if not free:
            return stuck
        stuck -= free
    return set()


def _endless_storms(sim: Sim) -> set[int]:
    """Ports with more storms than ends of storms to come."""
    events = events_of(sim.core[0], sim.calendar)["event"]
    ends = [int(event & ((1 << SHIFT) - 1)) for event in events if event >> SHIFT == RELEASE]
    return {int(i) for i in np.flatnonzero(sim.ports["jammed"]) if sim.ports[i].jammed > ends.count(int(i))}


def _resumes(sim: Sim, i: int, q: int, left: dict[tuple[int, int], int]) -> bool:
    """Check whether port ``i`` would be resumed once only ``left`` is left; the rule is that of `switch.release`."""
    port = sim.ports[i]
    node = sim.nodes[port.peer]
    stays = left.get((i, q), 0)
    if not port.stopping >> q & 1:
        return True  # a RESUME is on its way, or the end of a storm
    if stays == port.queues[q].ingress + port.queues[q].headroom_used and port.wire_head < 0:
        return False  # no packet leaves any more, so that the rule is never applied
    if _beyond(port, q, stays) > 0:
        return False
    above = max(stays - int(node.reserve), 0)
    if port.xoff >= 0:
        limit = int(port.xoff)
    else:
        here = [(sim.ports[j], c, b) for (j, c), b in left.items() if sim.ports[j].peer == port.peer]
        kept = sum(max(b - _beyond(each, c, b) - int(node.reserve), 0) for each, c, b in here)
        limit = int(port.alpha * max(int(node.shared) - kept, 0))
    return above == 0 or above + int(node.xon_gap) <= limit


def _beyond(port: Any, q: int, stays: int) -> int:
    """Return the bytes in the headroom when a port has only ``stays`` bytes left; the headroom empties first."""
    gone = int(port.queues[q].ingress + port.queues[q].headroom_used) - stays
    return max(int(port.queues[q].headroom_used) - gone, 0)


def _bits(mask: int) -> Iterator[int]:
    return (q for q in range(QUEUES) if mask >> q & 1)


def _queue(sim: Sim, i: int, q: int) -> Iterator[int]:
    k = int(sim.ports[i].queues[q].head)
    while k >= 0:
        yield k
        k = int(sim.packets[k].next)
