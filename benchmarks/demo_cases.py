"""Try the demo's answer in cases that it was not asked for.

    python -m benchmarks.demo_cases [FOLDER ...] [--flows N ...] [--bursts N ...] [--seeds N]

Runs `make demo`'s search, then its present setting and its best in packets of 1024 and 4096 B, with 2, 8 and 32 senders
that begin at line rate and send bursts of 1, 4 and 16. Stated before measuring: in no case is the best below its bounds
where it was confirmed, or below the present setting in a burst of 16.
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path

import numpy as np

import fluidcc as fc
from examples import demo
from fluidcc.studies.tuning.cases import length
from fluidcc.units import show

FIRST_SEED, SEEDS = 11, 2


def figures(found: fc.Audit, point: dict[str, float], case: dict[str, int], seeds: int = SEEDS) -> np.ndarray:
    """Utilisation, 99th percentile [bytes], Jain's index and PAUSEs of each seed, (seed, 4)."""
    until = length(found.switch.rate, max(found.payloads)) * max(1.0, case["flows"] / 8)  # as the demo's
    rows = list[tuple[float, float, float, float]]()
    for seed in range(FIRST_SEED, FIRST_SEED + seeds):
        scenario = demo.scenario_of(found, **point, **case, begin="line")
        run = fc.simulate(scenario, until, engine="packet", seed=seed, sample_interval=until).summary
        rows.append((run["utilisation"], run["queue_bytes"]["p99"], run["jain"], run["pfc_pauses"]))
    return np.array(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    samples = [demo.HERE / "leaf-100g", demo.HERE / "fabric-400g"]
    parser.add_argument("folders", nargs="*", type=Path, default=samples)
    parser.add_argument("--flows", nargs="*", type=int, default=list(demo.FLOW_COUNTS))
    parser.add_argument("--bursts", nargs="*", type=int, default=[1, 4, 16])
    parser.add_argument("--seeds", type=int, default=SEEDS)
    options = parser.parse_args()
    for folder in options.folders:
        found = fc.audit(folder / "config_db.json", folder / "nic.txt", flows=demo.FLOWS)
        tuned = demo.tune(found, 100)
        assert tuned.start is not None
        print(f"\n{folder.name}: present {tuned.start.point}\nbest {tuned.best.point}, {demo.summary_of(tuned)}\n")
        columns = ("packets", "senders", "bursts", "setting", "utilisation (least)", "p99", "Jain (least)", "PAUSEs",
                   f"Jain below {demo.FAIR}")  # fmt: skip
        print(f"| {' | '.join(columns)} |\n{'|---' * len(columns)}|")
        for size, flows, burst in itertools.product((1024, 4096), options.flows, options.bursts):
            for name, each in (("present", tuned.start), ("best", tuned.best)):
                case = {"packet_size": size, "flows": flows, "burst": burst}
                runs = figures(found, each.point, case, options.seeds)
                (used, queue, fair, pauses), least = runs.mean(axis=0), runs.min(axis=0)
                told = f"{used:.3f} ({least[0]:.3f}) | {show(queue, 'bytes', 3)} | {fair:.3f} ({least[2]:.3f}) | "
                told += f"{pauses:.0f} | {np.mean(runs[:, 2] < demo.FAIR):.0%} |"
                print(f"| {size} B | {flows} | {burst} | {name} | {told}", flush=True)


if __name__ == "__main__":
    main()
