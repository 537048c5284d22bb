"""NSCC's fluid: single steps by hand, against packets, and against a closed form. Tolerances came before measuring."""

from __future__ import annotations

import math
from typing import Any

import jax
import numpy as np
import pytest
from scipy.optimize import brentq

import fluidcc as fc
from fluidcc.contract.bind import bind
from fluidcc.contract.signals import Progress
from fluidcc.errors import InputError
from fluidcc.scenario.model import resolve
from fluidcc.schemes.nscc import PRESETS, law
from fluidcc.schemes.nscc.parameters import gains

CAPACITY, PACKET, US = 12.5e9, 1000.0, 1e-6
T = 12e-6  # configured below, so that both scalings of the specification are 1
DT = 0.3e-6
FREE: dict[str, Any] = {"base_rtt": "12us", "eta": 0.0}


def of(flows: int, delay: str = "3us", **options: Any) -> Any:
    return fc.incast(flows, rate="100Gbps", delay=delay, scheme=fc.NSCC(**options))


def run(scenario: Any, until: str, **more: Any) -> fc.Trace:
    return fc.simulate(scenario, until, estimate_error=False, **more)


# -- single steps ----------------------------------------------------------------------------------------------


def bound(**options: Any) -> fc.NSCC:
    scenario = resolve(of(2, **options))
    return bind(scenario, scenario.flows[0])


def late(window: float, **options: Any) -> law.State:
    """A sender that has seen ACKs, and may cut."""
    first = law.start(bound(**options), CAPACITY)
    fields = {"window": window, "qa_left": 20 * US, "since_cut": 13 * US}
    return first._replace(**{name: np.full((1, 1), value) for name, value in fields.items()})


def step(
    state: law.State, delay: float, marked: float, newly: float = 1e3, flying: float = 1e5, **options: Any
) -> law.State:
    one = np.ones((1, 1))
    sizes = PACKET * one, PACKET * one, CAPACITY * one, one[None]
    progress = Progress((1e6 + flying) * one, 1e6 * one, newly * one, *sizes, (T + delay) * one, DT)
    new = law.on_step(bound(**options), jax.tree.map(np.asarray, state), progress, marked * one)
    return jax.tree.map(lambda leaf: np.asarray(leaf).item(), new)


@pytest.mark.parametrize(
    ("delay", "marked", "grows"),
    [
        (3 * US, 0.0, 4e3 * 9 / 12),
        (3 * US, 0.25, 0.75 * 4e3 * 9 / 12),
        (6 * US, 1.0, 0.0),
        (13 * US, 0.0, 5e3),
        (13 * US, 0.25, 0.75 * 5e3),
    ],
)
def test_increases_are_those_of_what_is_unmarked(delay: float, marked: float, grows: float) -> None:
    """By newly/W of what a round trip adds, to a millionth."""
    assert step(late(1e5, **FREE), delay, marked, **FREE).window == pytest.approx(1e5 + grows / 100, rel=1e-6)


def test_a_cut_takes_one_expected_mark() -> None:
    state = late(1e5, **FREE)._replace(average_delay=np.full((1, 1), 18 * US))
    half = step(state, 18 * US, 0.5, **FREE)
    assert half.expected == pytest.approx(0.5)
    assert half.window == pytest.approx(1e5 + 25, rel=1e-6)
    cut = step(half, 18 * US, 0.5, **FREE)
    assert cut.window == pytest.approx((1e5 + 50) * (1 - 0.8 * 6 / 18), rel=1e-5)
    assert (cut.since_cut, cut.expected) == (0.0, 0.0)
    assert step(cut, 18 * US, 1.0, **FREE).window == pytest.approx(cut.window)  # not again for a base RTT
    most = step(state._replace(average_delay=np.full((1, 1), 200 * US)), 18 * US, 1.0, **FREE)
    assert most.window == pytest.approx(5e4)  # max_md_jump
    low = step(state._replace(average_delay=np.full((1, 1), 10 * US)), 18 * US, 1.0, **FREE)
    assert low.window == pytest.approx(1e5)  # the average is below the target


def test_the_average_is_a_time_s() -> None:
    assert step(late(1e5, **FREE), 18 * US, 1.0, **FREE).average_delay == pytest.approx(18 * US * DT / T, rel=1e-5)
    first = late(1e5, **FREE)._replace(qa_left=np.full((1, 1), -1.0))
    assert step(first, 18 * US, 1.0, **FREE).average_delay == pytest.approx(18 * US, rel=1e-5)


