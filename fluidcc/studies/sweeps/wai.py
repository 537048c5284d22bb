"""W_AI for a link: standing queue, utilisation and time to fairness in closed form, fluid and packets (HPCC 3.3)."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import xarray as xr

from fluidcc.engines.fluid.engine import execute
from fluidcc.engines.fluid.plan import history_bytes, plan_of
from fluidcc.engines.run import simulate
from fluidcc.errors import InputError
from fluidcc.progress import Bar
from fluidcc.results.display import draw, shown, span
from fluidcc.results.grid import Grid
from fluidcc.results.memory_limit import limit, require
from fluidcc.results.result import DatasetResult, Row
from fluidcc.scenario.model import Scenario, resolve
from fluidcc.schemes.hpcc.increase import FixedPoint, solve_equilibrium
from fluidcc.studies.sweeps.batch import batch_of
from fluidcc.studies.sweeps.run import sweep
from fluidcc.surface import constructor, public
from fluidcc.units import SIZE, quantity

ENGINES = ("fluid", "packet")
CLOSED = "closed form"
SPLIT = 0.8  # share of the target that one half of the uneven flows starts with: 4:1
PATIENCE = {"fluid": 2, "packet": 6}  # times the closed form's time, until flows count as never equal
RTTS = 1000  # base RTTs that a run takes by default; the second half counts
_SMOOTHED = 20  # samples of 2000: the windows of packets jump, by about a hundredth of a run
_SHORTEST, _SAMPLES = 50, 5000  # samples of the fluid in the shortest time to fairness; most in a run
_SEGMENTS = 20

QUANTITIES = {
    "queue_bytes.mean": ("bytes", "mean standing queue"),
    "queue_bytes.p95": ("bytes", "95th percentile of the queue"),
    "utilisation": ("1", "share of the link's capacity that was used"),
    "fairness_time": ("s", "time until uneven flows are nearly equal"),
}


@constructor()
@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class WaiSweep(DatasetResult):
    """Benefit and cost of W_AI on a link, made by `wai_sweep`.

    Parameters
    ----------
    dataset : xarray.Dataset
        ``queue_bytes.mean`` and ``queue_bytes.p95`` [bytes], ``utilisation``, ``fairness_time`` [s], each (engine,
        w_ai), with "closed form" as the first engine; ``boundary``, the largest W_AI without a standing queue [bytes].
        A ``fairness_time`` of NaN: not within six times that of the closed form (fluid: twice). Attributes: ``flows``,
        ``uneven_flows`` (those that are timed), ``left``, ``base_rtt_s``, ``eta``.
    """

    def __repr__(self) -> str:
        """Values and engines."""
        return f"<WaiSweep of {self.dataset.sizes['w_ai']} values: {', '.join(self.dataset['engine'].values)}>"

    KEPT: ClassVar[tuple[str, ...]] = ("w_ai",)
    WHOLE: ClassVar[tuple[str, ...]] = ("engine",)

    def _rows(self) -> list[Row]:
        data = self.dataset
        rows = [
            ("w_ai", span("w_ai_bytes", data["w_ai"])),
            ("no queue up to", shown("w_ai_bytes", float(data.boundary))),
        ]
        for engine in data["engine"].values:
            at = data.sel(engine=engine)
            queue, time = span("queue_bytes", at["queue_bytes.mean"]), span("time_s", at["fairness_time"])
            rows.append((str(engine), f"queue {queue}, fair after {time}"))
        return rows

    @public()
    def plot(self, *, title: str | None = None) -> Any:
        """Queue with the boundary drawn, utilisation and time to fairness, each over W_AI.

        Parameters
        ----------
        title : str
            Above the picture; one that says what it is if not given.

        Returns
        -------
        fluidcc.plotting.style.Picture
        """
        return draw("plot_wai", self, title=title)


@public()
def wai_sweep(
    scenario: Scenario,
    w_ai: Sequence[Any] | np.ndarray,
    *,
    engines: Sequence[str] = ENGINES,
    until: Any = None,
    left: float = 0.1,
) -> WaiSweep:
    """Compare additive increases for a link: the standing queue they cause against the time to fairness they save.

    Parameters
    ----------
    scenario : Scenario
        One link and as many equal HPCC flows as are expected at most, for example from `fluidcc.incast`.
    w_ai : sequence of quantity
        Values of W_AI [bytes], numbers or text with units.
    engines : sequence of {"fluid", "packet"}
        What to run beside the closed form. The fluid runs all values as one batch.
    until : quantity
        Horizon of the runs that measure queue and utilisation, over its second half [s]; 1000 base RTTs by default.
    left : float
        Share of their first difference in window at which flows count as equal.

    Returns
    -------
    WaiSweep

    Raises
    ------
    InputError
        If the scenario is not one link with equal long-lived HPCC flows, a W_AI is not above 0, an engine is unknown,
        the share is not between 0 and 1, or the horizon makes no sense.

    Notes
    -----
    HPCC (SIGCOMM 2019), 3.3 and A.3: N flows settle at U = eta + N W_AI/(C T), with a queue of N W_AI - (1 - eta) C T
    beyond the boundary W_AI = (1 - eta) C T/N, and differences shrink by eta/U in each base RTT. Time to fairness is
    that of the fewest flows that fill the link, one half of them at four times the rate of the other, at the target
    utilisation: more flows are faster, so that this is what a W_AI for many flows costs few.

    Examples
    --------
    >>> scenario = fc.incast(16, rate="100Gbps", scheme=fc.HPCC())
    >>> found = fc.studies.wai_sweep(scenario, ["80B", "300B"], engines=["fluid"])
    >>> round(found["queue_bytes.mean"].sel(engine="fluid", w_ai=300).item())  # 16 x 300 B less 5 % of 52.3 KB
    2185
    """
    scenario = resolve(scenario)
    first = solve_equilibrium(scenario)
    if any(math.isfinite(flow.size) for flow in scenario.flows):
        raise InputError(
            "size: finite flows end, and leave nothing to equilibrium; give long-lived ones, without size="
        )
    values = _values(w_ai)
    if not 0 < left < 1:
        raise InputError(f"left: {left:g} is no share of a difference; write a number between 0 and 1")
    chosen = [engine for engine in ENGINES if engine in _known(engines)]
    horizon = RTTS * first.base_rtt if until is None else until
    uneven = uneven_flows(scenario)
    fixed_points = [solve_equilibrium(with_increase(scenario, float(value))) for value in values]
    times = np.array([solve_equilibrium(with_increase(uneven, float(value))).fairness_time(left) for value in values])
    found = {CLOSED: _closed(fixed_points, times)}
    if "fluid" in chosen:
        found["fluid"] = _fluid(scenario, uneven, values, times, horizon, left)
    if "packet" in chosen:
        found["packet"] = _packet(scenario, uneven, values, times, horizon, left)
    return WaiSweep(_dataset(found, values, first, scenario, uneven, left))


def with_increase(scenario: Scenario, w_ai: Any) -> Scenario:
    """The scenario with another W_AI for all its HPCC flows [bytes]; it may be traced."""
    flows = (
        dataclasses.replace(flow, scheme=dataclasses.replace(flow.scheme, w_ai=w_ai, rate_ai=None))
        for flow in scenario.flows
    )
    return dataclasses.replace(scenario, flows=tuple(flows))


def uneven_flows(scenario: Scenario) -> Scenario:
    """The fewest flows that fill the link, half of them at 4 times the rate of the rest, together at the target.

    Parameters
    ----------
    scenario : Scenario
        Resolved; its first flow is the model of all.

    Returns
    -------
    Scenario
        Two classes of flows: one flow each if a NIC can send 0.8 of the target.
    """
    flow, total = scenario.flows[0], scenario.flows[0].scheme.eta * scenario.links[0].rate
    count = math.ceil(SPLIT * total / flow.line_rate * (1 - 1e-9))
    halves = (
        dataclasses.replace(
            flow,
            initial_rate=share * total / count,
            multiplicity=float(count),
            start=0.0,
            size=math.inf,
            name="",
            source="",
        )
        for share in (SPLIT, 1 - SPLIT)
    )
    return resolve(dataclasses.replace(scenario, flows=tuple(halves)))


def _values(w_ai: Any) -> np.ndarray:
    if isinstance(w_ai, str) or not isinstance(w_ai, (Sequence, np.ndarray)) or not len(w_ai):
        raise InputError(f"w_ai: {repr(w_ai)[:40]} is no list of values; write for example ['25B', '80B', '150B']")
    values = np.array([quantity(value, SIZE, f"w_ai[{i}]") for i, value in enumerate(w_ai)], dtype=np.float64)
    bad = np.flatnonzero(~(np.isfinite(values) & (values > 0)))
    if bad.size:
        raise InputError(f"w_ai[{bad[0]}]: {values[bad[0]]:g} B; give finite values above 0: 0 never makes flows equal")
    return np.unique(values)


def _known(engines: Sequence[str]) -> Sequence[str]:
    if isinstance(engines, str) or not isinstance(engines, Sequence):
        raise InputError(f"engines: {repr(engines)[:40]} is no list; write for example ['fluid', 'packet']")
    unknown = next((engine for engine in engines if engine not in ENGINES), None)
    if unknown is not None:
        raise InputError(f"engines: {str(unknown)[:20]!r} is unknown; write fluid or packet")
    return engines


def _closed(fixed_points: list[FixedPoint], times: np.ndarray) -> dict[str, np.ndarray]:
    queue = np.array([at.queue for at in fixed_points])
    used = np.array([min(at.utilisation, 1.0) for at in fixed_points])
    return {"queue_bytes.mean": queue, "queue_bytes.p95": queue, "utilisation": used, "fairness_time": times}


def _fluid(
    scenario: Scenario, uneven: Scenario, values: np.ndarray, times: np.ndarray, until: Any, left: float
) -> dict[str, np.ndarray]:
    """Run one batch for the queue, and one, sampled flow by flow, for the time to fairness."""
    over = {"w_ai": values}
    at_equilibrium = sweep(lambda w_ai: with_increase(scenario, w_ai), over, until=until, estimate_error=False).dataset
    batch = batch_of(lambda w_ai: with_increase(uneven, w_ai), Grid(over))
    horizon = PATIENCE["fluid"] * float(times.max())
    samples = min(_SAMPLES, math.ceil(_SHORTEST * horizon / float(times.min())))
    plan = plan_of(batch.network, until=horizon, samples=samples)
    needed = history_bytes(batch.network, plan, len(values))
    require(needed, limit(), f"w_ai: to remember the delays of {len(values)} values takes", "give fewer")
    with Bar(f"sweeping {len(values)} uneven starts", plan.steps, "steps") as bar:
        outcome, _, _ = execute(batch.network, plan, points=len(values), full=True, segments=_SEGMENTS, report=bar)
    at, window = np.arange(plan.samples) * (plan.stride * plan.dt), outcome.trace["window"]
    return {
        "queue_bytes.mean": at_equilibrium["queue_bytes.mean"].values,
        "queue_bytes.p95": at_equilibrium["queue_bytes.p95"].values,
        "utilisation": at_equilibrium["utilisation"].values,
        "fairness_time": np.array([_equal_after(at, window[:, :, k], left) for k in range(len(values))]),
    }


def _packet(
    scenario: Scenario, uneven: Scenario, values: np.ndarray, times: np.ndarray, until: Any, left: float
) -> dict[str, np.ndarray]:
    """Two runs for each value, each flow with a host of its own."""
    found: dict[str, list[float]] = {name: [] for name in QUANTITIES}
    with Bar("simulating packets", 2 * len(values), "runs") as bar:
        for k, (value, time) in enumerate(zip(values, times, strict=True)):
            summary = simulate(with_increase(scenario, float(value)), until, engine="packet").summary
            found["queue_bytes.mean"].append(summary["queue_bytes"]["mean"])
            found["queue_bytes.p95"].append(summary["queue_bytes"]["p95"])
            found["utilisation"].append(summary["utilisation"])
            bar((2 * k + 1) / (2 * len(values)))
            trace = simulate(with_increase(uneven, float(value)), PATIENCE["packet"] * float(time), engine="packet")
            window = trace["window"].values
            halves = window.reshape(len(window), 2, -1).mean(axis=2)
            found["fairness_time"].append(_equal_after(trace["time"].values, halves, left, smoothed=_SMOOTHED))
            bar((k + 1) / len(values))
    return {name: np.array(column) for name, column in found.items()}


def _equal_after(time: np.ndarray, window: np.ndarray, left: float, *, smoothed: int = 1) -> float:
    """Time until the difference of two windows (samples, 2), averaged, is down to a share of its first [s]; or NaN.

    Between samples that are not averaged it shrinks exponentially.
    """
    difference = window[:, 0] - window[:, 1]
    apart = np.abs(np.convolve(difference, np.ones(smoothed) / smoothed, mode="valid"))
    middle = time[smoothed // 2 :]
    limit = left * abs(float(difference[0]))
    close = np.flatnonzero(apart <= limit)
    if not close.size:
        return math.nan
    k = int(close[0])
    if k == 0 or smoothed > 1 or apart[k] == 0:
        return float(middle[k])
    share = math.log(apart[k - 1] / limit) / math.log(apart[k - 1] / apart[k])
    return float(middle[k - 1] + share * (middle[k] - middle[k - 1]))


def _dataset(
    found: dict[str, dict[str, np.ndarray]],
    values: np.ndarray,
    first: FixedPoint,
    scenario: Scenario,
    uneven: Scenario,
    left: float,
) -> xr.Dataset:
    variables: dict[str, Any] = {
        name: (
            ("engine", "w_ai"),
            np.array([each[name] for each in found.values()]),
            {"units": unit, "long_name": text},
        )
        for name, (unit, text) in QUANTITIES.items()
    }
    variables["boundary"] = ((), first.boundary, {"units": "bytes", "long_name": "largest W_AI without a queue"})
    return xr.Dataset(
        variables,
        {"engine": list(found), "w_ai": ("w_ai", values, {"units": "bytes", "long_name": "additive increase W_AI"})},
        {
            "flows": sum(flow.multiplicity for flow in scenario.flows),
            "uneven_flows": sum(flow.multiplicity for flow in uneven.flows),
            "left": left,
            "base_rtt_s": first.base_rtt,
            "eta": scenario.flows[0].scheme.eta,
        },
    )
