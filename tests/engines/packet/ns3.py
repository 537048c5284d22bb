"""Runs of the HPCC authors' public simulator (tests/data/ns3/README.md), and the same scenarios for our engine."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import fluidcc as fc
from fluidcc.contract.preset import SIMULATOR
from fluidcc.scenario.routing import route
from fluidcc.workloads.fabrics import hpcc_config

DATA = Path(__file__).parents[2] / "data" / "ns3"


@cache
def reference(name: str) -> dict[str, Any]:
    """What that simulator measured, and its configuration."""
    return json.loads((DATA / f"{name}.json").read_text())


@cache
def queue(name: str) -> np.ndarray:
    """Queue of the bottleneck [bytes], each microsecond from 0, as far as it is kept here."""
    with gzip.open(DATA / f"{name}.q.csv.gz", "rt") as handle:
        return np.loadtxt(handle, delimiter=",", skiprows=1, usecols=1)


def scheme_of(params: dict[str, Any], derived: dict[str, Any]) -> Any:
    """Parameters of the scheme that a configuration selects."""
    base_rtt, window = derived["used_T_ns"] * 1e-9, derived["used_window_init_bytes"]
    return hpcc_config.scheme_of(params, hpcc_config.SCHEMES[params["CC_MODE"]], base_rtt, window)


def scenario_of(name: str) -> fc.Scenario:
    """The scenario of a run: its topology, flows, thresholds and sizes."""
    run = reference(name)
    params = run["params"]
    lines = run["topology"].splitlines()
    switches = {f"node {n}" for n in lines[1].split()}
    thresholds = {key: hpcc_config.thresholds(params[f"{key}_MAP"]) for key in ("KMIN", "KMAX", "PMAX")}
    links, access = [], {}
    for line in lines[2:]:
        a, b, rate, delay, _ = line.split()
        a, b = f"node {a}", f"node {b}"
        bits = int(float(rate.removesuffix("Gbps")) * 1e9)
        marking = None
        if params["ENABLE_QCN"]:
            kmin, kmax = thresholds["KMIN"][bits] * 1e3, thresholds["KMAX"][bits] * 1e3
            marking = fc.RED(kmin, kmax, thresholds["PMAX"][bits], mark_on="departure")
        for source, target in ((a, b), (b, a)):
            if source in switches:
                links.append(fc.Link(rate, delay, marking, f"{source} to {target}", source, target))
            else:
                access[source] = (target, rate, delay)
    scheme = scheme_of(params, run["derived"])
    flows = []
    for flow in run["flows"]:
        source, target = f"node {flow['src']}", f"node {flow['dst']}"
        first, rate, delay = access[source]
        flows.append(
            fc.Flow(
                route(links, first, target, 0),
                scheme,
                rate,
                start=flow["start_us"] * 1e-6,
                size=flow["size"],
                access_delay=delay,
                source=source,
                target=target,
            )
        )
    return fc.Scenario(tuple(links), tuple(flows), **SIMULATOR)


def table() -> str:
    """Markdown: what that simulator measured, and our engine on the same scenarios with seed 1."""
    lines = ["| run | mean queue | largest queue | utilisation | sum of goodput |", "|---|---|---|---|---|"]
    for path in sorted(DATA.glob("*.json")):
        if path.stem.startswith("S8"):
            continue
        theirs = reference(path.stem)
        opens, closes = (t * 1e-6 for t in theirs["stat_window_us"])
        scenario = scenario_of(path.stem)
        trace = fc.simulate(scenario, theirs["duration_us"] * 1e-6, window=(opens, closes), engine="packet", seed=1)
        port = theirs["ports"][0]
        ours = next(link for link in trace.summary["links"] if link["name"] == "node 0 to node 1")
        goodput = sum(trace.summary["goodput_bytes_per_s"]) * 8e-9
        sums = sum(flow["goodput_gbps_in_window"] for flow in theirs["flows"] if "finish_us" not in flow)
        if any("finish_us" in flow for flow in theirs["flows"]):
            goodput = trace.summary["goodput_bytes_per_s"][0] * 8e-9
        rows = [
            (port["queue_bytes"]["mean"] / 1e3, ours["queue_bytes"]["mean"] / 1e3, "KB"),
            (port["queue_bytes_whole_run"]["max"] / 1e3, ours["queue_bytes"]["max_whole_run"] / 1e3, "KB"),
            (port["wire_utilisation"], ours["utilisation"], ""),
            (sums, goodput, "Gb/s"),
        ]
        lines.append(f"| {path.stem} | " + " | ".join(f"{a:.4g}, {b:.4g} {unit}" for a, b, unit in rows) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
