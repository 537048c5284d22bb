"""All-reduce by rings on 8 to 1024 ranks, and two jobs side by side, by the fluid and by packets.

``python -m benchmarks.collectives`` runs both (10 minutes of two cores), prints their tables, and writes that of the
ranks and a picture into the docs; ``--no-write`` only prints. With ``--kept FILE.jsonl`` results are kept line by line,
and those there are not run again. The fluid runs all schemes here, also those for which ``fluidcc collective`` refuses
it: the tables say how far it is off.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import fluidcc as fc
from fluidcc.compiling.threads import cores
from fluidcc.workloads.fabrics.study import interval

DOCS = Path(__file__).parent.parent / "docs"
PAGE, PICTURE = DOCS / "collectives.md", DOCS / "pictures" / "ranks.png"
RANKS = (8, 16, 32, 64, 128, 256, 512, 1024)
BY_PACKETS = 128  # ranks, at most
SCHEMES = ("none", "dcqcn", "hpcc", "swift", "dctcp", "nscc")
FABRIC = "leaf-spine:32x8x32"
CHUNK = 50_000  # bytes of a transfer
RATIOS = (1, 4)
SHOWN = (128, 512, 1024)  # in the table; the picture has all
SEEDS = 3
FEW = 512  # ranks, from which the oversubscribed fabric, slow as it is, has one seed
TWO: dict[str, Any] = {
    "kinds": "all-reduce", "topology": "leaf-spine:4x2x8", "hosts": 32, "bytes": "4MB", "oversubscription": 2,
    "jobs": 2, "separately": True, "placement": "round-robin",
}  # fmt: skip
ENGINES = ("packet", "fluid")

Row = dict[str, Any]


def wanted(sizes: Sequence[int]) -> list[Row]:
    """What is run, each with all that makes it."""
    rows: list[Row] = [
        {"what": "ranks", "ratio": ratio, "ranks": ranks, "scheme": scheme, "seed": seed, "engine": engine}
        for ranks in sorted(sizes)
        for ratio in RATIOS
        for scheme in SCHEMES
        for seed in range(1, (SEEDS if ratio == 1 or ranks < FEW else 1) + 1)
        for engine in ENGINES
        if engine == "fluid" or ranks <= BY_PACKETS
    ]
    rows += [
        {"what": "two", "scheme": scheme, "seed": seed, "engine": engine}
        for scheme in SCHEMES
        for seed in range(1, SEEDS + 1)
        for engine in ENGINES
    ]
    return rows


def measured(row: Row) -> Row:
    """The row with what it comes to."""
    options = {"schemes": row["scheme"], "seeds": [row["seed"]], "engine": row["engine"], "threads": 1}
    if row["what"] == "ranks":
        options |= {
            "kinds": "all-reduce", "topology": FABRIC, "hosts": row["ranks"], "bytes": CHUNK * row["ranks"],
            "placement": "round-robin", "oversubscription": row["ratio"],
        }  # fmt: skip
    else:
        options |= TWO
    if row["engine"] == "fluid":
        options["unchecked"] = True
    numbers = fc.collective(**options).runs[0].numbers
    kept = ("time_s", "bus_bandwidth_bytes_per_s", "jain", "pfc_pauses", "setup_s", "wall_s")
    return {
        **row,
        **{name: numbers[name] for name in kept},
        "slowdowns": [job.get("slowdown") for job in numbers["jobs"]],
    }


def all_of(rows: list[Row], kept: Path | None) -> list[Row]:
    """Results of all, of which those that are kept are not run again."""
    lines = kept.read_text().splitlines() if kept is not None and kept.exists() else []
    done = {key_of(row): row for row in map(json.loads, lines)}
    lacking, lock, began = [row for row in rows if key_of(row) not in done], threading.Lock(), time.perf_counter()

    def work(row: Row) -> None:
        found = measured(row)
        with lock:
            done[key_of(row)] = found
            if kept is not None:
                with kept.open("a") as file:
                    file.write(json.dumps(found) + "\n")
            told = f"{key_of(row)}: {found['setup_s']:.1f} + {found['wall_s']:.1f} s"
            sys.stderr.write(f"{told}, {time.perf_counter() - began:.0f} s in all\n")

    with ThreadPoolExecutor(cores()) as pool:
        list(pool.map(work, lacking))
    return [done[key_of(row)] for row in rows]


def key_of(row: Row) -> str:
    """What makes a row, as text."""
    return json.dumps([row.get(name) for name in ("what", "ratio", "ranks", "scheme", "seed", "engine")])


def spread(rows: Sequence[Row], value: Callable[[Row], Any], digits: int = 1) -> str:
    """Mean and half width of the interval over seeds."""
    values = [value(row) for row in rows]
    if any(each is None for each in values):
        return f"{sum(each is None for each in values)} of {len(values)} unfinished"
    mean, _, high = interval(values)
    return f"{mean:.{digits}f}" + (f" ± {high - mean:.{digits}f}" if len(values) > 1 else "")


def error(packets: Sequence[Row], fluid: Sequence[Row]) -> float | None:
    """Of the fluid's mean time over seeds [%]; None where one is not there, or did not end."""
    both = [[row["time_s"] for row in rows] for rows in (packets, fluid)]
    if not all(both) or any(None in each for each in both):
        return None
    return float(np.mean(both[1]) / np.mean(both[0]) - 1) * 100


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """In Markdown."""
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)] + [""]


