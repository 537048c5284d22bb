"""``fluidcc tune`` on a whole fabric: with ``--workload``, ``--collective``, or a fabric's ``--topology``."""

from __future__ import annotations

import itertools
import math
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fluidcc.cli import output
from fluidcc.cli.contenders import Contenders, contenders, read, told_against, with_values
from fluidcc.cli.request import Request, is_switch
from fluidcc.errors import InputError
from fluidcc.units import TIME, Rate, quantity, show

if TYPE_CHECKING:
    from rich.table import Table

    from fluidcc.operators import Commands
    from fluidcc.operators.devices import Devices
    from fluidcc.studies.tuning import Tuning
    from fluidcc.studies.tuning.on_fabric import FabricTuning
    from fluidcc.studies.tuning.race import Racer
    from fluidcc.workloads.fabrics.topology import Topology

SHAPE = "leaf-spine:4x4x8"
SETTINGS, _LEAST_SETTINGS = 40, 4
PICTURE = "race.png"
_FLOWS = 1500  # of a run, as far as each host could send so many bytes while they arrive:
_SENT = 1.5e7, 1e8
_WIDER = 2.0  # times what anybody uses, to where a range reaches by default
_LOAD = 0.5  # of a workload, as of `fluidcc.fabrics.Traffic`
_AGAIN = 8  # seeds of the command that runs the recommended setting again
_RAMP = 2  # of the least Kmax that is tried by default, over the least Kmin
_USUAL = {"pmax": ("1%", "100%"), "g": ("1/1024", "1/4")}
_OF_FLOWS = ("flows", "start", "initial_rate", "size", "feedback_delay")  # of a request, which a fabric does not have
_TOLD = {
    "slowdown.small.p99": "p99 to 100KB",
    "slowdown.large.p99": "p99 beyond 1MB",
    "collective_time": "time",
    "slowdown.p50": "median slowdown",
    "slowdown.p99": "p99",
    "goodput": "goodput",
    "queue_bytes.p99": "queue p99",
    "pfc_pauses": "PAUSEs",
}
_SHOWN = ("slowdown.small.p99", "slowdown.large.p99", "collective_time", "slowdown.p50", "goodput", "queue_bytes.p99")


def tune_on_fabric(
    request: Request,
    over: Sequence[str],
    traffic: Mapping[str, str | None],
    across: Sequence[str],
    *,
    objective: Sequence[str] | None,
    worst: bool,
    settings: int | None,
    seed: int,
    scheduler: str | None,
    write: str | None,
    json: bool,
) -> None:
    """Race settings on a fabric, and say what the best changes.

    Parameters
    ----------
    request : Request
    over : sequence of str
        As of ``--over``; of thresholds, Pmax and g the name alone will do.
    traffic : mapping
        ``workload``, ``load``, ``until``, ``collective``, ``bytes``.
    across : sequence of str
        As of ``--across``: options of `fluidcc.fabric` or of `fluidcc.collective`, fields of a scenario.
    objective, worst, settings, seed, scheduler, write, json
        As of the command line.

    Raises
    ------
    InputError
        If something makes no sense.
    """
    if settings is not None and settings < _LEAST_SETTINGS:
        raise InputError(f"--evaluations: {settings} settings are too few to race; give {_LEAST_SETTINGS} or more")
    if traffic["collective"] is not None and "," in traffic["collective"]:
        raise InputError("--collective: give one, or several as cases: --across collective=all-reduce,all-to-all")
    alien = next((name for name in _OF_FLOWS if getattr(request, name) is not None), None)
    if alien is not None:
        raise InputError(f"--{alien.replace('_', '-')}: flows on a fabric are those of --workload; leave it out")
    from fluidcc.studies.tuning.on_fabric import tune_fabric
    from fluidcc.workloads.fabrics.shapes import named_topology
    from fluidcc.workloads.fabrics.study import PRESET

    place = SHAPE if request.topology == "incast" else request.topology
    scheme, devices = request.scheme, read(request.sources, request.port)
    sent = contenders([scheme], request.preset or PRESET, request.sets, devices, request.packet_size)
    base = next(iter(sent.options.values()))
    given = {"rate": request.rate, "delay": request.delay}
    shape = {name: value for name, value in {**given, **sent.rates(place, given)}.items() if value is not None}
    network = named_topology(place, **shape)
    cases = _cases(traffic, across, network, sent)
    rate = network.host_rate
    bounds = _bounds(scheme, over, network, [{**base, **case} for case in cases])
    present = _present(scheme, base, list(bounds), rate)
    for line in (*sent.words(network), *network.words):
        output.tell(line)

    tied = _is_step(scheme, base, bounds, rate)

    def make(**values: float) -> dict[str, Any]:
        texts = [f"{name}={_text(name, value)}" for name, value in _whole(values, tied).items()]
        return with_values(scheme, base, texts)

    found = tune_fabric(
        make,
        bounds,
        place,
        cases=cases,
        start=present,
        yardsticks=yardsticks_of(scheme, rate, present),
        objective=list(objective) if objective else None,
        worst=worst,
        settings=SETTINGS if settings is None else settings,
        seed=seed,
        dask=scheduler,
        folder=None if write is None else Path(write) / "runs",
        **shape,
    )
    files: list[str] = []
    if write is not None:
        from fluidcc.operators.commands import FILES, README

        files = [str(path) for path in found.write(write)]
        typed = _typed(request, devices, _whole(found.point, tied), network.places)
        for name, each in typed.items():
            files += [str(path) for path in each.write(Path(write) / name)]
        output.tell_of_others(write, files, (*FILES, README))
        tiers, switches = max(found.topology.tiers.values()), sum(map(is_switch, request.sources or []))
        if {"kmin", "kmax", "pmax"} & bounds.keys() and typed and switches < tiers:
            found.notes.append(
                f"switches of tier {switches + 1} and above have the same thresholds in these runs, and no file: "
                "give theirs by --from, in the order of the tiers"
            )
    again = [_again(request, place, _whole(found.point, tied), case) for case in found.cases if found.point]
    if json:
        more = {"devices": sent.words(network), "commands": again, "files": files}
        output.print_json(found.as_dict() | sent.packets() | more)
        return
    _print(scheme, found)
    if again:
        print(f"with {_AGAIN} other seeds:")
    for line in again:
        print(f"  {line}")
    if files:
        print("written: " + ", ".join(files))


