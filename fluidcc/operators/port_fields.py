"""Fields of a switch's port beside its marking and buffers: PAUSEs, their watchdog, single lines, shapers, cables."""

from __future__ import annotations

import dataclasses

from fluidcc.operators.config_db import ConfigDB, Fields
from fluidcc.operators.config_files import clip, label, number
from fluidcc.operators.roce_queue import Choice, priorities_of
from fluidcc.operators.switches.description import ERRDISABLE
from fluidcc.surface import constructor

# -- PFC watchdog: how long a queue may stand paused, and what is done then --------------------------------


ACTIONS = ("drop", "forward", "alert")
# What the switch's own command takes [ms] (sonic-utilities, pfcwd).
TIMES = {"detection_time": (100, 5000), "restoration_time": (100, 60000)}
_POLL = (100, 3000)
_DEFAULT_ACTION = "drop"


@constructor()
@dataclasses.dataclass(frozen=True)
class Watchdog:
    """Settings that PFC_WD gives for a port, unchanged.

    Attributes
    ----------
    action : str
        Action on a queue that stays paused: drop, forward (ignoring PAUSEs) or alert; of other systems also
        errdisable, by which the port goes down.
    detection_time, restoration_time : str
        Time that a queue stays paused until the action, and time without PAUSE until its end [ms]; empty if not given.
    poll_interval : str
        How often the switch looks [ms]; empty if not given.
    sonic : bool
        Whether times have SONiC's ranges; other systems have other ranges.
    big_red : bool
        Whether ``BIG_RED_SWITCH`` treats every lossless queue as one that stays paused.
    """

    action: str = _DEFAULT_ACTION
    detection_time: str = ""
    restoration_time: str = ""
    poll_interval: str = ""
    sonic: bool = True
    big_red: bool = False

    @property
    def poll(self) -> int | None:
        """``poll_interval`` as a number; None if it is none."""
        return _milliseconds(self.poll_interval)

    @property
    def faults(self) -> tuple[str, ...]:
        """Settings that a switch refuses, in words."""
        found = []
        if self.action not in ACTIONS and (self.sonic or self.action != ERRDISABLE):
            found.append(f"action {clip(self.action)} is none of {', '.join(ACTIONS)}, in lower case")
        for name, (low, high) in TIMES.items() if self.sonic else ():
            value = _milliseconds(getattr(self, name))
            if value is None or not low <= value <= high:
                found.append(f"{name} {clip(getattr(self, name))} is not from {low} to {high} ms")
        if self.poll_interval and (self.poll is None or not _POLL[0] <= self.poll <= _POLL[1]):
            found.append(f"POLL_INTERVAL {clip(self.poll_interval)} is not from {_POLL[0]} to {_POLL[1]} ms")
        detection = _milliseconds(self.detection_time)
        if detection is not None and self.poll is not None and detection < self.poll:
            found.append(f"detection_time {detection} is below the POLL_INTERVAL of {self.poll} ms")
        return tuple(found)


def _milliseconds(text: str) -> int | None:
    """Parse a whole number; return None if it is not one."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def least_time(text: str, usual: int) -> int:
    """Return the usual time of a watchdog, or its ``POLL_INTERVAL`` if that is longer [ms]: none may be shorter."""
    poll = _milliseconds(text)
    return usual if poll is None or not _POLL[0] <= poll <= _POLL[1] else max(usual, poll)


def poll_interval(config: ConfigDB) -> str:
    """Return how often the switch looks, as the file says it; empty if it does not."""
    entries = config.table("PFC_WD", needed=False)
    return str(config.entry("PFC_WD", "GLOBAL").get("POLL_INTERVAL", "") if "GLOBAL" in entries else "").strip()


def watchdog_of(config: ConfigDB, port: str) -> Watchdog | None:
    """Return the port's watchdog; None without an entry.

    Raises
    ------
    InputError
        If the table or an entry is no object.
    """
    entries = config.table("PFC_WD", needed=False)
    of_port = config.by_port("PFC_WD").get(port)
    if not of_port:
        return None
    fields = {name: value for entry in of_port for name, value in entry.items()}
    everywhere = config.entry("PFC_WD", "GLOBAL") if "GLOBAL" in entries else {}
    big_red = str(everywhere.get("BIG_RED_SWITCH", "")).strip().lower() == "enable"
    times = {name: str(fields.get(name, "")).strip() for name in TIMES}
    action = str(fields.get("action", _DEFAULT_ACTION)).strip()
    return Watchdog(action, **times, poll_interval=poll_interval(config), sonic=config.is_sonic, big_red=big_red)


# -- other fields ------------------------------------------------------------------------------------------


DEFAULT_MTU = 9100
MOST_BYTES = 1e13


def pausing(config: ConfigDB, port: str) -> Fields:
    """Return the port's own switches of PFC and of its watchdog."""
    lists = any("pfcwd_sw_enable" in fields for rows in config.by_port("PORT_QOS_MAP").values() for fields in rows)
    watched = priorities_of(config, port, "pfcwd_sw_enable") if lists else None
    return {
        "asymmetric": str(config.entry("PORT", port).get("pfc_asym", "")).strip().lower() == "on",
        "watched_priorities": None if watched is None else tuple(sorted(watched)),
        "watchdog_unsaid": not config.is_sonic and "PFC_WD" not in config.tables,
    }


def line_fields(config: ConfigDB, port: str) -> Fields:
    """Return what single lines of another system's text say of a port, in words."""
    if config.is_sonic:
        return {}
    fields = config.table("LINES")[port]
    lines = tuple((label(line), why, typed) for line, why, typed in fields["overrides"])
    buffers = tuple(label(line) for line in fields["buffers"])
    kept = {name: fields[name] for name in ("negotiated", "sends_pause")}
    return {**kept, "overrides": lines, "buffer_lines": buffers, "typed": tuple(sorted(fields["typed"].items()))}


def shaping(config: ConfigDB, choice: Choice) -> Fields:
    """Return the scheduler that limits a queue's rate in bytes."""
    where = f"QUEUE|{choice.port}|{choice.queue} scheduler"
    name = config.reference(choice.fields.get("scheduler"), "SCHEDULER", where)
    table = config.table("SCHEDULER", needed=False)
    fields = config.entry("SCHEDULER", name) if name in table else {}
    if "pir" not in fields or str(fields.get("meter_type", "bytes")).strip().lower() != "bytes":
        return {}
    most = number(fields["pir"], f"{config.name}: SCHEDULER|{label(name)} pir", "bytes per second", 0, MOST_BYTES)
    return {"shaper": most or None, "scheduler": label(name)}


def cabling(config: ConfigDB, port: str) -> Fields:
    """Return the fields that set a port's headroom, and the watchdog over its PAUSEs."""
    lengths = []
    for table in config.table("CABLE_LENGTH", needed=False):
        given = config.entry("CABLE_LENGTH", table).get(port)
        if given is not None:
            text = str(given).strip().lower().removesuffix("m")
            lengths.append(number(text, f"{config.name}: CABLE_LENGTH|{label(table)} {label(port)}", "m", 0, 1e6))
    fields = config.entry("PORT", port)
    mtu = number(fields.get("mtu", DEFAULT_MTU), f"{config.name}: PORT|{label(port)} mtu", "bytes", 64, 1e6)
    return {
        "cable": max(lengths, default=None),
        "mtu": mtu,
        "dynamic_buffers": config.localhost.get("buffer_model") == "dynamic",
        "watchdog": watchdog_of(config, port),
        "watchdog_poll": poll_interval(config),
    }
