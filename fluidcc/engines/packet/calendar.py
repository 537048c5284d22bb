"""The calendar: events in the order of time, ties by the order of scheduling.

Nearly all events lie no further away than a link is long. In a single binary heap they would be hundreds, and finding
a place among them a third of a run's time. So the near future is cut into short slots (a calendar queue: Brown, CACM
1988). An event joins its slot's list, in no order, and as a slot comes up its few events go to a small heap, which
alone decides what is first: the order is that of the single heap. What lies beyond the last slot waits in a second one.

Memory is one array of three parts of ``core.rows`` events each: the first heap, the second, and the slots' lists.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic, overload

from fluidcc.engines.common.jit import kernel
from fluidcc.engines.packet.layout import EVENT, SLOTS, WORD, records

_WORD = (1 << 64) - 1
# An event is kind << SHIFT | packet << BESIDE | index; only those of arrival have a packet.
SHIFT, BESIDE = map(np.int64, (58, 28))
_PER_WORD, _IN_WORD, _MASK = map(np.int64, (WORD.bit_length() - 1, WORD - 1, SLOTS - 1))
_NEAR = np.int64(16)  # slots
_SPANS = 1.5  # times the longest link's delay that the slots should reach


def lowest_bit(word: Any) -> int:
    """Place of the lowest bit that is set, from 0, of a word in two's complement that is not 0."""
    unsigned = int(word) & _WORD
    return (unsigned & -unsigned).bit_length() - 1


def _cttz(typing: Any, word: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], context.get_constant(types.boolean, True))

    return types.int64(types.int64), code


_trailing_zeros: Any = intrinsic(_cttz)


@overload(lowest_bit, inline="always")
def _compiled(word: Any) -> Any:
    def zeros(word: Any) -> Any:
        return _trailing_zeros(word)

    return zeros


def new_calendar(core: Any, rows: int, reach: float) -> Any:
    """An empty calendar with room for some events.

    Parameters
    ----------
    core : record of CORE
    rows : int
        Events that it has room for.
    reach : float
        How far ahead most events are scheduled [ps].
    """
    core.rows, core.pending, core.due, core.later, core.opened, core.words = rows, 0, 0, 0, 0, 0
    core.shift = max(0, math.ceil(math.log2(max(1.0, _SPANS * reach / SLOTS))))
    core.filled[:] = 0
    core.slots[:] = -1
    calendar = records(EVENT, 3 * rows)
    calendar["next"][2 * rows :] = np.arange(2 * rows + 1, 3 * rows + 1)
    core.unused = 2 * rows
    return calendar


def begin(core: Any, calendar: Any, events: list[tuple[int, Any]]) -> None:
    """Enter the first events, times and what they are; one at least is at time 0."""
    ordered = sorted(events, key=lambda each: each[0])
    core.pending = core.order = len(ordered)
    core.due = sum(time >> int(core.shift) == 0 for time, _ in ordered)
    core.later = core.pending - core.due
    for order, (time, event) in enumerate(ordered):  # what is sorted is a heap
        calendar[order if order < core.due else int(core.rows) + order - int(core.due)] = time, order, event, 0


def grown_calendar(core: Any, calendar: Any) -> Any:
    """Return a calendar of the same events with twice the room."""
    rows = int(core.rows)
    core.rows = 2 * rows
    grown = records(EVENT, 6 * rows)
    grown[: core.due] = calendar[: core.due]
    grown[2 * rows : 2 * rows + core.later] = calendar[rows : rows + core.later]
    # Lists move as a whole; that of unused rows, which ended behind the last, continues there.
    grown["next"][4 * rows :] = np.arange(4 * rows + 1, 6 * rows + 1)
    grown[4 * rows : 5 * rows] = calendar[2 * rows :]
    moved = grown["next"][4 * rows : 5 * rows]
    moved[moved >= 0] += 2 * rows
    core.slots[core.slots >= 0] += 2 * rows
    core.unused += 2 * rows
    return grown


def events_of(core: Any, calendar: Any) -> np.ndarray:
    """Return all pending events, in no particular order."""
    rows = int(core.rows)
    listed = []
    for k in core.slots[core.slots >= 0].tolist():
        while k >= 0:
            listed.append(k)
            k = int(calendar[k].next)
    ahead = np.array(listed, np.int64)
    return np.concatenate([calendar[: core.due], calendar[rows : rows + core.later], calendar[ahead]])


