"""Goodput of go-back-N and IRN over the rate of loss, with go-back-N's closed form: ``python -m benchmarks.loss``.

One flow at 100 Gb/s whose packets of 1000 B are lost on one link, on the way there alone. Stated before measuring: the
closed form is within 0.1 % of go-back-N.
"""

from __future__ import annotations

import argparse
from typing import Any

import fluidcc as fc
from fluidcc.engines.packet.losses import round_trip
from fluidcc.scenario.model import resolve
from fluidcc.theory.loss_recovery import go_back_n_goodput

LOSSES = (1e-4, 1e-3, 1e-2, 5e-2)
RATE, PACKET, TIMEOUT = 100e9 / 8, 1000, 100e-6  # bytes/s, bytes, s
WITHIN = 1e-3


def line(loss: float, recovery: str) -> fc.Scenario:
    """Build a sender and a receiver behind two switches."""
    links = (
        fc.Link("100Gbps", "5us", source="switch", target="far", loss=loss),
        fc.Link("100Gbps", "5us", source="far", target="switch"),
    )
    flow = fc.Flow((0,), fc.NoControl(), "100Gbps", access_delay="5us", target="receiver")
    return fc.Scenario(links, (flow,), retransmission_timeout=TIMEOUT, low_timeout="50us", loss_recovery=recovery)


def goodput(loss: float, recovery: str, seconds: float, seed: int) -> float:
    """Measure the share of the link's rate that is acknowledged, without the first millisecond."""
    options: Any = {"window": (1e-3, seconds), "sample_interval": seconds / 20, "engine": "packet", "seed": seed}
    return fc.simulate(line(loss, recovery), seconds, **options).summary["goodput_bytes_per_s"][0] / RATE


def closed_form(loss: float) -> float:
    """Compute go-back-N's share by its closed form."""
    scenario, slot = resolve(line(loss, "gbn")), PACKET / RATE
    return go_back_n_goodput(loss, round_trip(scenario, scenario.flows[0]) / slot, TIMEOUT / slot)


def main() -> None:
    """Print the table of docs/theory/loss.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=4.0, help="simulated time of each run")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    print("| $p$ | go-back-N | IRN | closed form |\n|---|---|---|---|", flush=True)
    worst = 0.0
    for loss in LOSSES:
        found = [goodput(loss, recovery, given.seconds, given.seed) for recovery in ("gbn", "irn")]
        formula = closed_form(loss)
        worst = max(worst, abs(found[0] / formula - 1))
        print(f"| {loss:g} | {found[0]:.5f} | {found[1]:.5f} | {formula:.5f} |", flush=True)
    print(f"closed form within {worst:.2%} of go-back-N, stated {WITHIN:.1%}")


if __name__ == "__main__":
    main()
