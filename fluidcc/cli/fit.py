"""``fluidcc fit``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from fluidcc.cli import options as o
from fluidcc.cli import output
from fluidcc.cli.request import Request, payload_of, scenario_of
from fluidcc.errors import InputError

if TYPE_CHECKING:
    from fluidcc.studies.fitting import Fit, Shares

EXAMPLES = (
    "fluidcc simulate dcqcn --flows 4 --engine hybrid --out measured.nc",
    "fluidcc fit dcqcn --flows 4 --trace measured.nc --over g=1/1024:1/16",
)


@o.takes_scenario
def command(
    request: Request,
    over: Annotated[
        list[str],
        typer.Option(
            metavar="NAME=LO:HI", help="Unknown parameter and its range; repeat.", autocompletion=o.complete_parameters
        ),
    ],
    trace: Annotated[
        str | None, typer.Option(metavar="FILE", help="Measured queue or rates: .nc, or .csv with a line of names.")
    ] = None,
    counters: o.Counters = None,
    before: o.Before = None,
    interval: o.Interval = None,
    workload: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Workload during the counters; by default --flows long-lived flows."),
    ] = None,
    save_scenario: o.Save = None,
    window: Annotated[
        str | None, typer.Option(metavar="A:B", help="Interval to fit; by default all (fluid), or the second half.")
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(help="hybrid, fluid or packet; by default hybrid for dcqcn, else fluid."),
    ] = None,
    link: Annotated[str | None, typer.Option(help="Link whose queue was measured.")] = None,
    runs: Annotated[
        int | None, typer.Option(help="Simulations that estimate moments; by default 700 with the hybrid, else 300.")
    ] = None,
    plot: Annotated[str | None, typer.Option(metavar="FILE.png", help="Draw measurement and fit.")] = None,
    json: o.Json = False,
) -> None:
    """Estimate unknown parameters from measurements.

    Takes a queue, rates or counters; gives 95 % intervals.
    """
    output.check_outputs(plot=(plot, output.PICTURE))
    unknowns = _unknowns(request, over)
    of_counters = {"--before": before, "--interval": interval, "--workload": workload}
    given = next((option for option, value in of_counters.items() if value), None)
    if counters is None and given is not None:
        raise InputError(f"{given}: it is of counters, and none are given; write --counters FILE")
    if (trace is None) == (counters is None):
        raise InputError("--trace, --counters: give what was measured as one of the two")
    measured = trace if counters is None else _shares(request, counters, before or [], interval, workload)
    from fluidcc.studies.fitting.fit import fit

    if save_scenario is not None:
        output.save_scenario(scenario_of(request), save_scenario)
    found = fit(
        measured,
        lambda **values: scenario_of(request, values),
        unknowns,
        window=window,
        engine=engine,
        link=link,
        runs=runs,
    )
    if plot is not None:
        found.plot().write(plot)
    if json:
        output.print_json(found.as_dict())
    else:
        _print(request.title, found)


def _shares(
    request: Request, counters: list[str], before: list[str], interval: str | None, workload: str | None
) -> Shares:
    """Shares that were counted of the ports that are set like the one that is meant."""
    from fluidcc.cli.request import is_switch
    from fluidcc.operators.config_db import ConfigDB
    from fluidcc.operators.counted import shares_of
    from fluidcc.operators.counters import read_growth
    from fluidcc.studies.fitting import Shares
    from fluidcc.units import TIME, quantity

    if not request.ports:
        raise InputError(
            "--counters: the switch's file says which ports and queue are meant; write --from config_db.json"
        )
    seconds = None if interval is None else quantity(interval, TIME, "interval")
    read = read_growth(counters, before, seconds)
    switch = next(source for source in request.sources or [] if is_switch(source))
    return Shares(**shares_of(read, request.ports, [*ConfigDB.all(switch)], payload_of(request), seconds, workload))


def _unknowns(request: Request, over: list[str]) -> dict[str, Any]:
    from fluidcc import units
    from fluidcc.builders.names import SHAPES, check_name

    found: dict[str, Any] = {}
    for text in over:
        name, equals, ends = text.partition("=")
        name, parts = name.strip(), ends.split(":")
        if not equals or len(parts) != 2:
            raise InputError(f"--over: {text[:60]!r} is no NAME=LO:HI; write for example --over timer=20us:500us")
        if name in SHAPES or name == "flows":
            raise InputError(f"--over: {name} changes the shape of the problem; run fluidcc once for each value")
        spec = check_name(request.scheme, name, "--over")
        if spec.static:
            raise InputError(f"--over: {name} selects other equations; run fluidcc once for each value")
        if name in found:
            raise InputError(f"--over: {name} is given twice; give one range")
        if name in request.values():
            raise InputError(f"--over: {name} is held by --set, and unknown; leave one of the two out")
        found[name] = tuple(units.parse(part, spec.dimension, f"--over {name}") for part in parts)
    return found


def _print(scheme: str, found: Fit) -> None:
    rows = list(found.rows)
    rows += [
        (name, f"{share['counted']:.3%} counted, {share['fitted']:.3%} fitted") for name, share in found.shares.items()
    ]
    rows.append(("residual", f"{found.residual:.2f}"))
    rows += [("", word) for word in found.words]
    rows.append(("runs", f"{found.runs:,}, {found.engine}"))
    output.print_table(f"{scheme}, fit of {', '.join(found.estimate)}", rows)
