"""Fluid against packets: differences by their definitions on made-up traces, and one real run."""

import dataclasses
import json

import numpy as np
import pytest
import xarray as xr

import fluidcc as fc
from fluidcc.builders.toml_file import to_toml
from fluidcc.contract.tolerance import Tolerance
from fluidcc.results.comparison import tolerances_of
from fluidcc.results.metrics import drain_time

END = 20e-3
TIMES = np.linspace(0, END, 1001)


def made(scenario, queue, rates, *, seed=None, times=TIMES, window=None, **more):
    """A trace of given samples, with the summary that an engine would give it."""
    names = [link.name for link in scenario.links]
    variables = {
        "queue": (("time", "link"), np.stack([queue] * len(names), axis=1), {"units": "bytes"}),
        "rate": (("time", "flow"), np.stack(rates, axis=1), {"units": "bytes/s"}),
    }
    if window is not None:
        variables["window"] = (("time", "flow"), np.stack([window] * len(rates), axis=1), {"units": "bytes"})
    coordinates = {
        "time": times,
        "link": names,
        "flow": [flow.name for flow in scenario.flows],
        "multiplicity": ("flow", [flow.multiplicity for flow in scenario.flows]),
    }
    half = times >= END / 2
    statistics = {"mean": queue[half].mean(), "p95": np.percentile(queue[half], 95), "max_whole_run": queue.max()}
    summary = {
        "engine": "fluid" if seed is None else "packet",
        "scheme": scenario.flows[0].scheme.name,
        "flows": len(rates),
        "window_s": [END / 2, END],
        "queue_bytes": statistics,
        "links": [{"name": name, "queue_bytes": statistics, "utilisation": 1.0} for name in names],
        "rate_bytes_per_s": [float(rate[half].mean()) for rate in rates],
        "jain": 1.0,
        "fct_s": [None],
        **more,
    }
    if seed is not None:
        summary["seed"] = seed
    attrs = {"scenario": to_toml(scenario), "summary": json.dumps(summary), "title": "made, fluid engine"}
    return fc.Trace(xr.Dataset(variables, coordinates, attrs))


INCAST = fc.incast(2)
FAIR = 2.5e9


def approach(rate=FAIR, constant=2e-3, amplitude=1.0):
    """Rates of two flows that approach each other from 40 and 0 Gb/s."""
    apart = amplitude * rate * np.exp(-TIMES / constant)
    return [rate + apart, rate - apart]


FLUID = made(INCAST, np.full(1001, 20e3), approach())
FLUID_AS_PACKETS = made(INCAST, np.full(1001, 20e3), approach(), seed=1)


def test_equal_traces_do_not_differ():
    found = fc.compare(FLUID, [made(INCAST, np.full(1001, 20e3), approach(), seed=s) for s in (1, 2)])
    expected = dict.fromkeys(("queue_mean_rel", "queue_p95_rel", "queue_peak_rel", "rate_rel_max", "jain_abs"), 0.0)
    assert found.difference.items() >= {**expected, "drain_time_rel": None, "window_rel": None}.items()
    assert found.difference["settling_time_rel"] == pytest.approx(0)
    assert found.within
    assert found.packet["seeds"] == [1, 2]
    assert "seeds" not in found.fluid


def test_the_fluid_is_compared_with_the_mean_over_the_seeds():
    runs = [made(INCAST, np.full(1001, q), approach(rate), seed=s)
            for s, q, rate in ((3, 24e3, 1.1 * FAIR), (4, 26e3, 1.3 * FAIR))]  # fmt: skip
    found = fc.compare(FLUID, runs)
    assert found.difference["queue_mean_rel"] == pytest.approx(5 / 25)
    assert found.difference["rate_rel_max"] == pytest.approx(0.2 / 1.2, rel=1e-2)
    assert found.packet["queue_bytes"]["mean"] == pytest.approx(25e3)
    assert found.spread["queue_bytes"]["mean"] == pytest.approx({"std": 1e3, "min": 24e3, "max": 26e3})
    assert found.packet["scheme"] == "dcqcn"
    assert found.packet["flows"] == 2
    assert found.packet["fct_s"] == [None]
    assert not found.within  # 17 % of the rates, 5 % allowed
    assert found.sizes == {"time": 1001, "flow": 2, "seed": 2}


