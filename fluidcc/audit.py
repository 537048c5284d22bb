"""Reading a switch's and a NIC's own configuration, and saying what is wrong with it and what to type instead."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from typing import Any

from scipy.optimize import brentq

from fluidcc.control.equilibrium import Equilibrium, equilibrium
from fluidcc.errors import InputError
from fluidcc.formats import MappedSetting, NicSettings, SwitchPort, dcqcn_of, read_nic, read_sonic
from fluidcc.parameters import resolve
from fluidcc.scenario import RED, Scenario
from fluidcc.schemes.dcqcn import DCQCN, PRESETS
from fluidcc.topologies import incast
from fluidcc.units import RATE, SIZE, TIME, parse, show

PRIORITIES = 8  # PFC priorities that DCQCN section 4 provides headroom for
_PAPER_RATE = parse("40Gbps", RATE)
_SCALE = 4.0  # thresholds this many times off the paper's, scaled with rate, are reported
_MOST_FLOWS = 1e6
_USED = 0.98  # share of the link below which it is reported


@dataclasses.dataclass(frozen=True)
class Finding:
    """One thing that was checked: ``severity`` is ok, warn or bad."""

    severity: str
    what: str
    why: str
    suggest: str = ""


@dataclasses.dataclass(frozen=True)
class Audit:
    """What a configuration amounts to.

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
    """

    switch: SwitchPort
    nic: NicSettings | None
    scheme: DCQCN
    mapping: list[MappedSetting]
    findings: list[Finding]
    equilibrium: Equilibrium | None
    flows: int

    def scenario(self, **options: Any) -> Scenario:
        """An incast into the port with the configured marking and parameters; options as of `topologies.incast`."""
        chosen = {"rate": self.switch.rate, "scheme": self.scheme, "marking": self.switch.red} | options
        return incast(chosen.pop("flows", self.flows), **chosen)

    def as_dict(self) -> dict[str, Any]:
        """Keys as in the CLI."""
        port = self.switch
        names = ("rate", "kmin", "kmax", "pmax", "ecn", "lossless", "queue", "priority", "ports", "profile")
        buffers = ("buffer_size", "headroom", "reserved", "xon", "dynamic_th")
        settings = {
            "port": port.name,
            **{_key(name): getattr(port, name) for name in (*names, *buffers)},
            "flows": self.flows,
            "nic": {row.parameter: row.value for row in self.mapping} or None,
            "mapping": [dataclasses.asdict(row) for row in self.mapping],
            "notes": list(port.notes),
            "ignored": [*port.ignored, *(self.nic.ignored if self.nic else ())],
        }
        return {
            "settings": settings,
            "findings": [dataclasses.asdict(finding) for finding in self.findings],
            "equilibrium": self.equilibrium.as_dict() if self.equilibrium else None,
            "stability": None,
        }


def _key(name: str) -> str:
    """A setting's name with its unit, as in JSON."""
    units = {"rate": "_bytes_per_s"} | dict.fromkeys(
        ("kmin", "kmax", "buffer_size", "headroom", "reserved", "xon"), "_bytes"
    )
    return name.removesuffix("_size") + units.get(name, "")


