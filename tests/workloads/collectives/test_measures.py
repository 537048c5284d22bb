"""Metrics of a run, from outcomes that are written here: when each transfer began and ended, and what links sent."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import xarray as xr

from fluidcc.errors import InputError
from fluidcc.workloads.collectives import Job, mapping
from fluidcc.workloads.collectives import run as told
from fluidcc.workloads.collectives.algorithms import KINDS
from fluidcc.workloads.collectives.engines import Outcome
from fluidcc.workloads.collectives.jobs import Replay, Work, _weights, work_of
from fluidcc.workloads.collectives.mapping import Laid, laid_out
from fluidcc.workloads.collectives.schedule import Operation, Schedule
from fluidcc.workloads.fabrics import named_topology

TOPOLOGY = named_topology("leaf-spine:2x1x2")  # hosts 0 and 1 under 4, 2 and 3 under 5, both under 6
HOSTS = (0, 1, 2)


def made(*jobs: Job | Replay) -> tuple[Work, Laid]:
    work = work_of(list(jobs), [list(HOSTS)] * len(jobs))
    return work, laid_out(work.graph, TOPOLOGY, work.hosts, 1, {"scheme": "none"})


def outcome(laid: Laid, slow: float) -> Outcome:
    """Each begins as all that it waits for have arrived, and takes 1 s; from host 0 to 1 it takes ``slow``."""
    graph = laid.graph
    began, arrived = np.zeros(len(graph)), np.zeros(len(graph))
    for i in range(len(graph)):
        began[i] = max((arrived[k] for k in graph.before(i)), default=0.0) + graph.delay[i]
        first = (graph.source[i] % 3, graph.target[i] % 3) == (0, 1)
        arrived[i] = began[i] + (0.0 if not graph.sends[i] else slow if first else 1.0)
    rates = np.array([float(link.rate) for link in laid.connections.links])
    share = np.array([0.0, 0.1, 0.2, 0.35, 0.4])[:, None] * (np.arange(len(rates)) % 3)
    times = np.array([0.0, 1.0, 3.0, 4.0, 99.0])
    return Outcome(began, arrived, arrived, arrived, times, share * rates, {}, {})


def numbers(jobs: list[Any], work: Work, laid: Laid, found: Outcome) -> dict[str, Any]:
    chain = told.chain_of(laid, found)
    idle = np.full(len(laid.graph), 0.5)
    return told.numbers_of(jobs, work, laid, found, told.transfers_of(work, laid, found, idle, chain), chain)


def test_times_of_a_ring_by_hand() -> None:
    """All-gather of 3 in 2 steps, twice, each behind 5 s of compute; from 0 to 1 takes 3 s.

    Its second transfer ends after 6 s, as the last. Rank 0 has all after 2 s and begins again at 12 s, rank 2 after 4,
    rank 1 at 16; so the second is also over 6 s after its first begin, at 18 s.
    """
    job = Job("all-gather", "3MB", ranks=3, steps=2, compute="5s")
    work, laid = made(job)
    run = outcome(laid, 3.0)
    found = numbers([job], work, laid, run)
    (row,) = found["jobs"]
    assert row["iteration_times_s"] == pytest.approx([6.0, 6.0])
    assert (row["time_s"], row["end_s"], found["total_s"]) == pytest.approx((6.0, 18.0, 18.0))
    assert row["bus_bandwidth_bytes_per_s"] == pytest.approx(2 / 3 * 3e6 / 6)
    assert (found["transfers"], found["unfinished"], found["jain"]) == (12, 0, None)
    steps = sorted([3.0] * 4 + [1.0] * 8)
    assert found["step_time_s"] == pytest.approx(
        {"mean": np.mean(steps), "p50": 1.0, "p99": np.percentile(steps, 99), "max": 3.0}
    )
    slowest = found["slowest_path"]
    assert (slowest["source"], slowest["target"], slowest["transfers"]) == (0, 1, 4)
    assert slowest["slowdown"] == pytest.approx(6.0)  # over 0.5 s alone
    critical = found["critical_path"]
    assert (critical["compute_s"], critical["fabric_s"]) == pytest.approx((10.0, 8.0))
    cut = dataclasses.replace(run, finished=np.where(run.finished > 17.5, np.nan, run.finished))
    late = numbers([job], work, laid, cut)
    assert late["unfinished"] == int((run.finished[laid.graph.sends] > 17.5).sum()) > 0
    assert (late["critical_path"], late["total_s"]) == (None, None)


def test_a_job_that_takes_no_time_has_no_bandwidth_and_one_that_does_not_end_no_time() -> None:
    job = Job("all-gather", "3MB", ranks=3)
    work, laid = made(job)
    run = outcome(laid, 3.0)
    at_once = dataclasses.replace(run, began=0 * run.began, finished=0 * run.finished)
    (row,) = numbers([job], work, laid, at_once)["jobs"]
    assert (row["time_s"], row["bus_bandwidth_bytes_per_s"]) == (0.0, None)
    joined = np.where(laid.graph.sends, run.began, np.nan)  # what waits for a transfer that does not end never begins
    never = dataclasses.replace(run, began=joined, finished=np.full(len(joined), np.nan))
    found = numbers([job], work, laid, never)
    (row,) = found["jobs"]
    assert (row["time_s"], row["bus_bandwidth_bytes_per_s"], found["total_s"]) == (None, None, None)


def test_jobs_side_by_side() -> None:
    """Compare 3 and 9 MB in the same time: rates of 1 to 3, so Jain's index is 16/(2 x 10)."""
    jobs = [Job("all-gather", size, ranks=3) for size in ("3MB", "9MB")]
    found = numbers(jobs, *(made(*jobs)), outcome(made(*jobs)[1], 1.0))
    assert [row["time_s"] for row in found["jobs"]] == pytest.approx([2.0, 2.0])
    assert found["jain"] == pytest.approx(0.8)
    assert [row["name"] for row in found["jobs"]] == ["job 0", "job 1"]


