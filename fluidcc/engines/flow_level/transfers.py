"""What is sent: transfers in arrays, each on a path that a flow of the scenario has, and which wait for which.

A job of a thousand hosts has millions of transfers on a thousand connections. A `Flow` for each would take longer to
make than to simulate; so a scenario's flows may serve as connections, on which a table says what is sent.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from fluidcc.engines.flow_level.calendar import ANSWER, DEPARTURE, RECEIPT
from fluidcc.errors import InputError
from fluidcc.scenario import order
from fluidcc.scenario.model import Flow, Scenario
from fluidcc.surface import constructor

_MOST = 1 << 28  # transfers; their numbers are 32 bits wide


@constructor()
@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Transfers:
    """What is sent on a scenario's flows, as columns of equal length.

    Parameters
    ----------
    flow : ndarray of int, shape (transfers,)
        Place, in the scenario, of the flow whose path, hosts and scheme each has; -1 of a wait, which sends nothing and
        ends as it begins.
    size : ndarray, shape (transfers,)
        Payload [bytes].
    start : ndarray, shape (transfers,)
        When it starts [s]; if it waits for others, how long after the last of them has ended.
    after : ndarray of int, shape (waits,), or sequence of sequences
        Places of the transfers that each waits for, one after the other.
    after_at : ndarray of int, shape (transfers + 1,), or None
        From where to where in ``after`` those of a transfer are; None if ``after`` is a sequence for each.
    after_what : str or ndarray of int, shape (waits,)
        When these have ended, as of `Flow`, of all; or for each wait 0 for the answer, 1 for the receipt, and 2 for the
        last byte's leaving its host.

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
    after_what: Any = order.KNOWN

    def __post_init__(self) -> None:
        """Plain arrays, checked."""
        flow = np.ascontiguousarray(self.flow, np.int64)
        count = len(flow)
        columns = {"flow": flow}
        for name in ("size", "start"):
            column = np.ascontiguousarray(np.broadcast_to(np.asarray(getattr(self, name), float), count))
            columns[name] = column
        if not 1 <= count <= _MOST:
            raise InputError(f"transfers: there are {count}; give at least one, and at most {_MOST}")
        bad = np.flatnonzero(~((columns["size"] > 0) & np.isfinite(columns["size"])) & (flow >= 0))
        if len(bad):
            raise InputError(f"transfer {bad[0]} size: {columns['size'][bad[0]]:g} is none; give its bytes")
        bad = np.flatnonzero(~((columns["start"] >= 0) & np.isfinite(columns["start"])))
        if len(bad):
            raise InputError(f"transfer {bad[0]} start: {columns['start'][bad[0]]:g} is none; give seconds, from 0")
        after, at = self.after, self.after_at
        if at is None:
            listed = list(after) if len(after) else [()] * count
            at = np.concatenate([[0], np.cumsum([len(each) for each in listed])])
            after = np.fromiter((place for each in listed for place in each), np.int64)
        after, at = np.ascontiguousarray(after, np.int64), np.ascontiguousarray(at, np.int64)
        if len(at) != count + 1 or at[0] != 0 or at[-1] != len(after) or (np.diff(at) < 0).any():
            raise InputError(f"transfers after: its parts are not those of {count} transfers; give after_at from 0 on")
        if len(after) and not (after.min() >= 0 and after.max() < count):
            raise InputError(f"transfers after: names none of the {count}; they are counted from 0")
        what = self.after_what
        if isinstance(what, str):
            order.resolve_order((), what, "transfers ")
        elif np.shape(what) != after.shape:
            raise InputError("transfers after_what: is not one for each wait; give one word, or an array like after")
        for name, value in (*columns.items(), ("after", after), ("after_at", at)):
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        """How many."""
        return len(self.flow)

    def __repr__(self) -> str:
        """How many, and how many waits."""
        return f"<{len(self)} Transfers, {len(self.after)} waits>"


class Waits(NamedTuple):
    """Who is told of a transfer's end: places ``listed[at[i] : at[i + 1]]``, and of which of its ends."""

    at: np.ndarray
    listed: np.ndarray
    what: np.ndarray
    awaits: np.ndarray  # for how many ends each waits


def transfers_of(scenario: Scenario) -> Transfers:
    """Each flow of a resolved scenario as one transfer.

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
        after_what = np.repeat(np.arange(len(flows)), counts)  # whose wait each is, for now
    after = np.fromiter((place for flow in flows for place in flow.after), np.int64)
    made = Transfers(
        np.arange(len(flows)),
        [flow.size for flow in flows],
        [flow.start for flow in flows],
        after,
        np.concatenate([[0], np.cumsum(counts)]),
        after_what,
    )
    if not isinstance(after_what, str):
        ends = [_what(flows[k], flows[p]) for k, p in zip(after_what, after, strict=True)]
        object.__setattr__(made, "after_what", np.array(ends, np.int64))
    return made


def waits_of(scenario: Scenario, transfers: Transfers) -> Waits:
    """Turn round who waits for whom."""
    count = len(transfers)
    follower = np.repeat(np.arange(count), np.diff(transfers.after_at))
    what = transfers.after_what
    if not isinstance(what, str):
        ends = np.asarray(what, np.int64)
    elif what in (order.KNOWN, order.SENT):
        sources, targets = _hosts(scenario)
        mine, theirs = sources[transfers.flow[follower]], transfers.flow[transfers.after]
        if what == order.SENT:
            ends = np.where(mine == sources[theirs], DEPARTURE, RECEIPT)
        else:
            ends = np.where(mine == targets[theirs], RECEIPT, ANSWER)
    else:
        ends = np.full(len(follower), RECEIPT if what == order.RECEIPT else ANSWER)
    by_end = np.argsort(transfers.after, kind="stable")
    at = np.concatenate([[0], np.cumsum(np.bincount(transfers.after, minlength=count))])
    return Waits(
        at,
        follower[by_end].astype(np.int32),
        ends[by_end].astype(np.int8),
        np.diff(transfers.after_at).astype(np.int32),
    )


def _what(follower: Flow, before: Flow) -> np.int64:
    """Which of the ends of `fluidcc.engines.flow_level.calendar` a flow waits for."""
    return {order.SENT: DEPARTURE, order.RECEIPT: RECEIPT, order.ANSWER: ANSWER}[order.end_of(follower, before)]


def _hosts(scenario: Scenario) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of each flow's hosts; those without a name have their own."""
    numbers: dict[Any, int] = {}
    ends = [
        [numbers.setdefault(name or (i, side), len(numbers)) for side, name in enumerate((flow.source, flow.target))]
        for i, flow in enumerate(scenario.flows)
    ]
    both = np.array(ends, np.int64)
    return both[:, 0], both[:, 1]
