"""Scenarios and their parts with some values replaced, by the names of `fluidcc.builders.names`."""

from __future__ import annotations

import dataclasses
from typing import Any

from fluidcc.builders.names import split
from fluidcc.errors import InputError
from fluidcc.scenario.model import PFC, RED, Scenario, resolve
from fluidcc.scenario.parameters import Spec, convert


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
        on = convert(values["pfc"], Spec("on|off", "priority flow control", choices=(False, True)), "pfc")
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
