"""``fluidcc sweep``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from fluidcc.cli import options as o
from fluidcc.cli import output
from fluidcc.cli.request import Request, scenario_of
from fluidcc.errors import InputError

if TYPE_CHECKING:
    from fluidcc.studies.sweeps import SweepResult

EXAMPLES = (
    "fluidcc sweep dcqcn --over kmin=5KB:80KB:6 --over g=1/1024,1/256,1/64",
    "fluidcc sweep dcqcn --over flows=2:16:8 --until 50ms --plot flows.png",
)
_HANDED = "the hybrid does not hold there (marks of single packets slow the flows, or the buffer is full)"


@o.takes_scenario
def command(
    request: Request,
    over: Annotated[
        list[str],
        typer.Option(
            metavar="NAME=VALUES",
            help="Values of a parameter: a:b:n, log:a:b:n or v1,v2; repeat.",
            autocompletion=o.complete_parameters,
        ),
    ],
    save_scenario: o.Save = None,
    until: o.Until = "200ms",
    window: o.Window = None,
    dt: o.Step = None,
    rtol: o.Tolerance = None,
    method: o.MethodName = "heun",
    dtype: o.Dtype = "float64",
    metric: Annotated[str, typer.Option(help="Metric that the best point is chosen by.")] = "queue_bytes.mean",
    minimise: Annotated[bool, typer.Option("--minimise/--maximise", help="Direction of the metric.")] = True,
    subject_to: Annotated[
        list[str] | None,
        typer.Option(
            metavar="METRIC>=VALUE",
            help="Constraint on the best point, also with <=; repeat. A queue's default: utilisation>=0.98, jain>=0.9.",
        ),
    ] = None,
    engine: o.Engine = "fluid",
    seeds: Annotated[int | None, typer.Option(help="Runs of each point (hybrid, packet); 8 by default.")] = None,
    precision: Annotated[
        float | None, typer.Option(help="Add seeds until the mean queue's relative standard error is at most this.")
    ] = None,
    store: Annotated[
        str | None, typer.Option(metavar="DIR.zarr", help="Store finished points, so that --resume can continue.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue from the store.")] = False,
    scheduler: Annotated[
        str | None,
        typer.Option(
            "--scheduler", "--dask", metavar="tcp://HOST:PORT", help="Run on the workers of a Dask scheduler."
        ),
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Memory that the sweep may use; half of the machine's by default."),
    ] = None,
    out: Annotated[str | None, typer.Option(metavar="FILE", help="Write the table, .nc or .csv.")] = None,
    plot: Annotated[str | None, typer.Option(metavar="FILE.png", help="Draw the metric over the swept values.")] = None,
    json: o.Json = False,
) -> None:
    """Run a scenario at every combination of some values.

    The best point is printed; --out keeps all.
    """
    if resume and store is None:
        raise InputError("--resume: there is no store to go on with; write --store DIR.zarr beside it")
    output.check_outputs(out=(out, output.TABLE), plot=(plot, output.PICTURE))
    axes = _axes(request, over)
    from fluidcc.results.schema import METRICS
    from fluidcc.studies.sweeps import sweep
    from fluidcc.studies.sweeps.result import constraints_of, feasible, parse_constraint
    from fluidcc.surface import one_of

    if metric not in METRICS:
        raise InputError(f"--metric: {metric[:40]!r} is unknown; {one_of(metric, METRICS)}")
    bounds = None if subject_to is None else [parse_constraint(text, "--subject-to") for text in subject_to]
    if save_scenario is not None:
        output.save_scenario(scenario_of(request), save_scenario)
    result = sweep(
        lambda **values: scenario_of(request, values),
        axes,
        until=until,
        window=window,
        dt=dt,
        rtol=rtol,
        method=method,
        dtype=dtype,
        store=store,
        resume=resume,
        dask=scheduler,
        memory=memory,
        engine=engine,
        seeds=seeds,
        precision=precision,
    )
    if out is not None:
        result.save(out)
    constraints = constraints_of(result.dataset, bounds, metric, minimise=minimise)
    if plot is not None:
        result.plot(metric, minimise=minimise, subject_to=constraints).write(plot)
    attrs = result.dataset.attrs
    best = result.best(metric, minimise=minimise, subject_to=constraints)
    document = {
        "points": result.points,
        "failed": result.failed,
        "reasons": result.reasons,
        "compile_s": attrs["compile_s"],
        "wall_s": attrs["wall_s"],
        "points_per_s": attrs["points_per_s"],
        "metrics": list(METRICS),
        "best": best,
        "subject_to": [str(each) for each in constraints],
        "feasible": int(feasible(result.dataset, constraints).sum()),
        "at_end": at_end(best, axes),
        "discretisation_error": _step_error(attrs) if engine == "fluid" else None,
        "store": store,
    }
    if engine != "fluid":
        handed = int((result["by_packets"] > 0).sum()) if engine == "hybrid" else 0
        document |= {"engine": engine, "seeds": int(result["seeds"].max()), "by_packets": handed}
        if best["value"] is not None:
            at = {name: best[name] for name in result.names}
            found = result.dataset.sel(at, method="nearest")
            best |= {
                f"{name}_se": _number(found[f"{name}_se"]) for name in dict.fromkeys((metric, "utilisation", "jain"))
            }
    if json:
        output.print_json(document)
    else:
        _print(request.title, document, result)


def _number(value: Any) -> float | None:
    """A float, or None for NaN."""
    return None if bool(value.isnull()) else float(value)


def at_end(best: dict[str, Any], axes: dict[str, Any]) -> list[str]:
    """Names whose best value is the least or the largest that was tried: a wider range may have a better one."""
    return [
        name
        for name, values in axes.items()
        if len(values) > 1 and best[name] is not None and best[name] in (min(values), max(values))
    ]


def _step_error(attrs: dict[str, Any]) -> dict[str, Any]:
    """Return the step error of the sampled points."""
    shrinks = attrs["discretisation_error.as_expected"]
    found = {k: attrs[f"discretisation_error.{k}"] for k in ("queue_rel", "rate_rel")}
    return found | {"as_expected": None if shrinks != shrinks else bool(shrinks)}


def _axes(request: Request, over: list[str]) -> dict[str, Any]:
    from fluidcc.builders.names import SHAPES, check_name
    from fluidcc.studies.sweeps.grid import parse_axis

    axes: dict[str, Any] = {}
    for text in over:
        name, equals, values = text.partition("=")
        name = name.strip()
        if not equals or not values.strip():
            raise InputError(f"--over: {text[:60]!r} is no NAME=VALUES; write for example --over g=1/1024:1/16:9")
        if name in SHAPES:
            raise InputError(f"--over: {name} changes the shape of the problem; run fluidcc once for each value")
        spec = check_name(request.scheme, name, "--over")
        if spec.static:
            raise InputError(f"--over: {name} selects other equations; run fluidcc once for each value")
        if name in axes:
            raise InputError(f"--over: {name} is given twice; put all values in one")
        axes[name] = parse_axis(values.strip(), spec.dimension, f"--over {name}")
        broken = [float(value) for value in axes[name] if value % 1 != 0] if spec.integer else []
        if broken:
            raise InputError(f"--over {name}: {broken[0]:g} is no whole number; write for example --over {name}=2,4,8")
    return axes


def _print(heading: str, document: dict[str, Any], result: SweepResult) -> None:
    from fluidcc.builders.names import format_value

    rate = document["points_per_s"]
    rows = [
        ("points", f"{document['points']:,}, {document['failed']:,} failed"),
        *((f"  {word}", f"{count:,}") for word, count in document["reasons"].items()),
        *_best(document, result),
    ]
    if document["at_end"]:
        ends = ", ".join(f"{name} = {format_value(name, document['best'][name])}" for name in document["at_end"])
        rows.append(("at the end of its range", f"{ends}: a wider range may have a better value"))
    if error := document["discretisation_error"]:
        step = [output.small(error[k]) for k in ("queue_rel", "rate_rel")]
        from fluidcc.studies.sweeps.batch import SAMPLED

        tried = min(document["points"] - document["failed"], SAMPLED)
        of = "largest of all points" if "queue_error_rel" in result.dataset else f"{tried} points"
        rows.append(("error of the step", f"queue {step[0]}, rates {step[1]} ({of})"))
        rows += [("", output.NOT_SHRUNK)] if error["as_expected"] is False else []
    rows += [
        *([("seeds", f"{document['seeds']} of each point, {document['engine']}")] if "seeds" in document else []),
        *(
            [("run by packets", f"{document['by_packets']:,} of {document['points']:,} points: {_HANDED}")]
            if document.get("by_packets")
            else []
        ),
        ("time", f"{document['wall_s']:.1f} s, {rate:,.0f} points/s, compiling {document['compile_s']:.1f} s"),
    ]
    output.print_table(f"{heading}, sweep over {', '.join(result.names)}", rows)


def _best(document: dict[str, Any], result: SweepResult) -> list[tuple[str, str]]:
    """The best point with what it costs, or how near the others come to the constraints."""
    from fluidcc.builders.names import format_value
    from fluidcc.results.schema import METRICS
    from fluidcc.studies.sweeps.result import SHOWN
    from fluidcc.units import show

    def text(name: str, value: float) -> str:
        return show(value, METRICS[name][0])

    best, bounds = document["best"], " and ".join(document["subject_to"])
    title = f"best {best['metric']}"
    if document["failed"] == document["points"]:
        return [(title, "every point failed")]
    if best["value"] is None:
        ranges = [
            f"{name} from {text(name, float(result[name].min()))} to {text(name, float(result[name].max()))}"
            for name in dict.fromkeys(
                (*SHOWN, *(each.partition("=")[0].rstrip("<>") for each in document["subject_to"]))
            )
        ]
        return [(title, f"no point keeps {bounds}; {', '.join(ranges)}")]
    others = [name for name in SHOWN if name != best["metric"]]

    def valued(name: str, value: float) -> str:
        error = best.get(f"{name}_se")
        return text(name, value) + (f" +- {text(name, error)}" if error is not None else "")

    rows = [
        (title, valued(best["metric"], best["value"])),
        *((f"  at {name}", format_value(name, best[name])) for name in result.names),
        *((f"  {name}", valued(name, best[name])) for name in others),
    ]
    if bounds:
        rows.append(("  subject to", f"{bounds}: {document['feasible']:,} of {document['points']:,} points"))
    return rows