def _is_step(scheme: str, base: Mapping[str, Any], bounds: Mapping[str, Any], rate: Rate) -> bool:
    """Check whether marking begins and is certain at one threshold, as DCTCP's K, and stays so as that is tuned."""
    if "kmin" not in bounds or "kmax" in bounds:
        return False
    present = _present(scheme, base, ["kmin", "kmax"], rate)
    return present["kmin"] == present["kmax"]


def _whole(point: Mapping[str, float] | None, tied: bool) -> dict[str, float]:
    """All values that a setting changes; none of no setting."""
    return {**(point or {}), **({"kmax": point["kmin"]} if tied and point else {})}


def _text(name: str, value: float) -> str:
    from fluidcc.builders.names import dimension_of

    return show(value, dimension_of(name), 12)


def _cases(
    traffic: Mapping[str, str | None], across: Sequence[str], network: Topology, sent: Contenders
) -> list[dict[str, Any]]:
    """All combinations of what is sent: those of a workload's flows, then those of a collective."""
    from fluidcc.surface import keywords
    from fluidcc.workloads.collectives.study import collective
    from fluidcc.workloads.fabrics.study import fabric

    given = {name: value for name, value in traffic.items() if value is not None}
    varied = _varied(across, given)
    names = {*given, *varied}
    flows, transfers = bool(names & {"workload", "flows", "incast"}), "collective" in names
    if not flows and not transfers:
        raise InputError("--workload: nothing is sent; write --workload web-search, or --collective all-reduce")
    if "bytes" in given and not transfers:
        raise InputError("--bytes: belongs to --collective; write --collective all-reduce beside it")
    if "load" in given and not flows:
        raise InputError("--load: belongs to --workload; write --workload web-search beside it, or leave it out")
    sizes = [each["payload"] for each in sent.options.values() if "payload" in each]
    if "payload" not in varied and sizes[1:]:  # the NIC's MTU is not known
        varied["payload"] = [f"{each:g}" for each in sizes]
    found: list[dict[str, Any]] = []
    for sends, function in ((flows, fabric), (transfers, collective)):
        known = {*keywords(function), "payload", *(("collective",) if function is collective else ())}
        known -= {"until"} if flows and function is collective else set()  # it is how long flows arrive
        mine = {name: value for name, value in given.items() if name in known}
        several = {name: values for name, values in varied.items() if name in known}
        if function is fabric and sends:
            mine |= _arrivals(mine, several, network)
        combined = itertools.product(*several.values()) if sends else ()
        found += [{**mine, **dict(zip(several, each, strict=True))} for each in combined]
    return found


