"""Checks of an audit, one function per subject; each yields findings."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from scipy.optimize import root_scalar

from fluidcc.errors import InputError
from fluidcc.operators import NicSettings, SwitchPort
from fluidcc.operators.capacity import PACKETS, advice, least_kmin, shown, thresholds
from fluidcc.operators.capacity import most as most_bytes
from fluidcc.operators.config_db import ConfigDB
from fluidcc.operators.finding import Change, Finding, set_fields, set_registers, typed
from fluidcc.operators.nic_switches import switched_off
from fluidcc.operators.nvidia_settings import NEVER
from fluidcc.operators.reference_thresholds import guide, yardsticks
from fluidcc.operators.registers import BITS
from fluidcc.operators.roce_queue import choose_queue
from fluidcc.operators.sonic import describe
from fluidcc.scenario.model import RED, Scenario
from fluidcc.schemes.dcqcn import DCQCN
from fluidcc.units import RATE, SIZE, TIME, show

if TYPE_CHECKING:
    from fluidcc.theory.control.equilibrium import Equilibrium

PRIORITIES = 8  # PFC priorities that DCQCN section 4 provides headroom for
_SCALE = 4.0  # thresholds this many times off the paper's, scaled with rate, are reported
_ROOM = 0.999  # of a port, for all flows at their least rate
_MBPS = 1e6 / 8
# Alphas that chips have, 1/128 to 8 (the paper's beta): sonic-buildimage's buffer templates.
_POWERS = range(-7, 4)
_LARGEST_POOL = 200e6  # bytes; chips without memory beside them have less
_LARGEST_BYTE_RESET = 2 ** BITS["rpg_byte_reset"] - 1
_QUICK_TIMER, _MORE_CUTS = 100, 10  # us, of NICs that grow by it alone; cuts in the time of an increase, at the least


_NO_RAMP = "enlarge the buffer: it holds no ramp of two packets"
_NO_ECN, _REVERSED, _NO_PMAX = "ECN is off", "Kmax is below Kmin", "Pmax is 0"
_TOO_MANY = "more flows than their least rate allows"
UNUSABLE = (_NO_ECN, _REVERSED, _NO_PMAX, _TOO_MANY)


def marking(port: SwitchPort) -> Iterator[Finding]:
    """Check ECN and PFC of the queue, and the order of its thresholds."""
    where = f"queue {port.queue} of {port.name}"
    for line, why, instead in port.overrides:
        yield Finding(
            "warn", "a line overrides others", f"{port.name}: `{line}`: {why}", instead.replace("{port}", port.name)
        )
    if port.negotiated and port.lossless_priorities:
        yield Finding(
            "warn",
            "PFC depends on DCBX",
            f"{where} is lossless only where the other end agrees by DCBX ({port.negotiated}): it is taken not to be, "
            "and the file does not say",
            f"turn PFC on for priority {port.priority}, whatever the other end says",
        )
    elif not port.lossless and port.priority not in port.lossless_priorities and not port.marked_in_vain:
        # Where the priority is lossless, a line above says why the queue is not.
        others = f", PFC is on for priority {_listed(port.lossless_priorities)}" if port.lossless_priorities else ""
        yield Finding(
            "warn",
            "PFC is off",
            f"{where} is not lossless{others}; RoCE flows start at line rate and need PFC until feedback comes "
            "(section 4)",
            f"add priority {port.priority} to pfc_enable of PORT_QOS_MAP|{port.name}",
            set_fields(
                "PORT_QOS_MAP",
                port.name,
                pfc_enable=_listed({*port.lossless_priorities, port.priority, *port.marking_alone}),
            ),
        )
    if port.unread:
        yield Finding(
            "warn",
            "marking was not read",
            f"{where} marks by `{port.unread}`, from which two thresholds and a whole percent could not be "
            "read: nothing was simulated",
            "give both thresholds, in bytes or as Junos's fill levels, and a probability in whole percent",
        )
    elif not port.profile or not port.ecn:
        why = "has no WRED profile" if not port.profile else f"has profile {port.profile} with ECN off, so it drops"
        if port.refused:
            why = f"has profile {port.profile}, which the switch refuses for its {port.refused}: words are lower-case"
        tried = advice(port)
        values = f"green_min_threshold {tried[0]}, green_max_threshold {tried[1]}" if tried else "thresholds that fit"
        anew = (
            f'add a WRED_PROFILE with "ecn": "ecn_all", "wred_green_enable": "true", {values} '
            f"and green_drop_probability 1, and name it as wred_profile of QUEUE|{port.name}|{port.queue}"
        )
        both = 'set "ecn": "ecn_all" and "wred_green_enable": "true"'
        fields = {"ecn": "ecn_all"} | ({"wred_green_enable": "true"} if port.refused else {})
        yield Finding(
            "bad",
            _NO_ECN,
            f"{where} {why}: senders get no feedback but PAUSE",
            (both if port.refused else 'set "ecn": "ecn_all"') if port.profile else anew,
            () if not port.profile else set_fields("WRED_PROFILE", port.profile, **fields),
        )
    elif not port.wred_green:
        said = "is false" if port.wred_green is False else "is not given, and false by default"
        yield Finding(
            "warn",
            "green packets may go unmarked",
            f"wred_green_enable {said}: switches that keep to SAI then mark no green packet (sonic-buildimage#4545; "
            "others do)",
            f'set "wred_green_enable": "true" in WRED_PROFILE|{port.profile}',
            set_fields("WRED_PROFILE", port.profile, wred_green_enable="true"),
        )
    if port.shares is not None and port.shares[1] < port.shares[0]:
        low, high = (f"{100 * share:g}" for share in port.shares)
        yield Finding("bad", _REVERSED, f"the fill levels of {where} fall from {low} to {high} %", "exchange the two")
    elif port.shares is not None:
        low, high = (f"{100 * share:g}" for share in port.shares)
        yield Finding(
            "warn",
            "thresholds are shares of a buffer",
            f"{where} marks from {low} to {high} % of what it may fill, up to {100 * (port.pmax or 0):g} %, and the "
            "file does not say how much that is: nothing was simulated",
            "give what the queue may fill: --buffer 16MB, for example",
        )
    if port.kmin is None or port.kmax is None or port.pmax is None:
        return
    kmin, kmax = show(port.kmin, SIZE), show(port.kmax, SIZE)
    if port.kmax < port.kmin:
        yield Finding(
            "bad",
            _REVERSED,
            f"green_max_threshold {kmax} < green_min_threshold {kmin}",
            "exchange the two",
            thresholds(port, port.kmax, port.kmin),
        )
    elif port.kmax == port.kmin:
        tried = advice(port)
        low, high = (show(threshold, SIZE) for threshold in tried or (0, 0))
        yield Finding(
            "warn",
            "marking is a step marking",
            f"Kmin = Kmax = {kmin}: the fluid model has no fixed point, and flows over several bottlenecks starve "
            "(sections 5.2 and 7)",
            f"set Kmin {low} and Kmax {high} with a drop probability of 1 %, the paper's scaled to the port's rate"
            if tried
            else _NO_RAMP,
            thresholds(port, *tried, 0.01) if tried else (),
        )
    if port.pmax <= 0:
        why = "nothing is marked below Kmax and everything above"
        yield Finding("bad", _NO_PMAX, why, "set drop probability 1", thresholds(port, pmax=0.01))


def _listed(priorities: Iterable[int]) -> str:
    return ",".join(map(str, sorted(priorities)))


def scaling(port: SwitchPort, config: ConfigDB, rtt: float) -> Iterator[Finding]:
    """Check thresholds against the paper's, in proportion to the port's rate, and across ports that share a profile."""
    if port.red is None or port.kmax is None or port.kmin is None:
        return
    paper = yardsticks(port.rate)[0].kmax
    drain, ratio = port.kmax / port.rate, port.kmax / paper
    usual = show(paper / port.rate, TIME)
    scaled = f"Kmax {show(port.kmax, SIZE)} is {show(drain, TIME)} of this link; the paper's is {usual}"
    others_say = "; ".join([*map(str, yardsticks(port.rate)), guide(port.rate, rtt)])
    tried = advice(port)
    if ratio > _SCALE and (tried is None or tried[1] < port.kmax):
        yield Finding(
            "warn",
            "thresholds are not scaled with port speed",
            f"{scaled}: queues will be long. Others at {show(port.rate, RATE)}: {others_say}",
            f"at {show(port.rate, RATE)} the paper's settings scale to Kmin {show(tried[0], SIZE)}, "
            f"Kmax {show(tried[1], SIZE)}; sweep around them"
            if tried
            else _NO_RAMP,
            thresholds(port, *tried) if tried else (),
        )
    elif ratio < 1 / _SCALE:
        # No fault by itself: whether the link is left idle is found by running it.
        if port.kmax > 0:
            yield Finding("ok", "thresholds are lower than others'", f"{scaled}. Others: {others_say}")
    else:
        yield Finding("ok", "thresholds scaled with port speed", f"{scaled}. Others: {others_say}")
    others = _other_speeds(port, config)
    if others:
        yield Finding(
            "warn",
            "one profile for several speeds",
            f"{port.profile} also serves {', '.join(others)}",
            "give each speed its own WRED_PROFILE, with thresholds in proportion",
        )


def _other_speeds(port: SwitchPort, config: ConfigDB) -> list[str]:
    """Return one port of each other speed, of those that are up, whose RoCE queue has the same profile."""
    first: dict[str, str] = {}
    for name in config.senders:
        first.setdefault(str(config.entry("PORT", name).get("speed")), name)
    found = []
    for name in first.values():
        try:
            other = describe(config, choose_queue(config, name), port.ports)
        except InputError:
            continue  # a port that is itself broken is not what was asked about
        if other.rate != port.rate and other.profile == port.profile:
            found.append(f"{other.name} at {show(other.rate, RATE)}")
    return found


def ecn_bound(buffer: float, headroom: float, ports: int, beta: float, priorities: int = PRIORITIES) -> float:
    """Largest t_ECN that marks before any PAUSE in the worst case, DCQCN section 4 [bytes].

    beta (B - 8 n t_flight) / (8 n (beta + 1)), with 8 for the priorities.
    """
    return beta * (buffer - priorities * ports * headroom) / (priorities * ports * (beta + 1))


def buffers(port: SwitchPort, packets: Sequence[float] = PACKETS) -> Iterator[Finding]:
    """Check that ECN marks before PFC pauses, DCQCN section 4."""
    if not port.pauses or port.kmin is None or (port.kmax is not None and port.kmax < port.kmin):
        return
    if port.static_th is not None:
        yield from _static(port, port.kmin, port.static_th, packets)
        return
    if port.buffer_size is None or port.headroom is None or port.beta is None:
        yield _unchecked(port)
        return
    bound = ecn_bound(port.buffer_size, port.headroom, port.ports, port.beta)
    used = max(1, len(port.lossless_priorities))
    fewer = ecn_bound(port.buffer_size, port.headroom, port.ports, port.beta, used)
    text = (
        f"DCQCN section 4: t_ECN < beta(B - 8 n t_flight)/(8 n (beta + 1)) with beta {port.beta:g}, "
        f"B {show(port.buffer_size, SIZE)}, n {port.ports}, t_flight {show(port.headroom, SIZE)} gives {_bytes(bound)} "
        f"(with the {used} priorities in use, {_bytes(fewer)}); Kmin is {show(port.kmin, SIZE)}"
    )
    if port.kmin < bound:
        if port.ecn and port.pmax:
            yield Finding("ok", "ECN marks before PFC pauses", text)
        return
    raised = next(
        (th for th in _POWERS if ecn_bound(port.buffer_size, port.headroom, port.ports, 2.0**th) > port.kmin), None
    )
    wanted = PRIORITIES * port.ports * (port.kmin * (1 + 1 / port.beta) + port.headroom)
    lowest = math.ceil(bound) - 1
    changes: tuple[Change, ...] = ()
    if lowest >= least_kmin(packets):
        hint, changes = f"lower green_min_threshold to {lowest} or less", thresholds(port, lowest)
        hint += f", or raise dynamic_th to {raised}" if raised is not None else ""
    elif raised is not None:
        hint, changes = (
            f"raise dynamic_th to {raised}",
            set_fields("BUFFER_PROFILE", port.buffer_profile, dynamic_th=raised),
        )
    elif wanted > _LARGEST_POOL:
        hint = (
            f"no pool is so large ({show(wanted, SIZE)}): count PAUSEs (fluidcc tune), and leave Kmin if they are few"
        )
    else:
        hint = f"enlarge the pool to {math.floor(wanted) + 1} or more, or lower the headroom (xoff) if cables allow"
    yield Finding(
        "warn",
        "PFC can pause before ECN marks",
        text + "; a bound for the worst case, in which all queues of the switch fill from one port: tune, which counts "
        "the PAUSEs of packets, may leave Kmin above it",
        hint,
        changes,
    )


def _static(port: SwitchPort, kmin: float, pause: float, packets: Sequence[float]) -> Iterator[Finding]:
    """Check against a fixed threshold of PAUSE.

    In section 4's worst case packets of one priority group wait at all ports of the switch, with Kmin at each.
    """
    bound = pause / port.ports
    text = (
        f"a priority group pauses at static_th {show(pause, SIZE)}; its packets may wait at all {port.ports} ports, "
        f"so that Kmin must be below {show(bound, SIZE)} in the worst case (section 4: t_PFC > n t_ECN); Kmin is "
        f"{show(kmin, SIZE)}"
    )
    if kmin < bound:
        if port.ecn and port.pmax:
            yield Finding("ok", "ECN marks before PFC pauses", text)
        return
    if kmin >= pause:
        text = f"PAUSE at {show(pause, SIZE)} comes before Kmin {show(kmin, SIZE)} at any single port; {text}"
    lowest, enough = math.ceil(bound) - 1, math.floor(kmin * port.ports) + 1
    fits = port.buffer_size is None or enough <= port.buffer_size
    ways = [f"lower green_min_threshold to {lowest} or less"] if lowest >= least_kmin(packets) else []
    ways += [f"raise static_th of BUFFER_PROFILE|{port.buffer_profile} to {enough} or more"] if fits else []
    yield Finding(
        "warn",
        "PFC can pause before ECN marks",
        text,
        ", or ".join(ways) or "use a dynamic threshold (dynamic_th): no fixed one fits this buffer and so many ports",
        thresholds(port, lowest)
        if lowest >= least_kmin(packets)
        else set_fields("BUFFER_PROFILE", port.buffer_profile, static_th=enough)
        if fits
        else (),
    )


def _unchecked(port: SwitchPort) -> Finding:
    """Return what the file lacks for section 4."""
    parts = {"size in its BUFFER_POOL": port.buffer_size, "xoff in its BUFFER_PROFILE": port.headroom}
    parts |= {"dynamic_th in its BUFFER_PROFILE": port.dynamic_th}
    missing = [name for name, value in parts.items() if value is None]
    if port.dynamic_buffers:
        return Finding(
            "warn",
            "PFC before ECN not checked",
            f"the switch computes its buffers (buffer_model dynamic): the file gives no {', no '.join(missing)}",
            "read them on the switch: show buffer information",
        )
    return Finding(
        "warn",
        "PFC before ECN not checked",
        f"for this queue's priority group the file gives no {', no '.join(missing)}",
        f"add BUFFER_PG|{port.name}|{port.priority} with a BUFFER_PROFILE"
        if len(missing) == len(parts)
        else f"give BUFFER_PG|{port.name}|{port.priority} {', '.join(missing)}",
    )


def _bytes(value: float) -> str:
    return show(value, SIZE) if value > 0 else "nothing: the headroom alone exceeds the buffer"


def shaper(port: SwitchPort) -> Iterator[Finding]:
    """Check whether a scheduler keeps the queue below the port's rate, which nothing models."""
    if port.shaper is not None and port.shaper < port.rate:
        yield Finding(
            "warn",
            "a shaper limits the queue",
            f"SCHEDULER|{port.scheduler} lets queue {port.queue} send {show(port.shaper, RATE)} at most (pir): that is "
            f"not modelled, and what follows is of the port's {show(port.rate, RATE)}",
            f"take pir out of SCHEDULER|{port.scheduler}, or scale what follows to its rate",
        )


