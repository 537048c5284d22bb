"""Random scenarios, and the same ones in other units or another order: what all engines are held to.

Rates, delays and starts are such that a byte takes a whole number of picoseconds on every link: the packet engine's
clock then divides them all, before and after a change of units by a power of two.
"""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Sequence
from typing import Any

import fluidcc as fc
from fluidcc.scenario.model import Scenario, resolve
from fluidcc.scenario.parameters import specs
from fluidcc.schemes.nscc.parameters import NSCC
from fluidcc.units import RATE, SIZE, TIME

SCHEMES = ("dcqcn", "hpcc", "swift", "dctcp", "timely", "nscc", "acc", "none")
RECOVERY = ("none", "none", "gbn", "irn", "trimming")
_GBPS = (10, 25, 40, 100)
_NS = 1e-9


@dataclasses.dataclass(frozen=True)
class Case:
    """A scenario, how long it runs [s], and the seed of its random numbers."""

    scenario: Scenario
    until: float
    seed: int

    @property
    def scheme(self) -> str:
        """Name of what its flows run."""
        return self.scenario.flows[0].scheme.name

    @property
    def name(self) -> str:
        """Name of a case in messages."""
        built = self.scenario
        return f"{self.scheme}-{len(built.links)}x{len(built.flows)}-{built.loss_recovery}-{self.seed}"


def drawn(number: int, schemes: Sequence[str] = SCHEMES, *, lossy: bool = True) -> Case:
    """Draw a scenario by its number: an incast or a parking lot of one scheme.

    Parameters
    ----------
    number : int
    schemes : sequence of str
        The schemes, in turn.
    lossy : bool
        Whether buffers may be small, links may lose packets, and hosts may recover them.

    Notes
    -----
    Flows start apart, by whole nanoseconds, on access links that differ: packets that arrive in the same picosecond go
    in the order of their flows, which then depends on how these are listed.
    """
    draw = random.Random(number)
    flows, gbps = draw.randint(2, 5), draw.choice(_GBPS)
    packet = draw.choice((500, 1000, 2048, 4096))
    delay = _NS * draw.randint(200, 3000)
    kmin = packet * draw.randint(2, 20)
    marking = fc.RED(kmin, kmin * draw.choice((1, 2, 8)), draw.choice((0.05, 0.25, 1.0)))
    until = _NS * round(draw.uniform(400, 800) * packet * 8 / gbps + 20 * delay / _NS)
    options: dict[str, Any] = {
        "rate": f"{gbps}Gbps",
        "delay": delay,
        "scheme": schemes[number % len(schemes)],
        "marking": marking,
        "packet_size": packet,
        "start": [_NS * draw.randint(0, 9999) for _ in range(flows)],
        "size": [draw.choice((math.inf, packet * draw.randint(5, 200))) for _ in range(flows)],
    }
    if lossy:
        options |= _network(draw, packet)
    made = draw.choice((fc.incast, fc.parking_lot))(flows, **options)
    moved = [
        dataclasses.replace(flow, access_delay=delay + _NS * (1 + 3 * i) * draw.randint(1, 40))
        for i, flow in enumerate(made.flows)
    ]
    links = made.links
    if options.get("loss_recovery", "none") != "none" and draw.random() < 0.5:
        links = tuple(dataclasses.replace(link, loss=1 / 128) for link in links)
    return Case(resolve(dataclasses.replace(made, flows=tuple(moved), links=links)), until, number)


def _network(draw: random.Random, packet: int) -> dict[str, Any]:
    """Draw buffers, flow control and recovery."""
    kind = draw.choice(("endless", "drops", "pfc"))
    recovery = draw.choice(RECOVERY)
    if kind == "endless":
        return {}
    if kind == "pfc":
        return {"buffer": "8MB", "pfc": fc.PFC(xoff=packet * draw.randint(3, 30), xon_gap=packet)}
    return {"buffer": packet * draw.randint(12, 60), "pfc": None, "loss_recovery": recovery}


def permuted(case: Case, order: Sequence[int]) -> Case:
    """Put the flows of a case in another order."""
    flows = tuple(case.scenario.flows[i] for i in order)
    return dataclasses.replace(case, scenario=resolve(dataclasses.replace(case.scenario, flows=flows)))


def in_units(case: Case, *, time: float = 1.0, size: float = 1.0) -> Case:
    """Multiply all times by ``time`` and all bytes by ``size``, and rates by what follows from both."""
    scenario = rescaled(case.scenario, time=time, size=size)
    return dataclasses.replace(case, scenario=resolve(scenario), until=case.until * time)


def rescaled(scenario: Scenario, *, time: float = 1.0, size: float = 1.0) -> Scenario:
    """Return a resolved scenario in other units; its flows share their scheme as before."""
    return _rescaled(scenario, {TIME: time, SIZE: size, RATE: size / time}, {})


def _rescaled(part: Any, factors: dict[str, float], done: dict[int, Any]) -> Any:
    if id(part) in done:
        return done[id(part)]
    changed: dict[str, Any] = {}
    for field in dataclasses.fields(part):
        value, spec = getattr(part, field.name), specs(part).get(field.name)
        if spec is not None:
            if spec.dimension in factors and value is not None and not spec.static:
                changed[field.name] = value * factors[spec.dimension]
        elif isinstance(value, tuple) and value and dataclasses.is_dataclass(value[0]):
            changed[field.name] = tuple(_rescaled(each, factors, done) for each in value)
        elif dataclasses.is_dataclass(value):
            changed[field.name] = _rescaled(value, factors, done)
    if isinstance(part, NSCC):
        changed |= _nscc_gains(part, factors)
    done[id(part)] = dataclasses.replace(part, **changed)
    return done[id(part)]


def _nscc_gains(part: NSCC, factors: dict[str, float]) -> dict[str, Any]:
    """Take the units of the specification's reference network, 150 KB and 12 us (UE 3.6.13.3), off NSCC's gains."""
    by_bytes = {name: getattr(part, name) / factors[SIZE] for name in ("fair_increase", "eta", "fast_increase")}
    return by_bytes | {"proportional_increase": part.proportional_increase / factors[SIZE] / factors[TIME]}