def audit(
    sonic: str | os.PathLike[str],
    nic: str | os.PathLike[str] | None = None,
    *,
    port: str | None = None,
    flows: int = 8,
) -> Audit:
    """Check a switch port's and a NIC's DCQCN settings against each other and against the paper.

    Parameters
    ----------
    sonic : path
        A SONiC ``config_db.json``.
    nic : path
        A NIC's settings (text, ``mlxconfig query`` output or the driver's folder); NVIDIA's defaults if not
        given.
    port : str
        The port; the first that is up and has a lossless queue with a WRED profile if not given.
    flows : int
        Flows that converge on the port, for the fixed point.

    Returns
    -------
    Audit

    Raises
    ------
    InputError
        If a file cannot be read or understood. Settings that are merely unwise are findings.
    """
    if not isinstance(flows, int) or not 1 <= flows <= _MOST_FLOWS:
        raise InputError(f"flows: expected a whole number from 1 to {_MOST_FLOWS:.0f}, not {flows!r}")
    switch = read_sonic(sonic, port)
    settings = read_nic(nic) if nic is not None else None
    scheme, mapping = dcqcn_of(settings) if settings is not None else (PRESETS["vendor"][0], [])
    scheme = resolve(scheme)
    findings = [*_marking(switch), *_scaling(switch, sonic), *_buffers(switch), *_nic(switch, settings, scheme)]
    rest = None
    if switch.red is not None and not any(f.severity == "bad" and f.what in _UNUSABLE for f in findings):
        scenario = incast(1, rate=switch.rate, scheme=scheme, marking=switch.red, multiplicity=float(flows))
        rest = equilibrium(scenario)
        findings += [*_fixed_point(switch.red, rest, scenario, flows), *_behaviour(scenario, flows)]
    order = {"bad": 0, "warn": 1, "ok": 2}
    findings.sort(key=lambda f: order[f.severity])
    return Audit(switch, settings, scheme, mapping, findings, rest, flows)


_NO_ECN, _REVERSED, _NO_PMAX = "ECN is off", "Kmax is below Kmin", "Pmax is 0"
_UNUSABLE = (_NO_ECN, _REVERSED, _NO_PMAX)


def _marking(port: SwitchPort) -> Iterator[Finding]:
    where = f"queue {port.queue} of {port.name}"
    if not port.lossless:
        yield Finding(
            "warn",
            "PFC is off",
            f"{where} is not lossless; RoCE flows start at line rate and rely on PFC until feedback arrives (section 4)",
            f"add priority {port.priority} to pfc_enable of PORT_QOS_MAP|{port.name}",
        )
    if port.red is None or not port.ecn:
        why = "has no WRED profile" if port.red is None else f"has profile {port.profile} with ECN off, so it drops"
        yield Finding("bad", _NO_ECN, f"{where} {why}: senders get no feedback but PAUSE", 'set "ecn": "ecn_all"')
        if port.red is None:
            return
    assert port.kmin is not None and port.kmax is not None and port.pmax is not None
    kmin, kmax = show(port.kmin, SIZE), show(port.kmax, SIZE)
    if port.kmax < port.kmin:
        yield Finding("bad", _REVERSED, f"green_max_threshold {kmax} < green_min_threshold {kmin}", "exchange the two")
    elif port.kmax == port.kmin:
        yield Finding(
            "warn",
            "marking is a cut-off",
            f"Kmin = Kmax = {kmin}: the fluid model has no fixed point, and flows over several bottlenecks starve "
            "(sections 5.2 and 7)",
            f"raise Kmax to {show(40 * port.kmin, SIZE)} with a drop probability of 1 %",
        )
    if port.pmax <= 0:
        yield Finding("bad", _NO_PMAX, "nothing is marked below Kmax and everything above", "set drop probability 1")


def _scaling(port: SwitchPort, sonic: str | os.PathLike[str]) -> Iterator[Finding]:
    if port.red is None or port.kmax is None or port.kmin is None:
        return
    paper: RED = resolve(DCQCN.default_marking)
    wanted = paper.kmin * port.rate / _PAPER_RATE, paper.kmax * port.rate / _PAPER_RATE
    drain, ratio = port.kmax / port.rate, port.kmax / wanted[1]
    scaled = f"Kmax {show(port.kmax, SIZE)} is {show(drain, TIME)} of this link; the paper's is {show(wanted[1] / port.rate, TIME)}"
    if not 1 / _SCALE <= ratio <= _SCALE:
        yield Finding(
            "warn",
            "thresholds are not scaled with port speed",
            f"{scaled}: {'queues will be long' if ratio > 1 else 'marking will be harsh'}",
            f"at {show(port.rate, RATE)} the paper's settings scale to Kmin {show(wanted[0], SIZE)}, "
            f"Kmax {show(wanted[1], SIZE)}; sweep around them",
        )
    else:
        yield Finding("ok", "thresholds scaled with port speed", scaled)
    others = _other_speeds(port, sonic)
    if others:
        yield Finding(
            "warn",
            "one profile for several speeds",
            f"{port.profile} also serves {', '.join(others)}",
            "give each speed its own WRED_PROFILE, with thresholds in proportion",
        )


