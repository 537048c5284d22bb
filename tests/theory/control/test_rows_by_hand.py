"""Rows of equilibria: classes and their flows, states by name, what is linearised, and starts; all by hand."""

from __future__ import annotations

import dataclasses
import math
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.dde.delay_system import DelaySystem
from fluidcc.errors import InputError, NoClosedFormError
from fluidcc.scenario.model import resolve
from fluidcc.theory.control import fixed_point, linearize, noise, states
from fluidcc.theory.control.fixed_point import (
    SAME,
    Equilibrium,
    described,
    endless,
    expanded,
    same,
    split_of,
    state_of,
)
from fluidcc.theory.control.states import NoEquilibriumError, Start, States, UnfilledError, extended
from tests.theory.control.changed_copies import Numpy

SCENARIO = resolve(fc.incast(1, multiplicity=5.0))


def told(queue: float = 100.0, rates: tuple[float, ...] = (1e9,), **others: Any) -> Equilibrium:
    flows = tuple({"name": f"flow {k}", "rate_bytes_per_s": rate, "alpha": 0.5} for k, rate in enumerate(rates))
    link = {"name": "link 0", "queue_bytes": queue, "utilisation": 1.0, "marking_probability": 0.1}
    return Equilibrium(True, True, (link,), flows, **others)


def test_two_are_the_same_by_queues_and_extreme_rates() -> None:
    """Whichever flow has which; to a share of each number, of 1 at least."""
    one = told(100.0, (1e9, 2e9, 3e9))
    assert same(one, told(100.0, (3e9, 2.5e9, 1e9)))
    near, far = 1 + 0.5 * SAME, 1 + 2 * SAME
    assert same(one, told(100.0 * near, (1e9 * near, 3e9)))
    for other in (told(100.0 * far, (1e9, 3e9)), told(100.0, (1e9 * far, 3e9)), told(100.0, (1e9, 3e9 * far))):
        assert not same(one, other)


def test_numbers_of_an_equilibrium_are_those_of_its_longest_queue() -> None:
    """Take the busier link of equal queues; flows' numbers are one if all are equal; nothing else is left out."""
    links = (
        {"queue_bytes": None, "utilisation": 9.0, "marking_probability": 0.3},
        {"queue_bytes": 5.0, "utilisation": 0.5, "marking_probability": 0.1},
        {"queue_bytes": 5.0, "utilisation": 0.9, "marking_probability": 0.2},
    )
    flows = (
        {"name": "a", "rate_bytes_per_s": 1.0, "alpha": 0.5, "marking_probability": 0.3},
        {"name": "b", "rate_bytes_per_s": 2.0, "alpha": 0.5, "marking_probability": 0.4},
    )
    found = Equilibrium(True, False, links, flows, False, searched="so", others=(told(7.0),)).as_dict()
    assert (found["queue_bytes"], found["marking_probability"]) == (5.0, 0.2)
    assert (found["rate_bytes_per_s"], found["alpha"]) == ([1.0, 2.0], 0.5)
    assert (found["exists"], found["on_ramp"], found["unique"], found["searched"]) == (True, False, False, "so")
    (other,) = found["others"]
    assert (other["queue_bytes"], other["rate_bytes_per_s"]) == (7.0, 1e9)
    assert found["limit_cycle"] is None


def test_flows_of_classes_have_their_class_s_numbers() -> None:
    flows = [SimpleNamespace(name=name) for name in ("a", None, "c")]
    found = expanded(told(rates=(1.0, 2.0)), cast(Any, SimpleNamespace(flows=flows)), (1, 0, 1))
    assert [(row["name"], row["rate_bytes_per_s"]) for row in found.flows] == [("a", 2.0), ("flow 1", 1.0), ("c", 2.0)]


def test_a_class_is_split_into_its_members() -> None:
    """Each with its share and its name; flows of a finite size are endless, and begin at 0."""
    split = split_of(SCENARIO, ((0, 2.0), (0, 3.0)))
    assert [flow.multiplicity for flow in split.flows] == [2.0, 3.0]
    assert split.flows[0].name.endswith(" (2 of 5)")
    assert split_of(SCENARIO, ((0, 5.0),)).flows[0].name == (SCENARIO.flows[0].name or "flow 0")
    assert split_of(SCENARIO, ()) is SCENARIO
    timed = dataclasses.replace(SCENARIO, flows=(dataclasses.replace(SCENARIO.flows[0], start=3.0, size=1e6),))
    (flow,) = endless(timed).flows
    assert (flow.start, flow.size) == (0.0, math.inf)


