"""The numbers that the explorer shows are those of the public functions."""

from __future__ import annotations

import time

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.errors import InputError
from fluidcc.explorer import answers as explorer_answers
from fluidcc.explorer import views
from fluidcc.explorer.answers import Charts, answers, default_axes
from fluidcc.explorer.settings import Setting


def test_the_fluid_is_that_of_simulate() -> None:
    """Bit for bit: the longer history that shapes share holds the same past."""
    setting = Setting().moved("until", "8ms").moved("late_start", "2ms")
    run = views.fluid(setting.scenario(), setting.until)
    trace = fc.simulate(setting.scenario(), until="8ms", estimate_error=False)
    assert np.array_equal(run.time, trace.dataset["time"].values)
    assert np.array_equal(run.queue[0], trace.dataset["queue"].values[:, 0])
    assert np.array_equal(run.rates.T, trace.dataset["rate"].values)
    assert run.metrics["queue_p99"] == trace.summary["queue_bytes"]["p99"]
    assert run.metrics["utilisation"] == trace.summary["utilisation"]


def test_the_band_is_the_hybrid_over_seeds() -> None:
    setting = Setting().moved("until", "4ms").moved("late", "0")
    run = views.hybrid(setting.scenario(), setting.until, 3)
    assert run is not None
    traces = fc.ensemble(setting.scenario(), "4ms", 3, engine="hybrid", sample_interval="8us")
    queues = np.stack([trace.dataset["queue"].values[:, 0] for trace in traces])
    low, mean, high = run.band
    assert np.array_equal(low, queues.min(axis=0))
    assert np.array_equal(high, queues.max(axis=0))
    assert np.allclose(mean, queues.mean(axis=0), rtol=1e-12, atol=0)
    assert views.hybrid(Setting("hpcc").scenario(), 1e-4) is None


def test_packets_tell_how_far_they_are() -> None:
    setting = Setting().moved("until", "200us").moved("late", "0")
    told: list[float] = []
    run = views.packets(setting.scenario(), setting.until, 2, told.append)
    assert told == sorted(told)
    assert told[-1] == 1.0
    one = fc.simulate(setting.scenario(), until="200us", engine="packet", seed=1, sample_interval="400ns")
    assert np.array_equal(run.queue[0], one.dataset["queue"].values[:, 0])

    def stop(share: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        views.packets(setting.scenario(), setting.until, 2, stop)


def test_roots_are_those_of_stability() -> None:
    scenario = Setting().scenario()
    found, expected = views.root_map(scenario), fc.stability(scenario)
    assert found.stable is expected.stable is True
    for mine, theirs in ((found.aggregate, expected.aggregate_root), (found.fairness, expected.fairness_root)):
        assert theirs is not None
        assert mine[0].real == pytest.approx(theirs.real, rel=1e-9)
    assert found.why.startswith("stable: decays in")
    late = views.root_map(Setting().moved("feedback_delay", "300us").scenario())
    assert late.stable is False
    assert late.why.startswith("unstable: grows in")


@pytest.mark.parametrize(("scheme", "said"), [("hpcc", "in jumps"), ("timely", "no fixed point")])
def test_where_nothing_can_be_linearised_it_says_why(scheme: str, said: str) -> None:
    found = views.root_map(Setting(scheme).scenario())
    assert found.stable is None
    assert said in found.why


def test_the_chart_agrees_with_single_points() -> None:
    """Of a grid that is worked out at once, four points each by themselves; and values moved without compiling."""
    charts = Charts()
    setting = Setting().moved("kmin", "20KB")
    axes = default_axes(setting)
    assert axes == ("flows", "feedback_delay")
    charts.of(Setting(), axes)
    began = time.process_time()
    found = charts.of(setting, axes)
    assert time.process_time() - began < 2.0  # compiling takes 5 s
    for i, j in ((3, 4), (10, 8), (20, 15), (12, 20)):
        point = (
            setting.moved("flows", f"{found.x[i]:g}")
            .moved("feedback_delay", f"{float(found.y[j])!r}s")
            .moved("late", "0")
        )
        root = fc.stability(point.scenario()).rightmost_root
        assert root is not None
        assert found.root[j, i] == pytest.approx(root.real, rel=1e-6)


def test_a_chart_is_kept_while_only_its_point_moves() -> None:
    charts = Charts()
    first = charts.of(Setting("hpcc"), ("flows", "delay"))
    assert first.root.size == 0
    assert "in jumps" in first.why
    one = charts.of(Setting(), ("flows", "feedback_delay"))
    assert charts.of(Setting().moved("flows", "20"), ("flows", "feedback_delay")) is one
    assert charts.of(Setting().moved("g", "1/64"), ("flows", "feedback_delay")) is not one
    with pytest.raises(InputError, match="both"):
        charts.of(Setting(), ("flows", "flows"))
    with pytest.raises(InputError, match="no range"):
        charts.of(Setting(), ("flows", "until"))


def test_the_distribution_is_of_the_second_half() -> None:
    time_axis = np.linspace(0.0, 1.0, 101)
    queue = np.where(time_axis < 0.5, 100.0, 10.0)[None]
    run = views.Run(time_axis, queue, queue, {})
    edges = views.bin_edges(run)
    share = run.distribution(edges)
    assert share.sum() == pytest.approx(1.0)
    assert edges[share.argmax()] <= 10.0 <= edges[share.argmax() + 1]
    assert share.max() == 1.0


def test_fluid_and_roots_do_not_wait_for_a_hybrid_to_be_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hybrid's compiling takes 10 s, which a first page would show nothing for."""
    monkeypatch.setattr(explorer_answers, "_seen", set())
    found = list(answers(Setting()))
    assert [(each.roots is None, each.hybrid is None) for each in found] == [
        (True, True), (False, True), (False, False), (False, False)
    ]  # fmt: skip
    assert "the hybrid follows" in found[0].hybrid_why
    assert [each.whole for each in found] == [False, False, False, True]
    assert found[1].has_runs_of(found[0])
    assert not found[2].has_runs_of(found[1])  # else the page would never draw the hybrid
    assert found[3].has_runs_of(found[2])


def test_runs_come_before_roots() -> None:
    """What is drawn first is what is drawn in the end, but for the roots, which come after."""
    list(answers(Setting()))  # compiles
    first, whole = answers(Setting())
    assert first.roots is None
    assert whole.roots is not None
    assert whole.fluid is first.fluid
    assert whole.hybrid is first.hybrid is not None
    assert first.seconds < whole.seconds
    assert next(answers(Setting("swift"))).hybrid_why == "swift has no hybrid side"


def test_runs_that_nobody_waits_for_are_refused() -> None:
    with pytest.raises(InputError, match=r"until: 10s takes 1e\+07 steps"):
        views.fluid(Setting().scenario(), 10.0)


@pytest.mark.parametrize(("name", "value"), [("delay", "1e308s"), ("flows", "1e308"), ("initial_window", "1e308")])
def test_numbers_beyond_all_measure_are_refused(name: str, value: str) -> None:
    setting = Setting("hpcc").moved(name, value)
    with pytest.raises(InputError, match="a lag of up to"):
        next(answers(setting))
