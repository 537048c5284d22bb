"""A network about its equilibrium from written Jacobians: who takes part, its delay equations, and where to search."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from fluidcc.compiling.settings import our_settings
from fluidcc.theory.control import local as module
from fluidcc.theory.control.linearize import Linearization
from fluidcc.theory.control.local import STILL, Jacobians, Local, _like, _rows, movement

# Rows: a queue, two states of flow class 0, one of class 1. Delayed inputs: the queue twice, the rate of class 0 by its
# sum, and its own.
ROWS, INPUTS = 4, 4


def made(points: int = 2, many: tuple[float, ...] = (3.0, 1.0), **changed: Any) -> Local:
    """Numbers that are all different, so that none stands for another."""
    present = 1.0 + np.arange(points * ROWS * ROWS, dtype=float).reshape(points, ROWS, ROWS)
    past = 100.0 + np.arange(points * ROWS * INPUTS, dtype=float).reshape(points, ROWS, INPUTS)
    observed = np.zeros((points, INPUTS, ROWS))
    observed[:, 0, 0], observed[:, 1, 0], observed[:, 2, 1], observed[:, 3, 1] = 2.0, 3.0, 5.0, 7.0
    rates = np.zeros((points, 2, ROWS))
    rates[:, 0, 1] = rates[:, 1, 3] = 1.0
    delay = np.tile([4e-6, 2e-6, 2e-6 * (1 + 1e-12), 9e-6], (points, 1)) * (1 + np.arange(points))[:, None]
    numbers = {
        "x": np.tile([0.5, 1.0, 1.0, 1.0], (points, 1)), "moved": np.zeros(points),
        "held": np.zeros((points, ROWS), bool), "present": present, "past": past, "observed": observed, "delay": delay,
        "rates": rates,
    }  # fmt: skip
    inputs = [SimpleNamespace(summed=k == 2) for k in range(INPUTS)]
    network = SimpleNamespace(multiplicity=np.array(many)[:, None], flows=[0, 1])
    states = SimpleNamespace(
        flow=(-1, 0, 0, 1),
        delayed_inputs=SimpleNamespace(delayed_inputs=inputs),
        system=SimpleNamespace(network=network),
    )
    return Local(cast(Any, states), Jacobians(**numbers | changed))


def test_an_equilibrium_moves_by_less_than_the_bound() -> None:
    found = made(3, moved=np.array([0.5 * STILL, STILL, 2 * STILL]))
    assert found.exists.tolist() == [True, False, False]


def test_a_queue_takes_part_if_there_is_one() -> None:
    """Half a byte is one; a state of a flow may be 0 or less."""
    for queue, there in ((0.5, True), (0.0, False)):
        x = np.tile([queue, -1.0, 0.0, 1.0], (2, 1))
        assert made(x=x).moving.tolist() == [[there, True, True, True]] * 2


def test_the_equations_of_all_flows_add_inputs_of_equal_delay() -> None:
    """x' = A0 x + sum A x(t - tau), by delay; every point has its own."""
    found = made()
    (modes,) = found.modes()
    assert (modes.points.tolist(), modes.rows) == ([0, 1], (0, 1, 2, 3))
    s = found.slopes
    for point in range(2):
        system = modes.aggregate[point]
        assert system.tau == pytest.approx(np.array([2e-6, 4e-6, 9e-6]) * (1 + point), rel=1e-9)
        np.testing.assert_allclose(system.A0, s.present[point])
        terms = [np.outer(s.past[point][:, k], s.observed[point][k]) for k in range(INPUTS)]
        np.testing.assert_allclose(system.A, [terms[1] + terms[2], terms[0], terms[3]])


def test_differences_of_equal_flows_have_no_sums() -> None:
    """Move a class of several flows alone, by its own states: catches a sum kept, or another class in it."""
    found = made()
    (modes,) = found.modes()
    ((flow, system),) = modes.fairness
    assert flow == 0
    s = found.slopes
    for point in range(2):
        np.testing.assert_allclose(system[point].A0, s.present[point][1:3, 1:3])
        assert system[point].tau == pytest.approx([9e-6 * (1 + point)])
        np.testing.assert_allclose(system[point].A, np.outer(s.past[point][1:3, 3], s.observed[point][3][1:3])[None])
    for many, classes in (((1.0, 1.0), []), ((1.0, 2.0), [1]), ((1.5, 4.0), [0, 1])):
        (modes,) = made(many=many).modes()
        assert [flow for flow, _ in modes.fairness] == classes
    points = made()
    cast(Any, points.states.system.network).multiplicity = np.array(
        [[1.0, 2.0], [1.0, 1.0]]
    )  # of one point of the batch alone
    (modes,) = points.modes()
    assert [flow for flow, _ in modes.fairness] == [0]


