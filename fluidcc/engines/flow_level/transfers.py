"""Transfers in arrays, each on the path of one of the scenario's flows, and which of them wait for which.

A job of a thousand hosts has millions of transfers on a thousand connections. A `Flow` for each would take longer to
make than to simulate; so a scenario's flows may serve as connections, on which a table says what is sent. Starts to
come are in order of time, in a heap of transfers; the end of one sets others going.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from fluidcc.engines.common.jit import entry, kernel
from fluidcc.errors import InputError
from fluidcc.scenario import dependencies
from fluidcc.scenario.model import Flow, Scenario
from fluidcc.surface import constructor

_MOST = 1 << 28  # transfers; their numbers are 32 bits wide
ANSWER, RECEIPT, DEPARTURE = map(np.int64, range(3))  # of a last byte: its ACK comes, it arrives, it leaves its host
ENDS, ALL = map(np.int64, (1 << ANSWER | 1 << RECEIPT, 7))  # bit sets of them


@constructor()
@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Transfers:
    """Transfers on a scenario's flows, as columns of equal length.

    Parameters
    ----------
    flow : ndarray of int, shape (transfers,)
        Place, in the scenario, of the flow whose path, hosts and scheme each has; -1 for a wait, which sends nothing
        and ends as it begins. It has no host that ``after_what`` could depend on.
    size : ndarray, shape (transfers,)
        Payload [bytes].
    start : ndarray, shape (transfers,)
        Start [s]; if it waits for others, time after the last of them has ended.
    after : ndarray of int, shape (waits,), or sequence of sequences
        Places of the transfers that each waits for, one after the other.
    after_at : ndarray of int, shape (transfers + 1,), or None
        Bounds in ``after`` of the waits of each transfer; None if ``after`` is a sequence for each.
    after_what : str or ndarray of int, shape (waits,)
        Which of their ends is waited for, as in `Flow`, for all; or for each wait 0 for the answer, 1 for the receipt,
        and 2 for the last byte's leaving its host.

    Raises
    ------
    InputError
        If columns do not fit together, or a value makes no sense; circles are found as it runs.
    """

    flow: Any
    size: Any
    start: Any = 0.0
    after: Any = ()
    after_at: Any = None
    after_what: Any = dependencies.KNOWN

    def __post_init__(self) -> None:
        """Convert the columns to plain arrays, and check them."""
        flow = _whole(self.flow, "flow", "places of the scenario's flows, counted from 0")
        count = len(flow)
        columns = {"flow": flow}
        for name, unit in (("size", "bytes"), ("start", "seconds")):
            columns[name] = _column(getattr(self, name), count, name, unit)
        if not 1 <= count <= _MOST:
            raise InputError(f"transfers: there are {count}; give at least one, and at most {_MOST}")
        bad = np.flatnonzero(~((columns["size"] > 0) & np.isfinite(columns["size"])) & (flow >= 0))
        if len(bad):
            raise InputError(f"transfer {bad[0]} size: {columns['size'][bad[0]]:g} is none; give its bytes")
        bad = np.flatnonzero(~((columns["start"] >= 0) & np.isfinite(columns["start"])))
        if len(bad):
            raise InputError(f"transfer {bad[0]} start: {columns['start'][bad[0]]:g} is none; give seconds, from 0")
        after, at = self._waits(count)
        if len(at) != count + 1 or at[0] != 0 or at[-1] != len(after) or (np.diff(at) < 0).any():
            raise InputError(f"transfers after: its parts are not those of {count} transfers; give after_at from 0 on")
        if len(after) and not (after.min() >= 0 and after.max() < count):
            raise InputError(f"transfers after: names none of the {count}; they are counted from 0")
        what = self.after_what
        if isinstance(what, str):
            dependencies.resolve_order((), what, "transfers ")
        else:
            words = "one word, or for each wait 0 (answer), 1 (receipt) or 2 (departure)"
            columns["after_what"] = what = _whole(what, "after_what", words)
            if len(what) != len(after):
                raise InputError(f"transfers after_what: are {len(what)} for {len(after)} waits; give {words}")
            bad = np.flatnonzero((what < ANSWER) | (what > DEPARTURE))
            if len(bad):
                raise InputError(f"transfers after_what: {what[bad[0]]} is no end; give {words}")
        for name, value in (*columns.items(), ("after", after), ("after_at", at)):
            object.__setattr__(self, name, value)

    def _waits(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the places of those waited for, and from where to where each transfer's are."""
        hint = "places of transfers, counted from 0"
        if self.after_at is not None:
            return _whole(self.after, "after", hint), _whole(self.after_at, "after_at", "where in after each one's are")
        try:
            listed = [tuple(each) for each in self.after] or [()] * count
        except TypeError:
            raise InputError(
                f"transfers after: {_shown(self.after)} has none for each transfer; give a sequence for each, such as "
                "[(), (0,)], or give after_at too"
            ) from None
        at = np.concatenate([[0], np.cumsum([len(each) for each in listed])])
        return _whole([place for each in listed for place in each], "after", hint), at.astype(np.int64)

    def __len__(self) -> int:
        """Count the transfers."""
        return len(self.flow)

    def __repr__(self) -> str:
        """Show the number of transfers and of waits."""
        return f"<{len(self)} Transfers, {len(self.after)} waits>"


