"""Refusals of the fluid, what it tells flows apart by, and the columns of a scenario, by hand."""

from __future__ import annotations

import copy
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.engines.fluid import network as module
from fluidcc.engines.fluid import plan
from fluidcc.errors import InputError
from fluidcc.scenario.model import resolve
from tests.engines.fluid.test_plain_plans import INCAST, PLAN, network

pytestmark = pytest.mark.usefixtures("numpy_only")


class Traced:
    """A value that is not known."""


# -- views -------------------------------------------------------------------------------------------------------------


def key(monkeypatch: pytest.MonkeyPatch, marking: Any = (1.0, 2.0), **given: Any) -> Any:
    scheme = {name: given.pop(name, 0.0) for name in ("feedback_delay", "feedback_pause", "int_bytes")}
    own, fixed, needed = given.pop("own", 3.0), given.pop("fixed", True), given.pop("needed", frozenset())
    monkeypatch.setattr(module, "needs", lambda scheme: needed)
    flow: Any = {"path": (0,), "traffic_class": 0, "access_delay": 1.0, "egress_delay": 1.0, "line_rate": 5.0}
    flow = SimpleNamespace(**{**flow, **given}, scheme=SimpleNamespace(**scheme))
    return module.view_key(flow, module.Lags(marking, own, (0.0, 0.0), fixed))


