"""Points of a stability chart, from roots that are written here: who has a number, a reason, a stable equilibrium."""

from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fluidcc.engines.fluid.network import REASONS
from fluidcc.studies.sweeps.chart import NO_EQUILIBRIUM, UNRESOLVED, Points, stability_chart

charts = importlib.import_module("fluidcc.studies.sweeps.chart")
NAN, INF = float("nan"), float("inf")


# -- marking and queues ------------------------------------------------------------------------------------------


def links(queues: list[float], *, kmin: list[float], kmax: list[float], pmax: list[float]) -> tuple[float, float, bool]:
    """Marking, queue and ramp of a point, beside another whose queues are empty."""
    count = len(queues)
    net = SimpleNamespace(queues=count, kmin=np.array(kmin), kmax=np.array(kmax), pmax=np.array(pmax))
    states = np.array([[0.0] * count + [7.0, 8.0], [*queues, 7.0, 8.0]])  # rates come after the queues
    batch: Any = SimpleNamespace(network=net, reasons=np.zeros(2, int))
    found: Any = SimpleNamespace(slopes=SimpleNamespace(x=states))
    marking, queue, on_ramp = charts._links(batch, found)
    assert (marking[0], queue[0]) == (0.0, 0.0)
    return float(marking[1]), float(queue[1]), bool(on_ramp[1])


@pytest.mark.parametrize(
    ("queue", "marking", "on_ramp"),
    [
        (20.0, 0.25, True),  # half way up the ramp
        (30.0, 0.5, True),  # just at its end
        (30.5, 0.5125, False),  # extended
        (10.0, 0.0, False),  # nothing is marked
        (5.0, 0.0, False),
    ],
)
def test_marking_is_a_share_of_the_ramp(queue: float, marking: float, on_ramp: bool) -> None:
    assert links([queue], kmin=[10.0], kmax=[30.0], pmax=[0.5]) == (marking, queue, on_ramp)


@pytest.mark.parametrize(
    ("queues", "found"),
    [
        ([20.0, 4.0], (0.25, 20.0, True)),
        ([20.0, 50.0], (0.0, 50.0, True)),  # the longer queue is of a link that does not mark
        ([5.0, 50.0], (0.0, 50.0, False)),
        ([40.0, 50.0], (0.0, 50.0, False)),
        ([20.0, 20.0], (0.25, 20.0, True)),  # of equals the first
    ],
)
def test_the_most_loaded_link_speaks_and_all_that_mark_must_be_on_their_ramps(
    queues: list[float], found: tuple[float, float, bool]
) -> None:
    assert links(queues, kmin=[10.0, INF], kmax=[30.0, INF], pmax=[0.5, 1.0]) == found


def test_a_step_is_no_ramp_and_without_marking_nothing_leaves_one() -> None:
    assert links([12.0], kmin=[10.0], kmax=[10.0], pmax=[0.5]) == (0.0, 12.0, False)
    assert links([12.0], kmin=[INF], kmax=[INF], pmax=[0.5]) == (0.0, 12.0, True)
    net = SimpleNamespace(queues=1, kmin=np.array([[10.0, 0.0]]), kmax=np.array([[30.0, 40.0]]), pmax=np.array([[0.5]]))
    batch: Any = SimpleNamespace(network=net, reasons=np.zeros(2, int))
    found: Any = SimpleNamespace(slopes=SimpleNamespace(x=np.array([[20.0], [20.0]])))
    assert charts._links(batch, found)[0].tolist() == [0.25, 0.25]  # thresholds of each point


# -- roots -------------------------------------------------------------------------------------------------------


