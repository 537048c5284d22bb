"""Parts that the figures of "Fast Convergence to Fairness" share: variants, staggered incasts, and their metrics.

Section III-D: hosts on one switch by links of 100 Gbps and 1 us; two flows of 1 MB start every 20 us.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from scipy.stats import spearmanr

from fluidcc.builders import incast
from fluidcc.plotting.style import figure as new_figure
from fluidcc.plotting.style import label
from fluidcc.proofs.shared import sample
from fluidcc.proofs.shared.runs import GBPS, WIDTH, packet_runs, variable
from fluidcc.results.trace import Trace
from fluidcc.scenario.model import Scenario
from fluidcc.schemes import hpcc, swift
from fluidcc.theory.fairness.over_time import finish_times, jain_over_time, time_to_fairness

LINE = 100 * GBPS
LEVEL = 0.95  # of Jain's index, from which on flows count as fair
ROUGHLY = 0.8  # of Jain's index: for what is soon nearly fair and late quite fair
SETTLING = 200e-6  # s: after the last start; ten times the stagger
UNTIL = {16: 2e-3, 96: 9.8e-3}  # s: all flows have ended
SAMPLED = {16: 1e-6, 96: 5e-6}  # s
SEEDS = 5  # of runs with probabilistic feedback; the others draw nothing at random
NAMES = {"hpcc": "HPCC", "swift": "Swift"}
PRESETS = {"hpcc": hpcc.PRESETS, "swift": swift.PRESETS}


class Variant(NamedTuple):
    """A preset with changes, its name in a picture and its colour."""

    name: str
    colour: str
    preset: str = "fairness"
    changes: tuple[tuple[str, Any], ...] = ()


VARIANTS = {
    "default": Variant("default", "C0"),
    "gbps": Variant("1 Gbps", "C1", changes=(("rate_ai", "1Gbps"),)),
    "probabilistic": Variant("probabilistic", "C2", changes=(("probabilistic", True),)),
    "probabilistic_period": Variant(
        "probabilistic, an ignored update costs its round trip",
        "C6",
        changes=(("probabilistic", True), ("ignored_costs", "period")),
    ),
    "vai_sf": Variant("VAI SF", "C4", "vai-sf"),
    "vai_sf_scaled": Variant("VAI SF with flow scaling", "C9", "vai-sf", (("flow_scaling", True), ("fs_max", 50.0))),
    "sf": Variant("SF alone", "C5", "vai-sf", (("vai", False),)),
    "vai": Variant("VAI alone", "C3", "vai-sf", (("sampling", None),)),
    "s5": Variant("VAI SF, s = 5", "C7", "vai-sf", (("sampling", 5),)),
}

NOTES = (
    "packets of 1000 B; default: increases of 50 Mbps; HPCC as its authors' simulator, eta 0.95, maxStage 5; Swift: "
    "beta 0.8, max_mdf 0.5, target 5 us and 2 us a hop, flow scaling up to 50 packets, line-rate starts; VAI SF: 30 "
    "ACKs, 100 of up to 1000 tokens, dampener constant 8, Swift without flow scaling (section VI-A)",
)
FAIR_NOTE = (
    f"fair after: from the last start until Jain's index of the windows stays at {LEVEL:g}, up to the first flow's "
    "end; where it does not get there, this end is given, a lower bound"
)
STEADY_NOTE = (
    "queues: from 200 us after the last start to the first flow's end; late: the second half of the time from the last "
    "start to there"
)


def scheme_of(scheme: str, key: str, **changes: Any) -> Any:
    """Parameters of a scheme in a variant, with further changes."""
    of = VARIANTS[key]
    return dataclasses.replace(PRESETS[scheme][of.preset].scheme, **{**dict(of.changes), **changes})


def staggered(scheme: str, key: str, flows: int, size: Any = "1MB", stagger: Any = "20us", **changes: Any) -> Scenario:
    """Two flows every 20 us to one receiver, in a variant of a scheme with further changes."""
    network = PRESETS[scheme][VARIANTS[key].preset].network
    made = scheme_of(scheme, key, **changes)
    options = {"scheme": made, "size": size, "stagger": stagger, "stagger_group": 2, **network}
    return incast(flows, rate="100Gbps", delay="1us", **options)


@dataclasses.dataclass(frozen=True)
class Run:
    """A trace of a staggered incast, and what is read of it."""

    trace: Trace
    starts: np.ndarray  # s

    @functools.cached_property
    def finish(self) -> np.ndarray:
        """Time at which each flow ends [s]."""
        return finish_times(self.trace)

    @property
    def first_end(self) -> float:
        """Time at which the first flow ends, or the trace if no flow does [s]."""
        return float(min(self.finish.min(), self.trace["time"].values[-1]))

    @functools.cached_property
    def jain(self) -> xr.DataArray:
        """Jain's index over time."""
        return jain_over_time(self.trace)

    @property
    def reached(self) -> bool:
        """True if the run becomes fair while all flows run."""
        return math.isfinite(time_to_fairness(self.trace, LEVEL))

    def fair_after(self, level: float = LEVEL) -> float:
        """The time to fairness, or the lower bound that the first flow's end is [s]."""
        found = time_to_fairness(self.trace, level)
        return found if math.isfinite(found) else self.first_end - float(self.starts.max())

    @property
    def spread(self) -> float:
        """Time between the first and the last finish [s]."""
        return float(np.ptp(self.finish))

    @property
    def rank_correlation(self) -> float:
        """Rank correlation of starts and finishes: -1 if the flow that starts last finishes first."""
        return rank_correlation(self.starts, self.finish)

    def queue(self, late: bool = False) -> np.ndarray:
        """Samples of the queue [bytes] from `SETTLING` after the last start, or half way, to the first flow's end."""
        time, last = self.trace["time"].values, float(self.starts.max())
        since = (last + self.first_end) / 2 if late else last + SETTLING
        return self.trace["queue"].values[(time >= since) & (time <= self.first_end), 0]


