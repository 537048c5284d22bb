"""Tuning on the engines: its numbers are theirs, other seeds and packets have the last word."""

from __future__ import annotations

import dataclasses
import importlib
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.errors import InputError
from fluidcc.operators import read_nic, read_sonic
from fluidcc.operators.commands import commands_of
from fluidcc.operators.ports import alike, read_ports
from fluidcc.progress import Bar
from fluidcc.studies.tuning.evaluate import Evaluator, Measured, engine_draws
from fluidcc.studies.tuning.goal import SETTLING, goal_of
from fluidcc.studies.tuning.packet_check import Packets, contradictions

OVER = {"kmin": ("2KB", "100KB"), "kmax": ("20KB", "800KB")}
START = {"kmin": "5KB", "kmax": "200KB"}


def make(kmin: Any, kmax: Any, flows: int = 2) -> fc.Scenario:
    return fc.incast(int(flows), rate="40Gbps", marking=fc.RED(kmin, kmax, "10%"), start=[0.0, "1ms"])


def small(**options: Any) -> fc.studies.Tuning:
    given = {"until": "10ms", "seeds": 2, "evaluations": 16, "packet_seeds": 0, "start": START}
    return fc.tune(make, OVER, **given | options)


def test_its_numbers_are_those_of_a_sweep_and_the_best_is_the_best() -> None:
    found = small(across={"flows": [2, 4]}, subject_to=())
    point = found.best.point
    expected = []
    for flows in (2, 4):
        sweep = fc.sweep(
            lambda kmin, kmax, flows=flows: make(kmin, kmax, flows),
            {name: [value] for name, value in point.items()},
            until="10ms",
            engine="hybrid",
            seeds=2,
        )
        evaluator = Evaluator(make, [{"flows": flows}], engine_draws("hybrid", "10ms", None), [1, 2], set(), 1)
        ours = evaluator([point])[0]
        for name in ("queue_bytes.p99", "utilisation", "jain", "goodput_bytes_per_s"):
            assert ours.metrics[name][0] == float(sweep[name].squeeze()), name
            assert ours.errors[name][0] == float(sweep[f"{name}_se"].squeeze()), name
        expected.append(ours.metrics["queue_bytes.p99"][0])
    front = found.pareto[0]
    assert front.point == point or front.metrics["queue_bytes.p99"] <= max(expected)
    assert found.evaluations <= 16
    assert found.start is not None
    assert found.start.point == {"kmin": 5e3, "kmax": 2e5}
    json.dumps(found.as_dict(), allow_nan=False)


def test_each_stage_has_a_bar_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    labels: list[str] = []

    class Named(Bar):
        def __init__(self, label: str, total: int, unit: str) -> None:
            labels.append(label)
            super().__init__(label, total, unit)

    for module in ("tune", "evaluate"):
        monkeypatch.setattr(importlib.import_module(f"fluidcc.studies.tuning.{module}"), "Bar", Named)
    small(subject_to=())
    assert labels[0] == "searching kmin, kmax"
    assert labels[1:3] == ["checking finalists, 8 seeds", "checking finalists, 32 seeds"]


def test_threads_change_nothing() -> None:
    one, two = (small(workers=n, subject_to=()) for n in (1, 2))
    assert one.best == two.best
    assert one.pareto == two.pareto


