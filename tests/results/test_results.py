"""What all results have in common: identity, content, selection, and what they look like."""

from __future__ import annotations

import copy
import dataclasses
import functools
import math
import pickle
import re
import warnings
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
import xarray as xr

import fluidcc as fc
from fluidcc.operators.audit import Audit
from fluidcc.proofs.verdict.claim import Finding
from fluidcc.proofs.verdict.claim import Result as ClaimResult
from fluidcc.proofs.verdict.figure import Check, Figure
from fluidcc.proofs.verdict.figure import Result as FigureResult
from fluidcc.results.dataset import DatasetResult, Parts
from fluidcc.results.grid import Grid
from fluidcc.results.identity import Comparable, same
from fluidcc.results.metrics import Oscillation
from fluidcc.results.trace import Trace, trace_of
from fluidcc.studies.fitting.measured import Measured
from fluidcc.studies.fitting.result import Estimate
from fluidcc.studies.sweeps.hysteresis import branches_of
from fluidcc.studies.tuning.goal import Goal, Objective
from fluidcc.studies.tuning.race import MEASURES, Racer, Rule
from fluidcc.studies.tuning.result import Candidate
from fluidcc.studies.tuning.space import Space, Variable
from fluidcc.theory.control.linearize import Fairness
from fluidcc.theory.fairness.queue import SharedDecrease
from fluidcc.theory.recursion.classes import share_link
from fluidcc.theory.recursion.pareto import residual
from fluidcc.theory.recursion.windows import window_limit
from tests.test_imports import modules

EVIL = "<script>alert('x')</script>"
A, C, R0 = [[1, 1, 0], [1, 0, 1]], [1.0, 2.0], [0.1, 0.2, 0.3]


def simulated(**options: Any) -> Trace:
    return fc.simulate(fc.incast(2), "1ms", estimate_error=False, **options)


@functools.cache
def packets(seed: int = 1) -> Trace:
    return fc.simulate(fc.incast(2), "1ms", engine="packet", seed=seed)


def swept() -> fc.studies.SweepResult:
    return fc.sweep(
        lambda kmin, g: fc.incast(2, marking=fc.RED(kmin, "200KB", "1%"), scheme=fc.DCQCN(g=g)),
        over={"kmin": ["5KB", "20KB", "300KB"], "g": ["1/256", "1/16"]},
        until="1ms",
        estimate_error=False,
    )


def charted() -> fc.studies.StabilityChart:
    """A chart as `stability_chart` makes it, of numbers that cost nothing."""
    names, root = ("n", "tau"), np.array([[-3.0, -1.0], [-2.0, 1.0], [-1.0, 2.0]])
    columns = dict.fromkeys(("root", "frequency", "fairness_root", "marking_probability", "queue_bytes"), root)
    columns |= {"stable": (root < 0) * 1.0, "on_ramp": np.ones_like(root)}
    data = {name: (names, values, {"units": "1"}) for name, values in columns.items()}
    data |= {"reason": (names, np.full(root.shape, "ok")), "boundary": (("point", "name"), [[4.0, 8e-5], [9.0, 5e-5]])}
    axes = {"n": [2.0, 8.0, 30.0], "tau": [2e-5, 8.5e-5], "name": list(names)}
    return fc.studies.StabilityChart(xr.Dataset(data | {"curve": ("point", [0, 0])}, axes))


def branched() -> fc.studies.Branches:
    grid = Grid({"n": np.array([2.0, 8.0]), "g": np.array([0.1, 0.2, 0.3])})
    numbers = {
        name: np.arange(6.0) for name in ("peak_to_peak", "queue_bytes.min", "queue_bytes.max", "queue_bytes.mean")
    }
    columns = numbers | {"kind": np.array(["equilibrium", "cycle"] * 3)}
    return branches_of(grid, {"up": columns, "down": columns})


