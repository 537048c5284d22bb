"""A switch's configuration, SONiC's or another's: the marking and the buffers of one port's RoCE queue."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from fluidcc.errors import InputError
from fluidcc.operators.config_db import EXPECTED, ConfigDB, Fields
from fluidcc.operators.config_files import clip, label, listing, number
from fluidcc.operators.port_fields import DEFAULT_MTU, MOST_BYTES, Watchdog, cabling, line_fields, pausing, shaping
from fluidcc.operators.roce_queue import (
    BEST_RANK,
    PFC_MAP,
    TABLES_READ,
    Choice,
    TrafficClass,
    choose_queue,
    marking_alone,
    traffic_class,
)
from fluidcc.operators.switches import SONIC
from fluidcc.surface import constructor, public
from fluidcc.units import RATE, Rate, quantity

if TYPE_CHECKING:
    from fluidcc.scenario.model import RED

_MBPS = Rate(1e6 / 8)
_MARKS_GREEN = {
    "ecn_none": False,
    "ecn_green": True,
    "ecn_yellow": False,
    "ecn_red": False,
    "ecn_green_yellow": True,
    "ecn_green_red": True,
    "ecn_yellow_red": False,
    "ecn_all": True,
}
_NEW_ECN = ("green_ect", "ecn_green")  # thresholds of marking alone, as proposed (sonic-swss#4719): names not settled
USUAL_DSCP = 26  # RoCE's
_LOSSLESS = {"xoff", "xon", "headroom_type"}  # of a lossless profile; with the last the switch computes the others
_TABLES_READ = {
    "CABLE_LENGTH",
    "DEVICE_METADATA",
    "PFC_WD",
    "PORT",
    "SCHEDULER",
    "QUEUE",
    "WRED_PROFILE",
    "PORT_QOS_MAP",
    PFC_MAP,
    "BUFFER_PG",
    "BUFFER_QUEUE",
    "BUFFER_PROFILE",
    "BUFFER_POOL",
    "NOTES",
    "LINES",
    "DOUBTS",
    *TABLES_READ,
}


@constructor()
@dataclasses.dataclass(frozen=True)
class SwitchPort:
    """One egress port of a switch and its RoCE queue, in SI units, as configured and not yet judged.

    The thresholds are those of *green* packets: a switch colours every packet green unless a policer or a
    colour map says otherwise, so that DCQCN's traffic, which is ECN-capable, is marked by the green curve.
    They are returned as they stand, also with ``kmax < kmin`` or ``pmax == 0``.

    Attributes
    ----------
    source : str
        The file.
    name : str
        The port, such as ``Ethernet0``.
    rate : quantity
        Its speed [bytes/s].
    ports : int
        Ports of the switch that are administratively up (all of them if none is), without in-band and recirculation
        ports; n of DCQCN section 4.
    queue, priority : int
        The queue chosen, and the PFC priority that pauses it (the queue's number if none does).
    lossless : bool
        Whether PFC is enabled on that priority.
    lossless_priorities : tuple of int
        All priorities of the port on which PFC is enabled.
    profile : str
        Name of the queue's WRED profile; empty if it has none.
    ecn : bool
        Whether the profile marks green packets; if not, it drops them by the same curve.
    kmin, kmax : float or None
        Green thresholds [bytes]; None without a profile.
    pmax : float or None
        Green probability at ``kmax``, from 0 to 1.
    buffer_size : float or None
        Size of the buffer pool that the priority group shares [bytes]. It is what remains to share: SONiC's
        templates have taken the groups' reservations (``reserved``) out already.
    pool_headroom : float or None
        The pool's own ``xoff``: headroom that all ports share [bytes].
    headroom : float or None
        The profile's ``xoff``, bytes that may arrive after a PAUSE; t_flight of DCQCN section 4.
    reserved, xon : float or None
        The profile's ``size`` and ``xon`` [bytes].
    dynamic_th : float or None
        The profile's ``dynamic_th``; `beta` is two to its power.
    buffer_profile : str
        Name of the priority group's profile; empty if the file gives none.
    lossy_group : bool
        Whether that profile has neither ``xoff`` nor ``xon``: the group drops and never pauses.
    group_key : str
        Key of that entry of BUFFER_PG; empty where ports share it.
    lossless_profile : str
        A lossless profile of the file to name instead; empty if there is none.
    dynamic_buffers : bool
        Whether the switch computes headroom itself (``buffer_model`` of DEVICE_METADATA).
    cable : float or None
        The longest of the port's cable lengths [m].
    mtu : float
        Largest packet [bytes].
    watchdog : Watchdog or None
        What PFC_WD says of the port; None if it does not watch it.
    watchdog_poll : str
        How often the switch looks at PAUSEs [ms], as PFC_WD says it; empty if it does not.
    wred_green : bool or None
        The profile's ``wred_green_enable``; None if it does not say.
    threshold_fields : mapping or None
        Names of the profile's fields that say ``kmin``, ``kmax`` and ``pmax``.
    traffic : TrafficClass or None
        What the port's maps lead to the queue.
    notes : tuple of str
        Assumptions made where the file is silent.
    ignored : tuple of str
        What the file says that the model does not use.
    static_th : float or None
        The profile's ``static_th``: bytes beyond its reservation from which a priority group pauses.
    queue_limit : float or None
        Bytes that the egress queue may fill, by its profile (``BUFFER_QUEUE``); None if the file does not say.
    queue_profile : str
        Name of that profile.
    asymmetric : bool
        Whether the port obeys PAUSE of all priorities and sends it for the lossless ones alone (``pfc_asym``).
    watched_priorities : tuple of int or None
        Priorities that the watchdog watches (``pfcwd_sw_enable``), none of a port without a list; None if no port has
        one, as of a SONiC that knows none: the lossless.
    watchdog_unsaid : bool
        Whether files of this kind do not say if PFC is watched.
    shares : tuple of float or None
        Kmin and Kmax as shares of what the queue may fill, where nothing says how much that is (Junos).
    unread : str
        The line that makes the queue mark, where thresholds or probability could not be read; or else empty.
    refused : str
        Field of the profile that the switch refuses, and with it the whole profile; or else empty.
    up : bool
        Whether the file says that the port is up; SONiC has ports down unless told otherwise.
    shaper : float or None
        Rate to which the queue's scheduler limits it (``pir``) [bytes/s], which nothing models; None without one.
    scheduler : str
        Name of that scheduler.
    assumed_rate : bool
        Whether the file gives no speed.
    negotiated : str
        Why PFC is left to DCBX, so that the file does not say whether the queue is lossless; or else empty.
    overrides : tuple of (str, str, str)
        Lines that override what others say of the port: the line, what it does, and what to type instead.
    buffer_lines : tuple of str
        Lines of other systems on buffers and on the thresholds of PAUSE, which are not read.
    asic : str
        Of a switch with several.
    system : str
        What runs on the switch.
    typed : tuple of (str, str)
        Of other systems: a field of their words, and what to type instead of it here.
    doubts : tuple of str
        Why the file may be cut.
    marking_alone : tuple of int
        Queues of the port that mark and are not lossless, where no lossless one has a WRED profile.
    strays : tuple of str
        Rows of the file on queues and PFC whose port its table PORT does not have.
    lossless_queues : tuple of int
        Queues of the port that PFC pauses.
    """

    source: str
    name: str
    rate: float
    ports: int
    queue: int
    priority: int
    lossless: bool
    lossless_priorities: tuple[int, ...] = ()
    profile: str = ""
    ecn: bool = False
    kmin: float | None = None
    kmax: float | None = None
    pmax: float | None = None
    buffer_size: float | None = None
    pool_headroom: float | None = None
    headroom: float | None = None
    reserved: float | None = None
    xon: float | None = None
    dynamic_th: float | None = None
    buffer_profile: str = ""
    lossy_group: bool = False
    group_key: str = dataclasses.field(default="", compare=False)
    lossless_profile: str = ""
    dynamic_buffers: bool = False
    cable: float | None = None
    mtu: float = DEFAULT_MTU
    watchdog: Watchdog | None = None
    watchdog_poll: str = ""
    wred_green: bool | None = None
    threshold_fields: Mapping[str, str] | None = dataclasses.field(default=None, hash=False)
    traffic: TrafficClass | None = None
    notes: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    static_th: float | None = None
    queue_limit: float | None = None
    queue_profile: str = ""
    asymmetric: bool = False
    watched_priorities: tuple[int, ...] | None = None
    watchdog_unsaid: bool = False
    shares: tuple[float, float] | None = None
    unread: str = ""
    refused: str = ""
    up: bool = True
    shaper: float | None = None
    scheduler: str = ""
    assumed_rate: bool = False
    negotiated: str = ""
    overrides: tuple[tuple[str, str, str], ...] = ()
    buffer_lines: tuple[str, ...] = ()
    asic: str = ""
    system: str = SONIC.system
    typed: tuple[tuple[str, str], ...] = ()
    doubts: tuple[str, ...] = ()
    marking_alone: tuple[int, ...] = ()
    strays: tuple[str, ...] = ()
    lossless_queues: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Convert the speed to SI: a number in SI, or text with a unit."""
        object.__setattr__(self, "rate", quantity(self.rate, RATE, "SwitchPort rate"))

    @property
    def red(self) -> RED | None:
        """The green curve as a scenario's marking, unchecked; None if the queue has no WRED profile."""
        from fluidcc.scenario.switches import unchecked_marking  # imports JAX

        return None if self.kmin is None else unchecked_marking(self.kmin, self.kmax, self.pmax)

    @property
    def pauses(self) -> bool:
        """True if PFC is on and the priority group's buffers are such that it sends PAUSEs."""
        return self.lossless and not self.lossy_group

    @property
    def usual_queue(self) -> int | None:
        """The queue of RoCE's usual DSCP; None where the file does not say."""
        return dict(self.traffic.queues_of_dscp).get(USUAL_DSCP) if self.traffic is not None else None

    @property
    def paused_in_vain(self) -> bool:
        """True of a lossless queue where RoCE's usual DSCP goes to another, which marks and is not lossless."""
        return self.lossless and self.usual_queue in self.marking_alone

    @property
    def marked_in_vain(self) -> bool:
        """True of a queue that marks where RoCE's usual DSCP goes to another, which is lossless and does not mark."""
        return self.queue in self.marking_alone and self.usual_queue in self.lossless_queues

    @property
    def unwatched(self) -> bool:
        """True if the port's own list of priorities that the watchdog watches leaves this one out."""
        return self.watched_priorities is not None and self.priority not in self.watched_priorities

    @property
    def beta(self) -> float | None:
        """The share of the free buffer that a priority group may take before PAUSE; DCQCN section 4."""
        return None if self.dynamic_th is None else 2.0**self.dynamic_th


@public()
def read_sonic(path: str | os.PathLike[str], port: str | None = None) -> SwitchPort:
    """Read one port's marking and buffers from a switch's configuration.

    Parameters
    ----------
    path : str or path
        SONiC's ``config_db.json``, a dump of its database, or another system's configuration as text.
    port : str, optional
        The port; by default the first that is up and has a lossless queue with a WRED profile (failing
        that, a lossless queue, then a queue with a WRED profile).

    Returns
    -------
    SwitchPort
        Of the port's queues, the first with PFC and a WRED profile, or else with PFC, or else with a WRED
        profile; ``red`` is None where there is none.

    Raises
    ------
    InputError
        If the file cannot be read, is no configuration of a switch, lacks the port or a table or a value that is
        needed, or has a value out of range. Thresholds that are merely unwise are not refused.
    """
    configs = ConfigDB.all(path)
    having = [config for config in configs if port is None or port in config.table("PORT")]
    found = [(config, _best(config, port)) for config in having or configs[:1]]
    config, best = max(found, key=lambda each: each[1].rank)
    if best.rank == 0:
        who = f"port {label(port)}" if port is not None else "every port that is up"
        raise InputError(
            f"{config.name}: {who} lacks a queue with a wred_profile (table QUEUE) or with PFC (pfc_enable "
            f"in table PORT_QOS_MAP); add one, or name another port (ports: {listing(list(config.table('PORT')))})"
        )
    return describe(config, best, len(config.senders))


def _best(config: ConfigDB, port: str | None) -> Choice:
    """Return the queue that looks most like RoCE's, of one port or of all that are up."""
    ports = config.table("PORT")
    if not ports:
        raise InputError(f"{config.name}: table PORT lists no ports; give {EXPECTED} with at least one port")
    if port is not None and port not in ports:
        raise InputError(f"{config.name}: table PORT has no {clip(port)}; its ports are {listing(list(ports))}")
    config.table("QUEUE")
    candidates = [port] if port is not None else config.senders
    best = choose_queue(config, candidates[0])
    for name in candidates[1:]:
        if best.rank == BEST_RANK:
            break
        best = max(best, choose_queue(config, name), key=lambda choice: choice.rank)
    return best


def describe(config: ConfigDB, choice: Choice, up: int) -> SwitchPort:
    """Describe a queue of a port, on a switch with ``up`` ports that are up.

    Raises
    ------
    InputError
        If a value that is needed is missing or out of range.
    """
    port, queue = choice.port, choice.queue
    fields = config.entry("PORT", port)
    notes: list[str] = []
    if str(fields.get("admin_status", "")).strip().lower() != "up":
        notes.append(f"port {label(port)} is not administratively up")
    if "speed" not in fields and config.is_sonic:
        raise InputError(f'{config.name}: PORT|{label(port)} has no speed; add it in Mb/s, such as "speed": "100000"')
    rate = config.assumed.rate
    if "speed" in fields:
        rate = number(fields["speed"], f"{config.name}: PORT|{label(port)} speed", "Mb/s", 1, 1e8) * _MBPS
    notes.extend(label(note) for note in config.table("NOTES", needed=False))
    ignored: list[str] = []
    of_lines = line_fields(config, port)
    sends_pause = of_lines.pop("sends_pause", True)
    for table in ("QUEUE", "BUFFER_PG", "BUFFER_QUEUE"):
        others = config.remote(table)
        if others:
            ignored.append(f"{table}: rows of other cards and ASICs ({listing(others)}) are theirs, not this one's")
    if "scheduler" in choice.fields:
        ignored.append(
            f"QUEUE|{label(port)}|{queue} scheduler {clip(choice.fields['scheduler'])}: "
            "the queue is modelled as the only one that its port serves"
        )
    return SwitchPort(
        source=config.source,
        name=label(port),
        rate=rate,
        ports=up,
        queue=queue,
        priority=choice.pfc.get(queue, queue),
        lossless=queue in choice.pfc and sends_pause and not of_lines.get("negotiated"),
        lossless_priorities=tuple(sorted(choice.pfc.values())),
        lossless_queues=tuple(sorted(choice.pfc)),
        **_marking(config, choice, rate, notes, ignored),
        **_buffers(config, port, choice.pfc.get(queue, queue), notes, ignored),
        **_egress(config, port, queue),
        **cabling(config, port),
        **pausing(config, port),
        **of_lines,
        **shaping(config, choice),
        up=str(fields.get("admin_status", "")).strip().lower() == "up",
        assumed_rate="speed" not in fields,
        asic=config.asic if len(config.asics) > 1 else "",
        system=config.system.system,
        traffic=traffic_class(config, port, queue, choice.pfc.get(queue, queue)),
        marking_alone=marking_alone(config, port),
        doubts=tuple(label(each) for each in (*config.table("DOUBTS", needed=False), *config.without_ports)),
        strays=tuple(map(label, config.strays)),
        notes=tuple(notes),
        ignored=(*ignored, *_tables_left(config)),
    )


def threshold_fields(profile: Fields) -> dict[str, str]:
    """Names of the fields of a WRED profile that say ``kmin``, ``kmax`` and ``pmax`` of what is marked."""
    new = next((prefix for prefix in _NEW_ECN if f"{prefix}_max_threshold" in profile), None)
    prefix, probability = (new, f"{new}_mark_probability") if new else ("green", "green_drop_probability")
    return {"kmin": f"{prefix}_min_threshold", "kmax": f"{prefix}_max_threshold", "pmax": probability}


def _marking(config: ConfigDB, choice: Choice, rate: float, notes: list[str], ignored: list[str]) -> Fields:
    where = f"QUEUE|{choice.port}|{choice.queue} wred_profile"
    name = config.reference(choice.fields.get("wred_profile"), "WRED_PROFILE", where)
    if not name:
        notes.append(f"queue {choice.queue} has no WRED profile: it neither marks nor drops early")
        return {}
    fields = config.needed("WRED_PROFILE", name, where)
    place = f"{config.name}: WRED_PROFILE|{label(name)}"
    thresholds: list[float] = []
    shares = None
    if not config.is_sonic:
        if "unread" in fields:
            return {"profile": label(name), "ecn": True, "unread": label(fields["unread"])}
        fields, shares = _in_bytes(config, fields, rate, notes)
    fields_of = threshold_fields(fields)
    new = next((prefix for prefix in _NEW_ECN if fields_of["kmax"].startswith(prefix)), None)
    key = fields_of["pmax"]
    if new:
        notes.append(
            f"WRED_PROFILE|{label(name)} {new}_*: these mark, and green_* only drop, where the switch knows them"
        )
    for key_of in (fields_of["kmin"], fields_of["kmax"]) if shares is None else ():
        if key_of not in fields:
            raise InputError(f'{place} has no {key_of}; add it in bytes, such as "{key_of}": "1048576"')
        thresholds.append(number(fields[key_of], f"{place} {key_of}", "bytes", 0, MOST_BYTES))
    if key not in fields:
        notes.append(f"WRED_PROFILE|{label(name)} has no {key}: taken as 100%, the switch interface's default")
    percent = number(fields.get(key, 100), f"{place} {key}", "percent", 0, 100, integer=config.is_sonic)
    mode = fields.get("ecn")
    if mode is None:
        notes.append(f"WRED_PROFILE|{label(name)} has no ecn: taken as ecn_none, the default")
        mode = "ecn_none"
    if not isinstance(mode, str) or mode.strip().lower() not in _MARKS_GREEN:
        raise InputError(f"{place} ecn: {clip(mode)} is not a mode; write one of {', '.join(_MARKS_GREEN)}")
    for colour in ("yellow", "red"):
        if any(k.startswith(f"{colour}_") for k in fields):
            ignored.append(f"WRED_PROFILE|{label(name)} {colour} thresholds and probability: traffic is green")
    enabled = fields.get("wred_green_enable")
    refused = "" if mode in _MARKS_GREEN else f"ecn {clip(mode)}"
    if isinstance(enabled, str) and enabled not in ("true", "false"):
        refused = f"wred_green_enable {clip(enabled)}"
    ecn = _MARKS_GREEN[mode.strip().lower()] and not refused
    return {
        "profile": label(name),
        "threshold_fields": fields_of,
        "ecn": ecn,
        "refused": refused,
        "shares": shares,
        "kmin": thresholds[0] if thresholds else None,
        "kmax": thresholds[1] if thresholds else None,
        "pmax": percent / 100,
        "wred_green": None if enabled is None else str(enabled).strip().lower() == "true",
    }


def _in_bytes(
    config: ConfigDB, fields: Fields, rate: float, notes: list[str]
) -> tuple[Fields, tuple[float, float] | None]:
    """Return a profile with thresholds in bytes where it has shares or times; the shares, if of nothing known."""
    ends = ("green_min", "green_max")
    if f"{ends[0]}_share" in fields:
        low, high = (float(fields[f"{end}_share"]) for end in ends)
        whole = config.assumed.buffer
        if whole is None:
            return fields, (low, high)
        notes.append(f"thresholds are {low:.3g} and {high:.3g} of {whole:.6g} bytes that the queue is said to fill")
        return fields | {f"{end}_threshold": share * whole for end, share in zip(ends, (low, high), strict=True)}, None
    if f"{ends[0]}_time" in fields:
        notes.append("thresholds are times: they are taken as bytes at the port's rate")
        return fields | {f"{end}_threshold": float(fields[f"{end}_time"]) * rate for end in ends}, None
    return fields, None


def _buffers(config: ConfigDB, port: str, priority: int, notes: list[str], ignored: list[str]) -> Fields:
    """Read the lossless buffers of a priority group; what the file leaves to the switch stays unknown."""
    group: Fields = {}
    key = ""
    for row in config.rows("BUFFER_PG"):
        if port in row.ports and row.first <= priority <= row.last:
            group = group | row.fields
            key = row.key if len(row.ports) == 1 else ""
    where = f"BUFFER_PG|{port}|{priority} profile"
    name = config.reference(group.get("profile"), "BUFFER_PROFILE", where)
    if not name:
        if config.is_sonic:
            notes.append(f"BUFFER_PG names no profile for {label(port)}|{priority}: the switch chooses its buffers")
        return {"lossless_profile": _neighbour(config, port)} if config.is_sonic else {}
    fields = config.needed("BUFFER_PROFILE", name, where)
    place = f"{config.name}: BUFFER_PROFILE|{label(name)}"

    threshold = _power(fields, place)
    if "xon_offset" in fields:
        ignored.append(f"BUFFER_PROFILE|{label(name)} xon_offset: the model pauses by no such rule")
    found: Fields = {
        "buffer_profile": label(name),
        "headroom": _size(fields, "xoff", place),
        "reserved": _size(fields, "size", place),
        "xon": _size(fields, "xon", place),
        "dynamic_th": threshold,
        "static_th": _size(fields, "static_th", place),
    }
    if config.is_sonic and not _LOSSLESS & fields.keys():
        found |= {"lossy_group": True, "group_key": key, "lossless_profile": _lossless_profile(config, port)}
    pool = config.reference(fields.get("pool"), "BUFFER_POOL", f"BUFFER_PROFILE|{name} pool")
    if pool:
        entry = config.needed("BUFFER_POOL", pool, f"BUFFER_PROFILE|{name} pool")
        at = f"{config.name}: BUFFER_POOL|{label(pool)}"
        found |= {"buffer_size": _size(entry, "size", at), "pool_headroom": _size(entry, "xoff", at)}
        if found["static_th"] is not None and threshold is not None:  # the pool's mode says which of the two holds
            found["static_th" if entry.get("mode") == "dynamic" else "dynamic_th"] = None
    if found.get("buffer_size") is None:
        notes.append("the size of the lossless buffer pool is not in the file: the switch computes it")
    return found


def _neighbour(config: ConfigDB, port: str) -> str:
    """Return the lossless profile of another group of a port; empty if it has none."""
    profiles = config.table("BUFFER_PROFILE", needed=False)
    for row in config.rows("BUFFER_PG"):
        name = config.reference(row.fields.get("profile"), "BUFFER_PROFILE", f"BUFFER_PG|{row.key} profile")
        if port in row.ports and name in profiles and "xoff" in config.entry("BUFFER_PROFILE", name):
            return label(name)
    return ""


def _lossless_profile(config: ConfigDB, port: str) -> str:
    """Return the lossless profile that most groups of ports as fast as this one have; empty if there is none."""
    profiles = config.table("BUFFER_PROFILE", needed=False)
    known = {name: 0 for name in profiles if "xoff" in config.entry("BUFFER_PROFILE", name)}
    ports, speed = config.table("PORT"), config.entry("PORT", port).get("speed")
    for row in config.rows("BUFFER_PG"):
        name = config.reference(row.fields.get("profile"), "BUFFER_PROFILE", f"BUFFER_PG|{row.key} profile")
        if name in known:
            known[name] += sum(each in ports and config.entry("PORT", each).get("speed") == speed for each in row.ports)
    return label(max(known, key=lambda name: known[name])) if known else ""


def _size(source: Fields, key: str, at: str) -> float | None:
    return number(source[key], f"{at} {key}", "bytes", 0, MOST_BYTES) if key in source else None


def _power(source: Fields, at: str) -> float | None:
    """Return ``dynamic_th``, the power of two that alpha is."""
    if "dynamic_th" not in source:
        return None
    return number(source["dynamic_th"], f"{at} dynamic_th", "a power of two", -10, 10)


def _egress(config: ConfigDB, port: str, queue: int) -> Fields:
    """Return what the queue itself may fill: a fixed number of bytes, or a share of its pool when that is empty."""
    entry: Fields = {}
    for first, last, fields in config.ranges("BUFFER_QUEUE").get(port, ()):
        if first <= queue <= last:
            entry = entry | fields
    where = f"BUFFER_QUEUE|{port}|{queue} profile"
    name = config.reference(entry.get("profile"), "BUFFER_PROFILE", where)
    if not name:
        return {}
    fields = config.needed("BUFFER_PROFILE", name, where)
    place = f"{config.name}: BUFFER_PROFILE|{label(name)}"
    limit, power = _size(fields, "static_th", place), _power(fields, place)
    pool = config.reference(fields.get("pool"), "BUFFER_POOL", f"BUFFER_PROFILE|{name} pool")
    entry = config.needed("BUFFER_POOL", pool, f"BUFFER_PROFILE|{name} pool") if pool else {}
    whole = _size(entry, "size", f"{config.name}: BUFFER_POOL|{label(pool)}")
    if limit is None and power is not None and whole is not None:
        # A queue may take alpha times what is free: alone it ends at alpha/(1 + alpha) of the pool.
        limit = whole * 2.0**power / (1 + 2.0**power)
    elif limit is not None and whole is not None:
        limit = min(limit, whole)
    if limit is None:
        return {}
    return {"queue_limit": limit + (_size(fields, "size", place) or 0.0), "queue_profile": label(name)}


def _tables_left(config: ConfigDB) -> list[str]:
    left = [name for name in config.tables if name not in _TABLES_READ]
    return [f"tables not read: {listing(left, most=40)}"] if left else []
