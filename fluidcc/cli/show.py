"""``fluidcc show``."""

from __future__ import annotations

from typing import Any

from fluidcc import units
from fluidcc.cli import options as o
from fluidcc.cli import output
from fluidcc.errors import InputError


def command(scheme: o.Scheme, preset: o.Preset = "paper", json: o.Json = False) -> None:
    """List every parameter with its unit, default, symbol and source."""
    from fluidcc.parameters import resolve, specs
    from fluidcc.schemes.dispatch import package

    presets = package(scheme).PRESETS
    if preset not in presets:
        raise InputError(f"--preset: {scheme} has no {preset[:40]!r}; write one of {', '.join(presets)}")
    rows = []
    for part in presets[preset][:2]:
        if part is None:
            continue
        part = resolve(part)
        for name, spec in specs(part).items():
            value = getattr(part, name)
            rows.append(
                {
                    "name": name,
                    "unit": spec.dimension,
                    "default": spec.none_word if value is None else value,
                    "symbol": spec.symbol,
                    "source": spec.source,
                    "meaning": spec.doc,
                }
            )
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


def _shown(value: Any, unit: str) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return value if isinstance(value, str) else units.show(value, unit, 6)
