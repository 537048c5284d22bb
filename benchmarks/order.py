"""Two jobs whose flows wait for each other, on shared links: how much each slows the other, by engine.

    python -m benchmarks.order [--seeds N] [--size MB] [--plot FILE.png]

Ring all-reduces of four hosts each, across the one spine of two leaves with half the capacity of their hosts. The
second job has half the data, begins 20 us later, and computes for 5 us before each step. What is compared is when the
last step of each job begins: all that it waited for is data, whose way the fluid, the hybrid and packets have in
common, and not ACKs, which only in packets wait in queues. Stated before the first run: the fluid's slow-down is within
10 % of that in packets for HPCC, Swift and DCTCP; the hybrid's within 1 % and three standard errors for DCQCN.

Beside it, rings alone against their closed form, 2(N - 1) times what it takes to send a part and for it to arrive; and
how late flows of 20 KB begin that wait for each other (receipt, sent, receipt and 5 us) at a pace below the line's.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from typing import Any

import numpy as np

import fluidcc as fc
from fluidcc.workloads.fabrics import named_topology

SCHEMES = ("none", "dcqcn", "hpcc", "swift", "dctcp")
RANDOM = ("none", "dcqcn")  # schemes of the hybrid
HOSTS = ([0, 4, 1, 5], [2, 6, 3, 7])
LATE, PAUSE = 20e-6, 5e-6


def ring(hosts: list[int], size: float, first: int = 0, start: float = 0.0, pause: float = 0.0) -> list[Any]:
    """Rows of a ring all-reduce whose first is flow ``first``."""
    n, rows = len(hosts), []
    for step in range(2 * (n - 1)):
        for i in range(n):
            before = first + (step - 1) * n
            after = () if step == 0 else (before + (i - 1) % n, before + i)
            rows.append((hosts[i], hosts[(i + 1) % n], pause if step else start, size / n, after, "sent"))
    return rows


def scenario(topology: str, rows: list[Any], scheme: str, **fabric: Any) -> fc.Scenario:
    """On a fabric, with ACKs of a byte: the fluid and the hybrid have none that take anything of the links."""
    preset = None if scheme == "dctcp" else "hpcc-eval"
    made = named_topology(topology, **fabric).scenario(rows, scheme=scheme, preset=preset)
    return dataclasses.replace(made, ack_bytes=1.0)


def last_steps(given: fc.Scenario, engine: str, jobs: int, seed: int) -> tuple[np.ndarray, float]:
    """When the last step of each job begins [s], and the seconds of the run's loop."""
    options: dict[str, Any] = {"estimate_error": False} if engine == "fluid" else {"seed": seed}
    horizon = sum(flow.size / flow.line_rate for flow in given.flows)
    horizon *= 1 if engine == "fluid" else 20  # chance may cut a sender of DCQCN far down
    trace = fc.simulate(given, horizon, engine=engine, **options)
    began = np.array(trace.summary["began_s"], float)
    return np.array([each[-4:].max() for each in np.split(began, jobs)]), trace.summary["wall_s"]


def slowed(scheme: str, engine: str, size: float, seeds: int) -> tuple[np.ndarray, np.ndarray, float]:
    """How many times as long as alone each job takes, with standard errors, and seconds of one run of both."""
    first = ring(HOSTS[0], size)
    second = ring(HOSTS[1], size / 2, len(first), LATE, PAUSE)
    many = range(seeds if scheme in RANDOM[1:] and engine != "fluid" else 1)
    fabric = {"topology": "leaf-spine:2x1x4", "fabric_rate": "200Gbps", "scheme": scheme}
    alone = [
        last_steps(scenario(rows=rows, **fabric), engine, 1, 0)[0][0]
        for rows in (first, ring(HOSTS[1], size / 2, 0, LATE, PAUSE))
    ]
    runs = [last_steps(scenario(rows=first + second, **fabric), engine, 2, seed) for seed in many]
    late = np.array([0.0, LATE])
    ratios = np.array([(ends - late) / (np.array(alone) - late) for ends, _ in runs])
    error = ratios.std(axis=0, ddof=1) / len(ratios) ** 0.5 if len(ratios) > 1 else np.zeros(2)
    return ratios.mean(axis=0), error, float(np.mean([wall for _, wall in runs]))