def algorithm(nic: NicSettings | None) -> Iterator[Finding]:
    """Check whether the NIC runs DCQCN at all."""
    if nic is None:
        yield Finding(
            "warn",
            "no NIC settings",
            "whether the senders run DCQCN is not known; NVIDIA's defaults are taken for them",
            "give --nic FILE",
        )
        return
    chosen, programmable, legacy = (
        int(nic.given.get(name, 0)) for name in ("roce_cc_algorithm", "user_programmable_cc", "roce_cc_legacy_dcqcn")
    )
    if chosen:
        yield Finding(
            "bad",
            "the NIC does not run DCQCN",
            f"ROCE_CC_ALGORITHM = {chosen} is another algorithm; what follows is of DCQCN with its settings",
            "set ROCE_CC_ALGORITHM_P1 to 0",
            set_registers(ROCE_CC_ALGORITHM=0),
        )
    elif programmable and not legacy:
        yield Finding(
            "warn",
            "the NIC may not run DCQCN",
            "USER_PROGRAMMABLE_CC is on and ROCE_CC_LEGACY_DCQCN is not: a connection may run another algorithm, such "
            "as one by round-trip time, as its two ends agree; a file alone cannot say (openucx/ucx#11252, #11955)",
            "set ROCE_CC_LEGACY_DCQCN to 1 if DCQCN is meant, or USER_PROGRAMMABLE_CC to 0",
            set_registers(ROCE_CC_LEGACY_DCQCN=1),
        )


