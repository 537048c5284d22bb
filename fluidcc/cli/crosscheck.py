"""``fluidcc crosscheck``."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fluidcc import units
from fluidcc.cli import options as o
from fluidcc.cli import output
from fluidcc.cli.request import Request, scenario_of
from fluidcc.errors import InputError

if TYPE_CHECKING:
    from fluidcc.results.comparison import Comparison

EXAMPLES = (
    "fluidcc crosscheck hpcc --flows 16 --plot both.png",
    "fluidcc crosscheck dcqcn --flows 8 --engines hybrid,packet --until 50ms",
)
_MOST_SEEDS = 10_000
_PAIRS = (("fluid", "packet"), ("hybrid", "packet"), ("fluid", "hybrid"))


@o.takes_scenario
def command(
    request: Request,
    save_scenario: o.Save = None,
    engines: Annotated[
        str, typer.Option(metavar="A,B", help="Two engines, of fluid, hybrid and packet.")
    ] = "fluid,packet",
    seeds: Annotated[int, typer.Option(help="Runs of each engine that draws random marks, with seeds 1, 2, ...")] = 8,
    until: o.OwnUntil = None,
    window: o.Window = None,
    dt: o.Step = None,
    sample_interval: o.SampleInterval = None,
    plot: Annotated[str | None, typer.Option(metavar="FILE.png", help="Draw both engines in one picture.")] = None,
    json: o.Json = False,
) -> int:
    """Compare two engines on one scenario.

    Exit status 1 if they disagree, or if no difference has a tolerance.
    """
    if not 1 <= seeds <= _MOST_SEEDS:
        raise InputError(f"--seeds: expected a whole number from 1 to {_MOST_SEEDS}, not {seeds}")
    pair = tuple(name.strip() for name in engines.split(","))
    if pair not in _PAIRS:
        known = " or ".join(",".join(each) for each in _PAIRS)
        raise InputError(f"--engines: {engines[:40]!r} is no pair; write {known}")
    if seeds == 1 and "fluid" not in pair:
        raise InputError("--seeds: one run of each has no standard error to judge by; write 2 or more")
    if dt is not None and "fluid" not in pair:
        raise InputError("--dt: belongs to the fluid, which is not among --engines; leave it out")
    output.check_outputs(plot=(plot, output.PICTURE))
    scenario = scenario_of(request)
    output.save_scenario(scenario, save_scenario)
    from fluidcc.contract.registry import scheme_of, shared_functions
    from fluidcc.engines.run import ensemble, simulate
    from fluidcc.results.comparison import compare, horizon

    until = until or horizon(scenario)
    options: dict[str, Any] = {"window": window, "sample_interval": sample_interval}
    sides = [
        simulate(scenario, until, dt=dt, **options)
        if engine == "fluid"
        else ensemble(scenario, until, seeds, engine=engine, **options)
        for engine in pair
    ]
    comparison = compare(*sides)
    if plot is not None:
        comparison.plot().write(plot)
    schemes = {known.name: known for known in (scheme_of(flow.scheme) for flow in scenario.flows)}
    shared = sorted({name for known in schemes.values() for name in shared_functions(known, *pair)})
    if json:
        output.print_json(comparison.as_dict() | {"shared": shared} | output.packets_of(scenario))
    else:
        _print(comparison, shared)
    return 0 if comparison.within else 1


def _print(comparison: Comparison, shared: list[str]) -> None:
    from rich.console import Console
    from rich.table import Table

    found = comparison.as_dict()
    sides = [found[part] for part in (*comparison.engines, "spread")]
    queues = [next(row["queue_bytes"] for row in side["links"] if row["name"] == found["link"]) for side in sides[:2]]
    place = [row["name"] for row in sides[0]["links"]].index(found["link"])
    queues.append(sides[2]["links"][place]["queue_bytes"])

    def cells(parts: list[dict[str, Any]], name: str, dimension: str) -> list[str]:
        ours, theirs, over = (part.get(name) for part in parts)
        told = ["none" if value is None else units.show(value, dimension) for value in (ours, theirs)]
        return [*told, units.show(over["std"], dimension, 2) if over else ""]

    lines = {
        "queue_mean_rel": ("queue mean", cells(queues, "mean", units.SIZE)),
        "queue_p95_rel": ("queue p95", cells(queues, "p95", units.SIZE)),
        "queue_peak_rel": ("queue peak", cells(queues, "max_whole_run", units.SIZE)),
        "drain_time_rel": ("queue drained at", cells(sides, "drain_time_s", units.TIME)),
        "rate_rel_max": ("rates, worst flow", ["", "", ""]),
        "window_rel": ("window", cells(sides, "window_bytes", units.SIZE)),
        "jain_abs": ("Jain", cells(sides, "jain", units.RATIO)),
        "settling_time_rel": ("rates equal after", cells(sides, "settling_time_s", units.TIME)),
    }
    title = f"{sides[0]['scheme']}, {sides[0]['flows']} flows, {len(sides[1]['seeds'])} seeds, queue of {found['link']}"
    table = Table(title=title, title_justify="left", box=None)
    names = ("packets" if engine == "packet" else engine for engine in comparison.engines)
    for column in ("", *names, "std of seeds", "difference", "allowed", ""):
        table.add_column(column)
    for key, (name, values) in lines.items():
        off, allowed = comparison.difference[key], found["tolerance"].get(key)
        verdict = "" if allowed is None or off is None else "ok" if off <= allowed else "[bold red]differs"
        share = (
            ""
            if off is None
            else "one only"
            if off == math.inf
            else f"{off:.4f}"
            if key == "jain_abs"
            else f"{off:.2%}"
        )
        table.add_row(name, *values, share, "" if allowed is None else f"{allowed:.0%}", verdict)
    console = Console()
    console.print(table)
    if (worst := comparison.worst_not_judged) is not None and found["within"] is not None:
        judged = ", ".join(lines[key][0] for key in comparison.judged)
        off = "one only" if worst[1] == math.inf else f"{worst[1]:.2%}"
        console.print(f"judged: {judged}; without a tolerance, {lines[worst[0]][0]} differs most: {off}")
    if found["within"] is None:
        why = "nothing that has a tolerance could be compared" if found["tolerance"] else "no tolerance is set"
        console.print(f"[bold red]not judged[/]: {why} for this scenario; read the differences yourself")
    said = f"both engines call {', '.join(shared)}: their agreement does not test these" if shared else ""
    console.print(said or "the two engines share no function of the scheme", markup=False, highlight=False)