def _other_speeds(port: SwitchPort, sonic: str | os.PathLike[str]) -> list[str]:
    """One port of each other speed whose RoCE queue has the same profile."""
    from fluidcc.formats.config_db import ConfigDB

    config = ConfigDB(sonic)
    first: dict[str, str] = {}
    for name in config.table("PORT"):
        first.setdefault(str(config.entry("PORT", name).get("speed")), name)
    found = []
    for name in first.values():
        try:
            other = read_sonic(sonic, name)
        except InputError:
            continue  # a port without such a queue, or one that is itself broken, is not what was asked about
        if other.rate != port.rate and other.profile == port.profile:
            found.append(f"{other.name} at {show(other.rate, RATE)}")
    return found


def ecn_bound(buffer: float, headroom: float, ports: int, beta: float, priorities: int = PRIORITIES) -> float:
    """Largest t_ECN that marks before any PAUSE in the worst case, DCQCN section 4 [bytes].

    beta (B - 8 n t_flight) / (8 n (beta + 1)), with 8 for the priorities.
    """
    return beta * (buffer - priorities * ports * headroom) / (priorities * ports * (beta + 1))


def _buffers(port: SwitchPort) -> Iterator[Finding]:
    if not port.lossless or port.kmin is None:
        return
    if port.buffer_size is None or port.headroom is None or port.beta is None:
        yield Finding(
            "warn",
            "PFC before ECN not checked",
            "the file gives no BUFFER_POOL size, headroom (xoff) or dynamic_th for this queue's priority group",
            f"add BUFFER_PG|{port.name}|{port.priority} with a BUFFER_PROFILE",
        )
        return
    bound = ecn_bound(port.buffer_size, port.headroom, port.ports, port.beta)
    used = max(1, len(port.lossless_priorities))
    fewer = ecn_bound(port.buffer_size, port.headroom, port.ports, port.beta, used)
    text = (
        f"section 4's t_ECN < beta(B - 8 n t_flight)/(8 n (beta + 1)) with beta {port.beta:g}, B {show(port.buffer_size, SIZE)}, "
        f"n {port.ports}, t_flight {show(port.headroom, SIZE)} gives {_bytes(bound)} (with the {used} priorities in use, "
        f"{_bytes(fewer)}); Kmin is {show(port.kmin, SIZE)}"
    )
    if port.kmin < bound:
        yield Finding("ok", "ECN marks before PFC pauses", text)
        return
    raised = next(
        (th for th in range(-4, 8) if ecn_bound(port.buffer_size, port.headroom, port.ports, 2.0**th) > port.kmin), None
    )
    hint = (
        f"lower green_min_threshold below {_bytes(bound)}"
        if bound > 0
        else "lower the headroom (xoff) or enlarge the pool"
    )
    yield Finding(
        "warn",
        "PFC can pause before ECN marks",
        text + "; a bound for the worst case, in which all queues of the switch fill from one port",
        hint + (f", or raise dynamic_th to {raised}" if raised is not None else ""),
    )


def _bytes(value: float) -> str:
    return show(value, SIZE) if value > 0 else "nothing: the headroom alone exceeds the buffer"


