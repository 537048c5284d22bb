"""Repeat the demo's search with other seeds: ``python -m benchmarks.demo_seeds [FOLDER ...] [--seeds 1 2 3]``.

Luck would find another queue with each seed. The aim: packets confirm every answer, and the largest 99th percentile of
the queue is at most a quarter above the least.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import fluidcc as fc
from examples import demo
from fluidcc.builders.names import format_value
from fluidcc.units import show


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    samples = [demo.HERE / "leaf-100g", demo.HERE / "fabric-400g"]
    parser.add_argument("folders", nargs="*", type=Path, default=samples)
    parser.add_argument("--seeds", nargs="*", type=int, default=[1, 2, 3, 4, 5])
    options = parser.parse_args()
    print("| sample | seed | setting | p99 | utilisation | Jain | confirmed |\n|---|---|---|---|---|---|---|")
    for folder in options.folders:
        found = fc.audit(folder / "config_db.json", folder / "nic.txt", flows=demo.FLOWS)
        for seed in options.seeds:
            tuned = demo.tune(found, 100, seed)
            point = ", ".join(f"{name} {format_value(name, value)}" for name, value in tuned.best.point.items())
            worst = tuned.best.metrics
            told = f"{show(worst['queue_bytes.p99'], 'bytes', 3)} | {worst['utilisation']:.3f} | {worst['jain']:.3f}"
            print(f"| {folder.name} | {seed} | {point} | {told} | {tuned.confirmed} |", flush=True)


if __name__ == "__main__":
    main()
