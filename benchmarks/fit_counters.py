"""Settings fitted back from counters: python -m benchmarks.fit_counters [RUNS] [FIRST_SEED] [NAME ...].

Each case is a switch with the sample's file and NIC (examples/leaf-100g), at one of three thresholds, with eight hosts
at 30 to 70 % load of web-search and bursts of 1 to 14. It runs 12 times for 40 ms in packets, of which the last 30 ms
are counted. Its counters are written as a CSV and read by the command line: fluidcc fit --counters. One setting is not
told to it: the time between CNPs, Kmin, or the burst. With the word "mistold", hosts send as hadoop or alibaba-storage
do, and the fit is told web-search.

Asked for, before anything was measured: of twelve cases of each setting, ten values at least within their 95 %
intervals (11.4 expected; the binomial's two deviations below are 9.9). Of the time between CNPs and Kmin, nine at least
called identifiable. Of the burst none is: from 1 to 16 packets the marks change by a fifth in all. Of the mistold, none
may be called identifiable and lie outside its interval without a residual beyond 1.6, which the output reports.

With the word "sweep" instead: both shares against the burst, at three loads and two thresholds, over twelve runs.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import io
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import counters as bench
from fluidcc.cli.app import run as fluidcc
from fluidcc.cli.request import Request, scenario_of, with_ports
from fluidcc.engines.run_many import run_all
from fluidcc.operators.ports import read_ports
from fluidcc.scenario.frames import wire_share
from fluidcc.scenario.model import Scenario
from fluidcc.studies.fitting import Shares, shares

THRESHOLDS = ((100e3, 400e3, 20), (20e3, 200e3, 20), (50e3, 400e3, 10))  # Kmin, Kmax [bytes], Pmax [%]
# Searched, and drawn from, both by logarithms.
RANGES: dict[str, tuple[str, tuple[float, float]]] = {
    "cnp_interval": ("1us:200us", (4e-6, 60e-6)),
    "kmin": ("5KB:300KB", (20e3, 150e3)),
    "burst": ("1:16", (1, 14)),
}
OTHERS = ("hadoop", "alibaba-storage")
MISTOLD = "mistold"
UNTIL, COUNTED = 40e-3, 12  # s, and runs that are counted
NIC = bench.SAMPLE / "nic.txt"


@dataclasses.dataclass(frozen=True)
class Case:
    """A switch, its traffic, and the setting that is not told."""

    name: str
    load: float
    workload: str
    truth: dict[str, float]

    def told(self, name: str | None = None) -> list[str]:
        """Settings as ``--set`` takes them, but for one."""
        return [f"{each}={value:.9g}" for each, value in self.truth.items() if each != name]


def case(name: str, seed: int, mistold: bool) -> Case:
    """Draw a case."""
    draw = np.random.default_rng([seed, *map(ord, name)])
    kmin, kmax, percent = THRESHOLDS[seed % 3]
    truth = {"kmin": kmin, "kmax": kmax, "pmax": percent / 100, "cnp_interval": 4e-6}
    truth["burst"] = round(float(np.exp(draw.uniform(*np.log(RANGES["burst"][1])))))
    drawn = float(np.exp(draw.uniform(*np.log(RANGES[name][1]))))
    if name != "burst":
        truth[name] = float(f"{drawn:.3g}")
    if name == "kmin":
        truth["kmax"] = 400e3
    return Case(name, draw.uniform(0.3, 0.7), OTHERS[seed % 2] if mistold else "web-search", truth)


def scenario_for(one: Case, folder: Path) -> tuple[Path, Scenario, Shares]:
    """Write the switch's file, and return it with the scenario and the shares that its runs are to count."""
    bench.KMIN, bench.KMAX, bench.PERCENT = (
        round(one.truth[name] * factor) for name, factor in (("kmin", 1), ("kmax", 1), ("pmax", 100))
    )
    file = folder / "config_db.json"
    file.write_text(json.dumps(bench.config()))
    scenario = scenario_of(with_ports(Request("dcqcn", sources=[str(file), str(NIC)], sets=one.told())))
    enough: dict[str, Any] = dict.fromkeys(("sent", "marked", "marked_received", "cnps"), 1e3)
    return file, scenario, Shares(**enough, load=one.load, workload=one.workload, hosts=bench.HOSTS)


