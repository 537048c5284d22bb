"""The numbers of each view of a setting; no widgets, nothing drawn."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fluidcc.contract import registry
from fluidcc.contract.registry import equilibrium_of
from fluidcc.dde.characteristic import roots
from fluidcc.dde.delay_system import Array
from fluidcc.engines.fluid.engine import execute, longest_wait
from fluidcc.engines.fluid.metrics import metrics_of
from fluidcc.engines.fluid.network import Network, network_of
from fluidcc.engines.fluid.plan import Plan, plan_of
from fluidcc.errors import InputError
from fluidcc.results.metrics import most_loaded
from fluidcc.scenario.model import Scenario
from fluidcc.theory.control.linearize import linearize
from fluidcc.theory.control.states import NoEquilibriumError, smooth_side
from fluidcc.units import TIME, show

_SEEDS, _FEWER, _MANY = 5, 3, 16  # hybrid runs of the band, and of more flows than this, each of which takes its time
ROOTS = 6  # of each mode
# One length of the history for nearly all settings, so that they share what was compiled; it costs 64 KB a row.
_DEPTH = 1 << 13
_MOST_STEPS = 400_000  # of a run that a hand waits for
_MOST_EVENTS = 5e6  # likewise, some seconds of each seed
_BINS = 60
_SAMPLES = 500  # of a run of seeds
SHOWN = ("mean", "p99", "max")  # of the queue, in the table


class Run(NamedTuple):
    """Result of one engine for a setting.

    Parameters
    ----------
    time : ndarray
        [s], (samples,).
    queue : ndarray
        Of the most loaded link [bytes], (runs, samples).
    rates : ndarray
        Sending rate of a flow of each class [bytes/s], (classes, samples), the mean over runs.
    metrics : dict
        Of the second half, the mean over runs: queue_mean, queue_p99, queue_max [bytes], utilisation, jain.
    """

    time: Array
    queue: Array
    rates: Array
    metrics: dict[str, float]

    @property
    def band(self) -> tuple[Array, Array, Array]:
        """Least, mean and largest queue over the runs, each (samples,) [bytes]."""
        return self.queue.min(axis=0), self.queue.mean(axis=0), self.queue.max(axis=0)

    def distribution(self, edges: Array) -> Array:
        """Share of the second half's time with a queue in each bin, (bins,)."""
        late = self.queue[:, self.time >= self.time[-1] / 2]
        counts, _ = np.histogram(np.clip(late, edges[0], edges[-1]), edges)
        return counts / max(counts.sum(), 1)


def bin_edges(*runs: Run | None) -> Array:
    """Edges of bins that hold the queues of some runs' second halves [bytes]."""
    tops = [run.queue[:, run.time >= run.time[-1] / 2].max() for run in runs if run is not None]
    return np.linspace(0.0, max([*tops, 1.0]) * 1.02, _BINS + 1)


def _room(plan: Plan) -> Plan:
    return dataclasses.replace(plan, depth=max(plan.depth, _DEPTH))


def fluid(scenario: Scenario, until: float) -> Run:
    """The fluid, as `fluidcc.simulate` runs it without an estimate of its error.

    Raises
    ------
    InputError
        If the scenario makes no sense as a fluid, or takes too many steps to wait for.
    """
    network = network_of(scenario)
    plan = _room(plan_of(network, until=until))
    if plan.steps > _MOST_STEPS:
        longest = show(plan.dt * _MOST_STEPS, TIME, 2)
        raise InputError(
            f"until: {show(until, TIME)} takes {plan.steps:.2g} steps of {show(plan.dt, TIME)}, too many to wait for "
            f"while you move things; write at most {longest}"
        )
    outcome, _, _ = execute(network, plan, full=True)
    while (waited := longest_wait(network, outcome.summary)) > plan.allowance:
        plan = _room(plan_of(network, until=until, queueing_allowance=2 * waited))
        outcome, _, _ = execute(network, plan, full=True)
    return _fluid_run(scenario, network, plan, outcome)


def _fluid_run(scenario: Scenario, network: Network, plan: Plan, outcome: Any) -> Run:
    numbers = metrics_of(network, plan, outcome, scenario.packet_size)
    metrics = {f"queue_{name}": float(numbers[f"queue_bytes.{name}"][0]) for name in SHOWN}
    metrics |= {name: float(numbers[name][0]) for name in ("utilisation", "jain")}
    link = int(most_loaded(outcome.summary.queue_mean)[0])
    time = np.arange(plan.samples) * (plan.stride * plan.dt)
    run = Run(time, outcome.queue[:, link, 0][None], outcome.trace["rate"][:, :, 0].T, metrics)
    if not np.isfinite(run.queue).all():
        raise InputError("values: the fluid does not stay finite here; move the last value back")
    return run


def seeds_of(scenario: Scenario) -> int:
    """Hybrid runs of the band: five, and three of many flows."""
    return _SEEDS if sum(flow.multiplicity for flow in scenario.flows) <= _MANY else _FEWER


def has_hybrid(scenario: Scenario) -> bool:
    """Check whether all flows' schemes have a hybrid side."""
    return all(registry.scheme_of(flow.scheme).module("hybrid") is not None for flow in scenario.flows)