def test_a_state_is_named_by_class() -> None:
    """Equal flows with equal rows are one class; units leave the names, and what is no state is left out."""
    found = told(7.0, (1e9, 3e9, 1e9), members=((0, 2.0), (0, 1.0), (0, 2.0)))
    rows = tuple({**row, "marking_probability": 0.1, "window_bytes": 4.0} for row in found.flows)
    classes, which, state = state_of(SCENARIO, dataclasses.replace(found, flows=rows))
    assert which == (0, 1, 0)
    assert [flow.multiplicity for flow in classes.flows] == [4.0, 1.0]
    assert state == {
        "queue 0": 7.0,
        "rate 0": 1e9, "alpha 0": 0.5, "window 0": 4.0,
        "rate 1": 3e9, "alpha 1": 0.5, "window 1": 4.0,
    }  # fmt: skip


def test_a_point_is_described_by_its_links_and_flows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Links beyond those that have queues have none; numbers that are none are left out; marks are of the ramp."""
    red = SimpleNamespace(kmin=10.0, kmax=30.0, pmax=0.4)
    links = [SimpleNamespace(name=None, marking=red, rate=8.0) for _ in range(3)]
    flows = [
        SimpleNamespace(name=None, path=(0,), multiplicity=2.0, scheme="dcqcn"),
        SimpleNamespace(name=None, path=(2,), multiplicity=1.0, scheme="dcqcn"),
    ]
    scenario: Any = SimpleNamespace(links=links, flows=flows)
    made = SimpleNamespace(
        state=lambda x: "y",
        rates=lambda x: np.array([[3.0], [4.0]]),
        system=SimpleNamespace(observables=lambda y: {"alpha": np.array([[0.25], [np.nan]])}),
    )
    monkeypatch.setattr(fixed_point, "States", lambda system: made)
    shown = SimpleNamespace(OBSERVABLES={"alpha": ("bytes", "its unit is in its name")})
    monkeypatch.setattr(fixed_point, "fluid_of", lambda scheme: shown)
    network = SimpleNamespace(queues=2, by_link=lambda x: x[::-1])
    found: Any = SimpleNamespace(
        states=SimpleNamespace(system=SimpleNamespace(network=network)),
        slopes=SimpleNamespace(x=np.array([[20.0, 15.0, 99.0]])),
    )
    point = described(scenario, found)
    assert [row["queue_bytes"] for row in point.links] == [15.0, 20.0, 0.0]
    assert [row["marking_probability"] for row in point.links] == pytest.approx([0.1, 0.2, 0.0])
    assert [row["utilisation"] for row in point.links] == pytest.approx([0.75, 0.0, 0.5])
    assert point.flows[0] == {
        "name": "flow 0", "marking_probability": pytest.approx(0.1), "rate_bytes_per_s": 3.0, "alpha_bytes": 0.25
    }  # fmt: skip
    assert set(point.flows[1]) == {"name", "marking_probability", "rate_bytes_per_s"}


# -- what is linearised -------------------------------------------------------------------------------------------


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The searches, which say what they were asked; one mode of two classes, the second with three flows."""
    modes = SimpleNamespace(rows=(0, 2), aggregate=["system"], fairness=((1, ["other"]),))
    found = SimpleNamespace(
        exists=[True], modes=lambda: [modes], states=SimpleNamespace(names=("queue 0", "rate 0", "rate 1"))
    )
    network = SimpleNamespace(multiplicity=np.array([[1.0], [3.0]]), flows=[0, 1])
    given = SimpleNamespace(asked=[], found=found, point=told(), alike=True)
    monkeypatch.setattr(linearize, "resolve", lambda scenario: scenario)
    monkeypatch.setattr(linearize, "merged", lambda scenario: ("merged", None))
    monkeypatch.setattr(linearize, "state_of", lambda scenario, at: ("split", None, "state"))
    monkeypatch.setattr(linearize, "network_of", lambda classes: given.asked.append(classes) or network)
    monkeypatch.setattr(linearize, "local", lambda network: given.asked.append("local") or found)
    monkeypatch.setattr(linearize, "near", lambda network, state: given.asked.append(state) or found)
    monkeypatch.setattr(linearize, "described", lambda classes, found: given.asked.append(classes) or given.point)
    monkeypatch.setattr(linearize, "same", lambda one, other: given.alike)
    return given


