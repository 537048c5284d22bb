"""Judgements of runs, without running: engines and solvers are stood in for by numbers that are written here."""

from __future__ import annotations

import dataclasses
import importlib
from types import SimpleNamespace
from typing import Any, cast

import pytest

import fluidcc as fc
from fluidcc.errors import InputError
from fluidcc.operators import audit as audits
from fluidcc.operators import behaviour, checks
from fluidcc.operators.behaviour import Reach, reach
from fluidcc.operators.finding import Finding, set_fields
from fluidcc.units import Rate
from tests.operators.test_capacity import fields, made
from tests.operators.test_checks_by_hand import port, ran

NOWHERE: Any = None
RED = fc.RED(10e3, 30e3, 0.05)


# -- fixed points ------------------------------------------------------------------------------------------------------


def reached(
    monkeypatch: pytest.MonkeyPatch,
    end: SimpleNamespace | None,
    queue: tuple[float | None, float] = (0.0, 1e9),
    exists: bool = True,
    stable: bool | None = True,
    root: complex | None = None,
) -> Reach:
    """Reach of a fixed point at 100 KB by a run that ends so; None: that is refused."""

    def cycle(*_: object, **__: object) -> SimpleNamespace:
        if end is None:
            raise InputError("the run is too short")
        return end

    local = SimpleNamespace(stable=stable, rightmost_root=root)
    for module, stand_in in (("limit_cycle", cycle), ("stability", lambda scenario: local)):
        monkeypatch.setattr(importlib.import_module(f"fluidcc.theory.control.{module}"), module, stand_in)
    found = SimpleNamespace(links=[{"queue_bytes": 100e3}], exists=exists)
    return reach(NOWHERE, cast(Any, found), {"p5": queue[0], "p95": queue[1]})


def ended(kind: str, low: float = 0.0, high: float = 0.0, mean: float = 0.0) -> SimpleNamespace:
    return SimpleNamespace(kind=kind, low=low, high=high, mean=mean)


