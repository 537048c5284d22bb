"""What to type on a switch and its NICs: audit, tune, prove by packets, write the patch.

Reads folders with config_db.json and nic.txt (examples/leaf-100g and examples/fabric-400g by default) and writes, for
each, pictures, numbers, a JSON patch and a page, report.html, into out/NAME/.

    python examples/demo.py [FOLDER ...] [--out DIR] [--evaluations K] [--narrow]
"""

from __future__ import annotations

import argparse
import base64
import dataclasses
import html
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import fluidcc as fc
from fluidcc.cli.audit import print_audit
from fluidcc.cli.contenders import HEADS, cells, table_of, tried
from fluidcc.cli.contenders import PICTURE as TRIAL
from fluidcc.cli.tune import NOTHING
from fluidcc.cli.tune_fabric import told_plateau, usual_bounds
from fluidcc.operators.behaviour import with_buffers, with_usual_buffers
from fluidcc.operators.nvidia_settings import NEVER, canonical
from fluidcc.operators.nvidia_text import base_name
from fluidcc.plotting.sweeps import format_value, plot_sweep
from fluidcc.studies.tuning.cases import FLOWS as FLOW_COUNTS
from fluidcc.studies.tuning.cases import SEARCHED, changed, in_words, length, packet_cases, packet_guards
from fluidcc.studies.tuning.goal import TUNED
from fluidcc.units import Rate, scale_of, show

HERE = Path(__file__).parent
FLOWS = 8  # of the audit; settings must do with each of `fluidcc.studies.tuning.cases.FLOWS`
USED, FAIR = 0.99, 0.9  # a setting must keep this share of the link busy, and reach this Jain index
OVER = {"pmax": ("1%", "100%"), "g": ("1/1024", "1/4")}  # and the thresholds, by the speed
MORE = ("utilisation", "jain")  # of these more is better
METRICS = ("queue_bytes.mean", "queue_bytes.p95", "queue_bytes.p99", "utilisation", "jain", "pfc_pauses", "drops")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="*", type=Path, default=[HERE / "leaf-100g", HERE / "fabric-400g"])
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--evaluations", type=int, default=100)
    parser.add_argument(
        "--narrow", action="store_true", help="more seeds on a fabric, until intervals are within 10 %%"
    )
    options = parser.parse_args()
    console = Console(highlight=False)
    for folder in options.folders:
        began = time.perf_counter()
        console.rule(f"[bold]{folder.name}")
        out = options.out / folder.name
        found = fc.audit(folder / "config_db.json", folder / "nic.txt", flows=FLOWS)
        print_audit(found)
        tuned, command, words = tune(found, options.evaluations), "", ""
        good = tuned.confirmed and tuned.best.kept
        if good:
            files = [folder / "config_db.json", folder / "nic.txt"]
            point, make = {**tuned.best.point, **registers(found)}, maker_of(found)
            trial = tried("dcqcn", files, point, make=make, tuned=tuned, narrow=options.narrow)
            tuned, command, words = dataclasses.replace(tuned, trial=trial.trial), trial.commands, trial.words
        _, unknown = with_usual_buffers(found.scenario(), found.switch)
        tuned.notes.extend([unknown] if unknown else [])
        print_tuning(console, found, tuned, words)
        commands = found.commands({**tuned.best.point, **registers(found)} if good else {})
        tuned.write(out)
        draw_map(found, tuned).write(out / "map.png")
        commands.write(out)
        write_report(out, folder.name, found, tuned, commands, words)
        typed = ", ".join(commands.files) or NOTHING
        console.print(f"pictures, report.html, {typed}: {out}/  ({time.perf_counter() - began:.0f} s)")
        if command:
            console.print(f"on a fabric again:\n  {command}", markup=False, soft_wrap=True)
        console.print()


