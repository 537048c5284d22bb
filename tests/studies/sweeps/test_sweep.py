"""Sweeps against single runs, bad points beside good ones, and interrupted sweeps."""

import json

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.compiling import functions
from fluidcc.engines.fluid.network import REASONS
from fluidcc.studies.sweeps import batch, run
from tests.shapes import full_columns, give_depth

__all__ = ["full_columns"]

# A sweep and a single run do the same operations in the same order; only vector lanes differ.
SAME = 1e-12
UNTIL = "3ms"


def make(kmin, g):
    return fc.incast(2, marking=fc.RED(kmin, "60KB", "5%"), scheme=fc.DCQCN(g=g), initial_rate=["40Gbps", "10Gbps"])


@pytest.fixture(scope="module", autouse=True)
def one_shape():
    """Make histories equally long, and chunks of two of six points, on machines of any number of cores."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "cores", lambda: 3)
        give_depth(patch)
        yield


OVER = {"kmin": ["5KB", "20KB", "50KB"], "g": ["1/256", "1/16"]}


@pytest.fixture(scope="module")
def result():
    return fc.sweep(make, OVER, until=UNTIL)


@pytest.mark.usefixtures("full_columns")
def test_each_point_equals_a_single_run(result):
    for kmin in result.dataset.kmin.values:
        for g in result.dataset.g.values:
            point = result.dataset.sel(kmin=kmin, g=g)
            summary = fc.simulate(make(float(kmin), float(g)), UNTIL, estimate_error=False).summary
            for name in ("mean", "std", "min", "max", "max_whole_run"):
                assert float(point[f"queue_bytes.{name}"]) == pytest.approx(summary["queue_bytes"][name], rel=SAME)
            for name in ("utilisation", "jain", "rate_gap_bytes_per_s"):
                assert float(point[name]) == pytest.approx(summary[name], rel=SAME)
            assert point["rate_bytes_per_s"].values == pytest.approx(summary["rate_bytes_per_s"], rel=SAME)


@pytest.mark.usefixtures("full_columns")
def test_percentiles_need_not_come_from_the_same_samples(result):
    # 500 samples in a sweep and 2000 in a run: within a hundredth of the range that the queue covers.
    point = result.dataset.sel(kmin=5e3, g=1 / 256)
    summary = fc.simulate(make(5e3, 1 / 256), UNTIL, estimate_error=False).summary["queue_bytes"]
    for name in ("p5", "p50", "p95", "p99"):
        assert float(point[f"queue_bytes.{name}"]) == pytest.approx(summary[name], abs=0.01 * summary["max"] + 1)


def test_the_scenario_is_built_once_and_nothing_recompiles_per_value():
    calls = []

    def counted(kmin, g):
        calls.append(kmin)
        return make(kmin, g)

    fc.sweep(counted, OVER, until=UNTIL, estimate_error=False)
    before = functions.made
    fc.sweep(counted, {"kmin": ["6KB", "21KB", "51KB"], "g": ["1/255", "1/15"]}, until="4ms", estimate_error=False)
    assert len(calls) == 2
    assert functions.made == before


def test_infeasible_points_are_nan_with_a_reason_and_leave_their_neighbours_alone(result):
    outside, exceeds = REASONS.index("out of range"), REASONS.index("kmin exceeds kmax")
    grids = (
        ({"kmin": ["5KB", "80KB", "20KB"], "g": ["1/256", "2"]}, [[0, outside], [exceeds, outside], [0, outside]]),
        ({"kmin": ["20KB", "-1B", "50KB"], "g": ["1/256", "1/16"]}, [[0, 0], [outside, outside], [0, 0]]),
    )
    for over, reasons in grids:
        mixed = fc.sweep(make, over, until=UNTIL, estimate_error=False)
        bad = np.array(reasons) != 0
        assert mixed["reason"].values.tolist() == reasons
        assert mixed.failed == bad.sum()
        found, alone = mixed["queue_bytes.mean"], result["queue_bytes.mean"]
        assert np.isnan(found.values[bad]).all()
        for i, j in np.argwhere(~bad):
            assert found.values[i, j] == float(alone.sel(kmin=found.kmin[i], g=found.g[j])), over


def test_all_points_infeasible_is_an_answer():
    over = {"kmin": ["70KB", "80KB", "90KB"], "g": ["1/256", "1/16"]}
    nothing = fc.sweep(make, over, until=UNTIL, estimate_error=False)
    assert nothing.failed == 6
    assert nothing.best()["value"] is None


@pytest.mark.usefixtures("full_columns")
def test_lags_may_be_swept():
    lags = [45e-6, 50e-6, 55.5e-6]
    swept = fc.sweep(lambda lag: fc.incast(2, feedback_delay=lag), {"lag": lags}, until=UNTIL, estimate_error=False)
    for lag in lags:
        alone = fc.simulate(fc.incast(2, feedback_delay=lag), UNTIL, dt="1us", estimate_error=False).summary
        # The single run fits its step to the lag, the sweep interpolates: equal to the error of the step.
        found = float(swept["queue_bytes.max_whole_run"].sel(lag=lag))
        assert found == pytest.approx(alone["queue_bytes"]["max_whole_run"], rel=2e-3)


@pytest.mark.usefixtures("full_columns")
def test_flows_are_swept_by_multiplicity():
    swept = fc.sweep(lambda n: fc.incast(1, multiplicity=n), {"n": [2, 4]}, until=UNTIL, estimate_error=False)
    for n in (2, 4):
        two = fc.incast(2, multiplicity=n / 2)
        alone = fc.simulate(two, UNTIL, estimate_error=False).summary["queue_bytes"]["max_whole_run"]
        assert float(swept["queue_bytes.max_whole_run"].sel(n=n)) == pytest.approx(alone, rel=1e-9)


def test_path_delays_with_queueing_may_be_swept():
    swept = fc.sweep(
        lambda delay: fc.parking_lot(3, delay=delay, scheme=fc.DCQCN(feedback_delay=None)),
        {"delay": ["1us", "3us"]},
        until=UNTIL,
        estimate_error=False,
    )
    alone = fc.simulate(
        fc.parking_lot(3, delay="3us", scheme=fc.DCQCN(feedback_delay=None)), UNTIL, estimate_error=False
    ).summary
    assert float(swept["queue_bytes.max_whole_run"][1]) == pytest.approx(
        alone["queue_bytes"]["max_whole_run"], rel=1e-9
    )


def test_chunks_and_threads_do_not_change_the_result(result, monkeypatch):
    monkeypatch.setattr(run, "chunk_size", lambda *_: 2)
    more = {"kmin": OVER["kmin"], "g": [*OVER["g"], "1/64"]}  # 9 points: the fifth chunk is padded
    again = fc.sweep(make, more, until=UNTIL, workers=2, estimate_error=False).dataset.isel(g=slice(2))
    for name in ("queue_bytes.mean", "rate_bytes_per_s", "reason"):
        np.testing.assert_allclose(again[name].values, result[name].values, rtol=SAME)


def test_a_sweep_that_was_interrupted_goes_on(result, tmp_path, monkeypatch):
    monkeypatch.setattr(run, "chunk_size", lambda *_: 2)
    real, done = batch.run_chunk, []

    def failing(*arguments, **options):
        if done:
            raise KeyboardInterrupt
        done.append(1)
        return real(*arguments, **options)

    monkeypatch.setattr(run, "run_chunk", failing)
    with pytest.raises(KeyboardInterrupt):
        fc.sweep(make, OVER, until=UNTIL, store=tmp_path / "s.zarr", workers=1, estimate_error=False)
    monkeypatch.setattr(run, "run_chunk", lambda *a, **options: done.append(1) or real(*a, **options))
    resumed = fc.sweep(make, OVER, until=UNTIL, store=tmp_path / "s.zarr", resume=True, estimate_error=False)
    assert len(done) == 3  # of two points each: one before, two after
    np.testing.assert_allclose(resumed["queue_bytes.mean"].values, result["queue_bytes.mean"].values, rtol=SAME)


def test_a_store_is_not_overwritten_nor_mixed_up(tmp_path):
    fc.sweep(make, OVER, until=UNTIL, store=tmp_path / "s.zarr", estimate_error=False)
    with pytest.raises(fc.InputError, match="resume"):
        fc.sweep(make, OVER, until=UNTIL, store=tmp_path / "s.zarr")
    with pytest.raises(fc.InputError, match="another sweep"):
        fc.sweep(make, OVER, until="4ms", store=tmp_path / "s.zarr", resume=True)
    (tmp_path / "t.zarr").mkdir()
    with pytest.raises(fc.InputError, match="no sweep's store"):
        fc.sweep(make, OVER, until=UNTIL, store=tmp_path / "t.zarr", resume=True)


def test_dask_gives_the_same(result):
    distributed = pytest.importorskip("distributed", reason="Dask is an optional extra")
    with distributed.Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None) as client:
        again = fc.sweep(make, OVER, until=UNTIL, dask=client, estimate_error=False)
    np.testing.assert_allclose(again["queue_bytes.mean"].values, result["queue_bytes.mean"].values, rtol=SAME)


def test_best_rank_and_files(result, tmp_path):
    best = result.best("utilisation", minimise=False)
    assert best["value"] == float(result["utilisation"].max())
    least = result.best(subject_to=())
    assert result.rank({name: least[name] for name in ("kmin", "g")}, subject_to=())[0] == 1
    with pytest.raises(fc.InputError, match="metric"):
        result.best("speed")
    assert result.save(tmp_path / "s.csv").read_text().count("\n") == 7
    import xarray as xr

    with xr.open_dataset(result.save(tmp_path / "s.nc"), engine="h5netcdf") as loaded:
        assert loaded["queue_bytes.mean"].attrs["units"] == "bytes"
        assert loaded.sizes == {"kmin": 3, "g": 2, "flow": 2}
    with pytest.raises(fc.InputError, match="ends in"):
        result.save(tmp_path / "s.txt")


def test_branching_on_a_swept_value_is_explained():
    def branches(kmin):
        return make(kmin if kmin > 10e3 else 10e3, "1/256")

    for bad in (branches, lambda kmin: make(float(kmin), "1/256")):
        with pytest.raises(fc.InputError, match="called once"):
            fc.sweep(bad, {"kmin": ["5KB", "20KB"]}, until=UNTIL)
    with pytest.raises(fc.InputError, match="multiplicity"):
        fc.sweep(lambda n: fc.incast(n), {"n": [2, 4]}, until=UNTIL)


def test_errors_of_the_step_are_reported_and_shrink_with_it():
    over = {"kmin": ["5KB", "10KB", "20KB"], "g": ["1/256", "1/64"]}
    errors = []
    for dt in ("1us", "0.5us"):
        attrs = fc.sweep(make, over, until=UNTIL, window=("0s", UNTIL), dt=dt).dataset.attrs
        errors.append((attrs["discretisation_error.queue_rel"], attrs["discretisation_error.rate_rel"]))
    assert all(0 < fine < coarse < 0.05 for coarse, fine in zip(*errors, strict=True))


def test_pictures(result, tmp_path):
    heat = result.plot().write(tmp_path / "heat.png")
    line = result.isel(kmin=0).plot("jain")
    assert heat.read_bytes().startswith(b"\x89PNG")
    assert line._repr_png_().startswith(b"\x89PNG")
    axis = line.axes[0]
    assert axis.get_xlabel() == "g"
    assert json.dumps([t.get_text() for t in axis.get_xticklabels()])


def test_float32_is_close():
    single = fc.sweep(make, OVER, until=UNTIL, dtype="float32", estimate_error=False)
    double = fc.sweep(make, OVER, until=UNTIL, estimate_error=False)
    # 3000 steps of rounding at 6e-8 each, times the stiffness of a queue that integrates rates.
    np.testing.assert_allclose(single["utilisation"], double["utilisation"], rtol=1e-3)


def test_points_that_wait_long_are_as_alone(monkeypatch):
    """Eight flows of patched TIMELY start at line rate: 15 ms in the queue, where the sweep holds 1 ms at first."""
    give_depth(monkeypatch, 0)  # no more than is asked for

    def make(n):
        return fc.incast(1, rate="10Gbps", multiplicity=n, scheme=fc.TIMELY(patched=True, beta=0.008))

    swept = fc.sweep(make, {"n": [2.0, 8.0]}, until="30ms", workers=1, estimate_error=False).dataset
    for n in (2.0, 8.0):
        alone = fc.simulate(make(n), "30ms", estimate_error=False).summary["queue_bytes"]
        assert float(swept["queue_bytes.max_whole_run"].sel(n=n)) == pytest.approx(alone["max_whole_run"], rel=1e-9)
        assert float(swept["queue_bytes.mean"].sel(n=n)) == pytest.approx(alone["mean"], rel=1e-9)
    assert float(swept["queue_bytes.max_whole_run"].sel(n=8.0)) > 5e-3 * 1.25e9
