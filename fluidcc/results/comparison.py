"""The fluid model against packets: one fluid trace, the packet engine's over several seeds, and how they differ."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
import xarray as xr

from fluidcc.errors import InputError
from fluidcc.results.dataset import DatasetResult, Row
from fluidcc.results.differences import differences, measured
from fluidcc.results.drawing import draw
from fluidcc.results.schema import plain
from fluidcc.results.text import label
from fluidcc.results.trace import Trace
from fluidcc.scenario.builders import toml_file as scenario_file
from fluidcc.scenario.display import name_text
from fluidcc.scenario.model import Scenario
from fluidcc.schemes.registry import scheme_of
from fluidcc.schemes.sides import Crosscheck
from fluidcc.schemes.tolerance import Tolerance
from fluidcc.surface import constructor, public
from fluidcc.units import TIME, quantity, show

_VERDICTS = {True: "within tolerance", False: "not within tolerance", None: "not judged"}
SMOOTHING = 1 / 50  # share of the run over which rates are averaged for the settling time


@constructor()
@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Comparison(DatasetResult):
    """A fluid trace and packet traces of the same scenario.

    Parameters
    ----------
    dataset : xarray.Dataset
        On common times [s]: ``queue_fluid`` (time,) and ``queue_packet`` (seed, time) of the fluid's bottleneck
        [bytes], ``rate_fluid`` (time, flow) and ``rate_packet`` (seed, time, flow) [bytes/s].
    fluid, packet : dict
        Summaries as of `simulate`; ``packet`` the means over the seeds.
    spread : dict
        The tree of ``packet``, with ``std`` (of the seeds themselves, not of their mean), ``min`` and ``max``.
    difference : dict
        Magnitudes; relative ones to the packets, the rates of flows that the scenario does not tell apart averaged.
        None where there is nothing to compare, infinite where only one side has it. The queue is that of the
        fluid's bottleneck.
    tolerance : dict of Tolerance
        Those of the scheme's ``crosscheck`` module; its keys alone decide `within`.
    """

    fluid: dict[str, Any]
    packet: dict[str, Any]
    spread: dict[str, Any]
    difference: dict[str, float | None]
    tolerance: dict[str, Tolerance]

    def __repr__(self) -> str:
        """What differs by how much."""
        told = ", ".join(f"{k} {v:.3g}" for k, v in self.difference.items() if v is not None)
        return f"<Comparison, {_VERDICTS[self.within]}: {told}>"

    KEPT: ClassVar[tuple[str, ...]] = ("time", "flow", "seed")

    def _rows(self) -> list[Row]:
        rows = [("link", name_text(str(self.dataset.attrs.get("link", "")))), ("seeds", str(self.packet.get("seeds")))]
        for key, value in self.difference.items():
            allowed = self.tolerance.get(key)
            limit = "" if allowed is None else f" (allowed {allowed.value:.3g})"
            rows.append((label(key), ("none" if value is None else f"{value:.3g}") + limit))
        return rows

    @property
    def within(self) -> bool | None:
        """Whether no difference that has a tolerance exceeds it; None if there is no such difference."""
        pairs = [(self.difference[key], allowed.value) for key, allowed in self.tolerance.items()]
        judged = [off <= most for off, most in pairs if off is not None]
        return all(judged) if judged else None

    @public()
    def as_dict(self) -> dict[str, Any]:
        """Keys as in the command line, of what JSON knows: a difference that is infinite is None, and in ``one_only``.

        Returns
        -------
        dict
        """
        return {
            "fluid": self.fluid,
            "packet": self.packet,
            "spread": self.spread,
            "difference": plain(self.difference),
            "one_only": [key for key, value in self.difference.items() if value == math.inf],
            "tolerance": {key: tolerance.value for key, tolerance in self.tolerance.items()},
            "reason": {key: tolerance.reason for key, tolerance in self.tolerance.items()},
            "link": self.dataset.attrs["link"],
            "within": self.within,
        }

    @public()
    def plot(self, *, title: str | None = None) -> Any:
        """Queue and rates over time, the fluid over the packets' mean and spread.

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
def compare(fluid: Trace, packet: Trace | Sequence[Trace], *, smoothing: Any = None) -> Comparison:
    """Compare a fluid trace with packet traces of the same scenario.

    RED's marks are random and the fluid is their mean, so it is compared with the mean over the seeds.

    Parameters
    ----------
    fluid : Trace
    packet : Trace or sequence of Trace
        One per seed.
    smoothing : quantity
        Interval over which rates are averaged for the settling time [s]; a fiftieth of the run by default.

    Returns
    -------
    Comparison
        ``drain_time`` is the first time after the bottleneck queue's peak at which it is at or below 5 % of it,
        counted from t = 0 [s]. ``settling_time`` is the first time after the widest gap between the largest and the
        smallest smoothed rate at which it is a tenth of their mean, counted from the last start [s], of long-lived
        flows over the bottleneck; not compared if the fluid's rates are never apart. ``window`` is the mean over the
        flows and the second half of the run.

    Raises
    ------
    InputError
        If the first trace is no fluid one, or the traces are not of the same scenario, but for what parameters the
        schemes have, and window.

    Examples
    --------
    >>> import fluidcc as fc
    >>> scenario = fc.incast(2)
    >>> runs = fc.ensemble(scenario, "5ms", seeds=2)  # doctest: +SKIP
    >>> fc.compare(fc.simulate(scenario, "5ms"), runs).plot()  # doctest: +SKIP
    """
    packets = [packet] if isinstance(packet, Trace) else list(packet)
    if not packets:
        raise InputError("packet: there is no trace; give one per seed")
    if fluid.summary["engine"] == "packet":
        raise InputError("fluid: this trace is of the packet engine; give the fluid's first, compare(fluid, packets)")
    for trace in packets:
        _check_same(fluid, trace)
    scenario = scenario_file.from_toml(fluid.dataset.attrs["scenario"], "fluid trace")
    if fluid.sizes["flow"] != len(scenario.flows) or fluid.sizes["link"] != len(fluid.summary["links"]):
        raise InputError("compare: the traces are parts of runs; give whole ones, as simulate returns them")
    summaries = [trace.summary for trace in packets]
    link = str(max(fluid.summary["links"], key=lambda row: row["queue_bytes"]["mean"] or 0.0)["name"])
    dataset = _aligned(fluid, packets, link)
    span = float(dataset.time[-1] - dataset.time[0])
    width = span * SMOOTHING if smoothing is None else quantity(smoothing, TIME, "smoothing")
    dataset.attrs = {"link": link, "smoothing_s": width, "title": fluid.dataset.attrs.get("title", "")}
    found = _pooled(summaries, lambda v: v[0] if min(v) == max(v) else float(np.mean(v)))
    found.pop("seed", None)
    spread = _pooled(summaries, lambda v: {"std": float(np.std(v)), "min": float(min(v)), "max": float(max(v))})
    ours = measured(scenario, dataset, fluid.summary, [fluid], "fluid", width)
    theirs = measured(scenario, dataset, found, packets, "packet", width)
    more = ("drain_time_s", "settling_time_s", "window_bytes")
    return Comparison(
        dataset,
        fluid.summary | {name: ours[name] for name in more},
        found | {name: theirs[name] for name in more} | {"seeds": [summary.get("seed") for summary in summaries]},
        spread,
        differences(ours, theirs, scenario.wire_packet, float(dataset.time[1] - dataset.time[0])),
        tolerances_of(scenario),
    )


