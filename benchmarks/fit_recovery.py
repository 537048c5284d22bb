"""Parameters of random packet runs, fitted back: python -m benchmarks.fit_recovery [RUNS] [FIRST_SEED] [queue] [ns3].

Each run has 4 to 8 flows of DCQCN, 40 to 100 Gb/s and two unknowns, drawn log-uniformly from the middle of what is
searched: the timer with g, with the CNP interval, or with the additive increase. What is fitted is the second half of
100 ms of packets: the queue each 10 us, with the flows' rates, or without them if the word "queue" is given.
With the word "ns3", HPCC's W_AI instead, from the pacing rates of an independent simulator's runs
(tests/data/ns3/README.md). With the word "counters", what counters tell: benchmarks/fit_counters.py.
"""

from __future__ import annotations

import dataclasses
import sys
import time
from typing import Any

import numpy as np

import fluidcc as fc
from fluidcc.studies.fitting.measured import Measured, measured_of
from fluidcc.studies.fitting.result import Fit
from fluidcc.units import Rate

UNTIL, INTERVAL = "100ms", "10us"
# Searched, and drawn from.
RANGES: dict[str, tuple[tuple[float, float], tuple[float, float]]] = {
    "timer": ((20e-6, 500e-6), (40e-6, 250e-6)),
    "g": ((1 / 1024, 1 / 16), (1 / 512, 1 / 32)),
    "cnp_interval": ((5e-6, 300e-6), (15e-6, 100e-6)),
    "rate_ai": ((0.5e6, 50e6), (1.5e6, 15e6)),
}
PAIRS = (("timer", "g"), ("timer", "cnp_interval"), ("timer", "rate_ai"))


@dataclasses.dataclass(frozen=True)
class Case:
    """A random scenario and the values to be found."""

    flows: int
    rate: str
    truth: dict[str, float]

    def scenario(self, **values: Any) -> fc.Scenario:
        """With some values of the scheme."""
        return fc.incast(self.flows, rate=self.rate, scheme=fc.DCQCN(feedback_delay=None, **values))

    def measured(self, seed: int, *, rates: bool) -> Measured:
        """What a run of packets shows."""
        scenario = self.scenario(**_marked(self.truth))
        trace = fc.simulate(scenario, UNTIL, engine="packet", seed=seed, sample_interval=INTERVAL)
        found = measured_of(trace)
        return found if rates else dataclasses.replace(found, rates=None)

    def fit(self, measured: Measured, **options: Any) -> Fit:
        """The unknowns from what was measured."""
        over = {name: tuple(_marked({name: end})[name] for end in RANGES[name][0]) for name in self.truth}
        return fc.fit(measured, self.scenario, over, **options)


def _marked(values: dict[str, float]) -> dict[str, float]:
    return {name: Rate(value) if name == "rate_ai" else value for name, value in values.items()}


def case(seed: int) -> Case:
    """A random case."""
    draw = np.random.default_rng(seed)
    pair = PAIRS[seed % len(PAIRS)]
    truth = {name: float(np.exp(draw.uniform(*np.log(RANGES[name][1])))) for name in pair}
    return Case(int(draw.integers(4, 9)), f"{draw.choice([40, 50, 100])}Gbps", truth)


def main(runs: int, first: int, rates: bool) -> None:
    """Print a table."""
    hits, widths, known = 0, [], 0
    for seed in range(first, first + runs):
        one = case(seed)
        began = time.perf_counter()
        found = one.fit(one.measured(1000 + seed, rates=rates))
        cells = []
        for name, value in one.truth.items():
            each = found.estimate[name]
            inside = each.low <= value <= each.high
            hits += inside
            if found.identifiable[name]:
                known += 1
                widths.append(each.width)
            said = "" if found.identifiable[name] else ", not identifiable"
            ends = f"[{each.low:.4g}, {each.high:.4g}]"
            cells.append(f"{name} {value:.4g}: {each.value:.4g} {ends}{said}{'' if inside else ' MISSED'}")
        took = time.perf_counter() - began
        cells += [f"residual {found.residual:.2f}", f"{took:.0f} s"]
        print(f"{seed}: {one.flows} flows, {one.rate} | {' | '.join(cells)}", flush=True)
    width = f"{np.median(widths):.1%}" if widths else "none"
    print(f"{hits} of {2 * runs} values within their intervals; {known} identifiable, median width {width}")


def of_ns3() -> None:
    """Print W_AI as fitted to runs of which it is known."""
    from tests.studies.fitting.test_fit import of_ns3 as fitted

    for w_ai in (25, 50, 80, 150):
        found = fitted(w_ai, 150)
        each = found.estimate["w_ai"]
        print(
            f"{w_ai} B: {each.value:.1f} [{each.low:.1f}, {each.high:.1f}] | residual {found.residual:.2f}", flush=True
        )


if __name__ == "__main__":
    if "ns3" in sys.argv:
        sys.exit(of_ns3())
    numbers = [int(text) for text in sys.argv[1:] if text.isdigit()]
    main(*(numbers + [10, 0][len(numbers) :]), rates="queue" not in sys.argv)
