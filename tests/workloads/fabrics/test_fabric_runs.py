"""Runs of fabrics without the engine: windows, horizons, shares of work, chains of flows, distributions of queues."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import xarray as xr

from fluidcc.engines.packet.layout import PAUSE, PS, RESUME
from fluidcc.errors import InputError
from fluidcc.workloads.fabrics import Cable, Topology, alone, named_topology
from fluidcc.workloads.fabrics import run as runs
from fluidcc.workloads.fabrics.run import FabricRun, begun
from fluidcc.workloads.fabrics.slowdowns import Slowdown
from fluidcc.workloads.fabrics.study import FabricStudy

TOPOLOGY = named_topology("leaf-spine:2x1x2")
LATE = [(0, 2, 0.0, 1000.0), (1, 2, 1e-3, 1000.0)]
AT_ONCE = [(0, 2, 0.0, 1000.0), (1, 2, 0.0, 50e3)]


class DoneError(Exception):
    """The engine is called, and nothing is run."""


def asked(monkeypatch: pytest.MonkeyPatch, rows: Any, **more: Any) -> tuple[float, tuple[float, float]]:
    """Horizon and window that the engine is asked for; ``report`` is told shares as it goes on."""
    found: list[Any] = []

    def times_of(scenario: object, horizon: float, window: tuple[float, float], interval: float) -> None:
        assert interval == horizon
        found.append((horizon, window))

    def execute(plan: object, seed: int, report: Any) -> None:
        assert seed == 3
        for share in (0.0, 0.25, 0.5, 0.75, 1.0):
            report(share)
        raise DoneError

    for name, stand_in in (("times_of", times_of), ("execute", execute)):
        monkeypatch.setattr(runs, name, stand_in)
    for name in ("prepare", "warm_up"):
        monkeypatch.setattr(runs, name, lambda *_, **__: None)
    with pytest.raises(DoneError):
        runs.run(TOPOLOGY, rows, "none", {"scheme": "none"}, 3, **more)
    (only,) = found
    return only


def longest(rows: Any) -> float:
    return float(alone(TOPOLOGY.scenario(rows, scheme="none")).max())


@pytest.mark.parametrize(
    ("until", "drain", "horizon", "end"),
    [
        (None, 1e-3, 2e-3, 1e-3),  # to the start of the last flow
        (3e-3, 1e-3, 4e-3, 3e-3),  # or of arrivals, of which the last was earlier
        (0.5e-3, 1e-3, 2e-3, 1e-3),
        (3e-3, 0.0, 3e-3, 3e-3),
    ],
)
def test_it_is_waited_for_flows_after_the_last_has_started(
    until: float | None, drain: float, horizon: float, end: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = asked(monkeypatch, LATE, until=until, drain=drain)
    assert found[0] == pytest.approx(horizon)
    assert found[1] == pytest.approx((0.0, end))


def test_flows_that_start_at_once_are_watched_as_long_as_the_longest_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty times as long is waited for them; a shorter horizon ends the window too."""
    took = longest(AT_ONCE)
    assert asked(monkeypatch, AT_ONCE) == (pytest.approx(20 * took), pytest.approx((0.0, took)))
    assert asked(monkeypatch, LATE)[0] == pytest.approx(1e-3 + 20 * longest(LATE))
    assert asked(monkeypatch, AT_ONCE, drain=took / 2) == (pytest.approx(took / 2), pytest.approx((0.0, took / 2)))


def test_a_flow_that_waits_for_another_has_no_start_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    waits = [(0, 2, 1e-4, 1000.0), (1, 2, 5e-3, 1000.0, (0,), "answer")]
    assert asked(monkeypatch, waits, drain=1e-3)[0] == pytest.approx(1e-4 + 1e-3)


