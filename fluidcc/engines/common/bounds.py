"""Bounds of a run: its horizon, window and seed as they are given, and ranges of the packet engine's numbers.

Picoseconds, bytes and counts are int64, with room for sums. The hybrid has the same ranges, in doubles: beyond them,
doubles cannot separate the times of two packets.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from fluidcc.errors import InputError
from fluidcc.scenario.model import Flow, Scenario
from fluidcc.scenario.parameters import specs
from fluidcc.units import COUNT, RATE, SIZE, TIME, interval, quantity, show, whole

MOST_TIME = 1e6  # s
MOST_FLOWS = 1 << 20
LARGEST_PACKET = 1 << 16  # bytes
_MOST = {TIME: MOST_TIME, SIZE: 1e18, COUNT: 1e18, RATE: 1e19}


def check_bounds(scenario: Scenario, engine: str = "packet", most_flows: int = MOST_FLOWS) -> None:
    """Refuse a scenario with a number that an engine cannot count to; infinity has a meaning of its own.

    Parameters
    ----------
    scenario : Scenario
    engine : {"packet", "hybrid"}
    most_flows : int
        That the engine takes.

    Raises
    ------
    InputError
    """
    flows = scenario.flows
    if _within(flows):
        flows = ()
    for where, part in _parts(scenario, flows):
        for name, spec in specs(part).items():
            most, value = _MOST.get(spec.dimension), getattr(part, name)
            if most is not None and isinstance(value, (int, float)) and most < abs(value) < math.inf:
                raise InputError(
                    f"{where}{name}: {show(value, spec.dimension)} is more than the {engine} engine counts to "
                    f"({show(most, spec.dimension)}); write less, or engine='fluid'"
                )
    for i, link in enumerate(scenario.links):
        if LARGEST_PACKET / link.rate > MOST_TIME:
            raise InputError(
                f"link {i} rate: {show(link.rate, RATE)} is too slow for the {engine} engine, which counts to "
                f"{show(MOST_TIME, TIME)}; write more, or engine='fluid'"
            )
    count = sum(flow.multiplicity for flow in scenario.flows)
    if count > most_flows:
        raise InputError(f"flows: {count:.7g} are more than the {engine} engine takes ({most_flows})")


def check_packet_size(scenario: Scenario) -> None:
    """Refuse a packet that is none.

    Raises
    ------
    InputError
    """
    if not 1 <= scenario.packet_size <= LARGEST_PACKET or scenario.packet_size != round(scenario.packet_size):
        raise InputError(
            f"packet_size: {show(scenario.packet_size, SIZE)} is no packet; write a whole number of bytes from 1 B to "
            f"{LARGEST_PACKET} B"
        )
    if scenario.header_bytes > LARGEST_PACKET:
        raise InputError(
            f"header_bytes: {show(scenario.header_bytes, SIZE)} are no header; write at most {LARGEST_PACKET} B"
        )


def _within(flows: Sequence[Flow]) -> bool:
    """Check whether all flows are within bounds, field by field for all of them: there may be a million."""
    for name, spec in specs(flows[0]).items():
        most = _MOST.get(spec.dimension)
        if most is not None:
            values = [getattr(flow, name) for flow in flows]
            if any(isinstance(value, (int, float)) and most < abs(value) < math.inf for value in set(values)):
                return False
    return True


def _parts(scenario: Scenario, flows: Sequence[Flow]) -> Iterator[tuple[str, Any]]:
    """Yield each part of a scenario that has numbers, with words that say where it is."""
    yield "", scenario
    if scenario.pfc is not None:
        yield "pfc ", scenario.pfc
    several = (("class", scenario.classes), ("failure", scenario.failures), ("storm", scenario.storms))
    for kind, parts in (*several, ("link", scenario.links), ("flow", flows)):
        for i, part in enumerate(parts):
            yield f"{kind} {i} ", part
    for i, link in enumerate(scenario.links):
        if link.marking is not None:
            yield f"link {i} ", link.marking
    seen: set[int] = set()  # flows share their schemes
    for i, flow in enumerate(scenario.flows):
        if id(flow.scheme) not in seen:
            seen.add(id(flow.scheme))
            yield f"flow {i} ", flow.scheme


def seed_of(seed: int | None) -> int:
    """Return a checked seed, 0 by default.

    Raises
    ------
    InputError
        If it is none.
    """
    return 0 if seed is None else whole(seed, 0, (1 << 63) - 1, "seed", "; write for example seed=1")


def horizon_and_window(until: Any, window: Any) -> tuple[float, float, float]:
    """Horizon, and the window's edges [s]; its second half by default.

    Raises
    ------
    InputError
        If one of them makes no sense.
    """
    seconds, edges = quantity(until, TIME, "until"), interval(window, "window")
    if not 0 < seconds <= MOST_TIME:
        raise InputError(f"until: {show(seconds, TIME)} is no horizon; write for example 10ms")
    opens, closes = edges or (seconds / 2, seconds)
    if not 0 <= opens < closes <= seconds * (1 + 1e-9):
        raise InputError(
            f"window: {show(opens, TIME)}:{show(closes, TIME)} does not lie inside the run of {show(seconds, TIME)}; "
            f"write for example {show(seconds / 2, TIME)}:{show(seconds, TIME)}"
        )
    return seconds, opens, closes
