import math

import numpy as np
import pytest

from fluidcc.proofs.shared import slowdowns
from fluidcc.proofs.shared.slowdowns import Compared, difference, judged, kept_fabric, ratio
from fluidcc.proofs.verdict.figure import Figure

FIGURE = Figure("tiny", "a paper", "a figure", None)
EDGES = [0.0, 20e3, 60e3]


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kept")
    rows = [(0, 2, 0, "10KB"), (1, 2, 0, "50KB"), (2, 0, 0, "1KB")]
    return kept_fabric(FIGURE, folder, "hpcc,dcqcn", "leaf-spine:2x1x2", flows=rows, seeds=2), folder


def test_runs_are_kept_beside_the_figure(found, monkeypatch):
    study, folder = found
    assert len(list((folder / "tiny-runs").iterdir())) == 4
    monkeypatch.setattr("fluidcc.workloads.fabrics.study.run", None)  # not run again
    rows = [(0, 2, 0, "10KB"), (1, 2, 0, "50KB"), (2, 0, 0, "1KB")]
    again = kept_fabric(FIGURE, folder, "hpcc,dcqcn", "leaf-spine:2x1x2", flows=rows, seeds=2)
    for one, other in zip(study.runs, again.runs, strict=True):
        np.testing.assert_array_equal(one.slowdown["completion"].values, other.slowdown["completion"].values)


def test_interval_of_a_mean_log_ratio():
    # t(0.975, 2) = 4.3027; logarithms of 1/2, 1/4, 1/8 have the mean log 1/4 and the deviation log 2.
    compared = ratio(np.array([1.0, 1.0, 1.0]), np.array([2.0, 4.0, 8.0]))
    assert compared.value == pytest.approx(0.25)
    half = 4.302653 * math.log(2) / math.sqrt(3)
    assert compared.low == pytest.approx(0.25 * math.exp(-half), rel=1e-6)
    assert compared.high == pytest.approx(0.25 * math.exp(half), rel=1e-6)
    assert compared.below(2.0)
    assert compared.above(0.04)
    assert compared.below(1.0) is None  # to 1.4
    # Pairs with one ratio have no interval to speak of, however far apart seeds are.
    assert ratio(np.array([1.0, 10.0, 100.0]), np.array([2.0, 20.0, 200.0])).high == pytest.approx(0.5)
    assert difference(np.array([0.0, 0.0]), np.array([0.0, 0.0])).high == 0.0


def test_verdicts():
    assert Compared(0.9, 0.8, 0.99).below(1) is True
    assert Compared(1.1, 1.01, 1.2).below(1) is False
    assert Compared(1.0, 0.9, 1.1).below(1) is None
    assert Compared(1.0, float("nan"), float("nan")).below(1) is None  # one seed
    assert Compared(1.0, 0.97, 1.02).within(1.05) is True
    assert Compared(1.2, 1.1, 1.3).within(1.05) is False
    assert Compared(1.0, 0.9, 1.1).within(1.05) is None
    none = Compared(0.0, 0.0, 0.0)  # two that never paused
    assert none.above(0) is False
    assert none.below(0) is False
    values, notes = {}, []
    judged(values, notes, "round_trip_s", "", Compared(1.0, 0.5, 2.0), True)
    assert list(values) == [
        "round_trip_s",
        "round_trip_low_s",
        "round_trip_high_s",
        "round_trip_holds",
        "round_trip_fails",
    ]
    notes.clear()
    judged(values, notes, "a_ratio", "a is below b", Compared(0.5, 0.4, 0.6), True)
    judged(values, notes, "c_ratio", "c is below d", Compared(1.0, 0.4, 1.6), None)
    assert values["a_ratio_holds"] is True
    assert values["a_ratio_fails"] is False
    assert values["c_ratio_holds"] is False
    assert values["c_ratio_fails"] is False
    assert notes[0] == "a is below b: holds (0.5, 95 % interval 0.4 to 0.6)"
    assert "not decided" in notes[1]


def test_numbers_by_seed_and_their_data(found):
    study, _ = found
    small = slowdowns.by_seed(study, "hpcc", "mean", (0, 20e3))
    wanted = [run.slowdown["slowdown"].values[[0, 2]].mean() for run in study.of("hpcc")]
    np.testing.assert_allclose(small, wanted)
    assert np.isnan(slowdowns.by_seed(study, "hpcc", "p99", (60e3, 1e9))).all()
    latency = slowdowns.latency_by_seed(study, "hpcc", "p50", (0, 1e3))
    np.testing.assert_allclose(latency, [run.slowdown["completion"].values[2] for run in study.of("hpcc")])
    assert (slowdowns.paused(study, "dcqcn") == 0).all()
    data = slowdowns.data_of({"a list": study}, EDGES)
    assert data["bin_p95"].dims == ("traffic", "scheme", "seed", "bin")
    np.testing.assert_allclose(data["bin_mean"].sel(traffic="a list", scheme="hpcc").isel(bin=0), small)
    assert data["paused_s"].dims == ("traffic", "scheme", "tier", "seed")
    above = data["queue_above"].sel(traffic="a list", scheme="dcqcn").values
    assert (np.diff(above) >= 0).all()
    assert above[-1] > above[0]
    assert slowdowns.lacking({"a list": study}) == []


def test_unfinished_flows_are_named(tmp_path):
    rows = [(0, 2, 0, "1KB"), (1, 2, 0, "500MB")]
    study = kept_fabric(FIGURE, tmp_path, "hpcc", "leaf-spine:2x1x2", flows=rows, seeds=1, drain="20us")
    (line,) = slowdowns.lacking({"a list": study})
    assert line.startswith("a list, hpcc: 1 of 2 flows")
    assert "500000" in line


def test_a_seed_without_a_number_decides_nothing() -> None:
    """To leave it out would compare what happened to be there."""
    some, none = np.array([1.0, 1.1, 1.2]), np.array([0.5, 0.0, 0.6])
    for found in (ratio(none, some), ratio(some, none), difference(some, np.array([0.5, np.nan, 0.6]))):
        assert np.isnan(found.value)
        assert found.below(1.0) is found.above(1.0) is found.within(1.1) is None
    assert difference(none, some + 5).below(0.0) is True
