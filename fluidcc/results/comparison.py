"""One engine against another: the fluid or the hybrid against packets, over several seeds, and how they differ."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

import numpy as np
import xarray as xr
from numpy.lib.stride_tricks import sliding_window_view

from fluidcc.builders import toml_file as scenario_file
from fluidcc.contract.models import Crosscheck
from fluidcc.contract.registry import scheme_of
from fluidcc.contract.tolerance import Tolerance
from fluidcc.errors import InputError
from fluidcc.results.display import draw, label
from fluidcc.results.metrics import drain_time, settling_time, time_mean
from fluidcc.results.result import DatasetResult, Row
from fluidcc.results.schema import plain
from fluidcc.results.trace import Trace
from fluidcc.scenario.display import name_text
from fluidcc.scenario.model import Scenario
from fluidcc.surface import constructor, public
from fluidcc.units import TIME, quantity, show

SETTLED = 0.1  # share of the fair rate within which rates count as equal
_RESOLVED = 10  # samples that a drain time must last to be one

Measured = dict[str, Any]


def measured(
    scenario: Scenario, dataset: xr.Dataset, summary: dict[str, Any], traces: Sequence[Trace], side: str, width: float
) -> Measured:
    """Collect the compared quantities of one side, from a comparison's ``dataset`` and its summary.

    Parameters
    ----------
    scenario : Scenario
    dataset : Dataset
        As in `fluidcc.results.comparison.Comparison`.
    summary : dict
        Summary of the side, over the seeds.
    traces : sequence of Trace
        Traces of the side.
    side : str
        Name of the side, as in the dataset's names.
    width : float
        Interval over which rates are averaged for the settling time [s].
    """
    link = next(row for row in summary["links"] if row["name"] == dataset.attrs["link"])
    queue, rate = dataset[f"queue_{side}"], dataset[f"rate_{side}"]
    for seeds in ("seed", "seed_first"):
        if seeds in queue.dims:
            queue, rate = queue.mean(seeds), rate.mean(seeds)
    return {
        "queue": link["queue_bytes"],
        "rates": _ensemble_rates(scenario, summary["rate_bytes_per_s"]),
        "jain": summary["jain"],
        "drain_time_s": drain_time(queue),
        "settling_time_s": settling(scenario, dataset.attrs["link"], rate, width),
        "window_bytes": _steady_window(traces),
    }


def _ensemble_rates(scenario: Scenario, rates: Sequence[float]) -> list[float]:
    """Mean rates of flows that the scenario does not tell apart: each is as good a sample as another [bytes/s]."""
    alike: dict[Any, list[int]] = {}
    for i, flow in enumerate(scenario.flows):
        same = dataclasses.replace(flow, name="", source="", target="")
        alike.setdefault(repr(same), []).append(i)
    weights = [flow.multiplicity for flow in scenario.flows]
    means = (float(np.average([rates[i] for i in each], weights=[weights[i] for i in each])) for each in alike.values())
    return list(means)


def settling(scenario: Scenario, link: str, rate: xr.DataArray, width: float) -> float | None:
    """Time from the last start until the smoothed rates of the long-lived flows over a link come within `SETTLED` [s].

    Parameters
    ----------
    scenario : Scenario
    link : str
        Its name.
    rate : DataArray, dims (time, flow)
        [bytes/s]
    width : float
        Interval over which rates are averaged [s].

    Returns
    -------
    float or None
        None with fewer than two such flows, or if they never do.
    """
    index = [each.name or f"link {i}" for i, each in enumerate(scenario.links)].index(link)
    chosen = [i for i, f in enumerate(scenario.flows) if index in f.path and math.isinf(f.size)]
    if len(chosen) < 2:
        return None
    began = max(scenario.flows[i].start for i in chosen)
    # In NumPy: xarray's rolling mean takes ten times as long, and tuning asks for hundreds.
    times = rate.time.values
    values = rate.transpose("time", "flow").values[times >= began][:, chosen]
    times = times[times >= began]
    if len(times) < 2:
        return None
    step = float(times[1] - times[0])
    samples = max(1, round(width / step))
    if samples >= len(times):
        return None
    smooth = sliding_window_view(values, samples, axis=0).mean(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        gap = np.nan_to_num(np.ptp(smooth, axis=1) / smooth.mean(axis=1), nan=math.inf, posinf=math.inf)
    if bool((gap <= SETTLED).all()):
        return 0.0
    # The first time after the widest gap: later ones are those of the seeds' noise, which no finite ensemble is rid of.
    widest = int(np.argmax(gap))
    below = np.flatnonzero(gap[widest:] <= SETTLED)
    if not len(below):
        return None
    upto = slice(widest, widest + int(below[0]) + 1)
    time = settling_time(xr.DataArray(gap[upto], {"time": times[samples - 1 :][upto]}, "time"), SETTLED, 0.0)
    # The mean of an interval belongs to its middle.
    return time - (samples - 1) / 2 * step - began


def _steady_window(traces: Sequence[Trace]) -> float | None:
    """Mean window over flows, traces and the second half of the run [bytes]; None without windows."""
    if not all("window" in trace.dataset for trace in traces):
        return None
    means = []
    for trace in traces:
        window = trace["window"]
        half = window.sel(time=slice(float(window.time[-1]) / 2, None))
        means.append(float(time_mean(half).weighted(trace["multiplicity"]).mean()))
    return float(np.mean(means))


def differences(fluid: Measured, packet: Measured, least_queue: float, spacing: float) -> dict[str, float | None]:
    """Magnitudes of the differences, keys as in the command line; relative to the packets.

    None where neither side has a value, infinite where only one has. A queue below ``least_queue``, one packet,
    counts as one: what is left of an empty queue has no relative error. Drain times are not compared that samples
    ``spacing`` [s] apart do not resolve.
    """

    def relative(ours: float | None, theirs: float | None, least: float = 0.0) -> float | None:
        if ours is None or theirs is None:
            return None if ours is theirs else math.inf
        scale = max(abs(theirs), least)
        return abs(ours - theirs) / scale if scale > 0 else 0.0 if ours == theirs else math.inf

    # Where nothing is sent in the window on either side, nothing is compared.
    idle = not any(fluid["rates"]) and not any(packet["rates"])
    rates = [relative(a, b) for a, b in zip(fluid["rates"], packet["rates"], strict=True) if a or b]
    jain = (fluid["jain"], packet["jain"])
    drained = (fluid["drain_time_s"], packet["drain_time_s"])
    coarse = any(time is not None and time < _RESOLVED * spacing for time in drained)
    settled = (fluid["settling_time_s"], packet["settling_time_s"])
    queues = {
        key: None
        if idle and name in ("mean", "p95")
        else relative(fluid["queue"][name], packet["queue"][name], least_queue)
        for key, name in (("queue_mean_rel", "mean"), ("queue_p95_rel", "p95"), ("queue_peak_rel", "max_whole_run"))
    }
    return {
        **queues,
        "drain_time_rel": None if coarse else relative(*drained),
        "rate_rel_max": max((rate for rate in rates if rate is not None), default=None),
        "window_rel": relative(fluid["window_bytes"], packet["window_bytes"]),
        "jain_abs": None if None in jain else abs(jain[0] - jain[1]),
        # Rates that noise alone moves apart have nowhere to settle from.
        "settling_time_rel": None if fluid["settling_time_s"] == 0 else relative(*settled),
    }


_VERDICTS = {True: "within tolerance", False: "not within tolerance", None: "not judged"}
Traces = Trace | Sequence[Trace]
SMOOTHING = 1 / 50  # share of the run over which rates are averaged for the settling time


@constructor()
@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Comparison(DatasetResult):
    """Traces of one scenario by two engines.

    Parameters
    ----------
    dataset : xarray.Dataset
        On common times [s], of each engine ``queue_ENGINE`` (time,) of the first one's bottleneck [bytes] and
        ``rate_ENGINE`` (time, flow) [bytes/s]; of the second with a dimension ``seed``, of the first with
        ``seed_first`` if it draws random numbers.
    engines : tuple of str
        Which they are, such as ``("fluid", "packet")``.
    first, second : dict
        Summaries as of `simulate`, means over the seeds; also as ``fluid``, ``hybrid`` and ``packet``.
    spread : dict
        The tree of ``second``, with ``std`` (of the seeds themselves, not of their mean), ``min`` and ``max``.
    difference : dict
        Magnitudes; relative ones to the second, the rates of flows that the scenario does not tell apart averaged.
        None where there is nothing to compare, infinite where only one side has it. The queue is that of the
        first one's bottleneck.
    tolerance : dict of Tolerance
        Those of the scheme's ``crosscheck`` module; between engines that draw random numbers by the standard errors of
        their means. Its keys alone decide `within`.
    """

    engines: tuple[str, str]
    first: dict[str, Any]
    second: dict[str, Any]
    spread: dict[str, Any]
    difference: dict[str, float | None]
    tolerance: dict[str, Tolerance]

    def __repr__(self) -> str:
        """Show each difference, which of them were judged, and the worst of the others."""
        told = ", ".join(f"{k} {v:.3g}" for k, v in self.difference.items() if v is not None)
        by = f", by {', '.join(self.judged)}" if self.judged else ""
        return f"<Comparison, {_VERDICTS[self.within]}{by}{self._not_judged()}: {told}>"

    def _not_judged(self) -> str:
        worst = self.worst_not_judged
        return "" if worst is None else f"; without a tolerance, {worst[0]} differs most: {worst[1]:.3g}"

    KEPT: ClassVar[tuple[str, ...]] = ("time", "flow", "seed", "seed_first")

    @property
    def fluid(self) -> dict[str, Any]:
        """Summary of the fluid."""
        return self._of("fluid")

    @property
    def hybrid(self) -> dict[str, Any]:
        """Summary of the hybrid."""
        return self._of("hybrid")

    @property
    def packet(self) -> dict[str, Any]:
        """Summary of the packets."""
        return self._of("packet")

    def __getattr__(self, name: str) -> Any:
        """Variables, coordinates and methods of the dataset; an engine that was not compared has no summary."""
        if name in ("fluid", "hybrid", "packet"):
            raise AttributeError(f"{name}: these are traces of {' and '.join(self.engines)}")
        return super().__getattr__(name)

    def _of(self, engine: str) -> dict[str, Any]:
        if engine not in self.engines:
            raise AttributeError(engine)  # Python asks `__getattr__` then, which says why
        return (self.first, self.second)[self.engines.index(engine)]

    def _rows(self) -> list[Row]:
        rows = [("link", name_text(str(self.dataset.attrs.get("link", "")))), ("seeds", str(self.second.get("seeds")))]
        for key, value in self.difference.items():
            allowed = self.tolerance.get(key)
            limit = "" if allowed is None else f" (allowed {allowed.value:.3g})"
            rows.append((label(key), ("none" if value is None else f"{value:.3g}") + limit))
        rows.append(("judged", ", ".join(map(label, self.judged)) or "nothing"))
        if (worst := self.worst_not_judged) is not None:
            rows.append(("worst not judged", f"{label(worst[0])} {worst[1]:.3g}"))
        return rows

    @property
    def judged(self) -> list[str]:
        """Differences that have a tolerance, and so decide `within`."""
        return [key for key in self.tolerance if self.difference[key] is not None]

    @property
    def worst_not_judged(self) -> tuple[str, float] | None:
        """The largest difference that has no tolerance, by name; None if all have one."""
        rest = [(value, key) for key, value in self.difference.items() if value is not None and key not in self.judged]
        if not rest:
            return None
        value, key = max(rest)
        return key, value

    @property
    def within(self) -> bool | None:
        """Check whether no difference that has a tolerance exceeds it; None if there is no such difference."""
        off = {key: self.difference[key] for key in self.judged}
        within = [value <= self.tolerance[key].value for key, value in off.items() if value is not None]
        return all(within) if within else None

    @public()
    def as_dict(self) -> dict[str, Any]:
        """Keys as in the command line, of what JSON knows: a difference that is infinite is None, and in ``one_only``.

        Returns
        -------
        dict
        """
        return {
            **dict(zip(self.engines, (self.first, self.second), strict=True)),
            "engines": list(self.engines),
            "spread": self.spread,
            "difference": plain(self.difference),
            "one_only": [key for key, value in self.difference.items() if value == math.inf],
            "tolerance": {key: tolerance.value for key, tolerance in self.tolerance.items()},
            "reason": {key: tolerance.reason for key, tolerance in self.tolerance.items()},
            "link": self.dataset.attrs["link"],
            "within": self.within,
            "judged": self.judged,
            "worst_not_judged": None if self.worst_not_judged is None else self.worst_not_judged[0],
        }

    @public()
    def plot(self, *, title: str | None = None) -> Any:
        """Queue and rates over time, the first engine over the second's mean and spread.

        Parameters
        ----------
        title : str
            The scenario's own if not given.

        Returns
        -------
        fluidcc.plotting.style.Picture
        """
        return draw("plot_comparison", self, title=title)


@public()
def compare(first: Traces, second: Traces, *, smoothing: Any = None) -> Comparison:
    """Compare traces of the same scenario by two engines.

    RED's marks are random and the fluid is their mean, so what is compared are means over the seeds.

    Parameters
    ----------
    first : Trace or sequence of Trace
        Of the fluid, or of the hybrid, one per seed.
    second : Trace or sequence of Trace
        Of the hybrid or of packets, one per seed.
    smoothing : quantity
        Interval over which rates are averaged for the settling time [s]; a fiftieth of the run by default.

    Returns
    -------
    Comparison
        ``drain_time`` is the first time after the bottleneck queue's peak at which it is at or below 5 % of it,
        counted from t = 0 [s]. ``settling_time`` is the first time after the widest gap between the largest and the
        smallest smoothed rate at which it is a tenth of their mean, counted from the last start [s], of long-lived
        flows over the bottleneck; not compared if the first one's rates are never apart. ``window`` is the mean over
        the flows and the second half of the run.

    Raises
    ------
    InputError
        If the first traces are of packets, or the traces are not of the same scenario, but for what parameters the
        schemes have, and window.

    Examples
    --------
    >>> import fluidcc as fc
    >>> scenario = fc.incast(2)
    >>> runs = fc.ensemble(scenario, "5ms", seeds=2)  # doctest: +SKIP
    >>> fc.compare(fc.simulate(scenario, "5ms"), runs).plot()  # doctest: +SKIP
    """
    ours, theirs = _side("first", first), _side("second", second)
    engines = (str(ours[0].summary["engine"]), str(theirs[0].summary["engine"]))
    if engines[0] == "packet":
        raise InputError("first: this trace is of the packet engine; give the fluid's or the hybrid's first")
    one = ours[0]
    for trace in (*ours[1:], *theirs):
        _check_same(one, trace)
    scenario = scenario_file.from_toml(one.dataset.attrs["scenario"], f"{engines[0]} trace")
    if one.sizes["flow"] != len(scenario.flows) or one.sizes["link"] != len(one.summary["links"]):
        raise InputError("compare: the traces are parts of runs; give whole ones, as simulate returns them")
    names = engines if engines[0] != engines[1] else (engines[0], f"{engines[1]}_2")
    summaries = [[trace.summary for trace in side] for side in (ours, theirs)]
    found = [_mean_summary(side) for side in summaries]
    for name, summary in zip(names, found, strict=True):
        if None in summary["rate_bytes_per_s"]:
            at = summary["rate_bytes_per_s"].index(None)
            raise InputError(
                f"compare: {name}: the rate of flow {at} is undefined, so there is nothing to compare; guard what its "
                "scheme divides by 0 or takes the logarithm of"
            )
    link = str(max(found[0]["links"], key=lambda row: row["queue_bytes"]["mean"] or 0.0)["name"])
    dataset = _aligned(names, ours, theirs, link)
    width = float(dataset.time[-1]) * SMOOTHING if smoothing is None else quantity(smoothing, TIME, "smoothing")
    dataset.attrs = {"link": link, "smoothing_s": width, "title": one.dataset.attrs.get("title", "")}
    spread = _pooled(summaries[1], lambda v: {"std": float(np.std(v)), "min": float(min(v)), "max": float(max(v))})
    sides = [
        measured(scenario, dataset, summary, traces, name, width)
        for summary, traces, name in zip(found, (ours, theirs), names, strict=True)
    ]
    more = ("drain_time_s", "settling_time_s", "window_bytes")
    shown = [summary | {name: side[name] for name in more} for summary, side in zip(found, sides, strict=True)]
    for summary, side in zip(shown, summaries, strict=True):
        if "seed" in side[0] or summary is shown[1]:
            summary["seeds"] = [each.get("seed") for each in side]
    drawn = all("seed" in side[0] for side in summaries)
    return Comparison(
        dataset,
        names,
        shown[0],
        shown[1],
        spread,
        differences(sides[0], sides[1], scenario.wire_packet, float(dataset.time[1])),
        chance_tolerances(summaries[0], summaries[1], link, scenario) if drawn else tolerances_of(scenario),
    )


def _mean_summary(summaries: list[dict[str, Any]]) -> dict[str, Any]:
    """Means over the seeds."""
    found = _pooled(summaries, lambda v: v[0] if min(v) == max(v) else float(np.mean(v)))
    if len(summaries) > 1 or summaries[0]["engine"] != "fluid":
        found.pop("seed", None)
    return found


def _crosscheck(scenario: Scenario) -> Crosscheck:
    """Return the crosscheck side of the scenario's scheme; an empty one if flows run several schemes."""
    if len({flow.scheme.name for flow in scenario.flows}) > 1:
        return Crosscheck()
    return scheme_of(scenario.flows[0].scheme).crosscheck