def _whole(values: Any, name: str, hint: str) -> np.ndarray:
    """Return a column of whole numbers, in memory of its own; other numbers are refused, not rounded."""
    try:
        given = np.asarray(values)
        found = np.array(given, np.int64, order="C") if given.dtype.kind in "iuf" and given.ndim == 1 else None
    except (TypeError, ValueError, OverflowError):
        given, found = None, None
    if given is None or found is None or not (found == given).all():
        raise InputError(f"transfers {name}: {_shown(values)} are no whole numbers in a row; give {hint}")
    return found


def _shown(values: Any) -> str:
    """Format the beginning of some values in one line, at most 40 characters."""
    return " ".join(repr(values).split())[:40]


def _column(values: Any, count: int, name: str, unit: str) -> np.ndarray:
    """Return a column of numbers, of which one may stand for all.

    It is a copy, and so may be written to: for a view, which may not, the loops would be compiled once more.
    """
    try:
        return np.array(np.broadcast_to(np.asarray(values, float), count), order="C")
    except (TypeError, ValueError):
        raise InputError(
            f"transfers {name}: {_shown(values)} are not a number for each of {count}; give {unit}, such as 1e6, one "
            "for each or one for all"
        ) from None


class Waits(NamedTuple):
    """Transfers to notify of a transfer's end: places ``listed[at[i] : at[i + 1]]``, and of which of its ends."""

    at: np.ndarray
    listed: np.ndarray
    what: np.ndarray
    awaits: np.ndarray  # for how many ends each waits


def transfers_of(scenario: Scenario) -> Transfers:
    """Convert each flow of a resolved scenario to one transfer.

    Raises
    ------
    InputError
        If a flow has no end, or stands for several.
    """
    for i, flow in enumerate(scenario.flows):
        if flow.size == float("inf"):
            raise InputError(f"flow {i} size: flows of the flow-level engine have an end; give it a size")
    flows = scenario.flows
    counts = np.array([len(flow.after) for flow in flows])
    whats = [flow.after_what for flow in flows]
    after_what: Any = whats[0]
    if len(set(whats)) > 1:
        after_what = np.array([_what(flow, flows[place]) for flow in flows for place in flow.after], np.int64)
    after = np.fromiter((place for flow in flows for place in flow.after), np.int64)
    return Transfers(
        np.arange(len(flows)),
        [flow.size for flow in flows],
        [flow.start for flow in flows],
        after,
        np.concatenate([[0], np.cumsum(counts)]),
        after_what,
    )


def waits_of(scenario: Scenario, transfers: Transfers) -> Waits:
    """Invert who waits for whom."""
    count = len(transfers)
    follower = np.repeat(np.arange(count), np.diff(transfers.after_at))
    what = transfers.after_what
    if not isinstance(what, str):
        ends = np.asarray(what, np.int64)
    elif what in (dependencies.KNOWN, dependencies.SENT):
        sources, targets = _hosts(scenario)
        own, theirs = transfers.flow[follower], transfers.flow[transfers.after]
        mine = np.where(own >= 0, sources[own], -1)  # a wait is of no host
        if what == dependencies.SENT:
            ends = np.where(mine == sources[theirs], DEPARTURE, RECEIPT)
        else:
            ends = np.where(mine == targets[theirs], RECEIPT, ANSWER)
    else:
        ends = np.full(len(follower), RECEIPT if what == dependencies.RECEIPT else ANSWER)
    by_end = np.argsort(transfers.after, kind="stable")
    at = np.concatenate([[0], np.cumsum(np.bincount(transfers.after, minlength=count))])
    return Waits(
        at,
        follower[by_end].astype(np.int32),
        ends[by_end].astype(np.int8),
        np.diff(transfers.after_at).astype(np.int32),
    )