def _crosscheck(scenario: Scenario) -> Crosscheck:
    """What the scenario's scheme says of comparing: nothing, if flows run several schemes."""
    if len({flow.scheme.name for flow in scenario.flows}) > 1:
        return Crosscheck()
    return scheme_of(scenario.flows[0].scheme).crosscheck


def tolerances_of(scenario: Scenario) -> dict[str, Tolerance]:
    """Tolerances of the scenario's scheme; none if it sets none."""
    return _crosscheck(scenario).tolerances(scenario)


def horizon(scenario: Scenario) -> str:
    """How long to run the scenario for a comparison."""
    return _crosscheck(scenario).UNTIL


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


def _aligned(fluid: Trace, packets: Sequence[Trace], link: str) -> xr.Dataset:
    """Queue of a link and rates of the flows at the packets' times, up to the end of the shortest trace."""
    end = min(float(trace["time"][-1]) for trace in (fluid, *packets)) * (1 + 1e-9)
    times = packets[0]["time"].sel(time=slice(0, end))

    def at_times(values: xr.DataArray) -> xr.DataArray:
        values = values.drop_vars(["multiplicity", "capacity", "link"], errors="ignore")
        if values.sizes["time"] == len(times) and np.array_equal(values.time.values, times.values):
            return values
        ends = (float(values.time[0]), float(values.time[-1]))
        return values.interp(time=times.clip(*ends).values).assign_coords(time=times.values)

    seeds = xr.DataArray([trace.summary.get("seed", i) for i, trace in enumerate(packets)], dims="seed")
    made = {}
    for name, place in (("queue", {"link": link}), ("rate", {})):
        made[f"{name}_fluid"] = at_times(fluid[name].sel(place))
        made[f"{name}_packet"] = xr.concat([at_times(trace[name].sel(place)) for trace in packets], dim="seed")
    dataset = xr.Dataset(made).assign_coords(seed=seeds, multiplicity=fluid["multiplicity"])
    for name, variable in dataset.data_vars.items():
        unit = "bytes" if str(name).startswith("queue") else "bytes/s"
        variable.attrs = {"units": unit, "long_name": " of the ".join(str(name).split("_"))}
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
