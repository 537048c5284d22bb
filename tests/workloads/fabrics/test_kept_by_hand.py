"""Names of kept runs, who runs what, and what a study writes; nothing is run."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import xarray as xr

import fluidcc as fc
from fluidcc.errors import InputError
from fluidcc.scenario.model import RED
from fluidcc.workloads.fabrics import Cable, FlowList, Topology, Traffic, named_topology, study
from fluidcc.workloads.fabrics.run import FabricRun
from fluidcc.workloads.fabrics.run_cache import code, folder_of, signature
from fluidcc.workloads.fabrics.slowdowns import Slowdown
from fluidcc.workloads.fabrics.study import FabricStudy, contenders

SMALL = Topology((0, 1), (2,), (Cable((0, 2), "10Gbps", "1us"), Cable((1, 2), "40Gbps", "1us")))
CHOSEN = {"scheme": fc.DCQCN(), "marking": None, "buffer": "1MB"}


def test_a_run_s_name_depends_on_all_that_it_depends_on() -> None:
    """Sources, nodes, cables, options, marks of each rate, settings and flows; not on how marks are said."""
    plain = signature("made", SMALL, CHOSEN, {"until": 1.0}, b"flows")
    assert plain == signature("made", SMALL, dict(CHOSEN), {"until": 1.0}, b"flows")
    slower = dataclasses.replace(SMALL, cables=(SMALL.cables[0], Cable((1, 2), "40Gbps", "2us")))
    marked = {**CHOSEN, "marking": RED("5KB", "200KB", "1%")}
    others = [
        signature("other", SMALL, CHOSEN, {"until": 1.0}, b"flows"),
        signature("made", slower, CHOSEN, {"until": 1.0}, b"flows"),
        signature("made", dataclasses.replace(SMALL, switches=(2, 3)), CHOSEN, {"until": 1.0}, b"flows"),
        signature("made", SMALL, {**CHOSEN, "buffer": "2MB"}, {"until": 1.0}, b"flows"),
        signature("made", SMALL, {**CHOSEN, "scheme": fc.DCQCN(g="1/16")}, {"until": 1.0}, b"flows"),
        signature("made", SMALL, {**CHOSEN, "marking": RED("5KB", "100KB", "1%")}, {"until": 1.0}, b"flows"),
        signature("made", SMALL, CHOSEN, {"until": 2.0}, b"flows"),
        signature("made", SMALL, CHOSEN, {"until": 1.0}, b"others"),
        signature("made", SMALL, {**CHOSEN, "marking": lambda rate: RED(float(rate) / 1e6, "1MB", 0.5)}, {}, b""),
    ]
    assert len({plain, *others}) == 1 + len(others)
    by_rate = signature("made", SMALL, {**CHOSEN, "marking": lambda rate: marked["marking"]}, {}, b"")
    assert by_rate == signature("made", SMALL, marked, {}, b"")


def test_sources_of_more_folders_make_another_hash(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("1")
    first = code(tmp_path)
    code.cache_clear()
    (tmp_path / "b.txt").write_text("2")
    assert code(tmp_path) == first != code()
    code.cache_clear()
    (tmp_path / "a.py").write_text("2")
    assert code(tmp_path) != first


def test_a_folder_is_made_or_refused(tmp_path: Path) -> None:
    assert folder_of(None) is None
    made = folder_of(str(tmp_path / "new" / "one"))
    assert made == tmp_path / "new" / "one"
    assert (tmp_path / "new" / "one").is_dir()
    (tmp_path / "file").write_text("")
    for bad in (tmp_path / "file" / "in", "a\0b"):
        with pytest.raises(InputError, match="folder: "):
            folder_of(bad)


# -- who runs what ------------------------------------------------------------------------------------------------


def test_schemes_by_name_have_the_evaluation_s_preset() -> None:
    found = contenders("hpcc, dcqcn", None)
    assert list(found) == ["hpcc", "dcqcn"]
    assert found["hpcc"] == fc.preset("hpcc", "hpcc-eval").options()
    assert contenders(["hpcc"], "paper") == {"hpcc": fc.preset("hpcc", "paper").options()}
    scheme = fc.HPCC(eta=0.9)
    given = contenders({"a": scheme, "b": {"scheme": scheme, "buffer": "1MB"}, "c": fc.preset("hpcc", "paper")}, None)
    assert given == {
        "a": {"scheme": scheme},
        "b": {"scheme": scheme, "buffer": "1MB"},
        "c": fc.preset("hpcc", "paper").options(),
    }


def test_every_scheme_runs_every_seed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With its own flows; what is kept has scheme and seed in its name, and pairs lose flows that never began."""
    asked: list[Any] = []
    names: list[Any] = []

    def run_all(work: Any, jobs: Any, report: Any, **where: Any) -> Any:
        place = SimpleNamespace(compute=lambda function, *given, **more: (given[1:], more))
        assert where == {"threads": 3, "dask": None}
        return [work(job, place) for job in jobs]

    def kept(path: Any, read: Any, make: Any) -> Any:
        names.append(None if path is None else path.name.rpartition("-")[0])
        asked.append(make())
        return asked[-1]

    monkeypatch.setattr(study, "run_all", run_all)
    monkeypatch.setattr(study, "kept_or_made", kept)
    monkeypatch.setattr(study, "begun", lambda found: "begun")
    monkeypatch.setattr(study, "code", lambda: "sources")
    rows = [(0, 1, 0.0, 1e3)]
    found: Any = fc.fabric("hpcc,dcqcn", SMALL, flows=rows, seeds=[4, 9], threads=3, folder=tmp_path, buffer="3MB")
    jobs = [(each[0][1], each[0][3]) for each in asked]
    assert jobs == [("hpcc", 4), ("hpcc", 9), ("dcqcn", 4), ("dcqcn", 9)]
    assert names == ["hpcc-seed4", "hpcc-seed9", "dcqcn-seed4", "dcqcn-seed9"]
    assert all(given[0] is rows and more["network"] == {"buffer": "3MB"} for given, more in asked)
    assert (found.topology, found.says, found.flows) == (SMALL, "1 flows of a list", None)
    asked.clear()
    names.clear()
    paired: Any = fc.fabric(
        "hpcc", named_topology("leaf-spine:2x1x2"), workload="hadoop", pairs=2, until="1ms", threads=3
    )
    assert paired.runs == ("begun",)
    assert names == [None]