def _what(follower: Flow, before: Flow) -> np.int64:
    """Return which end a flow waits for."""
    return {dependencies.SENT: DEPARTURE, dependencies.RECEIPT: RECEIPT, dependencies.ANSWER: ANSWER}[
        dependencies.end_of(follower, before)
    ]


def _hosts(scenario: Scenario) -> tuple[np.ndarray, np.ndarray]:
    """Number each flow's hosts; one without a name is a host of its own."""
    numbers: dict[Any, int] = {}
    ends = [
        [numbers.setdefault(name or (i, side), len(numbers)) for side, name in enumerate((flow.source, flow.target))]
        for i, flow in enumerate(scenario.flows)
    ]
    both = np.array(ends, np.int64)
    return both[:, 0], both[:, 1]


@kernel
def push(heap: Any, held: Any, begins: Any, t: Any) -> None:
    """Put a transfer among those to start, at its time."""
    at = held
    while at > 0:
        above = (at - 1) // 2
        if begins[heap[above]] <= begins[t]:
            break
        heap[at] = heap[above]
        at = above
    heap[at] = t


@kernel
def pop(heap: Any, held: Any, begins: Any) -> Any:
    """Take the first of ``held``, which is one more than are left."""
    first, last = heap[0], heap[held - 1]
    left, at = held - 1, 0
    while True:
        below = 2 * at + 1
        if below >= left:
            break
        if below + 1 < left and begins[heap[below + 1]] < begins[heap[below]]:
            below += 1
        if begins[last] <= begins[heap[below]]:
            break
        heap[at] = heap[below]
        at = below
    heap[at] = last
    return first


@kernel
def tell(
    waits_at: Any, listed: Any, what: Any, awaits: Any, delay: Any, begins: Any, t: Any, told: Any, left: Any,
    received: Any, answered: Any, heap: Any, held: Any,
) -> Any:  # fmt: skip
    """Notify followers of a transfer's known ends, a bit set: one that waits for no other starts ``delay`` later.

    Returns how many are to start now. Until then ``begins`` of who waits is the latest end so far.
    """
    for k in range(waits_at[t], waits_at[t + 1]):
        if told >> what[k] & 1 == 0:
            continue
        follower = listed[k]
        end = answered if what[k] == ANSWER else received if what[k] == RECEIPT else left
        begins[follower] = max(begins[follower], end)
        awaits[follower] -= 1
        if awaits[follower] == 0:
            begins[follower] += delay[follower]
            push(heap, held, begins, follower)
            held += 1
    return held


@kernel
def pass_by(
    waits_at: Any, listed: Any, what: Any, awaits: Any, delay: Any, begins: Any, ends: Any, t: Any, heap: Any,
    held: Any,
) -> Any:  # fmt: skip
    """End a wait, which sends nothing, as it begins."""
    at = begins[t]
    ends[t, 0] = ends[t, 1] = ends[t, 2] = at
    return tell(waits_at, listed, what, awaits, delay, begins, t, ALL, at, at, at, heap, held)


@entry
def begin_after(after: Any, after_at: Any, behind: Any, delay: Any, left: Any, arrived: Any, begins: Any) -> None:
    """Fill in ``begins``: ``delay`` after the last operation that is waited for has left or arrived.

    Operation i waits for ``after[after_at[i] : after_at[i + 1]]``, all of them before i; ``behind`` says of each
    whether its departure is waited for.
    """
    for i in range(len(begins)):
        released = 0.0
        for j in range(after_at[i], after_at[i + 1]):
            k = after[j]
            released = max(released, begins[k] + (left[k] if behind[j] else arrived[k]))
        begins[i] = delay[i] + released
