"""Scenarios as TOML: what ``--save-scenario`` writes and ``--topology FILE`` reads.

Rates and long times are written with their suffix, ``"5000000000.0B/s"``, and other quantities as SI numbers. Files of
format 1, of a time when that was not needed, hold rates as SI numbers, and are read so; in format 2 a rate without one
is refused.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import tomllib
from pathlib import Path
from typing import Any

import tomli_w

from fluidcc import units
from fluidcc.contract import registry
from fluidcc.errors import InputError
from fluidcc.files import read_bounded, write_atomically
from fluidcc.scenario.model import PFC, RED, Failure, Flow, Link, Scenario, Storm, TrafficClass, resolve
from fluidcc.scenario.parameters import Spec, specs
from fluidcc.scenario.routing import check_paths
from fluidcc.surface import nearest, public
from fluidcc.units import RATE, TIME, Rate, refuse_bare_rate

_FORMATS = (1, 2)
_LARGEST = 1 << 25  # bytes; 30 000 flows in a fat tree take a third of this


def to_toml(scenario: Scenario) -> str:
    """Write a resolved scenario as TOML; a scheme that flows share is written once."""
    schemes: list[Any] = []
    flows = []
    for flow in scenario.flows:
        if flow.scheme not in schemes:
            schemes.append(flow.scheme)
        flows.append(
            {
                "name": flow.name,
                "path": [scenario.links[i].name or f"link {i}" for i in flow.path],
                "scheme": schemes.index(flow.scheme),
                **_names(flow),
                **_values(flow),
                **({"after": list(flow.after), "after_what": flow.after_what} if flow.after else {}),
            }
        )
    links = []
    for i, link in enumerate(scenario.links):
        marking = {} if link.marking is None else {"marking": _values(link.marking)}
        links.append({"name": link.name or f"link {i}", **_names(link), **_values(link), **marking})
    document = {
        "fluidcc_scenario": _FORMATS[-1],
        **_values(scenario),
        **({} if scenario.pfc is None else {"pfc": _values(scenario.pfc)}),
        "class": [_values(each) for each in scenario.classes],
        "failure": [{"link": each.link, **_values(each)} for each in scenario.failures],
        "storm": [{"link": each.link, **_values(each)} for each in scenario.storms],
        "link": links,
        "scheme": [{"name": scheme.name, **_values(scheme)} for scheme in schemes],
        "flow": flows,
    }
    # A sweep's values are NumPy's, which compare with an empty list as an empty array.
    return tomli_w.dumps({key: value for key, value in document.items() if not isinstance(value, list) or value})


def _names(part: Link | Flow) -> dict[str, str]:
    """Names of the nodes at a link's or a flow's ends, if it has any."""
    return {key: name for key in ("source", "target") if (name := getattr(part, key))}


def _values(part: Any) -> dict[str, Any]:
    def text(value: Any, spec: Spec) -> Any:
        if value is None:
            return spec.none_word
        if isinstance(value, str) or spec.dimension not in (RATE, TIME) or math.isinf(value):
            return value
        if spec.dimension == TIME:
            return f"{float(value)!r}s" if units.is_long(value) else value
        return f"{float(value)!r}B/s"

    return {name: text(getattr(part, name), spec) for name, spec in specs(part).items()}


def from_toml(text: str, source: str = "scenario") -> Scenario:
    """Read a scenario; quantities may be text with units.

    Raises
    ------
    InputError
        If it is no TOML, a table or key is missing or unknown, a value is out of range, or a path is broken.
    """
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # TOMLDecodeError, or an integer beyond Python's limit
        raise InputError(f"{source}: is not TOML ({error}); start from a file that --save-scenario wrote") from None
    found = document.pop("fluidcc_scenario", None)
    if found not in _FORMATS or isinstance(found, bool):
        expected = f"fluidcc_scenario = {_FORMATS[-1]}"
        raise InputError(f"{source}: has no line '{expected}'; start from what --save-scenario wrote")
    if found == 1:
        _mark_rates(document)
    tables = {name: _tables(document.pop(name, None), name, source) for name in ("link", "scheme", "flow")}
    links = tuple(_link(table, f"{source}: link {i}") for i, table in enumerate(tables["link"]))
    names = [link.name or f"link {i}" for i, link in enumerate(links)]
    schemes = [_scheme(table, f"{source}: scheme {i}") for i, table in enumerate(tables["scheme"])]
    flows = tuple(_flow(table, names, schemes, f"{source}: flow {i}") for i, table in enumerate(tables["flow"]))
    made = _made(Scenario, document, source, links=links, flows=flows, **_switches(document, f"{source}:"))
    try:
        scenario = resolve(made)
        check_paths(scenario)
    except InputError as error:
        raise InputError(f"{source}: {error}") from None
    return scenario


def _mark_rates(document: dict[str, Any]) -> None:
    """Mark the plain rates of a file of format 1: they are in bytes/s."""
    for name, part in (("link", Link), ("flow", Flow), ("scheme", None)):
        tables = document.get(name)
        for table in tables if isinstance(tables, list) else ():
            if not isinstance(table, dict):
                continue  # refused later, with its place
            for key, spec in specs(part or _scheme_class(table)).items():
                value = table.get(key)
                if spec.dimension == RATE and isinstance(value, (int, float)) and not isinstance(value, bool):
                    with contextlib.suppress(OverflowError):  # an integer beyond floats is refused later
                        table[key] = Rate(value)


def _scheme_class(table: dict[str, Any]) -> Any:
    """Parameters of a scheme's table; any others if it names none, which is refused later."""
    try:
        return registry.scheme(table.get("name", "")).Parameters
    except (InputError, TypeError):
        return Link


