"""A scenario for people: links and flows that are alike in one line, and only what differs from the defaults.

Tables that notebooks show are plain HTML, with every text escaped, since names are the user's.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Any

from fluidcc import units
from fluidcc.errors import InputError
from fluidcc.scenario.parameters import Spec, convert, specs

_MOST = 4  # lines of links, and of flows, in a repr
_FEW = 3  # of a kind, which are named
_LONGEST = 40  # characters of a name


def summary_of(scenario: Any) -> str:
    """A few lines: ``repr``."""
    rows = [f"  {label}: {text}" for label, text in rows_of(scenario, _MOST)]
    return "\n".join([f"<Scenario: {_counted(scenario)}", *rows]) + ">"


def html_of(scenario: Any) -> str:
    """The same as a table."""
    return table(f"Scenario: {_counted(scenario)}", rows_of(scenario, 4 * _MOST))


def rows_of(scenario: Any, most: int) -> list[tuple[str, str]]:
    """List the lines of the display: links, flows, and settings that are not the default."""
    links = _grouped(enumerate(scenario.links), lambda at: _link_text(at[1]))
    rows = [(_named(group, "link"), text) for text, group in links.items()]
    schemes = {id(flow.scheme): flow.scheme for flow in scenario.flows}
    texts = {key: set_text(scheme) for key, scheme in schemes.items()}
    flows = _grouped(enumerate(scenario.flows), lambda at: f"{texts[id(at[1].scheme)]}, {_flow_kind(at[1])}")
    lines = [(_times(group), _flows_text(kind, group)) for kind, group in flows.items()]
    rows = [*_cut(rows, most), *_cut(lines, most)]
    settings = changes_of(scenario)
    if scenario.pfc is not None:
        settings.append(f"pfc={set_text(scenario.pfc)}")
    if len(scenario.classes) > 1:
        settings.append(f"{len(scenario.classes)} traffic classes")
    settings += [f"{set_text(each)} of {name_text(each.link)}" for each in (*scenario.failures, *scenario.storms)]
    return [*rows, *([("set", ", ".join(settings))] if settings else [])]


# -- parameter sets ------------------------------------------------------------------------------------------


def set_text(parameters: Any) -> str:
    """A parameter set as it would be written: its class, and what differs from the default."""
    changes = ", ".join(changes_of(parameters))
    return type(parameters).__name__ + (f"({changes})" if changes else "")


def changes_of(parameters: Any) -> list[str]:
    """``name=value`` of each parameter that is not the default."""
    defaults = {field.name: field.default for field in dataclasses.fields(parameters)}
    found = []
    for name, spec in specs(parameters).items():
        now, default = value_text(getattr(parameters, name), spec), value_text(defaults[name], spec)
        if now != default:
            found.append(f"{name}={now}")
    return found


def value_text(value: Any, spec: Spec) -> str:
    """A parameter's value with its unit, whether it is resolved, still text, or traced."""
    try:
        value = convert(value, spec, "value")
    except InputError:
        return name_text(str(value))
    if value is None:
        return spec.none_word or "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, str):
        return name_text(value)
    if units.is_concrete(value):
        return units.show(float(value), spec.dimension, 6)
    return "traced" if getattr(value, "ndim", 0) == 0 else f"{value.shape} values"


def name_text(name: str) -> str:
    """A user's name on one line, and no longer than that."""
    name = name if name.isprintable() else ascii(name)
    return name if len(name) <= _LONGEST else name[: _LONGEST - 3] + "..."


# -- groups --------------------------------------------------------------------------------------------------


