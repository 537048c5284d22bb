"""Flows that wait for others: places, cycles, and which end counts."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fluidcc.errors import InputError
from fluidcc.scenario import dependencies
from fluidcc.scenario.dependencies import ANSWER, KNOWN, RECEIPT, SENT, end_of, in_order, resolve_order


@pytest.mark.parametrize(
    ("after", "places"),
    [((), ()), ((2, 0), (2, 0)), ([1], (1,)), (3, (3,)), (np.int64(4), (4,)), ((np.int32(0), 5), (0, 5))],
)
def test_places_are_whole_numbers(after: Any, places: tuple[int, ...]) -> None:
    found = resolve_order(after, RECEIPT, "flow 1 ")
    assert found == places
    assert all(type(place) is int for place in found)


@pytest.mark.parametrize(
    ("after", "what", "says"),
    [
        ((-1,), KNOWN, "flow 1 after: -1 is no place"),
        ((True,), KNOWN, "True is no place"),
        ((1.0,), KNOWN, "1.0 is no place"),
        ("0", KNOWN, "'0' is no place"),
        (None, KNOWN, "None is no place"),
        ((0, 2, 0), KNOWN, "a flow is there twice"),
        ((0,), "soon", "flow 1 after_what: 'soon' is unknown; write one of known, receipt, answer, sent"),
    ],
)
def test_what_is_no_place_is_refused(after: Any, what: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        resolve_order(after, what, "flow 1 ")


def flows(*after: tuple[int, ...], sizes: dict[int, Any] | None = None) -> list[Any]:
    return [SimpleNamespace(after=places, size=(sizes or {}).get(i, 1e6)) for i, places in enumerate(after)]


@pytest.mark.parametrize(
    "waiting",
    [
        [(), (), ()],
        [(), (0,), (1,), (2,)],
        [(3,), (0,), (0, 1), ()],  # whatever their order
        [(), (0,), (0,), (1, 2)],  # a diamond
        [(2, 1), (2,), ()],
    ],
)
def test_flows_that_can_all_begin_pass(waiting: list[tuple[int, ...]]) -> None:
    in_order(flows(*waiting))


@pytest.mark.parametrize(
    ("waiting", "says"),
    [
        ([(0,)], "flows: flow 0 waits for flow 0; break"),
        ([(1,), (0,)], "flows: flow 0 waits for flow 1 waits for flow 0; break"),
        ([(), (0, 3), (1,), (2,)], "flows: flow 1 waits for flow 3 waits for flow 2 waits for flow 1; break"),
        ([(2,), (2,), (1,)], "flows: flow 2 waits for flow 1 waits for flow 2; break"),  # without who waits for it
        ([(), (1, 0)], "flows: flow 1 waits for flow 1; break"),
        ([(1,)], "flow 0 after: there is no flow 1; there are 1, counted from 0"),
        ([(), (0, 2)], "flow 1 after: there is no flow 2; there are 2"),
    ],
)
def test_flows_that_wait_in_a_circle_are_refused_with_it(waiting: list[tuple[int, ...]], says: str) -> None:
    with pytest.raises(InputError, match=says):
        in_order(flows(*waiting))


@pytest.mark.parametrize(("count", "more"), [(8, ""), (9, "1 more waits for "), (12, "4 more waits for ")])
def test_long_circles_are_shown_in_part(count: int, more: str) -> None:
    circle = flows(*[((k + 1) % count,) for k in range(count)])
    shown = " waits for ".join(f"flow {k}" for k in range(8))
    with pytest.raises(InputError, match=f"flows: {shown} waits for {more}flow 0; break"):
        in_order(circle)


def test_what_never_ends_is_not_waited_for() -> None:
    with pytest.raises(InputError, match="flow 1 after: flow 0 has no end; give it a size"):
        in_order(flows((), (0,), sizes={0: math.inf}))
    in_order(flows((), (0,), sizes={1: math.inf}))
    in_order(flows((), (0,), sizes={0: object()}))  # traced, not known yet


@pytest.mark.parametrize(
    ("what", "source", "before", "end"),
    [
        (SENT, "a", ("a", "b"), SENT),
        (SENT, "b", ("a", "b"), RECEIPT),
        (SENT, "", ("", ""), RECEIPT),  # nobody knows where they are
        (KNOWN, "b", ("a", "b"), RECEIPT),  # its sender is who receives
        (KNOWN, "a", ("a", "b"), ANSWER),
        (KNOWN, "", ("", ""), ANSWER),
        (RECEIPT, "a", ("a", "b"), RECEIPT),
        (RECEIPT, "b", ("a", "b"), RECEIPT),
        (ANSWER, "b", ("a", "b"), ANSWER),
    ],
)
def test_the_end_that_counts_is_where_it_is_known(what: str, source: str, before: tuple[str, str], end: str) -> None:
    flow = SimpleNamespace(after_what=what, source=source)
    assert end_of(flow, SimpleNamespace(source=before[0], target=before[1])) == end


def test_names_of_the_ends_are_all_there_are() -> None:
    assert dependencies.ENDS == ("known", "receipt", "answer", "sent")
