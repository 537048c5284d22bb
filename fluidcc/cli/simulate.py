"""``fluidcc simulate``."""

from __future__ import annotations

import dataclasses
import sys
import warnings
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fluidcc import units
from fluidcc.cli import options as o
from fluidcc.cli import output
from fluidcc.cli.request import Request, scenarios_of
from fluidcc.compiling.settings import SOURCE
from fluidcc.errors import InputError

if TYPE_CHECKING:
    from fluidcc.results.trace import Trace
    from fluidcc.scenario.model import Scenario

EXAMPLES = (
    "fluidcc simulate dcqcn --flows 2 --start 0,10ms --plot two.png",
    "fluidcc simulate hpcc --flows 16 --until 2ms --engine packet --json",
)
_MOST_SHOWN = 8


@o.takes_scenario
def command(
    request: Request,
    save_scenario: o.Save = None,
    until: o.Until = "200ms",
    window: o.Window = None,
    engine: o.Engine = "fluid",
    seed: Annotated[int | None, typer.Option(help="Seed of the random numbers; the fluid has none.")] = None,
    dt: o.Step = None,
    rtol: o.Tolerance = None,
    method: o.MethodName = "heun",
    dtype: o.Dtype = "float64",
    sample_interval: o.SampleInterval = None,
    out: Annotated[str | None, typer.Option(metavar="FILE.nc", help="Write the trace.")] = None,
    plot: Annotated[str | None, typer.Option(metavar="FILE.png", help="Draw queue and rates.")] = None,
    log: Annotated[
        bool, typer.Option("--log", help="Keep every event of every packet in --out (packet engine).")
    ] = False,
    json: o.Json = False,
) -> None:
    """Run one scenario and print its metrics.

    --out keeps the trace, --plot draws it.

    Where --from names devices and the NIC's MTU is not known, packets of 1024 and 4096 bytes are both run, and the
    worse is shown.
    """
    if log and out is None:
        raise InputError("--log: the log goes into the trace; say where with --out FILE.nc")
    output.check_outputs(out=(out, output.TRACE), plot=(plot, output.PICTURE))
    scenarios = scenarios_of(request)
    output.save_scenario(scenarios[0], save_scenario)
    from fluidcc.engines.run import simulate

    traces = [
        simulate(
            scenario,
            until,
            window=window,
            engine=engine,
            seed=seed,
            dt=dt,
            rtol=rtol,
            method=method,
            dtype=dtype,
            sample_interval=sample_interval,
            log=log,
        )
        for scenario in scenarios
    ]
    worst = max(range(len(traces)), key=lambda k: _badness(traces[k]))
    scenario, trace = scenarios[worst], traces[worst]
    if worst:
        output.save_scenario(scenario, save_scenario)
    if len(traces) > 1:
        for one, found in zip(scenarios, traces, strict=True):
            shown = " (shown)" if found is trace else ""
            output.tell(f"packets of {float(one.packet_size):g} B{shown}: {_in_short(found)}")
    if out is not None:  # a name that is no UTF-8 must not keep the trace from being written
        command = " ".join(["fluidcc", *sys.argv[1:]]).encode(errors="backslashreplace").decode()
        trace.dataset.attrs["command"] = command
        trace.save(out)
    if plot is not None:
        trace.plot().write(plot)
    if engine == "fluid":
        _say_flow_control(request, scenario)
    _say_below_packet(request, scenario)
    _say_beyond(trace.summary, scenario.buffer, engine)
    if json:
        output.print_json(trace.summary | output.packets_of(scenario))
    else:
        _print(request, trace.summary, trace.dataset.attrs["dt_s"] if engine == "fluid" else None, rtol)


def _badness(trace: Trace) -> tuple[float, float]:
    """Rank runs: less of the link used, by more than a percent, is worse; of equals a longer queue is."""
    found = trace.summary
    return -round(found["utilisation"] or 0.0, 2), found["queue_bytes"]["p99"] or 0.0


def _in_short(trace: Trace) -> str:
    queue = trace.summary["queue_bytes"]["p99"]
    return f"utilisation {_share(trace.summary['utilisation'])}, p99 of the queue {_size(queue)}"


def _say_flow_control(request: Request, scenario: Scenario) -> None:
    """Warn of flow control that was asked for and that the fluid leaves out."""
    from fluidcc.engines.fluid.network import controls_flow
    from fluidcc.scenario.model import PFC, resolve

    given = [name for name in request.values() if name == "pfc" or name in {f.name for f in dataclasses.fields(PFC)}]
    resolved = resolve(scenario)
    if given and resolved.pfc is not None and not controls_flow(resolved):
        text = f"{', '.join(given)}: without effect in the fluid, which pauses nobody here; write --engine packet"
        warnings.warn_explicit(text, UserWarning, SOURCE, 1, module="fluidcc")


