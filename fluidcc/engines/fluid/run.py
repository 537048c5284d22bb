"""Running the fluid engine, and its trace."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import xarray as xr

import fluidcc
from fluidcc.engines.fluid.engine import Outcome, execute, longest_wait
from fluidcc.engines.fluid.metrics import metrics_of, queue_statistics
from fluidcc.engines.fluid.network import Network, network_of
from fluidcc.engines.fluid.plan import Plan, plan_of
from fluidcc.progress import Bar
from fluidcc.results.trace import Trace
from fluidcc.scenario.builders import toml_file
from fluidcc.scenario.model import Scenario, base_rtt
from fluidcc.scenario.round_trips import ack_delay, serialisation_delays
from fluidcc.schemes.registry import part
from fluidcc.units import TIME, quantity, show

SEGMENTS = 20  # parts of a run, between which it reports and can be interrupted


def simulate(
    scenario: Scenario,
    until: Any,
    *,
    window: Any = None,
    dt: Any = None,
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
    options = {"until": until, "window": window, "dt": dt, "method": method, "dtype": dtype}
    options |= {"sample_interval": sample_interval, "halving": estimate_error}
    plan = plan_of(network, **options)
    seconds = quantity(until, TIME, "until")
    work = 3 if estimate_error else 1
    with Bar(f"simulating {show(seconds, TIME)}", plan.steps * work, "steps") as bar:
        outcome, compile_s, wall_s = execute(
            network, plan, full=True, segments=SEGMENTS, report=lambda share: bar(share / work)
        )
        # Few runs need it, so the history is made for longer queues only once they are seen.
        while (waited := longest_wait(network, outcome.summary)) > plan.allowance:
            plan = plan_of(network, **options, queueing_allowance=2 * waited)
            outcome, again_s, wall_s = execute(network, plan, full=True, segments=SEGMENTS)
            compile_s += again_s
        error = {"queue_rel": None, "rate_rel": None}
        if estimate_error:
            # Half the step has the same shapes, so this does not compile again.
            finer, _, _ = execute(
                network, plan.halved(), full=True, segments=SEGMENTS, report=lambda share: bar((1 + 2 * share) / work)
            )
            error = discretisation_error(outcome, finer, float(np.max(network.packet)))
    summary = _summary(scenario, network, plan, outcome, seconds)
    summary |= {"discretisation_error": error, "compile_s": compile_s, "wall_s": wall_s}
    return Trace(_dataset(scenario, network, plan, outcome, summary))


def discretisation_error(coarse: Outcome, fine: Outcome, packet: float) -> dict[str, float | None]:
    """Relative difference of the window's mean queue and mean rates between step h and h/2.

    A mean queue below one packet counts as one packet: what is left of an empty queue has no relative error.
    """

    def relative(a: np.ndarray, b: np.ndarray, least: float) -> float | None:
        scale = max(float(np.max(np.abs(b))), least)
        worst = float(np.max(np.abs(a - b)))
        return None if not math.isfinite(worst) else worst / scale if scale > 0 else worst

    return {
        "queue_rel": relative(coarse.summary.queue_mean[:, 0], fine.summary.queue_mean[:, 0], packet),
        "rate_rel": relative(coarse.summary.rate_mean[:, 0], fine.summary.rate_mean[:, 0], 0.0),
    }


def number(value: Any) -> float | None:
    """A float for JSON; None where it is undefined."""
    value = float(value)
    return value if math.isfinite(value) else None


def _summary(scenario: Scenario, network: Network, plan: Plan, outcome: Outcome, until: float) -> dict[str, Any]:
    payload = scenario.packet_size
    shares = [payload / scenario.wire_packet_of(flow) for flow in scenario.flows]
    metrics = {name: number(values[0]) for name, values in metrics_of(network, plan, outcome, payload).items()}
    stats = {name: values[:, 0] for name, values in queue_statistics(plan, outcome).items()}
    rates = outcome.summary.rate_mean[:, 0]
    count = sum(flow.multiplicity for flow in scenario.flows)
    prefix = "queue_bytes."
    return {
        "engine": "fluid",
        "scheme": "+".join(dict.fromkeys(flow.scheme.name for flow in scenario.flows)),
        "flows": int(count) if count == int(count) else count,
        "until_s": until,
        "window_s": list(plan.window),
        "queue_bytes": {k.removeprefix(prefix): v for k, v in metrics.items() if k.startswith(prefix)},
        "links": [
            {
                "name": scenario.links[i].name or f"link {i}",
                "queue_bytes": {name: number(values[i]) for name, values in stats.items()},
                "utilisation": number(outcome.summary.utilisation[i, 0]),
            }
            for i in range(network.links)
        ],
        "rate_bytes_per_s": [number(rate) for rate in rates],
        "goodput_bytes_per_s": [number(rate * share) for rate, share in zip(rates, shares, strict=True)],
        **{name: metrics[name] for name in ("jain", "utilisation", "rate_gap_bytes_per_s")},
        "fct_s": _completion_times(scenario, outcome),
    }


def _completion_times(scenario: Scenario, outcome: Outcome) -> list[float | None]:
    """Start to last acknowledgement at the sender of every finite flow [s]; None if unfinished."""
    times: list[float | None] = []
    hop = 0
    for i, flow in enumerate(scenario.flows):
        if math.isfinite(flow.size):
            waited = outcome.drain[hop : hop + len(flow.path), 0].sum()
            # From the sender on, the last packet is stored at every link, and its ACK on the way back.
            last = min(1.0, flow.size / scenario.packet_size)
            stored = last * sum(serialisation_delays(scenario, flow)[1:]) + ack_delay(scenario, flow)
            times.append(number(outcome.finish[i, 0] + waited + base_rtt(scenario, flow) + stored - flow.start))
        hop += len(flow.path)
    return times


def _dataset(scenario: Scenario, network: Network, plan: Plan, outcome: Outcome, summary: dict[str, Any]) -> xr.Dataset:
    kept = slice(None, None, plan.thin)
    times = np.arange(plan.samples)[kept] * (plan.stride * plan.dt)
    capacity = np.array([link.rate for link in scenario.links[: network.links]])
    idle = outcome.trace["idle"][kept, :, 0]
    sent = times[:, None] * capacity - idle
    texts = {"rate": ("bytes/s", "sending rate"), "pacing_rate": ("bytes/s", "pacing rate R_C")}
    for group in network.groups:
        texts |= part(group.parameters, "fluid").OBSERVABLES
    variables: dict[str, Any] = {
        "queue": (("time", "link"), outcome.queue[kept, :, 0], {"units": "bytes", "long_name": "queue"}),
        "sent": (("time", "link"), sent, {"units": "bytes", "long_name": "bytes sent so far"}),
    }
    coordinates: dict[str, Any] = {}
    if "paused" in outcome.trace:
        text = {"units": "s", "long_name": "time for which flow control has stopped links so far"}
        variables["paused"] = (("time", "link"), outcome.trace["paused"][kept, :, 0], text)
    if len(scenario.classes) > 1:
        classes = outcome.trace["class_queue"][kept, :, 0].reshape(len(times), network.links, -1)
        text = {"units": "bytes", "long_name": "queue of each traffic class"}
        variables["class_queue"] = (("time", "link", "traffic_class"), classes, text)
        coordinates["traffic_class"] = np.arange(len(scenario.classes))
    for name, (unit, text) in texts.items():
        if name not in outcome.trace:  # of a mechanism that is off
            continue
        values = outcome.trace[name][kept, :, 0]
        variables[name] = (("time", "flow"), values, {"units": unit, "long_name": text})
    coordinates |= {
        "time": ("time", times, {"units": "s", "long_name": "time"}),
        "link": [link.name or f"link {i}" for i, link in enumerate(scenario.links[: network.links])],
        "capacity": ("link", capacity, {"units": "bytes/s", "long_name": "nominal rate"}),
        "flow": [flow.name or f"flow {i}" for i, flow in enumerate(scenario.flows)],
        "multiplicity": ("flow", np.array([flow.multiplicity for flow in scenario.flows]), {"units": "1"}),
    }
    attrs = {
        "title": f"{summary['scheme']}, {summary['flows']} flows, {summary['engine']} engine",
        "source": f"fluidcc {fluidcc.__version__}",
        "engine": "fluid",
        "scenario": toml_file.to_toml(scenario),
        "summary": json.dumps(summary),
        "dt_s": plan.dt,
        "method": plan.method,
        "dtype": plan.dtype,
    }
    return xr.Dataset(variables, coordinates, attrs)