def tolerances_of(scenario: Scenario) -> dict[str, Tolerance]:
    """Tolerances of the scenario's scheme; none if it sets none."""
    return _crosscheck(scenario).tolerances(scenario)


_SHARE, _PACKETS, _ERRORS, _JAIN = 0.05, 1.5, 3.0, 0.01


def chance_tolerances(
    ours: Sequence[dict[str, Any]], theirs: Sequence[dict[str, Any]], link: str, scenario: Scenario
) -> dict[str, Tolerance]:
    """Tolerances between two engines that draw random numbers: three standard errors of the difference of means.

    At least 5 % or 1.5 packets of a queue, 5 % of a rate, and 0.01 of Jain's index: packets come one by one. None where
    a side has one run, which has no standard error.
    """
    if min(len(ours), len(theirs)) < 2:
        return {}

    def error(value: Any) -> float:
        squares = [np.var([value(s) for s in side], ddof=1) / len(side) for side in (ours, theirs)]
        return _ERRORS * float(np.sqrt(sum(squares)))

    def queue(name: str) -> Any:
        return lambda summary: next(row["queue_bytes"][name] for row in summary["links"] if row["name"] == link)

    found = {}
    for key, name in (("queue_mean_rel", "mean"), ("queue_p95_rel", "p95")):
        scale = max(abs(float(np.mean([queue(name)(s) for s in theirs]))), float(scenario.wire_packet))
        least = max(_SHARE, _PACKETS * float(scenario.wire_packet) / scale)
        found[key] = Tolerance(max(least, error(queue(name)) / scale), "5 %, 1.5 packets or three standard errors")
    rates = np.array([[s["rate_bytes_per_s"] for s in side] for side in (theirs,)])[0]
    if np.isfinite(rates.astype(float)).all() and rates.mean() > 0:
        spread = max(error(lambda s, i=i: s["rate_bytes_per_s"][i]) for i in range(rates.shape[1])) / rates.mean()
        found["rate_rel_max"] = Tolerance(max(_SHARE, float(spread)), "5 % or three standard errors, of the worst flow")
    if all(s["jain"] is not None for s in (*ours, *theirs)):
        found["jain_abs"] = Tolerance(max(_JAIN, error(lambda s: s["jain"])), "0.01 or three standard errors")
    return found


