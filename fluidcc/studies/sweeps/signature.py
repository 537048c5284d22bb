"""Inputs that a sweep's numbers depend on, in parts, so that a store is continued only if it would give the same."""

from __future__ import annotations

import hashlib
import importlib.metadata

import jax
import numpy as np

from fluidcc.compiling.folder import processor
from fluidcc.compiling.functions import sources
from fluidcc.compiling.identity import code_of, digest_of
from fluidcc.engines.fluid.plan import Plan
from fluidcc.results.grid import Grid
from fluidcc.results.schema import METRICS
from fluidcc.studies.sweeps.batch import Batch
from fluidcc.version import VERSION

_DIGITS = 16


def signature_of(batch: Batch, plan: Plan, grid: Grid) -> dict[str, str]:
    """Texts and digests by what they are of: the numbers of all points, not of one alone; how, by what and on what."""
    leaves, structure = jax.tree.flatten(batch.network)
    digest = hashlib.sha256(f"{structure} {grid.signature()}".encode())
    for each in (*leaves, batch.reasons, batch.payload):
        values = np.asarray(each)
        digest.update(f"{values.dtype} {values.shape}".encode() + values.tobytes())
    schemes = {type(flow.scheme) for flow in batch.scenario.flows}
    versions = [f"{name} {importlib.metadata.version(name)}" for name in ("jax", "jaxlib", "numpy")]
    return {
        "settings of the points": digest.hexdigest()[:_DIGITS],
        "horizon, window, step, method and precision": digest_of(repr(plan))[:_DIGITS],
        "metrics": digest_of(*METRICS)[:_DIGITS],
        "equations": digest_of(sources(), code_of((), schemes))[:_DIGITS],
        "versions": ", ".join([f"fluidcc {VERSION}", *versions]),
        "processor": f"{jax.default_backend()} {digest_of(*processor())[:_DIGITS]}",
    }
