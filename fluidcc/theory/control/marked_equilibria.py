"""Equilibria of schemes that settle on a marking: the probability on every link that makes the flows fill it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import root_scalar

from fluidcc.contract.bind import binder
from fluidcc.contract.models import Equilibrium
from fluidcc.contract.protocol import FixedPoint
from fluidcc.errors import InputError, NoClosedFormError
from fluidcc.scenario.model import Link, Scenario
from fluidcc.theory.control.merging import merged
from fluidcc.theory.control.shares import MOST_TRIPLES, Sender, pairs, sizes, triples

_ROUNDS = 500  # of the iteration over links; two or three do for one link
_SMALLEST, _LARGEST = 1e-15, 1 - 1e-12  # marking probabilities searched
_FULL = 1e-9  # of a link: how much less than its capacity fills it


class Solution(NamedTuple):
    """Equilibrium at which the flows may settle.

    Parameters
    ----------
    members : tuple of (int, float)
        Of each group of equal flows, the scenario's flow and how many of its multiplicity.
    probabilities : list of float
        Of every link.
    states : list of FixedPoint
        Of every group.
    """

    members: tuple[tuple[int, float], ...]
    probabilities: list[float]
    states: list[FixedPoint]


class Solutions(NamedTuple):
    """Equilibria that were found, that of equal shares first.

    ``unique`` is whether there is no other, as far as ``searched`` says in words; None where nobody looked.
    """

    solutions: list[Solution]
    unique: bool | None
    searched: str | None


def marked_equilibria(scenario: Scenario, sides: list[Equilibrium]) -> Solutions:
    """Markings of links and states of flows that hold each other.

    Parameters
    ----------
    scenario : Scenario
        Resolved, of plain numbers.
    sides : list of Equilibrium
        Of each flow its scheme's, with ``solve_equilibrium``.

    Raises
    ------
    InputError
        If a loaded link has no marking, or the flows exceed a link even when everything is marked.
    NoClosedFormError
        If the flows' rates fall whatever is marked.
    """
    bound = [*map(binder(scenario), scenario.flows)]
    packets = [scenario.wire_packet_of(flow) for flow in scenario.flows]
    each = zip(sides, bound, scenario.flows, packets, strict=True)
    senders = [
        Sender(side, parameters, side.largest_rate(parameters, flow.line_rate), packet)
        for side, parameters, flow, packet in each
    ]
    if any(side.marking_at is None for side in sides):
        return Solutions([_iterated(scenario, senders)], None, None)
    classes, _ = merged(scenario)
    alone = len(scenario.links) == 1 and len(classes.flows) == 1
    if alone and _overloaded(scenario.links[0], 0, _at_line_rate(scenario, senders)):
        return _shared(scenario, senders[0])
    found = _iterated(scenario, senders)
    ranges = "; ".join(dict.fromkeys(sender.searched for sender in senders))
    if not all(sender.falls for sender in senders):
        return Solutions([found], None, None)
    unique = _determined(scenario, senders, found)
    why = "each marking holds only one rate, and rates fill the links in only one way"
    still = "" if unique else ". But a full link whose marks slow no flow may keep a queue of any length"
    return Solutions([found], unique, f"{ranges}; {why}{still}")


def _shared(scenario: Scenario, sender: Sender) -> Solutions:
    """Find the solutions of equal flows that overload one link."""
    (link,) = scenario.links
    flows = sum(flow.multiplicity for flow in scenario.flows)
    fair = link.rate / flows
    if fair < sender.least or float(sender.marking(fair)) >= _LARGEST:
        raise _too_many(link, 0)
    p = float(sender.marking(fair))
    if p <= 0:
        raise NoClosedFormError("rates fall whatever is marked")
    equal = _solution(scenario, sender, p, [(flows, fair)])
    if sender.falls:
        return Solutions([equal], True, f"{sender.searched}; each marking holds only one rate")
    two = pairs(sender, flows, link.rate)
    three = triples(sender, flows, link.rate)
    shares = [[(n, low), (flows - n, high)] for n, low, high in two] + three
    found = [_solution(scenario, sender, float(sender.marking(groups[-1][1])), groups) for groups in shares]
    tried, most, held = len(sizes(flows)), math.ceil(flows) - 1, len(sender.pieces)
    of = f"1 to {most}" if tried == most else f"{tried} numbers of flows between 1 and {most}"
    slower = f" with {of} in the slower one" if most > 1 else ""
    groups, more = "two groups", ""
    if flows > 2:
        groups = "two groups" if held == 2 else "two and three groups"
        more = f"; a marking may hold up to {held} rates"
        more += ", but more groups were not tried" if held > 3 else ""
        more += f"; the first {len(three)} solutions with three groups are listed" if len(three) == MOST_TRIPLES else ""
    searched = f"{sender.searched}; flows in {groups} of equal rate{slower}{more}"
    whole = tried == most and (flows <= 2 or held <= 3)
    return Solutions([equal, *found], not found if found or whole else None, searched)


def _solution(scenario: Scenario, sender: Sender, p: float, groups: Sequence[tuple[float, float]]) -> Solution:
    """Return a solution of one link: groups of n flows with one rate each, filled with the flows in their order."""
    assert sender.side.fixed_point is not None
    members, states, left = [], [], list(groups)
    for index, flow in enumerate(scenario.flows):
        many = flow.multiplicity
        while many > 0:
            room, rate = left[0]
            taken = min(many, room) if len(left) > 1 else many
            members.append((index, taken))
            states.append(sender.side.fixed_point(sender.parameters, rate, p, sender.line_rate, sender.packet))
            many -= taken
            left = [(room - taken, rate), *left[1:]] if room > taken or len(left) == 1 else left[1:]
    return Solution(tuple(members), [p], states)


def _iterated(scenario: Scenario, senders: list[Sender]) -> Solution:
    """Link by link the probability that fills it, in turn until they agree; the flows of a class alike."""
    probabilities = [0.0] * len(scenario.links)

    def state(i: int, marks: list[float]) -> FixedPoint:
        solve, sender = senders[i].side.solve_equilibrium, senders[i]
        assert solve is not None
        return solve(sender.parameters, along(marks, scenario.flows[i].path), sender.line_rate, sender.packet)

    def excess(link: int, p: float) -> float:
        marks = [*probabilities[:link], p, *probabilities[link + 1 :]]
        on = (i for i, flow in enumerate(scenario.flows) if link in flow.path)
        return sum(scenario.flows[i].multiplicity * state(i, marks).rate for i in on) / scenario.links[link].rate - 1.0

    for _ in range(_ROUNDS):
        before = list(probabilities)
        for link in range(len(scenario.links)):
            probabilities[link] = _root(scenario.links[link], link, lambda p, i=link: excess(i, p))
        if all(abs(p - q) <= 1e-13 * q for p, q in zip(before, probabilities, strict=True)):
            break
    else:
        raise InputError("equilibrium: the links' markings do not settle; simulate instead")
    members = tuple((i, flow.multiplicity) for i, flow in enumerate(scenario.flows))
    return Solution(members, probabilities, [state(i, probabilities) for i in range(len(scenario.flows))])


def _determined(scenario: Scenario, senders: list[Sender], found: Solution) -> bool:
    """Check whether the rates that are free to move determine the queues of all full links."""
    rates = np.array([state.rate for state in found.states])
    free = np.array([s.least < r < s.line_rate for s, r in zip(senders, rates, strict=True)])
    A = np.array([[float(i in flow.path) for flow in scenario.flows] for i in range(len(scenario.links))])
    load = A @ (rates * [flow.multiplicity for flow in scenario.flows])
    full = load >= (1 - _FULL) * np.array([link.rate for link in scenario.links])
    return bool(np.linalg.matrix_rank(A[full][:, free]) == full.sum()) if full.any() else True


def _at_line_rate(scenario: Scenario, senders: list[Sender]) -> float:
    """Load of one link by all flows at their largest rates, over its capacity, less 1."""
    load = sum(flow.multiplicity * sender.line_rate for flow, sender in zip(scenario.flows, senders, strict=True))
    return load / scenario.links[0].rate - 1.0


def along(marks: list[float], path: tuple[int, ...]) -> float:
    """Probability of a mark along a path."""
    if len(path) == 1:  # exact where 1 - (1 - p) is not
        return marks[path[0]]
    return 1.0 - math.prod(1.0 - marks[i] for i in path)


def _overloaded(link: Link, index: int, excess: float) -> bool:
    if excess <= 1e-12:
        return False
    if link.marking is None:
        name = link.name or f"link {index}"
        raise InputError(f"equilibrium: {name} is overloaded and marks nothing; give it marking=RED(kmin, kmax, pmax)")
    return True


def _too_many(link: Link, index: int) -> InputError:
    name = link.name or f"link {index}"
    return InputError(f"equilibrium: the flows exceed {name} even if all is marked; lower min_rate or the flows")


def _root(link: Link, index: int, excess: Callable[[float], Any]) -> float:
    if not _overloaded(link, index, excess(0.0)):
        return 0.0
    if excess(_LARGEST) > 0:
        raise _too_many(link, index)
    if excess(_SMALLEST) <= 0:
        return 0.0
    span = math.log(_SMALLEST), math.log(_LARGEST)
    return math.exp(root_scalar(lambda x: excess(math.exp(x)), bracket=span, xtol=1e-14, rtol=1e-14).root)
