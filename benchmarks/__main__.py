"""Run all measurements, print the tables, and write them into docs/performance.md: ``python -m benchmarks``."""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import fabrics, first_plot, packets
from benchmarks.fluid import PARTS, measure
from benchmarks.problem import CHUNK, c_compiler
from fluidcc.theory.recursion.networks import random
from fluidcc.theory.recursion.pareto import pareto_batch

PAGE = Path(__file__).parent.parent / "docs" / "performance.md"
MARKS = "<!-- {}: begin -->", "<!-- {}: end -->"
VERDICT = {True: "yes", False: "**no**", None: ""}
NETWORKS, LINKS, PATHS, STEPS = 100_000, 8, 12, 64  # of the recursions
RECURSION_ROUNDS = 3
HEAD = ("what", "measured", "aim", "met")


class Row(NamedTuple):
    """A line of a table with aims."""

    what: str
    measured: str
    aim: str = ""
    met: bool | None = None


def packet_tables() -> str:
    """Measure the packet engine."""
    star = packets.measure("speed")
    grown = packets.measure("growth")
    used = packets.measure("first_use")
    acc = packets.measure("lossless")
    costs = ", ".join(f"{each['ns_per_event']:.0f}" for each in grown["stars"].values())
    hosts, tree = ", ".join(str(n) for n in packets.HOSTS), grown["fat_tree"]["ns_per_event"]
    rate, events = star["packets_per_s"] / 1e6, star["events_per_s"] / 1e6
    rows = [
        Row("star of 16: data packets", f"{rate:.2f} M/s", "at least 1.2 M/s", rate >= 1.2),
        Row("star of 16: events", f"{events:.1f} M/s", "at least 8 M/s", events >= 8),
        Row("ACC's Fig. 11, 6 ms, the slowest scheme", f"{acc['chain']:.1f} s", "under 3 s", acc["chain"] < 3),
        Row("ACC's Table 2, one run of 100 ms", f"{acc['unit']:.0f} s", "under 60 s", acc["unit"] < 60),
        Row("first use, empty cache", f"{used['empty']:.1f} s", "under 15 s", used["empty"] < 15),
        Row("first use in the next process", f"{used['cached']:.2f} s", "under 2 s", used["cached"] < 2),
    ]
    told = f"An event takes {costs} ns in stars of {hosts} hosts, and {tree:.0f} ns with 320 hosts in pairs across a"
    return f"{aims(rows)}\n\n{told} fat tree."


def fabric_tables() -> str:
    """Measure whole fabrics."""
    found = fabrics.measure()
    sizes, study = found["hosts"], found["web_search_s"]
    events = [each["ns_per_event"] for each in sizes.values()]
    growth, setup, threads = events[-1] / events[0], found["setup_of_many_us"], found["two_threads"]
    rest = study["total"] - study["setup"] - study["wall"]
    costs = [
        (hosts, f"{each['ns_per_event']:.0f} ns", f"{each['setup_us_per_flow']:.0f} us")
        for hosts, each in sizes.items()
    ]
    rows = [
        Row("an event with 1024 hosts over one with 128", f"{growth:.2f}", "at most 1.6", growth <= 1.6),
        Row("setup of a flow, 33 000 flows, 320 hosts", f"{setup:.0f} us", "at most 30 us", setup <= 30),
        Row("share of two cores that two threads use", f"{threads:.3f}", "at least 0.9", threads >= 0.9),
        Row("memory, 1024 hosts", f"{found['memory_MB']:.0f} MB", "under 500 MB", found["memory_MB"] < 500),
    ]
    parts = f"setup {study['setup']:.1f}, loop {study['wall']:.1f}, all else {rest:.1f} s"
    told = f"WebSearch at half load, 10 ms, 320 hosts, HPCC, command to pictures: {study['total']:.0f} s ({parts})."
    return f"{table(('hosts', 'an event', 'setup of a flow'), costs)}\n\n{aims(rows)}\n\n{told}"


def recursions() -> dict[str, float]:
    """HPCC's recursion (5)-(6) on random networks at once.

    Seconds of the first call, which compiles, and the least of later ones; largest utilisation in the end.
    """
    A, C = random(LINKS, PATHS, seed=1, count=NETWORKS)
    R0 = np.random.default_rng(2).uniform(1, 10, size=(NETWORKS, PATHS))
    seconds = []
    for _ in range(1 + RECURSION_ROUNDS):
        start = time.perf_counter()
        batch = pareto_batch(A, C, R0, STEPS)
        seconds.append(time.perf_counter() - start)
    return {"first": seconds[0], "again": min(seconds[1:]), "largest_utilisation": float(batch.utilization.max())}


def recursion_tables() -> str:
    """Measure the recursions."""
    found = recursions()
    what = f"{NETWORKS:,} random networks ({LINKS} links, {PATHS} paths)"
    over = found["largest_utilisation"] - 1
    return aims(
        [
            Row(f"{what}, {STEPS} steps", f"{found['first']:.2f} s", "under 10 s", found["first"] < 10),
            Row("the same, compiled before", f"{found['again']:.2f} s"),
            Row("largest final load beyond capacity, as a share", f"{over:.0e}", "at most 1e-14", over <= 1e-14),
        ]
    )


