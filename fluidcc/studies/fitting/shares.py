"""Shares of packets that counters show over seconds, and the same shares in runs of packets.

A run of some milliseconds has chance that counters over seconds lack, and its own load. So a point of a design has
several runs, whose counts are added, and its load is brought to the one that was counted.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from fluidcc.builders.workloads import check_workload, star
from fluidcc.engines.packet.build import prepare
from fluidcc.engines.packet.layout import DATA, MARKED, NOTIFIED, RECEIVED, TRANSMITTED
from fluidcc.engines.packet.run import execute, outcome_of, times_of, warm_up
from fluidcc.errors import InputError
from fluidcc.scenario.model import Scenario, resolve
from fluidcc.surface import constructor
from fluidcc.units import Rate

OF_SENT, OF_MARKED = "marked per sent packet", "CNPs per marked packet"
TOGETHER = 2  # runs of a point, of which one number of each share is made
ERROR = 0.02  # of each share, by which the model may miss although the traffic is as told
_SENT = 1.6e9  # bytes that all links that are counted could send in a run: 16 ms of eight at 100 Gb/s
_SHORTEST = 8e-3  # s: DCQCN recovers within
SKIPPED = 0.25  # of a run: it starts empty
_LEAST_MARKED = 30  # packets, or CNPs, of which something is said
_LEAST_LOAD, _MOST_LOAD, _FULL = 0.1, 0.95, 0.9
_LOG = 1 << 18  # lines to begin with


def _check(shares: Shares) -> None:
    if not shares.counts:
        raise InputError("counters: have neither marks (show queue wredcounters) nor CNPs (rdma statistic); give one")
    for name, (part, whole) in shares.counts.items():
        if part < _LEAST_MARKED:
            raise InputError(f"counters: {name}, {part:,.0f} of {whole:,.0f} are too few to tell by; count for longer")
    sent = "" if shares.load is None else f"counters: the ports sent {shares.load:.0%} of their rate"
    if shares.workload is None:
        if shares.load is not None and shares.load < _FULL:
            raise InputError(f"{sent}, which flows without end fill; say what hosts send, as in --workload web-search")
        return
    check_workload(shares.workload)
    if shares.load is None:
        raise InputError("workload: counters do not tell its load; give --interval, the time between both readings")
    if not _LEAST_LOAD <= shares.load <= _MOST_LOAD:
        raise InputError(f"{sent}, {_LEAST_LOAD:.0%} to {_MOST_LOAD:.0%} are modelled; count at another time")


@constructor(_check)
@dataclasses.dataclass(frozen=True)
class Shares:
    """Packets that ports set alike and their hosts' NICs counted, and the traffic at that time.

    Parameters
    ----------
    sent, marked : float or None
        Packets that the ports' queues sent, and those of them that were marked; None: not counted.
    marked_received, cnps : float or None
        Marked packets that NICs received, and CNPs that they sent for them.
    load : float or None
        Share of the ports' rate that was sent; needed with a workload [1].
    workload : {"web-search", "hadoop", "alibaba-storage"} or None
        Sizes of the flows between random hosts; None: the scenario's own flows, without end.
    hosts : int
        Hosts of the model, with a workload.

    Raises
    ------
    InputError
        If no share was counted, or by too few packets, or the load is unknown or does not go with the traffic.
    """

    sent: float | None = None
    marked: float | None = None
    marked_received: float | None = None
    cnps: float | None = None
    load: float | None = None
    workload: str | None = None
    hosts: int = 8

    @property
    def counts(self) -> dict[str, tuple[float, float]]:
        """Part and whole of each share of which both were counted."""
        pairs = {OF_SENT: (self.marked, self.sent), OF_MARKED: (self.cnps, self.marked_received)}
        return {name: (part, whole) for name, (part, whole) in pairs.items() if part is not None and whole is not None}

    @property
    def values(self) -> dict[str, float]:
        """Each share."""
        return {name: part / whole for name, (part, whole) in self.counts.items()}


def duration(scenario: Scenario, like: Shares) -> float:
    """Return the length of a run [s]."""
    links = _last_links(scenario)
    ports = len(links) if like.workload is None else like.hosts
    return max(_SENT / ports / float(scenario.links[links[0]].rate), _SHORTEST)


def run(scenario: Scenario, like: Shares, until: float, seed: int) -> np.ndarray:
    """Count in a run of packets as counters do, after its start: part and whole of each share, and last the load."""
    made = resolve(_with_traffic(scenario, like, until, seed))
    times = times_of(made, until, (SKIPPED * until, until), until)
    plan = prepare(made, times, _LOG)
    warm_up(plan)
    sim, _ = execute(plan, seed)
    log = sim.log[: int(sim.core[0].logged)]
    log = log[np.searchsorted(log["time"], times.opens, "right") :]
    what, data, links = log["what"], log["kind"] == DATA, _last_links(made)
    here = data & np.isin(log["port"], links)
    marked_received = data & (what == RECEIVED) & (log["value"] > 0)
    chosen = {
        OF_SENT: (here & (what == MARKED), here & (what == TRANSMITTED)),
        OF_MARKED: (what == NOTIFIED, marked_received),
    }
    counts = [np.count_nonzero(each) for name in like.counts for each in chosen[name]]
    able = float(made.links[links[0]].rate) * (len(links) if like.workload is None else like.hosts)
    return np.array([*counts, outcome_of(plan, sim).rates.sum() / able])


def numbers(runs: np.ndarray) -> np.ndarray:
    """Return logarithms of each share in several runs together, and last that of their load.

    The logarithm of a mean of few runs is too small on average by half its relative variance: the jackknife takes that
    away (Quenouille, Biometrika 43, 1956).
    """
    counts, count = runs[:, :-1].reshape(len(runs), -1, 2) + 0.5 / len(runs), len(runs)
    total = counts.sum(axis=0)
    whole, without = (np.log(each[..., 0] / each[..., 1]) for each in (total, total - counts))
    return np.append(count * whole - (count - 1) * without.mean(axis=0), np.log(runs[:, -1].mean()))


def _last_links(scenario: Scenario) -> list[int]:
    """Return the links that lead to hosts: the last of each path."""
    return sorted({flow.path[-1] for flow in scenario.flows})


def _with_traffic(scenario: Scenario, like: Shares, until: float, seed: int) -> Scenario:
    """Return the scenario with hosts at one switch that send to each other, where a workload is given."""
    if like.workload is None:
        return scenario
    link = scenario.links[_last_links(scenario)[0]]
    made = star(
        like.hosts, load=like.load, until=until, sizes=like.workload, seed=seed,
        rate=Rate(float(link.rate)), delay=link.delay, scheme=scenario.flows[0].scheme, marking=link.marking,
    )  # fmt: skip
    return dataclasses.replace(scenario, links=made.links, flows=made.flows)