def _varied(across: Sequence[str], given: Mapping[str, str]) -> dict[str, list[Any]]:
    """Values of each ``--across``."""
    from fluidcc.surface import keywords
    from fluidcc.workloads.collectives.study import collective
    from fluidcc.workloads.fabrics.study import fabric

    alien = {"schemes", "topology", "seeds", "threads", "dask", "folder", "preset", "kinds"}
    known = {*keywords(fabric), *keywords(collective), "collective", "packet_size"} - alien
    varied: dict[str, list[Any]] = {}
    for text in across:
        name, equals, values = text.partition("=")
        name, listed = name.strip(), [value.strip() for value in values.split(",")]
        if not equals or not all(listed):
            raise InputError(f"--across: {text[:60]!r} is no NAME=V,V,...; write for example --across load=30%,60%")
        if name not in known:
            raise InputError(
                f"--across: {name[:40]!r} is no case of a fabric; write for example load=30%,60% or burst=1,4"
            )
        if name in varied or name in given:
            raise InputError(f"--across: {name} is given twice, or by --{name} too; leave one of them out")
        if len(set(listed)) < len(listed):
            raise InputError(f"--across: {text[:60]!r} has a value twice; write each once")
        varied["payload" if name == "packet_size" else name] = listed
    return varied


def _arrivals(given: Mapping[str, Any], varied: Mapping[str, list[Any]], network: Topology) -> dict[str, str]:
    """For how long flows arrive, if nothing says so: the longest that a workload needs at the highest load."""
    from fluidcc.builders.workloads import load_of
    from fluidcc.workloads.fabrics.traffic import PATTERNS

    both = {**{name: [value] for name, value in given.items()}, **varied}
    named = [each for each in both.get("workload", []) if each not in PATTERNS]
    if not named or "until" in both:
        return {}
    load = max(map(load_of, both.get("load", [])), default=_LOAD)
    return {"until": show(max(_until(each, load, network) for each in named), TIME)}


def _until(workload: str, load: float, network: Topology) -> float:
    """Return for how long a workload's flows arrive by default [s]."""
    from fluidcc.workloads.fabrics.traffic import mean_size

    sent = _FLOWS * mean_size(workload) / (load * len(network.hosts))
    return min(max(sent, _SENT[0]), _SENT[1]) / network.host_rate


def _bounds(
    scheme: str, over: Sequence[str], network: Topology, cases: Sequence[Mapping[str, Any]]
) -> dict[str, tuple[Any, Any]]:
    """Bounds of what is tuned; by default those of what anybody uses at this rate, and of the cases' packets."""
    from fluidcc.builders.names import check_name
    from fluidcc.units import SIZE

    found: dict[str, tuple[Any, Any]] = {}
    for text in over:
        name, equals, values = text.partition("=")
        name, ends = name.strip(), tuple(value.strip() for value in values.split(":"))
        check_name(scheme, name, "--over")
        if name in found:
            raise InputError(f"--over: {name} is given twice; give its bounds once")
        if equals and (len(ends) != 2 or not all(ends)):
            raise InputError(f"--over: {text[:60]!r} is no NAME=LO:HI; write for example --over g=1/1024:1/16")
        usual = usual_bounds(network.host_rate, cases)
        if not equals and name not in usual:
            raise InputError(f"--over: {name} has no usual bounds; write --over {name}=LO:HI")
        found[name] = (ends[0], ends[1]) if equals else usual[name]
    for one, other in (("kmin", "kmax"), ("kmax", "kmin")):  # of which the other stays as it is
        if one in found and other not in found and not _is_step(scheme, cases[0], found, network.host_rate):
            ends = [_present(scheme, cases[0], [other], Rate(rate), place)[other] for place, rate in network.places]
            edge = min(ends) if one == "kmin" else max(ends)
            low, high = (float(quantity(each, SIZE, f"--over {one}")) for each in found[one])
            if low > edge if one == "kmin" else high < edge:
                raise InputError(
                    f"--over: {one} would pass the present {other} of some links, {show(edge, SIZE)}; tune {other} too"
                )
            found[one] = (low, min(high, edge)) if one == "kmin" else (max(low, edge), high)
    return found


def usual_bounds(rate: Rate, cases: Sequence[Mapping[str, Any]]) -> dict[str, tuple[Any, Any]]:
    """No Kmin below the queue of bursts alone, and no threshold beyond twice what anybody uses at this rate."""
    from fluidcc.operators.thresholds import queue_of_bursts, yardsticks
    from fluidcc.scenario.frames import IN_BUFFER
    from fluidcc.units import COUNT, SIZE

    least = max(
        queue_of_bursts(
            quantity(case.get("payload", case.get("packet_size", 1000.0)), SIZE) + IN_BUFFER,
            round(quantity(case.get("burst", 1), COUNT)),
        ).quantile(0.99)
        for case in cases
    )
    used = yardsticks(rate)
    return {
        "kmin": (least, _WIDER * max(each.kmin for each in used)),
        "kmax": (_RAMP * least, _WIDER * max(each.kmax for each in used)),
        **_USUAL,
    }


