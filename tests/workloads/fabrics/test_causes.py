"""Collisions on a path and a slow host, beside times that are known without a simulator."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import pytest

import fluidcc as fc
from fluidcc.cli.app import run
from fluidcc.units import Rate
from fluidcc.workloads.fabrics import cause as module
from fluidcc.workloads.fabrics.cause import PATHS, SPEEDS, Cause, causes, part

SIZE = 2_000_000.0
PLAIN: dict[str, Any] = {**fc.preset("none", "hpcc-eval").options()}
SENDS = {"flows": [(0, 2, 0.0, SIZE), (1, 3, 0.0, SIZE)]}


def collide(seed: int) -> bool:
    """Check by the hash alone whether both flows take one of the two spines."""
    shape = fc.fabrics.named_topology("leaf-spine:2x2x2", fabric_rate="100Gbps")
    first, second = (
        flow.path[0] for flow in shape.scenario(SENDS["flows"], scheme=fc.NoControl(), ecmp_seed=seed).flows
    )
    return first == second


def test_two_flows_that_meet_on_an_uplink_take_half_the_time_apart() -> None:
    """A hundred Gb/s for two, or for each; where the hash keeps them apart there is nothing to gain."""
    shape = fc.fabrics.named_topology("leaf-spine:2x2x2", fabric_rate="100Gbps")
    meet = [seed for seed in range(1, 30) if collide(seed)][:3]
    apart = [seed for seed in range(1, 30) if not collide(seed)][:3]
    assert len(meet) == len(apart) == 3
    (found,) = causes(PLAIN, shape, seeds=meet, **SENDS)
    assert found.name == PATHS
    assert found.ratios["p99_large"]["mean"] == pytest.approx(0.5, abs=0.05)
    assert part(found) == pytest.approx(0.5, abs=0.05)
    lossy = {**PLAIN, "pfc": None, "loss_recovery": "gbn"}  # which would send again what only comes late
    (found,) = causes(lossy, shape, seeds=meet, **SENDS)
    assert part(found) == pytest.approx(0.5, abs=0.05)
    (found,) = causes(PLAIN, shape, seeds=apart, **SENDS)
    assert found.ratios["p99_large"]["mean"] == pytest.approx(1.0, abs=0.05)
    assert part(found) < 0.05


def with_slow(*hosts: int) -> Any:
    """One switch with four hosts, some at a quarter of the speed."""
    shape = fc.fabrics.named_topology("leaf-spine:1x1x4")
    cables = [
        dataclasses.replace(cable, rate=Rate(cable.rate / 4)) if set(hosts) & set(cable.ends) else cable
        for cable in shape.cables
    ]
    return dataclasses.replace(shape, cables=tuple(cables))


def test_a_slow_host_is_named_with_what_it_costs() -> None:
    """Its flow takes four times as long; the other's is as before. Rates of one speed are no cause."""
    found = {each.name: each for each in causes(PLAIN, with_slow(3), seeds=3, flows=[(0, 3, 0.0, SIZE)])}
    assert found[SPEEDS].says == "with host 3 at 100Gbps as the others, not at 25Gbps"
    assert found[SPEEDS].ratios["p99_large"]["mean"] == pytest.approx(0.25, abs=0.02)
    several = {each.name: each for each in causes(PLAIN, with_slow(1, 3), seeds=3, flows=[(0, 2, 0.0, SIZE)])}
    assert several[SPEEDS].says == "with all hosts at 100Gbps, not 2 at 25Gbps"
    assert several[SPEEDS].ratios["p99_large"]["mean"] == pytest.approx(1.0, abs=1e-6)
    assert part(several[SPEEDS]) == 0.0
    even = causes(PLAIN, fc.fabrics.named_topology("leaf-spine:2x2x2", fabric_rate="100Gbps"), seeds=1, **SENDS)
    assert [each.name for each in even] == [PATHS]


def test_the_faster_hosts_are_sent_the_same_flows() -> None:
    """A load is of the hosts' mean rate, which would be more with the faster ones."""
    sends = {"workload": "hadoop", "load": 0.3, "until": 30e-6}
    found = {each.name: each for each in causes(PLAIN, with_slow(3), seeds=3, **sends)}
    assert found[SPEEDS].ratios["p50"]["mean"] < 1.05
    assert math.isfinite(found[SPEEDS].ratios["p99_small"]["mean"])


def test_a_part_is_the_largest_fall_that_is_sure() -> None:
    ratios = {
        "p99": {"mean": 0.9, "low": 0.85, "high": 0.95},
        "p99_large": {"mean": 0.4, "low": 0.1, "high": 1.6},
        "p50": {"mean": 0.2, "low": 0.1, "high": 0.3},
        "p99_small": {"mean": math.nan, "low": math.nan, "high": math.nan},
    }
    assert part(Cause(PATHS, "", ratios)) == pytest.approx(0.1)


def test_the_command_says_it(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The first scheme and the same flows are asked about; in JSON too."""
    asked: list[Any] = []

    def stand_in(options: Any, topology: Any, **sent: Any) -> list[Cause]:
        asked.append((options["scheme"].name, len(topology.hosts), sent["workload"], sent["seeds"], sent.get("rate")))
        ratios = {name: {"mean": 0.5, "low": 0.4, "high": 0.6} for name in (*found_in_words, "goodput")}
        return [Cause(PATHS, "with paths apart", ratios)]

    found_in_words = ("p50", "p99", "p99_small", "p99_large", "p50_largest", "queue_p99")
    monkeypatch.setattr(module, "causes", stand_in)
    words = [
        "fabric",
        "none",
        "--topology",
        "leaf-spine:2x1x2",
        "--workload",
        "hadoop",
        "--until",
        "50us",
        "--causes",
        "--rate",
        "25Gbps",
    ]
    assert run(words) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "with paths apart: better: median slowdown x0.5 (0.4–0.6)" in told
    assert told.endswith("give --seeds 3 or more to tell")
    assert run([*words, "--seeds", "3"]) == 0
    assert "its part of a tail is 50% with this setting" in " ".join(capsys.readouterr().out.split())
    assert run([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["causes"][0]["ratios"]["p99"]["mean"] == 0.5
    assert [each[:3] for each in asked] == [("none", 4, "hadoop")] * 3
    assert [each[3:] for each in asked] == [(1, None), (3, None), (1, None)]