def hybrid(scenario: Scenario, until: float, seeds: int | None = None) -> Run | None:
    """Run DCQCN's NIC as it is on fluid queues, over seeds; None for a scheme without a hybrid side.

    Parameters
    ----------
    scenario : Scenario
    until : float
        Horizon [s].
    seeds : int
        `seeds_of` if not given.

    Raises
    ------
    InputError
        If the engine refuses the scenario.
    """
    if not has_hybrid(scenario):
        return None
    from fluidcc.engines.hybrid.build import prepare
    from fluidcc.engines.hybrid.run import execute as run
    from fluidcc.engines.hybrid.run import sampled_rates, summary_of, times_in_seconds

    # As `fluidcc.ensemble`, but laid out once for all seeds and without datasets, which take longer than the runs.
    prepared = prepare(scenario, times_in_seconds(scenario, until, None, until / _SAMPLES), _MOST_EVENTS)
    queues, rates, summaries = [], [], []
    for seed in range(1, (seeds or seeds_of(scenario)) + 1):
        sim, wall = run(prepared, seed, most=_MOST_EVENTS)
        queues.append(sim.link_samples[:, :, 0])
        rates.append(sampled_rates(prepared, sim).T)
        summaries.append(summary_of(scenario, prepared, sim, {"seed": seed, "compile_s": 0.0, "wall_s": wall}))
    time = np.arange(len(queues[0])) * prepared.times.interval
    return _of_seeds(time, np.stack(queues), np.mean(rates, axis=0), summaries)


def packets(scenario: Scenario, until: float, seeds: int = 2, report: Callable[[float], None] | None = None) -> Run:
    """Run packet by packet, over seeds.

    Parameters
    ----------
    scenario : Scenario
    until : float
        Horizon [s].
    seeds : int
    report : callable
        Told the share that is done; what it raises ends the run.

    Raises
    ------
    InputError
        If the engine refuses the scenario.
    """
    from fluidcc.engines.packet.build import prepare
    from fluidcc.engines.packet.run import times_of, traced

    plan = prepare(scenario, times_of(scenario, until, None, until / _SAMPLES), 0)
    traces = []
    for seed in range(1, seeds + 1):

        def told(share: float, done: int = seed - 1) -> None:
            if report is not None:
                report((done + share) / seeds)

        traces.append(traced(scenario, plan, seed, report=told))
        told(1.0)
    rates = np.mean([trace.dataset["rate"].values.T for trace in traces], axis=0)
    queues = np.stack([trace.dataset["queue"].values for trace in traces])
    return _of_seeds(traces[0].dataset["time"].values, queues, rates, [trace.summary for trace in traces])


def _of_seeds(time: Array, queues: Array, rates: Array, summaries: list[dict[str, Any]]) -> Run:
    """Combine several seeds in one run: queues (seeds, samples, links), mean rates (classes, samples)."""
    link = int(most_loaded(queues.mean(axis=(0, 1))[:, None])[0])
    metrics = {f"queue_{name}": float(np.mean([s["queue_bytes"][name] for s in summaries])) for name in SHOWN}
    metrics |= {name: float(np.mean([s[name] for s in summaries])) for name in ("utilisation", "jain")}
    return Run(time, queues[:, :, link], rates, metrics)


class RootMap(NamedTuple):
    """Characteristic roots about the equilibrium.

    Parameters
    ----------
    aggregate, fairness : ndarray
        Complex [1/s]: of the merged flows, and of differences between equal ones.
    stable : bool or None
        None where there is nothing to linearise, or a root may be missed.
    why : str
        Why; else a verdict.
    """

    aggregate: Array
    fairness: Array
    stable: bool | None
    why: str


def no_equilibrium(scenario: Scenario) -> str:
    """Return why a scheme has nothing to linearise, whatever its values; else an empty text."""
    for flow in scenario.flows:
        if equilibrium_of(flow.scheme) is None:
            return f"no roots: there is no analysis of an equilibrium for {flow.scheme.name}"
        try:
            smooth_side(flow.scheme)
        except NoEquilibriumError as error:
            return str(error).removeprefix("linearize: ")
    return ""


def root_map(scenario: Scenario, count: int = ROOTS) -> RootMap:
    """Rightmost roots, or why there are none; an equilibrium that does not exist is an answer."""
    nothing = np.empty(0, complex)
    if why := no_equilibrium(scenario):
        return RootMap(nothing, nothing, None, why)
    try:
        found = linearize(scenario)
    except NoEquilibriumError as error:
        return RootMap(nothing, nothing, None, str(error).removeprefix("linearize: "))
    parts = [roots(system, count) for system in (found.system, *(each.system for each in found.fairness))]
    aggregate = parts[0].s
    fairness = np.concatenate([part.s for part in parts[1:]]) if len(parts) > 1 else nothing
    both = np.concatenate([aggregate, fairness])
    top = complex(both[np.argmax(np.real(both))]) if len(both) else complex(-np.inf)
    stable = bool(top.real < 0)
    if stable and any(str(part.state) != "ok" for part in parts):
        return RootMap(aggregate, fairness, None, "unresolved: too many roots lie near to know the rightmost")
    beyond = "" if found.equilibrium.on_ramp is not False else ", on the RED line extended beyond Kmax"
    # To which the rightmost root leads: how soon a perturbation is e times smaller, or larger.
    pace = f"{'decays' if stable else 'grows'} in {show(1 / abs(top.real), TIME, 3)}" if top.real else "lasts"
    turns = f", period {show(2 * np.pi / abs(top.imag), TIME, 3)}" if top.imag else ""
    return RootMap(aggregate, fairness, stable, f"{'stable' if stable else 'unstable'}{beyond}: {pace}{turns}")