def test_copies_and_transfers_have_their_times() -> None:
    """Columns of what crosses the fabric; a copy of 1 MB at 1 GB/s inside a server lasts 1 ms before it is there."""
    job = Job("all-to-all", "4MB", ranks=4, server=2, server_rate="1GB/s")
    work = work_of([job], [[0, 1, 2, 3]])
    laid = laid_out(work.graph, TOPOLOGY, work.hosts, 1, {"scheme": "none"})
    run = outcome(laid, 1.0)
    table = told.transfers_of(work, laid, run, np.full(len(laid.graph), 0.5), [])
    copies = table["size"].values == 0
    assert copies.any()
    took = (table["finished"] - table["began"]).values
    assert took[copies] == pytest.approx(1e-3)
    assert (table["left"].values[copies] == table["finished"].values[copies]).all()
    assert table["alone"].values[copies] == pytest.approx(1e-3)
    assert took[~copies] == pytest.approx(1.0)
    assert (table["alone"].values[~copies] == 0.5).all()
    assert not table["critical"].values.any()


def test_a_replay_has_the_bytes_of_its_own_sends() -> None:
    """Bytes are those of one of its two steps, without another job's: three ranks send 8 KB each to the next."""
    sends = [Operation(1, "send", k, 8000 + k, (k + 1) % 3) for k in range(3)]
    gets = [Operation(1, "recv", (k + 1) % 3, 8000 + k, k) for k in range(3)]
    jobs = [Job("all-gather", "3MB", ranks=3), Replay(Schedule("a", 3, [*sends, *gets]), steps=2)]
    work, laid = made(*jobs)
    found = numbers(jobs, work, laid, outcome(laid, 1.0))
    assert [row["bytes"] for row in found["jobs"]] == [3e6, 24_003.0]


def test_copies_inside_servers_are_no_transfers() -> None:
    """Four of the 12 parts of four ranks stay in their server; one that crosses takes 1 s, and a copy 1 ms."""
    job = Job("all-to-all", "4MB", ranks=4, server=2, server_rate="1GB/s")
    work = work_of([job], [[0, 1, 2, 3]])
    laid = laid_out(work.graph, TOPOLOGY, work.hosts, 1, {"scheme": "none"})
    run = outcome(laid, 1.0)
    found = numbers([job], work, laid, run)
    assert (found["transfers"], found["unfinished"]) == (8, 0)
    assert found["step_time_s"] == pytest.approx({"mean": 1.0, "p50": 1.0, "p99": 1.0, "max": 1.0})
    lost = dataclasses.replace(run, finished=np.full(len(run.finished), np.nan))
    late = numbers([job], work, laid, lost)
    assert (late["transfers"], late["unfinished"], late["slowest_path"]) == (8, 8, None)
    assert late["step_time_s"] == dict.fromkeys(("mean", "p50", "p99", "max"))


def test_the_slowest_path_is_so_on_average() -> None:
    """Notice a sum in place of a mean: three transfers at twice their time alone are not slower than one at four."""
    flows = [SimpleNamespace(source=0, target=target, path=(target,)) for target in (1, 2, 3)]
    links = [SimpleNamespace(name=f"link {i}") for i in range(4)]
    laid: Any = SimpleNamespace(
        connections=SimpleNamespace(flows=flows, links=links),
        connection=np.array([0, 0, 0, 1]),
        graph=SimpleNamespace(step=np.zeros(4)),
    )
    alone = xr.Dataset({"alone": ("transfer", np.ones(4))})
    found = told._slowest(laid, alone, np.array([2.0, 2.0, 2.0, 4.0]), np.ones(4, bool))
    assert found == {"source": 0, "target": 2, "links": ["link 2"], "transfers": 1, "slowdown": 4.0}


