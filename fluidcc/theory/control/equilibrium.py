"""Fixed points of a scenario."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable

import numpy as np

from fluidcc.contract.models import Equilibrium as Side
from fluidcc.contract.registry import equilibrium_of
from fluidcc.engines.fluid.network import network_of
from fluidcc.errors import InputError, NoClosedFormError
from fluidcc.scenario.model import Link, Scenario, resolve, thresholds_in_bytes
from fluidcc.surface import public
from fluidcc.theory.control.fixed_point import (
    SAME,
    Equilibrium,
    described,
    endless,
    expanded,
    flows_of,
    links_of,
    same,
    split_of,
    state_of,
)
from fluidcc.theory.control.limit_cycle import limit_cycle
from fluidcc.theory.control.local import STILL, Local, movement, multi_start, near
from fluidcc.theory.control.marked_equilibria import Solution, marked_equilibria
from fluidcc.theory.control.merging import merged
from fluidcc.theory.control.states import STARTS, NoEquilibriumError
from fluidcc.theory.control.utilisation import utilised_equilibria

_APART = 16  # flows; of more, equal ones are searched for as one class
_STEEP = 1e-3  # of Kmin: on a shorter ramp the last digits of a queue are those of its marking


@public()
def equilibrium(scenario: Scenario) -> Equilibrium:
    """Solve for the fixed point of a scenario's fluid model.

    For DCQCN: every flow settles where (7)-(9) vanish, and on each link the rates sum to its capacity (6), or
    it is not loaded and marks nothing. A rate is held by one marking, but where a faster flow grows faster a marking
    may hold several rates: equal flows of one link may then keep unequal ones, which are searched for in two and three
    groups of equal rates (``others``). Delays, starts and g do not enter. What is found is checked on the fluid's own
    right-hand side.

    For HPCC: R = a/(1 - eta/U), links filled from the lowest rate on (A.3); queues are those of windows that hold more
    than the links do.

    For other schemes, and for mixtures: Newton's method on the fluid's own right-hand side, as in `equilibria`. Where
    that finds none, or windows change in jumps, the fluid is run until it settles or oscillates steadily
    (`limit_cycle`).

    Parameters
    ----------
    scenario : Scenario
        Of plain numbers or text; all flows count as active and long-lived.

    Returns
    -------
    Equilibrium

    Raises
    ------
    InputError
        If the scenario makes no sense, a loaded link has no marking, or the flows exceed a link even when
        everything is marked.
    """
    scenario = thresholds_in_bytes(resolve(scenario))
    sides = [side for side in (equilibrium_of(flow.scheme) for flow in scenario.flows) if side is not None]
    whole = len(sides) == len(scenario.flows)
    by_marking = whole and all(side.solve_equilibrium is not None for side in sides)
    solved = None
    if by_marking:
        solved = _solved(scenario, sides)
        if solved is not None and (solved.searched is not None or any(side.marking_at is None for side in sides)):
            return solved
    elif whole and sides[0].balances is not None and len({flow.scheme.name for flow in scenario.flows}) == 1:
        try:
            links, flows, unique, searched = utilised_equilibria(scenario, sides[0])
            return Equilibrium(True, True, tuple(links), tuple(flows), unique, searched=searched)
        except NoClosedFormError:
            pass
    found = [] if solved is None else [solved]
    try:
        found += _newton(scenario)
    except NoEquilibriumError:  # it has no equilibrium side, or changes its state in jumps
        return found[0] if found else _run(scenario)
    if not found:
        return _run(scenario)
    first, *others = _kinds(found)
    # Markings that hold several rates may have shares that no start leads to.
    unique = False if others else None if by_marking else True
    searched = f"fixed points of the fluid's equations, by Newton's method from {len(STARTS)} starts"
    return dataclasses.replace(first, unique=unique, searched=searched, others=tuple(others))


def _solved(scenario: Scenario, sides: list[Side]) -> Equilibrium | None:
    """Solve markings and rates for the equilibrium, with any others; None if the fluid confirms none."""
    try:
        solutions, unique, searched = marked_equilibria(scenario, sides)
    except NoClosedFormError:
        return None
    first, *others = (_checked(scenario, _of(scenario, each)) for each in solutions)
    if first is None:
        return None
    all_of_them = [first, *(other for other in others if other is not None)]
    if any(each.exists for each in all_of_them):  # the model as printed has only equilibria on its ramps
        all_of_them = [each for each in all_of_them if each.exists]
    first, *kept = all_of_them
    unique = not kept if unique is False and len(solutions) > 1 else unique
    return dataclasses.replace(first, unique=unique, searched=searched, others=tuple(kept))


def _of(scenario: Scenario, found: Solution) -> Equilibrium:
    whole = len(found.members) == len(scenario.flows)
    members = () if whole else found.members
    split = split_of(scenario, members)
    links, exists, on_ramp = links_of(split, found.probabilities, [at.rate for at in found.states])
    flows = flows_of(split, found.probabilities, [(at.rate, at.observables()) for at in found.states])
    if members:
        flows = tuple({**row, "multiplicity": many} for row, (_, many) in zip(flows, members, strict=True))
    return Equilibrium(exists, on_ramp, links, flows, members=members)


def _checked(scenario: Scenario, found: Equilibrium) -> Equilibrium | None:
    """An equilibrium if the fluid's own right-hand side says so, to rounding or after some steps of Newton's."""
    if any(
        row["marking_probability"] > 0 for row, link in zip(found.links, scenario.links, strict=True) if _steep(link)
    ):
        return (
            found  # a step is of the extended model only; on a ramp almost as steep rounding of the queue would judge
        )
    classes, which, state = state_of(scenario, found)
    try:
        network = network_of(classes)
    except InputError:  # the fluid does not have these parameters
        return found
    moves = movement(network, state)
    if moves is not None and moves < STILL:
        return found
    end = near(network, state)
    if not end.exists[0]:
        return None
    polished = described(classes, end)
    if not same(found, polished):
        return None
    if moves is None:
        return found
    split = split_of(scenario, found.members)
    return dataclasses.replace(expanded(polished, split, which), members=found.members)


def _step(link: Link) -> bool:
    return link.marking is not None and link.marking.kmax <= link.marking.kmin


def _steep(link: Link) -> bool:
    return link.marking is not None and link.marking.kmax <= (1 + _STEEP) * link.marking.kmin


def _kinds(found: Iterable[Equilibrium]) -> list[Equilibrium]:
    """Keep one equilibrium of each kind."""
    kept: list[Equilibrium] = []
    for one in found:
        if not any(same(one, other) for other in kept):
            kept.append(one)
    return kept


@public()
def equilibria(scenario: Scenario) -> tuple[Equilibrium, ...]:
    """Find fixed points: by Newton's method from several starts, and by the marking where rates give it.

    Parameters
    ----------
    scenario : Scenario
        As for `equilibrium`; up to 16 flows are told apart, so that unequal shares of equal ones are found.

    Returns
    -------
    tuple of Equilibrium
        On the fluid's own right-hand side all. Empty if no search ends at a fixed point: the flows cycle, or a step
        marking marks all or nothing.

    Raises
    ------
    InputError
        If the scenario makes no sense, or a scheme changes its state in jumps.
    """
    scenario = thresholds_in_bytes(resolve(scenario))
    found = _newton(scenario)
    sides = [side for side in (equilibrium_of(flow.scheme) for flow in scenario.flows) if side is not None]
    if all(side.marking_at is not None for side in sides) and not any(_step(link) for link in scenario.links):
        solved = _solved(scenario, sides)
        for one in () if solved is None else (solved, *solved.others):
            if not any(same(one, other) for other in found):
                found.append(one)
    return tuple(found)


def _newton(scenario: Scenario) -> list[Equilibrium]:
    scenario = endless(scenario)
    whole, classes = scenario, tuple(range(len(scenario.flows)))
    if len(scenario.flows) > _APART:
        scenario, classes = merged(scenario)
    ends: list[Local] = []
    for end in multi_start(network_of(scenario)):
        if not end.exists[0]:
            continue
        size = np.maximum(np.abs(end.slopes.x[0]), 1.0)
        if all((np.abs(end.slopes.x[0] - other.slopes.x[0]) > SAME * size).any() for other in ends):
            ends.append(end)
    return [expanded(described(scenario, end), whole, classes) for end in ends]


def _run(scenario: Scenario) -> Equilibrium:
    """Return the end of a run: the equilibrium that it settles at, or its limit cycle."""
    scenario = endless(scenario)
    cycle = limit_cycle(scenario, estimate_error=False)
    names = [link.name or f"link {i}" for i, link in enumerate(scenario.links)]
    queues = [cycle.mean if name == cycle.link else math.nan for name in names]
    links, _, _ = links_of(scenario, [0.0] * len(names), list(cycle.rates), queues)
    links = tuple(
        {**row, "marking_probability": None, "queue_bytes": row["queue_bytes"] if row["name"] == cycle.link else None}
        for row in links
    )
    flows = flows_of(scenario, [0.0] * len(names), [(rate, {}) for rate in cycle.rates])
    flows = tuple({**row, "marking_probability": None} for row in flows)
    fixed_points = cycle.kind == "equilibrium"
    return Equilibrium(fixed_points, fixed_points, links, flows, cycle=cycle)
