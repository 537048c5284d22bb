"""Judgement of counters by the settings of the devices that counted, of marks by a model of the traffic.

Marks say whether the thresholds in force are those of the file, and how many flows send. How often a switch marks
depends on its traffic, which counters do not tell: it has to be said. Packets of a single switch with the file's
settings, that workload and the load that was counted give the share of marks to compare with (``python -m
benchmarks.counters --spread``). Traffic beside it that nobody tells, such as incasts, adds marks: that there are more
says nothing, that there are fewer does.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

from fluidcc.engines.run_many import run_all
from fluidcc.errors import InputError
from fluidcc.operators import behaviour
from fluidcc.operators.config_db import ConfigDB
from fluidcc.operators.config_files import clip
from fluidcc.operators.counters.model import Counters
from fluidcc.operators.finding import Finding
from fluidcc.operators.ports import PortGroup, alike
from fluidcc.operators.sonic import SwitchPort
from fluidcc.operators.symptoms import HIGHER, Nics, Queue, symptoms
from fluidcc.progress import Bar
from fluidcc.scenario.frames import IN_BUFFER, framed, wire_share
from fluidcc.scenario.model import RED, Scenario
from fluidcc.schemes.dcqcn import DCQCN
from fluidcc.units import SIZE, show

# -- marks against a model of the traffic ------------------------------------------------------------------


FIT = "the marks are those of the thresholds, or more"
FLOWS = "flows that the marks tell"

SCALES = (4.0, 16.0)  # of thresholds, beside those of the file
TOO_FEW = 3.0  # times fewer marks than the file's settings make
_LEAST_LOAD, _MOST_LOAD = 0.1, 0.95  # that the model is run at
_FEWEST, _MOST = 4, 12  # hosts of the model
_LEAST_SENT, _LEAST_MARKED = 10_000, 30  # packets of which something is said
_BYTES = 50e6  # that a host's link could send in a run: 4 ms at 100 Gb/s
_SEEDS = 6
_FULL = 0.9  # share of its rate from which a port counts as full
_COUNTS = sorted({round(2 ** (each / 4)) for each in range(4, 49)})  # of flows


@dataclasses.dataclass(frozen=True)
class Marked:
    """Packets that a port's queue sent and marked."""

    sent: float
    marked: float


def share(ports: Sequence[Marked]) -> float:
    """Return the share of marked packets."""
    return sum(port.marked for port in ports) / max(sum(port.sent for port in ports), 1.0)


def marked_of(queues: Sequence[Queue]) -> list[Marked]:
    """Return the counts of queues of which both are known."""
    found = [[queue.get(name) for name in ("sent_packets", "marked_packets")] for queue in queues]
    return [Marked(*values) for values in found if None not in values]  # type: ignore[arg-type]


def hosts_of(queues: Sequence[Queue]) -> int:
    """Return how many hosts the model of some ports has."""
    return min(max(len(queues), _FEWEST), _MOST)


def load_of(queue: Queue, seconds: float | None) -> float | None:
    """Return the share of a port's rate that was sent; None if that was not read."""
    rate, size = queue.counted.values.get("sent_bytes_per_s"), queue.get("sent_bytes")
    if size is not None and seconds:
        rate = size / seconds
    return None if rate is None else rate / queue.port.rate


