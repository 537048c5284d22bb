"""Branches of long-run behaviour; an independent integrator had found DCQCN's. Tolerances say where they come from."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.engines.fluid.engine import Continued
from fluidcc.engines.fluid.network import network_of
from fluidcc.engines.fluid.plan import plan_of
from fluidcc.errors import InputError
from fluidcc.scenario.model import resolve
from fluidcc.studies.sweeps.grid import grid_of
from fluidcc.studies.sweeps.hysteresis import _judged, branches_of

KB = 1e3
STEP = 2e-3  # queues that pass Kmax, where marking jumps: some 1e-3 at steps of 1 us (docs: DCQCN, Numbers)


def flows(n: Any) -> fc.Scenario:
    return fc.incast(1, multiplicity=n)


# -- DCQCN at its paper's settings: bistable with 9 to 14 flows ----------------------------------------------------


@pytest.fixture(scope="module")
def two() -> fc.studies.Branches:
    return fc.studies.bistability(flows, over={"n": range(7, 17)})


def test_two_starts_find_both(two: fc.studies.Branches) -> None:
    assert two.n.values[two.bistable.values].tolist() == [9, 10, 11, 12, 13, 14]
    given, fixed_point = (two.sel(branch=name) for name in ("given", "from equilibrium"))
    assert given.kind.values.tolist() == ["equilibrium"] * 8 + ["cycle"] * 2
    assert fixed_point.kind.values.tolist() == ["equilibrium"] * 2 + ["cycle"] * 8
    ten = fixed_point.sel(n=10)
    assert float(ten["queue_bytes.min"]) == 0
    assert float(ten["queue_bytes.max"]) / KB == pytest.approx(218, abs=0.5)
    assert float(given.sel(n=10)["queue_bytes.mean"]) / KB == pytest.approx(122.6, abs=0.05)


def test_a_run_of_its_own_finds_the_same(two: fc.studies.Branches) -> None:
    make = fc.studies.from_equilibrium(flows, {"n": [10]})
    alone = fc.limit_cycle(make(n=10.0), estimate_error=False)
    there = two.sel(branch="from equilibrium", n=10)
    assert float(there.peak_to_peak) == pytest.approx(alone.peak_to_peak, rel=STEP)
    assert str(there.kind) == alone.kind or str(there.kind.values) == alone.kind


def test_starts_are_the_equilibria_of_their_points(monkeypatch: pytest.MonkeyPatch) -> None:
    """Made-up equilibria have N GB/s for N flows; one that oscillates is no start."""
    module, shown = importlib.import_module("fluidcc.studies.sweeps.hysteresis"), list[float]()

    def found(scenario: fc.Scenario) -> Any:
        n = scenario.flows[0].multiplicity
        cycle = SimpleNamespace(kind="cycle" if n == 9 else "equilibrium")
        return SimpleNamespace(cycle=cycle, flows=[{"rate_bytes_per_s": n * 1e9, "alpha": n / 100}])

    monkeypatch.setattr(module, "equilibrium", found)
    monkeypatch.setattr(module, "Bar", lambda *_: contextlib.nullcontext(shown.append))
    make = fc.studies.from_equilibrium(flows, {"n": [2, 5, 4, 3]})
    assert shown == [0.25, 0.5, 0.75, 1.0]
    for n in (3.0, 5.0):
        (flow,) = make(n=n).flows
        assert (flow.initial_rate, flow.scheme.initial_alpha) == pytest.approx((n * 1e9, n / 100), rel=1e-6)
    with pytest.raises(InputError, match="it oscillates"):
        fc.studies.from_equilibrium(flows, {"n": [2, 9]})


@pytest.mark.slow
def test_a_run_that_moves_finds_the_same() -> None:
    moved = fc.studies.hysteresis(flows, over={"n": [8, 9, 11.5, 14, 15]}, dwell="80ms")
    assert moved.bistable.values.tolist() == [False, True, True, True, False]
    assert moved.sel(branch="up").kind.values[-1] == "cycle"
    assert (moved.sel(branch="up").peak_to_peak.values[:-1] < 1 * KB).all()
    assert (moved.sel(branch="down").peak_to_peak.values[1:] > 200 * KB).all()


def test_a_flow_more_at_once_is_a_kick() -> None:
    """From 8 flows at equilibrium to 9, a tenth more traffic at once: what is bistable shows no hysteresis."""
    moved = fc.studies.hysteresis(flows, over={"n": [8, 9]}, dwell="80ms", ramp=0, before="200ms")
    assert moved.sel(branch="up", n=9).kind == "cycle"
    assert not moved.bistable.any()


@pytest.mark.slow
def test_no_hysteresis_where_the_cycle_grows_from_nothing() -> None:
    """Two flows leave their equilibrium at tau* = 85.57 us: up and down agree on both sides."""
    moved = fc.studies.hysteresis(
        lambda tau: fc.incast(1, multiplicity=2, feedback_delay=tau),
        over={"tau": ["70us", "110us"]},
        dwell="300ms",
        ramp="20ms",
    )
    assert moved.sel(branch="up").kind.values.tolist() == ["equilibrium", "cycle"]
    assert moved.sel(branch="down").kind.values.tolist() == ["equilibrium", "cycle"]
    assert not moved.bistable.any()
    up, down = (float(moved.sel(branch=name).peak_to_peak[1]) for name in ("up", "down"))
    assert up == pytest.approx(down, rel=STEP)


@pytest.mark.parametrize(
    ("name", "make", "values"),
    [
        ("kmax", lambda kmax: fc.incast(1, multiplicity=10, marking=fc.RED("5KB", kmax, "1%")), ["200KB", "150KB"]),
        ("g", lambda g: fc.incast(1, multiplicity=10, scheme=fc.DCQCN(g=g)), ["1/256", "1/64"]),
        ("rate", lambda rate: fc.incast(1, multiplicity=4, rate=rate), ["40Gbps", "50Gbps"]),
    ],
)
def test_whatever_is_a_number_moves(name: str, make: Any, values: list[str]) -> None:
    moved = fc.studies.hysteresis(make, over={name: values}, dwell="20ms")
    assert np.isfinite(moved.peak_to_peak.values).all()
    assert moved.branch.values.tolist() == (["up", "down"] if moved[name][1] > moved[name][0] else ["down", "up"])


# -- a run that goes on ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["dcqcn", "dctcp"])
def test_going_on_with_the_same_numbers_is_one_run(scheme: str) -> None:
    """Bit for bit: the steps are the same."""
    if scheme == "dcqcn":
        scenario = fc.incast(2, start=["0s", "1ms"], feedback_delay="50us")
    else:
        scenario = fc.incast(2, rate="100Gbps", scheme=fc.DCTCP(), marking=fc.RED("30KB", "30KB", 1.0))
    network = network_of(resolve(scenario))
    plan = plan_of(network, until="4ms", queueing_allowance=1e-3)
    steps = round(1e-3 / plan.dt)
    whole, parts = Continued(network, plan), Continued(network, plan)
    whole.window(3 * steps)
    for _ in range(3):
        parts.window(steps)
        parts.change(network)
    ours, theirs = (run.window(steps) for run in (parts, whole))
    for name, a, b in zip(ours._fields, ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b, err_msg=name)


def test_going_on_is_what_simulate_does() -> None:
    """The same steps in a loop compiled otherwise: to rounding, which grows a hundredfold in some ms."""
    scenario = fc.incast(2, start=["0s", "1ms"])
    network = network_of(resolve(scenario))
    plan = plan_of(network, until="10ms")
    run = Continued(network, plan)
    run.window(round(4e-3 / plan.dt))
    outcome, times = run.follow(2048)
    trace = fc.simulate(scenario, "10ms", sample_interval=plan.dt, estimate_error=False)
    there = trace["queue"].isel(link=0).sel(time=times, method="nearest")
    assert float(np.abs(there.time.values - times).max()) < plan.dt / 4
    np.testing.assert_allclose(outcome.queue[:, 0, 0], there.values, rtol=1e-9, atol=1e-3)
    assert len(outcome.queue) == len(times) == 4096


def test_a_delay_changes_without_a_jump_of_the_history() -> None:
    """Just after tau* has changed, the queue goes on from where it was."""
    grid = ["50us", "80us"]
    networks = [network_of(resolve(fc.incast(1, multiplicity=15, feedback_delay=delay))) for delay in grid]
    plan = plan_of(networks[1], until="50ms", dt="1us")
    plan = dataclasses.replace(plan, aligned=False)
    run = Continued(networks[0], plan)
    before, _ = run.follow(24_000)
    run.change(networks[1])
    after, _ = run.follow(4096)
    rises = 15 * 5e9 / 15 * 2 * plan.dt  # bytes in a step, were all flows twice as fast as their share
    assert abs(after.queue[0, 0, 0] - before.queue[-1, 0, 0]) < rises


# -- what is bistable, and what is refused ----------------------------------------------------------------------------


def test_a_trend_that_brings_them_together_is_no_difference() -> None:
    def branch(oscillations: list[float], kinds: list[str]) -> dict[str, np.ndarray]:
        same = {name: np.zeros(4) for name in ("queue_bytes.min", "queue_bytes.max", "queue_bytes.mean")}
        return {"peak_to_peak": np.array(oscillations), "kind": np.array(kinds), **same}

    found = branches_of(
        grid_of({"x": [1, 2, 3, 4]}),
        {
            "up": branch([1.0, 1.0, 1.0, 9.5], ["decaying", "growing", "equilibrium", "cycle"]),
            "down": branch([10.0, 10.0, 10.0, 10.0], ["cycle", "cycle", "decaying", "cycle"]),
        },
    )
    assert found.bistable.values.tolist() == [True, False, False, False]


def test_a_point_that_makes_no_sense_harms_no_other() -> None:
    found = fc.studies.bistability(
        lambda kmin: fc.incast(1, multiplicity=2, marking=fc.RED(kmin, "200KB", "1%")),
        over={"kmin": ["5KB", "300KB"]},
        other=lambda kmin: fc.incast(1, multiplicity=2, marking=fc.RED(kmin, "200KB", "1%"), initial_rate="1Gbps"),
    )
    assert found.branch.values.tolist() == ["given", "other"]
    assert found.sel(kmin=5e3).kind.values.tolist() == ["equilibrium", "equilibrium"]
    assert found.sel(kmin=300e3).kind.values.tolist() == ["kmin exceeds kmax"] * 2
    assert np.isnan(found.sel(kmin=300e3).peak_to_peak).all()
    assert not found.bistable.any()


@pytest.mark.parametrize(
    ("over", "options", "match"),
    [
        ({"n": [2, 3], "m": [1, 2]}, {}, "one name"),
        ({"n": [2, 3, 1]}, {}, "rising or falling"),
        ({"n": [2]}, {}, "two or more"),
        ({"n": [2, -1]}, {}, "out of range"),
        ({"n": [2, 3]}, {"dwell": "1us"}, "too short"),
        ({"n": [2, 3]}, {"ramp": "1us"}, "too short"),
        ({"n": [2, 3]}, {"dwell": "soon"}, "dwell"),
    ],
)
def test_what_cannot_move(over: dict[str, Any], options: dict[str, Any], match: str) -> None:
    with pytest.raises(InputError, match=match):
        fc.studies.hysteresis(lambda n, m=1: flows(n), over=over, **options)


def test_what_changes_the_shape_cannot_move() -> None:
    with pytest.raises(InputError, match="make_scenario"):
        fc.studies.hysteresis(lambda n: fc.incast(int(n)), over={"n": [2, 3]})


def test_a_start_at_rest_needs_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """DCTCP's is known by a run that ends in a cycle; here the cycle is given."""
    cycles = SimpleNamespace(cycle=SimpleNamespace(kind="cycle"))
    monkeypatch.setattr("fluidcc.studies.sweeps.hysteresis.equilibrium", lambda _: cycles)
    with pytest.raises(InputError, match="dctcp"):
        fc.studies.bistability(lambda n: fc.incast(1, multiplicity=n, scheme=fc.DCTCP()), over={"n": [2, 3]})
    monkeypatch.undo()
    with pytest.raises(InputError, match="window"):
        fc.studies.bistability(flows, over={"n": [2, 3]}, window="500ms")


