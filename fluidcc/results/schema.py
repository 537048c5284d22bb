"""Declarations of what the engines return: the keys of a summary, and the variables of a trace's dataset.

Fluid, hybrid and packets fill both through `summary` and `dataset`, which refuse a key that is missing or unknown: so
keys, names, dimensions, units and their order are the same whichever ran. The flow level has no trace: it returns
`fluidcc.engines.flow_level.run.FlowTimes`. Entries of one engine only (``engines``) are absent from the others'
summaries and datasets; a number that is undefined is None, never NaN. `problem_of_trace` and `problem_of_sweep` hold a
dataset from a file against the declarations; what an earlier version did not write yet may be missing.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.builders import toml_file
from fluidcc.results.metrics import PERCENTILES, most_loaded
from fluidcc.results.result import Parts
from fluidcc.scenario.model import Scenario
from fluidcc.version import VERSION

if TYPE_CHECKING:
    import xarray as xr

FLUID, HYBRID, PACKET = "fluid", "hybrid", "packet"
ENGINES = (FLUID, HYBRID, PACKET)  # those with a trace
_DRAWN = (HYBRID, PACKET)  # engines that draw random numbers
QUEUE_STATISTICS = ("mean", "std", *(f"p{p}" for p in PERCENTILES), "min", "max", "max_whole_run")


@dataclasses.dataclass(frozen=True)
class Key:
    """A key of a summary.

    Parameters
    ----------
    unit : str
        "" of what is no number.
    kind : {"text", "count", "number", "interval", "per flow", "per finite flow", "queue", "per link", "tree"}
        A number may be None where it is undefined; "queue" is a dict of `QUEUE_STATISTICS`, "tree" a dict of its own.
    text : str
    engines : tuple of str
        Those that fill it.
    """

    unit: str
    kind: str
    text: str
    engines: tuple[str, ...] = ENGINES


SUMMARY: dict[str, Key] = {
    "engine": Key("", "text", "what ran"),
    "scheme": Key("", "text", "names of the flows' schemes"),
    "flows": Key("1", "count", "flows of all classes"),
    "until_s": Key("s", "number", "horizon"),
    "window_s": Key("s", "interval", "what all but max_whole_run, fct_s and counts refer to"),
    "queue_bytes": Key("bytes", "queue", "queue of the most loaded link"),
    "links": Key("", "per link", "name, queue_bytes and utilisation"),
    "rate_bytes_per_s": Key("bytes/s", "per flow", "mean sending rate of a flow of each class"),
    "goodput_bytes_per_s": Key("bytes/s", "per flow", "mean rate of acknowledged payload; fluid: of sent payload"),
    "jain": Key("1", "number", "Jain's fairness index of the flows' mean rates"),
    "utilisation": Key("1", "number", "share of the most loaded link's capacity that was used"),
    "rate_gap_bytes_per_s": Key("bytes/s", "number", "largest less smallest of the flows' mean rates"),
    "discretisation_error": Key(
        "1", "tree", "queue_rel, rate_rel: difference to half the step; as_expected: whether it shrinks so", (FLUID,)
    ),
    "fct_s": Key("s", "per finite flow", "start to last acknowledgement; None if unfinished"),
    "began_s": Key("s", "per flow", "when it began, the first of its class; None if it never did"),
    "events": Key("1", "count", "events executed", _DRAWN),
    "marks": Key("1", "count", "marks that were drawn; those that could change nothing are not", (HYBRID,)),
    "cnps": Key("1", "count", "CNPs that reached their senders", (HYBRID,)),
    "above_xoff": Key(
        "1", "number", "share of time with a queue beyond PFC's threshold; None without flow control", (HYBRID,)
    ),
    "above_buffer": Key("1", "number", "share of time with a queue beyond the buffer; None if unlimited", (HYBRID,)),
    "packets": Key("1", "count", "data packets delivered", (PACKET,)),
    "acks": Key("1", "count", "ACKs sent", (PACKET,)),
    "pfc_pauses": Key("1", "count", "PAUSE frames sent", (PACKET,)),
    "pfc_paused_s": Key("s", "number", "time for which ports were paused, summed over them", (PACKET,)),
    "pfc": Key("", "tree", "who was paused and how far it spread; None without flow control", (PACKET,)),
    "reordered": Key("1", "count", "data packets that came after a later one of their flow", (PACKET,)),
    "drops": Key("1", "count", "data packets lost whole: dropped by switches, or on wires", (PACKET,)),
    "trims": Key("1", "count", "data packets of which switches sent on the header alone", (PACKET,)),
    "retransmissions": Key("1", "count", "data packets sent again; 0 without loss recovery", (PACKET,)),
    "buffer_bytes_max": Key("bytes", "number", "largest use of a switch's buffer", (PACKET,)),
    "seed": Key("1", "count", "of the random numbers", _DRAWN),
    "compile_s": Key("s", "number", "wall time spent compiling"),
    "wall_s": Key("s", "number", "wall time of the integration or event loop"),
}

NUMBERS = ("jain", "utilisation", "rate_gap_bytes_per_s")  # metrics that are keys of a summary as they are
# What a sweep has of each point, and of the fluid's batches: unit and text.
METRICS: dict[str, tuple[str, str]] = {
    **{f"queue_bytes.{name}": ("bytes", f"queue of the most loaded link, {name}") for name in QUEUE_STATISTICS},
    **{name: (SUMMARY[name].unit, SUMMARY[name].text) for name in NUMBERS},
    "goodput_bytes_per_s": ("bytes/s", "sum of the flows' payload rates"),
}


@dataclasses.dataclass(frozen=True)
class Variable:
    """A variable or coordinate of a trace.

    Parameters
    ----------
    dims : tuple of str
    unit : str
        "" of what is no number.
    text : str
        The ``long_name``.
    kind : {"f", "i", "U"}
        Of its numbers (NumPy's), or text.
    engines : tuple of str
        Those that may have it.
    always : bool
        Whether every run of these has it; else with a mechanism, with several classes, or with a log.
    """

    dims: tuple[str, ...]
    unit: str
    text: str
    kind: str = "f"
    engines: tuple[str, ...] = ENGINES
    always: bool = False

    @property
    def attrs(self) -> dict[str, str]:
        """Attributes of the variable in a dataset."""
        return ({"units": self.unit} if self.unit else {}) | {"long_name": self.text}


_LINK, _FLOW, _CLASS, _EVENT = ("time", "link"), ("time", "flow"), ("time", "link", "traffic_class"), ("event",)

COORDINATES: dict[str, Variable] = {
    "time": Variable(("time",), "s", "time", always=True),
    "link": Variable(("link",), "", "name of the link", "U", always=True),
    "capacity": Variable(("link",), "bytes/s", "nominal rate", always=True),
    "flow": Variable(("flow",), "", "name of the class of flows", "U", always=True),
    "multiplicity": Variable(("flow",), "1", "how many flows the class has", always=True),
    "traffic_class": Variable(("traffic_class",), "1", "index of the egress queue", "i"),
}

VARIABLES: dict[str, Variable] = {
    "queue": Variable(_LINK, "bytes", "queue", always=True),
    "sent": Variable(_LINK, "bytes", "bytes sent so far", always=True),
    "paused": Variable(_LINK, "s", "time for which flow control has stopped links so far", engines=(FLUID,)),
    "class_queue": Variable(_CLASS, "bytes", "queue of each traffic class"),
    "class_sent": Variable(_CLASS, "bytes", "bytes of each traffic class sent so far", engines=(PACKET,)),
    "rate": Variable(_FLOW, "bytes/s", "sending rate", always=True),
    "pacing_rate": Variable(_FLOW, "bytes/s", "pacing rate R_C", always=True),
    "delivered": Variable(_FLOW, "bytes", "payload acknowledged so far", engines=(PACKET,), always=True),
    "event_time": Variable(_EVENT, "s", "time of the event", engines=(PACKET,)),
    "event_what": Variable(_EVENT, "", "what happened", "U", (PACKET,)),
    "event_port": Variable(_EVENT, "", "where", "U", (PACKET,)),
    "event_flow": Variable(_EVENT, "", "flow, -1 for none", "i", (PACKET,)),
    "event_kind": Variable(_EVENT, "", "kind of packet", "U", (PACKET,)),
    "event_end": Variable(_EVENT, "bytes", "payload up to the packet's end", "i", (PACKET,)),
    "event_queue": Variable(_EVENT, "bytes", "queue of the port", "i", (PACKET,)),
    "event_value": Variable(_EVENT, "", "marks, class, rate, or bytes in flight beyond the window", "f", (PACKET,)),
}

# Of the dataset itself. ``command`` is what the command line adds.
ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "title": ENGINES,
    "source": ENGINES,
    "engine": ENGINES,
    "scenario": ENGINES,
    "summary": ENGINES,
    "dt_s": (FLUID,),
    "rtol": (FLUID,),  # 0 with a fixed step; else dt_s is the grid of the samples and the window
    "method": (FLUID,),
    "dtype": (FLUID,),
    "seed": _DRAWN,
}


def summary_keys(engine: str) -> list[str]:
    """Keys of an engine's summary, in order."""
    return [name for name, key in SUMMARY.items() if engine in key.engines]


def link_names(scenario: Scenario) -> list[str]:
    """Names of the links, as results have them."""
    return [link.name or f"link {i}" for i, link in enumerate(scenario.links)]


def flow_names(scenario: Scenario) -> list[str]:
    """Names of the classes of flows, as results have them."""
    return [flow.name or f"flow {i}" for i, flow in enumerate(scenario.flows)]


def summary(
    engine: str, scenario: Scenario, links: Sequence[Mapping[str, Any]], values: Mapping[str, Any]
) -> dict[str, Any]:
    """The summary of a run.

    Parameters
    ----------
    engine : str
    scenario : Scenario
    links : sequence of mapping
        ``queue_bytes`` (`QUEUE_STATISTICS`) and ``utilisation`` of each.
    values : mapping
        All other keys of the engine.

    Returns
    -------
    dict
        As in `SUMMARY`, made of what JSON knows; what is not finite is None.

    Raises
    ------
    ValueError
        If a key is missing, or the engine has none such.
    """
    rows = [{"name": name, **row} for name, row in zip(link_names(scenario), links, strict=False)]
    busiest = rows[int(most_loaded([row["queue_bytes"]["mean"] for row in rows]))]
    found = {
        "engine": engine,
        "scheme": "+".join(dict.fromkeys(flow.scheme.name for flow in scenario.flows)),
        "queue_bytes": busiest["queue_bytes"],
        "links": rows,
        "utilisation": busiest["utilisation"],
        **values,
    }
    keys = summary_keys(engine)
    _same_names(f"summary of the {engine} engine", found, keys, keys)
    return {name: plain(found[name]) for name in keys}


def metrics_of_summary(summary: Mapping[str, Any], multiplicity: np.ndarray) -> dict[str, float]:
    """`METRICS` of a run whose classes have so many flows (classes,); NaN for what is undefined."""
    found = {f"queue_bytes.{name}": value for name, value in summary["queue_bytes"].items()}
    found |= {name: summary[name] for name in NUMBERS}
    found["goodput_bytes_per_s"] = np.dot(summary["goodput_bytes_per_s"], multiplicity)
    return {name: math.nan if value is None else float(value) for name, value in found.items()}


def dataset(
    engine: str,
    scenario: Scenario,
    times: np.ndarray,
    arrays: Mapping[str, np.ndarray],
    observables: Mapping[str, tuple[str, str]],
    summary: Mapping[str, Any],
    attrs: Mapping[str, Any],
) -> Parts:
    """The dataset of a run, in parts.

    Parameters
    ----------
    engine : str
    scenario : Scenario
    times : ndarray
        Of the samples [s].
    arrays : mapping of ndarray
        By name, with the dimensions of `VARIABLES`; what the schemes show has (time, flow).
    observables : mapping
        Unit and text of what the schemes show; theirs holds where both have a name.
    summary : mapping
        As of `summary`.
    attrs : mapping
        What only this engine says of a run, of `ATTRIBUTES`.

    Raises
    ------
    ValueError
        If a variable or an attribute is missing, or the engine has none such.
    """
    mine = {name: each for name, each in VARIABLES.items() if engine in each.engines}
    must = [name for name, each in mine.items() if each.always]
    _same_names(f"dataset of the {engine} engine", arrays, must, [*mine, *observables])
    variables: dict[str, Any] = {}
    for name in [*(name for name in VARIABLES if name in arrays), *(n for n in observables if n not in VARIABLES)]:
        if name not in arrays:  # of a mechanism that is off
            continue
        unit, text = observables.get(name, ("", ""))
        shown = {"units": unit, "long_name": text} if name in observables else mine[name].attrs
        variables[name] = (mine[name].dims if name in mine else _FLOW, arrays[name], shown)
    links = arrays["queue"].shape[1]
    given = {
        "time": times,
        "link": link_names(scenario)[:links],
        "capacity": np.array([link.rate for link in scenario.links[:links]]),
        "flow": flow_names(scenario),
        "multiplicity": np.array([flow.multiplicity for flow in scenario.flows]),
    }
    if "class_queue" in arrays:
        given["traffic_class"] = np.arange(len(scenario.classes))
    coordinates = {name: (COORDINATES[name].dims, values, COORDINATES[name].attrs) for name, values in given.items()}
    said = {
        "title": f"{summary['scheme']}, {summary['flows']} flows, {engine} engine",
        "source": f"fluidcc {VERSION}",
        "engine": engine,
        "scenario": toml_file.to_toml(scenario),
        "summary": json.dumps(summary),
        **attrs,
    }
    names = [name for name, engines in ATTRIBUTES.items() if engine in engines]
    _same_names(f"attributes of the {engine} engine", said, names, names)
    return Parts(variables, coordinates, {name: said[name] for name in names})


def _same_names(what: str, found: Mapping[str, Any], must: Sequence[str], may: Sequence[str]) -> None:
    missing, unknown = [name for name in must if name not in found], [name for name in found if name not in may]
    if missing or unknown:
        raise ValueError(f"{what}: missing {missing}, unknown {unknown}; see fluidcc.results.schema")


def plain(value: Any) -> Any:
    """Convert nested dicts, lists and numbers of any library to JSON's types; None for what is not finite."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


# -- datasets from files -----------------------------------------------------------------------------------


_NUMBERS = "fiu"
_OF_BEST = ("queue_bytes.mean", "utilisation", "jain")  # what any sweep's best point is found by


def problem_of_trace(data: xr.Dataset) -> str | None:
    """Explain why a dataset is no run; None if it is one."""
    if "queue" not in data or "time" not in data.coords:
        return "no queue over time"
    for name, declared in (COORDINATES | VARIABLES).items():
        if name in data and (problem := _problem(data[name], declared.dims, declared.kind != "U")):
            return problem
    time = data["time"].values
    if not np.isfinite(time).all() or (np.diff(time) <= 0).any():
        return "times that do not grow"
    try:
        whole = isinstance(json.loads(data.attrs.get("summary", "{}")), dict)
    except (TypeError, ValueError):
        whole = False
    return None if whole else "a summary that is no JSON object"


def problem_of_sweep(data: xr.Dataset) -> str | None:
    """Explain why a dataset is no sweep; None if it is one."""
    if "reason" not in data:
        return "no reasons of failed points"
    over = data["reason"].dims
    missing = next((name for name in (*over, *_OF_BEST, "rate_bytes_per_s") if name not in data.variables), None)
    if missing is not None:
        return f"no {missing}"
    expected = {name: over for name in ("reason", *METRICS)} | {"rate_bytes_per_s": (*over, "flow")}
    expected |= {name: (name,) for name in over}
    problems = (_problem(data[name], dims, True) for name, dims in expected.items() if name in data)
    return next((problem for problem in problems if problem is not None), None)


def _problem(array: xr.DataArray, dims: tuple[object, ...], number: bool) -> str | None:
    if array.dims != dims:
        return f"{array.name} over {', '.join(map(str, array.dims)) or 'nothing'}, not {', '.join(map(str, dims))}"
    if number and array.dtype.kind not in _NUMBERS:
        return f"{array.name} that is no number"
    return None
