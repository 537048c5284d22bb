"""What the command line says of a scenario, and the scenario it means."""

from __future__ import annotations

import dataclasses
import difflib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fluidcc import units
from fluidcc.errors import InputError

if TYPE_CHECKING:
    from fluidcc.scenario import RED, Scenario

_BUILDER = {  # options of the builders that --set and --over reach too, with their dimensions
    "rate": units.RATE,
    "delay": units.TIME,
    "packet_size": units.SIZE,
    "header_bytes": units.SIZE,
    "start": units.TIME,
    "initial_rate": units.RATE,
    "size": units.SIZE,
    "line_rate": units.RATE,
    "flows": units.COUNT,
}
# Names that select the shape of the problem, and so cannot be swept.
SHAPES = ("topology", "until", "preset", "scheme", "window", "dt", "method", "engine")


@dataclasses.dataclass(frozen=True)
class Request:
    """What the command line says of a scenario, before anything is computed."""

    scheme: str
    preset: str = "paper"
    topology: str = "incast"
    flows: int | None = None
    rate: str | None = None
    delay: str | None = None
    packet_size: str | None = None
    start: str | None = None
    initial_rate: str | None = None
    size: str | None = None
    feedback_delay: str | None = None
    sets: list[str] | None = None
    sources: list[str] | None = None
    port: str | None = None

    def values(self) -> dict[str, Any]:
        """Builder options, marking and scheme parameters that were given, by name; --set wins."""
        given: dict[str, Any] = {
            name: getattr(self, name)
            for name in ("rate", "delay", "packet_size", "feedback_delay", "start", "initial_rate", "size", "flows")
            if getattr(self, name) is not None
        }
        for text in self.sets or []:
            name, equals, value = text.partition("=")
            name = name.strip()
            if not equals or not value.strip():
                raise InputError(f"--set: {text[:60]!r} is no NAME=VALUE; write for example --set g=1/256")
            check_name(self.scheme, name, "--set")
            given[name] = value.strip()
        return given


def dimensions(scheme: str) -> dict[str, str]:
    """Dimension of every name that --set and --over take."""
    from fluidcc.parameters import specs
    from fluidcc.scenario import RED
    from fluidcc.schemes.dispatch import parameters_of

    found = dict(_BUILDER)
    for owner in (RED, parameters_of(scheme)):
        found |= {name: spec.dimension for name, spec in specs(owner).items()}
    return found


def check_name(scheme: str, name: str, option: str) -> str:
    """Dimension of a parameter's name.

    Raises
    ------
    InputError
        If there is none of that name, with the nearest that there is.
    """
    known = dimensions(scheme)
    if name not in known:
        near = difflib.get_close_matches(name, known, 1)
        hint = f"did you mean {near[0]}?" if near else f"see: fluidcc show {scheme}"
        raise InputError(f"{option}: {scheme} has no parameter {name[:40]!r}; {hint}")
    return known[name]


def scenario_of(request: Request, swept: dict[str, Any] | None = None) -> Scenario:
    """Build the scenario that a request describes, with swept values (SI, possibly traced) in place of its own.

    Raises
    ------
    InputError
        If anything in it makes no sense.
    """
    from fluidcc import topologies
    from fluidcc.parameters import specs
    from fluidcc.schemes.dispatch import package

    swept = swept or {}
    if request.topology not in ("incast", "parking-lot"):
        return _from_file(request, swept)
    presets = package(request.scheme).PRESETS
    if request.preset not in presets:
        raise InputError(
            f"--preset: {request.scheme} has no {request.preset[:40]!r}; write one of {', '.join(presets)}"
        )
    scheme, marking = presets[request.preset][:2]
    given = request.values()
    scheme, marking, link = _with_sources(request, scheme, marking, given)
    values = {**given, **swept}
    # Lists repeat over the flows, so their entries are read where the flows are made.
    columns = {k: _entries(values[k], k) for k in ("start", "initial_rate", "size", "delay") if k in values}
    scheme = dataclasses.replace(scheme, **{k: v for k, v in values.items() if k in specs(type(scheme))})
    marking = dataclasses.replace(marking, **{k: v for k, v in values.items() if k in ("kmin", "kmax", "pmax")})
    options = {k: values[k] for k in ("packet_size", "header_bytes", "line_rate") if k in values}
    parking = request.topology == "parking-lot"
    if parking and len(columns.get("delay", [])) > 1:
        raise InputError("--delay: a parking lot takes one delay for all links; write for example --delay 1us")
    if parking and "delay" in columns:
        columns["delay"] = columns["delay"][0]
    count, multiplicity = _flow_count(values, columns, "flows" in swept, 3 if parking else 2)
    build = topologies.parking_lot if parking else topologies.incast
    return build(
        count,
        rate=values.get("rate", link or scheme.default_rate),
        scheme=scheme,
        marking=marking,
        multiplicity=multiplicity,
        **columns,
        **options,
    )