def test_times_of_a_fabric_make_sense() -> None:
    for options, word in (
        ({"drain": "-1us"}, "drain"),
        ({"drain": float("inf")}, "drain"),
        ({"threads": 1025}, "threads"),
    ):
        with pytest.raises(InputError, match=word):
            fc.fabric("hpcc", SMALL, flows=[(0, 1, 0.0, 1e3)], **cast(Any, options))


def test_a_list_s_hosts_are_the_topology_s() -> None:
    listed = FlowList(np.array([[0, 7, 0, 1e3]]), 2.0, np.array([3]), np.array([100]), ("flow.txt, line 2",))
    with pytest.raises(InputError, match=r"flow\.txt, line 2: node 7 is no host of the topology; give one of its 2"):
        fc.fabric("hpcc", SMALL, flows=listed)


# -- what a study says --------------------------------------------------------------------------------------------


def run(scheme: str, seed: int, slowdowns: list[float], frames: Any = None) -> FabricRun:
    columns = {"size": 1e3 * np.arange(1, 1 + len(slowdowns)), "slowdown": slowdowns}
    columns |= {"completion": 1e-6 * np.arange(1, 1 + len(slowdowns)), "alone": np.full(len(slowdowns), 1e-6)}
    dataset = xr.Dataset({name: ("flow", np.array(values, float)) for name, values in columns.items()})
    return FabricRun(scheme, seed, Slowdown(dataset), {}, np.zeros((2, 1)), frames)


def test_a_table_has_a_row_for_each_scheme_and_a_column_for_each_seed() -> None:
    found = FabricStudy(
        (run("b", 5, [1, 2]), run("b", 3, [3, 4]), run("a", 5, [5, 6]), run("a", 3, [7, 9])), SMALL, "so"
    )
    assert (found.schemes, found.seeds, found.words) == (["b", "a"], [5, 3], ())
    table = found.statistics()
    assert table["mean"].values.tolist() == [[1.5, 3.5], [5.5, 8.0]]
    assert (table.scheme.values.tolist(), table.seed.values.tolist()) == (["b", "a"], [5, 3])
    bins = found.bins(["1KB", "1.5KB", "2KB"])
    assert bins["mean"].sel(scheme="a", seed=3).values.tolist() == [7.0, 9.0]
    assert found.of("none") == []
    document = found.as_dict(["1KB", "2KB"])
    assert (document["traffic"], document["hosts"]) == ("so", 2)
    assert document["schemes"][0]["slowdown"]["mean"]["mean"] == 2.5
    assert [document["schemes"][0]["slowdown"]["mean"][end] for end in ("low", "high")] == [None, None]  # two seeds
    listed = FlowList(np.zeros((2, 4)), 0.0, np.zeros(2), np.zeros(2), words=("less",))
    said = dataclasses.replace(found, topology=dataclasses.replace(SMALL, words=("other",)), flows=listed)
    assert said.words == ("other", "less")


def measured(name: str, seed: int, slowdowns: list[float], queue: float = 0.0, goodput: float = 1.0) -> FabricRun:
    numbers = {"goodput_bytes_per_s": goodput, "queue_bytes": {"p99": queue}}
    return dataclasses.replace(run(name, seed, slowdowns), numbers=numbers)


