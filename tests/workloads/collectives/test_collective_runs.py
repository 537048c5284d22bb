"""Runs without an engine: one stands in whose transfers take a second, and horizons, shares and slowdowns follow."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import xarray as xr

from fluidcc.engines.common.bounds import MOST_TIME
from fluidcc.engines.flow_level.transfers import DEPARTURE, RECEIPT
from fluidcc.engines.packet.build import Times
from fluidcc.engines.packet.layout import PS
from fluidcc.errors import InputError
from fluidcc.workloads.collectives import CollectiveRun, Job, Replay, Schedule, engines
from fluidcc.workloads.collectives import run as runs
from fluidcc.workloads.collectives.engines import ENGINES, Outcome
from fluidcc.workloads.collectives.graph import Graph
from fluidcc.workloads.collectives.jobs import work_of
from fluidcc.workloads.collectives.mapping import Laid, laid_out
from fluidcc.workloads.collectives.schedule import Operation
from fluidcc.workloads.collectives.study import CollectiveStudy, cases_of
from fluidcc.workloads.fabrics import named_topology
from tests.workloads.collectives.test_measures import TOPOLOGY, outcome

PAIRS = (Job("all-gather", "3MB", ranks=2), Job("all-gather", "3MB", ranks=2))


@dataclasses.dataclass
class Bench:
    """An engine that is told what it is asked for, and runs two jobs twice as long as one."""

    asked: list[tuple[float, dict[str, Any]]] = dataclasses.field(default_factory=list)
    lost: bool = False  # transfers of two jobs do not end

    def __call__(self, laid: Laid, until: float, **options: Any) -> Outcome:
        self.asked.append((until, {name: options[name] for name in ("seed", "interval", "expected")}))
        if options["report"] is not None:
            for share in (0.5, 1.0):
                options["report"](share)
        found = outcome(laid, 1.0)
        both = len(set(laid.graph.job.tolist())) > 1
        times = {name: getattr(found, name) * (1 + both) for name in ("began", "finished", "left", "arrived")}
        if both and self.lost:
            times["finished"] = np.where(laid.graph.sends, np.nan, times["finished"])
            times["began"] = np.where(laid.graph.sends, times["began"], np.nan)
        return dataclasses.replace(found, **times, numbers={"setup_s": 2.0})


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    made = Bench()
    monkeypatch.setitem(ENGINES, "by hand", made)
    return made


def ran(
    monkeypatch: pytest.MonkeyPatch,
    expected: float,
    *jobs: Job,
    report: Callable[[float], None] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Numbers of a run that takes so long on an idle fabric."""
    monkeypatch.setattr(runs, "_expected", lambda laid, left, arrived: expected)
    case = runs.Case("by hand", jobs or PAIRS[:1])
    found = runs.run(case, TOPOLOGY, "none", {"scheme": "none"}, 7, engine="by hand", report=report, **more)
    return found.numbers


