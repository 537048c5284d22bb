"""Marks and queues together: whether the thresholds in force are those of the file, and how many flows the marks tell.

How often a switch marks, and how long its queues become, both depend on the traffic, which counters do not tell. What
share is marked where the longest queue had some length depends on it much less: packets of a single switch with the
file's settings, at three loads and with the sizes of three published workloads, tell how much to expect. Other loads,
workloads and incasts stay within a factor of 2 to 3 of that, while thresholds four times as high make it a tenth
(``python -m benchmarks.counters --spread``).
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Sequence

from fluidcc.engines.run_many import run_all
from fluidcc.operators import behaviour
from fluidcc.operators.finding import Finding
from fluidcc.operators.sonic import SwitchPort
from fluidcc.operators.symptoms import HIGHER, Queue
from fluidcc.progress import Bar
from fluidcc.scenario.frames import IN_BUFFER, framed, wire_share
from fluidcc.scenario.model import RED, Scenario
from fluidcc.schemes.dcqcn import DCQCN
from fluidcc.units import RATE, SIZE, show

LOWER = "the marks are those of lower thresholds"
FLOWS = "flows that the marks tell"

WORKLOADS = ("web-search", "hadoop", "alibaba-storage")
LOADS = (0.3, 0.5, 0.8)
SCALES = (1 / 16, 1 / 4, 4.0, 16.0)  # of thresholds, beside those of the file
TOO_LOW, TOO_HIGH = 0.2, 2.0  # of marks, over what the file's settings make
_WIDTH = 0.3  # of the kernel, in log
_FEWEST, _MOST = 4, 12  # hosts of the model
_LEAST_SENT, _LEAST_MARKED = 10_000, 100  # packets of which something is said
_BYTES = 50e6  # that a host's link could send in a run: 4 ms at 100 Gb/s
_MOST_FLOWS = 4096


@dataclasses.dataclass(frozen=True)
class Marked:
    """Counts of a port's queue: packets sent and marked, and the longest queue [bytes]."""

    sent: float
    marked: float
    longest: float


def expected_share(longest: float, ports: Sequence[Marked]) -> float:
    """Return the share of marked packets at ports whose longest queue was about as long: a kernel's mean, in log."""

    def weight(port: Marked) -> float:
        return math.exp(-0.5 * (math.log(max(port.longest, 1.0) / max(longest, 1.0)) / _WIDTH) ** 2)

    like = max(ports, key=weight)  # beyond all others, the nearest counts
    weights = [weight(port) / max(weight(like), 1e-300) for port in ports]
    sent = sum(w * port.sent for w, port in zip(weights, ports, strict=True))
    return sum(w * port.marked for w, port in zip(weights, ports, strict=True)) / sent


def ratio(found: Sequence[Marked], model: Sequence[Marked]) -> float:
    """Return the marks of ports over those that a model's ports make where their queues are as long."""
    expected = sum(port.sent * expected_share(port.longest, model) for port in found)
    return sum(port.marked for port in found) / max(expected, 1.0)


def counted(queues: Sequence[Queue]) -> list[Marked]:
    """Return the counts of queues of which all three are known."""
    found = [[queue.get(name) for name in ("sent_packets", "marked_packets", "watermark_bytes")] for queue in queues]
    return [Marked(*values) for values in found if None not in values]  # type: ignore[arg-type]


def thresholds_in_force(queues: Sequence[Queue], scheme: DCQCN, payload: float, delay: float) -> Iterator[Finding]:
    """Compare marks and queues of ports that are set alike with packets of one switch that is set so.

    Parameters
    ----------
    queues : sequence of Queue
        Of one speed and one WRED profile.
    scheme : DCQCN
    payload : float
        Of a packet [bytes].
    delay : float
        Of each link [s].
    """
    ports, port = counted(queues), queues[0].port
    if not ports or sum(each.sent for each in ports) < _LEAST_SENT or port.red is None or port.kmax == port.kmin:
        return
    if sum(each.marked for each in ports) < _LEAST_MARKED:
        return
    hosts = min(max(len(ports), _FEWEST), _MOST)
    ratios = {1.0: ratio(ports, model(port, scheme, payload, delay, hosts, 1.0))}
    found = ratios[1.0]
    share = sum(each.marked for each in ports) / sum(each.sent for each in ports)
    counts = (
        f"{share:.2%} of their packets are marked, with queues of up to {show(max(p.longest for p in ports), SIZE)}"
    )
    where = f"{queues[0].where}: " if len(queues) == 1 else f"{len(queues)} ports as {queues[0].where}: "
    if TOO_LOW <= found <= TOO_HIGH:
        yield Finding(
            "ok",
            "marks and queues fit the thresholds",
            f"{where}{counts}: {found:.2g} times what packets show with the file's settings",
        )
        return
    for scale in SCALES:
        if (scale > 1) == (found < 1):
            ratios[scale] = ratio(ports, model(port, scheme, payload, delay, hosts, scale))
    scale = _scale(ratios)
    red = port.red
    yield Finding(
        "warn",
        HIGHER if found < 1 else LOWER,
        f"{where}{counts}: {found:.2g} times what packets show with the file's Kmin {show(red.kmin, SIZE)} and Kmax "
        f"{show(red.kmax, SIZE)}, and as with about {show(_digits(scale * red.kmin), SIZE)} and "
        f"{show(_digits(scale * red.kmax), SIZE)}, as for {show(_digits(scale * port.rate), RATE)}. A watermark over "
        "minutes is longer than one of some milliseconds: clear it, and read soon after",
        f"compare show ecn on the switch with WRED_PROFILE|{port.profile} of the file",
    )