def test_loads_are_shares_of_rates_between_samples() -> None:
    """Links send a third of what the others do, twice that, or nothing, which is in no mean; the run ends at 2 s."""
    job = Job("all-gather", "3MB", ranks=3)
    work, laid = made(job)
    assert work.hosts == [0, 1, 2]
    run = outcome(laid, 1.0)
    found = told.load_of(TOPOLOGY, laid, run)
    assert found["time"].values == pytest.approx([0.5, 2.0])  # to the sample beyond the end
    tiers = {4: "tier 1", 5: "tier 1", 6: "tier 2"}
    groups: dict[str, list[int]] = {}
    for i, link in enumerate(laid.connections.links):
        groups.setdefault(f"{tiers[int(link.source)]} to {tiers.get(int(link.target), 'hosts')}", []).append(i % 3)
    assert sorted(groups) == found["tier"].values.tolist()
    for name, times in groups.items():
        busy = [each for each in times if each] or [0]
        assert found["mean"].sel(tier=name).values == pytest.approx(np.array([0.1, 0.05]) * np.mean(busy))
        assert found["most"].sel(tier=name).values == pytest.approx(np.array([0.1, 0.05]) * max(times))
    one = dataclasses.replace(run, times=run.times[:1], sent=run.sent[:1])
    assert told.load_of(TOPOLOGY, laid, one).sizes["time"] == 0


def test_pauses_by_tier_and_by_port() -> None:
    _, laid = made(Job("all-gather", "3MB", ranks=3))
    pauses = {"4->6": (3, 0.5), "0->4": (2, 0.1), "5->2": (7, 0.2)}
    found = told.pauses_of(TOPOLOGY, dataclasses.replace(outcome(laid, 1.0), pauses=pauses))
    assert found["pauses"] == {"hosts": 2, "tier 1": 10, "tier 2": 0}
    assert found["paused_s"] == pytest.approx({"hosts": 0.1, "tier 1": 0.7, "tier 2": 0.0})
    assert found["paused_ports"] == [
        {"port": "5->2", "tier": "tier 1", "pauses": 7, "paused_s": 0.2},
        {"port": "4->6", "tier": "tier 1", "pauses": 3, "paused_s": 0.5},
        {"port": "0->4", "tier": "hosts", "pauses": 2, "paused_s": 0.1},
    ]


def test_as_many_as_packets_follow_are_laid_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three connections, of six transfers: as many are allowed, and one more is not."""
    _, laid = made(Job("all-gather", "3MB", ranks=3))
    assert len(laid.graph) > len(laid.connections.flows) == 3
    assert laid.connection[laid.graph.sends].tolist() == [0, 1, 2, 0, 1, 2]
    assert (laid.connection[~laid.graph.sends] == -1).all()
    monkeypatch.setattr(mapping, "MOST_FLOWS", len(laid.graph))
    assert len(laid.scenario.flows) == len(laid.graph)
    monkeypatch.setattr(mapping, "MOST_FLOWS", len(laid.graph) - 1)
    with pytest.raises(InputError, match=f"has {len(laid.graph)} transfers and waits"):
        assert dataclasses.replace(laid).scenario
    monkeypatch.setattr(mapping, "MOST_FLOWS", 3)
    made(Job("all-gather", "3MB", ranks=3))
    monkeypatch.setattr(mapping, "MOST_FLOWS", 2)
    with pytest.raises(InputError, match="has 3 connections, of 2 at most"):
        made(Job("all-gather", "3MB", ranks=3))


def test_factors_and_parts() -> None:
    """Compare with nccl-tests, for 4 ranks; a skew of 1 has shares as 1, 1/2, 1/3 and 1/4 in some order."""
    factors = {name: kind.factor(4) for name, kind in KINDS.items()}
    assert factors.pop("all-reduce") == 1.5
    halves = ("all-gather", "reduce-scatter", "all-to-all")
    assert factors == dict.fromkeys(halves, 0.75) | {"broadcast": 1.0, "pipeline": 1.0}
    assert [KINDS["all-reduce"].parts(name, 4, 3, 2) for name in ("ring", "tree")] == [12, 12]
    assert [KINDS["all-reduce"].parts(name, 8, 3, 1) for name in ("ring", "tree")] == [24, 6]
    assert KINDS["broadcast"].parts("ring", 4, 3, 1) == 3
    weights = _weights(Job("all-to-all", "1MB", ranks=4, skew=1), np.random.default_rng(1))
    assert weights is not None
    assert sorted(weights) == pytest.approx([3 / 25, 4 / 25, 6 / 25, 12 / 25])
    assert _weights(Job("all-to-all", "1MB", ranks=4), np.random.default_rng(1)) is None
