"""Outcomes of the hybrid, by hand from a memory that is filled in here; and how a run goes on or is left."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.engines.hybrid import build, layout, run
from fluidcc.engines.hybrid.layout import LOADS
from fluidcc.engines.hybrid.region import BeyondBufferError
from fluidcc.errors import InputError
from fluidcc.scenario.model import resolve
from fluidcc.units import Rate

PACKET, RATE = 1000.0, 1e6
UNTIL, OPENS, CLOSES, INTERVAL = 4.0, 1.0, 3.0, 0.5
QUARTER = 250.0  # of a packet of one of two flows waits on average for one of the other's, on a link that is full


def given(**network: Any) -> fc.Scenario:
    """One link; flow 0 is alone in its class, 1 and 2 are a class of finite ones."""
    known = {"path": (0,), "line_rate": Rate(2 * RATE), "scheme": fc.NoControl()}
    flows = (fc.Flow(**known), fc.Flow(**known, multiplicity=2, size=5e3, start=0.25, access_delay=1e-3))
    link = fc.Link(rate=Rate(RATE), delay=1e-6)
    return resolve(fc.Scenario((link,), flows, packet_size=PACKET, header_bytes=0.0, **network))


def filled(scenario: fc.Scenario) -> tuple[Any, Any]:
    """Two flows send 1000 bytes in the window, the third next to nothing: as two equal ones."""
    prepared = build.prepare(scenario, build.Times(UNTIL, OPENS, CLOSES, INTERVAL))
    sim = prepared.seeded(7)
    flows, link = sim.flows, sim.links[0]
    flows["sent_open"], flows["sent_close"] = [100.0, 50.0, 0.0], [1100.0, 1050.0, 20.0]
    flows["acked_open"], flows["acked_close"] = [90.0, 40.0, 0.0], [1000.0, 900.0, 10.0]
    flows["share"] = 0.5
    link.area, link.area2 = 3750.0, 9.5e6
    link.least_in_window, link.most_in_window, link.most = 3.0, 2600.0, 9000.0
    link.idle[LOADS // 2] = 0.5  # s without a queue, at half the link's rate
    link.mass[0], link.mass[19] = 0.5, 1.5  # s; the rest between 19 and 20 times 128 bytes
    link.sent_open, link.sent_close = 0.2e6, 1.8e6
    return prepared, sim


def test_rates_and_goodput_are_those_of_the_window() -> None:
    found = run.outcome_of(*filled(given()))
    assert found.members == [0, 1, 1]
    assert found.rates.tolist() == [500.0, 500.0, 10.0]
    assert found.goodput.tolist() == [0.5 * 455.0, 0.5 * 430.0, 0.5 * 5.0]
    assert found.cnps == 0


def test_moments_are_those_of_the_fluid_and_the_packets_that_meet() -> None:
    """Without a queue of the fluid a sixteenth of the packets wait: load^2/4, at half the link's rate."""
    found = run.outcome_of(*filled(given())).links[0]
    alone = 0.5 / 16 * PACKET
    assert found.span == 2.0
    assert found.area == pytest.approx(3750 + 1.5 * QUARTER + alone)
    assert found.area2 == pytest.approx(9.5e6 + 2 * QUARTER * 3750 + 1.5 * 0.25 * PACKET**2 + alone * PACKET)
    assert found.least == 3.0
    assert found.utilisation == 0.8
    # 2496 bytes of the fluid are two or three whole packets, and one more for a quarter of the time.
    spent = {0.0: 0.5 * 15 / 16, 1e3: 0.5 / 16}
    for whole, share in ((2e3, 0.504), (3e3, 0.496)):
        for more, chance in ((0.0, 0.75), (PACKET, 0.25)):
            spent[whole + more] = spent.get(whole + more, 0.0) + 1.5 * share * chance
    bins = {length: 1 + int(length / 128) if length else 0 for length in spent}
    assert {int(i) for i in np.flatnonzero(found.spent)} == set(bins.values())
    for length, time in spent.items():
        assert found.spent[bins[length]] == pytest.approx(time)
        assert found.area_in[bins[length]] == pytest.approx(time * length)