def test_a_linearisation_is_at_the_equilibrium_that_is_asked_for(parts: Any) -> None:
    """Or that of merged flows; states are named, and differences counted for the class's flows but one."""
    scenario: Any = "scenario"
    found: Any = linearize.linearize(scenario)
    assert parts.asked == ["merged", "local", "merged"]
    assert (found.states, found.system, found.equilibrium) == (("queue 0", "rate 1"), "system", parts.point)
    assert [tuple(each) for each in found.fairness] == [("other", 2.0)]
    parts.asked.clear()
    linearize.linearize(scenario, at=told())
    assert parts.asked == ["split", "state", "split"]
    parts.alike = False
    linearize.linearize(scenario)
    with pytest.raises(NoEquilibriumError, match="not an equilibrium of this scenario"):
        linearize.linearize(scenario, at=told())
    parts.found.modes = list
    with pytest.raises(UnfilledError, match="no link is filled"):
        linearize.linearize(scenario)
    parts.found.exists = [False]
    with pytest.raises(NoEquilibriumError, match="no fixed point"):
        linearize.linearize(scenario)
    with pytest.raises(InputError, match="is no equilibrium"):
        linearize.linearize(scenario, at=cast(Any, "here"))
    with pytest.raises(InputError, match="of equal shares"):
        linearize.linearize(scenario, method=cast(Any, "paper"), at=told())
    with pytest.raises(InputError, match="exact or paper"):
        linearize.linearize(scenario, method=cast(Any, "Paper"))


