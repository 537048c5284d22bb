"""``fluidcc tune``."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fluidcc.cli import options as o
from fluidcc.cli import output
from fluidcc.cli.contenders import PICTURE as TRIAL
from fluidcc.cli.contenders import table_of, tried
from fluidcc.cli.request import Request, is_switch, nic_of, scenario_of
from fluidcc.cli.stability import counts_of
from fluidcc.cli.tune_fabric import PICTURE, told_plateau, tune_on_fabric, usual_bounds, yardsticks_of
from fluidcc.errors import InputError
from fluidcc.scenario.frames import payloads
from fluidcc.units import TIME, Rate, show

if TYPE_CHECKING:
    from fluidcc.operators import Commands
    from fluidcc.operators.ports import PortGroup
    from fluidcc.scenario.model import Scenario
    from fluidcc.studies.tuning import Tuning

EXAMPLES = (
    "fluidcc tune dcqcn --flows 8 --over kmin=2KB:100KB --over pmax=1%:100%",
    "fluidcc tune dcqcn --from config_db.json --from nic.txt --over kmin \\\n    --over kmax --workload web-search "
    "--write out",
)
PICTURES = ("front.png", "sensitivity.png", "packets.png", TRIAL, PICTURE)
PACKET_SIZE = "packet_size"
NOTHING = "nothing to type: packets confirm no setting"
_SHOWN = ("queue_bytes.mean", "queue_bytes.p95", "queue_bytes.p99", "utilisation", "jain")


@o.takes_scenario
def command(
    request: Request,
    over: Annotated[
        list[str],
        typer.Option(
            metavar="NAME[=LO:HI]",
            help="Parameter to tune, and its range; kmin, kmax, pmax and g have one by default; repeat.",
            autocompletion=o.complete_parameters,
        ),
    ],
    objective: Annotated[
        list[str] | None,
        typer.Option(
            metavar="METRIC", help="Metric to optimise; repeat for a Pareto front; queue_bytes.p99 by default."
        ),
    ] = None,
    maximise: Annotated[
        bool | None,
        typer.Option(
            "--maximise/--minimise", help="Direction of the first objective; by default a queue falls, a rate rises."
        ),
    ] = None,
    subject_to: Annotated[
        list[str] | None,
        typer.Option(metavar="METRIC>=VALUE", help="Additional constraint, also with <=; repeat."),
    ] = None,
    flows: Annotated[
        str | None, typer.Option(metavar="N|A:B|N,N,...", help="Numbers of senders; A:B means A, B and one between.")
    ] = None,
    across: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=V,V,...", help="More cases to run, such as delay=1us,20us; repeat."),
    ] = None,
    worst: Annotated[
        bool, typer.Option("--worst/--mean", help="Judge a setting by its worst case, or by the mean of all.")
    ] = True,
    until: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Simulated time of each run; by default 150,000 packets, at least 20ms; more from line rate.",
        ),
    ] = None,
    window: o.Window = None,
    engine: Annotated[
        str | None, typer.Option(help="Engine of the search: hybrid (default for dcqcn) or fluid.", show_default=False)
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(help="Runs of each setting and case with the hybrid; 1 by default.")
    ] = None,
    evaluations: Annotated[
        int | None, typer.Option(help="Settings that the search may try; by default 150, on a whole fabric 40.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the search.")] = 1,
    sensitivity: Annotated[
        int | None,
        typer.Option(help="Also compute Sobol' sensitivity indices, from this many points each (a power of 2)."),
    ] = None,
    packets: Annotated[
        int | None, typer.Option(help="Packet runs that confirm each case; 2 by default, 0 for none.")
    ] = None,
    narrow: Annotated[
        bool,
        typer.Option(
            "--narrow", help="With --from: add seeds to the final trial until its 95 % intervals are within 10 %."
        ),
    ] = False,
    no_defaults: Annotated[bool, typer.Option("--no-defaults", help="Drop the default constraints and cases.")] = False,
    workload: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Tune on a whole fabric (--topology leaf-spine:4x4x8, ...) with these flows, such as web-search.",
        ),
    ] = None,
    load: Annotated[
        str | None, typer.Option(help="Load of the workload, as a share of all hosts' rate; 0.5 by default.")
    ] = None,
    collective: Annotated[
        str | None,
        typer.Option(metavar="KIND", help="Collective to tune for, alone or next to a workload, such as all-reduce."),
    ] = None,
    total: Annotated[
        str | None, typer.Option("--bytes", metavar="SIZE", help="Bytes of the collective; 1MB by default.")
    ] = None,
    scheduler: o.Scheduler = None,
    write: Annotated[
        str | None, typer.Option(metavar="DIR", help="Write pictures, numbers and the commands to type.")
    ] = None,
    json: o.Json = False,
) -> None:
    """Find the best setting under constraints.

    Packets confirm the result. With --from the answer includes the commands to type.
    """
    if write is not None:
        output.make_folder(write, "--write")  # before a search that may take minutes
    traffic = {"workload": workload, "load": load, "collective": collective, "bytes": total}
    if any(traffic.values()) or is_fabric(request.topology):
        unused = {
            "--flows": flows, "--maximise": maximise, "--subject-to": subject_to, "--window": window,
            "--engine": engine if engine != "packet" else None, "--seeds": seeds, "--sensitivity": sensitivity,
            "--packets": packets, "--no-defaults": no_defaults or None, "--narrow": narrow or None,
        }  # fmt: skip
        alien = next((name for name, value in unused.items() if value is not None), None)
        if alien is not None:
            raise InputError(f"{alien}: has no effect on a whole fabric, where packets race; leave it out")
        tune_on_fabric(
            request, over, {**traffic, "until": until}, across or [], objective=objective, worst=worst,
            settings=evaluations, seed=seed, scheduler=scheduler, write=write, json=json,
        )  # fmt: skip
        return
    if narrow and not request.sources:
        raise InputError(
            "--narrow: there is no trial without a switch's file; write --from config_db.json, or leave it out"
        )
    ports = _alike(request)
    bounds = _bounds(request, over)
    from fluidcc.studies.tuning.cases import FLOWS, SEARCHED, WAYS, changed, length, packet_cases, packet_guards

    robust = request.scheme == "dcqcn" and request.topology == "incast" and not no_defaults
    cases = _cases(request, flows, across or [], bounds)
    changes = robust and engine != "fluid"  # the search has other senders and starts than the request
    given = {*cases, *request.values(), *bounds}
    if robust and "flows" not in given:
        cases["flows"] = list(FLOWS)
    from fluidcc.operators.behaviour import with_usual_buffers
    from fluidcc.operators.commands import THRESHOLDS
    from fluidcc.operators.nvidia_settings import REGISTERS
    from fluidcc.studies.tuning import tune

    port = request.ports[0].switch if request.ports and not {"buffer", "pfc"} & request.values().keys() else None

    def make(**values: Any) -> Scenario:
        ways: dict[str, Any] = {name: values.pop(name) for name in WAYS if name not in cases and name in values}
        plain = {name: values.pop(name) for name in (*cases, PACKET_SIZE) if name in values}
        mine = dataclasses.replace(
            request,
            flows=int(plain.pop("flows")) if "flows" in plain else request.flows,
            sets=[*(request.sets or []), *(f"{name}={value}" for name, value in plain.items())],
        )
        if tied and values:  # a step stays one
            values["kmax"] = values["kmin"]
        scenario, _ = with_usual_buffers(scenario_of(mine, values), port)
        if changes:
            ways = {name: value for name, value in SEARCHED.items() if name not in given} | ways
        return changed(scenario, **ways)

    combined = [dict(zip(cases, each, strict=True)) for each in itertools.product(*cases.values())]
    if "initial_rate" in given:
        given.add("begin")
    sizes = payloads(nic_of(request), request.values().get(PACKET_SIZE)) if request.sources else ()
    first = {name: values[0] for name, values in cases.items()}
    tied = "kmin" in bounds and "kmax" not in bounds and _is_step(scenario_of(request))
    example = make(**first)
    _, unknown = with_usual_buffers(scenario_of(request), port)
    start = present(example, request.scheme, list(bounds))
    link = (min(float(each.rate) for each in example.links), float(example.wire_packet))
    conditions = (() if PACKET_SIZE in given else sizes, given, link if until is None else None)
    if beside := _beside(request.ports, ports):
        output.tell(f"{request.title}: {beside}")
    found = tune(
        make,
        bounds,
        objective=objective or "queue_bytes.p99",
        maximise=maximise,
        subject_to=subject_to,
        across=cases,
        worst=worst,
        start=start,
        yardsticks=_yardsticks(example, request.scheme, start),
        until=until or length(*link, SEARCHED["begin"] if changes and "begin" not in given else "line"),
        window=window,
        engine=engine,
        seeds=1 if seeds is None else seeds,
        evaluations=150 if evaluations is None else evaluations,
        seed=seed,
        sensitivity=sensitivity or 0,
        packet_seeds=2 if packets is None else packets,
        packet_cases=packet_cases(combined, *conditions) if robust else None,
        packet_guards=packet_guards(combined, *conditions) if robust else (),
        defaults=not no_defaults,
        dask=scheduler,
    )
    found.notes.extend([unknown] if unknown else [])
    held = [name for name in _given(request) if name in (*REGISTERS, *THRESHOLDS) and name not in bounds]
    if request.sources and held:
        found.notes.append(f"the present setting ran with --set's {', '.join(held)} too; what is typed has them")
    if not (found.confirmed and found.best.kept):
        found.notes.extend(_mends(example, request.scheme, bounds))
    command, told = "", list[str]()
    if request.sources and found.confirmed and found.best.kept:
        trial = tried(
            request.scheme,
            request.sources,
            found.best.point,
            make=make if robust else None,
            tuned=found,
            window=window,
            port=request.port,
            sets=request.sets or [],
            preset=request.preset,
            packet_size=request.packet_size,
            narrow=narrow,
        )
        found.notes.insert(0, trial.words)
        told.append(trial.words)
        found, command = dataclasses.replace(found, trial=trial.trial), trial.commands
    files = []
    if write is not None:
        from fluidcc.operators.commands import FILES, README
        from fluidcc.operators.ports import left_alone, read_ports, staying

        found.notes.extend(_nowhere(request, found))
        if ports:
            switch = next(each for each in request.sources or [] if is_switch(each))
            stay = [*left_alone(request.ports, ports), *staying(read_ports(switch)[0], ports)]
            found.notes.extend(stay)
            told.extend(stay)
        if found.confirmed is False or not found.best.kept:
            found.notes.append(NOTHING)
        typed = _typed(request, ports, found, told)
        files = [str(path) for path in [*found.write(write), *typed.write(write)]]
        output.tell_of_others(write, files, (*FILES, README, *PICTURES))
    if json:
        output.print_json(found.as_dict() | output.packets_of(scenario_of(request)) | {"files": files})
    else:
        _print(request.title, found, files)
        if command:
            print(f"repeat it by:\n  {command}")


def _mends(scenario: Scenario, scheme: str, bounds: Mapping[str, Any]) -> list[str]:
    """Say what the audit would mend first of a NIC whose byte counter makes faster flows grow faster."""
    from fluidcc.operators.checks import quick_timer

    if scheme != "dcqcn" or {"byte_counter", "timer"} & bounds.keys():
        return []
    flow = next(flow for flow in scenario.flows if flow.scheme.name == scheme)
    counter, timer = float(flow.scheme.byte_counter), float(flow.scheme.timer)
    if counter >= timer * float(flow.line_rate):
        return []
    every, quick = show(counter / float(flow.line_rate), TIME), quick_timer(flow.scheme)
    sets = ["--set byte_counter=1TB", *([f"--set timer={quick}us"] if quick else [])]
    return [
        f"the byte counter fires every {every} at line rate and the timer every {show(timer, TIME)}: the faster flow "
        f"grows faster, whatever the thresholds; add {' '.join(sets)}, as if bytes were off (rpg_byte_reset 0)"
    ]


def is_fabric(topology: str) -> bool:
    """Check whether a topology is that of a whole fabric: a shape such as leaf-spine:4x4x8."""
    from fluidcc.builders.names import TOPOLOGIES
    from fluidcc.workloads.fabrics.shapes import is_shape

    return topology not in TOPOLOGIES and is_shape(topology)


def _alike(request: Request) -> list[PortGroup]:
    """The ports that are set like the one that is tuned: what is typed is for these.

    Raises
    ------
    InputError
        If others were asked for by name: ports that differ are none to tune at once.
    """
    from fluidcc.operators.ports import ALL, alike

    if not request.ports:
        return []
    chosen = alike(request.ports, request.ports[0].switch)
    mine = {(each.switch.asic, name) for each in chosen for name in each.names}  # of some another queue may differ
    others = sorted(
        {
            name
            for each in request.ports
            if each not in chosen
            for name in each.names
            if (each.switch.asic, name) not in mine
        }
    )
    if others and request.port is not None and request.port.strip() != ALL:
        raise InputError(
            f"--port: {', '.join(others[:4])} {'differ' if others[1:] else 'differs'} from {chosen[0].names[0]} in "
            "speed, WRED profile or its values; tune them by a run of their own"
        )
    return chosen


def _beside(groups: Sequence[PortGroup], chosen: Sequence[PortGroup]) -> str:
    """Say which other queues of the ports that are tuned are not; empty if there are none."""
    tuned = {(each.switch.asic, name) for each in chosen for name in each.names}
    queues = {
        each.switch.queue
        for each in groups
        if each not in chosen and tuned & {(each.switch.asic, name) for name in each.names}
    }
    if not queues:
        return ""
    listed = ", ".join(map(str, sorted(queues)))
    return (
        f"queue {listed} of the same ports, with another WRED profile or other values, is not tuned; --port names none"
    )


def _typed(request: Request, groups: list[PortGroup], found: Tuning, said: Sequence[str]) -> Commands:
    """Return the commands for the best setting, on the devices that --from names."""
    from fluidcc.operators import read_nic
    from fluidcc.operators.commands import THRESHOLDS, commands_of
    from fluidcc.operators.nvidia_settings import REGISTERS

    sources = request.sources or []
    switch = next((each for each in sources if is_switch(each)), None)
    nic = next((each for each in sources if not is_switch(each)), None)
    known = [*(THRESHOLDS if switch is not None else ()), *(REGISTERS if nic is not None else ())]
    good = found.confirmed is not False and found.best.kept
    changes = {name: value for name, value in {**_given(request), **found.best.point}.items() if good and name in known}
    return commands_of(switch, groups, read_nic(nic) if nic is not None else None, changes, said)


def _given(request: Request) -> dict[str, float]:
    """Values of ``--set``, with which all settings ran: what is typed has them too."""
    from fluidcc.builders.names import dimension_of
    from fluidcc.units import quantity

    kept = {}
    for name, value in request.values().items():
        try:
            kept[name] = float(quantity(value, dimension_of(name), f"--set {name}"))
        except InputError:  # a word, which no register is
            continue
    return kept


def _conditions(found: Tuning) -> str:
    """Describe the conditions under which packets ran."""
    best = found.packets.get("best")
    if best is None:
        return ""
    from fluidcc.studies.tuning.cases import in_words

    lengths = " or ".join(show(each, TIME) for each in sorted({runs[0].summary["until_s"] for runs in best.traces}))
    cases = len(found.packet_cases)
    return (
        f" in {cases} case{'s' if cases > 1 else ''} ({in_words(found.packet_cases) or 'as given'}), "
        f"{len(best.traces[0])} seeds of {lengths}"
    )


def _nowhere(request: Request, found: Tuning) -> list[str]:
    """Return notes on what is tuned and on none of the devices that --from names."""
    from fluidcc.operators.commands import THRESHOLDS
    from fluidcc.operators.nvidia_settings import REGISTERS

    said = []
    for device, known, there in (
        ("switch's config_db.json", THRESHOLDS, any(map(is_switch, request.sources or []))),
        ("NIC's settings", REGISTERS, not all(map(is_switch, request.sources or []))),
    ):
        names = [name for name in found.space.names if name in known]
        if request.sources and names and not there:
            said.append(f"nothing to type for {', '.join(names)}: give a {device} by --from too")
    return said


def _is_step(scenario: Scenario) -> bool:
    """Check whether marking begins and is certain at one threshold, as DCTCP's K."""
    marking = next((link.marking for link in scenario.links if link.marking is not None), None)
    return marking is not None and float(marking.kmin) == float(marking.kmax)


