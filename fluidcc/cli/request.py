"""Scenario options of the command line, and the scenario that they describe."""

from __future__ import annotations

import dataclasses
import math
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fluidcc import units
from fluidcc.cli import output
from fluidcc.errors import InputError
from fluidcc.files import read_bounded, refuse_special

# An object, also below a terminal's prompt, or an array; a section of settings such as [irdma] is neither.
_JSON = re.compile(r"\A\s*(\{|\[\s*[\[{\"\]])|^\{", re.MULTILINE)

if TYPE_CHECKING:
    from fluidcc.operators import NicSettings, SwitchPort
    from fluidcc.operators.ports import PortGroup
    from fluidcc.scenario.model import RED, Scenario


@dataclasses.dataclass(frozen=True)
class Request:
    """Scenario options of the command line, before anything is computed."""

    scheme: str
    preset: str | None = None
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
    ports: Sequence[PortGroup] = ()  # kinds of those that are named, the worst first: `with_ports`
    ran: list[float] = dataclasses.field(default_factory=list)  # payloads of packets, if not the largest alone
    told: set[str] = dataclasses.field(default_factory=set)  # what has been said of sources, of copies too

    @property
    def title(self) -> str:
        """The scheme, and the queue that is meant, as results are headed."""
        port = self.ports[0].switch if self.ports else None
        return self.scheme if port is None else f"{self.scheme} into queue {port.queue} of {port.name}"

    def values(self) -> dict[str, Any]:
        """Values of builder, network, marking and scheme that were given, by name; --set wins."""
        from fluidcc.builders.names import check_name

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


def scenario_of(request: Request, swept: dict[str, Any] | None = None) -> Scenario:
    """Build the scenario that a request describes, with swept values (SI, possibly traced) in place of its own.

    Raises
    ------
    InputError
        If anything in it makes no sense.
    """
    from fluidcc.builders.names import TOPOLOGIES

    swept = swept or {}
    if request.sources and request.topology in TOPOLOGIES:
        return _as_the_fabric_sends(request, swept)
    return _built(request, swept)


def _as_the_fabric_sends(request: Request, swept: dict[str, Any]) -> Scenario:
    """With packets of the NIC's size, RoCE's headers, and the buffer and flow control of the switch."""
    from fluidcc.operators.behaviour import with_buffers
    from fluidcc.scenario.frames import framed
    from fluidcc.scenario.model import PFC

    given = {**request.values(), **swept}
    scenario = _built(request, swept)
    if "header_bytes" not in given:
        scenario = framed(scenario, given["packet_size"] if "packet_size" in swept else payload_of(request))
    if not request.ports or {"buffer", "pfc", *(f.name for f in dataclasses.fields(PFC))} & given.keys():
        return scenario
    return with_buffers(scenario, request.ports[0].switch)


def with_ports(request: Request) -> Request:
    """A request with the kinds of ports that it names, of which the first is meant: the worst of those that mark.

    Raises
    ------
    InputError
        If the switch's file cannot be read, or has no such port.
    """
    switch, nic = (
        next((each for each in request.sources or [] if is_switch(each) is kind), None) for kind in (True, False)
    )
    if switch is None:
        return request
    from fluidcc.operators.audit import worst_first

    return dataclasses.replace(request, ports=worst_first(switch, nic, request.port))


def payload_of(request: Request) -> float:
    """Payload of a packet [bytes]: as given, else the NIC's, else the largest that is usual."""
    return payloads_of(request)[0]


def payloads_of(request: Request) -> list[float]:
    """Payloads of packets [bytes], the largest first: several are usual where the NIC's MTU is not known."""
    from fluidcc.scenario.frames import payloads

    return sorted(payloads(nic_of(request), request.values().get("packet_size")), reverse=True)


def scenarios_of(request: Request) -> list[Scenario]:
    """Build the scenario for each size of packets that the devices of ``--from`` may send, the largest first."""
    from fluidcc.builders.names import TOPOLOGIES

    if not request.sources or request.topology not in TOPOLOGIES or "header_bytes" in request.values():
        return [scenario_of(request)]
    request.ran[:] = payloads_of(request)
    return [scenario_of(request, {"packet_size": size}) for size in request.ran]


def nic_of(request: Request) -> NicSettings | None:
    """Settings of the NIC that --from names."""
    from fluidcc.operators import read_nic

    nic = next((source for source in request.sources or [] if not is_switch(source)), None)
    return None if nic is None else read_nic(nic)


def tell_devices(request: Request) -> None:
    """Say which port of several is meant, and which packets a request's devices send."""
    from fluidcc.builders.names import TOPOLOGIES

    if not request.sources or request.topology not in TOPOLOGIES:
        return
    from fluidcc.scenario.frames import said

    if request.ports[1:]:
        output.tell(f"{request.title}: {_of_several(request.ports)}")
    given = request.values()
    for text in _doubts(request, given):
        output.tell(text)
    if "header_bytes" not in given:
        sizes = request.ran or [payload_of(request)]
        output.tell(said(sizes, nic_of(request), given="packet_size" in given))


