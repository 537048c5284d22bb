"""``fluidcc fabric``."""

from __future__ import annotations

import dataclasses
import itertools
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fluidcc import units
from fluidcc.cli import complete, output
from fluidcc.cli import options as o
from fluidcc.cli.contenders import (
    Contenders,
    contenders,
    print_against,
    read,
    told_against,
    told_pairs,
    with_sets,
    with_values,
)
from fluidcc.errors import InputError

if TYPE_CHECKING:
    from fluidcc.workloads.fabrics.study import FabricStudy

EXAMPLES = (
    "fluidcc fabric hpcc,dcqcn --topology leaf-spine:2x2x8 \\\n    --workload hadoop --load 50% --until 1ms",
    "fluidcc fabric hpcc --workload web-search+hadoop --until 1ms --out out",
)
_MOST_BINS = 100
_MEASURES = {
    "p50": "median slowdown",
    "p99": "p99",
    "p99_small": "p99 to 100KB",
    "p99_large": "p99 beyond 1MB",
    "p50_largest": "median beyond 10MB",
    "goodput": "goodput",
    "queue_p99": "queue p99",
}


def command(
    schemes: Annotated[
        str | None,
        typer.Argument(
            metavar="SCHEME[,SCHEME...]",
            help="Schemes to compare, for example hpcc,dcqcn.",
            autocompletion=complete.schemes,
        ),
    ] = None,
    topology: Annotated[
        str | None,
        typer.Option(
            help="fat-tree:320 (default), k-ary:K, leaf-spine:LxSxH (leaves, spines, hosts of each leaf), testbed, "
            "pod, dcqcn-clos, a topology.txt, or htsim's .topo."
        ),
    ] = None,
    flows_file: Annotated[
        str | None, typer.Option(metavar="FILE", help="File of flows: an ns-3 flow.txt, or an htsim connection matrix.")
    ] = None,
    config: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Read everything from an HPCC simulator's config.txt; --topology and --flows-file replace its files.",
        ),
    ] = None,
    workload: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE[+...]",
            help="web-search, hadoop, alibaba-storage, or a file of sizes and percents; a mix of them: A+B, or "
            "A:70%+B:30% of the load; permutation, all-to-all.",
        ),
    ] = None,
    load: Annotated[
        str | None, typer.Option(help="Load of the workload, as a share of all hosts' rate; 0.5 by default.")
    ] = None,
    until: Annotated[str | None, typer.Option(help="Time at which a workload's flows stop arriving.")] = None,
    incast: Annotated[
        str | None,
        typer.Option(metavar="DEGREE:SIZE:LOAD", help="Incasts in addition to the workload, such as 60:500KB:2%."),
    ] = None,
    size: Annotated[
        str | None, typer.Option(help="Size of the flows of permutation and all-to-all; 1MB by default.")
    ] = None,
    pairs: Annotated[
        int | None, typer.Option(help="Instead of --load: this many pairs of hosts send flow after flow until --until.")
    ] = None,
    rebuild: Annotated[
        int | None, typer.Option(help="With --pairs: this many hosts send to another one, as when a disk is rebuilt.")
    ] = None,
    rate: Annotated[str | None, typer.Option(help="Rate of the hosts' links; the topology's own by default.")] = None,
    fabric_rate: Annotated[
        str | None, typer.Option(help="Rate of the links between switches; the topology's own by default.")
    ] = None,
    delay: Annotated[
        str | None, typer.Option(help="One-way delay of each link; the topology's own by default.")
    ] = None,
    oversubscription: Annotated[
        str | None,
        typer.Option(
            metavar="R", help="Oversubscription: total rate of a ToR's hosts, divided by that of its uplinks."
        ),
    ] = None,
    preset: Annotated[
        str | None, typer.Option(help="Parameter set of all schemes; by default hpcc-eval: 32 MB buffers and PFC.")
    ] = None,
    loss_recovery: Annotated[
        str | None, typer.Option(help="Repair of lost packets: none, gbn (go-back-N), irn, or trimming by switches.")
    ] = None,
    sets: o.Sets = None,
    sources: o.FabricFrom = None,
    port: o.Port = None,
    packet_size: o.FabricPacketSize = None,
    burst: o.Burst = None,
    setting: o.Setting = None,
    seeds: Annotated[int, typer.Option(help="Runs of each scheme, with seeds 1, 2, ...")] = 1,
    since: Annotated[
        str | None, typer.Option(help="Time from which queues and goodput are measured; 0 by default.")
    ] = None,
    drain: Annotated[
        str | None, typer.Option(help="Time to wait for unfinished flows after the last one has started.")
    ] = None,
    ideal: Annotated[
        str | None,
        typer.Option(help="Ideal time that slowdowns are relative to: alone (default), or with --config hpcc-sim."),
    ] = None,
    causes: Annotated[
        bool,
        typer.Option(
            "--causes", help="Run the first scheme again without ECMP collisions, and again with equally fast hosts."
        ),
    ] = False,
    bins: Annotated[str, typer.Option(help="Number of size classes, or their bounds: 0B,10KB,1MB,10MB.")] = "10",
    threads: Annotated[int | None, typer.Option(help="Runs at the same time; by default one for each core.")] = None,
    scheduler: o.Scheduler = None,
    out: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Write pictures, tables and runs; runs already there are not repeated."),
    ] = None,
    json: o.Json = False,
) -> None:
    """Simulate flow completion times on a whole fabric.

    Schemes run side by side on the same flows, packet by packet.
    """
    edges = _bins(bins)
    sets = with_sets(sets, loss_recovery=loss_recovery, burst=burst)
    options: dict[str, Any] = {
        "flows": flows_file, "workload": workload, "load": load, "until": until, "incast": incast, "size": size,
        "pairs": pairs, "rebuild": rebuild, "rate": rate,
        "fabric_rate": fabric_rate, "delay": delay, "oversubscription": oversubscription,
    }  # fmt: skip
    if out is not None:
        output.make_folder(out, "--out")
    from fluidcc.workloads.fabrics.study import PRESET, fabric

    if config is not None:
        if schemes is not None:
            raise InputError(f"SCHEME: {config[:100]} names its own; leave it out, or leave out --config")
        aliens = {"--from": sources, "--port": port, "--packet-size": packet_size, "--setting": setting}
        alien = next((name for name, value in aliens.items() if value), None)
        if alien is not None:
            raise InputError(f"{alien}: {config[:100]} says all that; leave it out, or leave out --config")
        chosen, place, options, drain = _of_config(config, sets, {**options, "preset": preset}, drain, topology)
        sent = Contenders(chosen)
        ideal = "hpcc-sim" if ideal is None else ideal
    else:
        if schemes is None:
            raise InputError("SCHEME: none is named; write for example fluidcc fabric hpcc,dcqcn --workload web-search")
        names = [name.strip() for name in schemes.split(",")]
        if len(set(names)) < len(names):
            raise InputError(f"SCHEME: {schemes[:60]!r} has one twice; write each once")
        place = topology or "fat-tree:320"
        sent = contenders(names, preset or PRESET, sets, read(sources, port), packet_size, setting)
        chosen, options = sent.options, {**options, **sent.rates(place, options)}
    found = fabric(
        chosen,
        place,
        seeds=seeds,
        since=since or 0.0,
        drain=drain,
        ideal=ideal or "alone",
        threads=threads,
        dask=scheduler,
        folder=out,
        **{name: value for name, value in options.items() if value is not None},
    )
    if config is None:
        for line in (*sent.words(found.topology), *found.words):
            output.tell(line)
    against = [(*names, found.against(*names)) for names in sent.pairs]
    if not json:  # before anything is written that a full disk may not take
        _print(found, ideal or "alone")
        for one, other, ratios in against:
            print_against(one, other, words_against(found, one, other, ratios))
    faults: list[Any] = []
    if causes:
        from fluidcc.workloads.fabrics.cause import causes as causes_of
        from fluidcc.workloads.fabrics.study import OF_SHAPE

        sends = {name: value for name, value in options.items() if value is not None and name not in OF_SHAPE}
        faults = causes_of(
            next(iter(chosen.values())), found.topology, seeds=seeds, since=since or 0.0, drain=drain,
            threads=threads, dask=scheduler, folder=out, **sends,
        )  # fmt: skip
        if not json:
            _print_causes(faults, seeds)
    files = [] if out is None else found.write(out, edges)
    if json:
        from fluidcc.results.schema import plain

        more = {
            "against": told_pairs(against),
            "causes": plain([dataclasses.asdict(each) for each in faults]),
            "devices": sent.words(found.topology),
            "files": [str(path) for path in files],
        }
        output.print_json({**found.as_dict(edges), **more, **sent.packets()})
    else:
        for path in files:
            output.tell(f"wrote {path}")