def test_a_queue_below_a_packet_is_measured_by_a_packet():
    found = fc.compare(made(INCAST, np.full(1001, 10.0), approach()), made(INCAST, np.zeros(1001), approach(), seed=1))
    assert found.difference["queue_mean_rel"] == pytest.approx(0.01)


def test_drain_time_is_counted_from_the_start_of_the_run():
    times = np.linspace(0, 200e-6, 201)
    queue = np.interp(times, [0, 6e-6, 91e-6, 200e-6], [0, 850e3, 0, 0])

    def of(values):
        return drain_time(xr.DataArray(values, dims="time", coords={"time": times}))

    assert of(queue) == pytest.approx((6 + 0.95 * 85) * 1e-6)
    # What stays below a twentieth of the peak need not go to zero.
    assert of(np.maximum(queue, 0.04 * 850e3)) == pytest.approx((6 + 0.95 * 85) * 1e-6)
    assert of(np.zeros(201)) is None
    assert of(np.maximum(queue, 100e3)) is None


def test_settling_time_is_that_of_the_mean_over_seeds_smoothed():
    found = fc.compare(FLUID, made(INCAST, np.full(1001, 20e3), approach(constant=4e-3), seed=1), smoothing="20us")
    # The gap, 2 exp(-t / 2 ms) of the fair rate, is a tenth of it after 2 ms ln 20.
    assert found.fluid["settling_time_s"] == pytest.approx(2e-3 * np.log(20), rel=1e-2)
    assert found.packet["settling_time_s"] == pytest.approx(4e-3 * np.log(20), rel=1e-2)
    assert found.difference["settling_time_rel"] == pytest.approx(0.5, rel=1e-2)
    # A mean over a width w belongs to its middle; there the gap is sinh(h)/h times itself, h = w / (2 * 2 ms).
    wide = fc.compare(FLUID, FLUID_AS_PACKETS, smoothing="1ms").fluid["settling_time_s"]
    assert wide == pytest.approx(2e-3 * np.log(20 * np.sinh(0.25) / 0.25), rel=1e-2)
    draw = np.random.default_rng(1)
    noisy = [made(INCAST, np.full(1001, 20e3), [r + draw.normal(0, 0.1 * FAIR, 1001) for r in approach()], seed=s)
             for s in range(8)]  # fmt: skip
    found = fc.compare(FLUID, noisy, smoothing="1ms")
    assert found.difference["settling_time_rel"] is not None
    assert found.difference["settling_time_rel"] < 0.05
    with_start = dataclasses.replace(INCAST, flows=(INCAST.flows[0], dataclasses.replace(INCAST.flows[1], start=1e-3)))
    late = made(with_start, np.full(1001, 20e3), approach())
    assert fc.compare(late, late, smoothing="20us").fluid["settling_time_s"] == pytest.approx(
        2e-3 * np.log(20) - 1e-3, rel=1e-2
    )


def test_what_only_one_side_has_differs_infinitely_and_what_none_has_not_at_all():
    never = made(INCAST, np.full(1001, 20e3), approach(constant=1.0), seed=1)
    found = fc.compare(FLUID, never)
    assert found.packet["settling_time_s"] is None
    assert found.difference["settling_time_rel"] == np.inf
    assert not found.within
    told = found.as_dict()
    assert told["difference"]["settling_time_rel"] is None
    assert told["one_only"] == ["settling_time_rel"]
    assert told["within"] is False
    json.dumps(told, allow_nan=False)
    neither = made(INCAST, np.full(1001, 20e3), approach(constant=1.0))
    assert fc.compare(neither, never).difference["settling_time_rel"] is None
    together = made(INCAST, np.full(1001, 20e3), approach(amplitude=0.0))
    assert fc.compare(together, never).difference["settling_time_rel"] is None  # noise has nowhere to settle from
    alone = fc.incast(1)
    single = made(alone, np.full(1001, 20e3), approach()[:1])
    assert fc.compare(single, single).difference["settling_time_rel"] is None


