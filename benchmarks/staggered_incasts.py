"""Incasts whose flows start two by two, under HPCC and Swift with Variable AI and Sampling Frequency.

    python -m benchmarks.staggered_incasts table [FLOWS]    # docs/theory/fairness.md: packets
    python -m benchmarks.staggered_incasts fluid            # the same in the fluid, minutes
    python -m benchmarks.staggered_incasts stale            # docs/findings_fairness.md: why 30 ACKs are too many for 96
    python -m benchmarks.staggered_incasts floor            # a least window of a packet
    python -m benchmarks.staggered_incasts setting          # one setting for 16 and 96 flows

Two flows of 1 MB start every 20 us, at 100 Gb/s and 1 us per link. With a seed each starts up to 2 us later.
"""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

import numpy as np

import fluidcc as fc
from fluidcc.schemes.hpcc.parameters import PRESETS as HPCC
from fluidcc.schemes.swift.parameters import PRESETS as SWIFT

SF: dict[str, Any] = {"sampling": 30}
VAI: dict[str, Any] = {"vai": True}
VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "1 Gb/s": {"rate_ai": "1Gbps"},
    "probabilistic": {"probabilistic": True},
    "VAI": VAI,
    "SF": SF,
    "VAI+SF": VAI | SF,  # Swift's preset vai-sf is the next
    "VAI+SF, no scaling": VAI | SF | {"flow_scaling": False},
}
TUNED: dict[str, Any] = {"vai": True, "sampling": 5, "ai_cap": 300, "token_rule": "excess"}
STAGGER: dict[str, Any] = {"rate": "100Gbps", "size": "1MB", "stagger": "20us", "stagger_group": 2}


def staggered(preset: Any, flows: int = 16, seed: int | None = None, **changes: Any) -> Any:
    """An incast from a preset with changed parameters."""
    start = 0.0 if seed is None else list(np.random.default_rng(seed).uniform(0, 2e-6, flows))
    scheme = dataclasses.replace(preset.scheme, **changes)
    return fc.incast(flows, scheme=scheme, start=start, **(STAGGER | preset.network))


def last_start(scenario: Any) -> float:
    """Start of the last flow [s]."""
    return max(flow.start for flow in scenario.flows)


def after_last(trace: Any, last: float) -> tuple[float, float]:
    """Times at which Jain's index is 0.95, first and for good [us]."""
    index = fc.theory.jain_over_time(trace).sel(time=slice(last, fc.theory.finish_times(trace).min()))
    fair = index.time[index >= 0.95]
    first = 1e6 * (float(fair[0]) - last) if len(fair) else np.nan
    return first, 1e6 * fc.theory.time_to_fairness(trace)


def row(scenario: Any, jittered: list[Any], until: str, engine: str) -> str:
    """A line of the table: ends, times to fairness, queue."""
    options: dict[str, Any] = {"engine": engine, "sample_interval": "1us"}
    if engine == "fluid":
        options["estimate_error"] = False
    trace = fc.simulate(scenario, until, **options)
    ends, last = fc.theory.finish_times(trace), last_start(scenario)
    steady = trace["queue"].sel(time=slice((last + ends.min()) / 2, ends.min())).mean()
    runs = np.array([after_last(fc.simulate(each, until, **options), last_start(each)) for each in jittered])
    words = [f"{1e6 * ends.min():.0f} to {1e6 * ends.max():.0f} us"]
    for name, times in zip(("fair at first", "for good"), runs.T, strict=True):
        got = times[np.isfinite(times)]
        words.append(f"{name} in {len(got)} of {len(times)}")
        if len(got):
            words.append(f"{got.mean():.0f} ({got.min():.0f} to {got.max():.0f}) us")
    peak = trace.summary["queue_bytes"]["max_whole_run"]
    return ", ".join([*words, f"queue {steady / 1e3:.1f} KB, peak {peak / 1e3:.0f} KB"])


def table(flows: int = 16, until: str = "3ms", engine: str = "packet", seeds: int = 8) -> None:
    """Print the table of all variants."""
    for name, presets in (("HPCC", HPCC), ("Swift", SWIFT)):
        for variant, changes in VARIANTS.items():
            if name == "Swift" or "flow_scaling" not in changes:
                preset = presets["fairness"]
                jittered = [staggered(preset, flows, seed, **changes) for seed in range(seeds)]
                print(f"{name:5} {variant:18}", row(staggered(preset, flows, **changes), jittered, until, engine))


