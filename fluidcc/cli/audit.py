"""``fluidcc audit``."""

from __future__ import annotations

import dataclasses
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fluidcc.cli import options as o
from fluidcc.cli import output
from fluidcc.cli.request import is_switch
from fluidcc.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fluidcc.operators.audit import Audit
    from fluidcc.operators.counted import Counted
    from fluidcc.operators.finding import Finding

EXAMPLES = (
    "fluidcc audit --sonic config_db.json --nic nic.txt --flows 8",
    "fluidcc audit config_db.json nic.txt --counters counters/after",
)
FAILED = 3  # exit status: something is as bad as --fail-on says
_NAMED = 4  # ports of a group that are listed
_WORSE = {"bad": ("bad",), "warn": ("bad", "warn")}
_COLOURS = {"bad": "red", "warn": "yellow", "ok": "green"}


def command(
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="SWITCH [NIC]", help="Files of the switch and NIC, as with --switch and --nic."),
    ] = None,
    sonic: Annotated[
        list[str] | None,
        typer.Option(
            "--switch",
            "--sonic",
            metavar="FILE",
            help="The switch's config_db.json, or another system's configuration.",
        ),
    ] = None,
    nic: Annotated[list[str] | None, typer.Option(metavar="FILE|DIR", help="The NIC's DCQCN settings.")] = None,
    port: Annotated[str, typer.Option(metavar="NAMES", help="Ports by name or alias, with commas; or all.")] = "all",
    flows: Annotated[int, typer.Option(help="Flows that converge on a port.")] = 8,
    rtt: Annotated[str, typer.Option(metavar="TIME", help="Round trip of an empty network.")] = "4us",
    packets: Annotated[int, typer.Option(help="Packet runs, which decide where the fluid disagrees; 0 for none.")] = 2,
    packet_size: Annotated[
        str | None,
        typer.Option(
            "--packet-size", metavar="SIZE", help="Payload of a packet; by default the NIC's, or 1024 and 4096."
        ),
    ] = None,
    rate: Annotated[str, typer.Option(metavar="RATE", help="Speed of ports whose file gives none.")] = "100Gbps",
    buffer: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Buffer that a queue may fill, if thresholds are given as shares of it."),
    ] = None,
    counters: o.Counters = None,
    before: o.Before = None,
    interval: o.Interval = None,
    workload: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Workload during the counters, run in packets to compare the marks."),
    ] = None,
    fail_on: Annotated[
        str | None,
        typer.Option("--fail-on", metavar="warn|bad", help="Exit with status 3 if a finding is this severe."),
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Also show the settings, and what is not modelled.")
    ] = False,
    json: o.Json = False,
) -> None:
    """Check DCQCN settings of a switch and its NICs.

    Prints what is wrong, and what to type instead.
    """
    from fluidcc.operators.audit import audit

    if fail_on is not None and fail_on not in _WORSE:
        raise InputError(f"--fail-on: {fail_on[:20]!r} is no severity; write warn or bad")
    found = audit(
        *_devices(files or [], sonic or [], nic or []),
        port=port,
        flows=flows,
        rtt=rtt,
        packets=packets,
        packet_size=packet_size,
        rate=rate,
        buffer=buffer,
        counters=tuple(counters or ()),
        before=tuple(before or ()),
        interval=interval,
        workload=workload,
    )
    if json:
        output.print_json(found.as_dict())
    else:
        print_audit(found, verbose=verbose)
    findings = [*(finding for each in found.groups for finding in each.findings)]
    findings += found.counted.findings if found.counted is not None else []
    if fail_on is not None and any(finding.severity in _WORSE[fail_on] for finding in findings):
        raise typer.Exit(FAILED)


def _devices(files: Sequence[str], sonic: Sequence[str], nic: Sequence[str]) -> tuple[str, str | None]:
    """The switch's and the NIC's, each given by an option or just named."""
    switches, nics = list(sonic), list(nic)
    for name in files:
        (switches if is_switch(name, "") else nics).append(name)
    for what, names in (("switch", switches), ("NIC", nics)):
        if names[1:]:
            raise InputError(f"{names[1][:200]}: is one more {what}; audit takes one of each")
    if not switches:
        if nics:
            _refuse_unknown(nics[0])
        raise InputError("--switch (or --sonic): no switch is given; write fluidcc audit config_db.json nic.txt")
    return switches[0], nics[0] if nics else None


def _refuse_unknown(name: str) -> None:
    """Refuse a file, or a folder, that is neither a switch's nor a NIC's."""
    from fluidcc.operators import read_nic
    from fluidcc.operators.config_db import EXPECTED_SWITCH

    try:
        read_nic(name)
    except InputError as error:
        raise InputError(
            f"{name[:200]}: its form is unknown: it is not {EXPECTED_SWITCH}; and of NICs: {error}"
        ) from None


