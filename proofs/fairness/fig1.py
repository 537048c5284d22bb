"""Figure 1 of "Fast Convergence to Fairness": Jain's index and queue of HPCC and Swift in a 16-1 incast (III-E)."""

from __future__ import annotations

from pathlib import Path

from fluidcc.proofs import papers
from fluidcc.proofs.fairness.common import (
    FAIR_NOTE,
    NAMES,
    NOTES,
    SEEDS,
    STEADY_NOTE,
    UNTIL,
    Run,
    jain_and_queue,
    named,
    numbers,
    run_variants,
    sample_of,
    seeds_note,
    series,
)
from fluidcc.proofs.shared.runs import save
from fluidcc.proofs.verdict.figure import Check, Figure, Result, reproduces

FLOWS = 16
COMPARED = ("default", "gbps", "probabilistic")
HUNDREDS = 200e-6  # s: "several hundred microseconds" are at least two


@reproduces("fairness-fig1", papers.VAI, "Figure 1: Jain's index and queue of HPCC and Swift, 16-1")
def make_fig1(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make the figure."""
    runs = {scheme: run_variants(scheme, COMPARED, FLOWS) for scheme in NAMES}
    drawn = {NAMES[scheme]: {key: each[0] for key, each in found.items()} for scheme, found in runs.items()}
    notes = [
        *NOTES,
        FAIR_NOTE,
        STEADY_NOTE,
        seeds_note(SEEDS),
        "at one time: when the first flow of the default ends; so a bound is not compared with a bound",
    ]
    if quick:
        notes.append("quick: nothing is left out")
    title = "Fast Convergence to Fairness Fig. 1: 16-1 incast, two flows every 20 us"
    picture = jain_and_queue(drawn, title, dict.fromkeys(drawn, 1500e-6))
    files = (picture.write(folder / f"{figure.name}.png"), folder / f"{figure.name}.nc")
    save(series(drawn, "scheme"), files[1])
    return Result(
        figure,
        _measure(runs),
        _expected(),
        files,
        tuple(notes),
        sample="; ".join(f"{NAMES[scheme]}: {sample_of(UNTIL[FLOWS], found)}" for scheme, found in runs.items()),
    )


def _measure(runs: dict[str, dict[str, list[Run]]]) -> dict[str, float | bool]:
    values: dict[str, float | bool] = {}
    for scheme, found in runs.items():
        end = found["default"][0].first_end
        for key, several in found.items():
            index = sorted(float(each.jain.sel(time=end, method="nearest")) for each in several)
            values |= named(f"{scheme}_{key}", numbers(several))
            values[f"{scheme}_{key}_jain_at_one_time"] = index[len(index) // 2]
        default = {name: values[f"{scheme}_default_{name}"] for name in ("jain_at_one_time", "queue_std_bytes")}
        values[f"{scheme}_default_takes_hundreds_of_us"] = bool(values[f"{scheme}_default_fair_after_s"] >= HUNDREDS)
        for key in COMPARED[1:]:
            fairer = values[f"{scheme}_{key}_jain_at_one_time"] > default["jain_at_one_time"]
            values[f"{scheme}_{key}_fairer_than_default"] = bool(fairer)
        wider = values[f"{scheme}_gbps_queue_std_bytes"] > default["queue_std_bytes"]
        values[f"{scheme}_gbps_queue_amplitude_more_than_default"] = bool(wider)
    return values


def _expected() -> dict[str, Check]:
    slow = "III-E: by default, several hundred microseconds to get close to an index of one; at least 200"
    better = "III-E: probabilistic feedback and a higher AI improve convergence to fair rates in both protocols"
    oscillations = "III-E: larger queue oscillations with a higher additive increase, in both; standard deviation"
    return {
        f"{scheme}_{what}": Check(True, 0, why)
        for scheme in NAMES
        for what, why in (
            ("default_takes_hundreds_of_us", slow),
            ("gbps_fairer_than_default", better),
            ("probabilistic_fairer_than_default", better),
            ("gbps_queue_amplitude_more_than_default", oscillations),
        )
    }
