"""Whether the hybrid ranks neighbouring settings as packets do, and what common random numbers save.

    python -m benchmarks.hybrid_differences [PAIRS] [SEED] [--json FILE]

A setting is drawn (40 or 100 Gb/s, 4 to 16 flows, thresholds, Pmax, g, timers, increase), and its neighbour has one of
these changed by 10 to 40 %. Both run in packets with the same 32 seeds; the pair counts if the mean or the 99th
percentile of the queue differs by more than three standard errors there. The hybrid, with the same seeds, must then
have the sign of each such difference: stated before the first run, in 19 of 20 pairs at least.

The saving is the variance of a difference with common seeds over that with independent ones.
"""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np

import fluidcc as fc
from fluidcc.engines.common.outcome import metrics_of
from fluidcc.studies.sweeps.replications import Draws, outcomes
from fluidcc.units import Rate

SEEDS = 32
ERRORS = 3.0
METRICS = ("queue_bytes.mean", "queue_bytes.p99")
SETTINGS = ("kmin", "kmax", "pmax", "g", "timer", "cnp_interval", "rate_ai")
PACKETS = 2.5e5  # of a run


@dataclasses.dataclass(frozen=True)
class Setting:
    """Numbers that are drawn; times [s], sizes [bytes], rates [bytes/s]."""

    rate: float
    flows: int
    kmin: float
    kmax: float
    pmax: float
    g: float
    timer: float
    cnp_interval: float
    rate_ai: float

    def scenario(self, starts: list[float]) -> fc.Scenario:
        """Its incast, whose flows start when they are told to."""
        scheme = fc.DCQCN(g=self.g, timer=self.timer, cnp_interval=self.cnp_interval, rate_ai=Rate(self.rate_ai))
        marking = fc.RED(self.kmin, self.kmax, self.pmax)
        return fc.incast(self.flows, rate=Rate(self.rate), scheme=scheme, marking=marking, start=starts)


def drawn(rng: np.random.Generator) -> tuple[Setting, Setting, str]:
    """A setting, its neighbour, and what was changed."""
    rate = float(rng.choice([40e9, 100e9])) / 8
    kmin = float(rng.uniform(5e3, 40e3))
    setting = Setting(
        rate=rate,
        flows=int(rng.choice([4, 8, 16])),
        kmin=kmin,
        kmax=kmin * float(rng.uniform(3, 20)),
        pmax=float(rng.uniform(0.01, 0.2)),
        g=float(2.0 ** rng.uniform(-9, -5)),
        timer=float(rng.uniform(30e-6, 300e-6)),
        cnp_interval=float(rng.uniform(10e-6, 50e-6)),
        rate_ai=rate * float(rng.uniform(2e-4, 2e-3)),
    )
    name = str(rng.choice(SETTINGS))
    factor = float(rng.uniform(1.1, 1.4)) ** float(rng.choice([-1.0, 1.0]))
    return setting, dataclasses.replace(setting, **{name: getattr(setting, name) * factor}), f"{name} x {factor:.3g}"


def runs(setting: Setting, engine: str, starts: list[float]) -> dict[str, np.ndarray]:
    """Metrics by seed."""
    until = PACKETS * 1000 / setting.rate
    return metrics_of(outcomes(setting.scenario(starts), Draws(engine, SEEDS, None, until, None)))[1]


def case(seed: tuple[int, int]) -> dict[str, Any] | None:
    """A pair, if packets tell its settings apart."""
    rng = np.random.default_rng(seed)
    one, other, changed = drawn(rng)
    starts = [float(each) for each in rng.uniform(0, 1e-3, one.flows)]
    packet = [runs(each, "packet", starts) for each in (one, other)]
    found: dict[str, Any] = {}
    for name in METRICS:
        a, b = (each[name] for each in packet)
        error = math.sqrt((a.var(ddof=1) + b.var(ddof=1)) / SEEDS)
        if abs(b.mean() - a.mean()) > ERRORS * error:
            found[name] = {"packet": float(b.mean() - a.mean()), "packet_error": error, "of": float(a.mean())}
    if not found:
        return None
    hybrid = [runs(each, "hybrid", starts) for each in (one, other)]
    for name, row in found.items():
        a, b = (each[name] for each in hybrid)
        row["hybrid"] = float(b.mean() - a.mean())
        row["hybrid_error"] = float((b - a).std(ddof=1) / math.sqrt(SEEDS))
        row["variance_share"] = float((b - a).var(ddof=1) / (a.var(ddof=1) + b.var(ddof=1)))
        row["agrees"] = row["hybrid"] * row["packet"] > 0
    return {"seed": list(seed), "flows": one.flows, "gbps": one.rate * 8e-9, "changed": changed, "metrics": found}


def main() -> None:
    """Print a line for each pair, and how many signs agree."""
    arguments = [each for each in sys.argv[1:] if not each.startswith("--")]
    path = arguments.pop() if "--json" in sys.argv else None
    count, seed = (int(arguments[i]) if len(arguments) > i else default for i, default in ((0, 20), (1, 1)))
    found: list[dict[str, Any]] = []
    tried = 0
    with ProcessPoolExecutor(2) as pool:
        while len(found) < count:
            batch = list(pool.map(case, [(seed, tried + k) for k in range(8)]))
            tried += len(batch)
            for each in [each for each in batch if each is not None][: count - len(found)]:
                found.append(each)
                shown = "; ".join(
                    f"{name.removeprefix('queue_bytes.')} {row['packet'] / row['of']:+.1%} in packets, "
                    f"{row['hybrid'] / row['of']:+.1%} +- {row['hybrid_error'] / row['of']:.1%}"
                    f"{'' if row['agrees'] else ' WRONG SIGN'}"
                    for name, row in each["metrics"].items()
                )
                print(f"{each['gbps']:3.0f}G {each['flows']:2} flows, {each['changed']}: {shown}", flush=True)
    rows = [row for each in found for row in each["metrics"].values()]
    right = sum(all(row["agrees"] for row in each["metrics"].values()) for each in found)
    shares = np.array([row["variance_share"] for row in rows])
    print(f"{right} of {len(found)} pairs have packets' signs ({len(rows)} differences; {tried} pairs tried)")
    print(f"variance with common seeds over independent ones: median {np.median(shares):.2f}, "
          f"quartiles {np.quantile(shares, 0.25):.2f} and {np.quantile(shares, 0.75):.2f}")  # fmt: skip
    if path:
        with open(path, "w") as file:
            json.dump(found, file)


if __name__ == "__main__":
    main()