def followed() -> fc.studies.CycleBranch:
    """A branch as `cycle_branch` makes it: an unstable cycle, a fold, a stable one."""
    columns = {"n": [9.0, 8.3, 9.0], "period": [2.1e-3, 2e-3, 1.9e-3], "queue_bytes.min": [40e3, 0.0, 0.0]}
    columns |= {
        "queue_bytes.max": [200e3, 201e3, 210e3],
        "queue_bytes.mean": [1e5, 8e4, 7e4],
        "multiplier": [200.0, 1.0, 0.8],
    }
    columns |= {"shift_multiplier": [1.0] * 3, "fairness_multiplier": [0.8] * 3}
    data: dict[str, Any] = {name: ("point", values) for name, values in columns.items()}
    data |= {"stable": ("point", [False, False, True]), "fold": ("point", [False, True, False])}
    data |= {name: (("point", "phase"), np.arange(12.0).reshape(3, 4)) for name in ("queue", "rate")}
    data |= {"equilibrium_queue": ("value", [9e4, 1e5]), "equilibrium_stable": ("value", [True, True])}
    axes = {"phase": [0.25, 0.5, 0.75, 1.0], "value": [8.0, 9.0]}
    return fc.studies.CycleBranch(xr.Dataset(data, axes), "n", ("the range ends", "the range ends"))


def region_of() -> fc.studies.BistableRegion:
    """A region as `bistable_region` makes it, of three numbers of flows and two gains."""
    columns: dict[str, Any] = {"fold": [6.5, np.nan], "fold_period": [2e-3, np.nan], "fold_queue_max": [201e3, np.nan]}
    data = {name: ("g", values, {"units": "1"}) for name, values in columns.items()}
    root, ramp = np.array([[-9.0, 9.0], [-5.0, 5.0], [-1.0, 1.0]]), np.array([[True] * 2, [True] * 2, [False] * 2])
    both = np.array([[False, False], [True, False], [False, False]])
    data |= {"reason": ("g", ["ok", "no fold: the range ends"]), "root": (("n", "g"), root)}
    data |= {"on_ramp": (("n", "g"), ramp), "bistable": (("n", "g"), both)}
    return fc.studies.BistableRegion(xr.Dataset(data, {"n": [4.0, 8.0, 12.0], "g": [0.1, 0.2]}), "n")


# What a theory, a search or an integrator makes, with numbers as it gives them for eight flows of DCQCN, a second of
# computing each; that these are the right ones is for their own tests.


def settled() -> fc.theory.Equilibrium:
    link = {"name": "bottleneck", "marking_probability": 0.00455, "queue_bytes": 93766.17, "utilisation": 1.0}
    flow = {
        "marking_probability": 0.00455,
        "rate_bytes_per_s": 6.25e8,
        "alpha": 0.145,
        "target_rate_bytes_per_s": 6.4e8,
    }
    flows = tuple({"name": f"flow {i}"} | flow for i in range(8))
    return fc.theory.Equilibrium(True, True, (link,), flows, True, searched="rates from 40bps to 40Gbps")


def linear() -> fc.theory.Linearization:
    states = ("queue 0", "rate 0", "target_rate 0", "alpha 0")
    A0, lagged = np.diag([0.0, -8570.4, -2657.6, -71.0]), np.full((1, 4, 4), -10.0)
    modes = fc.delay.DelaySystem(A0[1:, 1:], lagged[:, 1:, 1:], [5.4e-5])
    return fc.theory.Linearization(
        states, fc.delay.DelaySystem(A0, lagged, [5.4e-5]), (Fairness(modes, 7.0),), settled()
    )


def judged() -> fc.theory.Stability:
    margins = (1.92, -6.43, 5.14, 1.2194869e-5, 6.2e-5, 2754.4)
    return fc.theory.Stability(
        8.0, True, True, True, -47.73366 + 2754.089j, -123.15 + 15.49j, *margins, queue_std_bytes=1.3e5
    )


def cycled() -> fc.theory.LimitCycle:
    time, rate = np.linspace(0.05, 0.06, 9), np.full((9, 2), 2.5e9)
    data = xr.Dataset(
        {"queue": ("time", np.linspace(19607.0, 19976.0, 9)), "rate": (("time", "flow"), rate)},
        {
            "time": time,
            "flow": ["flow 0", "flow 1"],
            "multiplicity": ("flow", np.ones(2)),
            "crosses": ("flow", [True, True]),
        },
    )
    ends = (19607.0, 19976.0, 19824.0, math.nan, math.nan, (2.5e9, 2.5e9), 0.05)
    error = dict.fromkeys(("peak_to_peak_rel", "period_rel", "as_expected"))
    return fc.theory.LimitCycle(data, "decaying", "bottleneck", *ends, error)  # type: ignore[arg-type]