def _nic(port: SwitchPort, nic: NicSettings | None, scheme: DCQCN) -> Iterator[Finding]:
    if nic is None:
        yield Finding("warn", "no NIC settings", "NVIDIA's defaults are taken for the senders", "give --nic FILE")
    else:
        mask = nic.given.get("roce_cc_prio_mask")
        if mask is not None and not int(mask) >> port.priority & 1:
            yield Finding(
                "bad",
                "DCQCN is off for this priority",
                f"roce_cc_prio_mask = {int(mask)} leaves out priority {port.priority}",
                f"set ROCE_CC_PRIO_MASK to {int(mask) | 1 << port.priority}",
            )
    cnp, alpha, timer = scheme.cnp_interval, scheme.alpha_timer, scheme.timer
    if alpha < cnp:
        yield Finding(
            "ok",
            "alpha's period is shorter than the CNP interval",
            f"{show(alpha, TIME)} < {show(cnp, TIME)}: equation (7) would count one CNP in several periods; the model "
            "takes (alpha_timer/cnp_interval)(1-(1-p)^(cnp_interval R)) instead, which is ours",
        )
    if timer < cnp:
        yield Finding(
            "warn",
            "rates rise between CNPs",
            f"rpg_time_reset {show(timer, TIME)} is below the CNP interval {show(cnp, TIME)} (section 5.2)",
            f"raise it above {cnp * 1e6:g}",
        )
    events = scheme.byte_counter / port.rate
    if events < timer:
        wanted = 10 * timer * port.rate
        yield Finding(
            "warn",
            "the byte counter dominates the rate increase",
            f"rpg_byte_reset fires every {show(events, TIME)} at line rate, the timer every {show(timer, TIME)}: the faster "
            "flow grows faster, against fairness (section 5.2)",
            f"raise rpg_byte_reset (the paper's 10 MB; {show(wanted, SIZE)} is ten timers), or shorten rpg_time_reset",
        )


def _fixed_point(red: RED, rest: Equilibrium, scenario: Scenario, flows: int) -> Iterator[Finding]:
    found = rest.as_dict()
    p, queue = found["marking_probability"], found["queue_bytes"]
    if p == 0:
        yield Finding("ok", "the port is not overloaded", f"{flows} flows at line rate fit")
    elif rest.exists:
        text = f"{flows} flows rest at a queue of {show(queue, SIZE)} with p* = {p:.3g} < Pmax = {red.pmax:g}"
        yield Finding("ok", "a fixed point exists", text)
    elif red.kmax > red.kmin:
        most = _most_flows(scenario, red.pmax)
        yield Finding(
            "warn",
            f"no fixed point with {flows} flows",
            f"it would need p* = {p:.3g} > Pmax = {red.pmax:g}; marking jumps to 1 at Kmax, and the queue cycles. "
            f"Pmax is reached at {most:.1f} flows",
            f"raise the drop probability above {100 * p:.2g} %",
        )


def _behaviour(scenario: Scenario, flows: int) -> Iterator[Finding]:
    """What the fluid model does from a start at line rate; a fixed point may exist and not be reached."""
    from fluidcc.simulate import simulate

    opens, closes = "50ms", "100ms"
    summary = simulate(scenario, closes, window=(opens, closes), estimate_error=False).summary
    used, queue = summary["utilisation"], summary["queue_bytes"]
    if used is None or queue["mean"] is None:
        yield Finding("warn", "the simulation does not stay finite", "some setting is out of the model's reach")
        return
    text = (
        f"from {opens} to {closes} after {flows} flows started at line rate, the link is used to {100 * used:.3g} % and the "
        f"queue is {show(queue['p5'], SIZE)} to {show(queue['p95'], SIZE)} (5 to 95 %), mean {show(queue['mean'], SIZE)}"
    )
    if used < _USED:
        yield Finding("warn", "the link is left idle", text, "sweep kmin, kmax, pmax and g: fluidcc sweep dcqcn --from ...")
    elif queue["p95"] - queue["p5"] > queue["mean"]:
        yield Finding("warn", "the queue keeps swinging", text, "a smaller g or a larger Kmax - Kmin damps it; sweep both")
    else:
        yield Finding("ok", "the flows settle", text)


def _most_flows(scenario: Scenario, pmax: float) -> float:
    """Number of flows at which p* reaches Pmax."""
    room = 1.0 + 1e-9  # fewer than one line-rate flow do not load the link

    def over(flows: float) -> float:
        flow = dataclasses.replace(scenario.flows[0], multiplicity=flows)
        return equilibrium(dataclasses.replace(scenario, flows=(flow,))).links[0]["marking_probability"] - pmax

    return brentq(over, room, scenario.flows[0].multiplicity) if over(room) < 0 else room
