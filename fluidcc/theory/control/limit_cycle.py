"""Long-run behaviour of a scenario's fluid: equilibrium or lasting oscillation, its amplitude and period.

The fluid is integrated window by window until its oscillations are steady (`control.settling`). Numbers come from
every step of the last window, so that they do not depend on an output grid.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import xarray as xr

from fluidcc.engines.fluid.engine import Continued, with_room
from fluidcc.engines.fluid.network import Network, network_of
from fluidcc.engines.fluid.plan import Plan, plan_of
from fluidcc.engines.fluid.run import StepError, both, shrinks
from fluidcc.errors import InputError
from fluidcc.progress import Bar
from fluidcc.results.display import draw, label, shown, span
from fluidcc.results.metrics import upward_crossings
from fluidcc.results.result import DatasetResult, Row
from fluidcc.scenario.display import name_text
from fluidcc.scenario.model import Scenario, resolve
from fluidcc.surface import constructor, public
from fluidcc.theory.control.settling import AGREE, SMALLEST, Array, kinds
from fluidcc.units import TIME, quantity, show

_LAGS = 200  # longest lags in the first windows; DCQCN's cycles take about 40
_FEWEST = 8  # periods in a window, or it is made longer
_PATTERN = 4  # crossings of the mean within one period, at most
_NOTICED = 1e-5  # of a queue: a fall that is no rounding
_REGULAR = 0.02  # standard deviation of the periods of a cycle, in periods


@constructor()
@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class LimitCycle(DatasetResult):
    """Long-run behaviour of the most loaded queue, made by `limit_cycle`.

    Parameters
    ----------
    dataset : xarray.Dataset
        The last window, at every step: ``queue`` (time) [bytes] and ``rate`` (time, flow) [bytes/s].
    kind : str
        "equilibrium", "cycle", "irregular" (steady in size, or not even that, but never the same twice), "growing" or
        "decaying" (not settled when time was up), "unsettled" (nor known to be either).
    link : str
        The link with the largest mean queue.
    low, high, mean : float
        Of its queue over the last window; the mean over whole periods [bytes].
    period, period_spread : float
        Mean and standard deviation of the periods [s]; NaN without at least two. If "irregular", of the times between
        upward crossings of the mean.
    rates : tuple of float
        Mean rate of each flow, over whole periods [bytes/s].
    settled_at : float
        Time at which the last window began [s].
    discretisation_error : dict
        ``peak_to_peak_rel`` and ``period_rel``, relative differences to the run with half the step, and
        ``as_expected``, whether they shrink as the method's order says; None at equilibrium.
    """

    KEPT: ClassVar[tuple[str, ...]] = ("time", "flow")

    kind: str
    link: str
    low: float
    high: float
    mean: float
    period: float
    period_spread: float
    rates: tuple[float, ...]
    settled_at: float
    discretisation_error: StepError

    @property
    def peak_to_peak(self) -> float:
        """Largest less smallest queue [bytes]."""
        return self.high - self.low

    def __repr__(self) -> str:
        """Show the kind, the queue's range and the period."""
        numbers = f"queue {span('queue_bytes', [self.low, self.high])}, period {shown('period_s', self.period)}"
        return f"<LimitCycle {name_text(self.link)}: {self.kind}, {numbers}>"

    def _rows(self) -> list[Row]:
        skipped = ("kind", "link")
        return [(label(key), shown(key, value)) for key, value in self._table().items() if key not in skipped]

    def _table(self) -> dict[str, Any]:
        """`as_dict` with the queue's numbers one by one."""
        found = self.as_dict()
        queue = {f"queue_{name}_bytes": value for name, value in found.pop("queue_bytes").items()}
        return queue | found

    @public()
    def as_dict(self) -> dict[str, Any]:
        """Numbers in SI, with the unit in the key; None where there is none."""
        return {
            "kind": self.kind,
            "link": self.link,
            "queue_bytes": {"min": self.low, "max": self.high, "mean": self.mean, "peak_to_peak": self.peak_to_peak},
            "period_s": _finite(self.period),
            "period_spread_s": _finite(self.period_spread),
            "rate_bytes_per_s": list(self.rates),
            "settled_at_s": self.settled_at,
            "discretisation_error": self.discretisation_error,
        }

    @public()
    def plot(self, periods: float = 2.0, *, title: str | None = None) -> Any:
        """Queue and rates over some periods, and the queue against the sum of the rates.

        Parameters
        ----------
        periods : float
            How many to draw, from the end of the run.
        title : str
            Above the picture; one that says what it is if not given.

        Returns
        -------
        fluidcc.plotting.style.Picture
        """
        return draw("plot_cycle", self, periods, title=title)