def _present(
    scheme: str, base: Mapping[str, Any], names: Sequence[str], rate: Rate, place: int = 0
) -> dict[str, float]:
    """Present values of what is tuned: of marking, those of the links to hosts, or of a higher place.

    Raises
    ------
    InputError
        If one has none.
    """
    from fluidcc.builders.common import marking_of
    from fluidcc.builders.names import dimension_of, split
    from fluidcc.scenario.parameters import resolve

    rules = base.get("marking")
    rule = rules[min(place, len(rules) - 1)] if isinstance(rules, list) else rules
    rule = marking_of(rule, base["scheme"], rate)
    homes = {"scheme": base["scheme"], "marking": None if rule is None else resolve(rule), "pfc": base.get("pfc")}
    found: dict[str, float] = {}
    for name in names:
        home = next(home for home, mine in split(scheme, {name: 0}).items() if mine)
        value = base.get(name) if home == "network" else getattr(homes.get(home), name, None)
        if value is None or home == "builder":
            raise InputError(
                f"--over: {name} has no present value on this fabric ({scheme} does not look at it, or nothing says "
                "it); tune another"
            )
        found[name] = float(quantity(value, dimension_of(name), name))
    return found


def yardsticks_of(scheme: str, rate: Rate, present: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Settings with the thresholds that others use, the rest as at present."""
    from fluidcc.operators.thresholds import yardsticks

    if scheme != "dcqcn" or not {"kmin", "kmax"} <= present.keys():
        return {}
    mine = [name for name in ("kmin", "kmax", "pmax") if name in present]
    return {each.name: {**present, **{name: getattr(each, name) for name in mine}} for each in yardsticks(rate)}


def _typed(
    request: Request, devices: Devices | None, point: Mapping[str, float], links: Iterable[tuple[int, float]]
) -> dict[str, Commands]:
    """Commands for a setting, by the folder that they go to: of the ToR and the NIC, and of each tier."""
    from fluidcc.operators.commands import THRESHOLDS, commands_of
    from fluidcc.operators.devices import simulated
    from fluidcc.operators.nvidia_settings import REGISTERS

    if devices is None or not point:
        return {}
    marks = {name: value for name, value in point.items() if name in THRESHOLDS}
    registers = {name: value for name, value in point.items() if name in REGISTERS and devices.nic is not None}
    switches: list[str | None] = [each for each in request.sources or [] if is_switch(each) and marks]
    tiers = simulated(devices, links)
    made = {}
    for k, path in enumerate(switches or [None]):
        changes = {**(marks if path else {}), **(registers if k == 0 else {})}
        groups, said = tiers[k] if path else ((), [])
        made[f"tier{k + 1}" if k else ""] = commands_of(path, groups, None if k else devices.nic, changes, said)
    return made


def _again(request: Request, place: str, point: Mapping[str, float], given: Mapping[str, Any]) -> str:
    """A command that runs a setting beside the present one in a case, with seeds that nothing was chosen by."""
    case = dict(given)
    kind, payload = case.pop("collective", None), case.pop("payload", None)
    command = f"fabric {request.scheme}" if kind is None else f"collective {kind} --scheme {request.scheme}"
    values = ",".join(f"{name}={_text(name, value)}" for name, value in point.items())
    size = request.packet_size if payload is None else payload
    options: list[tuple[str, Any]] = [("from", source) for source in request.sources or []]
    options += [("port", request.port), ("preset", request.preset), ("topology", place), ("packet-size", size)]
    options += [(name, None if name in case else getattr(request, name)) for name in ("rate", "delay")]
    options += [("set", text) for text in request.sets or []]
    options += [*case.items(), ("seeds", _AGAIN), ("setting", f"new:{values}")]
    return f"fluidcc {command} " + " ".join(
        f"--{name.replace('_', '-')} {shlex.quote(str(value))}" for name, value in options if value is not None
    )


def _print(scheme: str, found: FabricTuning) -> None:
    from rich.console import Console

    from fluidcc.studies.tuning.on_fabric import better, told, worse

    console = Console(highlight=False)
    settings = f"{len(found.racers)} settings of {', '.join(found.space.names)}"
    console.print(f"{scheme} on {len(found.topology.hosts)} hosts: {settings}, {found.runs} runs")
    shown = found.best or next((name for name in found.proofs if name not in found.yardsticks), None)
    if found.best is None:
        proof = found.proofs.get(shown or "")
        trades = proof is not None and better(found.rule, proof) and bool(worse(found.rule, proof))
        why = "what is better than the present setting in one is worse in another"
        console.print(
            f"nothing to type: {why if trades else 'no setting is shown to be better than the present one'}",
            style="bold",
        )
    if shown is not None:
        word = _title(found, shown) if found.best else "the best that was found"
        console.print(f"{word}: {told(found.proofs[shown].point)}", style="bold")
        for line in lines_of(found, found.proofs[shown]):
            console.print(f"  {line}", markup=False)
    if found.proofs:
        console.print(_table(found))
        fresh = " or ".join(map(str, sorted({each.seeds for each in found.proofs.values()})))
        console.print(f"geometric means and 95 % intervals of {fresh} seeds that nothing was chosen by")
    for says, flows in zip(found.says, found.flows, strict=True):
        if flows:
            sizes = f"{flows['small']:,} flows to 100KB and {flows['large']:,} beyond 1MB"
            console.print(f"proved with {sizes} ({says})", markup=False)
    console.print(f"present: {told(found.start)}")
    for line in told_plateau(found):
        console.print(line, markup=False)
    for note in found.notes:
        console.print(note, markup=False)


def told_plateau(found: FabricTuning | Tuning) -> list[str]:
    """Say which settings are as good as the best, where there are others, and which variable does not matter."""
    from fluidcc.builders.names import format_value

    ends = ", ".join(
        f"{name} {format_value(name, low)}" + (f" to {format_value(name, high)}" if high > low else "")
        for name, (low, high) in found.plateau.items()
    )
    others = any(high > low for low, high in found.plateau.values())
    lines = [f"as good as the best, within 5 % and its error: {ends}"] if others else []
    return lines + ([f"hardly matters: {', '.join(found.irrelevant)}"] if found.irrelevant else [])


def _table(found: FabricTuning) -> Table:
    """Settings that fresh seeds ran side by side: values, and ratios to the present setting's in each case."""
    from rich.table import Table

    from fluidcc.builders.names import format_value

    table = Table(box=None)
    shown = {_title(found, name): each for name, each in found.proofs.items()}
    for i, column in enumerate(("over the present setting's", *shown)):
        table.add_column(column, justify="right" if i else "left")
    for name in found.space.names:
        table.add_row(name, *(format_value(name, each.point[name]) for each in shown.values()))
    for case, says in enumerate(found.says):
        if found.says[1:]:
            table.add_row(_case(found, case, says))
        for name in dict.fromkeys((*_SHOWN, *found.rule.objectives)):
            row = [each.ratios(case)[name] for each in shown.values()]
            if any(math.isfinite(each["mean"]) for each in row):
                table.add_row(_TOLD[name], *(_cell(each) for each in row))
    return table


def lines_of(found: FabricTuning, proof: Racer) -> list[str]:
    """Say, for each case, in what a setting is better and worse than the present one."""
    lines = []
    for case, says in enumerate(found.says):
        ratios = proof.ratios(case)
        own, present = proof.found[case, -1].sum(axis=0)
        measures = {name: _TOLD[name] for name in _TOLD if name != "pfc_pauses" or ratios[name]["mean"] != 1}
        what = "transfers" if "collective" in found.cases[case] else "flows"
        words = told_against(ratios, measures, (int(own), int(present)), what)
        lines.append(f"{_case(found, case, says)}: {words}" if found.says[1:] else f"{says}: {words}")
    return lines


def _case(found: FabricTuning, case: int, says: str) -> str:
    """Name a case by what its traffic does not say, and another case has otherwise."""
    names = [name for name in found.cases[case] if name not in ("workload", "load", "until", "collective", "bytes")]
    varied = [name for name in names if len({str(each.get(name)) for each in found.cases}) > 1]
    words = {"payload": "packets of", "burst": "bursts of"}
    units = {"payload": " B"}
    told = [f", {words.get(name, name)} {found.cases[case][name]}{units.get(name, '')}" for name in varied]
    return says + "".join(told)


def _title(found: FabricTuning, name: str) -> str:
    own = f" ({name})" if name in found.yardsticks else ""
    return f"recommended{own}" if name == found.best else name if own else f"not taken ({name})"


def _cell(ratio: Mapping[str, float]) -> str:
    if not math.isfinite(ratio["mean"]):
        return "none"
    return f"{ratio['mean']:.3g} ({ratio['low']:.3g}–{ratio['high']:.3g})"