def test_what_was_published_is_of_equal_flows_of_one_link(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums over so many flows and their own packets."""
    published = SimpleNamespace(published=lambda *given, **named: (given, named))
    modules = {"dcqcn": published, "other": None}
    monkeypatch.setattr(linearize, "scheme_of", lambda scheme: SimpleNamespace(module=lambda name: modules[scheme]))

    def scenario(schemes: tuple[str, ...], links: int = 1) -> Any:
        link = SimpleNamespace(marking="red", rate=8.0)
        flows = [SimpleNamespace(scheme=scheme, multiplicity=k + 2.0) for k, scheme in enumerate(schemes)]
        return SimpleNamespace(flows=flows, links=[link] * links, wire_packet_of=lambda flow: 7.0 * flow.multiplicity)

    found: Any = linearize._published(scenario(("dcqcn", "dcqcn")))
    assert found == (("dcqcn", "red"), {"flows": 5.0, "rate": 8.0, "packet": 14.0})
    for refused in (scenario(("other",)), scenario(("dcqcn",), 2), scenario(("dcqcn", "other"))):
        with pytest.raises(InputError, match="nothing was published"):
            linearize._published(refused)


# -- whose chance moves the queue ---------------------------------------------------------------------------------


def test_sources_of_noise_are_the_states_of_each_class(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of the system and columns of the density by name; of the longest queue."""
    asked: list[Any] = []

    def density(scheme: Any, values: Any, marked: float, packet: float) -> Any:
        asked.append((scheme.name, values, marked, packet))
        return "density"

    side = SimpleNamespace(noise=density, MOVES=("rate", "target_rate", "alpha"))
    sides = {"dcqcn": side, "deaf": SimpleNamespace(noise=None), "bare": None}
    monkeypatch.setattr(noise, "equilibrium_of", lambda scheme: sides[scheme.name])
    scheme = SimpleNamespace(name="dcqcn")
    flows = [SimpleNamespace(scheme=scheme, multiplicity=many) for many in (3.0, 2.0)]
    classes = SimpleNamespace(flows=flows, wire_packet_of=lambda flow: 10 * flow.multiplicity)
    monkeypatch.setattr(noise, "merged", lambda scenario: (classes, None))
    monkeypatch.setattr(
        noise, "state_of", lambda scenario, at: (SimpleNamespace(**vars(classes) | {"at": at}), None, None)
    )
    rows = tuple({"name": "x", "rate_bytes_per_s": 5.0, "marking_probability": p} for p in (0.1, 0.2))
    links = ({"queue_bytes": 5.0}, {"queue_bytes": 9.0}, {"queue_bytes": 7.0})
    names = ("queue 0", "queue 1", "rate 0", "alpha 0", "target_rate 1")
    system = DelaySystem(np.zeros((5, 5)), np.zeros((0, 5, 5)), np.zeros(0))
    found: Any = SimpleNamespace(equilibrium=Equilibrium(True, True, links, rows), states=names, system=system)
    made = noise.queue_noise(cast(Any, "scenario"), found)
    assert (made.queue, made.system) == (1, system)
    assert [tuple(each) for each in made.sources] == [((2, 3), (0, 2), 3.0, "density"), ((4,), (1,), 2.0, "density")]
    values = {"name": "x", "rate": 5.0}
    assert asked == [
        ("dcqcn", {**values, "marking_probability": 0.1}, 0.1, 30.0),
        ("dcqcn", {**values, "marking_probability": 0.2}, 0.2, 20.0),
    ]
    found.states = ("queue 0", *names[2:])
    with pytest.raises(NoClosedFormError, match="no queue stands"):
        noise.queue_noise(cast(Any, "scenario"), found)
    for name in ("deaf", "bare"):
        flows[1].scheme = SimpleNamespace(name=name)
        with pytest.raises(NoClosedFormError, match=f"{name} has no random feedback"):
            noise.queue_noise(cast(Any, "scenario"), found, cast(Any, "at"))


# -- where to begin -----------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Net:
    kmin: Any
    kmax: Any
    pmax: Any


def test_ramps_go_on_to_certainty(monkeypatch: pytest.MonkeyPatch) -> None:
    """At their own slope; steps and links without marking stay as they are."""
    monkeypatch.setattr(states, "jnp", np)
    net: Any = Net(
        np.array([5.0, 5.0, 5.0, np.inf]), np.array([25.0, 5.0, 7.0, np.inf]), np.array([0.1, 0.2, 1.0, 0.5])
    )
    with np.errstate(invalid="ignore"):
        found = extended(net)
    np.testing.assert_array_equal(found.kmax, [205.0, 5.0, 7.0, np.inf])
    np.testing.assert_array_equal(found.pmax, [1.0, 0.2, 1.0, 0.5])
    np.testing.assert_array_equal(found.kmin, net.kmin)


@dataclasses.dataclass(frozen=True)
class Shared:
    """Two links of 60 and 40: the first flow's class of two on both, the second's of three on the first."""

    initial_rate: Any = None
    queues: int = 2
    flows: Any = ((0, (0, 1)), (1, (0,)))
    multiplicity: Any = dataclasses.field(default_factory=lambda: np.array([[2.0], [3.0]]))
    capacity: Any = dataclasses.field(default_factory=lambda: np.array([[60.0], [40.0]]))
    line_rate: Any = dataclasses.field(default_factory=lambda: np.array([[100.0], [100.0]]))


@dataclasses.dataclass(frozen=True)
class System:
    network: Any
    points: int = 1
    _hops: Any = ((0, 0, 0), (0, 1, 1), (1, 0, 0))


@pytest.mark.parametrize(
    ("start", "rates", "line_rate"),
    [
        (Start(1.0, 0.0), [12.0, 12.0], 100.0),  # 60 among five; 40 among two is more
        (Start(0.5, 2.0), [6.0, 6.0], 100.0),
        (Start(1.0, 0.25, 0.2), [2.4, 12.0], 100.0),  # every other one is tilted, from the first on
        (Start(1e6, 0.0), [100.0, 100.0], 100.0),
        (Start(1.0, 0.0), [7.0, 7.0], 7.0),
    ],
)
def test_a_search_begins_at_shares_and_waits(
    monkeypatch: pytest.MonkeyPatch, start: Start, rates: list[float], line_rate: float
) -> None:
    """The least fair share along a path, no faster than the line; queues as long as the wait says."""
    monkeypatch.setattr(states, "jnp", Numpy())

    @dataclasses.dataclass
    class Begun:
        queue: Any
        rate: Any

        def _replace(self, queue: Any) -> Any:
            return Begun(queue, self.rate)

    monkeypatch.setattr(
        States, "_begun", property(lambda self: (Begun(np.zeros((2, 1)), self.system.network.initial_rate), None))
    )
    monkeypatch.setattr(States, "rows", lambda self, y: (y.queue, y.rate))
    net = Shared(line_rate=np.array([[line_rate], [line_rate]]))
    queue, rate = cast(Any, States(cast(Any, System(net))).first(start))
    np.testing.assert_allclose(rate, np.array(rates)[:, None])
    np.testing.assert_allclose(queue, start.wait * net.capacity)


class Held(NamedTuple):
    """State of a scheme with two registers of one of its fields, for two flows."""

    rate: Any
    fixed: Any
    registers: Any


class Begun(NamedTuple):
    queue: Any
    schemes: Any


class Kept(NamedTuple):
    wait: Any
    wait_growth: Any


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Two queues; a scheme of flows 0 and 2 whose rate and registers move, and one of flow 1 whose rate does."""
    monkeypatch.setattr(states, "jnp", np)
    monkeypatch.setattr(states, "smooth_side", lambda parameters: parameters)
    first = Held(np.full((2, 1), 9.0), np.full((2, 1), 8.0), np.full((2, 2, 1), 7.0))
    second = Held(np.full((1, 1), 9.0), np.full((1, 1), 8.0), None)
    begun = Begun(np.zeros((2, 1)), (first, second))
    sides = [SimpleNamespace(MOVES=("rate", "registers")), SimpleNamespace(MOVES=("rate",))]
    groups = [SimpleNamespace(parameters=side, flows=flows) for side, flows in zip(sides, ([0, 2], [1]), strict=True)]
    network = SimpleNamespace(queues=2, groups=groups, capacity=np.array([[4.0], [5.0]]))
    jumped: list[Any] = []

    def projects(y: Any, z: Any, lagged: Any) -> Any:
        jumped.append(lagged)
        return tuple(each._replace(rate=np.minimum(each.rate, 3.0)) for each in y.schemes)

    system = SimpleNamespace(network=network, points=1, _jumped=projects, _path_queues=(1, 0, 1))
    kept = [Kept(np.zeros((3, 1)), np.ones((3, 1)))]
    monkeypatch.setattr(States, "_begun", property(lambda self: (begun, kept[0])))
    return SimpleNamespace(states=States(cast(Any, system)), kept=kept, jumped=jumped, begun=begun)


def test_rows_are_queues_and_then_what_moves_of_each_scheme(rows: Any) -> None:
    """By field, register and flow; there and back."""
    made = rows.states
    names = ["rate 0", "rate 2", "registers[0] 0", "registers[0] 2", "registers[1] 0", "registers[1] 2", "rate 1"]
    assert made.names == ("queue 0", "queue 1", *names)
    assert made.flow == (-1, -1, 0, 2, 0, 2, 0, 2, 1)
    x = np.arange(9.0)[:, None]
    y = made._filled(x)
    assert y.queue.ravel().tolist() == [0, 1]
    assert y.schemes[0].rate.ravel().tolist() == [2, 3]
    assert y.schemes[0].registers.tolist() == [[[4], [5]], [[6], [7]]]
    assert y.schemes[0].fixed.ravel().tolist() == [8, 8]
    assert y.schemes[1].rate.ravel().tolist() == [8]
    assert made.rows(y).tolist() == x.tolist()


def test_limits_hold_rates_and_queues(rows: Any) -> None:
    """A queue of no more than a hundred-thousandth of a byte is none."""
    x = np.array([1e-5, 1.1e-5, 2.0, 4.0, 9, 9, 9, 9, 5.0])[:, None]
    assert rows.states.projected(x).ravel().tolist() == [0.0, 1.1e-5, 2.0, 3.0, 9, 9, 9, 9, 3.0]
    assert rows.states.projected(-x).ravel().tolist()[:2] == [0.0, 0.0]
    assert len(rows.jumped[0].schemes) == 2


def test_packets_wait_as_long_as_queues_say(rows: Any) -> None:
    """Along paths, in s; waits do not grow, and what keeps none has none."""
    x = np.array([8.0, -5.0, *[0.0] * 7])[:, None]
    found = rows.states.memory(x)
    assert found.wait.ravel().tolist() == [0.0, 2.0, 0.0]
    assert found.wait_growth.ravel().tolist() == [0.0, 0.0, 0.0]
    rows.kept[0] = Kept(None, None)
    assert rows.states.memory(x) is rows.kept[0]