def test_pictures(two: fc.studies.Branches) -> None:
    (axis,) = two.plot(labels={"n": "flows"}).axes
    assert axis.get_xlabel() == "flows"
    assert axis.get_ylabel() == "queue, largest less smallest [KB]"
    assert len(axis.patches) == 6  # a grey band for each value that is bistable
    grid = grid_of({"n": [1, 2], "kmax": [1e5, 2e5, 3e5]})
    same = {name: np.arange(6.0) for name in ("peak_to_peak", "queue_bytes.min", "queue_bytes.max", "queue_bytes.mean")}
    maps = branches_of(grid, {name: {**same, "kind": np.full(6, "cycle")} for name in ("given", "other")}).plot()
    assert maps.axes[0].get_xlabel() == "kmax [KB]"
    assert maps.axes[0].get_ylabel() == "n"


def test_rates_on_their_way_are_no_rest() -> None:
    """Four flows of TIMELY fall to their least rate, and take 100 ms to fill the link again; then they cycle."""
    scheme = fc.TIMELY()
    found = fc.studies.bistability(
        lambda n: fc.incast(1, rate="10Gbps", multiplicity=n, scheme=scheme),
        {"n": [4.0]},
        lambda n: fc.incast(1, rate="10Gbps", multiplicity=n, scheme=scheme, initial_rate="2Gbps"),
        window="10ms",
    ).dataset
    assert (found["peak_to_peak"] > 50e3).all()
    assert set(found["kind"].values.ravel()) <= {"cycle", "irregular"}


def test_an_empty_queue_is_no_equilibrium_while_rates_are_on_their_way() -> None:
    """Two points whose queue stays empty: in one a flow's mean rate rises by a tenth from window to window."""
    still, empty = np.array([1e9, 1e9]), np.zeros(2)
    windows = [
        {name: empty for name in ("peak_to_peak", "queue_bytes.min", "queue_bytes.max", "queue_bytes.mean")}
        | {"rate": np.stack([still, still * [1.1**k, 1.0]])}
        for k in range(4)
    ]
    judged, settled = _judged(windows, packet=1000.0)
    assert judged["kind"].tolist() == ["unsettled", "equilibrium"]
    assert settled.tolist() == [False, True]