def next_boot(nic: NicSettings | None) -> Iterator[Finding]:
    """Check whether the NIC's settings change at its next reset."""
    if nic is None or not nic.pending:
        return
    told = ", ".join(f"{name} {now:.15g} -> {then:.15g}" for name, (now, then) in nic.pending.items())
    yield Finding(
        "warn",
        "the NIC changes at its next boot",
        f"what follows is of its present settings; from the next reset on {told}",
        "reset it to have them now, or set them back",
    )


def nic(port: SwitchPort, nic: NicSettings | None, scheme: DCQCN) -> Iterator[Finding]:
    """The NIC's settings among themselves and against the switch's priority."""
    if nic is not None:
        whys, wanted = switched_off(nic, port.priority, port.lossless_priorities)
        if whys:
            yield Finding(
                "bad",
                "DCQCN is off for this priority",
                "; ".join(whys),
                f"set {' and '.join(f'{typed(name)} to {value}' for name, value in wanted.items())}",
                set_registers(**wanted),
            )
        for number, given in nic.other_ports.items():
            off, _ = switched_off(NicSettings(given, nic.source), port.priority)
            if off and not whys:
                yield Finding(
                    "warn",
                    f"DCQCN is off on port {number}",
                    f"{'; '.join(off)}: what follows is of the port that was read, and hosts on port {number} do not "
                    "slow down",
                    f"set port {number} as the other, or ignore this where it has no cable",
                )
        if (most := scheme.max_rate) is not None and 0 < float(most) < port.rate:
            yield Finding(
                "warn",
                "the NIC limits every flow",
                f"rpg_max_rate lets a flow have {show(most, RATE)}, of a port of {show(port.rate, RATE)}",
                "set rpg_max_rate to 0, no limit but the line rate, unless that is meant",
                set_registers(RPG_MAX_RATE=0),
            )
        shared = int(nic.given.get("roce_cc_cnp_moderation", 0))
        if shared:
            yield Finding(
                "warn",
                "flows may share their CNPs",
                f"ROCE_CC_CNP_MODERATION = {shared} may space CNPs by address or port, where the model spaces them by "
                "flow. On the sample switch, 8 flows that shared the CNPs of a port filled its queue without end "
                "(packets, nic_cnp_interval=4us)",
                "set ROCE_CC_CNP_MODERATION_P1 to 0",
                set_registers(ROCE_CC_CNP_MODERATION=0),
            )
        yield from _field_widths(nic)
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
            set_registers(RPG_TIME_RESET=math.floor(cnp * 1e6 + 1e-6) + 1),
        )
    events = scheme.byte_counter / port.rate
    if events < timer:
        needed = math.ceil(timer * port.rate)
        yield Finding(
            "warn",
            "the byte counter dominates the rate increase",
            f"rpg_byte_reset fires every {show(events, TIME)} at line rate, the timer every {show(timer, TIME)}: "
            "the faster flow grows faster, against fairness (section 5.2)",
            *_without_bytes(scheme, needed),
        )
    elif scheme.byte_counter >= NEVER and (quick := quick_timer(scheme)) is not None:
        yield Finding(
            "warn",
            "the rate timer is slow",
            f"the byte counter is off, so rates grow each rpg_time_reset, {show(timer, TIME)}, alone: large flows wait "
            "after a cut, and no thresholds make a shorter queue for it",
            f"set rpg_time_reset to {quick}, with thresholds that are tuned for it: try it on a fabric first, by "
            f"fluidcc fabric --setting quick:timer={quick}us",
            set_registers(RPG_TIME_RESET=quick),
        )


