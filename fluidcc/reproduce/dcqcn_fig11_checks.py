"""What is expected of DCQCN Figure 11's numbers, and the runs at a finer step that give them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fluidcc.reproduce.common import GBPS, LINE_RATE, Cell, side_by_side
from fluidcc.reproduce.result import Check, printed
from fluidcc.scenario import RED
from fluidcc.schemes.dcqcn import DCQCN, PRESETS
from fluidcc.simulate import simulate

STRAWMAN, CUT_OFF = PRESETS["strawman"]
RECOMMENDED = PRESETS["paper"][0]
UNTIL, OMITTED, LAST = 200e-3, 10e-3, 180e-3  # s: horizon, left out, start of the last 20 ms
CONVERGED = 1 * GBPS  # flows count as converged if their means of the last 20 ms differ by less (2.5 % of the line)
COARSE, FINE, FINE_QUICK = 1e-6, 0.25e-6, 0.5e-6  # steps [s]
SAMPLED = 10e-6  # s; the reference's mean gap is over this grid too

Variant = tuple[DCQCN, RED]
Checked = tuple[dict[str, float | bool], dict[str, Check]]
Numbers = dict[str, float]

_WHY = "independent step-halved integration; half its last digit and twice our change from a step of 1 us"


def strawman(**changes: Any) -> DCQCN:
    """The strawman's sender with something changed."""
    return dataclasses.replace(STRAWMAN, **changes)


def cell(variant: Variant) -> Cell:
    """Two flows, from 40 Gb/s and from 0."""
    return (*variant, ((1.0, LINE_RATE), (1.0, 0.0)))


def _probe(variants: Sequence[Variant], quick: bool) -> tuple[list[Numbers], list[Numbers]]:
    """Numbers of some settings at the fine step, and their change from the coarse one."""
    runs = []
    for step in (FINE_QUICK if quick else FINE, COARSE):
        scenario = side_by_side([cell(variant) for variant in variants])
        trace = simulate(scenario, UNTIL, window=(LAST, UNTIL), dt=step, sample_interval=SAMPLED, estimate_error=False)
        means = np.array(trace.summary["rate_bytes_per_s"]).reshape(-1, 2)
        rates, time = trace["rate"].values.reshape(-1, len(variants), 2), trace["time"].values
        gap = np.abs(rates[..., 0] - rates[..., 1])
        grid = gap[time > OMITTED + SAMPLED / 2]  # the reference's samples: after 10 ms, without that instant
        whole = gap[time > OMITTED - SAMPLED / 2]
        runs.append(
            [
                {
                    "rate_1": float(means[k, 0]),
                    "rate_2": float(means[k, 1]),
                    "last_gap": float(abs(means[k, 0] - means[k, 1])),
                    "end_gap": float(gap[-1, k]),
                    "mean_gap": float(np.trapezoid(whole[:, k]) / (len(whole) - 1)),
                    "mean_gap_on_grid": float(grid[:, k].mean()),
                }
                for k in range(len(variants))
            ]
        )
    fine, coarse = runs
    return fine, [{name: a[name] - b[name] for name in a} for a, b in zip(fine, coarse, strict=True)]


def _byte_counter(quick: bool) -> Checked:
    (quick_counter, slow), (error, _) = _probe([(STRAWMAN, CUT_OFF), (strawman(byte_counter="10MB"), CUT_OFF)], quick)
    values: dict[str, float | bool] = {
        "strawman_rate_1_bytes_per_s": quick_counter["rate_1"],
        "strawman_rate_2_bytes_per_s": quick_counter["rate_2"],
        "strawman_last_gap_bytes_per_s": quick_counter["last_gap"],
        "byte_counter_10MB_last_gap_bytes_per_s": slow["last_gap"],
        "strawman_converges": quick_counter["last_gap"] < CONVERGED,
        "slow_byte_counter_helps": slow["last_gap"] < quick_counter["last_gap"],
        "slow_byte_counter_alone_is_enough": slow["last_gap"] < CONVERGED,
    }
    expected = {
        "strawman_rate_1_bytes_per_s": printed(37.99 * GBPS, 0.01 * GBPS, error["rate_1"], _WHY),
        "strawman_rate_2_bytes_per_s": printed(0.83 * GBPS, 0.01 * GBPS, error["rate_2"], _WHY),
        "strawman_converges": Check(False, 0, "section 5.2: with these parameter values, the flows cannot converge"),
        "slow_byte_counter_helps": Check(True, 0, "section 5.2: slowing down the byte counter helps"),
        "slow_byte_counter_alone_is_enough": Check(False, 0, "independent integration: alone it helps little"),
    }
    return values, expected