@public()
def save_scenario(scenario: Scenario, path: str | Path) -> None:
    """Write a scenario to a file, whole or not at all.

    Parameters
    ----------
    scenario : Scenario
        Values may still be text.
    path : str or Path
        Of a TOML file.

    Raises
    ------
    InputError
        If a value cannot be read or is out of range, or the file cannot be written.
    """
    text = to_toml(resolve(scenario))
    write_atomically(path, text.encode())


@public()
def load_scenario(path: str | Path) -> Scenario:
    """Read a scenario file.

    Parameters
    ----------
    path : str or Path
        What `save_scenario` or ``--save-scenario`` wrote, or written by hand; of any version.

    Returns
    -------
    Scenario

    Raises
    ------
    InputError
        If it cannot be read or is no scenario.
    """
    try:
        raw = read_bounded(path, _LARGEST)
        text = "" if len(raw) > _LARGEST else raw.decode()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise InputError(f"{path}: cannot be read ({reason}); give a file that --save-scenario wrote") from None
    if len(raw) > _LARGEST:
        raise InputError(f"{path}: is larger than {_LARGEST:,} bytes; give a file that --save-scenario wrote")
    return from_toml(text, str(path))


def _tables(value: Any, name: str, source: str) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not value or not all(isinstance(row, dict) for row in value):
        raise InputError(f"{source}: has no [[{name}]] table; write at least one")
    return [dict(row) for row in value]


def _switches(document: dict[str, Any], where: str) -> dict[str, Any]:
    """PFC, classes, failures and storms, taken out of the document; only those that it gives."""
    found: dict[str, Any] = {}
    if (pfc := document.pop("pfc", None)) is not None:
        if not isinstance(pfc, dict):
            raise InputError(f'{where} pfc is no table; write [pfc], and under it for example xoff = "512KB"')
        found["pfc"] = _made(PFC, pfc, f"{where} pfc")
    if "class" in document:
        rows = _tables(document.pop("class"), "class", where)
        found["classes"] = tuple(_made(TrafficClass, row, f"{where} class {i}") for i, row in enumerate(rows))
    for name, key, kind in (("failure", "failures", Failure), ("storm", "storms", Storm)):
        if name in document:
            found[key] = tuple(
                _made(kind, row, f"{where} {name} {i}", link=_text(row, "link", f"{where} {name} {i}"))
                for i, row in enumerate(_tables(document.pop(name), name, where))
            )
    return found


def _made(cls: Any, table: dict[str, Any], where: str, **given: Any) -> Any:
    known = specs(cls)
    unknown = [key for key in table if key not in known]
    if unknown:
        near = nearest(unknown[0], known)
        hint = f"did you mean {near}?" if near else f"known are {', '.join(known)}"
        raise InputError(f"{where}: unknown key {_told(unknown[0])}; {hint}")
    missing = [
        f.name
        for f in dataclasses.fields(cls)
        if f.name in known and f.default is dataclasses.MISSING and f.name not in table
    ]
    if missing:
        raise InputError(
            f"{where}: {missing[0]} is missing; write for example {missing[0]} = {_example(cls, missing[0])}"
        )
    for key, value in table.items():
        if known[key].dimension == RATE:
            refuse_bare_rate(value, f"{where} {key}")
    try:
        return cls(**table, **given)
    except InputError as error:  # of its constructor, which knows no file
        raise InputError(f"{where}: {error}") from None


def _told(value: Any) -> str:
    """A value of a file, in a message: it may be of any length."""
    told = repr(value)
    return told if len(told) <= 60 else f"{told[:56]} ..."


def _example(cls: Any, name: str) -> str:
    return {"bytes/s": '"40Gbps"', "bytes": '"5KB"', "s": '"1us"'}.get(specs(cls)[name].dimension, "1")


def _link(table: dict[str, Any], where: str) -> Link:
    marking = table.pop("marking", None)
    if marking is not None and not isinstance(marking, dict):
        raise InputError(f"{where}: marking is no table; write marking = {{kmin = ..., kmax = ..., pmax = ...}}")
    red = None if marking is None else _made(RED, marking, f"{where} marking")
    return _made(Link, table, where, marking=red, **_texts(table, where))


def _texts(table: dict[str, Any], where: str) -> dict[str, str]:
    return {key: _text(table, key, where) for key in ("name", "source", "target")}


def _text(table: dict[str, Any], key: str, where: str) -> str:
    text = table.pop(key, "")
    if not isinstance(text, str):
        raise InputError(f"{where}: {key} {_told(text)} is not text; write it in quotes")
    return text


def _scheme(table: dict[str, Any], where: str) -> Any:
    name = _text(table, "name", where)
    try:
        cls = registry.scheme(name).Parameters
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    return _made(cls, table, where)


def _flow(table: dict[str, Any], links: list[str], schemes: list[Any], where: str) -> Flow:
    path, index = table.pop("path", None), table.pop("scheme", 0)
    if not isinstance(path, list) or not all(hop in links for hop in path):
        some = ", ".join(_told(name) for name in links[:10]) + (", ..." if len(links) > 10 else "")
        raise InputError(f"{where}: path {_told(path)} does not name links; write a list of {some}")
    if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < len(schemes):
        raise InputError(f"{where}: scheme {_told(index)} is none of the {len(schemes)} written; count from 0")
    hops = tuple(links.index(hop) for hop in path)
    waits = {key: table.pop(key) for key in ("after", "after_what") if key in table}
    return _made(Flow, table, where, path=hops, scheme=schemes[index], **_texts(table, where), **waits)