def _print_causes(found: list[Any], seeds: int) -> None:
    """Say what the fabric itself adds with this setting."""
    from fluidcc.workloads.fabrics.cause import part
    from fluidcc.workloads.fabrics.study import LEAST_SEEDS

    for each in found:
        share = part(each)
        verdict = f"its part of a tail is {share:.0%} with this setting" if share else "no part of a tail for sure"
        if seeds < LEAST_SEEDS:
            verdict = f"give --seeds {LEAST_SEEDS} or more to tell"
        print(f"{each.says}: {told_against(each.ratios, _MEASURES)}; {verdict}")
    if not found:
        print("one switch and hosts of one speed: no paths collide, and none is slow")


def _bins(text: str) -> Any:
    if "," in text:
        ends = [units.parse(part, units.SIZE, "--bins") for part in text.split(",")]
        if any(b <= a for a, b in itertools.pairwise(ends)):
            raise InputError(f"--bins: {text[:60]!r}: sizes must grow; write 0B,10KB,1MB")
        return ends
    if not text.isdecimal() or not 1 <= int(text) <= _MOST_BINS:
        raise InputError(f"--bins: {text[:40]!r} is no number to {_MOST_BINS}, and no sizes; write 10 or 0B,10KB,1MB")
    return int(text)


def _of_config(
    path: str, sets: list[str] | None, given: dict[str, Any], drain: str | None, topology: str | None
) -> tuple[dict[str, Any], Any, dict[str, Any], Any]:
    """Schemes, topology, traffic and how long is waited, of a config.txt, beside which nothing else says so."""
    from fluidcc.workloads.fabrics.hpcc_config import read_config

    flows = given.pop("flows")
    alien = next((name for name, value in given.items() if value is not None), None)
    if alien is not None:
        raise InputError(
            f"--{alien.replace('_', '-')}: {path[:100]} says all that; leave it out, or leave out --config"
        )
    found = read_config(path, topology=topology, flows=flows)
    for line in found.words:
        output.tell(f"{path}: {line}")
    chosen = {found.scheme: with_values(found.scheme, found.options, sets)}
    left = max(0.0, found.until - float(found.flows.rows[:, 2].max(initial=0.0)))
    return chosen, found.topology, {"flows": found.flows}, left if drain is None else drain


