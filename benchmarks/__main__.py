"""Run all measurements, print the table, and write it into docs/performance.md: ``python -m benchmarks``."""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import c_kernel, fabrics, first_plot, packets, recursion
from benchmarks.fluid import PARTS, measure
from benchmarks.problem import CHUNK

PAGE = Path(__file__).parent.parent / "docs" / "performance.md"
MARKS = "<!-- {}: begin -->", "<!-- {}: end -->"


class Row(NamedTuple):
    """A line of the table."""

    what: str
    measured: str
    aim: str = ""
    met: bool | None = None


def packet_rows() -> list[Row]:
    """Measure the packet engine."""
    star = packets.measure("speed")
    grown = packets.measure("growth")
    used = packets.measure("first_use")
    acc = packets.measure("lossless")
    costs = {hosts: each["ns_per_event"] for hosts, each in grown["stars"].items()}
    tree = grown["fat_tree"]
    rate, events = star["packets_per_s"] / 1e6, star["events_per_s"] / 1e6
    hosts = ", ".join(str(n) for n in packets.HOSTS)
    return [
        Row("star of 16, HPCC, 100G: data packets, one core", f"{rate:.2f} M/s", "at least 1.2 M/s", rate >= 1.2),
        Row("... events", f"{events:.1f} M/s", "at least 8 M/s", events >= 8),
        Row(f"cost of an event, stars of {hosts} hosts", ", ".join(f"{c:.0f}" for c in costs.values()) + " ns"),
        Row("cost of an event, 320 hosts in pairs across a fat tree", f"{tree['ns_per_event']:.0f} ns"),
        Row("ACC's Fig. 11, 6 ms, the dearest scheme", f"{acc['chain']:.1f} s", "under 3 s", acc["chain"] < 3),
        Row("ACC's Table 2, ACC, one run of 100 ms", f"{acc['unit']:.0f} s", "under 60 s", acc["unit"] < 60),
        Row("first use, nothing cached", f"{used['empty']:.1f} s", "under 15 s", used["empty"] < 15),
        Row("first use in the next process", f"{used['cached']:.2f} s", "under 2 s", used["cached"] < 2),
    ]


def fabric_rows() -> list[Row]:
    """Measure whole fabrics."""
    found = fabrics.measure()
    sizes, study = found["hosts"], found["web_search_s"]

    def each(key: str) -> str:
        return ", ".join(f"{each[key]:.0f}" for each in sizes.values())

    events = [each["ns_per_event"] for each in sizes.values()]
    growth, setup = events[-1] / events[0], found["setup_of_many_us"]
    hosts = ", ".join(sizes)
    rest = study["total"] - study["setup"] - study["wall"]
    return [
        Row(f"FB_Hadoop at half load, HPCC, {hosts} hosts: an event", f"{each('ns_per_event')} ns"),
        Row("... 1024 hosts over 128", f"{growth:.2f}", "at most 1.6", growth <= 1.6),
        Row("... setup of a flow", f"{each('setup_us_per_flow')} us"),
        Row("... with 320 hosts, among 33 000", f"{setup:.0f} us", "at most 30 us", setup <= 30),
        Row("... two runs in threads, of two cores", f"{found['two_threads']:.2f}", "0.9", found["two_threads"] >= 0.9),
        Row("... memory, 1024 hosts", f"{found['memory_MB']:.0f} MB", "under 500 MB", found["memory_MB"] < 500),
        Row("WebSearch at half load, 10 ms, 320 hosts, HPCC: command to pictures", f"{study['total']:.0f} s"),
        Row("... its parts", f"setup {study['setup']:.1f}, loop {study['wall']:.1f}, all else {rest:.1f} s"),
    ]


def recursion_rows() -> list[Row]:
    """Measure the recursions."""
    found = recursion.measure()
    what = f"{recursion.NETWORKS:,} random networks ({recursion.LINKS} links, {recursion.PATHS} paths)"
    over = found["largest_utilisation"] - 1
    return [
        Row(f"{what}, {recursion.STEPS} steps", f"{found['first']:.2f} s", "under 10 s", found["first"] < 10),
        Row("... once compiled", f"{found['again']:.2f} s"),
        Row("... largest load in the end, over its capacity", f"{over:.0e}", "at most 1e-14", over <= 1e-14),
    ]


def first_rows() -> list[Row]:
    """Measure a first session."""
    found = first_plot.measure()
    cold, warm, alone = (found[name] for name in ("cold", "warm", "alone"))
    spent, again = "... of processors", "... of processors, again"
    return [
        Row(
            "to the first plot in a fresh process",
            f"{warm['first plot']:.1f} s; of the processors {warm[spent]:.1f} s",
            "under 4 s",
            warm["first plot"] < 4,
        ),
        Row("... with nothing kept from before", f"{cold['first plot']:.1f} s; of the processors {cold[spent]:.1f} s"),
        Row("... with `FLUIDCC_JAX=off`", f"{alone['first plot']:.1f} s; of the processors {alone[spent]:.1f} s"),
        Row(
            "the next run of 100 ms",
            f"{warm['second run']:.2f} s; of the processors {warm[again]:.2f} s",
            "under 0.15 s",
            warm["second run"] < 0.15,
        ),
        Row("... with `FLUIDCC_JAX=off`", f"{alone['second run']:.2f} s; of the processors {alone[again]:.2f} s"),
    ]


