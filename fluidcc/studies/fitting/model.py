"""The model of a fit: its unknowns as coordinates from 0 to 1, and the scenario at their values with its runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from fluidcc import units
from fluidcc.builders.names import dimension_of, format_value, spec_of
from fluidcc.contract.registry import scheme_of
from fluidcc.engines.hybrid import run as hybrid
from fluidcc.engines.hybrid.build import Times, prepare
from fluidcc.engines.run import simulate
from fluidcc.errors import InputError
from fluidcc.results.schema import link_names
from fluidcc.results.trace import Trace
from fluidcc.scenario.model import RED, Scenario, resolve
from fluidcc.scenario.parameters import specs
from fluidcc.studies.fitting.measured import Measured
from fluidcc.studies.sweeps.grid import check_takes
from fluidcc.surface import nearest

MOST = 6  # unknowns; a quadratic in more asks for thousands of runs
Make = Callable[..., Scenario]
OF_PACKETS = ("burst", "jitter")  # of senders: what the queues of packets alone show


@dataclasses.dataclass(frozen=True)
class Space:
    """Names and bounds [SI]; a name whose bounds are above 0 is searched in its logarithm."""

    names: tuple[str, ...]
    low: np.ndarray
    high: np.ndarray

    @property
    def logarithmic(self) -> np.ndarray:
        """True for each name that is searched in its logarithm."""
        return self.low > 0

    def values(self, at: np.ndarray) -> dict[str, float]:
        """Values [SI] at a point of the unit cube; the nearest whole one of what counts."""
        found = {}
        for name, low, high, share in zip(self.names, self.low, self.high, at, strict=True):
            value = float(low * (high / low) ** share if low > 0 else low + (high - low) * share)
            spec = spec_of(name)
            value = float(round(value)) if spec is not None and spec.integer else value
            found[name] = units.marked(value, dimension_of(name))
        return found

    def shown(self, at: np.ndarray) -> str:
        """Values at a point, with units."""
        return ", ".join(f"{name} = {format_value(name, value)}" for name, value in self.values(at).items())


def space_of(over: Mapping[str, Any]) -> Space:
    """The unknowns of ``over``: a pair of bounds by name, text with units or numbers in SI.

    Raises
    ------
    InputError
        If there is none, there are too many, or a pair is no range.
    """
    if not isinstance(over, Mapping) or not over:
        raise InputError("over: expected a range by name; write for example {'timer': ('20us', '500us')}")
    if len(over) > MOST:
        raise InputError(f"over: {len(over)} unknowns are more than {MOST}; fix some of them")
    bounds = []
    for name, pair in over.items():
        if not isinstance(pair, (tuple, list, np.ndarray)) or len(pair) != 2:
            raise InputError(f"over {name}: expected two bounds, not {repr(pair)[:40]}; write ('20us', '500us')")
        dimension = dimension_of(name)
        low, high = (units.quantity(each, dimension, f"over {name}") for each in pair)
        if not np.isfinite([low, high]).all() or low >= high:
            raise InputError(f"over {name}: {repr(pair)[:40]} is no range; give the lower bound first")
        spec = spec_of(name)
        if spec is not None and spec.integer:
            if np.floor(high) <= np.ceil(low) or low < spec.low:
                able = f"two whole numbers from {spec.low:g} on"
                raise InputError(f"over {name}: {repr(pair)[:40]} does not hold {able}; write for example (1, 16)")
            low, high = np.ceil(low), np.floor(high)
        bounds.append((float(low), float(high)))
    low, high = np.array(bounds).T
    return Space(tuple(map(str, over)), low, high)


def maker_of(scenario: Any, names: Sequence[str]) -> Make:
    """A function from values of the unknowns to a scenario.

    Parameters
    ----------
    scenario : callable or Scenario
        Of a finished scenario, what is named are parameters of its flows' schemes, of its marking, ``delay``, of
        all links, or ``burst`` and ``jitter``.
    names : sequence of str

    Raises
    ------
    InputError
        If it is neither, or there is no such parameter.
    """
    if not isinstance(scenario, Scenario):
        if not callable(scenario):
            raise InputError(
                f"make_scenario: {repr(scenario)[:40]} is neither a Scenario nor a function that makes one"
            )
        check_takes(scenario, names)
        return cast(Make, scenario)
    of_schemes = {name for flow in scenario.flows for name in specs(type(flow.scheme))}
    known = {*of_schemes, *specs(RED), "delay", *OF_PACKETS}
    for name in names:
        if name not in known:
            near = nearest(name, known)
            hint = f"did you mean {near}?" if near else "give a function make_scenario(**values)"
            raise InputError(f"over: the scenario has no parameter {name[:40]!r}; {hint}")

    def changed(**values: Any) -> Scenario:
        flows = tuple(
            dataclasses.replace(flow, scheme=dataclasses.replace(flow.scheme, **_own(values, type(flow.scheme))))
            for flow in scenario.flows
        )
        of_marking = {name: value for name, value in _own(values, RED).items() if name not in of_schemes}
        delay = {"delay": values["delay"]} if "delay" in values else {}
        links = tuple(
            dataclasses.replace(link, **delay, marking=link.marking and dataclasses.replace(link.marking, **of_marking))
            for link in scenario.links
        )
        of_senders = {name: value for name, value in values.items() if name in OF_PACKETS}
        return dataclasses.replace(scenario, flows=flows, links=links, **of_senders)

    return changed


def _own(values: Mapping[str, Any], owner: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name in specs(owner)}


def draws_chance(scenario: Scenario) -> bool:
    """Check whether flows react to random marks, and all have a side in the hybrid engine."""
    return any(link.marking is not None for link in scenario.links) and all(
        scheme_of(flow.scheme).hybrid is not None for flow in scenario.flows
    )


def link_of(scenario: Scenario, wanted: str | None) -> int:
    """Return the link whose queue was measured: by name, or the one with most flows for its rate.

    Raises
    ------
    InputError
        If there is none of that name.
    """
    names = link_names(scenario)
    if wanted in names:
        return names.index(wanted)
    if wanted is not None:
        raise InputError(f"link: the scenario has none named {wanted[:40]!r}; write one of {', '.join(names[:8])}")
    crossed = [
        sum(i in flow.path for flow in scenario.flows) / float(link.rate) for i, link in enumerate(scenario.links)
    ]
    return int(np.argmax(crossed))


def random_run(scenario: Scenario, engine: str, seed: int, time: np.ndarray, link: int, like: Measured) -> Measured:
    """Simulate what was measured, in a run of the hybrid or of packets, at evenly spaced times from 0 on.

    Raises
    ------
    InputError
        If neither each class of flows nor their sum was measured.
    """
    interval = float(time[1] - time[0])
    until = float(time[-1]) + interval / 2
    if engine == "packet":
        trace = simulate(scenario, until, engine="packet", seed=seed, sample_interval=interval)
        return _like(trace["time"].values, trace["queue"].values[:, link], _rates_of(trace, like), scenario, like)
    prepared = prepare(resolve(scenario), Times(until, until / 2, until, interval))
    sim, _ = hybrid.execute(prepared, seed)
    samples = sim.flow_samples[:, :, int(like.paced)]
    if not like.paced:  # bytes sent: a NIC and the packet engine count whole packets, of each sender
        packet = float(scenario.packet_size + scenario.header_bytes)
        samples = np.floor(samples / packet + 1e-9) * packet
    samples = hybrid.outcome_of(prepared, sim).by_class(samples)
    rates = samples if like.paced else np.diff(samples, axis=0, prepend=samples[:1]) / interval
    return _like(np.arange(len(samples)) * interval, sim.link_samples[:, link, 0], rates, scenario, like)


def fluid_run(scenario: Scenario, until: float, interval: float, link: int, like: Measured) -> Measured:
    """Simulate what was measured, in the fluid.

    Raises
    ------
    InputError
        If neither each class of flows nor their sum was measured.
    """
    trace = simulate(scenario, until, sample_interval=interval, estimate_error=False)
    return _like(trace["time"].values, trace["queue"].values[:, link], _rates_of(trace, like), scenario, like)


def _rates_of(trace: Trace, like: Measured) -> np.ndarray:
    return trace["pacing_rate" if like.paced else "rate"].values


def _like(time: np.ndarray, queue: np.ndarray, rates: np.ndarray, scenario: Scenario, like: Measured) -> Measured:
    """The columns that were measured: a single rate of several classes is their sum."""
    kept = queue if like.queue is not None else None
    if like.rates is None:
        return Measured(time, kept, None)
    columns, classes = like.rates.shape[1], rates.shape[1]
    if columns not in (1, classes):
        raise InputError(f"trace: has {columns} rates of {classes} flows; give one for each, or their sum alone")
    if columns != classes:
        rates = (rates @ np.array([flow.multiplicity for flow in scenario.flows], float))[:, None]
    return Measured(time, kept, rates, paced=like.paced)