def decreased() -> SharedDecrease:
    two, flow = np.outer([1.0, 2.0], np.linspace(0.0, 1.0, 5)), np.linspace(1e9, 2e9, 20).reshape(2, 5, 2)
    data: dict[str, Any] = {name: (("rule", "time"), two) for name in ("difference", "ratio", "jain", "queue", "rtt")}
    data |= {name: (("rule", "time", "flow"), flow) for name in ("rate", "sent", "acked")} | {"lead": ("time", two[0])}
    axes = {"rule": ["per RTT", "sampling"], "time": np.linspace(0.0, 1e-4, 5), "flow": ["flow 0", "flow 1"]}
    errors = {"discretisation_error.rate_rel": 2e-5, "discretisation_error.queue_rel": 2e-3}
    return SharedDecrease(xr.Dataset(data, axes, {"capacity": 12.5e9, "base_rtt_s": 1e-5, **errors}))


def integrated() -> Any:
    time = np.linspace(0.0, 3.0, 9)
    return fc.delay.Solution(xr.Dataset({"x": ("time", np.cos(time))}, {"time": time}), 0.0015, 2.2e-10)


def solved() -> Any:
    columns = {"root": [-0.3181, 0.1728], "frequency": [1.337, 1.674], "stable": [1.0, 0.0], "state_x": [0.0, 0.0]}
    data = {name: ("k", values) for name, values in columns.items()} | {"reason": ("k", ["ok", "ok"])}
    return fc.delay.Chart(xr.Dataset(data, {"k": [1.0, 2.0]}, {"roots_at_0": 0}))


def periodic() -> Any:
    time = np.linspace(0.0, 4.18, 9)
    data = xr.Dataset({"x": ("time", 1 + 0.5 * np.sin(time * 1.5))}, {"time": time})
    return fc.delay.Cycle(data, 4.1835339, 5.3e-10, 32, np.array([0.358 + 0j, 4.6e-4 + 2.4e-4j, 4.6e-4 - 2.4e-4j]))


def audited() -> Audit:
    return Audit(None, None, fc.DCQCN(), [], [], settled(), 8)  # type: ignore[arg-type]


def raced() -> fc.studies.FabricTuning:
    space, point = Space((Variable("kmin", 1e3, 1e5),)), {"kmin": 2e4}
    racer = Racer("s1", point, np.ones((1, len(MEASURES), 4, 2)))
    return fc.studies.FabricTuning(
        space=space, rule=Rule(("goodput",)), topology=fc.fabrics.named_topology("leaf-spine:2x1x2"),
        cases=[{"workload": "hadoop"}], says=("hadoop at 50 % load",), start={"kmin": 1e4}, yardsticks={},
        racers=[racer], best="s1", proofs={"s1": racer}, plateau={"kmin": (2e4, 2e4)}, irrelevant=[], runs=8,
        flows=[{"small": 9, "large": 1}], notes=[],
    )  # fmt: skip


def tuned() -> fc.studies.Tuning:
    goal, space = Goal((Objective("queue_bytes.mean"),), ()), Space((Variable("kmin", 5e3, 20e3),))
    one, other = (Candidate({"kmin": k}, {"queue_bytes.mean": q}, {}, True) for k, q in ((5e3, 8e3), (2e4, 3e4)))
    return fc.studies.Tuning(goal, space, other, one, [one], None, {}, 2, None, {}, None, [])


def fitted() -> fc.studies.Fit:
    time = np.linspace(0.0005, 0.001, 6)
    samples = Measured(time, 1e3 * time, np.outer(time, [1e9, 2e9]), "bottleneck", False)
    estimate, matrix = {"kmin": Estimate(5781.1, 5e3, 18677.3)}, np.ones((1, 1))
    found = (estimate, {"kmin": False}, 0.328, ("the trace does not determine kmin",), np.array([1.94]), matrix)
    return fc.studies.Fit(*found, "hybrid", 100, (0.0005, 0.001), samples, (samples, samples))


def slowed() -> fc.fabrics.Slowdown:
    scenario = fc.incast(2, size="10KB", scheme="none")
    return fc.fabrics.slowdown(scenario, fc.simulate(scenario, "1ms", engine="packet"))