def scenario_of(
    found: fc.Audit, kmin: float, kmax: float, pmax: float, g: float, flows: int = FLOWS,
    packet_size: float | None = None, mended: bool = True, **ways: Any,
) -> fc.Scenario:  # fmt: skip
    """Make an incast into the worst port, with the switch's buffer and flow control, and NICs as the audit wants them.

    The present setting is left as it is, its NICs too, and so are the NICs of others that are not to be ``mended``.
    """
    red, scheme = found.switch.red, dataclasses.replace(found.scheme, g=g)
    present = red is not None and (kmin, kmax, pmax, g) == (red.kmin, red.kmax, red.pmax, found.scheme.g)
    scenario = found.scenario(
        flows=flows,
        packet_size=packet_size or max(found.payloads),
        start=np.linspace(0.0, 20e-6, flows).tolist(),
        marking=fc.RED(kmin, kmax, pmax),
        scheme=scheme if present or not mended else dataclasses.replace(scheme, **registers(found)),
    )
    made, _ = with_usual_buffers(with_buffers(scenario, found.switch), found.switch)
    return changed(made, **(SEARCHED | ways))


def maker_of(found: fc.Audit) -> Any:
    """Return what makes incasts of settings, with the NICs' parameters where they are among the values."""

    def make(byte_counter: float | None = None, timer: float | None = None, **values: Any) -> fc.Scenario:
        return scenario_of(found, mended=bool(byte_counter or timer), **values)

    return make


def registers(found: fc.Audit) -> dict[str, float]:
    """Return the NIC's parameters that the audit would change, as it would."""
    named = {canonical(base_name(each.path)): each.value for finding in found.findings for each in finding.apply}
    counter = {"byte_counter": NEVER} if "rpg_byte_reset" in named else {}
    return counter | ({"timer": float(named["rpg_time_reset"]) / 1e6} if "rpg_time_reset" in named else {})


def tune(found: fc.Audit, evaluations: int, seed: int = 1) -> fc.studies.Tuning:
    """The shortest queue that keeps the link busy and is fair, by the hybrid, and by packets in every case."""
    red = found.switch.red
    if red is None:
        raise fc.InputError(f"{found.path}: {found.switch.name} has no WRED profile; turn ECN on first")
    link = (found.switch.rate, max(found.payloads))
    least = usual_bounds(Rate(found.switch.rate), [{"payload": each} for each in found.payloads])
    delay = found.switch.rate * 40e-6  # bytes of a round trip of 40 us, about that of a fabric with some queues
    return fc.tune(
        lambda **values: scenario_of(found, **values),
        {
            "kmin": (least["kmin"][0], max(delay, red.kmin)),
            "kmax": (least["kmax"][0], 2 * max(delay, red.kmax)),
            **OVER,
        },
        objective="queue_bytes.p99",
        subject_to=f"utilisation>={USED}",
        across={"flows": list(FLOW_COUNTS)},
        packet_cases=packet_cases([{"flows": n} for n in FLOW_COUNTS], found.payloads, link=link),
        packet_guards=packet_guards([{"flows": n} for n in FLOW_COUNTS], found.payloads, link=link),
        start={"kmin": red.kmin, "kmax": red.kmax, "pmax": red.pmax, "g": found.scheme.g},
        until=length(*link, SEARCHED["begin"]),
        seeds=1,
        evaluations=evaluations,
        seed=seed,
    )


def draw_map(found: fc.Audit, tuned: fc.studies.Tuning) -> Any:
    """The objective over Kmin and Kmax at the best Pmax and g, by the hybrid."""
    best, space = tuned.best.point, {each.name: each for each in tuned.space.variables}
    held = {name: best[name] for name in ("pmax", "g")}
    axes = {name: space[name].axis(9) for name in ("kmin", "kmax")}
    result = fc.sweep(
        lambda kmin, kmax: scenario_of(found, kmin=kmin, kmax=kmax, **held),
        axes,
        until=length(found.switch.rate, max(found.payloads), SEARCHED["begin"]),
        engine="hybrid",
        seeds=1,
    )
    start = tuned.start.point if tuned.start else None
    bounds = [str(each) for each in tuned.goal.constraints]
    return plot_sweep(result, "queue_bytes.p99", best=best, mark=start, subject_to=bounds, refused=tuned.refused)


COLUMNS = ("", "present", "best", "")