def write(one: Case, seed: int, folder: Path) -> tuple[Path, Path, float]:
    """Write the switch's file and what it and its hosts counted, and return both and the time [s]."""
    (file, scenario, like), table = scenario_for(one, folder), folder / "counters.csv"
    seeds = range(10_000 * (1 + seed), 10_000 * (1 + seed) + COUNTED)
    runs = np.stack(run_all(lambda each, _: shares.run(scenario, like, UNTIL, each), seeds))
    marked, sent, cnps, received, load = runs.sum(axis=0)
    [group, *_] = read_ports(file)[0]
    seconds = COUNTED * (1 - shares.SKIPPED) * UNTIL
    sent_bytes = load / COUNTED * group.switch.rate * wire_share(bench.PAYLOAD) * seconds
    rows = ["device,port,queue,counter,value"]
    for k in range(bench.HOSTS):  # each has its part
        of_port = {"sent_packets": sent, "marked_packets": marked}
        rows += [f"leaf1,{group.names[k]},3,{name},{value / bench.HOSTS}" for name, value in of_port.items()]
        rows.append(f"leaf1,{group.names[k]},3,sent_bytes,{sent_bytes}")
        of_nic = {"marked_packets": received, "cnps_sent": cnps}
        rows += [f"H{k},,,{name},{value / bench.HOSTS}" for name, value in of_nic.items()]
    table.write_text("\n".join(rows) + "\n")
    return file, table, seconds


def fitted(one: Case, file: Path, table: Path, seconds: float) -> dict[str, Any]:
    """Fit by the command line."""
    options = [f"--set={each}" for each in one.told(one.name)]
    arguments = ["fit", "dcqcn", "--from", str(file), "--from", str(NIC), "--counters", str(table)]
    arguments += ["--interval", f"{seconds:.9g}s", "--workload", "web-search"]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        status = fluidcc([*arguments, *options, "--over", f"{one.name}={RANGES[one.name][0]}", "--json"])
    assert status == 0
    return json.loads(printed.getvalue())


def sweep() -> None:
    """Print both shares against the burst; the same seeds for each."""
    for kmin, kmax, percent in THRESHOLDS[:2]:
        for load in (0.3, 0.5, 0.7):
            told = []
            for burst in (1, 4, 8, 16):
                truth = {"kmin": kmin, "kmax": kmax, "pmax": percent / 100, "burst": burst}
                with tempfile.TemporaryDirectory() as folder:
                    _, scenario, like = scenario_for(Case("burst", load, "web-search", truth), Path(folder))
                one = functools.partial(shares.run, scenario, like, 16e-3)
                counts = np.sum(run_all(lambda seed, _, one=one: one(seed), range(1, 13)), axis=0)
                told.append(f"{burst}: {counts[0] / counts[1]:.2%}, {counts[2] / counts[3]:.1%}")
            print(f"Kmin {kmin:g} B, load {load:.0%} | marked, CNPs per mark at burst {' | '.join(told)}", flush=True)


def main(runs: int, first: int, names: list[str], mistold: bool) -> None:
    """Print a table for each setting."""
    for name in names:
        hits = known = outside = 0
        for seed in range(first, first + runs):
            one = case(name, seed, mistold)
            with tempfile.TemporaryDirectory() as folder:
                files = write(one, seed, Path(folder))
                began = time.perf_counter()
                found = fitted(one, *files)
            each, truth = found["estimate"][name], one.truth[name]
            inside, sure = each["low"] <= truth <= each["high"], found["identifiable"][name]
            hits, known, outside = hits + inside, known + sure, outside + (sure and not inside)
            counted = ", ".join(
                f"{100 * share['counted']:.3g}/{100 * share['fitted']:.3g} %" for share in found["shares"].values()
            )
            print(
                f"{seed}: {one.workload} {one.load:.0%}, {' '.join(one.told())} | "
                f"{name} {truth:.4g}: {each['value']:.4g} "
                f"[{each['low']:.4g}, {each['high']:.4g}]{'' if sure else ', not identifiable'}"
                f"{'' if inside else ' MISSED'} | counted/fitted {counted} | residual {found['residual']:.2f} | "
                f"{time.perf_counter() - began:.0f} s",
                flush=True,
            )
        print(
            f"{name}: {hits} of {runs} within their intervals; {known} called identifiable, {outside} of these outside",
            flush=True,
        )


if __name__ == "__main__":
    if "sweep" in sys.argv:
        sys.exit(sweep())
    numbers = [int(text) for text in sys.argv[1:] if text.isdigit()]
    wanted = [name for name in RANGES if name in sys.argv] or list(RANGES)
    main(*(numbers + [12, 0][len(numbers) :]), names=wanted, mistold=MISTOLD in sys.argv)
