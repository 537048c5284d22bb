"""The hybrid against packets at thresholds of a few packets: ``python -m benchmarks.small_thresholds [COUNT SEED]``.

Random settings: Kmin of 0.5 to 20 packets and Kmax of 2 to 60, 1 to 32 senders, payloads of 1000 and 4096 B, 100 and
400 Gb/s, NVIDIA's NIC. Stated before measuring: where the hybrid is kept, its utilisation is within 1 % and its 99th
percentile within 10 % of packets'; the criterion hands at most 15 % to packets, and none with a Kmin of four packets or
more and a ramp of eight. Settings whose queue passes the buffer are packets' too, and counted apart.
"""

from __future__ import annotations

import argparse
import dataclasses
from typing import Any

import numpy as np

import fluidcc as fc
from fluidcc.engines.hybrid.region import MOST, meeting_share
from fluidcc.scenario.frames import IN_BUFFER, framed
from fluidcc.scenario.model import resolve
from fluidcc.schemes.dcqcn import PRESETS

FLOWS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
BUFFER = 20e6  # bytes: a queue beyond it is PAUSE's or loss's, and packets'
SEEDS = tuple(range(1, 17))  # one run of packets differs from another by 10 to 30 %
WITHIN = {"utilisation": 0.01, "queue_bytes.p99": 0.10}


@dataclasses.dataclass(frozen=True)
class Setting:
    """Payload [bytes], thresholds [packets], rate [Gb/s]."""

    payload: int
    flows: int
    kmin: float
    kmax: float
    pmax: float
    gbps: int
    g: float

    def scenario(self) -> fc.Scenario:
        """Senders that start one after another at line rate."""
        packet = self.payload + IN_BUFFER
        made = fc.incast(
            self.flows,
            rate=f"{self.gbps}Gbps",
            delay="1us",
            scheme=dataclasses.replace(PRESETS["vendor"].scheme, g=self.g),
            marking=fc.RED(self.kmin * packet, self.kmax * packet, self.pmax),
            start=np.random.default_rng(1).uniform(0, 20e-6, self.flows).tolist(),
        )
        return resolve(framed(made, float(self.payload)))


def settings(count: int, seed: int) -> list[Setting]:
    """Draw so many of them."""
    rng, found = np.random.default_rng(seed), list[Setting]()
    while len(found) < count:
        kmin, kmax = np.exp(rng.uniform(np.log([0.5, 2.0]), np.log([20.0, 60.0])))
        payload, flows, gbps = int(rng.choice((1000, 4096))), int(rng.choice(FLOWS)), int(rng.choice((100, 400)))
        pmax, g = float(np.exp(rng.uniform(np.log(0.01), 0.0))), float(2.0 ** -rng.integers(2, 11))
        if kmax > kmin:
            found.append(Setting(payload, flows, float(kmin), float(kmax), pmax, gbps, g))
    return found


def measured(setting: Setting, engine: str) -> dict[str, float]:
    """Means over the seeds, of the second half of a run."""
    until = 40e-3 if setting.gbps == 100 else 20e-3
    runs: list[Any] = [
        fc.simulate(setting.scenario(), until, engine=engine, seed=seed, sample_interval=until).summary
        for seed in SEEDS
    ]
    return {
        "utilisation": float(np.mean([run["utilisation"] for run in runs])),
        "queue_bytes.p99": float(np.mean([run["queue_bytes"]["p99"] for run in runs])),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("count", type=int, nargs="?", default=100)
    parser.add_argument("seed", type=int, nargs="?", default=7)
    options = parser.parse_args()
    handed = {"criterion": 0, "criterion, Kmin >= 4 and a ramp of 8": 0, "beyond 20 MB": 0}
    kept, good = 0, dict.fromkeys((*WITHIN, "queue_bytes.p99, or one packet", "both, or one packet"), 0)
    for k, setting in enumerate(settings(options.count, options.seed)):
        if meeting_share(setting.scenario()) >= MOST:
            handed["criterion"] += 1
            long = setting.kmin >= 4 and setting.kmax - setting.kmin >= 8
            handed["criterion, Kmin >= 4 and a ramp of 8"] += long
            continue
        hybrid = measured(setting, "hybrid")
        if hybrid["queue_bytes.p99"] > BUFFER:
            handed["beyond 20 MB"] += 1
            continue
        packets = measured(setting, "packet")
        kept += 1
        used = abs(hybrid["utilisation"] - packets["utilisation"]) <= WITHIN["utilisation"]
        apart = abs(hybrid["queue_bytes.p99"] - packets["queue_bytes.p99"])
        share = apart <= WITHIN["queue_bytes.p99"] * packets["queue_bytes.p99"]
        packet = share or apart <= (setting.payload + IN_BUFFER) * (1 + 1e-9)  # whole packets, but for rounding
        for name, holds in zip(good, (used, share, packet, used and packet), strict=True):
            good[name] += holds
        if not (used and packet):
            print(f"{k}: {setting}\n    packets {packets}\n    hybrid  {hybrid}", flush=True)
    print(f"handed to packets: {handed}\nkept: {kept}, of these within the limits: {good}")


if __name__ == "__main__":
    main()
