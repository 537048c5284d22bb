"""One table of the names that parameters are typed by: the owner of each, with its dimension and range.

The command line's ``--set`` and ``--over``, sweeps, tuning and fitting read it. A parameter of a scheme, of marking, of
flow control or of a scenario comes into it by its field's `Spec`; here are only the options of the topologies, and the
replacement of named values in scenarios and their parts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from fluidcc import units
from fluidcc.contract import registry
from fluidcc.errors import InputError
from fluidcc.scenario.model import PFC, RED, Flow, Link, Scenario, resolve
from fluidcc.scenario.parameters import Spec, convert, specs
from fluidcc.surface import nearest


class Name(NamedTuple):
    """Home of a parameter (scheme, marking, network, pfc or builder), and what is known of it."""

    home: str
    spec: Spec


def _count(doc: str) -> Spec:
    return Spec(units.COUNT, doc, low=1, integer=True)


_FLOWS = {name: specs(Flow)[name] for name in ("start", "initial_rate", "size")}
_LINKS = {name: specs(Link)[name] for name in ("rate", "delay", "loss")}
_SENDERS = {"flows": _count("number of flows"), "line_rate": specs(Flow)["line_rate"]}
_BURSTS = {
    "bursts": _count("hosts that send bursts"),
    "burst_start": Spec(units.TIME, "start of the bursts"),
    "burst_time": Spec(units.TIME, "time for which flows of the bursts start"),
    "burst_size": Spec(units.SIZE, "bytes of a flow of the bursts"),
}
_FABRIC_SIZES = {name: _count(name) for name in ("pods", "tors", "leaves", "spines", "hosts", "ecmp_seed")}
_STAGGER = {
    "stagger": Spec(units.TIME, "time from one group of flows to the next"),
    "stagger_group": _count("flows in such a group"),
}
# Options of each topology's builder.
TOPOLOGIES: dict[str, dict[str, Spec]] = {
    "incast": {**_LINKS, **_FLOWS, **_SENDERS, **_STAGGER},
    "parking-lot": {**_LINKS, **_FLOWS, **_SENDERS},
    "chain": {**_LINKS, **_FLOWS, **_BURSTS},
    "fat-tree": {
        **_LINKS,
        **_FLOWS,
        "flows": _SENDERS["flows"],
        "fabric_rate": Spec(units.RATE, "rate of links between switches"),
        **_FABRIC_SIZES,
    },
}
# Names that select the shape of the problem, and so cannot be swept.
SHAPES = ("topology", "until", "preset", "scheme", "window", "dt", "rtol", "method", "engine", "seed",
          "bursts", "burst_time", "burst_size", "stagger_group", *_FABRIC_SIZES)  # fmt: skip
_SWITCH = Spec("on|off", "priority flow control", choices=(False, True))


def known_names(scheme: str) -> Mapping[str, Name]:
    """Return all names that a scheme's scenarios take; the scheme's own go before those of the same name elsewhere."""
    return _known(registry.scheme(scheme).Parameters)


@cache
def _known(parameters: type) -> Mapping[str, Name]:
    known = {"pfc": Name("pfc", _SWITCH)}
    for home, owner in {"pfc": PFC, "network": Scenario, "marking": RED, "scheme": parameters}.items():
        known |= {name: Name(home, spec) for name, spec in specs(owner).items()}
    for options in TOPOLOGIES.values():
        known |= {name: Name("builder", spec) for name, spec in options.items()}
    return known


def check_name(scheme: str, name: str, option: str) -> Spec:
    """Return what is known of a parameter.

    Raises
    ------
    InputError
        If there is none of that name, with the nearest that there is.
    """
    known = known_names(scheme)
    if name not in known:
        near = nearest(name, known)
        others = [other for other in registry.built_in() if other != scheme and name in known_names(other)]
        whose = f"it belongs to {', '.join(others)}; " if others else ""
        hint = f"did you mean {near}?" if near else f"{whose}see: fluidcc show {scheme}"
        raise InputError(f"{option}: {scheme} has no parameter {name[:40]!r}; {hint}")
    return known[name].spec


def split(scheme: str, values: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Sort values by their homes."""
    known = known_names(scheme)
    homes: dict[str, dict[str, Any]] = {home: {} for home in ("scheme", "marking", "network", "pfc", "builder")}
    for name, value in values.items():
        homes[known[name].home][name] = value
    return homes


def spec_of(name: str) -> Spec | None:
    """Return what is known of a parameter of any scheme, of marking, of a scenario or of a builder; None if nothing."""
    owners = (specs(RED), specs(Flow), specs(Scenario), *_schemes(), *TOPOLOGIES.values())
    return next((owner[name] for owner in owners if name in owner), None)