def test_eta_comes_once_in_a_period() -> None:
    options: dict[str, Any] = {"base_rtt": "12us"}
    state = late(1e5, **options)._replace(since_adjust=np.full((1, 1), 11.9 * US))
    there = step(state, 6 * US, 1.0, **options)
    assert there.window == pytest.approx(1e5 + 150)
    assert step(there, 6 * US, 1.0, **options).window == pytest.approx(1e5 + 150)


def test_an_empty_path_is_taken_fast() -> None:
    options = {**FREE, "proportional_increase": 0.0}
    first = step(late(1.5e3, **options), 0.5 * US, 0.0, **options)
    assert (first.fast, first.window) == (0.0, 1.5e3)
    second = step(first, 0.5 * US, 0.0, **options)
    assert (second.fast, second.window) == (1.0, 1.75e3)
    capped = step(second._replace(window=2.25e5), 0.5 * US, 0.0, **options)
    assert capped.window == pytest.approx(1.5 * CAPACITY * T)
    assert step(second, 2 * US, 0.0, **options).fast == 0
    assert step(second, 13 * US, 1.0, **options).fast == 0


def test_quick_adapt() -> None:
    near = late(2e5, **FREE)._replace(qa_left=np.full((1, 1), 0.1 * US), achieved=np.full((1, 1), 2e4))
    adapted = step(near, 50 * US, 1.0, flying=5e4, **FREE)
    assert (adapted.window, adapted.to_ignore, adapted.achieved) == pytest.approx((2.1e4, 5e4, 0.0))
    assert adapted.qa_left == pytest.approx(24 * US)
    ignoring = step(adapted._replace(average_delay=50 * US, since_cut=13 * US), 50 * US, 1.0, newly=4e3, **FREE)
    assert (ignoring.window, ignoring.to_ignore) == pytest.approx((2.1e4, 4.6e4))
    enough = step(near._replace(achieved=np.full((1, 1), 1.5 * CAPACITY * T / 8)), 50 * US, 1.0, **FREE)
    assert enough.window == pytest.approx(2e5)
    assert step(near, 47 * US, 1.0, **FREE).window == pytest.approx(2e5)  # four times the target
    off = {**FREE, "quick_adapt": False}
    assert step(near, 50 * US, 1.0, **off).window == pytest.approx(2e5)


# -- where it settles ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["fluid", "packet"])
@pytest.mark.parametrize("flows", [2, 16, pytest.param(64, marks=pytest.mark.slow)])
def test_the_delay_settles_where_cuts_take_what_eta_gives(engine: str, flows: int) -> None:
    """With all packets marked at the target: gamma (d - target)/d W = eta, W = C (T + d)/N.

    Both once in a base RTT. The cuts take a round trip and the average to act, three base RTTs in all, in which windows
    grow by 3 N eta, or fall: within that, and 1 %.
    """
    scenario = of(flows)
    known = resolve(scenario)
    p = bind(known, known.flows[0])
    marking = known.links[0].marking
    assert marking is not None
    assert marking.kmax < CAPACITY * p.target_delay

    def gap(d: float) -> float:
        return p.gamma * (d - p.target_delay) / d * CAPACITY * (p.base_rtt + d) / flows - gains(p).eta

    expected = brentq(gap, p.target_delay, 10 * p.target_delay)
    if engine == "fluid":  # equal flows as one class: one shape for all numbers
        trace = run(fc.incast(1, multiplicity=flows, rate="100Gbps", delay="3us", scheme=fc.NSCC()), "6ms")
    else:
        trace = fc.simulate(scenario, "6ms", engine="packet")
    found = trace.summary["queue_bytes"]["mean"] / CAPACITY
    assert found == pytest.approx(expected, rel=0.01, abs=3 * flows * gains(p).eta / CAPACITY)
    assert trace.summary["utilisation"] == pytest.approx(1.0, abs=1e-3)
    assert trace.summary["jain"] > 0.99


@pytest.mark.slow
def test_one_target_for_all_queues() -> None:
    """The queue goes with the target, within a tenth: marks are at 80 % of the least."""
    queues = [run(of(8, target_delay=f"{us}us"), "4ms").summary["queue_bytes"]["mean"] for us in (12, 18, 24)]
    assert np.array(queues) / CAPACITY == pytest.approx(np.array([12e-6, 18e-6, 24e-6]), rel=0.1)


