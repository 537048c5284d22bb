"""Slowdown of flows: their completion times over those in an idle network."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from fluidcc.errors import InputError
from fluidcc.results.result import DatasetResult
from fluidcc.results.trace import Trace
from fluidcc.scenario.model import Scenario, base_rtt, resolve
from fluidcc.scenario.round_trips import likeness, payload_base_rtt, propagation, slowest_rate, train
from fluidcc.surface import constructor, public
from fluidcc.units import SIZE, quantity, whole

PERCENTILES = {"p50": 50.0, "p95": 95.0, "p99": 99.0, "p999": 99.9}
_RULES = ("alone", "hpcc-sim")


@public()
def alone(scenario: Scenario) -> np.ndarray:
    """Return each flow's time from start to last ACK, if nothing else were sent and nothing held it back.

    Packets are stored and forwarded: the train of full ones is as long as the slowest link makes it, and the last,
    shorter one goes behind it from hop to hop.

    Parameters
    ----------
    scenario : Scenario

    Returns
    -------
    ndarray, shape (flows,)
        [s]; infinite for long-lived flows.
    """
    return ends_alone(scenario)[2]


def ends_alone(scenario: Scenario) -> np.ndarray:
    """Return when each flow's last byte, alone, is on its first link, at the receiver, and ACKed (3, flows) [s]."""
    scenario = resolve(scenario)
    sizes = np.array([flow.size for flow in scenario.flows], float)
    return ends_of(scenario, np.where(np.isfinite(sizes), np.arange(len(sizes)), -1), sizes)