def rooted(monkeypatch: pytest.MonkeyPatch, modes: list[Any], reasons: list[int], many: Any, wanted: int) -> Points:
    """Points whose roots are the systems themselves; one above 90 is unresolved."""

    def abscissa(system: np.ndarray) -> Any:
        state = np.where(system > 90, "unresolved", "ok")
        return SimpleNamespace(value=system, frequency=10 * system, state=state)

    count = len(reasons)
    network = SimpleNamespace(flows=[None] * len(many), multiplicity=np.array(many))
    found = SimpleNamespace(states=SimpleNamespace(system=SimpleNamespace(network=network)), modes=lambda: modes)
    monkeypatch.setattr(charts, "local", lambda network, points: found)
    monkeypatch.setattr(charts, "abscissa", abscissa)
    columns = 0.5 * np.ones(count), 1.0 * np.arange(count), np.ones(count, bool)
    monkeypatch.setattr(charts, "_links", lambda batch, found: columns)
    batch: Any = SimpleNamespace(network=network, reasons=np.array(reasons))
    return charts._found(batch, wanted)


def mode(points: list[int], aggregate: list[float], *fairness: tuple[int, list[float]]) -> Any:
    return SimpleNamespace(
        points=np.array(points),
        aggregate=np.array(aggregate),
        fairness=[(flow, np.array(roots)) for flow, roots in fairness],
    )


