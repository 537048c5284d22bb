"""Options that several commands share, and completions of them for the Tab key.

Completions are names that fit the command line so far, found without computing anything: figures and claims are read
off the sources, as to import them all takes seconds.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Annotated, Any

import typer

from fluidcc.cli.request import Request, tell_devices, with_ports
from fluidcc.errors import InputError

Completion = Callable[[Any, str], list[str]]


def complete_words(*known: str) -> Completion:
    """Completion by words that are known beforehand."""
    return lambda ctx, incomplete: list(known)


def complete_schemes(ctx: Any, incomplete: str) -> list[str]:
    """Schemes' names; after commas too, where several may be given."""
    from fluidcc.contract.registry import names

    before = incomplete[: incomplete.rfind(",") + 1]
    return [before + name for name in names()]


def complete_presets(ctx: Any, incomplete: str) -> list[str]:
    """Presets of the scheme that is typed already."""
    from fluidcc.contract.registry import presets as presets_of

    return _of_scheme(ctx, presets_of)


def complete_parameters(ctx: Any, incomplete: str) -> list[str]:
    """Return what --set and --over take for the scheme that is typed already."""
    from fluidcc.builders.names import known_names

    return [f"{name}=" for name in _of_scheme(ctx, known_names)]


def complete_topologies(ctx: Any, incomplete: str) -> list[str]:
    """Topologies by name; a file's name is the shell's business."""
    from fluidcc.builders.names import TOPOLOGIES

    return [*TOPOLOGIES]


def complete_figures(ctx: Any, incomplete: str) -> list[str]:
    """Return what `reproduce` takes."""
    return ["list", *_homes("reproduces")]


def complete_claims(ctx: Any, incomplete: str) -> list[str]:
    """Return what `verify` takes."""
    return _homes("claim")


def _of_scheme(ctx: Any, names: Callable[[str], Iterable[str]]) -> list[str]:
    """Names of the scheme on the line, or of the first of several; none if there is none."""
    # Behind an option whose value is still to come, click leaves the words before it unassigned.
    typed = [ctx.params.get("scheme"), ctx.params.get("schemes"), *ctx.args]
    try:
        return list(names(next(filter(None, typed), "").partition(",")[0]))
    except InputError:
        return []


def _homes(decorator: str) -> list[str]:
    from fluidcc.proofs.verdict.registry import homes

    return sorted(homes(decorator))


