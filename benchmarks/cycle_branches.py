"""DCQCN's limit cycles, followed over flows, against runs of the fluid and of packets; and the charts of the docs.

    python -m benchmarks.cycle_branches            the table, in some 3 minutes
    python -m benchmarks.cycle_branches --packets  packets at five numbers of flows, in some 2 minutes
    python -m benchmarks.cycle_branches --picture  docs/pictures/bistable_region.png, in some 5 minutes

Tolerances, stated before measuring: 1 % for period, mean and largest queue of stable cycles; 0.05 flows for the fold (a
run at steps of 1 us is some 1e-3 off, and the queue's excess over Kmax goes with the root of the distance to the fold);
0.02 for the multiplier (cycles lock to a run's steps). For the unstable cycle 1 % of its least queue and period was
stated; runs do not stay near it long enough to measure either. After the start that separates both ends the least queue
is 2 to 3 % lower, and the peak that separates them is the cycle's to a few bytes, which was not stated before.
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path
from typing import Any

import numpy as np
from scipy.interpolate import PchipInterpolator

import fluidcc as fc
from fluidcc.compiling.settings import our_settings
from fluidcc.engines.fluid.engine import Continued
from fluidcc.engines.fluid.network import network_of
from fluidcc.engines.fluid.plan import plan_of
from fluidcc.plotting.cycles import draw_region
from fluidcc.plotting.style import figure
from fluidcc.scenario.model import resolve
from fluidcc.studies.sweeps.cycle_branch import CycleBranch
from fluidcc.units import Rate

PICTURE = Path(__file__).parent.parent / "docs" / "pictures" / "bistable_region.png"
GAINS = np.geomspace(1 / 1024, 1 / 16, 17)
KMINS = np.arange(5e3, 150e3, 7.5e3)


def flows(n: Any) -> fc.Scenario:
    """Flows at the paper's settings, 40 Gb/s."""
    return fc.incast(1, multiplicity=n)


def gains(n: Any, g: Any) -> fc.Scenario:
    """Flows with another gain of alpha."""
    return fc.incast(1, multiplicity=n, scheme=fc.DCQCN(g=g))


def thresholds(n: Any, kmin: Any) -> fc.Scenario:
    """Flows with another Kmin; Kmax stays 200 KB and pmax 1 %."""
    return fc.incast(1, multiplicity=n, marking=fc.RED(kmin, "200KB", "1%"))


def run_of(n: float, scenario: fc.Scenario | None = None, dt: Any = None) -> tuple[Continued, float]:
    """A run of the fluid from a start, and its step [s]."""
    network = network_of(resolve(flows(n) if scenario is None else scenario))
    plan = plan_of(network, until="4s", dt=dt, method="heun", halving=False)
    return Continued(network, plan), plan.dt


def cycling(n: float) -> fc.Scenario:
    """The same from the equilibrium's rates and an empty queue: from there these flows cycle."""
    return fc.studies.from_equilibrium(flows, {"n": [n]})(n=n)


def followed(run: Continued, dt: float, time: float) -> np.ndarray:
    """Queue of the next so many seconds, step by step."""
    return run.follow(round(time / dt))[0].queue[:, 0, 0]


def at(branch: CycleBranch, n: float, stable: bool) -> dict[str, float]:
    """Numbers of one of the branch's two cycles at a number of flows, between its points."""
    data = branch.dataset
    fold = int(np.flatnonzero(data["fold"].values)[0])
    side = slice(fold, None) if stable else slice(fold, None, -1)
    names = ("period", "queue_bytes.min", "queue_bytes.max", "queue_bytes.mean", "multiplier")
    where, first = np.unique(data["n"].values[side], return_index=True)
    return {k: float(PchipInterpolator(where, data[k].values[side][first])(n)) for k in names}


def check_stable() -> None:
    """Stable cycles against runs."""
    print("stable cycle         period [ms]     mean queue [KB]  largest queue [KB]")
    for n in (9.0, 10.0, 12.0, 16.0):
        # The end of a branch is solved for, and not read off between its points.
        ours = fc.studies.cycle_branch(flows, {"n": [n, 20]}).dataset.isel(point=0)
        run = fc.limit_cycle(cycling(n) if n < 15 else flows(n), estimate_error=False)
        pairs = [(float(ours["period"]) * 1e3, run.period * 1e3)]
        pairs += [
            (float(ours[k]) / 1e3, v / 1e3) for k, v in (("queue_bytes.mean", run.mean), ("queue_bytes.max", run.high))
        ]
        print(f"{n:4g} flows, run  ", *(f"{a:9.4f} {b:9.4f}" for a, b in pairs))