def _yardsticks(scenario: Scenario, scheme: str, start: dict[str, float] | None) -> dict[str, dict[str, float]]:
    """Return settings with the thresholds that others use at the rate of the first link that marks."""
    rate = next((link.rate for link in scenario.links if link.marking is not None), None)
    return {} if start is None or rate is None else yardsticks_of(scheme, rate, start)


def present(scenario: Scenario, scheme: str, names: list[str]) -> dict[str, float] | None:
    """Return a scenario's values of some names; None if one of them has none, as where nothing is marked."""
    from fluidcc.builders.names import split

    flow = next(flow for flow in scenario.flows if flow.scheme.name == scheme)
    marking = next((link.marking for link in scenario.links if link.marking is not None), None)
    homes = {"scheme": flow.scheme, "marking": marking, "network": scenario, "pfc": scenario.pfc}
    values: dict[str, float] = {}
    for name in names:
        home = next(home for home, mine in split(scheme, {name: 0}).items() if mine)
        value = getattr(homes.get(home), name, None)
        if value is None:
            return None
        values[name] = float(value)
    return values


def _bounds(request: Request, over: list[str]) -> dict[str, tuple[Any, Any]]:
    from fluidcc.builders.names import SHAPES, check_name

    bounds: dict[str, tuple[Any, Any]] = {}
    usual = _usual(request) if any("=" not in text for text in over) else {}
    for text in over:
        name, equals, values = text.partition("=")
        name, ends = name.strip(), values.split(":")
        if equals and (len(ends) != 2 or not all(end.strip() for end in ends)):
            raise InputError(f"--over: {text[:60]!r} is no NAME=LO:HI; write for example --over g=1/1024:1/16")
        spec = check_name(request.scheme, name, "--over")
        if name in SHAPES or name == "flows" or spec.static:
            raise InputError(f"--over: {name} is nothing to search between bounds; run fluidcc once for each value")
        if name in bounds:
            raise InputError(f"--over: {name} is given twice; give its bounds once")
        if request.sources and name in request.values():
            raise InputError(f"--over: {name} is held by --set, and searched; leave one of the two out")
        if not equals and name not in usual:
            raise InputError(f"--over: {name} has no usual bounds; write --over {name}=LO:HI")
        bounds[name] = (ends[0].strip(), ends[1].strip()) if equals else usual[name]
    return bounds