# Every class of results, by a function that makes one; a second call makes another with the same content.
MADE: dict[str, Any] = {
    "Trace": simulated,
    "Comparison": lambda: fc.compare(simulated(), [packets(1), packets(2)]),
    "SweepResult": swept,
    "StabilityChart": charted,
    "Branches": branched,
    "CycleBranch": followed,
    "BistableRegion": region_of,
    "WaiSweep": lambda: fc.studies.wai_sweep(
        fc.incast(4, rate="100Gbps", scheme=fc.HPCC()), ["80B", "300B"], engines=[]
    ),
    "LimitCycle": cycled,
    "DecreaseRates": lambda: fc.theory.decrease_rates(["100Gbps", "50Gbps"]),
    "SharedDecrease": decreased,
    "Equilibrium": settled,
    "Linearization": linear,
    "Rates": lambda: fc.theory.additive_increase(A, C, R0, increase=0.01, steps=3),
    "Pareto": lambda: fc.theory.pareto(A, C, R0, steps=3),
    "Repaired": lambda: residual(A, C, R0, exact=True),
    "Shared": lambda: share_link([0.5, 0.5], [0.1, 0.2], steps=3),
    "WindowLimit": lambda: window_limit(4),
    "AccMap": lambda: fc.theory.acc_map([0.3, 0.7], steps=5),
    "Audit": audited,
    "Tuning": tuned,
    "FabricTuning": raced,
    "Fit": fitted,
    "Slowdown": slowed,
    "FabricStudy": lambda: fc.fabric("hpcc", "leaf-spine:2x1x2", flows=[(0, 2, 0, "10KB"), (1, 3, 0, "20KB")]),
    "Solution": integrated,
    "Chart": solved,
    "Cycle": periodic,
    "CollectiveStudy": lambda: fc.collective("broadcast", "leaf-spine:2x1x2", "hpcc", hosts=2, bytes="10KB"),
}
# Those that go by identity without `identical`, and those whose content is hashable, which go by content.
BY_IDENTITY: dict[str, Any] = {
    "PublishedLoop": lambda: fc.linearize(fc.incast(8), method="paper"),
    "FigureResult": lambda: FigureResult(Figure("a", "b", "c", None), {"x": 1.0}, {"x": Check(1.0, 0.0, "")}, ()),
    "Finding": lambda: Finding({"": True}, {"x": np.arange(2)}),
    "ClaimResult": lambda: ClaimResult(None, Finding({"": True}, {}))  # type: ignore[arg-type]
}  # fmt: skip
BY_CONTENT: dict[str, Any] = {
    "Stability": judged,
    "Oscillation": lambda: Oscillation(1.0, 2.0),
    "Scenario": lambda: fc.incast(2),
}
DATASETS = ("Trace", "Comparison", "SweepResult", "StabilityChart", "Branches", "WaiSweep", "LimitCycle",
            "DecreaseRates", "SharedDecrease", "Slowdown", "Solution", "Chart", "Cycle", "CycleBranch",
            "BistableRegion")  # fmt: skip


@functools.cache
def made(name: str) -> Any:
    return (MADE | BY_IDENTITY | BY_CONTENT)[name]()


# -- identity and content ------------------------------------------------------------------------------------


def subclasses(*roots: str) -> set[str]:
    """Names of all classes of the sources that derive from one of the roots."""
    found: set[str] = set(roots)
    opened = re.compile(r"^ *class (\w+)\(([^)]*)\):", re.MULTILINE)
    heads = [head for path in modules().values() for head in opened.findall(path.read_text())]
    while more := {name for name, bases in heads if found & {*re.findall(r"[\w.]+", bases)}} - found:
        found |= more
    return found - set(roots)


def test_every_class_is_here() -> None:
    assert subclasses("Comparable") - {"DatasetResult"} == set(MADE)
    assert subclasses("DatasetResult") == set(DATASETS)
    assert {type(made(name)).__name__ for name in MADE} == set(MADE)


@pytest.mark.parametrize("name", [*MADE, *BY_IDENTITY])
def test_equality_and_hash_go_by_identity(name: str) -> None:
    one = made(name)
    other = copy.copy(one)
    assert (one == one) is True
    assert (one == other) is False
    assert (one != other) is True
    assert isinstance(hash(one), int)
    assert len({one, other, one}) == 2


@pytest.mark.parametrize("name", BY_CONTENT)
def test_equality_and_hash_go_by_content(name: str) -> None:
    one, other = made(name), copy.copy(made(name))
    assert one is not other
    assert (one == other) is True
    assert hash(one) == hash(other)