def _of_several(ports: Sequence[PortGroup]) -> str:
    """Say which of several kinds of ports and queues is meant, the first, and whether --port takes another."""
    first = ports[0]
    if all({*first.names} & {*each.names} and each.switch.asic == first.switch.asic for each in ports):
        queues = ", ".join(str(each) for each in sorted({each.switch.queue for each in ports}))
        return f"the worst of queues {queues}, among which --port does not choose"
    return f"the worst of {len(ports)} kinds of ports and queues; --port takes another"


def _doubts(request: Request, given: dict[str, Any]) -> Iterator[str]:
    """Say where the devices would do otherwise than what runs, or may."""
    from fluidcc.operators.nvidia import off_in_words

    port = request.ports[0].switch if request.ports else None
    if port is not None and port.assumed_rate and "rate" not in given:
        yield (
            f"{port.source}: does not say how fast {port.name} is: taken as {units.show(port.rate, units.RATE)}; give "
            "--rate 400Gbps, for example"
        )
    nic = nic_of(request)
    off = "" if nic is None else off_in_words(nic, None if port is None else port.priority)
    if off:
        yield off


def _built(request: Request, swept: dict[str, Any]) -> Scenario:
    from fluidcc import builders as topologies
    from fluidcc.builders.common import with_chains_threshold
    from fluidcc.builders.names import TOPOLOGIES, changed_flow_control, changed_marking, entries, split
    from fluidcc.contract.registry import preset as preset_of

    if request.port is not None and not request.ports:
        raise InputError("--port: there is no switch to read it from; write --from config_db.json beside it")
    if request.topology not in TOPOLOGIES:
        return _from_file(request, swept)
    preset = preset_of(request.scheme, "paper" if request.preset is None else request.preset)
    given = request.values()
    base, port = _with_sources(request, preset.scheme, given)
    values = split(request.scheme, {**given, **swept})
    options = values["builder"]
    _check_options(request.topology, options)
    if port:
        options.setdefault("rate", port.rate)
    elif request.topology in ("incast", "parking-lot"):  # the others are published with a rate
        options.setdefault("rate", base.default_rate)
    pfc = preset.network.get("pfc")
    if request.topology == "chain":
        pfc = with_chains_threshold(pfc)

    def marking(rate: Any) -> RED | None:
        return changed_marking(port.red if port and port.red else preset.marking_at(rate), values["marking"])

    common = {
        **preset.network,
        **values["network"],
        "pfc": changed_flow_control(pfc, values["pfc"]),
        "scheme": dataclasses.replace(base, **values["scheme"]),
        "marking": marking,
    }
    # Lists repeat over the flows, so their entries are read where the flows are made.
    columns = {k: entries(options.pop(k), k) for k in ("start", "initial_rate", "size", "delay") if k in options}
    if request.topology != "incast" and "delay" in columns:
        if len(columns["delay"]) > 1:
            raise InputError(f"--delay: a {request.topology} has one delay for all links; write --delay 1us")
        columns["delay"] = columns["delay"][0]
    if request.topology == "chain":
        if "bursts" in options:
            options["bursts"] = _whole(options["bursts"], "bursts")
        return topologies.chain(**options, **columns, **common)
    if request.topology == "fat-tree":
        return _fat_tree(options, columns, common, "flows" in swept)
    if "stagger_group" in options:
        options["stagger_group"] = _whole(options["stagger_group"], "stagger_group")
    build, default = (topologies.incast, 2) if request.topology == "incast" else (topologies.parking_lot, 3)
    count, multiplicity = _flow_count(options.pop("flows", default), columns, "flows" in swept)
    return build(count, multiplicity=multiplicity, **options, **columns, **common)


def _check_options(topology: str, options: dict[str, Any]) -> None:
    from fluidcc.builders.names import TOPOLOGIES

    known = TOPOLOGIES[topology]
    alien = next((name for name in options if name not in known), None)
    if alien is not None:
        homes = [name for name, theirs in TOPOLOGIES.items() if alien in theirs]
        raise InputError(
            f"{alien}: has no meaning in --topology {topology}, only in {', '.join(homes)}; "
            f"{topology} takes {', '.join(known)}"
        )