def ends_of(scenario: Scenario, flow_of: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return `ends_alone` of transfers of these sizes [bytes] on a resolved scenario's flows; inf where it is -1."""
    numbers: dict[Any, int] = {}
    key = likeness(scenario)
    kind = np.array([numbers.setdefault(key(flow), len(numbers)) for flow in scenario.flows], np.int32)
    kinds = np.where(flow_of >= 0, kind[flow_of], -1)
    found = np.full((3, len(sizes)), np.inf)
    for k, first in enumerate(np.unique(kind, return_index=True)[1].tolist()):
        members = np.flatnonzero(kinds == k)
        flow, those = scenario.flows[first], sizes[members]
        received, answered = train(scenario, flow, those)
        header = float(scenario.wire_packet_of(flow)) - float(scenario.packet_size)
        sent = (those + np.ceil(those / float(scenario.packet_size)) * header) / float(flow.line_rate)
        found[:, members] = sent, received, answered + (propagation(scenario, flow) - base_rtt(scenario, flow))
    return found


def _by_simulator(scenario: Scenario) -> np.ndarray:
    """Return times alone as HPCC's simulator does: a payload's round trip, and all bytes without INT at the slowest."""
    scenario = resolve(scenario)
    packets = [np.ceil(flow.size / scenario.packet_size) for flow in scenario.flows]
    return np.array(
        [
            payload_base_rtt(scenario, flow)
            + (flow.size + count * scenario.header_bytes) / slowest_rate(scenario, flow)
            for flow, count in zip(scenario.flows, packets, strict=True)
        ],
        float,
    )


@constructor()
@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Slowdown(DatasetResult):
    """Completion times of flows, over those of an idle network.

    Parameters
    ----------
    dataset : xarray.Dataset

    Notes
    -----
    Variables over ``flow``: ``size`` [bytes], ``start`` [s], ``completion`` and ``alone`` [s], ``slowdown`` [1].
    Of flows that did not finish, completion and slowdown are NaN, and no mean or percentile has them; of those that
    waited for others in vain, the start too. Of runs of `fluidcc.fabric` there is ``goodput`` [bytes/s] beside:
    acknowledged payload over the window, whether a flow finished or not.
    """

    @property
    def unfinished(self) -> int:
        """Number of flows that did not finish."""
        return int(np.isnan(self.dataset["slowdown"].values).sum())

    def __repr__(self) -> str:
        """Mean and 99th percentile, and what is left out of them."""
        numbers = self.statistics()
        lacking = f", {self.unfinished} unfinished" if self.unfinished else ""
        told = f"mean {numbers['mean']:.3f}, p99 {numbers['p99']:.3f}" if numbers["flows"] else "none finished"
        return f"<Slowdown of {numbers['flows']:,} flows: {told}{lacking}>"

    @public()
    def statistics(self) -> dict[str, float]:
        """Mean and percentiles of all finished flows.

        Returns
        -------
        dict
            ``flows`` (finished), ``unfinished``, ``mean``, ``p50``, ``p95``, ``p99`` and ``p999``; NaN without flows.
        """
        return _statistics(self.dataset["slowdown"].values)

    @public()
    def bins(self, edges: Any = 10) -> xr.Dataset:
        """Summarise the slowdowns by flow size.

        Parameters
        ----------
        edges : int or sequence of quantity
            So many bins with as many flows each, where sizes allow it; or their ends [bytes], of which all but the
            first belong to the bin below.

        Returns
        -------
        xarray.Dataset
            Over ``bin``: ``from_bytes``, ``to_bytes``, and what `statistics` has.

        Raises
        ------
        InputError
            If the ends do not grow, or there are none.
        """
        sizes, values = self.dataset["size"].values, self.dataset["slowdown"].values
        ends = bin_ends(sizes, edges)
        rows = []
        for k, (low, high) in enumerate(itertools.pairwise(ends.tolist())):
            inside = (sizes > low if k else sizes >= low) & (sizes <= high)
            rows.append({"from_bytes": low, "to_bytes": high, **_statistics(values[inside])})
        return xr.Dataset({name: ("bin", [row[name] for row in rows]) for name in rows[0]})


def bin_ends(sizes: np.ndarray, edges: Any) -> np.ndarray:
    """Return the ends of bins [bytes]: as given, or of n bins with as many flows each.

    Raises
    ------
    InputError
        If they do not grow, or there are none.
    """
    if isinstance(edges, int) or getattr(edges, "ndim", None) == 0:
        count = whole(edges, 1, 1e6, "edges")
        ends = np.unique(np.quantile(sizes, np.linspace(0, 1, count + 1), method="inverted_cdf"))
        return ends if len(ends) > 1 else np.array([0.0, ends[0]])
    listed = list(edges) if isinstance(edges, (Sequence, np.ndarray)) and not isinstance(edges, str) else []
    ends = np.array([quantity(each, SIZE, "edges") for each in listed], float)
    if len(ends) < 2 or not (np.diff(ends) > 0).all():
        raise InputError("edges: expected a number of bins or two or more sizes that grow; write ['0B', '10KB', '1MB']")
    return ends


def _statistics(values: np.ndarray) -> dict[str, float]:
    finished = values[~np.isnan(values)]
    found: dict[str, float] = {"flows": len(finished), "unfinished": len(values) - len(finished)}
    if not len(finished):
        return found | dict.fromkeys(["mean", *PERCENTILES], float("nan"))
    percentiles = np.percentile(finished, list(PERCENTILES.values()))
    return found | {"mean": float(finished.mean())} | dict(zip(PERCENTILES, percentiles.tolist(), strict=True))


@public()
def slowdown(scenario: Scenario, trace: Trace, *, ideal: str = "alone") -> Slowdown:
    """Compute how much longer each flow of a run took than alone.

    Parameters
    ----------
    scenario : Scenario
        With flows of finite size.
    trace : Trace
        Its run.
    ideal : {"alone", "hpcc-sim"}
        Reference: the exact time in an idle network (`alone`), or the formula of the HPCC authors' simulator, which
        flows may undercut.

    Returns
    -------
    Slowdown
        Of the flows of finite size, in their order.

    Raises
    ------
    InputError
        If no flow is finite, the trace is of another scenario, or there is no such rule.
    """
    return slowdown_of(scenario, trace.summary["fct_s"], ideal, trace.summary.get("began_s"))


def slowdown_of(
    scenario: Scenario, took: Sequence[float | None], ideal: str, began: Sequence[float | None] | None = None
) -> Slowdown:
    """Compute the slowdown from a summary's times: None for flows that did not finish, or begin.

    Raises
    ------
    InputError
        As `slowdown`.
    """
    if ideal not in _RULES:
        raise InputError(f"ideal: {str(ideal)[:20]!r} is unknown; write {' or '.join(_RULES)}")
    scenario = resolve(scenario)
    finite = [i for i, flow in enumerate(scenario.flows) if np.isfinite(flow.size)]
    if not finite or len(took) != len(finite):
        raise InputError(
            f"slowdown: the scenario has {len(finite)} flows of finite size, and the trace {len(took)}; "
            "give flows a size, and the trace of this scenario"
        )
    completion = np.array(took, float)  # None is NaN
    least = (alone(scenario) if ideal == "alone" else _by_simulator(scenario))[finite]
    flows = [scenario.flows[i] for i in finite]
    starts = [flow.start for flow in flows] if began is None else [began[i] for i in finite]
    columns = {
        "size": ([flow.size for flow in flows], "bytes", "size"),
        "start": (starts, "s", "start"),
        "completion": (completion, "s", "completion time"),
        "alone": (least, "s", "completion time in an idle network"),
        "slowdown": (completion / least, "1", "slowdown"),
    }
    variables = {
        name: ("flow", np.array(values, float), {"units": units, "long_name": text})
        for name, (values, units, text) in columns.items()
    }
    names = [flow.name or f"flow {i}" for i, flow in zip(finite, flows, strict=True)]
    return Slowdown(xr.Dataset(variables, coords={"flow": names}, attrs={"ideal": ideal}))
