"""Unknown parameters from a measured trace: `fit`, by simulated moments, or by least squares on the trajectory."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fluidcc.engines.hybrid.build import check as check_hybrid
from fluidcc.engines.run_many import Place, run_all
from fluidcc.errors import InputError
from fluidcc.progress import Bar
from fluidcc.scenario.model import Scenario, resolve
from fluidcc.studies.fitting import moments, shares
from fluidcc.studies.fitting.measured import Measured, measured_of
from fluidcc.studies.fitting.model import (
    OF_PACKETS,
    Make,
    Space,
    draws_chance,
    fluid_run,
    link_of,
    maker_of,
    random_run,
    space_of,
)
from fluidcc.studies.fitting.moments import Solution, even, features_of
from fluidcc.studies.fitting.result import WIDEST, Estimate, Fit, combinations, in_words
from fluidcc.studies.fitting.shares import Shares
from fluidcc.surface import public
from fluidcc.units import TIME, interval, show, whole

ENGINES = ("hybrid", "fluid", "packet")
_SEEDS = 12  # runs at the estimate, for the picture
_FIRST_SEED = 1
_HYBRID_RUNS, _OTHER_RUNS = 700, 300
_LEAST_RUNS = 100  # for each unknown
_SHARES_RUNS = 160
_MOST_RUNS = 1_000_000
_STRANGE = 1.6  # residual beyond which the model does not explain the trace
_FAR = 0.25  # of the trajectory, beyond which its moments are fitted
_MOST_SAMPLES = 4000  # of a trajectory
_EDGE = 1e-3  # of the range, at which an interval ends at its bound
# Of least squares on a trajectory.
_STARTS = 16  # for each unknown
_POLISHED = 3
_INTEGRALS, _TRAJECTORIES = 12, 20  # steps of each
_STEP = 2e-3  # of the unit cube, of the differences
_UNFELT = 1e-3  # of the strongest direction's slope: what is weaker is the error of the differences
_PART = 0.05  # of a direction, below which an unknown has no part in it
_LEAST_NOISE = 1e-4  # of the signals: a trajectory is integrated in steps
# 97.5 % of a mean's deviations over the error by lags of a share b of the trace, an eighth (Kiefer and Vogelsang,
# Econometric Theory 21, 2005: 1.96 + 2.9694 b + 0.416 b^2 - 0.5324 b^3).
_QUANTILE = 2.34


@dataclasses.dataclass(frozen=True)
class _Problem:
    """Measured samples, and the model that is fitted to them."""

    stretch: Any  # Measured, or Shares
    make: Make
    middle: Scenario  # in the middle of all ranges
    space: Space
    link: int
    window: tuple[float, float]
    engine: str


@dataclasses.dataclass
class _Batches:
    """Numbers of points of a design, batch by batch, with a bar over all."""

    numbers: Callable[[tuple[np.ndarray, int], Place], np.ndarray]
    total: int
    bar: Bar
    done: int = 0

    def __call__(self, points: np.ndarray, seed: int) -> np.ndarray:
        before, self.done = self.done, self.done + len(points)
        jobs = [*zip(points, range(seed, seed + len(points)), strict=True)]
        report = lambda share, *_: self.bar(min((before + share * len(points)) / self.total, 1.0))  # noqa: E731
        return np.array(run_all(self.numbers, jobs, report=report))


@public()
def fit(
    trace: Any,
    make_scenario: Any,
    over: Mapping[str, Any],
    *,
    window: Any = None,
    engine: str | None = None,
    link: str | None = None,
    runs: int | None = None,
) -> Fit:
    """Estimate unknown parameters from a measured queue, measured rates, or counters.

    For schemes with chance (DCQCN) by simulated moments on the hybrid engine: moments, quantiles and spectra. For
    others by least squares on the trajectory of the fluid, and where none stays near what was measured, as with
    oscillations that fall out of step, by the fluid's moments. Counters by the shares of packets that are marked and
    that lead to CNPs, in packets.

    Parameters
    ----------
    trace : Trace, path or Shares
        What was measured: a run, its NetCDF, or CSV with columns such as ``time_us``, ``queue_bytes``, ``rate_Gbps``.
        Time 0 is the scenario's; of what starts later than it lasts, the first sample. Or what counters show over
        seconds, of ports and NICs that are set as the scenario says.
    make_scenario : callable or Scenario
        ``make_scenario(**values)`` as of `fluidcc.sweep`; or a scenario, whose flows' scheme (or marking, or
        ``delay``) has parameters of the names in ``over``; ``burst`` and ``jitter`` are its own.
    over : mapping
        The unknowns: a pair of bounds for each; searched in logarithms where both are above 0.
    window : pair of quantity, or text "A:B"
        What is fitted [s]; by default all with the fluid, else the second half.
    engine : {"hybrid", "fluid", "packet"}
        By default the hybrid if flows react to marks and it knows their scheme, else the fluid. Packets, by simulated
        moments too, take many times as long, and are for schemes that the fluid describes too coarsely, and for
        ``burst`` and ``jitter`` of senders, which only they show.
    link : str
        Whose queue was measured; by default that of the trace, or else the one that is shared most.
    runs : int
        For moments: 700 of the hybrid, 300 of others if not given; 160 with `Shares`.

    Returns
    -------
    Fit

    Raises
    ------
    InputError
        If the trace, the scenario or a range makes no sense, or there are more unknowns than shares.
    """
    make = maker_of(make_scenario, tuple(over) if isinstance(over, Mapping) else ())
    space = space_of(over)
    middle = resolve(make(**space.values(np.full(len(space.names), 0.5))))
    if isinstance(trace, Shares):
        of_traces = {"window": window, "link": link, "engine": None if engine == "packet" else engine}
        if given := next((name for name, value in of_traces.items() if value is not None), None):
            raise InputError(f"{given}: counters have no time and no link, and are fitted by packets; leave it out")
        return _by_shares(trace, make, middle, space, runs)
    of_packets = [name for name in space.names if name in OF_PACKETS]
    if engine is None:
        engine = "packet" if of_packets else "hybrid" if draws_chance(middle) else "fluid"
    if engine not in ENGINES:
        raise InputError(f"engine: {str(engine)[:20]!r} is unknown; write {', '.join(ENGINES)}")
    if of_packets and engine != "packet":
        raise InputError(
            f"over {of_packets[0]}: a queue of the {engine} does not show the packets of senders, and cannot tell it; "
            "write engine='packet'"
        )
    least = _LEAST_RUNS * len(space.names)
    usual = max(_HYBRID_RUNS if engine == "hybrid" else _OTHER_RUNS, least)
    runs = usual if runs is None else whole(runs, least, _MOST_RUNS, "runs")
    measured = _from_start(measured_of(trace, link))
    opens, closes = _window_of(measured, window, 0.0 if engine == "fluid" else 0.5)
    stretch = measured.between(opens, closes)
    if len(stretch.time) < 2:
        raise InputError(f"window: {show(opens, TIME)}:{show(closes, TIME)} holds no samples; widen it")
    at = link_of(middle, link or measured.link)
    problem = _Problem(stretch, make, middle, space, at, (opens, closes), engine)
    if engine == "fluid":
        found = _by_trajectory(problem)
        if found.residual < _FAR:
            return found
        said = f"no trajectory of the fluid stays near the trace ({found.residual:.0%} off): its moments were fitted"
        return _by_moments(problem, runs, said)
    if engine == "hybrid":
        check_hybrid(middle)
    return _by_moments(problem, runs)


def _from_start(measured: Measured) -> Measured:
    """Times from the first sample on, of what starts later than it lasts."""
    first, span = float(measured.time[0]), float(measured.time[-1] - measured.time[0])
    if first < 0 or first > span:
        return dataclasses.replace(measured, time=measured.time - first + measured.interval)
    return measured


def _window_of(measured: Measured, window: Any, skipped: float) -> tuple[float, float]:
    """Return the window that is fitted [s]; by default what follows after a share of the trace."""
    first, end = float(measured.time[0]), float(measured.time[-1])
    given = interval(window, "window")
    opens, closes = given or (max(first, skipped * end), end)
    if not 0 <= opens < closes <= end + 1.5 * measured.interval:
        raise InputError(
            f"window: {show(opens, TIME)}:{show(closes, TIME)} is not within the trace, of {show(end, TIME)}"
        )
    return opens, closes


def _by_moments(problem: _Problem, runs: int, *said: str) -> Fit:
    """Many runs, and the parameters at which their moments are those that were measured."""
    space, stretch = problem.space, even(problem.stretch)
    packet = float(problem.middle.packet_size + problem.middle.header_bytes)
    features = features_of(stretch, packet)
    time = np.arange(round(stretch.time[-1] / stretch.interval) + 1) * stretch.interval
    keep = slice(len(time) - len(stretch.time), None)

    def simulated(at: np.ndarray, seed: int) -> Measured:
        scenario = resolve(problem.make(**space.values(at)))
        if problem.engine == "fluid":
            run = fluid_run(scenario, float(time[-1]), stretch.interval, problem.link, stretch)
        else:
            run = random_run(scenario, problem.engine, seed, time, problem.link, stretch)
        queue, rates = (None if part is None else part[: len(time)][keep] for part in (run.queue, run.rates))
        return dataclasses.replace(run, time=stretch.time, queue=queue, rates=rates)

    def numbers(job: tuple[np.ndarray, int], _: Place) -> np.ndarray:
        try:
            return features(simulated(*job))
        except InputError:  # a combination that makes no sense, such as kmin beyond kmax
            return np.full(len(features.names), np.nan)

    # What makes no sense anywhere is said by a run in the middle, which also compiles the loop once.
    simulated(np.full(len(space.names), 0.5), _FIRST_SEED)
    with Bar(f"fitting {', '.join(space.names)}", runs, "runs") as bar:
        run = _Batches(numbers, runs, bar)
        # A fluid queue is none of packets: what is between them is not chance.
        errors = np.zeros(len(features.names)) if problem.engine == "packet" else features.errors(stretch)
        solution = moments.minimise(
            run, features(stretch), len(space.names), runs=runs, errors=errors, first_seed=_FIRST_SEED
        )
        seeds = range(_FIRST_SEED, _FIRST_SEED + (1 if problem.engine == "fluid" else _SEEDS))
        fitted = tuple(run_all(lambda seed, _: simulated(solution.at, seed), seeds))
    words = list(said)
    if solution.residual > _STRANGE:
        worst = [features.names[i] for i in np.argsort(-np.abs(solution.misfits))[:3]]
        words.append(
            f"the model does not explain the trace (residual {solution.residual:.1f}): {', '.join(worst)} differ most; "
            "intervals are wider for it, and still count on the model"
        )
    return _result(solution, problem, run.done, stretch, fitted, words)


def _by_shares(counted: Shares, make: Make, middle: Scenario, space: Space, runs: int | None) -> Fit:
    """The parameters at which packets have the shares that were counted, at the load that was counted."""
    known, results = counted.values, len(counted.counts)
    if len(space.names) > results:
        few, many = ", ".join(known), ", ".join(space.names)
        raise InputError(f"over: {many} are more unknowns than was counted ({few}); leave {space.names[-1]} out")
    least = _LEAST_RUNS * len(space.names)
    most = max(_SHARES_RUNS, least) if runs is None else whole(runs, least, _MOST_RUNS, "runs")
    until = shares.duration(middle, counted)

    def together(at: np.ndarray, seed: int) -> np.ndarray:
        seeds = range(shares.TOGETHER * seed, shares.TOGETHER * (seed + 1))
        return np.stack([shares.run(make(**space.values(at)), counted, until, each) for each in seeds])

    def numbers(job: tuple[np.ndarray, int], _: Place) -> np.ndarray:
        try:
            return shares.numbers(together(*job))[: results + loads]
        except InputError:  # a combination that makes no sense, such as kmin beyond kmax
            return np.full(results + loads, np.nan)

    first = together(np.full(len(space.names), 0.5), 0)  # what makes no sense anywhere is said by it
    chance = float(first[:, 1].sum()) / next(whole for _, whole in counted.counts.values())
    points, loads = most // shares.TOGETHER, int(counted.workload is not None)  # flows without end make their own
    observed = np.log([*known.values(), counted.load or 1.0])[: results + loads]
    with Bar(f"fitting {', '.join(space.names)}", points, "points") as bar:
        run = _Batches(numbers, points, bar)
        solution = moments.minimise(
            run, observed, len(space.names), runs=points, errors=np.full(results, shares.ERROR),
            first_seed=_FIRST_SEED, chance=chance, known=loads,
        )  # fmt: skip
    words = [f"true only if hosts send {counted.workload} at random, and nothing else"] * loads
    if solution.residual > _STRANGE:
        far = f"(residual {solution.residual:.1f})"
        words.insert(
            0, f"the model does not explain the counters {far}: hosts send something else, or are set otherwise"
        )
    problem = _Problem(counted, make, middle, space, 0, (shares.SKIPPED * until, until), "packet")
    return _result(solution, problem, run.done * shares.TOGETHER, counted, (np.exp(solution.numbers),), words)


def _by_trajectory(problem: _Problem) -> Fit:
    """The parameters at which the fluid's queue and rates are nearest to the measured ones, at each time."""
    stretch, space = problem.stretch, problem.space
    stride = -(-len(stretch.time) // _MOST_SAMPLES)
    spacing = stretch.interval * stride
    count = int((stretch.time[-1] - stretch.time[0]) / spacing + 1e-9) + 1
    chosen = stretch.at(stretch.time[0] + spacing * np.arange(count)) if stride > 1 else stretch
    until = problem.window[1]
    calls = 0

    def simulated(at: np.ndarray) -> Measured:
        scenario = resolve(problem.make(**space.values(at)))
        return fluid_run(scenario, until, min(spacing, until / 50), problem.link, chosen).at(chosen.time)

    def columns(of: Measured) -> np.ndarray:
        parts = [part if part.ndim > 1 else part[:, None] for part in (of.queue, of.rates) if part is not None]
        return np.concatenate(parts, axis=1)

    observed = columns(chosen)
    scale = np.sqrt(np.nanmean(observed**2, axis=0))
    scale[~(scale > 0)] = 1.0

    def run(at: np.ndarray) -> np.ndarray:
        nonlocal calls
        calls += 1
        return columns(simulated(at)) / scale

    with Bar(f"fitting {', '.join(space.names)}", 100, "%") as bar:
        solution = nearest_trajectory(run, observed / scale, len(space.names), bar)
    return _result(solution, problem, calls, chosen, (simulated(solution.at),), [])


def _result(
    solution: Solution,
    problem: _Problem,
    runs: int,
    measured: Measured | Shares,
    fitted: tuple[Any, ...],
    words: list[str],
) -> Fit:
    space, below, above = problem.space, solution.low, solution.high
    values = space.values(solution.at)
    low, high = space.values(np.maximum(below, 0)), space.values(np.minimum(above, 1))
    estimate = {name: Estimate(float(values[name]), float(low[name]), float(high[name])) for name in space.names}
    within = dict(zip(space.names, (below > _EDGE) & (above < 1 - _EDGE) & solution.inside, strict=True))
    identifiable = {name: bool(within[name] and each.width < WIDEST) for name, each in estimate.items()}
    strengths, directions = combinations(solution.jacobian, space)
    source = "what was counted" if isinstance(measured, Shares) else "the trace"
    at_bounds = [
        f"{name}: its interval ends at a bound of the range searched; a wider range may hold it"
        for name, inside in within.items()
        if not inside
    ]
    return Fit(
        estimate=estimate,
        identifiable=identifiable,
        residual=solution.residual,
        words=(*in_words(strengths, directions, identifiable, source), *words, *at_bounds),
        singular_values=strengths,
        combinations=directions,
        engine=problem.engine,
        runs=runs,
        window=problem.window,
        measured=measured,
        fitted=fitted,
    )


def nearest_trajectory(
    run: Callable[[np.ndarray], np.ndarray], observed: np.ndarray, unknowns: int, report: Callable[[float], None]
) -> Solution:
    """Find the point of the unit cube whose trajectory is nearest.

    Parameters
    ----------
    run : callable
        From a point to its signals (time, signals), each divided by its scale.
    observed : ndarray
        What was measured, likewise; NaN where nothing was.
    unknowns : int
    report : callable
        Told the share done.

    Returns
    -------
    Solution
        Its residual is what is left, as a share of the measured signals' root mean square.
    """
    from scipy.optimize import least_squares
    from scipy.stats import qmc

    there = np.isfinite(observed)
    starts = qmc.Halton(unknowns, rng=np.random.default_rng(0)).random(_STARTS * unknowns)
    most = len(starts) + _POLISHED * (_INTEGRALS + _TRAJECTORIES) * (unknowns + 1)
    calls = 0

    def left(at: np.ndarray) -> np.ndarray:
        nonlocal calls
        calls += 1
        report(min(calls / most, 0.99))
        return np.where(there, run(at) - np.where(there, observed, 0.0), 0.0)

    def integrated(at: np.ndarray) -> np.ndarray:
        return left(at).cumsum(axis=0)

    def polished(of: Callable[[np.ndarray], np.ndarray], start: np.ndarray, turns: int) -> Any:
        begin = np.clip(start, 0.01, 0.99)
        signals = lambda at: of(at).ravel()  # noqa: E731
        return least_squares(signals, begin, bounds=(0, 1), max_nfev=turns, diff_step=_STEP, xtol=1e-6)

    # Oscillations that are out of step agree nowhere in particular: their integrals lead to where they are in step.
    costs = [float((integrated(start) ** 2).sum()) for start in starts]
    near = [polished(integrated, start, _INTEGRALS).x for start in starts[np.argsort(costs)[:_POLISHED]]]
    best = min((polished(left, start, _TRAJECTORIES) for start in near), key=lambda one: one.cost)
    rest = best.fun.reshape(observed.shape)
    slopes = _slopes(left, best.x)
    sizes, directions = np.linalg.eigh(np.einsum("tsk,tsl->kl", slopes, slopes))
    felt = sizes > _UNFELT**2 * max(sizes.max(), 1e-300)
    inverse = (directions[:, felt] / sizes[felt]) @ directions[:, felt].T
    freedom = there.sum() / max(int(there.sum()) - unknowns, 1)
    spread = inverse @ _long_run(np.einsum("ts,tsk->tk", rest, slopes)) @ inverse * freedom + _LEAST_NOISE**2 * inverse
    reach = _QUANTILE * np.sqrt(np.maximum(np.diag(spread), 0))
    # What a direction without effect has a part in may be anywhere.
    lost = np.asarray((np.abs(directions[:, ~felt]) > _PART).any(axis=1))
    low, high = np.where(lost, 0.0, best.x - reach), np.where(lost, 1.0, best.x + reach)
    # Weighted so that the inverse of the information is what is uncertain along each direction.
    deviation = np.sqrt(np.maximum(np.linalg.eigvalsh(spread), 0)).max() / np.sqrt(
        max(np.linalg.eigvalsh(inverse).max(), 1e-300)
    )
    size = float(np.linalg.norm(np.where(there, observed, 0.0)))
    residual = float(np.linalg.norm(rest) / max(size, 1e-300))
    # Along what is not felt there is no slope but the error of the differences.
    clean = slopes.reshape(-1, unknowns) @ (directions[:, felt] @ directions[:, felt].T)
    jacobian = clean / max(deviation, 1e-300)
    return Solution(best.x, low, high, jacobian, residual, rest.ravel(), np.logical_not(lost))


def _slopes(signals: Callable[[np.ndarray], np.ndarray], at: np.ndarray) -> np.ndarray:
    """Derivatives by the unknowns (time, signals, unknowns), by central differences within the unit cube."""
    found = []
    for k in range(len(at)):
        ends = [at.copy(), at.copy()]
        ends[0][k], ends[1][k] = max(at[k] - _STEP, 0.0), min(at[k] + _STEP, 1.0)
        found.append((signals(ends[1]) - signals(ends[0])) / (ends[1][k] - ends[0][k]))
    return np.stack(found, axis=-1)


def _long_run(scores: np.ndarray) -> np.ndarray:
    """Variance of a sum of scores (time, unknowns), each like those before (Newey and West, Econometrica 55, 1987)."""
    count = len(scores)
    lags = max(1, round(count / 8))
    total = scores.T @ scores
    for lag in range(1, lags + 1):
        product = scores[lag:].T @ scores[:-lag]
        total += (1 - lag / (lags + 1)) * (product + product.T)
    values, vectors = np.linalg.eigh(total)
    least = float(np.trace(scores.T @ scores)) * 1e-6 / len(total)
    return (vectors * np.maximum(values, least)) @ vectors.T
