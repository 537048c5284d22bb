"""What the audit suggests is done in a copy of the files, and the audit asked again: cured, and nothing worse.

Two tables are all that a new check needs: `CASES`, a setting that raises each kind of finding and the nearest one that
does not, and `RULES`, how a suggestion's words change the files. A kind without cases fails, and so does a suggestion
that no rule reads.
"""

from __future__ import annotations

import ast
import copy
import dataclasses
import fnmatch
import json
import math
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import fluidcc as fc
from fluidcc.operators.behaviour import behaviour
from fluidcc.operators.checks import fixed_point
from fluidcc.operators.finding import Finding
from fluidcc.operators.roce_queue import PFC_MAP
from tests.operators.short_audits import short_audits

EXAMPLE = Path(__file__).parents[2] / "examples" / "leaf-100g"
PORT = "Ethernet0"  # 100 Gb/s; the paper's thresholds scale to 12.5 KB and 500 KB
PROFILE = "AZURE_LOSSLESS"
WORSE = {"ok": 0, "warn": 1, "bad": 2}
_SIZES = {"B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9}


@dataclasses.dataclass(frozen=True)
class Files:
    """A switch's configuration, a NIC's settings (None: not given), and how many flows are asked about.

    With settings of the NIC's next boot its file has the three columns of ``mlxconfig -e query``.
    """

    config: dict[str, Any]
    nic: dict[str, int] | None
    flows: int = 8
    later: dict[str, int] = dataclasses.field(default_factory=dict)
    packets: int = 0
    packet_size: str | None = "938B"  # 1000 B with its headers

    def audited(self, folder: Path) -> Any:
        switch, settings = folder / "config_db.json", folder / "nic.txt"
        switch.write_text(json.dumps(self.config))
        if self.later and self.nic is not None:
            rows = [f"{n}_P1 {v} {v} {self.later.get(n, v)}" for n, v in self.nic.items()]
            settings.write_text("\n".join(["Configurations: Default Current Next Boot", *rows]))
        elif self.nic is not None:
            settings.write_text("\n".join(f"{name} = {value}" for name, value in self.nic.items()))
        options = {
            "port": PORT,
            "flows": self.flows,
            "packets": self.packets,
            "packet_size": self.packet_size,
        }  # 1000 with headers
        return fc.audit(switch, None if self.nic is None else settings, **options)

    def profile(self, **fields: Any) -> Files:
        """With these fields in the WRED profile; None takes one away."""
        return self.table("WRED_PROFILE", PROFILE, **fields)

    def table(self, table: str, key: str, **fields: Any) -> Files:
        config = copy.deepcopy(self.config)
        entry = config.setdefault(table, {}).setdefault(key, {})
        entry |= {name: str(value) for name, value in fields.items()}
        for name in [name for name, value in fields.items() if value is None]:
            del entry[name]
        return dataclasses.replace(self, config=config)

    def without(self, table: str, key: str) -> Files:
        config = copy.deepcopy(self.config)
        config[table].pop(key, None)
        return dataclasses.replace(self, config=config)

    def no_table(self, table: str) -> Files:
        return dataclasses.replace(self, config={name: rows for name, rows in self.config.items() if name != table})

    def settings(self, **values: int) -> Files:
        """With these settings of the NIC."""
        return dataclasses.replace(self, nic={**(self.nic or {}), **values})

    def of(self, flows: int) -> Files:
        return dataclasses.replace(self, flows=flows)

    def with_packets(self) -> Files:
        return dataclasses.replace(self, packets=2)

    def applied(self, changes: Any) -> Files:
        """With the values that a finding has for machines."""
        files = self
        for change in changes:
            if change.path.startswith("/"):
                assert change.file.endswith("config_db.json")
                table, key, field = (part.replace("~1", "/").replace("~0", "~") for part in change.path[1:].split("/"))
                files = files.table(table, key, **{field: change.value})
            else:
                assert change.file.endswith("nic.txt")
                files = files.settings(**{change.path.removesuffix("_P1"): int(change.value)})
        return files


def _base() -> Files:
    """The sample with one host port's queue, thresholds and NIC as the checks would have them, and one priority."""
    config = json.loads((EXAMPLE / "config_db.json").read_text())
    nic = {"RPG_AI_RATE": 20, "RPG_TIME_RESET": 55, "RPG_BYTE_RESET": 0, "DCE_TCP_RTT": 55, "MIN_TIME_BETWEEN_CNPS": 50}
    made = Files(config, {**nic, "RATE_REDUCE_MONITOR_PERIOD": 4, "CLAMP_TGT_RATE": 1, "ROCE_CC_PRIO_MASK": 255})
    made = made.table("PORT_QOS_MAP", PORT, pfc_enable="3")
    return made.profile(green_min_threshold=12500, green_max_threshold=500000, green_drop_probability=1)


BASE = _base()
GROUPED = BASE.table("PORT_QOS_MAP", PORT, pfc_to_pg_map="AZURE").table("PFC_PRIORITY_TO_PRIORITY_GROUP_MAP", "AZURE")
SLOW = BASE.settings(RPG_AI_RATE=5)
UNSIZED = dataclasses.replace(BASE, packet_size=None)
CABLES = next(iter(BASE.config["CABLE_LENGTH"]))
PG = BASE.config["BUFFER_PG"][f"{PORT}|3-4"]["profile"]
OTHER_PG = "pg_lossless_100000_40m_profile"
POOL = BASE.config["BUFFER_PROFILE"][PG]["pool"]
EGRESS = BASE.config["BUFFER_QUEUE"][f"{PORT}|3-4"]["profile"]
LOSSY = next(name for name, profile in BASE.config["BUFFER_PROFILE"].items() if "lossy" in name)
PFC = BASE.config["PORT_QOS_MAP"][PORT]["pfc_enable"]


def _unlisted(files: Files) -> Files:
    for name in files.config["PORT_QOS_MAP"]:
        files = files.table("PORT_QOS_MAP", name, pfcwd_sw_enable=None)
    return files


UNLISTED = _unlisted(BASE)


def _bound(power: int | None = None) -> float:
    """DCQCN section 4, with the file's numbers: beta (B - 8 n t_flight)/(8 n (beta + 1)), n the ports that are up."""
    profile, pool = BASE.config["BUFFER_PROFILE"][PG], BASE.config["BUFFER_POOL"][POOL]
    beta = 2.0 ** int(profile["dynamic_th"] if power is None else power)
    ports = sum(port["admin_status"] == "up" for port in BASE.config["PORT"].values())
    room = int(pool["size"]) - 8 * ports * int(profile["xoff"])
    return beta * room / (8 * ports * (beta + 1))


BOUND = _bound()
NO_WATCHDOG = "the switch does not take the PFC watchdog"
WATCHED_BADLY = BASE.table("PFC_WD", PORT, detection_time="abc")
DYNAMIC = BASE.table("DEVICE_METADATA", "localhost", buffer_model="dynamic").without("BUFFER_PG", f"{PORT}|3-4")


def _smallest_pool(kmin: int) -> int:
    """Bytes of the pool for which `_bound` is just above ``kmin``."""
    profile = BASE.config["BUFFER_PROFILE"][PG]
    beta = 2.0 ** int(profile["dynamic_th"])
    ports = sum(port["admin_status"] == "up" for port in BASE.config["PORT"].values())
    return math.floor(8 * ports * (kmin * (beta + 1) / beta + int(profile["xoff"]))) + 1


@dataclasses.dataclass(frozen=True)
class Case:
    """A kind of finding: what raises it, and the nearest that does not.

    Parameters
    ----------
    kind : str
        As in the source, with * for what differs.
    severity : str
    raises, spares : Files
    reveals : dict
        Kinds of warnings that may come up when the suggestion is followed, each with the reason.
    """

    kind: str
    severity: str
    raises: Files
    spares: Files
    reveals: dict[str, str] = dataclasses.field(default_factory=dict)
    name: str = ""


_FIRST_LOOK = "with marking that cannot work nothing was simulated: it is looked at for the first time"
_UNSEEN = dict.fromkeys(
    ["no fixed point with * flows", "the link is left idle", "the queue keeps oscillating"], _FIRST_LOOK
)
_MOVED = dict.fromkeys(
    ["the link is left idle", "the queue keeps oscillating"],
    "the thresholds decide on the queue; the audit says what they do, and asks for a sweep",
)

CASES = [
    Case(
        "PFC is off",
        "warn",
        BASE.table("PORT_QOS_MAP", PORT, pfc_enable=""),
        BASE.table("PORT_QOS_MAP", PORT, pfc_enable="3"),
    ),
    Case("ECN is off", "bad", BASE.profile(ecn="ecn_yellow_red"), BASE.profile(ecn="ecn_green"), _UNSEEN),
    Case(
        "ECN is off",
        "bad",
        BASE.table("QUEUE", f"{PORT}|3", wred_profile=None).table("QUEUE", f"{PORT}|4", wred_profile=None),
        BASE,
        _UNSEEN,
        name="no profile",
    ),
    Case(
        "ECN is off",
        "bad",
        BASE.profile(ecn="ECN_ALL"),
        BASE.profile(ecn="ecn_all"),
        _UNSEEN,
        name="in capitals, which the switch refuses",
    ),
    Case(
        "ECN is off",
        "bad",
        BASE.profile(wred_green_enable="True"),
        BASE.profile(wred_green_enable="true"),
        _UNSEEN,
        name="a switch in capitals",
    ),
    Case(
        "the PFC watchdog may watch nothing",
        "warn",
        UNLISTED,
        BASE,
    ),
    Case(
        "the shared headroom is too small",
        "bad",
        BASE.table("BUFFER_POOL", POOL, xoff=int(BASE.config["BUFFER_PROFILE"][PG]["xoff"]) - 1),
        BASE.table("BUFFER_POOL", POOL, xoff=BASE.config["BUFFER_PROFILE"][PG]["xoff"]),
    ),
    Case(
        "the priority group has no buffer",
        "bad",
        BASE.without("BUFFER_PG", f"{PORT}|3-4").table("BUFFER_PG", f"{PORT}|4", profile=PG),
        BASE.without("BUFFER_PG", f"{PORT}|3-4").table("BUFFER_PG", f"{PORT}|3", profile=PG),
    ),
    Case(
        "the priority group is lossy",
        "bad",
        BASE.without("BUFFER_PG", f"{PORT}|3-4").table("BUFFER_PG", f"{PORT}|0-7", profile=LOSSY),
        BASE.without("BUFFER_PG", f"{PORT}|3-4").table("BUFFER_PG", f"{PORT}|0-7", profile=PG),
        name="of all eight groups",
    ),
    Case(
        "Kmax is below Kmin",
        "bad",
        BASE.profile(green_min_threshold=500001),
        BASE.profile(green_min_threshold=500000),
        _UNSEEN
        | {
            "PFC can pause before ECN marks": "Kmin was the larger of the two, and still is above the bound",
            "one packet climbs the ramp": "the two are a byte apart, in either order",
        },
    ),
    Case(
        "marking is a step marking",
        "warn",
        BASE.profile(green_min_threshold=15000, green_max_threshold=15000),
        BASE.profile(green_min_threshold=15000, green_max_threshold=15001),
        _MOVED | {"no fixed point with * flows": "a step marking has none either, and says so by itself"},
    ),
    Case(
        "marking is a step marking",
        "warn",
        BASE.profile(green_min_threshold=0, green_max_threshold=0),
        BASE.profile(green_min_threshold=0, green_max_threshold=1),
        _MOVED | {"no fixed point with * flows": "a step marking has none either, and says so by itself"},
        name="at 0",
    ),
    Case("Pmax is 0", "bad", BASE.profile(green_drop_probability=0), BASE.profile(green_drop_probability=1), _UNSEEN),
    Case(
        "thresholds are not scaled with port speed",
        "warn",
        BASE.profile(green_max_threshold=2_000_001),
        BASE.profile(green_max_threshold=2_000_000),
        _MOVED,
        name="4 times the paper's",
    ),
    Case(
        "thresholds are lower than others'",
        "ok",
        BASE.profile(green_max_threshold=124_999),
        BASE.profile(green_max_threshold=125_000),
        name="a quarter of the paper's",
    ),
    Case("thresholds scaled with port speed", "ok", BASE, BASE.profile(green_max_threshold=2_000_001)),
    Case("one profile for several speeds", "warn", BASE.table("PORT", "Ethernet4", speed=40000), BASE),
    Case(
        "one profile for several speeds",
        "warn",
        BASE.table("PORT", "Ethernet4", speed=40000),
        BASE.table("PORT", "Ethernet4", speed=40000, admin_status="down"),
        name="shut down",
    ),
    Case(
        "PFC before ECN not checked",
        "warn",
        BASE.without("BUFFER_PG", f"{PORT}|3-4"),
        BASE.without("BUFFER_PG", "Ethernet4|3-4"),
        name="no group",
    ),
    *(
        Case("PFC before ECN not checked", "warn", BASE.table(table, key, **{field: None}), BASE, name=field)
        for table, key, field in (
            ("BUFFER_POOL", POOL, "size"),
            ("BUFFER_PROFILE", PG, "xoff"),
            ("BUFFER_PROFILE", PG, "dynamic_th"),
        )
    ),
    Case(
        "the priority group is lossy",
        "bad",
        BASE.table("BUFFER_PG", f"{PORT}|3-4", profile="ingress_lossy_profile"),
        BASE.table("BUFFER_PG", f"{PORT}|0", profile="ingress_lossy_profile"),
    ),
    Case(
        "the priority group is lossy",
        "bad",
        BASE.table("BUFFER_PROFILE", PG, xoff=None, xon=None).table("BUFFER_PROFILE", OTHER_PG, xoff=None),
        BASE.table("BUFFER_PROFILE", PG, xoff=None),
        name="without another profile",
    ),
    Case("ECN marks before PFC pauses", "ok", BASE, BASE.profile(green_min_threshold=math.ceil(BOUND))),
    Case(
        "PFC can pause before ECN marks",
        "warn",
        BASE.profile(green_min_threshold=math.ceil(BOUND)),
        BASE.profile(green_min_threshold=math.ceil(BOUND) - 1),
        _MOVED,
    ),
    Case(
        "PFC can pause before ECN marks",
        "warn",
        BASE.table("BUFFER_PROFILE", PG, dynamic_th=3).profile(green_min_threshold=math.ceil(_bound(3))),
        BASE.table("BUFFER_PROFILE", PG, dynamic_th=3).profile(green_min_threshold=math.ceil(_bound(3)) - 1),
        _MOVED,
        name="with the largest share of the buffer",
    ),
    Case(
        "PFC can pause before ECN marks",
        "warn",
        BASE.table("BUFFER_POOL", POOL, size=2_000_000),
        BASE.table("BUFFER_POOL", POOL, size=_smallest_pool(12500)),
        name="a pool smaller than its headroom",
    ),
    Case(
        "the NIC changes at its next boot",
        "warn",
        dataclasses.replace(BASE, later={"RPG_AI_RATE": 21}),
        dataclasses.replace(BASE, later={"RPG_AI_RATE": 20}),
    ),
    Case("no NIC settings", "warn", dataclasses.replace(BASE, nic=None), BASE, _MOVED),
    Case("rows name ports that PORT lacks", "warn", BASE.table("QUEUE", "etp1|3", scheduler="scheduler.0"), BASE),
    Case(
        "DCQCN is off for this priority",
        "bad",
        BASE.settings(ROCE_CC_PRIO_MASK=255 - 8),
        BASE.settings(ROCE_CC_PRIO_MASK=8),
    ),
    Case(
        "DCQCN is off for this priority",
        "bad",
        BASE.settings(**{"roce_np/enable/3": 0, "roce_rp/enable/3": 0}),
        BASE.settings(**{"roce_np/enable/3": 1, "roce_rp/enable/3": 1, "roce_np/enable/0": 0}),
        name="in the driver's files",
    ),
    Case(
        "DCQCN is off for this priority",
        "bad",
        BASE.settings(**{"roce_np/enable/3": 1, "roce_rp/enable/3": 0}),
        BASE.settings(**{"roce_rp/enable/4": 0}),
        name="at one end",
    ),
    Case("the NIC does not run DCQCN", "bad", BASE.settings(ROCE_CC_ALGORITHM=1), BASE.settings(ROCE_CC_ALGORITHM=0)),
    Case(
        "flows may share their CNPs",
        "warn",
        BASE.settings(ROCE_CC_CNP_MODERATION=1),
        BASE.settings(ROCE_CC_CNP_MODERATION=0),
    ),
    Case(
        "alpha's period is shorter than the CNP interval",
        "ok",
        BASE.settings(DCE_TCP_RTT=49),
        BASE.settings(DCE_TCP_RTT=50),
    ),
    Case("rates rise between CNPs", "warn", BASE.settings(RPG_TIME_RESET=49), BASE.settings(RPG_TIME_RESET=50), _MOVED),
    Case(
        "the byte counter dominates the rate increase",
        "warn",
        BASE.settings(RPG_BYTE_RESET=687_499),  # 55 us at 12.5 GB/s are 687,500 bytes
        BASE.settings(RPG_BYTE_RESET=687_500),
        _MOVED,
    ),
    Case(
        "the byte counter dominates the rate increase",
        "warn",
        BASE.settings(RPG_BYTE_RESET=24_999, RPG_TIME_RESET=2, MIN_TIME_BETWEEN_CNPS=1, RATE_REDUCE_MONITOR_PERIOD=1),
        BASE.settings(RPG_BYTE_RESET=25_000, RPG_TIME_RESET=2, MIN_TIME_BETWEEN_CNPS=1, RATE_REDUCE_MONITOR_PERIOD=1),
        _MOVED,
        name="within the field",
    ),
    Case(
        "the byte counter dominates the rate increase",
        "warn",
        BASE.settings(RPG_BYTE_RESET=32_767, RPG_TIME_RESET=300, MIN_TIME_BETWEEN_CNPS=4),
        BASE.settings(RPG_BYTE_RESET=0, RPG_TIME_RESET=100, MIN_TIME_BETWEEN_CNPS=4),
        _MOVED | {"the engines contradict each other": "these thresholds are for another NIC; it asks for packets"},
        name="with a slow timer",
    ),
    Case(
        "the rate timer is slow",
        "warn",
        BASE.settings(RPG_TIME_RESET=101, MIN_TIME_BETWEEN_CNPS=10),
        BASE.settings(RPG_TIME_RESET=101, MIN_TIME_BETWEEN_CNPS=11),
        _MOVED,
    ),
    Case("the port is not overloaded", "ok", BASE.of(1), BASE.of(2)),
    Case("a fixed point exists", "ok", SLOW.of(50), SLOW.of(51), name="with as many flows as Pmax holds"),
    Case("a fixed point exists", "ok", BASE.of(2), BASE.of(1), name="with as few as fill the link"),
    Case("no fixed point with * flows", "warn", SLOW.of(51), SLOW.of(50), _MOVED),
    # Between what 8 seeds tell apart; the answer turns over at some setting in between.
    Case("the flows settle", "ok", BASE.settings(RPG_AI_RATE=100), BASE.settings(RPG_AI_RATE=300)),
    Case("the queue keeps oscillating", "warn", BASE.settings(RPG_AI_RATE=300), BASE.settings(RPG_AI_RATE=100)),
    Case("the link is left idle", "warn", BASE.settings(RPG_AI_RATE=800), BASE.settings(RPG_AI_RATE=400)),
    Case(
        "PFC pauses the senders",
        "warn",
        BASE.profile(green_min_threshold=100_000, green_max_threshold=2_000_000).table(
            "BUFFER_PROFILE", PG, dynamic_th=-8
        ),
        BASE.profile(green_min_threshold=100_000, green_max_threshold=2_000_000),
    ),
    Case("packet runs agree", "ok", BASE.with_packets(), BASE),
    Case(
        "packets say otherwise",
        "warn",
        BASE.profile(green_min_threshold=100_000, green_max_threshold=2_000_000)
        .table("BUFFER_PROFILE", PG, dynamic_th=-10)
        .with_packets(),
        BASE.profile(green_min_threshold=100_000, green_max_threshold=2_000_000).with_packets(),
    ),
    Case(
        "packets were not run",
        "ok",
        BASE.table("BUFFER_POOL", POOL, size=200_000).with_packets(),
        BASE.table("BUFFER_POOL", POOL, size=300_000).with_packets(),
    ),
    Case(
        "packets are lost",
        "bad",
        BASE.table("PORT_QOS_MAP", PORT, pfc_enable="").table("BUFFER_POOL", POOL, size=300_000).with_packets(),
        BASE.with_packets(),
    ),
    Case(
        "* is beyond mlxconfig's field",
        "warn",
        BASE.settings(RPG_AI_RATE=131_072),
        BASE.settings(RPG_AI_RATE=131_071),
        _MOVED,
    ),
    Case(
        "* is beyond mlxconfig's field",
        "warn",
        BASE.settings(RPG_BYTE_RESET=32_768, RPG_TIME_RESET=2, MIN_TIME_BETWEEN_CNPS=1, RATE_REDUCE_MONITOR_PERIOD=1),
        BASE.settings(RPG_BYTE_RESET=32_767, RPG_TIME_RESET=2, MIN_TIME_BETWEEN_CNPS=1, RATE_REDUCE_MONITOR_PERIOD=1),
        _MOVED,
        name="of 15 bits",
    ),
    Case("headroom fits the cable", "ok", BASE, BASE.table("CABLE_LENGTH", CABLES, **{PORT: "2000m"})),
    # 1 KiB + 9100 B + 2 x 5 m/198 m/us x 12.5 KB/us + 0.8 KiB + 394 x 64 B
    Case(
        "headroom is too small for the cable",
        "bad",
        BASE.table("BUFFER_PROFILE", PG, xoff=36_790),
        BASE.table("BUFFER_PROFILE", PG, xoff=36_791),
    ),
    Case(
        "headroom is too small for the cable",
        "bad",
        BASE.table("CABLE_LENGTH", CABLES, **{PORT: "2000m"}),
        BASE.table("CABLE_LENGTH", CABLES, **{PORT: "40m"}),
        {"PFC can pause before ECN marks": "section 4 subtracts the headroom of all ports and priorities"},
        name="2 km",
    ),
    Case("headroom not checked", "warn", BASE.table("CABLE_LENGTH", CABLES, **{PORT: None}), BASE),
    Case(
        "headroom not checked",
        "warn",
        BASE.table("CABLE_LENGTH", CABLES, **{PORT: "0m"}),
        BASE.table("CABLE_LENGTH", CABLES, **{PORT: "1m"}),
        name="of 0 m",
    ),
    Case(
        "a shaper limits the queue",
        "warn",
        BASE.table("SCHEDULER", "scheduler.1", pir=12_499_999_999),
        BASE.table("SCHEDULER", "scheduler.1", pir=12_500_000_000),
    ),
    Case("the switch computes its headroom", "ok", DYNAMIC, BASE.without("BUFFER_PG", f"{PORT}|3-4")),
    Case("PFC before ECN not checked", "warn", DYNAMIC, BASE, name="dynamic buffers"),
    Case("DSCPs lead to this queue", "ok", BASE, BASE.table("DSCP_TO_TC_MAP", "AZURE", **{"3": 1, "26": 1})),
    Case("no DSCP leads to this queue", "bad", BASE.table("DSCP_TO_TC_MAP", "AZURE", **{"3": 1, "26": 1}), BASE),
    Case(
        "PFC watches another priority group",
        "bad",
        BASE.table("TC_TO_PRIORITY_GROUP_MAP", "AZURE", **{"3": 0}),
        BASE.table("TC_TO_PRIORITY_GROUP_MAP", "AZURE", **{"5": 3}),
    ),
    Case(
        "PFC watches another priority group",
        "bad",
        GROUPED.table("PFC_PRIORITY_TO_PRIORITY_GROUP_MAP", "AZURE", **{"3": 4, "4": 3}),
        GROUPED.table("PFC_PRIORITY_TO_PRIORITY_GROUP_MAP", "AZURE", **{"5": 3}),
        name="by the priority's map",
    ),
    Case(
        "PFC watches another priority group",
        "bad",
        BASE.table("TC_TO_QUEUE_MAP", "AZURE", **{"3": 5, "5": 3}),
        BASE.table("TC_TO_QUEUE_MAP", "AZURE", **{"5": 6, "6": 5}),
        name="by the queues' map",
    ),
    Case(
        "no DSCP leads to this queue",
        "bad",
        BASE.table("TC_TO_QUEUE_MAP", "AZURE", **{"3": 2}),
        BASE.table("TC_TO_QUEUE_MAP", "AZURE", **{"5": 2}),
        name="by the queues' map",
    ),
    Case(
        "PAUSE stops another queue",
        "bad",
        BASE.table("PORT_QOS_MAP", PORT, pfc_enable="3,4").table(PFC_MAP, "AZURE", **{"3": 4, "4": 3}),
        BASE.table("PORT_QOS_MAP", PORT, pfc_enable="3,4").table(PFC_MAP, "AZURE", **{"5": 6, "6": 5}),
    ),
    Case(
        "PAUSE stops another queue",
        "bad",
        BASE.table(PFC_MAP, "AZURE", **{"3": 4}),
        BASE.table(PFC_MAP, "AZURE", **{"3": 5}).table("TC_TO_QUEUE_MAP", "AZURE", **{"3": 5}),
        name="of one priority",
    ),
    Case("maps are named that the file lacks", "warn", BASE.no_table("DSCP_TO_TC_MAP"), BASE),
    Case("maps are named that the file lacks", "warn", BASE.no_table("TC_TO_PRIORITY_GROUP_MAP"), BASE, name="groups"),
    Case(
        "more flows than their least rate allows",
        "bad",
        BASE.of(100_000),
        BASE.of(8),
        _UNSEEN,
    ),
    Case(
        "more flows than their least rate allows",
        "bad",
        BASE.settings(RPG_MIN_RATE=20_000),
        BASE.settings(RPG_MIN_RATE=10),
        {"the engines contradict each other": "all rates are within a percent of what the port carries"},
        name="least rate",
    ),
    Case("CNPs wait behind data", "warn", BASE.settings(CNP_DSCP=26), BASE.settings(CNP_DSCP=48)),
    Case("DSCPs are not checked", "warn", BASE.table("PORT_QOS_MAP", PORT, dscp_to_tc_map=None), BASE),
    Case(
        "the PFC watchdog does not watch this priority",
        "warn",
        BASE.table("PORT_QOS_MAP", PORT, pfcwd_sw_enable="4"),
        BASE.table("PORT_QOS_MAP", PORT, pfcwd_sw_enable="3"),
    ),
    Case(
        "the big red switch is on",
        "bad",
        BASE.table("PFC_WD", "GLOBAL", BIG_RED_SWITCH="enable"),
        BASE.table("PFC_WD", "GLOBAL", BIG_RED_SWITCH="disable"),
    ),
    Case("PFC is asymmetric", "ok", BASE.table("PORT", PORT, pfc_asym="on"), BASE.table("PORT", PORT, pfc_asym="off")),
    # Two packets of 4096 B with 62 B of headers.
    Case(
        "Kmin is below two packets",
        "warn",
        UNSIZED.profile(green_min_threshold=8315),
        UNSIZED.profile(green_min_threshold=8316),
        _MOVED,
    ),
    Case(
        "Kmin is below two packets",
        "warn",
        UNSIZED.profile(green_min_threshold=2000, green_max_threshold=9000),
        UNSIZED.profile(green_min_threshold=8316, green_max_threshold=16632),
        _MOVED | {"PFC can pause before ECN marks": "bursts take 13 packets, and the file's bound is lower"},
        name="on a ramp that ends too early",
    ),
    # 8 flows with bursts of 4 packets of 1000 B: on a ramp to 60 KB 1.2 % are marked from 6 KB on, 0.8 % from 7 KB.
    Case(
        "bursts alone get packets marked",
        "warn",
        BASE.profile(green_min_threshold=6000, green_max_threshold=60_000, green_drop_probability=100),
        BASE.profile(green_min_threshold=7000, green_max_threshold=60_000, green_drop_probability=100),
        _MOVED,
    ),
    Case(
        "one packet climbs the ramp",
        "warn",
        UNSIZED.profile(green_max_threshold=12_500 + 4157),
        UNSIZED.profile(green_max_threshold=12_500 + 4158),
        _MOVED | {"no fixed point with * flows": "of so steep a ramp there is none either, or another"},
    ),
    Case(
        "thresholds are above what the queue may hold",
        "warn",
        BASE.table("BUFFER_PROFILE", EGRESS, static_th=499_999).table("PORT_QOS_MAP", PORT, pfc_enable=""),
        BASE.table("BUFFER_PROFILE", EGRESS, static_th=500_000).table("PORT_QOS_MAP", PORT, pfc_enable=""),
        _MOVED,
    ),
    Case(
        "thresholds are above what the queue may hold",
        "bad",
        BASE.profile(green_min_threshold=600_000, green_max_threshold=700_000)
        .table("BUFFER_PROFILE", EGRESS, static_th=600_000)
        .table("PORT_QOS_MAP", PORT, pfc_enable=""),
        BASE.profile(green_min_threshold=600_000, green_max_threshold=700_000)
        .table("BUFFER_PROFILE", EGRESS, static_th=700_000)
        .table("PORT_QOS_MAP", PORT, pfc_enable=""),
        _UNSEEN,
        name="Kmin too",
    ),
    # A group that fills the pool alone pauses at beta/(1 + beta) of it: half.
    Case(
        "the queue overflows before PFC pauses",
        "bad",
        BASE.table("BUFFER_PROFILE", EGRESS, static_th=22_020_096 // 2 - 1),
        BASE.table("BUFFER_PROFILE", EGRESS, static_th=22_020_096 // 2),
    ),
    # Packets of a group may wait at all 32 ports.
    Case(
        "PFC can pause before ECN marks",
        "warn",
        BASE.table("BUFFER_PROFILE", PG, dynamic_th=None, static_th=32 * 12_500),
        BASE.table("BUFFER_PROFILE", PG, dynamic_th=None, static_th=32 * 12_500 + 1),
        _MOVED,
        name="static",
    ),
    Case("no PFC watchdog", "warn", BASE.without("PFC_WD", PORT), BASE),
    Case(
        "no PFC watchdog",
        "warn",
        BASE.table("PFC_WD", "GLOBAL", POLL_INTERVAL=400).without("PFC_WD", PORT),
        BASE.table("PFC_WD", "GLOBAL", POLL_INTERVAL=400).table("PFC_WD", PORT, detection_time=400),
        name="that polls seldom",
    ),
    Case("PFC watchdog", "ok", BASE.table("PFC_WD", PORT, action="forward"), WATCHED_BADLY),
    Case(NO_WATCHDOG, "warn", WATCHED_BADLY, BASE, name="no number"),
    Case(NO_WATCHDOG, "warn", BASE.table("PFC_WD", PORT, detection_time=0), BASE, name="out of range"),
    Case(NO_WATCHDOG, "warn", BASE.table("PFC_WD", PORT, action="stop"), BASE, name="unknown action"),
    Case(NO_WATCHDOG, "warn", BASE.table("PFC_WD", "GLOBAL", POLL_INTERVAL=400), BASE, name="polls too seldom"),
    Case(NO_WATCHDOG, "warn", BASE.table("PFC_WD", "GLOBAL", POLL_INTERVAL=0), BASE, name="never polls"),
    Case("the PFC watchdog only reports", "warn", BASE.table("PFC_WD", PORT, action="alert"), BASE),
    Case("green packets may go unmarked", "warn", BASE.profile(wred_green_enable="false"), BASE),
    Case("green packets may go unmarked", "warn", BASE.profile(wred_green_enable=None), BASE, name="not given"),
    Case(
        "the NIC may not run DCQCN",
        "warn",
        BASE.settings(USER_PROGRAMMABLE_CC=1),
        BASE.settings(USER_PROGRAMMABLE_CC=1, ROCE_CC_LEGACY_DCQCN=1),
    ),
]


# -- what a suggestion's words do to the files -------------------------------------------------------------------------


def _bytes(text: str) -> int:
    number, unit = re.fullmatch(r"([\d.]+)([KMG]?B)", text).groups()  # type: ignore[union-attr]
    return round(float(number) * _SIZES[unit])


def _maps_back(files: Files) -> Files:
    return dataclasses.replace(files, config=BASE.config | files.config)


def _exchanged(files: Files) -> Files:
    entry = files.config["WRED_PROFILE"][PROFILE]
    low, high = entry["green_min_threshold"], entry["green_max_threshold"]
    return files.profile(green_min_threshold=high, green_max_threshold=low)


def _by_speed(files: Files) -> Files:
    """A profile for each speed, thresholds in proportion to those of this port's."""
    own = int(files.config["PORT"][PORT]["speed"])
    for port, fields in files.config["PORT"].items():
        speed = int(fields["speed"])
        if speed != own:
            name = f"{PROFILE}_{speed}"
            scaled = {
                key: round(int(value) * speed / own) if key.endswith("threshold") else value
                for key, value in files.config["WRED_PROFILE"][PROFILE].items()
            }
            files = files.table("WRED_PROFILE", name, **scaled)
            for queue in (3, 4):
                files = files.table("QUEUE", f"{port}|{queue}", wred_profile=name)
    return files


def _new_profile(files: Files, low: str, high: str, percent: str, key: str) -> Files:
    thresholds = {"green_min_threshold": low, "green_max_threshold": high, "green_drop_probability": percent}
    profile = {"ecn": "ecn_all", "wred_green_enable": "true"} | thresholds
    return files.table("WRED_PROFILE", "NEW", **profile).table("QUEUE", key, wred_profile="NEW")


def _given(files: Files, text: str) -> Files:
    """What a priority group lacks, as the sample has it."""
    homes = {"BUFFER_POOL": POOL, "BUFFER_PROFILE": PG}
    for field, table in re.findall(r"(\w+) in its (\w+)", text):
        files = files.table(table, homes[table], **{field: BASE.config[table][homes[table]][field]})
    return files


RULES: list[tuple[str, list[Callable[..., Files]]]] = [  # each way that a suggestion names must do
    (
        r"add priority (\d) to pfc_enable of PORT_QOS_MAP\|(\w+)",
        [lambda f, priority, port: f.table("PORT_QOS_MAP", port, pfc_enable=priority)],
    ),
    (
        r'set "ecn": "(\w+)" and "wred_green_enable": "true"',
        [lambda f, mode: f.profile(ecn=mode, wred_green_enable="true")],
    ),
    (
        r"raise xoff of the BUFFER_POOL of BUFFER_PROFILE\|\w+: (\d+) holds that of all ports",
        [lambda f, size: f.table("BUFFER_POOL", POOL, xoff=size)],
    ),
    (r'set "ecn": "(\w+)"', [lambda f, mode: f.profile(ecn=mode)]),
    (
        r'add a WRED_PROFILE with "ecn": "ecn_all", "wred_green_enable": "true", green_min_threshold (\d+), '
        r"green_max_threshold (\d+) and "
        r"green_drop_probability (\d+), and name it as wred_profile of QUEUE\|(.+)",
        [_new_profile],
    ),
    (r"exchange the two", [_exchanged]),
    (
        r"raise green_min_threshold to (\d+) or more and green_max_threshold to (\d+) or more",
        [lambda f, kmin, kmax: f.profile(green_min_threshold=kmin, green_max_threshold=kmax)],
    ),
    # Of these no single value is meant.
    (r"lower green_max_threshold, or raise the drop probability", []),
    (r"let packets decide: --packets 2", []),
    (r"no pool is so large \(\S+\): count PAUSEs \(fluidcc tune\), and leave Kmin if they are few", []),
    (
        r"set Kmin (\S+) and Kmax (\S+) with a drop probability of (\d+) %, the paper's scaled to the port's rate",
        [
            lambda f, low, high, percent: f.profile(
                green_min_threshold=_bytes(low), green_max_threshold=_bytes(high), green_drop_probability=percent
            )
        ],
    ),
    (r"set drop probability (\d+)", [lambda f, percent: f.profile(green_drop_probability=percent)]),
    (
        r"at \S+ the paper's settings scale to Kmin (\S+), Kmax (\S+); sweep around them",
        [
            lambda f, low, high: f.profile(green_min_threshold=_bytes(low), green_max_threshold=_bytes(high)),
        ],
    ),
    (r"give each speed its own WRED_PROFILE, with thresholds in proportion", [_by_speed]),
    (
        r"add BUFFER_PG\|(\w+)\|(\d) with a BUFFER_PROFILE",
        [lambda f, port, priority: f.table("BUFFER_PG", f"{port}|{priority}", profile=PG)],
    ),
    (
        r"add BUFFER_PG\|(\w+\|\d) with profile (\w+)",
        [lambda f, key, name: f.table("BUFFER_PG", key, profile=name)],
    ),
    (
        r"split BUFFER_PG\|(\w+\|0-7): BUFFER_PG\|(\w+\|\d) with (\w+), the rest as it is",
        [lambda f, key, row, name: f.without("BUFFER_PG", key).table("BUFFER_PG", row, profile=name)],
    ),
    (
        r"set profile of BUFFER_PG\|(\w+\|\d-\d) to (\w+)",
        [lambda f, key, name: f.table("BUFFER_PG", key, profile=name)],
    ),
    (
        r"add a BUFFER_PROFILE with xoff, xon and dynamic_th, and name it in BUFFER_PG\|(\w+\|\d-\d)",
        [
            lambda f, key: f.table("BUFFER_PROFILE", "NEW", **BASE.config["BUFFER_PROFILE"][PG]).table(
                "BUFFER_PG", key, profile="NEW"
            )
        ],
    ),
    (r"give BUFFER_PG\|\w+\|\d (.*)", [_given]),
    (
        r"lower green_min_threshold to (\d+) or less, or raise dynamic_th to (-?\d+)",
        [
            lambda f, kmin, _: f.profile(green_min_threshold=kmin),
            lambda f, _, power: f.table("BUFFER_PROFILE", PG, dynamic_th=power),
        ],
    ),
    (r"lower green_min_threshold to (\d+) or less", [lambda f, kmin: f.profile(green_min_threshold=kmin)]),
    (
        r"enlarge the pool to (\d+) or more, or lower the headroom \(xoff\) if cables allow",
        [lambda f, size: f.table("BUFFER_POOL", POOL, size=size)],
    ),
    (
        r"reset it to have them now, or set them back",
        [
            lambda f: dataclasses.replace(f.settings(**f.later), later={}),
            lambda f: dataclasses.replace(f, later={}),
        ],
    ),
    (
        r"take pir out of SCHEDULER\|(\S+), or scale what follows to its rate",
        [lambda f, name: f.table("SCHEDULER", name, pir=None)],
    ),
    (
        r"write names of table PORT in place of aliases and ranges, or delete the rows",
        [lambda f: f.without("QUEUE", "etp1|3")],
    ),
    (r"give --nic FILE", [lambda f: dataclasses.replace(f, nic=BASE.nic)]),
    (r"set ROCE_CC_PRIO_MASK_P1 to (\d+)", [lambda f, mask: f.settings(ROCE_CC_PRIO_MASK=int(mask))]),
    (
        r"set (roce_[nr]p/enable/3) to 1(?: and (roce_rp/enable/3) to 1)?",
        [lambda f, *names: f.settings(**{name: 1 for name in names if name})],
    ),
    (r"set (ROCE_CC_ALGORITHM|ROCE_CC_CNP_MODERATION)_P1 to 0", [lambda f, name: f.settings(**{name: 0})]),
    (r"raise it above (\d+)", [lambda f, time: f.settings(RPG_TIME_RESET=int(time) + 1)]),
    (r"raise rpg_byte_reset to (\d+) or more", [lambda f, size: f.settings(RPG_BYTE_RESET=int(size))]),
    (
        r"set rpg_byte_reset to (\d+), which turns it off \(\d+ is beyond mlxconfig's field\); flows .*",
        [lambda f, size: f.settings(RPG_BYTE_RESET=int(size))],
    ),
    (
        r"set rpg_byte_reset to (\d+), which turns it off \(.*\), and rpg_time_reset to (\d+); flows .*",
        [lambda f, size, time: f.settings(RPG_BYTE_RESET=int(size), RPG_TIME_RESET=int(time))],
    ),
    (
        r"set rpg_time_reset to (\d+), with thresholds that are tuned for it: .*",
        [lambda f, time: f.settings(RPG_TIME_RESET=int(time))],
    ),
    (r"raise the drop probability to (\d+) %", [lambda f, percent: f.profile(green_drop_probability=percent)]),
    (r'set "wred_green_enable": "true" in WRED_PROFILE\|\w+', [lambda f: f.profile(wred_green_enable="true")]),
    (
        r'add "(\w+)": "(\w+)", or what it is, to CABLE_LENGTH',
        [lambda f, port, length: f.table("CABLE_LENGTH", CABLES, **{port: length})],
    ),
    (
        r"raise xoff of BUFFER_PROFILE\|(\w+) to (\d+) or more, or correct the length of \w+ in CABLE_LENGTH",
        [lambda f, profile, xoff: f.table("BUFFER_PROFILE", profile, xoff=xoff)],
    ),
    (
        r"map (?:RoCE's DSCP|DSCP (\d+)) to (?:traffic class (\d+)|a traffic class of its own) in "
        r"DSCP_TO_TC_MAP\|(\w+)",
        [lambda f, dscp, to, name: f.table("DSCP_TO_TC_MAP", name, **{dscp or "26": to or 6})],
    ),
    (
        r"set (\d) to (\d) in TC_TO_PRIORITY_GROUP_MAP\|(\w+)",
        [lambda f, first, to, name: f.table("TC_TO_PRIORITY_GROUP_MAP", name, **{first: to})],
    ),
    (
        r"set (\d) to (\d)(?: and (\d) to (\d))? in (\w+)\|(\w+)",
        [
            lambda f, one, to, other, there, table, name: f.table(
                table, name, **{one: to}, **({other: there} if other else {})
            )
        ],
    ),
    (
        r"set (rpg_\w+) to (\d+)(?:, which turns it off| or less)",
        [lambda f, name, value: f.settings(**{name.upper(): int(value)})],
    ),
    (
        r"add PFC_WD\|(\w+) with action drop, detection_time (\d+) and restoration_time (\d+)",
        [lambda f, port, *at: f.table("PFC_WD", port, action="drop", detection_time=at[0], restoration_time=at[1])],
    ),
    (
        r"set action drop, detection_time 200 and restoration_time 200 in PFC_WD\|(\w+)",
        [lambda f, port: f.table("PFC_WD", port, action="drop", detection_time=200, restoration_time=200)],
    ),
    (
        r"set action drop, detection_time 200 and restoration_time 200 in PFC_WD\|(\w+), "
        r"and POLL_INTERVAL 200 in PFC_WD\|GLOBAL",
        [
            lambda f, port: f.table("PFC_WD", port, action="drop", detection_time=200, restoration_time=200).table(
                "PFC_WD", "GLOBAL", POLL_INTERVAL=200
            )
        ],
    ),
    (
        r"set dscp_to_tc_map of PORT_QOS_MAP\|(\w+), by which RoCE's DSCP goes to queue \d",
        [lambda f, port: f.table("PORT_QOS_MAP", port, dscp_to_tc_map="AZURE")],
    ),
    (
        r"set pfcwd_sw_enable of PORT_QOS_MAP\|(\w+) to ([\d,]+)",
        [lambda f, port, listed: f.table("PORT_QOS_MAP", port, pfcwd_sw_enable=listed)],
    ),
    (
        r"set BIG_RED_SWITCH disable in PFC_WD\|GLOBAL",
        [lambda f: f.table("PFC_WD", "GLOBAL", BIG_RED_SWITCH="disable")],
    ),
    (r"raise green_min_threshold to (\d+) or more", [lambda f, kmin: f.profile(green_min_threshold=kmin)]),
    (r"raise green_max_threshold to (\d+) or more", [lambda f, kmax: f.profile(green_max_threshold=kmax)]),
    (
        r"set Kmin (\S+) and Kmax (\S+), and sweep around them",
        [lambda f, low, high: f.profile(green_min_threshold=_bytes(low), green_max_threshold=_bytes(high))],
    ),
    (r"lower green_max_threshold to (\d+)", [lambda f, high: f.profile(green_max_threshold=high)]),
    (
        r"lower green_min_threshold to (\d+) and green_max_threshold to (\d+)",
        [lambda f, low, high: f.profile(green_min_threshold=low, green_max_threshold=high)],
    ),
    (
        r"let queue \d hold (\S+) or more: BUFFER_PROFILE\|(\w+) \(its static_th or dynamic_th\) and its pool's size",
        [lambda f, size, name: f.table("BUFFER_PROFILE", name, static_th=math.ceil(_bytes(size) * 1.001))],
    ),
    (
        r"lower green_min_threshold to (\d+) or less, or raise static_th of BUFFER_PROFILE\|(\w+) to (\d+) or more",
        [
            lambda f, kmin, *_: f.profile(green_min_threshold=kmin),
            lambda f, _, name, size: f.table("BUFFER_PROFILE", name, static_th=size),
        ],
    ),
    (r"lower rpg_min_rate to (\d+) or less", [lambda f, most: f.settings(RPG_MIN_RATE=int(most))]),
    (r"add \w+\|AZURE, as config qos reload does, or hand over the switch's whole configuration", [_maps_back]),
    (
        r"no whole Mb/s is low enough: ask about (\d+) flows or fewer \(--flows\)",
        [lambda f, most: f.of(int(most) // 10_000)],
    ),
    (r"set action drop in PFC_WD\|(\w+)", [lambda f, port: f.table("PFC_WD", port, action="drop")]),
    (
        r"set (\w+) to 1 if DCQCN is meant, or (\w+) to 0",
        [lambda f, on, _: f.settings(**{on: 1}), lambda f, _, off: f.settings(**{off: 0})],
    ),
    # No setting, but where to look for one.
    (r"tune kmin, kmax, pmax and g: fluidcc tune dcqcn --from \.\.\. .* --write out/", []),
    (r"read them on the switch: show buffer information", []),
]


def followed(files: Files, suggestion: str) -> list[Files] | None:
    """The files as a suggestion would have them, one for each way that it names; None if no rule reads it."""
    for pattern, changes in RULES:
        match = re.fullmatch(pattern, suggestion)
        if match:
            return [change(files, *match.groups()) for change in changes]
    return None


# -- the tests ---------------------------------------------------------------------------------------------------------


def found_in(audit: Any, kind: str) -> list[Any]:
    return [finding for finding in audit.findings if fnmatch.fnmatchcase(finding.what, kind)]


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Files], Any]]:
    """An audit of files, made once for each; of half the seeds and half the time, which the cases still tell apart."""
    known: dict[str, Any] = {}

    def call(files: Files) -> Any:
        key = repr(files)
        if key not in known:
            known[key] = files.audited(tmp_path_factory.mktemp("files"))
        return known[key]

    with short_audits(4, "25ms", "50ms"):
        yield call


# Second cases of their kinds whose runs take longest.
SLOW = {"within the field", "of 15 bits", "at 0", "least rate", "with as few as fill the link"}
SLOW |= {"a pool smaller than its headroom"}


def cases() -> Iterator[Any]:
    for case in CASES:
        marks = [pytest.mark.slow] if case.name in SLOW else []
        yield pytest.param(case, id=f"{case.kind}{', ' if case.name else ''}{case.name}", marks=marks)


@pytest.mark.parametrize("case", [*cases()])
def test_a_finding_comes_and_its_suggestion_cures_it(case: Case, ask: Callable[[Files], Any]) -> None:
    audit = ask(case.raises)
    (finding,) = found_in(audit, case.kind)
    assert finding.severity == case.severity
    assert bool(finding.suggest) == (case.severity != "ok")
    before = {each.what for each in audit.findings if each.severity != "ok"}
    ways = followed(case.raises, finding.suggest) if finding.suggest else []
    assert ways is not None, f"no rule reads {finding.suggest!r}"
    for files in [*ways, *([case.raises.applied(finding.apply)] if finding.apply else [])]:
        after = ask(files)
        assert not found_in(after, case.kind), (finding.suggest, found_in(after, case.kind))
        new = [each for each in after.findings if each.severity != "ok" and each.what not in before]
        unexplained = [each for each in new if not any(fnmatch.fnmatchcase(each.what, kind) for kind in case.reveals)]
        assert not unexplained, (finding.suggest, unexplained)
        assert not [each for each in new if each.severity == "bad"]


@pytest.mark.parametrize("case", [*cases()])
def test_the_nearest_setting_that_is_fine_raises_nothing(case: Case, ask: Callable[[Files], Any]) -> None:
    assert not found_in(ask(case.spares), case.kind)


def test_a_suggestion_that_nothing_reads_is_noticed() -> None:
    assert followed(BASE, "buy a larger switch") is None


# -- the tables are whole ----------------------------------------------------------------------------------------------


def sources() -> Iterator[ast.Module]:
    """The modules beside that of `Finding` that make findings; those of counters have `test_counters_judged`."""
    here = Path(sys.modules[Finding.__module__].__file__ or "")
    for path in sorted(here.parent.glob("*.py")):
        text = path.read_text(encoding="utf-8")
        if "Finding(" in text and path.stem not in ("symptoms", "counted"):
            yield ast.parse(text)


def kinds_in_the_source() -> dict[str, set[str]]:
    """Every kind of finding that the source can make, and the severities that it gives it."""
    found: dict[str, set[str]] = {}
    for tree in sources():
        constants: dict[str, str] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    several = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
                    names = target.elts if several else [target]
                    values = node.value.elts if several else [node.value]
                    for name, value in zip(names, values, strict=True):
                        if isinstance(name, ast.Name) and isinstance(value, ast.Constant):
                            constants[name.id] = value.value
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Finding":
                given = dict(zip(("severity", "what"), node.args, strict=False)) | {
                    k.arg: k.value for k in node.keywords
                }
                severity, what = given["severity"], given["what"]
                if isinstance(what, ast.JoinedStr):
                    parts = [each.value if isinstance(each, ast.Constant) else "*" for each in what.values]
                    kind = "".join(map(str, parts))
                elif isinstance(what, ast.Name):
                    kind = constants[what.id]
                else:
                    kind = ast.literal_eval(what)
                found.setdefault(kind, set()).add(ast.literal_eval(severity))
    return found


def test_every_kind_of_finding_has_its_cases() -> None:
    kinds = kinds_in_the_source()
    assert len(kinds) > 15  # the source was read
    covered = {case.kind: case.severity for case in CASES}
    assert covered.keys() == kinds.keys() - {UNREACHED, NOT_FOUND} - ELSEWHERE
    assert all(severity in kinds[kind] for kind, severity in covered.items())


# Of files that are no config_db.json (test_switch_overrides.py, test_switch_spellings.py), of ports (test_ports.py),
# of hosts (test_nic_hosts.py, test_field_spellings.py), or of engines that contradict each other (test_retracted.py).
ELSEWHERE = {
    "the NIC limits every flow",
    "PFC is on for another queue than ECN",
    "ECN is on for another queue than PFC",
    "the text may be cut",
    "the port is slower than 1 Gb/s",
    "the host sends RoCE by a priority without PFC",
    "hosts use another priority",
    "the host's PFC is of another priority",
    "the host does not trust DSCP",
    "RoCE's packets go to another queue",
    "packets are larger than the switch's MTU",
    "DCQCN is off on port *",
    "the port's speed is not in the file",
    "equal ports are left out",
    "thresholds are shares of a buffer",
    "marking was not read",
    "a line overrides others",
    "PFC depends on DCBX",
    "the PFC watchdog takes the port down",
    "the model's queue outgrows the buffer",
    "packets leave out the queue's limit",
    "the fixed point is beyond the buffer",
    "the engines contradict each other",
    "the flows settle in two ways",
}
# No file is known that brings it about since rates are kept within their limits.
UNREACHED = "the simulation does not stay finite"
# Tens of thousands of flows, whose queue from line rate drains for minutes: half a minute to run.
NOT_FOUND = "no fixed point found with * flows"


def test_a_summary_without_numbers_is_a_finding() -> None:
    nothing = {"utilisation": None, "utilisation_se": None, "queue_bytes": {"mean": None}}
    (found,) = behaviour(nothing, 2, fc.RED("5KB", "200KB", 0.01))
    assert (found.severity, found.what) == ("warn", UNREACHED)


def test_a_run_that_has_not_ended_is_no_fixed_point() -> None:
    row = {"marking_probability": None, "queue_bytes": 1e9, "name": "bottleneck"}
    unended = SimpleNamespace(
        as_dict=lambda: row, exists=False, cycle=SimpleNamespace(kind="decaying", low=9e8, high=1e9)
    )
    red = fc.RED("5KB", "200KB", 0.01)
    (found,) = fixed_point(cast(Any, None), red, cast(Any, unended), fc.incast(1), 50_000)
    assert (found.severity, found.what) == ("warn", NOT_FOUND.replace("*", "50000"))
    assert "decaying, from 900MB to 1GB" in found.why


@pytest.mark.slow
def test_every_rule_is_used(ask: Callable[[Files], Any]) -> None:
    """A suggestion whose words have changed leaves a rule behind that reads nothing."""
    said = {finding.suggest for case in CASES for finding in ask(case.raises).findings if finding.suggest}
    assert not [pattern for pattern, _ in RULES if not any(re.fullmatch(pattern, text) for text in said)]
    assert not [text for text in said if followed(BASE, text) is None]


def test_the_sample_is_cured_finding_by_finding(ask: Callable[[Files], Any]) -> None:
    """Several findings at once: each suggestion cures its own, and makes none bad."""
    lines = (EXAMPLE / "nic.txt").read_text().split("\n")
    given = [
        line.split() for line in lines if re.match(r"\s+(RPG|DCE|RATE_REDUCE|MIN_TIME|ROCE_CC_PRIO)\w+_P1\s", line)
    ]
    nic = {name.removesuffix("_P1"): int(value) for name, value in given}
    sample = Files(json.loads((EXAMPLE / "config_db.json").read_text()), nic)
    findings = [finding for finding in ask(sample).findings if finding.suggest]
    assert len(findings) >= 3
    for finding in findings:
        for files in followed(sample, finding.suggest) or []:
            after = ask(files)
            assert not found_in(after, finding.what), finding
            assert not [each for each in after.findings if each.severity == "bad"]
