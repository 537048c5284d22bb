"""The queue that carries RoCE on a SONiC port, and the traffic in it.

The file does not name the queue, but PFC and WRED show it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from fluidcc.errors import InputError
from fluidcc.operators.config_db import ConfigDB, Fields
from fluidcc.operators.config_files import clip, label, number
from fluidcc.surface import constructor

PFC_MAP = "MAP_PFC_PRIORITY_TO_QUEUE"
BEST_RANK = 3  # 2 for PFC, 1 for a WRED profile: a lossless queue without ECN is still the one that RoCE uses


@dataclasses.dataclass(frozen=True)
class Choice:
    """A queue of a port; a higher rank is a better candidate for the RoCE queue."""

    port: str
    queue: int
    rank: int
    pfc: dict[int, int]  # queue -> priority that pauses it
    fields: Fields


def choose_queue(config: ConfigDB, port: str) -> Choice:
    """Return the queue of a port that looks most like RoCE's, the first of equals."""
    return max(queues_of(config, port), key=lambda choice: choice.rank, default=Choice(port, 0, 0, {}, {}))


def queues_of(config: ConfigDB, port: str) -> list[Choice]:
    """A port's queues that PFC pauses or that have a WRED profile, lowest first."""
    pfc = _pfc_queues(config, port)
    queues: dict[int, Fields] = {}
    for first, last, fields in config.ranges("QUEUE").get(port, ()):
        for queue in range(first, last + 1):
            queues[queue] = queues.get(queue, {}) | fields
    found = []
    for queue in sorted(queues.keys() | pfc.keys()):
        fields = queues.get(queue, {})
        marked = config.reference(fields.get("wred_profile"), "WRED_PROFILE", f"QUEUE|{port}|{queue} wred_profile")
        rank = 2 * (queue in pfc) + bool(marked)
        if rank > 0:
            found.append(Choice(port, queue, rank, pfc, fields))
    return found


def marks(config: ConfigDB, choice: Choice) -> bool:
    """Tell whether a queue's profile turns ECN on."""
    where = f"QUEUE|{choice.port}|{choice.queue} wred_profile"
    name = config.reference(choice.fields.get("wred_profile"), "WRED_PROFILE", where)
    fields = config.needed("WRED_PROFILE", name, where) if name else {}
    return "unread" in fields or fields.get("ecn", "ecn_none") != "ecn_none"


def marking_alone(config: ConfigDB, port: str) -> tuple[int, ...]:
    """Return the queues of a port that mark and are not lossless, where none that is lossless has a WRED profile."""
    queues = queues_of(config, port)
    if any(choice.rank == BEST_RANK for choice in queues):
        return ()
    return tuple(choice.queue for choice in queues if choice.queue not in choice.pfc and marks(config, choice))


def qos_maps(config: ConfigDB, port: str) -> Fields:
    """Return a port's entries of PORT_QOS_MAP as one; a map of DSCPs that it does not name is that of ``global``.

    The switch ignores other maps there (sonic-swss, ``QosOrch::handleGlobalQosMap``).
    """
    fields: Fields = {}
    for entry in config.by_port("PORT_QOS_MAP").get("global", ()):
        fields = fields | {name: value for name, value in entry.items() if name == "dscp_to_tc_map"}
    for entry in config.by_port("PORT_QOS_MAP").get(port, ()):
        fields = fields | entry
    return fields


def priorities_of(config: ConfigDB, port: str, field: str) -> set[int]:
    """Return the priorities that a field of PORT_QOS_MAP lists."""
    given = qos_maps(config, port).get(field, "")
    where = f"{config.name}: PORT_QOS_MAP|{label(port)} {field}"
    if not isinstance(given, (str, int)) or isinstance(given, bool):
        raise InputError(f'{where}: {clip(given)} is not a list of priorities; write for example "3,4"')
    texts = [text for text in str(given).split(",") if text.strip()]
    return {int(number(text, where, "a priority", 0, 7, integer=True)) for text in texts}


def stopped_queues(config: ConfigDB, port: str) -> tuple[str, dict[int, int]]:
    """Return the map of a port's PFC priorities to queues that it names, and which queue a PAUSE of each stops."""
    at = f"PORT_QOS_MAP|{label(port)}"
    name = config.reference(qos_maps(config, port).get("pfc_to_queue_map"), PFC_MAP, f"{at} pfc_to_queue_map")
    # Without the map, priority i pauses queue i: the switch's own default.
    queue_of: Fields = {}
    if name and PFC_MAP in config.tables:
        queue_of = config.needed(PFC_MAP, name, f"{at} pfc_to_queue_map")
    found: dict[int, int] = {}
    for priority in sorted(priorities_of(config, port, "pfc_enable")):
        key = f"{config.name}: {PFC_MAP}|{label(name)} {priority}"
        queue = number(queue_of.get(str(priority), priority), key, "a queue", 0, 255, integer=True)
        found[priority] = int(queue)
    return label(name), found


def _pfc_queues(config: ConfigDB, port: str) -> dict[int, int]:
    """Return the queues of a port that PFC pauses, with their priorities."""
    return {queue: priority for priority, queue in stopped_queues(config, port)[1].items()}


# -- traffic that the queue carries: from DSCP to traffic class, queue and priority group ------------------


# For each field of PORT_QOS_MAP its table, and what that maps to: name and largest number.
_TABLES = {
    "dscp_to_tc_map": ("DSCP_TO_TC_MAP", "a traffic class", 15),
    "tc_to_queue_map": ("TC_TO_QUEUE_MAP", "a queue", 255),
    "tc_to_pg_map": ("TC_TO_PRIORITY_GROUP_MAP", "a priority group", 7),
    "pfc_to_pg_map": ("PFC_PRIORITY_TO_PRIORITY_GROUP_MAP", "a priority group", 7),
}
TABLES_READ = frozenset(table for table, _, _ in _TABLES.values())


