"""Results of a stochastic run, whichever engine ran: exact moments of its queues, and the bytes of its flows.

Both engines count the time that a queue spends in bins. Runs with several seeds are pooled by adding up these times, so
that a percentile is one of all of them.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fluidcc.results.metrics import PERCENTILES, binned_percentiles, jain, most_loaded, rate_gap

Array = np.ndarray[Any, Any]
_NAMES = [f"p{percent}" for percent in PERCENTILES]


@dataclasses.dataclass(frozen=True)
class QueueMoments:
    """Exact moments of one link's queue over the window.

    Parameters
    ----------
    span : float
        Length of the window [s]; of all together, if runs are pooled.
    area, area2 : float
        Integrals of the queue and of its square [bytes s, bytes^2 s].
    least, most, most_whole_run : float
        [bytes]
    utilisation : float
    spent, area_in : ndarray, shape (bins,)
        Time in each bin [s], and the integral of the queue over it.
    """

    span: float
    area: float
    area2: float
    least: float
    most: float
    most_whole_run: float
    utilisation: float
    spent: Array
    area_in: Array

    def statistics(self) -> dict[str, Any]:
        """``queue_bytes``, as `fluidcc.results.schema.QUEUE_STATISTICS` has it, and ``utilisation``."""
        mean = float(self.area / self.span)
        return {
            "queue_bytes": {
                "mean": mean,
                "std": math.sqrt(max(self.area2 / self.span - mean * mean, 0.0)),
                **dict(zip(_NAMES, binned_percentiles(self.spent, self.area_in, PERCENTILES), strict=True)),
                "min": float(self.least),
                "max": float(self.most),
                "max_whole_run": float(self.most_whole_run),
            },
            "utilisation": float(self.utilisation),
        }


def pooled(runs: Sequence[QueueMoments]) -> QueueMoments:
    """Pool the moments of the same link over several runs."""
    return QueueMoments(
        sum(each.span for each in runs),
        sum(each.area for each in runs),
        sum(each.area2 for each in runs),
        min(each.least for each in runs),
        max(each.most for each in runs),
        max(each.most_whole_run for each in runs),
        sum(each.utilisation * each.span for each in runs) / sum(each.span for each in runs),
        *_bins(runs),
    )


def _bins(runs: Sequence[QueueMoments]) -> tuple[Array, Array]:
    """Pool the bins of several runs; engines have bins of their own, and those of several are put in order."""
    if len({len(each.spent) for each in runs}) == 1:
        return np.sum([each.spent for each in runs], axis=0), np.sum([each.area_in for each in runs], axis=0)
    spent, area = (np.concatenate(each) for each in ([run.spent for run in runs], [run.area_in for run in runs]))
    there = spent > 0
    spent, area = spent[there], area[there]
    order = np.argsort(area / spent)
    return spent[order], area[order]


@dataclasses.dataclass(frozen=True)
class Outcome:
    """Results of one run.

    Parameters
    ----------
    links : list of QueueMoments
    members : sequence of int
        Flow class of each flow.
    rates, goodput : ndarray, shape (flows,)
        Mean sending rate, and of acknowledged payload, over the window [bytes/s].
    cnps : int
        Sent in the whole run.
    by_packets : bool
        Whether the packet engine ran it.
    """

    links: list[QueueMoments]
    members: Sequence[int]
    rates: Array
    goodput: Array
    cnps: int
    by_packets: bool = False

    def by_class(self, values: Array) -> Array:
        """Mean over the flows of each class; the flows' axis is the last."""
        _, starts, counts = np.unique(self.members, return_index=True, return_counts=True)
        return np.add.reduceat(values, starts, axis=-1) / counts

    def of_flows(self) -> dict[str, Any]:
        """Entries of a summary that follow from the flows' rates, by the names of `fluidcc.results.schema.SUMMARY`."""
        rates = self.by_class(self.rates)
        return {
            "rate_bytes_per_s": rates,
            "goodput_bytes_per_s": self.by_class(self.goodput),
            "jain": jain(self.rates),
            "rate_gap_bytes_per_s": rate_gap(rates),
        }


def metrics_of(runs: Sequence[Outcome]) -> tuple[dict[str, float], dict[str, Array], Array]:
    """Metrics of several runs of one scenario, by the names of `fluidcc.results.schema.METRICS`.

    Returns
    -------
    together : dict of float
        Queues of the link with the largest mean, all runs pooled; the rest means over the runs.
    each : dict of ndarray, shape (runs,)
        The same of every run, of that link.
    rates : ndarray, shape (classes,)
        Mean sending rates [bytes/s].
    """
    links = [pooled(link) for link in zip(*(run.links for run in runs), strict=True)]
    at = int(most_loaded([link.area / link.span for link in links]))

    def flat(link: QueueMoments) -> dict[str, float]:
        found = link.statistics()
        return {f"queue_bytes.{k}": v for k, v in found["queue_bytes"].items()} | {"utilisation": found["utilisation"]}

    queues = [flat(run.links[at]) for run in runs]
    each = {name: np.array([row[name] for row in queues]) for name in queues[0]}
    rates = np.stack([run.rates for run in runs])
    by_class = runs[0].by_class(rates)
    each["jain"] = jain(rates)
    each["rate_gap_bytes_per_s"] = rate_gap(by_class)
    each["goodput_bytes_per_s"] = np.stack([run.goodput for run in runs]).sum(axis=-1)
    together = {name: float(values.mean()) for name, values in each.items()} | flat(links[at])
    return together, each, by_class.mean(axis=0)