def thresholds_in_force(
    queues: Sequence[Queue], scheme: DCQCN, payload: float, delay: float, workload: str, seconds: float | None
) -> Iterator[Finding]:
    """Compare marks of ports that are set alike with packets of one switch that is set so: whether they are too few.

    Parameters
    ----------
    queues : sequence of Queue
        Of one speed and one WRED profile.
    scheme : DCQCN
    payload : float
        Of a packet [bytes].
    delay : float
        Of each link [s].
    workload : str
        Traffic of the hosts.
    seconds : float or None
        Time in which was counted.

    Raises
    ------
    InputError
        If the load was not counted.
    """
    queues = [queue for queue in queues if queue.get("sent_packets") and queue.get("marked_packets") is not None]
    if not queues or sum(queue.get("sent_packets") or 0.0 for queue in queues) < _LEAST_SENT:
        return
    known = [load_of(queue, seconds) for queue in queues]
    loads = [load for load in known if load is not None]
    if not loads:
        raise InputError("workload: the counters do not tell its load; give --interval, the time between both readings")
    port, load = queues[0].port, sum(loads) / len(loads)
    if port.red is None:
        return
    if not _LEAST_LOAD <= load <= _MOST_LOAD:
        yield Finding(
            "ok",
            "marks are not compared with the workload",
            f"{queues[0].where} and others set like it sent {load:.0%} of their rate, {_LEAST_LOAD:.0%} to "
            f"{_MOST_LOAD:.0%} are modelled",
            at=tuple(queue.where for queue in queues),
        )
        return
    found, hosts = share(marked_of(queues)), hosts_of(queues)

    def expected(scale: float) -> float:
        return share(model(port, scheme, payload, delay, hosts, workload, load, scale))

    own = expected(1.0)
    if own * _BYTES / (payload + IN_BUFFER) < _LEAST_MARKED:
        return
    where = queues[0].where if len(queues) == 1 else f"{len(queues)} ports as {queues[0].where}"
    counts = f"{where} marked {found:.2%}; with {workload} at {load:.0%} of the rate, packets are marked {own:.2%}"
    if found > own / TOO_FEW:
        fits = counts + " with the file's thresholds. Incasts beside it would add marks"
        yield Finding("ok", FIT, fits, at=tuple(queue.where for queue in queues))
        return
    scale = _scale(found, {1.0: own} | {scale: expected(scale) for scale in SCALES})
    kmin, kmax = (show(_digits(scale * each), SIZE) for each in (port.red.kmin, port.red.kmax))
    yield Finding(
        "warn",
        HIGHER,
        f"{counts} with the file's Kmin {show(port.red.kmin, SIZE)} and Kmax {show(port.red.kmax, SIZE)}, and as many "
        f"with {'about' if scale < SCALES[-1] else 'at least'} {kmin} and {kmax}: another profile is in force, or the "
        "traffic is another",
        f"compare show ecn on the switch with WRED_PROFILE|{port.profile} of the file",
        at=tuple(queue.where for queue in queues),
    )


def _digits(value: float) -> float:
    """Round to a digit: more is not known."""
    return float(f"{value:.1g}")


def _scale(found: float, shares: dict[float, float]) -> float:
    """Return the factor of the thresholds with which as many are marked, between those that were run."""
    known = sorted((scale, math.log(max(each, 1e-9) / max(found, 1e-9))) for scale, each in shares.items())
    for (low, over), (high, under) in itertools.pairwise(known):
        if under <= 0 <= over and under < over:
            return low * (high / low) ** (over / (over - under))
    return min(known, key=lambda each: abs(each[1]))[0]


def model(
    port: SwitchPort, scheme: DCQCN, payload: float, delay: float, hosts: int, workload: str, load: float, scale: float
) -> list[Marked]:
    """Count in packets of a switch that is set like a port, with thresholds some times those of its file."""
    until = _BYTES / port.rate

    def one(seed: int, _: object) -> list[Marked]:
        made = star(port, scheme, payload, delay, load, hosts, workload, until, scale, seed)
        return run(made, until, hosts, seed)

    with Bar(f"marks of {port.name}, thresholds x {scale:g}", _SEEDS, "runs") as bar:
        return [each for ports in run_all(one, range(1, _SEEDS + 1), report=bar) for each in ports]


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
    from fluidcc.builders import workloads

    assert port.red is not None
    marking = RED(scale * port.red.kmin, scale * port.red.kmax, port.red.pmax)
    made = workloads.star(
        hosts, load=load, until=until, sizes=workload, seed=seed,
        rate=port.rate, delay=delay, scheme=scheme, marking=marking,
    )  # fmt: skip
    return behaviour.with_buffers(framed(made, payload), port)


def run(scenario: Scenario, until: float, hosts: int, seed: int = 1) -> list[Marked]:
    """Run a switch in packets, and count at its ports to hosts."""
    import numpy as np

    from fluidcc.engines.run import simulate

    trace = simulate(scenario, until, engine="packet", seed=seed, log=True, sample_interval=until)
    data = trace["event_kind"].values == "data"
    what, where = trace["event_what"].values[data], trace["event_port"].values[data]
    ports = []
    for host in range(hosts):
        events = what[where == f"T1 -> H{host}"]
        ports.append(Marked(*(float(np.count_nonzero(events == event)) for event in ("transmit", "mark"))))
    return ports