def test_points_have_the_roots_of_their_modes_or_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second of six has an unresolved root, the third a fault, the fourth no equilibrium, the last is padding."""
    modes = [
        mode([0, 2, 5], [-1.0, -3.0, -5.0], (0, [-0.5, -0.6, -0.7])),
        mode([1, 4], [99.0, -2.0], (0, [-0.25, -0.125])),
    ]
    found = rooted(monkeypatch, modes, [0, 0, 7, 0, 0, 0], [[2.0]], wanted=5)
    np.testing.assert_array_equal(found.aggregate, [-1.0, NAN, NAN, NAN, -2.0, NAN])
    np.testing.assert_array_equal(found.frequency, [-10.0, NAN, NAN, NAN, -20.0, NAN])
    np.testing.assert_array_equal(found.fairness, [-0.5, NAN, NAN, NAN, -0.125, NAN])
    np.testing.assert_array_equal(found.marking, [0.5, 0.5, NAN, NAN, 0.5, NAN])
    np.testing.assert_array_equal(found.queue, [0.0, 1.0, NAN, NAN, 4.0, NAN])
    nothing, unresolved = len(REASONS), len(REASONS) + 1
    assert found.reason.tolist() == [0, unresolved, 7, nothing, 0, nothing]
    np.testing.assert_array_equal(found.root, [-0.5, NAN, NAN, NAN, -0.125, NAN])


def test_classes_of_one_flow_have_no_fairness(monkeypatch: pytest.MonkeyPatch) -> None:
    """Multiplicities 1, 2 and 1.5 of the first class, and 3 of the second: the larger root of those with several."""
    modes = [mode([0, 1, 2], [-9.0] * 3, (0, [-0.1, -0.2, -0.4]), (1, [-0.3, -0.3, -0.3]))]
    found = rooted(monkeypatch, modes, [0, 0, 0], [[1.0, 2.0, 1.5], [3.0, 3.0, 3.0]], wanted=3)
    assert found.fairness.tolist() == [-0.3, -0.2, -0.3]
    alone = rooted(monkeypatch, [mode([0], [-9.0], (0, [-0.1]))], [0], [[1.0]], wanted=1)
    assert np.isnan(alone.fairness).tolist() == [True]
    assert (alone.root.tolist(), alone.reason.tolist()) == ([-9.0], [0])


def test_a_fairness_root_may_be_missed_where_there_are_several_flows(monkeypatch: pytest.MonkeyPatch) -> None:
    modes = [mode([0, 1], [-9.0] * 2, (0, [99.0, 99.0]))]
    found = rooted(monkeypatch, modes, [0, 0], [[1.0, 2.0]], wanted=2)
    assert found.reason.tolist() == [0, len(REASONS) + 1]
    assert np.isnan(found.aggregate).tolist() == [False, True]


# -- chunks ------------------------------------------------------------------------------------------------------


def test_chunks_are_of_one_size_and_the_last_repeats_its_last_point(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[list[float]] = []
    wanted: list[int] = []

    def build(columns: dict[str, np.ndarray]) -> Any:
        built.append(columns["n"].tolist())
        return SimpleNamespace(scenario=None, at=columns["n"])

    def found(batch: Any, count: int) -> Points:
        wanted.append(count)
        return Points(*[batch.at] * len(Points._fields))

    monkeypatch.setattr(charts, "Builder", lambda make: build)
    monkeypatch.setattr(charts, "_size", lambda scenario: 4)
    monkeypatch.setattr(charts, "_found", found)
    heard: list[float] = []
    finder = charts.RootFinder(None)
    points = finder({"n": np.arange(10.0)}, heard.append)
    assert built == [[0.0], [0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 9, 9]]  # one to know the size
    assert wanted == [4, 4, 2]
    assert heard == [0.4, 0.8, 1.0]
    assert points.aggregate.tolist() == list(range(10))
    built.clear()
    assert finder({"n": np.arange(4.0)}).queue.tolist() == [0, 1, 2, 3]
    assert built == [[0, 1, 2, 3]]


@pytest.mark.parametrize(
    ("links_", "flows", "size"),
    [(1, 2, 512), (3, 15, 512), (4, 15, 512), (0, 16, 512), (1, 16, 496), (1, 100, 13), (400, 1000, 1)],
)
def test_large_networks_have_fewer_points_at_once(
    monkeypatch: pytest.MonkeyPatch, links_: int, flows: int, size: int
) -> None:
    """Jacobians of a row for each link and four for each flow hold 2^21 numbers: of 64 rows for 512 points."""
    asked: list[Any] = []
    monkeypatch.setattr(charts, "smooth_side", asked.append)
    scenario: Any = SimpleNamespace(links=[None] * links_, flows=[SimpleNamespace(scheme=k) for k in range(flows)])
    assert charts._size(scenario) == size
    assert asked == list(range(flows))


# -- the dataset -------------------------------------------------------------------------------------------------


def charted(monkeypatch: pytest.MonkeyPatch, over: dict[str, Any], root: list[float], reason: list[int]) -> Any:
    count = len(root)
    points = Points(
        np.array(root),
        np.arange(1.0, count + 1),
        np.full(count, NAN),
        np.full(count, 0.5),
        np.full(count, 9.0),
        np.arange(count) % 2 == 0,
        np.array(reason),
    )
    monkeypatch.setattr(charts, "RootFinder", lambda make: lambda columns, report=None: points)
    monkeypatch.setattr(charts, "traced", lambda root, axes, values: [np.ones((2, 2)), 5 * np.ones((3, 2))])
    make: Any = None
    return stability_chart(make, over)


def test_left_of_the_axis_is_stable_and_on_it_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    reasons = [0, 0, 0, len(REASONS), len(REASONS) + 1, 3]
    chart = charted(monkeypatch, {"n": range(2), "tau": range(3)}, [-1.0, 0.0, 1.0, NAN, NAN, NAN], reasons)
    data = chart.dataset
    assert data["root"].dims == ("n", "tau")
    np.testing.assert_array_equal(data["stable"], [[1, 0, 0], [NAN] * 3])
    np.testing.assert_array_equal(data["on_ramp"], [[1, 0, 1], [NAN] * 3])
    np.testing.assert_array_equal(data["frequency"], [[1, 2, 3], [4, 5, 6]])
    assert data["reason"].values.ravel().tolist() == ["ok"] * 3 + [NO_EQUILIBRIUM, UNRESOLVED, REASONS[3]]
    assert data["boundary"].shape == (5, 2)
    assert data["curve"].values.tolist() == [0, 0, 1, 1, 1]
    assert data["name"].values.tolist() == ["n", "tau"]
    assert repr(chart) == "<StabilityChart n: 2, tau: 3; stable at 1 of 3>"


@pytest.mark.parametrize("over", [{"n": range(2)}, {"n": range(1), "tau": range(2), "g": range(1)}])
def test_a_boundary_is_over_two_names_alone(monkeypatch: pytest.MonkeyPatch, over: dict[str, Any]) -> None:
    assert "boundary" not in charted(monkeypatch, over, [-1.0, 1.0], [0, 0]).dataset
