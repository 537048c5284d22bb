"""Sensitivity of `tune`'s answer to what nobody knows: bursts, packets, numbers of flows, hops.

    python -m benchmarks.sensitivity [FOLDER] [--evaluations K] [--only WORD]

Each row tunes the sample's port for one kind of traffic alone, where the demo asks for all of them at once. The last
row is that of all. Stated before measuring: an answer for all keeps its bounds in each, so its Kmin is no less than the
least of the rows', and its queue no shorter than the shortest.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import time
from pathlib import Path

from fluidcc.builders.names import format_value
from fluidcc.cli.app import run
from fluidcc.units import show

LEAF = Path(__file__).parents[1] / "examples" / "leaf-100g"
NAMES = ("kmin", "kmax", "pmax", "g")
# As the audit advises: with the NIC's own nothing is fair in many cases.
OFF = ["--set", "byte_counter=1TB", "--set", "timer=100us"]
ALONE = ["--no-defaults", "--subject-to", "utilisation>=0.98"]  # flows of unlike paths have unlike rates
KINDS = {
    "bursts of 1": ["--set", "burst=1"],
    "bursts of 4": ["--set", "burst=4"],
    "bursts of 16": ["--set", "burst=16"],
    "1024 B": ["--packet-size", "1024"],
    "4096 B": ["--packet-size", "4096"],
    "2 flows": ["--flows", "2"],
    "8 flows": ["--flows", "8"],
    "32 flows": ["--flows", "32"],
    "64 flows": ["--flows", "64"],
    "one link": ["--topology", "parking-lot", "--flows", "2", *ALONE],
    "three links in a row": ["--topology", "parking-lot", "--flows", "4", *ALONE],
    "all of them": [],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=LEAF)
    parser.add_argument("--evaluations", type=int, default=100)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    columns = ("traffic", "answer", "within 5 %", "p99", "utilisation", "Jain", "confirmed", "s")
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    for kind, words in KINDS.items():
        if options.only not in kind:
            continue
        began, said = time.perf_counter(), io.StringIO()
        given = ["--over", "kmin", "--over", "kmax", "--over", "pmax", "--over", "g", *OFF, *words]
        files = [str(options.folder / name) for name in ("config_db.json", "nic.txt")]
        scenario = ["--from", files[0], "--from", files[1]]
        with contextlib.redirect_stdout(said):
            status = run(["tune", "dcqcn", *scenario, *given, "--evaluations", str(options.evaluations), "--json"])
        if status != 0:
            print(f"| {kind} | exit {status} |")
            continue
        found = json.loads(said.getvalue())
        best = (found["packets"] or {}).get("best", found["best"]["metrics"])
        row = [kind, ", ".join(format_value(name, found["best"][name]) for name in NAMES)]
        row.append(
            ", ".join(
                f"{name} {format_value(name, low)} to {format_value(name, high)}"
                for name, (low, high) in found["plateau"].items()
            )
        )
        row += [show(best["queue_bytes.p99"], "bytes", 3), f"{best['utilisation']:.3f}", f"{best['jain']:.3f}"]
        row += [str(found["confirmed"]), f"{time.perf_counter() - began:.0f}"]
        print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
