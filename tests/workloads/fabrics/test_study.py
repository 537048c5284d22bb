"""Studies of fabrics: runs side by side, their intervals, what is kept and what interrupts."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.workloads.fabrics import FlowList, named_topology, study
from fluidcc.workloads.fabrics.run import read_run
from fluidcc.workloads.fabrics.run_cache import kept_or_made
from fluidcc.workloads.fabrics.study import interval, intervals_of, spread

SHAPE = "leaf-spine:2x1x4"
LISTED = FlowList(np.array([[0, 4, 0, 1e3]]), 2.0, np.array([3]), np.array([100]))
ROWS = [(0, 4, 0.0, 50_000), (1, 4, 0.0, 50_000), (2, 5, 10e-6, 3_000), (6, 1, 0.0, 200_000)]


def test_a_run_is_the_engines() -> None:
    """The same completion times as by hand, and its queues are those of the summary."""
    found = fc.fabric("hpcc", SHAPE, flows=ROWS)
    preset = fc.preset("hpcc", "hpcc-eval")
    scenario = named_topology(SHAPE).scenario(ROWS, ecmp_seed=1, **preset.options())
    until = found.runs[0].numbers["horizon_s"]
    trace = fc.simulate(scenario, until, window=found.runs[0].numbers["window_s"], engine="packet", seed=1)
    ours = found.runs[0].slowdown
    assert ours["completion"].values.tolist() == trace.summary["fct_s"]
    np.testing.assert_array_equal(ours["slowdown"], fc.fabrics.slowdown(scenario, trace)["slowdown"])
    means = [link["queue_bytes"]["mean"] for link in trace.summary["links"]]
    numbers = found.runs[0].numbers
    assert numbers["queue_bytes"]["mean"] == pytest.approx(np.mean(means), rel=1e-9)
    assert numbers["queue_bytes"]["max"] == max(link["queue_bytes"]["max"] for link in trace.summary["links"])
    assert numbers["goodput_bytes_per_s"] == pytest.approx(sum(trace.summary["goodput_bytes_per_s"]), rel=1e-9)
    lengths, share = found.runs[0].queue
    assert share.sum() == pytest.approx(1)
    assert (lengths * share).sum() == pytest.approx(numbers["queue_bytes"]["mean"], rel=1e-9)


def test_schemes_have_the_same_flows_seed_by_seed() -> None:
    found = fc.fabric("hpcc,dctcp", SHAPE, workload="hadoop", load=0.3, until="100us", seeds=[3, 8])
    assert (found.schemes, found.seeds) == (["hpcc", "dctcp"], [3, 8])
    sizes = [each.slowdown["size"].values for each in found.runs]
    assert np.array_equal(sizes[0], sizes[2])
    assert np.array_equal(sizes[1], sizes[3])
    assert not np.array_equal(sizes[0], sizes[1])
    table = found.statistics()
    assert table["mean"].dims == ("scheme", "seed")
    bins = found.bins(4)
    assert bins.sizes == {"scheme": 2, "seed": 2, "bin": 4}
    assert (bins["flows"].sum("bin") == table["flows"]).all()
    assert len(np.unique(bins["to_bytes"].values.reshape(-1, 4), axis=0)) == 1


def test_threads_change_nothing() -> None:
    options: dict[str, Any] = {"workload": "hadoop", "load": 0.5, "until": "50us", "seeds": 3}
    one, four = (fc.fabric("dcqcn", SHAPE, threads=threads, **options) for threads in (1, 4))
    for a, b in zip(one.runs, four.runs, strict=True):
        assert a.slowdown.identical(b.slowdown)
        assert np.array_equal(a.queue, b.queue)


def test_intervals_are_students() -> None:
    """Against the table: t of 4 degrees of freedom is 2.776."""
    values = [1.0, 2.0, 3.0, 4.0, 5.0]
    half = 2.776445 * math.sqrt(2.5) / math.sqrt(5)
    assert interval(values) == pytest.approx((3.0, 3 - half, 3 + half), rel=1e-6)
    assert interval([1.0, 3.0]) == pytest.approx((2.0, 2 - 12.706205, 2 + 12.706205), rel=1e-6)  # of 1 degree
    assert interval([1.0, float("nan"), 3.0]) == interval([1.0, 3.0])
    assert interval([2.0])[0] == 2.0
    assert np.isnan(interval([2.0])[1:]).all()
    assert np.isnan(interval([float("nan")])).all()


def test_an_interval_of_a_positive_number_stays_positive() -> None:
    """By Student's t of the logarithm: of 2 degrees of freedom it is 4.303."""
    found = spread([1.0, 2.0, 9.0])
    half = 4.302653 * math.sqrt(19.0) / math.sqrt(3)  # beyond the mean: Student's own interval is -6.8 to 14.8
    assert half > 4.0
    assert list(found.values()) == pytest.approx([4.0, 4 * math.exp(-half / 4), 4 * math.exp(half / 4)], rel=1e-6)
    near = spread([99.9, 100.0, 100.1, 100.2])
    assert list(near.values()) == pytest.approx(interval([99.9, 100.0, 100.1, 100.2]), rel=1e-5)
    assert list(spread([0.0, 0.0, 0.0]).values()) == [0.0, 0.0, 0.0]