@public()
def limit_cycle(
    scenario: Scenario,
    until: Any = "4s",
    *,
    window: Any = None,
    dt: Any = None,
    method: str = "heun",
    estimate_error: bool = True,
) -> LimitCycle:
    """Integrate a scenario's fluid until its oscillation is steady.

    Parameters
    ----------
    scenario : Scenario
    until : quantity
        Time at which to give up [s].
    window : quantity
        Length of the windows that are compared [s]; 200 longest lags by default. It doubles while one holds fewer than
        eight periods.
    dt, method
        As in `simulate`.
    estimate_error : bool
        Whether to do it again with half the step.

    Returns
    -------
    LimitCycle
        Its ``kind`` is "equilibrium" or "cycle" only if three successive windows say so (`control.settling.kinds`).

    Raises
    ------
    InputError
        If the scenario or an option makes no sense, or the run would end before three windows.

    Examples
    --------
    >>> import fluidcc as fc
    >>> fc.limit_cycle(fc.incast(8)).kind
    'equilibrium'
    """
    scenario = resolve(scenario)
    network = network_of(scenario)
    options = {"until": until, "dt": dt, "method": method, "halving": estimate_error}
    plan = plan_of(network, **options)
    lags = [float(np.max(lag)) for lag in (network.marking_lag, network.own_lag) if lag is not None]
    width = _LAGS * max(lags) if window is None else quantity(window, TIME, "window")
    horizon = quantity(until, TIME, "until")
    if not plan.dt <= width <= horizon / 3:
        raise InputError(
            f"until: {show(horizon, TIME)} holds no three windows of {show(width, TIME)}; "
            "give a longer run, or a shorter window"
        )
    work = 1.0 if not estimate_error else 3.5 if plan.coarsens else 7.0
    with Bar(f"settling, at most {show(horizon, TIME)}", round(work), "runs") as bar:

        def settle(other: Callable[[Plan], Plan], begun: float, part: float) -> _Found:
            def report(share: float) -> None:
                bar((begun + part * share) / work)

            def job(allowance: float | None) -> _Found:
                made = plan_of(network, **options, queueing_allowance=allowance)
                return _settle(network, other(made), width, horizon, report)

            return with_room(job)

        found = settle(lambda made: made, 0, 1)
        error: StepError = {"peak_to_peak_rel": None, "period_rel": None, "as_expected": None}
        if estimate_error and found.kind != "equilibrium":
            finer = settle(Plan.halved, 1, 2)
            if plan.coarsens:
                runs, reported = (settle(Plan.doubled, 3, 0.5), found, finer), 1
            else:
                runs, reported = (found, finer, settle(lambda made: made.halved().halved(), 3, 4)), 0
            error = _step_error(runs, reported, plan.method)
    name = scenario.links[found.link].name or f"link {found.link}"
    names = [flow.name or f"flow {i}" for i, flow in enumerate(scenario.flows)]
    counts = [flow.multiplicity for flow in scenario.flows]
    data = xr.Dataset(
        {
            "queue": ("time", found.queue, {"units": "bytes", "long_name": f"queue of {name}"}),
            "rate": (("time", "flow"), found.rate, {"units": "bytes/s", "long_name": "sending rate"}),
        },
        coords={
            "time": ("time", found.times, {"units": "s", "long_name": "time"}),
            "flow": names,
            "multiplicity": ("flow", np.array(counts), {"units": "1", "long_name": "flows of the class"}),
            "crosses": ("flow", [found.link in flow.path for flow in scenario.flows]),
        },
    )
    return LimitCycle(
        data,
        found.kind,
        name,
        found.low,
        found.high,
        found.mean,
        found.period,
        found.spread,
        tuple(float(rate) for rate in found.rates),
        float(found.times[0]),
        error,
    )


