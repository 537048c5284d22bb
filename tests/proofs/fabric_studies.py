"""Studies of a fabric whose slowdowns are given, for verdicts that follow from them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr

from fluidcc.workloads.fabrics import named_topology
from fluidcc.workloads.fabrics.run import FabricRun
from fluidcc.workloads.fabrics.slowdowns import Slowdown
from fluidcc.workloads.fabrics.study import FabricStudy

SIZES = np.repeat([10e3, 500e3, 5e6, 20e6], 50)  # bytes


def study_of(
    slowdowns: Mapping[str, list[np.ndarray]], pauses: Mapping[str, Mapping[str, float]] | None = None
) -> FabricStudy:
    """Of flows of `SIZES`, by scheme one array of slowdowns a seed; PAUSEs by scheme and tier, of each seed."""
    runs = []
    for scheme, several in slowdowns.items():
        for seed, values in enumerate(several, 1):
            columns = {"size": SIZES, "start": np.arange(len(SIZES)) * 1e-6, "alone": SIZES / 12.5e9}
            columns |= {"slowdown": values, "completion": values * columns["alone"]}
            dataset = xr.Dataset({name: ("flow", each) for name, each in columns.items()})
            tiers = {"hosts": 0.0, "tier 1": 0.0, "tier 2": 0.0, "tier 3": 0.0, **((pauses or {}).get(scheme, {}))}
            numbers = {"drops": 0, "pauses": tiers, "window_s": [0.0, 1e-3]}
            runs.append(FabricRun(scheme, seed, Slowdown(dataset), numbers, np.ones((2, 1))))
    return FabricStudy(tuple(runs), named_topology("leaf-spine:2x1x2"), "flows")