def print_tuning(console: Console, found: fc.Audit, tuned: fc.studies.Tuning, words: str) -> None:
    """A row per setting and per metric, in packets, and the trial's."""
    table = Table(box=None, header_style="bold")
    for column, side in zip(COLUMNS, ("left", "right", "right", "left"), strict=True):
        table.add_column(column, justify=side)  # type: ignore[arg-type]
    for row in rows_of(found, tuned):
        table.add_row(*row)
    console.print(table)
    said = "confirmed by packets" if tuned.confirmed else "[red]not confirmed by packets[/]"
    console.print(f"{said}: {proof_of(tuned)}")
    if tuned.trial is not None:
        console.print(table_of(tuned.trial))
    for note in [words, *told_plateau(tuned), *tuned.notes, *(tuned.trial.notes() if tuned.trial else [])]:
        console.print(note, markup=False)


def proof_of(tuned: fc.studies.Tuning) -> str:
    """Conditions under which packets ran."""
    runs = tuned.packets["best"].traces
    lengths = " or ".join(show(each, "s") for each in sorted({case[0].summary["until_s"] for case in runs}))
    return f"the worst of {len(runs)} cases, {len(runs[0])} seeds of {lengths} ({in_words(tuned.packet_cases)})"


def worst(tuned: fc.studies.Tuning, which: str, metric: str) -> tuple[float, float]:
    """A metric in its worst case, and its standard error there."""
    found = tuned.packets[which]
    values = found.metrics[metric]
    at = int(values.argmin() if metric in MORE else values.argmax())
    return float(values[at]), float(found.errors[metric][at])


def rows_of(found: fc.Audit, tuned: fc.studies.Tuning) -> list[tuple[str, str, str, str]]:
    """List the settings, then what packets measured of the present one and the best, in the worst case of each."""
    start = tuned.start.point if tuned.start else {}
    rows = []
    for name, value in tuned.best.point.items():
        old = start.get(name)
        change = "keep" if old is not None and np.isclose(old, value) else "change"
        rows.append((name, format_value(name, old) if old is not None else "", format_value(name, value), change))
    for name, value in registers(found).items():
        shown = "off" if value >= NEVER else format_value(name, value)
        rows.append((name, format_value(name, getattr(found.scheme, name)), shown, "change"))
    for metric in METRICS:
        unit = TUNED[metric][0] if metric in TUNED else "1"
        before, after = (worst(tuned, name, metric) for name in ("start", "best"))
        rows.append((f"{metric}, packets", told(*before, unit), told(*after, unit), verdict(metric, before, after)))
    return rows


def told(value: float, error: float, unit: str) -> str:
    """Show a number with its standard error, both in the value's unit."""
    factor, suffix = scale_of(value, unit) if unit != "1" else (1.0, "")
    value, error = value / factor, 0.0 if error < 1e-6 * abs(value) else error / factor  # else rounding
    form = ",.0f" if value >= 1000 else ".4g"
    return f"{value:{form}}{suffix} +- {error:{',.0f' if max(value / 1000, error) >= 1 else '.1g'}}{suffix}"


def verdict(metric: str, before: tuple[float, float], after: tuple[float, float]) -> str:
    """Tell whether a metric gets better by more than chance."""
    sign = 1.0 if metric in MORE else -1.0
    change = sign * (after[0] - before[0])
    if abs(change) <= 2 * math.hypot(np.nan_to_num(before[1]), np.nan_to_num(after[1])):
        return ""
    return "better" if change > 0 else "worse"


