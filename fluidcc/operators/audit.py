"""Reading a switch's and a NIC's own configuration, and saying what is wrong with it and what to type instead."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fluidcc.builders import incast
from fluidcc.errors import InputError
from fluidcc.files import refuse_special
from fluidcc.operators import (
    MappedSetting,
    NicSettings,
    SwitchPort,
    behaviour,
    checks,
    dcqcn_of,
    dialect,
    lossless,
    missing_parts,
    read_nic,
    thresholds,
)
from fluidcc.operators.behaviour import Reach, reach
from fluidcc.operators.commands import Commands, commands_of
from fluidcc.operators.config_db import Assumed, ConfigDB
from fluidcc.operators.counted import Conditions, Counted, judge
from fluidcc.operators.counters import Counters, read_growth
from fluidcc.operators.finding import Finding
from fluidcc.operators.ports import ALL, PortGroup, alike, forgotten, read_ports, shown
from fluidcc.results.result import Comparable
from fluidcc.scenario.frames import IN_BUFFER, framed, payloads, said, wire_share
from fluidcc.scenario.model import Scenario
from fluidcc.scenario.parameters import resolve
from fluidcc.schemes.dcqcn import DCQCN, PRESETS
from fluidcc.surface import constructor, keywords, public
from fluidcc.units import RATE, SIZE, TIME, quantity, show, whole

if TYPE_CHECKING:
    from fluidcc.theory.control.equilibrium import Equilibrium

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

_MOST_FLOWS = 1e6
_MOST_RUNS = 1000
_LINKS = 4  # that a packet and its ACK cross, through one switch
_RTT, _LONGEST = 4e-6, 0.01  # s
_ORDER = ("bad", "warn", "ok")


@constructor()
@dataclasses.dataclass(frozen=True, eq=False)
class Audit(Comparable):
    """Outcome of an audit.

    Parameters
    ----------
    switch : SwitchPort
    nic : NicSettings or None
    scheme : DCQCN
        The NIC's parameters, or NVIDIA's defaults.
    mapping : list of MappedSetting
        Where each parameter comes from; empty without a NIC.
    findings : list of Finding
    equilibrium : Equilibrium or None
        Fixed point of ``flows`` flows into the port; None if the port cannot mark.
    flows : int
    reach : Reach or None
        Whether the fixed point is stable, and reached from a start at line rate.
    behaviour : dict or None
        Metrics late after a start at line rate (`fluidcc.operators.behaviour.measured`), and under ``packets`` those
        of the packet engine (`fluidcc.operators.behaviour.packets`).
    names : tuple of str
        Ports that are set like this one.
    others : tuple of Audit
        The other groups of ports and priorities that were asked for, the worst first; this one is the worst of all.
    left_out : tuple of str
        Ports that were not checked, as they have neither PFC nor a WRED profile and others do.
    path : str
        The switch's file.
    rtt : float
        Round trip of an empty network [s].
    payloads : tuple of float
        Sizes of packets that were run [bytes]; the findings are those of the first, which does worst.
    frames : str
        Description of these sizes and their source.
    counted : Counted or None
        What counters of switches and NICs say, where they were given.
    """

    switch: SwitchPort
    nic: NicSettings | None
    scheme: DCQCN
    mapping: list[MappedSetting]
    findings: list[Finding]
    equilibrium: Equilibrium | None
    flows: int
    reach: Reach | None = None
    behaviour: dict[str, Any] | None = None
    names: tuple[str, ...] = ()
    others: tuple[Audit, ...] = ()
    left_out: tuple[str, ...] = ()
    path: str = ""
    rtt: float = _RTT
    payloads: tuple[float, ...] = (4096.0,)
    frames: str = ""
    counted: Counted | None = None

    @property
    def shown(self) -> tuple[str, ...]:
        """Names of the ports as they are printed: after their ASIC's where there are several."""
        return tuple(shown(self.switch.asic, name) for name in self.names)

    @property
    def groups(self) -> tuple[Audit, ...]:
        """Audits of all groups, the worst first."""
        return (self, *self.others)

    @public()
    def count(self, severity: str) -> int:
        """Count the findings of one severity.

        Parameters
        ----------
        severity : {"bad", "warn", "ok"}

        Returns
        -------
        int
        """
        return sum(finding.severity == severity for finding in self.findings)

    @public(passes_on=keywords(incast))
    def scenario(self, **options: Any) -> Scenario:
        """An incast into the port with the configured marking and parameters; options as of `topologies.incast`.

        Parameters
        ----------
        **options
            As of `fluidcc.incast`, in place of the configured ones.

        Returns
        -------
        Scenario
        """
        of_port = {"rate": self.switch.rate, "delay": self.rtt / _LINKS, "marking": self.switch.red}
        chosen = {**of_port, "scheme": self.scheme} | options
        [payload] = payloads(None, chosen.pop("packet_size", self.payloads[0]))
        return framed(incast(chosen.pop("flows", self.flows), **chosen), payload)

    @public()
    def commands(self, changes: Mapping[str, Any]) -> Commands:
        """Return what to type on the switch and the NIC for other settings, and to undo them.

        Parameters
        ----------
        changes : mapping
            Values in SI, or texts with units, of ``kmin``, ``kmax``, ``pmax`` and the NIC's parameters: ``g``,
            ``timer``, ``rate_ai`` and so on.

        Returns
        -------
        Commands
            For all ports that were audited and have the speed, the WRED profile and the thresholds of this one.

        Raises
        ------
        InputError
            If a name is no such setting, or a device does not take a value.
        """
        from fluidcc.builders.names import dimension_of

        values = {name: quantity(value, dimension_of(name), name) for name, value in changes.items()}
        groups = [PortGroup(each.names, each.switch) for each in self.groups]
        return commands_of(self.path, alike(groups, self.switch), self.nic, values)

    @public()
    def as_dict(self) -> dict[str, Any]:
        """Return keys as in the CLI: of the worst group, ``ports`` with all, and ``counters`` where they were given."""
        ports = [{"names": list(each.shown), "priority": each.switch.priority, **each._one()} for each in self.groups]
        counted = {} if self.counted is None else {"counters": self.counted.as_dict()}
        return {"ports": ports, **self._one(), **counted}

    def _one(self) -> dict[str, Any]:
        """Return keys of this group of ports alone."""
        port = self.switch
        names = ("rate", "kmin", "kmax", "pmax", "ecn", "lossless", "queue", "priority", "ports", "profile")
        buffers = ("buffer_size", "headroom", "reserved", "xon", "dynamic_th", "static_th", "queue_limit")
        settings = {
            "port": shown(port.asic, port.name),
            "system": port.system,
            **{_key(name): getattr(port, name) for name in (*names, *buffers)},
            "flows": self.flows,
            "rtt_s": self.rtt,
            "packet_size_bytes": list(self.payloads),
            "packet_bytes": list(self.payloads),
            "header_bytes": IN_BUFFER,
            "nic": {row.parameter: row.value for row in self.mapping} or None,
            "mapping": [dataclasses.asdict(row) for row in self.mapping],
            "notes": list(port.notes),
            "ignored": [*port.ignored, *(self.nic.ignored if self.nic else ())],
            "assumed": self.nic.assumed if self.nic else "",
        }
        return {
            "settings": settings,
            "findings": [dataclasses.asdict(finding) for finding in self.findings],
            "equilibrium": self._equilibrium(),
            "stability": self.reach.stability.as_dict() if self.reach else None,
            "behaviour": self.behaviour,
        }

    def _equilibrium(self) -> dict[str, Any] | None:
        if self.equilibrium is None or self.reach is None:
            return None
        return {**self.equilibrium.as_dict(), "reached_from_line_rate": self.reach.from_line_rate}