def test_points_of_equal_states_are_solved_together() -> None:
    """Those without an equilibrium or without states are left out."""
    moved = np.array([0.0, 0.0, 1.0, 0.0, 0.0])
    held = np.zeros((5, ROWS), bool)
    held[1, 3] = True
    held[4] = True
    modes = made(5, moved=moved, held=held).modes()
    assert [(each.points.tolist(), each.rows) for each in modes] == [([1], (0, 1, 2)), ([0, 3], (0, 1, 2, 3))]
    assert len(modes[1].aggregate.A0) == 2
    assert modes[1].aggregate[1].tau == pytest.approx(np.array([2e-6, 4e-6, 9e-6]) * 4, rel=1e-9)


def test_delays_are_one_at_all_points_or_two() -> None:
    delay = np.array([[1e-6, 2e-6, 1e-6, 1e-6], [2e-6, 2e-6, 2e-6, 2e-6 * (1 + 3e-9)]])
    (modes,) = made(delay=delay).modes()
    assert modes.aggregate.tau == pytest.approx(np.array([[1e-6, 1e-6, 2e-6], [2e-6, 2e-6, 2e-6]]), rel=1e-8)
    assert len(modes.aggregate[0].tau) == 3


# -- what is searched for -----------------------------------------------------------------------------------------


def test_rows_that_are_not_given_are_not_known() -> None:
    states: Any = SimpleNamespace(names=("queue 0", "rate 0"))
    np.testing.assert_array_equal(_rows(states, {"rate 0": 3.0, "other": 4.0}), [np.nan, 3.0])


def test_masks_of_points_reach_all_rows() -> None:
    mask = np.array([True, False])
    assert [_like(mask, np.zeros(shape)).shape for shape in ((2,), (2, 3), (2, 3, 4))] == [(2,), (2, 1), (2, 1, 1)]


def test_movement_of_a_state_that_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """None if a row is missing, infinite if it is no number."""
    given: list[Any] = []
    answer = [3e-10]

    def moved(network: Any, x: Any, *, points: int) -> Any:
        given.append((np.asarray(x).tolist(), points))
        return np.array(answer)

    monkeypatch.setattr(module, "_spread", lambda network, points: "spread")
    monkeypatch.setattr(module, "_states", lambda network, points: SimpleNamespace(names=("queue 0", "rate 0")))
    monkeypatch.setattr(module, "_moved", moved)
    assert movement(cast(Any, None), {"queue 0": 1.0}) is None
    assert given == []
    assert movement(cast(Any, None), {"queue 0": 1.0, "rate 0": 2.0}) == 3e-10
    assert given == [([[1.0], [2.0]], 1)]
    answer[0] = np.nan
    assert movement(cast(Any, None), {"queue 0": 1.0, "rate 0": 2.0}) == np.inf


def test_a_search_goes_on_from_what_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """In all points alike; what ends in no number has moved without limit."""
    given: list[Any] = []

    def search(network: Any, start: Any, x: Any, *, points: int) -> Any:
        given.append((tuple(map(float, start)), np.asarray(x)))
        return Jacobians(*[np.array([1e-12, np.nan, -np.inf])] * len(Jacobians._fields))

    monkeypatch.setattr(module, "_jacobians", search)
    states: Any = SimpleNamespace(names=("queue 0", "rate 0"))
    start = module.STARTS[6]
    with our_settings():
        found = module._from(cast(Any, None), start, 3, states, {"rate 0": 2.0})
    assert found.moved.tolist() == [1e-12, np.inf, np.inf]
    assert given[0][0] == tuple(start)
    np.testing.assert_array_equal(given[0][1], [[np.nan] * 3, [2.0] * 3])


# -- the loop -----------------------------------------------------------------------------------------------------


def test_a_loop_is_cut_where_the_longest_queue_is_observed() -> None:
    """The queue's own columns leave the delays, and are the input with its sign turned; others stay."""
    system = made().modes()[0].aggregate[0]
    names = ("queue 1", "rate 0", "queue 0", "rate 1")
    links = [{"queue_bytes": 5.0}, {"queue_bytes": 7.0}]
    given: Any = SimpleNamespace(equilibrium=SimpleNamespace(links=links), system=system, states=names)
    loop = Linearization.loop(given)
    assert loop is not None
    np.testing.assert_array_equal(loop.system.A0, system.A0)
    np.testing.assert_array_equal(loop.system.tau, system.tau)
    np.testing.assert_array_equal(loop.system.A[..., 1:], system.A[..., 1:])
    assert not loop.system.A[..., 0].any()
    used = system.A[..., 0].any(axis=1)
    assert used.tolist() == [True, True, False]
    np.testing.assert_array_equal(loop.B, -system.A[:2, :, 0])
    np.testing.assert_array_equal(loop.input_delay, system.tau[:2])
    assert loop.C.tolist() == [1.0, 0.0, 0.0, 0.0]
    given.equilibrium.links = links[::-1]  # now queue 0 is the longest, which nobody observes late
    assert not system.A[..., 2].any()
    assert Linearization.loop(given) is None
    given.states = ("queue 1", *names[1:2], "rate 2", "rate 1")
    assert Linearization.loop(given) is None