def ranks_text(rows: list[Row], sizes: Sequence[int]) -> str:
    """Table of all-reduces by their ranks: bus bandwidth on either fabric, and the fluid's largest error."""

    def of(ratio: int, ranks: int, scheme: str, engine: str) -> list[Row]:
        asked = (ratio, ranks, scheme, engine)
        return [row for row in rows if tuple(row.get(k) for k in ("ratio", "ranks", "scheme", "engine")) == asked]

    def rate(*asked: Any) -> str:
        mine = of(*asked)
        return spread(mine, lambda row: _scaled(row["bus_bandwidth_bytes_per_s"], 8e-9)) if mine else ""

    found, sides = [], [(ratio, engine) for ratio in RATIOS for engine in ("fluid", "packet")]
    for ranks in (each for each in sizes if each in SHOWN):
        columns = {scheme: [rate(ratio, ranks, scheme, engine) for ratio, engine in sides] for scheme in SCHEMES}
        found += [[str(ranks), *row] for row in grouped(columns)]
    errors = {
        scheme: [error(of(*case, scheme, "packet"), of(*case, scheme, "fluid")) for case in product(RATIOS, sizes)]
        for scheme in SCHEMES
    }
    largest = {
        scheme: max((abs(each) for each in some if each is not None), default=0) for scheme, some in errors.items()
    }
    told = ", ".join(map(" ".join, grouped({scheme: [f"{each:.1f} %"] for scheme, each in largest.items()})))
    head = ["ranks", "schemes", *(f"{ratio}:1, {engine}" for ratio, engine in sides)]
    return "\n".join([*table(head, found), f"Largest error of the fluid's time: {told}."])


def grouped(columns: dict[str, list[str]]) -> list[list[str]]:
    """One row for all schemes whose cells print the same; the largest group is called the others, and comes last."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for scheme, cells in columns.items():
        groups.setdefault(tuple(cells), []).append(scheme)
    ordered = sorted(groups.items(), key=lambda group: len(group[1]))
    names = [", ".join(schemes) for _, schemes in ordered]
    if len(names) > 1:
        names[-1] = "others"
    return [[name, *cells] for name, (cells, _) in zip(names, ordered, strict=True)]


def _scaled(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def two_text(rows: list[Row]) -> str:
    """The table of two jobs."""
    found = []
    for scheme in SCHEMES:
        mine = {
            engine: [row for row in rows if (row["scheme"], row["engine"]) == (scheme, engine)] for engine in ENGINES
        }
        cells = [spread(mine[engine], lambda row: _scaled(row["time_s"], 1e3), 2) for engine in ENGINES]
        slowdowns = [[each for row in mine[engine] for each in row["slowdowns"]] for engine in ENGINES]
        cells += [f"{np.mean(each):.2f} ({min(each):.2f} to {max(each):.2f})" for each in slowdowns]
        cells += [f"{min(row['jain'] for row in mine[engine]):.4f}" for engine in ENGINES]
        found.append([scheme, *cells])
    return "\n".join(
        table(
            ["scheme", "slower job [ms], packets", "fluid", "slowdown over alone, packets", "fluid",
             "Jain's index, least, packets", "fluid"], found,
        )
    )  # fmt: skip


def picture(rows: list[Row], path: Path) -> None:
    """Bus bandwidth over ranks: lines by the fluid, circles by packets, a panel for each fabric."""
    from fluidcc.plotting.colours import SCHEMES as COLOURS
    from fluidcc.plotting.style import figure, legend

    made, axes = figure(1, len(RATIOS), size=(9, 3.4), sharey=True)
    for axis, ratio in zip(axes[0], RATIOS, strict=True):
        for scheme in SCHEMES:
            for engine, style in (("fluid", "-"), ("packet", "o")):
                mine = [
                    row for row in rows if (row.get("ratio"), row["scheme"], row["engine"]) == (ratio, scheme, engine)
                ]
                sizes = sorted({row["ranks"] for row in mine})
                rates = [
                    np.mean([row["bus_bandwidth_bytes_per_s"] or np.nan for row in mine if row["ranks"] == ranks])
                    * 8e-9
                    for ranks in sizes
                ]
                label = scheme if engine == "fluid" else None
                axis.plot(sizes, rates, style, color=COLOURS[scheme], label=label, ms=4, mfc="none")
        axis.set(xscale="log", xlabel="ranks", title="links enough" if ratio == 1 else f"oversubscribed {ratio}:1")
        axis.set_xticks(RANKS, [str(ranks) for ranks in RANKS], minor=False)
        axis.minorticks_off()
        axis.grid(alpha=0.3)
    axes[0, 0].set_ylabel("bus bandwidth [Gb/s]")
    axes[0, 0].set_ylim(0, 60)
    for axis in axes[0]:
        legend(axis, fontsize="small")
    made.write(path)


def written(text: str, name: str) -> None:
    """Put a text between its marks in the page."""
    begin, end = f"<!-- measured, {name}: begin -->", f"<!-- measured, {name}: end -->"
    before, rest = PAGE.read_text().split(begin)
    PAGE.write_text(f"{before}{begin}\n\n{text}\n{end}{rest.split(end)[1]}")


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.collectives", description=__doc__)
    parser.add_argument("--ranks", default=",".join(map(str, RANKS)), help="how many, with commas")
    parser.add_argument("--kept", metavar="FILE.jsonl", help="keep each result there, and go on from those that are")
    parser.add_argument("--no-write", action="store_true", help="leave the docs as they are")
    arguments = parser.parse_args()
    sizes = tuple(map(int, arguments.ranks.split(",")))
    rows = all_of(wanted(sizes), Path(arguments.kept) if arguments.kept else None)
    texts = {
        "ranks": ranks_text([row for row in rows if row["what"] == "ranks"], sizes),
        "two jobs": two_text([row for row in rows if row["what"] == "two"]),
    }
    for text in texts.values():
        sys.stdout.write(text + "\n")
    if not arguments.no_write:
        written(texts["ranks"], "ranks")
        picture([row for row in rows if row["what"] == "ranks"], PICTURE)


if __name__ == "__main__":
    main()