def test_an_interval_of_a_share_stays_below_one() -> None:
    """By the logit, whose derivative is 1 / (x (1 - x)), worked out with its own inverse."""
    values = [0.7, 0.95, 0.999, 0.9]
    mean, _, high = interval(values)
    assert high > 1
    logit, half = math.log(mean / (1 - mean)), (high - mean) / (mean * (1 - mean))
    ends = [1 / (1 + math.exp(-(logit + sign * half))) for sign in (-1, 1)]
    assert list(spread(values, 1.0).values()) == pytest.approx([mean, *ends])
    assert list(spread([1.0, 1.0, 1.0], 1.0).values()) == [1.0, 1.0, 1.0]


def test_two_seeds_have_no_interval() -> None:
    found = spread([1.0, float("nan"), 3.0])
    assert found["mean"] == 2.0
    assert np.isnan([found["low"], found["high"]]).all()
    assert intervals_of(1, "with them") == "one seed"
    assert intervals_of(2, "with them") == "2 seeds: no interval below 3"
    assert intervals_of(3, "with them") == "3 seeds (with them)"


def test_what_does_not_finish_is_counted_and_named() -> None:
    found = fc.fabric("none", SHAPE, flows=[*ROWS, (3, 7, 0.0, 10**9)], drain="1ms")
    document = found.as_dict()["runs"][0]
    assert (document["flows"], document["unfinished"], document["unfinished_flows"]) == (5, 1, ["flow 4"])
    assert document["slowdown"]["p999"] < 10
    (together,) = found.as_dict()["schemes"]
    assert (together["flows"], together["unfinished"]) == (5, 1)


def test_who_is_paused() -> None:
    """Four senders into one: the sender of the other leaf is held by its ToR, over the spine."""
    rows = [(h, 4, 0.0, 1e6) for h in (0, 1, 2, 5)]
    options: dict[str, Any] = {"pfc": fc.PFC("20KB"), "buffer": "8MB"}
    found = fc.fabric("none", SHAPE, flows=rows, **options)
    numbers = found.runs[0].numbers
    assert sum(numbers["pauses"].values()) == numbers["pfc_pauses"] > 0
    assert list(numbers["pauses"]) == ["hosts", "tier 1", "tier 2"]
    assert numbers["paused_s"]["hosts"] > 0
    assert numbers["paused_s"]["tier 2"] > 0
    assert found.runs[0].slowdown.unfinished == 0


