"""Tuning on a small fabric, in packets: what is said is what `fabric` and `collective` find with the same seeds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.errors import InputError
from fluidcc.studies.tuning import on_fabric, race
from fluidcc.studies.tuning.race import MEASURES

SHAPE = "leaf-spine:2x1x2"
FLOWS = {"workload": "hadoop", "load": "60%", "until": "0.4ms"}
RING = {"collective": "all-reduce", "bytes": "400KB"}
START = {"kmin": "100KB", "kmax": "400KB"}


def options(**values: Any) -> dict[str, Any]:
    """DCQCN with these thresholds, or with the present ones."""
    thresholds: dict[str, Any] = {**START, **values}
    return {**fc.preset("dcqcn", "hpcc-eval").options(), "marking": fc.RED(**thresholds, pmax="20%")}


def tuned(cases: list[dict[str, Any]], folder: Path | None = None) -> fc.studies.FabricTuning:
    """Race with few seeds: what they are used for is told apart in `test_race`."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (race, on_fabric):
            patch.setattr(module, "RUNGS", (2, 1, 1))
        patch.setattr(on_fabric, "_MOST", 4)
        return fc.studies.tune_fabric(
            options, {"kmin": ("2KB", "200KB"), "kmax": ("20KB", "800KB")}, SHAPE,
            cases=cases, start=START, settings=4, folder=folder,
            yardsticks={"low": {"kmin": 2e3, "kmax": 2e4}, "same": START},
        )  # fmt: skip


@pytest.fixture(scope="module")
def found() -> fc.studies.FabricTuning:
    return tuned([FLOWS, {**FLOWS, "burst": 16}, RING])


def test_its_numbers_are_those_of_a_fabric(found: fc.studies.FabricTuning) -> None:
    """A case's options that are lost, a seed of the choice among the proof's, or own and present swapped, are seen."""
    proof = found.proofs["low"]
    seeds = list(range(2001, 2001 + proof.seeds))
    both = {"new": options(**proof.point), "present": options()}
    for case, more in ((0, {}), (1, {"burst": 16})):
        study = fc.fabric(both, SHAPE, seeds=seeds, **FLOWS, **more)
        expected, mine = study.against("new", "present"), proof.ratios(case)
        for name, key in (("slowdown.small.p99", "p99_small"), ("slowdown.p50", "p50"), ("goodput", "goodput")):
            assert mine[name] == pytest.approx(expected[key], nan_ok=True, rel=1e-12), name
            assert np.isfinite(mine[name]["mean"])
        assert mine["slowdown.small.p99"]["mean"] < 0.95  # 2 KB against 100 KB: it is not a ratio to itself
    ring = fc.collective("all-reduce", SHAPE, both, bytes="400KB", seeds=seeds)
    assert proof.ratios(2)["collective_time"] == pytest.approx(ring.against("new", "present")["all-reduce"], rel=1e-12)
    assert proof.ratios(0)["slowdown.small.p99"] != proof.ratios(1)["slowdown.small.p99"]


def test_what_is_told(found: fc.studies.FabricTuning) -> None:
    """The present setting does not race against itself, and every case has its numbers."""
    told = json.loads(json.dumps(found.as_dict()))
    assert told["evaluations"] == len(found.racers) == 4
    assert set(told["yardsticks"]) == {"low"}
    assert told["start"] == {"kmin": 1e5, "kmax": 4e5}
    assert told["confirmed"] is (told["best"] is not None)
    assert [case.get("burst") for case in told["cases"]] == [None, "16", None]
    assert told["cases"][2]["start"]["collective_time"] > 400e3 / 12.5e9  # sent once at line rate at least
    assert "slowdown.small.p99" not in told["cases"][2]["start"]
    assert told["cases"][0]["start"]["slowdown.small.p99"] > 1
    assert all(row["ratios"].keys() == MEASURES.keys() - {"unfinished"} for row in told["settings"])
    assert repr(found).startswith("<FabricTuning ")


