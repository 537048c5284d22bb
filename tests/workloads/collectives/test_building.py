"""Graphs: many operations at once are those one by one, and who follows whom need not be said."""

from __future__ import annotations

import numpy as np
import pytest

from fluidcc.errors import InputError
from fluidcc.workloads.collectives import graph as graph_module
from fluidcc.workloads.collectives.graph import Building, Graph

COLUMNS = ("source", "target", "size", "delay", "job", "iteration", "step", "channel", "after", "after_at")


def ring(at_once: bool) -> Graph:
    """Three ranks, three steps, on two channels; compute before."""
    made = Building()
    made.now = 2, 5
    first = [made.wait(rank, 1e-6) for rank in range(3)]
    came = np.array(first)
    for channel in range(2):
        came = np.array(first)
        for step in range(3):
            if at_once:
                sent = made.send_all(np.arange(3), np.roll(np.arange(3), -1), 10.4, came[:, None], step, channel)
            else:
                sent = np.array([made.send(r, (r + 1) % 3, 10.4, [int(came[r])], step, channel) for r in range(3)])
            came = np.roll(sent, 1)
    made.copy(0, 1, 2e-6, [int(came[0])])
    made.copy(0, 2, 2e-6)
    return made.done()


def test_at_once_is_one_by_one() -> None:
    both = ring(True), ring(False)
    for name in COLUMNS:
        one, other = (getattr(each, name) for each in both)
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype
    graph = both[0]
    assert graph.size[3] == 10.0
    assert set(graph.job) == {2}
    assert graph.before(3) == [0]
    assert graph.before(6) == [5, 3]  # what it passes on, and its own of the step before
    assert graph.before(12) == [0]  # the other channel is another connection
    assert graph.before(22) == [21]  # copies of a rank
    begins = graph.behind[graph.after_at[6] : graph.after_at[7]]
    assert begins.tolist() == [False, True]


def test_what_is_waited_for_is_there_once() -> None:
    made = Building()
    first = made.send(0, 1, 5.0)
    made.send(0, 1, 5.0, [first])
    made.send(0, 1, 5.0, in_order=False)
    graph = made.done()
    assert [graph.before(i) for i in range(3)] == [[], [0], []]


def test_the_longest_chain_is_worked_out_by_hand() -> None:
    """Two sends of one rank behind each other, of 2 s on the link and 5 s until they arrive, and compute of 1 s."""
    made = Building()
    first = made.send(0, 1, 5.0)
    second = made.send(0, 1, 5.0)
    third = made.send(1, 2, 5.0, [first])
    last = made.wait(2, 1.0, [second, third])
    graph = made.done()
    left, arrived = np.array([2.0, 2.0, 2.0, 0.0]), np.array([5.0, 5.0, 5.0, 0.0])
    assert graph.longest(left, arrived) == 5.0 + 5.0 + 1.0
    began = np.array([0.0, 2.0, 5.0, 11.0])
    assert graph.critical(began, began + left, began + arrived) == [first, third, last]


def test_a_transfer_ends_as_it_arrives_and_a_wait_as_it_begins() -> None:
    made = Building()
    first = made.send(0, 1, 5.0)
    made.wait(1, 2.0, [first])
    assert made.done().ended(np.array([1.0, 6.0]), np.array([4.0, 9.0])).tolist() == [4.0, 6.0]


def test_there_is_a_largest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_module, "MOST_OPERATIONS", 10)
    made = Building()
    made.send_all(np.arange(6), np.arange(6) + 6, 1.0)
    with pytest.raises(InputError, match="more than 10 transfers"):
        made.send_all(np.arange(5), np.arange(5) + 6, 1.0)
    made.send_all(np.arange(4), np.arange(4) + 6, 1.0)
    assert len(made) == 10
    with pytest.raises(InputError, match="more than 10 transfers"):
        made.wait(0, 1.0)