def test_runs_of_other_scenarios_are_refused():
    with pytest.raises(fc.InputError, match=r"^first: this trace is of the packet engine; give the fluid's"):
        fc.compare(FLUID_AS_PACKETS, FLUID)
    for scenario, what in (
        (fc.incast(2, scheme="hpcc"), "schemes"),
        (fc.incast(2, rate="100Gbps"), "links"),
        (fc.incast(2, start=["0", "1ms"]), "flows"),
        (fc.incast(2, packet_size="500B"), "networks"),
    ):
        with pytest.raises(fc.InputError, match=f"the traces differ in their {what}; give two runs of the same"):
            fc.compare(FLUID, made(scenario, np.full(1001, 20e3), approach(), seed=1))
    other = fc.incast(2, scheme=fc.DCQCN(win=True))
    assert fc.compare(FLUID, made(other, np.full(1001, 20e3), approach(), seed=1)).within is True


def test_window_and_tolerances_of_hpcc():
    scenario = fc.incast(2, rate="100Gbps", scheme=fc.HPCC())
    ours = made(scenario, np.full(1001, 1e3), approach(), window=np.where(TIMES < END / 2, 9e9, 3.3e3))
    theirs = made(scenario, np.full(1001, 1e3), approach(), window=np.where(TIMES < END / 2, 1.0, 3e3), seed=1)
    found = fc.compare(ours, theirs)
    assert found.difference["window_rel"] == pytest.approx(0.1, rel=1e-3)
    assert not found.within
    assert found.tolerance.keys() == {"queue_peak_rel", "drain_time_rel", "window_rel"}


def test_without_a_comparison_there_is_no_verdict():
    """No tolerance for several links, or nothing on either side of what has one."""
    lot = fc.parking_lot(3)
    several = made(lot, np.full(1001, 20e3), [*approach(), approach()[0]])
    found = fc.compare(several, several)
    assert found.tolerance == {}
    assert found.within is None
    assert found.as_dict()["within"] is None
    assert "not judged" in repr(found)
    same = fc.compare(FLUID, FLUID_AS_PACKETS)
    nothing = dict.fromkeys(same.difference)
    assert dataclasses.replace(same, difference=nothing).within is None
    assert dataclasses.replace(same, difference=nothing | {"rate_rel_max": 0.01}).within is True
    assert dataclasses.replace(same, difference=nothing | {"rate_rel_max": 0.06}).within is False


def test_what_was_judged_is_said_and_the_worst_that_was_not():
    """Within tolerance, with the 95th percentile 55 % off: nobody sets a tolerance of that."""
    same = fc.compare(FLUID, FLUID_AS_PACKETS)
    off = dict.fromkeys(same.difference, 0.01) | {"queue_p95_rel": 0.55}
    found = dataclasses.replace(same, difference=off)
    found = dataclasses.replace(
        found, tolerance={key: t for key, t in same.tolerance.items() if key != "queue_p95_rel"}
    )
    assert found.within is True
    assert found.worst_not_judged == ("queue_p95_rel", 0.55)
    assert "within tolerance, by queue_mean_rel" in repr(found)
    assert "without a tolerance, queue_p95_rel differs most: 0.55" in repr(found)
    assert found.as_dict()["judged"] == found.judged == [*found.tolerance]
    everything = dict.fromkeys(same.difference, Tolerance(1.0, "made"))
    assert dataclasses.replace(found, tolerance=everything).worst_not_judged is None