Scheme = Annotated[
    str,
    typer.Argument(metavar="SCHEME", help="Congestion control, for example dcqcn.", autocompletion=complete_schemes),
]
Preset = Annotated[
    str | None,
    typer.Option(
        help="Parameter set, such as vendor or hpcc-sim; paper by default.",
        show_default=False,
        autocompletion=complete_presets,
    ),
]
NamedPreset = Annotated[
    str,
    typer.Option("--preset", help="Parameter set, such as paper, vendor or hpcc-sim.", autocompletion=complete_presets),
]
Topology = Annotated[
    str,
    typer.Option(
        help="incast, parking-lot, chain, fat-tree, or a file that --save-scenario wrote.",
        autocompletion=complete_topologies,
    ),
]
Flows = Annotated[int | None, typer.Option(help="Number of senders; 2 by default.")]
Rate = Annotated[str | None, typer.Option(help="Rate of hosts and bottleneck; the scheme's default if not given.")]
Delay = Annotated[str | None, typer.Option(help="One-way delay of each link; 1us by default, 2us in a chain.")]
PacketSize = Annotated[str | None, typer.Option(help="Payload of a packet; 1000B by default.")]
Start = Annotated[str | None, typer.Option(help="Start of each flow, such as 0,10ms; the list repeats.")]
InitialRate = Annotated[str | None, typer.Option(help="Rate of each flow at start, such as 40Gbps,0.")]
Size = Annotated[str | None, typer.Option(help="Bytes that each flow sends, such as 1MB; without end by default.")]
FeedbackDelay = Annotated[str | None, typer.Option(help="Lag of the feedback, instead of the path's delays.")]
Sets = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Set a parameter (fluidcc show SCHEME lists them); repeat.",
        autocompletion=complete_parameters,
    ),
]
From = Annotated[
    list[str] | None,
    typer.Option("--from", metavar="FILE|DIR", help="A switch's config_db.json or a NIC's settings; repeat."),
]
FabricFrom = Annotated[
    list[str] | None,
    typer.Option("--from", help="A ToR's config_db.json, then one of each tier above it, or a NIC's settings; repeat."),
]
FabricPacketSize = Annotated[
    str | None, typer.Option("--packet-size", help="Payload of a packet; by default the NIC's with --from, else 1000B.")
]
Setting = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME:K=V,...", help="Run a second setting too, such as new:kmin=100KB,kmax=400KB,pmax=20%; repeat."
    ),
]
Burst = Annotated[
    str | None, typer.Option(help="Packets (4) or bytes (16KB) that a NIC sends back to back; 1 packet by default.")
]
Port = Annotated[str | None, typer.Option(help="Switch port whose settings are used.")]
Counters = Annotated[
    list[str] | None,
    typer.Option(metavar="FILE|DIR", help="Counters of switches and NICs: show, ethtool, rdma, CSV; repeat."),
]
Before = Annotated[list[str] | None, typer.Option(metavar="FILE|DIR", help="The same counters, read before; repeat.")]
Interval = Annotated[
    str | None, typer.Option(metavar="TIME", help="Time between both readings, or since counters were cleared.")
]
Save = Annotated[str | None, typer.Option("--save-scenario", metavar="FILE", help="Write the scenario as TOML.")]
Scheduler = Annotated[
    str | None,
    typer.Option("--scheduler", metavar="tcp://HOST:PORT", help="Run on the workers of a Dask scheduler."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
Until = Annotated[str, typer.Option(help="Simulated time, such as 50ms.")]
OwnUntil = Annotated[str | None, typer.Option(help="Simulated time; by default 200ms for dcqcn, 5ms for hpcc.")]
Window = Annotated[str | None, typer.Option(metavar="A:B", help="Interval of the metrics; second half by default.")]
Step = Annotated[str | None, typer.Option("--dt", help="Time step; chosen from the lags by default.")]
Tolerance = Annotated[
    float | None, typer.Option("--rtol", help="Relative error of a step; steps are then chosen by it, not by --dt.")
]
SampleInterval = Annotated[
    str | None, typer.Option(help="Time between samples of the trace; 1/2000 of the run by default.")
]
MethodName = Annotated[
    str,
    typer.Option(
        "--method", help="Integrator: heun, rk4 or euler.", autocompletion=complete_words("heun", "rk4", "euler")
    ),
]
Dtype = Annotated[
    str, typer.Option(help="Precision: float64 or float32.", autocompletion=complete_words("float64", "float32"))
]
Engine = Annotated[
    str,
    typer.Option(help="Engine: fluid, hybrid or packet.", autocompletion=complete_words("fluid", "hybrid", "packet")),
]


def _scenario_options(
    scheme: Scheme,
    preset: Preset = None,
    topology: Topology = "incast",
    flows: Flows = None,
    rate: Rate = None,
    delay: Delay = None,
    packet_size: PacketSize = None,
    burst: Burst = None,
    start: Start = None,
    initial_rate: InitialRate = None,
    size: Size = None,
    feedback_delay: FeedbackDelay = None,
    sets: Sets = None,
    sources: From = None,
    port: Port = None,
) -> None:
    """Signature that `takes_scenario` puts before a command's own options; names as in `Request`."""


def takes_scenario(command: Callable[..., int | None]) -> Callable[..., int | None]:
    """Decorator: a command ``(request, ...)`` gets the options that describe a scenario in place of the request.

    An option of its own by one of these names takes the place of the shared one.
    """
    shared = inspect.signature(_scenario_options, eval_str=True)
    own = inspect.signature(command, eval_str=True)
    mine = [p.replace(kind=p.KEYWORD_ONLY) for p in list(own.parameters.values())[1:]]
    theirs = [p.replace(kind=p.KEYWORD_ONLY) for p in shared.parameters.values() if p.name not in own.parameters]

    @functools.wraps(command)
    def wrapper(**values: Any) -> int | None:
        given = {p.name: values.pop(p.name) for p in theirs}
        if (burst := given.pop("burst", None)) is not None:
            given["sets"] = [*(given["sets"] or []), f"burst={burst}"]
        request = with_ports(Request(**given))
        status = command(request, **values)
        tell_devices(request)
        return status

    wrapper.__signature__ = inspect.Signature([*theirs, *mine])  # type: ignore[attr-defined]
    wrapper.__annotations__ = {p.name: p.annotation for p in (*theirs, *mine)}
    del wrapper.__wrapped__
    return wrapper