@pytest.mark.parametrize(
    ("end", "there", "says"),
    [
        (ended("equilibrium", mean=101e3), True, "reaches it"),
        (ended("equilibrium", mean=99e3), True, "reaches it"),
        (ended("equilibrium", mean=101_001), False, "does not reach it in the averaged fluid: it ends at 101KB"),
        (ended("equilibrium", mean=98_999), False, "does not reach it in the averaged fluid: it ends at 99KB"),
        (
            ended("cycle", 99e3, 101e3),
            False,
            "does not reach it in the averaged fluid: the queue stays between 99KB and 101KB",
        ),
        (ended("growing", 99e3, 101e3), False, "stays between"),
        (ended("irregular", 95e3, 105e3), None, "still on its way after 500ms, the queue between 95KB and 105KB"),
        (ended("irregular", 95e3, 105_001), False, "stays between"),
        (ended("irregular", 0.0, 10e3), None, "still on its way"),
        (ended("decaying", 0.0, 1e6), None, "still on its way"),
        (ended("unsettled", 0.0, 1e6), None, "still on its way"),
        (None, None, "whether a start at line rate reaches it is not known"),
    ],
)
def test_the_end_of_a_run_is_at_the_fixed_point_within_a_hundredth_of_it(
    end: SimpleNamespace | None, there: bool | None, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An irregular queue over more than a tenth of the fixed point's 100 KB has not settled there."""
    found = reached(monkeypatch, end)
    assert found.from_line_rate is there
    assert says in found.words


@pytest.mark.parametrize(
    ("queue", "near"),
    [
        ((99e3, 101e3), True),
        ((98_999, 101e3), False),
        ((99e3, 101_001), False),
        ((98e3, 98.5e3), False),
        ((102e3, 103e3), False),
        ((None, 100e3), False),
    ],
)
def test_percentiles_within_a_hundredth_of_the_fixed_point_need_no_other_run(
    queue: tuple[float | None, float], near: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = reached(monkeypatch, ended("cycle", 1e3, 2e3), queue)
    assert found.from_line_rate is near
    assert ("stays between 1KB and 2KB" in found.words) == (not near)


def test_stability_is_told_with_its_root_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    end, there = ended("equilibrium", mean=100e3), "a start at line rate reaches it"
    assert reached(monkeypatch, end, root=-20 + 3j).words == f"it is stable (rightmost root -20 /s); {there}"
    assert reached(monkeypatch, end, stable=False, root=20 + 3j).words.startswith("it is unstable (rightmost root 20")
    assert reached(monkeypatch, end, stable=True, root=None).words == there
    assert reached(monkeypatch, end, stable=None, root=-20 + 3j).words == there
    none = reached(monkeypatch, end, exists=False, root=-20 + 3j)
    assert (none.from_line_rate, none.words) == (None, "it is stable (rightmost root -20 /s)")


@pytest.mark.parametrize(
    ("p", "percent"), [(0.052, 6), (0.0501, 6), (0.0599, 6), (0.061, 7), (0.9899, 99), (0.995, 100), (2.5, 100)]
)
def test_the_next_whole_percent_is_what_a_missing_fixed_point_needs(
    p: float, percent: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pmax 5 % is too little for p*; the next whole percent is not, unless it would be above 100."""
    monkeypatch.setattr(checks, "_most_flows", lambda scenario, pmax: 6.25)
    solved = SimpleNamespace(as_dict=lambda: {"marking_probability": p, "queue_bytes": 1e6}, exists=False)
    (found,) = checks.fixed_point(made(10e3, 30e3), RED, cast(Any, solved), NOWHERE, 8)
    assert (found.severity, found.what) == ("warn", "no fixed point with 8 flows")
    assert f"raise the drop probability to {percent} %" in found.suggest
    assert fields(found) == {"green_drop_probability": str(percent)}
    assert "reached at 6.2 flows" in found.why
    step = fc.RED(10e3, 10e3, 0.05)
    assert not list(checks.fixed_point(made(10e3, 10e3), step, cast(Any, solved), NOWHERE, 8))


def test_flows_that_mark_nothing_do_not_overload_the_port() -> None:
    for exists in (True, False):
        solved = SimpleNamespace(
            as_dict=lambda: {"marking_probability": 0.0, "queue_bytes": 0.0}, exists=exists, cycle=None
        )
        (found,) = checks.fixed_point(made(10e3, 30e3), RED, cast(Any, solved), NOWHERE, 8)
        assert (found.severity, found.what) == ("ok", "the port is not overloaded")


def test_the_number_of_flows_at_which_pmax_is_reached_is_between_one_and_those_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With p* of 1 % for each flow beyond the first, 5 % are reached at six; of 0 %, at the first."""

    def solved(scenario: fc.Scenario) -> SimpleNamespace:
        (flow,) = scenario.flows
        assert float(flow.multiplicity) > 1  # fewer than one do not load the link
        return SimpleNamespace(links=[{"marking_probability": 0.01 * (float(flow.multiplicity) - 1)}])

    monkeypatch.setattr(importlib.import_module("fluidcc.theory.control.equilibrium"), "equilibrium", solved)
    scenario = fc.incast(1, multiplicity=16.0)
    assert checks._most_flows(scenario, 0.05) == pytest.approx(6.0)
    assert checks._most_flows(scenario, 0.1) == pytest.approx(11.0)
    assert checks._most_flows(scenario, 0.0) == pytest.approx(1.0)


# -- what flows do late ------------------------------------------------------------------------------------------------


def summary(k: float, **more: Any) -> dict[str, Any]:
    queue = {"mean": 10.0 * k, "p5": 5.0 * k, "p95": 20.0 * k}
    return {"utilisation": k / 10, "jain": 1.0, "queue_bytes": queue, "window_s": [0.05, 0.1]} | more


def looked(
    monkeypatch: pytest.MonkeyPatch, flows: int = 8, mean: float = 0.0, pfc: object = True, **more: Any
) -> dict[str, Any]:
    """Measurement of runs with numbers of their seeds; a first look has this mean queue, at a buffer of 100 bytes."""

    def simulate(scenario: object, until: str, *, seed: int, engine: str, **_: object) -> SimpleNamespace:
        assert engine == "hybrid"
        first = summary(0.0, queue_bytes={"mean": mean, "p5": mean, "p95": mean}, window_s=[0.0025, 0.005])
        return SimpleNamespace(summary=first if until == behaviour.LOOK[1] else summary(seed, **more))

    monkeypatch.setattr(behaviour, "simulate", simulate)
    scenario = SimpleNamespace(flows=[None] * flows, pfc=pfc, buffer=100.0)
    return behaviour.measured(lambda _: cast(Any, scenario), summary(5.0), "Ethernet0")


def test_means_over_seeds_have_their_standard_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mean of 1 to 8 is 4.5 and their variance 6: its standard error is that of 6 over 8."""
    found = looked(monkeypatch, above_xoff=0.25)
    assert (found["engine"], found["seeds"], found["window_s"]) == ("hybrid", 8, [0.05, 0.1])
    assert (found["utilisation"], found["utilisation_se"]) == pytest.approx((0.45, 0.75**0.5 / 10))
    assert (found["queue_bytes"], found["queue_mean_se"]) == (
        {"mean": 45.0, "p5": 22.5, "p95": 90.0},
        pytest.approx(75**0.5),
    )
    assert (found["jain"], found["above_xoff"]) == (1.0, 0.25)
    unknown = looked(monkeypatch, jain=None, utilisation=None)
    assert (unknown["jain"], unknown["utilisation"], unknown["utilisation_se"]) == (None, None, None)
    assert unknown["above_xoff"] is None
    assert unknown["queue_mean_se"] == pytest.approx(75**0.5)


def test_each_run_has_starts_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Starts are drawn by the run's seed, within 20 us; with those of one draw all runs may go one way by luck."""
    begun = [behaviour.together(port(), fc.DCQCN(), 4, 1e-6, 1000.0, seed) for seed in (1, 2, 2)]
    starts = [[float(flow.start) for flow in scenario.flows] for scenario in begun]
    assert starts[0] != starts[1] == starts[2]
    assert all(0.0 <= start <= 20e-6 for start in starts[0] + starts[1])
    asked: list[tuple[int, int]] = []

    def simulate(seed_of_scenario: Any, *_: object, seed: int, **__: object) -> SimpleNamespace:
        asked.append((seed_of_scenario.drawn, seed))
        return SimpleNamespace(summary=summary(1.0))

    monkeypatch.setattr(behaviour, "simulate", simulate)
    drawn = lambda seed: SimpleNamespace(flows=[None], pfc=None, buffer=1.0, drawn=seed)  # noqa: E731
    behaviour.measured(cast(Any, drawn), summary(1.0), "Ethernet0")
    assert sorted(asked) == sorted([(1, 1), *((seed, seed) for seed in range(1, 9))])


def test_runs_whose_queues_never_meet_are_two_ways() -> None:
    """Apart by half as much again and ten packets of 4158 B; means are of either kind alone, the shorter first."""

    def run(low: float, high: float, used: float = 1.0) -> dict[str, Any]:
        return {"utilisation": used, "queue_bytes": {"mean": (low + high) / 2, "p5": low, "p95": high}}

    bound = 1.5 * 30e3 + 41580
    short, long = [run(10e3, 30e3, 0.9), run(0.0, 20e3, 0.7)], run(bound + 1, 200e3)
    low, high = behaviour.two_ways([short[0], long, short[1]])
    assert (low["runs"], low["utilisation"], low["queue_bytes"]) == (
        2,
        pytest.approx(0.8),
        {"mean": 15e3, "p5": 5e3, "p95": 25e3},
    )
    assert (high["runs"], high["queue_bytes"]["p95"]) == (1, 200e3)
    assert behaviour.two_ways([*short, run(bound, 200e3)]) == []
    assert behaviour.two_ways([*short, long, run(25e3, 150e3)]) == []  # one between both
    assert (
        behaviour.two_ways([short[0], {"utilisation": None, "queue_bytes": dict.fromkeys(("mean", "p5", "p95"))}]) == []
    )


def test_a_first_look_is_enough_where_the_queue_is_beyond_four_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    found = looked(monkeypatch, mean=401.0)
    assert (found["seeds"], found["window_s"], found["utilisation_se"]) == (1, [0.0025, 0.005], None)
    assert (found["queue_bytes"]["mean"], found["queue_mean_se"]) == (401.0, None)
    assert looked(monkeypatch, mean=400.0)["seeds"] == 8
    assert looked(monkeypatch, mean=401.0, pfc=None)["seeds"] == 8


def test_more_flows_than_the_hybrid_engine_runs_have_the_fluids_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    assert looked(monkeypatch, flows=512)["engine"] == "hybrid"
    found = looked(monkeypatch, flows=513)
    assert (found["engine"], found["seeds"], found["utilisation"], found["utilisation_se"]) == (
        "fluid",
        None,
        0.5,
        None,
    )
    assert found["queue_bytes"] == {"mean": 50.0, "p5": 25.0, "p95": 100.0}


@pytest.mark.parametrize(
    ("more", "alpha", "xoff", "buffer"),
    [
        ({"dynamic_th": 1.0}, 2.0, None, 9e6),
        ({"dynamic_th": 6.0}, 64.0, None, 9e6),
        ({"dynamic_th": 7.0}, 64.0, None, 9e6),  # the most that runs take
        ({"dynamic_th": 1.0, "static_th": 5e3}, None, 5e3, 9e6),
    ],
)
def test_pause_is_that_of_the_switch(
    more: dict[str, Any], alpha: float | None, xoff: float | None, buffer: float
) -> None:
    scenario = fc.incast(2)
    framed = behaviour.with_buffers(scenario, made(None, None, lossless=True, buffer_size=buffer, **more))
    assert framed.buffer == buffer
    assert framed.pfc is not None
    if alpha is not None:
        assert framed.pfc.alpha == alpha
    if xoff is not None:
        assert framed.pfc.xoff == xoff


def test_a_port_that_is_not_lossless_has_a_buffer_and_no_pause() -> None:
    scenario = fc.incast(2)
    for nothing in (None, made(None, None, lossless=True, dynamic_th=1.0)):  # a file without buffers
        assert behaviour.with_buffers(scenario, nothing) is scenario
    for lossless, size, buffer in ((False, 9e6, 9e6), (True, 0.0, 1.0)):
        port = made(None, None, lossless=lossless, buffer_size=size, dynamic_th=1.0)
        framed = behaviour.with_buffers(scenario, port)
        assert (framed.pfc, framed.buffer) == (scenario.pfc, buffer)


def test_a_mean_over_seeds_that_one_lacks_is_none() -> None:
    runs = [{"jain": value, "queue_bytes": {"mean": 1.0}} for value in (1.0, 2.0, 6.0)]
    assert behaviour.means(runs, "jain") == {"jain": 3.0, "queue_bytes": {"mean": 1.0}}
    assert behaviour.means([*runs, {"jain": None, "queue_bytes": {"mean": None}}], "jain") == {
        "jain": None,
        "queue_bytes": {"mean": None},
    }


# -- what an audit makes of them ---------------------------------------------------------------------------------------


def late(packets: dict[str, Any] | None, engine: str = "hybrid", fluid: tuple[float, float] = (0.0, 1e3)) -> list[str]:
    """Findings of a hybrid run whose queue is from 2 to 9 MB, beside a fluid's."""
    behaves = ran(1.0, 2e6, 9e6, engine=engine) | {"packets": packets}
    port = made(10e3, 30e3, buffer_size=20e6)
    both = audits._Runs(NOWHERE, NOWHERE, NOWHERE, behaves, 1062.0, 1000.0, {"p5": fluid[0], "p95": fluid[1]})
    return [each.what for each in audits._late(port, 8, both)]


def test_engines_are_compared_where_no_packets_decide() -> None:
    apart = "the engines contradict each other"
    assert late(None) == ["the flows settle", apart]
    assert late(None, fluid=(0.0, 3e6)) == ["the flows settle"]
    assert late(None, engine="fluid") == ["the flows settle"]
    same = ran(1.0, 2e6, 9e6, drops=0.0, pfc_pauses=0.0)
    assert late(same) == ["the flows settle", "packet runs agree"]


def test_findings_are_counted_bad_before_warnings() -> None:
    found = [Finding(severity, "x", "y") for severity in ("ok", "warn", "bad", "warn", "ok", "ok")]
    assert audits._counts(found) == (-1, -2)
    assert sorted([(-1, 0), (0, -9), audits._counts(found)]) == [(-1, -2), (-1, 0), (0, -9)]


def test_settings_have_their_units_in_their_names() -> None:
    names = ["rate", "kmin", "buffer_size", "xon", "pmax", "ports"]
    assert [audits._key(name) for name in names] == [
        "rate_bytes_per_s", "kmin_bytes", "buffer_bytes", "xon_bytes", "pmax", "ports",
    ]  # fmt: skip


def test_a_change_of_a_port_that_shares_its_entry_is_left_to_the_user() -> None:
    config: Any = SimpleNamespace(table=lambda name, needed: {"Ethernet0,Ethernet1": {}, "Ethernet4": {}})
    ports = ("Ethernet0", "Ethernet1", "Ethernet4", "Ethernet12")
    applied = tuple(change for port in ports for change in set_fields("PORT_QOS_MAP", port, pfc_enable="3"))
    kept = audits._listed_alone(config, Finding("warn", "x", "y", "z", applied)).apply
    assert [change.path.split("/")[2] for change in kept] == ["Ethernet4", "Ethernet12"]


# -- of several packet sizes the worst ---------------------------------------------------------------------------------


def of_size(payload: float, used: float | None, packets: dict[str, Any] | None = None) -> Any:
    behaves = {"utilisation": used, "packets": packets}
    return audits._Runs(NOWHERE, NOWHERE, NOWHERE, behaves, payload + 62, payload, {})


@pytest.mark.parametrize(
    ("first", "second", "worst"),
    [
        ((0.9, None), (0.8, None), 2.0),
        ((0.8, None), (0.9, None), 1.0),
        ((None, None), (0.9, None), 2.0),  # what is not known is taken for all of the link
        ((0.8, {"utilisation": 1.0, "drops": 0.0}), (0.9, {"utilisation": 0.95, "drops": 0.0}), 2.0),
        ((0.8, {"utilisation": 0.5, "drops": 1.0}), (0.9, {"utilisation": 1.0, "drops": 2.0}), 2.0),
        ((0.8, {"utilisation": 1.0, "drops": 2.0}), (0.9, {"utilisation": 0.5, "drops": 2.0}), 2.0),
        ((0.8, {"reason": "no"}), (0.9, {"reason": "no"}), 1.0),
    ],
)
def test_the_packet_size_with_most_drops_and_then_the_least_used_link_is_the_worst(
    first: Any, second: Any, worst: float
) -> None:
    """Utilisation is that of packets, where they ran."""
    runs = [of_size(1.0, *first), of_size(2.0, *second)]
    found = audits._worst(runs)
    assert found.payload == found.behaviour["packet_size_bytes"] == worst
    assert [each["packet_size_bytes"] for each in found.behaviour["other_sizes"]] == [3.0 - worst]


def test_the_first_port_is_the_worst_as_read_whatever_runs_say() -> None:
    """The command line's others take it without runs: of equals the first; the rest is ordered by runs too."""
    found: Any = [((2,), (1,), "a"), ((1,), (5,), "b"), ((1,), (3,), "c"), ((1,), (4,), "d"), ((2,), (0,), "e")]
    assert audits._ordered(found) == ["b", "c", "d", "e", "a"]


def test_a_switch_of_unknown_buffer_has_the_usual_one() -> None:
    """Without any, a queue of packets takes all memory; a known one stays, and the user's."""
    known: Any = SimpleNamespace(buffer_size=22e6, pauses=True)
    unknown: Any = SimpleNamespace(buffer_size=None)
    plain = fc.incast(2)
    found, note = behaviour.with_usual_buffers(plain, unknown)
    assert (found.buffer, found.pfc) == (32e6, fc.PFC(alpha=1 / 8))
    assert "32MB with PFC" in note
    assert behaviour.with_usual_buffers(plain, known) == (plain, "")
    assert behaviour.with_usual_buffers(plain, None) == (plain, "")
    mine = dataclasses.replace(plain, buffer=1e6)
    assert behaviour.with_usual_buffers(mine, unknown) == (mine, "")
    assert "no file says" in behaviour.buffer_in_words(unknown)
    assert behaviour.buffer_in_words(known) == "the switch's buffer and PFC"


def test_an_audit_of_an_unknown_buffer_runs_with_the_usual_one() -> None:
    """Its flows too: without a buffer a queue of gigabytes was said to be what packets have."""
    port: Any = SimpleNamespace(
        buffer_size=None, lossless=True, rate=Rate(25e9), red=fc.RED("320KB", "1280KB", "15%"),
    )  # fmt: skip
    made = behaviour.together(port, fc.DCQCN(), 4, 1e-6, 4096.0, 1)
    assert (made.buffer, made.pfc) == (32e6, fc.PFC(alpha=1 / 8))
