"""Figure 7 of "Fast Convergence to Fairness": the tree of its simulations, and what section VI says of it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from fluidcc.plotting.style import colour
from fluidcc.plotting.style import figure as new_figure
from fluidcc.proofs import papers
from fluidcc.proofs.fairness.datacenter import TREE
from fluidcc.proofs.shared.runs import GBPS, WIDTH, save, variable
from fluidcc.proofs.verdict.figure import Check, Figure, Result, reproduces
from fluidcc.scenario.round_trips import base_rtt_with_serialisation, least_bdp
from fluidcc.schemes import hpcc
from fluidcc.workloads.fabrics.shapes import named_topology
from fluidcc.workloads.fabrics.topology import Topology

TIERS = ("hosts", "ToRs", "Aggs", "spines")
_SAID = "section VI-A and Fig. 7"


@reproduces("fairness-fig7", papers.VAI, "Figure 7: the fat tree of the datacenter simulations")
def make_fig7(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make the figure."""
    topology = named_topology(TREE)
    tier = dict.fromkeys(topology.hosts, 0) | topology.tiers
    values = _counts(topology, tier) | _paths(topology)
    expected = {
        **{f"{name}": Check(float(count), 0.0, _SAID)
           for name, count in zip(TIERS, (320, 20, 20, 16), strict=True)},
        "pods": Check(5.0, 0.0, f"{_SAID}: five pods, each of 4 Aggs and 4 ToRs"),
        "host_rate_bytes_per_s": Check(float(100 * GBPS), 0.0, _SAID),
        "fabric_rate_bytes_per_s": Check(float(400 * GBPS), 0.0, _SAID),
        "delay_s": Check(1e-6, 0.0, _SAID),
        "most_switches": Check(5.0, 0.0, f"{_SAID}: at most 5 hops between two hosts, read as switches"),
        "least_bdp_bytes": Check(50e3, 5e3, "section VI-A: the least bandwidth-delay product is about 50 KB"),
    }  # fmt: skip
    path = _draw(topology, tier, figure.figure).write(folder / f"{figure.name}.png")
    ends = np.array([cable.ends for cable in topology.cables])
    data = xr.Dataset(
        {
            "ends": variable(("cable", "end"), ends, "1", "nodes of a cable"),
            "rate": variable("cable", np.array([float(c.rate) for c in topology.cables]), "bytes/s", "rate"),
            "tier": variable("node", np.array([tier[node] for node in sorted(tier)]), "1", "cables to the next host"),
        },
        {"node": sorted(tier)},
    )
    notes = (
        "each Agg is linked to four of the spines, as the tree of HPCC's authors has it; the paper does not say which",
        "the least bandwidth-delay product is of two hosts of a rack: a packet's round trip with HPCC's telemetry",
        "quick: the same",
    )
    return Result(figure, values, expected, (path, save(data, folder / f"{figure.name}.nc")), notes)


def _counts(topology: Topology, tier: dict[int, int]) -> dict[str, float | bool]:
    hosts = set(topology.hosts)
    rates = {end: {float(c.rate) for c in topology.cables if bool(hosts & {*c.ends}) is end} for end in (True, False)}
    delays = {float(cable.delay) for cable in topology.cables}
    counts = Counter(tier.values())
    up = Counter(node for cable in topology.cables for node in cable.ends if sum(tier[end] for end in cable.ends) == 5)
    return {
        **{name: float(counts[k]) for k, name in enumerate(TIERS)},
        "pods": float(_pods(topology, tier)),
        "host_rate_bytes_per_s": rates[True].pop() if len(rates[True]) == 1 else float("nan"),
        "fabric_rate_bytes_per_s": rates[False].pop() if len(rates[False]) == 1 else float("nan"),
        "delay_s": delays.pop() if len(delays) == 1 else float("nan"),
        "spines_of_an_agg": float(min(up[node] for node in tier if tier[node] == 2)),
    }


def _pods(topology: Topology, tier: dict[int, int]) -> int:
    """Count the groups of ToRs and Aggs that are connected without spines; 0 unless each has 4 of both."""
    group = {node: node for node in tier if tier[node] in (1, 2)}

    def root(node: int) -> int:
        while group[node] != node:
            node = group[node]
        return node

    for cable in topology.cables:
        if all(end in group for end in cable.ends):
            a, b = cable.ends
            group[root(a)] = root(b)
    sizes = Counter((root(node), tier[node]) for node in group)
    return len(sizes) // 2 if set(sizes.values()) == {4} else 0


def _paths(topology: Topology) -> dict[str, float | bool]:
    """Round trips in a rack, in a pod, and across: of HPCC's packets, as the paper's simulator sends them."""
    chosen = hpcc.PRESETS["fairness"].options()
    rack, pod, across = (topology.scenario([(0, host)], **chosen) for host in (1, 16, len(topology.hosts) - 1))
    every = topology.scenario([(0, host) for host in topology.hosts[1:]], **chosen)
    trips = [float(base_rtt_with_serialisation(each, each.flows[0])) for each in (rack, pod, across)]
    return {
        "most_switches": float(max(len(flow.path) for flow in every.flows)),
        "rtt_rack_s": trips[0],
        "rtt_pod_s": trips[1],
        "rtt_across_s": trips[2],
        "least_bdp_bytes": float(least_bdp(every)),
    }


def _draw(topology: Topology, tier: dict[int, int], title: str) -> Any:
    picture, axes = new_figure(1, 1, size=(WIDTH, 5.0))
    axis = axes[0, 0]
    place = {
        node: ((k + 0.5) / len(row), height)
        for height in range(len(TIERS))
        for row in [sorted(node for node in tier if tier[node] == height)]
        for k, node in enumerate(row)
    }
    for k, rate in enumerate(sorted({float(cable.rate) for cable in topology.cables})):
        lines = [np.array([place[end] for end in c.ends]).T for c in topology.cables if float(c.rate) == rate]
        for n, (x, y) in enumerate(lines):
            name = f"{rate / GBPS:g} Gbps, {len(lines)} links" if n == 0 else None
            axis.plot(x, y, color=colour(k), lw=0.5, alpha=0.7, label=name)
    for height in range(len(TIERS)):
        points = np.array([at for at in place.values() if at[1] == height]).T
        axis.plot(*points, "s" if height else "o", color="0.25", ms=2 if height == 0 else 6, zorder=3)
    counts = Counter(tier.values())
    axis.set_yticks(range(len(TIERS)), [f"{counts[k]} {name}" for k, name in enumerate(TIERS)])
    axis.set_xticks([])
    axis.set_xlabel("each link 1 us long")
    axis.legend(fontsize="small", loc="upper right", bbox_to_anchor=(1, 1.08), ncols=2)
    picture.suptitle(title)
    return picture