class _Found(NamedTuple):
    kind: str
    link: int
    low: float
    high: float
    mean: float
    period: float
    spread: float
    rates: Array
    times: Array
    queue: Array
    rate: Array
    run: Any = None  # that goes on from there


def last_period(network: Network, rows: Callable[[Any], Array], samples: int, until: Any = "4s") -> tuple[Array, float]:
    """States over one period at the end of a run, and the period [s].

    Parameters
    ----------
    network : Network
        Of plain numbers.
    rows : callable
        The states (n,) of a run's state that are wanted.
    samples : int
        Of the period, about; no more than it has steps.
    until : quantity
        Time at which to give up [s].

    Returns
    -------
    ndarray, shape (count, n)
        At equal times; the first is one period before the end.
    float

    Raises
    ------
    InputError
        If the run does not end in a cycle.
    """

    def job(allowance: float | None) -> tuple[Array, float]:
        plan = plan_of(network, until=until, dt=None, method="heun", halving=False, queueing_allowance=allowance)
        lags = [float(np.max(lag)) for lag in (network.marking_lag, network.own_lag) if lag is not None]
        found = _settle(network, plan, _LAGS * max(lags), quantity(until, TIME, "until"), lambda share: None)
        if found.kind != "cycle":
            raise InputError(f"no cycle: from its start the run ends as {found.kind!r}")
        stride = max(1, int(found.period / plan.dt) // samples)
        course = []
        for _ in range(math.ceil(found.period / (stride * plan.dt)) + 1):
            course.append(rows(found.run.state))
            found.run.window(stride)
        there = np.arange(len(course)) * stride * plan.dt
        times = np.arange(samples) / samples * found.period
        return np.stack([np.interp(times, there, row) for row in np.transpose(course)], axis=1), found.period

    return with_room(job)


def _settle(network: Network, plan: Plan, width: float, horizon: float, report: Any) -> _Found:
    """Go on window by window until the oscillations are steady, or time is up."""
    run, oscillations, courses = Continued(network, plan), [], []
    packet = float(np.max(network.packet))
    steps = round(width / plan.dt)
    while True:
        outcome, times = run.follow(steps)
        link = int(np.argmax(outcome.summary.queue_mean[:, 0]))
        queue = outcome.queue[:, link, 0]
        if not np.isfinite(queue).all():
            raise InputError("limit_cycle: the run is not finite; give a smaller dt")
        mean, low, high = float(np.mean(queue)), float(np.min(queue)), float(np.max(queue))
        rate = outcome.trace["rate"][:, :, 0]
        # An empty queue stands still while rates are on their way.
        oscillations.append([high - low, *np.ptp(rate, axis=0)])
        scale = max(mean, packet)
        crossings = upward_crossings(times, queue, mean)
        found, known = kinds(np.array(oscillations), np.array([scale, *np.maximum(rate.mean(axis=0), 1.0)]))
        kind = next((str(each) for each in found if each != "equilibrium"), "equilibrium")
        settled = bool(known.all())
        courses.append((float(times[0]), low, high))
        if _grows(courses) and (np.ptp(rate, axis=0) <= AGREE * np.abs(rate).max(axis=0)).all():
            kind = "growing"
            break
        ends = run.steps * plan.dt
        report(min(ends / horizon, 1.0))
        enough = len(crossings) > _FEWEST or high - low <= SMALLEST * scale
        drains = _falls(courses)  # however small a part of it goes in a window
        kind = "decaying" if drains else kind
        if (settled and enough and not drains) or ends + steps * plan.dt > horizon:
            break
        if not enough and ends + 6 * steps * plan.dt <= horizon:  # three of twice the length
            steps, oscillations = 2 * steps, []
    report(1.0)
    period, spread, regular = _period(crossings) if high - low > SMALLEST * scale else (math.nan, math.nan, True)
    kind = "irregular" if kind == "cycle" and not regular else str(kind)
    whole = _whole(times, crossings)
    return _Found(
        kind,
        link,
        low,
        high,
        float(queue[whole].mean()),
        period,
        spread,
        rate[whole].mean(axis=0),
        times,
        queue,
        rate,
        run,
    )


def _grows(ends: list[tuple[float, float, float]]) -> bool:
    """Check whether a queue rose equally fast over four windows, so that it would grow without limit.

    ``ends`` holds each window's beginning [s], and its least and largest queue.
    """
    if len(ends) < 4:
        return False
    times, lows, highs = np.array(ends[-4:]).T
    speeds = np.diff(lows) / np.diff(times)
    rises = speeds.min() > 0 and lows[-1] > (1 + SMALLEST) * lows[-2] and (lows[1:] >= highs[:-1]).all()
    return bool(rises and np.ptp(speeds) <= AGREE * speeds.max())


def _falls(ends: list[tuple[float, float, float]]) -> bool:
    """Check whether a queue fell equally fast over three windows, as a draining one does; ``ends`` as in `_grows`."""
    if len(ends) < 3:
        return False
    times, lows, highs = np.array(ends[-3:]).T
    speeds = -np.diff(lows) / np.diff(times)
    falls = (lows[:-1] - lows[1:]).min() > _NOTICED * highs[-1] and (highs[1:] <= lows[:-1] * (1 + _NOTICED)).all()
    return bool(falls and np.ptp(speeds) <= AGREE * speeds.max())


def _period(crossings: Array) -> tuple[float, float, bool]:
    """Mean and standard deviation of the periods [s], and whether they are all the same.

    A signal may cross its mean several times in a period: the fewest crossings after which the times repeat make one.
    """
    for count in range(1, _PATTERN + 1):
        gaps = crossings[count:] - crossings[:-count]
        if len(gaps) >= 2 and np.std(gaps) <= _REGULAR * np.mean(gaps):
            return float(np.mean(gaps)), float(np.std(gaps)), True
    gaps = np.diff(crossings)
    return (float(np.mean(gaps)), float(np.std(gaps)), False) if len(gaps) else (math.nan, math.nan, False)


def _whole(times: Array, crossings: Array) -> slice:
    """Samples of whole periods; all if there are none."""
    if len(crossings) < 2:
        return slice(None)
    first, last = np.searchsorted(times, crossings[[0, -1]])
    return slice(int(first), int(last))


def _step_error(runs: Sequence[_Found], reported: int, method: str) -> StepError:
    """Estimate step errors from three runs, each with half the step of the last; the first or second is reported."""
    pairs = list(itertools.pairwise(runs))
    amplitudes = [_relative(ours.high - ours.low, theirs.high - theirs.low) for ours, theirs in pairs]
    periods = [_relative(ours.period, theirs.period) for ours, theirs in pairs]
    alike = [shrinks(before, after, method) for before, after in (amplitudes, periods)]
    return {
        "peak_to_peak_rel": amplitudes[reported],
        "period_rel": periods[reported],
        "as_expected": both(alike) if len({run.kind for run in runs}) == 1 else False,
    }


def _relative(ours: float, theirs: float) -> float | None:
    scale = abs(theirs)
    return _finite(abs(ours - theirs) / scale) if scale > 0 else None


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
