"""Flows that wait for others: which may, and in which order all can begin."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import Any

from fluidcc.errors import InputError
from fluidcc.units import is_concrete

KNOWN, RECEIPT, ANSWER, SENT = "known", "receipt", "answer", "sent"
ENDS = (KNOWN, RECEIPT, ANSWER, SENT)  # what of the flows waited for counts as their end
_SHOWN = 8  # flows of a cycle that are named


def resolve_order(after: Any, after_what: Any, where: str) -> tuple[int, ...]:
    """Places of the flows that a flow waits for.

    Raises
    ------
    InputError
        If they are no whole numbers, or one is there twice.
    """
    if after_what not in ENDS:
        raise InputError(f"{where}after_what: {repr(after_what)[:30]} is unknown; write one of {', '.join(ENDS)}")
    listed = list(after) if isinstance(after, (tuple, list)) else [after]
    for place in listed:
        if not isinstance(place, numbers.Integral) or isinstance(place, bool) or place < 0:
            raise InputError(
                f"{where}after: {repr(place)[:40]} is no place of a flow; write for example after=(0,) for the first"
            )
    if len(set(listed)) < len(listed):
        raise InputError(f"{where}after: a flow is there twice; name each once")
    return tuple(map(int, listed))


def in_order(flows: Sequence[Any]) -> None:
    """Refuse flows that wait for what is no flow, for what never ends, or for each other.

    Raises
    ------
    InputError
        With the cycle, if there is one.
    """
    for i, flow in enumerate(flows):
        for place in flow.after:
            if place >= len(flows):
                raise InputError(f"flow {i} after: there is no flow {place}; there are {len(flows)}, counted from 0")
            if is_concrete(flows[place].size) and math.isinf(flows[place].size):
                raise InputError(f"flow {i} after: flow {place} has no end; give it a size")
    _, circle = ordered([flow.after for flow in flows])
    if circle:
        raise InputError(f"flows: {told_circle([f'flow {i}' for i in circle])}; break the circle in after")


def ordered(needs: Sequence[Sequence[int]]) -> tuple[list[int], list[int]]:
    """Return all places, each behind those that it needs, and a circle of places that need each other, if there is one.

    Of a circle the order lacks what is in it or behind it.
    """
    left = [len(each) for each in needs]
    followers: list[list[int]] = [[] for _ in needs]
    for i, each in enumerate(needs):
        for k in each:
            followers[k].append(i)
    free = [i for i, count in enumerate(left) if count == 0]
    for i in free:  # grows meanwhile
        for each in followers[i]:
            left[each] -= 1
            if left[each] == 0:
                free.append(each)
    if len(free) == len(needs):
        return free, []
    at = next(i for i, count in enumerate(left) if count > 0)
    seen: list[int] = []
    while at not in seen:
        seen.append(at)
        at = next(k for k in needs[at] if left[k] > 0)
    return free, seen[seen.index(at) :]


def told_circle(names: Sequence[str]) -> str:
    """Say who waits for whom in a circle."""
    more = [f"{len(names) - _SHOWN} more"] if len(names) > _SHOWN else []
    return " waits for ".join([*names[:_SHOWN], *more, names[0]])


def end_of(flow: Any, before: Any) -> str:
    """Return which end of a flow counts for one that waits for it: `SENT`, `RECEIPT` or `ANSWER`."""
    if flow.after_what == SENT:
        return SENT if flow.source and flow.source == before.source else RECEIPT
    at_once = flow.after_what == KNOWN and flow.source and flow.source == before.target
    return RECEIPT if flow.after_what == RECEIPT or at_once else ANSWER