def _key(name: str) -> str:
    """A setting's name with its unit, as in JSON."""
    units = {"rate": "_bytes_per_s"} | dict.fromkeys(
        ("kmin", "kmax", "buffer_size", "headroom", "reserved", "xon", "static_th", "queue_limit"), "_bytes"
    )
    return name.removesuffix("_size") + units.get(name, "")


@public()
def audit(
    sonic: str | os.PathLike[str],
    nic: str | os.PathLike[str] | None = None,
    *,
    port: str | None = ALL,
    flows: int = 8,
    rtt: Any = "4us",
    packets: int = 2,
    packet_size: Any = None,
    rate: Any = "100Gbps",
    buffer: Any = None,
    counters: Paths = (),
    before: Paths = (),
    interval: Any = None,
    workload: str | None = None,
) -> Audit:
    """Check a switch's and a NIC's DCQCN settings against each other, the paper, and what flows do with them.

    Parameters
    ----------
    sonic : path
        A SONiC ``config_db.json``, a dump of its database, one of several ASICs; or as text what SONiC's ``show ecn``
        and ``show pfc priority`` print, or the configuration of Arista EOS, Cisco NX-OS, NVUE or Junos.
    nic : path
        A NIC's settings (text, ``mlxconfig query`` output or the driver's folder); NVIDIA's defaults if not
        given.
    port : str
        Names or aliases of ports, with commas between; "all", those that are up, by default. Of each, its lossless
        priorities; ports and priorities that are set alike are checked once.
    flows : int
        Flows that converge on the port.
    rtt : quantity
        Round trip of an empty network [s].
    packets : int
        Runs of the packet engine for each kind of port, which have the last word; 0 for none. Of more than 64 flows
        there are none.
    packet_size : quantity or None
        Payload of a packet [bytes]; None: the NIC's active MTU, or where that is not known 1024 and 4096, of which
        the worse is reported.
    rate : quantity
        Speed of ports of which the file gives none, as other systems' texts may [bytes/s].
    buffer : quantity, optional
        What a queue may fill, for files that give thresholds as shares of it (Junos) [bytes].
    counters : path or sequence of path
        Counters of switches and NICs, as `fluidcc.operators.counters.read_counters` reads them: they are compared with
        what the settings make.
    before : path or sequence of path
        The same, read earlier: what was counted since is judged. Without it, all since the counters were cleared.
    interval : quantity, optional
        Time in which was counted [s]; needed for rates.
    workload : {"web-search", "hadoop", "alibaba-storage"}, optional
        Traffic of the hosts: marks are compared with those of packets, at the load that was counted.

    Returns
    -------
    Audit
        Of the worst group of ports; `Audit.groups` has all.

    Raises
    ------
    InputError
        If a file cannot be read or understood. Settings that are merely unwise are findings.
    """
    flows = whole(flows, 1, _MOST_FLOWS, "flows")
    packets = whole(packets, 0, _MOST_RUNS, "packets")
    trip = quantity(rtt, TIME, "rtt")
    if not 0 < trip <= _LONGEST:
        raise InputError(f"rtt: {show(trip, TIME)} is no round trip of a datacenter; write for example 10us")
    seconds = None if interval is None else quantity(interval, TIME, "interval")
    read = _counters(counters, before, seconds, workload)
    refuse_special(sonic, "a switch's config_db.json")  # it is read more than once
    assumed = Assumed(quantity(rate, RATE, "rate"), None if buffer is None else quantity(buffer, SIZE, "buffer"))
    if not (assumed.rate > 0 and (assumed.buffer is None or assumed.buffer > 0)):
        raise InputError("rate, buffer: give them above 0, for example 400Gbps and 16MB")
    configs = {config.asic: config for config in ConfigDB.all(sonic, assumed)}
    first = next(iter(configs.values()))
    groups, left_out = read_ports(sonic, port, assumed)
    beside = forgotten([*configs.values()], groups, left_out)
    settings = read_nic(nic) if nic is not None else None
    (scheme, mapping), sizes = _scheme_of(settings), payloads(settings, packet_size)
    frames = said(sizes, settings, given=packet_size is not None)
    counted = None
    if read is not None:  # before the runs: what cannot be judged is refused at once
        given = Conditions(scheme, sizes, trip / _LINKS, flows, seconds, workload)
        counted = judge(read, groups, [*configs.values()], given)
    runs: dict[Any, _Runs] = {}  # ports that mark alike behave alike
    found = []
    for group in groups:
        switch = group.switch
        config = configs.get(switch.asic, first)
        findings = _as_read(switch, config, settings, sizes, trip)
        as_read = _counts(findings)
        findings += missing_parts.forgotten(switch, beside.pop(shown(switch.asic, switch.name), ()))
        findings += checks.least_rates(switch, scheme, flows, min(map(wire_share, sizes)))
        ran = None
        if switch.red is not None and not any(f.severity == "bad" and f.what in checks.UNUSABLE for f in findings):
            same = (switch.rate, switch.red, switch.pauses, switch.buffer_size, switch.beta, switch.static_th)
            same += (thresholds.most(switch),)
            if same not in runs:
                runs[same] = _worst([_run(switch, scheme, flows, trip, packets, size) for size in sizes])
            ran = runs[same]
            findings += checks.fixed_point(switch, switch.red, ran.equilibrium, ran.scenario, flows, ran.reach.words)
            findings += _late(switch, flows, ran)
        files = os.fspath(sonic), None if nic is None else os.fspath(nic)
        if not config.is_sonic:
            findings = [dialect.in_words(finding, switch, config.system) for finding in findings]
        findings = [finding.of_ports(group.names) for finding in findings]
        findings = [_listed_alone(config, finding).within(config.asic).of_files(*files) for finding in findings]
        findings.sort(key=lambda finding: _ORDER.index(finding.severity))
        point, reached, behaves = (ran.equilibrium, ran.reach, ran.behaviour) if ran else (None, None, None)
        one = Audit(
            *(switch, settings, scheme, mapping, findings, point, flows),
            reach=reached,
            behaviour=behaves,
            names=group.names,
            path=files[0],
            rtt=trip,
            payloads=(ran.payload, *(size for size in sizes if size != ran.payload)) if ran else sizes,
            frames=frames,
        )
        found.append((as_read, _counts(findings), one))
    worst, *others = _ordered(found)
    return dataclasses.replace(worst, others=tuple(others), left_out=tuple(left_out), counted=counted)