@pytest.mark.parametrize("name", MADE)
def test_the_same_again_is_identical(name: str) -> None:
    one, again = made(name), MADE[name]()
    assert one is not again
    assert one.identical(one)
    assert one.identical(again)
    assert again.identical(one)
    assert pickle.loads(pickle.dumps(one)).identical(one) if name != "Audit" else True
    others = [made(other) for other in MADE if other != name]
    assert not any(one.identical(other) for other in [*others, None, 1])


def test_a_trace_of_another_scheme_is_not_equal() -> None:
    ours, other = packets(), fc.simulate(fc.incast(2, scheme=fc.NoControl()), "1ms", engine="packet", seed=1)
    assert ours != other
    assert not ours.identical(other)


def test_seeds_and_clocks() -> None:
    one, again, other = packets(1), fc.simulate(fc.incast(2), "1ms", engine="packet", seed=1), packets(2)
    assert one.summary["wall_s"] != again.summary["wall_s"]
    assert one.identical(again)
    assert not one.identical(other)


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.assign(queue=d.queue + 1e-9),
        lambda d: d.assign(queue=d.queue.assign_attrs(units="KB")),
        lambda d: d.assign(queue=d.queue.astype("float32").astype("float64").astype("float32")),
        lambda d: d.assign_coords(flow=["a", "b"]),
        lambda d: d.assign_attrs(dt_s=1.0),
        lambda d: d.assign_attrs(summary=d.attrs["summary"].replace('"flows": 2', '"flows": 3')),
        lambda d: d.drop_vars("sent"),
        lambda d: d.isel(time=slice(1, None)),
    ],
)
def test_any_change_is_seen(change: Any) -> None:
    one = made("Trace")
    assert not one.identical(dataclasses.replace(one, dataset=change(one.dataset)))


def test_content_of_all_kinds() -> None:
    class Thing:
        """Compared by ==."""

    thing = Thing()
    for value in (math.nan, [math.nan, {"a": np.array([1, math.nan])}], (1, "a"), None, thing, np.array([thing])):
        assert same(value, value)
        assert same(value, copy.copy(value)) or value is thing
    pairs = [(1, 1.0), (1, True), ([1], (1,)), ({"a": 1}, {"a": 1, "b": 2}), (np.arange(2), np.arange(3))]
    pairs += [(np.arange(2), np.arange(2.0)), (Thing(), Thing()), (xr.DataArray([1]), xr.DataArray([2]))]
    for one, other in pairs:
        assert not same(one, other)
    assert same({"wall_s": 1.0, "a": [{"compile_s": 2}]}, {"wall_s": 3.0, "a": [{"compile_s": 4}]})


# -- parts ---------------------------------------------------------------------------------------------------


def test_parts_of_a_trace_are_traces() -> None:
    trace = made("Trace")
    for part in (
        trace.sel(flow="flow 0"),
        trace.sel({"flow": ["flow 0"]}),
        trace.isel(flow=0, link=0),
        trace.sel(time=2e-4, method="nearest"),
        trace.sel(time=slice(0, 5e-4)),
        trace.between("0us", "500us"),
    ):
        assert type(part) is Trace
        assert set(part.dataset.dims) == {"time", "link", "flow"}
        assert part.summary == trace.summary
        assert part.plot().axes
        assert repr(part).startswith("<Trace fluid, dcqcn, ")
    assert trace.sel(flow="flow 1")["rate"].identical(trace["rate"].sel(flow=["flow 1"]))
    with pytest.raises(KeyError):
        trace.sel(flow="none")
    with pytest.raises((KeyError, ValueError)):
        trace.sel(nothing=1)


def test_metrics_of_some_flows() -> None:
    scenario = fc.incast(
        3, rate="100Gbps", scheme=fc.NoControl(), size=["100KB", "200KB", math.inf], start=["0", "9us", "0"]
    )
    trace = fc.simulate(scenario, "100us", engine="packet")
    whole = fc.theory.finish_times(trace)
    part = trace.sel(flow=["flow 1", "flow 2"])
    assert fc.theory.finish_times(part).tolist() == whole[1:].tolist()
    assert np.nanmax(fc.theory.jain_over_time(trace.sel(flow="flow 1"))) == 1.0
    one = made("Trace").sel(flow="flow 1")
    with pytest.raises(fc.InputError, match="parts of runs"):
        fc.compare(one, one)


