"""HPCC's evaluations on whole fabrics (sections 2.3, 5.2, 5.3): schemes, sizes, and notes that all of them have."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from fluidcc.contract.preset import Preset
from fluidcc.proofs.shared.slowdowns import lacking, named, of_numbers
from fluidcc.proofs.verdict.figure import Check
from fluidcc.schemes import dcqcn, dctcp, hpcc, timely
from fluidcc.workloads.fabrics.study import FabricStudy

T = 13e-6  # s: HPCC's T of the simulations, and what "+win" fills at line rate (section 5.1)
HADOOP_EDGES = (0, 325, 400, 500, 600, 700, 1e3, 7e3, 46e3, 120e3, 10e6)  # bytes: deciles of FB_Hadoop's flows
WEB_SEARCH_EDGES = (0, 10e3, 20e3, 30e3, 50e3, 80e3, 200e3, 1e6, 2e6, 5e6, 30e6)  # bytes: corners of its table
PACKET = (0.0, 1000.0)  # bytes: flows of a packet, whose completion time is a round trip
INCAST = "60:500KB:2%"  # section 5.3

NOTES = (
    "slowdowns are over the formula of the authors' simulator, a round trip and all payload at the slowest link: the "
    "same for all schemes, so that telemetry counts against HPCC; intervals are Student's t over seeds, in pairs",
    "arrivals, hosts and ECMP's hashes are drawn by seed, since the paper's are not public; the first flows find an "
    "empty fabric, which flatters every scheme, long flows most",
)


def scheme(preset: Preset, network: Mapping[str, Any] | None = None, **parameters: Any) -> dict[str, Any]:
    """A preset's scheme with other parameters, as `fluidcc.fabric` takes it."""
    changed = preset._replace(scheme=dataclasses.replace(preset.scheme, **parameters))
    return named(changed, **(network or {}))


def simulated() -> dict[str, dict[str, Any]]:
    """The schemes of section 5.3, with section 5.1's parameters."""
    window: dict[str, Any] = {"win": True, "base_rtt": T}
    vendor, delay = dcqcn.PRESETS["hpcc-eval"], timely.PRESETS["hpcc-eval"]
    return {
        "DCQCN": scheme(vendor),
        "TIMELY": scheme(delay),
        "DCQCN+win": scheme(vendor, **window),
        "TIMELY+win": scheme(delay, **window),
        "DCTCP": scheme(dctcp.PRESETS["hpcc-eval"], base_rtt=T),
        "HPCC": scheme(hpcc.PRESETS["hpcc-eval"], base_rtt=T),
    }


def totals(studies: Mapping[str, FabricStudy]) -> dict[str, float]:
    """Count flows, unfinished ones, and dropped packets over all runs."""
    runs = [run for study in studies.values() for run in study.runs]
    return {
        "flows": float(sum(run.slowdown["size"].size for run in runs)),
        "unfinished": float(sum(run.slowdown.unfinished for run in runs)),
        "drops": float(sum(of_numbers(study, name, "drops").sum() for study in studies.values()
                           for name in study.schemes)),
    }  # fmt: skip


def share_up_to(studies: Mapping[str, FabricStudy], size: float, besides: float = np.nan) -> tuple[float, float]:
    """Share of flows up to a size [bytes] without those of one size, and four standard errors of it."""
    sizes = np.concatenate([run.slowdown["size"].values for study in studies.values()
                            for run in study.of(study.schemes[0])])  # fmt: skip
    sizes = sizes[sizes != besides]
    share = float((sizes <= size).mean())
    return share, 4 * float(np.sqrt(share * (1 - share) / len(sizes)))


def lossless() -> Check:
    """Return the check on ``drops`` where there is PFC."""
    return Check(0.0, 0.0, "PFC keeps the network lossless")


def closing(studies: Mapping[str, FabricStudy], quick: str) -> list[str]:
    """Notes on unfinished flows and on what a quick run leaves out."""
    return [*lacking(studies), *([quick] if quick else [])]
