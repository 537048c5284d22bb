"""W_AI on a link: closed form, fluid and packets in one dataset."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr

import fluidcc as fc
from fluidcc.scenario.model import resolve
from fluidcc.schemes.hpcc.increase import solve_equilibrium
from fluidcc.studies.sweeps import wai
from fluidcc.studies.sweeps.wai import uneven_flows, with_increase

SCENARIO = fc.incast(4, rate="100Gbps", scheme=fc.HPCC())


@pytest.fixture(scope="module")
def found():
    """W_AI below the boundary of 654 B, and twice beyond it."""
    return fc.studies.wai_sweep(SCENARIO, ["2KB", 300, "1.2KB"], until="2ms")


def test_it_is_labelled(found):
    assert list(found["engine"].values) == ["closed form", "fluid", "packet"]
    assert list(found["w_ai"].values) == [300, 1200, 2000]  # in order
    for name in ("queue_bytes.mean", "queue_bytes.p95", "utilisation", "fairness_time"):
        assert found[name].dims == ("engine", "w_ai")
        assert {"units", "long_name"} <= set(found[name].attrs)
    assert float(found["boundary"]) == solve_equilibrium(SCENARIO).boundary
    assert (found.attrs["flows"], found.attrs["uneven_flows"], found.attrs["left"]) == (4, 2, 0.1)
    assert repr(found) == "<WaiSweep of 3 values: closed form, fluid, packet>"


def test_the_fluid_rests_at_the_closed_form(found):
    """Queue within a tenth of a packet, utilisation within 1e-3; fairness as in `reproduce hpcc-wai`, within 15 %."""
    closed, fluid = found.sel(engine="closed form"), found.sel(engine="fluid")
    np.testing.assert_allclose(fluid["queue_bytes.mean"], closed["queue_bytes.mean"], atol=104)
    np.testing.assert_allclose(fluid["queue_bytes.p95"], closed["queue_bytes.p95"], atol=104)
    np.testing.assert_allclose(fluid.utilisation, closed.utilisation, atol=1e-3)
    np.testing.assert_allclose(fluid.fairness_time, closed.fairness_time, rtol=0.15)


def test_packets_queue_at_least_as_much(found):
    closed, packet = found.sel(engine="closed form"), found.sel(engine="packet")
    assert np.all(packet["queue_bytes.mean"].values[1:] > closed["queue_bytes.mean"].values[1:])
    assert np.all(packet["queue_bytes.p95"] >= packet["queue_bytes.mean"])
    assert np.all((packet.utilisation > 0.9) & (packet.utilisation <= 1 + 1e-9))


def test_one_batch_gives_what_single_runs_do(found):
    """The same equations with the step of the whole batch: a tenth of a packet."""
    for value in (300.0, 2000.0):
        alone = fc.simulate(with_increase(SCENARIO, value), "2ms", estimate_error=False).summary
        assert float(found["queue_bytes.mean"].sel(engine="fluid", w_ai=value)) == pytest.approx(
            alone["queue_bytes"]["mean"], abs=104
        )
        alone = fc.simulate(with_increase(SCENARIO, value), "2ms", engine="packet").summary
        assert float(found["queue_bytes.mean"].sel(engine="packet", w_ai=value)) == alone["queue_bytes"]["mean"]


def test_engines_are_chosen(monkeypatch):
    monkeypatch.setattr(wai, "simulate", None)  # neither packets nor single fluid runs
    monkeypatch.setattr(wai, "execute", None)
    closed = fc.studies.wai_sweep(SCENARIO, [80, 160], engines=[])
    assert list(closed["engine"].values) == ["closed form"]
    # A twice as large W_AI nearly halves the time while it is small against the window.
    slow, fast = closed["fairness_time"].values[0]
    assert slow / fast == pytest.approx(2, rel=0.01)


def test_uneven_flows_fill_the_link_at_the_target():
    two = uneven_flows(fc.incast(16, rate="100Gbps", scheme=fc.HPCC(eta=0.9)))
    assert [flow.multiplicity for flow in two.flows] == [1, 1]
    assert sum(flow.initial_rate for flow in two.flows) == pytest.approx(0.9 * 12.5e9)
    assert two.flows[0].initial_rate == pytest.approx(4 * two.flows[1].initial_rate)
    # NICs of 25 Gb/s: four to send 76 Gb/s, four for the other fifth.
    eight = uneven_flows(fc.incast(16, rate="100Gbps", line_rate="25Gbps", scheme=fc.HPCC()))
    assert [flow.multiplicity for flow in eight.flows] == [4, 4]
    assert sum(4 * flow.initial_rate for flow in eight.flows) == pytest.approx(0.95 * 12.5e9)
    assert all(flow.initial_rate <= flow.line_rate for flow in eight.flows)


@pytest.mark.parametrize(
    ("nic", "each"),
    [("40Gbps", 2), ("38Gbps", 2), ("37.9Gbps", 3), ("95Gbps", 1), ("76Gbps", 1), ("75.9Gbps", 2), ("10Gbps", 8)],
)
def test_as_many_nics_as_send_four_fifths_of_the_target(nic, each):
    """Of 100 Gb/s at eta 0.95 that are 76 Gb/s: two NICs of 40 Gb/s, where three would be for all of the target."""
    found = uneven_flows(fc.incast(16, rate="100Gbps", line_rate=nic, scheme=fc.HPCC(eta=0.95))).flows
    assert [flow.multiplicity for flow in found] == [each, each]
    assert [flow.initial_rate * each * 8e-9 for flow in found] == pytest.approx([76, 19])
    assert [(flow.start, flow.size) for flow in found] == [(0.0, math.inf)] * 2


def test_slow_nics_are_timed_with_as_many_as_fill_the_link():
    """Eight flows of 25 Gb/s: eta/U holds for them too, within the 15 % of two."""
    scenario = fc.incast(4, multiplicity=4, rate="100Gbps", line_rate="25Gbps", scheme=fc.HPCC())
    found = fc.studies.wai_sweep(
        scenario, [300, 1200, 2000], engines=["fluid"], until="1ms"
    )  # the shapes of the fixture
    closed, fluid = found["fairness_time"].values[:, 0]
    assert fluid == pytest.approx(closed, rel=0.15)
    assert found.attrs["uneven_flows"] == 8
    # As packets they come from eight NICs, or 25 Gb/s would be all.
    trace = fc.simulate(uneven_flows(scenario), "100us", engine="packet")
    assert trace.summary["flows"] == 8
    assert trace.summary["utilisation"] > 0.9


def test_a_class_of_flows_is_as_many_hosts(found):
    """Agree with packets; the fluid is asked for as many flows in each half (its classes: `test_classes.py`)."""
    four = fc.incast(1, multiplicity=4, rate="100Gbps", scheme=fc.HPCC())
    one = fc.studies.wai_sweep(four, [300, 1200, 2000], engines=["packet"], until="2ms")
    np.testing.assert_allclose(one["queue_bytes.mean"], found["queue_bytes.mean"].sel(engine=one["engine"]))
    np.testing.assert_allclose(one["fairness_time"], found["fairness_time"].sel(engine=one["engine"]))
    assert uneven_flows(four).flows == uneven_flows(SCENARIO).flows


def test_rate_ai_gives_way_to_w_ai():
    given = with_increase(fc.incast(2, rate="100Gbps", scheme=fc.HPCC(rate_ai="1Gbps")), 80.0)
    assert (
        solve_equilibrium(given).boundary == solve_equilibrium(fc.incast(2, rate="100Gbps", scheme=fc.HPCC())).boundary
    )
    assert (
        solve_equilibrium(given).utilisation
        == solve_equilibrium(fc.incast(2, rate="100Gbps", scheme=fc.HPCC(w_ai=80))).utilisation
    )


def test_a_crossing_is_read_between_samples():
    time = np.arange(11.0)
    window = np.stack([100 + np.exp(-0.3 * time), np.full(11, 100.0)], axis=1)
    assert wai._equal_after(time, window, 0.1) == pytest.approx(math.log(10) / 0.3)
    assert math.isnan(wai._equal_after(time[:5], window[:5], 0.1))


def test_it_draws(found, tmp_path):
    picture = found.plot()
    assert [axis.get_xlabel() for axis in picture.axes] == ["$W_{AI}$ [B]"] * 3
    assert picture.axes[0].get_ylabel() == "queue [KB]"
    assert "653.7B" in picture.axes[0].get_legend().get_texts()[-1].get_text()
    assert found.plot(title="ours").get_suptitle() == "ours"
    assert picture.write(tmp_path / "wai.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"w_ai": []}, "w_ai"),
        ({"w_ai": "80B"}, "w_ai"),
        ({"w_ai": 80}, "w_ai"),
        ({"w_ai": [80, 0]}, r"w_ai\[1\]"),
        ({"w_ai": [-1]}, "w_ai"),
        ({"w_ai": [math.nan]}, "w_ai"),
        ({"w_ai": ["80us"]}, "w_ai"),
        ({"engines": "fluid"}, "engines"),
        ({"engines": ["ns3"]}, "engines"),
        ({"left": 1.0}, "left"),
        ({"left": math.nan}, "left"),
        ({"until": "0s"}, "until"),
        ({"scenario": fc.incast(2)}, "closed form"),
        ({"scenario": fc.parking_lot(3, scheme=fc.HPCC())}, "closed form"),
        ({"scenario": fc.incast(2, scheme=fc.HPCC(), size="1MB")}, "size"),
        ({"scenario": None}, "scenario"),
    ],
)
def test_bad_input_is_refused(change, message):
    given = {"scenario": SCENARIO, "w_ai": [80]} | change
    with pytest.raises(fc.InputError, match=message):
        fc.studies.wai_sweep(given.pop("scenario"), given.pop("w_ai"), **given)


# -- by hand -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("apart", "left", "time"),
    [
        ([8.0, 4.0, 2.0, 1.0], 0.25, 2.0),  # just there
        ([8.0, 4.0, 2.0, 1.0], 0.5, 1.0),
        ([8.0, 4.0, 1.0], 0.25, 1.5),  # halfway in logarithms: 2 is between 4 and 1
        ([-8.0, -4.0, -1.0], 0.25, 1.5),  # whichever is the larger
        ([8.0, 4.0, -1.0], 0.25, 1.5),
        ([8.0, 4.0, 0.0], 0.25, 2.0),  # no logarithm of nothing
        ([0.0, 1.0, 2.0], 0.25, 0.0),  # equal from the first
        ([8.0, 2.0, 8.0, 1.0], 0.25, 1.0),  # the first time counts
        ([8.0, 7.0, 6.0], 0.25, math.nan),
    ],
)
def test_flows_are_equal_once_a_share_of_their_first_difference_is_left(
    apart: list[float], left: float, time: float
) -> None:
    window = np.stack([50 + np.array(apart), np.full(len(apart), 50.0)], axis=1)
    found = wai._equal_after(np.arange(float(len(apart))), window, left)
    assert found == pytest.approx(time, nan_ok=True)


def test_windows_that_jump_are_averaged_about_their_time() -> None:
    """Means of three of 8, 5, 5, 1, 0 are 6, 11/3, 2; the second is below a half, about the third sample's time."""
    window = np.stack([np.array([8.0, 5.0, 5.0, 1.0, 0.0]), np.zeros(5)], axis=1)
    time = np.array([0.0, 1.0, 3.0, 4.0, 6.0])
    assert wai._equal_after(time, window, 0.5, smoothed=3) == 3.0
    assert wai._equal_after(time, window, 0.8, smoothed=3) == 1.0
    assert wai._equal_after(time, window, 0.25, smoothed=3) == 4.0
    assert math.isnan(wai._equal_after(time, window, 0.2, smoothed=3))
    flip = np.stack([np.array([8.0, -8.0, 8.0, -8.0]), np.zeros(4)], axis=1)
    assert wai._equal_after(np.arange(4.0), flip, 0.1, smoothed=2) == 1.0  # signs cancel


