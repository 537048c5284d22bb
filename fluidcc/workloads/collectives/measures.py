"""Metrics from the begin and end of each transfer of a run: times, tails, paths, pauses, loads."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from fluidcc.results.metrics import jain
from fluidcc.workloads.collectives.engines import Outcome
from fluidcc.workloads.collectives.graph import Graph
from fluidcc.workloads.collectives.jobs import Job, Replay, Work
from fluidcc.workloads.collectives.mapping import Laid
from fluidcc.workloads.fabrics.topology import Topology


def chain_of(laid: Laid, found: Outcome) -> list[int]:
    """Return the places of what the last to end had waited for, in order; none if something has not ended."""
    if not np.isfinite(laid.graph.ended(found.began, found.finished)).all():
        return []
    return laid.graph.critical(found.began, found.left, found.arrived)


def transfers_of(work: Work, laid: Laid, found: Outcome, idle: np.ndarray, chain: Sequence[int]) -> xr.Dataset:
    """Return a table of the transfers that cross the fabric, and of copies inside servers."""
    graph = laid.graph
    listed = np.flatnonzero(graph.step >= 0)
    hosts = np.array(work.hosts)
    source, target = graph.source[listed], graph.target[listed]
    sends, began, delay = graph.sends[listed], found.began[listed], graph.delay[listed]
    columns = {
        "job": graph.job[listed],
        "iteration": graph.iteration[listed],
        "step": graph.step[listed],
        "rank": source,
        "source": hosts[source],
        "target": hosts[target],
        "size": graph.size[listed],
        "began": np.where(sends, began, began - delay),
        "finished": np.where(sends, found.finished[listed], began),
        "left": np.where(sends, found.left[listed], began),
        "arrived": np.where(sends, found.arrived[listed], began),
        "alone": np.where(sends, idle[listed], delay),
        "critical": np.isin(listed, np.array(chain, int)),
    }
    units = {"size": "bytes"} | dict.fromkeys(("began", "finished", "left", "arrived", "alone"), "s")
    return xr.Dataset({name: ("transfer", values, {"units": units.get(name, "1")}) for name, values in columns.items()})


def numbers_of(
    jobs: Sequence[Job | Replay], work: Work, laid: Laid, found: Outcome, transfers: xr.Dataset, chain: Sequence[int]
) -> dict[str, Any]:
    """Times of jobs, tails of steps, and what held them up, as `CollectiveRun.as_dict` says."""
    ends = laid.graph.ended(found.began, found.finished)
    rows = []
    for j, (begins, lasts) in enumerate(zip(work.begins, work.ends, strict=True)):
        took = [
            float(ends[last].max() - (ends[first].min() if first else 0.0))
            for first, last in zip(begins, lasts, strict=True)
        ]
        mean = float(np.mean(took))
        job = jobs[j]
        size = float(laid.graph.size[laid.graph.job == j].sum()) / job.steps if isinstance(job, Replay) else job.bytes
        rows.append(
            {
                "name": job.name or f"job {j}",
                "kind": "schedule" if isinstance(job, Replay) else job.kind,
                "ranks": job.count,
                "bytes": size,
                "time_s": mean if np.isfinite(mean) else None,
                "bus_bandwidth_bytes_per_s": (
                    None if isinstance(job, Replay) or not mean > 0 else job.factor * size / mean
                ),
                "iteration_times_s": took,
                "end_s": float(ends[lasts[-1]].max()),
            }
        )
    late = np.array([row["time_s"] if row["time_s"] is not None else np.inf for row in rows])
    slowest = rows[int(late.argmax())]
    duration = (transfers["finished"] - transfers["began"]).values
    real = transfers["size"].values > 0
    done = np.isfinite(duration) & real
    every = np.array([each for row in rows for each in row["iteration_times_s"]])
    rates = [row["bus_bandwidth_bytes_per_s"] for row in rows]
    unfinished = int((real & ~np.isfinite(duration)).sum())
    complete = bool(np.isfinite(ends).all())
    return {
        **{key: slowest[key] for key in ("ranks", "bytes", "time_s", "bus_bandwidth_bytes_per_s")},
        "total_s": max(row["end_s"] for row in rows) if complete else None,
        "transfers": int(real.sum()),
        "unfinished": unfinished,
        "step_time_s": _tail(duration[done]),
        "iteration_time_s": _tail(every[np.isfinite(every)]) if np.isfinite(every).all() else _tail(every[:0]),
        "jain": float(jain(np.array(rates, float))) if len(rows) > 1 and all(rates) and complete else None,
        "jobs": rows,
        "slowest_path": _slowest(laid, transfers, duration, done),
        "critical_path": _critical(laid.graph, found, chain) if chain else None,
    }


def _tail(values: np.ndarray) -> dict[str, float | None]:
    if not len(values):
        return dict.fromkeys(("mean", "p50", "p99", "max"))
    p50, p99 = np.percentile(values, [50, 99])
    return {"mean": float(values.mean()), "p50": float(p50), "p99": float(p99), "max": float(values.max())}


def _slowest(laid: Laid, transfers: xr.Dataset, duration: np.ndarray, done: np.ndarray) -> dict[str, Any] | None:
    """The path whose transfers took longest, on average, over what they would have taken alone."""
    if not done.any():
        return None
    flows = laid.connections.flows
    numbers: dict[Any, int] = {}
    path = np.array([numbers.setdefault((flow.source, flow.target, flow.path), len(numbers)) for flow in flows])
    mine = path[laid.connection[np.flatnonzero(laid.graph.step >= 0)[done]]]
    total = np.bincount(mine, duration[done] / transfers["alone"].values[done], len(numbers))
    count = np.bincount(mine, minlength=len(numbers))
    slowest = int(np.argmax(total / np.maximum(count, 1)))
    source, target, links = list(numbers)[slowest]
    return {
        "source": int(source),
        "target": int(target),
        "links": [laid.connections.links[i].name for i in links],
        "transfers": int(count[slowest]),
        "slowdown": float(total[slowest] / count[slowest]),
    }


def _critical(graph: Graph, found: Outcome, chain: Sequence[int]) -> dict[str, Any]:
    """Measure the critical path: transfers and ranks on it, and its time on the fabric and in ranks [s]."""
    waited = sum(graph.delay[i] for i in chain)
    crossed = [i for i in chain if graph.size[i] > 0]
    ranks = [graph.source[i] for i in crossed]
    return {
        "transfers": len(crossed),
        "ranks": len(set(ranks)),
        "fabric_s": float(found.began[chain[-1]] - waited),
        "compute_s": float(waited),
    }


def pauses_of(topology: Topology, found: Outcome) -> dict[str, Any]:
    """PAUSE frames that ports received, and for how long these stood still: by tier, all its ports, and by port."""
    tiers = topology.tiers
    names = {str(node): f"tier {tier}" for node, tier in tiers.items()}
    frames: dict[str, Any] = {"hosts": 0} | {f"tier {tier}": 0 for tier in sorted(set(tiers.values()))}
    seconds = dict.fromkeys(frames, 0.0)
    ports: list[dict[str, Any]] = []
    for port, (count, spent) in found.pauses.items():
        tier = names.get(port.partition("->")[0], "hosts")
        frames[tier] += count
        seconds[tier] += spent
        ports.append({"port": port, "tier": tier, "pauses": count, "paused_s": spent})
    ports.sort(key=lambda each: -each["pauses"])
    return {"pauses": frames, "paused_s": seconds, "paused_ports": ports}


def load_of(topology: Topology, laid: Laid, found: Outcome) -> xr.Dataset:
    """Compute what links sent over their rates, between samples, by the tiers that they join."""
    tiers: dict[str, str] = {str(node): f"tier {tier}" for node, tier in topology.tiers.items()}
    groups: dict[str, list[int]] = defaultdict(list)
    links = laid.connections.links
    for i, link in enumerate(links):
        groups[f"{tiers[link.source]} to {tiers.get(link.target, 'hosts')}"].append(i)
    rates = np.array([float(link.rate) for link in links])
    ends = np.nanmax(np.concatenate([found.finished, found.began, [0.0]]))
    kept = int(min(len(found.times), np.searchsorted(found.times, ends) + 1))
    times, sent = found.times[:kept], found.sent[:kept, : len(links)]
    share = np.diff(sent, axis=0) / np.diff(times)[:, None] / rates if kept > 1 else np.zeros((0, len(links)))
    names: Sequence[str] = sorted(groups)
    used = {name: [i for i in groups[name] if sent[-1:, i].any()] or groups[name] for name in names}
    return xr.Dataset(
        {
            "mean": (("time", "tier"), np.stack([share[:, used[name]].mean(axis=1) for name in names], axis=1)),
            "most": (("time", "tier"), np.stack([share[:, groups[name]].max(axis=1) for name in names], axis=1)),
        },
        coords={"time": (times[1:] + times[:-1]) / 2, "tier": list(names)},
    )
