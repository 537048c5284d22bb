"""All-reduce by rings, packet by packet: ``python -m benchmarks.collectives`` writes into docs/collectives.md."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import fluidcc as fc
from fluidcc.fabrics.study import interval

PAGE = Path(__file__).parent.parent / "docs" / "collectives.md"
MARKS = "<!-- measured: begin -->", "<!-- measured: end -->"
RANKS = (8, 16, 32, 64, 128)
SCHEMES = "none,dcqcn,hpcc,swift,timely,dctcp"
FABRIC = "leaf-spine:8x4x16"
SIZE = "4MB"
SEEDS = 3


def rows(ranks: int, oversubscription: int) -> tuple[list[str], list[str]]:
    """Bus bandwidth of each scheme [Gb/s], and the 99th percentile of steps [us] with PAUSEs, as cells of tables."""
    study = fc.collective(
        "all-reduce", FABRIC, SCHEMES, hosts=ranks, bytes=SIZE, placement="round-robin", seeds=SEEDS,
        oversubscription=oversubscription,
    )  # fmt: skip
    rates, tails = [], []
    for row in study.summary():
        found = row["bus_bandwidth_bytes_per_s"]
        if found["mean"] is None:
            rates.append(f"{row['seeds'] - row['complete']} of {row['seeds']} seeds unfinished")
        else:
            rates.append(f"{found['mean'] * 8e-9:.1f} ± {(found['high'] - found['mean']) * 8e-9:.1f}")
        tail = interval([run.numbers["step_time_s"]["p99"] for run in study.of(row["scheme"])])
        pauses = f", {row['pfc_pauses'] / row['seeds']:,.0f} PAUSEs" if row["pfc_pauses"] else ""
        tails.append(f"{tail[0] * 1e6:.0f}{pauses}")
    return rates, tails


def measured(sizes: tuple[int, ...]) -> str:
    """Two tables of each fabric, in Markdown."""
    text = []
    for ratio in (1, 4):
        lines: list[list[list[str]]] = [[], []]
        for ranks in sizes:
            began = time.perf_counter()
            for listed, cells in zip(lines, rows(ranks, ratio), strict=True):
                listed.append([str(ranks), *cells])
            sys.stderr.write(f"{ranks} ranks, {ratio}:1: {time.perf_counter() - began:.0f} s\n")
        where = "Enough links between switches" if ratio == 1 else f"Oversubscribed {ratio}:1"
        for title, listed in zip(("bus bandwidth [Gb/s]", "p99 of steps [us]"), lines, strict=True):
            head = ["ranks", *SCHEMES.split(",")]
            text += [f"{where}, {title}:", ""]
            text += [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *listed)]
            text += [""]
    return "\n".join(text)


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.collectives", description=__doc__)
    parser.add_argument("--ranks", default=",".join(map(str, RANKS)), help="how many, with commas")
    parser.add_argument("--no-write", action="store_true", help="leave docs/collectives.md as it is")
    arguments = parser.parse_args()
    text = measured(tuple(map(int, arguments.ranks.split(","))))
    sys.stdout.write(text + "\n")
    if not arguments.no_write:
        before, rest = PAGE.read_text().split(MARKS[0])
        _, after = rest.split(MARKS[1])
        PAGE.write_text(f"{before}{MARKS[0]}\n\n{text}\n{MARKS[1]}{after}")


if __name__ == "__main__":
    main()
