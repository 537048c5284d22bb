"""Figures 10 to 13 of "Fast Convergence to Fairness": slowdowns by flow size on the tree of Figure 7 (section VI)."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, NamedTuple

from fluidcc.contract.preset import Preset
from fluidcc.proofs.shared.fabric_checks import on_one_base
from fluidcc.schemes import hpcc, swift
from fluidcc.workloads.fabrics.study import FabricStudy, fabric

TREE, SMALL = "fat-tree:320", "fat-tree:64"
LOAD = 0.5  # section VI-A
SEEDS = 5
PAIRS = {"HPCC": "HPCC VAI SF", "Swift": "Swift VAI SF"}


class Traffic(NamedTuple):
    """A benchmark of section VI-A: its workload, how long flows arrive [s], and ends of bins of sizes [bytes]."""

    workload: str
    until: float
    edges: tuple[float, ...]


TRAFFIC = {
    "hadoop": Traffic("hadoop", 3e-3, (0, 300, 500, 700, 1e3, 7e3, 50e3, 120e3, 300e3, 1e6, 2e6, 10e6)),
    "mix": Traffic(
        "web-search+alibaba-storage",
        2e-3,
        (0, 4e3, 8e3, 16e3, 32e3, 64e3, 128e3, 256e3, 1e6, 2e6, 5e6, 10e6, 30e6),
    ),
}


def contenders() -> dict[str, dict[str, Any]]:
    """Return options of both schemes, default and with VAI and SF, on the network of the HPCC authors' simulator.

    Swift's flow scaling goes up to 100 packets, as its paper has it: the 50 of the preset are for the small topology.
    """
    default = swift.PRESETS["fairness"]
    wide = default._replace(scheme=dataclasses.replace(default.scheme, fs_max=100.0))
    presets: dict[str, Preset] = {
        "HPCC": hpcc.PRESETS["fairness"],
        "HPCC VAI SF": hpcc.PRESETS["vai-sf"],
        "Swift": wide,
        "Swift VAI SF": swift.PRESETS["vai-sf"],
    }
    network = hpcc.PRESETS["fairness"].network
    return {name: {**each.options(), **network} for name, each in presets.items()}


def study(name: str, folder: Path, quick: bool, **options: Any) -> FabricStudy:
    """Run a benchmark, stored next to the pictures that share its runs; slowdowns are over Swift's time alone.

    Parameters
    ----------
    name : str
        Of `TRAFFIC`.
    folder : Path
    quick : bool
        64 hosts, 0.2 ms and two seeds.
    **options
        As of `fluidcc.fabric`, which go before the benchmark's: ``until="50ms", seeds=1`` is the paper's time.
    """
    traffic = TRAFFIC[name]
    own: dict[str, Any] = {"until": 0.2e-3 if quick else traffic.until, "seeds": 2 if quick else SEEDS}
    found = fabric(
        contenders(),
        SMALL if quick else TREE,
        workload=traffic.workload,
        load=LOAD,
        folder=folder / f"fairness-{name}-{'quick-' if quick else ''}runs",
        **own | options,
    )
    return on_one_base(found, "Swift")
