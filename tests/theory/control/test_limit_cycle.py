"""Limit cycles of the fluid. Tolerances were set before anything was measured, and say where they come from."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.errors import InputError
from fluidcc.theory.control.limit_cycle import _period
from fluidcc.theory.control.settling import kinds, to_come
from fluidcc.units import Rate
from tests.shapes import give_depth

KB = 1e3
STEP = 2e-3  # queues that pass Kmax, where marking jumps: some 1e-3 at steps of 1 us (docs: DCQCN, Numbers)
QUICK: dict[str, Any] = {"estimate_error": False}


def ten(start: bool = True) -> fc.Scenario:
    """Ten flows at the paper's settings, from line rate, or from their rates at equilibrium with empty queues."""
    scenario = fc.incast(1, multiplicity=10)
    if start:
        return scenario
    (fixed_point,) = fc.equilibrium(scenario).flows
    (flow,) = scenario.flows
    scheme = dataclasses.replace(flow.scheme, initial_alpha=fixed_point["alpha"])
    flow = dataclasses.replace(flow, scheme=scheme, initial_rate=Rate(fixed_point["rate_bytes_per_s"]))
    return dataclasses.replace(scenario, flows=(flow,))


@pytest.fixture(scope="module", autouse=True)
def one_depth() -> Iterator[None]:
    """Have runs share a shape whether or not half of the step is run too."""
    with pytest.MonkeyPatch.context() as patch:
        give_depth(patch, 256)
        yield


# -- when it is steady ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ratio", [0.1, 0.9, 0.999])
def test_what_is_to_come_of_a_geometric_series(ratio: float) -> None:
    oscillations = 5.0 + ratio ** np.arange(3.0)
    # Differences of 0.001 of numbers about 5, in whose ratio the first three digits cancel: 1e-16 * 5 / 0.001^2.
    assert to_come(oscillations[:, None])[0] == pytest.approx(ratio**2, rel=1e-8)


def test_what_grows_or_alternates() -> None:
    """A change counts as none by a share of the point's own largest oscillation."""
    columns = np.array([[1.0, 1.0, 1.0, 9e3], [2.0, 1.5, 1.0, 9e3 + 2], [3.0, 1.2, 1.0 + 1e-7, 9e3 + 2.05]])
    assert to_come(columns).tolist() == [math.inf, pytest.approx(0.3), 0.0, 0.0]
    for change, left in ((0.9e-5, 0.0), (1.1e-5, math.inf)):
        assert to_come(np.array([[4.0, 7.0], [4.0, 7.0], [4.0 * (1 + change), 7.0]])).tolist() == [left, 0.0]
    assert to_come(np.array([[5.0], [5.0], [4.0]])).tolist() == [math.inf]  # what stood still and then moves


@pytest.mark.parametrize(
    ("oscillations", "kind", "settled"),
    [
        ([7.0, 7.001, 7.0], "cycle", True),
        ([99.0, 100.0, 99.0], "cycle", True),  # 1 % to the bit, in the past and to come
        ([7.0, 7.5, 7.0], "irregular", False),
        ([7.0, 7.5, 8.0], "growing", False),
        ([7.0, 6.5, 6.0], "decaying", False),
        ([7.0, 6.5, 6.5], "irregular", False),
        ([6.5, 6.5, 7.0], "irregular", False),
        ([7.0, 7.0, 7.0 * (1 + 0.9e-2)], "irregular", False),  # agrees, but what is to come does not
        ([0.9e-3, 0.9e-3, 0.9e-3 * (1 + 0.9e-2)], "equilibrium", True),
        ([0.9e-3, 0.9e-3, 0.9e-3 * (1 + 1.1e-2)], "irregular", False),
        ([1e-3, 1e-3, 1e-3], "equilibrium", True),
        ([9.0, 7.0, 7.0, 7.0], "cycle", True),  # the last three alone count
        ([7.0, 7 * 0.9995, 7 * 0.9995**2], "decaying", False),  # each within 1 % of the last, and on its way to 0
        ([1e-4, 1e-4, 1e-4], "equilibrium", True),
        ([1e-5, 2e-5, 4e-5], "growing", False),
        ([7.0, 7.0], "unsettled", False),
    ],
)
def test_kinds(oscillations: list[float], kind: str, settled: bool) -> None:
    found, done = kinds(np.array(oscillations)[:, None], np.array([1.0]))
    assert (found[0], bool(done[0])) == (kind, settled)


