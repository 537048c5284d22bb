"""Equilibria of scenarios, and their rows of links and flows."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from fluidcc.compiling.settings import our_settings
from fluidcc.contract.registry import fluid_of
from fluidcc.results.display import label, listed, shown
from fluidcc.results.result import Comparable
from fluidcc.scenario import display as html
from fluidcc.scenario.display import name_text
from fluidcc.scenario.model import Link, Scenario
from fluidcc.surface import constructor, public
from fluidcc.theory.control.limit_cycle import LimitCycle
from fluidcc.theory.control.local import Local
from fluidcc.theory.control.marked_equilibria import along
from fluidcc.theory.control.merging import merged
from fluidcc.theory.control.states import States

SAME = 1e-6  # relative: two searches that ended at one equilibrium
_OTHERS = ("exists", "on_ramp", "marking_probability", "queue_bytes", "rate_bytes_per_s", "links", "flows")


@constructor()
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
        Whether the search for others found none; None where nobody looked, or not everywhere.
    cycle : LimitCycle or None
        Where there is no fixed point, or none can be solved for: how a run ends. Numbers of links and flows are then
        its means.
    searched : str or None
        Rates at which others were looked for, and how, or why there is no other.
    others : tuple of Equilibrium
        Those that were found; of unequal rates of equal flows one of each kind.
    members : tuple of (int, float)
        Where classes of several flows are split: of each row of ``flows`` the scenario's flow, and how many of its
        multiplicity.
    """

    exists: bool
    on_ramp: bool
    links: tuple[dict[str, Any], ...]
    flows: tuple[dict[str, Any], ...]
    unique: bool | None = None
    cycle: LimitCycle | None = None
    searched: str | None = None
    others: tuple[Equilibrium, ...] = ()
    members: tuple[tuple[int, float], ...] = ()

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
            "searched": self.searched,
            "others": [{key: other[key] for key in _OTHERS} for other in (each.as_dict() for each in self.others)],
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


def described(scenario: Scenario, found: Local) -> Equilibrium:
    """The equilibrium of a single point, whose network was made of the scenario."""
    network = found.states.system.network
    with our_settings():
        states = States(found.states.system)
        x = jnp.asarray(found.slopes.x[0])[:, None]
        y = states.state(x)
        rates = np.asarray(states.rates(x))[:, 0]
        shown = {name: np.asarray(values)[:, 0] for name, values in states.system.observables(y).items()}
    queues = np.asarray(network.by_link(found.slopes.x[0][: network.queues, None]))[:, 0]
    queues = np.pad(queues, (0, len(scenario.links) - len(queues)))
    probabilities = [_marking(link, float(queue)) for link, queue in zip(scenario.links, queues, strict=True)]
    links, exists, on_ramp = links_of(scenario, probabilities, rates.tolist(), queues.tolist())
    flows = flows_of(
        scenario,
        probabilities,
        [
            (
                float(rates[i]),
                {
                    key_of(fluid_of(scenario.flows[i].scheme).OBSERVABLES[name][0], name): float(values[i])
                    for name, values in shown.items()
                    if math.isfinite(values[i])
                },
            )
            for i in range(len(rates))
        ],
    )
    return Equilibrium(exists, on_ramp, links, flows)


def key_of(unit: str, name: str) -> str:
    """Name of an observable in `Equilibrium.as_dict`, with its unit."""
    return name + {"bytes/s": "_bytes_per_s", "bytes": "_bytes", "s": "_s"}.get(unit, "")


def _marking(link: Link, queue: float) -> float:
    """Probability of the RED line at a queue, extended beyond kmax; 0 for a step marking, as no queue settles on it."""
    red = link.marking
    if red is None or red.kmax <= red.kmin:
        return 0.0
    return max(0.0, (queue - red.kmin) / (red.kmax - red.kmin) * red.pmax)


def links_of(
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


def flows_of(
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


def expanded(found: Equilibrium, scenario: Scenario, classes: tuple[int, ...]) -> Equilibrium:
    """An equilibrium of classes as one of the scenario's flows."""
    names = [flow.name or f"flow {i}" for i, flow in enumerate(scenario.flows)]
    rows = tuple({**found.flows[k], "name": name} for name, k in zip(names, classes, strict=True))
    return dataclasses.replace(found, flows=rows)


def endless(scenario: Scenario) -> Scenario:
    """Return the scenario with all flows active and long-lived."""
    flows = tuple(dataclasses.replace(flow, start=0.0, size=math.inf) for flow in scenario.flows)
    return dataclasses.replace(scenario, flows=flows)


def split_of(scenario: Scenario, members: tuple[tuple[int, float], ...]) -> Scenario:
    """The scenario whose flows are the rows of an equilibrium."""
    flows = []
    for index, many in members:
        flow = scenario.flows[index]
        part = "" if many == flow.multiplicity else f" ({many:g} of {flow.multiplicity:g})"
        flows.append(dataclasses.replace(flow, name=(flow.name or f"flow {index}") + part, multiplicity=many))
    return dataclasses.replace(scenario, flows=tuple(flows)) if members else scenario


def state_of(scenario: Scenario, found: Equilibrium) -> tuple[Scenario, tuple[int, ...], dict[str, float]]:
    """Flows that are equal and have equal rows as one class, each row's class, and the state by the fluid's names."""
    split = split_of(endless(scenario), found.members)
    rows = [{key.removesuffix("_per_s").removesuffix("_bytes"): v for key, v in row.items()} for row in found.flows]
    classes, which = merged(split, [tuple(v for key, v in row.items() if key != "name") for row in rows])
    state = {f"queue {i}": float(link["queue_bytes"]) for i, link in enumerate(found.links)}
    for k in range(len(classes.flows)):
        row = rows[which.index(k)]
        state |= {f"{key} {k}": float(v) for key, v in row.items() if key not in ("name", "marking_probability")}
    return classes, which, state


def same(one: Equilibrium, other: Equilibrium) -> bool:
    """Check whether two equilibria are the same, whichever of the flows has which rate."""

    def numbers(found: Equilibrium) -> list[float]:
        rates = [row["rate_bytes_per_s"] for row in found.flows]
        return [*(row["queue_bytes"] for row in found.links), min(rates), max(rates)]

    each = zip(numbers(one), numbers(other), strict=True)
    return all(abs(a - b) <= SAME * max(abs(a), 1.0) for a, b in each)
