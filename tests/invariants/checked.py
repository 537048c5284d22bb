"""Numbers of a run by the names of its links and flows, in units of the case that it is compared with."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import fluidcc as fc
from tests.invariants.drawn import Case

ROUNDING = 1e-9  # sums of a few thousand numbers, relative
_QUEUE = ("mean", "std", "min", "max", "max_whole_run")  # percentiles come from bins of 128 B
_COUNTS = ("drops", "packets", "acks", "pfc_pauses", "retransmissions", "trims")


def run(case: Case, engine: str, *, seed: int | None = None) -> dict[str, Any]:
    """Summary of a case, whose window is all of the run."""
    options = {"window": (0.0, case.until), "sample_interval": case.until / 4, "engine": engine}
    return fc.simulate(case.scenario, case.until, seed=case.seed if seed is None else seed, **options).summary


def numbers(case: Case, summary: Mapping[str, Any], *, time: float = 1.0, size: float = 1.0) -> dict[str, Any]:
    """Queues, rates, completion times and counts of a summary, in units ``time`` and ``size`` times as large."""
    found: dict[str, Any] = {name: summary[name] for name in _COUNTS if name in summary}
    for link in summary["links"]:
        found |= {f"{link['name']} queue {name}": link["queue_bytes"][name] / size for name in _QUEUE}
        found[f"{link['name']} utilisation"] = link["utilisation"]
    flows = case.scenario.flows
    for key in ("rate_bytes_per_s", "goodput_bytes_per_s"):
        found |= {f"{flow.name} {key}": rate * time / size for flow, rate in zip(flows, summary[key], strict=True)}
    finite = [flow.name for flow in flows if math.isfinite(flow.size)]
    took = zip(finite, summary["fct_s"], strict=True)
    return found | {f"{name} fct": None if each is None else each / time for name, each in took}


def differing(one: Mapping[str, Any], other: Mapping[str, Any], share: float = ROUNDING) -> dict[str, tuple[Any, Any]]:
    """Return what differs by more than a share of the larger."""

    def same(x: Any, y: Any) -> bool:
        return x == y if x is None or y is None else abs(x - y) <= share * max(abs(x), abs(y))

    assert one.keys() == other.keys()
    return {name: (one[name], other[name]) for name in one if not same(one[name], other[name])}


def overfull(case: Case, summary: Mapping[str, Any]) -> list[str]:
    """Links whose flows' goodput adds up to more than they can carry, or that were used for more than all the time."""
    pairs = list(zip(case.scenario.flows, summary["goodput_bytes_per_s"], strict=True))
    found = []
    for i, (link, given) in enumerate(zip(summary["links"], case.scenario.links, strict=True)):
        goodput = sum(flow.multiplicity * rate for flow, rate in pairs if i in flow.path)
        if max(goodput / given.rate, link["utilisation"]) > 1 + ROUNDING:
            found.append(f"{case.name} {link['name']}: {goodput / given.rate:.4g}")
    return found


def negative(found: Mapping[str, Any]) -> list[str]:
    """Return names of numbers below zero."""
    return [name for name, value in found.items() if value is not None and value < 0]
