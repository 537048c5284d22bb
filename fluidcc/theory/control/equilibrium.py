"""Fixed points of a scenario."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fluidcc.engines.fluid.network import network_of
from fluidcc.errors import NoClosedFormError
from fluidcc.results.identity import Comparable
from fluidcc.results.text import label, listed, shown
from fluidcc.scenario import html
from fluidcc.scenario.display import name_text
from fluidcc.scenario.model import Link, Scenario, resolve
from fluidcc.schemes.registry import equilibrium_of, fluid_of
from fluidcc.surface import public
from fluidcc.theory.control.limit_cycle import LimitCycle, limit_cycle
from fluidcc.theory.control.local import Local, multi_start
from fluidcc.theory.control.marking import along, marked_equilibria
from fluidcc.theory.control.merging import merged
from fluidcc.theory.control.states import NoEquilibriumError, States
from fluidcc.theory.control.utilisation import utilised_equilibria

_APART = 16  # flows; of more, equal ones are searched for as one class
_SAME = 1e-6  # relative: two searches that ended at one equilibrium


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Equilibrium(Comparable):
    """A fixed point of a scenario, or what it does for want of one.

    Parameters
    ----------
    exists : bool
        Whether the model as printed settles there: on every loaded link the RED ramp reaches the probability.
        Where it does not, queues are those of the ramp extended beyond kmax.
    on_ramp : bool
        Whether every link that must mark does so on its ramp (0 < p <= pmax).
    links : tuple of dict
        Per link: name, ``marking_probability``, ``queue_bytes`` and ``utilisation``.
    flows : tuple of dict
        Per flow class: name, ``marking_probability`` along its path, ``rate_bytes_per_s`` and the scheme's own.
    unique : bool or None
        Whether it is the only one, where that is known: one link's marking has one solution, and searches from several
        starts find one; None where nobody looked.
    cycle : LimitCycle or None
        Where there is no fixed point, or none can be solved for: how a run ends. Numbers of links and flows are then
        its means.
    """

    exists: bool
    on_ramp: bool
    links: tuple[dict[str, Any], ...]
    flows: tuple[dict[str, Any], ...]
    unique: bool | None = None
    cycle: LimitCycle | None = None

    def __repr__(self) -> str:
        """The most loaded link, the rates, and whether it is one."""
        found = self.as_dict()
        keys = ("queue_bytes", "marking_probability", "rate_bytes_per_s")
        told = [f"{label(key)} {shown(key, found[key])}" for key in keys if found.get(key) is not None]
        return f"<Equilibrium ({self._state()}): {', '.join(told)}>"

    def _repr_html_(self) -> str:
        parts = [html.table(f"Equilibrium: {self._state()}", *_rows(self.links)), html.table("", *_rows(self.flows))]
        if self.cycle is not None:
            parts.append(html.folded("limit cycle", self.cycle._repr_html_()))
        return "".join(parts)

    def _state(self) -> str:
        if self.cycle is not None:
            return "where a run ends" if self.exists else f"none: {self.cycle.kind}"
        ramp = "exists" if self.exists else "none as printed: RED extended beyond kmax"
        return ramp + {True: ", unique", False: ", one of several", None: ""}[self.unique]

    @public()
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
            "unique": self.unique,
            "marking_probability": link["marking_probability"],
            "queue_bytes": link["queue_bytes"],
            **shared,
            "links": list(self.links),
            "flows": list(self.flows),
            "limit_cycle": None if self.cycle is None else self.cycle.as_dict(),
        }


def _rows(places: Sequence[Mapping[str, Any]]) -> tuple[list[list[str]], list[str]]:
    """Rows and header of a table of links or flows: those that are alike in one row."""
    keys = list(dict.fromkeys(key for place in places for key in place))
    alike: dict[tuple[str, ...], list[str]] = {}
    for place in places:
        values = tuple(shown(key, place.get(key)) for key in keys if key != "name")
        alike.setdefault(values, []).append(name_text(str(place["name"])))
    rows = [[listed(names), *values] for values, names in alike.items()]
    return rows, ["", *(label(key) for key in keys if key != "name")]


@public()
def equilibrium(scenario: Scenario) -> Equilibrium:
    """Solve for the fixed point of a scenario's fluid model.

    For DCQCN: every flow settles where (7)-(9) vanish, and on each link the rates sum to its capacity (6), or
    it is not loaded and marks nothing. The rate at equilibrium falls with the marking, so each link's equation has
    one root given the others; they are iterated to agreement. Delays, starts and g do not enter.

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
    scenario = resolve(scenario)
    sides = [equilibrium_of(flow.scheme) for flow in scenario.flows]
    solvers = [side.solve_equilibrium for side in sides if side is not None and side.solve_equilibrium is not None]
    if len(solvers) == len(sides):
        probabilities, states = marked_equilibria(scenario, solvers)
        links, exists, on_ramp = _links(scenario, probabilities, [at.rate for at in states])
        flows = _flows(scenario, probabilities, [(at.rate, at.observables()) for at in states])
        return Equilibrium(exists, on_ramp, links, flows, unique=len(links) == 1 or None)
    by_load = sides[0] if len({flow.scheme.name for flow in scenario.flows}) == 1 else None
    if by_load is not None and by_load.balances is not None:
        try:
            links, flows = utilised_equilibria(scenario, by_load)
            return Equilibrium(True, True, tuple(links), tuple(flows), unique=len(links) == 1 or None)
        except NoClosedFormError:
            pass
    try:
        found = equilibria(scenario)
    except NoEquilibriumError:  # it has no equilibrium side, or changes its state in jumps
        found = ()
    return dataclasses.replace(found[0], unique=len(found) == 1) if found else _run(scenario)


