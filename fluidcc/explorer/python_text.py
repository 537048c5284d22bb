"""The Python that makes what the explorer shows."""

from __future__ import annotations

import math

from fluidcc.explorer.answers import Chart
from fluidcc.explorer.settings import MARKING, NETWORK, SCHEME, Setting
from fluidcc.explorer.views import seeds_of

_GIVEN = "# scenario: the one that was handed in"


def python_of(setting: Setting, chart: Chart | None = None, *, hybrid: bool = False) -> str:
    """A program that makes the same scenario, runs and chart.

    Parameters
    ----------
    setting : Setting
    chart : Chart
        Drawn too, if it has points.
    hybrid : bool
        Whether the hybrid runs in addition to the fluid.
    """
    scenario = _given(setting) if setting.given is not None else _built(setting)
    until = setting.text("until")
    lines = [
        *scenario,
        "",
        f'trace = fc.simulate(scenario, until="{until}")',
        'trace.plot().write("fluid.png")',
    ]
    if hybrid:
        lines += [
            f'hybrid = fc.ensemble(scenario, until="{until}", seeds={seeds_of(setting.scenario())}, engine="hybrid")',
            'fc.compare(trace, hybrid).plot().write("hybrid.png")',
        ]
    if chart is not None and chart.root.size:
        lines += [*_roots(setting, chart)]
    program = "\n".join(["import fluidcc as fc", "", *lines]) + "\n"
    return ("import dataclasses\n\n" if "dataclasses." in program else "") + program


def _changes(setting: Setting, home: str) -> str:
    """``name="text"`` of what was moved, with commas before each."""
    names = [name for name, _ in setting.values if setting.knobs[name].home == home]
    return "".join(f", {name}={_literal(setting, name)}" for name in names)


def _literal(setting: Setting, name: str) -> str:
    """Format a value as Python: its text, except infinity, which constructors do not read from text."""
    return 'float("inf")' if setting.value(name) == math.inf else f'"{setting.text(name)}"'


def _given(setting: Setting) -> list[str]:
    scheme, marking = _changes(setting, SCHEME), _changes(setting, MARKING)
    network = _changes(setting, NETWORK)
    lines = [_GIVEN]
    if scheme:
        lines += [
            f"scheme = dataclasses.replace(scenario.flows[0].scheme{scheme})",
            "flows = tuple(dataclasses.replace(flow, scheme=scheme) for flow in scenario.flows)",
            "scenario = dataclasses.replace(scenario, flows=flows)",
        ]
    if marking:
        lines += [
            f"marking = dataclasses.replace(scenario.links[0].marking{marking})",
            "links = tuple(dataclasses.replace(link, marking=marking) for link in scenario.links)",
            "scenario = dataclasses.replace(scenario, links=links)",
        ]
    return lines + ([f"scenario = dataclasses.replace(scenario{network})"] if network else [])


def _built(setting: Setting) -> list[str]:
    """Lines that make a scenario of the setting's topology."""
    scheme, marking = _changes(setting, SCHEME), _changes(setting, MARKING)
    lines = [f'preset = fc.preset("{setting.scheme}", "{setting.preset}")']
    lines.append(f"scheme = dataclasses.replace(preset.scheme{scheme})" if scheme else "scheme = preset.scheme")
    options = ["scheme=scheme"]
    if _marks(setting):
        rate = setting.knobs["rate"]
        base = f'preset.marking_at("{rate.text(rate.default)}")'
        if setting.knobs["kmin"].default is None:
            lines.append(f"marking = fc.RED({marking.removeprefix(', ')})")
        else:
            lines.append(f"marking = dataclasses.replace({base}{marking})" if marking else f"marking = {base}")
        options.append("marking=marking")
    options.append(_network(setting))
    common = f'rate="{setting.text("rate")}", delay="{setting.text("delay")}"'
    if setting.topology == "parking-lot":
        builder, first = "parking_lot", f"{setting.value('links') + 1:.0f}, multiplicity={setting.value('flows'):g}"
    elif setting.value("late") == 0:
        builder, first = "incast", f"1, multiplicity={setting.value('flows'):g}"
    else:
        late = setting.value("late")
        early = setting.value("flows") - late
        starts = f'["0s", "{setting.text("late_start")}"]'
        builder, first = "incast", f"2, multiplicity=[{early:g}, {late:g}], start={starts}"
    return [*lines, f"scenario = fc.{builder}(", f"    {first},", f"    {common},", f"    {', '.join(options)},", ")"]


def _marks(setting: Setting) -> bool:
    """Check whether marking is given: a builder adds marking for a scheme that needs it, and so does this text."""
    return setting.knobs["kmin"].default is not None or "kmin" in dict(setting.values)


def _network(setting: Setting) -> str:
    """The preset's packets, with what was moved of them."""
    moved = [
        f'"{name}": {_literal(setting, name)}' for name, _ in setting.values if setting.knobs[name].home == NETWORK
    ]
    return f"**{{**preset.network, {', '.join(moved)}}}" if moved else "**preset.network"


def _roots(setting: Setting, chart: Chart) -> list[str]:
    """Lines that draw the roots, and a chart over its two axes where these are the scheme's or marking's."""
    lines = ['fc.linearize(scenario).plot().write("roots.png")']
    names = [name for name in chart.names if setting.knobs[name].home != SCHEME and name != "flows"]
    if names or setting.given is not None or setting.topology != "incast":
        return lines
    over = {name: f"[{', '.join(f'{value:.6g}' for value in axis)}]" for name, axis in
            zip(chart.names, (chart.x, chart.y), strict=True)}  # fmt: skip
    flows = "flows" if "flows" in chart.names else f"{setting.value('flows'):g}"
    moved = ", ".join(f"{name}={name}" for name in chart.names if name != "flows")
    parts = ["scheme=dataclasses.replace(scheme" + (f", {moved}" if moved else "") + ")"]
    parts += ["marking=marking"] if _marks(setting) else []
    return [
        *lines,
        "chart = fc.studies.stability_chart(",
        f"    lambda {', '.join(chart.names)}: fc.incast(",
        f'        1, multiplicity={flows}, rate="{setting.text("rate")}", delay="{setting.text("delay")}",',
        f"        {', '.join(parts)}, {_network(setting)},",
        "    ),",
        "    over={",
        *(f'        "{name}": {values},' for name, values in over.items()),
        "    },",
        ")",
        'chart.plot().write("chart.png")',
    ]