def _digits(value: float) -> float:
    """Round to a digit: more is not known."""
    return float(f"{value:.1g}")


def _scale(ratios: dict[float, float]) -> float:
    """Return the factor of the thresholds with which the marks are as expected, between those that were run."""
    known = sorted((scale, math.log(max(each, 1e-9))) for scale, each in ratios.items())
    for (low, under), (high, over) in itertools.pairwise(known):
        if under <= 0 <= over and under < over:
            return low * (high / low) ** (under / (under - over))
    return min(known, key=lambda each: abs(each[1]))[0]


def model(port: SwitchPort, scheme: DCQCN, payload: float, delay: float, hosts: int, scale: float) -> list[Marked]:
    """Count in packets of a switch that is set like a port, with thresholds some times those of its file."""
    until = _BYTES / port.rate
    cases = [(workload, load) for workload in WORKLOADS for load in LOADS]

    def one(case: tuple[str, float], _: object) -> list[Marked]:
        return run(star(port, scheme, payload, delay, case[1], hosts, case[0], until, scale), until, hosts)

    with Bar(f"marks of {port.name}", len(cases), "runs") as bar:
        return [each for ports in run_all(one, cases, report=bar) for each in ports]


def star(
    port: SwitchPort,
    scheme: DCQCN,
    payload: float,
    delay: float,
    load: float,
    hosts: int,
    workload: str,
    until: float,
    scale: float = 1.0,
    seed: int = 1,
) -> Scenario:
    """Make a switch whose ports are set like one of the file, and hosts that send to each other at random."""
    from fluidcc.builders.clos import clos
    from fluidcc.builders.workloads import poisson_flows

    assert port.red is not None
    marking = RED(scale * port.red.kmin, scale * port.red.kmax, port.red.pmax)
    rows = poisson_flows(hosts, load=load, until=until, rate=port.rate, sizes=workload, seed=seed)
    made = clos(
        [(int(source), int(target), start, size) for source, target, start, size in rows.tolist()],
        pods=1, tors=1, leaves=1, spines=0, hosts=hosts, rate=port.rate, delay=delay, scheme=scheme, marking=marking,
    )  # fmt: skip
    return behaviour.with_buffers(framed(made, payload), port)


def run(scenario: Scenario, until: float, hosts: int, seed: int = 1) -> list[Marked]:
    """Run a switch in packets, and count at its ports to hosts."""
    import numpy as np

    from fluidcc.engines.run import simulate

    trace = simulate(scenario, until, engine="packet", seed=seed, log=True, sample_interval=until)
    data = trace["event_kind"].values == "data"
    what, where = trace["event_what"].values[data], trace["event_port"].values[data]
    queues = {link["name"]: link["queue_bytes"]["max_whole_run"] for link in trace.summary["links"]}
    ports = []
    for name in (f"T1->H{host}" for host in range(hosts)):
        events = what[where == name.replace("->", " -> ")]
        sent, marked = (float(np.count_nonzero(events == event)) for event in ("transmit", "mark"))
        if name in queues:
            ports.append(Marked(sent, marked, queues[name]))
    return ports


def flows_told(queues: Sequence[Queue], scheme: DCQCN, payload: float, flows: int) -> Iterator[Finding]:
    """Say how many flows that send all the time the busiest marks are of, by the fixed point of DCQCN.

    More such flows would need more marks to be held at their share (DCQCN, eq. (11)).
    """
    from fluidcc.schemes.dcqcn.equilibrium import marking_at

    shares = [
        (marked / sent, queue)
        for queue in queues
        if (marked := queue.get("marked_packets")) and (sent := queue.get("sent_packets"))
    ]
    if not shares:
        return
    share, queue = max(shares, key=lambda each: each[0])
    rate = queue.port.rate * wire_share(payload)
    need = [(count, float(marking_at(scheme, rate / count, rate, payload + IN_BUFFER))) for count in _counts()]
    most = max((count for count, marking in need if marking <= share), default=1)
    mine = next((marking for count, marking in need if count >= flows), need[-1][1])
    yield Finding(
        "ok",
        FLOWS,
        f"{queue.where} marked {share:.2%} of its packets, the most of all: no more than {most} flows can have shared "
        f"it all the time, as {2 * most} would need {_at(need, 2 * most):.2%}; {flows} flows need {mine:.2%}. Flows "
        "that start are marked more",
    )


def _counts() -> list[int]:
    return sorted({round(2 ** (each / 4)) for each in range(4, 49)})


def _at(need: Sequence[tuple[int, float]], count: int) -> float:
    return next((marking for number, marking in need if number >= count), need[-1][1])


__all__ = ["flows_told", "thresholds_in_force"]