@pytest.mark.parametrize(
    ("expected", "until", "horizon", "interval"),
    [
        (2.0, None, 40.0, 0.02),  # a hundredth of what it takes idle
        (2.0, 1000.0, 1000.0, 0.25),  # but no more than 4000 samples
        (2.0, 10.0, 10.0, 0.02),
        (60e3, None, MOST_TIME, 600.0),  # 20 times as long would be more than engines count
        (MOST_TIME, None, MOST_TIME, MOST_TIME / 100),
        (2 * MOST_TIME, 5.0, 5.0, 2 * MOST_TIME / 100),
    ],
)
def test_the_horizon_is_twenty_times_the_time_on_an_idle_fabric(
    expected: float, until: float | None, horizon: float, interval: float, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = ran(monkeypatch, expected, until=until)
    ((asked, options),) = bench.asked
    assert asked == numbers["until_s"] == horizon
    assert options["interval"] == pytest.approx(interval)
    assert (options["seed"], options["expected"], numbers["idle_s"]) == (7, expected, expected)


def test_longer_than_the_longest_horizon_is_refused_unless_a_part_is_asked_for(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match="by hand: takes more than"):
        ran(monkeypatch, MOST_TIME * 1.0001)
    assert not bench.asked


def test_setting_up_is_the_time_before_the_engine_and_its_own(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock stands at 10 s and at 13 s; the engine says 2 s."""
    clock = iter([10.0, 13.0])
    monkeypatch.setattr(runs, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    assert ran(monkeypatch, 1.0)["setup_s"] == 5.0
    assert len(bench.asked) == 1


def test_shares_of_jobs_that_also_run_alone(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A third for both, of which no engine says more than 0.99, and a third for each alone, in half the time."""
    told: list[float] = []
    numbers = ran(monkeypatch, 1.0, *PAIRS, separately=True, report=told.append)
    assert told == pytest.approx([0.5 / 3, 0.99 / 3, 2 / 3, 1.0])
    assert [job["slowdown"] for job in numbers["jobs"]] == [2.0, 2.0]
    assert len(bench.asked) == 3
    told.clear()
    one = ran(monkeypatch, 1.0, separately=True, report=told.append)
    assert told == [0.5, 0.99]
    assert "slowdown" not in one["jobs"][0]
    assert "slowdown" not in ran(monkeypatch, 1.0, *PAIRS)["jobs"][0]
    bench.lost = True
    lost = ran(monkeypatch, 1.0, *PAIRS, separately=True)
    assert [job["slowdown"] for job in lost["jobs"]] == [None, None]


@pytest.mark.parametrize(("sprayed", "seconds"), [(False, 1.6e-3), (True, 160e-6)])
def test_the_fullest_link_bounds_the_time(sprayed: bool, seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of three ranks sends 1 MB to both others: 2 MB at 100 Gb/s, and two of them over one cable at 10 Gb/s.

    Packets that are sprayed might all have taken others. Headers of 50 B come to payloads of 1000 B.
    """
    narrow = named_topology("leaf-spine:2x1x2", fabric_rate="10Gbps")
    work = work_of([Job("all-to-all", "3MB", ranks=3)], [[0, 1, 2]])
    options: dict[str, Any] = {"scheme": "none", "packet_size": 1000, "header_bytes": 50}
    laid = laid_out(work.graph, narrow, work.hosts, 1, options | ({"load_balancing": "packet"} if sprayed else {}))
    seen: list[np.ndarray] = []

    def longest(graph: Graph, left: np.ndarray, arrived: np.ndarray) -> float:
        seen.extend([left[~graph.sends], arrived[~graph.sends], left[graph.sends]])
        return 0.0

    monkeypatch.setattr(Graph, "longest", longest)
    ends = np.where(work.graph.sends, 1e-6, np.inf)
    assert runs._expected(laid, ends, ends) == pytest.approx(1.05 * seconds)
    assert not seen[0].any()  # a wait takes its delay alone
    assert not seen[1].any()
    assert set(seen[2].tolist()) == {1e-6}
    monkeypatch.setattr(Graph, "longest", lambda *_: 5.0)
    assert runs._expected(laid, ends, ends) == 5.0


def test_waits_are_apart_from_the_fabric() -> None:
    """Flows of a byte over the last two links, from a node that is none of the fabric's; transfers stay on it."""
    work = work_of([Job("all-gather", "3MB", ranks=3, compute="5s")], [[0, 1, 2]])
    laid = laid_out(work.graph, TOPOLOGY, work.hosts, 1, {"scheme": "none"})
    graph, nodes = laid.graph, {*map(str, (*TOPOLOGY.hosts, *TOPOLOGY.switches))}
    for i, flow in enumerate(laid.scenario.flows):
        assert flow.after == tuple(graph.before(i))
        assert float(flow.start) == graph.delay[i]
        assert ({flow.source, flow.target} <= nodes) == bool(graph.sends[i])
        assert all((link < laid.links) == bool(graph.sends[i]) for link in flow.path)
        assert float(flow.size) == (graph.size[i] if graph.sends[i] else 1.0)
        if not graph.sends[i]:
            assert not {flow.source, flow.target} & nodes
    assert len(laid.scenario.links) == laid.links + 2


@pytest.mark.parametrize(
    ("job", "count"), [(Job("all-to-all", ranks=4), 12), (Job("all-reduce", ranks=4, chunks=2), 8)]
)
def test_transfers_of_two_hosts_and_a_channel_are_a_connection(job: Job, count: int) -> None:
    """Transfers from each to each other, or to the next on two rings; rank 0 is on host 3."""
    work = work_of([job], [[3, 1, 2, 0]])
    laid = laid_out(work.graph, TOPOLOGY, work.hosts, 1, {"scheme": "none"})
    graph, flows = laid.graph, laid.connections.flows
    assert len(flows) == count
    found: dict[int, tuple[int, int, int]] = {}
    for i in np.flatnonzero(graph.sends).tolist():
        of, ends = int(laid.connection[i]), (work.hosts[graph.source[i]], work.hosts[graph.target[i]])
        assert (flows[of].source, flows[of].target) == (str(ends[0]), str(ends[1]))
        assert found.setdefault(of, (*ends, int(graph.channel[i]))) == (*ends, int(graph.channel[i]))
    assert len(set(found.values())) == len(found) == count


def test_packets_are_as_far_as_an_idle_fabric_would_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of 10 s with 5 s expected is half of the work; at the horizon two thirds are done."""
    work = work_of([Job("all-gather", "3MB", ranks=3)], [[0, 1, 2]])
    laid = laid_out(work.graph, TOPOLOGY, work.hosts, 1, {"scheme": "none"})
    asked: list[Any] = []

    def execute(plan: object, seed: int, report: Callable[[float], None]) -> None:
        for share in (0.0, 0.5, 1.0):
            report(share)
        raise InputError("nothing is run")

    def prepare(scenario: object, times: object, *_: object, **__: object) -> None:
        asked.append(times)

    for module, stand_ins in (
        ("build", {"prepare": prepare}),
        ("run", {"execute": execute, "warm_up": lambda plan: None}),
    ):
        for name, stand_in in stand_ins.items():
            monkeypatch.setattr(importlib.import_module(f"fluidcc.engines.packet.{module}"), name, stand_in)
    told: list[float] = []
    with pytest.raises(InputError, match="nothing is run"):
        ENGINES["packet"](laid, 10.0, seed=1, interval=0.5, expected=5.0, report=told.append)
    assert told == pytest.approx([0.0, 0.5, 2 / 3])
    (times,) = asked
    assert times == Times(10 * PS, 0, 10 * PS, PS // 2)


def test_the_fluid_is_told_whom_a_transfer_waits_for_and_until_when(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind one of the same rank until it has left, and else until it has arrived; loads are shares of rates."""
    work = work_of([Job("all-gather", "3MB", ranks=3)], [[0, 1, 2]])
    laid = laid_out(work.graph, TOPOLOGY, work.hosts, 1, {"scheme": "none"})
    graph, links = laid.graph, laid.connections.links
    given: list[Any] = []

    def flow_times(scenario: object, transfers: Any, **options: Any) -> SimpleNamespace:
        given.append((transfers, options))
        load = np.array([[0.5] * len(links), [0.25] * len(links)])
        times = {name: np.full(len(graph), k) for k, name in enumerate(("start", "answered", "left", "received"))}
        numbers = {"pauses": 3, "paused": {}, "steps": 4, "setup_s": 5.0, "compile_s": 6.0, "wall_s": 7.0}
        return SimpleNamespace(**times, load=load, interval=2.0, numbers=numbers)

    monkeypatch.setattr(importlib.import_module("fluidcc.engines.flow_level.run"), "flow_times", flow_times)
    found = ENGINES["fluid"](laid, 9.0, seed=1, interval=1.0, expected=1.0)
    ((transfers, options),) = given
    assert (options["until"], options["seed"]) == (9.0, 1)
    for i in range(len(graph)):
        for k, ends in zip(
            graph.before(i), transfers.after_what[graph.after_at[i] : graph.after_at[i + 1]], strict=True
        ):
            same = graph.sends[i] and graph.sends[k] and graph.source[i] == graph.source[k]
            assert ends == (DEPARTURE if same else RECEIPT)
    assert (found.began[0], found.finished[0], found.left[0], found.arrived[0]) == (0, 1, 2, 3)
    assert found.times.tolist() == [0.0, 2.0, 4.0]
    rates = np.array([float(link.rate) for link in links])
    np.testing.assert_allclose(found.sent, [0 * rates, 2 * 0.5 * rates, 2 * 0.75 * rates])
    assert (found.numbers["pfc_pauses"], found.numbers["drops"], found.numbers["wall_s"]) == (3, 0, 7.0)


# -- kinds, and how many of them ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hosts", "count", "ranks"),
    [(None, None, [4]), (None, 1, [4]), (None, 2, [2, 2]), (2, None, [2]), (4, 2, [2, 2]), (3, 1, [3])],
)
def test_hosts_are_shared_out_among_jobs(hosts: int | None, count: int | None, ranks: list[int]) -> None:
    """Four hosts; each kind has jobs of its own."""
    found = cases_of("all-gather,broadcast", TOPOLOGY, hosts, count, {})
    assert [case.name for case in found] == ["all-gather", "broadcast"]
    for case in found:
        assert [job.count for job in case.jobs] == ranks


@pytest.mark.parametrize(
    ("hosts", "count", "says"),
    [(1, None, "hosts"), (5, None, "hosts"), (None, 0, "jobs"), (None, 3, "jobs"), (None, 4, "jobs"), (2, 2, "jobs")],
)
def test_jobs_of_fewer_than_two_ranks_are_refused(hosts: int | None, count: int | None, says: str) -> None:
    with pytest.raises(InputError, match=f"^{says}: "):
        cases_of("all-gather", TOPOLOGY, hosts, count, {})


def test_as_many_jobs_may_be_asked_for_as_a_thousand_and_24() -> None:
    with pytest.raises(InputError, match="4 hosts are no 1024 jobs"):
        cases_of("all-gather", TOPOLOGY, None, 1024, {})
    with pytest.raises(InputError, match=r"^jobs: (?!4 hosts)"):
        cases_of("all-gather", TOPOLOGY, None, 1025, {})


# -- over seeds --------------------------------------------------------------------------------------------------------


def one(scheme: str, case: str, seed: int, took: float | None, **more: Any) -> CollectiveRun:
    counts = dict.fromkeys(("pfc_pauses", "drops", "trims", "retransmissions"), seed)
    numbers = {"time_s": took, "bus_bandwidth_bytes_per_s": took, "jain": None, "unfinished": 0, "unchecked": []}
    return CollectiveRun(scheme, "packet", case, seed, numbers | counts | more, xr.Dataset(), xr.Dataset())


def test_runs_are_those_of_their_scheme_and_kind() -> None:
    """Means over seeds that have all ended; counts are sums, and doubts are told once."""
    made = tuple(
        one(scheme, case, seed, took, **more)
        for scheme, case, seed, took, more in (
            ("a", "x", 1, 1.0, {"unchecked": ["doubt"]}),
            ("a", "x", 2, 3.0, {"unchecked": ["doubt", "other"]}),
            ("b", "x", 1, 5.0, {}),
            ("b", "x", 2, None, {"unfinished": 7}),
            ("a", "y", 1, 9.0, {}),
        )
    )
    study = CollectiveStudy(made, TOPOLOGY, ("x", "y"))
    assert (study.schemes, study.cases, study.seeds) == (["a", "b"], ["x", "y"], [1, 2])
    assert study.of("a") == [made[0], made[1], made[4]]
    assert study.of("a", "x") == [made[0], made[1]]
    assert study.of("b", "y") == []
    rows = {(row["collective"], row["scheme"]): row for row in study.summary() if row["seeds"]}
    first, second = rows["x", "a"], rows["x", "b"]
    assert first["time_s"]["mean"] == 2.0
    assert (first["time_s"]["low"], first["time_s"]["high"]) == (None, None)  # two seeds have no interval
    assert (first["seeds"], first["complete"], first["unfinished"], first["drops"]) == (2, 2, 0, 3)
    assert first["jain"]["mean"] is None
    assert first["unchecked"] == ["doubt", "other"]
    assert second["time_s"] == {"mean": None, "low": None, "high": None}
    assert (second["complete"], second["unfinished"]) == (1, 7)
    assert rows["y", "a"]["time_s"]["mean"] == 9.0
    both = CollectiveStudy(made[:4], TOPOLOGY, ("x",))
    ratios = both.against("a", "b")
    assert np.isnan(list(ratios["x"].values())).all()  # one seed of b did not end
    with pytest.raises(InputError, match="'c' did not run; there are a, b"):
        both.against("c", "a")


# -- what the fluid is known to be good for ----------------------------------------------------------------------------


def ring(**more: Any) -> Job:
    return Job("all-reduce", "1MB", ranks=more.pop("ranks", 4), **more)


@pytest.mark.parametrize(
    ("job", "pattern"),
    [
        (ring(), "ring"),
        (ring(algorithm="tree"), "tree"),
        (Job("all-gather", ranks=4), "ring"),
        (Job("all-to-all", ranks=4), "all-to-all"),
        (Job("broadcast", ranks=4), "chain"),
        (Job("pipeline", ranks=4), "chain"),
    ],
)
def test_patterns_of_jobs(job: Job, pattern: str) -> None:
    assert engines.patterns_of(job) == [pattern]


def under(scheme: str) -> Any:
    return SimpleNamespace(connections=SimpleNamespace(flows=[SimpleNamespace(scheme=SimpleNamespace(name=scheme))]))


SENDS = Replay(Schedule("a", 2, [Operation(1, "send", 0, 8, 1)]))  # of which any pattern may be


@pytest.mark.parametrize(
    ("scheme", "jobs", "poor", "good"),
    [
        ("none", [ring(), Job("all-to-all", ranks=4)], "", ""),
        ("hpcc", [ring()], "", ""),  # 54 of 60 are nine of ten
        ("hpcc", [ring(), Job("all-to-all", ranks=4)], "", ""),
        ("nscc", [ring(), Job("all-to-all", ranks=4)], "all-to-all 82% of 60", "chain of it are"),
        ("hpcc", [ring(algorithm="tree")], "tree 80% of 60", "ring, all-to-all and chain of it are"),
        ("nscc", [ring()], "ring 87% of 60", "chain of it are"),
        ("dcqcn", [SENDS], "ring 81% of 36, tree 64% of 36, all-to-all 69% of 36, chain 89% of 36", ""),
        ("timely", [ring()], "ring 88% of 60", "chain of it are"),
        ("hpcc-multiq", [ring()], "hpcc-multiq was not measured", ""),
    ],
)
def test_doubts_are_told_below_nine_of_ten(scheme: str, jobs: list[Any], poor: str, good: str) -> None:
    found = engines.doubts_of(under(scheme), jobs)
    assert len(found) == bool(poor)
    assert not poor or poor in found[0]
    assert not poor or ("good enough" in found[0]) == bool(good)
    assert good in "".join(found)
    if found:
        with pytest.raises(InputError, match=r"^engine: "):
            engines.checked(under(scheme), jobs, False)


@dataclasses.dataclass
class Sized:
    """Three waits and three transfers, one of this size between a small one and a large one."""

    usual: float
    sends = np.array([False] * 3 + [True] * 3)

    def __len__(self) -> int:
        return len(self.sends)

    @property
    def size(self) -> np.ndarray:
        return np.array([0.0, 0.0, 0.0, 1.0, self.usual, 1e9])


def sized(hosts: int, ranks: int, size: float) -> Any:
    return SimpleNamespace(topology=SimpleNamespace(hosts=range(hosts)), graph=Sized(size), hosts=range(ranks))


@pytest.mark.parametrize(
    ("hosts", "ranks", "size", "says"),
    [
        (1024, 128, 25e3, []),
        (1025, 128, 25e3, ["more than 1024 hosts"]),
        (1024, 129, 25e3, ["more than 128 ranks"]),
        (1024, 128, 24_999, ["transfers of less than 25KB"]),
        (1025, 129, 10.0, ["more than 1024 hosts", "more than 128 ranks", "transfers of less than 25KB"]),
    ],
)
def test_sizes_beyond_what_was_compared_are_told(hosts: int, ranks: int, size: float, says: list[str]) -> None:
    """The median of transfers, without waits; and of the jobs the largest."""
    found = engines.sizes_of(sized(hosts, 500, size), [ring(ranks=2), ring(ranks=ranks)])
    assert len(found) == len(says)
    assert all(word in line for word, line in zip(says, found, strict=True))


def test_more_transfers_than_packets_follow_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """In place of the number of ranks: both are beyond what was compared."""
    for most, says in ((6, "more than 128 ranks"), (5, "packets follow 5 transfers at most, and these are 6")):
        monkeypatch.setattr(engines, "MOST_FLOWS", most)
        (found,) = engines.sizes_of(sized(2, 129, 25e3), [ring(ranks=129)])
        assert says in found