def test_ratios_are_of_the_same_seeds() -> None:
    """A mean of ratios, not a ratio of means; small and large flows apart; what is turned round is turned round."""
    pairs = [(2.0, 8.0), (3.0, 6.0), (1.0, 1.0)]
    runs = [measured(name, k, [pair[i]], goodput=1 + i) for i, name in enumerate("ab") for k, pair in enumerate(pairs)]
    study = FabricStudy(tuple(runs), SMALL, "so")
    found, back = study.against("a", "b"), study.against("b", "a")
    logs = np.log([0.25, 0.5, 1.0])
    half = 4.302653 * logs.std(ddof=1) / np.sqrt(3)  # Student's t of two degrees of freedom
    wanted = dict(zip(("mean", "low", "high"), np.exp(logs.mean() + half * np.array([0, -1, 1])).tolist(), strict=True))
    for name in ("p50", "p99", "p99_small"):
        assert found[name] == pytest.approx(wanted)
        assert (1 / back[name]["low"], 1 / back[name]["high"]) == pytest.approx((wanted["high"], wanted["low"]))
    assert found["goodput"] == pytest.approx({"mean": 0.5, "low": 0.5, "high": 0.5})
    assert np.isnan(list(found["p99_large"].values())).all()
    with pytest.raises(InputError, match="'c' did not run; there are a, b"):
        study.against("a", "c")


def test_ratios_are_of_flows_that_finished_in_both() -> None:
    """One that is slow in one and unfinished in the other is in neither; a queue of nothing is none of a packet."""
    nan = float("nan")
    runs = [measured("a", k, [2.0, nan, 4.0], queue=1e-3) for k in range(3)]
    runs += [measured("b", k, [1.0, 9.0, nan], queue=20e3) for k in range(3)]
    found = FabricStudy(tuple(runs), SMALL, "so").against("a", "b")
    assert (found["p50"]["mean"], found["p99"]["mean"]) == (pytest.approx(2.0), pytest.approx(2.0))
    assert found["queue_p99"]["mean"] == pytest.approx(0.5)


def test_flows_of_a_bound_s_size_are_not_beyond_it() -> None:
    """Notice flows of 1 and of 10 MB, which are much slower in one of two, among the larger ones."""
    runs = []
    for name, slow in (("a", [900.0, 4.0, 900.0, 6.0]), ("b", [1.0, 2.0, 1.0, 2.0])):
        each = measured(name, 1, slow)
        sizes = each.slowdown.dataset.assign(size=("flow", [1e6, 2e6, 10e6, 20e6]))
        runs.append(dataclasses.replace(each, slowdown=Slowdown(sizes)))
    found = FabricStudy(tuple(runs), SMALL, "so").against("a", "b")
    assert found["p50_largest"]["mean"] == pytest.approx(3.0)
    assert found["p99_large"]["mean"] == pytest.approx(np.percentile([4.0, 900.0, 6.0], 99) / 2.0)


def test_ratios_of_sizes() -> None:
    """Ten flows of 2.5 to 25 MB: the median of those beyond 10 MB, the 99th percentile of those beyond 1 MB."""
    slow = np.arange(1.0, 11.0)
    runs = []
    for name, times in (("a", np.where(slow > 4, 3.0, 2.0)), ("b", 1.0)):
        each = measured(name, 1, (slow * times).tolist())
        sizes = each.slowdown.dataset.assign(size=("flow", 2.5e6 * slow))
        runs.append(dataclasses.replace(each, slowdown=Slowdown(sizes)))
    found = FabricStudy(tuple(runs), SMALL, "so").against("a", "b")
    assert found["p50_largest"]["mean"] == pytest.approx(3.0)
    assert found["p50"]["mean"] == pytest.approx(np.median(slow * np.where(slow > 4, 3.0, 2.0)) / 5.5)
    assert np.isnan(found["p99_small"]["mean"])


def test_files_of_a_study(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Pictures and a table; of the simulator's flows completion times of all runs, and frames where there are any."""
    picture = SimpleNamespace(write=lambda path: path)
    monkeypatch.setattr(study, "draw", lambda *_: picture)
    frames = np.array([[1e-6, 2, 1, 1]])
    listed = FlowList(np.array([[0, 1, 0, 1e3], [1, 0, 0, 2e3]]), 2.0, np.array([3, 3]), np.array([100, 100]))
    found = FabricStudy((run("a", 1, [1, 2], frames), run("b", 1, [3, 4])), SMALL, "so", listed)
    names = ["slowdown.png", "queues.png", "slowdown.csv", "fct-a-seed1.txt", "fct-b-seed1.txt", "pfc-a-seed1.txt"]
    assert [path.name for path in found.write(tmp_path / "out", 1)] == names
    assert (tmp_path / "out" / "pfc-a-seed1.txt").read_text() == "2000001000 2 1 1 1\n"
    lines = (tmp_path / "out" / "slowdown.csv").read_text().splitlines()
    assert lines[0].split(",")[:3] == ["scheme", "seed", "bin"]
    assert len(lines) == 3
    bare = dataclasses.replace(found, flows=None)
    assert [path.name for path in bare.write(tmp_path / "out", 1)] == names[:3]


def test_a_pattern_needs_no_load() -> None:
    """And a share of a rate is one of all hosts, of their mean."""
    rows: Any = Traffic(workload="all-to-all", size="2KB").rows(SMALL)
    assert rows.tolist() == [[0, 1, 0, 2e3], [1, 0, 0, 2e3]]
    assert float(SMALL.host_rate) == pytest.approx(25e9 / 8)