def test_increases_are_sorted_and_each_is_there_once() -> None:
    assert wai._values(["2KB", 300, 300.0, "80B"]).tolist() == [80.0, 300.0, 2000.0]
    assert wai._values(np.array([5.0])).tolist() == [5.0]
    with pytest.raises(fc.InputError, match=r"w_ai\[2\]: 0 B; give finite values above 0"):
        wai._values([1.0, 2.0, 0.0])
    with pytest.raises(fc.InputError, match=r"w_ai\[1\]"):
        wai._values([1.0, math.inf])


def test_the_closed_form_uses_no_more_than_the_link() -> None:
    points: list = [type("At", (), {"queue": q, "utilisation": u})() for q, u in ((0.0, 0.95), (500.0, 1.02))]
    found = wai._closed(points, np.array([1.0, 2.0]))
    assert {name: values.tolist() for name, values in found.items()} == {
        "queue_bytes.mean": [0.0, 500.0],
        "queue_bytes.p95": [0.0, 500.0],
        "utilisation": [0.95, 1.0],
        "fairness_time": [1.0, 2.0],
    }


@pytest.mark.parametrize(("line_rate", "count"), [("100Gbps", 1), ("76Gbps", 1), ("75Gbps", 2), ("25Gbps", 4)])
def test_nics_that_just_fill_their_half_are_enough(line_rate: str, count: int) -> None:
    """Four fifths of 95 Gb/s are 76."""
    halves = uneven_flows(fc.incast(16, rate="100Gbps", line_rate=line_rate, scheme=fc.HPCC())).flows
    assert [flow.multiplicity for flow in halves] == [count, count]
    assert halves[0].initial_rate == pytest.approx(0.8 * 0.95 * 12.5e9 / count)
    assert halves[1].initial_rate == pytest.approx(0.2 * 0.95 * 12.5e9 / count)
    assert all(flow.start == 0 and math.isinf(flow.size) for flow in halves)


