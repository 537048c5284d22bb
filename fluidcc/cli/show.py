"""``fluidcc show``."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fluidcc import units
from fluidcc.cli import options as o
from fluidcc.cli import output

if TYPE_CHECKING:
    from fluidcc.contract.preset import Preset

EXAMPLES = (
    "fluidcc show dcqcn",
    "fluidcc show hpcc --preset hpcc-sim --json",
)


def command(scheme: o.Scheme, preset: o.NamedPreset = "paper", json: o.Json = False) -> None:
    """List parameters with unit, default, symbol and source."""
    from fluidcc.contract.registry import preset as preset_of

    rows = _rows(preset_of(scheme, preset))
    if json:
        output.print_json({"scheme": scheme, "preset": preset, "parameters": rows})
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{scheme}, preset {preset}", title_justify="left", box=None)
    for column in ("name", "default", "symbol", "meaning", "source"):
        table.add_column(column)
    for row in rows:
        table.add_row(row["name"], _shown(row["default"], row["unit"]), row["symbol"], row["meaning"], row["source"])
    Console().print(table)


def _rows(preset: Preset) -> list[dict[str, Any]]:
    """Scheme, marking and network of a preset: what --set takes."""
    from fluidcc.scenario.model import PFC, RED, Link, Scenario
    from fluidcc.scenario.parameters import Spec, convert, specs

    def row(name: str, value: Any, spec: Spec) -> dict[str, Any]:
        return {
            "name": name,
            "unit": spec.dimension,
            "default": spec.none_word or None if value is None else value,
            "symbol": spec.symbol,
            "source": spec.source,
            "meaning": spec.doc,
        }

    def fields(owner: Any, values: Mapping[str, Any]) -> list[dict[str, Any]]:
        given = {name: (values[name], spec) for name, spec in specs(owner).items()}
        return [row(n, v if v is None else convert(v, spec, n), spec) for n, (v, spec) in given.items()]

    def defaults(owner: Any) -> dict[str, Any]:
        return {f.name: None if f.default is dataclasses.MISSING else f.default for f in dataclasses.fields(owner)}

    scheme, marking, pfc = preset.scheme, preset.marking_at(preset.scheme.default_rate), preset.network.get("pfc")
    on = Spec("on|off", "priority flow control of all switches", source="DCQCN 4")
    return [
        *fields(scheme, vars(scheme)),
        *fields(RED, vars(marking) if marking else dict.fromkeys(specs(RED))),
        *fields(Scenario, defaults(Scenario) | dict(preset.network)),
        row("loss", 0.0, specs(Link)["loss"]),
        row("pfc", pfc is not None, on),
        *fields(PFC, vars(pfc or PFC())),
    ]


def _shown(value: Any, unit: str) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    return value if isinstance(value, str) else units.show(value, unit, 6)
