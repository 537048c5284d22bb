"""Fields of a switch's port beside its marking and buffers: PAUSEs, single lines, shapers, cables."""

from __future__ import annotations

from fluidcc.operators.config_db import ConfigDB, Fields
from fluidcc.operators.config_files import label, number
from fluidcc.operators.pfc_watchdog import poll_interval, watchdog_of
from fluidcc.operators.roce_queue import Choice, priorities_of

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