def test_parts_of_a_sweep_are_sweeps() -> None:
    sweep = made("SweepResult")
    part = sweep.sel(g=1 / 256)
    assert type(part) is fc.studies.SweepResult
    assert part.names == ["kmin"]
    assert (part.points, part.failed) == (3, 1)
    assert part.best().keys() == {"kmin", "metric", "value", "utilisation", "jain"}
    assert part.plot().axes
    point = part.sel(kmin=5e3)
    assert (point.names, point.points, point.failed) == ([], 1, 0)
    assert point.best(subject_to=())["value"] == float(sweep["queue_bytes.mean"].sel(g=1 / 256, kmin=5e3))
    with pytest.raises(fc.InputError, match="one point"):
        point.plot()
    assert type(sweep.isel(g=[0])) is fc.studies.SweepResult


def test_parts_of_charts_and_branches() -> None:
    chart = made("StabilityChart")
    assert "boundary" in chart.isel(n=slice(0, 2))
    line = chart.sel(n=8.0)
    assert type(line) is fc.studies.StabilityChart
    assert "boundary" not in line
    with pytest.raises(fc.InputError, match="over two"):
        line.plot()
    two = made("Branches")
    assert type(two.sel(n=2.0)) is fc.studies.Branches
    assert two.sel(n=2.0).plot().axes
    assert type(two.sel(branch="up")) is xr.Dataset
    with pytest.raises(fc.InputError, match="one point"):
        two.isel(n=0, g=0).plot()


def test_parts_of_the_others() -> None:
    assert type(made("Comparison").sel(time=slice(0, 5e-4))) is fc.Comparison
    assert made("Comparison").sel(seed=1).plot().axes
    cycle = made("LimitCycle").sel(flow="flow 0")
    assert (type(cycle), cycle.kind) == (fc.theory.LimitCycle, made("LimitCycle").kind)
    assert cycle.plot().axes
    assert type(made("WaiSweep").sel(w_ai=80)) is fc.studies.WaiSweep
    assert type(made("WaiSweep").sel(engine="closed form")) is xr.Dataset
    rates = made("DecreaseRates")
    assert type(rates.sel(time=slice(0, 1e-4))) is type(rates)
    assert type(rates.sel(rule="sampling")) is xr.Dataset


@pytest.mark.parametrize("name", DATASETS)
def test_everything_of_xarray_is_reached(name: str) -> None:
    one = made(name)
    assert isinstance(one, DatasetResult)
    assert isinstance(one, Comparable)
    for variable in map(str, one.dataset.variables):
        assert variable in one
        assert one[variable].identical(one.dataset[variable])
        if variable.isidentifier() and not hasattr(type(one), variable):
            assert getattr(one, variable).identical(one.dataset[variable])
    assert one.to_dataarray is not None
    assert not hasattr(one, "nothing_of_the_kind")
    assert "nothing" not in one
    copied = copy.deepcopy(one)
    assert copied.identical(one)


def test_the_window_is_the_congestion_window() -> None:
    trace = fc.simulate(fc.incast(2, rate="100Gbps", scheme=fc.HPCC()), "50us", engine="packet")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert trace.window.identical(trace["window"])
        assert trace.window.attrs["units"] == "bytes"
        assert type(trace.between("10us", "20us")) is Trace


# -- what people see -----------------------------------------------------------------------------------------