def words_against(found: FabricStudy, one: str, other: str, ratios: dict[str, dict[str, float]]) -> str:
    """Say how a contender compares with another, of which these are the ratios."""
    lacking = [sum(run.slowdown.unfinished for run in found.of(name)) for name in (one, other)]
    return told_against(ratios, _MEASURES, (lacking[0], lacking[1]))


def _print(found: FabricStudy, ideal: str) -> None:
    from rich.console import Console
    from rich.table import Table

    from fluidcc.workloads.fabrics.study import intervals_of

    several = len(found.seeds) > 1
    rows = found.as_dict()["schemes"]
    slowdowns = Table(title=f"{len(found.topology.hosts)} hosts, {found.says}", title_justify="left", box=None)
    slowdowns.add_column("slowdown", no_wrap=True)
    for column in ("mean", "p50", "p95", "p99", "p99.9"):
        slowdowns.add_column(column, overflow="fold")
    rest = Table(box=None)
    counted = {"PAUSEs": "pfc_pauses", "drops": "drops"}
    # What only some runs have is shown where it is there.
    more = {"trimmed": "trims", "resent": "retransmissions", "late": "reordered"}
    counted |= {text: name for text, name in more.items() if any(run.numbers.get(name) for run in found.runs)}
    for column in ("", "flows", "unfinished", "goodput", "queue p99", *counted):
        rest.add_column(column)
    for row in rows:
        runs = found.of(row["scheme"])
        slowdowns.add_row(row["scheme"], *(_cell(each) for each in row["slowdown"].values()))
        goodput = sum(each.numbers["goodput_bytes_per_s"] for each in runs) / len(runs)
        queue = sum(each.numbers["queue_bytes"]["p99"] for each in runs) / len(runs)
        lost = f"[bold red]{row['unfinished']:,}[/]" if row["unfinished"] else "0"
        told = units.show(goodput, units.RATE), units.show(queue, units.SIZE)
        counts = [f"{sum(each.numbers.get(name, 0) for each in runs):,}" for name in counted.values()]
        rest.add_row(row["scheme"], f"{row['flows']:,}", lost, *told, *counts)
    console = Console()
    console.print(slowdowns)
    console.print(rest)
    means = intervals_of(len(found.seeds), "of slowdowns with 95 % intervals")
    told = f"slowdowns, goodput, queues: means of {means}; flows, PAUSEs and drops are sums\n" if several else ""
    least = {"alone": "that alone", "hpcc-sim": "the simulator's own for an idle network, which counts a packet twice"}
    console.print(f"{told}slowdown: completion time over {least[ideal]}, of flows that finished")
    stuck = next((run for run in found.runs if run.numbers["deadlock_s"] is not None), None)
    if stuck is not None:
        at = units.show(stuck.numbers["deadlock_s"], units.TIME)
        console.print(f"[bold red]deadlock[/]: {stuck.scheme}, seed {stuck.seed}: ports wait for each other since {at}")
    names = {"setup_s": "setup", "compile_s": "compiling", "wall_s": "loop", "analysis_s": "analysis"}
    times = [f"{text} {sum(run.numbers[name] for run in found.runs):.1f} s" for name, text in names.items()]
    begins, ends = (units.show(each, units.TIME) for each in found.runs[0].numbers["window_s"])
    window = f"from {begins} to {ends}" if found.runs[0].numbers["window_s"][0] else f"over the first {ends}"
    console.print(f"queues and goodput {window}, PAUSEs and drops until the end; all runs: {', '.join(times)}")


def _cell(each: dict[str, float]) -> str:
    if each["mean"] is None:
        return "none"
    known = each["low"] is not None
    return f"{each['mean']:.3f}" + (f" ({each['low']:.3g}–{each['high']:.3g})" if known else "")
