"""Conditions that every run of a lossless fabric must satisfy, and the precision of its slowdowns."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from fluidcc.proofs.shared.slowdowns import Compared, by_seed, lacking, of_numbers, ratio
from fluidcc.proofs.verdict.figure import Check
from fluidcc.workloads.fabrics.slowdowns import Slowdown
from fluidcc.workloads.fabrics.study import FabricStudy, interval

_ROUNDING = 1e-9  # of a slowdown: times are whole picoseconds
LOSSLESS = {
    "drops": Check(0.0, 0.0, "PFC keeps the network lossless"),
    "faster_than_alone": Check(0.0, 0.0, "no flow can take less than it takes alone in an idle network"),
}


def counted(studies: Mapping[str, FabricStudy], rounding: float = _ROUNDING) -> dict[str, float | bool]:
    """Lost packets, impossible flows, flows, those unfinished, and the widest interval of p95 of all slowdowns.

    Parameters
    ----------
    studies : mapping
        By the name of their traffic.
    rounding : float
        How much less than alone a flow may take, because times are whole picoseconds or nanoseconds [1].

    Returns
    -------
    dict
        ``drops``, ``faster_than_alone``, ``flows`` (of one scheme, all seeds), ``unfinished`` (of all), and
        ``p95_half_width_worst``: half the interval over the mean, of the scheme for which it is widest.
    """
    runs = [run for study in studies.values() for run in study.runs]
    pairs = [(study, scheme) for study in studies.values() for scheme in study.schemes]
    return {
        "drops": float(sum(of_numbers(study, scheme, "drops").sum() for study, scheme in pairs)),
        "faster_than_alone": float(sum((run.slowdown["slowdown"].values < 1 - rounding).sum() for run in runs)),
        "flows": float(sum(run.slowdown["size"].size for s in studies.values() for run in s.of(s.schemes[0]))),
        "unfinished": float(sum(run.slowdown.unfinished for run in runs)),
        "p95_half_width_worst": max(half_width(by_seed(study, scheme, "p95")) for study, scheme in pairs),
    }


def half_width(values: np.ndarray) -> float:
    """Half the 95 % interval of a mean over seeds, over that mean."""
    mean, low, _ = interval(values)
    return (mean - low) / mean


def precision_notes(studies: Mapping[str, FabricStudy], values: Mapping[str, float | bool]) -> list[str]:
    """Describe the number of flows and seeds, the width of each scheme's p95, and the flows that did not finish."""
    first = next(iter(studies.values()))
    widths = [
        f"{scheme}{f' ({traffic})' * (len(studies) > 1)} ±{half_width(by_seed(study, scheme, 'p95')):.1%}"
        for traffic, study in studies.items()
        for scheme in study.schemes
    ]
    return [
        f"{len(first.topology.hosts)} hosts, {len(first.seeds)} seeds of arrivals, sizes and paths (ours, not the "
        f"paper's), {values['flows']:,.0f} flows of each scheme; p95 of all slowdowns is known (95 %) to "
        + ", ".join(widths),
        *(lacking(studies) or ["all flows finished"]),
    ]


def level(values: np.ndarray) -> Compared:
    """A slowdown of one scheme: its geometric mean over seeds, which no interval has below 0."""
    return ratio(values, np.ones(len(values)))


def between(found: Compared, low: float, high: float) -> bool | None:
    """Check whether a number is in a range: True if its whole interval is, False if none of it is, else None."""
    if found.low >= low and found.high <= high:
        return True
    return False if found.high < low or found.low > high else None


def on_one_base(study: FabricStudy, scheme: str) -> FabricStudy:
    """The same runs, with all schemes' slowdowns over the time alone that flows would have with this one.

    A scheme's own time alone has its telemetry in it, which would then count for nothing.
    """
    bases = {run.seed: run.slowdown["alone"].values for run in study.of(scheme)}
    runs = []
    for run in study.runs:
        data = run.slowdown.dataset
        base = bases[run.seed]
        slowdown = data["completion"].values / base
        moved = data.assign(
            alone=("flow", base, data["alone"].attrs), slowdown=("flow", slowdown, data["slowdown"].attrs)
        )
        runs.append(dataclasses.replace(run, slowdown=Slowdown(moved)))
    return dataclasses.replace(study, runs=tuple(runs))