def _without_bytes(scheme: DCQCN, needed: int) -> tuple[str, tuple[Change, ...]]:
    """Return how flows come to grow by the timer and not by bytes, in words and in registers."""
    if needed <= _LARGEST_BYTE_RESET:
        return f"raise rpg_byte_reset to {needed} or more", set_registers(RPG_BYTE_RESET=needed)
    off = f"set rpg_byte_reset to 0, which turns it off ({needed} is beyond mlxconfig's field)"
    then = "flows then grow by the timer alone, and large ones may finish later: try it on a fabric first, by"
    command = "fluidcc fabric --setting off:byte_counter=1000GB"
    if (timer := quick_timer(scheme)) is None:
        return f"{off}; {then} {command}", set_registers(RPG_BYTE_RESET=0)
    return (
        f"{off}, and rpg_time_reset to {timer}; {then} {command},timer={timer}us",
        set_registers(RPG_BYTE_RESET=0, RPG_TIME_RESET=timer),
    )


def quick_timer(scheme: DCQCN) -> int | None:
    """Return a shorter timer [us] for flows that grow by it alone; None of one that is short, or near the cuts.

    With NVIDIA's 300 us large flows wait, and no thresholds shorten the queue (``python -m benchmarks.demo timers``).
    CNPs and cuts must come much more often than increases: a timer of 100 us with a cut each 200 us leaves a link idle.
    """
    cuts = 1e6 * max(scheme.cnp_interval, scheme.rate_decrease_interval)
    return _QUICK_TIMER if _MORE_CUTS * cuts <= _QUICK_TIMER < round(scheme.timer * 1e6) else None


