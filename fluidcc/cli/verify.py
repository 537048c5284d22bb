"""``fluidcc verify``."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from fluidcc.cli import options as o
from fluidcc.cli import output

EXAMPLES = (
    "fluidcc verify --list",
    "fluidcc verify hpcc-a2-finite",
)


def command(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME ...]", help="Claims; all by default.", autocompletion=o.complete_claims),
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="Only list the claims.")] = False,
    json: o.Json = False,
) -> int:
    """Check the papers' claims and say which hold.

    Exit status 1 if one is undecided.
    """
    from fluidcc.proofs.verdict.registry import check, choose, list_claims
    from fluidcc.proofs.verdict.report import print_results

    if listed:
        known = list_claims()
        if json:
            output.print_json({"claims": [one.as_dict() for one in known.values()]})
        else:
            rows = [(one.name, f"{one.paper}, {one.section}: {one.text}") for one in known.values()]
            output.print_table("claims", rows)
        return 0
    chosen = choose(names or ())
    if json:
        results = list(check(chosen))
        output.print_json({"claims": [result.as_dict() for result in results]})
    else:
        results = print_results(check(chosen, progress=not sys.stdout.isatty()))
    return 0 if all(result.finding.agrees for result in results) else 1
