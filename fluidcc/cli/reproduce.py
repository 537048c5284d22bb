"""``fluidcc reproduce``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from fluidcc import units
from fluidcc.cli import options as o
from fluidcc.cli import output
from fluidcc.errors import InputError

if TYPE_CHECKING:
    from fluidcc.proofs.verdict.figure import Result

EXAMPLES = (
    "fluidcc reproduce list",
    "fluidcc reproduce dcqcn-fig11a --quick --out out",
)


def command(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="list|NAME",
            help="A figure such as dcqcn-fig11a; list names all.",
            autocompletion=o.complete_figures,
        ),
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="List the figures.")] = False,
    out: Annotated[str, typer.Option(metavar="DIR", help="Folder for picture and data.")] = "out",
    quick: Annotated[bool, typer.Option("--quick", help="Fewer values and coarser steps.")] = False,
    json: o.Json = False,
) -> int:
    """Draw a paper's figure again, and compare its numbers.

    Exit status 1 if they disagree, or if the runs' interval leaves both answers possible.
    """
    from fluidcc.proofs.verdict.figure import status
    from fluidcc.proofs.verdict.registry import list_figures as known
    from fluidcc.proofs.verdict.registry import reproduce

    if name is None and not listed:
        raise InputError("NAME: no figure is named; write fluidcc reproduce --list, then fluidcc reproduce NAME")
    if name is None or name == "list":
        figures = [{"name": f.name, "paper": f.paper, "figure": f.figure} for f in known().values()]
        if json:
            output.print_json({"figures": figures})
        else:
            output.print_table("figures", [(f["name"], f"{f['paper']}, {f['figure']}") for f in figures])
        return 0
    result = reproduce(name, out, quick=quick)
    if json:
        output.print_json(result.as_dict() | {"status": status(result.as_dict())})
    else:
        _print(result)
    return 0 if result.agrees else 1


def _print(result: Result) -> None:
    from rich.console import Console
    from rich.table import Table

    from fluidcc.proofs.verdict.figure import AGREES, status, undecided

    console = Console()
    table = Table(
        title=f"{result.figure.paper}, {result.figure.figure}", title_justify="left", box=None, pad_edge=False
    )
    for column in ("value", "found", "expected", "within", ""):
        table.add_column(column)
    for name, value in result.values.items():
        text, dimension = _named(name)
        check = result.expected.get(name)
        if check is None:
            table.add_row(text, _shown(value, dimension))
            continue
        within = _shown(check.tolerance, dimension, 2) if check.tolerance else ""
        differs = "[yellow]not decided" if undecided(result.values, name) else "[bold red]differs"
        verdict = "ok" if check.holds(value) else differs
        table.add_row(text, _shown(value, dimension), _shown(check.value, dimension), within, verdict)
    console.print(table)
    for note in result.notes:
        console.print(f"note: {note}", highlight=False)
    for path in (each for each in result.files if each.exists()):  # not what no disk took
        console.print(f"wrote {path}", highlight=False, soft_wrap=True)
    said = status(result.as_dict())
    console.print(said, style=None if said == AGREES else "bold red")


def _named(name: str) -> tuple[str, str]:
    """A value's name in words, and its dimension."""
    for ending, dimension in (("_bytes_per_s", units.RATE), ("_bytes", units.SIZE), ("_s", units.TIME)):
        if name.endswith(ending):
            return name.removesuffix(ending).replace("_", " "), dimension
    return name.replace("_", " "), units.RATIO


def _shown(value: Any, dimension: str, digits: int = 7) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return units.show(value, dimension, digits)