def test_kept_runs_are_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, Any] = {"flows": ROWS, "folder": tmp_path, "seeds": 2}
    first = fc.fabric("hpcc", SHAPE, **options)
    files = sorted(tmp_path.glob("*.nc"))
    assert [file.name.rpartition("-")[0] for file in files] == ["hpcc-seed1", "hpcc-seed2"]
    ran: list[int] = []
    run = study.run

    def counted(*of: Any, **more: Any) -> Any:
        ran.append(1)
        return run(*of, **more)

    monkeypatch.setattr(study, "run", counted)
    again = fc.fabric("hpcc", SHAPE, **options)
    assert not ran
    for a, b in zip(first.runs, again.runs, strict=True):
        assert a.slowdown.identical(b.slowdown)
        assert a.numbers == b.numbers
        assert np.array_equal(a.queue, b.queue)
    changed: list[dict[str, Any]] = [
        {"flows": [*ROWS, (3, 7, 0, 1000)]}, {"drain": "1ms"}, {"buffer": "1MB"}, {"ideal": "hpcc-sim"},
        {"delay": "2us"},
    ]  # fmt: skip
    for k, change in enumerate(changed, 1):
        fc.fabric("hpcc", SHAPE, **{**options, "seeds": 1, **change})
        assert len(ran) == k
    fc.fabric({"hpcc": fc.HPCC(eta=0.9)}, SHAPE, **{**options, "seeds": 1})
    assert len(ran) == len(changed) + 1
    files[0].write_bytes(b"")
    with pytest.raises(fc.InputError, match="cannot be read"):
        read_run(files[0])


def test_what_is_kept_is_read_and_what_is_damaged_made_again(tmp_path: Path) -> None:
    class Text(str):
        __slots__ = ()

        def save(self, path: Path, /) -> None:
            path.write_text(self)

    def read(path: Path) -> Text:
        if "damaged" in path.read_text():
            raise fc.InputError("damaged")
        return Text(path.read_text())

    path = tmp_path / "run"
    assert kept_or_made(None, read, lambda: Text("first")) == "first"
    assert kept_or_made(path, read, lambda: Text("second")) == "second"
    assert kept_or_made(path, read, lambda: Text("third")) == "second"
    path.write_text("damaged")
    assert kept_or_made(path, read, lambda: Text("fourth")) == "fourth"
    assert path.read_text() == "fourth"


