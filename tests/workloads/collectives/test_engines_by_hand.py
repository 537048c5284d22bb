"""Results of either engine, where runs stand in."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fluidcc.engines.flow_level import run as flow_run
from fluidcc.engines.flow_level.transfers import DEPARTURE
from fluidcc.engines.flow_level.transfers import RECEIPT as FLUID_RECEIPT
from fluidcc.engines.packet import build, dependents, record
from fluidcc.engines.packet import run as packet_run
from fluidcc.engines.packet.dependents import LEFT, RECEIPT
from fluidcc.engines.packet.layout import NEVER, PS
from fluidcc.errors import InputError
from fluidcc.workloads.collectives import engines


def test_packets_are_told_in_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A flow that did not begin, end or come has no number; only ports that paused are told."""
    clock = (2.0**k for k in itertools.count())
    monkeypatch.setattr(engines, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    ports = [SimpleNamespace(source=source, target=target) for source, target in ((0, 4), (4, 0), (1, 4))]
    plan = SimpleNamespace(topology=SimpleNamespace(ports=ports), times=SimpleNamespace(interval=2 * PS))
    asked: list[Any] = []
    monkeypatch.setattr(build, "prepare", lambda *given, **options: asked.append((given, options)) or plan)
    monkeypatch.setattr(packet_run, "warm_up", lambda given: asked.append(given))
    ended = np.full((3, max(LEFT, RECEIPT) + 1), -1)
    ended[:, LEFT], ended[:, RECEIPT] = [0, 3 * PS, -1], [PS // 2, -1, 4 * PS]
    counts = {"pauses": 11, "dropped": 12, "trimmed": 13, "retransmissions": 14, "delivered": 15, "events": 16}
    sim = SimpleNamespace(
        core=[SimpleNamespace(sampled=3, **counts)],
        flows={"ended": ended, "finish": np.array([0, PS, -1])},
        ports={"pauses": np.array([2, 0, 1])},
        link_samples=np.arange(40.0).reshape(5, 4, 2),
    )
    monkeypatch.setattr(dependents, "began", lambda given: np.array([0, NEVER, PS // 4]))
    monkeypatch.setattr(record, "paused_for", lambda given: np.array([0.5, 9.0, 1.5]) * PS)
    reports: list[float] = []

    def execute(given: Any, seed: int, report: Any) -> Any:
        assert (given, seed) == (plan, 7)
        for share in (0.0, 0.5, 1.0):
            report(share)
        return sim, 0.75

    monkeypatch.setattr(packet_run, "execute", execute)
    laid: Any = SimpleNamespace(scenario="scenario")
    found = engines.packets(laid, 30.0, seed=7, interval=2.0, expected=10.0, report=reports.append)
    ((scenario, times, first), options), warmed = asked
    assert (scenario, first, options, warmed) == ("scenario", 0, {"links_only": True}, plan)
    assert times == build.Times(30 * PS, 0, 30 * PS, 2 * PS)
    np.testing.assert_array_equal(found.began, [0.0, np.nan, 0.25])
    np.testing.assert_array_equal(found.finished, [0.0, 1.0, np.nan])
    np.testing.assert_array_equal(found.left, [0.0, 3.0, np.nan])
    np.testing.assert_array_equal(found.arrived, [0.5, np.nan, 4.0])
    assert found.times.tolist() == [0.0, 2.0, 4.0]
    np.testing.assert_array_equal(found.sent, sim.link_samples[:3, :, 1])
    assert found.pauses == {"0->4": (2, 0.5), "1->4": (1, 1.5)}
    assert found.numbers == {
        "pfc_pauses": 11,
        "drops": 12,
        "trims": 13,
        "retransmissions": 14,
        "packets": 15,
        "events": 16,
        "setup_s": 1.0,
        "compile_s": 2.0,
        "wall_s": 0.75,
    }
    assert reports == [0.0, 15 / 25, 30 / 40]
    engines.packets(laid, 30.0, seed=7, interval=1e-30)  # nobody is told
    assert asked[-2][0][1].interval == 1


def test_rates_become_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sum of loads by links' rates; loads behind the links' own are of others."""
    after = SimpleNamespace(behind=np.array([True, False]), size="size", delay="delay", after="after", after_at="at")
    links = [SimpleNamespace(rate="8"), SimpleNamespace(rate=100)]
    laid: Any = SimpleNamespace(
        graph=after, connection="connection", connections=SimpleNamespace(links=links, name="connections")
    )
    made: list[Any] = []
    monkeypatch.setattr("fluidcc.engines.flow_level.transfers.Transfers", lambda *given: given)
    numbers = {"pauses": 5, "paused": {"0->4": (2, 0.5)}, "steps": 6, "setup_s": 7.0, "compile_s": 8.0, "wall_s": 9.0}
    times = SimpleNamespace(
        load=np.array([[0.5, 0.25, 9.0], [1.0, 0.0, 9.0], [0.0, 0.5, 9.0]]),
        interval=2.0,
        start="start",
        answered="answered",
        left="left",
        received="received",
        numbers=numbers,
    )
    reports: list[float] = []

    def flow_times(*given: Any, report: Any, **options: Any) -> Any:
        made.append((given, options))
        assert engines._COMPILING.locked()
        for share in (0.25, 0.5):
            report(share)
            assert not engines._COMPILING.locked()
        return times

    monkeypatch.setattr(flow_run, "flow_times", flow_times)
    found = engines.fluid(laid, 30.0, seed=7, interval=1.0, report=reports.append)
    ((connections, transfers), options) = made[0]
    assert connections is laid.connections
    assert transfers[:5] == ("connection", "size", "delay", "after", "at")
    assert transfers[5].tolist() == [DEPARTURE, FLUID_RECEIPT]
    assert options == {"model": "dynamics", "until": 30.0, "seed": 7}
    assert [found.began, found.finished, found.left, found.arrived] == ["start", "answered", "left", "received"]
    assert found.times.tolist() == [0.0, 2.0, 4.0, 6.0]
    assert found.sent.tolist() == [[0, 0], [8, 50], [24, 50], [24, 150]]
    assert found.pauses == numbers["paused"]
    rest = {"steps": 6, "setup_s": 7.0, "compile_s": 8.0, "wall_s": 9.0}
    assert found.numbers == {"pfc_pauses": 5, "drops": 0, "trims": 0, "retransmissions": 0, **rest}
    assert reports == [0.25, 0.5]
    engines.fluid(laid, 30.0, seed=7, interval=1.0)  # nobody is told
    assert not engines._COMPILING.locked()


def test_engines_have_names() -> None:
    assert [engines.engine_of(name) for name in ("packet", "fluid")] == [engines.packets, engines.fluid]
    for name in ("packets", None, 3):
        with pytest.raises(InputError, match=r"engine: .*; write packet or fluid"):
            engines.engine_of(name)