def _field_widths(nic: NicSettings) -> Iterator[Finding]:
    """Settings that a reset would not bring back: the driver's files take more than mlxconfig's fields."""
    for name, bits in BITS.items():
        most = 2**bits - 1
        if nic.given.get(name, 0) > most:
            off = name == "rpg_byte_reset"
            yield Finding(
                "warn",
                f"{name} is beyond mlxconfig's field",
                f"{name} = {nic.given[name]:.15g} may hold in the driver's files until the next reset; mlxconfig's "
                f"field of {bits} bits ends at {most}",
                f"set {name} to {0 if off else most}" + (", which turns it off" if off else " or less"),
                set_registers(**{name.upper(): 0 if off else most}),
            )


def least_rates(port: SwitchPort, scheme: DCQCN, flows: int, share: float = 1.0) -> Iterator[Finding]:
    """Check whether the flows overload the port, or the packets' share of it, with all at their least rate."""
    room = _ROOM * share * port.rate
    if flows * float(scheme.min_rate) < room:
        return
    enough = math.floor(room / flows / _MBPS)
    yield Finding(
        "bad",
        _TOO_MANY,
        f"{flows} flows at rpg_min_rate {show(scheme.min_rate, RATE)} are {show(flows * float(scheme.min_rate), RATE)} "
        f"into {show(port.rate, RATE)}: however much is marked, the queue grows; nothing was simulated",
        f"lower rpg_min_rate to {enough} or less"
        if enough
        else f"no whole Mb/s is low enough: ask about {math.floor(room / _MBPS)} flows or fewer (--flows)",
        set_registers(RPG_MIN_RATE=enough) if enough else (),
    )