def rank_correlation(a: np.ndarray, b: np.ndarray) -> float:
    """Spearman's; 0 if either is constant."""
    found: Any = spearmanr(a, b) if np.ptp(a) and np.ptp(b) else None
    return float(found.statistic) if found else 0.0


def run(scenarios: list[Scenario], until: float, sampled: float, **options: Any) -> list[Run]:
    """Run packets, the k-th scenario with seed k."""
    traces = packet_runs(scenarios, until, sample_interval=sampled, **options)
    starts = [np.array([flow.start for flow in scenario.flows], dtype=float) for scenario in scenarios]
    return [Run(*pair) for pair in zip(traces, starts, strict=True)]


def run_variants(scheme: str, keys: tuple[str, ...], flows: int, seeds: int = SEEDS) -> dict[str, list[Run]]:
    """Variants of a scheme in the paper's incast, those that draw at random with several seeds."""
    random = {key: seeds if dict(VARIANTS[key].changes).get("probabilistic") else 1 for key in keys}
    lists = {key: [staggered(scheme, key, flows)] * random[key] for key in keys}
    found = iter(run([scenario for several in lists.values() for scenario in several], UNTIL[flows], SAMPLED[flows]))
    return {key: [next(found) for _ in several] for key, several in lists.items()}


def numbers(runs: list[Run]) -> dict[str, float | bool]:
    """Medians over the seeds of what `Run` reads."""

    def median(read: Any) -> float:
        return float(np.median([read(each) for each in runs]))

    return {
        "fair_after_s": median(lambda each: each.fair_after()),
        "roughly_fair_after_s": median(lambda each: each.fair_after(ROUGHLY)),
        "fair_before_first_end": bool(median(lambda each: each.reached) > 0.5),
        "first_end_s": median(lambda each: each.first_end),
        "queue_mean_bytes": median(lambda each: each.queue().mean()),
        "queue_std_bytes": median(lambda each: each.queue().std()),
        "queue_late_mean_bytes": median(lambda each: each.queue(late=True).mean()),
        "queue_late_std_bytes": median(lambda each: each.queue(late=True).std()),
        "queue_max_bytes": median(lambda each: each.trace["queue"].values.max()),
    }