def _counters(paths: Paths, before: Paths, seconds: float | None, workload: str | None) -> Counters | None:
    """Read counters, or their growth; None if there are none."""
    late, early = ([each] if isinstance(each, (str, os.PathLike)) else list(each) for each in (paths, before))
    if not late:
        for name, given in (("before", early), ("interval", seconds), ("workload", workload)):
            if given:
                raise InputError(f"{name}: it is of counters, and none are given; write --counters FILE")
        return None
    if workload is not None:
        from fluidcc.builders.workloads import check_workload

        check_workload(workload)
    return read_growth(late, early, seconds)


def _ordered(found: Sequence[tuple[Any, Any, Audit]]) -> list[Audit]:
    """Order audits by their faults as read, and by those after runs; the first of all by the former alone.

    So it is the port that other commands take, by `worst_first`, without runs.
    """
    worst = min(found, key=lambda each: each[0])
    others = sorted((each for each in found if each is not worst), key=lambda each: each[:2])
    return [one for *_, one in (worst, *others)]


def worst_first(
    sonic: str | os.PathLike[str], nic: str | os.PathLike[str] | None = None, port: str | None = ALL
) -> list[PortGroup]:
    """Order kinds of ports as an audit does, without runs: the one with the most faults that can be read comes first.

    Those that do not mark come last: there is nothing to run.

    Parameters
    ----------
    sonic, nic, port
        As of `audit`.

    Returns
    -------
    list of PortGroup

    Raises
    ------
    InputError
        If a file cannot be read or understood.
    """
    configs = {config.asic: config for config in ConfigDB.all(sonic)}
    settings = None if nic is None else read_nic(nic)
    first, sizes = next(iter(configs.values())), payloads(settings, None)

    def faults(group: PortGroup) -> tuple[int, ...]:
        switch = group.switch
        found = _as_read(switch, configs.get(switch.asic, first), settings, sizes, _RTT)
        return (switch.red is None or not switch.ecn), *_counts(found)

    return sorted(read_ports(sonic, port)[0], key=faults)