@kernel
def push(core: Any, calendar: Any, time: Any, order: Any, event: Any) -> None:
    """Schedule an event; an order taken earlier (`next_sequence`) may be given to it."""
    core.pending += 1
    number = time >> core.shift
    if number <= core.opened:
        rise(calendar, 0, core.due, time, order, event)
        core.due += 1
    elif number < core.opened + SLOTS:
        slot = number & _MASK
        k = core.unused
        row = calendar[k]
        core.unused = row.next
        row.time = time
        row.order = order
        row.event = event
        row.next = core.slots[slot]
        core.slots[slot] = k
        word = slot >> _PER_WORD
        core.filled[word] |= 1 << (slot & _IN_WORD)
        core.words |= 1 << word
    else:
        rise(calendar, core.rows, core.later, time, order, event)
        core.later += 1


@kernel
def pop(core: Any, calendar: Any) -> None:
    """Remove the first event, which the caller has read from row 0 and whose time is now.

    The next one is in row 0 then, if it is near; what this one is about to schedule should find its own slots still
    closed. Else `open_slot` must be called before it is read.
    """
    core.pending -= 1
    core.due -= 1
    if core.due > 0:
        sink(calendar, 0, core.due)
    else:
        open_slot(core, calendar, (core.now >> core.shift) + _NEAR)


@kernel
def open_slot(core: Any, calendar: Any, most: Any) -> None:
    """Take the events of the next slot that has any, up to a number, to the first heap; from the second heap too."""
    ahead = next_filled(core)
    if core.later > 0:
        waiting = calendar[core.rows].time >> core.shift
        if ahead < 0 or waiting < ahead:
            ahead = waiting
    if ahead < 0 or ahead > most:
        return
    core.opened = ahead
    slot = ahead & _MASK
    k = core.slots[slot]
    if k >= 0:
        core.slots[slot] = -1
        word = slot >> _PER_WORD
        core.filled[word] &= ~(1 << (slot & _IN_WORD))
        if core.filled[word] == 0:
            core.words &= ~(1 << word)
        while k >= 0:
            row = calendar[k]
            rise(calendar, 0, core.due, row.time, row.order, row.event)
            core.due += 1
            following = row.next
            row.next = core.unused
            core.unused = k
            k = following
    while core.later > 0 and calendar[core.rows].time >> core.shift <= ahead:
        row = calendar[core.rows]
        rise(calendar, 0, core.due, row.time, row.order, row.event)
        core.due += 1
        core.later -= 1
        if core.later > 0:
            sink(calendar, core.rows, core.later)


@kernel
def next_filled(core: Any) -> Any:
    """Number of the first slot with events after the one that was opened last; -1 if there is none."""
    if core.words == 0:
        return -1
    here = core.opened & _MASK
    word = here >> _PER_WORD
    bits = higher(core.filled[word], here & _IN_WORD)
    if bits == 0:
        words = higher(core.words, word)
        if words == 0:  # only below: they are of the next turn
            words = core.words
        word = lowest_bit(words)
        bits = core.filled[word]
    slot = (word << _PER_WORD) + lowest_bit(bits)
    return core.opened + ((slot - here) & _MASK)


@kernel
def higher(word: Any, place: Any) -> Any:
    """The bits of a word above a place."""
    return word >> place >> 1 << 1 << place


@kernel
def rise(calendar: Any, base: Any, n: Any, time: Any, order: Any, event: Any) -> None:
    """Put an event into a heap of ``n`` that begins at row ``base``."""
    i = n
    while i > 0:
        up = (i - 1) >> 1
        above = calendar[base + up]
        if above.time < time or (above.time == time and above.order < order):
            break
        copy(calendar, base + i, base + up)
        i = up
    row = calendar[base + i]
    row.time = time
    row.order = order
    row.event = event


@kernel
def sink(calendar: Any, base: Any, n: Any) -> None:
    """Remove the first of a heap: its last, at ``n``, takes a place among those that are left."""
    last = calendar[base + n]
    time, order, event = last.time, last.order, last.event
    i = 0
    while True:
        down = 2 * i + 1
        if down >= n:
            break
        if down + 1 < n and earlier(calendar[base + down + 1], calendar[base + down]):
            down += 1
        below = calendar[base + down]
        if time < below.time or (time == below.time and order < below.order):
            break
        copy(calendar, base + i, base + down)
        i = down
    row = calendar[base + i]
    row.time = time
    row.order = order
    row.event = event


@kernel
def earlier(one: Any, other: Any) -> Any:
    """Check whether an event comes before another."""
    return one.time < other.time or (one.time == other.time and one.order < other.order)


@kernel
def copy(calendar: Any, to: Any, of: Any) -> None:
    """Copy an event to another row."""
    row, source = calendar[to], calendar[of]
    row.time = source.time
    row.order = source.order
    row.event = source.event


@kernel
def next_sequence(core: Any) -> Any:
    """Next place in the order of scheduling."""
    core.order += 1
    return core.order


@kernel
def schedule(core: Any, calendar: Any, time: Any, kind: Any, index: Any) -> None:
    """Schedule an event of a kind for some port or flow."""
    push(core, calendar, time, next_sequence(core), (kind << SHIFT) | index)
