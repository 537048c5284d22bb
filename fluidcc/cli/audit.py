"""``fluidcc audit``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from fluidcc.cli import options as o
from fluidcc.cli import output

if TYPE_CHECKING:
    from fluidcc.operators.audit import Audit


def command(
    sonic: Annotated[str, typer.Option(metavar="FILE", help="The switch's config_db.json.")],
    nic: Annotated[str | None, typer.Option(metavar="FILE|DIR", help="The NIC's DCQCN settings.")] = None,
    port: o.Port = None,
    flows: Annotated[int, typer.Option(help="Flows that converge on the port.")] = 8,
    json: o.Json = False,
) -> None:
    """Check a switch port's and a NIC's DCQCN settings, and say what to change."""
    from fluidcc.operators.audit import audit

    found = audit(sonic, nic, port=port, flows=flows)
    if json:
        output.print_json(found.as_dict())
        return
    print_audit(found)


def print_audit(found: Audit) -> None:
    """Print an audit for a person."""
    from rich.console import Console
    from rich.padding import Padding

    from fluidcc.units import RATE, SIZE, show

    console = Console(highlight=False)
    port = found.switch
    console.print(
        f"[bold]{port.name}[/], {show(port.rate, RATE)}, queue {port.queue}" + (", lossless" if port.lossless else "")
    )
    if port.kmin is not None and port.kmax is not None and port.pmax is not None:
        console.print(
            f"  {port.profile}: Kmin {show(port.kmin, SIZE)}, Kmax {show(port.kmax, SIZE)}, Pmax {port.pmax:.3g}"
        )
    for row in found.mapping:
        note = f"  ({row.note})" if row.note else ""
        console.print(f"  {row.nic} = {row.raw} -> {row.parameter} {row.value:.6g}{note}")
    colours = {"bad": "red", "warn": "yellow", "ok": "green"}
    for finding in found.findings:
        console.print(f"[{colours[finding.severity]}]{finding.severity:>4}[/] [bold]{finding.what}[/]")
        console.print(Padding(finding.why, (0, 0, 0, 5)))
        if finding.suggest:
            console.print(Padding(f"-> {finding.suggest}", (0, 0, 0, 5)))
    ignored = [*port.ignored, *(found.nic.ignored if found.nic else ())]
    if ignored:
        console.print(f"[dim]not used by the model ({len(ignored)}):[/]")
        for line in ignored:
            console.print(Padding(line, (0, 0, 0, 5)), style="dim", markup=False)
