"""Running the fluid engine, its trace, and the step's error.

That is estimated: how far a run is from that with half the step, and whether a third step bears that out. A method of
order k is of first order where marking jumps and of order k elsewhere, so a step twice as long has an error 2 to 2^k
times as large, and successive differences shrink like that. Where they do not, because the run locks to its grid or two
errors cancel by chance, the difference says little of the error.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fluidcc.contract.registry import fluid_of
from fluidcc.dde.stepping import method_named
from fluidcc.engines.fluid.engine import Outcome, execute, longest_wait
from fluidcc.engines.fluid.metrics import metrics_of, queue_statistics
from fluidcc.engines.fluid.network import Network, answer_delay, network_of
from fluidcc.engines.fluid.plan import Plan, plan_of
from fluidcc.errors import InputError
from fluidcc.progress import Bar
from fluidcc.results import schema
from fluidcc.results.memory_limit import limit, require
from fluidcc.results.trace import Trace, trace_of
from fluidcc.scenario.model import Scenario
from fluidcc.units import TIME, quantity, show

NEGLIGIBLE = 1e-5  # relative: of differences that small it does not matter how they shrink
SLACK = 2.0  # factor around what the order says
UNKNOWN: dict[str, float | None] = {"queue_rel": None, "rate_rel": None, "as_expected": None}

StepError = dict[str, float | None]
SEGMENTS = 20  # parts of a run, between which it reports and can be interrupted


def shrinks(before: float | None, after: float | None, method: str) -> bool | None:
    """Check whether two successive differences, each between a step and its half, shrink as a method's order says.

    Parameters
    ----------
    before, after : float
        Relative differences, that of the longer steps first; None if unknown.
    method : str

    Returns
    -------
    bool
        None if one of them is unknown.
    """
    if before is None or after is None or not (math.isfinite(before) and math.isfinite(after)):
        return None
    if max(before, after) <= NEGLIGIBLE:
        return True
    return 2.0 / SLACK * after <= before <= 2.0 ** method_named(method).order * SLACK * after


def both(verdicts: Sequence[bool | None]) -> bool | None:
    """Check whether all verdicts are true; None if none is false but one is unknown."""
    return False if False in verdicts else None if None in verdicts else True


def relative(ours: np.ndarray, theirs: np.ndarray, least: float) -> float | None:
    """Largest difference, relative to the largest of the second or to a least scale; None if not finite."""
    scale = max(float(np.max(np.abs(theirs))), least)
    worst = float(np.max(np.abs(ours - theirs)))
    return None if not math.isfinite(worst) else worst / scale if scale > 0 else worst


def tolerance_error(runs: Sequence[Outcome], packet: float) -> StepError:
    """Do as `discretisation_error` does, for runs to ten times a tolerance, to it, and to a tenth of it.

    A tolerance bounds the error of a step, not of the run: all that is expected is that differences do not grow as it
    falls.
    """
    found = [_differences(runs, name, least) for name, least in {"queue_mean": packet, "rate_mean": 0.0}.items()]
    verdicts = [_falls(before, after) for before, after in found]
    return {"queue_rel": found[0][1], "rate_rel": found[1][1], "as_expected": both(verdicts)}


def _falls(before: float | None, after: float | None) -> bool | None:
    if before is None or after is None:
        return None
    return after <= max(NEGLIGIBLE, SLACK * before)


def _differences(runs: Sequence[Outcome], name: str, least: float) -> list[float | None]:
    means = [getattr(run.summary, name)[:, 0] for run in runs]
    return [relative(ours, theirs, least) for ours, theirs in itertools.pairwise(means)]


def discretisation_error(runs: Sequence[Outcome], reported: int, packet: float, method: str) -> StepError:
    """Relative difference of the window's mean queue and mean rates between step h and h/2.

    A mean queue below one packet counts as one packet: what is left of an empty queue has no relative error.

    Parameters
    ----------
    runs : sequence of Outcome
        Three, each with half the step of the one before.
    reported : int
        Which of them has step h: 0 or 1.
    packet : float
        Bytes.
    method : str
    """
    scales = {"queue_mean": packet, "rate_mean": 0.0}
    differences = {name: _differences(runs, name, least) for name, least in scales.items()}
    return {
        "queue_rel": differences["queue_mean"][reported],
        "rate_rel": differences["rate_mean"][reported],
        "as_expected": both([shrinks(before, after, method) for before, after in differences.values()]),
    }


def simulate(
    scenario: Scenario,
    until: Any,
    *,
    window: Any = None,
    dt: Any = None,
    rtol: Any = None,
    method: str = "heun",
    dtype: str = "float64",
    sample_interval: Any = None,
    estimate_error: bool = True,
) -> Trace:
    """Run a resolved scenario as a fluid; see `fluidcc.simulate` for the parameters.

    Raises
    ------
    InputError
        If an option makes no sense.
    """
    network = network_of(scenario)
    options = {"until": until, "window": window, "dt": dt, "rtol": rtol, "method": method, "dtype": dtype}
    options |= {"sample_interval": sample_interval, "halving": estimate_error}
    plan = plan_of(network, **options)
    _require_trace(network, plan)
    seconds = quantity(until, TIME, "until")
    # In addition to half the step either twice or, where lags or window are no whole number of those, a quarter of it.
    work = 1.0 if not estimate_error else 3.0 if plan.rtol is not None else 3.5 if plan.doubles else 7.0
    with Bar(f"simulating {show(seconds, TIME)}", round(plan.steps * work), "steps") as bar:
        outcome, compile_s, wall_s = execute(
            network, plan, full=True, segments=SEGMENTS, report=lambda share: bar(share / work)
        )
        if plan.rtol is not None and np.isnan(outcome.summary.queue_mean).all():
            raise InputError(
                f"rtol: {plan.rtol:g} takes more steps within the longest lag than the history holds; write a larger "
                "one, or dt"
            )
        # Few runs need it, so the history is made for longer queues only once they are seen.
        while (waited := longest_wait(network, outcome.summary)) > plan.allowance:
            plan = plan_of(network, **options, queueing_allowance=2 * waited)
            outcome, again_s, wall_s = execute(network, plan, full=True, segments=SEGMENTS)
            compile_s += again_s
        error = UNKNOWN
        if estimate_error and plan.rtol is not None:

            def to(factor: float, begun: float) -> Outcome:
                other = plan.to_tolerance(factor)
                return execute(network, other, full=True, report=lambda share: bar((begun + share) / work))[0]

            error = tolerance_error((to(10.0, 1.0), outcome, to(0.1, 2.0)), float(np.max(network.packet)))
        elif estimate_error:

            def again(other: Plan, begun: float) -> Outcome:
                # Another step has the same shapes, so this does not compile again.
                part = plan.dt / other.dt / work
                return execute(
                    network, other, full=True, segments=SEGMENTS, report=lambda share: bar(begun + part * share)
                )[0]

            finer = again(plan.halved(), 1 / work)
            third = again(plan.doubled() if plan.doubles else plan.halved().halved(), 3 / work)
            runs, reported = ((third, outcome, finer), 1) if plan.doubles else ((outcome, finer, third), 0)
            error = discretisation_error(runs, reported, float(np.max(network.packet)), plan.method)
    more = {"discretisation_error": error, "compile_s": compile_s, "wall_s": wall_s}
    summary = _summary(scenario, network, plan, outcome, seconds, more)
    return _trace(scenario, network, plan, outcome, summary)


def _require_trace(network: Network, plan: Plan) -> None:
    """Refuse more samples than fit in memory: once as they come in, once as the dataset."""
    shown = [len(group.flows) * (2 + len(fluid_of(group.parameters).OBSERVABLES)) for group in network.groups]
    needed = 2 * 8 * plan.room * (2 * network.queues + sum(shown))
    require(needed, limit(), f"sample interval: {plan.room:,} samples take", "give a longer one, or fewer flows")


def _summary(
    scenario: Scenario, network: Network, plan: Plan, outcome: Outcome, until: float, more: dict[str, Any]
) -> dict[str, Any]:
    payload = scenario.packet_size
    shares = [payload / scenario.wire_packet_of(flow) for flow in scenario.flows]
    metrics = {name: float(values[0]) for name, values in metrics_of(network, plan, outcome, payload).items()}
    stats = {name: values[:, 0] for name, values in queue_statistics(plan, outcome).items()}
    rates = outcome.summary.rate_mean[:, 0]
    count = sum(flow.multiplicity for flow in scenario.flows)
    links = [
        {
            "queue_bytes": {name: float(values[i]) for name, values in stats.items()},
            "utilisation": float(outcome.summary.utilisation[i, 0]),
        }
        for i in range(network.links)
    ]
    waited = outcome.began
    began = [float(flow.start) for flow in scenario.flows] if waited is None else waited[:, 0].tolist()
    values = {
        "flows": int(count) if count == int(count) else count,
        "until_s": until,
        "window_s": plan.window,
        "rate_bytes_per_s": [float(rate) for rate in rates],
        "goodput_bytes_per_s": [float(rate * share) for rate, share in zip(rates, shares, strict=True)],
        **{name: metrics[name] for name in schema.NUMBERS},
        "fct_s": _completion_times(scenario, outcome, began),
        "began_s": [at if at <= until else None for at in began],
        **more,
    }
    return schema.summary(schema.FLUID, scenario, links, values)


def _completion_times(scenario: Scenario, outcome: Outcome, began: list[float]) -> list[float]:
    """Start to last acknowledgement at the sender of every finite flow [s]; not finite if unfinished."""
    times: list[float] = []
    hop = 0
    for i, flow in enumerate(scenario.flows):
        if math.isfinite(flow.size):
            waited = outcome.drain[hop : hop + len(flow.path), 0].sum()
            times.append(float(outcome.finish[i, 0] + waited + answer_delay(scenario, flow) - began[i]))
        hop += len(flow.path)
    return times


def _trace(scenario: Scenario, network: Network, plan: Plan, outcome: Outcome, summary: dict[str, Any]) -> Trace:
    kept = slice(None, None, plan.thin)
    times = np.arange(plan.samples)[kept] * (plan.stride * plan.dt)
    capacity = np.array([link.rate for link in scenario.links[: network.links]])
    idle = outcome.trace["idle"][kept, :, 0]
    observables: dict[str, tuple[str, str]] = {}
    for group in network.groups:
        observables |= fluid_of(group.parameters).OBSERVABLES
    arrays = {"queue": outcome.queue[kept, :, 0], "sent": times[:, None] * capacity - idle}
    if len(scenario.classes) > 1:
        classes = outcome.trace["class_queue"][kept, :, 0]
        arrays["class_queue"] = classes.reshape(len(times), network.links, -1)
    for name in ("paused", "rate", "pacing_rate", *observables):
        if name in outcome.trace:  # else of a mechanism that is off
            arrays[name] = outcome.trace[name][kept, :, 0]
    attrs = {"dt_s": plan.dt, "rtol": plan.rtol or 0.0, "method": plan.method, "dtype": plan.dtype}
    return trace_of(schema.dataset(schema.FLUID, scenario, times, arrays, observables, summary, attrs))
