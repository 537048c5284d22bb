"""Twelve fabrics: audit, tune, apply what is to be typed, audit again.

    python -m benchmarks.operator_configurations [FIRST:LAST] [--evaluations K]

Switches of 25 to 400 Gb/s with round trips of 5 to 100 us, 2 to 64 senders, thresholds that their owners took from
elsewhere, and NICs of three behaviours (NVIDIA's defaults; the clamp on, as the DCQCN paper; CNPs and alpha every
50 us). Stated before measuring: after what `tune` says is typed, the audit has no `bad` and no kind of `warn` that was
not there before; packets miss no bound by more than two standard errors; and where the present setting keeps its bounds
in packets, the objective is not worse by more than two standard errors of the difference.
"""

from __future__ import annotations

import argparse
import copy
import dataclasses
import itertools
import json
import math
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import fluidcc as fc
from fluidcc.operators.behaviour import with_buffers
from fluidcc.operators.nvidia_settings import SETTINGS

SAMPLE = Path(__file__).parents[1] / "examples" / "leaf-100g" / "config_db.json"
BOUNDS = ["utilisation>=0.98", "jain>=0.8"]
UNTIL = "40ms"
NICS: dict[str, dict[str, int]] = {
    "defaults": {},
    "clamp on": {"clamp_tgt_rate": 1, "rpg_byte_reset": 0},
    "50 us": {"min_time_between_cnps": 50, "dce_tcp_rtt": 55, "rpg_byte_reset": 0, "rpg_ai_rate": 40},
}


@dataclasses.dataclass(frozen=True)
class Fabric:
    """A port and its senders; rate [Gb/s], round trip [s], thresholds [bytes]."""

    gbps: int
    round_trip: float
    flows: int
    kmin: int
    kmax: int
    percent: int
    nic: str


FABRICS = [
    Fabric(25, 5e-6, 2, 100_000, 400_000, 20, "defaults"),
    Fabric(25, 20e-6, 16, 1_048_576, 2_097_152, 5, "clamp on"),
    Fabric(40, 10e-6, 8, 5_000, 200_000, 1, "50 us"),
    Fabric(50, 50e-6, 4, 200_000, 800_000, 20, "defaults"),
    Fabric(100, 5e-6, 8, 1_048_576, 2_097_152, 5, "defaults"),
    Fabric(100, 12e-6, 32, 400_000, 1_600_000, 20, "clamp on"),
    Fabric(100, 100e-6, 8, 250_000, 500_000, 10, "50 us"),
    Fabric(200, 8e-6, 16, 1_048_576, 2_097_152, 5, "defaults"),
    Fabric(200, 30e-6, 4, 800_000, 3_200_000, 20, "50 us"),
    Fabric(400, 5e-6, 2, 400_000, 1_600_000, 20, "clamp on"),
    Fabric(400, 12e-6, 8, 1_048_576, 2_097_152, 5, "defaults"),
    Fabric(400, 20e-6, 64, 1_600_000, 6_400_000, 20, "50 us"),
]


def tables_of(fabric: Fabric) -> dict[str, Any]:
    """The sample switch with other speeds and thresholds, and the headroom and buffer that go with the speed."""
    tables = json.loads(SAMPLE.read_text())
    scale = fabric.gbps / 100
    for port in tables["PORT"].values():
        port["speed"] = str(1000 * fabric.gbps)
    tables["WRED_PROFILE"]["AZURE_LOSSLESS"] |= {
        "green_min_threshold": str(fabric.kmin),
        "green_max_threshold": str(fabric.kmax),
        "green_drop_probability": str(fabric.percent),
    }
    for name, profile in tables["BUFFER_PROFILE"].items():
        if name.startswith("pg_lossless"):
            profile["xoff"] = str(math.ceil(45_000 + 30_000 * scale))
    for pool in tables["BUFFER_POOL"].values():
        pool["size"] = str(math.ceil(int(pool["size"]) * max(1.0, scale)))
    return tables


def write(folder: Path, tables: dict[str, Any], registers: dict[str, int]) -> tuple[Path, Path]:
    """The two files that an operator hands over."""
    folder.mkdir()
    (folder / "config_db.json").write_text(json.dumps(tables))
    (folder / "nic.txt").write_text("".join(f"{name} = {raw}\n" for name, raw in registers.items()))
    return folder / "config_db.json", folder / "nic.txt"