def flows_told(
    queues: Sequence[Queue], scheme: DCQCN, payload: float, flows: int, seconds: float | None
) -> Iterator[Finding]:
    """Say how many flows that send all the time the marks of a full port are of, by the fixed point of DCQCN.

    More such flows need more marks to be held at their share (DCQCN, eq. (11)). Of a port that is not full nothing
    follows; packets need up to a fifth less than the fixed point has, so that a factor of two is asked for.
    """
    from fluidcc.schemes.dcqcn.equilibrium import marking_at

    full = [
        (marked / sent, queue)
        for queue in queues
        if (sent := queue.get("sent_packets") or 0.0) >= _LEAST_SENT
        and (marked := queue.get("marked_packets")) is not None
        and _LEAST_MARKED <= marked <= sent
        and (load_of(queue, seconds) or 0.0) >= _FULL
    ]
    if not full:
        return
    found, queue = max(full, key=lambda each: each[0])
    rate = queue.port.rate * wire_share(payload)
    need = [(count, float(marking_at(scheme, rate / count, rate, payload + IN_BUFFER))) for count in _COUNTS]
    excluded = next((f"{count} or more" for count, marking in need if marking >= 2 * found), "")
    mine = next((marking for count, marking in need if count >= flows), need[-1][1])
    yield Finding(
        "ok",
        FLOWS,
        f"{queue.where} was full and marked {found:.2%} of its packets, where {flows} flows that share it all the time "
        f"need {mine:.2%} by DCQCN's fixed point, packets a little less"
        + (f": {excluded} such flows are excluded, as they need twice as many" if excluded else "")
        + ". Flows that start are marked more",
        at=(queue.where,),
    )


# -- all counters ------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Counted:
    """Result of comparing counters with settings.

    Parameters
    ----------
    findings : list of Finding
        Causes before what follows from them.
    ports, nics : tuple of str
        Ports and NICs that were read and judged.
    left_out : tuple of str
        Ports that the switch's file does not have, or that were read once only.
    seconds : float or None
        Time in which was counted.
    """

    findings: list[Finding]
    ports: tuple[str, ...]
    nics: tuple[str, ...]
    left_out: tuple[str, ...] = ()
    seconds: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return keys as in the CLI."""
        return {**dataclasses.asdict(self), "findings": [dataclasses.asdict(each) for each in self.findings]}


@dataclasses.dataclass(frozen=True)
class Conditions:
    """Conditions under which was counted.

    Parameters
    ----------
    scheme : DCQCN
        The NICs' settings.
    payloads : sequence of float
        Sizes that packets may have [bytes].
    delay : float
        Of each link [s].
    flows : int
    seconds : float or None
        Time in which was counted.
    workload : str or None
        Traffic of the hosts; None: not known.
    """

    scheme: DCQCN
    payloads: Sequence[float]
    delay: float
    flows: int = 8
    seconds: float | None = None
    workload: str | None = None


def judge(counters: Counters, groups: Sequence[PortGroup], configs: Sequence[ConfigDB], given: Conditions) -> Counted:
    """Compare counters with what the settings make.

    Parameters
    ----------
    counters : Counters
    groups : sequence of PortGroup
        Ports of the switch's file, by their settings.
    configs : sequence of ConfigDB
        The file, with the ports' aliases and what is behind them.
    given : Conditions

    Returns
    -------
    Counted

    Raises
    ------
    InputError
        If nothing of what was counted is in the file.
    """
    queues, strangers = queues_of(counters, groups, configs)
    if not queues and not counters.nics:
        raise _strange(configs, strangers)
    nics = Nics(
        counters.nics,
        tuple(sorted({group.switch.priority for group in groups})),
        max(given.scheme.cnp_interval, given.scheme.nic_cnp_interval),
        max(group.switch.rate for group in groups),
        min(given.payloads) + IN_BUFFER,
    )
    found = symptoms(queues, nics, given.seconds)
    same: dict[Any, list[Queue]] = {}
    for queue in queues:
        if queue.port.ecn and queue.port.red is not None:
            same.setdefault((queue.port.rate, queue.port.profile), []).append(queue)
    of = given.scheme, max(given.payloads)
    broken = any(each.severity == "bad" for each in found)  # marks are others then
    slowest = min((queue.port.rate for queue in queues), default=0.0)  # faster ones lead to no hosts
    for (rate, _), members in same.items():
        if given.workload is not None and not broken and rate == slowest:
            found += thresholds_in_force(members, *of, given.delay, given.workload, given.seconds)
        found += flows_told(members, *of, given.flows, given.seconds)
    return Counted(
        found,
        tuple(dict.fromkeys(queue.where for queue in queues)),
        tuple(nic.name for nic in counters.nics),
        (*strangers, *counters.left_out),
        given.seconds,
    )


def queues_of(
    counters: Counters, groups: Sequence[PortGroup], configs: Sequence[ConfigDB]
) -> tuple[list[Queue], tuple[str, ...]]:
    """Return the queues that counted of some ports of a switch's file, and the ports that are none of these."""
    names, behind, host = _of_file(configs)
    switches = {port.switch for port in counters.ports}
    ours = {host} if host in switches else switches  # another switch has another file
    queues, judged = [], set()
    for port in sorted(counters.ports, key=lambda each: (each.switch, natural(each.name))):
        name = names.get(port.name, port.name)
        where = " ".join([*([port.switch] if len(ours) > 1 else []), name + behind.get(name, "")])
        for group in groups:
            if port.switch in ours and name in group.names:
                queues.append(Queue(where, group.switch, port))
                judged.add(port.label)
    return queues, tuple(port.label for port in counters.ports if port.label not in judged)