def test_so_many_flows_meet_as_ports_feed_the_link_and_as_vary_alike() -> None:
    prepared, sim = filled(given())
    sim.links[0].inputs = 1
    assert run.outcome_of(prepared, sim).links[0].area == 3750.0  # packets of one port never meet
    sim.links[0].inputs = 0
    assert run.outcome_of(prepared, sim).links[0].area == 3750.0
    sim.links[0].inputs = 3
    sim.flows["sent_close"][1:] = 50.0, 0.0  # one alone sends
    assert run.outcome_of(prepared, sim).links[0].area == 3750.0


@pytest.mark.parametrize(
    ("rate", "in_window", "ever", "most", "whole_run"),
    [
        (RATE, 2600.0, 9000.0, 2600.0 + QUARTER, 9000.0 + QUARTER),
        (RATE, 0.0, 0.0, PACKET, PACKET),  # the other's packet waits for long enough
        (32e3, 0.0, 0.0, PACKET, PACKET),  # just for the time of a packet: 1000 bytes in 1/32 s
        (31.9e3, 0.0, 0.0, 0.0, 0.0),
        (31.9e3, 10.0, 20.0, 260.0, 270.0),
        (RATE, 10.0, 20.0, PACKET, PACKET),
        (RATE, 0.0, 800.0, PACKET, 1050.0),
    ],
)
def test_the_longest_queue_is_the_fluid_s_with_its_mean_packets_or_what_lasted(
    rate: float, in_window: float, ever: float, most: float, whole_run: float
) -> None:
    prepared, sim = filled(given())
    link = sim.links[0]
    link.rate, link.most_in_window, link.most = rate, in_window, ever
    found = run.outcome_of(prepared, sim).links[0]
    assert (found.most, found.most_whole_run) == pytest.approx((most, whole_run))


def test_a_summary_s_numbers() -> None:
    """A class's flows end on average; one that has not ended, or not begun, by the horizon has no number."""
    scenario = given(pfc=fc.PFC(xoff="50KB"), buffer="9MB")
    prepared, sim = filled(scenario)
    sim.flows["finish"] = [math.inf, 1.25, 3.25]
    sim.flows["start"] = sim.flows["ahead"] + [0.0, 0.5, 0.25]
    core, link = sim.core[0], sim.links[0]
    core.events, core.marks, core.cnps = 11, 12, 13
    link.above_xoff, link.above_room = 0.5, 0.25
    found = run.summary_of(scenario, prepared, sim, {"seed": 7, "compile_s": 1.5, "wall_s": 2.5})
    assert (found["flows"], found["until_s"], found["window_s"]) == (3, UNTIL, [OPENS, CLOSES])
    assert found["rate_bytes_per_s"] == [500.0, 255.0]
    assert found["goodput_bytes_per_s"] == [227.5, 108.75]
    assert found["rate_gap_bytes_per_s"] == 245.0
    assert found["jain"] == pytest.approx(1010.0**2 / (3 * (2 * 500.0**2 + 100)))
    assert found["fct_s"] == pytest.approx([(0.75 + 3.0) / 2])
    assert found["began_s"] == pytest.approx([0.0, 0.25])
    assert (found["events"], found["marks"], found["cnps"]) == (11, 12, 13)
    assert (found["above_xoff"], found["above_buffer"]) == (0.25, 0.125)
    assert (found["seed"], found["compile_s"], found["wall_s"]) == (7, 1.5, 2.5)
    sim.flows["finish"][2] = UNTIL
    assert run.summary_of(scenario, prepared, sim, {"seed": 7, "compile_s": 0, "wall_s": 0})["fct_s"] == pytest.approx(
        [(0.75 + 3.75) / 2]
    )
    sim.flows["finish"][2] = UNTIL + 0.001
    sim.flows["start"][1:] = sim.flows["ahead"][1:] + np.array([UNTIL * 1.001, UNTIL])
    late = run.summary_of(scenario, prepared, sim, {"seed": 7, "compile_s": 0, "wall_s": 0})
    assert late["fct_s"] == [None]
    assert late["began_s"] == [0.0, None]  # not all of the class have begun
    sim.flows["start"][1:] = sim.flows["ahead"][1:] = 0.0
    sim.flows["start"][1:] = UNTIL
    last = run.summary_of(scenario, prepared, sim, {"seed": 7, "compile_s": 0, "wall_s": 0})
    assert last["began_s"] == [0.0, UNTIL]  # at the horizon itself
    prepared, sim = filled(given())
    bare = run.summary_of(given(), prepared, sim, {"seed": 7, "compile_s": 0, "wall_s": 0})
    assert (bare["above_xoff"], bare["above_buffer"]) == (None, None)