def applied(tables: dict[str, Any], patch: list[dict[str, Any]]) -> dict[str, Any]:
    """RFC 6902 on objects."""
    tables = copy.deepcopy(tables)
    for step in patch:
        *way, last = (part.replace("~1", "/").replace("~0", "~") for part in step["path"].split("/")[1:])
        place = tables
        for part in way:
            place = place[part]
        if step["op"] == "remove":
            del place[last]
        else:
            place[last] = step["value"]
    return tables


def tune(fabric: Fabric, found: fc.Audit, evaluations: int) -> fc.studies.Tuning:
    """The shortest queue within bounds, thresholds within two round trips' bytes or what they are."""
    start = np.linspace(0.0, 20e-6, fabric.flows).tolist()
    bytes_of = found.switch.rate * max(fabric.round_trip, 20e-6)
    red = found.switch.red
    assert red is not None

    def make(kmin: float, kmax: float, pmax: float, g: float, rate_ai: float, timer: float) -> fc.Scenario:
        scenario = found.scenario(
            flows=fabric.flows,
            delay=fabric.round_trip / 4,
            start=start,
            marking=fc.RED(kmin, kmax, pmax),
            scheme=dataclasses.replace(found.scheme, g=g, rate_ai=rate_ai, timer=timer),
        )
        return with_buffers(scenario, found.switch)

    return fc.tune(
        make,
        {
            "kmin": (4e3, max(2 * bytes_of, red.kmin)),
            "kmax": (20e3, max(4 * bytes_of, red.kmax)),
            "pmax": (0.01, 1.0),
            "g": (1 / 1024, 1 / 4),
            "rate_ai": ("5Mbps", "1Gbps"),
            "timer": ("50us", "300us"),
        },
        subject_to=BOUNDS,
        start={
            **{name: getattr(red, name) for name in ("kmin", "kmax", "pmax")},
            **{name: getattr(found.scheme, name) for name in ("g", "rate_ai", "timer")},
        },
        until=UNTIL,
        evaluations=evaluations,
    )


def kinds(found: fc.Audit, severity: str) -> set[str]:
    """What is found of one severity, in any group of ports."""
    return {f.what for group in found.groups for f in group.findings if f.severity == severity}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("which", nargs="?", default="1:12")
    parser.add_argument("--evaluations", type=int, default=200)
    options = parser.parse_args()
    first, last = map(int, options.which.split(":"))
    met = 0
    for number, fabric in itertools.islice(enumerate(FABRICS, 1), first - 1, last):
        began = time.perf_counter()
        with tempfile.TemporaryDirectory() as name:
            folder, tables = Path(name), tables_of(fabric)
            registers = {k: int(v.default) for k, v in SETTINGS.items()} | NICS[fabric.nic]
            before = fc.audit(*write(folder / "before", tables, registers), flows=fabric.flows)
            tuned = tune(fabric, before, options.evaluations)
            commands = before.commands(tuned.best.point)
            after = fc.audit(
                *write(folder / "after", applied(tables, commands.patch), registers | commands.registers),
                flows=fabric.flows,
            )
            there = {name: getattr(after.switch, name) for name in ("kmin", "kmax", "pmax")}
            there |= {name: float(getattr(after.scheme, name)) for name in ("g", "rate_ai", "timer")}
        assert all(np.isclose(value, there[name]) for name, value in tuned.best.point.items()), there
        new, bad = kinds(after, "warn") - kinds(before, "warn"), kinds(after, "bad")
        fine = bool(tuned.confirmed) and not new and not bad
        met += fine
        start, best = (tuned.packets[k].metrics for k in ("start", "best"))
        row = ", ".join(
            f"{m.rpartition('.')[2]} {start[m][0]:.4g} -> {best[m][0]:.4g}"
            for m in ("queue_bytes.p99", "utilisation", "jain", "pfc_pauses")
        )
        print(f"{number:2} {fabric}", flush=True)
        print(f"   {row}; {', '.join(f'{k} {v:.4g}' for k, v in tuned.best.point.items())}")
        print(
            f"   {'as stated' if fine else 'NOT as stated'}: confirmed {tuned.confirmed}, gone "
            f"{sorted(kinds(before, 'warn') - kinds(after, 'warn'))}, new {sorted(new)}, bad {sorted(bad)} "
            f"({time.perf_counter() - began:.0f} s)"
        )
        for note in tuned.notes:
            print(f"      {note}", flush=True)
    print(f"{met} of {last - first + 1} as stated")


if __name__ == "__main__":
    main()