def _strange(configs: Sequence[ConfigDB], strangers: Sequence[str]) -> InputError:
    return InputError(
        f"counters: no port of {configs[0].name} is among those that counted ({', '.join(strangers[:4])}); give "
        "counters of this switch, of ports that are audited"
    )


def shares_of(
    counters: Counters,
    groups: Sequence[PortGroup],
    configs: Sequence[ConfigDB],
    payload: float,
    seconds: float | None = None,
    workload: str | None = None,
) -> dict[str, Any]:
    """Return what `fluidcc.studies.Shares` takes: counts of the ports that are set like the first, and of all NICs.

    Raises
    ------
    InputError
        If none of these ports counted.
    """
    queues, strangers = queues_of(counters, alike(groups, groups[0].switch), configs)
    if not queues:
        raise _strange(configs, strangers)
    queues = [queue for queue in queues if queue.get("sent_packets") is not None]
    ports = marked_of(queues)
    pairs = [[nic.values.get(name) for name in ("marked_packets", "cnps_sent")] for nic in counters.nics]
    nics = [(marked, cnps) for marked, cnps in pairs if marked is not None and cnps is not None]
    loads = [load for queue in queues if (load := load_of(queue, seconds)) is not None]
    return {
        "sent": sum(port.sent for port in ports) if ports else None,
        "marked": sum(port.marked for port in ports) if ports else None,
        "marked_received": sum(marked for marked, _ in nics) if nics else None,
        "cnps": sum(cnps for _, cnps in nics) if nics else None,
        "load": sum(loads) / len(loads) / wire_share(payload) if loads else None,
        "workload": workload,
        "hosts": hosts_of(queues),
    }


def _of_file(configs: Sequence[ConfigDB]) -> tuple[dict[str, str], dict[str, str], str]:
    """Return ports by their aliases, what each one's description says is behind it, and the switch's name."""
    names, behind = {}, {}
    for config in configs:
        for name in config.table("PORT"):
            fields = config.entry("PORT", name)
            names[str(fields.get("alias", name))] = name
            if fields.get("description"):
                behind[name] = f" ({clip(fields['description']).strip(chr(39))})"
    metadata = configs[0].table("DEVICE_METADATA", needed=False).get("localhost")
    return names, behind, str(metadata.get("hostname", "")) if isinstance(metadata, dict) else ""


def natural(name: str) -> list[tuple[int, str]]:
    """Return a key that sorts names with numbers as one counts."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name, flags=re.ASCII)]


__all__ = ["Conditions", "Counted", "flows_told", "judge", "queues_of", "shares_of", "thresholds_in_force"]
