"""The hybrid against packets over random DCQCN scenarios: queues, utilisation, fairness.

    python -m benchmarks.hybrid_agreement [COUNT] [SEED] [--json FILE]

Scenarios are drawn over decades: 10 to 400 Gb/s, 2 to 64 flows, one-way delays of 1 to 100 us, thresholds, Pmax, g,
timers and byte counters, the paper's NIC and the vendor's, one bottleneck or two in a row. Starts are drawn, so that
equal flows are not in step where marks have no chance in them. A scenario is left out, and another drawn, where flows
send less than two packets in a CNP interval or nothing is ever marked: in both engines, by a seed that is not judged.
Both run with the same eight seeds; the window is the second half of 200 ms, or of as many packets as `PACKETS` allows,
but no less than 20 ms.

Agreement, stated before the first run: mean, standard deviation and 95th percentile of the most loaded queue within
5 %, 1.5 packets or three standard errors of the difference; utilisation within 0.5 % or three; Jain's index within 0.01
or three. How many need the standard errors is counted. For what does not agree, both run again with packets of 250
bytes and the same hazard, -log(1-p)/MTU, at Kmax, to see whether the difference shrinks.
"""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np

import fluidcc as fc
from fluidcc.engines.common.outcome import metrics_of
from fluidcc.scenario.model import resolve
from fluidcc.studies.sweeps.replications import Draws, outcomes, runner_of
from fluidcc.units import Rate

SEEDS = 8
PACKETS = 1e6  # of a run
LONGEST, SHORTEST = 0.2, 0.02  # s
SMALL = "250B"
LIMITS = {  # relative, absolute
    "queue_bytes.mean": (0.05, 1.5),
    "queue_bytes.std": (0.05, 1.5),
    "queue_bytes.p95": (0.05, 1.5),
    "utilisation": (0.005, 0.0),
    "jain": (0.0, 0.01),
}
ERRORS = 3.0
NOT_JUDGED = 1000  # a seed


def log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    """A number whose logarithm is uniform."""
    return float(math.exp(rng.uniform(math.log(low), math.log(high))))


def drawn(rng: np.random.Generator) -> tuple[fc.Scenario, float]:
    """A scenario, and how long to run it [s]."""
    rate = log_uniform(rng, 10e9, 400e9) / 8
    flows = round(log_uniform(rng, 2, 64))
    kmin = log_uniform(rng, 5e3, 400e3)
    marking = fc.RED(kmin, kmin * log_uniform(rng, 1.5, 40), log_uniform(rng, 0.003, 1.0))
    if rng.random() < 0.25:
        scheme = dataclasses.replace(fc.preset("dcqcn", "vendor").scheme, g=log_uniform(rng, 1 / 512, 1 / 32))
    else:
        scheme = fc.DCQCN(
            g=log_uniform(rng, 1 / 512, 1 / 16),
            timer=log_uniform(rng, 20e-6, 1e-3),
            byte_counter=log_uniform(rng, 100e3, 50e6),
            cnp_interval=log_uniform(rng, 4e-6, 100e-6),
            alpha_timer=log_uniform(rng, 20e-6, 200e-6),
            rate_ai=Rate(rate / flows * log_uniform(rng, 1e-3, 3e-2)),
        )
    delay = log_uniform(rng, 1e-6, 100e-6) / 2
    until = min(LONGEST, max(SHORTEST, PACKETS * 1000 / rate))
    starts = [float(each) for each in rng.uniform(0, until / 50, flows)]
    more = {"rate": Rate(rate), "delay": delay, "scheme": scheme, "marking": marking, "start": starts}
    scenario = fc.incast(flows, **more)
    return (two_links(scenario) if rng.random() < 0.3 else scenario), until


def two_links(scenario: fc.Scenario) -> fc.Scenario:
    """The same flows through a second bottleneck of 0.6 of the rate, which every other one leaves out."""
    first = dataclasses.replace(scenario.links[0], name="first", source="s1", target="s2")
    second = dataclasses.replace(first, name="second", source="s2", target="s3", rate=Rate(0.6 * first.rate))
    flows = [
        dataclasses.replace(
            flow, path=(0, 1) if i % 2 == 0 else (0,), source=f"h{i}", target=f"r{i}", egress_delay=1e-6
        )
        for i, flow in enumerate(scenario.flows)
    ]
    return dataclasses.replace(scenario, links=(first, second), flows=tuple(flows))


def in_small_packets(scenario: fc.Scenario) -> fc.Scenario:
    """The same with packets a quarter as long, each with a quarter of the hazard -log(1-p) at Kmax."""

    def marking(link: fc.Link) -> fc.RED:
        assert link.marking is not None
        pmax = -math.expm1(math.log1p(-float(link.marking.pmax)) / 4) if link.marking.pmax < 1 else 1.0
        return dataclasses.replace(link.marking, pmax=pmax)

    links = tuple(dataclasses.replace(link, marking=marking(link)) for link in scenario.links)
    return dataclasses.replace(scenario, links=links, packet_size=SMALL)