def _say_below_packet(request: Request, scenario: Scenario) -> None:
    """Warn of a Kmin that was typed and is below a packet, as kilobytes without their unit are."""
    given, packet = request.values().get("kmin"), units.quantity(scenario.packet_size, units.SIZE)
    kmin = None if given is None else units.quantity(given, units.SIZE, "kmin")
    if kmin is not None and kmin < packet:
        text = (
            f"kmin: {units.show(kmin, units.SIZE)} is below a packet of {units.show(packet, units.SIZE)}; plain "
            "numbers are bytes: write for example kmin=5KB"
        )
        warnings.warn_explicit(text, UserWarning, SOURCE, 1, module="fluidcc")


def _say_beyond(summary: dict[str, Any], buffer: Any, engine: str) -> None:
    """Warn of a queue beyond the buffer, which PAUSEs or losses would keep from growing."""
    buffer = units.quantity(buffer, units.SIZE)
    longest = max(each["queue_bytes"]["max_whole_run"] or 0.0 for each in summary["links"])
    if engine != "packet" and longest > buffer:
        text = (
            f"buffer: in the {engine} a queue comes to {units.show(longest, units.SIZE)}, beyond the "
            f"{units.show(buffer, units.SIZE)} that there are: what PAUSEs or losses make of it is left out; write "
            "--engine packet"
        )
        warnings.warn_explicit(text, UserWarning, SOURCE, 1, module="fluidcc")


def _print(request: Request, summary: dict[str, Any], step: float | None, rtol: float | None) -> None:
    def rate(value: float | None) -> str:
        return "undefined" if value is None else units.show(value, units.RATE)

    queue = summary["queue_bytes"]
    opens, closes = (units.show(t, units.TIME) for t in summary["window_s"])
    rates = [rate(r) for r in summary["rate_bytes_per_s"]]
    times = ["unfinished" if t is None else units.show(t, units.TIME) for t in summary.get("fct_s", [])]
    rows = [
        ("queue mean", f"{_size(queue['mean'])} (std {_size(queue['std'])})"),
        ("queue p5, p50, p95, p99", ", ".join(_size(queue[p]) for p in ("p5", "p50", "p95", "p99"))),
        ("queue max", f"{_size(queue['max'])} ({_size(queue['max_whole_run'])} in the whole run)"),
        ("utilisation", _share(summary["utilisation"])),
        ("rate per flow", _listed(rates)),
        ("rate gap, Jain", f"{rate(summary['rate_gap_bytes_per_s'])}, {_share(summary['jain'])}"),
    ]
    if times:
        rows.append(("completion", _listed(times)))
    if error := summary.get("discretisation_error"):
        text = f"queue {output.small(error['queue_rel'])}, rates {output.small(error['rate_rel'])}"
        rows.append(("error of the step", text))
        if error["as_expected"] is False and step is not None:
            finer = f"--dt {units.show(step / 4, units.TIME)}" if rtol is None else f"--rtol {rtol / 10:g}"
            rows.append(("", f"{output.NOT_SHRUNK}; try {finer}"))
    counts = [(name, summary[name]) for name in ("events", "packets", "cnps", "pfc_pauses", "drops") if name in summary]
    # What only some runs have is shown where it is there.
    counts += [(name, summary[name]) for name in ("trims", "retransmissions") if summary.get(name)]
    words = {"pfc_pauses": "PFC pauses", "cnps": "CNPs", "trims": "trimmed", "retransmissions": "sent again"}
    rows += [(words.get(name, name), f"{count:,}") for name, count in counts]
    for name, text in (("above_xoff", "time beyond PFC's XOFF"), ("above_buffer", "time beyond the buffer")):
        if summary.get(name) is not None:
            rows.append((text, f"{summary[name]:.2%}; the hybrid goes on without flow control and drops"))
    if summary.get("pfc"):
        rows += _flow_control(summary["pfc"])
    rows.append(("time", f"{summary['wall_s']:.2f} s, compiling {summary['compile_s']:.2f} s"))
    output.print_table(f"{request.title}, {summary['flows']} flows, {opens} to {closes}", rows)


def _flow_control(found: dict[str, Any]) -> list[tuple[str, str]]:
    """Return rows on flow control: who was paused, how far pauses spread, and whether there is a deadlock."""
    received = [f"{node} {count:,}" for node, count in found["pauses_received"].items() if count]
    if not received:
        return []
    hops = max(hops for hops, count in enumerate(found["depths"], 1) if count)
    rows = [
        ("paused", _listed(received)),
        ("pauses spread", f"{hops} hops, {found['suppressed']['mean']:.1%} of all ports' rates suppressed"),
    ]
    if found["deadlock_s"] is not None:
        rows.append(("deadlock", f"since {units.show(found['deadlock_s'], units.TIME)}: {found['deadlock']}"))
    return rows


def _listed(values: list[str]) -> str:
    """Join all values; of more than eight, list the distinct ones, and at most eight of them."""
    if len(values) > _MOST_SHOWN:
        values = list(dict.fromkeys(values))
    more = len(values) - _MOST_SHOWN
    return ", ".join(values[:_MOST_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _size(value: float | None) -> str:
    return "undefined" if value is None else units.show(value, units.SIZE)


def _share(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.4f}"