def _usual(request: Request) -> dict[str, tuple[Any, Any]]:
    """Bounds for the speed of the port that marks and the packets that are sent."""
    scenario = scenario_of(request)
    rate = next((link.rate for link in scenario.links if link.marking is not None), scenario.links[0].rate)
    sizes = payloads(nic_of(request), request.values().get(PACKET_SIZE)) if request.sources else [scenario.packet_size]
    return usual_bounds(Rate(rate), [{"packet_size": float(size), "burst": scenario.burst} for size in sizes])


def _cases(request: Request, flows: str | None, across: list[str], bounds: dict[str, Any]) -> dict[str, list[Any]]:
    from fluidcc.builders.names import check_name

    cases: dict[str, list[Any]] = {}
    if flows is not None:
        counts = counts_of(flows)
        if ":" in flows:
            counts = sorted({counts[0], round(math.sqrt(counts[0] * counts[-1])), counts[-1]})
        cases["flows"] = counts
    for text in across:
        name, equals, values = text.partition("=")
        name, listed = name.strip(), [value.strip() for value in values.split(",")]
        if not equals or not all(listed):
            raise InputError(f"--across: {text[:60]!r} is no NAME=V,V,...; write for example --across delay=1us,20us")
        check_name(request.scheme, name, "--across")
        if name in bounds or name in cases or name == "flows":
            raise InputError(f"--across: {name} is given twice, or by --over or --flows; leave one of them out")
        cases[name] = listed
    return cases


