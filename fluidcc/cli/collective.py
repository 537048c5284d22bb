"""``fluidcc collective``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from fluidcc import units
from fluidcc.cli import complete, output
from fluidcc.cli import options as o
from fluidcc.cli.contenders import contenders, print_against, read, told_against, told_pairs, with_sets
from fluidcc.errors import InputError

if TYPE_CHECKING:
    from fluidcc.workloads.collectives.run import CollectiveRun
    from fluidcc.workloads.collectives.study import CollectiveStudy

EXAMPLES = (
    "fluidcc collective all-reduce,all-to-all --hosts 16 --bytes 4MB \\\n    --scheme hpcc,dcqcn,none --out out",
    "fluidcc collective all-reduce --hosts 64 --engine fluid",
)
_SHOWN = 4  # ports with the most PAUSEs
_WIDEST = 1000  # characters of a table
_EXAMPLE = "write for example fluidcc collective all-reduce --hosts 16 --bytes 16MB --scheme hpcc,dcqcn"


def command(
    kinds: Annotated[
        str | None,
        typer.Argument(
            metavar="KIND[,KIND...]",
            help="Collectives: all-reduce, all-gather, reduce-scatter, all-to-all, broadcast, pipeline.",
        ),
    ] = None,
    scheme: Annotated[
        str,
        typer.Option(metavar="NAME[,NAME...]", help="Schemes to compare.", autocompletion=complete.schemes),
    ] = "hpcc",
    topology: Annotated[
        str,
        typer.Option(help="leaf-spine:LxSxH (leaves, spines, hosts of each leaf), or any topology of fluidcc fabric."),
    ] = "leaf-spine:4x4x16",
    hosts: Annotated[int | None, typer.Option(help="Number of hosts to use; all by default.")] = None,
    size: Annotated[
        str | None,
        typer.Option(
            "--bytes", metavar="SIZE", help="Bytes of the collective, as nccl-tests counts them; 1MB by default."
        ),
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Repetitions, one after the other; 1 by default.")] = None,
    compute: Annotated[
        str | None,
        typer.Option(
            metavar="T", help="Computing time before each repetition (pipeline: of each stage and chunk); 0 by default."
        ),
    ] = None,
    chunks: Annotated[
        int | None,
        typer.Option(
            help="Parallel rings, or parts that tree, broadcast and pipeline send in turn; by default 1 (tree: 16)."
        ),
    ] = None,
    algorithm: Annotated[str | None, typer.Option(help="Algorithm of all-reduce: ring (default) or tree.")] = None,
    skew: Annotated[
        str | None,
        typer.Option(help="Skew of all-to-all: traffic to the k-th rank falls as k to this power; 0 by default."),
    ] = None,
    server: Annotated[
        int | None, typer.Option(metavar="N", help="Ranks in each server, which copy inside it; 1 by default.")
    ] = None,
    server_rate: Annotated[
        str | None, typer.Option(metavar="R", help="Rate of each rank's copies inside a server.")
    ] = None,
    jobs: Annotated[int | None, typer.Option(help="Number of equal jobs that share the hosts; 1 by default.")] = None,
    separately: Annotated[
        bool, typer.Option("--separately", help="Also run each job alone, to show how much they slow each other.")
    ] = False,
    file: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Instead of KIND: jobs (.toml), GOAL, a SimAI workload, or Chakra (NAME.0.et)."
        ),
    ] = None,
    placement: Annotated[
        str,
        typer.Option(
            help="Place of the ranks: block, round-robin (one of each rack in turn), random, or hosts: 0,4,1,5."
        ),
    ] = "block",
    engine: Annotated[
        str,
        typer.Option(help="packet, or fluid: flow level, for schemes and patterns that were checked against packets."),
    ] = "packet",
    unchecked: Annotated[
        bool, typer.Option("--unchecked", help="Let the fluid run unchecked schemes and patterns too; results say so.")
    ] = False,
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
    until: Annotated[
        str | None, typer.Option(help="Time limit; by default 20 times the time on an idle fabric.")
    ] = None,
    threads: Annotated[int | None, typer.Option(help="Runs at the same time; by default one for each core.")] = None,
    scheduler: o.Scheduler = None,
    out: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Write pictures, tables and runs; runs already there are not repeated."),
    ] = None,
    json: o.Json = False,
) -> None:
    """Simulate how long collectives take on a fabric.

    Schemes run side by side. A rank's transfers wait for those it depends on.
    """
    if (kinds is None) == (file is None):
        raise InputError(f"KIND: give one, or --file in its place; {_EXAMPLE}")
    sets = with_sets(sets, loss_recovery=loss_recovery, burst=burst)
    if engine == "fluid" and burst is not None:
        raise InputError("--burst: at flow level NICs send evenly; leave it out, or leave out --engine fluid")
    if out is not None:
        output.make_folder(out, "--out")
    from pathlib import Path

    from fluidcc.workloads.collectives.study import collective
    from fluidcc.workloads.fabrics.study import PRESET

    names = [name.strip() for name in scheme.split(",")]
    if len(set(names)) < len(names):
        raise InputError(f"--scheme: {scheme[:60]!r} has one twice; write each once")
    options: dict[str, Any] = {
        "bytes": size, "steps": steps, "compute": compute, "chunks": chunks, "algorithm": algorithm, "skew": skew,
        "server": server, "server_rate": server_rate, "hosts": hosts, "jobs": jobs, "until": until,
        "rate": rate, "fabric_rate": fabric_rate, "delay": delay, "oversubscription": oversubscription,
    }  # fmt: skip
    sent = contenders(names, preset or PRESET, sets, read(sources, port), packet_size, setting)
    options |= sent.rates(topology, options)
    found = collective(
        Path(file) if file is not None else (kinds or ""),
        topology,
        sent.options,
        placement=_placement(placement),
        engine=engine,
        seeds=seeds,
        separately=separately,
        threads=threads,
        dask=scheduler,
        unchecked=unchecked,
        folder=out,
        **{name: value for name, value in options.items() if value is not None},
    )
    devices = sent.words(found.topology)
    for line in (*devices, *found.words):
        output.tell(line)
    against = [(*pair, found.against(*pair)) for pair in sent.pairs]
    if not json:  # before anything is written that a full disk may not take
        _print(found)
        for one, other, ratios in against:
            lacking = [sum(run.numbers["unfinished"] for run in found.of(name)) for name in (one, other)]
            measures = {case: f"time of {case}" for case in found.cases}
            print_against(one, other, told_against(ratios, measures, (lacking[0], lacking[1]), "transfers"))
    files = [] if out is None else found.write(out)
    if json:
        more = {"against": told_pairs(against), "devices": devices, "files": [str(path) for path in files]}
        output.print_json({**found.as_dict(), **more, **sent.packets()})
    else:
        for path in files:
            output.tell(f"wrote {path}")


def _placement(text: str) -> Any:
    """A rule by name, or hosts."""
    parts = [part.strip() for part in text.split(",")]
    return [int(part) for part in parts] if all(part.isdecimal() and len(part) < 10 for part in parts) else text


def _print(found: CollectiveStudy) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from fluidcc.workloads.fabrics.study import intervals_of

    console = Console(markup=False, emoji=False)  # names are the user's
    several = len(found.seeds) > 1
    for case, says in zip(found.cases, found.says, strict=True):
        table = Table(title=f"{says} ({len(found.topology.hosts)} hosts)", title_justify="left", box=None)
        columns = ("", "time", "bus bandwidth", "steps p50", "p99", "PAUSEs", "drops", "trimmed", "resent")
        for column in columns:
            table.add_column(column)
        for row in (each for each in found.summary() if each["collective"] == case):
            runs = found.of(row["scheme"], case)
            steps = [run.numbers["step_time_s"] for run in runs]
            table.add_row(
                row["scheme"],
                _cell(row["time_s"], units.TIME) or Text("unfinished", "bold red"),
                _cell(row["bus_bandwidth_bytes_per_s"], units.RATE),
                *(_mean([step[name] for step in steps]) for name in ("p50", "p99")),
                *(f"{row[name]:,}" for name in ("pfc_pauses", "drops", "trims", "retransmissions")),
            )
        _wide(table).print(table)
        for name in found.schemes:
            lost = [run for run in found.of(name, case) if run.numbers["unfinished"]]
            for run in lost:
                told = f"{run.numbers['unfinished']:,} of {run.numbers['transfers']:,} transfers unfinished"
                waited = units.show(run.numbers["until_s"], units.TIME, 3)
                advice = f"{told} after {waited}, in no mean; {_advice(run)}"
                console.print(Text.assemble((f"{name}, seed {run.seed}", "bold red"), f": {advice}"))
        _print_doubts(console, found, case)
        told = [f"{name} {_slowest(found.of(name, case)[0].numbers['slowest_path'])}" for name in found.schemes]
        console.print(f"slowest path, seed {found.seeds[0]}: {'; '.join(told)}")
        _print_pauses(console, found, case)
        _print_jobs(console, found, case)
    if several:
        console.print(f"means of {intervals_of(len(found.seeds), 'with 95 % intervals')}; counts are sums")
    names = {"setup_s": "setup", "compile_s": "compiling", "wall_s": "loop"}
    times = [f"{text} {sum(run.numbers[name] for run in found.runs):.1f} s" for name, text in names.items()]
    console.print(f"steps: a transfer's time from its start to its last ACK; all runs: {', '.join(times)}")


def _wide(table: Any) -> Any:
    """A console on which a table keeps its units; a narrower terminal breaks its lines."""
    from rich.console import Console

    console = Console(markup=False, emoji=False)
    needed = console.measure(table, options=console.options.update(max_width=_WIDEST)).maximum
    return Console(markup=False, emoji=False, width=max(console.width, needed))


def _advice(run: CollectiveRun) -> str:
    """Return advice for transfers that did not end."""
    if run.numbers["drops"] and run.numbers["loss_recovery"] == "none":
        return f"{run.numbers['drops']:,} packets were dropped and nobody sends them again: --loss-recovery irn does"
    return "see --until"


def _print_pauses(console: Any, found: CollectiveStudy, case: str) -> None:
    """Print where PFC stopped ports, if it did."""
    for scheme in found.schemes:
        runs = found.of(scheme, case)
        if any(run.numbers["pfc_pauses"] for run in runs):
            tiers = runs[0].numbers["pauses"]
            told = [f"{tier} {sum(run.numbers['pauses'][tier] for run in runs):,}" for tier in tiers]
            ports = runs[0].numbers["paused_ports"]
            most = [
                f"{port['port']} {port['pauses']:,} ({units.show(port['paused_s'], units.TIME, 3)})"
                for port in ports[:_SHOWN]
            ]
            where = f"; most of {len(ports)} ports, seed {runs[0].seed}: {', '.join(most)}" if most else ""
            console.print(f"PAUSEs received, {scheme}: {', '.join(told)}{where}")


def _print_doubts(console: Any, found: CollectiveStudy, case: str) -> None:
    """Print what is unchecked in runs by the fluid: not compared with packets, or known to be off."""
    from rich.text import Text

    for row in found.summary():
        if row["collective"] == case and row["unchecked"]:
            told = f": {'; '.join(row['unchecked'])}"
            console.print(Text.assemble((f"unchecked, {row['scheme']}", "bold yellow"), told))


def _print_jobs(console: Any, found: CollectiveStudy, case: str) -> None:
    """Print each job's time, if there are several."""
    for scheme in found.schemes:
        run = found.of(scheme, case)[0]
        jobs = run.numbers["jobs"]
        if len(jobs) < 2:
            continue
        told = []
        for job in jobs:
            took = "unfinished" if job["time_s"] is None else units.show(job["time_s"], units.TIME, 4)
            slower = f" ({job['slowdown']:.3f} of alone)" if job.get("slowdown") else ""
            told.append(f"{job['name']} {took}{slower}")
        fair = "" if run.numbers["jain"] is None else f"; Jain's index {run.numbers['jain']:.4f}"
        console.print(f"jobs, {scheme}, seed {run.seed}: {', '.join(told)}{fair}")


def _cell(each: dict[str, Any], dimension: str) -> str:
    if each["mean"] is None:
        return ""
    mean, low, high = (None if value is None else units.show(value, dimension, 4) for value in each.values())
    return f"{mean}" if low is None else f"{mean} ({low} to {high})"


def _mean(values: list[float | None]) -> str:
    known = [value for value in values if value is not None]
    return units.show(sum(known) / len(known), units.TIME, 3) if known else "none"


def _slowest(path: dict[str, Any] | None) -> str:
    return "none" if path is None else f"{path['source']} to {path['target']}, {path['slowdown']:.2f} of alone"
