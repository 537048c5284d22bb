"""One schema: every engine's summary and dataset have exactly what it declares, and files keep it."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import fluidcc as fc
from fluidcc.builders.toml_file import from_toml
from fluidcc.contract.registry import scheme_of
from fluidcc.results import schema
from fluidcc.results.trace import Trace

# What scripts outside the project rely on: keys of `simulate` (the command-line contract).
CONTRACT = {
    "engine", "scheme", "flows", "until_s", "window_s", "queue_bytes", "rate_bytes_per_s", "goodput_bytes_per_s",
    "jain", "utilisation", "rate_gap_bytes_per_s", "fct_s", "compile_s", "wall_s",
}  # fmt: skip
OWN = {
    "fluid": {"discretisation_error"},
    "hybrid": {"events", "seed"},
    "packet": {"events", "packets", "pfc_pauses", "drops"},
}
QUEUE = {"mean", "std", "p5", "p50", "p95", "p99", "max", "max_whole_run"}


def plain() -> fc.Scenario:
    return fc.incast(3, rate="100Gbps", scheme=fc.HPCC(), size=["20KB", "10MB", math.inf], multiplicity=[1, 1, 2])


def drawn(kind: str) -> fc.Scenario:
    """What the hybrid models of each kind."""
    more = {"pfc": fc.PFC("20KB"), "buffer": "1MB"} if kind == "lossless" else {}
    scenario = fc.incast(3, size=["20KB", "10MB", math.inf], multiplicity=[1, 1, 2], **more)
    if kind != "mixed":
        return scenario
    flows = (scenario.flows[0], *(dataclasses.replace(flow, scheme=fc.NoControl()) for flow in scenario.flows[1:]))
    return dataclasses.replace(scenario, flows=flows)


@functools.cache
def run(engine: str, kind: str) -> Trace:
    """Runs of every kind: plain, with a log, with mechanisms, with other numbers."""
    if engine == "hybrid":
        return fc.simulate(drawn(kind), "50us", engine="hybrid")
    if kind == "log":
        return fc.simulate(plain(), "50us", engine="packet", log=True)
    if kind == "lossless":
        return fc.simulate(fc.incast(2, scheme=fc.ACC(), pfc=fc.PFC("512KB")), "50us", engine=engine)
    if kind == "float32":
        return fc.simulate(fc.incast(2), "50us", dtype="float32")
    if kind == "classes":
        scenario = fc.incast(2, rate="100Gbps", scheme=fc.HPCC(), classes=(fc.TrafficClass(), fc.TrafficClass()))
        return fc.simulate(scenario, "50us", engine=engine)
    if kind == "mixed":
        classes = (fc.TrafficClass(),) * (2 if engine == "fluid" else 1)  # of the fluid, both in one run
        two = fc.incast(2, scheme=fc.DCQCN(feedback_delay=None), classes=classes)
        flows = (two.flows[0], dataclasses.replace(two.flows[1], scheme=fc.HPCC()))
        return fc.simulate(dataclasses.replace(two, flows=flows), "50us", engine=engine)
    return fc.simulate(plain(), "50us", engine=engine)


RUNS = [
    *((engine, kind) for engine in ("fluid", "packet") for kind in ("plain", "mixed")),
    ("packet", "classes"),
    ("packet", "lossless"),
    pytest.param("fluid", "lossless", marks=pytest.mark.slow),
    *(("hybrid", kind) for kind in ("plain", "mixed", "lossless")),
    ("packet", "log"),
    ("fluid", "float32"),
]


def of_kind(value: Any, kind: str, flows: int, finite: int) -> bool:
    """Whether a value is what a kind of key declares."""

    def number(each: Any) -> bool:
        return each is None or (isinstance(each, (int, float)) and not isinstance(each, bool))

    return {
        "text": lambda: isinstance(value, str),
        "count": lambda: isinstance(value, (int, float)) and value >= 0,
        "number": lambda: number(value),
        "interval": lambda: len(value) == 2 and all(map(number, value)),
        "per flow": lambda: len(value) == flows and all(map(number, value)),
        "per finite flow": lambda: len(value) == finite and all(map(number, value)),
        "queue": lambda: list(value) == list(schema.QUEUE_STATISTICS) and all(map(number, value.values())),
        "per link": lambda: all(list(row) == ["name", "queue_bytes", "utilisation"] for row in value),
        "tree": lambda: value is None or isinstance(value, dict),
    }[kind]()


@pytest.mark.parametrize(("engine", "kind"), RUNS)
def test_summary(engine: str, kind: str) -> None:
    trace = run(engine, kind)
    summary = json.loads(trace.dataset.attrs["summary"], parse_constant=pytest.fail)
    assert list(summary) == schema.summary_keys(engine)
    finite = sum(math.isfinite(flow.size) for flow in from_toml(trace.dataset.attrs["scenario"]).flows)
    for name, value in summary.items():
        assert of_kind(value, schema.SUMMARY[name].kind, trace.sizes["flow"], finite), (name, value)
    assert all(of_kind(row["queue_bytes"], "queue", 0, 0) for row in summary["links"])


def test_the_contract_is_in_the_schema() -> None:
    for engine in schema.ENGINES:
        assert CONTRACT | OWN[engine] <= set(schema.summary_keys(engine))
    assert set(schema.QUEUE_STATISTICS) >= QUEUE
    common = set.intersection(*(set(schema.summary_keys(engine)) for engine in schema.ENGINES))
    ordered = [name for name in schema.SUMMARY if name in common]
    for engine in schema.ENGINES:
        assert [name for name in schema.summary_keys(engine) if name in common] == ordered


@pytest.mark.parametrize("name", schema.SUMMARY)
def test_the_unit_is_in_the_key(name: str) -> None:
    endings = {"bytes/s": "_bytes_per_s", "bytes": ("_bytes", "bytes_max"), "s": "_s"}
    unit = schema.SUMMARY[name].unit
    if unit in endings:
        assert name.endswith(endings[unit])
    assert schema.SUMMARY[name].text


@pytest.mark.parametrize(("engine", "kind"), RUNS)
def test_dataset(engine: str, kind: str) -> None:
    dataset = run(engine, kind).dataset
    schemes = [fc.DCQCN(), fc.ACC(), fc.HPCC()]
    shown: dict[str, Any] = {}
    for scheme in schemes:
        side = getattr(scheme_of(scheme), engine)
        shown |= {} if side is None else side.OBSERVABLES
    for name, values in dataset.data_vars.items():
        declared = schema.VARIABLES.get(str(name))
        if declared is not None:
            assert engine in declared.engines, name
            assert values.dims == declared.dims, name
            assert values.dtype.kind == declared.kind, name
            assert values.attrs["long_name"], name
            assert values.attrs.get("units", "") == declared.unit, name
        else:
            assert values.dims == ("time", "flow"), name
            assert values.attrs == dict(zip(("units", "long_name"), shown[str(name)], strict=True))
            assert values.dtype.kind == "f", name
    always = {name for name, each in schema.VARIABLES.items() if each.always and engine in each.engines}
    assert always <= set(dataset.data_vars)
    for name, values in dataset.coords.items():
        declared = schema.COORDINATES[str(name)]
        assert (values.dims, values.dtype.kind, values.attrs) == (declared.dims, declared.kind, declared.attrs)
    assert {name for name, each in schema.COORDINATES.items() if each.always} <= set(dataset.coords)
    assert list(dataset.attrs) == [name for name, engines in schema.ATTRIBUTES.items() if engine in engines]
    assert set(dataset.dims) <= {"time", "link", "flow", "traffic_class", "event"}


@pytest.mark.parametrize(
    ("engine", "kind", "names"),
    [
        ("packet", "classes", {"class_queue", "class_sent"}),
        pytest.param("fluid", "lossless", {"paused", "halt_time"}, marks=pytest.mark.slow),
        ("packet", "log", {name for name in schema.VARIABLES if name.startswith("event_")}),
        ("fluid", "mixed", {"alpha", "target_rate", "class_queue"}),
        ("packet", "mixed", {"alpha", "target_rate"}),
    ],
)
def test_mechanisms_add_their_variables(engine: str, kind: str, names: set[str]) -> None:
    assert names <= set(run(engine, kind).dataset.data_vars)
    assert not names & set(run(engine, "plain").dataset.data_vars)


@pytest.mark.parametrize(("engine", "kind"), RUNS)
def test_a_file_keeps_all(engine: str, kind: str, tmp_path: Path) -> None:
    trace = run(engine, kind)
    again = Trace.load(trace.save(tmp_path / "trace.nc"))
    xr.testing.assert_identical(again.dataset, trace.dataset)
    assert again.summary == trace.summary
    for name, values in trace.dataset.variables.items():
        assert again.dataset[name].dtype.kind == values.dtype.kind, name
    assert again.dataset["rate"].dtype == trace.dataset["rate"].dtype


def test_what_is_missing_or_unknown_is_refused() -> None:
    scenario, row = fc.incast(1), {"queue_bytes": dict.fromkeys(schema.QUEUE_STATISTICS, 0.0), "utilisation": 1.0}
    known = {
        name: 0.0
        for name in schema.summary_keys("fluid")
        if name not in ("engine", "scheme", "queue_bytes", "links", "utilisation")
    }
    found = schema.summary("fluid", scenario, [row], known | {"jain": np.float64("nan"), "flows": np.int64(1)})
    assert found["jain"] is None
    assert type(found["flows"]) is int
    assert found["links"] == [{"name": "bottleneck", **row}]
    with pytest.raises(ValueError, match=r"unknown \['events'\]"):
        schema.summary("fluid", scenario, [row], known | {"events": 1})
    del known["jain"]
    with pytest.raises(ValueError, match=r"missing \['jain'\]"):
        schema.summary("fluid", scenario, [row], known)
    with pytest.raises(ValueError, match=r"missing \['sent', 'rate', 'pacing_rate'\], unknown \['other'\]"):
        schema.dataset("fluid", scenario, np.zeros(1), {"queue": np.zeros((1, 1)), "other": np.zeros(1)}, {}, {}, {})


def test_the_most_loaded_link_is_the_first_of_equals() -> None:
    rows = [
        {"queue_bytes": {"mean": mean}, "utilisation": float(i)} for i, mean in enumerate((1.0, math.nan, 3.0, 3.0))
    ]
    scenario = fc.parking_lot(5, rate="100Gbps", scheme=fc.HPCC())
    names = ("engine", "scheme", "queue_bytes", "links", "utilisation")
    values = {name: 0 for name in schema.summary_keys("packet") if name not in names}
    assert schema.summary("packet", scenario, rows, values)["utilisation"] == 2.0


def test_metrics_of_a_run_count_every_flow_of_a_class() -> None:
    """Without multiplicities the goodput would be that of one flow of each class, and None would not be a number."""
    queue = {name: float(k) for k, name in enumerate(schema.QUEUE_STATISTICS)} | {"std": None}
    numbers = {name: float(k) for k, name in enumerate(schema.NUMBERS)}
    summary = {"queue_bytes": queue, "goodput_bytes_per_s": [5.0, 7.0], **numbers}
    found = schema.metrics_of_summary(summary, np.array([3, 1]))
    assert set(found) == set(schema.METRICS)
    assert (found["goodput_bytes_per_s"], found["utilisation"], found["queue_bytes.p5"]) == (22.0, 1.0, 2.0)
    assert math.isnan(found["queue_bytes.std"])