def test_tolerances_are_the_schemes_own():
    assert tolerances_of(fc.incast(4))["queue_mean_rel"].value == 0.2
    assert tolerances_of(fc.incast(2, multiplicity=4))["queue_mean_rel"].value == 0.35
    assert tolerances_of(fc.parking_lot(3)) == {}
    mixed = fc.incast(2)
    other = dataclasses.replace(mixed.flows[1], scheme=fc.HPCC())
    assert tolerances_of(dataclasses.replace(mixed, flows=(mixed.flows[0], other))) == {}
    every = {**tolerances_of(fc.incast(2)), **tolerances_of(fc.incast(2, scheme=fc.HPCC()))}
    assert all(isinstance(each, Tolerance) and each.value > 0 and each.reason for each in every.values())
    assert every.keys() <= fc.compare(FLUID, FLUID).difference.keys()


def test_traces_on_other_times_are_brought_to_common_ones():
    times = np.linspace(0, END, 4001)
    apart = FAIR * np.exp(-times / 2e-3)
    finer = made(INCAST, 20e3 * times / END, [FAIR + apart, FAIR - apart], times=times)
    found = fc.compare(finer, made(INCAST, 20e3 * TIMES / END, approach(), seed=1))
    assert np.allclose(found["queue_fluid"], found["queue_packet"][0])
    assert np.allclose(found["rate_fluid"], found["rate_packet"][0])


def test_what_cannot_be_compared():
    with pytest.raises(fc.InputError, match="differ in their flow"):
        fc.compare(FLUID, made(fc.incast(1), np.zeros(1001), approach()[:1], seed=1))
    with pytest.raises(fc.InputError, match=r"the windows are 10ms:20ms and 5ms:20ms"):
        fc.compare(FLUID, made(INCAST, np.zeros(1001), approach(), seed=1, window_s=[5e-3, END]))
    with pytest.raises(fc.InputError, match="no trace"):
        fc.compare(FLUID, [])
    for seeds in (0, []):
        with pytest.raises(fc.InputError, match="seeds"):
            fc.ensemble(INCAST, "1ms", seeds)