class Stood:
    """Stand-in for the engines: what they were asked, and windows that shrink by a half each millisecond or not."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.simulated: list[tuple] = []
        self.planned: dict = {}
        monkeypatch.setattr(wai, "simulate", self.simulate)
        monkeypatch.setattr(wai, "sweep", self.sweep)
        monkeypatch.setattr(wai, "batch_of", lambda make, grid: SimpleNamespace(network=None))
        monkeypatch.setattr(wai, "plan_of", self.plan_of)
        monkeypatch.setattr(wai, "history_bytes", lambda network, plan, points: 1000.0 * points)
        monkeypatch.setattr(wai, "execute", self.execute)

    def simulate(self, scenario, until, *, engine):
        w_ai = scenario.flows[0].scheme.w_ai
        self.simulated.append((w_ai, [flow.multiplicity for flow in scenario.flows], until))
        summary = {"queue_bytes": {"mean": 10 * w_ai, "p95": 20 * w_ai}, "utilisation": 0.5}
        time = until * np.linspace(0, 1, 2001)
        half = 4 * 2.0 ** (-time / (until / 20))  # two flows in each half
        window = np.stack([1 + half, 3 + half, 2 + 0 * half, 2 + 0 * half], axis=1)
        return Run(summary, time, window)

    def sweep(self, make, over, *, until, estimate_error):
        values = over["w_ai"]
        names = ("queue_bytes.mean", "queue_bytes.p95", "utilisation")
        data = xr.Dataset({name: ("w_ai", k + values) for k, name in enumerate(names)}, {"w_ai": values})
        self.planned["sweep"] = (until, estimate_error)
        return SimpleNamespace(dataset=data)

    def plan_of(self, network, *, until, samples):
        self.planned |= {"until": until, "samples": samples}
        return SimpleNamespace(samples=11, stride=2, dt=0.5, steps=20)

    def execute(self, network, plan, *, points, full, segments, report):
        time = np.arange(11.0)
        window = np.stack([8 * 2.0**-time, 0 * time], axis=1)[:, :, None] ** np.arange(1.0, 1 + points)
        return SimpleNamespace(trace={"window": window}), None, None


class Run(dict):
    """A trace: its summary, and variables with values."""

    def __init__(self, summary, time, window) -> None:
        super().__init__(time=SimpleNamespace(values=time), window=SimpleNamespace(values=window))
        self.summary = summary


TWO = uneven_flows(SCENARIO)


def test_the_fluid_reads_times_off_its_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows fall by a half or a quarter a second, of which a tenth is left after log2 10 or half of it."""
    stood = Stood(monkeypatch)
    found = wai._fluid(SCENARIO, TWO, np.array([100.0, 300.0]), np.array([2.0, 0.5]), 7.0, 0.1)
    assert stood.planned == {"sweep": (7.0, False), "until": 4.0, "samples": 400}  # twice the longest; 50 in the least
    assert found["queue_bytes.mean"].tolist() == [100.0, 300.0]
    assert found["queue_bytes.p95"].tolist() == [101.0, 301.0]
    assert found["utilisation"].tolist() == [102.0, 302.0]
    assert found["fairness_time"] == pytest.approx([math.log2(10), math.log2(10) / 2])
    wai._fluid(SCENARIO, TWO, np.array([100.0]), np.array([2.0]), 7.0, 0.1)
    assert stood.planned["samples"] == 100
    wai._fluid(SCENARIO, TWO, np.array([100.0, 300.0]), np.array([200.0, 0.5]), 7.0, 0.1)
    assert stood.planned["samples"] == 5000