def test_rates_between_samples_are_those_of_the_bytes_sent() -> None:
    """The first sample shows the interval after it; a class has the mean of its flows."""
    prepared, sim = filled(given())
    assert sim.flow_samples.shape[0] == 9
    sim.flow_samples[:, :, 0] = np.arange(9)[:, None] ** 2 * [1.0, 2.0, 4.0]
    steps = np.array([1, 1, 3, 5, 7, 9, 11, 13, 15]) / INTERVAL
    np.testing.assert_allclose(run._rates(prepared, sim), steps[:, None] * [1.0, 2.0, 4.0])
    np.testing.assert_allclose(run.sampled_rates(prepared, sim), steps[:, None] * [1.0, 3.0])
    for few in (0, 1):
        short = sim._replace(flow_samples=sim.flow_samples[:few])
        assert run._rates(prepared, short).tolist() == [[0.0] * 3] * few


def test_signals_are_the_samples_of_links_and_classes() -> None:
    scenario = given()
    prepared, sim = filled(scenario)
    sim.link_samples[:] = np.arange(18).reshape(9, 1, 2)
    sim.flow_samples[:, :, 0] = 0.0
    sim.flow_samples[:, :, 1] = np.arange(9)[:, None] * [1.0, 2.0, 4.0]
    summary = run.summary_of(scenario, prepared, sim, {"seed": 7, "compile_s": 0.0, "wall_s": 0.0})
    found = run._trace(scenario, prepared, sim, summary)
    np.testing.assert_allclose(found["time"], np.arange(9) * INTERVAL)
    assert found["queue"].values[:, 0].tolist() == list(range(0, 18, 2))
    assert found["sent"].values[:, 0].tolist() == list(range(1, 18, 2))
    np.testing.assert_allclose(found["pacing_rate"], np.arange(9)[:, None] * [1.0, 3.0])
    assert not found["rate"].values.any()
    assert found.attrs["seed"] == 7


def test_observables_of_schemes_share_columns_and_flows_without_them_have_none() -> None:
    """Flows 0 and 2 are DCQCN's, whose columns behind bytes and rate are the target and alpha."""
    known = {"path": (0,), "line_rate": Rate(2 * RATE)}
    schemes = (fc.DCQCN(), fc.NoControl(), fc.DCQCN())
    link = fc.Link(rate=Rate(RATE), delay=1e-6)
    scenario = resolve(fc.Scenario((link,), tuple(fc.Flow(**known, scheme=each) for each in schemes)))
    prepared = build.prepare(scenario, build.Times(UNTIL, OPENS, CLOSES, 2.0))
    sim = prepared.seeded(0)
    assert sim.flow_samples.shape == (3, 3, 4)
    sim.flow_samples[:] = np.arange(36).reshape(3, 3, 4)
    sim.flows["sent_close"] = 1.0
    summary = run.summary_of(scenario, prepared, sim, {"seed": 0, "compile_s": 0.0, "wall_s": 0.0})
    found = run._trace(scenario, prepared, sim, summary)
    np.testing.assert_array_equal(found["target_rate"], [[2, math.nan, 10], [14, math.nan, 22], [26, math.nan, 34]])
    np.testing.assert_array_equal(found["alpha"][1], [15, math.nan, 23])