def _as_read(
    switch: SwitchPort, config: ConfigDB, nic: NicSettings | None, sizes: Sequence[float], trip: float
) -> list[Finding]:
    """List what reading alone finds."""
    in_buffer = [size + IN_BUFFER for size in sizes]
    if switch.paused_in_vain:
        stray = [each for each in lossless.traffic(switch, nic) if each.what == lossless.STOPS_ANOTHER]
        return [*missing_parts.whole(switch), *(stray or lossless.paused_in_vain(switch))]
    return [
        *missing_parts.whole(switch),
        *missing_parts.speed(switch),
        *missing_parts.strays(switch),
        *checks.shaper(switch),
        *checks.algorithm(nic),
        *checks.next_boot(nic),
        *lossless.marked_in_vain(switch),
        *checks.marking(switch),
        *checks.scaling(switch, config, trip),
        *thresholds.packets_and_thresholds(switch, in_buffer),
        *thresholds.room(switch),
        *checks.buffers(switch, in_buffer),
        *lossless.traffic(switch, nic),
        *lossless.host(switch, nic),
        *lossless.headroom(switch),
        *lossless.watchdog(switch),
        *checks.nic(switch, nic, _scheme_of(nic)[0]),
    ]


def _scheme_of(nic: NicSettings | None) -> tuple[DCQCN, list[MappedSetting]]:
    """Return the NIC's parameters, or NVIDIA's defaults, and where they are from."""
    scheme, mapping = dcqcn_of(nic) if nic is not None else (PRESETS["vendor"].scheme, [])
    return resolve(scheme), mapping