def test_packets_run_six_times_as_long_as_they_should_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """Halves of two flows each, of which the means are compared: a tenth is left after log2 10 twentieths of a run."""
    stood = Stood(monkeypatch)
    found = wai._packet(SCENARIO, TWO, np.array([100.0, 300.0]), np.array([1.0, 2.0]), 7.0, 0.1)
    assert [(w_ai, until) for w_ai, _, until in stood.simulated] == [
        (100.0, 7.0), (100.0, 6.0), (300.0, 7.0), (300.0, 12.0),
    ]  # fmt: skip
    assert stood.simulated[0][1] == [1.0] * 4
    assert stood.simulated[1][1] == [1.0, 1.0]
    assert found["queue_bytes.mean"].tolist() == [1000.0, 3000.0]
    assert found["queue_bytes.p95"].tolist() == [2000.0, 6000.0]
    assert found["utilisation"].tolist() == [0.5, 0.5]
    assert found["fairness_time"] == pytest.approx(np.array([6.0, 12.0]) / 20 * math.log2(10), rel=0.02)


def test_a_horizon_is_a_thousand_round_trips_and_engines_keep_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    stood = Stood(monkeypatch)
    found = fc.studies.wai_sweep(SCENARIO, ["300B", "80B"], engines=["packet", "fluid"])
    first = solve_equilibrium(resolve(SCENARIO))
    assert found["engine"].values.tolist() == ["closed form", "fluid", "packet"]
    assert found["w_ai"].values.tolist() == [80.0, 300.0]
    assert stood.planned["sweep"][0] == pytest.approx(1000 * first.base_rtt)
    assert stood.simulated[0][2] == pytest.approx(1000 * first.base_rtt)
    assert found.attrs["base_rtt_s"] == first.base_rtt
    assert (found.attrs["flows"], found.attrs["uneven_flows"], found.attrs["eta"]) == (4, 2, 0.95)
    assert found["queue_bytes.mean"].sel(engine="fluid").values.tolist() == [80.0, 300.0]
    assert found["queue_bytes.mean"].sel(engine="packet").values.tolist() == [800.0, 3000.0]