def _timer(quick: bool) -> Checked:
    (fast, both, slow), (error, _, _) = _probe(
        [
            (strawman(timer="55us"), CUT_OFF),
            (strawman(timer="55us", byte_counter="10MB"), CUT_OFF),
            (strawman(byte_counter="10MB"), CUT_OFF),
        ],
        quick,
    )
    values: dict[str, float | bool] = {
        "timer_55us_last_gap_bytes_per_s": fast["last_gap"],
        "timer_55us_mean_gap_bytes_per_s": fast["mean_gap"],
        "timer_55us_byte_counter_10MB_last_gap_bytes_per_s": both["last_gap"],
        "byte_counter_10MB_last_gap_bytes_per_s": slow["last_gap"],
        "timer_55us_alone_converges": fast["last_gap"] < CONVERGED,
        "fast_timer_beats_slow_byte_counter": fast["last_gap"] < slow["last_gap"],
    }
    expected = {
        "timer_55us_last_gap_bytes_per_s": printed(0.080 * GBPS, 0.001 * GBPS, error["last_gap"], _WHY),
        "timer_55us_alone_converges": Check(True, 0, "sections 5.2, 6.1: a faster timer cures the unfairness"),
        "fast_timer_beats_slow_byte_counter": Check(True, 0, "section 5.2: speeding up the timer is better"),
    }
    return values, expected


def _kmax(quick: bool) -> Checked:
    thresholds = [(kmin, kmax) for kmin in ("40KB", "5KB") for kmax in ("40KB", "200KB", "400KB")]
    probes, _ = _probe([(STRAWMAN, RED(kmin, kmax, 1.0)) for kmin, kmax in thresholds], quick)
    gaps = [probe["last_gap"] for probe in probes]
    names = [f"kmin_{kmin}_kmax_{kmax}_last_gap_bytes_per_s" for kmin, kmax in thresholds]
    values: dict[str, float | bool] = {
        **dict(zip(names, gaps, strict=True)),
        "gap_falls_with_kmax": all(gaps[i] > gaps[i + 1] for i in (0, 1, 3, 4)),
        "kmax_200KB_alone_converges": min(gaps[1], gaps[4]) < CONVERGED,
    }
    expected = {"gap_falls_with_kmax": Check(True, 0, "section 5.2: RED-like marking helps; Figure 11(c) confirms it")}
    return values, expected


def _pmax(quick: bool) -> Checked:
    shares = ("1%", "5%", "10%", "100%")
    bases = {"kmin_40KB": (STRAWMAN, "40KB"), "kmin_5KB": (STRAWMAN, "5KB"), "recommended": (RECOMMENDED, "5KB")}
    cells = [(scheme, RED(kmin, "200KB", share)) for scheme, kmin in bases.values() for share in shares]
    found, errors = _probe(cells, quick)
    values: dict[str, float | bool] = {}
    for k, base in enumerate(bases):
        for i, share in enumerate(shares):
            probe = found[k * len(shares) + i]
            name = f"{base}_pmax_{share.rstrip('%')}pct"
            values |= {f"{name}_{key}_bytes_per_s": probe[key] for key in ("last_gap", "mean_gap")}
        one, five, ten, _ = (probe["mean_gap"] for probe in found[k * len(shares) : (k + 1) * len(shares)])
        values[f"{base}_5_to_10pct_beat_1pct"] = max(five, ten) < one
    last, error = found[2 * len(shares)], errors[2 * len(shares)]
    values["recommended_mean_gap_on_grid_bytes_per_s"] = last["mean_gap_on_grid"]
    values["recommended_end_gap_bytes_per_s"] = last["end_gap"]
    why = "independent integration: 5-10 % converges faster than 1 % (by the mean gap after 10 ms)"
    expected = {
        "recommended_mean_gap_on_grid_bytes_per_s": printed(
            2.1446 * GBPS, 1e-4 * GBPS, error["mean_gap_on_grid"], _WHY
        ),
        "recommended_end_gap_bytes_per_s": printed(1e-4 * GBPS, 1e-4 * GBPS, error["end_gap"], _WHY),
        **{f"{base}_5_to_10pct_beat_1pct": Check(True, 0, why) for base in bases},
    }
    return values, expected


CHECKS: dict[str, Callable[[bool], Checked]] = {
    "dcqcn-fig11a": _byte_counter,
    "dcqcn-fig11b": _timer,
    "dcqcn-fig11c": _kmax,
    "dcqcn-fig11d": _pmax,
}