def test_a_point_that_makes_no_sense_spoils_no_other() -> None:
    def picky(kmin: float, kmax: float) -> fc.Scenario:
        if kmin > 10e3:
            raise InputError("kmin: too large here")
        return make(kmin, kmax)

    found = fc.tune(picky, OVER, until="5ms", seeds=2, evaluations=12, packet_seeds=0, subject_to=())
    assert found.best.point["kmin"] <= 10e3
    with pytest.raises(InputError, match="no point makes sense; kmin: too large"):
        fc.tune(picky, {"kmin": ("20KB", "30KB"), "kmax": ("40KB", "50KB")}, until="5ms", packet_seeds=0)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"across": {"kmin": [1e3]}}, "is tuned"),
        ({"across": {"flows": []}}, "list of values"),
        ({"start": {"kmin": 1e3}}, "kmax is missing"),
        ({"start": {"kmin": 1e3, "kmax": 1e4, "g": 0.1}}, "g is not tuned"),
        ({"engine": "packet"}, "packets prove"),
        ({"seeds": 0}, "seeds"),
        ({"evaluations": 0}, "evaluations"),
        ({"sensitivity": 12}, "power of 2"),
        ({"objective": "delay"}, "no metric"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_line(options: dict[str, Any], word: str) -> None:
    with pytest.raises(InputError, match=word) as said:
        small(**options)
    assert "\n" not in str(said.value)


def test_the_fluid_tunes_schemes_without_chance() -> None:
    """HPCC's eta and W_AI: the numbers are those of single runs."""

    def hpcc(eta: Any, w_ai: Any) -> fc.Scenario:
        return fc.incast(4, scheme=fc.HPCC(eta=eta, w_ai=w_ai))

    over = {"eta": (0.9, 0.98), "w_ai": ("20B", "400B")}
    found = fc.tune(hpcc, over, until="2ms", evaluations=10, packet_seeds=0, subject_to="utilisation>=0.94")
    alone = fc.simulate(hpcc(**found.best.point), "2ms", estimate_error=False).summary
    assert found.best.metrics["queue_bytes.p99"] == pytest.approx(alone["queue_bytes"]["p99"], rel=0.02, abs=50)
    assert found.best.metrics["utilisation"] == pytest.approx(alone["utilisation"], rel=1e-3)
    assert alone["utilisation"] >= 0.94 * (1 - 1e-3)


def test_settling_is_that_of_the_mean_rates() -> None:
    """From the engine's traces by `settling` of a comparison, against the evaluator's."""
    from fluidcc.results.comparison import settling

    point = {"kmin": 5e3, "kmax": 2e5}
    evaluator = Evaluator(make, [{}], engine_draws("hybrid", "20ms", None), [1, 2, 3], {SETTLING}, 2)
    ours = evaluator([point])[0].metrics[SETTLING][0]
    traces = fc.ensemble(make(**point), "20ms", 3, engine="hybrid", sample_interval="50us")
    rates = sum(trace["rate"] for trace in traces) / 3
    theirs = settling(make(**point), str(traces[0]["link"].values[0]), rates, 0.02 / 50)
    assert theirs is not None
    assert ours == pytest.approx(theirs, rel=1e-9)


def _packets(p99: list[float], used: list[float]) -> Packets:
    each = {"queue_bytes.p99": np.array([p99]), "utilisation": np.array([used])}
    means = {name: values.mean(axis=1) for name, values in each.items()}
    errors = {name: values.std(axis=1, ddof=1) / len(p99) ** 0.5 for name, values in each.items()}
    return Packets(means, errors, each, [])


def test_packets_contradict_by_their_means() -> None:
    goal = goal_of("queue_bytes.p99", None, "utilisation>=0.99", True, 1.0)
    present = _packets([100.0, 110.0, 105.0], [0.995, 0.995, 0.995])
    assert not contradictions(goal, _packets([50.0, 60.0, 55.0], [0.992, 0.991, 0.993]), present)
    assert contradictions(goal, _packets([50.0, 60.0, 55.0], [0.9891, 0.9920, 0.9880]), present)  # the mean counts
    (little,) = contradictions(goal, _packets([50.0, 60.0, 55.0], [0.988, 0.999, 0.984]), present)  # nor by its error
    assert little.startswith("utilisation>=0.99 is kept by less than its error: 0.990333 +- 0.0045")
    missed = contradictions(goal, _packets([50.0, 60.0, 55.0], [0.97, 0.971, 0.969]), present)
    assert len(missed) == 1
    assert "utilisation>=0.99 is missed: 0.97" in missed[0]
    (worse,) = contradictions(goal, _packets([150.0, 160.0, 155.0], [0.995, 0.995, 0.995]), present)
    assert "queue_bytes.p99 is worse" in worse
    # A present setting that leaves the link idle has a short queue for that: nothing to be held to.
    idle = _packets([10.0, 11.0, 12.0], [0.5, 0.5, 0.5])
    assert not contradictions(goal, _packets([50.0, 60.0, 55.0], [0.995, 0.995, 0.995]), idle)


def test_a_present_setting_that_keeps_its_bound_on_average_is_held_to() -> None:
    """Its mean of 0.991 has an error of 0.003: no reason to let a longer queue pass."""
    goal = goal_of("queue_bytes.p99", None, "utilisation>=0.99", True, 1.0)
    present = _packets([10.0, 11.0, 12.0], [0.985, 0.991, 0.997])
    (said,) = contradictions(goal, _packets([50.0, 60.0, 55.0], [0.995, 0.995, 0.995]), present)
    assert "queue_bytes.p99 is worse" in said


def _cases(values: list[float], errors: list[float], name: str = "utilisation") -> Packets:
    return Packets({name: np.array(values)}, {name: np.array(errors)}, {name: np.array(values)[:, None]}, [])


@pytest.mark.parametrize("bound", ["utilisation>=0.9", "queue_bytes.p99<=0.9"])
@pytest.mark.parametrize("worst", [True, False])
def test_every_case_must_keep_a_bound(bound: str, worst: bool) -> None:
    """Or their mean where that counts: two cases, of which one misses by as much as the other has to spare, or more."""
    name, bad = ("utilisation", -1) if ">=" in bound else ("queue_bytes.p99", 1)
    goal = goal_of(name, None, bound, worst, 1.0)
    for spare, missed in ((0.04, True), (0.06, worst)):
        found = _cases([0.9 + bad * 0.05, 0.9 - bad * spare], [0.0, 0.0], name)
        assert bool(contradictions(goal, found, None)) is missed
    assert not contradictions(goal, _cases([0.9 - bad * 0.01] * 2, [0.0, 0.0], name), None)


@pytest.mark.parametrize(("value", "missed"), [(0.8999, 1), (0.9, 0), (0.95, 0), (math.nan, 1)])
def test_a_bound_is_kept_by_the_error_of_its_case(value: float, missed: int) -> None:
    goal = goal_of("utilisation", None, "utilisation>=0.9", True, 1.0)
    assert len(contradictions(goal, _cases([value, 0.99], [0.0, 0.0]), None)) == missed
    assert len(contradictions(goal, _cases([value, 0.99], [0.049, 0.03]), None)) == (missed or value < 0.95)
    assert len(contradictions(goal, _cases([0.99, value], [0.0, 0.051]), None)) == 1
    # Two seeds that agree by chance: the other case tells how far they may be apart.
    assert not contradictions(goal, _cases([0.91, 0.99], [0.0, 0.009]), None)
    assert contradictions(goal, _cases([0.91, 0.99], [0.0, 0.02]), None)


@pytest.mark.parametrize("worst", [True, False])
def test_more_is_by_two_standard_errors_of_the_difference_seed_by_seed(worst: bool) -> None:
    """Expect 3.2 % of 4000 like settings to seem worse with 16 seeds: beyond 2 of Student's t with 15 degrees.

    Three deviations of the binomial are 0.8 %. What both have in common in a seed is no chance.
    """
    goal = goal_of("queue_bytes.p99", None, (), worst, 1.0)
    random = np.random.default_rng(2)
    common = 50 * random.normal(size=(4000, 1, 16))
    ours, theirs = (common + random.normal(size=(4000, 3, 16)) for _ in range(2))

    def of(each: np.ndarray) -> Packets:
        return Packets({"queue_bytes.p99": each.mean(axis=1)}, {}, {"queue_bytes.p99": each}, [])

    alike = np.mean([bool(contradictions(goal, of(a), of(b))) for a, b in zip(ours, theirs, strict=True)])
    assert alike == pytest.approx(0.032, abs=0.009)
    assert all(contradictions(goal, of(a + 2), of(b)) for a, b in zip(ours[:50], theirs, strict=False))
    assert not any(contradictions(goal, of(a - 2), of(b)) for a, b in zip(ours[:50], theirs, strict=False))
    used = goal_of("utilisation", None, (), worst, 1.0)
    few, many = (Packets({}, {}, {"utilisation": level + 0.001 * ours[0]}, []) for level in (0.90, 0.95))
    few.metrics["utilisation"] = many.metrics["utilisation"] = np.zeros(3)
    assert contradictions(used, few, many)
    assert not contradictions(used, many, few)
    ours[0][:, 4] = math.nan  # a seed without a value is no proof that it is as good
    assert contradictions(goal, of(ours[0] - 9), of(theirs[0]))


def test_a_settling_time_is_that_of_the_mean_rates_in_packets_too() -> None:
    """Single runs never come within a tenth; the mean over the seeds does, and is what counts."""
    goal = goal_of("settling_time", None, (), True, 1.0)

    def settling(mean: float) -> Packets:
        each = {SETTLING: np.array([[np.nan, np.nan, np.nan]])}
        return Packets({SETTLING: np.array([mean])}, {}, each, [])

    assert not contradictions(goal, settling(1e-3), settling(5e-3))
    assert contradictions(goal, settling(6e-3), settling(5e-3))
    assert contradictions(goal, settling(np.nan), settling(5e-3))
    assert not contradictions(goal, settling(6e-3), settling(np.nan))


def test_more_pauses_than_now_speak_against_a_setting() -> None:
    goal = goal_of("queue_bytes.p99", None, "utilisation>=0.99", True, 1.0)

    def pausing(counts: list[float]) -> Packets:
        quiet = _packets([50.0, 60.0, 55.0], [0.995, 0.995, 0.995])
        return dataclasses.replace(
            quiet,
            metrics=quiet.metrics | {"pfc_pauses": np.array([np.mean(counts)])},
            each=quiet.each | {"pfc_pauses": np.array([counts])},
        )

    (said,) = contradictions(goal, pausing([120.0, 130.0, 140.0]), pausing([2.0, 3.0, 3.0]))
    assert "more PAUSEs" in said
    assert "130 a run" in said
    assert not contradictions(goal, pausing([2.0, 3.0, 4.0]), pausing([120.0, 130.0, 140.0]))
    assert not contradictions(goal, pausing([0.0, 9.0, 0.0]), pausing([2.0, 3.0, 3.0]))  # within two errors


@pytest.mark.slow
def test_what_is_found_keeps_its_bounds_in_packets(tmp_path: Path) -> None:
    """With Kmin of a packet those that meet are marked: the search must not go there, and packets confirm."""

    def red(kmin: float, kmax: float, pmax: float, flows: int) -> fc.Scenario:
        return fc.incast(int(flows), marking=fc.RED(kmin, kmax, pmax), scheme=fc.DCQCN(g=0.0107421875))

    over = {"kmin": ("1KB", "10KB"), "kmax": ("30KB", "800KB"), "pmax": ("1%", "100%")}
    found = fc.tune(
        red, over, across={"flows": [4, 8]}, subject_to=["utilisation>=0.99", "jain>=0.9"], until="30ms",
        start={"kmin": "5KB", "kmax": "200KB", "pmax": "1%"}, evaluations=80, sensitivity=4,
    )  # fmt: skip
    assert found.confirmed
    proof = found.packets["best"].metrics
    assert (proof["utilisation"] >= 0.99).all()
    assert proof["queue_bytes.p99"].max() < found.packets["start"].metrics["queue_bytes.p99"].max()
    written = found.write(tmp_path / "out")
    assert {path.name for path in written} == {"tuning.json", "front.png", "sensitivity.png", "packets.png"}
    assert all(path.stat().st_size > 500 for path in written)


def test_pictures_name_the_present_setting_and_the_bounds() -> None:
    found = small(yardsticks={"paper": START}, subject_to="utilisation>=0.5")
    texts = [text.get_text() for text in found.plot_front().axes[0].get_legend().get_texts()]
    assert {"best", "utilisation>=0.5"} <= set(texts), texts
    assert any(text.startswith("present") for text in texts)
    assert any(text.startswith("paper") for text in texts)
    assert "refused by packets" not in texts
    refused = dataclasses.replace(found, refused=[found.pareto[0].point]).plot_front()
    assert "refused by packets" in [line.get_label() for line in refused.axes[0].lines]
    for draw in (found.plot_sensitivity, found.plot_packets):
        with pytest.raises(InputError, match="write tune"):
            draw()


def test_a_failed_point_has_no_rank() -> None:
    nothing = {"queue_bytes.p99": np.array([np.nan]), "utilisation": np.array([np.nan])}
    goal = goal_of("queue_bytes.p99", None, "utilisation>=0.99", True, 1.0)
    failed = Measured(nothing, nothing, "no")
    assert np.isinf(goal.costs(failed.metrics)).all()
    assert (goal.violations(failed.metrics) > 100).all()
    assert dataclasses.asdict(failed)["reason"] == "no"


def test_rates_are_tuned_and_typed() -> None:
    """A tuned rate is one: it goes into a scenario and into what is typed without a unit being asked for."""

    def faster(rate_ai: Any, timer: Any) -> fc.Scenario:
        return fc.incast(2, rate="40Gbps", scheme=fc.DCQCN(rate_ai=rate_ai, timer=timer))

    over = {"rate_ai": ("5Mbps", "400Mbps"), "timer": ("50us", "300us")}
    start = {"rate_ai": "40Mbps", "timer": "55us"}
    found = fc.tune(faster, over, until="5ms", seeds=1, evaluations=8, packet_seeds=0, subject_to=(), start=start)
    assert found.start is not None
    assert found.start.point == {"rate_ai": 5e6, "timer": pytest.approx(55e-6)}
    assert (found.best.point["rate_ai"] / 125e3).is_integer()
    leaf = Path(__file__).parents[3] / "examples" / "leaf-100g"
    switch = leaf / "config_db.json"
    ports = alike(read_ports(switch)[0], read_sonic(switch, "Ethernet0"))
    typed = commands_of(switch, ports, read_nic(leaf / "nic.txt"), found.best.point)
    assert typed.registers["rpg_ai_rate"] == round(found.best.point["rate_ai"] / 125e3)


def test_equal_numbers_of_pauses_over_many_cases_are_not_more() -> None:
    goal, random = goal_of("queue_bytes.p99", None, [], True, 1.0), np.random.default_rng(1)

    def pausing() -> Packets:
        counts = random.poisson(20, (9, 4)).astype(float)
        each = {"queue_bytes.p99": np.full((9, 4), 1e3), "pfc_pauses": counts, "drops": np.zeros((9, 4))}
        means = {name: values.mean(axis=1) for name, values in each.items()}
        return Packets(means, {name: np.zeros(9) for name in means}, each, [])

    false = sum(bool(contradictions(goal, pausing(), pausing())) for _ in range(200))
    assert false < 40  # 14 expected with four seeds


def test_what_packets_refuse_is_said_and_loses_nothing():
    def make(kmin, kmax):
        one = fc.incast(4, rate="100Gbps", marking=fc.RED(kmin, kmax, "10%"))
        return dataclasses.replace(one, buffer="50KB", pfc=fc.PFC())

    over = {"kmin": ("10KB", "100KB"), "kmax": ("100KB", "400KB")}
    found = fc.tune(make, over, until="1ms", evaluations=4, seeds=1, packet_seeds=1)
    assert found.confirmed is None
    assert found.packets == {}
    assert [note for note in found.notes if "packets were not run: buffer: 50KB" in note]