def summary_of(tuned: fc.studies.Tuning) -> str:
    """Say in a sentence which metrics get better and which get worse."""
    if not (tuned.confirmed and tuned.best.kept):
        return "Nothing to type: packets confirm no setting in every case."
    names = {"queue_bytes.p99": "99th percentile of the queue", "utilisation": "utilisation", "jain": "Jain's index",
             "pfc_pauses": "PAUSEs", "drops": "packets lost"}  # fmt: skip
    told: dict[str, list[str]] = {"better": [], "worse": []}
    for metric, text in names.items():
        before, after = (worst(tuned, name, metric) for name in ("start", "best"))
        kind = verdict(metric, before, after)
        if kind:
            unit = TUNED[metric][0] if metric in TUNED else "1"
            one, other = (
                show(e[0], unit, 3) if unit != "1" else f"{e[0]:,.3f}" if e[0] < 10 else f"{e[0]:,.0f}"
                for e in (before, after)
            )
            told[kind].append(f"{text} {one} to {other}")
    parts = [f"{kind}: {', '.join(each)}" for kind, each in told.items() if each]
    return f"In the worst case, {'; '.join(parts) or 'nothing changes by more than chance'}."


def write_report(out: Path, name: str, found: fc.Audit, tuned: fc.studies.Tuning, commands: Any, words: str) -> None:
    """One page with everything in it."""
    pictures = {
        "packets.png": "Present against best, packets: mean and range over the seeds",
        **({TRIAL: "Incasts, a workload and a collective, over the present setting"} if tuned.trial else {}),
        "front.png": "Queue against utilisation: the front, its knee, the present setting",
        "map.png": "99th percentile of the queue over Kmin and Kmax, hybrid engine; hatched: a bound is missed",
    }
    port = found.switch
    seen = [
        f"<figure><img alt='{html.escape(text)}' src='data:image/png;base64,"
        f"{base64.b64encode((out / file).read_bytes()).decode()}'><figcaption>{html.escape(text)}</figcaption></figure>"
        for file, text in pictures.items()
    ]
    rows, tried_rows = (
        "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in table)
        for table in (rows_of(found, tuned), cells(tuned.trial) if tuned.trial else [])
    )
    findings = "".join(
        f"<li><b>{each.severity}: {html.escape(each.what)}</b>. {html.escape(each.why)}"
        + (f"<br>&rarr; {html.escape(each.suggest)}" if each.suggest else "")
        for each in found.findings
        if each.severity != "ok"
    )
    notes = "".join(f"<li>{html.escape(note)}" for note in (*told_plateau(tuned), *tuned.notes, *commands.notes))
    typed = "".join(
        f"<h3>{html.escape(file)}</h3><pre>{html.escape(text)}</pre>"
        for file, text in commands.files.items()
        if file != "README.txt"
    )
    heads, tried_heads = (
        "".join(f"<th>{html.escape(column)}</th>" for column in columns)
        for columns in (COLUMNS, (*HEADS, *tuned.trial.settings) if tuned.trial else ())
    )
    size = '<meta name="viewport" content="width=device-width,initial-scale=1">'
    (out / "report.html").write_text(
        f"""<!doctype html><meta charset="utf-8"><title>{html.escape(name)}</title>{size}
<style>body{{font:16px/1.45 sans-serif;max-width:60em;margin:2em auto;padding:0 1em}}img{{max-width:100%}}
td,th{{padding:.1em 1em .1em 0;text-align:left}}.wide{{overflow-x:auto}}
p,li{{overflow-wrap:anywhere}}pre{{background:#f4f4f4;padding:.6em;overflow:auto}}figure{{margin:1.5em 0}}</style>
<h1>{html.escape(name)}: {html.escape(port.name)}, {show(port.rate, "bytes/s")}</h1>
<p><b>{html.escape(summary_of(tuned))} {html.escape(words)}</b></p><p>
{"Confirmed" if tuned.confirmed else "Not confirmed"} by packets:
{html.escape(proof_of(tuned))}, {html.escape(found.frames)}.
Searched: {tuned.evaluations} settings, for the least 99th percentile of the queue with
utilisation &ge; {USED} and Jain's index &ge; {FAIR}, on the hybrid engine; then packets with the switch's own buffer
and flow control.</p><div class="wide"><table><tr>{heads}</tr>{rows}</table></div>
<div class="wide"><table><tr>{tried_heads}</tr>{tried_rows}</table></div><ul>{notes}</ul>
{seen[0]}<h2>What was found</h2><ul>{findings}</ul>{"".join(seen[1:])}<h2>What to type</h2>{typed}
""",
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