def first_tables() -> str:
    """Measure a first session."""
    found = first_plot.measure()
    rows = [
        ("first plot", "warm", "first plot", "... of processors", 4.0, 1),
        ("first plot, empty cache", "cold", "first plot", "... of processors", None, 1),
        ("first plot, `FLUIDCC_JAX=off`", "alone", "first plot", "... of processors", None, 1),
        ("next run of 100 ms", "warm", "second run", "... of processors, again", 0.15, 2),
        ("next run, `FLUIDCC_JAX=off`", "alone", "second run", "... of processors, again", None, 2),
    ]
    cells = []
    for what, session, stage, spent, aim, digits in rows:
        seconds, used = found[session][stage], found[session][spent]
        told = ("", "") if aim is None else (f"under {aim:g} s", VERDICT[seconds < aim])
        cells.append((what, f"{seconds:.{digits}f} s", f"{used:.{digits}f} s", *told))
    return table(("what", "time", "processor time", "aim", "met"), cells)


def fluid_tables() -> str:
    """Measure the fluid engine."""
    one = measure("one_core")
    two = measure("two_cores")
    alone = measure("single", FLUIDCC_JAX="off")
    compiled = measure("compilation", FLUIDCC_CACHE_DIR="/dev/null")["seconds"]  # nothing kept
    sizes = measure("memory")["MB"]
    started = measure("startup")
    batches = [
        (f"{CHUNK}, one core", one["ns"]["ours"], one["ns"]["c"], one["over_c"]),
        (f"{CHUNK * PARTS}, two cores", two["ns"]["ours"], two["ns"]["c"], two["over_c"]),
    ]
    steps = [(name, f"{ours:.1f} ns", f"{c:.1f} ns", f"{over:.2f}") for name, ours, c, over in batches]
    low = f"{CHUNK}, one core, float32 (queue off by {one['float32_error']:.0e})"
    steps.append((low, f"{one['ns']['float32']:.1f} ns", "", ""))
    rows = [
        Row("single run of 20 ms", f"{one['single_ms']:.2f} ms"),
        Row("single run, `FLUIDCC_JAX=off`", f"{alone['ms']:.1f} ms"),
        Row("compiling a batch", f"{compiled:.2f} s", "under 3 s", compiled < 3),
        Row(
            "peak memory, batch of 512, over 10 ms, 100 ms, 1 s",
            ", ".join(f"{size:.0f}" for size in sizes) + " MB",
            "flat",
            max(sizes) < 1.05 * min(sizes),
        ),
        Row("`fluidcc --help`", f"{started['help']:.3f} s", "under 0.3 s", started["help"] < 0.3),
    ]
    head = ("points of the batch", "step of a point", "C kernel", "ratio (aim: at most 3)")
    return "\n\n".join((table(head, steps), _jitcdde(one), aims(rows)))


def _jitcdde(one: dict[str, Any]) -> str:
    """Its time over ours, of a point of a batch on one core and of a single run; its time; the errors of both.

    Both give 2000 samples.
    """
    rows = []
    for name, case in one["jitcdde"].items():
        each = case["sampled"]
        ratios = f"{each['per_point']:.2g}", f"{each['single']:.2g}"
        rows.append((name, f"{each['ms']:.2f} ms", *ratios, f"{case['its_error']:.0e}", f"{case['our_error']:.0e}"))
    over = "over a point of our batch (aim: 500)", "over our single run (aim: 5)"
    return table(("start", "JiTCDDE", *over, "its error", "our error"), rows)


def aims(rows: list[Row]) -> str:
    """Table of what was measured, with its aims."""
    return table(HEAD, [(row.what, row.measured, row.aim, VERDICT[row.met]) for row in rows])


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Markdown."""
    text = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    return "\n".join([*text, *(f"| {' | '.join(row)} |" for row in rows)])


def machine() -> str:
    """The machine, in general words."""
    flags = ""
    cpu = Path("/proc/cpuinfo")
    if cpu.exists():
        flags = " AVX-512" if "avx512f" in cpu.read_text() else " AVX2" if "avx2" in cpu.read_text() else ""
    return f"A {os.cpu_count()}-core {platform.machine()}{flags} machine."


TABLES = {
    "first": first_tables,
    "fluid": fluid_tables,
    "packets": packet_tables,
    "fabrics": fabric_tables,
    "recursion": recursion_tables,
}


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*TABLES, []], help="which to run; all by default")
    parser.add_argument("--no-write", action="store_true", help="leave docs/performance.md as it is")
    arguments = parser.parse_args()
    parts = arguments.parts or list(TABLES)
    if "fluid" in parts and (c_compiler() is None or importlib.util.find_spec("jitcdde") is None):
        raise SystemExit("benchmarks: they need a C compiler (gcc or cc) and jitcdde (pip install jitcdde)")
    for part, made in TABLES.items():
        if part not in parts:
            continue
        text = machine() + "\n\n" + made()
        print(text)
        if not arguments.no_write:
            begin, end = (mark.format(part) for mark in MARKS)
            page = PAGE.read_text()
            before, rest = page.split(begin)
            _, after = rest.split(end)
            PAGE.write_text(f"{before}{begin}\n{text}\n{end}{after}")


if __name__ == "__main__":
    main()
