"""Fixed points of a scenario: link by link the marking that makes the flows fill it."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from scipy.optimize import root_scalar

from fluidcc.control.utilisation import rests
from fluidcc.errors import InputError
from fluidcc.scenario import Link, Scenario, resolve
from fluidcc.schemes.dispatch import optional_part

_ROUNDS = 500  # of the iteration over links; two or three do for one link
_SMALLEST, _LARGEST = 1e-15, 1 - 1e-12  # marking probabilities searched


@dataclasses.dataclass(frozen=True)
class Equilibrium:
    """A fixed point of a scenario.

    Parameters
    ----------
    exists : bool
        Whether the model as printed rests there: on every loaded link the RED ramp reaches the probability.
        Where it does not, queues are those of the ramp extended beyond kmax.
    on_ramp : bool
        Whether every link that must mark does so on its ramp (0 < p <= pmax).
    links : tuple of dict
        Per link: name, ``marking_probability``, ``queue_bytes`` and ``utilisation``.
    flows : tuple of dict
        Per flow class: name, ``marking_probability`` along its path, ``rate_bytes_per_s`` and the scheme's own.
    """

    exists: bool
    on_ramp: bool
    links: tuple[dict[str, Any], ...]
    flows: tuple[dict[str, Any], ...]

    def as_dict(self) -> dict[str, Any]:
        """Keys as in the CLI: the most loaded link, and the flows' values (one number if all are equal)."""
        link = max(self.links, key=lambda row: (row["queue_bytes"] or 0.0, row["utilisation"]))
        shared: dict[str, Any] = {}
        for key in self.flows[0]:
            values = [flow.get(key) for flow in self.flows]
            if key not in ("name", "marking_probability"):
                shared[key] = values[0] if all(v == values[0] for v in values) else values
        return {
            "exists": self.exists,
            "on_ramp": self.on_ramp,
            "marking_probability": link["marking_probability"],
            "queue_bytes": link["queue_bytes"],
            **shared,
            "links": list(self.links),
            "flows": list(self.flows),
        }


def equilibrium(scenario: Scenario) -> Equilibrium:
    """Solve for the fixed point of a scenario's fluid model.

    For DCQCN: every flow rests where (7)-(9) vanish, and on each link the rates sum to its capacity (6), or
    it is not loaded and marks nothing. The rate at rest falls with the marking, so each link's equation has
    one root given the others; they are iterated to agreement. Delays, starts and g do not enter.

    For HPCC: R = a/(1 - eta/U), links filled from the lowest rate on (A.3); queues are those of windows that hold more
    than the links do.

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
    scenario = resolve(scenario)
    packets = [scenario.wire_packet_of(flow) for flow in scenario.flows]
    rooms = [_room(flow.scheme) for flow in scenario.flows]
    if any(hasattr(room, "balances") for room in rooms):
        if len({flow.scheme.name for flow in scenario.flows}) > 1:
            raise InputError("equilibrium: marking and utilisation together have none that we solve for; simulate")
        links, flows = rests(scenario, rooms[0])
        return Equilibrium(True, True, tuple(links), tuple(flows))
    probabilities = [0.0] * len(scenario.links)

    def marked(marks: list[float]) -> list[Any]:
        return [
            room.rest(flow.scheme, _along(marks, flow.path), flow.line_rate, packet)
            for room, flow, packet in zip(rooms, scenario.flows, packets, strict=True)
        ]

    def excess(link: int, p: float) -> float:
        marks = [*probabilities[:link], p, *probabilities[link + 1 :]]
        load = sum(
            flow.multiplicity * room.rest(flow.scheme, _along(marks, flow.path), flow.line_rate, packet).rate
            for room, flow, packet in zip(rooms, scenario.flows, packets, strict=True)
            if link in flow.path
        )
        return load / scenario.links[link].rate - 1.0

    for _ in range(_ROUNDS):
        before = list(probabilities)
        for link in range(len(scenario.links)):
            probabilities[link] = _root(scenario.links[link], link, lambda p, i=link: excess(i, p))
        if all(abs(p - q) <= 1e-13 * q for p, q in zip(before, probabilities, strict=True)):
            break
    else:
        raise InputError("equilibrium: the links' markings do not settle; simulate instead")
    return _described(scenario, probabilities, marked(probabilities))


def _room(scheme: Any) -> Any:
    """The scheme's ``equilibrium`` module.

    Raises
    ------
    InputError
        If it has none.
    """
    room = optional_part(scheme, "equilibrium")
    if room is None:
        raise InputError(
            f"equilibrium: {scheme.name} does not rest on a marking, so there is none to solve for; "
            f"see where it settles with: fluidcc simulate {scheme.name}"
        )
    return room


def _along(marks: list[float], path: tuple[int, ...]) -> float:
    if len(path) == 1:  # exact where 1 - (1 - p) is not
        return marks[path[0]]
    return 1.0 - math.prod(1.0 - marks[i] for i in path)


def _root(link: Link, index: int, excess: Any) -> float:
    if excess(0.0) <= 1e-12:
        return 0.0
    name = link.name or f"link {index}"
    if link.marking is None:
        raise InputError(f"equilibrium: {name} is overloaded and marks nothing; give it marking=RED(kmin, kmax, pmax)")
    if excess(_LARGEST) > 0:
        raise InputError(f"equilibrium: the flows exceed {name} even if all is marked; lower min_rate or the flows")
    if excess(_SMALLEST) <= 0:
        return 0.0
    span = math.log(_SMALLEST), math.log(_LARGEST)
    return math.exp(root_scalar(lambda x: excess(math.exp(x)), bracket=span, xtol=1e-14, rtol=1e-14).root)


def _described(scenario: Scenario, probabilities: list[float], rests: list[Any]) -> Equilibrium:
    links, exists, on_ramp = [], True, False
    for i, (link, p) in enumerate(zip(scenario.links, probabilities, strict=True)):
        load = sum(f.multiplicity * r.rate for f, r in zip(scenario.flows, rests, strict=True) if i in f.path)
        queue: float = 0.0
        if p > 0 and link.marking is not None:
            red = link.marking
            queue = red.kmin + p / red.pmax * (red.kmax - red.kmin)
            ramp = p <= red.pmax and red.kmax > red.kmin
            exists = exists and ramp
            on_ramp = ramp if not any(q > 0 for q in probabilities[:i]) else on_ramp and ramp
        links.append(
            {
                "name": link.name or f"link {i}",
                "marking_probability": p,
                "queue_bytes": queue,
                "utilisation": load / link.rate,
            }
        )
    flows = [
        {
            "name": flow.name or f"flow {i}",
            "marking_probability": _along(probabilities, flow.path),
            "rate_bytes_per_s": at.rate,
            **at.observables(),
        }
        for i, (flow, at) in enumerate(zip(scenario.flows, rests, strict=True))
    ]
    return Equilibrium(exists, on_ramp, tuple(links), tuple(flows))