def print_audit(found: Audit, *, verbose: bool = False) -> None:
    """Print an audit for a person: the worst ports first, and those whose findings are alike together."""
    from rich.console import Console
    from rich.padding import Padding

    console = Console(highlight=False)
    # One paragraph for ports and priorities of which the same is found; their texts differ in names alone.
    alike = [list(group) for _, group in groupby(found.groups, key=lambda each: (each.shown, _kinds(each)))]
    said: set[tuple[str, str]] = set()
    for i, group in enumerate(alike):
        if i:
            console.print()
        _print_group(console, group, said, verbose=verbose)
    if found.counted is not None:
        _print_counted(console, found.counted)
    if found.frames:
        console.print(f"[dim]{found.frames}[/]")
    if verbose:
        for row in found.mapping:
            note = f"  ({row.note})" if row.note else ""
            console.print(f"  {row.nic} = {row.raw} -> {row.parameter} {row.value:.6g}{note}")
    if found.nic is not None and found.nic.assumed:
        console.print(found.nic.assumed, style="dim", markup=False)
    port = found.switch
    ignored = [*port.notes, *port.ignored, *(found.nic.ignored if found.nic else ())]
    if found.left_out:
        ignored.append(f"not checked, without PFC and WRED profile: {', '.join(found.left_out)}")
    if ignored and verbose:
        console.print(f"[dim]assumed, or not used by the model ({len(ignored)}):[/]")
        for line in ignored:
            console.print(Padding(line, (0, 0, 0, 5)), style="dim", markup=False)
    elif ignored:
        console.print(f"[dim]{len(ignored)} things assumed, or not used by the model: --verbose[/]")


def _kinds(audit: Audit) -> Any:
    return audit.switch.profile, [(finding.severity, finding.what) for finding in audit.findings]


def _print_group(console: Any, group: list[Audit], said: set[tuple[str, str]], *, verbose: bool) -> None:
    from fluidcc.units import RATE, SIZE, show

    found, port = group[0], group[0].switch
    names = ", ".join(found.shown[:_NAMED]) + (f" and {len(found.names) - _NAMED} more" if found.names[_NAMED:] else "")
    queues = ", ".join(str(each.switch.queue) for each in group)
    counts = ", ".join(f"[{_COLOURS[s]}]{found.count(s)} {s}[/]" for s in _COLOURS if found.count(s))
    console.print(
        f"[bold]{names}[/], {show(port.rate, RATE)}, queue{'s' if len(group) > 1 else ''} {queues}"
        + (", lossless" if port.lossless else "")
        + ("" if port.up else ", down but audited as if up")
        + f": {counts}"
    )
    if port.kmin is not None and port.kmax is not None and port.pmax is not None:
        console.print(
            f"  {port.profile}: Kmin {show(port.kmin, SIZE)}, Kmax {show(port.kmax, SIZE)}, Pmax {port.pmax:.3g}"
        )
    again = [finding for finding in found.findings if (finding.what, finding.why) in said and finding.severity != "ok"]
    fresh = [_with_others(finding, group) for finding in found.findings if finding not in again]
    said.update((finding.what, finding.why) for finding in fresh)
    _print_findings(console, fresh, verbose=verbose)
    for severity in ("bad", "warn"):
        whats = [finding.what for finding in again if finding.severity == severity]
        if whats:
            console.print(f"[{_COLOURS[severity]}]{severity:>4}[/] as above: {'; '.join(whats)}")


def _with_others(finding: Finding, group: list[Audit]) -> Finding:
    """Return a finding with what is advised for the other priorities of a group too."""
    advised = [other.suggest for each in group for other in each.findings if other.what == finding.what]
    return dataclasses.replace(finding, suggest="\n-> ".join(dict.fromkeys(filter(None, [finding.suggest, *advised]))))


def _print_findings(console: Any, findings: Sequence[Finding], *, verbose: bool) -> None:
    from rich.padding import Padding

    for finding in findings:
        console.print(f"[{_COLOURS[finding.severity]}]{finding.severity:>4}[/] [bold]{finding.what}[/]")
        if finding.severity == "ok" and not verbose:
            continue
        console.print(Padding(finding.why, (0, 0, 0, 5)), markup=False)
        if finding.suggest:
            console.print(Padding(f"-> {finding.suggest}", (0, 0, 0, 5)), markup=False)


def _print_counted(console: Any, counted: Counted) -> None:
    from fluidcc.units import TIME, show

    span = "" if counted.seconds is None else f" in {show(counted.seconds, TIME)}"
    numbers = [
        f"{n} {what}{'' if n == 1 else 's'}" for n, what in ((len(counted.ports), "port"), (len(counted.nics), "NIC"))
    ]
    console.print(f"\n[bold]counters[/] of {' and '.join(numbers)}{span}:")
    _print_findings(console, counted.findings, verbose=True)
    if not any(finding.severity != "ok" for finding in counted.findings):
        console.print("  they show nothing that these settings would not make")
    if counted.left_out:
        rest = f" and {len(counted.left_out) - _NAMED} more" if counted.left_out[_NAMED:] else ""
        console.print(f"not judged: {', '.join(counted.left_out[:_NAMED])}{rest}", style="dim", markup=False)
