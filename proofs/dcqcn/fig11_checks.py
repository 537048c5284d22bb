"""DCQCN Figure 11: settings whose numbers are checked, and what is expected of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fluidcc.proofs.shared.runs import GBPS, LINE_RATE, Cell
from fluidcc.proofs.verdict.figure import Check, printed
from fluidcc.results.trace import Trace
from fluidcc.scenario.model import RED
from fluidcc.schemes.dcqcn import DCQCN, PRESETS

STRAWMAN, STEP_MARKING = PRESETS["strawman"][:2]
RECOMMENDED = PRESETS["paper"][0]
OMITTED, LAST, UNTIL = 10e-3, 180e-3, 200e-3  # s: left out, start of the last 20 ms, horizon
CONVERGED = 1 * GBPS  # flows count as converged if their means of the last 20 ms differ by less (2.5 % of the line)
SAMPLED = 10e-6  # s; the reference's mean gap is over this grid too

Variant = tuple[DCQCN, RED]
Numbers = dict[str, float]
Checked = tuple[dict[str, float | bool], dict[str, Check]]

_WHY = "independent step-halved integration; half its last digit and twice our change from a step of 1 us"


class Probe(NamedTuple):
    """Settings to run, by name, and what to conclude from their numbers and those numbers' step errors."""

    variants: Callable[[bool], dict[str, Variant]]  # of quick
    judge: Callable[[dict[str, Numbers], dict[str, Numbers]], Checked]


def strawman(**changes: Any) -> DCQCN:
    """The strawman's sender with something changed."""
    return dataclasses.replace(STRAWMAN, **changes)


def cell(variant: Variant) -> Cell:
    """Two flows, from 40 Gb/s and from 0."""
    return (*variant, ((1.0, LINE_RATE), (1.0, 0.0)))


def numbers(trace: Trace, k: int) -> Numbers:
    """Rates and gaps [bytes/s] of cell ``k`` of a trace whose window is the last 20 ms."""
    one, two = trace.summary["rate_bytes_per_s"][2 * k : 2 * k + 2]
    rates, time = trace["rate"].values, trace["time"].values
    gap = np.abs(rates[:, 2 * k] - rates[:, 2 * k + 1])
    whole = gap[time > OMITTED - SAMPLED / 2]
    return {
        "rate_1": one,
        "rate_2": two,
        "last_gap": abs(one - two),
        "end_gap": float(gap[-1]),
        "mean_gap": float(np.trapezoid(whole) / (len(whole) - 1)),
        "mean_gap_on_grid": float(whole[1:].mean()),  # the reference's samples leave out the instant of 10 ms
    }


# -- (a) -----------------------------------------------------------------------------------------------------


def _counters(quick: bool) -> dict[str, Variant]:
    return {"strawman": (STRAWMAN, STEP_MARKING), "byte_counter_10MB": (strawman(byte_counter="10MB"), STEP_MARKING)}


def _judge_counters(found: dict[str, Numbers], error: dict[str, Numbers]) -> Checked:
    before, slow = found["strawman"], found["byte_counter_10MB"]
    values: dict[str, float | bool] = {
        "strawman_rate_1_bytes_per_s": before["rate_1"],
        "strawman_rate_2_bytes_per_s": before["rate_2"],
        "strawman_last_gap_bytes_per_s": before["last_gap"],
        "byte_counter_10MB_last_gap_bytes_per_s": slow["last_gap"],
        "strawman_converges": before["last_gap"] < CONVERGED,
        "slow_byte_counter_helps": slow["last_gap"] < before["last_gap"],
        "slow_byte_counter_alone_is_enough": slow["last_gap"] < CONVERGED,
    }
    change = error["strawman"]
    expected = {
        "strawman_rate_1_bytes_per_s": printed(37.99 * GBPS, 0.01 * GBPS, change["rate_1"], _WHY),
        "strawman_rate_2_bytes_per_s": printed(0.83 * GBPS, 0.01 * GBPS, change["rate_2"], _WHY),
        "strawman_converges": Check(False, 0, "section 5.2: with these parameter values, the flows cannot converge"),
        "slow_byte_counter_helps": Check(True, 0, "section 5.2: slowing down the byte counter helps"),
        "slow_byte_counter_alone_is_enough": Check(False, 0, "independent integration: alone it helps little"),
    }
    return values, expected


# -- (b) -----------------------------------------------------------------------------------------------------


def _timers(quick: bool) -> dict[str, Variant]:
    return {
        "timer_55us": (strawman(timer="55us"), STEP_MARKING),
        "timer_55us_byte_counter_10MB": (strawman(timer="55us", byte_counter="10MB"), STEP_MARKING),
        "byte_counter_10MB": (strawman(byte_counter="10MB"), STEP_MARKING),
    }