def horizon(scenario: Scenario) -> str:
    """Return how long to run the scenario for a comparison."""
    return _crosscheck(scenario).UNTIL


def _side(name: str, given: Any) -> list[Trace]:
    """Return the traces of a side."""
    listed = [given] if isinstance(given, Trace) or not isinstance(given, Iterable) else list(given)
    if not listed:
        raise InputError(f"{name}: there is no trace; give one per seed")
    for each in listed:
        if not isinstance(each, Trace):
            raise InputError(f"{name}: {repr(each)[:40]} is no trace; give those of fc.simulate or fc.ensemble")
    return listed


def _check_same(fluid: Trace, packet: Trace) -> None:
    for name in ("flow", "link"):
        if list(fluid.dataset[name].values) != list(packet.dataset[name].values):
            raise InputError(f"compare: the traces differ in their {name}s; give two runs of the same scenario")
    if fluid.dataset.attrs["scenario"] != packet.dataset.attrs["scenario"]:
        _check_scenarios(*(scenario_file.from_toml(trace.dataset.attrs["scenario"]) for trace in (fluid, packet)))
    ours, theirs = fluid.summary["window_s"], packet.summary["window_s"]
    if not np.allclose(ours, theirs, rtol=1e-3, atol=0):
        shown = [":".join(show(t, TIME) for t in window) for window in (ours, theirs)]
        raise InputError(f"compare: the windows are {shown[0]} and {shown[1]}; give both runs the same")