class Balanced(HTMLParser):
    """Whether tags close in order, and which there are."""

    VOID = frozenset({"input", "br", "path", "use", "hr", "meta", "rect"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.seen.add(tag)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag


def checked(html: str) -> str:
    parser = Balanced()
    parser.feed(html)
    assert parser.open == []
    assert "script" not in parser.seen
    return html


SHOWN = [*DATASETS, "Equilibrium", "Linearization", "Stability", "Scenario"]


@pytest.mark.parametrize("name", SHOWN)
def test_representations(name: str) -> None:
    one = made(name)
    text = repr(one)
    assert text.startswith("<")
    assert text.endswith(">")
    assert len(text.splitlines()) <= 8
    assert len(text) < 500
    html = checked(one._repr_html_())
    assert html.startswith("<div><strong>")
    assert ("<details><summary>dataset" in html) == (name in DATASETS)
    assert "nan" not in html.partition("<details>")[0]


def test_units_are_shown() -> None:
    assert "queue 93.77KB" in repr(made("Equilibrium"))
    assert "rate 5Gbps" in repr(made("Equilibrium"))
    assert "stable, rightmost root -47.73" in repr(made("Stability"))
    assert "delay margin 12.19us" in repr(made("Stability"))
    assert "<td" in made("Trace")._repr_html_()
    assert "5KB to 300KB, 3 values" in made("SweepResult")._repr_html_()


def test_user_text_is_escaped() -> None:
    link = fc.Link("10Gbps", marking=fc.RED("5KB", "200KB", 0.01), name=EVIL)
    flow = fc.Flow((0,), fc.DCQCN(g="1/16"), "40Gbps", name=EVIL)
    scenario = fc.Scenario((link,), (flow, dataclasses.replace(flow, name="", scheme=fc.TIMELY())))
    trace = fc.simulate(fc.Scenario((link,), (flow, flow)), "100us", engine="packet")
    rest, cycle = settled(), cycled()
    rest = dataclasses.replace(rest, flows=tuple(row | {"name": EVIL} for row in rest.flows))
    for shown in (scenario, trace, rest, dataclasses.replace(cycle, link=EVIL)):
        html = checked(shown._repr_html_())
        assert EVIL not in html
        assert "&lt;script&gt;" in html


def test_a_scenario_in_a_few_lines() -> None:
    scenario = fc.incast(16, rate="100Gbps", scheme=fc.HPCC(vai=True), size="1MB", stagger="20us", stagger_group=2)
    lines = repr(scenario).splitlines()
    assert lines[0] == "<Scenario: 16 flows, 1 link"
    assert lines[1] == "  bottleneck: 100Gbps, 1us"
    assert lines[2] == "  16 flows: HPCC(vai=on), line rate 100Gbps, start 0s to 140us, size 1MB>"
    assert "RED(kmin=5KB, kmax=200KB, pmax=0.01)" in repr(fc.incast(2))
    assert "pfc=PFC(xoff=512KB)" in repr(fc.chain(pfc=fc.PFC("512KB")))
    assert len(repr(fc.fat_tree([(0, 1, 0.0, "1MB")] * 50, scheme=fc.HPCC())).splitlines()) < 10
    unread = fc.Scenario((fc.Link("fast"),), (fc.Flow((0,), fc.DCQCN(g="much"), "40Gbps"),))
    assert "fast" in repr(unread)
    assert "g=much" in repr(unread)
    odd = fc.Scenario((fc.Link("8Gbps", name="a\nb"),), (fc.Flow((0,), fc.DCQCN(), "8Gbps", name="x" * 99),))
    assert len(repr(odd).splitlines()) == 3
    assert max(map(len, repr(odd).splitlines())) < 120


def test_a_traced_scenario_can_be_shown() -> None:
    import jax

    texts = []

    def show(n: Any) -> Any:
        texts.append(repr(fc.incast(1, multiplicity=n, scheme=fc.DCQCN(g=n / 256))))
        return n

    jax.make_jaxpr(show)(1.0)
    assert "DCQCN(g=traced)" in texts[0]
    assert "1 class of flows" in texts[0]


def test_a_dataset_is_made_of_its_parts_once_when_asked_for() -> None:
    """So a change of it stays; copies and pickles before that have the same parts."""
    parts = Parts({"queue": ("time", np.arange(3.0))}, {"time": np.arange(3.0)}, {"summary": '{"jain": 1.0}'})
    trace = trace_of(parts)
    assert trace.summary == {"jain": 1.0}
    assert "dataset" not in vars(trace)
    copies = copy.copy(trace), pickle.loads(pickle.dumps(trace)), dataclasses.replace(trace)
    trace.dataset.attrs["summary"] = '{"jain": 0.5}'
    assert trace.summary == {"jain": 0.5}
    assert trace.dataset is trace.dataset
    assert [each.summary for each in copies] == [{"jain": 1.0}] * 2 + [{"jain": 0.5}]
    assert copies[0].dataset.identical(xr.Dataset(*parts))


def test_what_is_no_dataset_is_no_result() -> None:
    with pytest.raises(fc.InputError, match=r"^Trace: expected an xarray\.Dataset, not 3; read a file by fl"):
        fc.Trace(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
