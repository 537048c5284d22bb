"""Cases in which packets must keep the bounds: senders and switches that are not ideal, and where flows begin.

Nobody publishes how many packets a NIC sends back to back, or whether a switch's queue counts the packet that is being
sent. So a setting must do with either.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from fluidcc.scenario.model import Scenario

FLOWS = (2, 8, 32)  # senders with which a setting must do well
WAYS: dict[str, tuple[Any, ...]] = {"burst": (1, 4), "counts_sending": (False, True), "begin": ("line", "share")}
# In a longer burst, from either start, a setting must do no worse than the present one. The search has it from the
# share: bursts idle a link and lengthen a queue, and such a start is soon over.
SEARCHED: dict[str, Any] = {"burst": 16, "begin": "share"}
BEGIN, SIZE, UNTIL = "begin", "packet_size", "until"
_TOLD = {"flows": "{} flows", SIZE: "packets of {} B", "burst": "bursts of {}", "begin": "started at {}"}
_PACKETS = 1.5e5  # of a run, and no less than
_SHORTEST = {"line": 0.04, "share": 0.02}  # s: a start that filled the buffer is over by then, if ever (15 to 30 ms)
_LONG = 3.0  # times the shortest
_FEW = 8  # senders; more begin with more above their share, and take as much longer to be fair again


def length(rate: float, packet: float, begin: str = "line") -> float:
    """Return how long to run [s]: as many packets whatever the speed, but until a start is over; in whole ms.

    A start at line rate of more than a few senders takes as much longer (`packet_cases`).

    Parameters
    ----------
    rate : float
        Of the slowest link [bytes/s].
    packet : float
        On the wire [bytes].
    begin : {"line", "share"}
        Where flows begin.
    """
    return max(math.ceil(_PACKETS * packet / rate * 1e3) / 1e3, _SHORTEST[begin])


def by_length(cases: Sequence[Mapping[str, Any]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the cases that end soon and those that take three times as many packets or more, the shortest first."""
    packets = [case.get(UNTIL, 0.0) / case.get(SIZE, 1.0) for case in cases]
    parts: tuple[list[dict[str, Any]], list[dict[str, Any]]] = [], []
    for k in sorted(range(len(cases)), key=packets.__getitem__):
        parts[packets[k] >= _LONG * min(packets) > 0].append(dict(cases[k]))
    return parts


def in_words(cases: Sequence[Mapping[str, Any]]) -> str:
    """Tell which senders and switches cases have: ``2, 8 or 32 flows; packets of 1024 or 4096 B; bursts of 1 or 4``."""

    def listed(name: str) -> str:
        *others, last = [f"{each:g}" if isinstance(each, float) else str(each) for each in found[name]]
        return f"{', '.join(others)} or {last}" if others else last

    found = {name: sorted({case[name] for case in cases if name in case}) for name in (*_TOLD, "counts_sending")}
    told = [text.format(listed(name)) for name, text in _TOLD.items() if found[name]]
    if True in found["counts_sending"]:
        told.append(f"the packet in service counted{' or not' if False in found['counts_sending'] else ''}")
    return "; ".join(told)


def packet_cases(
    cases: Sequence[Mapping[str, Any]],
    sizes: Sequence[float] = (),
    given: Collection[str] = (),
    link: tuple[float, float] | None = None,
) -> list[dict[str, Any]]:
    """List every case with every way of senders, switches and beginnings; with further packet sizes as they are.

    Parameters
    ----------
    cases : sequence of mapping
        Such as ``{"flows": 8}``.
    sizes : sequence of float
        Payloads of packets [bytes]: all ways are tried with the largest, on which most depends, and the first from
        either start with the others.
    given : collection of str
        Names whose value is chosen already.
    link : tuple of float, optional
        Rate and packet of `length`, which is how long each case runs, under ``until``; a start at line rate of more
        than a few senders as much longer. Its second half is measured as elsewhere: shorter, it is not fair yet.
    """
    ways = {name: values for name, values in WAYS.items() if name not in given}
    combined = [dict(zip(ways, values, strict=True)) for values in itertools.product(*ways.values())]
    first = {SIZE: max(sizes)} if sizes else {}
    others = [{SIZE: size} for size in sizes if size != max(sizes)]
    found = [{**case, **way, **first} for case in cases for way in combined]
    plainest = [{**combined[0], BEGIN: each} for each in ways[BEGIN]] if BEGIN in ways else combined[:1]
    found += [{**case, **way, **size} for case, size, way in itertools.product(cases, others, plainest)]
    return _timed(found, link)


def packet_guards(
    cases: Sequence[Mapping[str, Any]],
    sizes: Sequence[float] = (),
    given: Collection[str] = (),
    link: tuple[float, float] | None = None,
) -> list[dict[str, Any]]:
    """List cases that nobody asks for, in which a setting must not do worse than the present one: longer bursts.

    Flows begin at their share first, then at line rate.

    Parameters
    ----------
    cases, sizes, given, link
        As of `packet_cases`.
    """
    if "burst" in given:
        return []
    way = {name: value for name, value in SEARCHED.items() if name not in given}
    more = {SIZE: max(sizes)} if sizes else {}
    begins = [{BEGIN: each} for each in reversed(WAYS[BEGIN])] if BEGIN in way else [{}]
    return _timed([{**case, **way, **more, **begin} for begin in begins for case in cases], link)


def _timed(cases: list[dict[str, Any]], link: tuple[float, float] | None) -> list[dict[str, Any]]:
    """Say how long each case runs: a start at line rate of more than a few senders takes as much longer."""
    if link is None:
        return cases
    times = [max(1.0, case.get("flows", 0) / _FEW if case.get(BEGIN) == "line" else 1.0) for case in cases]
    return [{**case, UNTIL: by * length(*link, case.get(BEGIN, "line"))} for case, by in zip(cases, times, strict=True)]


def changed(
    scenario: Scenario, *, burst: float | None = None, counts_sending: bool | None = None, begin: str = "line"
) -> Scenario:
    """Return a scenario with senders and switches of one kind; None leaves what it has.

    ``begin`` is where flows begin: as they do (``"line"``), or at their share of the fullest link (``"share"``).
    """
    links, flows = scenario.links, scenario.flows
    if counts_sending is not None:
        links = tuple(
            dataclasses.replace(link, marking=dataclasses.replace(link.marking, counts_sending=counts_sending))
            if link.marking is not None
            else link
            for link in links
        )
    if begin == "share":
        senders: Counter[int] = Counter()
        for flow in flows:
            senders.update({link: flow.multiplicity for link in flow.path})
        flows = tuple(
            dataclasses.replace(
                flow, initial_rate=min(flow.line_rate, *(links[i].rate / senders[i] for i in flow.path))
            )
            for flow in flows
        )
    return dataclasses.replace(scenario, links=links, flows=flows, burst=scenario.burst if burst is None else burst)