def check_fold(branch: CycleBranch) -> None:
    """The fold against one run whose flows become fewer step by step, for 300 ms each, until it settles."""
    for step in ("1us", "0.25us"):
        run, dt = run_of(9.0, cycling(9.0), step)
        run.window(round(0.1 / dt))
        last = 9.0
        for n in np.arange(8.4, 8.0, -0.01):
            run.change(network_of(resolve(flows(float(n)))))
            run.window(round(0.25 / dt))
            if np.ptp(followed(run, dt, 0.05)) < 150e3:
                break
            last = float(n)
        print(f"fold at {branch.folds[0]:.4f} flows; with steps of {step} a run cycles down to {last:.2f}")


def check_unstable(branch: CycleBranch) -> None:
    """The unstable cycle at 10 flows: rates above the equilibrium's, and which of them lead to the large cycle."""
    n = 10.0
    run, dt = run_of(n, dt="0.25us")
    run.window(round(0.3 / dt))
    rest = run.state

    def course(share: float) -> np.ndarray:
        with our_settings():
            (flow,) = rest.schemes
            faster = rest._replace(schemes=(flow._replace(rate=flow.rate * (1 + share)),))
        run.begin_at(faster)
        return followed(run, dt, 20e-3)

    low, high = 0.0, 1.0
    for _ in range(24):
        middle = (low + high) / 2
        large = np.ptp(course(middle)[-16384:]) > 150e3
        low, high = (low, middle) if large else (middle, high)
    ours = at(branch, n, False)
    least, largest = (ours[f"queue_bytes.{part}"] / 1e3 for part in ("min", "max"))
    print(f"unstable cycle at {n:g} flows: queue {least:.2f} to {largest:.3f} KB")
    for share in (low, high):
        queue = course(share)
        first = int(np.argmax(queue[:8192]))
        trough = queue[first : first + round(1.5e-3 / dt)].min()
        print(
            f"  a start at {1 + share:.7f} of the equilibrium's rate: first {queue[first] / 1e3:.3f} KB, then "
            f"{trough / 1e3:.2f} KB; in the end it oscillates by {np.ptp(queue[-16384:]) / 1e3:.1f} KB"
        )


def check_multiplier(branch: CycleBranch) -> None:
    """The largest multiplier at 16 flows against how a longer queue is forgotten, from cycle to cycle."""
    n = 16.0
    run, dt = run_of(30.0, dt="0.25us")
    run.window(round(0.2 / dt))
    run.change(network_of(resolve(flows(n))))
    queue = followed(run, dt, 60e-3)
    cuts = np.flatnonzero((queue[:-1] < 100e3) & (queue[1:] >= 100e3))
    peaks = np.array([queue[a:b].max() for a, b in itertools.pairwise(cuts)])
    away = peaks - peaks[-5:].mean()
    k = np.arange(1, 13)
    factor = np.exp(np.polyfit(k, np.log(np.abs(away[k])), 1)[0])
    print(
        f"multiplier at {n:g} flows {at(branch, n, True)['multiplier']:.4f}; after 30 flows the largest queue returns "
        f"by a factor {factor:.4f} a period: off by {away[:13].round().tolist()} bytes"
    )


def check_packets() -> None:
    """Packets where the fluid is bistable, from both starts."""
    for n in (4, 6, 8, 10, 12):
        for text, scenario in (("line rate", flows(n)), ("equilibrium's rates", cycling(float(n)))):
            flow = scenario.flows[0]
            many = fc.incast(n, scheme=flow.scheme, initial_rate=Rate(float(flow.initial_rate)))
            trace = fc.simulate(many, "200ms", engine="packet", seed=1, window=("100ms", "200ms"))
            queue = trace.queue.sel(time=slice(0.1, None)).values
            parts = np.percentile(queue, [1, 50, 99]) / 1e3
            print(f"packets, {n} flows from {text}: queue {parts.round(1).tolist()} KB (1, 50 and 99 %)")


def draw() -> None:
    """Both charts side by side."""
    picture, axes = figure(1, 2, size=(12.0, 4.6), sharey=True)
    labels = {"n": "flows", "g": "gain g of alpha", "kmin": "with Kmax 200 KB: Kmin [KB]"}
    for axis, make, name, values in ((axes[0, 0], gains, "g", GAINS), (axes[0, 1], thresholds, "kmin", KMINS)):
        region = fc.studies.bistable_region(make, {"n": [2, 20], name: values}, at=17, steps=500)
        print(region, region["fold"].values.round(3).tolist())
        draw_region(axis, region, labels)
    axes[0, 1].set_ylabel("")
    axes[0, 1].get_legend().remove()
    picture.write(PICTURE)


def main() -> None:
    """Print the table, or draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packets", action="store_true")
    parser.add_argument("--picture", action="store_true")
    given = parser.parse_args()
    if given.picture:
        draw()
    elif given.packets:
        check_packets()
    else:
        branch = fc.studies.cycle_branch(flows, {"n": [6, 20]})
        print(branch, branch.ends)
        check_fold(branch)
        check_unstable(branch)
        check_multiplier(branch)
        check_stable()


if __name__ == "__main__":
    main()