def _schemes() -> Iterator[Mapping[str, Spec]]:
    yield from (specs(registry.scheme(name).Parameters) for name in registry.built_in())
    yield from (specs(scheme.Parameters) for scheme in registry.outside())


def dimension_of(name: str) -> str:
    """Return the dimension of a parameter, by its name alone; plain if it is unknown."""
    spec = spec_of(name)
    return units.RATIO if spec is None else spec.dimension


def unit_of(name: str) -> str:
    """Return the SI unit of the values of a named parameter; "" if there is no parameter of that name."""
    spec = spec_of(name)
    return "" if spec is None else units.RATIO if spec.dimension == units.COUNT else spec.dimension


def format_value(name: str, value: float) -> str:
    """Return a value of a named parameter, with its unit, as text."""
    return units.show(value, dimension_of(name))


# -- scenarios and their parts with some values replaced ---------------------------------------------------


def changed_marking(marking: RED | None, values: dict[str, Any]) -> RED | None:
    """Replace some values of a marking, or make one of them where there is none.

    Raises
    ------
    InputError
        If there is none, and values do not make one.
    """
    if marking is not None or not values:
        return marking and dataclasses.replace(marking, **values)
    missing = [name for name in ("kmin", "kmax", "pmax") if name not in values]
    if missing:
        raise InputError(
            f"{missing[0]}: is missing; this scheme sets no marking, so {next(iter(values))} needs kmin, kmax and "
            "pmax beside it: write for example --set kmin=5KB --set kmax=200KB --set pmax=1%"
        )
    return RED(**values)


def changed_flow_control(pfc: PFC | None, values: dict[str, Any]) -> PFC | None:
    """Replace some values of flow control; giving any of them turns it on.

    Raises
    ------
    InputError
        If it is turned off and values are given.
    """
    fields = {name: value for name, value in values.items() if name != "pfc"}
    on = bool(fields) or pfc is not None
    if "pfc" in values:
        on = convert(values["pfc"], _SWITCH, "pfc")
        if fields and not on:
            raise InputError(f"pfc: is off, so {next(iter(fields))} has no meaning; leave out one of the two")
    return dataclasses.replace(pfc or PFC(), **fields) if on else None


def with_values(scenario: Scenario, scheme: str, values: dict[str, Any]) -> Scenario:
    """Replace some values on all links and flows of a scenario; lists repeat over the flows.

    Raises
    ------
    InputError
        If no flow runs the scheme, a value has no place in a finished scenario, or makes no sense.
    """
    if not any(flow.scheme.name == scheme for flow in scenario.flows):
        raise InputError(f"scheme: no flow of this scenario runs {scheme}; write {scenario.flows[0].scheme.name}")
    parts = split(scheme, values)
    of_link = {name: value for name, value in parts["builder"].items() if name in ("rate", "loss")}
    columns = ("start", "size", "initial_rate", "line_rate")
    of_flow = {name: entries(value, name) for name, value in parts["builder"].items() if name in columns}
    fixed = next((name for name in parts["builder"] if name not in {**of_link, **of_flow}), None)
    if fixed is not None:
        raise InputError(f"{fixed}: is fixed by the scenario file; change it there")
    unmarked = all(link.marking is None for link in scenario.links)
    links = tuple(
        dataclasses.replace(
            link,
            **of_link,
            marking=changed_marking(link.marking, parts["marking"]) if unmarked or link.marking else None,
        )
        for link in scenario.links
    )
    flows = tuple(
        dataclasses.replace(
            flow,
            **{name: entries[i % len(entries)] for name, entries in of_flow.items()},
            scheme=dataclasses.replace(flow.scheme, **parts["scheme"]) if flow.scheme.name == scheme else flow.scheme,
        )
        for i, flow in enumerate(scenario.flows)
    )
    pfc = changed_flow_control(scenario.pfc, parts["pfc"])
    return resolve(dataclasses.replace(scenario, links=links, flows=flows, pfc=pfc, **parts["network"]))


def entries(value: Any, name: str) -> list[Any]:
    """Read a comma-separated list, or a single (perhaps traced) value."""
    if not isinstance(value, str):
        return [value]
    parts = [part.strip() for part in value.split(",")]
    if not all(parts):
        raise InputError(f"{name}: {value[:60]!r} has an empty entry; write for example {name} A,B")
    return [None if name == "initial_rate" and part == "line" else part for part in parts]