# -- against packets -------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("flows", "delay"), [(8, "3us"), (2, "1us"), (16, "1us")])
def test_crosscheck_is_within_its_tolerances(flows: int, delay: str) -> None:
    scenario = of(flows, delay)
    result = fc.compare(run(scenario, "4ms"), fc.ensemble(scenario, "4ms", seeds=2))
    assert {"queue_mean_rel", "queue_peak_rel", "window_rel"} <= set(result.tolerance)
    assert result.within, result.as_dict()


@pytest.mark.slow
def test_finite_flows_end_as_in_packets() -> None:
    """The last of 16 MB through one link in both: within 2 %, what a burst's end and equal shares leave open."""
    scenario = fc.incast(16, rate="100Gbps", delay="3us", scheme="nscc", size="1MB")
    ends = [
        max(trace.summary["fct_s"]) for trace in (run(scenario, "2ms"), fc.simulate(scenario, "2ms", engine="packet"))
    ]
    assert ends[0] == pytest.approx(ends[1], rel=0.02)


@pytest.mark.parametrize("engine", [pytest.param("fluid", marks=pytest.mark.slow), "packet"])
def test_windows_and_rates_stay_within_limits(engine: str) -> None:
    """Over one, two and three links, finite flows beside long ones, a late start, a slow link, and 48 into one."""
    more: dict[str, Any] = {"estimate_error": False} if engine == "fluid" else {"engine": "packet"}
    for scenario in (
        fc.parking_lot(
            4, rate="100Gbps", scheme="nscc", start=["0", "0", "100us", "0"], size=["10MB", "50KB", "10MB", "10MB"]
        ),
        fc.incast(3, rate="25Gbps", line_rate="100Gbps", scheme="nscc", header_bytes=58),
        fc.incast(48, rate="100Gbps", scheme="nscc"),
    ):
        known = resolve(scenario)
        p = bind(known, known.flows[0])
        trace = fc.simulate(scenario, "600us", **more)
        window = trace["window"].values
        window = window[window != 0]  # packets' before their flow begins
        assert window.min() >= p.mtu * (1 - 1e-6)
        assert window.max() <= p.max_window * (1 + 1e-6)
        assert (trace["queueing_delay"].values >= -1e-12).all()
        assert (np.array(trace.summary["rate_bytes_per_s"]) <= known.flows[0].line_rate * (1 + 1e-6)).all()
        assert trace.summary["utilisation"] > 0.99


# -- parameters ------------------------------------------------------------------------------------------------


def test_presets_differ_in_the_network_alone() -> None:
    assert PRESETS["paper"].scheme == PRESETS["hpcc-eval"].scheme == fc.NSCC()
    marking = PRESETS["paper"].marking_at("400Gbps")
    assert marking is not None
    assert (marking.kmin, marking.kmax) == (120e3, 480e3)


def test_what_is_left_open_is_bound() -> None:
    """Of a slower bottleneck: the BDP is its, and 1.5 of it the window."""
    scenario = resolve(fc.incast(2, rate="25Gbps", line_rate="100Gbps", scheme="nscc", delay="3us"))
    p = bind(scenario, scenario.flows[0])
    assert p.bdp == pytest.approx(3.125e9 * p.base_rtt)
    assert p.max_window == p.initial_window == pytest.approx(1.5 * p.bdp)
    assert p.target_delay == p.adjust_period == p.averaging == p.base_rtt
    assert p.qa_threshold == pytest.approx(4 * p.base_rtt)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"gamma": 1.5}, "gamma"),
        ({"max_md_jump": 0.0}, "max_md_jump"),
        ({"target_delay": "0us"}, "target_delay"),
        ({"qa_gate": 2.5}, "qa_gate"),
        ({"eta": -1.0}, "eta"),
        ({"averaging": math.nan}, "averaging"),
    ],
)
def test_bad_values_are_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        fc.simulate(of(2, **options), "10us")


@pytest.mark.slow
def test_a_sweep_is_its_points() -> None:
    result = fc.sweep(lambda gamma: of(4, gamma=gamma), over={"gamma": [0.4, 0.8]}, until="1ms", estimate_error=False)
    alone = [run(of(4, gamma=gamma), "1ms").summary["queue_bytes"]["mean"] for gamma in (0.4, 0.8)]
    assert result.dataset["queue_bytes.mean"].values == pytest.approx(alone, rel=1e-3)
