"""Traffic that a SONiC port's queue carries: from DSCP to traffic class, queue and priority group."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from fluidcc.operators.config_db import ConfigDB, Fields
from fluidcc.operators.config_files import label, number
from fluidcc.operators.roce_queue import qos_maps, stopped_queues
from fluidcc.surface import constructor

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