def measured(scenario: fc.Scenario, until: float) -> dict[str, dict[str, np.ndarray]]:
    """Metrics of both engines by seed."""
    found = {}
    for engine in ("packet", "hybrid"):
        runs = outcomes(scenario, Draws(engine, SEEDS, None, until, None))
        found[engine] = metrics_of(runs)[1]
        found[engine]["cnps"] = np.array([run.cnps for run in runs], dtype=float)
    return found


def differences(found: dict[str, dict[str, np.ndarray]], packet: float) -> dict[str, dict[str, float]]:
    """Of each metric: both means, the standard error of the difference, and whether it is within limits."""
    out = {}
    for name, (share, least) in LIMITS.items():
        ours, theirs = found["hybrid"][name], found["packet"][name]
        error = math.sqrt(ours.var(ddof=1) / len(ours) + theirs.var(ddof=1) / len(theirs))
        off = float(ours.mean() - theirs.mean())
        unit = packet if "queue" in name else 1.0
        allowed = max(share * abs(theirs.mean()), least * unit, ERRORS * error)
        out[name] = {
            "hybrid": float(ours.mean()),
            "packet": float(theirs.mean()),
            "error": error,
            "agrees": bool(abs(off) <= allowed),
            "by_errors": bool(max(share * abs(theirs.mean()), least * unit) < abs(off) <= allowed),
        }
    return out


def case(seed: Sequence[int]) -> dict[str, Any]:
    """One scenario, drawn until it is one of those that count."""
    rng = np.random.default_rng(seed)
    found, left_out = None, -1
    while found is None:
        left_out += 1
        scenario, until = drawn(rng)
        found = measured_if_it_counts(scenario, until)
    table = differences(found, scenario.packet_size)
    flow = scenario.flows[0]
    result = {
        "seed": list(seed),
        "left_out": left_out,
        "rate": float(scenario.links[0].rate),
        "flows": len(scenario.flows),
        "links": len(scenario.links),
        "vendor": flow.scheme.fast_recovery_steps == 1,
        "marking": [float(getattr(scenario.links[0].marking, name)) for name in ("kmin", "kmax", "pmax")],
        "delay": float(flow.access_delay),
        "until": until,
        "metrics": table,
        "agrees": all(row["agrees"] for row in table.values()),
    }
    if not result["agrees"]:
        again = measured(in_small_packets(scenario), until / 2)
        result["small_packets"] = differences(again, 250.0)
    return result


def measured_if_it_counts(scenario: fc.Scenario, until: float) -> dict[str, dict[str, np.ndarray]] | None:
    """Both engines' metrics; None where nothing is marked, or a flow sends less than two packets in a CNP interval."""
    counted = any(counts(scenario, until, engine) for engine in ("hybrid", "packet"))
    return measured(scenario, until) if counted else None


def counts(scenario: fc.Scenario, until: float, engine: str) -> bool:
    """Whether a run of one engine has marks, and no flow that sends less than two packets in a CNP interval."""
    run = runner_of(resolve(scenario), Draws(engine, 1, None, until, None))(NOT_JUDGED)
    slowest = float(run.rates.min()) * scenario.flows[0].scheme.cnp_interval
    return run.cnps > 0 and slowest >= 2 * scenario.packet_size


def main() -> None:
    """Print a line for each scenario, and how many agree."""
    arguments = [each for each in sys.argv[1:] if not each.startswith("--")]
    path = arguments.pop() if "--json" in sys.argv else None
    count, seed = (int(arguments[i]) if len(arguments) > i else default for i, default in ((0, 60), (1, 1)))
    found = []
    with ProcessPoolExecutor(2) as pool:
        for i, each in enumerate(pool.map(case, [(seed, k) for k in range(count)])):
            found.append(each)
            shown = " ".join(
                f"{name.removeprefix('queue_bytes.')} {row['packet']:.4g}/{row['hybrid']:.4g}"
                + "!" * (not row["agrees"])
                for name, row in each["metrics"].items()
            )
            print(
                f"{i:3} {each['rate'] * 8e-9:5.0f}G {each['flows']:2} flows {each['links']} links "
                f"{'vendor' if each['vendor'] else 'paper '} {shown}{'' if each['agrees'] else '  differs'}",
                flush=True,
            )
            if path:
                with open(path, "w") as file:
                    json.dump(found, file, indent=1)
    agreeing = sum(each["agrees"] for each in found)
    left = sum(each["left_out"] for each in found)
    print(f"{agreeing} of {count} agree; {left} drawn ones were left out")
    for name in LIMITS:
        print(f"  {name}: {sum(each['metrics'][name]['by_errors'] for each in found)} by their standard errors alone")


if __name__ == "__main__":
    main()
