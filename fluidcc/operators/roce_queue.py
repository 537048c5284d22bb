"""Choice of the queue that carries RoCE on a SONiC port: the file does not name it, but PFC and WRED show it."""

from __future__ import annotations

import dataclasses

from fluidcc.errors import InputError
from fluidcc.operators.config_db import ConfigDB, Fields
from fluidcc.operators.config_files import clip, label, number

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