def _print(heading: str, found: Tuning, files: list[str]) -> None:
    from rich.console import Console
    from rich.table import Table

    from fluidcc.builders.names import format_value
    from fluidcc.studies.tuning.goal import TUNED
    from fluidcc.units import show

    # Of packets where they ran: the search's engine has its own cases, and beside these would contradict them.
    by_packets = found.as_dict()["packets"] or {}
    columns: dict[str, dict[str, Any]] = {}
    if found.start:
        columns["present"] = by_packets.get("start", found.start.metrics)
    columns["best"] = by_packets.get("best", found.best.metrics)
    table = Table(title=f"{heading}, tuned over {', '.join(found.space.names)}", title_justify="left", box=None)
    for i, name in enumerate(["", *columns]):
        table.add_column(name, justify="right" if i else "left")
    for name in found.space.names:
        told = {"present": found.start.point[name] if found.start else None, "best": found.best.point[name]}
        table.add_row(name, *(format_value(name, told[c]) if told.get(c) is not None else "" for c in columns))
    table.add_section()
    for metric in dict.fromkeys(
        [each.metric for each in (*found.goal.objectives, *found.goal.constraints)] + list(_SHOWN)
    ):
        values = [each.get(metric) for each in columns.values()]
        if any(value is not None for value in values):
            table.add_row(metric, *("" if v is None or v != v else show(v, TUNED[metric][0]) for v in values))
    if by_packets:
        for name, dimension in (("pfc_pauses", ""), ("drops", "")):
            table.add_row(name, *("" if name not in c else f"{c[name]:.4g}{dimension}" for c in columns.values()))
    console = Console(highlight=False)
    console.print(table)
    bounds = " and ".join(map(str, found.goal.constraints))
    said = {True: "confirmed by packets", False: "not confirmed by packets", None: "not shown to packets"}
    console.print(f"{said[found.confirmed]}{_conditions(found)}")
    console.print(f"{found.evaluations} settings tried" + (f"; subject to {bounds}" if bounds else ""))
    if "start" in by_packets:
        console.print(
            "packets also had to show no more PAUSEs and drops than at present, or at most twice as many in cases "
            "where the present setting misses a bound"
        )
    if found.trial is not None:
        console.print(table_of(found.trial))
    for note in [*told_plateau(found), *found.notes, *(found.trial.notes() if found.trial else [])]:
        console.print(f"  {note}", markup=False)
    if found.sensitivity is not None:
        ranked = sorted(found.sensitivity.indices.items(), key=lambda each: -each[1]["total"])
        console.print(
            "what matters (Sobol, total): "
            + ", ".join(f"{name} {each['total']:.2f} +- {each['total_conf']:.2f}" for name, each in ranked)
        )
    if files:
        console.print("written: " + ", ".join(files))
