"""The dataset of a sweep: its variables with dimensions, units and meanings, in memory and on disk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from fluidcc.builders.names import unit_of
from fluidcc.builders.toml_file import to_toml
from fluidcc.engines.fluid.network import REASONS
from fluidcc.errors import InputError
from fluidcc.results.grid import Grid
from fluidcc.results.schema import METRICS
from fluidcc.scenario.model import Scenario

PENDING = -1  # reason of a point that is not done
FLOW, SEED = "flow", "seed"
COUNTS = {"seeds": "runs with different seeds", "by_packets": "of these, run by packets"}


class Variable(NamedTuple):
    """A variable over the grid."""

    dims: tuple[str, ...]
    attrs: dict[str, Any]
    missing: Any  # what it is where nothing is known yet; of its type


def variables_of(grid: Grid, seeds: int = 0, errors: bool = False) -> dict[str, Variable]:
    """Return the variables of each point, by name.

    With seeds also each metric's standard error and its value by seed; with ``errors`` also those of the steps.

    Raises
    ------
    InputError
        If a swept name is that of a result.
    """
    names = tuple(grid.axes)
    found = {
        name: Variable(names, {"units": unit, "long_name": text}, np.float64(np.nan))
        for name, (unit, text) in METRICS.items()
    }
    for name, (unit, text) in METRICS.items() if seeds else ():
        error = {"units": unit, "long_name": f"{text}, standard error of the mean over seeds"}
        found[f"{name}_se"] = Variable(names, error, np.float64(np.nan))
        each = {"units": unit, "long_name": f"{text}, by seed"}
        found[f"{name}_by_seed"] = Variable((*names, SEED), each, np.float64(np.nan))
    if seeds:
        for name, text in COUNTS.items():
            found[name] = Variable(names, {"units": "1", "long_name": text}, np.int32(0))
    for name, text in (("queue", "mean queue"), ("rate", "mean rates")) if errors else ():
        told = {"units": "1", "long_name": f"{text}, relative difference to the run to ten times the tolerance"}
        found[f"{name}_error_rel"] = Variable(names, told, np.float64(np.nan))
    rate = {"units": "bytes/s", "long_name": "mean sending rate"}
    found["rate_bytes_per_s"] = Variable((*names, FLOW), rate, np.float64(np.nan))
    meanings = {"flag_values": list(range(len(REASONS))), "flag_meanings": "; ".join(REASONS)}
    found["reason"] = Variable(names, {"units": "1", "long_name": "why a point failed", **meanings}, np.int32(PENDING))
    taken = next((name for name in names if name in found or name in (FLOW, SEED)), None)
    if taken is not None:
        raise InputError(f"over {taken}: a result has that name; give the argument of make_scenario another")
    return found


def with_reasons(variables: dict[str, Variable], meanings: list[str]) -> dict[str, Variable]:
    """The same with other reasons why a point failed, in words."""
    old = variables["reason"]
    told = {
        "flag_values": list(range(len(meanings))),
        "flag_meanings": "; ".join(m.replace(";", ",") for m in meanings),
    }
    return variables | {"reason": old._replace(attrs=old.attrs | told)}


def coordinates_of(grid: Grid, scenario: Scenario, seeds: int = 0) -> dict[str, tuple[str, Any, dict[str, Any]]]:
    """Swept values with their units, the flows' names, and the seeds."""
    found: dict[str, tuple[str, Any, dict[str, Any]]] = {
        name: (name, values, {"units": unit} if (unit := unit_of(name)) else {}) for name, values in grid.axes.items()
    }
    found[FLOW] = (FLOW, [flow.name or f"flow {i}" for i, flow in enumerate(scenario.flows)], {})
    return found | ({SEED: (SEED, np.arange(1, seeds + 1), {})} if seeds else {})


def attributes_of(scenario: Scenario) -> dict[str, Any]:
    """Return the attributes of a sweep that are known before it runs."""
    # With several schemes, the lowest target utilisation.
    target = min(float(getattr(flow.scheme, "target_utilisation", 1.0)) for flow in scenario.flows)
    return {"scenario": to_toml(scenario), "target_utilisation": target}


def words(attrs: Mapping[str, Any]) -> list[str]:
    """Meanings of the numbers in ``reason``, of a result of this version or an earlier one."""
    return str(attrs.get("flag_meanings", "; ".join(REASONS))).split("; ")
