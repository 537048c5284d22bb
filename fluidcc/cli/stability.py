"""``fluidcc stability``."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fluidcc import units
from fluidcc.cli import options as o
from fluidcc.cli import output
from fluidcc.cli.request import Request, scenario_of
from fluidcc.errors import InputError

if TYPE_CHECKING:
    from fluidcc.scenario.model import Scenario
    from fluidcc.theory.control.fixed_point import Equilibrium
    from fluidcc.theory.control.stability import Stability

EXAMPLES = (
    "fluidcc stability dcqcn --flows 2:20 --plot margins.png",
    "fluidcc stability dcqcn --flows 8 --delay 20us",
)
_MOST_POINTS = 10_000
_WIDTH = 100  # characters: a row fits


@o.takes_scenario
def command(
    request: Request,
    flows: Annotated[
        str | None,
        typer.Option(metavar="N|A:B|N,N,...", help="Numbers of senders; by default 2, or the scenario file's."),
    ] = None,
    plot: Annotated[str | None, typer.Option(metavar="FILE.png", help="Draw roots and margins over flows.")] = None,
    at: Annotated[
        int,
        typer.Option(
            min=0,
            help="Equilibrium: 0 has equal shares; 1, 2, ... are the others that fluidcc equilibrium lists.",
        ),
    ] = 0,
    json: o.Json = False,
) -> None:
    """Compute whether the fixed point is stable.

    Prints exact characteristic roots, margins and critical delay.
    """
    counts = [None] if flows is None else counts_of(flows)
    if any(text.partition("=")[0].strip() == "flows" for text in request.sets or []):
        raise InputError("--set: flows are given by --flows here; write for example --flows 2:20")
    output.check_outputs(plot=(plot, output.PICTURE))
    scenarios = [scenario_of(dataclasses.replace(request, flows=count)) for count in counts]
    from fluidcc.progress import Bar
    from fluidcc.theory.control.stability import stability

    points = []
    with Bar("finding roots", len(scenarios), "points") as bar:
        for done, scenario in enumerate(scenarios, 1):
            points.append(stability(scenario, at=_chosen(scenario, at)))
            bar(done / len(scenarios))
    if plot is not None:
        from fluidcc.plotting.stability import plot_stability

        plot_stability(points, title=f"{request.scheme}: stability of the fixed point").write(plot)
    if json:
        output.print_json({"points": [point.as_dict() for point in points]})
    else:
        _print(request.title, points)


def _chosen(scenario: Scenario, at: int) -> Equilibrium | None:
    if at == 0:
        return None
    from fluidcc.theory.control.equilibrium import equilibrium

    others = equilibrium(scenario).others
    if at > len(others):
        flows = f"{sum(flow.multiplicity for flow in scenario.flows):g} flows"
        known = f"equilibria 0 to {len(others)}" if others else "no equilibrium beside 0"
        raise InputError(f"--at: {at}: {flows} have {known}; see them with fluidcc equilibrium")
    return others[at - 1]


def counts_of(text: str) -> list[int]:
    """Numbers of flows from ``8``, ``2:20`` (ends inclusive) or ``2,8,32``.

    Raises
    ------
    InputError
        If it is none of these.
    """
    if re.fullmatch(r"\d{1,6}:\d{1,6}", text):
        first, last = map(int, text.split(":"))
        counts = list(range(first, last + 1))
    elif re.fullmatch(r"\d{1,6}(,\d{1,6})*", text):
        counts = [int(part) for part in text.split(",")]
    else:
        raise InputError(f"--flows: {text[:40]!r} is no list of numbers; write for example 8, 2:20 or 2,8,32")
    if not counts or min(counts) < 1 or len(counts) > _MOST_POINTS:
        raise InputError(f"--flows: {text[:40]!r}: give 1 to {_MOST_POINTS} numbers, from 1 flow on")
    return counts


def _print(scheme: str, points: list[Stability]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{scheme}: stability of the fixed point", box=None, title_justify="left")
    for name in ("flows", "stable", "root [1/s]", "phase", "published", "gain", "delay", "critical", "queue std"):
        table.add_column(name, justify="right", no_wrap=True)
    for point in points:
        root = point.rightmost_root
        table.add_row(
            f"{point.flows:g}",
            "?" if point.stable is None else ("yes" if point.stable else "no") + ("" if point.on_ramp else "*"),
            "" if root is None else f"{root.real:.4g}" + (f"±{root.imag:.4g}i" if root.imag else ""),
            _number(point.phase_margin, "°"),
            _number(point.paper_phase_margin, "°"),
            _number(point.gain_margin, " dB"),
            _time(point.delay_margin),
            _time(point.critical_feedback_delay),
            _deviation(point),
        )
    console = Console(width=max(Console().width, _WIDTH))
    console.print(table)
    if any(point.rightmost_root is not None for point in points):
        console.print(
            "phase, gain, delay: margins of the loop, opened at the queue; critical: largest stable feedback delay"
        )
    if any(point.queue_std_bytes is not None for point in points):
        console.print("queue std: standard deviation of the queue caused by random marks, to first order")
    if any(not point.on_ramp and point.stable is not None for point in points):
        console.print("* no fixed point on the RED ramp: values are those of its line extended beyond kmax")
    for state in dict.fromkeys(point.state for point in points if point.state != "ok"):
        counts = ", ".join(f"{point.flows:g}" for point in points if point.state == state)
        console.print(f"flows {counts}: {state}")
    for why in dict.fromkeys(point.queue_std_state for point in points if point.stable is not None):
        counts = ", ".join(f"{point.flows:g}" for point in points if point.queue_std_state == why)
        if why != "ok":
            console.print(f"flows {counts}: queue std {why if why.startswith('in doubt') else f'is not given: {why}'}")
    if any(point.rightmost_root is None for point in points):
        console.print(f"where a run ends: fluidcc equilibrium {scheme}, with the same options")


def _deviation(point: Stability) -> str:
    if point.queue_std_bytes is None:
        return ""
    return units.show(point.queue_std_bytes, units.SIZE) + ("" if point.queue_std_state == "ok" else "?")


def _number(value: float | None, unit: str) -> str:
    return "" if value is None else f"{value:.2f}{unit}"


def _time(value: Any) -> str:
    return "" if value is None else units.show(value, units.TIME)