def test_times_are_seconds_of_whole_picoseconds() -> None:
    found = run.times_in_seconds(given(), "4ms", "1ms:3ms", "10us")
    assert found == build.Times(4e-3, 1e-3, 3e-3, 1e-5)
    assert run.unsampled("4ms", None) == build.Times(4e-3, 2e-3, 4e-3, math.inf)


# -- a run -------------------------------------------------------------------------------------------------------------


def scripted(monkeypatch: pytest.MonkeyPatch, *steps: tuple[int, float, int]) -> list[int]:
    """Each call of the loop ends with a status at a time after so many events; how many each was asked for."""
    asked: list[int] = []

    def loop(sim: Any, most: int) -> int:
        status, now, events = steps[len(asked)]
        asked.append(most)
        sim.core[0].now, sim.core[0].events = now, events
        return status

    monkeypatch.setattr(run.engine, "run", loop)
    return asked


def test_a_run_goes_on_until_it_is_done_and_says_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    prepared, _ = filled(given())
    steps = [(layout.RUNNING, 1.0, 10), (layout.GROW_CNPS, 3.0, 20), (layout.RUNNING, 4.5, 30), (layout.DONE, 5.0, 40)]
    asked, told = scripted(monkeypatch, *steps), []
    sim, wall = run.execute(prepared, 5, report=told.append)
    assert told == [0.25, 0.75, 1.0]
    assert asked == [1 << 19] * 4
    assert sim.core[0].seed == 5
    assert sim.cnps.shape[1] == 2 * prepared.sim.cnps.shape[1]
    assert 0 <= wall < 5
    assert prepared.sim.core[0].now == 0.0  # the memory that was laid out stays as it is


@pytest.mark.parametrize(("most", "refused"), [(19.0, True), (20.0, False)])
def test_so_many_events_are_waited_for(most: float, refused: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared, _ = filled(given())
    scripted(monkeypatch, (layout.RUNNING, 1.0, 20), (layout.DONE, 5.0, 40))
    if refused:
        with pytest.raises(InputError, match="after 20 events the hybrid is at 1s of 4s, and takes too many"):
            run.execute(prepared, 5, most=most)
    else:
        run.execute(prepared, 5, most=most)


@pytest.mark.parametrize(("events", "refused"), [(1000 + (1 << 22), False), (1001 + (1 << 22), True)])
def test_time_that_stands_still_is_noticed(events: int, refused: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Events since the instant came, of which there had been a thousand before."""
    prepared, _ = filled(given())
    scripted(monkeypatch, (layout.RUNNING, 1.0, 1000), (layout.RUNNING, 1.0, events), (layout.DONE, 5.0, 0))
    if refused:
        with pytest.raises(InputError, match="stands still"):
            run.execute(prepared, 5)
    else:
        run.execute(prepared, 5)


@pytest.mark.parametrize(
    ("longest", "within", "refused"), [(9.1e6, True, True), (9e6, True, False), (9.1e6, False, False)]
)
def test_a_queue_beyond_its_buffer_ends_a_run_that_is_to_stay_within(
    longest: float, within: bool, refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared, _ = filled(given(buffer="9MB"))
    prepared.sim.links["most"] = longest
    asked = scripted(monkeypatch, (layout.DONE, 5.0, 10))
    if refused:
        with pytest.raises(BeyondBufferError):
            run.execute(prepared, 5, within_buffer=within)
    else:
        run.execute(prepared, 5, within_buffer=within)
    assert asked == [1 << 14 if within else 1 << 19]