def _entries(value: Any, name: str) -> list[Any]:
    """A comma-separated list, or a single (perhaps traced) value."""
    if not isinstance(value, str):
        return [value]
    parts = [part.strip() for part in value.split(",")]
    if not all(parts):
        raise InputError(f"{name}: {value[:60]!r} has an empty entry; write for example {name} A,B")
    return [None if name == "initial_rate" and part == "line" else part for part in parts]


def _flow_count(values: dict[str, Any], columns: dict[str, Any], swept: bool, default: int) -> tuple[int, Any]:
    """Number of flow classes and their multiplicity; a swept number of flows goes to the latter."""
    flows = values.get("flows", default)
    if swept:
        classes = max((len(c) for c in columns.values() if isinstance(c, list)), default=1)
        return classes, flows / classes
    if isinstance(flows, str):
        flows = units.parse(flows, units.COUNT, "flows")
        if flows != int(flows):
            raise InputError(f"flows: {flows:g} is no whole number; write for example flows=8")
    return int(flows), 1.0


def _with_sources(request: Request, scheme: Any, marking: RED, given: dict[str, Any]) -> tuple[Any, RED, float | None]:
    """Parameters, marking and port rate, with those of the devices that --from names."""
    rate = None
    for source in request.sources or []:
        if is_switch(source):
            from fluidcc.formats import read_sonic

            port = read_sonic(source, request.port)
            if (port.red is None or not port.ecn) and not {"kmin", "kmax", "pmax"} <= given.keys():
                raise InputError(
                    f"{source}: queue {port.queue} of {port.name} does not mark (no WRED profile, or ECN off); "
                    "turn ECN on there, or give --set kmin=... --set kmax=... --set pmax=..."
                )
            marking, rate = port.red or marking, port.rate
        else:
            from fluidcc.formats import dcqcn_of, read_nic

            if request.scheme != "dcqcn":
                raise InputError(f"--from: {source} holds DCQCN settings; write dcqcn in place of {request.scheme}")
            scheme, _ = dcqcn_of(read_nic(source))
    return scheme, marking, rate


def is_switch(source: str) -> bool:
    """Whether a source looks like a switch's JSON rather than a NIC's settings.

    Raises
    ------
    InputError
        If it does not exist or cannot be read.
    """
    path = Path(source)
    try:
        if path.is_dir():
            return False
        with path.open("rb") as handle:
            return handle.read(4096).lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "bad name"
        raise InputError(f"--from: {source[:200]}: {reason}; give a config_db.json or a NIC's settings") from None


def _from_file(request: Request, swept: dict[str, Any]) -> Scenario:
    from fluidcc import scenario_file

    if not Path(request.topology).is_file():
        raise InputError(
            f"--topology: {request.topology[:200]!r} is neither incast nor parking-lot nor a file; "
            "write one of these, or a file that --save-scenario wrote"
        )
    if request.sources:
        raise InputError("--from: does not go with a scenario file; give one or the other")
    scenario = scenario_file.load(request.topology)
    return with_values(scenario, request.scheme, {**request.values(), **swept})


def with_values(scenario: Scenario, scheme: str, values: dict[str, Any]) -> Scenario:
    """A scenario with some values replaced on all its links and flows.

    Raises
    ------
    InputError
        If no flow runs the scheme, a value has no place in a finished scenario, or makes no sense.
    """
    from fluidcc.parameters import specs
    from fluidcc.scenario import RED, Flow, Link, resolve

    if not any(flow.scheme.name == scheme for flow in scenario.flows):
        raise InputError(f"scheme: no flow of this scenario runs {scheme}; write {scenario.flows[0].scheme.name}")
    owners = {
        "marking": specs(RED),
        "scheme": specs(type(next(f.scheme for f in scenario.flows if f.scheme.name == scheme))),
        "link": {k: v for k, v in specs(Link).items() if k == "rate"},
        "flow": {k: v for k, v in specs(Flow).items() if k in ("start", "size", "initial_rate", "line_rate")},
        "scenario": specs(type(scenario)),
    }
    split: dict[str, dict[str, Any]] = {owner: {} for owner in owners}
    for name, value in values.items():
        home = next((owner for owner, known in owners.items() if name in known), None)
        if home is None:
            raise InputError(f"{name}: is fixed by the scenario file; change it there")
        split[home][name] = value
    links = tuple(
        dataclasses.replace(
            link, **split["link"], marking=link.marking and dataclasses.replace(link.marking, **split["marking"])
        )
        for link in scenario.links
    )
    flows = tuple(
        dataclasses.replace(
            flow,
            **split["flow"],
            scheme=dataclasses.replace(flow.scheme, **split["scheme"]) if flow.scheme.name == scheme else flow.scheme,
        )
        for flow in scenario.flows
    )
    return resolve(dataclasses.replace(scenario, links=links, flows=flows, **split["scenario"]))
