"""``fluidcc sweep``."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from fluidcc.cli import options as o
from fluidcc.cli import output
from fluidcc.cli.names import SHAPES, check_name
from fluidcc.cli.request import Request, scenario_of
from fluidcc.errors import InputError


@o.takes_scenario
def command(
    request: Request,
    over: Annotated[list[str], typer.Option(metavar="NAME=VALUES", help="a:b:n, log:a:b:n or v1,v2; repeat.")],
    save_scenario: o.Save = None,
    until: o.Until = "200ms",
    window: o.Window = None,
    dt: o.Step = None,
    method: o.MethodName = "heun",
    dtype: o.Dtype = "float64",
    metric: Annotated[str, typer.Option(help="Metric that the best point is chosen by.")] = "queue_bytes.mean",
    minimise: Annotated[bool, typer.Option("--minimise/--maximise", help="What is best.")] = True,
    store: Annotated[str | None, typer.Option(metavar="DIR.zarr", help="Keep each chunk as it is done.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the store.")] = False,
    dask: Annotated[str | None, typer.Option(metavar="ADDRESS", help="Run on a Dask scheduler.")] = None,
    out: Annotated[str | None, typer.Option(metavar="FILE", help="Write the table, .nc or .csv.")] = None,
    plot: Annotated[str | None, typer.Option(metavar="FILE.png", help="Draw the metric.")] = None,
    json: o.Json = False,
) -> None:
    """Run a scenario at every combination of some values; the best is printed, --out keeps all."""
    axes = _axes(request, over)
    from fluidcc.results.schema import METRICS
    from fluidcc.sweeps import sweep

    if metric not in METRICS:
        raise InputError(f"--metric: {metric[:40]!r} is unknown; write one of {', '.join(METRICS)}")
    if save_scenario is not None:
        output.save_scenario(scenario_of(request), save_scenario)
    result = sweep(
        lambda **values: scenario_of(request, values),
        axes,
        until=until,
        window=window,
        dt=dt,
        method=method,
        dtype=dtype,
        store=store,
        resume=resume,
        dask=dask,
    )
    if out is not None:
        result.save(out)
    if plot is not None:
        result.plot(metric, minimise=minimise).write(plot)
    attrs = result.dataset.attrs
    document = {
        "points": result.points,
        "failed": result.failed,
        "compile_s": attrs["compile_s"],
        "wall_s": attrs["wall_s"],
        "points_per_s": attrs["points_per_s"],
        "metrics": list(METRICS),
        "best": result.best(metric, minimise=minimise),
        "discretisation_error": {k: attrs[f"discretisation_error.{k}"] for k in ("queue_rel", "rate_rel")},
        "store": store,
    }
    if json:
        output.print_json(document)
    else:
        _print(request.scheme, document, result.names)


def _axes(request: Request, over: list[str]) -> dict[str, Any]:
    from fluidcc.sweeps.grid import parse_axis

    axes: dict[str, Any] = {}
    for text in over:
        name, equals, values = text.partition("=")
        name = name.strip()
        if not equals or not values.strip():
            raise InputError(f"--over: {text[:60]!r} is no NAME=VALUES; write for example --over g=1/1024:1/16:9")
        if name in SHAPES:
            raise InputError(f"--over: {name} changes the shape of the problem; run fluidcc once for each value")
        dimension = check_name(request.scheme, name, "--over")
        if dimension in ("on|off", "choice"):
            raise InputError(f"--over: {name} selects other equations; run fluidcc once for each value")
        if name in axes:
            raise InputError(f"--over: {name} is given twice; put all values in one")
        axes[name] = parse_axis(values.strip(), dimension, f"--over {name}")
    return axes


def _print(scheme: str, document: dict[str, Any], names: list[str]) -> None:
    from fluidcc.results.schema import METRICS
    from fluidcc.sweeps.grid import format_value
    from fluidcc.units import show

    best = document["best"]
    value = best["value"]
    unit = METRICS[best["metric"]][0]
    step = [output.small(document["discretisation_error"][k]) for k in ("queue_rel", "rate_rel")]
    rate = document["points_per_s"]
    rows = [
        ("points", f"{document['points']:,}, {document['failed']:,} failed"),
        (f"best {best['metric']}", "every point failed" if value is None else show(value, unit)),
        *((f"  at {name}", format_value(name, best[name])) for name in names if value is not None),
        ("error of the step", f"queue {step[0]}, rates {step[1]} (16 points)"),
        ("time", f"{document['wall_s']:.1f} s, {rate:,.0f} points/s, compiling {document['compile_s']:.1f} s"),
    ]
    output.print_table(f"{scheme}, sweep over {', '.join(names)}", rows)