@public()
def equilibria(scenario: Scenario) -> tuple[Equilibrium, ...]:
    """All fixed points that Newton's method finds, on the fluid's own right-hand side and from several starts.

    Parameters
    ----------
    scenario : Scenario
        As for `equilibrium`; up to 16 flows are told apart, so that unequal shares of equal ones are found.

    Returns
    -------
    tuple of Equilibrium
        Empty if no search ends at a fixed point: the flows cycle, or a step marking marks all or nothing.

    Raises
    ------
    InputError
        If the scenario makes no sense, or a scheme changes its state in jumps.
    """
    scenario = _endless(resolve(scenario))
    whole, classes = scenario, tuple(range(len(scenario.flows)))
    if len(scenario.flows) > _APART:
        scenario, classes = merged(scenario)
    ends: list[Local] = []
    for end in multi_start(network_of(scenario)):
        if not end.exists[0]:
            continue
        size = np.maximum(np.abs(end.slopes.x[0]), 1.0)
        if all((np.abs(end.slopes.x[0] - other.slopes.x[0]) > _SAME * size).any() for other in ends):
            ends.append(end)
    return tuple(_expanded(described(scenario, end), whole, classes) for end in ends)


def _expanded(found: Equilibrium, scenario: Scenario, classes: tuple[int, ...]) -> Equilibrium:
    """An equilibrium of classes as one of the scenario's flows."""
    names = [flow.name or f"flow {i}" for i, flow in enumerate(scenario.flows)]
    rows = tuple({**found.flows[k], "name": name} for name, k in zip(names, classes, strict=True))
    return dataclasses.replace(found, flows=rows)


def _endless(scenario: Scenario) -> Scenario:
    """With all flows active and long-lived."""
    flows = tuple(dataclasses.replace(flow, start=0.0, size=math.inf) for flow in scenario.flows)
    return dataclasses.replace(scenario, flows=flows)