def _fat_tree(options: dict[str, Any], columns: dict[str, Any], common: dict[str, Any], swept: bool) -> Scenario:
    """Flow i leads from host i to the host half the fabric further, so that nothing but ECMP makes it meet others."""
    from fluidcc import builders as topologies
    from fluidcc.builders.common import per_flow
    from fluidcc.builders.names import TOPOLOGIES

    if swept:
        raise InputError("--over: the flows of a fat-tree have places of their own; run fluidcc once for each number")
    sizes = {name: _whole(options.pop(name), name) for name in tuple(options) if TOPOLOGIES["fat-tree"][name].integer}
    flows = sizes.pop("flows", 2)
    default = {"pods": 5, "tors": 4, "hosts": 16}
    hosts = 1
    for name, size in default.items():
        hosts *= max(1, sizes.get(name, size))
    starts, volumes = (per_flow(columns.pop(k, d), flows, k) for k, d in (("start", 0.0), ("size", float("inf"))))
    rows = [(i % hosts, (i + (hosts + 1) // 2) % hosts, starts[i], volumes[i]) for i in range(flows)]
    return topologies.fat_tree(rows, **sizes, **options, **columns, **common)


def _whole(value: Any, name: str) -> int:
    number = units.quantity(value, units.COUNT, name)
    if number != int(number):
        raise InputError(f"{name}: {number:g} is no whole number; write for example {name}=8")
    return int(number)


def _flow_count(flows: Any, columns: dict[str, Any], swept: bool) -> tuple[int, Any]:
    """Number of flow classes and their multiplicity; a swept number of flows goes to the latter.

    Lists repeat over the flows, so that the first classes have one flow more if the number does not divide evenly.
    """
    if swept:
        classes = math.lcm(*(len(c) for c in columns.values() if isinstance(c, list)))
        return classes, [(flows + (classes - 1 - i)) // classes for i in range(classes)]
    return _whole(flows, "flows"), 1.0


def _with_sources(request: Request, scheme: Any, given: dict[str, Any]) -> tuple[Any, SwitchPort | None]:
    """Parameters and the switch's port, from the devices that --from names."""
    from fluidcc.operators.ports import unmarked

    port = None
    kinds = [is_switch(source) for source in request.sources or []]
    for source, switch in zip(request.sources or [], kinds, strict=True):
        if kinds.count(switch) > 1:
            device = "switches" if switch else "NICs"
            raise InputError(
                f"--from: {source[:200]} is one of {kinds.count(switch)} {device}; give one of each at most"
            )
        if switch:
            port = request.ports[0].switch
            if (why := unmarked(port)) and not {"kmin", "kmax", "pmax"} <= given.keys():
                raise InputError(f"{source}: {why}, or give --set kmin=... --set kmax=... --set pmax=...")
        else:
            from fluidcc.operators import dcqcn_of, read_nic

            if request.scheme != "dcqcn":
                raise InputError(f"--from: {source} holds DCQCN settings; write dcqcn in place of {request.scheme}")
            nic = read_nic(source)
            if nic.assumed and nic.assumed not in request.told:
                request.told.add(nic.assumed)
                output.tell(nic.assumed)
            scheme, _ = dcqcn_of(nic)
    return scheme, port


def is_switch(source: str, option: str = "--from: ") -> bool:
    """Tell a switch's configuration from a NIC's settings; ``option`` goes before what is refused.

    Raises
    ------
    InputError
        If it does not exist, cannot be read, or has a NIC's settings as JSON.
    """
    refuse_special(source, "a config_db.json or a NIC's settings")  # it is read more than once
    from fluidcc.operators.config_files import decoded
    from fluidcc.operators.nvidia import EXPECTED_NIC
    from fluidcc.operators.nvidia_text import refuse_json
    from fluidcc.operators.switches import reader_of

    try:
        if Path(source).is_dir():
            return False
        text = decoded(read_bounded(source), "replace")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "bad name"
        raise InputError(f"{option}{source[:200]}: {reason}; give a config_db.json or a NIC's settings") from None
    refuse_json(text, f"{option}{source}", EXPECTED_NIC)
    return _JSON.search(text) is not None or reader_of(text) is not None


def _from_file(request: Request, swept: dict[str, Any]) -> Scenario:
    from fluidcc.builders import toml_file as scenario_file
    from fluidcc.builders.names import TOPOLOGIES, with_values

    if not os.path.isfile(request.topology):
        what = "no plain file" if os.path.exists(request.topology) else "no file"
        raise InputError(
            f"--topology: {request.topology[:200]!r} is none of {', '.join(TOPOLOGIES)}, and {what}; "
            "write one of these, or a file that --save-scenario wrote"
        )
    if request.sources:
        raise InputError("--from: does not go with a scenario file; give one or the other")
    if request.preset is not None:
        raise InputError("--preset: a scenario file holds all parameters; leave it out, or change some by --set")
    if _is_topology(request.topology):
        raise InputError(
            f"--topology: {request.topology[:200]} is a topology.txt of the HPCC simulator, which has no flows; write "
            f"fluidcc fabric {request.scheme} --topology {request.topology[:200]} --flows-file flow.txt"
        )
    scenario = scenario_file.load_scenario(request.topology)
    return with_values(scenario, request.scheme, {**request.values(), **swept})


def _is_topology(path: str) -> bool:
    """Check whether a file begins as a topology.txt: three counts, then as many switches as the second says."""
    try:
        lines = read_bounded(path).decode().splitlines()
        counts = [int(word) for word in lines[0].split()]
        return len(counts) == 3 and len(lines[1].split()) == counts[1]
    except (OSError, ValueError, IndexError):
        return False
