"""Flows that wait for each other: which places are refused, and which circle is named."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from fluidcc.errors import InputError
from fluidcc.scenario.dependencies import ANSWER, KNOWN, RECEIPT, SENT, end_of, in_order, resolve_order


def flows(*after: tuple[int, ...], size: float = 1e3) -> list[Any]:
    return [SimpleNamespace(after=each, size=size) for each in after]


def circle(count: int) -> list[Any]:
    """Each waits for the next, the last for the first."""
    return flows(*(((k + 1) % count,) for k in range(count)))


def test_chains_and_joins_pass() -> None:
    """In any order of their places, and without an end where nobody waits."""
    in_order([])
    in_order(flows((), size=math.inf))
    in_order(flows((2,), (0, 2), ()))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (flows((), (2,)), "^flow 1 after: there is no flow 2; there are 2, counted from 0$"),
        (flows((1,), (), size=math.inf), "^flow 0 after: flow 1 has no end; give it a size$"),
        # What is done before the circle is none of it, nor is what waits for it.
        (flows((), (0, 2), (1,)), "^flows: flow 1 waits for flow 2 waits for flow 1; "),
        (flows((1,), (2,), (1,)), "^flows: flow 1 waits for flow 2 waits for flow 1; "),
        (flows((0,)), "^flows: flow 0 waits for flow 0; "),
        (circle(8), "flow 6 waits for flow 7 waits for flow 0; "),
        (circle(9), "flow 7 waits for 1 more waits for flow 0; "),
    ],
    ids=["none", "endless", "behind", "before", "itself", "eight", "nine"],
)
def test_what_cannot_begin_is_refused(given: list[Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        in_order(given)


def test_places_are_whole_numbers_each_once() -> None:
    assert resolve_order(0, KNOWN, "") == (0,)
    assert resolve_order([2, 0], SENT, "") == (2, 0)
    for after in (-1, True, 0.0, "0", (0, 1, 0)):
        with pytest.raises(InputError, match=r"^flow 3 after: "):
            resolve_order(after, KNOWN, "flow 3 ")
    with pytest.raises(InputError, match="after_what: 'then' is unknown"):
        resolve_order((), "then", "")


@pytest.mark.parametrize(
    ("what", "source", "target", "found"),
    [
        # One that was sent counts where the next begins at the same host; elsewhere it must have come.
        (SENT, "a", "c", SENT),
        (SENT, "b", "c", RECEIPT),
        # A receiver knows as it has come, others as the answer has.
        (KNOWN, "b", "a", RECEIPT),
        (KNOWN, "a", "b", ANSWER),
        (RECEIPT, "a", "b", RECEIPT),
        (ANSWER, "b", "a", ANSWER),
    ],
)
def test_ends_of_what_is_waited_for(what: str, source: str, target: str, found: str) -> None:
    """Before it one from a to b."""
    first = SimpleNamespace(source="a", target="b")
    assert end_of(SimpleNamespace(after_what=what, source=source, target=target), first) == found


@pytest.mark.parametrize(("what", "found"), [(SENT, RECEIPT), (KNOWN, ANSWER)])
def test_hosts_without_names_are_not_the_same(what: str, found: str) -> None:
    nameless = SimpleNamespace(after_what=what, source="", target="")
    assert end_of(nameless, SimpleNamespace(source="", target="")) == found
