"""The calendar against Python's own heap: whatever is scheduled comes out in the order of time, then of turn."""

from __future__ import annotations

import heapq
from typing import Any

import hypothesis.strategies as st
import numba
import numpy as np
import pytest
from hypothesis import given, settings

from fluidcc.engines.packet import layout
from fluidcc.engines.packet.calendar import (
    begin,
    events_of,
    grown_calendar,
    lowest_bit,
    new_calendar,
    open_slot,
    pop,
    push,
)
from fluidcc.engines.packet.layout import NEVER, SLOTS, records
from tests.engines.packet.plain import plain

REACH = 3_000_000.0  # ps; slots of 4096 ps
SPAN = 4096 * SLOTS
# How far ahead: now, within a slot, some slots, just within and just beyond the last one, and far.
WAITS = st.one_of(
    st.sampled_from([0, 1, 4095, 4096, SPAN - 4096, SPAN - 1, SPAN, SPAN + 1, 2 * SPAN]),
    st.integers(0, 4096 * 20),
    st.integers(0, 2 * SPAN),
    st.integers(0, 10**12),
)
STEPS = st.lists(st.lists(WAITS, max_size=3), min_size=1, max_size=60)


def calendar_of(rows: int = 8) -> tuple[Any, Any]:
    core = records(layout.CORE, 1)[0]
    calendar = new_calendar(core, rows, REACH)
    assert core.shift == 12
    return core, calendar


@settings(deadline=None, max_examples=150)
@given(STEPS, st.lists(st.integers(0, 10**8), max_size=5))
def test_events_come_in_the_order_of_a_heap(steps: list[list[int]], first: list[int]) -> None:
    """With growth on the way; each event, as it comes, schedules some."""
    core, calendar = calendar_of()
    begin(core, calendar, [(0, 0), *((time, k) for k, time in enumerate(first, 1))])
    expected = [(time, order, 0) for order, time in enumerate(sorted([0, *first]))]
    count = len(expected)
    for waits in [*steps, *[[]] * 300]:
        if not expected:
            break
        if core.due == 0:
            plain(open_slot)(core, calendar, NEVER)
        time, order, _ = heapq.heappop(expected)
        assert (calendar[0].time, calendar[0].order) == (time, order)
        core.now = time
        plain(pop)(core, calendar)
        for wait in waits:
            if core.pending + 1 > core.rows:
                before = sorted(events_of(core, calendar)["order"].tolist())
                calendar = grown_calendar(core, calendar)
                assert sorted(events_of(core, calendar)["order"].tolist()) == before
            heapq.heappush(expected, (time + wait, count, 0))
            plain(push)(core, calendar, time + wait, count, 7)
            count += 1
        assert core.pending == len(expected) == len(events_of(core, calendar))
    assert not expected
    assert core.pending == 0


@numba.njit
def _hold(core: Any, calendar: Any, waits: Any, times: Any) -> None:
    """Each event schedules one; the times at which they came."""
    for i in range(len(times)):
        if core.due == 0:
            open_slot(core, calendar, NEVER)
        times[i] = core.now = calendar[0].time
        pop(core, calendar)
        push(core, calendar, times[i] + waits[i], i, 0)


@pytest.mark.parametrize("pending", [1, 40, 2000])
def test_compiled(pending: int) -> None:
    draws = np.random.default_rng(1)
    waits = np.where(draws.random(50_000) < 0.01, 5 * SPAN, draws.integers(0, SPAN // 3, 50_000))
    core, calendar = calendar_of(2048)
    begin(core, calendar, [(0, 0)] * pending)
    found = np.zeros(len(waits), np.int64)
    _hold(core, calendar, waits, found)
    heap, expected = [0] * pending, []
    for wait in waits.tolist():
        expected.append(heapq.heappushpop(heap, heap[0] + wait))
    assert found.tolist() == expected


@pytest.mark.parametrize("word", [1, 2, 12, -1, -(1 << 63), 1 << 62, (1 << 40) + (1 << 41)])
def test_lowest_bit(word: int) -> None:
    compiled = numba.njit(lambda w: lowest_bit(w))
    assert compiled(word) == lowest_bit_by_hand(word)


def lowest_bit_by_hand(word: int) -> int:
    return next(k for k in range(64) if word >> k & 1)