def test_a_broken_point_waits_for_nothing() -> None:
    oscillations = np.array([[7.0, np.nan], [7.0, np.nan], [7.0, np.nan]])
    assert kinds(oscillations, np.ones(2))[1].all()


def test_period_of_a_pattern() -> None:
    """Crossings 1 and 2 apart, in turn: one period of 3; random ones have none."""
    gaps = np.tile([1.0, 2.0], 20)
    assert _period(np.cumsum(gaps)) == (pytest.approx(3.0), pytest.approx(0.0, abs=1e-12), True)
    assert not _period(np.cumsum(np.random.default_rng(0).exponential(size=60)))[2]
    assert math.isnan(_period(np.array([1.0]))[0])


# -- DCQCN ------------------------------------------------------------------------------------------------------


def test_ten_flows_rest_from_line_rate() -> None:
    found = fc.limit_cycle(ten(), **QUICK)
    fixed_point = fc.equilibrium(ten())
    assert found.kind == "equilibrium"
    assert found.mean == pytest.approx(
        fixed_point.links[0]["queue_bytes"], rel=1e-3
    )  # the oscillation that counts as rest
    assert sum(found.rates) * 10 == pytest.approx(40e9 / 8, rel=1e-3)
    assert math.isnan(found.period)
    assert found.as_dict()["period_s"] is None


@pytest.fixture(scope="module")
def cycling() -> fc.theory.LimitCycle:
    return fc.limit_cycle(ten(False))


def test_ten_flows_cycle_from_their_rates_at_rest(cycling: fc.theory.LimitCycle) -> None:
    """The independent pass found q in [0, 218] KB and a period of 1.90 ms: the digits given."""
    found = cycling
    assert found.kind == "cycle"
    assert found.low == 0
    assert found.high / KB == pytest.approx(218, abs=0.5)
    assert found.period / 1e-3 == pytest.approx(1.90, abs=0.005)
    assert found.period_spread < 1e-3 * found.period
    assert found.discretisation_error["peak_to_peak_rel"] < STEP
    assert found.discretisation_error["period_rel"] < STEP
    assert found.discretisation_error["as_expected"] is False  # it locks to the grid
    # The link idles while the queue is empty, so that the flows send less than it could.
    assert 0.9 < sum(found.rates) * 10 / (40e9 / 8) < 1.0


def test_neither_the_window_nor_an_output_grid_matters() -> None:
    short, long = (fc.limit_cycle(ten(False), window=width, **QUICK) for width in ("17ms", "40ms"))
    assert short.peak_to_peak == pytest.approx(long.peak_to_peak, rel=STEP)
    assert short.period == pytest.approx(long.period, rel=STEP)
    for spacing in ("10us", "700us"):  # too coarse to see the cycle
        run = fc.simulate(ten(False), "60ms", window="40ms:60ms", sample_interval=spacing, **QUICK)
        queue = run.summary["queue_bytes"]
        assert queue["max"] - queue["min"] == pytest.approx(short.peak_to_peak, rel=STEP)


@functools.cache
def beyond(excess: float) -> tuple[fc.theory.LimitCycle, float]:
    """The cycle of two flows beyond their critical delay, and the period of the root there."""
    margin = fc.stability(fc.incast(1, multiplicity=2))
    delay, frequency = margin.critical_feedback_delay, margin.crossing_frequency
    assert delay is not None
    assert frequency is not None
    scenario = fc.incast(1, multiplicity=2, feedback_delay=(1 + excess) * delay, initial_rate="20Gbps")
    return fc.limit_cycle(scenario, window="50ms", until="8s", **QUICK), 2 * math.pi / frequency


@pytest.mark.slow
def test_the_period_of_a_small_cycle_is_that_of_the_crossing_root() -> None:
    """1 % beyond the critical delay it is within 3 % of 2 pi over the root's frequency on the axis.

    On the axis they are equal; the delay's excess shifts the cycle's in proportion.
    """
    found, period = beyond(0.01)
    assert found.kind == "cycle"
    assert found.low > 0  # it does not reach the edge
    assert found.period == pytest.approx(period, rel=0.03)