def _grouped(items: Iterable[Any], key: Callable[[Any], str]) -> dict[str, list[Any]]:
    groups: dict[str, list[Any]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def _cut(rows: list[tuple[str, str]], most: int) -> list[tuple[str, str]]:
    return rows if len(rows) <= most else [*rows[: most - 1], ("...", f"{len(rows) - most + 1} more kinds")]


def _named(group: list[tuple[int, Any]], what: str) -> str:
    names = [name_text(each.name or f"{what} {at}") for at, each in group[:_FEW]]
    return ", ".join(names) if len(group) <= _FEW else f"{len(group)} {what}s"


def _link_text(link: Any) -> str:
    of = specs(link)
    marking = [] if link.marking is None else [set_text(link.marking)]
    return ", ".join([value_text(link.rate, of["rate"]), value_text(link.delay, of["delay"]), *marking])


def _flow_kind(flow: Any) -> str:
    of = specs(flow)
    own = f", class {value_text(flow.traffic_class, of['traffic_class'])}" if _number(flow.traffic_class) else ""
    return f"line rate {value_text(flow.line_rate, of['line_rate'])}{own}"


def _flows_text(kind: str, group: list[tuple[int, Any]]) -> str:
    """Describe what flows of a kind have in common, and the ranges of what differs."""
    flows = [flow for _, flow in group]
    starts, sizes, rates = ([getattr(flow, name) for flow in flows] for name in ("start", "size", "initial_rate"))
    of, parts = specs(flows[0]), [kind]
    if any(_number(start) != 0 for start in starts):
        parts.append(f"start {_range(starts, of['start'])}")
    if any(_number(size) != math.inf for size in sizes):
        parts.append(f"size {_range(sizes, of['size'])}")
    if any(rate is not None and rate != flow.line_rate for rate, flow in zip(rates, flows, strict=True)):
        parts.append(f"initial rate {_range(rates, of['initial_rate'])}")
    hops = sorted({len(flow.path) for flow in flows})
    if hops != [1]:
        parts.append(f"{hops[0]} links" if len(hops) == 1 else f"{hops[0]} to {hops[-1]} links")
    return ", ".join(parts)


def _range(values: list[Any], spec: Spec) -> str:
    """Format one value, or the least and the largest."""
    numbers = [_number(value) for value in values]
    if any(number is None for number in numbers):
        texts = list(dict.fromkeys(value_text(value, spec) for value in values))
        return texts[0] if len(texts) == 1 else f"{texts[0]}, {texts[1]}" + (", ..." if len(texts) > 2 else "")
    ends = [value_text(end(values, key=float), spec) for end in (min, max)]
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


def _number(value: Any) -> float | None:
    return float(value) if units.is_concrete(value) else None


def _count(flows: Iterable[Any]) -> float | None:
    counts = [_number(flow.multiplicity) for flow in flows]
    return None if any(count is None for count in counts) else math.fsum(count or 0.0 for count in counts)


def _times(group: list[tuple[int, Any]]) -> str:
    count = _count(flow for _, flow in group)
    if len(group) == 1 and count == 1:
        return _named(group, "flow")
    return _named(group, "flow") if count is None else f"{count:g} flows"


def _counted(scenario: Any) -> str:
    count, links = _count(scenario.flows), len(scenario.links)
    kinds = len(scenario.flows)
    flows = f"{kinds} class{'es' * (kinds != 1)} of flows" if count is None else f"{count:g} flow{'s' * (count != 1)}"
    return f"{flows}, {links} link{'s' * (links != 1)}"


# -- tables in notebooks -----------------------------------------------------------------------------------

_CELL = "text-align:left;vertical-align:top;padding:2px 12px 2px 0"


def table(title: str, rows: Sequence[Sequence[Any]], header: Sequence[str] = ()) -> str:
    """A compact table; the first column is bold. Titles and cells are text, never HTML."""
    head = "".join(f'<th style="{_CELL}">{escape(str(cell))}</th>' for cell in header)
    body = "".join(
        "<tr>"
        + "".join(
            f'<{"th" if k == 0 else "td"} style="{_CELL}">{escape(str(cell))}</{"th" if k == 0 else "td"}>'
            for k, cell in enumerate(row)
        )
        + "</tr>"
        for row in rows
    )
    top = f"<thead><tr>{head}</tr></thead>" if header else ""
    return f"<div><strong>{escape(title)}</strong><table>{top}<tbody>{body}</tbody></table></div>"


def folded(title: str, content: str) -> str:
    """HTML that opens on a click; ``content`` is HTML."""
    return f"<details><summary>{escape(title)}</summary>{content}</details>"