@pytest.mark.parametrize(
    "other", [{"path": (1,)}, {"traffic_class": 1}, {"fixed": False}, {"marking": (1.0, 2.5)}, {"own": 4.0}]
)
def test_flows_with_plain_lags_see_alike_if_path_class_and_lags_are_the_same(
    other: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts of the lags are not asked for, nor the own lag if it is traced."""
    alike = key(monkeypatch)
    assert alike == key(monkeypatch, access_delay=9.0, feedback_delay=9.0, line_rate=9.0)
    assert alike != key(monkeypatch, **other)
    assert key(monkeypatch, own=Traced()) == key(monkeypatch, own=Traced())


@pytest.mark.parametrize(
    "name", ["access_delay", "egress_delay", "feedback_delay", "feedback_pause", "path", "traffic_class", "fixed"]
)
@pytest.mark.parametrize("marking", [(Traced(), 2.0), (1.0, Traced())])
def test_flows_with_a_traced_lag_see_alike_if_its_parts_are_the_same(
    marking: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same objects, not only equal ones; a wire's and a packet's where packets are stored."""
    part = False if name == "fixed" else Traced()
    alike = key(monkeypatch, marking, **{name: part})
    assert alike == key(monkeypatch, (Traced(), 7.0), own=Traced(), **{name: part})
    assert alike != key(monkeypatch, marking, **{name: True if name == "fixed" else Traced()})
    for needed, counts in ((frozenset(), False), ({"inflight"}, True), ({"delay", "telemetry"}, True)):
        for stored in ("line_rate", "int_bytes"):
            one, two = (key(monkeypatch, marking, needed=needed, **{stored: value}) for value in (5.0, 6.0))
            assert (one != two) is counts


# -- columns of a scenario ---------------------------------------------------------------------------------------------


def link(kmin: Any = 10e3, kmax: Any = 40e3, **given: Any) -> fc.Link:
    return fc.Link("10Gbps", "1us", fc.RED(kmin, kmax, 0.5, **given), source="s", target="t")


def scenario(*flows: dict[str, Any], links: Any = None, **given: Any) -> fc.Scenario:
    known = {"path": (0,), "line_rate": "10Gbps", "scheme": fc.DCQCN()}
    return resolve(fc.Scenario(links or (link(),), tuple(fc.Flow(**{**known, **each}) for each in flows), **given))


def test_columns_are_of_links_in_use_and_of_classes() -> None:
    """A link has a queue for each class; one without marking has no thresholds; sizes are those on the wire."""
    bare = fc.Link("20Gbps", "1us")
    two = (fc.TrafficClass(priority=1, weight=2.0), fc.TrafficClass(priority=0))
    flows = ({"path": (0, 1), "traffic_class": 1, "size": 8e3}, {"path": (1,)})
    made = scenario(*flows, links=(link(mark_on="departure"), bare, bare), classes=two, header_bytes=100)
    found = module.network_of(made)
    assert (found.links, found.queues) == (2, 4)
    assert [path for _, path in found.flows] == [(1, 3), (2,)]
    np.testing.assert_allclose(found.capacity, np.array([10, 10, 20, 20]) * 1e9 / 8)
    np.testing.assert_allclose(found.link_capacity, np.array([10, 20]) * 1e9 / 8)
    assert found.kmin.tolist() == [10e3, 10e3, math.inf, math.inf]
    assert found.kmax.tolist() == [40e3, 40e3, math.inf, math.inf]
    assert found.pmax.tolist() == [0.5, 0.5, 1.0, 1.0]
    assert found.departure == (True, True, False, False)
    assert (found.weight.tolist(), found.priorities, found.tracked) == ([2.0, 1.0], (1.0, 0.0), True)
    assert found.size is not None
    assert found.size.tolist() == pytest.approx([8e3 * 1.1, math.inf])
    assert found.by_link(np.array([[1.0], [2.0], [3.0], [5.0]])).tolist() == [[3.0], [8.0]]
    single = module.network_of(scenario({}, {}))
    assert single.by_link(np.array([[7.0]])).tolist() == [[7.0]]
    assert single.link_capacity is single.capacity
    assert single.size is None


@pytest.mark.parametrize(("unit", "counted"), [("wire", [1104.0, 1100.0, 1104.0]), ("payload", [1000.0])])
def test_packets_are_those_of_their_scheme_s_telemetry(unit: str, counted: list[float]) -> None:
    schemes = fc.HPCC(int_bytes=4), fc.DCTCP(), fc.HPCC(int_bytes=4)
    made = scenario(*({"scheme": each} for each in schemes), header_bytes=100, window_unit=unit)
    found = module.network_of(made)
    assert found.packet.tolist() == [1104.0, 1100.0, 1104.0]
    assert found.window_packet.tolist() == counted
    assert [group.flows for group in found.groups] == [(0, 2), (1,)]
    same = module.network_of(scenario({}, {"line_rate": "20Gbps"}, {}))
    assert same.groups[0].line_rate.tolist() == pytest.approx([1.25e9, 2.5e9, 1.25e9])
    assert same.packet.shape == (1,)


@pytest.mark.parametrize(
    ("schemes", "queueing", "waits"),
    [
        ([fc.DCQCN(feedback_delay="9us")] * 2, False, (False,)),
        ([fc.DCQCN(feedback_delay="9us"), fc.DCQCN(feedback_delay=None)], True, (False, True)),
        ([fc.DCQCN(feedback_delay=None)] * 2, True, (True,)),
        ([fc.TIMELY()], True, (True,)),
    ],
)
def test_waits_are_followed_where_some_lag_is_not_given(schemes: Any, queueing: bool, waits: tuple[bool, ...]) -> None:
    found = module.network_of(scenario(*({"scheme": each} for each in schemes)))
    assert (found.queueing, found.waits, found.tracked) == (queueing, waits, False)


def changed(given: Any, **values: Any) -> Any:
    """Copy with values that would be refused as plain numbers when they are written down."""
    copied = copy.copy(given)
    for name, value in values.items():
        object.__setattr__(copied, name, value)
    return copied


def test_wrong_values_of_a_sweep_are_told_by_the_first_reason() -> None:
    """Equal thresholds, and a flow that begins at its line rate, are right."""
    right = scenario({"initial_rate": "10Gbps"}, links=(link(10e3, 10e3), fc.Link("10Gbps", "1us")))

    def reason(kmin: float = 10e3, **flow: Any) -> str:
        marking = changed(right.links[0].marking, kmin=kmin)
        links = changed(right.links[0], marking=marking), right.links[1]
        wrong = changed(right, links=links, flows=(changed(right.flows[0], **flow),))
        return module.REASONS[int(module.reason_of(wrong))]

    assert reason() == "ok"
    assert reason(10.001e3) == "kmin exceeds kmax"
    assert reason(initial_rate=1.2501e9) == "initial rate exceeds line rate"
    assert reason(10.001e3, initial_rate=1.2501e9) == "kmin exceeds kmax"
    assert reason(10.001e3, multiplicity=-1.0) == "out of range"
    assert reason(traffic_class=0.5, initial_rate=1.2501e9) == "initial rate exceeds line rate"
    parts = module.parts_of(right)
    assert sum(part is right.flows[0].scheme for part in parts) == 1
    assert not any(part is None for part in parts)


@pytest.mark.parametrize(
    ("value", "static", "refused"),
    [(1.0, True, False), (1.0, False, False), (2.0, True, True), (2.0, False, True), (Traced(), False, True)],
)
def test_switches_that_the_fluid_has_one_value_of_are_refused_otherwise(
    value: Any, static: bool, refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Swept ones too, even if a traced value said it were equal; a static one cannot be traced."""
    monkeypatch.setattr(Traced, "__ne__", lambda self, other: False)
    monkeypatch.setattr(module, "fluid_of", lambda scheme: SimpleNamespace(ONLY={"switch": 1.0}))
    monkeypatch.setattr(module, "_hybrid_only", lambda scheme: ())
    monkeypatch.setattr(module, "specs", lambda scheme: {"switch": SimpleNamespace(static=static)})
    scheme = SimpleNamespace(switch=value, name="some")
    for name in ("refuse_losses", "refuse_spraying"):
        monkeypatch.setattr(module, name, lambda *given: None)
    made: Any = SimpleNamespace(
        failures=(), storms=(), classes=[SimpleNamespace(priority=0)],
        flows=[SimpleNamespace(scheme=scheme, traffic_class=0)],
    )  # fmt: skip
    if refused:
        with pytest.raises(InputError, match=r"flow 0 switch: the fluid model of some has only switch=1\.0"):
            module._refuse_packets_own(made)
    else:
        module._refuse_packets_own(made)


@pytest.mark.parametrize(
    ("scheme", "name", "engine"),
    [
        (fc.DCQCN(win=True), "win=False", "packet"),
        (fc.DCQCN(rate_on_first_cnp="1Mbps"), "rate_on_first_cnp=0.0", "hybrid"),
        (fc.DCTCP(variant="hpcc-sim"), "variant=paper", "packet"),  # the hybrid engine lacks the scheme
    ],
)
def test_the_engine_that_models_it_is_named(scheme: Any, name: str, engine: str) -> None:
    with pytest.raises(InputError, match=f"has only {name}; write that, or engine='{engine}'"):
        module._refuse_packets_own(scenario({"scheme": scheme}))


# -- plans -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"until": 0.0}, "until: .* is no horizon"),
        ({"until": -1.0}, "until: .* is no horizon"),
        ({"until": math.inf}, "until: .* is no horizon"),
        ({"dt": 0.0}, "dt: .* is no step"),
        ({"dt": -1e-6}, "dt: .* is no step"),
        ({"dt": math.inf}, "dt: .* is no step"),
        ({"dt": "4.1us"}, "dt: 4.1us exceeds the shortest lag 4us"),
        ({"longest_lag": 0.0, "dt": "1us"}, "delay: a lag of 0"),
        ({"dtype": "float16"}, "dtype: 'float16' is unknown"),
        ({"sample_interval": 0.0}, "sample interval: .* is none"),
        ({"sample_interval": math.inf}, "sample interval: .* is none"),
        ({"until": "2200s"}, "until: .* takes .* steps"),
        ({"until": "600s", "halving": True, "window": "1us:2us"}, "until: .* takes .* steps"),
        ({"longest_lag": "3600s", "dt": "1us"}, "delay: a lag of up to"),
        ({"method": "leapfrog"}, "method"),
        ({"rtol": 1e-3, "dt": "1us"}, "dt, method, dtype: rtol chooses"),
    ],
)
def test_plans_that_make_no_sense_are_refused(options: dict[str, Any], word: str) -> None:
    """One lag of 4 us; steps are counted by an int32, four times as many where a quarter of a step is made too."""
    with pytest.raises(InputError, match=word):
        plan.plan_of(FIXED, **{"until": "1ms", **options})


@pytest.mark.parametrize(
    ("until", "wanted", "expected"),
    [
        ("60us", "5us", (3, 2, 2)),  # of 1, 2 and 3, though 6 would be nearer
        ("60us", "6us", (6, 1, 1)),
        ("60us", "7us", (6, 1, 1)),
        ("70us", "5us", (1, 7, 5)),  # nothing else divides 7
        ("60us", "1us", (1, 6, 1)),
        ("40us", "6us", (4, 1, 2)),
    ],
)
def test_a_spacing_that_does_not_fit_is_the_largest_below_that_divides_that_of_percentiles(
    until: str, wanted: str, expected: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten samples for percentiles, of steps of 1 us, and no room for more."""
    monkeypatch.setattr(plan, "_MOST_SAMPLES", 9)
    found = plan.plan_of(FIXED, until=until, dt="1us", samples=10, sample_interval=wanted)
    assert (found.stride, found.every, found.thin) == expected


@pytest.mark.parametrize(
    ("options", "parts"), [({}, 1), ({"halving": True}, 2), ({"halving": True, "window": "1us:4us"}, 4)]
)
def test_steps_are_as_many_as_their_counter_holds(
    options: dict[str, Any], parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand steps, or those of its half or a quarter; a lag of four takes a counter of as many at least."""
    monkeypatch.setattr(plan, "MOST_STEPS", 1000 * parts)
    assert plan.plan_of(FIXED, until="1ms", dt="1us", **options).steps == 1000
    monkeypatch.setattr(plan, "MOST_STEPS", 1000 * parts - 1)
    with pytest.raises(InputError, match=r"until: .* takes"):
        plan.plan_of(FIXED, until="1ms", dt="1us", **options)
    monkeypatch.setattr(plan, "MOST_STEPS", 4 * parts)
    assert plan.plan_of(FIXED, until="4us", dt="1us", **options).steps == 4
    monkeypatch.setattr(plan, "MOST_STEPS", 4 * parts - 1)
    with pytest.raises(InputError, match="delay: a lag of up to" if parts == 1 else "takes"):
        plan.plan_of(FIXED, until="3us" if parts == 1 else "4us", dt="1us", **options)


FIXED = module.network_of(resolve(fc.incast(2, scheme=fc.DCQCN(feedback_delay="4us"))))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, (1e-6, 1000, True, True)),
        ({"dt": "4us"}, (4e-6, 250, True, False)),
        ({"dt": "3us"}, (2e-6, 500, True, True)),  # two steps in the lag
        ({"dt": "3us", "method": "rk4"}, (2e-6, 500, False, True)),
        ({"dt": "4us", "method": "rk4"}, (4e-6, 250, False, False)),
        ({"dt": "1.3us"}, (1e-6, 1000, True, True)),
        ({"dt": "1.4us", "until": "1.1ms"}, (4e-6 / 3, 825, True, False)),
        ({"longest_lag": "4us", "dt": "1.5us"}, (1.5e-6, 667, False, True)),
        ({"longest_lag": "4us", "dt": "2us"}, (2e-6, 500, False, True)),
        ({"longest_lag": "4us", "dt": "2.1us"}, (2.1e-6, 477, False, False)),
    ],
)
def test_steps_divide_a_lag_that_all_have(options: dict[str, Any], expected: tuple[Any, ...]) -> None:
    """Steps, aligned, and whether twice the step would do: if that divides the lag too, or is no longer than it."""
    found = plan.plan_of(FIXED, **{"until": "1ms", **options})
    assert found.dt == pytest.approx(expected[0], rel=1e-12)
    assert (found.steps, found.aligned, found.coarsens) == expected[1:]


@pytest.mark.parametrize(
    ("options", "finest"),
    [({}, 1), ({"halving": True}, 2), ({"halving": True, "dt": "4us"}, 4), ({"halving": True, "window": "1us:4us"}, 4)],
)
def test_a_history_holds_half_and_quarter_steps_if_those_are_run(
    options: dict[str, Any], finest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[float, float]] = []
    monkeypatch.setattr(plan, "ring_depth", lambda longest, dt: asked.append((longest, dt)) or 64)
    found = plan.plan_of(FIXED, until="1ms", **options)
    assert found.depth == 64
    assert asked == [pytest.approx((4e-6, found.dt / finest), rel=1e-12)]
    assert found.allowance == math.inf


def test_a_history_holds_the_wait_that_is_allowed_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []
    monkeypatch.setattr(plan, "ring_depth", lambda longest, dt: asked.append(longest) or 64)
    late = module.network_of(resolve(fc.incast(2, scheme=fc.DCQCN(feedback_delay=None))))
    longest = max(plan._lags(late))
    assert plan.plan_of(late, until="1ms", queueing_allowance=1e-3).allowance == 1e-3
    assert plan.plan_of(late, until="1ms").allowance == 4e-3  # rates may fill any queue
    assert asked == pytest.approx([longest + 1e-3, longest + 4e-3], rel=1e-12)
    found = plan.plan_of(late, until="1ms", rtol=1e-4)
    assert (found.rtol, found.depth, found.allowance, found.method) == (1e-4, 256, math.inf, "rk4")
    assert not found.aligned
    assert plan.plan_of(late, until="1ms").window == (0.5e-3, 1e-3)


@pytest.mark.parametrize(
    ("given", "options", "word"),
    [
        ({}, {}, None),
        ({}, {"rtol": 1e-9}, None),
        ({}, {"rtol": 0.1}, None),
        ({}, {"rtol": 0.9e-9}, "is not between 1e-09 and 0.1"),
        ({}, {"rtol": 0.11}, "is not between"),
        ({}, {"dt": 1e-6}, "dt, method, dtype"),
        ({}, {"method": "rk4"}, "dt, method, dtype"),
        ({}, {"dtype": "float32"}, "dt, method, dtype"),
        ({"tracked": True}, {}, "traffic classes"),
        ({"ingress": 1}, {}, "traffic classes"),
        ({"groups": [1]}, {}, r"late changes state in jumps"),
        ({"groups": [0], "tracked": True}, {}, "traffic classes"),
        ({"size": 1}, {}, "flows that end"),
    ],
)
def test_tolerances_are_for_what_has_no_jumps(
    given: dict[str, Any], options: dict[str, Any], word: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "needs", lambda parameters: {"delay"} if parameters.name == "late" else set())
    schemes = [SimpleNamespace(name=name) for name in ("plain", "late")]
    groups = [SimpleNamespace(parameters=schemes[k]) for k in given.get("groups", [])]
    made = network(**{"size": None, **given, "groups": groups})
    asked = {"rtol": 1e-4, "dt": None, "method": "heun", "dtype": "float64", **options}
    if word is None:
        assert plan._tolerance(made, **asked) == asked["rtol"]
    else:
        with pytest.raises(InputError, match=word):
            plan._tolerance(made, **asked)


def test_single_precision_counts_no_bytes() -> None:
    windows = module.network_of(resolve(fc.incast(1, scheme="hpcc")))
    with pytest.raises(InputError, match="dtype: float32 is too coarse"):
        plan.plan_of(windows, until="1ms", dtype="float32")
    assert plan.plan_of(INCAST, until="1ms", dtype="float32").dtype == "float32"
    assert PLAN.dtype == "float64"


@pytest.mark.parametrize("name", ["kmin", "kmax", "capacity"])
def test_nothing_is_known_of_traced_ramps(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "Tracer", Traced)
    ramps: dict[str, Any] = {"kmin": [1.0], "kmax": [2.0], "capacity": [50.0]}
    assert plan._jumps(network(**ramps), 0.5)
    assert not plan._jumps(network(**{**ramps, name: Traced()}), 0.5)


@pytest.mark.parametrize("name", ["marking_lag", "own_lag", "arrival_lag", "delay", "hop_lag", "ack_lag"])
def test_traced_lags_are_asked_for(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "Tracer", Traced)
    columns: dict[str, Any] = dict.fromkeys(("marking_lag", "own_lag", "arrival_lag"), np.ones((1, 1)))
    gate: dict[str, Any] = dict.fromkeys(("delay", "hop_lag", "ack_lag"), np.ones((1, 1)))
    assert plan._lags(network(**columns, ingress=SimpleNamespace(**gate))) == [1.0] * 6
    (columns if name in columns else gate)[name] = Traced()
    with pytest.raises(InputError, match="longest_lag: a delay is traced"):
        plan._lags(network(**columns, ingress=SimpleNamespace(**gate)))


@pytest.mark.parametrize("name", ["capacity", "multiplicity", "parameters", None])
def test_traced_windows_or_links_leave_the_usual_wait(name: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """And a traced scheme that compares delays is refused; one that does not may be."""
    monkeypatch.setattr(plan, "Tracer", Traced)
    rules = SimpleNamespace(largest_window=lambda parameters: 400.0, longest_interval=lambda parameters: 7.0)
    monkeypatch.setattr(plan, "fluid_of", lambda parameters: rules)
    given: dict[str, Any] = {"capacity": np.array([50.0]), "multiplicity": np.array([[2.0]]), "parameters": 1.0}
    given = {**given, name: Traced()} if name else given
    groups = [SimpleNamespace(flows=(0,), parameters=given.pop("parameters"))]
    made = network(**given, groups=groups, packet=[1.0], window_packet=[1.0], flows=[(0, (0,))])
    assert plan._longest_wait(made) == (4e-3 if name else pytest.approx(1.25 * 800 / 50))
    for needed in (frozenset(), {"delay"}):
        monkeypatch.setattr(plan, "needs", lambda parameters, needed=needed: needed)
        if needed and name == "parameters":
            with pytest.raises(InputError, match="longest_lag: parameters of a scheme that compares delays"):
                plan._longest_interval(made)
        else:
            assert plan._longest_interval(made) == (7.0 if needed else 0.0)
