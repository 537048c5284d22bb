"""Time a step of each scheme's fluid, and its compilation: ``python -m benchmarks.fluid_steps [SCHEME ...]``.

XLA may compute the same thing again and again, or make fifty functions of a step: a scheme is then ten or a thousand
times as slow, with the same results, and no test sees it. Steps are compared with those of DCQCN's incast, in one run;
times are the processor's, the least of three, without files of machine code.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from functools import partial

os.environ["FLUIDCC_CACHE_DIR"] = os.devnull

import fluidcc as fc
from fluidcc.contract import registry

FEW, MANY, TIMES = 2_000, 20_000, 3  # steps of runs, of which the least of so many counts
MOST = 30  # times DCQCN's: more than any scheme needs
NETWORKS: dict[str, Callable[..., fc.Scenario]] = {
    "incast of 8": partial(fc.incast, 8),
    "parking lot of 3": partial(fc.parking_lot, 3),
    "incast of 4 with PFC": partial(fc.incast, 4, pfc=fc.PFC("100KB")),
}


def measured(scenario: fc.Scenario) -> tuple[float, float]:
    """Seconds of the processor to compile, and for a step."""

    def run(until: float) -> tuple[float, float]:
        began = time.process_time()
        trace = fc.simulate(scenario, until, estimate_error=False)
        return time.process_time() - began, trace.dataset.attrs["dt_s"]

    first, dt = run(100e-6)
    again, *least = (min(run(until)[0] for _ in range(TIMES)) for until in (100e-6, FEW * dt, MANY * dt))
    return first - again, (least[1] - least[0]) / (MANY - FEW)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    every = [name for name in registry.built_in() if registry.scheme(name).fluid is not None]
    parser.add_argument("schemes", nargs="*", default=every)
    measured(fc.incast(2))  # what all need
    _, one = measured(fc.incast(5))
    print(f"DCQCN, incast of 5: {one * 1e6:.2f} us a step\n")
    print("| scheme | network | compiled in | a step, in DCQCN's |\n|---|---|---|---|")
    for name in parser.parse_args().schemes:
        for network, make in NETWORKS.items():
            compiled, step = measured(make(scheme=name))
            said = "  <- too much" if step > MOST * one else ""
            print(f"| {name} | {network} | {compiled:.1f} s | {step / one:.1f}{said} |", flush=True)


if __name__ == "__main__":
    main()