def _run(scenario: Scenario) -> Equilibrium:
    """Where a run ends: an equilibrium of its own, or a limit cycle."""
    scenario = _endless(scenario)
    cycle = limit_cycle(scenario, estimate_error=False)
    names = [link.name or f"link {i}" for i, link in enumerate(scenario.links)]
    queues = [cycle.mean if name == cycle.link else math.nan for name in names]
    links, _, _ = _links(scenario, [0.0] * len(names), list(cycle.rates), queues)
    links = tuple(
        {**row, "marking_probability": None, "queue_bytes": row["queue_bytes"] if row["name"] == cycle.link else None}
        for row in links
    )
    flows = _flows(scenario, [0.0] * len(names), [(rate, {}) for rate in cycle.rates])
    flows = tuple({**row, "marking_probability": None} for row in flows)
    fixed_points = cycle.kind == "equilibrium"
    return Equilibrium(fixed_points, fixed_points, links, flows, cycle=cycle)


def described(scenario: Scenario, found: Local) -> Equilibrium:
    """The equilibrium of a single point, whose network was made of the scenario."""
    network = found.states.system.network
    with jax.enable_x64(True):
        states = States(found.states.system)
        x = jnp.asarray(found.slopes.x[0])[:, None]
        y = states.state(x)
        rates = np.asarray(states.rates(x))[:, 0]
        shown = {name: np.asarray(values)[:, 0] for name, values in states.system.observables(y).items()}
    queues = np.asarray(network.by_link(found.slopes.x[0][: network.queues, None]))[:, 0]
    queues = np.pad(queues, (0, len(scenario.links) - len(queues)))
    probabilities = [_marking(link, float(queue)) for link, queue in zip(scenario.links, queues, strict=True)]
    links, exists, on_ramp = _links(scenario, probabilities, rates.tolist(), queues.tolist())
    flows = _flows(
        scenario,
        probabilities,
        [
            (
                float(rates[i]),
                {
                    _key(scenario, i, name): float(values[i])
                    for name, values in shown.items()
                    if math.isfinite(values[i])
                },
            )
            for i in range(len(rates))
        ],
    )
    return Equilibrium(exists, on_ramp, links, flows)


def _key(scenario: Scenario, flow: int, name: str) -> str:
    """An observable as `as_dict` names it, with its unit."""
    unit, _ = fluid_of(scenario.flows[flow].scheme).OBSERVABLES[name]
    return name + {"bytes/s": "_bytes_per_s", "bytes": "_bytes", "s": "_s"}.get(unit, "")


def _marking(link: Link, queue: float) -> float:
    """Of the RED line, extended beyond kmax; of a step marking nothing, as no queue settles on it."""
    red = link.marking
    if red is None or red.kmax <= red.kmin:
        return 0.0
    return max(0.0, (queue - red.kmin) / (red.kmax - red.kmin) * red.pmax)


def _links(
    scenario: Scenario, probabilities: list[float], rates: list[float], queues: list[float] | None = None
) -> tuple[tuple[dict[str, Any], ...], bool, bool]:
    """Rows of links, and whether the equilibrium exists on the RED ramps and lies on them."""
    links, exists, on_ramp = [], True, not any(link.marking for link in scenario.links)
    for i, (link, p) in enumerate(zip(scenario.links, probabilities, strict=True)):
        load = sum(f.multiplicity * rate for f, rate in zip(scenario.flows, rates, strict=True) if i in f.path)
        queue = 0.0 if queues is None else queues[i]
        if p > 0 and link.marking is not None:
            red = link.marking
            queue = red.kmin + p / red.pmax * (red.kmax - red.kmin) if queues is None else queue
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
    return tuple(links), exists, on_ramp


def _flows(
    scenario: Scenario, probabilities: list[float], states: list[tuple[float, dict[str, float]]]
) -> tuple[dict[str, Any], ...]:
    """Rows of flows from their rates and what else their schemes show."""
    return tuple(
        {
            "name": flow.name or f"flow {i}",
            "marking_probability": along(probabilities, flow.path),
            "rate_bytes_per_s": rate,
            **shown,
        }
        for i, (flow, (rate, shown)) in enumerate(zip(scenario.flows, states, strict=True))
    )