@pytest.mark.parametrize(("since", "fits"), [(0.0, True), (0.999e-3, True), (1e-3, False), (-1e-6, False)])
def test_counting_begins_before_it_ends(since: float, fits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if fits:
        assert asked(monkeypatch, LATE, since=since)[1] == (since, pytest.approx(1e-3))
        return
    with pytest.raises(InputError, match="since: counting ends at 1 ms"):
        runs.run(TOPOLOGY, LATE, "none", {"scheme": "none"}, 3, since=since)


def test_nine_tenths_of_the_work_are_done_as_the_last_flow_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """It starts halfway to the horizon; what drains then is the last tenth."""
    told: list[tuple[float, str]] = []
    asked(monkeypatch, LATE, drain=1e-3, report=lambda share, words: told.append((share, words)))
    assert [share for share, _ in told] == pytest.approx([0.0, 0.45, 0.9, 0.95, 1.0])
    assert [words.rpartition(" ")[2] for _, words in told[1:]] == ["500us", "1ms", "1.5ms", "2ms"]
    assert told[0][1].startswith("none, seed 3, is at 0")


def flow(after: tuple[int, ...] = (), start: float = 0.0) -> SimpleNamespace:
    return SimpleNamespace(after=after, start=start)


@pytest.mark.parametrize(
    ("flows", "times", "longest"),
    [
        ([flow(start=9.0), flow()], [1.0, 3.0], 3.0),
        ([flow(), flow()], [1.0, np.inf], 1.0),
        ([flow()], [np.inf], 0.0),
        # 1 s, then 2 and 3 behind it, then half a second and 5 behind both; its own start alone does not count.
        ([flow(start=10.0), flow((0,), 2.0), flow((0, 1), 0.5)], [1.0, 3.0, 5.0], 11.5),
        ([flow((1,), 2.0), flow()], [3.0, 1.0], 6.0),  # in whatever order
        ([flow(), flow((0,)), flow()], [1.0, 3.0, 20.0], 20.0),
        ([flow(), flow((0,), 2.0)], [np.inf, 3.0], 5.0),
        ([flow(), flow(), flow((0, 1))], [4.0, 7.0, 1.0], 8.0),
    ],
)
def test_the_longest_chain_of_flows(flows: list[Any], times: list[float], longest: float) -> None:
    assert runs._longest(flows, np.array(times)) == longest


def test_lengths_of_queues_with_their_shares_of_time() -> None:
    """Bins of 0, 1 and 3 s whose lengths over time add up to 0, 2 and 9 byte-seconds."""
    queues = SimpleNamespace(spent=np.array([0.0, 1.0, 3.0]), area_in=np.array([0.0, 2.0, 9.0]))
    assert runs._distribution(cast(Any, queues)).tolist() == [[2.0, 3.0], [0.25, 0.75]]


def test_pauses_are_of_the_tier_that_was_paused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ports of a host, both ToRs and the spine, of which one stood for 1 ms and the others not."""
    ports = [SimpleNamespace(source=node) for node in ("0", "4", "5", "5", "6")]
    plan = SimpleNamespace(topology=SimpleNamespace(ports=ports))
    sim = SimpleNamespace(ports={"pauses": np.array([1, 2, 3, 4, 0])})
    monkeypatch.setattr(runs, "paused_for", lambda sim: PS * np.array([0.0, 1e-3, 0.0, 2e-3, 0.0]))
    found = runs._pauses(TOPOLOGY, cast(Any, plan), cast(Any, sim))
    assert found["pauses"] == {"hosts": 1, "tier 1": 9, "tier 2": 0}
    assert found["paused_s"] == pytest.approx({"hosts": 0.0, "tier 1": 3e-3, "tier 2": 0.0})


def made(scheme: str, seed: int, slowdowns: list[float], starts: list[float] | None = None) -> FabricRun:
    """A run of flows of 1, 2, ... KB."""
    sizes = 1e3 * np.arange(1, 1 + len(slowdowns))
    columns = {"size": sizes, "slowdown": slowdowns, "start": starts or [0.0] * len(slowdowns)}
    dataset = xr.Dataset(
        {name: ("flow", np.array(values, float)) for name, values in columns.items()},
        coords={"flow": [f"flow {i}" for i in range(len(slowdowns))]},
    )
    return FabricRun(scheme, seed, Slowdown(dataset), {"drops": seed}, np.zeros((2, 1)))


def test_flows_that_never_began_are_dropped() -> None:
    run = made("a", 1, [1.0, np.nan, np.nan], [0.0, 5.0, np.nan])
    assert begun(run).slowdown["flow"].values.tolist() == ["flow 0", "flow 1"]
    assert run.slowdown.unfinished == 2


def test_flows_and_those_that_did_not_finish_are_counted_over_seeds() -> None:
    """Two seeds of three flows, of which one and two did not finish; means of seeds, each of those that did."""
    study = FabricStudy(
        (
            made("a", 1, [2.0, 4.0, np.nan]),
            made("a", 2, [5.0, np.nan, np.nan]),
            made("b", 1, [1.0] * 3),
            made("b", 2, [1.0] * 3),
        ),
        TOPOLOGY,
        "flows",
    )
    first, second = study.as_dict(["0B", "1KB", "3KB"])["schemes"]
    assert (first["scheme"], first["seeds"], first["flows"], first["unfinished"]) == ("a", 2, 6, 3)
    assert first["slowdown"]["mean"]["mean"] == 4.0
    assert (second["flows"], second["unfinished"], second["slowdown"]["p99"]["mean"]) == (6, 0, 1.0)
    one = study.as_dict(["0B", "1KB", "3KB"])["runs"][0]
    assert (one["flows"], one["unfinished"], one["unfinished_flows"], one["drops"]) == (3, 1, ["flow 2"], 1)
    assert [(row["to_bytes"], row["flows"], row["unfinished"]) for row in one["bins"]] == [(1e3, 1, 0), (3e3, 1, 1)]
    assert [run.seed for run in study.of("b")] == [1, 2]


def test_seconds_and_numbers_of_a_run_are_of_what_they_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set up, compile, loop and analyse are told apart; goodput is a sum, the mean queue an area over a time."""
    clock = iter([10.0, 12.0, 17.0, 30.0, 37.0])
    monkeypatch.setattr(runs, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    for name in ("prepare", "warm_up"):
        monkeypatch.setattr(runs, name, lambda *_, **__: None)
    monkeypatch.setattr(runs, "execute", lambda *_, **__: (None, 4.0))
    asked: list[Any] = []

    def summary_of(scenario: Any, plan: Any, sim: Any, seconds: Any) -> Any:
        asked.append(seconds)
        return {"fct_s": [1e-3, 2e-3], "began_s": [0.0, 0.0], "pfc": {"deadlock_s": 5e-3}, "drops": 3}

    queues = SimpleNamespace(spent=np.array([6.0, 2.0]), area_in=np.array([12.0, 6.0]), area=18.0, span=4.0, most=9.0)
    found = Slowdown(xr.Dataset({"slowdown": ("flow", [1.0, 2.0])}))
    monkeypatch.setattr(runs, "summary_of", summary_of)
    monkeypatch.setattr(runs, "slowdown_of", lambda *_: found)
    monkeypatch.setattr(runs, "outcome_of", lambda *_: SimpleNamespace(goodput=np.array([3.0, 4.0]), links=None))
    monkeypatch.setattr(runs, "pooled", lambda links: queues)
    monkeypatch.setattr(runs, "binned_percentiles", lambda spent, area, percents: [float(each) for each in percents])
    monkeypatch.setattr(runs, "_pauses", lambda *_: {"pauses": {}, "paused_s": {}})
    made = runs.run(TOPOLOGY, AT_ONCE, "none", {"scheme": "none"}, 3, drain=1.0)
    numbers = made.numbers
    assert asked == [{"seed": 3, "compile_s": 5.0, "wall_s": 4.0}]
    seconds = [numbers[key] for key in ("setup_s", "compile_s", "wall_s", "analysis_s")]
    assert seconds == [2.0, 5.0, 4.0, 7.0]
    assert (numbers["goodput_bytes_per_s"], numbers["queue_bytes"]["mean"], numbers["queue_bytes"]["max"]) == (
        7,
        4.5,
        9,
    )
    assert numbers["queue_bytes"]["p50"] == 50.0
    assert (numbers["deadlock_s"], numbers["horizon_s"], numbers["window_s"][0]) == (5e-3, 1.0, 0.0)
    assert made.slowdown.dataset["goodput"].values.tolist() == [3.0, 4.0]


def test_frames_name_the_interface_that_they_stop() -> None:
    """Ports of two cables between two switches are in the cables' order; what lies behind the last is left out."""
    cables = [((0, 2), 1), ((1, 3), 1), ((2, 3), 4), ((2, 3), 4)]
    topology = Topology((0, 1), (2, 3), tuple(Cable(ends, f"{rate}Gbps", "1us") for ends, rate in cables))
    ends = [("2", "3"), ("3", "2"), ("2", "3"), ("3", "2"), ("2", "0"), ("3", "1")]
    ports = [SimpleNamespace(source=source, target=target) for source, target in ends]
    log = np.zeros(7, [("time", float), ("port", int), ("kind", int)])
    log["time"], log["port"] = PS * np.arange(7), [0, 1, 2, 3, 4, 5, 0]
    log["kind"] = [PAUSE, RESUME, PAUSE, PAUSE, RESUME, PAUSE, PAUSE]
    sim: Any = SimpleNamespace(log=log, core=[SimpleNamespace(logged=6)])
    found = runs._frames(topology, cast(Any, SimpleNamespace(topology=SimpleNamespace(ports=ports))), sim)
    assert found.tolist() == [
        [0, 3, 2, 1], [1, 2, 2, 0], [2, 3, 3, 1], [3, 2, 3, 1], [4, 0, 1, 0], [5, 1, 1, 1]
    ]  # fmt: skip


def test_flows_without_an_end_are_no_run() -> None:
    with pytest.raises(InputError, match="none has an end"):
        runs.run(TOPOLOGY, [(0, 2, 0.0, np.inf)], "none", {"scheme": "none"}, 3)


def test_a_run_that_is_kept_is_read_as_it_was(tmp_path: Path) -> None:
    """Slowdowns, numbers, queues and frames; what is none of these is refused."""
    run = made("a", 7, [1.0, 2.5])
    run = dataclasses.replace(run, queue=np.array([[1.0, 2.0], [0.25, 0.75]]), frames=np.array([[1.0, 2, 3, 1]]))
    run.save(tmp_path / "run.nc")
    found = runs.read_run(tmp_path / "run.nc")
    assert (found.scheme, found.seed, found.numbers) == ("a", 7, {"drops": 7})
    assert found.slowdown["slowdown"].values.tolist() == [1.0, 2.5]
    assert set(found.slowdown.dataset) == {"size", "slowdown", "start"}
    assert found.queue.tolist() == run.queue.tolist()
    assert found.frames is not None
    assert found.frames.tolist() == [[1, 2, 3, 1]]
    made("a", 7, [1.0]).save(tmp_path / "bare.nc")
    assert runs.read_run(tmp_path / "bare.nc").frames is None
    run.slowdown.dataset.to_netcdf(tmp_path / "other.nc", engine="h5netcdf")
    with pytest.raises(InputError, match="no run of a fabric"):
        runs.read_run(tmp_path / "other.nc")