def _check_scenarios(fluid: Scenario, packet: Scenario) -> None:
    """The same network, flows and schemes; parameters may differ, as where one engine models more of them."""
    for what, of in (
        ("schemes", lambda scenario: [flow.scheme.name for flow in scenario.flows]),
        ("links", lambda scenario: scenario.links),
        ("flows", lambda scenario: [dataclasses.replace(flow, scheme=None) for flow in scenario.flows]),
        ("networks", lambda scenario: dataclasses.replace(scenario, links=(), flows=())),
    ):
        if of(fluid) != of(packet):
            raise InputError(f"compare: the traces differ in their {what}; give two runs of the same scenario")


def _aligned(names: tuple[str, str], ours: Sequence[Trace], theirs: Sequence[Trace], link: str) -> xr.Dataset:
    """Queue of a link and rates of the flows at the second engine's times, up to the end of the shortest trace."""
    end = min(float(trace["time"][-1]) for trace in (*ours, *theirs)) * (1 + 1e-9)
    times = theirs[0]["time"].sel(time=slice(0, end))

    def at_times(values: xr.DataArray) -> xr.DataArray:
        values = values.drop_vars(["multiplicity", "capacity", "link"], errors="ignore")
        if values.sizes["time"] == len(times) and np.array_equal(values.time.values, times.values):
            return values
        ends = (float(values.time[0]), float(values.time[-1]))
        return values.interp(time=times.clip(*ends).values).assign_coords(time=times.values)

    made, coordinates = {}, {"multiplicity": ours[0]["multiplicity"]}
    for side, traces, dim in zip(names, (ours, theirs), ("seed_first", "seed"), strict=True):
        for name, place in (("queue", {"link": link}), ("rate", {})):
            runs = [at_times(trace[name].sel(place)) for trace in traces]
            drawn = dim == "seed" or "seed" in traces[0].summary
            made[f"{name}_{side}"] = xr.concat(runs, dim=dim) if drawn else runs[0]
            if drawn:
                numbers = [trace.summary.get("seed", i) for i, trace in enumerate(traces)]
                coordinates[dim] = xr.DataArray(numbers, dims=dim)
    dataset = xr.Dataset(made).assign_coords(coordinates)
    for name, variable in dataset.data_vars.items():
        unit = "bytes" if str(name).startswith("queue") else "bytes/s"
        variable.attrs = {"units": unit, "long_name": " of the ".join(str(name).split("_", 1))}
    dataset.time.attrs = {"units": "s", "long_name": "time"}
    return dataset


def _pooled(parts: Sequence[Any], reduce: Callable[[list[float]], Any]) -> Any:
    """Reduce numbers at the same place of several trees; what is no number stays if all agree."""
    first = parts[0]
    if isinstance(first, dict):
        return {key: _pooled([part[key] for part in parts], reduce) for key in first}
    if isinstance(first, list):
        return [_pooled(list(column), reduce) for column in zip(*parts, strict=True)]
    if isinstance(first, bool | str) or any(part is None for part in parts):
        return first if all(part == first for part in parts) else None
    return reduce(list(parts))