def _counts(findings: Sequence[Finding]) -> tuple[int, ...]:
    """Return how bad findings are, the worse the less."""
    return tuple(-sum(each.severity == severity for each in findings) for severity in _ORDER[:2])


def _late(switch: SwitchPort, flows: int, ran: _Runs) -> Iterator[Finding]:
    """Yield what the flows do late, by packets where these contradict the faster engine."""
    red, limit = switch.red, thresholds.most(switch)
    if red is None:
        return

    def judged(figures: dict[str, Any]) -> list[Finding]:
        return [*behaviour.behaviour(figures, flows, red, limit)]

    hybrid, packets = judged(ran.behaviour), ran.behaviour["packets"]
    if packets is not None:
        whose = behaviour.buffer_in_words(switch)
        yield from behaviour.after_packets(hybrid, ran.behaviour, packets, ran.packet, judged, whose)
        return
    yield from hybrid
    if ran.behaviour["engine"] != "fluid" and not any(
        each.what in (behaviour.PAUSED, behaviour.TWO_WAYS) for each in hybrid
    ):
        yield from behaviour.apart(ran.behaviour["queue_bytes"], ran.fluid, ran.packet)


def _listed_alone(config: ConfigDB, finding: Finding) -> Finding:
    """Drop changes of ports that share an entry with others: which of these are meant is for the user to say."""
    ports = config.table("PORT_QOS_MAP", needed=False)
    missing = [f"/PORT_QOS_MAP/{name}/" for key in ports for name in key.split(",") if name not in ports]
    return dataclasses.replace(finding, apply=tuple(c for c in finding.apply if not c.path.startswith(tuple(missing))))


@dataclasses.dataclass(frozen=True)
class _Runs:
    """Results of runs of flows into a port."""

    scenario: Scenario
    equilibrium: Equilibrium
    reach: Reach
    behaviour: dict[str, Any]
    packet: float  # in a buffer [bytes]
    payload: float
    fluid: dict[str, Any]  # percentiles of its queue


def _worst(runs: Sequence[_Runs]) -> _Runs:
    """Return the run, of several packet sizes, with most drops; of equal ones that which uses the link least."""

    def rank(run: _Runs) -> tuple[float, float]:
        found = run.behaviour["packets"] or {}
        used = found.get("utilisation", run.behaviour["utilisation"])
        return -found.get("drops", 0.0), 1.0 if used is None else used

    worst = min(runs, key=rank)
    others = [run for run in runs if run is not worst]
    worst.behaviour["packet_size_bytes"] = worst.payload
    worst.behaviour["other_sizes"] = [{"packet_size_bytes": run.payload, **run.behaviour} for run in others]
    return worst


def _run(switch: SwitchPort, scheme: DCQCN, flows: int, rtt: float, packets: int, payload: float) -> _Runs:
    settled = dataclasses.replace(scheme, rate_on_first_cnp=0.0)  # the fluid has no first CNP
    like = {"rate": switch.rate, "delay": rtt / _LINKS, "marking": switch.red}
    scenario = framed(incast(1, scheme=settled, multiplicity=float(flows), **like), payload)
    from fluidcc.theory.control.equilibrium import equilibrium

    fixed_point, late = equilibrium(scenario), behaviour.late(scenario)
    reached = reach(scenario, fixed_point, late["queue_bytes"], thresholds.most(switch))

    def together(seed: int) -> Scenario:
        most = min(flows, behaviour.MOST_FLOWS + 1)
        return behaviour.together(switch, scheme, most, rtt / _LINKS, payload, seed)

    behaves = behaviour.measured(together, late, switch.name)
    refereed = None
    if packets and flows <= behaviour.MOST_PACKET_FLOWS:
        refereed = behaviour.packets(together, packets, switch.name)
    packet = payload + IN_BUFFER
    return _Runs(scenario, fixed_point, reached, {**behaves, "packets": refereed}, packet, payload, late["queue_bytes"])


__all__ = ["Audit", "Finding", "audit"]