def fixed_point(
    port: SwitchPort, red: RED, fixed_point: Equilibrium, scenario: Scenario, flows: int, reached: str = ""
) -> Iterator[Finding]:
    """Check whether the flows have a fixed point on the RED ramp; ``reached`` says in words whether they reach it."""
    found, limit = fixed_point.as_dict(), None if port is None else most_bytes(port)
    p, queue = found["marking_probability"], found["queue_bytes"]
    if p is None:
        cycle = fixed_point.cycle
        ends = [shown(each, limit) for each in (cycle.low, cycle.high)] if cycle else []
        shape = f"{cycle.kind}, from {ends[0]} to {ends[1]}" if cycle else "unknown"
        yield Finding(
            "warn",
            f"no fixed point found with {flows} flows",
            f"a run from line rate has a queue that is {shape}, when time is up",
            "ask about the flows that do converge on a port: --flows",
        )
    elif p == 0:
        yield Finding("ok", "the port is not overloaded", f"{flows} flows at line rate fit")
    elif fixed_point.exists and limit is not None and queue > limit:
        yield Finding(
            "warn",
            "the fixed point is beyond the buffer",
            f"{flows} flows would need a queue {shown(queue, limit)}, with p* = {p:.3g} < Pmax = {red.pmax:g}: before "
            "it PFC pauses them, or packets are lost",
            "lower green_max_threshold, or raise the drop probability",
        )
    elif fixed_point.exists:
        text = f"of {flows} flows at a queue of {show(queue, SIZE)} with p* = {p:.3g} < Pmax = {red.pmax:g}"
        yield Finding("ok", "a fixed point exists", f"{text}; {reached}" if reached else text)
    elif red.kmax > red.kmin:
        most = _most_flows(scenario, red.pmax)
        yield Finding(
            "warn",
            f"no fixed point with {flows} flows",
            f"it would need p* = {p:.3g} > Pmax = {red.pmax:g}; marking jumps to 1 at Kmax, and the queue cycles. "
            f"Pmax is reached at {most:.1f} flows",
            f"raise the drop probability to {min(math.floor(100 * p) + 1, 100)} %",
            thresholds(port, pmax=min(math.floor(100 * p) + 1, 100) / 100),
        )


def _most_flows(scenario: Scenario, pmax: float) -> float:
    """Number of flows at which p* reaches Pmax."""
    from fluidcc.theory.control.equilibrium import equilibrium  # and JAX, which reading a file does without

    room = 1.0 + 1e-9  # fewer than one line-rate flow do not load the link

    def over(flows: float) -> float:
        flow = dataclasses.replace(scenario.flows[0], multiplicity=flows)
        return equilibrium(dataclasses.replace(scenario, flows=(flow,))).links[0]["marking_probability"] - pmax

    most = scenario.flows[0].multiplicity
    return root_scalar(over, bracket=(room, most)).root if over(room) < 0 else room
