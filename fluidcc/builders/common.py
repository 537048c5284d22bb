"""Parts that the builders share: values per flow, and the scheme, the marking and the network of a scenario."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Container, Sequence
from numbers import Real
from typing import Any

from fluidcc.contract import registry
from fluidcc.errors import InputError
from fluidcc.scenario.model import PFC, RED, Flow, Link, Scenario, resolve
from fluidcc.units import TIME, marked, refuse_bare_rate, whole

MAX_FLOW_CLASSES = 4096
ROW = ("start", "size", "after", "after_what")  # fields of a flow in a row, after its hosts
# Fields of a scenario that builders take and pass on, and one of all of its links.
NETWORK = (*(field.name for field in dataclasses.fields(Scenario) if field.name not in ("links", "flows")), "loss")
CHAIN_PFC = PFC("512KB")  # ACC 3.1: "The PFC threshold is 512KB"
# ACC 6.1: two packets, and max(T_on) of a fat tree.
_TCD = RED("2KB", "2KB", 1.0, mark_on="departure", max_on="24us")

# Marking of all links, of each link by its rate, or (None) the scheme's own.
Marking = RED | Callable[[Any], RED | None] | None


def per_flow(value: Any, flows: int, name: str) -> list[Any]:
    """One value per flow: a list repeats over the flows, a single value serves all."""
    listed = (isinstance(value, Sequence) and not isinstance(value, (str, bytes))) or getattr(value, "ndim", 0) == 1
    values = list(value) if listed else [value]
    if not values:
        raise InputError(f"{name}: the list is empty; give at least one value")
    return [values[i % len(values)] for i in range(flows)]


def flow_columns(
    flows: int, rate: Any, start: Any, size: Any, initial_rate: Any, multiplicity: Any, line_rate: Any
) -> list[dict[str, Any]]:
    """Per-flow keyword arguments from values or repeating lists."""
    refuse_bare_rate(rate, "rate")
    columns = {
        "start": per_flow(start, flows, "start"),
        "size": per_flow(size, flows, "size"),
        "initial_rate": per_flow(initial_rate, flows, "initial_rate"),
        "multiplicity": per_flow(multiplicity, flows, "multiplicity"),
        "line_rate": per_flow(rate if line_rate is None else line_rate, flows, "line_rate"),
    }
    for name in ("initial_rate", "line_rate"):
        for i, value in enumerate(columns[name]):
            refuse_bare_rate(value, f"flow {i} {name}")
    return [{name: values[i] for name, values in columns.items()} for i in range(flows)]


def flow_row(row: Sequence[Any], index: int, hosts: Container[int], which: str) -> tuple[int, int, dict[str, Any]]:
    """Source and target of a flow, and other fields of it, of a row of two to six; ``which`` says what the hosts are.

    A row is of a table in SI, which may go on for more than 10 s.

    Raises
    ------
    InputError
        If the row is none, an end is no host, or both are the same.
    """
    where = f"flow {index}"
    try:
        source, target, *rest = row
        if len(rest) > len(ROW) or isinstance(row, str):
            raise ValueError
    except (TypeError, ValueError):
        raise InputError(
            f"{where}: {repr(row)[:60]} is no flow; write (source, target, start, size), and after these, if it waits "
            "for others, their places"
        ) from None
    ends = []
    for name, host in (("source", source), ("target", target)):
        node = _node(host)
        if node is None or node not in hosts:
            raise InputError(f"{where} {name}: there is no host {_told(host)}; {which}")
        ends.append(node)
    if ends[0] == ends[1]:
        raise InputError(f"{where}: leads from host {ends[0]} to itself; give it another target")
    fields: dict[str, Any] = dict(zip(ROW, rest, strict=False))
    if "start" in fields:
        fields["start"] = marked(fields["start"], TIME)
    return ends[0], ends[1], fields


def _told(host: Any) -> str:
    """Format the host that was given, for a message; NumPy's numbers print as plain ones."""
    return f"{float(host):g}" if isinstance(host, Real) else repr(host)[:20]


def _node(host: Any) -> int | None:
    """A host's number, also where it is one of NumPy's or a float; None if it is none."""
    try:
        return int(host) if not isinstance(host, str) and host == int(host) else None
    except (TypeError, ValueError, OverflowError):
        return None


def flow_count(flows: Any, least: int) -> int:
    """A number of flow classes."""
    hint = "; more identical flows, or a swept number of them, go in multiplicity="
    return whole(flows, least, MAX_FLOW_CLASSES, "flows", hint)


def chosen(
    scheme: Any, preset: str | None, marking: Marking, feedback_delay: Any, network: dict[str, Any]
) -> tuple[Any, Marking, dict[str, Any]]:
    """Scheme, marking and network of a scenario: those given, before those of the preset of a scheme given by name.

    Raises
    ------
    InputError
        If there is no such scheme or preset, a preset goes with no name, or the scheme is none.
    """
    from fluidcc.contract.registry import preset as preset_of

    if scheme is None and preset is None:
        scheme = preset_of(registry.DEFAULT).scheme
    elif scheme is None or isinstance(scheme, str):
        found = preset_of(scheme or registry.DEFAULT, "paper" if preset is None else preset)
        scheme, marking = found.scheme, marking or found.marking_at
        if network.get("pfc") is CHAIN_PFC:
            network = {**network, "pfc": with_chains_threshold(found.network.get("pfc"))}
        network = {**found.network, **network}
    elif preset is not None:
        raise InputError("preset: belongs to a scheme given by name; write scheme='hpcc', or leave out preset")
    if isinstance(scheme, type):
        raise InputError(f"scheme: {scheme.__name__} is the class of its parameters; write {scheme.__name__}()")
    if not hasattr(scheme, "feedback_delay"):
        raise InputError(f"scheme: expected a scheme's parameters, not {repr(scheme)[:40]}; write DCQCN() or 'dcqcn'")
    if feedback_delay is not None:
        scheme = dataclasses.replace(scheme, feedback_delay=feedback_delay)
    return scheme, marking, network


def with_chains_threshold(pfc: PFC | None) -> PFC:
    """Flow control with the threshold of ACC's chain, which is part of that topology, whatever the preset's is."""
    return CHAIN_PFC if pfc is None else dataclasses.replace(pfc, xoff=CHAIN_PFC.xoff)


def marking_of(marking: Marking, scheme: Any, rate: Any) -> RED | None:
    """Marking of a link of some rate; with TCD, if the scheme needs that."""
    if isinstance(marking, type):
        raise InputError(f"marking: {marking.__name__} is a class; write RED('5KB', '200KB', 0.01)")
    if marking is None:
        found = scheme.default_marking
    else:
        found = marking(rate) if callable(marking) else marking
    if not getattr(scheme, "tcd", False) or (found is not None and found.max_on is not None):
        return found
    return _TCD if found is None else dataclasses.replace(found, mark_on="departure", max_on=_TCD.max_on)


def assembled(links: Sequence[Link], flows: Sequence[Flow], network: dict[str, Any]) -> Scenario:
    """The resolved scenario; ``network`` holds further fields of `Scenario` and ``loss`` of the links: `NETWORK`.

    Raises
    ------
    InputError
        If a value cannot be read or is out of range.
    """
    if "loss" in network:
        loss = network["loss"]
        links = [dataclasses.replace(link, loss=loss) for link in links]
        network = {name: value for name, value in network.items() if name != "loss"}
    return resolve(Scenario(tuple(links), tuple(flows), **network))