@constructor()
@dataclasses.dataclass(frozen=True)
class TrafficClass:
    """Traffic that a port's maps lead to a queue. A map that the file does not give leads number i to i.

    Attributes
    ----------
    classes : tuple of int
        Traffic classes that are put into the queue.
    dscps : tuple of int or None
        DSCPs that are put into one of these; None without a map.
    groups : tuple of int
        Priority groups whose buffers count this traffic; none where the file has none.
    wanted_group : int
        The one that PFC of the queue's priority watches.
    queues_of_dscp : tuple of (int, int)
        Every DSCP of the map, with its queue.
    dscp_map, group_map, queue_map, pfc_group_map, pfc_queue_map : str
        Names of the port's maps; empty where the file gives none.
    led_away : tuple of int
        Traffic classes that `wanted_group` counts and that are put into another queue.
    pauses : tuple of (int, int, tuple of int)
        Each PFC priority whose PAUSE stops another queue than those of the traffic for which it is sent: the priority,
        the queue that it stops, the queues of that traffic.
    lacking : tuple of (str, str)
        Maps that the port names and whose table the file does not have: table and name.
    """

    classes: tuple[int, ...] = ()
    dscps: tuple[int, ...] | None = None
    groups: tuple[int, ...] = ()
    wanted_group: int = 0
    queues_of_dscp: tuple[tuple[int, int], ...] = ()
    dscp_map: str = ""
    group_map: str = ""
    queue_map: str = ""
    pfc_group_map: str = ""
    pfc_queue_map: str = ""
    led_away: tuple[int, ...] = ()
    pauses: tuple[tuple[int, int, tuple[int, ...]], ...] = ()
    lacking: tuple[tuple[str, str], ...] = ()

    @property
    def other_queues(self) -> tuple[int, ...]:
        """Queues that the map of DSCPs leads to."""
        return tuple(sorted({queue for _, queue in self.queues_of_dscp}))


def traffic_class(config: ConfigDB, port: str, queue: int, priority: int) -> TrafficClass:
    """Follow a port's maps to a queue.

    Raises
    ------
    InputError
        If a map is named and not there, or holds what is no number.
    """
    names, maps = {}, {}
    for field in _TABLES:
        names[field], maps[field] = _map(config, port, qos_maps(config, port), field)
    to_queue, to_class, to_group = maps["tc_to_queue_map"], maps["dscp_to_tc_map"], maps["tc_to_pg_map"]
    known = sorted({*range(8), *to_queue, *to_class.values()})
    classes = tuple(each for each in known if to_queue.get(each, each) == queue)
    dscps = tuple(sorted(dscp for dscp, each in to_class.items() if each in classes))
    watched, used = maps["pfc_to_pg_map"], [*_used(tuple(known), to_class)] if config.is_sonic else []
    wanted = watched.get(priority, priority)
    counted = {group: [each for each in used if to_group.get(each, each) == group] for group in range(8)}
    pfc_queue_map, stopped = stopped_queues(config, port)
    queues_of = {
        each: tuple(sorted({to_queue.get(one, one) for one in counted[watched.get(each, each)]})) for each in stopped
    }
    return TrafficClass(
        classes=classes,
        dscps=dscps if to_class else None,
        groups=tuple(sorted({to_group.get(each, each) for each in _used(classes, to_class)}))
        if config.is_sonic
        else (),
        wanted_group=wanted,
        queues_of_dscp=tuple((dscp, to_queue.get(each, each)) for dscp, each in sorted(to_class.items())),
        dscp_map=names["dscp_to_tc_map"],
        group_map=names["tc_to_pg_map"],
        queue_map=names["tc_to_queue_map"],
        pfc_group_map=names["pfc_to_pg_map"],
        pfc_queue_map=pfc_queue_map,
        led_away=tuple(each for each in counted.get(wanted, ()) if to_queue.get(each, each) != queue),
        pauses=tuple(
            (each, at, queues_of[each]) for each, at in stopped.items() if queues_of[each] and at not in queues_of[each]
        ),
        lacking=tuple(_lacking(config, port)),
    )


def _lacking(config: ConfigDB, port: str) -> Iterator[tuple[str, str]]:
    for field, (table, _, _) in _TABLES.items():
        name = config.reference(qos_maps(config, port).get(field), table, f"PORT_QOS_MAP|{label(port)} {field}")
        if name and table not in config.tables:
            yield table, label(name)


def _used(classes: tuple[int, ...], to_class: dict[int, int]) -> Iterator[int]:
    """Iterate over the classes into which some DSCP is put; over all without a map."""
    return (each for each in classes if not to_class or each in to_class.values())


def _map(config: ConfigDB, port: str, fields: Fields, field: str) -> tuple[str, dict[int, int]]:
    table, what, most = _TABLES[field]
    at = f"PORT_QOS_MAP|{label(port)} {field}"
    name = config.reference(fields.get(field), table, at)
    if not name or table not in config.tables:
        return "", {}
    where = f"{config.name}: {table}|{label(name)}"
    found = {}
    for key, value in config.needed(table, name, at).items():
        first = int(number(key, f"{where} {label(key)}", "a number", 0, 255, integer=True))
        found[first] = int(number(value, f"{where} {label(key)}", what, 0, most, integer=True))
    return label(name), found