def fluid_rows() -> list[Row]:
    """Measure the fluid engine."""
    one = measure("one_core")
    two = measure("two_cores")
    alone = measure("single", FLUIDCC_JAX="off")
    compiled = measure("compilation", FLUIDCC_CACHE_DIR="/dev/null")["seconds"]  # nothing kept
    sizes = measure("memory")["MB"]
    started = measure("startup")
    return [
        Row(
            f"per point and step: batch of {CHUNK} on one core, of {CHUNK * PARTS} on two",
            f"{one['ns']['ours']:.1f}, {two['ns']['ours']:.1f} ns",
        ),
        Row("... C kernel", f"{one['ns']['c']:.1f}, {two['ns']['c']:.1f} ns"),
        Row(
            "... our time over the C kernel's",
            f"{one['over_c']:.2f}, {two['over_c']:.2f}",
            "at most 3",
            max(one["over_c"], two["over_c"]) <= 3,
        ),
        Row("... in float32, one core", f"{one['ns']['float32']:.1f} ns; queue off by {one['float32_error']:.0e}"),
        Row("single run of 20 ms", f"{one['single_ms']:.1f} ms"),
        *_jitcdde(one),
        Row("single run of 20 ms with `FLUIDCC_JAX=off`", f"{alone['ms']:.2f} ms"),
        Row("compiling a batch", f"{compiled:.2f} s", "under 3 s", compiled < 3),
        Row(
            "peak memory over 10 ms, 100 ms, 1 s; batch of 512",
            ", ".join(f"{size:.0f}" for size in sizes) + " MB",
            "flat",
            max(sizes) < 1.05 * min(sizes),
        ),
        Row("`import fluidcc`", f"{started['import']:.3f} s"),
        Row("`fluidcc --help`", f"{started['help']:.3f} s", "under 0.3 s", started["help"] < 0.3),
    ]


def _jitcdde(one: dict[str, Any]) -> list[Row]:
    """Its time over ours, of a point of a batch on one core and of a single run; its time; the errors of both.

    Both give 2000 samples.
    """
    found = []
    for name, case in one["jitcdde"].items():
        error = f"error {case['its_error']:.0e}, ours {case['our_error']:.0e}"
        each = case["sampled"]
        per_point, single = each["per_point"], each["single"]
        told = f"{per_point:.2g}, {single:.2g}; {each['ms']:.2f} ms, {error}"
        found.append(Row(f"JiTCDDE over ours, {name} start", told, "500, 5", per_point >= 500 and single >= 5))
    return found


def table(lines: list[Row]) -> str:
    """Markdown."""
    verdict = {True: "yes", False: "**no**", None: ""}
    text = ["| what | measured | aim | met |", "|---|---|---|---|"]
    text += [f"| {row.what} | {row.measured} | {row.aim} | {verdict[row.met]} |" for row in lines]
    return "\n".join(text)


def machine() -> str:
    """The machine, in general words."""
    flags = ""
    cpu = Path("/proc/cpuinfo")
    if cpu.exists():
        flags = " AVX-512" if "avx512f" in cpu.read_text() else " AVX2" if "avx2" in cpu.read_text() else ""
    return f"A {os.cpu_count()}-core {platform.machine()}{flags} machine."


TABLES = {
    "first": first_rows,
    "fluid": fluid_rows,
    "packets": packet_rows,
    "fabrics": fabric_rows,
    "recursion": recursion_rows,
}


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*TABLES, []], help="which to run; all by default")
    parser.add_argument("--no-write", action="store_true", help="leave docs/performance.md as it is")
    arguments = parser.parse_args()
    parts = arguments.parts or list(TABLES)
    if "fluid" in parts and (c_kernel.compiler() is None or importlib.util.find_spec("jitcdde") is None):
        raise SystemExit("benchmarks: they need a C compiler (gcc or cc) and jitcdde (pip install jitcdde)")
    for part, rows in TABLES.items():
        if part not in parts:
            continue
        text = machine() + "\n\n" + table(rows())
        print(text)
        if not arguments.no_write:
            begin, end = (mark.format(part) for mark in MARKS)
            page = PAGE.read_text()
            before, rest = page.split(begin)
            _, after = rest.split(end)
            PAGE.write_text(f"{before}{begin}\n{text}\n{end}{after}")


if __name__ == "__main__":
    main()