def named(prefix: str, values: dict[str, float | bool]) -> dict[str, float | bool]:
    """Values with a prefix to their names."""
    return {f"{prefix}_{name}": value for name, value in values.items()}


def sample_of(until: float, found: dict[str, list[Run]]) -> str:
    """Describe what was drawn in runs by variant, each until a time [s], and how far the drawn ones differ."""
    several = {key: runs for key, runs in found.items() if len(runs) > 1}
    ones = len(found) - len(several)
    words = [sample.packets(until, ones)] if ones else []
    for key, runs in several.items():
        words += [
            sample.packets(until, len(runs), seeds=range(1, len(runs) + 1), drawn=f"feedback ({VARIANTS[key].name})"),
            sample.median("fair after", [each.fair_after() for each in runs], "us", 1e-6),
        ]
    return "; ".join(words)


def seeds_note(seeds: int) -> str:
    """Describe how many seeds probabilistic variants ran with."""
    return f"probabilistic: medians of {seeds} seed{'s' * (seeds > 1)}, the first is drawn"


def jain_and_queue(columns: dict[str, dict[str, Run]], title: str, until: dict[str, float]) -> Any:
    """Jain's index above, the queue below; one column per title, one line per variant, up to some time [s]."""
    picture, axes = new_figure(2, len(columns), size=(WIDTH, 7.0), sharex="col")
    for k, (column, runs) in enumerate(columns.items()):
        (top, bottom), letters = axes[:, k], "ab" if k == 0 else "cd"
        for key, each in runs.items():
            drawn = {"color": VARIANTS[key].colour, "lw": 1.1, "zorder": 3 if key.startswith("vai") else 2}
            time = each.jain["time"].values
            together = time <= each.first_end  # afterwards it is of ever fewer flows
            top.plot(time[together] * 1e6, each.jain.values[together], label=VARIANTS[key].name, **drawn)
            top.plot(time[together][-1] * 1e6, each.jain.values[together][-1], "o", ms=5, color=VARIANTS[key].colour)
            bottom.plot(time * 1e6, each.trace["queue"].values[:, 0] / 1e3, **drawn)
        last = max(float(each.starts.max()) for each in runs.values())
        for axis in (top, bottom):
            axis.axvline(last * 1e6, color="black", lw=0.8, ls="--")
            axis.grid(alpha=0.3)
        top.axhline(LEVEL, color="0.4", lw=0.8, ls=":")
        top.set(title=f"({letters[0]}) {column}: Jain's index", ylim=(0, 1.03), xlim=(0, until[column] * 1e6))
        bottom.set(title=f"({letters[1]}) {column}: queue", xlabel=label("time", "us"), ylim=0)
    axes[0, 0].set_ylabel("Jain's index of the windows")
    axes[1, 0].set_ylabel(label("queue", "KB"))
    handles: dict[str, Any] = {}
    for axis in axes[0]:
        handles |= dict(zip(*reversed(axis.get_legend_handles_labels()), strict=True))
    picture.legend(handles.values(), handles, loc="outside lower center", ncols=5, fontsize="small")
    picture.suptitle(f"{title} (dashed: the last start; dot: the first flow's end)")
    return picture


def series(columns: dict[str, dict[str, Run]], dimension: str) -> xr.Dataset:
    """Jain's index and the queue of columns of equal times."""
    runs = [list(column.values()) for column in columns.values()]
    jain = np.array([[each.jain.values for each in column] for column in runs])
    queue = np.array([[each.trace["queue"].values[:, 0] for each in column] for column in runs])
    dims = (dimension, "variant", "time")
    return xr.Dataset(
        {
            "jain": variable(dims, jain, "1", "Jain's index of the windows of the flows that run"),
            "queue": variable(dims, queue, "bytes", "queue"),
        },
        {
            "time": variable("time", runs[0][0].trace["time"].values, "s", "time"),
            dimension: list(columns),
            "variant": list(next(iter(columns.values()))),
        },
    )
