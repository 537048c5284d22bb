"""Limits of the hybrid, in addition to `fluidcc.engines.common.bounds`: its least period, and a run's events."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from fluidcc.contract.registry import hybrid_of
from fluidcc.errors import InputError
from fluidcc.scenario.model import Flow, Scenario
from fluidcc.scenario.parameters import specs
from fluidcc.units import SIZE, TIME, show

MOST_FLOWS = 1 << 16
MOST_EVENTS = 1e10  # more than an hour's
_LEAST_TIME = 1e-12  # s; times within it are the same


def check_periods(scenario: Scenario) -> None:
    """Refuse times of schemes that the engine's clock cannot tell from 0.

    Raises
    ------
    InputError
    """
    for i, flow in _first_with_each_scheme(scenario):
        for name, spec in specs(flow.scheme).items():
            value = getattr(flow.scheme, name)
            if spec.dimension == TIME and value is not None and 0 < value < _LEAST_TIME:
                raise InputError(
                    f"flow {i} {name}: {value:.4g}s is less than a picosecond, within which the hybrid's times are the "
                    "same; write more, or engine='fluid'"
                )


def check_events(scenario: Scenario, until: float, most: float = MOST_EVENTS) -> None:
    """Refuse a run of more events than anyone waits for.

    In each period of a flow, be it a time or a number of bytes, there is an event: the period's end, or what restarts
    it.

    Parameters
    ----------
    scenario : Scenario
    until : float
        Horizon [s].
    most : float
        Events that are waited for.

    Raises
    ------
    InputError
        Names the parameter that causes them.
    """
    senders: defaultdict[int, float] = defaultdict(float)  # of each link
    for flow in scenario.flows:
        for link in flow.path:
            senders[link] += flow.multiplicity
    counts: defaultdict[str, float] = defaultdict(float)
    for i, flow in enumerate(scenario.flows):
        names = hybrid_of(flow.scheme).PACED_BY
        if not names:
            continue
        share = min(flow.line_rate, *(scenario.links[link].rate / senders[link] for link in flow.path))
        span = min(max(until - flow.start, 0.0), flow.size / share)
        for name in names:
            value, dimension = getattr(flow.scheme, name), specs(flow.scheme)[name].dimension
            if value is None:
                continue
            counts[name] += flow.multiplicity * span * (share if dimension == SIZE else 1.0) / value
            if counts[name] > most:
                raise InputError(
                    f"flow {i} {name}: {show(value, dimension)} makes more events by {show(until, TIME)} than the "
                    f"{most:.0e} that are waited for; write more, or a shorter until"
                )


def _first_with_each_scheme(scenario: Scenario) -> Iterator[tuple[int, Flow]]:
    """Yield the first flow, and its index, with each set of parameters, which flows share."""
    seen: set[int] = set()
    for i, flow in enumerate(scenario.flows):
        if id(flow.scheme) not in seen:
            seen.add(id(flow.scheme))
            yield i, flow