@pytest.mark.slow
def test_a_cycle_grows_like_a_square_root() -> None:
    """Twice the excess, 1.414 times the oscillation: to 3 %, a few times the excess."""
    (small, period), (large, _) = beyond(0.005), beyond(0.01)
    assert large.peak_to_peak / small.peak_to_peak == pytest.approx(math.sqrt(2), rel=0.03)
    # And the period's excess in proportion: to 5 %.
    assert (large.period - period) / (small.period - period) == pytest.approx(2, rel=0.05)


def test_swings_that_have_no_time_to_settle() -> None:
    found = fc.limit_cycle(fc.incast(1, multiplicity=8), until="60ms", **QUICK)
    assert found.kind == "decaying"


# -- other schemes, pictures, errors ------------------------------------------------------------------------------
@pytest.mark.slow
def test_windows_that_outgrow_the_first_history() -> None:
    """DCTCP's windows grow behind a deep step marking until packets wait longer than the first ones would."""
    scenario = fc.incast(2, rate="100Gbps", scheme=fc.DCTCP(), marking=fc.RED("300KB", "300KB", 1.0))
    found = fc.limit_cycle(scenario, **QUICK)
    queue = fc.simulate(scenario, "20ms", window="10ms:20ms", **QUICK).summary["queue_bytes"]
    assert found.kind == "cycle"
    assert found.mean == pytest.approx(queue["mean"], rel=0.01)
    # Extremes vary from tooth to tooth, by the packets that a window grows in a round trip: 1 KB for each flow.
    assert found.high == pytest.approx(queue["max"], abs=2 * KB)
    assert found.low == pytest.approx(queue["min"], abs=2 * KB)


@pytest.mark.slow
def test_the_most_loaded_link_of_several() -> None:
    found = fc.limit_cycle(fc.parking_lot(3), until="3s", **QUICK)
    assert found.link in fc.simulate(fc.parking_lot(3), "1ms", **QUICK).dataset.link.values
    assert len(found.rates) == 3


def test_picture_has_units(cycling: fc.theory.LimitCycle) -> None:
    found = cycling
    queue, rate, portrait = found.plot().axes
    assert queue.get_ylabel() == portrait.get_ylabel() == "queue [KB]"
    assert rate.get_ylabel() == "rate per flow [Gbps]"
    assert portrait.get_xlabel() == "sum of the rates [Gbps]"
    shown = np.ptp(queue.lines[0].get_xdata())  # two periods, in ms
    assert shown == pytest.approx(2 * found.period / 1e-3, rel=0.01)
    assert "cycle" in repr(found)


@pytest.mark.parametrize("options", [{"until": "1ms"}, {"window": "0s"}, {"until": "soon"}, {"dt": "1s"}])
def test_options_that_make_no_sense(options: dict[str, str]) -> None:
    with pytest.raises(InputError):
        fc.limit_cycle(ten(), **options)


@pytest.mark.slow
def test_a_queue_that_grows_for_ever_is_no_cycle() -> None:
    """Two senders that nobody holds back."""
    found = fc.limit_cycle(fc.incast(2, scheme=fc.NoControl()), estimate_error=False)
    assert found.kind == "growing"
    assert found.low > 1e6
    assert not fc.equilibrium(fc.incast(2, scheme=fc.NoControl())).exists


def test_a_long_queue_that_drains_slowly_is_no_equilibrium() -> None:
    """50 Gb/s of 100 leave 94 GB of a start at line rate: a window takes a thousandth of them away."""
    flows = fc.incast(
        1,
        rate="100Gbps",
        scheme=fc.DCQCN(min_rate="1Mbps"),
        multiplicity=50_000.0,
        marking=fc.RED("1MB", "2MB", "5%"),
    )
    assert fc.limit_cycle(flows, until="60ms", estimate_error=False).kind == "decaying"


@pytest.mark.slow  # its packets wait for tens of ms, all of which is remembered
def test_a_queue_that_nobody_hears_of_grows_for_ever() -> None:
    """HPCC's rates without the queue term, beyond the headroom."""
    deaf = fc.incast(64, rate="100Gbps", scheme=fc.HPCC(form="rate", u_queue=False))
    assert fc.limit_cycle(deaf, estimate_error=False).kind == "growing"