def _judge_timers(found: dict[str, Numbers], error: dict[str, Numbers]) -> Checked:
    fast, slow = found["timer_55us"], found["byte_counter_10MB"]
    values: dict[str, float | bool] = {
        **{f"{name}_last_gap_bytes_per_s": at["last_gap"] for name, at in found.items()},
        "timer_55us_mean_gap_bytes_per_s": fast["mean_gap"],
        "timer_55us_alone_converges": fast["last_gap"] < CONVERGED,
        "fast_timer_beats_slow_byte_counter": fast["last_gap"] < slow["last_gap"],
    }
    change = error["timer_55us"]["last_gap"]
    expected = {
        "timer_55us_last_gap_bytes_per_s": printed(0.080 * GBPS, 0.001 * GBPS, change, _WHY),
        "timer_55us_alone_converges": Check(True, 0, "sections 5.2, 6.1: a faster timer cures the unfairness"),
        "fast_timer_beats_slow_byte_counter": Check(True, 0, "section 5.2: speeding up the timer is better"),
    }
    return values, expected


# -- (c) -----------------------------------------------------------------------------------------------------


def _thresholds(quick: bool) -> dict[str, Variant]:
    return {
        f"kmin_{kmin}_kmax_{kmax}": (STRAWMAN, RED(kmin, kmax, 1.0))
        for kmin in ("40KB", "5KB")
        for kmax in ("40KB", "200KB", "400KB")
    }


def _judge_thresholds(found: dict[str, Numbers], error: dict[str, Numbers]) -> Checked:
    gaps = {name: at["last_gap"] for name, at in found.items()}
    rows = [[gaps[f"kmin_{kmin}_kmax_{kmax}"] for kmax in ("40KB", "200KB", "400KB")] for kmin in ("40KB", "5KB")]
    values: dict[str, float | bool] = {
        **{f"{name}_last_gap_bytes_per_s": gap for name, gap in gaps.items()},
        "gap_falls_with_kmax": all(row[0] > row[1] > row[2] for row in rows),
        "kmax_200KB_alone_converges": any(row[1] < CONVERGED for row in rows),
    }
    why = "section 5.2: RED-like marking helps the flows converge, which Figure 11(c) confirms"
    return values, {"gap_falls_with_kmax": Check(True, 0, why)}


# -- (d) -----------------------------------------------------------------------------------------------------


def _shares(quick: bool) -> dict[str, Variant]:
    bases = {"kmin_5KB": (STRAWMAN, "5KB"), "recommended": (RECOMMENDED, "5KB")}
    if not quick:
        bases["kmin_40KB"] = (STRAWMAN, "40KB")
    return {
        f"{base}_pmax_{percent}pct": (scheme, RED(kmin, "200KB", percent / 100))
        for base, (scheme, kmin) in bases.items()
        for percent in ((1, 5, 10) if quick else (1, 5, 10, 100))
    }


def _judge_shares(found: dict[str, Numbers], error: dict[str, Numbers]) -> Checked:
    values: dict[str, float | bool] = {}
    for name, at in found.items():
        values |= {f"{name}_{key}_bytes_per_s": at[key] for key in ("last_gap", "mean_gap")}
    best, change = found["recommended_pmax_1pct"], error["recommended_pmax_1pct"]
    values["recommended_mean_gap_on_grid_bytes_per_s"] = best["mean_gap_on_grid"]
    values["recommended_end_gap_bytes_per_s"] = best["end_gap"]
    expected = {
        "recommended_mean_gap_on_grid_bytes_per_s": printed(
            2.1446 * GBPS, 1e-4 * GBPS, change["mean_gap_on_grid"], _WHY
        ),
        "recommended_end_gap_bytes_per_s": printed(1e-4 * GBPS, 1e-4 * GBPS, change["end_gap"], _WHY),
    }
    why = "independent integration: 5-10 % converges faster than 1 % (judged by the mean gap after 10 ms)"
    for base in dict.fromkeys(name.partition("_pmax")[0] for name in found):
        one, five, ten = (found[f"{base}_pmax_{percent}pct"]["mean_gap"] for percent in (1, 5, 10))
        values[f"{base}_5_to_10pct_beat_1pct"] = max(five, ten) < one
        expected[f"{base}_5_to_10pct_beat_1pct"] = Check(True, 0, why)
    return values, expected


PROBES = {
    "dcqcn-fig11a": Probe(_counters, _judge_counters),
    "dcqcn-fig11b": Probe(_timers, _judge_timers),
    "dcqcn-fig11c": Probe(_thresholds, _judge_thresholds),
    "dcqcn-fig11d": Probe(_shares, _judge_shares),
}