def test_a_damaged_run_is_run_again(tmp_path: Path) -> None:
    first = fc.fabric("hpcc", SHAPE, flows=ROWS, folder=tmp_path)
    (path,) = tmp_path.glob("*.nc")
    path.write_bytes(b"nothing of the kind")
    again = fc.fabric("hpcc", SHAPE, flows=ROWS, folder=tmp_path)
    assert again.runs[0].slowdown.identical(first.runs[0].slowdown)
    assert path.read_bytes()[:4] != b"noth"


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        ({"flows": ROWS}, {"until": None, "drain": None}),
        ({"flows": ROWS, "since": "0s", "drain": "2ms"}, {"until": None, "drain": 2e-3}),
        ({"flows": ROWS, "since": "1us"}, {"until": None, "drain": None, "since": 1e-6}),
        ({"workload": "hadoop", "until": "1ms"}, {"until": 1e-3, "drain": None}),
        ({"rebuild": 2, "until": "1ms"}, {"until": 1e-3, "drain": 0.0}),  # hosts that send without end
        ({"rebuild": 2, "until": "1ms", "drain": "2ms"}, {"until": 1e-3, "drain": 2e-3}),
        ({"flows": LISTED}, {"until": None, "drain": None, "frames": True}),  # for its pfc.txt
    ],
)
def test_runs_are_asked_for_what_is_given_alone(
    options: dict[str, Any], settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that was kept without a beginning of the window is the same run as one from 0."""
    asked: list[dict[str, Any]] = []

    def told(*_: Any, report: Any, **more: Any) -> Any:
        asked.append(more)
        raise fc.InputError("no, 42")

    monkeypatch.setattr(study, "run", told)
    with pytest.raises(fc.InputError, match="no, 42"):
        fc.fabric("hpcc", SHAPE, threads=1, **options)
    assert asked == [{"ideal": "alone", "network": {}} | settings]


def test_one_that_fails_stops_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: Any, **__: Any) -> Any:
        raise fc.InputError("no, 42")

    monkeypatch.setattr(study, "run", failing)
    with pytest.raises(fc.InputError, match="no, 42"):
        fc.fabric("hpcc", SHAPE, flows=ROWS, seeds=5, threads=1)


def test_an_interrupted_study_stops_its_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C comes to the main thread, while runs report from others."""
    reports: list[float] = []

    def interrupted(*_: Any, report: Any, **__: Any) -> Any:
        if not reports:
            reports.append(0.0)
            raise KeyboardInterrupt
        for share in np.linspace(0, 1, 10_000):
            report(float(share))
            reports.append(float(share))
        raise AssertionError("it was not stopped")

    monkeypatch.setattr(study, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fc.fabric("hpcc", SHAPE, flows=ROWS, seeds=8, threads=1)
    assert len(reports) < 10_000


def test_pictures(tmp_path: Path) -> None:
    """What they say: sizes, schemes, unfinished flows, and that nobody was paused."""
    found = fc.fabric("hpcc,none", SHAPE, workload="hadoop", load=0.4, until="200us", seeds=3)
    picture = found.plot(3)
    assert [axis.get_title() for axis in picture.axes] == ["median", "95th percentile", "99th percentile"]
    lines = picture.axes[1].get_lines()
    assert [line.get_label() for line in lines] == ["hpcc", "none"]
    values = np.log(found.bins(3)["p95"].sel(scheme="hpcc").values)
    np.testing.assert_allclose(np.log(lines[0].get_ydata()), values.mean(axis=0), rtol=1e-12)
    assert len(picture.axes[1].collections) == 2  # bands
    assert "3 seeds (bands: 95 % intervals)" in picture.get_suptitle()
    queues = found.plot_queues()
    assert queues.axes[0].get_xlabel().startswith("queue of a switch's port [")
    shares = [np.asarray(line.get_ydata()) for line in queues.axes[0].get_lines()]
    assert all(share[0] == 1 and (np.diff(share) <= 0).all() for share in shares)
    files = found.write(tmp_path / "new" / "folder")
    assert [file.name for file in files] == ["slowdown.png", "queues.png", "slowdown.csv"]
    alone = fc.fabric("hpcc", SHAPE, flows=ROWS).plot_queues()
    assert [axis.get_title() for axis in alone.axes] == ["no port was ever paused"]  # and no empty panel says so
    two = fc.fabric("hpcc", SHAPE, flows=ROWS, seeds=2).plot(1)
    assert "2 seeds: no interval below 3" in two.get_suptitle()
    assert [len(axis.collections) for axis in two.axes] == [0, 0, 0]


@pytest.mark.parametrize(
    ("schemes", "options", "words"),
    [
        ("hpcc,hpcc", {}, "is there twice"),
        ("hpcc,", {}, "scheme"),
        ([], {}, "there are none"),
        ("hpcc", {"preset": "best"}, "preset"),
        ("swift", {"preset": "vendor"}, "preset"),
        ({"a": "hpcc"}, {}, "give a Preset or a scheme's parameters"),
        ({"a": fc.HPCC}, {}, "give a Preset or a scheme's parameters"),
        ({"a": fc.HPCC()}, {"preset": "paper"}, "preset: belongs to schemes given by name"),
        ("hpcc", {"seeds": 0}, "seeds"),
        ("hpcc", {"seeds": []}, "seeds"),
        ("hpcc", {"seeds": [1, 1]}, "seeds"),
        ("hpcc", {"drain": "-1ms"}, "drain"),
        ("hpcc", {"ideal": "best"}, "ideal"),
        ("hpcc", {"threads": 0}, "threads"),
        ("hpcc", {"topology": named_topology(SHAPE), "rate": "10Gbps"}, "a Topology has its own"),
        ("hpcc", {"flows": [(0, 4)]}, "none has an end"),
        ("hpcc", {"flows": [(0, 99, 0, 1e3)]}, "there is no host 99"),
        ("hpcc", {"bufer": "1MB"}, "did you mean buffer"),
    ],
)
def test_what_makes_no_study(schemes: Any, options: dict[str, Any], words: str) -> None:
    arguments = {"topology": SHAPE, "flows": ROWS, **options}
    with pytest.raises(fc.InputError, match=words):
        fc.fabric(schemes, **arguments)
