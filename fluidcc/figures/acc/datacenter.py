"""What ACC's large-scale figures share: section 6.1's tree, schemes and workloads, runs, and classes of flows.

Cache Follower, of Figs. 13(b), 14(a) and 15(b), has no published table, and is left out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fluidcc.fabrics.study import FabricStudy, fabric
from fluidcc.figures.acc.common import CONTENDERS, NETWORK
from fluidcc.figures.common import GBPS
from fluidcc.schemes.acc import ACC

TREE, SMALL = "fat-tree:320", "fat-tree:64"
SEEDS = 5


class Traffic(NamedTuple):
    """A workload of section 6.1 or B.1, and until when flows arrive [s]; quick runs have smaller incasts."""

    workload: str
    load: float
    until: float
    quick: float
    incast: tuple[int, str, float] | None = None  # senders, size of each, load


TRAFFIC = {
    "web-search": Traffic("web-search", 0.8, 1.5e-3, 0.4e-3),
    "hadoop": Traffic("hadoop", 0.5, 1e-3, 0.2e-3, (64, "20KB", 0.2)),
    "bursts": Traffic("web-search", 0.6, 1e-3, 0.3e-3, (64, "50KB", 0.2)),
}
CLASSES = {"small": (0, 100e3), "medium": (100e3, 10e6), "large": (10e6, np.inf)}  # bytes: section 6.4
HADOOP_CLASSES = {"small": (0, 100e3), "medium": (100e3, 1e6), "large": (1e6, np.inf)}
EDGES = (0, 10e3, 20e3, 30e3, 50e3, 80e3, 200e3, 1e6, 2e6, 5e6, 10e6, 30e6)  # bytes, ends of bins of Web Search

_ACCS = {f"ACC, RI {ri} Gbps": ACC(ri_high=ri * GBPS, ri_low=ri * GBPS / 10) for ri in (1, 8)} | {
    f"ACC, P_thresh {p}": ACC(p_thresh=float(p)) for p in (0, 3)
}


def contenders(names: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """Schemes as section 6.1 sets them, as `fluidcc.fabric` takes them; ACC's own variants by `_ACCS`."""
    known = {each.name: (each.scheme, each.marking) for each in CONTENDERS.values()}
    known |= {name: (scheme, ACC.default_marking) for name, scheme in _ACCS.items()}
    return {name: {"scheme": known[name][0], "marking": known[name][1], **NETWORK} for name in names}


def study(traffic: str, names: tuple[str, ...], folder: Path, quick: bool, **options: Any) -> FabricStudy:
    """Runs of some schemes under one traffic, kept beside the pictures that share them."""
    of = TRAFFIC[traffic]
    if of.incast is not None:
        senders, size, load = of.incast
        options["incast"] = f"{senders // 4 if quick else senders}:{size}:{load:.0%}"
    return fabric(
        contenders(names),
        SMALL if quick else TREE,
        workload=of.workload,
        load=of.load,
        until=of.quick if quick else of.until,
        seeds=2 if quick else SEEDS,
        folder=folder / f"acc-{traffic}-{'quick-' if quick else ''}runs",
        **options,
    )