def alone(hosts: int, scheme: str, engine: str, size: float) -> float:
    """Relative difference of a lone ring's last start to the closed form."""
    given = scenario(f"leaf-spine:1x1x{hosts}", ring(list(range(hosts)), size), scheme)
    flow, link = given.flows[0], given.links[given.flows[0].path[0]]
    packet = given.wire_packet_of(flow) / flow.line_rate
    step = flow.size / given.packet_size * packet + flow.access_delay + link.delay + packet
    began, _ = last_steps(given, engine, 1, 0)
    return float(began[0] / ((2 * (hosts - 1) - 1) * step) - 1)


def paced(rate: str, engine: str) -> np.ndarray:
    """When three flows begin that follow one another over 40 Gb/s [s]."""
    base = fc.incast(4, scheme="none", size="20KB", initial_rate=rate)
    first, *others = base.flows
    waits = ((0, "receipt", 0.0), (1, "sent", 0.0), (2, "receipt", "5us"))
    flows = [first]
    for flow, (before, what, pause) in zip(others, waits, strict=True):
        source = flows[-1].source if what == "sent" else flow.source
        flows.append(dataclasses.replace(flow, after=(before,), after_what=what, start=pause, source=source))
    trace = fc.simulate(dataclasses.replace(base, flows=tuple(flows)), "2ms", engine=engine)
    return np.array(trace.summary["began_s"][1:], float)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=64)
    parser.add_argument("--size", type=float, default=4.0, help="of the first job [MB]")
    parser.add_argument("--plot", help="a picture of the slow-downs")
    given = parser.parse_args()
    print("| ring alone, 800 KB | " + " | ".join(SCHEMES) + " |")
    for hosts in (4, 8):
        for engine in ("fluid", "hybrid", "packet"):
            cells = [
                f"{alone(hosts, scheme, engine, 8e5):+.1e}" if engine != "hybrid" or scheme in RANDOM else ""
                for scheme in SCHEMES
            ]
            print(f"| {hosts} hosts, {engine} | " + " | ".join(cells) + " |", flush=True)
    for rate in ("0.5Gbps", "40Gbps"):
        for engine in ("fluid", "hybrid"):
            late = (paced(rate, engine) - paced(rate, "packet")) * 1e6
            print(
                f"paced at {rate}, {engine}: followers begin " + ", ".join(f"{each:.1f}" for each in late) + " us late"
            )
    found: dict[tuple[str, str], tuple[np.ndarray, np.ndarray]] = {}
    began = time.perf_counter()
    for scheme in SCHEMES:
        for engine in ("packet", "fluid", "hybrid"):
            if engine == "hybrid" and scheme not in RANDOM:
                continue
            ratio, error, wall = slowed(scheme, engine, given.size * 1e6, given.seeds)
            found[scheme, engine] = ratio, error
            off = ratio / found[scheme, "packet"][0] - 1
            cells = [f"{r:.3f} +- {e:.3f} ({d:+.1%})" for r, e, d in zip(ratio, error, off, strict=True)]
            print(f"| {scheme}, {engine} | " + " | ".join(cells) + f" | {wall:.2f} s |", flush=True)
    print(f"{time.perf_counter() - began:.0f} s in all")
    if given.plot:
        picture(found, given.plot)


def picture(found: dict[tuple[str, str], tuple[np.ndarray, np.ndarray]], file: str) -> None:
    """Slow-downs of both jobs, by scheme and engine."""
    from fluidcc.plotting.colours import ENGINES
    from fluidcc.plotting.style import figure

    drawn, (axes,) = figure(1, 2, size=(8, 3), sharey=True)
    for job, axis in enumerate(axes):
        for k, engine in enumerate(("packet", "fluid", "hybrid")):
            at = [s for s, scheme in enumerate(SCHEMES) if (scheme, engine) in found]
            values = [found[SCHEMES[s], engine] for s in at]
            axis.bar(
                [s + 0.27 * (k - 1) for s in at], [v[0][job] for v in values], 0.25, color=ENGINES[engine],
                yerr=[v[1][job] for v in values], label=engine,
            )  # fmt: skip
        axis.axhline(1.0, color="0.5", lw=0.8)
        axis.set(xticks=range(len(SCHEMES)), xticklabels=SCHEMES, title=f"job {job + 1}")
    axes[0].set(ylabel="time over that alone [1]")
    axes[0].legend(frameon=False)
    drawn.write(file)


if __name__ == "__main__":
    main()