def test_what_is_kept_is_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After an interruption the same call goes on where it was, and ends the same."""
    from fluidcc.workloads.fabrics import study as study_module

    def never(*_: Any, **__: Any) -> None:
        raise AssertionError

    first = tuned([FLOWS], tmp_path)
    monkeypatch.setattr(study_module, "run", never)
    assert tuned([FLOWS], tmp_path).as_dict() == first.as_dict()


def test_its_picture_has_what_was_proved(found: fc.studies.FabricTuning, tmp_path: Path) -> None:
    assert [path.name for path in found.write(tmp_path)] == ["tuning.json", "race.png"]
    axis = found.plot().axes[0]
    texts = [text.get_text() for text in axis.get_legend().get_texts()]
    assert sum("fresh seeds" in text for text in texts) == len(found.proofs)
    assert sum("seeds each" in text for text in texts) == len({each.seeds for each in found.racers})
    assert axis.get_xlabel() == "p99 slowdown, flows to 100 KB, over the present setting's [1]"


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"objective": "jain"}, "objective: 'jain'"),
        ({"objective": ["goodput", "goodput"]}, "several that differ"),
        ({"cases": []}, "cases: there are none"),
        ({"start": {"kmin": 1e5}}, "start: kmax is missing"),
        ({"yardsticks": {"mine": {"kmin": 1e5}}}, "yardsticks mine: kmax is missing"),
        ({"yardsticks": {"present": START}}, "'present' is what start says"),
        ({"settings": 3}, "settings"),
        ({"cases": [{"collective": "all-reduce,broadcast"}]}, "give a case for each"),
    ],
)
def test_what_makes_no_sense_is_refused(change: dict[str, Any], key: str) -> None:
    arguments: dict[str, Any] = {"cases": [FLOWS], "start": START, "settings": 4, **change}
    with pytest.raises(InputError, match=key):
        fc.studies.tune_fabric(options, {"kmin": (2e3, 2e5), "kmax": (2e4, 8e5)}, SHAPE, **arguments)


@pytest.mark.parametrize(
    ("small", "large", "spread", "recommended", "worse"),
    [
        (0.7, 1.0, 0.1, True, []),
        (1.0, 1.0, 0.0, False, None),  # nothing changes
        (0.97, 0.97, 0.3, False, []),  # perhaps better, perhaps not
        (0.7, 1.1, 0.02, False, ["slowdown.large.p99"]),
    ],
)
def test_what_is_recommended_is_better_and_not_worse(
    monkeypatch: pytest.MonkeyPatch, small: float, large: float, spread: float, recommended: bool, worse: Any
) -> None:
    """Whatever chose a setting, fresh seeds must show it better in something, and its means no more than 5 % worse."""

    def measure(_: Any, points: Mapping[str, Any], seeds: Sequence[int]) -> dict[str, np.ndarray]:
        """Each setting alike; seeds differ, evenly about the truth."""
        noise = spread * np.resize([1.0, -1.0], len(seeds))
        noise -= noise.mean()
        found = np.full((1, len(MEASURES), len(seeds), 2), np.nan)
        found[0, :2, :, 1] = 1.0
        found[0, :2, :, 0] = np.array([[small], [large]]) * np.exp(noise)
        found[0, -1] = 0.0
        return dict.fromkeys(points, found)

    monkeypatch.setattr(on_fabric._Runs, "measure", measure)
    over = {"kmin": ("2KB", "200KB"), "kmax": ("20KB", "800KB")}
    tuned = fc.studies.tune_fabric(options, over, SHAPE, cases=[FLOWS], start=START, settings=8)
    assert (tuned.best is not None) is recommended
    assert tuned.as_dict()["confirmed"] is recommended
    assert tuned.rule.objectives == ("slowdown.small.p99", "slowdown.large.p99")  # there is no collective
    proofs = [on_fabric.worse(tuned.rule, each) for each in tuned.proofs.values()]
    assert proofs == ([] if worse is None else [worse] * len(proofs))
    assert bool(proofs) is (worse is not None)
    flows = tuned.flows[0]
    assert (flows.get("small", 0) > 0) is recommended
    (case,) = tuned.as_dict()["cases"]
    if recommended:
        assert case["start"]["slowdown.small.p99"] == pytest.approx(1)
        assert case["best"]["slowdown.small.p99"] == pytest.approx(small * np.cosh(spread))


def test_what_does_not_matter_is_what_the_plateau_covers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kmin is good in a fifth of its range, whatever Kmax is."""

    def measure(_: Any, points: Mapping[str, Any], seeds: Sequence[int]) -> dict[str, np.ndarray]:
        found = {name: np.ones((1, len(MEASURES), len(seeds), 2)) for name in points}
        for name, point in points.items():
            found[name][0, 0, :, 0] = 0.7 if 20e3 < point["kmin"] < 50e3 else 0.9
        return found

    monkeypatch.setattr(on_fabric._Runs, "measure", measure)
    over = {"kmin": ("2KB", "200KB"), "kmax": ("200KB", "20MB")}
    tuned = fc.studies.tune_fabric(options, over, SHAPE, cases=[FLOWS], start=START, settings=30)
    assert tuned.irrelevant == ["kmax"]
    low, high = tuned.plateau["kmin"]
    assert 20e3 < low <= high < 50e3


def test_times_without_a_flow_are_refused_before_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(on_fabric._Runs, "measure", never)
    with pytest.raises(InputError, match="no flow arrives"):
        fc.studies.tune_fabric(
            options, {"kmin": (2e3, 2e5)}, SHAPE, cases=[{**FLOWS, "until": "5us"}], start={"kmin": 1e5}, settings=4
        )


def test_a_case_has_its_own_links_and_packets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Delay and rate are the topology's, the packets the schemes', and the rest is what `fabric` is asked."""

    class SeenError(Exception):
        pass

    def look(chosen: Mapping[str, Any], topology: Any, **asked: Any) -> None:
        assert {each["payload"] for each in chosen.values()} == {"1024"}
        assert {(cable.rate, cable.delay) for cable in topology.cables} == {(1.25e9, 2e-6)}
        assert asked == {**FLOWS, "burst": "4", "seeds": [7], "threads": 1}
        raise SeenError

    monkeypatch.setattr(on_fabric, "fabric", look)
    shape = {"rate": "10Gbps", "fabric_rate": "10Gbps", "delay": "1us"}
    case = {**FLOWS, "burst": "4", "delay": "2us", "payload": "1024"}
    runs = on_fabric._Runs(options, SHAPE, shape, [case], {"threads": 1}, 4)
    with pytest.raises(SeenError):
        runs.measure({"s1": {"kmin": 5e4}}, [7])