def stale() -> None:
    """Print references, U, queue and tokens of 96 flows after the last start, and times to fairness by level."""

    def run(scenario: Any, until: str = "3ms") -> Any:
        return fc.simulate(scenario, until, engine="packet", sample_interval="2us")

    old, new = slice(0, 24), slice(72, 96)  # quarters
    names = ("default", "VAI", "SF", "VAI+SF")
    variants = {name: VARIANTS[name] for name in names} | {"VAI+SF, 5 ACKs": VAI | {"sampling": 5}}
    for name, changes in variants.items():
        trace = run(staggered(HPCC["fairness"], 96, 1, **changes))
        pipe = float(trace["window"].max())  # W_init = C T
        for late in (0, 100, 200, 400, 800, 1600):  # us after the last start
            d = trace.dataset.sel(time=slice((940 + late) * 1e-6, (980 + late) * 1e-6)).mean("time")
            factor = d["increase_factor"] if "vai" in changes else np.ones(96)
            increases = 26.0 * float(factor.sum())  # 50 Mb/s are 26 B in T
            references = float(d.reference_window.sum())
            says = 0.95 * references / (pipe - increases)
            print(f"{name:14} {late:5} us: references {references / pipe:.2f} C T")
            print(f"    U {float(d.utilisation_estimate.mean()):.2f}, by the formula {says:.2f}")
            ratio = float(d.window[new].sum() / d.window[old].sum())
            print(f"    queue {float(d.queue[0]) / 1e3:.1f} KB, new/old {ratio:.1f}")
            if "vai" in changes:
                for variable in ("increase_factor", "dampener", "token_bank"):
                    means = [float(d[variable][part].mean()) for part in (old, new)]
                    print(f"    {variable}: old {means[0]:.1f}, new {means[1]:.1f}")
    for level in (0.8, 0.9, 0.95):
        for name in ("default", "VAI+SF"):
            cases = [staggered(HPCC["fairness"], 96, seed, **VARIANTS[name]) for seed in range(3)]
            times = [fc.theory.time_to_fairness(run(case, "4ms"), level) for case in cases]
            print(f"fair to {level}, {name}: {[round(1e6 * time) for time in times]} us")
    trace = run(staggered(SWIFT["fairness"], 96, 1, vai=True), "6ms")  # with scaling, VAI alone
    for late in (400, 1600, 4500):
        d = trace.dataset.sel(time=slice((940 + late) * 1e-6, (980 + late) * 1e-6)).mean()
        print(f"Swift {late} us: dampener {d.dampener:.0f}, bank {d.token_bank:.0f}")
        print(f"    increase {d.increase_factor:.1f} times, RTT {1e6 * d.rtt:.1f} us")


def floor() -> None:
    """Print time to fairness and queue of 96 flows whose windows are a packet at least."""
    off: dict[str, Any] = {}
    for changes in (off, VAI | SF):
        scheme = fc.HPCC(rate_ai="50Mbps", **changes)
        trace = fc.simulate(fc.incast(96, scheme=scheme, **STAGGER), "9ms", engine="packet", sample_interval="1us")
        queue = float(trace["queue"].sel(time=slice(4e-3, 6e-3)).mean()) / 1e3
        print(changes, f"fair after {1e6 * fc.theory.time_to_fairness(trace):.0f} us, queue {queue:.1f} KB")


def setting() -> None:
    """Print time to fairness and queue of the default and of one setting for both incasts."""
    for flows, until in ((16, "2ms"), (96, "9ms")):
        for changes in ({}, TUNED):
            times, queues = [], []
            for seed in range(8):
                scenario = staggered(HPCC["fairness"], flows, seed, **changes)
                trace = fc.simulate(scenario, until, engine="packet", sample_interval="2us")
                end = fc.theory.finish_times(trace).min()
                times.append(1e6 * fc.theory.time_to_fairness(trace))
                half = slice((last_start(scenario) + end) / 2, end)
                queues.append(float(trace["queue"].sel(time=half).mean()) / 1e3)
            fair = np.array(times)[np.isfinite(times)]
            mean = f"mean {fair.mean():.0f} us" if len(fair) else "never fair"
            print(flows, changes, np.round(times), mean)
            print(f"    queue {np.mean(queues):.1f} KB")


def main() -> None:
    """Print what the arguments name."""
    what, *flows = sys.argv[1:] or ["table"]
    if what == "table":
        many = bool(flows) and int(flows[0]) > 16
        table(*map(int, flows), until="9ms" if many else "3ms")
    elif what == "fluid":
        table(until="2ms", engine="fluid", seeds=4)
    else:
        {"stale": stale, "floor": floor, "setting": setting}[what]()


if __name__ == "__main__":
    main()