@pytest.mark.parametrize("flows", [2, 20])
def test_the_picture_has_both_engines_and_units(flows):
    scenario = fc.incast(flows)
    rates = approach() * (flows // 2)
    ours = made(scenario, np.full(1001, 20e3), rates)
    picture = fc.compare(ours, [made(scenario, np.full(1001, 22e3), rates, seed=s) for s in (1, 2)]).plot()
    top, bottom = picture.axes
    assert top.get_ylabel() == "queue [KB]"
    assert bottom.get_ylabel().endswith("[Gbps]")
    assert bottom.get_xlabel() == "time [ms]"
    names = [text.get_text() for text in top.get_legend().get_texts()]
    assert names == ["packets, range of 2 seeds", "packets, standard deviation", "packets, mean", "fluid"]


def test_both_engines_for_real():
    options = {"sample_interval": "10us", "window": "5ms:20ms"}
    scenario = fc.incast(2, initial_rate=["40Gbps", 0], size="1GB")
    runs = fc.ensemble(scenario, "20ms", seeds=2, **options)
    found = fc.compare(fc.simulate(scenario, "20ms", **options), runs)
    assert found.packet["seeds"] == [1, 2]
    assert found.packet["rate_bytes_per_s"][0] > found.packet["rate_bytes_per_s"][1]
    assert found.difference["queue_peak_rel"] > 0  # the seeds' marks are not the fluid's mean
    assert found.spread["queue_bytes"]["mean"]["std"] > 0
    assert json.dumps(found.as_dict())


def test_where_nothing_is_sent_in_the_window_nothing_is_compared() -> None:
    """Both flows ended long before: 0 against 0 is no agreement."""
    scenario = fc.incast(2, initial_rate=["40Gbps", "20Gbps"], size="1KB")
    found = fc.compare(fc.simulate(scenario, "200us"), fc.simulate(scenario, "200us", engine="packet"))
    assert found.difference["rate_rel_max"] is None
    assert found.difference["queue_mean_rel"] is None
    assert found.within is None


# -- edges -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("samples", "compared"), [(9.0, False), (10.5, True)])
def test_a_queue_that_drains_within_ten_samples_is_not_compared(samples: float, compared: bool) -> None:
    """Queues from a peak at the start, in steps of 20 us; packets take twice as long."""
    first, second = (np.maximum(850e3 * (1 - 0.95 * TIMES / (end * 20e-6)), 0) for end in (samples, 2 * samples))
    found = fc.compare(made(INCAST, first, approach()), made(INCAST, second, approach(), seed=1))
    assert found.fluid["drain_time_s"] == pytest.approx(samples * 20e-6)
    assert found.difference["drain_time_rel"] == (pytest.approx(0.5) if compared else None)


def test_rates_are_averaged_over_a_fiftieth_of_the_run_unless_told_otherwise() -> None:
    assert fc.compare(FLUID, FLUID_AS_PACKETS).attrs["smoothing_s"] == pytest.approx(END / 50)
    assert fc.compare(FLUID, FLUID_AS_PACKETS, smoothing="1ms").attrs["smoothing_s"] == pytest.approx(1e-3)


def test_two_runs_of_one_engine_have_names_of_their_own() -> None:
    found = fc.compare(FLUID, FLUID)
    assert found.engines == ("fluid", "fluid_2")
    assert {"queue_fluid", "queue_fluid_2"} <= set(found.dataset.data_vars)
    assert fc.compare(FLUID, FLUID_AS_PACKETS).engines == ("fluid", "packet")


def test_the_link_with_the_longest_mean_queue_is_compared_and_seeds_are_told() -> None:
    lot = fc.parking_lot(3)
    assert len(lot.links) > 1
    rates = [np.full(1001, FAIR)] * len(lot.flows)
    longer = made(lot, np.full(1001, 20e3), rates)
    summary = longer.summary
    summary["links"][-1]["queue_bytes"] = summary["links"][-1]["queue_bytes"] | {"mean": 30e3}
    summary["links"][0]["queue_bytes"] = summary["links"][0]["queue_bytes"] | {"mean": None}
    longer = fc.Trace(longer.dataset.assign_attrs(summary=json.dumps(summary)))
    found = fc.compare(longer, [made(lot, np.full(1001, 20e3), rates, seed=seed) for seed in (5, 6)])
    assert found.attrs["link"] == lot.links[-1].name
    assert found.packet["seeds"] == [5, 6]
    assert "seeds" not in found.fluid


def test_parts_of_runs_and_nothing_at_all_are_refused() -> None:
    part = fc.Trace(FLUID.dataset.isel(flow=[0]))
    with pytest.raises(fc.InputError, match="compare: the traces are parts of runs"):
        fc.compare(part, part)
    for first, second, name in (([], FLUID, "first"), (FLUID, [], "second")):
        with pytest.raises(fc.InputError, match=f"{name}: there is no trace"):
            fc.compare(first, second)
    with pytest.raises(fc.InputError, match="this trace is of the packet engine"):
        fc.compare(FLUID_AS_PACKETS, FLUID)


def test_a_comparisons_table_names_what_was_judged() -> None:
    rows = dict(fc.compare(FLUID, FLUID_AS_PACKETS)._rows())
    assert rows["judged"] != "nothing"
    assert any("(allowed 0.2)" in value for value in rows.values())
    none = dataclasses.replace(fc.compare(FLUID, FLUID_AS_PACKETS), tolerance={})
    assert dict(none._rows())["judged"] == "nothing"


@pytest.mark.parametrize(
    ("first", "says"), [(5, "5 is no trace"), ([], "there is no trace"), (["a"], "'a' is no trace")]
)
def test_what_is_no_trace_is_refused(first, says):
    with pytest.raises(fc.InputError, match=f"^first: {says}"):
        fc.compare(first, first)
