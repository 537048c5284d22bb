"""Sweeps of the engines that draw random numbers: seeds, standard errors, and independence of all around a point."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import fluidcc as fc
from fluidcc.results.schema import METRICS
from fluidcc.studies.sweeps import replications

OVER = {"kmin": ["5KB", "20KB"], "g": [1 / 256, 1 / 64, 1 / 16]}
SEEDS = 3


def make(kmin: Any, g: Any) -> fc.Scenario:
    return fc.incast(2, marking=fc.RED(kmin, "200KB", "1%"), scheme=fc.DCQCN(g=g))


def swept(**options: Any) -> Any:
    return fc.sweep(make, OVER, **{"until": "5ms", "engine": "hybrid", "seeds": SEEDS, **options})


@pytest.fixture(scope="module")
def result() -> Any:
    return swept()


def test_a_point_is_the_mean_of_its_seeds(result: Any) -> None:
    """Against runs one by one: their means, standard errors, and pooled queue."""
    runs = [fc.simulate(make("20KB", 1 / 64), "5ms", engine="hybrid", seed=seed).summary for seed in (1, 2, 3)]
    point = result.dataset.sel(kmin=20e3, g=1 / 64)
    for name, of in {"queue_bytes.mean": lambda s: s["queue_bytes"]["mean"], "jain": lambda s: s["jain"]}.items():
        values = np.array([of(summary) for summary in runs])
        assert point[f"{name}_by_seed"].values == pytest.approx(values, rel=1e-12)
        assert float(point[name]) == pytest.approx(values.mean(), rel=1e-12)
        assert float(point[f"{name}_se"]) == pytest.approx(values.std(ddof=1) / 3**0.5, rel=1e-9)
    moments = [(s["queue_bytes"]["std"] ** 2 + s["queue_bytes"]["mean"] ** 2) for s in runs]
    pooled = np.mean(moments) - float(point["queue_bytes.mean"]) ** 2
    assert float(point["queue_bytes.std"]) == pytest.approx(pooled**0.5, rel=1e-9)
    assert float(point["queue_bytes.max"]) == max(s["queue_bytes"]["max"] for s in runs)
    assert point["rate_bytes_per_s"].values == pytest.approx(np.mean([s["rate_bytes_per_s"] for s in runs], axis=0))
    assert int(point["seeds"]) == SEEDS


def test_numbers_depend_on_nothing_around_a_point(result: Any) -> None:
    """Not on threads, chunks, or the other points: bit for bit."""
    alone = fc.sweep(make, {"kmin": ["20KB"], "g": [1 / 64]}, until="5ms", engine="hybrid", seeds=SEEDS, workers=1)
    for name in METRICS:
        assert np.array_equal(alone[name].values[0, 0], result[name].sel(kmin=20e3, g=1 / 64).values, equal_nan=True)
    threads = swept(workers=3)
    for name in (*METRICS, "rate_bytes_per_s", "queue_bytes.mean_by_seed"):
        assert np.array_equal(threads[name].values, result[name].values, equal_nan=True)


def test_a_store_can_be_gone_on_with(result: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(replications._CHUNK, "hybrid", 2)
    store = tmp_path / "s.zarr"
    swept(store=store)
    with xr.open_zarr(store) as kept:
        assert kept["queue_bytes.mean_by_seed"].shape == (2, 3, SEEDS)
        assert np.array_equal(kept["queue_bytes.mean"].values, result["queue_bytes.mean"].values)
    monkeypatch.setattr(replications, "run_points", lambda *_: pytest.fail("all is done"))
    monkeypatch.setattr(replications, "_warm_up", lambda *_: None)
    again = swept(store=store, resume=True)
    assert np.array_equal(again["utilisation"].values, result["utilisation"].values)
    with pytest.raises(fc.InputError, match="another sweep"):
        swept(store=store, resume=True, seeds=SEEDS + 1)


def test_seeds_stop_where_the_mean_is_precise_enough() -> None:
    found = fc.sweep(make, {"kmin": ["5KB"], "g": [1 / 256]}, until="20ms", engine="hybrid", seeds=40, precision=0.2)
    used = int(found["seeds"][0, 0])
    assert 4 <= used < 40
    mean, error = (float(found[name][0, 0]) for name in ("queue_bytes.mean", "queue_bytes.mean_se"))
    assert error <= 0.2 * mean
    assert np.isfinite(found["jain_by_seed"].values[0, 0]).sum() == used


def test_a_failing_point_has_its_reason_in_words() -> None:
    found = fc.sweep(make, {"kmin": ["5KB", "500KB"], "g": [1 / 256]}, until="1ms", engine="hybrid", seeds=1)
    assert found.failed == 1
    assert "kmin: 500KB exceeds kmax" in next(iter(found.reasons))
    assert np.isnan(found["queue_bytes.mean"].values[1, 0])
    assert np.isnan(found["queue_bytes.mean_se"].values).all()  # of one seed there is none


def test_packets_are_swept_in_the_same_way() -> None:
    over = {"kmin": ["5KB"], "g": [1 / 256, 1 / 16]}
    found = fc.sweep(make, over, until="1ms", engine="packet", seeds=2)
    one = fc.simulate(make("5KB", 1 / 16), "1ms", engine="packet", seed=2).summary
    assert float(found["queue_bytes.p95_by_seed"][0, 1, 1]) == one["queue_bytes"]["p95"]
    assert float(found["goodput_bytes_per_s_by_seed"][0, 1, 1]) == pytest.approx(sum(one["goodput_bytes_per_s"]))


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"engine": "hybrid", "seeds": 0}, "seeds: expected a whole number from 1"),
        ({"engine": "hybrid", "precision": 2.0}, "precision: "),
        ({"engine": "hybrid", "dt": "1us"}, "dt, rtol, method, dtype, memory: are the fluid's"),
        ({"engine": "fluid", "seeds": 4}, "seeds, precision: the fluid draws no random numbers"),
        ({"engine": "lattice"}, "engine: 'lattice' is unknown"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, Any], word: str) -> None:
    with pytest.raises(fc.InputError, match=word):
        fc.sweep(make, OVER, until="1ms", **options)


def test_a_delay_that_is_not_read_is_not_swept() -> None:
    def delayed(delay: Any) -> fc.Scenario:
        return fc.incast(2, scheme=fc.DCQCN(feedback_delay=delay))

    with pytest.raises(fc.InputError, match="fixed feedback_delay is swept, which the hybrid engine does not read"):
        fc.sweep(delayed, {"delay": ["10us", "50us"]}, until="1ms", engine="hybrid", seeds=1)


def test_a_point_that_nobody_waits_for_is_refused_alone() -> None:
    """A timer of a picosecond makes 4e10 events: its neighbour is run all the same."""
    found = fc.sweep(
        lambda timer: fc.incast(2, scheme=fc.DCQCN(timer=timer)),
        {"timer": ["55us", "1ps"]},
        until="20ms",
        engine="hybrid",
        seeds=1,
    )
    assert "timer: 0.001ns makes more events by 20ms" in next(iter(found.reasons))
    assert np.isfinite(found["queue_bytes.mean"].values).tolist() == [True, False]


def test_a_refused_point_has_no_runs_stored_or_not(tmp_path: Path) -> None:
    def make(kmin: float) -> fc.Scenario:
        return fc.incast(2, marking=fc.RED(kmin, "200KB", "1%"))

    over = {"kmin": ["5KB", "300KB"]}
    wheres: list[dict[str, Any]] = [{}, {"store": tmp_path / "s.zarr"}, {"store": tmp_path / "s.zarr", "resume": True}]
    for where in wheres:
        found = fc.sweep(make, over, until="1ms", engine="hybrid", seeds=2, **where)
        assert found["seeds"].values.tolist() == [2, 0]
